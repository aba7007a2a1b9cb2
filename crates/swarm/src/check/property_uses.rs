//! Finds code that a change of a property breaks: code that still reads a property after it became a method,
//! or still calls a method after it became a property. The code may use a base class of which only a subclass
//! changes. Apart from tests, no other check finds such code, because all names stay defined and all
//! arguments fit.

use crate::lookup::Lookup;
use starling_index::{Certainty, Usage, is_test_file};
use starling_syntax::{Contract, FilePath, Symbol, SymbolKind, SymbolPath, SymbolTree};

/// Maximum number of uses of one symbol that are checked.
const USES_MOST: usize = 200;
/// Maximum number of methods with the same name that a new method is compared with.
const OVERRIDDEN_MOST: usize = 40;

/// The direction of a change between property and method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    ToMethod,
    ToProperty,
}

impl Turn {
    pub(crate) fn of(old: &Contract, new: &Contract) -> Option<Turn> {
        if old.becomes_plain_function(new) {
            return Some(Turn::ToMethod);
        }
        new.becomes_plain_function(old).then_some(Turn::ToProperty)
    }

    /// Returns whether the change breaks a use that was correct before.
    pub(crate) fn breaks(self, is_call: bool) -> bool {
        match self {
            Turn::ToMethod => !is_call,
            Turn::ToProperty => is_call,
        }
    }

    /// Describes the broken uses. `verb` is "is" for certain uses and "may be" for uncertain uses.
    pub(crate) fn in_words(self, name: &str, verb: &str) -> String {
        match self {
            Turn::ToMethod => {
                format!("`{name}` became a method and {verb} read without a call")
            }
            Turn::ToProperty => format!("`{name}` became a property and {verb} called"),
        }
    }
}

/// A use that the change between property and method breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BrokenUse {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    pub message: String,
}

/// Returns the uses outside tests that the changes of `files` break. Leaves out uses on objects of unknown
/// type.
pub(crate) fn broken_uses(
    (before, after): (&Lookup, &Lookup),
    files: &[FilePath],
) -> Vec<BrokenUse> {
    let mut found = Vec::new();
    for file in files {
        let (Ok(old), Ok(new)) = (before.tree(file), after.tree(file)) else {
            continue;
        };
        for symbol in new.symbols() {
            let turn = earlier((before, after), &old, symbol)
                .and_then(|earlier| Turn::of(&earlier, &symbol.contract));
            let Some(turn) = turn else {
                continue;
            };
            let mut uses = uses_as_before((before, after), &symbol.path, turn);
            uses.retain(|usage| usage.certainty != Certainty::Possible);
            let through_base = uses_through_base((before, after), &symbol.path, turn);
            let all = uses.into_iter().map(|usage| (usage, "is"));
            let all = all.chain(through_base.into_iter().map(|usage| (usage, "may be")));
            found.extend(all.map(|(usage, verb)| BrokenUse {
                message: turn.in_words(&symbol.path.name, verb),
                file: usage.file,
                line: usage.line,
            }));
        }
    }
    found
}

/// Returns the contract that a symbol had before the change. For a new method, returns the contract of the
/// method that it overrides.
fn earlier(
    (before, after): (&Lookup, &Lookup),
    old: &SymbolTree,
    symbol: &Symbol,
) -> Option<Contract> {
    if let Some(known) = old.find(&symbol.path.name) {
        return Some(known.contract.clone());
    }
    if symbol.kind != SymbolKind::Method {
        return None;
    }
    let others = before.index().definitions_of(symbol.path.base_name());
    let mut methods = others
        .into_iter()
        .filter(|one| one.kind == SymbolKind::Method)
        .take(OVERRIDDEN_MOST);
    let overridden = methods.find_map(|one| {
        let overriding = after.index().overriding(&one.symbol);
        let symbol = overriding.contains(&symbol.path).then_some(one.symbol)?;
        before.symbol(&symbol).ok()
    });
    overridden.map(|found| found.symbol.contract)
}

/// Returns the broken uses outside tests, in lines that the change left as they were.
pub(crate) fn uses_as_before(
    (before, after): (&Lookup, &Lookup),
    symbol: &SymbolPath,
    turn: Turn,
) -> Vec<Usage> {
    let mut uses = after.usages(&symbol.to_string(), USES_MOST).found;
    uses.retain(|usage| is_broken(before, usage, symbol, turn));
    uses
}

/// Returns the broken uses outside tests, in unchanged lines, that name the method or property of a base
/// class but may reach `symbol`.
pub(crate) fn uses_through_base(
    (before, after): (&Lookup, &Lookup),
    symbol: &SymbolPath,
    turn: Turn,
) -> Vec<Usage> {
    let indirect = after.index().indirect_uses(symbol).into_iter();
    let uses = indirect.map(|one| one.usage).take(USES_MOST);
    uses.filter(|usage| is_broken(before, usage, symbol, turn))
        .collect()
}

fn is_broken(before: &Lookup, usage: &Usage, symbol: &SymbolPath, turn: Turn) -> bool {
    let is_other = !usage.is_import && !symbol.encloses(&usage.symbol);
    let stood = || {
        let text = before.index().snapshot().read(&usage.file).ok();
        text.is_some_and(|text| text.lines().any(|line| line.trim() == usage.text))
    };
    turn.breaks(usage.is_call) && is_other && !is_test_file(&usage.file) && stood()
}
