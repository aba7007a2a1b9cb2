//! Documents of the headless editor: open buffers and the files behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ropey::Rope;
use serde_json::{Value, json};
use tower_lsp::lsp_types::{
    AnnotatedTextEdit, DocumentChangeOperation, DocumentChanges, OneOf, ResourceOp,
    TextDocumentEdit, TextEdit, Url, WorkspaceEdit,
};

use starling_server::{file_of, path_of};
use starling_syntax::FilePath;
use starling_text::{ByteRange, ChangeSet, Edit, Encoding, Position, offset_of, position_of};
use starling_workspace::{MAX_FILE_BYTES, delete_file, read_source, write_atomically};

/// Maximum size of a file that can be opened, in bytes. The limit is higher than the one for
/// agents, because an edit can make a file longer than agents may read.
const MAX_OPEN_BYTES: u64 = 8 * MAX_FILE_BYTES;

/// A notification to the server: its method and parameters.
pub type ServerNotification = (&'static str, Value);

/// An open document with its version.
#[derive(Debug)]
struct Buffer {
    version: i32,
    text: String,
}

/// Open buffers over the files of one folder.
#[derive(Debug)]
pub struct Buffers {
    root: PathBuf,
    pub encoding: Encoding,
    open: BTreeMap<FilePath, Buffer>,
}

/// A checked operation of a workspace edit, ready to be applied.
enum PlannedOperation {
    Text {
        file: FilePath,
        after: String,
        /// The content changes to send with `didChange`; `None` if the document is not open.
        told: Option<Vec<Value>>,
    },
    Delete {
        file: FilePath,
    },
}

impl Buffers {
    pub fn new(root: PathBuf) -> Buffers {
        Buffers {
            root,
            encoding: Encoding::Utf16,
            open: BTreeMap::new(),
        }
    }

    /// Opens a file from disk.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn open(&mut self, file: &FilePath) -> Result<ServerNotification, String> {
        let text = self.text(file)?;
        let uri = self.uri(file)?;
        let note = json!({"textDocument": {
            "uri": uri, "languageId": "python", "version": 1, "text": text,
        }});
        self.open.insert(file.clone(), Buffer { version: 1, text });
        Ok(("textDocument/didOpen", note))
    }

    /// Closes a document. Unsaved changes are lost.
    ///
    /// # Errors
    /// Fails if the document is not open.
    pub fn close(&mut self, file: &FilePath) -> Result<ServerNotification, String> {
        self.open.remove(file).ok_or_else(|| not_open(file))?;
        let uri = self.uri(file)?;
        Ok((
            "textDocument/didClose",
            json!({"textDocument": {"uri": uri}}),
        ))
    }

    /// Replaces a range of an open document, as typing does.
    ///
    /// # Errors
    /// Fails if the document is not open, or if the range is outside its text.
    pub fn type_text(
        &mut self,
        file: &FilePath,
        range: ByteRange,
        insert: &str,
    ) -> Result<ServerNotification, String> {
        let text = self.text(file)?;
        let changes = ChangeSet::replace(text.len(), range, insert)
            .ok_or_else(|| format!("{file}: the range is past the end"))?;
        let after = changes.apply(&text).map_err(|error| error.to_string())?;
        let told = self.told(&text, &changes);
        self.change(file, after, told)
    }

    /// Writes an open document to its file.
    ///
    /// # Errors
    /// Fails if the document is not open, or if the file cannot be written.
    pub fn save(&self, file: &FilePath) -> Result<ServerNotification, String> {
        let buffer = self.open.get(file).ok_or_else(|| not_open(file))?;
        self.write(file, &buffer.text)?;
        let uri = self.uri(file)?;
        Ok((
            "textDocument/didSave",
            json!({"textDocument": {"uri": uri}}),
        ))
    }

    /// Returns the text of a file as the user sees it: the open buffer, else the file on disk.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn text(&self, file: &FilePath) -> Result<String, String> {
        if let Some(buffer) = self.open.get(file) {
            return Ok(buffer.text.clone());
        }
        let path = path_of(&self.root, file).ok_or_else(|| outside(file))?;
        read_source(&path, MAX_OPEN_BYTES).map_err(|error| format!("{file}: {error}"))
    }

    /// Applies a workspace edit completely or not at all, then saves the open documents that it
    /// changed.
    ///
    /// # Errors
    /// Fails if an operation does not fit the current texts and files.
    pub fn apply(&mut self, edit: &WorkspaceEdit) -> Result<Vec<ServerNotification>, String> {
        let operations = match &edit.document_changes {
            Some(DocumentChanges::Edits(edits)) => {
                let edits = edits.iter().cloned();
                edits.map(DocumentChangeOperation::Edit).collect()
            }
            Some(DocumentChanges::Operations(operations)) => operations.clone(),
            None => return Err("only documentChanges are supported".to_owned()),
        };
        let mut made = BTreeSet::new();
        let planned: Result<Vec<Option<PlannedOperation>>, String> = operations
            .iter()
            .map(|operation| self.plan(operation, &mut made))
            .collect();
        let mut notes = Vec::new();
        for planned in planned?.into_iter().flatten() {
            self.carry_out(planned, &mut notes)?;
        }
        Ok(notes)
    }

    /// Checks one operation and returns it, ready to be applied. `made` holds the files that
    /// earlier operations of the same workspace edit create.
    fn plan(
        &self,
        operation: &DocumentChangeOperation,
        made: &mut BTreeSet<FilePath>,
    ) -> Result<Option<PlannedOperation>, String> {
        match operation {
            DocumentChangeOperation::Edit(edit) => self.plan_edit(edit, made).map(Some),
            DocumentChangeOperation::Op(ResourceOp::Create(create)) => {
                let file = self.file(&create.uri)?;
                let is_ignored = create.options.as_ref().and_then(|one| one.ignore_if_exists);
                match (self.text(&file), is_ignored) {
                    (Err(_), _) => {
                        made.insert(file);
                        Ok(None)
                    }
                    (Ok(_), Some(true)) => Ok(None),
                    (Ok(_), Some(false) | None) => Err(format!("{file}: the file already exists")),
                }
            }
            DocumentChangeOperation::Op(ResourceOp::Delete(delete)) => {
                let file = self.file(&delete.uri)?;
                self.text(&file)?;
                Ok(Some(PlannedOperation::Delete { file }))
            }
            DocumentChangeOperation::Op(ResourceOp::Rename(rename)) => Err(format!(
                "{}: the headless editor cannot rename files",
                rename.old_uri
            )),
        }
    }

    fn plan_edit(
        &self,
        edit: &TextDocumentEdit,
        made: &BTreeSet<FilePath>,
    ) -> Result<PlannedOperation, String> {
        let document = &edit.text_document;
        let file = self.file(&document.uri)?;
        let buffer = self.open.get(&file);
        if document.version != buffer.map(|buffer| buffer.version) {
            return Err(format!(
                "{file}: the edit was made for another version of the text"
            ));
        }
        let text = match made.contains(&file) {
            true => String::new(),
            false => self.text(&file)?,
        };
        let changes = self.changes(&text, &edit.edits, &file)?;
        Ok(PlannedOperation::Text {
            after: changes.apply(&text).map_err(|error| error.to_string())?,
            told: buffer.map(|_| self.told(&text, &changes)),
            file,
        })
    }

    fn carry_out(
        &mut self,
        planned: PlannedOperation,
        notes: &mut Vec<ServerNotification>,
    ) -> Result<(), String> {
        match planned {
            PlannedOperation::Text {
                told: Some(told), ..
            } if told.is_empty() => {}
            PlannedOperation::Text {
                file,
                after,
                told: None,
            } => self.write(&file, &after)?,
            PlannedOperation::Text {
                file,
                after,
                told: Some(told),
            } => {
                notes.push(self.change(&file, after, told)?);
                notes.push(self.save(&file)?);
            }
            PlannedOperation::Delete { file } => {
                if self.open.contains_key(&file) {
                    notes.push(self.close(&file)?);
                }
                delete_file(&self.root, &file).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    fn file(&self, uri: &Url) -> Result<FilePath, String> {
        file_of(&self.root, uri).ok_or_else(|| format!("{uri}: outside the workspace"))
    }

    fn changes(
        &self,
        text: &str,
        edits: &[OneOf<TextEdit, AnnotatedTextEdit>],
        file: &FilePath,
    ) -> Result<ChangeSet, String> {
        let rope = Rope::from_str(text);
        let offset = |at: tower_lsp::lsp_types::Position| {
            let position = Position {
                line: at.line,
                column: at.character,
            };
            offset_of(&rope, position, self.encoding)
        };
        let mut changes = Vec::new();
        for edit in edits {
            let edit = match edit {
                OneOf::Left(edit) => edit,
                OneOf::Right(edit) => &edit.text_edit,
            };
            let (start, end) = (offset(edit.range.start), offset(edit.range.end));
            if start > end {
                return Err(format!(
                    "{file}: the edit has a range that ends before it starts"
                ));
            }
            changes.push(Edit {
                range: ByteRange::new(start, end),
                insert: edit.new_text.clone(),
            });
        }
        ChangeSet::new(text.len(), changes).ok_or_else(|| format!("{file}: the edits overlap"))
    }

    /// Returns the content changes to send with `didChange`, in reverse order, so that the range of
    /// each change is still valid after the changes before it were applied.
    fn told(&self, text: &str, changes: &ChangeSet) -> Vec<Value> {
        let rope = Rope::from_str(text);
        let position = |offset| {
            let position = position_of(&rope, offset, self.encoding);
            json!({"line": position.line, "character": position.column})
        };
        let told = |edit: &Edit| {
            let range = json!({
                "start": position(edit.range.start), "end": position(edit.range.end),
            });
            json!({"range": range, "text": edit.insert})
        };
        changes.edits().iter().rev().map(told).collect()
    }

    fn change(
        &mut self,
        file: &FilePath,
        after: String,
        told: Vec<Value>,
    ) -> Result<ServerNotification, String> {
        let uri = self.uri(file)?;
        let buffer = self.open.get_mut(file).ok_or_else(|| not_open(file))?;
        buffer.text = after;
        buffer.version += 1;
        let version = buffer.version;
        let note = json!({
            "textDocument": {"uri": uri, "version": version}, "contentChanges": told,
        });
        Ok(("textDocument/didChange", note))
    }

    fn write(&self, file: &FilePath, text: &str) -> Result<(), String> {
        write_atomically(&self.root, file, text).map_err(|error| error.to_string())
    }

    fn uri(&self, file: &FilePath) -> Result<Url, String> {
        let path: Option<PathBuf> = path_of(&self.root, file);
        path.and_then(|path| Url::from_file_path::<&Path>(&path).ok())
            .ok_or_else(|| outside(file))
    }
}

fn not_open(file: &FilePath) -> String {
    format!("{file}: the document is not open")
}

fn outside(file: &FilePath) -> String {
    format!("{file}: outside the workspace")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(buffers: &mut Buffers, changes: Value) -> Result<Vec<ServerNotification>, String> {
        let edit = serde_json::from_value(json!({"documentChanges": changes})).unwrap();
        buffers.apply(&edit)
    }

    fn uri(buffers: &Buffers, name: &str) -> Url {
        buffers.uri(&FilePath::new(name)).unwrap()
    }

    fn insert(buffers: &Buffers, name: &str, version: Option<i32>, text: &str) -> Value {
        let start = json!({"line": 0, "character": 0});
        json!({
            "textDocument": {"uri": uri(buffers, name), "version": version},
            "edits": [{"range": {"start": start, "end": start}, "newText": text}],
        })
    }

    fn place() -> (tempfile::TempDir, Buffers) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.py"), "a\n").unwrap();
        let buffers = Buffers::new(dir.path().canonicalize().unwrap());
        (dir, buffers)
    }

    #[test]
    fn workspace_edit_operations_are_applied_in_order() {
        let (dir, mut buffers) = place();
        let made = uri(&buffers, "pkg/b.py");
        let changes = json!([
            {"kind": "create", "uri": made},
            insert(&buffers, "pkg/b.py", None, "b\n"),
            {"kind": "delete", "uri": uri(&buffers, "a.py")},
        ]);
        assert_eq!(apply(&mut buffers, changes), Ok(vec![]));
        let text = std::fs::read_to_string(dir.path().join("pkg/b.py"));
        assert_eq!(text.unwrap(), "b\n");
        assert!(!dir.path().join("a.py").exists());
    }

    #[test]
    fn invalid_workspace_edit_changes_nothing() {
        let (dir, mut buffers) = place();
        let good = insert(&buffers, "a.py", None, "x");
        let (here, there) = (uri(&buffers, "a.py"), uri(&buffers, "c.py"));
        for (bad, why) in [
            (json!({"kind": "delete", "uri": there}), "c.py: "),
            (
                json!({"kind": "rename", "oldUri": here, "newUri": there}),
                "cannot rename",
            ),
            (
                json!({"kind": "create", "uri": "file:///elsewhere/d.py"}),
                "outside the workspace",
            ),
            (insert(&buffers, "c.py", None, "x"), "c.py: "),
            (insert(&buffers, "a.py", Some(1), "x"), "another version"),
        ] {
            let error = apply(&mut buffers, json!([good, bad])).unwrap_err();
            assert!(error.contains(why), "{error}");
            let text = std::fs::read_to_string(dir.path().join("a.py"));
            assert_eq!(text.unwrap(), "a\n", "{why}");
        }
        assert!(buffers.apply(&WorkspaceEdit::default()).is_err());
    }

    #[test]
    fn deleting_an_open_document_closes_it() {
        let (dir, mut buffers) = place();
        buffers.open(&FilePath::new("a.py")).unwrap();
        let delete = json!({"kind": "delete", "uri": uri(&buffers, "a.py")});
        let mut guard = insert(&buffers, "a.py", Some(1), "");
        guard["edits"] = json!([]);
        let notes = apply(&mut buffers, json!([guard, delete])).unwrap();
        let names: Vec<&str> = notes.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["textDocument/didClose"]);
        assert!(!dir.path().join("a.py").exists());
        assert!(buffers.text(&FilePath::new("a.py")).is_err());
    }

    #[test]
    fn creating_an_existing_file_respects_ignore_if_exists() {
        let (dir, mut buffers) = place();
        let changes = json!([
            {"kind": "create", "uri": uri(&buffers, "a.py"), "options": {"ignoreIfExists": true}},
            insert(&buffers, "a.py", None, "x"),
        ]);
        apply(&mut buffers, changes).unwrap();
        let text = std::fs::read_to_string(dir.path().join("a.py"));
        assert_eq!(text.unwrap(), "xa\n");
        let changes = json!([
            {"kind": "create", "uri": uri(&buffers, "a.py"), "options": {"ignoreIfExists": false}},
            insert(&buffers, "a.py", None, "x"),
        ]);
        let why = apply(&mut buffers, changes).unwrap_err();
        assert_eq!(why, "a.py: the file already exists");
    }
}
