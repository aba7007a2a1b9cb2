//! The hub: who is at work, what they have to do, and the state that they share. Its lock is held for
//! moments only, never across a wait.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Semaphore, SetOnce, watch};
use tokio_util::sync::CancellationToken;

use super::agent::{self, Mind};
use super::answers::Answers;
use super::apply::Applied;
use super::broken::Mentions;
use super::company::{Sets, Waiting};
use super::dependencies::Dependencies;
use super::diagnose;
use super::event::{AgentOutcome, Cause, Event, EventLog, Party};
use super::excerpt::Focus;
use super::gate::Draft;
use super::goal::{self, Goal};
use super::ledger::{Exhausted, Ledger};
use super::lookup::{Lookup, Served};
use super::names::Names;
use super::new_tests::WithoutChange;
use super::proposal::{OnlyAsChanged, ProposalId, TestEvidence};
use super::protocol::Propose;
use super::run::{Outside, Task};
use super::selection::{Habit, Reach};
use super::signal::Signal;
use super::stated::{self, Statements};
use super::suspects::Suspect;
use starling_core::{Driver, TestReport};
use starling_index::Index;
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::{PathPolicy, Snapshot, UnusualPaths, WriteRule};

/// What waits for an agent at most; more is refused to the sender.
const INBOX: usize = 16;

/// The shared state of a run.
pub(super) struct Hub {
    pub task: Task,
    pub goal: Goal,
    pub outside: Outside,
    pub log: EventLog,
    pub ledger: Ledger,
    pub cancel: CancellationToken,
    /// The frozen part of all prompts. No agent works before it is set.
    pub frozen: SetOnce<String>,
    stated: OnceLock<Statements>,
    /// Test runs at the same time.
    pub testing: Semaphore,
    /// Raised when something changes of what waits.
    pub waited: Signal,
    /// Held while it is found out what fails in everything accepted.
    pub learning: tokio::sync::Mutex<()>,
    /// Held while one edit goes to the editor.
    pub applying: tokio::sync::Mutex<()>,
    working: watch::Sender<usize>,
    state: Mutex<State>,
}

