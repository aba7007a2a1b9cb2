//! An agent: the owner of one symbol, working turn by turn.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::act::{Proposed, act, proposed};
use super::ask::party_name;
use super::attempts::Attempts;
use super::call::Conversation;
use super::context::is_small;
use super::ending::counted;
use super::event::{AgentOutcome, Cause, Event, Party};
use super::hub::{Epoch, Hub};
use super::parts::Kept;
use super::proposal::ProposalId;
use super::protocol::{self, Propose, Seat};
use super::repeats::Repeats;
use super::small::Way;
use super::views::Views;
use super::{context, fill, followup, small};
use starling_core::prompts::{
    AgentSystem, AgentSystemSmall, AgentSystemText, Prompt, SoloSystem, SoloSystemText,
};
use starling_core::{Role, ToolCalling};
use starling_syntax::SymbolPath;
use starling_workspace::Snapshot;

/// How often in a row a reply may be unusable.
const MALFORMED_MOST: u32 = 3;

/// Why a small model is not asked about a renaming or a deletion.
const BY_RULE: &str = "what the rule makes does not pass, and a small model is not asked to do it";

/// What an agent remembers between turns and pieces of work.
pub(super) struct Mind {
    pub party: Party,
    pub conversation: Option<Conversation>,
    /// What the agent was shown of the user's texts.
    pub views: Views,
    /// What the results of this turn show. What the turn proposes was written before.
    pub told: Views,
    /// The workspace that the agent means where it was shown nothing.
    pub unread: Option<Snapshot>,
    /// Refused proposals of this piece of work.
    pub attempts: Attempts,
    /// Why it has work, as a small model is told.
    pub cause: String,
    /// The state of the workspace in which its last piece of work ended without a result.
    pub gave_up_at: Option<Epoch>,
    /// Others change something for the same end, so a change need not mend a test by itself.
    pub entangled: bool,
    /// How many follow-ups lie between the task and this piece of work.
    pub wave: u32,
    /// The approver agreed with what it means to do in this piece of work.
    pub intent_approved: bool,
    /// The last proposal that the approver sent back; the next one revises it.
    pub rejected: Option<ProposalId>,
    /// Reasons of its proposals that were accepted.
    pub accepted: Vec<String>,
    /// A change that the scout wrote for this agent, to be proposed first.
    pub draft: Option<Propose>,
    pub repeats: Repeats,
    /// Parts that fail by themselves and are checked with those to come.
    pub kept: Vec<Kept>,
    malformed: u32,
    /// In how many ways a small model was asked while the workspace was as it is.
    pub ways: usize,
    /// The requests to fill holes in its function.
    pub filling: Option<Conversation>,
    /// Texts of its function that were tried by filling holes.
    pub filled: BTreeSet<String>,
    /// A proposal of this piece of work was applied.
    pub changed: bool,
}

impl Mind {
    pub fn new(party: Party) -> Self {
        Mind {
            party,
            conversation: None,
            views: Views::default(),
            told: Views::default(),
            unread: None,
            attempts: Attempts::default(),
            cause: String::new(),
            gave_up_at: None,
            entangled: false,
            wave: 0,
            intent_approved: false,
            rejected: None,
            accepted: Vec::new(),
            draft: None,
            repeats: Repeats::default(),
            kept: Vec::new(),
            malformed: 0,
            ways: 0,
            filling: None,
            filled: BTreeSet::new(),
            changed: false,
        }
    }

    /// The text of the file that the agent means when it speaks of a symbol. `None`: the agent has not
    /// seen the file.
    pub fn seen(&self, symbol: &SymbolPath) -> Option<Arc<str>> {
        let unread = || self.unread.as_ref()?.read(&symbol.file).ok();
        self.views.of(symbol).or_else(unread)
    }

    /// Before its model is asked: the model sees what the results of the last turn show.
    fn begin_turn(&mut self) {
        self.views.extend(std::mem::take(&mut self.told));
    }

    pub fn seat(&self) -> Seat {
        match self.party {
            Party::Solo => Seat::Solo,
            Party::Agent(_) | Party::User | Party::Scout | Party::Proxy | Party::Starling => {
                Seat::Owner
            }
        }
    }
}

/// Works until nothing is left to do for this agent.
pub(super) async fn work(hub: &Arc<Hub>, party: &Party) {
    while let Some((mut mind, causes)) = hub.take_work(party) {
        let causes = with_something_to_do(hub, party, causes);
        if causes.is_empty() {
            hub.event(Event::AgentFinished {
                agent: party.clone(),
                outcome: AgentOutcome::NothingToChange,
                summary: "it fits the changed contract already".to_owned(),
            });
            hub.park(mind);
            continue;
        }
        let (outcome, summary) = carry_out(hub, &mut mind, &causes).await;
        mind.gave_up_at = match outcome {
            AgentOutcome::GaveUp { .. } => Some(hub.state().epoch),
            AgentOutcome::Changed | AgentOutcome::NothingToChange => None,
        };
        decline_requests(hub, &mind, &causes, &outcome, &summary);
        hub.event(Event::AgentFinished {
            agent: party.clone(),
            outcome,
            summary,
        });
        hub.park(mind);
    }
}

