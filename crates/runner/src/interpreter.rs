//! Finds the Python interpreter of a project.

mod modules;
mod places;

pub(super) use modules::installed;
pub(super) use places::candidates;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::command::quote;
use super::environment::directories;
use starling_platform::files::PathExt;
use starling_sandbox::{ShadowCommand, Shadows};
use starling_workspace::FileContents;

const DEADLINE: Duration = Duration::from_secs(20);
const ANSWER_BYTES: usize = 64 << 10;
/// Python code that prints the interpreter's real path. The real path is used because a shim (such as
/// pyenv's) adds a tenth of a second to each start.
const QUESTION: &str = "import sys, importlib.util as u; \
                        print('starling', u.find_spec('pytest') is not None, sys.executable)";

/// An interpreter that runs in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    pub path: PathBuf,
    pub has_pytest: bool,
    /// A warning for the user: the project's interpreters that were skipped, with the reasons.
    pub warning: Option<String>,
}

/// The line that is printed, with a number, before each interpreter is probed.
const ASKED: &str = "starling-asks";

/// Returns the first interpreter that runs: the given one, or else one of [`candidates`]. They are
/// probed in a shadow (a sandboxed copy of the project), because some belong to the project and are
/// not trusted, and from a directory outside the workspace, so that no module of the project
/// replaces one of the standard library.
///
/// # Errors
/// No shadow could be created.
pub(super) async fn find(
    root: &Path,
    given: Option<&Path>,
    environment: &BTreeMap<OsString, OsString>,
    shadows: &Shadows,
) -> Result<Option<Interpreter>, String> {
    let candidates = candidates(root, given, environment);
    let mut keep = directories(environment);
    keep.extend(candidates.iter().flat_map(|python| prefixes(python)));
    let ask = |(number, python): (usize, &PathBuf)| {
        let question = quote(QUESTION);
        format!(
            "echo {ASKED} {number}\n{} -c {question} && exit",
            word(python)
        )
    };
    let asked: Vec<String> = candidates.iter().enumerate().map(ask).collect();
    let command = ShadowCommand {
        line: format!("cd /\n{}", asked.join("\n")),
        environment: environment.clone(),
        keep,
        deadline: DEADLINE,
        output_cap: ANSWER_BYTES,
    };
    let done = shadows
        .run(root, &FileContents::new(), &command)
        .await
        .map_err(|error| error.to_string())?;
    let found = done.output.lines().find_map(answer);
    Ok(found.map(|mut found| {
        let failed = &candidates[..passed_over(&done.output).min(candidates.len())];
        let failed = failed
            .iter()
            .map(|python| format!("{} cannot be executed", python.display()));
        let broken = given.is_none().then(|| places::broken(root));
        let reasons: Vec<String> = broken.into_iter().flatten().chain(failed).collect();
        found.warning = (!reasons.is_empty()).then(|| {
            let used = found.path.display();
            format!("{}; {used} is used instead", reasons.join("; "))
        });
        found
    }))
}

/// Returns the error for the user that no interpreter runs, with the interpreters that were tried.
pub(super) fn unanswered(asked: &[PathBuf]) -> String {
    let asked: Vec<String> = asked.iter().map(|one| one.display().to_string()).collect();
    format!(
        "no Python interpreter runs in the sandbox (tried {}): make .venv, put python3 on the path, or \
         name the interpreter's directory in sandbox.readable",
        asked.join(", ")
    )
}

/// Returns the number of interpreters that were probed without a response before one responded.
fn passed_over(output: &str) -> usize {
    let before = output.lines().take_while(|line| answer(line).is_none());
    let asked = before.filter_map(|line| line.strip_prefix(ASKED)?.trim().parse().ok());
    asked.last().unwrap_or(0)
}

