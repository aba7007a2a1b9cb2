//! Checks of the events in the run log.

use std::collections::BTreeSet;

use starling_core::Verdict;
use starling_swarm::{ActorId, AnswerSource, Event, Evidence, StopReason};

use super::Judge;
use super::proposals::{Proposal, name_of};
use crate::actors::Reply;
use crate::project::version_in;

impl Judge {
    pub(super) fn event(&mut self, event: &Event) {
        let is_of_undo = match event {
            Event::ProposalUndone { .. } => true,
            // If a part of a set cannot be undone, the set is applied again.
            Event::ProposalApplying { .. } | Event::ProposalApplied { .. } => self.undoing,
            _ => false,
        };
        if self.stop_reason.is_some() && !is_of_undo {
            let text = format!("{event:?}").chars().take(120).collect();
            self.broken("nothing after the end", "an event", text);
        }
        if let Event::ScoutPicked { symbols } = event {
            self.told.clear();
            if self.picks.is_empty() {
                self.picks = symbols
                    .iter()
                    .map(|(symbol, _)| symbol.to_string())
                    .collect();
            }
        } else {
            self.note_told(event);
        }
        match event {
            Event::TurnStarted {
                agent,
                conversation,
                ..
            } => {
                self.spending.of_turn.remove(conversation);
                if conversation.starts_with("agent ") || conversation == "solo" {
                    self.check_turn(&name_of(agent), None);
                }
            }
            Event::TurnFailed { .. } => {
                let requests = self.spending.of_turn.values();
                self.spending.retried_in_vain |= requests.max().is_some_and(|most| *most > 1);
            }
            Event::AgentWoken { agent, .. } => {
                self.awake.insert(name_of(agent));
                self.woken.insert(name_of(agent));
            }
            Event::AgentFinished { agent, outcome, .. } => {
                self.awake.remove(&name_of(agent));
                self.check_turn(&name_of(agent), Some(outcome));
            }
            Event::Answered {
                from, text, source, ..
            } => self.answered(from, text, *source),
            Event::RunFinished { stop_reason, .. } => self.finished(stop_reason),
            Event::IntentReviewed { agent, by, verdict } => {
                self.intent_reviewed(agent, by, verdict)
            }
            _ => self.proposal_event(event),
        }
    }

