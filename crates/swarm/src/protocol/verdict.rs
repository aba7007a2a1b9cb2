//! Parses the decision of the proxy user (a model that reviews in place of the user): a call of the
//! tool `decide`, or the first line of a plain-text reply. An ambiguous reply is an error.
//!
//! The tool has separate fields for conditions and objections, so that an acceptance with either of
//! them is detected without parsing prose. Any other words with an acceptance could set a condition,
//! too, so they make it unclear: the model is asked once more, and then its call alone decides.

use schemars::JsonSchema;
use serde::Deserialize;

use starling_core::{ChatReply, Finish, ToolCall, ToolCalling, ToolSpec, Verdict};
use starling_text::invisible;

/// Name of the tool for models with native tool calls.
const TOOL: &str = "decide";
/// Maximum length of a reason, in characters.
const REASON_MOST: usize = 2_000;

// The decision of the proxy user about a proposal, as an argument of `decide`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Accept,
    Reject,
    Steer,
}

/// An acceptance counts only if both fields, for conditions and for objections, are present. `None`
/// stands for a missing field.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["conditions", "objections", "verdict"]))]
struct Decide {
    /// What must happen before the proposal may be applied; empty if nothing must. A proposal with a
    /// condition cannot be accepted: reject or steer.
    #[serde(default, deserialize_with = "words")]
    #[schemars(with = "String")]
    conditions: Option<String>,
    /// What is wrong with the proposal, what it breaks, or why it is not wanted; empty if nothing is. A
    /// proposal with an objection cannot be accepted: reject or steer.
    #[serde(default, deserialize_with = "words")]
    #[schemars(with = "String")]
    objections: Option<String>,
    verdict: Decision,
    /// Why it is rejected, or what to do differently. Empty for an accept.
    #[serde(default)]
    reason: String,
}

/// Deserializes a string, a list of strings or null. Phrases that mean "nothing" become an empty
/// string.
fn words<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    /// A string, or a list of strings.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum TextOrTexts {
        One(String),
        Many(Vec<String>),
    }
    let said = match Option::<TextOrTexts>::deserialize(deserializer)? {
        Some(TextOrTexts::One(text)) => vec![text],
        Some(TextOrTexts::Many(texts)) => texts,
        None => Vec::new(),
    };
    let said = said.iter().map(|text| text.trim());
    let said = said.filter(|text| !says_nothing(text));
    Ok(Some(said.collect::<Vec<&str>>().join("\n")))
}

/// Returns whether a text means "nothing". A text with invisible characters does not, because it may
/// have a meaning that the user cannot see.
fn says_nothing(text: &str) -> bool {
    const NOTHING: [&str; 15] = [
        "",
        "none",
        "no",
        "nothing",
        "n/a",
        "na",
        "nil",
        "null",
        "empty",
        "no condition",
        "no conditions",
        "no objection",
        "no objections",
        "not applicable",
        "none needed",
    ];
    let has_invisible = invisible(text).next().is_some();
    let text = text.to_lowercase();
    let text = text.trim_matches(|c: char| !c.is_alphanumeric());
    NOTHING.contains(&text) && !has_invisible
}

/// Why a reply of the proxy user is not a clear decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnclearDecision {
    #[error("The reply contains no decision.")]
    Missing,
    #[error("The reply contains more than one decision.")]
    Several,
    #[error("An ACCEPT must not contain a condition: use REJECT or STEER to set one.")]
    Conditional,
    #[error("An accept must not contain an objection: use reject or steer to object.")]
    Objected,
    #[error(
        "An accept must have the fields `conditions` and `objections`: leave them empty if there are none."
    )]
    Unstated,
    #[error("A REJECT or STEER must give a reason.")]
    NoReason,
    #[error(
        "The acceptance came with words. If they set a condition or object to the proposal, reject or steer; if they do not, accept again without any words."
    )]
    Worded,
    /// The reply was cut off, so text that followed the acceptance may be missing.
    #[error("The reply was not complete, so its acceptance does not count.")]
    Incomplete,
}

