//! A person's own version of a proposal is checked, shown again, and applied instead of the
//! proposal.

use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::{Approval, Driver, EditedPart, ProposalView, Verdict};
use starling_syntax::FilePath;
use starling_text::ChangeSet;

const ONE: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n";

fn version(proposal: u32, before: &str, text: &str) -> EditedPart {
    EditedPart {
        proposal,
        before: before.into(),
        text: text.into(),
    }
}

/// Sets the versions that the person submits, one at each review. When none is left, the person
/// decides.
fn edits(bed: &Bed, versions: Vec<Vec<EditedPart>>) {
    let mut versions = versions.into_iter();
    let next = move |_: &ProposalView| versions.next();
    *bed.approver.edits.lock().unwrap() = Some(Box::new(next));
}

fn bed(lines: Vec<Line>) -> Bed {
    let model = Scripted::native().on("agent a.py::f", lines);
    Bed::new(&[("a.py", ONE)], model)
        .begin(&["a.py::f"])
        .with(|task| task.approval = Approval::Ask)
        .tests(|all| match all.contains("def f(x):\n    return x\n") {
            true => vec![("t1".into(), "no".into())],
            false if all.contains("raise") => vec![("t2".into(), "it raises".into())],
            false => vec![],
        })
}

fn change() -> Line {
    whole("def f(x):\n    return x + 1\n")
}

fn names(events: &[Event]) -> Vec<&'static str> {
    let name = |event: &Event| match event {
        Event::ProposalMade { .. } => Some("made"),
        Event::ProposalChecked { .. } => Some("checked"),
        Event::ReviewAsked { .. } => Some("asked"),
        Event::ProposalEdited { .. } => Some("edited"),
        Event::ProposalReviewed { verdict, .. } => Some(match verdict {
            Verdict::Accept => "accepted",
            Verdict::Reject { .. } | Verdict::Steer { .. } => "rejected",
        }),
        Event::ProposalApplied { .. } => Some("applied"),
        _ => None,
    };
    events.iter().filter_map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn edited_proposal_is_checked_shown_again_and_applied() {
    let mut bed = bed(vec![change(), finish("done")]);
    let wanted = ONE.replacen("return x", "return x + 2", 1);
    edits(&bed, vec![vec![version(1, ONE, &wanted)]]);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("a.py"), wanted);
    let expected = [
        "made", "checked", "asked", "edited", "checked", "asked", "accepted", "applied",
    ];
    assert_eq!(names(&events), expected);
    let seen = bed.approver.seen.lock().unwrap();
    let (first, second) = (&seen[0], &seen[1]);
    assert!(first.diff.contains("+    return x + 1"), "{}", first.diff);
    assert!(second.diff.contains("+    return x + 2"), "{}", second.diff);
    assert!(!second.diff.contains("x + 1"), "{}", second.diff);
    assert!(
        second.evidence.contains("fixed (1): t1"),
        "{}",
        second.evidence
    );
}

#[tokio::test(start_paused = true)]
async fn reviewer_is_told_which_event_asks_for_each_version() {
    let mut bed = bed(vec![change(), finish("done")]);
    let wanted = ONE.replacen("return x", "return x + 2", 1);
    edits(&bed, vec![vec![version(1, ONE, &wanted)]]);
    let handle = bed.start();
    handle.finished().await;
    let records = handle.log.records(0);
    let asks = |one: &&std::sync::Arc<Stamped>| {
        matches!(one.record, Record::Event(Event::ReviewAsked { .. }))
    };
    let asked = records.iter().filter(asks);
    let asked: Vec<Option<u64>> = asked.map(|one| Some(one.seq)).collect();
    assert_eq!(asked.len(), 2);
    let seen = bed.approver.seen.lock().unwrap();
    let seen: Vec<Option<u64>> = seen.iter().map(|view| view.version).collect();
    assert_eq!(seen, asked);
}

