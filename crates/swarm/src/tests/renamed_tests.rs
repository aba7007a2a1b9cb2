//! Tests of names that the task renames or deletes: their ids, and their original text.

use serde_json::{Value, json};

use super::bed::*;
use crate::task::whole_word::has_word;
use crate::*;
use starling_core::Approval;

const CODE: &str = "def pace(s):\n    \"\"\"Pace.\n\n    >>> pace(60)\n    1\n    \"\"\"\n    return s // 60\n\n\n\
                    def other():\n    return 1\n";
const TESTS: &str = "from m import pace\n\n\ndef test_pace():\n    assert pace(120) == 2\n";
const CONFIG: &str = "[pytest]\naddopts = --doctest-modules\n";
const FILES: [(&str, &str); 3] = [("m.py", CODE), ("test_m.py", TESTS), ("pytest.ini", CONFIG)];

/// Returns the results of the doctests, whose ids contain the names of their functions, and of the
/// test. A doctest passes if its example has the right result.
fn judge(all: &str) -> Vec<(String, String)> {
    let names = ["pace", "pace_min"];
    let defines = |name: &str| all.contains(&format!("def {name}(s)"));
    let doctest = |name: &str| {
        let example = all.split(&format!(">>> {name}(60)\n")).nth(1);
        let message = match example.filter(|_| defines(name)) {
            Some(rest) if rest.starts_with("    1\n") && all.contains("s // 60") => PASSES,
            Some(rest) if rest.starts_with("    2\n") && all.contains("s // 30") => PASSES,
            Some(_) => "Expected something else",
            None => GONE,
        };
        (format!("m.py::m.{name}"), message.to_owned())
    };
    let mut results: Vec<_> = names.into_iter().map(doctest).collect();
    let lacks = |name: &str| {
        let is_imported = all.contains(&format!("import {name}\n"));
        all.contains(&format!("assert {name}(")) && !(is_imported && defines(name))
    };
    let lacks = names.into_iter().any(lacks);
    let message = match (lacks, all.contains("def test_pace()")) {
        (true, _) => "NameError: name 'x' is not defined",
        (false, true) => PASSES,
        (false, false) => GONE,
    };
    results.push(("test_m.py::test_pace".to_owned(), message.to_owned()));
    results
}

/// Returns a change of one symbol in the scout's reply.
fn hunks(symbol: &str, replaced: &[(&str, &str)]) -> Value {
    let hunk = |(old, new): &(&str, &str)| json!({"old": old, "new": new});
    let hunks: Vec<Value> = replaced.iter().map(hunk).collect();
    json!({"symbol": symbol, "why": "w", "hunks": hunks, "intended_losses": true})
}

fn delete(symbol: &str) -> Value {
    json!({"symbol": symbol, "why": "w", "delete": [symbol], "intended_losses": true})
}

fn bed(files: &[(&str, &str)], task: &str, approval: Approval, picks: &[Value]) -> Bed {
    let model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": picks}))])
        .always("agent", finish("nothing more"));
    Bed::new(files, model).with(|own| {
        own.text = task.to_owned();
        own.approval = approval;
    })
}

/// Runs a rename of `pace` in which the change of the function replaces these texts. Returns the
/// new text of its file, and the ending.
async fn renamed(
    replaced: &[(&str, &str)],
    approval: Approval,
    selects: bool,
) -> (String, (Proof, String)) {
    let picks = [
        hunks("m.py::pace", replaced),
        hunks("test_m.py::", &[("import pace", "import pace_min")]),
        hunks(
            "test_m.py::test_pace",
            &[("assert pace(", "assert pace_min(")],
        ),
    ];
    let mut bed = bed(&FILES, "Rename pace to pace_min", approval, &picks).tests(judge);
    bed.selects = selects;
    let events = bed.run().await;
    (bed.read("m.py"), ending(&events))
}

