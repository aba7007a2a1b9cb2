//! Tests of runs that fail because their model is not available: their task can be started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{begin, next_event, refusal};
use crate::Services;
use crate::testing::*;
use starling_core::Driver;
use starling_models::weights::{DEFAULT_MODEL, WeightsError};
use starling_swarm::StopReason;

/// The capabilities of a plugin with views of its own.
fn plugin() -> Value {
    json!({"experimental": {"starling": {"commands": []}}})
}

/// Returns a client of a server without weights; `fetch` provides them.
fn without_weights() -> TestClient {
    let folder = folder(&[("a.py", "old\n")]);
    let start = scripted(async |scene: RunScript| {
        assert_eq!(
            scene.task.driver,
            Driver::Single,
            "as the first request said"
        );
        scene.log.event(said(&scene.task.text));
        scene.log.event(finished(StopReason::Settled));
    });
    let services = services(start, &folder.path().join(".trajectories"));
    let here = Arc::new(AtomicBool::new(false));
    let (open, there) = (Arc::clone(&services.open), Arc::clone(&here));
    let services = Services {
        open: Arc::new(move |opening| {
            let (opened, here) = (open(opening), Arc::clone(&there));
            Box::pin(async move {
                if !here.load(Ordering::SeqCst) {
                    let name = DEFAULT_MODEL.to_owned();
                    let path = "/cache/weights.gguf".into();
                    return Err(WeightsError::Missing { name, path }.into());
                }
                opened.await
            })
        }),
        fetch: Arc::new(move |model, report| {
            assert_eq!(model, DEFAULT_MODEL);
            report(1, 2);
            here.store(true, Ordering::SeqCst);
            Ok(())
        }),
        ..services
    };
    TestClient::over(services, folder)
}

#[tokio::test]
async fn retry_downloads_missing_weights() {
    let mut client = without_weights();
    client.initialize(plugin()).await;
    let wish = json!({"task": "tidy up", "driver": "single"});
    let begun = client.execute("starling.run", wish).await;
    let run = begun["run"].clone();
    let (_, offered) = client.next_of("starling/remedy").await;
    assert_eq!(offered["run"], run);
    assert_eq!(offered["task"], "tidy up");
    assert_eq!(offered["remedy"], "download");
    assert_eq!(offered["bytes"], 1_117_320_768_u64);
    let state = client.connection.request("starling/state", Value::Null);
    assert_eq!(
        state.await.unwrap()["runs"][0]["remedy"]["remedy"],
        "download"
    );
    let again = json!({"run": run, "download": true});
    let again = client.execute("starling.retry", again).await["run"].clone();
    assert_ne!(again, run);
    let (_, told) = client.next_of("starling/download").await;
    assert_eq!(
        told,
        json!({"run": again, "model": DEFAULT_MODEL, "bytes": 1, "total": 2})
    );
    let event = next_event(&mut client, again.as_str().unwrap()).await;
    assert_eq!(event["event"]["text"], "tidy up");
    let end = next_event(&mut client, again.as_str().unwrap()).await;
    assert_eq!(end["event"]["stop_reason"]["reason"], "settled");
    let said = refusal(
        &client,
        "starling.retry",
        json!({"run": again, "download": true}),
    )
    .await;
    assert!(said.contains("needs no download"), "{said}");
}

#[tokio::test]
async fn missing_weights_can_be_downloaded_with_a_code_action() {
    let mut client = without_weights();
    client.initialize_as(json!({})).await;
    let wish = json!({"task": "tidy up", "driver": "single"});
    client.execute("starling.run", wish).await;
    let (_, told) = client.next_of("window/showMessage").await;
    let text = told["message"].as_str().unwrap();
    let title = "Starling: download (1.1 GB), then: tidy up";
    assert!(text.contains(&format!("`{title}`")), "{text}");
    let (uri, at) = (client.uri(), json!({"line": 0, "character": 0}));
    let open = json!({"uri": uri, "languageId": "python", "version": 1, "text": "old\n"});
    let open = json!({"textDocument": open});
    client.connection.notify("textDocument/didOpen", open);
    let params = json!({
        "textDocument": {"uri": uri}, "range": {"start": at, "end": at},
        "context": {"diagnostics": []},
    });
    let request = client.connection.request("textDocument/codeAction", params);
    let actions = request.await.unwrap();
    let mut actions = actions.as_array().unwrap().iter();
    let download = &actions.find(|one| one["title"] == title).unwrap()["command"];
    let arguments = download["arguments"][0].clone();
    client.execute("starling.retry", arguments).await;
    loop {
        let state = client.connection.request("starling/state", Value::Null);
        let state = state.await.unwrap();
        let ended = state["runs"].as_array().unwrap().iter();
        if ended
            .filter(|run| run["stop_reason"]["reason"] == "settled")
            .count()
            == 1
        {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn retry_of_an_active_run_is_rejected() {
    let mut client = TestClient::new(super::chatty());
    client.initialize(plugin()).await;
    let run = begin(&client, "x").await;
    next_event(&mut client, &run).await;
    let said = refusal(&client, "starling.retry", json!({"run": run})).await;
    assert!(said.contains("is still active"), "{said}");
    client.execute("starling.cancel", json!({"run": run})).await;
}
