//! Tests of shutdown.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use serde_json::json;
use tokio::net::TcpStream;

use super::bed::{Bed, options, read};

async fn is_closed(bed: &Bed) {
    while TcpStream::connect(bed.address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn shutdown_refuses_new_requests_and_finishes_running_ones() {
    let mut bed = Bed::held(&["a", "b"], options()).await;
    let whole = bed.open_chat(&json!({})).await;
    bed.until("starling_requests_running 1").await;
    let streamed = bed.open_chat(&json!({ "stream": true })).await;
    bed.until("starling_requests_waiting 1").await;
    bed.stop();
    is_closed(&bed).await;
    bed.model.steps.add_permits(6);
    let whole = read(whole).await;
    assert_eq!(whole.json()["choices"][0]["message"]["content"], "ab");
    assert_eq!(*read(streamed).await.events().last().unwrap(), "[DONE]");
    bed.server.await.unwrap().unwrap();
}

#[tokio::test]
async fn requests_that_exceed_the_grace_period_end_with_an_error() {
    let mut short = options();
    short.grace = Duration::from_millis(50);
    let mut bed = Bed::held(&["a", "b"], short).await;
    let streamed = bed.open_chat(&json!({ "stream": true })).await;
    bed.until("starling_requests_running 1").await;
    let whole = bed.open_chat(&json!({})).await;
    bed.until("starling_requests_waiting 1").await;
    bed.stop();
    let whole = read(whole).await;
    assert_eq!(
        (whole.status, whole.error().1["code"].as_str()),
        (503, Some("server_ending"))
    );
    let streamed = read(streamed).await;
    assert!(
        streamed.events().last().unwrap().contains("server_ending"),
        "{}",
        streamed.body
    );
    bed.server.await.unwrap().unwrap();
}
