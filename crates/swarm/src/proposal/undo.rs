//! Taking applied proposals back. Of several, those that belong together are taken back together or not at
//! all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::dependencies::{DependencyGraph, Held};
use crate::event::events::{AppliedChange, Event};
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::proposal::apply;
use crate::proposal::send::{Intent, Purpose, Sent, send};
use crate::proposal::undo_error::UndoError;
use crate::state::applied::Applied;
use crate::state::proposals::Accepted;
use crate::state::run_context::RunContext;
use starling_core::Effect;
use starling_syntax::FilePath;
use starling_text::ChangeSet;
use starling_workspace::remove_empty_directories;

/// Takes one applied proposal back, or all, the last first, by the inverse of its own change over the
/// text as it is now. Of all, those that belong together are taken back together or not at all; one that
/// is asked for is taken back alone.
///
/// # Errors
/// [`UndoError`].
pub(crate) async fn undo(
    run: &Arc<RunContext>,
    which: Option<ProposalId>,
) -> Result<Vec<ProposalId>, UndoError> {
    apply::carried(run, async move |run| {
        let _one_at_a_time = run.applying.lock().await;
        take_back(&run, which).await
    })
    .await
    .unwrap_or_else(|| {
        let why = "internal error while taking back; see the log".to_owned();
        Err(UndoError::Editor(why))
    })
}

/// What [`undo`] does. The caller holds `applying`.
pub(crate) async fn take_back(
    run: &Arc<RunContext>,
    which: Option<ProposalId>,
) -> Result<Vec<ProposalId>, UndoError> {
    let applied = run.proposals().applied.clone();
    let is_chosen = |applied: &&Applied| which.is_none_or(|id| id == applied.id);
    let chosen: Vec<Applied> = applied.iter().rev().filter(is_chosen).cloned().collect();
    if let (Some(id), true) = (which, chosen.is_empty()) {
        return Err(UndoError::Unknown(id));
    }
    let chosen = still_there(run, chosen).await?;
    let is_one = chosen.len() == 1;
    let mut taking = TakingBack::of(run, chosen);
    if !is_one {
        taking.leave_conflicts().await;
    }
    let stays = taking.take_back().await;
    let undone: Vec<ProposalId> = taking.undone.iter().map(|one| one.applied.id).collect();
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

/// Those of the chosen proposals that the texts still hold, as far as they can be read.
///
/// # Errors
/// None is there any more: the editor's own undo took them back, a document was closed without being saved,
/// or the text had their changes before.
async fn still_there(
    run: &Arc<RunContext>,
    mut chosen: Vec<Applied>,
) -> Result<Vec<Applied>, UndoError> {
    let mut texts: BTreeMap<FilePath, Arc<str>> = BTreeMap::new();
    let mut gone = BTreeSet::new();
    for applied in &chosen {
        if !texts.contains_key(&applied.file) {
            let Ok(now) = run.services.editor.current(&applied.file).await else {
                continue;
            };
            texts.insert(applied.file.clone(), now.text);
        }
        let Some(text) = texts.get_mut(&applied.file) else {
            continue;
        };
        match without(applied, text) {
            Ok(earlier) if earlier == *text => {
                gone.insert(applied.id);
            }
            Ok(earlier) => *text = earlier,
            Err(_) => {}
        }
    }
    if !gone.is_empty() && gone.len() == chosen.len() {
        let is_empty = chosen.iter().all(|one| one.before == one.after);
        let gone = gone.into_iter().collect();
        return Err(match is_empty {
            true => UndoError::Empty(gone),
            false => UndoError::Gone(gone),
        });
    }
    chosen.retain(|one| !gone.contains(&one.id));
    Ok(chosen)
}

/// Applied proposals that are being taken back, those that belong together all or none.
struct TakingBack<'h> {
    run: &'h Arc<RunContext>,
    /// The last one that was applied comes first.
    chosen: Vec<Applied>,
    dependencies: DependencyGraph,
    /// Those that are not to stay.
    open: BTreeSet<ProposalId>,
    stay: Vec<(ProposalId, UndoError)>,
    undone: Vec<Undone>,
}