    fn proposal_event(&mut self, event: &Event) {
        match event {
            Event::ProposalMade {
                proposal,
                agent,
                symbols,
                diff,
                revises,
                ..
            } => {
                let agent = name_of(agent);
                let is_kept_part = revises.is_some_and(|id| {
                    let earlier = self.proposals.all.get(&id.0);
                    earlier.is_some_and(|one| one.ends.contains(&"refused"))
                });
                let files = symbols.iter().map(|symbol| symbol.file.to_string());
                self.drafted_files.extend(files);
                let turn = self.proposals.turns.get_mut(&agent);
                let change = turn.and_then(|turn| {
                    if is_kept_part {
                        // The turn's proposal failed its check alone, and is checked again together
                        // with the turn's later proposals: its refusal is taken back, and it is no
                        // new proposal of the turn.
                        turn.refused = turn.refused.saturating_sub(1);
                        return None;
                    }
                    turn.handled += 1;
                    turn.proposals.get(turn.handled - 1).cloned()
                });
                let made = Proposal {
                    candidate: self.proposals.chosen.remove(&agent),
                    agent,
                    symbols: symbols.clone(),
                    change,
                    diff: diff.clone(),
                    made: self.now,
                    ..Proposal::default()
                };
                self.proposals.all.insert(proposal.0, made);
            }
            Event::ProposalRefused { agent, why, .. } => self.refused(&name_of(agent), why),
            Event::CandidateChosen { agent, model, .. } => {
                self.proposals.chosen.insert(name_of(agent), model.clone());
            }
            Event::ProposalChecked { proposal, evidence } => self.checked(proposal.0, evidence),
            Event::TestsRun {
                proposal: Some(proposal),
                report,
                ..
            } => {
                self.check_that_texts_are_fresh(proposal.0, report.exit);
                let waits = self
                    .proposals
                    .all
                    .get(&proposal.0)
                    .is_some_and(|one| one.waits_since.is_some());
                self.check_patience(proposal.0);
                if waits {
                    // A joint check concerns all waiting proposals.
                    self.proposals.restart_waits(self.now);
                }
            }
            Event::ReviewAsked {
                proposal,
                with,
                diff,
                ..
            } => {
                for id in with.iter().chain([proposal]) {
                    self.check_patience(id.0);
                    if let Some(one) = self.proposals.all.get_mut(&id.0) {
                        // The person is asked again about a change that the editor refused, and about
                        // the parts of its set, which were applied and taken back.
                        let is_refused = one.ends.pop_if(|end| *end == "not applied").is_some();
                        let is_taken_back =
                            one.undone && one.ends.pop_if(|end| *end == "applied").is_some();
                        if is_refused || is_taken_back {
                            (one.accepted, one.edit_refused) = (false, false);
                        }
                        if is_taken_back {
                            (one.arrived, one.applied, one.undone) = (false, false, false);
                        }
                        one.under_review = true;
                        one.diff.clone_from(diff);
                        one.in_set |= !with.is_empty();
                    }
                }
            }
            Event::ProposalEdited {
                proposal, symbols, ..
            } => {
                if let Some(one) = self.proposals.all.get_mut(&proposal.0)
                    && !symbols.is_empty()
                {
                    one.symbols.clone_from(symbols);
                    one.candidate = None;
                    one.waits_since = None;
                    one.under_review = false;
                }
            }
            Event::ProposalReviewed {
                proposal,
                by,
                verdict,
            } => self.reviewed(proposal.0, by, verdict),
            Event::ProposalApplying { proposal, .. } => {
                self.proposals.announced.push(proposal.0);
            }
            Event::ProposalApplied { proposal, .. } => self.applied(proposal.0),
            Event::TakenBack { left, .. } => {
                for (id, _) in left {
                    if let Some(one) = self.proposals.all.get_mut(&id.0) {
                        one.stays = true;
                    }
                }
            }
            Event::ProposalUndone { proposal, .. } => {
                self.said_to_be_undone(proposal.0);
                self.note_versions(proposal.0);
            }
            Event::ProposalNotApplied { proposal, .. } => {
                self.proposal_ends(proposal.0, "not applied");
            }
            Event::ProposalConflicted { proposal, .. } => {
                self.note_sent_back(proposal.0);
                self.proposal_ends(proposal.0, "conflicted");
            }
            _ => {}
        }
    }

    fn refused(&mut self, agent: &str, why: &str) {
        if why.starts_with("candidate of ") {
            return;
        }
        let open = self.proposals.open_of(agent).map(|one| {
            one.ends.push("refused");
            one.waits_since = None;
        });
        if let Some(turn) = self.proposals.turns.get_mut(agent) {
            turn.refused += 1;
            // No draft was made.
            turn.handled += usize::from(open.is_none());
        }
    }

    fn note_sent_back(&mut self, id: u32) {
        let agent = self.proposals.all.get(&id).map(|one| one.agent.clone());
        let turn = agent.and_then(|agent| self.proposals.turns.get_mut(&agent));
        if let Some(turn) = turn {
            turn.refused += 1;
        }
    }

    fn checked(&mut self, id: u32, evidence: &Evidence) {
        let now = self.now;
        let Some(proposal) = self.proposals.all.get_mut(&id) else {
            return;
        };
        proposal.contract = !evidence.contract.is_empty();
        proposal.in_set |= evidence.together.is_some();
        proposal.waits_since = (!proposal.under_review).then_some(now);
    }

