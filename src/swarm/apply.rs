//! Applying approved drafts to the user's text, and taking them back.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::event::Event;
use super::gate::Draft;
use super::hub::{Hub, State};
use super::mend;
use super::proposal::{ProposalId, TestEvidence};
use super::run::UndoError;
use super::send::{Failure, Purpose, Sent, send};
use crate::ports::{Effect, TestReport};
use crate::syntax::{FilePath, SymbolPath};
use crate::text::{ChangeSet, new_file_diff, unified_diff};

/// An applied proposal, as it is needed to take it back.
#[derive(Debug, Clone)]
pub(super) struct Applied {
    pub id: ProposalId,
    pub file: FilePath,
    pub symbols: Vec<SymbolPath>,
    /// Imports that it lacked when it was drafted.
    pub imports: Vec<String>,
    before: Arc<str>,
    after: Arc<str>,
    /// Whether the file was there before.
    effect: Effect,
    /// Failing tests that it mended, and others that it broke.
    pub fixed: Vec<String>,
    pub broken: Vec<String>,
}

/// The files that were changed and in which nobody has typed since: what is wrong in them, the changes
/// brought.
pub(super) fn untouched_since(state: &State) -> Vec<FilePath> {
    let mut last: BTreeMap<&FilePath, &Arc<str>> = BTreeMap::new();
    for applied in &state.applied {
        last.insert(&applied.file, &applied.after);
    }
    let is_as_left = |(file, after): &(&FilePath, &Arc<str>)| {
        state.world.read(file).is_ok_and(|text| text == **after)
    };
    last.into_iter()
        .filter(is_as_left)
        .map(|(file, _)| file.clone())
        .collect()
}

/// The file after an edit.
#[derive(Debug)]
pub(super) struct Application {
    pub text: Arc<str>,
    pub diff: String,
}

/// Applies a draft over the user's text as it is now. Once begun it is carried to its end, even when
/// the run is cancelled meanwhile. `checked` is what the tests said of it.
pub(super) async fn apply(
    hub: &Arc<Hub>,
    id: ProposalId,
    draft: &Draft,
    checked: (TestEvidence, Option<TestReport>),
) -> Result<Application, Failure> {
    let (hub, draft) = (Arc::clone(hub), draft.clone());
    let (tests, report) = checked;
    let whole = tokio::spawn(async move {
        let _one_at_a_time = hub.applying.lock().await;
        let label = draft
            .symbols
            .first()
            .map(ToString::to_string)
            .unwrap_or_default();
        let tested = Arc::clone(&draft.text);
        let draft = mend::without_makeshifts(&hub, draft);
        let changes = ChangeSet::between(&draft.base, &draft.text);
        let sent = send(
            hub.outside.editor.as_ref(),
            &draft.file,
            &draft.base,
            &changes,
            &label,
            Purpose::Propose,
        )
        .await?;
        let Sent {
            before,
            after,
            effect,
        } = sent;
        let diff = diff_of(effect, &draft.file, &before, &after);
        let mut state = hub.state();
        let as_checked = state.applied.len() == draft.applied && after == tested;
        state.latest = report.filter(|_| as_checked && tests.is_of_all());
        state.change_world(&draft.file, Some(&after));
        state.forget_answers(&draft.symbols);
        let text = Arc::clone(&after);
        state.applied.push(Applied {
            id,
            file: draft.file,
            symbols: draft.symbols,
            imports: draft.imports.added,
            before,
            after,
            effect,
            fixed: Vec::new(),
            broken: Vec::new(),
        });
        // At once: whoever is checked on this world must know what fails in it.
        state.note_tests(id, &tests);
        Ok(Application { text, diff })
    });
    match whole.await {
        Ok(result) => result,
        Err(_) => Err(Failure::Editor {
            why: "internal error while applying; see the log".to_owned(),
        }),
    }
}

