//! Compares tool calls that the local model writes with and without a constraint on the output format.
//!
//! ```sh
//! cargo bench -p starling-local --bench tool_calls -- WEIGHTS.gguf [COUNT]
//! ```
//!
//! Each request offers five tools and gives a task, at temperature 0.8. 8 requests run together. An answer is
//! well-formed if it consists of tool calls only, each in its tags, with the name of a tool and arguments
//! that follow the tool's schema. Prints the share of malformed answers and the time, with and without the
//! constraint.

#![allow(clippy::unwrap_used)]

use std::time::Instant;

use futures::StreamExt;
use serde_json::{Value, json};
use starling_core::{AnswerFormat, ChatModel, ChatRequest, Message, NoWatch, Tokens, ToolSpec};
use starling_local::{LocalModel, LocalOptions};

const AT_ONCE: usize = 8;
const LONGEST: u64 = 400;
const TASKS: [&str; 10] = [
    "Read the function `total` in shop/cart.py.",
    "Find all uses of `parse_line`.",
    "Rename the variable `x` in a.py::f to `count`.",
    "The function convert in units.py returns feet for metres. Its source is `def convert(m):\n    return m`. Repair it.",
    "Look for the text \"no such file\" in the project, at most 5 places.",
    "You are done: the test passes now, because the sign was wrong.",
    "Ask the owner of `Cart.add` whether negative amounts are allowed.",
    "Read lines 10 to 20 of README.md.",
    "Propose a docstring with \"quotes\" and a\nsecond line for m.py::g.",
    "Search with a regular expression for functions that begin with test_.",
];

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1).filter(|one| one != "--bench");
    let Some(weights) = arguments.next() else {
        eprintln!(
            "usage: cargo bench -p starling-local --bench tool_calls -- WEIGHTS.gguf [COUNT]"
        );
        std::process::exit(2);
    };
    let count: u64 = arguments.next().map_or(1000, |one| one.parse().unwrap());
    // Load one model at a time to limit memory use.
    for constraints in [true, false] {
        let model = LocalModel::open(LocalOptions {
            name: "local".to_owned(),
            path: weights.clone().into(),
            context_window: None,
            guesses: true,
            constraints,
        })
        .unwrap();
        model.chat(&request(0), &NoWatch).await.unwrap();
        let began = Instant::now();
        let answers = futures::stream::iter(0..count).map(|seed| {
            let model = &model;
            async move {
                let reply = model.chat(&request(seed), &NoWatch).await.unwrap();
                (reply.text, reply.usage.output.0)
            }
        });
        let answers: Vec<(String, u64)> = answers.buffer_unordered(AT_ONCE).collect().await;
        let seconds = began.elapsed().as_secs_f64();
        let tokens: u64 = answers.iter().map(|(_, tokens)| tokens).sum();
        let malformed: Vec<_> = answers
            .iter()
            .filter(|(text, _)| !is_well_formed(text))
            .collect();
        println!(
            "{} constraint: {} of {count} malformed; {tokens} tokens in {seconds:.0} s, {:.1} a second",
            if constraints { "with" } else { "without" },
            malformed.len(),
            tokens as f64 / seconds,
        );
        for (text, _) in malformed.iter().take(3) {
            println!("  {text:?}");
        }
    }
}

fn tools() -> Vec<ToolSpec> {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer", "minimum": 1, "maximum": 100_000});
    let tool = |name: &str, description: &str, properties: Value, required: Value| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    };
    let hunk = json!({
        "type": "object",
        "properties": {"old": text, "new": text},
        "required": ["old", "new"],
        "additionalProperties": false,
    });
    vec![
        tool(
            "read",
            "Read a symbol or lines of a file.",
            json!({"path": text, "from": number, "to": number}),
            json!(["path"]),
        ),
        tool(
            "search",
            "Search the project.",
            json!({"pattern": text, "kind": {"enum": ["text", "regex", "symbol"]}, "most": number}),
            json!(["pattern", "kind"]),
        ),
        tool(
            "ask",
            "Ask the owner of a symbol.",
            json!({"symbol": text, "question": text}),
            json!(["symbol", "question"]),
        ),
        tool(
            "propose",
            "Propose a change of a symbol.",
            json!({"symbol": text, "hunks": {"type": "array", "items": hunk, "minItems": 1}, "why": text}),
            json!(["symbol", "hunks"]),
        ),
        tool(
            "finish",
            "End your work.",
            json!({"summary": text}),
            json!(["summary"]),
        ),
    ]
}

fn request(seed: u64) -> ChatRequest {
    let system = "You work on a Python project by calling tools. Answer with calls of tools and nothing else.";
    let task = TASKS[seed as usize % TASKS.len()];
    ChatRequest {
        conversation: "tool calls".to_owned(),
        messages: vec![
            Message::System {
                text: system.into(),
            },
            Message::User { text: task.into() },
        ],
        tools: tools(),
        max_output: Tokens(LONGEST),
        temperature: 0.8,
        top_p: None,
        seed: Some(seed),
        beginning: String::new(),
        following: String::new(),
        stop: Vec::new(),
        format: AnswerFormat::ToolCalls,
    }
}

fn is_well_formed(text: &str) -> bool {
    let mut rest = text.trim();
    let mut calls = 0;
    while let Some(call) = rest.strip_prefix("<tool_call>") {
        let Some((call, after)) = call.split_once("</tool_call>") else {
            return false;
        };
        if !serde_json::from_str(call).is_ok_and(|call| is_valid(&call)) {
            return false;
        }
        calls += 1;
        rest = after.trim_start();
    }
    calls > 0 && rest.is_empty()
}

fn is_valid(call: &Value) -> bool {
    let tool = tools().into_iter().find(|tool| call["name"] == tool.name);
    let fields = call.as_object().is_some_and(|fields| fields.len() == 2);
    fields && tool.is_some_and(|tool| follows(&call["arguments"], &tool.parameters))
}

/// Returns whether a value follows a schema. Supports only the keywords that the tools above use.
fn follows(value: &Value, schema: &Value) -> bool {
    if let Some(allowed) = schema["enum"].as_array() {
        return allowed.contains(value);
    }
    match schema["type"].as_str().unwrap() {
        "string" => value.is_string(),
        "integer" => value
            .as_i64()
            .is_some_and(|number| (1..=100_000).contains(&number)),
        "array" => value.as_array().is_some_and(|items| {
            !items.is_empty() && items.iter().all(|item| follows(item, &schema["items"]))
        }),
        "object" => value.as_object().is_some_and(|fields| {
            let required = schema["required"].as_array().unwrap();
            required
                .iter()
                .all(|name| fields.contains_key(name.as_str().unwrap()))
                && fields.iter().all(|(name, item)| {
                    let schema = &schema["properties"][name];
                    !schema.is_null() && follows(item, schema)
                })
        }),
        kind => panic!("{kind}"),
    }
}
