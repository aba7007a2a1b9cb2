//! Services that the caller provides to a session.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use tokio::runtime::Handle;

use super::messages::{LimitsPatch, ModelsReply};
use starling_core::{Approval, AskIntent, Driver, LanguageService, Limits, TestRunner};
use starling_index::Index;
use starling_swarm::{
    Event, EventLog, ProposalId, RoleModels, RunHandle, RunId, RunServices, Task, UndoError,
};
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::PathPolicy;

/// The request to prepare a run.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRequest {
    pub root: PathBuf,
    /// The texts of open buffers, which replace the texts on disk.
    pub overlay: Vec<(FilePath, Arc<str>)>,
    /// The test command of the request.
    pub test: Option<String>,
    /// The limits of the request.
    pub limits: LimitsPatch,
    /// The model of the request.
    pub model: Option<String>,
}

/// The services of a run that do not come from the editor.
#[derive(Clone)]
pub struct OpenedRun {
    pub defaults: RunDefaults,
    pub models: RoleModels,
    pub tests: Arc<dyn TestRunner>,
    pub language: Arc<dyn LanguageService>,
    /// The index of the project, open buffers included.
    pub index: Arc<Index>,
}

/// The settings of runs whose request does not override them.
#[derive(Debug, Clone, PartialEq)]
pub struct RunDefaults {
    pub driver: Driver,
    pub approval: Approval,
    pub ask_intent: AskIntent,
    pub limits: Limits,
    /// How long one test run may take.
    pub test_deadline: Duration,
    /// Whether the examples of a task are tried.
    pub try_examples: bool,
}

/// Prepares a run.
pub type Opener =
    Arc<dyn Fn(OpenRequest) -> BoxFuture<'static, anyhow::Result<OpenedRun>> + Send + Sync>;

/// Builds the index of a directory with its open buffers. Blocks.
pub type Indexer =
    Arc<dyn Fn(PathBuf, Vec<(FilePath, Arc<str>)>) -> anyhow::Result<Arc<Index>> + Send + Sync>;

/// Lists the models that runs in a directory can use. Reads the configuration.
pub type ModelList = Arc<dyn Fn(&Path) -> anyhow::Result<ModelsReply> + Send + Sync>;

/// Returns messages about project settings that are ignored. Reads the disk.
pub type IgnoredSettings = Arc<dyn Fn(&Path) -> Vec<String> + Send + Sync>;

/// Returns the path policy of a directory, with the files that its settings let agents change. Reads
/// the disk.
pub type PolicySource = Arc<dyn Fn(&Path) -> PathPolicy + Send + Sync>;

/// Downloads the weights of a known model. Blocks; reports the received and the total number of
/// bytes.
pub type Fetcher = Arc<dyn Fn(&str, &mut dyn FnMut(u64, u64)) -> anyhow::Result<()> + Send + Sync>;

/// Starts a run: [`starling_swarm::start`], or a scripted one.
pub type RunStarter = Arc<dyn Fn(RunId, Task, RunServices) -> Arc<dyn RunControl> + Send + Sync>;

/// A run that a session controls.
#[async_trait]
pub trait RunControl: Send + Sync {
    fn log(&self) -> EventLog;
    fn cancel(&self);
    fn steer(&self, to: Option<SymbolPath>, text: String);
    /// Returns why no agent can receive messages about this symbol; `None` if one can.
    fn why_nobody_owns(&self, symbol: &SymbolPath) -> Option<String>;
    async fn undo(&self, proposal: Option<ProposalId>) -> Result<Vec<ProposalId>, UndoError>;
    /// For an ended run of an earlier server: finds the changes that the server sent and whose result
    /// it did not record, and that are in the user's texts now. Returns the new events.
    async fn note_arrived(&self) -> Vec<Event> {
        Vec::new()
    }
}

#[async_trait]
impl RunControl for RunHandle {
    fn log(&self) -> EventLog {
        self.log.clone()
    }

    fn cancel(&self) {
        RunHandle::cancel(self);
    }

    fn steer(&self, to: Option<SymbolPath>, text: String) {
        RunHandle::steer(self, to, text);
    }

    fn why_nobody_owns(&self, symbol: &SymbolPath) -> Option<String> {
        RunHandle::why_nobody_owns(self, symbol)
    }

    async fn undo(&self, proposal: Option<ProposalId>) -> Result<Vec<ProposalId>, UndoError> {
        RunHandle::undo(self, proposal).await
    }
}

/// Which runs of earlier servers a session offers again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestorePolicy {
    All,
    Nothing,
    Only(RunId),
}

/// The services of a session besides its front end: functions that open and start runs, download
/// weights and build indexes, and the directory of trajectories.
#[derive(Clone)]
pub struct Services {
    pub open: Opener,
    pub start: RunStarter,
    pub fetch: Fetcher,
    pub index: Indexer,
    pub models: ModelList,
    /// The directory of trajectories, `<run id>.jsonl`.
    pub trajectories: PathBuf,
    pub restore: RestorePolicy,
    /// Returns messages about project settings that are ignored.
    pub ignored: IgnoredSettings,
    /// Returns the path policy of a directory.
    pub policy: PolicySource,
    /// The Tokio runtime for runs and questions. The client is served by another runtime.
    pub workers: Handle,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("trajectories", &self.trajectories)
            .finish_non_exhaustive()
    }
}

/// Returns the swarm as a [`RunStarter`].
pub fn swarm() -> RunStarter {
    Arc::new(|id, task, outside| Arc::new(starling_swarm::start(id, task, outside)))
}
