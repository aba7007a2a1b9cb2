//! The open documents, owned by one actor. Handlers post to it in the order of the wire; only
//! `didChange` changes text.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ropey::Rope;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tower_lsp::lsp_types::{Range, TextDocumentContentChangeEvent, Url};

use super::editor::Texts;
use super::marks::{Marks, Splice};
use super::paths::disk_path;
use starling_core::{Current, DocVersion};
use starling_text::{ByteRange, Encoding, Position, offset_of};

/// Symbols are read again no sooner than this after the last time.
const REREAD: Duration = Duration::from_millis(200);

/// A message to the actor.
#[derive(Debug)]
pub enum Post {
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
    /// The name of an open document that is this file.
    Name {
        path: PathBuf,
        real: Option<PathBuf>,
        reply: oneshot::Sender<PathBuf>,
    },
    Read {
        path: PathBuf,
        reply: oneshot::Sender<Option<Current>>,
    },
    ReadAll {
        reply: oneshot::Sender<Vec<(PathBuf, Arc<str>)>>,
    },
    Expect {
        path: PathBuf,
        base: Arc<str>,
        after: Arc<str>,
        texts: Texts,
        reply: oneshot::Sender<Expected>,
    },
    See {
        path: PathBuf,
        reply: oneshot::Sender<Option<Sight>>,
    },
    /// A message of the client could not be read: it may have changed any open document.
    MessageLost,
    /// The symbols of a document were read.
    Marked {
        path: PathBuf,
        opening: Opening,
        marks: Marks,
    },
}

/// One opening of a document: what was read of it says nothing of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening(u64);

/// An open document with its symbols.
#[derive(Debug, Clone)]
pub struct Sight {
    /// As the client writes it.
    pub uri: Url,
    pub text: Rope,
    pub marks: Marks,
}

/// The answer to [`Desk::expect`]. `arrived` fires when the document has the expected text.
#[derive(Debug)]
pub enum Expected {
    /// The document is open and does not have the text of the base.
    Stale,
    /// A change of the document may have been lost, so its text may differ from the editor's.
    InDoubt,
    Open {
        uri: Url,
        version: DocVersion,
        arrived: oneshot::Receiver<Current>,
    },
    Closed {
        arrived: oneshot::Receiver<Current>,
    },
}

/// The actor is gone: the server is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server is shutting down")]
pub struct Gone;

/// Where messages to the actor are posted. Posting never waits.
#[derive(Debug, Clone)]
pub struct Desk {
    posts: mpsc::UnboundedSender<Post>,
    changes: watch::Receiver<u64>,
}

impl Desk {
    /// Starts the actor; it ends when the last desk is dropped. Symbols are read by `workers`.
    pub fn open(workers: Handle) -> Desk {
        let (posts, mut inbox) = mpsc::unbounded_channel();
        let (count, changes) = watch::channel(0);
        let mut documents = Documents {
            open: HashMap::new(),
            openings: 0,
            unseen: HashSet::new(),
            watches: Vec::new(),
            posts: posts.downgrade(),
            count,
            workers,
        };
        tokio::spawn(async move {
            while let Some(post) = inbox.recv().await {
                documents.take(post);
            }
        });
        Desk { posts, changes }
    }

    /// Counts changes of texts.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Posts; when the actor is gone, nobody needs the message any more.
    pub fn post(&self, post: Post) {
        if self.posts.send(post).is_err() {
            tracing::debug!("a message came after the end");
        }
    }

    /// The name by which a file is open, which may be that of a link to it or of where it leads; else its
    /// own.
    pub async fn name_of(&self, path: PathBuf) -> Result<PathBuf, Gone> {
        let real = tokio::fs::canonicalize(&path).await.ok();
        let (reply, answer) = oneshot::channel();
        self.post(Post::Name { path, real, reply });
        answer.await.map_err(|_| Gone)
    }

    /// The text of an open document.
    pub async fn read(&self, path: PathBuf) -> Result<Option<Current>, Gone> {
        let (reply, answer) = oneshot::channel();
        self.post(Post::Read { path, reply });
        answer.await.map_err(|_| Gone)
    }

    /// The texts of all open documents, as they are at this place in the order of messages.
    pub fn read_all(&self) -> oneshot::Receiver<Vec<(PathBuf, Arc<str>)>> {
        let (reply, answer) = oneshot::channel();
        self.post(Post::ReadAll { reply });
        answer
    }

    /// An open document with its symbols; they are read when nobody asked before.
    pub async fn see(&self, path: PathBuf) -> Result<Option<Sight>, Gone> {
        let (reply, answer) = oneshot::channel();
        self.post(Post::See { path, reply });
        answer.await.map_err(|_| Gone)
    }

