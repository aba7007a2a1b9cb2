//! Implements the `FrontEnd` of a session for an LSP client.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tower_lsp::Client;

use super::bridge::with_editor_providers;
use super::client_context::ClientContext;
use super::documents::DocumentStore;
use super::editor::ClientEditor;
use super::outgoing::ClientPlugin;
use super::progress;
use super::protocol::{
    DownloadNotification, DownloadParams, EventNotification, EventParams, IntentNotification,
    IntentParams, ProposalParams, RemedyNotification, RemedyParams, UndoneNotification,
    UndoneParams,
};
use super::review_actions::retry_titles;
use super::session::{CurrentFile, FrontEnd, OpenBuffers, disk_text, path_of};
use super::settings::ClientSettings;
use super::window::ClientWindow;
use starling_core::{Editor, LanguageService};
use starling_swarm::{Cursor, RunId};
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::PathPolicy;

/// An LSP client as the front end of a session.
pub struct LspFrontEnd {
    client: Client,
    documents: DocumentStore,
    settings: ClientSettings,
    editor: Arc<ClientEditor>,
    context: ClientContext,
}

impl LspFrontEnd {
    pub fn new(
        client: Client,
        documents: DocumentStore,
        settings: ClientSettings,
        context: ClientContext,
        closing: CancellationToken,
    ) -> LspFrontEnd {
        let editor = ClientEditor::new(client.clone(), documents.clone(), &settings, closing);
        context
            .window
            .set_negotiated(settings.documents, settings.has_plugin());
        context.plugin.set_negotiated(settings.has_plugin());
        LspFrontEnd {
            editor: Arc::new(editor),
            client,
            documents,
            settings,
            context,
        }
    }

    pub fn settings(&self) -> &ClientSettings {
        &self.settings
    }

    /// Returns whether the path policy forbids agents to read a file. No actions are offered for
    /// such a file.
    pub fn is_withheld(&self, file: &FilePath) -> bool {
        self.editor.is_withheld(file)
    }

    pub fn window(&self) -> &ClientWindow {
        &self.context.window
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn plugin(&self) -> &ClientPlugin {
        &self.context.plugin
    }

    /// Shows a message to the user of a client without a plugin. Clients with a plugin receive a
    /// `starling/*` notification instead.
    async fn inform_without_plugin(&self, message: &str) {
        if !self.settings.has_plugin() {
            self.window().inform(message).await;
        }
    }
}

#[async_trait]
impl FrontEnd for LspFrontEnd {
    fn root(&self) -> Option<PathBuf> {
        self.settings.root.clone()
    }

    fn editor(&self) -> Arc<dyn Editor> {
        Arc::clone(&self.editor) as Arc<dyn Editor>
    }

    fn buffers(&self) -> oneshot::Receiver<OpenBuffers> {
        self.documents.read_all()
    }

    fn applies_edits(&self) -> bool {
        self.settings.versioned_edits
    }

    fn language_service(&self, own: Arc<dyn LanguageService>) -> Arc<dyn LanguageService> {
        with_editor_providers(own, &self.client, &self.documents, &self.settings)
    }

    async fn current_file(&self, file: &FilePath) -> Option<CurrentFile> {
        let root = self.settings.root.as_deref()?;
        let path = path_of(root, file)?;
        PathPolicy::of(root).may_read(file).ok()?;
        // If the file is open under the name of a link to it, that buffer has its current text.
        let path = self.documents.name_of(path).await.ok()?;
        let open = self.documents.read(path.clone()).await.ok()?;
        Some(match open {
            Some(current) => CurrentFile {
                path,
                version: current.version.map(|version| version.0),
                text: Some(current.text),
            },
            None => CurrentFile {
                text: disk_text(path.clone(), None).await.ok().map(Into::into),
                path,
                version: None,
            },
        })
    }

    async fn open_text(&self, file: &FilePath) -> Option<Arc<str>> {
        let path = path_of(self.settings.root.as_deref()?, file)?;
        let path = self.documents.name_of(path).await.ok()?;
        let open = self.documents.read(path).await.ok()?;
        open.map(|current| current.text)
    }

    async fn show_progress(&self, run: &RunId, title: String, events: Cursor) {
        if self.settings.progress {
            progress::show_progress(events, run, title, &self.client).await;
        }
    }

    async fn event(&self, event: EventParams) {
        self.plugin().notify::<EventNotification>(event).await;
    }

    async fn intent_asked(&self, intent: IntentParams) {
        if self.settings.has_plugin() {
            self.plugin().notify::<IntentNotification>(intent).await;
        } else {
            let text = format!(
                "Starling: {} asks for approval before it begins; answer with a code action there",
                intent.view.symbol
            );
            self.window().inform(&text).await;
        }
    }

    /// A client with lenses or a plugin shows the review itself. Others get a message, never a question:
    /// in some editors a question takes the keyboard focus from the user.
    async fn review_asked(&self, params: ProposalParams, symbol: SymbolPath) {
        if self.settings.is_plain() {
            let proposal = params.proposal;
            let text = format!("Starling {proposal} waits at {symbol}: code actions decide");
            self.window().inform(&text).await;
        }
    }

    async fn download(&self, progress: DownloadParams) {
        self.plugin().notify::<DownloadNotification>(progress).await;
    }

    async fn undone(&self, report: UndoneParams, summary: String) {
        self.inform_without_plugin(&summary).await;
        self.plugin().notify::<UndoneNotification>(report).await;
    }

    async fn remedy(&self, remedy: RemedyParams) {
        let titles: Vec<String> = retry_titles(&remedy.task, Some(&remedy.remedy))
            .into_iter()
            .map(|(title, _)| format!("`{title}`"))
            .collect();
        let text = format!(
            "Starling: {}. The task is kept: code action {}",
            remedy.message,
            titles.join(" or ")
        );
        self.inform_without_plugin(&text).await;
        self.plugin().notify::<RemedyNotification>(remedy).await;
    }

    async fn run_ended(&self, headline: String) {
        self.inform_without_plugin(&headline).await;
    }

    async fn inform(&self, message: String) {
        self.window().inform(&message).await;
    }

    fn shows_buttons(&self) -> bool {
        self.settings.notices
    }

    async fn choose(
        &self,
        message: String,
        buttons: &'static [&'static str],
    ) -> Option<&'static str> {
        self.window().choose(&message, buttons).await
    }

    async fn warn(&self, message: String) {
        self.window().warn(&message).await;
    }

    async fn warn_ignored_settings(&self, ignored: Vec<String>) {
        self.window().warn_ignored_settings(&ignored).await;
    }
}
