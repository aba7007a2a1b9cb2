//! What else a rename or a deletion can change: attributes of the same name, and code that runs because a
//! definition exists.

use crate::lookup::Lookup;
use starling_index::sets_attribute;
use starling_syntax::{SymbolKind, SymbolPath};

/// Base classes from outside the project that do nothing with their subclasses. Exceptions are such, too.
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

/// Checks that neither the class of a method nor a related class has an attribute with the new name.
///
/// # Errors
/// Returns a message that names the class.
pub(super) fn free_in_kin(lookup: &Lookup, class: &SymbolPath, to: &str) -> Result<(), String> {
    for one in lookup.index().kin(class) {
        let found = lookup.symbol(&one)?;
        if sets_attribute(&found.tree, to, found.symbol.span) {
            return Err(format!("{one} or its objects already have the name `{to}`"));
        }
    }
    Ok(())
}

/// Which base classes may do something with their subclasses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registering {
    /// Those of the project that do so.
    Known,
    /// Also those from outside the project, of which nothing is known.
    Possible,
}

/// Checks that no base class of a class is told of its subclasses, or looks for them.
///
/// # Errors
/// Returns a message that names the base class.
pub(super) fn not_registered(
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
    const EXCEPTIONS: [&str; 3] = ["Error", "Exception", "Warning"];
    PLAIN_BASES.contains(&base) || EXCEPTIONS.iter().any(|ending| base.ends_with(ending))
}
