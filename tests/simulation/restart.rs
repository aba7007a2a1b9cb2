//! Checks after a kill: what the next start reads from the trajectory, and what an undo does to the
//! user's texts.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use starling_core::{ApplyError, CurrentText, Editor, EditorError, Effect, FileEdit};
use starling_history::{ChangeState, OpenRun, RunFile};
use starling_swarm::{ProposalId, RunId, Writing};
use starling_syntax::FilePath;

use super::judge::tokens;
use super::project::Texts;
use super::world::World;

/// Writes the trajectory more slowly than the run produces it, so that a kill loses the last
/// records.
pub async fn write(world: Arc<World>, mut records: Writing) {
    while let Some(record) = records.next().await {
        let key = world.next_key("trajectory");
        world.wait(&key, 3).await;
        let line = serde_json::to_string(&*record).unwrap();
        let mut trajectory = world.trajectory.lock().unwrap();
        trajectory.push_str(&line);
        trajectory.push('\n');
    }
}

/// An editor that changes the user's texts directly, for the undo after a kill. It never yields, so
/// that no task of the killed run can continue.
struct BufferEditor {
    world: Arc<World>,
}

#[async_trait]
impl Editor for BufferEditor {
    async fn current(&self, file: &FilePath) -> Result<CurrentText, EditorError> {
        let text = self.world.desk().text(file.as_str());
        let missing = || EditorError::Missing { file: file.clone() };
        Ok(CurrentText {
            text: text.ok_or_else(missing)?.into(),
            version: None,
        })
    }

    async fn apply(&self, edit: FileEdit) -> Result<CurrentText, ApplyError> {
        let after = edit.changes.apply(&edit.base.text).expect("it fits");
        let mut desk = self.world.desk();
        match edit.effect {
            Effect::Change | Effect::Create => desk.set(edit.file.as_str(), &after),
            Effect::Delete => desk.remove(edit.file.as_str()),
        }
        Ok(CurrentText {
            text: after.into(),
            version: None,
        })
    }
}

/// Reads the trajectory of the killed run, undoes all its changes, and checks the results.
pub async fn check(world: &Arc<World>, at_first: &Texts) {
    let root = world.desk().root.clone();
    let path = root.with_file_name("1-simulated.jsonl");
    std::fs::write(&path, world.trajectory.lock().unwrap().as_bytes()).unwrap();
    let found = RunFile {
        id: RunId("1-simulated".to_owned()),
        path,
    };
    let editor: Arc<dyn Editor> = Arc::new(BufferEditor {
        world: Arc::clone(world),
    });
    let mut open = OpenRun::open(&found, editor.as_ref(), &root).await.unwrap();
    let killed = world.desk().texts(&world.project);
    let touched: BTreeSet<String> = world.desk().typed.keys().cloned().collect();
    let known: BTreeSet<u32> = open.run.changes.iter().map(|one| one.proposal.0).collect();
    world.judge().check_known_after_kill(&known, &touched);
    let wanted: BTreeSet<ProposalId> = open.run.applied().map(|one| one.proposal).collect();

    let mut replayed = at_first.clone();
    let was_undone = |one: &starling_history::ChangeRecord| one.state == ChangeState::Undone;
    let is_plain = !open.run.changes.iter().any(was_undone) && !world.judge().took_back();
    for change in &open.run.changes {
        let made = change.made.as_ref().expect("its texts are recorded");
        let after = made.changes.apply(&made.before).unwrap();
        replayed.insert(made.file.to_string(), after);
    }
    if is_plain {
        // This includes files that an agent created, which are not part of the project.
        let now = |file: &String| world.desk().text(file);
        let differs =
            |file: &&String| !touched.contains(*file) && now(file) != replayed.get(*file).cloned();
        let files: Vec<&String> = replayed.keys().filter(differs).collect();
        world.judge().tree_after_kill(&files);
    }

    let outcome = open.undo(&editor, &root, &wanted).await;
    let undone = world.desk().texts(&world.project);
    // Changes that belong to the same set as a change of a touched file are not undone either.
    let stays = |file: &String| {
        let changes = open.run.changes.iter();
        let of_file = changes.filter(|one| {
            one.made
                .as_ref()
                .is_some_and(|made| made.file.as_str() == file)
        });
        let mut of_file = of_file.map(|one| one.proposal);
        let held = |id: ProposalId| {
            let mut refused = outcome.refused.iter();
            refused.any(|one| one.proposal == id && one.held.is_some())
        };
        of_file.any(held)
    };
    let is_back = |file: &&String| {
        touched.contains(*file) || stays(file) || undone.get(*file) == at_first.get(*file)
    };
    let not_back: Vec<&String> = at_first.keys().filter(|file| !is_back(file)).collect();
    let lost = |(file, text): (&String, &String)| {
        let now = undone
            .get(file)
            .map(|text| tokens(text))
            .unwrap_or_default();
        tokens(text).difference(&now).next().cloned()
    };
    let lost: Vec<String> = killed.iter().filter_map(lost).collect();
    world.judge().undone_after_kill(&not_back, &lost);
    let is_untouched = touched.is_empty();
    if is_untouched && !outcome.refused.is_empty() {
        let why = &outcome.refused[0].why;
        world.judge().undone_after_kill(&[why], &[]);
    }
}
