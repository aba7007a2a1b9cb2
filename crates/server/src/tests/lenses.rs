//! Lenses, actions, hovers and requests while a proposal waits.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::RunStarter;
use crate::samples::{BASE, asked, asked_with_need};
use crate::testing::*;
use starling_core::{ProposalView, Verdict};
use starling_rpc::Incoming;
use starling_swarm::{ActorId, Event, NeedsPerson, ProposalId, StopReason};

/// A run that begins a review, logs the verdict, and waits until it is cancelled.
pub fn proposing(proposals: &'static [(u32, &'static str)]) -> RunStarter {
    scripted(move |scene: RunScript| async move {
        for event in asked(proposals) {
            scene.log.event(event);
        }
        let lead = proposals[proposals.len() - 1];
        let view = ProposalView {
            id: lead.0,
            symbol: symbol(lead.1),
            symbols: vec![symbol(lead.1)],
            reason: String::new(),
            diff: String::new(),
            evidence: String::new(),
            version: None,
        };
        let verdict = scene
            .outside
            .approver
            .proposal(view)
            .await
            .verdict()
            .unwrap();
        for (id, _) in proposals {
            scene.log.event(Event::ProposalReviewed {
                proposal: ProposalId(*id),
                by: ActorId::User,
                verdict: verdict.clone(),
            });
        }
        if let Verdict::Reject { reason } = verdict {
            scene.log.event(said(&reason));
        }
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
}

pub fn project() -> TempDir {
    folder(&[("a.py", BASE)])
}

pub fn client(start: RunStarter, folder: TempDir) -> TestClient {
    let services = services(start, &folder.path().join(".trajectories"));
    TestClient::over(services, folder)
}

pub fn full() -> Value {
    json!({
        "workspace": {"codeLens": {"refreshSupport": true}, "workspaceEdit": {"documentChanges": true}},
        "textDocument": {"codeLens": {}},
        "experimental": {"starling": {}},
    })
}

pub fn open(client: &TestClient, text: &str) {
    let open = json!({"textDocument": {
        "uri": client.uri(), "languageId": "python", "version": 1, "text": text,
    }});
    client.connection.notify("textDocument/didOpen", open);
}

fn insert(client: &TestClient, version: i32, at: (u32, u32), text: &str) {
    let at = json!({"line": at.0, "character": at.1});
    let change = json!({
        "textDocument": {"uri": client.uri(), "version": version},
        "contentChanges": [{"range": {"start": at, "end": at}, "text": text}],
    });
    client.connection.notify("textDocument/didChange", change);
}

/// Returns a client with one run whose proposals wait.
pub async fn reviewing(
    proposals: &'static [(u32, &'static str)],
    capabilities: Value,
) -> (TestClient, String) {
    let mut client = client(proposing(proposals), project());
    client.initialize(capabilities).await;
    open(&client, BASE);
    let run = super::begin(&client, "x").await;
    loop {
        let (_, params) = client.next_of("starling/event").await;
        if params["event"]["event"] == "review_asked" {
            return (client, run);
        }
    }
}

async fn lens_titles(client: &TestClient) -> Vec<(u64, String)> {
    let params = json!({"textDocument": {"uri": client.uri()}});
    let lenses = client.connection.request("textDocument/codeLens", params);
    let lenses = lenses.await.unwrap();
    let lens = |lens: &Value| {
        let title = lens["command"]["title"].as_str().unwrap().to_owned();
        (lens["range"]["start"]["line"].as_u64().unwrap(), title)
    };
    lenses.as_array().unwrap().iter().map(lens).collect()
}

/// Answers requests until a matching notification arrives.
async fn until(client: &mut TestClient, wanted: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    loop {
        match client.next().await {
            Incoming::Request { id, .. } => client.connection.reply(id, Ok(Value::Null)),
            Incoming::Notification { method, params } => {
                if method == wanted && is_it(&params) {
                    return params;
                }
            }
        }
    }
}

#[tokio::test]
async fn lenses_move_with_their_symbol() {
    let (mut client, run) = reviewing(&[(1, "a.py::C.m")], full()).await;
    let of = |line: u64| {
        ["Accept", "Reject", "Why", "Diff", "Starling #1: reason 1"]
            .map(|title| (line, title.to_owned()))
    };
    assert_eq!(lens_titles(&client).await, of(5));
    insert(&client, 2, (0, 0), "# 🙂\r\n\r\n");
    assert_eq!(lens_titles(&client).await, of(7), "at once");
    let (id, _) = client.next_of("workspace/codeLens/refresh").await;
    client.connection.reply(id, Ok(Value::Null));
    let accept = json!({"run": run, "proposal": 1});
    client.execute("starling.accept", accept).await;
    let left = lens_titles(&client).await;
    assert!(!left.iter().any(about_proposal), "answered: {left:?}");
    client.next_of("workspace/codeLens/refresh").await;
}

