//! The LSP request handlers. A handler never waits for a model or a person, and reads the disk only
//! to show a file that is not open.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionParams, CodeActionProviderCapability,
    CodeActionResponse, CodeLens, CodeLensOptions, CodeLensParams, DidChangeTextDocumentParams,
    DidChangeWatchedFilesParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams, ExecuteCommandOptions, ExecuteCommandParams, Hover, HoverContents,
    HoverParams, HoverProviderCapability, InitializeParams, InitializeResult, InitializedParams,
    MarkupContent, MarkupKind, OneOf, PrepareRenameResponse, RenameOptions, RenameParams,
    SaveOptions, ServerCapabilities, ServerInfo, TextDocumentPositionParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions,
    TextDocumentSyncSaveOptions, Url, WorkDoneProgressCancelParams, WorkDoneProgressOptions,
    WorkspaceEdit,
};
use tower_lsp::{Client, LanguageServer};

use super::actions::{self, actions};
use super::asks::Asks;
use super::client_context::ClientContext;
use super::commands::ServerCommand;
use super::documents::{DocumentMessage, DocumentStore, DocumentView};
use super::front_end::LspFrontEnd;
use super::lenses::{is_on_header, lenses};
use super::lost_messages::{LostMessage, warning};
use super::mentions::MentionCompleter;
use super::paths::{disk_path, file_of};
use super::progress::run_of_token;
use super::protocol::{
    COMMANDS, EditParams, EditedDocument, EventsParams, EventsReply, MentionsParams, MentionsReply,
    ModelsReply, ProposalParams, ProposalReply, StateReply,
};
use super::refresh;
use super::rename::RenameRequest;
use super::review_actions::ReviewAction;
use super::review_dialogs::ReviewDialogs;
use super::run_snapshots::{proposal_reply, review_actions_in, run_snapshots, waiting_at};
use super::session::{
    EditedText, ModelList, ReviewTarget, RunError, RunSession, Services, ShownReview, TextFormat,
    explain_with_diff,
};
use super::settings::ClientSettings;
use super::transport::Departure;
use starling_core::DocVersion;
use starling_platform::processes::is_running;
use starling_swarm::RunId;
use starling_syntax::{FilePath, SymbolPath};
use starling_text::Encoding;

/// How often the client's process is checked.
const PROCESS_INTERVAL: Duration = Duration::from_secs(3);

/// The server's side of the connection to one client.
pub struct Backend {
    client: Client,
    documents: DocumentStore,
    context: ClientContext,
    session: RunSession,
    asks: Asks,
    services: Services,
    compose: TaskComposer,
    front_end: OnceLock<Arc<LspFrontEnd>>,
    refreshes: OnceLock<AbortOnDropHandle<()>>,
    /// Held while a command answers a proposal, so that such commands are carried out in the order in
    /// which they arrived. It is held only until the answer is registered, never during a check.
    answers: tokio::sync::Mutex<()>,
    /// Fired when the client's process has ended without a request to shut down.
    orphaned: CancellationToken,
}

/// The services for the view in which the user writes a task: completion of mentions, and the list
/// of models.
pub struct TaskComposer {
    pub mentions: MentionCompleter,
    pub models: ModelList,
}

/// The parts of the server that have to be shut down after the client has disconnected.
pub struct ShutdownHandles {
    session: RunSession,
    asks: Asks,
    context: ClientContext,
}

impl ShutdownHandles {
    /// Returns what happens when the client sends `shutdown`: runs whose changes no person reviews take
    /// them back while the client still accepts edits.
    pub fn departure(&self) -> Departure {
        let silent = CancellationToken::new();
        let (session, ended) = (self.session.clone(), silent.clone());
        Departure {
            announced: CancellationToken::new(),
            prepare: Box::new(move || session.end_unreviewed(ended.clone())),
            silent,
        }
    }

    /// Ends all questions and runs, and removes the documents that were shown.
    pub async fn shutdown(self) {
        self.asks.shutdown();
        self.session.shutdown().await;
        self.context.window.remove_files();
    }
}

