//! Renames that the user asks the editor for (`textDocument/rename`). The edits come from the index,
//! without a model, and the editor makes them itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ropey::Rope;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use tower_lsp::lsp_types::{
    AnnotatedTextEdit, ChangeAnnotation, DocumentChanges, OneOf,
    OptionalVersionedTextDocumentIdentifier, Position, Range, TextDocumentEdit, TextEdit, Url,
    WorkspaceEdit,
};

use super::documents::{DocumentStore, ExpectReply, StoreClosed};
use super::session::{Services, overlay};
use super::settings::ClientSettings;
use super::text_history::TextHistory;
use starling_core::DocVersion;
use starling_index::{Index, Position as IndexPosition};
use starling_swarm::reading::Lookup;
use starling_swarm::renaming::{RenameEdits, rename_edits};
use starling_syntax::{FilePath, Language, SymbolPath};
use starling_text::{Edit, Encoding, offset_of, position_of};

/// Maximum time to read the project and to look for the uses.
const DEADLINE: Duration = Duration::from_secs(60);

/// Maximum number of requests that read the project at the same time; others wait.
static READERS: Semaphore = Semaphore::const_new(2);

/// The annotation of edits that the user is to confirm.
const UNSURE: &str = "may mean something else";

/// The name that the user wants to change: its place, and the symbol that it means.
#[derive(Debug, PartialEq, Eq)]
pub struct RenameTarget {
    pub range: Range,
    pub name: String,
    /// A symbol or a variable of a module: `path/to/file.py::name`.
    symbol: String,
}

/// The edits of a rename, and what the user should know about them.
pub struct Renamed {
    pub edit: WorkspaceEdit,
    /// Why uses may be left; empty if every use is certain.
    pub doubts: Vec<String>,
}

/// A request to rename the name at a position.
pub struct RenameRequest {
    root: PathBuf,
    file: FilePath,
    position: starling_text::Position,
    encoding: Encoding,
    buffers: oneshot::Receiver<Vec<(PathBuf, Arc<str>)>>,
}

impl RenameRequest {
    /// Creates a request. It includes the texts of all messages that the editor sent before.
    pub fn new(
        documents: &DocumentStore,
        settings: &ClientSettings,
        file: FilePath,
        position: Position,
    ) -> RenameRequest {
        RenameRequest {
            root: settings.root.clone().unwrap_or_default(),
            file,
            position: starling_text::Position {
                line: position.line,
                column: position.character,
            },
            encoding: settings.encoding,
            buffers: documents.read_all(),
        }
    }

    /// Returns the symbol at the position. Returns `None` if there is none, or if it is one that only its
    /// own function uses.
    ///
    /// # Errors
    /// The project cannot be read in time.
    pub async fn target(self, services: &Services) -> Result<Option<RenameTarget>, String> {
        let find = move |request: &RequestedPlace, lookup: &Lookup| Ok(request.target(lookup));
        self.with_index(services, find).await
    }

    /// Returns the edits that give the symbol at the position another name.
    ///
    /// # Errors
    /// There is no symbol at the position, it cannot have the new name, or the project cannot be read in
    /// time.
    pub async fn rename(
        self,
        to: String,
        services: &Services,
        documents: &DocumentStore,
        settings: &ClientSettings,
    ) -> Result<Renamed, String> {
        let root = self.root.clone();
        let folder = root.clone();
        let find = move |request: &RequestedPlace, lookup: &Lookup| {
            let target = request.target(lookup);
            let target = target.ok_or("there is no symbol of the project here")?;
            let edits = rename_edits(lookup, &target.symbol, &to)?;
            let files: BTreeSet<&FilePath> =
                edits.certain.keys().chain(edits.unsure.keys()).collect();
            // A file with several names, because of links, is edited once.
            let mut known = BTreeSet::new();
            let mut texts = BTreeMap::new();
            for file in files {
                let real = std::fs::canonicalize(folder.join(file.as_str()));
                if real.is_ok_and(|real| !known.insert(real)) {
                    continue;
                }
                let tree = lookup.tree(file)?;
                texts.insert(file.clone(), Arc::clone(tree.text()));
            }
            Ok((edits, texts))
        };
        let (edits, texts) = self.with_index(services, find).await?;
        let mut edited = BTreeMap::new();
        for (file, text) in texts {
            let path = root.join(file.as_str());
            let document = edited_document(documents, &file, path, text).await?;
            edited.insert(file, document);
        }
        let context = EditContext {
            edited: &edited,
            settings,
        };
        Ok(Renamed {
            edit: context.workspace_edit(&edits),
            doubts: edits.doubts,
        })
    }

