//! The open documents of a server, and the notifications that update them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use tower_lsp::lsp_types::Url;

use starling_syntax::FilePath;

/// Increment of versions. It exceeds 1, so that a server that counts versions itself does not match
/// the version of another text by chance.
const STRIDE: i64 = 7;

/// The method and parameters of a notification.
pub(super) type Notification = (&'static str, Value);

/// Texts that replace files on disk. `None` means that the file does not exist.
pub(super) type Texts<'a> = BTreeMap<&'a FilePath, Option<&'a Arc<str>>>;

/// The open documents of one server.
#[derive(Debug)]
pub(super) struct Documents {
    root: PathBuf,
    open: BTreeMap<FilePath, Arc<str>>,
    last: i64,
}

impl Documents {
    pub fn new(root: PathBuf) -> Self {
        Documents {
            root,
            open: BTreeMap::new(),
            last: 0,
        }
    }

    pub fn path(&self, file: &FilePath) -> PathBuf {
        self.root.join(file.as_str())
    }

    pub fn uri(&self, file: &FilePath) -> String {
        uri(&self.path(file))
    }

    /// Returns the notifications that set the open documents to exactly these texts, and the
    /// version of `asked`. `asked` always gets a new version, so that the server publishes its
    /// diagnostics again.
    pub fn sync(&mut self, texts: &Texts<'_>, asked: &FilePath) -> (Vec<Notification>, i64) {
        let mut told = self.close_others(texts);
        // Send the file's dependencies first.
        for (file, text) in texts.iter().filter(|(file, _)| **file != asked) {
            told.extend(self.put(file, text.cloned().unwrap_or_default(), Resend::No));
        }
        let text = texts.get(asked).copied().flatten().cloned();
        told.extend(self.put(asked, text.unwrap_or_default(), Resend::Yes));
        (told, self.last)
    }

    /// Returns the notifications that set the open documents to exactly these texts, without
    /// repeating unchanged ones.
    pub fn show(&mut self, texts: &Texts<'_>) -> Vec<Notification> {
        let mut told = self.close_others(texts);
        for (file, text) in texts {
            told.extend(self.put(file, text.cloned().unwrap_or_default(), Resend::No));
        }
        told
    }

    /// Whether the open documents are exactly these texts.
    pub fn has(&self, texts: &Texts<'_>) -> bool {
        let is_open = |(file, text): (&&FilePath, &Option<&Arc<str>>)| {
            let text = text.map_or("", |text| &**text);
            self.open.get(*file).is_some_and(|open| **open == *text)
        };
        self.open.len() == texts.len() && texts.iter().all(is_open)
    }

    fn close_others(&mut self, texts: &Texts<'_>) -> Vec<Notification> {
        let mut told = Vec::new();
        let gone: Vec<FilePath> = self
            .open
            .keys()
            .filter(|file| !texts.contains_key(file))
            .cloned()
            .collect();
        for file in gone {
            told.extend(self.close(&file));
        }
        told
    }

    fn close(&mut self, file: &FilePath) -> Vec<Notification> {
        self.open.remove(file);
        let document = json!({"uri": self.uri(file)});
        // The server reads the closed file from disk, where it may have changed.
        vec![
            ("textDocument/didClose", json!({"textDocument": document})),
            watched(&[(self.path(file), FileChangeKind::of(&self.path(file)))]),
        ]
    }

    fn put(&mut self, file: &FilePath, text: Arc<str>, anew: Resend) -> Option<Notification> {
        let uri = self.uri(file);
        match self.open.get_mut(file) {
            Some(open) if *open == text && anew == Resend::No => None,
            Some(open) => {
                self.last += STRIDE;
                let params = json!({
                    "textDocument": {"uri": uri, "version": self.last},
                    "contentChanges": [{"text": text}],
                });
                *open = text;
                Some(("textDocument/didChange", params))
            }
            None => {
                self.last += STRIDE;
                let document = json!({
                    "uri": uri,
                    "languageId": language(file),
                    "version": self.last,
                    "text": text,
                });
                self.open.insert(file.clone(), text);
                Some(("textDocument/didOpen", json!({"textDocument": document})))
            }
        }
    }

    pub fn is_open(&self, file: &FilePath) -> bool {
        self.open.contains_key(file)
    }
}

/// Whether to send an unchanged text again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resend {
    Yes,
    No,
}

/// The kind of a change to a file on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileChangeKind {
    Created,
    Changed,
    Deleted,
}

impl FileChangeKind {
    fn of(path: &Path) -> Self {
        match path.exists() {
            true => FileChangeKind::Changed,
            false => FileChangeKind::Deleted,
        }
    }
}

/// Creates a notification about changed files on disk.
pub(super) fn watched(files: &[(PathBuf, FileChangeKind)]) -> Notification {
    let change = |(path, fate): &(PathBuf, FileChangeKind)| {
        let kind = match fate {
            FileChangeKind::Created => 1,
            FileChangeKind::Changed => 2,
            FileChangeKind::Deleted => 3,
        };
        json!({"uri": uri(path), "type": kind})
    };
    let changes: Vec<Value> = files.iter().map(change).collect();
    (
        "workspace/didChangeWatchedFiles",
        json!({"changes": changes}),
    )
}

