//! Runs a model inside this process: GGUF weights on the CPU, or on a GPU if there is one.
//!
//! One thread owns the network. [`LocalModel`] sends requests to this thread over a bounded queue. The thread
//! answers several requests at once. Dropping a call cancels the request within one step.

mod active;
mod answer;
mod attention;
mod constraint;
pub mod device;
mod dimensions;
mod feed_forward;
mod file;
mod gemv;
mod generate;
mod gpu;
mod kernels;
mod lookup;
mod mapped;
mod network;
mod request;
mod rotary;
mod sampler;
mod scheduler;
mod sequences;
mod template;
pub mod threads;
pub mod throughput;
mod tokenizer;
mod vocabulary;
mod weight;
mod worker;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc::{self, Sender};

use dimensions::Dimensions;
use file::ModelFile;
use request::{ModelSource, WorkerJob};
use starling_core::{
    CallEvent, ChatModel, ChatReply, ChatRequest, ChatWatch, ModelError, ModelProfile, Price,
    Tokens, ToolCalling,
};

/// Maximum number of queued requests; further callers wait until the queue has room.
const QUEUE: usize = 32;
/// Maximum time without a sign of life: other requests may be first, and the weights must be
/// loaded.
const PATIENCE: Duration = Duration::from_secs(900);
/// Default context window, even if the network supports more, because longer prompts take minutes
/// on a CPU.
const WINDOW: usize = 16_384;
/// Default maximum length of a single answer in tokens.
const LONGEST_ANSWER: u64 = 4096;

/// Options of [`LocalModel::open`].
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// The model name in replies and errors.
    pub name: String,
    /// Path of a GGUF file.
    pub path: PathBuf,
    /// Maximum length of prompt and answer together, limited to the network's training length.
    /// Memory is allocated as needed.
    pub context_window: Option<Tokens>,
    /// Whether tokens that occurred before in the same order are guessed, and verified several at a
    /// time. This is faster and gives the same answer; it is off only to be compared with.
    pub guesses: bool,
    /// Whether answers with tools or a required format are restricted to that format. Disabled only in
    /// benchmarks.
    pub constraints: bool,
}

/// A chat model that runs inside this process.
pub struct LocalModel {
    profile: ModelProfile,
    fills: bool,
    jobs: Sender<WorkerJob>,
}

impl LocalModel {
    /// Opens a model file: reads its metadata and starts an idle thread. The first request loads
    /// the weights.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] if the file is missing, damaged or not supported.
    pub fn open(options: LocalOptions) -> Result<Self, ModelError> {
        let mut source = ModelSource {
            name: options.name,
            path: options.path,
            window: 0,
            guesses: options.guesses,
            constraints: options.constraints,
        };
        let read =
            |file: ModelFile| Ok((Dimensions::read(&file)?.window, vocabulary::fills(&file)));
        let (trained, fills) = ModelFile::open(&source.path)
            .and_then(read)
            .map_err(|error| source.unavailable("cannot be opened", &error))?;
        let wanted = options.context_window.map_or(WINDOW, |window| {
            usize::try_from(window.0).unwrap_or(usize::MAX)
        });
        source.window = wanted.min(trained).max(1);
        let window = Tokens(source.window as u64);
        let profile = ModelProfile {
            name: source.name.clone(),
            context_window: window,
            max_output: Tokens(LONGEST_ANSWER.min(window.0 / 2).max(1)),
            tool_calling: ToolCalling::Text,
            replayed: false,
            price: Some(Price::FREE),
        };
        let (jobs, queue) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new().name("local-model".to_owned());
        let name = source.clone();
        thread
            .spawn(move || worker::run(&source, queue))
            .map_err(|error| name.unavailable("could not start its thread", &error))?;
        Ok(Self {
            profile,
            fills,
            jobs,
        })
    }

    fn gone(&self) -> ModelError {
        ModelError::Unavailable {
            model: self.profile.name.clone(),
            message:
                "the thread of the local model has ended unexpectedly: restart, and report the log"
                    .to_owned(),
        }
    }
}

#[async_trait]
impl ChatModel for LocalModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn fills(&self) -> bool {
        self.fills
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let (events, mut answer) = mpsc::unbounded_channel();
        let job = WorkerJob {
            request: request.clone(),
            events,
        };
        let late = |_| ModelError::Timeout {
            model: self.profile.name.clone(),
            after: PATIENCE,
        };
        let queued = tokio::time::timeout(PATIENCE, self.jobs.send(job))
            .await
            .map_err(late)?;
        queued.map_err(|_| self.gone())?;
        loop {
            let event = tokio::time::timeout(PATIENCE, answer.recv())
                .await
                .map_err(late)?;
            match event.ok_or_else(|| self.gone())? {
                CallEvent::Started => watch.started(),
                CallEvent::Notice(notice) => watch.notice(notice),
                CallEvent::Delta(text) => watch.delta(&text),
                CallEvent::Done(reply) => return *reply,
            }
        }
    }
}
