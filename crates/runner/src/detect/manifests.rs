//! Detects pytest in the project's manifests, by its configuration and the dependencies.

use std::sync::Arc;

use toml::Value;

use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Configuration files of pytest, each with the text that must occur in it.
const CONFIGURATION: [(&str, &str); 6] = [
    ("pytest.ini", ""),
    (".pytest.ini", ""),
    ("pytest.toml", ""),
    ("pyproject.toml", "[tool.pytest"),
    ("setup.cfg", "[tool:pytest]"),
    ("tox.ini", "[pytest]"),
];

/// Lists of requirements in pyproject.toml; `*` matches every key.
const LISTS: [&[&str]; 7] = [
    &["project", "dependencies"],
    &["project", "optional-dependencies", "*"],
    &["dependency-groups", "*"],
    &["tool", "pdm", "dev-dependencies", "*"],
    &["tool", "uv", "dev-dependencies"],
    &["tool", "hatch", "envs", "*", "dependencies"],
    &["tool", "hatch", "envs", "*", "extra-dependencies"],
];

/// Tables whose keys are the names of packages, in pyproject.toml and in a Pipfile.
const TABLES: [&[&str]; 5] = [
    &["tool", "poetry", "dependencies"],
    &["tool", "poetry", "dev-dependencies"],
    &["tool", "poetry", "group", "*", "dependencies"],
    &["packages"],
    &["dev-packages"],
];

/// Maximum number of packages of one repository that are used.
const PACKAGES: usize = 64;

/// Returns the directories that contain the packages of a monorepo: the directory `src` next to
/// each manifest that is below the root. Tests can import from these directories even if the
/// packages are not installed.
pub(crate) fn sources(snapshot: &Snapshot) -> Vec<String> {
    let files = snapshot.files();
    let holds_code = |directory: &str| {
        let start = format!("{directory}/");
        let first = files.partition_point(|file| file.as_str() < start.as_str());
        let inside = files[first..].iter().map(FilePath::as_str);
        let mut inside = inside.take_while(|file| file.starts_with(&start));
        inside.any(|file| file.ends_with(".py"))
    };
    let manifests = files
        .iter()
        .filter(|file| ["pyproject.toml", "setup.py", "setup.cfg"].contains(&file.name()))
        .map(FilePath::directory)
        .filter(|directory| !directory.is_empty());
    let mut sources: Vec<String> = manifests
        .map(|directory| format!("{directory}/src"))
        .filter(|source| holds_code(source))
        .collect();
    sources.dedup();
    sources.truncate(PACKAGES);
    sources
}

/// Returns the file that configures pytest, with its text.
pub(super) fn configuration(snapshot: &Snapshot) -> Option<(&'static str, Arc<str>)> {
    CONFIGURATION.iter().find_map(|(file, mark)| {
        let text = text(snapshot, file)?;
        text.contains(mark).then_some((*file, text))
    })
}

/// Returns whether a configuration makes pytest collect files other than `test_*.py` and
/// `*_test.py`.
pub(super) fn widens_collection(configuration: &str) -> bool {
    ["python_files", "--doctest-modules", "--doctest-glob"]
        .iter()
        .any(|setting| configuration.contains(setting))
}

/// Returns the manifest that lists pytest, or one of its plugins, as a dependency.
pub(super) fn dependency(snapshot: &Snapshot) -> Option<&str> {
    let files = snapshot.files().iter();
    files.map(FilePath::as_str).find(|file| {
        let Some(reader) = reader(file) else {
            return false;
        };
        text(snapshot, file).is_some_and(|text| reader(&text))
    })
}

/// Returns the function that checks a manifest for pytest, or `None` if the file is not a manifest.
fn reader(file: &str) -> Option<fn(&str) -> bool> {
    match file {
        "pyproject.toml" | "Pipfile" => return Some(toml_requires),
        "setup.cfg" | "tox.ini" => return Some(lines_require),
        "setup.py" => return Some(code_requires),
        _ => {}
    }
    let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
    let is_list = name.ends_with(".txt") || name.ends_with(".in");
    let is_named = name.contains("requirements") || directory.ends_with("requirements");
    let is_near = !directory.contains('/');
    (is_list && is_named && is_near).then_some(lines_require)
}

fn text(snapshot: &Snapshot, file: &str) -> Option<Arc<str>> {
    let file = FilePath::new(file);
    let is_listed = snapshot.files().binary_search(&file).is_ok();
    is_listed.then(|| snapshot.read(&file).ok())?
}

