//! An editor that writes to disk.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use starling_core::*;
use starling_syntax::FilePath;

/// The byte order mark, which the editor does not show.
const MARK: char = '\u{feff}';

/// An editor that writes accepted edits to the directory at once.
pub struct DiskEditor {
    pub(super) root: std::path::PathBuf,
    pub writes: Mutex<u32>,
    /// A change that the user makes to a file just before the next edit arrives.
    pub typing: Mutex<Option<(String, String)>>,
    /// A file whose next edit is refused.
    pub refuses: Mutex<Option<String>>,
    /// Whether every edit is refused.
    pub refuses_all: Mutex<bool>,
    /// Number of edits before which the user types a letter at the end of the file.
    pub typed_before_edits: Mutex<usize>,
    /// Delays of the next edits.
    pub delays: Mutex<VecDeque<Duration>>,
    /// Open files with unsaved texts. Edits are not written to them.
    pub unsaved: Mutex<HashMap<String, String>>,
}

#[async_trait]
impl Editor for DiskEditor {
    async fn current(&self, file: &FilePath) -> Result<CurrentText, EditorError> {
        match std::fs::read_to_string(self.root.join(file.as_str())) {
            Ok(text) => Ok(CurrentText {
                text: text.strip_prefix(MARK).unwrap_or(&text).into(),
                version: None,
            }),
            Err(_) => Err(EditorError::Missing { file: file.clone() }),
        }
    }

    async fn open_texts(&self) -> Result<Vec<(FilePath, Arc<str>)>, EditorError> {
        let unsaved = self.unsaved.lock().unwrap();
        let texts = unsaved.iter();
        let texts = texts.map(|(file, text)| (FilePath::new(file), text.as_str().into()));
        Ok(texts.collect())
    }

    async fn apply(&self, edit: FileEdit) -> Result<CurrentText, ApplyError> {
        let delay = self.delays.lock().unwrap().pop_front();
        tokio::time::sleep(delay.unwrap_or_default()).await;
        if let Some((file, text)) = self.typing.lock().unwrap().take() {
            std::fs::write(self.root.join(file), text).unwrap();
        }
        {
            let mut left = self.typed_before_edits.lock().unwrap();
            if *left > 0 {
                *left -= 1;
                let path = self.root.join(edit.file.as_str());
                let text = std::fs::read_to_string(&path).unwrap();
                let text = match text.strip_suffix("k\n") {
                    Some(text) => format!("{text}kk\n"),
                    None => format!("{text}# k\n"),
                };
                std::fs::write(path, text).unwrap();
            }
        }
        let refused = |file: &mut String| file == edit.file.as_str();
        if *self.refuses_all.lock().unwrap()
            || self.refuses.lock().unwrap().take_if(refused).is_some()
        {
            return Err(ApplyError::Refused {
                file: edit.file,
                message: "permission denied".to_owned(),
            });
        }
        let path = self.root.join(edit.file.as_str());
        let on_disk = std::fs::read_to_string(&path).unwrap_or_default();
        let now = on_disk.strip_prefix(MARK).unwrap_or(&on_disk);
        if *now != *edit.base.text {
            return Err(ApplyError::Stale { file: edit.file });
        }
        let text = edit.changes.apply(now).unwrap();
        let mark = &on_disk[..on_disk.len() - now.len()];
        let is_there = path.exists();
        match edit.effect {
            Effect::Change => assert!(is_there),
            Effect::Create => assert!(!is_there),
            Effect::Delete => assert!(text.is_empty()),
        }
        match edit.effect {
            Effect::Change | Effect::Create => {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, format!("{mark}{text}")).unwrap();
            }
            Effect::Delete => std::fs::remove_file(&path).unwrap(),
        }
        *self.writes.lock().unwrap() += 1;
        Ok(CurrentText {
            text: text.into(),
            version: None,
        })
    }
}
