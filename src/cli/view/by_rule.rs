//! Formats a run without a model, such as a refactoring. Its proposals are parts of one change, so their
//! common data is printed once.

use super::state::{Proposal, RunState, changed_lines};
use super::story::{evidence_by_rule, proposal_with};
use super::text::{Line, Style};
use super::words;
use starling_swarm::ProposalId;

/// Maximum number of changed lines that are shown. The other changes are listed by file.
const LINES_MOST: usize = 60;

/// Formats the question whether to accept a change.
pub(super) fn question(id: ProposalId, made: &Proposal) -> Vec<Line> {
    let title = format!("change {id}");
    proposal_with(&title, made, evidence_by_rule)
}

/// Formats the evidence of a change that was accepted. The parts of a change that were checked together
/// have the same evidence.
pub(super) fn accepted(id: ProposalId, state: &RunState) -> Vec<Line> {
    let made = state.proposal(id);
    let Some(evidence) = made.and_then(|made| made.evidence.as_ref()) else {
        return Vec::new();
    };
    let together = evidence.together.iter();
    let mut others = together.flat_map(|together| &together.proposals);
    match state.is_reviewed_by_user(id) || others.any(|other| *other < id) {
        true => Vec::new(),
        false => evidence_by_rule(evidence),
    }
}

/// Formats an applied part of a change: its file, and the changed lines unless the user has seen them or too
/// many lines were printed.
pub(super) fn applied(id: ProposalId, diff: &str, state: &RunState) -> Vec<Line> {
    let changed: Vec<(String, String)> = changed_lines(diff).collect();
    let name = |path: &str| path.trim().trim_start_matches("b/").to_owned();
    let file = diff.lines().find_map(|line| line.strip_prefix("+++ "));
    let file = file.map_or_else(|| id.to_string(), name);
    let added = changed.iter().filter(|(_, line)| line.starts_with('+'));
    let count = words::count(added.count() as u64, "line");
    let mut lines = vec![
        Line::of(Style::Good, "✓ ")
            .with(Style::Bold, &file)
            .with(Style::Dim, &format!("  {count}")),
    ];
    if !state.is_reviewed_by_user(id) && state.applied_lines <= LINES_MOST {
        let shown = changed.iter().map(|(_, line)| {
            let style = match line.starts_with('+') {
                true => Style::Good,
                false => Style::Bad,
            };
            Line::of(style, &format!("  {line}"))
        });
        lines.extend(shown);
    }
    lines
}
