//! The LSP surface of Starling: documents, commands, events. `docs/protocol.md` describes it.

mod actions;
mod asks;
mod backend;
mod bridge;
mod commands;
mod documents;
mod editor;
mod exit;
mod explanation;
mod follow;
mod initialize;
mod lenses;
mod mentions;
mod outgoing;
mod paths;
mod pending_reviews;
mod preview;
pub mod protocol;
mod refresh;
mod remedy;
mod restore;
mod restored_run;
mod review_actions;
mod run_view;
mod runs;
#[cfg(test)]
mod samples;
mod services;
mod settings;
mod symbol_markers;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod transport;
mod window;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower_lsp::LspService;

pub use documents::splice;
pub use paths::{file_of, path_of};
pub use restore::{LockedRun, WaitingReview, WaitingRun, locked_runs, waiting_runs};
pub use services::{
    Fetcher, OpenRequest, OpenedRun, Opener, RestorePolicy, RunControl, RunDefaults, Services,
    Starter, swarm,
};

/// How a client took its leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// `shutdown` came before the end.
    AfterShutdown,
    Abrupt,
}

/// Serves one client until it sends `exit` or closes its side.
pub async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite,
    services: Services,
) -> ExitKind {
    let documents = documents::DocumentStore::open(services.workers.clone());
    let lost = {
        let documents = documents.clone();
        move || documents.send(documents::DocumentMessage::MessageLost)
    };
    let (service, socket) = LspService::build(|client| {
        let context = refresh::ClientContext {
            refresh: refresh::RefreshNotifier::default(),
            plugin: outgoing::Plugin::new(client.clone()),
            window: Arc::new(window::ClientWindow::new(
                client.clone(),
                services.trajectories.join("shown"),
            )),
        };
        let asks = asks::Asks::new(services.clone(), documents.clone(), context.clone());
        let mentions = mentions::MentionCompleter::new(services.clone(), documents.clone());
        let runs = runs::Runs::new(services.clone(), client.clone(), documents.clone(), context);
        let compose = backend::TaskComposer {
            mentions,
            models: services.models,
        };
        backend::Backend::new(client, documents, (runs, asks), compose)
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
    let orphaned = service.inner().orphaned();
    let (exit, leave) = (CancellationToken::new(), CancellationToken::new());
    let gate = exit::ExitGate {
        inner: service,
        exit: exit.clone(),
    };
    tokio::select! {
        () = transport::serve(input, output, socket, gate, leave.clone(), lost) => {}
        () = exit.cancelled() => {}
        () = orphaned.cancelled() => tracing::warn!("the client's process is gone"),
    }
    asks.shutdown();
    runs.shutdown().await;
    match leave.is_cancelled() {
        true => ExitKind::AfterShutdown,
        false => ExitKind::Abrupt,
    }
}
