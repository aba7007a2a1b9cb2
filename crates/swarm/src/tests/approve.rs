//! Reviews of intents and proposals by a person or the proxy user (a model that reviews for the
//! user), and their time limits.

use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::{Approval, AskIntent, Verdict};

const ONE: &str = "def f(x):\n    return x\n";

fn intent() -> Line {
    call(
        "intent",
        json!({"intent": "add a parameter", "reason": "it is needed"}),
    )
}

fn change() -> Line {
    whole("def f(x):\n    return x + 1\n")
}

fn asked(lines: Vec<Line>, verdicts: Vec<Verdict>) -> Bed {
    let model = Scripted::native().on("agent a.py::f", lines);
    let bed = Bed::new(&[("a.py", ONE)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Ask);
    *bed.approver.verdicts.lock().unwrap() = verdicts.into();
    bed
}

fn steer(text: &str) -> Verdict {
    Verdict::Steer { text: text.into() }
}

fn reject(reason: &str) -> Verdict {
    Verdict::Reject {
        reason: reason.into(),
    }
}

#[tokio::test(start_paused = true)]
async fn review_shows_diff_reason_and_evidence() {
    let mut bed = asked(vec![change()], vec![Verdict::Accept]).tests(|all| {
        if all.contains("x + 1") {
            vec![]
        } else {
            vec![("t1".into(), "no".into())]
        }
    });
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let seen = bed.approver.seen.lock().unwrap();
    assert_eq!(
        (seen.len(), seen[0].id, seen[0].reason.as_str()),
        (1, 1, "because")
    );
    assert!(
        seen[0].diff.contains("+    return x + 1"),
        "{}",
        seen[0].diff
    );
    assert!(
        seen[0].evidence.contains("fixed (1): t1"),
        "{}",
        seen[0].evidence
    );
    let order: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::ProposalChecked { .. } => Some("checked"),
            Event::ReviewAsked { .. } => Some("asked"),
            Event::ProposalReviewed {
                by: ActorId::User, ..
            } => Some("reviewed"),
            Event::ProposalApplied { .. } => Some("applied"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["checked", "asked", "reviewed", "applied"]);
}

#[tokio::test(start_paused = true)]
async fn rejected_or_steered_proposal_returns_to_its_agent_with_the_persons_words() {
    let third = whole("def f(x):\n    return x + 3\n");
    let second = whole("def f(x):\n    return x + 2\n");
    let mut bed = asked(
        vec![change(), second, third],
        vec![reject("too little"), steer("add three"), Verdict::Accept],
    );
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("a.py"), ONE.replace("return x", "return x + 3"));
    let prompts = bed.model.prompts("agent a.py::f");
    assert!(
        prompts[1].ends_with("Rejected: too little"),
        "{}",
        prompts[1]
    );
    assert!(prompts[2].ends_with("Not yet accepted. Do it differently: add three"));
    assert_eq!(*bed.editor.writes.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn agent_stops_after_four_rejected_proposals() {
    let mut number = 0;
    let lines = std::iter::from_fn(|| {
        number += 1;
        Some(whole(&format!("def f(x):\n    return x + {number}\n")))
    });
    let mut bed = asked(lines.take(9).collect(), vec![reject("no"); 9]);
    let events = bed.run().await;
    assert_eq!(
        bed.approver.seen.lock().unwrap().len(),
        4,
        "one and three repairs"
    );
    assert!(matches!(stop(&events), StopReason::NothingChanged { .. }));
    assert_eq!(bed.read("a.py"), ONE);
}

#[tokio::test(start_paused = true)]
async fn time_limit_does_not_count_the_time_that_a_person_takes_to_review() {
    let mut bed = asked(vec![change()], vec![]).with(|task| task.limits.seconds = 60);
    *bed.approver.latency.lock().unwrap() = Duration::from_secs(40_000);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let Some(Event::RunFinished { spent, .. }) = events.last() else {
        panic!()
    };
    assert_eq!(spent.waiting_seconds.round(), 40_000.0);
}

#[tokio::test(start_paused = true)]
async fn person_can_veto_or_steer_an_intent_before_code_is_written() {
    for (verdict, told) in [
        (
            reject("callers break"),
            "Vetoed: callers break. Find another way, or finish.",
        ),
        (
            steer("make it optional"),
            "Do it differently: make it optional",
        ),
        (Verdict::Accept, "Approved. Go on."),
    ] {
        for ask_intent in [AskIntent::Contract, AskIntent::Always] {
            let mut bed = asked(vec![intent(), finish("no way")], vec![verdict.clone()])
                .with(|task| task.ask_intent = ask_intent);
            let events = bed.run().await;
            let seen = bed.approver.intents.lock().unwrap();
            assert_eq!(seen[0].intent, "add a parameter");
            let last = bed.model.prompts("agent a.py::f").pop().unwrap();
            assert!(last.ends_with(told), "{last}");
            let reviewed = |event: &Event| matches!(event, Event::IntentReviewed { by: ActorId::User, verdict: v, .. } if *v == verdict);
            assert!(events.iter().any(reviewed), "{events:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn intent_is_only_recorded_if_no_approval_of_intents_is_configured() {
    let quiet: [fn(&mut Task); 2] = [
        |task| task.ask_intent = AskIntent::Never,
        |task| {
            task.ask_intent = AskIntent::Always;
            task.approval = Approval::Auto;
        },
    ];
    for set in quiet {
        let mut bed = asked(vec![intent(), finish("done")], vec![]).with(set);
        let events = bed.run().await;
        assert!(bed.approver.intents.lock().unwrap().is_empty());
        assert!(bed.model.prompts("agent a.py::f")[1].ends_with("Noted. Go on."));
        assert!(
            events
                .iter()
                .any(|event| matches!(event, Event::IntentStated { .. }))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn proxy_user_reviews_an_intent_instead_of_a_person() {
    let model = Scripted::native()
        .on("agent a.py::f", [intent(), finish("no way")])
        .on(
            "proxy intent a.py::f",
            [
                say("Let me think."),
                call(
                    "decide",
                    json!({"verdict": "reject", "reason": "not asked for"}),
                ),
            ],
        );
    let mut bed = Bed::new(&[("a.py", ONE)], model)
        .begin(&["a.py::f"])
        .with(|task| {
            task.approval = Approval::Proxy;
            task.ask_intent = AskIntent::Contract;
        });
    let events = bed.run().await;
    assert!(malformed(&events)[0].contains("Call `decide` exactly once."));
    assert!(bed.model.prompts("agent a.py::f")[1].contains("Vetoed: not asked for."));
    assert!(bed.model.prompts("proxy intent")[0].contains("add a parameter"));
}

#[tokio::test(start_paused = true)]
async fn unclear_decision_of_the_proxy_user_is_requested_again() {
    let model = Scripted::native()
        .on(
            "agent a.py::f",
            [change(), whole("def f(x):\n    return x + 3\n")],
        )
        .on("proxy a.py::f", [say("Hm."), say("STEER: add three")])
        .on("proxy a.py::f #2", [say("ACCEPT")]);
    let mut bed = Bed::new(&[("a.py", ONE)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Proxy);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.model.prompts("agent a.py::f")[1].ends_with("Do it differently: add three"));
    assert!(bed.model.prompts("proxy a.py::f")[1].contains("Call `decide` exactly once."));
}

#[tokio::test(start_paused = true)]
async fn proposal_without_a_review_is_rejected_after_a_day() {
    let mut bed = asked(
        vec![change(), call("finish", json!({"summary": "no answer"}))],
        vec![],
    );
    *bed.approver.latency.lock().unwrap() = Duration::from_secs(200_000);
    let events = bed.run().await;
    assert!(
        matches!(stop(&events), StopReason::NothingChanged { .. }),
        "{events:#?}"
    );
    assert!(bed.model.prompts("agent")[1].contains("nobody decided within a day"));
    assert_eq!(bed.read("a.py"), ONE);
}

#[tokio::test(start_paused = true)]
async fn ask_intent_always_asks_about_the_reason_of_a_proposal_without_a_stated_intent() {
    let model = Scripted::native()
        .on(
            "agent a.py::f",
            [change(), whole("def f(x):\n    return x + 2\n")],
        )
        .on("proxy intent a.py::f", [say("REJECT: two, not one")])
        .on("proxy intent a.py::f #2", [say("ACCEPT")])
        .on("proxy a.py::f", [say("ACCEPT")]);
    let mut bed = Bed::new(&[("a.py", ONE)], model)
        .begin(&["a.py::f"])
        .with(|task| {
            task.approval = Approval::Proxy;
            task.ask_intent = AskIntent::Always;
        });
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.model.prompts("agent a.py::f")[1].contains("Vetoed: two, not one"));
    assert_eq!(bed.read("a.py"), ONE.replace("return x", "return x + 2"));
}

/// Runs a task whose proxy user replies to the first proposal with `first`, and accepts all later
/// proposals.
async fn proxy_says(first: Vec<Line>) -> (Bed, Vec<Event>) {
    let model = Scripted::native()
        .on("agent a.py::f", [change(), finish("as you like")])
        .on("proxy a.py::f", first);
    let mut bed = Bed::new(&[("a.py", ONE)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Proxy);
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn rejection_whose_reason_contains_the_word_accept_stays_a_rejection() {
    let reject = "REJECT: hides the symptom.\nAccept it only when g is mended too.";
    let (bed, events) = proxy_says(vec![say(reject)]).await;
    assert_eq!(bed.read("a.py"), ONE, "{events:#?}");
    assert!(bed.model.prompts("agent a.py::f")[1].contains("Rejected: hides the symptom."));
}

#[tokio::test(start_paused = true)]
async fn proxy_user_is_asked_once_more_about_words_beside_an_acceptance() {
    let with = |reason: &str| {
        let accept =
            json!({"verdict": "accept", "conditions": "", "objections": "", "reason": reason});
        call("decide", accept)
    };
    let condition = "Fine, but not before g is mended.";
    let (bed, events) = proxy_says(vec![with(condition), with("")]).await;
    let asked = &malformed(&events)[0];
    assert!(asked.contains("The acceptance came with words."), "{asked}");
    assert_ne!(bed.read("a.py"), ONE, "{events:#?}");
    let (bed, events) = proxy_says(vec![with(condition), with(condition)]).await;
    assert_eq!(bed.read("a.py"), ONE, "{events:#?}");
    assert!(bed.model.prompts("agent a.py::f")[1].contains("gave no clear decision"));
}

#[tokio::test(start_paused = true)]
async fn decision_that_stays_unclear_counts_as_a_rejection() {
    let both = Line::Call(vec![
        ("decide".to_owned(), json!({"verdict": "accept"})),
        (
            "decide".to_owned(),
            json!({"verdict": "reject", "reason": "no"}),
        ),
    ]);
    let conditional = say("ACCEPT when g is mended too");
    let (bed, events) = proxy_says(vec![both, conditional]).await;
    assert_eq!(bed.read("a.py"), ONE, "{events:#?}");
    assert_eq!(bed.model.prompts("proxy").len(), 2, "asked once more");
    assert!(bed.model.prompts("agent a.py::f")[1].contains("gave no clear decision"));
    // Every tool call of the unclear reply gets a result, as providers require.
    let asked = bed.model.asked.lock().unwrap();
    let again = asked
        .iter()
        .rfind(|one| one.conversation == "proxy a.py::f");
    let results = again.unwrap().messages.iter();
    let results = results.filter(|message| matches!(message, starling_core::Message::Tool { .. }));
    assert_eq!(results.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn proxy_user_without_tool_calls_decides_in_the_first_line_of_its_reply() {
    let model = Scripted::new(starling_core::ToolCalling::Text)
        .on(
            "agent a.py::f",
            [say("```python\ndef f(x):\n    return x + 1\n```")],
        )
        .on("proxy a.py::f", [say("Sure."), say("ACCEPT")]);
    let mut bed = Bed::new(&[("a.py", ONE)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Proxy);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.model.prompts("proxy")[1].contains("The first line of your reply must be ACCEPT"));
}
