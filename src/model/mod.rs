//!

pub mod weights;

#[cfg(feature = "local")]
pub mod local;
