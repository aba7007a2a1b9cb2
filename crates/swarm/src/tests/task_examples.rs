//! Examples of the task, which are tried before the first prompt and with each change.

use super::bed::*;
use crate::Event;
use starling_core::TryCode;

const ONE: &str = "def half(x):\n    return x / 2\n";
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
    let line = "traceback";
    assert!(prompt.contains(line), "a reason of a candidate: {prompt}");
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
