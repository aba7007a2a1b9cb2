//! Manages one language server: starts it on first use, sends it one request after another,
//! restarts it after a crash with increasing delay, and stops it when it is idle.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::documents::FileChangeKind;
use super::link::ServerLauncher;
use super::names::ServerLocation;
use super::session::{RequestFailure, ServerSession, ServerSetup, TimedRequest};
use starling_core::{Problem, Relation, TextRequest};
use starling_syntax::FilePath;
use starling_workspace::Stamp;

/// Maximum time for a server to start and complete the handshake.
const START: Duration = Duration::from_secs(30);
/// Idle time after which a server is stopped.
const IDLE: Duration = Duration::from_secs(600);
/// Delay before each restart after consecutive crashes. After the last one, there is no restart.
const WAITS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(15),
    Duration::from_secs(60),
];
/// Error message for a server that reports no problem in an invalid text.
pub(super) const BLIND: &str = "it finds no error in a text that cannot be parsed: its checkers are \
                                missing or switched off";
/// Number of consecutive timeouts after which a server is treated as crashed.
const LATE: u32 = 3;
/// Number of timeouts for names after which a server gets no more requests about names, because it
/// cannot find problems while it searches for names.
const LATE_WITH_NAMES: u32 = 2;
/// Maximum number of queued requests. Further requests are rejected.
const QUEUE: usize = 64;
/// Maximum number of unread events.
const NEWS: usize = 100;

/// A tool's name and result, or the reason why there is no result.
pub(super) type ToolResult<T> = Result<(String, T), String>;
/// The problems of a text and the tool that found them.
pub(super) type ProblemsResult = ToolResult<Vec<Problem>>;

/// A queued request with the channel for its result.
enum SupervisorJob {
    Diagnose {
        request: TextRequest,
        deadline: Instant,
        tell: oneshot::Sender<ProblemsResult>,
    },
    Imports {
        request: TextRequest,
        problem: Problem,
        deadline: Instant,
        tell: oneshot::Sender<Result<Vec<String>, String>>,
    },
    Places {
        request: TextRequest,
        at: usize,
        relation: Relation,
        deadline: Instant,
        tell: oneshot::Sender<ToolResult<Vec<ServerLocation>>>,
    },
    Hover {
        request: TextRequest,
        at: usize,
        deadline: Instant,
        tell: oneshot::Sender<ToolResult<String>>,
    },
    /// The stamps of the files on disk.
    Disk(Vec<(FilePath, Stamp)>),
}

/// Server events that are kept until they are read.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerEvents(Arc<Mutex<VecDeque<String>>>);

impl ServerEvents {
    fn add(&self, what: String) {
        tracing::info!("{what}");
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < NEWS {
            all.push_back(what);
        }
    }

    pub fn take(&self) -> Vec<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.drain(..).collect()
    }
}

/// A handle to a server. Clones share the server; it stops when the last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct ServerSupervisor {
    pub name: String,
    pub root: PathBuf,
    pub news: ServerEvents,
    jobs: mpsc::Sender<SupervisorJob>,
    /// Whether the server runs and has completed the handshake.
    ready: Arc<AtomicBool>,
}