    /// Reads the project with the texts of the open documents, and looks something up in it.
    async fn with_index<T: Send + 'static>(
        self,
        services: &Services,
        find: impl FnOnce(&RequestedPlace, &Lookup) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let buffers = self.buffers.await.unwrap_or_default();
        let overlay = overlay(&self.root, buffers);
        let place = RequestedPlace {
            file: self.file,
            position: self.position,
            encoding: self.encoding,
        };
        let (root, open) = (self.root, Arc::clone(&services.index));
        let workers = services.workers.clone();
        let read = move || {
            let index: Arc<Index> = open(root, overlay).map_err(|error| format!("{error:#}"))?;
            let lookup = Lookup::new(index.snapshot().clone(), index);
            find(&place, &lookup)
        };
        let found = async {
            let _reader = READERS.acquire().await;
            workers.spawn_blocking(read).await
        };
        match timeout(DEADLINE, found).await {
            Ok(found) => found.map_err(|error| format!("internal error: {error}"))?,
            Err(_) => Err(format!(
                "the project could not be read within {} s: try again",
                DEADLINE.as_secs()
            )),
        }
    }
}

/// A file that a rename edits, as the editor knows it.
struct EditedDocument {
    uri: Url,
    /// `None` if the file is not open.
    version: Option<DocVersion>,
    text: Arc<str>,
}

/// Returns the document of a file under the name with which the editor opened it.
///
/// # Errors
/// The editor may have another text.
async fn edited_document(
    documents: &DocumentStore,
    file: &FilePath,
    path: PathBuf,
    text: Arc<str>,
) -> Result<EditedDocument, String> {
    let closed = |error: StoreClosed| error.to_string();
    let path = documents.name_of(path).await.map_err(closed)?;
    let (base, after, texts) = (Arc::clone(&text), Arc::clone(&text), TextHistory::default());
    let expected = documents.expect(path.clone(), base, after, texts);
    let (uri, version) = match expected.await.map_err(closed)? {
        ExpectReply::Stale => return Err(format!("{file} changed meanwhile: rename again")),
        ExpectReply::Uncertain => {
            return Err(format!(
                "a message from the editor could not be read, so it may have another text of {file}: \
                 open the file (if it is open, close it first), then rename again"
            ));
        }
        ExpectReply::Open { uri, version, .. } => (uri, Some(version)),
        ExpectReply::Closed { .. } => {
            let uri = Url::from_file_path(&path);
            let uri = uri.map_err(|()| format!("{} has no URI", path.display()))?;
            (uri, None)
        }
    };
    Ok(EditedDocument { uri, version, text })
}

/// The position in a file at which the user asks for a rename.
struct RequestedPlace {
    file: FilePath,
    position: starling_text::Position,
    encoding: Encoding,
}

