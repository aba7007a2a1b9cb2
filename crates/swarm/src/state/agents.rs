//! The agents of a run: which agents are working, their inboxes and their work.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::event::actor::ActorId;
use crate::event::events::Cause;
use crate::protocol::{Pick, Propose};
use crate::state::agent_state::AgentState;
use crate::state::epoch::Epoch;
use starling_syntax::SymbolPath;

/// Maximum number of messages in an agent's inbox. No agent can be given more work when its inbox
/// is full.
const INBOX: usize = 16;

/// A function that may be the cause of failing tests.
#[derive(Debug, Clone)]
pub(crate) struct Suspect {
    pub pick: Pick,
    /// Whether this is the second pass, in which the agent continues with the slower prompts.
    pub again: bool,
}

/// The agents of a run, with their inboxes and their states.
#[derive(Default)]
pub(crate) struct Agents {
    slots: BTreeMap<ActorId, AgentSlot>,
    /// Functions that a small model tries to fix next, the most likely first.
    pub suspects: VecDeque<Suspect>,
    /// Agents to which a prepared change (draft) was given that they have not proposed yet.
    pub drafts: BTreeSet<ActorId>,
    /// Symbols whose agents could not be started or given work.
    pub not_woken: BTreeSet<String>,
    /// Number of questions between agents.
    pub questions: u32,
    /// The budget limit that a request would have exceeded; `None` if every request could be made.
    pub exhausted: Option<String>,
    /// Number of conversations started with each name.
    conversations: HashMap<String, u32>,
    /// Whether the run is ending. No agent can be given work then.
    is_ending: bool,
}

/// The data of one agent: its inbox, and its state between two pieces of work.
#[derive(Default)]
pub(super) struct AgentSlot {
    inbox: VecDeque<Cause>,
    working: bool,
    /// The agent's state between two pieces of work.
    parked: Option<AgentState>,
    /// The intent that the agent stated last.
    intent: Option<String>,
    /// Why the agent was woken (given work), as text. Reasons for work that arrived meanwhile are
    /// appended.
    wake_reason: String,
    /// A change that was already written for the agent.
    draft: Option<Propose>,
    /// Whether the agent counts against the limit of agents.
    pub is_counted: bool,
}

impl AgentSlot {
    /// Adds work to the inbox, with a change that was already written for the agent, if there is
    /// one. Returns `false` if the inbox is full.
    pub fn add_work(&mut self, cause: &Cause, draft: Option<Propose>) -> bool {
        self.is_counted |= draft.is_none();
        if self.inbox.len() >= INBOX {
            return false;
        }
        self.inbox.push_back(cause.clone());
        self.wake_reason = match self.working && !self.wake_reason.is_empty() {
            true => format!("{}; {}", self.wake_reason, cause.in_short()),
            false => cause.in_short(),
        };
        self.draft = draft.or(self.draft.take());
        true
    }
}

impl Agents {
    pub(super) fn slot(&mut self, actor: &ActorId) -> &mut AgentSlot {
        self.slots.entry(actor.clone()).or_default()
    }

    pub(super) fn known_slot(&mut self, actor: &ActorId) -> Option<&mut AgentSlot> {
        self.slots.get_mut(actor)
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending
    }

    pub(super) fn is_counted(&self, actor: &ActorId) -> bool {
        self.slots.get(actor).is_some_and(|slot| slot.is_counted)
    }

    /// Marks an agent as working. Returns whether it was idle before.
    pub(super) fn begin(&mut self, actor: &ActorId) -> bool {
        !std::mem::replace(&mut self.slot(actor).working, true)
    }

    /// Marks an agent as idle. Its prepared change, if it has one, will not be proposed any more.
    pub(super) fn stop(&mut self, actor: &ActorId) {
        self.drafts.remove(actor);
        if let Some(slot) = self.slots.get_mut(actor) {
            slot.working = false;
        }
    }

    /// Returns a conversation name that is unique in this run. A second use of a name gets the
    /// suffix ` #2`.
    pub fn unique_name(&mut self, name: String) -> String {
        let count = self.conversations.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 {
            name
        } else {
            format!("{name} #{count}")
        }
    }

    /// Returns an agent's next work and its [`AgentState`]. With an empty inbox it returns `None`
    /// and marks the agent as idle.
    pub fn take_work(&mut self, actor: &ActorId) -> Option<(AgentState, Vec<Cause>)> {
        let slot = self.slots.get_mut(actor)?;
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

    pub fn park(&mut self, agent: AgentState) {
        if let Some(slot) = self.slots.get_mut(&agent.actor) {
            slot.parked = Some(agent);
        }
    }

    /// Returns the symbols whose agents gave up in this epoch.
    pub fn gave_up_in(&self, epoch: Epoch) -> Vec<SymbolPath> {
        let agents = self.slots.values().filter_map(|slot| slot.parked.as_ref());
        let here = agents.filter(|agent| agent.gave_up_at == Some(epoch));
        here.filter_map(|agent| agent.actor.symbol().cloned())
            .collect()
    }

    /// Removes and returns all messages in an agent's inbox.
    pub fn take_inbox(&mut self, actor: &ActorId) -> Vec<Cause> {
        let slot = self.slots.get_mut(actor);
        slot.map(|slot| slot.inbox.drain(..).collect())
            .unwrap_or_default()
    }

    /// Adds a message to the inbox of an agent if the agent is working. Returns whether the message
    /// was added.
    pub fn tell_if_working(&mut self, actor: &ActorId, cause: Cause) -> bool {
        match self.slots.get_mut(actor) {
            Some(slot) if slot.working && slot.inbox.len() < INBOX => {
                slot.inbox.push_back(cause);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Returns the owners at work, each with the reason for its last work.
    pub fn wake_reasons(&self) -> impl Iterator<Item = (&SymbolPath, &str)> {
        let working = self.slots.iter().filter(|(_, slot)| slot.working);
        working.filter_map(|(actor, slot)| Some((actor.symbol()?, slot.wake_reason.as_str())))
    }

    /// Returns all agents at work.
    pub fn at_work(&self) -> Vec<ActorId> {
        let working = self.slots.iter().filter(|(_, slot)| slot.working);
        working.map(|(actor, _)| actor.clone()).collect()
    }

    /// If no agent is working, marks the run as ending, after which no agent can be given work.
    /// Returns whether the run can end.
    pub fn end_unless_at_work(&mut self) -> bool {
        self.is_ending = !self.slots.values().any(|slot| slot.working);
        self.is_ending
    }

    /// Returns the symbols of all agents that were ever given work.
    pub fn owners(&self) -> Vec<SymbolPath> {
        let symbols = self.slots.keys().filter_map(ActorId::symbol);
        symbols.cloned().collect()
    }

    pub fn set_intent(&mut self, actor: &ActorId, intent: &str) {
        if let Some(slot) = self.slots.get_mut(actor) {
            slot.intent = Some(intent.to_owned());
        }
    }

    pub fn intent_of(&self, actor: &ActorId) -> Option<String> {
        self.slots.get(actor).and_then(|slot| slot.intent.clone())
    }
}
