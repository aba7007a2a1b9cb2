//! The files of a workspace: snapshots with unsaved buffers, the path policy, and atomic writes.

mod compared;
mod deletion;
mod dependencies;
mod directories;
mod encoding;
mod git_config;
mod git_copy;
mod git_index;
mod git_names;
mod guarded;
mod hidden;
mod ignore_rules;
mod links;
mod own_directories;
mod patch_command;
mod paths;
mod policy;
mod private;
mod private_key;
mod program;
mod regular;
mod secret_names;
mod snapshot;
mod stamp;
mod stored;
#[cfg(test)]
mod testing;
mod token_form;
mod unreadable;
mod unusual;
mod walk;
mod write;

pub use deletion::DeletedFile;
pub use directories::{missing_directories, remove_empty_directories, remove_remains};
pub use encoding::{DecodeError, EncodeError, decode, encode};
pub use git_names::git_configurations;
pub use own_directories::{CACHE_VARIABLE, cache_dir, config_dir, state_dir};
pub use patch_command::PatchCommand;
pub use paths::{MAX_FILE_BYTES, ReadError, VERSION_CONTROL, inside, may_show};
pub use policy::{BadGlob, PathPolicy, WriteRule};
pub use private::{private_directory, private_file, replace_private_file};
pub use private_key::{KeyBlock, key_blocks, key_words, private_keys};
pub use program::{HostPrograms, ProgramError, Variables};
pub use regular::{
    load_source, open_regular, read_as_shown, read_bounded, read_given, read_regular, read_source,
    read_text,
};
pub use secret_names::is_secret_path;
pub use snapshot::{FileContents, Overlay, Snapshot, StoreError, TextState};
pub use stamp::Stamp;
pub use stored::{shown_text, stored_bytes};
pub use token_form::{begins_like_token, has_token};
pub use unreadable::{UnreadableError, UnreadableFiles};
pub use unusual::UnusualPaths;
pub use walk::is_environment;
pub use write::{
    WriteError, delete_file, sweep_leftovers, write_as_shown, write_atomically, write_given,
};

use std::path::{Path, PathBuf};

/// Why a directory cannot be a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error("{}: the path of a workspace must be absolute", .0.display())]
    Relative(PathBuf),
    #[error("{}: not a directory; open the folder that holds the project", .0.display())]
    NotADirectory(PathBuf),
    #[error("{}: the root of the file system cannot be a workspace; open the project's folder", .0.display())]
    FileSystemRoot(PathBuf),
    #[error("{}: a git directory cannot be a workspace; open the directory of the project", .0.display())]
    GitDirectory(PathBuf),
    #[error("{}: this directory contains version control data; open the directory of the project", .0.display())]
    VersionControl(PathBuf),
    #[error("{}: this directory holds secrets, which are never read; open the directory of a project", .0.display())]
    Secrets(PathBuf),
    // The message includes the error, so a `source` would repeat it.
    #[error("{}: {error}", .path.display())]
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
}
use starling_platform::files::PathExt;
use starling_syntax::FilePath;

/// A directory that the user opened.
#[derive(Debug, Clone)]
pub struct Workspace {
    policy: PathPolicy,
}

impl Workspace {
    /// Opens a directory. Links in `root` are resolved: [`Workspace::root`] is the canonical path.
    ///
    /// # Errors
    /// The path is relative, missing, not a directory, `/`, version control data, or in a directory
    /// of secrets such as `.aws`.
    pub fn open(root: PathBuf) -> Result<Self, WorkspaceError> {
        if !root.is_absolute() {
            return Err(WorkspaceError::Relative(root));
        }
        let resolved = match root.canonical() {
            Ok(resolved) => resolved,
            Err(error) => return Err(WorkspaceError::Io { path: root, error }),
        };
        if !resolved.is_dir() {
            return Err(WorkspaceError::NotADirectory(root));
        }
        if resolved.parent().is_none() {
            return Err(WorkspaceError::FileSystemRoot(root));
        }
        match paths::data_around(&resolved) {
            Some(paths::VersionControlKind::Git) => return Err(WorkspaceError::GitDirectory(root)),
            Some(paths::VersionControlKind::Other) => {
                return Err(WorkspaceError::VersionControl(root));
            }
            None => {}
        }
        if secret_names::is_in_secret_directory(&resolved) {
            return Err(WorkspaceError::Secrets(root));
        }
        Ok(Workspace {
            policy: PathPolicy::of(&root),
        })
    }

