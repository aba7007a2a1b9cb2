//! Finds uses of changed and removed methods on objects whose type is not known, such as those that a
//! library holds, which the run left as they were.

use std::collections::BTreeSet;

use super::attribute_names;
use super::broken::offset;
use crate::check::property_uses::{Turn, uses_as_before, uses_through_base};
use crate::lookup::Lookup;
use crate::task::in_strings::first_of;
use crate::task::stated::{ExplicitEdits, Named};
use starling_index::{Certainty, Usage, is_test_file};
use starling_syntax::{
    Contract, FilePath, Receiver, Symbol, SymbolKind, SymbolPath, SymbolTree, arguments,
};

/// Maximum number of uses of one method that are considered.
const USES_MOST: usize = 400;

/// The states of the workspace before and after the changes of a run.
#[derive(Clone, Copy)]
struct Worlds<'l> {
    before: &'l Lookup,
    after: &'l Lookup,
}

/// Describes the places outside tests that may use what the changes of `files` changed or removed, and
/// that may no longer work. They are not certain to use it: the type of the object is not known, or the
/// use is in a template.
pub(crate) fn left(
    statements: &ExplicitEdits,
    before: &Lookup,
    after: &Lookup,
    files: &[FilePath],
) -> Vec<String> {
    let worlds = Worlds { before, after };
    let mut told = Vec::new();
    let mut gone: BTreeSet<String> = BTreeSet::new();
    for file in files.iter().filter(|file| file.as_str().ends_with(".py")) {
        let Ok(old) = before.tree(file) else {
            continue;
        };
        let new = after.tree(file).ok();
        for symbol in old.symbols().iter().filter(|one| can_be_called(one)) {
            let now = new.as_ref().and_then(|tree| tree.find(&symbol.path.name));
            if now.is_none() {
                told.extend(worlds.left_by_protocol(symbol, new.as_deref()));
            }
            match now {
                Some(now) => {
                    told.extend(worlds.changed(symbol, now));
                    told.extend(worlds.used_as_before(symbol, now));
                }
                None if gone.insert(symbol.path.base_name().to_owned()) => {
                    told.extend(worlds.removed(symbol.path.base_name(), Some(symbol)));
                }
                None => {}
            }
        }
    }
    for stated in &statements.all {
        let named = stated.named();
        let name = named.base_name();
        let is_file = matches!(named, Named::File(_));
        if !is_file && before.index().is_defined(name) && gone.insert(name.to_owned()) {
            told.extend(worlds.removed(name, None));
        }
    }
    told.extend(attribute_names::left(statements, before, after));
    told
}

fn can_be_called(symbol: &Symbol) -> bool {
    let is_callable = matches!(symbol.kind, SymbolKind::Method | SymbolKind::Function);
    is_callable && !symbol.path.name.contains('#')
}

/// Describes the templates that use a name which no code defines any more.
fn in_templates(after: &Lookup, name: &str) -> Option<String> {
    let found = after.index().in_templates(name);
    let places = found.iter().map(|one| format!("{}:{}", one.file, one.line));
    let places = first_of(places.collect());
    (!found.is_empty()).then(|| format!("`{name}` is still mentioned in {places}"))
}

