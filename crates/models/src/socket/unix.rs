//! Socket files on Linux and macOS.

use std::io;
use std::path::Path;

use tokio::net::UnixStream;

pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path).await
}
