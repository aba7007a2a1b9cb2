//! The headless editor: an LSP client of the shipped server, without a window.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tower_lsp::lsp_types::{
    ApplyWorkspaceEditParams, ApplyWorkspaceEditResponse, PositionEncodingKind, Url,
};

use super::buffers::{Buffers, ServerNotification};
use starling_rpc::{Connection, Incoming, Reply, RequestError};
use starling_server::protocol::{
    ACCEPT, AcceptParams, CANCEL, CancelParams, EDIT, EditParams, EditedDocument, EventParams,
    IntentParams, PROPOSAL, ProposalParams, ProposalReply, REJECT, RUN, RejectParams, RunParams,
    RunReply, STEER, SteerParams, TargetParams, UNDO, UndoParams, UndoneParams,
};
use starling_server::{ExitKind, Services, serve};
use starling_swarm::{ProposalId, RunId};
use starling_syntax::FilePath;
use starling_text::{ByteRange, Encoding};

/// Time limit for an undo and for the shutdown of the server.
const DEADLINE: Duration = Duration::from_secs(60);
const PIPE_BYTES: usize = 1 << 16;

/// Error of a headless editor operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadlessError {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("{0}")]
    Document(String),
    #[error("{}: not a folder with an absolute path", .0.display())]
    Root(PathBuf),
    #[error("the events of this run already have a receiver")]
    Followed,
    #[error("nothing was undone: {0}")]
    NotUndone(String),
    #[error("{what} took over {} s", DEADLINE.as_secs())]
    Late { what: &'static str },
}

/// A notification that the server sends about a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunNotification {
    Event(Box<EventParams>),
    /// An agent waits for approval of its intent.
    Intent(Box<IntentParams>),
}

/// A run that was started.
#[derive(Debug)]
pub struct HeadlessRun {
    pub id: RunId,
    pub trajectory: PathBuf,
    /// All notifications of the run, from the first event on.
    pub notes: mpsc::UnboundedReceiver<RunNotification>,
}

/// Where the notifications of a run are sent. Events can arrive before the reply that contains the
/// id of the run.
#[derive(Debug)]
struct RunRoute {
    notes: mpsc::UnboundedSender<RunNotification>,
    unclaimed: Option<mpsc::UnboundedReceiver<RunNotification>>,
    undone: Vec<oneshot::Sender<UndoneParams>>,
}

impl Default for RunRoute {
    fn default() -> RunRoute {
        let (notes, unclaimed) = mpsc::unbounded_channel();
        RunRoute {
            notes,
            unclaimed: Some(unclaimed),
            undone: Vec::new(),
        }
    }
}

/// The open documents and the runs of the editor.
#[derive(Debug)]
struct EditorState {
    buffers: Buffers,
    routes: HashMap<RunId, RunRoute>,
}

/// An editor without a window that runs its own server.
#[derive(Debug)]
pub struct HeadlessEditor {
    connection: Connection,
    state: Arc<Mutex<EditorState>>,
    server: JoinHandle<ExitKind>,
}

impl HeadlessEditor {
    /// Starts a server over a folder and initializes it.
    ///
    /// # Errors
    /// Fails if the folder cannot be used or the server does not answer.
    pub async fn start(services: Services, root: &Path) -> Result<Self, HeadlessError> {
        Self::start_as(services, root, capabilities(&[Encoding::Utf8])).await
    }

    /// Starts a server like [`HeadlessEditor::start`], with other client capabilities.
    ///
    /// # Errors
    /// See [`HeadlessEditor::start`].
    pub async fn start_as(
        services: Services,
        root: &Path,
        capabilities: Value,
    ) -> Result<Self, HeadlessError> {
        let uri =
            Url::from_directory_path(root).map_err(|()| HeadlessError::Root(root.to_owned()))?;
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let (input, output) = tokio::io::split(theirs);
        let server = tokio::spawn(serve(input, output, services));
        let state = Arc::new(Mutex::new(EditorState {
            buffers: Buffers::new(root.to_owned()),
            routes: HashMap::new(),
        }));
        let (input, output) = tokio::io::split(ours);
        let connection = Connection::open(input, output, {
            let state = Arc::clone(&state);
            move |connection, incoming, _| receive(connection, &mut lock(&state), incoming)
        });
        let hello = json!({
            "processId": std::process::id(),
            "clientInfo": {"name": "starling headless", "version": env!("CARGO_PKG_VERSION")},
            "rootUri": uri,
            "workspaceFolders": [{"uri": uri, "name": "workspace"}],
            "capabilities": capabilities,
        });
        let answer = connection.request("initialize", hello).await?;
        lock(&state).buffers.encoding = encoding_of(&answer);
        connection.notify("initialized", json!({}));
        Ok(HeadlessEditor {
            connection,
            state,
            server,
        })
    }