/// Without follow-ups that others, or the owner itself, have made good since.
fn with_something_to_do(hub: &Hub, party: &Party, causes: Vec<Cause>) -> Vec<Cause> {
    let Party::Agent(own) = party else {
        return causes;
    };
    let is_left = |cause: &Cause| match cause {
        Cause::FollowUp { changed, .. } => followup::is_still_broken(hub, own, changed),
        Cause::Picked { .. }
        | Cause::ChangeRequest { .. }
        | Cause::FailedTests { .. }
        | Cause::Problems { .. }
        | Cause::Steered { .. }
        | Cause::Declined { .. } => true,
    };
    causes.into_iter().filter(is_left).collect()
}

/// How a piece of work ends, with a summary.
pub(super) type Ending = (AgentOutcome, String);

pub(super) fn gave_up(why: impl Into<String>) -> Ending {
    (AgentOutcome::GaveUp { why: why.into() }, String::new())
}

/// One piece of work: from its causes to an outcome.
async fn carry_out(hub: &Arc<Hub>, mind: &mut Mind, causes: &[Cause]) -> Ending {
    let goes_on = mind.gave_up_at == Some(hub.state().epoch);
    if !(goes_on && is_small(hub.outside.models.agent.profile())) {
        mind.attempts = Attempts::default();
        mind.ways = 0;
        mind.filled.clear();
    }
    mind.intent_approved = false;
    mind.malformed = 0;
    mind.changed = false;
    mind.kept.clear();
    mind.repeats.clear();
    mind.entangled |= causes.iter().any(|cause| match cause {
        Cause::ChangeRequest { .. } | Cause::FollowUp { .. } => true,
        Cause::Picked { .. }
        | Cause::FailedTests { .. }
        | Cause::Problems { .. }
        | Cause::Steered { .. }
        | Cause::Declined { .. } => false,
    });
    mind.wave = causes.iter().map(wave_of).max().unwrap_or_default();
    // What was typed since the run began is not known to an agent that was not shown it.
    mind.unread = Some(hub.outside.index.snapshot().clone());
    context::begin_work(hub, mind, causes);
    mind.begin_turn();
    if let Some(ending) = propose_draft(hub, mind).await {
        return ending;
    }
    for _ in 0..hub.ledger.limits().turns {
        if nothing_left_to_mend(hub) {
            return (AgentOutcome::NothingToChange, "the tests pass".to_owned());
        }
        match turn(hub, mind).await {
            Some(ending) => return ending,
            None => take_messages(hub, mind),
        }
    }
    let turns = counted(hub.ledger.limits().turns as usize, "turn");
    gave_up(format!("{turns} without an end"))
}

fn wave_of(cause: &Cause) -> u32 {
    match cause {
        Cause::FollowUp { wave, .. } => *wave,
        Cause::Picked { .. }
        | Cause::ChangeRequest { .. }
        | Cause::FailedTests { .. }
        | Cause::Problems { .. }
        | Cause::Steered { .. }
        | Cause::Declined { .. } => 0,
    }
}

/// A small model, asked to mend what is whole, breaks it.
fn nothing_left_to_mend(hub: &Hub) -> bool {
    let state = hub.state();
    is_small(hub.outside.models.agent.profile())
        && !state.required.is_empty()
        && state.required.is_disjoint(&state.failing)
}

/// Proposes what the scout wrote. Only when it comes back the agent's own model is asked, and only then
/// the agent counts against the limit.
async fn propose_draft(hub: &Arc<Hub>, mind: &mut Mind) -> Option<Ending> {
    let draft = mind.draft.take()?;
    // It is meant for the texts that the scout saw, not for those that the agent was shown since.
    let scouted_in = hub.state().scouted_in.clone();
    let mut shown = std::mem::take(&mut mind.views);
    let unread = mind.unread.clone();
    mind.unread = scouted_in.or(mind.unread.take());
    let proposed = proposed(hub, mind, &draft).await;
    hub.draft_arrived(&mind.party);
    shown.extend(std::mem::take(&mut mind.views));
    mind.views = shown;
    mind.unread = unread;
    let text = match proposed {
        Proposed::Applied { text, ending } => match ending {
            Some(ending) => return Some(ending),
            None => text,
        },
        Proposed::SentBack { text } | Proposed::Kept { text } => text,
        Proposed::GaveUp { ending, .. } => return Some(ending),
    };
    if let Err(exhausted) = hub.count_agent(&mind.party) {
        // Why it came back was told when it did.
        let why = format!("its draft came back, and {exhausted}");
        hub.not_woken(party_name(&mind.party), &Party::Scout, why.clone());
        return Some(gave_up(why));
    }
    if let Some(conversation) = mind.conversation.as_mut() {
        let change = serde_json::to_string(&draft).unwrap_or_default();
        conversation.user(format!(
            "This was proposed for your symbol:\n{change}\nIt came back: {text}"
        ));
    }
    None
}

