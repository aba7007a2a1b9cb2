//! Drafts that delete a whole file.

use std::sync::Arc;

use crate::check::checks::contract_changes;
use crate::event::actor::ActorId;
use crate::evidence::check_results::ImportMends;
use crate::evidence::return_reason::ReturnReason;
use crate::proposal::refusal::{Refusal, unusable, unusable_as};
use crate::protocol::Propose;
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::run_context::RunContext;
use starling_syntax::{RewriteError, SymbolPath, SymbolTree};
use starling_workspace::DeletedFile;

/// Returns whether a proposal deletes the file of its target: `delete` names the file or its module.
pub(super) fn is_asked(target: &SymbolPath, change: &Propose) -> bool {
    let module = SymbolPath::module(target.file.clone()).to_string();
    let names = |name: &String| *name == module || name == target.file.as_str();
    change.delete.iter().any(names)
}

/// Returns the draft that deletes the file of the target. `now` is the current text of the file.
///
/// # Errors
/// Returns a [`Refusal`] if the proposal changes the file as well, if the agent has not seen the
/// current text, or if the file may not be deleted.
pub(super) fn draft(
    run: &RunContext,
    agent: &AgentState,
    (target, now): (&SymbolPath, &SymbolTree),
    change: &Propose,
    needs_person: Vec<String>,
) -> Result<Draft, Refusal> {
    let file = &target.file;
    let is_alone = change
        .source
        .as_deref()
        .is_none_or(|text| text.trim().is_empty())
        && change.hunks.is_empty()
        && change.add.is_empty()
        && change.imports.is_empty();
    if !is_alone {
        let error = RewriteError::DeleteModule { file: file.clone() };
        return unusable(error.to_string(), error.in_short());
    }
    let module = SymbolPath::module(file.clone());
    has_no_other_owner(run, agent, &module)?;
    if agent.seen(&module).as_ref() != Some(now.text()) {
        return Err(unseen(&module, now));
    }
    let world = run.world().snapshot.clone();
    if world.files().binary_search(file).is_err() {
        return unusable_as(format!(
            "Not deleted: {file} is no file of the project's code; the user can delete it."
        ));
    }
    if let Err(why) = DeletedFile::of(world.root(), file, now.text()) {
        return unusable_as(format!("Not deleted: {why}."));
    }
    let symbols: Vec<SymbolPath> = now.symbols().iter().map(|one| one.path.clone()).collect();
    let after = SymbolTree::parse(file.clone(), "".into());
    let (contract, breaking) = match run.proposals().sets.by_rule > 0 {
        // The users of the file are changed by the same rule.
        true => (Vec::new(), Vec::new()),
        false => contract_changes(now, &after, &symbols),
    };
    let epoch = run.world().epoch;
    Ok(Draft {
        file: file.clone(),
        base: Arc::clone(now.text()),
        text: "".into(),
        symbols,
        losses: Vec::new(),
        contract,
        breaking,
        epoch,
        imports: ImportMends::default(),
        needs_person,
        edited: false,
        deletes_file: true,
    })
}

/// Refuses the deletion of a file if another agent owns a part of it, or if the agent owns only a
/// part of it.
fn has_no_other_owner(
    run: &RunContext,
    agent: &AgentState,
    module: &SymbolPath,
) -> Result<(), Refusal> {
    let ActorId::Agent(own) = &agent.actor else {
        return Ok(());
    };
    let file = &module.file;
    if own != module {
        let what = format!("{file} is not your symbol");
        let to_agent = format!("{what}: use `request_change` with symbol {module}.");
        return unusable(to_agent, what);
    }
    let owners = run.agents().owners();
    match owners
        .iter()
        .find(|owner| *owner != own && owner.file == *file)
    {
        Some(owner) => {
            let what = format!("{file} cannot be deleted while {owner} has an owner at work");
            let to_agent = format!("{what}: use `request_change` with symbol {owner}.");
            unusable(to_agent, what)
        }
        None => Ok(()),
    }
}

/// Refuses the deletion of a text that the agent has not seen, and shows the text.
fn unseen(module: &SymbolPath, now: &SymbolTree) -> Refusal {
    let (file, text) = (&module.file, now.text());
    Refusal::Moved {
        why: ReturnReason::new(
            format!(
                "Not deleted: you have not seen the current text of {file}. It is:\n{text}\nDelete the file if \
                 that is still right."
            ),
            format!("{file} changed before it was deleted; your text stands"),
        ),
        symbol: module.clone(),
        text: Arc::clone(text),
    }
}