    /// Starts a run.
    ///
    /// # Errors
    /// Fails if the server refuses the run.
    pub async fn run(&self, params: RunParams) -> Result<HeadlessRun, HeadlessError> {
        self.follow(read(RUN, self.execute(RUN, params).await?)?)
    }

    /// Subscribes to the run that a reply to `starling.run` names.
    ///
    /// # Errors
    /// Fails if the events of the run already have a receiver.
    pub fn follow(&self, reply: RunReply) -> Result<HeadlessRun, HeadlessError> {
        let mut state = lock(&self.state);
        let route = state.routes.entry(reply.run.clone()).or_default();
        let notes = route.unclaimed.take().ok_or(HeadlessError::Followed)?;
        Ok(HeadlessRun {
            id: reply.run,
            trajectory: reply.trajectory,
            notes,
        })
    }

    /// Accepts a proposal or an intent.
    ///
    /// # Errors
    /// Fails if the target is not waiting for an answer.
    pub async fn accept(&self, run: &RunId, target: TargetParams) -> Result<(), HeadlessError> {
        let run = run.clone();
        self.tell(ACCEPT, AcceptParams { run, target }).await
    }

    /// Rejects a proposal or an intent.
    ///
    /// # Errors
    /// Fails if the target is not waiting for an answer.
    pub async fn reject(
        &self,
        run: &RunId,
        target: TargetParams,
        reason: &str,
    ) -> Result<(), HeadlessError> {
        let params = RejectParams {
            run: run.clone(),
            target,
            reason: Some(reason.to_owned()),
        };
        self.tell(REJECT, params).await
    }

    /// Steers a proposal, an agent, or all agents.
    ///
    /// # Errors
    /// Fails if the run has ended or the proposal is not waiting for an answer.
    pub async fn steer(
        &self,
        run: &RunId,
        target: TargetParams,
        text: &str,
    ) -> Result<(), HeadlessError> {
        let params = SteerParams {
            run: run.clone(),
            target,
            text: text.to_owned(),
        };
        self.tell(STEER, params).await
    }

    /// Requests a proposal, with the current and the proposed text of its files.
    ///
    /// # Errors
    /// Fails if the proposal does not exist.
    pub async fn proposal(
        &self,
        run: &RunId,
        proposal: ProposalId,
    ) -> Result<ProposalReply, HeadlessError> {
        let run = run.clone();
        let params = json!(ProposalParams { run, proposal });
        let reply = self.connection.request(PROPOSAL, params).await?;
        serde_json::from_value(reply).map_err(|error| HeadlessError::Document(error.to_string()))
    }

    /// Sends the user's version of a proposal that waits for review. `version` is the version that
    /// the user edited, as in [`ProposalReply`].
    ///
    /// # Errors
    /// Fails if the proposal is not waiting or the server rejects the user's version.
    pub async fn edit_proposal(
        &self,
        run: &RunId,
        (proposal, version): (ProposalId, Option<u64>),
        files: Vec<EditedDocument>,
    ) -> Result<(), HeadlessError> {
        let run = run.clone();
        let params = EditParams {
            run,
            proposal,
            version,
            files,
        };
        self.tell(EDIT, params).await
    }

    /// Cancels a run.
    ///
    /// # Errors
    /// Fails if the run does not exist.
    pub async fn cancel(&self, run: &RunId) -> Result<(), HeadlessError> {
        let params = CancelParams {
            run: Some(run.clone()),
            ask: None,
            keep_reviews: false,
        };
        self.tell(CANCEL, params).await
    }

