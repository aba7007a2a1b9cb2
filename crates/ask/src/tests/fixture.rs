//! Test fixture: a temporary project and a scripted model.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::session::Session;
use crate::step::Step;
use crate::{Answer, AskError, Models, Query, ask};
use starling_core::Limits;
use starling_core::*;
use starling_index::Index;
use starling_workspace::{Snapshot, Workspace};

/// How the scripted model reacts to one request.
#[derive(Clone)]
pub enum ScriptedReaction {
    /// Sends this text in pieces of a few characters.
    Say(String),
    Call(Vec<(String, Value)>),
    Fail(ModelError),
    /// Sends the first text, loses the connection, and sends the second text.
    Stumble(String, String),
    /// Sends this text and then never ends.
    Hang(String),
    Cut(String),
}

pub fn say(text: &str) -> ScriptedReaction {
    ScriptedReaction::Say(text.to_owned())
}

pub fn call(tool: &str, arguments: Value) -> ScriptedReaction {
    ScriptedReaction::Call(vec![(tool.to_owned(), arguments)])
}

pub fn question(symbol: &str, question: &str) -> ScriptedReaction {
    let arguments = json!({"symbol": symbol, "question": question, "why": "it seems so"});
    call("question", arguments)
}

/// A model that follows one script for the reader and one for all owners.
pub struct AskScriptedModel {
    profile: ModelProfile,
    script: Mutex<HashMap<&'static str, VecDeque<ScriptedReaction>>>,
    pub asked: Mutex<Vec<ChatRequest>>,
    pub latency: Duration,
}

impl AskScriptedModel {
    pub fn new(reader: impl IntoIterator<Item = ScriptedReaction>) -> Self {
        let profile = ModelProfile {
            name: "scripted".into(),
            context_window: Tokens(100_000),
            max_output: Tokens(4_000),
            tool_calling: ToolCalling::Native,
            replayed: false,
            price: Some(Price::FREE),
        };
        let script = HashMap::from([("ask", reader.into_iter().collect())]);
        AskScriptedModel {
            profile,
            script: Mutex::new(script),
            asked: Mutex::default(),
            latency: Duration::ZERO,
        }
    }

    pub fn owners(self, lines: impl IntoIterator<Item = ScriptedReaction>) -> Self {
        let lines = lines.into_iter().collect();
        self.script.lock().unwrap().insert("ask owner", lines);
        self
    }

    pub fn text_only(mut self, window: u64) -> Self {
        self.profile.tool_calling = ToolCalling::Text;
        self.profile.context_window = Tokens(window);
        self
    }

    pub fn window(mut self, tokens: u64) -> Self {
        self.profile.context_window = Tokens(tokens);
        self
    }

    pub fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// Returns the messages of the nth request, joined.
    pub fn prompt(&self, nth: usize) -> String {
        let asked = self.asked.lock().unwrap();
        let texts = asked[nth].messages.iter().map(Message::text);
        texts.collect::<Vec<_>>().join("\n")
    }

    pub fn tools(&self, nth: usize) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked[nth]
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect()
    }

    /// Returns the next scripted reaction. The last one repeats.
    fn next(&self, conversation: &str) -> ScriptedReaction {
        let mut script = self.script.lock().unwrap();
        let key = match conversation.starts_with("ask owner") {
            true => "ask owner",
            false => "ask",
        };
        let lines = script.get_mut(key).expect("a script");
        match lines.len() {
            0 | 1 => lines.front().cloned().expect("a line"),
            _ => lines.pop_front().expect("a line"),
        }
    }
}

fn write(text: &str, watch: &dyn ChatWatch) {
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(7) {
        watch.delta(&piece.iter().collect::<String>());
    }
}

