//! A single model call: reserves its part of the budget, streams the reply, and records the cost.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

use super::draft::AnswerDraft;
use super::step::{Step, StepLog};
use super::tools::{self, AskRole, Executors};
use starling_core::{
    ChatModel, ChatReply, ChatWatch, ModelError, ModelNotice, Role, Tokens, ToolCalling, ToolSpec,
    WorstCase,
};
use starling_dialogue::Conversation;
use starling_swarm::budget::{Budget, CallBudget, CallFailed};

/// Maximum length of an answer. A longer answer is truncated, and its received part is checked.
const LONGEST_ANSWER: Tokens = Tokens(4_000);

/// Starts a conversation. Equal questions get conversations with equal names, so that recorded
/// model replies can be matched to them.
pub fn conversation(name: String, system: String, first: String) -> Conversation {
    let mut conversation = Conversation::new(name, Role::Agent, system);
    conversation.longest = LONGEST_ANSWER;
    conversation.user(first);
    conversation
}

/// Makes the model calls that answer one question.
pub struct Caller<'a> {
    pub ledger: &'a Budget,
    pub steps: &'a Arc<StepLog>,
}

impl Caller<'_> {
    /// Requests the next message of a conversation and streams its text to the draft. The reply is
    /// not added to the conversation.
    ///
    /// # Errors
    /// Fails if the budget has no room or the model fails.
    pub async fn call(
        &self,
        who: &str,
        model: &Arc<dyn ChatModel>,
        conversation: &mut Conversation,
        tools: Vec<ToolSpec>,
        draft: Option<&Mutex<AnswerDraft>>,
    ) -> Result<ChatReply, CallFailed> {
        let mut request = conversation.request(tools, model.profile());
        let worst = WorstCase::of(&request, model.profile());
        let budget = CallBudget::open(self.ledger, worst).await?;
        request.max_output = budget.max_output();
        conversation.ordinal += 1;
        let watch = CallWatch {
            caller: self,
            who,
            draft,
            budget: &budget,
        };
        let result = model.chat(&request, &watch).await;
        budget.close(Some(&result));
        if let Err(error) = &result {
            self.trouble(who, error.to_string());
        }
        Ok(result?)
    }

    /// Reports that earlier tool results were left out of a prompt because it would be too long.
    pub fn left_out(&self, who: &str) {
        let what = "the prompt nears the model's window: earlier results are left out";
        self.trouble(who, what.to_owned());
    }

    pub fn trouble(&self, who: &str, what: String) {
        self.steps.add(Step::Trouble {
            who: who.to_owned(),
            what,
        });
    }

    /// Whether the budget has room for two more requests of this conversation: one that calls
    /// tools, and one for the answer.
    pub fn can_go_on(&self, model: &dyn ChatModel, conversation: &Conversation) -> bool {
        let tools = tools::toolbox(AskRole::Reader, Executors::default());
        let next = conversation.request(tools.specs(ToolCalling::Native), model.profile());
        let worst = WorstCase::of(&next, model.profile());
        self.ledger.has_room(2, &worst)
    }
}

/// Reports the events of a call as steps and streams its text to a draft.
struct CallWatch<'a> {
    caller: &'a Caller<'a>,
    who: &'a str,
    draft: Option<&'a Mutex<AnswerDraft>>,
    budget: &'a CallBudget,
}

#[async_trait]
impl ChatWatch for CallWatch<'_> {
    fn delta(&self, text: &str) {
        self.budget.delta(text);
        if let Some(draft) = self.draft {
            let mut draft = draft.lock().unwrap_or_else(PoisonError::into_inner);
            draft.push(text);
        }
    }

    fn notice(&self, notice: ModelNotice) {
        let (what, again) = match notice {
            ModelNotice::Retrying {
                attempt,
                wait_ms,
                error,
                ..
            } => {
                let what = format!("{error}; attempt {attempt} in {wait_ms} ms");
                (what, true)
            }
            ModelNotice::FellBack { to, error, .. } => (format!("{error}; asking {to}"), true),
            ModelNotice::Continued { .. } => return,
            ModelNotice::Preparing { message, .. } => (message, false),
        };
        if let (true, Some(draft)) = (again, self.draft) {
            let mut draft = draft.lock().unwrap_or_else(PoisonError::into_inner);
            draft.restart();
        }
        self.caller.trouble(self.who, what);
    }

    fn request_ended(&self, end: Result<&ChatReply, &ModelError>) {
        self.budget.request_ended(end);
    }

    async fn reserve(&self, next: &WorstCase) -> Option<Tokens> {
        self.budget.reserve(next).await
    }
}