/// Returns the tools for the proxy user; empty for the text protocol.
pub(crate) fn tools(calling: ToolCalling) -> Vec<ToolSpec> {
    match calling {
        ToolCalling::Native => vec![ToolSpec {
            name: TOOL.to_owned(),
            description: "Decide on the proposal. Call it exactly once.".to_owned(),
            parameters: starling_dialogue::schema::<Decide>(),
        }],
        ToolCalling::Text => Vec::new(),
    }
}

/// Returns the instructions for stating a decision. They are sent after a reply whose decision is
/// unclear.
pub(crate) fn how(calling: ToolCalling) -> &'static str {
    match calling {
        ToolCalling::Native => {
            "Call `decide` exactly once. Leave `conditions`, `objections` and `reason` empty for an accept; else reject or steer, with the reason."
        }
        ToolCalling::Text => {
            "The first line of your reply must be ACCEPT alone, or REJECT: reason, or STEER: what to do differently."
        }
    }
}

/// Reads the decision from a reply. Tool calls take precedence, and the text beside them must not
/// state another decision. A plain-text decision is also accepted from a model that has the tool. An
/// acceptance counts only in a complete reply.
///
/// The text beside an accepting call must be empty, unless `was_asked` says that the model was
/// already asked about such words. The reason of an acceptance must be empty in any case.
///
/// # Errors
/// Returns [`UnclearDecision`] if the reply contains no decision, is ambiguous, or breaks off after
/// an acceptance.
pub(crate) fn read(reply: &ChatReply, was_asked: bool) -> Result<Verdict, UnclearDecision> {
    let said = match reply.tool_calls.as_slice() {
        [] => in_text(&reply.text)?,
        [call] => in_call(call, &reply.text)?,
        [_, _, ..] => return Err(UnclearDecision::Several),
    };
    let reason: String = said.reason.trim().chars().take(REASON_MOST).collect();
    let is_called = !reply.tool_calls.is_empty();
    let has_words = !reason.is_empty() || is_called && !was_asked && !reply.text.trim().is_empty();
    let is_complete = match reply.finish {
        Finish::Stop | Finish::ToolCalls => true,
        Finish::Length | Finish::Filtered => false,
    };
    match said.decision {
        Decision::Accept if !is_complete => Err(UnclearDecision::Incomplete),
        Decision::Accept if !said.conditions.is_empty() => Err(UnclearDecision::Conditional),
        Decision::Accept if !said.objections.is_empty() => Err(UnclearDecision::Objected),
        Decision::Accept if has_words => Err(UnclearDecision::Worded),
        Decision::Accept => Ok(Verdict::Accept),
        Decision::Reject | Decision::Steer => {
            let parts = [reason, said.objections, said.conditions];
            let parts = parts.into_iter().filter(|part| !part.is_empty());
            let reason = parts.collect::<Vec<String>>().join("\n");
            match (said.decision, reason.is_empty()) {
                (_, true) => Err(UnclearDecision::NoReason),
                (Decision::Steer, false) => Ok(Verdict::Steer { text: reason }),
                (Decision::Accept | Decision::Reject, false) => Ok(Verdict::Reject { reason }),
            }
        }
    }
}

/// A decision with the conditions, objections and reason that the reply gives for it.
#[derive(Debug)]
struct DecisionText {
    decision: Decision,
    conditions: String,
    objections: String,
    reason: String,
}

fn in_call(call: &ToolCall, text: &str) -> Result<DecisionText, UnclearDecision> {
    let decide = (call.name == TOOL)
        .then(|| serde_json::from_str::<Decide>(&call.arguments).ok())
        .flatten()
        .ok_or(UnclearDecision::Missing)?;
    let mut said = text.lines().filter_map(decision_of);
    if said.any(|(decision, _)| decision != decide.verdict) {
        return Err(UnclearDecision::Several);
    }
    let is_stated = decide.conditions.is_some() && decide.objections.is_some();
    if decide.verdict == Decision::Accept && !is_stated {
        return Err(UnclearDecision::Unstated);
    }
    Ok(DecisionText {
        decision: decide.verdict,
        conditions: decide.conditions.unwrap_or_default(),
        objections: decide.objections.unwrap_or_default(),
        reason: decide.reason,
    })
}

