//! The workspace at one moment: a fixed list of files, and the unsaved texts of editor buffers,
//! which replace texts on disk. Each text is read once, and each syntax tree is parsed once.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::PathPolicy;
use super::Stamp;
use super::encoding::{EncodeError, UTF8_MARK, decode, encode};
use super::paths::{MAX_FILE_BYTES, ReadError, may_show};
use super::regular::read_bounded;
use super::stored::stored_bytes;
use super::unusual::UnusualPaths;
use super::walk::{FileListing, files};
use starling_syntax::{FilePath, SymbolTree};

/// Maximum size in bytes of a file on disk to whose form a text is brought. It is larger than the
/// limit for reading because the text may be much shorter.
const MAX_STORED_BYTES: u64 = 16 * MAX_FILE_BYTES;

/// Texts that replace files on disk. `None` means that the file does not exist.
pub type Overlay = BTreeMap<FilePath, Option<Arc<str>>>;

/// The bytes of files, as they are stored. `None` means that the file does not exist.
pub type FileContents = BTreeMap<FilePath, Option<Arc<[u8]>>>;

/// A text that cannot be stored in its file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct StoreError {
    pub file: FilePath,
    pub reason: EncodeError,
}

/// An immutable view of a workspace. The list of files is fixed at creation, and a file's text is
/// read at most once, so that all readers see the same text. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Snapshot {
    disk: Arc<Disk>,
    overlay: Arc<Overlay>,
    /// Cached texts and trees of the files in the overlay.
    buffers: HashMap<FilePath, Arc<Entry>>,
    files: Arc<[FilePath]>,
}

/// The state of a file's text, as far as it is known without reading the file.
#[derive(Debug, Clone, PartialEq)]
pub enum TextState {
    /// The text of a buffer, or of a file that is already read.
    Text(Arc<str>),
    /// The stamp of a listed file that is not read yet.
    OnDisk(Stamp),
    /// The file is not listed, or cannot be read.
    Nothing,
}

/// The listed files of a workspace on disk, with the texts that were read so far.
#[derive(Debug)]
struct Disk {
    policy: PathPolicy,
    /// Stamps of the listed files, ordered by path.
    stamps: Arc<[(FilePath, Stamp)]>,
    /// Text files that were found but not listed.
    skipped: Vec<ReadError>,
    /// Hidden text files that people write.
    hidden: Vec<FilePath>,
    /// The texts that the editor showed when the files were listed.
    shown: Overlay,
    /// The unusual paths of the listed files; unset until they are first needed.
    unusual: OnceLock<UnusualPaths>,
    entries: Mutex<HashMap<FilePath, Arc<Entry>>>,
}

/// Cached data of one file.
#[derive(Debug, Default)]
struct Entry {
    text: OnceLock<Result<Arc<str>, ReadError>>,
    tree: OnceLock<Arc<SymbolTree>>,
    /// Whether the file on disk had the stamp from the listing when its text was read. Set together
    /// with the text.
    is_as_listed: OnceLock<bool>,
}

impl Snapshot {
    /// Creates a snapshot of the listed files under the root of `policy`.
    pub(super) fn new(policy: PathPolicy, listing: FileListing, overlay: Overlay) -> Self {
        let FileListing {
            files: stamps,
            skipped,
            hidden,
            links,
            leftovers: _,
        } = listing;
        let policy = policy.with_links(&links);
        let files = stamps.iter().map(|(file, _)| file.clone()).collect();
        let disk = Disk {
            policy,
            stamps: stamps.into(),
            skipped,
            hidden,
            shown: overlay.clone(),
            unusual: OnceLock::new(),
            entries: Mutex::default(),
        };
        let bare = Snapshot {
            disk: Arc::new(disk),
            overlay: Arc::default(),
            buffers: HashMap::new(),
            files,
        };
        bare.over(overlay)
    }