impl ServerSupervisor {
    /// Creates a handle. The server starts on the first request.
    pub fn new(about: ServerSetup, launch: ServerLauncher) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let news = ServerEvents::default();
        let name = about.name.clone();
        let root = about.root.clone();
        let ready = Arc::default();
        let state = SupervisorState {
            about,
            launch,
            news: news.clone(),
            session: None,
            trouble: CrashHistory::default(),
            late: 0,
            late_with_names: 0,
            disk: HashMap::new(),
            ready: Arc::clone(&ready),
        };
        tokio::spawn(keep(state, queue));
        ServerSupervisor {
            name,
            root,
            news,
            jobs,
            ready,
        }
    }

    /// Whether a request about a name is likely to succeed soon. Requests about names do not start
    /// a server.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }

    /// Returns the locations that have a relation to the name at a byte offset.
    ///
    /// # Errors
    /// The reason why the locations are unknown.
    pub async fn places(
        &self,
        request: TextRequest,
        at: usize,
        relation: Relation,
    ) -> ToolResult<Vec<ServerLocation>> {
        let (tell, answer) = oneshot::channel();
        let deadline = Instant::now() + request.deadline;
        let late = RequestFailure::Late(request.deadline.as_millis());
        let job = SupervisorJob::Places {
            request,
            at,
            relation,
            deadline,
            tell,
        };
        self.wait(job, answer, deadline, &late).await
    }

    /// Returns the hover text of the name at a byte offset.
    ///
    /// # Errors
    /// The reason why the text is unknown.
    pub async fn hover(&self, request: TextRequest, at: usize) -> ToolResult<String> {
        let (tell, answer) = oneshot::channel();
        let deadline = Instant::now() + request.deadline;
        let late = RequestFailure::Late(request.deadline.as_millis());
        let job = SupervisorJob::Hover {
            request,
            at,
            deadline,
            tell,
        };
        self.wait(job, answer, deadline, &late).await
    }

    /// Returns the problems of a text.
    ///
    /// # Errors
    /// The reason why the problems are unknown.
    pub async fn diagnose(&self, request: TextRequest) -> ProblemsResult {
        let (tell, answer) = oneshot::channel();
        let deadline = Instant::now() + request.deadline;
        let late = RequestFailure::Late(request.deadline.as_millis());
        let job = SupervisorJob::Diagnose {
            request,
            deadline,
            tell,
        };
        self.wait(job, answer, deadline, &late).await
    }

    /// Returns import statements from the quick fixes for a problem.
    ///
    /// # Errors
    /// The reason why the imports are unknown.
    pub async fn imports(
        &self,
        request: TextRequest,
        problem: Problem,
    ) -> Result<Vec<String>, String> {
        let (tell, answer) = oneshot::channel();
        let deadline = Instant::now() + request.deadline;
        let late = RequestFailure::Late(request.deadline.as_millis());
        let job = SupervisorJob::Imports {
            request,
            problem,
            deadline,
            tell,
        };
        self.wait(job, answer, deadline, &late).await
    }

    /// Sends the current list of files on disk to the server.
    pub fn disk(&self, files: Vec<(FilePath, Stamp)>) {
        if self.jobs.try_send(SupervisorJob::Disk(files)).is_err() {
            self.news.add(format!(
                "{} could not be notified of files that changed on disk",
                self.name
            ));
        }
    }

    async fn wait<T>(
        &self,
        job: SupervisorJob,
        answer: oneshot::Receiver<Result<T, String>>,
        deadline: Instant,
        late: &RequestFailure,
    ) -> Result<T, String> {
        let name = &self.name;
        if self.jobs.try_send(job).is_err() {
            return Err(format!("{name}: too many requests are waiting"));
        }
        match timeout_at(deadline, answer).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => Err(format!("{name}: it has stopped")),
            Err(_) => Err(format!("{name}: {late}")),
        }
    }
}

/// The consecutive crashes of a server.
#[derive(Debug, Default)]
struct CrashHistory {
    crashes: usize,
    not_before: Option<Instant>,
    last: String,
}

/// The task that owns the server and processes the queued requests.
struct SupervisorState {
    about: ServerSetup,
    launch: ServerLauncher,
    news: ServerEvents,
    session: Option<ServerSession>,
    trouble: CrashHistory,
    late: u32,
    late_with_names: u32,
    /// The files on disk as last reported to the server.
    disk: HashMap<FilePath, Stamp>,
    ready: Arc<AtomicBool>,
}

async fn keep(mut state: SupervisorState, mut queue: mpsc::Receiver<SupervisorJob>) {
    loop {
        let job = match timeout(IDLE, queue.recv()).await {
            Ok(job) => job,
            Err(_) => {
                state.session = None;
                state.ready.store(false, Ordering::Relaxed);
                queue.recv().await
            }
        };
        let Some(job) = job else { return };
        state.carry_out(job).await;
        state.ready.store(state.is_ready(), Ordering::Relaxed);
    }
}

impl SupervisorState {
    fn is_ready(&self) -> bool {
        let is_up = self.session.as_ref().is_some_and(|one| !one.is_closed());
        is_up && self.late_with_names < LATE_WITH_NAMES
    }

