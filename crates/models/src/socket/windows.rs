//! Named pipes of Windows, in place of socket files. Their paths begin with `\\.\pipe\`.

use std::io;
use std::path::Path;

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};

// The function of other systems waits.
#[allow(clippy::unused_async)]
pub(super) async fn connect(path: &Path) -> io::Result<NamedPipeClient> {
    ClientOptions::new().open(path)
}
