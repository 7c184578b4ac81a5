//! The representative intervals of a trace, and what their response times say of all of it.

use crate::Nanos;

/// A part of a trace that stands for others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// Where it begins, on the clock of the trace.
    pub begin: Nanos,
    /// Where it ends; what arrives then is no longer of it.
    pub end: Nanos,
    /// How many requests of the trace it stands for.
    pub weight: f64,
}

/// Segments that cannot be played.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// One ends before it begins, or has a weight that is none.
    #[error(
        "the segment from {} to {} of weight {}: it must end after it begins, and weigh more than 0",
        .0.begin.exact(), .0.end.exact(), .0.weight
    )]
    Malformed(Segment),
    /// One begins before the end of the one before it.
    #[error(
        "the segment from {} begins before the end of the one before it: segments go by time and do not overlap",
        .0.begin.exact()
    )]
    OutOfOrder(Segment),
}

impl Segment {
    /// The whole of a trace, standing for itself; an empty one weighs 1.
    pub fn whole(requests: usize) -> Self {
        Self { begin: Nanos::ZERO, end: Nanos(u64::MAX), weight: requests.max(1) as f64 }
    }

    /// Checks segments one by one and each against the one before it.
    ///
    /// # Errors
    /// [`SegmentError`] names the first that is wrong.
    pub fn check(segments: &[Self]) -> Result<(), SegmentError> {
        let wrong = |one: &&Self| one.begin >= one.end || !one.weight.is_finite() || one.weight <= 0.0;
        if let Some(one) = segments.iter().find(wrong) {
            return Err(SegmentError::Malformed(*one));
        }
        let early = segments.windows(2).find(|pair| pair[1].begin < pair[0].end);
        early.map_or(Ok(()), |pair| Err(SegmentError::OutOfOrder(pair[1])))
    }
}

/// The weighted response time in seconds: of each segment its weight and its mean response time in seconds, or `None` where it
/// has no request; those are left out with their weights (SIGMETRICS 2015, section 3, equation 1). `None` if all are.
pub fn weighted_response(segments: impl IntoIterator<Item = (f64, Option<f64>)>) -> Option<f64> {
    let known = segments.into_iter().filter_map(|(weight, mean)| Some((weight, mean?)));
    let (sum, weights) =
        known.fold((0.0, 0.0), |(sum, weights), (weight, mean)| (sum + weight * mean, weights + weight));
    (weights > 0.0).then(|| sum / weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_checked() {
        let segment = |begin, end, weight| Segment { begin: Nanos(begin), end: Nanos(end), weight };
        assert_eq!(Segment::check(&[segment(0, 5, 1.0), segment(5, 9, 0.5)]), Ok(()));
        for wrong in [segment(5, 5, 1.0), segment(0, 5, 0.0), segment(0, 5, f64::NAN)] {
            let error = Segment::check(&[wrong]).unwrap_err().to_string();
            assert!(error.contains("it must end after it begins"), "{error}");
        }
        let error = Segment::check(&[segment(0, 5, 1.0), segment(4, 9, 1.0)]).unwrap_err().to_string();
        assert!(error.starts_with("the segment from 4ns begins before the end"), "{error}");
    }

    #[test]
    fn weights_count_what_a_segment_stands_for() {
        assert_eq!(weighted_response([(3.0, Some(0.01)), (1.0, Some(0.05))]), Some(0.02));
        assert_eq!(weighted_response([(3.0, Some(0.01)), (9.0, None)]), Some(0.01));
        assert_eq!(weighted_response([(3.0, None)]), None);
    }
}
