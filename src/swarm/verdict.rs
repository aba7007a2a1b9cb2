//! Reads the decision of the proxy user: one call of `decide`, or, in plain text, the first line of
//! the reply. A reply that can be read in two ways is unclear.

use schemars::JsonSchema;
use serde::Deserialize;

use super::protocol;
use crate::ports::{ChatReply, ToolCall, ToolCalling, ToolSpec, Verdict};

/// The tool by which a model with native tool calling decides.
const TOOL: &str = "decide";
/// Maximum length of a reason, in characters.
const REASON_MOST: usize = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Accept,
    Reject,
    Steer,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Decide {
    verdict: Decision,
    /// Why it is rejected, or what to do differently.
    #[serde(default)]
    reason: String,
}

/// Why a reply is no decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unclear {
    #[error("The reply holds no decision.")]
    Missing,
    #[error("The reply holds more than one decision.")]
    Several,
    #[error("An ACCEPT stands alone: conditions belong into REJECT or STEER.")]
    Conditional,
    #[error("A REJECT or STEER needs its reason.")]
    NoReason,
    #[error("The reason speaks against the decision.")]
    Contradicted,
}

/// The tools that a proxy user is offered; none in the text protocol.
pub(super) fn tools(calling: ToolCalling) -> Vec<ToolSpec> {
    match calling {
        ToolCalling::Native => vec![ToolSpec {
            name: TOOL.to_owned(),
            description: "Decide on the proposal. Call it exactly once.".to_owned(),
            parameters: protocol::schema::<Decide>(),
        }],
        ToolCalling::Text => Vec::new(),
    }
}

/// How a model is told to decide, after an unclear reply.
pub(super) fn how(calling: ToolCalling) -> &'static str {
    match calling {
        ToolCalling::Native => "Call `decide` exactly once.",
        ToolCalling::Text => {
            "The first line of your reply must be ACCEPT alone, or REJECT: reason, or STEER: what to do differently."
        }
    }
}

/// The decision in a reply. Where tools are called, they decide, and the text must not say otherwise;
/// a model that answers in text although it has the tool is understood as well.
///
/// # Errors
/// [`Unclear`] when the reply holds no decision, or can be read as several.
pub(super) fn read(reply: &ChatReply) -> Result<Verdict, Unclear> {
    let (decision, reason) = match reply.tool_calls.as_slice() {
        [] => in_text(&reply.text)?,
        [call] => in_call(call, &reply.text)?,
        [_, _, ..] => return Err(Unclear::Several),
    };
    let reason: String = reason.trim().chars().take(REASON_MOST).collect();
    let around = match reply.tool_calls.is_empty() {
        true => reason.clone(),
        false => format!("{reason}\n{}", reply.text),
    };
    if is_contradicted(decision, &reason, &around) {
        return Err(Unclear::Contradicted);
    }
    match decision {
        Decision::Accept => Ok(Verdict::Accept),
        Decision::Reject | Decision::Steer if reason.is_empty() => Err(Unclear::NoReason),
        Decision::Reject => Ok(Verdict::Reject { reason }),
        Decision::Steer => Ok(Verdict::Steer { text: reason }),
    }
}

/// Whether a reply speaks plainly against its decision: `around` against an acceptance, and the reason
/// against a rejection.
fn is_contradicted(decision: Decision, reason: &str, around: &str) -> bool {
    const AGAINST: [&str; 40] = [
        "this is wrong",
        "this change is wrong",
        "the change is wrong",
        "it is wrong",
        "hides the symptom",
        "hides the bug",
        "hides the failure",
        "do not apply",
        "don't apply",
        "must not be applied",
        "should not be applied",
        "do not accept",
        "don't accept",
        "cannot accept",
        "can't accept",
        "should be rejected",
        "must be rejected",
        "i reject",
        "tests fail",
        "test fails",
        "breaks the test",
        "breaks tests",
        "does not fix",
        "doesn't fix",
        "breaks callers",
        "breaks the callers",
        "breaks something",
        "is harmful",
        "is dangerous",
        "would not merge",
        "wouldn't merge",
        "would not accept",
        "wouldn't accept",
        "accept once",
        "accept it once",
        "accept only",
        "accept it only",
        "accept when",
        "accept if",
        "accept after",
    ];
    const IN_FAVOUR: [&str; 8] = [
        "looks right, accept",
        "looks good, accept",
        "is right, accept",
        "is correct, accept",
        "i accept",
        "should be accepted",
        "must be accepted",
        "please accept",
    ];
    match decision {
        Decision::Accept => says(around, &AGAINST) || refuses(reason),
        Decision::Reject => says(reason, &IN_FAVOUR),
        Decision::Steer => false,
    }
}

