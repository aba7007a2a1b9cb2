//! Which tests a project has, and how to run them.

use crate::syntax::FilePath;
use crate::workspace::Snapshot;

use super::interpreter::Interpreter;

/// What runs the tests of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Framework {
    Pytest,
    /// Discovery from `start`, with modules named from `top`; both are directories of the workspace.
    Unittest {
        start: String,
        top: String,
    },
    /// Django's own suite, `tests/runtests.py`.
    Django,
    /// SymPy's own suite, `bin/test`.
    SymPy,
}

/// How many test files are opened to see what they import.
const LOOK_INSIDE: usize = 200;

/// The framework of a project.
///
/// # Errors
/// Why there is none, for the user.
pub(super) fn framework(
    snapshot: &Snapshot,
    interpreter: Option<&Interpreter>,
) -> Result<Framework, String> {
    let has = |path: &str| snapshot.files().binary_search(&FilePath::new(path)).is_ok();
    let tests: Vec<&FilePath> = snapshot.files().iter().filter(|f| is_test(f)).collect();
    let Some(interpreter) = interpreter else {
        return Err(
            "no Python interpreter answered: make .venv, or put python3 on the path".into(),
        );
    };
    if has("tests/runtests.py") {
        return Ok(Framework::Django);
    }
    if has("bin/test") && contains(snapshot, "bin/test", "sympy") {
        return Ok(Framework::SymPy);
    }
    if tests.is_empty() {
        return Err("no test files (test_*.py, *_test.py) were found".into());
    }
    if wants_pytest(snapshot, &tests) {
        if interpreter.has_pytest {
            return Ok(Framework::Pytest);
        }
        return Err(format!(
            "the tests are for pytest, which {} cannot import: install it there, or name a test command",
            interpreter.path.display()
        ));
    }
    let (start, top) = discovery(snapshot, &tests);
    Ok(Framework::Unittest { start, top })
}

/// Whether a file holds tests by its name.
fn is_test(file: &FilePath) -> bool {
    let name = file.name();
    name.ends_with(".py") && (name.starts_with("test") || name.ends_with("_test.py"))
}

fn wants_pytest(snapshot: &Snapshot, tests: &[&FilePath]) -> bool {
    const MARKS: [(&str, &str); 4] = [
        ("pytest.ini", ""),
        ("pyproject.toml", "[tool.pytest"),
        ("setup.cfg", "[tool:pytest]"),
        ("tox.ini", "[pytest]"),
    ];
    MARKS
        .iter()
        .any(|(file, mark)| contains(snapshot, file, mark))
        || snapshot.files().iter().any(|f| f.name() == "conftest.py")
        || tests
            .iter()
            .take(LOOK_INSIDE)
            .any(|file| imports_pytest(snapshot, file))
}

fn imports_pytest(snapshot: &Snapshot, file: &FilePath) -> bool {
    let import = |line: &str| line.starts_with("import pytest") || line.starts_with("from pytest");
    snapshot
        .read(file)
        .is_ok_and(|text| text.lines().any(|line| import(line.trim_start())))
}

fn contains(snapshot: &Snapshot, file: &str, mark: &str) -> bool {
    let file = FilePath::new(file);
    snapshot.files().binary_search(&file).is_ok()
        && snapshot.read(&file).is_ok_and(|text| text.contains(mark))
}

/// Where unittest begins to look: the deepest directory that holds all tests; and the directory
/// from which their modules are named: the one above its outermost package.
fn discovery(snapshot: &Snapshot, tests: &[&FilePath]) -> (String, String) {
    let mut start = tests[0].directory();
    for test in &tests[1..] {
        while !is_below(test.directory(), start) {
            start = parent(start);
        }
    }
    let is_package = |directory: &str| {
        let init = FilePath::new(format!("{directory}/__init__.py"));
        !directory.is_empty() && snapshot.files().binary_search(&init).is_ok()
    };
    let mut top = start;
    while is_package(top) {
        top = parent(top);
    }
    (start.to_owned(), top.to_owned())
}

