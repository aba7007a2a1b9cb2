//! Runs that changed nothing.

use super::finished_run::{FinishedRun, ends, failing, is, report};
use crate::event::ending::Proof;
use crate::event::events::StopReason;
use crate::run::ending::unchanged;
use crate::{ActorId, AgentOutcome, Event};
use starling_core::{TestOutcome, Verdict};

#[test]
fn headline_of_a_run_without_changes_names_the_required_tests_that_still_fail() {
    let told = |required| {
        ends(&FinishedRun {
            stop_reason: StopReason::NothingChanged { why: "done".into() },
            changed: &[],
            report_before: Some(failing(&["a", "b"])),
            required,
            ..FinishedRun::default()
        })
    };
    let expected = "Not done: 1 test still fails: a; done";
    assert_eq!(told(&["a"]), is(Proof::NotDone, expected));
    let expected = "Not done: 2 tests still fail: a, b; done";
    assert_eq!(told(&["a", "b"]), is(Proof::NotDone, expected));
    assert_eq!(told(&[]), is(Proof::NotDone, "Not done: done"));
}

#[test]
fn headline_of_a_run_without_changes_says_that_the_tests_timed_out() {
    let told = ends(&FinishedRun {
        stop_reason: StopReason::NothingChanged { why: "done".into() },
        changed: &[],
        report_before: Some(report(TestOutcome::TimedOut, &[])),
        ..FinishedRun::default()
    });
    let expected = "Not done: the tests timed out after 6 s; done";
    assert_eq!(told, is(Proof::NotDone, expected));
}

#[test]
fn run_without_a_needed_change_has_nothing_to_prove() {
    let unchanged = |task, nothing_to_change| {
        ends(&FinishedRun {
            stop_reason: StopReason::NothingChanged {
                why: "f returns 2 already\nsee line 3".to_owned(),
            },
            task,
            changed: &[],
            nothing_to_change,
            ..FinishedRun::default()
        })
    };
    assert_eq!(
        unchanged("What does f return?\n", true),
        is(Proof::NothingToProve, "Answered; nothing was changed")
    );
    assert_eq!(
        unchanged("Make f return 2.", true),
        is(
            Proof::NothingToProve,
            "Nothing to change: f returns 2 already"
        )
    );
    assert_eq!(
        unchanged("What does f return?", false),
        is(Proof::NotDone, "Not done: f returns 2 already")
    );
}

fn finished(agent: &str, outcome: AgentOutcome, summary: &str) -> Event {
    Event::AgentFinished {
        agent: ActorId::Agent(agent.parse().unwrap()),
        outcome,
        summary: summary.to_owned(),
    }
}

#[test]
fn last_summaries_of_the_agents_explain_why_nothing_changed() {
    let nothing = |agent, summary| finished(agent, AgentOutcome::NothingToChange, summary);
    let gave_up = |agent, why: &str| {
        let why = why.to_owned();
        finished(agent, AgentOutcome::GaveUp { why }, "")
    };
    let by_all = unchanged(&[
        gave_up("a.py::f", "no time"),
        nothing("a.py::f", "f is right"),
        nothing("b.py::g", "f is right"),
    ]);
    assert_eq!((by_all.why.as_str(), by_all.by_all), ("f is right", true));
    let one_gave_up = unchanged(&[
        nothing("b.py::g", "g is right"),
        gave_up("a.py::f", "20 turns without an end"),
    ]);
    assert_eq!(one_gave_up.why, "a.py::f gave up: 20 turns without an end");
    assert!(!one_gave_up.by_all);
    assert!(!unchanged(&[]).by_all, "nobody looked");
    let missed = Event::NotWoken {
        symbol: "b.py::g".to_owned(),
        from: ActorId::Scout,
        why: "no room".to_owned(),
    };
    assert!(!unchanged(&[nothing("a.py::f", "fine"), missed]).by_all);
    let rejected = Event::ProposalReviewed {
        proposal: crate::ProposalId(1),
        by: ActorId::User,
        verdict: Verdict::Reject {
            reason: "too long\nby far".to_owned(),
        },
    };
    let refused = unchanged(&[rejected, nothing("a.py::f", "given up")]);
    assert_eq!(refused.why, "no proposal was accepted: too long");
    assert!(!refused.by_all);
}
