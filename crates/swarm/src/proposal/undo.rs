//! Undoes applied proposals. If several are undone, proposals that depend on each other are undone
//! together or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::dependencies::{DependencyGraph, Held};
use crate::event::events::Event;
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::proposal::apply;
use crate::proposal::send::{EXISTS_AGAIN, Purpose, Sent, send};
use crate::proposal::undo_error::UndoError;
use crate::state::proposal::{Applied, Proposal};
use crate::state::run_context::RunContext;
use starling_core::{EditorError, Effect};
use starling_syntax::FilePath;
use starling_text::ChangeSet;
use starling_workspace::remove_empty_directories;

/// Undoes one applied proposal, or all of them, last first, by applying the inverse of each change
/// to the current text. If all are undone, proposals that depend on each other are undone together
/// or not at all. If one proposal is requested, only that proposal is undone.
///
/// # Errors
/// Returns an [`UndoError`] if a proposal could not be undone.
pub(crate) async fn undo(
    run: &Arc<RunContext>,
    which: Option<ProposalId>,
) -> Result<Vec<ProposalId>, UndoError> {
    apply::carried(run, async move |run| {
        let _one_at_a_time = run.applying.lock().await;
        follow_log(&run);
        take_back(&run, which).await
    })
    .await
    .unwrap_or_else(|| {
        let why = "internal error during the undo; see the log".to_owned();
        Err(UndoError::Editor(why))
    })
}

/// Marks undone proposals as applied whose changes are in the text again, as the log reports: the
/// documents in which they were undone were closed without being saved.
fn follow_log(run: &RunContext) {
    let mut last = BTreeMap::new();
    for event in run.log.events() {
        if let Event::ProposalApplied {
            proposal,
            change: Some(change),
            ..
        } = event
        {
            last.insert(proposal, change);
        } else if let Some((proposal, _)) = event.standing() {
            last.remove(&proposal);
        }
    }
    let mut state = run.state();
    for (id, change) in last {
        let is_undone = state.proposals.get(id).is_some_and(Proposal::is_undone);
        let after = change.changes.apply(&change.before).ok();
        let Some(after) = after.filter(|_| is_undone) else {
            continue;
        };
        state.world.epoch.changes += 1;
        let applied = Applied {
            after: after.into(),
            effect: match (change.created, &change.deleted) {
                (_, Some(_)) => Effect::Delete,
                (true, None) => Effect::Create,
                (false, None) => Effect::Change,
            },
            deleted: change.deleted,
            before: change.before,
            directories: change.directories,
            changes: state.world.epoch.changes,
            fixed: Vec::new(),
            broken: Vec::new(),
            is_left_alone: false,
        };
        state.proposals.apply(id, applied).ok();
    }
}

/// Implements [`undo`]. The caller must hold the lock `applying`.
pub(crate) async fn take_back(
    run: &Arc<RunContext>,
    which: Option<ProposalId>,
) -> Result<Vec<ProposalId>, UndoError> {
    let chosen: Vec<ChosenProposal> = {
        let book = run.proposals();
        let applied = book.applied().into_iter().rev();
        let chosen = applied.filter(|(one, _)| which.is_none_or(|id| id == one.id));
        chosen
            .map(|(one, applied)| (one.clone(), applied.clone()))
            .collect()
    };
    if let (Some(id), true) = (which, chosen.is_empty()) {
        return Err(UndoError::Unknown(id));
    }
    let chosen = still_there(run, chosen).await?;
    let is_one = chosen.len() == 1;
    let mut taking = UndoOperation::of(run, chosen);
    if which.is_none() {
        taking.leave_relied_on().await;
    }
    if !is_one {
        taking.leave_conflicts().await;
    }
    let stays = taking.take_back().await;
    let undone: Vec<ProposalId> = taking.undone.iter().map(|one| one.proposal.id).collect();
    let mut stays = stays.into_iter();
    match (is_one, stays.next()) {
        (_, None) => Ok(undone),
        (true, Some((_, error))) => Err(error),
        (false, Some(first)) => Err(UndoError::Stay {
            undone,
            stay: std::iter::once(first)
                .chain(stays)
                .map(|(id, error)| (id, error.to_string()))
                .collect(),
        }),
    }
}