    /// Checks that a document has the text `base`, and watches for the text `after`. Every text that the
    /// document has until then is put into `texts`.
    pub async fn expect(
        &self,
        path: PathBuf,
        base: Arc<str>,
        after: Arc<str>,
        texts: Texts,
    ) -> Result<Expected, Gone> {
        let (reply, answer) = oneshot::channel();
        self.post(Post::Expect {
            path,
            base,
            after,
            texts,
            reply,
        });
        answer.await.map_err(|_| Gone)
    }
}

#[derive(Debug)]
struct Document {
    /// As the client writes it.
    uri: Url,
    /// Where its name leads, when it was opened; `None`: it is no file yet.
    real: Option<PathBuf>,
    opening: Opening,
    version: DocVersion,
    text: Rope,
    marks: Option<Marks>,
    reading: Reading,
    /// Whether a change of the document may have been lost.
    agreement: Agreement,
    /// Who waits for the first marks.
    waiting: Vec<oneshot::Sender<Option<Sight>>>,
}

/// Whether a document has the text that the editor shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    Sure,
    /// Until the document is opened again or its whole text is sent.
    InDoubt,
}

/// Whether the symbols of a document are being read.
#[derive(Debug)]
enum Reading {
    Idle,
    /// With the edits since it began.
    UnderWay(Vec<Splice>),
}

impl Document {
    fn sight(&self, marks: &Marks) -> Sight {
        Sight {
            uri: self.uri.clone(),
            text: self.text.clone(),
            marks: marks.clone(),
        }
    }

    fn moved(&mut self, splice: Splice) {
        if let Some(marks) = &mut self.marks {
            marks.shift(&splice);
        }
        match &mut self.reading {
            Reading::Idle => {}
            Reading::UnderWay(since) => since.push(splice),
        }
    }

    fn current(&self) -> Current {
        Current {
            text: self.text.to_string().into(),
            version: Some(self.version),
        }
    }
}

#[derive(Debug)]
struct Watch {
    path: PathBuf,
    after: Arc<str>,
    texts: Texts,
    arrived: oneshot::Sender<Current>,
}

#[derive(Debug)]
struct Documents {
    open: HashMap<PathBuf, Document>,
    /// The number of documents that were opened so far.
    openings: u64,
    /// Documents that changed without having been opened: that message was lost.
    unseen: HashSet<PathBuf>,
    watches: Vec<Watch>,
    /// To itself.
    posts: mpsc::WeakUnboundedSender<Post>,
    count: watch::Sender<u64>,
    workers: Handle,
}

impl Documents {
    fn take(&mut self, post: Post) {
        match post {
            Post::Opened { uri, version, text } => self.opened(uri, version, &text),
            Post::Changed {
                uri,
                version,
                changes,
                encoding,
            } => self.changed(&uri, version, &changes, encoding),
            Post::Closed { uri } => {
                if let Some(path) = disk_path(&uri) {
                    self.open.remove(&path);
                    self.unseen.remove(&path);
                    self.count.send_modify(|count| *count += 1);
                }
            }
            Post::Name { path, real, reply } => answer(reply, self.name_of(path, real)),
            Post::Read { path, reply } => {
                answer(reply, self.open.get(&path).map(Document::current))
            }
            Post::ReadAll { reply } => {
                answer(reply, self.all_texts());
            }
            Post::Expect {
                path,
                base,
                after,
                texts,
                reply,
            } => answer(reply, self.expect(path, &base, after, texts)),
            Post::See { path, reply } => self.see(&path, reply),
            Post::MessageLost => {
                for document in self.open.values_mut() {
                    document.agreement = Agreement::InDoubt;
                }
            }
            Post::Marked {
                path,
                opening,
                marks,
            } => self.marked(&path, opening, marks),
        }
    }

    /// The texts of all open documents by their names, and where a name is a link also by the name of the
    /// file that it leads to.
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

    fn see(&mut self, path: &PathBuf, reply: oneshot::Sender<Option<Sight>>) {
        let Some(document) = self.open.get_mut(path) else {
            return answer(reply, None);
        };
        if let Some(marks) = &document.marks {
            return answer(reply, Some(document.sight(marks)));
        }
        document.waiting.push(reply);
        self.read_marks(path, Duration::ZERO);
    }

    /// Reads the symbols of a document, unless that is under way.
    fn read_marks(&mut self, path: &PathBuf, after: Duration) {
        let Some(document) = self.open.get_mut(path) else {
            return;
        };
        match document.reading {
            Reading::UnderWay(_) => return,
            Reading::Idle => document.reading = Reading::UnderWay(Vec::new()),
        }
        let (path, text, posts) = (path.clone(), document.text.clone(), self.posts.clone());
        let opening = document.opening;
        let place = path.clone();
        let read = move || Marks::read(&place, &text.to_string());
        let read = self.workers.spawn_blocking(read);
        tokio::spawn(async move {
            let marks = read.await.unwrap_or_default();
            tokio::time::sleep(after).await;
            if let Some(posts) = posts.upgrade() {
                // When the actor is gone, nobody needs the marks any more.
                let _ = posts.send(Post::Marked {
                    path,
                    opening,
                    marks,
                });
            }
        });
    }

