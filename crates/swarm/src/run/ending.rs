//! Derives the result of a run: a headline for users, and whether tests prove the run's changes.

mod facts;
mod last_test;
mod not_applied;
mod phrases;
mod shown;
mod unchanged;
mod words;
pub(crate) use facts::{LastCheck, RunFacts, TakenBack};
use last_test::{LastTestResult, checked, cut_short};
pub(crate) use not_applied::{declined, left_out, refused, rejected};
pub(crate) use phrases::head;
use phrases::{
    failed_before, failures, first_line, first_word, now_and_then, only_error, pass, with_status,
};
use shown::{are_all_fixed, whole};
pub(crate) use unchanged::{Unchanged, unchanged};
use words::{is_all_documentation, only_words};
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::event::ending::{Ending, Proof};
use crate::event::events::StopReason;
use crate::evidence::example;
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::test_evidence::failing_ids;
use crate::evidence::without_change::WithoutChange;
use crate::evidence::wording::{counted, some_of};
use crate::run::aim::ChangeRelevance;
use crate::run::context_failures;
use crate::task::goal::Goal;
use crate::task::goal::excluded::ExcludedTests;
use crate::task::test_names::parts;
use starling_core::{TestCase, TestOutcome, TestReport, TestStatus};

/// Prefix of the stop reason if the run changed nothing because the approver sent its proposals
/// back.
pub const NOT_ACCEPTED: &str = "no proposal was accepted";

impl Ending {
    /// Returns the result of a run that failed before it started.
    pub fn before_start(stop_reason: &StopReason) -> Ending {
        ending(&RunFacts {
            stop_reason,
            task: "",
            goal: Goal::Bug,
            changed: &[],
            taken_back: TakenBack::No,
            not_taken_back: None,
            with_changes: None,
            declined: &[],
            last_check: LastCheck::Absent {
                why: "the run never began",
            },
            failed_before: &BTreeSet::new(),
            did_not_run: &BTreeSet::new(),
            required: &BTreeSet::new(),
            possible: &BTreeSet::new(),
            only_as_changed: &[],
            unheld: &[],
            unsteady: &[],
            doubtful: &[],
            examples: &[],
            new_tests: &WithoutChange::default(),
            unshown_parts: &[],
            unreached: &[],
            behaves_otherwise: false,
            only_words: false,
            aim: &ChangeRelevance::default(),
            beside_failures: false,
            left_out: &[],
            left_out_is_named: false,
            rejected: &[],
            problems: &[],
            needs_your_yes: &[],
            is_a_part: false,
            refused: None,
            report_before: None,
            nothing_to_change: false,
        })
    }
}