impl RequestedPlace {
    fn target(&self, lookup: &Lookup) -> Option<RenameTarget> {
        if Language::of(&self.file) != Language::Python {
            return None;
        }
        let tree = lookup.tree(&self.file).ok()?;
        let rope = Rope::from_str(tree.text());
        let at = offset_of(&rope, self.position, self.encoding);
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let (before, after) = tree.text().split_at_checked(at)?;
        let start = before.trim_end_matches(is_part).len();
        let end = at + after.find(|c| !is_part(c)).unwrap_or(after.len());
        let name = tree
            .text()
            .get(start..end)
            .filter(|name| !name.is_empty())?;
        let characters = position_of(&rope, start, Encoding::Utf32);
        let definitions = lookup.index().definition_at(&IndexPosition {
            file: self.file.clone(),
            line: characters.line + 1,
            column: characters.column + 1,
        });
        let definitions = definitions.ok().filter(|found| found.certain)?;
        let [definition] = definitions.found.as_slice() else {
            return None;
        };
        let symbol = match definition.symbol.base_name() == name {
            true => definition.symbol.clone(),
            // The definition of a variable is a line of its module.
            false => {
                let variable = SymbolPath::new(definition.symbol.file.clone(), name);
                let found = lookup.index().variables(&variable.to_string());
                found.first().map(|_| variable)?
            }
        };
        let place = |offset| lsp_position(&rope, offset, self.encoding);
        Some(RenameTarget {
            range: Range::new(place(start), place(end)),
            name: name.to_owned(),
            symbol: symbol.to_string(),
        })
    }
}

/// What is needed to write edits as the client reads them.
struct EditContext<'e> {
    edited: &'e BTreeMap<FilePath, EditedDocument>,
    settings: &'e ClientSettings,
}

impl EditContext<'_> {
    /// Returns the certain edits. If the client can ask the user to confirm edits, also returns those of
    /// places that may mean something else.
    fn workspace_edit(&self, edits: &RenameEdits) -> WorkspaceEdit {
        if !self.settings.versioned_edits {
            let files = self.edited.iter().filter_map(|(file, document)| {
                let edits = text_edits(document, edits.certain.get(file)?, self.settings.encoding);
                Some((document.uri.clone(), edits))
            });
            return WorkspaceEdit {
                changes: Some(files.collect::<HashMap<_, _>>()),
                ..WorkspaceEdit::default()
            };
        }
        let asks = self.settings.annotations && !edits.unsure.is_empty();
        let files = self.edited.iter().filter_map(|(file, document)| {
            let converted = |edits: Option<&Vec<Edit>>| {
                let edits = edits.map_or(&[][..], Vec::as_slice);
                text_edits(document, edits, self.settings.encoding).into_iter()
            };
            let certain = converted(edits.certain.get(file)).map(OneOf::Left);
            let unsure = converted(edits.unsure.get(file).filter(|_| asks)).map(|text_edit| {
                OneOf::Right(AnnotatedTextEdit {
                    text_edit,
                    annotation_id: UNSURE.to_owned(),
                })
            });
            let edits: Vec<_> = certain.chain(unsure).collect();
            let text_document = OptionalVersionedTextDocumentIdentifier {
                uri: document.uri.clone(),
                version: document.version.map(|version| version.0),
            };
            (!edits.is_empty()).then_some(TextDocumentEdit {
                text_document,
                edits,
            })
        });
        let annotation = ChangeAnnotation {
            label: "Not certain".to_owned(),
            needs_confirmation: Some(true),
            description: Some(UNSURE.to_owned()),
        };
        WorkspaceEdit {
            changes: None,
            document_changes: Some(DocumentChanges::Edits(files.collect())),
            change_annotations: asks.then(|| HashMap::from([(UNSURE.to_owned(), annotation)])),
        }
    }
}

fn text_edits(document: &EditedDocument, edits: &[Edit], encoding: Encoding) -> Vec<TextEdit> {
    let rope = Rope::from_str(&document.text);
    let place = |offset| lsp_position(&rope, offset, encoding);
    let one = |edit: &Edit| TextEdit {
        range: Range::new(place(edit.range.start), place(edit.range.end)),
        new_text: edit.insert.clone(),
    };
    edits.iter().map(one).collect()
}

fn lsp_position(text: &Rope, offset: usize, encoding: Encoding) -> Position {
    let position = position_of(text, offset, encoding);
    Position::new(position.line, position.column)
}