impl Backend {
    pub fn new(
        client: Client,
        documents: DocumentStore,
        services: Services,
        context: ClientContext,
    ) -> Backend {
        let compose = TaskComposer {
            mentions: MentionCompleter::new(services.clone(), documents.clone()),
            models: Arc::clone(&services.models),
        };
        Backend {
            client,
            asks: Asks::new(services.clone(), documents.clone(), context.clone()),
            session: RunSession::new(services.clone(), context.refresh.clone()),
            services,
            documents,
            context,
            compose,
            front_end: OnceLock::new(),
            refreshes: OnceLock::new(),
            answers: tokio::sync::Mutex::default(),
            orphaned: CancellationToken::new(),
        }
    }

    /// Returns the parts of the server to shut down when the client has disconnected.
    pub fn closing(&self) -> ShutdownHandles {
        ShutdownHandles {
            session: self.session.clone(),
            asks: self.asks.clone(),
            context: self.context.clone(),
        }
    }

    pub fn orphaned(&self) -> CancellationToken {
        self.orphaned.clone()
    }

    /// Watches the client's process. A process that is not visible from here, such as one in another
    /// container, is not watched.
    fn watch_process(&self, process: Option<u32>) {
        let Some(process) = process.filter(|process| is_running(*process)) else {
            return;
        };
        let (orphaned, closing) = (self.orphaned.clone(), self.session.closing());
        let gone = async move {
            while is_running(process) {
                tokio::time::sleep(PROCESS_INTERVAL).await;
            }
            orphaned.cancel();
        };
        tokio::spawn(async move { closing.run_until_cancelled(gone).await });
    }

    /// Returns the settings of the client; fails before `initialize`.
    fn settings(&self) -> std::result::Result<&ClientSettings, RunError> {
        let front_end = self.front_end.get().ok_or(RunError::NoRoot)?;
        Ok(front_end.settings())
    }

    fn dialogs(&self) -> std::result::Result<ReviewDialogs, RunError> {
        Ok(ReviewDialogs {
            session: self.session.clone(),
            front_end: Arc::clone(self.front_end.get().ok_or(RunError::NoRoot)?),
        })
    }

    fn encoding(&self) -> Encoding {
        self.settings()
            .map_or(Encoding::Utf16, |settings| settings.encoding)
    }

    /// Handles `window/workDoneProgress/cancel`, which tower-lsp does not support.
    pub async fn cancel_progress(&self, params: WorkDoneProgressCancelParams) {
        let cancelled = run_of_token(&params.token).map(|run| self.session.cancel(&run, false));
        if !matches!(cancelled, Some(Ok(()))) {
            tracing::info!(token = ?params.token, "no run has this progress token");
        }
    }

    /// Handles a message that could not be read: tells the user which documents are in doubt now.
    pub async fn message_lost(&self, message: LostMessage) {
        let doubt = self.documents.message_lost(message.uri);
        let window = Arc::clone(&self.context.window);
        tokio::spawn(async move {
            if let Some(warning) = warning(&doubt.await.unwrap_or_default()) {
                window.warn(&warning).await;
            }
        });
    }

    /// Handles `starling/state`.
    pub async fn state(&self) -> Result<StateReply> {
        if self.front_end.get().is_some() {
            self.session.restored().await;
        }
        Ok(StateReply {
            runs: run_snapshots(&self.session),
            asks: self.asks.state(),
        })
    }

    /// Handles `starling/events`.
    pub async fn events(&self, params: EventsParams) -> Result<EventsReply> {
        let events = self.session.events(&params.run, params.after);
        let events = events.map_err(refusal)?;
        Ok(EventsReply { events })
    }

    /// Handles `starling/proposal`.
    pub async fn proposal(&self, params: ProposalParams) -> Result<ProposalReply> {
        let reply = proposal_reply(&self.session, &params, self.encoding());
        reply.await.map_err(refusal)
    }

    /// Handles `starling/mentions`.
    pub async fn mentions(&self, params: MentionsParams) -> Result<MentionsReply> {
        let root = self.root()?;
        let found = self.compose.mentions.complete(&root, &params.mention);
        found.await.map_err(|error| failure(&error))
    }

    /// Handles `starling/models`.
    pub async fn models(&self) -> Result<ModelsReply> {
        let (root, models) = (self.root()?, Arc::clone(&self.compose.models));
        let listed = tokio::task::spawn_blocking(move || models(&root)).await;
        let listed = listed
            .map_err(anyhow::Error::from)
            .and_then(|listed| listed);
        listed.map_err(|error| failure(&error))
    }

