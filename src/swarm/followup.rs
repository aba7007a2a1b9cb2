//! Follow-ups: when an accepted change alters a contract, the owners of the references that it can
//! break are told, each once for the same contract.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::event::{Cause, Driver, Event, Party};
use super::gate::Draft;
use super::hub::Hub;
use crate::index::{Certainty, Index, Usage, is_test_file};
use crate::syntax::{
    FilePath, Reference, SymbolPath, SymbolTree, keywords_given, references, signature,
};

/// Owners told for one change of a contract.
pub(super) const OWNERS_MOST: usize = 24;
const REFERENCES_MOST: usize = 400;

/// Owners of code outside these symbols that uses them, with the lines.
pub(super) fn owners_of_references(
    hub: &Hub,
    changed: &[SymbolPath],
) -> Vec<(SymbolPath, Vec<u32>)> {
    let mut owners: BTreeMap<SymbolPath, Vec<u32>> = BTreeMap::new();
    if changed.is_empty() {
        return Vec::new();
    }
    let lookup = hub.lookup();
    for symbol in changed {
        for usage in calls(lookup.index(), symbol) {
            let inside = symbol.encloses(&usage.symbol);
            if !inside && !is_test_file(&usage.file) {
                // A method of a class whose owner is at work is that owner's business.
                let owner = hub.owner_of(&usage.symbol).unwrap_or(usage.symbol);
                owners.entry(owner).or_default().push(usage.line);
            }
        }
    }
    owners.values_mut().for_each(Vec::dedup);
    owners.into_iter().collect()
}

/// The calls of a symbol, and of its class where it makes the objects of one, that are no mere
/// guesses.
fn calls(index: &Index, symbol: &SymbolPath) -> Vec<Usage> {
    let of = |symbol: &SymbolPath| index.references(&symbol.to_string(), REFERENCES_MOST).found;
    let mut found = of(symbol);
    let makes = ["__init__", "__new__"].contains(&symbol.base_name());
    if let Some((class, _)) = symbol.name.rsplit_once('.').filter(|_| makes) {
        found.extend(of(&SymbolPath::new(symbol.file.clone(), class)));
    }
    // Of one that is gone, only its name is left to go by.
    let is_gone = index.describe(symbol).is_none();
    let is_guess = |usage: &Usage| usage.certainty == Certainty::Possible && !is_gone;
    found.retain(|usage| usage.is_call && !is_guess(usage));
    found
}

/// Wakes the owners of what an applied draft can have broken.
pub(super) fn follow_up(hub: &Arc<Hub>, by: &Party, draft: &Draft) {
    if hub.task.driver == Driver::Single {
        return;
    }
    let contract = draft.contract.join("; ");
    for changed in &draft.breaking {
        let mut owners = owners_of_references(hub, std::slice::from_ref(changed));
        owners.retain(|(owner, _)| Party::Agent(owner.clone()) != *by);
        if let Some(required) = only_required(draft, changed) {
            let fits = |owner: &SymbolPath, line| fits(hub, &owner.file, line, changed, &required);
            owners.retain(|(owner, lines)| !lines.iter().all(|line| fits(owner, *line)));
        }
        let visit = (changed.clone(), contract.clone());
        if !hub.state().followed.insert(visit) {
            let owners = owners.into_iter().map(|(owner, _)| owner).collect();
            let why = "they were told of the same change before".to_owned();
            missed(hub, changed, owners, why);
            continue;
        }
        tell(hub, changed, draft, owners);
    }
}

/// The parameters that calls must give now, where a draft changes nothing else that can break them.
fn only_required(draft: &Draft, changed: &SymbolPath) -> Option<Vec<String>> {
    let contract = |text: &Arc<str>| {
        let tree = SymbolTree::parse(draft.file.clone(), Arc::clone(text));
        Some(tree.find(&changed.name)?.contract.clone())
    };
    contract(&draft.base)?.only_requires(&contract(&draft.text)?)
}

/// Whether all calls of a symbol at a line give these arguments already.
fn fits(hub: &Hub, file: &FilePath, line: u32, changed: &SymbolPath, required: &[String]) -> bool {
    // A copy: nothing is parsed while the state is held.
    let world = hub.state().world.clone();
    let Ok(tree) = world.tree(file) else {
        return false;
    };
    // Objects are made by the name of their class.
    let names = changed.name.rsplit('.').take(2);
    let names = names.filter_map(|name| name.split('#').next());
    let calls: Vec<_> = names
        .flat_map(|name| references(&tree, name))
        .filter(|call| call.is_call && call.line == line)
        .collect();
    let gives_all = |call: &Reference| {
        let given = keywords_given(&tree, call);
        given.is_some_and(|given| required.iter().all(|name| given.contains(name)))
    };
    !calls.is_empty() && calls.iter().all(gives_all)
}

/// Tells the owners of one changed contract, as far as the budget goes.
fn tell(hub: &Arc<Hub>, changed: &SymbolPath, draft: &Draft, owners: Vec<(SymbolPath, Vec<u32>)>) {
    let now = match hub.lookup().symbol(changed) {
        Ok(found) => format!("It is now: {}", signature(&found.tree, &found.symbol)),
        Err(_) => "It is gone.".to_owned(),
    };
    let mut told = Vec::new();
    let mut untold: BTreeMap<String, Vec<SymbolPath>> = BTreeMap::new();
    for (at, (owner, lines)) in owners.into_iter().enumerate() {
        let cause = Cause::FollowUp {
            changed: changed.clone(),
            changes: draft.contract.clone(),
            lines,
            text: now.clone(),
        };
        match wake(hub, at, &owner, cause) {
            Ok(()) => told.push(owner),
            Err(why) => untold.entry(why).or_default().push(owner),
        }
    }
    hub.event(Event::FollowedUp {
        changed: changed.clone(),
        changes: draft.contract.clone(),
        to: told,
    });
    for (why, owners) in untold {
        missed(hub, changed, owners, why);
    }
}

fn wake(hub: &Arc<Hub>, at: usize, owner: &SymbolPath, cause: Cause) -> Result<(), String> {
    if at >= OWNERS_MOST {
        return Err(format!(
            "{OWNERS_MOST} owners are told of one change at most"
        ));
    }
    hub.ledger
        .count_message()
        .map_err(|error| error.to_string())?;
    hub.wake(owner, cause).map_err(|error| error.to_string())?;
    Ok(())
}

fn missed(hub: &Hub, changed: &SymbolPath, owners: Vec<SymbolPath>, why: String) {
    if owners.is_empty() {
        return;
    }
    hub.state().missed.extend(owners.iter().cloned());
    hub.event(Event::FollowUpMissed {
        changed: changed.clone(),
        owners,
        why,
    });
}
