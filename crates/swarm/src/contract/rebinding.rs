//! Refuses a draft that changes what a name of a module refers to in code of other owners. For
//! example, the import `from math import prod as sum` changes every function of the module that
//! calls `sum`. A new file has the same effect if Python finds the file instead of a module that
//! other code imports.

use crate::event::actor::ActorId;
use crate::evidence::return_reason::ReturnReason;
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::run_context::RunContext;
use starling_index::{Rebound, rebound};
use starling_syntax::{Language, SymbolPath, SymbolTree};

/// Maximum number of users of a name that the reason of a refusal lists.
const USERS_MOST: usize = 4;

/// Returns why the agent may not make this change; `None` if the change is allowed. The owner of
/// the module body may change what any name of the module refers to.
pub(crate) fn refusal(run: &RunContext, agent: &AgentState, draft: &Draft) -> Option<ReturnReason> {
    if let Some(why) = hides_a_module(run, draft) {
        return Some(why);
    }
    let ActorId::Agent(own) = &agent.actor else {
        return None;
    };
    let module = SymbolPath::module(draft.file.clone());
    if *own == module || draft.base.is_empty() || Language::of(&draft.file) == Language::Plain {
        return None;
    }
    let parsed = |text| SymbolTree::parse(draft.file.clone(), text);
    let (before, after) = (parsed(draft.base.clone()), parsed(draft.text.clone()));
    let is_own = |symbol: &SymbolPath| match run.owner_of(symbol) {
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

/// Returns why a new file is refused: Python would find it instead of a module that other code
/// imports. Returns `None` if the file hides no module.
fn hides_a_module(run: &RunContext, draft: &Draft) -> Option<ReturnReason> {
    let is_new = draft.base.is_empty() && run.world().snapshot.read(&draft.file).is_err();
    if !is_new {
        return None;
    }
    let tree = SymbolTree::parse(draft.file.clone(), draft.text.clone());
    let is_installed = |module: &str| run.services.tests.has_installed(module);
    let found = run.lookup().index().shadowing(&tree, &is_installed)?;
    let users = match found.importers.is_empty() {
        true => "which the tools that run the tests may import".to_owned(),
        false => format!("which is imported by {}", listed(&found.importers)),
    };
    let what = format!(
        "the new file {} would hide {}, {users}",
        draft.file, found.hidden,
    );
    Some(ReturnReason::new(
        format!("Not changed: {what}: give the new file another name."),
        what,
    ))
}

fn used_by(found: &Rebound) -> String {
    match found.users.is_empty() {
        true => String::new(),
        false => format!(" It is used by {}.", listed(&found.users)),
    }
}

/// Formats a list of users: the first [`USERS_MOST`], and how many more there are.
fn listed<T: ToString>(users: &[T]) -> String {
    let named = users.iter().take(USERS_MOST).map(ToString::to_string);
    let mut named: Vec<String> = named.collect();
    match users.len().saturating_sub(USERS_MOST) {
        0 => {}
        more => named.push(format!("{more} more")),
    }
    named.join(", ")
}