/// Returns the result of a run. The run's last check decides whether tests prove its changes.
pub(crate) fn ending(facts: &RunFacts<'_>) -> Ending {
    let (proof, headline) = match facts.stop_reason {
        StopReason::Settled => {
            let (proof, headline) = done(facts);
            let (proof, headline) = match proof {
                Proof::Proven | Proof::AsBefore | Proof::NothingToProve
                    if !facts.left_out.is_empty() =>
                {
                    (Proof::Unproven, without_the_refused(facts, &headline))
                }
                Proof::Proven | Proof::AsBefore => {
                    let beside = without_change(facts.new_tests);
                    (proof, format!("{headline}{beside}"))
                }
                Proof::Unproven if !facts.left_out.is_empty() => {
                    (Proof::Unproven, without_the_refused(facts, &headline))
                }
                other => (other, headline),
            };
            let (proof, headline) = match facts.problems {
                [] => (proof, headline),
                problems => (Proof::Unproven, with_problems(problems, &headline)),
            };
            let headline = match facts.rejected {
                [] => headline,
                rejected => format!("{headline}; you rejected {}", some_of(rejected)),
            };
            let mut untold = facts.unsteady.to_vec();
            untold.retain(|id| !names(&headline, id));
            let unsteady = match untold.is_empty() {
                true => String::new(),
                false => format!("; {}", now_and_then(&untold)),
            };
            let example = example::at_end(facts.examples);
            (proof, format!("{headline}{unsteady}{example}"))
        }
        StopReason::NothingChanged { why } if facts.nothing_to_change => {
            let headline = match facts.task.trim_end().ends_with('?') {
                true => "Answered; nothing was changed".to_owned(),
                false => format!("Nothing to change: {}", first_line(why)),
            };
            (Proof::NothingToProve, headline)
        }
        StopReason::NothingChanged { .. } if facts.refused.is_some() => not_done(
            facts,
            &format!(
                "{}what was proposed was refused: {}",
                still_open(facts),
                first_line(facts.refused.unwrap_or_default())
            ),
        ),
        StopReason::NothingChanged { why } => {
            not_done(facts, &format!("{}{}", still_open(facts), first_line(why)))
        }
        StopReason::TestsFail { failing } => tests_fail(facts, failing),
        StopReason::ProblemsRemain { problems } => not_done(facts, &some_of(problems)),
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
    Ending::new(proof, headline)
}

/// Returns the headline of a run in which some proposals were refused. Passing tests do not show
/// that such a run did the whole task.
fn without_the_refused(facts: &RunFacts<'_>, headline: &str) -> String {
    let done = what_is_done(headline);
    match is_mostly_refused(facts) || facts.left_out_is_named {
        true => partly_done(facts, done),
        false => format!("Done, but {}; {done}", refusals(facts)),
    }
}

/// Returns whether more proposals were refused than were applied.
fn is_mostly_refused(facts: &RunFacts<'_>) -> bool {
    facts.left_out.len() > facts.changed.len()
}

/// Returns the headline of a run in which more proposals were refused than applied, or in which a
/// proposal for code that the task names was refused.
fn partly_done(facts: &RunFacts<'_>, done: &str) -> String {
    let names: Vec<String> = facts.changed.iter().map(ToString::to_string).collect();
    let changed = some_of(&names);
    format!(
        "Partly done: {}; changed only {changed}; {done}",
        refusals(facts)
    )
}

/// Returns the headline of a run whose changes leave problems in the workspace.
fn with_problems(problems: &[String], headline: &str) -> String {
    let (problems, rest) = (some_of(problems), what_is_done(headline));
    match headline.starts_with("Partly done: ") {
        true => format!("Partly done: {problems}; {rest}"),
        false => format!("Done, but {problems}; {rest}"),
    }
}

/// Returns a headline without its opening words, such as "Done: ".
fn what_is_done(headline: &str) -> &str {
    const BEGINNINGS: [&str; 5] = [
        "Partly done: ",
        "Done and proven: ",
        "Done, untested: ",
        "Done, but ",
        "Done: ",
    ];
    let mut beginnings = BEGINNINGS.iter();
    let rest = beginnings.find_map(|beginning| headline.strip_prefix(beginning));
    rest.unwrap_or(headline)
}

/// Describes the refused proposals, for example `1 proposal was refused: a.py::f (why)`.
fn refusals(facts: &RunFacts<'_>) -> String {
    let names = some_of(facts.left_out);
    match facts.left_out.len() {
        1 => format!("1 proposal was refused: {names}"),
        many => format!("{many} proposals were refused: {names}"),
    }
}

/// Returns why no test proves the changes of a run; `None` if tests prove them, or if there is
/// nothing to prove.
pub(crate) fn unproven(facts: &RunFacts<'_>) -> Option<String> {
    match checked(facts) {
        LastTestResult::Passes(_) => unshown_by_tests(facts),
        LastTestResult::Fails(_) if passed_beside_known_failures(facts).is_some() => {
            unshown_by_tests(facts)
        }
        LastTestResult::Fails(_) | LastTestResult::Untested(_) if is_all_documentation(facts) => {
            None
        }
        LastTestResult::Fails(why) if fail_as_before(facts) => {
            Some(unshown_by_tests(facts).unwrap_or(why))
        }
        LastTestResult::Fails(why) | LastTestResult::Untested(why) => Some(why),
    }
}

fn not_done(facts: &RunFacts<'_>, why: &str) -> (Proof, String) {
    let is_unchanged = facts.changed.is_empty() && matches!(facts.taken_back, TakenBack::No);
    let rest = match (is_unchanged, facts.declined) {
        (true, _) => String::new(),
        (false, []) => format!("; {}", left_behind(facts)),
        (false, declined) => format!("; {}; {}", some_of(declined), left_behind(facts)),
    };
    // A part that needs a person is the cause of what is missing without it.
    let yes = match facts.needs_your_yes {
        [] => String::new(),
        [one] if why.contains("--allow-write") && why.contains(first_word(one)) => String::new(),
        files => format!("a part needs your own yes: {}; ", some_of(files)),
    };
    (Proof::NotDone, format!("Not done: {yes}{why}{rest}"))
}

/// For a run that changed nothing, describes what the task asks for and is not there, followed by
/// the failing tests that the task is about.
fn still_open(facts: &RunFacts<'_>) -> String {
    let problems = match facts.problems {
        [] => String::new(),
        problems => format!("{}; ", some_of(problems)),
    };
    format!("{problems}{}", still_failing(facts))
}

/// For a run that changed nothing, describes the failing tests that the task is about, for example
/// `1 test still fails: a; `.
fn still_failing(facts: &RunFacts<'_>) -> String {
    let failing = facts.report_before.map(failing_ids).unwrap_or_default();
    if let (Some(report), [only]) = (facts.report_before, failing.as_slice())
        && only == WHOLE_RUN
    {
        return match cut_short(report) {
            Some(how) => format!("{how}; "),
            None => format!("{} still fails; ", report.command),
        };
    }
    let required = failing.into_iter();
    let required = required.filter(|id| *id != WHOLE_RUN && facts.required.contains(id));
    let required: Vec<String> = required.collect();
    match required.len() {
        0 => String::new(),
        1 => format!("1 test still fails: {}; ", required[0]),
        many => format!("{many} tests still fail: {}; ", some_of(&required)),
    }
}

fn tests_fail(facts: &RunFacts<'_>, failing: &[String]) -> (Proof, String) {
    let report = facts.with_changes.or(known_report(facts));
    if let Some(cut_short) = report.and_then(cut_short) {
        return match facts.changed.is_empty() {
            true => not_done(facts, &cut_short),
            false => (Proof::Unproven, format!("Done, untested: {cut_short}")),
        };
    }
    let command = report.map_or("the test command", |report| report.command.as_str());
    let others = report.map(|report| other_failures(report, failing));
    let others = others.unwrap_or_default();
    let (unsteady, failing): (Vec<String>, Vec<String>) =
        (failing.iter().cloned()).partition(|id| facts.unsteady.contains(id));
    // The tests ran before the changes were reverted.
    let (with, error) = match facts.taken_back {
        TakenBack::Yes(_) => (
            "with the changes, ",
            report.map(|report| only_error(&failing, report)),
        ),
        TakenBack::No => ("", None),
    };
    let mut what = Vec::new();
    if !failing.is_empty() {
        let error = error.unwrap_or_default();
        what.push(format!("{}{error}", failures(&failing, command)));
    }
    if !unsteady.is_empty() {
        what.push(now_and_then(&unsteady));
    }
    let passing = report.map(passing).unwrap_or_default();
    not_done(
        facts,
        &format!("{with}{passing}{}{others}", what.join("; ")),
    )
}

/// Returns the report of the workspace's last test run.
fn known_report<'a>(facts: &RunFacts<'a>) -> Option<&'a TestReport> {
    match facts.last_check {
        LastCheck::Known(report) => Some(report),
        LastCheck::Absent { .. } => None,
    }
}

