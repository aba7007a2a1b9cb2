//! The events of a model call that another process answers.

use serde::{Deserialize, Serialize};

use super::model::{ChatReply, ModelError, ModelNotice};

/// The path at which a server of local models takes a [`super::ChatRequest`] as JSON. It answers
/// with one [`CallEvent`] a line, as JSON.
pub const CALL_PATH: &str = "/starling/call";

/// An event of a model call. [`CallEvent::Done`] is the last one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEvent {
    /// The model begins with the request.
    Started,
    /// A piece of the streamed answer.
    Delta(String),
    Notice(ModelNotice),
    Done(Box<Result<ChatReply, ModelError>>),
}
