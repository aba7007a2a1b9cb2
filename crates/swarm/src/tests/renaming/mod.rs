//! Renames and deletions: a definition and all its uses are changed together or not at all, whether
//! or not a test executes the uses.

mod by_rule;
mod refactoring;
mod uncertain;

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

const STATS: &str = "def rate(hits, total):\n    return hits / total\n";
const REPORT: &str =
    "from stats import rate\n\n\ndef line(hits, total):\n    return f\"{rate(hits, total):.1%}\"\n";
const TESTS: &str = "from stats import rate\n\n\ndef test_rate():\n    assert rate(1, 2) == 0.5\n";
const HANDLERS: &str = "class Echo:\n    pass\n\n\nclass Add:\n    pass\n\n\nprint(Add)\n";

const NUTRITION: &str = "# kcal for 100 g\nKCAL = {\n    'oat': 370,\n}\n\n\ndef kcal(name):\n    \
                         return KCAL.get(name)\n";

const WRAP: &str =
    "def wrap(text):\n    return text\n\n\ndef shout(text):\n    return text\n\n\nWIDTH = 1\n";
const STUB: &str =
    "WIDTH: int\n\ndef wrap(text: str) -> str: ...\ndef shout(text: str) -> str: ...\n";

const RECIPE: &str = "class Base:\n    def key(self):\n        return 1\n\n\nclass Recipe(Base):\n    \
                      def total_time(self):\n        return 1\n\n    def key(self):\n        return 2\n";

