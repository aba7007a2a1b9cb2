//! Hole filling: removes one statement of a function at a time and lets the model write it anew. A
//! small model that repeats a faulty line when the prompt shows it often writes the right line when
//! the prompt does not show it.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::act::{Proposed, proposed};
use crate::agent::outcome::{Ending, gave_up};
use crate::agent::small;
use crate::check::{required, test_run};
use crate::context::failing::in_words;
use crate::event::actor::ActorId;
use crate::event::events::Event;
use crate::evidence::ids::WHOLE_RUN;
use crate::evidence::test_evidence::failing_ids;
use crate::evidence::wording::counted;
use crate::excerpt::found::Found;
use crate::proposal::draft;
use crate::protocol::Propose;
use crate::protocol::conversation::Conversation;
use crate::state::agent_state::AgentState;
use crate::state::refresh;
use crate::state::run_context::RunContext;
use starling_core::prompts::{FillBesidePrompt, FillTest, Prompt};
use starling_core::{ChatReply, FILLING, Message, Role, TestOutcome, Tokens};
use starling_syntax::{FilePath, SymbolKind, SymbolPath, SymbolTree, module_imports, statements};
use starling_text::ByteRange;

/// Maximum number of statements of a function that are replaced, one at a time.
const STATEMENTS: usize = 10;
/// Maximum number of lines that replace one statement.
const LINES: usize = 4;
/// Number of prefixes of a reply that are tried, because a model may not stop at the end of the
/// statement and write too much.
const BEGINNINGS: usize = 3;
/// Maximum length of a reply.
const LONGEST: Tokens = Tokens(48);
/// Maximum size in bytes of the text before a function that the prompt shows.
const BEFORE: usize = 2_000;
/// Maximum size in bytes of the text after a function that the prompt shows.
const BEHIND: usize = 200;
/// Minimum timeout for running the failing tests with a candidate. A test that fails usually ends
/// much earlier.
const PATIENCE: Duration = Duration::from_secs(2);
/// Factor by which a test run with a candidate may take longer than the test run before the change.
const SLOWER: u32 = 10;

/// A function with the texts around it that the prompts for its holes (removed statements) contain.
struct HoleContext {
    path: SymbolPath,
    found: Found,
    /// The source of the failing tests, which the prompt shows as a separate file.
    beside: String,
    /// Text before the function: the end of the preceding text, the imports of the file, and the
    /// task as comments.
    head: String,
    /// First lines after the function, which mark its end.
    behind: String,
}

/// How many of the failing tests that must be fixed pass with a change: none, some or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestEffect {
    None,
    Some,
    All,
}

/// Replaces each statement of the agent's function in turn. Proposes the first version of the
/// function with which all required tests pass. If there is none, proposes the first version with
/// which at least one required test passes. Returns the outcome of the agent's work if the work
/// ends.
pub(crate) async fn fill(
    run: &Arc<RunContext>,
    agent: &mut AgentState,
    temperature: f32,
) -> Option<Ending> {
    let ActorId::Agent(path) = agent.actor.clone() else {
        return None;
    };
    let work = HoleContext::of(run, agent, path)?;
    let mut holes = statements(&work.found.tree, &work.found.symbol);
    holes.truncate(STATEMENTS);
    let mut tried = 0;
    let mut helps_some = None;
    for hole in &holes {
        let reply = match work.ask(run, agent, *hole, temperature).await {
            Ok(reply) => reply,
            Err(why) => return Some(gave_up(why)),
        };
        for change in work.changes(*hole, &reply.text) {
            if !agent
                .filled
                .insert(change.source.clone().unwrap_or_default())
            {
                continue;
            }
            tried += 1;
            match help(run, agent, &change).await {
                TestEffect::None => {}
                TestEffect::Some => helps_some = helps_some.or(Some(change)),
                TestEffect::All => match propose(run, agent, &change).await {
                    AfterProposal::Over(ending) => return ending,
                    AfterProposal::GoOn => {}
                },
            }
        }
    }
    if let Some(change) = helps_some
        && let AfterProposal::Over(ending) = propose(run, agent, &change).await
    {
        return ending;
    }
    agent.attempts.record_tried(tried);
    run.event(Event::ToolUsed {
        agent: agent.actor.clone(),
        tool: "rewrite".to_owned(),
        argument: format!("{}, one at a time", counted(holes.len(), "statement")),
        outcome: format!("{} tried, no test passes by one", counted(tried, "text")),
    });
    None
}

/// Whether hole filling continues after a proposal.
enum AfterProposal {
    GoOn,
    Over(Option<Ending>),
}

async fn propose(run: &Arc<RunContext>, agent: &mut AgentState, change: &Propose) -> AfterProposal {
    let reviewed = agent.rejected;
    match proposed(run, agent, change).await {
        Proposed::Applied { ending, .. } => AfterProposal::Over(ending),
        Proposed::GaveUp { ending, .. } => AfterProposal::Over(Some(ending)),
        // If the approver rejected the candidate, no further candidate is proposed.
        Proposed::SentBack { .. } if agent.rejected != reviewed => AfterProposal::Over(None),
        Proposed::SentBack { .. } | Proposed::Kept { .. } => AfterProposal::GoOn,
    }
}

