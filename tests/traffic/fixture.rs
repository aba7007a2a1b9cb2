//! A recorded conversation, as `tests/traffic/record` writes it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// What the client does, and what has to be so before it does the next.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Step {
    Send { send: Value },
    Answered { answered: Value },
    Asked { asked: String, answer: Value },
    Event { event: String },
}

#[derive(Debug, Deserialize)]
struct Start {
    files: BTreeMap<String, String>,
    model: Vec<Value>,
}

pub struct Fixture {
    pub files: BTreeMap<String, String>,
    pub model: Vec<Value>,
    /// Up to its leave-taking, which is ours to do.
    pub steps: Vec<Step>,
}

impl Fixture {
    /// The recording of a client, in a folder of ours.
    pub fn read(client: &str, root: &Path) -> Fixture {
        let path = format!("fixtures/traffic/{client}.jsonl");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let text = text.replace("$ROOT", root.to_str().unwrap());
        let (first, rest) = text.split_once('\n').unwrap();
        let Start { files, model } = serde_json::from_str(first).unwrap();
        let steps = rest.lines().map(|line| serde_json::from_str(line).unwrap());
        let is_leave =
            |step: &Step| matches!(step, Step::Send { send } if send["method"] == "shutdown");
        let steps = steps.take_while(|step| !is_leave(step)).collect();
        Fixture {
            files,
            model,
            steps,
        }
    }

    /// The parameters of the client's `initialize`.
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
