//! The pipes to a server.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::process::Process;

/// The streams of a connection to a server.
pub(super) struct Link {
    pub input: Box<dyn AsyncRead + Send + Unpin>,
    pub output: Box<dyn AsyncWrite + Send + Unpin>,
    /// The server process, killed when the link is dropped; `None` if the server is not a process.
    pub process: Option<Process>,
}

/// A function that starts a server.
pub(super) type Launch = Arc<dyn Fn() -> io::Result<Link> + Send + Sync>;