    fn reviewed(&mut self, id: u32, by: &ActorId, verdict: &Verdict) {
        if let Some(one) = self.proposals.all.get_mut(&id) {
            one.waits_since = None;
            one.under_review = false;
        }
        match verdict {
            Verdict::Accept => {
                if *by == ActorId::Proxy {
                    self.check_proxy(id);
                }
                if let Some(one) = self.proposals.all.get_mut(&id) {
                    one.accepted = true;
                }
            }
            Verdict::Reject { .. } | Verdict::Steer { .. } => {
                self.note_sent_back(id);
                self.proposal_ends(id, "sent back");
            }
        }
    }

    /// Checks that the proxy's last reply about the proposal clearly accepted.
    fn check_proxy(&mut self, id: u32) {
        let Some(proposal) = self.proposals.all.get(&id) else {
            return;
        };
        let said = self.proposals.proxy.get(&proposal.agent);
        if let Some((false, at)) = said
            && *at >= proposal.made
        {
            let text = format!("#{id} of {}", proposal.agent);
            self.broken(
                "only a clear yes accepts",
                "the proxy's words are misread",
                text,
            );
        }
    }

    fn intent_reviewed(&mut self, agent: &ActorId, by: &ActorId, verdict: &Verdict) {
        let name = name_of(agent);
        let said = self.proposals.proxy.get(&format!("intent {name}"));
        if *verdict == Verdict::Accept && *by == ActorId::Proxy && said.is_some_and(|said| !said.0)
        {
            let text = format!("the intent of {name}");
            self.broken(
                "only a clear yes accepts",
                "the proxy's words are misread",
                text,
            );
        }
        if *verdict != Verdict::Accept
            && let Some(turn) = self.proposals.turns.get_mut(&name)
            && turn.handled < turn.proposals.len()
        {
            turn.handled += 1;
            turn.refused += 1;
        }
    }

    /// Checks that the proposal was undone by an edit, or that the user had removed it from the
    /// text before. A later proposal may have brought the same lines again after that.
    fn said_to_be_undone(&mut self, id: u32) {
        let arrival = self.proposals.all.get(&id).and_then(|one| one.arrival);
        let all = self.proposals.all.values();
        let later = all.filter(|one| arrival.is_some() && one.arrival > arrival && !one.undone);
        let of_later: BTreeSet<String> = later
            .flat_map(Proposal::added_versions)
            .map(str::to_owned)
            .collect();
        let Some(proposal) = self.proposals.all.get_mut(&id) else {
            return;
        };
        let stays = !proposal.undone && {
            let added = proposal.added_versions();
            let mut added = added.filter(|line| !of_later.contains(*line));
            let mut texts = self.texts.values();
            added.any(|line| texts.any(|text| text.lines().any(|own| own == line)))
        };
        proposal.undone = true;
        if stays {
            let text = format!("#{id} is said to be undone");
            self.broken("the log tells the state", "its lines stay", text);
        }
    }

    fn applied(&mut self, id: u32) {
        let Some(proposal) = self.proposals.all.get_mut(&id) else {
            return;
        };
        let again = std::mem::replace(&mut proposal.applied, true);
        let arrived = proposal.arrived && !proposal.undone;
        if !arrived {
            let text = format!("#{id} is said to be applied");
            self.broken("the log tells the state", "no edit", text);
        }
        if !again {
            self.proposal_ends(id, "applied");
        }
        self.note_versions(id);
    }

    /// Records the versions that the editor last wrote for the symbols of a proposal, except those
    /// that the user has changed since.
    fn note_versions(&mut self, id: u32) {
        let symbols = self.proposals.all.get(&id).map(|one| one.symbols.clone());
        for symbol in symbols.unwrap_or_default().iter().map(ToString::to_string) {
            let arrived = self.arrived_versions.get(&symbol).copied();
            let stands =
                |version: &i64| super::has_version(&self.project, &self.texts, &symbol, *version);
            match arrived.filter(stands) {
                Some(version) => self.applied_versions.insert(symbol, version),
                None => self.applied_versions.remove(&symbol),
            };
        }
    }