    /// Returns a snapshot in which these texts replace those of this snapshot. The caches of other
    /// files are shared. If a text may not be shown, reading the file gives the error.
    fn over(&self, texts: Overlay) -> Snapshot {
        let mut files = self.files.to_vec();
        let mut buffers = self.buffers.clone();
        let mut overlay = Overlay::clone(&self.overlay);
        for (file, text) in texts {
            let shown = text.as_ref().map_or(Ok(()), |text| may_show(&file, text));
            let readable = self.disk.policy.may_read(&file).and(shown);
            if let Err(error) = readable {
                overlay.remove(&file);
                let entry = Entry {
                    text: Err(error).into(),
                    ..Entry::default()
                };
                buffers.insert(file, Arc::new(entry));
                continue;
            }
            match (files.binary_search(&file), &text) {
                (Err(place), Some(_)) => files.insert(place, file.clone()),
                (Ok(place), None) => drop(files.remove(place)),
                (Ok(_), Some(_)) | (Err(_), None) => {}
            }
            let known = text.clone().ok_or_else(|| ReadError::Missing(file.clone()));
            let entry = Entry {
                text: known.into(),
                ..Entry::default()
            };
            buffers.insert(file.clone(), Arc::new(entry));
            overlay.insert(file, text);
        }
        Snapshot {
            disk: self.disk.clone(),
            overlay: Arc::new(overlay),
            buffers,
            files: files.into(),
        }
    }

    /// Returns a snapshot in which `file` has this text, or does not exist.
    pub fn with(&self, file: FilePath, text: Option<Arc<str>>) -> Snapshot {
        self.over(Overlay::from([(file, text)]))
    }

    /// Returns a snapshot of the same files without the overlay.
    pub fn without_overlay(&self) -> Snapshot {
        let stamps = &self.disk.stamps;
        Snapshot {
            disk: self.disk.clone(),
            overlay: Arc::default(),
            buffers: HashMap::new(),
            files: stamps.iter().map(|(file, _)| file.clone()).collect(),
        }
    }

    pub fn root(&self) -> &Path {
        self.disk.policy.root()
    }

    /// Returns the path policy of the workspace.
    pub fn policy(&self) -> &PathPolicy {
        &self.disk.policy
    }

    /// Returns the files, ordered by path.
    pub fn files(&self) -> &[FilePath] {
        &self.files
    }

    /// Returns the files, and the hidden ones that people write, such as `.github/workflows/ci.yml`, which
    /// are not files of the project but can name its code.
    pub fn files_with_hidden(&self) -> Vec<&FilePath> {
        let is_new = |file: &&FilePath| self.files.binary_search(file).is_err();
        let hidden = self.disk.hidden.iter().filter(is_new);
        self.files.iter().chain(hidden).collect()
    }

    /// Returns the paths that contain unusual characters.
    pub fn unusual_paths(&self) -> UnusualPaths {
        let is_new = |file: &FilePath| self.disk.listed(file).is_none();
        let mut overlay = self.overlay.iter();
        if overlay.any(|(file, text)| text.is_none() || is_new(file)) {
            return UnusualPaths::of(&self.files, self.root());
        }
        let unusual = &self.disk.unusual;
        let listed = || UnusualPaths::of(&self.files, self.root());
        unusual.get_or_init(listed).clone()
    }

    /// Returns the stamps that the files on disk had when they were listed, ordered by path.
    pub fn stamps(&self) -> &Arc<[(FilePath, Stamp)]> {
        &self.disk.stamps
    }

    /// Lists the files on disk again, and returns their current stamps, ordered by path.
    pub fn stamps_now(&self) -> Vec<(FilePath, Stamp)> {
        files(self.root(), self.policy().caches()).files
    }

    /// Returns whether a file on disk still has a stamp.
    pub fn has_stamp(&self, file: &FilePath, stamp: &Stamp) -> bool {
        let found = self.root().join(file.as_str()).symlink_metadata();
        found.is_ok_and(|found| Stamp::of(&found) == *stamp)
    }

    /// Returns the text files that were found but not listed, with the reasons.
    pub fn skipped(&self) -> &[ReadError] {
        &self.disk.skipped
    }

    /// Returns the texts that replace files on disk.
    pub fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// Returns the texts that replace files on disk as the bytes that an editor saves: in the
    /// encoding and with the byte order mark and line ends that each file has on disk.
    ///
    /// # Errors
    /// A text cannot be stored in its file.
    pub fn contents(&self) -> Result<FileContents, StoreError> {
        let bytes = |file: &FilePath, text: &str| self.disk.stored(file, text).map(Arc::from);
        let overlay = self.overlay.iter();
        let contents = overlay.map(|(file, text)| {
            let text = text.as_ref();
            let bytes = text.map(|text| bytes(file, text)).transpose()?;
            Ok((file.clone(), bytes))
        });
        contents.collect()
    }

