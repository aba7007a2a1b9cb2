//! Finds the directories from which a project's modules are imported by their top-level names
//! (entries of `sys.path`).

use std::collections::BTreeMap;

use super::code::Code;
use super::resolve::Source;
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Directories whose modules can be imported from anywhere in the workspace.
pub(super) const ROOTS: [&str; 4] = ["", "src", "lib", "python"];
/// Names of files whose settings can add directories to `sys.path`.
const MANIFESTS: [&str; 12] = [
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    "tox.ini",
    "noxfile.py",
    "Makefile",
    "justfile",
    ".envrc",
    "conftest.py",
];
/// The settings in these files that add such directories. They are settings of pytest, setuptools,
/// Poetry, Hatch, PDM and Maturin, and calls of Python code.
const SETTINGS: [&str; 13] = [
    "pythonpath",
    "python_paths",
    "package_dir",
    "package-dir",
    "where",
    "from",
    "sources",
    "dev-mode-dirs",
    "python-source",
    "find_packages",
    "find_namespace_packages",
    "sys.path",
    "site.addsitedir",
];
/// The environment variable that adds such directories.
const VARIABLE: &str = "PYTHONPATH";
/// Maximum number of lines after the first one that are read as the value of one setting.
const LINES_OF_VALUE: usize = 8;

/// Why a directory is in `sys.path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RootKind {
    /// Pytest puts the directory first when it loads a test file or conftest.py there.
    Tests,
    /// The project's layout or a setting.
    Project,
}

/// The directories from which modules are imported, each with the reason for it.
#[derive(Debug)]
pub(super) struct ImportRoots(BTreeMap<String, RootKind>);

impl ImportRoots {
    pub(super) fn of(code: &Code, world: &Snapshot) -> Self {
        let mut roots = BTreeMap::new();
        for file in world.files() {
            if is_test(file) {
                roots.insert(above_packages(code, file.directory()), RootKind::Tests);
            }
        }
        let known = ROOTS.iter().map(|root| (*root).to_owned());
        let named = world.files().iter().flat_map(|file| named_in(world, file));
        // A new file can create a directory that a setting names.
        roots.extend(known.chain(named).map(|root| (root, RootKind::Project)));
        ImportRoots(roots)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, RootKind)> {
        self.0.iter().map(|(root, kind)| (root.as_str(), *kind))
    }
}

fn parent(directory: &str) -> &str {
    directory.rsplit_once('/').map_or("", |(above, _)| above)
}

/// Returns whether pytest loads a file by default.
pub(super) fn is_test(file: &FilePath) -> bool {
    let name = file.name();
    let is_test = name.starts_with("test_") || name.ends_with("_test.py");
    name.ends_with(".py") && (is_test || name == "conftest.py")
}

/// Returns the first directory that is not a package: this one, or the one above its packages.
fn above_packages(code: &Code, directory: &str) -> String {
    let mut directory = directory;
    let is_package = |directory: &str| {
        !directory.is_empty() && Source::file(code, &format!("{directory}/__init__.py")).is_some()
    };
    while is_package(directory) {
        directory = parent(directory);
    }
    directory.to_owned()
}

/// Returns each word in the values of a file's settings, read as a path. Not every word is a directory.
fn named_in(world: &Snapshot, file: &FilePath) -> Vec<String> {
    if !MANIFESTS.contains(&file.name()) {
        return Vec::new();
    }
    let Ok(text) = world.read(file) else {
        return Vec::new();
    };
    // Code often joins the parts of a path that begins above the directory of the file.
    let mut bases = vec![file.directory()];
    if file.name().ends_with(".py") && !file.directory().is_empty() {
        bases.push(parent(file.directory()));
        bases.push("");
    }
    let values = values(&text).into_iter();
    let paths = values.flat_map(|value| bases.iter().filter_map(move |base| below(base, value)));
    paths.collect()
}

/// Returns the words of the values of all settings in a text.
fn values(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(first) = value_of(line) else {
            continue;
        };
        let most = match line.contains(VARIABLE) {
            true => 0,
            false => LINES_OF_VALUE,
        };
        let more = lines[at + 1..].iter().take(most);
        let more = more.take_while(|line| !is_setting(line));
        for part in [&first].into_iter().chain(more) {
            found.extend(part.split(|c: char| !is_path_character(c)));
        }
    }
    found
}