/// Takes one applied proposal back, or all, the last first, by the inverse of its own change over the
/// text as it is now.
///
/// # Errors
/// [`UndoError`]; proposals undone before it stay undone.
pub(super) async fn undo(
    hub: &Arc<Hub>,
    which: Option<ProposalId>,
) -> Result<Vec<ProposalId>, UndoError> {
    let _one_at_a_time = hub.applying.lock().await;
    let chosen: Vec<Applied> = {
        let state = hub.state();
        state
            .applied
            .iter()
            .rev()
            .filter(|applied| which.is_none_or(|id| id == applied.id))
            .cloned()
            .collect()
    };
    if let (Some(id), true) = (which, chosen.is_empty()) {
        return Err(UndoError::Unknown(id));
    }
    let mut undone = Vec::new();
    for applied in chosen {
        let inverse = ChangeSet::between(&applied.after, &applied.before);
        let label = format!("undo {}", applied.id);
        let purpose = match applied.effect {
            Effect::Create => Purpose::TakeBackFile,
            Effect::Change | Effect::Delete => Purpose::TakeBack,
        };
        let sent = send(
            hub.outside.editor.as_ref(),
            &applied.file,
            &applied.after,
            &inverse,
            &label,
            purpose,
        );
        let sent = sent.await.map_err(|failure| {
            let symbol = applied
                .symbols
                .first()
                .cloned()
                .unwrap_or_else(|| SymbolPath::module(applied.file.clone()));
            match failure {
                Failure::Conflict { why, .. } => UndoError::Conflict { symbol, why },
                Failure::Editor { why } => UndoError::Editor(why),
            }
        })?;
        let text = (sent.effect != Effect::Delete).then_some(&sent.after);
        let mut state = hub.state();
        state.change_world(&applied.file, text);
        state.forget_answers(&applied.symbols);
        state.latest = None;
        state.applied.retain(|other| other.id != applied.id);
        state.accepted.retain(|other| other.id != applied.id);
        // As far as is known without running them: what it mended fails again.
        state.failing.retain(|id| !applied.broken.contains(id));
        state.failing.extend(applied.fixed.iter().cloned());
        drop(state);
        hub.event(Event::ProposalUndone {
            proposal: applied.id,
        });
        undone.push(applied.id);
    }
    Ok(undone)
}

/// One diff of everything that the agents changed, by file: what the user typed meanwhile is no part of
/// it.
pub(super) fn whole_diff(hub: &Hub) -> String {
    let diff = |file: &FilePath| {
        let now = hub.state().world.read(file).unwrap_or_else(|_| "".into());
        let effect = first_effect(hub, file);
        diff_of(effect, file, &without_agents(hub, file, &now), &now)
    };
    hub.changed_files().iter().map(diff).collect()
}

/// Whether the agents made a file or found it.
fn first_effect(hub: &Hub, file: &FilePath) -> Effect {
    let state = hub.state();
    let first = state.applied.iter().find(|one| one.file == *file);
    first.map_or(Effect::Change, |one| one.effect)
}

fn diff_of(effect: Effect, file: &FilePath, before: &str, after: &str) -> String {
    match effect {
        Effect::Create if before.is_empty() => new_file_diff(file.as_str(), after),
        Effect::Create | Effect::Change | Effect::Delete => {
            unified_diff(file.as_str(), before, after)
        }
    }
}

/// The text of a file as if no proposal had been applied; the one of the start where the user changed
/// the same places since.
fn without_agents(hub: &Hub, file: &FilePath, now: &Arc<str>) -> Arc<str> {
    let applied = hub.state().applied.clone();
    let mut text = Arc::clone(now);
    for one in applied.iter().rev().filter(|one| one.file == *file) {
        let inverse = ChangeSet::between(&one.after, &one.before);
        let taken_back = inverse
            .rebase(&ChangeSet::between(&one.after, &text))
            .ok()
            .and_then(|changes| changes.apply(&text).ok());
        match taken_back {
            Some(earlier) => text = earlier.into(),
            None => {
                let before = hub.outside.index.snapshot();
                return before.read(file).unwrap_or_else(|_| "".into());
            }
        }
    }
    text
}
