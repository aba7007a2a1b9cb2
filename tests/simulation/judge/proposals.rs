//! Checks of proposals and tool calls: each must reach exactly one end.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use starling_swarm::{ActorId, AgentOutcome};
use starling_syntax::SymbolPath;

use super::Judge;
use crate::actors::Reply;

/// A time that is longer than any check of a proposal.
const PATIENCE: Duration = Duration::from_secs(1_200);

/// A proposal as the judge sees it: what was proposed, and what has happened to it.
#[derive(Debug, Default, Clone)]
pub struct Proposal {
    pub agent: String,
    pub symbols: Vec<SymbolPath>,
    pub change: Option<Value>,
    /// The diff that the approver was shown.
    pub diff: String,
    pub made: Duration,
    pub contract: bool,
    pub in_set: bool,
    pub accepted: bool,
    pub arrived: bool,
    /// The place of the proposal's edit in the order in which edits arrived.
    pub arrival: Option<usize>,
    pub applied: bool,
    pub undone: bool,
    /// Whether the run reported that the proposal could not be undone.
    pub stays: bool,
    pub edit_refused: bool,
    pub ends: Vec<&'static str>,
    /// The model whose candidate was chosen.
    pub candidate: Option<String>,
    /// Time since which the proposal, after its own check, has been waiting for anything but its
    /// own review.
    pub waits_since: Option<Duration>,
    /// Whether a person reviews the proposal. Its evidence is renewed meanwhile.
    pub under_review: bool,
}

impl Proposal {
    fn is_set(&self, flag: &str) -> bool {
        let change = self.change.as_ref();
        change.is_some_and(|change| change[flag] == Value::Bool(true))
    }

    /// Returns the lines with the version of a function that the proposal adds.
    pub fn added_versions(&self) -> impl Iterator<Item = &str> {
        let added = self.diff.lines();
        let added = added.filter_map(|line| line.strip_prefix('+'));
        added.filter(|line| line.contains("# ver:"))
    }

    /// Returns whether the proposal is accepted and an edit with this label would apply it.
    pub fn awaits_edit(&self, label: &str) -> bool {
        let is_open = self.accepted && !self.arrived && !self.edit_refused && self.ends.is_empty();
        let first = self.symbols.first().map(ToString::to_string);
        is_open && first.as_deref() == Some(label)
    }

    /// Returns whether the proposal was accepted, but the editor refused it or the run ended first.
    pub fn was_accepted_in_vain(&self) -> bool {
        self.edit_refused || self.ends.contains(&"not applied")
    }

    /// Returns the mechanism that may have let the proposal through although it breaks something.
    pub fn excuse(&self) -> &'static str {
        match () {
            () if self.is_set("insist") => "insist",
            () if self.is_set("more") => "more",
            () if self.contract => "change of contract",
            () if self.in_set => "part of a set",
            () => "none",
        }
    }
}

/// The proposals and calls of an agent's last turn.
#[derive(Debug, Default)]
pub struct Turn {
    pub proposals: Vec<Value>,
    pub handled: usize,
    pub refused: usize,
    pub finishes: bool,
}

/// All proposals of a run, and the last turn of each agent.
#[derive(Default)]
pub struct Proposals {
    pub all: BTreeMap<u32, Proposal>,
    pub turns: BTreeMap<String, Turn>,
    pub chosen: BTreeMap<String, String>,
    /// The proposals whose edits the log announced, in order. Those of a set are announced together.
    pub announced: Vec<u32>,
    /// Whether the last decision of a proxy about a symbol clearly accepted, and when it was made.
    pub proxy: BTreeMap<String, (bool, Duration)>,
}

impl Proposals {
    pub fn open_of(&mut self, agent: &str) -> Option<&mut Proposal> {
        let open =
            |one: &&mut Proposal| one.agent == agent && one.ends.is_empty() && !one.edit_refused;
        self.all.values_mut().rev().find(open)
    }

