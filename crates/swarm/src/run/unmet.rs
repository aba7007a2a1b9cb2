//! Finds the parts of the task that are not done at the end of a run, no matter which agent says
//! that the task is done.

use std::sync::Arc;

use crate::check::{left_imports, moved, required, task_examples};
use crate::lookup::Lookup;
use crate::state::run_context::RunContext;
use crate::task::mentions::named_files;
use crate::task::stated::absent::AbsentName;
use crate::task::{new_files, stated};

/// Describes the renames, deletions and new files that the task asks for and that are not done. If
/// no change was applied, also describes the examples of the task that fail.
pub(crate) fn unmet(run: &RunContext) -> Vec<String> {
    let lookup = run.lookup();
    let lookup_before = lookup_before(run);
    let mut unmet = stated::unmet(run.stated(), &lookup_before, &lookup);
    let (task, goal) = (&run.task.text, required::goal(run));
    unmet.extend(new_files::missing(task, goal, &lookup_before, &lookup));
    let (before, after) = {
        let state = run.state();
        (state.without_the_run(), state.world.snapshot.clone())
    };
    unmet.extend(moved::standing_twice(task, (&before, &after), &lookup));
    if run.proposals().is_nothing_applied() {
        unmet.extend(task_examples::failing_before(run));
    }
    unmet
}

/// Describes the names that the task asks to rename or delete beside others, and that do not exist.
pub(crate) fn names_not_there(run: &RunContext) -> Vec<String> {
    let absent = run.stated().absent.iter();
    absent.map(AbsentName::in_words).collect()
}

/// Describes the data files that the task names and that keep an old name, although something was
/// changed.
pub(crate) fn files_with_old_names(run: &RunContext) -> Vec<String> {
    let is_unchanged = run.proposals().is_nothing_applied();
    match is_unchanged {
        true => Vec::new(),
        false => named_files::with_old_names(&run.task.text, run.stated(), &run.lookup()),
    }
}

/// Describes the code that still takes a definition from the module from which the task asks to move it.
/// The program works with it, so the run is done, but the end says so.
pub(crate) fn old_imports(run: &RunContext) -> Vec<String> {
    let lookup = run.lookup();
    let (before, after) = {
        let state = run.state();
        (state.without_the_run(), state.world.snapshot.clone())
    };
    left_imports::left_imports(&run.task.text, (&before, &after), &lookup)
}

/// Returns a lookup in the workspace as it was before the run.
pub(crate) fn lookup_before(run: &RunContext) -> Lookup {
    let index = Arc::clone(&run.services.index);
    Lookup::new(index.snapshot().clone(), index)
}