/// Describes the number of passing tests, for example `2 tests pass; `.
fn passing(report: &TestReport) -> String {
    let passed = with_status(report, TestStatus::Passed);
    let is_told = report.outcome == TestOutcome::Failed && report.source.is_reporter();
    match is_told && passed > 0 {
        true => format!("{} {}; ", counted(passed, "test"), pass(passed)),
        false => String::new(),
    }
}

/// Describes, in parentheses, the failing tests of a report that are not part of the task.
fn other_failures(report: &TestReport, required: &[String]) -> String {
    let is_other = |id: &&String| *id != WHOLE_RUN && !required.contains(id);
    match failing_ids(report).iter().filter(is_other).count() {
        0 => String::new(),
        1 => " (1 other test fails, no part of the task)".to_owned(),
        many => format!(" ({many} other tests fail, no part of the task)"),
    }
}

/// Returns the proof and the headline of a run that settled, that is, succeeded without remaining
/// work.
fn done(facts: &RunFacts<'_>) -> (Proof, String) {
    let is_documentation = is_all_documentation(facts);
    let beside = passed_beside_known_failures(facts).filter(|_| !is_documentation);
    let unshown = unshown_by_tests(facts).filter(|_| !is_documentation);
    match (checked(facts), beside, unshown) {
        (LastTestResult::Passes(what), _, Some(why)) => {
            (Proof::Unproven, format!("Done, but {why}; {what}"))
        }
        (LastTestResult::Fails(what), Some(passed), Some(why)) => {
            let passed = format!("{} {}", counted(passed, "test"), pass(passed));
            (
                Proof::Unproven,
                format!("Done, but {why}; {passed}; {what}, no part of the task"),
            )
        }
        (LastTestResult::Fails(what), Some(passed), None) => {
            let passed = match facts.goal == Goal::NewTest {
                // Proposals with new tests are accepted only if these tests ran and pass, so none
                // can fail here.
                true => match count_of_new_tests(facts) {
                    0 | 1 => "the new test passes".to_owned(),
                    many => format!("the {many} new tests pass"),
                },
                false => format!("{} {}", counted(passed, "test"), pass(passed)),
            };
            let (proof, headline) = whole(facts, &passed);
            (proof, format!("{headline}; {what}, no part of the task"))
        }
        (LastTestResult::Passes(what), _, None) if is_documentation => (
            Proof::NothingToProve,
            format!("Done: {}; {what}", only_words(facts)),
        ),
        (LastTestResult::Passes(what), _, None) => whole(facts, &what),
        (LastTestResult::Fails(what), ..) if is_documentation => (
            Proof::NothingToProve,
            format!(
                "Done: {}; {}{what}",
                only_words(facts),
                known_report(facts).map(passing).unwrap_or_default()
            ),
        ),
        (LastTestResult::Untested(_), ..) if is_documentation => (
            Proof::NothingToProve,
            format!("Done: {}", only_words(facts)),
        ),
        (LastTestResult::Fails(what), None, Some(why)) if fail_as_before(facts) => {
            let passing = known_report(facts).map(passing).unwrap_or_default();
            (Proof::Unproven, format!("Done, but {why}; {passing}{what}"))
        }
        (LastTestResult::Fails(what), None, _) => (Proof::Unproven, done_but_failing(facts, &what)),
        (LastTestResult::Untested(why), ..) => match &facts.aim.missed {
            Some(missed) => (Proof::Unproven, format!("Done, but {missed}; {why}")),
            None => (Proof::Unproven, format!("Done, untested: {why}")),
        },
    }
}

