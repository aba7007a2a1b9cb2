//! The workspace with the proposals that wait.

use std::sync::Arc;

use crate::lookup::Lookup;
use crate::state::draft::Draft;
use crate::state::run_context::RunContext;
use starling_workspace::Snapshot;

/// Returns a lookup over the workspace with all waiting proposals applied.
pub(crate) fn with_all_that_wait(run: &RunContext) -> Lookup {
    let (world, index, waiting, served) = {
        let state = run.state();
        let (index, served) = (
            Arc::clone(&state.world.index),
            Arc::clone(&state.world.served),
        );
        (
            state.world.snapshot.clone(),
            index,
            state.proposals.waiting.clone(),
            served,
        )
    };
    if waiting.is_empty() {
        return Lookup::new(world, index).with_served(served);
    }
    let world = laid_over(&world, waiting.values().map(|one| &one.draft));
    let index = Arc::new(index.after(world.clone()));
    Lookup::new(world, index).with_served(served)
}

/// Applies several drafts to the workspace. A draft that conflicts with the others is skipped.
pub(crate) fn laid_over<'d>(world: &Snapshot, drafts: impl Iterator<Item = &'d Draft>) -> Snapshot {
    let mut world = world.clone();
    for draft in drafts {
        if let Some(text) = text_with(&world, draft) {
            world = world.with(draft.file.clone(), Some(text));
        }
    }
    world
}

/// Returns the text of the draft's file with the draft applied; `None` if the draft conflicts with
/// the current text.
pub(crate) fn text_with(world: &Snapshot, draft: &Draft) -> Option<Arc<str>> {
    let now = world.read(&draft.file);
    draft.over(&now.unwrap_or_else(|_| "".into()))
}
