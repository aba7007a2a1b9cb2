//! The turns of the reader (the model that answers the user's question). In each turn, the reader
//! calls tools or questions owners (models that each know one symbol), all in parallel. It answers
//! as soon as it has enough information.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use serde::{Deserialize, Serialize};

use super::Models;
use super::call::{Caller, conversation};
use super::cite::CitationChecker;
use super::code::CodeReader;
use super::draft::{AnswerDraft, CheckedAnswer, ClaimToCorrect};
use super::material::is_small;
use super::owner::{OwnerQuestioner, OwnerReport, answered, looked};
use super::session::Session;
use super::step::{OwnerAnswerSource, Step};
use super::tools::{AskAction, AskRole, AskTools, Call, Question};
use starling_core::prompts::{
    AskMendPrompt, AskSystem, AskSystemSmall, AskSystemText, Prompt, RejectedClaim,
};
use starling_core::{ChatReply, Finish, ModelError, ModelProfile, ToolCalling, ToolSpec};
use starling_dialogue::{
    Conversation, Execute, TextReplyOutcome, ToolCallsOutcome, Turns, converse,
};
use starling_swarm::budget::CallFailed;

/// Maximum number of reader turns. In the last turn the reader must answer.
const TURNS: u32 = 5;
/// Maximum number of calls in a turn.
const CALLS: usize = 8;
/// Maximum number of questions to owners for one user question.
const QUESTIONS: u32 = 8;
/// The reader must answer if less than this time is left.
const HURRY: Duration = Duration::from_secs(45);
const READER: &str = "reader";
const ANSWER_NOW: &str =
    "Answer now, with what you know; say what you do not know. No tools are left.";

/// Why the exploration of one question ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum ExplorationEnd {
    /// The reader answered.
    Answered,
    /// The budget ran out; the answer is the best so far.
    BudgetUsedUp { what: String },
    /// The time ran out; the answer is the best so far.
    OutOfTime { seconds: u64 },
    /// The model failed; the answer is the best so far.
    ModelFailed { error: String },
    /// The model did not answer within its turns.
    Undecided,
    /// No claim of the answer is supported by the code, so the answer is empty.
    Unsupported,
}

/// The state of answering one question.
pub struct Exploration<'a> {
    pub code: &'a CodeReader,
    pub checker: &'a CitationChecker,
    pub models: &'a Models,
    pub caller: &'a Caller<'a>,
    session: Mutex<Session>,
    draft: Mutex<AnswerDraft>,
    reports: Mutex<Vec<OwnerReport>>,
    asked: AtomicU32,
}

impl<'a> Exploration<'a> {
    pub fn new(
        code: &'a CodeReader,
        checker: &'a CitationChecker,
        models: &'a Models,
        caller: &'a Caller<'a>,
        session: Session,
    ) -> Self {
        let mut draft = AnswerDraft::new(checker.clone(), Arc::clone(caller.steps));
        if is_small(models.reader.profile()) {
            draft = draft.without_example(&AskSystemSmall {}.render());
        }
        Exploration {
            code,
            checker,
            models,
            caller,
            session: Mutex::new(session),
            draft: Mutex::new(draft),
            reports: Mutex::default(),
            asked: AtomicU32::new(0),
        }
    }

