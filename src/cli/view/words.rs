//! Names and numbers in words.

use starling_core::{Dollars, Role, Tokens, Verdict};
use starling_swarm::{ActorId, Spent, StopReason};

pub fn party(party: &ActorId) -> String {
    match party {
        ActorId::User => "you".to_owned(),
        ActorId::Scout => "scout".to_owned(),
        ActorId::Proxy => "proxy user".to_owned(),
        ActorId::Starling => "starling".to_owned(),
        ActorId::Agent(symbol) => symbol.to_string(),
        ActorId::Solo => "agent".to_owned(),
    }
}

pub fn role(role: Role) -> &'static str {
    match role {
        Role::Scout => "scout",
        Role::Agent => "agent",
        Role::Editor => "editor",
        Role::Proxy => "proxy",
    }
}

pub fn verdict(verdict: &Verdict, by: &ActorId) -> String {
    let by = party(by);
    match verdict {
        Verdict::Accept => format!("accepted by {by}"),
        Verdict::Reject { reason } => format!("rejected by {by}: {reason}"),
        Verdict::Steer { text } => format!("steered by {by}: {text}"),
    }
}

pub fn stop_reason(reason: &StopReason) -> String {
    match reason {
        StopReason::Settled => "settled: no agent has work left".to_owned(),
        StopReason::NothingChanged { why } => format!("nothing was changed: {why}"),
        StopReason::TestsFail { failing } => {
            format!("stopped with failing tests: {}", few(failing))
        }
        StopReason::ProblemsRemain { problems } => {
            format!("stopped with new problems: {}", few(problems))
        }
        StopReason::LedgerEmpty { what } => format!("the budget is used up: {what}"),
        StopReason::Cancelled => "cancelled".to_owned(),
        StopReason::Failed { error } => format!("failed: {error}"),
    }
}

/// Formats the resources of a run as one line. `cost` is the formatted cost.
pub fn spent(spent: &Spent, cost: &str) -> String {
    let mut parts = vec![
        count(u64::from(spent.calls), "call"),
        tokens(spent),
        cost.to_owned(),
        format!("{:.1} s", spent.seconds - spent.waiting_seconds),
    ];
    for (number, noun) in [(spent.agents, "agent"), (spent.messages, "message")] {
        if number > 0 {
            parts.push(count(u64::from(number), noun));
        }
    }
    if spent.waiting_seconds >= 1.0 {
        parts.push(format!("{:.0} s waiting for you", spent.waiting_seconds));
    }
    parts.join(" · ")
}

/// Formats the reported tokens. If calls were cut, adds the maximum that they may have used.
fn tokens(spent: &Spent) -> String {
    let all = spent.prompt_tokens + spent.output_tokens;
    match spent.assumed_tokens {
        Tokens(0) => format!(
            "{} tokens in ({} cached), {} out",
            spent.prompt_tokens, spent.cached_tokens, spent.output_tokens
        ),
        assumed => {
            let reported = Tokens(all.0.saturating_sub(assumed.0));
            format!("about {reported} tokens, at most {all}")
        }
    }
}

/// Formats a cost. Zero is shown only if every model is known to be free.
pub fn cost(spent: &Spent) -> String {
    match (spent.unpriced_calls, spent.dollars.0 > 0.0) {
        (0, _) if spent.assumed_tokens.0 > 0 && spent.dollars.0 > 0.0 => {
            format!("at most {}", dollars(spent.dollars))
        }
        (0, _) => dollars(spent.dollars),
        (_, true) => format!(
            "{}, and the cost of {} is unknown",
            dollars(spent.dollars),
            count(u64::from(spent.unpriced_calls), "call")
        ),
        (_, false) => "cost unknown".to_owned(),
    }
}

pub fn dollars(amount: Dollars) -> String {
    match amount.0 {
        0.0 => "$0".to_owned(),
        cents if cents < 1.0 => format!("${cents:.4}"),
        more => format!("${more:.2}"),
    }
}

pub fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        many => format!("{many} {noun}s"),
    }
}

/// Lists the first few names.
pub fn few(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    match names.len() {
        0 => "none".to_owned(),
        all if all > SHOWN => format!("{} and {} more", shown.join(", "), all - SHOWN),
        _ => shown.join(", "),
    }
}
