//! Applies approved drafts to the user's text.

use std::sync::Arc;

use crate::check::expected;
use crate::event::events::{AppliedChange, Event};
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::send::{AnnouncedEdit, Purpose, Sent, announce, send};
use crate::proposal::{auto_imports, dependence, permission};
use crate::state::draft::Draft;
use crate::state::proposal::{Applied, Proposal};
use crate::state::run_context::{RunContext, StateGuard};
use starling_core::{Effect, TestReport};
use starling_syntax::FilePath;
use starling_text::{ChangeSet, deleted_file_diff, new_file_diff, unified_diff};
use starling_workspace::missing_directories;

/// The UTF-8 byte order mark.
const MARK: char = '\u{feff}';

/// Applies an accepted proposal to the user's current text. Once begun, the operation completes
/// even if the run is cancelled, and the result is in the state and in the log before the run ends.
/// `checked` are the test results of the proposal.
///
/// # Errors
/// Returns a [`Failure`] if the proposal was not applied. The failure has been logged, and nothing
/// was changed.
pub(crate) async fn apply(
    run: &Arc<RunContext>,
    accepted: &Proposal,
    checked: (TestEvidence, Option<TestReport>),
) -> Result<Arc<str>, Failure> {
    let accepted = accepted.clone();
    carried(run, async move |run| {
        let _one_at_a_time = run.applying.lock().await;
        let applied = match ready(&run, accepted.id) {
            Ok(ready) => edit(&run, ready, checked).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = &applied {
            not_applied(&run, &accepted, failure);
        }
        applied
    })
    .await
    .unwrap_or_else(|| {
        Err(Failure::Editor {
            why: "internal error while applying; see the log".to_owned(),
        })
    })
}

/// Runs a future that must not be interrupted. The future continues if the caller is dropped, and
/// the run does not end before it completes. Returns `None` if it panicked.
pub(crate) async fn carried<T, F>(
    run: &Arc<RunContext>,
    work: impl FnOnce(Arc<RunContext>) -> F,
) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    // The guard is taken before the task is spawned, so that the run cannot end in between.
    let busy = run.busy();
    let work = work(Arc::clone(run));
    let whole = tokio::spawn(async move {
        let result = work.await;
        drop(busy);
        result
    });
    whole.await.ok()
}

/// The edit of an accepted proposal, ready to be sent to the editor.
pub(crate) struct ReadyEdit {
    accepted: Proposal,
    /// The draft, rebased if other changes added imports at the same position.
    draft: Draft,
    changes: ChangeSet,
    directories: Vec<String>,
    /// The edit as [`ReadyEdit::announce`] recorded it; `None` if the edit belongs to no set, or
    /// could not be recorded.
    announced: Option<AppliedChange>,
}

impl ReadyEdit {
    pub(crate) fn proposal(&self) -> ProposalId {
        self.accepted.id
    }

    pub(crate) fn file(&self) -> &FilePath {
        &self.draft.file
    }

    /// Records the edit in the trajectory before the first edit of its set is sent. `earlier` are
    /// the edits of the set that are sent before this edit.
    pub(crate) async fn announce(mut self, run: &RunContext, earlier: &[ReadyEdit]) -> Self {
        let intent = intent(run, &self.accepted, &self.directories);
        let (editor, draft) = (&run.services.editor, &self.draft);
        let edit = (&draft.base, &self.changes);
        let earlier = earlier.iter().filter_map(|one| one.announced.as_ref());
        // An edit that cannot be recorded now is recorded when it is sent, or is not sent.
        let announced = announce(editor, &draft.file, edit, earlier, intent).await;
        self.announced = announced.ok();
        self
    }
}

/// Prepares the edit of an accepted proposal.
pub(crate) fn ready(run: &RunContext, id: ProposalId) -> Result<ReadyEdit, Failure> {
    let accepted = accepted(run, id)?;
    permission::of_proposal(run, &accepted).check(&accepted.draft.file, None)?;
    let draft = auto_imports::drop_redundant_imports(
        run,
        auto_imports::beside_other_imports(run, accepted.draft.clone()),
    );
    Ok(ReadyEdit {
        changes: ChangeSet::between(&draft.base, &draft.text),
        directories: missing_directories(run.policy().root(), &draft.file),
        accepted,
        draft,
        announced: None,
    })
}

