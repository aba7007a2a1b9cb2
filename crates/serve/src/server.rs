//! The state that all requests of one server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;

use crate::ServeOptions;
use crate::metrics::Metrics;
use starling_core::ChatModel;

/// The phase of the server's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Open,
    /// Running requests continue; new requests are refused.
    Draining,
    /// Running requests end with an error.
    Over,
}

/// A model, the options of its server, and its metrics.
pub struct Server {
    pub model: Arc<dyn ChatModel>,
    pub options: ServeOptions,
    pub phase: watch::Receiver<Phase>,
    pub metrics: Arc<Metrics>,
    started: u64,
    answers: AtomicU64,
}

impl Server {
    pub fn new(
        model: Arc<dyn ChatModel>,
        options: ServeOptions,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        Self {
            model,
            options,
            phase,
            metrics: Arc::default(),
            started: now(),
            answers: AtomicU64::new(0),
        }
    }

    /// Returns the name of the model in replies.
    pub fn name(&self) -> &str {
        self.options.names.first().map_or("local", String::as_str)
    }

    /// Returns the time at which the server started, in seconds since 1970.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Returns a unique id for an answer.
    pub fn answer_id(&self, prefix: &str) -> String {
        let number = self.answers.fetch_add(1, Ordering::Relaxed);
        format!("{prefix}-{:x}-{number}", self.started)
    }
}

/// Returns the current time in seconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
