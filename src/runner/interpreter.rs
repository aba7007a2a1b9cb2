//! The project's Python.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::command::quote;
use super::environment::directories;
use crate::workspace::{Overlay, ShadowCommand, Shadows};

const DEADLINE: Duration = Duration::from_secs(20);
const ANSWER_BYTES: usize = 64 << 10;
/// Its own path comes before anything else can: a shim costs a tenth of a second for each start.
const QUESTION: &str = "import sys, importlib.util as u; \
                        print('starling', u.find_spec('pytest') is not None, sys.executable)";

/// An interpreter that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    pub path: PathBuf,
    pub has_pytest: bool,
}

/// The first interpreter that runs: the one given, else that of `.venv`, `venv`, `$VIRTUAL_ENV`,
/// else `python3` on the path. They are asked in a shadow, since the first ones are the project's; and
/// from outside the workspace, so that none of its modules can answer in the place of the standard
/// library's.
///
/// # Errors
/// Why no shadow could be made.
pub(super) async fn find(
    root: &Path,
    given: Option<&Path>,
    environment: &BTreeMap<OsString, OsString>,
    shadows: &Shadows,
) -> Result<Option<Interpreter>, String> {
    let candidates = candidates(root, given, environment);
    let mut keep = directories(environment);
    keep.extend(candidates.iter().flat_map(|python| prefixes(python)));
    let ask = |python: &PathBuf| format!("{} -c {} && exit", word(python), quote(QUESTION));
    let asked: Vec<String> = candidates.iter().map(ask).collect();
    let command = ShadowCommand {
        line: format!("cd /\n{}", asked.join("\n")),
        environment: environment.clone(),
        keep,
        deadline: DEADLINE,
        output_cap: ANSWER_BYTES,
    };
    let done = shadows
        .run(root, &Overlay::new(), &command)
        .await
        .map_err(|error| error.to_string())?;
    Ok(done.output.lines().find_map(answer))
}

fn word(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

/// An answer counts only if it names an interpreter that is there, straight from the root: a program of
/// the project may have printed it.
fn answer(line: &str) -> Option<Interpreter> {
    let (pytest, path) = line.strip_prefix("starling ")?.split_once(' ')?;
    let path = PathBuf::from(path);
    let is_one = plain(&path).is_some_and(|plain| plain.as_os_str() == path.as_os_str())
        && !prefixes(&path).is_empty();
    is_one.then(|| Interpreter {
        path,
        has_pytest: pytest == "True",
    })
}

/// How many links are followed from an interpreter to what it is.
const LINKS: usize = 16;

/// The installations that an interpreter needs: the one that its path is in, those that links lead
/// through, and the one that a virtual environment is made from. Only directories that are laid out as
/// an installation of Python are taken, whatever names them.
pub(super) fn prefixes(python: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut step = Some(python.to_owned());
    for _ in 0..LINKS {
        let Some(program) = step.as_deref().and_then(plain) else {
            break;
        };
        found.extend(installation(&program));
        step = std::fs::read_link(&program)
            .ok()
            .and_then(|to| Some(program.parent()?.join(to)));
    }
    found.extend(python.canonicalize().ok().and_then(|it| installation(&it)));
    let bases: Vec<PathBuf> = found.iter().filter_map(|prefix| base(prefix)).collect();
    found.extend(bases);
    found.sort();
    found.dedup();
    found
}

/// A path with `.` and `..` taken out by its words; none for a relative one.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::from("/");
    for part in path.has_root().then(|| path.components())? {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(plain)
}

/// The installation that a program lies in the `bin` of.
fn installation(program: &Path) -> Option<PathBuf> {
    let named = program.file_name()?.to_str()?;
    let is_python = named.starts_with("python") || named.starts_with("pypy");
    let bin = program.parent().filter(|bin| bin.ends_with("bin"))?;
    let prefix = bin.parent()?;
    (is_python && program.is_file() && is_installation(prefix)).then(|| prefix.to_owned())
}

/// Whether a directory holds an environment, or the modules of an interpreter.
fn is_installation(prefix: &Path) -> bool {
    let has_modules = |library: &str| {
        let entries = std::fs::read_dir(prefix.join(library));
        let names = entries.into_iter().flatten().flatten();
        names.map(|entry| entry.file_name()).any(|name| {
            let name = name.to_string_lossy();
            ["python3", "python2", "pypy"]
                .iter()
                .any(|start| name.starts_with(start))
        })
    };
    prefix.parent().is_some()
        && (prefix.join("pyvenv.cfg").is_file() || ["lib", "lib64"].into_iter().any(has_modules))
}

/// The installation that a virtual environment is made from.
fn base(prefix: &Path) -> Option<PathBuf> {
    let settings = std::fs::read_to_string(prefix.join("pyvenv.cfg")).ok()?;
    let home = settings.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "home").then(|| PathBuf::from(value.trim()))
    })?;
    let home = plain(&home)?;
    let names = ["python3", "python"];
    names.iter().find_map(|name| installation(&home.join(name)))
}

