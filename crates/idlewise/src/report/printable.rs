//! Text from outside as it may be shown: names in traces, paths and devices are whatever someone made them, and a terminal obeys
//! what it is sent.

use std::borrow::Cow;
use std::fmt::Write;

/// A text of several lines without anything that a terminal would obey but their ends.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && is_harmful(c))
}

/// A text that stays on one line: for names, cells and messages.
pub fn one_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_harmful)
}

/// The text of a JSON document, whose strings hold such characters as escapes only.
pub fn json(text: &str) -> Cow<'_, str> {
    // Outside of strings there is none but the ends of lines.
    if !text.chars().any(|c| c != '\n' && is_harmful(c)) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_harmful(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// Control characters, of which a tab is one, those that turn the direction of writing around or end a line unseen, and those that
/// nobody sees, so that two names look alike.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

fn escaped(text: &str, harmful: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&harmful) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if harmful(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_instead() {
        let name = "a\u{1b}]0;PWNED\u{7}\u{1b}[2J\r\n\u{9b}1m\u{202e}b\u{e9}";
        assert_eq!(one_line(name), "a\\u{1b}]0;PWNED\\u{7}\\u{1b}[2J\\r\\n\\u{9b}1m\\u{202e}b\u{e9}");
        assert_eq!(lines("one\ntwo\r"), "one\ntwo\\r");
        assert_eq!(one_line("vol\u{200b}ume\u{e0041}\u{ad}"), "vol\\u{200b}ume\\u{e0041}\\u{ad}");
        assert!(matches!(one_line("plain, tr\u{e8}s simple"), Cow::Borrowed(_)));
    }

    proptest! {
        #[test]
        fn json_means_the_same(name in "\\PC{0,8}[\u{0}-\u{1f}\u{7f}-\u{9f}\u{2028}-\u{202e}]{0,8}\\PC{0,8}") {
            let text = serde_json::to_string_pretty(&serde_json::json!({ "name": name })).unwrap();
            let shown = json(&text);
            prop_assert!(shown.chars().all(|c| c == '\n' || !is_harmful(c)));
            let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
            prop_assert_eq!(read["name"].as_str(), Some(&*name));
        }
    }
}
