//! The state of a run that its agents and tasks share. The lock on this state is held briefly and
//! never across an `await`.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Semaphore, SetOnce, watch};
use tokio_util::sync::CancellationToken;

use crate::agent::turns::{self, AgentState};
use crate::budget::{Budget, Exhausted};
use crate::check::checks::Draft;
use crate::check::diagnose;
use crate::check::new_tests::WithoutChange;
use crate::check::selection::{SelectionPolicy, TestScope};
use crate::contract::broken::Mentions;
use crate::event::dependencies::Dependencies;
use crate::event::events::{ActorId, AgentOutcome, Cause, Event, EventLog};
use crate::evidence::proposal::{OnlyAsChanged, ProposalId, TestEvidence};
use crate::excerpt::Focus;
use crate::lookup::{Lookup, Served};
use crate::proposal::apply::Applied;
use crate::proposal::joint_check::{Sets, Waiting};
use crate::protocol::Propose;
use crate::run::lifecycle::{RunServices, Task};
use crate::run::suspects::Suspect;
use crate::state::answers::Answers;
use crate::state::signal::Signal;
use crate::task::goal::{self, Goal};
use crate::task::names::Names;
use crate::task::stated::{self, Statements};
use starling_core::{Driver, TestReport};
use starling_index::Index;
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::{PathPolicy, Snapshot, UnusualPaths, WriteRule};

/// Maximum number of messages in an agent's inbox. [`RunContext::wake`] fails when the inbox is full.
const INBOX: usize = 16;

/// The shared state of a run.
pub(crate) struct RunContext {
    pub task: Task,
    pub goal: Goal,
    pub services: RunServices,
    pub log: EventLog,
    pub budget: Budget,
    pub cancel: CancellationToken,
    /// The part of every prompt that stays the same during the run. Agents wait until it is set.
    pub frozen: SetOnce<String>,
    stated: OnceLock<Statements>,
    /// Data files that only tests and the test command read; unset until they are looked for.
    pub read_data: OnceLock<BTreeSet<FilePath>>,
    /// Limits the number of concurrent test runs.
    pub testing: Semaphore,
    /// Raised when a waiting proposal, a draft, a set or an agent's activity changes.
    pub waited: Signal,
    /// Held while the tests that fail in the current workspace are determined.
    pub learning: tokio::sync::Mutex<()>,
    /// Held while an edit is sent to the editor.
    pub applying: tokio::sync::Mutex<()>,
    working: watch::Sender<usize>,
    state: Mutex<State>,
}

