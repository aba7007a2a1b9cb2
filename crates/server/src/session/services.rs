//! The server's world, handed in by whoever starts it.

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
    EventLog, ProposalId, RoleModels, RunHandle, RunId, RunServices, Task, UndoError,
};
use starling_syntax::{FilePath, SymbolPath};

/// What a run is opened over.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRequest {
    pub root: PathBuf,
    /// The open buffers, which stand over the disk.
    pub overlay: Vec<(FilePath, Arc<str>)>,
    /// The test command of the request.
    pub test: Option<String>,
    /// The limits of the request.
    pub limits: LimitsPatch,
    /// The model of the request.
    pub model: Option<String>,
}

/// The parts of a run that do not come from the editor.
#[derive(Clone)]
pub struct OpenedRun {
    pub defaults: RunDefaults,
    pub models: RoleModels,
    pub tests: Arc<dyn TestRunner>,
    pub language: Arc<dyn LanguageService>,
    /// Of the workspace as it is, buffers included.
    pub index: Arc<Index>,
}

/// What a run is when its request does not say otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct RunDefaults {
    pub driver: Driver,
    pub approval: Approval,
    pub ask_intent: AskIntent,
    pub limits: Limits,
    /// How long one run of the tests may take.
    pub test_deadline: Duration,
}

/// Makes the parts of a run ready.
pub type Opener =
    Arc<dyn Fn(OpenRequest) -> BoxFuture<'static, anyhow::Result<OpenedRun>> + Send + Sync>;

/// Makes the index of a folder, buffers included; blocks.
pub type Indexer =
    Arc<dyn Fn(PathBuf, Vec<(FilePath, Arc<str>)>) -> anyhow::Result<Arc<Index>> + Send + Sync>;

/// Lists the models that runs in a folder can use; reads the configuration.
pub type ModelList = Arc<dyn Fn(&Path) -> anyhow::Result<ModelsReply> + Send + Sync>;

/// Looks at a project as it is opened; reads the disk.
pub type IgnoredSettings = Arc<dyn Fn(&Path) -> Vec<String> + Send + Sync>;

/// Fetches the weights of a known model; blocks, and reports how many bytes of how many are here.
pub type Fetcher = Arc<dyn Fn(&str, &mut dyn FnMut(u64, u64)) -> anyhow::Result<()> + Send + Sync>;

/// Starts a run: [`starling_swarm::start`], or a scripted one.
pub type Starter = Arc<dyn Fn(RunId, Task, RunServices) -> Arc<dyn RunControl> + Send + Sync>;

/// A run as the server drives it.
#[async_trait]
pub trait RunControl: Send + Sync {
    fn log(&self) -> EventLog;
    fn cancel(&self);
    fn steer(&self, to: Option<SymbolPath>, text: String);
    /// Why nobody can be steered about this symbol; `None` if somebody can.
    fn why_nobody_owns(&self, symbol: &SymbolPath) -> Option<String>;
    async fn undo(&self, proposal: Option<ProposalId>) -> Result<Vec<ProposalId>, UndoError>;
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

/// Which runs of earlier servers are offered again where something waits for review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestorePolicy {
    All,
    Nothing,
    Only(RunId),
}

/// Everything that the server needs besides its client.
#[derive(Clone)]
pub struct Services {
    pub open: Opener,
    pub start: Starter,
    pub fetch: Fetcher,
    pub index: Indexer,
    pub models: ModelList,
    /// Trajectories are written to `<trajectories>/<run id>.jsonl`.
    pub trajectories: PathBuf,
    pub restore: RestorePolicy,
    /// What a project's own settings ask for and do not get, in words.
    pub ignored: IgnoredSettings,
    /// Where runs and questions work; the client is answered elsewhere.
    pub workers: Handle,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services")
            .field("trajectories", &self.trajectories)
            .finish_non_exhaustive()
    }
}

/// The swarm itself as a [`Starter`].
pub fn swarm() -> Starter {
    Arc::new(|id, task, outside| Arc::new(starling_swarm::start(id, task, outside)))
}
