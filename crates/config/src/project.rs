//! A project's own configuration file. It is read only once, so that the loaded contents are the
//! trusted contents.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::layer::of_file;
use starling_text::ContentHash;
use starling_workspace::{MAX_FILE_BYTES, read_text};

/// The configuration file of a project, with the contents at the time of reading.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectFile {
    path: PathBuf,
    content: FileContent,
}

/// The content of a configuration file, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FileContent {
    Absent,
    Text(String),
    Unreadable(String),
}

/// Identifies the contents of a project's configuration file: a SHA-256 in hexadecimal, or a fixed
/// word if the file does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// Returns a fingerprint that matches no contents, so that the user is asked again.
    pub(super) fn unknown() -> Self {
        Fingerprint(String::new())
    }
}

/// Whether a program runs in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunsIn {
    Sandbox,
    /// The program runs with the user's rights, outside the sandbox.
    Open,
}

/// A setting in a project's file that starts a program.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramSetting {
    /// The setting as written in the file, for example `tests.command = "make test"`.
    pub setting: String,
    pub runs_in: RunsIn,
}

impl ProjectFile {
    /// Reads the configuration file of the project at `root`.
    pub fn of(root: &Path) -> Self {
        Self::at(root.join(".starling").join("config.toml"))
    }

    /// Reads the configuration file at this path.
    pub fn at(path: PathBuf) -> Self {
        let content = match read_text(&path, MAX_FILE_BYTES) {
            Ok(text) => FileContent::Text(text),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => FileContent::Absent,
                _ => FileContent::Unreadable(error.to_string()),
            },
        };
        ProjectFile { path, content }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn content(&self) -> &FileContent {
        &self.content
    }

    /// Returns the contents of the file, if it could be read.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            FileContent::Text(text) => Some(text),
            FileContent::Absent | FileContent::Unreadable(_) => None,
        }
    }

    /// Returns the fingerprint of the contents, which the user can trust; `None` if the file cannot
    /// be read.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        match &self.content {
            FileContent::Absent => Some(Fingerprint("no file".to_owned())),
            FileContent::Text(text) => Some(Fingerprint(ContentHash::of(text).as_str().to_owned())),
            FileContent::Unreadable(_) => None,
        }
    }

    /// Returns the settings of the file that start programs.
    pub fn starters(&self) -> Vec<ProgramSetting> {
        let leaves = of_file(&self.path, self.text().unwrap_or_default());
        let starter = |leaf: &super::layer::ConfigValue| {
            let runs_in = match leaf.key.as_str() {
                "language.servers" | "language.thorough" => RunsIn::Open,
                "tests.command" | "tests.setup" => RunsIn::Sandbox,
                _ => return None,
            };
            Some(ProgramSetting {
                setting: format!("{} = {}", leaf.key, leaf.value),
                runs_in,
            })
        };
        leaves.iter().flatten().filter_map(starter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> ProjectFile {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".starling")).unwrap();
        std::fs::write(dir.path().join(".starling/config.toml"), text).unwrap();
        ProjectFile::of(dir.path())
    }

    #[test]
    fn fingerprint_depends_only_on_the_file_content() {
        let one = file("[limits]\ncalls = 1\n").fingerprint().unwrap();
        assert_eq!(
            file("[limits]\ncalls = 1\n").fingerprint(),
            Some(one.clone())
        );
        assert_ne!(
            file("[limits]\ncalls = 2\n").fingerprint(),
            Some(one.clone())
        );
        let absent = ProjectFile::of(Path::new("/no/such/project"));
        let none = absent.fingerprint().unwrap();
        assert_ne!(none, one);
        assert_ne!(file("").fingerprint(), Some(none));
    }

    #[test]
    fn unreadable_config_file_has_no_fingerprint() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ProjectFile::at(dir.path().to_owned()).fingerprint(), None);
        let zero = ProjectFile::at("/dev/zero".into());
        assert!(matches!(zero.content, FileContent::Unreadable(_)));
        let long = dir.path().join("long.toml");
        std::fs::write(&long, " ".repeat(MAX_FILE_BYTES as usize + 1)).unwrap();
        assert_eq!(ProjectFile::at(long).fingerprint(), None);
    }

    #[test]
    fn settings_that_start_programs_are_listed() {
        let text = "[language]\nservers = [\"./serve --fast\"]\n[tests]\ncommand = \"make\"\n\
                    seconds = 3\n[limits]\ncalls = 1\n";
        let starter = |setting: &str, runs_in| ProgramSetting {
            setting: setting.to_owned(),
            runs_in,
        };
        assert_eq!(
            file(text).starters(),
            [
                starter("language.servers = [\"./serve --fast\"]", RunsIn::Open),
                starter("tests.command = \"make\"", RunsIn::Sandbox),
            ]
        );
        assert_eq!(file("not toml").starters(), []);
    }
}