    /// Runs a job, unless the caller no longer waits for the result.
    async fn carry_out(&mut self, job: SupervisorJob) {
        match job {
            SupervisorJob::Disk(files) => self.disk_is(files),
            SupervisorJob::Diagnose {
                request,
                deadline,
                tell,
            } if !tell.is_closed() => {
                let _ = tell.send(self.diagnose(&request, deadline).await);
            }
            SupervisorJob::Imports {
                request,
                problem,
                deadline,
                tell,
            } if !tell.is_closed() => {
                let _ = tell.send(self.imports(&request, problem, deadline).await);
            }
            SupervisorJob::Places {
                request,
                at,
                relation,
                deadline,
                tell,
            } if !tell.is_closed() => {
                let _ = tell.send(self.places(&request, at, relation, deadline).await);
            }
            SupervisorJob::Hover {
                request,
                at,
                deadline,
                tell,
            } if !tell.is_closed() => {
                let _ = tell.send(self.hover(&request, at, deadline).await);
            }
            SupervisorJob::Diagnose { .. }
            | SupervisorJob::Imports { .. }
            | SupervisorJob::Places { .. }
            | SupervisorJob::Hover { .. } => {}
        }
    }

    async fn places(
        &mut self,
        request: &TextRequest,
        at: usize,
        relation: Relation,
        deadline: Instant,
    ) -> ToolResult<Vec<ServerLocation>> {
        let asked = TimedRequest { request, deadline };
        let (tool, session) = self.running()?;
        let found = session.places(&asked, at, relation).await;
        Ok((tool, self.of_name(found).await?))
    }

    async fn hover(
        &mut self,
        request: &TextRequest,
        at: usize,
        deadline: Instant,
    ) -> ToolResult<String> {
        let asked = TimedRequest { request, deadline };
        let (tool, session) = self.running()?;
        let found = session.hover(&asked, at).await;
        Ok((tool, self.of_name(found).await?))
    }

    fn running(&mut self) -> Result<(String, &mut ServerSession), String> {
        match &mut self.session {
            Some(session) if !session.is_closed() => Ok((session.tool.clone(), session)),
            Some(_) | None => Err(format!("{}: it is not running", self.about.name)),
        }
    }

    /// Evaluates a result about a name. A server that is slow with names may be fast with
    /// diagnostics, so a timeout does not count as a failure of the server.
    async fn of_name<T>(&mut self, found: Result<T, RequestFailure>) -> Result<T, String> {
        self.late_with_names += u32::from(matches!(found, Err(RequestFailure::Late(_))));
        match found {
            Ok(found) => Ok(found),
            Err(failure @ (RequestFailure::Gone | RequestFailure::Unprovable)) => {
                self.judged(Err(failure)).await
            }
            Err(
                failure @ (RequestFailure::Late(_)
                | RequestFailure::Refused(_)
                | RequestFailure::Unreadable(_)),
            ) => Err(format!("{}: {failure}", self.about.name)),
        }
    }

    async fn diagnose(&mut self, request: &TextRequest, deadline: Instant) -> ProblemsResult {
        let asked = TimedRequest { request, deadline };
        let session = self.ready().await?;
        let tool = session.tool.clone();
        let found = session.diagnose(&asked).await;
        Ok((tool, self.judged(found).await?))
    }

    async fn imports(
        &mut self,
        request: &TextRequest,
        problem: Problem,
        deadline: Instant,
    ) -> Result<Vec<String>, String> {
        let asked = TimedRequest { request, deadline };
        let found = self.ready().await?.imports(&asked, &problem).await;
        self.judged(found).await
    }

    /// Returns the running server, after starting it if needed.
    async fn ready(&mut self) -> Result<&mut ServerSession, String> {
        if self.session.as_ref().is_some_and(ServerSession::is_closed) {
            self.crashed("it crashed").await;
        }
        if self.session.is_none() {
            self.start().await?;
        }
        match &mut self.session {
            Some(session) => Ok(session),
            None => Err(format!("{}: it did not start", self.about.name)),
        }
    }

