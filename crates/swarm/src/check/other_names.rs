//! Makes it possible to run the original tests even if the task renames or removes names that they
//! use.
//!
//! A test file that imports a renamed or removed name cannot be loaded with its original text, so
//! none of its tests would run. This module combines the original text with the file's new imports,
//! or with its new module level, so that only the tests that use the name fail.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::check::expected;
use crate::task::asked;
use starling_core::{TestReport, TestStatus};
use starling_syntax::{FilePath, Symbol, SymbolKind, SymbolTree, module_imports};

/// Part of the new text that is used to load the original tests of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewTextPart {
    /// The imports only.
    Imports,
    /// Everything except functions. A function keeps its original text, unless that text contains a
    /// missing name.
    ModuleLevel,
}

/// Returns the names changed by the task whose absence kept a test file from loading; empty if the
/// file was loaded or failed for another reason.
pub(crate) fn missing(task: &str, report: &TestReport, file: &FilePath) -> BTreeSet<String> {
    let cases = report.cases.iter();
    let errors = cases.filter(|case| case.status == TestStatus::Error);
    let of_file = errors.filter(|case| expected::is_in(&case.id, file.as_str()));
    of_file
        .flat_map(|case| asked::other_names(task, &case.message))
        .collect()
}

/// Returns the original text of a test file, modified so that it loads without the `missing` names.
pub(crate) fn loadable(
    file: &FilePath,
    original: &Arc<str>,
    new: &Arc<str>,
    missing: &BTreeSet<String>,
    loading: NewTextPart,
) -> Arc<str> {
    let original = SymbolTree::parse(file.clone(), Arc::clone(original));
    let new = SymbolTree::parse(file.clone(), Arc::clone(new));
    match loading {
        NewTextPart::Imports => beside_imports(&original, &new),
        NewTextPart::ModuleLevel => beside_module_level(&original, &new, missing),
    }
}

/// Returns the original text with each import in a `try` block that ignores an `ImportError`, and
/// with the new imports inserted before the last import.
fn beside_imports(original: &SymbolTree, new: &SymbolTree) -> Arc<str> {
    let may_fail =
        |statement: &str| format!("try:\n    {statement}\nexcept ImportError:\n    pass\n");
    let is_future = |statement: &str| statement.starts_with("from __future__");
    let statements = |tree: &SymbolTree| {
        let ranges = module_imports(tree).into_iter();
        let with_text = ranges.map(|range| (range, tree.text()[range.start..range.end].to_owned()));
        let kept = with_text.filter(|(_, statement)| !is_future(statement));
        kept.collect::<Vec<_>>()
    };
    let added: String = statements(new)
        .iter()
        .map(|(_, statement)| may_fail(statement))
        .collect();
    let own = statements(original);
    let mut text = original.text().to_string();
    for (at, (range, statement)) in own.iter().enumerate().rev() {
        let before = if at + 1 == own.len() {
            added.as_str()
        } else {
            ""
        };
        let both = format!("{before}{}", may_fail(statement));
        let rest = &text[range.end..];
        // The line contains another statement after the import.
        let end = match rest.trim_start().strip_prefix(';') {
            Some(next) => text.len() - next.trim_start_matches([' ', '\t']).len(),
            None => range.end,
        };
        let both = match end == range.end {
            true => both.trim_end_matches('\n'),
            false => both.as_str(),
        };
        text.replace_range(range.start..end, both);
    }
    text.into()
}

/// Returns the new text in which the functions have their original text, except functions whose
/// original text contains a missing name.
fn beside_module_level(
    original: &SymbolTree,
    new: &SymbolTree,
    missing: &BTreeSet<String>,
) -> Arc<str> {
    let holds_missing = |text: &str| {
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.any(|word| missing.contains(word))
    };
    let is_function = |tree: &SymbolTree, symbol: &Symbol| {
        let in_function = symbol.parent.is_some_and(|parent| {
            let kind = tree.get(parent).kind;
            matches!(kind, SymbolKind::Function | SymbolKind::Method)
        });
        let is_function = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Method);
        is_function && !in_function
    };
    let mut text = new.text().to_string();
    for symbol in new.symbols().iter().rev() {
        let Some(old) = original.find(&symbol.path.name) else {
            continue;
        };
        let definition = &original.text()[old.definition.start..old.definition.end];
        let is_kept = is_function(new, symbol) && is_function(original, old);
        if is_kept && !holds_missing(definition) {
            text.replace_range(symbol.definition.start..symbol.definition.end, definition);
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(original: &str, new: &str, loading: NewTextPart) -> String {
        let missing = BTreeSet::from(["mul".to_owned()]);
        let file = FilePath::new("test_a.py");
        loadable(&file, &original.into(), &new.into(), &missing, loading).to_string()
    }

    #[test]
    fn original_tests_are_made_loadable_with_the_new_imports() {
        let original = "from __future__ import annotations\nimport os; import sys\nfrom calc import (\n    add,\n    mul,\n)\n\n\ndef test_add():\n    assert add(2, 3) == 5\n";
        let new = "from calc import add, multiply\n\n\ndef test_add():\n    pass\n";
        let expected = "from __future__ import annotations\ntry:\n    import os\nexcept ImportError:\n    pass\ntry:\n    import sys\nexcept ImportError:\n    pass\ntry:\n    from calc import add, multiply\nexcept ImportError:\n    pass\ntry:\n    from calc import (\n    add,\n    mul,\n)\nexcept ImportError:\n    pass\n\n\ndef test_add():\n    assert add(2, 3) == 5\n";
        let text = put(original, new, NewTextPart::Imports);
        let lines = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.map(|line| line.trim_end().to_owned()).collect()
        };
        assert_eq!(lines(&text), lines(expected), "{text}");
    }

    #[test]
    fn original_test_functions_are_combined_with_the_new_module_level_code() {
        let original = "from calc import mul\n\nCASES = [mul]\n\n\n@each(mul)\ndef test_mul(f):\n    assert f(2, 3) == 6\n\n\nclass T:\n    def test_add(self):\n        assert add(2, 3) == 5\n\n    def test_mul(self):\n        assert mul(2, 3) == 6\n";
        let renamed = original.replace("mul", "multiply");
        let new = renamed
            .replace("test_multiply", "test_mul")
            .replace("== 5", "is not None");
        let text = put(original, &new, NewTextPart::ModuleLevel);
        assert_eq!(text, new.replace("is not None", "== 5"));
    }
}
