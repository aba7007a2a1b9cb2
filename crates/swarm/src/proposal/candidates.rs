//! Candidates: if editor models are configured, each of them writes the change that the agent
//! described. The checks choose a candidate, and if several have the same results, the smallest
//! change is chosen.

use std::sync::Arc;

use futures::future::join_all;

use crate::check::checks;
use crate::context::prompt_parts::fence_language;
use crate::event::actor::ActorId;
use crate::event::events::Event;
use crate::evidence::test_evidence::TestEvidence;
use crate::evidence::wording::counted;
use crate::proposal::draft;
use crate::protocol::conversation::Conversation;
use crate::protocol::{self, Action, Propose, ToolSet};
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::run_context::RunContext;
use starling_core::prompts::{EditorPrompt, EditorSystem, Prompt};
use starling_core::{ChatModel, Role, ToolCalling};
use starling_text::ChangeSet;

/// A draft that one model wrote, with the proposal call from which the draft was made.
struct DraftCandidate {
    model: String,
    change: Propose,
    draft: Draft,
}

/// Rank of a candidate; a smaller rank is better.
type Rank = (usize, std::cmp::Reverse<usize>, usize);

/// Returns the best draft among the agent's own draft and the drafts of the editor models, with the
/// proposal call from which it was made.
pub(crate) async fn choose(
    run: &Arc<RunContext>,
    agent: &AgentState,
    change: &Propose,
    own: Draft,
) -> (Propose, Draft) {
    let change = change.clone();
    let editors = &run.services.models.editors;
    if editors.is_empty() || change.source.is_none() && change.hunks.is_empty() {
        return (change, own);
    }
    let written = join_all(
        editors
            .iter()
            .map(|model| write(run, agent, &change, &own, model)),
    )
    .await;
    let mut candidates = vec![DraftCandidate {
        model: run.services.models.agent.profile().name.clone(),
        change: change.clone(),
        draft: own.clone(),
    }];
    candidates.extend(written.into_iter().flatten());
    let ranks = join_all(
        candidates
            .iter()
            .map(|candidate| rank(run, &candidate.draft)),
    )
    .await;
    let Some(best) = (0..candidates.len()).min_by_key(|at| ranks[*at]) else {
        return (change, own);
    };
    let among = candidates
        .iter()
        .map(|candidate| candidate.model.clone())
        .collect();
    let (broken, std::cmp::Reverse(fixed), bytes) = ranks[best];
    let broken = counted(broken, "test");
    let why = format!("{broken} broken, {fixed} fixed, {bytes} bytes changed");
    let model = candidates[best].model.clone();
    *run.proposals().tally.entry(model.clone()).or_default() += 1;
    run.event(Event::CandidateChosen {
        agent: agent.actor.clone(),
        model,
        among,
        why,
    });
    let DraftCandidate { change, draft, .. } = candidates.swap_remove(best);
    (change, draft)
}

/// Returns the candidate of one editor model; `None` if it is unusable.
async fn write(
    run: &Arc<RunContext>,
    agent: &AgentState,
    change: &Propose,
    own: &Draft,
    model: &Arc<dyn ChatModel>,
) -> Option<DraftCandidate> {
    let symbol = match (&change.symbol, &agent.actor) {
        (Some(symbol), _) => run.lookup().address(symbol).ok()?,
        (None, ActorId::Agent(symbol)) => symbol.clone(),
        (
            None,
            ActorId::User | ActorId::Scout | ActorId::Proxy | ActorId::Starling | ActorId::Solo,
        ) => {
            return None;
        }
    };
    let found = run.lookup().symbol(&symbol).ok()?;
    let intent = run.agents().intent_of(&agent.actor).unwrap_or_default();
    let prompt = EditorPrompt {
        symbol: symbol.to_string(),
        language: fence_language(found.tree.language()).to_owned(),
        source: found.source().to_owned(),
        change: format!("{intent}\n{}", change.reason),
        task: run.task.text.clone(),
    };
    let name = model.profile().name.clone();
    let conversation = run.unique_name(format!("editor {name} {symbol}"));
    let mut conversation = Conversation::new(conversation, Role::Editor, EditorSystem {}.render());
    conversation.user(prompt.render());
    let reply = run
        .call(&agent.actor, model, &mut conversation, Vec::new())
        .await
        .ok()?;
    let asked = protocol::parse(
        ToolCalling::Text,
        ToolSet::Owner,
        &reply,
        &run.unusual_paths(),
    );
    let written = asked.into_iter().find_map(|one| match one.action {
        Ok(Action::Propose(written)) => Some(*written),
        Ok(_) | Err(_) => None,
    })?;
    let written = Propose {
        source: written.source,
        hunks: written.hunks,
        ..change.clone()
    };
    match draft::make(run, agent, &written).await {
        Ok(draft) if draft.text != own.text => Some(DraftCandidate {
            model: name,
            change: written,
            draft,
        }),
        Ok(_) => None,
        Err(refusal) => {
            let why = format!("candidate of {name}: {refusal}");
            run.event(Event::ProposalRefused {
                agent: agent.actor.clone(),
                shown: Some(format!("candidate of {name}: {}", refusal.to_user())),
                why,
            });
            None
        }
    }
}

async fn rank(run: &Arc<RunContext>, draft: &Draft) -> Rank {
    let (evidence, _) = checks::check(run, draft, Vec::new()).await;
    let (broken, fixed) = match &evidence.tests {
        TestEvidence::Unknown { .. } => (0, 0),
        TestEvidence::Known {
            broken,
            fixed,
            only_as_changed,
            ..
        } => (broken.len() + only_as_changed.tests.len(), fixed.len()),
    };
    let edits = ChangeSet::between(&draft.base, &draft.text);
    let bytes = edits
        .edits()
        .iter()
        .map(|edit| edit.range.len() + edit.insert.len())
        .sum();
    (broken, std::cmp::Reverse(fixed), bytes)
}
