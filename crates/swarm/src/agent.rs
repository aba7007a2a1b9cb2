//! The turn loop of an agent, which owns one symbol.

use std::collections::BTreeSet;
use std::sync::Arc;

use tracing::Instrument;

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

/// Maximum number of consecutive unusable replies.
const MALFORMED_MOST: u32 = 3;

/// Why a small model is not called for a rename or a deletion.
const BY_RULE: &str = "what the rule makes does not pass, and a small model is not asked to do it";

/// State of an agent that is kept between turns and between pieces of work.
pub(super) struct Mind {
    pub party: Party,
    pub conversation: Option<Conversation>,
    /// The user's texts that the agent has seen.
    pub views: Views,
    /// Texts that the results of the current turn show. The proposals of this turn were written
    /// before the agent saw them.
    pub told: Views,
    /// The workspace that the agent's changes refer to for files that the agent has not seen.
    pub unread: Option<Snapshot>,
    /// Refused proposals of this piece of work.
    pub attempts: Attempts,
    /// Reason for the work, as shown to a small model.
    pub cause: String,
    /// The epoch in which the last piece of work ended without a result.
    pub gave_up_at: Option<Epoch>,
    /// Set if other agents change code for the same purpose. A change then does not have to fix a
    /// test alone.
    pub entangled: bool,
    /// Number of follow-ups between the task and this piece of work.
    pub wave: u32,
    /// Set if the approver accepted the intent of this piece of work.
    pub intent_approved: bool,
    /// The last proposal that the approver sent back. The next proposal revises it.
    pub rejected: Option<ProposalId>,
    /// Reasons of the agent's accepted proposals.
    pub accepted: Vec<String>,
    /// A change that the scout wrote for this agent. It is proposed first.
    pub draft: Option<Propose>,
    pub repeats: Repeats,
    /// Parts that fail alone and are checked together with later parts.
    pub kept: Vec<Kept>,
    malformed: u32,
    /// Number of ways in which a small model was prompted since the workspace last changed.
    pub ways: usize,
    /// The conversation that fills holes in the agent's function.
    pub filling: Option<Conversation>,
    /// Texts of the function that hole filling has tried.
    pub filled: BTreeSet<String>,
    /// Set if a proposal of this piece of work was applied.
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

    /// Returns the text of the symbol's file that the agent's changes refer to; `None` if the agent
    /// has not seen the file.
    pub fn seen(&self, symbol: &SymbolPath) -> Option<Arc<str>> {
        let unread = || self.unread.as_ref()?.read(&symbol.file).ok();
        self.views.of(symbol).or_else(unread)
    }

    /// Marks the results of the last turn as seen. Called before the model is called.
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

/// Runs the agent until it has no more work.
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

/// Removes follow-ups that have been resolved in the meantime.
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

/// Outcome and summary of a piece of work.
pub(super) type Ending = (AgentOutcome, String);

pub(super) fn gave_up(why: impl Into<String>) -> Ending {
    (AgentOutcome::GaveUp { why: why.into() }, String::new())
}

/// Carries out one piece of work, from its causes to an outcome.
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
    // An agent does not know what the user typed since the start of the run, unless it was shown.
    mind.unread = Some(hub.outside.index.snapshot().clone());
    context::begin_work(hub, mind, causes);
    mind.begin_turn();
    if let Some(ending) = propose_draft(hub, mind).await {
        return ending;
    }
    for number in 1..=hub.ledger.limits().turns {
        if nothing_left_to_mend(hub) {
            return (AgentOutcome::NothingToChange, "the tests pass".to_owned());
        }
        let agent = party_name(&mind.party);
        let span = tracing::info_span!("turn", agent, number);
        match turn(hub, mind).instrument(span).await {
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

/// Returns whether a small model has nothing to fix. A small model breaks working code if it is
/// asked to fix it.
fn nothing_left_to_mend(hub: &Hub) -> bool {
    let state = hub.state();
    is_small(hub.outside.models.agent.profile())
        && !state.required.is_empty()
        && state.required.is_disjoint(&state.failing)
}

/// Proposes the scout's draft. Only if the draft is sent back, the agent's own model is called and
/// the agent counts against the limit.
async fn propose_draft(hub: &Arc<Hub>, mind: &mut Mind) -> Option<Ending> {
    let draft = mind.draft.take()?;
    // The draft refers to the texts that the scout saw, not to the texts shown to the agent since.
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
        // The reason was logged when the draft was sent back.
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

/// Makes one model call and carries out its actions. Returns `Some` if the piece of work ends.
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
        // The model may have rejected tools since the conversation started.
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

/// Adds new messages from the inbox to the conversation before the next turn.
fn take_messages(hub: &Arc<Hub>, mind: &mut Mind) {
    for cause in hub.take_inbox(&mind.party) {
        let text = context::cause_text(&cause);
        if let Some(conversation) = mind.conversation.as_mut() {
            conversation.user(text);
        }
    }
}

/// Notifies the working agents whose change requests were declined.
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

/// Creates an agent's conversation with the system prompt for its role and protocol.
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
