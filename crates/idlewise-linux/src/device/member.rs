//! What a device is part of that can repair it.

use serde::{Deserialize, Serialize};

use super::Device;

/// What can rewrite a device's unreadable blocks from redundant data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Member {
    /// An md array of this name.
    Md(String),
}

impl Device {
    /// The array that this very device, and not another part of its disk, is a member of.
    pub fn member(&self) -> Option<Member> {
        self.md_array().map(Member::Md)
    }
}