    /// Returns whether the file on disk starts with the UTF-8 byte order mark.
    pub fn is_marked(&self, file: &FilePath) -> bool {
        let mut start = [0; UTF8_MARK.len()];
        let read = self
            .disk
            .open(file)
            .map(|mut open| open.read_exact(&mut start));
        matches!(read, Ok(Ok(()))) && start == UTF8_MARK.as_bytes()
    }

    /// Checks whether a text can be stored in its file.
    ///
    /// # Errors
    /// The encoding of the file lacks a character, or it cannot be told.
    pub fn may_store(&self, file: &FilePath, text: &str) -> Result<(), StoreError> {
        self.disk.stored(file, text).map(|_| ())
    }

    /// Returns the text of a file with its original line breaks, without its byte order mark. Files
    /// that are not listed, such as ignored ones, can be read, too.
    ///
    /// # Errors
    /// See [`ReadError`]. A file that cannot be read stays unreadable in this snapshot.
    pub fn read(&self, file: &FilePath) -> Result<Arc<str>, ReadError> {
        self.text_of(&self.entry(file), file)
    }

    /// Returns the text of a buffer, or the text of a file that did not change on disk between the
    /// creation of the snapshot and the first read. Returns `None` if the file changed.
    pub fn read_unchanged(&self, file: &FilePath) -> Option<Arc<str>> {
        let entry = self.entry(file);
        let text = self.text_of(&entry, file).ok()?;
        let is_buffer = self.buffers.contains_key(file);
        (is_buffer || entry.is_as_listed.get() == Some(&true)).then_some(text)
    }

    /// Returns the state of a file's text without reading the file. If reading failed before, the
    /// state is [`TextState::Nothing`].
    pub fn held(&self, file: &FilePath) -> TextState {
        let entry = match self.buffers.get(file) {
            Some(entry) => Some(entry.clone()),
            None => self.disk.entries().get(file).cloned(),
        };
        if let Some(known) = entry.as_ref().and_then(|entry| entry.text.get()) {
            return known.clone().map_or(TextState::Nothing, TextState::Text);
        }
        let listed = self.disk.listed(file);
        listed.map_or(TextState::Nothing, TextState::OnDisk)
    }

    /// Returns the files whose text may differ between an earlier snapshot and this one, or `None` if
    /// they were not made from the same listing of the files on disk.
    pub fn differing(&self, earlier: &Snapshot) -> Option<BTreeSet<FilePath>> {
        if !Arc::ptr_eq(&self.disk, &earlier.disk) {
            return None;
        }
        let text = |snapshot: &Snapshot, file: &FilePath| {
            let entry = snapshot.buffers.get(file)?;
            entry.text.get().cloned()
        };
        let buffers = self.buffers.keys().chain(earlier.buffers.keys());
        let differs = |file: &&FilePath| text(self, file) != text(earlier, file);
        let mut found: BTreeSet<FilePath> = buffers.filter(differs).cloned().collect();
        // These changed on disk after they were listed, perhaps after they were read for an index.
        let entries = self.disk.entries();
        let read_late = entries
            .iter()
            .filter(|(_, entry)| entry.is_as_listed.get() == Some(&false));
        found.extend(read_late.map(|(file, _)| file.clone()));
        Some(found)
    }

    /// Reads the current text of a file on disk without caching it. Also returns the file's stamp,
    /// unless the file changed while it was read.
    pub fn glance(&self, file: &FilePath) -> Result<(String, Option<Stamp>), ReadError> {
        self.disk.read(file)
    }

    /// Returns the symbols of a file.
    ///
    /// # Errors
    /// The errors of [`Snapshot::read`], and [`ReadError::Unparsed`].
    pub fn tree(&self, file: &FilePath) -> Result<Arc<SymbolTree>, ReadError> {
        let entry = self.entry(file);
        let text = self.text_of(&entry, file)?;
        let parse = || Arc::new(SymbolTree::parse(file.clone(), text));
        let tree = entry.tree.get_or_init(parse).clone();
        match tree.is_unparsed() {
            true => Err(ReadError::Unparsed(file.clone())),
            false => Ok(tree),
        }
    }

