//! Outcomes of accepted proposals: the message for the owner, and the follow-ups to other owners.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::check::diagnose;
use crate::contract::follow_up;
use crate::event::actor::ActorId;
use crate::evidence::failure::Failure;
use crate::evidence::ids::ProposalId;
use crate::proposal::outcome::{Outcome, sent_back};
use crate::proposal::{draft, edited};
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use crate::state::sets::Landed;
use starling_syntax::{FilePath, SymbolPath};
use starling_text::{unified_diff, visible};

/// Records in the agent's state that a person removed the agent's proposal from its set, and
/// returns the outcome for the agent.
pub(crate) fn taken_out(agent: &mut AgentState, id: ProposalId) -> Outcome {
    agent.rejected = Some(id);
    sent_back(format!(
        "Proposal {id} was not applied: {}. Do not propose the same again.",
        edited::TAKEN_OUT
    ))
}

/// Returns the failure that is reported for an accepted part whose outcome is unknown because of an
/// internal error.
pub(crate) fn lost() -> Landed {
    Landed::Failed(Failure::Editor {
        why: "internal error while applying; see the log".to_owned(),
    })
}

/// Returns the outcome for the owner of an accepted proposal, and starts the follow-ups of an
/// applied one.
pub(crate) fn ended(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    proposal: &Proposal,
    landed: Landed,
) -> Outcome {
    let id = proposal.id;
    match landed {
        Landed::Applied { text, gone } => {
            // A person may have edited the proposal as a part of a set.
            let accepted = run.proposals().get(id).map(|one| one.draft.clone());
            let draft = accepted.unwrap_or_else(|| proposal.draft.clone());
            see_own_change(agent, &draft, text);
            prepare_others(run, &agent.actor);
            follow_up::follow_up(run, &agent.actor, agent.wave, &draft, &gone);
            let text = match draft.edited {
                false => format!("Proposal {id} was accepted and applied."),
                true => format!(
                    "Proposal {id} was accepted and applied as the user edited it. What is there now is \
                     meant:\n{}",
                    visible(&unified_diff(draft.file.as_str(), &draft.base, &draft.text))
                ),
            };
            Outcome::Applied { text }
        }
        Landed::TakenOut => taken_out(agent, id),
        Landed::Failed(Failure::Conflict { why, .. }) => {
            let (now, draft) = (proposal.owner(), &proposal.draft);
            let lookup = run.lookup();
            let source = lookup.read(&[now.to_string()]);
            if let Ok(tree) = lookup.tree(&now.file) {
                agent.told.show(now, Arc::clone(tree.text()));
            }
            let by = lookup
                .tree(&draft.file)
                .ok()
                .and_then(|tree| run.proposals().last_writer(&draft.file, tree.text()));
            let who = draft::in_same_place(by, &why);
            sent_back(format!(
                "{who} It is now:\n{source}\nPropose your change on top of it."
            ))
        }
        Landed::Failed(Failure::Editor { why }) => sent_back(format!(
            "It was accepted, but could not be applied: {why}. So nothing of its set was. Propose it again, or find another way."
        )),
        Landed::NotWithout { why } => sent_back(format!(
            "It was accepted as part of a set, and is not applied without {why}. Propose it again, or find another way."
        )),
        Landed::Stays { text, why } => {
            see_own_change(agent, &proposal.draft, text);
            sent_back(format!(
                "It was accepted as part of a set and is applied, but is of no use without {why}. Look at it again."
            ))
        }
    }
}

/// Records that the agent knows its own change. Edits that the user made in the meantime are not
/// recorded as seen, so that a later proposal does not overwrite them.
pub(crate) fn see_own_change(agent: &mut AgentState, draft: &Draft, text: Arc<str>) {
    let seen: Vec<(SymbolPath, Arc<str>)> = draft
        .symbols
        .iter()
        .filter_map(|symbol| {
            let seen = match agent.seen(symbol) {
                // The version that the person edited may conflict with the text that the agent saw.
                Some(seen) => draft
                    .over(&seen)
                    .or(draft.edited.then(|| Arc::clone(&text)))?,
                None => Arc::clone(&text),
            };
            Some((symbol.clone(), seen))
        })
        .collect();
    agent.views.follow(draft);
    agent.told.follow(draft);
    for (symbol, seen) in seen {
        agent.views.show(symbol, seen);
    }
}

/// Asks the language services to analyse the files of all other working agents again.
fn prepare_others(run: &RunContext, by: &ActorId) {
    let at_work = run.at_work();
    let others = at_work.iter().filter(|actor| *actor != by);
    let files = others.filter_map(ActorId::symbol);
    let files: BTreeSet<FilePath> = files.map(|own| own.file.clone()).collect();
    diagnose::prepare_all(run, &files);
}
