//! A language service that uses the editor's own language providers. It sends them requests through
//! the client's plugin, but only for texts that are equal to the editor's. If the providers cannot
//! answer, it uses Starling's own language servers.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ropey::Rope;
use serde_json::Value;
use tower_lsp::Client;
use tower_lsp::lsp_types::request::Request;
use tower_lsp::lsp_types::{Position, TextDocumentIdentifier, Url};

use super::documents::DocumentStore;
use super::outgoing::{ClientRequestError, send_request};
use super::protocol::{
    BridgeDefinition, BridgeDiagnostics, BridgeImplementation, BridgeParams, BridgeReferences,
    EditorProvider,
};
use super::session::{disk_text, path_of};
use super::settings::ClientSettings;
use starling_core::{
    Diagnostics, DocVersion, Effort, LanguageService, LspAnswer, NameLocation, Problem, Relation,
    TextRequest,
};
use starling_lang::{problems_of, spots_of};
use starling_syntax::FilePath;
use starling_text::position_of;
use starling_workspace::PathPolicy;

/// How long the editor may take to answer. After that, Starling's own language servers are used.
const DEADLINE: Duration = Duration::from_secs(2);
/// The name that messages use for the editor's providers.
const TOOL: &str = "the editor";

/// Returns a language service that asks the editor's providers before Starling's own servers.
pub fn with_editor_providers(
    own: Arc<dyn LanguageService>,
    client: &Client,
    documents: &DocumentStore,
    settings: &ClientSettings,
) -> Arc<dyn LanguageService> {
    match &settings.root {
        Some(root) if !settings.bridge.is_empty() => Arc::new(BridgedLanguageService {
            own,
            client: client.clone(),
            documents: documents.clone(),
            root: root.clone(),
            policy: PathPolicy::of(root),
            settings: settings.clone(),
        }),
        Some(_) | None => own,
    }
}

/// Sends requests to the editor's providers first, then to Starling's own language servers.
struct BridgedLanguageService {
    own: Arc<dyn LanguageService>,
    client: Client,
    documents: DocumentStore,
    root: PathBuf,
    policy: PathPolicy,
    settings: ClientSettings,
}

/// The text of a file in the editor.
struct EditorText {
    text: Option<String>,
    version: Option<DocVersion>,
}

impl BridgedLanguageService {
    fn has_provider(&self, provider: EditorProvider) -> bool {
        self.settings.bridge.contains(&provider)
    }

    /// Returns the path under which the editor has a file open.
    async fn path(&self, file: &FilePath) -> Option<PathBuf> {
        let path = path_of(&self.root, file)?;
        self.documents.name_of(path).await.ok()
    }

    async fn editor_text(&self, file: &FilePath) -> Option<EditorText> {
        let path = self.path(file).await?;
        self.policy.may_read(file).ok()?;
        let open = self.documents.read(path.clone()).await.ok()?;
        Some(match open {
            Some(current) => EditorText {
                text: Some(current.text.to_string()),
                version: current.version,
            },
            None => EditorText {
                text: disk_text(path, None).await.ok(),
                version: None,
            },
        })
    }

    /// Returns the request for the editor; `None` unless the editor's texts equal the texts in
    /// `request`.
    async fn question(&self, request: &TextRequest, at: Option<usize>) -> Option<BridgeParams> {
        let own = self.editor_text(&request.file).await?;
        if own.text.as_deref() != Some(&*request.text) {
            return None;
        }
        for (file, text) in &request.overlay {
            if self.editor_text(file).await?.text.as_deref() != text.as_deref() {
                return None;
            }
        }
        let position = at.map(|at| {
            let text = Rope::from_str(&request.text);
            let place = position_of(&text, at, self.settings.encoding);
            Position::new(place.line, place.column)
        });
        let uri = Url::from_file_path(self.path(&request.file).await?).ok()?;
        Some(BridgeParams {
            text_document: TextDocumentIdentifier { uri },
            version: own.version.map(|version| version.0),
            position,
        })
    }

