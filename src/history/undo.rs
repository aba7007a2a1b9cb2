//! Undoing applied proposals: each as a whole or not at all, by the inverse of its own change, merged
//! line by line with what was changed since. All proposals of one file are undone by one write. Proposals
//! that belong together are undone together or not at all.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::trajectory::{Change, Found, HistoryError, PastRun, State, open_locked};
use crate::ports::{ApplyError, Current, Editor, EditorError, Effect, FileEdit};
use crate::swarm::{AppliedChange, DependencyGraph, Event, Held, ProposalId, RunId};
use crate::syntax::{FilePath, carry_lines};
use crate::text::{ByteRange, ChangeSet, Conflict, ContentHash, unified_diff};
use crate::workspace::{private_file, read_text, remove_empty_directories};

/// How often a file is planned again when its text changes meanwhile.
const TRIES: u32 = 8;
/// A longer journal is not of this program.
const MAX_JOURNAL_BYTES: u64 = 1 << 20;

/// A later change of the same lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// `None` if it belongs to the same run.
    pub run: Option<RunId>,
    pub proposal: ProposalId,
    /// It was to be undone as well, and stays.
    pub stays: bool,
}

/// Why a proposal stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub proposal: ProposalId,
    pub file: Option<FilePath>,
    /// The first and the last line that were changed since, as the file is now, from 1.
    pub lines: Option<(usize, usize)>,
    pub blocker: Option<Blocker>,
    /// The other proposal for which it stays, where nothing else is in the way.
    pub held: Option<Held>,
    /// Why the change has no certain place in the file as it is now.
    pub unsure: Option<String>,
    /// What happened, and what to do.
    pub why: String,
    /// What the undo would have changed, as a unified diff.
    pub diff: String,
}

/// What an undo changes in one file.
#[derive(Debug, Clone)]
pub struct FilePlan {
    pub file: FilePath,
    /// The last one that was applied comes first.
    pub undone: Vec<ProposalId>,
    /// Those of `undone` whose changes are not in the text any more: there is nothing to take back.
    pub absent: Vec<ProposalId>,
    refused: Vec<Refusal>,
    now: Option<Current>,
    /// The text afterwards; `None` if the file is removed or is gone already.
    after: Option<Arc<str>>,
    directories: Vec<String>,
}

/// What an undo changes.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The file that was changed last comes first.
    pub files: Vec<FilePlan>,
    /// The proposals that stay.
    pub refused: Vec<Refusal>,
}

/// What an undo does to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The file is as it was before the proposals already.
    Nothing,
    Change,
    Remove,
}

/// What became of an undo.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoOutcome {
    /// The proposals that are not in the user's text any more.
    pub undone: Vec<ProposalId>,
    /// Those of `undone` that were not in the text before: nothing was taken back of them.
    pub absent: Vec<ProposalId>,
    pub refused: Vec<Refusal>,
}

impl UndoOutcome {
    /// The proposals that this undo took out of the user's text.
    pub fn taken_back(&self) -> Vec<ProposalId> {
        let undone = self.undone.iter().copied();
        undone.filter(|id| !self.absent.contains(id)).collect()
    }
}

/// Is called before and after each file of an undo.
trait Recorder {
    type Error;

    fn begins(&mut self, plan: &FilePlan) -> Result<(), Self::Error>;
    /// Records that proposals were undone, or applied again.
    fn record(&mut self, events: Vec<Event>) -> Result<(), Self::Error>;
}

impl FilePlan {
    /// A plan that changes nothing.
    fn of(file: &FilePath, now: Option<Current>) -> FilePlan {
        FilePlan {
            file: file.clone(),
            undone: Vec::new(),
            absent: Vec::new(),
            refused: Vec::new(),
            after: now.as_ref().map(|now| Arc::clone(&now.text)),
            now,
            directories: Vec::new(),
        }
    }

    pub fn step(&self) -> Step {
        match (&self.now, &self.after) {
            (Some(_), None) => Step::Remove,
            (Some(now), Some(after)) if now.text != *after => Step::Change,
            (Some(_), Some(_)) | (None, _) => Step::Nothing,
        }
    }

    /// What changes, as a unified diff.
    pub fn diff(&self) -> String {
        let now = self.now.as_ref().map_or("", |now| &now.text);
        unified_diff(self.file.as_str(), now, self.after.as_deref().unwrap_or(""))
    }

