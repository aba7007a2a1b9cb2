//! Detects which tests a project has and which runners can run them.

mod manifests;
mod styles;

pub(super) use manifests::sources;

use starling_syntax::FilePath;
use starling_workspace::Snapshot;

use super::interpreter::Interpreter;
use styles::TestStyles;

/// A test runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Framework {
    Pytest,
    /// Discovery from `start`, with module names relative to `top`. Both are directories of the
    /// workspace.
    Unittest {
        start: String,
        top: String,
    },
    /// `manage.py test` of a project that uses Django. `directory` contains `manage.py`.
    ManagePy {
        directory: String,
    },
    /// Django's own suite, `tests/runtests.py`.
    Django,
    /// SymPy's own suite, `bin/test`.
    SymPy,
}

/// The test runners of a project.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DetectedRunners {
    /// The runners in order of preference, never empty. If a runner finds no test, the next one is
    /// tried.
    pub frameworks: Vec<Framework>,
    /// Warning for the user: why the runner for which the tests are written cannot be used.
    pub warning: Option<String>,
}

/// Returns the test runners of a project, in order of preference.
///
/// # Errors
/// Returns a message for the user if there is no usable runner.
pub(super) fn detect(
    snapshot: &Snapshot,
    interpreter: &Interpreter,
) -> Result<DetectedRunners, String> {
    let has = |path: &str| snapshot.files().binary_search(&FilePath::new(path)).is_ok();
    let only = |framework| {
        Ok(DetectedRunners {
            frameworks: vec![framework],
            warning: None,
        })
    };
    if has("tests/runtests.py") {
        return only(Framework::Django);
    }
    if has("bin/test") && contains(snapshot, "bin/test", "sympy") {
        return only(Framework::SymPy);
    }
    let tests: Vec<&FilePath> = snapshot.files().iter().filter(|f| is_test(f)).collect();
    let configuration = manifests::configuration(snapshot);
    let widened = configuration
        .as_ref()
        .is_some_and(|(_, text)| manifests::widens_collection(text));
    if tests.is_empty() && !widened {
        return Err("no test files (test_*.py, *_test.py) were found".into());
    }

    let styles = TestStyles::of(snapshot, &tests);
    let configured = configuration
        .map(|(file, _)| format!("{file} configures pytest"))
        .or_else(|| conftest(snapshot).map(|file| format!("{file} exists")));
    let manage_py = manage_py(snapshot).filter(|_| styles.django && configured.is_none());
    let sign = configured
        .or_else(|| manifests::dependency(snapshot).map(|file| format!("{file} requires it")))
        .or(styles.pytest);

    let mut frameworks: Vec<Framework> = Vec::new();
    frameworks.extend(manage_py.map(|directory| Framework::ManagePy { directory }));
    if sign.is_some() && interpreter.has_pytest {
        frameworks.push(Framework::Pytest);
    }
    if !tests.is_empty() && (styles.test_case || sign.is_none()) {
        let (start, top) = discovery(snapshot, &tests);
        frameworks.push(Framework::Unittest { start, top });
    }
    if sign.is_none() && interpreter.has_pytest {
        frameworks.push(Framework::Pytest);
    }
    let warning = sign
        .filter(|_| !interpreter.has_pytest)
        .map(|sign| without_pytest(interpreter, &sign));
    match warning {
        Some(warning) if frameworks.is_empty() => Err(warning),
        warning => Ok(DetectedRunners {
            frameworks,
            warning,
        }),
    }
}

fn without_pytest(interpreter: &Interpreter, sign: &str) -> String {
    let python = interpreter.path.display();
    format!(
        "the tests need pytest, which {python} cannot import ({sign}): \
         run `{python} -m pip install pytest`, or set tests.command"
    )
}

/// Returns whether a file's name marks it as a test file.
fn is_test(file: &FilePath) -> bool {
    let name = file.name();
    name.ends_with(".py") && (name.starts_with("test") || name.ends_with("_test.py"))
}

fn conftest(snapshot: &Snapshot) -> Option<&FilePath> {
    let mut files = snapshot.files().iter();
    files.find(|file| file.name() == "conftest.py")
}

/// Returns the directory of Django's `manage.py`: the root, or else a directory directly below it.
fn manage_py(snapshot: &Snapshot) -> Option<String> {
    let places = snapshot.files().iter();
    let places = places.filter(|file| file.name() == "manage.py");
    let places = places.filter(|file| !file.directory().contains('/'));
    let mut places: Vec<&FilePath> = places
        .filter(|file| contains(snapshot, file.as_str(), "django"))
        .collect();
    places.sort_by_key(|file| file.directory().len());
    places.first().map(|file| file.directory().to_owned())
}

fn contains(snapshot: &Snapshot, file: &str, mark: &str) -> bool {
    let file = FilePath::new(file);
    snapshot.files().binary_search(&file).is_ok()
        && snapshot.read(&file).is_ok_and(|text| text.contains(mark))
}

