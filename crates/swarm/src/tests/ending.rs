//! The headline at the end of a run, and whether the run counts as proven by tests.

use starling_core::Approval;
use std::time::Duration;

use serde_json::json;

use super::bed::*;
use crate::evidence::ids::WHOLE_RUN;
use crate::*;

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";

fn is(proof: Proof, headline: &str) -> (Proof, String) {
    (proof, headline.to_owned())
}

fn changes() -> Scripted {
    Scripted::native().always("agent", whole("def f(x):\n    return x + 1\n"))
}

fn bed(model: Scripted) -> Bed {
    Bed::new(&[("a.py", TWO)], model).begin(&["a.py::f"])
}

#[tokio::test(start_paused = true)]
async fn final_test_run_decides_whether_a_change_is_proven() {
    let events = bed(changes()).tests(mended_by_the_change).run().await;
    assert_eq!(ending(&events).0, Proof::Proven, "{:#?}", ending(&events).1);
    let events = bed(changes()).tests(|_| Vec::new()).run().await;
    let but = "Done, but no test was seen to fail without it; 2 tests pass";
    assert_eq!(ending(&events), is(Proof::Unproven, but));
    let events = bed(changes()).run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven);
    assert!(
        headline.starts_with("Done, untested: no test ran ("),
        "{headline}"
    );
    let still = |_: &str| vec![("test_g".to_owned(), "g is wrong".to_owned())];
    let events = bed(changes()).tests(still).run().await;
    assert_eq!(stop(&events), StopReason::Settled);
    assert_eq!(
        ending(&events),
        is(
            Proof::Unproven,
            "Done, but no test was seen to fail without it; 2 tests pass; 1 test fails: test_g (it \
             failed before)"
        )
    );
}

/// The tasks mention documentation, but the run changes code.
#[tokio::test(start_paused = true)]
async fn code_change_needs_a_test_even_if_the_task_mentions_documentation() {
    for task in [
        "f leaves out 1; its docstring promises both. Fix it.",
        "f leaves out 1. The docstring says that it is added.",
        "f needs a limit, as the README says",
        "Fix the typo in f.",
        "The docstring of f is wrong.",
    ] {
        let of = || {
            bed(changes())
                .tests(|_| Vec::new())
                .with(|it| it.text = task.to_owned())
        };
        let events = { of() }.run().await;
        let but = "Done, but no test was seen to fail without it; 2 tests pass";
        assert_eq!(ending(&events), is(Proof::Unproven, but), "{task}");
        let events = { of() }.with(|it| it.require_tests = true).run().await;
        assert_eq!(ending(&events).0, Proof::NotDone, "{task}");
    }
    let told = "def f(x):\n    \"\"\"The same.\"\"\"\n    return x\n";
    let model = Scripted::native().always("agent", whole(told));
    let events = { bed(model) }
        .tests(|_| Vec::new())
        .with(|it| it.text = "The docstring of f is wrong.".to_owned())
        .run()
        .await;
    let words = "Done: only comments and docstrings were changed; 2 tests pass";
    assert_eq!(ending(&events), is(Proof::NothingToProve, words));
}

/// Returns the failing tests: `test_f` fails until `f` returns `x + 1`.
fn mended_by_the_change(all: &str) -> Vec<(String, String)> {
    match all.contains("x + 1\n") {
        true => Vec::new(),
        false => vec![("test_f".to_owned(), "f is wrong".to_owned())],
    }
}

#[tokio::test(start_paused = true)]
async fn tests_that_time_out_before_and_after_the_change_leave_it_unproven() {
    let mut bed = bed(changes())
        .tests(|_| Vec::new())
        .with(|task| task.test_deadline = Duration::from_secs(6));
    let hangs = [Duration::from_secs(60); 4];
    bed.test_times.lock().unwrap().extend(hangs);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven);
    assert!(
        headline.starts_with("Done, untested: the tests timed out after "),
        "{headline}"
    );
}

