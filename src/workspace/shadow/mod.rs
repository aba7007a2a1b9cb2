//! Shadows: a command runs in the workspace as it would be, and the workspace stays as it is.
//!
//! Every command gets a fresh shadow, made of the tree on disk and the texts laid over it. Two kinds:
//! an overlay file system mounted over the root inside namespaces of the command's own, so that every
//! path into the tree leads to the shadow; or, where the system refuses that, a copy.

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

use super::paths::{ReadError, inside};
use super::snapshot::Overlay;
use crate::syntax::FilePath;
use process::{Captured, End};
use scratch::Scratch;

/// How a shadow is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An overlay file system over the root, seen by the command alone.
    Overlay,
    /// A copy of the tree in the cache directory.
    Copy,
}

/// Why a command could not run in a shadow.
#[derive(Debug, thiserror::Error)]
pub enum ShadowError {
    #[error("no shadow for this change: {0}")]
    Path(#[from] ReadError),
    #[error("no shadow could be made in {}: {source}", .cache.display())]
    Io { cache: PathBuf, source: io::Error },
    #[error("{}: no overlay could be mounted: {message}", .root.display())]
    Refused { root: PathBuf, message: String },
}

/// A command for a shell, with all of its environment.
#[derive(Debug, Clone)]
pub struct ShadowCommand {
    pub line: String,
    pub environment: BTreeMap<OsString, OsString>,
    pub deadline: Duration,
    /// How many bytes of the output are kept.
    pub output_cap: usize,
}

/// Makes shadows.
#[derive(Debug, Clone)]
pub struct Shadows {
    cache: PathBuf,
    kind: Kind,
    reason: String,
}

const PROBE_DEADLINE: Duration = Duration::from_secs(5);

impl Shadows {
    /// Finds out, by trying, which kind of shadow this system allows.
    ///
    /// # Errors
    /// The cache directory cannot be written.
    pub async fn open(cache: &Path) -> Result<Self, ShadowError> {
        let mut shadows = Shadows {
            cache: cache.to_owned(),
            kind: Kind::Overlay,
            reason: "overlay file systems work in user namespaces".into(),
        };
        let scratch = shadows.scratch()?;
        if let Err(error) = shadows.probe(scratch.path()).await {
            shadows.kind = Kind::Copy;
            shadows.reason = error.to_string();
        }
        Ok(shadows)
    }

    async fn probe(&self, scratch: &Path) -> Result<(), ShadowError> {
        let root = scratch.join("probe");
        fs::create_dir(&root)
            .and_then(|()| fs::write(root.join("lower"), ""))
            .map_err(|source| self.io(source))?;
        let overlay = Overlay::from([(FilePath::new("upper"), Some("".into()))]);
        let command = ShadowCommand {
            line: "test -e lower && test -e upper".into(),
            environment: std::env::vars_os().collect(),
            deadline: PROBE_DEADLINE,
            output_cap: 4096,
        };
        let done = self.mounted(&root, &overlay, &command).await?;
        match done.end {
            End::Exited(0) => Ok(()),
            End::Exited(_) | End::TimedOut => Err(ShadowError::Refused {
                root,
                message: done.output,
            }),
        }
    }

    /// These shadows as copies.
    pub fn copies(self, reason: &str) -> Self {
        Shadows {
            kind: Kind::Copy,
            reason: reason.to_owned(),
            ..self
        }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Why shadows are of this kind.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Runs a command in `root` as it would be with `overlay` over it. A root that cannot be the
    /// lower side of an overlay is copied.
    ///
    /// # Errors
    /// The overlay leads out of the root, or the shadow cannot be made.
    pub async fn run(
        &self,
        root: &Path,
        overlay: &Overlay,
        command: &ShadowCommand,
    ) -> Result<Captured, ShadowError> {
        for file in overlay.keys() {
            inside(root, file)?;
        }
        match self.kind {
            Kind::Copy => self.copied(root, overlay, command).await,
            Kind::Overlay => match self.mounted(root, overlay, command).await {
                Err(ShadowError::Refused { .. }) => self.copied(root, overlay, command).await,
                done => done,
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
fn lay_over(tree: &Path, overlay: &Overlay) -> io::Result<()> {
    for (file, text) in overlay {
        let path = tree.join(file.as_str());
        match text {
            Some(text) => {
                fs::create_dir_all(path.parent().unwrap_or(tree))?;
                fs::write(path, text.as_bytes())?;
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
