//! Prompts for small models: one function, the failing tests and one reply. A small model that sees
//! its own wrong reply repeats it, so after a failure the next prompt asks in another way instead
//! of showing the reply.

use crate::agent::outcome;
use crate::agent::outcome::Ending;
use crate::check::required;
use crate::context::prompt_parts::{Caps, fence_language, kind_name};
use crate::context::write_test::SmallPrompt;
use crate::context::{failing, write_test};
use crate::event::actor::ActorId;
use crate::excerpt::excerpt;
use crate::lookup::test_symbol::test_symbol;
use crate::lookup::{Lookup, cap};
use crate::proposal::small_replies::is_document;
use crate::protocol::Pick;
use crate::protocol::conversation::LONGEST_ANSWER;
use crate::state::agent_state::AgentState;
use crate::state::run_context::RunContext;
use crate::task::goal::Goal;
use crate::task::names::Names;
use starling_core::TestCase;
use starling_core::prompts::{
    AgentSystemSmall, AgentSystemSmallExplain, DocumentSmallPrompt, DocumentSystemSmall, Prompt,
    SymbolSmallPrompt,
};
use starling_syntax::{SymbolKind, SymbolPath};

/// Sampling temperature of prompts whose replies should vary.
const SAMPLING: f32 = 0.8;
/// Number of identical replies after which no more random samples are requested.
const SAME_MOST: u32 = 2;
/// Maximum size in bytes of a document that a small model rewrites.
const DOCUMENT_MOST: usize = 4_000;
/// Maximum number of failing tests in a prompt.
const TESTS: usize = 2;

/// What a prompt asks the model to reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wording {
    /// Only the code.
    Code,
    /// First a sentence about the error, then the code.
    Explain,
}

/// Starts a piece of work with the first prompt.
pub(crate) fn ask(run: &RunContext, agent: &mut AgentState, symbol: &SymbolPath) {
    put(run, agent, symbol, Wording::Code, 0.0);
}

/// The next step in the work with a small model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PromptStep {
    /// Call the model with the prepared conversation.
    Answer,
    /// Use hole filling: remove one statement after the other and let the model write it anew.
    Fill { temperature: f32 },
}

/// The prompts for a model that supports hole filling, in the order in which they are tried. The
/// fastest come first.
const FILLING: [PromptKind; 6] = [
    PromptKind::For(Wording::Code, 0.0),
    PromptKind::ToFill(0.0),
    PromptKind::For(Wording::Code, SAMPLING),
    PromptKind::ToFill(SAMPLING),
    PromptKind::For(Wording::Explain, 0.0),
    PromptKind::For(Wording::Code, SAMPLING),
];
/// The prompts for other models, and for runs without a failing test, in which the texts that fill
/// a hole cannot be compared.
const WHOLE: [PromptKind; 3] = [
    PromptKind::For(Wording::Code, 0.0),
    PromptKind::For(Wording::Explain, 0.0),
    PromptKind::For(Wording::Code, SAMPLING),
];
/// Number of entries of [`FILLING`] that are used in the quick first pass over the functions that
/// may be the cause.
const QUICK: usize = 2;

/// One prompt for a small model, with its sampling temperature: a whole reply in one of the
/// wordings, or hole filling.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PromptKind {
    For(Wording, f32),
    ToFill(f32),
}

/// Returns the next step for the agent in this piece of work; `None` if all prompts have been
/// tried.
pub(crate) fn next_way(run: &RunContext, agent: &mut AgentState) -> Option<PromptStep> {
    let ActorId::Agent(symbol) = agent.actor.clone() else {
        return Some(PromptStep::Answer);
    };
    let is_stuck = agent.attempts.repeated() >= SAME_MOST;
    let asking = loop {
        let asking = ways(run, &symbol).nth(agent.ways)?;
        agent.ways += 1;
        // If the model repeated its replies, another random sample is less promising than hole
        // filling, so the sample is skipped.
        let is_random = asking == PromptKind::For(Wording::Code, SAMPLING);
        if !(is_stuck && is_random && run.services.models.agent.fills()) {
            break asking;
        }
    };
    match asking {
        PromptKind::For(..) if agent.ways == 1 => {}
        PromptKind::For(wording, temperature) => {
            put(run, agent, &symbol, wording, temperature);
            agent.repeats.clear();
        }
        PromptKind::ToFill(temperature) => return Some(PromptStep::Fill { temperature }),
    }
    Some(PromptStep::Answer)
}

