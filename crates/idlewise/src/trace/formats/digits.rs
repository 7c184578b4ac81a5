//! Numbers in decimal digits, eight digits at a time.

/// So many digits always fit 64 bits.
pub const MOST_DIGITS: usize = 19;

/// A whole number that is all of this text.
#[inline]
pub fn number(text: &[u8]) -> Option<u64> {
    let digits = match text.len() {
        0 => return None,
        len if len > MOST_DIGITS => {
            let (zeros, rest) = text.split_at(len - MOST_DIGITS);
            // 20 digits may just fit.
            let above = zeros.iter().try_fold(0u64, |value, digit| digit_after(value, *digit))?;
            return above.checked_mul(10u64.pow(MOST_DIGITS as u32))?.checked_add(number(rest)?);
        }
        _ => text,
    };
    let (eights, rest) = digits.as_chunks::<8>();
    let value = eights.iter().try_fold(0u64, |value, digits| match leading_digits(*digits) {
        (part, 8) => Some(value * TENS[8] + part),
        _ => None,
    })?;
    rest.iter().try_fold(value, |value, digit| {
        let digit = digit.wrapping_sub(b'0');
        (digit <= 9).then(|| value * 10 + u64::from(digit))
    })
}

/// The digits at the front as a number, and how many they are; where they are more than [`MOST_DIGITS`], only that.
#[inline(always)]
pub fn up_to_24_digits(bytes: &[u8; 24]) -> (u64, usize) {
    let eights = bytes.as_chunks::<8>().0;
    let (first, count) = leading_digits(eights[0]);
    if count < 8 {
        return (first, count);
    }
    let (second, count) = leading_digits(eights[1]);
    let value = first * TENS[count] + second;
    if count < 8 {
        return (value, 8 + count);
    }
    let (third, count) = leading_digits(eights[2]);
    // 16 digits and 3 fit.
    (value.wrapping_mul(TENS[count]).wrapping_add(third), 16 + count)
}

/// The same of any text.
#[cold]
pub fn digits_one_by_one(text: &[u8]) -> (u64, usize) {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = text[..count.min(MOST_DIGITS)].iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    (value, count)
}

fn digit_after(value: u64, digit: u8) -> Option<u64> {
    let digit = digit.wrapping_sub(b'0');
    value.checked_mul(10)?.checked_add(u64::from(digit)).filter(|_| digit <= 9)
}

/// Powers of ten.
const TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The digits at the front of eight bytes as a number, and how many they are. No loop, no branch: the digits are moved to the
/// end, which puts zeros in front, and three multiplications make pairs, fours, and all of them.
#[inline(always)]
fn leading_digits(bytes: [u8; 8]) -> (u64, usize) {
    const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let values = u64::from_le_bytes(bytes) ^ ZEROS;
    // From 10 on, adding 0x76 reaches the high bit; what it carries goes behind the first byte that is no digit.
    let others = (values.wrapping_add(u64::from_ne_bytes([0x76; 8])) | values) & HIGH;
    let count = (others.trailing_zeros() / 8) as usize;
    let word = values.checked_shl(64 - 8 * count as u32).unwrap_or(0);
    let word = word.wrapping_mul(10).wrapping_add(word >> 8);
    let fours = (word & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let ones = ((word >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    (fours.wrapping_add(ones) >> 32, count)
}
