//! The end of a run: one sentence for people, and whether tests prove the run's changes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ask::party_name;
use super::event::{AgentOutcome, Event, Party, StopReason};
use super::goal::{self, Goal};
use super::proposal::{WHOLE_RUN, failing_ids, tail};
use crate::ports::{TestOutcome, TestReport, TestStatus, Verdict};
use crate::syntax::{FilePath, SymbolPath};

/// Names in one headline.
const NAMES_MOST: usize = 4;
/// Maximum length of quoted test output, in bytes.
const QUOTED: usize = 160;
/// File name extensions of documentation.
const DOCUMENTATION: [&str; 4] = ["md", "markdown", "rst", "adoc"];

/// Whether tests prove what a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// Tests ran on the workspace as the run leaves it, and they pass.
    Proven,
    /// The task needed no change, or a change of documentation alone.
    NothingToProve,
    /// Changes are in the workspace, and no test proves them.
    Unproven,
    /// The task is not done.
    NotDone,
}

/// How a run ended, for people and for scripts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    pub proof: Proof,
    /// One line without a full stop.
    pub headline: String,
}

impl Ending {
    /// The end of a run that never began.
    pub fn before_start(stop_reason: &StopReason) -> Ending {
        ending(&RunFacts {
            stop_reason,
            task: "",
            changed: &[],
            taken_back: TakenBack::No,
            last_check: LastCheck::Absent {
                why: "the run never began",
            },
            failed_before: &BTreeSet::new(),
            required: &BTreeSet::new(),
            only_as_changed: &[],
            report_before: None,
            nothing_to_change: false,
        })
    }
}

/// What a headline is made of.
#[derive(Debug)]
pub(super) struct RunFacts<'a> {
    pub stop_reason: &'a StopReason,
    pub task: &'a str,
    /// Symbols whose changes are in the workspace at the end.
    pub changed: &'a [SymbolPath],
    pub taken_back: TakenBack<'a>,
    pub last_check: LastCheck<'a>,
    pub failed_before: &'a BTreeSet<String>,
    /// Failing tests that the task is about.
    pub required: &'a BTreeSet<String>,
    /// Tests that pass only with test files that the run changed.
    pub only_as_changed: &'a [String],
    /// The test run before anything was changed.
    pub report_before: Option<&'a TestReport>,
    /// Every agent says that its symbol needs no change, and no test says otherwise.
    pub nothing_to_change: bool,
}

/// Whether the changes of a run were taken back at its end.
#[derive(Debug, Clone, Copy)]
pub(super) enum TakenBack<'a> {
    No,
    /// With the file that keeps the changes, where it could be written.
    Yes(Option<&'a str>),
}

