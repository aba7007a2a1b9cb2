//! The possible locations of a project's interpreter: its own virtual environment, the active virtual
//! environment, the version that the project pins, and the system's Python.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use starling_platform::files::{PYTHON, PYTHON_OF_ENVIRONMENT, PYTHON_OF_INSTALLATION};
use starling_workspace::{MAX_FILE_BYTES, read_text};

/// Names of virtual environments in a project's directory, as created by venv, Poetry, uv, PDM and Pipenv.
const OWN: [&str; 3] = [".venv", "venv", "env"];
/// Environment variables that name the active virtual environment, and the path of its interpreter.
const ACTIVE: [(&str, &str); 2] = [
    ("VIRTUAL_ENV", PYTHON_OF_ENVIRONMENT),
    ("CONDA_PREFIX", PYTHON_OF_INSTALLATION),
];

/// Returns the interpreters to probe, in this order.
pub(crate) fn candidates(
    root: &Path,
    given: Option<&Path>,
    environment: &BTreeMap<OsString, OsString>,
) -> Vec<PathBuf> {
    if let Some(given) = given {
        return vec![given.to_owned()];
    }
    let own = OWN.iter().map(|name| home_of(root, name));
    let own = own.map(|home| home.join(PYTHON_OF_ENVIRONMENT));
    let named_by_pdm = first_line(&root.join(".pdm-python")).map(|line| root.join(line));
    let active = ACTIVE.iter().filter_map(|(name, python)| {
        let home = variable(environment, name)?;
        Some(home.join(python))
    });
    own.chain(named_by_pdm)
        .chain(active)
        .chain(pinned(root, environment))
        .filter(|python| python.exists())
        .chain([PathBuf::from(PYTHON)])
        .collect()
}

/// Returns a description of each virtual environment of the project whose interpreter is missing.
pub(super) fn broken(root: &Path) -> Vec<String> {
    let homes = OWN.iter().map(|name| home_of(root, name));
    homes.filter_map(|home| lost(&home)).collect()
}

fn lost(home: &Path) -> Option<String> {
    let python = home.join(PYTHON_OF_ENVIRONMENT);
    let dangling = [home, python.as_path()].into_iter().find_map(|link| {
        let to = std::fs::read_link(link).ok().filter(|_| !link.exists())?;
        Some((link, to))
    });
    if let Some((link, to)) = dangling {
        let (link, to) = (link.display(), to.display());
        return Some(format!("{link} is a link to {to}, which does not exist"));
    }
    let is_lost = home.join("pyvenv.cfg").is_file() && !python.exists();
    is_lost.then(|| format!("{} does not exist", python.display()))
}

/// Returns the directory of a virtual environment. `.venv` can be a file in which Pipenv wrote its path.
fn home_of(root: &Path, name: &str) -> PathBuf {
    let home = root.join(name);
    let named = home.is_file().then(|| first_line(&home)).flatten();
    named.map_or(home, |line| root.join(line))
}

/// Returns the pyenv interpreter that `.python-version` pins: exactly this version, or else the newest
/// version that starts with it.
fn pinned(root: &Path, environment: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let version = first_line(&root.join(".python-version"))?;
    let pyenv = variable(environment, "PYENV_ROOT")
        .or_else(|| std::env::home_dir().map(|home| home.join(".pyenv")))?;
    let versions = pyenv.join("versions");
    let mut found: Vec<(Vec<u32>, PathBuf)> = std::fs::read_dir(&versions)
        .ok()?
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let rest = name.strip_prefix(&version)?;
            let is_match = rest.is_empty() || rest.starts_with('.');
            let numbers = rest.split('.').filter_map(|part| part.parse().ok());
            is_match.then(|| (numbers.collect(), entry.path().join(PYTHON_OF_INSTALLATION)))
        })
        .collect();
    found.sort();
    let exact = found.iter().position(|(rest, _)| rest.is_empty());
    let place = exact.or(found.len().checked_sub(1))?;
    Some(found.swap_remove(place).1)
}

fn variable(environment: &BTreeMap<OsString, OsString>, name: &str) -> Option<PathBuf> {
    let value = environment.get(&OsString::from(name))?;
    Some(PathBuf::from(value)).filter(|path| path.is_absolute())
}

