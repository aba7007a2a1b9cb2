//! The state of a run, computed from its events alone.

mod activity;
mod applied;
mod proposal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Instant;

use super::remedy::Remedy;
use starling_core::{Dollars, EditorError, Limits, ReviewAnswer, Tokens, Verdict};
use starling_swarm::{ActorId, Event, FileChange, ProposalId, Spent, StopReason};
use starling_syntax::FilePath;

pub use activity::{actor_name, short};
pub use applied::{AppliedEdit, TextSource};
pub use proposal::{ProposalStatus, RunProposal};

/// The activity of an agent or another actor of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentActivity {
    /// A description of the activity.
    pub doing: String,
    pub working: bool,
    /// When the activity began.
    pub since: Instant,
    /// The last lookups, the newest at the end.
    pub looked: Vec<String>,
}

/// Maximum number of lookups that are kept for an agent.
const MAX_LOOKUPS: usize = 8;

/// Calls, tokens and costs of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Spending {
    pub calls: u32,
    pub tokens: Tokens,
    /// The cost of the calls whose price is known; `None` while no price is known.
    pub dollars: Option<Dollars>,
    /// The number of calls of models without a price. It is known at the end of the run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_calls: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Spending {
    /// Adds a cost. A turn of a model without a price has the cost 0, so 0 leaves the cost unknown.
    fn add(&mut self, cost: Dollars) {
        if cost > Dollars(0.0) {
            self.dollars = Some(self.dollars.unwrap_or_default() + cost);
        }
    }
}

/// The end of a run: why it stopped, and its summary.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    pub stop_reason: StopReason,
    pub summary: String,
    /// `None` in older trajectories.
    pub headline: Option<String>,
}

/// The state of one run.
#[derive(Debug, Clone, Default)]
pub struct RunView {
    pub limits: Option<Limits>,
    pub agents: BTreeMap<ActorId, AgentActivity>,
    pub proposals: BTreeMap<ProposalId, RunProposal>,
    /// The applied changes. Undone ones are kept because the user may make them again.
    pub applied: BTreeMap<ProposalId, AppliedEdit>,
    /// The sum of what the turns of all agents have cost so far.
    spent: Spending,
    /// The total that the end of the run reports. It also includes interrupted requests, which
    /// belong to no turn.
    total: Option<Spending>,
    pub end: Option<RunEnd>,
    /// The error of the last model call that failed.
    no_answer: Option<String>,
    /// The number of the last event.
    pub seq: Option<u64>,
}

impl RunView {
    /// Updates the view with an event.
    pub fn record(&mut self, seq: u64, event: &Event) {
        self.seq = Some(seq);
        if let Some((party, doing, working)) = activity::doing(event, self) {
            let known = self.agents.get_mut(&party).map(|agent| &mut agent.looked);
            let looked = known.map(std::mem::take).unwrap_or_default();
            let agent = AgentActivity {
                doing,
                working,
                since: Instant::now(),
                looked,
            };
            self.agents.insert(party, agent);
        }
        if let Some((party, lookup)) = activity::lookup(event)
            && let Some(agent) = self.agents.get_mut(party)
        {
            if agent.looked.len() == MAX_LOOKUPS {
                agent.looked.remove(0);
            }
            agent.looked.push(lookup);
        }
        if let Some((party, doing)) = activity::rests(event)
            && let Some(agent) = self.agents.get_mut(party)
            && !agent.working
        {
            agent.doing = doing;
        }
        proposal::note(&mut self.proposals, event);
        proposal::note_version(&mut self.proposals, seq, event);
        applied::note(&mut self.applied, event);
        if let Event::RunStarted { limits, .. } = event {
            self.limits = Some(limits.clone());
        } else if let Event::TurnFinished {
            usage, cost, calls, ..
        } = event
        {
            self.spent.calls += calls;
            self.spent.tokens += usage.prompt + usage.output;
            self.spent.add(*cost);
        } else if let Event::TurnFailed { spent, error, .. } = event {
            self.no_answer = Some(error.clone());
            self.spent.calls += spent.calls;
            self.spent.tokens += spent.usage.prompt + spent.usage.output;
            self.spent.add(spent.dollars);
        } else if let Event::RunFinished {
            stop_reason,
            summary,
            ending,
            spent,
            ..
        } = event
        {
            self.set_total_spent(spent);
            self.ended(RunEnd {
                stop_reason: stop_reason.clone(),
                summary: summary.clone(),
                headline: ending.as_ref().map(|ending| ending.headline.clone()),
            });
        }
    }