/// The last test run on the workspace as the run leaves it.
#[derive(Debug, Clone, Copy)]
pub(super) enum LastCheck<'a> {
    Absent { why: &'a str },
    Known(&'a TestReport),
}

/// The end of a run. Its last check decides whether the changes are proven.
pub(super) fn ending(facts: &RunFacts<'_>) -> Ending {
    let (proof, headline) = match facts.stop_reason {
        StopReason::Settled => done(facts),
        StopReason::NothingChanged { why } if facts.nothing_to_change => {
            let headline = match facts.task.trim_end().ends_with('?') {
                true => "Answered; nothing was changed".to_owned(),
                false => format!("Nothing to change: {}", first_line(why)),
            };
            (Proof::NothingToProve, headline)
        }
        StopReason::NothingChanged { why } => not_done(facts, first_line(why)),
        StopReason::TestsFail { failing } => tests_fail(facts, failing),
        StopReason::ProblemsRemain { problems } => {
            let count = counted(problems.len(), "new problem");
            not_done(facts, &format!("{count}: {}", some_of(problems)))
        }
        StopReason::LedgerEmpty { what } => (
            Proof::NotDone,
            format!("Stopped by the limit: {what}; {}", left_behind(facts)),
        ),
        StopReason::Cancelled => (
            Proof::NotDone,
            format!("Stopped by you; {}", left_behind(facts)),
        ),
        StopReason::Failed { error } => not_done(facts, first_line(error)),
    };
    Ending { proof, headline }
}

/// Why no test proves the changes of a run; `None` where tests do, or where there is nothing to prove.
pub(super) fn unproven(facts: &RunFacts<'_>) -> Option<String> {
    match checked(facts) {
        Checked::Passes(_) => None,
        Checked::Fails(_) if passed_beside_known_failures(facts).is_some() => None,
        Checked::Fails(_) | Checked::Untested(_) if is_all_documentation(facts) => None,
        Checked::Fails(why) | Checked::Untested(why) => Some(why),
    }
}

fn not_done(facts: &RunFacts<'_>, why: &str) -> (Proof, String) {
    let is_unchanged = facts.changed.is_empty() && matches!(facts.taken_back, TakenBack::No);
    let rest = match is_unchanged {
        true => String::new(),
        false => format!("; {}", left_behind(facts)),
    };
    (Proof::NotDone, format!("Not done: {why}{rest}"))
}

fn tests_fail(facts: &RunFacts<'_>, failing: &[String]) -> (Proof, String) {
    if let LastCheck::Known(report) = facts.last_check
        && let Some(cut_short) = cut_short(report)
    {
        return match facts.changed.is_empty() {
            true => not_done(facts, &cut_short),
            false => (Proof::Unproven, format!("Done, untested: {cut_short}")),
        };
    }
    let command = match facts.last_check {
        LastCheck::Known(report) => report.command.as_str(),
        LastCheck::Absent { .. } => "the test command",
    };
    let others = match facts.last_check {
        LastCheck::Known(report) => other_failures(report, failing),
        LastCheck::Absent { .. } => String::new(),
    };
    not_done(facts, &format!("{}{others}", failures(failing, command)))
}

/// The failing tests of a report that are no part of the task, in parentheses.
fn other_failures(report: &TestReport, required: &[String]) -> String {
    let is_other = |id: &&String| *id != WHOLE_RUN && !required.contains(id);
    match failing_ids(report).iter().filter(is_other).count() {
        0 => String::new(),
        1 => " (1 other test fails, no part of the task)".to_owned(),
        many => format!(" ({many} other tests fail, no part of the task)"),
    }
}

/// Of a run that settled.
fn done(facts: &RunFacts<'_>) -> (Proof, String) {
    let is_documentation = is_all_documentation(facts);
    let beside = passed_beside_known_failures(facts).filter(|_| !is_documentation);
    match checked(facts) {
        Checked::Fails(what) if beside.is_some() => {
            let passed = beside.unwrap_or_default();
            let passed = match goal::of(facts.task) == Goal::NewTest {
                // The tests that were added ran and pass, or the change would not have been accepted.
                true => "the new test passes".to_owned(),
                false => format!("{} {}", counted(passed, "test"), pass(passed)),
            };
            let headline = format!("Done and proven: {passed}; {what}, no part of the task");
            (Proof::Proven, headline)
        }
        Checked::Passes(what) => (Proof::Proven, format!("Done and proven: {what}")),
        Checked::Fails(what) if is_documentation => (
            Proof::NothingToProve,
            format!("Done: only documentation was changed; {what}"),
        ),
        Checked::Untested(_) if is_documentation => (
            Proof::NothingToProve,
            "Done: only documentation was changed".to_owned(),
        ),
        Checked::Fails(what) => (Proof::Unproven, format!("Done, but {what}")),
        Checked::Untested(why) => (Proof::Unproven, format!("Done, untested: {why}")),
    }
}

/// The number of tests that pass, where all that fail failed before and are no part of the task. A bug
/// of which no failing test tells may be the cause of any of them.
fn passed_beside_known_failures(facts: &RunFacts<'_>) -> Option<usize> {
    let LastCheck::Known(report) = facts.last_check else {
        return None;
    };
    let is_told = match goal::of(facts.task) {
        Goal::Bug | Goal::RedTests => !facts.required.is_empty(),
        Goal::NewTest
        | Goal::Feature
        | Goal::Refactoring
        | Goal::Documentation
        | Goal::Question => true,
    };
    let is_other = |id: &String| {
        *id != WHOLE_RUN && facts.failed_before.contains(id) && !facts.required.contains(id)
    };
    let is_proven = is_told
        && report.outcome == TestOutcome::Failed
        && report.source.is_reporter()
        && facts.only_as_changed.is_empty()
        && failing_ids(report).iter().all(is_other);
    let passed = with_status(report, TestStatus::Passed);
    (is_proven && passed > 0).then_some(passed)
}

/// What the last check shows, in words.
enum Checked {
    Passes(String),
    Fails(String),
    Untested(String),
}

fn checked(facts: &RunFacts<'_>) -> Checked {
    let report = match facts.last_check {
        LastCheck::Absent { why } => return Checked::Untested(format!("no test ran ({why})")),
        LastCheck::Known(report) => report,
    };
    if let Some(cut_short) = cut_short(report) {
        return Checked::Untested(cut_short);
    }
    let passed = with_status(report, TestStatus::Passed);
    match report.outcome {
        TestOutcome::Passed if !facts.only_as_changed.is_empty() => {
            Checked::Fails(pass_as_changed(facts.only_as_changed, &report.command))
        }
        TestOutcome::Passed if passed == 0 && !report.cases.is_empty() => {
            let skipped = counted(report.cases.len(), "test");
            Checked::Untested(format!("no test ran ({skipped} skipped)"))
        }
        TestOutcome::Passed if passed > 0 && report.source.is_reporter() => {
            Checked::Passes(format!("{} {}", counted(passed, "test"), pass(passed)))
        }
        TestOutcome::Passed => by_command(facts, report, passed),
        TestOutcome::NotRun => Checked::Untested(format!(
            "no test ran (`{}`: {})",
            report.command,
            last_line(&report.output)
        )),
        TestOutcome::Failed
        | TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch => {
            let failing = failing_ids(report);
            let before = failed_before(&failing, facts.failed_before);
            Checked::Fails(format!("{}{before}", failures(&failing, &report.command)))
        }
    }
}

/// Of a command that passes without a reporter. The code under test can print what looks like results;
/// that the command failed before the run is known from its exit status.
fn by_command(facts: &RunFacts<'_>, report: &TestReport, passed: usize) -> Checked {
    let command = &report.command;
    let printed = format!("{} {}", counted(passed, "test"), pass(passed));
    let did_fail = facts.report_before.is_some_and(|before| {
        let is_same = before.command == report.command;
        is_same && before.outcome == TestOutcome::Failed && before.exit != Some(0)
    });
    match (did_fail, passed) {
        (true, 0) => Checked::Passes(format!("`{command}` failed before and passes now")),
        (true, _) => Checked::Passes(format!(
            "`{command}` failed before and passes now ({printed} by what it printed)"
        )),
        (false, 0) => {
            let status = report.exit.unwrap_or_default();
            Checked::Untested(format!(
                "the test command ran no test that Starling can see (its exit status was {status})"
            ))
        }
        (false, _) => Checked::Fails(format!("{printed} only by what `{command}` printed")),
    }
}

/// How a test run that did not come to its end was stopped.
fn cut_short(report: &TestReport) -> Option<String> {
    match report.outcome {
        TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch => Some(format!(
            "the tests {} after {} s",
            report.outcome.word(),
            report.millis.div_ceil(1000)
        )),
        TestOutcome::Passed | TestOutcome::Failed | TestOutcome::NotRun => None,
    }
}

/// `2 tests fail: a, b`.
fn failures(failing: &[String], command: &str) -> String {
    let named: Vec<String> = failing
        .iter()
        .filter(|id| *id != WHOLE_RUN)
        .cloned()
        .collect();
    match named.len() {
        0 => format!("`{command}` fails"),
        1 => format!("1 test fails: {}", named[0]),
        many => format!("{many} tests fail: {}", some_of(&named)),
    }
}

/// `2 tests pass only as they were changed: a, b`.
fn pass_as_changed(ids: &[String], command: &str) -> String {
    let named: Vec<String> = ids.iter().filter(|id| *id != WHOLE_RUN).cloned().collect();
    match named.len() {
        0 => format!("`{command}` passes only with test files that were changed"),
        1 => format!("1 test passes only as it was changed: {}", named[0]),
        many => format!(
            "{many} tests pass only as they were changed: {}",
            some_of(&named)
        ),
    }
}

/// Which of the failing tests failed before the run, in parentheses.
fn failed_before(failing: &[String], before: &BTreeSet<String>) -> String {
    let known = failing.iter().filter(|id| before.contains(*id)).count();
    match (known, failing.len()) {
        (0, _) => String::new(),
        (1, 1) => " (it failed before)".to_owned(),
        (2, 2) => " (both failed before)".to_owned(),
        (known, all) if known == all => " (all failed before)".to_owned(),
        (known, _) => format!(" ({known} failed before)"),
    }
}

/// What the run leaves in the workspace.
fn left_behind(facts: &RunFacts<'_>) -> String {
    let kept = match facts.taken_back {
        TakenBack::No if facts.changed.is_empty() => return "nothing was changed".to_owned(),
        TakenBack::No => String::new(),
        TakenBack::Yes(Some(patch)) => {
            format!("the changes were taken back and are kept in {patch}")
        }
        TakenBack::Yes(None) => "the changes were taken back; the run's log holds them".to_owned(),
    };
    if facts.changed.is_empty() {
        return kept;
    }
    let names: Vec<String> = facts.changed.iter().map(ToString::to_string).collect();
    let tested = match checked(facts) {
        Checked::Passes(what) | Checked::Fails(what) => what,
        Checked::Untested(_) => "untested".to_owned(),
    };
    let stays = format!("changed {} ({tested})", some_of(&names));
    match kept.is_empty() {
        true => stays,
        false => format!("{kept}; still {stays}"),
    }
}

fn is_all_documentation(facts: &RunFacts<'_>) -> bool {
    let mut files = facts.changed.iter().map(|symbol| &symbol.file);
    files.all(is_documentation)
}

pub(super) fn is_documentation(file: &FilePath) -> bool {
    let extension = file.name().rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| DOCUMENTATION.contains(&extension))
}

