//! The projects whose own configuration the user trusts: a list in the user's state directory, by
//! project root. If the configuration file changes, the project is no longer trusted.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::project::{Fingerprint, ProjectFile};
use starling_workspace::{replace_private_file, state_dir};

/// The user's decision about a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustDecision {
    /// The configuration with these contents is trusted.
    Trusted(Fingerprint),
    /// The user refused to trust the project and is not asked again.
    Refused,
}

/// The trust that `--trust` gives to one process: it covers each project's configuration file with
/// the contents that the process read first. Clones share what was read.
#[derive(Debug, Clone, Default)]
pub struct ProcessTrust {
    /// The fingerprint by the path of the file; `None` for a file that could not be read.
    first: Arc<Mutex<HashMap<PathBuf, Option<Fingerprint>>>>,
}

impl ProcessTrust {
    /// Whether the file still has the contents that this process read first.
    pub fn covers(&self, file: &ProjectFile) -> bool {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let known = first.entry(file.path().to_owned());
        *known.or_insert_with(|| file.fingerprint()) == file.fingerprint()
    }
}

/// A decision as stored in the list.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredDecision {
    Decision(TrustDecision),
    LegacyDecision(LegacyDecision),
}

/// A decision stored by an earlier version, without the contents of the file.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum LegacyDecision {
    Trusted,
}

impl From<StoredDecision> for TrustDecision {
    fn from(kept: StoredDecision) -> Self {
        match kept {
            StoredDecision::Decision(decision) => decision,
            StoredDecision::LegacyDecision(LegacyDecision::Trusted) => {
                TrustDecision::Trusted(Fingerprint::unknown())
            }
        }
    }
}

/// Why the list of trusted projects cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("there is no home directory for the list of trusted projects; set HOME")]
    NoHome,
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: not a list of trusted projects ({message}); delete the file to start a new list", .path.display())]
    Malformed { path: PathBuf, message: String },
    #[error("{}: the path is not UTF-8, so the project cannot be added to the list of trusted projects; rename its directory", .0.display())]
    Unnameable(PathBuf),
}

/// The list of trusted projects in its file. The file is read again for each request because other
/// processes write it as well.
#[derive(Debug, Clone)]
pub struct TrustList {
    path: PathBuf,
}

impl TrustList {
    /// Returns the list of the current user: `starling/trusted.json` in `$XDG_STATE_HOME`, or else
    /// in `~/.local/state`; on Windows in `%LOCALAPPDATA%`.
    ///
    /// # Errors
    /// [`TrustError::NoHome`].
    pub fn of_user() -> Result<TrustList, TrustError> {
        let state = state_dir().ok_or(TrustError::NoHome)?;
        Ok(TrustList::at(state.join("trusted.json")))
    }

    pub fn at(path: PathBuf) -> TrustList {
        TrustList { path }
    }

    /// Returns the user's decision about the project at `root`.
    ///
    /// # Errors
    /// The list exists and cannot be read.
    pub fn decision(&self, root: &Path) -> Result<Option<TrustDecision>, TrustError> {
        let mut all = self.all()?;
        Ok(root.to_str().and_then(|root| all.remove(root)))
    }

