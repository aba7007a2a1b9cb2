//! The project's Python.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(20);
/// Its own path comes before anything else can: a shim costs a tenth of a second for each start.
const QUESTION: &str = "import sys, importlib.util as u; print(sys.executable); \
                        print(u.find_spec('pytest') is not None)";

/// An interpreter that answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    pub path: PathBuf,
    pub has_pytest: bool,
}

/// The first interpreter that runs: the one given, else that of `.venv`, `venv`, `$VIRTUAL_ENV`,
/// else `python3` on the path.
pub(super) async fn find(
    root: &Path,
    given: Option<&Path>,
    environment: &BTreeMap<OsString, OsString>,
) -> Option<Interpreter> {
    for candidate in candidates(root, given, environment) {
        if let Some(found) = ask(&candidate, environment).await {
            return Some(found);
        }
    }
    None
}

fn candidates(
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

/// Asked from outside the workspace, so that none of its modules can answer in the place of the
/// standard library's.
async fn ask(python: &Path, environment: &BTreeMap<OsString, OsString>) -> Option<Interpreter> {
    let answer = Command::new(python)
        .args(["-c", QUESTION])
        .current_dir("/")
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = timeout(DEADLINE, answer).await.ok()?.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (path, pytest) = text.trim().split_once('\n')?;
    Some(Interpreter {
        path: path.into(),
        has_pytest: pytest.trim() == "True",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::environment::inherited;

    #[tokio::test]
    async fn finds_the_interpreter_itself() {
        let root = tempfile::tempdir().unwrap();
        let found = find(root.path(), None, &inherited()).await.unwrap();
        assert!(found.path.is_absolute() && found.path.exists());
    }

    #[tokio::test]
    async fn prefers_the_environment_of_the_workspace() {
        let root = tempfile::tempdir().unwrap();
        let system = find(root.path(), None, &inherited()).await.unwrap();
        let bin = root.path().join(".venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        let python = bin.join("python");
        std::os::unix::fs::symlink(&system.path, &python).unwrap();
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
        assert!(find(root.path(), None, &inherited()).await.is_some());
        let given = find(root.path(), Some(&bin.join("python")), &inherited()).await;
        assert_eq!(given, None);
    }
}