    fn root(&self) -> Result<std::path::PathBuf> {
        let root = self.session.root();
        root.ok_or_else(|| refusal(RunError::NoRoot))
    }

    /// Returns the project file that a URI names, with the client's settings.
    fn workspace_file(&self, uri: &Url) -> Option<(&ClientSettings, FilePath)> {
        let settings = self.settings().ok()?;
        let file = file_of(settings.root.as_deref()?, uri)?;
        Some((settings, file))
    }

    /// Returns a request to rename the name at a position; `None` if its file is not in the project, or
    /// is not to be shown.
    fn rename_request(
        &self,
        place: &TextDocumentPositionParams,
    ) -> Option<(&ClientSettings, RenameRequest)> {
        let (settings, file) = self.workspace_file(&place.text_document.uri)?;
        let front_end = self.front_end.get()?;
        if front_end.is_withheld(&file) {
            return None;
        }
        let request = RenameRequest::new(&self.documents, settings, file, place.position);
        Some((settings, request))
    }

    async fn document_view(&self, uri: &Url) -> Option<DocumentView> {
        self.documents.view(disk_path(uri)?).await.ok()?
    }

    async fn execute(
        &self,
        command: ServerCommand,
    ) -> std::result::Result<Option<Value>, RunError> {
        let nothing = |()| None;
        let _turn = match command.answers_proposal() {
            true => Some(self.answers.lock().await),
            false => None,
        };
        match command {
            ServerCommand::Run(params) => {
                let reply = self.session.start(*params)?;
                Ok(Some(serde_json::json!(reply)))
            }
            ServerCommand::Answer {
                run,
                review,
                shown,
                verdict,
            } => {
                let answered = self.session.answer_shown(&run, &review, &shown, verdict);
                self.shown_again(&run, &review, answered).map(nothing)
            }
            ServerCommand::Edit(params) => self.edit(*params).await.map(nothing),
            ServerCommand::AcceptAll(run) => {
                let reply = self.session.accept_all(run.as_ref()).await?;
                Ok(Some(serde_json::json!(reply)))
            }
            ServerCommand::AskReason { run, review, shown } => {
                let asked = self
                    .dialogs()?
                    .ask_reason(run.clone(), review.clone(), &shown);
                self.shown_again(&run, &review, asked).map(nothing)
            }
            ServerCommand::Ask(params) => {
                let reply = self.asks.start(*params, self.settings()?)?;
                self.session.warn_ignored_settings();
                Ok(Some(serde_json::json!(reply)))
            }
            ServerCommand::CancelAsk(ask) => self.asks.cancel(&ask).map(nothing),
            ServerCommand::Review(params) => self.dialogs()?.review(params).map(nothing),
            ServerCommand::Diff(params) => self.dialogs()?.diff(&params).map(nothing),
            ServerCommand::Why(params) => self.dialogs()?.why(&params).map(nothing),
            ServerCommand::Steer { run, to, text } => {
                self.session.steer(&run, to, text).map(nothing)
            }
            ServerCommand::Cancel { run, keep_reviews } => {
                self.session.cancel(&run, keep_reviews).map(nothing)
            }
            ServerCommand::Forget => {
                self.session.forget();
                Ok(None)
            }
            ServerCommand::Retry(params) => {
                let reply = self.session.retry(&params)?;
                Ok(Some(serde_json::json!(reply)))
            }
            ServerCommand::Undo { run, proposal } => self.session.undo(&run, proposal).map(nothing),
        }
    }

    /// If an answer was for an earlier version of a proposal, shows the version that waits now, in a
    /// client without views of its own.
    fn shown_again(
        &self,
        run: &RunId,
        review: &ReviewTarget,
        answered: std::result::Result<(), RunError>,
    ) -> std::result::Result<(), RunError> {
        if let (Err(error @ RunError::Replaced { .. }), ReviewTarget::Proposal(proposal)) =
            (&answered, review)
            && !self.settings()?.has_plugin()
        {
            let params = ProposalParams {
                run: run.clone(),
                proposal: *proposal,
            };
            // It may not wait any more by now.
            let _ = self.dialogs()?.review_again(params, error);
        }
        answered
    }

