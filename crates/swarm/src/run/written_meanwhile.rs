//! Finds lines that another program wrote during the run and that mention a name which the run renamed or
//! deleted. The lines are reported as problems at the end of the run. No other check finds these lines,
//! because the index contains closed files as they were at the start of the run.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::evidence::wording::some_of;
use crate::run::finish::changed;
use crate::state::run_context::RunContext;
use crate::task::stated::Named;
use crate::task::whole_word::has_word;
use starling_syntax::FilePath;
use starling_workspace::{MAX_FILE_BYTES, Snapshot, may_show, read_source};

/// Adds a problem for each name that another program wrote.
pub(crate) async fn note(run: &Arc<RunContext>) {
    let names = gone(run);
    if names.is_empty() || changed(run).is_empty() {
        return;
    }
    let own = Arc::clone(run);
    let looking = tokio::task::spawn_blocking(move || problems(&own, &names));
    // If the search panics, the run ends without these problems.
    let found = looking.await.unwrap_or_default();
    run.tests().at_end.problems.extend(found);
}

/// Returns the names that the task renames or deletes, without file names.
fn gone(run: &RunContext) -> BTreeSet<String> {
    let all = run.stated().all.iter().map(|stated| stated.named());
    let names = all.filter(|named| !matches!(named, Named::File(_)));
    names.map(|named| named.base_name().to_owned()).collect()
}

fn problems(run: &RunContext, names: &BTreeSet<String>) -> Vec<String> {
    let world = run.world().snapshot.clone();
    let before = run.services.index.snapshot();
    let files = run.disk.changed_since_start(&world);
    let texts: Vec<(&FilePath, String)> = files
        .iter()
        .filter_map(|file| {
            let text = read_source(&world.root().join(file.as_str()), MAX_FILE_BYTES).ok()?;
            may_show(file, &text).ok()?;
            Some((file, text))
        })
        .collect();
    let of_name = |name: &String| {
        let places = texts.iter().flat_map(|(file, text)| {
            let lines = new_mentions(before, (file, text), name).into_iter();
            lines.map(move |line| format!("{file}:{line}"))
        });
        let places: Vec<String> = places.collect();
        (!places.is_empty()).then(|| {
            format!(
                "another program wrote `{name}` meanwhile: {}",
                some_of(&places)
            )
        })
    };
    names.iter().filter_map(of_name).collect()
}

/// Returns the line numbers of lines that contain the name and that the file did not contain at the start of
/// the run.
fn new_mentions(before: &Snapshot, (file, text): (&FilePath, &str), name: &str) -> Vec<usize> {
    let old = before.read_unchanged(file);
    let old: BTreeSet<&str> = old.iter().flat_map(|text| text.lines()).collect();
    let lines = (1..).zip(text.lines());
    lines
        .filter(|(_, line)| has_word(line, name) && !old.contains(line))
        .map(|(number, _)| number)
        .collect()
}
