//! Events of a model call that another process answers.

use serde::{Deserialize, Serialize};

use super::model::{ChatReply, ModelError, ModelNotice};

/// URL path of a local model server for calls from other Starling processes. The request body is a
/// [`super::ChatRequest`] as JSON. The response body contains one [`CallEvent`] per line, as JSON.
pub const CALL_PATH: &str = "/starling/call";

/// An event of a model call. The last event is [`CallEvent::Done`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallEvent {
    /// The model begins to process the request.
    Started,
    /// A piece of the streamed answer.
    Delta(String),
    Notice(ModelNotice),
    Done(Box<Result<ChatReply, ModelError>>),
}
