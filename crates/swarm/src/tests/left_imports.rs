//! Imports from the old module of a definition that a run moves.

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

const AGE: &str = "def age(x):\n    return x + 1\n";

/// Runs agents that move `age` from decay.py to ages.py. decay.py then imports `age` from ages.py. If `follows`
/// is false, cli.py still imports it from decay.py.
async fn moves_a_function(task: &str, follows: bool) -> (Bed, Vec<Event>) {
    let decay =
        format!("import re\n\n\n{AGE}\n\ndef half(x):\n    return re.sub(str(age(x)), x, x)\n");
    let cli = "from decay import age\n\n\ndef main():\n    return age(1)\n";
    let hunks = |symbol: &str, hunks: &[(&str, &str)]| {
        let hunks: Vec<_> = hunks
            .iter()
            .map(|(old, new)| json!({"old": old, "new": new}))
            .collect();
        call(
            "propose",
            json!({"reason": "r", "symbol": symbol, "hunks": hunks}),
        )
    };
    let leaving = hunks(
        "decay.py::",
        &[("import re\n", "import re\nfrom ages import age\n")],
    );
    let delete = call(
        "propose",
        json!({"reason": "r", "delete": ["decay.py::age"]}),
    );
    let following = match follows {
        true => hunks(
            "cli.py::",
            &[("from decay import age", "from ages import age")],
        ),
        false => finish("nothing to do"),
    };
    let model = Scripted::native()
        .on("agent ages.py::", [whole(AGE), finish("done")])
        .on("agent decay.py::age", [delete, finish("done")])
        .on("agent decay.py::", [leaving, finish("done")])
        .on("agent cli.py::", [following, finish("done")])
        .always("proxy", say("ACCEPT"))
        .always("agent", finish("nothing"));
    let files = [("decay.py", decay.as_str()), ("cli.py", cli)];
    let mut bed = Bed::new(&files, model)
        .begin(&["ages.py::", "decay.py::", "decay.py::age", "cli.py::"])
        .tests(|_| Vec::new())
        .with(|own| {
            own.approval = Approval::Auto;
            own.text = task.to_owned();
        });
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn headline_tells_the_imports_that_still_take_a_moved_definition_from_its_old_module() {
    let task = "Move age from decay.py to a new module ages.py; all importers follow.";
    let (bed, events) = moves_a_function(task, false).await;
    let (proof, headline) = ending(&events);
    assert_eq!(bed.read("ages.py"), AGE, "{headline}");
    assert!(!bed.read("decay.py").contains("def age"), "{headline}");
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let expected = "Done, but cli.py:1 still imports `age` from decay.py; ";
    assert!(headline.starts_with(expected), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn move_whose_importers_follow_or_may_stay_is_done() {
    let follows = "Move age from decay.py to a new module ages.py; all importers follow.";
    let keeps = "Move age from decay.py to a new module ages.py; the old imports keep working.";
    for (task, does_follow) in [(follows, true), (keeps, false)] {
        let (_bed, events) = moves_a_function(task, does_follow).await;
        let (proof, headline) = ending(&events);
        assert_eq!(proof, Proof::AsBefore, "{task}: {headline}");
    }
}
