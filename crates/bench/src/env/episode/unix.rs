//! The socket of an episode on Linux and macOS: a file in its directory.

use std::io;
use std::path::{Path, PathBuf};

use tokio::net::{UnixListener, UnixStream};

/// A connection between the run and the episode.
pub(super) type Stream = UnixStream;

/// A Unix socket on which the episode accepts the connections of its run.
pub(super) struct Listener {
    listener: UnixListener,
    pub path: PathBuf,
}

impl Listener {
    pub(super) fn bind(folder: &Path) -> io::Result<Self> {
        let path = folder.join("model");
        let listener = UnixListener::bind(&path)?;
        Ok(Listener { listener, path })
    }

    pub(super) async fn accept(&mut self) -> io::Result<Stream> {
        Ok(self.listener.accept().await?.0)
    }
}
