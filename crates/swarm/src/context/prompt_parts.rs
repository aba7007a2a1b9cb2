//! Builds the prompts for models. The context is gathered without a model and capped in tokens. The
//! parts that never change come first, so that provider caches hit.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::check::required;
use crate::context::agent_context::{AgentContext, shown};
use crate::context::failure_values::failure_values;
use crate::event::actor::actor_name;
use crate::event::events::Cause;
use crate::evidence::ids::tail;
use crate::evidence::test_evidence::TestEvidence;
use crate::excerpt::excerpt;
use crate::lookup::callees::callees;
use crate::lookup::{Lookup, MissingFile, cap};
use crate::state::agent_state::AgentState;
use crate::state::run_context::RunContext;
use crate::state::views::Views;
use crate::task::goal::{self, Goal};
use crate::task::method_family::MethodFamily;
use crate::task::stated::absent;
use starling_core::prompts::{CausePrompt, Excerpt, Prompt, SoloPrompt, SymbolPrompt, TaskPrompt};
use starling_core::{Driver, ModelProfile, TestCase, TestOutcome, TestReport, TestStatus, Tokens};
use starling_index::{Certainty, Usage, is_test_file};
use starling_syntax::{FilePath, Language, SymbolKind, SymbolPath, outline};

/// Maximum number of unrelated failing tests that a prompt names.
const OTHER_FAILURES: usize = 5;
/// Maximum number of uses of a symbol that are considered.
const USES: usize = 200;
/// Maximum number of bytes of an example's output.
const EXAMPLE_OUTPUT: usize = 1_500;

/// Maximum sizes of the parts of a prompt, and maximum numbers of their entries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caps {
    pub task: Tokens,
    pub rules: Tokens,
    pub failures: Tokens,
    /// Limit for the values of variables in the frames of failures.
    pub values: Tokens,
    pub source: Tokens,
    pub outline_lines: usize,
    pub callers: usize,
    pub callees: usize,
    pub tests: usize,
    /// Limit for each callee and test.
    pub excerpt: Tokens,
    /// Limit for all candidates together.
    pub candidates: Tokens,
    /// Number of candidates that are shown whole, and the size limit for them.
    pub best_count: usize,
    pub best: Tokens,
    pub candidate: Tokens,
    /// Limit for a class that is not shown whole.
    pub class: Tokens,
}

impl Caps {
    /// Returns the caps for a model. Small models get shorter prompts.
    pub fn of(profile: &ModelProfile) -> Caps {
        match is_small(profile) {
            false => Caps {
                task: Tokens(4_000),
                rules: Tokens(1_000),
                failures: Tokens(1_500),
                values: Tokens(500),
                source: Tokens(5_000),
                outline_lines: 24,
                callers: 12,
                callees: 2,
                tests: 2,
                excerpt: Tokens(300),
                candidates: Tokens(3_200),
                best_count: 2,
                best: Tokens(1_000),
                candidate: Tokens(400),
                class: Tokens(220),
            },
            true => Caps {
                task: Tokens(1_000),
                rules: Tokens(200),
                failures: Tokens(500),
                values: Tokens(150),
                source: Tokens(2_000),
                outline_lines: 0,
                callers: 0,
                callees: 0,
                tests: 1,
                excerpt: Tokens(250),
                candidates: Tokens(1_300),
                best_count: 0,
                best: Tokens(150),
                candidate: Tokens(150),
                class: Tokens(150),
            },
        }
    }
}

/// Returns the part that all prompts of a run share. It does not change during the run.
pub(crate) fn frozen(run: &RunContext) -> String {
    let caps = Caps::of(run.services.models.agent.profile());
    let rules = run
        .world()
        .snapshot
        .read(&FilePath::new("AGENTS.md"))
        // The text of the rules must not close the tag of the prompt that encloses it.
        .map(|text| cap(&text.replace("</rules_of_the_repository", ""), caps.rules))
        .unwrap_or_default();
    let failures = required::shown(run)
        .map(|report| failures(&report, caps.failures))
        .unwrap_or_default();
    let executions = Arc::clone(&run.world().executions);
    TaskPrompt {
        test_is_needed: test_is_needed(run),
        task: cap(&run.task.text, caps.task),
        python: run.services.tests.python().unwrap_or_default(),
        rules,
        failures,
        values: failure_values(&executions, caps.values),
        examples: examples(run, caps),
        other_failures: few(&required::left_alone(run)),
        not_there: not_there(run),
        method_families: method_families(run),
    }
    .render()
}

