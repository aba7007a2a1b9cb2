//! The headless editor: an LSP client connected to the shipped server by an in-memory pipe.
//! Commands without a window therefore run the same server that users run.

mod buffers;
mod editor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use editor::{HeadlessEditor, HeadlessError, HeadlessRun, RunNotification, capabilities};
pub use starling_rpc::{Connection, Incoming, RequestError};
