//! Questions: `starling.ask` and `starling/answer`.

use serde::{Deserialize, Serialize};
use tower_lsp::lsp_types::notification::Notification;

use super::LimitsPatch;
use crate::session::messages::object;
use starling_ask::Answer;
use starling_ask::step::Step;
use starling_syntax::SymbolPath;

/// The identifier of a question in this session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AskId(pub String);

/// Arguments of `starling.ask`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskParams {
    pub question: String,
    /// The symbol that the question is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<SymbolPath>,
    /// A name for a sequence of questions. A later question with the same name uses the results of
    /// the earlier ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The model, as `--model` takes it. Default: the model with which the server was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, deserialize_with = "object")]
    pub limits: LimitsPatch,
}

/// The reply to `starling.ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskReply {
    pub ask: AskId,
}

/// `starling/answer`: the steps of answering a question, then its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerParams {
    pub ask: AskId,
    #[serde(flatten)]
    pub update: AnswerUpdate,
}

/// A step of answering a question, or the end of the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerUpdate {
    Step(Step),
    Answer(Box<Answer>),
    Error(String),
}

/// The notification `starling/answer`, which contains a step of answering a question, or the end of
/// the answer.
#[derive(Debug)]
pub enum AnswerNotification {}
impl Notification for AnswerNotification {
    type Params = AnswerParams;
    const METHOD: &'static str = "starling/answer";
}
