//! The document store owns the open buffers. An actor processes the client's messages in the order
//! in which they arrive; only `didChange` changes a text.

mod lost_openings;
#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ropey::Rope;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tower_lsp::lsp_types::{Range, TextDocumentContentChangeEvent, Url};

use self::lost_openings::LostOpenings;
use super::paths::disk_path;
use super::symbol_markers::{Splice, SymbolMarkers};
use super::text_history::TextHistory;
use starling_core::{CurrentText, DocVersion};
use starling_platform::files::PathExt;
use starling_text::{ByteRange, Encoding, Position, offset_of};

/// Minimum time between two parses of a document's symbols.
const REREAD_DELAY: Duration = Duration::from_millis(200);

/// A message to the actor.
#[derive(Debug)]
pub enum DocumentMessage {
    Opened {
        uri: Url,
        version: DocVersion,
        text: String,
    },
    Changed {
        uri: Url,
        version: DocVersion,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    },
    Closed {
        uri: Url,
    },
    /// Requests the path under which a file is open.
    ResolvePath {
        path: PathBuf,
        real: Option<PathBuf>,
        reply: oneshot::Sender<PathBuf>,
    },
    Read {
        path: PathBuf,
        reply: oneshot::Sender<Option<CurrentText>>,
    },
    ReadAll {
        reply: oneshot::Sender<Vec<(PathBuf, Arc<str>)>>,
    },
    Expect {
        path: PathBuf,
        base: Arc<str>,
        after: Arc<str>,
        texts: TextHistory,
        reply: oneshot::Sender<ExpectReply>,
    },
    View {
        path: PathBuf,
        reply: oneshot::Sender<Option<DocumentView>>,
    },
    /// A message of the client could not be read. It may have opened or changed this document, or any
    /// one if there is no URI. The reply says what was not in doubt before.
    MessageLost {
        uri: Option<Url>,
        reply: oneshot::Sender<Doubt>,
    },
    /// The symbols of a document were parsed.
    SymbolsRead {
        path: PathBuf,
        opening: OpenId,
        markers: SymbolMarkers,
    },
}

/// Identifies one opening of a document. Symbols that were parsed before a document was closed are
/// invalid after it is opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenId(u64);

/// An open document with its symbols.
#[derive(Debug, Clone)]
pub struct DocumentView {
    /// The URI as the client writes it.
    pub uri: Url,
    pub text: Rope,
    pub markers: SymbolMarkers,
}

/// The reply to [`DocumentStore::expect`]. `arrived` resolves when the document has the expected
/// text.
#[derive(Debug)]
pub enum ExpectReply {
    /// The document is open and its text differs from the base.
    Stale,
    /// A change of the document may have been lost, so its text may differ from the editor's.
    Uncertain,
    Open {
        uri: Url,
        version: DocVersion,
        arrived: oneshot::Receiver<CurrentText>,
    },
    Closed {
        arrived: oneshot::Receiver<CurrentText>,
    },
}

/// What has become uncertain through a lost message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    pub documents: Vec<PathBuf>,
    /// Whether also each file that is not known to be open may be open.
    pub any_unopened: bool,
}

/// The actor has stopped because the server is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server is shutting down")]
pub struct StoreClosed;

/// A handle to the actor. Sending never waits.
#[derive(Debug, Clone)]
pub struct DocumentStore {
    sender: mpsc::UnboundedSender<DocumentMessage>,
    changes: watch::Receiver<u64>,
}

impl DocumentStore {
    /// Starts the actor. It stops when the last handle is dropped. Symbols are parsed on `workers`.
    pub fn open(workers: Handle) -> DocumentStore {
        let (sender, mut inbox) = mpsc::unbounded_channel();
        let (count, changes) = watch::channel(0);
        let mut documents = DocumentActor {
            open: HashMap::new(),
            openings: 0,
            lost_openings: LostOpenings::default(),
            watches: Vec::new(),
            sender: sender.downgrade(),
            count,
            workers,
        };
        tokio::spawn(async move {
            while let Some(message) = inbox.recv().await {
                documents.handle(message);
            }
        });
        DocumentStore { sender, changes }
    }

