//! Tests of the status and body of each kind of response.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::bed::{Bed, CHAT, JSON, chat, options, scripted};
use crate::routes::LONGEST_BODY;
use starling_core::{AnswerFormat, CALL_PATH, CallEvent, Message, Tokens};

#[tokio::test]
async fn chat_answer_contains_text_finish_reason_and_usage() {
    let bed = Bed::new(&["Hel", "lo"]).await;
    let answer = bed
        .chat(&json!({ "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "seed": 3, "stop": "x" }))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let mut body = answer.json();
    assert!(body["id"].take().as_str().unwrap().starts_with("chatcmpl-"));
    assert!(body["created"].take().is_u64());
    let wanted = json!({
        "id": null, "object": "chat.completion", "created": null, "model": "tiny",
        "choices": [{
            "index": 0, "logprobs": null, "finish_reason": "stop",
            "message": { "role": "assistant", "content": "Hello", "refusal": null },
        }],
        "usage": { "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
            "prompt_tokens_details": { "cached_tokens": 2 } },
    });
    assert_eq!(body, wanted);
    assert!(
        !answer.head.contains("access-control"),
        "no web page may read it"
    );
    let asked = bed.model.requests.lock().unwrap()[0].clone();
    assert_eq!(asked.messages, [Message::User { text: "hi".into() }]);
    assert_eq!((asked.max_output, asked.temperature), (Tokens(9), 0.5));
    assert_eq!(
        (asked.top_p, asked.seed, asked.stop),
        (Some(0.9), Some(3), vec!["x".to_owned()])
    );
}

#[tokio::test]
async fn tools_and_results_reach_the_model_and_its_tool_call_is_returned() {
    let bed = Bed::new(&[
        "<tool_call>{\"name\": \"look\", ",
        "\"arguments\": {\"at\": 1}}</tool_call>",
    ])
    .await;
    let messages = json!([
        { "role": "developer", "content": [{ "type": "text", "text": "Be brief." }] },
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c", "type": "function", "function": { "name": "look", "arguments": "{}" } }] },
        { "role": "tool", "tool_call_id": "c", "content": "42" },
    ]);
    let tools = json!([{ "type": "function", "function": { "name": "look", "parameters": {} } }]);
    let answer = bed
        .chat(&json!({ "messages": messages, "tools": tools }))
        .await
        .json();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], Value::Null);
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["type"], "function");
    assert!(call["id"].as_str().unwrap().starts_with("call_0_chatcmpl-"));
    assert_eq!(
        call["function"],
        json!({ "name": "look", "arguments": "{\"at\":1}" })
    );
    let asked = bed.model.requests.lock().unwrap()[0].clone();
    assert_eq!(asked.tools[0].name, "look");
    assert_eq!(
        asked.messages[0],
        Message::System {
            text: "Be brief.".into()
        }
    );
    assert_eq!(
        asked.messages[3],
        Message::Tool {
            call_id: "c".into(),
            text: "42".into()
        }
    );
    let none = json!({ "tools": tools, "tool_choice": "none" });
    let answer = bed.chat(&none).await.json();
    assert!(
        answer["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .contains("look")
    );
}

#[tokio::test]
async fn required_format_reaches_the_model() {
    let bed = Bed::new(&["{}"]).await;
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let tools = json!([tool("look"), tool("read")]);
    let schema = json!({ "type": "object", "required": ["a"] });
    let wanted = [
        (json!({ "tools": tools }), AnswerFormat::Free, 2),
        (
            json!({ "tools": tools, "tool_choice": "required" }),
            AnswerFormat::ToolCalls,
            2,
        ),
        (
            json!({ "tools": tools, "tool_choice": tool("read") }),
            AnswerFormat::ToolCalls,
            1,
        ),
        (
            json!({ "response_format": { "type": "json_object" } }),
            AnswerFormat::Json(json!({ "type": "object" })),
            0,
        ),
        (
            json!({ "response_format": { "type": "json_schema",
                "json_schema": { "name": "n", "schema": schema } } }),
            AnswerFormat::Json(schema.clone()),
            0,
        ),
    ];
    for (more, ..) in &wanted {
        assert_eq!(bed.chat(more).await.status, 200, "{more}");
    }
    let asked = bed.model.requests.lock().unwrap().clone();
    let asked: Vec<_> = asked
        .iter()
        .map(|one| (&one.format, one.tools.len()))
        .collect();
    let wanted: Vec<_> = wanted
        .iter()
        .map(|(_, format, tools)| (format, *tools))
        .collect();
    assert_eq!(asked, wanted);
}

#[tokio::test]
async fn completion_continues_a_text_or_fills_a_gap() {
    let bed = Bed::new(&["return 1"]).await;
    let body = json!({ "model": "local", "prompt": "def f():\n    ", "suffix": "\n\nf()", "max_tokens": 5 });
    let answer = bed.post("/v1/completions", &body).await.json();
    assert_eq!(answer["object"], "text_completion");
    assert_eq!(answer["choices"][0]["text"], "return 1");
    assert!(answer["id"].as_str().unwrap().starts_with("cmpl-"));
    let plain = json!({ "model": "local", "prompt": ["def f():"] });
    assert_eq!(bed.post("/v1/completions", &plain).await.status, 200);
    let asked = bed.model.requests.lock().unwrap().clone();
    assert!(asked[0].messages.is_empty());
    assert_eq!(asked[0].beginning, "def f():\n    ");
    assert_eq!(asked[0].following, "\n\nf()");
    assert_eq!(
        (asked[1].beginning.as_str(), asked[1].following.as_str()),
        ("def f():", "")
    );
}

#[tokio::test]
async fn suffix_needs_a_model_that_fills_gaps() {
    let mut model = scripted(&["x"]);
    model.fills = false;
    let bed = Bed::with(model, options()).await;
    let body = json!({ "model": "tiny", "prompt": "a", "suffix": "b" });
    let answer = bed.post("/v1/completions", &body).await;
    let (message, error) = answer.error();
    assert_eq!(
        (answer.status, error["param"].as_str()),
        (400, Some("suffix"))
    );
    assert!(message.contains("cannot fill a gap"), "{message}");
}

#[tokio::test]
async fn unsupported_value_is_rejected_with_the_name_of_the_field() {
    let bed = Bed::new(&["x"]).await;
    let image = json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": {} }] }]);
    for (more, param) in [
        (json!({ "n": 2 }), "n"),
        (json!({ "logprobs": true }), "logprobs"),
        (json!({ "frequency_penalty": 0.5 }), "frequency_penalty"),
        (
            json!({ "response_format": { "type": "grammar" } }),
            "response_format",
        ),
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": {} } }),
            "response_format",
        ),
        (json!({ "tool_choice": "required" }), "tool_choice"),
        (json!({ "tool_choice": "sometimes" }), "tool_choice"),
        (
            json!({ "tool_choice": { "type": "function", "function": { "name": "f" } } }),
            "tool_choice",
        ),
        (json!({ "tools": [{ "type": "web_search" }] }), "tools"),
        (
            json!({ "stream_options": { "include_usage": true } }),
            "stream_options",
        ),
        (json!({ "temperature": 3 }), "temperature"),
        (json!({ "top_p": 2 }), "top_p"),
        (json!({ "max_tokens": 0 }), "max_tokens"),
        (json!({ "messages": [] }), "messages"),
        (json!({ "messages": image }), "messages"),
        (
            json!({ "messages": [{ "role": "wizard", "content": "x" }] }),
            "messages",
        ),
        (json!({ "model": null }), "model"),
    ] {
        let answer = bed.chat(&more).await;
        let (message, error) = answer.error();
        assert_eq!(answer.status, 400, "{more}: {message}");
        assert_eq!(error["param"], param, "{message}");
        assert_eq!(error["type"], "invalid_request_error");
    }
    let idle = json!({ "n": 1, "logprobs": false, "presence_penalty": 0.0, "logit_bias": {}, "user": "u",
        "response_format": { "type": "text" }, "tools": [], "stream": false, "modalities": ["text"] });
    assert_eq!(bed.chat(&idle).await.status, 200);
    assert_eq!(bed.model.requests.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn too_long_prompt_is_refused_with_its_length_and_the_window() {
    let bed = Bed::new(&["x"]).await;
    for stream in [false, true] {
        let messages = json!([{ "role": "user", "content": "x".repeat(1234) }]);
        let answer = bed
            .chat(&json!({ "messages": messages, "stream": stream }))
            .await;
        let (message, error) = answer.error();
        assert_eq!(
            (answer.status, error["code"].as_str()),
            (400, Some("context_length_exceeded"))
        );
        assert!(
            message.contains("1234") && message.contains("1000"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn invalid_requests_have_the_right_status_in_openais_format() {
    let bed = Bed::new(&["x"]).await;
    let good = chat(&json!({})).to_string();
    let large = "x".repeat(LONGEST_BODY + 1);
    for (method, path, headers, body, status) in [
        ("POST", CHAT, JSON, "{", 400),
        ("POST", CHAT, JSON, "{\"messages\": 1}", 400),
        (
            "POST",
            CHAT,
            "Content-Type: text/plain\r\n",
            good.as_str(),
            400,
        ),
        ("POST", CHAT, "", good.as_str(), 400),
        ("POST", "/v1/embeddings", JSON, "{}", 404),
        ("GET", "/v1/models/other", "", "", 404),
        ("GET", CHAT, "", "", 405),
        ("POST", CHAT, JSON, large.as_str(), 413),
    ] {
        let answer = bed.send(method, path, headers, body).await;
        assert_eq!(answer.status, status, "{method} {path} {}", answer.body);
        answer.error();
    }
    let answer = bed.chat(&json!({ "model": "gpt-17" })).await;
    let (message, error) = answer.error();
    assert_eq!(
        (answer.status, error["code"].as_str()),
        (404, Some("model_not_found"))
    );
    assert!(
        message.contains("gpt-17") && message.contains("tiny"),
        "{message}"
    );
}

#[tokio::test]
async fn models_health_and_metrics_are_answered() {
    let bed = Bed::new(&["x"]).await;
    let models = bed.get("/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "tiny");
    assert_eq!(models["data"][0]["context_window"], 1000);
    assert_eq!(bed.get("/v1/models/local").await.json()["id"], "tiny");
    assert_eq!(bed.get("/health").await.json()["status"], "ok");
    bed.chat(&json!({})).await;
    bed.chat(&json!({ "n": 2 })).await;
    let metrics = bed.get("/metrics").await;
    assert!(metrics.head.contains("text/plain; version=0.0.4"));
    for line in [
        "starling_requests_total{status=\"200\"} 4",
        "starling_requests_total{status=\"400\"} 1",
        "starling_prompt_tokens_total 7",
        "starling_cached_prompt_tokens_total 2",
        "starling_output_tokens_total 3",
        "starling_requests_waiting 0",
        "starling_requests_running 0",
        "starling_requests_cancelled_total 0",
        "starling_queue_seconds_bucket{le=\"+Inf\"} 1",
        "starling_queue_seconds_count 1",
        "process_resident_memory_bytes 4096",
    ] {
        assert!(
            metrics.body.lines().any(|one| one == line),
            "{line} in\n{}",
            metrics.body
        );
    }
}

#[tokio::test]
async fn request_for_another_host_is_refused() {
    let bed = Bed::new(&["x"]).await;
    for host in ["evil.example", "localhost.evil.example:8765", "192.168.0.7"] {
        let answer = bed
            .send("GET", "/v1/models", &format!("Host: {host}\r\n"), "")
            .await;
        assert_eq!(answer.status, 403, "{host}");
        assert!(answer.error().0.contains(host));
    }
    for host in ["localhost", "[::1]:8765", "127.0.0.1:1"] {
        let answer = bed
            .send("GET", "/v1/models", &format!("Host: {host}\r\n"), "")
            .await;
        assert_eq!(answer.status, 200, "{host}");
    }
    let mut remote = options();
    remote.remote = true;
    remote.key = Some("secret".to_owned());
    let bed = Bed::with(scripted(&["x"]), remote).await;
    let headers = "Host: box.example\r\nAuthorization: Bearer secret\r\n";
    assert_eq!(bed.send("GET", "/v1/models", headers, "").await.status, 200);
}

#[tokio::test]
async fn api_key_is_required_except_for_health() {
    let mut with_key = options();
    with_key.key = Some("secret".to_owned());
    let bed = Bed::with(scripted(&["x"]), with_key).await;
    for headers in [
        "",
        "Authorization: Bearer wrong\r\n",
        "Authorization: secret\r\n",
    ] {
        for path in ["/v1/models", "/metrics", "/nothing"] {
            let answer = bed.send("GET", path, headers, "").await;
            let (_, error) = answer.error();
            assert_eq!(
                (answer.status, error["code"].as_str()),
                (401, Some("invalid_api_key"))
            );
        }
    }
    let headers = "Authorization: Bearer secret\r\n";
    assert_eq!(bed.send("GET", "/v1/models", headers, "").await.status, 200);
    assert_eq!(bed.get("/health").await.status, 200);
}

#[tokio::test]
async fn call_path_offers_the_complete_model_interface() {
    let bed = Bed::new(&["Hel", "lo"]).await;
    bed.chat(&json!({})).await;
    let mut request = bed.model.requests.lock().unwrap()[0].clone();
    request.beginning = "def".to_owned();
    let body = serde_json::to_string(&request).unwrap();
    assert_eq!(bed.send("POST", CALL_PATH, JSON, &body).await.status, 401);
    let headers = format!("{JSON}Authorization: Bearer call key\r\n");
    let answer = bed.send("POST", CALL_PATH, &headers, &body).await;
    let events = answer
        .body
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let events: Vec<CallEvent> = events.collect();
    let texts = ["Hel", "lo"].map(|text| CallEvent::Delta(text.to_owned()));
    assert_eq!(
        events[..3],
        [CallEvent::Started, texts[0].clone(), texts[1].clone()]
    );
    let CallEvent::Done(reply) = &events[3] else {
        panic!("no reply");
    };
    assert_eq!(reply.as_ref().as_ref().unwrap().text, "Hello");
    assert_eq!(bed.model.requests.lock().unwrap()[1], request);
}
