//! The `starling` program: its command line and the composition of all parts.

// Their macros panic when the reader has gone away: use `cli::standard`.
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod cli;
