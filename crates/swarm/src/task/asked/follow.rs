//! Requests that the tests follow a change of the code: "make label a property, also in the tests",
//! "…; the tests have to follow".

use super::{AUXILIARY, CHANGE, NEGATION, Token};

/// Further verbs that begin a request to change something in several places.
const USES: [&str; 3] = ["use", "call", "pass"];
/// Verbs that give code another form, if a word of [`FORMS`] follows.
const TO_FORM: [&str; 16] = [
    "make", "turn", "add", "give", "become", "becomes", "be", "is", "take", "takes", "get", "gets",
    "have", "has", "declare", "switch",
];
/// Words for what code can be, or can have, and by which callers use it differently.
const FORMS: [&str; 29] = [
    "property",
    "properties",
    "attribute",
    "attributes",
    "field",
    "method",
    "function",
    "classmethod",
    "staticmethod",
    "coroutine",
    "generator",
    "iterator",
    "class",
    "dataclass",
    "namedtuple",
    "enum",
    "async",
    "asynchronous",
    "parameter",
    "parameters",
    "argument",
    "arguments",
    "keyword",
    "positional",
    "optional",
    "required",
    "mandatory",
    "private",
    "public",
];
/// Maximum number of words between a verb of [`TO_FORM`] and the form.
const TO_FORM_MOST: usize = 8;
/// Words between "in" and the tests.
const ARTICLES: [&str; 6] = ["the", "its", "all", "our", "their", "existing"];
/// Verbs that say that their subject changes together with something else.
const FOLLOW: [&str; 5] = ["follow", "follows", "change", "adapt", "adjust"];
/// Words after a verb of [`FOLLOW`] that name no other thing to follow.
const TOGETHER: [&str; 13] = [
    "too",
    "also",
    "suit",
    "along",
    "accordingly",
    "as",
    "well",
    "it",
    "this",
    "that",
    "then",
    "likewise",
    "please",
];
/// Words that negate the subject of a sentence.
const NOTHING: [&str; 5] = ["no", "nothing", "none", "neither", "not"];

/// Returns whether a sentence asks for a change "also in the tests", "in the tests, too" or
/// "including the tests", where `at` is the index of the word for the tests.
pub(super) fn is_also_meant(sentence: &[Token], at: usize) -> bool {
    let before = lower(&sentence[..at]);
    let after = lower(&sentence[at + 1..]);
    let mut place = before.as_slice();
    while let [rest @ .., article] = place
        && ARTICLES.contains(&article.as_str())
    {
        place = rest;
    }
    let too = match after.first().map(String::as_str) {
        Some("too" | "also" | "accordingly" | "likewise") => true,
        Some("as") => after.get(1).is_some_and(|word| word == "well"),
        _ => false,
    };
    let request = match place {
        [request @ .., also, within] if within == "in" && also == "also" => request,
        // "in the code and in the tests", "in code and tests"
        [request @ .., and, within] if within == "in" && and == "and" => request,
        [request @ .., including, within] if within == "in" && including == "including" => request,
        [request @ .., within, _, and] if within == "in" && and == "and" => request,
        [request @ .., including] if including == "including" => request,
        [request @ .., within] if within == "in" && too => request,
        _ => return false,
    };
    let mut last = request.iter().rev().take(2);
    let is_negated = last.any(|word| NEGATION.contains(&word.as_str()));
    !is_negated && (is_change(request) || has_form(request))
}

/// Returns whether the sentence says that the tests change together with the code, as in "the tests
/// have to follow". `at` is the index of the word for the tests.
pub(super) fn must_follow(sentence: &[Token], at: usize) -> bool {
    let mut before = sentence[..at].iter().rev().take(4);
    let is_nothing = before.any(|token| NOTHING.contains(&token.word.to_lowercase().as_str()));
    let after = &sentence[at + 1..];
    // "the tests that call it have to follow"
    let said = match after.first().map(|token| token.word.to_lowercase()) {
        Some(word) if ["that", "which", "of", "for"].contains(&word.as_str()) => {
            let verb = after.iter().take(TO_FORM_MOST).position(is_said);
            verb.map_or(&[][..], |at| &after[at..])
        }
        _ => after,
    };
    let count = said.iter().take_while(|token| is_said(token)).count();
    let [verb, rest @ ..] = &said[count..] else {
        return false;
    };
    let word = verb.word.to_lowercase();
    // "the tests change" may tell of something, "the tests follow" does not.
    let is_verb = FOLLOW.contains(&word.as_str()) && (count > 0 || word == "follow");
    let is_end = verb.ends_clause
        || lower(rest)
            .iter()
            .all(|word| TOGETHER.contains(&word.as_str()));
    is_verb && is_end && !is_nothing
}

fn is_said(token: &Token) -> bool {
    AUXILIARY.contains(&token.word.to_lowercase().as_str())
}

fn lower(tokens: &[Token]) -> Vec<String> {
    tokens
        .iter()
        .map(|token| token.word.to_lowercase())
        .collect()
}

/// Returns whether a request begins with a verb that changes its object.
fn is_change(request: &[String]) -> bool {
    let mut words = request.iter().skip_while(|word| *word == "please");
    let first = words.next().map(String::as_str);
    first.is_some_and(|word| CHANGE.contains(&word) || USES.contains(&word))
}

/// Returns whether a request gives code another form: "make label a property", "label must become a
/// property".
fn has_form(request: &[String]) -> bool {
    let verbs = request.iter().enumerate();
    let mut verbs = verbs.filter(|(_, word)| TO_FORM.contains(&word.as_str()));
    verbs.any(|(at, _)| {
        let mut near = request[at + 1..].iter().take(TO_FORM_MOST);
        near.any(|word| {
            let mut parts = word.split('-');
            parts.any(|part| FORMS.contains(&part))
        })
    })
}