    fn marked(&mut self, path: &PathBuf, opening: Opening, mut marks: Marks) {
        let document = self.open.get_mut(path);
        // A document that was closed and opened again may have another text.
        let Some(document) = document.filter(|document| document.opening == opening) else {
            return;
        };
        let since = match std::mem::replace(&mut document.reading, Reading::Idle) {
            Reading::Idle => Vec::new(),
            Reading::UnderWay(since) => since,
        };
        since.iter().for_each(|splice| marks.shift(splice));
        for reply in std::mem::take(&mut document.waiting) {
            answer(reply, Some(document.sight(&marks)));
        }
        document.marks = Some(marks);
        self.count.send_modify(|count| *count += 1);
        if !since.is_empty() {
            self.read_marks(path, REREAD);
        }
    }

    fn opened(&mut self, uri: Url, version: DocVersion, text: &str) {
        // A buffer that is no file on disk belongs to no workspace.
        let Some(path) = disk_path(&uri) else { return };
        let text = Rope::from_str(text);
        self.openings += 1;
        let document = Document {
            uri,
            real: path.canonicalize().ok(),
            opening: Opening(self.openings),
            version,
            text,
            marks: None,
            reading: Reading::Idle,
            agreement: Agreement::Sure,
            waiting: Vec::new(),
        };
        self.unseen.remove(&path);
        self.open.insert(path.clone(), document);
        self.count.send_modify(|count| *count += 1);
        self.notice(&path);
    }

    fn changed(
        &mut self,
        uri: &Url,
        version: DocVersion,
        changes: &[TextDocumentContentChangeEvent],
        encoding: Encoding,
    ) {
        let Some(path) = disk_path(uri) else { return };
        match self.open.get_mut(&path) {
            // Also without any change: an edit that names an old version is refused.
            Some(document) => document.version = version,
            None => {
                tracing::warn!(%uri, "a change came for a document that is not open");
                self.unseen.insert(path);
                return;
            }
        }
        for change in changes {
            let Some(document) = self.open.get_mut(&path) else {
                return;
            };
            let splice = match change.range {
                None => {
                    let splice = Splice::between(&document.text.to_string(), &change.text);
                    document.text = Rope::from_str(&change.text);
                    document.agreement = Agreement::Sure;
                    splice
                }
                Some(range) => splice(&mut document.text, range, &change.text, encoding),
            };
            document.moved(splice);
            // A client may send an applied edit and the user's next key in one message.
            self.notice(&path);
        }
        if self.open.get(&path).is_some_and(|one| one.marks.is_some()) {
            self.read_marks(&path, REREAD);
        }
        self.count.send_modify(|count| *count += 1);
    }

    /// The name of the open document that is a file, which may have several names by links.
    fn name_of(&self, path: PathBuf, real: Option<PathBuf>) -> PathBuf {
        if self.open.contains_key(&path) || real.is_none() {
            return path;
        }
        let mut open = self.open.iter();
        let same = open.find(|(_, document)| document.real == real);
        same.map_or(path, |(name, _)| name.clone())
    }

    fn expect(&mut self, path: PathBuf, base: &str, after: Arc<str>, texts: Texts) -> Expected {
        let open = match self.open.get(&path) {
            Some(document) if document.agreement == Agreement::InDoubt => {
                return Expected::InDoubt;
            }
            Some(document) if document.text != base => return Expected::Stale,
            Some(document) => Some((document.uri.clone(), document.version)),
            None if self.unseen.contains(&path) => return Expected::InDoubt,
            None => None,
        };
        let (tell, arrived) = oneshot::channel();
        self.watches.retain(|watch| !watch.arrived.is_closed());
        self.watches.push(Watch {
            path,
            after,
            texts,
            arrived: tell,
        });
        match open {
            Some((uri, version)) => Expected::Open {
                uri,
                version,
                arrived,
            },
            None => Expected::Closed { arrived },
        }
    }

    /// Tells those who watch for the text that a document has now.
    fn notice(&mut self, path: &PathBuf) {
        let Some(document) = self.open.get(path) else {
            return;
        };
        for watch in self.watches.iter().filter(|watch| watch.path == *path) {
            watch.texts.push(document.current().text);
        }
        let (met, left): (Vec<Watch>, Vec<Watch>) = std::mem::take(&mut self.watches)
            .into_iter()
            .partition(|watch| watch.path == *path && document.text == *watch.after);
        self.watches = left;
        for watch in met {
            answer(watch.arrived, document.current());
        }
    }
}

/// Replaces a range as an editor counts it.
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

/// Answers one who may have stopped waiting.
fn answer<T>(reply: oneshot::Sender<T>, value: T) {
    if reply.send(value).is_err() {
        tracing::trace!("nobody waits for this answer any more");
    }
}
