//! Finds methods of related classes that share a name: in a base class, its subclasses and mixins, and
//! in a protocol and the classes that may implement it.
//! If a task renames one of these methods or changes its parameters, the other methods and their
//! callers must change as well.

use std::collections::BTreeSet;

use crate::lookup::Lookup;
use crate::task::asked;
use crate::task::stated::{ExplicitEdits, Named, plain};
use starling_index::{Usage, is_test_file};
use starling_syntax::{SymbolKind, SymbolPath};

/// Maximum number of definitions of a name that are compared.
const DEFINITIONS_MOST: usize = 40;
/// Maximum number of uses of one method that are considered.
const USES_MOST: usize = 200;
/// Maximum number of definitions, and of calls, that are listed.
const LISTED: usize = 12;
/// Maximum number of methods that are listed for one task.
const FAMILIES_MOST: usize = 4;

/// Methods that must be changed together, and their call sites outside tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MethodFamily {
    name: String,
    methods: BTreeSet<SymbolPath>,
    /// The call sites as `file:line in symbol`, sorted.
    calls: Vec<String>,
}

impl MethodFamily {
    /// Returns the family of a method outside tests; `None` if no related class defines a method with
    /// this name.
    pub fn of(lookup: &Lookup, method: &SymbolPath) -> Option<MethodFamily> {
        let methods = related(lookup, method, is_code);
        (methods.len() > 1).then(|| MethodFamily {
            name: method.base_name().to_owned(),
            calls: calls(lookup, &methods),
            methods,
        })
    }

    /// Returns the families of the methods that a task renames or whose parameters it changes.
    pub fn of_task(lookup: &Lookup, task: &str, statements: &ExplicitEdits) -> Vec<MethodFamily> {
        let mut found: Vec<MethodFamily> = Vec::new();
        for method in changed_methods(lookup, task, statements) {
            let is_known = found.iter().any(|one| one.methods.contains(&method));
            if !is_known && found.len() < FAMILIES_MOST {
                found.extend(MethodFamily::of(lookup, &method));
            }
        }
        found
    }

    /// Returns whether all of these methods belong to the family.
    pub fn contains_all(&self, methods: &[SymbolPath]) -> bool {
        methods.iter().all(|one| self.methods.contains(one))
    }

    /// Describes the family: where its methods are defined and called.
    pub fn in_words(&self) -> String {
        let methods: Vec<String> = self.methods.iter().map(ToString::to_string).collect();
        let calls = match self.calls.is_empty() {
            true => String::new(),
            false => format!("; called at {}", listed(&self.calls)),
        };
        format!("`{}` is defined as {}{calls}", self.name, listed(&methods))
    }
}

/// Returns a method and the methods of related classes with the same name, also those in tests.
pub(crate) fn with_related(lookup: &Lookup, method: &SymbolPath) -> BTreeSet<SymbolPath> {
    related(lookup, method, |one| one.file.as_str().ends_with(".py"))
}

/// Returns a method and the methods of related classes with the same name, as far as they count.
fn related(
    lookup: &Lookup,
    method: &SymbolPath,
    counts: fn(&SymbolPath) -> bool,
) -> BTreeSet<SymbolPath> {
    let definitions = lookup.index().definitions_of(method.base_name());
    let candidates = (definitions.into_iter())
        .filter(|one| one.kind == SymbolKind::Method && counts(&one.symbol))
        .map(|one| one.symbol)
        .take(DEFINITIONS_MOST);
    let candidates: Vec<SymbolPath> = candidates.collect();
    let mut pairs = Vec::new();
    for one in &candidates {
        let overriding = lookup.index().overriding(one).into_iter();
        let overriding = overriding.filter(counts);
        pairs.extend(overriding.map(|other| (one.clone(), other)));
        if let Some(members) = members_of_protocol(lookup, one) {
            let others = candidates.iter().filter(|other| *other != one);
            let fitting = others.filter(|other| has_all(lookup, other, &members));
            pairs.extend(fitting.map(|other| (one.clone(), other.clone())));
        }
    }
    let mut methods = BTreeSet::from([method.clone()]);
    let mut count = 0;
    while count < methods.len() {
        count = methods.len();
        for (one, other) in &pairs {
            if methods.contains(one) || methods.contains(other) {
                methods.extend([one.clone(), other.clone()]);
            }
        }
    }
    methods
}

/// Returns the class of a method.
fn class_of(method: &SymbolPath) -> Option<SymbolPath> {
    let (class, _) = method.name.rsplit_once('.')?;
    Some(SymbolPath::new(method.file.clone(), class))
}