#[tokio::test(start_paused = true)]
async fn doctest_of_a_renamed_function_is_the_same_test() {
    let all = [
        ("def pace(", "def pace_min("),
        (">>> pace(", ">>> pace_min("),
    ];
    for approval in [Approval::Auto, Approval::Ask] {
        for selects in [true, false] {
            let (text, (proof, headline)) = renamed(&all, approval, selects).await;
            assert_eq!(proof, Proof::AsBefore, "{approval:?} {selects}: {headline}");
            assert_eq!(text, CODE.replace("pace(", "pace_min("), "{headline}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rename_does_not_hide_that_a_doctest_is_removed_or_weakened() {
    let removed = [
        ("def pace(", "def pace_min("),
        ("    >>> pace(60)\n    1\n", "    Fast.\n"),
    ];
    let weakened = [
        ("def pace(", "def pace_min("),
        (">>> pace(60)\n    1", ">>> pace_min(60)\n    2"),
        ("s // 60", "s // 30"),
    ];
    for replaced in [&removed[..], &weakened] {
        let (text, (proof, headline)) = renamed(replaced, Approval::Auto, true).await;
        assert_eq!(proof, Proof::NotDone, "{headline}");
        assert_eq!(text, CODE, "{headline}");
    }
}

#[tokio::test(start_paused = true)]
async fn tests_of_a_function_that_the_task_deletes_are_deleted_with_it() {
    let alone = [
        FILES[0],
        ("test_m.py", "def test_other():\n    pass\n"),
        FILES[2],
    ];
    let picks = [
        delete("m.py::pace"),
        delete("test_m.py::test_pace"),
        hunks("test_m.py::", &[("from m import pace\n", "import m\n")]),
    ];
    for (task, files, picks) in [
        ("Delete pace, nobody uses it", &alone, &picks[..1]),
        ("Delete pace and test_pace", &FILES, &picks),
    ] {
        for approval in [Approval::Auto, Approval::Ask] {
            let mut bed = bed(files, task, approval, picks).tests(judge);
            let events = bed.run().await;
            let (proof, headline) = ending(&events);
            assert_eq!(proof, Proof::AsBefore, "{task}: {headline}");
            assert!(!bed.read("m.py").contains("pace"), "{headline}");
        }
    }
    let task = "Make m.py shorter";
    let mut bed = bed(&alone, task, Approval::Auto, &picks[..1]).tests(judge);
    let events = bed.run().await;
    assert_eq!(bed.read("m.py"), CODE, "{events:#?}");
}

/// Names that a task renames: the code, the assertion of a test, the task, the old and the new
/// name.
const NAMES: [(&str, &str, &str, &str, &str); 9] = [
    (
        "class D(Enum):\n    TEN_K = 10\n",
        "assert D.TEN_K.name == 'TEN_K'",
        "Rename the enum member D.TEN_K to TENK",
        "TEN_K",
        "TENK",
    ),
    (
        "class D:\n    ten_k = 10\n",
        "assert 'ten_k' in vars(D)",
        "Rename D.ten_k to tenk",
        "ten_k",
        "tenk",
    ),
    (
        "TEN_K = 10\n\n\nclass D:\n    pass\n",
        "assert hasattr(m, 'TEN_K')",
        "Rename the constant TEN_K to TENK",
        "TEN_K",
        "TENK",
    ),
    (
        "class D:\n    @property\n    def ten_k(self):\n        return 10\n",
        "assert 'ten_k' in dir(D())",
        "Rename the property D.ten_k to tenk",
        "ten_k",
        "tenk",
    ),
    (
        "class D:\n    class Inner:\n        pass\n",
        "assert repr(D.Inner()) == 'D.Inner'",
        "Rename the class D.Inner to Kernel",
        "Inner",
        "Kernel",
    ),
    (
        "class D:\n    def run(self, ten_k=1):\n        return ten_k\n",
        "assert params(D().run) == ['ten_k']",
        "Rename the parameter ten_k of D.run to tenk",
        "ten_k",
        "tenk",
    ),
    (
        "COMMANDS = ['formats']\n\n\nclass D:\n    pass\n",
        "assert main(['formats']) == 0",
        "Rename the subcommand `formats` to `list`",
        "formats",
        "list",
    ),
    (
        "OPTIONS = ['--max-gap']\n\n\nclass D:\n    pass\n",
        "assert m.OPTIONS == ['--max-gap']",
        "Rename the option `--max-gap` to `--most`",
        "--max-gap",
        "--most",
    ),
    (
        "ROW = {'total-kg': 1}\n\n\nclass D:\n    pass\n",
        "assert m.ROW['total-kg'] == 1",
        "Rename the key `total-kg` to `mass`",
        "total-kg",
        "mass",
    ),
];

#[tokio::test(start_paused = true)]
async fn original_tests_follow_every_name_that_the_task_renames() {
    for (code, asserted, task, old, new) in NAMES {
        let test = format!("import m\nfrom m import D\n\n\ndef test_d():\n    {asserted}\n");
        // The message of the failing test does not show that the name is missing.
        let judge = move |all: &str| match has_word(all, old) && has_word(all, new) {
            true => vec![(
                "test_m.py::test_d".to_owned(),
                "E   assert 1 == 2".to_owned(),
            )],
            false => Vec::new(),
        };
        let of_test = (asserted, &*asserted.replace(old, new));
        let of_code = match code.starts_with("class") {
            true => {
                let source = code.replace(old, new);
                json!({"symbol": "m.py::D", "why": "w", "source": source, "intended_losses": true})
            }
            false => {
                let line = code.lines().next().unwrap();
                hunks("m.py::", &[(line, &line.replace(old, new))])
            }
        };
        let picks = [of_code, hunks("test_m.py::test_d", &[of_test])];
        let files = [("m.py", code), ("test_m.py", test.as_str())];
        let mut bed = bed(&files, task, Approval::Auto, &picks).tests(judge);
        bed.lists = true;
        let events = bed.run().await;
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::AsBefore, "{task}: {headline}");
        assert_eq!(bed.read("m.py"), code.replace(old, new), "{task}");
    }
}

#[tokio::test(start_paused = true)]
async fn docstring_does_not_use_a_new_name_before_it_is_defined() {
    let label =
        "def label(d):\n    \"\"\"Label.\n\n    For example D.TEN_K.\n    \"\"\"\n    return d\n";
    let code = format!("class D(Enum):\n    TEN_K = 10\n\n\n{label}");
    let picks = [hunks("m.py::label", &[("D.TEN_K", "D.TENK")])];
    let task = "Rename the enum member D.TEN_K to TENK";
    let mut bed = bed(&[("m.py", &code)], task, Approval::Auto, &picks).tests(|_| Vec::new());
    let events = bed.run().await;
    assert_eq!(bed.read("m.py"), code, "{events:#?}");
    let told = malformed(&events);
    let why = "nothing defines `TENK` yet";
    assert!(told.iter().any(|one| one.contains(why)), "{told:#?}");
}

#[tokio::test(start_paused = true)]
async fn entry_point_does_not_use_a_new_name_before_it_is_defined() {
    let code = "class Folder:\n    pass\n";
    let entry = "{\n  \"folder\": \"pod.m:Folder\"\n}\n";
    let (old, new) = ("pod.m:Folder", "pod.m:Directory");
    let of_code = hunks("pod/m.py::Folder", &[("class Folder", "class Directory")]);
    let of_entry = hunks("jobs.json::", &[(old, new)]);
    let task = "Rename the class Folder to Directory, everywhere";
    let files = [("pod/m.py", code), ("jobs.json", entry)];
    let mut alone = bed(
        &files,
        task,
        Approval::Auto,
        std::slice::from_ref(&of_entry),
    )
    .tests(|_| Vec::new());
    let events = alone.run().await;
    assert_eq!(alone.read("jobs.json"), entry, "{events:#?}");
    let told = malformed(&events);
    let why = "jobs.json:2: nothing defines `Directory` yet";
    assert!(told.iter().any(|one| one.contains(why)), "{told:#?}");
    let mut both = bed(&files, task, Approval::Auto, &[of_entry, of_code]).tests(|_| Vec::new());
    let events = both.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(both.read("jobs.json"), entry.replace(old, new));
    let applied = events.iter().filter_map(|event| match event {
        Event::ProposalChecked { evidence, .. } => evidence.together.as_ref(),
        _ => None,
    });
    assert!(applied.count() > 0, "applied one by one: {events:#?}");
}

#[tokio::test(start_paused = true)]
async fn headline_says_partly_done_if_one_of_the_named_symbols_is_left() {
    let code = "def a():\n    return 1\n\n\ndef b():\n    return 2\n";
    let test = "from m import b\n\n\ndef test_b():\n    assert b() == 2\n";
    let judge = |all: &str| match all.contains("def b()") {
        true => Vec::new(),
        false => vec![("test_m.py::test_b".to_owned(), "ImportError: b".to_owned())],
    };
    let picks = [delete("m.py::a"), delete("m.py::b")];
    let files = [("m.py", code), ("test_m.py", test)];
    let task = "Delete a and b, nothing uses them";
    let mut bed = bed(&files, task, Approval::Auto, &picks).tests(judge);
    bed.lists = true;
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let partly = "Partly done: 1 proposal was refused: m.py::b (";
    assert!(headline.starts_with(partly), "{headline}");
    assert!(
        headline.contains("changed only m.py::, m.py::a;"),
        "{headline}"
    );
}
