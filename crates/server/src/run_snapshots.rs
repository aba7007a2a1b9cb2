//! Runs, agents and proposals as `starling/state` and `starling/proposal` return them.

use std::path::Path;

use tower_lsp::lsp_types::Url;

use super::proposed_file::{diff, proposed_file};
use super::protocol::{
    AgentSnapshot, ProposalParams, ProposalReply, ProposalSnapshot, ProposedFile, RunSnapshot,
    RunStage,
};
use super::review_actions::{self, ReviewAction};
use super::session::{
    OverviewPhase, RunError, RunOverview, RunProposal, RunSession, RunView, TextFormat, explain,
    path_of,
};
use starling_swarm::{FileChange, ProposalId};
use starling_syntax::{FilePath, SymbolPath};
use starling_text::Encoding;

/// Returns all runs.
pub fn run_snapshots(session: &RunSession) -> Vec<RunSnapshot> {
    let root = session.root();
    session.read_runs(|run| {
        let RunOverview {
            run,
            task,
            phase,
            is_restored,
            trajectory,
            view,
            intents,
        } = run;
        let end = view.end.as_ref();
        RunSnapshot {
            trajectory,
            run,
            task: task.to_owned(),
            stage: match phase {
                OverviewPhase::Opening => RunStage::Opening,
                OverviewPhase::Running => RunStage::Going,
                OverviewPhase::Ended => RunStage::Ended,
            },
            restored: is_restored,
            seq: view.seq,
            agents: agents(view),
            proposals: proposals(view, root.as_deref()),
            intents,
            spent: view.spent(),
            limits: view.limits.clone(),
            stop_reason: end.map(|end| end.stop_reason.clone()),
            summary: end.map(|end| end.summary.clone()),
            headline: end.and_then(|end| end.headline.clone()),
            remedy: view.remedy().map(|(remedy, _)| remedy),
        }
    })
}

/// Returns the reply to `starling/proposal`: a proposal whose changes are applied to the current
/// texts of its files.
///
/// # Errors
/// There is no such proposal.
pub async fn proposal_reply(
    session: &RunSession,
    params: &ProposalParams,
    encoding: Encoding,
) -> Result<ProposalReply, RunError> {
    let proposal = session.known_proposal(params)?;
    let parts = session.changes_of(params);
    let mut files: Vec<(FilePath, ProposedFile)> = Vec::new();
    for part in &parts {
        if files.iter().any(|(file, _)| *file == part.file) {
            continue;
        }
        let own: Vec<&FileChange> = parts.iter().filter(|one| one.file == part.file).collect();
        let Some(now) = session.current_file(&part.file).await else {
            continue;
        };
        if let Ok(uri) = Url::from_file_path(&now.path) {
            let state = proposed_file(uri, now, &own, encoding);
            files.push((part.file.clone(), state));
        }
    }
    let now = diff(files.iter().map(|(file, state)| (file.as_str(), state)));
    let diff = match now.is_empty() {
        true => proposal.diff.clone(),
        false => now,
    };
    let root = session.root();
    Ok(ProposalReply {
        summary: explain(params.proposal, &proposal, TextFormat::Markdown),
        evidence: proposal.evidence.clone(),
        diff,
        files: files.into_iter().map(|(_, state)| state).collect(),
        state: proposal_snapshot(params.proposal, &proposal, root.as_deref()),
    })
}

/// Returns the actions that the user can take about all symbols. The lenses change only when this list
/// does.
pub fn all_review_actions(session: &RunSession, has_plugin: bool) -> Vec<ReviewAction> {
    let of_run = |run: RunOverview<'_>| {
        let actions = review_actions::all_review_actions(&run.run, run.view);
        match has_plugin {
            true => actions,
            false => review_actions::with_intents(actions, &run.run, run.intents),
        }
    };
    session.read_runs(of_run).into_iter().flatten().collect()
}

/// Returns the actions that the user can take about the symbols of a file.
pub fn review_actions_in(
    session: &RunSession,
    has_plugin: bool,
    file: &FilePath,
) -> Vec<ReviewAction> {
    let mut actions = all_review_actions(session, has_plugin);
    actions.retain(|action| action.symbol.file == *file);
    actions
}

/// Returns the waiting proposals of a symbol.
pub fn waiting_at(session: &RunSession, symbol: &SymbolPath) -> Vec<(ProposalId, RunProposal)> {
    let actions = review_actions_in(session, true, &symbol.file);
    let at = |action: &ReviewAction| {
        let id = action.proposal().filter(|_| action.symbol == *symbol)?;
        Some((id, session.find_proposal(&action.run, id)?))
    };
    actions.iter().filter_map(at).collect()
}

fn agents(view: &RunView) -> Vec<AgentSnapshot> {
    let agents = view.agents.iter();
    agents
        .map(|(agent, one)| AgentSnapshot {
            agent: agent.clone(),
            doing: one.doing.clone(),
            working: one.working,
            seconds: match one.working {
                true => one.since.elapsed().as_secs(),
                false => 0,
            },
            looked: one.looked.clone(),
        })
        .collect()
}

fn proposals(view: &RunView, root: Option<&Path>) -> Vec<ProposalSnapshot> {
    let proposals = view.proposals.iter();
    proposals
        .map(|(id, one)| proposal_snapshot(*id, one, root))
        .collect()
}

fn proposal_snapshot(
    id: ProposalId,
    proposal: &RunProposal,
    root: Option<&Path>,
) -> ProposalSnapshot {
    let mut files: Vec<&FilePath> = proposal.symbols.iter().map(|one| &one.file).collect();
    files.dedup();
    let uri = |file: &FilePath| Url::from_file_path(path_of(root?, file)?).ok();
    ProposalSnapshot {
        proposal: id,
        agent: proposal.agent.clone(),
        symbol: proposal.symbol.clone(),
        symbols: proposal.symbols.clone(),
        reason: proposal.reason.clone(),
        with: proposal.with.clone(),
        revises: proposal.revises,
        uris: files.into_iter().filter_map(uri).collect(),
        state: proposal.state,
        version: proposal.version,
        conflict: proposal.conflict.clone(),
    }
}
