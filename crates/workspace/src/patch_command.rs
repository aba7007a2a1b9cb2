//! The command by which a user takes a patch of a project by hand.

use std::path::Path;

use super::git_names::has_repository;
use super::program::HostPrograms;

/// A program that takes patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchCommand {
    Git,
    /// Where there is no git, or no repository.
    Patch,
}

impl PatchCommand {
    /// The one for a project.
    pub fn of(root: &Path) -> Self {
        match has_repository(root) && HostPrograms::outside(root).find("git").is_ok() {
            true => PatchCommand::Git,
            false => PatchCommand::Patch,
        }
    }

    /// Makes the change of the patch whose name follows.
    pub fn make(self) -> &'static str {
        match self {
            PatchCommand::Git => "git apply",
            PatchCommand::Patch => "patch -p1 -i",
        }
    }

    /// Takes it back.
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
    fn git_is_named_only_where_there_is_a_repository() {
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
