//! Texts that are parsed as TOML, whoever has written them: what is in them takes far more memory than it has letters.

use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// Bytes that parsing may take.
const MOST: usize = 256 << 20;
/// Bytes that each takes while it is parsed, as measured: tables, lists and parts of dotted keys; keys with a value; what ends a value, a
/// list or a line; and any token, which is kept until all is read.
const OF_PART: usize = 1_300;
const OF_KEY: usize = 300;
const OF_VALUE: usize = 160;
const OF_TOKEN: usize = 60;

/// Tables and lists in each other, at most: each takes a part of the stack.
const DEEPEST: usize = 80;

/// Refuses a text that would take more than some 256 MiB to parse, or whose tables and lists are more than 80 deep in each other.
///
/// # Errors
/// What it has too much of.
pub fn check(text: &str) -> Result<(), String> {
    check_size(text)?;
    check_depth(text)
}

/// The parser has a limit of its own, which it loses count of once brackets do not fit each other: that is refused here.
fn check_depth(text: &str) -> Result<(), String> {
    let mut open = Vec::new();
    for token in Source::new(text).lex() {
        let closes = match token.kind() {
            kind @ (TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket) => {
                open.push(kind);
                if open.len() > DEEPEST {
                    return Err(format!("more than {DEEPEST} tables and lists in each other"));
                }
                continue;
            }
            TokenKind::RightSquareBracket => TokenKind::LeftSquareBracket,
            TokenKind::RightCurlyBracket => TokenKind::LeftCurlyBracket,
            _ => continue,
        };
        if open.pop() != Some(closes) {
            let line = text[..token.span().start()].matches('\n').count() + 1;
            return Err(format!("line {line}: a bracket that closes nothing"));
        }
    }
    Ok(())
}

fn check_size(text: &str) -> Result<(), String> {
    // Letters of words and blanks go on with the token before; in strings and comments that counts too many.
    let goes_on = |before: u8, letter: u8| {
        let is_word = |letter: u8| letter.is_ascii_alphanumeric() || b"_-+:".contains(&letter) || !letter.is_ascii();
        let is_blank = |letter: u8| letter == b' ' || letter == b'\t';
        is_word(before) && is_word(letter) || is_blank(before) && is_blank(letter)
    };
    // Those that close what was opened take no more: that has the most.
    let (mut takes, mut before, mut open, mut in_value, mut quoted) = (0, b'\n', 0usize, false, false);
    for letter in text.bytes() {
        takes += match letter {
            b'[' | b'{' => {
                open += 1;
                OF_PART
            }
            b']' | b'}' if open > 0 => {
                open -= 1;
                0
            }
            b'.' if !in_value => OF_PART,
            b'=' => OF_KEY,
            b',' | b'\n' | b']' | b'}' => OF_VALUE,
            _ if goes_on(before, letter) => 0,
            _ => OF_TOKEN,
        };
        // Behind an equals sign a dot is that of a number; a key comes first in a line or a table, or behind a comma. One in quotes may have
        // such a sign.
        quoted = letter != b'\n' && (quoted || !in_value && b"\"'".contains(&letter));
        in_value = letter == b'=' && !quoted || in_value && !matches!(letter, b'\n' | b',' | b'{');
        before = letter;
    }
    if takes > MOST {
        return Err("so many tables, keys and values that they would take more than 256 MiB".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice this overflowed the stack of the parser, whose own limit does not see it.
    #[test]
    fn what_lies_deep_in_each_other_is_refused() {
        let deep = |times: usize| format!("a={}1{}\n", "[".repeat(times), "]".repeat(times));
        assert_eq!([check(&deep(80)), check("[[a]]\nb = \"]}\" # ]}\n")], [Ok(()), Ok(())]);
        assert_eq!(check(&deep(81)).unwrap_err(), "more than 80 tables and lists in each other");
        for text in ["a=[[".to_string() + &"[a]\na={".repeat(30_000), "a=[[".to_string() + &"']',[".repeat(30_000)] {
            assert_eq!(check(&text).unwrap_err(), "more than 80 tables and lists in each other");
        }
        assert_eq!(check("a = 1\nb = { c = 1]\n").unwrap_err(), "line 2: a bracket that closes nothing");
    }

    #[test]
    fn what_would_take_too_much_memory_is_refused() {
        assert_eq!(check(&"[[interval]]\nweight = 1.5\nbegin = \"1h\"\n".repeat(50_000)), Ok(()));
        for text in [
            "{a.b.c.d.e.f.g=1},",
            "a=1\n",
            "[",
            "1,",
            "\n",
            "\"=\".a.a.a.a.a=1\n",
            "a={b=1,c.c.c.c.c=1}\n",
            " ]",
            " a",
            "1 ",
            "+ ",
            "#\r",
            "\"\" ",
            "}",
            "''",
            "é ",
        ] {
            assert!(check(&text.repeat((16 << 20) / text.len())).is_err(), "{text}");
        }
    }
}
