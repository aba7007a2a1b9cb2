//! Undo of one proposal, of a whole run, and of changes in code that the user has edited since.

use super::bed::*;
use super::landing::{self, FITS, WIDER, left_applied, pair};
use crate::*;
use starling_core::Approval;

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";
const F: &str = "return x + 1\n";
const G: &str = "return f(x) + 2\n";

/// Runs two agents that change both functions. Returns the finished run with its proposals, in the
/// order in which they were applied.
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
async fn undo_of_one_proposal_keeps_the_others() {
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
async fn undo_of_a_run_reverts_all_proposals_in_reverse_order() {
    let (bed, handle, applied) = changed().await;
    let last_first: Vec<ProposalId> = applied.iter().rev().map(|(id, _)| *id).collect();
    assert_eq!(handle.undo(None).await, Ok(last_first));
    assert_eq!(bed.read("a.py"), TWO);
    assert_eq!(handle.undo(None).await, Ok(vec![]), "nothing is left");
}

#[tokio::test(start_paused = true)]
async fn change_that_the_user_undid_in_the_editor_can_be_undone_only_after_a_redo_in_the_editor() {
    let (bed, handle, applied) = changed().await;
    let text = bed.read("a.py");
    std::fs::write(bed.path("a.py"), TWO).unwrap();
    let mut ids: Vec<ProposalId> = applied.iter().map(|(id, _)| *id).collect();
    ids.sort_unstable();
    let gone = handle.undo(None).await;
    assert_eq!(gone, Err(UndoError::Gone(ids.clone())));
    assert_eq!(
        handle.undo(Some(ids[0])).await,
        Err(UndoError::Gone(vec![ids[0]]))
    );
    assert_eq!(bed.read("a.py"), TWO);
    // The user redoes the changes in the editor.
    std::fs::write(bed.path("a.py"), text).unwrap();
    assert_eq!(
        handle.undo(None).await.map(|undone| undone.len()),
        Ok(ids.len())
    );
    assert_eq!(bed.read("a.py"), TWO);
}

#[tokio::test(start_paused = true)]
async fn undo_is_refused_if_the_user_replaced_the_changed_line() {
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

#[tokio::test(start_paused = true)]
async fn undo_deletes_a_created_file() {
    let make = call(
        "propose",
        serde_json::json!({"reason": "r", "symbol": "b.py", "source": "def h():\n    return 1\n", "more": true}),
    );
    let model = Scripted::native().on("agent a.py::f", [make, finish("done")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let handle = bed.start();
    handle.finished().await;
    let events = handle.log.events();
    let Some(Event::RunFinished { diff, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    let expected = "--- /dev/null\n+++ b/b.py\n@@ -0,0 +1,2 @@\n+def h():\n+    return 1\n";
    assert_eq!(diff, expected);
    assert_eq!(handle.undo(None).await.unwrap().len(), 1);
    assert!(!bed.path("b.py").exists());
    assert_eq!(bed.read("a.py"), TWO);
}

#[tokio::test(start_paused = true)]
async fn undo_says_that_a_created_file_is_gone_and_nothing_is_left_to_undo() {
    let make = call(
        "propose",
        serde_json::json!({"reason": "r", "symbol": "b.py", "source": "def h():\n    return 1\n", "more": true}),
    );
    let model = Scripted::native().on("agent a.py::f", [make, finish("done")]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let handle = bed.start();
    handle.finished().await;
    // As if the editor closed the new document without saving it.
    std::fs::remove_file(bed.path("b.py")).unwrap();
    for which in [None, Some(ProposalId(1))] {
        let gone = handle.undo(which).await.unwrap_err();
        assert_eq!(gone, UndoError::Gone(vec![ProposalId(1)]));
        let told = gone.to_string();
        assert!(told.contains("nothing is left to undo"), "{told}");
        assert!(told.contains("the file that it created is gone"), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn undo_of_a_created_file_keeps_the_users_additions() {
    let make = call(
        "propose",
        serde_json::json!({"reason": "r", "symbol": "b.py", "source": "def h():\n    return 1\n"}),
    );
    let model = Scripted::native().on("agent a.py::f", [make]);
    let mut bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let handle = bed.start();
    handle.finished().await;
    std::fs::write(bed.path("b.py"), "# mine\ndef h():\n    return 1\n").unwrap();
    handle.undo(None).await.unwrap();
    assert_eq!(bed.read("b.py"), "# mine\n");
}

#[tokio::test(start_paused = true)]
async fn test_that_fails_again_after_an_undo_is_not_blamed_on_a_later_change() {
    let wrong = |all: &str| match all.contains("return x + 1") {
        true => vec![],
        false => vec![("t1".to_owned(), "AssertionError".to_owned())],
    };
    // The second agent proposes its change after the undo. Its change breaks nothing, because `t1`
    // also failed before the run.
    let mut model = Scripted::native()
        .on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")])
        .on(
            "agent a.py::g",
            [
                call("read", serde_json::json!({"symbols": ["a.py::f"]})),
                call("read", serde_json::json!({"symbols": ["a.py::g"]})),
                whole("def g(x):\n    return f(x) + 2\n"),
            ],
        );
    model.latency = std::time::Duration::from_secs(5);
    let mut bed = Bed::new(&[("a.py", TWO)], model)
        .begin(&["a.py::f", "a.py::g"])
        .tests(wrong);
    let handle = bed.start();
    let mut log = handle.log.follow();
    let id = loop {
        let record = log.next().await.unwrap();
        if let Record::Event(Event::ProposalApplied { proposal, .. }) = &record.record {
            break *proposal;
        }
    };
    handle.undo(Some(id)).await.unwrap();
    handle.finished().await;
    let evidence = handle
        .log
        .events()
        .into_iter()
        .rev()
        .find_map(|event| match event {
            Event::ProposalChecked { evidence, .. } => Some(evidence.tests),
            _ => None,
        });
    let Some(TestEvidence::Known {
        broken,
        still_failing,
        ..
    }) = evidence
    else {
        panic!("{evidence:?}");
    };
    assert_eq!((broken, still_failing), (vec![], vec!["t1".to_owned()]));
}

/// The user and the agent changed different bytes of one line. An undo would leave a line that
/// neither of them wrote.
#[tokio::test(start_paused = true)]
async fn undo_is_refused_if_the_user_edited_another_part_of_the_changed_line() {
    let (bed, handle, applied) = changed().await;
    let typed = bed.read("a.py").replace("return x + 1", "return y + 1");
    std::fs::write(bed.path("a.py"), &typed).unwrap();
    let f = applied.iter().find(|(_, symbol)| symbol == "a.py::f");
    let conflict = handle.undo(Some(f.unwrap().0)).await.unwrap_err();
    assert!(matches!(conflict, UndoError::Conflict { .. }), "{conflict}");
    assert_eq!(bed.read("a.py"), typed);
}

/// Returns the recorded dependencies of an applied proposal.
fn belongs_to(events: &[Event], id: u32) -> Dependencies {
    let change = events.iter().find_map(|event| match event {
        Event::ProposalApplied {
            proposal, change, ..
        } if proposal.0 == id => change.clone(),
        _ => None,
    });
    change.expect("an applied change").dependencies
}

fn stay(undo: Result<Vec<ProposalId>, UndoError>) -> (Vec<ProposalId>, Vec<(ProposalId, String)>) {
    match undo {
        Err(UndoError::Stay { undone, stay }) => (undone, stay),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn undo_of_a_run_undoes_a_set_of_proposals_completely_or_not_at_all() {
    for approval in [Approval::Auto, Approval::Proxy, Approval::Ask] {
        for (file, line) in [("shop.py", "return fee(x, 2)"), ("fees.py", "x * rate")] {
            let mut bed = pair(approval, &[whole(WIDER)], &[whole(FITS)]);
            let handle = bed.start();
            handle.finished().await;
            for (id, other) in [(1, 2), (2, 1)] {
                let set = belongs_to(&handle.log.events(), id).set;
                assert_eq!(set, [ProposalId(other)].into(), "{approval:?}");
            }
            let whole = bed.read(file);
            let typed = whole.replace(line, &format!("{line} + 9"));
            std::fs::write(bed.path(file), &typed).unwrap();
            let (undone, told) = stay(handle.undo(None).await);
            assert_eq!(undone, []);
            assert_eq!(told.len(), 2, "{told:?}");
            let ((first, why), (second, held)) = (&told[0], &told[1]);
            assert!(why.contains("after the proposal was applied"), "{told:?}");
            assert_ne!(first, second);
            assert_eq!(
                *held,
                format!("it belongs together with {first}, which stays")
            );
            assert_eq!(bed.read(file), typed);
            assert_eq!(left_applied(&handle.log.events()).len(), 2);
            // A single proposal of the set can be undone on request. The other proposal of the set
            // is undone after the user's edit was reverted.
            assert_eq!(handle.undo(Some(*second)).await, Ok(vec![*second]));
            std::fs::write(bed.path(file), &whole).unwrap();
            assert_eq!(handle.undo(None).await, Ok(vec![*first]));
            for (file, text) in landing::TWO {
                assert_eq!(bed.read(file), text);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn proposals_of_a_set_are_restored_if_the_editor_refuses_to_undo_another_one_of_the_set() {
    for refused in ["fees.py", "shop.py"] {
        let mut bed = pair(Approval::Auto, &[whole(WIDER)], &[whole(FITS)]);
        let handle = bed.start();
        handle.finished().await;
        let before = landing::TWO.map(|(file, _)| bed.read(file));
        *bed.editor.refuses.lock().unwrap() = Some(refused.to_owned());
        let (undone, told) = stay(handle.undo(None).await);
        assert_eq!((undone.len(), told.len()), (0, 2), "{told:?}");
        assert!(told[0].1.contains("permission denied"), "{told:?}");
        assert_eq!(landing::TWO.map(|(file, _)| bed.read(file)), before);
        let events = handle.log.events();
        let mut left = left_applied(&events);
        left.sort();
        assert_eq!(left, [ProposalId(1), ProposalId(2)], "{events:#?}");
        assert_eq!(handle.undo(None).await.unwrap().len(), 2);
        for (file, text) in landing::TWO {
            assert_eq!(bed.read(file), text);
        }
    }
}

/// The change of `total` passes its checks only together with the change of `fee`, which was
/// applied first.
#[tokio::test(start_paused = true)]
async fn change_is_not_undone_if_another_change_that_may_need_it_cannot_be_undone() {
    let fits = |all: &str| match all.contains("fee(x, 2)") && !all.contains("rate=1") {
        true => vec![("t1".to_owned(), "TypeError: fee()".to_owned())],
        false => Vec::new(),
    };
    for (file, line, undone_first) in [
        ("shop.py", "return fee(x, 2)", None),
        ("fees.py", "x * rate", Some("shop.py::total")),
    ] {
        let model = Scripted::native()
            .on("agent shop.py::total", [whole(FITS)])
            .on(
                "agent fees.py::fee",
                [
                    call("read", serde_json::json!({"symbols": ["shop.py::total"]})),
                    whole("def fee(x, rate=1):\n    return x * rate\n"),
                ],
            );
        let mut bed = Bed::new(&landing::TWO, model)
            .begin(&["shop.py::total", "fees.py::fee"])
            .tests(fits);
        let handle = bed.start();
        handle.finished().await;
        let events = handle.log.events();
        let of = |owner: &str| {
            let applied = |event: &Event| match event {
                Event::ProposalApplied {
                    proposal, symbols, ..
                } if symbols[0].to_string() == owner => Some(*proposal),
                _ => None,
            };
            events.iter().find_map(applied).expect("applied")
        };
        let (total, fee) = (of("shop.py::total"), of("fees.py::fee"));
        assert_eq!(belongs_to(&events, total.0).needs, [fee].into());
        assert!(belongs_to(&events, fee.0).is_empty());
        let typed = bed.read(file).replace(line, &format!("{line} + 9"));
        std::fs::write(bed.path(file), &typed).unwrap();
        let (undone, told) = stay(handle.undo(None).await);
        let expected = undone_first.map(|_| total);
        assert_eq!(undone, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(bed.read(file), typed);
        match undone_first {
            Some(_) => assert_eq!(told.len(), 1, "{told:?}"),
            None => assert!(
                told[1]
                    .1
                    .starts_with(&format!("{total}, which stays, may need it")),
                "{told:?}"
            ),
        }
    }
}

/// A person accepts a changed signature before its caller is updated. The change of the caller (the
/// follow-up) is applied later, and the user then edits it.
#[tokio::test(start_paused = true)]
async fn changed_signature_is_not_undone_if_the_change_of_its_caller_cannot_be_undone() {
    let text = "def fee(x):\n    return x\n\n\ndef g(x):\n    return fee(x) + 1\n";
    let model = Scripted::native()
        .on(
            "agent a.py::fee",
            [whole("def fee(x, y):\n    return x + y\n")],
        )
        .on(
            "agent a.py::g",
            [whole("def g(x):\n    return fee(x, 1)\n")],
        );
    let mut bed = Bed::new(&[("a.py", text)], model)
        .begin(&["a.py::fee"])
        .with(|task| task.approval = Approval::Ask);
    let handle = bed.start();
    handle.finished().await;
    let events = handle.log.events();
    assert_eq!(left_applied(&events).len(), 2, "{events:#?}");
    assert_eq!(belongs_to(&events, 2).set, [ProposalId(1)].into());
    let typed = bed.read("a.py").replace("fee(x, 1)", "fee(x, 1) * 9");
    std::fs::write(bed.path("a.py"), &typed).unwrap();
    let (undone, told) = stay(handle.undo(None).await);
    assert_eq!((undone.len(), told.len()), (0, 2), "{told:?}");
    assert_eq!(bed.read("a.py"), typed);
}

/// Another run, or the user, made the same change before it was accepted.
#[tokio::test(start_paused = true)]
async fn undo_of_a_change_that_the_file_already_contained_reports_nothing_to_undo() {
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")]);
    let bed = Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"]);
    let mut bed = bed.with(|task| task.approval = Approval::Ask);
    *bed.approver.latency.lock().unwrap() = std::time::Duration::from_secs(5);
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::ReviewAsked { .. })).await;
    let same = TWO.replace("return x\n", F);
    std::fs::write(bed.path("a.py"), &same).unwrap();
    handle.finished().await;
    let events = handle.log.events();
    let nothing = match handle.undo(None).await {
        Err(UndoError::Empty(ids)) => ids,
        other => panic!("{other:?} {events:#?}"),
    };
    assert_eq!(nothing, [ProposalId(1)]);
    assert_eq!(bed.read("a.py"), same);
}

#[tokio::test(start_paused = true)]
async fn change_that_came_back_with_a_document_closed_unsaved_can_be_undone_again() {
    let (bed, handle, applied) = changed().await;
    let text = bed.read("a.py");
    let (id, _) = applied[0].clone();
    let is_of =
        |event: &Event| matches!(event, Event::ProposalApplied { proposal, .. } if *proposal == id);
    let made = handle.log.events().into_iter().find(is_of).unwrap();
    assert_eq!(handle.undo(Some(id)).await, Ok(vec![id]));
    std::fs::write(bed.path("a.py"), text).unwrap();
    assert_eq!(handle.undo(Some(id)).await, Err(UndoError::Unknown(id)));
    // The session sees the change in the file again, and reports it.
    assert!(handle.log.noticed(made));
    assert_eq!(handle.undo(Some(id)).await, Ok(vec![id]));
    assert_eq!(bed.read("a.py").contains(F), applied[0].1 != "a.py::f");
    assert_eq!(handle.undo(Some(id)).await, Err(UndoError::Unknown(id)));
}