pub(crate) struct State {
    /// The workspace with everything that was accepted so far.
    pub world: Snapshot,
    /// Version of `world`. Results from an earlier epoch may be outdated.
    pub epoch: Epoch,
    /// Index of `world`, which reads files on first use.
    pub index: Arc<Index>,
    agents: BTreeMap<ActorId, Slot>,
    pub answers: Answers,
    /// The words that excerpts focus on, taken from the task and the failing tests.
    pub focus: Arc<Focus>,
    /// Facts about names that a language server returned.
    pub served: Arc<Served>,
    pub located: Vec<crate::event::events::Candidate>,
    /// Symbols that a small model changes next, the most likely first.
    pub suspects: VecDeque<Suspect>,
    /// The workspace that the scout saw. Drafts that the scout writes for agents are based on it.
    pub scouted_in: Option<Snapshot>,
    pub before: Option<TestReport>,
    /// Failing tests that have to pass in the end.
    pub required: BTreeSet<String>,
    /// Failing tests that use a file named in the task. The task may be about these tests.
    pub near: BTreeSet<String>,
    /// Failing tests that the task says to leave.
    pub excluded: BTreeSet<String>,
    /// The symbols and files that the task names; `None` until they have been looked up.
    pub task_names: Option<Names>,
    /// Symbols that the task names or the scout picked.
    pub targets: Vec<SymbolPath>,
    /// Tests known to fail in the current `world`.
    pub failing: BTreeSet<String>,
    /// Tests known to fail in the workspace before the run.
    pub failing_before: BTreeSet<String>,
    /// Tests known to run in the current `world` when the whole test command runs. A change must
    /// not stop these tests from running.
    pub expected: BTreeSet<String>,
    /// Tests that may be absent from the last test run, because the task asked for their removal or
    /// a person accepted it.
    pub let_go: BTreeSet<String>,
    /// Selected test ids for which no test runs, whatever is changed.
    pub never_run: BTreeSet<String>,
    /// Tests that the task or an agent named.
    pub named: Vec<String>,
    pub reach: TestScope,
    pub habit: SelectionPolicy,
    /// Report of the last test run over the current `world`.
    pub latest: Option<TestReport>,
    /// The epoch whose last report was checked by a repeated test run, with the required tests that
    /// both failed and passed there.
    pub repeated: Option<(Epoch, Vec<String>)>,
    /// Tests that failed in more than one run on the text without a change.
    pub failed_again: BTreeSet<String>,
    /// Tests that failed and passed on the text without a change.
    pub unsteady_before: BTreeSet<String>,
    /// The tests that pass only with the run's changes to the tests, with the epoch in which that
    /// was found.
    pub only_as_changed: Option<(Epoch, OnlyAsChanged)>,
    /// True if the task describes a bug in code that no failing test reaches. The failing tests are
    /// then not part of the task.
    pub beside_failures: bool,
    /// Agents with a prepared draft that has not become a waiting proposal yet.
    pub drafts: BTreeSet<ActorId>,
    /// Problems that the changes introduced, as text, from the last check.
    pub problems: Vec<String>,
    /// Results of the run's new tests on the original code, if these tests were tried at the end.
    pub new_tests: WithoutChange,
    /// Changed functions without whose change the tests that show the run's change pass as well.
    pub unshown_parts: Vec<SymbolPath>,
    pub applied: Vec<Applied>,
    /// The dependencies of each proposal that is applied or being applied.
    pub dependencies: BTreeMap<ProposalId, Dependencies>,
    /// For each owner, the symbols whose contract changes the owner was asked to follow.
    pub told_of: BTreeMap<SymbolPath, BTreeSet<SymbolPath>>,
    /// Proposals that have been drafted and have not ended.
    pub waiting: BTreeMap<ProposalId, Waiting>,
    /// Sets of proposals that are, or were, tested together.
    pub sets: Sets,
    /// The last draft of each changed contract whose callers were notified.
    pub changes: HashMap<SymbolPath, Arc<(Draft, Mentions)>>,
    /// Text of the problems that the approver saw in accepted proposals.
    pub accepted_problems: BTreeSet<String>,
    /// The proposals that the approver accepted, whether or not they are applied yet.
    pub accepted: Vec<Accepted>,
    pub exhausted: Option<String>,
    /// For each symbol, why its last accepted proposal could not be applied.
    pub unapplied: BTreeMap<SymbolPath, String>,
    /// Number of chosen candidates for each model.
    pub tally: BTreeMap<String, u32>,
    /// Contract changes whose callers were notified already.
    pub followed: BTreeSet<(SymbolPath, String)>,
    /// Owners that a follow-up could not reach.
    pub missed: BTreeSet<SymbolPath>,
    /// Symbols whose owners could not be woken.
    pub not_woken: BTreeSet<String>,
    /// Set when the changes of an unsettled run were reverted; the inner value is the file that
    /// holds the patch.
    pub taken_back: Option<Option<String>>,
    pub proposals: u32,
    pub questions: u32,
    /// Applied members of a set that could neither be completed nor reverted.
    pub left_alone: BTreeSet<ProposalId>,
    /// Number of conversations started with each name.
    names: HashMap<String, u32>,
    /// True when the run is ending. No agent can be woken then.
    is_ending: bool,
}

/// Identifies a state of the workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Epoch {
    /// Number of proposals that were applied or reverted.
    pub changes: u64,
    /// Number of texts that the user changed.
    pub typed: u64,
}

/// A proposal that the approver accepted.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    pub id: ProposalId,
    pub symbol: SymbolPath,
    pub reason: String,
    pub diff: String,
}

impl State {
    /// Updates the known failing tests with the test results of an applied change.
    pub fn note_tests(&mut self, id: ProposalId, tests: &TestEvidence) {
        if let TestEvidence::Known { fixed, broken, .. } = tests {
            self.failing.retain(|id| !fixed.contains(id));
            self.failing.extend(broken.iter().cloned());
            self.expected.retain(|id| !broken.contains(id));
            self.let_go.extend(broken.iter().cloned());
            if let Some(applied) = self.applied.iter_mut().find(|one| one.id == id) {
                applied.fixed.clone_from(fixed);
                applied.broken.clone_from(broken);
            }
        }
    }

