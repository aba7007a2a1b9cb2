//! Proposals of the single agent that fail the tests alone, and pass together with its next
//! proposals.

use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::{Approval, Driver, Verdict};

const FILES: [(&str, &str); 2] = [
    ("fees.py", "def fee(x):\n    return x\n"),
    (
        "shop.py",
        "from fees import fee\n\n\ndef total(x):\n    return fee(x)\n",
    ),
];

/// Returns the test results: `t1` fails if `total` does not call `fee` with the parameters of its
/// definition.
fn calls_fit(all: &str) -> Vec<(String, String)> {
    match all.contains("def fee(x, rate)") == all.contains("fee(x, 2)") {
        true => Vec::new(),
        false => vec![("t1".to_owned(), "TypeError: fee()".to_owned())],
    }
}

fn part(symbol: &str, source: &str, more: bool) -> (String, serde_json::Value) {
    (
        "propose".to_owned(),
        json!({"symbol": symbol, "reason": "rates", "source": source, "more": more}),
    )
}

fn wider(more: bool) -> (String, serde_json::Value) {
    part(
        "fees.py::fee",
        "def fee(x, rate):\n    return x * rate\n",
        more,
    )
}

fn caller() -> (String, serde_json::Value) {
    part(
        "shop.py::total",
        "def total(x):\n    return fee(x, 2)\n",
        false,
    )
}

fn bed(approval: Approval, replies: Vec<Line>) -> Bed {
    let model = Scripted::native()
        .on("solo", replies)
        .always("proxy", say("ACCEPT"));
    Bed::new(&FILES, model).tests(calls_fit).with(|task| {
        task.driver = Driver::Single;
        task.approval = approval;
    })
}

fn applied(events: &[Event]) -> usize {
    let applied = |event: &&Event| matches!(event, Event::ProposalApplied { .. });
    events.iter().filter(applied).count()
}

const ALL: [Approval; 3] = [Approval::Auto, Approval::Proxy, Approval::Ask];

#[tokio::test(start_paused = true)]
async fn proposals_of_one_reply_that_pass_only_together_are_applied_together() {
    for approval in ALL {
        let mut bed = bed(approval, vec![Line::Call(vec![wider(true), caller()])]);
        let events = bed.run().await;
        assert_eq!(
            stop(&events),
            StopReason::Settled,
            "{approval:?}: {events:#?}"
        );
        assert_eq!((applied(&events), bed.model.prompts("solo").len()), (2, 1));
        let seen = bed.approver.seen.lock().unwrap();
        let proxied = bed.model.prompts("proxy").len();
        let reviews = (seen.len(), proxied);
        match approval {
            Approval::Ask => {
                assert_eq!(reviews, (1, 0), "one review of both: {seen:#?}");
                assert!(seen[0].reason.contains("2 changes that belong together"));
                assert!(!seen[0].evidence.contains("BROKEN"), "{}", seen[0].evidence);
            }
            Approval::Proxy => assert_eq!(reviews, (0, 1)),
            Approval::Auto => assert_eq!(reviews, (0, 0)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn proposals_of_subsequent_replies_that_fail_alone_are_checked_together() {
    for approval in ALL {
        let replies = vec![Line::Call(vec![wider(false)]), Line::Call(vec![caller()])];
        let mut bed = bed(approval, replies);
        let events = bed.run().await;
        assert_eq!(
            stop(&events),
            StopReason::Settled,
            "{approval:?}: {events:#?}"
        );
        assert_eq!(applied(&events), 2);
        let told = bed.model.prompts("solo").pop().expect("a second turn");
        assert!(told.contains("is checked together with #1"), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn proposal_that_fails_alone_is_not_applied_if_the_agent_never_proposes_the_other_parts() {
    for approval in ALL {
        let replies = vec![Line::Call(vec![wider(true)]), finish("that is all")];
        let mut bed = bed(approval, replies);
        let events = bed.run().await;
        for (file, text) in FILES {
            assert_eq!(bed.read(file), text, "{approval:?}: {events:#?}");
        }
        assert!(bed.approver.seen.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn newer_proposal_replaces_an_earlier_failed_proposal_for_the_same_symbol() {
    let wrong = part("fees.py::fee", "def fee(x, rate):\n    return 0\n", true);
    let replies = vec![
        Line::Call(vec![wrong]),
        Line::Call(vec![wider(true), caller()]),
    ];
    let mut bed = bed(Approval::Auto, replies);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.read("fees.py").contains("x * rate"));
}

#[tokio::test(start_paused = true)]
async fn rejection_of_a_set_applies_none_of_its_proposals_and_reports_the_reason_to_the_agent() {
    let replies = vec![
        Line::Call(vec![wider(true), caller()]),
        finish("no other way"),
    ];
    let mut bed = bed(Approval::Ask, replies);
    let reject = Verdict::Reject {
        reason: "keep the contract".into(),
    };
    *bed.approver.verdicts.lock().unwrap() = vec![reject].into();
    let events = bed.run().await;
    assert_eq!(applied(&events), 0, "{events:#?}");
    let told = bed.model.prompts("solo").pop().expect("a second turn");
    assert!(told.contains("Rejected: keep the contract"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn trajectory_contains_every_proposal_of_a_set_before_the_first_one_is_applied() {
    for approval in ALL {
        let mut bed = bed(approval, vec![Line::Call(vec![wider(true), caller()])]);
        let events = bed.run().await;
        let announced: Vec<(usize, &AppliedChange)> = (events.iter().enumerate())
            .filter_map(|(at, event)| match event {
                Event::ProposalApplying { change, .. } => Some((at, change)),
                _ => None,
            })
            .collect();
        let is_applied = |event: &Event| matches!(event, Event::ProposalApplied { .. });
        let first = events
            .iter()
            .position(is_applied)
            .expect("a set is applied");
        assert_eq!(announced.len(), 2, "each part once: {announced:?}");
        assert!(announced.iter().all(|(at, _)| *at < first), "{events:#?}");
        let sets = announced
            .iter()
            .map(|(_, change)| change.dependencies.set.len());
        assert_eq!(sets.collect::<Vec<_>>(), [1, 1], "each names the other");
    }
}
