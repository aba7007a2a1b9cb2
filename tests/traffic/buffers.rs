//! The client's documents.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ropey::Rope;
use serde_json::{Value, json};
use starling_text::{Encoding, Position, offset_of, position_of};
use tower_lsp::lsp_types::Url;

/// Returns the first known encoding in a client's list, or UTF-16 if there is none.
pub fn encoding_of(hello: &Value) -> Encoding {
    let list = hello["capabilities"]["general"]["positionEncodings"].as_array();
    let known = |name: &Value| match name.as_str() {
        Some("utf-8") => Some(Encoding::Utf8),
        Some("utf-16") => Some(Encoding::Utf16),
        Some("utf-32") => Some(Encoding::Utf32),
        Some(_) | None => None,
    };
    list.and_then(|list| list.iter().find_map(known))
        .unwrap_or(Encoding::Utf16)
}

/// The way in which changes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    AsRecorded,
    /// The whole text after each change.
    Full,
}

/// The open documents of the replayed client, in the server's encoding.
pub struct Buffers {
    open: BTreeMap<String, (i64, Rope)>,
    /// Closed documents that may still be saved.
    closed: BTreeMap<String, String>,
    recorded: Encoding,
    agreed: Encoding,
    sync: SyncMode,
}

impl Buffers {
    pub fn new(recorded: Encoding, agreed: Encoding, sync: SyncMode) -> Buffers {
        Buffers {
            open: BTreeMap::new(),
            closed: BTreeMap::new(),
            recorded,
            agreed,
            sync,
        }
    }

    pub fn version(&self, uri: &str) -> Option<i64> {
        self.open.get(uri).map(|(version, _)| *version)
    }

    /// Returns the open texts with their file paths.
    pub fn texts(&self) -> impl Iterator<Item = (PathBuf, String)> {
        let open = self.open.iter();
        open.filter_map(|(uri, (_, text))| {
            let path = Url::parse(uri).ok()?.to_file_path().ok()?;
            Some((path, text.to_string()))
        })
    }

    /// Applies a message to the documents, and rewrites it for this client's encoding and kind of
    /// sync.
    pub fn carry(&mut self, message: &mut Value) {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let params = &mut message["params"];
        let document = params["textDocument"].clone();
        let uri = document["uri"].as_str().unwrap_or_default().to_owned();
        match method.as_str() {
            "textDocument/didOpen" => {
                let text = Rope::from_str(document["text"].as_str().unwrap());
                self.open
                    .insert(uri, (document["version"].as_i64().unwrap(), text));
            }
            "textDocument/didChange" => {
                self.change(&uri, &document["version"], &mut params["contentChanges"])
            }
            "textDocument/didClose" => {
                if let Some((_, text)) = self.open.remove(&uri) {
                    self.closed.insert(uri, text.to_string());
                }
            }
            "textDocument/didSave" => self.save(&uri),
            _ => {
                for name in ["position", "range"] {
                    if let Some(value) = params.get_mut(name) {
                        self.translate(&uri, value);
                    }
                }
            }
        }
    }

    fn change(&mut self, uri: &str, version: &Value, changes: &mut Value) {
        let (recorded, sync) = (self.recorded, self.sync);
        for change in changes.as_array_mut().unwrap() {
            let range = change["range"].clone();
            self.translate(uri, &mut change["range"]);
            let (_, text) = self
                .open
                .get_mut(uri)
                .expect("only what is open is changed");
            let new = change["text"].as_str().unwrap();
            match range.is_null() {
                true => *text = Rope::from_str(new),
                false => {
                    let (start, end) = (
                        offset(text, &range["start"], recorded),
                        offset(text, &range["end"], recorded),
                    );
                    let chars = text.byte_to_char(start)..text.byte_to_char(end);
                    let at = chars.start;
                    text.remove(chars);
                    text.insert(at, new);
                }
            }
            let whole = text.to_string();
            let change = change.as_object_mut().unwrap();
            change.remove("rangeLength");
            if range.is_null() || sync == SyncMode::Full {
                change.remove("range");
                change.insert("text".to_owned(), json!(whole));
            }
        }
        let (known, _) = self
            .open
            .get_mut(uri)
            .expect("only what is open is changed");
        *known = version.as_i64().unwrap();
    }

    fn save(&self, uri: &str) {
        let path = Url::parse(uri).unwrap().to_file_path().unwrap();
        let text = match self.open.get(uri) {
            Some((_, text)) => text.to_string(),
            None => self.closed[uri].clone(),
        };
        std::fs::write(path, text).unwrap();
    }

    /// Converts positions to the negotiated encoding.
    fn translate(&self, uri: &str, value: &mut Value) {
        let Some((_, text)) = self.open.get(uri) else {
            return;
        };
        match value {
            Value::Object(object) if object.contains_key("line") => {
                let at = position_of(text, offset(text, value, self.recorded), self.agreed);
                // A position behind the end of a line or of the text stays behind it.
                if at.line as u64 == value["line"].as_u64().unwrap() {
                    value["character"] = json!(at.column);
                }
            }
            Value::Object(object) => object
                .values_mut()
                .for_each(|inner| self.translate(uri, inner)),
            _ => {}
        }
    }
}

fn offset(text: &Rope, at: &Value, encoding: Encoding) -> usize {
    let number = |name: &str| u32::try_from(at[name].as_u64().unwrap()).unwrap_or(u32::MAX);
    let position = Position {
        line: number("line"),
        column: number("character"),
    };
    offset_of(text, position, encoding)
}
