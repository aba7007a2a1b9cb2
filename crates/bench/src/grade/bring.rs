//! Adds the hidden tests to a checkout with a predicted change, and reverts what the change did to
//! tests and their configuration.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::canary::Canary;
use crate::dataset::Instance;
use crate::git::{self, GitError};
use crate::patch::{paths_of, write};

/// Top-level directories of tests and test support. In deeper directories, these names can belong
/// to the code under test.
const FOLDERS: [&str; 3] = ["test", "tests", "testing"];
/// Files that Python or pytest reads automatically.
const READ_BY_ITSELF: [&str; 4] = [
    "conftest.py",
    "sitecustomize.py",
    "usercustomize.py",
    "pytest.ini",
];

/// Returns whether a file belongs to the tests or controls how they run.
fn is_of_tests(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let top = folders.split('/').next().unwrap_or_default();
    FOLDERS.contains(&top)
        || READ_BY_ITSELF.contains(&name)
        || name.ends_with(".pth")
        || path == "bin/test"
        || (name.ends_with(".py")
            && (name.starts_with("test_") || name.ends_with("_test.py") || name == "tests.py"))
}

/// Restores the tests that a predicted change touched, then adds the hidden tests.
///
/// # Errors
/// Fails if git cannot read or apply the files.
pub(super) async fn tests(
    instance: &Instance,
    predicted: &str,
    repository: &Path,
    checkout: &Path,
) -> Result<(), GitError> {
    let hidden = &instance.answer.test_patch;
    // Files that the known change touches are code under test.
    let known = paths_of(&instance.answer.patch);
    let mut paths = paths_of(hidden);
    paths.extend(
        paths_of(predicted)
            .into_iter()
            .filter(|path| is_of_tests(path) && !known.contains(path)),
    );
    for path in &paths {
        let place = real_place(checkout, path).map_err(GitError::Disk)?;
        match git::file_at(repository, &instance.task.base_commit, path).await? {
            Some(bytes) => write(&place, &bytes).map_err(GitError::Disk)?,
            // A file that does not exist need not be removed.
            None => drop(fs::remove_file(&place)),
        }
    }
    git::apply(checkout, hidden).await
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
        ] {
            assert!(is_of_tests(path), "{path}");
        }
        for path in [
            "src/_pytest/python.py",
            "django/test/client.py",
            "sympy/testing/runtests.py",
            "a/latest.py",
            "setup.cfg",
            "bin/tester.py",
        ] {
            assert!(!is_of_tests(path), "{path}");
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