    #[cfg(test)]
    pub(super) fn text_afterwards(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// Whether the file was gone before the undo.
    pub fn is_gone_already(&self) -> bool {
        self.now.is_none()
    }

    fn edit(&self) -> Option<FileEdit> {
        let effect = match self.step() {
            Step::Nothing => return None,
            Step::Change => Effect::Change,
            Step::Remove => Effect::Delete,
        };
        let base = self.now.clone()?;
        let label = match &self.undone[..] {
            [one] => format!("undo {one}"),
            many => format!("undo {} proposals", many.len()),
        };
        Some(FileEdit {
            file: self.file.clone(),
            changes: ChangeSet::between(&base.text, self.after.as_deref().unwrap_or("")),
            base,
            label,
            effect,
        })
    }
}

/// What an undo of these proposals would change now, file by file, and which of them stay. Changes that
/// nobody can undo because their texts were not kept come as refusals without a file.
pub async fn plan(editor: &dyn Editor, changes: &[Change], chosen: &BTreeSet<ProposalId>) -> Plan {
    let (files, selection) = select(editor, changes, chosen).await;
    Plan {
        files,
        refused: selection.refused,
    }
}

async fn select<'c>(
    editor: &dyn Editor,
    changes: &'c [Change],
    chosen: &'c BTreeSet<ProposalId>,
) -> (Vec<FilePlan>, Selection<'c>) {
    let mut selection = Selection::of(changes, chosen);
    loop {
        let (mut plans, mut refused) = (Vec::new(), Vec::new());
        for file in files(changes, &selection.open) {
            let mut plan = plan_file(editor, changes, &selection.open, &file).await;
            refused.append(&mut plan.refused);
            plans.push(plan);
        }
        if selection.keep(refused).is_empty() {
            return (plans, selection);
        }
    }
}

/// The dependencies of the changes that are in the user's text.
pub fn dependencies(changes: &[Change]) -> DependencyGraph {
    let applied = changes.iter().filter(|one| one.state == State::Applied);
    DependencyGraph::of(applied.map(|change| {
        let made = change.made.as_ref();
        let of_change = made.map(|made| made.dependencies.clone());
        (change.proposal, of_change.unwrap_or_default())
    }))
}

/// Which of the chosen proposals are undone, and which stay.
struct Selection<'c> {
    chosen: &'c BTreeSet<ProposalId>,
    dependencies: DependencyGraph,
    /// The proposals that are undone.
    open: BTreeSet<ProposalId>,
    refused: Vec<Refusal>,
}

impl<'c> Selection<'c> {
    fn of(changes: &[Change], chosen: &'c BTreeSet<ProposalId>) -> Self {
        let mut selection = Selection {
            chosen,
            dependencies: dependencies(changes),
            open: wanted(changes, chosen).map(|one| one.proposal).collect(),
            refused: Vec::new(),
        };
        let unknown = wanted(changes, chosen).filter(|change| change.made.is_none());
        let refused = unknown.map(|change| Refusal {
            proposal: change.proposal,
            file: None,
            lines: None,
            blocker: None,
            held: None,
            unsure: None,
            why: "the trajectory does not hold its texts: a version of Starling before `starling undo` \
                  wrote it, or it is damaged"
                .to_owned(),
            diff: String::new(),
        });
        selection.keep(refused.collect());
        selection
    }

    /// Keeps proposals that cannot be undone, and the others that belong to them. Returns the others.
    fn keep(&mut self, mut refused: Vec<Refusal>) -> BTreeSet<ProposalId> {
        for one in &mut refused {
            if let Some(blocker) = one.blocker.as_mut()
                && self.chosen.contains(&blocker.proposal)
            {
                blocker.stays = true;
                one.explain();
            }
        }
        let staying: BTreeSet<ProposalId> = refused.iter().map(|one| one.proposal).collect();
        let held = self.dependencies.held(&self.open, &staying);
        self.refused.append(&mut refused);
        self.refused.extend(held.iter().map(|held| Refusal {
            proposal: held.proposal,
            file: None,
            lines: None,
            blocker: None,
            held: Some(*held),
            unsure: None,
            why: held.why(),
            diff: String::new(),
        }));
        let held: BTreeSet<ProposalId> = held.iter().map(|held| held.proposal).collect();
        self.open
            .retain(|id| !staying.contains(id) && !held.contains(id));
        held
    }
}

