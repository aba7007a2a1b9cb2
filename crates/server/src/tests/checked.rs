//! A run ends while a proposal that the user edited is checked: the user's version is offered again.

use serde_json::{Value, json};

use super::lenses::{full, open, project};
use super::restart::{event_of, restarted, state_of, trajectory};
use crate::samples::{BASE, asked};
use crate::testing::*;
use starling_core::{EditedPart, Verdict};
use starling_swarm::{ActorId, Event, ProposalId, StopReason, edit_received};

const SET: &[(u32, &str)] = &[(1, "a.py::f"), (2, "a.py::g")];

fn mine() -> String {
    BASE.replace("return 1", "return 10")
}

/// Returns the events of a set that waited for review and was edited. Each part has a proposal and
/// the user's text.
fn edited(set: &[(u32, &str)], parts: &[(u32, &str)]) -> Vec<Event> {
    let mut events = asked(set);
    let Some(Event::ReviewAsked {
        proposal,
        parts: shown,
        ..
    }) = events.last()
    else {
        panic!("{events:?}");
    };
    let part = |(proposal, text): &(u32, &str)| EditedPart {
        proposal: *proposal,
        before: BASE.into(),
        text: (*text).into(),
    };
    let parts: Vec<EditedPart> = parts.iter().map(part).collect();
    events.push(edit_received(*proposal, shown, &parts));
    events
}

fn checking(proposal: u32) -> Event {
    Event::ProposalEdited {
        proposal: ProposalId(proposal),
        symbols: vec![symbol("a.py::f")],
        diff: "-1\n+10\n".to_owned(),
    }
}

async fn shown(client: &TestClient, proposal: u32) -> Value {
    let params = json!({"run": "r1", "proposal": proposal});
    let shown = client.connection.request("starling/proposal", params);
    shown.await.unwrap()
}

#[tokio::test]
async fn edited_version_that_was_being_checked_is_offered_again_unchecked() {
    let ends = [None, Some(StopReason::Cancelled)];
    let limit = StopReason::LedgerEmpty {
        what: "5 seconds".to_owned(),
    };
    for end in ends.into_iter().chain([Some(limit)]) {
        for was_seen_by_the_run in [true, false] {
            let folder = project();
            let mine = mine();
            let mut events = edited(&SET[..1], &[(1, &mine)]);
            events.extend(was_seen_by_the_run.then(|| checking(1)));
            events.extend(end.clone().map(finished));
            trajectory(folder.path(), "r1", folder.path(), events);
            let mut client = restarted(folder).await;
            open(&client, BASE);
            event_of(&mut client, "review_asked").await;
            // The events of the earlier server are sent again first.
            let asked = event_of(&mut client, "review_asked").await;
            let diff = asked["event"]["diff"].as_str().unwrap();
            assert!(diff.contains("+    return 10"), "{diff}");
            let proposal = shown(&client, 1).await;
            assert_eq!(proposal["state"], "waiting");
            assert_eq!(proposal["files"][0]["after"], json!(mine));
            let reason = "your version was not checked: its run ended first";
            let evidence = proposal["evidence"].to_string();
            assert!(evidence.contains(reason), "{evidence}");
            let about = json!({"run": "r1", "proposal": 1});
            client.execute("starling.accept", about).await;
            assert_eq!(super::restart::take_edit(&mut client, 1).await, "0");
            event_of(&mut client, "proposal_applied").await;
        }
    }
}

