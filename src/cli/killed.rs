//! What killed runs left in the files of a project, in lines for the user.

use std::path::Path;

use super::project::to_name;
use super::undo::symbols;
use super::view::summary::command;
use super::view::text::{Line, Style};
use starling_server::KilledRun;
use starling_swarm::RunId;

/// Tells what killed runs left in the files, and what the user can do about it.
pub fn left_by_kills(trajectories: &Path, root: &Path) -> Vec<Line> {
    killed_lines(
        &starling_server::killed_runs(trajectories, root),
        root,
        None,
    )
}

/// Like [`left_by_kills`], for known runs. `undoing` is the run that is being undone.
pub fn killed_lines(runs: &[KilledRun], root: &Path, undoing: Option<&RunId>) -> Vec<Line> {
    let mut lines = Vec::new();
    let repo = to_name(root);
    for run in runs {
        let id = &run.id.0;
        let is_undone = undoing == Some(&run.id);
        let undo = command(&format!("undo {id}"), repo);
        for set in &run.sets {
            let line = format!("! run {id}: {}", set.told());
            lines.push(Line::of(Style::Warning, &line));
        }
        for change in &run.misplaced {
            let line = format!("! run {id}: {}", change.told());
            lines.push(Line::of(Style::Warning, &line));
        }
        if !run.sets.is_empty() && !is_undone {
            let line = format!(
                "  complete it: `{}`; take back what is there: `{undo}`",
                command("review", repo)
            );
            lines.push(Line::plain(&line));
        }
        if !run.unreviewed.is_empty() && !is_undone {
            let line = format!(
                "! run {id}: interrupted; what it changed stays, and no person reviewed it: {}",
                symbols(&run.unreviewed)
            );
            lines.push(Line::of(Style::Warning, &line));
            let keep = command(&format!("review --keep {id}"), repo);
            let line = format!("  take it back: `{undo}`; keep it: `{keep}`");
            lines.push(Line::plain(&line));
        }
    }
    lines
}