    /// Returns a counter that increases with every change of a text.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Sends a message. If the actor has stopped, the message is dropped.
    pub fn send(&self, message: DocumentMessage) {
        if self.sender.send(message).is_err() {
            tracing::debug!("a message came after the end");
        }
    }

    /// Returns the path under which a file is open, which may be a link to the file or the target
    /// of a link. Returns `path` if the file is not open.
    pub async fn name_of(&self, path: PathBuf) -> Result<PathBuf, StoreClosed> {
        let real = tokio::fs::canonicalize(&path).await.ok();
        let (reply, answer) = oneshot::channel();
        self.send(DocumentMessage::ResolvePath { path, real, reply });
        answer.await.map_err(|_| StoreClosed)
    }

    /// Returns the text of an open document.
    pub async fn read(&self, path: PathBuf) -> Result<Option<CurrentText>, StoreClosed> {
        let (reply, answer) = oneshot::channel();
        self.send(DocumentMessage::Read { path, reply });
        answer.await.map_err(|_| StoreClosed)
    }

    /// Requests the texts of all open documents, as they are at this point in the order of
    /// messages.
    pub fn read_all(&self) -> oneshot::Receiver<Vec<(PathBuf, Arc<str>)>> {
        let (reply, answer) = oneshot::channel();
        self.send(DocumentMessage::ReadAll { reply });
        answer
    }

    /// Returns an open document with its symbols. The first request for a document waits until they
    /// are parsed.
    pub async fn view(&self, path: PathBuf) -> Result<Option<DocumentView>, StoreClosed> {
        let (reply, answer) = oneshot::channel();
        self.send(DocumentMessage::View { path, reply });
        answer.await.map_err(|_| StoreClosed)
    }

    /// Notes that a message of the client could not be read, about this document or about any. The
    /// reply says what is in doubt from now on.
    pub fn message_lost(&self, uri: Option<Url>) -> oneshot::Receiver<Doubt> {
        let (reply, doubt) = oneshot::channel();
        self.send(DocumentMessage::MessageLost { uri, reply });
        doubt
    }

    /// Checks that a document has the text `base`, then watches for the text `after`. Each text of
    /// the open document is appended to `texts` for as long as the caller holds `texts`.
    pub async fn expect(
        &self,
        path: PathBuf,
        base: Arc<str>,
        after: Arc<str>,
        texts: TextHistory,
    ) -> Result<ExpectReply, StoreClosed> {
        let (reply, answer) = oneshot::channel();
        self.send(DocumentMessage::Expect {
            path,
            base,
            after,
            texts,
            reply,
        });
        answer.await.map_err(|_| StoreClosed)
    }
}

/// An open document, as the actor stores it.
#[derive(Debug)]
struct Document {
    /// The URI as the client writes it.
    uri: Url,
    /// The canonical path when the document was opened; `None` if the file did not exist.
    real: Option<PathBuf>,
    opening: OpenId,
    version: DocVersion,
    text: Rope,
    /// The text as one shared string. It is created on first use.
    whole: OnceCell<Arc<str>>,
    markers: Option<SymbolMarkers>,
    reading: SymbolReading,
    /// Whether a change of the document may have been lost.
    sync: SyncState,
    /// Requests that wait until the symbols are parsed for the first time.
    waiting: Vec<oneshot::Sender<Option<DocumentView>>>,
}

/// Whether the stored text equals the text in the editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyncState {
    InSync,
    /// Unknown until the document is opened again or its whole text is sent.
    Uncertain,
}

/// Whether the symbols of a document are being parsed.
#[derive(Debug)]
enum SymbolReading {
    Idle,
    /// A parse is running. Contains the edits since it began.
    Running(Vec<Splice>),
}

