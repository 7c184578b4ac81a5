//! Intervals as weighted points.

use super::{FeatureSet, TraceInterval};

/// Coordinates are padded with zeros to a multiple of this, so that distances are computed side by side.
const LANES: usize = 4;

/// Points in a space of features, each with a weight.
#[derive(Clone, Debug)]
pub struct Points {
    dimensions: usize,
    /// Coordinates of a point, with its padding.
    width: usize,
    values: Vec<f64>,
    weights: Vec<f64>,
}

impl Points {
    /// Points from rows of as many finite coordinates as there are dimensions (at least one), and their weights, each above
    /// zero; panics if they do not fit.
    pub fn new(dimensions: usize, coordinates: &[f64], weights: Vec<f64>) -> Self {
        assert!(
            dimensions > 0 && coordinates.len() == dimensions * weights.len(),
            "a row of coordinates for each weight"
        );
        let width = dimensions.next_multiple_of(LANES);
        let mut values = vec![0.0; width * weights.len()];
        for (padded, row) in values.chunks_exact_mut(width).zip(coordinates.chunks_exact(dimensions)) {
            padded[..dimensions].copy_from_slice(row);
        }
        Self { dimensions, width, values, weights }
    }

    /// Intervals by these features, each of which is shifted to a mean of zero and scaled to a variance of one over the
    /// intervals; one that does not vary is zero. Their requests are the weights (SIGMETRICS 2015, section 4.4).
    pub fn standardised(intervals: &[TraceInterval], features: &FeatureSet) -> Self {
        let dimensions = features.features().len();
        let mut coordinates = vec![0.0; dimensions * intervals.len()];
        for (column, feature) in features.features().enumerate() {
            let values: Vec<f64> = intervals.iter().map(feature.value).collect();
            let count = values.len() as f64;
            let mean = values.iter().sum::<f64>() / count;
            let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
            // What rounding leaves of values that are all alike is no variance.
            let varies = deviation > 1e-12 * mean.abs();
            for (row, value) in values.iter().enumerate().filter(|_| varies) {
                coordinates[row * dimensions + column] = (value - mean) / deviation;
            }
        }
        Self::new(dimensions, &coordinates, intervals.iter().map(|interval| interval.requests as f64).collect())
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Coordinates of each point.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// The weights.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weighted mean of all points, padded.
    pub(super) fn mean(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.width];
        for (point, weight) in self.values.chunks_exact(self.width).zip(&self.weights) {
            sums.iter_mut().zip(point).for_each(|(sum, value)| *sum += weight * value);
        }
        let total: f64 = self.weights.iter().sum();
        sums.into_iter().map(|sum| sum / total).collect()
    }

    /// Some of the points, with other weights.
    pub(super) fn only(&self, indices: &[usize], weights: Vec<f64>) -> Self {
        let values = indices.iter().flat_map(|&index| self.point(index)).copied().collect();
        Self { values, weights, ..*self }
    }

    /// Coordinates of each point with their padding.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The padded coordinates of a point.
    #[inline(always)]
    pub(super) fn point(&self, index: usize) -> &[f64] {
        &self.values[index * self.width..][..self.width]
    }
}

/// The square of the distance between two padded points.
#[inline(always)]
pub(super) fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for lane in 0..LANES {
            let difference = a[lane] - b[lane];
            sums[lane] += difference * difference;
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_have_mean_zero_and_variance_one_or_are_zero() {
        let interval = |requests, reads| TraceInterval {
            requests,
            reads,
            traffic: 4096 * requests,
            sectors: 8,
            ..TraceInterval::default()
        };
        let intervals = [interval(1, 1), interval(2, 0), interval(9, 3)];
        let points = Points::standardised(&intervals, &"CntArqRd".parse().unwrap());
        assert_eq!((points.len(), points.weights()), (3, &[1.0, 2.0, 9.0][..]));
        let column = |column: usize| (0..3).map(|row| points.point(row)[column]).collect::<Vec<_>>();
        for varying in [column(0), column(2)] {
            assert!(varying.iter().sum::<f64>().abs() < 1e-12);
            assert!((varying.iter().map(|value| value * value).sum::<f64>() - 3.0).abs() < 1e-12);
        }
        assert_eq!(column(1), [0.0; 3], "each request is as long as the others");
        assert_eq!(squared_distance(points.point(1), points.point(1)), 0.0);
    }
}
