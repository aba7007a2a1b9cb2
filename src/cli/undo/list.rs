//! `starling undo --list`: the runs of a project.

use std::path::Path;

use serde::Serialize;

use super::super::Outcome;
use super::super::killed::left_by_kills;
use super::super::view::text::{Line, Style};
use super::{moment, print_json, say};
use starling_core::Editor;
use starling_history::{ChangeRecord, ChangeState, DiskEditor, PastRun, RunFile};
use starling_swarm::RunId;
use starling_text::harmless;

/// A run in the list.
#[derive(Serialize)]
struct RunListEntry {
    run: RunId,
    started: Option<String>,
    task: String,
    /// Number of proposals that were ever applied.
    applied: usize,
    /// Number of applied proposals that were undone, or whose changes are no longer in the files.
    undone: usize,
    /// Whether the run is in progress.
    running: bool,
    /// Why the trajectory cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<String>,
}

impl RunListEntry {
    async fn of(found: &RunFile, editor: &dyn Editor) -> RunListEntry {
        match PastRun::read(&found.path) {
            Ok(mut run) => {
                run.detect_unrecorded_changes(editor).await;
                let absent = run.absent(editor).await;
                let undone = |one: &&ChangeRecord| {
                    one.state != ChangeState::Applied || absent.contains(&one.proposal)
                };
                RunListEntry {
                    started: run.started().map(moment),
                    running: run.is_running(),
                    applied: run.changes.len(),
                    undone: run.changes.iter().filter(undone).count(),
                    run: run.id,
                    task: run.task,
                    damaged: None,
                }
            }
            Err(error) => RunListEntry {
                run: found.id.clone(),
                started: None,
                task: String::new(),
                applied: 0,
                undone: 0,
                running: false,
                damaged: Some(error.to_string()),
            },
        }
    }

    fn line(&self) -> Line {
        let task = self.task.trim().lines().next().unwrap_or_default();
        let line = Line::of(Style::Bold, &self.run.0).with(
            Style::Dim,
            &format!("  {}", self.started.as_deref().unwrap_or("?")),
        );
        let what = match (&self.damaged, self.applied, self.undone) {
            (Some(why), ..) => return line.with(Style::Bad, &format!("  {why}")),
            (None, 0, _) if self.running => "changed nothing so far".to_owned(),
            (None, 0, _) => "changed nothing".to_owned(),
            (None, applied, 0) => format!("{applied} applied"),
            (None, applied, undone) => format!("{applied} applied, {undone} undone"),
        };
        let what = if self.running {
            format!("still running: {what}")
        } else {
            what
        };
        line.and(&format!("  {what}  {}", harmless(task)))
    }
}

/// Lists the runs of the project, newest first.
pub(super) async fn list(trajectories: &Path, root: &Path, json: bool) -> anyhow::Result<Outcome> {
    let editor = DiskEditor::new(root);
    let mut listed = Vec::new();
    for found in starling_history::newest_first(trajectories, root) {
        listed.push(RunListEntry::of(&found, &editor).await);
    }
    let killed = left_by_kills(trajectories, root);
    if json {
        say(true, &killed)?;
        print_json(&listed)?;
        return Ok(Outcome::Settled);
    }
    let lines: Vec<Line> = listed.iter().map(RunListEntry::line).collect();
    match lines.is_empty() {
        true => say(false, &[Line::plain("no run of this project is recorded")])?,
        false => say(false, &lines)?,
    }
    say(false, &killed)?;
    Ok(Outcome::Settled)
}