/// The interpreters that are asked, in this order.
pub(super) fn candidates(
    root: &Path,
    given: Option<&Path>,
    environment: &BTreeMap<OsString, OsString>,
) -> Vec<PathBuf> {
    if let Some(given) = given {
        return vec![given.to_owned()];
    }
    let active = environment.get(&OsString::from("VIRTUAL_ENV"));
    [".venv", "venv"]
        .iter()
        .map(|name| root.join(name))
        .chain(active.map(PathBuf::from))
        .map(|home| home.join("bin/python"))
        .filter(|python| python.exists())
        .chain([PathBuf::from("python3")])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::environment::inherited;
    use crate::workspace::Policy;

    async fn found(root: &Path, given: Option<&Path>) -> Option<Interpreter> {
        let cache = tempfile::tempdir().unwrap();
        let shadows = Shadows::open(cache.path(), Policy::default()).await;
        find(root, given, &inherited(&[]), &shadows.unwrap())
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn finds_the_interpreter_itself() {
        let root = tempfile::tempdir().unwrap();
        let found = found(root.path(), None).await.unwrap();
        assert!(found.path.is_absolute() && found.path.exists());
    }

    #[test]
    fn prefers_the_environment_of_the_workspace() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join(".venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        let python = bin.join("python");
        std::os::unix::fs::symlink("/bin/true", &python).unwrap();
        let order = candidates(root.path(), None, &BTreeMap::new());
        assert_eq!(order, [python, "python3".into()]);
        let mut active = BTreeMap::new();
        active.insert("VIRTUAL_ENV".into(), root.path().join(".venv").into());
        assert_eq!(candidates(root.path(), None, &active).len(), 3);
    }

    #[tokio::test]
    async fn passes_over_one_that_does_not_run() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("python"), "not a program").unwrap();
        assert!(found(root.path(), None).await.is_some());
        let given = bin.join("python");
        assert_eq!(found(root.path(), Some(&given)).await, None);
    }

    fn script(path: &Path, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[tokio::test]
    async fn an_answer_that_names_no_interpreter_is_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let other = root.path().join("other");
        script(&other.join("bin/python3"), "");
        for named in [
            "/run/../usr/bin/env",
            "/usr/bin/env",
            "/python3",
            "bin/python3",
            other.join("bin/python3").to_str().unwrap(),
        ] {
            let text = format!("#!/bin/sh\necho starling True {named}\n");
            script(&root.path().join(".venv/bin/python"), &text);
            assert_eq!(found(root.path(), None).await, None, "{named}");
        }
    }

    #[test]
    fn an_environment_needs_what_it_is_made_from() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        script(&at("pythons/3.12.1/bin/python3.12"), "");
        std::fs::create_dir_all(at("pythons/3.12.1/lib/python3.12")).unwrap();
        std::os::unix::fs::symlink("3.12.1", at("pythons/3.12")).unwrap();
        std::fs::create_dir_all(at(".venv/bin")).unwrap();
        std::fs::write(at(".venv/pyvenv.cfg"), "home = /nowhere/bin\n").unwrap();
        let link = at("pythons/3.12/bin/python3.12");
        std::os::unix::fs::symlink(link, at(".venv/bin/python")).unwrap();
        let expected = [at(".venv"), at("pythons/3.12"), at("pythons/3.12.1")];
        assert_eq!(prefixes(&at(".venv/bin/python")), expected);

        script(&at("copied/bin/python"), "");
        let home = at("pythons/3.12.1/bin");
        std::fs::rename(home.join("python3.12"), home.join("python3")).unwrap();
        let settings = format!("version = 3.12.1\nhome = {}\n", home.display());
        std::fs::write(at("copied/pyvenv.cfg"), settings).unwrap();
        let expected = [at("copied"), at("pythons/3.12.1")];
        assert_eq!(prefixes(&at("copied/bin/python")), expected);
    }

    #[test]
    fn no_other_directory_passes_for_an_installation() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        script(&home.join("bin/python"), "");
        script(&home.join(".ssh/python"), "");
        std::os::unix::fs::symlink(&home, dir.path().join(".venv")).unwrap();
        for python in ["home/bin/python", ".venv/bin/python", "home/.ssh/python"] {
            let found = prefixes(&dir.path().join(python));
            assert_eq!(found, Vec::<PathBuf>::new(), "{python}");
        }
    }

    #[tokio::test]
    async fn the_interpreter_of_a_project_is_asked_in_the_sandbox() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        let left = root.path().join("left-behind");
        let text = format!("#!/bin/sh\necho x > '{}'\n", left.display());
        std::fs::write(bin.join("python"), text).unwrap();
        use std::os::unix::fs::PermissionsExt;
        let runs = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(bin.join("python"), runs).unwrap();
        found(root.path(), None).await;
        assert!(!left.exists());
    }
}
