//! Locations that a change leaves outdated are reported to the owners of the code, and the run
//! succeeds only if they are updated: declarations in stubs, examples, strings in data files,
//! notebooks.

use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::*;

const FEES: &str = "\"\"\"Fees.\n\n>>> late_fee(2, rate=50)\n100\n\"\"\"\n\n\ndef late_fee(days, *, rate=50):\n    return days * rate\n\n\ndef old_fee(days):\n    return days * 40\n";
const STUB: &str =
    "def late_fee(days: int, *, rate: int = ...) -> int: ...\ndef old_fee(days: int) -> int: ...\n";

fn replaced(old: &str, new: &str) -> Line {
    let hunks = json!([{"old": old, "new": new}]);
    call("propose", json!({"reason": "r", "hunks": hunks}))
}

fn deleted(symbol: &str) -> Line {
    call(
        "propose",
        json!({"reason": "r", "delete": [symbol], "intended_losses": true}),
    )
}

/// Runs a task that starts with the owners in `begin`. Each agent gives its reply in `lines`, if it
/// has one, and then finishes.
async fn run(
    task: &str,
    files: &[(&str, &str)],
    begin: &[&str],
    lines: Vec<(&str, Line)>,
) -> (Bed, Vec<Event>) {
    let mut model = Scripted::native();
    for (agent, line) in lines {
        model = model.on(agent, [line]);
    }
    let model = model.always("agent", finish("nothing"));
    let mut bed = Bed::new(files, model)
        .begin(begin)
        .tests(|_| Vec::new())
        .with(|it| it.text = task.to_owned());
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn run_succeeds_only_if_a_removed_function_is_also_removed_from_the_stub() {
    let files = [("fees.py", FEES), ("fees.pyi", STUB)];
    for task in [
        "old_fee is not used any more, remove it",
        "Clean up the fees",
    ] {
        let removal = || ("agent fees.py::old_fee", deleted("fees.py::old_fee"));
        let (bed, events) = run(task, &files, &["fees.py::old_fee"], vec![removal()]).await;
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::NotDone, "{task}: {headline}");
        let place = "fees.pyi:2: `old_fee` is still declared here";
        assert!(headline.contains(place), "{task}: {headline}");
        assert_eq!(bed.read("fees.py"), FEES);
        // In this run, the owner of the declaration is notified and removes the declaration.
        let stub = ("agent fees.pyi::old_fee", deleted("fees.pyi::old_fee"));
        let both = vec![removal(), stub];
        let (bed, events) = run(task, &files, &["fees.py::old_fee"], both).await;
        assert_eq!(stop(&events), StopReason::Settled, "{task}: {events:#?}");
        let texts = ["fees.py", "fees.pyi"].map(|file| bed.read(file));
        assert!(!texts.concat().contains("old_fee"), "{task}: {texts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn run_succeeds_only_if_a_moved_function_is_removed_from_the_old_stub() {
    let files = [
        ("fees.py", FEES),
        ("fees.pyi", STUB),
        ("money.py", "X = 1\n"),
    ];
    let moved = "def old_fee(days):\n    return days * 40\n";
    let lines = || {
        vec![
            ("agent fees.py::old_fee", deleted("fees.py::old_fee")),
            (
                "agent money.py::",
                replaced("X = 1\n", &format!("X = 1\n\n\n{moved}")),
            ),
        ]
    };
    let begin = ["fees.py::old_fee", "money.py::"];
    let task = "Move old_fee from fees.py to money.py";
    let (bed, events) = run(task, &files, &begin, lines()).await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    let told = malformed(&events).join("\n");
    let place = "fees.pyi:2: `old_fee` is still declared here, and fees.py no longer has it";
    assert!(told.contains(place), "{told}");
    assert_eq!(bed.read("money.py"), "X = 1\n");
    let stub = ("agent fees.pyi::old_fee", deleted("fees.pyi::old_fee"));
    let all = lines().into_iter().chain([stub]).collect();
    let (bed, events) = run(task, &files, &begin, all).await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.read("money.py").contains("def old_fee"));
    let texts = ["fees.py", "fees.pyi"].map(|file| bed.read(file));
    assert!(!texts.concat().contains("old_fee"), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn run_succeeds_only_if_a_renamed_parameter_is_also_renamed_in_the_stub_and_in_examples() {
    let files = [("fees.py", FEES), ("fees.pyi", STUB)];
    let new = "def late_fee(days, *, day_rate=50):\n    return days * day_rate\n";
    let task = "Rename the keyword-only parameter rate of late_fee to day_rate, everywhere";
    let function = || ("agent fees.py::late_fee", whole(new));
    let begin = ["fees.py::late_fee"];
    let (bed, events) = run(task, &files, &begin, vec![function()]).await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    assert_eq!(bed.read("fees.py"), FEES);
    let told = malformed(&events).join("\n");
    for place in ["fees.pyi:1: `rate` is still a parameter", "fees.py:3: "] {
        assert!(told.contains(place), "{place}: {told}");
    }
    let lines = vec![
        function(),
        (
            "agent fees.pyi::late_fee",
            replaced("rate: int", "day_rate: int"),
        ),
        (
            "agent fees.py::",
            replaced("rate=50)\n100", "day_rate=50)\n100"),
        ),
    ];
    let (bed, events) = run(task, &files, &begin, lines).await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(bed.read("fees.pyi").contains("day_rate: int"));
    assert!(bed.read("fees.py").contains("late_fee(2, day_rate=50)"));
}

const ONE_LINE: &str = "{\"cells\": [\n {\"cell_type\": \"code\", \"outputs\": [],\n  \"source\": [\"x = 1\\n\", \"from plain import late_fee\\n\"]}\n]}\n";
const PLAIN: &str = "def late_fee(days):\n    return days\n";

#[tokio::test(start_paused = true)]
async fn rename_or_deletion_without_a_model_stops_at_a_notebook_that_contains_the_name() {
    for (task, source) in [
        ("Rename `late_fee` to `overdue_fee`", ONE_LINE.to_owned()),
        (
            "Delete late_fee",
            ONE_LINE
                .replace("[\"x = 1\\n\", ", "[")
                .replace("[\"from", "\"from")
                .replace("\\n\"]}", "\\n\"}"),
        ),
    ] {
        let files = [("plain.py", PLAIN), ("n.ipynb", &*source)];
        let mut bed = Bed::new(&files, Scripted::small()).with(|it| it.text = task.to_owned());
        let StopReason::NothingChanged { why } = stop(&bed.run().await) else {
            panic!("{task}");
        };
        assert!(
            why.contains("`late_fee` occurs in a script: n.ipynb:3"),
            "{why}"
        );
        assert_eq!(bed.model.calls(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn strings_that_keep_a_renamed_name_are_reported_before_the_run_ends() {
    let config = "fees:\n  late: plain:late_fee\n";
    let files = [
        ("plain.py", PLAIN),
        ("n.ipynb", ONE_LINE),
        ("config.yaml", config),
    ];
    let task = "Rename late_fee to overdue_fee";
    let renamed = || {
        (
            "agent plain.py::late_fee",
            whole(&PLAIN.replace("late", "overdue")),
        )
    };
    let begin = ["plain.py::late_fee"];
    let (bed, events) = run(task, &files, &begin, vec![renamed()]).await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    assert_eq!(bed.read("plain.py"), PLAIN);
    let told = malformed(&events).join("\n");
    for place in ["config.yaml:2: `late_fee` still stands here", "n.ipynb:3: "] {
        assert!(told.contains(place), "{place}: {told}");
    }
    let lines = vec![
        renamed(),
        (
            "agent config.yaml::",
            replaced("plain:late_fee", "plain:overdue_fee"),
        ),
        (
            "agent n.ipynb::",
            replaced("import late_fee", "import overdue_fee"),
        ),
    ];
    let (bed, events) = run(task, &files, &begin, lines).await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(
        bed.read("config.yaml"),
        config.replace("late_fee", "overdue_fee")
    );
    assert_eq!(
        bed.read("n.ipynb"),
        ONE_LINE.replace("late_fee", "overdue_fee")
    );
}

const SHELL: &str = "#!/bin/sh\npython3 -c \"import plain; print(plain.late_fee(days=2))\"\n";

#[tokio::test(start_paused = true)]
async fn function_that_a_script_uses_is_not_removed_without_the_script_whatever_the_task_says() {
    let text = format!("{PLAIN}\n\ndef other():\n    return 1\n");
    let files = [("plain.py", &*text), ("nightly.sh", SHELL)];
    for task in [
        "Clean up plain.py",
        "late_fee can go, it is dead code",
        "Lösche `late_fee`",
        "Supprime `late_fee`",
        "Get rid of late_fee.",
    ] {
        let begin = ["plain.py::late_fee"];
        let removal = || ("agent plain.py::late_fee", deleted("plain.py::late_fee"));
        let (bed, events) = run(task, &files, &begin, vec![removal()]).await;
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::NotDone, "{task}: {headline}");
        let place = "nightly.sh:2: `late_fee` still stands here";
        assert!(headline.contains(place), "{task}: {headline}");
        assert_eq!(bed.read("plain.py"), text);
        let script = (
            "agent nightly.sh::",
            replaced("plain.late_fee(days=2)", "plain.other()"),
        );
        let (bed, events) = run(task, &files, &begin, vec![removal(), script]).await;
        assert_eq!(stop(&events), StopReason::Settled, "{task}: {events:#?}");
        assert!(!bed.read("plain.py").contains("late_fee"), "{task}");
        assert!(bed.read("nightly.sh").contains("plain.other()"), "{task}");
    }
}

#[tokio::test(start_paused = true)]
async fn script_follows_a_moved_function_and_a_renamed_parameter() {
    let files = [
        ("plain.py", PLAIN),
        ("money.py", "X = 1\n"),
        ("nightly.sh", SHELL),
    ];
    let moved = || {
        vec![
            ("agent plain.py::late_fee", deleted("plain.py::late_fee")),
            (
                "agent money.py::",
                replaced("X = 1\n", &format!("X = 1\n\n\n{PLAIN}")),
            ),
        ]
    };
    let renamed = || {
        let new = "def late_fee(count):\n    return count\n";
        vec![("agent plain.py::late_fee", whole(new))]
    };
    let cases = [
        (
            "Move late_fee from plain.py to money.py",
            &["plain.py::late_fee", "money.py::"][..],
            moved(),
            "nightly.sh:2: `late_fee` of plain.py still stands here",
            ("import plain; print(plain.", "import money; print(money."),
            moved(),
        ),
        (
            "Rename the parameter days of late_fee to count",
            &["plain.py::late_fee"],
            renamed(),
            "nightly.sh:2: `days` is still passed to late_fee here",
            ("days=2", "count=2"),
            renamed(),
        ),
    ];
    for (task, begin, lines, place, (old, new), again) in cases {
        let (bed, events) = run(task, &files, begin, lines).await;
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::NotDone, "{task}: {headline}");
        let told = malformed(&events).join("\n");
        assert!(told.contains(place), "{task}: {told}");
        assert_eq!(bed.read("plain.py"), PLAIN, "{task}");
        let script = ("agent nightly.sh::", replaced(old, new));
        let lines = again.into_iter().chain([script]).collect();
        let (bed, events) = run(task, &files, begin, lines).await;
        assert_eq!(stop(&events), StopReason::Settled, "{task}: {events:#?}");
        assert!(bed.read("nightly.sh").contains(new), "{task}");
    }
}

#[tokio::test(start_paused = true)]
async fn parameter_is_removed_although_a_local_variable_has_its_name() {
    let old = "def load(source=None):\n    return source or 'a.csv'\n";
    let new = "def load():\n    source = 'a.csv'\n    return source\n";
    let files = [("marks.py", old)];
    for task in [
        "Remove the parameter source of marks.load",
        "Remove the `source` parameter from load",
        "Rename the parameter source of marks.load to path",
    ] {
        let new = match task.starts_with("Rename") {
            true => new.replace("load()", "load(path=None)"),
            false => new.to_owned(),
        };
        let lines = vec![("agent marks.py::load", whole(&new))];
        let (bed, events) = run(task, &files, &["marks.py::load"], lines).await;
        assert_eq!(stop(&events), StopReason::Settled, "{task}: {events:#?}");
        assert_eq!(bed.read("marks.py"), new, "{task}");
        let kept = old.replace("'a.csv'", "'b.csv'");
        let lines = vec![("agent marks.py::load", whole(&kept))];
        let (_, events) = run(task, &files, &["marks.py::load"], lines).await;
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::NotDone, "{task}: {headline}");
    }
}

/// A file that only a person may let change keeps a part of the change from being applied.
#[tokio::test(start_paused = true)]
async fn headline_names_the_file_that_needs_a_person_and_the_patch_says_that_it_is_a_part() {
    let make = "late:\n\tpython3 -c \"import plain; plain.late_fee(2)\"\n";
    let files = [
        ("plain.py", PLAIN),
        ("Makefile", make),
        ("nightly.sh", SHELL),
    ];
    let renamed = |agent: &'static str| (agent, replaced("plain.late_fee", "plain.overdue_fee"));
    let mut model = Scripted::native().on(
        "agent plain.py::late_fee",
        [whole(&PLAIN.replace("late", "overdue"))],
    );
    for (agent, line) in [renamed("agent Makefile::"), renamed("agent nightly.sh::")] {
        model = model.on(agent, [line]);
    }
    let model = model.always("agent", finish("nothing"));
    let mut bed = Bed::new(&files, model)
        .begin(&["plain.py::late_fee"])
        .tests(|_| Vec::new())
        .with(|it| it.text = "Rename late_fee to overdue_fee".to_owned());
    bed.task.patch = Some(bed.path("out.patch"));
    let (proof, headline) = ending(&bed.run().await);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    let yes = "Not done: a part needs your own yes: Makefile (review it with --approve ask, or allow \
               it by --allow-write 'Makefile')";
    assert!(headline.starts_with(yes), "{headline}");
    assert_eq!(bed.read("plain.py"), PLAIN);
    if bed.path("out.patch").exists() {
        let told = "out.patch, a part of what was proposed";
        assert!(headline.contains(told), "{headline}");
        let patch = bed.read("out.patch");
        assert!(patch.starts_with("This patch is a part"), "{patch}");
    }
}

/// While the removal of a function is checked, two other changes are applied, of which the second one
/// removes the example that still uses the function.
#[tokio::test(start_paused = true)]
async fn owner_is_not_notified_of_an_example_that_is_removed_during_the_check() {
    let late = "def late_fee(days, *, rate=50):\n    return days * rate\n";
    let money = format!("\"\"\"Fees.\n\n>>> late_fee(2, rate=50)\n100\n\"\"\"\n\n\n{late}");
    let without = "\"\"\"Fees.\n\n>>> late_fee(2, rate=50)\n100\n\"\"\"";
    let model = Scripted::native()
        .on("agent fees.py::late_fee", [deleted("fees.py::late_fee")])
        .on("agent money.py::", [whole(&money)])
        .on("agent fees.py::", [replaced(without, "\"\"\"Fees.\"\"\"")])
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(&[("fees.py", FEES)], model)
        .begin(&["fees.py::late_fee", "money.py::", "fees.py::"])
        .tests(|_| Vec::new())
        .with(|it| it.text = "Move late_fee from fees.py to money.py".to_owned());
    // The tests before the run, the first checks of the three changes, then the second checks of the
    // changes of `fees.py::` and of `late_fee`, because other changes were applied meanwhile.
    *bed.test_times.lock().unwrap() = [0, 3, 1, 1, 3, 5].map(Duration::from_secs).into();
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(!bed.read("fees.py").contains("late_fee"), "{events:#?}");
    let told = woken(&events);
    let told = told
        .iter()
        .filter(|(_, cause)| matches!(cause, Cause::Problems { .. }));
    assert_eq!(told.count(), 0, "{events:#?}");
}
