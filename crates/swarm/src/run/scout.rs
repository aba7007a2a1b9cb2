//! The scout: a model that picks the symbols where work begins, from candidates that were found
//! without a model.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::agent::small;
use crate::agent::toolbox::toolbox;
use crate::agent::tools;
use crate::budget::CallFailed;
use crate::check::required;
use crate::context::agent_context::{AgentContext, material};
use crate::context::prompt_parts;
use crate::event::actor::ActorId;
use crate::event::events::{AgentOutcome, Candidate, Event};
use crate::evidence::wording::some_of;
use crate::lookup::{Lookup, Mention};
use crate::protocol::conversation::Conversation;
use crate::protocol::{self, Action, Asked, Pick, RunToolbox, ToolSet};
use crate::run::suspects::suspects;
use crate::run::unmet::unmet;
use crate::run::{by_rule, deletions};
use crate::state::run_context::RunContext;
use starling_core::prompts::{Prompt, ScoutPrompt, ScoutSystem, ScoutSystemText};
use starling_core::{
    ChatReply, Executions, Finish, ModelProfile, Role, Tokens, ToolCalling, ToolSpec,
};
use starling_dialogue::{TextReplyOutcome, ToolCallsOutcome, Turns, converse};
use starling_index::{ExecutedLines, is_test_file};
use starling_syntax::{Language, SymbolPath};

/// Maximum number of turns of the scout. If it has picked no symbol by then, the best candidate is
/// used.
const TURNS: u32 = 5;
const CANDIDATES: usize = 30;
/// Maximum number of replies that contain text but pick no symbol.
const WORDS_TIMES: u32 = 2;
/// Maximum number of characters of such a reply that are quoted to the user.
const WORDS_MOST: usize = 300;
/// The message to the scout if its exact changes need a test but contain none.
const TEST_IS_MISSING: &str = "The change counts only with a test that fails without it and passes with it. Wake \
    the owner of a test file (`tests/test_….py::`) as well, with the test to write, or with its exact text. If \
    no test can be written, repeat the call as it is.";
/// The reason that is shown for a candidate whose file the task names.
const NAMED: &str = "named in the task";

/// Finds candidates for the task without a model, and logs them for the user.
pub(crate) fn locate(run: &RunContext) -> Vec<Candidate> {
    let began = Instant::now();
    let failing = required::shown(run)
        .map(|report| prompt_parts::failures(&report, Tokens(4_000)))
        .unwrap_or_default();
    // The tracebacks of examples name the code that ran.
    let tried = run.tries().examples.clone().into_iter();
    let tried: String = tried.map(|one| one.before.output).collect();
    let text = format!("{}\n{failing}\n{tried}", run.task.text);
    let lookup = run.lookup();
    let (mut candidates, unknown) = mentioned(&lookup, &run.task.text);
    for (written, why) in unknown {
        // Mentions of missing files were already reported.
        if run.agents().not_woken.contains(&written) {
            continue;
        }
        run.not_woken(written, &ActorId::User, why);
    }
    for file in lookup.files_named_in(&run.task.text) {
        let symbol = SymbolPath::module(file);
        if !candidates.iter().any(|known| known.symbol == symbol) {
            candidates.push(named(symbol, NAMED.to_owned()));
        }
    }
    let executions = Arc::clone(&run.world().executions);
    for found in lookup
        .index()
        .locate_executed(&text, &executed(&executions), CANDIDATES)
    {
        if !candidates.iter().any(|known| known.symbol == found.symbol) {
            candidates.push(Candidate {
                symbol: found.symbol,
                score: found.score,
                why: found.why,
            });
        }
    }
    let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    run.event(Event::Located {
        candidates: candidates.clone(),
        millis,
    });
    candidates
}

fn executed(executions: &Executions) -> ExecutedLines<'_> {
    let lines = executions.failing.iter().map(|one| &one.lines);
    ExecutedLines {
        failing: lines.filter(|lines| !lines.is_empty()).collect(),
        passing: Some(&executions.passing),
        passed: executions.passed,
    }
}