    /// Sets the total that the end of a run reports, also for a run that was restored after its
    /// end.
    pub fn set_total_spent(&mut self, spent: &Spent) {
        let has_price = spent.unpriced_calls == 0 || spent.dollars > Dollars(0.0);
        self.total = Some(Spending {
            calls: spent.calls,
            tokens: spent.prompt_tokens + spent.output_tokens,
            dollars: has_price.then_some(spent.dollars),
            unpriced_calls: spent.unpriced_calls,
        });
    }

    /// Returns what the run has spent so far.
    pub fn spent(&self) -> Spending {
        self.total.unwrap_or(self.spent)
    }

    /// Returns what the user can do if the run ended because its model was not available, and the
    /// error message.
    pub fn remedy(&self) -> Option<(Remedy, String)> {
        let error = match &self.end.as_ref()?.stop_reason {
            StopReason::Failed { error } => error,
            StopReason::NothingChanged { .. } => self.no_answer.as_ref()?,
            StopReason::Settled
            | StopReason::TestsFail { .. }
            | StopReason::ProblemsRemain { .. }
            | StopReason::LedgerEmpty { .. }
            | StopReason::Cancelled => return None,
        };
        Some((Remedy::of(error)?, error.clone()))
    }

    fn ended(&mut self, end: RunEnd) {
        self.end = Some(end);
        for agent in self.agents.values_mut().filter(|agent| agent.working) {
            agent.working = false;
            agent.doing = "its run is over".to_owned();
        }
        for proposal in self.proposals.values_mut() {
            proposal.drop_unfinished();
        }
    }

    /// Marks all agents as stopped, because they ended with their server. Proposals that were being
    /// checked are dropped, except those that the user had seen and edited.
    pub fn stop_agents(&mut self) {
        for agent in self.agents.values_mut() {
            agent.working = false;
        }
        for proposal in self.proposals.values_mut() {
            if proposal.state == ProposalStatus::Checking && proposal.edited.is_none() {
                proposal.set_status(ProposalStatus::Dropped);
            }
        }
    }

    /// Returns the applied proposals that no person accepted.
    pub fn unreviewed(&self) -> impl Iterator<Item = (ProposalId, &RunProposal)> {
        let all = self.proposals.iter().map(|(id, one)| (*id, one));
        all.filter(|(_, one)| {
            let by = one.accepted_by.as_ref();
            one.state == ProposalStatus::Applied && by.is_some_and(|by| *by != ActorId::User)
        })
    }

    /// Returns the proposals that a person reviews: those that wait, and those whose edited versions are
    /// checked.
    pub fn under_review(&self) -> impl Iterator<Item = ProposalId> {
        let all = self.proposals.iter();
        let reviewed =
            all.filter(|(_, one)| one.state == ProposalStatus::Waiting || one.edited.is_some());
        reviewed.map(|(id, _)| *id)
    }

    /// Returns the waiting proposals whose reviews are answered directly, not through another
    /// proposal of their set.
    pub fn lead_proposals(&self) -> impl Iterator<Item = (ProposalId, &RunProposal)> {
        let leads = |(id, proposal): &(ProposalId, &RunProposal)| {
            proposal.state == ProposalStatus::Waiting && proposal.lead == *id
        };
        let all = self.proposals.iter().map(|(id, one)| (*id, one));
        all.filter(leads)
    }

