//! The pipes to a server, whatever is at their other end.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::process::Process;

/// What a server is spoken to by.
pub(super) struct Link {
    pub input: Box<dyn AsyncRead + Send + Unpin>,
    pub output: Box<dyn AsyncWrite + Send + Unpin>,
    /// Ends with the link; `None` where the server is no process of its own.
    pub process: Option<Process>,
}

/// Starts a server.
pub(super) type Launch = Arc<dyn Fn() -> io::Result<Link> + Send + Sync>;