fn with_status(report: &TestReport, status: TestStatus) -> usize {
    let cases = report.cases.iter();
    cases.filter(|case| case.status == status).count()
}

pub(super) fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        many => format!("{many} {noun}s"),
    }
}

fn pass(number: usize) -> &'static str {
    match number {
        1 => "passes",
        _ => "pass",
    }
}

fn some_of(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MOST)].join(", ");
    match names.len().saturating_sub(NAMES_MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_end()
}

fn last_line(output: &str) -> &str {
    let line = output.trim_end().lines().last();
    tail(line.unwrap_or("it printed nothing"), QUOTED)
}

/// Why a run changed nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unchanged {
    pub why: String,
    /// Every agent says that its symbol needs no change.
    pub by_all: bool,
}

/// Reads from the events of a run why it changed nothing.
pub(super) fn unchanged(events: &[Event]) -> Unchanged {
    let mut last: BTreeMap<&Party, (&AgentOutcome, &str)> = BTreeMap::new();
    let mut sent_back = None;
    let mut is_undone = false;
    let mut is_missed = false;
    for event in events {
        if let Event::AgentFinished {
            agent,
            outcome,
            summary,
        } = event
        {
            last.insert(agent, (outcome, summary));
        } else if let Event::ProposalReviewed { verdict, .. } = event {
            sent_back = match verdict {
                Verdict::Accept => sent_back,
                Verdict::Reject { reason } => Some(reason.as_str()),
                Verdict::Steer { text } => Some(text.as_str()),
            };
        } else if let Event::ProposalUndone { .. } = event {
            is_undone = true;
        } else if let Event::NotWoken { .. } = event {
            is_missed = true;
        }
    }
    let not = |why: String| Unchanged { why, by_all: false };
    let gave_up = last
        .iter()
        .filter_map(|(agent, (outcome, _))| match outcome {
            AgentOutcome::GaveUp { why } => Some(format!("{} gave up: {why}", party_name(agent))),
            AgentOutcome::Changed | AgentOutcome::NothingToChange => None,
        });
    let gave_up: Vec<String> = gave_up.collect();
    if is_undone {
        return not("every change was undone".to_owned());
    }
    if let Some(reason) = sent_back {
        return not(format!("no proposal was accepted: {}", first_line(reason)));
    }
    if !gave_up.is_empty() {
        return not(some_of(&gave_up));
    }
    let said: BTreeSet<&str> = last.values().map(|(_, summary)| summary.trim()).collect();
    let said: Vec<&str> = said.into_iter().filter(|one| !one.is_empty()).collect();
    let why = match said.is_empty() {
        true => "no agent found anything to change".to_owned(),
        false => said.join("\n"),
    };
    Unchanged {
        why,
        by_all: !last.is_empty() && !is_missed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::ResultSource;

    fn report(outcome: TestOutcome, cases: &[(&str, TestStatus)]) -> TestReport {
        TestReport {
            command: "make check".to_owned(),
            output: "usage: make\nno rule\n".to_owned(),
            millis: 5_400,
            ..TestReport::of_cases(outcome, cases)
        }
    }

    fn passing(count: usize) -> TestReport {
        let ids: Vec<String> = (0..count).map(|at| format!("t{at}")).collect();
        let cases: Vec<(&str, TestStatus)> = ids
            .iter()
            .map(|id| (id.as_str(), TestStatus::Passed))
            .collect();
        report(TestOutcome::Passed, &cases)
    }

    fn failing(ids: &[&str]) -> TestReport {
        let cases: Vec<_> = ids.iter().map(|id| (*id, TestStatus::Failed)).collect();
        report(TestOutcome::Failed, &cases)
    }

    /// Facts of a run that changed these symbols.
    struct Run<'a> {
        stop_reason: StopReason,
        task: &'a str,
        changed: &'a [&'a str],
        taken_back: TakenBack<'a>,
        last: Option<TestReport>,
        before: &'a [&'a str],
        required: &'a [&'a str],
        as_changed: &'a [&'a str],
        report_before: Option<TestReport>,
        nothing_to_change: bool,
    }

    impl Default for Run<'_> {
        fn default() -> Self {
            Run {
                stop_reason: StopReason::Settled,
                task: "mend it",
                changed: &["a.py::f"],
                taken_back: TakenBack::No,
                last: None,
                before: &[],
                required: &[],
                as_changed: &[],
                report_before: None,
                nothing_to_change: false,
            }
        }
    }

    fn ends(run: &Run<'_>) -> (Proof, String) {
        let changed: Vec<SymbolPath> = run.changed.iter().map(|one| one.parse().unwrap()).collect();
        let before = run.before.iter().map(|id| (*id).to_owned()).collect();
        let required = run.required.iter().map(|id| (*id).to_owned()).collect();
        let as_changed: Vec<String> = run.as_changed.iter().map(|id| (*id).to_owned()).collect();
        let ending = ending(&RunFacts {
            stop_reason: &run.stop_reason,
            task: run.task,
            changed: &changed,
            taken_back: run.taken_back,
            last_check: match &run.last {
                Some(report) => LastCheck::Known(report),
                None => LastCheck::Absent {
                    why: "no tests were found",
                },
            },
            failed_before: &before,
            required: &required,
            only_as_changed: &as_changed,
            report_before: run.report_before.as_ref(),
            nothing_to_change: run.nothing_to_change,
        });
        (ending.proof, ending.headline)
    }

    fn settled(last: TestReport, before: &[&str]) -> (Proof, String) {
        ends(&Run {
            last: Some(last),
            before,
            ..Run::default()
        })
    }

    fn is(proof: Proof, headline: &str) -> (Proof, String) {
        (proof, headline.to_owned())
    }

    #[test]
    fn passing_tests_prove_a_change() {
        let proven = |what: &str| is(Proof::Proven, &format!("Done and proven: {what}"));
        assert_eq!(settled(passing(12), &[]), proven("12 tests pass"));
        assert_eq!(settled(passing(1), &[]), proven("1 test passes"));
    }

    fn red() -> TestReport {
        TestReport {
            exit: Some(2),
            ..report(TestOutcome::Failed, &[])
        }
    }

    #[test]
    fn a_command_without_results_proves_only_that_it_failed_before() {
        let no_test = "Done, untested: the test command ran no test that Starling can see (its exit status was 0)";
        assert_eq!(settled(passing(0), &[]), is(Proof::Unproven, no_test));
        let ends_after = |report_before| {
            ends(&Run {
                last: Some(passing(0)),
                report_before: Some(report_before),
                ..Run::default()
            })
        };
        let proven = "Done and proven: `make check` failed before and passes now";
        assert_eq!(ends_after(red()), is(Proof::Proven, proven));
        let other = TestReport {
            command: "make check a".to_owned(),
            ..red()
        };
        for report_before in [passing(0), other] {
            assert_eq!(ends_after(report_before), is(Proof::Unproven, no_test));
        }
    }

    #[test]
    fn what_a_command_printed_is_no_proof() {
        let printed = || TestReport {
            source: ResultSource::Printed,
            ..passing(12)
        };
        let but = "Done, but 12 tests pass only by what `make check` printed";
        assert_eq!(settled(printed(), &[]), is(Proof::Unproven, but));
        let after_red = ends(&Run {
            last: Some(printed()),
            report_before: Some(red()),
            ..Run::default()
        });
        let proven = "Done and proven: `make check` failed before and passes now (12 tests pass by what it printed)";
        assert_eq!(after_red, is(Proof::Proven, proven));
    }

    #[test]
    fn tests_that_pass_only_as_they_were_changed_prove_nothing() {
        let ends_with = |as_changed| {
            ends(&Run {
                last: Some(passing(12)),
                as_changed,
                ..Run::default()
            })
        };
        let but = |what: &str| is(Proof::Unproven, &format!("Done, but {what}"));
        assert_eq!(
            ends_with(&["a"]),
            but("1 test passes only as it was changed: a")
        );
        assert_eq!(
            ends_with(&["a", "b"]),
            but("2 tests pass only as they were changed: a, b")
        );
        assert_eq!(
            ends_with(&[WHOLE_RUN]),
            but("`make check` passes only with test files that were changed")
        );
    }

    #[test]
    fn a_new_test_is_proven_although_others_fail_as_before() {
        use TestStatus::{Failed, Passed};
        let last = || report(TestOutcome::Failed, &[("new", Passed), ("red", Failed)]);
        let ended = |task: &str, before: &[&str]| {
            ends(&Run {
                last: Some(last()),
                before,
                task,
                ..Run::default()
            })
        };
        let headline = "Done and proven: the new test passes; 1 test fails: red (it failed before), \
                        no part of the task";
        assert_eq!(
            ended("Add a test for parse.", &["red"]),
            is(Proof::Proven, headline)
        );
        assert_eq!(ended("Add a test for parse.", &[]).0, Proof::Unproven);
        assert_eq!(ended("Fix parse.", &["red"]).0, Proof::Unproven);
    }

    #[test]
    fn a_failing_task_names_how_many_other_tests_fail() {
        let told = |ids: &[&str]| {
            ends(&Run {
                stop_reason: StopReason::TestsFail {
                    failing: vec!["a".to_owned()],
                },
                last: Some(failing(ids)),
                ..Run::default()
            })
            .1
        };
        let is = |ids: &[&str], expected: &str| {
            let told = told(ids);
            assert!(told.starts_with(expected), "{told}");
        };
        is(&["a"], "Not done: 1 test fails: a;");
        let others = "Not done: 1 test fails: a (3 other tests fail, no part of the task);";
        is(&["a", "b", "c", "d"], others);
    }

    #[test]
    fn without_a_test_that_ran_a_change_is_untested() {
        let untested = |why: &str| is(Proof::Unproven, &format!("Done, untested: {why}"));
        let none = untested("no test ran (no tests were found)");
        assert_eq!(ends(&Run::default()), none);
        let skipped = report(TestOutcome::Passed, &[("a", TestStatus::Skipped)]);
        assert_eq!(
            settled(skipped, &[]),
            untested("no test ran (1 test skipped)")
        );
        let not_run = report(TestOutcome::NotRun, &[]);
        assert_eq!(
            settled(not_run, &[]),
            untested("no test ran (`make check`: no rule)")
        );
        let hanging = report(TestOutcome::TimedOut, &[("a", TestStatus::Passed)]);
        assert_eq!(
            settled(hanging, &[WHOLE_RUN]),
            untested("the tests timed out after 6 s")
        );
    }

    #[test]
    fn known_failures_that_are_no_part_of_the_task_leave_a_change_proven() {
        let ends = |task, last: &[(&str, TestStatus)], required| {
            ends(&Run {
                task,
                last: Some(report(TestOutcome::Failed, last)),
                before: &["red"],
                required,
                ..Run::default()
            })
        };
        let cases = [("a", TestStatus::Passed), ("red", TestStatus::Failed)];
        let headline = "Done and proven: 1 test passes; 1 test fails: red (it failed before), no part \
                        of the task";
        assert_eq!(
            ends("Simplify f.", &cases, &[]),
            is(Proof::Proven, headline)
        );
        assert_eq!(
            ends("a fails, mend f", &cases, &["a"]),
            is(Proof::Proven, headline)
        );
        // A bug of which no test tells may be the cause of any failure.
        let unproven = |found: (Proof, String)| assert_eq!(found.0, Proof::Unproven, "{}", found.1);
        unproven(ends("f is wrong", &cases, &[]));
        unproven(ends("Simplify f.", &cases, &["red"]));
        unproven(ends("Simplify f.", &cases[1..], &[]));
        let new = [cases[0], ("new", TestStatus::Failed)];
        unproven(ends("Simplify f.", &new, &[]));
    }

    #[test]
    fn tests_that_failed_before_leave_a_change_unproven() {
        let but = |what: &str| is(Proof::Unproven, &format!("Done, but {what}"));
        assert_eq!(
            settled(failing(&["a", "b"]), &["a", "b"]),
            but("2 tests fail: a, b (both failed before)")
        );
        assert_eq!(
            settled(failing(&["a"]), &["a"]),
            but("1 test fails: a (it failed before)")
        );
        let many = ["a", "b", "c", "d", "e"];
        assert_eq!(
            settled(failing(&many), &many),
            but("5 tests fail: a, b, c, d and 1 more (all failed before)")
        );
        assert_eq!(
            settled(failing(&["a", "b"]), &["a"]),
            but("2 tests fail: a, b (1 failed before)")
        );
        assert_eq!(
            settled(failing(&[]), &[WHOLE_RUN]),
            but("`make check` fails (it failed before)")
        );
    }

    #[test]
    fn documentation_needs_no_proof() {
        let only = "Done: only documentation was changed";
        let docs = |changed, last| {
            ends(&Run {
                changed,
                last,
                before: &["a"],
                ..Run::default()
            })
        };
        assert_eq!(
            docs(&["README.md::"], None),
            is(Proof::NothingToProve, only)
        );
        assert_eq!(
            docs(&["docs/a.rst::"], Some(failing(&["a"]))),
            is(
                Proof::NothingToProve,
                &format!("{only}; 1 test fails: a (it failed before)")
            )
        );
        assert_eq!(docs(&["README.md::", "a.py::f"], None).0, Proof::Unproven);
    }

    #[test]
    fn a_task_that_needs_no_change_has_nothing_to_prove() {
        let unchanged = |task, nothing_to_change| {
            ends(&Run {
                stop_reason: StopReason::NothingChanged {
                    why: "f returns 2 already\nsee line 3".to_owned(),
                },
                task,
                changed: &[],
                nothing_to_change,
                ..Run::default()
            })
        };
        assert_eq!(
            unchanged("What does f return?\n", true),
            is(Proof::NothingToProve, "Answered; nothing was changed")
        );
        assert_eq!(
            unchanged("Make f return 2.", true),
            is(
                Proof::NothingToProve,
                "Nothing to change: f returns 2 already"
            )
        );
        assert_eq!(
            unchanged("What does f return?", false),
            is(Proof::NotDone, "Not done: f returns 2 already")
        );
    }

    #[test]
    fn what_is_left_behind_is_said_of_a_run_that_is_not_done() {
        let fails = |ids: &[&str]| StopReason::TestsFail {
            failing: ids.iter().map(|id| (*id).to_owned()).collect(),
        };
        let run = Run {
            stop_reason: fails(&["a", "b"]),
            changed: &[],
            taken_back: TakenBack::Yes(Some("/c/1.patch")),
            last: Some(failing(&["a", "b"])),
            ..Run::default()
        };
        let taken_back = "the changes were taken back and are kept in /c/1.patch";
        assert_eq!(
            ends(&run),
            is(
                Proof::NotDone,
                &format!("Not done: 2 tests fail: a, b; {taken_back}")
            )
        );
        let kept = Run {
            stop_reason: StopReason::ProblemsRemain {
                problems: vec!["a.py:1: undefined name `x`".to_owned()],
            },
            last: Some(passing(2)),
            ..Run::default()
        };
        let expected = "Not done: 1 new problem: a.py:1: undefined name `x`; changed a.py::f (2 \
                        tests pass)";
        assert_eq!(ends(&kept), is(Proof::NotDone, expected));
        let failed = Run {
            stop_reason: StopReason::Failed {
                error: "no answer\nmore".to_owned(),
            },
            changed: &[],
            ..Run::default()
        };
        assert_eq!(ends(&failed), is(Proof::NotDone, "Not done: no answer"));
    }

    #[test]
    fn tests_that_hang_with_a_change_leave_it_untested_or_end_without_it() {
        let hanging = |changed: &'static [&'static str], taken_back| {
            ends(&Run {
                stop_reason: StopReason::TestsFail {
                    failing: vec![WHOLE_RUN.to_owned()],
                },
                changed,
                taken_back,
                last: Some(report(TestOutcome::TimedOut, &[])),
                ..Run::default()
            })
        };
        assert_eq!(
            hanging(&["a.py::f"], TakenBack::No),
            is(
                Proof::Unproven,
                "Done, untested: the tests timed out after 6 s"
            )
        );
        let (proof, headline) = hanging(&[], TakenBack::Yes(None));
        assert_eq!(proof, Proof::NotDone);
        assert!(
            headline.starts_with("Not done: the tests timed out after 6 s; the changes were"),
            "{headline}"
        );
    }

    #[test]
    fn a_stop_names_who_stopped_and_what_stays() {
        let stopped = |stop_reason, changed, last| {
            ends(&Run {
                stop_reason,
                changed,
                last,
                ..Run::default()
            })
        };
        assert_eq!(
            stopped(StopReason::Cancelled, &[], None),
            is(Proof::NotDone, "Stopped by you; nothing was changed")
        );
        assert_eq!(
            stopped(StopReason::Cancelled, &["a.py::f"], None),
            is(Proof::NotDone, "Stopped by you; changed a.py::f (untested)")
        );
        let what = "2 of 2 model calls".to_owned();
        assert_eq!(
            stopped(
                StopReason::LedgerEmpty { what },
                &["a.py::f", "a.py::g"],
                Some(passing(1))
            ),
            is(
                Proof::NotDone,
                "Stopped by the limit: 2 of 2 model calls; changed a.py::f, a.py::g (1 test passes)"
            )
        );
    }

    fn finished(agent: &str, outcome: AgentOutcome, summary: &str) -> Event {
        Event::AgentFinished {
            agent: Party::Agent(agent.parse().unwrap()),
            outcome,
            summary: summary.to_owned(),
        }
    }

    #[test]
    fn the_last_words_of_the_agents_say_why_nothing_was_changed() {
        let nothing = |agent, summary| finished(agent, AgentOutcome::NothingToChange, summary);
        let gave_up = |agent, why: &str| {
            let why = why.to_owned();
            finished(agent, AgentOutcome::GaveUp { why }, "")
        };
        let by_all = unchanged(&[
            gave_up("a.py::f", "no time"),
            nothing("a.py::f", "f is right"),
            nothing("b.py::g", "f is right"),
        ]);
        assert_eq!((by_all.why.as_str(), by_all.by_all), ("f is right", true));
        let one_gave_up = unchanged(&[
            nothing("b.py::g", "g is right"),
            gave_up("a.py::f", "20 turns without an end"),
        ]);
        assert_eq!(one_gave_up.why, "a.py::f gave up: 20 turns without an end");
        assert!(!one_gave_up.by_all);
        assert!(!unchanged(&[]).by_all, "nobody looked");
        let missed = Event::NotWoken {
            symbol: "b.py::g".to_owned(),
            from: Party::Scout,
            why: "no room".to_owned(),
        };
        assert!(!unchanged(&[nothing("a.py::f", "fine"), missed]).by_all);
        let rejected = Event::ProposalReviewed {
            proposal: super::super::ProposalId(1),
            by: Party::User,
            verdict: Verdict::Reject {
                reason: "too long\nby far".to_owned(),
            },
        };
        let refused = unchanged(&[rejected, nothing("a.py::f", "given up")]);
        assert_eq!(refused.why, "no proposal was accepted: too long");
        assert!(!refused.by_all);
    }
}
