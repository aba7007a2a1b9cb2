//! Checks for each changed function whether a test fails without its change. If a run changes
//! several functions, a test that proves the change of one function may not show anything about the
//! others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::check::test_run::run_tests;
use crate::check::{reached, scripts};
use crate::evidence::without_change::WithoutChange;
use crate::state::checker::Checker;
use starling_core::{TestOutcome, TestReport, TestStatus};
use starling_syntax::{SymbolKind, SymbolPath, SymbolTree};
use starling_workspace::Snapshot;

/// Maximum number of changed functions. If there are more, this check is skipped.
const PARTS_MOST: usize = 6;
/// Maximum number of tests that are passed to the runner by name. If there are more, it runs all.
const SELECTED_MOST: usize = 200;
/// Maximum expected time of all test runs.
const TIME_MOST: Duration = Duration::from_secs(30);

/// Returns the changed functions that no test covers: the same tests pass if only that function
/// gets its original text back. Restoring a single function can combine an original caller with a
/// changed callee, and so break even a test that passed before the run.
///
/// The result is empty if no test shows the run's change as a whole, that is, if no passing test
/// failed before the run or is new and fails on the original code. The result is also empty if the
/// test runs would take too long.
pub(crate) async fn unshown(checker: &Checker, changed: &[SymbolPath]) -> Vec<SymbolPath> {
    let (before, after, latest, failed_before, new_tests) = {
        let state = checker.state();
        (
            state.without_the_run(),
            state.world.snapshot.clone(),
            state.tests.latest.clone(),
            state.tests.failing_before.clone(),
            state.tests.at_end.new_tests.clone(),
        )
    };
    let Some(latest) = latest else {
        return Vec::new();
    };
    let scripts = scripts::of_test_command(checker);
    let changing = reached::changing_behaviour(&before, &after, changed, &scripts);
    let is_shown = shows_the_change(&latest, &failed_before, &new_tests);
    let passing = passing(&latest);
    let expected =
        Duration::from_millis(latest.millis) * u32::try_from(changing.len()).unwrap_or(u32::MAX);
    let can_be_tried = (2..=PARTS_MOST).contains(&changing.len()) && expected <= TIME_MOST;
    if !is_shown || !can_be_tried {
        return Vec::new();
    }
    let mut unshown = Vec::new();
    for symbol in changing {
        let Some(world) = without_part(&before, &after, symbol) else {
            continue;
        };
        let is_short = passing.len() <= SELECTED_MOST;
        let select = match checker.services.tests.selects() && is_short {
            true => passing.iter().cloned().collect(),
            false => Vec::new(),
        };
        let report = run_tests(checker, &world, select).await;
        if all_pass(&report, &passing) {
            unshown.push(symbol.clone());
        }
    }
    unshown
}

/// Returns the ids of the tests that pass.
fn passing(report: &TestReport) -> BTreeSet<String> {
    let passed = report.cases.iter();
    let passed = passed.filter(|case| case.status == TestStatus::Passed);
    passed.map(|case| case.id.clone()).collect()
}

/// Returns whether a test passes that failed before the run, or that is new and fails on the
/// original code.
fn shows_the_change(
    latest: &TestReport,
    failed_before: &BTreeSet<String>,
    new_tests: &WithoutChange,
) -> bool {
    let is_new = |id: &str| {
        let name = id.split('[').next().unwrap_or(id).rsplit(['.', ':']).next();
        let mut all = new_tests.fails.iter().chain(&new_tests.changed_fail);
        all.any(|one| Some(one.as_str()) == name)
    };
    let passing = passing(latest);
    passing
        .iter()
        .any(|id| failed_before.contains(id) || is_new(id))
}

fn all_pass(report: &TestReport, tests: &BTreeSet<String>) -> bool {
    let did_run = matches!(report.outcome, TestOutcome::Passed | TestOutcome::Failed);
    let passes = |id: &String| {
        let mut of_id = report.cases.iter().filter(|case| case.id == *id).peekable();
        of_id.peek().is_some() && of_id.all(|case| case.status == TestStatus::Passed)
    };
    did_run && tests.iter().all(passes)
}

/// Returns the workspace with the original text of one function; `None` if the symbol is not a
/// function, or if the resulting file has syntax errors.
fn without_part(before: &Snapshot, after: &Snapshot, symbol: &SymbolPath) -> Option<Snapshot> {
    let is = after.tree(&symbol.file).ok()?;
    let new = is.find(&symbol.name)?;
    match new.kind {
        SymbolKind::Function | SymbolKind::Method => {}
        SymbolKind::Module | SymbolKind::Class => return None,
    }
    let was = before.tree(&symbol.file).ok();
    let old = was.as_ref().and_then(|was| {
        let old = was.find(&symbol.name)?;
        Some(old.span.of(was.text()))
    });
    let mut text = is.text().to_string();
    text.replace_range(new.span.start..new.span.end, old.unwrap_or_default());
    let text: Arc<str> = text.into();
    let tree = SymbolTree::parse(symbol.file.clone(), Arc::clone(&text));
    let is_sound = tree.errors().is_empty();
    is_sound.then(|| after.with(symbol.file.clone(), Some(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_syntax::FilePath;
    use starling_workspace::Workspace;

    #[test]
    fn single_changed_function_is_restored_to_its_original_text() {
        let dir = tempfile::tempdir().unwrap();
        let file = FilePath::new("a.py");
        let text = "def f():\n    return 1\n\n\nclass A:\n    def g(self):\n        return 1\n";
        std::fs::write(dir.path().join("a.py"), text).unwrap();
        let before = Workspace::open(dir.path().to_owned()).unwrap();
        let before = before.snapshot(Default::default());
        let new = format!("{}\n\ndef h():\n    return 2\n", text.replace('1', "2"));
        let after = before.with(file.clone(), Some(new.as_str().into()));
        let without = |name: &str| {
            let world = without_part(&before, &after, &SymbolPath::new(file.clone(), name));
            world.map(|world| world.read(&file).unwrap().to_string())
        };
        assert_eq!(without("f"), Some(new.replacen('2', "1", 1)));
        let (head, tail) = new.split_at(new.find("class").unwrap());
        assert_eq!(
            without("A.g"),
            Some(format!("{head}{}", tail.replacen('2', "1", 1)))
        );
        assert!(!without("h").unwrap().contains("def h"));
        assert_eq!(without("A"), None);
    }
}
