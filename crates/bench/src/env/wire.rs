//! The messages of the protocol with a trainer.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::export::chat;
use crate::grade::Grade;
use crate::run::Finished;
use starling_core::{ChatReply, ChatRequest, Dollars, Finish, Tokens, ToolCall, Usage};

/// A request of a trainer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum TrainerRequest {
    /// Lists the ids of all instances.
    Instances {},
    /// Starts an episode of this instance, or of the next one.
    Reset {
        #[serde(default)]
        instance_id: Option<String>,
    },
    Step {
        action: Action,
    },
    Close,
}

/// An assistant message in the OpenAI format.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Action {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
}

/// A tool call in the OpenAI format.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

/// The function name and arguments of a tool call in the OpenAI format.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Function {
    name: String,
    /// The arguments as a JSON string, as in the OpenAI format, or as a JSON value.
    #[serde(default)]
    arguments: Value,
}

impl Action {
    /// Converts the action to a model reply.
    pub(super) fn reply(self) -> Result<ChatReply, String> {
        let text = self.content.unwrap_or_default();
        let calls = self.tool_calls.unwrap_or_default();
        if text.is_empty() && calls.is_empty() {
            return Err("an action needs either content or tool_calls".into());
        }
        let tool_calls: Vec<ToolCall> = calls.into_iter().enumerate().map(call).collect();
        let said = tool_calls
            .iter()
            .map(|call| Tokens::estimate(&call.arguments));
        let output = Tokens::estimate(&text) + said.sum();
        Ok(ChatReply {
            model: "policy".into(),
            finish: match tool_calls.is_empty() {
                true => Finish::Stop,
                false => Finish::ToolCalls,
            },
            text,
            tool_calls,
            usage: Usage {
                output,
                ..Usage::default()
            },
            cost: Dollars(0.0),
            calls: 1,
        })
    }
}

fn call((at, call): (usize, Call)) -> ToolCall {
    ToolCall {
        id: call.id.unwrap_or_else(|| format!("call_{at}")),
        name: call.function.name,
        arguments: match call.function.arguments {
            Value::String(text) => text,
            Value::Null => "{}".into(),
            given => given.to_string(),
        },
    }
}

/// A response to the trainer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub(super) struct TrainerResponse(Value);

impl TrainerResponse {
    /// The request failed and changed nothing.
    pub(super) fn error(why: impl Into<String>) -> Self {
        TrainerResponse(json!({"error": why.into()}))
    }

    pub(super) fn instances(ids: Vec<String>) -> Self {
        TrainerResponse(json!({"instances": ids}))
    }

    pub(super) fn closed() -> Self {
        TrainerResponse(json!({"closed": true}))
    }

    /// The policy must answer a model request.
    pub(super) fn asked(id: &str, request: &ChatRequest) -> Self {
        let observation = json!({
            "conversation": request.conversation,
            "messages": chat::messages(&request.messages),
            "tools": chat::specs(&request.tools),
            "max_output": request.max_output,
        });
        TrainerResponse(json!({
            "observation": observation, "reward": 0.0, "done": false, "info": {"instance_id": id},
        }))
    }

    /// The run finished and was graded.
    pub(super) fn finished(id: &str, finished: &Finished, grade: &Grade) -> Self {
        let (word, why) = match grade {
            Grade::Resolved => ("resolved", None),
            Grade::Unresolved(why) => ("unresolved", Some(why)),
            Grade::Error(why) => ("error", Some(why)),
        };
        let reward = match grade {
            Grade::Resolved => 1.0,
            Grade::Unresolved(_) | Grade::Error(_) => 0.0,
        };
        TrainerResponse(json!({
            "observation": null, "reward": reward, "done": true,
            "info": {
                "instance_id": id, "grade": word, "why": why, "patch": finished.patch,
                "stop_reason": finished.stop_reason, "spent": finished.spent,
            },
        }))
    }

    /// The run did not finish.
    pub(super) fn failed(id: &str, why: &str) -> Self {
        TrainerResponse(json!({
            "observation": null, "reward": 0.0, "done": true,
            "info": {"instance_id": id, "grade": "error", "why": why},
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reply(action: &str) -> Result<ChatReply, String> {
        let line = format!(r#"{{"op":"step","action":{action}}}"#);
        match serde_json::from_str(&line).map_err(|error| error.to_string())? {
            TrainerRequest::Step { action } => action.reply(),
            TrainerRequest::Instances {} | TrainerRequest::Reset { .. } | TrainerRequest::Close => {
                panic!("{line}")
            }
        }
    }

    #[test]
    fn trainer_action_is_parsed_as_an_assistant_message() {
        let said = reply(r#"{"role":"assistant","content":"ACCEPT"}"#).unwrap();
        assert_eq!((said.text.as_str(), said.finish), ("ACCEPT", Finish::Stop));
        let called = reply(
            r#"{"content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"read","arguments":"{\"a\":1}"}},{"function":{"name":"finish","arguments":{"b":2}}}]}"#,
        )
        .unwrap();
        let told = |call: &ToolCall| format!("{} {} {}", call.id, call.name, call.arguments);
        let calls: Vec<String> = called.tool_calls.iter().map(told).collect();
        assert_eq!(calls, [r#"x read {"a":1}"#, r#"call_1 finish {"b":2}"#]);
        assert_eq!(called.finish, Finish::ToolCalls);
    }

    #[test]
    fn invalid_trainer_action_is_an_error() {
        assert!(reply("{}").unwrap_err().contains("content or tool_calls"));
        assert!(reply("7").is_err());
        assert!(reply(r#"{"tool_calls":[{}]}"#).is_err());
        assert!(serde_json::from_str::<TrainerRequest>(r#"{"op":"dance"}"#).is_err());
        assert!(serde_json::from_str::<TrainerRequest>(r#"{"op":"reset","seed":1}"#).is_err());
    }
}
