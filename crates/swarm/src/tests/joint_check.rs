//! Proposals that need each other: tested as a set, reviewed together, applied part by part.

use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::{Approval, Verdict};

const FILES: [(&str, &str); 2] = [
    ("fees.py", "def fee(x):\n    return x\n"),
    (
        "shop.py",
        "from fees import fee\n\n\ndef total(x):\n    return fee(x)\n\n\ndef other(x):\n    return x\n",
    ),
];

fn pick(symbol: &str, why: &str, source: &str) -> serde_json::Value {
    json!({"symbol": symbol, "why": why, "source": source})
}

fn wider() -> serde_json::Value {
    pick(
        "fees.py::fee",
        "takes a rate",
        "def fee(x, rate):\n    return x * rate\n",
    )
}

fn caller() -> serde_json::Value {
    pick(
        "shop.py::total",
        "gives the rate",
        "def total(x):\n    return fee(x, 2)\n",
    )
}

fn other() -> serde_json::Value {
    pick(
        "shop.py::other",
        "adds one",
        "def other(x):\n    return x + 1\n",
    )
}

/// Returns `t1` as failing if the call does not match the definition.
fn calls_fit(all: &str) -> Vec<(String, String)> {
    let (wide, given) = (all.contains("def fee(x, rate)"), all.contains("fee(x, 2)"));
    match wide == given {
        true => Vec::new(),
        false => vec![(
            "t1".to_owned(),
            "shop.py:5: in total\nTypeError: fee()".to_owned(),
        )],
    }
}

/// Creates a run in which the scout writes these changes. Each test run takes a second.
fn bed(changes: &[serde_json::Value]) -> Bed {
    let model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": changes}))])
        .always("agent", finish("I have nothing to add"));
    let bed = Bed::new(&FILES, model).tests(calls_fit);
    *bed.test_times.lock().unwrap() = vec![Duration::from_secs(1); 20].into();
    bed
}

fn test_runs(events: &[Event]) -> usize {
    let ran = |event: &&Event| matches!(event, Event::TestsRun { .. });
    events.iter().filter(ran).count()
}

fn applied(events: &[Event]) -> usize {
    let applied = |event: &&Event| matches!(event, Event::ProposalApplied { .. });
    events.iter().filter(applied).count()
}

#[tokio::test(start_paused = true)]
async fn proposals_that_fail_alone_and_pass_together_are_applied_as_a_set() {
    let mut bed = bed(&[wider(), caller()]);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(applied(&events), 2);
    assert_eq!(malformed(&events), [""; 0]);
    // No model is called besides the scout: no owner, and no follow-up for changes that already
    // match.
    assert_eq!(bed.model.calls(), 1, "{:?}", woken(&events));
    // The tests run five times: before the change, in two standalone checks, in the joint check,
    // and at the end of the run.
    assert_eq!(test_runs(&events), 5, "{events:#?}");
    let together = events.iter().rev().find_map(|event| match event {
        Event::ProposalChecked { evidence, .. } if !evidence.contract.is_empty() => {
            evidence.together.clone().map(|_| evidence.to_string())
        }
        _ => None,
    });
    let text = together.expect("evidence of the changed contract");
    assert!(!text.contains("BROKEN"), "{text}");
    assert!(text.contains("with the other waiting proposal ("), "{text}");
    assert!(text.contains("): passed\n"), "{text}");
    // The standalone results of each part are replaced before the part is accepted.
    let reviewed = |event: &Event| matches!(event, Event::ProposalReviewed { .. });
    let reviewed = events.iter().position(reviewed).unwrap();
    for (id, other) in [(1, 2), (2, 1)] {
        let last = events[..reviewed]
            .iter()
            .rev()
            .find_map(|event| match event {
                Event::ProposalChecked { proposal, evidence } if proposal.0 == id => Some(evidence),
                _ => None,
            });
        let last = last.unwrap();
        let together = last.together.as_ref().expect("checked together");
        assert_eq!(together.proposals, [ProposalId(other)]);
        assert_eq!(together.with, [symbol_of(&events, other)]);
        assert_eq!(last.counting().0, &together.tests);
    }
    // The evidence lists the caller, although the caller needs no follow-up.
    assert!(
        text.contains("\ncallers: shop.py::total (changed in the same set)\n"),
        "{text}"
    );
}

