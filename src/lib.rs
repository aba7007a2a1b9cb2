//! The `starling` program: its command line and the composition of all parts.

pub mod cli;
