//! The mock editor: an LSP client joined to the shipped server by an in-memory pipe, so that what runs
//! without a window is what users run.

mod buffers;
mod editor;
pub mod swebench;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use crate::rpc::{Connection, Incoming, RequestError};
pub use editor::{HeadlessEditor, HeadlessError, HeadlessRun, RunNote, capabilities};
