//! What a run looks like from outside, folded from its events.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use super::prompt::{CHOICES, CHOICES_BY_KEY, CHOICES_OF_ENDED};
use starling_core::{
    Cost, Dollars, Driver, IntentView, Role, TestOutcome, TestReport, TestStatus, Tokens,
};
use starling_runner::withheld_in;
use starling_server::protocol::Target;
use starling_swarm::{
    AgentOutcome, Cause, Ending, Event, Evidence, Party, ProposalId, Spent, StopReason, TestPhase,
};
use starling_syntax::SymbolPath;

/// Tools whose use has events of its own.
const TOLD: [&str; 5] = ["ask", "request_change", "intent", "propose", "finish"];

/// What an agent does right now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doing {
    Woken,
    Thinking,
    Reading,
    /// Waits for the answer of another.
    Asking(Party),
    Checking,
    InReview,
    /// The scout and the proxy user are done with each answer.
    Answered,
    Done(AgentOutcome),
}

/// One agent, or the scout, or the proxy user.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    pub party: Party,
    /// Who caused it to be woken.
    pub parent: Option<Party>,
    pub doing: Doing,
    /// When it began to do that.
    pub since_ms: u64,
    pub tokens: Tokens,
    /// What it did last, in a few words.
    pub last: String,
}

/// Something that waits for the user.
#[derive(Debug, Clone, PartialEq)]
pub enum Review {
    Proposal { id: ProposalId, symbol: SymbolPath },
    Intent(IntentView),
}

impl Review {
    /// As the commands name it.
    pub fn target(&self) -> Target {
        match self {
            Review::Proposal { id, .. } => Target {
                proposal: Some(*id),
                symbol: None,
            },
            Review::Intent(view) => Target {
                proposal: None,
                symbol: Some(view.symbol.clone()),
            },
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    pub stop_reason: StopReason,
    pub applied: Vec<SymbolPath>,
    pub diff: String,
    pub spent: Spent,
    /// Absent in older recordings.
    pub ending: Option<Ending>,
    /// The proposals that waited for the user, without an answer.
    pub waiting: usize,
}

/// A run from outside.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunState {
    pub driver: Option<Driver>,
    /// Of the project.
    pub root: PathBuf,
    pub models: Vec<(Role, String)>,
    pub replayed: bool,
    pub at_ms: u64,
    pub calls: u32,
    pub tokens: Tokens,
    pub dollars: Dollars,
    pub questions: u32,
    /// The files of the project that were read, and all that are to be read.
    pub reading: Option<(usize, usize)>,
    /// In the order in which they first came.
    pub agents: Vec<Agent>,
    pub reviews: VecDeque<Review>,
    /// The run is over: nobody is there to revise a proposal.
    pub agents_are_gone: bool,
    /// Of the user's text.
    pub tests: Option<String>,
    /// Whether something was applied since they ran.
    pub tests_are_old: bool,
    pub finished: Option<Finished>,
    /// Owners that were not told of a changed contract, with the symbol that changed.
    pub missed: BTreeSet<(SymbolPath, SymbolPath)>,
    /// Symbols whose owners were to be given work and could not be.
    pub not_woken: BTreeSet<String>,
    proposals: BTreeMap<ProposalId, Proposal>,
    /// What tests said of variables that they are not given.
    withheld: BTreeSet<String>,
    /// What the last ones said of it for the first time.
    pub newly_withheld: Vec<String>,
    /// The files and changed lines of all diffs that were on the screen, by decided proposals.
    shown: BTreeSet<(String, String)>,
}

/// A proposal as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub agent: Party,
    pub symbols: Vec<SymbolPath>,
    pub reason: String,
    pub diff: String,
    pub evidence: Option<Evidence>,
    /// What changed since it was checked.
    pub notes: Vec<String>,
}