#[tokio::test]
async fn typing_in_the_changed_line_is_a_conflict() {
    let (mut client, run) = reviewing(&[(1, "a.py::f")], full()).await;
    insert(&client, 2, (1, 4), "more_");
    let conflicts = |line: &(u64, String)| line.1.contains("conflicts with what you typed");
    loop {
        let (id, _) = client.next_of("workspace/codeLens/refresh").await;
        client.connection.reply(id, Ok(Value::Null));
        let titles = lens_titles(&client).await;
        if titles.iter().any(conflicts) {
            assert_eq!(titles[0].1, "Hand back");
            break;
        }
    }
    // The only proposal conflicts with the text, so `acceptAll` accepts nothing.
    let all = client.execute("starling.acceptAll", json!({})).await;
    assert_eq!(all, json!({"accepted": []}));
    let params = json!({"run": run, "proposal": 1});
    let shown = client.connection.request("starling/proposal", params);
    let shown = shown.await.unwrap();
    let file = &shown["files"][0];
    assert_eq!(file["after"], Value::Null);
    assert!(file["conflict"].as_str().unwrap().contains("both sides"));
    assert!(file["before"].as_str().unwrap().contains("more_return 1"));
}

#[tokio::test]
async fn set_of_proposals_can_be_accepted_through_any_member() {
    const SET: &[(u32, &str)] = &[(1, "a.py::f"), (2, "a.py::g")];
    let (mut client, run) = reviewing(SET, full()).await;
    let heads: Vec<(u64, String)> = lens_titles(&client).await;
    let heads: Vec<_> = heads
        .iter()
        .filter(|(_, title)| title.starts_with("Accept"))
        .collect();
    let of = |line| (line, "Accept all 2".to_owned());
    assert_eq!(heads, [&of(0), &of(9)]);
    let state = client
        .connection
        .request("starling/state", Value::Null)
        .await
        .unwrap();
    let proposals = state["runs"][0]["proposals"].as_array().unwrap().clone();
    let states: Vec<&Value> = proposals.iter().map(|one| &one["state"]).collect();
    assert_eq!(states, ["waiting", "waiting"]);
    assert_eq!(proposals[0]["with"], json!([2]));
    assert_eq!(proposals[0]["uris"], json!([client.uri()]));
    let other = json!({"run": run, "proposal": 1});
    client.execute("starling.accept", other).await;
    let reviewed = until(&mut client, "starling/event", |params| {
        params["event"]["event"] == "proposal_reviewed" && params["event"]["proposal"] == 2
    });
    let reviewed = reviewed.await;
    assert_eq!(reviewed["event"]["verdict"]["verdict"], "accept");
}

#[tokio::test]
async fn accept_all_accepts_each_waiting_proposal_once() {
    let (client, run) = reviewing(&[(1, "a.py::f")], full()).await;
    let unknown = json!({"run": "no-such"});
    let said = super::refusal(&client, "starling.acceptAll", unknown).await;
    assert!(said.contains("there is no run `no-such`"), "{said}");
    let all = client
        .execute("starling.acceptAll", json!({"run": run}))
        .await;
    assert_eq!(all, json!({"accepted": [{"run": run, "proposal": 1}]}));
    let again = client.execute("starling.acceptAll", json!({})).await;
    assert_eq!(again, json!({"accepted": []}));
}