/// Returns the directory where unittest starts discovery, which is the deepest directory that
/// contains all tests, and the directory to which module names are relative, which is the parent of
/// the outermost package.
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
    use starling_workspace::{Overlay, Workspace};

    fn all(files: &[(&str, &str)], has_pytest: bool) -> Result<DetectedRunners, String> {
        let dir = tempfile::tempdir().unwrap();
        let overlay: Overlay = files
            .iter()
            .map(|(path, text)| (FilePath::new(*path), Some((*text).into())))
            .collect();
        let workspace = Workspace::open(dir.path().to_owned()).unwrap();
        let interpreter = Interpreter {
            path: "/python".into(),
            has_pytest,
            warning: None,
        };
        detect(&workspace.snapshot(overlay), &interpreter)
    }

    /// Returns the preferred runner.
    fn detected(files: &[(&str, &str)], has_pytest: bool) -> Result<Framework, String> {
        all(files, has_pytest).map(|found| found.frameworks[0].clone())
    }

    fn unittest(start: &str, top: &str) -> Result<Framework, String> {
        Ok(Framework::Unittest {
            start: start.into(),
            top: top.into(),
        })
    }

    #[test]
    fn pytest_is_detected_by_configuration_and_imports() {
        let test = ("tests/test_a.py", "");
        for mark in [
            ("pytest.ini", ""),
            ("pyproject.toml", "[tool.pytest.ini_options]\n"),
            ("setup.cfg", "[tool:pytest]\n"),
            ("tox.ini", "[pytest]\n"),
            ("tests/conftest.py", ""),
            ("tests/test_b.py", "if 1:\n    import pytest\n"),
            ("tests/test_b.py", "def test_b(): pass\n"),
            (
                "tests/test_b.py",
                "class TestB:\n    def test_b(self): pass\n",
            ),
            ("requirements-dev.txt", "pytest\n"),
            (
                "pyproject.toml",
                "[tool.poetry.group.dev.dependencies]\npytest = '^8'\n",
            ),
        ] {
            assert_eq!(
                detected(&[test, mark], true),
                Ok(Framework::Pytest),
                "{mark:?}"
            );
            let missing = detected(&[test, mark], false).unwrap_err();
            assert!(missing.contains("/python cannot import"), "{missing}");
            assert!(
                missing.contains("`/python -m pip install pytest`, or set tests.command"),
                "{missing}"
            );
            assert!(missing.contains(mark.0), "{missing}");
        }
        let other = ("setup.cfg", "[metadata]\n");
        assert_eq!(detected(&[test, other], true), unittest("tests", "tests"));
    }

    #[test]
    fn unittest_discovery_starts_in_the_directory_of_the_tests() {
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

    const TEST_CASE: &str = "import unittest\nclass T(unittest.TestCase): pass\n";

    #[test]
    fn unittest_replaces_missing_pytest_only_if_there_are_unittest_tests() {
        let mixed = [
            ("test_a.py", "def test_a(): pass\n"),
            ("test_b.py", TEST_CASE),
        ];
        let found = all(&mixed, true).unwrap();
        let unittest = unittest("", "").unwrap();
        assert_eq!(found.frameworks, [Framework::Pytest, unittest.clone()]);
        assert_eq!(found.warning, None);
        let found = all(&mixed, false).unwrap();
        assert_eq!(found.frameworks, std::slice::from_ref(&unittest));
        let warning = found.warning.unwrap();
        assert!(warning.contains("test_a in test_a.py"), "{warning}");

        let found = all(&mixed[1..], true).unwrap();
        assert_eq!(found.frameworks, [unittest, Framework::Pytest]);
        assert!(all(&mixed[..1], false).is_err());
    }

    #[test]
    fn manage_py_runs_the_tests_of_a_django_project() {
        let manage = |directory: &str| {
            Ok(Framework::ManagePy {
                directory: directory.into(),
            })
        };
        let test = ("shop/app/tests.py", "from django.test import TestCase\n");
        let root = ("manage.py", "import django\n");
        let below = ("shop/manage.py", "import django\n");
        assert_eq!(detected(&[test, root, below], true), manage(""));
        assert_eq!(detected(&[test, below], true), manage("shop"));
        let configured = ("pytest.ini", "[pytest]\n");
        assert_eq!(
            detected(&[test, root, configured], true),
            Ok(Framework::Pytest)
        );
        let other = ("test_a.py", TEST_CASE);
        assert_eq!(detected(&[other, root], true), unittest("", ""));
        let not_django = ("manage.py", "print()\n");
        assert_eq!(
            detected(&[test, not_django], true),
            unittest("shop/app", "shop/app")
        );
    }

    #[test]
    fn pytest_configuration_that_collects_other_files_selects_pytest() {
        for setting in ["python_files = check_*.py", "addopts = --doctest-modules"] {
            let ini = format!("[pytest]\n{setting}\n");
            let files = [("pytest.ini", ini.as_str()), ("check_a.py", "")];
            assert_eq!(all(&files, true).unwrap().frameworks, [Framework::Pytest]);
            assert!(all(&files, false).unwrap_err().contains("cannot import"));
        }
    }

    #[test]
    fn detects_the_test_runners_of_the_django_and_sympy_repositories() {
        let django = [("tests/runtests.py", ""), ("tests/conftest.py", "")];
        assert_eq!(detected(&django, true), Ok(Framework::Django));
        let sympy = [("bin/test", "import sympy"), ("conftest.py", "")];
        assert_eq!(detected(&sympy, true), Ok(Framework::SymPy));
    }

    #[test]
    fn project_marker_files_count_only_at_their_expected_path() {
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
        // A configuration file without tests is not enough.
        let none = detected(&[("pytest.ini", ""), ("a.py", "")], true);
        assert!(none.unwrap_err().contains("no test files"));
        assert!(is_below("a/b", "a") && is_below("a", "a") && is_below("a", ""));
        assert!(!is_below("ab", "a") && !is_below("a", "a/b"));
    }
}
