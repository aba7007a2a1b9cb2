//! A running server: the handshake, its open documents, and its results for exactly these texts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::convert;
use super::documents::{Documents, FileChangeKind, Notification, Texts, uri, watched};
use super::heard::{AwaitedVersion, ServerMessages, listener};
use super::known::is_deaf_over;
use super::link::ServerLink;
use super::names::{self, ServerLocation};
use super::process::ServerProcess;
use super::quickfix;
use starling_core::{Effort, Problem, Relation, Severity, TextRequest};
use starling_rpc::{Connection, RequestError};
use starling_syntax::FilePath;
use starling_text::Encoding;

/// Maximum number of times a request is repeated after the server cancels it.
const RETRIES: u32 = 5;
/// Error codes after which a request is repeated: cancelled, or the content was modified.
const AGAIN: [i64; 3] = [-32800, -32801, -32802];
const PULL: &str = "textDocument/diagnostic";

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestFailure {
    #[error("no answer within {0} ms")]
    Late(u128),
    #[error("it crashed")]
    Gone,
    #[error("it refused: {0}")]
    Refused(String),
    #[error("its answer cannot be read: {0}")]
    Unreadable(String),
    #[error("its diagnostics do not name the version of the text, so they may be old")]
    Unprovable,
}

/// The server's name, its workspace and its settings.
#[derive(Debug, Clone)]
pub(super) struct ServerSetup {
    pub name: String,
    pub root: PathBuf,
    pub settings: Value,
    /// The `initializationOptions` of the handshake.
    pub options: Value,
}

/// A request and the deadline of its response.
pub(super) struct TimedRequest<'a> {
    pub request: &'a TextRequest,
    pub deadline: Instant,
}

impl TimedRequest<'_> {
    fn late(&self) -> RequestFailure {
        RequestFailure::Late(self.request.deadline.as_millis())
    }

    fn failure(&self, error: RequestError) -> RequestFailure {
        failure(error, self.request.deadline)
    }
}

fn failure(error: RequestError, waited: Duration) -> RequestFailure {
    match error {
        RequestError::Refused { message, .. } => RequestFailure::Refused(message),
        RequestError::Late { .. } => RequestFailure::Late(waited.as_millis()),
        RequestError::Gone => RequestFailure::Gone,
        RequestError::Unreadable { message, .. } => RequestFailure::Unreadable(message),
    }
}

/// A server that was started but cannot be used.
pub(super) struct HandshakeFailure {
    failure: RequestFailure,
    process: Option<ServerProcess>,
}

impl HandshakeFailure {
    /// Returns the failure as a message, with the exit status after a crash.
    pub async fn told(mut self) -> String {
        match (&self.failure, &mut self.process) {
            (RequestFailure::Gone, Some(process)) => {
                format!("it crashed ({})", process.end().await)
            }
            (failure, _) => failure.to_string(),
        }
    }
}

/// A connection to an initialized language server.
pub(super) struct ServerSession {
    name: String,
    /// The server's name and version.
    pub tool: String,
    pub process: Option<ServerProcess>,
    connection: Connection,
    heard: Arc<watch::Sender<ServerMessages>>,
    documents: Documents,
    encoding: Encoding,
    capabilities: Value,
    /// Whether the server's diagnostics have ever contained a version.
    names_versions: bool,
    /// Whether diagnostics of an earlier text may still arrive.
    owes: bool,
    /// Whether the server has no progress left from its start.
    settled: bool,
}

impl ServerSession {
    /// Performs the handshake with a server.
    ///
    /// # Errors
    /// The server does not respond as a language server before the deadline.
    pub async fn open(
        link: ServerLink,
        about: &ServerSetup,
        deadline: Instant,
    ) -> Result<Self, HandshakeFailure> {
        let began = Instant::now();
        let (heard, _) = watch::channel(ServerMessages::default());
        let heard = Arc::new(heard);
        let ear = listener(Arc::clone(&heard), about.settings.clone());
        let connection = Connection::open(link.input, link.output, ear);
        let greeting = connection.ask("initialize", greeting(about), deadline);
        let answer = match greeting.await {
            Ok(answer) => answer.value,
            Err(error) => {
                return Err(HandshakeFailure {
                    failure: failure(error, deadline - began),
                    process: link.process,
                });
            }
        };
        connection.notify("initialized", json!({}));
        let settings = json!({"settings": about.settings});
        connection.notify("workspace/didChangeConfiguration", settings);
        let logged = heard.borrow().version.clone();
        let version = answer["serverInfo"]["version"].as_str();
        let version = version.or(logged.as_deref()).unwrap_or_default();
        let capabilities = answer["capabilities"].clone();
        let encoding = match capabilities["positionEncoding"].as_str() {
            Some("utf-8") => Encoding::Utf8,
            Some("utf-32") => Encoding::Utf32,
            Some(_) | None => Encoding::Utf16,
        };
        Ok(ServerSession {
            name: about.name.clone(),
            tool: format!("{} {version}", about.name).trim_end().to_owned(),
            process: link.process,
            connection,
            heard,
            documents: Documents::new(about.root.clone()),
            encoding,
            capabilities,
            names_versions: false,
            owes: false,
            settled: false,
        })
    }

    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Notifies the server of changed files on disk.
    pub fn disk_changed(&self, files: &[(PathBuf, FileChangeKind)]) {
        self.tell(vec![watched(files)]);
    }