pub(super) struct State {
    /// The workspace with everything that was accepted so far.
    pub world: Snapshot,
    /// Of `world`: what was found out in an earlier one may hold no more.
    pub epoch: Epoch,
    /// Of `world`; read when it is first asked.
    pub index: Arc<Index>,
    agents: BTreeMap<Party, Slot>,
    pub answers: Answers,
    /// What readers look for, as the task and the failing tests say.
    pub focus: Arc<Focus>,
    /// What a language server said of names.
    pub served: Arc<Served>,
    pub located: Vec<super::event::Candidate>,
    /// What a small model tries next, likeliest first.
    pub suspects: VecDeque<Suspect>,
    /// The workspace that the scout was shown; what it writes for agents is meant for that.
    pub scouted_in: Option<Snapshot>,
    pub before: Option<TestReport>,
    /// Failing tests that have to pass in the end.
    pub required: BTreeSet<String>,
    /// Failing tests that use a file which the task names: it may be about them.
    pub near: BTreeSet<String>,
    /// What the task names, once that was looked for.
    pub task_names: Option<Names>,
    /// Symbols that the task names or that the scout picked.
    pub targets: Vec<SymbolPath>,
    /// Tests that fail on the world as it is now, as far as is known.
    pub failing: BTreeSet<String>,
    /// The same of the world before the run.
    pub failing_before: BTreeSet<String>,
    /// Tests that run in the whole command on the world as it is now, as far as is known: a change must
    /// not keep them from running.
    pub expected: BTreeSet<String>,
    /// Tests that may be absent from the last test run, because the task asked for their removal or a
    /// person accepted it.
    pub let_go: BTreeSet<String>,
    /// Selected entries of which no test runs, whatever is changed.
    pub never_run: BTreeSet<String>,
    /// Tests that the task or an agent named.
    pub named: Vec<String>,
    pub reach: Reach,
    pub habit: Habit,
    /// The last test run over the world as it is now.
    pub latest: Option<TestReport>,
    /// The state of the workspace whose last report was judged by running tests again, and the required
    /// tests that failed and passed there.
    pub repeated: Option<(Epoch, Vec<String>)>,
    /// Tests that failed in more than one run on the text without a change.
    pub failed_again: BTreeSet<String>,
    /// Tests that failed and passed on the text without a change.
    pub unsteady_before: BTreeSet<String>,
    /// The tests that pass only as the run changed them, in the world of that epoch.
    pub only_as_changed: Option<(Epoch, OnlyAsChanged)>,
    /// The task tells of a bug in code that no failing test reaches: they are no part of it.
    pub beside_failures: bool,
    /// Agents with a ready draft that is not among those that wait yet.
    pub drafts: BTreeSet<Party>,
    /// Problems that the changes brought, as the last check found them, in words.
    pub problems: Vec<String>,
    /// What the run's new tests do on the code as it was, where that was tried at the end.
    pub new_tests: WithoutChange,
    pub applied: Vec<Applied>,
    /// The proposals that others belong to, applied or on their way.
    pub dependencies: BTreeMap<ProposalId, Dependencies>,
    /// The symbols whose changed contracts each owner was told to follow.
    pub told_of: BTreeMap<SymbolPath, BTreeSet<SymbolPath>>,
    /// Proposals between their drafts and their ends.
    pub waiting: BTreeMap<ProposalId, Waiting>,
    /// Proposals that are tested, or were tested, as one.
    pub sets: Sets,
    /// Changed contracts whose callers were told: the last draft of each.
    pub changes: HashMap<SymbolPath, Arc<(Draft, Mentions)>>,
    /// The words of problems that the approver saw with what it said yes to.
    pub accepted_problems: BTreeSet<String>,
    /// What the approver said yes to, applied or about to be.
    pub accepted: Vec<Accepted>,
    pub exhausted: Option<String>,
    /// Why the last accepted proposal for a symbol could not be applied.
    pub unapplied: BTreeMap<SymbolPath, String>,
    /// How often a model's candidate won.
    pub tally: BTreeMap<String, u32>,
    /// Contracts that were followed up already.
    pub followed: BTreeSet<(SymbolPath, String)>,
    /// Owners that a follow-up did not reach.
    pub missed: BTreeSet<SymbolPath>,
    /// Symbols whose owners were to be given work and could not be.
    pub not_woken: BTreeSet<String>,
    /// The changes of the unsettled run were taken back; the file that keeps them.
    pub taken_back: Option<Option<String>>,
    pub proposals: u32,
    pub questions: u32,
    /// Applied parts of a set that could neither be completed nor taken back.
    pub left_alone: BTreeSet<ProposalId>,
    /// How often a conversation of a name was begun.
    names: HashMap<String, u32>,
    /// The run ends: nobody is woken any more.
    is_ending: bool,
}

/// Which state of the workspace something is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Epoch {
    /// Counts the proposals that were applied or taken back.
    pub changes: u64,
    /// Counts the texts that the user changed.
    pub typed: u64,
}

/// A proposal that the approver said yes to.
#[derive(Debug, Clone)]
pub(super) struct Accepted {
    pub id: ProposalId,
    pub symbol: SymbolPath,
    pub reason: String,
    pub diff: String,
}

impl State {
    /// What the tests said of a change that was applied.
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

    /// A file has another text now, or is gone.
    pub fn change_world(&mut self, file: &FilePath, text: Option<&Arc<str>>) {
        self.world = self.world.with(file.clone(), text.cloned());
        self.index = Arc::new(self.index.after(self.world.clone()));
    }
}

#[derive(Default)]
struct Slot {
    inbox: VecDeque<Cause>,
    working: bool,
    /// The agent between two pieces of work.
    parked: Option<Mind>,
    /// What it last said it means to do.
    intent: Option<String>,
    /// Why it was last woken, in words.
    told: String,
    /// A change that was written for it.
    draft: Option<Propose>,
    /// Whether it counts against the limit of agents.
    is_counted: bool,
}

/// Why an agent could not be given work. The text is for the one who asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WakeError {
    #[error("{0}")]
    NoSymbol(String),
    #[error("{0}")]
    Exhausted(#[from] Exhausted),
    #[error("the owner of {0} has too much to do already")]
    Full(SymbolPath),
    #[error("the run is ending")]
    Ending,
}

