//! A name that goes away or is not there yet: what uses it and what defines it land together, whether a
//! test runs that code or not.

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

const STATS: &str = "def rate(hits, total):\n    return hits / total\n";
const REPORT: &str =
    "from stats import rate\n\n\ndef line(hits, total):\n    return f\"{rate(hits, total):.1%}\"\n";
const TESTS: &str = "from stats import rate\n\n\ndef test_rate():\n    assert rate(1, 2) == 0.5\n";

/// The test, which knows nothing of `report.py`.
fn test_rate(all: &str) -> Vec<(String, String)> {
    let defines = |name: &str| all.contains(&format!("def {name}("));
    let tests = &all[all.find("def test_rate").unwrap()..];
    let imports = all[..all.find("def test_rate").unwrap()].rfind("import ");
    let imports = &all[imports.unwrap()..];
    let name = match tests.contains("error_rate(") {
        true => "error_rate",
        false => "rate",
    };
    let is_imported = imports
        .lines()
        .next()
        .unwrap()
        .ends_with(&format!(" {name}"));
    match defines(name) && is_imported {
        true => Vec::new(),
        false => {
            let why = "ImportError: cannot import name 'rate' from 'stats'";
            vec![("test_stats.py::test_rate".to_owned(), why.to_owned())]
        }
    }
}

fn renamed() -> Line {
    whole("def error_rate(hits, total):\n    return hits / total\n")
}

fn new_line() -> Line {
    let source = "def line(hits, total):\n    return f\"{error_rate(hits, total):.1%}\"\n";
    whole(source)
}

fn new_import(file: &str) -> Line {
    let source = "from stats import error_rate\n";
    let hunks = json!([{"old": "from stats import rate\n", "new": source}]);
    let symbol = format!("{file}::");
    call(
        "propose",
        json!({"reason": "r", "symbol": symbol, "hunks": hunks}),
    )
}

fn bed(model: Scripted) -> Bed {
    let files = [
        ("stats.py", STATS),
        ("report.py", REPORT),
        ("test_stats.py", TESTS),
    ];
    let mut bed = Bed::new(&files, model)
        .tests(test_rate)
        .with(|task| task.text = "Rename rate to error_rate.".to_owned());
    bed.lists = true;
    bed
}

fn everybody() -> Scripted {
    let test = "def test_rate():\n    assert error_rate(1, 2) == 0.5\n";
    Scripted::native()
        .always("agent stats.py::rate", renamed())
        .always("agent report.py::line", new_line())
        .always("agent report.py::", new_import("report.py"))
        .always("agent test_stats.py::test_rate", whole(test))
        .always("agent test_stats.py::", new_import("test_stats.py"))
}