fn wanted<'c>(
    changes: &'c [Change],
    chosen: &BTreeSet<ProposalId>,
) -> impl DoubleEndedIterator<Item = &'c Change> {
    changes
        .iter()
        .filter(|change| change.state == State::Applied && chosen.contains(&change.proposal))
}

/// The files of the chosen changes, the last one changed first.
fn files(changes: &[Change], chosen: &BTreeSet<ProposalId>) -> Vec<FilePath> {
    let mut files: Vec<FilePath> = Vec::new();
    for made in wanted(changes, chosen)
        .rev()
        .filter_map(|one| one.made.as_ref())
    {
        if !files.contains(&made.file) {
            files.push(made.file.clone());
        }
    }
    files
}

async fn plan_file(
    editor: &dyn Editor,
    changes: &[Change],
    chosen: &BTreeSet<ProposalId>,
    file: &FilePath,
) -> FilePlan {
    match editor.current(file).await {
        Ok(now) => plan_text(changes, chosen, file, Some(now)),
        Err(EditorError::Missing { .. }) => plan_text(changes, chosen, file, None),
        Err(error) => {
            let wanted = of_file(changes, file);
            let wanted = wanted.filter(|(change, _)| chosen.contains(&change.proposal));
            let why = format!("{error}; nothing of this file is undone");
            let refused = wanted.map(|(change, made)| refusal(change, made, why.clone()));
            FilePlan {
                refused: refused.rev().collect(),
                ..FilePlan::of(file, None)
            }
        }
    }
}

/// The changes of a file that are in the user's text.
fn of_file<'c>(
    changes: &'c [Change],
    file: &'c FilePath,
) -> impl DoubleEndedIterator<Item = (&'c Change, &'c AppliedChange)> {
    changes
        .iter()
        .filter(|change| change.state == State::Applied)
        .filter_map(|change| Some((change, change.made.as_ref()?)))
        .filter(move |(_, made)| made.file == *file)
}

/// What an undo of the chosen proposals changes in a file with this text; `None` is a file that is gone.
fn plan_text(
    changes: &[Change],
    chosen: &BTreeSet<ProposalId>,
    file: &FilePath,
    now: Option<Current>,
) -> FilePlan {
    let of_file: Vec<(&Change, &AppliedChange)> = of_file(changes, file).collect();
    let mut plan = FilePlan::of(file, now);
    let mut text = plan.now.as_ref().map(|now| Arc::clone(&now.text));
    for (at, (change, made)) in of_file.iter().enumerate().rev() {
        if !chosen.contains(&change.proposal) {
            continue;
        }
        let Some(current) = &text else {
            match made.created {
                true => {
                    plan.undone.push(change.proposal);
                    plan.absent.push(change.proposal);
                }
                false => {
                    let why =
                        format!("{file} is gone; restore the file by hand or by version control");
                    plan.refused.push(refusal(change, made, why));
                }
            }
            continue;
        };
        match without(made, current) {
            Ok(earlier) => {
                plan.undone.push(change.proposal);
                let is_gone = made.created && earlier.is_empty();
                if earlier == **current && !is_gone {
                    plan.absent.push(change.proposal);
                }
                if is_gone {
                    plan.directories.clone_from(&made.directories);
                }
                text = (!is_gone).then(|| earlier.into());
            }
            Err(conflict) => {
                let later = of_file[at + 1..].iter().map(|(later, _)| *later);
                let later = later.filter(|later| !plan.undone.contains(&later.proposal));
                let blocker = blocker(made, later).map(|proposal| Blocker {
                    run: None,
                    proposal,
                    stays: false,
                });
                let refused = conflicting(change, made, current, &conflict, blocker);
                plan.refused.push(refused);
            }
        }
    }
    plan.after = text;
    plan
}

pub(super) fn after(made: &AppliedChange) -> String {
    let after = made.changes.apply(&made.before);
    after.expect("changes that do not fit their text are sorted out when a trajectory is read")
}

/// The text without a change.
fn without(made: &AppliedChange, current: &str) -> Result<String, Conflict> {
    let after = after(made);
    let inverse = inverse_over(made, &after, current)?;
    Ok(inverse
        .apply(current)
        .expect("a rebased change set fits the text that it was rebased to"))
}

pub(super) fn inverse_over(
    made: &AppliedChange,
    after: &str,
    current: &str,
) -> Result<ChangeSet, Conflict> {
    let inverse = ChangeSet::between_lines(after, &made.before);
    carry_lines(&made.file, after, &inverse, current)
}

