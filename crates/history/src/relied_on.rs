//! Changes of a run on which changes of other runs rely: an undo would leave code of another run with
//! a name without a meaning, or with a call that no longer fits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::plan::{FileUndoPlan, UndoRefusal, UndoStep, dependencies, plan};
use super::trajectory::{ChangeRecord, PastRun, newest_first, started};
use starling_core::Editor;
use starling_index::{Index, newly_undefined};
use starling_swarm::reading::{Lookup, outdated_locations};
use starling_swarm::{AppliedChange, ProposalId, RunId, has_word};
use starling_syntax::{FilePath, Language, SymbolPath, SymbolTree};
use starling_text::ChangeSet;
use starling_workspace::Snapshot;

/// A change that another run applied, and that is still in the files.
#[derive(Debug, Clone)]
pub struct OtherChange {
    pub run: RunId,
    pub change: AppliedChange,
}

/// Reads the other runs of a project that may have changed something after `run` was started. Runs
/// whose trajectory cannot be read are left out.
pub fn other_runs(trajectories: &Path, root: &Path, run: &RunId) -> Vec<PastRun> {
    let since = started(run);
    let others = newest_first(trajectories, root).into_iter();
    let others = others.filter(|found| found.id != *run).filter(|found| {
        let written = found.path.metadata().and_then(|data| data.modified()).ok();
        written.zip(since).is_none_or(|(at, since)| at >= since)
    });
    let others = others.filter_map(|found| PastRun::read(&found.path).ok());
    others.collect()
}

/// Returns the changes of runs that are still in the files.
pub async fn other_changes(runs: Vec<PastRun>, editor: &dyn Editor) -> Vec<OtherChange> {
    let mut changes = Vec::new();
    for mut run in runs {
        run.detect_unrecorded_changes(editor).await;
        let made = run.applied().filter_map(|one| one.made.clone());
        changes.extend(made.map(|change| OtherChange {
            run: run.id.clone(),
            change,
        }));
    }
    changes
}

/// Returns the chosen proposals of `run` that cannot be undone without breaking what another run
/// applied, and those that must stay with them. `index` is an index of the project.
pub async fn relied_on(
    (run, changes): (&RunId, &[ChangeRecord]),
    chosen: &BTreeSet<ProposalId>,
    others: &[OtherChange],
    editor: &dyn Editor,
    index: &Index,
) -> Vec<UndoRefusal> {
    let dependencies = dependencies(changes);
    let mut open = chosen.clone();
    let mut refused = Vec::new();
    loop {
        let planned = plan(editor, changes, &open).await;
        let lost = lost_uses(&planned.files, others, editor, index).await;
        let Some(first) = lost.first() else {
            return refused;
        };
        let undone = planned.files.iter().flat_map(|plan| &plan.undone).copied();
        let undone: Vec<ProposalId> = undone.collect();
        let mut staying: BTreeMap<ProposalId, &LostUse> = BTreeMap::new();
        for id in &undone {
            let alone = plan(editor, changes, &[*id].into()).await;
            let lost_alone = lost_uses(&alone.files, others, editor, index).await;
            if let Some(one) = lost.iter().find(|one| lost_alone.contains(one)) {
                staying.insert(*id, one);
            }
        }
        if staying.is_empty() {
            // Only the undo of several proposals breaks the use.
            staying = undone.iter().map(|id| (*id, first)).collect();
        }
        let why = |(id, one): (&ProposalId, &&LostUse)| refusal(*id, one.why(run), None);
        refused.extend(staying.iter().map(why));
        let staying: BTreeSet<ProposalId> = staying.into_keys().collect();
        let held = dependencies.held(&open, &staying);
        refused.extend(
            held.iter()
                .map(|held| refusal(held.proposal, held.why(), Some(*held))),
        );
        open.retain(|id| !staying.contains(id) && held.iter().all(|held| held.proposal != *id));
    }
}

fn refusal(proposal: ProposalId, why: String, held: Option<starling_swarm::Held>) -> UndoRefusal {
    UndoRefusal {
        proposal,
        file: None,
        lines: None,
        blocker: None,
        held,
        unsure: None,
        why,
        diff: String::new(),
    }
}

/// A use in a change of another run that an undo leaves without a meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LostUse {
    run: RunId,
    /// The use as a clause, such as "it uses `f` in a.py::g".
    what: String,
}

impl LostUse {
    fn why(&self, undone: &RunId) -> String {
        format!(
            "run {by} relies on it: {what}; `starling undo {by}` and then `starling undo {undone}` take \
             both back",
            by = self.run.0,
            what = self.what,
            undone = undone.0
        )
    }
}

