//! The visible state of a run, computed from its events.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use super::prompt::{CHOICES, CHOICES_BY_KEY, CHOICES_OF_ENDED};
use starling_core::{
    Cost, Dollars, Driver, IntentView, Role, TestOutcome, TestReport, TestStatus, Tokens,
};
use starling_runner::withheld_in;
use starling_server::protocol::TargetParams;
use starling_swarm::{
    ActorId, AgentOutcome, Cause, Ending, Event, Evidence, ProposalId, Spent, StopReason, TestPhase,
};
use starling_syntax::SymbolPath;

/// Tools that have their own events.
const TOLD: [&str; 5] = ["ask", "request_change", "intent", "propose", "finish"];

/// The name of the model in runs without a model.
pub const NO_MODEL: &str = "none";

/// An agent's current activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doing {
    Woken,
    Thinking,
    Reading,
    /// Waits for an answer from another party.
    Asking(ActorId),
    Checking,
    InReview,
    /// The state of the scout and the proxy user after each answer.
    Answered,
    Done(AgentOutcome),
}

/// An agent, the scout, or the proxy user.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub party: ActorId,
    /// The agent, scout or user whose action started (woke) this agent.
    pub parent: Option<ActorId>,
    pub doing: Doing,
    /// The time at which the current activity started.
    pub since_ms: u64,
    pub tokens: Tokens,
    /// The last action, in a few words.
    pub last: String,
}

/// A review that waits for the user.
#[derive(Debug, Clone, PartialEq)]
pub enum Review {
    Proposal { id: ProposalId, symbol: SymbolPath },
    Intent(IntentView),
}

impl Review {
    /// Returns whether this is the review of a proposal.
    pub fn is_of(&self, proposal: ProposalId) -> bool {
        match self {
            Review::Proposal { id, .. } => *id == proposal,
            Review::Intent(_) => false,
        }
    }

    /// Returns the target of a command about this review.
    pub fn target(&self) -> TargetParams {
        match self {
            Review::Proposal { id, .. } => TargetParams {
                proposal: Some(*id),
                ..TargetParams::default()
            },
            Review::Intent(view) => TargetParams {
                symbol: Some(view.symbol.clone()),
                intent: Some(view.intent.clone()),
                ..TargetParams::default()
            },
        }
    }
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    pub stop_reason: StopReason,
    pub applied: Vec<SymbolPath>,
    pub diff: String,
    pub spent: Spent,
    /// `None` in older recordings.
    pub ending: Option<Ending>,
    /// Number of proposals that wait for the user's answer.
    pub waiting: usize,
}

/// The text that the last tests ran on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TestedText {
    /// The user's text as it is now.
    #[default]
    Current,
    /// The user's text before the last applied proposal.
    BeforeLastChange,
    /// The user's text with changes that were taken back later.
    WithRevertedChanges,
    /// The user's text with some of the changes that were taken back later.
    WithSomeRevertedChanges,
    /// The user's text before all changes, which were taken back later.
    BeforeRevertedChanges,
}

/// The visible state of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunState {
    pub driver: Option<Driver>,
    /// The root of the project.
    pub root: PathBuf,
    pub models: Vec<(Role, String)>,
    pub replayed: bool,
    pub at_ms: u64,
    pub calls: u32,
    pub tokens: Tokens,
    pub dollars: Dollars,
    pub questions: u32,
    /// Number of files read, and number of files to read.
    pub reading: Option<(usize, usize)>,
    /// The agents in the order in which they appeared.
    pub agents: Vec<Agent>,
    pub reviews: VecDeque<Review>,
    /// Whether the run is over, so that no agent can revise a proposal.
    pub agents_are_gone: bool,
    /// The last test result for the user's text.
    pub tests: Option<String>,
    /// Which text the last tests ran on, if it is no longer the user's text.
    pub tested_text: TestedText,
    /// When the last tests ran.
    pub tested_in: Option<TestPhase>,
    pub finished: Option<Finished>,
    /// Owners that were not notified of a changed contract, with the changed symbol.
    pub missed: BTreeSet<(SymbolPath, SymbolPath)>,
    /// Owners that were notified of a changed contract and did not change their code.
    pub unfollowed: BTreeSet<(SymbolPath, SymbolPath)>,
    /// Symbols whose owners could not be woken for a task.
    pub not_woken: BTreeSet<String>,
    proposals: BTreeMap<ProposalId, Proposal>,
    /// Notes in test reports about environment variables that are withheld from tests.
    withheld: BTreeSet<String>,
    /// The notes that the latest tests added to `withheld`.
    pub newly_withheld: Vec<String>,
    /// The file and text of each changed line in the diffs of decided proposals.
    shown: BTreeSet<(String, String)>,
    /// The proposals that the user has reviewed.
    reviewed_by_user: BTreeSet<ProposalId>,
    /// Number of lines that the applied proposals removed or added.
    pub applied_lines: usize,
}

