//! The facts about a finished run that a test states, and what its end says.

use std::collections::BTreeSet;

use crate::event::ending::Proof;
use crate::event::events::StopReason;
use crate::evidence::without_change::WithoutChange;
use crate::run::aim::ChangeRelevance;
use crate::run::ending::{LastCheck, RunFacts, TakenBack, ending};
use crate::task::goal::Goal;
use starling_core::{TestOutcome, TestReport, TestStatus};
use starling_syntax::SymbolPath;

pub fn report(outcome: TestOutcome, cases: &[(&str, TestStatus)]) -> TestReport {
    TestReport {
        command: "make check".to_owned(),
        output: "usage: make\nno rule\n".to_owned(),
        millis: 5_400,
        ..TestReport::of_cases(outcome, cases)
    }
}

pub fn passing(count: usize) -> TestReport {
    let ids: Vec<String> = (0..count).map(|at| format!("t{at}")).collect();
    let cases: Vec<(&str, TestStatus)> = ids
        .iter()
        .map(|id| (id.as_str(), TestStatus::Passed))
        .collect();
    report(TestOutcome::Passed, &cases)
}

pub fn failing(ids: &[&str]) -> TestReport {
    let cases: Vec<_> = ids.iter().map(|id| (*id, TestStatus::Failed)).collect();
    report(TestOutcome::Failed, &cases)
}

/// The data about a finished run that a test states. Headline and proof status are computed from
/// it.
pub struct FinishedRun<'a> {
    pub stop_reason: StopReason,
    pub task: &'a str,
    /// The goal of the task; `None` to derive the goal from the text of the task.
    pub goal: Option<Goal>,
    pub changed: &'a [&'a str],
    pub taken_back: TakenBack<'a>,
    pub declined: &'a [&'a str],
    pub last: Option<TestReport>,
    pub before: &'a [&'a str],
    pub required: &'a [&'a str],
    pub possible: &'a [&'a str],
    pub as_changed: &'a [&'a str],
    pub unreached: &'a [&'a str],
    pub behaves_otherwise: bool,
    pub only_words: bool,
    pub aim: ChangeRelevance,
    pub beside_failures: bool,
    pub left_out: &'a [&'a str],
    pub left_out_is_named: bool,
    pub rejected: &'a [&'a str],
    pub problems: &'a [&'a str],
    pub unheld: &'a [&'a str],
    pub unsteady: &'a [&'a str],
    pub doubtful: &'a [&'a str],
    pub report_before: Option<TestReport>,
    pub nothing_to_change: bool,
    pub new_tests: WithoutChange,
}

impl Default for FinishedRun<'_> {
    fn default() -> Self {
        FinishedRun {
            stop_reason: StopReason::Settled,
            task: "mend it",
            goal: None,
            changed: &["a.py::f"],
            taken_back: TakenBack::No,
            declined: &[],
            last: None,
            before: &[],
            required: &[],
            possible: &[],
            as_changed: &[],
            unreached: &[],
            behaves_otherwise: false,
            only_words: false,
            aim: ChangeRelevance::default(),
            beside_failures: false,
            left_out: &[],
            left_out_is_named: false,
            rejected: &[],
            problems: &[],
            unheld: &[],
            unsteady: &[],
            doubtful: &[],
            report_before: None,
            nothing_to_change: false,
            new_tests: WithoutChange::default(),
        }
    }
}

pub fn ends(run: &FinishedRun<'_>) -> (Proof, String) {
    let ending = with_facts(run, ending);
    (ending.proof, ending.headline)
}

/// Calls a function with the facts about a finished run.
pub fn with_facts<R>(run: &FinishedRun<'_>, read: impl FnOnce(&RunFacts<'_>) -> R) -> R {
    let changed: Vec<SymbolPath> = run.changed.iter().map(|one| one.parse().unwrap()).collect();
    let before = run.before.iter().map(|id| (*id).to_owned()).collect();
    let required = run.required.iter().map(|id| (*id).to_owned()).collect();
    let possible = run.possible.iter().map(|id| (*id).to_owned()).collect();
    let as_changed: Vec<String> = run.as_changed.iter().map(|id| (*id).to_owned()).collect();
    let left_out: Vec<String> = run.left_out.iter().map(|one| (*one).to_owned()).collect();
    let unreached: Vec<SymbolPath> = run
        .unreached
        .iter()
        .map(|one| one.parse().unwrap())
        .collect();
    let owned = |ids: &[&str]| -> Vec<String> { ids.iter().map(|id| (*id).to_owned()).collect() };
    let (unsteady, doubtful) = (owned(run.unsteady), owned(run.doubtful));
    let unheld = owned(run.unheld);
    let (rejected, problems) = (owned(run.rejected), owned(run.problems));
    let declined = owned(run.declined);
    read(&RunFacts {
        stop_reason: &run.stop_reason,
        task: run.task,
        goal: run.goal.unwrap_or_else(|| crate::task::goal::of(run.task)),
        changed: &changed,
        taken_back: run.taken_back,
        not_taken_back: None,
        with_changes: None,
        declined: &declined,
        last_check: match &run.last {
            Some(report) => LastCheck::Known(report),
            None => LastCheck::Absent {
                why: "no tests were found",
            },
        },
        failed_before: &before,
        did_not_run: &BTreeSet::new(),
        required: &required,
        possible: &possible,
        examples: &[],
        new_tests: &run.new_tests,
        unshown_parts: &[],
        unreached: &unreached,
        behaves_otherwise: run.behaves_otherwise,
        only_words: run.only_words,
        aim: &run.aim,
        beside_failures: run.beside_failures,
        left_out: &left_out,
        left_out_is_named: run.left_out_is_named,
        rejected: &rejected,
        problems: &problems,
        needs_your_yes: &[],
        is_a_part: false,
        refused: None,
        only_as_changed: &as_changed,
        unheld: &unheld,
        unsteady: &unsteady,
        doubtful: &doubtful,
        report_before: run.report_before.as_ref(),
        nothing_to_change: run.nothing_to_change,
    })
}

pub fn settled(last: TestReport, before: &[&str]) -> (Proof, String) {
    ends(&FinishedRun {
        last: Some(last),
        before,
        ..FinishedRun::default()
    })
}

pub fn is(proof: Proof, headline: &str) -> (Proof, String) {
    (proof, headline.to_owned())
}

pub fn red() -> TestReport {
    TestReport {
        exit: Some(2),
        ..report(TestOutcome::Failed, &[])
    }
}