#[tokio::test]
async fn accepting_a_proposal_does_not_accept_the_proposal_that_it_needs() {
    let start = scripted(|scene: RunScript| async move {
        let mut events = asked(&[(2, "a.py::g")]);
        events.extend(asked_with_need((1, "a.py::f"), 2));
        events.into_iter().for_each(|event| scene.log.event(event));
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    });
    let mut client = client(start, project());
    client.initialize(full()).await;
    open(&client, BASE);
    let run = super::begin(&client, "x").await;
    for _ in 0..4 {
        client.next_of("starling/event").await;
    }
    let titles = lens_titles(&client).await;
    let is_of_first = |(_, title): &&(u64, String)| title.starts_with("Starling #1 needs #2");
    assert_eq!(titles.iter().filter(is_of_first).count(), 1, "{titles:?}");
    let accepts = titles.iter().filter(|(_, title)| title == "Accept");
    assert_eq!(accepts.count(), 2, "{titles:?}");
    let states = async || {
        let state = client.connection.request("starling/state", Value::Null);
        let proposals = state.await.unwrap()["runs"][0]["proposals"].clone();
        let proposals = proposals.as_array().unwrap().clone();
        let mut states: Vec<(u64, String)> = proposals
            .iter()
            .map(|one| {
                let state = one["state"].as_str().unwrap().to_owned();
                (one["proposal"].as_u64().unwrap(), state)
            })
            .collect();
        states.sort();
        states
    };
    let accept = async |proposal: u32| {
        let about = json!({"run": run, "proposal": proposal});
        client.execute("starling.accept", about).await
    };
    let expected = |first: &str, second: &str| [(1, first.to_owned()), (2, second.to_owned())];
    accept(1).await;
    assert_eq!(states().await, expected("accepted", "waiting"));
    accept(2).await;
    assert_eq!(states().await, expected("accepted", "accepted"));
}

#[tokio::test]
async fn accept_all_skips_proposals_that_a_person_must_accept_individually() {
    let start = scripted(|scene: RunScript| async move {
        for mut event in asked(&[(1, "a.py::f")]) {
            if let Event::ReviewAsked { evidence, .. } = &mut event {
                evidence.needs_person.push(NeedsPerson {
                    file: file("a.py"),
                    why: "builds run it".to_owned(),
                });
            }
            scene.log.event(event);
        }
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    });
    let mut client = client(start, project());
    client.initialize(full()).await;
    let run = super::begin(&client, "x").await;
    client.next_of("starling/event").await;
    client.next_of("starling/event").await;
    let all = client.execute("starling.acceptAll", json!({})).await;
    assert_eq!(all, json!({"accepted": []}));
    let params = json!({"run": run, "proposal": 1});
    let shown = client.connection.request("starling/proposal", params);
    let summary = shown.await.unwrap()["summary"].to_string();
    let told = "needs your own yes: a.py: builds run it";
    assert!(summary.contains(told), "{summary}");
}

#[cfg(unix)]
#[tokio::test]
async fn accept_all_skips_proposals_whose_file_became_guarded() {
    let (client, _) = reviewing(&[(1, "a.py::f")], full()).await;
    let at = |name: &str| client.folder.path().join(name);
    std::fs::hard_link(at("a.py"), at("Makefile")).unwrap();
    let all = client.execute("starling.acceptAll", json!({})).await;
    assert_eq!(all, json!({"accepted": []}));
}

