//! The judge observes every event of a run and everything that its parts do, and reports which
//! guarantee was broken by which mechanism.

mod edits;
mod events;
mod proposals;
mod spending;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use starling_core::{Approval, Driver, Limits, Tokens};
use starling_swarm::{EventLog, Record, StopReason};

use super::actors::Reply;
use super::plan::SimulationPlan;
use super::project::{Project, Texts};
use super::world::{SECRETS, UserTexts};
use proposals::Proposals;
use spending::Spending;

/// A broken guarantee.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub invariant: &'static str,
    /// The mechanism that broke the guarantee, if known.
    pub mechanism: String,
    pub text: String,
}

/// A request as the provider receives it.
pub struct Request {
    pub conversation: String,
    pub provider: String,
    pub text: String,
    pub prompt: Tokens,
    pub dollars: f64,
}

/// Observes a run, and collects the guarantees that it breaks.
pub struct Judge {
    pub violations: Vec<Violation>,
    approval: Approval,
    driver: Driver,
    limits: Limits,
    project: Project,
    seen: usize,
    now: Duration,
    spending: Spending,
    proposals: Proposals,
    /// The user's current texts, and the tests that fail on them.
    texts: Texts,
    failing: BTreeSet<String>,
    failing_before: BTreeSet<String>,
    /// The change after which the tests were worse than before the run.
    culprit: Option<u32>,
    has_tests: bool,
    has_language_server: bool,
    checks_had_trouble: bool,
    user_changed_behaviour: bool,
    /// Texts that the user typed and that a model has seen.
    seen_tokens: BTreeSet<String>,
    typed: BTreeMap<String, Duration>,
    /// For each test run, by number: the files whose text differed from the user's when it started,
    /// each with the time when the user last changed it.
    older_texts: BTreeMap<Option<i32>, BTreeMap<String, Duration>>,
    /// Files that an agent tried to change, so that their texts were read again.
    drafted_files: BTreeSet<String>,
    /// The version of each symbol since the last applied change, without symbols that the user
    /// changed later.
    applied_versions: BTreeMap<String, i64>,
    /// The version of each symbol in the last text that the editor accepted.
    arrived_versions: BTreeMap<String, i64>,
    /// Agents that were woken and have not ended.
    awake: BTreeSet<String>,
    woken: BTreeSet<String>,
    /// The symbols that the scout picked, and the text of all events about them.
    picks: Vec<String>,
    told: String,
    was_cancelled: bool,
    stop_reason: Option<StopReason>,
    undoing: bool,
}

impl Judge {
    pub fn new(plan: &SimulationPlan, project: &Project, desk: &UserTexts) -> Self {
        let texts = desk.texts(project);
        let failing = failing(project, &texts);
        Judge {
            violations: Vec::new(),
            approval: plan.task.approval,
            driver: plan.task.driver,
            limits: plan.task.limits.clone(),
            project: project.clone(),
            seen: 0,
            now: Duration::ZERO,
            spending: Spending::default(),
            proposals: Proposals::default(),
            texts,
            failing_before: failing.clone(),
            failing,
            culprit: None,
            has_tests: plan.has_tests,
            has_language_server: plan.has_language_server,
            checks_had_trouble: false,
            user_changed_behaviour: false,
            seen_tokens: BTreeSet::new(),
            typed: BTreeMap::new(),
            older_texts: BTreeMap::new(),
            drafted_files: BTreeSet::new(),
            applied_versions: BTreeMap::new(),
            arrived_versions: BTreeMap::new(),
            awake: BTreeSet::new(),
            woken: BTreeSet::new(),
            picks: Vec::new(),
            told: String::new(),
            was_cancelled: false,
            stop_reason: None,
            undoing: false,
        }
    }

    /// Records a broken guarantee, each kind once.
    fn broken(&mut self, invariant: &'static str, mechanism: impl Into<String>, text: String) {
        let mechanism = mechanism.into();
        let known = |one: &Violation| one.invariant == invariant && one.mechanism == mechanism;
        if !self.violations.iter().any(known) {
            self.violations.push(Violation {
                invariant,
                mechanism,
                text,
            });
        }
    }

    /// Processes all events since the last call.
    pub fn catch_up(&mut self, log: &EventLog, desk: &UserTexts, now: Duration) {
        self.now = now;
        self.typed.clone_from(&desk.typed);
        let records = log.records(self.seen);
        if records.is_empty() {
            return;
        }
        self.texts = desk.texts(&self.project);
        for stamped in records {
            if stamped.seq != self.seen as u64 {
                let text = format!("record {} has the number {}", self.seen, stamped.seq);
                self.broken("log is whole", "gap", text);
            }
            self.seen += 1;
            match &stamped.record {
                Record::Event(event) => self.event(event),
                Record::Exchange(_) if self.stop_reason.is_some() => {
                    let text = "an exchange was recorded".to_owned();
                    self.broken("nothing after the end", "exchange", text);
                }
                Record::Exchange(_) => {}
            }
        }
    }