    /// Updates the text of a file; `None` means that the file is gone.
    pub fn change_world(&mut self, file: &FilePath, text: Option<&Arc<str>>) {
        self.world = self.world.with(file.clone(), text.cloned());
        self.index = Arc::new(self.index.after(self.world.clone()));
    }
}

#[derive(Default)]
struct Slot {
    inbox: VecDeque<Cause>,
    working: bool,
    /// The agent's state between two pieces of work.
    parked: Option<AgentState>,
    /// The intent that the agent stated last.
    intent: Option<String>,
    /// Why the agent was last woken, as text.
    told: String,
    /// A change that was already written for the agent.
    draft: Option<Propose>,
    /// Whether the agent counts against the limit of agents.
    is_counted: bool,
}

/// Why an agent could not be woken. The message is shown to the sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WakeError {
    #[error("{0}")]
    NoSymbol(String),
    #[error("{0}")]
    Exhausted(#[from] Exhausted),
    #[error("the owner of {0} has too much to do already")]
    Full(SymbolPath),
    #[error("the run is ending")]
    Ending,
}

impl RunContext {
    pub fn new(task: Task, services: RunServices, log: EventLog) -> Arc<RunContext> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (working, _) = watch::channel(0);
        let state = State {
            world: services.index.snapshot().clone(),
            epoch: Epoch::default(),
            index: services.index.clone(),
            agents: BTreeMap::new(),
            answers: Answers::default(),
            focus: Arc::new(Focus::of(&task.text)),
            served: Arc::default(),
            located: Vec::new(),
            suspects: VecDeque::new(),
            before: None,
            required: BTreeSet::new(),
            targets: Vec::new(),
            failing: BTreeSet::new(),
            near: BTreeSet::new(),
            excluded: BTreeSet::new(),
            task_names: None,
            failing_before: BTreeSet::new(),
            expected: BTreeSet::new(),
            let_go: BTreeSet::new(),
            never_run: BTreeSet::new(),
            named: Vec::new(),
            reach: TestScope::WHOLE,
            habit: SelectionPolicy::default(),
            latest: None,
            repeated: None,
            failed_again: BTreeSet::new(),
            unsteady_before: BTreeSet::new(),
            only_as_changed: None,
            beside_failures: false,
            drafts: BTreeSet::new(),
            problems: Vec::new(),
            new_tests: WithoutChange::default(),
            unshown_parts: Vec::new(),
            applied: Vec::new(),
            dependencies: BTreeMap::new(),
            told_of: BTreeMap::new(),
            waiting: BTreeMap::new(),
            sets: Sets::default(),
            changes: HashMap::new(),
            scouted_in: None,
            accepted_problems: BTreeSet::new(),
            accepted: Vec::new(),
            exhausted: None,
            unapplied: BTreeMap::new(),
            tally: BTreeMap::new(),
            followed: BTreeSet::new(),
            missed: BTreeSet::new(),
            not_woken: BTreeSet::new(),
            taken_back: None,
            proposals: 0,
            questions: 0,
            left_alone: BTreeSet::new(),
            names: HashMap::new(),
            is_ending: false,
        };
        Arc::new(RunContext {
            goal: goal::of(&task.text),
            budget: Budget::new(task.limits.clone()),
            task,
            services,
            log,
            cancel: CancellationToken::new(),
            frozen: SetOnce::new(),
            stated: OnceLock::new(),
            read_data: OnceLock::new(),
            testing: Semaphore::new(cores),
            waited: Signal::default(),
            learning: tokio::sync::Mutex::new(()),
            applying: tokio::sync::Mutex::new(()),
            working,
            state: Mutex::new(state),
        })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether changes that no test proves are rejected.
    pub fn must_prove(&self) -> bool {
        self.task.require_tests && !self.task.approval.is_by_person()
    }

    /// Returns the policy that says which paths can be read and written.
    pub fn policy(&self) -> PathPolicy {
        self.state().world.policy().clone()
    }

    pub fn event(&self, event: Event) {
        self.log.event(event);
    }

    /// Returns the changes that the task states for symbols, resolved in the workspace before the
    /// run.
    pub fn stated(&self) -> &Statements {
        self.stated.get_or_init(|| {
            let index = Arc::clone(&self.services.index);
            let lookup = Lookup::new(index.snapshot().clone(), index);
            stated::of(&lookup, &self.task.text)
        })
    }

    /// Returns a lookup over the current workspace, which includes all accepted changes.
    pub fn lookup(&self) -> Lookup {
        let state = self.state();
        let lookup = Lookup::new(state.world.clone(), Arc::clone(&state.index));
        lookup
            .with_focus(Arc::clone(&state.focus))
            .with_served(Arc::clone(&state.served))
    }

