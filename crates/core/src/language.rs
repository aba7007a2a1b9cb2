//! The port to language servers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use starling_syntax::FilePath;
use starling_text::{ByteRange, ContentHash};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

/// What a diagnostic is about, as far as its tool tells.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The text cannot be parsed.
    Syntax,
    /// A name that nothing defines.
    Name,
    /// A module or a name in it that is not there.
    Import,
    /// Arguments that do not fit what is called.
    Call,
    /// Something that is there and not used.
    Unused,
    /// Types, and all that a tool does not tell apart.
    #[default]
    Other,
}

/// One diagnostic. `line` counts from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    pub file: FilePath,
    pub line: u32,
    pub severity: Severity,
    pub message: String,
    pub source: String,
    #[serde(default)]
    pub kind: ProblemKind,
    /// Whether a change that brings it has to be mended before anybody is asked about it.
    #[serde(default)]
    pub stops: bool,
    /// The text that it marks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ByteRange>,
}

/// Diagnostics of exactly the text that was asked about, or the reason why there are none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Diagnostics {
    Known {
        /// Its name and version.
        tool: String,
        problems: Vec<Problem>,
    },
    Unknown {
        reason: String,
    },
}

/// How thorough an answer is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effort {
    /// The first service of the order.
    Fast,
    /// The one for the last check.
    Thorough,
}

/// What is asked about a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// Where it is defined.
    Definitions,
    /// Where it is used, its definition aside.
    References,
    /// What overrides it.
    Implementations,
}

/// A name somewhere in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NameLocation {
    pub file: FilePath,
    pub range: ByteRange,
    /// Of the text in which it stands there: in any other, it means nothing.
    pub of: ContentHash,
}

/// An answer about a name in exactly the text that was asked about, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LspAnswer<T> {
    Known {
        /// Its name and version.
        tool: String,
        value: T,
    },
    Unknown {
        reason: String,
    },
}

/// A file of one state of the workspace.
#[derive(Debug, Clone)]
pub struct TextRequest {
    pub file: FilePath,
    /// The whole text of the file.
    pub text: Arc<str>,
    /// Texts of other files that stand in place of those on disk; `None`: there is no such file.
    pub overlay: Vec<(FilePath, Option<Arc<str>>)>,
    pub effort: Effort,
    /// The longest that the answer is waited for.
    pub deadline: Duration,
}

/// A language service. Answers speak of the given text, never of another version.
#[async_trait]
pub trait LanguageService: Send + Sync {
    async fn diagnostics(&self, request: TextRequest) -> Diagnostics;

    /// Whether there is a service at this effort for a file.
    fn has(&self, effort: Effort, _file: &FilePath) -> bool {
        effort == Effort::Fast
    }

    /// Whether it can be asked about the names of a file.
    fn knows_names(&self, file: &FilePath) -> bool {
        self.has(Effort::Fast, file)
    }

    /// Begins whatever makes a later question about this text quick, and returns at once.
    fn prepare(&self, _request: TextRequest) {}

    /// Import statements that would define the name that a problem of this text marks, as the
    /// service's quick fixes offer them; empty where it offers none.
    async fn imports(&self, _request: TextRequest, _problem: &Problem) -> Vec<String> {
        Vec::new()
    }

    /// The places in the workspace that stand in a relation to the name at a byte of the text. Only a
    /// service that is ready answers: nothing is started for that.
    async fn spots(
        &self,
        _request: TextRequest,
        _at: usize,
        _relation: Relation,
    ) -> LspAnswer<Vec<NameLocation>> {
        LspAnswer::Unknown {
            reason: "there is no language server".to_owned(),
        }
    }

    /// What a service has to say of the name at a byte of the text: a signature, a docstring. Empty where
    /// it knows nothing. Only a service that is ready answers.
    async fn hover(&self, _request: TextRequest, _at: usize) -> LspAnswer<String> {
        LspAnswer::Unknown {
            reason: "there is no language server".to_owned(),
        }
    }

    /// What happened to services since this was asked last: starts, crashes.
    fn news(&self) -> Vec<String> {
        Vec::new()
    }
}