/// Whether a reason begins with the word of another decision.
fn refuses(reason: &str) -> bool {
    let reason = reason.trim().to_lowercase();
    let mut words = reason
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    matches!(
        (words.next(), words.next()),
        (Some("reject" | "rejected" | "wrong" | "steer" | "nope"), _) | (Some("no"), None)
    )
}

/// Whether a text holds one of these phrases as whole words, and no word beside it takes the phrase
/// back.
fn says(text: &str, phrases: &[&str]) -> bool {
    const TAKES_BACK: [&str; 9] = [
        "not", "no", "never", "nor", "longer", "if", "when", "where", "before",
    ];
    const TAKES_BACK_AFTER: [&str; 5] = ["without", "before", "until", "no", "unless"];
    let text = text.to_lowercase().replace('’', "'");
    let text: Vec<&str> = text.split_whitespace().collect();
    let text = format!(" {} ", text.join(" "));
    let is_letter = |c: char| c.is_alphanumeric();
    phrases.iter().any(|phrase| {
        let mut found = text.match_indices(phrase);
        found.any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + phrase.len()..]);
            let is_whole = !before.ends_with(is_letter) && !after.starts_with(is_letter);
            let in_sentence = before.rsplit(['.', ';', '!', '?']).next().unwrap_or(before);
            let mut last = in_sentence.split_whitespace().rev().take(3);
            let taken_back = last.any(|word| TAKES_BACK.contains(&word.trim_matches(',')));
            let mut next = after.split_whitespace().take(2);
            let taken_back = taken_back || next.any(|word| TAKES_BACK_AFTER.contains(&word));
            is_whole && !taken_back
        })
    })
}

fn in_call(call: &ToolCall, text: &str) -> Result<(Decision, String), Unclear> {
    let decide = (call.name == TOOL)
        .then(|| serde_json::from_str::<Decide>(&call.arguments).ok())
        .flatten()
        .ok_or(Unclear::Missing)?;
    let mut said = text.lines().filter_map(decision_of);
    match said.all(|(decision, _)| decision == decide.verdict) {
        true => Ok((decide.verdict, decide.reason)),
        false => Err(Unclear::Several),
    }
}

fn in_text(text: &str) -> Result<(Decision, String), Unclear> {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    let (decision, reason) = decision_of(first).ok_or(Unclear::Missing)?;
    let rest: Vec<&str> = lines.collect();
    if rest.iter().any(|line| decision_of(line).is_some()) {
        return Err(Unclear::Several);
    }
    let reason = format!("{reason}\n{}", rest.join("\n"));
    if decision == Decision::Accept && !reason.trim().is_empty() {
        return Err(Unclear::Conditional);
    }
    Ok((decision, reason))
}

