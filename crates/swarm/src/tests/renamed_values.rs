//! Renames of values: names that only strings of the code, tests and data contain.

use serde_json::{Value, json};

use super::bed::*;
use crate::*;

const PRICES: &str = "TARIFFS = {\"normal\": 0, \"senior\": 20}\n\n\n\
                      def price(tariff):\n    return 10 - TARIFFS[tariff] // 10\n";
const TESTS: &str =
    "from prices import price\n\n\ndef test_price():\n    assert price(\"senior\") == 8\n";
const DATA: &str = "name;tariff\nErna;senior\nOtto;family\n";
const FILES: [(&str, &str); 3] = [
    ("prices.py", PRICES),
    ("test_prices.py", TESTS),
    ("data/list.csv", DATA),
];

/// Returns the results of a test of the code, and of a test that reads the data and fails for the first
/// unknown tariff.
fn judge(all: &str) -> Vec<(String, String)> {
    let is_known = |tariff: &str| all.contains(&format!("\"{tariff}\": 20"));
    let is_tested = |tariff: &str| all.contains(&format!("price(\"{tariff}\")"));
    let passes = ["senior", "rentner"]
        .iter()
        .any(|tariff| is_known(tariff) && is_tested(tariff));
    let unknown = match all.contains("Erna;senior") && !is_known("senior") {
        true => "senior",
        false => "family",
    };
    let message = format!("prices.py:5: in price\nE   KeyError: '{unknown}'");
    let mut results = vec![("test_store.py::test_data".to_owned(), message)];
    if !passes {
        let message = "E   KeyError: 'senior'".to_owned();
        results.push(("test_prices.py::test_price".to_owned(), message));
    }
    results
}

fn hunks(symbol: &str, old: &str, new: &str) -> Value {
    json!({"symbol": symbol, "why": "w", "hunks": [{"old": old, "new": new}]})
}

/// Runs a task in which the code and its test get the new value. `and_data` says whether the data get
/// it, too.
async fn run(task: &str, and_data: bool) -> (Bed, Vec<Event>) {
    let mut picks = vec![
        hunks("prices.py::", "\"senior\": 20", "\"rentner\": 20"),
        hunks(
            "test_prices.py::test_price",
            "price(\"senior\")",
            "price(\"rentner\")",
        ),
    ];
    if and_data {
        picks.push(hunks("data/list.csv::", "Erna;senior", "Erna;rentner"));
    }
    let model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": picks}))])
        .always("agent", finish("nothing more"));
    let mut bed = Bed::new(&FILES, model)
        .tests(judge)
        .with(|own| own.text = task.to_owned());
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn tests_follow_a_value_however_the_rename_is_said() {
    for task in [
        "The tariff \"senior\" should be called \"rentner\", everywhere.",
        "The tariff `senior` should be called `rentner`.",
        "Rename the tariff senior to rentner",
        "Rename the tariff \"senior\" to \"rentner\", also in the tests.",
    ] {
        let (bed, events) = run(task, false).await;
        assert!(
            bed.read("prices.py").contains("rentner"),
            "{task}: {events:#?}"
        );
        assert!(bed.read("test_prices.py").contains("rentner"), "{task}");
    }
}

#[tokio::test(start_paused = true)]
async fn named_data_file_that_keeps_the_old_value_is_told() {
    let task = "Rename the tariff `senior` to `rentner` everywhere, also in the tests and in data/list.csv.";
    let told = "data/list.csv still contains `senior`";
    let (_, events) = run(task, false).await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    assert!(headline.contains(told), "{headline}");
    let (_, events) = run(task, true).await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::AsBefore, "{headline}");
    let unnamed = "Rename the tariff `senior` to `rentner` everywhere, also in the tests.";
    let (_, events) = run(unnamed, false).await;
    assert!(!ending(&events).1.contains(told), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn failing_test_whose_error_the_rename_changed_is_told() {
    let task = "Rename the tariff senior to rentner, also in the tests.";
    let (_, events) = run(task, false).await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let told = "test_store.py::test_data now fails with KeyError: 'senior' at prices.py:5";
    assert!(headline.contains(told), "{headline}");
    assert!(!headline.contains("no part of the task"), "{headline}");
    let (_, events) = run(task, true).await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::AsBefore, "{headline}");
    assert!(headline.contains("no part of the task"), "{headline}");
}
