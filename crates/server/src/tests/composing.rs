//! Requests of the view in which a task is written: mentions, models, and the model of a run.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{begin, next_event};
use crate::Services;
use crate::protocol::{ModelItem, ModelsReply};
use crate::testing::*;
use starling_swarm::StopReason;

fn quiet(files: &[(&str, &str)]) -> TestClient {
    let folder = folder(files);
    let start = scripted(async |_scene: RunScript| {});
    let services = services(start, &folder.path().join(".trajectories"));
    TestClient::over(services, folder)
}

async fn mentions(client: &TestClient, mention: &str) -> Vec<(String, String)> {
    let request = client
        .connection
        .request("starling/mentions", json!({"mention": mention}));
    let reply = request.await.unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = reply["items"].as_array().unwrap().iter();
    items
        .map(|item| (text(&item["text"]), text(&item["detail"])))
        .collect()
}

#[tokio::test]
async fn mentions_of_files_and_symbols_are_completed() {
    let client = quiet(&[
        (
            "shop/cart.py",
            "class Cart:\n    def total(self): pass\n\ndef total(): pass\n",
        ),
        ("shop/discarted.py", "def total(): pass\n"),
        ("README.md", "Shop\n"),
    ]);
    client.initialize(json!({})).await;
    let texts = |found: Vec<(String, String)>| -> Vec<String> {
        found.into_iter().map(|(text, _)| text).collect()
    };
    let files = texts(mentions(&client, "@cart").await);
    assert_eq!(files, ["@shop/cart.py", "@shop/discarted.py"]);
    assert_eq!(texts(mentions(&client, "@read").await), ["@README.md"]);
    let symbols = mentions(&client, "#Cart.t").await;
    let cart_total = ("#Cart.total".to_owned(), "shop/cart.py:2".to_owned());
    assert_eq!(symbols[0], cart_total);
    // If several symbols have the same name, their completions contain the path.
    let symbols = texts(mentions(&client, "#total").await);
    assert!(
        symbols.contains(&"#shop/discarted.py::total".to_owned()),
        "{symbols:?}"
    );
    assert!(
        symbols.contains(&"#shop/cart.py::total".to_owned()),
        "{symbols:?}"
    );
    assert_eq!(mentions(&client, "cart").await, []);
}

#[tokio::test]
async fn models_request_lists_the_configured_models() {
    let folder = folder(&[("a.py", "old\n")]);
    let root = folder.path().canonicalize().unwrap();
    let services = services(
        scripted(async |_: RunScript| {}),
        &folder.path().join(".trajectories"),
    );
    let services = Services {
        models: Arc::new(move |of| {
            assert_eq!(of.canonicalize().unwrap(), root);
            Ok(ModelsReply {
                chosen: Some("big".to_owned()),
                models: vec![ModelItem {
                    name: "big".to_owned(),
                    detail: "big-1 at http://x".to_owned(),
                }],
                keys: Vec::new(),
            })
        }),
        ..services
    };
    let client = TestClient::over(services, folder);
    client.initialize(json!({})).await;
    // Some clients cannot send a request without parameters.
    for params in [Value::Null, json!({})] {
        let reply = client.connection.request("starling/models", params);
        assert_eq!(
            reply.await.unwrap(),
            json!({
                "chosen": "big", "keys": [],
                "models": [{"name": "big", "detail": "big-1 at http://x"}],
            })
        );
    }
}

#[tokio::test]
async fn retried_run_can_use_another_model() {
    let folder = folder(&[("a.py", "old\n")]);
    let start = scripted(async |scene: RunScript| {
        scene.log.event(said("done"));
        scene.log.event(finished(StopReason::Settled));
    });
    let services = services(start, &folder.path().join(".trajectories"));
    let asked: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let (open, seen) = (Arc::clone(&services.open), Arc::clone(&asked));
    let services = Services {
        open: Arc::new(move |opening| {
            seen.lock().unwrap().push(opening.model.clone());
            open(opening)
        }),
        ..services
    };
    let mut client = TestClient::over(services, folder);
    let plugin = json!({"experimental": {"starling": {"commands": []}}});
    client.initialize(plugin).await;
    let plain = begin(&client, "x").await;
    next_event(&mut client, &plain).await;
    next_event(&mut client, &plain).await;
    let argument = json!({"task": "x", "model": "openai:one"});
    let run = client.execute("starling.run", argument).await["run"].clone();
    next_event(&mut client, run.as_str().unwrap()).await;
    next_event(&mut client, run.as_str().unwrap()).await;
    for argument in [
        json!({"run": run}),
        json!({"run": run, "model": "openai:two"}),
    ] {
        let again = loop {
            let request = json!({"command": "starling.retry", "arguments": [argument]});
            let reply = client
                .connection
                .request("workspace/executeCommand", request);
            // The client receives the end of the run a moment before the server accepts a retry.
            if let Ok(reply) = reply.await {
                break reply["run"].clone();
            }
            tokio::task::yield_now().await;
        };
        next_event(&mut client, again.as_str().unwrap()).await;
        next_event(&mut client, again.as_str().unwrap()).await;
    }
    let one = Some("openai:one".to_owned());
    let two = Some("openai:two".to_owned());
    assert_eq!(*asked.lock().unwrap(), [None, one.clone(), one, two]);
}
