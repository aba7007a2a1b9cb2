use serde_json::{Value, json};

use crate::RunStarter;
use crate::testing::*;
use starling_core::{Effort, LspAnswer, Relation, TextRequest};
use starling_rpc::Incoming;
use starling_swarm::StopReason;
use starling_text::ContentHash;

/// The text in the editor. The file on disk has another text.
const TEXT: &str = "def höher(): pass\nhöher()\n";

/// Returns a starter whose runs request the references of a function in `text` and log the answer.
fn asks_about(text: &'static str) -> RunStarter {
    scripted(async move |scene: RunScript| {
        let request = TextRequest {
            file: file("a.py"),
            text: text.into(),
            overlay: Vec::new(),
            effort: Effort::Fast,
            deadline: std::time::Duration::from_secs(5),
        };
        let language = &scene.outside.language;
        let told = match language.spots(request, 4, Relation::References).await {
            LspAnswer::Known { tool, value } => {
                let spot = |spot: &starling_core::NameLocation| {
                    assert_eq!(spot.of, ContentHash::of(text));
                    format!("{} {:?}", spot.file, spot.range)
                };
                let spots: Vec<String> = value.iter().map(spot).collect();
                format!("{tool}: {}", spots.join(", "))
            }
            LspAnswer::Unknown { reason } => reason,
        };
        scene.log.event(said(&told));
        scene.log.event(finished(StopReason::Settled));
    })
}

/// The reply of the scripted editor: a value, an error, or no reply.
enum EditorReply {
    This(Value),
    No,
    Nothing,
}

/// Returns the answer that the run received, and the requests that the editor received.
async fn heard(text: &'static str, bridge: Value, says: EditorReply) -> (String, Vec<Value>) {
    let mut client = TestClient::new(asks_about(text));
    client
        .initialize(json!({"experimental": {"starling": {"bridge": bridge}}}))
        .await;
    let document = json!({"uri": client.uri(), "languageId": "python", "version": 7, "text": TEXT});
    let open = json!({ "textDocument": document });
    client.connection.notify("textDocument/didOpen", open);
    client.execute("starling.run", json!({"task": "x"})).await;
    let mut asked = Vec::new();
    loop {
        match client.next().await {
            Incoming::Request { id, method, params } => {
                asked.push(json!({"method": method, "params": params}));
                match &says {
                    EditorReply::This(answer) => client.connection.reply(id, Ok(answer.clone())),
                    EditorReply::No => client.connection.reply(id, Err("modified".to_owned())),
                    EditorReply::Nothing => {}
                }
            }
            Incoming::Notification { method, params } if method == "starling/event" => {
                if let Some(text) = params["event"]["text"].as_str() {
                    return (text.to_owned(), asked);
                }
            }
            Incoming::Notification { .. } => {}
        }
    }
}

fn range(line: u32, start: u32, end: u32) -> Value {
    json!({"start": {"line": line, "character": start}, "end": {"line": line, "character": end}})
}

#[tokio::test]
async fn editors_references_are_used_if_the_editor_has_the_same_text() {
    let elsewhere = json!({"uri": "file:///elsewhere/b.py", "range": range(0, 0, 1)});
    let (told, asked) = heard(
        TEXT,
        json!(["references"]),
        EditorReply::This(json!([elsewhere])),
    )
    .await;
    assert_eq!(
        told, "the editor: ",
        "what lies outside of the folder is left out"
    );
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0]["method"], "starling/references");
    let params = &asked[0]["params"];
    assert_eq!(params["version"], 7);
    assert_eq!(params["position"], json!({"line": 0, "character": 4}));
    let asked_uri = params["textDocument"]["uri"].as_str().unwrap();
    assert!(asked_uri.ends_with("/a.py"), "{asked_uri}");
}

#[tokio::test]
async fn references_from_the_editor_exclude_the_definition() {
    let mut client = TestClient::new(asks_about(TEXT));
    client
        .initialize(json!({"experimental": {"starling": {"bridge": ["references"]}}}))
        .await;
    let document = json!({"uri": client.uri(), "languageId": "python", "version": 7, "text": TEXT});
    let open = json!({ "textDocument": document });
    client.connection.notify("textDocument/didOpen", open);
    client.execute("starling.run", json!({"task": "x"})).await;
    let (id, _) = client.next_of("starling/references").await;
    let places = json!([
        {"uri": client.uri(), "range": range(0, 4, 9)},
        {"uri": client.uri(), "range": range(1, 0, 5)},
    ]);
    client.connection.reply(id, Ok(places));
    let (_, params) = client.next_of("starling/event").await;
    let told = params["event"]["text"].as_str().unwrap();
    // `ö` is two bytes and one UTF-16 unit.
    assert_eq!(
        told,
        format!(
            "the editor: a.py {:?}",
            starling_text::ByteRange::new(19, 25)
        )
    );
}

#[tokio::test]
async fn own_language_servers_answer_if_the_editor_fails() {
    let own = "there is no language server";
    for says in [
        EditorReply::This(Value::Null),
        EditorReply::No,
        EditorReply::This(json!([{"colour": 3}])),
    ] {
        let (told, asked) = heard(TEXT, json!(["references"]), says).await;
        assert_eq!((told.as_str(), asked.len()), (own, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn own_language_servers_answer_if_the_editor_is_silent_for_two_seconds() {
    let (told, asked) = heard(TEXT, json!(["references"]), EditorReply::Nothing).await;
    assert_eq!(
        (told.as_str(), asked.len()),
        ("there is no language server", 1)
    );
}

#[tokio::test]
async fn editor_with_another_text_or_without_the_provider_is_not_asked() {
    let places = || EditorReply::This(json!([]));
    for (text, bridge) in [
        ("def f(): pass\n", json!(["references"])),
        (TEXT, json!(["definition", "diagnostics"])),
        (TEXT, json!([])),
    ] {
        let (told, asked) = heard(text, bridge, places()).await;
        assert_eq!(
            (told.as_str(), asked.len()),
            ("there is no language server", 0)
        );
    }
}
