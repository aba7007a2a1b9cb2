//! A recorded session, as `tests/traffic/record` writes it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// An action of the client, or a condition that must hold before its next action.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// The client sends this message.
    Send { send: Value },
    /// The server has answered the request with this id.
    Answered { answered: Value },
    /// The server has sent a request with this method, which the client answers.
    Asked { asked: String, answer: Value },
    /// The server has reported this event of a run.
    Event { event: String },
}

/// The first line of a recording: the files of the project and the model's replies.
#[derive(Debug, Deserialize)]
struct RecordingStart {
    files: BTreeMap<String, String>,
    model: Vec<Value>,
}

/// The recorded traffic of an LSP client.
pub struct Recording {
    pub files: BTreeMap<String, String>,
    pub model: Vec<Value>,
    /// The steps up to the shutdown, which the test performs itself.
    pub steps: Vec<Step>,
}

impl Recording {
    /// Reads the recording of a client for the project at `root`.
    pub fn read(client: &str, root: &Path) -> Recording {
        let path = format!("fixtures/traffic/{client}.jsonl");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let text = text.replace("$ROOT", root.to_str().unwrap());
        let (first, rest) = text.split_once('\n').unwrap();
        let RecordingStart { files, model } = serde_json::from_str(first).unwrap();
        let steps = rest.lines().map(|line| serde_json::from_str(line).unwrap());
        let is_leave =
            |step: &Step| matches!(step, Step::Send { send } if send["method"] == "shutdown");
        let steps = steps.take_while(|step| !is_leave(step)).collect();
        Recording {
            files,
            model,
            steps,
        }
    }

    /// Returns the parameters of the client's `initialize` request.
    pub fn hello(&mut self) -> &mut Value {
        let hello = self.steps.iter_mut().find_map(|step| match step {
            Step::Send { send } if send["method"] == "initialize" => Some(&mut send["params"]),
            Step::Send { .. } | Step::Answered { .. } | Step::Asked { .. } | Step::Event { .. } => {
                None
            }
        });
        hello.unwrap()
    }
}
