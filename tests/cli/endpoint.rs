//! Runs against a small HTTP server that replaces a provider.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::project::{CommandResult, NEW, OLD, TestProject};

/// Returns the status and the body of the response to a request.
type Answers = fn(path: &str, body: &Value) -> (&'static str, Value);

/// A server on its own port. It ends with the test process.
struct Endpoint {
    url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Endpoint {
    fn start(answers: Answers) -> Endpoint {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                serve(stream.unwrap(), answers, &seen);
            }
        });
        Endpoint { url, asked }
    }

    fn starling(&self, bed: &TestProject, args: &[&str]) -> CommandResult {
        let mut command = bed.starling();
        command.env("OPENAI_BASE_URL", &self.url).args(args);
        CommandResult::of(&command.output().unwrap())
    }
}

fn serve(stream: TcpStream, answers: Answers, seen: &Mutex<Vec<Value>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    if !body.is_null() {
        seen.lock().unwrap().push(body.clone());
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let (status, answer) = answers(path, &body);
    let answer = answer.to_string();
    let mut stream = stream;
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{answer}",
        answer.len()
    );
    // The client may have exited.
    let _ = stream.write_all(head.as_bytes());
}

fn says(text: &str) -> (&'static str, Value) {
    let choice = json!({"message": {"content": text}, "finish_reason": "stop"});
    ("200 OK", json!({"choices": [choice]}))
}

#[test]
fn model_without_tool_calls_is_used_with_the_text_protocol() {
    let endpoint = Endpoint::start(|path, body| {
        if path.ends_with("/models") {
            return ("404 Not Found", json!({}));
        }
        if body.get("tools").is_some() {
            let message = "registry.ollama.ai/library/m does not support tools";
            let error = json!({"error": {"message": message}});
            return ("400 Bad Request", error);
        }
        let system = body["messages"][0]["content"].as_str().unwrap_or_default();
        match system.contains("You own one symbol") {
            true => says(&format!("It is the same.\n\n```python\n{NEW}```\n")),
            false => says("work.py::f"),
        }
    });
    let bed = TestProject::new();
    let said = endpoint.starling(
        &bed,
        &[
            "run",
            "--approve",
            "auto",
            "--model",
            "openai:m",
            "Simplify f in work.py.",
        ],
    );
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(bed.work(), NEW);
    let told = "openai:m: the server reports that the model does not support tool calling";
    assert_eq!(said.out.matches(told).count(), 1, "{said:?}");
    let asked = endpoint.asked.lock().unwrap();
    let with_tools = asked.iter().filter(|body| body.get("tools").is_some());
    assert_eq!(with_tools.count(), 1, "tools were offered once");

    let answered = Endpoint::start(|_, body| match body.get("tools") {
        Some(_) => (
            "400 Bad Request",
            json!({"error": "m does not support tools"}),
        ),
        None => says("`f` gives one [work.py:2]."),
    });
    let question = [
        "ask",
        "--model",
        "openai:m",
        "What does `f` return in work.py?",
    ];
    let said = answered.starling(&bed, &question);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(
        said.out.starts_with("`f` gives one [work.py:2]."),
        "{said:?}"
    );
}

#[test]
fn error_message_of_the_provider_is_quoted() {
    let endpoint = Endpoint::start(|path, body| {
        if path.ends_with("/models") {
            return ("200 OK", json!({"data": [{"id": "good-model"}]}));
        }
        let error = |message: &str| json!({"error": {"message": message}});
        match body["model"].as_str().unwrap_or_default() {
            "long" => (
                "400 Bad Request",
                error("This model's maximum context length is 1024 tokens."),
            ),
            "poor" => ("402 Payment Required", error("Insufficient credits.")),
            _ => ("404 Not Found", error("The model does not exist")),
        }
    });
    let bed = TestProject::new();
    let run = |model: &str| {
        let model = format!("openai:{model}");
        let args = ["run", "--approve", "auto", "--model", &model, "Simplify f."];
        let said = endpoint.starling(&bed, &args);
        assert_eq!(said.code, Some(1), "{said:?}");
        said.out
    };
    let long = run("long");
    let quoted = "too long: This model's maximum context length is 1024 tokens.; set models.NAME.context_window";
    assert!(
        long.contains(quoted) && !long.contains("is over the"),
        "{long}"
    );
    let poor = run("poor");
    assert!(
        poor.contains("(402): Insufficient credits.") && poor.contains("no credit"),
        "{poor}"
    );
    let misspelt = run("god-model");
    let note = "note: openai:god-model: the endpoint does not list a model \"god-model\"; did you mean good-model?";
    assert!(misspelt.contains(note), "{misspelt}");
    assert_eq!(bed.work(), OLD);
}

#[test]
fn unused_api_key_is_reported_and_init_configures_a_model() {
    let bed = TestProject::new();
    let say = |args: &[&str]| {
        let mut command = bed.starling();
        command.env("OPENAI_API_KEY", "sk-very-secret").args(args);
        CommandResult::of(&command.output().unwrap())
    };
    let note = "note: OPENAI_API_KEY is set, but no model is configured, so the local one is used";
    let said = say(&["run", "--approve", "auto", "x"]);
    assert!(said.err.contains(note), "{said:?}");
    let said = say(&["ask", "what is f?"]);
    assert!(said.err.contains(note), "{said:?}");
    let said = say(&["ask", "--model", "replay:/none", "what is f?"]);
    assert!(!said.err.contains("note:"), "a model was named: {said:?}");
    let said = say(&["doctor"]);
    assert!(
        said.out.contains("OPENAI_API_KEY is set, but no model"),
        "{said:?}"
    );

    let said = say(&["init"]);
    let told = "OPENAI_API_KEY is set, but you chose no model";
    assert!(said.code == Some(0) && said.err.contains(told), "{said:?}");
    std::fs::remove_file(said.out.trim()).unwrap();
    let said = say(&["init", "--model", "openai:gpt-5-mini"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let path = bed.dir.path().join("config/starling/config.toml");
    assert_eq!(said.out.trim(), path.display().to_string());
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.contains("agent = [\"gpt-5-mini\"]"), "{written}");
    let said = say(&["config", "explain", "roles.agent"]);
    assert!(said.out.contains("gpt-5-mini"), "{said:?}");
    let said = say(&["doctor"]);
    assert!(
        said.out.contains("OPENAI_API_KEY is set: for gpt-5-mini"),
        "{said:?}"
    );
    assert!(!said.out.contains("sk-very"), "{said:?}");
    say(&["init"]).is_wrong_use("exists already and was not changed");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
}