/// Sends the edit of an accepted proposal to the editor and records the result. The caller must
/// hold the lock `applying`.
pub(crate) async fn edit(
    run: &Arc<RunContext>,
    ready: ReadyEdit,
    (tests, report): (TestEvidence, Option<TestReport>),
) -> Result<Arc<str>, Failure> {
    let ReadyEdit {
        accepted,
        draft,
        changes,
        directories,
        announced,
    } = ready;
    if run.cancel.is_cancelled() {
        let why = "the run ended before the edit was sent to the editor".to_owned();
        return Err(Failure::Editor { why });
    }
    let permission = permission::of_proposal(run, &accepted);
    let intent = AnnouncedEdit {
        announced: announced.as_ref(),
        permission: Some(&permission),
        ..intent(run, &accepted, &directories)
    };
    let label = draft.main_symbol().to_string();
    let sent = send_edit(run, &draft.file, (&draft.base, &changes), &label, intent).await?;
    let mut applied = Applied {
        before: sent.before,
        after: sent.after,
        effect: sent.effect,
        deleted: sent.deleted,
        directories,
        changes: 0,
        fixed: Vec::new(),
        broken: Vec::new(),
        is_left_alone: false,
    };
    if let TestEvidence::Known { fixed, broken, .. } = &tests {
        applied.fixed.clone_from(fixed);
        applied.broken.clone_from(broken);
    }
    let mut state = run.state();
    let as_checked = state.world.epoch == draft.epoch && applied.after == accepted.draft.text;
    let missing = report.as_ref().map(expected::marked).unwrap_or_default();
    let is_of_now = as_checked && tests.is_of_all() && missing.is_empty();
    state.tests.latest = report.filter(|_| is_of_now);
    if run.task.approval.is_by_person() {
        // The approver accepted that these tests no longer run, so they are not reported again.
        state.tests.let_go.extend(missing);
    }
    if let Some(ran) = state.tests.latest.as_ref().map(expected::ran) {
        state.tests.expected.extend(ran);
    }
    record(&mut state, &accepted, applied.clone());
    if state.tests.latest.is_some() {
        let found = tests.with_original();
        state.tests.only_as_changed = Some((state.world.epoch, found));
    }
    // The test results are recorded before the lock is released, because a check of another
    // proposal on this workspace must know the failing tests.
    state.tests.note(&tests);
    drop(state);
    tell_applied(run, &accepted, &applied);
    Ok(applied.after)
}

/// Returns an accepted proposal, with its dependencies on the proposals that are applied.
fn accepted(run: &RunContext, id: ProposalId) -> Result<Proposal, Failure> {
    let accepted = run.proposals().accepted(id, "be applied").cloned();
    let mut accepted = accepted.map_err(|wrong| Failure::Editor {
        why: wrong.to_string(),
    })?;
    let found = dependence::on_applied(run, &accepted);
    if !found.is_empty() {
        run.proposals().depend(id, found.clone());
        accepted.dependencies.extend(found);
    }
    Ok(accepted)
}

/// Returns what is recorded in the trajectory before the edit of a proposal is sent.
pub(crate) fn intent<'a>(
    run: &'a RunContext,
    proposal: &'a Proposal,
    directories: &'a [String],
) -> AnnouncedEdit<'a> {
    AnnouncedEdit {
        log: &run.log,
        proposal: proposal.id,
        symbols: &proposal.draft.symbols,
        deletes: proposal.draft.deletes_file,
        root: Some(run.services.index.snapshot().root()),
        directories,
        dependencies: &proposal.dependencies,
        cancel: &run.cancel,
        permission: None,
        announced: None,
    }
}

/// Records a proposal's edit in the trajectory, and then sends the edit to the editor.
pub(crate) async fn send_edit(
    run: &RunContext,
    file: &FilePath,
    (base, changes): (&Arc<str>, &ChangeSet),
    label: &str,
    intent: AnnouncedEdit<'_>,
) -> Result<Sent, Failure> {
    let editor = &run.services.editor;
    send(editor, file, base, changes, label, Purpose::Propose(intent)).await
}

/// Updates the run's state after the edit of a proposal was applied to the user's text.
pub(crate) fn record(state: &mut StateGuard<'_>, proposal: &Proposal, applied: Applied) {
    let draft = &proposal.draft;
    let text = (applied.effect != Effect::Delete).then_some(&applied.after);
    state.world.change(&draft.file, text);
    state.world.epoch.changes += 1;
    state.world.answers.forget(&draft.symbols);
    let changes = state.world.epoch.changes;
    let applied = Applied { changes, ..applied };
    state.proposals.apply(proposal.id, applied).ok();
}

