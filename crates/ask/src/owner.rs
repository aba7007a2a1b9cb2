//! Questions to owners. An owner is a model that answers a question about one symbol: it reads the
//! source of the symbol and related code, and reports its findings.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::block::{Block, blocks};
use super::call::{Caller, conversation};
use super::cite::{Citation, CitationChecker};
use super::code::CodeReader;
use super::step::{OwnerAnswerSource, Step};
use super::tools::{AskAction, AskRole, AskTools, Call, Question};
use starling_core::prompts::{AskOwnerPrompt, AskOwnerSystem, Prompt};
use starling_core::{ChatModel, ChatReply, ModelError, ModelProfile, Tokens, ToolSpec};
use starling_dialogue::{Conversation, TextReplyOutcome, ToolCallsOutcome, Turns, converse};
use starling_swarm::budget::CallFailed;
use starling_swarm::reading::{Focus, cap};
use starling_syntax::SymbolPath;

/// Maximum number of turns of an owner.
const TURNS: u32 = 3;
/// Maximum time for an owner's answer.
const DEADLINE: Duration = Duration::from_secs(180);
const SOURCE: Tokens = Tokens(3_500);
const USES: usize = 12;
const ANSWER: Tokens = Tokens(900);
const LOOKS: usize = 6;

/// An owner's answer with its citations.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnerReport {
    pub symbol: SymbolPath,
    pub text: String,
    pub citations: Vec<Citation>,
}

/// Sends questions to owners, with the resources that this needs.
#[derive(Clone, Copy)]
pub struct OwnerQuestioner<'a> {
    pub code: &'a CodeReader,
    pub checker: &'a CitationChecker,
    pub model: &'a Arc<dyn ChatModel>,
    pub caller: &'a Caller<'a>,
}

impl OwnerQuestioner<'_> {
    /// Questions the owner of a symbol. `Err` holds a message for the model that asked.
    pub async fn ask(&self, question: &Question) -> Result<OwnerReport, String> {
        let symbol: SymbolPath = question
            .symbol
            .parse()
            .map_err(|error: starling_syntax::BadSymbolPath| error.to_string())?;
        let found = self.code.symbol(&symbol)?;
        let prompt = AskOwnerPrompt {
            symbol: symbol.to_string(),
            source: self
                .code
                .source(&found, &Focus::of(&question.question), SOURCE),
            uses: match symbol.is_module() {
                true => String::new(),
                false => self.code.references(&symbol.to_string(), USES),
            },
            question: question.question.clone(),
            why: question.why.clone(),
        };
        let name = format!("ask owner {symbol}: {}", head(&question.question, 60));
        let system = AskOwnerSystem {}.render();
        let mut reporting = OwnerTurns {
            asker: self,
            who: symbol.to_string(),
            conversation: conversation(name, system, prompt.render()),
            tools: self.code.tools(AskRole::Owner, None),
        };
        // Half of the remaining time is reserved for the reader's answer.
        let deadline = DEADLINE.min(self.caller.ledger.time_left() / 2);
        let text = tokio::time::timeout(deadline, converse(&mut reporting, TURNS))
            .await
            .map_err(|_| format!("no answer within {} s", deadline.as_secs()))?
            .unwrap_or(Err(OwnerFailure::Undecided))
            .map_err(|error| error.to_string())?;
        Ok(self.report(symbol, &cap(&text, ANSWER)))
    }

    /// Creates a report that holds only valid citations.
    fn report(&self, symbol: SymbolPath, text: &str) -> OwnerReport {
        let mut report = OwnerReport {
            symbol,
            text: String::new(),
            citations: Vec::new(),
        };
        for source in blocks(text.trim()) {
            let block = Block::check(source, self.checker);
            report.text.push_str(&block.text);
            report.citations.extend(block.citations);
        }
        report
    }
}

