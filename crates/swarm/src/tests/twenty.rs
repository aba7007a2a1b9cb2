//! A change of twenty symbols that passes only as a whole. The scout (the agent that selects
//! symbols) selects more symbols than there may be agents.

use serde_json::{Value, json};
use starling_core::Approval;

use super::bed::*;
use crate::*;

const SYMBOLS: usize = 20;

fn package() -> String {
    let function = |at: usize| format!("def f{at}():\n    return old()\n");
    let functions: Vec<String> = (0..SYMBOLS).map(function).collect();
    format!("def old():\n    return 1\n\n\n{}", functions.join("\n\n"))
}

/// Returns the test results: the package cannot be imported while some functions call the old name
/// and others call the new name.
fn imports(all: &str) -> Vec<(String, String)> {
    let (old, new) = (all.contains("return old()"), all.contains("return new()"));
    match old && new {
        true => vec![(
            "test_p.py".to_owned(),
            "ImportError while importing test module 'test_p.py'.\np.py:5: in <module>\nE   NameError: \
             name 'new' is not defined"
                .to_owned(),
        )],
        false => Vec::new(),
    }
}

/// Returns an entry of the scout's selection: a symbol, with a draft of its change if `is_complete`
/// is set.
fn pick(at: usize, is_complete: bool) -> Value {
    let symbol = format!("p.py::f{at}");
    match is_complete {
        true => json!({
            "symbol": symbol,
            "why": "calls the new name",
            "hunks": [{"old": "return old()", "new": "return new()"}],
        }),
        false => json!({"symbol": symbol, "why": "must call the new name"}),
    }
}

/// Creates a run in which the scout selects all twenty symbols and drafts their changes, except
/// those of the last `incomplete` symbols.
fn bed(approval: Approval, incomplete: usize) -> Bed {
    let picks = (0..SYMBOLS).map(|at| pick(at, at + incomplete < SYMBOLS));
    let mut picks: Vec<Value> = picks.collect();
    picks.push(json!({
        "symbol": "names.py",
        "why": "holds the new name",
        "source": "def new():\n    return 1\n",
    }));
    let model = Scripted::native()
        .on("scout", [call("wake", json!({ "symbols": picks }))])
        .always("proxy", say("ACCEPT"))
        .always("agent", finish("I have nothing to add"));
    let text = package();
    let mut bed = Bed::new(&[("p.py", text.as_str())], model)
        .tests(imports)
        .with(|task| {
            task.approval = approval;
            task.limits.agents = 16;
            task.limits.calls = 60;
        });
    bed.task.patch = Some(bed.path("kept.patch"));
    // Each test run takes one second, so that the checks of all drafts overlap.
    *bed.test_times.lock().unwrap() = vec![std::time::Duration::from_secs(1); 200].into();
    bed
}

fn not_woken(events: &[Event]) -> usize {
    let missed = |event: &&Event| matches!(event, Event::NotWoken { .. });
    events.iter().filter(missed).count()
}

const ALL: [Approval; 3] = [Approval::Auto, Approval::Proxy, Approval::Ask];

#[tokio::test(start_paused = true)]
async fn twenty_changes_that_the_scout_drafted_are_applied_together_without_agents() {
    for approval in ALL {
        let mut bed = bed(approval, 0);
        let events = bed.run().await;
        assert_eq!(
            stop(&events),
            StopReason::Settled,
            "{approval:?}: {events:#?}"
        );
        assert_eq!(not_woken(&events), 0);
        let text = bed.read("p.py");
        assert_eq!(
            text.matches("return new()").count(),
            SYMBOLS,
            "{approval:?}"
        );
        assert_eq!(bed.read("names.py"), "def new():\n    return 1\n");
    }
}

/// The scout drafts 16 of the 20 changes. The owners of the other four functions change nothing, so
/// the package cannot be imported with the 16 changes.
#[tokio::test(start_paused = true)]
async fn incomplete_change_of_twenty_symbols_is_not_applied_automatically() {
    for approval in [Approval::Auto, Approval::Proxy] {
        let mut bed = bed(approval, 4);
        let events = bed.run().await;
        let text = bed.read("p.py");
        assert_eq!(text, package(), "{approval:?}: {events:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn symbols_that_get_no_agent_because_of_the_limit_of_sixteen_agents_are_reported() {
    for approval in ALL {
        let mut bed = bed(approval, SYMBOLS);
        let events = bed.run().await;
        let symbols: Vec<&str> = (events.iter())
            .filter_map(|event| match event {
                Event::NotWoken { symbol, why, .. } => {
                    assert!(why.contains("16"), "{why}");
                    Some(symbol.as_str())
                }
                _ => None,
            })
            .collect();
        let expected = ["p.py::f16", "p.py::f17", "p.py::f18", "p.py::f19"];
        assert_eq!(symbols, expected, "{approval:?}: {events:#?}");
    }
}

/// A person accepts an incomplete change. The review shows which tests it breaks, and the owners of
/// the functions that were not changed are started.
#[tokio::test(start_paused = true)]
async fn review_shows_which_tests_an_incomplete_change_breaks() {
    let mut bed = bed(Approval::Ask, 4);
    let events = bed.run().await;
    let seen = bed.approver.seen.lock().unwrap();
    let of_package = seen
        .iter()
        .filter(|view| view.symbol.file.as_str() == "p.py");
    for view in of_package {
        assert!(view.evidence.contains("test_p.py"), "{}", view.evidence);
    }
    let text = bed.read("p.py");
    match stop(&events) {
        StopReason::TestsFail { failing } => assert_eq!(failing, ["test_p.py"]),
        _ => assert!(imports(&text).is_empty(), "{events:#?}"),
    }
}