/// Returns the methods of the protocol (`typing.Protocol`) that declares a method; `None` if the
/// method's class is no protocol.
fn members_of_protocol(lookup: &Lookup, method: &SymbolPath) -> Option<Vec<String>> {
    let found = lookup.symbol(&class_of(method)?).ok()?;
    let is_protocol = |base: &String| {
        let name = base.split('[').next().unwrap_or_default();
        name.rsplit('.').next() == Some("Protocol")
    };
    let children = found.symbol.children.iter();
    let members = children.map(|child| plain(found.tree.get(*child).path.base_name()));
    let is_it = found.symbol.contract.bases.iter().any(is_protocol);
    is_it.then(|| members.collect())
}

/// Returns whether the class of a method defines all methods of a protocol, so that its objects may be
/// used where the protocol is expected.
fn has_all(lookup: &Lookup, method: &SymbolPath, members: &[String]) -> bool {
    let Some(class) = class_of(method) else {
        return false;
    };
    let defines = |member: &String| {
        let path = SymbolPath::new(class.file.clone(), format!("{}.{member}", class.name));
        lookup.symbol(&path).is_ok()
    };
    members.iter().all(defines)
}

fn is_code(symbol: &SymbolPath) -> bool {
    !is_test_file(&symbol.file) && symbol.file.as_str().ends_with(".py")
}

fn listed(places: &[String]) -> String {
    let shown = places[..places.len().min(LISTED)].join(", ");
    match places.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns the call sites that call, or may call, one of these methods, as `file:line in symbol`.
fn calls(lookup: &Lookup, methods: &BTreeSet<SymbolPath>) -> Vec<String> {
    let mut found = BTreeSet::new();
    for method in methods {
        let uses = lookup.usages(&method.to_string(), USES_MOST).found;
        let indirect = lookup.index().indirect_uses(method).into_iter();
        let all = uses.into_iter().chain(indirect.map(|one| one.usage));
        let is_call = |one: &Usage| one.is_call && !is_test_file(&one.file);
        found.extend(
            all.filter(is_call)
                .map(|one| (one.file, one.line, one.symbol.name)),
        );
    }
    let words = found.into_iter().map(|(file, line, symbol)| {
        let inside = match symbol.as_str() {
            "" => String::new(),
            symbol => format!(" in {symbol}"),
        };
        format!("{file}:{line}{inside}")
    });
    words.collect()
}

/// Returns the methods that a task renames or deletes. If the task is about parameters, also
/// returns the methods that it names.
fn changed_methods(lookup: &Lookup, task: &str, statements: &ExplicitEdits) -> Vec<SymbolPath> {
    let mut found = Vec::new();
    for stated in &statements.all {
        match stated.named() {
            Named::Symbol(path) => found.push(path.clone()),
            Named::Word(word) if word.is_symbol => found.extend(methods(lookup, &word.name)),
            Named::Word(_) | Named::Variable(_) | Named::File(_) => {}
        }
    }
    let about_parameters = asked::speaks_of_parameters(task);
    for (name, has_arguments) in names_of_code(task) {
        if about_parameters || has_arguments {
            found.extend(methods(lookup, name));
        }
    }
    found.retain(|one| {
        let symbol = lookup.symbol(one);
        symbol.is_ok_and(|found| found.symbol.kind == SymbolKind::Method)
    });
    found
}

/// Returns the methods outside tests that have this name.
pub(crate) fn methods(lookup: &Lookup, name: &str) -> Vec<SymbolPath> {
    let found = lookup.index().definitions_of(name).into_iter();
    found
        .filter(|one| one.kind == SymbolKind::Method && is_code(&one.symbol))
        .map(|one| one.symbol)
        .collect()
}

/// Returns the words of a task that are written as code, each with whether arguments in parentheses
/// follow.
fn names_of_code(task: &str) -> Vec<(&str, bool)> {
    let is_part = |c: char| c.is_alphanumeric() || "_.".contains(c);
    let mut found = Vec::new();
    let mut rest = task;
    while let Some(start) = rest.find(is_part) {
        let quoted = rest[..start].ends_with('`');
        rest = &rest[start..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        let name = word.trim_matches('.');
        let arguments = after
            .trim_start_matches('`')
            .strip_prefix('(')
            .map(str::trim_start);
        let is_called = arguments.is_some();
        let has_arguments = arguments.is_some_and(|inside| inside.starts_with(is_part));
        if quoted || is_called || name.contains(['_', '.']) {
            found.push((name, has_arguments));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_code_style_are_found_and_those_with_arguments_are_marked() {
        let task = "Brain.step gets a parameter: `step`(me, taken). Call turn() and see foo_bar.";
        assert_eq!(
            names_of_code(task),
            [
                ("Brain.step", false),
                ("step", true),
                ("turn", false),
                ("foo_bar", false)
            ]
        );
        assert_eq!(names_of_code("hit(amount, by)"), [("hit", true)]);
        assert_eq!(names_of_code("plain words (in brackets)"), []);
    }
}
