//! Tests of the queue and of clients that disconnect.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::Ordering;

use serde_json::json;
use tokio::io::AsyncReadExt;

use super::bed::{Bed, options, read};

#[tokio::test]
async fn full_queue_returns_status_429_with_a_delay() {
    let bed = Bed::held(&["x"], options()).await;
    let running = bed.open_chat(&json!({})).await;
    bed.until("starling_requests_running 1").await;
    let waiting = [
        bed.open_chat(&json!({})).await,
        bed.open_chat(&json!({})).await,
    ];
    bed.until("starling_requests_waiting 2").await;
    let answer = bed.chat(&json!({})).await;
    let (message, error) = answer.error();
    assert_eq!(
        (answer.status, error["code"].as_str()),
        (429, Some("queue_full"))
    );
    assert_eq!(error["type"], "rate_limit_error");
    assert!(
        message.contains('2') && answer.head.contains("retry-after: 2"),
        "{}",
        answer.head
    );
    bed.model.steps.add_permits(6);
    for stream in [running].into_iter().chain(waiting) {
        assert_eq!(read(stream).await.status, 200);
    }
    bed.until("starling_queue_seconds_count 3").await;
}

#[tokio::test]
async fn client_that_disconnects_ends_its_request_at_once() {
    for stream in [false, true] {
        let bed = Bed::held(&["x", "y"], options()).await;
        let mut running = bed.open_chat(&json!({ "stream": stream })).await;
        bed.until("starling_requests_running 1").await;
        let waiting = bed.open_chat(&json!({ "stream": stream })).await;
        bed.until("starling_requests_waiting 1").await;
        if stream {
            bed.model.steps.add_permits(1);
            running.read_exact(&mut [0; 16]).await.unwrap();
        }
        drop((running, waiting));
        bed.until("starling_requests_cancelled_total 2").await;
        bed.until("starling_requests_running 0").await;
        bed.until("starling_requests_waiting 0").await;
        assert_eq!(bed.model.dropped.load(Ordering::SeqCst), 2);
        bed.model.steps.add_permits(3);
        assert_eq!(bed.chat(&json!({})).await.status, 200, "the model is free");
    }
}
