//! A change of twenty symbols that passes only as a whole, with more selected symbols than allowed
//! agents.

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

/// The package cannot be imported while some functions call the old name and others the new one.
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

/// Returns the scout's selection of a symbol. A complete selection contains a draft of the change.
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

/// Creates a run of twenty selected symbols, of which the last `incomplete` have no draft.
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
    // All drafts are checked at the same time.
    *bed.test_times.lock().unwrap() = vec![std::time::Duration::from_secs(1); 200].into();
    bed
}

fn not_woken(events: &[Event]) -> usize {
    let missed = |event: &&Event| matches!(event, Event::NotWoken { .. });
    events.iter().filter(missed).count()
}

const ALL: [Approval; 3] = [Approval::Auto, Approval::Proxy, Approval::Ask];

#[tokio::test(start_paused = true)]
async fn complete_drafts_of_twenty_symbols_are_applied_together_without_agents() {
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

/// Four owners find nothing to change, and without their changes the others break the package.
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
async fn selected_symbols_beyond_sixteen_agents_are_reported() {
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
/// the missing changes are woken.
#[tokio::test(start_paused = true)]
async fn review_shows_what_an_incomplete_change_breaks() {
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
