//! Checks for further effects of a rename or a deletion: on attributes with the same name, and on code that
//! runs only because a definition exists.

use super::uses::offset;
use crate::lookup::Lookup;
use crate::task::whole_word::is_word_part;
use starling_index::{Position, Usage, binds, is_built_in, is_common, sets_attribute};
use starling_syntax::{SymbolKind, SymbolPath};

/// Base classes from outside the project that do not register their subclasses. `is_plain` adds the
/// exception classes.
const PLAIN_BASES: [&str; 9] = [
    "ABC",
    "Generic",
    "NamedTuple",
    "Protocol",
    "TypedDict",
    "dict",
    "list",
    "object",
    "str",
];

/// Returns whether an attribute may also refer to an unrelated class, as `x.f` does for `x: A | B`.
pub(super) fn means_another(lookup: &Lookup, usage: &Usage, related: &[SymbolPath]) -> bool {
    let Ok(tree) = lookup.tree(&usage.file) else {
        return false;
    };
    let at = offset(&tree, usage);
    let line = tree.text()[..at].rfind('\n').map_or(0, |end| end + 1);
    let definitions = lookup.index().definition_at(&Position {
        file: usage.file.clone(),
        line: usage.line,
        column: tree.text()[line..at].chars().count() as u32 + 1,
    });
    let name = related.first().map_or("", SymbolPath::base_name);
    definitions.is_ok_and(|definitions| {
        let mut found = definitions.found.iter().map(|one| &one.symbol);
        let is_other =
            |one: &SymbolPath| !related.contains(one) && one.base_name() == name && !is_stub(one);
        definitions.certain && found.any(is_other)
    })
}

fn is_stub(symbol: &SymbolPath) -> bool {
    symbol.file.as_str().ends_with(".pyi")
}

/// Checks that a name is not a private name (`__name`), which Python mangles inside a class.
pub(super) fn not_private(to: &str) -> Result<(), String> {
    match to.starts_with("__") && !to.ends_with("__") {
        true => Err(format!(
            "Python changes the name `{to}` in each class, so other code cannot use it"
        )),
        false => Ok(()),
    }
}

/// Checks that no code uses a private name of a class in its mangled form: `_Class__name`.
///
/// # Errors
/// Returns a message that names the file with the private name.
pub(super) fn no_private_name_of(lookup: &Lookup, class: &str) -> Result<(), String> {
    let prefix = format!("_{}__", class.trim_start_matches('_'));
    let mut files = lookup.files().iter();
    let user = files.find(|file| {
        let text = lookup.index().snapshot().read(file);
        let is_used = |text: &str| {
            let mut found = text.match_indices(&prefix);
            found.any(|(at, _)| !text[..at].ends_with(is_word_part))
        };
        file.as_str().ends_with(".py") && text.is_ok_and(|text| is_used(&text))
    });
    match user {
        Some(file) => Err(format!("{file} uses a name with `{prefix}`")),
        None => Ok(()),
    }
}

/// Checks the base classes of every class that defines a method with this name. Each base must be defined in
/// the project or imported from outside.
///
/// # Errors
/// Returns a message that names a class with a computed base, because this class may be a subclass of the
/// method's class.
pub(super) fn no_computed_base(
    lookup: &Lookup,
    name: &str,
    related: &[SymbolPath],
) -> Result<(), String> {
    let definitions = lookup.index().definitions_of(name).into_iter();
    let methods = definitions.filter(|one| one.kind == SymbolKind::Method);
    for method in methods
        .map(|one| one.symbol)
        .filter(|one| !related.contains(one))
    {
        let found = lookup.symbol(&method)?;
        let class = found.symbol.parent.map(|id| found.tree.get(id));
        let Some(class) = class.filter(|class| class.kind == SymbolKind::Class) else {
            continue;
        };
        let is_computed = |base: &&String| {
            let base = base.split('[').next().unwrap_or(base).trim();
            let root = base.split('.').next().unwrap_or(base);
            let is_name = base
                .chars()
                .all(|c| c.is_alphanumeric() || "_.".contains(c));
            let is_bound = binds(&found.tree, root) || is_built_in(root);
            !(base.contains('=') || is_name && is_bound)
        };
        if let Some(base) = class.contract.bases.iter().find(is_computed) {
            return Err(format!(
                "{} has the base `{base}`, so its `{name}` may override this one",
                class.path
            ));
        }
    }
    Ok(())
}

