//! Errors and warnings of a configuration. Each says what is wrong, where, and what to do.

use std::fmt;
use std::path::PathBuf;

use super::layer::ValueOrigin;

/// Why the configuration cannot be loaded.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfigError {
    #[error("{}: cannot be read: {message}", .path.display())]
    Unreadable { path: PathBuf, message: String },
    #[error("{}:{line}: {message}; correct the line or remove it", .path.display())]
    Syntax {
        path: PathBuf,
        line: usize,
        message: String,
    },
    #[error("{origin}: {key}: {message}")]
    Value {
        origin: ValueOrigin,
        key: String,
        message: String,
    },
    #[error("-c {text}: write it as key=value, for example -c limits.calls=20")]
    NotAnAssignment { text: String },
    #[error("{origin}: no such key: {key}{}", suggestion(.nearest))]
    UnknownKey {
        origin: ValueOrigin,
        key: String,
        nearest: Option<String>,
    },
}

/// A setting or file that was ignored.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigWarning {
    UnknownKey {
        origin: ValueOrigin,
        key: String,
        nearest: Option<String>,
    },
    /// A project file may not set this key, or may not raise the limit.
    NotForProjects { origin: ValueOrigin, key: String },
    /// The project's file was ignored because the project is not trusted.
    NotTrusted { path: PathBuf },
    /// The project's file was ignored because it changed after it was trusted.
    ChangedSinceTrusted { path: PathBuf },
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigWarning::UnknownKey {
                origin,
                key,
                nearest,
            } => write!(
                f,
                "{origin}: unknown key {key}, ignored{}",
                suggestion(nearest)
            ),
            ConfigWarning::NotForProjects { origin, key } => write!(
                f,
                "{origin}: {key} is ignored: a project may not set it to this value; set it in your own file"
            ),
            ConfigWarning::NotTrusted { path } => write!(
                f,
                "{}: not read: the project is not trusted; look at the file, then run \
                 `starling trust`, or use --trust to trust it once",
                path.display()
            ),
            ConfigWarning::ChangedSinceTrusted { path } => write!(
                f,
                "{}: not read: it changed since the project was trusted; look at the file, then run \
                 `starling trust` again, or use --trust to trust it once",
                path.display()
            ),
        }
    }
}

fn suggestion(nearest: &Option<String>) -> String {
    match nearest {
        Some(key) => format!("; did you mean {key}?"),
        None => String::new(),
    }
}
