//! Finds names of a module that a change rebinds, although code that the author of the change does
//! not own uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::Names;
use super::model::{Binding, BindingKind, Import, Imported, Role, ScopeId, ScopeKind};
use super::undefined::is_built_in;
use starling_syntax::{SymbolId, SymbolPath, SymbolTree};

/// A name whose meaning a change would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebound {
    /// The name, or `*` for an import of all names.
    pub name: String,
    pub how: HowRebound,
    /// The symbols that use the name and are not owned by the author, possibly including the module
    /// body.
    pub users: Vec<SymbolPath>,
}

/// The way in which a change would change the meaning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HowRebound {
    /// A `*` import binds every public name of a module.
    Star,
    /// Python itself uses the name: `__getattr__`, `__all__`.
    Special,
    /// The change binds a name that the module already binds.
    Bound,
    /// The change binds a name that is built into Python.
    BuiltIn,
    /// The change binds a name that a `*` import may already bind.
    FromStar,
    /// The change removes the binding of the name.
    TakenAway,
}

impl fmt::Display for HowRebound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HowRebound::Star => "the import would bind every public name of a module",
            HowRebound::Special => "Python itself uses that name",
            HowRebound::Bound => "the module already binds it to something else",
            HowRebound::BuiltIn => "the name is built into Python",
            HowRebound::FromStar => "a `*` import may already bind it",
            HowRebound::TakenAway => "its binding would be removed",
        })
    }
}

/// The object that a module-level name refers to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum NameMeaning {
    /// An imported object, by its absolute or relative dotted path.
    Imported {
        level: u32,
        path: String,
    },
    /// A function or a class.
    Defined,
    Assigned,
}

/// The bindings of a name at the top level of the module.
#[derive(Debug, Default)]
struct NameBindings {
    /// The meanings, each with the number of bindings.
    meanings: BTreeMap<NameMeaning, usize>,
    /// The meanings that come from bindings in symbols that the author does not own.
    foreign: BTreeSet<NameMeaning>,
    /// Byte offsets of the bindings.
    places: Vec<u32>,
}

/// Returns the module-level names whose meaning the change from `before` to `after` would change
/// for symbols that the author does not own (`is_own` is false). Any author may bind a name that
/// the module does not bind and that is not built in.
pub fn rebound(
    before: &SymbolTree,
    after: &SymbolTree,
    is_own: impl Fn(&SymbolPath) -> bool,
) -> Vec<Rebound> {
    let (old, new) = (Names::read(before), Names::read(after));
    let (bound, rebinds) = (
        module_bindings(&old, before, &is_own),
        module_bindings(&new, after, &is_own),
    );
    let users = |name: &str| users(&old, before, name, &is_own);
    let mut found = Vec::new();
    let stars = stars(&old);
    // A syntax error makes the tree of the file unreliable: fixing the error can reveal bindings
    // that already existed.
    let is_broken = !before.errors().is_empty();
    let lines: BTreeSet<&str> = before.text().lines().map(str::trim).collect();
    let is_written = |at: &u32| {
        let (head, tail) = after.text().split_at(*at as usize);
        let start = head.rfind('\n').map_or(0, |at| at + 1);
        let line = &after.text()[start..head.len() + tail.find('\n').unwrap_or(tail.len())];
        !lines.contains(line.trim())
    };
    if !stars_are_known(&new, &stars) {
        found.push(Rebound {
            name: "*".to_owned(),
            how: HowRebound::Star,
            users: Vec::new(),
        });
    }
    for (name, now) in &rebinds {
        let known = bound.get(name);
        if !brings_new(known, now) || is_broken && !now.places.iter().any(is_written) {
            continue;
        }
        let is_special = name.len() > 4 && name.starts_with("__") && name.ends_with("__");
        let how = match known {
            _ if is_special => HowRebound::Special,
            Some(known) if !known.foreign.is_empty() => HowRebound::Bound,
            Some(_) => continue,
            None if is_built_in(name) => HowRebound::BuiltIn,
            None if !stars.is_empty() => HowRebound::FromStar,
            None => continue,
        };
        let users = users(name);
        // Other modules may import a name that the module binds.
        let is_used = matches!(how, HowRebound::Special | HowRebound::Bound) || !users.is_empty();
        if is_used {
            found.push(Rebound {
                name: (*name).to_owned(),
                how,
                users,
            });
        }
    }
    for (name, known) in bound.iter().filter(|_| !is_broken) {
        let left = rebinds.get(name).map(|now| &now.meanings);
        let is_left = |meaning| left.is_some_and(|left| left.contains_key(meaning));
        if !known.foreign.iter().all(is_left) {
            found.push(Rebound {
                name: (*name).to_owned(),
                how: HowRebound::TakenAway,
                users: users(name),
            });
        }
    }
    found
}

