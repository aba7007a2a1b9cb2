//! Tests of the shipped program as a process: its output and its exit status.

#![allow(clippy::unwrap_used)]

mod answers;
mod arguments;
mod ask;
mod closed_output;
mod configuration;
mod demo;
mod endpoint;
mod killed;
mod log_file;
mod lsp;
mod project;
mod proving;
mod refactor;
mod relied_on;
mod review;
mod run;
mod terminal;
mod trying;
mod undo;