    /// Returns all decisions by project root.
    ///
    /// # Errors
    /// The list exists and cannot be read.
    pub fn all(&self) -> Result<BTreeMap<String, TrustDecision>, TrustError> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(source) => return Err(self.io(source)),
        };
        let kept: Result<BTreeMap<String, StoredDecision>, _> = serde_json::from_str(&text);
        let kept = kept.map_err(|error| TrustError::Malformed {
            path: self.path.clone(),
            message: error.to_string(),
        })?;
        let decisions = kept.into_iter().map(|(root, kept)| (root, kept.into()));
        Ok(decisions.collect())
    }

    /// Stores a decision, or removes it if `decision` is `None`.
    ///
    /// # Errors
    /// The list cannot be read or written.
    pub fn decide(&self, root: &Path, decision: Option<TrustDecision>) -> Result<(), TrustError> {
        let Some(name) = root.to_str() else {
            return Err(TrustError::Unnameable(root.to_owned()));
        };
        let mut all = self.all()?;
        match decision {
            Some(decision) => drop(all.insert(name.to_owned(), decision)),
            None => drop(all.remove(name)),
        }
        self.write(&all).map_err(|source| self.io(source))
    }

    /// Writes the list atomically: a reader sees either the old or the new list.
    fn write(&self, all: &BTreeMap<String, TrustDecision>) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory)?;
        }
        replace_private_file(&self.path, &serde_json::to_vec_pretty(all)?)
    }

    fn io(&self, source: io::Error) -> TrustError {
        TrustError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusted() -> TrustDecision {
        let file = super::super::ProjectFile::of(Path::new("/no/such/project"));
        TrustDecision::Trusted(file.fingerprint().unwrap())
    }

    fn list(dir: &tempfile::TempDir) -> TrustList {
        TrustList::at(dir.path().join("state/starling/trusted.json"))
    }

    #[test]
    fn trust_decisions_are_stored_by_project_root_and_can_be_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (Path::new("/p/one"), Path::new("/p/other"));
        assert_eq!(list(&dir).decision(one).unwrap(), None);
        list(&dir).decide(one, Some(trusted())).unwrap();
        list(&dir)
            .decide(other, Some(TrustDecision::Refused))
            .unwrap();
        assert_eq!(list(&dir).decision(one).unwrap(), Some(trusted()));
        assert_eq!(
            list(&dir).decision(other).unwrap(),
            Some(TrustDecision::Refused)
        );
        let inside = list(&dir).decision(Path::new("/p/one/inner")).unwrap();
        assert_eq!(inside, None, "a project inside is another");
        list(&dir).decide(one, None).unwrap();
        assert_eq!(list(&dir).decision(one).unwrap(), None);
        assert_eq!(list(&dir).all().unwrap().len(), 1);
        let left: Vec<_> = fs::read_dir(dir.path().join("state/starling"))
            .unwrap()
            .collect();
        assert_eq!(left.len(), 1, "nothing half written stays: {left:?}");
    }

    #[test]
    fn trust_of_a_process_covers_each_file_as_it_was_first_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let write = |name: &str, text: &str| fs::write(path(name), text).unwrap();
        let trust = ProcessTrust::default();
        let covers = |name: &str| trust.clone().covers(&ProjectFile::at(path(name)));
        write("one", "[limits]\n");
        assert!(covers("one") && covers("one") && covers("two"));
        write("one", "[tests]\n");
        write("two", "[tests]\n");
        assert!(!covers("one") && !covers("two"), "changed, and created");
        write("one", "[limits]\n");
        assert!(covers("one"), "restored");
        fs::remove_file(path("one")).unwrap();
        assert!(!covers("one"), "removed");
        fs::create_dir(path("three")).unwrap();
        assert!(covers("three"), "unreadable from the start");
        fs::remove_dir(path("three")).unwrap();
        write("three", "[tests]\n");
        assert!(!covers("three"), "readable later");
    }

    #[test]
    fn trust_list_of_an_older_version_has_no_fingerprints() {
        let dir = tempfile::tempdir().unwrap();
        let list = list(&dir);
        fs::create_dir_all(list.path.parent().unwrap()).unwrap();
        fs::write(&list.path, r#"{"/p": "trusted", "/q": "refused"}"#).unwrap();
        let unknown = TrustDecision::Trusted(Fingerprint::unknown());
        assert_eq!(list.decision(Path::new("/p")).unwrap(), Some(unknown));
        let refused = list.decision(Path::new("/q")).unwrap();
        assert_eq!(refused, Some(TrustDecision::Refused));
        list.decide(Path::new("/p"), Some(trusted())).unwrap();
        assert_eq!(list.decision(Path::new("/p")).unwrap(), Some(trusted()));
    }

    #[test]
    fn trust_list_is_readable_only_by_the_user() {
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().unwrap();
        let list = list(&dir);
        list.decide(Path::new("/p"), Some(trusted())).unwrap();
        let mode = fs::metadata(&list.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn invalid_trust_list_is_an_error_and_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let list = list(&dir);
        fs::create_dir_all(list.path.parent().unwrap()).unwrap();
        for text in ["", "[]", "{\"/p\": \"maybe\"}"] {
            fs::write(&list.path, text).unwrap();
            let error = list.decision(Path::new("/p")).unwrap_err().to_string();
            assert!(error.contains("trusted.json: not a list"), "{error}");
            assert!(list.decide(Path::new("/q"), Some(trusted())).is_err());
            assert_eq!(fs::read_to_string(&list.path).unwrap(), text);
        }
        fs::remove_file(&list.path).unwrap();
        fs::create_dir(&list.path).unwrap();
        assert!(matches!(list.all(), Err(TrustError::Io { .. })));
    }

    #[test]
    fn trust_list_rejects_a_path_that_is_not_utf_8() {
        use std::os::unix::ffi::OsStrExt;

        let dir = tempfile::tempdir().unwrap();
        let root = Path::new(std::ffi::OsStr::from_bytes(b"/p/\xff"));
        assert_eq!(list(&dir).decision(root).unwrap(), None);
        let error = list(&dir).decide(root, Some(trusted())).unwrap_err();
        assert!(error.to_string().contains("not UTF-8"), "{error}");
    }
}