    /// Checks that an answer from memory does not describe a text that has changed since.
    fn answered(&mut self, from: &ActorId, text: &str, source: AnswerSource) {
        if source != AnswerSource::Memory {
            return;
        }
        let owner = name_of(from);
        let said = text
            .find("v=")
            .and_then(|at| version_in(&text[at..].replace("v=", "v = ").replace('.', " ")));
        let Some(now) = self.applied_versions.get(&owner) else {
            return;
        };
        if let Some(said) = said
            && said != *now
        {
            let text = format!("{owner} is said to have version {said}, it has {now}");
            self.broken(
                "an answer is of the current text",
                "remembered after it was forgotten",
                text,
            );
        }
    }

    pub(super) fn note_picks(&mut self, reply: &Reply) {
        for (name, arguments) in &reply.calls {
            let Ok(arguments) = serde_json::from_str::<serde_json::Value>(arguments) else {
                continue;
            };
            if name == "wake" {
                let picks = arguments["symbols"].as_array().cloned().unwrap_or_default();
                let drafted = picks
                    .iter()
                    .filter(|pick| pick["source"].is_string() || pick["hunks"].is_array());
                let files = drafted
                    .filter_map(|pick| pick["symbol"].as_str()?.split("::").next())
                    .map(str::to_owned);
                self.drafted_files.extend(files);
                let named = picks.iter().filter_map(|pick| pick["symbol"].as_str());
                self.picks = named.map(str::to_owned).collect();
            }
        }
    }

    /// Records the text of events that can explain why a pick of the scout was not followed.
    fn note_told(&mut self, event: &Event) {
        match event {
            Event::AgentWoken { .. }
            | Event::ToolUsed { .. }
            | Event::Asked { .. }
            | Event::Answered { .. }
            | Event::ProposalMade { .. }
            | Event::ProposalChecked { .. }
            | Event::ProposalReviewed { .. }
            | Event::ReviewAsked { .. }
            | Event::TurnStarted { .. }
            | Event::TurnFinished { .. }
            | Event::TestsRun { .. }
            | Event::Located { .. }
            | Event::ProposalApplied { .. }
            | Event::ChangeRequested { .. } => {}
            other => self.told.push_str(&format!("{other:?}\n")),
        }
    }

    fn finished(&mut self, stop_reason: &StopReason) {
        self.stop_reason = Some(stop_reason.clone());
        let was_cut_short = matches!(
            stop_reason,
            StopReason::Cancelled | StopReason::LedgerEmpty { .. }
        );
        self.check_exhaustion(stop_reason);
        self.check_ends(was_cut_short);
        self.check_landing(stop_reason.is_settled());
        let ended_by_itself = matches!(
            stop_reason,
            StopReason::Settled
                | StopReason::NothingChanged { .. }
                | StopReason::TestsFail { .. }
                | StopReason::ProblemsRemain { .. }
        );
        if ended_by_itself {
            let lost: Vec<String> = self
                .picks
                .iter()
                .filter(|pick| !self.woken.contains(*pick) && !self.told.contains(pick.as_str()))
                .cloned()
                .collect();
            if let Some(first) = lost.first() {
                let is_new = self.project.unit(first).is_none();
                let mechanism = if is_new {
                    "a pick of a new file"
                } else {
                    "a pick above the limit of agents"
                };
                self.broken(
                    "every pick is followed or told",
                    mechanism,
                    format!("{lost:?}"),
                );
            }
        }
        let failed = matches!(stop_reason, StopReason::Failed { .. });
        if !was_cut_short && !failed && !self.awake.is_empty() {
            let text = format!("{:?}", self.awake);
            self.broken("every agent ends", "no end", text);
        }
    }
}
