//! The evidence (check results) of a proposal under review is renewed when another proposal is
//! applied or undone.

use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::Approval;

const FILES: [(&str, &str); 2] = [
    ("fees.py", "def fee(x):\n    return x\n"),
    (
        "shop.py",
        "from fees import fee\n\n\ndef total(x):\n    return fee(x)\n\n\ndef other(x):\n    return x\n",
    ),
];
const WIDER: &str = "def fee(x, rate):\n    return x * rate\n";
const CALLER: &str = "def total(x):\n    return fee(x, 2)\n";
const OTHER: &str = "def other(x):\n    return x + 0\n";
const SAME: &str = "def fee(x):\n    return x + 0\n";

/// Returns the test results: `t1` fails if `total` does not call `fee` with the parameters of its
/// definition.
fn calls_fit(all: &str) -> Vec<(String, String)> {
    match all.contains("def fee(x, rate)") == all.contains("fee(x, 2)") {
        true => Vec::new(),
        false => vec![("t1".to_owned(), "TypeError: fee()".to_owned())],
    }
}

/// Creates a run with two agents. The person takes an hour for the review of the first proposal,
/// and the second agent makes its proposal in that time.
fn bed(first: &str, symbol: &str, second: &str) -> Bed {
    let picks = json!([
        {"symbol": "fees.py::fee", "why": "is first", "source": first},
        {"symbol": symbol, "why": "thinks for a while"},
    ]);
    let mut model = Scripted::native()
        .on("scout", [call("wake", json!({ "symbols": picks }))])
        .on(&format!("agent {symbol}"), [whole(second)])
        .always("agent", finish("I have nothing to add"));
    model.latency = Duration::from_secs(60);
    let bed = Bed::new(&FILES, model).with(|task| task.approval = Approval::Ask);
    *bed.approver.latency.lock().unwrap() = Duration::from_secs(3600);
    bed.tests(calls_fit)
}

/// Returns all evidence of the proposal `id` that was logged after the first event that matches
/// `happened`.
fn after(events: &[Event], id: u32, happened: impl Fn(&Event) -> bool) -> Vec<Evidence> {
    let at = events.iter().position(happened).unwrap();
    let checked = events[at..].iter().filter_map(|event| match event {
        Event::ProposalChecked { proposal, evidence } if proposal.0 == id => Some(evidence.clone()),
        _ => None,
    });
    checked.collect()
}

fn is_applied(id: u32) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::ProposalApplied { proposal, .. } if proposal.0 == id)
}

fn count(events: &[Event], is_it: impl Fn(&Event) -> bool) -> usize {
    events.iter().filter(|event| is_it(event)).count()
}

fn is_asked(event: &Event) -> bool {
    matches!(event, Event::ReviewAsked { .. })
}

#[tokio::test(start_paused = true)]
async fn checks_of_a_proposal_run_again_when_a_proposal_that_it_needs_was_applied() {
    let events = bed(WIDER, "shop.py::total", CALLER).run().await;
    assert_eq!(count(&events, is_asked), 2, "nobody is asked twice");
    let found = after(&events, 2, is_applied(1));
    assert_eq!(found.len(), 2, "{events:#?}");
    let told = "applied since these checks: #1; they run again";
    assert_eq!(found[0].outdated.as_deref(), Some(told));
    assert!(
        found[0]
            .to_string()
            .starts_with(&format!("OUT OF DATE: {told}\n"))
    );
    assert_eq!(
        (found[1].outdated.as_ref(), found[1].needs()),
        (None, &[][..])
    );
    let shown = found[1].to_string();
    assert!(
        !shown.contains("needs #1") && !shown.contains("BROKEN"),
        "{shown}"
    );
    assert!(shown.starts_with("tests: `fake tests` passed"), "{shown}");
    assert_eq!(count(&events, is_applied(2)), 1, "{events:#?}");
}

/// The repeated tests take longer than the person takes to accept the proposal.
#[tokio::test(start_paused = true)]
async fn person_may_accept_a_proposal_while_its_checks_run_again() {
    let mut bed = bed(WIDER, "shop.py::total", CALLER)
        .with(|task| task.test_deadline = Duration::from_secs(100_000));
    let handle = bed.start();
    let is_second = |event: &Event| {
        matches!(
            event,
            Event::ReviewAsked {
                proposal: ProposalId(2),
                ..
            }
        )
    };
    until(&handle, is_second).await;
    *bed.test_times.lock().unwrap() = [Duration::from_secs(50_000)].into();
    until(&handle, is_applied(1)).await;
    let began = tokio::time::Instant::now();
    until(&handle, is_applied(2)).await;
    assert!(began.elapsed() < Duration::from_secs(3600));
    let events = handle.log.events();
    let found = after(&events, 2, is_applied(1));
    assert_eq!(found.len(), 1, "only the mark: {found:#?}");
    handle.cancel();
}

#[tokio::test(start_paused = true)]
async fn checks_of_a_proposal_run_again_when_another_change_was_undone() {
    let mut bed = bed(SAME, "shop.py::other", OTHER);
    bed.approver
        .latencies
        .lock()
        .unwrap()
        .push_back(Duration::from_secs(600));
    let handle = bed.start();
    until(&handle, is_applied(1)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    handle.undo(Some(ProposalId(1))).await.unwrap();
    handle.finished().await;
    let events = handle.log.events();
    let is_undone = |event: &Event| matches!(event, Event::ProposalUndone { .. });
    let found = after(&events, 2, is_undone);
    let outdated: Vec<Option<&str>> = found.iter().map(|one| one.outdated.as_deref()).collect();
    let told = "a change was taken back since these checks; they run again";
    assert_eq!(outdated, [Some(told), None], "{events:#?}");
}

/// The evidence of the lead (the proposal through which a set is reviewed) and of the other
/// proposal of the set is renewed.
#[tokio::test(start_paused = true)]
async fn checks_of_every_proposal_of_a_set_run_again_when_another_proposal_was_applied() {
    let picks = json!([
        {"symbol": "shop.py::other", "why": "is first", "source": OTHER},
        {"symbol": "fees.py::fee", "why": "is wider", "source": WIDER},
        {"symbol": "shop.py::total", "why": "follows", "source": CALLER},
    ]);
    let mut model = Scripted::native()
        .on("scout", [call("wake", json!({ "symbols": picks }))])
        .always("agent", finish("I have nothing to add"));
    model.latency = Duration::from_secs(60);
    let bed = Bed::new(&FILES, model).with(|task| task.approval = Approval::Ask);
    *bed.approver.latencies.lock().unwrap() = [60, 3600].map(Duration::from_secs).into();
    let events = bed.tests(calls_fit).run().await;
    let first = events.iter().find_map(|event| match event {
        Event::ProposalApplied { proposal, .. } => Some(proposal.0),
        _ => None,
    });
    let first = first.unwrap();
    assert_eq!(
        count(&events, |event| matches!(
            event,
            Event::ProposalApplied { .. }
        )),
        3
    );
    for id in (1..=3).filter(|id| *id != first) {
        let found = after(&events, id, is_applied(first));
        let outdated: Vec<bool> = found.iter().map(|one| one.outdated.is_some()).collect();
        assert_eq!(outdated, [true, false], "{id}: {found:#?}");
        assert!(found[1].together.as_ref().unwrap().passes(), "{found:#?}");
    }
}
