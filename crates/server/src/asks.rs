//! Questions about the code. A request starts the answer; notifications deliver it. Questions never
//! change files.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::client_context::ClientContext;
use super::documents::DocumentStore;
use super::outgoing::ClientPlugin;
use super::protocol::{
    AnswerNotification, AnswerParams, AnswerUpdate, AskId, AskParams, AskReply, AskSnapshot,
};
use super::session::{OpenRequest, OpenedRun, RefreshNotifier, RunError, Services, listed_overlay};
use super::settings::ClientSettings;
use super::window::ClientWindow;
use starling_ask::session::Session;
use starling_ask::step::Step;
use starling_ask::{self, Answer, Models, Query};

/// Maximum number of ended questions that are kept; also the maximum number of sessions.
const MAX_KEPT: usize = 32;

/// All questions of one client.
#[derive(Clone)]
pub struct Asks {
    shared: Arc<AsksShared>,
}

/// The part of [`Asks`] that tasks share.
struct AsksShared {
    services: Services,
    plugin: ClientPlugin,
    documents: DocumentStore,
    refresh: RefreshNotifier,
    window: Arc<ClientWindow>,
    tasks: TaskTracker,
    state: Mutex<AskTable>,
}

/// The questions and sessions of a client.
#[derive(Default)]
struct AskTable {
    entries: Vec<AskEntry>,
    /// The results of earlier questions of each session, by the client's name for the session.
    sessions: BTreeMap<String, Session>,
}

/// A question, its session, and the token that cancels it.
struct AskEntry {
    id: AskId,
    question: String,
    session: Option<String>,
    /// `None` if the question has ended.
    cancel: Option<CancellationToken>,
}

/// The input for answering one question: its parameters, the settings, and the open buffers.
struct AskPlan {
    id: AskId,
    params: AskParams,
    settings: ClientSettings,
    buffers: oneshot::Receiver<Vec<(std::path::PathBuf, Arc<str>)>>,
}

impl Asks {
    pub fn new(services: Services, documents: DocumentStore, context: ClientContext) -> Asks {
        let ClientContext {
            refresh,
            window,
            plugin,
        } = context;
        let shared = AsksShared {
            services,
            plugin,
            documents,
            refresh,
            window,
            tasks: TaskTracker::new(),
            state: Mutex::default(),
        };
        Asks {
            shared: Arc::new(shared),
        }
    }

    /// Starts to answer a question about the project, including the unsaved texts of open buffers.
    ///
    /// # Errors
    /// No project is open.
    pub fn start(
        &self,
        params: AskParams,
        settings: &ClientSettings,
    ) -> Result<AskReply, RunError> {
        let buffers = self.shared.documents.read_all();
        if settings.root.is_none() {
            return Err(RunError::NoRoot);
        }
        let (id, cancel) = (next_id(), CancellationToken::new());
        self.lock().add(AskEntry {
            id: id.clone(),
            question: params.question.clone(),
            session: params.session.clone(),
            cancel: Some(cancel.clone()),
        });
        let plan = AskPlan {
            id: id.clone(),
            params,
            settings: settings.clone(),
            buffers,
        };
        let asks = self.clone();
        let answered = async move { asks.answer(plan, cancel).await };
        let workers = &self.shared.services.workers;
        self.shared.tasks.spawn_on(answered, workers);
        self.shared.refresh.notify();
        Ok(AskReply { ask: id })
    }

    /// Cancels a question. Has no effect on an ended question.
    ///
    /// # Errors
    /// The question does not exist.
    pub fn cancel(&self, id: &AskId) -> Result<(), RunError> {
        let state = self.lock();
        let entry = state.entries.iter().find(|entry| entry.id == *id);
        let entry = entry.ok_or_else(|| RunError::UnknownAsk(id.0.clone()))?;
        if let Some(cancel) = &entry.cancel {
            cancel.cancel();
        }
        Ok(())
    }

    /// Returns the number of questions that are being answered.
    pub fn going(&self) -> usize {
        let state = self.lock();
        let going = state.entries.iter().filter(|entry| entry.cancel.is_some());
        going.count()
    }

    pub fn state(&self) -> Vec<AskSnapshot> {
        let state = self.lock();
        let of = |entry: &AskEntry| AskSnapshot {
            ask: entry.id.clone(),
            question: entry.question.clone(),
            session: entry.session.clone(),
            ended: entry.cancel.is_none(),
        };
        state.entries.iter().map(of).collect()
    }

    /// Cancels all questions.
    pub fn shutdown(&self) {
        for entry in &self.lock().entries {
            entry.cancel.iter().for_each(CancellationToken::cancel);
        }
    }