#[async_trait]
impl ChatModel for AskScriptedModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        self.asked.lock().unwrap().push(request.clone());
        let ordinal = self.calls();
        tokio::time::sleep(self.latency).await;
        let prompt = request.messages.iter().map(|m| Tokens::estimate(m.text()));
        let mut reply = ChatReply {
            model: "scripted".into(),
            text: String::new(),
            tool_calls: Vec::new(),
            finish: Finish::Stop,
            usage: Usage {
                prompt: prompt.sum(),
                cached: Tokens(0),
                output: Tokens(100),
            },
            cost: Dollars(0.01),
            calls: 1,
        };
        match self.next(&request.conversation) {
            ScriptedReaction::Say(text) => {
                write(&text, watch);
                reply.text = text;
            }
            ScriptedReaction::Call(calls) => {
                for (at, (name, arguments)) in calls.into_iter().enumerate() {
                    reply.tool_calls.push(ToolCall {
                        id: format!("c{ordinal}-{at}"),
                        name,
                        arguments: arguments.to_string(),
                    });
                }
                reply.finish = Finish::ToolCalls;
            }
            ScriptedReaction::Fail(error) => return Err(error),
            ScriptedReaction::Stumble(first, then) => {
                write(&first, watch);
                watch.notice(ModelNotice::Retrying {
                    model: "scripted".into(),
                    attempt: 2,
                    wait_ms: 1,
                    error: "connection lost".into(),
                });
                write(&then, watch);
                reply.text = then;
            }
            ScriptedReaction::Hang(text) => {
                write(&text, watch);
                std::future::pending::<()>().await;
            }
            ScriptedReaction::Cut(text) => {
                reply.text = text;
                reply.finish = Finish::Length;
            }
        }
        Ok(reply)
    }
}

/// A temporary project with a scripted model. Collects the steps of all questions.
pub struct AskTestProject {
    pub dir: tempfile::TempDir,
    pub model: Arc<AskScriptedModel>,
    pub limits: Limits,
    pub said: Arc<Mutex<Vec<Step>>>,
}

pub const SHOP: &str = "RATE = 2


class Cart:
    \"\"\"Goods.\"\"\"

    def total(self):
        return RATE * self.sum


def pay(cart):
    # The till is open.
    return cart.total()
";

impl AskTestProject {
    pub fn new(model: AskScriptedModel) -> AskTestProject {
        AskTestProject::of(
            &[
                ("shop.py", SHOP),
                (
                    "main.py",
                    "from shop import pay\n\n\ndef run(cart):\n    return pay(cart)\n",
                ),
            ],
            model,
        )
    }

    pub fn of(files: &[(&str, &str)], model: AskScriptedModel) -> AskTestProject {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        AskTestProject {
            dir,
            model: Arc::new(model),
            limits: Limits::default(),
            said: Arc::default(),
        }
    }

    pub fn files(&self) -> Snapshot {
        let root = self.dir.path().canonicalize().unwrap();
        Workspace::open(root).unwrap().snapshot(Default::default())
    }

    pub async fn try_ask(
        &self,
        question: &str,
        session: Session,
    ) -> Result<(Answer, Session), AskError> {
        let query = Query {
            text: question.to_owned(),
            limits: self.limits.clone(),
        };
        let models = Models {
            reader: self.model.clone(),
            owner: self.model.clone(),
        };
        let index = Arc::new(Index::new(self.files()));
        let said = Arc::clone(&self.said);
        let watcher = Box::new(move |step: &Step| said.lock().unwrap().push(step.clone()));
        ask(query, index, models, session, watcher).await
    }

    pub async fn ask(&self, question: &str) -> Answer {
        let session = Session::new(&self.files());
        self.try_ask(question, session).await.expect("an answer").0
    }

    /// Returns the text shown since the last restart of the answer.
    pub fn shown(&self) -> String {
        let mut shown = String::new();
        for step in self.said.lock().unwrap().iter() {
            match step {
                Step::Said { text } => shown.push_str(text),
                Step::Restarted => shown.clear(),
                _ => {}
            }
        }
        shown
    }

    /// Returns all files with their texts.
    pub fn tree(&self) -> Vec<(String, String)> {
        let files = self.files();
        let read = |file: &starling_syntax::FilePath| {
            (file.to_string(), files.read(file).unwrap().to_string())
        };
        files.files().iter().map(read).collect()
    }
}

/// Returns the names of the steps.
pub fn names(steps: &[Step]) -> Vec<String> {
    let name = |step: &Step| {
        let json = serde_json::to_value(step).unwrap();
        json["step"].as_str().unwrap().to_owned()
    };
    steps.iter().map(name).collect()
}
