//! The user changes the line of a proposal and types the original line in another function. No
//! change of an agent is applied to that function.

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

const SHOP: &str =
    "def fee(days):\n    # c\n    return days * 3\n\n\ndef tax(total):\n    return total + 1\n";

fn hunk(new: &str) -> Line {
    let hunks = json!([{"old": "days * 3", "new": new}]);
    call("propose", json!({"reason": "r", "hunks": hunks}))
}

/// Returns the text after the user's edit: `fee` contains another number, and the new function
/// `fee2` below contains the original line.
fn with_a_look_alike(text: &str, line: &str) -> String {
    let typed = format!("    return days * 4\n\n\ndef fee2(days):\n{line}");
    let typed = text.replacen(line, &typed, 1);
    assert_ne!(typed, text);
    typed
}

#[tokio::test(start_paused = true)]
async fn accepted_change_is_not_applied_to_another_function_with_the_same_line() {
    let typed = with_a_look_alike(SHOP, "    return days * 3\n");
    for approval in [Approval::Auto, Approval::Ask] {
        let model = Scripted::native().on(
            "agent shop.py::fee",
            [hunk("days * 2"), finish("it is the user's")],
        );
        let mut bed = Bed::new(&[("shop.py", SHOP)], model)
            .begin(&["shop.py::fee"])
            .with(|task| task.approval = approval);
        *bed.editor.typing.lock().unwrap() = Some(("shop.py".into(), typed.clone()));
        let events = bed.run().await;
        let why = events.iter().find_map(|event| match event {
            Event::ProposalConflicted { why, .. } => Some(why.as_str()),
            _ => None,
        });
        let expected = "the position of the change of line 3 is uncertain: it was made in `fee`, but the \
                        matching text is now in `fee2`";
        assert_eq!(why, Some(expected), "{events:#?}");
        assert_eq!(bed.read("shop.py"), typed);
    }
}

#[tokio::test(start_paused = true)]
async fn proposal_is_not_drafted_into_another_function_with_the_same_line() {
    let read = call("read", json!({"symbols": ["shop.py::fee"]}));
    let mut model = Scripted::native().on(
        "agent shop.py::fee",
        [read, hunk("days * 2"), finish("it is the user's")],
    );
    model.latency = std::time::Duration::from_secs(5);
    let mut bed = Bed::new(&[("shop.py", SHOP)], model).begin(&["shop.py::fee"]);
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::ToolUsed { .. })).await;
    let typed = with_a_look_alike(SHOP, "    return days * 3\n");
    std::fs::write(bed.path("shop.py"), &typed).unwrap();
    handle.finished().await;
    assert_eq!(bed.read("shop.py"), typed, "{:#?}", handle.log.events());
}

#[tokio::test(start_paused = true)]
async fn undo_of_a_run_does_not_change_another_function_with_the_same_line() {
    let model = Scripted::native().on("agent shop.py::fee", [hunk("days * 2")]);
    let mut bed = Bed::new(&[("shop.py", SHOP)], model).begin(&["shop.py::fee"]);
    let handle = bed.start();
    handle.finished().await;
    let typed = with_a_look_alike(&bed.read("shop.py"), "    return days * 2\n");
    std::fs::write(bed.path("shop.py"), &typed).unwrap();
    let refused = handle.undo(None).await.unwrap_err();
    assert!(
        matches!(&refused, UndoError::Conflict { symbol, .. } if symbol.to_string() == "shop.py::fee"),
        "{refused}"
    );
    assert_eq!(bed.read("shop.py"), typed);
}
