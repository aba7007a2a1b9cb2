//! The runs of a session: opening, answering, ending. Every call returns at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_lsp::Client;
use tower_lsp::lsp_types::Url;

use super::approvals::{Approvals, Person, Review};
use super::documents::Desk;
use super::editor::ClientEditor;
use super::follow;
use super::paths::file_of;
use super::protocol::{RunParams, RunReply, UndoneNotification, UndoneParams};
use super::services::{Defaults, Opened, Opening, Run, Services};
use super::settings::Settings;
use crate::ports::Verdict;
use crate::swarm::{
    Approval, Event, EventLog, Outside, ProposalId, RunId, Spent, StopReason, Task,
};
use crate::syntax::{FilePath, SymbolPath};

/// How many ended runs can still be undone.
const ENDED_KEPT: usize = 16;
/// How long trajectories may take to be written at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why a command about a run cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    #[error("no folder is open: open the folder of the project first")]
    NoRoot,
    #[error("there is no run `{0}`")]
    UnknownRun(String),
    #[error("run `{run}`: {what} does not wait for an answer")]
    NotWaiting { run: String, what: String },
    #[error("run `{0}` has ended")]
    Ended(String),
    #[error("run `{0}` has changed nothing yet")]
    NotStarted(String),
}

/// Where a run stands.
enum Stage {
    /// Being made ready; holds what it was told meanwhile.
    Opening(Vec<(Option<SymbolPath>, String)>),
    Going(Arc<dyn Run>),
    Ended(Option<Arc<dyn Run>>),
}

struct Entry {
    stage: Stage,
    cancel: CancellationToken,
    approvals: Approvals,
}

/// All runs of one client. The key is the id, which sorts by time.
#[derive(Clone)]
pub struct Runs {
    shared: Arc<Shared>,
}

struct Shared {
    services: Services,
    client: Client,
    desk: Desk,
    tasks: TaskTracker,
    entries: Mutex<BTreeMap<String, Entry>>,
}

/// What a run is opened with.
struct Plan {
    id: RunId,
    params: RunParams,
    /// Show a progress bar.
    progress: bool,
    root: PathBuf,
    approvals: Approvals,
    cancel: CancellationToken,
    editor: Arc<ClientEditor>,
    buffers: oneshot::Receiver<Vec<(PathBuf, Arc<str>)>>,
}

impl Runs {
    pub fn new(services: Services, client: Client, desk: Desk) -> Runs {
        let shared = Shared {
            services,
            client,
            desk,
            tasks: TaskTracker::new(),
            entries: Mutex::default(),
        };
        Runs {
            shared: Arc::new(shared),
        }
    }

    /// Begins a run over the buffers as they are at this place in the order of messages.
    pub fn begin(
        &self,
        params: RunParams,
        settings: &Settings,
        editor: &Arc<ClientEditor>,
    ) -> Result<RunReply, RunError> {
        let buffers = self.shared.desk.read_all();
        let root = settings.root.clone().ok_or(RunError::NoRoot)?;
        let plan = Plan {
            id: next_id(),
            params,
            progress: settings.progress,
            root,
            approvals: Approvals::default(),
            cancel: CancellationToken::new(),
            editor: Arc::clone(editor),
            buffers,
        };
        let reply = RunReply {
            run: plan.id.clone(),
            trajectory: self.trajectory(&plan.id),
        };
        let entry = Entry {
            stage: Stage::Opening(Vec::new()),
            cancel: plan.cancel.clone(),
            approvals: plan.approvals.clone(),
        };
        self.lock().insert(plan.id.0.clone(), entry);
        self.shared.tasks.spawn(self.clone().carry(plan));
        Ok(reply)
    }

