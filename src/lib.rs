//! Starling: a coding assistant in the editor. One agent per symbol, every change proven and approved.
//!
//! The modules stand in rows; a lower row may use a higher one, nothing imports upward
//! (`tests/architecture.rs` holds the edges; `docs/architecture.md` explains them).

pub mod rpc;
pub mod text;

pub mod syntax;

pub mod workspace;

pub mod index;

pub mod ports;

pub mod prompts;

pub mod swarm;

pub mod ask;

pub mod config;

pub mod lang;
pub mod model;
pub mod runner;

pub mod history;

pub mod server;

pub mod headless;

pub mod cli;