/// Returns the URI of an absolute path.
pub(super) fn uri(path: &Path) -> String {
    match Url::from_file_path(path) {
        Ok(uri) => uri.into(),
        // The conversion fails only for relative paths, and the root is absolute.
        Err(()) => format!("file://{}", path.display()),
    }
}

/// Returns the path of a file URI, in any of the formats that servers use.
pub(super) fn path(uri: &str) -> Option<PathBuf> {
    let uri = Url::parse(uri).ok()?;
    // A URI with another scheme may contain a file's path but have different text.
    (uri.scheme() == "file").then(|| uri.to_file_path().ok())?
}

fn language(file: &FilePath) -> &'static str {
    match file.as_str().rsplit_once('.') {
        Some((_, "py" | "pyi" | "pyw")) => "python",
        Some(_) | None => "plaintext",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sync(documents: &mut Documents, texts: &[(&str, Option<&str>)], asked: &str) -> Vec<String> {
        let owned: Vec<(FilePath, Option<Arc<str>>)> = texts
            .iter()
            .map(|(file, text)| (FilePath::new(*file), text.map(Arc::from)))
            .collect();
        let texts = owned
            .iter()
            .map(|(file, text)| (file, text.as_ref()))
            .collect();
        let (told, version) = documents.sync(&texts, &FilePath::new(asked));
        assert_eq!(documents.last, version);
        assert!(documents.is_open(&FilePath::new(asked)));
        let short = |(method, params): &Notification| {
            let method = method.rsplit('/').next().unwrap();
            let document = &params["textDocument"];
            let name = document["uri"]
                .as_str()
                .map_or("", |uri| uri.rsplit('/').next().unwrap());
            format!("{method} {name} {}", document["version"])
        };
        told.iter().map(short).collect()
    }

    #[test]
    fn sync_sends_only_changed_documents_and_the_requested_one() {
        let dir = tempfile::tempdir().unwrap();
        let mut documents = Documents::new(dir.path().to_owned());
        let told = sync(&mut documents, &[("a.py", Some("x"))], "a.py");
        assert_eq!(told, ["didOpen a.py 7"]);
        let both = [("a.py", Some("x")), ("b.py", Some("y"))];
        let told = sync(&mut documents, &both, "b.py");
        assert_eq!(told, ["didOpen b.py 14"]);
        // The requested file is sent again, after its possible dependencies.
        let changed = [("a.py", Some("x")), ("b.py", Some("z"))];
        let told = sync(&mut documents, &changed, "a.py");
        assert_eq!(told, ["didChange b.py 21", "didChange a.py 28"]);
        let told = sync(&mut documents, &[("a.py", Some("x"))], "a.py");
        assert_eq!(
            told,
            [
                "didClose b.py null",
                "didChangeWatchedFiles  null",
                "didChange a.py 35"
            ]
        );
    }

    #[test]
    fn show_does_not_resend_unchanged_documents() {
        let dir = tempfile::tempdir().unwrap();
        let mut documents = Documents::new(dir.path().to_owned());
        let file = FilePath::new("a.py");
        let (one, other): (Arc<str>, Arc<str>) = ("x".into(), "y".into());
        let texts = |text| Texts::from([(&file, Some(text))]);
        assert!(!documents.has(&texts(&one)));
        assert_eq!(documents.show(&texts(&one)).len(), 1);
        assert!(documents.has(&texts(&one)) && !documents.has(&texts(&other)));
        assert_eq!(documents.show(&texts(&one)), []);
        assert_eq!(documents.show(&texts(&other)).len(), 1);
        assert!(!documents.has(&Texts::new()));
    }

    #[test]
    fn deleted_file_is_opened_as_an_empty_document() {
        let dir = tempfile::tempdir().unwrap();
        let mut documents = Documents::new(dir.path().to_owned());
        let told = sync(
            &mut documents,
            &[("a.py", Some("x")), ("gone.py", None)],
            "a.py",
        );
        assert_eq!(told, ["didOpen gone.py 7", "didOpen a.py 14"]);
    }

    #[test]
    fn file_paths_survive_conversion_to_uris() {
        let odd = Path::new("/p/a b/ä+%41[x].py");
        assert_eq!(path(&uri(odd)).as_deref(), Some(odd));
        assert_eq!(
            path("file:///p/a%20b/%C3%A4%2B%2541%5Bx%5D.py").as_deref(),
            Some(odd)
        );
        assert_eq!(path("untitled:1"), None);
        assert_eq!(path("no uri"), None);
    }

    #[test]
    fn watched_file_events_use_the_lsp_change_types() {
        let (_, params) = watched(&[
            ("/a.py".into(), FileChangeKind::Created),
            ("/b.py".into(), FileChangeKind::Changed),
            ("/c.py".into(), FileChangeKind::Deleted),
        ]);
        let kinds: Vec<_> = params["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|change| change["type"].as_i64().unwrap())
            .collect();
        assert_eq!(kinds, [1, 2, 3]);
        assert_eq!(params["changes"][0]["uri"], "file:///a.py");
    }
}
