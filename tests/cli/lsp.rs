//! Tests of `starling lsp`.

use serde_json::{Value, json};

use super::project::{RunningProgram, TestProject};

#[test]
fn language_server_fails_if_the_client_exits_without_shutdown() {
    let bed = TestProject::new();
    let said = bed.say(&["lsp"]);
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{said:?}");
    let frame = |message: Value| {
        let text = message.to_string();
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    };
    let mut command = bed.starling();
    command.arg("lsp");
    let mut talk = RunningProgram::begin(command);
    let hello = json!({"capabilities": {}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    talk.write(&frame(hello));
    let answer = talk.message();
    assert_eq!(answer["result"]["serverInfo"]["name"], "starling");
    // The last messages arrive in one write, and standard input stays open.
    let farewell = [
        json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "shutdown"}),
        json!({"jsonrpc": "2.0", "method": "exit"}),
    ];
    talk.write(&farewell.map(frame).concat());
    let said = talk.end();
    assert_eq!(said.code, Some(0), "{said:?}");
}
