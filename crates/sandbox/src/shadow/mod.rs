//! Shadows: a command runs in a changed copy of the workspace, while the real workspace is not
//! changed.
//!
//! A new shadow is created for every command, from the tree on disk and the texts of an overlay.
//! There are two kinds. An overlay file system is mounted over the root in the command's own
//! namespaces, so that every path into the tree leads to the shadow. If the system does not allow
//! that, the tree is copied.

mod container;
mod copy;
mod mount;
pub(super) mod process;
mod relocate;
pub(super) mod scratch;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use starling_workspace::{FileContents, ReadError, inside};

use crate::sandbox::{
    Bounds, Confinement, MECHANISMS, Plan, SANDBOX_ADVICE, Tree, administrators_files, user,
};
pub use container::Container;
use process::{Captured, End, NotRun, SandboxedCommand};
use scratch::Scratch;
use starling_syntax::FilePath;

/// The way in which a shadow (a private copy of the project) is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An overlay file system over the root, visible only to the command.
    Overlay,
    /// A copy of the tree in the cache directory.
    Copy,
}

/// Whether commands may run if no sandbox can be created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unconfined {
    #[default]
    Refused,
    Allowed,
}

/// The user's settings for running commands: resource limits, and whether to run without a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    pub bounds: Bounds,
    pub unconfined: Unconfined,
}

/// Error when a command could not run in a shadow.
#[derive(Debug, thiserror::Error)]
pub enum ShadowError {
    #[error("cannot create a shadow (a copy of the project for tests) with this change: {0}")]
    Path(#[from] ReadError),
    #[error("cannot create a shadow (a copy of the project for tests) in {}: {source}", .cache.display())]
    Io { cache: PathBuf, source: io::Error },
    #[error(
        "the disk of {} is full, so the test command could not finish: free some space, or set \
         STARLING_CACHE_DIR to a directory on another disk", .cache.display()
    )]
    DiskFull { cache: PathBuf },
    #[error("{}: cannot create a shadow (a copy of the project for tests): {message}", .root.display())]
    Refused { root: PathBuf, message: String },
    #[error(
        "no sandbox can be created on this system ({reason}), and tests do not run without one: {}, or \
         set sandbox.missing to \"allow\"",
        SANDBOX_ADVICE
    )]
    NoSandbox { reason: String },
}

/// A shell command with its complete environment.
#[derive(Debug, Clone)]
pub struct ShadowCommand {
    pub line: String,
    pub environment: BTreeMap<OsString, OsString>,
    /// Directories that must stay visible, even inside directories that the sandbox replaces.
    pub keep: Vec<PathBuf>,
    pub deadline: Duration,
    /// Maximum number of output bytes to keep.
    pub output_cap: usize,
}

/// Creates shadows and runs commands in them.
#[derive(Debug, Clone)]
pub struct Shadows {
    cache: PathBuf,
    bounds: Bounds,
    kind: Kind,
    /// The confinement of commands, or `None` if no command may run.
    confinement: Option<Confinement>,
    reason: String,
    /// Paths that are hidden from commands in addition to the cache.
    hidden: Vec<PathBuf>,
    /// Files that only root may read, which are hidden from commands. The list is empty while this
    /// system is probed.
    private: &'static [PathBuf],
    /// If set, commands run in this container instead of the sandbox.
    container: Option<Container>,
    /// The unreadable files for which a warning was already logged. All clones share this set.
    told: Arc<Mutex<BTreeSet<PathBuf>>>,
}

const PROBE_DEADLINE: Duration = Duration::from_secs(5);

impl Shadows {
    /// Probes which kind of shadow and which sandbox this system allows.
    ///
    /// # Errors
    /// Fails if the cache directory cannot be written.
    pub async fn open(cache: &Path, policy: Policy) -> Result<Self, ShadowError> {
        // The search for these files runs in parallel with the probes, because both take about the
        // same time.
        let private = tokio::task::spawn_blocking(administrators_files);
        let private = async { private.await.map_err(io::Error::other) };
        let no_list = |source| ShadowError::Io {
            cache: cache.to_owned(),
            source,
        };
        let mut refusals = Vec::new();
        for mechanism in MECHANISMS {
            let shadows = Shadows {
                cache: cache.to_owned(),
                bounds: policy.bounds,
                kind: mechanism.kind,
                confinement: Some(mechanism.confinement),
                reason: String::new(),
                hidden: Vec::new(),
                private: &[],
                container: None,
                told: Arc::default(),
            };
            match shadows.probe().await {
                Ok(()) => {
                    refusals.push(mechanism.reason.to_owned());
                    let reason = refusals.join("; ");
                    let private = private.await.map_err(no_list)?;
                    return Ok(Shadows {
                        reason,
                        private,
                        ..shadows
                    });
                }
                Err(
                    error @ (ShadowError::Io { .. }
                    | ShadowError::DiskFull { .. }
                    | ShadowError::Path(_)),
                ) => return Err(error),
                Err(ShadowError::Refused { message, .. }) => refusals.push(message),
                Err(ShadowError::NoSandbox { reason }) => refusals.push(reason),
            }
        }
        refusals.dedup();
        if refusals.is_empty() {
            refusals.push("this system has none".to_owned());
        }
        Ok(Shadows {
            cache: cache.to_owned(),
            bounds: policy.bounds,
            kind: Kind::Copy,
            confinement: match policy.unconfined {
                Unconfined::Allowed => Some(Confinement::Nothing),
                Unconfined::Refused => None,
            },
            reason: refusals.join("; "),
            hidden: Vec::new(),
            private: private.await.map_err(no_list)?,
            container: None,
            told: Arc::default(),
        })
    }