fn named(symbol: SymbolPath, why: String) -> Candidate {
    Candidate {
        symbol,
        score: 1.0,
        why: vec![why],
    }
}

/// Returns the candidates that a text names by `@path` and `#Symbol`. Also returns the mentions
/// that match no file or symbol, each with the reason.
fn mentioned(lookup: &Lookup, text: &str) -> (Vec<Candidate>, Vec<(String, String)>) {
    let (mut candidates, mut unknown): (Vec<Candidate>, Vec<_>) = Default::default();
    for mention in lookup.mentions_in(text) {
        match mention {
            Mention::One(symbol) => candidates.push(named(symbol, NAMED.to_owned())),
            Mention::Several {
                name,
                symbols,
                count,
            } => {
                let why = format!("one of {count} symbols that `#{name}` in the task may mean");
                candidates.extend(symbols.into_iter().map(|symbol| named(symbol, why.clone())));
            }
            Mention::Unknown { written, why } => unknown.push((written, why)),
        }
    }
    let mut known = BTreeSet::new();
    candidates.retain(|candidate| known.insert(candidate.symbol.clone()));
    (candidates, unknown)
}

/// Why the scout picked no symbol.
#[derive(Debug)]
pub(crate) enum NoPick {
    /// The call of the scout's model failed, or the budget is used up.
    Call(CallFailed),
    /// No agent can be started for the picked symbols. The text gives the reason, for the user.
    Unknown(String),
    /// The scout reports that no change is needed. The reason of the scout is in the run log.
    NothingToChange,
}

impl From<CallFailed> for NoPick {
    fn from(error: CallFailed) -> Self {
        NoPick::Call(error)
    }
}

/// Returns the symbols where work begins, each with notes for the agent that owns it.
///
/// # Errors
/// See [`NoPick`].
pub(crate) async fn pick(run: &Arc<RunContext>) -> Result<Vec<Pick>, NoPick> {
    match pick_once(run).await {
        Err(NoPick::Call(error)) if error.is_for_tools(&run.services.models.scout) => {
            pick_once(run).await
        }
        picked => picked,
    }
}

async fn pick_once(run: &Arc<RunContext>) -> Result<Vec<Pick>, NoPick> {
    let model = &run.services.models.scout;
    let is_small = prompt_parts::is_small(model.profile());
    if is_small || run.task.refactoring.is_some() {
        if let Some(picks) = by_rule::change(run) {
            let world = run.world().snapshot.clone();
            run.world().scouted_in = Some(world);
            let found = picks.map_err(NoPick::Unknown)?;
            let mut proposals = run.proposals();
            proposals.sets.by_rule = found.picks.len();
            proposals.sets.doubts = found.doubts;
            return Ok(found.picks);
        }
        if let Some(pick) = small::pick(run) {
            return pick.map(|pick| vec![pick]).map_err(NoPick::Unknown);
        }
        let mut suspects = suspects(run);
        if let Some(first) = suspects.pop_front() {
            run.agents().suspects = suspects;
            return Ok(vec![first.pick]);
        }
    }
    let calling = model.profile().tool_calling;
    let system = match calling {
        ToolCalling::Native => ScoutSystem {}.render(),
        ToolCalling::Text => ScoutSystemText {}.render(),
    };
    let mut conversation = Conversation::new("scout".to_owned(), Role::Scout, system);
    let world = run.world().snapshot.clone();
    run.world().scouted_in = Some(world);
    let AgentContext { shown, imports } = material(run, Role::Scout);
    note_shown(run, shown.iter().map(|one| one.symbol.as_str()));
    let candidates = ScoutPrompt {
        candidates: shown,
        imports,
    };
    let frozen = run.frozen.get().cloned().unwrap_or_default();
    conversation.user(format!("{frozen}\n{}", candidates.render()));
    let mut scouting = ScoutTurns {
        run,
        conversation,
        tools: toolbox(run, ToolSet::Scout, &[ActorId::Scout]),
        refused: None,
        is_told_of_test: false,
        is_told_of_open: false,
        words: RepliesWithoutPick::default(),
    };
    if let Some(picked) = converse(&mut scouting, TURNS).await {
        return picked;
    }
    match (scouting.refused, scouting.words) {
        (Some(_), words) if words.times > 0 => Err(NoPick::Unknown(words.quoted())),
        (Some(why), _) => Err(NoPick::Unknown(why)),
        (None, _) => Ok(fallback(run)),
    }
}