/// The known data of a proposal.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub agent: ActorId,
    pub symbols: Vec<SymbolPath>,
    pub reason: String,
    pub diff: String,
    pub evidence: Option<Evidence>,
    /// Notes about changes to the files after the proposal was checked.
    pub notes: Vec<String>,
}

impl RunState {
    /// Returns the available answers.
    pub fn choices(&self) -> &'static str {
        match self.agents_are_gone {
            true => CHOICES_OF_ENDED,
            false => CHOICES,
        }
    }

    /// Returns the available answers if keys are read.
    pub fn choices_by_key(&self) -> &'static str {
        match self.agents_are_gone {
            true => CHOICES_OF_ENDED,
            false => CHOICES_BY_KEY,
        }
    }

    /// Whether the run uses no model, as a refactoring does.
    pub fn is_without_model(&self) -> bool {
        !self.models.is_empty() && self.models.iter().all(|(_, name)| name == NO_MODEL)
    }

    /// Whether the user has reviewed a proposal.
    pub fn is_reviewed_by_user(&self, id: ProposalId) -> bool {
        self.reviewed_by_user.contains(&id)
    }

    /// Updates a proposal's diff against the current text, and its notes.
    pub fn renew(&mut self, id: ProposalId, diff: String, notes: Vec<String>) {
        if let Some(made) = self.proposals.get_mut(&id) {
            made.diff = diff;
            made.notes = notes;
        }
    }

    /// Updates the state with an event.
    pub fn take(&mut self, at_ms: u64, event: &Event) {
        self.at_ms = self.at_ms.max(at_ms);
        let before: Vec<Doing> = self.agents.iter().map(|one| one.doing.clone()).collect();
        self.fold(event);
        let changed = before.iter().zip(&mut self.agents);
        for (_, agent) in changed.filter(|(before, agent)| **before != agent.doing) {
            agent.since_ms = self.at_ms;
        }
        // Events of a run that is over name agents that are not at work.
        if self.agents_are_gone {
            self.agents.clear();
        }
    }

    fn fold(&mut self, event: &Event) {
        match event {
            Event::RunStarted { .. } | Event::TestsRun { .. } | Event::RunFinished { .. } => {
                self.take_run(event);
            }
            Event::AgentWoken { agent, cause } => self.woken(agent, cause),
            Event::AgentFinished { agent, outcome, .. } => {
                self.agent(agent).doing = Doing::Done(outcome.clone());
            }
            Event::TurnStarted { .. } | Event::TurnFinished { .. } => self.take_turn(event),
            Event::TurnFailed {
                agent,
                error,
                spent,
                ..
            } => {
                self.spent(agent, *spent);
                self.did(agent, Doing::Thinking, error);
            }
            Event::Malformed { agent, what } => self.did(agent, Doing::Thinking, what),
            Event::ToolUsed { .. } => self.take_tool(event),
            Event::Asked { from, to, text, .. } => {
                self.questions += 1;
                self.did(from, Doing::Asking(to.clone()), text);
            }
            Event::Answered { to, text, .. } => self.did(to, Doing::Thinking, text),
            Event::ChangeRequested { from, reason, .. } => self.did(from, Doing::Thinking, reason),
            Event::IntentStated { agent, intent, .. } => self.did(agent, Doing::Thinking, intent),
            Event::IntentReviewed { agent, .. } => self.intent_reviewed(agent),
            Event::ProposalMade { .. }
            | Event::ProposalChecked { .. }
            | Event::ReviewAsked { .. } => self.take_proposal(event),
            Event::ProposalEdited { proposal, .. } => {
                self.reviewed(*proposal);
                self.did_about(*proposal, Doing::Checking, "as you edited it");
            }
            Event::ProposalReviewed { proposal, by, .. } => {
                if *by == ActorId::User {
                    self.reviewed_by_user.insert(*proposal);
                }
                self.reviewed(*proposal);
            }
            Event::ProposalRefused { agent, why, shown } => {
                self.did(agent, Doing::Thinking, shown.as_ref().unwrap_or(why));
            }
            Event::ProposalApplied { proposal, diff, .. } => {
                self.tested_text = TestedText::BeforeLastChange;
                self.applied_lines += changed_lines(diff).count();
                self.did_about(*proposal, Doing::Thinking, "applied");
            }
            Event::TakenBack { .. } => {
                self.tested_text = match (self.tested_text, self.tested_in) {
                    (_, Some(TestPhase::Before) | None) => TestedText::BeforeRevertedChanges,
                    (TestedText::BeforeLastChange, _) => TestedText::WithSomeRevertedChanges,
                    (_, Some(TestPhase::Settling | TestPhase::Proposal)) => {
                        TestedText::WithRevertedChanges
                    }
                };
            }
            Event::ProposalConflicted { proposal, why }
            | Event::ProposalNotApplied { proposal, why } => {
                self.did_about(*proposal, Doing::Thinking, why);
            }
            Event::Located { .. }
            | Event::ScoutPicked { .. }
            | Event::Notice { .. }
            | Event::ChangeDeclined { .. }
            | Event::CandidateChosen { .. }
            | Event::LanguageServer { .. }
            | Event::Diagnosed { .. }
            | Event::EditReceived { .. }
            | Event::ProposalApplying { .. }
            | Event::ProposalUndone { .. }
            | Event::FollowedUp { .. }
            | Event::Steered { .. } => {}
            Event::NotWoken { symbol, .. } => {
                self.not_woken.insert(symbol.clone());
            }
            Event::FollowUpMissed {
                changed,
                owners,
                told,
                ..
            } => {
                let pair = |owner: &SymbolPath| (owner.clone(), changed.clone());
                let list = match told {
                    true => &mut self.unfollowed,
                    false => &mut self.missed,
                };
                list.extend(owners.iter().map(pair));
            }
        }
    }

    fn take_run(&mut self, event: &Event) {
        if let Event::RunStarted {
            driver,
            models,
            replayed,
            root,
            ..
        } = event
        {
            self.driver = Some(*driver);
            self.root = PathBuf::from(root);
            self.models.clone_from(models);
            self.replayed = *replayed;
        } else if let Event::TestsRun { phase, report, .. } = event {
            let messages = report.cases.iter().map(|case| case.message.as_str());
            let told = messages
                .chain([report.output.as_str()])
                .filter_map(withheld_in);
            let mut new: Vec<String> = told.map(str::to_owned).collect();
            new.retain(|told| self.withheld.insert(told.clone()));
            self.newly_withheld = new;
            // Test results of a proposal do not apply to the user's text.
            if *phase != TestPhase::Proposal {
                self.tests = Some(tests(report));
                self.tested_text = TestedText::Current;
                self.tested_in = Some(*phase);
            }
        } else if let Event::RunFinished {
            stop_reason,
            applied,
            diff,
            spent,
            ending,
            ..
        } = event
        {
            let proposals = self.reviews.drain(..);
            let waiting = proposals.filter(|one| matches!(one, Review::Proposal { .. }));
            let waiting = waiting.count();
            self.finished = Some(Finished {
                stop_reason: stop_reason.clone(),
                applied: applied.clone(),
                diff: diff.clone(),
                spent: spent.clone(),
                ending: ending.clone(),
                waiting,
            });
        }
    }

    fn spent(&mut self, agent: &ActorId, cost: Cost) {
        let tokens = cost.usage.prompt + cost.usage.output;
        self.calls += cost.calls;
        self.tokens += tokens;
        self.dollars += cost.dollars;
        self.agent(agent).tokens += tokens;
    }

    fn take_turn(&mut self, event: &Event) {
        if let Event::TurnStarted { agent, .. } = event {
            let at_ms = self.at_ms;
            let agent = self.agent(agent);
            agent.doing = Doing::Thinking;
            agent.since_ms = at_ms;
        } else if let Event::TurnFinished {
            agent,
            usage,
            cost,
            calls,
            ..
        } = event
        {
            let cost = Cost {
                calls: *calls,
                usage: *usage,
                dollars: *cost,
            };
            self.spent(agent, cost);
            let agent = self.agent(agent);
            if matches!(agent.party, ActorId::Scout | ActorId::Proxy) {
                agent.doing = Doing::Answered;
            }
        }
    }

    fn take_tool(&mut self, event: &Event) {
        if let Event::ToolUsed {
            agent,
            tool,
            argument,
            ..
        } = event
            && !TOLD.contains(&tool.as_str())
            // Starling runs examples itself. It is no agent, so it has no row in the tree.
            && *agent != ActorId::Starling
        {
            self.did(agent, Doing::Reading, &format!("{tool} {argument}"));
        }
    }

    fn take_proposal(&mut self, event: &Event) {
        if let Event::ProposalMade {
            proposal,
            agent,
            symbols,
            reason,
            diff,
            revises: _,
        } = event
        {
            let made = Proposal {
                agent: agent.clone(),
                symbols: symbols.clone(),
                reason: reason.clone(),
                diff: diff.clone(),
                evidence: None,
                notes: Vec::new(),
            };
            self.proposals.insert(*proposal, made);
            self.did_about(*proposal, Doing::Checking, reason);
        } else if let Event::ProposalChecked { proposal, evidence } = event {
            if let Some(made) = self.proposals.get_mut(proposal) {
                made.evidence = Some(evidence.clone());
            }
            // The evidence of a proposal under review is renewed when the text changes. Any other proposal
            // may be tested together with others before it is decided.
            let (doing, last) = match self.reviews.iter().any(|review| review.is_of(*proposal)) {
                true => (Doing::InReview, "checked"),
                false => (Doing::Checking, "checked so far"),
            };
            self.did_about(*proposal, doing, last);
        } else if let Event::ReviewAsked {
            proposal,
            agent,
            symbol,
            diff,
            reason,
            evidence,
            with,
            parts: _,
        } = event
        {
            let (id, symbol) = (*proposal, symbol.clone());
            let made = self.proposals.entry(id).or_insert_with(|| Proposal {
                agent: agent.clone(),
                symbols: vec![symbol.clone()],
                reason: reason.clone(),
                diff: diff.clone(),
                evidence: None,
                notes: Vec::new(),
            });
            // A set of proposals is shown as one.
            if !with.is_empty() {
                made.reason.clone_from(reason);
            }
            made.diff.clone_from(diff);
            made.evidence = Some(evidence.clone());
            let review = Review::Proposal { id, symbol };
            if !self.reviews.contains(&review) {
                self.reviews.push_back(review);
            }
            self.did_about(id, Doing::InReview, "waits");
        }
    }

    /// Whether each changed line of a diff was in the diff of a decided proposal.
    pub fn has_shown(&self, diff: &str) -> bool {
        changed_lines(diff).all(|line| self.shown.contains(&line))
    }

    fn reviewed(&mut self, proposal: ProposalId) {
        if let Some(made) = self.proposals.get(&proposal) {
            self.shown.extend(changed_lines(&made.diff));
        }
        self.reviews.retain(|review| !review.is_of(proposal));
        self.did_about(proposal, Doing::Thinking, "reviewed");
    }

    fn intent_reviewed(&mut self, agent: &ActorId) {
        self.reviews.retain(|review| match review {
            Review::Proposal { .. } => true,
            Review::Intent(view) => *agent != ActorId::Agent(view.symbol.clone()),
        });
        self.agent(agent).doing = Doing::Thinking;
    }

    fn did_about(&mut self, proposal: ProposalId, doing: Doing, last: &str) {
        if let Some(made) = self.proposals.get(&proposal) {
            let party = made.agent.clone();
            self.did(&party, doing, &format!("{proposal} {last}"));
        }
    }

    pub fn proposal(&self, id: ProposalId) -> Option<&Proposal> {
        self.proposals.get(&id)
    }

    /// Describes the callers of a changed contract that no owner follows up.
    pub fn callers_without_owner(&self, changed: &SymbolPath) -> Option<String> {
        let is_it = |made: &&Proposal| made.symbols.contains(changed);
        let made = self.proposals.values().rev().find(is_it)?;
        made.evidence.as_ref()?.callers_without_owner()
    }

    /// Records that an agent waits for the review of its intent.
    pub fn intent_asked(&mut self, view: IntentView) {
        self.agent(&ActorId::Agent(view.symbol.clone())).doing = Doing::InReview;
        self.reviews.push_back(Review::Intent(view));
    }

    /// Removes the first review when the user answers it; the event about it arrives later.
    pub fn answered(&mut self) -> Option<Review> {
        self.reviews.pop_front()
    }

    fn woken(&mut self, party: &ActorId, cause: &Cause) {
        let (parent, last) = match cause {
            Cause::Picked { why } => (None, why.clone()),
            Cause::ChangeRequest { from, reason } => (Some(from.clone()), reason.clone()),
            Cause::FollowUp {
                changed, changes, ..
            } => (Some(ActorId::Agent(changed.clone())), changes.join("; ")),
            Cause::FailedTests { message } => (None, format!("tests fail: {message}")),
            Cause::Problems { message } => (None, format!("problems: {message}")),
            Cause::Steered { text } => (None, format!("you: {text}")),
            Cause::Declined { reason, .. } => (None, format!("declined: {reason}")),
        };
        let knows = |party: &ActorId| self.agents.iter().any(|agent| agent.party == *party);
        // Only existing agents can be parents, so that the tree has no cycles.
        let parent = parent.filter(|parent| !knows(party) && knows(parent));
        let agent = self.agent(party);
        agent.doing = Doing::Woken;
        agent.last = last;
        agent.parent = agent.parent.take().or(parent);
    }

    fn did(&mut self, party: &ActorId, doing: Doing, last: &str) {
        let agent = self.agent(party);
        agent.doing = doing;
        agent.last = last.lines().next().unwrap_or_default().to_owned();
    }

    fn agent(&mut self, party: &ActorId) -> &mut Agent {
        let at = match self.agents.iter().position(|agent| agent.party == *party) {
            Some(at) => at,
            None => {
                self.agents.push(Agent {
                    party: party.clone(),
                    parent: None,
                    doing: Doing::Woken,
                    since_ms: self.at_ms,
                    tokens: Tokens(0),
                    last: String::new(),
                });
                self.agents.len() - 1
            }
        };
        &mut self.agents[at]
    }
}

