//! Removal of imports: an import that is still used is not removed, not even if no test runs the
//! code that uses it. An import that only deleted code uses is removed together with that code.

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

const CODE: &str = "def add(a):\n    return a\n\n\ndef old(a):\n    return a\n";
const TESTS: &str = "from a import old, add\n\n\ndef test_add():\n    assert add(1)\n\n\n\
                     def test_old():\n    assert old(1)\n";
const IMPORT: &str = "from a import add\n";

fn takes_import_away() -> Line {
    let hunks = json!([{"old": "from a import old, add\n", "new": IMPORT}]);
    call("propose", json!({"reason": "r", "hunks": hunks}))
}

fn deletes(symbol: &str) -> Line {
    let delete = json!({"reason": "r", "delete": [symbol], "intended_losses": true});
    call("propose", delete)
}

/// Returns the test results as Python would: all tests of the file fail if an imported name is
/// missing, and only the test that uses a name fails if the import of the name is missing.
fn judged(all: &str) -> Vec<(String, String)> {
    let has_code = all.contains("def old");
    let has_import = all.contains("import old") || all.contains("add, old");
    let has_test = all.contains("def test_old");
    let test = |name: &str, how: &str| (format!("test_a.py::{name}"), how.to_owned());
    if has_import && !has_code {
        let error = "E   ImportError: cannot import name 'old' from 'a' (a.py)";
        return vec![test("test_add", error), test("test_old", error)];
    }
    let old = match (has_test, has_import) {
        (false, _) => GONE,
        (true, true) => PASSES,
        (true, false) => "E   NameError: name 'old' is not defined",
    };
    vec![test("test_add", PASSES), test("test_old", old)]
}

#[tokio::test(start_paused = true)]
async fn removal_of_an_import_that_is_still_used_is_refused() {
    for approval in [Approval::Auto, Approval::Proxy] {
        let model = Scripted::native()
            .on(
                "agent test_a.py::",
                [takes_import_away(), finish("it is used")],
            )
            .always("proxy", say("ACCEPT"));
        let mut bed = Bed::new(&[("a.py", CODE), ("test_a.py", TESTS)], model)
            .begin(&["test_a.py::"])
            .with(|task| task.approval = approval);
        let events = bed.run().await;
        assert_eq!(bed.read("test_a.py"), TESTS, "{events:#?}");
        let told = &malformed(&events)[0];
        let why = "takes the import of `old` away, which test_a.py::test_old still uses";
        assert!(told.contains(why), "{told}");
        let is_applied = |event: &Event| matches!(event, Event::ProposalApplied { .. });
        assert!(!events.iter().any(is_applied), "{events:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn three_owners_delete_a_function_its_import_and_its_test_together() {
    let model = Scripted::native()
        .on(
            "agent a.py::old",
            [deletes("a.py::old"), deletes("a.py::old"), finish("done")],
        )
        .on(
            "agent test_a.py::",
            [takes_import_away(), takes_import_away(), finish("done")],
        )
        .on(
            "agent test_a.py::test_old",
            [deletes("test_a.py::test_old"), finish("done")],
        );
    let mut bed = Bed::new(&[("a.py", CODE), ("test_a.py", TESTS)], model)
        .begin(&["a.py::old", "test_a.py::", "test_a.py::test_old"])
        .tests(judged)
        .with(|task| task.text = "Remove the function old and its test test_old".to_owned());
    let events = bed.run().await;
    assert!(!bed.read("a.py").contains("old"), "{events:#?}");
    let left = bed.read("test_a.py");
    assert!(
        left.starts_with(IMPORT) && !left.contains("old"),
        "{left}\n{events:#?}"
    );
}
