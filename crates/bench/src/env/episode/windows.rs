//! The socket of an episode on Windows: a named pipe.

use std::io;
use std::path::{Path, PathBuf};

use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};

/// A connection between the run and the episode.
pub(super) type Stream = NamedPipeServer;

/// A named pipe on which the episode accepts the connections of its run.
pub(super) struct Listener {
    /// The pipe that waits for the next client.
    next: NamedPipeServer,
    pub path: PathBuf,
}

impl Listener {
    /// Creates a pipe whose name is made of the name of a directory, which is unique.
    pub(super) fn bind(folder: &Path) -> io::Result<Self> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let path = PathBuf::from(format!(r"\\.\pipe\starling-{name}"));
        let mut options = ServerOptions::new();
        let next = options.first_pipe_instance(true).create(&path)?;
        Ok(Listener { next, path })
    }

    pub(super) async fn accept(&mut self) -> io::Result<Stream> {
        self.next.connect().await?;
        let following = ServerOptions::new().create(&self.path)?;
        Ok(std::mem::replace(&mut self.next, following))
    }
}