    fn tell(&self, notifications: Vec<Notification>) {
        for (method, params) in notifications {
            self.connection.notify(method, params);
        }
    }

    /// Whether the server reports the syntax error in an invalid text. A server that does not has
    /// no working checkers, so that an empty list of problems from it means nothing.
    ///
    /// # Errors
    /// See [`RequestFailure`].
    pub async fn sees_errors(&mut self, deadline: Instant) -> Result<bool, RequestFailure> {
        let request = TextRequest {
            file: FilePath::new("starling_probe.py"),
            text: "def (\n".into(),
            overlay: Vec::new(),
            effort: Effort::Fast,
            deadline: deadline.saturating_duration_since(Instant::now()),
        };
        let asked = TimedRequest {
            request: &request,
            deadline,
        };
        let found = self.diagnose(&asked).await?;
        Ok(found
            .iter()
            .any(|problem| problem.severity == Severity::Error))
    }

    /// Sends the texts of a request and waits for the problems of exactly these texts.
    ///
    /// # Errors
    /// See [`RequestFailure`].
    pub async fn diagnose(
        &mut self,
        asked: &TimedRequest<'_>,
    ) -> Result<Vec<Problem>, RequestFailure> {
        let items = self.raw(asked).await?;
        let TextRequest { file, text, .. } = asked.request;
        convert::problems(&items, file, text, self.encoding).map_err(RequestFailure::Unreadable)
    }

    /// Returns the import statements that quick fixes offer for a problem of the text.
    ///
    /// # Errors
    /// See [`RequestFailure`].
    pub async fn imports(
        &mut self,
        asked: &TimedRequest<'_>,
        problem: &Problem,
    ) -> Result<Vec<String>, RequestFailure> {
        if self.capabilities["codeActionProvider"].is_null() {
            return Ok(Vec::new());
        }
        let items = self.raw(asked).await?;
        let TextRequest { file, text, .. } = asked.request;
        let problems = convert::problems(&items, file, text, self.encoding)
            .map_err(RequestFailure::Unreadable)?;
        let Some(at) = problems.iter().position(|one| one == problem) else {
            return Ok(Vec::new());
        };
        let uri = self.documents.uri(file);
        let params = json!({
            "textDocument": {"uri": uri},
            "range": items[at]["range"],
            "context": {"diagnostics": [items[at]], "only": ["quickfix"]},
        });
        let request = self
            .connection
            .ask("textDocument/codeAction", params, asked.deadline);
        let answer = request.await.map_err(|error| asked.failure(error))?;
        let name = problem.range.map_or("", |range| range.of(text));
        Ok(quickfix::imports(
            &answer.value,
            &self.documents.path(file),
            text,
            self.encoding,
            name,
        ))
    }

    /// Returns the locations that have a relation to the name at a byte offset, in the server's
    /// encoding.
    ///
    /// # Errors
    /// See [`RequestFailure`].
    pub async fn places(
        &mut self,
        asked: &TimedRequest<'_>,
        at: usize,
        relation: Relation,
    ) -> Result<Vec<ServerLocation>, RequestFailure> {
        let (method, provider) = match relation {
            Relation::Definitions => ("textDocument/definition", "definitionProvider"),
            Relation::References => ("textDocument/references", "referencesProvider"),
            Relation::Implementations => ("textDocument/implementation", "implementationProvider"),
        };
        let mut params = self.about(asked, at, provider).await?;
        if relation == Relation::References {
            params["context"] = json!({"includeDeclaration": false});
        }
        let answer = self.request(method, params, asked).await?;
        names::places(answer, self.encoding).map_err(RequestFailure::Unreadable)
    }