/// Returns the result of `test_rate`. The test does not run the code in `report.py`.
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
async fn renamed_function_is_applied_together_with_all_its_uses() {
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
async fn renamed_call_is_refused_if_the_definition_is_not_renamed() {
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

/// The method is called on a parameter without a type annotation, so only its name links the call
/// to the definition.
#[tokio::test(start_paused = true)]
async fn renamed_method_call_on_an_untyped_value_is_applied_only_with_its_definition() {
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
async fn rename_is_refused_while_a_file_still_uses_the_old_name() {
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
async fn headline_names_the_uses_that_are_broken_because_a_proposal_was_rejected() {
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

#[tokio::test(start_paused = true)]
async fn run_that_did_not_make_the_requested_rename_is_reported_as_not_done() {
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

/// Runs a task in which the model renames the class `Echo` to `Ping`, but changes none of the other
/// files. Returns the result of the run.
async fn ending_of_ping(others: &[(&str, &str)]) -> Ending {
    let ping = whole("class Ping:\n    pass\n");
    let model = Scripted::native()
        .on("scout", [wake(&["handlers.py::Echo"])])
        .on("agent handlers.py::Echo", [ping])
        .always("agent", finish("nothing"));
    let files = [&[("handlers.py", HANDLERS)], others].concat();
    let mut bed = Bed::new(&files, model).with(|one| one.text = "Rename Echo to Ping.".to_owned());
    let events = bed.run().await;
    let Some(Event::RunFinished { ending, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    ending.clone().unwrap()
}

#[tokio::test(start_paused = true)]
async fn rename_is_reported_as_not_done_while_a_string_names_the_old_class() {
    let registry = "X = {\n    'echo': 'handlers:Echo',\n}\n";
    let ending = ending_of_ping(&[("settings.py", registry)]).await;
    assert_eq!(ending.proof, Proof::NotDone);
    let expected = "settings.py:2: `Echo` still stands here, and nothing defines it any more";
    assert!(ending.headline.contains(expected), "{}", ending.headline);
    let by_name = "import handlers\n\nX = getattr(handlers, 'Echo')\n";
    let ending_by_name = ending_of_ping(&[("settings.py", by_name)]).await;
    assert_eq!(ending_by_name.proof, Proof::NotDone);
    let other = ("test_other.py", "class Echo:\n    pass\n");
    let ending = ending_of_ping(&[("settings.py", registry), other]).await;
    assert_eq!(ending.proof, Proof::NotDone, "{}", ending.headline);
    for others in [
        &[("settings.py", "X = 'handlers:Add'\n")][..],
        &[("settings.py", "X = '/Echo'\n")],
        &[
            ("settings.py", "X = 'Echo'\n"),
            ("test_other.py", "class Echo:\n    pass\n"),
        ],
    ] {
        let ending = ending_of_ping(others).await;
        assert_ne!(ending.proof, Proof::NotDone, "{}", ending.headline);
    }
}

/// Runs this task with a model that changes only the function `kcal`. Returns the result of the
/// run.
async fn ending_after_kcal(task: &str) -> Ending {
    let source = "def kcal(name):\n    return KCAL.get(name, 0)\n";
    let model = Scripted::native()
        .on("scout", [wake(&["nutrition.py::kcal"])])
        .on("agent nutrition.py::kcal", [whole(source)])
        .always("agent", finish("nothing"));
    let pantry = "class Stock:\n    best_before = None\n\n\nGAP = '--gap'\n";
    let files = [("nutrition.py", NUTRITION), ("pantry.py", pantry)];
    let mut bed = Bed::new(&files, model).with(|one| one.text = task.to_owned());
    let events = bed.run().await;
    let Some(Event::RunFinished { ending, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    ending.clone().unwrap()
}

#[tokio::test(start_paused = true)]
async fn run_that_changes_something_else_than_the_requested_name_is_reported_as_not_done() {
    for (task, why) in [
        (
            "Rename `KCAL` to `KCAL_PER_100_G`",
            "`KCAL` is still in nutrition.py",
        ),
        (
            "Rename `best_before` to `use_by`",
            "`best_before` is still there",
        ),
        (
            "Rename the attribute `best_before` of `Stock` to `use_by`",
            "`best_before` is still there",
        ),
        (
            "Rename the option `--gap` to `--pause`",
            "`--gap` is still there",
        ),
        (
            "Rename `pantry.py` to `larder.py`",
            "`pantry.py` is still there",
        ),
        (
            "Delete the attribute best_before",
            "`best_before` is still there",
        ),
    ] {
        let ending = ending_after_kcal(task).await;
        assert_eq!(ending.proof, Proof::NotDone, "{task}: {}", ending.headline);
        assert!(ending.headline.contains(why), "{task}: {}", ending.headline);
    }
}

#[tokio::test(start_paused = true)]
async fn rename_does_not_count_as_proven_while_a_stub_file_keeps_the_old_name() {
    let lines = call(
        "propose",
        json!({"reason": "r", "source": "def lines(text):\n    return text\n", "insist": true}),
    );
    let model = Scripted::native()
        .on("scout", [wake(&["text.py::wrap"])])
        .on("agent text.py::wrap", [lines])
        .always("agent", finish("nothing"));
    let files = [("text.py", WRAP), ("text.pyi", STUB)];
    let mut bed = Bed::new(&files, model).with(|one| {
        one.text = "Rename wrap to lines.".to_owned();
        one.approval = Approval::Ask;
    });
    let events = bed.run().await;
    let Some(Event::RunFinished { ending, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    let ending = ending.as_ref().unwrap();
    assert_ne!(ending.proof, Proof::Proven);
    let why = "`wrap` is still in text.pyi";
    assert!(ending.headline.contains(why), "{}", ending.headline);
}

const TOGETHER: &str = "all of these have to change together: `can_reach` is defined as \
                        models.py::Notifier.can_reach, models.py::Sms.can_reach; a larger model";
const NOTIFY: &str = "class Notifier:\n    def can_reach(self):\n        raise NotImplementedError\n\n\nclass \
                      Sms(Notifier):\n    def can_reach(self):\n        return True\n";
const REMIND: &str = "def remind(notifier):\n    return notifier.can_reach()\n";

fn reaches(body: &str) -> Line {
    let source = format!("def reaches(self):\n    {body}\n");
    call(
        "propose",
        json!({"reason": "r", "source": source, "insist": true}),
    )
}

/// Runs a task to rename a method that two classes define. `caller` is the reply of the agent that
/// owns the function that calls the method.
async fn notifiers(approval: Approval, caller: Line) -> (Bed, Vec<Event>) {
    let model = Scripted::native()
        .on(
            "agent notify.py::Notifier.can_reach",
            [reaches("raise NotImplementedError")],
        )
        .on("agent notify.py::Sms.can_reach", [reaches("return True")])
        .on("agent reminders.py::remind", [caller])
        .always("agent", finish("nothing"));
    let files = [("notify.py", NOTIFY), ("reminders.py", REMIND)];
    let begin = [
        "notify.py::Notifier.can_reach",
        "notify.py::Sms.can_reach",
        "reminders.py::remind",
    ];
    let mut bed = Bed::new(&files, model).begin(&begin).with(|task| {
        task.text = "Rename the method `can_reach` of the notifiers to `reaches`.".to_owned();
        task.approval = approval;
    });
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn method_that_several_classes_define_is_renamed_together_with_its_caller_or_not_at_all() {
    let follows = whole("def remind(notifier):\n    return notifier.reaches()\n");
    let (bed, events) = notifiers(Approval::Auto, follows).await;
    let texts = [bed.read("notify.py"), bed.read("reminders.py")];
    assert!(!texts.concat().contains("can_reach"), "{events:#?}");
    let made = |event: &Event| matches!(event, Event::ProposalMade { .. });
    let is_applied = |event: &Event| matches!(event, Event::ProposalApplied { .. });
    let (last, first) = (
        events.iter().rposition(made),
        events.iter().position(is_applied),
    );
    assert!(last < first, "{events:#?}");
    let (bed, events) = notifiers(Approval::Auto, finish("nothing")).await;
    let texts = [bed.read("notify.py"), bed.read("reminders.py")];
    assert_eq!(texts, [NOTIFY, REMIND], "{events:#?}");
    assert!(!stop(&events).is_settled());
}

#[tokio::test(start_paused = true)]
async fn headline_names_a_remaining_use_of_the_old_name() {
    let (bed, events) = notifiers(Approval::Ask, finish("nothing")).await;
    assert!(!bed.read("notify.py").contains("can_reach"), "{events:#?}");
    let Some(Event::RunFinished { ending, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    let ending = ending.as_ref().unwrap();
    assert_ne!(ending.proof, Proof::Proven, "{}", ending.headline);
    let why = "`can_reach` is still used at reminders.py:2";
    assert!(ending.headline.contains(why), "{}", ending.headline);
}

#[tokio::test(start_paused = true)]
async fn string_that_is_only_the_old_name_is_told_unless_the_task_excludes_it() {
    let settings = "X = {\n    'Echo': 1,\n}\nNAMES = [\"Echo\"]\n";
    for (task, expected) in [
        ("Rename Echo to Ping; the key stays \"Echo\".", None),
        ("Rename Echo to Ping, but not in strings.", None),
        (
            "Rename Echo to Ping.",
            Some("Done, but `Echo` still occurs in 2 strings: settings.py:2, settings.py:4"),
        ),
    ] {
        let model = Scripted::native()
            .on("scout", [wake(&["handlers.py::Echo"])])
            .on(
                "agent handlers.py::Echo",
                [whole("class Ping:\n    pass\n")],
            )
            .always("agent", finish("nothing"));
        let files = [("handlers.py", HANDLERS), ("settings.py", settings)];
        let mut bed = Bed::new(&files, model).with(|one| one.text = task.to_owned());
        let events = bed.run().await;
        let Some(Event::RunFinished { ending, .. }) = events.last() else {
            panic!("{events:#?}");
        };
        let headline = ending.clone().unwrap().headline;
        match expected {
            Some(expected) => assert!(headline.contains(expected), "{headline}"),
            None => assert!(bed.read("handlers.py").contains("Ping"), "{headline}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rename_or_deletion_of_an_unknown_name_ends_without_a_model_call() {
    for (task, why) in [
        (
            "Rename error_ratee to ratio",
            "Not done: there is no `error_ratee`; nearest: `error_rate`",
        ),
        (
            "Delete `lines_of_code`.",
            "Not done: there is no `lines_of_code`",
        ),
    ] {
        let files = [("stats.py", "def error_rate(hits):\n    return hits\n")];
        for model in [Scripted::native(), Scripted::small()] {
            let mut bed = Bed::new(&files, model).with(|one| one.text = task.to_owned());
            let events = bed.run().await;
            assert_eq!(bed.model.calls(), 0, "{task}");
            assert!(woken(&events).is_empty(), "{events:#?}");
            let Some(Event::RunFinished { ending, .. }) = events.last() else {
                panic!("{events:#?}");
            };
            assert_eq!(ending.clone().unwrap().headline, why);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_name_in_the_task_is_reported_to_the_user_and_to_the_scout() {
    let files = [("stats.py", "def error_rate(hits):\n    return hits\n")];
    let model = Scripted::native()
        .on("scout", [wake(&["stats.py::error_rate"])])
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(&files, model)
        .with(|one| one.text = "`error_ratee` is wrong for no hits".to_owned());
    let events = bed.run().await;
    let why = "there is no `error_ratee`; nearest: `error_rate`";
    let is_told = |event: &Event| matches!(event, Event::NotWoken { why: told, .. } if told == why);
    let told = events.iter().position(is_told).unwrap();
    let asked = |event: &Event| matches!(event, Event::TurnStarted { .. });
    assert!(events.iter().position(asked).unwrap() > told);
    assert!(bed.model.prompts("scout")[0].contains(why));
}
