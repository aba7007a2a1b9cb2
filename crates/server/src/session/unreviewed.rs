//! Changes that an interrupted run applied and that no person reviewed: tells the user which of them
//! stay, and offers to take them back.

use std::path::Path;
use std::sync::Arc;

use super::front_end::FrontEnd;
use super::run_view::{AppliedEdit, RunView, TextSource, short};
use super::{RunOrigin, RunSession};
use starling_history::DiskEditor;
use starling_swarm::RunId;
use starling_syntax::SymbolPath;
use starling_workspace::private_file;

/// The answers to the question whether changes stay.
const UNDO: &str = "Undo";
const KEEP: &str = "Keep";

/// The extension of the file which marks that the user keeps what an interrupted run changed.
const KEPT_EXTENSION: &str = "reviewed";

/// Returns the changed symbols of an interrupted run whose changes no person reviewed and that are in
/// the files; none if the user has decided to keep them.
pub fn left_in_files(view: &RunView, root: &Path, trajectory: &Path) -> Vec<SymbolPath> {
    if trajectory.with_extension(KEPT_EXTENSION).exists() {
        return Vec::new();
    }
    let disk = DiskEditor::new(root);
    let is_there = |edit: &AppliedEdit, id| {
        let beside = view.applied.values();
        let beside = beside.filter(|other| other.stands() && other.file == edit.file);
        let beside: Vec<&AppliedEdit> = beside.collect();
        let text = disk.read_as_shown(&edit.file, edit.shown());
        text.is_ok_and(|text| {
            edit.undo_event(id, (&text, TextSource::Disk), &beside)
                .is_none()
        })
    };
    let unreviewed = view.unreviewed();
    let left = unreviewed.filter(|(id, _)| {
        let edit = view.applied.get(id);
        edit.is_some_and(|edit| is_there(edit, *id))
    });
    let mut symbols: Vec<SymbolPath> = left.flat_map(|(_, one)| one.symbols.clone()).collect();
    symbols.sort();
    symbols.dedup();
    symbols
}

/// Marks that the user keeps what an interrupted run changed.
pub fn mark_kept(trajectory: &Path) -> std::io::Result<()> {
    private_file(&trajectory.with_extension(KEPT_EXTENSION)).map(|_| ())
}

impl RunSession {
    /// Tells the user which changes of an interrupted run stay although no person reviewed them, and
    /// offers to take them back.
    pub(super) async fn offer_undo(
        &self,
        (run, task): (&RunId, &str),
        unreviewed: &[SymbolPath],
        front_end: &Arc<dyn FrontEnd>,
    ) {
        let names: Vec<String> = unreviewed.iter().map(ToString::to_string).collect();
        let text = format!(
            "Starling: a run was interrupted. What it changed stays, and no person reviewed it: {}. An \
             undo of the run takes it back: {}",
            names.join(", "),
            short(task)
        );
        if !front_end.shows_buttons() {
            front_end.warn(text).await;
            return;
        }
        let (session, front_end) = (self.clone(), Arc::clone(front_end));
        let run = run.clone();
        self.spawn_while_connected(async move {
            let chosen = match front_end.choose(text, &[UNDO, KEEP]).await {
                Some(UNDO) => session.undo(&run, None).map_err(|error| error.to_string()),
                Some(_) => mark_kept(&session.trajectory(&run))
                    .map_err(|error| format!("you will be asked again: {error}")),
                None => Ok(()),
            };
            if let Err(error) = chosen {
                front_end.warn(format!("Starling: {error}")).await;
            }
        });
    }

    /// Returns the interrupted runs with changes that no person reviewed, and their tasks.
    pub fn unreviewed_runs(&self) -> Vec<(RunId, String)> {
        let entries = self.lock();
        let runs = entries.iter().filter(|(_, entry)| {
            entry.origin == RunOrigin::Restored && entry.view.unreviewed().next().is_some()
        });
        runs.map(|(id, entry)| (RunId(id.clone()), entry.params.task.clone()))
            .collect()
    }
}
