//! Follow-ups: when an accepted change alters a contract, the owners of the references that it can
//! break are told, each once for the same contract.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::event::{Cause, Driver, Event, Party};
use super::gate::Draft;
use super::hub::Hub;
use crate::index::is_test_file;
use crate::syntax::{SymbolPath, signature};

/// Owners told for one change of a contract.
const OWNERS_MOST: usize = 24;
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
        for usage in lookup
            .index()
            .references(symbol.base_name(), REFERENCES_MOST)
            .found
        {
            let inside = symbol.encloses(&usage.symbol);
            if !inside && usage.is_call && !is_test_file(&usage.file) {
                // A method of a class whose owner is at work is that owner's business.
                let owner = hub.owner_of(&usage.symbol).unwrap_or(usage.symbol);
                owners.entry(owner).or_default().push(usage.line);
            }
        }
    }
    owners.values_mut().for_each(Vec::dedup);
    owners.into_iter().take(OWNERS_MOST).collect()
}

/// Wakes the owners of what an applied draft can have broken.
pub(super) fn follow_up(hub: &Arc<Hub>, by: &Party, draft: &Draft) {
    if draft.breaking.is_empty() || hub.task.driver == Driver::Single {
        return;
    }
    let contract = draft.contract.join("; ");
    for changed in &draft.breaking {
        if !hub
            .state()
            .followed
            .insert((changed.clone(), contract.clone()))
        {
            continue;
        }
        let lookup = hub.lookup();
        let now = match lookup.symbol(changed) {
            Ok(found) => format!("It is now: {}", signature(&found.tree, &found.symbol)),
            Err(_) => "It is gone.".to_owned(),
        };
        let owners = owners_of_references(hub, std::slice::from_ref(changed));
        let mut told = Vec::new();
        for (owner, lines) in owners {
            let cause = Cause::FollowUp {
                changed: changed.clone(),
                changes: draft.contract.clone(),
                lines,
                text: now.clone(),
            };
            if Party::Agent(owner.clone()) == *by || hub.ledger.count_message().is_err() {
                continue;
            }
            match hub.wake(&owner, cause) {
                Ok(_) => told.push(owner),
                Err(error) => tracing::warn!(%owner, %error, "follow-up not sent"),
            }
        }
        hub.event(Event::FollowedUp {
            changed: changed.clone(),
            changes: draft.contract.clone(),
            to: told,
        });
    }
}
