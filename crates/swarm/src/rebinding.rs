//! Refuses a draft that gives names of a module another meaning for code of other owners: an import
//! such as `from math import prod as sum` changes every function of the module that calls `sum`.

use super::agent::Mind;
use super::event::Party;
use super::gate::Draft;
use super::hub::Hub;
use super::reason::ReturnReason;
use starling_index::{Rebound, rebound};
use starling_syntax::{Language, SymbolPath, SymbolTree};

/// How many users of a name a refusal lists.
const USERS_MOST: usize = 4;

/// Why the agent may not make this change; `None` where it may. The owner of the module body may give
/// the module's names any meaning.
pub(super) fn refusal(hub: &Hub, mind: &Mind, draft: &Draft) -> Option<ReturnReason> {
    let Party::Agent(own) = &mind.party else {
        return None;
    };
    let module = SymbolPath::module(draft.file.clone());
    if *own == module || draft.base.is_empty() || Language::of(&draft.file) == Language::Plain {
        return None;
    }
    let parsed = |text| SymbolTree::parse(draft.file.clone(), text);
    let (before, after) = (parsed(draft.base.clone()), parsed(draft.text.clone()));
    let is_own = |symbol: &SymbolPath| match hub.owner_of(symbol) {
        Some(owner) => owner == *own,
        None => own.encloses(symbol),
    };
    let found = rebound(&before, &after, is_own);
    let first = found.first()?;
    let others: Vec<String> = found[1..]
        .iter()
        .map(|one| format!("`{}`", one.name))
        .collect();
    let others = match others.len() {
        0 => String::new(),
        _ => format!(" The same holds for {}.", others.join(", ")),
    };
    let what = format!(
        "the proposal gives `{}` another meaning in all of {}: {}.{}{others}",
        first.name,
        draft.file,
        first.how,
        used_by(first),
    );
    Some(ReturnReason::new(
        format!(
            "Not changed: {what} Bind another name (`... as other_name`), import inside {own}, or use \
             `request_change` with symbol {module}."
        ),
        what,
    ))
}

fn used_by(found: &Rebound) -> String {
    let named = found.users.iter().take(USERS_MOST).map(ToString::to_string);
    let mut users: Vec<String> = named.collect();
    match found.users.len().saturating_sub(USERS_MOST) {
        0 => {}
        more => users.push(format!("{more} more")),
    }
    match users.is_empty() {
        true => String::new(),
        false => format!(" It is used by {}.", users.join(", ")),
    }
}
