//! Helpers of the tests.

use std::path::Path;
use std::process::{Command, Output};

/// Returns a git command in a directory that reads no settings of the user who runs the tests.
pub(crate) fn git_command(root: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(root)
        .args(arguments)
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for name in ["XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_DIR"] {
        command.env_remove(name);
    }
    command
}

/// Runs git in a directory.
pub(crate) fn git(root: &Path, arguments: &[&str]) {
    let Output { status, stderr, .. } = git_command(root, root, arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "git {arguments:?}: {stderr}");
}
