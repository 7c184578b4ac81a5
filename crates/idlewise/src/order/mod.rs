//! The order in which a scrub visits a device. One file an order, one line each in [`ORDERS`].

mod sequential;
mod staggered;

pub use sequential::Sequential;
pub use staggered::Staggered;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::Bytes;
use crate::registry::{Named, Registry};

/// A stretch of a device in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub offset: Bytes,
    /// Length.
    pub length: Bytes,
}

impl Extent {
    /// The byte behind the last one.
    pub fn end(&self) -> Bytes {
        Bytes(self.offset.0 + self.length.0)
    }
}

/// Visits every byte of a device, and can go on from any [`Place`] that it was at.
pub trait ScanOrder: Send {
    /// The next piece, of at most `size`; `None` when the pass is over.
    fn next(&mut self, size: Bytes) -> Option<Extent>;
    /// A byte that was handed out cannot be read: what is near it may be visited sooner.
    fn unreadable(&mut self, _offset: Bytes) {}
    /// Where it stands: everything handed out so far is behind it.
    fn place(&self) -> Place;
    /// How much of a stretch of the device was handed out.
    fn behind(&self, stretch: Extent) -> Bytes;
}

/// Where an order stands, as kept in a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// Bytes handed out, out of turn or not, each counted once.
    #[serde(rename = "visited_bytes")]
    pub visited: u64,
    /// Bytes of the order's regular course that lie behind.
    #[serde(rename = "course_bytes")]
    pub course: u64,
    /// Regions that were or are visited out of turn, to their ends, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<u64>,
    /// What is left of regions that are visited out of turn: first byte and end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detour: Vec<(u64, u64)>,
    /// What is left of what is visited once more, as an error was found near it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<(u64, u64)>,
}

/// How much two stretches have in common, as first byte and end.
fn common((begin, end): (u64, u64), (from, to): (u64, u64)) -> u64 {
    end.min(to).saturating_sub(begin.max(from))
}

impl Place {
    /// In a course of one line, such as the sequential order's, after so many bytes.
    pub fn after(visited: u64) -> Self {
        Self { visited, course: visited, ..Self::default() }
    }
}

/// Which order, and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Its name: one of [`ORDERS`].
    pub name: Name,
    /// Into how many regions the device is divided (R), where that means something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regions: Option<u64>,
    /// How much of a region is visited before the next one (S).
    #[serde(rename = "visit_bytes", default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<Bytes>,
}

/// Name of an order in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Name(&'static str);

impl Name {
    /// From the first byte to the last.
    pub const SEQUENTIAL: Self = Self("sequential");
    /// A piece of each region in turn.
    pub const STAGGERED: Self = Self("staggered");

    /// The name, if [`ORDERS`] has it.
    pub fn known(name: &str) -> Option<Self> {
        ORDERS.get(name).map(|entry| Self(entry.name))
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::known(&name).ok_or_else(|| D::Error::custom(format!("no order is called '{name}'")))
    }
}

/// A line of the table of orders.
pub struct Entry {
    /// Its name, as in `--json`.
    pub name: &'static str,
    /// One line about it, for `--help`.
    pub about: &'static str,
    /// Whether [`Order::regions`] and [`Order::visit`] mean something to it.
    pub in_regions: bool,
    /// Makes it.
    pub make: Make,
}

impl Named for Entry {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// Every order.
pub static ORDERS: Registry<Entry> = Registry::new(&[
    Entry {
        name: Name::SEQUENTIAL.0,
        about: "from the first byte to the last",
        in_regions: false,
        make: Sequential::make,
    },
    Entry {
        name: Name::STAGGERED.0,
        about: "a piece of each region in turn; when a block is unreadable, its whole region at once",
        in_regions: true,
        make: Staggered::make,
    },
]);

/// Makes an order for a device from where it stands; a message says why it cannot.
pub type Make = fn(&Order, Surface, &Place) -> Result<Box<dyn ScanOrder>, String>;

/// What an order must know of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    /// Its size in bytes, a multiple of `block`.
    pub size: Bytes,
    /// Its logical block in bytes.
    pub block: u32,
}

impl Order {
    /// From the first byte to the last.
    pub const SEQUENTIAL: Self = Self { name: Name::SEQUENTIAL, regions: None, visit: None };

    /// A piece of `visit` bytes of each of so many regions in turn.
    pub fn staggered(regions: u64, visit: Bytes) -> Self {
        Self { name: Name::STAGGERED, regions: Some(regions), visit: Some(visit) }
    }

    /// Its name, as in `--json`.
    pub fn label(&self) -> &'static str {
        self.name.0
    }

    /// The order itself, from a place on.
    ///
    /// # Errors
    /// A message if a parameter or the place means nothing on this device.
    pub fn make(&self, device: Surface, place: &Place) -> Result<Box<dyn ScanOrder>, String> {
        let block = u64::from(device.block.max(1));
        if place.visited > device.size.0 || place.course > device.size.0 {
            return Err(format!("{} bytes visited of {}", place.visited.max(place.course), device.size.0));
        }
        if !place.course.is_multiple_of(block) || !place.visited.is_multiple_of(block) {
            return Err(format!("place {} is no multiple of {block} byte blocks", place.course));
        }
        let entry = ORDERS.get(self.name.0).expect("every name is in the table");
        (entry.make)(self, device, place)
    }
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.label())?;
        match (self.regions, self.visit) {
            (Some(regions), Some(visit)) => write!(f, " ({regions} regions, {visit} a visit)"),
            _ => Ok(()),
        }
    }
}
