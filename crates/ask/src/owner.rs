//! Questions to symbol owners. Each owner reads its own source and related code, and reports.

use std::sync::Arc;
use std::time::Duration;

use super::block::{Block, blocks};
use super::call::{CallFailed, Caller, Conversation};
use super::cite::{Checker, Citation};
use super::code::Code;
use super::step::{Source, Step};
use super::tools::{self, Look, Question, Seat, Wanted};
use starling_core::prompts::{AskOwnerPrompt, AskOwnerSystem, Prompt};
use starling_core::{ChatModel, ModelError, Tokens};
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
pub struct Report {
    pub symbol: SymbolPath,
    pub text: String,
    pub citations: Vec<Citation>,
}

/// The resources for questioning an owner.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    pub code: &'a Code,
    pub checker: &'a Checker,
    pub model: &'a Arc<dyn ChatModel>,
    pub caller: &'a Caller<'a>,
}

impl Asker<'_> {
    /// Questions the owner of a symbol. `Err` holds a message for the model that asked.
    pub async fn ask(&self, question: &Question) -> Result<Report, String> {
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
        let mut conversation = Conversation::new(name, system, prompt.render());
        // Half of the remaining time is reserved for the reader's answer.
        let deadline = DEADLINE.min(self.caller.ledger.time_left() / 2);
        let text = tokio::time::timeout(deadline, self.converse(&symbol, &mut conversation))
            .await
            .map_err(|_| format!("no answer within {} s", deadline.as_secs()))?
            .map_err(|error| error.to_string())?;
        Ok(self.report(symbol, &cap(&text, ANSWER)))
    }

    async fn converse(
        &self,
        symbol: &SymbolPath,
        conversation: &mut Conversation,
    ) -> Result<String, OwnerFailed> {
        let who = symbol.to_string();
        for turn in 1..=TURNS {
            let calling = self.model.profile().tool_calling;
            if !self.caller.can_go_on(self.model.as_ref(), conversation) {
                return Err(OwnerFailed::NoRoom);
            }
            let offered = match turn < TURNS {
                true => tools::specs(calling, Seat::Owner),
                false => Vec::new(),
            };
            let reply = self
                .caller
                .call(&who, self.model, conversation, offered, None)
                .await;
            let reply = match reply {
                Err(CallFailed::Model(ModelError::NoTools { .. })) => continue,
                reply => reply?,
            };
            let paths = self.code.unusual_paths();
            let calls = tools::calls(calling, Seat::Owner, &reply, &paths);
            if calls.is_empty() && !reply.text.trim().is_empty() {
                return Ok(reply.text);
            }
            conversation.messages.push(tools::said(&reply));
            if calls.is_empty() {
                conversation.user("The answer was empty. Reply with what you found.");
                continue;
            }
            let mut results = Vec::new();
            for (nth, call) in calls.into_iter().enumerate() {
                let text = match &call.wanted {
                    _ if nth >= LOOKS => format!("Only {LOOKS} looks in one turn."),
                    Ok(Wanted::Look(look)) => self.look(&who, look, &call.tool, &call.argument),
                    Ok(Wanted::Question(_)) => "An owner asks nobody.".to_owned(),
                    Err(error) => error.clone(),
                };
                results.push((call, text));
            }
            conversation.messages.extend(tools::results(results));
        }
        Err(OwnerFailed::Undecided)
    }

    fn look(&self, who: &str, look: &Look, tool: &str, argument: &str) -> String {
        let text = self.code.look(look);
        self.caller.steps.add(Step::Looked {
            by: who.to_owned(),
            tool: tool.to_owned(),
            argument: argument.to_owned(),
            outcome: head(text.lines().next().unwrap_or_default(), 120),
        });
        text
    }

    /// Creates a report that holds only valid citations.
    fn report(&self, symbol: SymbolPath, text: &str) -> Report {
        let mut report = Report {
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

/// Why an owner did not answer.
#[derive(Debug, thiserror::Error)]
enum OwnerFailed {
    #[error(transparent)]
    Call(#[from] CallFailed),
    #[error("the budget has no room for it")]
    NoRoom,
    #[error("no answer in {TURNS} turns")]
    Undecided,
}

/// Returns the step that reports an owner's answer.
pub fn answered(symbol: &str, answer: &str, source: Source) -> Step {
    Step::Answered {
        symbol: symbol.to_owned(),
        answer: answer.trim().to_owned(),
        source,
    }
}

pub fn head(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