fn in_text(text: &str) -> Result<DecisionText, UnclearDecision> {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    let (decision, reason) = decision_of(first).ok_or(UnclearDecision::Missing)?;
    let rest: Vec<&str> = lines.collect();
    if rest.iter().any(|line| decision_of(line).is_some()) {
        return Err(UnclearDecision::Several);
    }
    let reason = format!("{reason}\n{}", rest.join("\n"));
    if decision == Decision::Accept && !reason.trim().is_empty() {
        return Err(UnclearDecision::Conditional);
    }
    Ok(DecisionText {
        decision,
        conditions: String::new(),
        objections: String::new(),
        reason,
    })
}

/// Returns the decision in capitals at the start of a line and the rest of the line. Markdown
/// emphasis is ignored.
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
    use starling_core::{Dollars, Usage};

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

    const ACCEPT: &str = r#"{"verdict": "accept", "conditions": "", "objections": ""}"#;

    fn text(text: &str) -> Result<Verdict, UnclearDecision> {
        read(&reply(text, &[]), false)
    }

    #[test]
    fn an_acceptance_in_an_incomplete_reply_is_unclear() {
        let accept = ("decide", ACCEPT);
        for finish in [Finish::Length, Finish::Filtered] {
            let cut = |text: &str, calls: &[(&str, &str)]| {
                let whole = reply(text, calls);
                read(&ChatReply { finish, ..whole }, false)
            };
            assert_eq!(cut("ACCEPT", &[]), Err(UnclearDecision::Incomplete));
            assert_eq!(cut("", &[accept]), Err(UnclearDecision::Incomplete));
            assert_eq!(cut("REJECT: it hides", &[]), reject("it hides"));
            assert_eq!(cut("I looked", &[]), Err(UnclearDecision::Missing));
        }
    }

    fn reject(reason: &str) -> Result<Verdict, UnclearDecision> {
        Ok(Verdict::Reject {
            reason: reason.to_owned(),
        })
    }

    #[test]
    fn first_line_of_a_plain_text_review_decides() {
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
    fn ambiguous_review_reply_is_unclear() {
        for (said, why) in [
            ("", UnclearDecision::Missing),
            ("Looks good to me", UnclearDecision::Missing),
            ("accept", UnclearDecision::Missing),
            ("ACCEPTABLE? Hardly.", UnclearDecision::Missing),
            ("I looked at it.\nACCEPT", UnclearDecision::Missing),
            (
                "ACCEPT only when g is mended too",
                UnclearDecision::Conditional,
            ),
            ("ACCEPT\nIf g is mended.", UnclearDecision::Conditional),
            ("REJECT: no\nACCEPT", UnclearDecision::Several),
            ("ACCEPT\nREJECT: no", UnclearDecision::Several),
            ("REJECT", UnclearDecision::NoReason),
            ("STEER:", UnclearDecision::NoReason),
        ] {
            assert_eq!(text(said), Err(why), "{said:?}");
        }
    }

    #[test]
    fn acceptance_with_words_is_unclear_and_a_rejection_with_any_words_is_clear() {
        let decide = |verdict: &str, reason: &str, text: &str, was_asked| {
            let arguments = serde_json::json!({
                "verdict": verdict, "conditions": "", "objections": "", "reason": reason,
            })
            .to_string();
            read(&reply(text, &[("decide", &arguments)]), was_asked)
        };
        for words in [
            "This is wrong.",
            "Do not apply it before g is mended",
            "Good, provided mul is fixed",
            "It should be rejected",
            "No.",
            "It is right.",
            "\u{200b}",
        ] {
            let unclear = Err(UnclearDecision::Worded);
            for (reason, text, was_asked) in
                [(words, "", false), (words, "", true), ("", words, false)]
            {
                let decided = decide("accept", reason, text, was_asked);
                assert_eq!(decided, unclear, "{reason:?} {text:?} {was_asked}");
            }
            assert_eq!(decide("accept", "", words, true), Ok(Verdict::Accept));
            assert_eq!(decide("reject", words, "", false), reject(words.trim()));
        }
        assert_eq!(decide("accept", " ", "\n", false), Ok(Verdict::Accept));
        let steer = Verdict::Steer {
            text: "This is wrong: keep the name".to_owned(),
        };
        assert_eq!(text("STEER: This is wrong: keep the name"), Ok(steer));
    }

    fn decide(arguments: serde_json::Value) -> Result<Verdict, UnclearDecision> {
        read(&reply("", &[("decide", &arguments.to_string())]), false)
    }

    #[test]
    fn acceptance_with_a_listed_condition_or_objection_is_unclear() {
        use serde_json::json;
        let says = |verdict: &str, conditions, objections| {
            decide(json!({
                "verdict": verdict, "conditions": conditions, "objections": objections, "reason": "",
            }))
        };
        let accept = |conditions, objections| says("accept", conditions, objections);
        let test = || json!("a test for g");
        for condition in [test(), json!(["a test for g"]), json!("No tests yet")] {
            assert_eq!(
                accept(condition, json!("")),
                Err(UnclearDecision::Conditional)
            );
        }
        assert_eq!(
            accept(json!(""), json!("slow")),
            Err(UnclearDecision::Objected)
        );
        let unseen = accept(json!("\u{200b}\u{200b}"), json!(""));
        assert_eq!(unseen, Err(UnclearDecision::Conditional));
        for nothing in [
            json!(""),
            json!("None."),
            json!([]),
            json!(null),
            json!("n/a"),
        ] {
            let decided = accept(nothing.clone(), nothing.clone());
            assert_eq!(decided, Ok(Verdict::Accept), "{nothing}");
        }
        assert_eq!(says("reject", json!(""), json!("slow")), reject("slow"));
        let steer = Verdict::Steer {
            text: "a test for g".to_owned(),
        };
        assert_eq!(says("steer", test(), json!("none")), Ok(steer));
    }

    #[test]
    fn acceptance_without_the_field_for_conditions_or_objections_is_unclear() {
        use serde_json::json;
        for given in [
            json!({"verdict": "accept"}),
            json!({"verdict": "accept", "conditions": ""}),
            json!({"verdict": "accept", "objections": null, "reason": ""}),
        ] {
            assert_eq!(
                decide(given.clone()),
                Err(UnclearDecision::Unstated),
                "{given}"
            );
        }
        let no = json!({"verdict": "reject", "reason": "no"});
        assert_eq!(decide(no), reject("no"));
    }

    #[test]
    fn decide_tool_requires_conditions_and_objections() {
        let tools = tools(ToolCalling::Native);
        let required = &tools[0].parameters["required"];
        let expected = serde_json::json!(["conditions", "objections", "verdict"]);
        assert_eq!(*required, expected, "{}", tools[0].parameters);
    }

    #[test]
    fn exactly_one_call_of_the_decide_tool_decides() {
        let accept = ("decide", ACCEPT);
        let no = ("decide", r#"{"verdict": "reject", "reason": "no"}"#);
        assert_eq!(read(&reply("", &[accept]), false), Ok(Verdict::Accept));
        assert_eq!(read(&reply("REJECT: no", &[no]), false), reject("no"));
        for (said, calls, why) in [
            ("", vec![accept, no], UnclearDecision::Several),
            ("", vec![accept, accept], UnclearDecision::Several),
            ("REJECT: no", vec![accept], UnclearDecision::Several),
            (
                "",
                vec![("decide", r#"{"verdict": "reject"}"#)],
                UnclearDecision::NoReason,
            ),
            (
                "",
                vec![("decide", r#"{"verdict": "maybe"}"#)],
                UnclearDecision::Missing,
            ),
            ("ACCEPT", vec![("decide", "{")], UnclearDecision::Missing),
            ("ACCEPT", vec![("propose", "{}")], UnclearDecision::Missing),
        ] {
            assert_eq!(
                read(&reply(said, &calls), false),
                Err(why),
                "{said:?} {calls:?}"
            );
        }
    }
}
