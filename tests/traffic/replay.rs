//! Replays a recorded client against the real server, and checks all messages of the server.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::buffers::{Buffers, SyncMode, encoding_of};
use super::can::ClientCapabilities;
use super::fixture::{Recording, Step};
use super::wire::Server;

/// A difference from the recorded client.
pub struct ClientVariation {
    pub hello: fn(&mut Value),
    pub sync: SyncMode,
    /// Facts that do not occur for the modified client.
    pub never: &'static [&'static str],
}

pub const AS_RECORDED: ClientVariation = ClientVariation {
    hello: |_| {},
    sync: SyncMode::AsRecorded,
    never: &[],
};

/// Replays the recorded traffic of an LSP client against a server.
pub struct Replay {
    server: Server,
    can: ClientCapabilities,
    buffers: Buffers,
    /// Methods of requests that have no response yet, by id.
    waiting: BTreeMap<String, String>,
    /// Responses by request id.
    answers: BTreeMap<String, Value>,
    /// Recorded replies of the client to the server's requests, by method.
    replies: BTreeMap<String, VecDeque<Value>>,
    /// Ids of requests from the server.
    ids: BTreeSet<String>,
    /// Numbers of events and requests that were received, by name.
    facts: BTreeMap<String, usize>,
    /// Ids of runs, in order.
    runs: Vec<String>,
    /// The last proposal of each owner.
    proposals: BTreeMap<String, Value>,
    outputs: BTreeMap<String, String>,
    finished: BTreeSet<String>,
    /// Number of the last event that was requested, for each run.
    seen: BTreeMap<String, u64>,
    last: u64,
}

impl Replay {
    /// Replays a whole recording and shuts the server down.
    pub fn play(client: &str, twist: &ClientVariation) {
        let bed = tempfile::tempdir().unwrap();
        let bed = bed.path().canonicalize().unwrap();
        let root = bed.join("project");
        let mut fixture = Recording::read(client, &root);
        std::fs::create_dir_all(root.join(".git")).unwrap();
        for (file, text) in &fixture.files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let model: Vec<String> = fixture.model.iter().map(Value::to_string).collect();
        std::fs::write(bed.join("model.jsonl"), model.join("\n")).unwrap();
        let recorded = encoding_of(fixture.hello());
        (twist.hello)(fixture.hello());
        let hello = fixture.hello();
        let agreed = encoding_of(hello);
        let has_root = ["rootUri", "rootPath", "workspaceFolders"]
            .iter()
            .any(|name| !hello[name].is_null());
        let mut replies: BTreeMap<String, VecDeque<Value>> = BTreeMap::new();
        let can = ClientCapabilities(hello["capabilities"].clone());
        for step in &fixture.steps {
            if let Step::Asked { asked, answer } = step {
                replies
                    .entry(asked.clone())
                    .or_default()
                    .push_back(answer.clone());
            }
        }
        let model = format!("replay:{}", bed.join("model.jsonl").display());
        let options = ["--model", &model, "-c", "sandbox.missing=allow"];
        let mut replay = Replay {
            server: Server::start(&bed, &options),
            can,
            buffers: Buffers::new(recorded, agreed, twist.sync),
            waiting: BTreeMap::new(),
            answers: BTreeMap::new(),
            replies,
            ids: BTreeSet::new(),
            facts: BTreeMap::new(),
            runs: Vec::new(),
            proposals: BTreeMap::new(),
            outputs: BTreeMap::new(),
            finished: BTreeSet::new(),
            seen: BTreeMap::new(),
            last: 1_000_000,
        };
        replay.steps(fixture.steps, twist.never);
        if has_root {
            replay.texts_are_equal(&root);
        }
        replay.leave();
    }

