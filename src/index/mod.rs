//! The code index.

mod trace;

pub use trace::{Frame, frame, frames};
