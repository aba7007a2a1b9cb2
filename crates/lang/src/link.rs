//! The pipes to a server.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use super::process::ServerProcess;

/// The streams of a connection to a server.
pub(super) struct ServerLink {
    pub input: Box<dyn AsyncRead + Send + Unpin>,
    pub output: Box<dyn AsyncWrite + Send + Unpin>,
    /// The server process, killed when the link is dropped; `None` if the server is not a process.
    pub process: Option<ServerProcess>,
}

/// A function that starts a server.
pub(super) type ServerLauncher = Arc<dyn Fn() -> io::Result<ServerLink> + Send + Sync>;