    fn text_of(&self, entry: &Entry, file: &FilePath) -> Result<Arc<str>, ReadError> {
        entry
            .text
            .get_or_init(|| {
                let (text, stamp) = self.disk.read(file)?;
                let is_as_listed = stamp.is_some() && stamp == self.disk.listed(file);
                entry.is_as_listed.get_or_init(|| is_as_listed);
                Ok(text.into())
            })
            .clone()
    }

    fn entry(&self, file: &FilePath) -> Arc<Entry> {
        if let Some(entry) = self.buffers.get(file) {
            return entry.clone();
        }
        let mut entries = self.disk.entries();
        entries.entry(file.clone()).or_default().clone()
    }
}

impl Disk {
    /// Returns the stamp of a listed file.
    fn listed(&self, file: &FilePath) -> Option<Stamp> {
        let place = self.stamps.binary_search_by(|(listed, _)| listed.cmp(file));
        Some(self.stamps[place.ok()?].1)
    }

    fn read(&self, file: &FilePath) -> Result<(String, Option<Stamp>), ReadError> {
        read(self.open(file)?, file)
    }

    fn open(&self, file: &FilePath) -> Result<File, ReadError> {
        match self.listed(file) {
            Some(_) => self.policy.open_listed(file),
            None => self.policy.open(file),
        }
    }

    /// Returns a text as the bytes that an editor saves to the file.
    fn stored(&self, file: &FilePath, text: &str) -> Result<Vec<u8>, StoreError> {
        let path = Path::new(file.as_str());
        let on_disk = self.open(file).ok();
        let on_disk = on_disk.and_then(|open| read_bounded(open, MAX_STORED_BYTES).ok());
        let stored = match on_disk {
            Some(on_disk) => {
                let shown = self.shown.get(file).and_then(Option::as_deref);
                stored_bytes(path, &on_disk, shown.unwrap_or(text), text)
            }
            None => encode(path, text).map(Cow::into_owned),
        };
        stored.map_err(|reason| StoreError {
            file: file.clone(),
            reason,
        })
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<FilePath, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(mut file: File, path: &FilePath) -> Result<(String, Option<Stamp>), ReadError> {
    let failed = |error: std::io::Error| ReadError::io(path, &error);
    let before = Stamp::of(&file.metadata().map_err(failed)?);
    let too_large = |bytes: u64| ReadError::TooLarge {
        file: path.clone(),
        bytes,
    };
    if before.size > MAX_FILE_BYTES {
        return Err(too_large(before.size));
    }
    let mut bytes = Vec::with_capacity(before.size as usize + 1);
    let mut start = (&mut file).take(MAX_FILE_BYTES + 1);
    start.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large(bytes.len() as u64));
    }
    let after = Stamp::of(&file.metadata().map_err(failed)?);
    let stamp = (before == after && after.size == bytes.len() as u64).then_some(after);
    let text = decode(Path::new(path.as_str()), bytes).map_err(|reason| ReadError::NotText {
        file: path.clone(),
        reason,
    })?;
    Ok((text, stamp))
}

#[cfg(test)]
mod tests {
    use super::super::Workspace;
    use super::*;

    /// A workspace in a temporary directory.
    struct Fixture {
        dir: tempfile::TempDir,
        workspace: Workspace,
    }