    async fn answer(self, plan: AskPlan, cancel: CancellationToken) {
        let (id, shows) = (plan.id.clone(), !plan.settings.has_plugin());
        let (steps, told) = mpsc::unbounded_channel();
        let answered = async {
            let end = tokio::select! {
                end = self.answered(plan, steps) => end,
                () = cancel.cancelled() => Err("the question was stopped".to_owned()),
            };
            end.map_or_else(AnswerUpdate::Error, |answer| {
                AnswerUpdate::Answer(Box::new(answer))
            })
        };
        let (end, ()) = tokio::join!(answered, self.forward(&id, told));
        if let Some(entry) = self.lock().find(&id) {
            entry.cancel = None;
        }
        self.shared.refresh.notify();
        let shown = match (&end, shows) {
            (AnswerUpdate::Answer(answer), true) => Some(answer.answer.clone()),
            (AnswerUpdate::Error(error), true) => Some(error.clone()),
            (AnswerUpdate::Step(_), true) | (_, false) => None,
        };
        self.tell(&id, end).await;
        if let Some(text) = shown {
            self.shared
                .window
                .show_document(&format!("{}.md", id.0), &text)
                .await;
        }
    }

    /// Sends the steps of a question to the client in order, until the channel is closed.
    async fn forward(&self, id: &AskId, mut steps: mpsc::UnboundedReceiver<Step>) {
        while let Some(step) = steps.recv().await {
            self.tell(id, AnswerUpdate::Step(step)).await;
        }
    }

    async fn tell(&self, id: &AskId, update: AnswerUpdate) {
        let params = AnswerParams {
            ask: id.clone(),
            update,
        };
        let plugin = &self.shared.plugin;
        plugin.notify::<AnswerNotification>(params).await;
    }

    async fn answered(
        &self,
        plan: AskPlan,
        steps: mpsc::UnboundedSender<Step>,
    ) -> Result<Answer, String> {
        let AskParams {
            question,
            symbol,
            session: name,
            model,
            limits,
        } = plan.params;
        let buffers = plan.buffers.await.unwrap_or_default();
        let root = plan.settings.root.unwrap_or_default();
        let of_root = root.clone();
        let overlay = spawn_blocking(move || listed_overlay(of_root, buffers));
        let opening = OpenRequest {
            overlay: overlay.await.unwrap_or_default(),
            root,
            test: None,
            limits: limits.clone(),
            model,
        };
        let opened = (self.shared.services.open)(opening).await;
        let OpenedRun {
            defaults,
            models,
            index,
            ..
        } = opened.map_err(|error| format!("{error:#}"))?;
        let files = index.snapshot();
        let known = name.as_ref().and_then(|name| self.session(name));
        let session = known
            .and_then(|known| known.resumed(files).ok())
            .unwrap_or_else(|| Session::new(files));
        let query = Query {
            text: match symbol {
                Some(symbol) => format!("About `{symbol}`: {question}"),
                None => question,
            },
            limits: limits.over(&defaults.limits),
        };
        let models = Models {
            reader: models.scout,
            owner: models.agent,
        };
        let watcher = Box::new(move |step: &Step| {
            if let Step::Writing { .. } = step {
                return;
            }
            // Sending fails if the receiver is dropped; then the step is not needed.
            let _ = steps.send(step.clone());
        });
        let answered = starling_ask::ask(query, index, models, session, watcher).await;
        let (answer, session) = answered.map_err(|error| error.to_string())?;
        if let Some(name) = name {
            self.keep(name, session);
        }
        Ok(answer)
    }

    fn session(&self, name: &str) -> Option<Session> {
        self.lock().sessions.get(name).cloned()
    }

    fn keep(&self, name: String, session: Session) {
        let mut state = self.lock();
        if state.sessions.len() >= MAX_KEPT && !state.sessions.contains_key(&name) {
            state.sessions.pop_first();
        }
        state.sessions.insert(name, session);
    }

    fn lock(&self) -> MutexGuard<'_, AskTable> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl AskTable {
    /// Adds a question and removes the oldest ended one if there are too many.
    fn add(&mut self, entry: AskEntry) {
        if self.entries.len() >= MAX_KEPT
            && let Some(old) = self.entries.iter().position(|one| one.cancel.is_none())
        {
            self.entries.remove(old);
        }
        self.entries.push(entry);
    }

    fn find(&mut self, id: &AskId) -> Option<&mut AskEntry> {
        self.entries.iter_mut().find(|entry| entry.id == *id)
    }
}

fn next_id() -> AskId {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    AskId(format!("{}-ask-{count:03}", std::process::id()))
}