/// Returns the outcome of an agent for which all prompts have been tried without success.
pub(crate) fn gave_up(run: &RunContext, agent: &AgentState) -> Ending {
    let summary = agent.attempts.summary();
    let symbol = agent.actor.symbol();
    match symbol.is_some_and(|symbol| is_looked_at_again(run, symbol)) {
        true => outcome::gave_up(format!("{summary}; others are looked at first")),
        false => outcome::gave_up(summary),
    }
}

/// Returns the prompts for the owner of a symbol, in the order in which they are tried.
///
/// Replies of a small model are cheap and often repeat each other, so it gets twice as many
/// attempts as the limit on refused proposals allows other models. The last prompt is repeated
/// until this number is reached.
fn ways(run: &RunContext, symbol: &SymbolPath) -> impl Iterator<Item = PromptKind> {
    let most = run.budget.limits().repairs.saturating_mul(2);
    let mut most = usize::try_from(most)
        .unwrap_or(usize::MAX)
        .saturating_add(1);
    if is_looked_at_again(run, symbol) {
        most = most.min(QUICK);
    }
    let tells_good_from_bad = {
        let state = run.tests();
        !state.failing.is_empty() && !state.required.beside_failures
    };
    let fills = run.services.models.agent.fills() && tells_good_from_bad;
    let ways: &[PromptKind] = if fills { &FILLING } else { &WHOLE };
    let last = PromptKind::For(Wording::Code, SAMPLING);
    let ways = ways.iter().copied().chain(std::iter::repeat(last));
    ways.take(most)
}

fn put(
    run: &RunContext,
    agent: &mut AgentState,
    symbol: &SymbolPath,
    wording: Wording,
    temperature: f32,
) {
    let SmallPrompt {
        system,
        text,
        beginning,
        stop,
        longest,
    } = words(run, agent, symbol, wording);
    let Some(conversation) = agent.conversation.as_mut() else {
        return;
    };
    conversation.forget();
    conversation.say_first(system);
    conversation.user(text);
    conversation.temperature = temperature;
    conversation.beginning = beginning;
    conversation.longest = longest;
    conversation.stop = stop;
}

fn words(
    run: &RunContext,
    agent: &AgentState,
    symbol: &SymbolPath,
    wording: Wording,
) -> SmallPrompt {
    if write_test::is_asked_of(run, symbol)
        && let Some(words) = write_test::words(run, &symbol.file)
    {
        return words;
    }
    if is_document(symbol)
        && let Ok(found) = run.lookup().symbol(symbol)
    {
        let prompt = DocumentSmallPrompt {
            task: run.task.text.clone(),
            file: symbol.file.to_string(),
            source: found.source().trim_end().to_owned(),
        };
        return SmallPrompt {
            system: DocumentSystemSmall {}.render(),
            text: prompt.render(),
            beginning: "````\n".to_owned(),
            stop: Vec::new(),
            longest: LONGEST_ANSWER,
        };
    }
    let text = prompt(run, agent, symbol, wording);
    let (system, beginning) = match wording {
        Wording::Code => (AgentSystemSmall {}.render(), beginning(run, symbol)),
        Wording::Explain => (AgentSystemSmallExplain {}.render(), String::new()),
    };
    SmallPrompt {
        system,
        text,
        beginning,
        stop: Vec::new(),
        longest: LONGEST_ANSWER,
    }
}

