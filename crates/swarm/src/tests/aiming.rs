//! Failing tests that are unrelated to the task, and changes that miss the named code.

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

const PANTRY: &str = "class Pantry:\n    def expiring(self, today):\n        return [i for i in self.items if i > today]\n";
const RENDER: &str = "def minutes(n):\n    return f'{n}m'\n";
const SHOPPING: &str = "class ShoppingList:\n    def lines(self):\n        return sorted(self._lines)\n\n    def without(self, other):\n        return [1]\n";
const TEST_RENDER: &str =
    "from render import minutes\n\n\ndef test_minutes():\n    assert minutes(1) == '1 min'\n";
const TEST_SHOPPING: &str = "from shopping import ShoppingList\n\n\ndef test_covers():\n    assert ShoppingList().without(None) == []\n\n\ndef test_lines():\n    assert ShoppingList().lines() == []\n";

/// Returns the failing tests: `test_covers` always fails, and `test_minutes` fails until `minutes`
/// is correct.
fn judge(all: &str) -> Vec<(String, String)> {
    let covers = "test_shopping.py:5: in test_covers\nE   assert [1] == []";
    let mut red = vec![(
        "test_shopping.py::test_covers".to_owned(),
        covers.to_owned(),
    )];
    if !all.contains("{n} min") {
        let message = "test_render.py:5: in test_minutes\nE   assert '1m' == '1 min'";
        red.push((
            "test_render.py::test_minutes".to_owned(),
            message.to_owned(),
        ));
    }
    red
}

/// Returns the failing tests of a project in which only `test_minutes` can fail.
fn of_minutes(all: &str) -> Vec<(String, String)> {
    let mut red = judge(all);
    red.retain(|(id, _)| id.contains("minutes"));
    red
}

fn bed(task: &str, symbol: &str, source: &str) -> Bed {
    let files = [
        ("pantry.py", PANTRY),
        ("render.py", RENDER),
        ("shopping.py", SHOPPING),
        ("test_render.py", TEST_RENDER),
        ("test_shopping.py", TEST_SHOPPING),
    ];
    let model = Scripted::native()
        .on("scout", [wake(&[symbol])])
        .on(&format!("agent {symbol}"), [whole(source)])
        .always("agent", finish("nothing more"));
    let mut bed = Bed::new(&files, model)
        .tests(judge)
        .with(|it| it.text = task.to_owned());
    bed.lists = true;
    bed
}

fn minutes(task: &str) -> Bed {
    bed(
        task,
        "render.py::minutes",
        "def minutes(n):\n    return f'{n} min'\n",
    )
}

/// The task names `shopping.py`. A test in `test_shopping.py` fails for a reason that is unrelated
/// to the task.
#[tokio::test(start_paused = true)]
async fn unrelated_failing_test_does_not_block_a_change_of_the_named_file() {
    let source =
        "def lines(self):\n        return sorted(self._lines, key=lambda one: one.amount)\n";
    let task = "In @shopping.py the list should be sorted by amount";
    let mut bed = bed(task, "shopping.py::ShoppingList.lines", source);
    let events = bed.run().await;
    assert!(
        bed.read("shopping.py").contains("one.amount"),
        "{events:#?}"
    );
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven);
    assert!(
        headline.starts_with("Done, but no test was seen to fail without it"),
        "{headline}"
    );
    let prompt = &bed.model.prompts("scout")[0];
    assert!(
        prompt.contains("leave them as they are: test_render.py::test_minutes"),
        "{prompt}"
    );
}

#[tokio::test(start_paused = true)]
async fn missing_file_in_the_task_is_reported_and_changes_of_other_files_are_unproven() {
    let task = "In @shoping.py the list should be sorted by amount";
    let mut bed = minutes(task);
    let events = bed.run().await;
    let why = "there is no shoping.py; is shopping.py meant?";
    let told: Vec<usize> = (0..events.len())
        .filter(|at| matches!(&events[*at], Event::NotWoken { why: said, .. } if said == why))
        .collect();
    let tested = events
        .iter()
        .position(|event| matches!(event, Event::TestsRun { .. }));
    assert_eq!(told.len(), 1, "{events:#?}");
    assert!(Some(told[0]) < tested, "at once");
    assert!(bed.model.prompts("scout")[0].contains(why));
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven);
    let but = format!("Done, but the task names @shoping.py, and {why};");
    assert!(headline.starts_with(&but), "{headline}");
    let mut proven = minutes(task).with(|task| task.require_tests = true);
    assert_eq!(ending(&proven.run().await).0, Proof::NotDone);
}

