//! Serves one model to other programs, as an OpenAI-compatible HTTP server.
//!
//! The model is any [`ChatModel`]. Requests wait in a queue of limited length. If a client
//! disconnects, its request is cancelled.

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

/// Time limit for running requests after shutdown begins.
pub const GRACE: Duration = Duration::from_secs(10);
/// Time limit for clients to read the end of their answers after running requests were ended.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// Options of [`serve`].
pub struct ServeOptions {
    /// The names under which clients may request the model. The first name is listed in
    /// `/v1/models`.
    pub names: Vec<String>,
    /// The API key that clients must send, or `None` if no key is required.
    pub key: Option<String>,
    /// The API key for [`starling_core::CALL_PATH`].
    pub call_key: String,
    /// Maximum number of requests that wait for the model.
    pub queue: usize,
    /// Whether requests are accepted whose `Host` header names another machine.
    pub remote: bool,
    /// Time limit for running requests after shutdown begins, usually [`GRACE`].
    pub grace: Duration,
    /// Returns the resident memory of the process in bytes, or `None` if the system does not report
    /// it.
    pub resident: fn() -> Option<u64>,
}

/// Serves requests until `stop` completes. Then refuses new requests, and ends running requests
/// after the grace period.
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
        // An error means that the server has already shut down.
        let _ = seen.wait_for(|phase| *phase == Phase::Over).await;
        tokio::time::sleep(LAST_WRITES).await;
    };
    tokio::select! {
        ended = axum::serve(listener, app).with_graceful_shutdown(ending).into_future() => ended,
        () = over => Ok(()),
    }
}