/// Returns whether the bindings `now` of a name include a binding that the bindings `known` did not
/// include.
fn brings_new(known: Option<&NameBindings>, now: &NameBindings) -> bool {
    let Some(known) = known else { return true };
    now.meanings.iter().any(|(meaning, count)| {
        let before = known.meanings.get(meaning).copied().unwrap_or_default();
        match meaning {
            // Of several imports, the last one determines the meaning: `try: import a as x`,
            // `except: import b as x`.
            NameMeaning::Imported { .. } => {
                before == 0 || *count > before && known.meanings.len() > 1
            }
            NameMeaning::Defined | NameMeaning::Assigned => *count > before,
        }
    })
}

fn module_bindings<'n>(
    names: &'n Names,
    tree: &SymbolTree,
    is_own: &impl Fn(&SymbolPath) -> bool,
) -> BTreeMap<&'n str, NameBindings> {
    let mut bound: BTreeMap<&str, NameBindings> = BTreeMap::new();
    for binding in names.bindings_of(ScopeId::MODULE) {
        let name = names.name(binding.name);
        if name == "_" || !binding.gives() {
            continue;
        }
        let is_own = is_own(&binder(names, tree, binding));
        let (entry, meaning) = (bound.entry(name).or_default(), meaning(names, binding));
        if !is_own {
            entry.foreign.insert(meaning.clone());
        }
        *entry.meanings.entry(meaning).or_default() += 1;
        let found = names.occurrence(binding.occurrence);
        entry.places.extend(found.map(|found| found.at));
    }
    bound
}

/// Returns the symbol whose definition binds a name, or else the symbol that contains the binding.
fn binder(names: &Names, tree: &SymbolTree, binding: &Binding) -> SymbolPath {
    let symbol = match binding.kind {
        BindingKind::Class(symbol) | BindingKind::Function(symbol) => symbol,
        BindingKind::Import(_)
        | BindingKind::Parameter { .. }
        | BindingKind::Value { .. }
        | BindingKind::Attribute { .. }
        | BindingKind::Global
        | BindingKind::Nonlocal => {
            let found = names.occurrence(binding.occurrence);
            names.owner(found.map_or(0, |found| found.at))
        }
    };
    tree.get(SymbolId(symbol.index())).path.clone()
}

fn meaning(names: &Names, binding: &Binding) -> NameMeaning {
    match binding.kind {
        BindingKind::Import(id) => names
            .import(id)
            .map_or(NameMeaning::Assigned, |import| imported(names, import)),
        BindingKind::Class(_) | BindingKind::Function(_) => NameMeaning::Defined,
        BindingKind::Parameter { .. }
        | BindingKind::Value { .. }
        | BindingKind::Attribute { .. }
        | BindingKind::Global
        | BindingKind::Nonlocal => NameMeaning::Assigned,
    }
}

fn imported(names: &Names, import: &Import) -> NameMeaning {
    let mut parts: Vec<&str> = names.module_parts(import).collect();
    match import.what {
        Imported::First => parts.truncate(1),
        Imported::Whole | Imported::Star => {}
        Imported::Name(name) => parts.push(names.name(name)),
    }
    NameMeaning::Imported {
        level: import.level,
        path: parts.join("."),
    }
}

/// Returns the modules from which the module imports all names (`from m import *`).
fn stars(names: &Names) -> BTreeSet<NameMeaning> {
    let stars = names.imports().iter();
    stars
        .filter(|import| import.scope == ScopeId::MODULE && import.what == Imported::Star)
        .map(|import| imported(names, import))
        .collect()
}

