//! The directories in which Starling keeps the user's configuration, the decisions about trust, and
//! the records of runs. A project can contain them, for example a project of dotfiles.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use starling_platform::files::PathExt;

/// The variable that names the cache directory.
const CACHE: &str = "STARLING_CACHE_DIR";

/// Returns the real paths of Starling's directories that lie below `root`.
pub(super) fn own_directories(root: &Path) -> Vec<PathBuf> {
    let base = etcetera::choose_base_strategy().ok();
    let base = base.iter().flat_map(|base| {
        let state = base.state_dir();
        [Some(base.config_dir()), state, Some(base.cache_dir())]
    });
    let of_user = base.flatten().map(|directory| directory.join("starling"));
    let cache = std::env::var_os(CACHE).filter(|path| !path.is_empty());
    of_user
        .chain(cache.map(PathBuf::from))
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
}