#[tokio::test(start_paused = true)]
async fn run_with_nothing_to_change_is_not_reported_as_a_run_that_gave_up() {
    let model = || Scripted::native().on("agent a.py::f", [finish("f returns x already")]);
    let events = bed(model()).run().await;
    assert_eq!(
        ending(&events),
        is(
            Proof::NothingToProve,
            "Nothing to change: f returns x already"
        )
    );
    let asked = bed(model()).with(|task| task.text = "What does f return?".to_owned());
    let events = { asked }.run().await;
    assert_eq!(
        ending(&events),
        is(Proof::NothingToProve, "Answered; nothing was changed")
    );
    let red = |_: &str| vec![("test_f".to_owned(), "f is wrong".to_owned())];
    let mend = bed(Scripted::native().always("agent", finish("f returns x already")))
        .tests(red)
        .with(|task| task.text = "Make the tests pass.".to_owned());
    let events = { mend }.run().await;
    assert_eq!(ending(&events).0, Proof::NotDone, "the tests say otherwise");
    let red = |_: &str| vec![("(the test command)".to_owned(), "no".to_owned())];
    let fix = |task: &str| {
        let model = Scripted::native().always("agent", finish("f returns x already"));
        let task = task.to_owned();
        bed(model).tests(red).with(|it| it.text = task)
    };
    let (proof, headline) = ending(&fix("f is wrong by one. Fix it.").run().await);
    assert_eq!(proof, Proof::NotDone, "the command fails: {headline}");
    assert!(headline.contains(" still fails; f returns x"), "{headline}");
    let (proof, _) = ending(&fix("Mention f in README.md.").run().await);
    assert_eq!(proof, Proof::NothingToProve, "the task is not about tests");
    let events = bed(Scripted::native().always("agent", say("hm")))
        .run()
        .await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone);
    assert!(
        headline.starts_with("Not done: a.py::f gave up: "),
        "{headline}"
    );
}

#[tokio::test(start_paused = true)]
async fn limit_message_names_the_patch_file_with_the_reverted_changes() {
    let first = json!({"reason": "r", "source": "def f(x):\n    return x + 1\n", "more": true});
    let model = Scripted::native().on("agent a.py::f", [call("propose", first)]);
    let mut bed = bed(model).with(|task| task.limits.calls = 1);
    bed.task.patch = Some(bed.path("out.patch"));
    let events = bed.run().await;
    let patch = bed.path("out.patch");
    let expected = format!(
        "Stopped by the limit: 1 of 1 model calls; the changes were taken back and are kept in {}",
        patch.display()
    );
    assert_eq!(ending(&events), (Proof::NotDone, expected));
}

#[tokio::test(start_paused = true)]
async fn headline_of_a_cancelled_run_says_that_the_user_stopped_it() {
    let mut bed = bed(Scripted::native().always("agent", Line::Hang));
    let handle = bed.start();
    until(&handle, |event| matches!(event, Event::TurnStarted { .. })).await;
    handle.cancel();
    handle.finished().await;
    let expected = is(Proof::NotDone, "Stopped by you; nothing was changed");
    assert_eq!(ending(&handle.log.events()), expected);
}

#[test]
fn run_finished_event_without_an_ending_is_deserialized() {
    let spent = serde_json::to_value(Spent::default()).unwrap();
    let line = json!({
        "event": "run_finished", "stop_reason": {"reason": "settled"}, "applied": [], "diff": "",
        "spent": spent, "summary": "s", "tally": [],
    });
    let read: Event = serde_json::from_value(line).unwrap();
    assert!(
        matches!(read, Event::RunFinished { ending: None, .. }),
        "{read:?}"
    );
}

/// Configures a run that may apply only changes that a test proves.
fn strict(approval: Approval, bed: Bed) -> Bed {
    bed.with(|task| {
        task.require_tests = true;
        task.approval = approval;
    })
}

#[tokio::test(start_paused = true)]
async fn no_model_is_called_if_tests_are_required_and_none_exist() {
    let mut bed = strict(Approval::Auto, bed(changes()));
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone);
    assert!(
        headline.starts_with("Not done: tests are required, but none were found: "),
        "{headline}"
    );
    assert_eq!((bed.model.calls(), bed.read("a.py").as_str()), (0, TWO));
}