#[tokio::test(start_paused = true)]
async fn misspelled_symbol_in_the_task_is_named_in_the_headline() {
    let task = "`minutes` is wrong, as #Pantry.expirng and #minutes show #urgent";
    let (_, headline) = ending(&minutes(task).run().await);
    let expected = "; the task names #Pantry.expirng, and no symbol is called `Pantry.expirng`; \
                    nearest: `Pantry.expiring`";
    assert!(headline.ends_with(expected), "{headline}");
    assert!(!headline.contains("urgent"), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn change_outside_the_symbol_that_the_task_names_leaves_the_run_unproven() {
    for task in [
        "Fix Pantry.expiring: it leaves out what is best before today",
        "Refactor `Pantry.expiring`: the choice goes into a method of its own",
        "Add an argument to `Pantry.expiring`",
    ] {
        let events = minutes(task).run().await;
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::Unproven, "{headline}");
        let but = "Done, but nothing in `Pantry.expiring`, which the task names, was changed;";
        assert!(headline.starts_with(but), "{headline}");
    }
    // The change is proven if the task names the changed code, or if it names no code at all.
    for task in ["`minutes` is wrong", "Lengths of time are shown wrongly"] {
        let (proof, headline) = ending(&minutes(task).run().await);
        assert_eq!(proof, Proof::Proven, "{task}: {headline}");
    }
}

/// The run also fixes a failing test that is unrelated to the task.
#[tokio::test(start_paused = true)]
async fn test_that_covers_only_other_code_does_not_prove_the_change_of_the_named_symbol() {
    let source =
        "def expiring(self, today):\n        return [i for i in self.items if i >= today]\n";
    let both = |task: &mut Task| task.approval = Approval::Auto;
    let files = [
        ("pantry.py", PANTRY),
        ("render.py", RENDER),
        ("test_render.py", TEST_RENDER),
    ];
    let model = Scripted::native()
        .on(
            "scout",
            [wake(&["pantry.py::Pantry.expiring", "render.py::minutes"])],
        )
        .on("agent pantry.py", [whole(source)])
        .on(
            "agent render.py",
            [whole("def minutes(n):\n    return f'{n} min'\n")],
        )
        .always("agent", finish("nothing more"));
    let mut bed = Bed::new(&files, model).tests(of_minutes).with(both);
    bed.task.text = "Fix Pantry.expiring: it leaves out today".to_owned();
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let but =
        "Done, but no test of `Pantry.expiring`, which the task names, was seen to fail without it";
    assert!(headline.starts_with(but), "{headline}");
}

/// A function that the named function calls counts as part of the named function.
#[tokio::test(start_paused = true)]
async fn named_function_may_be_fixed_in_a_function_that_it_calls() {
    let show = "from render import minutes\n\n\ndef show(n):\n    return minutes(n)\n";
    let files = [
        ("render.py", RENDER),
        ("show.py", show),
        ("test_render.py", TEST_RENDER),
    ];
    let model = Scripted::native()
        .on("scout", [wake(&["render.py::minutes"])])
        .on(
            "agent render.py",
            [whole("def minutes(n):\n    return f'{n} min'\n")],
        )
        .always("agent", finish("nothing more"));
    let mut bed = Bed::new(&files, model).tests(of_minutes);
    bed.task.text = "`show` says 1m where it should say 1 min".to_owned();
    let (proof, headline) = ending(&bed.run().await);
    assert_eq!(proof, Proof::Proven, "{headline}");
}

/// The task names several documents. Each of them has to be changed.
#[tokio::test(start_paused = true)]
async fn unchanged_second_document_that_the_task_names_is_reported() {
    let files = [
        ("README.md", "It is `price_for`.\n"),
        ("docs/pricing.md", "`price_for` rounds.\n"),
    ];
    for (task, proof) in [
        (
            "README.md and docs/pricing.md still say price_for; it is price_of now",
            Proof::Unproven,
        ),
        (
            "Update README.md and `docs/pricing.md`: it is price_of now",
            Proof::Unproven,
        ),
        (
            "Mention price_of in README.md or docs/pricing.md",
            Proof::NothingToProve,
        ),
    ] {
        let model = Scripted::native()
            .on("scout", [wake(&["README.md::"])])
            .on("agent README.md::", [whole("It is `price_of`.\n")])
            .always("agent", finish("nothing more"));
        let mut bed = Bed::new(&files, model)
            .tests(|_| Vec::new())
            .with(|it| it.text = task.to_owned());
        let (found, headline) = ending(&bed.run().await);
        assert_eq!(found, proof, "{task}: {headline}");
        if proof == Proof::Unproven {
            let but = "Done, but docs/pricing.md, which the task names, was not changed";
            assert!(headline.starts_with(but), "{task}: {headline}");
        }
    }
}

/// The run changes another file instead of the document that the task names.
#[tokio::test(start_paused = true)]
async fn run_is_unproven_if_the_document_that_the_task_names_is_unchanged() {
    let files = [
        ("README.md", "# Shpo\n"),
        ("words.txt", "allow\n"),
        ("render.py", RENDER),
        ("test_render.py", TEST_RENDER),
    ];
    let ends = async |task: &str, symbol: &str, source: &str| {
        let model = Scripted::native()
            .on("scout", [wake(&[symbol])])
            .on(&format!("agent {symbol}"), [whole(source)])
            .always("agent", finish("nothing more"));
        let mut bed = Bed::new(&files, model)
            .tests(|_| Vec::new())
            .with(|it| it.text = task.to_owned());
        ending(&bed.run().await)
    };
    for task in ["Fix the typo in @README.md.", "Fix the typo in the README"] {
        let (proof, headline) = ends(task, "words.txt::", "deny\n").await;
        assert_eq!(proof, Proof::Unproven, "{headline}");
        let but = "Done, but README.md, which the task names, was not changed;";
        assert!(headline.starts_with(but), "{headline}");
        let told = "def minutes(n):\n    \"\"\"The time.\"\"\"\n    return f'{n}m'\n";
        let (proof, headline) = ends(task, "render.py::minutes", told).await;
        assert_eq!(proof, Proof::Unproven, "{headline}");
        assert!(headline.starts_with(but), "{headline}");
        let (proof, headline) = ends(task, "README.md::", "# Shop\n").await;
        assert_eq!(proof, Proof::NothingToProve, "{headline}");
    }
    let changed = "def minutes(n):\n    return f'{n}min'\n";
    let task = "`minutes` should end in min; update README.md as well.";
    let (proof, headline) = ends(task, "render.py::minutes", changed).await;
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let but = "Done, but README.md, which the task names, was not changed;";
    assert!(headline.starts_with(but), "{headline}");
}

/// The run changes another method in the file of the method that the task names.
#[tokio::test(start_paused = true)]
async fn change_of_other_code_in_the_same_file_does_not_count_as_change_of_the_named_symbol() {
    let of = |task: &str, source: &str| {
        bed(task, "shopping.py::ShoppingList.lines", source).tests(|_| Vec::new())
    };
    let told =
        "def lines(self):\n        \"\"\"All of them.\"\"\"\n        return sorted(self._lines)\n";
    let tidy = "def lines(self):\n        found = self._lines\n        return sorted(found)\n";
    for (task, source) in [
        ("Refactor #ShoppingList.without.", tidy),
        ("Improve the docstring of `ShoppingList.without`.", told),
    ] {
        let (proof, headline) = ending(&of(task, source).run().await);
        assert_eq!(proof, Proof::Unproven, "{headline}");
        let but = "Done, but nothing in `ShoppingList.without`, which the task names, was changed;";
        assert!(headline.starts_with(but), "{headline}");
    }
    for (task, source, proof) in [
        ("Refactor #ShoppingList.lines.", tidy, Proof::AsBefore),
        (
            "Improve the docstring of `ShoppingList.lines`.",
            told,
            Proof::NothingToProve,
        ),
    ] {
        assert_eq!(ending(&of(task, source).run().await).0, proof, "{task}");
    }
}

/// The task asks for docstrings of several functions. Each of them has to be changed.
#[tokio::test(start_paused = true)]
async fn functions_that_were_not_documented_are_named() {
    let plain = "def free(day):\n    return day\n";
    let files = [
        ("rooms.py", plain),
        ("marks.py", "def passed(mark):\n    return mark < 5\n"),
        (
            "told.py",
            "def told(x):\n    \"\"\"Is told.\"\"\"\n    return x\n",
        ),
    ];
    let documented = plain.replace("    return", "    \"\"\"Free rooms.\"\"\"\n    return");
    for (task, missed) in [
        ("Add docstrings to rooms.free and marks.passed", true),
        (
            "Add docstrings to `rooms.free`, `marks.passed` and `told`",
            true,
        ),
        ("Add a docstring to rooms.free", false),
        ("Add docstrings to rooms.free and told.told", false),
        ("Add a docstring to rooms.free, as in marks.passed", false),
    ] {
        let model = Scripted::native()
            .on("agent rooms.py", [whole(&documented)])
            .always("agent", finish("nothing more"));
        let mut bed = Bed::new(&files, model)
            .begin(&["rooms.py::free"])
            .tests(|_| Vec::new())
            .with(|it| it.text = task.to_owned());
        let (proof, headline) = ending(&bed.run().await);
        let but = "Done, but `passed`, which the task names, was not changed;";
        assert_eq!(headline.starts_with(but), missed, "{task}: {headline}");
        let expected = match missed {
            true => Proof::Unproven,
            false => Proof::NothingToProve,
        };
        assert_eq!(proof, expected, "{task}: {headline}");
    }
}

#[tokio::test(start_paused = true)]
async fn file_that_the_task_only_mentions_need_not_be_changed() {
    let files = [
        ("Makefile", "all:\n\ttrue\n"),
        ("moon.py", "print('moon')\n"),
    ];
    let hunks = json!([{"old": "\ttrue", "new": "\ttrue\n\nmoon:\n\tpython moon.py"}]);
    let model = Scripted::native()
        .on(
            "agent Makefile::",
            [call("propose", json!({"reason": "r", "hunks": hunks}))],
        )
        .always("agent", finish("nothing more"));
    let mut bed = Bed::new(&files, model).begin(&["Makefile::"]).with(|it| {
        it.text = "Add a target moon to the Makefile that runs moon.py".to_owned();
        it.approval = Approval::Ask;
    });
    let (_, headline) = ending(&bed.run().await);
    assert!(bed.read("Makefile").contains("moon:"), "{headline}");
    assert!(!headline.contains("which the task names"), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn names_that_only_stand_in_the_example_of_a_feature_are_no_targets() {
    const TASK: &str = "Write a function `top(rows)` in report.py. Example:\n\n```python\nfrom model \
                        import Bean\nfrom shop.report import top\ntop([Bean()])\n```\n";
    const REPORT: &str = "def lines():\n    return []\n";
    const WITH_TOP: &str = "def lines():\n    return []\n\n\ndef top(rows):\n    return rows[0]\n";
    let run = |task: String| async move {
        let model = Scripted::native()
            .on("scout", [wake(&["src/shop/report.py::"])])
            .on("agent src/shop/report.py", [whole(WITH_TOP)]);
        let files = [
            ("src/shop/report.py", REPORT),
            ("model.py", "class Bean:\n    pass\n"),
        ];
        let mut bed = Bed::new(&files, model)
            .tests(|_| vec![])
            .with(|of_run| of_run.text = task);
        ending(&bed.run().await).1
    };
    let headline = run(TASK.to_owned()).await;
    assert!(headline.starts_with("Done, but no test "), "{headline}");
    assert!(!headline.contains("Bean"), "{headline}");
    // The prose names the class.
    let headline = run(format!("{TASK}\n`Bean` must be hashable.")).await;
    let but = "Done, but nothing in `Bean`, which the task names, was changed";
    assert!(headline.starts_with(but), "{headline}");
}

const ROTA: &str = "import sys\n\n\ndef counts(members):\n    return len(members) + 1\n\n\n\
    def table(days):\n    return days\n\n\n\
    def main(argv):\n    if argv[0] == 'stats':\n        print(counts([]))\n        return 0\n    \
    if argv[0] == 'plan':\n        print(table(argv[1]))\n    return 1\n";
const TEST_ROTA: &str = "from rota import main\n\n\ndef test_plan_lists_minimum(capsys):\n    \
    main(['plan', '2'])\n    assert 'night' in capsys.readouterr().out\n";

/// Returns the failing tests: the test of the subcommand `plan` always fails.
fn of_plan(_: &str) -> Vec<(String, String)> {
    let message = "test_rota.py:6: in test_plan_lists_minimum\nE   assert 'night' in '2'";
    vec![(
        "test_rota.py::test_plan_lists_minimum".to_owned(),
        message.to_owned(),
    )]
}

#[tokio::test(start_paused = true)]
async fn failing_test_that_runs_another_subcommand_does_not_block_a_fix() {
    for task in [
        "`counts` counts one member too many. Fix it.",
        "`counts` counts one member too many",
    ] {
        let right = "def counts(members):\n    return len(members)\n";
        let model = Scripted::native()
            .on("scout", [wake(&["rota.py::counts"])])
            .on("agent rota.py::counts", [whole(right)])
            .always("agent", finish("nothing more"));
        let files = [("rota.py", ROTA), ("test_rota.py", TEST_ROTA)];
        let mut bed = Bed::new(&files, model)
            .tests(of_plan)
            .with(|it| it.text = task.to_owned());
        let events = bed.run().await;
        assert!(bed.read("rota.py").contains(right), "{task}: {events:#?}");
        assert_eq!(malformed(&events), [""; 0], "{task}");
    }
}
