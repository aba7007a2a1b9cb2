//! JSON-RPC over a pipe, for an LSP client: framing, requests with deadlines, and ordered delivery
//! of the server's own messages.

mod connection;
pub mod frames;
pub mod wire;

pub use connection::{Connection, Incoming, Reply, RequestError, ServerResponse};
