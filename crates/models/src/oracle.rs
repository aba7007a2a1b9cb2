//! A stand-in for a model that proposes a known change. It tests the path from a task to a graded
//! patch without a model; its results say nothing about any model.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Dollars, Finish, Message, ModelError,
    ModelProfile, ToolCall, Usage,
};
use starling_workspace::read_given;

/// Maximum size of a list of changes in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum number of proposals of one part. A rejected part is proposed again, as a model would do.
const TRIES: u32 = 6;
/// The last words of the answer to a proposal that was applied.
const APPLIED: &str = "was accepted and applied.";

/// The model name that is shown for the oracle.
const NAME: &str = "oracle (answers are made of the known change)";

/// One part of the known change, for one owner (the agent of a symbol). The parts of one owner are
/// in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownChange {
    /// Symbol path of the owner.
    pub symbol: String,
    /// The arguments of the `propose` tool, without a reason.
    pub propose: Value,
}

/// A stand-in for a model that answers from a known change.
pub struct Oracle {
    profile: ModelProfile,
    changes: Vec<KnownChange>,
    /// The progress of each conversation, by conversation name.
    progress: Mutex<HashMap<String, OwnerProgress>>,
}

/// The progress of an owner through its parts.
#[derive(Debug, Clone, Copy, Default)]
struct OwnerProgress {
    /// Index of the current part.
    part: usize,
    /// How many times the current part was proposed.
    tries: u32,
}

impl Oracle {
    /// Reads a JSON list of [`KnownChange`]s.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] if the file cannot be read or parsed.
    pub fn open(profile: ModelProfile, path: &Path) -> Result<Self, ModelError> {
        let unavailable = |message: String| ModelError::Unavailable {
            model: profile.name.clone(),
            message: format!("{}: {message}", path.display()),
        };
        let bytes = read_given(path, MAX_BYTES).map_err(|error| unavailable(error.to_string()))?;
        let changes =
            serde_json::from_slice(&bytes).map_err(|error| unavailable(error.to_string()))?;
        Ok(Oracle {
            profile: ModelProfile {
                name: NAME.to_owned(),
                ..profile
            },
            changes,
            progress: Mutex::default(),
        })
    }

    fn answer(&self, request: &ChatRequest) -> OracleAnswer {
        let offers = |name: &str| request.tools.iter().any(|tool| tool.name == name);
        if offers("wake") {
            let picks = json!({ "symbols": self.picks() });
            return OracleAnswer::Call("wake".to_owned(), "wake", picks);
        }
        if !offers("propose") {
            let text = match request.conversation.starts_with("proxy ") {
                true => "ACCEPT",
                false => "The known change does not say.",
            };
            return OracleAnswer::Text(text);
        }
        let owner = request.conversation.strip_prefix("agent ");
        let own = |change: &&KnownChange| owner.is_none_or(|owner| change.symbol == owner);
        let parts: Vec<&KnownChange> = self.changes.iter().filter(own).collect();
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let now = progress.entry(request.conversation.clone()).or_default();
        if now.tries == TRIES || (now.tries > 0 && was_applied(request, now.part)) {
            *now = OwnerProgress {
                part: now.part + 1,
                tries: 0,
            };
        }
        let Some(part) = parts.get(now.part) else {
            let summary = json!({ "summary": "the known change is proposed" });
            return OracleAnswer::Call("finish".to_owned(), "finish", summary);
        };
        now.tries += 1;
        let mut arguments = part.propose.clone();
        arguments["reason"] = "the known change".into();
        // The known change is intentional, even if it breaks tests that the known solution changes
        // as well.
        arguments["intended_losses"] = true.into();
        arguments["insist"] = true.into();
        arguments["more"] = (now.part + 1 < parts.len()).into();
        if owner.is_none() && arguments.get("add").is_none() {
            arguments["symbol"] = part.symbol.clone().into();
        }
        OracleAnswer::Call(call_id(now.part), "propose", arguments)
    }

    /// Returns the arguments that select each owner once.
    fn picks(&self) -> Vec<Value> {
        let mut owners: Vec<&str> = Vec::new();
        for change in &self.changes {
            if !owners.contains(&change.symbol.as_str()) {
                owners.push(&change.symbol);
            }
        }
        let pick = |symbol: &str| json!({"symbol": symbol, "why": "the known change is there"});
        owners.into_iter().map(pick).collect()
    }
}