    fn fixture(files: &[(&str, &str)]) -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path().to_owned()).unwrap();
        for (path, text) in files {
            std::fs::write(dir.path().join(path), text).unwrap();
        }
        Fixture { dir, workspace }
    }

    fn path(name: &str) -> FilePath {
        FilePath::new(name)
    }

    #[test]
    fn text_of_a_snapshot_stays_the_same_after_the_first_read() {
        let fixture = fixture(&[("a.py", "x = 1\r\n"), ("b.py", "b")]);
        let snapshot = fixture.workspace.snapshot(Overlay::new());
        let copy = snapshot.clone();
        assert_eq!(&*snapshot.read(&path("a.py")).unwrap(), "x = 1\r\n");
        std::fs::write(fixture.dir.path().join("a.py"), "other").unwrap();
        std::fs::write(fixture.dir.path().join("c.py"), "new").unwrap();
        assert_eq!(&*copy.read(&path("a.py")).unwrap(), "x = 1\r\n");
        assert_eq!(copy.files(), [path("a.py"), path("b.py")]);
        let later = fixture.workspace.snapshot(Overlay::new());
        assert_eq!(&*later.read(&path("a.py")).unwrap(), "other");
        assert_eq!(later.files().len(), 3);
    }

    #[test]
    fn overlay_texts_replace_files_on_disk() {
        let fixture = fixture(&[("a.py", "disk"), ("b.py", "gone")]);
        let snapshot = fixture.workspace.snapshot(Overlay::from([
            (path("a.py"), Some("buffer".into())),
            (path("b.py"), None),
            (path("new.py"), Some("new".into())),
        ]));
        assert_eq!(snapshot.files(), [path("a.py"), path("new.py")]);
        assert_eq!(&*snapshot.read(&path("a.py")).unwrap(), "buffer");
        assert_eq!(
            snapshot.read(&path("b.py")),
            Err(ReadError::Missing(path("b.py")))
        );

        let next = snapshot.with(path("b.py"), Some("back".into()));
        assert_eq!(&*next.read(&path("b.py")).unwrap(), "back");
        assert_eq!(next.files(), [path("a.py"), path("b.py"), path("new.py")]);
        assert_eq!(next.overlay().len(), 3);
        assert!(snapshot.read(&path("b.py")).is_err());

        let disk = next.without_overlay();
        assert_eq!(disk.files(), [path("a.py"), path("b.py")]);
        assert_eq!(&*disk.read(&path("a.py")).unwrap(), "disk");
        assert!(disk.overlay().is_empty());
    }

    #[test]
    fn overlay_text_of_a_forbidden_path_is_ignored() {
        let fixture = fixture(&[(".env", "SECRET=1"), ("a.py", "a")]);
        let outside = tempfile::NamedTempFile::new().unwrap();
        let root = fixture.dir.path();
        std::os::unix::fs::symlink(outside.path(), root.join("out.py")).unwrap();
        std::os::unix::fs::symlink(".env", root.join("notes.txt")).unwrap();
        let texts = [".env", "out.py", "notes.txt", ".git/config", "../x.py"];
        let overlay = texts.map(|name| (path(name), Some("SECRET=1".into())));
        let snapshot = fixture.workspace.snapshot(overlay.into());
        let later = fixture.workspace.snapshot(Overlay::new());
        for name in texts {
            let later = later.with(path(name), Some("SECRET=1".into()));
            for snapshot in [&snapshot, &later] {
                assert!(snapshot.read(&path(name)).is_err(), "{name}");
                assert!(snapshot.tree(&path(name)).is_err(), "{name}");
                assert_eq!(snapshot.held(&path(name)), TextState::Nothing);
                assert_eq!(snapshot.files(), [path("a.py")]);
                assert!(snapshot.overlay().is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn text_with_a_private_key_is_unreadable_on_disk_and_in_the_overlay() {
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n";
        let declared = format!("-----BEGIN PRIVATE KEY-----\n# coding: latin-1\n{key}");
        let fixture = fixture(&[
            ("key.txt", key),
            ("plain.txt", "hello\n"),
            ("c.py", &declared),
        ]);
        let snapshot = fixture.workspace.snapshot(Overlay::from([
            (path("key.txt"), Some(key.into())),
            (path("plain.txt"), Some(key.into())),
            (path("new.py"), Some(key.into())),
        ]));
        let later = fixture.workspace.snapshot(Overlay::new());
        let later = later.with(path("plain.txt"), Some("typed\n".into()));
        let later = later.with(path("plain.txt"), Some(key.into()));
        let later = later.with(path("new.py"), Some(key.into()));
        for snapshot in [snapshot, later] {
            for name in ["key.txt", "plain.txt", "new.py", "c.py"] {
                let why = may_show(&path(name), key).unwrap_err();
                assert_eq!(snapshot.read(&path(name)), Err(why.clone()), "{name}");
                assert_eq!(snapshot.tree(&path(name)).unwrap_err(), why, "{name}");
                assert_eq!(snapshot.held(&path(name)), TextState::Nothing, "{name}");
            }
            assert!(snapshot.overlay().is_empty());
            assert!(!snapshot.files().contains(&path("new.py")));
            let again = snapshot.with(path("plain.txt"), Some("back\n".into()));
            assert_eq!(&*again.read(&path("plain.txt")).unwrap(), "back\n");
        }
    }

    #[test]
    fn text_that_takes_too_long_to_parse_is_readable_but_has_no_tree() {
        let text = format!("x = 1{}\n", " \\\n".repeat(30_000));
        let fixture = fixture(&[("a.py", &text), ("b.py", "x = 1\n")]);
        let snapshot = fixture.workspace.snapshot(Overlay::new());
        let snapshot = snapshot.with(path("b.py"), Some(text.as_str().into()));
        for name in ["a.py", "b.py"] {
            let why = ReadError::Unparsed(path(name));
            assert_eq!(snapshot.tree(&path(name)).unwrap_err(), why);
            assert_eq!(&*snapshot.read(&path(name)).unwrap(), text);
        }
    }

    #[test]
    fn hard_link_to_a_secret_file_is_rejected_as_secret() {
        let fixture = fixture(&[(".env", "SECRET=1"), ("a.py", "a")]);
        let root = fixture.dir.path();
        std::fs::create_dir(root.join("docs")).unwrap();
        std::fs::hard_link(root.join(".env"), root.join("docs/notes.txt")).unwrap();
        std::fs::hard_link(root.join("a.py"), root.join("docs/b.py")).unwrap();
        let snapshot = fixture.workspace.snapshot(Overlay::new());
        let secret = ReadError::Secret(path("docs/notes.txt"));
        assert_eq!(snapshot.read(&path("docs/notes.txt")), Err(secret));
        assert_eq!(&*snapshot.read(&path("docs/b.py")).unwrap(), "a");
    }

    #[test]
    fn snapshot_with_a_changed_file_shares_texts_that_its_base_already_read() {
        let fixture = fixture(&[("a.py", "a"), ("b.py", "b")]);
        let snapshot = fixture.workspace.snapshot(Overlay::new());
        let next = snapshot.with(path("a.py"), Some("new".into()));
        let first = next.read(&path("b.py")).unwrap();
        assert!(Arc::ptr_eq(&first, &snapshot.read(&path("b.py")).unwrap()));
    }

    #[test]
    fn held_returns_the_state_of_a_file_without_reading_it() {
        let fixture = fixture(&[("a.py", "disk"), ("b.py", "b")]);
        let overlay = Overlay::from([(path("a.py"), Some("buffer".into()))]);
        let snapshot = fixture.workspace.snapshot(overlay);
        assert_eq!(
            snapshot.held(&path("a.py")),
            TextState::Text("buffer".into())
        );
        assert_eq!(snapshot.held(&path("none.py")), TextState::Nothing);
        let TextState::OnDisk(listed) = snapshot.held(&path("b.py")) else {
            panic!("nothing was read");
        };
        let (text, stamp) = snapshot.glance(&path("b.py")).unwrap();
        assert_eq!((text.as_str(), stamp), ("b", Some(listed)));
        // `glance` does not cache the text, but `read` does.
        assert_eq!(snapshot.held(&path("b.py")), TextState::OnDisk(listed));
        snapshot.read(&path("b.py")).unwrap();
        assert_eq!(snapshot.held(&path("b.py")), TextState::Text("b".into()));
        let gone = snapshot.with(path("b.py"), None);
        assert_eq!(gone.held(&path("b.py")), TextState::Nothing);
    }

    #[test]
    fn snapshots_of_one_listing_know_the_files_in_which_they_can_differ() {
        let fixture = fixture(&[("a.py", "a"), ("b.py", "b"), ("late.py", "old")]);
        let first = fixture.workspace.snapshot(Overlay::new());
        let differing = |one: &Snapshot, other: &Snapshot| {
            let found = one.differing(other)?.into_iter();
            Some(found.map(|file| file.to_string()).collect::<Vec<_>>())
        };
        let typed = first.with(path("a.py"), Some("typed".into()));
        let both = typed.with(path("new.py"), Some("new".into()));
        let gone = both.with(path("b.py"), None);
        assert_eq!(differing(&first, &first), Some(Vec::new()));
        assert_eq!(differing(&both, &typed).unwrap(), ["new.py"]);
        assert_eq!(
            differing(&first, &gone).unwrap(),
            ["a.py", "b.py", "new.py"]
        );
        let same = first.with(path("a.py"), Some("typed".into()));
        assert_eq!(differing(&same, &typed), Some(Vec::new()));
        std::fs::write(fixture.dir.path().join("late.py"), "longer").unwrap();
        first.read(&path("late.py")).unwrap();
        assert_eq!(differing(&typed, &first).unwrap(), ["a.py", "late.py"]);
        let again = fixture.workspace.snapshot(Overlay::new());
        assert_eq!(differing(&again, &first), None);
    }

    #[test]
    fn unusual_paths_include_those_of_buffers() {
        let fixture = fixture(&[("a b.py", "a"), ("c.py", "c")]);
        let listed = fixture.workspace.snapshot(Overlay::new());
        let words = |snapshot: &Snapshot| {
            let paths = snapshot.unusual_paths();
            paths.words("d e.py a b.py", char::is_whitespace).len()
        };
        assert_eq!(words(&listed), 3);
        let typed = listed.with(path("d e.py"), Some("d".into()));
        assert_eq!(words(&typed), 2);
        assert_eq!(words(&typed.with(path("a b.py"), None)), 3);
        assert_eq!(words(&listed.with(path("c.py"), Some("d".into()))), 3);
    }

    #[test]
    fn text_that_changed_on_disk_before_its_first_read_does_not_count_as_unchanged() {
        let names = ["read.py", "changed.py", "same.py", "open.py", "gone.py"];
        let fixture = fixture(&names.map(|name| (name, "old")));
        let overlay = Overlay::from([(path("open.py"), Some("buffer".into()))]);
        let snapshot = fixture.workspace.snapshot(overlay);
        snapshot.read(&path("read.py")).unwrap();
        for name in ["read.py", "changed.py", "open.py", "late.py"] {
            std::fs::write(fixture.dir.path().join(name), "longer").unwrap();
        }
        std::fs::remove_file(fixture.dir.path().join("gone.py")).unwrap();
        let of = |name: &str| snapshot.read_unchanged(&path(name));
        assert_eq!(of("read.py").as_deref(), Some("old"));
        assert_eq!(of("same.py").as_deref(), Some("old"));
        assert_eq!(of("open.py").as_deref(), Some("buffer"));
        for name in ["changed.py", "gone.py", "late.py"] {
            assert_eq!(of(name), None, "{name}");
        }
        // The text can still be read.
        assert_eq!(&*snapshot.read(&path("changed.py")).unwrap(), "longer");
        let with = snapshot.with(path("changed.py"), Some("typed".into()));
        let typed = with.read_unchanged(&path("changed.py"));
        assert_eq!(typed.as_deref(), Some("typed"));
    }

    #[test]
    fn read_error_gives_the_reason() {
        let fixture = fixture(&[(".env", "SECRET=1")]);
        let root = fixture.dir.path();
        std::fs::write(root.join("latin.py"), b"caf\xe9").unwrap();
        std::fs::write(root.join("wide.py"), b"\xff\xfea\0").unwrap();
        std::fs::write(root.join("declared.py"), b"# coding: latin-1\n# \xe9\r\n").unwrap();
        std::fs::write(root.join("long.py"), vec![b'x'; 1 << 21]).unwrap();
        std::fs::create_dir(root.join("sub")).unwrap();
        let snapshot = fixture.workspace.snapshot(Overlay::new());
        let message = |name: &str| snapshot.read(&path(name)).unwrap_err().to_string();
        assert!(message("latin.py").starts_with("latin.py: not UTF-8"));
        assert!(message("wide.py").starts_with("wide.py: UTF-16 text"));
        let declared = snapshot.read(&path("declared.py")).unwrap();
        assert_eq!(&*declared, "# coding: latin-1\n# é\r\n");
        assert!(message("long.py").contains("2097152 bytes"));
        assert!(message(".env").contains("secrets"));
        assert!(message("missing.py").contains("no such file"));
        assert!(message("sub").contains("not a file"));
        assert!(message("../x.py").contains("outside"));
    }

    #[test]
    fn syntax_trees_are_parsed_once_and_match_the_snapshot_text() {
        let fixture = fixture(&[("a.py", "def f(): pass\n"), ("b.py", "def b(): pass\n")]);
        let snapshot = fixture.workspace.snapshot(Overlay::new());
        let tree = snapshot.tree(&path("a.py")).unwrap();
        assert!(tree.find("f").is_some());
        assert!(Arc::ptr_eq(
            &tree,
            &snapshot.clone().tree(&path("a.py")).unwrap()
        ));
        let next = snapshot.with(path("a.py"), Some("def g(): pass\n".into()));
        assert!(next.tree(&path("a.py")).unwrap().find("f").is_none());
        assert!(next.tree(&path("a.py")).unwrap().find("g").is_some());
        // The older snapshot keeps its own text. The snapshots share the trees of unchanged files.
        assert!(snapshot.tree(&path("a.py")).unwrap().find("f").is_some());
        let shared = next.tree(&path("b.py")).unwrap();
        assert!(Arc::ptr_eq(&shared, &snapshot.tree(&path("b.py")).unwrap()));
        let gone = next.with(path("b.py"), None);
        assert_eq!(
            gone.tree(&path("b.py")).unwrap_err(),
            ReadError::Missing(path("b.py"))
        );
        assert_eq!(gone.files(), [path("a.py")]);
        assert_eq!(gone.overlay().len(), 2);
    }

    #[test]
    fn failed_read_of_a_snapshot_is_not_repeated() {
        let fixture = fixture(&[]);
        let snapshot = fixture.workspace.snapshot(Overlay::new());
        assert!(snapshot.read(&path("late.py")).is_err());
        std::fs::write(fixture.dir.path().join("late.py"), "x").unwrap();
        assert!(snapshot.read(&path("late.py")).is_err());
        let later = fixture.workspace.snapshot(Overlay::new());
        assert_eq!(&*later.read(&path("late.py")).unwrap(), "x");
    }

    #[test]
    fn overlay_is_stored_in_the_form_that_the_editor_showed_first() {
        let fixture = fixture(&[("plain.txt", "a\n"), ("closed.txt", "\u{feff}a\r\n")]);
        let root = fixture.dir.path();
        std::fs::write(root.join("latin.txt"), b"gr\xf6\xdfe\n").unwrap();
        let overlay = Overlay::from([
            (path("latin.txt"), Some("größe\n".into())),
            (path("plain.txt"), Some("ö\n".into())),
            (path("new.txt"), Some("ö\n".into())),
        ]);
        let snapshot = fixture.workspace.snapshot(overlay);
        let changed = snapshot.with(path("latin.txt"), Some("länge\n".into()));
        let changed = changed.with(path("closed.txt"), Some("b\r\n".into()));
        let changed = changed.with(path("plain.txt"), None);
        let contents = |snapshot: &Snapshot| {
            let contents = snapshot.contents().unwrap().into_iter();
            let named =
                contents.map(|(file, bytes)| (file.to_string(), bytes.map(|one| one.to_vec())));
            named.collect::<Vec<_>>()
        };
        let with = |latin: &[u8], plain: Option<&str>, closed: Option<&str>| {
            let bytes = |text: &str| text.as_bytes().to_vec();
            let closed = closed.map(|text| ("closed.txt".to_owned(), Some(bytes(text))));
            let others = [
                ("latin.txt".to_owned(), Some(latin.to_vec())),
                ("new.txt".to_owned(), Some(bytes("ö\n"))),
                ("plain.txt".to_owned(), plain.map(bytes)),
            ];
            closed.into_iter().chain(others).collect::<Vec<_>>()
        };
        let first = with(b"gr\xf6\xdfe\n", Some("ö\n"), None);
        assert_eq!(contents(&snapshot), first);
        let second = with(b"l\xe4nge\n", None, Some("\u{feff}b\r\n"));
        assert_eq!(contents(&changed), second);
        let cyrillic = changed.with(path("latin.txt"), Some("б\n".into()));
        let error = cyrillic.contents().unwrap_err();
        assert!(error.to_string().starts_with("latin.txt: "), "{error}");
        assert!(changed.may_store(&path("latin.txt"), "б\n").is_err());
        assert!(changed.may_store(&path("plain.txt"), "б\n").is_ok());
    }

    #[test]
    fn ignored_file_is_readable_but_not_listed() {
        let fixture = fixture(&[(".gitignore", "out.py\n"), ("out.py", "made")]);
        let snapshot = fixture.workspace.snapshot(Overlay::new());
        assert_eq!(snapshot.files(), []);
        assert_eq!(&*snapshot.read(&path("out.py")).unwrap(), "made");
        // All line breaks are part of the text, but not the byte order mark.
        std::fs::write(fixture.dir.path().join("odd.py"), "\u{feff}a\r\nb\rc").unwrap();
        assert_eq!(&*snapshot.read(&path("odd.py")).unwrap(), "a\r\nb\rc");
    }
}