    /// Lets agents change files that match these globs without a person's approval.
    ///
    /// # Errors
    /// [`BadGlob`] names the first invalid glob.
    pub fn allowing(self, globs: &[String]) -> Result<Self, BadGlob> {
        let policy = self.policy.allowing(globs)?;
        Ok(Workspace { policy })
    }

    pub fn root(&self) -> &Path {
        self.policy.root()
    }

    /// Returns whether a snapshot lists this file, or would list it if it existed: ignored and hidden
    /// files, for example, are not listed.
    pub fn lists(&self, file: &FilePath) -> bool {
        walk::lists(self.root(), self.policy.caches(), file)
    }

    /// Lists the files that exist now and returns them as a snapshot, in which the texts of
    /// `overlay` replace files on disk. Also removes temporary files of writing processes that were
    /// killed.
    pub fn snapshot(&self, overlay: Overlay) -> Snapshot {
        let mut listing = walk::files(self.root(), self.policy.caches());
        write::sweep(std::mem::take(&mut listing.leftovers));
        Snapshot::new(self.policy.clone(), listing, overlay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_of_secrets_is_no_workspace_and_its_name_counts_for_files() {
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &str| {
            let root = dir.path().join(path);
            std::fs::create_dir_all(&root).unwrap();
            Workspace::open(root)
        };
        for path in [".aws", ".kube", ".ssh/keys", "home/.docker"] {
            let refused = open(path);
            assert!(matches!(refused, Err(WorkspaceError::Secrets(_))), "{path}");
        }
        assert!(open("secrets-manager").is_ok());
        let tool = open("gh").unwrap();
        std::fs::write(dir.path().join("gh/hosts.yml"), "oauth_token: x\n").unwrap();
        let snapshot = tool.snapshot(Overlay::new());
        let file = FilePath::new("hosts.yml");
        assert_eq!(snapshot.read(&file), Err(ReadError::Secret(file.clone())));
    }

    #[test]
    fn workspace_root_is_opened_with_links_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let workspace = Workspace::open(link).unwrap();
        assert_eq!(workspace.root(), real.canonical().unwrap());
    }

    #[test]
    fn version_control_data_cannot_be_a_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonical().unwrap();
        for folder in [
            "bare.git/objects",
            "bare.git/refs",
            "bare.git/hooks",
            "bare.git/main",
            "project/.git/hooks",
            "project/.git/worktrees/one",
            "project/.hg/store",
            "project/.jj",
            "project/sub",
        ] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        for file in ["bare.git/HEAD", "bare.git/main/.git"] {
            std::fs::write(base.join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("project/.git", base.join("linked")).unwrap();
        let open = |path: &str| Workspace::open(base.join(path)).map_err(|error| error.to_string());
        for path in [
            "bare.git",
            "bare.git/hooks",
            "project/.git",
            "project/.git/hooks",
            "project/.git/hooks/..",
            "project/.git/worktrees/one",
            "linked",
        ] {
            let error = open(path).unwrap_err();
            let ending = "a git directory cannot be a workspace; open the directory of the project";
            assert!(error.ends_with(ending), "{path}: {error}");
        }
        for path in ["project/.hg/store", "project/.jj"] {
            let error = open(path).unwrap_err();
            assert!(error.contains("version control data"), "{error}");
        }
        // A work tree (a checkout) may be inside its own bare repository.
        for path in ["project", "project/sub", "bare.git/main"] {
            assert!(open(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn workspace_error_explains_why_a_path_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let message = |path: PathBuf| Workspace::open(path).unwrap_err().to_string();
        assert!(message("some/where".into()).contains("absolute"));
        assert!(message(file).contains("not a directory"));
        assert!(message("/".into()).contains("root of the file system"));
        let missing = message(dir.path().join("missing"));
        assert!(missing.contains("missing: No such file"), "{missing}");
        let error = Workspace::open(dir.path().join("missing")).unwrap_err();
        let whole = format!("{:#}", anyhow::Error::from(error));
        assert_eq!(whole, missing, "each reason is said once");
    }
}
