//! Plans an undo of applied proposals. Each proposal is undone as a whole or not at all: the
//! inverse of its change is merged line by line with the changes made since. Proposals of one set
//! are undone together or not at all.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::trajectory::{ChangeRecord, ChangeState};
use starling_core::{CurrentText, Editor, EditorError, Effect, FileEdit};
use starling_swarm::sending::EXISTS_AGAIN;
use starling_swarm::{AppliedChange, DependencyGraph, Held, ProposalId, RunId};
use starling_syntax::{FilePath, MadeChange};
use starling_text::{ByteRange, ChangeSet, Conflict, new_file_diff, unified_diff};
use starling_workspace::DeletedFile;

/// A later change of the same lines, which prevents the undo of an earlier change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockingChange {
    /// The run that made the change; `None` if it is the run that is undone.
    pub run: Option<RunId>,
    pub proposal: ProposalId,
    /// Whether the blocking proposal was chosen for the undo, too, but cannot be undone.
    pub stays: bool,
}

/// Why a proposal cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoRefusal {
    pub proposal: ProposalId,
    pub file: Option<FilePath>,
    /// The first and the last line of the current file that were changed after the proposal. Lines
    /// start at 1.
    pub lines: Option<(usize, usize)>,
    pub blocker: Option<BlockingChange>,
    /// The proposal of the same set because of which this one is kept, if nothing else prevents its
    /// undo.
    pub held: Option<Held>,
    /// Why the change has no unique position in the current file.
    pub unsure: Option<String>,
    /// What happened and what the user can do.
    pub why: String,
    /// The undo that was refused, as a unified diff.
    pub diff: String,
}

/// The planned undo of the chosen proposals in one file.
#[derive(Debug, Clone)]
pub struct FileUndoPlan {
    pub file: FilePath,
    /// The proposals that are undone, the last applied first.
    pub undone: Vec<ProposalId>,
    /// The members of `undone` whose changes are no longer in the text, so that nothing has to be
    /// undone.
    pub absent: Vec<ProposalId>,
    pub(super) refused: Vec<UndoRefusal>,
    pub(super) now: Option<CurrentText>,
    /// The text after the undo; `None` if the file is removed or already gone.
    pub(super) after: Option<Arc<str>>,
    pub(super) directories: Vec<String>,
    /// The metadata of the file, if the undo makes a deleted file again.
    pub(super) restored: Option<DeletedFile>,
    /// Whether the undo made the file an open document.
    pub(super) is_open: bool,
}

/// The planned undo of a run or of some of its proposals.
#[derive(Debug, Clone, Default)]
pub struct UndoPlan {
    /// The files, the last changed first.
    pub files: Vec<FileUndoPlan>,
    /// The proposals that are not undone.
    pub refused: Vec<UndoRefusal>,
}

/// The effect of an undo on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoStep {
    /// The file is already as it was before the proposals.
    Nothing,
    Change,
    Remove,
    /// The deleted file is made again.
    Restore,
}

/// The result of an undo.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoOutcome {
    /// The proposals that are no longer in the user's text.
    pub undone: Vec<ProposalId>,
    /// The members of `undone` that were already missing before the undo.
    pub absent: Vec<ProposalId>,
    pub refused: Vec<UndoRefusal>,
    /// Why the undo could not be recorded, if so. The next start finds it in the files.
    pub unrecorded: Option<String>,
}

impl UndoOutcome {
    /// Returns the proposals that this undo removed from the user's text.
    pub fn taken_back(&self) -> Vec<ProposalId> {
        let undone = self.undone.iter().copied();
        undone.filter(|id| !self.absent.contains(id)).collect()
    }
}

impl FileUndoPlan {
    /// Returns a plan that changes nothing.
    fn of(file: &FilePath, now: Option<CurrentText>) -> FileUndoPlan {
        FileUndoPlan {
            file: file.clone(),
            undone: Vec::new(),
            absent: Vec::new(),
            refused: Vec::new(),
            after: now.as_ref().map(|now| Arc::clone(&now.text)),
            now,
            directories: Vec::new(),
            restored: None,
            is_open: false,
        }
    }

