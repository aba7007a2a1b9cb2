//! JSON-RPC over a pipe, as a client of the LSP speaks it: frames, requests with deadlines, and what
//! the server sends by itself, in order.

mod connection;
pub mod frames;
pub mod wire;

pub use connection::{Answer, Connection, Incoming, Reply, RequestError};