    /// Returns the proposal that an edit with this label applies. Two proposals may have the same
    /// label, for example of one new file, so it is the one that the log announced last.
    pub fn awaiting(&mut self, label: &str) -> Option<&mut Proposal> {
        let awaits = |id: &&u32| {
            let one = self.all.get(*id);
            one.is_some_and(|one| one.awaits_edit(label))
        };
        let id = self.announced.iter().rev().find(awaits).copied()?;
        self.all.get_mut(&id)
    }

    pub fn restart_waits(&mut self, now: Duration) {
        for one in self.all.values_mut() {
            one.waits_since = one.waits_since.map(|_| now);
        }
    }
}

/// Returns the name under which an agent appears in conversations.
pub fn name_of(party: &ActorId) -> String {
    match party {
        ActorId::Agent(symbol) => symbol.to_string(),
        ActorId::Solo => "solo".to_owned(),
        ActorId::User | ActorId::Scout | ActorId::Proxy | ActorId::Starling => String::new(),
    }
}

impl Judge {
    pub(super) fn note_reply(&mut self, conversation: &str, reply: &Reply) {
        if let Some(rest) = conversation.strip_prefix("proxy ") {
            let is_intent = rest.starts_with("intent ");
            let symbol = rest.trim_start_matches("intent ").split(' ').next();
            let key = format!(
                "{}{}",
                if is_intent { "intent " } else { "" },
                symbol.unwrap_or("")
            );
            self.proposals.proxy.insert(key, (reply.accepts, self.now));
            return;
        }
        let agent = conversation
            .strip_prefix("agent ")
            .or_else(|| conversation.strip_prefix("solo").map(|_| "solo"));
        let Some(agent) = agent else { return };
        let mut turn = Turn::default();
        for (name, arguments) in &reply.calls {
            match (name.as_str(), serde_json::from_str::<Value>(arguments)) {
                ("propose", Ok(change)) if change.is_object() => {
                    let file = change["symbol"].as_str().unwrap_or(agent);
                    let file = file.split("::").next().unwrap_or_default();
                    self.drafted_files.insert(file.to_owned());
                    turn.proposals.push(change);
                }
                ("finish", Ok(_)) => turn.finishes = true,
                _ => {}
            }
        }
        self.proposals.turns.insert(agent.to_owned(), turn);
    }

    /// Checks at the end of a turn that all its proposals were handled.
    pub(super) fn check_turn(&mut self, agent: &str, outcome: Option<&AgentOutcome>) {
        let Some(turn) = self.proposals.turns.remove(agent) else {
            return;
        };
        if turn.handled < turn.proposals.len() {
            let mechanism = match outcome {
                Some(AgentOutcome::GaveUp { why }) if why.contains("was called") => {
                    "the fourth identical call"
                }
                _ => "other",
            };
            let text = format!(
                "{agent}: {} of {} proposals were looked at ({outcome:?})",
                turn.handled,
                turn.proposals.len()
            );
            self.broken("no work is lost silently", mechanism, text);
        }
        let ends_well = matches!(
            outcome,
            Some(AgentOutcome::Changed | AgentOutcome::NothingToChange)
        );
        if turn.refused > 0 && ends_well {
            let mechanism = match turn.finishes {
                true => "a refused proposal and `finish` in one turn",
                false => "a refused proposal before an accepted one in one turn",
            };
            let text = format!(
                "{agent} ended {outcome:?} with {} refused proposals",
                turn.refused
            );
            self.broken("no work is lost silently", mechanism, text);
        }
    }

    pub(super) fn proposal_ends(&mut self, id: u32, how: &'static str) {
        let Some(proposal) = self.proposals.all.get_mut(&id) else {
            return;
        };
        proposal.ends.push(how);
        proposal.waits_since = None;
        if proposal.ends.len() > 1 {
            let text = format!("#{id}: {:?}", proposal.ends);
            self.broken("every proposal reaches exactly one end", "two ends", text);
        }
    }