#[tokio::test]
async fn set_with_an_edited_part_is_offered_again_without_what_the_user_took_out() {
    let folder = project();
    let mine = mine();
    let events = edited(SET, &[(1, &mine), (2, BASE)]);
    trajectory(folder.path(), "r1", folder.path(), events);
    let mut client = restarted(folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    let asked = event_of(&mut client, "review_asked").await;
    assert_eq!(asked["event"]["proposal"], 1);
    assert_eq!(asked["event"]["with"], Value::Null);
    let rejected = event_of(&mut client, "proposal_reviewed").await;
    assert_eq!(rejected["event"]["proposal"], 2);
    assert_eq!(shown(&client, 1).await["files"][0]["after"], json!(mine));
}

#[tokio::test]
async fn set_is_offered_whole_with_the_parts_that_the_user_left() {
    let folder = project();
    let mine = mine();
    let events = edited(SET, &[(1, &mine)]);
    trajectory(folder.path(), "r1", folder.path(), events);
    let mut client = restarted(folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    event_of(&mut client, "review_asked").await;
    let after = mine.replace("return 3", "yield 3");
    for proposal in [1, 2] {
        let proposal = shown(&client, proposal).await;
        assert_eq!(proposal["files"][0]["after"], json!(after));
    }
}

/// Older trajectories have no event that holds the user's version.
#[tokio::test]
async fn version_last_shown_is_offered_if_the_edited_one_is_not_known() {
    let folder = project();
    let mut events = asked(&SET[..1]);
    events.push(checking(1));
    trajectory(folder.path(), "r1", folder.path(), events);
    let mut client = restarted(folder).await;
    open(&client, BASE);
    event_of(&mut client, "review_asked").await;
    event_of(&mut client, "review_asked").await;
    let after = BASE.replace("return 1", "yield 1");
    assert_eq!(shown(&client, 1).await["files"][0]["after"], json!(after));
}

#[tokio::test]
async fn edited_version_that_was_decided_on_is_not_offered() {
    let folder = project();
    let mine = mine();
    let mut events = edited(&SET[..1], &[(1, &mine)]);
    events.push(Event::ProposalReviewed {
        proposal: ProposalId(1),
        by: ActorId::User,
        verdict: Verdict::Reject {
            reason: "the run was stopped".to_owned(),
        },
    });
    events.push(finished(StopReason::Cancelled));
    trajectory(folder.path(), "r1", folder.path(), events);
    let client = restarted(folder).await;
    let state = state_of(&client).await;
    assert_eq!(state[0]["stage"], "ended", "{state}");
}

/// A run that asks for a review, and after an edit waits until it is cancelled.
fn checking_long() -> crate::RunStarter {
    scripted(async |scene: RunScript| {
        for event in asked(SET) {
            scene.log.event(event);
        }
        let view = starling_core::ProposalView {
            id: 2,
            symbol: symbol("a.py::g"),
            symbols: vec![symbol("a.py::g")],
            reason: String::new(),
            diff: String::new(),
            evidence: String::new(),
            version: None,
        };
        scene.outside.approver.proposal(view).await;
        scene.cancel.cancelled().await;
        scene.log.event(finished(StopReason::Cancelled));
    })
}

#[tokio::test]
async fn edited_version_is_on_disk_when_the_command_is_answered() {
    for keep in [true, false] {
        let mut client = super::lenses::client(checking_long(), project());
        client.initialize(full()).await;
        open(&client, BASE);
        let run = super::begin(&client, "x").await;
        event_of(&mut client, "review_asked").await;
        let files = json!([{"uri": client.uri(), "before": BASE, "text": mine()}]);
        let about = json!({"run": run, "proposal": 1, "files": files});
        client.execute("starling.edit", about).await;
        let records = super::records_of(client.folder.path(), &run);
        let received = records.iter().map(|one| &one["event"]);
        let mut received = received.filter(|one| one["event"] == "edit_received");
        let received = received.next().unwrap().to_string();
        assert!(received.contains("\"proposal\":1"), "{received}");
        let cancel = json!({"run": run, "keep_reviews": keep});
        client.execute("starling.cancel", cancel).await;
        event_of(&mut client, "run_finished").await;
        let state = state_of(&client).await;
        let states = state[0]["proposals"].as_array().unwrap().iter();
        let states: Vec<&Value> = states.map(|one| &one["state"]).collect();
        let expected = match keep {
            true => "dropped",
            false => "rejected",
        };
        assert_eq!(states, [expected; 2], "{keep}");
    }
}