/// Returns whether a change counts only with a new test: the run must prove its changes, and no
/// failing test shows what the task asks for.
pub(crate) fn test_is_needed(run: &RunContext) -> bool {
    let asks_for_behaviour = match required::goal(run) {
        Goal::Bug | Goal::Feature => true,
        Goal::NewTest => goal::tells_of_code(&run.task.text),
        Goal::RedTests | Goal::Refactoring | Goal::Documentation | Goal::Question => false,
    };
    run.must_prove() && asks_for_behaviour && required::shown(run).is_none()
}

/// Describes the examples of the task and what came of them, with the end of each output.
fn examples(run: &RunContext, caps: Caps) -> String {
    let tried = run.tries().examples.clone();
    let described = tried.iter().map(|one| {
        let output = tail(one.before.output.trim_end(), EXAMPLE_OUTPUT);
        let code = one.code.text().trim_end();
        format!("{code}\n-> {}\n{output}\n", one.in_short())
    });
    let described: String = described.collect();
    cap(described.trim_end(), caps.failures)
}

/// Describes the methods of related classes that the task changes and that must change together,
/// one group per line.
fn method_families(run: &RunContext) -> String {
    let families = MethodFamily::of_task(&run.lookup(), &run.task.text, run.stated());
    let lines: Vec<String> = families.iter().map(MethodFamily::in_words).collect();
    lines.join("\n")
}

/// Describes the files and the names of code that the task mentions and that do not exist, one per
/// line.
fn not_there(run: &RunContext) -> String {
    let gone = run.lookup().not_there(&run.task.text);
    let mut lines: Vec<String> = gone.iter().map(MissingFile::in_words).collect();
    let absent = absent::near_others(&run.lookup(), &run.task.text);
    lines.extend(absent.iter().map(absent::AbsentName::in_words));
    lines.join("\n")
}

/// Formats a list of ids: the first ids, and how many more there are.
fn few(ids: &[String]) -> String {
    let shown = &ids[..ids.len().min(OTHER_FAILURES)];
    match ids.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Number of output lines that are shown if a test run was stopped. The last lines show which test
/// did not end.
const LAST: usize = 4;

/// Describes the failing tests of a report; empty if no test fails. If the tests were stopped at
/// the deadline and none had failed, only the last lines of their output are shown.
pub(crate) fn failures(report: &TestReport, most: Tokens) -> String {
    let has_failed =
        |case: &TestCase| matches!(case.status, TestStatus::Failed | TestStatus::Error);
    if report.outcome == TestOutcome::TimedOut && !report.cases.iter().any(has_failed) {
        let last: Vec<&str> = report.output.trim_end().lines().rev().take(LAST).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        return format!(
            "{}\nwas stopped at its deadline; until then no test had failed. It said at last:\n{}",
            report.command,
            last.join("\n")
        );
    }
    match TestEvidence::compare(&BTreeSet::new(), report) {
        TestEvidence::Unknown { .. } => String::new(),
        TestEvidence::Known { broken, .. } if broken.is_empty() => String::new(),
        TestEvidence::Known {
            command, details, ..
        } => cap(&format!("{command}\n{details}"), most),
    }
}

/// Records the symbols that a prompt shows to the agent, with the texts of their files.
pub(crate) fn remember_view(run: &RunContext, agent: &mut AgentState, shown: &[String]) {
    let lookup = run.lookup();
    for symbol in lookup.read_symbols(shown) {
        if let Ok(tree) = lookup.tree(&symbol.file) {
            agent.told.show(symbol, Arc::clone(tree.text()));
        }
    }
}

/// Returns the definitions of a name with the current texts of their files. They are recorded
/// later, if a tool result shows them.
pub(crate) fn definitions(run: &RunContext, name: &str) -> Vec<Definition> {
    let lookup = run.lookup();
    let defined = lookup.index().definitions(name).into_iter();
    let read = |symbol: SymbolPath| {
        let found = lookup.symbol(&symbol).ok()?;
        Some(Definition {
            source: found.source().trim_end().to_owned(),
            text: Arc::clone(found.tree.text()),
            symbol,
        })
    };
    defined.filter_map(|one| read(one.symbol)).collect()
}

/// A definition and the text of its file.
pub(crate) struct Definition {
    symbol: SymbolPath,
    source: String,
    text: Arc<str>,
}

/// Records the definitions that a tool result shows in full as seen by the agent.
pub(crate) fn remember_definitions(
    agent: &mut AgentState,
    definitions: Vec<Definition>,
    result: &str,
) {
    for one in definitions {
        if !one.source.is_empty() && result.contains(&one.source) {
            agent.told.show(one.symbol, one.text);
        }
    }
}

pub(crate) fn note_shown<'s>(
    lookup: &Lookup,
    views: &mut Views,
    shown: impl Iterator<Item = &'s str>,
) {
    for symbol in shown.filter_map(|target| lookup.address(target).ok()) {
        if let Ok(tree) = lookup.tree(&symbol.file) {
            views.show(symbol, Arc::clone(tree.text()));
        }
    }
}

