//! The directories in which Starling keeps the user's configuration, the decisions about trust, and
//! the records of runs. A project can contain them, for example a project of dotfiles.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use super::paths::real_path;

/// Environment variable that overrides the location of caches and scratch directories.
pub const CACHE_VARIABLE: &str = "STARLING_CACHE_DIR";
/// The name of Starling's directories in the directories of the user.
const NAME: &str = "starling";

/// Returns the directory of the user's configuration. Returns `None` if there is no home directory.
pub fn config_dir() -> Option<PathBuf> {
    Some(user_directories()?.config_dir().join(NAME))
}

/// Returns the directory of what Starling remembers for good, such as which projects are trusted.
/// Returns `None` if there is no home directory.
pub fn state_dir() -> Option<PathBuf> {
    Some(state_of(&user_directories()?))
}

/// Returns Starling's cache directory: `$STARLING_CACHE_DIR`, else `starling` in the user's cache
/// directory. Returns `None` if there is no home directory.
pub fn cache_dir() -> Option<PathBuf> {
    cache_of(std::env::var_os(CACHE_VARIABLE))
}

fn user_directories() -> Option<impl BaseStrategy> {
    etcetera::choose_base_strategy().ok()
}

fn state_of(base: &impl BaseStrategy) -> PathBuf {
    // Windows has no separate directory for state files.
    let state = base.state_dir().unwrap_or_else(|| base.cache_dir());
    state.join(NAME)
}

/// Returns the cache directory for a value of the variable. A relative path is relative to the current
/// directory of this process: the processes of a sandbox have others.
fn cache_of(given: Option<OsString>) -> Option<PathBuf> {
    match given {
        Some(path) if !path.is_empty() => std::path::absolute(path).ok(),
        Some(_) | None => Some(user_directories()?.cache_dir().join(NAME)),
    }
}

/// Returns the real paths of the cache directories that lie below `root`: the one in use and the
/// default one. They contain the records of runs, of this and of other projects.
pub(super) fn cache_directories(root: &Path) -> Vec<PathBuf> {
    let both = [cache_dir(), cache_of(None)].into_iter().flatten();
    both.filter_map(|path| below(root, &path)).collect()
}

/// Returns the real paths of Starling's directories that lie below `root`.
pub(super) fn own_directories(root: &Path) -> Vec<PathBuf> {
    let of_user = [config_dir(), state_dir()].into_iter().flatten();
    let of_user = of_user.filter_map(|path| below(root, &path));
    of_user.chain(cache_directories(root)).collect()
}

/// Returns the real path of a directory if it lies below `root`. The directory need not exist.
fn below(root: &Path, directory: &Path) -> Option<PathBuf> {
    let real = real_path(directory).ok()?;
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
        let missing = root.join("missing");
        assert_eq!(below(&root, &missing), Some(missing.clone()));
    }

    #[test]
    fn state_is_in_the_local_data_of_the_user_on_windows() {
        let base = etcetera::base_strategy::Windows::new().unwrap();
        assert_eq!(state_of(&base), base.cache_dir().join("starling"));
        let base = etcetera::base_strategy::Xdg::new().unwrap();
        assert_eq!(state_of(&base), base.state_dir().unwrap().join("starling"));
    }

    #[test]
    fn relative_cache_directory_is_relative_to_the_current_directory() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(cache_of(Some("c".into())), Some(here.join("c")));
        assert_eq!(cache_of(Some("/c".into())), Some("/c".into()));
        assert_eq!(cache_of(Some("".into())), cache_of(None));
    }
}