/// The decision with which a line begins, in capitals, and the words after it. Markdown emphasis around
/// it is passed over.
fn decision_of(line: &str) -> Option<(Decision, &str)> {
    let emphasis = ['*', '`', '#', ' ', '\t'];
    let line = line.trim_start_matches(emphasis);
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let end = line.find(|c| !is_letter(c)).unwrap_or(line.len());
    let (word, words) = line.split_at(end);
    let decision = match word {
        "ACCEPT" => Decision::Accept,
        "REJECT" => Decision::Reject,
        "STEER" => Decision::Steer,
        _ => return None,
    };
    let punctuation = |c: char| emphasis.contains(&c) || matches!(c, ':' | '.' | '-');
    Some((decision, words.trim_start_matches(punctuation)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{Dollars, Finish, Usage};

    fn reply(text: &str, calls: &[(&str, &str)]) -> ChatReply {
        let call = |(name, arguments): &(&str, &str)| ToolCall {
            id: "c".to_owned(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        };
        ChatReply {
            model: "m".to_owned(),
            text: text.to_owned(),
            tool_calls: calls.iter().map(call).collect(),
            finish: Finish::Stop,
            usage: Usage::default(),
            cost: Dollars(0.0),
            calls: 1,
        }
    }

    fn text(text: &str) -> Result<Verdict, Unclear> {
        read(&reply(text, &[]))
    }

    fn reject(reason: &str) -> Result<Verdict, Unclear> {
        Ok(Verdict::Reject {
            reason: reason.to_owned(),
        })
    }

    #[test]
    fn the_first_line_decides() {
        assert_eq!(text("ACCEPT"), Ok(Verdict::Accept));
        assert_eq!(text("\n**ACCEPT**.\n"), Ok(Verdict::Accept));
        assert_eq!(
            text("REJECT: hides the symptom.\nAccept it only when g is mended too."),
            reject("hides the symptom.\nAccept it only when g is mended too.")
        );
        assert_eq!(text("**REJECT:** it hides"), reject("it hides"));
        let steer = Verdict::Steer {
            text: "keep the name".to_owned(),
        };
        assert_eq!(text("STEER: keep the name"), Ok(steer));
    }

    #[test]
    fn a_reply_that_can_be_read_in_two_ways_is_unclear() {
        for (said, why) in [
            ("", Unclear::Missing),
            ("Looks good to me", Unclear::Missing),
            ("accept", Unclear::Missing),
            ("ACCEPTABLE? Hardly.", Unclear::Missing),
            ("I looked at it.\nACCEPT", Unclear::Missing),
            ("ACCEPT only when g is mended too", Unclear::Conditional),
            ("ACCEPT\nIf g is mended.", Unclear::Conditional),
            ("REJECT: no\nACCEPT", Unclear::Several),
            ("ACCEPT\nREJECT: no", Unclear::Several),
            ("REJECT", Unclear::NoReason),
            ("STEER:", Unclear::NoReason),
        ] {
            assert_eq!(text(said), Err(why), "{said:?}");
        }
    }

    #[test]
    fn a_reason_that_speaks_against_the_decision_is_unclear() {
        let decide = |verdict: &str, reason: &str, text: &str| {
            let arguments = serde_json::json!({"verdict": verdict, "reason": reason}).to_string();
            read(&reply(text, &[("decide", &arguments)]))
        };
        for (verdict, reason) in [
            ("accept", "This is wrong."),
            ("accept", "It hides the symptom; f is the cause"),
            ("accept", "Do NOT apply it"),
            ("accept", "Don’t apply this."),
            ("accept", "The tests fail with it"),
            ("accept", "It should be rejected"),
            ("accept", "This doesn't fix the cause"),
            ("accept", "reject"),
            ("accept", "No."),
            ("accept", "Wrong."),
            ("accept", "Steer: use fsum"),
            ("accept", "Accept once the tests are added"),
            ("accept", "It breaks callers of total"),
            ("accept", "I would not merge this"),
            ("reject", "Looks right, accept"),
            ("reject", "It is correct, accept."),
            ("reject", "This should be accepted"),
        ] {
            assert_eq!(
                decide(verdict, reason, ""),
                Err(Unclear::Contradicted),
                "{reason}"
            );
        }
        let said = "The change is wrong.";
        assert_eq!(decide("accept", "", said), Err(Unclear::Contradicted));
        for reason in [
            "",
            "It does not hide anything",
            "Mends the cause, and no tests fail",
            "I see nothing that is wrong",
            "It mends what was wrong: before this, tests fail",
            "The tests fail without it",
            "The tests fail no longer",
            "No problem found",
            "Once merged, callers get the right sum",
        ] {
            let decided = decide("accept", reason, "It is right.");
            assert_eq!(decided, Ok(Verdict::Accept), "{reason}");
        }
        for reason in [
            "It hides the symptom.\nAccept it only when g is mended too.",
            "Tests fail",
            "It should not be accepted",
            "Looks right but hides the bug",
        ] {
            assert_eq!(decide("reject", reason, ""), reject(reason), "{reason}");
        }
        // A correction that steers may say both.
        let steer = Verdict::Steer {
            text: "This is wrong: keep the name".to_owned(),
        };
        assert_eq!(text("STEER: This is wrong: keep the name"), Ok(steer));
    }

    #[test]
    fn one_call_of_the_tool_decides() {
        let accept = ("decide", r#"{"verdict": "accept"}"#);
        let no = ("decide", r#"{"verdict": "reject", "reason": "no"}"#);
        assert_eq!(read(&reply("It is right.", &[accept])), Ok(Verdict::Accept));
        assert_eq!(read(&reply("REJECT: no", &[no])), reject("no"));
        for (said, calls, why) in [
            ("", vec![accept, no], Unclear::Several),
            ("", vec![accept, accept], Unclear::Several),
            ("REJECT: no", vec![accept], Unclear::Several),
            (
                "",
                vec![("decide", r#"{"verdict": "reject"}"#)],
                Unclear::NoReason,
            ),
            (
                "",
                vec![("decide", r#"{"verdict": "maybe"}"#)],
                Unclear::Missing,
            ),
            ("ACCEPT", vec![("decide", "{")], Unclear::Missing),
            ("ACCEPT", vec![("propose", "{}")], Unclear::Missing),
        ] {
            assert_eq!(read(&reply(said, &calls)), Err(why), "{said:?} {calls:?}");
        }
    }
}
