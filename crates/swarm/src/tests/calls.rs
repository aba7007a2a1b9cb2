//! Calls that no longer match the called function count as broken by the change, whether or not a
//! test covers them.

use starling_core::Approval;

use super::bed::*;
use super::landing::{FITS, TWO, WIDER};
use crate::*;

const BY_MODELS: [Approval; 2] = [Approval::Auto, Approval::Proxy];

fn applied(events: &[Event]) -> usize {
    let is_it = |event: &&Event| matches!(event, Event::ProposalApplied { .. });
    events.iter().filter(is_it).count()
}

fn ending(events: &[Event]) -> Ending {
    match events.last() {
        Some(Event::RunFinished {
            ending: Some(ending),
            ..
        }) => ending.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn new_required_parameter_is_applied_together_with_untested_callers() {
    for approval in BY_MODELS {
        let model = Scripted::native()
            .on("agent fees.py::fee", [whole(WIDER)])
            .on("agent shop.py::total", [whole(FITS)])
            .always("proxy", say("ACCEPT"));
        let mut bed = Bed::new(&TWO, model)
            .begin(&["fees.py::fee"])
            .tests(|_| vec![])
            .with(|task| task.approval = approval);
        let events = bed.run().await;
        assert_eq!(applied(&events), 2, "{events:#?}");
        assert_eq!(bed.read("fees.py"), WIDER);
        assert!(bed.read("shop.py").ends_with(FITS));
    }
}

#[tokio::test(start_paused = true)]
async fn new_required_parameter_is_refused_if_a_caller_is_not_updated() {
    for approval in BY_MODELS {
        let model = Scripted::native()
            .on("agent fees.py::fee", [whole(WIDER), finish("no other way")])
            .on("agent shop.py::total", [finish("nothing to change here")])
            .always("proxy", say("ACCEPT"));
        let mut bed = Bed::new(&TWO, model)
            .begin(&["fees.py::fee"])
            .tests(|_| vec![])
            .with(|task| task.approval = approval);
        let events = bed.run().await;
        assert_eq!(applied(&events), 0, "{events:#?}");
        let why = &malformed(&events)[0];
        let expected = "fees.py::fee is called without `rate`, and needs it in shop.py::total";
        assert!(why.contains(expected), "{why}");
        assert_ne!(ending(&events).proof, Proof::Proven);
    }
}

/// The changed call matches only the new definition, whose change is refused.
#[tokio::test(start_paused = true)]
async fn changed_call_is_not_applied_without_the_matching_definition() {
    let broken = |all: &str| match all.contains("None") {
        true => vec![("t1".to_owned(), "AssertionError".to_owned())],
        false => vec![],
    };
    for approval in BY_MODELS {
        let wrong = whole("def fee(x, rate=1):\n    return None\n");
        let model = Scripted::native()
            .on("agent fees.py::fee", [wrong, finish("no other way")])
            .on(
                "agent shop.py::total",
                [whole(FITS), finish("it must wait")],
            )
            .always("proxy", say("ACCEPT"));
        let mut bed = Bed::new(&TWO, model)
            .begin(&["shop.py::total", "fees.py::fee"])
            .tests(broken)
            .with(|task| task.approval = approval);
        let events = bed.run().await;
        assert_eq!(applied(&events), 0, "{events:#?}");
        let refused = malformed(&events);
        let expected = "fees.py::fee is called with 2 arguments by position, and takes 1";
        assert!(
            refused.iter().any(|why| why.contains(expected)),
            "{refused:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn mismatched_calls_are_reported_in_the_review_and_in_the_headline() {
    let model = Scripted::native()
        .on("agent fees.py::fee", [whole(WIDER)])
        .always("agent shop.py::total", finish("nothing to change here"));
    let mut bed = Bed::new(&TWO, model)
        .begin(&["fees.py::fee"])
        .tests(|_| vec![])
        .with(|task| task.approval = Approval::Ask);
    let events = bed.run().await;
    let call = "shop.py:5: fees.py::fee is called without `rate`, and needs it in shop.py::total";
    let seen = bed.approver.seen.lock().unwrap();
    assert!(seen[0].evidence.contains(call), "{}", seen[0].evidence);
    let Ending {
        proof, headline, ..
    } = ending(&events);
    assert_eq!(proof, Proof::Unproven);
    assert!(headline.contains(call), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn calls_that_were_already_mismatched_do_not_block_a_change() {
    let shop = TWO[1].1.replace("fee(x)", "fee(x, 2, 3)");
    let model = Scripted::native().on("agent fees.py::fee", [whole(WIDER)]);
    let mut bed = Bed::new(&[TWO[0], ("shop.py", &shop)], model)
        .begin(&["fees.py::fee"])
        .tests(|_| vec![])
        .with(|task| task.approval = Approval::Auto);
    let events = bed.run().await;
    assert_eq!(bed.read("fees.py"), WIDER, "{events:#?}");
}
