//! A client that sends invalid messages gets an error, and the server keeps working.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use super::HostProject;

/// An LSP client that sends raw bytes to a language server process.
struct RawClient {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    bed: HostProject,
}

impl RawClient {
    fn start() -> RawClient {
        let bed = HostProject::new();
        let mut child = bed
            .starling(&["lsp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut client = RawClient {
            child,
            input,
            output,
            bed,
        };
        let root = format!("file://{}", client.bed.path("project").display());
        client.send(&request(
            1,
            "initialize",
            json!({"rootUri": root, "capabilities": {}}),
        ));
        assert_eq!(client.answer(&json!(1))["error"], json!(null));
        client.send(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}));
        client
    }

    fn write(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).unwrap();
        self.input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.write(&framed(message.to_string().as_bytes()));
    }

    fn read(&mut self) -> Value {
        let mut length = None;
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "the server has ended: {:?}", self.child.wait());
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.strip_prefix("Content-Length:") {
                length = Some(value.trim().parse().unwrap());
            }
        }
        let mut body = vec![0; length.unwrap()];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// Returns the next response, which must be to the request `id`.
    #[track_caller]
    fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.read();
            if message.get("method").is_none() {
                assert_eq!(message["id"], *id, "{message}");
                return message;
            }
        }
    }

    /// Sends invalid bytes, and checks that an error is returned and that the next request works.
    #[track_caller]
    fn check(&mut self, bytes: &[u8], code: i64, id: &Value) {
        self.write(bytes);
        self.send(&request(7, "starling/state", json!({})));
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        let refused = self.answer(id);
        assert_eq!(refused["error"]["code"], code, "{shown:?}: {refused}");
        let served = self.answer(&json!(7));
        assert!(served["result"].is_object(), "{shown:?}: {served}");
    }
}

impl Drop for RawClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn framed(body: &[u8]) -> Vec<u8> {
    let headers = format!("Content-Length: {}\r\n\r\n", body.len());
    [headers.as_bytes(), body].concat()
}

#[test]
fn unreadable_lsp_message_gets_an_error_and_the_next_one_is_served() {
    let mut client = RawClient::start();
    let (parse, invalid) = (-32700, -32600);
    let none = json!(null);
    client.check(&framed(b"{\"jsonrpc\": \"2.0\", "), parse, &none);
    client.check(&framed(b"\xff\xfe{}"), parse, &none);
    client.check(&framed(b"[]"), invalid, &none);
    client.check(
        &framed(b"{\"jsonrpc\": \"1.0\", \"id\": 5, \"method\": \"x\"}"),
        invalid,
        &json!(5),
    );
    client.check(&framed("[".repeat(1000).as_bytes()), parse, &none);
    client.check(b"hello\r\n\r\n", parse, &none);
    client.check(b"Content-Length: nine\r\n\r\n{}", parse, &none);
    client.check(b"Content-Type: a/b\r\n\r\n{}", parse, &none);
    client.check(b"Content-Length: 90\r\n\r\n{\"jsonrpc\"", parse, &none);
    client.check(b"Content-Length: 4\r\n\r\n{\"jsonrpc\": 1}", parse, &none);
    client.check(b"Content-Length: 99999999999\r\n\r\n{}", invalid, &none);
    client.check(&vec![b'x'; 1 << 20], parse, &none);
}

#[test]
fn lsp_headers_are_case_insensitive() {
    let mut client = RawClient::start();
    let body = request(3, "starling/state", json!({})).to_string();
    let headers = format!(
        "content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write(headers.as_bytes());
    client.write(body.as_bytes());
    assert!(client.answer(&json!(3))["result"].is_object());
}

#[test]
fn text_with_a_lone_surrogate_keeps_its_utf16_positions() {
    let mut client = RawClient::start();
    let uri = format!("file://{}", client.bed.path("project/work.py").display());
    let open = format!(
        r#"{{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {{"textDocument": {{"uri": "{uri}",
        "languageId": "python", "version": 1, "text": "a = '\ud800' # TODO say one\n"}}}}}}"#
    );
    client.write(&framed(open.as_bytes()));
    // The lone surrogate counts as one UTF-16 unit.
    let place = |character: u32| json!({"line": 0, "character": character});
    client.send(
        &json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {
            "textDocument": {"uri": uri, "version": 2},
            "contentChanges": [{"range": {"start": place(19), "end": place(22)}, "text": "two"}],
        }}),
    );
    let at = json!({"textDocument": {"uri": uri}, "context": {"diagnostics": []},
        "range": {"start": place(0), "end": place(0)}});
    client.send(&request(4, "textDocument/codeAction", at));
    let actions = client.answer(&json!(4));
    assert_eq!(
        actions["result"][0]["title"], "Starling: do: say two",
        "{actions}"
    );
}