    /// Cancels a run. Its proposals that wait for review can still be reviewed later.
    ///
    /// # Errors
    /// Fails if the run does not exist.
    pub async fn cancel_keeping_reviews(&self, run: &RunId) -> Result<(), HeadlessError> {
        let params = CancelParams {
            run: Some(run.clone()),
            ask: None,
            keep_reviews: true,
        };
        self.tell(CANCEL, params).await
    }

    /// Undoes one applied proposal, or all of them, and waits for the result.
    ///
    /// # Errors
    /// Fails if nothing was undone.
    pub async fn undo(
        &self,
        run: &RunId,
        proposal: Option<ProposalId>,
    ) -> Result<Vec<ProposalId>, HeadlessError> {
        let (tell, undone) = oneshot::channel();
        {
            let mut state = lock(&self.state);
            let route = state.routes.entry(run.clone()).or_default();
            route.undone.retain(|waiting| !waiting.is_closed());
            route.undone.push(tell);
        }
        let params = UndoParams {
            run: run.clone(),
            proposal,
        };
        self.tell(UNDO, params).await?;
        match tokio::time::timeout(DEADLINE, undone).await {
            Ok(Ok(UndoneParams {
                error: None,
                proposals,
                ..
            })) => Ok(proposals),
            Ok(Ok(UndoneParams {
                error: Some(error), ..
            })) => Err(HeadlessError::NotUndone(error)),
            Ok(Err(_)) => Err(RequestError::Gone.into()),
            Err(_) => Err(HeadlessError::Late { what: "the undo" }),
        }
    }

    /// Opens a document.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn open(&self, file: &FilePath) -> Result<(), HeadlessError> {
        self.edit(|buffers| buffers.open(file))
    }

    /// Closes a document.
    ///
    /// # Errors
    /// Fails if the document is not open.
    pub fn close(&self, file: &FilePath) -> Result<(), HeadlessError> {
        self.edit(|buffers| buffers.close(file))
    }

    /// Types into an open document.
    ///
    /// # Errors
    /// Fails if the document is not open, or if the range is outside its text.
    pub fn type_text(
        &self,
        file: &FilePath,
        range: ByteRange,
        insert: &str,
    ) -> Result<(), HeadlessError> {
        self.edit(|buffers| buffers.type_text(file, range, insert))
    }

    /// Saves an open document.
    ///
    /// # Errors
    /// Fails if the document is not open, or if the file cannot be written.
    pub fn save(&self, file: &FilePath) -> Result<(), HeadlessError> {
        self.edit(|buffers| buffers.save(file))
    }

    /// Returns the text of a file as the user sees it.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn text(&self, file: &FilePath) -> Result<String, HeadlessError> {
        let state = lock(&self.state);
        state.buffers.text(file).map_err(HeadlessError::Document)
    }

    /// Returns the connection, for requests that have no method here.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Shuts the server down and waits until it has stopped.
    ///
    /// # Errors
    /// Fails if the server does not stop in time.
    pub async fn shutdown(self) -> Result<(), HeadlessError> {
        self.connection.request("shutdown", Value::Null).await?;
        self.connection.notify("exit", Value::Null);
        match tokio::time::timeout(DEADLINE, self.server).await {
            Ok(_) => Ok(()),
            Err(_) => Err(HeadlessError::Late {
                what: "the end of the server",
            }),
        }
    }

    async fn tell(&self, command: &str, params: impl Serialize) -> Result<(), HeadlessError> {
        self.execute(command, params).await.map(|_| ())
    }

    async fn execute(&self, command: &str, params: impl Serialize) -> Result<Value, HeadlessError> {
        let params = json!({"command": command, "arguments": [params]});
        let request = self.connection.request("workspace/executeCommand", params);
        Ok(request.await?)
    }

    /// Changes the buffers and notifies the server in one step.
    fn edit(
        &self,
        change: impl FnOnce(&mut Buffers) -> Result<ServerNotification, String>,
    ) -> Result<(), HeadlessError> {
        let mut state = lock(&self.state);
        let (method, params) = change(&mut state.buffers).map_err(HeadlessError::Document)?;
        self.connection.notify(method, params);
        Ok(())
    }
}

