//! How the client spells the URIs of its open documents. `file://localhost/w/a.py`, `FILE:///w/a.py`,
//! `file:/w/a.py` and `file:///w/b/../a.py` name one file, and parsing them normalizes them. A client may
//! compare URIs letter by letter, so whatever is sent to it has its own spelling.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tower_lsp::jsonrpc::Request;
use tower_lsp::lsp_types::Url;

use super::paths::disk_path;

/// The client's spelling of the URI of each open document where it differs from the server's.
#[derive(Debug, Clone, Default)]
pub struct UriSpellings(Arc<Mutex<HashMap<PathBuf, String>>>);

impl UriSpellings {
    /// Notes the spelling of a document that the client opens, until it closes the document.
    pub fn note(&self, message: &Request) {
        let is_opened = match message.method() {
            "textDocument/didOpen" => true,
            "textDocument/didClose" => false,
            _ => return,
        };
        let uri = message
            .params()
            .map(|params| &params["textDocument"]["uri"]);
        let Some(uri) = uri.and_then(Value::as_str) else {
            return;
        };
        let Some(path) = path_of(uri) else { return };
        let is_usual = Url::from_file_path(&path).is_ok_and(|usual| usual.as_str() == uri);
        if is_opened && !is_usual {
            self.lock().insert(path, uri.to_owned());
        } else {
            self.lock().remove(&path);
        }
    }

    /// Returns whether no document has a spelling of its own.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Spells all URIs in a message as the client does.
    pub fn respell(&self, message: &mut Value) {
        match message {
            Value::String(uri) if uri.starts_with("file:") => {
                let spelled = path_of(uri).and_then(|path| self.lock().get(&path).cloned());
                *uri = spelled.unwrap_or_else(|| std::mem::take(uri));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.respell(item)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.respell(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn path_of(uri: &str) -> Option<PathBuf> {
    disk_path(&Url::parse(uri).ok()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(method: &'static str, uri: &str) -> Request {
        let params = json!({"textDocument": {"uri": uri}});
        Request::build(method).params(params).finish()
    }

    #[test]
    fn uri_of_an_open_document_is_sent_in_the_clients_spelling() {
        let spellings = UriSpellings::default();
        spellings.note(&message("textDocument/didOpen", "file:///w/b.py"));
        spellings.note(&message("textDocument/didOpen", "untitled:/w/c.py"));
        assert!(spellings.is_empty());
        let spelled = "file://localhost/w/x/../a.py";
        spellings.note(&message("textDocument/didOpen", spelled));
        let plain = json!({"edits": [{"uri": "file:///w/a.py", "version": 1}, "file:///w/b.py"]});
        let mut sent = plain.clone();
        spellings.respell(&mut sent);
        let wanted = json!({"edits": [{"uri": spelled, "version": 1}, "file:///w/b.py"]});
        assert_eq!(sent, wanted);
        spellings.note(&message("textDocument/didClose", spelled));
        let mut sent = plain.clone();
        spellings.respell(&mut sent);
        assert_eq!(sent, plain);
    }
}
