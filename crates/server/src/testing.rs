//! A server with scripted runs, for tests.

// Only tests use this module, including tests of other crates.
#![allow(clippy::unwrap_used)]

mod client;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use client::TestClient;

use crate::protocol::RunParams;
use crate::{OpenedRun, Opener, RestorePolicy, RunControl, RunDefaults, RunStarter, Services};
use starling_core::{
    Approval, AskIntent, ChatModel, ChatReply, ChatRequest, ChatWatch, CommandOrigin, Diagnostics,
    Driver, LanguageService, Limits, ModelError, ModelProfile, Price, TestOutcome, TestReport,
    TestRequest, TestRunner, TextRequest, Tokens, ToolCalling,
};
use starling_index::Index;
use starling_swarm::{
    ActorId, DiagnosticEvidence, Event, EventLog, Evidence, ProposalId, RoleModels, RunServices,
    Spent, StopReason, Task, TestEvidence, UndoError,
};
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::{PathPolicy, Workspace};

pub fn file(path: &str) -> FilePath {
    FilePath::new(path)
}

pub fn symbol(path: &str) -> SymbolPath {
    path.parse().unwrap()
}

/// Creates a directory with files.
pub fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// The context of a scripted run.
pub struct RunScript {
    pub task: Task,
    pub outside: RunServices,
    pub log: EventLog,
    pub cancel: CancellationToken,
    pub steered: mpsc::UnboundedReceiver<(Option<SymbolPath>, String)>,
}

/// A run that follows a script instead of a swarm.
struct ScriptedRun {
    log: EventLog,
    cancel: CancellationToken,
    /// Whether an undo is recorded in the log, as a real run does.
    records: bool,
    steer: mpsc::UnboundedSender<(Option<SymbolPath>, String)>,
}

#[async_trait]
impl RunControl for ScriptedRun {
    fn log(&self) -> EventLog {
        self.log.clone()
    }

    fn cancel(&self) {
        self.cancel.cancel();
    }

    fn steer(&self, to: Option<SymbolPath>, text: String) {
        // A script may ignore its messages.
        let _ = self.steer.send((to, text));
    }

    /// Simulates a project that has every symbol except `missing`.
    fn why_nobody_owns(&self, symbol: &SymbolPath) -> Option<String> {
        (symbol.name == "missing").then(|| format!("There is no symbol {symbol}."))
    }

    /// Simulates the undo of proposal 1 or of all proposals. The undo of any other proposal fails.
    async fn undo(&self, proposal: Option<ProposalId>) -> Result<Vec<ProposalId>, UndoError> {
        match proposal {
            None if self.records => {
                self.log.noticed(Event::ProposalUndone {
                    proposal: ProposalId(1),
                    by_editor: false,
                    unsaved: false,
                });
                Ok(vec![ProposalId(1)])
            }
            None => Ok(vec![ProposalId(2), ProposalId(1)]),
            Some(ProposalId(1)) => Ok(vec![ProposalId(1)]),
            Some(other) => Err(UndoError::Unknown(other)),
        }
    }
}

/// Returns a starter whose runs follow `script`. The log is closed when the script ends.
pub fn scripted<F, Fut>(script: F) -> RunStarter
where
    F: Fn(RunScript) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    starter(script, false)
}

/// Like [`scripted`], but an undo of the whole run undoes proposal 1 and records this in the log.
pub fn undoable<F, Fut>(script: F) -> RunStarter
where
    F: Fn(RunScript) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    starter(script, true)
}

fn starter<F, Fut>(script: F, records: bool) -> RunStarter
where
    F: Fn(RunScript) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    Arc::new(move |_, task, outside| {
        let log = EventLog::new();
        let cancel = CancellationToken::new();
        let (steer, steered) = mpsc::unbounded_channel();
        let script = script(RunScript {
            task,
            outside,
            log: log.clone(),
            cancel: cancel.clone(),
            steered,
        });
        let close = log.clone();
        tokio::spawn(async move {
            script.await;
            close.close();
        });
        Arc::new(ScriptedRun {
            log,
            cancel,
            records,
            steer,
        })
    })
}

