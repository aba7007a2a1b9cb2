//! The mock editor: an LSP client joined to the shipped server by an in-memory pipe, so that what runs
//! without a window is what users run.

mod buffers;
mod editor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use editor::{HeadlessEditor, HeadlessError, HeadlessRun, RunNote, capabilities};
pub use starling_rpc::{Connection, Incoming, RequestError};
