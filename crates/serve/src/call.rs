//! A model call for one request, which waits in the queue until the model begins.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::ApiError;
use crate::metrics::Metrics;
use crate::server::{Phase, Server};
use starling_core::{CallEvent, ChatRequest, ChatWatch, ModelNotice, Usage};

/// A call of the model. Dropping the value cancels the call.
pub struct Call {
    events: UnboundedReceiver<CallEvent>,
    phase: watch::Receiver<Phase>,
    task: JoinHandle<()>,
    metrics: Arc<Metrics>,
    accepted: Instant,
    began: bool,
    end: Option<Option<Usage>>,
}

struct Forward(UnboundedSender<CallEvent>);

impl Forward {
    fn send(&self, event: CallEvent) {
        // The client may have disconnected, which is not an error.
        let _ = self.0.send(event);
    }
}

impl ChatWatch for Forward {
    fn started(&self) {
        self.send(CallEvent::Started);
    }

    fn delta(&self, text: &str) {
        self.send(CallEvent::Delta(text.to_owned()));
    }

    fn notice(&self, notice: ModelNotice) {
        self.send(CallEvent::Notice(notice));
    }
}

impl Call {
    /// Sends a request to the model.
    ///
    /// # Errors
    /// The queue is full, or the server is shutting down.
    pub fn start(server: &Server, request: ChatRequest) -> Result<Self, ApiError> {
        if *server.phase.borrow() != Phase::Open {
            return Err(ApiError::ending());
        }
        let limit = server.options.queue;
        if !server.metrics.enqueue(limit) {
            return Err(ApiError::queue_full(limit));
        }
        let (sender, events) = mpsc::unbounded_channel();
        let model = server.model.clone();
        let task = tokio::spawn(async move {
            let watch = Forward(sender);
            let reply = model.chat(&request, &watch).await;
            watch.send(CallEvent::Done(Box::new(reply)));
        });
        Ok(Self {
            events,
            phase: server.phase.clone(),
            task,
            metrics: server.metrics.clone(),
            accepted: Instant::now(),
            began: false,
            end: None,
        })
    }

    /// Waits until the model begins. An error before that can still be sent as the response's
    /// status.
    ///
    /// # Errors
    /// The model refuses the request, or the server shuts down.
    pub async fn first(&mut self) -> Result<CallEvent, ApiError> {
        loop {
            match self.next().await? {
                CallEvent::Notice(_) => {}
                CallEvent::Done(reply) => {
                    return match *reply {
                        Ok(_) => Ok(CallEvent::Done(reply)),
                        Err(error) => Err(error.into()),
                    };
                }
                event => return Ok(event),
            }
        }
    }

    /// Returns the next event.
    ///
    /// # Errors
    /// The server shuts down, or the model panicked.
    pub async fn next(&mut self) -> Result<CallEvent, ApiError> {
        let event = tokio::select! {
            biased;
            event = self.events.recv() => event,
            _ = self.phase.wait_for(|phase| *phase == Phase::Over) => return Err(ApiError::ending()),
        };
        let event = event.ok_or_else(|| {
            let status = axum::http::StatusCode::SERVICE_UNAVAILABLE;
            ApiError::new(status, "the model stopped unexpectedly: see the server log")
        })?;
        match &event {
            CallEvent::Started | CallEvent::Delta(_) if !self.began => {
                self.began = true;
                self.metrics.begin(self.accepted.elapsed());
            }
            CallEvent::Done(reply) => {
                self.end = Some(reply.as_ref().as_ref().ok().map(|reply| reply.usage));
            }
            CallEvent::Started | CallEvent::Delta(_) | CallEvent::Notice(_) => {}
        }
        Ok(event)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.task.abort();
        if self.end.is_none() {
            self.metrics.cancel();
        }
        self.metrics.end(self.began, self.end.flatten());
    }
}
