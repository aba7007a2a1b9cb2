//! The command lines that run tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::detect::Framework;

/// Placeholder for the selected tests in a command of the user.
const TESTS: &str = "{tests}";
/// Placeholder for the files of the selected tests in a command of the user.
const FILES: &str = "{files}";

/// The command to run: the user's own command, or Starling's command for a framework.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Suite {
    Given(String),
    Own {
        framework: Framework,
        python: PathBuf,
    },
}

impl Suite {
    /// Returns whether a selection of tests changes the command line.
    pub(super) fn selects(&self) -> bool {
        match self {
            Suite::Given(line) => line.contains(TESTS) || line.contains(FILES),
            Suite::Own { .. } => true,
        }
    }

    /// Returns the interpreter of Starling's own commands.
    pub(super) fn python(&self) -> Option<&Path> {
        match self {
            Suite::Given(_) => None,
            Suite::Own { python, .. } => Some(python),
        }
    }

    /// Returns the shell command that runs the selected tests, or all tests if none is selected.
    pub(super) fn line(&self, select: &[String]) -> String {
        // The selection comes from a model. It must not become an option or an argument file.
        let select: Vec<&str> = select
            .iter()
            .map(|entry| entry.trim())
            .filter(|entry| !entry.is_empty() && !entry.starts_with(['-', '@']))
            .collect();
        match self {
            Suite::Given(line) => {
                let quoted: Vec<_> = select.iter().map(|entry| quote(entry)).collect();
                let line = line.replace(TESTS, &quoted.join(" "));
                line.replace(FILES, &files(&select)).trim().to_owned()
            }
            Suite::Own { framework, python } => {
                let mut words = vec![python.to_string_lossy().into_owned()];
                words.extend(framework.arguments(&select));
                let quoted: Vec<_> = words.iter().map(|word| quote(word)).collect();
                quoted.join(" ")
            }
        }
    }

    /// Returns the `PYTHONPATH` for Starling's own commands. It contains the modules of the
    /// workspace, so that they need not be installed.
    pub(super) fn python_path(&self, root: &Path, given: Option<&OsString>) -> Option<OsString> {
        let Suite::Own { framework, .. } = self else {
            return given.cloned();
        };
        let mut path = vec![root.to_owned(), root.join("src")];
        match framework {
            Framework::Unittest { top, .. } if !top.is_empty() => path.push(root.join(top)),
            Framework::Unittest { .. }
            | Framework::Pytest
            | Framework::ManagePy { .. }
            | Framework::Django
            | Framework::SymPy => {}
        }
        path.extend(given.into_iter().flat_map(std::env::split_paths));
        std::env::join_paths(path).ok().or_else(|| given.cloned())
    }
}

impl Framework {
    pub(super) fn arguments(&self, select: &[&str]) -> Vec<String> {
        let (fixed, selected): (Vec<&str>, Vec<String>) = match self {
            Framework::Pytest => (
                "-m pytest -p no:cacheprovider -rfEsxXp --tb=short --continue-on-collection-errors"
                    .split(' ')
                    .collect(),
                select.iter().map(|entry| pytest_id(entry)).collect(),
            ),
            Framework::Unittest { start, top } if select.is_empty() => {
                return discover(start, top);
            }
            Framework::Unittest { top, .. } => (
                vec!["-m", "unittest", "-v"],
                select.iter().map(|entry| module_id(entry, top)).collect(),
            ),
            Framework::ManagePy { directory } => return manage_py(directory, select),
            Framework::Django => (
                vec!["tests/runtests.py", "--verbosity=2", "--parallel=1"],
                select
                    .iter()
                    .map(|entry| module_id(entry, "tests"))
                    .collect(),
            ),
            Framework::SymPy => (vec!["bin/test", "--verbose"], sympy_arguments(select)),
        };
        fixed
            .into_iter()
            .map(str::to_owned)
            .chain(selected)
            .collect()
    }
}

