//! The state of an agent between its turns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::actor::ActorId;
use crate::evidence::ids::ProposalId;
use crate::protocol::conversation::Conversation;
use crate::protocol::{Propose, ToolSet};
use crate::state::attempts::Attempts;
use crate::state::epoch::Epoch;
use crate::state::repeats::CallCounts;
use crate::state::views::Views;
use starling_core::TestCase;
use starling_syntax::SymbolPath;
use starling_workspace::Snapshot;

/// State of an agent that is kept between turns and between pieces of work.
pub(crate) struct AgentState {
    pub actor: ActorId,
    pub conversation: Option<Conversation>,
    /// The symbols that the agent has seen, with the user's texts that were shown.
    pub views: Views,
    /// Texts that the tool results of the current turn show. The agent has not seen them when it
    /// writes the proposals of this turn.
    pub told: Views,
    /// The workspace at the start of the work. The agent's changes of files that it has not seen
    /// are based on it.
    pub unread: Option<Snapshot>,
    /// Refused proposals of this piece of work.
    pub attempts: Attempts,
    /// Tests that passed before and failed with a refused proposal, by id.
    pub broken: BTreeMap<String, TestCase>,
    /// Reason for the work, as the prompts of a small model show it.
    pub cause: String,
    /// The epoch (version of the workspace) in which the last piece of work ended without a result.
    pub gave_up_at: Option<Epoch>,
    /// Set if the agent's change belongs to a change of several agents. It then does not have to
    /// fix a test on its own.
    pub part_of_joint_change: bool,
    /// Number of the round of follow-ups that caused this work; 0 if the task itself caused it.
    pub wave: u32,
    /// Set if the approver accepted the intent of this piece of work.
    pub intent_approved: bool,
    /// The last proposal that the approver sent back. The next proposal revises it.
    pub rejected: Option<ProposalId>,
    /// Reasons of the agent's accepted proposals.
    pub accepted: Vec<String>,
    /// A change that the scout wrote for this agent. It is proposed first.
    pub draft: Option<Propose>,
    pub repeats: CallCounts,
    pub(crate) malformed: u32,
    /// Number of prompts that were tried with a small model since the workspace last changed.
    pub ways: usize,
    /// The conversation for hole filling, in which a small model rewrites single statements of the
    /// agent's function.
    pub filling: Option<Conversation>,
    /// Versions of the function that hole filling has already tried.
    pub filled: BTreeSet<String>,
    /// Set if a proposal of this piece of work was applied.
    pub changed: bool,
}

impl AgentState {
    pub fn new(actor: ActorId) -> Self {
        AgentState {
            actor,
            conversation: None,
            views: Views::default(),
            told: Views::default(),
            unread: None,
            attempts: Attempts::default(),
            broken: BTreeMap::new(),
            cause: String::new(),
            gave_up_at: None,
            part_of_joint_change: false,
            wave: 0,
            intent_approved: false,
            rejected: None,
            accepted: Vec::new(),
            draft: None,
            repeats: CallCounts::default(),
            malformed: 0,
            ways: 0,
            filling: None,
            filled: BTreeSet::new(),
            changed: false,
        }
    }

    /// Returns the text of the symbol's file on which the agent's changes are based; `None` if the
    /// agent has not seen the file and the user may have changed it since the work began.
    pub fn seen(&self, symbol: &SymbolPath) -> Option<Arc<str>> {
        let unread = || self.unread.as_ref()?.read_unchanged(&symbol.file);
        self.views.of(symbol).or_else(unread)
    }

    /// Marks the results of the last turn as seen. Called before the model is called.
    pub(crate) fn begin_turn(&mut self) {
        self.views.extend(std::mem::take(&mut self.told));
    }

    pub fn toolset(&self) -> ToolSet {
        match self.actor {
            ActorId::Solo => ToolSet::Solo,
            ActorId::Agent(_)
            | ActorId::User
            | ActorId::Scout
            | ActorId::Proxy
            | ActorId::Starling => ToolSet::Owner,
        }
    }
}
