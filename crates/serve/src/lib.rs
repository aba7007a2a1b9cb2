//! Serves one model to other programs, as an OpenAI-compatible HTTP server.
//!
//! The model is any [`ChatModel`]; requests wait in its queue. A client that disconnects ends its
//! request.

mod access;
mod call;
mod chat;
mod completion;
mod error;
mod metrics;
mod native;
mod parameters;
mod reply;
mod routes;
mod server;
mod stream;
mod tool_calls;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use server::{Phase, Server};
use starling_core::ChatModel;

/// How long the requests that are being answered may take after the server is asked to end.
pub const GRACE: Duration = Duration::from_secs(10);
/// How long clients may take to read the end of their answers.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// Options of [`serve`].
pub struct ServeOptions {
    /// The names of the model in requests. The first one is in the list of models.
    pub names: Vec<String>,
    /// The key that clients must send, if there is one.
    pub key: Option<String>,
    /// The key for [`starling_core::CALL_PATH`].
    pub call_key: String,
    /// Maximum number of requests that wait for the model.
    pub queue: usize,
    /// Whether requests for hosts other than this machine are answered.
    pub remote: bool,
    /// See [`GRACE`].
    pub grace: Duration,
    /// Returns the number of bytes of memory that the process uses, where the system tells it.
    pub resident: fn() -> Option<u64>,
}

/// Answers requests until `stop` completes: then no new request is accepted, and those that are
/// being answered are ended after the grace period.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    listener: TcpListener,
    model: Arc<dyn ChatModel>,
    options: ServeOptions,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let grace = options.grace;
    let (phase, mut seen) = watch::channel(Phase::Open);
    let app = routes::router(Arc::new(Server::new(model, options, phase.subscribe())));
    let ending = async move {
        stop.await;
        phase.send_replace(Phase::Draining);
        tokio::spawn(async move {
            tokio::time::sleep(grace).await;
            phase.send_replace(Phase::Over);
        });
    };
    let over = async move {
        // An error means that the server has ended already.
        let _ = seen.wait_for(|phase| *phase == Phase::Over).await;
        tokio::time::sleep(LAST_WRITES).await;
    };
    tokio::select! {
        ended = axum::serve(listener, app).with_graceful_shutdown(ending).into_future() => ended,
        () = over => Ok(()),
    }
}
