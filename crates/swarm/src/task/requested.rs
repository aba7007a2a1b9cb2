//! Resolves the names of a refactoring that the user requests exactly.

use crate::lookup::Lookup;
use crate::task::refactoring::Refactoring;
use crate::task::stated::{ExplicitEdit, ExplicitEdits, KeptStrings, Named, is_identifier};
use starling_index::sets_attribute;
use starling_syntax::{SymbolKind, SymbolPath};

/// Maximum number of symbols that are listed if a name is ambiguous.
const LISTED: usize = 8;

/// The keywords of Python, which cannot be names.
const KEYWORDS: &str = "False None True and as assert async await break class continue def del elif else \
                        except finally for from global if import in is lambda nonlocal not or pass \
                        raise return try while with yield";

/// Returns the rename or deletion that a refactoring asks for.
///
/// # Errors
/// Returns a message if the name is not that of one symbol or variable, or if the new name is no
/// identifier.
pub(crate) fn requested(
    lookup: &Lookup,
    refactoring: &Refactoring,
) -> Result<ExplicitEdit, String> {
    match refactoring {
        Refactoring::Rename { symbol, to, .. } => {
            let from = named(lookup, symbol)?;
            if !is_identifier(to) || KEYWORDS.split_whitespace().any(|one| one == to) {
                return Err(format!("`{to}` is no name for a symbol"));
            }
            if to == from.base_name() {
                return Err(format!("`{symbol}` is already called `{to}`"));
            }
            let to = to.clone();
            Ok(ExplicitEdit::Renamed { from, to })
        }
        Refactoring::Delete { symbol } => {
            let what = named(lookup, symbol)?;
            Ok(ExplicitEdit::Deleted { what })
        }
    }
}

/// Returns what a task consists of if it is this refactoring. Empty if its names cannot be resolved.
pub(crate) fn whole_task(lookup: &Lookup, refactoring: &Refactoring) -> ExplicitEdits {
    let all: Vec<ExplicitEdit> = requested(lookup, refactoring).into_iter().collect();
    let kept = match refactoring.leaves_doubts() {
        true => KeptStrings::all(),
        false => KeptStrings::default(),
    };
    ExplicitEdits {
        are_whole_task: !all.is_empty(),
        all,
        kept,
        unsure_uses_stay: refactoring.leaves_doubts(),
        absent: Vec::new(),
    }
}

/// Returns the symbol or the variable of a module with this name, with or without its file.
///
/// # Errors
/// Returns a message if there is none, or if there are several, which are listed.
pub(crate) fn named(lookup: &Lookup, name: &str) -> Result<Named, String> {
    let name = name.trim_start_matches('#').trim_end_matches("()");
    let variables = lookup.index().variables(name);
    if name.contains("::") {
        let path: SymbolPath = name.parse().map_err(|error| format!("`{name}`: {error}"))?;
        return match (lookup.symbol(&path), variables.into_iter().next()) {
            (Ok(_), _) if path.is_module() => {
                Err(format!("{} is a file: name a symbol in it", path.file))
            }
            (Ok(_), _) => Ok(Named::Symbol(path)),
            (Err(_), Some(variable)) => Ok(Named::Variable(variable)),
            (Err(why), None) => Err(why),
        };
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_it = |path: &SymbolPath| {
        let rest = path.name.strip_suffix(name);
        let is_stub = path.file.as_str().ends_with(".pyi");
        !is_stub && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let definitions = lookup.index().definitions_of(last).into_iter();
    let symbols: Vec<SymbolPath> = definitions.map(|one| one.symbol).filter(is_it).collect();
    match (symbols.as_slice(), variables.as_slice()) {
        ([symbol], []) => Ok(Named::Symbol(symbol.clone())),
        ([], [variable]) => Ok(Named::Variable(variable.clone())),
        ([], []) => Err(none_of_this_name(lookup, name)),
        (symbols, variables) => {
            let variables = variables.iter();
            let variables = variables.map(|one| format!("{}::{}", one.file, one.name));
            let all = symbols.iter().map(ToString::to_string).chain(variables);
            let all: Vec<String> = all.collect();
            let more = match all.len().saturating_sub(LISTED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let shown = all[..all.len().min(LISTED)].join(", ");
            Err(format!(
                "several symbols are called `{name}`: {shown}{more}; name one of them with its file"
            ))
        }
    }
}

/// Explains that no symbol or variable of a module has this name.
fn none_of_this_name(lookup: &Lookup, name: &str) -> String {
    if let Some(class) = class_with_attribute(lookup, name) {
        return format!(
            "`{name}` is an attribute, set in {class}: only functions, methods, classes and the variables of \
             modules are renamed or deleted by rule; `starling run` takes it as a task"
        );
    }
    match lookup.index().nearest_name(name) {
        Some(near) => format!("there is no symbol `{name}`; did you mean `{near}`?"),
        None => format!("there is no symbol `{name}`"),
    }
}

/// Returns the class whose body or methods set the attribute `name`, such as `Rank.CAPTAIN`.
fn class_with_attribute(lookup: &Lookup, name: &str) -> Option<SymbolPath> {
    let (class, attribute) = name.rsplit_once('.')?;
    let definitions = lookup.index().definitions_of(class).into_iter();
    let mut classes = definitions.filter(|one| one.kind == SymbolKind::Class);
    let sets = |class: &SymbolPath| {
        let found = lookup.symbol(class);
        found.is_ok_and(|found| sets_attribute(&found.tree, attribute, found.symbol.span))
    };
    classes.find(|one| sets(&one.symbol)).map(|one| one.symbol)
}