    /// Returns the hover text of the name at a byte offset.
    ///
    /// # Errors
    /// See [`RequestFailure`].
    pub async fn hover(
        &mut self,
        asked: &TimedRequest<'_>,
        at: usize,
    ) -> Result<String, RequestFailure> {
        let params = self.about(asked, at, "hoverProvider").await?;
        let answer = self.request("textDocument/hover", params, asked).await?;
        Ok(names::hover(&answer))
    }

    /// Sends the texts of a request about a name and returns the request's parameters.
    async fn about(
        &mut self,
        asked: &TimedRequest<'_>,
        at: usize,
        provider: &str,
    ) -> Result<Value, RequestFailure> {
        let provided = &self.capabilities[provider];
        let has_it = !provided.is_null() && *provided != Value::Bool(false);
        if !has_it || is_deaf_over(&self.name, provider) {
            return Err(RequestFailure::Refused(format!(
                "it does not support {provider}, or only slowly"
            )));
        }
        let texts = texts(asked.request);
        if !self.documents.has(&texts) {
            // Diagnostics of these texts must not be mistaken for those of later texts.
            match self.pulls() || self.names_versions {
                true => {
                    let told = self.documents.show(&texts);
                    self.tell(told);
                }
                false => drop(self.raw(asked).await?),
            }
        }
        let uri = self.documents.uri(&asked.request.file);
        let position = names::position(&asked.request.text, at, self.encoding);
        Ok(json!({"textDocument": {"uri": uri}, "position": position}))
    }

    async fn raw(&mut self, asked: &TimedRequest<'_>) -> Result<Vec<Value>, RequestFailure> {
        let request = asked.request;
        let texts = texts(request);
        let was_open = self.documents.is_open(&request.file);
        let (notifications, version) = self.documents.sync(&texts, &request.file);
        let awaited = AwaitedVersion {
            path: self.documents.path(&request.file),
            version,
        };
        self.heard.send_modify(|heard| heard.await_text(awaited));
        // A change to another text can make the server check this text again in its old version.
        let mixed = was_open && notifications.len() > 1;
        let owed = std::mem::replace(&mut self.owes, true) || mixed;
        self.tell(notifications);
        let items = loop {
            let items = match self.pulls() {
                true => self.pull(asked).await?,
                false => match self.pushed(asked, owed).await? {
                    Some(items) => items,
                    // The server registered for pull diagnostics in the meantime.
                    None => continue,
                },
            };
            if self.settle(asked).await? {
                break items;
            }
        };
        self.owes = false;
        Ok(items)
    }

    fn pulls(&self) -> bool {
        !self.capabilities["diagnosticProvider"].is_null()
            || self.heard.borrow().registered.contains(PULL)
    }

    /// Requests diagnostics. A server reads messages in order, and no text changes before its
    /// response, so the result belongs to the latest text.
    async fn pull(&self, asked: &TimedRequest<'_>) -> Result<Vec<Value>, RequestFailure> {
        let uri = self.documents.uri(&asked.request.file);
        let params = json!({"textDocument": {"uri": uri}});
        let mut answer = self.request(PULL, params, asked).await?;
        match answer["items"].take() {
            Value::Array(items) if answer["kind"] != "unchanged" => Ok(items),
            _ => Err(RequestFailure::Unreadable(
                "no list of diagnostics".to_owned(),
            )),
        }
    }

    /// Sends a request and repeats it if the server cancels it.
    async fn request(
        &self,
        method: &str,
        params: Value,
        asked: &TimedRequest<'_>,
    ) -> Result<Value, RequestFailure> {
        let mut last = RequestFailure::Gone;
        for _ in 0..RETRIES {
            let request = self.connection.ask(method, params.clone(), asked.deadline);
            match request.await {
                Ok(answer) => return Ok(answer.value),
                Err(RequestError::Refused { code, message }) if AGAIN.contains(&code) => {
                    last = RequestFailure::Refused(message);
                }
                Err(error) => return Err(asked.failure(error)),
            }
        }
        Err(last)
    }

