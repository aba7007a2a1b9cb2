//! The directories in which Starling keeps the user's configuration, the decisions about trust, and
//! the records of runs. A project can contain them, for example a project of dotfiles.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use starling_platform::files::PathExt;

/// Environment variable that overrides the location of caches and scratch directories.
const CACHE_VARIABLE: &str = "STARLING_CACHE_DIR";

/// Returns Starling's cache directory: `$STARLING_CACHE_DIR`, else `starling` in the user's cache
/// directory. Returns `None` if there is no home directory.
pub fn cache_dir() -> Option<PathBuf> {
    cache_of(std::env::var_os(CACHE_VARIABLE))
}

/// Returns the cache directory for a value of the variable. A relative path is relative to the current
/// directory of this process: the processes of a sandbox have others.
fn cache_of(given: Option<OsString>) -> Option<PathBuf> {
    match given {
        Some(path) if !path.is_empty() => std::path::absolute(path).ok(),
        Some(_) | None => etcetera::choose_base_strategy()
            .ok()
            .map(|base| base.cache_dir().join("starling")),
    }
}

/// Returns the real paths of Starling's directories that lie below `root`.
pub(super) fn own_directories(root: &Path) -> Vec<PathBuf> {
    let base = etcetera::choose_base_strategy().ok();
    let of_user = base.iter().flat_map(|base| {
        let directories = [Some(base.config_dir()), base.state_dir()];
        directories.into_iter().flatten()
    });
    let of_user = of_user.map(|directory| directory.join("starling"));
    // Windows has no directory for state: the list of trusted projects is in the user's cache there.
    let of_cache = base.iter().map(|base| base.cache_dir().join("starling"));
    of_user
        .chain(of_cache)
        .chain(cache_dir())
        .filter_map(|path| below(root, &path))
        .collect()
}

/// Returns the real path of a directory if it lies below `root`.
fn below(root: &Path, directory: &Path) -> Option<PathBuf> {
    let real = directory.canonical().ok()?;
    (real != root && real.starts_with(root)).then_some(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_counts_only_below_the_root_and_with_links_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(root.join("starlingconf")).unwrap();
        let link = dir.path().join("starling");
        std::os::unix::fs::symlink(root.join("starlingconf"), &link).unwrap();
        assert_eq!(below(&root, &link), Some(root.join("starlingconf")));
        assert_eq!(below(&root, &root), None);
        assert_eq!(below(&root, dir.path()), None);
        assert_eq!(below(&root, &root.join("missing")), None);
    }

    #[test]
    fn relative_cache_directory_is_relative_to_the_current_directory() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(cache_of(Some("c".into())), Some(here.join("c")));
        assert_eq!(cache_of(Some("/c".into())), Some("/c".into()));
        assert_eq!(cache_of(Some("".into())), cache_of(None));
    }
}
