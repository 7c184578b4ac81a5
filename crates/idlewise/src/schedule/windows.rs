//! Windows of the week in which work is allowed, by the clock on the wall.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::WEEK;

const DAY: u32 = 24 * 60;
const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// Spans of the week. An hour that a clock skips is in none of them; one that it shows twice counts both times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Minutes of the week, in order, none touching the next.
    spans: Vec<Range<u32>>,
}

/// What a window cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no window: {problem}; such as 'Mon..Fri 19:00-07:00', 'Sat,Sun' or '22:00-06:00'")]
pub struct WindowsError {
    text: String,
    problem: String,
}

impl Default for Windows {
    fn default() -> Self {
        Self::of(std::iter::once(0..WEEK).collect())
    }
}

impl Windows {
    /// All of these together; always, if there is none.
    ///
    /// # Errors
    /// The first that is no window.
    pub fn new<T: AsRef<str>>(texts: &[T]) -> Result<Self, WindowsError> {
        if texts.is_empty() {
            return Ok(Self::default());
        }
        let spans = texts.iter().map(|text| spans(text.as_ref())).collect::<Result<Vec<_>, _>>()?.concat();
        Ok(Self::of(spans))
    }

    fn of(mut spans: Vec<Range<u32>>) -> Self {
        spans.sort_by_key(|span| span.start);
        spans.dedup_by(|next, kept| {
            let touches = next.start <= kept.end;
            kept.end = if touches { kept.end.max(next.end) } else { kept.end };
            touches
        });
        Self { spans }
    }

    /// Whether they are open at all times.
    pub fn is_always(&self) -> bool {
        self.spans.first() == Some(&(0..WEEK))
    }

    /// Whether one is open at a minute of the week.
    pub fn is_open(&self, minute: u32) -> bool {
        self.spans.iter().any(|span| span.contains(&(minute % WEEK)))
    }

    /// After how many minutes that is no longer so; nothing where it never changes.
    pub fn changes_after(&self, minute: u32) -> Option<u32> {
        let (minute, open) = (minute % WEEK, self.is_open(minute));
        let edges = self.spans.iter().flat_map(|span| [span.start, span.end % WEEK]);
        let after = edges.map(|edge| match (edge + WEEK - minute) % WEEK {
            0 => WEEK,
            after => after,
        });
        after.filter(|after| self.is_open(minute + after) != open).min()
    }

    /// For how many minutes the window has been open that is open at a minute of the week; zero where none is, or one always is.
    pub fn open_for(&self, minute: u32) -> u32 {
        let minute = minute % WEEK;
        // Spans that end where another begins are one window.
        let opens = self.spans.iter().map(|span| span.start).filter(|start| !self.is_open(start + WEEK - 1));
        let since = opens.map(|start| (minute + WEEK - start) % WEEK).min();
        since.filter(|_| self.is_open(minute)).unwrap_or(0)
    }

    /// How many of the minutes from one on are in a window.
    pub fn open_within(&self, from: u32, minutes: u32) -> u32 {
        let whole = minutes / WEEK * self.spans.iter().map(|span| span.end - span.start).sum::<u32>();
        let (begin, rest) = (from % WEEK, minutes % WEEK);
        let overlap = |part: Range<u32>| -> u32 {
            let of = |span: &Range<u32>| span.end.min(part.end).saturating_sub(span.start.max(part.start));
            self.spans.iter().map(of).sum()
        };
        let end = begin + rest;
        whole + overlap(begin..end.min(WEEK)) + overlap(0..end.saturating_sub(WEEK))
    }
}

/// Days, then times of the day; either may be missing.
fn spans(text: &str) -> Result<Vec<Range<u32>>, WindowsError> {
    let no = |problem: String| WindowsError { text: text.to_string(), problem };
    let words: Vec<&str> = text.split_whitespace().collect();
    let (days, times) = match words[..] {
        [one] if one.contains(':') => (vec![true; 7], Some(one)),
        [one] => (days(one).map_err(no)?, None),
        [first, second] => (days(first).map_err(no)?, Some(second)),
        _ => return Err(no("it is days, a span of time, or both".into())),
    };
    let (from, to) = times.map_or(Ok((0, DAY)), times_of_day).map_err(no)?;
    // A span that ends before it begins goes on into the next day.
    let length = if to > from { to - from } else { to + DAY - from };
    let begins = days.iter().zip(0..).filter(|(is_meant, _)| **is_meant).map(|(_, day): (_, u32)| day * DAY + from);
    let pieces = begins.flat_map(|begin| {
        let end = begin + length;
        [begin..end.min(WEEK), 0..end.saturating_sub(WEEK)]
    });
    Ok(pieces.filter(|piece| !piece.is_empty()).collect())
}

/// `Mon..Fri`, `Sat,Sun`, `Mon,Wed..Fri`: as in systemd.time(7).
fn days(text: &str) -> Result<Vec<bool>, String> {
    let day = |name: &str| {
        let name = name.to_ascii_lowercase();
        let found = DAYS.iter().position(|long| name == *long || name == long[..3]);
        found.ok_or_else(|| format!("'{name}' is no day of the week"))
    };
    let mut meant = vec![false; 7];
    for part in text.split(',') {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let (first, last) = (day(first)?, day(last)?);
        // Over the end of the week as well.
        let count = (last + 7 - first) % 7;
        (first..=first + count).for_each(|day| meant[day % 7] = true);
    }
    Ok(meant)
}