/// The first of later changes of the same file that changed the same lines; `None` if somebody else
/// changed them.
fn blocker<'c>(
    made: &AppliedChange,
    later: impl Iterator<Item = &'c Change>,
) -> Option<ProposalId> {
    let own = after(made);
    for change in later {
        let Some(next) = change.made.as_ref().filter(|next| next.file == made.file) else {
            continue;
        };
        inverse_over(made, &own, &next.before).ok()?;
        if inverse_over(made, &own, &after(next)).is_err() {
            return Some(change.proposal);
        }
    }
    None
}

fn refusal(change: &Change, made: &AppliedChange, why: String) -> Refusal {
    Refusal {
        proposal: change.proposal,
        file: Some(made.file.clone()),
        lines: None,
        blocker: None,
        held: None,
        unsure: None,
        why,
        diff: unified_diff(made.file.as_str(), &after(made), &made.before),
    }
}

fn conflicting(
    change: &Change,
    made: &AppliedChange,
    current: &str,
    conflict: &Conflict,
    blocker: Option<Blocker>,
) -> Refusal {
    let lines = lines_now(&after(made), current, conflict.theirs);
    let mut refused = refusal(change, made, String::new());
    refused.lines = Some(lines);
    refused.blocker = blocker;
    refused.unsure.clone_from(&conflict.unsure);
    refused.explain();
    refused
}

impl Refusal {
    /// Says what happened, and what to do.
    fn explain(&mut self) {
        let file = self.file.as_ref().map_or("", FilePath::as_str);
        let place = match self.lines {
            Some((first, last)) if first == last => format!("{file}, line {first}"),
            Some((first, last)) => format!("{file}, lines {first} to {last}"),
            None => file.to_owned(),
        };
        self.why = match &self.blocker {
            Some(Blocker {
                run: None,
                proposal,
                stays: true,
            }) => format!("{place}: {proposal}, which stays, changed the same lines"),
            Some(Blocker {
                run: None,
                proposal,
                stays: false,
            }) => format!(
                "{place}: {proposal} changed the same lines; undo {proposal} first, or the whole run"
            ),
            Some(Blocker {
                run: Some(run),
                proposal,
                stays: _,
            }) => format!(
                "{place}: {proposal} of the later run {run} changed the same lines; undo it first: \
                 `starling undo {run}`",
                run = run.0
            ),
            None => match &self.unsure {
                Some(unsure) => format!(
                    "{place}: the change has no certain place any more ({unsure}), so it stays as it is; \
                     change these lines by hand"
                ),
                None => format!(
                    "{place}: changed since, so it stays as it is; change these lines by hand"
                ),
            },
        };
    }

    /// Looks for the change of a later run that is in the way.
    pub fn blame<'c>(
        &mut self,
        changes: &[Change],
        later: impl IntoIterator<Item = (&'c RunId, &'c [Change])>,
    ) {
        let own = changes.iter().find(|one| one.proposal == self.proposal);
        let Some(made) = own.and_then(|one| one.made.as_ref()) else {
            return;
        };
        if self.blocker.is_some() || self.lines.is_none() {
            return;
        }
        for (run, changes) in later {
            let applied = changes.iter().filter(|one| one.state == State::Applied);
            if let Some(proposal) = blocker(made, applied) {
                self.blocker = Some(Blocker {
                    run: Some(run.clone()),
                    proposal,
                    stays: false,
                });
                self.explain();
                return;
            }
        }
    }
}

/// The lines of `current` that a change of `base` in this range has become.
fn lines_now(base: &str, current: &str, range: ByteRange) -> (usize, usize) {
    let changes = ChangeSet::between_lines(base, current);
    let (mut inserted, mut removed) = (0, 0);
    let mut length = 0;
    for edit in changes.edits() {
        if edit.range == range {
            length = edit.insert.len();
            break;
        }
        inserted += edit.insert.len();
        removed += edit.range.len();
    }
    let start = range.start + inserted - removed;
    let line = |at: usize| {
        let before = current.as_bytes().iter().take(at);
        before.filter(|byte| **byte == b'\n').count() + 1
    };
    (
        line(start),
        line((start + length).saturating_sub(1).max(start)),
    )
}