impl Document {
    fn view(&self, markers: &SymbolMarkers) -> DocumentView {
        DocumentView {
            uri: self.uri.clone(),
            text: self.text.clone(),
            markers: markers.clone(),
        }
    }

    fn moved(&mut self, splice: Splice) {
        if let Some(markers) = &mut self.markers {
            markers.shift(&splice);
        }
        match &mut self.reading {
            SymbolReading::Idle => {}
            SymbolReading::Running(since) => since.push(splice),
        }
    }

    fn current(&self) -> CurrentText {
        CurrentText {
            text: Arc::clone(self.whole.get_or_init(|| self.text.to_string().into())),
            version: Some(self.version),
        }
    }
}

/// A request that waits until the document at `path` has the text `after`.
#[derive(Debug)]
struct TextWaiter {
    path: PathBuf,
    after: Arc<str>,
    /// Receives each text of the document while another handle of the history exists.
    texts: TextHistory,
    /// Sends the document's text to the waiting caller; `None` after that.
    arrived: Option<oneshot::Sender<CurrentText>>,
}

/// The actor that owns all open documents.
#[derive(Debug)]
struct DocumentActor {
    open: HashMap<PathBuf, Document>,
    /// The number of documents that were opened so far.
    openings: u64,
    lost_openings: LostOpenings,
    watches: Vec<TextWaiter>,
    /// Sends messages to this actor.
    sender: mpsc::WeakUnboundedSender<DocumentMessage>,
    count: watch::Sender<u64>,
    workers: Handle,
}

impl DocumentActor {
    fn handle(&mut self, message: DocumentMessage) {
        match message {
            DocumentMessage::Opened { uri, version, text } => self.opened(uri, version, &text),
            DocumentMessage::Changed {
                uri,
                version,
                changes,
                encoding,
            } => self.changed(&uri, version, &changes, encoding),
            DocumentMessage::Closed { uri } => {
                if let Some(path) = disk_path(&uri) {
                    self.open.remove(&path);
                    self.lost_openings.found(&path);
                    self.count.send_modify(|count| *count += 1);
                }
            }
            DocumentMessage::ResolvePath { path, real, reply } => {
                reply_to(reply, self.name_of(path, real))
            }
            DocumentMessage::Read { path, reply } => {
                reply_to(reply, self.open.get(&path).map(Document::current))
            }
            DocumentMessage::ReadAll { reply } => {
                reply_to(reply, self.all_texts());
            }
            DocumentMessage::Expect {
                path,
                base,
                after,
                texts,
                reply,
            } => reply_to(reply, self.expect(path, &base, after, texts)),
            DocumentMessage::View { path, reply } => self.view(&path, reply),
            DocumentMessage::MessageLost { uri, reply } => {
                reply_to(reply, self.message_lost(uri.as_ref()));
            }
            DocumentMessage::SymbolsRead {
                path,
                opening,
                markers,
            } => self.symbols_read(&path, opening, markers),
        }
    }

    /// Returns the texts of all open documents by path. A document that is open under a link is
    /// also listed under the link's target.
    fn all_texts(&self) -> Vec<(PathBuf, Arc<str>)> {
        let mut texts = BTreeMap::new();
        for (path, document) in &self.open {
            if let Some(real) = document.real.as_ref().filter(|real| *real != path) {
                texts.insert(real.clone(), document.current().text);
            }
        }
        for (path, document) in &self.open {
            texts.insert(path.clone(), document.current().text);
        }
        texts.into_iter().collect()
    }

    fn view(&mut self, path: &PathBuf, reply: oneshot::Sender<Option<DocumentView>>) {
        let Some(document) = self.open.get_mut(path) else {
            return reply_to(reply, None);
        };
        if let Some(markers) = &document.markers {
            return reply_to(reply, Some(document.view(markers)));
        }
        document.waiting.push(reply);
        self.read_symbols(path, Duration::ZERO);
    }

