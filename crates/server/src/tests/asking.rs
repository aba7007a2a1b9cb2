//! Tests of questions: answers, cancellation and sessions.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tower_lsp::lsp_types::Url;

use super::lenses::{full, project};
use crate::Services;
use crate::testing::*;
use starling_core::*;

/// A model that always gives the same answer and stores the requests.
struct FixedAnswerModel {
    says: Option<&'static str>,
    profile: ModelProfile,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl ChatModel for FixedAnswerModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        watch: &dyn ChatWatch,
    ) -> Result<ChatReply, ModelError> {
        let texts = request.messages.iter().map(Message::text);
        let prompt: Vec<&str> = texts.collect();
        self.asked.lock().unwrap().push(prompt.join("\n"));
        let Some(text) = self.says else {
            return std::future::pending().await;
        };
        watch.delta(text);
        Ok(ChatReply {
            model: "speaker".to_owned(),
            text: text.to_owned(),
            tool_calls: Vec::new(),
            finish: Finish::Stop,
            usage: Usage::default(),
            cost: Dollars(0.0),
            calls: 1,
        })
    }
}

fn client(says: Option<&'static str>) -> (TestClient, Arc<FixedAnswerModel>) {
    let profile = ModelProfile {
        name: "speaker".to_owned(),
        context_window: Tokens(50_000),
        max_output: Tokens(2_000),
        tool_calling: ToolCalling::Native,
        replayed: false,
        price: Some(Price::FREE),
    };
    let speaker = Arc::new(FixedAnswerModel {
        says,
        profile,
        asked: Mutex::default(),
    });
    let folder = project();
    let start = scripted(async |_scene: RunScript| {});
    let services = services(start, &folder.path().join(".trajectories"));
    let (open, model) = (services.open, Arc::clone(&speaker));
    let services = Services {
        open: Arc::new(move |opening| {
            let (opened, model) = (open(opening), Arc::clone(&model));
            Box::pin(async move {
                let mut opened = opened.await?;
                (opened.models.scout, opened.models.agent) = (model.clone(), model);
                Ok(opened)
            })
        }),
        ..services
    };
    (TestClient::over(services, folder), speaker)
}

async fn ask(client: &TestClient, argument: Value) -> String {
    let reply = client.execute("starling.ask", argument).await;
    reply["ask"].as_str().unwrap().to_owned()
}

/// Returns the notifications about a question until its end.
async fn told(client: &mut TestClient, ask: &str) -> Vec<Value> {
    let mut told = Vec::new();
    loop {
        let (_, params) = client.next_of("starling/answer").await;
        if params["ask"] != ask {
            continue;
        }
        let is_end = params.get("step").is_none();
        told.push(params);
        if is_end {
            return told;
        }
    }
}

#[tokio::test]
async fn question_streams_its_steps_and_then_the_answer() {
    let (mut client, speaker) = client(Some("`f` returns 1 [a.py:2].\n"));
    client.initialize(full()).await;
    let argument = json!({"question": "What?", "symbol": "a.py::f", "session": "panel"});
    let id = ask(&client, argument.clone()).await;
    let news = told(&mut client, &id).await;
    let steps: Vec<&Value> = news
        .iter()
        .filter_map(|one| one["step"].get("step"))
        .collect();
    assert_eq!(steps[0], "located");
    assert!(steps.contains(&&json!("said")), "{steps:?}");
    let answer = &news[news.len() - 1]["answer"];
    assert!(
        answer["answer"].as_str().unwrap().contains("returns 1"),
        "{answer}"
    );
    assert_eq!(answer["question"], "About `a.py::f`: What?");
    let state = client
        .connection
        .request("starling/state", Value::Null)
        .await
        .unwrap();
    let known = json!([{"ask": id, "question": "What?", "session": "panel", "ended": true}]);
    assert_eq!(state["asks"], known);
    // The next question of the same session uses the first answer; a question of another session
    // does not.
    let calls = speaker.asked.lock().unwrap().len();
    let second = ask(
        &client,
        json!({"question": "And then?", "session": "panel"}),
    )
    .await;
    told(&mut client, &second).await;
    let third = ask(&client, json!({"question": "And then?"})).await;
    told(&mut client, &third).await;
    let asked = speaker.asked.lock().unwrap();
    assert!(asked[calls].contains("About `a.py::f`"), "{}", asked[calls]);
    let last = &asked[asked.len() - 1];
    assert!(!last.contains("About `a.py::f`"), "{last}");
}