/// One model call and what it asks for. `Some` ends the piece of work.
async fn turn(hub: &Arc<Hub>, mind: &mut Mind) -> Option<Ending> {
    let model = &hub.outside.models.agent;
    let calling = model.profile().tool_calling;
    let seat = mind.seat();
    mind.begin_turn();
    let own_tools = conversation_of(hub, &mind.party);
    if is_small(model.profile()) {
        if hub.stated().are_by_rule() {
            return Some(gave_up(BY_RULE));
        }
        match small::next_way(hub, mind) {
            Some(Way::Answer) => {}
            Some(Way::Fill { temperature }) => return fill::fill(hub, mind, temperature).await,
            None => return Some(small::gave_up(hub, mind)),
        }
    }
    let conversation = mind.conversation.as_mut()?;
    if !conversation.is_answered() && !is_small(model.profile()) {
        // The model may have refused tools since the conversation began.
        conversation.instruct(own_tools);
    }
    let reply = match hub
        .call(
            &mind.party,
            model,
            conversation,
            protocol::tools(calling, seat),
        )
        .await
    {
        Ok(reply) => reply,
        Err(error) if error.is_for_tools(model) => return None,
        Err(error) => return Some(gave_up(error.to_string())),
    };
    conversation
        .messages
        .push(protocol::assistant_message(&reply));
    let asked = protocol::parse(calling, seat, &reply, &hub.unusual_paths());
    if asked.is_empty() {
        return malformed(hub, mind, protocol::nothing_asked(calling, seat, &reply));
    }
    if asked.iter().any(|one| one.action.is_ok()) {
        mind.malformed = 0;
    }
    let (results, ending) = act(hub, mind, asked).await;
    let unusable = ending.is_none() && results.iter().all(|(asked, _)| asked.action.is_err());
    let what = results
        .iter()
        .filter_map(|(asked, _)| asked.action.as_ref().err())
        .next()
        .cloned();
    if let Some(conversation) = mind.conversation.as_mut() {
        conversation
            .messages
            .extend(protocol::result_messages(results));
    }
    match what {
        Some(what) if unusable => note_malformed(hub, mind, what),
        Some(_) | None => ending,
    }
}

fn malformed(hub: &Hub, mind: &mut Mind, what: String) -> Option<Ending> {
    if let Some(conversation) = mind.conversation.as_mut() {
        conversation.user(what.clone());
    }
    note_malformed(hub, mind, what)
}

fn note_malformed(hub: &Hub, mind: &mut Mind, what: String) -> Option<Ending> {
    mind.malformed += 1;
    hub.event(Event::Malformed {
        agent: mind.party.clone(),
        what,
    });
    (mind.malformed >= MALFORMED_MOST).then(|| {
        gave_up(format!(
            "{MALFORMED_MOST} unusable replies in a row: the model neither proposes a change nor ends its \
             work in a form that can be read"
        ))
    })
}

/// Messages that came in meanwhile are read before the next turn.
fn take_messages(hub: &Arc<Hub>, mind: &mut Mind) {
    for cause in hub.take_inbox(&mind.party) {
        let text = context::cause_text(&cause);
        if let Some(conversation) = mind.conversation.as_mut() {
            conversation.user(text);
        }
    }
}

/// Those who asked for a change that was not made are told, when they are still at work.
fn decline_requests(
    hub: &Hub,
    mind: &Mind,
    causes: &[Cause],
    outcome: &AgentOutcome,
    summary: &str,
) {
    let why = match outcome {
        AgentOutcome::Changed => return,
        AgentOutcome::NothingToChange => summary.to_owned(),
        AgentOutcome::GaveUp { why } => why.clone(),
    };
    for cause in causes {
        let Cause::ChangeRequest { from, .. } = cause else {
            continue;
        };
        hub.event(Event::ChangeDeclined {
            by: mind.party.clone(),
            to: from.clone(),
            reason: why.clone(),
        });
        let notice = Cause::Declined {
            by: mind.party.clone(),
            reason: why.clone(),
        };
        hub.tell_if_working(from, notice);
    }
}

/// The role and protocol of an agent's conversation.
pub(super) fn conversation_of(hub: &Hub, party: &Party) -> Conversation {
    let profile = hub.outside.models.agent.profile();
    let solo = matches!(party, Party::Solo);
    let system = match (solo, profile.tool_calling) {
        (true, ToolCalling::Native) => SoloSystem {}.render(),
        (true, ToolCalling::Text) => SoloSystemText {}.render(),
        (false, ToolCalling::Native) => AgentSystem {}.render(),
        (false, ToolCalling::Text) if is_small(profile) => AgentSystemSmall {}.render(),
        (false, ToolCalling::Text) => AgentSystemText {}.render(),
    };
    let name = if solo {
        "solo".to_owned()
    } else {
        format!("agent {}", party_name(party))
    };
    Conversation::new(name, Role::Agent, system)
}
