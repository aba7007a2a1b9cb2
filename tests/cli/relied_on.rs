//! `starling undo` of a run on whose change a later run relies.

use serde_json::{Value, json};

use super::project::{TestProject, exchange};

const TWO: &str = "def f():\n    return 1\n\n\ndef g():\n    return 1\n";

impl TestProject {
    /// Runs a task in which the owner of one function makes a change, and returns the id of the run.
    fn changed(&self, function: &str, change: &Value) -> String {
        let symbol = format!("work.py::{function}");
        let picked = json!({"symbols": [{"symbol": symbol, "why": "recorded"}]});
        let lines = [
            exchange("scout", "scout", 0, "wake", &picked),
            exchange(&format!("agent {symbol}"), "agent", 0, "propose", change),
        ];
        let tape = self.write("tape.jsonl", &lines.join("\n"));
        let model = format!("replay:{}", tape.display());
        let said = self.say(&["run", "--json", "--approve", "auto", "--model", &model, "x"]);
        let applied = said
            .events()
            .iter()
            .any(|one| one["event"]["event"] == "proposal_applied");
        assert!(applied, "{said:?}");
        said.events()[0]["run"].as_str().unwrap().to_owned()
    }
}

#[test]
fn undo_keeps_a_change_that_a_later_run_uses_and_names_that_run() {
    let bed = TestProject::new();
    bed.write("project/work.py", TWO);
    let first = json!({
        "reason": "r", "source": "def f():\n    return helper()\n",
        "add": [{"source": "def helper():\n    return 1\n"}],
    });
    let first = bed.changed("f", &first);
    let between = bed.work();
    let second = json!({"reason": "r", "source": "def g():\n    return helper()\n"});
    let second = bed.changed("g", &second);
    let both = bed.work();
    let said = bed.say(&["undo", "--yes", &first]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let why = format!(
        "#1 stays as a whole: run {second} relies on it: it uses `helper` in work.py::g; `starling undo \
         {second}` and then `starling undo {first}` take both back"
    );
    assert!(said.out.contains(&why), "{said:?}");
    assert_eq!(bed.work(), both);
    let json = bed.say(&["undo", "--yes", "--json", &first]);
    assert!(json.out.contains("relies on it"), "{json:?}");
    assert_eq!(bed.work(), both);
    for (run, expected) in [(&second, &*between), (&first, TWO)] {
        let said = bed.say(&["undo", "--yes", run]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(bed.work(), expected);
    }
}

#[test]
fn proposal_that_is_named_is_undone_with_a_warning_about_the_later_run() {
    let bed = TestProject::new();
    bed.write("project/work.py", TWO);
    let first = json!({
        "reason": "r", "source": "def f():\n    return helper()\n",
        "add": [{"source": "def helper():\n    return 1\n"}],
    });
    let first = bed.changed("f", &first);
    let second = json!({"reason": "r", "source": "def g():\n    return helper()\n"});
    let second = bed.changed("g", &second);
    let said = bed.say(&["undo", "--yes", &first, "1"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = format!("this may break the code that stays: #1: run {second} relies on it");
    assert!(said.out.contains(&told), "{said:?}");
    assert!(!bed.work().contains("def helper"));
}
