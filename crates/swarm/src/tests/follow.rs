//! Follow-ups: a changed contract (such as a signature) starts the agents that own the code that it
//! can break.

use serde_json::json;
use starling_core::Approval;

use super::bed::*;
use crate::*;

const FILES: [(&str, &str); 2] = [
    (
        "a.py",
        "def fee(x):\n    return x\n\n\ndef g(x):\n    fee(x)\n    return fee(x) + 1\n\n\ndef h(x):\n    return x\n",
    ),
    (
        "test_a.py",
        "from a import fee\n\n\ndef test_f():\n    assert fee(1) == 1\n",
    ),
];

fn wider() -> Line {
    whole("def fee(x, y):\n    return x + y\n")
}

fn follow_ups(events: &[Event]) -> Vec<(String, Vec<u32>)> {
    let follow_up = |(agent, cause)| match cause {
        Cause::FollowUp { lines, .. } => Some((agent, lines)),
        _ => None,
    };
    woken(events).into_iter().filter_map(follow_up).collect()
}

/// Returns the number of owners that were not notified, and why.
fn missed(events: &[Event]) -> Vec<(usize, String)> {
    let missed = |event: &Event| match event {
        Event::FollowUpMissed { owners, why, .. } => Some((owners.len(), why.clone())),
        _ => None,
    };
    events.iter().filter_map(missed).collect()
}

#[tokio::test(start_paused = true)]
async fn callers_of_a_changed_contract_are_notified_once_and_tests_are_not() {
    let model = Scripted::native().on("agent a.py::fee", [wider()]).on(
        "agent a.py::g",
        [whole("def g(x):\n    fee(x, 0)\n    return fee(x, 1)\n")],
    );
    let mut bed = Bed::new(&FILES, model)
        .begin(&["a.py::fee"])
        .with(|task| task.approval = Approval::Ask);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(follow_ups(&events), [("a.py::g".to_owned(), vec![6, 7])]);
    assert!(bed.read("a.py").contains("return fee(x, 1)"));
    let prompt = &bed.model.prompts("agent a.py::g")[0];
    assert!(
        prompt.contains("The contract of a.py::fee has changed: fee: parameter \"y\""),
        "{prompt}"
    );
    assert!(prompt.contains("It is now: def fee(x, y)"), "{prompt}");
}

