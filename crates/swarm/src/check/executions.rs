//! Runs the failing tests that a task is about once more before the run, to record what they execute.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::budget::ExternalTime;
use crate::check::required;
use crate::check::test_run::in_turn;
use crate::state::checker::Checker;
use crate::task::test_names::parts;
use starling_core::{TestOutcome, TestRequest};
use tokio::time::Instant;

/// Maximum number of failing tests whose executions are recorded. If more fail, their common cause
/// is seldom in what single tests execute.
const MOST: usize = 20;
/// Maximum duration of the recorded run.
const LONGEST: Duration = Duration::from_secs(20);
/// If the tests took no longer than this, all tests of the files of the failing tests are recorded.
const QUICK: Duration = Duration::from_secs(10);

/// Records what the failing tests that the task names or quotes execute, and what the passing tests
/// beside them execute.
pub(crate) async fn record(checker: &Checker) {
    let Some(before) = checker.tests().before.clone() else {
        return;
    };
    let failing = required::named_or_quoted(checker, &before);
    if failing.is_empty() || failing.len() > MOST || before.outcome != TestOutcome::Failed {
        return;
    }
    let is_quick = u128::from(before.millis) <= QUICK.as_millis();
    let select = match (checker.services.tests.selects(), is_quick) {
        (true, _) => selected(&failing, is_quick),
        (false, true) => Vec::new(),
        (false, false) => return,
    };
    let world = checker.world().snapshot.clone();
    let Ok(contents) = world.contents() else {
        return;
    };
    let began = Instant::now();
    let run = |deadline| {
        let request = TestRequest {
            overlay: contents.into_iter().collect(),
            select,
            deadline,
        };
        checker.services.tests.record(request, &failing)
    };
    let (_, executions) = in_turn(checker, LONGEST, run).await;
    checker
        .budget
        .was_outside(ExternalTime::Tests, began.elapsed());
    if let Ok(executions) = executions {
        checker.world().executions = Arc::new(executions);
    }
}

/// Returns the entries that select the failing tests with the passing tests beside them: all tests
/// of their files, or all cases of the same parametrized tests.
fn selected(failing: &BTreeSet<String>, is_quick: bool) -> Vec<String> {
    let entry = |id: &String| match (is_quick, id.split_once("::")) {
        (true, Some((file, _))) => file.to_owned(),
        (true, None) | (false, _) => parts(id).0.to_owned(),
    };
    let entries: BTreeSet<String> = failing.iter().map(entry).collect();
    entries.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_beside_the_failing_tests_are_selected() {
        let failing = [
            "t/a.py::test_x[1]",
            "t/a.py::test_x[2]",
            "t/b.py::T::test_y",
        ];
        let failing = failing.map(str::to_owned).into_iter().collect();
        assert_eq!(selected(&failing, true), ["t/a.py", "t/b.py"]);
        let cases = ["t/a.py::test_x", "t/b.py::T::test_y"];
        assert_eq!(selected(&failing, false), cases);
    }
}
