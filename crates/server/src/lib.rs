//! The language server of Starling. `docs/protocol.md` describes its protocol; [`session`] is the
//! part without LSP types.

mod actions;
mod asks;
mod backend;
mod bridge;
mod client_context;
mod commands;
mod documents;
mod editor;
mod exit;
mod front_end;
mod initialize;
mod lenses;
mod lost_messages;
mod mentions;
mod outgoing;
mod paths;
mod progress;
mod proposed_file;
pub mod protocol;
mod refresh;
mod rename;
mod review_actions;
mod review_dialogs;
mod run_snapshots;
#[cfg(test)]
mod samples;
pub mod session;
mod settings;
mod spelling;
mod symbol_markers;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod text_history;
mod transport;
mod window;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tower_lsp::LspService;

pub use documents::splice;
pub use paths::{file_of, path_of};
pub use session::{
    Fetcher, KilledRun, LockedRun, OpenRequest, OpenedRun, Opener, RestorePolicy, RunControl,
    RunDefaults, RunStarter, Services, WaitingReview, WaitingRun, killed_runs, locked_runs, swarm,
    waiting_runs,
};

/// Whether a client disconnected properly or abruptly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// The client sent `shutdown` first.
    AfterShutdown,
    Abrupt,
}

/// Serves one client until it sends `exit` or closes its side.
pub async fn serve(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite,
    services: Services,
) -> ExitKind {
    serve_until(input, output, services, std::future::pending()).await
}

/// Like [`serve`]. `terminated` completes when the system asks the server to end.
pub async fn serve_until(
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite,
    services: Services,
    terminated: impl Future<Output = ()>,
) -> ExitKind {
    let documents = documents::DocumentStore::open(services.workers.clone());
    let (service, socket) = LspService::build(|client| {
        let context = client_context::ClientContext {
            refresh: session::RefreshNotifier::default(),
            plugin: outgoing::ClientPlugin::new(client.clone()),
            window: Arc::new(window::ClientWindow::new(
                client.clone(),
                services.trajectories.join("shown"),
            )),
        };
        backend::Backend::new(client, documents, services, context)
    })
    .custom_method(protocol::STATE, backend::Backend::state)
    .custom_method(protocol::EVENTS, backend::Backend::events)
    .custom_method(protocol::PROPOSAL, backend::Backend::proposal)
    .custom_method(protocol::MENTIONS, backend::Backend::mentions)
    .custom_method(protocol::MODELS, backend::Backend::models)
    .custom_method(lost_messages::LOST, backend::Backend::message_lost)
    .custom_method(
        "window/workDoneProgress/cancel",
        backend::Backend::cancel_progress,
    )
    .finish();
    let closing = service.inner().closing();
    let orphaned = service.inner().orphaned();
    let exit = CancellationToken::new();
    let departure = closing.departure();
    let terminated = async {
        terminated.await;
        tracing::warn!("the system asks the server to end");
        (departure.prepare)();
        departure.silent.cancelled().await;
    };
    let gate = exit::ExitGate {
        inner: service,
        exit: exit.clone(),
    };
    tokio::select! {
        () = transport::serve(input, output, socket, gate, &departure) => {}
        () = exit.cancelled() => {}
        () = orphaned.cancelled() => tracing::warn!("the client's process is gone"),
        () = terminated => {}
    }
    closing.shutdown().await;
    match departure.announced.is_cancelled() {
        true => ExitKind::AfterShutdown,
        false => ExitKind::Abrupt,
    }
}
