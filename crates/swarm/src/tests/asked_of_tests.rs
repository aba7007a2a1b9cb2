//! Changes and removals of tests that go with a change of the code, because the task asks for both.

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
