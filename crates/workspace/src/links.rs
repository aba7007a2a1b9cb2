//! The links of a project, from what they lead to: a file that is changed is changed under all names that
//! lead to it, and each may be one that runs.

use std::fs;
use std::path::{Path, PathBuf};

/// More links are not looked at.
const MOST: usize = 10_000;
/// How deep hidden directories are looked into: what runs lies near their top.
const HIDDEN_DEPTH: usize = 2;

/// Links inside one root. Cheap to clone behind an `Arc`.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// What each leads to, and its path below the root.
    all: Vec<(PathBuf, PathBuf)>,
}

impl Links {
    /// Keeps those of `links` that lead to something below `root`, its own links resolved.
    pub(super) fn new(root: &Path, links: &[PathBuf]) -> Self {
        let kept = links.iter().take(MOST).filter_map(|link| {
            let target = link.canonicalize().ok().filter(|to| to.starts_with(root))?;
            Some((target, link.strip_prefix(root).ok()?.to_owned()))
        });
        Links {
            all: kept.collect(),
        }
    }

    /// The other names of a file below the root: those by a link to it, or to a directory above it.
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

/// The links in a hidden directory that the walk does not list.
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
    fn a_file_has_the_names_of_all_links_that_lead_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("editor/sub")).unwrap();
        fs::create_dir_all(root.join(".github/actions")).unwrap();
        fs::write(root.join("editor/sub/a.json"), "").unwrap();
        symlink("editor", root.join(".vscode")).unwrap();
        symlink("../editor/sub", root.join(".github/workflows")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        let mut links = in_hidden(&root.join(".github"));
        links.extend([root.join(".vscode"), root.join("etc")]);
        let links = Links::new(&root, &links);
        let mut names: Vec<PathBuf> = links.names(&root.join("editor/sub/a.json")).collect();
        names.sort();
        assert_eq!(
            names,
            [".github/workflows/a.json", ".vscode/sub/a.json"].map(PathBuf::from)
        );
        assert_eq!(links.names(&root.join("b.py")).count(), 0);
    }
}