#[tokio::test]
async fn question_uses_open_buffers_except_those_of_ignored_files() {
    let (mut client, speaker) = client(Some("Nothing."));
    for (name, text) in [
        (".gitignore", "ignored.py\n"),
        (
            "ignored.py",
            "def wanted_on_disk():\n    return 'ON DISK'\n",
        ),
    ] {
        std::fs::write(client.folder.path().join(name), text).unwrap();
    }
    client.initialize(full()).await;
    for (name, text) in [
        ("a.py", "def wanted_unsaved():\n    return 'UNSAVED'\n"),
        (
            "ignored.py",
            "def wanted_ignored():\n    return 'IGNORED'\n",
        ),
    ] {
        let uri = Url::from_file_path(client.folder.path().join(name)).unwrap();
        let document = json!({"uri": uri, "languageId": "python", "version": 1, "text": text});
        let open = json!({"textDocument": document});
        client.connection.notify("textDocument/didOpen", open);
    }
    let question = "What do `wanted_unsaved` and `wanted_ignored` of `ignored.py` return?";
    let id = ask(&client, json!({"question": question})).await;
    told(&mut client, &id).await;
    let prompts = speaker.asked.lock().unwrap().join("\n");
    assert!(prompts.contains("'UNSAVED'"), "{prompts}");
    assert!(!prompts.contains("'IGNORED'"), "{prompts}");
    assert!(!prompts.contains("'ON DISK'"), "{prompts}");
}

#[tokio::test]
async fn question_can_be_cancelled() {
    let (mut client, speaker) = client(None);
    client.initialize(full()).await;
    let id = ask(&client, json!({"question": "What?"})).await;
    while speaker.asked.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    client.execute("starling.cancel", json!({"ask": id})).await;
    let news = told(&mut client, &id).await;
    assert_eq!(news[news.len() - 1]["error"], "the question was stopped");
    assert_eq!(speaker.asked.lock().unwrap().len(), 1, "no call after it");
    client.execute("starling.cancel", json!({"ask": id})).await;
    let said = super::refusal(&client, "starling.cancel", json!({"ask": "x"})).await;
    assert!(said.contains("there is no question `x`"), "{said}");
}

#[tokio::test]
async fn client_without_plugin_receives_answer_as_document() {
    let (mut client, _) = client(Some("`f` returns 1 [a.py:2].\n"));
    client
        .initialize_as(json!({"window": {"showDocument": {"support": true}}}))
        .await;
    ask(&client, json!({"question": "What?"})).await;
    let (id, params) = client.next_of("window/showDocument").await;
    assert!(params["uri"].as_str().unwrap().ends_with(".md"));
    client.connection.reply(id, Ok(json!({"success": true})));
}

#[tokio::test]
async fn model_error_ends_the_question() {
    let folder = project();
    let services = services(
        scripted(async |_scene: RunScript| {}),
        &folder.path().join(".trajectories"),
    );
    let mut client = TestClient::over(services, folder);
    client.initialize(full()).await;
    let id = ask(&client, json!({"question": "What?"})).await;
    let news = told(&mut client, &id).await;
    let error = &news[news.len() - 1];
    assert!(
        error["error"].as_str().is_some() || error["answer"]["ended"].is_object(),
        "{error}"
    );
}
