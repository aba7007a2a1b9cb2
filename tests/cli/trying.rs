//! Code that is tried in the real sandbox: the example of the task, and by agents.

use serde_json::{Value, json};

use super::project::{CommandResult, TestProject, exchange};

const CODE: &str = "def f(x):\n    return x + 1\n";

const FIXED: &str = "def f(x):\n    return str(x) + '1'\n";

const TASK: &str = "Fix `f`:\n```python\nf('a')\n```\n";

/// Runs the task with a scout and an agent that try code.
fn run(bed: &TestProject, options: &[&str]) -> CommandResult {
    bed.write("project/work.py", CODE);
    let test = "import unittest\n\nimport work\n\n\nclass T(unittest.TestCase):\n    \
                def test_f(self):\n        self.assertIn('1', str(work.f(0)))\n";
    bed.write("project/test_work.py", test);
    let tried = json!({"python": "import os\nfrom work import f\nf(len(os.listdir('.')) * 0)"});
    let before = json!({"command": "cat .env; ls .git; python -c 'import work; print(work.f(4))'"});
    let picked = json!({"symbols": [{"symbol": "work.py::f", "why": "recorded"}]});
    let change = json!({"reason": "r", "source": FIXED});
    let lines = [
        exchange("scout", "scout", 0, "try", &tried),
        exchange("scout", "scout", 1, "wake", &picked),
        exchange("agent work.py::f", "agent", 0, "try", &before),
        exchange("agent work.py::f", "agent", 1, "propose", &change),
    ];
    let tape = bed.write("tape.jsonl", &lines.join("\n"));
    let model = format!("replay:{}", tape.display());
    let mut args = vec!["run", "--json", "--approve", "auto", "--model", &model];
    args.extend(options);
    args.push(TASK);
    bed.say(&args)
}

/// Returns who tried code, and the outcomes.
fn tries(said: &CommandResult) -> Vec<(Value, String)> {
    let events = said.events().into_iter();
    let used = events.filter(|one| one["event"]["tool"] == "try");
    let tried = used.map(|one| {
        let outcome = one["event"]["outcome"].as_str().unwrap_or_default();
        (one["event"]["agent"].clone(), outcome.to_owned())
    });
    tried.collect()
}

#[test]
fn example_of_the_task_and_code_of_agents_are_tried_in_the_sandbox() {
    let bed = TestProject::new();
    bed.write("project/.env", "API_TOKEN=q9w8e7r6t5\n");
    let said = run(&bed, &[]);
    assert_eq!(bed.work(), FIXED, "{said:?}");
    let tried = tries(&said);
    let [example, scout, agent] = &tried[..] else {
        panic!("{said:?}")
    };
    assert_eq!(example.0, "starling");
    assert!(example.1.starts_with("TypeError: "), "{tried:?}");
    assert_eq!(scout.0, "scout");
    assert!(scout.1.starts_with("1 (exit status 0, "), "{tried:?}");
    assert!(agent.1.starts_with("5 (exit status 0, "), "{tried:?}");
    assert!(!said.out.contains("q9w8e7r6t5"), "{said:?}");

    let events = said.events();
    let checked = events
        .iter()
        .find(|one| one["event"]["event"] == "proposal_checked")
        .unwrap();
    let example = &checked["event"]["evidence"]["examples"][0];
    assert_eq!(example["code"], "from work import f; f('a')");
    assert!(
        example["before"]
            .as_str()
            .unwrap()
            .starts_with("TypeError: ")
    );
    assert_eq!(example["after"], "'a1'");
    let headline = &events.last().unwrap()["event"]["ending"]["headline"];
    assert!(
        headline.as_str().unwrap().ends_with(", after `'a1'`"),
        "{headline}"
    );
}

#[test]
fn setting_turns_the_examples_of_the_task_off() {
    let bed = TestProject::new();
    let said = run(&bed, &["-c", "run.try_examples=false"]);
    assert_eq!(bed.work(), FIXED, "{said:?}");
    let by: Vec<Value> = tries(&said).into_iter().map(|(agent, _)| agent).collect();
    assert_eq!(by, [json!("scout"), json!({"agent": "work.py::f"})]);
}
