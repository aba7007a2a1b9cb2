//! Project settings that are ignored are reported, also when they change while the server runs.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::lenses::{full, project};
use super::{begin, brief};
use crate::testing::*;

const CHANGED: &str = ".starling/config.toml: not read: it changed since the project was trusted";

/// Returns a client, and the settings that its project has and that are ignored.
fn changing() -> (TestClient, Arc<Mutex<Vec<String>>>) {
    let folder = project();
    let ignored: Arc<Mutex<Vec<String>>> = Arc::default();
    let mut services = services(brief(), &folder.path().join(".trajectories"));
    let look = Arc::clone(&ignored);
    services.ignored = Arc::new(move |_| look.lock().unwrap().clone());
    (TestClient::over(services, folder), ignored)
}

/// Returns the ignored settings of the next status that differs from `before`.
async fn ignored_after(client: &mut TestClient, before: &Value) -> Value {
    loop {
        let (_, status) = client.next_of("starling/status").await;
        let ignored = &status["ignored"];
        if ignored != before {
            return ignored.clone();
        }
    }
}

fn notify_of_change(client: &TestClient) {
    let changes = json!({"changes": [{"uri": client.uri(), "type": 2}]});
    let changed = "workspace/didChangeWatchedFiles";
    client.connection.notify(changed, changes);
}

#[tokio::test(start_paused = true)]
async fn settings_that_are_ignored_since_a_change_are_reported_once() {
    for by_run in [true, false] {
        let (mut client, ignored) = changing();
        client.initialize(full()).await;
        begin(&client, "x").await;
        *ignored.lock().unwrap() = vec![CHANGED.to_owned()];
        match by_run {
            true => drop(begin(&client, "x").await),
            false => notify_of_change(&client),
        }
        let (_, said) = client.next_of("window/showMessage").await;
        assert_eq!(said["type"], 2, "{said}");
        let said = said["message"].as_str().unwrap().to_owned();
        assert_eq!(said, format!("Starling: {CHANGED}"));
        let now = ignored_after(&mut client, &Value::Null).await;
        assert_eq!(now, json!([CHANGED]));
        // The file is trusted again, and then changes once more.
        begin(&client, "x").await;
        ignored.lock().unwrap().clear();
        notify_of_change(&client);
        assert_eq!(ignored_after(&mut client, &now).await, Value::Null);
        *ignored.lock().unwrap() = vec![CHANGED.to_owned()];
        notify_of_change(&client);
        notify_of_change(&client);
        let mut messages = 0;
        let over = tokio::time::sleep(std::time::Duration::from_secs(60));
        tokio::pin!(over);
        loop {
            tokio::select! {
                (_, said) = client.next_of("window/showMessage") => {
                    messages += usize::from(said["message"].as_str().unwrap().contains(CHANGED));
                }
                () = &mut over => break,
            }
        }
        assert_eq!(messages, 1);
    }
}
