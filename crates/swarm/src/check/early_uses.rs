//! Finds uses of a new name in a workspace that does not define the name yet. In a rename, a use of
//! the new name must be applied together with the definition, even if the use is a string or an
//! attribute of an object of unknown type.

use std::collections::HashSet;

use crate::task::stated::{ExplicitEdit, ExplicitEdits, Named};
use starling_index::Index;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// A line that uses a name that is not defined yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EarlyUse {
    pub file: FilePath,
    /// Line number, counted from 1.
    pub line: u32,
    pub name: String,
}

/// Returns the lines of `files` that are in `after` but not in `before`, and that use the new name
/// of a symbol that the task renames, if `after` does not define this name.
pub(crate) fn early_uses(
    statements: &ExplicitEdits,
    before: &Snapshot,
    after: &Snapshot,
    index: &Index,
    files: &[FilePath],
) -> Vec<EarlyUse> {
    // A stub file (`.pyi`) only describes its module, so the name counts as defined only if the
    // module defines it.
    let is_stub = |file: &FilePath| {
        let module = file.as_str().strip_suffix("i").map(FilePath::new);
        file.as_str().ends_with(".pyi") && module.is_some_and(|module| after.read(&module).is_ok())
    };
    let is_symbol = |name: &str| {
        let definitions = index.definitions(name);
        let mut symbols = definitions.iter().map(|one| &one.symbol);
        symbols.any(|symbol| symbol.base_name() == name && !is_stub(&symbol.file))
    };
    let names = statements.all.iter().filter_map(|stated| match stated {
        ExplicitEdit::Renamed { from, to } => {
            let is_defined = match from {
                Named::Symbol(_) => is_symbol(to),
                Named::Variable(_) => is_symbol(to) || !index.variables(to).is_empty(),
                Named::Word(word) if word.is_symbol => is_symbol(to),
                // The index does not know the definitions of plain words and of files.
                Named::Word(_) | Named::File(_) => true,
            };
            (!is_defined).then_some(to)
        }
        ExplicitEdit::Deleted { .. } => None,
    });
    let names: Vec<&String> = names.collect();
    if names.is_empty() {
        return Vec::new();
    }
    let in_file = |file: &FilePath| in_file(&names, before, after, file);
    files.iter().flat_map(in_file).collect()
}

fn in_file(
    names: &[&String],
    before: &Snapshot,
    after: &Snapshot,
    file: &FilePath,
) -> Vec<EarlyUse> {
    let (old, new) = (before.read(file), after.read(file));
    let old = old.as_deref().unwrap_or_default();
    let new = new.as_deref().unwrap_or_default();
    let old: HashSet<&str> = old.lines().collect();
    let written = (1u32..).zip(new.lines());
    let written = written.filter(|(_, text)| !old.contains(text));
    let early = written.filter_map(|(line, text)| {
        let name = names.iter().find(|name| has_word(text, name))?;
        Some(EarlyUse {
            file: file.clone(),
            line,
            name: (**name).clone(),
        })
    });
    early.collect()
}

/// Returns whether a line contains a name as a whole identifier.
fn has_word(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(at, _)| {
        let after = line[at + name.len()..].chars().next();
        let before = line[..at].chars().next_back();
        !after.is_some_and(is_part) && !before.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_matched_only_as_a_whole_identifier() {
        assert!(has_word("return self.total_minutes", "total_minutes"));
        assert!(has_word("'shop:total_minutes'", "total_minutes"));
        assert!(!has_word("return total_minutes_of(x)", "total_minutes"));
        assert!(!has_word("subtotal_minutes = 1", "total_minutes"));
        assert!(has_word("subtotal = total", "total"));
    }
}
