//! Tests with hostile servers: endless answers, redirects, false usage reports, and errors that
//! repeat the key.

use std::io::Write;
use std::sync::{Arc, Mutex};

use super::server::{ScriptedResponse, Server};
use super::tests::{EVENTS, JSON, ask, options, request};
use super::*;
use starling_core::{Cost, Exchange, NoWatch, Role};

const KEY: &str = "sk-Ab/12+cd=EF&56";

fn malformed(error: &ModelError) -> &str {
    match error {
        ModelError::Malformed { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn endless_answer_is_abandoned_at_the_size_limit() {
    let line = "x".repeat(64 << 10);
    let comment = format!(": {}\n", "x".repeat(1 << 10));
    for (head, piece, said) in [
        (EVENTS, comment, "an answer of over 32 MiB"),
        (JSON, line.clone(), "an answer of over 32 MiB"),
    ] {
        let error = ask(ScriptedResponse::Endless(head, piece))
            .await
            .unwrap_err();
        assert!(malformed(&error).contains(said), "{error}");
    }
}

#[tokio::test]
async fn answer_far_over_its_token_limit_is_cut_and_charged_for_the_received_part() {
    let word = "data: {\"choices\":[{\"delta\":{\"content\":\"word word word \"}}]}\n\n";
    let thought = "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm hm hm hm \"}}]}\n\n";
    // The model's own limit of 1,000 tokens is lower than the requested one.
    let most = 1_000 * 8 + (8 << 10);
    for (piece, bytes) in [(word, 15), (thought, 12)] {
        let error = ask(ScriptedResponse::Endless(EVENTS, piece.repeat(10)))
            .await
            .unwrap_err();
        let ModelError::Endless { output, .. } = &error else {
            panic!("{error:?}");
        };
        // Chunks with an odd number of bytes are rounded up.
        let pieces = u64::div_euclid(most, bytes) + 1;
        assert_eq!(output.0, pieces * bytes.div_ceil(2), "{error}");
        let said = error.to_string();
        assert!(said.contains("far beyond the requested limit"), "{said}");
        assert!(!error.is_transient());
        let worst = WorstCase::of(&request(), &options("http://h").profile);
        let cost = Cost::of_failure(&error, true, &worst);
        assert_eq!((cost.usage.output, cost.calls), (*output, 1));
    }
    let line = "x".repeat(64 << 10);
    for piece in [format!("data: {line}"), format!("data: {line}\n")] {
        let error = ask(ScriptedResponse::Endless(EVENTS, piece))
            .await
            .unwrap_err();
        let ModelError::Endless { output, .. } = &error else {
            panic!("{error:?}");
        };
        assert!((4 << 20..5 << 20).contains(&output.0), "{error}");
    }
}

#[tokio::test]
async fn redirect_does_not_forward_the_prompt() {
    for status in [301, 302, 303, 307, 308] {
        let other = Server::start(vec![ScriptedResponse::Raw(vec![JSON, "{}"])]).await;
        let head = format!(
            "HTTP/1.1 {status} Elsewhere\r\nlocation: {}/x?token=1\r\nconnection: close\r\n\r\n",
            other.url
        );
        let server = Server::start(vec![ScriptedResponse::Raw(vec![head.leak()])]).await;
        let model = OpenAiModel::new(options(&server.url)).unwrap();
        let error = model.chat(&request(), &NoWatch).await.unwrap_err();
        let ModelError::Refused {
            status: said,
            message,
            ..
        } = &error
        else {
            panic!("{error:?}");
        };
        assert_eq!(*said, status);
        assert!(
            message.contains(&format!("redirects to {}/x;", other.url)),
            "{message}"
        );
        assert!(message.contains("base_url"), "{message}");
        assert_eq!(other.requests(), Vec::<String>::new());
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn implausible_usage_report_is_replaced_by_the_upper_bound() {
    let worst = WorstCase::of(&request(), &options("http://h").profile);
    for (usage, output) in [
        ("{\"prompt_tokens\":0,\"completion_tokens\":0}", 7),
        ("{\"prompt_tokens\":1,\"completion_tokens\":3}", 3),
        (
            "{\"prompt_tokens\":99999999999,\"completion_tokens\":99999999999}",
            7,
        ),
        ("null", 7),
    ] {
        let answer = "{\"choices\":[{\"message\":{\"content\":\"twelve bytes!\"},\"finish_reason\":\"stop\"}],\"usage\":";
        let body = format!("{answer}{usage}}}").leak();
        let reply = ask(ScriptedResponse::Raw(vec![JSON, body])).await.unwrap();
        assert_eq!(reply.usage.prompt, worst.prompt, "{usage}");
        assert_eq!(reply.usage.output, Tokens(output), "{usage}");
    }
}

/// A writer that keeps the log output in memory.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whether a text contains the key or a large part of it.
fn leaks(text: &str) -> bool {
    let text = text.to_lowercase();
    let unescaped = text.replace("%2f", "/").replace("%2b", "+");
    [text, unescaped]
        .iter()
        .any(|text| text.contains("sk-ab/12"))
}

#[tokio::test]
async fn api_key_repeated_by_a_server_appears_in_no_error_or_log() {
    let log = LogBuffer::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let escaped: String = KEY
        .chars()
        .map(|c| format!("\\u{:04x}", u32::from(c)))
        .collect();
    let encoded = "sk-Ab%2F12%2Bcd%3DEF%2656";
    let long = format!("{}{KEY}", "x".repeat(395));
    let whole = |head: &str, body: String| {
        format!("{head}content-type: text/plain\r\nconnection: close\r\n\r\n{body}")
    };
    let refused = "HTTP/1.1 401 No\r\n";
    let scripts = [
        whole(
            refused,
            format!("{{\"error\":{{\"message\":\"no key {KEY}!\"}}}}"),
        ),
        whole(
            refused,
            format!("{{\"error\":{{\"message\":\"no key {escaped}!\"}}}}"),
        ),
        whole(refused, format!("no key {escaped}!")),
        whole(refused, format!("no key {encoded}!")),
        whole(refused, long),
        whole("HTTP/1.1 500 No\r\n", format!("no key {KEY}!")),
        whole("HTTP/1.1 400 No\r\n", format!("no key {KEY}!")),
        whole("HTTP/1.1 200 OK\r\n", format!("<html>{KEY}</html>")),
        whole(
            &format!("HTTP/1.1 302 Go\r\nlocation: http://h/{encoded}\r\n"),
            String::new(),
        ),
        format!("{EVENTS}data: no key {KEY}!\n\n"),
        format!("{EVENTS}data: {{\"error\":{{\"message\":\"no key {KEY}!\"}}}}\n\n"),
    ];
    for script in scripts {
        let server = Server::start(vec![ScriptedResponse::Raw(vec![script.clone().leak()])]).await;
        let mut options = options(&server.url);
        options.key = Some(ApiKey(KEY.to_owned()));
        let model = OpenAiModel::new(options).unwrap();
        let error = model.chat(&request(), &NoWatch).await.unwrap_err();
        assert!(server.requests()[0].contains(KEY), "it was sent");
        let kept = Exchange {
            conversation: "c".to_owned(),
            role: Role::Agent,
            ordinal: 0,
            prompt: Vec::new(),
            tools: Vec::new(),
            capability: None,
            reply: Err(error.clone()),
            millis: 0,
        };
        let kept = serde_json::to_string(&kept).unwrap();
        for shown in [error.to_string(), format!("{error:?}"), kept] {
            assert!(!leaks(&shown), "{shown} for {script}");
        }
        assert!(error.to_string().contains("[key]"), "{error} for {script}");
    }
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!leaks(&logged), "{logged}");
}