/// A proposal that was taken back, as it is needed to apply it again.
struct Undone {
    applied: Applied,
    accepted: Option<Accepted>,
    sent: Sent,
}

impl<'h> TakingBack<'h> {
    fn of(run: &'h Arc<RunContext>, chosen: Vec<Applied>) -> Self {
        let dependencies = chosen.iter();
        let dependencies = dependencies.map(|one| (one.id, one.dependencies.clone()));
        TakingBack {
            run,
            dependencies: DependencyGraph::of(dependencies),
            open: chosen.iter().map(|one| one.id).collect(),
            chosen,
            stay: Vec::new(),
            undone: Vec::new(),
        }
    }

    /// Leaves alone what conflicts with the texts as they are now, before anything is changed.
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
        let mut texts: BTreeMap<&FilePath, Result<Arc<str>, String>> = BTreeMap::new();
        let mut conflicts = Vec::new();
        for applied in self.chosen.iter().filter(|one| self.open.contains(&one.id)) {
            if !texts.contains_key(&applied.file) {
                let now = self.run.services.editor.current(&applied.file).await;
                let now = now.map(|now| now.text).map_err(|error| error.to_string());
                texts.insert(&applied.file, now);
            }
            let Some(now) = texts.get_mut(&applied.file) else {
                continue;
            };
            match now {
                Ok(text) => match without(applied, text) {
                    Ok(earlier) => *text = earlier,
                    Err(error) => conflicts.push((applied.id, error)),
                },
                Err(why) => conflicts.push((applied.id, UndoError::Editor(why.clone()))),
            }
        }
        conflicts
    }

    /// Leaves proposals applied, and with them those that belong to them. Returns the latter.
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

    /// Returns the proposals that stay, with the reasons.
    async fn take_back(&mut self) -> Vec<(ProposalId, UndoError)> {
        for applied in self.chosen.clone() {
            if !self.open.contains(&applied.id) {
                continue;
            }
            match take_one_back(self.run, &applied).await {
                Ok(undone) => self.undone.push(undone),
                Err(error) => {
                    let held = self.leave(vec![(applied.id, error)]);
                    self.apply_again(&held).await;
                }
            }
        }
        std::mem::take(&mut self.stay)
    }

    /// Applies those again that are taken back already, the first that was applied first.
    async fn apply_again(&mut self, held: &BTreeSet<ProposalId>) {
        let mut undone = Vec::new();
        for one in std::mem::take(&mut self.undone).into_iter().rev() {
            if !held.contains(&one.applied.id) {
                undone.push(one);
                continue;
            }
            if let Err(failure) = apply_again(self.run, &one).await {
                tracing::warn!(?failure, proposal = %one.applied.id, "a part of a set cannot be applied again");
                self.stay.retain(|(id, _)| *id != one.applied.id);
                undone.push(one);
            }
        }
        undone.reverse();
        self.undone = undone;
    }
}

/// A text without an applied change.
fn without(applied: &Applied, text: &Arc<str>) -> Result<Arc<str>, UndoError> {
    let conflict = |why: String| UndoError::Conflict {
        symbol: applied.symbol(),
        why,
    };
    let changes = applied.made().back_over(text);
    let changes = changes.map_err(|found| conflict(found.in_lines(&applied.after)))?;
    let earlier = changes.apply(text);
    let earlier = earlier.map_err(|error| conflict(error.to_string()))?;
    Ok(earlier.into())
}

