//! Gathers changes: lenses are asked for again, and the status line is told, once for many events.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;
use tower_lsp::Client;
use tower_lsp::lsp_types::request::CodeLensRefresh;

use super::asks::Asks;
use super::documents::Desk;
use super::outgoing::{Plugin, ask};
use super::protocol::StatusNotification;
use super::runs::Runs;
use super::settings::Settings;
use super::windows::Windows;

/// The least time between two refreshes.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the client has to take one.
const DEADLINE: Duration = Duration::from_secs(5);

/// What runs and questions share.
#[derive(Debug, Clone)]
pub struct Around {
    pub pulse: Pulse,
    pub windows: Arc<Windows>,
    pub plugin: Plugin,
}

/// Told of every change; never waits.
#[derive(Debug, Clone, Default)]
pub struct Pulse {
    changed: Arc<Notify>,
}

impl Pulse {
    pub fn beat(&self) {
        self.changed.notify_one();
    }

    /// Tells the client of changes, for as long as it is polled.
    pub async fn carry(self, client: Client, desk: Desk, runs: Runs, asks: Asks, agreed: Settings) {
        let plugin = runs.plugin();
        let mut texts = desk.changes();
        let (mut status, mut offers) = (Default::default(), Vec::new());
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
            let now = runs.all_offers();
            if now != offers {
                offers = now;
                if agreed.lens_refresh {
                    let refresh = ask::<CodeLensRefresh>(&client, (), DEADLINE);
                    if let Err(error) = refresh.await {
                        tracing::info!(%error, "the client does not take a refresh of lenses");
                    }
                }
            }
            sleep(PAUSE).await;
        }
    }
}
