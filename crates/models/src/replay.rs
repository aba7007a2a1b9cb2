//! Replays the answers of a recorded trajectory, in order for each conversation.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use serde::Deserialize;

use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, Exchange, FILLING, ModelError, ModelProfile,
};
use starling_workspace::read_given;

/// Maximum size of a trajectory in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// A model that returns recorded answers.
pub struct Replay {
    profile: ModelProfile,
    replies: HashMap<(String, u32), Result<ChatReply, ModelError>>,
    next: Mutex<HashMap<String, u32>>,
}

/// The fields of a trajectory line that a replay needs.
#[derive(Deserialize)]
struct RecordedLine {
    exchange: Option<Exchange>,
}

impl Replay {
    /// Reads a trajectory file.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] if the file cannot be read or is not a trajectory.
    pub fn open(profile: ModelProfile, path: &Path) -> Result<Self, ModelError> {
        let wrong =
            |error: &dyn Display| unavailable(&profile, format!("{}: {error}", path.display()));
        let bytes = read_given(path, MAX_BYTES).map_err(|error| wrong(&error))?;
        let text = String::from_utf8(bytes).map_err(|error| wrong(&error))?;
        Replay::parse(profile, &text)
    }

    /// Parses the text of a trajectory.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] if a line cannot be parsed, no line contains an exchange, or two
    /// lines contain the same one.
    pub fn parse(profile: ModelProfile, text: &str) -> Result<Self, ModelError> {
        let mut replies = HashMap::new();
        let mut capability = None;
        let lines: Vec<&str> = text.lines().collect();
        for (index, line) in lines
            .iter()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let exchange = match serde_json::from_str::<RecordedLine>(line) {
                Ok(line) => line.exchange,
                // The last line can be incomplete if its writer was killed.
                Err(error) if error.is_eof() && index + 1 == lines.len() => None,
                Err(error) => {
                    let message = format!("line {} of the trajectory: {error}", index + 1);
                    return Err(unavailable(&profile, message));
                }
            };
            let Some(exchange) = exchange else { continue };
            let key = (exchange.conversation, exchange.ordinal);
            if replies.contains_key(&key) {
                let message = format!(
                    "line {} of the trajectory: {:?} has its answer {} twice; replay one run at a time",
                    index + 1,
                    key.0,
                    key.1
                );
                return Err(unavailable(&profile, message));
            }
            capability = capability.or(exchange.capability);
            replies.insert(key, exchange.reply);
        }
        if replies.is_empty() {
            let message = "the trajectory holds no exchange with a model".to_owned();
            return Err(unavailable(&profile, message));
        }
        let (tool_calling, context_window) =
            capability.unwrap_or((profile.tool_calling, profile.context_window));
        Ok(Replay {
            profile: ModelProfile {
                tool_calling,
                context_window,
                replayed: true,
                ..profile
            },
            replies,
            next: Mutex::default(),
        })
    }

    fn take_ordinal(&self, conversation: &str) -> u32 {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let ordinal = next.entry(conversation.to_owned()).or_default();
        *ordinal += 1;
        *ordinal - 1
    }
}

fn unavailable(profile: &ModelProfile, message: String) -> ModelError {
    ModelError::Unavailable {
        model: profile.name.clone(),
        message,
    }
}

#[async_trait]
impl ChatModel for Replay {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    /// Returns whether the recorded model filled holes.
    fn fills(&self) -> bool {
        let mut conversations = self.replies.keys().map(|(conversation, _)| conversation);
        conversations.any(|conversation| conversation.starts_with(FILLING))
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let ordinal = self.take_ordinal(&request.conversation);
        let key = (request.conversation.clone(), ordinal);
        let reply = self.replies.get(&key).cloned().unwrap_or_else(|| {
            let message = format!(
                "the recording has no answer {ordinal} of {:?}: this run differs from the recorded one",
                request.conversation
            );
            Err(unavailable(&self.profile, message))
        })?;
        watch.delta(&reply.text);
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{profile, reply, request};
    use starling_core::{Finish, NoWatch, Role};

    fn line(conversation: &str, ordinal: u32, reply: Result<ChatReply, ModelError>) -> String {
        let exchange = Exchange {
            conversation: conversation.to_owned(),
            role: Role::Agent,
            ordinal,
            prompt: Vec::new(),
            tools: Vec::new(),
            capability: None,
            reply,
            millis: 5,
        };
        format!("{}\n", serde_json::json!({ "exchange": exchange }))
    }

    fn said(text: &str) -> Result<ChatReply, ModelError> {
        Ok(reply("original", text, Finish::Stop))
    }

    async fn ask(replay: &Replay, conversation: &str) -> Result<String, ModelError> {
        let mut request = request();
        request.conversation = conversation.to_owned();
        let reply = replay.chat(&request, &NoWatch).await?;
        assert_eq!(reply.model, "original");
        Ok(reply.text)
    }

    #[tokio::test]
    async fn replay_returns_the_answers_of_each_conversation_in_order() {
        let trajectory = [
            "{\"event\": {\"kind\": \"started\"}}\n".to_owned(),
            line("b", 0, said("b0")),
            line("a", 1, said("a1")),
            "\n{\"summary\": 3}\n".to_owned(),
            line("a", 0, said("a0")),
            line(
                "a",
                2,
                Err(ModelError::Malformed {
                    model: "original".to_owned(),
                    message: "odd".to_owned(),
                }),
            ),
            "{\"exchange\": {\"conversation\": \"a\", \"ord".to_owned(),
        ]
        .concat();
        let replay = Replay::parse(profile("r"), &trajectory).unwrap();
        assert!(replay.profile().replayed);
        assert_eq!(ask(&replay, "a").await.unwrap(), "a0");
        assert_eq!(ask(&replay, "b").await.unwrap(), "b0");
        assert_eq!(ask(&replay, "a").await.unwrap(), "a1");
        let recorded = ask(&replay, "a").await.unwrap_err();
        assert!(
            matches!(recorded, ModelError::Malformed { .. }),
            "{recorded}"
        );
        let ended = ask(&replay, "a").await.unwrap_err();
        assert!(
            ended.to_string().contains("no answer 3 of \"a\""),
            "{ended}"
        );
        assert!(matches!(
            ask(&replay, "c").await,
            Err(ModelError::Unavailable { .. })
        ));
    }

    #[test]
    fn replay_rejects_an_invalid_trajectory_with_the_line_number() {
        let message = |text: &str| match Replay::parse(profile("r"), text) {
            Ok(_) => panic!("read {text:?}"),
            Err(error) => error.to_string(),
        };
        assert!(message("").contains("no exchange"));
        assert!(message("{}\nnot json\n{}\n").contains("line 2"));
        let twice = line("a", 0, said("x")).repeat(2);
        assert!(message(&twice).contains("line 2"));
        let missing = Replay::open(profile("r"), Path::new("/no/such/file"));
        assert!(matches!(missing, Err(ModelError::Unavailable { .. })));
    }
}