impl RunState {
    /// The answers that the user has.
    pub fn choices(&self) -> &'static str {
        match self.agents_are_gone {
            true => CHOICES_OF_ENDED,
            false => CHOICES,
        }
    }

    /// The same where keys are read.
    pub fn choices_by_key(&self) -> &'static str {
        match self.agents_are_gone {
            true => CHOICES_OF_ENDED,
            false => CHOICES_BY_KEY,
        }
    }

    /// The proposal as it would change the text now, and what changed since it was checked.
    pub fn renew(&mut self, id: ProposalId, diff: String, notes: Vec<String>) {
        if let Some(made) = self.proposals.get_mut(&id) {
            made.diff = diff;
            made.notes = notes;
        }
    }

    /// Takes in what happened at a time.
    pub fn take(&mut self, at_ms: u64, event: &Event) {
        self.at_ms = self.at_ms.max(at_ms);
        let before: Vec<Doing> = self.agents.iter().map(|one| one.doing.clone()).collect();
        self.fold(event);
        let changed = before.iter().zip(&mut self.agents);
        for (_, agent) in changed.filter(|(before, agent)| **before != agent.doing) {
            agent.since_ms = self.at_ms;
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
            Event::ProposalReviewed { proposal, .. } => self.reviewed(*proposal),
            Event::ProposalRefused { agent, why, shown } => {
                self.did(agent, Doing::Thinking, shown.as_ref().unwrap_or(why));
            }
            Event::ProposalApplied { proposal, .. } => {
                self.tests_are_old = true;
                self.did_about(*proposal, Doing::Thinking, "applied");
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
            | Event::ProposalApplying { .. }
            | Event::ProposalUndone { .. }
            | Event::FollowedUp { .. }
            | Event::TakenBack { .. }
            | Event::Steered { .. } => {}
            Event::NotWoken { symbol, .. } => {
                self.not_woken.insert(symbol.clone());
            }
            Event::FollowUpMissed {
                changed, owners, ..
            } => {
                let pair = |owner: &SymbolPath| (owner.clone(), changed.clone());
                self.missed.extend(owners.iter().map(pair));
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
            // Those of a proposal are not those of the user's text.
            if *phase != TestPhase::Proposal {
                self.tests = Some(tests(report));
                self.tests_are_old = false;
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

    fn spent(&mut self, agent: &Party, cost: Cost) {
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
            if matches!(agent.party, Party::Scout | Party::Proxy) {
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
            self.did_about(*proposal, Doing::Thinking, "checked");
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
            // Of a set, one stands for all.
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

    /// Whether each changed line of a diff was in the diff of a proposal that was decided on.
    pub fn has_shown(&self, diff: &str) -> bool {
        changed_lines(diff).all(|line| self.shown.contains(&line))
    }

    fn reviewed(&mut self, proposal: ProposalId) {
        if let Some(made) = self.proposals.get(&proposal) {
            self.shown.extend(changed_lines(&made.diff));
        }
        self.reviews.retain(|review| match review {
            Review::Proposal { id, .. } => *id != proposal,
            Review::Intent(_) => true,
        });
        self.did_about(proposal, Doing::Thinking, "reviewed");
    }

    fn intent_reviewed(&mut self, agent: &Party) {
        self.reviews.retain(|review| match review {
            Review::Proposal { .. } => true,
            Review::Intent(view) => *agent != Party::Agent(view.symbol.clone()),
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

    /// An agent waits for the answer to its intent.
    pub fn intent_asked(&mut self, view: IntentView) {
        self.agent(&Party::Agent(view.symbol.clone())).doing = Doing::InReview;
        self.reviews.push_back(Review::Intent(view));
    }

    /// The user answered the first review; the event about it comes later.
    pub fn answered(&mut self) -> Option<Review> {
        self.reviews.pop_front()
    }

    fn woken(&mut self, party: &Party, cause: &Cause) {
        let (parent, last) = match cause {
            Cause::Picked { why } => (None, why.clone()),
            Cause::ChangeRequest { from, reason } => (Some(from.clone()), reason.clone()),
            Cause::FollowUp {
                changed, changes, ..
            } => (Some(Party::Agent(changed.clone())), changes.join("; ")),
            Cause::FailedTests { message } => (None, format!("tests fail: {message}")),
            Cause::Problems { message } => (None, format!("problems: {message}")),
            Cause::Steered { text } => (None, format!("you: {text}")),
            Cause::Declined { reason, .. } => (None, format!("declined: {reason}")),
        };
        let knows = |party: &Party| self.agents.iter().any(|agent| agent.party == *party);
        // Only those who were there before: so agents that wake one another make no circle.
        let parent = parent.filter(|parent| !knows(party) && knows(parent));
        let agent = self.agent(party);
        agent.doing = Doing::Woken;
        agent.last = last;
        agent.parent = agent.parent.take().or(parent);
    }

    fn did(&mut self, party: &Party, doing: Doing, last: &str) {
        let agent = self.agent(party);
        agent.doing = doing;
        agent.last = last.lines().next().unwrap_or_default().to_owned();
    }

    fn agent(&mut self, party: &Party) -> &mut Agent {
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

/// The lines that a unified diff removes or adds, each with its file.
fn changed_lines(diff: &str) -> impl Iterator<Item = (String, String)> {
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

/// A test report in a few words.
pub fn tests(report: &TestReport) -> String {
    let count = |status: TestStatus| {
        let with = |case: &&starling_core::TestCase| case.status == status;
        report.cases.iter().filter(with).count()
    };
    let failing = count(TestStatus::Failed) + count(TestStatus::Error);
    let passed = count(TestStatus::Passed);
    let unsteady = match count(TestStatus::Unsteady) {
        0 => String::new(),
        1 => ", 1 fails now and then".to_owned(),
        many => format!(", {many} fail now and then"),
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