/// What a part of a set loses is told with this part, whichever part is decided on last. The reviewer
/// of the set sees the evidence of all parts.
#[tokio::test(start_paused = true)]
async fn evidence_of_a_set_stands_with_the_part_that_it_is_about() {
    for approval in [Approval::Auto, Approval::Ask] {
        let mut bed = bed(&[wider(), caller()]).with(|task| task.approval = approval);
        let events = bed.run().await;
        let last = |symbol: &str| {
            let id = events.iter().find_map(|event| match event {
                Event::ProposalMade {
                    proposal, agent, ..
                } => {
                    let own = agent.symbol().map(ToString::to_string);
                    (own.as_deref() == Some(symbol)).then_some(*proposal)
                }
                _ => None,
            });
            let mut checked = events.iter().filter_map(|event| match event {
                Event::ProposalChecked { proposal, evidence } if Some(*proposal) == id => {
                    evidence.together.as_ref().map(|_| evidence.contract.len())
                }
                _ => None,
            });
            checked.next_back()
        };
        assert_eq!(last("fees.py::fee"), Some(1), "{events:#?}");
        assert_eq!(last("shop.py::total"), Some(0), "{events:#?}");
        let asked = events.iter().find_map(|event| match event {
            Event::ReviewAsked { evidence, .. } => Some(evidence.contract.len()),
            _ => None,
        });
        assert_eq!(asked, (approval == Approval::Ask).then_some(1));
    }
}

/// Returns the symbol that a proposal changes.
fn symbol_of(events: &[Event], id: u32) -> starling_syntax::SymbolPath {
    let made = events.iter().find_map(|event| match event {
        Event::ProposalMade {
            proposal, symbols, ..
        } if proposal.0 == id => symbols.first().cloned(),
        _ => None,
    });
    made.unwrap()
}

