//! A recorded model whose agents each propose a longer function in one large file.

use std::path::Path;

use serde_json::{Value, json};

/// The changed file. It exists only in the buffer, not in the tree.
pub const FILE: &str = "starling_bench_of_an_editor.py";

fn old(at: usize) -> String {
    format!("def f{at}(x):\n    y = x + {at}\n    return y\n")
}

fn new(at: usize) -> String {
    format!("def f{at}(x):\n    y = x + {at}\n    z = y * 2\n    return z - y\n")
}

/// Writes the recording and returns the text of the file that it changes.
pub fn write(path: &Path, agents: usize, lines: usize) -> String {
    let functions = lines / 5;
    let text: Vec<String> = (0..functions).map(old).collect();
    let step = functions / agents;
    let chosen: Vec<usize> = (0..agents).map(|agent| agent * step).collect();
    let symbol = |at: &usize| format!("{FILE}::f{at}");
    let picks: Vec<Value> = chosen
        .iter()
        .map(|at| json!({"symbol": symbol(at), "why": "recorded"}))
        .collect();
    let mut lines = vec![exchange(
        "scout",
        "scout",
        "wake",
        &json!({ "symbols": picks }),
    )];
    for at in &chosen {
        let conversation = format!("agent {}", symbol(at));
        let change = json!({"reason": "recorded", "source": new(*at)});
        lines.push(exchange(&conversation, "agent", "propose", &change));
    }
    std::fs::write(path, lines.join("\n")).expect("the recording is written");
    text.join("\n\n")
}

fn exchange(conversation: &str, role: &str, tool: &str, arguments: &Value) -> String {
    let call = json!({"id": "c", "name": tool, "arguments": arguments.to_string()});
    let reply = json!({
        "model": "recorded", "text": "", "tool_calls": [call], "finish": "tool_calls",
        "usage": {"prompt": 1, "cached": 0, "output": 1}, "cost": 0.0, "calls": 1,
    });
    let exchange = json!({
        "conversation": conversation, "role": role, "ordinal": 0, "prompt": [], "tools": [tool],
        "reply": {"Ok": reply}, "millis": 1,
    });
    json!({ "exchange": exchange }).to_string()
}