async fn take_one_back(run: &Arc<RunContext>, applied: &Applied) -> Result<Undone, UndoError> {
    let inverse = ChangeSet::between(&applied.after, &applied.before);
    let label = format!("undo {}", applied.id);
    let purpose = match applied.effect {
        Effect::Create => Purpose::TakeBackFile,
        Effect::Change | Effect::Delete => Purpose::TakeBack,
    };
    let sent = send(
        &run.services.editor,
        &applied.file,
        &applied.after,
        &inverse,
        &label,
        purpose,
    );
    let sent = sent.await.map_err(|failure| match failure {
        Failure::Conflict { why, .. } => UndoError::Conflict {
            symbol: applied.symbol(),
            why,
        },
        Failure::Editor { why } => UndoError::Editor(why),
    })?;
    let text = (sent.effect != Effect::Delete).then_some(&sent.after);
    if text.is_none() {
        remove_empty_directories(run.policy().root(), &applied.directories);
    }
    run.world().change(&applied.file, text);
    let accepted = note_undone(run, applied);
    Ok(Undone {
        applied: applied.clone(),
        accepted,
        sent,
    })
}

/// Takes in that a proposal is applied no more, and tells it.
fn note_undone(run: &RunContext, applied: &Applied) -> Option<Accepted> {
    let mut state = run.state();
    state.world.epoch.changes += 1;
    state.world.answers.forget(&applied.symbols);
    state.tests.latest = None;
    state
        .proposals
        .applied
        .retain(|other| other.id != applied.id);
    let accepted = state
        .proposals
        .accepted
        .iter()
        .find(|other| other.id == applied.id);
    let accepted = accepted.cloned();
    state
        .proposals
        .accepted
        .retain(|other| other.id != applied.id);
    // As far as is known without running them: what it mended fails again.
    state
        .tests
        .failing
        .retain(|id| !applied.broken.contains(id));
    state.tests.failing.extend(applied.fixed.iter().cloned());
    drop(state);
    run.log.undone(applied.id);
    // Who needs it goes back to its agent.
    run.waited.raise();
    accepted
}

/// Takes in that the texts hold proposals no more, whoever took them out.
pub(crate) fn note_gone(run: &RunContext, gone: &[ProposalId]) {
    let applied = run.proposals().applied.clone();
    for one in applied.iter().filter(|one| gone.contains(&one.id)) {
        note_undone(run, one);
    }
}

/// Applies a proposal again that was taken back a moment ago.
async fn apply_again(run: &Arc<RunContext>, undone: &Undone) -> Result<(), Failure> {
    let Undone {
        applied,
        accepted,
        sent: gone,
    } = undone;
    let intent = Intent {
        log: &run.log,
        proposal: applied.id,
        symbols: &applied.symbols,
        directories: &applied.directories,
        dependencies: &applied.dependencies,
        cancel: &run.cancel,
    };
    let changes = ChangeSet::between(&gone.after, &gone.before);
    let label = format!("redo {}", applied.id);
    let sent = send(
        &run.services.editor,
        &applied.file,
        &gone.after,
        &changes,
        &label,
        Purpose::Propose(intent),
    );
    let Sent {
        before,
        after,
        effect,
    } = sent.await?;
    let diff = apply::diff_of(effect, &applied.file, &before, &after);
    let change = AppliedChange {
        file: applied.file.clone(),
        before: Arc::clone(&before),
        changes: ChangeSet::between(&before, &after),
        created: effect == Effect::Create,
        directories: applied.directories.clone(),
        dependencies: applied.dependencies.clone(),
    };
    let mut state = run.state();
    state.world.change(&applied.file, Some(&after));
    state.world.epoch.changes += 1;
    state.world.answers.forget(&applied.symbols);
    state.proposals.accepted.extend(accepted.clone());
    state.tests.failing.retain(|id| !applied.fixed.contains(id));
    state.tests.failing.extend(applied.broken.iter().cloned());
    let again = Applied {
        before,
        after,
        effect,
        changes: state.world.epoch.changes,
        ..applied.clone()
    };
    state.proposals.applied.push(again);
    drop(state);
    run.event(Event::ProposalApplied {
        proposal: applied.id,
        symbols: applied.symbols.clone(),
        diff,
        change: Some(change),
    });
    run.waited.raise();
    Ok(())
}
