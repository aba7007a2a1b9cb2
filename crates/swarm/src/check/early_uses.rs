//! Finds uses of a new name in a workspace that does not define the name yet. In a rename, a use of
//! the new name must be applied together with the definition, even if the use is a string or an
//! attribute of an object of unknown type. In data files, only references to code count, such as
//! `module:name` or `module.name`; documentation may mention any name.

use std::collections::HashSet;

use crate::check::documentation::is_documentation;
use crate::task::stated::{ExplicitEdit, ExplicitEdits, Named, Word};
use crate::task::whole_word::{has_word, is_word_part, offsets_of_word};
use starling_index::Index;
use starling_syntax::{FilePath, Language, SymbolPath, references};
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
/// of a name that the task renames, if `after` does not define this name.
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
                Named::Word(word) => is_in_code(word, to, before, after),
                Named::File(_) => true,
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

/// Returns whether code in `after` contains the new name of an attribute or parameter: code of the
/// classes that the task names, or any code if it names none. The index does not know the
/// definitions of these names. Options and texts in strings are assumed to be defined.
fn is_in_code(word: &Word, to: &str, before: &Snapshot, after: &Snapshot) -> bool {
    let says_in = |world: &Snapshot, class: &SymbolPath, name: &str| {
        let tree = world.tree(&class.file).ok();
        let span = tree
            .as_ref()
            .and_then(|tree| Some(tree.find(&class.name)?.span));
        tree.zip(span).is_some_and(|(tree, span)| {
            let uses = references(&tree, name);
            uses.iter().any(|one| span.covers(one.range))
        })
    };
    let of = word.of.iter();
    let mut of = of
        .filter(|class| says_in(before, class, &word.name))
        .peekable();
    if of.peek().is_some() {
        return of.any(|class| says_in(after, class, to));
    }
    let is_python = |file: &&FilePath| Language::of(file) == Language::Python;
    let says = |file: &FilePath| {
        let text = after.read(file).ok().filter(|text| text.contains(to));
        let tree = text.and_then(|_| after.tree(file).ok());
        tree.is_some_and(|tree| !references(&tree, to).is_empty())
    };
    let is_code = !word.is_text && !word.name.starts_with('-');
    !is_code || after.files().iter().filter(is_python).any(says)
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
        let name = names.iter().find(|name| is_used(file, text, name))?;
        Some(EarlyUse {
            file: file.clone(),
            line,
            name: (**name).clone(),
        })
    });
    early.collect()
}

/// Returns whether a line of a file uses a name.
fn is_used(file: &FilePath, line: &str, name: &str) -> bool {
    match Language::of(file) {
        Language::Plain if is_documentation(file) => false,
        Language::Plain => is_named_in_path(line, name),
        _ => has_word(line, name),
    }
}

/// Returns whether a line refers to a name in a module, in the form `module:name` or `module.name`.
fn is_named_in_path(line: &str, name: &str) -> bool {
    offsets_of_word(line, name).any(|at| {
        let module = line[..at].strip_suffix([':', '.']);
        module.is_some_and(|module| module.ends_with(is_word_part))
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

    #[test]
    fn data_file_uses_a_name_only_in_a_reference_to_a_module() {
        let used = |file: &str, line: &str| is_used(&FilePath::new(file), line, "total");
        assert!(used("pyproject.toml", "total = \"shop.cart:total\""));
        assert!(used("jobs.yaml", "run: shop.cart.total"));
        assert!(!used("pyproject.toml", "total = 1"));
        assert!(!used("jobs.yaml", "name: total"));
        assert!(!used("jobs.yaml", "run: shop.cart.subtotal"));
        assert!(!used("README.md", "call shop.cart.total"));
        assert!(used("cart.py", "name = total"));
    }
}
