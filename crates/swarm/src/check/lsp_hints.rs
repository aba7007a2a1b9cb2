//! Requests facts about names from a language server, if one is ready and the index is not certain.

use std::sync::Arc;
use std::time::Duration;

use crate::check::diagnose::request;
use crate::excerpt::found::Found;
use crate::lookup::{Lookup, cap};
use crate::state::checker::Checker;
use starling_core::{Effort, LspAnswer, Relation, TextRequest, Tokens};
use starling_index::{Certainty, Usage};
use starling_syntax::{SymbolPath, references};

/// Time limit for a lookup that a model requested. If the server does not reply in time, the index
/// is used.
const LOOK: Duration = Duration::from_secs(2);
/// Time limit for all requests about the symbols of a change, before the owners (agents) of the
/// affected code are asked for follow-up changes.
const FOLLOW: Duration = Duration::from_secs(4);
/// Maximum number of uses of a symbol that are read from the index.
const USES: usize = 400;
/// Maximum size of the documentation of a name from outside the workspace.
const TOLD: Tokens = Tokens(300);

/// Requests the uses of the symbol that a name refers to from the language server and stores them,
/// so that a later lookup finds them.
pub(crate) async fn uses_of_name(checker: &Checker, name: &str) {
    let lookup = checker.lookup();
    if let Some(symbol) = lookup.meant(name) {
        uses(checker, &lookup, &symbol, LOOK).await;
    }
}

/// Requests the uses and overrides of symbols whose contracts change.
pub(crate) async fn for_follow_ups(checker: &Checker, changed: &[SymbolPath]) {
    let lookup = checker.lookup();
    let all = async {
        for symbol in changed {
            uses(checker, &lookup, symbol, FOLLOW).await;
            overrides(checker, &lookup, symbol, FOLLOW).await;
        }
    };
    let _ = tokio::time::timeout(FOLLOW, all).await;
}

async fn uses(checker: &Checker, lookup: &Lookup, symbol: &SymbolPath, deadline: Duration) {
    let Some(found) = asked_about(checker, lookup, symbol) else {
        return;
    };
    let is_guess = |usage: &Usage| usage.certainty == Certainty::Possible;
    let by_index = lookup.index().references(&symbol.to_string(), USES);
    if by_index.complete && !by_index.found.iter().any(is_guess) {
        return;
    }
    let (asked, at) = question(checker, &found, deadline);
    let _work = checker.budget.work();
    let answer = checker
        .services
        .language
        .spots(asked, at, Relation::References);
    if let LspAnswer::Known { value, .. } = answer.await {
        Arc::make_mut(&mut checker.world().lsp_facts).note_uses(symbol.clone(), value);
    }
}

async fn overrides(checker: &Checker, lookup: &Lookup, symbol: &SymbolPath, deadline: Duration) {
    let is_method = symbol.name.contains('.');
    let Some(found) = asked_about(checker, lookup, symbol).filter(|_| is_method) else {
        return;
    };
    let (asked, at) = question(checker, &found, deadline);
    let _work = checker.budget.work();
    let language = &checker.services.language;
    let answer = language.spots(asked, at, Relation::Implementations);
    if let LspAnswer::Known { value, .. } = answer.await {
        Arc::make_mut(&mut checker.world().lsp_facts).note_overrides(symbol.clone(), value);
    }
}

/// Returns the definition of a symbol if a language service can be queried about it.
fn asked_about(checker: &Checker, lookup: &Lookup, symbol: &SymbolPath) -> Option<Found> {
    let is_served = checker.services.language.knows_names(&symbol.file);
    let found = lookup.symbol(symbol).ok()?;
    (is_served && !symbol.is_module()).then_some(found)
}

/// Creates the request for a symbol, at the position of its name.
fn question(checker: &Checker, found: &Found, deadline: Duration) -> (TextRequest, usize) {
    let world = checker.world().snapshot.clone();
    let file = &found.symbol.path.file;
    let asked = TextRequest {
        deadline,
        ..request(&world, file, found.tree.text(), Effort::Fast)
    };
    (asked, found.symbol.name.start)
}

/// Describes where a name is defined, as `from` uses it. If there are several definitions, the
/// intended one comes first. For a name from outside the workspace, the result contains the
/// server's documentation.
pub(crate) async fn definition(checker: &Checker, from: Option<&SymbolPath>, name: &str) -> String {
    let lookup = checker.lookup();
    let defined = lookup.index().definitions(name).len();
    let mention = from.and_then(|from| mention(checker, &lookup, from, name));
    let Some((asked, at)) = mention.filter(|_| defined != 1) else {
        return lookup.definition(name, None);
    };
    let language = &checker.services.language;
    let _work = checker.budget.work();
    if defined == 0 {
        return match language.hover(asked, at).await {
            LspAnswer::Known { tool, value } if !value.is_empty() => {
                let told = cap(&value, TOLD);
                format!("`{name}` is not defined in the workspace. {tool} says of it:\n{told}")
            }
            LspAnswer::Known { .. } | LspAnswer::Unknown { .. } => lookup.definition(name, None),
        };
    }
    let meant = match language.spots(asked, at, Relation::Definitions).await {
        LspAnswer::Known { value, .. } => lookup.symbols_at(&value),
        LspAnswer::Unknown { .. } => Vec::new(),
    };
    match meant.as_slice() {
        [one] => lookup.definition(name, Some(one)),
        [] | [_, _, ..] => lookup.definition(name, None),
    }
}

/// Returns the first occurrence of a name in a symbol, otherwise in the symbol's file.
fn mention(
    checker: &Checker,
    lookup: &Lookup,
    from: &SymbolPath,
    name: &str,
) -> Option<(TextRequest, usize)> {
    let is_served = checker.services.language.knows_names(&from.file);
    let found = lookup.symbol(from).ok().filter(|_| is_served)?;
    let last = name.rsplit(['.', ':']).next().unwrap_or(name).trim();
    let mentions = references(&found.tree, last);
    let is_inside = |at: usize| found.symbol.span.contains(at);
    let inside = mentions.iter().find(|one| is_inside(one.range.start));
    let at = inside.or(mentions.first())?.range.start;
    let (asked, _) = question(checker, &found, LOOK);
    Some((asked, at))
}
