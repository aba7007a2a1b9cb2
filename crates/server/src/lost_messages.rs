//! Messages of the client that cannot be read. Each may have changed an open document, so the server may
//! have an old text of it. The user is told once which file to close and open again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Request;
use tower_lsp::lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams, Url,
};

/// The notification that takes the place of a message that cannot be read. So it is handled in its
/// order among the other notifications.
pub const LOST: &str = "starling/messageLost";
/// Maximum number of files that a warning names.
const NAMED: usize = 5;

/// The parameters of [`LOST`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct LostMessage {
    /// The document that the message is about, if that can be read.
    pub uri: Option<Url>,
}

impl LostMessage {
    /// Returns the notification [`LOST`].
    pub fn into_notification(self) -> Request {
        Request::build(LOST).params(json!(self)).finish()
    }
}

/// Returns the notification itself, or [`LOST`] if it is about the text of a document and its
/// parameters cannot be read. tower-lsp would drop it.
pub fn readable_notification(request: Request) -> Request {
    let params = request.params().unwrap_or(&Value::Null);
    let error = match request.method() {
        "textDocument/didOpen" => DidOpenTextDocumentParams::deserialize(params).err(),
        "textDocument/didChange" => DidChangeTextDocumentParams::deserialize(params).err(),
        "textDocument/didClose" => DidCloseTextDocumentParams::deserialize(params).err(),
        _ => None,
    };
    let Some(error) = error else { return request };
    tracing::error!(%error, method = request.method(), "a notification cannot be read");
    let uri = params["textDocument"]["uri"].as_str();
    let uri = uri.and_then(|uri| Url::parse(uri).ok());
    LostMessage { uri }.into_notification()
}

/// Returns the text of the warning about documents that have become doubtful.
pub fn warning(doubtful: &[PathBuf]) -> Option<String> {
    let named = doubtful.iter().take(NAMED);
    let named: Vec<String> = named.map(|path| path.display().to_string()).collect();
    let more = match doubtful.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = format!("{}{more}", named.join(", "));
    match doubtful.len() {
        0 => None,
        1 => Some(format!(
            "Starling could not read a message of the editor about {named}, so it may have an old text of \
             this file: close the file and open it again"
        )),
        _ => Some(format!(
            "Starling could not read a message of the editor, so it may have old texts of the open files: \
             close them and open them again ({named})"
        )),
    }
}
