//! Candidates: if editor models are configured, each of them writes the change that the agent
//! described. The checks choose a candidate, and among equals the smaller change wins.

use std::sync::Arc;

use futures::future::join_all;

use super::agent::Mind;
use super::call::Conversation;
use super::context::fence_language;
use super::draft;
use super::ending::counted;
use super::event::{Event, Party};
use super::gate::{self, Draft};
use super::hub::Hub;
use super::proposal::TestEvidence;
use super::protocol::{self, Action, Propose, Seat};
use starling_core::prompts::{EditorPrompt, EditorSystem, Prompt};
use starling_core::{ChatModel, Role, ToolCalling};
use starling_text::ChangeSet;

struct Candidate {
    model: String,
    change: Propose,
    draft: Draft,
}

/// The chosen change and its draft.
pub(super) struct Chosen {
    pub change: Propose,
    pub draft: Draft,
}

/// Rank of a candidate; less is better.
type Rank = (usize, std::cmp::Reverse<usize>, usize);

/// Returns the best draft among the agent's own draft and those of the editor models.
pub(super) async fn choose(hub: &Arc<Hub>, mind: &Mind, change: &Propose, own: Draft) -> Chosen {
    let change = change.clone();
    let editors = &hub.outside.models.editors;
    if editors.is_empty() || change.source.is_none() && change.hunks.is_empty() {
        return Chosen { change, draft: own };
    }
    let written = join_all(
        editors
            .iter()
            .map(|model| write(hub, mind, &change, &own, model)),
    )
    .await;
    let mut candidates = vec![Candidate {
        model: hub.outside.models.agent.profile().name.clone(),
        change: change.clone(),
        draft: own.clone(),
    }];
    candidates.extend(written.into_iter().flatten());
    let ranks = join_all(
        candidates
            .iter()
            .map(|candidate| rank(hub, &candidate.draft)),
    )
    .await;
    let Some(best) = (0..candidates.len()).min_by_key(|at| ranks[*at]) else {
        return Chosen { change, draft: own };
    };
    let among = candidates
        .iter()
        .map(|candidate| candidate.model.clone())
        .collect();
    let (broken, std::cmp::Reverse(fixed), bytes) = ranks[best];
    let broken = counted(broken, "test");
    let why = format!("{broken} broken, {fixed} fixed, {bytes} bytes changed");
    let model = candidates[best].model.clone();
    *hub.state().tally.entry(model.clone()).or_default() += 1;
    hub.event(Event::CandidateChosen {
        agent: mind.party.clone(),
        model,
        among,
        why,
    });
    let Candidate { change, draft, .. } = candidates.swap_remove(best);
    Chosen { change, draft }
}

/// Returns the candidate of one editor model; `None` if it is unusable.
async fn write(
    hub: &Arc<Hub>,
    mind: &Mind,
    change: &Propose,
    own: &Draft,
    model: &Arc<dyn ChatModel>,
) -> Option<Candidate> {
    let symbol = match (&change.symbol, &mind.party) {
        (Some(symbol), _) => hub.lookup().address(symbol).ok()?,
        (None, Party::Agent(symbol)) => symbol.clone(),
        (None, Party::User | Party::Scout | Party::Proxy | Party::Starling | Party::Solo) => {
            return None;
        }
    };
    let found = hub.lookup().symbol(&symbol).ok()?;
    let intent = hub.intent_of(&mind.party).unwrap_or_default();
    let prompt = EditorPrompt {
        symbol: symbol.to_string(),
        language: fence_language(found.tree.language()).to_owned(),
        source: found.source().to_owned(),
        change: format!("{intent}\n{}", change.reason),
        task: hub.task.text.clone(),
    };
    let name = model.profile().name.clone();
    let conversation = hub.unique_name(format!("editor {name} {symbol}"));
    let mut conversation = Conversation::new(conversation, Role::Editor, EditorSystem {}.render());
    conversation.user(prompt.render());
    let reply = hub
        .call(&mind.party, model, &mut conversation, Vec::new())
        .await
        .ok()?;
    let asked = protocol::parse(ToolCalling::Text, Seat::Owner, &reply, &hub.unusual_paths());
    let written = asked.into_iter().find_map(|one| match one.action {
        Ok(Action::Propose(written)) => Some(*written),
        Ok(_) | Err(_) => None,
    })?;
    let written = Propose {
        source: written.source,
        hunks: written.hunks,
        ..change.clone()
    };
    match draft::make(hub, mind, &written).await {
        Ok(draft) if draft.text != own.text => Some(Candidate {
            model: name,
            change: written,
            draft,
        }),
        Ok(_) => None,
        Err(refusal) => {
            let why = format!("candidate of {name}: {refusal}");
            hub.event(Event::ProposalRefused {
                agent: mind.party.clone(),
                shown: Some(format!("candidate of {name}: {}", refusal.to_user())),
                why,
            });
            None
        }
    }
}

async fn rank(hub: &Arc<Hub>, draft: &Draft) -> Rank {
    let (evidence, _) = gate::check(hub, draft, Vec::new()).await;
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
