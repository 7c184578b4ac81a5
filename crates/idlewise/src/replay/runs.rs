//! What is played for the segments of a trace: warm-up, segment and cool-down, in runs that are joined where they meet
//! (SIGMETRICS 2015, section 5.2).

use std::ops::Range;

use super::{Footprint, Segment, SegmentError};
use crate::trace::Columns;
use crate::{Bytes, Nanos};

/// Why a request is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// To fill the device's cache: as fast as the device takes it.
    WarmUp,
    /// To be measured, on time: for the segment of this number.
    Measured(usize),
    /// To keep the device as busy, on time, as it was while the last requests of the segment were served.
    CoolDown,
}

impl Phase {
    /// Whether requests are played on time, rather than as fast as possible.
    pub fn on_time(self) -> bool {
        self != Self::WarmUp
    }
}

/// Requests that follow one another and are played for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Why they are played.
    pub phase: Phase,
    /// Which.
    pub requests: Range<usize>,
}

/// Parts that follow one another without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayRun {
    /// In order; none is empty.
    pub parts: Vec<Part>,
}

impl ReplayRun {
    /// The runs that measure `segments` on a device with a cache of `cache`. Each begins with the last requests before
    /// its first segment whose footprint reaches the cache. It ends with those that arrived before all of the last
    /// segment's requests had ended; a request without a response time ends as it arrives. A run that meets the one before
    /// it is joined to it; what lies between their segments, and is not of a cool-down, is warm-up. Where nothing does and the
    /// device was idle, a new run begins, so that nobody waits for the idle hours between two segments.
    ///
    /// # Errors
    /// [`SegmentError`] if the segments cannot be played.
    pub fn of_segments(requests: &Columns, segments: &[Segment], cache: Bytes) -> Result<Vec<Self>, SegmentError> {
        Segment::check(segments)?;
        let index_of = |time: Nanos| requests.arrival.partition_point(|arrival| *arrival < time);
        let mut runs: Vec<Self> = Vec::new();
        // Of the segment before: its end, and that of its last request.
        let (mut before, mut busy_until) = (Nanos::ZERO, Nanos::ZERO);
        for (number, segment) in segments.iter().enumerate() {
            let measured = index_of(segment.begin)..index_of(segment.end);
            if measured.is_empty() {
                continue;
            }
            // Further back all has been played.
            let played = runs.last().map_or(0, Self::end);
            let warm_up = warm_up_from(requests, played..measured.start, cache);
            let ends = measured.clone().filter_map(|index| requests.request(index).end());
            let last_end = ends.max().unwrap_or_default();
            let mut cool_down = index_of(last_end).max(measured.end);
            let idle = segment.begin > before && requests.arrival[measured.start] >= busy_until;
            (before, busy_until) = (segment.end, last_end);
            let joined = runs.pop_if(|run| warm_up <= run.end());
            let mut run = joined.unwrap_or(Self { parts: Vec::new() });
            cool_down = cool_down.max(run.end());
            run.cut(measured.start);
            let from = run.parts.last().map_or(warm_up, |part| part.requests.end);
            if idle && from == measured.start && !run.parts.is_empty() {
                runs.push(std::mem::replace(&mut run, Self { parts: Vec::new() }));
            }
            run.push(Phase::WarmUp, from..measured.start);
            run.push(Phase::Measured(number), measured.clone());
            run.push(Phase::CoolDown, measured.end..cool_down);
            runs.push(run);
        }
        Ok(runs)
    }

    /// Its requests, split where on time and as fast as possible meet, and whether they are on time.
    pub fn stretches(&self) -> impl Iterator<Item = (bool, Range<usize>)> + '_ {
        self.parts.chunk_by(|one, next| one.phase.on_time() == next.phase.on_time()).map(|parts| {
            let (first, last) = (&parts[0], &parts[parts.len() - 1]);
            (first.phase.on_time(), first.requests.start..last.requests.end)
        })
    }

    fn end(&self) -> usize {
        self.parts.last().map_or(0, |part| part.requests.end)
    }

    fn push(&mut self, phase: Phase, requests: Range<usize>) {
        if !requests.is_empty() {
            self.parts.push(Part { phase, requests });
        }
    }

    /// Ends a cool-down where the next segment begins.
    fn cut(&mut self, end: usize) {
        if let Some(part) = self.parts.pop_if(|part| part.requests.end > end) {
            self.push(part.phase, part.requests.start..end);
        }
    }
}

