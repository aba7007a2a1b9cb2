//! Renames that the user asks the editor for (`textDocument/rename`). The edits come from the index,
//! without a model, and the editor makes them itself.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
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

use super::documents::DocumentStore;
use super::session::{Services, overlay};
use super::settings::ClientSettings;
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
        let find = move |request: &RequestedPlace, lookup: &Lookup| {
            let target = request.target(lookup);
            let target = target.ok_or("there is no symbol of the project here")?;
            let edits = rename_edits(lookup, &target.symbol, &to)?;
            let files = edits.certain.keys().chain(edits.unsure.keys());
            let text = |file: &FilePath| {
                let tree = lookup.tree(file)?;
                Ok((file.clone(), Arc::clone(tree.text())))
            };
            let texts = files
                .map(text)
                .collect::<Result<BTreeMap<_, _>, String>>()?;
            Ok((edits, texts))
        };
        let (edits, texts) = self.with_index(services, find).await?;
        let mut versions = BTreeMap::new();
        for (file, text) in &texts {
            let current = documents.read(root.join(file.as_str())).await;
            let current = current.map_err(|error| error.to_string())?;
            if let Some(current) = current {
                if current.text != *text {
                    return Err(format!("{file} changed meanwhile: rename again"));
                }
                versions.insert(file.clone(), current.version);
            }
        }
        let context = EditContext {
            root: &root,
            texts: &texts,
            versions: &versions,
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
    root: &'e Path,
    texts: &'e BTreeMap<FilePath, Arc<str>>,
    /// The versions of the open documents.
    versions: &'e BTreeMap<FilePath, Option<DocVersion>>,
    settings: &'e ClientSettings,
}

impl EditContext<'_> {
    /// Returns the certain edits. If the client can ask the user to confirm edits, also returns those of
    /// places that may mean something else.
    fn workspace_edit(&self, edits: &RenameEdits) -> WorkspaceEdit {
        if !self.settings.versioned_edits {
            let files = edits
                .certain
                .iter()
                .filter_map(|(file, edits)| Some((self.uri(file)?, self.text_edits(file, edits))));
            return WorkspaceEdit {
                changes: Some(files.collect::<HashMap<_, _>>()),
                ..WorkspaceEdit::default()
            };
        }
        let asks = self.settings.annotations && !edits.unsure.is_empty();
        let files = self.texts.keys().filter_map(|file| {
            let certain = edits.certain.get(file).map_or(&[][..], Vec::as_slice);
            let unsure = edits.unsure.get(file).filter(|_| asks);
            let certain = self.text_edits(file, certain).into_iter().map(OneOf::Left);
            let unsure = self.text_edits(file, unsure.map_or(&[][..], Vec::as_slice));
            let unsure = unsure.into_iter().map(|text_edit| {
                OneOf::Right(AnnotatedTextEdit {
                    text_edit,
                    annotation_id: UNSURE.to_owned(),
                })
            });
            let edits: Vec<_> = certain.chain(unsure).collect();
            let version = self.versions.get(file).copied().flatten();
            let text_document = OptionalVersionedTextDocumentIdentifier {
                uri: self.uri(file)?,
                version: version.map(|version| version.0),
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

    fn uri(&self, file: &FilePath) -> Option<Url> {
        Url::from_file_path(self.root.join(file.as_str())).ok()
    }

    fn text_edits(&self, file: &FilePath, edits: &[Edit]) -> Vec<TextEdit> {
        let text = self.texts.get(file).map_or("", |text| text);
        let rope = Rope::from_str(text);
        let place = |offset| lsp_position(&rope, offset, self.settings.encoding);
        let one = |edit: &Edit| TextEdit {
            range: Range::new(place(edit.range.start), place(edit.range.end)),
            new_text: edit.insert.clone(),
        };
        edits.iter().map(one).collect()
    }
}

fn lsp_position(text: &Rope, offset: usize, encoding: Encoding) -> Position {
    let position = position_of(text, offset, encoding);
    Position::new(position.line, position.column)
}
