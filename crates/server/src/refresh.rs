//! Refreshes the client after changes: the client requests its lenses again, and the status line is
//! updated. Changes in quick succession lead to one refresh.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tower_lsp::lsp_types::request::CodeLensRefresh;

use super::asks::Asks;
use super::front_end::LspFrontEnd;
use super::outgoing::send_request;
use super::protocol::StatusNotification;
use super::run_snapshots::all_review_actions;
use super::session::RunSession;

/// Minimum time between two refreshes.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the client may take to answer a refresh.
const DEADLINE: Duration = Duration::from_secs(5);

/// Refreshes the client after changes of runs, questions or open documents. Returns when the document
/// store is closed.
pub async fn refresh_client(
    front_end: Arc<LspFrontEnd>,
    mut texts: watch::Receiver<u64>,
    session: RunSession,
    asks: Asks,
) {
    let notifier = session.refresh();
    let settings = front_end.settings();
    let (mut status, mut actions) = (Default::default(), Vec::new());
    loop {
        tokio::select! {
            () = notifier.notified() => {}
            changed = texts.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
        session.compare().await;
        let now = session.status(asks.going());
        if now != status {
            status = now.clone();
            front_end.plugin().notify::<StatusNotification>(now).await;
        }
        let now = all_review_actions(&session, settings.has_plugin());
        if now != actions {
            actions = now;
            if settings.lens_refresh {
                let refresh = send_request::<CodeLensRefresh>(front_end.client(), (), DEADLINE);
                if let Err(error) = refresh.await {
                    tracing::info!(%error, "the client rejected a refresh of lenses");
                }
            }
        }
        sleep(PAUSE).await;
    }
}
