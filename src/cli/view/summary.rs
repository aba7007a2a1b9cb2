//! The summary at the end of a run.

use std::collections::BTreeSet;
use std::path::Path;

use super::state::{Finished, RunState, TestedText};
use super::story::diff;
use super::text::{Line, Style};
use super::words;
use starling_core::Role;
use starling_swarm::{MENTIONS_TOLD, NOT_ACCEPTED, Proof, StillMentioned, StopReason};
use starling_syntax::SymbolPath;

/// Whether the project still exists after the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectLifetime {
    Stays,
    /// The project was in a temporary directory, which is deleted.
    Temporary,
}

/// The files of a run that the summary names, for the user's next steps.
#[derive(Debug, Clone, Copy)]
pub struct Traces<'a> {
    pub trajectory: &'a Path,
    /// The project, if it is not found from the current directory.
    pub repo: Option<&'a Path>,
    pub tree: ProjectLifetime,
}

/// Formats the summary of a run.
pub fn summary(state: &RunState, traces: Traces<'_>) -> Vec<Line> {
    let Some(finished) = &state.finished else {
        return vec![Line::of(
            Style::Bad,
            "the run ended without a result, because the server exited",
        )];
    };
    let mut lines = vec![Line::new()];
    if !state.has_shown(&finished.diff) {
        lines.extend(diff(&finished.diff));
        lines.push(Line::new());
    }
    lines.extend(verdict(finished));
    lines.extend(hint(state, finished));
    if state.replayed {
        let label = "REPLAY: a recording answered in place of a model; tests and edits were real";
        lines.push(Line::of(Style::Warning, label));
    }
    let changed: Vec<String> = finished.applied.iter().map(ToString::to_string).collect();
    lines.push(field("changed", &words::few(&changed)));
    let tests = state.tests.as_deref().unwrap_or("none were run");
    let of = match state.tested_text {
        TestedText::BeforeLastChange if state.tests.is_some() => ", before the last change",
        TestedText::WithRevertedChanges if state.tests.is_some() => {
            ", with the changes that were taken back"
        }
        TestedText::WithSomeRevertedChanges if state.tests.is_some() => {
            ", with some of the changes that were taken back"
        }
        TestedText::BeforeRevertedChanges if state.tests.is_some() => {
            ", before the changes that were taken back"
        }
        TestedText::Current
        | TestedText::BeforeLastChange
        | TestedText::WithRevertedChanges
        | TestedText::WithSomeRevertedChanges
        | TestedText::BeforeRevertedChanges => "",
    };
    lines.push(field("tests", &format!("{tests}{of}")));
    // Another owner may have changed the symbol all the same.
    let not_woken = state.not_woken.iter().filter(|one| !changed.contains(one));
    let not_woken: Vec<String> = not_woken.cloned().collect();
    if !not_woken.is_empty() {
        lines.push(field("not woken", &words::few(&not_woken)));
    }
    let users = |owners: &BTreeSet<(SymbolPath, SymbolPath)>| {
        let users = owners.iter();
        let users = users.map(|(owner, changed)| format!("{owner} (uses {changed})"));
        words::few(&users.collect::<Vec<String>>())
    };
    if !state.missed.is_empty() {
        lines.push(field("not told", &users(&state.missed)));
    }
    if !state.unfollowed.is_empty() {
        let unfollowed = format!("{}, without a change", users(&state.unfollowed));
        lines.push(field("told", &unfollowed));
    }
    let cost = match state.replayed {
        true => "no cost: a recording answered".to_owned(),
        false => words::cost(&finished.spent),
    };
    let mut spent = words::spent(&finished.spent, &cost);
    if state.questions > 0 {
        let asked = words::count(u64::from(state.questions), "question");
        spent = format!("{spent} · {asked}");
    }
    lines.push(field("spent", &spent));
    // A deleted project needs no undo.
    if traces.tree == ProjectLifetime::Stays && !finished.diff.is_empty() {
        lines.push(field("undo", &command("undo", traces.repo)));
    }
    let trajectory = traces.trajectory.display().to_string();
    lines.push(field("story", &trajectory));
    if traces.tree == ProjectLifetime::Stays {
        lines.extend(waiting(finished.waiting, traces.repo));
    }
    lines
}