fn parent(directory: &str) -> &str {
    directory.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn is_below(directory: &str, above: &str) -> bool {
    above.is_empty()
        || directory == above
        || directory
            .strip_prefix(above)
            .is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Overlay, Workspace};

    fn detected(files: &[(&str, &str)], has_pytest: bool) -> Result<Framework, String> {
        let dir = tempfile::tempdir().unwrap();
        let overlay: Overlay = files
            .iter()
            .map(|(path, text)| (FilePath::new(*path), Some((*text).into())))
            .collect();
        let workspace = Workspace::open(dir.path().to_owned()).unwrap();
        let interpreter = Interpreter {
            path: "/python".into(),
            has_pytest,
        };
        framework(&workspace.snapshot(overlay), Some(&interpreter))
    }

    fn unittest(start: &str, top: &str) -> Result<Framework, String> {
        Ok(Framework::Unittest {
            start: start.into(),
            top: top.into(),
        })
    }

    #[test]
    fn pytest_is_found_by_its_configuration_and_its_imports() {
        let test = ("tests/test_a.py", "def test_a(): pass");
        for mark in [
            ("pytest.ini", ""),
            ("pyproject.toml", "[tool.pytest.ini_options]\n"),
            ("setup.cfg", "[tool:pytest]\n"),
            ("tox.ini", "[pytest]\n"),
            ("tests/conftest.py", ""),
            ("tests/test_b.py", "if 1:\n    import pytest\n"),
        ] {
            assert_eq!(detected(&[test, mark], true), Ok(Framework::Pytest));
            let missing = detected(&[test, mark], false).unwrap_err();
            assert!(missing.contains("/python cannot import"), "{missing}");
        }
        let other = ("setup.cfg", "[metadata]\n");
        assert_eq!(detected(&[test, other], true), unittest("tests", "tests"));
    }

    #[test]
    fn unittest_starts_where_the_tests_are() {
        let find = |paths: &[&str]| {
            let files: Vec<_> = paths.iter().map(|path| (*path, "")).collect();
            detected(&files, false)
        };
        assert_eq!(find(&["test_a.py", "a.py"]), unittest("", ""));
        assert_eq!(
            find(&["tests/__init__.py", "tests/test_a.py"]),
            unittest("tests", "")
        );
        assert_eq!(
            find(&[
                "src/p/__init__.py",
                "src/p/t/__init__.py",
                "src/p/t/test_a.py",
                "src/p/t/x/test_b.py"
            ]),
            unittest("src/p/t", "src")
        );
        assert_eq!(find(&["a/test_a.py", "ab/test_b.py"]), unittest("", ""));
        assert!(find(&["a.py"]).unwrap_err().contains("no test files"));
    }

    #[test]
    fn knows_the_suites_of_django_and_sympy() {
        let django = [("tests/runtests.py", ""), ("tests/conftest.py", "")];
        assert_eq!(detected(&django, true), Ok(Framework::Django));
        let sympy = [("bin/test", "import sympy"), ("conftest.py", "")];
        assert_eq!(detected(&sympy, true), Ok(Framework::SymPy));
    }

    #[test]
    fn says_that_there_is_no_interpreter() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path().to_owned()).unwrap();
        let none = framework(&workspace.snapshot(Overlay::new()), None);
        assert!(none.unwrap_err().contains("no Python interpreter"));
    }

    #[test]
    fn marks_count_only_where_they_stand() {
        let test = (
            "tests/test_a.py",
            "x = 'import pytest'\n# from pytest import x\n",
        );
        let elsewhere = ("sub/pytest.ini", "");
        let found = detected(&[test, elsewhere], true);
        assert_eq!(found, unittest("tests", "tests"));
        let not_sympy = ("bin/test", "#!/bin/sh\n");
        assert_eq!(
            detected(&[test, not_sympy], true),
            unittest("tests", "tests")
        );
        // A configuration without tests is not enough.
        let none = detected(&[("pytest.ini", ""), ("a.py", "")], true);
        assert!(none.unwrap_err().contains("no test files"));
        assert!(is_below("a/b", "a") && is_below("a", "a") && is_below("a", ""));
        assert!(!is_below("ab", "a") && !is_below("a", "a/b"));
    }
}
