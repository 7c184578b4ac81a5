//! Patterns of names, as a shell has them.

/// Whether a text is as a pattern with `*` and `?` says.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where the last star was, and what it stands for ends: one is enough to go back to.
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(wanted) if *wanted == b'?' || *wanted == text[from] => (at, from) = (at + 1, from + 1),
            _ => match star {
                Some((place, end)) => {
                    star = Some((place, end + 1));
                    (at, from) = (place + 1, end + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_a_shell() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("/dev/sd?", "/dev/sda", true),
            ("/dev/sd?", "/dev/sdab", false),
            ("*aab", "aaaab", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), fits, "{pattern} {text}");
        }
        // However many stars there are, it ends.
        assert!(!matches("*a".repeat(50).as_bytes(), "a".repeat(49).as_bytes()));
    }
}