    /// Returns the answer, or the best answer so far if the exploration ends early.
    ///
    /// # Errors
    /// The model failed before any information was found.
    pub async fn run(&self, prompt: String) -> Result<(CheckedAnswer, ExplorationEnd), ModelError> {
        let left = self.caller.ledger.time_left();
        let turns = async {
            let refused_tools = |ended: &Result<ExplorationEnd, CallFailed>| {
                let reader = self.models.reader.profile();
                matches!(ended, Err(CallFailed::Model(ModelError::NoTools { .. })))
                    && reader.tool_calling == ToolCalling::Text
            };
            match self.turns(prompt.clone()).await {
                ended if refused_tools(&ended) => self.turns(prompt.clone()).await,
                ended => ended,
            }
        };
        let ended = match tokio::time::timeout(left, turns).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(CallFailed::Budget(exhausted))) => ExplorationEnd::BudgetUsedUp {
                what: exhausted.what,
            },
            Ok(Err(CallFailed::Model(error))) if self.knows_nothing() => return Err(error),
            Ok(Err(CallFailed::Model(error))) => ExplorationEnd::ModelFailed {
                error: error.to_string(),
            },
            Err(_) => ExplorationEnd::OutOfTime {
                seconds: self.caller.ledger.limits().seconds,
            },
        };
        if self.draft().is_empty() {
            let known = self.what_is_known();
            self.draft().complete(&known);
        }
        Ok((self.draft().finish(), ended))
    }

    /// Returns the session for follow-up questions, with the answers of the owners and the reader.
    pub fn into_session(self) -> Session {
        self.session
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    async fn turns(&self, prompt: String) -> Result<ExplorationEnd, CallFailed> {
        let profile = self.models.reader.profile();
        let calling = profile.tool_calling;
        let system = match (calling, is_small(profile)) {
            (_, true) => AskSystemSmall {}.render(),
            (ToolCalling::Native, false) => AskSystem {}.render(),
            (ToolCalling::Text, false) => AskSystemText {}.render(),
        };
        let questioning = Arc::new(OwnerQuestionExecutor(self));
        let mut reading = ReaderTurns {
            exploring: self,
            conversation: conversation("ask".to_owned(), system, prompt),
            tools: self.code.tools(AskRole::Reader, Some(questioning)),
            seen: BTreeSet::new(),
            turn: 0,
            is_last: false,
        };
        let ended = converse(&mut reading, TURNS).await;
        ended.unwrap_or(Ok(ExplorationEnd::Undecided))
    }

    fn can_go_on(&self, conversation: &Conversation) -> bool {
        let reader = self.models.reader.as_ref();
        self.caller.can_go_on(reader, conversation)
    }

    async fn say(
        &self,
        conversation: &mut Conversation,
        offered: Vec<ToolSpec>,
    ) -> Result<ChatReply, CallFailed> {
        let model = &self.models.reader;
        let draft = Some(&self.draft);
        self.caller
            .call(READER, model, conversation, offered, draft)
            .await
    }

    /// Sends a question to an owner, or returns the owner's earlier answer to the same question.
    async fn question(&self, question: &Question) -> String {
        let steps = self.caller.steps;
        steps.add(Step::Asked {
            symbol: question.symbol.clone(),
            question: question.question.clone(),
            why: question.why.clone(),
        });
        let (text, source) = self.answer_of_owner(question).await;
        steps.add(answered(&question.symbol, &text, source));
        text
    }

    async fn answer_of_owner(&self, question: &Question) -> (String, OwnerAnswerSource) {
        let known = question.symbol.parse().ok().and_then(|symbol| {
            let session = self.session();
            session
                .known(&symbol, &question.question)
                .map(str::to_owned)
        });
        if let Some(known) = known {
            return (known, OwnerAnswerSource::Memory);
        }
        if self.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS {
            let text =
                format!("{QUESTIONS} questions have been asked; look for yourself or answer.");
            return (text, OwnerAnswerSource::Refused);
        }
        if let Err(exhausted) = self.caller.ledger.count_message() {
            return (exhausted.to_string(), OwnerAnswerSource::Refused);
        }
        let asker = OwnerQuestioner {
            code: self.code,
            checker: self.checker,
            model: &self.models.owner,
            caller: self.caller,
        };
        match asker.ask(question).await {
            Ok(report) => {
                let text = report.text.clone();
                let files = self.code.files();
                let (symbol, cited) = (report.symbol.clone(), &report.citations);
                self.session()
                    .learn(symbol, &question.question, &text, cited, files);
                self.reports
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(report);
                (text, OwnerAnswerSource::Model)
            }
            Err(why) => (format!("No answer: {why}"), OwnerAnswerSource::Refused),
        }
    }

    /// Checks the answer. If it has faulty claims, asks the model once to correct them.
    async fn answer(&self, conversation: &mut Conversation, reply: &ChatReply, turn: u32) {
        self.caller.steps.add(Step::Enough { turns: turn });
        if reply.finish == Finish::Length {
            self.caller.trouble(READER, "the answer was cut".into());
        }
        self.draft().complete(&reply.text);
        let problems = self.draft().problems();
        let small = is_small(self.models.reader.profile());
        if problems.is_empty() || small || !self.can_go_on(conversation) {
            return;
        }
        self.caller.steps.add(Step::SentBack {
            claims: problems.iter().map(|p| p.claim.clone()).collect(),
        });
        conversation.said(reply);
        let claim = |problem: &ClaimToCorrect| RejectedClaim {
            claim: problem.claim.clone(),
            what: problem.what.clone(),
        };
        let prompt = AskMendPrompt {
            claims: problems.iter().map(claim).collect(),
        };
        conversation.user(prompt.render());
        // This reply holds corrections, not an answer, so it stays out of the draft.
        let model = &self.models.reader;
        let mended = self
            .caller
            .call(READER, model, conversation, Vec::new(), None)
            .await;
        // A failed call is already reported as a step, and the claims keep their markers.
        if let Ok(mended) = mended {
            self.draft().mend(read_mended(&mended.text, problems));
        }
    }

    /// Returns a fallback answer: the owners' findings, or the symbols that match the question.
    fn what_is_known(&self) -> String {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        for report in reports.iter() {
            text.push_str(report.text.trim());
            text.push_str("\n\n");
        }
        if !text.is_empty() {
            return text;
        }
        let located = self
            .caller
            .steps
            .kept()
            .into_iter()
            .find_map(|step| match step {
                Step::Located { symbols, .. } => Some(symbols),
                Step::Looked { .. }
                | Step::Asked { .. }
                | Step::Answered { .. }
                | Step::Enough { .. }
                | Step::Mended { .. }
                | Step::SentBack { .. }
                | Step::Trouble { .. }
                | Step::Said { .. }
                | Step::Writing { .. }
                | Step::Restarted => None,
            });
        text.push_str("No answer was reached. The question leads to:\n");
        for found in located.unwrap_or_default().iter().take(5) {
            let path = found.symbol.parse::<starling_syntax::SymbolPath>();
            if let Some(found) = path.ok().and_then(|path| self.code.symbol(&path).ok()) {
                let path = &found.symbol.path;
                let line = found.symbol.lines.0;
                text.push_str(&format!("- `{path}` [{}:{line}]\n", path.file));
            }
        }
        text
    }

    fn knows_nothing(&self) -> bool {
        let reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        reports.is_empty() && self.draft().is_empty()
    }

    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draft(&self) -> MutexGuard<'_, AnswerDraft> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Executes the reader's questions: sends each to the owner of its symbol.
struct OwnerQuestionExecutor<'a>(&'a Exploration<'a>);

#[async_trait]
impl Execute<AskAction> for OwnerQuestionExecutor<'_> {
    async fn execute(&self, wanted: &AskAction) -> String {
        match wanted {
            AskAction::Question(question) => self.0.question(question).await,
            AskAction::Look(_) => String::new(),
        }
    }
}