/// `19:00-07:00`: minutes of the day.
fn times_of_day(text: &str) -> Result<(u32, u32), String> {
    let time = |text: &str| {
        let parts = text.split_once(':').and_then(|(hour, minute)| {
            let number =
                |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
            Some((number(hour)?, number(minute)?))
        });
        let minute = parts.filter(|(hour, minute)| *hour < 24 && *minute < 60 || (*hour, *minute) == (24, 0));
        minute.map(|(hour, minute)| hour * 60 + minute).ok_or_else(|| format!("'{text}' is no time of the day"))
    };
    let (from, to) = text.split_once('-').ok_or_else(|| format!("'{text}' is no span of time"))?;
    let (from, to) = (time(from)?, time(to)?);
    if from == to {
        return Err(format!("'{text}' is empty"));
    }
    Ok((from % DAY, to))
}

impl FromStr for Windows {
    type Err = WindowsError;

    fn from_str(text: &str) -> Result<Self, WindowsError> {
        Self::new(&[text])
    }
}

impl fmt::Display for Windows {
    /// Each span with its days.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_always() {
            return formatter.write_str("always");
        }
        let place = |minute: u32| {
            let name = DAYS[(minute / DAY % 7) as usize];
            format!("{}{} {:02}:{:02}", name[..1].to_uppercase(), &name[1..3], minute / 60 % 24, minute % 60)
        };
        let spans: Vec<_> =
            self.spans.iter().map(|span| format!("{} to {}", place(span.start), place(span.end))).collect();
        formatter.write_str(&spans.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn minute(day: u32, hour: u32, minute: u32) -> u32 {
        day * DAY + hour * 60 + minute
    }

    #[test]
    fn days_and_times_are_read() {
        let nights = Windows::new(&["Mon..Fri 19:00-07:00", "Sat,Sun"]).unwrap();
        for (at, open) in [
            (minute(0, 6, 59), false),
            (minute(0, 18, 59), false),
            (minute(0, 19, 0), true),
            (minute(1, 6, 59), true),
            (minute(1, 7, 0), false),
            (minute(4, 23, 0), true),
            (minute(5, 12, 0), true),
            (minute(6, 23, 59), true),
        ] {
            assert_eq!(nights.is_open(at), open, "{at}");
        }
        assert_eq!(
            nights.to_string(),
            "Mon 19:00 to Tue 07:00, Tue 19:00 to Wed 07:00, Wed 19:00 to Thu 07:00, \
                                        Thu 19:00 to Fri 07:00, Fri 19:00 to Mon 00:00"
        );
        // From Sunday into Monday, by either name of a day.
        let over = Windows::new(&["sunday 23:00-01:00"]).unwrap();
        assert!(over.is_open(minute(6, 23, 30)) && over.is_open(minute(0, 0, 59)) && !over.is_open(minute(0, 1, 0)));
        assert_eq!(Windows::new(&["Sat..Mon"]).unwrap().open_within(0, WEEK), 3 * DAY);
        assert_eq!(Windows::new(&["00:00-24:00"]).unwrap(), Windows::default());
        assert!(Windows::new::<&str>(&[]).unwrap().is_always());
    }

    #[test]
    fn what_is_no_window_is_named() {
        for (text, problem) in [
            ("Mon..Fri 19:00", "'19:00' is no span of time"),
            ("Mox", "'mox' is no day of the week"),
            ("25:00-26:00", "'25:00' is no time of the day"),
            ("Mon 10:00-10:00", "'10:00-10:00' is empty"),
            ("", "it is days, a span of time, or both"),
            ("Mon 1:00-2:00 x", "it is days, a span of time, or both"),
            ("Mon +1:00-2:00", "'+1:00' is no time of the day"),
        ] {
            let error = Windows::new(&[text]).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }

    fn windows() -> impl Strategy<Value = Windows> {
        prop::collection::vec((0..WEEK, 1..2 * DAY), 1..6).prop_map(|spans| {
            let pieces = spans.into_iter().flat_map(|(begin, length)| {
                let end = begin + length;
                [begin..end.min(WEEK), 0..end.saturating_sub(WEEK)]
            });
            Windows::of(pieces.filter(|piece| !piece.is_empty()).collect())
        })
    }

    proptest! {
        /// Against a look at each minute.
        #[test]
        fn spans_are_minutes(windows in windows(), from in 0..WEEK, minutes in 0..3 * WEEK) {
            let naive = (from..from + minutes).filter(|minute| windows.is_open(*minute)).count();
            prop_assert_eq!(windows.open_within(from, minutes) as usize, naive);
            let open = windows.is_open(from);
            let naive = (1..=WEEK).find(|after| windows.is_open(from + after) != open);
            prop_assert_eq!(windows.changes_after(from), naive);
            let before = (0..WEEK).take_while(|before| windows.is_open(from + WEEK - before)).count() as u32;
            prop_assert_eq!(windows.open_for(from), if before == WEEK { 0 } else { before.saturating_sub(1) });
        }
    }
}
