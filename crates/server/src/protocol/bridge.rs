//! Requests of the server for the editor's own language providers. The client's plugin forwards
//! them.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_lsp::lsp_types::request::Request;
use tower_lsp::lsp_types::{Position, TextDocumentIdentifier};

/// A language provider of the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EditorProvider {
    Definition,
    References,
    Implementation,
    Diagnostics,
}

impl EditorProvider {
    pub const ALL: [EditorProvider; 4] = [
        EditorProvider::Definition,
        EditorProvider::References,
        EditorProvider::Implementation,
        EditorProvider::Diagnostics,
    ];

    /// Returns the provider's name in `experimental.starling.bridge`. Its request has the prefix
    /// `starling/`.
    pub fn name(self) -> &'static str {
        match self {
            EditorProvider::Definition => "definition",
            EditorProvider::References => "references",
            EditorProvider::Implementation => "implementation",
            EditorProvider::Diagnostics => "diagnostics",
        }
    }
}

/// The parameters of all requests for the editor's language providers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BridgeParams {
    pub text_document: TextDocumentIdentifier,
    /// The version of the open document; `None` for a file that is not open.
    pub version: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
}

macro_rules! request {
    ($name:ident, $method:literal) => {
        #[derive(Debug)]
        pub enum $name {}
        impl Request for $name {
            type Params = BridgeParams;
            /// The provider's result as the editor returns it; null if it cannot answer.
            type Result = Value;
            const METHOD: &'static str = $method;
        }
    };
}

request!(BridgeDefinition, "starling/definition");
request!(BridgeReferences, "starling/references");
request!(BridgeImplementation, "starling/implementation");
request!(BridgeDiagnostics, "starling/diagnostics");

#[cfg(test)]
mod tests {
    use super::*;

    const MANUAL: &str = include_str!("../../../../docs/protocol.md");

    #[test]
    fn bridge_requests_are_named_and_documented() {
        let methods = [
            BridgeDefinition::METHOD,
            BridgeReferences::METHOD,
            BridgeImplementation::METHOD,
            BridgeDiagnostics::METHOD,
        ];
        for (provider, method) in EditorProvider::ALL.into_iter().zip(methods) {
            assert_eq!(method, format!("starling/{}", provider.name()));
            assert!(MANUAL.contains(&format!("`{method}`")), "{method}");
        }
    }
}
