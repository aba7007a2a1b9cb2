//! Maps a test to a symbol that a test runner can select by name.

use super::super::code::{Code, FileId, SymbolNumber, is_test_function};
use starling_syntax::{SymbolKind, SymbolPath};

/// Returns the test itself if a runner can select it, or else the module body, which represents the
/// whole file. The tests of a mixin, or of another class that runners do not collect, run only as a
/// part of other classes, so they cannot be selected directly.
pub(crate) fn runnable(code: &Code, test: &SymbolPath) -> SymbolPath {
    let whole = || SymbolPath::module(test.file.clone());
    let Some(number) = code.number_of(test) else {
        return whole();
    };
    let number = outermost_function(code, number);
    let class = code.parent(number).map(|parent| code.symbol(parent));
    let is_alone = class.is_none_or(|class| match class.kind {
        SymbolKind::Class => is_test_class(class.name, class.signature),
        SymbolKind::Module => true,
        SymbolKind::Function | SymbolKind::Method => false,
    });
    let path = code.path_of(number).filter(|_| is_alone);
    path.filter(|path| !path.name.contains('#'))
        .unwrap_or_else(whole)
}

/// Returns the number of tests in a file.
pub(crate) fn tests_in(code: &Code, file: FileId) -> usize {
    let is_test = |number: &SymbolNumber| is_test_function(&code.symbol(*number));
    match code.is_test(file) {
        true => code.symbols_of(file).filter(is_test).count(),
        false => 0,
    }
}

/// Returns the outermost function around a symbol: runners cannot select a nested function.
fn outermost_function(code: &Code, number: SymbolNumber) -> SymbolNumber {
    let (mut outermost, mut at) = (number, number);
    while let Some(parent) = code.parent(at) {
        match code.symbol(parent).kind {
            SymbolKind::Function | SymbolKind::Method => outermost = parent,
            SymbolKind::Module | SymbolKind::Class => {}
        }
        at = parent;
    }
    outermost
}

/// Returns whether runners collect tests from a class: its name starts with `Test`, or it has a
/// base class that may be a test class. Mixins are not collected.
fn is_test_class(name: &str, signature: &str) -> bool {
    let name = name.rsplit('.').next().unwrap_or(name);
    let bases = signature
        .split_once('(')
        .and_then(|(_, rest)| rest.rsplit_once(')'));
    let bases = bases.map_or("", |(bases, _)| bases.trim());
    !name.contains("Mixin") && (name.starts_with("Test") || !matches!(bases, "" | "object"))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::code_of;
    use super::*;
    use starling_syntax::FilePath;

    const TESTS: &str = "def test_top():\n    def test_inner(): pass\n\
        class TestPlain:\n    def test_a(self): pass\n\
        class Plain:\n    def test_b(self): pass\n\
        class Old(object):\n    def test_c(self): pass\n\
        class Case(unittest.TestCase):\n    def test_d(self): pass\n\
        class CaseMixin(Case):\n    def test_e(self): pass\n\
        def test_twice(): pass\ndef test_twice(): pass\n";

    #[test]
    fn test_of_a_mixin_is_run_with_its_whole_file() {
        let code = code_of([("tests/test_a.py", TESTS)]);
        let of = |name: &str| {
            let test = SymbolPath::new(FilePath::new("tests/test_a.py"), name);
            runnable(&code, &test).name
        };
        assert_eq!(of("test_top"), "test_top");
        assert_eq!(of("test_top.test_inner"), "test_top");
        assert_eq!(of("TestPlain.test_a"), "TestPlain.test_a");
        assert_eq!(of("Case.test_d"), "Case.test_d");
        for file in [
            "Plain.test_b",
            "Old.test_c",
            "CaseMixin.test_e",
            "test_twice#2",
            "gone",
            "",
        ] {
            assert_eq!(of(file), "", "{file}");
        }
    }

    #[test]
    fn only_tests_in_test_files_are_counted() {
        let code = code_of([
            ("m.py", "def test(): pass\n"),
            ("tests/test_a.py", TESTS),
            ("tests/util.py", "def helper(): pass\n"),
        ]);
        let count = |path: &str| tests_in(&code, code.find(&FilePath::new(path)).unwrap());
        assert_eq!(count("tests/test_a.py"), 9);
        assert_eq!((count("m.py"), count("tests/util.py")), (0, 0));
    }
}
