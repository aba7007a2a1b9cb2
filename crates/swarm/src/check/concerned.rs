//! Determines which tests a change of test files may affect: tests whose own text, fixtures or
//! helpers differ. A changed import affects only the tests that use its names. In doubt, a test
//! counts as affected.

use std::collections::BTreeSet;

use crate::check::expected;
use crate::check::original_tests::names_module;
use crate::check::test_files::is_module;
use starling_syntax::{FilePath, Symbol, SymbolTree};
use starling_workspace::Snapshot;

/// Returns whether the differences between two states of these test files may change the result of
/// a test.
pub(crate) fn is_concerned(
    before: &Snapshot,
    after: &Snapshot,
    changed: &[FilePath],
    test: &str,
) -> bool {
    let of_test = |file: &&FilePath| expected::is_in(test, file.as_str());
    let Some(file) = changed.iter().find(of_test) else {
        return true;
    };
    let (Ok(old), Ok(new)) = (before.tree(file), after.tree(file)) else {
        return true;
    };
    let stem = |file: &FilePath| file.name().trim_end_matches(".py").to_owned();
    let mut others = changed.iter().filter(|other| *other != file);
    let uses = |other: &FilePath| {
        !is_module(other)
            || names_module(old.text(), &stem(other))
            || names_module(new.text(), &stem(other))
    };
    if others.any(uses) {
        return true;
    }
    match names_of_changes(&old, &new) {
        Some(names) => [&old, &new].iter().any(|tree| uses_any(tree, test, &names)),
        None => true,
    }
}

/// Returns the names of the definitions and imports that differ; `None` if every test of the file
/// may be affected.
fn names_of_changes(old: &SymbolTree, new: &SymbolTree) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for (one, other) in [(old, new), (new, old)] {
        for symbol in one.symbols().iter().filter(|one| !one.path.is_module()) {
            let twin = other.find(&symbol.path.name);
            let is_same = twin.is_some_and(|twin| own_text(one, symbol) == own_text(other, twin));
            if is_same {
                continue;
            }
            if is_for_all(symbol) {
                return None;
            }
            names.insert(symbol.path.base_name().to_owned());
        }
    }
    let lines = |tree: &SymbolTree| -> BTreeSet<String> {
        let own = own_text(tree, tree.module());
        let lines = own.lines().map(str::trim);
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    for line in lines(old).symmetric_difference(&lines(new)) {
        names.extend(bound_by(line)?);
    }
    Some(names)
}

/// Returns the names that a module-level line binds; `None` if the line may do something else.
fn bound_by(line: &str) -> Option<BTreeSet<String>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c| !is_part(c)).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let is_import = line.starts_with("import ") || line.starts_with("from ");
    let is_rest = line
        .chars()
        .all(|c| is_part(c) || c.is_whitespace() || "(),".contains(c));
    if is_import || is_rest {
        return (!line.contains('*')).then(|| words(line));
    }
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().all(is_part) && !value.starts_with('=');
    is_name.then(|| words(name))
}

/// Returns whether a function of a test file affects tests that do not name it, such as an autouse
/// fixture.
fn is_for_all(symbol: &Symbol) -> bool {
    let name = symbol.path.base_name().to_lowercase();
    let is_hook = ["setup", "teardown", "pytest_", "load_tests"]
        .iter()
        .any(|start| name.starts_with(start));
    let mut decorators = symbol.contract.decorators.iter();
    is_hook || decorators.any(|one| one.contains("autouse"))
}

