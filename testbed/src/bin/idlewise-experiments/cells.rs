//! The measurements with synthetic loads: which there are for figures 3 and 6, each made once.

use std::fmt::Write;

use idlewise_testbed::lab::Lab;
use idlewise_testbed::lab::load::{Load, Synthetic};
use idlewise_testbed::lab::outcome::Outcome;
use idlewise_testbed::lab::scrubber::Scrubber;

/// The scheduler of a loop device that nobody has changed; where it does not matter, or is not there to be compared.
pub const PLAIN: &str = "none";
/// Figure 6: delays of the scrubbers with default priority, in milliseconds.
pub const DELAYS: [u64; 7] = [0, 8, 16, 32, 64, 128, 256];
/// Figure 3: the delay that is compared with none.
pub const DELAY: u64 = 16;

/// One scrubber beside one load under one I/O scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The load.
    pub load: Load,
    /// The I/O scheduler.
    pub scheduler: String,
    /// The scrubber.
    pub scrubber: Scrubber,
}

/// Cells and what was measured in them.
pub struct Cells(Vec<(Cell, Outcome)>);

/// Figure 6, for one load and order.
pub fn figure_6(load: Load, staggered: bool, schedulers: &[String]) -> Vec<Cell> {
    let cell = |scheduler: &str, scrubber| Cell { load, scheduler: scheduler.into(), scrubber };
    let idle = schedulers.iter().map(|scheduler| cell(scheduler, Scrubber::idle_class(staggered)));
    let delayed = DELAYS.map(|delay| cell(PLAIN, Scrubber::delayed(delay, staggered)));
    idle.chain(delayed).collect()
}

/// Figure 3, for one scheduler: alone, back to back with default and with idle priority, and with a delay.
pub fn figure_3(scheduler: &str) -> [Cell; 4] {
    let scrubbers =
        [Scrubber::None, Scrubber::delayed(0, false), Scrubber::idle_class(false), Scrubber::delayed(DELAY, false)];
    scrubbers.map(|scrubber| Cell { load: Load::Sequential, scheduler: scheduler.into(), scrubber })
}

/// Everything that both figures need, once.
pub fn all(schedulers: &[String]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for load in [Load::Sequential, Load::Random] {
        cells.push(Cell { load, scheduler: PLAIN.into(), scrubber: Scrubber::None });
        cells.extend([false, true].into_iter().flat_map(|staggered| figure_6(load, staggered, schedulers)));
        cells.push(Cell { load, scheduler: PLAIN.into(), scrubber: Scrubber::Idlewise });
    }
    for cell in schedulers.iter().flat_map(|scheduler| figure_3(scheduler)) {
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    cells
}

impl Cells {
    /// Measures every cell.
    pub fn measure(lab: &mut Lab, cells: Vec<Cell>) -> anyhow::Result<Self> {
        let (device, stop) = (lab.device.again()?, lab.stop.clone());
        let mut measured = Vec::new();
        for (number, cell) in cells.iter().enumerate() {
            let name = format!("{}/{} {cell}", number + 1, cells.len());
            let mut load = Synthetic { device: &device, load: cell.load, stop: &stop };
            let runs = lab.settings.synthetic;
            let outcome = lab.measure(&name, &mut load, runs, cell.scrubber, &cell.scheduler)?;
            measured.push((cell.clone(), outcome));
        }
        Ok(Self(measured))
    }

    /// What was measured in a cell.
    pub fn get(&self, cell: &Cell) -> &Outcome {
        let found = self.0.iter().find(|(other, _)| other == cell);
        &found.expect("every cell of a figure is in the list of all").1
    }

    /// Every response time, as CSV.
    pub fn csv(&self) -> String {
        let mut text = "load,scheduler,scrubber,order,run,response_s\n".to_string();
        for (Cell { load, scheduler, scrubber }, outcome) in &self.0 {
            for (run, response) in
                outcome.runs.iter().zip(1..).flat_map(|(run, n)| run.played.responses.iter().map(move |r| (n, r)))
            {
                let (load, name, order) = (load.label(), scrubber.label(), scrubber.order());
                writeln!(text, "{load},{scheduler},{name},{order},{run},{response}").expect("memory takes it");
            }
        }
        text
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (load, scrubber) = (self.load.label(), self.scrubber.label());
        write!(f, "{load} load, {scrubber}, {} order, scheduler {}", self.scrubber.order(), self.scheduler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_of_a_figure_is_measured_and_none_twice() {
        let schedulers = [PLAIN.to_string(), "bfq".into()];
        let cells = all(&schedulers);
        assert!((1..cells.len()).all(|index| !cells[..index].contains(&cells[index])));
        for load in [Load::Sequential, Load::Random] {
            assert!([false, true].iter().all(|&s| figure_6(load, s, &schedulers).iter().all(|c| cells.contains(c))));
        }
        assert!(schedulers.iter().all(|scheduler| figure_3(scheduler).iter().all(|c| cells.contains(c))));
    }
}
