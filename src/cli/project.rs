//! Finds the project's root: the given directory, or one found from the current directory.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::WrongUse;
use starling_platform::files::{PathExt, same_owner};
use starling_workspace::{MAX_FILE_BYTES, read_text};

/// Files at the root of a project.
const MANIFESTS: [&str; 6] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "package.json",
    "Cargo.toml",
    "go.mod",
];

/// Files that mark a project without a manifest.
const MARKS: [&str; 8] = [
    "Pipfile",
    "tox.ini",
    "noxfile.py",
    "manage.py",
    "environment.yml",
    "environment.yaml",
    "requirements.txt",
    REQUIREMENTS,
];
/// Pattern for requirement files such as `requirements-dev.txt`.
const REQUIREMENTS: &str = "requirements*.txt";
/// The file that makes a directory a package.
const PACKAGE: &str = "__init__.py";

/// Why a directory is the project's root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootReason {
    Given,
    Git,
    /// The directory contains this file.
    Manifest(&'static str),
    /// The directory contains the package around the current directory.
    Package,
    /// No mark of a project was found.
    CurrentDirectory,
}

/// A project's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub root: PathBuf,
    pub reason: RootReason,
}

impl Project {
    /// Finds the project's root: the given directory, else the root of the git repository around
    /// the current directory, else the nearest parent with a manifest, else the nearest parent with
    /// another mark of a project, else the directory that contains the package around the current
    /// directory, else the current directory.
    ///
    /// # Errors
    /// [`WrongUse`] if the given directory does not exist or is not a directory.
    pub fn find(given: Option<&Path>) -> anyhow::Result<Project> {
        let path = match given {
            Some(path) => path.to_owned(),
            None => std::env::current_dir().context(super::NO_DIRECTORY)?,
        };
        let wrong = |error: io::Error| WrongUse(format!("{}: {error}", path.display()));
        let start = path.canonical().map_err(wrong)?;
        if !start.is_dir() {
            return Err(WrongUse(format!("{}: not a directory", path.display())).into());
        }
        if given.is_some() {
            return Ok(Project {
                root: start,
                reason: RootReason::Given,
            });
        }
        let home = std::env::home_dir().and_then(|home| home.canonical().ok());
        Ok(around(start, home.as_deref()))
    }

    /// Describes the project for the first line of a run.
    pub fn describe(&self) -> String {
        let root = self.root.display();
        match self.reason {
            RootReason::Given => format!("project: {root} (--repo)"),
            RootReason::Git => format!("project: {root} (git repository)"),
            RootReason::Manifest(file) => format!("project: {root} ({file})"),
            RootReason::Package => {
                format!(
                    "project: {root} (contains the package of the current directory; choose another with --repo)"
                )
            }
            RootReason::CurrentDirectory => {
                format!("project: {root} (current directory; choose another with --repo)")
            }
        }
    }
}

/// Returns the path of the project's root. See [`Project::find`].
///
/// # Errors
/// The errors of [`Project::find`].
pub fn root(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    Ok(Project::find(given)?.root)
}

/// Finds the project around a directory. The search ends below the home directory, which is not a
/// project of its subdirectories, and at a directory with another owner, so that no other user can
/// place a manifest above a project.
fn around(start: PathBuf, home: Option<&Path>) -> Project {
    let of_start = start.metadata().ok();
    let has_its_owner = |path: &Path| {
        let of_path = path.metadata().ok();
        let both = of_start.as_ref().zip(of_path.as_ref());
        both.is_some_and(|(start, path)| same_owner(start, path))
    };
    let places: Vec<&Path> = start
        .ancestors()
        .take_while(|place| {
            let is_start = *place == start;
            let is_end = Some(*place) == home || place.parent().is_none();
            is_start || (!is_end && has_its_owner(place))
        })
        .collect();
    let git = places.iter().find(|place| is_repository(place));
    if let Some(place) = git {
        return Project {
            root: (*place).to_owned(),
            reason: RootReason::Git,
        };
    }
    let with_one_of = |files: &[&'static str]| {
        let marked = |place: &&Path| files.iter().find(|file| has(place, file)).copied();
        places
            .iter()
            .find_map(|place| Some((*place, marked(place)?)))
    };
    if let Some((place, file)) = with_one_of(&MANIFESTS).or_else(|| with_one_of(&MARKS)) {
        return Project {
            root: place.to_owned(),
            reason: RootReason::Manifest(file),
        };
    }
    let is_package = |place: &Path| place.join(PACKAGE).is_file();
    let outside = places.iter().find(|place| !is_package(place));
    match outside.or(places.last()) {
        Some(place) if **place != *start => Project {
            root: (*place).to_owned(),
            reason: RootReason::Package,
        },
        Some(_) | None => Project {
            root: start,
            reason: RootReason::CurrentDirectory,
        },
    }
}

/// Whether a directory contains a file of this name.
fn has(place: &Path, file: &str) -> bool {
    if file != REQUIREMENTS {
        return place.join(file).is_file();
    }
    let Ok(entries) = place.read_dir() else {
        return false;
    };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("requirements") && name.ends_with(".txt") && entry.path().is_file()
    })
}

/// Whether a directory is the root of a git repository or work tree.
fn is_repository(place: &Path) -> bool {
    let git = place.join(".git");
    let is_work_tree =
        || read_text(&git, MAX_FILE_BYTES).is_ok_and(|text| text.starts_with("gitdir:"));
    git.join("HEAD").is_file() || (git.is_file() && is_work_tree())
}