/// The first of the last of these requests that together touch as much as the cache holds, or of all.
fn warm_up_from(requests: &Columns, among: Range<usize>, cache: Bytes) -> usize {
    let mut footprint = Footprint::default();
    let mut from = among.end;
    while from > among.start && footprint.size() < cache {
        from -= 1;
        footprint.touch(requests.offset[from], requests.length[from]);
    }
    from
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::trace::Request;

    const SECTOR: u64 = 512;

    /// A request every 10 ns, each on its own sector and of this response time.
    fn regular(requests: u64, response: u64) -> Columns {
        let mut columns = Columns::default();
        for index in 0..requests {
            let (arrival, offset) = (Nanos(index * 10), Bytes(index * SECTOR));
            columns.push(Request {
                arrival,
                offset,
                length: 512,
                response: Some(Nanos(response)),
                ..Request::default()
            });
        }
        columns
    }

    fn segment(begin: u64, end: u64) -> Segment {
        Segment { begin: Nanos(begin * 10), end: Nanos(end * 10), weight: 1.0 }
    }

    fn parts(run: &ReplayRun) -> Vec<(Phase, Range<usize>)> {
        run.parts.iter().map(|part| (part.phase, part.requests.clone())).collect()
    }

    /// Figure 13: four segments, of which B and C are neighbours, in three runs, each with a warm-up and a cool-down.
    #[test]
    fn figure_13() {
        let requests = regular(100, 25);
        let segments = [segment(10, 15), segment(40, 45), segment(45, 50), segment(80, 90)];
        let runs = ReplayRun::of_segments(&requests, &segments, Bytes(5 * SECTOR)).unwrap();
        let [a, b_and_c, d] = &runs[..] else { panic!("{runs:?}") };
        use Phase::{CoolDown, Measured, WarmUp};
        assert_eq!(parts(a), [(WarmUp, 5..10), (Measured(0), 10..15), (CoolDown, 15..17)]);
        let middle = [(WarmUp, 35..40), (Measured(1), 40..45), (Measured(2), 45..50), (CoolDown, 50..52)];
        assert_eq!(parts(b_and_c), middle);
        assert_eq!(parts(d), [(WarmUp, 75..80), (Measured(3), 80..90), (CoolDown, 90..92)]);
    }

    #[test]
    fn a_large_cache_joins_runs_with_a_warm_up_between() {
        let requests = regular(100, 25);
        let segments = [segment(10, 15), segment(40, 45)];
        let runs = ReplayRun::of_segments(&requests, &segments, Bytes(23 * SECTOR)).unwrap();
        use Phase::{CoolDown, Measured, WarmUp};
        let joined = [
            (WarmUp, 0..10),
            (Measured(0), 10..15),
            (CoolDown, 15..17),
            (WarmUp, 17..40),
            (Measured(1), 40..45),
            (CoolDown, 45..47),
        ];
        assert_eq!(runs.iter().map(parts).collect::<Vec<_>>(), [joined]);
        let stretches: Vec<_> = runs[0].stretches().collect();
        assert_eq!(stretches, [(false, 0..10), (true, 10..17), (false, 17..40), (true, 40..47)]);
        assert_eq!(ReplayRun::of_segments(&requests, &segments, Bytes(22 * SECTOR)).unwrap().len(), 2);
    }

    #[test]
    fn a_long_cool_down_ends_where_the_next_segment_begins_and_goes_on_behind_it() {
        let requests = regular(100, 250);
        let runs = ReplayRun::of_segments(&requests, &[segment(10, 15), segment(20, 22)], Bytes(0)).unwrap();
        use Phase::{CoolDown, Measured};
        let joined = [(Measured(0), 10..15), (CoolDown, 15..20), (Measured(1), 20..22), (CoolDown, 22..46)];
        assert_eq!(runs.iter().map(parts).collect::<Vec<_>>(), [joined]);
        // Nothing is played for a segment without a request; the whole is played as it is.
        assert_eq!(ReplayRun::of_segments(&requests, &[segment(100, 101)], Bytes(0)).unwrap(), []);
        let whole = ReplayRun::of_segments(&requests, &[Segment::whole(100)], Bytes(1 << 20)).unwrap();
        assert_eq!(whole.iter().map(parts).collect::<Vec<_>>(), [[(Measured(0), 0..100)]]);
    }

    /// Hours without a request between two segments are not waited for; a neighbour in time is joined.
    #[test]
    fn idle_hours_between_segments_are_left_out() {
        let mut columns = Columns::default();
        for (arrival, response) in [(0, 5), (10, 5), (1_000, 5), (1_010, 95), (1_100, 1), (9_000, 1)] {
            let (arrival, response) = (Nanos(arrival), Some(Nanos(response)));
            columns.push(Request { arrival, offset: Bytes(arrival.0 * SECTOR), response, ..Request::default() });
        }
        let segment = |begin, end| Segment { begin: Nanos(begin), end: Nanos(end), weight: 1.0 };
        let segments = [segment(0, 100), segment(1_000, 1_100), segment(1_100, 1_200), segment(9_000, 9_100)];
        let runs = ReplayRun::of_segments(&columns, &segments, Bytes(1 << 20)).unwrap();
        let stretches: Vec<_> = runs.iter().flat_map(ReplayRun::stretches).collect();
        assert_eq!(stretches, [(true, 0..2), (true, 2..5), (true, 5..6)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(13), ..ProptestConfig::default() })]

        /// Each request is played at most once, in order; warm-up is the shortest that touches the cache's size.
        #[test]
        fn warm_up_is_just_enough(
            rows in prop::collection::vec((0u64..5, 0u64..64, 1u32..4_000, 0u64..20), 1..120),
            bounds in prop::collection::btree_set(0u64..300, 2..8),
            cache in 0u64..40,
        ) {
            let (mut columns, mut at) = (Columns::default(), 0);
            for (gap, sector, length, response) in rows {
                at += gap;
                let response = Some(Nanos(response));
                columns.push(Request { arrival: Nanos(at), offset: Bytes(sector * SECTOR), length, response, ..Request::default() });
            }
            let bounds: Vec<u64> = bounds.into_iter().collect();
            let segments: Vec<Segment> = bounds.chunks_exact(2)
                .map(|pair| Segment { begin: Nanos(pair[0]), end: Nanos(pair[1]), weight: 1.0 }).collect();
            let runs = ReplayRun::of_segments(&columns, &segments, Bytes(cache * SECTOR)).unwrap();
            let parts: Vec<&Part> = runs.iter().flat_map(|run| &run.parts).collect();
            prop_assert!(parts.windows(2).all(|pair| pair[0].requests.end <= pair[1].requests.start));
            for (number, segment) in segments.iter().enumerate() {
                let inside = |index: &usize| (segment.begin..segment.end).contains(&columns.arrival[*index]);
                let expected: Vec<usize> = (0..columns.len()).filter(inside).collect();
                let measured = parts.iter().filter(|part| part.phase == Phase::Measured(number));
                let found: Vec<usize> = measured.flat_map(|part| part.requests.clone()).collect();
                prop_assert_eq!(found, expected);
            }
            let touched = |range: Range<usize>| {
                let sectors = range.flat_map(|index| {
                    let (first, length) = (columns.offset[index].0 / SECTOR, u64::from(columns.length[index]));
                    first..first + length.div_ceil(SECTOR)
                });
                sectors.collect::<std::collections::HashSet<_>>().len() as u64
            };
            let mut end = usize::MAX;
            for run in &runs {
                let first = run.parts[0].requests.start;
                // One that goes on behind idle hours finds the cache as the one before it left it.
                if std::mem::replace(&mut end, run.end()) == first {
                    continue;
                }
                let measured = run.parts.iter().find(|part| matches!(part.phase, Phase::Measured(_))).unwrap();
                let begin = measured.requests.start;
                prop_assert!(first == 0 || touched(first..begin) >= cache);
                prop_assert!(first == begin || touched(first + 1..begin) < cache);
                prop_assert!(run.parts.windows(2).all(|pair| pair[0].requests.end == pair[1].requests.start));
            }
        }
    }
}