/// The next start decides what is offered: it knows the edited version from the trajectory.
#[tokio::test(start_paused = true)]
async fn end_of_a_run_during_the_check_of_an_edited_proposal_does_not_end_the_proposal() {
    let mut bed = bed(vec![change(), finish("done")]);
    let wanted = ONE.replacen("return x", "return x + 2", 1);
    let times = std::sync::Arc::clone(&bed.test_times);
    let edit = move |_: &ProposalView| {
        times.lock().unwrap().push_back(Duration::from_secs(60));
        Some(vec![version(1, ONE, &wanted)])
    };
    *bed.approver.edits.lock().unwrap() = Some(Box::new(edit));
    let handle = bed.start();
    until(&handle, |event| {
        matches!(event, Event::ProposalEdited { .. })
    })
    .await;
    handle.cancel();
    handle.finished().await;
    let events = handle.log.events();
    assert_eq!(stop(&events), StopReason::Cancelled);
    assert_eq!(names(&events), ["made", "checked", "asked", "edited"]);
    let ends = |event: &Event| {
        matches!(
            event,
            Event::ProposalNotApplied { .. } | Event::ProposalConflicted { .. }
        )
    };
    assert!(!events.iter().any(ends), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn agent_receives_the_persons_edit_and_proposes_on_top_of_it() {
    let more = json!({"reason": "r", "source": "def f(x):\n    return x + 1\n", "more": true});
    let hunks = json!([{"old": "return x + 2", "new": "return x + 3"}]);
    let mut bed = bed(vec![
        call("propose", more),
        call("propose", json!({"reason": "r", "hunks": hunks})),
    ]);
    let wanted = ONE.replacen("return x", "return x + 2", 1);
    edits(&bed, vec![vec![version(1, ONE, &wanted)]]);
    let events = bed.run().await;
    let prompts = bed.model.prompts("agent a.py::f");
    let told = prompts.last().unwrap();
    assert!(told.contains("as the user edited it"), "{told}");
    assert!(told.contains("+    return x + 2"), "{told}");
    assert_eq!(
        bed.read("a.py"),
        ONE.replacen("return x", "return x + 3", 1)
    );
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn persons_edit_that_breaks_tests_is_shown_with_the_broken_tests() {
    let mut bed = bed(vec![change(), finish("done")]);
    let breaks = ONE.replacen("return x", "raise x", 1);
    let right = ONE.replacen("return x", "return x + 2", 1);
    edits(
        &bed,
        vec![
            vec![version(1, ONE, &breaks)],
            vec![version(1, ONE, &right)],
        ],
    );
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("a.py"), right);
    let seen = bed.approver.seen.lock().unwrap();
    let evidence = &seen[1].evidence;
    assert!(evidence.contains("t2"), "{evidence}");
    assert!(evidence.contains("you edited it"), "{evidence}");
    assert!(!seen[2].evidence.contains("you edited it"));
}

#[tokio::test(start_paused = true)]
async fn persons_edit_is_applied_on_top_of_text_that_was_typed_meanwhile() {
    let mut bed = bed(vec![change(), finish("done")]);
    let wanted = ONE.replacen("return x", "return x + 2", 1);
    let (path, typed) = (bed.path("a.py"), format!("# typed\n{ONE}"));
    let mut versions = vec![vec![version(1, ONE, &wanted)]].into_iter();
    let next = move |_: &ProposalView| {
        std::fs::write(&path, &typed).unwrap();
        versions.next()
    };
    *bed.approver.edits.lock().unwrap() = Some(Box::new(next));
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("a.py"), format!("# typed\n{wanted}"));
}

#[tokio::test(start_paused = true)]
async fn proposal_that_the_person_edits_to_no_change_is_returned_as_rejected() {
    let mut bed = bed(vec![change(), finish("then not")]);
    edits(&bed, vec![vec![version(1, ONE, ONE)]]);
    let events = bed.run().await;
    assert_eq!(bed.read("a.py"), ONE);
    assert_eq!(
        names(&events),
        ["made", "checked", "asked", "edited", "rejected"]
    );
    let prompts = bed.model.prompts("agent a.py::f");
    assert!(
        prompts[1].contains("the user took it out"),
        "{}",
        prompts[1]
    );
}

/// Creates a run with two owners (agents) whose changes pass only together: `fee` takes a new
/// argument, and `total` passes it.
fn pair() -> Bed {
    let files = [
        ("fees.py", "def fee(x):\n    return x\n"),
        (
            "shop.py",
            "from fees import fee\n\n\ndef total(x):\n    return fee(x)\n",
        ),
    ];
    let picks = json!({"symbols": [
        {"symbol": "fees.py::fee", "why": "a rate", "source": "def fee(x, rate):\n    return x * rate\n"},
        {"symbol": "shop.py::total", "why": "gives it", "source": "def total(x):\n    return fee(x, 2)\n"},
    ]});
    let model = Scripted::native()
        .on("scout", [call("wake", picks)])
        .always("agent", finish("nothing to add"));
    let fits = |all: &str| {
        let wide = all.contains("def fee(x, rate)");
        match wide == (all.contains("fee(x, 2)") || all.contains("fee(x, 3)")) {
            true => Vec::new(),
            false => vec![("t1".to_owned(), "TypeError: fee()".to_owned())],
        }
    };
    let bed = Bed::new(&files, model)
        .tests(fits)
        .with(|task| task.approval = Approval::Ask);
    *bed.test_times.lock().unwrap() = vec![Duration::from_secs(1); 20].into();
    bed
}

/// Returns the number of the proposal for a symbol.
fn number_of(view: &ProposalView, symbol: &str) -> u32 {
    let line = view.reason.lines().find(|line| line.contains(symbol));
    let number = line.unwrap().trim_start_matches('#').split(' ').next();
    number.unwrap().parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn set_is_checked_again_after_one_of_its_proposals_is_edited() {
    let mut bed = pair();
    let before = bed.read("shop.py");
    let wanted = before.replace("fee(x)", "fee(x, 3)");
    let mut is_first = true;
    let (old, new) = (before, wanted.clone());
    let edit = move |view: &ProposalView| {
        let number = number_of(view, "shop.py::total");
        std::mem::take(&mut is_first).then(|| vec![version(number, &old, &new)])
    };
    *bed.approver.edits.lock().unwrap() = Some(Box::new(edit));
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("shop.py"), wanted);
    assert!(bed.read("fees.py").contains("rate"));
    let seen = bed.approver.seen.lock().unwrap();
    assert_eq!(seen.len(), 2, "{seen:#?}");
    assert!(seen[1].diff.contains("fee(x, 3)") && seen[1].diff.contains("rate"));
    assert!(!seen[1].evidence.contains("BROKEN"), "{}", seen[1].evidence);
}

#[tokio::test(start_paused = true)]
async fn remaining_proposal_of_a_set_is_shown_with_the_tests_that_it_breaks_and_can_be_rejected() {
    let mut bed = pair();
    let (shop, fees) = (bed.read("shop.py"), bed.read("fees.py"));
    let mut is_first = true;
    let old = shop.clone();
    let edit = move |view: &ProposalView| {
        let is_first = std::mem::take(&mut is_first);
        is_first.then(|| vec![version(number_of(view, "shop.py::total"), &old, &old)])
    };
    *bed.approver.edits.lock().unwrap() = Some(Box::new(edit));
    let reject = Verdict::Reject {
        reason: "then neither".to_owned(),
    };
    *bed.approver.verdicts.lock().unwrap() = vec![reject; 9].into();
    let events = bed.run().await;
    assert_eq!((bed.read("shop.py"), bed.read("fees.py")), (shop, fees));
    let seen = bed.approver.seen.lock().unwrap();
    assert!(seen[1].evidence.contains("t1"), "{}", seen[1].evidence);
    let names = names(&events);
    let rejected = names.iter().filter(|name| **name == "rejected").count();
    let made = names.iter().filter(|name| **name == "made").count();
    assert_eq!(rejected, made, "each has one end: {names:?}");
}

#[tokio::test(start_paused = true)]
async fn remaining_part_of_a_change_is_applied_when_a_person_removes_the_other_part() {
    let files = [("a.py", ONE), ("b.py", "def h(x):\n    return x\n")];
    let part = |symbol: &str, source: &str, more: bool| {
        let change = json!({"symbol": symbol, "reason": "r", "source": source, "more": more});
        ("propose".to_owned(), change)
    };
    let parts = vec![
        part("a.py::f", "def f(x):\n    return x + 1\n", true),
        part("b.py::h", "def h(x):\n    return x + 1\n", false),
    ];
    let model = Scripted::native().on("solo", [Line::Call(parts), finish("done")]);
    let fits = |all: &str| match all.matches("x + 1").count() {
        1 => vec![("t1".to_owned(), "both or none".to_owned())],
        _ => vec![],
    };
    let mut bed = Bed::new(&files, model).tests(fits).with(|task| {
        task.driver = Driver::Single;
        task.approval = Approval::Ask;
    });
    let mut is_first = true;
    let edit = move |view: &ProposalView| {
        let is_first = std::mem::take(&mut is_first);
        is_first.then(|| {
            let (f, h) = (number_of(view, "a.py::f"), number_of(view, "b.py::h"));
            let wanted = ONE.replacen("return x", "return x + 2", 1);
            let gone = "def h(x):\n    return x\n";
            vec![version(f, ONE, &wanted), version(h, gone, gone)]
        })
    };
    *bed.approver.edits.lock().unwrap() = Some(Box::new(edit));
    let events = bed.run().await;
    assert_eq!(
        bed.read("a.py"),
        ONE.replacen("return x", "return x + 2", 1)
    );
    assert_eq!(bed.read("b.py"), files[1].1);
    let prompts = bed.model.prompts("solo");
    let told = prompts.last().unwrap();
    assert!(told.contains("the user took it out"), "{told}");
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
}

fn parts_of(file: &str, base: &str, changes: &[(u32, &str, &str)]) -> Vec<FileChange> {
    let part = |(id, symbol, text): &(u32, &str, &str)| {
        let symbol: starling_syntax::SymbolPath = symbol.parse().unwrap();
        FileChange {
            proposal: ProposalId(*id),
            symbols: vec![symbol.clone()],
            symbol,
            reason: String::new(),
            file: FilePath::new(file),
            base: base.into(),
            changes: ChangeSet::between(base, text),
            deleted: false,
        }
    };
    changes.iter().map(part).collect()
}

fn both_parts() -> Vec<FileChange> {
    let of_f = ONE.replacen("return x", "return x + 1", 1);
    let of_g = ONE.replace("g(x):\n    return x", "g(x):\n    return x + 1");
    parts_of("a.py", ONE, &[(1, "a.py::f", &of_f), (2, "a.py::g", &of_g)])
}

#[test]
fn persons_edit_of_a_file_is_split_among_the_proposals_of_the_file() {
    let parts = both_parts();
    let split = |before: &str, text: &str| {
        let file = EditedFile::new(FilePath::new("a.py"), before, text);
        let all = edited_parts(&parts, &file).unwrap();
        let texts = all.iter().map(|one| (one.proposal, one.text.to_string()));
        texts.collect::<Vec<_>>()
    };
    let of_f = ONE.replacen("return x", "return x + 5", 1);
    let of_g = ONE.replace("g(x):\n    return x", "g(x):\n    return x + 6");
    let both = of_f.replace("g(x):\n    return x", "g(x):\n    return x + 6");
    let expected = vec![(1, of_f.clone()), (2, of_g)];
    assert_eq!(split(ONE, &both), expected);
    assert_eq!(split(ONE, &of_f), [(1, of_f.clone()), (2, ONE.to_owned())]);
    // Edits outside all symbols of the proposals belong to the first proposal.
    let with_import = format!("import os\n\n\n{both}");
    let split_import = split(ONE, &with_import);
    assert!(split_import[0].1.starts_with("import os\n"));
    assert!(!split_import[1].1.contains("import os"));
    // A file with Windows line endings keeps them.
    let windows = |text: &str| text.replace('\n', "\r\n");
    let first = &split(&windows(ONE), &of_f)[0];
    assert_eq!(first.1, windows(&of_f));
}

#[test]
fn unusable_edit_of_a_person_is_refused_with_the_reason() {
    let why = |file: &str, text: &str| {
        let file = EditedFile::new(FilePath::new(file), ONE, text);
        edited_parts(&both_parts(), &file).unwrap_err()
    };
    let broken = why("a.py", "x = 1\ndef f(x)\n    return 1\n");
    assert!(broken.contains("syntax error in line 2"), "{broken}");
    assert!(why("b.py", ONE).contains("the proposal does not change b.py"));
    let latin = "# coding: latin-1\nx = '☃'\n";
    let encoded = why("a.py", latin);
    assert!(
        encoded.contains("latin-1") || encoded.contains('☃'),
        "{encoded}"
    );
}
