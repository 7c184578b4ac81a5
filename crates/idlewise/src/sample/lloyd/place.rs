//! Where centres are put, and taken away.

use super::Lloyd;
use super::blocks::{self, Nearest};
use super::bounds::{QUAD, quads};
use crate::sample::points::squared_distance;

impl<'a> Lloyd<'a> {
    /// By how much a centre on this point would lower the distortion at once.
    pub fn gain(&self, centre: usize) -> f64 {
        let (centre, reach) = self.reach(centre);
        let gain = |index: usize| {
            let own = self.upper[index];
            if reach[self.cluster[index] as usize] >= 2.0 * own {
                return 0.0;
            }
            let squared = squared_distance(self.points.point(index), centre);
            self.points.weights()[index] * (own * own - squared).max(0.0)
        };
        (0..self.points.len()).map(gain).sum()
    }

    /// Puts a new centre on a point, and gives it the points that are nearer to it than to theirs.
    pub fn add_centre(&mut self, centre: usize) {
        let new = self.weights.len();
        let (centre, reach) = self.reach(centre);
        self.keep_bounds(quads(new + 1));
        self.centres.extend_from_slice(centre);
        self.sums.resize(self.centres.len(), 0.0);
        self.weights.push(0.0);
        self.counts.push(0);
        self.changed.push(true);
        let (quads, block) = (quads(new + 1), blocks::of(new));
        for index in 0..self.points.len() {
            let (own, from) = (self.upper[index], self.cluster[index] as usize);
            let lower = self.lower[index * quads..][..quads].as_flattened_mut();
            if reach[from] >= 2.0 * own {
                lower[block] = lower[block].min(reach[from] - own);
                continue;
            }
            let distance = squared_distance(self.points.point(index), centre).sqrt();
            if distance < own {
                lower[blocks::of(from)] = lower[blocks::of(from)].min(own);
                self.changes_cluster(index, Nearest { centre: new, distance });
            } else {
                lower[block] = lower[block].min(distance);
            }
        }
    }

    /// The centre whose points would raise the distortion least, at once, if they all went to one other, and by how much.
    /// There must be two centres.
    pub fn least_needed(&self) -> (usize, f64) {
        let width = self.points.width();
        let loss = |cluster: usize| {
            let weight = self.weights[cluster];
            if self.counts[cluster] == 0 {
                return 0.0;
            }
            let middle: Vec<f64> = self.sums[cluster * width..][..width].iter().map(|sum| sum / weight).collect();
            let squares = self.centres.chunks_exact(width).map(|centre| squared_distance(&middle, centre));
            let others = squares.clone().enumerate().filter(|(other, _)| *other != cluster).map(|(_, square)| square);
            weight * (others.fold(f64::INFINITY, f64::min) - squares.clone().nth(cluster).unwrap_or(0.0))
        };
        let losses = (0..self.weights.len()).map(|cluster| (cluster, loss(cluster)));
        losses.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are centres")
    }

    /// Takes a centre away, one of at least two; its points go to the nearest other, and the last centre takes its number.
    pub fn remove_centre(&mut self, centre: usize) {
        let (width, last) = (self.points.width(), self.weights.len() - 1);
        for rows in [&mut self.centres, &mut self.sums] {
            rows.copy_within(last * width.., centre * width);
            rows.truncate(last * width);
        }
        self.weights.swap_remove(centre);
        self.counts.swap_remove(centre);
        self.changed.swap_remove(centre);
        self.move_last_bound(last, centre);
        let blocks = self.blocks();
        for index in 0..self.points.len() {
            if self.cluster[index] as usize == centre {
                self.find_nearest(index, &blocks);
                self.joins(index, self.cluster[index] as usize);
            } else if self.cluster[index] as usize == last {
                self.cluster[index] = centre as u32;
            }
        }
    }

    /// So many fours of bounds for each point, of which new ones are of no centre.
    fn keep_bounds(&mut self, count: usize) {
        let before = self.lower.len() / self.points.len();
        if count != before {
            let none = [f64::INFINITY; QUAD];
            let bounds = |lower: &[[f64; QUAD]]| {
                (0..count).map(|quad| lower.get(quad).copied().unwrap_or(none)).collect::<Vec<_>>()
            };
            self.lower = self.lower.chunks_exact(before).flat_map(bounds).collect();
        }
    }

    /// The last centre has taken the number `to`.
    fn move_last_bound(&mut self, last: usize, to: usize) {
        let (from, to, emptied) = (blocks::of(last), blocks::of(to), blocks::count(last) < blocks::count(last + 1));
        for lower in self.lower.chunks_exact_mut(quads(last + 1)) {
            let lower = lower.as_flattened_mut();
            lower[to] = lower[to].min(lower[from]);
            if emptied {
                lower[from] = f64::INFINITY;
            }
        }
        self.keep_bounds(quads(last));
    }

    /// A point's coordinates, and its distance to each centre.
    fn reach(&self, point: usize) -> (&'a [f64], Vec<f64>) {
        let (point, width) = (self.points.point(point), self.points.width());
        (point, self.centres.chunks_exact(width).map(|centre| squared_distance(point, centre).sqrt()).collect())
    }
}