/// Records the texts that the scout is shown in files that changed on disk after the run began and
/// before they were first read. The changes that the scout writes are based on these texts.
fn note_shown<'s>(run: &RunContext, targets: impl Iterator<Item = &'s str>) {
    let lookup = run.lookup();
    let Some(mut scouted_in) = run.world().scouted_in.clone() else {
        return;
    };
    for symbol in targets.filter_map(|target| lookup.address(target).ok()) {
        if scouted_in.read_unchanged(&symbol.file).is_none()
            && let Ok(tree) = lookup.tree(&symbol.file)
        {
            scouted_in = scouted_in.with(symbol.file, Some(Arc::clone(tree.text())));
        }
    }
    run.world().scouted_in = Some(scouted_in);
}

/// The conversation loop of the scout.
struct ScoutTurns<'a> {
    run: &'a Arc<RunContext>,
    conversation: Conversation,
    tools: RunToolbox,
    /// Message for the user if none of the picked symbols exists.
    refused: Option<String>,
    /// Whether the scout was already told that its exact changes need a test.
    is_told_of_test: bool,
    /// Whether the scout was already told which parts of the task are not done.
    is_told_of_open: bool,
    words: RepliesWithoutPick,
}

impl ScoutTurns<'_> {
    /// Counts a reply that contains text but picks no symbol. Returns the outcome of the scout if
    /// this was its last turn.
    fn final_words(&mut self, reply: &ChatReply, calls: &[Asked]) -> Option<NoPick> {
        let calling = self.profile().tool_calling;
        if calling == ToolCalling::Text || !names_nothing(calls) {
            return None;
        }
        self.words.hear(reply);
        let quoted = || NoPick::Unknown(self.words.quoted());
        self.words.are_final().then(quoted)
    }

    /// Ends the scout's work because no change is needed. `summary` is the reason, which is written
    /// to the run log as the scout's answer.
    ///
    /// # Errors
    /// Returns a message for the model if the reason is missing, or if a test that the task is
    /// about fails. If a part of the task is not done, returns a message for the first call only.
    fn nothing_to_do(&mut self, summary: &str) -> Result<(), String> {
        let run = self.run;
        let why = summary.trim();
        let failing: Vec<String> = {
            let tests = run.tests();
            let failing = tests.required.ids.intersection(&tests.failing_before);
            failing.cloned().collect()
        };
        if !failing.is_empty() {
            let which = some_of(&failing);
            return Err(format!(
                "Something is to be changed, because tests of the task fail: {which}. Call `wake`."
            ));
        }
        if why.is_empty() {
            return Err(
                "Say in `summary` why nothing is to be changed, or call `wake`.".to_owned(),
            );
        }
        let open = unmet(run);
        if !open.is_empty() && !self.is_told_of_open {
            self.is_told_of_open = true;
            let open = some_of(&open);
            return Err(format!(
                "Something is to be changed: {open}. Call `wake`. If you call `finish` again, the run \
                 ends as not done."
            ));
        }
        run.event(Event::AgentFinished {
            agent: ActorId::Scout,
            outcome: AgentOutcome::NothingToChange,
            summary: why.to_owned(),
        });
        Ok(())
    }
}