#[tokio::test(start_paused = true)]
async fn with_required_tests_an_unproven_change_is_not_applied_automatically() {
    let still = |_: &str| vec![("test_g".to_owned(), "g is wrong".to_owned())];
    let model = || changes().always("proxy", say("ACCEPT"));
    for approval in [Approval::Auto, Approval::Proxy] {
        let mut bed = strict(approval, bed(model()).tests(still));
        let events = bed.run().await;
        assert_eq!(ending(&events).0, Proof::NotDone, "{approval:?}");
        assert_eq!(bed.read("a.py"), TWO, "{approval:?}");
    }
    let mut hanging = strict(Approval::Auto, bed(model()).tests(|_| Vec::new()))
        .with(|task| task.test_deadline = Duration::from_secs(6));
    let hangs = [Duration::from_secs(60); 40];
    hanging.test_times.lock().unwrap().extend(hangs);
    let events = hanging.run().await;
    let applied = |event: &Event| matches!(event, Event::ProposalApplied { .. });
    assert!(!events.iter().any(applied), "{events:#?}");
    assert_eq!(ending(&events).0, Proof::NotDone);
}

#[tokio::test(start_paused = true)]
async fn with_required_tests_agents_are_asked_for_a_failing_test_if_none_fails() {
    let needs = "fails without it and passes with it";
    let passing = |_: &str| Vec::new();
    let told = async |approval: Approval, test: fn(&str) -> Vec<(String, String)>| {
        let mut bed = strict(approval, bed(changes()).tests(test));
        bed.run().await;
        bed.model.prompts("agent a.py::f")[0].contains(needs)
    };
    assert!(told(Approval::Auto, passing).await);
    for task in [
        "The error of a bad line in a catalogue gives a line number that is one too small.",
        "f(1) closes nothing. Close it in every case, and add a test.",
    ] {
        let mut bed = strict(Approval::Auto, bed(changes()).tests(passing))
            .with(|it| it.text = task.to_owned());
        bed.run().await;
        assert!(
            bed.model.prompts("agent a.py::f")[0].contains(needs),
            "{task}"
        );
    }
    // The prompt does not ask for a test if one fails already, or if a person may accept an
    // unproven change.
    assert!(!told(Approval::Auto, mended_by_the_change).await);
    assert!(!told(Approval::Ask, passing).await);
}

#[tokio::test(start_paused = true)]
async fn with_required_tests_proven_changes_are_applied_and_a_person_may_accept_unproven_ones() {
    let mut proven = strict(Approval::Auto, bed(changes()).tests(mended_by_the_change));
    let events = proven.run().await;
    assert_eq!(ending(&events).0, Proof::Proven);
    assert!(proven.read("a.py").contains("x + 1"));
    let mut asked = strict(Approval::Ask, bed(changes()));
    let events = asked.run().await;
    assert_eq!(ending(&events).0, Proof::Unproven);
    assert!(asked.read("a.py").contains("x + 1"));
}

