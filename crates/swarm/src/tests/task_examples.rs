//! Examples of the task, which are tried before the first prompt and with each change.

use super::bed::*;
use crate::{Event, Evidence, ExampleEvidence, Proof};
use starling_core::Approval;
use starling_core::TryCode;

const ONE: &str = "def half(x):\n    return x / 2\n";
const TWO: &str = "def half(x):\n    return x // 2\n";
const TASK: &str = "`half` is wrong:\n```python\nhalf('a')\n```\nIt raises.";
const TRACE: &str = "Traceback (most recent call last):\n  File \"<snippet>\", line 2, in <module>\n    \
                     half('a')\n  File \"a.py\", line 2, in half\n    return x / 2\nTypeError: no\n";

/// A project whose example raises an error until `half` divides by `//`.
fn bed(lines: Vec<Line>) -> Bed {
    let model = Scripted::native()
        .on("scout", [wake(&["a.py::half"])])
        .on("agent a.py::half", lines);
    let bed = Bed::new(&[("a.py", ONE), ("b.py", "x = 1\n")], model);
    let bed = bed.tests(|_| vec![]).tries(|text, code| {
        let expected = TryCode::Python("from a import half\nhalf('a')".to_owned());
        assert_eq!(*code, expected);
        match text.contains("//") {
            true => ("[1, 2]\n".to_owned(), 0),
            false => (TRACE.to_owned(), 1),
        }
    });
    bed.with(|task| task.text = TASK.to_owned())
}

fn tries(events: &[Event]) -> Vec<&Event> {
    let is_try = |event: &&Event| matches!(event, Event::ToolUsed { tool, .. } if tool == "try");
    events.iter().filter(is_try).collect()
}

#[tokio::test(start_paused = true)]
async fn first_prompt_says_what_the_example_of_the_task_does() {
    let mut bed = bed(vec![finish("seen")]);
    let events = bed.run().await;
    let prompt = &bed.model.prompts("scout")[0];
    let told = "<examples>\nfrom a import half\nhalf('a')\n-> TypeError: no at a.py:2\nTraceback";
    assert!(prompt.contains(told), "{prompt}");
    let [
        Event::ToolUsed {
            argument, outcome, ..
        },
    ] = tries(&events)[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(argument, "from a import half; half('a')");
    assert_eq!(outcome, "TypeError: no");
}

#[tokio::test(start_paused = true)]
async fn no_example_is_tried_if_the_setting_is_off_or_if_nothing_can_be_tried() {
    let mut off = bed(vec![finish("seen")]).with(|task| task.try_examples = false);
    let events = off.run().await;
    assert_eq!(tries(&events), Vec::<&Event>::new());
    assert!(!off.model.prompts("scout")[0].contains("<examples>"));

    let model = Scripted::native()
        .on("scout", [wake(&["a.py::half"])])
        .on("agent a.py::half", [finish("seen")]);
    let mut none = Bed::new(&[("a.py", ONE)], model).with(|task| task.text = TASK.to_owned());
    let events = none.run().await;
    assert_eq!(tries(&events), Vec::<&Event>::new());
    assert!(!none.model.prompts("scout")[0].contains("<examples>"));
}

fn example(after: &str) -> ExampleEvidence {
    ExampleEvidence {
        code: "from a import half; half('a')".to_owned(),
        before: "TypeError: no".to_owned(),
        after: after.to_owned(),
    }
}

fn checked(events: &[Event]) -> Vec<Evidence> {
    let checked = |event: &Event| match event {
        Event::ProposalChecked { evidence, .. } => Some(evidence.clone()),
        _ => None,
    };
    events.iter().filter_map(checked).collect()
}

#[tokio::test(start_paused = true)]
async fn evidence_and_headline_tell_the_example_before_and_after_and_it_proves_nothing() {
    let mut bed = bed(vec![whole(TWO)]).with(|task| task.approval = Approval::Proxy);
    bed.model = std::sync::Arc::new(
        Scripted::native()
            .on("scout", [wake(&["a.py::half"])])
            .on("agent a.py::half", [whole(TWO)])
            .always("proxy", say("ACCEPT")),
    );
    let events = bed.run().await;
    let evidence = &checked(&events)[0];
    assert_eq!(evidence.examples, [example("[1, 2]")]);
    let shown = "example of the task: before `TypeError: no`, after `[1, 2]` (from a import half; half('a'))\n";
    assert!(evidence.to_string().contains(shown), "{evidence}");
    assert!(bed.model.prompts("proxy")[0].contains(shown));
    let json = serde_json::to_value(evidence).unwrap();
    assert_eq!(json["examples"][0]["after"], "[1, 2]");
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven);
    let end = "; the example of the task: before `TypeError: no`, after `[1, 2]`";
    assert!(headline.ends_with(end), "{headline}");
    assert!(
        headline.contains("no test was seen to fail without it"),
        "{headline}"
    );
}

#[tokio::test(start_paused = true)]
async fn evidence_says_that_the_example_does_the_same_with_the_change() {
    let mut bed = bed(vec![whole("def half(x):\n    return x / 2.0\n")]);
    let events = bed.run().await;
    let evidence = &checked(&events)[0];
    assert_eq!(evidence.examples, [example("TypeError: no")]);
    let shown = "example of the task: `TypeError: no`, as before (";
    assert!(evidence.to_string().contains(shown), "{evidence}");
}

