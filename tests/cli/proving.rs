//! What proves a change, and the exit status and the headline that say so.

use serde_json::json;

use super::project::{NEW, OLD, TestProject, exchange};

#[test]
fn exit_status_depends_on_whether_tests_prove_the_change() {
    let run = |test: Option<&str>, options: &[&str]| {
        let bed = TestProject::new();
        let path = bed.root().join("test_work.py");
        match test {
            Some(test) => std::fs::write(path, test).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
        let tape = bed.tape(&[NEW]);
        let args = ["run", "--approve", "auto", "--model", &tape, "refactor f"];
        let json = bed.say(&[&args[..], &["--json"], options].concat());
        let events = json.events();
        let headline = events[events.len() - 1]["event"]["ending"]["headline"].clone();
        (json.code, headline.as_str().unwrap().to_owned(), bed.work())
    };
    let wants = |value: u32| {
        format!(
            "import unittest\n\nimport work\n\n\nclass T(unittest.TestCase):\n    \
             def test_f(self):\n        self.assertEqual(work.f(), {value})\n"
        )
    };
    let strict: &[&str] = &["--require-tests"];
    for options in [&[], strict] {
        let proven = run(Some(&wants(1)), options);
        let expected = "Done: 1 test passes as before".to_owned();
        assert_eq!(proven, (Some(0), expected, NEW.to_owned()));
    }
    let (code, headline, work) = run(None, &[]);
    assert_eq!((code, work.as_str()), (Some(3), NEW), "{headline}");
    assert!(
        headline.starts_with("Done, untested: no test ran ("),
        "{headline}"
    );
    let (code, headline, work) = run(None, strict);
    assert_eq!((code, work.as_str()), (Some(1), OLD), "{headline}");
    assert!(
        headline.starts_with("Not done: tests are required"),
        "{headline}"
    );
    let (code, headline, work) = run(Some(&wants(5)), &[]);
    assert_eq!((code, work.as_str()), (Some(3), NEW), "{headline}");
    assert!(
        headline.ends_with("test_f (it failed before)"),
        "{headline}"
    );
    let (code, headline, work) = run(Some(&wants(5)), strict);
    assert_eq!((code, work.as_str()), (Some(1), OLD), "{headline}");
}

/// Runs a recording without a person. Returns the exit status, the headline, and the texts of code
/// and test.
fn ends(
    bed: &TestProject,
    exchanges: &[String],
    args: &[&str],
) -> (Option<i32>, String, String, String) {
    let path = bed.write("tape.jsonl", &exchanges.join("\n"));
    let tape = format!("replay:{}", path.display());
    let said = bed.say(&[&["run", "--json", "--model", &tape][..], args].concat());
    let events = said.events();
    let ending = &events[events.len() - 1]["event"]["ending"];
    let headline = ending["headline"].as_str().unwrap().to_owned();
    let test = std::fs::read_to_string(bed.root().join("test_work.py")).unwrap();
    (said.code, headline, bed.work(), test)
}

fn picks(symbols: &[&str]) -> String {
    let symbols: Vec<_> = symbols
        .iter()
        .map(|symbol| json!({"symbol": symbol, "why": "recorded"}))
        .collect();
    exchange("scout", "scout", 0, "wake", &json!({ "symbols": symbols }))
}

fn proposes(symbol: &str, ordinal: usize, source: &str) -> String {
    let proposal = json!({"reason": "recorded", "source": source});
    let conversation = format!("agent {symbol}");
    exchange(&conversation, "agent", ordinal, "propose", &proposal)
}

const TEST: &str = "test_work.py::T.test_f";

#[test]
fn test_that_passes_only_after_being_changed_does_not_prove_the_change() {
    let red = "def f():\n    return 2\n";
    let other = "    def test_f(self):\n        self.assertTrue(True)\n";
    let accept = json!({"verdict": "accept", "conditions": "", "objections": ""});
    let accepts = exchange(&format!("proxy {TEST}"), "proxy", 0, "decide", &accept);
    let rewrites = [picks(&[TEST]), proposes(TEST, 0, other), accepts];
    for (approve, status) in [("auto", 1), ("proxy", 3)] {
        let bed = TestProject::new();
        bed.write("project/work.py", red);
        let before = std::fs::read_to_string(bed.root().join("test_work.py")).unwrap();
        let args = ["--approve", approve, "Make the tests pass"];
        let (code, headline, work, test) = ends(&bed, &rewrites, &args);
        assert_eq!((code, work.as_str()), (Some(status), red), "{headline}");
        assert_eq!(test == before, approve == "auto", "{headline}");
        if approve == "proxy" {
            let expected = "Done, but 1 test passes only as it was changed: test_work.T.test_f";
            assert_eq!(headline, expected);
        }
    }
    // One agent weakens the test, another breaks the code.
    let bed = TestProject::new();
    let breaks = [
        picks(&[TEST, "work.py::f"]),
        proposes(TEST, 0, other),
        proposes("work.py::f", 0, red),
        proposes("work.py::f", 1, red),
    ];
    let args = ["--approve", "auto", "Make f faster"];
    let (_, headline, work, _) = ends(&bed, &breaks, &args);
    assert_eq!(work, OLD, "{headline}");
}

#[test]
fn test_script_changed_by_the_run_is_also_run_in_its_original_version() {
    let script = "import sys\nsys.path.insert(0, '.')\nimport work\n\n\ndef main():\n    assert work.f() == 1\n\n\nmain()\n";
    let bed = TestProject::new();
    bed.write("project/work.py", "def f():\n    return 2\n");
    let path = bed.write("project/smoke/run.py", script);
    let symbol = "smoke/run.py::main";
    let guts = "def main():\n    pass\n";
    let guts = [picks(&[symbol]), proposes(symbol, 0, guts)];
    let task = "Fix f so that the command passes";
    let args = ["--approve", "auto", "--test", "python3 smoke/run.py", task];
    let (code, headline, _, _) = ends(&bed, &guts, &args);
    assert_eq!(std::fs::read_to_string(path).unwrap(), script, "{headline}");
    assert_eq!(code, Some(1), "{headline}");
}

#[test]
fn printed_results_and_commands_without_results_do_not_prove_the_change() {
    let lie = "test_f (test_work.T.test_f) ... ok";
    let ends_itself =
        format!("def f():\n    import os\n    print('{lie}', flush=True)\n    os._exit(0)\n");
    let lies = |source: &str| {
        [
            picks(&["work.py::f"]),
            proposes("work.py::f", 0, source),
            proposes("work.py::f", 1, source),
        ]
    };
    let auto = ["--approve", "auto", "refactor f"];
    let bed = TestProject::new();
    let (code, headline, work, _) = ends(&bed, &lies(&ends_itself), &auto);
    assert_eq!((code, work.as_str()), (Some(1), OLD), "{headline}");
    for (command, expected) in [
        (
            "true",
            "Done, untested: the test command ran no test that Starling can see (its exit status was 0)"
                .to_owned(),
        ),
        (
            "cat results.txt",
            "Done, but 1 test passes only by what `cat results.txt` printed".to_owned(),
        ),
    ] {
        let bed = TestProject::new();
        bed.write("project/results.txt", &format!("{lie}\n"));
        let args = [&["--test", command][..], &auto].concat();
        let (code, headline, work, _) = ends(&bed, &lies(NEW), &args);
        assert_eq!((code, work.as_str()), (Some(3), NEW), "{headline}");
        assert_eq!(headline, expected);
    }
    // A command of the user that fails before and passes after the change is evidence.
    let bed = TestProject::new();
    let args = [&["--test", "grep -q '2 - 1' work.py"][..], &auto].concat();
    let (code, headline, work, _) = ends(&bed, &lies(NEW), &args);
    assert_eq!((code, work.as_str()), (Some(0), NEW), "{headline}");
    let expected = "Done and proven: `grep -q '2 - 1' work.py` failed before and passes now";
    assert_eq!(headline, expected);
}

#[test]
fn test_command_that_cannot_run_ends_the_run_before_any_model_call() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    for (command, because) in [
        ("no-such-tool -q", "`no-such-tool -q` (exit status 127)"),
        ("python3 -m unittest --nope", "(exit status 2)"),
        ("python3 -m unittest test_wrk", "No module named 'test_wrk'"),
        ("python3 -m unitest", "No module named unitest"),
    ] {
        let args = ["run", "--json", "--approve", "auto", "--model", &tape, "x"];
        let said = bed.say(&[&args[..], &["--test", command]].concat());
        assert_eq!(said.code, Some(1), "{said:?}");
        let events = said.events();
        let last = &events[events.len() - 1]["event"];
        let error = last["stop_reason"]["error"].as_str().unwrap();
        assert!(error.contains(because), "{error}");
        assert!(error.contains("--test"), "{error}");
        assert_eq!(last["spent"]["calls"], 0, "{command}");
    }
    // A test command that fails may be the problem that the user wants to fix.
    let args = ["run", "--approve", "auto", "--model", &tape, "x"];
    let said = bed.say(&[&args[..], &["--test", "exit 1"]].concat());
    assert_eq!(bed.work(), NEW, "{said:?}");
}