    /// Starts to parse the symbols of a document, unless that is already in progress.
    fn read_symbols(&mut self, path: &PathBuf, after: Duration) {
        let Some(document) = self.open.get_mut(path) else {
            return;
        };
        match document.reading {
            SymbolReading::Running(_) => return,
            SymbolReading::Idle => document.reading = SymbolReading::Running(Vec::new()),
        }
        let (path, text, sender) = (path.clone(), document.text.clone(), self.sender.clone());
        let opening = document.opening;
        let place = path.clone();
        let read = move || SymbolMarkers::read(&place, &text.to_string());
        let read = self.workers.spawn_blocking(read);
        tokio::spawn(async move {
            let markers = read.await.unwrap_or_default();
            tokio::time::sleep(after).await;
            if let Some(sender) = sender.upgrade() {
                // Sending fails if the actor has stopped; then the symbols are not needed.
                let _ = sender.send(DocumentMessage::SymbolsRead {
                    path,
                    opening,
                    markers,
                });
            }
        });
    }

    fn symbols_read(&mut self, path: &PathBuf, opening: OpenId, mut markers: SymbolMarkers) {
        let document = self.open.get_mut(path);
        // A document that was closed and opened again may have another text.
        let Some(document) = document.filter(|document| document.opening == opening) else {
            return;
        };
        let since = match std::mem::replace(&mut document.reading, SymbolReading::Idle) {
            SymbolReading::Idle => Vec::new(),
            SymbolReading::Running(since) => since,
        };
        since.iter().for_each(|splice| markers.shift(splice));
        for reply in std::mem::take(&mut document.waiting) {
            reply_to(reply, Some(document.view(&markers)));
        }
        document.markers = Some(markers);
        self.count.send_modify(|count| *count += 1);
        if !since.is_empty() {
            self.read_symbols(path, REREAD_DELAY);
        }
    }

    fn opened(&mut self, uri: Url, version: DocVersion, text: &str) {
        // A buffer without a file on disk belongs to no project.
        let Some(path) = disk_path(&uri) else { return };
        let text = Rope::from_str(text);
        self.openings += 1;
        let document = Document {
            uri,
            real: path.canonical().ok(),
            opening: OpenId(self.openings),
            version,
            text,
            whole: OnceCell::new(),
            markers: None,
            reading: SymbolReading::Idle,
            sync: SyncState::InSync,
            waiting: Vec::new(),
        };
        self.lost_openings.found(&path);
        self.open.insert(path.clone(), document);
        self.count.send_modify(|count| *count += 1);
        self.notify_watches(&path);
    }

    /// Marks documents as uncertain. Returns what was not.
    fn message_lost(&mut self, uri: Option<&Url>) -> Doubt {
        let path = uri.map(disk_path);
        let is_meant = |open: &PathBuf| match &path {
            Some(path) => path.as_ref() == Some(open),
            None => true,
        };
        let mut doubtful = Vec::new();
        for (open, document) in &mut self.open {
            if is_meant(open) && document.sync == SyncState::InSync {
                document.sync = SyncState::Uncertain;
                doubtful.push(open.clone());
            }
        }
        let any_unopened = match path {
            None => self.lost_openings.lost_any(),
            Some(Some(path)) if !self.open.contains_key(&path) => {
                doubtful.extend(self.lost_openings.lost(&path).then_some(path));
                false
            }
            Some(_) => false,
        };
        doubtful.sort();
        Doubt {
            documents: doubtful,
            any_unopened,
        }
    }

