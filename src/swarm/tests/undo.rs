//! Taking back: one of several, all, and what the user changed since.

use super::bed::*;
use crate::swarm::*;

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";
const F: &str = "return x + 1\n";
const G: &str = "return f(x) + 2\n";

/// A finished run that changed both functions, and the proposals in the order of their arrival.
async fn changed() -> (Bed, RunHandle, Vec<(ProposalId, String)>) {
    let model = Scripted::native()
        .on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")])
        .on("agent a.py::g", [whole("def g(x):\n    return f(x) + 2\n")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f", "a.py::g"]);
    let handle = bed.start();
    handle.finished().await;
    let text = bed.read("a.py");
    assert!(text.contains(F) && text.contains(G), "{text}");
    let applied = |event: &Event| match event {
        Event::ProposalApplied {
            proposal, symbols, ..
        } => Some((*proposal, symbols[0].to_string())),
        _ => None,
    };
    let applied = handle.log.events().iter().filter_map(applied).collect();
    (bed, handle, applied)
}

#[tokio::test(start_paused = true)]
async fn one_of_several_is_taken_back_and_the_other_stays() {
    for which in ["a.py::f", "a.py::g"] {
        let (bed, handle, applied) = changed().await;
        let id = applied
            .iter()
            .find(|(_, symbol)| symbol == which)
            .unwrap()
            .0;
        assert_eq!(handle.undo(Some(id)).await, Ok(vec![id]));
        let text = bed.read("a.py");
        assert_eq!(text.contains(F), which != "a.py::f", "{text}");
        assert_eq!(text.contains(G), which != "a.py::g", "{text}");
        assert_eq!(handle.undo(Some(id)).await, Err(UndoError::Unknown(id)));
    }
}

#[tokio::test(start_paused = true)]
async fn all_are_taken_back_the_last_first() {
    let (bed, handle, applied) = changed().await;
    let last_first: Vec<ProposalId> = applied.iter().rev().map(|(id, _)| *id).collect();
    assert_eq!(handle.undo(None).await, Ok(last_first));
    assert_eq!(bed.read("a.py"), TWO);
    assert_eq!(handle.undo(None).await, Ok(vec![]), "nothing is left");
}

#[tokio::test(start_paused = true)]
async fn what_the_user_changed_since_is_not_taken_back() {
    let (bed, handle, applied) = changed().await;
    let typed = bed.read("a.py").replace("return x + 1", "return x * 9");
    std::fs::write(bed.path("a.py"), &typed).unwrap();
    let id = applied
        .iter()
        .find(|(_, symbol)| symbol == "a.py::f")
        .unwrap()
        .0;
    let conflict = handle.undo(Some(id)).await.unwrap_err();
    assert!(
        matches!(&conflict, UndoError::Conflict { symbol, .. } if symbol.to_string() == "a.py::f"),
        "{conflict}"
    );
    assert_eq!(bed.read("a.py"), typed);
}
