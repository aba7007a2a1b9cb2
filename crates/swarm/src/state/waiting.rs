//! The workspace as it would be if the waiting proposals were applied.

use std::sync::Arc;

use crate::lookup::Lookup;
use crate::state::checker::Checker;
use crate::state::draft::Draft;
use starling_workspace::Snapshot;

/// Returns a lookup over the workspace as it would be if all waiting proposals were applied.
pub(crate) fn with_all_that_wait(checker: &Checker) -> Lookup {
    let (world, index, waiting, lsp_facts) = {
        let state = checker.state();
        let (index, lsp_facts) = (
            Arc::clone(&state.world.index),
            Arc::clone(&state.world.lsp_facts),
        );
        (
            state.world.snapshot.clone(),
            index,
            {
                let open = state.proposals.open();
                open.map(|one| one.draft.clone()).collect::<Vec<Draft>>()
            },
            lsp_facts,
        )
    };
    if waiting.is_empty() {
        return Lookup::new(world, index).with_lsp_facts(lsp_facts);
    }
    let world = laid_over(&world, waiting.iter());
    let index = Arc::new(index.after(world.clone()));
    Lookup::new(world, index).with_lsp_facts(lsp_facts)
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