/// The reader's turns: hooks for the conversation loop of the reader.
struct ReaderTurns<'a> {
    exploring: &'a Exploration<'a>,
    conversation: Conversation,
    tools: AskTools<'a>,
    /// Fingerprints of the calls whose results are in the conversation.
    seen: BTreeSet<String>,
    turn: u32,
    /// Whether the reader must answer in this turn.
    is_last: bool,
}

#[async_trait]
impl Turns for ReaderTurns<'_> {
    type Action = AskAction;
    type End = Result<ExplorationEnd, CallFailed>;
    type Failed = CallFailed;

    fn name(&self) -> String {
        READER.to_owned()
    }

    fn conversation(&mut self) -> &mut Conversation {
        &mut self.conversation
    }

    fn profile(&self) -> &ModelProfile {
        self.exploring.models.reader.profile()
    }

    async fn begin(&mut self, turn: u32) -> ControlFlow<Self::End, Option<Vec<ToolSpec>>> {
        let caller = self.exploring.caller;
        let hurry = turn > 1
            && (!self.exploring.can_go_on(&self.conversation) || caller.ledger.time_left() < HURRY);
        self.turn = turn;
        self.is_last = is_small(self.profile()) || turn == TURNS || hurry;
        if self.is_last && turn > 1 {
            if hurry {
                let what = "little of the budget is left: answering with what is known";
                caller.trouble(READER, what.to_owned());
            }
            self.conversation.user(ANSWER_NOW);
        }
        ControlFlow::Continue(Some(match self.is_last {
            true => Vec::new(),
            false => self.tools.specs(self.profile().tool_calling),
        }))
    }

    async fn call(&mut self, tools: Vec<ToolSpec>) -> Result<ChatReply, CallFailed> {
        self.exploring.say(&mut self.conversation, tools).await
    }

    fn failed(&mut self, error: CallFailed) -> ControlFlow<Self::End> {
        ControlFlow::Break(Err(error))
    }

    fn calls(&mut self, reply: &ChatReply) -> Vec<Call> {
        if self.is_last {
            return Vec::new();
        }
        let paths = self.exploring.code.unusual_paths();
        let lines = |text: &str| self.tools.lines(text, &paths);
        self.tools.calls(self.profile().tool_calling, reply, lines)
    }

    async fn hear(&mut self, reply: &ChatReply) -> TextReplyOutcome<Self::End> {
        let exploring = self.exploring;
        let mut told = None;
        let mut end = None;
        if !reply.text.trim().is_empty() {
            exploring
                .answer(&mut self.conversation, reply, self.turn)
                .await;
            end = Some(Ok(ExplorationEnd::Answered));
        } else if self.is_last {
            end = Some(Ok(ExplorationEnd::Undecided));
        } else {
            exploring.draft().restart();
            exploring
                .caller
                .trouble(READER, "the answer was empty".into());
            told = Some("The answer was empty. Answer, or look further.".to_owned());
        }
        TextReplyOutcome { told, end }
    }

    /// Executes all calls of a turn concurrently.
    async fn act(
        &mut self,
        _reply: &ChatReply,
        calls: Vec<Call>,
    ) -> ToolCallsOutcome<AskAction, Self::End> {
        // Text in a reply with tool calls is not part of the answer.
        self.exploring.draft().restart();
        let (caller, tools, seen) = (self.exploring.caller, &self.tools, &mut self.seen);
        // A call over the limit of a turn is not executed, so the model may repeat it later.
        let mut is_fresh =
            |nth: usize, call: &Call| nth >= CALLS || seen.insert(call.fingerprint());
        let calls: Vec<(usize, bool, Call)> = (0..)
            .zip(calls)
            .map(|(nth, call)| (nth, is_fresh(nth, &call), call))
            .collect();
        let one = |(nth, is_fresh, call): (usize, bool, Call)| async move {
            if nth >= CALLS {
                return (call, format!("At most {CALLS} calls in one turn."));
            }
            if !is_fresh {
                let known = "You have asked this before; the answer stands above.";
                return (call, known.to_owned());
            }
            let text = tools.execute(&call).await.unwrap_or_default();
            match &call.action {
                Ok(AskAction::Look(_)) => caller.steps.add(looked(READER, &call, &text)),
                Ok(AskAction::Question(_)) => {}
                Err(error) => caller.trouble(READER, error.clone()),
            }
            (call, text)
        };
        let results = join_all(calls.into_iter().map(one)).await;
        ToolCallsOutcome { results, end: None }
    }

    fn left_out(&mut self) {
        self.seen.clear();
        self.exploring.caller.left_out(READER);
    }
}

/// Parses the model's corrections, one per line: `1: the claim with its citation`, or `1: drop`.
/// Claims that are not listed stay unchanged.
fn read_mended(text: &str, problems: Vec<ClaimToCorrect>) -> Vec<(ClaimToCorrect, Option<String>)> {
    let mut mended = Vec::new();
    for (nth, problem) in (1_usize..).zip(problems) {
        let line = text.lines().find_map(|line| {
            let line = line.trim().trim_start_matches(['-', '*', ' ']);
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = line.split_at(digits);
            let rest = rest.strip_prefix([':', '.', ')'])?;
            (number.parse() == Ok(nth)).then(|| rest.trim())
        });
        match line {
            Some(line) if line.trim_matches(['`', '.']).eq_ignore_ascii_case("drop") => {
                mended.push((problem, None));
            }
            Some(line) if !line.is_empty() => mended.push((problem, Some(line.to_owned()))),
            Some(_) | None => {}
        }
    }
    mended
}