/// Runs the failing tests with a change and returns how many of them pass. This is a quick
/// preliminary check; a change that is proposed also goes through all checks of a proposal.
async fn help(run: &Arc<RunContext>, agent: &AgentState, change: &Propose) -> TestEffect {
    let Ok(draft) = draft::make(run, agent, change).await else {
        return TestEffect::None;
    };
    let (wanted, took) = {
        let state = run.state();
        let wanted = required::to_mend(&state.tests);
        let before = state.tests.before.as_ref();
        (wanted, before.map_or(0, |report| report.millis))
    };
    let world = refresh::world(run).await;
    let world = world.with(draft.file.clone(), draft.content());
    let select = match run.services.tests.selects() && !wanted.contains(WHOLE_RUN) {
        true => wanted.iter().chain(agent.broken.keys()).cloned().collect(),
        false => Vec::new(),
    };
    let longest = PATIENCE.max(Duration::from_millis(took) * SLOWER);
    let report = test_run::run_tests_within(run, &world, select, longest).await;
    match report.outcome {
        TestOutcome::Passed => TestEffect::All,
        TestOutcome::TimedOut
        | TestOutcome::NotRun
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch => TestEffect::None,
        TestOutcome::Failed => {
            let failing = failing_ids(&report);
            let is_left = |id: &String| failing.contains(id);
            if failing.iter().any(|id| agent.broken.contains_key(id)) {
                return TestEffect::None;
            }
            let mut ran = report.cases.iter();
            match ran.any(|case| wanted.contains(&case.id) && !is_left(&case.id)) {
                false => TestEffect::None,
                true if wanted.iter().any(is_left) => TestEffect::Some,
                true => TestEffect::All,
            }
        }
    }
}

impl HoleContext {
    fn of(run: &RunContext, agent: &AgentState, path: SymbolPath) -> Option<Self> {
        let lookup = run.lookup();
        let found = lookup.symbol(&path).ok()?;
        let tests = small::failing_tests_of(run, &lookup, &path);
        let tests = tests.iter().map(|case| FillTest {
            source: small::test_of(run, &lookup, case).map_or_else(String::new, |(_, text)| text),
            says: in_words(case).lines().map(str::to_owned).collect(),
        });
        let to_keep = small::tests_to_keep(run, agent, &lookup);
        let to_keep = to_keep.into_iter().map(|source| FillTest {
            source,
            says: vec!["passes, and must go on passing".to_owned()],
        });
        let beside = FillBesidePrompt {
            tests: tests.chain(to_keep).collect(),
        };
        let indent = indentation(found.source());
        let mut head = text_before(&found);
        for line in run.task.text.lines() {
            head.push_str(&format!("{indent}# {line}\n"));
        }
        Some(HoleContext {
            behind: text_behind(&found),
            beside: beside.render(),
            path,
            head,
            found,
        })
    }

    /// Calls the model for the text that replaces a statement.
    async fn ask(
        &self,
        run: &Arc<RunContext>,
        agent: &mut AgentState,
        hole: ByteRange,
        temperature: f32,
    ) -> Result<ChatReply, String> {
        let (before, after) = self.around(hole);
        let name = || format!("{FILLING}{}", self.path);
        let new = || Conversation::new(name(), Role::Agent, String::new());
        // All holes share one conversation, so that a model that runs in this process can reuse the
        // common beginning of the prompts.
        let conversation = agent.filling.get_or_insert_with(new);
        conversation.messages = vec![Message::User {
            text: self.beside.clone(),
        }];
        conversation.temperature = temperature;
        conversation.beginning = format!("{}{before}", self.head);
        conversation.following = format!("{after}\n{}", self.behind);
        conversation.stop = vec!["\n\n".to_owned()];
        conversation
            .stop
            .extend(next_line(after).map(|line| format!("\n{line}\n")));
        conversation.longest = LONGEST;
        let model = &run.services.models.agent;
        let reply = run.call(&agent.actor, model, conversation, Vec::new());
        reply.await.map_err(|error| error.to_string())
    }

    /// Returns the text of the function before and after a statement.
    fn around(&self, hole: ByteRange) -> (&str, &str) {
        let text = self.found.tree.text();
        let span = self.found.symbol.span;
        let after = text[hole.end..span.end].trim_end();
        (&text[span.start..hole.start], after)
    }

    /// Returns versions of the function in which the reply, or a prefix of the reply, replaces a
    /// statement. The version with the longest prefix comes first.
    fn changes(&self, hole: ByteRange, answer: &str) -> Vec<Propose> {
        let (before, after) = self.around(hole);
        let old = hole.of(self.found.tree.text());
        let lines = lines_of(answer, next_line(after));
        let mut changes = Vec::new();
        for count in (1..=lines.len().min(LINES)).rev().take(BEGINNINGS) {
            let new = lines[..count].join("\n");
            let source = format!("{before}{new}{after}\n");
            if new.trim_end() == old.trim_end() || !self.can_be_read(&source) {
                continue;
            }
            changes.push(Propose {
                reason: format!("`{}` instead of `{}`", in_short(&new), in_short(old)),
                source: Some(source),
                ..Propose::default()
            });
        }
        changes
    }