fn discover(start: &str, top: &str) -> Vec<String> {
    let mut words = vec!["-m", "unittest", "discover", "-v"];
    if !start.is_empty() {
        let top = if top.is_empty() { "." } else { top };
        words.extend(["-s", start, "-t", top]);
    }
    words.into_iter().map(str::to_owned).collect()
}

/// Builds the arguments for `manage.py test`. Django finds tests from the current directory, so
/// tests of a `manage.py` in another directory are named explicitly.
fn manage_py(directory: &str, select: &[&str]) -> Vec<String> {
    let program = format!("{directory}/manage.py");
    let program = program.trim_start_matches('/').to_owned();
    let mut words = vec![program, "test".into(), "--verbosity=2".into()];
    words.push("--noinput".into());
    if !directory.is_empty() {
        words.extend(["--top-level-directory".into(), directory.to_owned()]);
    }
    words.extend(select.iter().map(|entry| module_id(entry, directory)));
    if select.is_empty() && !directory.is_empty() {
        words.push(directory.to_owned());
    }
    words
}

/// Returns the files of the selected tests, each once, quoted for a shell.
fn files(select: &[&str]) -> String {
    let mut files: Vec<String> = Vec::new();
    for entry in select {
        let file = quote(entry.split(':').next().unwrap_or(entry));
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files.join(" ")
}

/// Converts `tests/test_a.py::T.test_x`, the name of a symbol, to pytest's `…::T::test_x`. Ids of
/// pytest stay unchanged.
fn pytest_id(entry: &str) -> String {
    match entry.split_once("::") {
        Some((file, name)) if !name.contains([':', '[']) => {
            format!("{file}::{}", name.replace('.', "::"))
        }
        Some(_) | None => entry.to_owned(),
    }
}

/// Returns a dotted name relative to the directory `top`: `tests/test_a.py` and
/// `tests/test_a.py::T.test_x` become `tests.test_a` and `tests.test_a.T.test_x`. Dotted ids stay
/// unchanged, except that a failed `setUpClass` becomes its class.
fn module_id(entry: &str, top: &str) -> String {
    let (file, name) = entry.split_once("::").unwrap_or((entry, ""));
    let Some(file) = file.strip_suffix(".py") else {
        let id = entry.strip_suffix(".setUpClass").unwrap_or(entry);
        return id.to_owned();
    };
    let below = file.strip_prefix(top).unwrap_or(file);
    let module = below.trim_start_matches('/').replace('/', ".");
    match name.replace("::", ".") {
        name if name.is_empty() => module,
        name => format!("{module}.{name}"),
    }
}

/// Returns the files of the selected tests. Names of tests (`file:name`, `file::name`) become `-k`
/// keywords if every entry has one.
fn sympy_arguments(select: &[&str]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    let mut names = Vec::new();
    for entry in select {
        let (file, name) = entry.split_once(':').unwrap_or((entry, ""));
        files.push(file.to_owned());
        names.extend(Some(name.trim_start_matches(':')).filter(|name| !name.is_empty()));
    }
    files.dedup();
    if names.len() == select.len() && !names.is_empty() {
        files.push("-k".into());
        files.extend(names.into_iter().map(str::to_owned));
    }
    files
}

/// Quotes a word for a shell.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(framework: Framework) -> Suite {
        Suite::Own {
            framework,
            python: "/py".into(),
        }
    }

    fn line(suite: &Suite, select: &[&str]) -> String {
        let select: Vec<_> = select.iter().map(|entry| (*entry).to_owned()).collect();
        suite.line(&select)
    }

    #[test]
    fn pytest_command_selects_tests_by_id_and_by_symbol_path() {
        let suite = own(Framework::Pytest);
        let fixed =
            "/py -m pytest -p no:cacheprovider -rfEsxXp --tb=short --continue-on-collection-errors";
        assert_eq!(line(&suite, &[]), fixed);
        let select = [
            "t.py",
            "t.py::T.test_x",
            "t.py::test_y[a.b c]",
            "--pdb",
            "@.env",
            " ",
        ];
        let expected = format!("{fixed} t.py t.py::T::test_x 't.py::test_y[a.b c]'");
        assert_eq!(line(&suite, &select), expected);
    }

    #[test]
    fn unittest_command_selects_tests_by_module_path_from_the_top_directory() {
        let flat = own(Framework::Unittest {
            start: String::new(),
            top: String::new(),
        });
        assert_eq!(line(&flat, &[]), "/py -m unittest discover -v");
        let deep = own(Framework::Unittest {
            start: "src/p/t".into(),
            top: "src".into(),
        });
        let discover = "/py -m unittest discover -v -s src/p/t -t src";
        assert_eq!(line(&deep, &[]), discover);
        let select = [
            "src/p/t/test_a.py",
            "src/p/t/test_a.py::T.test_x",
            "p.t.test_a.T.setUpClass",
        ];
        let expected = "/py -m unittest -v p.t.test_a p.t.test_a.T.test_x p.t.test_a.T";
        assert_eq!(line(&deep, &select), expected);
    }

    #[test]
    fn django_and_sympy_commands_select_tests_by_their_labels() {
        let django = "/py tests/runtests.py --verbosity=2 --parallel=1 forms_tests.test_a";
        assert_eq!(
            line(&own(Framework::Django), &["tests/forms_tests/test_a.py"]),
            django
        );
        let manage = |directory: &str| {
            own(Framework::ManagePy {
                directory: directory.into(),
            })
        };
        let fixed = "manage.py test --verbosity=2 --noinput";
        assert_eq!(line(&manage(""), &[]), format!("/py {fixed}"));
        assert_eq!(
            line(&manage(""), &["app/tests.py::T.test_x"]),
            format!("/py {fixed} app.tests.T.test_x")
        );
        let below = format!("/py shop/{fixed} --top-level-directory shop");
        assert_eq!(line(&manage("shop"), &[]), format!("{below} shop"));
        assert_eq!(
            line(&manage("shop"), &["shop/app/tests.py"]),
            format!("{below} app.tests")
        );
        let sympy = own(Framework::SymPy);
        assert_eq!(
            line(&sympy, &["s/test_a.py:test_x", "s/test_a.py::test_y"]),
            "/py bin/test --verbose s/test_a.py -k test_x test_y"
        );
        assert_eq!(
            line(&sympy, &["s/test_a.py:test_x", "s/test_b.py"]),
            "/py bin/test --verbose s/test_a.py s/test_b.py"
        );
    }

    #[test]
    fn user_command_gets_the_selected_tests_at_its_placeholder() {
        let given = |line: &str| Suite::Given(line.to_owned());
        assert_eq!(line(&given("make test"), &["a.py"]), "make test");
        assert_eq!(
            line(&given("nox -- {tests}"), &["a b.py", "c.py"]),
            "nox -- 'a b.py' c.py"
        );
        assert_eq!(line(&given("nox {tests}"), &[]), "nox");
        let select = ["a.py::T.x", "a.py", "b c.py:test_y"];
        assert_eq!(line(&given("nox {files}"), &select), "nox a.py 'b c.py'");
        assert!(given("nox {files}").selects() && given("nox {tests}").selects());
        assert!(!given("nox").selects() && own(Framework::Pytest).selects());
    }

    #[test]
    fn special_shell_characters_in_test_names_are_quoted() {
        assert_eq!(quote("a/b.py::T"), "a/b.py::T");
        assert_eq!(quote("$(rm -rf x)"), "'$(rm -rf x)'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
    }

    #[test]
    fn workspace_is_first_in_pythonpath() {
        let suite = own(Framework::Unittest {
            start: "lib/t".into(),
            top: "lib".into(),
        });
        let given = OsString::from("/x");
        let path = suite.python_path(Path::new("/w"), Some(&given)).unwrap();
        assert_eq!(path, "/w:/w/src:/w/lib:/x");
        let kept = Suite::Given("make".into()).python_path(Path::new("/w"), Some(&given));
        assert_eq!(kept, Some(given));
    }
}
