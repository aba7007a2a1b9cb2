//! A small model that repeats a wrong reply is asked to fill in one statement at a time.

use super::bed::*;
use crate::*;
use starling_core::Message;

const SHARE: &str = "\
import math


def share(total, people):
    if people < 1:
        raise ValueError(people)
    each = total / people
    return math.floor(each)


def other():
    return 1
";

/// Returns a reply with the unchanged function in a code block.
fn repeats() -> Line {
    let (_, function) = SHARE.split_once("\n\n\n").unwrap();
    let (function, _) = function.split_once("\n\n\n").unwrap();
    say(&format!("```python\n{function}\n```"))
}

fn red_until_ceil(all: &str) -> Vec<(String, String)> {
    let message = "    self.assertEqual(share(5, 2), 3)\nAssertionError: 2 != 3";
    match all.contains("math.ceil(each)") {
        true => Vec::new(),
        false => vec![("t1".to_owned(), message.to_owned())],
    }
}

fn bed(model: Scripted) -> Bed {
    Bed::new(&[("a.py", SHARE)], model)
        .begin(&["a.py::share"])
        .tests(red_until_ceil)
        .with(|task| task.text = "A share is never too small.".into())
}

#[tokio::test(start_paused = true)]
async fn statement_filled_in_by_the_model_is_proposed_if_the_tests_pass() {
    let model = Scripted::small()
        .filling()
        .on("agent a.py::share", [repeats()])
        .on(
            "fill a.py::share",
            [
                say("    if people == 0:"),
                say("        raise ValueError(people)"),
                say("    each = total // people"),
                say("    return math.ceil(each)\n\n\ndef more():\n    pass"),
            ],
        );
    let mut bed = bed(model);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(
        bed.read("a.py"),
        SHARE.replace("math.floor(each)", "math.ceil(each)")
    );
    let asked = bed.model.asked.lock().unwrap();
    let holes: Vec<_> = asked
        .iter()
        .filter(|request| request.conversation.starts_with("fill "))
        .collect();
    assert_eq!(holes.len(), 4);
    let third = holes[2];
    assert_eq!(
        third.beginning,
        "import math\n\n\n# A share is never too small.\ndef share(total, people):\n    if people < 1:\n        raise ValueError(people)\n"
    );
    assert_eq!(
        third.following,
        "\n    return math.floor(each)\n\n\ndef other():\n"
    );
    assert_eq!(third.stop, ["\n\n", "\n    return math.floor(each)\n"]);
    assert_eq!(third.max_output.0, 48);
    assert_eq!(
        holes[3].following, "\n\n\ndef other():\n",
        "where the function ends"
    );
    let beside: Vec<&str> = third.messages.iter().map(Message::text).collect();
    assert!(
        beside[0].contains("# `share(5, 2)` must be `3`, but it is `2`."),
        "{beside:?}"
    );
    drop(asked);
    let proposed = events.iter().filter_map(|event| match event {
        Event::ProposalMade { reason, .. } => Some(reason.as_str()),
        _ => None,
    });
    assert_eq!(
        proposed.collect::<Vec<_>>(),
        ["`return math.ceil(each)` instead of `return math.floor(each)`"],
        "what makes no test pass is not proposed"
    );
}

#[tokio::test(start_paused = true)]
async fn agent_gives_up_after_all_strategies_and_reports_the_number_of_attempts() {
    let useless = say("    pass");
    let model = Scripted::small()
        .filling()
        .always("agent a.py::share", repeats())
        .always("fill a.py::share", useless);
    let mut bed = bed(model);
    let events = bed.run().await;
    assert!(!stop(&events).is_settled(), "{events:#?}");
    assert_eq!(bed.read("a.py"), SHARE);
    let gave_up = events.iter().find_map(|event| match event {
        Event::AgentFinished {
            outcome: AgentOutcome::GaveUp { why },
            ..
        } => Some(why.clone()),
        _ => None,
    });
    // The 7 attempts are 3 whole replies and 1 text for each of the 4 statements. A statement's
    // text is counted only once, although the model repeats it.
    let why = gave_up.unwrap();
    assert!(why.starts_with("7 attempts did not help"), "{why}");
    let asked = bed.model.asked.lock().unwrap();
    let temperatures: Vec<(bool, f32)> = asked
        .iter()
        .map(|request| {
            (
                request.conversation.starts_with("fill "),
                request.temperature,
            )
        })
        .collect();
    let fill = |temperature| [(true, temperature); 4];
    let mut expected = vec![(false, 0.0)];
    expected.extend(fill(0.0));
    expected.push((false, 0.8));
    expected.extend(fill(0.8));
    expected.push((false, 0.0));
    assert_eq!(temperatures[..expected.len()], expected);
}

#[tokio::test(start_paused = true)]
async fn no_statement_is_filled_in_if_no_test_fails() {
    let model = Scripted::small()
        .filling()
        .always("agent a.py::share", repeats());
    let mut bed = bed(model).tests(|_| Vec::new());
    let events = bed.run().await;
    assert!(!stop(&events).is_settled(), "{events:#?}");
    let asked = bed.model.asked.lock().unwrap();
    assert!(asked.iter().all(|request| request.following.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn fill_in_that_fixes_all_tests_is_preferred_to_one_that_fixes_some() {
    let model = Scripted::small()
        .filling()
        .on("agent a.py::share", [repeats()])
        .on(
            "fill a.py::share",
            [
                say("    if people == 7:"),
                say("        raise ValueError(people)"),
                say("    each = total // people"),
                say("    return math.ceil(each)"),
            ],
        );
    let judge = |all: &str| {
        let failed = |id: &str| (id.to_owned(), "AssertionError: 2 != 3".to_owned());
        match (all.contains("math.ceil(each)"), all.contains("people == 7")) {
            (true, _) => Vec::new(),
            (false, true) => vec![failed("t1")],
            (false, false) => vec![failed("t1"), failed("t2")],
        }
    };
    let mut bed = bed(model).tests(judge);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(
        bed.read("a.py"),
        SHARE.replace("math.floor(each)", "math.ceil(each)")
    );
}