fn word(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

/// Returns the path in a probe's reply if it is an absolute path of an existing interpreter. The reply is
/// not trusted, because a program of the project may have printed it.
fn answer(line: &str) -> Option<Interpreter> {
    let (pytest, path) = line.strip_prefix("starling ")?.split_once(' ')?;
    let path = PathBuf::from(path);
    let is_one = plain(&path).is_some_and(|plain| plain.as_os_str() == path.as_os_str())
        && !prefixes(&path).is_empty();
    is_one.then(|| Interpreter {
        path,
        has_pytest: pytest == "True",
        warning: None,
    })
}

/// Maximum number of symbolic links to follow from an interpreter to its real file.
const LINKS: usize = 16;

/// Returns the Python installations that an interpreter needs: the installation that contains its
/// path, the installations that its symbolic links lead through, and the base installation of a
/// virtual environment. Only directories with the layout of a Python installation are returned.
pub(super) fn prefixes(python: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut step = Some(python.to_owned());
    for _ in 0..LINKS {
        let Some(program) = step.as_deref().and_then(plain) else {
            break;
        };
        found.extend(installation(&program));
        // A parent directory can be a link, too.
        let bin = program.parent().and_then(|bin| bin.canonical().ok());
        let resolved = bin
            .zip(program.file_name())
            .map(|(bin, name)| bin.join(name));
        found.extend(resolved.and_then(|program| installation(&program)));
        step = std::fs::read_link(&program)
            .ok()
            .and_then(|to| Some(program.parent()?.join(to)));
    }
    found.extend(python.canonical().ok().and_then(|it| installation(&it)));
    let bases: Vec<PathBuf> = found.iter().filter_map(|prefix| base(prefix)).collect();
    found.extend(bases);
    found.sort();
    found.dedup();
    found
}

/// Removes `.` and `..` from a path without reading the file system. Returns `None` for a relative path.
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

/// Returns the installation directory whose `bin` directory contains the program.
fn installation(program: &Path) -> Option<PathBuf> {
    let named = program.file_name()?.to_str()?;
    let is_python = named.starts_with("python") || named.starts_with("pypy");
    let bin = program.parent().filter(|bin| bin.ends_with("bin"))?;
    let prefix = bin.parent()?;
    (is_python && program.is_file() && is_installation(prefix)).then(|| prefix.to_owned())
}

/// Whether a directory is a virtual environment or contains the modules of an interpreter.
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

/// Returns the value of a key in the `pyvenv.cfg` of a virtual environment.
fn base_setting<'s>(settings: &'s str, wanted: &str) -> Option<&'s str> {
    settings.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == wanted).then(|| value.trim())
    })
}

/// Returns the base Python installation of a virtual environment.
fn base(prefix: &Path) -> Option<PathBuf> {
    let settings = std::fs::read_to_string(prefix.join("pyvenv.cfg")).ok()?;
    let home = plain(Path::new(base_setting(&settings, "home")?))?;
    let names = ["python3", "python"];
    names.iter().find_map(|name| installation(&home.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::inherited;
    use starling_sandbox::Policy;

    async fn found(root: &Path, given: Option<&Path>) -> Option<Interpreter> {
        let cache = tempfile::tempdir().unwrap();
        let shadows = Shadows::open(cache.path(), Policy::default()).await;
        find(root, given, &inherited(&[]), &shadows.unwrap())
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn finds_an_existing_interpreter_by_its_absolute_path() {
        let root = tempfile::tempdir().unwrap();
        let found = found(root.path(), None).await.unwrap();
        assert!(found.path.is_absolute() && found.path.exists());
        assert_eq!(found.warning, None);
    }

    #[tokio::test]
    async fn broken_interpreter_link_is_skipped_with_a_warning() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join(".venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink("/nowhere/python3", bin.join("python")).unwrap();
        let found = found(root.path(), None).await.unwrap();
        let expected = format!(
            "{} is a link to /nowhere/python3, which does not exist; {} is used instead",
            bin.join("python").display(),
            found.path.display()
        );
        assert_eq!(found.warning, Some(expected));
    }

    /// The sandbox hides `/tmp`, but an environment there is made visible.
    #[tokio::test]
    async fn virtual_environment_in_the_temporary_directory_works() {
        let elsewhere = tempfile::tempdir_in("/tmp").unwrap();
        let home = elsewhere.path().join("made");
        let made = std::process::Command::new("python3")
            .args(["-m", "venv", "--without-pip"])
            .arg(&home)
            .status();
        assert!(made.unwrap().success());
        let python = home.join("bin/python");
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(&home, root.path().join(".venv")).unwrap();
        let found_by_link = found(root.path(), None).await.unwrap();
        assert_eq!(found_by_link.path, root.path().join(".venv/bin/python"));
        assert_eq!(found_by_link.warning, None);
        let given = found(root.path(), Some(&python)).await.unwrap();
        assert_eq!(given.path, python);
    }

    #[tokio::test]
    async fn skips_an_interpreter_that_cannot_be_executed() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("python"), "not a program").unwrap();
        let given = bin.join("python");
        let warning = found(root.path(), None).await.unwrap().warning.unwrap();
        let expected = format!("{} cannot be executed; ", given.display());
        assert!(warning.starts_with(&expected), "{warning}");
        assert_eq!(found(root.path(), Some(&given)).await, None);
    }

    #[test]
    fn error_lists_the_interpreters_that_cannot_be_executed() {
        let said = unanswered(&["/w/.venv/bin/python".into(), "python3".into()]);
        assert!(
            said.starts_with(
                "no Python interpreter runs in the sandbox (tried /w/.venv/bin/python, python3)"
            ),
            "{said}"
        );
    }

    fn script(path: &Path, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[tokio::test]
    async fn interpreter_with_an_invalid_probe_reply_is_skipped() {
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
    fn virtual_environment_makes_its_base_installation_visible() {
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
    fn home_directory_with_a_python_program_is_not_treated_as_an_installation() {
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
    async fn interpreter_of_the_project_is_probed_in_the_sandbox() {
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
