//! What killed runs left in the files of a project, as the command line tells it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::half_applied::half_sets;
use super::misplaced::misplaced_changes;
use super::restore::{
    ended_regularly, read_records, recent, unrecorded_events, view_of, was_interrupted,
};
use super::unreviewed::{left_in_files, mark_kept};
use starling_history::{HalfSet, MisplacedChange};
use starling_platform::files::PathExt;
use starling_swarm::{Event, Record, RunId, Stamped};
use starling_syntax::SymbolPath;

/// A run of which a kill left something in the files.
#[derive(Debug, Clone)]
pub struct KilledRun {
    pub id: RunId,
    trajectory: PathBuf,
    /// The accepted sets that are only partly in the files.
    pub sets: Vec<HalfSet>,
    /// The edits at the wrong position.
    pub misplaced: Vec<MisplacedChange>,
    /// The symbols whose changes no person reviewed, unless the user keeps these changes.
    pub unreviewed: Vec<SymbolPath>,
}

impl KilledRun {
    /// Records that the user keeps the changes that no person reviewed.
    ///
    /// # Errors
    /// The record cannot be written.
    pub fn keep_unreviewed(&self) -> std::io::Result<()> {
        mark_kept(&self.trajectory)
    }
}

/// Returns the runs of a project of which a kill left something in the files, the newest first. Runs
/// that a program has open are left out. Nothing is recorded; what killed runs left when they created
/// files is removed.
pub fn killed_runs(trajectories: &Path, root: &Path) -> Vec<KilledRun> {
    let root = root.canonical().unwrap_or_else(|_| root.to_owned());
    let runs = recent(trajectories).into_iter();
    runs.filter_map(|path| killed_run(path, &root)).collect()
}

fn killed_run(trajectory: PathBuf, root: &Path) -> Option<KilledRun> {
    let file = File::open(&trajectory).ok()?;
    let mut lines = BufReader::new(&file);
    let mut line = String::new();
    lines.read_line(&mut line).ok()?;
    let first: Stamped = serde_json::from_str(&line).ok()?;
    let Record::Event(Event::RunStarted {
        run, root: about, ..
    }) = &first.record
    else {
        return None;
    };
    let is_elsewhere = Path::new(about) != root;
    if is_elsewhere || file.try_lock_shared().is_err() || ended_regularly(&trajectory) {
        return None;
    }
    let id = run.clone();
    let mut records = vec![first];
    read_records(&mut lines, &mut records)?;
    starling_history::remove_remains(&id, &records, root);
    drop(file);
    let is_interrupted = was_interrupted(&records, &trajectory);
    let misplaced = misplaced_changes(&records, root, &trajectory);
    for event in unrecorded_events(&records, root, &trajectory) {
        records.push(Stamped {
            seq: records.len() as u64,
            at_ms: 0,
            record: Record::Event(event),
        });
    }
    let sets = half_sets(&records, root);
    let unreviewed = match is_interrupted {
        true => left_in_files(&view_of(&records), root, &trajectory),
        false => Vec::new(),
    };
    let left_nothing = sets.is_empty() && misplaced.is_empty() && unreviewed.is_empty();
    (!left_nothing).then_some(KilledRun {
        id,
        trajectory,
        sets,
        misplaced,
        unreviewed,
    })
}
