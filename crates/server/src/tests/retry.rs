//! Tests of runs that fail because their model is not available: their task can be started again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::restart::trajectory;
use super::{begin, next_event, refusal};
use crate::testing::*;
use crate::{OpenRequest, Services};
use starling_core::{Approval, AskIntent, Driver, Limits};
use starling_models::weights::{DEFAULT_MODEL, WeightsError};
use starling_swarm::{Event, RunId, StopReason, Task};

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

/// The tasks of the runs that servers started, with the requests to open them.
type Started = Arc<Mutex<Vec<(Task, OpenRequest)>>>;

/// Returns a client of a server whose configuration says `approve`. Its runs wait until they are
/// cancelled.
async fn configured(folder: tempfile::TempDir, approve: Approval, started: &Started) -> TestClient {
    let opened: Arc<Mutex<Option<OpenRequest>>> = Arc::default();
    let (known, asked) = (Arc::clone(started), Arc::clone(&opened));
    let root = folder.path().canonicalize().unwrap().display().to_string();
    let start = scripted(move |scene: RunScript| {
        let opening = asked.lock().unwrap().take().unwrap();
        let task = scene.task.clone();
        let mut known = known.lock().unwrap();
        known.push((task.clone(), opening));
        let run = RunId(format!("run{}", known.len()));
        let root = root.clone();
        async move {
            scene.log.event(Event::RunStarted {
                run,
                task: task.text,
                driver: task.driver,
                models: Vec::new(),
                replayed: false,
                limits: task.limits,
                root,
                request: task.request,
            });
            scene.cancel.cancelled().await;
            scene.log.event(finished(StopReason::Cancelled));
        }
    });
    let services = services(start, &folder.path().join(".trajectories"));
    let open = Arc::clone(&services.open);
    let services = Services {
        open: Arc::new(move |opening| {
            *opened.lock().unwrap() = Some(opening.clone());
            let ready = open(opening);
            Box::pin(async move {
                let mut ready = ready.await?;
                ready.defaults.approval = approve;
                Ok(ready)
            })
        }),
        ..services
    };
    let client = TestClient::over(services, folder);
    client.initialize(plugin()).await;
    client
}

/// Waits until a number of runs were started.
async fn until_started(started: &Started, count: usize) {
    while started.lock().unwrap().len() < count {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Runs the task of an earlier server's run again, as soon as the run is restored and has ended.
async fn retry_when_restored(client: &TestClient, run: &str) {
    let argument = json!({"command": "starling.retry", "arguments": [{"run": run}]});
    loop {
        let connection = &client.connection;
        let asked = connection.request("workspace/executeCommand", argument.clone());
        if asked.await.is_ok() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn retry_uses_the_parameters_of_the_first_run_also_after_a_restart() {
    let folder = folder(&[("a.py", "old\n")]);
    let started = Started::default();
    let mut client = configured(folder, Approval::Auto, &started).await;
    let wish = json!({
        "task": "tidy up", "driver": "single", "approve": "ask", "ask_intent": "always",
        "limits": {"calls": 3, "seconds": 77}, "begin": ["a.py::f"], "model": "openai:m",
        "test": "make check", "require_tests": true,
    });
    let run = client.execute("starling.run", wish).await["run"].clone();
    until_started(&started, 1).await;
    // Once in the same server, and once in the next one.
    client.execute("starling.cancel", json!({"run": run})).await;
    loop {
        let event = next_event(&mut client, run.as_str().unwrap()).await;
        if event["event"]["event"] == "run_finished" {
            break;
        }
        assert_eq!(event["event"]["request"], Value::Null, "not for the client");
    }
    client.execute("starling.retry", json!({"run": run})).await;
    until_started(&started, 2).await;
    client.connection.notify("exit", Value::Null);
    client.server.await.unwrap();
    let client = configured(client.folder, Approval::Auto, &started).await;
    retry_when_restored(&client, "run2").await;
    until_started(&started, 3).await;
    let started = started.lock().unwrap();
    for (task, opening) in started.iter() {
        assert_eq!(task.approval, Approval::Ask);
        assert_eq!(task.ask_intent, AskIntent::Always);
        assert_eq!(task.driver, Driver::Single);
        assert_eq!((task.limits.calls, task.limits.seconds), (3, 77));
        assert_eq!(task.begin, [symbol("a.py::f")]);
        assert!(task.require_tests);
        assert_eq!(opening.model.as_deref(), Some("openai:m"));
        assert_eq!(opening.test.as_deref(), Some("make check"));
    }
}

#[tokio::test]
async fn retry_of_a_run_without_recorded_parameters_asks_before_each_change() {
    for is_ended in [false, true] {
        let folder = folder(&[("a.py", "old\n")]);
        let mut events = vec![said("go")];
        events.extend(is_ended.then(|| finished(StopReason::Settled)));
        trajectory(folder.path(), "r1", folder.path(), events);
        let started = Started::default();
        let mut client = configured(folder, Approval::Auto, &started).await;
        retry_when_restored(&client, "r1").await;
        loop {
            let (_, told) = client.next_of("window/showMessage").await;
            let told = told["message"].as_str().unwrap();
            if told.contains("parameters of the first run are not known") {
                assert!(told.contains("your review of every change"), "{told}");
                break;
            }
        }
        until_started(&started, 1).await;
        let started = started.lock().unwrap();
        assert_eq!(started[0].0.approval, Approval::Ask);
        assert_eq!(started[0].0.limits, Limits::default());
    }
}

#[tokio::test]
async fn run_does_not_start_if_its_record_cannot_be_written() {
    // The directory of the trajectories is a file.
    let folder = folder(&[("a.py", "old\n"), (".trajectories", "")]);
    let start = scripted(async |scene: RunScript| scene.log.event(said("started")));
    let services = services(start, &folder.path().join(".trajectories"));
    let mut client = TestClient::over(services, folder);
    client.initialize(plugin()).await;
    let run = begin(&client, "tidy up").await;
    let end = next_event(&mut client, &run).await;
    assert_eq!(end["event"]["stop_reason"]["reason"], "failed", "{end}");
    let why = end["event"]["summary"].as_str().unwrap();
    assert!(why.contains("cannot be written"), "{why}");
    assert!(why.contains("STARLING_CACHE_DIR"), "{why}");
}
