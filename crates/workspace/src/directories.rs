//! Creates the missing directories of a file and removes directories that became empty.

use std::fs;
use std::path::{Component, Path};

use super::write::sweep_in;
use starling_platform::files::PathExt;
use starling_syntax::FilePath;

/// Returns the missing parent directories of a file, relative to the root, outermost first.
pub fn missing_directories(root: &Path, file: &FilePath) -> Vec<String> {
    let directory = Path::new(file.directory());
    let above = directory.ancestors().filter(|one| *one != Path::new(""));
    let mut missing: Vec<String> = above
        .take_while(|one| !root.join(one).exists())
        .map(|one| one.to_string_lossy().into_owned())
        .collect();
    missing.reverse();
    missing
}

/// Removes the empty ones of these directories below `root`, innermost first. Skips a directory
/// that is a link or is reached through a link, or whose path is not a plain relative path.
pub fn remove_empty_directories(root: &Path, directories: &[String]) {
    let Ok(root) = root.canonical() else {
        return;
    };
    for directory in directories.iter().rev() {
        let relative = Path::new(directory);
        let mut parts = relative.components();
        let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
        let path = root.join(relative);
        let leads_to_itself = || path.canonical().is_ok_and(|real| real == path);
        if is_plain && path != root && leads_to_itself() {
            sweep_in(&path);
            // By now, the directory may contain other files. In that case it is not removed.
            let _ = fs::remove_dir(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_directories_are_listed_outermost_first() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("a")).unwrap();
        let missing = |file: &str| missing_directories(dir.path(), &FilePath::new(file));
        assert_eq!(missing("a/b/c/f.py"), ["a/b", "a/b/c"]);
        assert_eq!(missing("a/f.py"), [""; 0]);
        assert_eq!(missing("f.py"), [""; 0]);
    }

    #[test]
    fn only_empty_directories_below_the_root_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir_all(root.join("full/b")).unwrap();
        fs::write(root.join("full/f"), "").unwrap();
        fs::create_dir_all(outside.join("b")).unwrap();
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        let all = ["a", "a/b", "full", "full/b", "link/b", "../outside/b", ""];
        remove_empty_directories(&root, &all.map(str::to_owned));
        assert!(!root.join("a").exists());
        assert!(root.join("full").is_dir() && !root.join("full/b").exists());
        assert!(outside.join("b").is_dir() && root.exists());
    }
}