/// The oracle's answer to one request.
enum OracleAnswer {
    Text(&'static str),
    /// A tool call: id, tool name and arguments.
    Call(String, &'static str, Value),
}

fn call_id(part: usize) -> String {
    format!("part {part}")
}

/// Whether the last tool result for a part says that the part was applied.
fn was_applied(request: &ChatRequest, part: usize) -> bool {
    let wanted = call_id(part);
    let answer = request
        .messages
        .iter()
        .rev()
        .find_map(|message| match message {
            Message::Tool { call_id, text } if *call_id == wanted => Some(text),
            Message::Tool { .. }
            | Message::System { .. }
            | Message::User { .. }
            | Message::Assistant { .. } => None,
        });
    answer.is_some_and(|text| text.contains(APPLIED))
}

#[async_trait]
impl ChatModel for Oracle {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        _watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let (text, tool_calls, finish) = match self.answer(request) {
            OracleAnswer::Text(text) => (text.to_owned(), Vec::new(), Finish::Stop),
            OracleAnswer::Call(id, name, arguments) => {
                let call = ToolCall {
                    id,
                    name: name.to_owned(),
                    arguments: arguments.to_string(),
                };
                (String::new(), vec![call], Finish::ToolCalls)
            }
        };
        Ok(ChatReply {
            model: self.profile.name.clone(),
            text,
            tool_calls,
            finish,
            usage: Usage::default(),
            cost: Dollars(0.0),
            calls: 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{profile, request};
    use starling_core::{NoWatch, ToolSpec};

    fn oracle() -> Oracle {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("known.json");
        let changes = json!([
            {"symbol": "a.py::f", "propose": {"source": "def f(): 1"}},
            {"symbol": "a.py::g", "propose": {"source": "def g(): 2"}},
            {"symbol": "a.py::f", "propose": {"add": [{"source": "def h(): 3"}]}},
        ]);
        std::fs::write(&path, changes.to_string()).unwrap();
        Oracle::open(profile("oracle:known.json"), &path).unwrap()
    }

    async fn ask(oracle: &Oracle, conversation: &str, tools: &[&str]) -> ChatReply {
        told(oracle, conversation, tools, &[]).await
    }

    /// Requests the next answer after these tool results.
    async fn told(
        oracle: &Oracle,
        conversation: &str,
        tools: &[&str],
        answers: &[(usize, &str)],
    ) -> ChatReply {
        let tool = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: String::new(),
            parameters: Value::Null,
        };
        let answer = |(part, text): &(usize, &str)| Message::Tool {
            call_id: call_id(*part),
            text: (*text).to_owned(),
        };
        let request = ChatRequest {
            conversation: conversation.to_owned(),
            messages: answers.iter().map(answer).collect(),
            tools: tools.iter().map(tool).collect(),
            ..request()
        };
        oracle.chat(&request, &NoWatch).await.unwrap()
    }

    fn call(reply: &ChatReply) -> (&str, Value) {
        let [call] = &reply.tool_calls[..] else {
            panic!("{reply:?}");
        };
        (&call.name, serde_json::from_str(&call.arguments).unwrap())
    }

    #[tokio::test]
    async fn oracle_proposes_the_parts_of_each_owner_in_order() {
        let oracle = oracle();
        let reply = ask(&oracle, "scout", &["read", "wake"]).await;
        assert!(reply.model.contains("known change"));
        let (name, arguments) = call(&reply);
        assert_eq!(name, "wake");
        let picks = arguments["symbols"].as_array().unwrap();
        let names: Vec<_> = picks.iter().map(|pick| &pick["symbol"]).collect();
        assert_eq!(names, ["a.py::f", "a.py::g"]);
        let tools = ["propose", "finish"];
        let first = ask(&oracle, "agent a.py::f", &tools).await;
        let (_, arguments) = call(&first);
        assert_eq!(
            (&arguments["source"], &arguments["more"]),
            (&"def f(): 1".into(), &true.into())
        );
        assert!(arguments.get("symbol").is_none());
        let done = [(0, "Proposal #1 was accepted and applied.")];
        let second = told(&oracle, "agent a.py::f", &tools, &done).await;
        let (_, arguments) = call(&second);
        assert_eq!(
            (&arguments["add"][0]["source"], &arguments["more"]),
            (&"def h(): 3".into(), &false.into())
        );
        let done = [done[0], (1, "Proposal #2 was accepted and applied. More.")];
        let third = told(&oracle, "agent a.py::f", &tools, &done).await;
        assert_eq!(call(&third).0, "finish");
        assert_eq!(
            call(&ask(&oracle, "agent b.py::x", &tools).await).0,
            "finish"
        );
    }

    #[tokio::test]
    async fn oracle_names_symbols_for_a_single_agent_and_accepts_as_proxy() {
        let oracle = oracle();
        let tools = ["propose", "finish"];
        let mut symbols = Vec::new();
        let applied = [0, 1].map(|part| (part, APPLIED));
        for done in 0..3 {
            let reply = told(&oracle, "solo", &tools, &applied[..done]).await;
            symbols.push(call(&reply).1.get("symbol").cloned());
        }
        assert_eq!(
            symbols,
            [Some("a.py::f".into()), Some("a.py::g".into()), None]
        );
        assert_eq!(ask(&oracle, "proxy a.py::f", &[]).await.text, "ACCEPT");
        assert!(
            ask(&oracle, "answer a.py::f to a.py::g: why?", &[])
                .await
                .text
                .contains("does not say")
        );
    }

    #[tokio::test]
    async fn oracle_retries_a_rejected_part_a_limited_number_of_times() {
        let oracle = oracle();
        let tools = ["propose", "finish"];
        let back = [(0, "The user changed the same place meanwhile.")];
        for _ in 0..TRIES {
            let reply = told(&oracle, "agent a.py::f", &tools, &back).await;
            assert_eq!(call(&reply).1["source"], "def f(): 1");
        }
        let next = told(&oracle, "agent a.py::f", &tools, &back).await;
        assert!(call(&next).1["add"].is_array());
        // An agent whose part was applied has nothing to add when it is woken again.
        let done = [(1, APPLIED)];
        for _ in 0..2 {
            let last = told(&oracle, "agent a.py::f", &tools, &done).await;
            assert_eq!(call(&last).0, "finish");
        }
    }

    #[test]
    fn oracle_rejects_a_missing_change_file() {
        let missing = Oracle::open(profile("oracle:x"), Path::new("/no/such/file"));
        assert!(matches!(missing, Err(ModelError::Unavailable { .. })));
    }
}
