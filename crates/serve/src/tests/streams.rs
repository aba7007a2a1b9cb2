//! Tests of streamed answers.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::bed::{Bed, JSON};

/// Returns the chunks without their ids and times. Panics if two chunks have different ids.
fn chunks(events: &[&str]) -> Vec<Value> {
    let (end, events) = events.split_last().unwrap();
    assert_eq!(*end, "[DONE]");
    let mut chunks: Vec<Value> = events
        .iter()
        .map(|one| serde_json::from_str(one).unwrap())
        .collect();
    let id = chunks[0]["id"].clone();
    for chunk in &mut chunks {
        let fields = chunk.as_object_mut().unwrap();
        assert_eq!(fields.remove("id").unwrap(), id);
        assert!(fields.remove("created").unwrap().is_u64());
        assert_eq!(fields.remove("model").unwrap(), "tiny");
    }
    chunks
}

fn chunk(delta: &Value, finish: &Value) -> Value {
    json!({ "object": "chat.completion.chunk", "choices": [
        { "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }] })
}

#[tokio::test]
async fn chat_streams_role_text_and_finish_reason() {
    let bed = Bed::new(&["Hel", "lo"]).await;
    let answer = bed.chat(&json!({ "stream": true })).await;
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: text/event-stream"));
    let wanted = [
        chunk(&json!({ "role": "assistant", "content": "" }), &Value::Null),
        chunk(&json!({ "content": "Hel" }), &Value::Null),
        chunk(&json!({ "content": "lo" }), &Value::Null),
        chunk(&json!({}), &json!("stop")),
    ];
    assert_eq!(chunks(&answer.events()), wanted);
}

#[tokio::test]
async fn requested_usage_is_the_last_chunk_and_has_no_choices() {
    let bed = Bed::new(&["Hello"]).await;
    let more = json!({ "stream": true, "stream_options": { "include_usage": true } });
    let answer = bed.chat(&more).await;
    let chunks = chunks(&answer.events());
    let (last, others) = chunks.split_last().unwrap();
    assert!(
        others
            .iter()
            .all(|chunk| chunk.get("usage") == Some(&Value::Null))
    );
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["total_tokens"], 10);
}

#[tokio::test]
async fn tool_call_is_streamed_as_one_chunk_without_its_text() {
    let bed = Bed::new(&[
        "I look.\n<tool",
        "_call>{\"name\": \"look\", \"arguments\": {}}",
    ])
    .await;
    let tools = json!([{ "type": "function", "function": { "name": "look" } }]);
    let answer = bed.chat(&json!({ "stream": true, "tools": tools })).await;
    let chunks = chunks(&answer.events());
    assert_eq!(
        chunks[1],
        chunk(&json!({ "content": "I look." }), &Value::Null)
    );
    let call = &chunks[2]["choices"][0]["delta"]["tool_calls"][0];
    assert_eq!(
        (&call["index"], &call["type"]),
        (&json!(0), &json!("function"))
    );
    assert_eq!(
        call["function"],
        json!({ "name": "look", "arguments": "{}" })
    );
    assert_eq!(chunks[3], chunk(&json!({}), &json!("tool_calls")));
    assert_eq!(chunks.len(), 4);
}

#[tokio::test]
async fn completion_streams_text() {
    let bed = Bed::new(&["a", "b"]).await;
    let body = json!({ "model": "tiny", "prompt": "x", "stream": true }).to_string();
    let answer = bed.send("POST", "/v1/completions", JSON, &body).await;
    let part = |text: &str, finish: &Value| {
        json!({ "object": "text_completion", "choices": [
            { "index": 0, "text": text, "logprobs": null, "finish_reason": finish }] })
    };
    let wanted = [
        part("a", &Value::Null),
        part("b", &Value::Null),
        part("", &json!("stop")),
    ];
    assert_eq!(chunks(&answer.events()), wanted);
}