impl Hub {
    pub fn new(task: Task, outside: Outside, log: EventLog) -> Arc<Hub> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (working, _) = watch::channel(0);
        let state = State {
            world: outside.index.snapshot().clone(),
            epoch: Epoch::default(),
            index: outside.index.clone(),
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
            task_names: None,
            failing_before: BTreeSet::new(),
            expected: BTreeSet::new(),
            let_go: BTreeSet::new(),
            never_run: BTreeSet::new(),
            named: Vec::new(),
            reach: Reach::WHOLE,
            habit: Habit::default(),
            latest: None,
            repeated: None,
            failed_again: BTreeSet::new(),
            unsteady_before: BTreeSet::new(),
            only_as_changed: None,
            beside_failures: false,
            drafts: BTreeSet::new(),
            problems: Vec::new(),
            new_tests: WithoutChange::default(),
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
        Arc::new(Hub {
            goal: goal::of(&task.text),
            ledger: Ledger::new(task.limits.clone()),
            task,
            outside,
            log,
            cancel: CancellationToken::new(),
            frozen: SetOnce::new(),
            stated: OnceLock::new(),
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

    /// Whether a change that no test proves is not applied.
    pub fn must_prove(&self) -> bool {
        self.task.require_tests && !self.task.approval.is_by_person()
    }

    /// What may be read and written in the workspace.
    pub fn policy(&self) -> PathPolicy {
        self.state().world.policy().clone()
    }

    pub fn event(&self, event: Event) {
        self.log.event(event);
    }

    /// The workspace with everything that was accepted so far, to look things up in.
    /// What the task says must become of symbols, as they were before the run.
    pub fn stated(&self) -> &Statements {
        self.stated.get_or_init(|| {
            let index = Arc::clone(&self.outside.index);
            let lookup = Lookup::new(index.snapshot().clone(), index);
            stated::of(&lookup, &self.task.text)
        })
    }

    pub fn lookup(&self) -> Lookup {
        let state = self.state();
        let lookup = Lookup::new(state.world.clone(), Arc::clone(&state.index));
        lookup
            .with_focus(Arc::clone(&state.focus))
            .with_served(Arc::clone(&state.served))
    }

    /// Paths of the run's world that are found in a text because they are known.
    pub fn unusual_paths(&self) -> UnusualPaths {
        self.state().world.unusual_paths()
    }

    /// The user's texts as the editor has them: the run's world follows them. They were read since
    /// `epoch`. When the world has changed meanwhile they may be older than it: then nothing is done,
    /// and the answer is `false`.
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

    /// A name that no other conversation of this run has: the second gets ` #2`.
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

    /// Gives an agent work, and wakes it when it is not at work already.
    ///
    /// # Errors
    /// [`WakeError`], with a text for the one who asked.
    pub fn wake(self: &Arc<Self>, symbol: &SymbolPath, cause: Cause) -> Result<Party, WakeError> {
        self.wake_with(symbol, cause, None)
    }

    /// The same with a change that was already written for the agent: it is proposed first, and the
    /// agent counts against the limit only when it comes back. A pick may be a file that is not there yet.
    ///
    /// # Errors
    /// As [`Hub::wake`].
    pub fn wake_with(
        self: &Arc<Self>,
        symbol: &SymbolPath,
        cause: Cause,
        draft: Option<Propose>,
    ) -> Result<Party, WakeError> {
        if self.cancel.is_cancelled() {
            return Err(WakeError::Ending);
        }
        let party = match self.task.driver {
            Driver::Single => Party::Solo,
            Driver::Swarm => {
                if let WriteRule::Never { why } = self.policy().may_write(&symbol.file) {
                    return Err(WakeError::NoSymbol(why));
                }
                let lookup = self.lookup();
                let is_pick = matches!(cause, Cause::Picked { .. });
                if !(is_pick && lookup.is_new_file(symbol)) {
                    lookup.symbol(symbol).map_err(WakeError::NoSymbol)?;
                }
                Party::Agent(symbol.clone())
            }
        };
        let start = {
            let mut state = self.state();
            if state.is_ending {
                return Err(WakeError::Ending);
            }
            let is_counted = state.agents.get(&party).is_some_and(|slot| slot.is_counted);
            if !is_counted && draft.is_none() {
                self.ledger.count_agent()?;
            }
            let slot = state.agents.entry(party.clone()).or_default();
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
                state.drafts.insert(party.clone());
            }
            let slot = state.agents.entry(party.clone()).or_default();
            !std::mem::replace(&mut slot.working, true)
        };
        self.event(Event::AgentWoken {
            agent: party.clone(),
            cause,
        });
        if start {
            self.spawn(party.clone());
        }
        Ok(party)
    }

    /// The ready draft of an agent waits among the others from now on, or is over.
    pub fn draft_arrived(&self, party: &Party) {
        if self.state().drafts.remove(party) {
            self.waited.raise();
        }
    }

    /// Counts an agent that was woken with a draft and needs a conversation after all.
    ///
    /// # Errors
    /// [`Exhausted`] when the limit of agents is reached.
    pub fn count_agent(&self, party: &Party) -> Result<(), Exhausted> {
        let mut state = self.state();
        let Some(slot) = state.agents.get_mut(party) else {
            return Ok(());
        };
        if !slot.is_counted {
            self.ledger.count_agent()?;
            slot.is_counted = true;
        }
        Ok(())
    }

    /// Tells the user that work did not reach the owner of a symbol. Whoever wanted it hears it apart.
    pub fn not_woken(&self, symbol: String, from: &Party, why: String) {
        self.state().not_woken.insert(symbol.clone());
        self.event(Event::NotWoken {
            symbol,
            from: from.clone(),
            why,
        });
    }

    fn spawn(self: &Arc<Self>, party: Party) {
        let guard = WorkGuard::new(Arc::clone(self), party.clone());
        let hub = Arc::clone(self);
        tokio::spawn(async move {
            let _guard = guard;
            if let Party::Agent(symbol) = &party {
                diagnose::prepare(&hub, &symbol.file);
            }
            let work = async {
                // The user may steer an agent while the tests before the run are still at work.
                hub.frozen.wait().await;
                agent::work(&hub, &party).await;
            };
            // Cancelled first: after a cancel nothing is polled that could call a model.
            tokio::select! {
                biased;
                () = hub.cancel.cancelled() => {}
                () = work => {}
            }
        });
    }

    /// The next work of an agent, with its mind; `None` parks it as idle.
    pub fn take_work(&self, party: &Party) -> Option<(Mind, Vec<Cause>)> {
        let mut state = self.state();
        let slot = state.agents.get_mut(party)?;
        if slot.inbox.is_empty() {
            slot.working = false;
            return None;
        }
        let causes = slot.inbox.drain(..).collect();
        let mut mind = slot
            .parked
            .take()
            .unwrap_or_else(|| Mind::new(party.clone()));
        mind.draft = slot.draft.take();
        Some((mind, causes))
    }

    pub fn park(&self, mind: Mind) {
        if let Some(slot) = self.state().agents.get_mut(&mind.party) {
            slot.parked = Some(mind);
        }
    }

    /// The symbols whose agents gave up while the workspace was as it is now.
    pub fn gave_up_on_this(&self) -> Vec<SymbolPath> {
        let state = self.state();
        let minds = state
            .agents
            .values()
            .filter_map(|slot| slot.parked.as_ref());
        let here = minds.filter(|mind| mind.gave_up_at == Some(state.epoch));
        here.filter_map(|mind| mind.party.symbol().cloned())
            .collect()
    }

    /// What came in for an agent since it was last asked.
    pub fn take_inbox(&self, party: &Party) -> Vec<Cause> {
        let mut state = self.state();
        state
            .agents
            .get_mut(party)
            .map(|slot| slot.inbox.drain(..).collect())
            .unwrap_or_default()
    }

    /// Leaves a message for an agent that is at work; says whether it is.
    pub fn tell_if_working(&self, party: &Party, cause: Cause) -> bool {
        let mut state = self.state();
        match state.agents.get_mut(party) {
            Some(slot) if slot.working && slot.inbox.len() < INBOX => {
                slot.inbox.push_back(cause);
                true
            }
            Some(_) | None => false,
        }
    }

    /// The owners at work but this one, with what each was last told.
    pub fn told_others(&self, but: &SymbolPath) -> Vec<String> {
        let state = self.state();
        let is_done = |party: &Party| {
            let waits = state.waiting.values().any(|one| is(party, &one.symbol));
            !waits && state.accepted.iter().any(|one| is(party, &one.symbol))
        };
        let others = state.agents.iter().filter(|(party, slot)| {
            slot.working && **party != Party::Agent(but.clone()) && !is_done(party)
        });
        let line = |(party, slot): (&Party, &Slot)| match party {
            Party::Agent(symbol) => {
                let mut told: String = slot.told.chars().take(400).collect();
                if told.len() < slot.told.len() {
                    told.push('…');
                }
                Some(format!("{symbol}: {told}"))
            }
            Party::User | Party::Scout | Party::Proxy | Party::Starling | Party::Solo => None,
        };
        others.filter_map(line).take(8).collect()
    }

    /// All agents, woken so far, that are at work.
    pub fn at_work(&self) -> Vec<Party> {
        let state = self.state();
        state
            .agents
            .iter()
            .filter(|(_, slot)| slot.working)
            .map(|(party, _)| party.clone())
            .collect()
    }

    /// Lets nobody be woken any more, unless an agent is at work; says whether the run can end.
    pub fn end_unless_at_work(&self) -> bool {
        let mut state = self.state();
        state.is_ending = !state.agents.values().any(|slot| slot.working);
        state.is_ending
    }

    /// Symbols of all agents woken so far.
    pub fn owners(&self) -> Vec<SymbolPath> {
        let symbol = |party: &Party| match party {
            Party::Agent(symbol) => Some(symbol.clone()),
            Party::User | Party::Scout | Party::Proxy | Party::Starling | Party::Solo => None,
        };
        self.state().agents.keys().filter_map(symbol).collect()
    }

    /// The agent that owns a symbol: that of the innermost symbol around it that has one.
    pub fn owner_of(&self, symbol: &SymbolPath) -> Option<SymbolPath> {
        self.owners()
            .into_iter()
            .filter(|owner| owner.encloses(symbol) && (!owner.is_module() || owner == symbol))
            .max_by_key(|owner| owner.name.len())
    }

    /// Who is told about a symbol, and what: the agent that owns it where one does, else its own.
    pub fn addressee(&self, symbol: &SymbolPath, text: &str) -> (SymbolPath, String) {
        match self.owner_of(symbol) {
            Some(owner) if owner != *symbol => (owner, format!("{symbol}: {text}")),
            Some(_) | None => (symbol.clone(), text.to_owned()),
        }
    }

    pub fn set_intent(&self, party: &Party, intent: &str) {
        if let Some(slot) = self.state().agents.get_mut(party) {
            slot.intent = Some(intent.to_owned());
        }
    }

    pub fn intent_of(&self, party: &Party) -> Option<String> {
        self.state()
            .agents
            .get(party)
            .and_then(|slot| slot.intent.clone())
    }

    /// Files that accepted proposals changed.
    pub fn changed_files(&self) -> BTreeSet<FilePath> {
        self.state()
            .applied
            .iter()
            .map(|applied| applied.file.clone())
            .collect()
    }

    /// Counts as work that [`Hub::quiet`] waits for, until it is dropped.
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.working.send_modify(|count| *count += 1);
        Busy {
            hub: Arc::clone(self),
        }
    }

    /// Returns when no agent is at work and no edit is on its way to the editor.
    pub async fn quiet(&self) {
        let mut working = self.working.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        let _ = working.wait_for(|count| *count == 0).await;
    }
}

fn is(party: &Party, symbol: &SymbolPath) -> bool {
    matches!(party, Party::Agent(own) if own == symbol)
}

/// Keeps [`Hub::quiet`] waiting for as long as it is held.
pub(super) struct Busy {
    hub: Arc<Hub>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.hub.working.send_modify(|count| *count -= 1);
    }
}

/// Counts an agent as at work for as long as its task lives, however that ends.
struct WorkGuard {
    hub: Arc<Hub>,
    party: Party,
    /// Dropped last: the agent is at rest when it is no longer counted.
    _busy: Busy,
}

impl WorkGuard {
    fn new(hub: Arc<Hub>, party: Party) -> Self {
        let _busy = hub.busy();
        WorkGuard { hub, party, _busy }
    }
}

impl Drop for WorkGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let outcome = AgentOutcome::GaveUp {
                why: "internal error; see the log".to_owned(),
            };
            let agent = self.party.clone();
            self.hub.event(Event::AgentFinished {
                agent,
                outcome,
                summary: String::new(),
            });
        }
        // At an orderly end `take_work` has said so already, and the agent may be awake again by now.
        let cut_short = std::thread::panicking() || self.hub.cancel.is_cancelled();
        if cut_short && let Some(slot) = self.hub.state().agents.get_mut(&self.party) {
            slot.working = false;
        }
        // Who waits for what others may bring looks again.
        self.hub.waited.raise();
    }
}
