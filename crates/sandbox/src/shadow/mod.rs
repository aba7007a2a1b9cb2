//! Shadows: a command runs in the workspace as it would be, and the workspace stays as it is.
//!
//! Every command gets a fresh shadow, made of the tree on disk and the texts laid over it. Two kinds:
//! an overlay file system mounted over the root inside namespaces of the command's own, so that every
//! path into the tree leads to the shadow; or, where the system refuses that, a copy.

mod container;
mod copy;
mod mount;
pub(super) mod process;
mod relocate;
pub(super) mod scratch;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use starling_workspace::{Overlay, ReadError, encode, inside};

use crate::sandbox::{Bounds, Confinement, Plan, Tree, administrators_files};
pub use container::Container;
use process::{Captured, End, NotRun, Program};
use scratch::Scratch;
use starling_syntax::FilePath;

/// How a shadow is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An overlay file system over the root, seen by the command alone.
    Overlay,
    /// A copy of the tree in the cache directory.
    Copy,
}

/// Whether commands may run where no sandbox can be made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unconfined {
    #[default]
    Refused,
    Allowed,
}

/// What the user lets commands do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    pub bounds: Bounds,
    pub unconfined: Unconfined,
}

/// Why a command could not run in a shadow.
#[derive(Debug, thiserror::Error)]
pub enum ShadowError {
    #[error("no shadow for this change: {0}")]
    Path(#[from] ReadError),
    #[error("no shadow could be made in {}: {source}", .cache.display())]
    Io { cache: PathBuf, source: io::Error },
    #[error("{}: no shadow could be made: {message}", .root.display())]
    Refused { root: PathBuf, message: String },
    #[error(
        "no sandbox can be made here ({reason}), and nothing runs without one: install bubblewrap, \
         allow user namespaces, or set sandbox.missing to \"allow\""
    )]
    NoSandbox { reason: String },
}

/// A command for a shell, with all of its environment.
#[derive(Debug, Clone)]
pub struct ShadowCommand {
    pub line: String,
    pub environment: BTreeMap<OsString, OsString>,
    /// Directories that it needs although they may lie where the sandbox has its own.
    pub keep: Vec<PathBuf>,
    pub deadline: Duration,
    /// How many bytes of the output are kept.
    pub output_cap: usize,
}

/// Makes shadows.
#[derive(Debug, Clone)]
pub struct Shadows {
    cache: PathBuf,
    bounds: Bounds,
    kind: Kind,
    /// `None` where nothing may run.
    confinement: Option<Confinement>,
    reason: String,
    /// What commands do not see, besides the cache.
    hidden: Vec<PathBuf>,
    /// What only an administrator may read. The probe's own command sees it.
    private: &'static [PathBuf],
    /// In place of all that.
    container: Option<Container>,
}

const PROBE_DEADLINE: Duration = Duration::from_secs(5);

impl Shadows {
    /// Finds out, by trying, which kind of shadow and which sandbox this system allows.
    ///
    /// # Errors
    /// The cache directory cannot be written.
    pub async fn open(cache: &Path, policy: Policy) -> Result<Self, ShadowError> {
        use Confinement::{Bubblewrap, Namespaces, Nothing};
        // Beside the probes: each takes as long as the other.
        let private = tokio::task::spawn_blocking(administrators_files);
        let private = async { private.await.map_err(io::Error::other) };
        let no_list = |source| ShadowError::Io {
            cache: cache.to_owned(),
            source,
        };
        let mut refusals = Vec::new();
        for (kind, confinement, reason) in [
            (
                Kind::Overlay,
                Namespaces,
                "overlay file systems work in user namespaces",
            ),
            (Kind::Copy, Namespaces, "user namespaces work"),
            (Kind::Copy, Bubblewrap, "bubblewrap works"),
        ] {
            let shadows = Shadows {
                cache: cache.to_owned(),
                bounds: policy.bounds,
                kind,
                confinement: Some(confinement),
                reason: String::new(),
                hidden: Vec::new(),
                private: &[],
                container: None,
            };
            match shadows.probe().await {
                Ok(()) => {
                    refusals.push(reason.to_owned());
                    let reason = refusals.join("; ");
                    let private = private.await.map_err(no_list)?;
                    return Ok(Shadows {
                        reason,
                        private,
                        ..shadows
                    });
                }
                Err(error @ (ShadowError::Io { .. } | ShadowError::Path(_))) => return Err(error),
                Err(ShadowError::Refused { message, .. }) => refusals.push(message),
                Err(ShadowError::NoSandbox { reason }) => refusals.push(reason),
            }
        }
        refusals.dedup();
        Ok(Shadows {
            cache: cache.to_owned(),
            bounds: policy.bounds,
            kind: Kind::Copy,
            confinement: match policy.unconfined {
                Unconfined::Allowed => Some(Nothing),
                Unconfined::Refused => None,
            },
            reason: refusals.join("; "),
            hidden: Vec::new(),
            private: private.await.map_err(no_list)?,
            container: None,
        })
    }

