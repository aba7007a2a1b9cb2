//! The port to language servers.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::syntax::FilePath;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

/// One diagnostic. `line` counts from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    pub file: FilePath,
    pub line: u32,
    pub severity: Severity,
    pub message: String,
    pub source: String,
}

/// Diagnostics of exactly the text that was asked about, or the reason why there are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Diagnostics {
    Known {
        tool: String,
        problems: Vec<Problem>,
    },
    Unknown {
        reason: String,
    },
}

/// A language service. Answers speak of the given text, never of another version.
#[async_trait]
pub trait LanguageService: Send + Sync {
    async fn diagnostics(&self, file: &FilePath, text: Arc<str>) -> Diagnostics;
}
