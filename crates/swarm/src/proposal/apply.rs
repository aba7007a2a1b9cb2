//! Applying approved drafts to the user's text.

use std::sync::Arc;

use crate::check::expected;
use crate::event::events::{AppliedChange, Event};
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::auto_imports;
use crate::proposal::send::{Intent, Purpose, Sent, send};
use crate::state::applied::Applied;
use crate::state::draft::Draft;
use crate::state::run_context::RunContext;
use starling_core::{Effect, TestReport};
use starling_syntax::{FilePath, SymbolPath};
use starling_text::{ChangeSet, new_file_diff, unified_diff};
use starling_workspace::{WriteRule, missing_directories};

/// Applies a draft over the user's text as it is now. Once begun it is carried to its end, even when
/// the run is cancelled meanwhile: what becomes of it is in the state and in the log before the run
/// ends. `checked` is what the tests said of it.
///
/// # Errors
/// [`Failure`], which is in the log as well; nothing was changed.
pub(crate) async fn apply(
    run: &Arc<RunContext>,
    id: ProposalId,
    draft: &Draft,
    checked: (TestEvidence, Option<TestReport>),
) -> Result<Arc<str>, Failure> {
    let draft = draft.clone();
    carried(run, async move |run| {
        let _one_at_a_time = run.applying.lock().await;
        let applied = edit(&run, id, draft.clone(), checked).await;
        if let Err(failure) = &applied {
            not_applied(&run, id, &draft, failure);
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

/// Does something that must not stop halfway: it goes on when the caller is dropped, and the run ends
/// after it. `None` when it panicked.
pub(crate) async fn carried<T, F>(
    run: &Arc<RunContext>,
    work: impl FnOnce(Arc<RunContext>) -> F,
) -> Option<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    // Counted before the task begins, so that the run cannot end in between.
    let busy = run.busy();
    let work = work(Arc::clone(run));
    let whole = tokio::spawn(async move {
        let result = work.await;
        drop(busy);
        result
    });
    whole.await.ok()
}

/// Sends an edit to the editor, and takes note of it in the same step. The caller holds `applying`.
pub(crate) async fn edit(
    run: &Arc<RunContext>,
    id: ProposalId,
    draft: Draft,
    (tests, report): (TestEvidence, Option<TestReport>),
) -> Result<Arc<str>, Failure> {
    if run.cancel.is_cancelled() {
        let why = "the run ended before the edit was sent to the editor".to_owned();
        return Err(Failure::Editor { why });
    }
    let symbol = main_symbol(&draft);
    let label = symbol.to_string();
    still_allowed(run, &draft)?;
    let tested = Arc::clone(&draft.text);
    let draft =
        auto_imports::drop_redundant_imports(run, auto_imports::beside_other_imports(run, draft));
    let changes = ChangeSet::between(&draft.base, &draft.text);
    let directories = missing_directories(run.policy().root(), &draft.file);
    let dependencies = run.proposals().dependencies.get(&id).cloned();
    let dependencies = dependencies.unwrap_or_default();
    let intent = Intent {
        log: &run.log,
        proposal: id,
        symbols: &draft.symbols,
        directories: &directories,
        dependencies: &dependencies,
        cancel: &run.cancel,
    };
    let sent = send(
        &run.services.editor,
        &draft.file,
        &draft.base,
        &changes,
        &label,
        Purpose::Propose(intent),
    );
    let Sent {
        before,
        after,
        effect,
    } = sent.await?;
    let diff = diff_of(effect, &draft.file, &before, &after);
    let change = AppliedChange {
        file: draft.file.clone(),
        before: Arc::clone(&before),
        changes: ChangeSet::between(&before, &after),
        created: effect == Effect::Create,
        directories: directories.clone(),
        dependencies: dependencies.clone(),
    };
    let mut state = run.state();
    let as_checked = state.world.epoch == draft.epoch && after == tested;
    let missing = report.as_ref().map(expected::marked).unwrap_or_default();
    let is_of_now = as_checked && tests.is_of_all() && missing.is_empty();
    state.tests.latest = report.filter(|_| is_of_now);
    if run.task.approval.is_by_person() {
        // Whoever accepted that tests do not run is not told of them again.
        state.tests.let_go.extend(missing);
    }
    if let Some(ran) = state.tests.latest.as_ref().map(expected::ran) {
        state.tests.expected.extend(ran);
    }
    state.world.change(&draft.file, Some(&after));
    state.world.epoch.changes += 1;
    state.proposals.unapplied.remove(&symbol);
    state.world.answers.forget(&draft.symbols);
    let text = Arc::clone(&after);
    let changes = state.world.epoch.changes;
    state.proposals.applied.push(Applied {
        id,
        file: draft.file,
        symbols: draft.symbols.clone(),
        imports: draft.imports.added,
        before,
        after,
        effect,
        directories,
        changes,
        dependencies,
        fixed: Vec::new(),
        broken: Vec::new(),
    });
    if state.tests.latest.is_some() {
        let found = tests.with_original();
        state.tests.only_as_changed = Some((state.world.epoch, found));
    }
    // At once: whoever is checked on this world must know what fails in it.
    state.note_tests(id, &tests);
    drop(state);
    run.event(Event::ProposalApplied {
        proposal: id,
        symbols: draft.symbols,
        diff,
        change: Some(change),
    });
    Ok(text)
}

pub(crate) fn main_symbol(draft: &Draft) -> SymbolPath {
    let module = || SymbolPath::module(draft.file.clone());
    draft.symbols.first().cloned().unwrap_or_else(module)
}

/// Takes note that an accepted proposal is not in the user's text.
pub(crate) fn not_applied(run: &RunContext, id: ProposalId, draft: &Draft, failure: &Failure) {
    run.proposals()
        .accepted
        .retain(|accepted| accepted.id != id);
    match failure {
        Failure::Conflict { why, current } => {
            let epoch = run.world().epoch;
            run.saw(epoch, [(&draft.file, Some(current))]);
            run.event(Event::ProposalConflicted {
                proposal: id,
                why: why.clone(),
            });
        }
        Failure::Editor { why } => {
            let told = format!("proposal {id} was accepted but not applied: {why}");
            run.proposals().unapplied.insert(main_symbol(draft), told);
            run.event(Event::ProposalNotApplied {
                proposal: id,
                why: why.clone(),
            });
        }
    }
}

/// The policy once more: a link may lead elsewhere by now, to a file that nobody was asked about.
fn still_allowed(run: &RunContext, draft: &Draft) -> Result<(), Failure> {
    let why = match run.policy().may_write(&draft.file) {
        WriteRule::Allowed => return Ok(()),
        WriteRule::NeedsPerson { why } if draft.needs_person.iter().any(|known| known == why) => {
            return Ok(());
        }
        WriteRule::NeedsPerson { why } => format!(
            "{}: it was made to lead to another file meanwhile, which only a person may change ({why})",
            draft.file
        ),
        WriteRule::Never { why } => why,
    };
    Err(Failure::Editor { why })
}

/// One diff of everything that the agents changed, by file: what the user typed meanwhile is no part of
/// it.
pub(crate) fn whole_diff(run: &RunContext) -> String {
    let diff = |file: &FilePath| {
        let now = run
            .world()
            .snapshot
            .read(file)
            .unwrap_or_else(|_| "".into());
        let effect = first_effect(run, file);
        diff_of(effect, file, &without_agents(run, file, &now), &now)
    };
    let files = run.proposals().changed_files();
    files.iter().map(diff).collect()
}

/// Whether the agents made a file or found it.
fn first_effect(run: &RunContext, file: &FilePath) -> Effect {
    let state = run.proposals();
    let first = state.applied.iter().find(|one| one.file == *file);
    first.map_or(Effect::Change, |one| one.effect)
}

pub(crate) fn diff_of(effect: Effect, file: &FilePath, before: &str, after: &str) -> String {
    match effect {
        Effect::Create if before.is_empty() => new_file_diff(file.as_str(), after),
        Effect::Create | Effect::Change | Effect::Delete => {
            unified_diff(file.as_str(), before, after)
        }
    }
}

/// The text of a file as if no proposal had been applied; the one of the start where the user changed
/// the same places since.
pub(crate) fn without_agents(run: &RunContext, file: &FilePath, now: &Arc<str>) -> Arc<str> {
    let applied = run.proposals().applied.clone();
    let mut text = Arc::clone(now);
    for one in applied.iter().rev().filter(|one| one.file == *file) {
        let changes = one.made().back_over(&text).ok();
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