/// Logs that the edit of a proposal was applied to the user's text.
pub(crate) fn tell_applied(run: &RunContext, proposal: &Proposal, applied: &Applied) {
    let file = &proposal.draft.file;
    run.event(Event::ProposalApplied {
        proposal: proposal.id,
        symbols: proposal.draft.symbols.clone(),
        diff: diff_of(applied.effect, file, &applied.before, &applied.after),
        change: Some(proposal.applied_change(applied)),
    });
    // Wakes the tasks that renew the evidence of the proposals under review.
    run.waited.raise();
}

/// Records and logs that an accepted proposal was not applied to the user's text.
pub(crate) fn not_applied(run: &RunContext, accepted: &Proposal, failure: &Failure) {
    note_not_applied(run, accepted, failure);
    tell_not_applied(run, accepted.id, failure);
}

/// Records that an accepted proposal was not applied to the user's text.
pub(crate) fn note_not_applied(run: &RunContext, accepted: &Proposal, failure: &Failure) {
    let id = accepted.id;
    match failure {
        Failure::Conflict { current, .. } => {
            run.proposals().send_back(id).ok();
            let epoch = run.world().epoch;
            run.saw(epoch, [(&accepted.draft.file, Some(current))]);
        }
        Failure::Editor { why } => {
            run.proposals().refuse(id, why.clone()).ok();
        }
    }
}

/// Logs that an accepted proposal was not applied to the user's text.
pub(crate) fn tell_not_applied(run: &RunContext, proposal: ProposalId, failure: &Failure) {
    let why = failure.why().to_owned();
    run.event(match failure {
        Failure::Conflict { .. } => Event::ProposalConflicted { proposal, why },
        Failure::Editor { .. } => Event::ProposalNotApplied { proposal, why },
    });
}

/// Returns one diff of all changes that the agents made, file by file. Edits that the user made in
/// the meantime are not included. Byte order marks are, so that the diff can be applied as a patch.
pub(crate) fn whole_diff(run: &RunContext) -> String {
    let world = run.world().snapshot.clone();
    let diff = |file: &FilePath| {
        let now = world.read(file);
        let is_gone = now.is_err();
        let now = now.unwrap_or_else(|_| "".into());
        let effect = match (first_effect(run, file), is_gone) {
            // A file that the run made and deleted again has no diff.
            (Effect::Create, _) => Effect::Create,
            (Effect::Change | Effect::Delete, true) => Effect::Delete,
            (Effect::Change | Effect::Delete, false) => Effect::Change,
        };
        let before = without_agents(run, file, &now);
        match world.is_marked(file) {
            true => diff_of(
                effect,
                file,
                &format!("{MARK}{before}"),
                &format!("{MARK}{now}"),
            ),
            false => diff_of(effect, file, &before, &now),
        }
    };
    let files = run.proposals().changed_files();
    files.iter().map(diff).collect()
}

/// Returns whether the agents created a file or changed an existing one.
fn first_effect(run: &RunContext, file: &FilePath) -> Effect {
    let state = run.proposals();
    let mut applied = state.applied().into_iter();
    let first = applied.find(|(one, _)| one.draft.file == *file);
    first.map_or(Effect::Change, |(_, applied)| applied.effect)
}

pub(crate) fn diff_of(effect: Effect, file: &FilePath, before: &str, after: &str) -> String {
    match effect {
        Effect::Create if before.is_empty() => new_file_diff(file.as_str(), after),
        Effect::Delete => deleted_file_diff(file.as_str(), before),
        Effect::Create | Effect::Change => unified_diff(file.as_str(), before, after),
    }
}

/// Returns the text of a file as if no proposal had been applied. If the user changed the same
/// lines since, returns the text from the start of the run.
pub(crate) fn without_agents(run: &RunContext, file: &FilePath, now: &Arc<str>) -> Arc<str> {
    let book = run.proposals();
    let applied = book.applied().into_iter().rev();
    let mut text = Arc::clone(now);
    for (one, applied) in applied.filter(|(one, _)| one.draft.file == *file) {
        let changes = one.made(applied).back_over(&text).ok();
        let taken_back = changes.and_then(|changes| changes.apply(&text).ok());
        match taken_back {
            Some(earlier) => text = earlier.into(),
            None => {
                let before = run.services.index.snapshot();
                return before.read(file).unwrap_or_else(|_| "".into());
            }
        }
    }
    text
}