    /// Replaces a waiting proposal by the version that the user edited.
    async fn edit(&self, params: EditParams) -> std::result::Result<(), RunError> {
        let root = self.session.root();
        let edited = |document: EditedDocument| {
            let EditedDocument { uri, before, text } = document;
            let file = root.as_deref().and_then(|root| file_of(root, &uri));
            EditedText {
                file: file.ok_or_else(|| format!("{uri} lies outside of the project")),
                before,
                text,
            }
        };
        let proposal = ProposalParams {
            run: params.run,
            proposal: params.proposal,
        };
        let shown = params
            .version
            .map_or(ShownReview::Unknown, ShownReview::Version);
        let files = params.files.into_iter().map(edited).collect();
        self.session.edit(&proposal, &shown, files).await
    }

    fn review_actions(&self, file: &FilePath, settings: &ClientSettings) -> Vec<ReviewAction> {
        review_actions_in(&self.session, settings.has_plugin(), file)
    }
}

impl Backend {
    /// Returns the waiting proposals of the symbols whose headers (the lines from the decorators to
    /// the name) include a line.
    fn hover_at(
        &self,
        line: u32,
        file: &FilePath,
        document: &DocumentView,
        settings: &ClientSettings,
    ) -> Option<Hover> {
        let heads = document
            .markers
            .iter()
            .filter(|marker| is_on_header(line, marker, &document.text));
        let symbols = heads.map(|marker| SymbolPath::new(file.clone(), marker.name.clone()));
        let (format, kind) = match settings.markdown {
            true => (TextFormat::Markdown, MarkupKind::Markdown),
            false => (TextFormat::Plain, MarkupKind::PlainText),
        };
        let texts: Vec<String> = symbols
            .flat_map(|symbol| waiting_at(&self.session, &symbol))
            .map(|(id, proposal)| explain_with_diff(id, &proposal, format))
            .collect();
        (!texts.is_empty()).then(|| Hover {
            contents: HoverContents::Markup(MarkupContent {
                kind,
                value: texts.join("\n---\n"),
            }),
            range: None,
        })
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let settings = ClientSettings::negotiate(&params);
        self.watch_process(params.process_id);
        let capabilities = capabilities(&settings);
        let front_end = Arc::new(LspFrontEnd::new(
            self.client.clone(),
            self.documents.clone(),
            settings,
            self.context.clone(),
            self.session.closing(),
        ));
        if self.front_end.set(Arc::clone(&front_end)).is_err() {
            return Err(Error::invalid_request());
        }
        self.session.connect(front_end);
        Ok(InitializeResult {
            capabilities,
            server_info: Some(ServerInfo {
                name: "starling".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        })
    }

    async fn initialized(&self, _params: InitializedParams) {
        let Some(front_end) = self.front_end.get() else {
            return;
        };
        self.session.restore();
        self.session.warn_ignored_settings();
        self.refreshes.get_or_init(|| {
            let refreshes = refresh::refresh_client(
                Arc::clone(front_end),
                self.documents.changes(),
                self.session.clone(),
                self.asks.clone(),
            );
            AbortOnDropHandle::new(tokio::spawn(refreshes))
        });
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        let uri = params.text_document.uri;
        let Some((settings, file)) = self.workspace_file(&uri) else {
            return Ok(None);
        };
        let review_actions = self.review_actions(&file, settings);
        if review_actions.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let document = self.document_view(&uri).await;
        Ok(document.map(|document| lenses(&review_actions, &document, settings)))
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        let uri = &params.text_document.uri;
        let Some((settings, file)) = self.workspace_file(uri) else {
            return Ok(None);
        };
        let front_end = self.front_end.get();
        if front_end.is_some_and(|front_end| front_end.is_withheld(&file)) {
            return Ok(Some(Vec::new()));
        }
        let review_actions = self.review_actions(&file, settings);
        let document = self.document_view(uri).await;
        let retries = self.dialogs().map(|dialogs| dialogs.retry_commands());
        let retries = retries.unwrap_or_default();
        let all = |document: DocumentView| {
            actions(
                &params,
                &file,
                (&review_actions, retries),
                &document,
                settings,
            )
        };
        Ok(document.map(all))
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let place = params.text_document_position_params;
        let uri = &place.text_document.uri;
        let Some((settings, file)) = self.workspace_file(uri) else {
            return Ok(None);
        };
        let review_actions = self.review_actions(&file, settings);
        if review_actions
            .iter()
            .all(|action| action.proposal().is_none())
        {
            return Ok(None);
        }
        let document = self.document_view(uri).await;
        Ok(document
            .and_then(|document| self.hover_at(place.position.line, &file, &document, settings)))
    }

    async fn prepare_rename(
        &self,
        params: TextDocumentPositionParams,
    ) -> Result<Option<PrepareRenameResponse>> {
        let Some((_, request)) = self.rename_request(&params) else {
            return Ok(None);
        };
        let target = request
            .target(&self.services)
            .await
            .map_err(failed_rename)?;
        Ok(
            target.map(|target| PrepareRenameResponse::RangeWithPlaceholder {
                range: target.range,
                placeholder: target.name,
            }),
        )
    }

    async fn rename(&self, params: RenameParams) -> Result<Option<WorkspaceEdit>> {
        let place = &params.text_document_position;
        let Some((settings, request)) = self.rename_request(place) else {
            return Ok(None);
        };
        let to = params.new_name.clone();
        let renamed = request.rename(to, &self.services, &self.documents, settings);
        let renamed = renamed.await.map_err(failed_rename)?;
        if !renamed.doubts.is_empty() {
            let (to, doubts) = (&params.new_name, renamed.doubts.join("; "));
            let text = format!("Starling: the rename to `{to}` may be incomplete: {doubts}");
            self.context.window.warn(&text).await;
        }
        Ok(Some(renamed.edit))
    }

    /// Ends all runs and questions. The next server offers the waiting reviews again. The transport
    /// has recorded the shutdown before this handler is called.
    async fn shutdown(&self) -> Result<()> {
        self.asks.shutdown();
        self.session.stop_all();
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        self.documents.send(DocumentMessage::Opened {
            uri: document.uri,
            version: DocVersion(document.version),
            text: document.text,
        });
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        self.documents.send(DocumentMessage::Changed {
            uri: params.text_document.uri,
            version: DocVersion(params.text_document.version),
            changes: params.content_changes,
            encoding: self.encoding(),
        });
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.documents.send(DocumentMessage::Closed {
            uri: params.text_document.uri,
        });
    }

    /// The server uses the text of the buffer, whether it is saved or not. But settings are read from
    /// the disk.
    async fn did_save(&self, _params: DidSaveTextDocumentParams) {
        self.session.documents_saved();
        self.session.warn_ignored_settings();
    }

    /// Checks again whether waiting proposals conflict with their files, after files changed on
    /// disk that are not open.
    async fn did_change_watched_files(&self, _params: DidChangeWatchedFilesParams) {
        self.session.refresh().notify();
        self.session.warn_ignored_settings();
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        let command = ServerCommand::parse(&params.command, params.arguments)
            .map_err(|error| Error::invalid_params(error.to_string()))?;
        self.execute(command).await.map_err(refusal)
    }
}

fn refusal(error: RunError) -> Error {
    failure(&error.into())
}

fn failed_rename(why: String) -> Error {
    failure(&anyhow::Error::msg(why))
}

fn failure(error: &anyhow::Error) -> Error {
    Error {
        code: ErrorCode::ServerError(-32000),
        message: format!("{error:#}").into(),
        data: None,
    }
}

fn capabilities(settings: &ClientSettings) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(settings.encoding_kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions {
                    include_text: Some(false),
                })),
                ..TextDocumentSyncOptions::default()
            },
        )),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: COMMANDS.map(str::to_owned).to_vec(),
            ..ExecuteCommandOptions::default()
        }),
        code_lens_provider: Some(CodeLensOptions {
            resolve_provider: Some(false),
        }),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![
                CodeActionKind::QUICKFIX,
                CodeActionKind::REFACTOR,
                CodeActionKind::REFACTOR_REWRITE,
                actions::KIND,
            ]),
            ..CodeActionOptions::default()
        })),
        rename_provider: Some(match settings.prepares_renames {
            true => OneOf::Right(RenameOptions {
                prepare_provider: Some(true),
                work_done_progress_options: WorkDoneProgressOptions::default(),
            }),
            false => OneOf::Left(true),
        }),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        ..ServerCapabilities::default()
    }
}