fn toml_requires(text: &str) -> bool {
    let Ok(manifest) = text.parse::<toml::Table>() else {
        return false;
    };
    let manifest = Value::Table(manifest);
    let listed = LISTS
        .iter()
        .flat_map(|path| values(&manifest, path))
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(Value::as_str);
    let keyed = TABLES
        .iter()
        .flat_map(|path| values(&manifest, path))
        .filter_map(Value::as_table)
        .flat_map(|table| table.keys().map(String::as_str));
    listed.chain(keyed).any(names_pytest)
}

/// Returns the values at a path of keys; `*` matches every key.
fn values<'a>(value: &'a Value, path: &[&str]) -> Vec<&'a Value> {
    let Some((key, rest)) = path.split_first() else {
        return vec![value];
    };
    let Some(table) = value.as_table() else {
        return Vec::new();
    };
    let inner = table.iter().filter(|(name, _)| *key == "*" || name == key);
    inner.flat_map(|(_, value)| values(value, rest)).collect()
}

/// Returns whether a line is a requirement of pytest, alone or after `deps =` or `tests_require =`.
fn lines_require(text: &str) -> bool {
    text.lines().any(|line| {
        let setting = line.split_once('=');
        let listed = setting.filter(|(key, _)| key.contains("deps") || key.contains("require"));
        let requirement = listed.map_or(line, |(_, value)| value);
        names_pytest(requirement.trim_start())
    })
}

/// Returns whether Python code contains a string that is a requirement of pytest.
fn code_requires(text: &str) -> bool {
    text.lines()
        .flat_map(|line| line.split(['\'', '"']).skip(1).step_by(2))
        .any(names_pytest)
}

fn names_pytest(requirement: &str) -> bool {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let name: String = requirement.chars().take_while(is_part).collect();
    let name = name.to_ascii_lowercase().replace(['_', '.'], "-");
    name == "pytest" || name.starts_with("pytest-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_dependencies_of_every_kind_of_manifest() {
        for (file, text) in [
            ("pyproject.toml", "[project]\ndependencies = ['pytest>=8']"),
            (
                "pyproject.toml",
                "[project.optional-dependencies]\ntest = ['a', 'PyTest[x] >= 7']",
            ),
            (
                "pyproject.toml",
                "[dependency-groups]\ndev = [{include-group = 'x'}, 'pytest-xdist']",
            ),
            (
                "pyproject.toml",
                "[tool.poetry.group.dev.dependencies]\npytest = '^8'",
            ),
            (
                "pyproject.toml",
                "[tool.poetry.dev-dependencies]\npytest = { version = '*' }",
            ),
            (
                "pyproject.toml",
                "[tool.pdm.dev-dependencies]\ntest = ['pytest']",
            ),
            (
                "pyproject.toml",
                "[tool.hatch.envs.default]\ndependencies = ['pytest']",
            ),
            ("pyproject.toml", "[tool.uv]\ndev-dependencies = ['pytest']"),
            ("Pipfile", "[dev-packages]\npytest = '*'"),
            ("requirements.txt", "# tools\npytest==8.1 # new\n"),
            ("requirements-dev.txt", "-r requirements.txt\npytest"),
            ("requirements/test.in", "pytest_cov"),
            (
                "setup.cfg",
                "[options.extras_require]\ntest =\n    pytest\n",
            ),
            ("tox.ini", "[testenv]\ndeps = pytest\n"),
            ("setup.py", "setup(extras_require={'t': [\"pytest>=3\"]})"),
        ] {
            assert!(reader(file).unwrap()(text), "{file}: {text}");
        }
    }

    #[test]
    fn similar_package_names_and_files_that_are_no_manifests_do_not_count_as_a_pytest_dependency() {
        for (file, text) in [
            ("pyproject.toml", "[project]\ndependencies = ['pytester']"),
            ("pyproject.toml", "[project]\nname = 'pytest'"),
            ("pyproject.toml", "[project\ndependencies = ['pytest']"),
            ("Pipfile", "[packages]\nmypytest = '*'"),
            ("requirements.txt", "# pytest\nrequests\n"),
            ("setup.cfg", "[metadata]\nname = thing\n"),
            ("setup.py", "import pytest  # not a dependency\n"),
        ] {
            assert!(!reader(file).unwrap()(text), "{file}: {text}");
        }
        for file in ["a/b/requirements.txt", "notes.txt", "sub/pyproject.toml"] {
            assert!(reader(file).is_none(), "{file}");
        }
    }
}