/// Returns the number of test functions that pass and that did not exist before the run. The new tests
/// are compared with the original code only if the run changed code as well.
fn count_of_new_tests(facts: &RunFacts<'_>) -> usize {
    let compared = facts.new_tests.fails.len() + facts.new_tests.passes.len();
    let (Some(before), LastCheck::Known(now)) = (facts.report_before, facts.last_check) else {
        return compared;
    };
    let function = |case: &TestCase| parts(&case.id).0.to_owned();
    let known: BTreeSet<String> = before.cases.iter().map(function).collect();
    let passed = now
        .cases
        .iter()
        .filter(|case| case.status == TestStatus::Passed);
    let all: BTreeSet<String> = passed.map(function).collect();
    all.difference(&known).count().max(compared)
}

/// Returns the headline of a run that settled although tests fail.
fn done_but_failing(facts: &RunFacts<'_>, all: &str) -> String {
    let passing = known_report(facts).map(passing).unwrap_or_default();
    let passing = passing.trim_end_matches("; ");
    let beside = match passing.is_empty() {
        true => String::new(),
        false => format!("; {passing}"),
    };
    let headline = cases_left(facts);
    let headline = headline.unwrap_or_else(|| {
        let what = failures_of_the_task(facts);
        format!("Done, but {}", what.as_deref().unwrap_or(all))
    });
    format!("{headline}{beside}")
}

/// Describes the failing tests that may be part of the task, if the others are not: all failed before
/// the run, and the task is about tests that pass now. Otherwise returns `None`.
fn failures_of_the_task(facts: &RunFacts<'_>) -> Option<String> {
    let LastCheck::Known(report) = facts.last_check else {
        return None;
    };
    let may_belong = |id: &String| facts.required.contains(id) || facts.possible.contains(id);
    let mut failing = failing_ids(report);
    let count = failing.len();
    failing.retain(may_belong);
    let is_told = !facts.required.is_empty() && fail_as_before(facts);
    let is_part = !failing.is_empty() && failing.len() < count;
    (is_told && is_part).then(|| {
        let which = failures(&failing, &report.command);
        let before = failed_before(&failing, facts);
        format!("{which}{before}{}", other_failures(report, &failing))
    })
}

