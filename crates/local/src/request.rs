//! Requests to the local model, and the channel for their answers.

use std::path::PathBuf;

use tokio::sync::mpsc::UnboundedSender;

use super::constraint::OutputConstraint;
use super::vocabulary::Vocabulary;
use starling_core::{CallEvent, ChatReply, ChatRequest, ModelError, Tokens};

/// A request and the channel for its answer. The channel is closed when the caller drops the call.
pub struct WorkerJob {
    pub request: ChatRequest,
    pub events: UnboundedSender<CallEvent>,
}

/// The model file and the options with which the worker loads and runs the model.
#[derive(Debug, Clone)]
pub struct ModelSource {
    pub name: String,
    pub path: PathBuf,
    /// The context window in tokens.
    pub window: usize,
    /// See [`super::LocalOptions::guesses`].
    pub guesses: bool,
    /// See [`super::LocalOptions::constraints`].
    pub constraints: bool,
}

/// A request with an encoded prompt that fits in the context window.
pub struct EncodedRequest {
    pub job: WorkerJob,
    pub prompt: Vec<u32>,
    /// Maximum number of tokens in the answer.
    pub limit: usize,
    /// The output constraint of the answer.
    pub constraint: Option<OutputConstraint>,
}

impl EncodedRequest {
    /// Encodes the prompt of a request. If that fails, sends the error to the caller and returns
    /// `None`.
    pub fn new(source: &ModelSource, vocabulary: &Vocabulary, job: WorkerJob) -> Option<Self> {
        match prompt(source, vocabulary, &job.request) {
            Ok(prompt) => {
                let room = source.window - prompt.len();
                let limit = usize::try_from(job.request.max_output.0).unwrap_or(room);
                let limit = limit.clamp(1, room);
                Some(Self {
                    job,
                    prompt,
                    limit,
                    constraint: None,
                })
            }
            Err(error) => {
                job.end(Err(error));
                None
            }
        }
    }

    /// Returns the maximum number of tokens in prompt and answer together.
    pub fn longest(&self) -> usize {
        self.prompt.len() + self.limit
    }
}

fn prompt(
    source: &ModelSource,
    vocabulary: &Vocabulary,
    request: &ChatRequest,
) -> Result<Vec<u32>, ModelError> {
    let failed = |error: candle_core::Error| source.failed(&error);
    if request.messages.is_empty() && request.following.is_empty() {
        let prompt = vocabulary.plain(&request.beginning).map_err(failed)?;
        source.check(&prompt)?;
        return Ok(prompt);
    }
    if request.following.is_empty() {
        let mut prompt = vocabulary
            .prompt(&request.messages, &request.tools)
            .map_err(failed)?;
        source.check(&prompt)?;
        prompt.extend(vocabulary.plain(&request.beginning).map_err(failed)?);
        source.check(&prompt)?;
        return Ok(prompt);
    }
    let texts: Vec<&str> = request.messages.iter().map(|one| one.text()).collect();
    let beside = (!texts.is_empty()).then(|| texts.join("\n"));
    let (beginning, following) = (&request.beginning, &request.following);
    let hole = vocabulary.hole(beside.as_deref(), beginning, following);
    let prompt = hole.map_err(failed)?.ok_or_else(|| {
        source.unavailable(
            "cannot fill a gap in a text",
            &"its file has no tokens for this",
        )
    })?;
    source.check(&prompt)?;
    Ok(prompt)
}

impl WorkerJob {
    /// Returns whether the caller no longer waits for the answer.
    pub fn is_abandoned(&self) -> bool {
        self.events.is_closed()
    }

    /// Tells the caller that the request no longer waits in the queue.
    pub fn started(&self) {
        self.send(CallEvent::Started);
    }

    /// Sends a piece of the answer.
    pub fn delta(&self, text: &str) {
        if !text.is_empty() {
            self.send(CallEvent::Delta(text.to_owned()));
        }
    }

    /// Sends the complete answer or an error.
    pub fn end(&self, reply: Result<ChatReply, ModelError>) {
        self.send(CallEvent::Done(Box::new(reply)));
    }

    fn send(&self, event: CallEvent) {
        // The caller may have dropped the call, which is not an error.
        let _ = self.events.send(event);
    }
}

impl ModelSource {
    /// Returns an error if the prompt is empty or leaves no room for an answer.
    fn check(&self, prompt: &[u32]) -> Result<(), ModelError> {
        if prompt.is_empty() {
            return Err(self.unavailable(
                "received an empty prompt",
                &"the messages and the chat template are empty",
            ));
        }
        if prompt.len() < self.window {
            return Ok(());
        }
        Err(ModelError::TooLong {
            model: self.name.clone(),
            prompt: Tokens(prompt.len() as u64),
            window: Tokens(self.window as u64),
            message: String::new(),
        })
    }

    /// Returns the error for a failure to load or run the network.
    pub fn failed(&self, error: &candle_core::Error) -> ModelError {
        self.unavailable("failed", error)
    }

    /// Returns the error for a request that this model cannot answer.
    pub fn refused(&self, why: &candle_core::Error) -> ModelError {
        ModelError::Refused {
            model: self.name.clone(),
            status: 400,
            message: why.to_string(),
        }
    }

    /// Returns the error for a model that cannot be used. `what` completes the sentence "the local
    /// model".
    pub fn unavailable(&self, what: &str, error: &dyn std::fmt::Display) -> ModelError {
        let path = self.path.display();
        ModelError::Unavailable {
            model: self.name.clone(),
            message: format!("the local model in {path} {what}: {error}"),
        }
    }
}