#[tokio::test]
async fn hover_on_a_symbol_header_shows_the_evidence_of_its_proposal() {
    let (client, _) = reviewing(&[(1, "a.py::C.m")], full()).await;
    let hover = async |line: u32| {
        let params = json!({
            "textDocument": {"uri": client.uri()}, "position": {"line": line, "character": 8},
        });
        client
            .connection
            .request("textDocument/hover", params)
            .await
            .unwrap()
    };
    let told = hover(5).await;
    let told = told["contents"]["value"].as_str().unwrap();
    for part in [
        "**Starling #1** for `a.py::C.m`",
        "reason 1",
        "tests: unknown",
        "```diff",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(hover(6).await, Value::Null, "in its body");
    assert_eq!(hover(0).await, Value::Null, "elsewhere");
}

#[tokio::test]
async fn code_actions_refer_to_the_symbol_at_the_position() {
    let (client, run) = reviewing(&[(1, "a.py::C.m")], full()).await;
    let actions = async |line: u32| -> Vec<Value> {
        let at = json!({"line": line, "character": 8});
        let params = json!({
            "textDocument": {"uri": client.uri()}, "range": {"start": at, "end": at},
            "context": {"diagnostics": []},
        });
        let actions = client.connection.request("textDocument/codeAction", params);
        actions.await.unwrap().as_array().unwrap().clone()
    };
    let of_method = actions(6).await;
    assert_eq!(of_method[0]["title"], "Accept (Starling #1: reason 1)");
    let about = json!([{"run": run, "proposal": 1, "version": 1}]);
    assert_eq!(of_method[0]["command"]["arguments"], about);
    let elsewhere = actions(1).await;
    let titles: Vec<&Value> = elsewhere.iter().map(|one| &one["title"]).collect();
    assert_eq!(titles, ["Starling: write a test"]);
}

#[tokio::test]
async fn documents_outside_project_have_no_lenses() {
    let (client, _) = reviewing(&[(1, "a.py::f")], full()).await;
    for uri in ["file:///elsewhere/a.py", "untitled:a.py"] {
        let document = json!({"uri": uri});
        let at = json!({"line": 0, "character": 0});
        let asked = [
            ("textDocument/codeLens", json!({"textDocument": document})),
            (
                "textDocument/hover",
                json!({"textDocument": document, "position": at}),
            ),
        ];
        for (method, params) in asked {
            let answer = client.connection.request(method, params).await.unwrap();
            assert_eq!(answer, Value::Null, "{method} {uri}");
        }
    }
}

#[tokio::test]
async fn client_that_connects_late_can_request_the_full_state() {
    let (mut client, run) = reviewing(&[(1, "a.py::f")], full()).await;
    let state = client
        .connection
        .request("starling/state", Value::Null)
        .await
        .unwrap();
    let known = &state["runs"][0];
    assert_eq!(known["run"], json!(run));
    assert_eq!(
        (&known["task"], &known["stage"]),
        (&json!("x"), &json!("going"))
    );
    assert_eq!(known["seq"], 1);
    assert_eq!(known["agents"][0]["doing"], "waits for your review");
    let ask = |after: Value| {
        let params = json!({"run": run, "after": after});
        client.connection.request("starling/events", params)
    };
    let all = ask(Value::Null).await.unwrap();
    assert_eq!(all["events"].as_array().unwrap().len(), 2);
    assert_eq!(all["events"][1]["event"]["event"], "review_asked");
    assert_eq!(ask(json!(1)).await.unwrap(), json!({"events": []}));
    let shown = json!({"run": run, "proposal": 1});
    let shown = client
        .connection
        .request("starling/proposal", shown)
        .await
        .unwrap();
    assert_eq!(
        shown["files"][0]["after"],
        BASE.replace("return 1", "yield 1")
    );
    assert_eq!(shown["files"][0]["version"], 1);
    assert!(
        shown["diff"]
            .as_str()
            .unwrap()
            .contains("-    return 1\n+    yield 1")
    );
    let status = until(&mut client, "starling/status", |params| {
        params["waiting"] == 1
    })
    .await;
    assert_eq!(status["text"], "1 to review · 1 agent at work");
    for (method, params) in [
        ("starling/proposal", json!({"run": run, "proposal": 7})),
        ("starling/events", json!({"run": "none"})),
        ("starling/events", json!({})),
    ] {
        assert!(
            client.connection.request(method, params).await.is_err(),
            "{method}"
        );
    }
}

#[tokio::test]
async fn cancelled_run_has_no_waiting_reviews() {
    let (mut client, run) = reviewing(&[(1, "a.py::f")], full()).await;
    client.execute("starling.cancel", json!({"run": run})).await;
    let reviewed = until(&mut client, "starling/event", |params| {
        params["event"]["event"] == "proposal_reviewed"
    });
    assert_eq!(
        reviewed.await["event"]["verdict"]["reason"],
        "the run was stopped"
    );
    let left = lens_titles(&client).await;
    assert!(!left.iter().any(about_proposal), "{left:?}");
}

fn about_proposal((_, title): &(u64, String)) -> bool {
    title.starts_with("Starling #") || title == "Accept"
}

#[tokio::test]
async fn answer_to_a_review_that_is_not_pending_is_rejected() {
    let mut capabilities = full();
    capabilities["window"] = json!({"showMessage": {}});
    let (client, run) = reviewing(&[(1, "a.py::f")], capabilities).await;
    for about in [
        json!({"run": "none", "proposal": 1}),
        json!({"run": run, "proposal": 9}),
        json!({"run": "none", "symbol": "a.py::f"}),
        json!({"run": run, "symbol": "a.py::f"}),
    ] {
        for reason in [Value::Null, json!("no")] {
            let mut about = about.clone();
            about["reason"] = reason;
            super::refusal(&client, "starling.reject", about).await;
        }
    }
    let about = json!({"run": run, "proposal": 1});
    client.execute("starling.accept", about.clone()).await;
    super::refusal(&client, "starling.reject", about).await;
}