    async fn probe(&self) -> Result<(), ShadowError> {
        let scratch = self.scratch()?;
        let root = scratch.path().join("probe");
        fs::create_dir(&root)
            .and_then(|()| fs::write(root.join("lower"), ""))
            .map_err(|source| self.io(source))?;
        let overlay = Overlay::from([(FilePath::new("upper"), Some("".into()))]);
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

    /// These shadows, whose commands do not see these files and directories of the host either.
    pub fn hiding(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.hidden.extend(paths);
        self
    }

    /// The cache and what else commands do not see.
    fn records(&self) -> Vec<PathBuf> {
        let all = self.hidden.iter().chain([&self.cache]);
        all.cloned().collect()
    }

    /// These shadows as copies.
    pub fn copies(self, reason: &str) -> Self {
        Shadows {
            kind: Kind::Copy,
            reason: reason.to_owned(),
            ..self
        }
    }

    /// These shadows, as copies in a sandbox of another kind.
    pub fn confined_by(self, confinement: Confinement) -> Self {
        Shadows {
            confinement: Some(confinement),
            ..self.copies("asked for")
        }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What keeps commands in their place; `None` where nothing may run.
    pub fn confinement(&self) -> Option<Confinement> {
        self.confinement
    }

    /// Why shadows are of this kind, and what keeps commands in their place.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Runs a command in `root` as it would be with `overlay` over it, in a sandbox. A root that
    /// cannot be the lower side of an overlay is copied.
    ///
    /// # Errors
    /// The overlay leads out of the root, or the shadow or the sandbox cannot be made.
    pub async fn run(
        &self,
        root: &Path,
        overlay: &Overlay,
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
        overlay: &Overlay,
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
    ) -> Program {
        Program {
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
                user: rustix::process::getuid().as_raw(),
                group: rustix::process::getgid().as_raw(),
            },
            environment: command.environment.clone(),
            deadline: command.deadline,
            cap: command.output_cap,
        }
    }

    fn not_run(&self, error: NotRun, root: &Path) -> ShadowError {
        match error {
            NotRun::Io(source) => self.io(source),
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

    fn io(&self, source: io::Error) -> ShadowError {
        ShadowError::Io {
            cache: self.cache.clone(),
            source,
        }
    }
}

/// Writes and removes the files of an overlay in a tree.
pub(super) fn lay_over(tree: &Path, overlay: &Overlay) -> io::Result<()> {
    for (file, text) in overlay {
        let path = tree.join(file.as_str());
        match text {
            Some(text) => {
                fs::create_dir_all(path.parent().unwrap_or(tree))?;
                // An editor saves what its encoding lacks as UTF-8, or not at all.
                let bytes = encode(&path, text).unwrap_or(text.as_bytes().into());
                fs::write(&path, bytes)?;
            }
            None => match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            },
        }
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

async fn remove(scratch: Scratch) {
    // A failure leaves the directory to the next sweep.
    let _ = blocking(move || {
        drop(scratch);
        Ok(())
    })
    .await;
}