    async fn probe(&self) -> Result<(), ShadowError> {
        let scratch = self.scratch()?;
        let root = scratch.path().join("probe");
        fs::create_dir(&root)
            .and_then(|()| fs::write(root.join("lower"), ""))
            .map_err(|source| self.io(source))?;
        let overlay = FileContents::from([(FilePath::new("upper"), Some([].into()))]);
        let command = ShadowCommand {
            line: "test -e lower && test -e upper".into(),
            environment: std::env::vars_os().collect(),
            keep: Vec::new(),
            deadline: PROBE_DEADLINE,
            output_cap: 4096,
        };
        let done = self.run_as(self.kind, &root, &overlay, &command).await?;
        match done.end {
            End::Exited(0) => Ok(()),
            End::Exited(_)
            | End::TimedOut
            | End::OutOfMemory
            | End::TooManyProcesses
            | End::OutputTooLong
            | End::WroteTooMuch => Err(ShadowError::Refused {
                root,
                message: format!("{:?}: {}", done.end, done.output.trim()),
            }),
        }
    }

    /// Hides further files and directories of the host from commands.
    pub fn hiding(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.hidden.extend(paths);
        self
    }

    /// Returns the cache and all other paths that are hidden from commands.
    fn records(&self) -> Vec<PathBuf> {
        let all = self.hidden.iter().chain([&self.cache]);
        all.cloned().collect()
    }

    /// Returns shadows that copy the tree, with the reason for that.
    pub fn copies(self, reason: &str) -> Self {
        Shadows {
            kind: Kind::Copy,
            reason: reason.to_owned(),
            ..self
        }
    }

    /// Returns shadows that copy the tree, with another kind of confinement. With `None`, no command
    /// may run.
    pub fn confined_by(self, confinement: impl Into<Option<Confinement>>) -> Self {
        Shadows {
            confinement: confinement.into(),
            ..self.copies("asked for")
        }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the confinement of commands, or `None` if no command may run.
    pub fn confinement(&self) -> Option<Confinement> {
        self.confinement
    }

    /// Returns why this kind of shadow and this confinement were chosen.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Runs a command in `root` with `overlay` applied, in a sandbox. If `root` cannot be the lower
    /// directory of an overlay file system, it is copied.
    ///
    /// # Errors
    /// Fails if the overlay contains a path outside of the root, or if the shadow or the sandbox
    /// cannot be created.
    pub async fn run(
        &self,
        root: &Path,
        overlay: &FileContents,
        command: &ShadowCommand,
    ) -> Result<Captured, ShadowError> {
        if let Some(container) = &self.container {
            for file in overlay.keys() {
                inside(root, file)?;
            }
            return self.contained(container, root, overlay, command).await;
        }
        match self.run_as(self.kind, root, overlay, command).await {
            Err(ShadowError::Refused { .. }) if self.kind == Kind::Overlay => {
                self.run_as(Kind::Copy, root, overlay, command).await
            }
            done => done,
        }
    }

    async fn run_as(
        &self,
        kind: Kind,
        root: &Path,
        overlay: &FileContents,
        command: &ShadowCommand,
    ) -> Result<Captured, ShadowError> {
        for file in overlay.keys() {
            inside(root, file)?;
        }
        let Some(confinement) = self.confinement else {
            let reason = self.reason.clone();
            return Err(ShadowError::NoSandbox { reason });
        };
        match kind {
            Kind::Overlay => self.mounted(root, overlay, command).await,
            Kind::Copy => self.copied(root, overlay, command, confinement).await,
        }
    }

    fn program(
        &self,
        scratch: &Scratch,
        confinement: Confinement,
        tree: Tree,
        command: &ShadowCommand,
    ) -> SandboxedCommand {
        let (user, group) = user();
        SandboxedCommand {
            plan: Plan {
                confinement,
                tree,
                line: command.line.clone(),
                bounds: self.bounds,
                scratch: scratch.path().to_owned(),
                home: std::env::home_dir(),
                keep: command.keep.clone(),
                private: self.private.to_vec(),
                records: self.records(),
                user,
                group,
            },
            environment: command.environment.clone(),
            deadline: command.deadline,
            cap: command.output_cap,
        }
    }

    fn not_run(&self, error: NotRun, root: &Path) -> ShadowError {
        match error {
            NotRun::Io(source) => self.io(source),
            NotRun::DiskFull => self.disk_full(),
            NotRun::Refused(message) => ShadowError::Refused {
                root: root.to_owned(),
                message,
            },
        }
    }

    fn scratch(&self) -> Result<Scratch, ShadowError> {
        Scratch::create(&self.cache).map_err(|source| self.io(source))
    }

    fn scratch_outside(&self, root: &Path) -> Result<Scratch, ShadowError> {
        Scratch::create_outside(root, &self.cache).map_err(|source| self.io(source))
    }

    fn disk_full(&self) -> ShadowError {
        ShadowError::DiskFull {
            cache: self.cache.clone(),
        }
    }

    fn io(&self, source: io::Error) -> ShadowError {
        if source.kind() == io::ErrorKind::StorageFull {
            return self.disk_full();
        }
        ShadowError::Io {
            cache: self.cache.clone(),
            source,
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

async fn remove(scratch: Scratch) {
    // If removal fails, the next sweep removes the directory.
    let _ = blocking(move || {
        drop(scratch);
        Ok(())
    })
    .await;
}