/// Undoes proposals through an editor, the last applied first. `record` gets the events of those that were
/// undone, file by file, as soon as they are.
///
/// # Errors
/// What `record` returns; nothing is undone after it.
pub async fn take_back<E>(
    editor: &Arc<dyn Editor>,
    root: Option<&Path>,
    changes: &[Change],
    chosen: &BTreeSet<ProposalId>,
    record: impl FnMut(Vec<Event>) -> Result<(), E> + Send,
) -> Result<UndoOutcome, E> {
    struct Recording<F>(F);
    impl<E, F: FnMut(Vec<Event>) -> Result<(), E>> Recorder for Recording<F> {
        type Error = E;
        fn begins(&mut self, _: &FilePlan) -> Result<(), E> {
            Ok(())
        }
        fn record(&mut self, events: Vec<Event>) -> Result<(), E> {
            (self.0)(events)
        }
    }
    take_back_with(editor, root, changes, chosen, &mut Recording(record)).await
}

async fn take_back_with<R: Recorder>(
    editor: &Arc<dyn Editor>,
    root: Option<&Path>,
    changes: &[Change],
    chosen: &BTreeSet<ProposalId>,
    recorder: &mut R,
) -> Result<UndoOutcome, R::Error> {
    let (_, selection) = select(editor.as_ref(), changes, chosen).await;
    let files = files(changes, &selection.open);
    let mut undo = Undo {
        editor,
        root,
        changes,
        selection,
        done: Vec::new(),
        recorder,
    };
    for file in files {
        undo.take_back(&file).await?;
    }
    Ok(undo.outcome())
}

/// An undo that is under way.
struct Undo<'u, R> {
    editor: &'u Arc<dyn Editor>,
    root: Option<&'u Path>,
    changes: &'u [Change],
    selection: Selection<'u>,
    /// The files that are written.
    done: Vec<FilePlan>,
    recorder: &'u mut R,
}

impl<R: Recorder> Undo<'_, R> {
    async fn take_back(&mut self, file: &FilePath) -> Result<(), R::Error> {
        let mut tries = 0;
        loop {
            // Somebody may have typed since the undo was planned.
            let open = &self.selection.open;
            let mut plan = plan_file(self.editor.as_ref(), self.changes, open, file).await;
            let mut refused = std::mem::take(&mut plan.refused);
            if refused.is_empty() {
                if plan.undone.is_empty() {
                    return Ok(());
                }
                let applied = match plan.edit() {
                    Some(edit) => {
                        self.recorder.begins(&plan)?;
                        self.editor.apply(edit).await.map(|_| ())
                    }
                    None => Ok(()),
                };
                match applied {
                    Ok(()) => {
                        if let (Some(root), None) = (self.root, &plan.after) {
                            remove_empty_directories(root, &plan.directories);
                        }
                        self.recorder.record(undone(&plan.undone))?;
                        self.done.push(plan);
                        return Ok(());
                    }
                    Err(ApplyError::Stale { .. }) if tries < TRIES => {
                        tries += 1;
                        continue;
                    }
                    Err(error) => {
                        let why = error.to_string();
                        let of_plan = of_file(self.changes, file)
                            .filter(|(change, _)| plan.undone.contains(&change.proposal));
                        refused.extend(of_plan.map(|(one, made)| refusal(one, made, why.clone())));
                    }
                }
            }
            let held = self.selection.keep(refused);
            self.put_back(held).await?;
        }
    }

    /// Applies proposals again that belong to others which could not be undone.
    async fn put_back(&mut self, mut held: BTreeSet<ProposalId>) -> Result<(), R::Error> {
        while !held.is_empty() {
            let mut refused = Vec::new();
            for at in 0..self.done.len() {
                let plan = &self.done[at];
                if plan.undone.iter().any(|id| held.contains(id)) {
                    let less = plan.undone.iter().copied();
                    let less = less.filter(|id| !held.contains(id)).collect();
                    let mut less = plan_text(self.changes, &less, &plan.file, plan.now.clone());
                    refused.append(&mut less.refused);
                    self.put_file_back(at, less).await?;
                }
            }
            held = self.selection.keep(refused);
        }
        Ok(())
    }

    /// Writes a file again, so that less is undone in it. Recorded first: if the process is killed in
    /// between, the next undo finds that nothing is to take back.
    async fn put_file_back(&mut self, at: usize, less: FilePlan) -> Result<(), R::Error> {
        let plan = &self.done[at];
        let is_back = |id: &ProposalId| {
            plan.undone.contains(id) && !plan.absent.contains(id) && !less.undone.contains(id)
        };
        let back = of_file(self.changes, &plan.file);
        let back: Vec<&Change> = back
            .map(|(change, _)| change)
            .filter(|change| is_back(&change.proposal))
            .collect();
        let again = back.iter().map(|change| change.applied());
        self.recorder.record(again.collect())?;
        match write_again(self.editor, plan, &less).await {
            Ok(()) => self.done[at] = less,
            Err(why) => {
                tracing::warn!(file = %plan.file, why, "an undone part of a set cannot be applied again");
                let gone: Vec<ProposalId> = back.iter().map(|change| change.proposal).collect();
                self.recorder.record(undone(&gone))?;
                let refused = &mut self.selection.refused;
                refused.retain(|one| !gone.contains(&one.proposal));
            }
        }
        Ok(())
    }

    fn outcome(self) -> UndoOutcome {
        let absent: Vec<ProposalId> = self
            .done
            .iter()
            .flat_map(|plan| plan.absent.clone())
            .collect();
        let mut refused = self.selection.refused;
        refused.retain(|one| !absent.contains(&one.proposal));
        UndoOutcome {
            undone: self.done.into_iter().flat_map(|plan| plan.undone).collect(),
            absent,
            refused,
        }
    }
}