    /// A run from its opening to its end, with all who follow its log.
    async fn carry(self, plan: Plan) {
        let id = plan.id.clone();
        let progress = plan.progress;
        let (approvals, title) = (plan.approvals.clone(), title(&plan.params.task));
        let (log, approval) = self.open(plan).await;
        let client = &self.shared.client;
        let noted = (approval == Approval::Ask).then_some(&approvals);
        let sent = async {
            follow::notify(log.follow(), &id, client, noted).await;
            self.ended(&id);
        };
        let shown = async {
            if progress {
                follow::progress(log.follow(), &id, title, client).await;
            }
        };
        tokio::join!(
            follow::write(log.follow(), self.trajectory(&id)),
            sent,
            shown
        );
    }

    /// Answers a proposal or an intent.
    pub fn answer(&self, run: &RunId, review: &Review, verdict: Verdict) -> Result<(), RunError> {
        let entries = self.lock();
        let entry = entries.get(&run.0).ok_or_else(|| unknown(run))?;
        entry
            .approvals
            .answer(review, verdict)
            .map_err(|_| RunError::NotWaiting {
                run: run.0.clone(),
                what: match review {
                    Review::Proposal(proposal) => format!("proposal {proposal}"),
                    Review::Intent(symbol) => format!("the intent of {symbol}"),
                },
            })
    }

    /// Tells an agent, or all. An intent of the symbol that waits is answered by it.
    pub fn steer(&self, run: &RunId, to: Option<SymbolPath>, text: String) -> Result<(), RunError> {
        let mut entries = self.lock();
        let entry = entries.get_mut(&run.0).ok_or_else(|| unknown(run))?;
        if let Some(symbol) = &to {
            let verdict = Verdict::Steer { text: text.clone() };
            let review = Review::Intent(symbol.clone());
            if entry.approvals.answer(&review, verdict).is_ok() {
                return Ok(());
            }
        }
        match &mut entry.stage {
            Stage::Opening(told) => told.push((to, text)),
            Stage::Going(handle) => handle.steer(to, text),
            Stage::Ended(_) => return Err(RunError::Ended(run.0.clone())),
        }
        Ok(())
    }

    /// Ends a run; a run that has ended already stays as it is.
    pub fn cancel(&self, run: &RunId) -> Result<(), RunError> {
        let entries = self.lock();
        let entry = entries.get(&run.0).ok_or_else(|| unknown(run))?;
        stop(entry);
        Ok(())
    }

    /// Takes back what a run applied; `starling/undone` tells how it went.
    pub fn undo(&self, run: &RunId, proposal: Option<ProposalId>) -> Result<(), RunError> {
        let handle = match &self.lock().get(&run.0).ok_or_else(|| unknown(run))?.stage {
            Stage::Going(handle) | Stage::Ended(Some(handle)) => Arc::clone(handle),
            Stage::Opening(_) | Stage::Ended(None) => {
                return Err(RunError::NotStarted(run.0.clone()));
            }
        };
        let (run, client) = (run.clone(), self.shared.client.clone());
        self.shared.tasks.spawn(async move {
            let (proposals, error) = match handle.undo(proposal).await {
                Ok(proposals) => (proposals, None),
                Err(error) => (Vec::new(), Some(error.to_string())),
            };
            client
                .send_notification::<UndoneNotification>(UndoneParams {
                    run,
                    proposals,
                    error,
                })
                .await;
        });
        Ok(())
    }

    /// Ends all runs, and gives their trajectories a moment to be written.
    pub async fn farewell(&self) {
        for entry in self.lock().values() {
            stop(entry);
        }
        self.shared.tasks.close();
        if tokio::time::timeout(FAREWELL, self.shared.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("a run did not end in time");
        }
    }

    fn trajectory(&self, id: &RunId) -> PathBuf {
        let directory: &Path = &self.shared.services.trajectories;
        directory.join(format!("{}.jsonl", id.0))
    }