/// Returns a hint about proposals that wait for review.
pub fn waiting(count: usize, repo: Option<&Path>) -> Option<Line> {
    let what = match count {
        0 => return None,
        1 => "1 proposal waits for your review".to_owned(),
        many => format!("{many} proposals wait for your review"),
    };
    let line = format!("{what}: `{}`", command("review", repo));
    Some(Line::of(Style::Warning, &line))
}

/// Formats a command of this program for a shell.
pub fn command(name: &str, repo: Option<&Path>) -> String {
    match repo {
        Some(repo) => format!("starling {name} --repo {}", quoted(repo)),
        None => format!("starling {name}"),
    }
}

/// Returns advice if the local model was asked and failed the task.
fn hint(state: &RunState, finished: &Finished) -> Option<Line> {
    let is_local = |(role, name): &(Role, String)| {
        *role == Role::Agent && (name == "local" || name.starts_with("local:"))
    };
    let was_tried = match finished.stop_reason {
        StopReason::NothingChanged { .. }
        | StopReason::TestsFail { .. }
        | StopReason::ProblemsRemain { .. } => true,
        StopReason::Settled
        | StopReason::LedgerEmpty { .. }
        | StopReason::Cancelled
        | StopReason::Failed { .. } => false,
    };
    let is_not_done = (finished.ending.as_ref()).is_some_and(|end| end.proof == Proof::NotDone);
    let was_asked = finished.spent.calls > 0 && state.models.iter().any(is_local);
    let is_hint = was_asked && was_tried && is_not_done;
    let hint = "The local model is a small one; a larger one may do it: `--model`, `starling init`";
    is_hint.then(|| Line::of(Style::Dim, hint))
}

/// Says where all mentions of a name are listed, if the headline shows only some.
fn more_mentions(one: &StillMentioned) -> Option<Line> {
    let StillMentioned { name, count, .. } = one;
    let told = format!(
        "{count} places mention `{name}`: `ending` in the last line of the story, or of `--json`, lists them"
    );
    (*count > MENTIONS_TOLD).then(|| Line::of(Style::Dim, &told))
}

/// Formats the headline, followed by the rest of the reason in indented lines.
fn verdict(finished: &Finished) -> Vec<Line> {
    let why = words::stop_reason(&finished.stop_reason);
    let Some(ending) = &finished.ending else {
        let style = match finished.stop_reason.is_settled() {
            true => Style::Good,
            false => Style::Bad,
        };
        return why.lines().map(|line| Line::of(style, line)).collect();
    };
    let style = match ending.proof {
        Proof::Proven | Proof::AsBefore | Proof::NothingToProve => Style::Good,
        Proof::Unproven => Style::Warning,
        Proof::NotDone => Style::Bad,
    };
    let rest = match &finished.stop_reason {
        StopReason::NothingChanged { why } | StopReason::Failed { error: why } => {
            let first = why.lines().next().unwrap_or_default();
            // An answer is shown in full.
            let told = usize::from(ending.headline.contains(first));
            let mut rest: Vec<String> = why.lines().skip(told).map(str::to_owned).collect();
            if told == 0
                && ending.proof == Proof::NotDone
                && matches!(finished.stop_reason, StopReason::NothingChanged { .. })
                && !first.starts_with(NOT_ACCEPTED)
                && let Some(line) = rest.first_mut()
            {
                *line = format!("the agents say: {line}");
            }
            rest
        }
        StopReason::Settled
        | StopReason::TestsFail { .. }
        | StopReason::ProblemsRemain { .. }
        | StopReason::LedgerEmpty { .. }
        | StopReason::Cancelled => Vec::new(),
    };
    // Indented, so that no line of a model can be taken for a headline.
    let rest = rest
        .iter()
        .map(|line| Line::plain(format!("  {line}").trim_end()));
    std::iter::once(Line::of(style, &ending.headline))
        .chain(rest)
        .chain(ending.mentions.iter().filter_map(more_mentions))
        .collect()
}

fn field(name: &str, value: &str) -> Line {
    Line::of(Style::Dim, &format!("{name:>8}  ")).and(value)
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-".contains(char);
    match path.chars().all(plain) {
        true => path,
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}
