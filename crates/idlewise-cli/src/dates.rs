//! Dates as people read them, in the machine's time zone.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The date and time, to the minute: `2026-11-22 04:49`; what is beyond the calendar is none.
pub fn date(unix_s: u64) -> Option<String> {
    in_zone(unix_s, TimeZone::system())
}

/// A local date and time such as `2026-11-22 04:49`, in seconds since 1970.
pub fn parse_date(text: &str) -> Option<f64> {
    let civil: jiff::civil::DateTime = text.trim().replacen(' ', "T", 1).parse().ok()?;
    Some(civil.to_zoned(TimeZone::system()).ok()?.timestamp().as_second() as f64)
}

/// Seconds since 1970.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn in_zone(unix_s: u64, zone: TimeZone) -> Option<String> {
    let time = Timestamp::from_second(i64::try_from(unix_s).ok()?).ok()?;
    Some(time.to_zoned(zone).strftime("%Y-%m-%d %H:%M").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_of_the_zone_and_of_this_calendar() {
        let utc = |unix_s| in_zone(unix_s, TimeZone::UTC);
        assert_eq!(utc(1_795_322_940).as_deref(), Some("2026-11-22 04:49"));
        let west = TimeZone::fixed(jiff::tz::offset(-5));
        assert_eq!(in_zone(1_795_322_940, west).as_deref(), Some("2026-11-21 23:49"));
        let now = 1_795_322_940;
        assert_eq!(parse_date(&date(now).unwrap()), Some(now as f64));
        assert_eq!((parse_date("tomorrow"), parse_date("2026-13-01 08:00")), (None, None));
        assert_eq!((utc(u64::MAX), utc(1 << 60)), (None, None));
    }
}
