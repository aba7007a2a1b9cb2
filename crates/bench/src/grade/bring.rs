//! Adds the hidden tests to a checkout with a predicted change, and reverts what the change did to
//! tests and their configuration.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::canary::Canary;
use crate::checkout::Checkout;
use crate::dataset::Instance;
use crate::git::{self, GitError};
use crate::patch::{changes_of, paths_of, write};

/// Top-level directories of tests and test support. In deeper directories, these names can belong
/// to the code under test.
const FOLDERS: [&str; 3] = ["test", "tests", "testing"];
/// Files that Python or pytest runs automatically.
const READ_BY_ITSELF: [&str; 3] = ["conftest.py", "sitecustomize.py", "usercustomize.py"];

/// Files from which pytest, its plugins and other test runners read settings, which can load any code
/// as a plugin. In lower case.
const SETTINGS: [&str; 15] = [
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "tox.toml",
    "setup.cfg",
    "pyproject.toml",
    ".coveragerc",
    ".coveragerc.toml",
    "unittest.cfg",
    "nose2.cfg",
    "nose.cfg",
    ".nose.cfg",
    ".noserc",
];
/// Endings of directories and files with the metadata of a package, which can name plugins.
const METADATA: [&str; 4] = [".egg-info", ".dist-info", ".egg", ".egg-link"];

/// What a file does in a test run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SupportKind {
    /// A test, or code that runs with the tests.
    Test,
    /// Settings of the test runner, among settings for other programs.
    Settings,
}

/// Returns how a file supports the tests, judging by its path; `None` for a file of the code under test.
fn kind(path: &str) -> Option<SupportKind> {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let top = folders.split('/').next().unwrap_or_default();
    let lower = path.to_lowercase();
    let mut parts = lower.split('/');
    let is_of_package = parts.any(|part| METADATA.iter().any(|ending| part.ends_with(ending)));
    let is_compiled = lower.ends_with(".pyc") || lower.split('/').any(|part| part == "__pycache__");
    if SETTINGS.contains(&name.to_lowercase().as_str()) || is_of_package {
        return Some(SupportKind::Settings);
    }
    let is_of_tests = FOLDERS.contains(&top)
        || READ_BY_ITSELF.contains(&name)
        || name.ends_with(".pth")
        || is_compiled
        || path == "bin/test"
        || (name.ends_with(".py")
            && (name.starts_with("test_") || name.ends_with("_test.py") || name == "tests.py"));
    is_of_tests.then_some(SupportKind::Test)
}

/// Restores the tests and the settings of test runners that a predicted change touched, then adds the
/// hidden tests. Settings that the known change touches get its text.
///
/// # Errors
/// Fails if git cannot read or apply the files.
pub(super) async fn tests(
    instance: &Instance,
    repository: &Path,
    lent: &Checkout,
) -> Result<(), GitError> {
    let commit = &instance.task.base_commit;
    let hidden = &instance.answer.test_patch;
    // Files that the known change touches are code under test.
    let known = paths_of(&instance.answer.patch);
    let mut paths = paths_of(hidden);
    let mut known_settings = false;
    for path in lent.changed().await? {
        let is_known = known.contains(&path);
        match kind(&path) {
            Some(SupportKind::Test) if !is_known => drop(paths.insert(path)),
            Some(SupportKind::Settings) => {
                known_settings |= is_known;
                paths.insert(path);
            }
            Some(SupportKind::Test) | None => {}
        }
    }
    let checkout = &lent.path();
    for path in &paths {
        let text = git::file_at(repository, commit, path).await?;
        restore(checkout, path, text.as_deref()).map_err(GitError::Disk)?;
    }
    if known_settings {
        for change in changes_of(repository, commit, &instance.answer.patch).await? {
            if kind(&change.path) == Some(SupportKind::Settings) {
                let after = change.after.as_deref();
                restore(checkout, &change.path, after).map_err(GitError::Disk)?;
            }
        }
    }
    git::apply(checkout, hidden).await
}

/// Writes a file of the checkout, or removes it if there is no text.
fn restore(checkout: &Path, path: &str, text: Option<&[u8]>) -> io::Result<()> {
    let place = real_place(checkout, path)?;
    match text {
        Some(text) => write(&place, text),
        None => match fs::remove_file(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        },
    }
}

/// Adds canary tests to each file of hidden tests.
///
/// # Errors
/// Fails if a file cannot be written.
pub(super) fn settle(canary: &Canary, instance: &Instance, checkout: &Path) -> io::Result<()> {
    for path in paths_of(&instance.answer.test_patch) {
        let place = real_place(checkout, &path)?;
        if path.ends_with(".py") && place.is_file() {
            canary.settle_in(&place)?;
        }
    }
    Ok(())
}

/// Returns the path of a file inside the checkout, and removes symbolic links that a change placed
/// on the way.
fn real_place(checkout: &Path, path: &str) -> io::Result<PathBuf> {
    let mut place = checkout.to_owned();
    for part in path.split('/') {
        place.push(part);
        if place.is_symlink() {
            fs::remove_file(&place)?;
        }
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_and_test_configuration_are_recognized_by_their_paths() {
        for path in [
            "tests/runtests.py",
            "conftest.py",
            "src/sitecustomize.py",
            "evil.pth",
            "a/b/test_x.py",
            "lookup/tests.py",
            "bin/test",
            "a/__pycache__/b.cpython-311.pyc",
        ] {
            assert_eq!(kind(path), Some(SupportKind::Test), "{path}");
        }
        for path in [
            "tox.ini",
            "setup.cfg",
            "a/pyproject.toml",
            ".pytest.ini",
            "PyTest.ini",
            "x.egg-info/entry_points.txt",
            "src/X.Egg-Info/PKG-INFO",
            "x-1.dist-info",
        ] {
            assert_eq!(kind(path), Some(SupportKind::Settings), "{path}");
        }
        for path in [
            "src/_pytest/python.py",
            "django/test/client.py",
            "sympy/testing/runtests.py",
            "a/latest.py",
            "setup.py",
            "bin/tester.py",
            "eggs/egg.py",
        ] {
            assert_eq!(kind(path), None, "{path}");
        }
    }

    #[test]
    fn symbolic_links_in_the_path_of_a_restored_file_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (checkout, outside) = (folder.path().join("c"), folder.path().join("o"));
        fs::create_dir_all(&checkout).unwrap();
        fs::create_dir_all(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, checkout.join("tests")).unwrap();
        let place = real_place(&checkout, "tests/test_a.py").unwrap();
        write(&place, b"x").unwrap();
        assert!(checkout.join("tests/test_a.py").is_file());
        assert!(!outside.join("test_a.py").exists());
    }
}