    async fn start(&mut self) -> Result<(), String> {
        let name = &self.about.name;
        let CrashHistory {
            crashes,
            not_before,
            last,
        } = &self.trouble;
        if *crashes > WAITS.len() {
            return Err(format!("{name} is not started again: {last}"));
        }
        let now = Instant::now();
        if let Some(then) = not_before.filter(|then| *then > now) {
            let seconds = (then - now).as_secs_f32();
            return Err(format!(
                "{name} is started again in {seconds:.0} s ({last})"
            ));
        }
        let opened = match (self.launch)() {
            Ok(link) => ServerSession::open(link, &self.about, now + START).await,
            Err(error) => {
                let why = format!("it cannot be started: {error}");
                return Err(self.failed(&why).await);
            }
        };
        let mut session = match opened {
            Ok(session) => session,
            Err(refusal) => {
                let why = format!("at startup: {}", refusal.told().await);
                return Err(self.failed(&why).await);
            }
        };
        self.late_with_names = 0;
        let sees = session.sees_errors(now + START).await;
        let tool = session.tool.clone();
        self.session = Some(session);
        match sees {
            Ok(true) => {
                let took = now.elapsed().as_millis();
                self.news.add(format!("{tool} was started in {took} ms"));
                Ok(())
            }
            Ok(false) => {
                let why = self.failed(BLIND).await;
                self.trouble.crashes = WAITS.len() + 1;
                Err(why)
            }
            Err(failure) => Err(self.failed(&format!("at startup: {failure}")).await),
        }
    }

    /// Records a failure of the server and returns the error message.
    async fn failed(&mut self, why: &str) -> String {
        self.crashed(why).await;
        format!("{}: {}", self.about.name, self.trouble.last)
    }

    /// Updates the server's state after a result of a request.
    async fn judged<T>(&mut self, found: Result<T, RequestFailure>) -> Result<T, String> {
        let failure = match found {
            Ok(found) => {
                self.trouble = CrashHistory::default();
                self.late = 0;
                return Ok(found);
            }
            Err(failure) => failure,
        };
        match &failure {
            RequestFailure::Gone => self.crashed("it crashed").await,
            RequestFailure::Late(_) => {
                self.late += 1;
                if self.late >= LATE {
                    self.crashed(&format!("it gave no answer {LATE} times in a row"))
                        .await;
                }
            }
            // Stopping the server prevents late diagnostics of older texts.
            RequestFailure::Unprovable => self.session = None,
            RequestFailure::Refused(_) | RequestFailure::Unreadable(_) => {}
        }
        Err(match &failure {
            RequestFailure::Gone => format!("{}: {}", self.about.name, self.trouble.last),
            RequestFailure::Late(_)
            | RequestFailure::Unprovable
            | RequestFailure::Refused(_)
            | RequestFailure::Unreadable(_) => format!("{}: {failure}", self.about.name),
        })
    }

    async fn crashed(&mut self, what: &str) {
        let end = match self.session.take() {
            Some(ServerSession {
                process: Some(mut process),
                ..
            }) => format!("{what} ({})", process.end().await),
            Some(_) | None => what.to_owned(),
        };
        let CrashHistory { crashes, .. } = self.trouble;
        self.late = 0;
        self.trouble = CrashHistory {
            crashes: crashes + 1,
            not_before: WAITS.get(crashes).map(|wait| Instant::now() + *wait),
            last: end.clone(),
        };
        self.news.add(format!("{}: {end}", self.about.name));
    }

    fn disk_is(&mut self, files: Vec<(FilePath, Stamp)>) {
        let now: HashMap<FilePath, Stamp> = files.into_iter().collect();
        let before = std::mem::replace(&mut self.disk, now);
        let Some(session) = &self.session else {
            return;
        };
        let path = |file: &FilePath| self.about.root.join(file.as_str());
        let gone = before
            .keys()
            .filter(|file| !self.disk.contains_key(*file))
            .map(|file| (path(file), FileChangeKind::Deleted));
        let changed = self.disk.iter().filter_map(|(file, stamp)| {
            let fate = match before.get(file) {
                None => FileChangeKind::Created,
                Some(old) if old != stamp => FileChangeKind::Changed,
                Some(_) => return None,
            };
            Some((path(file), fate))
        });
        let all: Vec<(PathBuf, FileChangeKind)> = gone.chain(changed).collect();
        if !all.is_empty() {
            session.disk_changed(&all);
        }
    }
}
