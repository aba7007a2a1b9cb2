//! Several editor models propose candidates for one change. The candidate with the best check
//! results is chosen; among equal results, the smallest candidate.

use std::sync::Arc;

use super::bed::*;
use crate::*;
use starling_core::ChatModel;

const ONE: &str = "def f(x):\n    return x\n";

fn editor(name: &str, reply: &str) -> Arc<dyn ChatModel> {
    let model = Scripted::native().named(name);
    Arc::new(model.on("editor", [say(reply)]))
}

fn fenced(body: &str) -> String {
    format!("```python\ndef f(x):\n    {body}\n```")
}

fn bed(own: &str, rivals: [(&str, &str); 2]) -> Bed {
    let own = whole(&format!("def f(x):\n    {own}\n"));
    let model = Scripted::native().on("agent a.py::f", [own]);
    let mut bed = Bed::new(&[("a.py", ONE)], model).begin(&["a.py::f"]);
    bed.editors = rivals.map(|(name, reply)| editor(name, reply)).into();
    bed
}

fn chosen(events: &[Event]) -> (String, Vec<String>, String) {
    let chosen = |event: &Event| match event {
        Event::CandidateChosen {
            model, among, why, ..
        } => Some((model.clone(), among.clone(), why.clone())),
        _ => None,
    };
    events
        .iter()
        .find_map(chosen)
        .expect("a candidate is chosen")
}

#[tokio::test(start_paused = true)]
async fn smallest_passing_candidate_is_chosen() {
    let long = fenced("return x + 1 + 0 + 0 + 0");
    let short = fenced("return x + 1");
    let mut bed = bed("return 0", [("one", &long), ("two", &short)]).tests(|all| {
        if all.contains("x + 1") {
            vec![]
        } else {
            vec![("t1".into(), "no".into())]
        }
    });
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("a.py"), ONE.replace("return x", "return x + 1"));
    let (model, among, why) = chosen(&events);
    assert_eq!(
        (model.as_str(), among.as_slice()),
        (
            "two",
            ["scripted", "one", "two"].map(String::from).as_slice()
        )
    );
    assert!(why.starts_with("0 tests broken, 1 fixed, "), "{why}");
    let Some(Event::RunFinished { tally, spent, .. }) = events.last() else {
        panic!()
    };
    assert_eq!(tally, &[("two".to_owned(), 1)]);
    assert_eq!(spent.calls, 3);
}

#[tokio::test(start_paused = true)]
async fn smaller_candidate_that_breaks_a_test_is_not_chosen() {
    let mut bed = bed(
        "return x + 1 + 0",
        [("one", &fenced("return 1")), ("two", &fenced("return 2"))],
    )
    .tests(|all| {
        if all.contains("return x") {
            vec![]
        } else {
            vec![("t1".into(), "no".into())]
        }
    });
    let events = bed.run().await;
    assert_eq!(chosen(&events).0, "scripted");
    assert!(bed.read("a.py").contains("return x + 1 + 0"));
}

#[tokio::test(start_paused = true)]
async fn candidates_that_are_not_valid_code_are_reported_and_not_compared() {
    let mut bed = bed(
        "return x + 1",
        [
            ("one", "I would rather not."),
            ("two", &fenced("return (x")),
        ],
    );
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let (model, among, _) = chosen(&events);
    assert_eq!((model.as_str(), among.len()), ("scripted", 1));
    assert!(
        malformed(&events)
            .iter()
            .any(|what| what.starts_with("candidate of two: ")),
        "{events:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn chosen_candidate_is_applied_despite_a_concurrent_change() {
    let add = serde_json::json!({"reason": "r", "add": [{"source": "def h():\n    return 1\n"}]});
    let model = Scripted::native()
        .on("agent a.py::f", [whole("def f(x):\n    return 0\n")])
        .on("agent b.py::g", [call("propose", add)]);
    let files = [("a.py", ONE), ("b.py", "def g():\n    return 1\n")];
    let mut bed = Bed::new(&files, model).begin(&["a.py::f", "b.py::g"]);
    bed.editors = vec![editor("one", &fenced("return x + 1"))];
    bed = bed.tests(|all| match all.contains("x + 1") {
        true => vec![],
        false => vec![("t1".into(), "no".into())],
    });
    // Durations of the test runs: before the changes, for the change of `g`, for each of the two
    // candidates, and for the chosen candidate. The change of `g` is applied during the last run.
    let times = [0, 5, 1, 1, 10].map(std::time::Duration::from_secs);
    *bed.test_times.lock().unwrap() = times.into();
    let events = bed.run().await;
    assert_eq!(chosen(&events).0, "one");
    assert!(bed.read("b.py").contains("def h()"), "{events:#?}");
    assert_eq!(bed.read("a.py"), ONE.replace("return x", "return x + 1"));
}