/// Makes a file that was changed by one plan what it is by another one, and leaves alone what was typed
/// since.
async fn write_again(
    editor: &Arc<dyn Editor>,
    written: &FilePlan,
    wanted: &FilePlan,
) -> Result<(), String> {
    let file = &written.file;
    let before: Arc<str> = written.after.clone().unwrap_or_else(|| "".into());
    let after = wanted.after.as_deref().unwrap_or("");
    let changes = ChangeSet::between_lines(&before, after);
    for _ in 0..TRIES {
        let (base, effect) = match editor.current(file).await {
            Ok(now) => (now, Effect::Change),
            Err(EditorError::Missing { .. }) if written.after.is_none() => {
                let nothing = Current {
                    text: "".into(),
                    version: None,
                };
                (nothing, Effect::Create)
            }
            Err(error) => return Err(error.to_string()),
        };
        let changes = carry_lines(file, &before, &changes, &base.text)
            .map_err(|conflict| conflict.in_lines(&before))?;
        let edit = FileEdit {
            file: file.clone(),
            changes,
            base,
            label: "undo less".to_owned(),
            effect,
        };
        match editor.apply(edit).await {
            Ok(_) => return Ok(()),
            Err(ApplyError::Stale { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(format!(
        "{file}: the text changed {TRIES} times while it was written"
    ))
}

fn undone(proposals: &[ProposalId]) -> Vec<Event> {
    let event = |proposal: &ProposalId| Event::ProposalUndone {
        proposal: *proposal,
    };
    proposals.iter().map(event).collect()
}

/// Beside the trajectory while an undo from the terminal is under way: tells the next one how far it
/// came, should it be killed.
#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    /// All proposals that the user wants to be undone.
    chosen: BTreeSet<ProposalId>,
    file: FilePath,
    /// The proposals of the file.
    undone: Vec<ProposalId>,
    /// Of the text of the file afterwards; `None` if the file is removed.
    after: Option<ContentHash>,
    directories: Vec<String>,
}

/// A past run whose trajectory is open and locked.
#[derive(Debug)]
pub struct OpenRun {
    pub run: PastRun,
    file: File,
    /// The proposals that an interrupted undo was to take back.
    pub interrupted: Option<BTreeSet<ProposalId>>,
}

fn journal_of(trajectory: &Path) -> PathBuf {
    trajectory.with_extension("undo")
}

/// Whether an undo of this run was interrupted.
pub fn is_interrupted(found: &Found) -> bool {
    journal_of(&found.path).is_file()
}

impl OpenRun {
    /// Opens a run to undo it. What a killed run or a killed undo changed last and could not record is
    /// recorded now.
    ///
    /// # Errors
    /// The run is still going on, or its trajectory cannot be read.
    pub async fn open(
        found: &Found,
        editor: &dyn Editor,
        root: &Path,
    ) -> Result<OpenRun, HistoryError> {
        let file = open_locked(found)?;
        let run = PastRun::read_open(&file, &found.path)?;
        let mut open = OpenRun {
            run,
            file,
            interrupted: None,
        };
        let unrecorded = open.run.settle(editor).await;
        if !unrecorded.is_empty() {
            let appended = open.run.append(&mut open.file, unrecorded);
            appended.map_err(|error| open.failed(error))?;
        }
        open.recover(editor, root).await?;
        Ok(open)
    }

    async fn recover(&mut self, editor: &dyn Editor, root: &Path) -> Result<(), HistoryError> {
        let path = journal_of(&self.run.path);
        // One that was cut off was written before its file was touched.
        let journal = read_text(&path, MAX_JOURNAL_BYTES).ok();
        let journal: Option<Journal> = journal.and_then(|text| serde_json::from_str(&text).ok());
        if let Some(journal) = journal {
            let now = match editor.current(&journal.file).await {
                Ok(now) => Some(Some(ContentHash::of(&now.text))),
                Err(EditorError::Missing { .. }) => Some(None),
                Err(_) => None,
            };
            if now == Some(journal.after) {
                remove_empty_directories(root, &journal.directories);
                let applied: BTreeSet<ProposalId> =
                    self.run.applied().map(|one| one.proposal).collect();
                let undone: Vec<ProposalId> = journal
                    .undone
                    .iter()
                    .filter(|id| applied.contains(id))
                    .copied()
                    .collect();
                self.record(self::undone(&undone))?;
            }
            self.interrupted = Some(journal.chosen);
        }
        Ok(())
    }

    /// Undoes proposals, and records each.
    ///
    /// # Errors
    /// The undo cannot be recorded; the files that were changed before stay changed, and the next undo
    /// takes note of them.
    pub async fn take_back(
        &mut self,
        editor: &Arc<dyn Editor>,
        root: &Path,
        chosen: &BTreeSet<ProposalId>,
    ) -> Result<UndoOutcome, HistoryError> {
        let changes = self.run.changes.clone();
        let mut recorder = Journaled {
            open: self,
            chosen: chosen.clone(),
        };
        let outcome = take_back_with(editor, Some(root), &changes, chosen, &mut recorder).await?;
        self.forget_journal();
        Ok(outcome)
    }

    /// Nothing is under way any more.
    pub fn forget_journal(&self) {
        // Left behind, it only makes the next undo look once more.
        let _ = fs::remove_file(journal_of(&self.run.path));
    }

    fn failed(&self, source: std::io::Error) -> HistoryError {
        HistoryError::Io {
            path: self.run.path.clone(),
            source,
        }
    }

    fn record(&mut self, events: Vec<Event>) -> Result<(), HistoryError> {
        let appended = self.run.append_and_take(&mut self.file, events);
        appended.map_err(|error| self.failed(error))
    }
}

struct Journaled<'r> {
    open: &'r mut OpenRun,
    chosen: BTreeSet<ProposalId>,
}

impl Recorder for Journaled<'_> {
    type Error = HistoryError;

    fn begins(&mut self, plan: &FilePlan) -> Result<(), HistoryError> {
        let journal = Journal {
            chosen: self.chosen.clone(),
            file: plan.file.clone(),
            undone: plan.undone.clone(),
            after: plan.after.as_deref().map(ContentHash::of),
            directories: plan.directories.clone(),
        };
        let path = journal_of(&self.open.run.path);
        let written = private_file(&path).and_then(|mut file| {
            serde_json::to_writer(&mut file, &journal)?;
            file.flush()?;
            file.sync_all()
        });
        written.map_err(|source| HistoryError::Io { path, source })
    }

    fn record(&mut self, events: Vec<Event>) -> Result<(), HistoryError> {
        self.open.record(events)
    }
}

/// Records in the trajectory of a run that has ended what happened to its applied changes since: that
/// they were undone, or made again by the editor. An event that the trajectory holds already is not
/// recorded again.
///
/// # Errors
/// Another program has the trajectory open, or it cannot be read or written.
pub fn record(found: &Found, events: Vec<Event>) -> Result<(), HistoryError> {
    record_in(&mut open_locked(found)?, &found.path, events)
}

/// Records events like [`record`], in a trajectory that the caller has open and locked.
///
/// # Errors
/// The trajectory cannot be read or written.
pub fn record_in(file: &mut File, path: &Path, mut events: Vec<Event>) -> Result<(), HistoryError> {
    let mut run = PastRun::read_open(file, path)?;
    events.retain(|event| !run.holds(event));
    let appended = run.append(file, events);
    appended.map_err(|source| HistoryError::Io {
        path: path.to_owned(),
        source,
    })
}