#[async_trait]
impl Turns for ScoutTurns<'_> {
    type Action = Action;
    type End = Result<Vec<Pick>, NoPick>;
    type Failed = CallFailed;

    fn name(&self) -> String {
        self.conversation.name.clone()
    }

    fn conversation(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    fn profile(&self) -> &ModelProfile {
        self.run.services.models.scout.profile()
    }

    async fn begin(&mut self, _turn: u32) -> ControlFlow<Self::End, Option<Vec<ToolSpec>>> {
        let calling = self.profile().tool_calling;
        ControlFlow::Continue(Some(self.tools.specs(calling)))
    }

    async fn call(&mut self, tools: Vec<ToolSpec>) -> Result<ChatReply, CallFailed> {
        let model = &self.run.services.models.scout;
        let conversation = &mut self.conversation;
        let reply = self.run.call(&ActorId::Scout, model, conversation, tools);
        reply.await
    }

    fn failed(&mut self, error: CallFailed) -> ControlFlow<Self::End> {
        ControlFlow::Break(Err(error.into()))
    }

    fn calls(&mut self, reply: &ChatReply) -> Vec<Asked> {
        let calling = self.profile().tool_calling;
        let paths = self.run.unusual_paths();
        protocol::calls(&self.tools, calling, ToolSet::Scout, reply, &paths)
    }

    async fn hear(&mut self, reply: &ChatReply) -> TextReplyOutcome<Self::End> {
        if let Some(why) = self.final_words(reply, &[]) {
            let end = Some(Err(why));
            return TextReplyOutcome { told: None, end };
        }
        let calling = self.profile().tool_calling;
        let what = protocol::nothing_asked(calling, ToolSet::Scout, reply);
        self.run.event(Event::Malformed {
            agent: ActorId::Scout,
            what: what.clone(),
        });
        let told = Some(what);
        TextReplyOutcome { told, end: None }
    }

    async fn act(
        &mut self,
        reply: &ChatReply,
        calls: Vec<Asked>,
    ) -> ToolCallsOutcome<Action, Self::End> {
        if let Some(why) = self.final_words(reply, &calls) {
            let (results, end) = (Vec::new(), Some(Err(why)));
            return ToolCallsOutcome { results, end };
        }
        for one in &calls {
            if let Ok(Action::Read(read)) = &one.action {
                note_shown(self.run, read.symbols.iter().map(String::as_str));
            }
        }
        let mut results = self.tools.execute_all(calls).await;
        let mut end = None;
        for (one, text) in &mut results {
            if let Ok(Action::Finish(finish)) = &one.action {
                match self.nothing_to_do(&finish.summary) {
                    Ok(()) => {
                        end = Some(Err(NoPick::NothingToChange));
                        break;
                    }
                    Err(error) => *text = error,
                }
            }
            if let Ok(Action::Wake(wake)) = &one.action {
                match usable(self.run, &wake.symbols) {
                    Ok(picks) if !self.is_told_of_test && lacks_a_test(self.run, &picks) => {
                        self.is_told_of_test = true;
                        *text = TEST_IS_MISSING.to_owned();
                    }
                    Ok(picks) => {
                        end = Some(Ok(picks));
                        break;
                    }
                    Err(error) => {
                        self.refused = Some(not_there(&wake.symbols));
                        *text = error;
                    }
                }
            }
            tools::report(self.run, &ActorId::Scout, one, text);
        }
        ToolCallsOutcome { results, end }
    }
}

/// Returns whether the change needs a new test that no agent will write. This is the case if the
/// scout gives exact changes for all picks and picks no test file, because then no agent reads that
/// a test is needed.
fn lacks_a_test(run: &RunContext, picks: &[Pick]) -> bool {
    let is_exact =
        |pick: &Pick| pick.source.is_some() || !pick.hunks.is_empty() || !pick.delete.is_empty();
    let is_test = |pick: &Pick| {
        let path = pick.symbol.parse::<SymbolPath>();
        path.is_ok_and(|path| is_test_file(&path.file))
    };
    prompt_parts::test_is_needed(run) && picks.iter().all(is_exact) && !picks.iter().any(is_test)
}

/// Returns whether a reply contains no tool call, or picks no symbol.
fn names_nothing(asked: &[Asked]) -> bool {
    let mut actions = asked.iter().map(|one| &one.action);
    actions.all(|action| matches!(action, Ok(Action::Wake(wake)) if wake.symbols.is_empty()))
}

/// The replies that contain text but pick no symbol, for example a question, or a statement that a
/// name does not exist.
#[derive(Default)]
struct RepliesWithoutPick {
    last: String,
    times: u32,
}