/// Returns the client capabilities of the headless editor. `encodings` is in order of preference.
pub fn capabilities(encodings: &[Encoding]) -> Value {
    let kind = |encoding: &Encoding| match encoding {
        Encoding::Utf8 => PositionEncodingKind::UTF8,
        Encoding::Utf16 => PositionEncodingKind::UTF16,
        Encoding::Utf32 => PositionEncodingKind::UTF32,
    };
    let kinds: Vec<PositionEncodingKind> = encodings.iter().map(kind).collect();
    json!({
        "general": {"positionEncodings": kinds},
        "workspace": {
            "applyEdit": true,
            "workspaceEdit": {
                "documentChanges": true, "resourceOperations": ["create", "delete"],
            },
        },
        "textDocument": {"synchronization": {"didSave": true}},
        "experimental": {"starling": {}},
    })
}

fn encoding_of(answer: &Value) -> Encoding {
    match answer["capabilities"]["positionEncoding"].as_str() {
        Some("utf-8") => Encoding::Utf8,
        Some("utf-32") => Encoding::Utf32,
        Some(_) | None => Encoding::Utf16,
    }
}

fn receive(connection: &Connection, state: &mut EditorState, incoming: Incoming) {
    match incoming {
        Incoming::Request { id, method, params } => {
            let reply = match method.as_str() {
                "workspace/applyEdit" => apply(connection, &mut state.buffers, params),
                "window/workDoneProgress/create" => Ok(Value::Null),
                other => Err(format!("{other} is not supported")),
            };
            connection.reply(id, reply);
        }
        Incoming::Notification { method, params } => {
            let routed = match method.as_str() {
                "starling/event" => note(state, params, |event: EventParams| {
                    (event.run.clone(), RunNotification::Event(Box::new(event)))
                }),
                "starling/intent" => note(state, params, |intent: IntentParams| {
                    (
                        intent.run.clone(),
                        RunNotification::Intent(Box::new(intent)),
                    )
                }),
                "starling/undone" => undone(state, params),
                _ => Ok(()),
            };
            if let Err(error) = routed {
                tracing::error!(%error, method, "a notification cannot be read");
            }
        }
    }
}

fn apply(connection: &Connection, buffers: &mut Buffers, params: Value) -> Reply {
    let params: ApplyWorkspaceEditParams =
        serde_json::from_value(params).map_err(|error| error.to_string())?;
    let failure_reason = match buffers.apply(&params.edit) {
        Ok(notes) => {
            for (method, params) in notes {
                connection.notify(method, params);
            }
            None
        }
        Err(reason) => Some(reason),
    };
    let response = ApplyWorkspaceEditResponse {
        applied: failure_reason.is_none(),
        failure_reason,
        failed_change: None,
    };
    Ok(json!(response))
}

fn note<T: DeserializeOwned>(
    state: &mut EditorState,
    params: Value,
    wrap: impl FnOnce(T) -> (RunId, RunNotification),
) -> Result<(), serde_json::Error> {
    let (run, note) = wrap(serde_json::from_value(params)?);
    let route = state.routes.entry(run).or_default();
    if route.notes.send(note).is_err() {
        tracing::trace!("nobody listens to this run any more");
    }
    Ok(())
}

fn undone(state: &mut EditorState, params: Value) -> Result<(), serde_json::Error> {
    let params: UndoneParams = serde_json::from_value(params)?;
    let route = state.routes.entry(params.run.clone()).or_default();
    let waiting = (!route.undone.is_empty()).then(|| route.undone.remove(0));
    if waiting.is_none_or(|waiting| waiting.send(params).is_err()) {
        tracing::debug!("nobody waits for this undo any more");
    }
    Ok(())
}

fn read<T: DeserializeOwned>(method: &str, value: Value) -> Result<T, HeadlessError> {
    serde_json::from_value(value).map_err(|error| {
        let unreadable = RequestError::Unreadable {
            method: method.to_owned(),
            message: error.to_string(),
        };
        unreadable.into()
    })
}

fn lock(state: &Mutex<EditorState>) -> MutexGuard<'_, EditorState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
