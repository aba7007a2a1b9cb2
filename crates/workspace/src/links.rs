//! The symbolic links of a project, by target. A change of a file also changes it under the names
//! of all links to it, and each of these names may be the name of a file that runs.

use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of links that are examined.
const MOST: usize = 10_000;
/// Maximum depth of the search in hidden directories. Hidden files that run are near the top.
const HIDDEN_DEPTH: usize = 2;

/// Links inside one root. Cheap to clone behind an `Arc`.
#[derive(Debug, Default)]
pub(super) struct LinkTargets {
    /// The target of each link, and the link's path relative to the root.
    all: Vec<(PathBuf, PathBuf)>,
}

impl LinkTargets {
    /// Stores the links whose resolved target is below `root`.
    pub(super) fn new(root: &Path, links: &[PathBuf]) -> Self {
        let kept = links.iter().take(MOST).filter_map(|link| {
            let target = link.canonical().ok().filter(|to| to.starts_with(root))?;
            Some((target, link.strip_prefix(root).ok()?.to_owned()))
        });
        LinkTargets {
            all: kept.collect(),
        }
    }

    /// Returns the other names of a file, which it has because of links to the file or to a
    /// directory above it.
    pub(super) fn names<'a>(&'a self, real: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
        self.all.iter().filter_map(move |(target, link)| {
            let rest = real.strip_prefix(target).ok()?;
            Some(match rest.as_os_str().is_empty() {
                true => link.clone(),
                false => link.join(rest),
            })
        })
    }
}
use starling_platform::files::PathExt;

/// Returns the links in a directory.
pub(super) fn in_directory(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_link = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
    let links = entries.filter(is_link);
    links.map(|entry| entry.path()).take(MOST).collect()
}

/// Returns the links in a hidden directory, which the walk does not list.
pub(super) fn in_hidden(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![(directory.to_owned(), HIDDEN_DEPTH)];
    while let Some((directory, depth)) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_symlink() {
                found.push(entry.path());
            } else if kind.is_dir() && depth > 1 {
                waiting.push((entry.path(), depth - 1));
            }
            if found.len() >= MOST {
                return found;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn file_is_known_by_the_names_of_all_links_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonical().unwrap();
        fs::create_dir_all(root.join("editor/sub")).unwrap();
        fs::create_dir_all(root.join(".github/actions")).unwrap();
        fs::write(root.join("editor/sub/a.json"), "").unwrap();
        symlink("editor", root.join(".vscode")).unwrap();
        symlink("../editor/sub", root.join(".github/workflows")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        let mut links = in_hidden(&root.join(".github"));
        links.extend([root.join(".vscode"), root.join("etc")]);
        let links = LinkTargets::new(&root, &links);
        let mut names: Vec<PathBuf> = links.names(&root.join("editor/sub/a.json")).collect();
        names.sort();
        assert_eq!(
            names,
            [".github/workflows/a.json", ".vscode/sub/a.json"].map(PathBuf::from)
        );
        assert_eq!(links.names(&root.join("b.py")).count(), 0);
    }
}
