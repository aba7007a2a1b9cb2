//! Gets answers from another process on this machine over a Unix socket: the request is one line of
//! JSON, the reply another. A training environment uses this to serve its policy as a model.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::path::PathBuf;

use async_trait::async_trait;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use super::usage::credible;
use starling_core::{
    ChatModel, ChatReply, ChatRequest, ChatWatch, ModelError, ModelProfile, Tokens, WorstCase,
};
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

/// Maximum length of a reply in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// A model that another process serves on a Unix socket.
pub struct SocketModel {
    profile: ModelProfile,
    path: PathBuf,
}

impl SocketModel {
    pub fn new(profile: ModelProfile, path: PathBuf) -> Self {
        SocketModel { profile, path }
    }

    async fn asked(&self, request: &ChatRequest) -> std::io::Result<String> {
        let mut stream = system::connect(&self.path).await?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = String::new();
        let mut reader = BufReader::new(stream.take(MOST_BYTES));
        reader.read_line(&mut answer).await?;
        Ok(answer)
    }
}

#[async_trait]
impl ChatModel for SocketModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        _watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let model = || self.profile.name.clone();
        let answer = self.asked(request).await;
        let answer = answer.map_err(|error| ModelError::Transport {
            model: model(),
            message: format!("{}: {error}", self.path.display()),
        })?;
        let mut reply: ChatReply =
            serde_json::from_str(&answer).map_err(|error| ModelError::Malformed {
                model: model(),
                message: error.to_string(),
            })?;
        let worst = WorstCase::of(request, &self.profile);
        let calls = reply.tool_calls.iter();
        let received =
            Tokens::at_most(&reply.text) + calls.map(|call| Tokens::at_most(&call.arguments)).sum();
        reply.usage = credible(Some(reply.usage), &worst, received);
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::{NoWatch, Price, ToolCalling};
    use tokio::net::UnixListener;

    fn request() -> ChatRequest {
        ChatRequest {
            conversation: "scout".into(),
            messages: Vec::new(),
            tools: Vec::new(),
            max_output: Tokens(10),
            temperature: 0.0,
            top_p: None,
            seed: None,
            beginning: String::new(),
            following: String::new(),
            stop: Vec::new(),
            format: starling_core::AnswerFormat::Free,
        }
    }

    #[tokio::test]
    async fn socket_model_exchanges_one_json_line_per_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let profile = ModelProfile {
            name: "policy".into(),
            context_window: Tokens(1000),
            max_output: Tokens(100),
            tool_calling: ToolCalling::Native,
            replayed: false,
            price: Some(Price::FREE),
        };
        let model = SocketModel::new(profile, path.clone());
        let away = model.chat(&request(), &NoWatch).await.unwrap_err();
        assert!(matches!(away, ModelError::Transport { .. }), "{away}");
        let listener = UnixListener::bind(&path).unwrap();
        let answer = async {
            for reply in [
                r#"{"model":"p","text":"T","tool_calls":[],"finish":"stop","usage":{"prompt":1,"cached":0,"output":1},"cost":0.0,"calls":1}"#,
                "nonsense",
            ] {
                let (stream, _) = listener.accept().await.unwrap();
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                stream.read_line(&mut line).await.unwrap();
                let asked: ChatRequest = serde_json::from_str(&line).unwrap();
                assert_eq!(asked, request());
                stream
                    .write_all(format!("{reply}\n").as_bytes())
                    .await
                    .unwrap();
            }
        };
        let ask = async {
            let reply = model.chat(&request(), &NoWatch).await.unwrap();
            assert_eq!(reply.text, "T");
            let broken = model.chat(&request(), &NoWatch).await.unwrap_err();
            assert!(matches!(broken, ModelError::Malformed { .. }), "{broken}");
        };
        tokio::join!(answer, ask);
    }
}