fn stars_are_known(names: &Names, known: &BTreeSet<NameMeaning>) -> bool {
    stars(names).is_subset(known)
}

/// Returns the symbols that read a name of the module, except those of the author.
fn users(
    names: &Names,
    tree: &SymbolTree,
    name: &str,
    is_own: &impl Fn(&SymbolPath) -> bool,
) -> Vec<SymbolPath> {
    let Some(id) = names.find(name) else {
        return Vec::new();
    };
    let reads = |role| {
        matches!(
            role,
            Role::Read | Role::Call | Role::Delete | Role::Export | Role::Declared
        )
    };
    let occurrences = names.occurrences().iter();
    let used = occurrences.filter(|found| {
        found.name == id
            && reads(found.role)
            && !found.receiver().is_some()
            && !is_local(names, found.scope, id)
    });
    let symbols: BTreeSet<usize> = used.map(|found| names.owner(found.at).index()).collect();
    let paths = symbols
        .into_iter()
        .map(|symbol| &tree.get(SymbolId(symbol)).path);
    paths.filter(|path| !is_own(path)).cloned().collect()
}

/// Returns whether a name that is read in a scope is local to a function. A class body reads the
/// module's name until it binds its own.
fn is_local(names: &Names, mut scope: ScopeId, name: super::NameId) -> bool {
    while let Some(found) = names.scope(scope).filter(|_| scope != ScopeId::MODULE) {
        let mut bindings = names.bindings(scope, name).iter().peekable();
        if found.kind != ScopeKind::Class && bindings.peek().is_some() {
            return !bindings.any(|binding| binding.kind == BindingKind::Global);
        }
        scope = found.parent;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_syntax::FilePath;

    const BASE: &str = "import json\nfrom math import sqrt\n\n\ndef mine(x):\n    return x\n\n\n\
                        def theirs(xs):\n    return json.dumps([sum(xs), lacking])\n\n\n\
                        def shadows(max):\n    return max(1)\n";

    fn tree(text: &str) -> SymbolTree {
        SymbolTree::parse(FilePath::new("a.py"), text.into())
    }

    /// Returns the reported names if the agent that owns the symbol `mine` makes the change.
    fn found(before: &str, after: &str) -> Vec<(String, HowRebound, Vec<String>)> {
        let is_mine = |path: &SymbolPath| path.name == "mine";
        let found = rebound(&tree(before), &tree(after), is_mine).into_iter();
        found
            .map(|one| {
                let users = one.users.iter().map(|user| user.name.clone());
                (one.name, one.how, users.collect())
            })
            .collect()
    }

    fn with_import(statement: &str) -> String {
        format!("{statement}\n{BASE}")
    }

    #[test]
    fn import_that_rebinds_a_used_name_is_reported() {
        use HowRebound::{Bound, BuiltIn, Special, Star};
        for (statement, name, how, users) in [
            (
                "from math import prod as sum",
                "sum",
                BuiltIn,
                &["theirs"][..],
            ),
            ("import os as json", "json", Bound, &["theirs"]),
            ("from os import json", "json", Bound, &["theirs"]),
            ("import json.decoder as json", "json", Bound, &["theirs"]),
            ("from .math import sqrt", "sqrt", Bound, &[]),
            ("from x import theirs", "theirs", Bound, &[]),
            ("from x import *", "*", Star, &[]),
            (
                "from x import y as __getattr__",
                "__getattr__",
                Special,
                &[],
            ),
        ] {
            let users: Vec<String> = users.iter().map(|user| (*user).to_owned()).collect();
            let wanted = (name.to_owned(), how, users);
            assert_eq!(
                found(BASE, &with_import(statement)),
                [wanted],
                "{statement}"
            );
        }
    }

    #[test]
    fn import_of_an_unused_or_equal_name_is_not_reported() {
        for statement in [
            "import os",
            "import json",
            "import json.decoder",
            "from math import sqrt, prod",
            "from math import sqrt as sqrt",
            "from x import max",
            "from x import lacking",
            "from x import mine",
            "if TYPE_CHECKING:\n    from math import sqrt",
        ] {
            assert_eq!(found(BASE, &with_import(statement)), [], "{statement}");
        }
        let inside = BASE.replace(
            "    return x",
            "    from math import prod as sum\n    return x",
        );
        assert_eq!(found(BASE, &inside), []);
    }

    #[test]
    fn definition_or_walrus_that_rebinds_a_used_name_is_reported() {
        let added = |code: &str| found(BASE, &format!("{BASE}\n\n{code}"));
        let one = |name: &str, how| [(name.to_owned(), how, vec!["theirs".to_owned()])];
        assert_eq!(
            added("def sum(xs):\n    return 0\n"),
            one("sum", HowRebound::BuiltIn)
        );
        assert_eq!(
            added("class json:\n    pass\n"),
            one("json", HowRebound::Bound)
        );
        assert_eq!(
            added("def helper(x=(sum := max)):\n    pass\n"),
            one("sum", HowRebound::BuiltIn)
        );
        assert_eq!(added("def helper():\n    return 0\n"), []);
        assert_eq!(added("@helper\ndef _():\n    return 0\n"), []);
    }

    #[test]
    fn names_equal_after_unicode_normalization_are_the_same_name() {
        let added = |code: &str| found(BASE, &format!("{BASE}\n\n{code}"));
        let one = |name: &str, how, users: &[&str]| {
            let users = users.iter().map(|user| (*user).to_owned()).collect();
            [(name.to_owned(), how, users)]
        };
        assert_eq!(
            added("def \u{ff53}um(xs):\n    return 0\n"),
            one("sum", HowRebound::BuiltIn, &["theirs"])
        );
        assert_eq!(
            added("def \u{ff54}heirs(xs):\n    return 0\n"),
            one("theirs", HowRebound::Bound, &[])
        );
        assert_eq!(
            added("def helper(x=(\u{1d693}son := None)):\n    pass\n"),
            one("json", HowRebound::Bound, &["theirs"])
        );
    }

    #[test]
    fn name_that_a_star_import_may_bind_is_reported() {
        let before = format!("from x import *\n{BASE}");
        let after = format!("from x import *\nfrom y import lacking\n{BASE}");
        let users = vec!["theirs".to_owned()];
        let wanted = ("lacking".to_owned(), HowRebound::FromStar, users);
        assert_eq!(found(&before, &after), [wanted]);
        let again = format!("from x import *\nfrom x import *\n{BASE}");
        assert_eq!(found(&before, &again), []);
    }

    #[test]
    fn second_import_that_overrides_a_conditional_import_is_reported() {
        let choice = "try:\n    import quick as json\nexcept ImportError:\n    import json\n";
        let before = BASE.replace("import json\n", choice);
        let after = before.replace("\nfrom math", "\nimport json\nfrom math");
        let wanted = (
            "json".to_owned(),
            HowRebound::Bound,
            vec!["theirs".to_owned()],
        );
        assert_eq!(found(&before, &after), [wanted]);
    }

    #[test]
    fn name_bound_inside_broken_syntax_is_not_reported_as_newly_bound() {
        let broken =
            "def mine(:\n    return x\n\n\nimport json\n\n\ndef sum(xs):\n    return json\n";
        let whole = broken.replace("mine(:", "mine(x):");
        assert_eq!(found(broken, &whole), []);
        let after = format!("import os as json\n{whole}");
        assert!(
            found(broken, &after)
                .iter()
                .any(|(name, ..)| name == "json")
        );
    }

    #[test]
    fn removed_import_that_others_use_is_reported() {
        let after = BASE.replace("import json\n", "");
        let wanted = (
            "json".to_owned(),
            HowRebound::TakenAway,
            vec!["theirs".to_owned()],
        );
        assert_eq!(found(BASE, &after), [wanted]);
        assert_eq!(
            found(BASE, &BASE.replace("import json", "import os, json")),
            []
        );
    }

    #[test]
    fn owner_may_rename_and_delete_its_own_symbol() {
        assert_eq!(found(BASE, &BASE.replace("def mine", "def other")), []);
        let start = BASE.find("def mine").unwrap();
        let end = BASE.find("def theirs").unwrap();
        let without = format!("from x import mine\n{}{}", &BASE[..start], &BASE[end..]);
        assert_eq!(found(BASE, &without), []);
    }
}
