//! Changes and removals of tests that go with a change of the code, because the task asks for both.

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

fn bed(files: &[(&str, &str)], task: &str, model: Scripted) -> Bed {
    let mut bed = Bed::new(files, model).with(|own| {
        own.approval = Approval::Auto;
        own.text = task.to_owned();
    });
    bed.lists = true;
    bed
}

/// Returns the results of `test_label`, which fails if the code and the test do not agree on whether
/// `label` is called.
fn judge_label(all: &str) -> Vec<(String, String)> {
    let error = match (all.contains("@property"), all.contains(".label()")) {
        (true, true) => "E   TypeError: 'str' object is not callable",
        (false, false) => "E   AssertionError: assert <bound method> == 'x'",
        (true, false) | (false, true) => return Vec::new(),
    };
    vec![("test_m.py::test_label".to_owned(), error.to_owned())]
}

#[tokio::test(start_paused = true)]
async fn tests_may_follow_a_change_of_form_if_the_task_says_so() {
    for (task, may) in [
        ("Make Member.label a property, also in the tests.", true),
        (
            "Make Member.label a property; the tests have to follow.",
            true,
        ),
        ("Make Member.label a property; the tests must pass.", false),
    ] {
        let method = "    def label(self):\n        return 'x'\n";
        let property = format!("    @property\n{method}");
        let test =
            "from m import Member\n\n\ndef test_label():\n    assert Member().label() == 'x'\n";
        let follows = "def test_label():\n    assert Member().label == 'x'\n";
        let model = Scripted::native()
            .on(
                "agent m.py::Member.label",
                [whole(&property), finish("done")],
            )
            .on(
                "agent test_m.py::test_label",
                [whole(follows), finish("done")],
            )
            .always("agent", finish("nothing"));
        let code = format!("class Member:\n{method}");
        let files = [("m.py", code.as_str()), ("test_m.py", test)];
        let mut bed = bed(&files, task, model)
            .begin(&["m.py::Member.label", "test_m.py::test_label"])
            .tests(judge_label);
        let events = bed.run().await;
        let is_property = bed.read("m.py").contains("@property");
        assert_eq!(is_property, may, "{task}: {events:#?}");
    }
}

/// Returns the results of two tests in one file. `test_fixed` does not run without its definition.
/// If the file imports the class and nothing defines it, no test of the file runs.
fn judge_fixed(all: &str) -> Vec<(String, String)> {
    let case = |id: &str, why: &str| (format!("test_w.py{id}"), why.to_owned());
    let is_defined = all.contains("class Fixed");
    if !is_defined && all.contains("import Fixed, rate") {
        let error = case("", "E   ImportError: cannot import name 'Fixed' from 'w'");
        return vec![case("::test_fixed", GONE), case("::test_rate", GONE), error];
    }
    let fixed = match all.contains("def test_fixed") {
        true if is_defined => PASSES,
        true => "E   NameError: name 'Fixed' is not defined",
        false => GONE,
    };
    let rate = match all.contains("def test_rate") {
        true => PASSES,
        false => GONE,
    };
    vec![case("::test_fixed", fixed), case("::test_rate", rate)]
}

#[tokio::test(start_paused = true)]
async fn test_of_a_deleted_class_may_go_if_the_task_asks_for_it() {
    let code = "class Fixed:\n    pass\n\n\ndef rate():\n    return 1\n";
    let tests = "from w import Fixed, rate\n\n\ndef test_fixed():\n    assert Fixed()\n\n\n\
                 def test_rate():\n    assert rate() == 1\n";
    for (task, test, may) in [
        (
            "Remove the class Fixed and the test that uses it.",
            "test_fixed",
            true,
        ),
        ("Remove the class Fixed and its test.", "test_fixed", true),
        (
            "Remove the class Fixed together with the test that uses it",
            "test_fixed",
            true,
        ),
        ("Remove the class Fixed.", "test_fixed", false),
        (
            "Remove the class Fixed and the test that uses it.",
            "test_rate",
            false,
        ),
    ] {
        let delete = |symbol: &str| call("propose", json!({"reason": "r", "delete": [symbol]}));
        let import = json!([{"old": "import Fixed, rate", "new": "import rate"}]);
        let import = json!({"reason": "r", "symbol": "test_w.py::", "hunks": import});
        let of_test = format!("test_w.py::{test}");
        let model = Scripted::native()
            .on("agent w.py::Fixed", [delete("w.py::Fixed"), finish("done")])
            .on(
                &format!("agent {of_test}"),
                [delete(&of_test), finish("done")],
            )
            .on(
                "agent test_w.py::",
                [call("propose", import), finish("done")],
            )
            .always("agent", finish("nothing"));
        let files = [("w.py", code), ("test_w.py", tests)];
        let mut bed = bed(&files, task, model)
            .begin(&["w.py::Fixed", &of_test, "test_w.py::"])
            .tests(judge_fixed);
        let events = bed.run().await;
        let is_gone = !bed.read("test_w.py").contains(&format!("def {test}"));
        assert_eq!(is_gone, may, "{task}: {events:#?}");
        if may {
            assert!(!bed.read("w.py").contains("Fixed"), "{task}: {events:#?}");
            assert_eq!(stop(&events), StopReason::Settled, "{task}: {events:#?}");
        }
    }
}