    /// Waits for pushed diagnostics. Returns `None` if the server registers for pull diagnostics
    /// instead. Diagnostics without a version count only if they arrive after the server has read
    /// the text, which the response to a later request proves, and if no older diagnostics were
    /// pending.
    async fn pushed(
        &mut self,
        asked: &TimedRequest<'_>,
        owed: bool,
    ) -> Result<Option<Vec<Value>>, RequestFailure> {
        let read = match self.names_versions {
            true => None,
            false => self.barrier(asked).await?,
        };
        let mut heard = self.heard.subscribe();
        let after = |heard: &ServerMessages| match (&heard.unversioned, read) {
            (Some((order, _)), Some(read)) => *order > read,
            (Some(_), None) | (None, _) => false,
        };
        let unprovable = |heard: &ServerMessages| heard.unversioned.is_some() && read.is_none();
        let come = heard.wait_for(|heard| {
            heard.closed
                || heard.exact.is_some()
                || heard.registered.contains(PULL)
                || after(heard)
                || unprovable(heard)
        });
        let come = timeout_at(asked.deadline, come).await;
        let heard = match &come {
            Ok(Ok(heard)) => heard,
            Ok(Err(_)) => return Err(RequestFailure::Gone),
            Err(_) => return Err(asked.late()),
        };
        if let Some(items) = &heard.exact {
            self.names_versions = true;
            return Ok(Some(items.clone()));
        }
        match &heard.unversioned {
            _ if heard.closed => Err(RequestFailure::Gone),
            Some(_) if owed || !after(heard) => Err(RequestFailure::Unprovable),
            Some((_, items)) => Ok(Some(items.clone())),
            None => Ok(None),
        }
    }

    /// Sends a request whose response depends on the text. Returns the response's sequence number
    /// among all messages, or `None` if the server does not support the request.
    async fn barrier(&self, asked: &TimedRequest<'_>) -> Result<Option<u64>, RequestFailure> {
        if self.capabilities["documentSymbolProvider"].is_null() {
            return Ok(None);
        }
        let uri = self.documents.uri(&asked.request.file);
        let params = json!({"textDocument": {"uri": uri}});
        let request = self
            .connection
            .ask("textDocument/documentSymbol", params, asked.deadline);
        match request.await {
            Ok(answer) => Ok(Some(answer.order)),
            Err(RequestError::Refused { .. }) => Ok(None),
            Err(error) => Err(asked.failure(error)),
        }
    }

    /// Waits until the server's initial work is done, because its first diagnostics may change
    /// until then. Returns `false` if the caller must request the diagnostics again.
    async fn settle(&mut self, asked: &TimedRequest<'_>) -> Result<bool, RequestFailure> {
        if std::mem::replace(&mut self.settled, true) || self.heard.borrow().at_work.is_empty() {
            return Ok(true);
        }
        let mut heard = self.heard.subscribe();
        let done = heard.wait_for(|heard| heard.closed || heard.at_work.is_empty());
        match timeout_at(asked.deadline, done).await {
            Ok(_) => Ok(false),
            Err(_) => Err(asked.late()),
        }
    }
}

/// Returns all texts of a request.
fn texts(request: &TextRequest) -> Texts<'_> {
    let others = request.overlay.iter();
    let mut texts: Texts<'_> = others.map(|(file, text)| (file, text.as_ref())).collect();
    texts.insert(&request.file, Some(&request.text));
    texts
}

/// Returns the parameters of `initialize`.
fn greeting(about: &ServerSetup) -> Value {
    let root = uri(&about.root);
    json!({
        "processId": std::process::id(),
        "clientInfo": {"name": "starling", "version": env!("CARGO_PKG_VERSION")},
        "rootUri": root,
        "rootPath": about.root,
        "workspaceFolders": [{"uri": root, "name": "workspace"}],
        "initializationOptions": about.options,
        "capabilities": {
            "general": {"positionEncodings": ["utf-8", "utf-16"]},
            "window": {"workDoneProgress": true},
            "workspace": {
                "configuration": true,
                "workspaceFolders": true,
                "didChangeConfiguration": {"dynamicRegistration": true},
                "didChangeWatchedFiles": {"dynamicRegistration": true},
                "diagnostics": {"refreshSupport": true},
            },
            "textDocument": {
                "synchronization": {"dynamicRegistration": false},
                "publishDiagnostics": {"versionSupport": true, "tagSupport": {"valueSet": [1, 2]}},
                "diagnostic": {"dynamicRegistration": true},
                "documentSymbol": {},
                "definition": {"linkSupport": true},
                "implementation": {"linkSupport": true},
                "references": {},
                "hover": {"contentFormat": ["plaintext", "markdown"]},
                "codeAction": {
                    "dataSupport": true,
                    "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}},
                },
            },
        },
    })
}