    /// Returns whether the function parses without errors.
    fn can_be_read(&self, source: &str) -> bool {
        let indent = indentation(source).len();
        let flush: Vec<&str> = source
            .lines()
            .map(|line| line.get(indent..).unwrap_or_else(|| line.trim_start()))
            .collect();
        let file = FilePath::new(self.path.file.as_str());
        SymbolTree::parse(file, flush.join("\n").into())
            .errors()
            .is_empty()
    }
}

/// Returns the text of the file before a function, which often holds the code that the function
/// uses. A long text is reduced to the imports, the class header and the last lines.
fn text_before(found: &Found) -> String {
    let text = found.tree.text();
    let start = found.symbol.span.start;
    if start <= BEFORE {
        return text[..start].to_owned();
    }
    let class = found.symbol.parent.map(|id| found.tree.get(id));
    let class = class.filter(|parent| parent.kind == SymbolKind::Class);
    let mut from = text.floor_char_boundary(start - BEFORE);
    from += text[from..start].find('\n').map_or(0, |at| at + 1);
    let mut before = String::new();
    for import in module_imports(&found.tree) {
        if import.end <= from {
            before.push_str(import.of(text).trim_end());
            before.push('\n');
        }
    }
    if let Some(head) = class
        .map(|class| class.definition.start)
        .filter(|head| *head < from)
    {
        let line = text[head..].lines().next().unwrap_or_default();
        before.push_str(&format!("\n\n{line}\n"));
    }
    before.push_str(&text[from..start]);
    before
}

/// Returns the text after a function, up to the first line of the next definition.
fn text_behind(found: &Found) -> String {
    let text = found.tree.text();
    let end = text.floor_char_boundary(text.len().min(found.symbol.span.end + BEHIND));
    let mut behind = String::new();
    for line in text[found.symbol.span.end..end].split_inclusive('\n') {
        behind.push_str(line);
        if !line.trim().is_empty() {
            break;
        }
    }
    behind
}

/// Returns the lines of a reply up to the next line of the file, a blank line or the end of a code
/// block.
fn lines_of<'a>(answer: &'a str, next: Option<&str>) -> Vec<&'a str> {
    let is_next = |line: &str| next.is_some_and(|next| line.trim_end() == next.trim_end());
    let lines = answer.trim_start_matches('\n').lines();
    lines
        .take_while(|line| !line.trim().is_empty() && !line.starts_with("```"))
        .take_while(|line| !is_next(line))
        .collect()
}

fn next_line(after: &str) -> Option<&str> {
    after.lines().find(|line| !line.trim().is_empty())
}

fn indentation(source: &str) -> &str {
    &source[..source.len() - source.trim_start().len()]
}

/// Returns a statement shortened to one line, for display.
fn in_short(statement: &str) -> String {
    let words: Vec<&str> = statement.split_whitespace().collect();
    let words = words.join(" ");
    match words.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_a_removed_statement_ends_before_the_line_that_follows_the_statement() {
        let next = Some("    return y");
        assert_eq!(
            lines_of("    y = 1\n    return y\nmore", next),
            ["    y = 1"]
        );
        assert_eq!(lines_of("\n    y = 1\n\n    z", next), ["    y = 1"]);
        assert_eq!(lines_of("    y = 1\n```\nThis", None), ["    y = 1"]);
        assert!(lines_of("    return y", next).is_empty());
    }

    #[test]
    fn long_text_before_a_function_is_shortened_to_imports_class_header_and_last_lines() {
        let long = "    def g(self):\n        return 1\n".repeat(100);
        let text =
            format!("import os\n\nX = 1\nclass A(B):\n{long}    def f(self):\n        pass\n");
        let found = |text: &str| {
            let tree = SymbolTree::parse(FilePath::new("a.py"), text.into());
            let symbol = tree.find("A.f").unwrap().clone();
            Found {
                tree: tree.into(),
                symbol,
            }
        };
        let shown = text_before(&found(&text));
        let (head, end) = shown.split_once("class A(B):\n").unwrap();
        assert_eq!(head.trim_end(), "import os");
        assert!(
            end.starts_with("    def g") || end.starts_with("        return 1\n"),
            "{end}"
        );
        assert!(shown.len() < BEFORE + 60 && text.contains(end));
        let short = "X = 1\nclass A:\n    x = 1\n    def f(self):\n        pass\n";
        assert_eq!(text_before(&found(short)), "X = 1\nclass A:\n    x = 1\n");
    }

    #[test]
    fn statement_is_shortened_to_one_line_for_display() {
        assert_eq!(in_short("    y = g(\n        x,\n    )"), "y = g( x, )");
        assert_eq!(in_short(&"é ".repeat(50)).chars().count(), 61);
    }
}