/// Returns the headline of a run that settled because it fixed other cases of the parametrized tests
/// that still fail; `None` if there are none.
fn cases_left(facts: &RunFacts<'_>) -> Option<String> {
    let LastCheck::Known(report) = facts.last_check else {
        return None;
    };
    let is_left = |id: &String| facts.required.contains(id) && !parts(id).1.is_empty();
    let left: Vec<String> = failing_ids(report).into_iter().filter(is_left).collect();
    let others = other_failures(report, &left);
    let beginning = match context_failures::are_asked_for(facts.goal, facts.task, &left) {
        true => "Partly done: ",
        false => "Done, but ",
    };
    match left.as_slice() {
        _ if !fail_as_before(facts) => None,
        [] => None,
        [only] => Some(format!(
            "{beginning}another case of a fixed test still fails: {only}{others}"
        )),
        many => Some(format!(
            "{beginning}{} other cases of fixed tests still fail: {}{others}",
            many.len(),
            some_of(many)
        )),
    }
}

/// Returns whether every failing test also failed before the run.
fn fail_as_before(facts: &RunFacts<'_>) -> bool {
    let LastCheck::Known(report) = facts.last_check else {
        return false;
    };
    let failing = failing_ids(report);
    let did_fail =
        |id: &String| facts.failed_before.contains(id) && !facts.did_not_run.contains(id);
    !failing.is_empty() && failing.iter().all(did_fail)
}

/// Returns why passing tests do not prove the changes, for example `no test reaches a.py::f`;
/// `None` if they do.
///
/// A test proves the changes if it failed before the run and passes now, or if it is new or changed
/// and fails without the changes. The changes must be in code that the task names, in code that
/// uses it, or in code that it uses. Tests that also passed before the run only show that existing
/// behaviour is unchanged, not that it changed as the task asks.
fn unshown_by_tests(facts: &RunFacts<'_>) -> Option<String> {
    unshown_as_whole(facts).or_else(|| unshown_part(facts))
}

/// Returns a message if, for some changed function, all tests also pass without its change; `None`
/// otherwise.
fn unshown_part(facts: &RunFacts<'_>) -> Option<String> {
    let is_meant = !facts.unshown_parts.is_empty() && facts.goal != Goal::Refactoring;
    let names = facts.unshown_parts.iter().map(ToString::to_string);
    let names: Vec<String> = names.collect();
    is_meant.then(|| format!("no test fails without the change of {}", some_of(&names)))
}

/// Returns why no test shows any effect of the run's changes; `None` if a test shows an effect.
fn unshown_as_whole(facts: &RunFacts<'_>) -> Option<String> {
    let LastCheck::Known(report) = facts.last_check else {
        return None;
    };
    let passes = |case: &&TestCase| case.status == TestStatus::Passed;
    let is_fixed = |case: &&TestCase| facts.failed_before.contains(&case.id);
    let fixed = || report.cases.iter().filter(passes).filter(is_fixed);
    if fixed().any(|case| facts.required.contains(&case.id)) {
        return None;
    }
    if let Some(missed) = &facts.aim.missed {
        return Some(missed.clone());
    }
    let is_aside = |id: &String| facts.aim.aside.contains(id);
    if fixed().any(|case| !is_aside(&case.id))
        || are_all_fixed(facts, report)
        || facts.new_tests.show_the_change()
    {
        return None;
    }
    if !facts.unreached.is_empty() && report.source.is_reporter() {
        let names: Vec<String> = facts.unreached.iter().map(ToString::to_string).collect();
        return Some(format!("no test reaches {}", some_of(&names)));
    }
    // With these goals, a test must prove changed behaviour, even if the task asks only for
    // documentation or an answer.
    let asks_for_behaviour = match facts.goal {
        Goal::Bug | Goal::RedTests | Goal::Feature | Goal::Documentation | Goal::Question => true,
        // If code was changed as well, the new test is to show that change.
        Goal::NewTest => true,
        Goal::Refactoring => false,
    };
    let why = match facts.new_tests.passes.len() {
        0 if fixed().next().is_some() => {
            let named = &facts.aim.named;
            return Some(format!(
                "no test of {named}, which the task names, was seen to fail without it"
            ))
            .filter(|_| asks_for_behaviour && facts.behaves_otherwise);
        }
        0 => "no test was seen to fail without it",
        1 => "the new test passes without it, too",
        _ => "the new tests pass without it, too",
    };
    (asks_for_behaviour && facts.behaves_otherwise).then(|| why.to_owned())
}

