//! The proxy user: a model that reads the task and the evidence, and decides instead of the user.

use std::sync::Arc;

use crate::event::actor::ActorId;
use crate::event::events::Event;
use crate::lookup::cap;
use crate::proposal::apply;
use crate::protocol::conversation::Conversation;
use crate::protocol::verdict::{self, UnclearDecision};
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use starling_core::prompts::{Prompt, ProxyPrompt, ProxySystem, ProxySystemText};
use starling_core::{
    ChatReply, IntentView, Message, ProposalView, Role, Tokens, ToolCall, ToolCalling, Verdict,
};
use starling_syntax::SymbolPath;

/// Maximum size of the diffs of accepted proposals.
const ACCEPTED: Tokens = Tokens(2_000);
/// Maximum number of symbols in the first line that describes a proposal.
const NAMES: usize = 8;
/// Maximum number of replies that are read for one decision.
const TRIES: u32 = 2;

/// Lets the proxy user (a model) decide on a proposal.
pub(crate) async fn by_proxy(run: &Arc<RunContext>, view: &ProposalView) -> Verdict {
    let prompt = ProxyPrompt {
        task: cap(&run.task.text, Tokens(4_000)),
        symbol: view.symbol.to_string(),
        symbols: changed(view),
        reason: view.reason.clone(),
        diff: cap(&view.diff, Tokens(4_000)),
        evidence: cap(&view.evidence, Tokens(1_500)),
        accepted: accepted(run),
        others: run.told_others(&view.symbol),
    };
    decide(run, format!("proxy {}", view.symbol), prompt).await
}

/// Returns the symbols that a proposal changes, beginning with the symbol of its owner. Symbols
/// nested in another changed symbol are left out.
fn changed(view: &ProposalView) -> Vec<String> {
    let mut names: Vec<&SymbolPath> = vec![&view.symbol];
    for symbol in &view.symbols {
        // A change of the module is not listed: it only adds the imports for another change.
        let is_said = names.iter().any(|said| said.encloses(symbol)) || symbol.is_module();
        if !is_said {
            names.push(symbol);
        }
    }
    let more = names.len().saturating_sub(NAMES);
    let mut names: Vec<String> = names.iter().take(NAMES).map(ToString::to_string).collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names
}

/// Lets the proxy user (a model) decide on an intent, that is, a planned change.
pub(crate) async fn intent_by_proxy(run: &Arc<RunContext>, view: &IntentView) -> Verdict {
    let prompt = ProxyPrompt {
        task: cap(&run.task.text, Tokens(4_000)),
        symbol: view.symbol.to_string(),
        symbols: Vec::new(),
        reason: format!("{}\nWhy: {}", view.intent, view.reason),
        diff: String::new(),
        evidence: String::new(),
        accepted: accepted(run),
        others: run.told_others(&view.symbol),
    };
    decide(run, format!("proxy intent {}", view.symbol), prompt).await
}

/// Lists all accepted proposals by name and reason, with their diffs as far as they fit. Accepted
/// proposals that are not applied yet are included.
fn accepted(run: &RunContext) -> String {
    let line = |one: &Proposal| {
        let reason: String = one.change.reason.chars().take(200).collect();
        format!("{} {}: {reason}\n", one.id, one.owner())
    };
    let (names, waiting) = {
        let state = run.proposals();
        let applied = state.applied().into_iter().map(|(one, _)| one);
        let names: String = applied.chain(state.not_yet_applied()).map(line).collect();
        let waiting = state.not_yet_applied().map(|one| one.diff.as_str());
        (names, waiting.collect::<String>())
    };
    if names.is_empty() {
        return names;
    }
    let diffs = format!("{}{waiting}", apply::whole_diff(run));
    format!("{names}{}", cap(&diffs, ACCEPTED))
}

/// Calls the model until a reply holds one clear decision. If the last reply is unclear, the
/// decision is a reject.
async fn decide(run: &Arc<RunContext>, conversation: String, prompt: ProxyPrompt) -> Verdict {
    let model = &run.services.models.proxy;
    let name = run.unique_name(conversation);
    let begin = || {
        let system = match model.profile().tool_calling {
            ToolCalling::Native => ProxySystem {}.render(),
            ToolCalling::Text => ProxySystemText {}.render(),
        };
        Conversation::new(name.clone(), Role::Proxy, system)
    };
    let mut conversation = begin();
    conversation.user(prompt.render());
    let mut asked_about_words = false;
    for _ in 0..TRIES {
        let calling = model.profile().tool_calling;
        let tools = verdict::tools(calling);
        let reply = run.call(&ActorId::Proxy, model, &mut conversation, tools);
        let reply = match reply.await {
            Ok(reply) => reply,
            Err(error) if error.is_for_tools(model) => {
                conversation.instruct(begin());
                continue;
            }
            Err(error) => {
                return Verdict::Reject {
                    reason: format!("the proxy user could not decide: {error}"),
                };
            }
        };
        let unclear = match verdict::read(&reply, asked_about_words) {
            Ok(verdict) => return verdict,
            Err(unclear) => unclear,
        };
        asked_about_words = unclear == UnclearDecision::Worded;
        let what = format!("{unclear} {}", verdict::how(calling));
        run.event(Event::Malformed {
            agent: ActorId::Proxy,
            what: what.clone(),
        });
        ask_again(&mut conversation, &reply, &what);
    }
    Verdict::Reject {
        reason: "the proxy user gave no clear decision".to_owned(),
    }
}

/// Continues the conversation after an unclear reply. Every tool call of the reply gets a result.
fn ask_again(conversation: &mut Conversation, reply: &ChatReply, what: &str) {
    let result = |call: &ToolCall| Message::Tool {
        call_id: call.id.clone(),
        text: what.to_owned(),
    };
    conversation
        .messages
        .push(crate::protocol::assistant_message(reply));
    conversation
        .messages
        .extend(reply.tool_calls.iter().map(result));
    if reply.tool_calls.is_empty() {
        conversation.user(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn review_heading_lists_all_symbols_that_a_proposal_changes() {
        let path = |path: &str| path.parse::<SymbolPath>().unwrap();
        let names = |own: &str, symbols: &[&str]| {
            changed(&ProposalView {
                id: 1,
                symbol: path(own),
                symbols: symbols.iter().map(|one| path(one)).collect(),
                reason: String::new(),
                diff: String::new(),
                evidence: String::new(),
                version: None,
            })
        };
        let own = names(
            "a.py::A.f",
            &["a.py::A.f", "a.py::", "b.py::g", "b.py::g.h"],
        );
        assert_eq!(own, ["a.py::A.f", "b.py::g"]);
        assert_eq!(names("a.py::", &["a.py::"]), ["a.py::"]);
        let many: Vec<String> = (0..12).map(|at| format!("a.py::f{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let shown = names("a.py::f0", &many);
        assert_eq!((shown.len(), shown[8].as_str()), (9, "4 more"));
    }
}
