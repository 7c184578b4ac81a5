//! Texts that are parsed as TOML, whoever has written them: keys and tables take far more memory than they have letters.

/// Tables, lists and parts of dotted keys: each takes up to 1.2 KB while it is parsed.
const MOST_PARTS: usize = 200_000;
/// Keys with a value.
const MOST_KEYS: usize = 400_000;

/// Refuses a text that would take more than some 256 MiB to parse.
///
/// # Errors
/// What it has too many of.
pub fn check(text: &str) -> Result<(), String> {
    let count = |of: &[u8]| text.bytes().filter(|letter| of.contains(letter)).count();
    let (parts, keys) = (count(b"[{."), count(b"="));
    if parts > MOST_PARTS || keys > MOST_KEYS {
        return Err(format!(
            "more than {MOST_PARTS} of '[', '{{' and '.', or {MOST_KEYS} keys: no file of idlewise is as large"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_too_much_memory_is_refused() {
        assert_eq!(check("version = 2\n[[interval]]\nweight = 1.5\n"), Ok(()));
        for text in ["{a.b.c.d.e.f.g=1},", "a=1\n", "["] {
            assert!(check(&text.repeat(500_000)).is_err(), "{text}");
        }
    }
}