    /// Makes a run ready and starts it; when that fails, its log says why.
    async fn open(&self, plan: Plan) -> (EventLog, Approval) {
        let (id, editor, approvals) =
            (plan.id.clone(), plan.editor.clone(), plan.approvals.clone());
        let (opened, params) = match self.prepare(plan).await {
            Ok(ready) => ready,
            Err(stop_reason) => return (over(stop_reason), Approval::Auto),
        };
        let Opened {
            defaults,
            models,
            tests,
            language,
            index,
        } = opened;
        let approver = Person {
            run: id.clone(),
            approvals,
            client: self.shared.client.clone(),
        };
        let outside = Outside {
            models,
            editor,
            approver: Arc::new(approver),
            tests,
            language,
            index,
        };
        let task = task(params, &defaults);
        let approval = task.approval;
        let run = (self.shared.services.start)(id.clone(), task, outside);
        self.started(&id, Arc::clone(&run));
        (run.log(), approval)
    }

    async fn prepare(&self, plan: Plan) -> Result<(Opened, RunParams), StopReason> {
        let Ok(buffers) = plan.buffers.await else {
            return Err(StopReason::Cancelled);
        };
        let opening = Opening {
            overlay: overlay(&plan.root, buffers),
            root: plan.root,
            test: plan.params.test.clone(),
            limits: plan.params.limits.clone(),
        };
        let opened = tokio::select! {
            opened = (self.shared.services.open)(opening) => opened,
            () = plan.cancel.cancelled() => return Err(StopReason::Cancelled),
        };
        match opened {
            Ok(opened) => Ok((opened, plan.params)),
            Err(error) => Err(StopReason::Failed {
                error: format!("{error:#}"),
            }),
        }
    }

