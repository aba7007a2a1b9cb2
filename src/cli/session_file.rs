//! The session file of `starling ask`, at a path that the user chooses.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::WrongUse;
use starling_ask::session::Session;
use starling_platform::files::PathExt;
use starling_workspace::{Snapshot, open_regular, private_file, read_text, write_given};

/// Maximum size in bytes of a session to resume.
const MAX_BYTES: u64 = 64 << 20;

/// A session file that is readable, if it exists, and writable.
pub struct SessionFile {
    path: PathBuf,
}

impl SessionFile {
    /// Checks the file before any costly work. Leaves no file behind.
    ///
    /// # Errors
    /// [`WrongUse`] if the session cannot be written there.
    pub fn open(path: &Path) -> Result<SessionFile, WrongUse> {
        let wrong = |error: io::Error| {
            WrongUse(format!(
                "cannot write the session file {}: {error}",
                path.display()
            ))
        };
        if path.file_name().is_none() {
            let what = format!(
                "the session path {} is not the name of a file",
                path.display()
            );
            return Err(WrongUse(what));
        }
        try_to_write(path).map_err(wrong)?;
        Ok(SessionFile {
            path: path.to_owned(),
        })
    }

    /// Reads the session, or creates one if there is no file.
    ///
    /// # Errors
    /// [`WrongUse`] if the file is not a valid session.
    pub fn read(&self, files: &Snapshot) -> Result<Session, WrongUse> {
        let wrong =
            |what: String| WrongUse(format!("session file {}: {what}", self.path.display()));
        let text = match read_text(&self.path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(wrong(error.to_string())),
        };
        if text.trim().is_empty() {
            return Ok(Session::new(files));
        }
        let session: Session = serde_json::from_str(&text).map_err(|error| {
            wrong(format!(
                "this file is not a session of `starling ask`: {error}"
            ))
        })?;
        session
            .resumed(files)
            .map_err(|error| wrong(error.to_string()))
    }

    /// Writes the session atomically.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, session: &Session) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(session)?;
        let write = || {
            fs::create_dir_all(directory(&self.path))?;
            write_given(&self.path, &text)
        };
        write().with_context(|| format!("cannot write the session file {}", self.path.display()))
    }
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        Some(_) | None => Path::new("."),
    }
}

/// Checks that a file can be created or replaced.
fn try_to_write(path: &Path) -> io::Result<()> {
    if path.exists() {
        // Opening a pipe would wait for its other end.
        open_regular(path)?;
        OpenOptions::new().append(true).open(path)?;
    }
    // A file behind a link is replaced in the directory of the link's target.
    let path = path.canonical().unwrap_or_else(|_| path.to_owned());
    let mut place = directory(&path);
    while !place.exists() {
        place = directory(place);
    }
    if !place.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let probe = place.join(format!(".starling-session-{}", std::process::id()));
    private_file(&probe)?;
    fs::remove_file(probe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_workspace::Workspace;

    #[test]
    fn session_can_be_saved_at_any_path() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonical().unwrap().join("project");
        fs::create_dir_all(root.join("deep")).unwrap();
        fs::write(root.join("a.py"), "x = 1\n").unwrap();
        fs::write(dir.path().join("empty.json"), "").unwrap();
        let files = Workspace::open(root.clone())
            .unwrap()
            .snapshot(Default::default());
        // A path outside the project, a name like a secret, a new directory, and an empty file.
        for name in [
            "deep/../../s.json",
            ".env",
            "new/er/s.json",
            "../empty.json",
        ] {
            let path = root.join(name);
            let file = SessionFile::open(&path).unwrap();
            let session = file.read(&files).unwrap();
            file.keep(&session).unwrap();
            assert!(
                fs::read_to_string(&path).unwrap().starts_with('{'),
                "{name}"
            );
            SessionFile::open(&path).unwrap().read(&files).unwrap();
        }
    }

    #[test]
    fn unwritable_session_path_is_reported_early_and_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        // Nobody reads the pipe, so opening it to write would wait forever.
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("pipe"), mode).unwrap();
        for name in ["file/s.json", "folder", "..", "file/deep/s.json", "pipe"] {
            let path = dir.path().join(name);
            let WrongUse(told) = SessionFile::open(&path).err().unwrap();
            assert!(told.contains("session "), "{told}");
        }
        SessionFile::open(&dir.path().join("folder/s.json")).unwrap();
        assert_eq!(fs::read_dir(dir.path().join("folder")).unwrap().count(), 0);
    }
}
