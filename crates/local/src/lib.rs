//! A model inside the process: GGUF weights on the CPU, or on a GPU where there is one.
//!
//! One thread owns the network; [`LocalModel`] hands it requests over a bounded queue. A dropped
//! call ends within one token, or within one step of a long prompt.

mod answer;
mod attention;
mod file;
mod gemv;
mod kernels;
mod mapped;
mod network;
mod sampler;
mod sequences;
mod template;
pub mod threads;
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

use file::ModelFile;
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, ModelError, ModelProfile, Price, Tokens,
    ToolCalling,
};
use worker::{Source, WorkerEvent, WorkerJob};

/// Requests that may wait for the network; more callers wait to be let in.
const QUEUE: usize = 32;
/// The longest a caller waits without a sign of life: others go first, and weights must load.
const PATIENCE: Duration = Duration::from_secs(900);
/// The window by default, where networks allow more: longer prompts take minutes on a CPU.
const WINDOW: usize = 16_384;
/// The longest single answer by default.
const LONGEST_ANSWER: u64 = 4096;

/// What [`LocalModel::open`] needs.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// The name that replies and errors carry.
    pub name: String,
    /// A GGUF file.
    pub path: PathBuf,
    /// Prompt and answer together; at most what the network was trained for. Memory grows with what
    /// is used of it.
    pub context_window: Option<Tokens>,
}

/// A chat model that runs in this process.
pub struct LocalModel {
    profile: ModelProfile,
    fills: bool,
    jobs: Sender<WorkerJob>,
}

impl LocalModel {
    /// Opens a model file: reads its metadata and starts an idle thread. The weights are loaded
    /// by the first request.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] when the file is missing, damaged or of a kind that is not supported.
    pub fn open(options: LocalOptions) -> Result<Self, ModelError> {
        let mut source = Source {
            name: options.name,
            path: options.path,
            window: 0,
        };
        let read = |file: ModelFile| Ok((file.dimensions()?.window, vocabulary::fills(&file)));
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
            .map_err(|error| name.unavailable("got no thread", &error))?;
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
                WorkerEvent::Notice(notice) => watch.notice(notice),
                WorkerEvent::Delta(text) => watch.delta(&text),
                WorkerEvent::Done(reply) => return *reply,
            }
        }
    }
}
