//! Registers new proposals and describes them: event, diff and initial evidence.

use std::sync::Arc;

use crate::check::checks::contract_changes;
use crate::check::{checks, lsp_hints};
use crate::contract::follow_up;
use crate::event::events::{Event, TestPhase};
use crate::evidence::check_results::DiagnosticEvidence;
use crate::evidence::ids::ProposalId;
use crate::evidence::proposal::Evidence;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::awaited;
use crate::protocol::Propose;
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use starling_core::TestReport;
use starling_syntax::{SymbolPath, SymbolTree};
use starling_text::{deleted_file_diff, unified_diff, visible};

/// Registers a new proposal of an agent with the status "waiting".
pub(crate) fn make(
    run: &RunContext,
    agent: &AgentState,
    change: Propose,
    draft: Draft,
) -> Proposal {
    let mut proposal = run.proposals().make(agent.actor.clone(), change, draft);
    proposal.revises = agent.rejected;
    follow_up::note_followed(run, proposal.id, &agent.actor);
    proposal
}

/// Logs a new proposal with its diff against the current text.
pub(crate) fn announce(run: &RunContext, proposal: &mut Proposal) {
    proposal.diff = own_diff(&proposal.draft, &before_text(run, &proposal.draft));
    run.event(proposal.announcement());
}

/// Returns the evidence for a draft that was checked only together with others.
pub(crate) fn unchecked(draft: &Draft) -> Evidence {
    let tests = TestEvidence::Unknown {
        reason: "it was checked together with the others".to_owned(),
    };
    draft.evidence(tests, DiagnosticEvidence::default())
}

pub(crate) fn tell_checked(run: &RunContext, id: ProposalId, evidence: &Evidence) {
    run.event(Event::ProposalChecked {
        proposal: id,
        evidence: evidence.clone(),
    });
}

pub(crate) async fn check(
    run: &Arc<RunContext>,
    draft: &Draft,
    id: ProposalId,
) -> (Evidence, Option<TestReport>) {
    lsp_hints::for_follow_ups(run, &draft.breaking).await;
    let callers = callers_of(run, draft);
    run.disk.check_begins([id]);
    let (mut evidence, report) = checks::check(run, draft, callers).await;
    note_other_callers(run, draft, &mut evidence);
    evidence.diagnostics = awaited::of_draft(run, draft, evidence.diagnostics);
    if let Some(report) = report.clone() {
        run.event(Event::TestsRun {
            phase: TestPhase::Proposal,
            proposal: Some(id),
            report,
        });
    }
    (evidence, report)
}

fn callers_of(run: &RunContext, draft: &Draft) -> Vec<SymbolPath> {
    let owners = follow_up::owners_of_broken(run, draft);
    owners.into_iter().take(follow_up::OWNERS_MOST).collect()
}

fn note_other_callers(run: &RunContext, draft: &Draft, evidence: &mut Evidence) {
    evidence.test_callers = follow_up::broken_tests(run, draft);
    evidence.callers_kept = follow_up::owners_that_keep(run, draft, &evidence.callers);
    evidence.indirect_callers = follow_up::indirect_callers(run, draft, evidence);
}

/// Adds the callers of the changed contracts to the evidence for a draft.
pub(crate) async fn note_callers(run: &Arc<RunContext>, draft: &Draft, evidence: &mut Evidence) {
    lsp_hints::for_follow_ups(run, &draft.breaking).await;
    evidence.callers = callers_of(run, draft);
    note_other_callers(run, draft, evidence);
}

/// Replaces the callers in the evidence for a draft by those in the current workspace, because some
/// of them may have followed since the checks.
pub(crate) fn renew_callers(run: &RunContext, draft: &Draft, evidence: &mut Evidence) {
    if !draft.breaking.is_empty() {
        evidence.callers = callers_of(run, draft);
        note_other_callers(run, draft, evidence);
    }
}

/// Adds the callers of the contracts that a draft changes by rule. They are parts of the same change,
/// so the draft itself counts as one that breaks no other code.
pub(crate) fn note_callers_by_rule(run: &RunContext, draft: &Draft, evidence: &mut Evidence) {
    if draft.contract.is_empty() {
        return;
    }
    let tree = |text: &Arc<str>| SymbolTree::parse(draft.file.clone(), Arc::clone(text));
    let (before, after) = (tree(&draft.base), tree(&draft.text));
    let (_, breaking) = contract_changes(&before, &after, &draft.symbols);
    let breaking = Draft {
        breaking,
        ..draft.clone()
    };
    evidence.callers = callers_of(run, &breaking);
}

/// Returns the current text of the draft's file, for the diff.
pub(crate) fn before_text(run: &RunContext, draft: &Draft) -> Arc<str> {
    run.world()
        .snapshot
        .read(&draft.file)
        .unwrap_or_else(|_| Arc::clone(&draft.base))
}

/// Returns the diff of the draft's own change against the text `now`. The diff does not contain
/// changes that others made since the draft.
pub(crate) fn own_diff(draft: &Draft, now: &Arc<str>) -> String {
    if draft.deletes_file {
        return visible(&deleted_file_diff(draft.file.as_str(), &draft.base));
    }
    match draft.over(now) {
        Some(after) => visible(&unified_diff(draft.file.as_str(), now, &after)),
        // The draft will be refused when it is applied. Until then its original diff is shown.
        None => visible(&unified_diff(draft.file.as_str(), &draft.base, &draft.text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_of_a_proposal_excludes_concurrent_changes_of_others() {
        let draft = Draft::between("a = 1\nx\nx\nx\nx\nb = 1\n", "a = 1\nx\nx\nx\nx\nb = 2\n");
        let now: Arc<str> = "a = 3\nx\nx\nx\nx\nb = 1\n".into();
        let diff = own_diff(&draft, &now);
        assert!(diff.contains("-b = 1\n+b = 2\n"), "{diff}");
        assert!(!diff.contains("a = "), "{diff}");
        // If both changed the same line, even in different words, the original diff is shown.
        let same_line = own_diff(&draft, &"a = 1\nx\nx\nx\nx\nc = 1\n".into());
        assert!(same_line.contains("-b = 1\n+b = 2\n"), "{same_line}");
        let conflict = own_diff(&draft, &"a = 1\nx\nx\nx\nx\nb = 9\n".into());
        assert!(conflict.contains("-b = 1\n+b = 2\n"), "{conflict}");
    }
}
