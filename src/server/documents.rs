//! The open documents, owned by one actor. Handlers post to it in the order of the wire; only
//! `didChange` changes text.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use ropey::Rope;
use tokio::sync::{mpsc, oneshot};
use tower_lsp::lsp_types::{Range, TextDocumentContentChangeEvent, Url};

use crate::ports::{Current, DocVersion};
use crate::text::{Encoding, Position, offset_of};

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
        reply: oneshot::Sender<Expected>,
    },
}

/// The answer to [`Desk::expect`]. `arrived` fires when the document has the expected text.
#[derive(Debug)]
pub enum Expected {
    /// The document is open and does not have the text of the base.
    Stale,
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
}

impl Desk {
    /// Starts the actor; it ends when the last desk is dropped.
    pub fn open() -> Desk {
        let (posts, mut inbox) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut documents = Documents::default();
            while let Some(post) = inbox.recv().await {
                documents.take(post);
            }
        });
        Desk { posts }
    }

    /// Posts; when the actor is gone, nobody needs the message any more.
    pub fn post(&self, post: Post) {
        if self.posts.send(post).is_err() {
            tracing::debug!("a message came after the end");
        }
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

    /// Checks that a document has the text `base`, and watches for the text `after`.
    pub async fn expect(
        &self,
        path: PathBuf,
        base: Arc<str>,
        after: Arc<str>,
    ) -> Result<Expected, Gone> {
        let (reply, answer) = oneshot::channel();
        self.post(Post::Expect {
            path,
            base,
            after,
            reply,
        });
        answer.await.map_err(|_| Gone)
    }
}

#[derive(Debug)]
struct Document {
    /// As the client writes it.
    uri: Url,
    version: DocVersion,
    text: Rope,
}

impl Document {
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
    arrived: oneshot::Sender<Current>,
}

#[derive(Debug, Default)]
struct Documents {
    open: HashMap<PathBuf, Document>,
    watches: Vec<Watch>,
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
                if let Ok(path) = uri.to_file_path() {
                    self.open.remove(&path);
                }
            }
            Post::Read { path, reply } => {
                answer(reply, self.open.get(&path).map(Document::current))
            }
            Post::ReadAll { reply } => {
                let text = |(path, document): (&PathBuf, &Document)| {
                    (path.clone(), document.current().text)
                };
                answer(reply, self.open.iter().map(text).collect());
            }
            Post::Expect {
                path,
                base,
                after,
                reply,
            } => answer(reply, self.expect(path, &base, after)),
        }
    }

    fn opened(&mut self, uri: Url, version: DocVersion, text: &str) {
        // A buffer that was never a file belongs to no workspace.
        let Ok(path) = uri.to_file_path() else { return };
        let text = Rope::from_str(text);
        self.open
            .insert(path.clone(), Document { uri, version, text });
        self.notice(&path);
    }

    fn changed(
        &mut self,
        uri: &Url,
        version: DocVersion,
        changes: &[TextDocumentContentChangeEvent],
        encoding: Encoding,
    ) {
        let Ok(path) = uri.to_file_path() else { return };
        match self.open.get_mut(&path) {
            // Also without any change: an edit that names an old version is refused.
            Some(document) => document.version = version,
            None => tracing::warn!(%uri, "a change came for a document that is not open"),
        }
        for change in changes {
            let Some(document) = self.open.get_mut(&path) else {
                return;
            };
            match change.range {
                None => document.text = Rope::from_str(&change.text),
                Some(range) => splice(&mut document.text, range, &change.text, encoding),
            }
            // A client may send an applied edit and the user's next key in one message.
            self.notice(&path);
        }
    }

    fn expect(&mut self, path: PathBuf, base: &str, after: Arc<str>) -> Expected {
        let open = match self.open.get(&path) {
            Some(document) if document.text != base => return Expected::Stale,
            Some(document) => Some((document.uri.clone(), document.version)),
            None => None,
        };
        let (tell, arrived) = oneshot::channel();
        self.watches.retain(|watch| !watch.arrived.is_closed());
        self.watches.push(Watch {
            path,
            after,
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
pub fn splice(text: &mut Rope, range: Range, insert: &str, encoding: Encoding) {
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
}

/// Answers one who may have stopped waiting.
fn answer<T>(reply: oneshot::Sender<T>, value: T) {
    if reply.send(value).is_err() {
        tracing::trace!("nobody waits for this answer any more");
    }
}