/// Returns whether a test uses one of these names, directly or through other functions of its file.
fn uses_any(tree: &SymbolTree, test: &str, names: &BTreeSet<String>) -> bool {
    let id = test.split('[').next().unwrap_or(test);
    let name = id.rsplit(['.', ':']).next().unwrap_or(id);
    let symbols = || tree.symbols().iter().filter(|one| !one.path.is_module());
    let mut open: Vec<&Symbol> = symbols()
        .filter(|symbol| symbol.path.base_name() == name)
        .collect();
    if open.is_empty() {
        return true;
    }
    let classes = open
        .iter()
        .filter_map(|test| test.path.name.rsplit_once('.'));
    let classes: BTreeSet<&str> = classes.map(|(class, _)| class).collect();
    let around = symbols().filter(|one| classes.contains(one.path.name.as_str()));
    open.extend(around);
    open.extend(symbols().filter(|one| is_for_all(one)));
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    while let Some(symbol) = open.pop() {
        if !seen.insert(&symbol.path.name) {
            continue;
        }
        let text = own_text(tree, symbol);
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let words: BTreeSet<&str> = words.collect();
        if names.contains(symbol.path.base_name())
            || names.iter().any(|one| words.contains(one.as_str()))
        {
            return true;
        }
        open.extend(symbols().filter(|one| words.contains(one.path.base_name())));
    }
    false
}

/// Returns the text of a symbol without the text of its nested symbols.
fn own_text(tree: &SymbolTree, symbol: &Symbol) -> String {
    let ranges = tree.own_ranges(symbol).into_iter();
    let parts = ranges.map(|range| tree.text()[range.start..range.end].trim());
    parts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_workspace::Workspace;

    const OLD: &str = "import random\nfrom a import f, g\n\nLIMIT = 3\n\n\ndef helper():\n    return g(1)\n\n\n\
        def test_f():\n    assert f(1)\n\n\ndef test_g():\n    assert helper()\n\n\n\
        def test_limit():\n    assert random.random() < LIMIT\n\n\nclass T:\n    def test_in(self):\n        assert f(2)\n";

    fn concerned(new: &str) -> Vec<&'static str> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("test_a.py"), OLD).unwrap();
        let before = Workspace::open(dir.path().canonicalize().unwrap()).unwrap();
        let before = before.snapshot(Default::default());
        let file = FilePath::new("test_a.py");
        let after = before.with(file.clone(), Some(new.into()));
        let ids = [
            "test_a.py::test_f",
            "test_a.py::test_g",
            "test_a.py::test_limit",
            "test_a.py::T::test_in",
        ];
        let is = |id: &&str| is_concerned(&before, &after, std::slice::from_ref(&file), id);
        let named = ids.into_iter().filter(is);
        named.map(|id| id.rsplit(':').next().unwrap()).collect()
    }

    #[test]
    fn test_is_affected_by_changes_of_the_code_that_it_uses() {
        let of = |old: &str, new: &str| concerned(&OLD.replace(old, new));
        let import = of("from a import f, g\n", "from a import f\nfrom b import g\n");
        assert_eq!(
            import,
            ["test_f", "test_g", "test_in"],
            "both lines name f or g"
        );
        let import = of("import f, g\n", "import (\n    f,\n    g,\n)\n");
        assert_eq!(import, ["test_f", "test_g", "test_in"]);
        assert_eq!(of("assert f(1)", "assert True"), ["test_f"]);
        assert_eq!(of("return g(1)", "return 1"), ["test_g"]);
        assert_eq!(of("LIMIT = 3", "LIMIT = 4"), ["test_limit"]);
        assert_eq!(of("class T:", "class T(Base):"), ["test_in"]);
        assert_eq!(
            of(
                "def test_f",
                "def test_new():\n    assert 1\n\n\ndef test_f"
            ),
            [""; 0]
        );
        assert_eq!(
            of("LIMIT = 3", "LIMIT = 3\nf.x = 1").len(),
            4,
            "it may do anything"
        );
        let autouse = "@pytest.fixture(autouse=True)\ndef all():\n    pass\n\n\ndef test_f";
        assert_eq!(of("def test_f", autouse).len(), 4);
        assert_eq!(of("assert f(2)", "assert True"), ["test_in"]);
    }
}
