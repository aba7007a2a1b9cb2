//! A model with scripted replies.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;

use starling_core::*;

/// One reply in the script of a [`Scripted`] model.
#[derive(Clone)]
pub enum Line {
    /// A reply with only this text.
    Say(String),
    /// A reply with these tool calls: names and arguments.
    Call(Vec<(String, serde_json::Value)>),
    /// A call with raw arguments, which may be invalid.
    Raw(String, String),
    /// A call with `{n}` in its arguments replaced by the number of the call.
    Numbered(String, String),
    /// The call fails with this error.
    Fail(ModelError),
    /// The call never returns.
    Hang,
}

/// Returns a reply with only this text.
pub fn say(text: &str) -> Line {
    Line::Say(text.to_owned())
}

/// Returns a reply with one tool call.
pub fn call(tool: &str, arguments: serde_json::Value) -> Line {
    Line::Call(vec![(tool.to_owned(), arguments)])
}

/// Returns a reply that proposes this source for the agent's symbol.
pub fn whole(source: &str) -> Line {
    call("propose", json!({"reason": "because", "source": source}))
}

/// Returns a reply of the scout (the agent that picks symbols) that selects these symbols.
pub fn wake(symbols: &[&str]) -> Line {
    let symbols: Vec<_> = symbols
        .iter()
        .map(|symbol| json!({"symbol": symbol, "why": "scripted"}))
        .collect();
    call("wake", json!({ "symbols": symbols }))
}

/// Returns a reply that finishes the agent's work.
pub fn finish(summary: &str) -> Line {
    call("finish", json!({ "summary": summary }))
}

/// Maps the beginning of a conversation's name to its scripted replies: replies that are returned
/// once each, and a reply that is repeated after them.
type Script = HashMap<String, (VecDeque<Line>, Option<Line>)>;

/// A model with scripted replies. Each conversation returns its replies once and in order; with
/// [`Scripted::always`] it repeats one reply.
pub struct Scripted {
    profile: ModelProfile,
    script: Mutex<Script>,
    pub asked: Mutex<Vec<ChatRequest>>,
    pub latency: Duration,
    /// Usage that every reply reports.
    usage: Usage,
    fills: bool,
}

impl Scripted {
    pub fn native() -> Self {
        Self::new(ToolCalling::Native)
    }

    /// Creates a model without native tool calls and with a small context window.
    pub fn small() -> Self {
        let mut small = Self::new(ToolCalling::Text);
        small.profile.context_window = Tokens(8_000);
        small.profile.max_output = Tokens(1_000);
        small
    }

    /// Lets the model fill in single statements (fill-in-the-middle).
    pub fn filling(mut self) -> Self {
        self.fills = true;
        self
    }

    pub fn new(tool_calling: ToolCalling) -> Self {
        let profile = ModelProfile {
            name: "scripted".into(),
            context_window: Tokens(100_000),
            max_output: Tokens(4_000),
            tool_calling,
            replayed: false,
            price: Some(Price::FREE),
        };
        Scripted {
            profile,
            script: Mutex::default(),
            asked: Mutex::default(),
            latency: Duration::ZERO,
            usage: Usage {
                prompt: Tokens(100),
                cached: Tokens(0),
                output: Tokens(10),
            },
            fills: false,
        }
    }

    /// Sets the context window.
    pub fn window(mut self, tokens: u64) -> Self {
        self.profile.context_window = Tokens(tokens);
        self
    }

    pub fn named(mut self, name: &str) -> Self {
        self.profile.name = name.to_owned();
        self
    }

    /// Sets the price, and the usage that every reply reports.
    pub fn priced(mut self, price: Option<Price>, usage: Usage) -> Self {
        self.profile.price = price;
        self.usage = usage;
        self
    }

    /// Sets the replies of the conversations whose names begin with `conversation`.
    pub fn on(self, conversation: &str, lines: impl IntoIterator<Item = Line>) -> Self {
        let lines = lines.into_iter().collect();
        self.script
            .lock()
            .unwrap()
            .insert(conversation.to_owned(), (lines, None));
        self
    }

    /// Repeats the same reply in the conversations whose names begin with `conversation`.
    pub fn always(self, conversation: &str, line: Line) -> Self {
        self.script
            .lock()
            .unwrap()
            .insert(conversation.to_owned(), (VecDeque::new(), Some(line)));
        self
    }

    pub fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Returns the text of all prompts of a conversation, in order.
    pub fn prompts(&self, conversation: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        let of = asked
            .iter()
            .filter(|request| request.conversation.starts_with(conversation));
        of.map(|request| {
            request
                .messages
                .iter()
                .map(Message::text)
                .collect::<Vec<_>>()
                .join("\n")
        })
        .collect()
    }

    fn next(&self, conversation: &str) -> Option<Line> {
        let mut script = self.script.lock().unwrap();
        let key = script
            .keys()
            .filter(|key| conversation.starts_with(*key))
            .max_by_key(|key| key.len())?
            .clone();
        let (lines, last) = script.get_mut(&key)?;
        lines.pop_front().or_else(|| last.clone())
    }
}

#[async_trait]
impl ChatModel for Scripted {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn fills(&self) -> bool {
        self.fills
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        _watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        self.asked.lock().unwrap().push(request.clone());
        tokio::time::sleep(self.latency).await;
        let ordinal = self.calls();
        let mut reply = ChatReply {
            model: "scripted".into(),
            text: String::new(),
            tool_calls: Vec::new(),
            finish: Finish::Stop,
            usage: self.usage,
            cost: (self.profile.price).map_or(Dollars(0.0), |price| price.cost(self.usage)),
            calls: 1,
        };
        let tool_call = |at: usize, name: String, arguments: String| ToolCall {
            id: format!("c{ordinal}-{at}"),
            name,
            arguments,
        };
        match self.next(&request.conversation) {
            None => {
                let message = format!("nothing scripted for {}", request.conversation);
                return Err(ModelError::Unavailable {
                    model: "scripted".into(),
                    message,
                });
            }
            Some(Line::Say(text)) => reply.text = text,
            Some(Line::Call(calls)) => {
                let calls = calls.into_iter().enumerate();
                reply.tool_calls = calls
                    .map(|(at, (name, arguments))| tool_call(at, name, arguments.to_string()))
                    .collect();
            }
            Some(Line::Raw(name, arguments)) => {
                reply.tool_calls = vec![tool_call(0, name, arguments)]
            }
            Some(Line::Numbered(name, arguments)) => {
                reply.tool_calls = vec![tool_call(
                    0,
                    name,
                    arguments.replace("{n}", &ordinal.to_string()),
                )];
            }
            Some(Line::Fail(error)) => return Err(error),
            Some(Line::Hang) => std::future::pending().await,
        }
        Ok(reply)
    }
}