/// Returns the chosen proposals whose changes are still in the texts, as far as the texts can be
/// read.
///
/// # Errors
/// Returns an [`UndoError`] if none of the changes is in the texts any more: the editor's own undo
/// removed them, a document was closed without being saved, a created file does not exist, or the
/// text already contained the changes when they were applied.
async fn still_there(
    run: &Arc<RunContext>,
    mut chosen: Vec<ChosenProposal>,
) -> Result<Vec<ChosenProposal>, UndoError> {
    let mut texts: BTreeMap<FilePath, Option<Arc<str>>> = BTreeMap::new();
    let mut gone = BTreeSet::new();
    let created = created_files(run);
    for (one, applied) in &chosen {
        let file = &one.draft.file;
        if !texts.contains_key(file) {
            let now = run.services.editor.current_as_shown(file, &applied.after);
            match now.await {
                Ok(now) => drop(texts.insert(file.clone(), Some(now.text))),
                Err(EditorError::Missing { .. }) => drop(texts.insert(file.clone(), None)),
                Err(_) => {}
            }
        }
        let Some(text) = texts.get_mut(file) else {
            continue;
        };
        match without(one, applied, text.as_ref()) {
            Ok(earlier) if earlier == *text => {
                gone.insert(one.id);
            }
            Ok(earlier) => *text = earlier,
            Err(_) if text.is_none() && created.contains(file) => {
                gone.insert(one.id);
            }
            Err(_) => {}
        }
    }
    if !gone.is_empty() && gone.len() == chosen.len() {
        let is_empty = chosen.iter().all(|(_, applied)| {
            applied.effect != Effect::Delete && applied.before == applied.after
        });
        let gone = gone.into_iter().collect();
        return Err(match is_empty {
            true => UndoError::Empty(gone),
            false => UndoError::Gone(gone),
        });
    }
    chosen.retain(|(one, _)| !gone.contains(&one.id));
    Ok(chosen)
}

/// Returns the files that applied proposals created.
fn created_files(run: &RunContext) -> BTreeSet<FilePath> {
    let book = run.proposals();
    let applied = book.applied().into_iter();
    let creating = applied.filter(|(_, applied)| applied.effect == Effect::Create);
    creating.map(|(one, _)| one.draft.file.clone()).collect()
}

/// An applied proposal that was chosen to be undone, in its state at that time.
type ChosenProposal = (Proposal, Applied);

/// The applied proposals that an undo operation reverts.
struct UndoOperation<'h> {
    run: &'h Arc<RunContext>,
    /// The proposals to undo, the most recently applied first.
    chosen: Vec<ChosenProposal>,
    dependencies: DependencyGraph,
    /// The ids of the chosen proposals that are not excluded from the undo.
    open: BTreeSet<ProposalId>,
    stay: Vec<(ProposalId, UndoError)>,
    undone: Vec<UndoneProposal>,
}

/// An undone proposal, with the data that is needed to apply it again.
struct UndoneProposal {
    proposal: Proposal,
    applied: Applied,
    sent: Sent,
}

impl<'h> UndoOperation<'h> {
    fn of(run: &'h Arc<RunContext>, chosen: Vec<ChosenProposal>) -> Self {
        let dependencies = chosen.iter();
        let dependencies = dependencies.map(|(one, _)| (one.id, one.dependencies.clone()));
        UndoOperation {
            run,
            dependencies: DependencyGraph::of(dependencies),
            open: chosen.iter().map(|(one, _)| one.id).collect(),
            chosen,
            stay: Vec::new(),
            undone: Vec::new(),
        }
    }

    /// Excludes the proposals on which changes of other runs rely. Called before anything is changed.
    async fn leave_relied_on(&mut self) {
        let Some(others) = &self.run.services.others else {
            return;
        };
        let index = Arc::clone(&self.run.world().index);
        let events = self.run.log.events();
        let relied_on = others.rely_on(events, &self.open, &index).await;
        for (id, why) in relied_on {
            self.open.remove(&id);
            self.stay.push((id, UndoError::Held { why }));
        }
    }

    /// Excludes the proposals whose inverse changes conflict with the current texts. Called before
    /// anything is changed.
    async fn leave_conflicts(&mut self) {
        loop {
            let conflicts = self.conflicts().await;
            if conflicts.is_empty() {
                return;
            }
            self.leave(conflicts);
        }
    }