/// Describes to an agent why it got work.
pub(crate) fn cause_text(cause: &Cause) -> String {
    let prompt = match cause {
        Cause::Picked { why } => CausePrompt {
            kind: "picked",
            text: why.clone(),
            ..CausePrompt::default()
        },
        Cause::ChangeRequest { from, reason } => CausePrompt {
            kind: "change_request",
            from: actor_name(from),
            text: reason.clone(),
            ..CausePrompt::default()
        },
        Cause::FollowUp {
            changed,
            changes,
            lines,
            text,
            wave: _,
        } => CausePrompt {
            kind: "follow_up",
            from: changed.to_string(),
            text: text.clone(),
            changes: changes.clone(),
            lines: lines.clone(),
        },
        Cause::FailedTests { message } => CausePrompt {
            kind: "failed_tests",
            text: tail(message, 5_000).to_owned(),
            ..CausePrompt::default()
        },
        Cause::Problems { message } => CausePrompt {
            kind: "problems",
            text: tail(message, 5_000).to_owned(),
            ..CausePrompt::default()
        },
        Cause::Steered { text } => CausePrompt {
            kind: "steered",
            text: text.clone(),
            ..CausePrompt::default()
        },
        Cause::Declined { by, reason } => CausePrompt {
            kind: "declined",
            from: actor_name(by),
            text: reason.clone(),
            ..CausePrompt::default()
        },
    };
    prompt.render()
}

/// Returns the prompt for a question to the owner of a symbol.
pub(crate) fn question_prompt(
    run: &RunContext,
    owner: &SymbolPath,
    asker: &str,
    question: &str,
    intent: Option<&str>,
) -> String {
    let intent = intent
        .map(|intent| format!("You mean to change it: {intent}\n"))
        .unwrap_or_default();
    let cause = format!("{intent}Question from {asker}: {question}");
    symbol_prompt(run, owner, cause)
}

pub(crate) fn symbol_prompt(run: &RunContext, path: &SymbolPath, cause: String) -> String {
    let lookup = run.lookup();
    let caps = Caps::of(run.services.models.agent.profile());
    if lookup.is_new_file(path) {
        let file = &path.file;
        return format!(
            "Your symbol: the file {file}, which is not there yet. Propose its whole text as `source`.\n\n{cause}"
        );
    }
    let found = match lookup.symbol(path) {
        Ok(found) => found,
        Err(error) => return format!("{error}\n\n{cause}"),
    };
    let (source, shortened) = excerpt(&found, lookup.focus(), caps.source);
    let whole_file = found.symbol.kind == SymbolKind::Module;
    let outline = match caps.outline_lines {
        0 => String::new(),
        _ if whole_file && shortened => String::new(),
        lines => outline(&found.tree, lines),
    };
    SymbolPrompt {
        symbol: path.to_string(),
        kind: kind_name(found.symbol.kind).to_owned(),
        language: fence_language(found.tree.language()).to_owned(),
        line: found.symbol.lines.0,
        source: source.trim_end().to_owned(),
        shortened,
        outline,
        callers: callers(&lookup, path, caps),
        callees: called_by(&lookup, path, caps),
        tests: nearest_tests(&lookup, path, caps),
        others: run.told_others(path),
        cause,
    }
    .render()
}