#[tokio::test(start_paused = true)]
async fn a_renamed_function_lands_with_all_its_uses() {
    for begin in [
        &["stats.py::rate"][..],
        &["report.py::line", "stats.py::rate"],
        &["report.py::line"],
    ] {
        let model = everybody();
        let mut bed = bed(model).begin(begin);
        let events = bed.run().await;
        let texts = ["stats.py", "report.py", "test_stats.py"].map(|file| bed.read(file));
        if begin.contains(&"stats.py::rate") {
            assert_eq!(stop(&events), StopReason::Settled, "{begin:?}: {events:#?}");
            assert!(texts[0].contains("def error_rate("), "{texts:?}");
            assert!(texts[1].contains("import error_rate") && texts[1].contains("{error_rate("));
            assert!(texts[2].contains("import error_rate") && texts[2].contains(" error_rate("));
        } else {
            assert_eq!(texts, [STATS, REPORT, TESTS], "{events:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn callers_are_not_renamed_without_what_they_call() {
    let never = Scripted::native()
        .always("agent stats.py::rate", finish("nothing"))
        .always("agent report.py::line", new_line())
        .always("agent report.py::", new_import("report.py"));
    let mut bed = bed(never).begin(&["stats.py::rate", "report.py::line", "report.py::"]);
    let events = bed.run().await;
    assert_eq!(bed.read("report.py"), REPORT, "{events:#?}");
    let refused = malformed(&events).join("\n");
    assert!(
        refused.contains("`error_rate` is not defined in stats.py")
            || refused.contains("nothing defines `error_rate`"),
        "{refused}"
    );
}

/// A use that no type and no import tells of: an attribute of a parameter.
#[tokio::test(start_paused = true)]
async fn an_attribute_of_unknown_type_lands_with_its_definition() {
    const RECIPE: &str = "class Recipe:\n    def total_time(self):\n        return 1\n";
    const SEARCH: &str = "def is_quick(recipe):\n    return recipe.total_time() < 30\n";
    let caller = whole("def is_quick(recipe):\n    return recipe.total_minutes() < 30\n");
    let method = whole("def total_minutes(self):\n    return 1\n");
    for approval in [Approval::Auto, Approval::Proxy] {
        for renames in [true, false] {
            let owner = match renames {
                true => method.clone(),
                false => finish("nothing"),
            };
            let model = Scripted::native()
                .always("agent search.py::is_quick", caller.clone())
                .always("agent recipe.py::Recipe.total_time", owner)
                .always("proxy", say("ACCEPT"));
            let mut bed = Bed::new(&[("recipe.py", RECIPE), ("search.py", SEARCH)], model)
                .begin(&["search.py::is_quick", "recipe.py::Recipe.total_time"])
                .with(|task| {
                    task.text = "Rename Recipe.total_time to total_minutes.".to_owned();
                    task.approval = approval;
                });
            let events = bed.run().await;
            let texts = ["recipe.py", "search.py"].map(|file| bed.read(file));
            if renames {
                let is_renamed = texts.iter().all(|text| text.contains("total_minutes("));
                assert!(is_renamed, "{texts:?} {events:#?}");
            } else {
                assert_eq!(texts, [RECIPE, SEARCH], "{events:#?}");
                let is_applied = |event: &Event| matches!(event, Event::ProposalApplied { .. });
                assert!(!events.iter().any(is_applied), "{events:#?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_still_used_does_not_go() {
    let in_short = |events: &[Event]| {
        let shown = events.iter().rev().find_map(|event| match event {
            Event::ProposalRefused { shown, .. } => shown.clone(),
            _ => None,
        });
        shown.unwrap_or_default()
    };
    let model = everybody()
        .always("agent report.py::line", finish("nothing"))
        .always("agent report.py::", finish("nothing"));
    let mut bed = bed(model).begin(&["stats.py::rate"]);
    let events = bed.run().await;
    assert_eq!(bed.read("stats.py"), STATS, "{events:#?}");
    assert_eq!(bed.read("test_stats.py"), TESTS);
    let refused = malformed(&events).join("\n");
    assert!(
        refused.contains("report.py:1: `rate` is not defined in stats.py"),
        "{refused}"
    );
    let in_short = in_short(&events);
    assert!(
        in_short.contains("it brings ")
            && in_short.contains(" new problem")
            && in_short.contains(".py:1: "),
        "{in_short}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_rejected_part_leaves_broken_is_told() {
    let model = everybody()
        .on("agent stats.py::rate", [renamed(), finish("as you wish")])
        .always("agent test_stats.py", finish("nothing"));
    let mut bed = bed(model)
        .begin(&["report.py::", "report.py::line", "stats.py::rate"])
        .with(|task| task.approval = Approval::Ask);
    let reject = |view: &starling_core::ProposalView| view.symbol.file.as_str() == "stats.py";
    bed.approver.rejects(reject);
    let events = bed.run().await;
    let Some(Event::RunFinished { ending, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    let headline = &ending.as_ref().unwrap().headline;
    assert!(
        bed.read("report.py").contains("import error_rate"),
        "{headline}"
    );
    assert!(
        headline.contains("report.py:1: `error_rate` is not defined in stats.py"),
        "{headline}"
    );
    assert!(headline.contains("; you rejected #") && headline.contains("(stats.py::rate)"));
}

/// A small model that would spoil everything, if it were asked.
fn never_asked() -> Scripted {
    Scripted::small().always("", say("```python\ndef rate():\n    return False\n```"))
}

#[tokio::test(start_paused = true)]
async fn a_small_model_is_not_asked_for_a_renaming() {
    for approval in [Approval::Auto, Approval::Ask] {
        let mut bed = bed(never_asked()).with(|task| task.approval = approval);
        let events = bed.run().await;
        assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
        let texts = ["stats.py", "report.py", "test_stats.py"].map(|file| bed.read(file));
        let renamed = [STATS, REPORT, TESTS].map(|text| {
            let text = text
                .replace("rate(", "error_rate(")
                .replace("import rate", "import error_rate");
            text.replace("test_error_rate(", "test_rate(")
        });
        assert_eq!(texts, renamed);
        assert_eq!(bed.model.calls(), 0);
        let asked = usize::from(approval == Approval::Ask);
        assert_eq!(bed.approver.seen.lock().unwrap().len(), asked, "one set");
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_model_is_not_asked_where_a_use_is_not_certain() {
    let files = [
        (
            "stats.py",
            "class Stats:\n    def rate(self):\n        return 1\n",
        ),
        ("report.py", "def line(thing):\n    return thing.rate()\n"),
    ];
    for (task, why) in [
        (
            "rename Stats.rate to error_rate",
            "1 place may mean another `rate`: report.py:2",
        ),
        (
            "delete Stats.rate",
            "1 place may mean another `rate`: report.py:2",
        ),
        ("rename line to Stats.rate", "there is no"),
    ] {
        let mut bed = Bed::new(&files, never_asked()).with(|one| one.text = task.to_owned());
        let events = bed.run().await;
        if why == "there is no" {
            assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
            continue;
        }
        let StopReason::NothingChanged { why: said } = stop(&events) else {
            panic!("{events:#?}");
        };
        assert!(said.starts_with(why), "{said}");
        assert!(said.ends_with("(`--model`)"), "{said}");
        assert_eq!(bed.model.calls(), 0);
        assert_eq!(
            [bed.read("stats.py"), bed.read("report.py")],
            files.map(|file| file.1)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_model_is_not_asked_for_a_deletion() {
    let text =
        "X = 1\n\n\ndef dead():\n    return X\n\n\ndef used():\n    return X\n\n\nprint(used())\n";
    let run = async |task: &str| {
        let files = [("a.py", text)];
        let mut bed = Bed::new(&files, never_asked()).with(|one| one.text = task.to_owned());
        let events = bed.run().await;
        assert_eq!(bed.model.calls(), 0);
        (stop(&events), bed.read("a.py"))
    };
    let (stop, after) = run("Delete the unused function dead.").await;
    assert_eq!(stop, StopReason::Settled);
    assert_eq!(after, text.replace("def dead():\n    return X\n\n\n", ""));
    let (stop, after) = run("delete used").await;
    assert!(
        matches!(stop, StopReason::NothingChanged { why } if why.contains("still used: a.py:12"))
    );
    assert_eq!(after, text);
}

#[tokio::test(start_paused = true)]
async fn what_a_task_says_must_become_of_a_symbol_decides() {
    let model = Scripted::native()
        .on("scout", [wake(&["report.py::line"])])
        .on(
            "agent report.py::line",
            [whole(
                "def line(hits, total):\n    return rate(hits, total)\n",
            )],
        )
        .always("agent", finish("nothing"));
    let mut bed = bed(model);
    let events = bed.run().await;
    let Some(Event::RunFinished { ending, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    let ending = ending.as_ref().unwrap();
    assert_eq!(ending.proof, Proof::NotDone);
    assert!(
        ending.headline.contains("`rate` is still in stats.py"),
        "{}",
        ending.headline
    );
    assert_eq!(bed.read("report.py"), REPORT);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_by_its_name_is_not_renamed_by_rule() {
    for (user, why) in [
        (
            "import a\nprint(getattr(a, 'total'))\n",
            "`total` stands in a string: b.py:2",
        ),
        (
            "from a import total\n\n\n@app.command\ndef other():\n    total()\n",
            "",
        ),
    ] {
        let a = "__all__ = [\n    'total',\n]\n\n\ndef total():\n    return 1\n";
        let files = [("a.py", a), ("b.py", user)];
        let task = "rename total to sum_up";
        let mut bed = Bed::new(&files, never_asked()).with(|one| one.text = task.to_owned());
        let events = bed.run().await;
        match why {
            "" => {
                assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
                assert!(
                    bed.read("a.py").contains("'sum_up',"),
                    "{}",
                    bed.read("a.py")
                );
                assert!(bed.read("b.py").contains("    sum_up()"));
            }
            why => {
                assert!(
                    matches!(stop(&events), StopReason::NothingChanged { why: said } if said.starts_with(why))
                );
                assert_eq!(bed.read("a.py"), a);
            }
        }
        assert_eq!(bed.model.calls(), 0);
    }
    let a = "@app.route('/')\ndef total():\n    return 1\n";
    let task = "rename total to sum_up";
    let mut bed = Bed::new(&[("a.py", a)], never_asked()).with(|one| one.text = task.to_owned());
    let events = bed.run().await;
    let StopReason::NothingChanged { why } = stop(&events) else {
        panic!("{events:#?}");
    };
    assert!(
        why.starts_with("`total` is decorated with @app.route('/')"),
        "{why}"
    );
}