    pub fn step(&self) -> UndoStep {
        match (&self.now, &self.after) {
            (Some(_), None) => UndoStep::Remove,
            (Some(now), Some(after)) if now.text != *after => UndoStep::Change,
            (None, Some(_)) => UndoStep::Restore,
            (Some(_), Some(_)) | (None, None) => UndoStep::Nothing,
        }
    }

    /// Returns the planned change as a unified diff.
    pub fn diff(&self) -> String {
        let (file, after) = (self.file.as_str(), self.after.as_deref().unwrap_or(""));
        match &self.now {
            Some(now) => unified_diff(file, &now.text, after),
            None => new_file_diff(file, after),
        }
    }

    #[cfg(test)]
    pub(super) fn text_afterwards(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// Returns whether the file is an open document, so that the undo is not saved yet.
    pub(super) fn is_open(&self) -> bool {
        let now = self.now.as_ref();
        self.is_open || now.is_some_and(|now| now.version.is_some())
    }

    /// Returns whether the file was gone before the undo, and stays so.
    pub fn is_gone_already(&self) -> bool {
        self.now.is_none() && self.after.is_none()
    }

    pub(super) fn edit(&self) -> Option<FileEdit> {
        let effect = match self.step() {
            UndoStep::Nothing => return None,
            UndoStep::Change => Effect::Change,
            UndoStep::Remove => Effect::Delete,
            UndoStep::Restore => Effect::Create,
        };
        let nothing = || CurrentText {
            text: "".into(),
            version: None,
        };
        let base = self.now.clone().unwrap_or_else(nothing);
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

/// Plans the undo of the chosen proposals for the current files. If the texts of a change were not
/// recorded, the plan contains a refusal without a file for it.
pub async fn plan(
    editor: &dyn Editor,
    changes: &[ChangeRecord],
    chosen: &BTreeSet<ProposalId>,
) -> UndoPlan {
    let (files, selection) = select(editor, changes, chosen).await;
    UndoPlan {
        files,
        refused: selection.refused,
    }
}

pub(super) async fn select<'c>(
    editor: &dyn Editor,
    changes: &'c [ChangeRecord],
    chosen: &'c BTreeSet<ProposalId>,
) -> (Vec<FileUndoPlan>, UndoSelection<'c>) {
    let mut selection = UndoSelection::of(changes, chosen);
    loop {
        let (mut plans, mut refused) = (Vec::new(), Vec::new());
        for file in files(changes, &selection.open) {
            let mut plan = plan_file(editor, changes, &selection.open, &file).await;
            refused.append(&mut plan.refused);
            plans.push(plan);
        }
        if selection.keep_refused(refused).is_empty() {
            return (plans, selection);
        }
    }
}

/// Returns the dependencies between the changes that are in the user's text.
pub fn dependencies(changes: &[ChangeRecord]) -> DependencyGraph {
    let applied = changes
        .iter()
        .filter(|one| one.state == ChangeState::Applied);
    DependencyGraph::of(applied.map(|change| {
        let made = change.made.as_ref();
        let of_change = made.map(|made| made.dependencies.clone());
        (change.proposal, of_change.unwrap_or_default())
    }))
}

/// The chosen proposals, divided into those that are undone and those that are kept.
pub(super) struct UndoSelection<'c> {
    chosen: &'c BTreeSet<ProposalId>,
    dependencies: DependencyGraph,
    /// The proposals that are undone.
    pub(super) open: BTreeSet<ProposalId>,
    pub(super) refused: Vec<UndoRefusal>,
}

impl<'c> UndoSelection<'c> {
    fn of(changes: &[ChangeRecord], chosen: &'c BTreeSet<ProposalId>) -> Self {
        let mut selection = UndoSelection {
            chosen,
            dependencies: dependencies(changes),
            open: wanted(changes, chosen).map(|one| one.proposal).collect(),
            refused: Vec::new(),
        };
        let unknown = wanted(changes, chosen).filter(|change| change.made.is_none());
        let refused = unknown.map(|change| UndoRefusal {
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
        selection.keep_refused(refused.collect());
        selection
    }

    /// Keeps proposals that cannot be undone, and every other member of their sets. Returns these
    /// other members.
    pub(super) fn keep_refused(&mut self, mut refused: Vec<UndoRefusal>) -> BTreeSet<ProposalId> {
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
        self.refused.extend(held.iter().map(|held| UndoRefusal {
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
    changes: &'c [ChangeRecord],
    chosen: &BTreeSet<ProposalId>,
) -> impl DoubleEndedIterator<Item = &'c ChangeRecord> {
    changes
        .iter()
        .filter(|change| change.state == ChangeState::Applied && chosen.contains(&change.proposal))
}

/// Returns the files of the chosen changes, the last changed first.
pub(super) fn files(changes: &[ChangeRecord], chosen: &BTreeSet<ProposalId>) -> Vec<FilePath> {
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

/// Returns the current text of a file, as the editor showed it when the last change was made.
pub(super) async fn current(
    editor: &dyn Editor,
    changes: &[ChangeRecord],
    file: &FilePath,
) -> Result<CurrentText, EditorError> {
    match changes_of_file(changes, file).next_back() {
        Some((_, made)) => editor.current_as_shown(file, &after(made).into()).await,
        None => editor.current(file).await,
    }
}

pub(super) async fn plan_file(
    editor: &dyn Editor,
    changes: &[ChangeRecord],
    chosen: &BTreeSet<ProposalId>,
    file: &FilePath,
) -> FileUndoPlan {
    match current(editor, changes, file).await {
        Ok(now) => plan_text(changes, chosen, file, Some(now)),
        Err(EditorError::Missing { .. }) => plan_text(changes, chosen, file, None),
        Err(error) => {
            let wanted = changes_of_file(changes, file);
            let wanted = wanted.filter(|(change, _)| chosen.contains(&change.proposal));
            let why = format!("{error}; nothing of this file is undone");
            let refused = wanted.map(|(change, made)| refusal(change, made, why.clone()));
            FileUndoPlan {
                refused: refused.rev().collect(),
                ..FileUndoPlan::of(file, None)
            }
        }
    }
}

/// Returns the changes of a file that are in the user's text.
pub(super) fn changes_of_file<'c>(
    changes: &'c [ChangeRecord],
    file: &'c FilePath,
) -> impl DoubleEndedIterator<Item = (&'c ChangeRecord, &'c AppliedChange)> {
    changes
        .iter()
        .filter(|change| change.state == ChangeState::Applied)
        .filter_map(|change| Some((change, change.made.as_ref()?)))
        .filter(move |(_, made)| made.file == *file)
}

/// Plans the undo of the chosen proposals in a file with the given text; `None` is a file that is
/// gone.
pub(super) fn plan_text(
    changes: &[ChangeRecord],
    chosen: &BTreeSet<ProposalId>,
    file: &FilePath,
    now: Option<CurrentText>,
) -> FileUndoPlan {
    let file_changes: Vec<(&ChangeRecord, &AppliedChange)> =
        changes_of_file(changes, file).collect();
    let mut plan = FileUndoPlan::of(file, now);
    let mut text = plan.now.as_ref().map(|now| Arc::clone(&now.text));
    for (at, (change, made)) in file_changes.iter().enumerate().rev() {
        if !chosen.contains(&change.proposal) {
            continue;
        }
        if let Some(deleted) = &made.deleted {
            match &text {
                None => plan.restored = Some(deleted.clone()),
                Some(text) if *text == made.before => plan.absent.push(change.proposal),
                Some(_) => {
                    let why = format!("{file}: {EXISTS_AGAIN}");
                    plan.refused.push(refusal(change, made, why));
                    continue;
                }
            }
            plan.undone.push(change.proposal);
            text = Some(Arc::clone(&made.before));
            continue;
        }
        let Some(current) = &text else {
            let mut later = file_changes[at + 1..].iter();
            let deletion = later.rfind(|(_, later)| later.deleted.is_some());
            match (made.created, deletion) {
                (_, Some((deletion, _))) => {
                    let why = format!(
                        "{file}: {by} deleted the file; undo {by} first, or the whole run",
                        by = deletion.proposal
                    );
                    plan.refused.push(refusal(change, made, why));
                }
                (true, None) => {
                    plan.undone.push(change.proposal);
                    plan.absent.push(change.proposal);
                }
                (false, None) => {
                    let why =
                        format!("{file} is gone; restore the file by hand or by version control");
                    plan.refused.push(refusal(change, made, why));
                }
            }
            continue;
        };
        match text_without(made, current) {
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
                let later = file_changes[at + 1..].iter().map(|(later, _)| *later);
                let later = later.filter(|later| !plan.undone.contains(&later.proposal));
                let blocker = blocker(made, later).map(|proposal| BlockingChange {
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

/// Returns the text without a change.
fn text_without(made: &AppliedChange, current: &str) -> Result<String, Conflict> {
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
    let made = MadeChange {
        file: &made.file,
        before: &made.before,
        after,
    };
    made.back_over_lines(current)
}

/// Returns the first later change that touched the same lines; `None` if no later
/// change touched them.
fn blocker<'c>(
    made: &AppliedChange,
    later: impl Iterator<Item = &'c ChangeRecord>,
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

pub(super) fn refusal(change: &ChangeRecord, made: &AppliedChange, why: String) -> UndoRefusal {
    UndoRefusal {
        proposal: change.proposal,
        file: Some(made.file.clone()),
        lines: None,
        blocker: None,
        held: None,
        unsure: None,
        why,
        diff: match made.deleted {
            Some(_) => new_file_diff(made.file.as_str(), &made.before),
            None => unified_diff(made.file.as_str(), &after(made), &made.before),
        },
    }
}

fn conflicting(
    change: &ChangeRecord,
    made: &AppliedChange,
    current: &str,
    conflict: &Conflict,
    blocker: Option<BlockingChange>,
) -> UndoRefusal {
    let lines = current_lines(&after(made), current, conflict.theirs);
    let mut refused = refusal(change, made, String::new());
    refused.lines = Some(lines);
    refused.blocker = blocker;
    refused.unsure.clone_from(&conflict.unsure);
    refused.explain();
    refused
}

impl UndoRefusal {
    /// Sets `why` to what happened and what the user can do.
    fn explain(&mut self) {
        let file = self.file.as_ref().map_or("", FilePath::as_str);
        let place = match self.lines {
            Some((first, last)) if first == last => format!("{file}, line {first}"),
            Some((first, last)) => format!("{file}, lines {first} to {last}"),
            None => file.to_owned(),
        };
        self.why = match &self.blocker {
            Some(BlockingChange {
                run: None,
                proposal,
                stays: true,
            }) => format!("{place}: {proposal}, which stays, changed the same lines"),
            Some(BlockingChange {
                run: None,
                proposal,
                stays: false,
            }) => format!(
                "{place}: {proposal} changed the same lines; undo {proposal} first, or the whole run"
            ),
            Some(BlockingChange {
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
                    "{place}: the position of the change is no longer certain ({unsure}), so it stays as it is; \
                     change these lines by hand"
                ),
                None => format!(
                    "{place}: changed since, so it stays as it is; change these lines by hand"
                ),
            },
        };
    }

    /// Searches later runs for the change that blocks this undo.
    pub fn find_blocker_in_later_runs<'c>(
        &mut self,
        changes: &[ChangeRecord],
        later: impl IntoIterator<Item = (&'c RunId, &'c [ChangeRecord])>,
    ) {
        let own = changes.iter().find(|one| one.proposal == self.proposal);
        let Some(made) = own.and_then(|one| one.made.as_ref()) else {
            return;
        };
        if self.blocker.is_some() || self.lines.is_none() {
            return;
        }
        for (run, changes) in later {
            let applied = changes
                .iter()
                .filter(|one| one.state == ChangeState::Applied);
            if let Some(proposal) = blocker(made, applied) {
                self.blocker = Some(BlockingChange {
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

/// Returns the lines of `current` that correspond to an edit of `base` in this range.
fn current_lines(base: &str, current: &str, range: ByteRange) -> (usize, usize) {
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