/// Returns whether a model is small. A small model gets prompts about one function only, and no
/// tools.
pub(crate) fn is_small(profile: &ModelProfile) -> bool {
    profile.is_small()
}

pub(crate) fn kind_name(kind: SymbolKind) -> &'static str {
    match kind {
        SymbolKind::Module => "module body",
        SymbolKind::Class => "class",
        SymbolKind::Function => "function",
        SymbolKind::Method => "method",
    }
}

pub(crate) fn fence_language(language: Language) -> &'static str {
    match language {
        Language::Python => "python",
        Language::Plain => "",
    }
}

/// Returns the lines that use a symbol, outside the symbol and outside tests, and the number of
/// omitted lines.
///
/// Uncertain uses are omitted if more than two symbols share the name.
pub(crate) fn callers(lookup: &Lookup, path: &SymbolPath, caps: Caps) -> Vec<String> {
    if caps.callers == 0 || path.is_module() {
        return Vec::new();
    }
    let shared = lookup.index().definitions(path.base_name()).len() > 2;
    let mut usages = lookup.index().references(&path.to_string(), USES).found;
    usages.retain(|usage| {
        let is_guess = usage.certainty == Certainty::Possible && shared;
        let elsewhere = !path.encloses(&usage.symbol) && !is_test_file(&usage.file);
        elsewhere && !is_guess && !usage.is_import
    });
    let line = |usage: &Usage| {
        let text: String = usage.text.chars().take(120).collect();
        format!(
            "{}:{} ({}): {text}",
            usage.file, usage.line, usage.symbol.name
        )
    };
    let mut lines: Vec<String> = usages.iter().map(line).collect();
    lines.dedup();
    let left = lines.len().saturating_sub(caps.callers);
    lines.truncate(caps.callers);
    if left > 0 {
        lines.push(format!("and {left} more: `references`"));
    }
    lines
}

/// Returns the functions that a function calls and that match words of the task.
fn called_by(lookup: &Lookup, path: &SymbolPath, caps: Caps) -> Vec<Excerpt> {
    if caps.callees == 0 {
        return Vec::new();
    }
    let callees = callees(lookup, path, caps.callees).into_iter();
    callees
        .filter_map(|callee| shown(lookup, &callee, String::new(), caps.excerpt))
        .collect()
}

fn nearest_tests(lookup: &Lookup, path: &SymbolPath, caps: Caps) -> Vec<Excerpt> {
    let tests = lookup
        .index()
        .nearest_tests(std::slice::from_ref(path), caps.tests);
    tests
        .iter()
        .filter_map(|test| shown(lookup, test, String::new(), caps.excerpt))
        .collect()
}

pub(crate) fn solo_prompt(run: &RunContext, material: AgentContext, cause: String) -> String {
    debug_assert_eq!(run.task.driver, Driver::Single);
    let AgentContext { shown, imports } = material;
    SoloPrompt {
        candidates: shown,
        imports,
        cause,
    }
    .render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timed_out_test_run_shows_only_its_last_lines() {
        let output: String = (0..100).map(|n| format!("creating {n}\n")).collect();
        let mut report = TestReport {
            outcome: TestOutcome::TimedOut,
            exit: None,
            command: "pytest".into(),
            cases: Vec::new(),
            source: Default::default(),
            output,
            millis: 30_000,
        };
        let shown = failures(&report, Tokens(4_000));
        assert!(
            shown.starts_with("pytest\nwas stopped at its deadline"),
            "{shown}"
        );
        assert!(
            shown.ends_with(":\ncreating 96\ncreating 97\ncreating 98\ncreating 99"),
            "{shown}"
        );
        report.cases.push(TestCase {
            id: "t".into(),
            status: TestStatus::Failed,
            message: "assert 1 == 2".into(),
        });
        let shown = failures(&report, Tokens(4_000));
        assert!(shown.contains("assert 1 == 2"), "{shown}");
    }
}