/// Returns the uses in changes of other runs that lose their meaning when these plans are carried
/// out.
async fn lost_uses(
    plans: &[FileUndoPlan],
    others: &[OtherChange],
    editor: &dyn Editor,
    index: &Index,
) -> Vec<LostUse> {
    let is_code = |file: &FilePath| Language::of(file) != Language::Plain;
    let plans: Vec<&FileUndoPlan> = plans
        .iter()
        .filter(|plan| plan.step() != UndoStep::Nothing && is_code(&plan.file))
        .collect();
    if plans.is_empty() || others.is_empty() {
        return Vec::new();
    }
    let mut before = index.snapshot().clone();
    let of_others: BTreeSet<&FilePath> = others.iter().map(|other| &other.change.file).collect();
    for file in of_others {
        if let Ok(now) = editor.current(file).await {
            before = before.with(file.clone(), Some(now.text));
        }
    }
    let mut after = before.clone();
    for plan in &plans {
        let now = plan.now.as_ref().map(|now| now.text.clone());
        before = before.with(plan.file.clone(), now);
        // A removed module counts as an empty one, so that imports of its names are found.
        let text = plan.after.clone().unwrap_or_else(|| "".into());
        after = after.with(plan.file.clone(), Some(text));
    }
    let files: Vec<FilePath> = plans.iter().map(|plan| plan.file.clone()).collect();
    let worlds = World::both(index, before, after);
    let mut lost: Vec<LostUse> = Vec::new();
    let mut add = |other: &OtherChange, what: String| {
        let one = LostUse {
            run: other.run.clone(),
            what,
        };
        if !lost.contains(&one) {
            lost.push(one);
        }
    };
    for (file, symbol, name) in newly_lost(&worlds, &files) {
        let place = match symbol.is_module() {
            true => file.to_string(),
            false => symbol.to_string(),
        };
        for other in others.iter().filter(|other| other.change.file == file) {
            if has_word(&inserted(&other.change), &name) {
                add(other, format!("it uses `{name}` in {place}"));
            }
        }
    }
    for (file, line) in outdated_locations((&worlds.0.lookup, &worlds.1.lookup), &files) {
        let text = worlds.1.line(&file, line);
        for other in others.iter().filter(|other| other.change.file == file) {
            let inserted = inserted(&other.change);
            let mut inserted = inserted.lines();
            if inserted.any(|line| line.trim_end() == text) {
                add(
                    other,
                    format!("{file}:{line} refers to what the undo would remove"),
                );
            }
        }
    }
    lost
}

/// The project in one state.
struct World {
    snapshot: Snapshot,
    index: Arc<Index>,
    lookup: Lookup,
}

impl World {
    fn both(index: &Index, before: Snapshot, after: Snapshot) -> (World, World) {
        let world = |snapshot: Snapshot| {
            let index = Arc::new(index.after(snapshot.clone()));
            World {
                lookup: Lookup::new(snapshot.clone(), Arc::clone(&index)),
                snapshot,
                index,
            }
        };
        (world(before), world(after))
    }

    /// Returns a line, counted from 1, without white space at its end.
    fn line(&self, file: &FilePath, number: u32) -> String {
        let text = self.snapshot.read(file).unwrap_or_else(|_| "".into());
        let line = text.lines().nth(number.saturating_sub(1) as usize);
        line.unwrap_or_default().trim_end().to_owned()
    }
}

/// Returns the uses that have a meaning in the first world and none in the second: their files, the
/// symbols around them, and the used names.
fn newly_lost(
    (before, after): &(World, World),
    files: &[FilePath],
) -> Vec<(FilePath, SymbolPath, String)> {
    let (earlier, later) = (&before.index, &after.index);
    let calls = later.newly_bad_calls(earlier, files).into_iter();
    let mut lost: Vec<_> = calls
        .map(|call| (call.file, call.symbol, call.name))
        .collect();
    let names = later.newly_dangling(earlier, files).into_iter();
    let names = names.chain(later.lost_attributes(earlier, files));
    lost.extend(names.map(|use_| (use_.file, use_.symbol, use_.name)));
    for file in files {
        let tree = |world: &World| {
            let text = world.snapshot.read(file).unwrap_or_else(|_| "".into());
            SymbolTree::parse(file.clone(), text)
        };
        let undefined = newly_undefined(&tree(before), &tree(after)).into_iter();
        lost.extend(undefined.map(|use_| (file.clone(), use_.symbol, use_.name)));
    }
    lost
}

/// Returns the lines that a change inserted.
fn inserted(change: &AppliedChange) -> String {
    let after = super::plan::after(change);
    let lines = ChangeSet::between_lines(&change.before, &after);
    lines.edits().iter().map(|edit| &*edit.insert).collect()
}
