//! The session file of `starling ask`, at a path that the user chooses.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;

use super::WrongUse;
use starling_ask::session::Session;
use starling_platform::files::PathExt;
use starling_syntax::FilePath;
use starling_workspace::{
    PathPolicy, Snapshot, WriteRule, open_regular, private_file, read_text, write_given,
};

/// Maximum size in bytes of a session to resume.
const MAX_BYTES: u64 = 64 << 20;

/// A session file that is readable, if it exists, and writable.
pub struct SessionFile {
    path: PathBuf,
}

impl SessionFile {
    /// Checks the file before any costly work. Leaves no file behind. `root` is the project, whose links
    /// are not the user's: they may only lead to files that agents may write.
    ///
    /// # Errors
    /// [`WrongUse`] if the session cannot be written there.
    pub fn open(path: &Path, root: &Path) -> Result<SessionFile, WrongUse> {
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
        if let Some(why) = led_astray(path, root).map_err(wrong)? {
            let what = format!(
                "the session path {} leads through a link of the project to {why}: pass the path of another file",
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

/// Maximum number of links on the way to a file.
const LINKS_MOST: usize = 40;

/// Returns where the links of a project lead, if that is not a file that agents may write.
fn led_astray(path: &Path, root: &Path) -> io::Result<Option<String>> {
    let policy = PathPolicy::of(root);
    let mut real = PathBuf::new();
    let (mut links, mut is_led) = (0, false);
    let absolute = std::path::absolute(path)?;
    let mut waiting: Vec<PathBuf> = reversed(&absolute);
    while let Some(part) = waiting.pop() {
        let next = real.join(&part);
        let target = match part.components().next() {
            Some(Component::ParentDir) => {
                real.pop();
                continue;
            }
            Some(Component::Normal(_)) => next.read_link(),
            Some(Component::CurDir) | None => continue,
            Some(Component::Prefix(_) | Component::RootDir) => {
                real = next;
                continue;
            }
        };
        // Whatever is no link is a part of the real path, even if it does not exist.
        let Ok(target) = target else {
            real = next;
            continue;
        };
        links += 1;
        if links > LINKS_MOST {
            return Err(io::Error::other("too many links"));
        }
        is_led |= real.starts_with(policy.root());
        waiting.extend(reversed(&target));
    }
    let shown = real.display();
    let Ok(below) = real.strip_prefix(policy.root()) else {
        return Ok(is_led.then(|| format!("{shown}, outside of the project")));
    };
    let rule = match below.to_str() {
        Some(below) => policy.may_write(&FilePath::new(below)),
        None => return Ok(is_led.then(|| shown.to_string())),
    };
    Ok(match rule {
        _ if !is_led => None,
        WriteRule::Allowed => None,
        WriteRule::NeedsPerson { why } => Some(format!("{shown} ({why})")),
        WriteRule::Never { why } => Some(format!("{shown} ({why})")),
    })
}

/// Returns the parts of a path, the last one first.
fn reversed(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().rev();
    parts.map(|part| PathBuf::from(part.as_os_str())).collect()
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
            let file = SessionFile::open(&path, &root).unwrap();
            let session = file.read(&files).unwrap();
            file.keep(&session).unwrap();
            assert!(
                fs::read_to_string(&path).unwrap().starts_with('{'),
                "{name}"
            );
            SessionFile::open(&path, &root)
                .unwrap()
                .read(&files)
                .unwrap();
        }
    }

    #[test]
    fn links_of_the_project_do_not_lead_a_session_into_guarded_places() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonical().unwrap();
        let root = base.join("project");
        for folder in ["project/.git/hooks", "project/notes", "other"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        let link = |to: &str, from: &str| {
            std::os::unix::fs::symlink(to, base.join(from)).unwrap();
        };
        link(".git/hooks/pre-commit", "project/s.json");
        link("s.json", "project/t.json");
        link(".git/hooks", "project/hooks");
        link("../other/x.sh", "project/out.json");
        link("Makefile", "project/make.json");
        link("notes/s.json", "project/fine.json");
        link("loop.json", "project/loop.json");
        // The user's own links may lead anywhere.
        link("project/.git/hooks/pre-push", "mine.json");
        for name in [
            "s.json",
            "t.json",
            "hooks/pre-commit",
            "out.json",
            "make.json",
            "loop.json",
        ] {
            let opened = SessionFile::open(&root.join("notes/..").join(name), &root);
            assert!(opened.is_err(), "{name}");
        }
        let allowed = [
            root.join("fine.json"),
            root.join("plain.json"),
            base.join("mine.json"),
            root.join(".git/hooks/post-merge"),
        ];
        for path in allowed {
            SessionFile::open(&path, &root).unwrap();
        }
        assert_eq!(fs::read_dir(root.join(".git/hooks")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(base.join("other")).unwrap().count(), 0);
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
            let WrongUse(told) = SessionFile::open(&path, dir.path()).err().unwrap();
            assert!(told.contains("session "), "{told}");
        }
        SessionFile::open(&dir.path().join("folder/s.json"), dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path().join("folder")).unwrap().count(), 0);
    }
}