/// Picks the symbol that a small model changes if the task asks for a test, a change of a document,
/// or a fix in a named function. For these tasks, a small model would not choose better. Returns
/// `None` for other tasks.
///
/// # Errors
/// Returns a message for the user if the model cannot carry out the task.
pub(crate) fn pick(run: &RunContext) -> Option<Result<Pick, String>> {
    let lookup = run.lookup();
    match run.goal {
        Goal::NewTest => write_test::pick(run).map(Ok),
        Goal::Documentation => {
            let named = lookup.files_named_in(&run.task.text).into_iter();
            let mut named = named.map(SymbolPath::module);
            let document = named.find(is_document)?;
            let length = lookup
                .symbol(&document)
                .map_or(0, |found| found.source().len());
            if length > DOCUMENT_MOST {
                return Some(Err(format!(
                    "{} is too long for this model to rewrite ({length} bytes; the maximum is \
                     {DOCUMENT_MOST}): use a larger model (--model)",
                    document.file
                )));
            }
            Some(Ok(Pick {
                symbol: document.to_string(),
                why: "named in the task".to_owned(),
                ..Pick::default()
            }))
        }
        Goal::Bug if run.tests().required.beside_failures => {
            let named: Vec<SymbolPath> = {
                let state = run.tests();
                let named = state.required.names.iter().flat_map(Names::symbols);
                named.cloned().collect()
            };
            let named = named.into_iter();
            let mut functions = named.filter(|symbol| is_function(&lookup, symbol));
            let only = functions.next()?;
            functions.next().is_none().then(|| {
                Ok(Pick {
                    symbol: only.to_string(),
                    why: "named in the task".to_owned(),
                    ..Pick::default()
                })
            })
        }
        Goal::Bug | Goal::RedTests | Goal::Feature | Goal::Refactoring | Goal::Question => None,
    }
}

fn is_function(lookup: &Lookup, symbol: &SymbolPath) -> bool {
    let found = lookup.symbol(symbol);
    found.is_ok_and(|found| match found.symbol.kind {
        SymbolKind::Function | SymbolKind::Method => true,
        SymbolKind::Module | SymbolKind::Class => false,
    })
}

/// Returns the text with which the model's reply must begin: the lines up to the name of the
/// function. Without it, small models often repeat the imports of the file. The text ends at a
/// token boundary.
pub(crate) fn beginning(run: &RunContext, path: &SymbolPath) -> String {
    let Ok(found) = run.lookup().symbol(path) else {
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

fn prompt(run: &RunContext, agent: &AgentState, path: &SymbolPath, wording: Wording) -> String {
    let lookup = run.lookup();
    let caps = Caps::of(run.services.models.agent.profile());
    let found = match lookup.symbol(path) {
        Ok(found) => found,
        Err(error) => return format!("{error}\n\n{}", agent.cause),
    };
    let failing = failing_tests_of(run, &lookup, path);
    let in_words = |case: &TestCase| match test_of(run, &lookup, case) {
        Some((language, source)) => failing::with_source(case, language, &source),
        None => failing::in_words(case),
    };
    SymbolSmallPrompt {
        task: cap(&run.task.text, caps.task),
        failures: failing.iter().map(in_words).collect(),
        to_keep: tests_to_keep(run, agent, &lookup),
        cause: agent.cause.clone(),
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

/// Returns the sources of passing tests that earlier replies of the agent broke.
pub(crate) fn tests_to_keep(run: &RunContext, agent: &AgentState, lookup: &Lookup) -> Vec<String> {
    let broken = agent.broken.values();
    broken
        .filter_map(|case| test_of(run, lookup, case))
        .map(|(_, source)| source)
        .take(TESTS)
        .collect()
}

/// Returns the language and source of a test.
pub(crate) fn test_of(
    run: &RunContext,
    lookup: &Lookup,
    case: &TestCase,
) -> Option<(&'static str, String)> {
    let caps = Caps::of(run.services.models.agent.profile());
    let test = test_symbol(lookup, case)?;
    let test = lookup.symbol(&test).ok()?;
    let (source, _) = excerpt(&test, lookup.focus(), caps.excerpt);
    Some((
        fence_language(test.tree.language()),
        source.trim_end().to_owned(),
    ))
}

/// Returns the failing tests that mention a symbol by name. If there are none, returns the first
/// failing tests.
pub(crate) fn failing_tests_of(
    run: &RunContext,
    lookup: &Lookup,
    path: &SymbolPath,
) -> Vec<TestCase> {
    let (report, mut failing) = {
        let state = run.tests();
        (
            state.latest.clone().or(state.before.clone()),
            state.failing.clone(),
        )
    };
    let left_alone = required::left_alone(run);
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

/// Returns whether the agent of a symbol will get work again in the second pass over the functions
/// that may be the cause.
pub(crate) fn is_looked_at_again(run: &RunContext, symbol: &SymbolPath) -> bool {
    let symbol = symbol.to_string();
    let state = run.agents();
    let mut later = state.suspects.iter();
    later.any(|suspect| suspect.again && suspect.pick.symbol == symbol)
}