/// Checks that no attribute of a class or a related class already has the new name.
///
/// # Errors
/// Returns a message that names the class with the attribute.
pub(super) fn free_in_kin(lookup: &Lookup, class: &SymbolPath, to: &str) -> Result<(), String> {
    for one in lookup.index().kin(class) {
        let found = lookup.symbol(&one)?;
        if sets_attribute(&found.tree, to, found.symbol.span) {
            return Err(format!("{one} or its objects already have the name `{to}`"));
        }
    }
    Ok(())
}

/// Checks that no base class outside of the project has a member with the new name.
///
/// # Errors
/// Returns a message that names the base class.
pub(super) fn free_in_outside_bases(
    lookup: &Lookup,
    class: &SymbolPath,
    to: &str,
) -> Result<(), String> {
    for one in lookup.index().kin(class) {
        let found = lookup.symbol(&one)?;
        for base in &found.symbol.contract.bases {
            let base = base.split('[').next().unwrap_or(base);
            let base = base.rsplit('.').next().unwrap_or(base).trim();
            let definitions = lookup.index().definitions_of(base).into_iter();
            let is_own = definitions
                .into_iter()
                .any(|one| one.kind == SymbolKind::Class);
            if !base.contains('=') && !is_own && may_have(base, to) {
                return Err(format!(
                    "`{base}`, a base class of {one}, has or may have the name `{to}`"
                ));
            }
        }
    }
    Ok(())
}

/// Returns whether a class from outside the project has a member with this name, or whether an unknown
/// class may have it, because the name is common.
fn may_have(base: &str, name: &str) -> bool {
    match base {
        "ABC" | "Generic" | "Protocol" | "TypedDict" | "object" => false,
        "NamedTuple" => ["count", "index"].contains(&name),
        _ if base.ends_with("Enum") || base.ends_with("Flag") => ["name", "value"].contains(&name),
        _ if is_exception(base) => ["add_note", "args", "with_traceback"].contains(&name),
        _ => is_common(name),
    }
}

/// Which base classes count as registering their subclasses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registering {
    /// Classes of the project that visibly register their subclasses.
    Known,
    /// Also all unknown classes from outside the project.
    Possible,
}

/// Checks that no base class of a class registers its subclasses or searches for them.
///
/// # Errors
/// Returns a message that names the registering base class.
pub(super) fn no_registering_base(
    lookup: &Lookup,
    class: &SymbolPath,
    registering: Registering,
) -> Result<(), String> {
    let name = class.base_name();
    let why = |base: &str| {
        format!("`{base}`, a base class of `{name}`, may register it for use under its name")
    };
    let mut line = vec![class.clone()];
    let mut next = 0;
    while let Some(one) = line.get(next).cloned() {
        next += 1;
        let found = lookup.symbol(&one)?;
        let hook = format!("{}.__init_subclass__", one.name);
        if one != *class && found.tree.find(&hook).is_some() {
            return Err(why(&one.name));
        }
        for base in &found.symbol.contract.bases {
            if let Some((_, meta)) = base.split_once("metaclass=") {
                match meta.ends_with("ABCMeta") {
                    true => continue,
                    false => return Err(why(meta)),
                }
            }
            let base = base.split('[').next().unwrap_or(base);
            let last = base.rsplit('.').next().unwrap_or(base);
            let definitions = lookup.index().definitions_of(last).into_iter();
            let classes = definitions.filter(|one| one.kind == SymbolKind::Class);
            let own: Vec<SymbolPath> = classes.map(|one| one.symbol).collect();
            let is_outside = own.is_empty() && registering == Registering::Possible;
            if is_outside && !is_plain(last) {
                return Err(why(last));
            }
            line.extend(
                own.into_iter()
                    .filter(|base| !line.contains(base))
                    .collect::<Vec<_>>(),
            );
        }
    }
    match line.get(1) {
        Some(base) if lookup.index().mentions("__subclasses__") => Err(why(&base.name)),
        Some(_) | None => Ok(()),
    }
}

fn is_plain(base: &str) -> bool {
    PLAIN_BASES.contains(&base) || is_exception(base)
}

fn is_exception(base: &str) -> bool {
    const EXCEPTIONS: [&str; 3] = ["Error", "Exception", "Warning"];
    EXCEPTIONS.iter().any(|ending| base.ends_with(ending))
}
