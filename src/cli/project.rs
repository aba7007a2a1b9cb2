//! Which directory is the project: the one given, else the root found from the current directory.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::WrongUse;
use starling_workspace::{MAX_FILE_BYTES, read_text};

/// Files that stand at the root of a project.
const MANIFESTS: [&str; 6] = [
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "package.json",
    "Cargo.toml",
    "go.mod",
];

/// Why a directory is taken for the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Given,
    Git,
    Manifest(&'static str),
    /// Neither a repository nor a manifest was found.
    CurrentDirectory,
}

/// A project's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    pub root: PathBuf,
    pub reason: Reason,
}

impl Project {
    /// The directory given, else the root of the git repository around the current directory, else the
    /// nearest directory upward with a manifest, else the current directory.
    ///
    /// # Errors
    /// [`WrongUse`], if the directory given does not exist or is not a directory.
    pub fn find(given: Option<&Path>) -> anyhow::Result<Project> {
        let path = match given {
            Some(path) => path.to_owned(),
            None => std::env::current_dir().context(super::NO_DIRECTORY)?,
        };
        let wrong = |error: io::Error| WrongUse(format!("{}: {error}", path.display()));
        let start = path.canonicalize().map_err(wrong)?;
        if !start.is_dir() {
            return Err(WrongUse(format!("{}: not a directory", path.display())).into());
        }
        if given.is_some() {
            return Ok(Project {
                root: start,
                reason: Reason::Given,
            });
        }
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        Ok(around(start, home.as_deref()))
    }

    /// For the first line of a run.
    pub fn describe(&self) -> String {
        let root = self.root.display();
        match self.reason {
            Reason::Given => format!("project: {root} (--repo)"),
            Reason::Git => format!("project: {root} (git repository)"),
            Reason::Manifest(file) => format!("project: {root} ({file})"),
            Reason::CurrentDirectory => {
                format!("project: {root} (current directory; choose another with --repo)")
            }
        }
    }
}

/// The root of the project, as a path. See [`Project::find`].
///
/// # Errors
/// As of [`Project::find`].
pub fn root(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    Ok(Project::find(given)?.root)
}

/// The project around a directory. Directories above it count up to the home directory, which itself
/// is no project of what lies below it; and only while they have the same owner, so that nobody else
/// can put a manifest above a project.
fn around(start: PathBuf, home: Option<&Path>) -> Project {
    let owner = |path: &Path| path.metadata().ok().map(|data| data.uid());
    let of_start = owner(&start);
    let places: Vec<&Path> = start
        .ancestors()
        .take_while(|place| {
            let is_start = *place == start;
            let is_end = Some(*place) == home || place.parent().is_none();
            is_start || (!is_end && owner(place) == of_start)
        })
        .collect();
    let git = places.iter().find(|place| is_repository(place));
    if let Some(place) = git {
        return Project {
            root: (*place).to_owned(),
            reason: Reason::Git,
        };
    }
    let manifest = places.iter().find_map(|place| {
        let file = MANIFESTS.iter().find(|file| place.join(file).is_file())?;
        Some((*place, *file))
    });
    match manifest {
        Some((place, file)) => Project {
            root: place.to_owned(),
            reason: Reason::Manifest(file),
        },
        None => Project {
            root: start,
            reason: Reason::CurrentDirectory,
        },
    }
}

/// Whether a directory is the root of a git repository, or of a work tree of one.
fn is_repository(place: &Path) -> bool {
    let git = place.join(".git");
    let is_work_tree =
        || read_text(&git, MAX_FILE_BYTES).is_ok_and(|text| text.starts_with("gitdir:"));
    git.join("HEAD").is_file() || (git.is_file() && is_work_tree())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bed(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        for file in files {
            let path = home.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "gitdir: elsewhere\n").unwrap();
        }
        std::fs::create_dir_all(home.join("p/a/b")).unwrap();
        (dir, home)
    }

    fn found(files: &[&str], start: &str) -> (String, Reason) {
        let (_dir, home) = bed(files);
        let project = around(home.join(start), Some(&home));
        let below = project.root.strip_prefix(&home).unwrap();
        (below.to_str().unwrap().to_owned(), project.reason)
    }

    #[test]
    fn prefers_the_git_repository_to_a_nearer_manifest() {
        let files = ["p/.git/HEAD", "p/a/pyproject.toml"];
        assert_eq!(found(&files, "p/a/b"), ("p".into(), Reason::Git));
        assert_eq!(found(&files, "p"), ("p".into(), Reason::Git));
        let work_tree = ["p/a/.git", "p/.git/HEAD"];
        assert_eq!(found(&work_tree, "p/a/b"), ("p/a".into(), Reason::Git));
    }

    #[test]
    fn takes_the_nearest_manifest_without_git() {
        for manifest in MANIFESTS {
            let far = format!("p/{manifest}");
            let found = found(&[&far, "p/.git/config"], "p/a/b");
            assert_eq!(found, ("p".into(), Reason::Manifest(manifest)));
        }
        let files = ["p/setup.py", "p/a/setup.cfg"];
        let expected = ("p/a".into(), Reason::Manifest("setup.cfg"));
        assert_eq!(found(&files, "p/a/b"), expected);
    }

    #[test]
    fn stays_below_the_home_directory() {
        let alone = ("p/a/b".to_owned(), Reason::CurrentDirectory);
        assert_eq!(found(&[], "p/a/b"), alone);
        // A repository of settings in the home directory is not the project of everything in it.
        assert_eq!(found(&[".git/HEAD", "package.json"], "p/a/b"), alone);
        assert_eq!(found(&[".git/HEAD"], ""), (String::new(), Reason::Git));
        let (dir, home) = bed(&[]);
        std::fs::write(dir.path().join("setup.py"), "").unwrap();
        let reason = around(home.join("p"), Some(&home)).reason;
        assert_eq!(reason, Reason::CurrentDirectory);
    }

    #[test]
    fn ignores_directories_of_other_owners() {
        if !rustix::process::getuid().is_root() {
            // Only an administrator can give a directory away.
            return;
        }
        let (_dir, home) = bed(&["p/.git/HEAD", "p/a/setup.py"]);
        std::os::unix::fs::chown(home.join("p"), Some(12_345), None).unwrap();
        let project = around(home.join("p/a/b"), Some(&home));
        assert_eq!(project.root, home.join("p/a"));
        assert_eq!(project.reason, Reason::Manifest("setup.py"));
    }

    #[test]
    fn the_directory_given_is_taken_as_it_is() {
        let (_dir, home) = bed(&["p/.git/HEAD"]);
        let given = home.join("p/a");
        let project = Project::find(Some(&given)).unwrap();
        assert_eq!((project.root, project.reason), (given, Reason::Given));
        let error = Project::find(Some(&home.join("p/.git/HEAD"))).unwrap_err();
        assert!(error.downcast_ref::<WrongUse>().is_some());
        let error = Project::find(Some(&home.join("none"))).unwrap_err();
        assert!(error.downcast_ref::<WrongUse>().is_some());
    }
}
