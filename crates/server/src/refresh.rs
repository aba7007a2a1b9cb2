//! Gathers changes: lenses are asked for again, and the status line is told, once for many events.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use tower_lsp::Client;
use tower_lsp::lsp_types::request::CodeLensRefresh;

use super::asks::Asks;
use super::documents::DocumentStore;
use super::outgoing::{Plugin, send_request};
use super::protocol::StatusNotification;
use super::runs::Runs;
use super::settings::ClientSettings;
use super::window::ClientWindow;

/// The least time between two refreshes.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the client has to take one.
const DEADLINE: Duration = Duration::from_secs(5);

/// What runs and questions share.
#[derive(Debug, Clone)]
pub struct ClientContext {
    pub refresh: RefreshNotifier,
    pub window: Arc<ClientWindow>,
    pub plugin: Plugin,
}

/// Told of every change; never waits.
#[derive(Debug, Clone, Default)]
pub struct RefreshNotifier {
    changed: Arc<Notify>,
}

impl RefreshNotifier {
    pub fn notify(&self) {
        self.changed.notify_one();
    }

    /// Tells the client of changes, for as long as it is polled.
    pub async fn carry(
        self,
        client: Client,
        documents: DocumentStore,
        runs: Runs,
        asks: Asks,
        negotiated: ClientSettings,
    ) {
        let plugin = runs.plugin();
        let mut texts = documents.changes();
        let (mut status, mut review_actions) = (Default::default(), Vec::new());
        loop {
            tokio::select! {
                () = self.changed.notified() => {}
                changed = texts.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
            runs.compare().await;
            let now = runs.status(asks.going());
            if now != status {
                status = now.clone();
                plugin.notify::<StatusNotification>(now).await;
            }
            let now = runs.all_review_actions();
            if now != review_actions {
                review_actions = now;
                if negotiated.lens_refresh {
                    let refresh = send_request::<CodeLensRefresh>(&client, (), DEADLINE);
                    if let Err(error) = refresh.await {
                        tracing::info!(%error, "the client does not take a refresh of lenses");
                    }
                }
            }
            sleep(PAUSE).await;
        }
    }
}