fn first_line(file: &Path) -> Option<String> {
    let text = read_text(file, MAX_FILE_BYTES).ok()?;
    let line = text.lines().next()?.trim();
    let is_plain = !line.is_empty() && !line.starts_with('#');
    is_plain.then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &Path) -> PathBuf {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
        path.to_owned()
    }

    fn variables(of: &[(&str, &Path)]) -> BTreeMap<OsString, OsString> {
        let pairs = of.iter();
        pairs
            .map(|(name, path)| (name.into(), path.as_os_str().to_owned()))
            .collect()
    }

    #[test]
    fn interpreter_candidates_are_project_then_active_then_pinned_environments() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        let own: Vec<_> = [".venv", "venv", "env"]
            .iter()
            .map(|name| program(&root.join(name).join("bin/python")))
            .collect();
        let active = program(&dir.path().join("active/bin/python"));
        let conda = program(&dir.path().join("conda/bin/python"));
        let pyenv = dir.path().join("pyenv");
        program(&pyenv.join("versions/3.12.9/bin/python"));
        let newest = program(&pyenv.join("versions/3.12.10/bin/python"));
        program(&pyenv.join("versions/3.1.1/bin/python"));
        std::fs::write(root.join(".python-version"), "3.12\n").unwrap();
        let pdm = program(&dir.path().join("pdm/bin/python3.12"));
        std::fs::write(root.join(".pdm-python"), pdm.to_str().unwrap()).unwrap();
        let environment = variables(&[
            ("VIRTUAL_ENV", &dir.path().join("active")),
            ("CONDA_PREFIX", &dir.path().join("conda")),
            ("PYENV_ROOT", &pyenv),
        ]);
        let mut expected = own;
        expected.extend([pdm, active, conda, newest, "python3".into()]);
        assert_eq!(candidates(&root, None, &environment), expected);
        let given = Path::new("/given");
        assert_eq!(candidates(&root, Some(given), &environment), [given]);

        std::fs::write(root.join(".python-version"), "3.12.9\n").unwrap();
        let exact = candidates(&root, None, &environment);
        assert!(exact.contains(&pyenv.join("versions/3.12.9/bin/python")));
        std::fs::write(root.join(".python-version"), "3.9\n").unwrap();
        assert_eq!(candidates(&root, None, &environment).len(), 7);
    }

    #[test]
    fn venv_file_with_a_path_selects_the_environment_at_that_path() {
        let dir = tempfile::tempdir().unwrap();
        let python = program(&dir.path().join("elsewhere/bin/python"));
        let root = dir.path().join("project");
        std::fs::create_dir(&root).unwrap();
        let home = dir.path().join("elsewhere");
        std::fs::write(root.join(".venv"), format!("{}\n", home.display())).unwrap();
        let found = candidates(&root, None, &BTreeMap::new());
        assert_eq!(found, [python, "python3".into()]);
    }

    #[test]
    fn environment_without_its_interpreter_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join(".venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink("/nowhere/python3", bin.join("python")).unwrap();
        std::os::unix::fs::symlink("/nowhere", root.path().join("env")).unwrap();
        std::fs::create_dir(root.path().join("venv")).unwrap();
        std::fs::write(root.path().join("venv/pyvenv.cfg"), "home = /x\n").unwrap();
        let at = |name: &str| root.path().join(name).join("bin/python");
        let expected = [
            format!(
                "{} is a link to /nowhere/python3, which does not exist",
                at(".venv").display()
            ),
            format!("{} does not exist", at("venv").display()),
            format!(
                "{} is a link to /nowhere, which does not exist",
                root.path().join("env").display()
            ),
        ];
        assert_eq!(broken(root.path()), expected);
        std::fs::remove_file(root.path().join("env")).unwrap();
        std::fs::create_dir(root.path().join("env")).unwrap();
        assert_eq!(broken(root.path()), expected[..2]);
        let found = candidates(root.path(), None, &BTreeMap::new());
        assert_eq!(found, [PathBuf::from("python3")]);
    }
}