    fn steps(&mut self, steps: Vec<Step>, never: &[&str]) {
        let mut due: BTreeMap<String, usize> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Send { send } => self.send(send),
                Step::Answered { answered } => {
                    let id = answered.to_string();
                    self.until(&format!("the answer to {id}"), |me| {
                        me.answers.contains_key(&id)
                    });
                }
                Step::Asked { asked: fact, .. } | Step::Event { event: fact } => {
                    let count = due.entry(fact.clone()).or_default();
                    *count += 1;
                    let count = *count;
                    if !never.contains(&fact.as_str()) {
                        self.until(&format!("{count} {fact}"), |me| {
                            me.facts.get(&fact).copied().unwrap_or_default() >= count
                        });
                    }
                }
            }
        }
    }

    fn send(&mut self, mut message: Value) {
        self.buffers.carry(&mut message);
        for (number, run) in self.runs.iter().enumerate() {
            let text = message.to_string().replace(&format!("$RUN{number}"), run);
            message = serde_json::from_str(&text).unwrap();
        }
        self.number_proposals(&mut message);
        if let Some(id) = message.get("id") {
            let method = message["method"].as_str().unwrap().to_owned();
            self.waiting.insert(id.to_string(), method);
        }
        self.server.send(message);
    }

    /// Replaces owners by proposal numbers. Recordings name proposals by their owners, because the
    /// order of proposals is random.
    fn number_proposals(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(symbol) = text.strip_prefix("$PROPOSAL ") {
                    *value = self.proposals.get(symbol).cloned().unwrap_or(json!(0));
                }
            }
            Value::Object(object) => object
                .values_mut()
                .for_each(|inner| self.number_proposals(inner)),
            Value::Array(all) => all
                .iter_mut()
                .for_each(|inner| self.number_proposals(inner)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Processes messages of the server until a condition holds.
    fn until(&mut self, what: &str, so: impl Fn(&Replay) -> bool) {
        while !so(self) {
            if !self.can.has_plugin() {
                self.ask_for_events();
                continue;
            }
            let Some(message) = self.server.next(what) else {
                panic!("the server ended before {what}");
            };
            self.take(message);
        }
    }

    /// Requests events. They are not sent to a client without a plugin, but any client can request
    /// them.
    fn ask_for_events(&mut self) {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let mut runs: Vec<Option<String>> = self.runs.iter().cloned().map(Some).collect();
        // Without a run, any response shows that the server has processed the messages before it.
        if runs.is_empty() {
            runs.push(None);
        }
        for run in runs {
            self.last += 1;
            let id = json!(self.last);
            let method = run.as_ref().map_or("starling/state", |_| "starling/events");
            let params = run
                .as_ref()
                .map(|run| json!({"run": run, "after": self.seen.get(run)}));
            self.send(json!({"id": id, "method": method, "params": params}));
            let id = id.to_string();
            while !self.answers.contains_key(&id) {
                let message = self.server.next(method).expect("the server ended");
                self.take(message);
            }
            let events = self.answers[&id]["result"]["events"].clone();
            for event in events.as_array().into_iter().flatten() {
                self.happened(event);
                let run = event["run"].as_str().unwrap().to_owned();
                self.seen.insert(run, event["seq"].as_u64().unwrap());
            }
        }
    }

    fn take(&mut self, message: Value) {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => self.asked(method, id, &message["params"]),
            (Some(method), None) => self.told(method, &message["params"]),
            (None, id) => self.answered(&id.expect("an id").to_string(), message.clone()),
        }
    }

    fn asked(&mut self, method: &str, id: &Value, params: &Value) {
        assert!(self.ids.insert(id.to_string()), "two requests with id {id}");
        self.can.asked(method, params);
        for change in params["edit"]["documentChanges"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let document = &change["textDocument"];
            let known = document["uri"]
                .as_str()
                .and_then(|uri| self.buffers.version(uri));
            let version = document["version"].as_i64();
            assert!(
                version.is_none_or(|version| Some(version) <= known),
                "an edit of the future: {change}"
            );
        }
        let answer = self.replies.get_mut(method).and_then(VecDeque::pop_front);
        let mut reply = answer
            .filter(Value::is_object)
            .unwrap_or_else(|| json!({ "result": null }));
        reply["id"] = id.clone();
        self.server.send(reply);
        *self.facts.entry(method.to_owned()).or_default() += 1;
    }

    fn told(&mut self, method: &str, params: &Value) {
        let known = [
            "starling/",
            "$/progress",
            "window/showMessage",
            "window/logMessage",
            "$/logTrace",
        ];
        assert!(
            known.iter().any(|known| method.starts_with(known)),
            "{method}"
        );
        assert!(
            self.can.has_plugin() || !method.starts_with("starling/"),
            "the client has no plugin: {method}"
        );
        if method == "$/progress" {
            assert!(
                params["token"].is_string() && params["value"]["kind"].is_string(),
                "{params}"
            );
        }
        if method == "starling/intent" {
            *self.facts.entry("intent".to_owned()).or_default() += 1;
        }
        if method == "starling/event" {
            self.happened(params);
        }
    }

    /// Processes an event of a run.
    fn happened(&mut self, params: &Value) {
        let (run, event) = (params["run"].as_str().unwrap(), &params["event"]);
        let name = event["event"].as_str().unwrap();
        *self.facts.entry(name.to_owned()).or_default() += 1;
        match name {
            "run_finished" => drop(self.finished.insert(run.to_owned())),
            "proposal_made" => {
                if let Some(owner) = event["agent"]["agent"].as_str() {
                    self.proposals
                        .insert(owner.to_owned(), event["proposal"].clone());
                }
            }
            "tests_run" => {
                let output = event["report"]["output"].as_str().unwrap_or_default();
                self.outputs
                    .entry(run.to_owned())
                    .or_default()
                    .push_str(output);
            }
            _ => {}
        }
    }

    fn answered(&mut self, id: &str, message: Value) {
        let method = self.waiting.remove(id);
        let method = method.unwrap_or_else(|| panic!("nobody waits for this: {message}"));
        match message.get("error") {
            Some(error) => {
                assert!(message.get("result").is_none(), "{message}");
                assert!(
                    error["code"].is_i64() && error["message"].is_string(),
                    "{message}"
                );
            }
            None => {
                let result = message.get("result").expect("a result or an error");
                self.can.answered(&method, result);
                if let (true, Some(run)) =
                    (method == "workspace/executeCommand", result["run"].as_str())
                {
                    self.runs.push(run.to_owned());
                }
            }
        }
        let earlier = self.answers.insert(id.to_owned(), message);
        assert!(earlier.is_none(), "request {id} was answered twice");
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = json!(self.last);
        self.send(json!({"id": id, "method": method, "params": params}));
        let id = id.to_string();
        self.until(method, |me| me.answers.contains_key(&id));
        self.answers[&id].clone()
    }

    fn execute(&mut self, command: &str, argument: Value) -> Value {
        let params = json!({"command": command, "arguments": [argument]});
        let answer = self.request("workspace/executeCommand", params);
        answer
            .get("result")
            .unwrap_or_else(|| panic!("{command}: {answer}"))
            .clone()
    }

    /// Checks that the server's texts equal the client's, by a test command that prints their
    /// hashes.
    fn texts_are_equal(&mut self, root: &Path) {
        let texts = self.buffers.texts();
        let inside =
            texts.filter_map(|(path, text)| Some((path.strip_prefix(root).ok()?.to_owned(), text)));
        let inside: Vec<_> = inside.collect();
        assert!(!inside.is_empty(), "nothing is open at the end");
        let names: Vec<String> = inside
            .iter()
            .map(|(path, _)| path.display().to_string())
            .collect();
        let test = format!("sha256sum {}", names.join(" "));
        let run = self.execute(
            "starling.run",
            json!({"task": "Look.", "test": test, "approve": "ask"}),
        );
        let run = run["run"].as_str().unwrap().to_owned();
        self.until("the tests see the texts", |me| {
            me.outputs.get(&run).is_some_and(|text| !text.is_empty()) || me.finished.contains(&run)
        });
        self.execute("starling.cancel", json!({ "run": run }));
        self.until("the end of the run", |me| me.finished.contains(&run));
        let seen = self.outputs.get(&run).cloned().unwrap_or_default();
        for (path, text) in inside {
            let digest = Sha256::digest(text.as_bytes());
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            let line = format!("{hex}  {}", path.display());
            assert!(
                seen.contains(&line),
                "the server has another text than\n{text}\n{line} is not in\n{seen}"
            );
        }
    }

    fn leave(mut self) {
        self.until("all answers", |me| me.waiting.is_empty());
        let answer = self.request("shutdown", Value::Null);
        assert_eq!(answer["result"], Value::Null, "{answer}");
        self.server.send(json!({"method": "exit"}));
        while let Some(message) = self.server.next("its end") {
            self.take(message);
        }
        let status = self.server.ended();
        assert_eq!(status.code(), Some(0), "{status}");
    }
}
