//! The simulated editor: buffers over the disk. It can be slow, refuse edits, or have a full or
//! read-only disk.

use std::sync::Arc;

use async_trait::async_trait;
use starling_core::{ApplyError, CurrentText, DocVersion, Editor, EditorError, Effect, FileEdit};
use starling_syntax::FilePath;

use super::world::World;

/// An editor over the user's simulated texts.
pub struct SimulatedEditor {
    pub world: Arc<World>,
}

impl SimulatedEditor {
    fn now(&self, file: &FilePath) -> Option<CurrentText> {
        let desk = self.world.desk();
        let version = desk.open.contains_key(file.as_str());
        let text = desk.text(file.as_str())?;
        Some(CurrentText {
            text: text.into(),
            version: version.then_some(DocVersion(1)),
        })
    }

    /// Returns the error of a disk or an editor that refuses an edit, if it does.
    fn refusal(&self, key: &str, file: &FilePath) -> Option<ApplyError> {
        let choices = &self.world.choices;
        let message = match () {
            () if choices.deviates(&format!("{key} disk full"), 3) => "no space left on device",
            () if choices.deviates(&format!("{key} read-only"), 3) => "permission denied",
            () if choices.deviates(&format!("{key} refuses"), 3) => "the editor gave no reason",
            () => return None,
        };
        Some(ApplyError::Refused {
            file: file.clone(),
            message: message.to_owned(),
        })
    }
}

#[async_trait]
impl Editor for SimulatedEditor {
    async fn current(&self, file: &FilePath) -> Result<CurrentText, EditorError> {
        let key = self.world.next_key(&format!("editor reads {file}"));
        self.world
            .wait(&key, self.world.plan.latencies.editor / 4)
            .await;
        self.now(file)
            .ok_or_else(|| EditorError::Missing { file: file.clone() })
    }

    async fn open_texts(&self) -> Result<Vec<(FilePath, Arc<str>)>, EditorError> {
        let key = self.world.next_key("editor lists its files");
        self.world
            .wait(&key, self.world.plan.latencies.editor / 4)
            .await;
        let desk = self.world.desk();
        let open = desk.open.iter();
        Ok(open
            .map(|(file, text)| (FilePath::new(file), text.as_str().into()))
            .collect())
    }

    async fn apply(&self, edit: FileEdit) -> Result<CurrentText, ApplyError> {
        let world = &self.world;
        let key = world.next_key(&format!("editor edits {}", edit.file));
        world
            .wait(&format!("{key} before"), world.plan.latencies.editor)
            .await;
        if let Some(refusal) = self.refusal(&key, &edit.file) {
            world.judge().edit_refused(&edit);
            return Err(refusal);
        }
        let file = edit.file.as_str();
        let outside = file.starts_with('/') || file.split('/').any(|part| part == "..");
        let now = match outside {
            true => None,
            false => self.now(&edit.file).map(|current| current.text),
        };
        let before = now.clone().unwrap_or_default();
        let fits = *before == *edit.base.text && (now.is_none() == (edit.effect == Effect::Create));
        if !fits {
            return Err(ApplyError::Stale {
                file: edit.file.clone(),
            });
        }
        let Ok(after) = edit.changes.apply(&before) else {
            return Err(ApplyError::Stale {
                file: edit.file.clone(),
            });
        };
        world.judge().edit_arrives(&edit, &before, &after);
        if !outside {
            let mut desk = world.desk();
            match edit.effect {
                Effect::Change | Effect::Create => desk.set(file, &after),
                Effect::Delete => desk.remove(file),
            }
        }
        let texts = world.desk().texts(&world.project);
        world.judge().edit_arrived(texts);
        let arrived = world.next_key("edit arrived");
        let kill = world.plan.killed_at_edit;
        if kill.is_some_and(|edit| arrived.ends_with(&format!(" #{edit}"))) {
            world.killed.notify_one();
            return std::future::pending().await;
        }
        world
            .wait(&format!("{key} after"), world.plan.latencies.editor)
            .await;
        Ok(CurrentText {
            text: after.into(),
            version: edit.base.version,
        })
    }
}