    fn changed(
        &mut self,
        uri: &Url,
        version: DocVersion,
        given: &[TextDocumentContentChangeEvent],
        encoding: Encoding,
    ) {
        let Some(path) = disk_path(uri) else { return };
        let mut changes = given;
        match self.open.get_mut(&path) {
            // A message without changes still updates the version, because the client refuses edits
            // for an older version.
            Some(document) => document.version = version,
            None => {
                tracing::warn!(%uri, "a change came for a document that is not open");
                let whole = changes.iter().position(|change| change.range.is_none());
                let Some(whole) = whole else {
                    self.lost_openings.lost(&path);
                    return;
                };
                // The whole text is as good as the message that opened the document.
                changes = &changes[whole + 1..];
                self.opened(uri.clone(), version, &given[whole].text);
            }
        }
        for change in changes {
            let Some(document) = self.open.get_mut(&path) else {
                return;
            };
            document.whole.take();
            let splice = match change.range {
                None => {
                    let splice = Splice::between(&document.text.to_string(), &change.text);
                    document.text = Rope::from_str(&change.text);
                    document.sync = SyncState::InSync;
                    splice
                }
                Some(range) => splice(&mut document.text, range, &change.text, encoding),
            };
            document.moved(splice);
            // A client may send an applied edit and the user's next keystroke in one message.
            self.notify_watches(&path);
        }
        if self
            .open
            .get(&path)
            .is_some_and(|one| one.markers.is_some())
        {
            self.read_symbols(&path, REREAD_DELAY);
        }
        self.count.send_modify(|count| *count += 1);
    }

    /// Returns the path under which a file is open; `path` if it is not open. A file can have
    /// several paths because of links.
    fn name_of(&self, path: PathBuf, real: Option<PathBuf>) -> PathBuf {
        if self.open.contains_key(&path) || real.is_none() {
            return path;
        }
        let mut open = self.open.iter();
        let same = open.find(|(_, document)| document.real == real);
        same.map_or(path, |(name, _)| name.clone())
    }

    fn expect(
        &mut self,
        path: PathBuf,
        base: &str,
        after: Arc<str>,
        texts: TextHistory,
    ) -> ExpectReply {
        let open = match self.open.get(&path) {
            Some(document) if document.sync == SyncState::Uncertain => {
                return ExpectReply::Uncertain;
            }
            Some(document) if document.text != base => return ExpectReply::Stale,
            Some(document) => Some((document.uri.clone(), document.version)),
            None if self.lost_openings.may_be_open(&path) => return ExpectReply::Uncertain,
            None => None,
        };
        let (tell, arrived) = oneshot::channel();
        self.watches.retain(|watch| watch.texts.is_shared());
        self.watches.push(TextWaiter {
            path,
            after,
            texts,
            arrived: Some(tell),
        });
        match open {
            Some((uri, version)) => ExpectReply::Open {
                uri,
                version,
                arrived,
            },
            None => ExpectReply::Closed { arrived },
        }
    }

    /// Passes the current text of a document to the waiters for this document.
    fn notify_watches(&mut self, path: &PathBuf) {
        let Some(document) = self.open.get(path) else {
            return;
        };
        for watch in self.watches.iter_mut().filter(|watch| watch.path == *path) {
            let current = document.current();
            if current.text == watch.after
                && let Some(arrived) = watch.arrived.take()
            {
                reply_to(arrived, current.clone());
            }
            watch.texts.push(current.text);
        }
    }
}

/// Replaces a range of LSP positions in a text.
pub fn splice(text: &mut Rope, range: Range, insert: &str, encoding: Encoding) -> Splice {
    let offset = |at: tower_lsp::lsp_types::Position| {
        let position = Position {
            line: at.line,
            column: at.character,
        };
        offset_of(text, position, encoding)
    };
    let (start, end) = (offset(range.start), offset(range.end));
    let (start, end) = (start.min(end), start.max(end));
    let chars = text.byte_to_char(start)..text.byte_to_char(end);
    let at = chars.start;
    text.remove(chars);
    text.insert(at, insert);
    Splice {
        range: ByteRange::new(start, end),
        inserted: insert.len(),
    }
}

/// Sends a reply. The receiver may have stopped waiting.
fn reply_to<T>(reply: oneshot::Sender<T>, value: T) {
    if reply.send(value).is_err() {
        tracing::trace!("the receiver of this reply no longer waits");
    }
}