#[tokio::test(start_paused = true)]
async fn evidence_of_a_set_tells_the_example_with_all_proposals() {
    let other = "def other():\n    return 2\n";
    let model = Scripted::native()
        .on("agent a.py::half", [whole(TWO)])
        .on("agent b.py::other", [whole(other)]);
    let files = [("a.py", ONE), ("b.py", "def other():\n    return 1\n")];
    let mut bed = Bed::new(&files, model)
        .begin(&["a.py::half", "b.py::other"])
        .with(|task| task.text = TASK.to_owned())
        .tests(
            |text| match text.contains("//") == text.contains("return 2") {
                true => vec![],
                false => vec![("t1".to_owned(), "AssertionError".to_owned())],
            },
        )
        .tries(
            |text, _| match text.contains("//") && text.contains("return 2") {
                true => ("[1, 2]\n".to_owned(), 0),
                false => (TRACE.to_owned(), 1),
            },
        );
    let events = bed.run().await;
    let checked = checked(&events);
    let together: Vec<_> = checked
        .iter()
        .filter_map(|one| one.together.as_ref())
        .collect();
    assert!(!together.is_empty(), "{events:#?}");
    for one in together {
        assert_eq!(one.examples, [example("[1, 2]")]);
    }
    let alone = checked.iter().filter(|one| one.together.is_none());
    assert!(
        alone
            .flat_map(|one| &one.examples)
            .all(|one| *one == example("TypeError: no"))
    );
}

/// A project with an example that ends with this output and exit status until code is changed.
fn tried(task: &'static str, scout: Vec<Line>, output: &'static str, exit: i32) -> Bed {
    let model = Scripted::native()
        .on("scout", scout)
        .always("agent", finish("nothing"))
        .always("solo", finish("It is fine."));
    Bed::new(&[("a.py", ONE)], model)
        .tests(|_| vec![])
        .tries(move |_, _| (output.to_owned(), exit))
        .with(move |task_of_run| task_of_run.text = task.to_owned())
}

#[tokio::test(start_paused = true)]
async fn run_without_a_change_is_not_done_while_the_example_of_the_task_fails() {
    let again = || vec![finish("It is fine."), finish("It is fine.")];
    const STATS: &str = "Add a subcommand `stats` to a.py:\n\n$ python -m a stats\n";
    const USAGE: &str = "usage: a\na: error: invalid choice: 'stats'\n";
    for (task, output, exit, end) in [
        (TASK, TRACE, 1, "TypeError: no"),
        (
            STATS,
            USAGE,
            2,
            "exit status 2: a: error: invalid choice: 'stats'",
        ),
    ] {
        let open = format!("the example of the task still ends with `{end}`");
        let headline = format!("Not done: {open}; It is fine.");
        let mut bed = tried(task, again(), output, exit);
        let events = bed.run().await;
        assert_eq!(bed.model.calls(), 2, "{events:#?}");
        let prompt = &bed.model.prompts("scout")[1];
        let told = format!("Something is to be changed: {open}. Call `wake`");
        assert!(prompt.contains(&told), "{prompt}");
        assert_eq!(ending(&events), (Proof::NotDone, headline.clone()));

        let mut single = tried(task, again(), output, exit)
            .with(|task| task.driver = starling_core::Driver::Single);
        assert_eq!(ending(&single.run().await), (Proof::NotDone, headline));
    }
}

#[tokio::test(start_paused = true)]
async fn example_that_passes_or_belongs_to_a_question_does_not_keep_the_scout_from_finishing() {
    const WHY: &str = "Why does `half` raise?\n```python\nhalf('a')\n```\nIs it meant?";
    for (task, output, exit) in [(TASK, "[1]\n", 0), (WHY, TRACE, 1)] {
        let mut bed = tried(task, vec![finish("It is fine.")], output, exit);
        let events = bed.run().await;
        assert_eq!(bed.model.calls(), 1, "{events:#?}");
        assert_eq!(ending(&events).0, Proof::NothingToProve);
    }
}

#[tokio::test(start_paused = true)]
async fn example_that_imports_a_function_that_the_task_asks_for_is_tried_before_and_after() {
    const TASK: &str = "Add `top` to a.py:\n```python\nfrom a import top\ntop(1)\n```\n";
    const BOTH: &str = "def half(x):\n    return x / 2\n\n\ndef top(x):\n    return x\n";
    let model = Scripted::native()
        .on("scout", [wake(&["a.py::"])])
        .on("agent a.py", [whole(BOTH)]);
    let mut bed = Bed::new(&[("a.py", ONE)], model)
        .tests(|_| vec![])
        .tries(|text, _| match text.contains("def top") {
            true => ("1\n".to_owned(), 0),
            false => (
                "ImportError: cannot import name 'top' from 'a' (/a.py)\n".to_owned(),
                1,
            ),
        })
        .with(|task| task.text = TASK.to_owned());
    let events = bed.run().await;
    let prompt = &bed.model.prompts("scout")[0];
    let told = "<examples>\nfrom a import top\ntop(1)\n-> ImportError: cannot import name 'top'";
    assert!(prompt.contains(told), "{prompt}");
    let (_, headline) = ending(&events);
    let end = "before `ImportError: cannot import name 'top' from 'a' (/a.py)`, after `1`";
    assert!(headline.ends_with(end), "{headline}");
}