/// The turns of an owner: hooks for the conversation loop of one owner.
struct OwnerTurns<'a> {
    asker: &'a OwnerQuestioner<'a>,
    who: String,
    conversation: Conversation,
    tools: AskTools<'a>,
}

#[async_trait]
impl Turns for OwnerTurns<'_> {
    type Action = AskAction;
    type End = Result<String, OwnerFailure>;
    type Failed = CallFailed;

    fn name(&self) -> String {
        self.who.clone()
    }

    fn conversation(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    fn profile(&self) -> &ModelProfile {
        self.asker.model.profile()
    }

    async fn begin(&mut self, turn: u32) -> ControlFlow<Self::End, Option<Vec<ToolSpec>>> {
        let OwnerQuestioner { caller, model, .. } = self.asker;
        if !caller.can_go_on(model.as_ref(), &self.conversation) {
            return ControlFlow::Break(Err(OwnerFailure::NoRoom));
        }
        ControlFlow::Continue(Some(match turn < TURNS {
            true => self.tools.specs(self.profile().tool_calling),
            false => Vec::new(),
        }))
    }

    async fn call(&mut self, tools: Vec<ToolSpec>) -> Result<ChatReply, CallFailed> {
        let OwnerQuestioner { caller, model, .. } = self.asker;
        caller
            .call(&self.who, model, &mut self.conversation, tools, None)
            .await
    }

    fn failed(&mut self, error: CallFailed) -> ControlFlow<Self::End> {
        match error {
            CallFailed::Model(ModelError::NoTools { .. }) => ControlFlow::Continue(()),
            error => ControlFlow::Break(Err(error.into())),
        }
    }

    fn calls(&mut self, reply: &ChatReply) -> Vec<Call> {
        let paths = self.asker.code.unusual_paths();
        let lines = |text: &str| self.tools.lines(text, &paths);
        self.tools.calls(self.profile().tool_calling, reply, lines)
    }

    async fn hear(&mut self, reply: &ChatReply) -> TextReplyOutcome<Self::End> {
        let is_empty = reply.text.trim().is_empty();
        let told = "The answer was empty. Reply with what you found.";
        TextReplyOutcome {
            told: is_empty.then(|| told.to_owned()),
            end: (!is_empty).then(|| Ok(reply.text.clone())),
        }
    }

    async fn act(
        &mut self,
        _reply: &ChatReply,
        calls: Vec<Call>,
    ) -> ToolCallsOutcome<AskAction, Self::End> {
        let mut results = Vec::new();
        for (nth, call) in calls.into_iter().enumerate() {
            let text = match nth {
                ..LOOKS => self.tools.execute(&call).await.unwrap_or_default(),
                LOOKS.. => format!("Only {LOOKS} looks in one turn."),
            };
            if nth < LOOKS && call.action.is_ok() {
                self.asker.caller.steps.add(looked(&self.who, &call, &text));
            }
            results.push((call, text));
        }
        ToolCallsOutcome { results, end: None }
    }

    fn left_out(&mut self) {
        self.asker.caller.left_out(&self.who);
    }
}

/// Returns the step that reports that a model read code.
pub fn looked(by: &str, call: &Call, text: &str) -> Step {
    Step::Looked {
        by: by.to_owned(),
        tool: call.tool.clone(),
        argument: call.label.1.clone(),
        outcome: head(text.lines().next().unwrap_or_default(), 120),
    }
}

/// Why an owner did not answer.
#[derive(Debug, thiserror::Error)]
enum OwnerFailure {
    #[error(transparent)]
    Call(#[from] CallFailed),
    #[error("the budget does not suffice for another model call")]
    NoRoom,
    #[error("no answer in {TURNS} turns")]
    Undecided,
}

/// Returns the step that reports an owner's answer.
pub fn answered(symbol: &str, answer: &str, source: OwnerAnswerSource) -> Step {
    Step::Answered {
        symbol: symbol.to_owned(),
        answer: answer.trim().to_owned(),
        source,
    }
}

pub fn head(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