    /// Returns the unusual paths of the current workspace, which a text search can find only
    /// because they are known.
    pub fn unusual_paths(&self) -> UnusualPaths {
        self.state().world.unusual_paths()
    }

    /// Updates the workspace with the user's texts from the editor, which were read at `epoch`.
    ///
    /// Returns `false` and changes nothing if the workspace has changed since `epoch`, because the
    /// texts may be outdated.
    pub fn saw<'t>(
        &self,
        epoch: Epoch,
        texts: impl IntoIterator<Item = (&'t FilePath, Option<&'t Arc<str>>)>,
    ) -> bool {
        let mut state = self.state();
        if state.epoch != epoch {
            return false;
        }
        for (file, text) in texts {
            let known = state.world.read(file).ok();
            if known.as_ref() != text {
                state.change_world(file, text);
                state.epoch.typed += 1;
                state.answers.forget(&[SymbolPath::module(file.clone())]);
                state.latest = None;
            }
        }
        true
    }

    /// Returns a conversation name that is unique in this run. A second use of a name gets the
    /// suffix ` #2`.
    pub fn unique_name(&self, name: String) -> String {
        let mut state = self.state();
        let count = state.names.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 {
            name
        } else {
            format!("{name} #{count}")
        }
    }

    pub fn next_proposal(&self) -> ProposalId {
        let mut state = self.state();
        state.proposals += 1;
        ProposalId(state.proposals)
    }

    /// Gives work to the owner of a symbol, and starts the agent if it is idle.
    ///
    /// # Errors
    /// Returns a [`WakeError`] with a message for the sender.
    pub fn wake(self: &Arc<Self>, symbol: &SymbolPath, cause: Cause) -> Result<ActorId, WakeError> {
        self.wake_with(symbol, cause, None)
    }

    /// Gives work to the owner of a symbol, with an optional change that was already written.
    ///
    /// The change is proposed first, and the agent counts against the limit only if the change
    /// comes back. With [`Cause::Picked`] the symbol may be a file that does not exist yet.
    ///
    /// # Errors
    /// Returns the same errors as [`RunContext::wake`].
    pub fn wake_with(
        self: &Arc<Self>,
        symbol: &SymbolPath,
        cause: Cause,
        draft: Option<Propose>,
    ) -> Result<ActorId, WakeError> {
        if self.cancel.is_cancelled() {
            return Err(WakeError::Ending);
        }
        let actor = match self.task.driver {
            Driver::Single => ActorId::Solo,
            Driver::Swarm => {
                if let WriteRule::Never { why } = self.policy().may_write(&symbol.file) {
                    return Err(WakeError::NoSymbol(why));
                }
                let lookup = self.lookup();
                let is_pick = matches!(cause, Cause::Picked { .. });
                if !(is_pick && lookup.is_new_file(symbol)) {
                    lookup.symbol(symbol).map_err(WakeError::NoSymbol)?;
                }
                ActorId::Agent(symbol.clone())
            }
        };
        let start = {
            let mut state = self.state();
            if state.is_ending {
                return Err(WakeError::Ending);
            }
            let is_counted = state.agents.get(&actor).is_some_and(|slot| slot.is_counted);
            if !is_counted && draft.is_none() {
                self.budget.count_agent()?;
            }
            let slot = state.agents.entry(actor.clone()).or_default();
            slot.is_counted |= draft.is_none();
            if slot.inbox.len() >= INBOX {
                return Err(WakeError::Full(symbol.clone()));
            }
            slot.inbox.push_back(cause.clone());
            slot.told = match slot.working && !slot.told.is_empty() {
                true => format!("{}; {}", slot.told, cause.in_short()),
                false => cause.in_short(),
            };
            let is_draft = draft.is_some();
            slot.draft = draft.or(slot.draft.take());
            if is_draft {
                state.drafts.insert(actor.clone());
            }
            let slot = state.agents.entry(actor.clone()).or_default();
            !std::mem::replace(&mut slot.working, true)
        };
        self.event(Event::AgentWoken {
            agent: actor.clone(),
            cause,
        });
        if start {
            self.spawn(actor.clone());
        }
        Ok(actor)
    }

    /// Notes that the prepared draft of an agent became a waiting proposal, or was dropped.
    pub fn draft_arrived(&self, actor: &ActorId) {
        if self.state().drafts.remove(actor) {
            self.waited.raise();
        }
    }

    /// Counts an agent that was woken with a draft and now needs a conversation.
    ///
    /// # Errors
    /// Returns [`Exhausted`] when the limit of agents is reached.
    pub fn count_agent(&self, actor: &ActorId) -> Result<(), Exhausted> {
        let mut state = self.state();
        let Some(slot) = state.agents.get_mut(actor) else {
            return Ok(());
        };
        if !slot.is_counted {
            self.budget.count_agent()?;
            slot.is_counted = true;
        }
        Ok(())
    }

    /// Logs that the owner of a symbol could not be woken. The sender is notified separately.
    pub fn not_woken(&self, symbol: String, from: &ActorId, why: String) {
        self.state().not_woken.insert(symbol.clone());
        self.event(Event::NotWoken {
            symbol,
            from: from.clone(),
            why,
        });
    }

    fn spawn(self: &Arc<Self>, actor: ActorId) {
        let guard = WorkGuard::new(Arc::clone(self), actor.clone());
        let run = Arc::clone(self);
        tokio::spawn(async move {
            let _guard = guard;
            if let ActorId::Agent(symbol) = &actor {
                diagnose::prepare(&run, &symbol.file);
            }
            let work = async {
                // The user may steer an agent before the first test run has ended.
                run.frozen.wait().await;
                turns::work(&run, &actor).await;
            };
            // Cancellation is checked first, so that no model call starts after a cancel.
            tokio::select! {
                biased;
                () = run.cancel.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// Returns an agent's next work and its [`AgentState`]. With an empty inbox it returns `None` and
    /// marks the agent as idle.
    pub fn take_work(&self, actor: &ActorId) -> Option<(AgentState, Vec<Cause>)> {
        let mut state = self.state();
        let slot = state.agents.get_mut(actor)?;
        if slot.inbox.is_empty() {
            slot.working = false;
            return None;
        }
        let causes = slot.inbox.drain(..).collect();
        let mut agent = slot
            .parked
            .take()
            .unwrap_or_else(|| AgentState::new(actor.clone()));
        agent.draft = slot.draft.take();
        Some((agent, causes))
    }

    pub fn park(&self, agent: AgentState) {
        if let Some(slot) = self.state().agents.get_mut(&agent.actor) {
            slot.parked = Some(agent);
        }
    }

    /// Returns the symbols whose agents gave up in the current epoch.
    pub fn gave_up_on_this(&self) -> Vec<SymbolPath> {
        let state = self.state();
        let minds = state
            .agents
            .values()
            .filter_map(|slot| slot.parked.as_ref());
        let here = minds.filter(|agent| agent.gave_up_at == Some(state.epoch));
        here.filter_map(|agent| agent.actor.symbol().cloned())
            .collect()
    }

    /// Removes and returns all messages in an agent's inbox.
    pub fn take_inbox(&self, actor: &ActorId) -> Vec<Cause> {
        let mut state = self.state();
        state
            .agents
            .get_mut(actor)
            .map(|slot| slot.inbox.drain(..).collect())
            .unwrap_or_default()
    }

    /// Adds a message to the inbox of a working agent. Returns whether the message was added.
    pub fn tell_if_working(&self, actor: &ActorId, cause: Cause) -> bool {
        let mut state = self.state();
        match state.agents.get_mut(actor) {
            Some(slot) if slot.working && slot.inbox.len() < INBOX => {
                slot.inbox.push_back(cause);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Returns the other owners that are at work, each with the reason it was last woken.
    pub fn told_others(&self, but: &SymbolPath) -> Vec<String> {
        let state = self.state();
        let is_done = |actor: &ActorId| {
            let waits = state.waiting.values().any(|one| is(actor, &one.symbol));
            !waits && state.accepted.iter().any(|one| is(actor, &one.symbol))
        };
        let others = state.agents.iter().filter(|(actor, slot)| {
            slot.working && **actor != ActorId::Agent(but.clone()) && !is_done(actor)
        });
        let line = |(actor, slot): (&ActorId, &Slot)| match actor {
            ActorId::Agent(symbol) => {
                let mut told: String = slot.told.chars().take(400).collect();
                if told.len() < slot.told.len() {
                    told.push('…');
                }
                Some(format!("{symbol}: {told}"))
            }
            ActorId::User | ActorId::Scout | ActorId::Proxy | ActorId::Starling | ActorId::Solo => {
                None
            }
        };
        others.filter_map(line).take(8).collect()
    }

    /// Returns all agents that are at work.
    pub fn at_work(&self) -> Vec<ActorId> {
        let state = self.state();
        state
            .agents
            .iter()
            .filter(|(_, slot)| slot.working)
            .map(|(actor, _)| actor.clone())
            .collect()
    }

    /// Prevents further wakes unless an agent is at work. Returns whether the run can end.
    pub fn end_unless_at_work(&self) -> bool {
        let mut state = self.state();
        state.is_ending = !state.agents.values().any(|slot| slot.working);
        state.is_ending
    }

    /// Returns the symbols of all agents that were woken.
    pub fn owners(&self) -> Vec<SymbolPath> {
        let symbol = |actor: &ActorId| match actor {
            ActorId::Agent(symbol) => Some(symbol.clone()),
            ActorId::User | ActorId::Scout | ActorId::Proxy | ActorId::Starling | ActorId::Solo => {
                None
            }
        };
        self.state().agents.keys().filter_map(symbol).collect()
    }

    /// Returns the agent that owns a symbol: the innermost woken owner that encloses the symbol.
    pub fn owner_of(&self, symbol: &SymbolPath) -> Option<SymbolPath> {
        self.owners()
            .into_iter()
            .filter(|owner| owner.encloses(symbol) && (!owner.is_module() || owner == symbol))
            .max_by_key(|owner| owner.name.len())
    }

    /// Returns the recipient and the text of a message about a symbol. If another symbol owns this
    /// symbol, the recipient is that owner and the text names the symbol; otherwise the recipient
    /// is the symbol itself.
    pub fn addressee(&self, symbol: &SymbolPath, text: &str) -> (SymbolPath, String) {
        match self.owner_of(symbol) {
            Some(owner) if owner != *symbol => (owner, format!("{symbol}: {text}")),
            Some(_) | None => (symbol.clone(), text.to_owned()),
        }
    }

    pub fn set_intent(&self, actor: &ActorId, intent: &str) {
        if let Some(slot) = self.state().agents.get_mut(actor) {
            slot.intent = Some(intent.to_owned());
        }
    }

    pub fn intent_of(&self, actor: &ActorId) -> Option<String> {
        self.state()
            .agents
            .get(actor)
            .and_then(|slot| slot.intent.clone())
    }

    /// Returns the files that applied proposals changed.
    pub fn changed_files(&self) -> BTreeSet<FilePath> {
        self.state()
            .applied
            .iter()
            .map(|applied| applied.file.clone())
            .collect()
    }

    /// Keeps [`RunContext::quiet`] waiting until the returned guard is dropped.
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.working.send_modify(|count| *count += 1);
        Busy {
            run: Arc::clone(self),
        }
    }

    /// Waits until no agent is at work and no edit is being sent to the editor.
    pub async fn quiet(&self) {
        let mut working = self.working.subscribe();
        // The sender is a field of `self`, so this wait cannot fail.
        let _ = working.wait_for(|count| *count == 0).await;
    }
}

fn is(actor: &ActorId, symbol: &SymbolPath) -> bool {
    matches!(actor, ActorId::Agent(own) if own == symbol)
}

/// Keeps [`RunContext::quiet`] waiting until dropped.
pub(crate) struct Busy {
    run: Arc<RunContext>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.run.working.send_modify(|count| *count -= 1);
    }
}

/// Counts an agent as working until its task ends, also by a panic or a cancel.
struct WorkGuard {
    run: Arc<RunContext>,
    actor: ActorId,
    /// Dropped last, so that the agent is idle before it stops being counted.
    _busy: Busy,
}

impl WorkGuard {
    fn new(run: Arc<RunContext>, actor: ActorId) -> Self {
        let _busy = run.busy();
        WorkGuard { run, actor, _busy }
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let outcome = AgentOutcome::GaveUp {
                why: "internal error; see the log".to_owned(),
            };
            let agent = self.actor.clone();
            self.run.event(Event::AgentFinished {
                agent,
                outcome,
                summary: String::new(),
            });
        }
        // After a normal end, `take_work` has cleared the flag already, and the agent may be
        // working again.
        let cut_short = std::thread::panicking() || self.run.cancel.is_cancelled();
        if cut_short && let Some(slot) = self.run.state().agents.get_mut(&self.actor) {
            slot.working = false;
        }
        // Tasks that wait for proposals of other agents check their condition again.
        self.run.waited.raise();
    }
}