/// If all failing tests also failed before the run and are not part of the task, returns the number
/// of passing tests; `None` otherwise. If the task describes a bug that no failing test shows, any
/// failing test may be part of the task.
fn passed_beside_known_failures(facts: &RunFacts<'_>) -> Option<usize> {
    let LastCheck::Known(report) = facts.last_check else {
        return None;
    };
    let is_told = match facts.goal {
        Goal::Bug | Goal::RedTests => {
            let excluded = ExcludedTests::of(facts.task);
            let is_left = |id: &String| excluded.hold_the_rest() || excluded.holds(id);
            let are_left = failing_ids(report).iter().all(is_left);
            !facts.required.is_empty() || facts.beside_failures || are_left
        }
        Goal::NewTest
        | Goal::Feature
        | Goal::Refactoring
        | Goal::Documentation
        | Goal::Question => true,
    };
    let is_other = |id: &String| {
        let may_belong = facts.required.contains(id) || facts.possible.contains(id);
        let did_fail = facts.failed_before.contains(id) && !facts.did_not_run.contains(id);
        *id != WHOLE_RUN && did_fail && !may_belong
    };
    let is_proven = is_told
        && report.outcome == TestOutcome::Failed
        && report.source.is_reporter()
        && facts.only_as_changed.is_empty()
        && facts.doubtful.is_empty()
        && facts.unheld.is_empty()
        && failing_ids(report).iter().all(is_other);
    let passed = with_status(report, TestStatus::Passed);
    (is_proven && passed > 0).then_some(passed)
}

/// Returns whether a headline names the test with this id as flaky.
pub(crate) fn names(headline: &str, id: &str) -> bool {
    let told = headline.split("now and then").nth(1);
    let mut ids = told.map(|told| told.trim_start_matches(':').split([',', ';']));
    let is_it = |one: &str| id == WHOLE_RUN || one.trim() == id;
    ids.as_mut().is_some_and(|ids| ids.any(is_it))
}

/// Describes the results of the new tests without the run's change, for example `; the new test
/// fails without the change`. A new test that fails there shows the effect of the change.
fn without_change(found: &WithoutChange) -> String {
    let WithoutChange {
        fails,
        passes,
        changed_fail,
        unshown_parts: _,
    } = found;
    match (fails.len(), passes.len()) {
        (0, 0) => match changed_fail.as_slice() {
            [] => String::new(),
            [only] => format!("; {only} as it was changed fails without the change"),
            many => format!(
                "; {} as they were changed fail without the change",
                some_of(many)
            ),
        },
        (1, 0) => "; the new test fails without the change".to_owned(),
        (fails, 0) => format!("; the {fails} new tests fail without the change"),
        (0, 1) => "; the new test passes without the change, too".to_owned(),
        (0, passes) => format!("; the {passes} new tests pass without the change, too"),
        (fails, count) => {
            let names = some_of(passes);
            let pass = pass(count);
            let fail = if fails == 1 { "fails" } else { "fail" };
            let fails = counted(fails, "new test");
            format!("; {fails} {fail} without the change, {names} {pass} without it, too")
        }
    }
}

/// Describes the changes that the run leaves in the workspace.
fn left_behind(facts: &RunFacts<'_>) -> String {
    let kept = match facts.taken_back {
        TakenBack::No if facts.changed.is_empty() => return "nothing was changed".to_owned(),
        TakenBack::No => String::new(),
        TakenBack::Yes(Some(patch)) => {
            let part = match facts.is_a_part {
                true => ", a part of what was proposed",
                false => "",
            };
            format!("the changes were taken back and are kept in {patch}{part}")
        }
        TakenBack::Yes(None) => "the changes were taken back; the run's log holds them".to_owned(),
    };
    if facts.changed.is_empty() {
        return kept;
    }
    let names: Vec<String> = facts.changed.iter().map(ToString::to_string).collect();
    let tested = match checked(facts) {
        LastTestResult::Passes(what) | LastTestResult::Fails(what) => what,
        LastTestResult::Untested(_) => "untested".to_owned(),
    };
    let why = facts.not_taken_back;
    let why = why.map_or(String::new(), |why| format!(", kept: {why}"));
    let stays = format!("changed {} ({tested}){why}", some_of(&names));
    match kept.is_empty() {
        true => stays,
        false => format!("{kept}; still {stays}"),
    }
}
