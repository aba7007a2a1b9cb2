//! The styles in which a project's test files are written: functions and plain classes for pytest,
//! `TestCase` classes for unittest and Django.

use std::collections::BTreeMap;

use starling_syntax::{FilePath, Symbol, SymbolKind, SymbolTree};
use starling_workspace::Snapshot;

/// Maximum number of test files that are read.
const MAX_FILES: usize = 300;
/// Maximum size of a file that is parsed, in bytes.
const MAX_BYTES: usize = 512 << 10;

/// The test styles that occur in a project.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestStyles {
    /// The first test or import that needs pytest, as text for the user:
    /// `test_add in test_calc.py`.
    pub pytest: Option<String>,
    /// Whether a class derives from `TestCase`, or from a base class of another module that may be
    /// a `TestCase`.
    pub test_case: bool,
    /// Whether a file imports `django.test`.
    pub django: bool,
}

impl TestStyles {
    /// Reads test files until every style was found.
    pub(super) fn of(snapshot: &Snapshot, tests: &[&FilePath]) -> Self {
        let mut styles = TestStyles::default();
        for file in tests.iter().take(MAX_FILES) {
            if styles.pytest.is_some() && styles.test_case && styles.django {
                break;
            }
            let Ok(text) = snapshot.read(file) else {
                continue;
            };
            if text.len() > MAX_BYTES {
                continue;
            }
            if let Ok(tree) = snapshot.tree(file) {
                styles.read(file, &text, &tree);
            }
        }
        styles
    }

    fn read(&mut self, file: &FilePath, text: &str, tree: &SymbolTree) {
        self.django |= imports(text, "django.test");
        let classes = ClassHierarchy::of(tree);
        let mut needs_pytest = imports(text, "pytest").then(|| format!("{file} imports pytest"));
        for symbol in top_level(tree) {
            let name = &symbol.contract.name;
            let is_test = match symbol.kind {
                SymbolKind::Function => name.starts_with("test_"),
                SymbolKind::Class => {
                    let base = classes.kind(name);
                    self.test_case |= base != BaseClass::Plain;
                    base == BaseClass::Plain && classes.is_collected(name, symbol, tree)
                }
                SymbolKind::Module | SymbolKind::Method => false,
            };
            if is_test && needs_pytest.is_none() {
                needs_pytest = Some(format!("{name} in {file}"));
            }
        }
        self.pytest = self.pytest.take().or(needs_pytest);
    }
}

