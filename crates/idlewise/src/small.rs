//! Texts that are parsed as TOML, whoever has written them: what is in them takes far more memory than it has letters.

/// Bytes that parsing may take.
const MOST: usize = 256 << 20;
/// Bytes that each takes while it is parsed, as measured: tables, lists and parts of dotted keys; keys with a value; and what ends a value or
/// a line.
const OF_PART: usize = 1_300;
const OF_KEY: usize = 300;
const OF_VALUE: usize = 170;

/// Refuses a text that would take more than some 256 MiB to parse.
///
/// # Errors
/// What it has too much of.
pub fn check(text: &str) -> Result<(), String> {
    let takes = |letter: u8| match letter {
        b'[' | b'{' | b'.' => OF_PART,
        b'=' => OF_KEY,
        b',' | b'\n' => OF_VALUE,
        _ => 0,
    };
    if text.bytes().map(takes).sum::<usize>() > MOST {
        return Err("so many tables, keys and values that they would take more than 256 MiB".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_too_much_memory_is_refused() {
        assert_eq!(check(&"[[interval]]\nweight = 1.5\nbegin = \"1h\"\n".repeat(50_000)), Ok(()));
        for text in ["{a.b.c.d.e.f.g=1},", "a=1\n", "[", "1,", "\n"] {
            assert!(check(&text.repeat((16 << 20) / text.len())).is_err(), "{text}");
        }
    }
}
