//! Creates the missing directories of a file and removes directories that became empty.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

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
    let directories: Vec<String> = directories
        .iter()
        .filter(|one| !one.is_empty())
        .cloned()
        .collect();
    for path in own_paths(root, &directories).iter().rev() {
        sweep_in(path);
        // A directory that is not empty contains other files by now and stays.
        let _ = fs::remove_dir(path);
    }
}

/// Removes what a killed process left when it wrote a new file: its temporary files beside the file,
/// and those of `directories`, which it created for the file, that are empty. A directory that was
/// created after `until` is not one of them, although it has the name of one.
pub fn remove_remains(root: &Path, file: &FilePath, directories: &[String], until: SystemTime) {
    let is_of_process = |path: &PathBuf| {
        let made = path
            .metadata()
            .and_then(|found| found.created().or(found.modified()));
        made.is_ok_and(|made| made <= until)
    };
    let mut made = own_paths(root, directories);
    made.retain(is_of_process);
    for path in own_paths(root, &[file.directory().to_owned()]) {
        sweep_in(&path);
    }
    for path in made.iter().rev() {
        let _ = fs::remove_dir(path);
    }
}

/// Returns the paths of existing directories that are written as plain relative paths and are not
/// links nor behind links. The empty path is the root.
fn own_paths(root: &Path, directories: &[String]) -> Vec<PathBuf> {
    let Ok(root) = root.canonical() else {
        return Vec::new();
    };
    let path = |directory: &String| {
        let relative = Path::new(directory);
        let mut parts = relative.components();
        let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
        let path = root.join(relative);
        let leads_to_itself = || path.canonical().is_ok_and(|real| real == path);
        (is_plain && leads_to_itself()).then_some(path)
    };
    directories.iter().filter_map(path).collect()
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

    #[test]
    fn remains_of_a_killed_write_are_its_temporary_files_and_its_own_empty_directories() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let file = FilePath::new("a/b/f.py");
        let directories = ["a", "a/b"].map(str::to_owned);
        let temporary = |writer: u32| root.join(format!("a/b/.f.py.starling-write-{writer}-0"));
        let dead = 0x7fff_fff0;
        let remains = |kept: Option<&str>, until: SystemTime| {
            fs::create_dir_all(root.join("a/b")).unwrap();
            fs::write(temporary(dead), "a part").unwrap();
            if let Some(kept) = kept {
                fs::write(root.join(kept), "").unwrap();
            }
            remove_remains(&root, &file, &directories, until);
            assert!(!temporary(dead).exists());
            let left = [root.join("a/b"), root.join("a")].map(|path| path.exists());
            let _ = fs::remove_dir_all(root.join("a"));
            left
        };
        let later = SystemTime::now() + std::time::Duration::from_secs(600);
        assert_eq!(remains(None, later), [false, false]);
        assert_eq!(remains(Some("a/mine.py"), later), [false, true]);
        assert_eq!(remains(Some("a/b/mine.py"), later), [true, true]);
        // A directory of the same name that was made later is the user's.
        assert_eq!(remains(None, SystemTime::UNIX_EPOCH), [true, true]);
        // A file in a directory that was there before.
        let left = root.join(format!(".g.py.starling-write-{dead}-0"));
        fs::write(&left, "").unwrap();
        let other = root.join(format!(".g.py.starling-write-{}-0", std::process::id()));
        fs::write(&other, "").unwrap();
        remove_remains(&root, &FilePath::new("g.py"), &[], later);
        assert!(!left.exists() && other.exists());
    }
}
