//! The LSP surface of Starling: documents, commands, events. `docs/protocol.md` describes it.

mod actions;
mod approvals;
mod asks;
mod backend;
mod board;
mod bridge;
mod commands;
mod documents;
mod editor;
mod exit;
mod follow;
mod initialize;
mod lenses;
mod marks;
mod mentions;
mod offers;
mod outgoing;
mod paths;
pub mod protocol;
mod pulse;
mod remedy;
mod restore;
mod revived;
mod runs;
#[cfg(test)]
mod samples;
mod services;
mod settings;
mod shown;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod transport;
mod why;
mod windows;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower_lsp::LspService;

pub use documents::splice;
pub use paths::{file_of, path_of};
pub use restore::{HeldRun, WaitingReview, WaitingRun, held, waiting};
pub use services::{
    Defaults, Fetcher, Opened, Opener, Opening, Restore, Run, Services, Starter, swarm,
};

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
    let desk = documents::Desk::open(services.workers.clone());
    let lost = {
        let desk = desk.clone();
        move || desk.post(documents::Post::MessageLost)
    };
    let (service, socket) = LspService::build(|client| {
        let around = pulse::Around {
            pulse: pulse::Pulse::default(),
            plugin: outgoing::Plugin::new(client.clone()),
            windows: Arc::new(windows::Windows::new(
                client.clone(),
                services.trajectories.join("shown"),
            )),
        };
        let asks = asks::Asks::new(services.clone(), desk.clone(), around.clone());
        let mentions = mentions::Mentions::new(services.clone(), desk.clone());
        let runs = runs::Runs::new(services.clone(), client.clone(), desk.clone(), around);
        let compose = backend::Compose {
            mentions,
            models: services.models,
        };
        backend::Backend::new(client, desk, (runs, asks), compose)
    })
    .custom_method(protocol::STATE, backend::Backend::state)
    .custom_method(protocol::EVENTS, backend::Backend::events)
    .custom_method(protocol::PROPOSAL, backend::Backend::proposal)
    .custom_method(protocol::MENTIONS, backend::Backend::mentions)
    .custom_method(protocol::MODELS, backend::Backend::models)
    .custom_method(
        "window/workDoneProgress/cancel",
        backend::Backend::cancel_progress,
    )
    .finish();
    let (runs, asks) = (service.inner().runs(), service.inner().asks());
    let (exit, leave) = (CancellationToken::new(), CancellationToken::new());
    let gate = exit::ExitGate {
        inner: service,
        exit: exit.clone(),
    };
    tokio::select! {
        () = transport::serve(input, output, socket, gate, leave.clone(), lost) => {}
        () = exit.cancelled() => {}
    }
    asks.farewell();
    runs.farewell().await;
    match leave.is_cancelled() {
        true => Leave::Taken,
        false => Leave::Abrupt,
    }
}
