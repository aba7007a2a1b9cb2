//! The context that the agents and asynchronous tasks of a run share: its request, services, budget
//! and state.

use std::ops::Deref;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::{SetOnce, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::budget::{Budget, Exhausted};
use crate::event::actor::{ActorId, actor_name};
use crate::event::events::{AgentOutcome, Cause, Event};
use crate::event::log::EventLog;
use crate::protocol::Propose;
use crate::state::agent_state::AgentState;
use crate::state::agents::Agents;
use crate::state::checker::{CheckServices, CheckedTask, Checker};
use crate::state::contracts::Contracts;
use crate::state::locked::{Guard, Locked, Rank};
use crate::state::proposals::ProposalBook;
use crate::state::services::RunServices;
use crate::state::signal::Signal;
use crate::state::test_state::TestState;
use crate::state::world::World;
use crate::task::request::Task;
use starling_core::Driver;
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::{Snapshot, WriteRule};

/// Runs an agent until it has no more work.
pub(crate) type AgentLoop = fn(Arc<RunContext>, ActorId) -> BoxFuture<'static, ()>;

/// The context that the agents and asynchronous tasks of a run share. The parts that the checks use
/// are in the [`Checker`], to which the context dereferences.
pub(crate) struct RunContext {
    pub task: Task,
    pub services: RunServices,
    checker: Checker,
    pub cancel: CancellationToken,
    /// The part of every prompt that stays the same during the run. Agents wait until it is set.
    pub frozen: SetOnce<String>,
    /// Held while an edit is sent to the editor.
    pub applying: tokio::sync::Mutex<()>,
    /// Raised when a waiting proposal, a draft or a set changes, or when an agent starts or stops
    /// working.
    pub waited: Signal,
    working: watch::Sender<usize>,
    agent_loop: AgentLoop,
    agents: Locked<Agents>,
    contracts: Locked<Contracts>,
}

impl Deref for RunContext {
    type Target = Checker;

    fn deref(&self) -> &Checker {
        &self.checker
    }
}

/// Lock guards for all parts of a run's mutable state. Each part has its own lock; the locks are
/// taken in the order of their ranks.
pub(crate) struct StateGuard<'r> {
    pub world: Guard<'r, World>,
    pub tests: Guard<'r, TestState>,
    pub proposals: Guard<'r, ProposalBook>,
    pub agents: Guard<'r, Agents>,
    pub contracts: Guard<'r, Contracts>,
}

impl StateGuard<'_> {
    /// Returns the workspace in which the files that the run changed have their text from before
    /// the run.
    pub fn without_the_run(&self) -> Snapshot {
        self.proposals.without_the_run(&self.world.snapshot)
    }

    /// Returns the changed files that the user has not edited since.
    pub fn untouched_since(&self) -> Vec<FilePath> {
        self.proposals.untouched_since(&self.world.snapshot)
    }
}

/// Why an agent could not be woken, that is, given work. The message is shown to the sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WakeError {
    #[error("{0}")]
    NoSymbol(String),
    #[error("{0}")]
    Exhausted(#[from] Exhausted),
    #[error("the agent of {0} has too many unread messages")]
    Full(SymbolPath),
    #[error("the run is ending")]
    Ending,
}

impl RunContext {
    pub fn new(
        task: Task,
        services: RunServices,
        log: EventLog,
        agent_loop: AgentLoop,
    ) -> Arc<RunContext> {
        let (working, _) = watch::channel(0);
        let checked = CheckedTask {
            text: task.text.clone(),
            refactoring: task.refactoring.clone(),
            approval: task.approval,
            test_deadline: task.test_deadline,
        };
        let for_checks = CheckServices {
            editor: Some(services.editor.clone()),
            tests: services.tests.clone(),
            language: services.language.clone(),
            index: services.index.clone(),
        };
        let budget = Budget::new(task.limits.clone());
        Arc::new(RunContext {
            checker: Checker::new(checked, for_checks, budget, log),
            task,
            services,
            cancel: CancellationToken::new(),
            frozen: SetOnce::new(),
            applying: tokio::sync::Mutex::new(()),
            waited: Signal::default(),
            working,
            agent_loop,
            agents: Locked::new(Rank::Agents, Agents::default()),
            contracts: Locked::new(Rank::Contracts, Contracts::default()),
        })
    }

