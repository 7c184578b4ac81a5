//! What each command does with a trace, and what must hold of it.

pub mod compare;
pub mod explore;
pub mod idle;
pub mod reliability;
pub mod replay;
pub mod sample;
pub mod simulate;
pub mod trace;
pub mod tune;
pub mod work;
