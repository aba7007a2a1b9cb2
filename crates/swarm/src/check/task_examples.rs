//! Runs the examples of a task: before the first prompt, with each change, and at the end.

use std::time::Duration;

use futures::future::join_all;

use crate::check::required;
use crate::check::try_code::try_code;
use crate::event::actor::ActorId;
use crate::event::events::Event;
use crate::evidence::example::ExampleEvidence;
use crate::state::checker::Checker;
use crate::state::tries::TriedExample;
use crate::task::goal::Goal;
use crate::task::runnable;
use starling_core::{TestOutcome, TryCode, TryReport};
use starling_workspace::Snapshot;

/// Time limit for one example.
const LONGEST: Duration = Duration::from_secs(10);
/// Errors that mean that a snippet cannot run in this environment. Exception: the task may ask to
/// create the missing module or name.
const NOT_HERE: [&str; 2] = ["ModuleNotFoundError", "ImportError"];

/// Runs the examples of the task on the unchanged code, and stores the results of those that could
/// run.
pub(crate) async fn before(checker: &Checker) {
    let text = checker.task.text.clone();
    if !runnable::may_be_in(&text) || checker.task.refactoring.is_some() {
        return;
    }
    let lookup = checker.lookup();
    let search = tokio::task::spawn_blocking(move || runnable::examples(&lookup, &text));
    // If the search panics, the run continues without examples.
    let found = search.await.unwrap_or_default();
    let world = checker.world().snapshot.clone();
    let tried = found.into_iter().map(|code| tried(checker, &world, code));
    let tried = join_all(tried).await;
    checker.tries().examples = tried.into_iter().flatten().collect();
}

/// Runs the examples again on a changed workspace.
pub(crate) async fn with_change(checker: &Checker, world: &Snapshot) -> Vec<ExampleEvidence> {
    let examples = checker.tries().examples.clone().into_iter();
    let tried = examples.map(|TriedExample { code, before }| async move {
        let after = try_code(checker, world, code.clone(), LONGEST).await;
        ExampleEvidence {
            code: code.in_one_line(),
            before: before.in_short(),
            after: after.in_short(),
        }
    });
    join_all(tried).await
}

/// Describes the examples that failed on the unchanged code. Returns nothing if the task does not
/// ask for other behaviour, because it is a question or asks only for documentation or tests.
pub(crate) fn failing_before(checker: &Checker) -> Vec<String> {
    let asks_for_behaviour = match required::goal(checker) {
        Goal::Bug | Goal::RedTests | Goal::Feature | Goal::Refactoring => true,
        Goal::NewTest | Goal::Documentation | Goal::Question => false,
    };
    let is_question = checker.task.text.trim_end().ends_with('?');
    if !asks_for_behaviour || is_question {
        return Vec::new();
    }
    let tries = checker.tries();
    let examples = tries.examples.iter();
    let failing = examples.filter(|example| example.before.outcome != TestOutcome::Passed);
    let ends = failing.map(|example| example.before.in_short());
    ends.map(|end| format!("the example of the task still ends with `{end}`"))
        .collect()
}

/// Runs one example. Returns `None` if the example cannot run in this environment.
async fn tried(checker: &Checker, world: &Snapshot, code: TryCode) -> Option<TriedExample> {
    let before = try_code(checker, world, code.clone(), LONGEST).await;
    let result = before.in_short();
    let is_missing = NOT_HERE.iter().any(|error| result.starts_with(error));
    let is_missing = is_missing && !runnable::is_to_be_made(&checker.lookup(), &result);
    if before.outcome == TestOutcome::NotRun || is_missing {
        return None;
    }
    report(checker, &code, &before);
    Some(TriedExample { code, before })
}

/// Logs an example and its result.
fn report(checker: &Checker, code: &TryCode, report: &TryReport) {
    checker.event(Event::ToolUsed {
        agent: ActorId::Starling,
        tool: "try".to_owned(),
        argument: code.in_one_line(),
        outcome: report.in_short(),
    });
}