/// Returns what follows a setting's name in a line, or the value of `PYTHONPATH` in it, which ends at
/// the first space. Returns `None` if the line has neither.
fn value_of(line: &str) -> Option<&str> {
    if let Some((_, rest)) = line.split_once(VARIABLE) {
        let rest = rest.trim_start_matches(['"', '\'', ']', ' ', '=', ':', ',', '(']);
        return rest.split_whitespace().next();
    }
    let after = SETTINGS.iter().filter_map(|setting| {
        let (before, rest) = line.split_once(setting)?;
        let is_start = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let end = rest.trim_start_matches(['"', '\'', ' ']);
        let is_end = end.starts_with(['=', ':', '(', '[', ']', '+']) || is_list_method(end);
        (is_start && is_end).then_some(rest)
    });
    after.max_by_key(|rest| rest.len())
}

fn is_list_method(text: &str) -> bool {
    [".insert", ".append", ".extend"]
        .iter()
        .any(|method| text.starts_with(method))
}

/// Returns whether a line begins another setting or section.
fn is_setting(line: &str) -> bool {
    let text = line.trim_start();
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let rest = text.trim_start_matches(is_name);
    let is_named = rest.len() < text.len() && rest.trim_start().starts_with(['=', ':']);
    let is_inside = text.len() < line.len() || text.starts_with(['"', '\'', ']', '}', ')']);
    is_named || !text.is_empty() && !is_inside
}

fn is_path_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.')
}

/// Returns the path of a word below a directory; `None` if the path is outside of the workspace.
fn below(base: &str, word: &str) -> Option<String> {
    if word.is_empty() {
        return None;
    }
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in word.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::snapshot_of;
    use super::*;
    use crate::Index;

    fn roots(files: &[(&str, &str)]) -> Vec<String> {
        let index = Index::new(snapshot_of(files));
        let roots = ImportRoots::of(index.code(), index.snapshot());
        let named = |(root, kind): (&str, RootKind)| match kind {
            RootKind::Project => root.to_owned(),
            RootKind::Tests => format!("{root} (tests)"),
        };
        roots.iter().map(named).collect()
    }

    #[test]
    fn settings_of_every_tool_name_directories_of_modules() {
        for (file, text, root) in [
            (
                "pyproject.toml",
                "[tool.pytest.ini_options]\npythonpath = [\n  \"code\",\n]\n",
                "code",
            ),
            ("pytest.ini", "[pytest]\npythonpath = . ./code\n", "code"),
            (
                "pytest.ini",
                "[pytest]\npythonpath =\n    .\n    code/\n",
                "code",
            ),
            (
                "setup.cfg",
                "[options]\npackage_dir =\n    = code\n",
                "code",
            ),
            (
                "setup.cfg",
                "[options.packages.find]\nwhere = code\n",
                "code",
            ),
            ("setup.py", "setup(package_dir={'': 'code'})\n", "code"),
            (
                "setup.py",
                "setup(packages=find_packages('code'))\n",
                "code",
            ),
            (
                "pyproject.toml",
                "[tool.setuptools.packages.find]\nwhere = [\"code\"]\n",
                "code",
            ),
            (
                "pyproject.toml",
                "[tool.setuptools]\npackage-dir = {\"\" = \"code\"}\n",
                "code",
            ),
            (
                "pyproject.toml",
                "[tool.setuptools.package-dir]\n\"\" = \"code\"\n",
                "code",
            ),
            (
                "pyproject.toml",
                "[tool.poetry]\npackages = [{ include = \"a\", from = \"code\" }]\n",
                "code",
            ),
            (
                "tox.ini",
                "[testenv]\nsetenv = PYTHONPATH = {toxinidir}/code\n",
                "code",
            ),
            (
                "Makefile",
                "test:\n\tPYTHONPATH=code python3 -m pytest\n",
                "code",
            ),
            (
                "sub/pyproject.toml",
                "[tool.pytest.ini_options]\npythonpath = [\"code\"]\n",
                "sub/code",
            ),
        ] {
            let found = roots(&[(file, text), ("other/m.py", "x = 1\n")]);
            assert!(found.iter().any(|one| one == root), "{text}: {found:?}");
            assert!(
                !found.iter().any(|one| one == "other" || one == "pytest"),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn layout_tests_and_conftest_name_directories_of_modules() {
        let files = [
            ("src/a/__init__.py", ""),
            ("lib/b.py", ""),
            ("unit/test_a.py", ""),
            ("checks/__init__.py", ""),
            ("checks/deep/__init__.py", ""),
            ("checks/deep/c_test.py", ""),
            ("other/d.py", ""),
            ("code/e.py", ""),
            (
                "unit/conftest.py",
                "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'code'))\n",
            ),
        ];
        let found = roots(&files);
        for root in ["", "code", "lib", "src", "unit (tests)"] {
            assert!(found.iter().any(|one| one == root), "{root}: {found:?}");
        }
        for other in ["other", "checks (tests)", "checks/deep (tests)", "src/a"] {
            assert!(!found.iter().any(|one| one == other), "{other}: {found:?}");
        }
    }
}