/// Returns the lines that a unified diff removes or adds, each with its file.
pub fn changed_lines(diff: &str) -> impl Iterator<Item = (String, String)> {
    let mut file = String::new();
    diff.lines().filter_map(move |line| {
        if line.starts_with("+++ ") || line.starts_with("--- ") {
            line.trim_start_matches(['+', '-']).clone_into(&mut file);
            return None;
        }
        let is_changed = line.starts_with(['+', '-']);
        is_changed.then(|| (file.clone(), line.to_owned()))
    })
}

/// Summarizes a test report in a few words.
pub fn tests(report: &TestReport) -> String {
    let count = |status: TestStatus| {
        let with = |case: &&starling_core::TestCase| case.status == status;
        report.cases.iter().filter(with).count()
    };
    let failing = count(TestStatus::Failed) + count(TestStatus::Error);
    let passed = count(TestStatus::Passed);
    let unsteady = match count(TestStatus::Unsteady) {
        0 => String::new(),
        1 => ", 1 fails sometimes".to_owned(),
        many => format!(", {many} fail sometimes"),
    };
    let seconds = report.millis as f64 / 1000.0;
    let word = report.outcome.word();
    match report.outcome {
        TestOutcome::NotRun => match report.output.trim().lines().last() {
            Some(why) => format!("{word}: {}", why.chars().take(160).collect::<String>()),
            None => word.to_owned(),
        },
        TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch => format!("{word} after {seconds:.1} s"),
        TestOutcome::Passed => format!("{passed} pass{unsteady} ({seconds:.1} s)"),
        TestOutcome::Failed => {
            format!("{failing} fail, {passed} pass{unsteady} ({seconds:.1} s)")
        }
    }
}