impl Worlds<'_> {
    /// Describes what may still use a removed name, unless something else has it. `symbol` is the removed
    /// function or method, if it was one.
    fn removed(self, name: &str, symbol: Option<&Symbol>) -> Vec<String> {
        if self.after.index().is_defined(name) {
            return Vec::new();
        }
        let fits = |usage: &Usage| match symbol {
            Some(symbol) if symbol.kind == SymbolKind::Function => false,
            Some(symbol) if usage.is_call => self.fits(usage, &symbol.contract) != Some(false),
            Some(_) | None => true,
        };
        let mut uses = self.after.index().reads_of_any(name);
        uses.retain(|usage| !is_test_file(&usage.file) && fits(usage));
        let places = places(&uses);
        let used = (!uses.is_empty()).then(|| format!("`{name}` may still be used at {places}"));
        let mentioned = in_templates(self.after, name);
        used.into_iter().chain(mentioned).collect()
    }

    /// Describes the classes that keep a method which a `Protocol` no longer has. They do not inherit
    /// from the `Protocol`, but defined all of its methods. `now` is the `Protocol`'s file after the run.
    fn left_by_protocol(self, old: &Symbol, now: Option<&SymbolTree>) -> Option<String> {
        let (class, name) = old.path.name.rsplit_once('.')?;
        now?.find(class)?;
        let mut left = self.before.index().implementing(&old.path);
        let is_kept = |one: &SymbolPath| self.after.symbol(one).is_ok();
        left.retain(is_kept);
        let places = left.iter().map(|one| {
            let line = self
                .after
                .symbol(one)
                .map(|found| found.tree.line_of(&found.symbol));
            format!("{}:{}", one.file, line.unwrap_or_default())
        });
        let places = first_of(places.collect());
        let told = || {
            format!(
                "`{name}` is still defined at {places}, in a class that may implement `{class}`"
            )
        };
        (!left.is_empty()).then(told)
    }

    /// Describes the calls that may be of a method whose contract changed, and do not fit it.
    fn changed(self, old: &Symbol, new: &Symbol) -> Option<String> {
        let is_method = old.kind == SymbolKind::Method;
        if !is_method || old.contract.parameters == new.contract.parameters {
            return None;
        }
        let path = &old.path;
        let mut uses = self.after.usages(&path.to_string(), USES_MOST).found;
        uses.retain(|usage| {
            let is_unsure = usage.certainty != Certainty::Certain;
            let is_other = usage.is_call && is_unsure && !path.encloses(&usage.symbol);
            is_other && !is_test_file(&usage.file) && self.is_broken(usage, old, new)
        });
        let places = places(&uses);
        let name = &path.name;
        (!uses.is_empty()).then(|| format!("`{name}` may still be called as before at {places}"))
    }

    /// Describes the places that still read a property that became a method, or call a method that
    /// became a property.
    fn used_as_before(self, old: &Symbol, new: &Symbol) -> Option<String> {
        let turn = Turn::of(&old.contract, &new.contract)?;
        let worlds = (self.before, self.after);
        let through_base = uses_through_base(worlds, &old.path, turn);
        let mut uses = uses_as_before(worlds, &old.path, turn);
        let is_sure = |usage: &Usage| usage.certainty != Certainty::Possible;
        let verb = match through_base.is_empty() && uses.iter().all(is_sure) {
            true => "is",
            false => "may be",
        };
        uses.extend(through_base);
        let places = places(&uses);
        let told = format!("{} at {places}", turn.in_words(&old.path.name, verb));
        (!uses.is_empty()).then_some(told)
    }

    /// Returns whether a call fits the old contract of a method, and either does not fit the new one or
    /// was not looked at and may mean something else under it.
    fn is_broken(self, usage: &Usage, old: &Symbol, new: &Symbol) -> bool {
        if self.fits(usage, &old.contract) == Some(false) {
            return false;
        }
        let Ok(tree) = self.after.tree(&usage.file) else {
            return false;
        };
        let given = arguments(&tree, offset(&tree, usage));
        let receiver = receiver(&old.contract);
        let holds = given
            .as_ref()
            .is_some_and(|given| old.contract.call_holds(&new.contract, given, receiver));
        self.fits(usage, &new.contract) == Some(false)
            || !holds && self.is_untouched(&tree, &usage.symbol)
    }

    /// Returns whether the arguments of a call fit a contract; `None` if they are not known.
    fn fits(self, usage: &Usage, contract: &Contract) -> Option<bool> {
        let tree = self.after.tree(&usage.file).ok()?;
        let given = arguments(&tree, offset(&tree, usage)).filter(|given| !given.is_open)?;
        contract.parameters.as_ref()?;
        Some(contract.misfit(&given, receiver(contract)).is_none())
    }

    fn is_untouched(self, now: &SymbolTree, symbol: &SymbolPath) -> bool {
        let text = |tree: &SymbolTree| {
            let found = tree.find(&symbol.name)?;
            Some(found.span.of(tree.text()).to_owned())
        };
        let before = self.before.tree(&symbol.file).ok();
        before.and_then(|tree| text(&tree)) == text(now)
    }
}

/// Returns how a call through an object passes the first argument.
fn receiver(contract: &Contract) -> Receiver {
    let mut decorators = contract.decorators.iter();
    match decorators.any(|one| one.trim_start_matches('@') == "staticmethod") {
        true => Receiver::Given,
        false => Receiver::Bound,
    }
}

fn places(uses: &[Usage]) -> String {
    let places = uses.iter().map(|one| format!("{}:{}", one.file, one.line));
    first_of(places.collect())
}