    async fn conflicts(&self) -> Vec<(ProposalId, UndoError)> {
        let mut texts: BTreeMap<&FilePath, Result<Option<Arc<str>>, String>> = BTreeMap::new();
        let mut conflicts = Vec::new();
        let open = self.chosen.iter();
        for (one, applied) in open.filter(|(one, _)| self.open.contains(&one.id)) {
            let file = &one.draft.file;
            if !texts.contains_key(file) {
                let editor = &self.run.services.editor;
                let now = editor.current_as_shown(file, &applied.after).await;
                let now = match now {
                    Ok(now) => Ok(Some(now.text)),
                    Err(EditorError::Missing { .. }) => Ok(None),
                    Err(error) => Err(error.to_string()),
                };
                texts.insert(file, now);
            }
            let Some(now) = texts.get_mut(file) else {
                continue;
            };
            match now {
                Ok(text) => match without(one, applied, text.as_ref()) {
                    Ok(earlier) => *text = earlier,
                    Err(error) => conflicts.push((one.id, error)),
                },
                Err(why) => conflicts.push((one.id, UndoError::Editor(why.clone()))),
            }
        }
        conflicts
    }

    /// Excludes the proposals in `stay` from the undo, and the proposals that depend on them.
    /// Returns the ids of the latter.
    fn leave(&mut self, stay: Vec<(ProposalId, UndoError)>) -> BTreeSet<ProposalId> {
        let staying = stay.iter().map(|(id, _)| *id).collect();
        let held = self.dependencies.held(&self.open, &staying);
        self.stay.extend(stay);
        let why = |held: &Held| (held.proposal, UndoError::Held { why: held.why() });
        self.stay.extend(held.iter().map(why));
        let held: BTreeSet<ProposalId> = held.iter().map(|held| held.proposal).collect();
        self.open
            .retain(|id| !staying.contains(id) && !held.contains(id));
        held
    }

    /// Reverts the proposals. Returns those that stay applied, with the reasons.
    async fn take_back(&mut self) -> Vec<(ProposalId, UndoError)> {
        for (one, applied) in self.chosen.clone() {
            let id = one.id;
            if !self.open.contains(&id) {
                continue;
            }
            match take_one_back(self.run, one, applied).await {
                Ok(undone) => self.undone.push(undone),
                Err(error) => {
                    let held = self.leave(vec![(id, error)]);
                    self.apply_again(&held).await;
                }
            }
        }
        std::mem::take(&mut self.stay)
    }

    /// Applies the proposals in `held` again if they were already undone, in the order in which
    /// they were first applied.
    async fn apply_again(&mut self, held: &BTreeSet<ProposalId>) {
        let mut undone = Vec::new();
        for one in std::mem::take(&mut self.undone).into_iter().rev() {
            if !held.contains(&one.proposal.id) {
                undone.push(one);
                continue;
            }
            if let Err(failure) = apply_again(self.run, &one).await {
                tracing::warn!(?failure, proposal = %one.proposal.id, "a part of a set cannot be applied again");
                self.stay.retain(|(id, _)| *id != one.proposal.id);
                undone.push(one);
            }
        }
        undone.reverse();
        self.undone = undone;
    }
}

/// Returns a text without an applied change. `None` is a file that does not exist.
fn without(
    one: &Proposal,
    applied: &Applied,
    text: Option<&Arc<str>>,
) -> Result<Option<Arc<str>>, UndoError> {
    let conflict = |why: String| UndoError::Conflict {
        symbol: one.draft.main_symbol(),
        why,
    };
    let text = match (applied.effect, text) {
        (Effect::Delete, None) => return Ok(Some(Arc::clone(&applied.before))),
        (Effect::Delete, Some(text)) if *text == applied.before => {
            return Ok(Some(Arc::clone(text)));
        }
        (Effect::Delete, Some(_)) => return Err(conflict(EXISTS_AGAIN.to_owned())),
        (Effect::Create, None) => return Ok(None),
        (Effect::Change, None) => {
            let file = one.draft.file.clone();
            return Err(UndoError::Editor(EditorError::Missing { file }.to_string()));
        }
        (Effect::Create | Effect::Change, Some(text)) => text,
    };
    let changes = one.made(applied).back_over(text);
    let changes = changes.map_err(|found| conflict(found.in_lines(&applied.after)))?;
    let earlier = changes.apply(text);
    let earlier = earlier.map_err(|error| conflict(error.to_string()))?;
    let is_removed = applied.effect == Effect::Create && earlier.is_empty() && !text.is_empty();
    Ok((!is_removed).then(|| earlier.into()))
}