    async fn send<R>(&self, params: BridgeParams) -> Option<Value>
    where
        R: Request<Params = BridgeParams, Result = Value> + 'static,
    {
        let answer: Result<Value, ClientRequestError> =
            send_request::<R>(&self.client, params, DEADLINE).await;
        match answer {
            Ok(answer) => (!answer.is_null()).then_some(answer),
            Err(error) => {
                tracing::debug!(method = R::METHOD, %error, "the editor does not tell");
                None
            }
        }
    }

    async fn editor_spots(
        &self,
        request: &TextRequest,
        at: usize,
        relation: Relation,
    ) -> Option<Vec<NameLocation>> {
        let provider = match relation {
            Relation::Definitions => EditorProvider::Definition,
            Relation::References => EditorProvider::References,
            Relation::Implementations => EditorProvider::Implementation,
        };
        if !self.has_provider(provider) {
            return None;
        }
        let params = self.question(request, Some(at)).await?;
        let answer = match relation {
            Relation::Definitions => self.send::<BridgeDefinition>(params).await,
            Relation::References => self.send::<BridgeReferences>(params).await,
            Relation::Implementations => self.send::<BridgeImplementation>(params).await,
        }?;
        let (asked, root, encoding) = (request.clone(), self.root.clone(), self.settings.encoding);
        let read = move || spots_of(answer, &asked, &root, encoding);
        match tokio::task::spawn_blocking(read).await.ok()? {
            // The definition itself is not a reference.
            Ok(mut spots) if relation == Relation::References => {
                spots.retain(|spot| spot.file != request.file || !spot.range.contains(at));
                Some(spots)
            }
            Ok(spots) => Some(spots),
            Err(error) => {
                tracing::info!(error, "the editor's reply cannot be parsed");
                None
            }
        }
    }

    async fn editor_problems(&self, request: &TextRequest) -> Option<Vec<Problem>> {
        if !self.has_provider(EditorProvider::Diagnostics) {
            return None;
        }
        let params = self.question(request, None).await?;
        let answer = self.send::<BridgeDiagnostics>(params).await?;
        let items = answer.as_array()?;
        problems_of(items, &request.file, &request.text, self.settings.encoding).ok()
    }
}

#[async_trait]
impl LanguageService for BridgedLanguageService {
    /// Uses the editor only if Starling's own servers fail: the texts before and after a proposal
    /// must be diagnosed by the same tool, and the editor has only the text before the proposal.
    async fn diagnostics(&self, request: TextRequest) -> Diagnostics {
        match self.own.diagnostics(request.clone()).await {
            Diagnostics::Unknown { reason } => match self.editor_problems(&request).await {
                Some(problems) => Diagnostics::Known {
                    tool: TOOL.to_owned(),
                    problems,
                },
                None => Diagnostics::Unknown { reason },
            },
            known @ Diagnostics::Known { .. } => known,
        }
    }

    fn has(&self, effort: Effort, file: &FilePath) -> bool {
        self.own.has(effort, file)
    }

    fn knows_names(&self, file: &FilePath) -> bool {
        let of_names = [
            EditorProvider::Definition,
            EditorProvider::References,
            EditorProvider::Implementation,
        ];
        of_names.into_iter().any(|one| self.has_provider(one)) || self.own.knows_names(file)
    }

    fn prepare(&self, request: TextRequest) {
        self.own.prepare(request);
    }

    async fn imports(&self, request: TextRequest, problem: &Problem) -> Vec<String> {
        self.own.imports(request, problem).await
    }

    async fn spots(
        &self,
        request: TextRequest,
        at: usize,
        relation: Relation,
    ) -> LspAnswer<Vec<NameLocation>> {
        match self.editor_spots(&request, at, relation).await {
            Some(value) => LspAnswer::Known {
                tool: TOOL.to_owned(),
                value,
            },
            None => self.own.spots(request, at, relation).await,
        }
    }

    async fn hover(&self, request: TextRequest, at: usize) -> LspAnswer<String> {
        self.own.hover(request, at).await
    }

    fn news(&self) -> Vec<String> {
        self.own.news()
    }
}
