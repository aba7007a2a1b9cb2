//! The project's Python.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
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
    let ask = |python: &PathBuf| format!("{} -c {} && exit", word(python), quote(QUESTION));
    let asked: Vec<String> = candidates.iter().map(ask).collect();
    let command = ShadowCommand {
        line: format!("cd /\n{}", asked.join("\n")),
        environment: environment.clone(),
        keep: directories(environment, given),
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

fn answer(line: &str) -> Option<Interpreter> {
    let (pytest, path) = line.strip_prefix("starling ")?.split_once(' ')?;
    Some(Interpreter {
        path: path.into(),
        has_pytest: pytest == "True",
    })
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
