//! Finds the applied proposals that depend on a new proposal, or on which it depends, because their
//! calls and definitions fit only together: for example, a changed signature and its callers. If
//! the user undoes one of these proposals, the message names the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::event::dependencies::Dependencies;
use crate::evidence::ids::ProposalId;
use crate::state::proposal::{Applied, Proposal};
use crate::state::run_context::RunContext;
use crate::task::whole_word::has_word;
use starling_core::Effect;
use starling_index::Index;
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::Snapshot;

/// Returns the dependencies between a proposal that is about to be applied and the applied
/// proposals. Dependencies that are already known are left out.
pub(crate) fn on_applied(run: &RunContext, proposal: &Proposal) -> Dependencies {
    let before = run.world().snapshot.clone();
    let applied: Vec<(Proposal, Applied)> = {
        let book = run.proposals();
        let applied = book.applied().into_iter();
        let others = applied.filter(|(one, _)| may_depend(proposal, one));
        others
            .map(|(one, applied)| (one.clone(), applied.clone()))
            .collect()
    };
    let mut found = Dependencies::default();
    if applied.is_empty() {
        return found;
    }
    let file = &proposal.draft.file;
    let Some(after) = proposal.draft.laid_over(&before) else {
        return found;
    };
    let known = Arc::clone(&run.world().index);
    let index = |world: &Snapshot| Index::after(&known, world.clone());
    let whole = index(&after);
    let broken_by_undo = broken(&whole, &index(&before), file);
    for (one, applied) in &applied {
        let Some(without) = without(&after, one, applied) else {
            continue;
        };
        let broken = broken(&whole, &index(&without), &one.draft.file);
        if touches(&broken_by_undo, one) {
            found.set.insert(one.id);
        } else if touches(&broken, proposal) {
            found.needs.insert(one.id);
        }
    }
    found
}

/// Returns whether the code of one of the two proposals mentions a symbol whose contract the other
/// changes, and no dependency between the two is known.
fn may_depend(proposal: &Proposal, applied: &Proposal) -> bool {
    let knows = |one: &Proposal, other: ProposalId| {
        one.dependencies.set.contains(&other) || one.dependencies.needs.contains(&other)
    };
    if knows(proposal, applied.id) || knows(applied, proposal.id) {
        return false;
    }
    let mentions = |changed: &Proposal, user: &Proposal| {
        let mut symbols = changed.draft.symbols.iter();
        !changed.draft.contract.is_empty()
            && symbols.any(|symbol| has_word(&user.draft.text, called(symbol)))
    };
    mentions(proposal, applied) || mentions(applied, proposal)
}

/// Returns the name by which code calls a symbol.
fn called(symbol: &SymbolPath) -> &str {
    match symbol.base_name() {
        "__init__" | "__new__" => {
            let class = symbol.name.rsplit('.').nth(1);
            class.unwrap_or(symbol.base_name())
        }
        name => name,
    }
}

/// Returns the workspace without the change of an applied proposal; `None` if other changes affect
/// the same lines.
fn without(world: &Snapshot, one: &Proposal, applied: &Applied) -> Option<Snapshot> {
    let file = &one.draft.file;
    let text = match applied.effect {
        Effect::Create => None,
        Effect::Delete => Some(Arc::clone(&applied.before)),
        Effect::Change => {
            let now = world.read(file).ok()?;
            let changes = one.made(applied).back_over(&now).ok()?;
            Some(changes.apply(&now).ok()?.into())
        }
    };
    Some(world.with(file.clone(), text))
}

/// Returns the symbols that a change of one file breaks: symbols that contain a call or a use that
/// no longer matches, and the symbols that they call.
fn broken(before: &Index, after: &Index, file: &FilePath) -> BTreeSet<SymbolPath> {
    let files = std::slice::from_ref(file);
    let calls = after.newly_bad_calls(before, files).into_iter();
    let mut found: BTreeSet<SymbolPath> =
        calls.flat_map(|call| [call.symbol, call.callee]).collect();
    let names = after.newly_dangling(before, files).into_iter();
    let names = names.chain(after.lost_attributes(before, files));
    found.extend(names.map(|name| name.symbol));
    found
}

fn touches(broken: &BTreeSet<SymbolPath>, proposal: &Proposal) -> bool {
    let mut symbols = proposal.draft.symbols.iter();
    symbols.any(|own| broken.iter().any(|symbol| own.encloses(symbol)))
}