#[tokio::test(start_paused = true)]
async fn set_of_proposals_is_shown_in_one_review() {
    let mut bed = bed(&[wider(), caller(), other()]).with(|task| task.approval = Approval::Ask);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(applied(&events), 3);
    let seen = bed.approver.seen.lock().unwrap();
    assert_eq!(
        seen.len(),
        2,
        "the set, and what passes by itself: {seen:#?}"
    );
    let set = seen
        .iter()
        .find(|view| view.reason.contains("belong together"))
        .expect("a set");
    for part in [
        "2 changes that belong together:",
        "fees.py::fee: takes a rate",
        "shop.py::total: gives the rate",
    ] {
        assert!(set.reason.contains(part), "{}", set.reason);
    }
    assert!(
        set.diff.contains("+def fee(x, rate):") && set.diff.contains("+    return fee(x, 2)"),
        "{}",
        set.diff
    );
    assert!(!set.diff.contains("x + 1"), "{}", set.diff);
    assert_eq!(set.symbols.len(), 2);
    assert!(set.evidence.contains("): passed\n"), "{}", set.evidence);
    assert!(
        !set.evidence
            .contains("callers to follow up: shop.py::total"),
        "{}",
        set.evidence
    );
    let with: Vec<usize> = events
        .iter()
        .filter_map(|event| match event {
            Event::ReviewAsked { with, .. } => Some(with.len()),
            _ => None,
        })
        .collect();
    assert_eq!(with.iter().sum::<usize>(), 1);
    let reviewed = |event: &&Event| {
        matches!(
            event,
            Event::ProposalReviewed {
                verdict: Verdict::Accept,
                ..
            }
        )
    };
    assert_eq!(events.iter().filter(reviewed).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn rejected_set_of_proposals_is_returned_to_all_its_owners() {
    let mut bed = bed(&[wider(), caller()]).with(|task| task.approval = Approval::Ask);
    let reject = Verdict::Reject {
        reason: "keep the contract".into(),
    };
    *bed.approver.verdicts.lock().unwrap() = vec![reject].into();
    let events = bed.run().await;
    assert_eq!(applied(&events), 0);
    for owner in ["agent fees.py::fee", "agent shop.py::total"] {
        let prompt = bed.model.prompts(owner).pop().expect(owner);
        assert!(prompt.contains("Rejected: keep the contract"), "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn review_shows_that_proposals_also_fail_together() {
    let wrong = pick(
        "shop.py::total",
        "gives the rate",
        "def total(x):\n    return fee(x, 3)\n",
    );
    let mut bed = bed(&[wider(), wrong])
        .with(|task| task.approval = Approval::Ask)
        .tests(
            |all| match all.contains("rate)") || all.contains("fee(x, 3)") {
                true => vec![("t1".to_owned(), "TypeError".to_owned())],
                false => Vec::new(),
            },
        );
    *bed.approver.verdicts.lock().unwrap() = vec![
        Verdict::Reject {
            reason: "no".into()
        };
        4
    ]
    .into();
    let events = bed.run().await;
    assert_eq!(applied(&events), 0);
    let seen = bed.approver.seen.lock().unwrap();
    assert!(
        !seen.is_empty()
            && seen
                .iter()
                .all(|view| !view.reason.contains("belong together"))
    );
    let text = &seen[0].evidence;
    assert!(text.contains("with the other waiting proposal"), "{text}");
    assert!(text.contains("): failed\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn failing_proposal_is_reviewed_alone_if_no_other_proposal_is_waiting() {
    let mut bed = bed(&[wider()]).with(|task| task.approval = Approval::Ask);
    let events = bed.run().await;
    let seen = bed.approver.seen.lock().unwrap();
    assert!(
        !seen[0].evidence.contains("waiting"),
        "{}",
        seen[0].evidence
    );
    assert!(
        seen[0]
            .evidence
            .contains("callers to follow up: shop.py::total"),
        "{}",
        seen[0].evidence
    );
    // The caller is notified, and has work to do.
    assert!(
        woken(&events)
            .iter()
            .any(|(agent, _)| agent == "shop.py::total")
    );
}

/// The change that fixes the failing test does so only together with the other change.
#[tokio::test(start_paused = true)]
async fn proposals_that_fix_a_test_only_together_form_a_set() {
    let fails = |all: &str| match all.contains("x * rate") && all.contains("fee(x, 2)") {
        true => Vec::new(),
        false => vec![("t1".to_owned(), "AssertionError: 1 != 2".to_owned())],
    };
    let mut bed = bed(&[wider(), caller()]).with(|task| task.text = "The test t1 fails.".into());
    bed = bed.tests(fails);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!((applied(&events), bed.model.calls()), (2, 1));
}

/// The failing test only imports the module whose body is changed; the task is about something else.
#[tokio::test(start_paused = true)]
async fn unrelated_failing_test_does_not_refuse_a_set_of_proposals() {
    let files = [
        (
            "page.py",
            "TOTAL = \"{total|money}\"\n\n\ndef show(x):\n    return TOTAL + str(x)\n",
        ),
        (
            "test_page.py",
            "from page import TOTAL\n\n\ndef test_name():\n    assert \"name\" in TOTAL\n\n\ndef test_show():\n    pass\n",
        ),
    ];
    let body = json!({"symbol": "page.py::", "why": "r", "hunks": [{"old": "{total|money}", "new": "{total}"}]});
    let show = pick(
        "page.py::show",
        "r",
        "def show(x):\n    return TOTAL + f\"{x} CHF\"\n",
    );
    let model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": [show, body]}))])
        .always("agent", finish("I have nothing to add"));
    let mut bed = Bed::new(&files, model).tests(|all| {
        let mut failing = vec![(
            "test_page.py::test_name".to_owned(),
            "AssertionError: assert 'name' in 'x'".to_owned(),
        )];
        if all.contains("|money}") == all.contains("CHF") {
            failing.push((
                "test_page.py::test_show".to_owned(),
                "AssertionError".to_owned(),
            ));
        }
        failing
    });
    bed = bed.with(|task| task.text = "The printed sum always says EUR".into());
    let events = bed.run().await;
    assert_eq!(applied(&events), 2, "{events:#?}");
    assert_eq!(stop(&events), StopReason::Settled);
}

/// A set that breaks nothing and fixes nothing is refused for the latter.
#[tokio::test(start_paused = true)]
async fn set_that_fixes_no_required_test_is_refused_with_that_reason() {
    let fails = |all: &str| {
        let mut failing = calls_fit(all);
        failing.push(("t2".to_owned(), "AssertionError: 1 != 2".to_owned()));
        failing
    };
    let mut bed = bed(&[wider(), caller()]).with(|task| task.text = "The test t2 fails.".into());
    bed = bed.tests(fails);
    let events = bed.run().await;
    assert_eq!(applied(&events), 0);
    let why = events.iter().find_map(|event| match event {
        Event::ProposalRefused { why, shown, .. } => Some(shown.as_ref().unwrap_or(why).clone()),
        _ => None,
    });
    let told = "none of the failing tests passes with it and the other waiting proposals";
    assert_eq!(why.as_deref(), Some(told), "{events:#?}");
}

/// The change of a caller is accepted before its owner is notified of the contract.
#[tokio::test(start_paused = true)]
async fn owner_whose_accepted_change_matches_the_new_contract_is_not_notified() {
    let optional = pick(
        "fees.py::fee",
        "takes a rate",
        "def fee(x, *, rate):\n    return x\n",
    );
    let given = pick(
        "shop.py::total",
        "gives it",
        "def total(x):\n    return fee(x, rate=2)\n",
    );
    let mut bed = bed(&[given, optional]).tests(|_| Vec::new());
    let times = [1, 1, 5, 1, 1, 1].map(Duration::from_secs);
    *bed.test_times.lock().unwrap() = times.into();
    let events = bed.run().await;
    assert_eq!((applied(&events), bed.model.calls()), (2, 1), "{events:#?}");
}

/// Creates two pairs of changes that need each other. The second pair arrives while a person
/// reviews the first.
fn two_pairs() -> Bed {
    let files = [
        FILES[0],
        ("shop.py", "def total(x):\n    return fee(x)\n"),
        ("tax.py", "def tax(x):\n    return x\n"),
        ("bill.py", "def bill(x):\n    return tax(x)\n"),
    ];
    let late = |symbol: &str| json!({"symbol": symbol, "why": "thinks for a while"});
    let picks = [
        wider(),
        caller(),
        late("tax.py::tax"),
        late("bill.py::bill"),
    ];
    let mut model = Scripted::native()
        .on("scout", [call("wake", json!({ "symbols": picks }))])
        .on(
            "agent tax.py::tax",
            [whole("def tax(x, rate):\n    return x * rate\n")],
        )
        .on(
            "agent bill.py::bill",
            [whole("def bill(x):\n    return tax(x, 2)\n")],
        )
        .always("agent", finish("I have nothing to add"));
    model.latency = Duration::from_secs(60);
    let bed = Bed::new(&files, model).with(|task| task.approval = Approval::Ask);
    *bed.test_times.lock().unwrap() = vec![Duration::from_secs(1); 20].into();
    bed.tests(|all| {
        let has = |what: &str| all.contains(what);
        let fails = |id: &str| (id.to_owned(), "TypeError".to_owned());
        let fee = has("def fee(x, rate)") != has("fee(x, 2)");
        let tax = has("def tax(x, rate)") != has("tax(x, 2)");
        let fee = fee.then(|| fails("t1"));
        fee.into_iter().chain(tax.then(|| fails("t2"))).collect()
    })
}

#[tokio::test(start_paused = true)]
async fn set_of_proposals_is_checked_and_shown_while_another_is_under_review() {
    let mut bed = two_pairs();
    *bed.approver.latency.lock().unwrap() = Duration::from_secs(3600);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(applied(&events), 4);
    let asked = |event: &Event| matches!(event, Event::ReviewAsked { .. });
    let asked: Vec<usize> = (0..events.len()).filter(|at| asked(&events[*at])).collect();
    let answered = |event: &Event| matches!(event, Event::ProposalReviewed { .. });
    let answered = events.iter().position(answered).unwrap();
    assert_eq!(asked.len(), 2, "{events:#?}");
    assert!(asked[1] < answered, "{asked:?} {answered}");
}

/// A change that passes only together with a set under review is shown to the person at the same
/// time. If the person rejects the set, no part of the change is applied.
#[tokio::test(start_paused = true)]
async fn proposal_that_needs_a_set_under_review_is_shown_immediately() {
    for verdict in [
        Verdict::Accept,
        Verdict::Reject {
            reason: "keep the contract".into(),
        },
    ] {
        let is_accepted = verdict == Verdict::Accept;
        let late = json!({"symbol": "shop.py::other", "why": "thinks for a while"});
        let mut model = Scripted::native()
            .on(
                "scout",
                [call("wake", json!({"symbols": [wider(), caller(), late]}))],
            )
            .on(
                "agent shop.py::other",
                [whole("def other(x):\n    return fee(x, 3)\n"), finish("no")],
            )
            .always("agent", finish("I have nothing to add"));
        model.latency = Duration::from_secs(60);
        let bed = Bed::new(&FILES, model).with(|task| task.approval = Approval::Ask);
        let mut bed = bed.tests(|all| {
            let wide = all.contains("def fee(x, rate)");
            let fits = wide == all.contains("fee(x, 2)") && (wide || !all.contains("fee(x, 3)"));
            match fits {
                true => Vec::new(),
                false => vec![("t1".to_owned(), "TypeError".to_owned())],
            }
        });
        *bed.test_times.lock().unwrap() = vec![Duration::from_secs(1); 20].into();
        *bed.approver.verdicts.lock().unwrap() = [verdict].into();
        *bed.approver.latency.lock().unwrap() = Duration::from_secs(3600);
        let began = tokio::time::Instant::now();
        let events = bed.run().await;
        let count = if is_accepted { 3 } else { 0 };
        assert!(began.elapsed() < Duration::from_secs(3 * 3600));
        let first = events
            .iter()
            .position(|event| matches!(event, Event::ProposalReviewed { .. }));
        let asked = |event: &&Event| matches!(event, Event::ReviewAsked { .. });
        let before = events[..first.unwrap()].iter().filter(asked).count();
        assert_eq!(before, 2, "{events:#?}");
        if is_accepted {
            assert_eq!(applied(&events), count, "{events:#?}");
        } else {
            let text = bed.read("fees.py");
            assert_eq!(text, FILES[0].1, "{events:#?}");
        }
    }
}

/// Creates a run in which the second part arrives while a person reviews the first part. Both are
/// checked together, and the second part is shown with the number of the first.
fn late_caller(verdicts: Vec<Verdict>, latency: u64) -> Bed {
    let late = json!({"symbol": "shop.py::total", "why": "thinks for a while"});
    let mut model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": [wider(), late]}))])
        .on(
            "agent shop.py::total",
            [whole("def total(x):\n    return fee(x, 2)\n")],
        )
        .always("agent", finish("I have nothing to add"));
    model.latency = Duration::from_secs(60);
    let bed = Bed::new(&FILES, model).with(|task| task.approval = Approval::Ask);
    let bed = bed.tests(calls_fit);
    *bed.approver.latency.lock().unwrap() = Duration::from_secs(latency);
    *bed.approver.verdicts.lock().unwrap() = verdicts.into();
    bed
}

fn asked_about(events: &[Event]) -> Vec<(u32, Vec<ProposalId>)> {
    let asked = |event: &Event| match event {
        Event::ReviewAsked {
            proposal, evidence, ..
        } => Some((proposal.0, evidence.needs().to_vec())),
        _ => None,
    };
    events.iter().filter_map(asked).collect()
}

#[tokio::test(start_paused = true)]
async fn review_names_the_pending_proposal_that_a_proposal_needs() {
    let mut bed = late_caller(Vec::new(), 3600);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let first = ProposalId(1);
    assert_eq!(
        asked_about(&events),
        [(1, vec![]), (2, vec![first])],
        "nobody is asked twice: {events:#?}"
    );
    let seen = bed.approver.seen.lock().unwrap();
    let evidence = &seen[1].evidence;
    assert!(evidence.contains("needs #1: "), "{evidence}");
    assert!(!evidence.contains("BROKEN"), "{evidence}");
    // The second part is shown before the first part is decided.
    let at = |wanted: fn(&Event) -> bool| events.iter().rposition(wanted);
    let decided = events
        .iter()
        .position(|event| matches!(event, Event::ProposalReviewed { .. }));
    assert!(at(|event| matches!(event, Event::ReviewAsked { .. })) < decided);
    assert_eq!(applied(&events), 2);
}

#[tokio::test(start_paused = true)]
async fn proposal_is_returned_with_the_reason_when_the_proposal_that_it_needs_is_rejected() {
    let reject = |reason: &str| Verdict::Reject {
        reason: reason.into(),
    };
    let mut bed = late_caller(vec![reject("keep the contract"), reject("late")], 3600);
    let events = bed.run().await;
    assert_eq!(applied(&events), 0);
    let prompt = bed.model.prompts("agent shop.py::total").pop().expect("it");
    let told = "Rejected: it passes only with #1, which was rejected: keep the contract";
    assert!(prompt.contains(told), "{prompt}");
    let by_starling = |event: &&Event| {
        matches!(
            event,
            Event::ProposalReviewed {
                proposal: ProposalId(2),
                by: ActorId::Starling,
                ..
            }
        )
    };
    assert_eq!(events.iter().filter(by_starling).count(), 1, "{events:#?}");
}

/// The person decides on the second part first.
#[tokio::test(start_paused = true)]
async fn accepted_proposal_is_applied_after_the_proposal_that_it_needs() {
    for first in [
        Verdict::Accept,
        Verdict::Reject {
            reason: "no".into(),
        },
    ] {
        let is_accepted = first == Verdict::Accept;
        let mut bed = late_caller(Vec::new(), 0);
        let handle = {
            *bed.approver.latencies.lock().unwrap() =
                [Duration::from_secs(3600), Duration::from_secs(10)].into();
            *bed.approver.verdicts.lock().unwrap() = [Verdict::Accept, first].into();
            bed.start()
        };
        handle.finished().await;
        let events = handle.log.events();
        let order = |event: &Event| match event {
            Event::ProposalApplied { proposal, .. } => Some(proposal.0),
            _ => None,
        };
        let order: Vec<u32> = events.iter().filter_map(order).collect();
        match is_accepted {
            true => assert_eq!(order, [1, 2], "{events:#?}"),
            false => assert_eq!(order, [0; 0], "{events:#?}"),
        }
    }
}
