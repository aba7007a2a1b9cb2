//! The command with which a user applies a patch by hand.

use std::path::Path;

use super::git_names::has_repository;
use super::program::HostPrograms;

/// A program that applies patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchCommand {
    Git,
    /// Used if git is not installed or the project has no repository.
    Patch,
}

impl PatchCommand {
    /// Returns the command for a project.
    pub fn of(root: &Path) -> Self {
        match has_repository(root) && HostPrograms::outside(root).find("git").is_ok() {
            true => PatchCommand::Git,
            false => PatchCommand::Patch,
        }
    }

    /// Returns the command that applies the patch whose file name follows.
    pub fn make(self) -> &'static str {
        match self {
            PatchCommand::Git => "git apply",
            PatchCommand::Patch => "patch -p1 -i",
        }
    }

    /// Returns the command that reverts the patch.
    pub fn take_back(self) -> &'static str {
        match self {
            PatchCommand::Git => "git apply -R",
            PatchCommand::Patch => "patch -R -p1 -i",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patch_command_uses_git_only_in_a_repository() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(PatchCommand::of(dir.path()).make(), "patch -p1 -i");
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        let below = dir.path().join("a");
        std::fs::create_dir(&below).unwrap();
        let has_git = HostPrograms::outside(&below).find("git").is_ok();
        let command = PatchCommand::of(&below).take_back();
        assert_eq!(command.starts_with("git"), has_git, "{command}");
    }
}