/// Returns services that only use the disk: no models and no language servers.
pub fn services(start: RunStarter, trajectories: &Path) -> Services {
    let open: Opener = Arc::new(|opening| {
        Box::pin(async move {
            anyhow::ensure!(opening.test.as_deref() != Some("broken"), "no such command");
            let overlay: BTreeMap<_, _> = opening
                .overlay
                .into_iter()
                .map(|(file, text)| (file, Some(text)))
                .collect();
            let nothing = Arc::new(NoServices);
            Ok(OpenedRun {
                defaults: RunDefaults {
                    driver: Driver::Swarm,
                    approval: Approval::Ask,
                    ask_intent: AskIntent::Never,
                    limits: Limits::default(),
                    test_deadline: std::time::Duration::from_secs(1),
                    try_examples: true,
                },
                models: RoleModels {
                    scout: nothing.clone(),
                    agent: nothing.clone(),
                    editors: Vec::new(),
                    proxy: nothing.clone(),
                },
                tests: nothing.clone(),
                language: nothing,
                index: Arc::new(Index::new(Workspace::open(opening.root)?.snapshot(overlay))),
            })
        })
    });
    Services {
        open,
        start,
        fetch: Arc::new(|model, _| {
            anyhow::bail!("this test server cannot download the model {model}")
        }),
        trajectories: trajectories.to_owned(),
        restore: RestorePolicy::All,
        index: Arc::new(|root, overlay| {
            let overlay = overlay.into_iter().map(|(file, text)| (file, Some(text)));
            let snapshot = Workspace::open(root)?.snapshot(overlay.collect());
            Ok(Arc::new(Index::new(snapshot)))
        }),
        models: Arc::new(|_| Ok(Default::default())),
        ignored: Arc::new(|_| Vec::new()),
        policy: Arc::new(PathPolicy::of),
        workers: tokio::runtime::Handle::current(),
    }
}

/// Services of a run without a model, tests and a language server.
struct NoServices;

#[async_trait]
impl ChatModel for NoServices {
    fn profile(&self) -> &ModelProfile {
        static PROFILE: std::sync::LazyLock<ModelProfile> =
            std::sync::LazyLock::new(|| ModelProfile {
                name: "nothing".to_owned(),
                context_window: Tokens(0),
                max_output: Tokens(0),
                tool_calling: ToolCalling::Text,
                replayed: false,
                price: Some(Price::FREE),
            });
        &PROFILE
    }

    async fn chat(&self, _: &ChatRequest, _: &dyn ChatWatch) -> Result<ChatReply, ModelError> {
        Err(ModelError::Unavailable {
            model: "nothing".to_owned(),
            message: "there is no model".to_owned(),
        })
    }
}

#[async_trait]
impl TestRunner for NoServices {
    fn command(&self) -> Option<String> {
        None
    }

    fn chosen(&self) -> CommandOrigin {
        CommandOrigin::Found
    }

    fn selects(&self) -> bool {
        false
    }

    async fn run(&self, _: TestRequest) -> TestReport {
        TestReport {
            outcome: TestOutcome::NotRun,
            exit: None,
            command: String::new(),
            cases: Vec::new(),
            source: Default::default(),
            output: String::new(),
            millis: 0,
        }
    }
}

#[async_trait]
impl LanguageService for NoServices {
    async fn diagnostics(&self, _: TextRequest) -> Diagnostics {
        let reason = "there is no language server".to_owned();
        Diagnostics::Unknown { reason }
    }
}

pub fn task(text: &str) -> RunParams {
    RunParams {
        task: text.to_owned(),
        ..RunParams::default()
    }
}

pub fn said(text: &str) -> Event {
    Event::Steered {
        to: None,
        text: text.to_owned(),
    }
}

pub fn finished(stop_reason: StopReason) -> Event {
    Event::RunFinished {
        stop_reason,
        applied: Vec::new(),
        diff: String::new(),
        spent: Spent::default(),
        summary: "over".to_owned(),
        tally: Vec::new(),
        ending: None,
    }
}

pub fn evidence() -> Evidence {
    let reason = "not looked at".to_owned();
    Evidence {
        tests: TestEvidence::Unknown {
            reason: reason.clone(),
        },
        diagnostics: DiagnosticEvidence::Unknown { reason },
        examples: Vec::new(),
        imports: Default::default(),
        losses: Vec::new(),
        contract: Vec::new(),
        callers: Vec::new(),
        callers_in_set: Vec::new(),
        callers_kept: Vec::new(),
        indirect_callers: Vec::new(),
        test_callers: 0,
        needs_person: Vec::new(),
        together: None,
        texts: Default::default(),
        overridden: None,
        outdated: None,
        millis: 0,
    }
}

pub fn review_asked(id: u32, path: &str) -> Event {
    Event::ReviewAsked {
        proposal: ProposalId(id),
        agent: ActorId::Agent(symbol(path)),
        symbol: symbol(path),
        diff: "-a\n+b\n".to_owned(),
        reason: "because".to_owned(),
        evidence: evidence(),
        with: Vec::new(),
        parts: Vec::new(),
    }
}
