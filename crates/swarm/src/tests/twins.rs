//! Several definitions of the same name: overloads of a function, and a property with its setter.

use serde_json::{Value, json};

use super::bed::*;
use crate::*;

const MODEL: &str = "from typing import overload\n\n\n@overload\ndef celsius(text: str) -> float: ...\n@overload\n\
                     def celsius(text: int) -> int: ...\ndef celsius(text):\n    return text\n\n\n\
                     class Station:\n    @property\n    def height(self):\n        return self._height\n\n    \
                     @height.setter\n    def height(self, value):\n        self._height = value\n";
const TESTS: &str = "from model import Station, celsius\n\n\ndef test_celsius():\n    assert celsius(1) == 1\n\n\n\
                     def test_station():\n    s = Station()\n    s.height = 2\n    assert s.height == 2\n";

fn pick(symbol: &str, hunks: &[(&str, &str)]) -> Value {
    let hunks: Vec<Value> = hunks
        .iter()
        .map(|(old, new)| json!({"old": old, "new": new}))
        .collect();
    json!({"symbol": symbol, "why": "renamed", "hunks": hunks})
}

fn hunks_of(symbol: &str, hunks: &[(&str, &str)]) -> Line {
    let Value::Object(mut change) = pick(symbol, hunks) else {
        panic!("no object");
    };
    change.remove("why");
    change.insert("reason".to_owned(), json!("renamed"));
    call("propose", Value::Object(change))
}

/// Returns the test results: a test fails if the name that it uses is not defined or not imported.
fn judge(all: &str) -> Vec<(String, String)> {
    let mut failed = Vec::new();
    for (test, names) in [
        ("test_celsius", ["celsius", "to_celsius"]),
        ("test_station", ["height", "altitude"]),
    ] {
        let used = |name: &str| {
            all.contains(&format!("assert {name}(")) || all.contains(&format!("assert s.{name} "))
        };
        let name = if used(names[1]) { names[1] } else { names[0] };
        let defined = all.contains(&format!("def {name}("));
        let imported = test == "test_station" || all.contains(&format!("import Station, {name}\n"));
        if !defined || !imported {
            let why = format!("ImportError: cannot import name '{name}' from 'model'");
            failed.push((format!("test_model.py::{test}"), why));
        }
    }
    failed
}

fn bed(task: &str, model: Scripted) -> Bed {
    let mut bed = Bed::new(&[("model.py", MODEL), ("test_model.py", TESTS)], model)
        .tests(judge)
        .with(|one| one.text = task.to_owned());
    bed.lists = true;
    bed
}

const DEF: (&str, &str) = ("def celsius(", "def to_celsius(");

fn test_picks() -> [Value; 2] {
    [
        pick(
            "test_model.py::",
            &[("Station, celsius", "Station, to_celsius")],
        ),
        pick(
            "test_model.py::test_celsius",
            &[("assert celsius(", "assert to_celsius(")],
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn separate_drafts_of_the_scout_for_each_overload_are_applied_together() {
    let mut picks = vec![
        pick("model.py::celsius", &[DEF]),
        pick("model.py::celsius#2", &[DEF]),
        pick("model.py::celsius#3", &[DEF]),
    ];
    picks.extend(test_picks());
    let model = Scripted::native()
        .on("scout", [call("wake", json!({ "symbols": picks }))])
        .always("agent", finish("nothing"));
    let mut bed = bed("Rename celsius to to_celsius", model);
    let events = bed.run().await;
    assert_eq!(malformed(&events), Vec::<String>::new());
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let text = bed.read("model.py");
    assert_eq!(text.matches("def to_celsius(").count(), 3, "{text}");
    assert!(!text.contains("def celsius("), "{text}");
}

#[tokio::test(start_paused = true)]
async fn separate_drafts_of_the_scout_for_a_property_and_its_setter_are_applied_together() {
    let picks = json!({"symbols": [
        pick("model.py::Station.height", &[("def height(", "def altitude(")]),
        pick("model.py::Station.height#2", &[
            ("@height.setter", "@altitude.setter"),
            ("def height(", "def altitude("),
        ]),
        pick("test_model.py::test_station", &[
            ("s.height = 2\n    assert s.height", "s.altitude = 2\n    assert s.altitude"),
        ]),
    ]});
    let model = Scripted::native()
        .on("scout", [call("wake", picks)])
        .always("agent", finish("nothing"));
    let mut bed = bed("Rename Station.height to altitude", model);
    let events = bed.run().await;
    assert_eq!(malformed(&events), Vec::<String>::new());
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(
        bed.read("model.py")
            .contains("@altitude.setter\n    def altitude(self, value)")
    );
}

/// The agent that owns one definition of a name also owns the other definitions of that name.
#[tokio::test(start_paused = true)]
async fn owner_of_an_overload_may_rename_all_overloads_in_one_proposal() {
    let all = hunks_of(
        "model.py::celsius",
        &[
            ("def celsius(text: str)", "def to_celsius(text: str)"),
            ("def celsius(text: int)", "def to_celsius(text: int)"),
            ("def celsius(text):", "def to_celsius(text):"),
        ],
    );
    let [module, test] = [
        hunks_of(
            "test_model.py::",
            &[("Station, celsius", "Station, to_celsius")],
        ),
        hunks_of(
            "test_model.py::test_celsius",
            &[("assert celsius(", "assert to_celsius(")],
        ),
    ];
    let model = Scripted::native()
        .on("agent model.py::celsius", [all])
        .on("agent test_model.py::", [module])
        .on("agent test_model.py::test_celsius", [test])
        .always("agent", finish("nothing"));
    let begin = [
        "model.py::celsius",
        "test_model.py::",
        "test_model.py::test_celsius",
    ];
    let mut bed = bed("Rename celsius to to_celsius", model).begin(&begin);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("model.py").matches("def to_celsius(").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn refused_rename_of_an_overload_names_the_definitions_that_were_not_renamed() {
    let mut picks = vec![pick("model.py::celsius#3", &[DEF])];
    picks.extend(test_picks());
    let model = Scripted::native()
        .on("scout", [call("wake", json!({ "symbols": picks }))])
        .always("agent", finish("nothing"));
    let mut bed = bed("Rename celsius to to_celsius", model);
    let events = bed.run().await;
    assert_eq!(bed.read("model.py"), MODEL);
    let told = malformed(&events).join("\n");
    let left = "model.py:5: this definition of `celsius` must be renamed together with the others";
    assert!(told.contains(left), "{told}");
    assert!(
        !told.contains("Existing tests must pass as they were"),
        "{told}"
    );
}