    /// Checks how long a proposal has waited when it continues. Two proposals that waited while a
    /// person decided about a third one could have been tested together.
    pub(super) fn check_patience(&mut self, id: u32) {
        let now = self.now;
        let stood = |since: Duration| now.saturating_sub(since) > PATIENCE;
        let all = &mut self.proposals.all;
        let Some(since) = all.get_mut(&id).and_then(|one| one.waits_since.take()) else {
            return;
        };
        let other = all.values().any(|one| one.waits_since.is_some_and(stood));
        if stood(since) && other {
            let text = format!("#{id} stood still for {:?}", now.saturating_sub(since));
            let mechanism = "a joint check waits while a person reviews another";
            self.broken("no check waits for a person", mechanism, text);
        }
    }

    /// Checks that all proposals have an end when a run was not cut short.
    pub(super) fn check_ends(&mut self, was_cut_short: bool) {
        let open = self
            .proposals
            .all
            .iter()
            .filter(|(_, one)| one.ends.is_empty());
        let open: Vec<(u32, Proposal)> = open.map(|(id, one)| (*id, one.clone())).collect();
        for (id, proposal) in open {
            let mechanism = match () {
                () if proposal.edit_refused => "accepted, then not taken by the editor",
                () if proposal.arrived => continue,
                () if was_cut_short => continue,
                () => "no end",
            };
            let text = format!(
                "#{id} of {} (accepted: {})",
                proposal.agent, proposal.accepted
            );
            self.broken("every proposal reaches exactly one end", mechanism, text);
        }
    }

    /// Checks that a restart finds each change that is in the texts, and no other change.
    pub fn check_known_after_kill(&mut self, known: &BTreeSet<u32>, touched: &BTreeSet<String>) {
        let is_touched = |one: &Proposal| {
            let mut symbols = one.symbols.iter();
            symbols.any(|symbol| touched.contains(symbol.file.as_str()))
        };
        let all = self.proposals.all.iter();
        let is_wrong = |(id, one): &(&u32, &Proposal)| match known.contains(id) {
            true => !one.arrived,
            false => one.arrived && !one.undone,
        };
        let wrong: Vec<u32> = all
            .filter(|(_, one)| !is_touched(one))
            .filter(is_wrong)
            .map(|(id, _)| *id)
            .collect();
        if !wrong.is_empty() {
            let text = format!("{wrong:?}: the trajectory and the text differ");
            self.broken("a restart knows what is applied", "kill", text);
        }
    }

    /// Returns whether a change that had arrived was undone.
    pub fn took_back(&self) -> bool {
        self.proposals.all.values().any(|one| one.undone)
    }

    /// Reports the files whose text is not the result of all applied changes in order.
    pub fn tree_after_kill(&mut self, files: &[&String]) {
        if !files.is_empty() {
            let text = format!("{files:?} hold something else than whole accepted changes");
            self.broken("a killed run leaves whole changes", "kill", text);
        }
    }

    /// Reports the files that an undo of everything did not restore, and typed text that the undo
    /// removed.
    pub fn undone_after_kill(&mut self, not_back: &[&String], lost: &[String]) {
        if !not_back.is_empty() {
            let text = format!("{not_back:?}");
            self.broken("an undo after a kill gives the user's text", "kill", text);
        }
        if !lost.is_empty() {
            let text = format!("{lost:?} was typed");
            self.broken("what the user typed stands", "undo after a kill", text);
        }
    }

    pub(super) fn check_log_against_state(&mut self, was_killed: bool) {
        let unsaid = self
            .proposals
            .all
            .iter()
            .filter(|(_, one)| one.arrived && !one.applied);
        let unsaid: Vec<u32> = unsaid.map(|(id, _)| *id).collect();
        let most = usize::from(was_killed);
        if unsaid.len() > most {
            let mechanism = match self.was_cancelled {
                true => "a cancel while an edit is open",
                false => "the end of a run while an edit is open",
            };
            let text = format!("{unsaid:?} are in the text, but the log does not say so");
            self.broken("the log tells the state", mechanism, text);
        }
    }
}