async fn take_one_back(
    run: &Arc<RunContext>,
    proposal: Proposal,
    applied: Applied,
) -> Result<UndoneProposal, UndoError> {
    let file = &proposal.draft.file;
    let inverse = ChangeSet::between(&applied.after, &applied.before);
    let label = format!("undo {}", proposal.id);
    let purpose = match applied.effect {
        Effect::Create => Purpose::TakeBackFile,
        Effect::Change => Purpose::TakeBack,
        Effect::Delete => Purpose::Restore,
    };
    let editor = &run.services.editor;
    let sent = send(editor, file, &applied.after, &inverse, &label, purpose).await;
    let sent = sent.map_err(|failure| match failure {
        Failure::Conflict { why, .. } => UndoError::Conflict {
            symbol: proposal.draft.main_symbol(),
            why,
        },
        Failure::Editor { why } => UndoError::Editor(why),
    })?;
    let text = (sent.effect != Effect::Delete).then_some(&sent.after);
    if text.is_none() {
        remove_empty_directories(run.policy().root(), &applied.directories);
    }
    if let Some(deleted) = &applied.deleted {
        deleted.restore(run.policy().root(), file);
    }
    run.world().change(file, text);
    let undone = Event::ProposalUndone {
        proposal: proposal.id,
        by_editor: false,
        unsaved: sent.is_open,
    };
    note_undone(run, proposal.id, undone);
    Ok(UndoneProposal {
        proposal,
        applied,
        sent,
    })
}

/// Updates the run's state after a proposal was undone, and logs the event `undone`.
fn note_undone(run: &RunContext, id: ProposalId, undone: Event) {
    let mut state = run.state();
    let Some((proposal, applied)) =
        (state.proposals.get(id)).and_then(|one| Some((one.clone(), one.applied()?.clone())))
    else {
        return;
    };
    state.proposals.undo(id).ok();
    state.world.epoch.changes += 1;
    state.world.answers.forget(&proposal.draft.symbols);
    state.tests.latest = None;
    // The tests are not run again: the tests that the proposal fixed are assumed to fail again.
    state
        .tests
        .failing
        .retain(|id| !applied.broken.contains(id));
    state.tests.failing.extend(applied.fixed);
    drop(state);
    run.log.noticed(undone);
    // Waiting proposals that need the undone proposal go back to their agents.
    run.waited.raise();
}

/// Updates the run's state after changes disappeared from the texts, for example by the editor's
/// own undo.
pub(crate) fn note_gone(run: &RunContext, gone: &[ProposalId]) {
    let applied: Vec<ProposalId> = {
        let book = run.proposals();
        book.applied().into_iter().map(|(one, _)| one.id).collect()
    };
    for id in applied.into_iter().filter(|id| gone.contains(id)) {
        let undone = Event::ProposalUndone {
            proposal: id,
            by_editor: true,
            unsaved: false,
        };
        note_undone(run, id, undone);
    }
}

/// Applies a proposal again that was just undone.
async fn apply_again(run: &Arc<RunContext>, undone: &UndoneProposal) -> Result<(), Failure> {
    let UndoneProposal {
        proposal,
        applied,
        sent: gone,
    } = undone;
    let changes = ChangeSet::between(&gone.after, &gone.before);
    let label = format!("redo {}", proposal.id);
    let edit = (&gone.after, &changes);
    let intent = apply::intent(run, proposal, &applied.directories);
    let sent = apply::send_edit(run, &proposal.draft.file, edit, &label, intent).await?;
    let applied = Applied {
        before: sent.before,
        after: sent.after,
        effect: sent.effect,
        ..applied.clone()
    };
    let mut state = run.state();
    state.tests.failing.retain(|id| !applied.fixed.contains(id));
    state.tests.failing.extend(applied.broken.iter().cloned());
    apply::record(&mut state, proposal, applied.clone());
    drop(state);
    apply::tell_applied(run, proposal, &applied);
    run.waited.raise();
    Ok(())
}