    /// Returns the proposal whose review includes this one.
    pub fn lead_of(&self, id: ProposalId) -> ProposalId {
        self.proposals.get(&id).map_or(id, |one| one.lead)
    }

    /// Returns the waiting proposals without which this proposal fails its checks. For a set, only
    /// its lead is returned (the proposal through which the set is reviewed).
    pub fn needs(&self, id: ProposalId) -> Vec<ProposalId> {
        let evidence = self
            .proposals
            .get(&id)
            .and_then(|one| one.evidence.as_ref());
        let needed = evidence.map_or(&[][..], |evidence| evidence.needs());
        let waits = |id: &&ProposalId| {
            let needed = self.proposals.get(id);
            needed.is_some_and(|one| one.state == ProposalStatus::Waiting)
        };
        let mut leads: Vec<ProposalId> = needed
            .iter()
            .filter(waits)
            .map(|needed| self.lead_of(*needed))
            .collect();
        leads.sort();
        leads.dedup();
        leads
    }

    /// Applies the user's answer at once; the run's event follows later.
    pub fn note_answer(&mut self, lead: ProposalId, answer: &ReviewAnswer) {
        let state = match answer {
            ReviewAnswer::Verdict(Verdict::Accept) => ProposalStatus::Accepted,
            ReviewAnswer::Verdict(Verdict::Reject { .. } | Verdict::Steer { .. }) => {
                ProposalStatus::Rejected
            }
            ReviewAnswer::Edited(_) => ProposalStatus::Checking,
        };
        let waits =
            |one: &&mut RunProposal| one.lead == lead && one.state == ProposalStatus::Waiting;
        for proposal in self.proposals.values_mut().filter(waits) {
            proposal.set_status(state);
        }
    }

    /// Updates the view with an event after the end of the run: a change was undone or made again.
    /// The states of the agents are kept.
    pub fn note_applied(&mut self, event: &Event) {
        proposal::note(&mut self.proposals, event);
        applied::note(&mut self.applied, event);
    }

    /// Returns whether no member of a review conflicts with the user's text.
    pub fn fits(&self, lead: ProposalId) -> bool {
        let members = self.proposals.values().filter(|one| one.lead == lead);
        members.into_iter().all(|one| one.conflict.is_none())
    }

    /// Compares waiting changes with the current text of a file.
    #[cfg(test)]
    pub fn compare(&mut self, file: &FilePath, text: &str) {
        let parts: Vec<FileChange> = self.waiting_parts(file).cloned().collect();
        for part in parts {
            let conflict = part.over(text).err();
            self.note_conflict(&part, conflict.map(|one| one.in_lines(&part.base)));
        }
    }

    /// Marks that a file cannot be read.
    pub fn note_unreadable(&mut self, file: &FilePath, error: &EditorError) {
        for proposal in self.proposals.values_mut() {
            if let Some(part) = proposal.part.as_ref().filter(|part| part.file == *file) {
                proposal.conflict = part.lost(error);
            }
        }
    }

    /// Sets the conflict of a waiting change, unless the proposal has another change by now.
    pub fn note_conflict(&mut self, part: &FileChange, conflict: Option<String>) {
        let proposal = self.proposals.get_mut(&part.proposal);
        if let Some(proposal) = proposal.filter(|one| one.part.as_ref() == Some(part)) {
            proposal.conflict = conflict;
        }
    }

    /// Returns the waiting changes of a file.
    pub fn waiting_parts(&self, file: &FilePath) -> impl Iterator<Item = &FileChange> {
        let parts = self.proposals.values().filter_map(|one| one.part.as_ref());
        parts.filter(move |part| part.file == *file)
    }

    /// Returns the files of waiting proposals.
    pub fn waiting_files(&self) -> impl Iterator<Item = &FilePath> {
        let parts = self.proposals.values().filter_map(|one| one.part.as_ref());
        parts.map(|part| &part.file)
    }
}