    fn started(&self, id: &RunId, run: Arc<dyn Run>) {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&id.0) else {
            return;
        };
        let before = std::mem::replace(&mut entry.stage, Stage::Going(Arc::clone(&run)));
        if let Stage::Opening(told) = before {
            for (to, text) in told {
                run.steer(to, text);
            }
        }
        if entry.cancel.is_cancelled() {
            run.cancel();
        }
    }

    fn ended(&self, id: &RunId) {
        let mut entries = self.lock();
        if let Some(entry) = entries.get_mut(&id.0) {
            let stage = std::mem::replace(&mut entry.stage, Stage::Ended(None));
            if let Stage::Going(run) = stage {
                entry.stage = Stage::Ended(Some(run));
            }
        }
        let ended = |entry: &Entry| matches!(entry.stage, Stage::Ended(_));
        let old: Vec<String> = entries
            .iter()
            .filter(|(_, entry)| ended(entry))
            .map(|(id, _)| id.clone())
            .rev()
            .skip(ENDED_KEPT)
            .collect();
        for id in old {
            entries.remove(&id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.shared
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the request says, and for the rest the defaults.
fn task(params: RunParams, defaults: &Defaults) -> Task {
    Task {
        text: params.task,
        driver: params.driver.unwrap_or(defaults.driver),
        approval: params.approve.unwrap_or(defaults.approval),
        ask_intent: params.ask_intent.unwrap_or(defaults.ask_intent),
        limits: params.limits.over(&defaults.limits),
        test_deadline: defaults.test_deadline,
        begin: params.begin,
    }
}

fn stop(entry: &Entry) {
    entry.cancel.cancel();
    if let Stage::Going(run) = &entry.stage {
        run.cancel();
    }
}

fn unknown(run: &RunId) -> RunError {
    RunError::UnknownRun(run.0.clone())
}

/// The buffers that belong to the workspace.
fn overlay(root: &Path, buffers: Vec<(PathBuf, Arc<str>)>) -> Vec<(FilePath, Arc<str>)> {
    let inside = |(path, text): (PathBuf, Arc<str>)| {
        let uri = Url::from_file_path(path).ok()?;
        Some((file_of(root, &uri)?, text))
    };
    buffers.into_iter().filter_map(inside).collect()
}

/// The log of a run that ended before it began.
fn over(stop_reason: StopReason) -> EventLog {
    let log = EventLog::new();
    let summary = match &stop_reason {
        StopReason::Failed { error } => format!("the run could not begin: {error}"),
        StopReason::Settled
        | StopReason::NothingChanged { .. }
        | StopReason::TestsFail { .. }
        | StopReason::LedgerEmpty { .. }
        | StopReason::Cancelled => "the run was stopped before it began".to_owned(),
    };
    log.event(Event::RunFinished {
        stop_reason,
        applied: Vec::new(),
        diff: String::new(),
        spent: Spent::default(),
        summary,
        tally: Vec::new(),
    });
    log.close();
    log
}

/// The first line of the task, for a progress bar.
fn title(task: &str) -> String {
    let task = task.trim();
    let line = task.lines().next().unwrap_or_default();
    let mut title: String = line.chars().take(60).collect();
    if title.len() < task.len() {
        title.push('…');
    }
    title
}

/// Sorts by time.
fn next_id() -> RunId {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    RunId(format!("{millis}-{}-{count:03}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::protocol::LimitsPatch;
    use crate::swarm::{AskIntent, Driver, Limits};

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(title(" tidy up \n"), "tidy up");
        assert_eq!(title("tidy\nup"), "tidy…");
        assert_eq!(title(""), "");
        let exact = "ä".repeat(60);
        assert_eq!(title(&exact), exact);
        assert_eq!(title(&format!("{exact}b")), format!("{exact}…"));
    }

    #[test]
    fn ids_differ_and_sort_by_time() {
        let ids: Vec<String> = (0..50).map(|_| next_id().0).collect();
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    }

    #[test]
    fn only_buffers_of_the_folder_lie_over_it() {
        let text: Arc<str> = "x".into();
        let buffers = ["/w/pkg/a.py", "/w2/b.py", "/w/../c.py", "/d.py"]
            .map(|path| (PathBuf::from(path), Arc::clone(&text)));
        let inside = overlay(Path::new("/w"), buffers.to_vec());
        let files: Vec<FilePath> = inside.into_iter().map(|(file, _)| file).collect();
        assert_eq!(files, [FilePath::new("pkg/a.py")]);
    }

    #[test]
    fn a_request_says_what_the_defaults_say_otherwise() {
        let defaults = Defaults {
            driver: Driver::Single,
            approval: Approval::Proxy,
            ask_intent: AskIntent::Always,
            limits: Limits::default(),
            test_deadline: Duration::from_secs(7),
        };
        let plain = task(RunParams::default(), &defaults);
        assert_eq!(plain.driver, Driver::Single);
        assert_eq!(plain.approval, Approval::Proxy);
        assert_eq!(plain.ask_intent, AskIntent::Always);
        assert_eq!(plain.limits, Limits::default());
        assert_eq!(plain.test_deadline, Duration::from_secs(7));
        let limits = LimitsPatch {
            calls: Some(1),
            dollars: Some(crate::ports::Dollars(0.5)),
            depth: Some(0),
            ..LimitsPatch::default()
        };
        let wishes = RunParams {
            driver: Some(Driver::Swarm),
            approve: Some(Approval::Ask),
            limits,
            ..RunParams::default()
        };
        let own = task(wishes, &defaults);
        assert_eq!((own.driver, own.approval), (Driver::Swarm, Approval::Ask));
        assert_eq!(own.ask_intent, AskIntent::Always);
        let expected = Limits {
            calls: 1,
            dollars: Some(crate::ports::Dollars(0.5)),
            depth: 0,
            ..Limits::default()
        };
        assert_eq!(own.limits, expected);
    }

    #[test]
    fn a_run_that_did_not_begin_has_a_log_with_an_end() {
        let said = |reason: StopReason| {
            let events = over(reason.clone()).events();
            let [
                Event::RunFinished {
                    stop_reason,
                    summary,
                    ..
                },
            ] = &events[..]
            else {
                panic!("{events:?}");
            };
            assert_eq!(*stop_reason, reason);
            summary.clone()
        };
        let error = "no model".to_owned();
        let failed = said(StopReason::Failed { error });
        assert_eq!(failed, "the run could not begin: no model");
        let stopped = said(StopReason::Cancelled);
        assert_eq!(stopped, "the run was stopped before it began");
    }
}
