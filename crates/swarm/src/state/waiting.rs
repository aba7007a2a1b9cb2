//! The workspace as it would be if the waiting proposals were applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::evidence::ids::ProposalId;
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
        if let Some(with_draft) = draft.laid_over(&world) {
            world = with_draft;
        }
    }
    world
}

/// Returns the drafts that [`laid_over`] skips.
pub(crate) fn skipped<'d>(
    world: &Snapshot,
    drafts: impl Iterator<Item = (ProposalId, &'d Draft)>,
) -> BTreeSet<ProposalId> {
    let mut world = world.clone();
    let mut skipped = BTreeSet::new();
    for (id, draft) in drafts {
        match draft.laid_over(&world) {
            Some(with_draft) => world = with_draft,
            None => {
                skipped.insert(id);
            }
        }
    }
    skipped
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_workspace::Workspace;

    #[test]
    fn draft_that_conflicts_with_an_earlier_one_is_named_as_skipped() {
        const BASE: &str = "a = 1\nb = 2\nc = 3\n";
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.py"), BASE).unwrap();
        let root = dir.path().canonicalize().unwrap();
        let world = Workspace::open(root).unwrap().snapshot(Default::default());
        let draft = |old, new| Draft::between(BASE, &BASE.replace(old, new));
        let drafts = [
            draft("a = 1", "a = 4"),
            draft("a = 1", "a = 5"),
            draft("c = 3", "c = 6"),
        ];
        let drafts = || (1..).map(ProposalId).zip(&drafts);
        let skipped = skipped(&world, drafts());
        assert_eq!(skipped, BTreeSet::from([ProposalId(2)]));
        let laid = laid_over(&world, drafts().map(|(_, draft)| draft));
        let text = laid.read(&starling_syntax::FilePath::new("a.py")).unwrap();
        assert_eq!(&*text, "a = 4\nb = 2\nc = 6\n");
    }
}