fn imports(text: &str, module: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| {
        let named = line
            .strip_prefix("import ")
            .or_else(|| line.strip_prefix("from "));
        let rest = named.and_then(|named| named.strip_prefix(module));
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

fn top_level(tree: &SymbolTree) -> impl Iterator<Item = &Symbol> {
    tree.module().children.iter().map(|id| tree.get(*id))
}

/// The kind of a test class, derived from its base classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BaseClass {
    Plain,
    TestCase,
    /// A base class from another module.
    Unknown,
}

/// The top-level classes of a file with their base classes.
struct ClassHierarchy<'a> {
    bases: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> ClassHierarchy<'a> {
    fn of(tree: &'a SymbolTree) -> Self {
        let classes = top_level(tree).filter(|symbol| symbol.kind == SymbolKind::Class);
        let bases = classes.map(|class| {
            let bases = class.contract.bases.iter();
            // Keywords such as `metaclass=M` are not base classes.
            let bases = bases.filter(|base| !base.contains('=')).map(String::as_str);
            (class.contract.name.as_str(), bases.collect())
        });
        ClassHierarchy {
            bases: bases.collect(),
        }
    }

    fn kind(&self, class: &str) -> BaseClass {
        self.kind_within(class, self.bases.len())
    }

    /// Returns the kind of a class. Follows at most `steps` base classes in the same file.
    fn kind_within(&self, class: &str, steps: usize) -> BaseClass {
        let mut kind = BaseClass::Plain;
        for base in self.bases.get(class).into_iter().flatten() {
            let of_base = match *base {
                "object" | "ABC" | "abc.ABC" | "Protocol" => BaseClass::Plain,
                base if base.starts_with("Generic[") => BaseClass::Plain,
                base if base.ends_with("TestCase") => BaseClass::TestCase,
                base if self.bases.contains_key(base) && steps > 0 => {
                    self.kind_within(base, steps - 1)
                }
                _ => BaseClass::Unknown,
            };
            match of_base {
                BaseClass::TestCase => return BaseClass::TestCase,
                BaseClass::Unknown => kind = BaseClass::Unknown,
                BaseClass::Plain => {}
            }
        }
        kind
    }

    /// Returns whether pytest collects a plain class: its name starts with `Test`, it has a test
    /// method and no `__init__`, and it is not a base class of another class.
    fn is_collected(&self, name: &str, class: &Symbol, tree: &SymbolTree) -> bool {
        let has = |wanted: &dyn Fn(&str) -> bool| {
            let methods = class.children.iter().map(|id| tree.get(*id));
            methods.into_iter().any(|one| wanted(&one.contract.name))
        };
        name.starts_with("Test")
            && has(&|method| method.starts_with("test"))
            && !has(&|method| method == "__init__")
            && !self.bases.values().flatten().any(|base| *base == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styles(text: &str) -> TestStyles {
        let file = FilePath::new("t/test_a.py");
        let tree = SymbolTree::parse(file.clone(), text.into());
        let mut styles = TestStyles::default();
        styles.read(&file, text, &tree);
        styles
    }

    #[test]
    fn test_functions_and_plain_test_classes_need_pytest() {
        let plain = "class TestA:\n    def test_x(self): pass\n";
        let decorated = "import functools\n@functools.cache\ndef test_x():\n    pass\n";
        for (text, found) in [
            ("def test_x():\n    pass\n", "test_x in t/test_a.py"),
            ("async def test_x():\n    pass\n", "test_x in t/test_a.py"),
            (decorated, "test_x in t/test_a.py"),
            (plain, "TestA in t/test_a.py"),
            (
                "if 1:\n    from pytest import mark\n",
                "t/test_a.py imports pytest",
            ),
        ] {
            let styles = styles(text);
            assert_eq!(styles.pytest.as_deref(), Some(found), "{text}");
            assert!(!styles.test_case, "{text}");
        }
    }

    #[test]
    fn test_case_classes_can_run_with_unittest() {
        for text in [
            "class TestA(unittest.TestCase):\n    def test_x(self): pass\n",
            "class A(IsolatedAsyncioTestCase):\n    def test_x(self): pass\n",
            "class B(TestCase): pass\nclass TestA(B):\n    def test_x(self): pass\n",
            // The imported base class may be a `TestCase`.
            "from base import B\nclass TestA(B):\n    def test_x(self): pass\n",
            "class TestM:\n    def test_x(self): pass\nclass A(TestM, TestCase): pass\n",
        ] {
            let styles = styles(text);
            assert_eq!(styles.pytest, None, "{text}");
            assert!(styles.test_case, "{text}");
        }
        assert!(styles("from django.test import TestCase\n").django);
        assert!(!styles("from django.testing import x\n").django);
    }

    #[test]
    fn helper_functions_and_classes_in_test_files_do_not_count_as_tests() {
        for text in [
            "class TestClient:\n    def get(self): pass\n",
            "class TestData:\n    def __init__(self): pass\n    def test_x(self): pass\n",
            "def helper():\n    def test_x(): pass\n",
            "def testing(): pass\n",
            "x = 'import pytest'\n# from pytest import x\nimport pytester\n",
            "class A(A): pass\n",
        ] {
            let styles = styles(text);
            assert_eq!(styles.pytest, None, "{text}");
        }
    }
}
