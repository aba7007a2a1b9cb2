//! The proxy user: a model that sees the task and the evidence, and decides in the user's place.

use std::sync::Arc;

use super::apply;
use super::call::Conversation;
use super::event::{Event, Party};
use super::hub::{Accepted, Hub};
use super::lookup::cap;
use crate::ports::{IntentView, ProposalView, Role, Tokens, Verdict};
use crate::prompts::{Prompt, ProxyPrompt, ProxySystem};
use crate::syntax::SymbolPath;

/// Of the diffs that were accepted before.
const ACCEPTED: Tokens = Tokens(2_000);
/// Symbols that a proposal's head names.
const NAMES: usize = 8;
/// An unreadable decision is asked for again this often.
const TRIES: u32 = 2;

/// Decides on a proposal.
pub(super) async fn by_proxy(hub: &Arc<Hub>, view: &ProposalView) -> Verdict {
    let prompt = ProxyPrompt {
        task: cap(&hub.task.text, Tokens(4_000)),
        symbol: view.symbol.to_string(),
        symbols: changed(view),
        reason: view.reason.clone(),
        diff: cap(&view.diff, Tokens(4_000)),
        evidence: cap(&view.evidence, Tokens(1_500)),
        accepted: accepted(hub),
        others: hub.told_others(&view.symbol),
    };
    decide(hub, format!("proxy {}", view.symbol), prompt).await
}

/// What a proposal changes, its owner's symbol first; what is nested in another goes with it.
fn changed(view: &ProposalView) -> Vec<String> {
    let mut names: Vec<&SymbolPath> = vec![&view.symbol];
    for symbol in &view.symbols {
        // Imports come along with a change.
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

/// Decides on an intent.
pub(super) async fn intent_by_proxy(hub: &Arc<Hub>, view: &IntentView) -> Verdict {
    let prompt = ProxyPrompt {
        task: cap(&hub.task.text, Tokens(4_000)),
        symbol: view.symbol.to_string(),
        symbols: Vec::new(),
        reason: format!("{}\nWhy: {}", view.intent, view.reason),
        diff: String::new(),
        evidence: String::new(),
        accepted: accepted(hub),
        others: hub.told_others(&view.symbol),
    };
    decide(hub, format!("proxy intent {}", view.symbol), prompt).await
}

/// Everything that was accepted, by name and reason, with the diffs as far as the cap goes. What is
/// accepted and not yet applied is part of it.
fn accepted(hub: &Hub) -> String {
    let (accepted, applied) = {
        let state = hub.state();
        let applied: Vec<_> = state.applied.iter().map(|applied| applied.id).collect();
        (state.accepted.clone(), applied)
    };
    if accepted.is_empty() {
        return String::new();
    }
    let line = |one: &Accepted| {
        let reason: String = one.reason.chars().take(200).collect();
        format!("{} {}: {reason}\n", one.id, one.symbol)
    };
    let names: String = accepted.iter().map(line).collect();
    let waiting = accepted.iter().filter(|one| !applied.contains(&one.id));
    let waiting: String = waiting.map(|one| one.diff.as_str()).collect();
    let diffs = format!("{}{waiting}", apply::whole_diff(hub));
    format!("{names}{}", cap(&diffs, ACCEPTED))
}

async fn decide(hub: &Arc<Hub>, conversation: String, prompt: ProxyPrompt) -> Verdict {
    let mut conversation = Conversation::new(
        hub.unique_name(conversation),
        Role::Proxy,
        ProxySystem {}.render(),
    );
    conversation.user(prompt.render());
    let model = &hub.outside.models.proxy;
    for _ in 0..TRIES {
        let reply = match hub
            .call(&Party::Proxy, model, &mut conversation, Vec::new())
            .await
        {
            Ok(reply) => reply,
            Err(error) => {
                return Verdict::Reject {
                    reason: format!("the proxy user could not decide: {error}"),
                };
            }
        };
        if let Some(verdict) = read_verdict(&reply.text) {
            return verdict;
        }
        let what =
            "Begin your reply with ACCEPT, REJECT: reason, or STEER: what to do differently.";
        hub.event(Event::Malformed {
            agent: Party::Proxy,
            what: what.to_owned(),
        });
        conversation
            .messages
            .push(super::protocol::assistant_message(&reply));
        conversation.user(what);
    }
    Verdict::Reject {
        reason: "the proxy user gave no readable decision".to_owned(),
    }
}

/// The last line that begins with a decision counts: a model may think aloud before it.
fn read_verdict(text: &str) -> Option<Verdict> {
    let mut verdict = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim().trim_start_matches(['*', '#', '`', ' ']);
        let word_end = line
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(line.len());
        let (word, first) = line.split_at(word_end);
        let rest = || {
            let first = first.trim_start_matches(['*', ':', '`', ' ']);
            let more = text.lines().skip(at + 1).collect::<Vec<_>>().join("\n");
            format!("{first}\n{more}")
                .trim()
                .chars()
                .take(2000)
                .collect::<String>()
        };
        match word.to_ascii_uppercase().as_str() {
            "ACCEPT" | "ACCEPTED" => verdict = Some(Verdict::Accept),
            "REJECT" | "REJECTED" => verdict = Some(Verdict::Reject { reason: rest() }),
            "STEER" => verdict = Some(Verdict::Steer { text: rest() }),
            _ => {}
        }
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_names_all_that_a_proposal_changes() {
        let path = |path: &str| path.parse::<SymbolPath>().unwrap();
        let names = |own: &str, symbols: &[&str]| {
            changed(&ProposalView {
                id: 1,
                symbol: path(own),
                symbols: symbols.iter().map(|one| path(one)).collect(),
                reason: String::new(),
                diff: String::new(),
                evidence: String::new(),
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

    #[test]
    fn decisions_are_read_in_any_dress() {
        assert_eq!(read_verdict("ACCEPT"), Some(Verdict::Accept));
        assert_eq!(
            read_verdict("I looked at it.\n\n**ACCEPT**"),
            Some(Verdict::Accept)
        );
        assert_eq!(
            read_verdict("reject: it hides\nthe symptom"),
            Some(Verdict::Reject {
                reason: "it hides\nthe symptom".into()
            })
        );
        assert_eq!(
            read_verdict("STEER: keep the name"),
            Some(Verdict::Steer {
                text: "keep the name".into()
            })
        );
        assert_eq!(
            read_verdict("REJECT: no\nAccepting it would hide the bug."),
            Some(Verdict::Reject {
                reason: "no\nAccepting it would hide the bug.".into()
            })
        );
        assert_eq!(read_verdict("Acceptable? Hardly."), None);
        assert_eq!(read_verdict("Looks good to me"), None);
        assert_eq!(read_verdict(""), None);
    }
}