#[tokio::test(start_paused = true)]
async fn tests_that_do_not_cover_a_change_do_not_prove_it() {
    let test = "from a import f\n\n\ndef test_f():\n    assert f(1)\n";
    let untested = |change: &str| {
        let name = if change.starts_with("def g") {
            "a.py::g"
        } else {
            "deploy.sh::"
        };
        let model = Scripted::native()
            .always("agent", whole(change))
            .always("proxy", say("ACCEPT"));
        let files = [
            ("a.py", TWO),
            ("test_a.py", test),
            ("deploy.sh", "echo hi\n"),
        ];
        let mut bed = Bed::new(&files, model).begin(&[name]).tests(|_| Vec::new());
        bed.lists = true;
        let headline = format!("Done, but no test reaches {name}; 1 test passes");
        (bed, headline)
    };
    for change in ["def g(x):\n    return 0\n", "echo bye\n"] {
        let (mut bed, headline) = untested(change);
        let events = bed.run().await;
        assert_eq!(ending(&events), is(Proof::Unproven, &headline));
        for approval in [Approval::Auto, Approval::Proxy] {
            let (bed, _) = untested(change);
            let mut bed = strict(approval, bed);
            let events = bed.run().await;
            assert_eq!(ending(&events).0, Proof::NotDone, "{approval:?}");
            let texts = (bed.read("a.py"), bed.read("deploy.sh"));
            assert_eq!(
                texts,
                (TWO.to_owned(), "echo hi\n".to_owned()),
                "{events:#?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn run_whose_main_change_was_refused_is_unproven() {
    let red = |all: &str| match all.contains("return 0") {
        true => vec![("test_g".to_owned(), "g is wrong".to_owned())],
        false => Vec::new(),
    };
    let model = Scripted::native()
        .on(
            "agent a.py::g",
            [whole("def g(x):\n    return 0\n"), finish("done")],
        )
        .on("agent README.md", [whole("# Rates\n\nEight.\n")]);
    let files = [("a.py", TWO), ("README.md", "# Rates\n")];
    let mut bed = Bed::new(&files, model)
        .begin(&["a.py::g", "README.md::"])
        .tests(red);
    let events = bed.run().await;
    assert!(bed.read("README.md").contains("Eight"), "{events:#?}");
    assert_eq!(bed.read("a.py"), TWO);
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let expected = "Done, but 1 proposal was refused: a.py::g (tests that passed before fail with it: test_g); ";
    assert!(headline.starts_with(expected), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn test_command_that_runs_no_test_leaves_the_change_unproven() {
    let blind = || {
        let mut bed = bed(changes()).tests(|_| Vec::new());
        bed.lists = true;
        bed
    };
    let events = blind().run().await;
    assert_eq!(stop(&events), StopReason::Settled);
    let expected = is(
        Proof::Unproven,
        "Done, untested: the test command ran no test that Starling can see (its exit status was 0)",
    );
    assert_eq!(ending(&events), expected);
    let mut required = strict(Approval::Auto, blind());
    let events = required.run().await;
    assert_eq!(required.read("a.py"), TWO, "{events:#?}");
    assert_eq!(ending(&events).0, Proof::NotDone);
}

#[tokio::test(start_paused = true)]
async fn test_command_that_failed_before_and_passes_after_proves_the_change() {
    let red = |all: &str| match all.contains("x + 1") {
        true => Vec::new(),
        false => vec![(WHOLE_RUN.to_owned(), "make: *** [check] Error 1".to_owned())],
    };
    for strictly in [false, true] {
        let mut bed = bed(changes()).tests(red);
        bed.lists = true;
        let mut bed = match strictly {
            true => strict(Approval::Auto, bed),
            false => bed,
        };
        let events = bed.run().await;
        let expected = is(
            Proof::Proven,
            "Done and proven: `fake tests` failed before and passes now",
        );
        assert_eq!(ending(&events), expected, "{events:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn with_required_tests_a_documentation_change_needs_no_test() {
    let model = Scripted::native().always("agent", whole("# Rates\n\nEight per cent.\n"));
    let files = [("a.py", TWO), ("README.md", "# Rates\n")];
    let bed = Bed::new(&files, model).begin(&["README.md::"]);
    let mut bed = strict(Approval::Auto, bed.tests(|_| Vec::new()));
    let hangs = [Duration::from_secs(600); 40];
    bed.test_times.lock().unwrap().extend(hangs);
    let events = bed.run().await;
    assert_eq!(ending(&events).0, Proof::NothingToProve, "{events:#?}");
    assert!(bed.read("README.md").contains("Eight per cent"));
}

/// The run changes `f` and `g`. The failing test covers only `f`.
#[tokio::test(start_paused = true)]
async fn each_changed_function_needs_a_test_that_fails_without_its_change() {
    let two = |red_without_g: bool| {
        let judge = move |all: &str| {
            let is_done = all.contains("x + 1\n\n") && (!red_without_g || all.contains("+ 2"));
            match is_done {
                true => vec![("test_f".to_owned(), PASSES.to_owned())],
                false => vec![("test_f".to_owned(), "f is wrong".to_owned())],
            }
        };
        let model = Scripted::native()
            .on("agent a.py::f", [whole("def f(x):\n    return x + 1\n")])
            .on("agent a.py::g", [whole("def g(x):\n    return f(x) + 2\n")])
            .always("agent", finish("done"));
        Bed::new(&[("a.py", TWO)], model)
            .begin(&["a.py::f", "a.py::g"])
            .tests(judge)
            .with(|it| it.text = "Add 1 in f and in g".to_owned())
    };
    let events = two(false).run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let but = "Done, but no test fails without the change of a.py::g; ";
    assert!(headline.starts_with(but), "{headline}");
    let events = two(true).run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Proven, "{headline}");
}

const STORE: &str = "def load(x):\n    return keep(x)\n\n\ndef keep(x):\n    return None\n";
const STORE_TESTS: &str = "import main\n\n\ndef test_pay():\n    assert main.list('unpaid') == []\n\n\n\
    def test_round():\n    assert main.cents(2.675) == 2.68\n\n\ndef test_total():\n    assert main.list('unpaid sum') == 3\n";

/// The run fixes one test that fits its task, and others keep failing.
#[tokio::test(start_paused = true)]
async fn tests_that_have_nothing_to_do_with_the_task_leave_it_proven() {
    for (others, expected) in [
        (&["test_store.py::test_round"][..], Proof::Proven),
        // This test speaks of the same as the task.
        (&["test_store.py::test_total"], Proof::Unproven),
        (
            &["test_store.py::test_round", "test_store.py::test_total"],
            Proof::Unproven,
        ),
    ] {
        let model = Scripted::native()
            .on(
                "agent store.py::keep",
                [whole("def keep(x):\n    return x\n")],
            )
            .always("agent", finish("nothing"));
        let files = [("store.py", STORE), ("test_store.py", STORE_TESTS)];
        let mut bed = Bed::new(&files, model)
            .begin(&["store.py::keep"])
            .tests(move |all| {
                let mut failing: Vec<&str> = others.to_vec();
                if all.contains("return None") {
                    failing.push("test_store.py::test_pay");
                }
                let message = "AssertionError: no".to_owned();
                failing
                    .into_iter()
                    .map(|id| (id.to_owned(), message.clone()))
                    .collect()
            })
            .with(|it| it.text = "A paid invoice is unpaid again after restart. Fix it".into());
        let (proof, headline) = ending(&bed.run().await);
        assert_eq!(proof, expected, "{headline}");
        if expected == Proof::Proven {
            assert!(headline.starts_with("Done and proven: "), "{headline}");
            assert!(headline.contains("no part of the task"), "{headline}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn run_that_does_not_create_the_requested_file_is_not_done() {
    let task = "Add data/lager.yaml: a lager of 25 litres";
    let missing = "the task asks for `data/lager.yaml`, and it does not exist";
    let model = Scripted::native()
        .on("scout", [wake(&["data/lager.yaml::"])])
        .always("agent", finish("Nothing more is to be changed."));
    let mut bed = Bed::new(&[("a.py", "def f(x):\n    return x\n")], model)
        .with(|own| own.text = task.to_owned());
    let events = bed.run().await;
    let headline = format!("Not done: {missing}; Nothing more is to be changed.");
    assert_eq!(ending(&events), is(Proof::NotDone, &headline));

    // Another change does not make up for the file.
    let model = Scripted::native()
        .on("scout", [wake(&["a.py::f"])])
        .on("agent a.py::f", [whole("def f(x):\n    return 1\n")])
        .always("agent", finish("done"));
    let mut bed = Bed::new(&[("a.py", "def f(x):\n    return x\n")], model)
        .with(|own| own.text = task.to_owned());
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::NotDone, "{headline}");
    assert!(headline.contains(missing), "{headline}");
    assert!(bed.read("a.py").contains("return x"));

    let model = Scripted::native()
        .on("scout", [wake(&["data/lager.yaml::"])])
        .on("agent data/lager.yaml::", [whole("name: Hell\n")])
        .always("agent", finish("done"));
    let mut bed = Bed::new(&[("a.py", "def f(x):\n    return x\n")], model)
        .with(|own| own.text = task.to_owned());
    let events = bed.run().await;
    assert_eq!(bed.read("data/lager.yaml"), "name: Hell\n", "{events:#?}");
    assert!(stop(&events).is_settled(), "{events:#?}");
}