/// Returns the project's root if it is not found from the current directory.
pub fn to_name(root: &Path) -> Option<&Path> {
    let here = self::root(None);
    Some(root).filter(|root| here.is_err() || here.is_ok_and(|here| here != *root))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bed(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonical().unwrap().join("home");
        for file in files {
            let path = home.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "gitdir: elsewhere\n").unwrap();
        }
        std::fs::create_dir_all(home.join("p/a/b")).unwrap();
        (dir, home)
    }

    fn found(files: &[&str], start: &str) -> (String, RootReason) {
        let (_dir, home) = bed(files);
        let project = around(home.join(start), Some(&home));
        let below = project.root.strip_prefix(&home).unwrap();
        (below.to_str().unwrap().to_owned(), project.reason)
    }

    #[test]
    fn git_repository_is_preferred_to_a_nearer_manifest_as_project_root() {
        let files = ["p/.git/HEAD", "p/a/pyproject.toml"];
        assert_eq!(found(&files, "p/a/b"), ("p".into(), RootReason::Git));
        assert_eq!(found(&files, "p"), ("p".into(), RootReason::Git));
        let work_tree = ["p/a/.git", "p/.git/HEAD"];
        assert_eq!(found(&work_tree, "p/a/b"), ("p/a".into(), RootReason::Git));
    }

    #[test]
    fn nearest_manifest_is_the_project_root_if_there_is_no_repository() {
        for manifest in MANIFESTS {
            let far = format!("p/{manifest}");
            let found = found(&[&far, "p/.git/config"], "p/a/b");
            assert_eq!(found, ("p".into(), RootReason::Manifest(manifest)));
        }
        let files = ["p/setup.py", "p/a/setup.cfg"];
        let expected = ("p/a".into(), RootReason::Manifest("setup.cfg"));
        assert_eq!(found(&files, "p/a/b"), expected);
    }

    #[test]
    fn nearest_marker_file_is_the_project_root_if_there_is_no_manifest() {
        for mark in MARKS.iter().map(|mark| mark.replace('*', "-dev")) {
            let far = format!("p/{mark}");
            let (root, reason) = found(&[&far, "p/a/__init__.py", "p/a/b/__init__.py"], "p/a/b");
            let expected = MARKS.iter().find(|known| **known == mark);
            let expected = expected.copied().unwrap_or(REQUIREMENTS);
            assert_eq!(
                (root.as_str(), reason),
                ("p", RootReason::Manifest(expected))
            );
        }
        // A requirements file in a subdirectory does not make the subdirectory a project.
        let files = ["p/pyproject.toml", "p/a/requirements.txt"];
        let expected = ("p".to_owned(), RootReason::Manifest("pyproject.toml"));
        assert_eq!(found(&files, "p/a"), expected);
        let files = ["p/requirements.txt", "p/a/manage.py", "p/a/__init__.py"];
        let expected = ("p/a".to_owned(), RootReason::Manifest("manage.py"));
        assert_eq!(found(&files, "p/a/b"), expected);
    }

    #[test]
    fn project_root_is_the_directory_that_contains_the_package() {
        let files = ["p/a/__init__.py", "p/a/b/__init__.py"];
        assert_eq!(found(&files, "p/a/b"), ("p".into(), RootReason::Package));
        assert_eq!(
            found(&files, "p"),
            ("p".into(), RootReason::CurrentDirectory)
        );
        // A directory without `__init__.py` is not part of the package around it.
        let alone = ("p/a/b".to_owned(), RootReason::CurrentDirectory);
        assert_eq!(found(&["p/a/__init__.py"], "p/a/b"), alone);
        // The home directory and its parents do not count.
        let files = ["__init__.py", "p/__init__.py", "requirements.txt"];
        assert_eq!(
            found(&files, "p"),
            ("p".into(), RootReason::CurrentDirectory)
        );
        let files = ["p/__init__.py", "p/a/__init__.py"];
        assert_eq!(found(&files, "p/a"), ("p".into(), RootReason::Package));
    }

    #[test]
    fn home_directory_and_its_parents_are_never_the_project() {
        let alone = ("p/a/b".to_owned(), RootReason::CurrentDirectory);
        assert_eq!(found(&[], "p/a/b"), alone);
        // A repository in the home directory is not the project of its subdirectories.
        assert_eq!(found(&[".git/HEAD", "package.json"], "p/a/b"), alone);
        assert_eq!(found(&[".git/HEAD"], ""), (String::new(), RootReason::Git));
        let (dir, home) = bed(&[]);
        std::fs::write(dir.path().join("setup.py"), "").unwrap();
        let reason = around(home.join("p"), Some(&home)).reason;
        assert_eq!(reason, RootReason::CurrentDirectory);
    }

    #[test]
    fn directory_of_another_owner_is_not_the_project_root() {
        if !rustix::process::getuid().is_root() {
            // Only root can change the owner of a directory.
            return;
        }
        let (_dir, home) = bed(&["p/.git/HEAD", "p/a/setup.py"]);
        std::os::unix::fs::chown(home.join("p"), Some(12_345), None).unwrap();
        let project = around(home.join("p/a/b"), Some(&home));
        assert_eq!(project.root, home.join("p/a"));
        assert_eq!(project.reason, RootReason::Manifest("setup.py"));
    }

    #[test]
    fn given_directory_is_used_without_a_search() {
        let (_dir, home) = bed(&["p/.git/HEAD"]);
        let given = home.join("p/a");
        let project = Project::find(Some(&given)).unwrap();
        assert_eq!((project.root, project.reason), (given, RootReason::Given));
        let error = Project::find(Some(&home.join("p/.git/HEAD"))).unwrap_err();
        assert!(error.downcast_ref::<WrongUse>().is_some());
        let error = Project::find(Some(&home.join("none"))).unwrap_err();
        assert!(error.downcast_ref::<WrongUse>().is_some());
    }
}
