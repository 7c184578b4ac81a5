//! The work and the policy that options can ask for.

use idlewise::disk::DiskModel;
use idlewise::idle::{Idleness, Writes};
use idlewise::policy::restrained::Amount;
use idlewise::policy::{BUDGET, BUSY_PERIOD, COMMON, Kind as Values, POLICIES, Parameters, SWAP_AT, Value};
use idlewise::simulate::{ParityUpdates, Scrub, Service, Work, WriteVerification};
use idlewise::{Bytes, Nanos};

use crate::load::{share, size, time};
use crate::{Result, Unstructured};

/// Which background work there is.
#[derive(Clone, Copy)]
pub enum Kind {
    Scrub,
    Verify { buffer: Option<usize>, service: Option<Nanos> },
    Parity { whole: bool, segment: Bytes },
}

const READ: Nanos = Nanos::from_millis(10);
const WRITE: Nanos = Nanos::from_millis(5);

/// Any kind of work.
pub fn kind(from: &mut Unstructured) -> Result<Kind> {
    Ok(match from.int_in_range(0..=3u8)? {
        0 | 1 => Kind::Scrub,
        2 => {
            let buffer = if from.arbitrary()? { Some(from.int_in_range(1..=4)?) } else { None };
            Kind::Verify { buffer, service: if from.arbitrary()? { Some(time(from)?) } else { None } }
        }
        _ => Kind::Parity { whole: from.arbitrary()?, segment: size(from)? },
    })
}

impl Kind {
    pub fn per_write(self) -> bool {
        !matches!(self, Self::Scrub)
    }

    pub fn writes(self, drawn: Option<f64>) -> Writes {
        if self.per_write() { drawn.map_or(Writes::Recorded, Writes::Drawn) } else { Writes::None }
    }

    pub fn work(self, model: &DiskModel) -> Box<dyn Work> {
        let of_size = Service::OfSize(model.clone());
        match self {
            Self::Scrub => Box::new(Scrub::new(of_size)),
            Self::Verify { buffer, service } => {
                Box::new(WriteVerification::new(service.map_or(of_size, Service::exponential), buffer))
            }
            Self::Parity { whole, segment } => {
                let updates = ParityUpdates::new(Service::seeded(READ, 2008), Service::seeded(WRITE, 8002), segment);
                Box::new(if whole { updates.whole() } else { updates })
            }
        }
    }

    pub fn amount(self, disk: &Idleness, model: &DiskModel, size: Bytes) -> Amount {
        match self {
            Self::Scrub => Amount::Infinite,
            Self::Verify { buffer, service } => {
                WriteVerification::amount(disk, service.unwrap_or_else(|| model.verify_time(size)), buffer)
            }
            Self::Parity { .. } => WriteVerification::amount(disk, Nanos(READ.0 + WRITE.0), None),
        }
    }

    pub fn mean_service(self) -> Option<Nanos> {
        match self {
            Self::Scrub => None,
            Self::Verify { service, .. } => service,
            Self::Parity { whole, .. } => Some(Nanos((READ.0 + WRITE.0) / if whole { 1 } else { 2 })),
        }
    }
}

/// A policy by its name, and parameters that it takes.
pub fn policy(from: &mut Unstructured) -> Result<(&'static str, Parameters)> {
    let entry = *from.choose(&POLICIES.iter().collect::<Vec<_>>())?;
    let mut given = Parameters::default();
    for &parameter in COMMON.iter().chain(entry.parameters) {
        let value: Value = match parameter.kind {
            Values::Size { .. } => size(from)?.into(),
            Values::Number { .. } => (share(from)? * 8.0).into(),
            // Until then requests are simulated one by one.
            Values::Time if [SWAP_AT, BUSY_PERIOD].contains(&parameter) => time(from)?.min(Nanos::from_secs(10)).into(),
            Values::Time => time(from)?.into(),
        };
        if parameter != BUDGET || from.ratio(1u8, 4u8)? {
            given.set(parameter, value);
        }
    }
    Ok((entry.name, given))
}