#[tokio::test(start_paused = true)]
async fn compatible_contract_change_notifies_no_caller() {
    let model = Scripted::native().on(
        "agent a.py::fee",
        [whole("def fee(x, y=0):\n    return x + y\n")],
    );
    let mut bed = Bed::new(&FILES, model).begin(&["a.py::fee"]);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(woken(&events).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn review_lists_the_callers_that_need_a_follow_up_change() {
    let model = Scripted::native()
        .on("agent a.py::fee", [wider()])
        .on("agent a.py::g", [finish("later")]);
    let mut bed = Bed::new(&FILES, model)
        .begin(&["a.py::fee"])
        .with(|task| task.approval = Approval::Ask);
    bed.run().await;
    let seen = bed.approver.seen.lock().unwrap();
    assert!(
        seen[0].evidence.contains("callers to follow up: a.py::g\n"),
        "{}",
        seen[0].evidence
    );
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_class_is_notified_of_the_methods_that_call_a_changed_function() {
    let text = "def fee(x):\n    return x\n\n\nclass C:\n    def m(self):\n        return fee(1)\n\n    def n(self):\n        return fee(2)\n";
    let model = Scripted::native().on("agent a.py::fee", [wider()]).on(
        "agent a.py::C",
        [finish("nothing"), finish("still nothing")],
    );
    let mut bed = Bed::new(&[("a.py", text)], model).begin(&["a.py::C", "a.py::fee"]);
    let events = bed.run().await;
    assert_eq!(follow_ups(&events), [("a.py::C".to_owned(), vec![7, 10])]);
}

#[tokio::test(start_paused = true)]
async fn at_most_24_owners_are_notified_of_one_contract_change() {
    let callers: String = (0..40)
        .map(|at| format!("\n\ndef c{at}():\n    return fee({at})\n"))
        .collect();
    let text = format!("def fee(x):\n    return x\n{callers}");
    let model = Scripted::native()
        .on("agent a.py::fee", [wider()])
        .always("agent a.py::c", finish("nothing"));
    let mut bed = Bed::new(&[("a.py", &text)], model)
        .begin(&["a.py::fee"])
        .with(|task| task.approval = Approval::Ask)
        .with(|task| task.limits.agents = 100);
    let events = bed.run().await;
    assert_eq!(follow_ups(&events).len(), 24);
    assert_eq!(stop(&events), StopReason::Settled);
    let [(owners, why)] = &missed(&events)[..] else {
        panic!("{:?}", missed(&events));
    };
    assert_eq!(*owners, 16);
    assert!(why.contains("24 owners"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn callers_of_a_deleted_function_are_notified() {
    let delete = call("propose", json!({"reason": "r", "delete": ["a.py::fee"]}));
    let model = Scripted::native()
        .on("agent a.py::fee", [delete])
        .on("agent a.py::g", [whole("def g(x):\n    return x + 1\n")]);
    let mut bed = Bed::new(&FILES[..1], model).begin(&["a.py::fee"]);
    let events = bed.run().await;
    assert_eq!(follow_ups(&events).len(), 1, "{events:#?}");
    assert!(bed.model.prompts("agent a.py::g")[0].contains("It will be gone."));
    assert_eq!(stop(&events), StopReason::Settled);
    let text = bed.read("a.py");
    assert!(!text.contains("fee("), "{text}");
}

/// `item.label` reads the property of the base class as well, so it stays valid without the subclass;
/// `item.seeds` does not.
#[tokio::test(start_paused = true)]
async fn code_that_reads_a_member_of_a_base_class_is_not_notified_of_a_deleted_subclass() {
    let base = "class Bean:\n    @property\n    def label(self):\n        return 1\n";
    let own = "class Squash(Bean):\n    @property\n    def label(self):\n        return 2\n\n    @property\n    def seeds(self):\n        return 3\n";
    let reads = "def names(items):\n    return [item.label for item in items]\n\n\ndef counts(items):\n    return [item.seeds for item in items]\n";
    let text = format!("{base}\n\n{own}\n\n{reads}");
    let delete = json!({"reason": "r", "delete": ["a.py::Squash"]});
    let model = Scripted::native()
        .on("agent a.py::Squash", [call("propose", delete)])
        .on(
            "agent a.py::counts",
            [whole("def counts(items):\n    return []\n")],
        );
    let mut bed = Bed::new(&[("a.py", &text)], model).begin(&["a.py::Squash"]);
    let events = bed.run().await;
    assert!(!bed.read("a.py").contains("Squash"), "{events:#?}");
    let notified: Vec<String> = follow_ups(&events)
        .into_iter()
        .map(|(owner, _)| owner)
        .collect();
    assert_eq!(notified, ["a.py::counts"]);
}

#[tokio::test(start_paused = true)]
async fn callers_of_a_function_with_a_one_letter_name_are_notified() {
    let text = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x)\n";
    let model = Scripted::native()
        .on("agent a.py::f", [whole("def f(x, y):\n    return x\n")])
        .on("agent a.py::g", [finish("nothing")]);
    let mut bed = Bed::new(&[("a.py", text)], model).begin(&["a.py::f"]);
    let events = bed.run().await;
    assert_eq!(follow_ups(&events), [("a.py::g".to_owned(), vec![6])]);
}

#[tokio::test(start_paused = true)]
async fn callers_that_are_not_notified_because_of_the_budget_are_reported() {
    for (messages, agents) in [(0, 16), (60, 1)] {
        let model = Scripted::native().on("agent a.py::fee", [wider()]);
        let mut bed = Bed::new(&FILES, model)
            .begin(&["a.py::fee"])
            .with(|task| task.limits.messages = messages)
            .with(|task| task.limits.agents = agents);
        let events = bed.run().await;
        assert_eq!(follow_ups(&events), []);
        let expected = Event::FollowUpMissed {
            changed: "a.py::fee".parse().unwrap(),
            owners: vec!["a.py::g".parse().unwrap()],
            why: missed(&events)[0].1.clone(),
            told: false,
        };
        assert!(events.contains(&expected), "{events:#?}");
        assert!(missed(&events)[0].1.contains("budget"), "{events:#?}");
        let Some(Event::RunFinished { summary, .. }) = events.last() else {
            panic!("{events:#?}");
        };
        assert!(
            summary.ends_with("; 1 caller of a changed contract was not notified"),
            "{summary}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn callers_are_not_notified_again_when_a_contract_is_changed_back_and_forth() {
    let there = |more: bool| {
        let source = "def fee(x, y):\n    return x + y\n";
        call(
            "propose",
            json!({"reason": "r", "source": source, "more": more}),
        )
    };
    let back = call(
        "propose",
        json!({"reason": "r", "source": "def fee(x):\n    return x\n", "more": true}),
    );
    let model = Scripted::native()
        .on("agent a.py::fee", [there(true), back, there(false)])
        .always("agent a.py::g", finish("nothing"));
    let mut bed = Bed::new(&FILES, model)
        .begin(&["a.py::fee"])
        .with(|task| task.approval = Approval::Ask);
    let events = bed.run().await;
    // When the contract is changed back, the call is correct again without an update, so its owner
    // is not notified.
    assert_eq!(follow_ups(&events).len(), 1, "{events:#?}");
    let before = "they were notified, but did not change their code".to_owned();
    assert_eq!(missed(&events), [(1, before)]);
    let Some(Event::RunFinished { summary, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    let end = "; 1 caller of a changed contract was notified, but not updated";
    assert!(summary.ends_with(end), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn owner_that_changes_its_code_later_is_not_reported_as_one_that_did_not() {
    let there = |more: bool| {
        let source = "def fee(x, y):\n    return x + y\n";
        call(
            "propose",
            json!({"reason": "r", "source": source, "more": more}),
        )
    };
    let back = call(
        "propose",
        json!({"reason": "r", "source": "def fee(x):\n    return x\n", "more": true}),
    );
    let read = |symbol: &str| call("read", json!({"symbols": [symbol]}));
    let follows = || whole("def g(x):\n    fee(x, 0)\n    return fee(x, 1)\n");
    let late = [
        read("a.py::fee"),
        read("a.py::g"),
        read("a.py::h"),
        read("test_a.py::test_f"),
        follows(),
    ];
    let model = Scripted::native()
        .on("agent a.py::fee", [there(true), back, there(false)])
        .on("agent a.py::g", late);
    let mut bed = Bed::new(&FILES, model)
        .begin(&["a.py::fee"])
        .with(|task| task.approval = Approval::Ask);
    let events = bed.run().await;
    assert!(bed.read("a.py").contains("return fee(x, 1)"), "{events:#?}");
    assert_eq!(missed(&events), [], "{events:#?}");
    let Some(Event::RunFinished { summary, .. }) = events.last() else {
        panic!("{events:#?}");
    };
    assert!(!summary.contains("notified"), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn tests_that_call_a_function_are_notified_if_the_task_gives_it_another_signature() {
    let follows = || whole("def g(x):\n    fee(x, 0)\n    return fee(x, 1)\n");
    let tested = || whole("def test_f():\n    assert fee(1, 0) == 1\n");
    for (task, is_told) in [
        ("fee needs a required parameter `y`. Callers pass 0.", true),
        ("fee takes y as well. Update the tests.", true),
        ("Make fee better.", false),
    ] {
        for approval in [Approval::Auto, Approval::Ask] {
            let model = Scripted::native()
                .on("agent a.py::fee", [wider()])
                .on("agent a.py::g", [follows()])
                .on("agent test_a.py::test_f", [tested()])
                .always("agent", finish("nothing"));
            let mut bed = Bed::new(&FILES, model)
                .begin(&["a.py::fee"])
                .with(|it| it.text = task.to_owned())
                .with(|it| it.approval = approval);
            let events = bed.run().await;
            let mut told: Vec<String> = follow_ups(&events).into_iter().map(|(to, _)| to).collect();
            told.sort();
            let expected: &[&str] = match is_told {
                true => &["a.py::g", "test_a.py::test_f"],
                false => &["a.py::g"],
            };
            assert_eq!(told, expected, "{task}: {events:#?}");
            if is_told {
                assert!(bed.read("test_a.py").contains("fee(1, 0)"), "{events:#?}");
                assert!(bed.read("a.py").contains("def fee(x, y)"), "{events:#?}");
            }
        }
    }
}

/// Callers that already pass the new argument have nothing to do.
#[tokio::test(start_paused = true)]
async fn callers_that_already_match_the_new_contract_are_not_notified() {
    let text = "def fee(x):\n    return x\n\n\ndef g(x):\n    return fee(x, rate=1)\n\n\n\
                def h(x):\n    return fee(x) + fee(x, rate=1)\n\n\ndef k(x, o):\n    return fee(x, **o)\n";
    let model = Scripted::native()
        .on(
            "agent a.py::fee",
            [whole("def fee(x, *, rate):\n    return x\n")],
        )
        .on("agent a.py::h", [finish("nothing")])
        .on("agent a.py::k", [finish("nothing")]);
    let mut bed = Bed::new(&[("a.py", text)], model).begin(&["a.py::fee"]);
    let events = bed.run().await;
    let asked: Vec<String> = follow_ups(&events).into_iter().map(|(to, _)| to).collect();
    assert_eq!(asked, ["a.py::h", "a.py::k"]);
}

#[tokio::test(start_paused = true)]
async fn review_lists_the_callers_that_stay_valid() {
    let model = Scripted::native().on("agent a.py::fee", [whole("def fee(y):\n    return y\n")]);
    let mut bed = Bed::new(&FILES, model)
        .begin(&["a.py::fee"])
        .with(|task| task.approval = Approval::Ask);
    bed.run().await;
    let seen = bed.approver.seen.lock().unwrap();
    let told = "callers: 1, none needs to change (a.py::g)\n";
    assert!(seen[0].evidence.contains(told), "{}", seen[0].evidence);
}

/// A change that breaks no caller, such as a new exception, still lists the callers.
#[tokio::test(start_paused = true)]
async fn review_of_a_harmless_contract_change_lists_the_callers() {
    let test = (
        "test_a.py",
        "from a import fee\n\n\ndef test_fee():\n    fee(1)\n",
    );
    let alone = ("a.py", "def fee(x):\n    return x\n");
    let unused = [("a.py", alone.1)];
    for (files, told) in [
        (
            &[FILES[0], test][..],
            "callers: 1, none needs to change (a.py::g)\n",
        ),
        (
            &[alone, test][..],
            "callers: 1, none needs to change (test_a.py::test_fee)\n",
        ),
        (&unused[..], "callers: none\n"),
    ] {
        for source in [
            "def fee(x, y=0):\n    return x + y\n",
            "def fee(x):\n    if x < 0:\n        raise LookupError(x)\n    return x\n",
        ] {
            let model = Scripted::native().on("agent a.py::fee", [whole(source)]);
            let mut bed = Bed::new(files, model)
                .begin(&["a.py::fee"])
                .with(|task| task.approval = Approval::Ask);
            bed.run().await;
            let seen = bed.approver.seen.lock().unwrap();
            assert!(seen[0].evidence.contains(told), "{}", seen[0].evidence);
        }
    }
}

/// A function in a table has callers that are not known.
#[tokio::test(start_paused = true)]
async fn function_that_is_stored_as_a_value_has_unknown_callers() {
    let files = [
        ("a.py", "def fee(x, rate=1):\n    return x * rate\n"),
        (
            "b.py",
            "from a import fee\n\nTABLE = {\"fee\": fee}\n\n\ndef g(x):\n    return fee(x, 2)\n",
        ),
        (
            "test_a.py",
            "from a import fee\n\n\ndef test_f():\n    assert fee(1) == 1\n",
        ),
    ];
    let model = Scripted::native().on(
        "agent a.py::fee",
        [whole("def fee(x, rate):\n    return x * rate\n")],
    );
    let mut bed = Bed::new(&files, model)
        .begin(&["a.py::fee"])
        .with(|task| task.approval = Approval::Ask);
    let events = bed.run().await;
    let seen = bed.approver.seen.lock().unwrap();
    let told = "callers to follow up: only tests (1); still valid: b.py::g; may be called by code that \
                is not known, because it is stored or passed on at b.py:3\n";
    assert!(seen[0].evidence.contains(told), "{}", seen[0].evidence);
    let evidence = events.iter().find_map(|event| match event {
        Event::ProposalChecked { evidence, .. } => evidence.callers_without_owner(),
        _ => None,
    });
    let told = "1 test calls it as before; it may be called by code that is not known, because it is \
                stored or passed on at b.py:3";
    assert_eq!(evidence.as_deref(), Some(told));
}

/// A function moves to another module, and its caller imports it from the new module.
#[tokio::test(start_paused = true)]
async fn caller_that_imports_a_moved_function_from_its_new_module_is_not_notified() {
    let line = "def line(x):\n    return f\"- {x}\"\n";
    let user = "from text import line\n\n\ndef show(x):\n    print(line(x))\n\n\ndef other(x):\n    return line(x)\n";
    let hunks = json!([{"old": "from text import line", "new": "from render import line"}]);
    let delete = json!({"reason": "r", "delete": ["text.py::line"]});
    let model = Scripted::native()
        .on("agent render.py::", [whole(line), finish("done")])
        .on(
            "agent cli.py::",
            [call("propose", json!({"reason": "r", "hunks": hunks}))],
        )
        .on("agent text.py::line", [call("propose", delete)])
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(&[("text.py", line), ("cli.py", user)], model)
        .begin(&["render.py::", "cli.py::", "text.py::line"])
        .with(|task| task.approval = Approval::Ask);
    let events = bed.run().await;
    assert!(!bed.read("text.py").contains("def line"), "{events:#?}");
    assert!(bed.read("cli.py").contains("from render import line"));
    assert!(follow_ups(&events).is_empty(), "{events:#?}");
}

/// Code that reads a property gets the method instead of its value, without an error of its own.
const PROPERTY: [(&str, &str); 2] = [
    (
        "a.py",
        "class Catalogue:\n    @property\n    def visible(self):\n        return [1]\n",
    ),
    (
        "b.py",
        "from a import Catalogue\n\n\ndef up(catalogue: Catalogue):\n    return sorted(catalogue.visible)\n",
    ),
];

fn plain_method() -> Line {
    call(
        "propose",
        json!({"reason": "r", "source": "    def visible(self):\n        return [1]\n", "intended_losses": true}),
    )
}

#[tokio::test(start_paused = true)]
async fn code_that_reads_a_property_is_notified_when_it_becomes_a_method() {
    for follows in [true, false] {
        let up = match follows {
            true => {
                whole("def up(catalogue: Catalogue):\n    return sorted(catalogue.visible())\n")
            }
            false => finish("nothing"),
        };
        let model = Scripted::native()
            .on("agent a.py::Catalogue.visible", [plain_method()])
            .on("agent b.py::up", [up])
            .always("agent", finish("nothing"));
        let mut bed = Bed::new(&PROPERTY, model)
            .begin(&["a.py::Catalogue.visible"])
            .with(|it| it.text = "Refactor Catalogue.visible".to_owned())
            .with(|it| it.approval = Approval::Ask);
        let events = bed.run().await;
        assert_eq!(follow_ups(&events), [("b.py::up".to_owned(), vec![5])]);
        let (_, headline) = ending(&events);
        let told = "b.py:5: `Catalogue.visible` became a method and is read without a call";
        assert_eq!(headline.contains(told), !follows, "{headline}");
        let seen = bed.approver.seen.lock().unwrap();
        let evidence = &seen[0].evidence;
        assert!(
            evidence.contains("callers to follow up: b.py::up\n"),
            "{evidence}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn property_becomes_a_method_only_together_with_the_code_that_reads_it() {
    let model = Scripted::native()
        .on("agent a.py::Catalogue.visible", [plain_method()])
        .on(
            "agent b.py::up",
            [whole(
                "def up(catalogue: Catalogue):\n    return sorted(catalogue.visible())\n",
            )],
        )
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(&PROPERTY, model).begin(&["a.py::Catalogue.visible"]);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert!(!bed.read("a.py").contains("property"));
    assert!(bed.read("b.py").contains("visible()"), "{events:#?}");
}

/// The same code with a plain method instead of a property.
const METHOD: [(&str, &str); 2] = [
    (
        "a.py",
        "class Catalogue:\n    def visible(self):\n        return [1]\n",
    ),
    (
        "b.py",
        "from a import Catalogue\n\n\ndef up(catalogue: Catalogue):\n    return sorted(catalogue.visible())\n",
    ),
];

fn property() -> Line {
    let source = "    @property\n    def visible(self):\n        return [1]\n";
    call("propose", json!({"reason": "r", "source": source}))
}

#[tokio::test(start_paused = true)]
async fn code_that_calls_a_method_is_notified_when_it_becomes_a_property() {
    for follows in [true, false] {
        let up = match follows {
            true => whole("def up(catalogue: Catalogue):\n    return sorted(catalogue.visible)\n"),
            false => finish("nothing"),
        };
        let model = Scripted::native()
            .on("agent a.py::Catalogue.visible", [property()])
            .on("agent b.py::up", [up])
            .always("agent", finish("nothing"));
        let mut bed = Bed::new(&METHOD, model)
            .begin(&["a.py::Catalogue.visible"])
            .with(|it| it.text = "Refactor Catalogue.visible".to_owned())
            .with(|it| it.approval = Approval::Ask);
        let events = bed.run().await;
        assert_eq!(follow_ups(&events), [("b.py::up".to_owned(), vec![5])]);
        let (_, headline) = ending(&events);
        let told = "b.py:5: `Catalogue.visible` became a property and is called";
        assert_eq!(headline.contains(told), !follows, "{headline}");
    }
}

#[tokio::test(start_paused = true)]
async fn property_changes_only_if_the_code_that_uses_it_follows() {
    for (files, change, told) in [
        (
            PROPERTY,
            plain_method(),
            "became a method and is read without a call",
        ),
        (METHOD, property(), "became a property and is called"),
    ] {
        let model = Scripted::native()
            .on("agent a.py::Catalogue.visible", [change])
            .always("agent", finish("nothing to change"));
        let mut bed = Bed::new(&files, model)
            .begin(&["a.py::Catalogue.visible"])
            .with(|it| it.text = "Refactor Catalogue.visible".to_owned());
        let events = bed.run().await;
        assert!(!stop(&events).is_settled(), "{events:#?}");
        assert_eq!(bed.read("a.py"), files[0].1);
        assert_eq!(bed.read("b.py"), files[1].1);
        let (_, headline) = ending(&events);
        assert!(headline.contains(told), "{headline}");
    }
}

/// A subclass that overrides a property, and a subclass that inherits it, with code that reads the property of
/// the base class.
const OVERRIDDEN: [(&str, &str); 2] = [
    (
        "a.py",
        "class Catalogue:\n    @property\n    def visible(self):\n        return [1]\n\n\n\
         class Small(Catalogue):\n    @property\n    def visible(self):\n        return [2]\n\n\n\
         class Large(Catalogue):\n    size = 9\n",
    ),
    (
        "b.py",
        "from a import Catalogue\n\n\ndef up(catalogue: Catalogue):\n    return sorted(catalogue.visible)\n\n\n\
         def first():\n    return Catalogue().visible\n",
    ),
];

#[tokio::test(start_paused = true)]
async fn property_of_a_base_class_does_not_become_a_method_in_a_subclass_alone() {
    let large =
        "class Large(Catalogue):\n    size = 9\n\n    def visible(self):\n        return [3]\n";
    for (symbol, change) in [
        ("a.py::Small.visible", plain_method()),
        ("a.py::Large", whole(large)),
    ] {
        let model = Scripted::native()
            .on(&format!("agent {symbol}"), [change])
            .always("agent", finish("nothing to change"));
        let mut bed = Bed::new(&OVERRIDDEN, model)
            .begin(&[symbol])
            .with(|it| it.text = format!("Refactor {symbol}"));
        let events = bed.run().await;
        assert!(!stop(&events).is_settled(), "{events:#?}");
        assert_eq!(bed.read("a.py"), OVERRIDDEN[0].1);
        let (_, headline) = ending(&events);
        let told = "b.py:5: ";
        assert!(headline.contains(told), "{headline}");
        assert!(
            headline.contains("visible` became a method and may be read without a call"),
            "{headline}"
        );
        // An object of the base class itself does not have the method.
        assert!(!headline.contains("b.py:9"), "{headline}");
    }
}
