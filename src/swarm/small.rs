//! How a small model is asked: one function, what fails, and one answer. What it answered wrongly once it
//! answers again when it is shown its answer and what came of it, so it is asked in other ways instead.

use super::agent::Mind;
use super::context::{Caps, fence_language, kind_name, test_symbol};
use super::event::Party;
use super::excerpt::excerpt;
use super::failing;
use super::hub::Hub;
use super::lookup::{Lookup, cap};
use super::required;
use crate::ports::TestCase;
use crate::prompts::{AgentSystemSmall, AgentSystemSmallExplain, Prompt, SymbolSmallPrompt};
use crate::syntax::{SymbolKind, SymbolPath};

/// Temperature of answers behind the first two.
const SAMPLING: f32 = 0.8;
/// Failing tests that are shown.
const TESTS: usize = 2;

/// What an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wording {
    /// The code alone.
    Code,
    /// First what is wrong, in a sentence.
    Explain,
}

/// Begins a piece of work.
pub(super) fn ask(hub: &Hub, mind: &mut Mind, symbol: &SymbolPath) {
    put(hub, mind, symbol, Wording::Code, 0.0);
}

/// Before an answer that follows `refused` others: the second explains, those after it are drawn at
/// random.
pub(super) fn ask_again(hub: &Hub, mind: &mut Mind, refused: u32) {
    let Party::Agent(symbol) = mind.party.clone() else {
        return;
    };
    match refused {
        0 => return,
        1 => put(hub, mind, &symbol, Wording::Explain, 0.0),
        _ => put(hub, mind, &symbol, Wording::Code, SAMPLING),
    }
    mind.repeats.clear();
}

/// How many refused answers end a piece of work: an answer of a small model costs little, and every
/// other one is the same as before.
pub(super) fn attempts_most(repairs: u32) -> u32 {
    repairs.saturating_mul(2)
}

fn put(hub: &Hub, mind: &mut Mind, symbol: &SymbolPath, wording: Wording, temperature: f32) {
    let text = prompt(hub, symbol, mind.cause.clone(), wording);
    let system = match wording {
        Wording::Code => AgentSystemSmall {}.render(),
        Wording::Explain => AgentSystemSmallExplain {}.render(),
    };
    let beginning = match wording {
        Wording::Code => beginning(hub, symbol),
        Wording::Explain => String::new(),
    };
    let Some(conversation) = mind.conversation.as_mut() else {
        return;
    };
    conversation.forget();
    conversation.say_first(system);
    conversation.user(text);
    conversation.temperature = temperature;
    conversation.beginning = beginning;
}

/// The answer up to the name of the function: small models like to repeat the imports of its file. It
/// ends where a token does.
fn beginning(hub: &Hub, path: &SymbolPath) -> String {
    let Ok(found) = hub.lookup().symbol(path) else {
        return String::new();
    };
    match found.symbol.kind {
        SymbolKind::Function | SymbolKind::Method => {}
        SymbolKind::Module | SymbolKind::Class => return String::new(),
    }
    let source = found.source();
    let named = format!("def {}", path.base_name());
    let Some(at) = source.find(&named) else {
        return String::new();
    };
    let language = fence_language(found.tree.language());
    format!("```{language}\n{}", &source[..at + named.len()])
}

fn prompt(hub: &Hub, path: &SymbolPath, cause: String, wording: Wording) -> String {
    let lookup = hub.lookup();
    let caps = Caps::of(hub.outside.models.agent.profile());
    let found = match lookup.symbol(path) {
        Ok(found) => found,
        Err(error) => return format!("{error}\n\n{cause}"),
    };
    let failing = failing_tests_of(hub, &lookup, path);
    let in_words = |case: &TestCase| {
        let test = test_symbol(&lookup, case).and_then(|test| lookup.symbol(&test).ok());
        match test {
            Some(test) => {
                let (source, _) = excerpt(&test, lookup.focus(), caps.excerpt);
                let language = fence_language(test.tree.language());
                failing::with_source(case, language, source.trim_end())
            }
            None => failing::in_words(case),
        }
    };
    SymbolSmallPrompt {
        task: cap(&hub.task.text, caps.task),
        failures: failing.iter().map(in_words).collect(),
        cause,
        explain: wording == Wording::Explain,
        kind: kind_name(found.symbol.kind).to_owned(),
        language: fence_language(found.tree.language()).to_owned(),
        source: excerpt(&found, lookup.focus(), caps.source)
            .0
            .trim_end()
            .to_owned(),
    }
    .render()
}

/// Failing tests that use a symbol by its name; where none does, the first that have to pass.
fn failing_tests_of(hub: &Hub, lookup: &Lookup, path: &SymbolPath) -> Vec<TestCase> {
    let (report, mut failing) = {
        let state = hub.state();
        (
            state.latest.clone().or(state.before.clone()),
            state.failing.clone(),
        )
    };
    let left_alone = required::left_alone(hub);
    failing.retain(|id| !left_alone.contains(id));
    let Some(report) = report else {
        return Vec::new();
    };
    let uses = |case: &TestCase| {
        let test = test_symbol(lookup, case).and_then(|test| lookup.symbol(&test).ok());
        case.message.contains(path.base_name())
            || test.is_some_and(|test| test.source().contains(path.base_name()))
    };
    let all = report.cases.into_iter();
    let all: Vec<TestCase> = all.filter(|case| failing.contains(&case.id)).collect();
    let using: Vec<TestCase> = all.iter().filter(|case| uses(case)).cloned().collect();
    let shown = if using.is_empty() { all } else { using };
    shown.into_iter().take(TESTS).collect()
}
