//! Questions: `starling.ask` and `starling/answer`.

use serde::{Deserialize, Serialize};
use tower_lsp::lsp_types::notification::Notification;

use super::LimitsPatch;
use starling_ask::Answer;
use starling_ask::step::Step;
use starling_syntax::SymbolPath;

/// Names a question of this session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AskId(pub String);

/// Arguments of `starling.ask`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskParams {
    pub question: String,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<SymbolPath>,
    /// A later question of the same session knows what was learnt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The model, as `--model` takes it; else the one that the server was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default)]
    pub limits: LimitsPatch,
}

/// The answer to `starling.ask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskReply {
    pub ask: AskId,
}

/// `starling/answer`: what happens while a question is answered, then its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerParams {
    pub ask: AskId,
    #[serde(flatten)]
    pub update: AnswerUpdate,
}

/// One of these is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerUpdate {
    Step(Step),
    Answer(Box<Answer>),
    Error(String),
}

#[derive(Debug)]
pub enum AnswerNotification {}
impl Notification for AnswerNotification {
    type Params = AnswerParams;
    const METHOD: &'static str = "starling/answer";
}
