//! The LSP surface of Starling: documents, commands, events. `docs/protocol.md` describes it.

mod approvals;
mod backend;
mod commands;
mod documents;
mod editor;
mod exit;
mod follow;
mod paths;
pub mod protocol;
mod runs;
mod services;
mod settings;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower_lsp::{LspService, Server};

pub use documents::splice;
pub use paths::{file_of, path_of};
pub use services::{Defaults, Opened, Opener, Opening, Run, Services, Starter, swarm};

/// How a client took its leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// `shutdown` came before the end.
    Taken,
    Abrupt,
}

/// Serves one client until it sends `exit` or closes its side.
pub async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite,
    services: Services,
) -> Leave {
    let desk = documents::Desk::open();
    let (service, socket) = LspService::build(|client| {
        let runs = runs::Runs::new(services, client.clone(), desk.clone());
        backend::Backend::new(client, desk, runs)
    })
    .custom_method(
        "window/workDoneProgress/cancel",
        backend::Backend::cancel_progress,
    )
    .finish();
    let runs = service.inner().runs();
    let (exit, leave) = (CancellationToken::new(), CancellationToken::new());
    let gate = exit::ExitGate {
        inner: service,
        exit: exit.clone(),
        leave: leave.clone(),
    };
    tokio::select! {
        () = Server::new(input, output, socket).serve(gate) => {}
        () = exit.cancelled() => {}
    }
    runs.farewell().await;
    match leave.is_cancelled() {
        true => Leave::Taken,
        false => Leave::Abrupt,
    }
}