    pub fn request_sent(&mut self, request: &Request) {
        for (place, secret) in SECRETS {
            let mark = secret
                .split_whitespace()
                .find(|word| word.contains("MARK-OF"));
            let mark = mark.unwrap_or_default().trim_matches('\'');
            let mark = mark.split('=').next_back().unwrap_or_default();
            if request.text.contains(mark) {
                let text = format!("{place} was sent to {}", request.conversation);
                self.broken("no secret in a prompt", place, text);
            }
        }
        self.seen_tokens.extend(tokens(&request.text));
        let kind = self.spending.kind(request);
        self.spend(&kind, 1, request.prompt, request.dollars);
        self.work_starts();
    }

    pub fn request_ends(&mut self) {
        self.work_ends();
    }

    /// Records that the provider does not charge for a request after all.
    pub fn refund(&mut self, prompt: Tokens, dollars: f64) {
        self.spending.refund(prompt, dollars);
    }

    /// Records that the provider charges for a request that failed.
    pub fn charged_for_nothing(&mut self) {
        self.spending.has_unknown_costs = true;
    }

    pub fn replied(&mut self, conversation: &str, reply: &Reply, output: Tokens, dollars: f64) {
        self.spend("answers of concurrent calls", 0, output, dollars);
        if reply.is_cut {
            return;
        }
        let reply = reply.whole.as_deref().unwrap_or(reply);
        if conversation == "scout" {
            self.note_picks(reply);
        }
        self.note_reply(conversation, reply);
    }

    pub fn reported_nothing(&mut self) {
        self.spending.reported_nothing = true;
    }

    /// Records that the test run `number` starts on `texts` while the user has `desk_texts`.
    pub fn tests_start(&mut self, number: Option<i32>, texts: &Texts, desk_texts: &Texts) {
        self.work_starts();
        let differs = |(file, text): &(&String, &String)| desk_texts.get(*file) != Some(text);
        let differing = texts.iter().filter(differs).map(|(file, _)| file);
        let typed = differing.filter_map(|file| Some((file.clone(), *self.typed.get(file)?)));
        self.older_texts.insert(number, typed.collect());
    }

    pub fn tests_end(&mut self) {
        self.work_ends();
    }

    pub fn checks_have_trouble(&mut self) {
        self.checks_had_trouble = true;
    }

    /// Records that the user changed texts by typing, reloading, or closing without saving.
    pub fn user_changed_texts(&mut self, desk_texts: Texts) {
        self.texts = desk_texts;
        let now = failing(&self.project, &self.texts);
        self.user_changed_behaviour |= now != self.failing;
        self.failing = now;
        let (project, texts) = (&self.project, &self.texts);
        self.applied_versions
            .retain(|symbol, version| has_version(project, texts, symbol, *version));
    }

    pub fn model_knows(&mut self, line: &str) {
        self.seen_tokens.extend(tokens(line));
    }

    pub fn user_changed_behaviour(&mut self) {
        self.user_changed_behaviour = true;
    }

    pub fn cancelled(&mut self) {
        self.was_cancelled = true;
    }

    pub fn undo_starts(&mut self) {
        self.undoing = true;
    }

    pub fn undo_ends(&mut self) {
        self.undoing = false;
    }

    /// Checks that the tests of a proposal did not run on texts that were older than the proposal.
    fn check_that_texts_are_fresh(&mut self, id: u32, number: Option<i32>) {
        let made = self.proposals.all.get(&id).map(|one| one.made);
        let older = self.older_texts.remove(&number).unwrap_or_default();
        let is_stale = |file: &String, typed: Duration| {
            !self.drafted_files.contains(file) && made.is_some_and(|made| typed < made)
        };
        let stale = older
            .into_iter()
            .filter(|(file, typed)| is_stale(file, *typed));
        let stale: Vec<String> = stale.map(|(file, _)| file).collect();
        if !stale.is_empty() {
            let text = format!("{stale:?} were typed in before #{id} was made");
            self.broken(
                "evidence is of the current texts",
                "buffers stay as at the start",
                text,
            );
        }
    }

    /// Checks the guarantees that apply when nothing more can happen.
    pub fn end(&mut self, was_killed: bool) {
        self.check_log_against_state(was_killed);
        if was_killed || self.stop_reason.is_some() {
            return;
        }
        self.broken("every run ends", "deadline", "no RunFinished".to_owned());
    }
}

fn has_version(project: &Project, texts: &Texts, symbol: &str, version: i64) -> bool {
    let unit = project.unit(symbol);
    let now = unit.and_then(|unit| project.version(&unit.name, texts));
    now == Some(version)
}

/// Returns the ids of the tests that fail on these texts.
pub fn failing(project: &Project, texts: &Texts) -> BTreeSet<String> {
    let failures = project.failures(texts);
    failures.into_iter().map(|(id, _)| id).collect()
}

/// Returns the tokens that the user typed and that occur in a text.
pub fn tokens(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_token = |word: &&str| {
        word.strip_prefix("typed")
            .and_then(|rest| rest.strip_suffix('x'))
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    words.filter(is_token).map(str::to_owned).collect()
}