impl RepliesWithoutPick {
    fn hear(&mut self, reply: &ChatReply) {
        let said: Vec<&str> = reply.text.split_whitespace().collect();
        match reply.finish {
            Finish::Stop | Finish::ToolCalls if !said.is_empty() => {
                self.last = said.join(" ");
                self.times += 1;
            }
            Finish::Stop | Finish::ToolCalls | Finish::Length | Finish::Filtered => {}
        }
    }

    /// Returns whether the maximum number of replies without a pick is reached, so that the model
    /// gets no further turn.
    fn are_final(&self) -> bool {
        self.times >= WORDS_TIMES
    }

    fn quoted(&self) -> String {
        let mut said: String = self.last.chars().take(WORDS_MOST).collect();
        if said.len() < self.last.len() {
            said.push('…');
        }
        format!("the model named no symbol to begin with, and said: \"{said}\"")
    }
}

/// Returns the message for the user if the model picked no symbol, or none of the picked symbols
/// exists.
fn not_there(picks: &[Pick]) -> String {
    let names: Vec<String> = picks
        .iter()
        .map(|pick| format!("`{}`", pick.symbol))
        .collect();
    match names.len() {
        0 => "the model named no symbol to begin with".to_owned(),
        1 => format!(
            "the model would begin at {}, which is not in the project",
            names[0]
        ),
        _ => format!(
            "the model would begin at {}, which are not in the project",
            some_of(&names)
        ),
    }
}

/// Returns the picks whose symbols exist or are new files; the other picks are reported to the
/// user. If no pick is usable, returns an error message for the model.
fn usable(run: &RunContext, picks: &[Pick]) -> Result<Vec<Pick>, String> {
    let lookup = run.lookup();
    let mut errors = Vec::new();
    let mut good: Vec<Pick> = Vec::new();
    for pick in picks {
        let found = lookup
            .address(&pick.symbol)
            .and_then(|path| match lookup.is_new_file(&path) {
                true => Ok(path),
                false => lookup.symbol(&path).map(|_| path),
            });
        let class = || lookup.class_of_member(&pick.symbol);
        if let Some(class) = found.is_err().then(class).flatten() {
            let symbol = class.to_string();
            match good.iter_mut().find(|other| other.symbol == symbol) {
                Some(other) => other.hunks.extend(pick.hunks.iter().cloned()),
                // A member, such as of an enumeration, belongs to its class. The pick's new text is
                // for the member, so it cannot replace the class.
                None => good.push(Pick {
                    symbol,
                    source: None,
                    delete: Vec::new(),
                    ..pick.clone()
                }),
            }
            continue;
        }
        match found.map(|path| path.to_string()) {
            Ok(symbol) if good.iter().any(|other| other.symbol == symbol) => {}
            Ok(symbol) => good.push(Pick {
                symbol,
                ..pick.clone()
            }),
            Err(error) => errors.push((pick.symbol.clone(), error)),
        }
    }
    if good.is_empty() {
        let errors: Vec<String> = errors.into_iter().map(|(_, error)| error).collect();
        return Err(format!(
            "No agent can be started for the symbols that you picked. {}",
            errors.join(" ")
        ));
    }
    for (symbol, error) in errors {
        run.not_woken(symbol, &ActorId::Scout, error);
    }
    Ok(deletions::by_owner(&lookup, good))
}

/// Returns the best candidate, which is used if the scout picked no symbol. If the task names a
/// code file, symbols in the file that match words of the task are preferred to the whole file.
fn fallback(run: &RunContext) -> Vec<Pick> {
    let located = run.world().located.clone();
    let is_code_file =
        |symbol: &SymbolPath| symbol.is_module() && Language::of(&symbol.file) != Language::Plain;
    let (whole, mut located): (Vec<_>, Vec<_>) = located.into_iter().partition(|candidate| {
        is_code_file(&candidate.symbol) && candidate.why.iter().any(|why| why == NAMED)
    });
    located.extend(whole);
    located.retain(|candidate| !is_test_file(&candidate.symbol.file));
    let pick = |candidate: &Candidate| Pick {
        symbol: candidate.symbol.to_string(),
        why: candidate.why.join(", "),
        ..Pick::default()
    };
    located.iter().take(1).map(pick).collect()
}