    /// Locks all parts of the state. Used by operations that read or change several parts
    /// atomically.
    pub fn state(&self) -> StateGuard<'_> {
        StateGuard {
            world: self.world(),
            tests: self.tests(),
            proposals: self.proposals(),
            agents: self.agents(),
            contracts: self.contracts(),
        }
    }

    pub fn agents(&self) -> Guard<'_, Agents> {
        self.agents.lock()
    }

    pub fn contracts(&self) -> Guard<'_, Contracts> {
        self.contracts.lock()
    }

    /// Returns whether changes that no test proves must be rejected.
    pub fn must_prove(&self) -> bool {
        self.task.require_tests && !self.task.approval.is_by_person()
    }

    pub fn unique_name(&self, name: String) -> String {
        self.agents().unique_name(name)
    }

    /// Gives work to the agent that owns a symbol, and starts the agent if it is idle.
    ///
    /// # Errors
    /// Returns a [`WakeError`] with a message for the sender.
    pub fn wake(self: &Arc<Self>, symbol: &SymbolPath, cause: Cause) -> Result<ActorId, WakeError> {
        self.wake_with(symbol, cause, None)
    }

    /// Gives work to the agent that owns a symbol, together with a change that was already written
    /// for it, if there is one.
    ///
    /// The agent first proposes this change without a model call. Only if the change is sent back
    /// does the agent count against the limit of agents. With [`Cause::Picked`], the symbol may be
    /// a file that does not exist yet.
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
            let mut agents = self.agents();
            if agents.is_ending() {
                return Err(WakeError::Ending);
            }
            if !agents.is_counted(&actor) && draft.is_none() {
                self.budget.count_agent()?;
            }
            let is_draft = draft.is_some();
            if !agents.slot(&actor).add_work(&cause, draft) {
                return Err(WakeError::Full(symbol.clone()));
            }
            if is_draft {
                agents.drafts.insert(actor.clone());
            }
            agents.begin(&actor)
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

    /// Records that the change which was prepared for an agent was proposed or dropped.
    pub fn draft_arrived(&self, actor: &ActorId) {
        if self.agents().drafts.remove(actor) {
            self.waited.raise();
        }
    }

    /// Counts an agent that got a prepared change and now needs a conversation of its own.
    ///
    /// # Errors
    /// Returns [`Exhausted`] when the limit of agents is reached.
    pub fn count_agent(&self, actor: &ActorId) -> Result<(), Exhausted> {
        let mut agents = self.agents();
        let Some(slot) = agents.known_slot(actor) else {
            return Ok(());
        };
        if !slot.is_counted {
            self.budget.count_agent()?;
            slot.is_counted = true;
        }
        Ok(())
    }

    /// Logs that the agent of a symbol could not be given work. The sender is notified separately.
    pub fn not_woken(&self, symbol: String, from: &ActorId, why: String) {
        self.agents().not_woken.insert(symbol.clone());
        self.event(Event::NotWoken {
            symbol,
            from: from.clone(),
            why,
        });
    }

    fn spawn(self: &Arc<Self>, actor: ActorId) {
        let guard = WorkGuard::new(Arc::clone(self), actor.clone());
        let run = Arc::clone(self);
        // The span has no parent, because the agent may outlive the code that gives it work.
        let span = tracing::info_span!(parent: None, "agent", name = actor_name(&actor));
        let task = async move {
            let _guard = guard;
            let work = (run.agent_loop)(Arc::clone(&run), actor);
            // Cancellation is checked first, so that no model call starts after a cancel.
            tokio::select! {
                biased;
                () = run.cancel.cancelled() => {}
                () = work => {}
            }
        };
        tokio::spawn(task.instrument(span));
    }

    pub fn take_work(&self, actor: &ActorId) -> Option<(AgentState, Vec<Cause>)> {
        self.agents().take_work(actor)
    }

    pub fn park(&self, agent: AgentState) {
        self.agents().park(agent);
    }

    /// Returns the symbols whose agents gave up since the workspace last changed.
    pub fn gave_up_on_this(&self) -> Vec<SymbolPath> {
        let state = self.state();
        state.agents.gave_up_in(state.world.epoch)
    }

    pub fn take_inbox(&self, actor: &ActorId) -> Vec<Cause> {
        self.agents().take_inbox(actor)
    }

    pub fn tell_if_working(&self, actor: &ActorId, cause: Cause) -> bool {
        self.agents().tell_if_working(actor, cause)
    }

    /// Describes the other owners at work, each with the reason for its last work.
    pub fn told_others(&self, but: &SymbolPath) -> Vec<String> {
        let state = self.state();
        let others = state.agents.wake_reasons();
        let others = others.filter(|(owner, _)| *owner != but && !state.proposals.is_done(owner));
        let line = |(owner, reason): (&SymbolPath, &str)| {
            let mut told: String = reason.chars().take(400).collect();
            if told.len() < reason.len() {
                told.push('…');
            }
            format!("{owner}: {told}")
        };
        others.map(line).take(8).collect()
    }

    pub fn at_work(&self) -> Vec<ActorId> {
        self.agents().at_work()
    }

    pub fn end_unless_at_work(&self) -> bool {
        self.agents().end_unless_at_work()
    }

    /// Returns the agent that owns a symbol: of the agents that were woken, the one whose symbol is
    /// the innermost around the symbol, or is another definition of the same name. Overloads thus
    /// have one owner, as have a property and its setter, unless several of them were woken.
    pub fn owner_of(&self, symbol: &SymbolPath) -> Option<SymbolPath> {
        let owners = self.agents().owners().into_iter();
        let holds = |owner: &SymbolPath| match owner.is_module() {
            true => owner == symbol,
            false => owner.encloses(symbol) || owner.is_twin_of(symbol),
        };
        owners.filter(holds).max_by_key(|owner| {
            let is_twin = !owner.encloses(symbol);
            let depth = owner.name.matches('.').count();
            (depth, !is_twin, owner.name.len())
        })
    }

    /// Returns the recipient and the text of a message about a symbol. If the symbol belongs to an
    /// agent for another symbol, the message goes to that agent and its text names the symbol;
    /// otherwise the recipient is the symbol itself.
    pub fn addressee(&self, symbol: &SymbolPath, text: &str) -> (SymbolPath, String) {
        match self.owner_of(symbol) {
            Some(owner) if owner != *symbol => (owner, format!("{symbol}: {text}")),
            Some(_) | None => (symbol.clone(), text.to_owned()),
        }
    }

    /// Returns a guard that makes [`RunContext::quiet`] wait until the guard is dropped.
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

/// Makes [`RunContext::quiet`] wait until this guard is dropped.
pub(crate) struct Busy {
    run: Arc<RunContext>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.run.working.send_modify(|count| *count -= 1);
    }
}

/// Marks an agent as working until its asynchronous task ends, even if the task panics or is
/// cancelled.
struct WorkGuard {
    run: Arc<RunContext>,
    actor: ActorId,
    /// Dropped after the code in `drop`, so that the agent is idle when [`RunContext::quiet`] stops
    /// waiting for it.
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
        // After a normal end, `take_work` has already marked the agent as idle, and it may be
        // working again.
        let cut_short = std::thread::panicking() || self.run.cancel.is_cancelled();
        if cut_short {
            self.run.agents().stop(&self.actor);
        }
        // Tasks that wait for proposals of this agent check again whether they must wait.
        self.run.waited.raise();
    }
}
