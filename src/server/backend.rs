//! The handlers. The first statement of each posts or answers; none waits for a model, a person or
//! the disk.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp::lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams, ExecuteCommandOptions, ExecuteCommandParams, InitializeParams,
    InitializeResult, SaveOptions, ServerCapabilities, ServerInfo, TextDocumentSyncCapability,
    TextDocumentSyncKind, TextDocumentSyncOptions, TextDocumentSyncSaveOptions,
    WorkDoneProgressCancelParams,
};
use tower_lsp::{Client, LanguageServer};

use super::commands::Command;
use super::documents::{Desk, Post};
use super::editor::ClientEditor;
use super::follow::run_of;
use super::protocol::COMMANDS;
use super::runs::{RunError, Runs};
use super::settings::Settings;
use crate::ports::DocVersion;
use crate::text::Encoding;

/// One client's session.
pub struct Backend {
    client: Client,
    desk: Desk,
    runs: Runs,
    agreed: OnceLock<Agreed>,
}

/// What is known after `initialize`.
struct Agreed {
    settings: Settings,
    editor: Arc<ClientEditor>,
}

impl Backend {
    pub fn new(client: Client, desk: Desk, runs: Runs) -> Backend {
        Backend {
            client,
            desk,
            runs,
            agreed: OnceLock::new(),
        }
    }

    pub fn runs(&self) -> Runs {
        self.runs.clone()
    }

    fn encoding(&self) -> Encoding {
        self.agreed
            .get()
            .map_or(Encoding::Utf16, |agreed| agreed.settings.encoding)
    }

    /// `window/workDoneProgress/cancel`, which tower-lsp does not know.
    pub async fn cancel_progress(&self, params: WorkDoneProgressCancelParams) {
        let cancelled = run_of(&params.token).map(|run| self.runs.cancel(&run));
        if !matches!(cancelled, Some(Ok(()))) {
            tracing::info!(token = ?params.token, "no run has this progress token");
        }
    }

    fn execute(&self, command: Command) -> std::result::Result<Option<Value>, RunError> {
        let nothing = |()| None;
        match command {
            Command::Run(params) => {
                let agreed = self.agreed.get().ok_or(RunError::NoRoot)?;
                let reply = self.runs.begin(*params, &agreed.settings, &agreed.editor)?;
                Ok(Some(serde_json::json!(reply)))
            }
            Command::Answer {
                run,
                review,
                verdict,
            } => self.runs.answer(&run, &review, verdict).map(nothing),
            Command::Steer { run, to, text } => self.runs.steer(&run, to, text).map(nothing),
            Command::Cancel(run) => self.runs.cancel(&run).map(nothing),
            Command::Undo { run, proposal } => self.runs.undo(&run, proposal).map(nothing),
        }
    }
}

#[tower_lsp::async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let settings = Settings::negotiate(&params);
        let capabilities = capabilities(&settings);
        let editor = ClientEditor::new(self.client.clone(), self.desk.clone(), &settings);
        let agreed = Agreed {
            settings,
            editor: Arc::new(editor),
        };
        if self.agreed.set(agreed).is_err() {
            return Err(Error::invalid_request());
        }
        Ok(InitializeResult {
            capabilities,
            server_info: Some(ServerInfo {
                name: "starling".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        })
    }

    /// Noted by the gate in front.
    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        self.desk.post(Post::Opened {
            uri: document.uri,
            version: DocVersion(document.version),
            text: document.text,
        });
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        self.desk.post(Post::Changed {
            uri: params.text_document.uri,
            version: DocVersion(params.text_document.version),
            changes: params.content_changes,
            encoding: self.encoding(),
        });
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.desk.post(Post::Closed {
            uri: params.text_document.uri,
        });
    }

    /// The buffer is what counts, saved or not.
    async fn did_save(&self, _params: DidSaveTextDocumentParams) {}

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        let command = Command::parse(&params.command, params.arguments)
            .map_err(|error| Error::invalid_params(error.to_string()))?;
        self.execute(command).map_err(|error| Error {
            code: ErrorCode::ServerError(-32000),
            message: error.to_string().into(),
            data: None,
        })
    }
}

fn capabilities(settings: &Settings) -> ServerCapabilities {
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
        ..ServerCapabilities::default()
    }
}
