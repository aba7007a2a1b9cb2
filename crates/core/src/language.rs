//! The interface to language servers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use starling_syntax::FilePath;
use starling_text::{ByteRange, ContentHash};

/// The severity of a diagnostic, as in the LSP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
    Information,
    Hint,
}

/// The kind of a diagnostic, if the tool reports one.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The text cannot be parsed.
    Syntax,
    /// A name is not defined.
    Name,
    /// A module, or a name in a module, does not exist.
    Import,
    /// The arguments do not match the called function.
    Call,
    /// A name or import is not used.
    Unused,
    /// A type error, or a diagnostic of unknown kind.
    #[default]
    Other,
}

/// A diagnostic. `line` counts from 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Problem {
    pub file: FilePath,
    pub line: u32,
    pub severity: Severity,
    pub message: String,
    pub source: String,
    #[serde(default)]
    pub kind: ProblemKind,
    /// Whether a change that introduces this problem must be fixed before anyone reviews it.
    #[serde(default)]
    pub stops: bool,
    /// The range of the marked text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<ByteRange>,
}

/// The diagnostics of exactly the requested text, or the reason why they are unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Diagnostics {
    Known {
        /// Name and version of the tool.
        tool: String,
        problems: Vec<Problem>,
    },
    Unknown {
        reason: String,
    },
}

/// The language server that a request is sent to: a fast one, or a thorough one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effort {
    /// The preferred language server.
    Fast,
    /// The language server for the final check.
    Thorough,
}

/// A relation between a name and locations in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Relation {
    /// The definitions of the name.
    Definitions,
    /// The uses of the name, without its definition.
    References,
    /// The definitions that override or implement the name.
    Implementations,
}

/// The location of a name in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NameLocation {
    pub file: FilePath,
    pub range: ByteRange,
    /// The hash of the text to which the range refers. In any other text, the range is meaningless.
    pub of: ContentHash,
}

/// A result about a name in exactly the requested text, or the reason why it is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LspAnswer<T> {
    Known {
        /// Name and version of the tool.
        tool: String,
        value: T,
    },
    Unknown {
        reason: String,
    },
}

/// A text to analyze, with the state of the workspace around it.
#[derive(Debug, Clone)]
pub struct TextRequest {
    pub file: FilePath,
    /// The whole text of the file.
    pub text: Arc<str>,
    /// Texts that replace files on disk; `None` means that the file does not exist.
    pub overlay: Vec<(FilePath, Option<Arc<str>>)>,
    pub effort: Effort,
    /// Maximum time to wait for the result.
    pub deadline: Duration,
}

/// A language service. Every result refers to the given text, never to another version of it.
#[async_trait]
pub trait LanguageService: Send + Sync {
    async fn diagnostics(&self, request: TextRequest) -> Diagnostics;

    /// Returns whether a server for this effort supports a file.
    fn has(&self, effort: Effort, _file: &FilePath) -> bool {
        effort == Effort::Fast
    }

    /// Returns whether the service supports requests about names in a file, such as for their
    /// references.
    fn knows_names(&self, file: &FilePath) -> bool {
        self.has(Effort::Fast, file)
    }

    /// Starts work that makes a later request about this text faster, and returns immediately.
    fn prepare(&self, _request: TextRequest) {}

    /// Returns import statements that would define the name at a problem, from the service's quick
    /// fixes. Returns an empty list if there are none.
    async fn imports(&self, _request: TextRequest, _problem: &Problem) -> Vec<String> {
        Vec::new()
    }

    /// Returns the locations in the workspace that have a relation to the name at a byte offset.
    /// Does not start a server: the result is unknown if no server is ready.
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

    /// Returns what the server shows for the name at a byte offset, such as a signature and
    /// docstring. The text is empty if the server knows nothing. Does not start a server.
    async fn hover(&self, _request: TextRequest, _at: usize) -> LspAnswer<String> {
        LspAnswer::Unknown {
            reason: "there is no language server".to_owned(),
        }
    }

    /// Returns the events of servers, such as starts and crashes, since the last call.
    fn news(&self) -> Vec<String> {
        Vec::new()
    }
}
