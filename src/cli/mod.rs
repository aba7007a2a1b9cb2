//! The command line.

pub mod doctor;
pub mod explain;
