//! Changes of a signature that is used in a dozen files: by calls, overrides and renamed imports.
//! Exactly the owners of the broken uses are started.

use std::collections::{BTreeMap, BTreeSet};

use super::bed::*;
use crate::*;

const FEES: &str = "def late_fee(days):\n    return days\n\n\n\
    class Rule:\n    def fee(self, days):\n        return late_fee(days)\n\n    def name(self):\n        return 'rule'\n";

/// Returns a file of callers with this import and this call.
fn callers(import: &str, call: &str) -> String {
    format!(
        "{import}\n\n\ndef total(days):\n    first = {call}(days)\n    return first + {call}(2)\n\n\n\
         def single(days):\n    return {call}(days=days)\n\n\n\
         def given(days):\n    return {call}(days, rate=3) + {call}(rate=1, days=2)\n"
    )
}

/// Returns a file with a subclass that overrides `fee`, a call on the subclass, and calls on the
/// base class.
fn heirs(class: &str) -> String {
    format!(
        "from fees import Rule\n\n\nclass {class}(Rule):\n    def fee(self, days):\n        return 2 * days\n\n    \
         def name(self):\n        return '{class}'\n\n\n\
         class Loose{class}(Rule):\n    def fee(self, *args, **options):\n        return 0\n\n\n\
         def by_type(rule: Rule):\n    return rule.fee(1) + rule.fee(2)\n\n\n\
         def of_heir():\n    return {class}().fee(7)\n\n\n\
         def fits(rule: Rule):\n    return rule.fee(1, rate=2) + len(rule.name())\n"
    )
}

fn project() -> Vec<(String, String)> {
    let mut files = vec![("fees.py".to_owned(), FEES.to_owned())];
    for at in 0..4 {
        files.push((
            format!("plain{at}.py"),
            callers("from fees import late_fee", "late_fee"),
        ));
    }
    for at in 0..2 {
        files.push((
            format!("alias{at}.py"),
            callers("from fees import late_fee as cost", "cost"),
        ));
    }
    for at in 0..2 {
        files.push((
            format!("module{at}.py"),
            callers("import fees as f", "f.late_fee"),
        ));
    }
    for (at, class) in ["Night", "Student", "Abroad", "Summer"].iter().enumerate() {
        files.push((format!("heir{at}.py"), heirs(class)));
    }
    files
}

/// Returns the test results: `t1` fails if any line calls a changed function without the new
/// argument.
fn wrong_calls(all: &str) -> Vec<(String, String)> {
    let wider =
        all.contains("def late_fee(days, *, rate)") && all.contains("def fee(self, days, *, rate)");
    let calls = ["late_fee(", "cost(", ".fee("];
    let is_call =
        |line: &&str| calls.iter().any(|call| line.contains(call)) && !line.contains("def ");
    let per_line = |line: &str| {
        calls
            .iter()
            .map(|call| line.matches(call).count())
            .max()
            .unwrap_or(0)
    };
    let lacks = |line: &&str| line.matches("rate").count() < per_line(line);
    let lines = all.lines().filter(is_call);
    match wider {
        true if lines.clone().any(|line| lacks(&line)) => {
            let line = lines.clone().find(lacks).unwrap_or_default();
            vec![("t1".to_owned(), format!("TypeError: {line}"))]
        }
        true | false => Vec::new(),
    }
}

/// Scripts the reply of each owner: its source, with the new argument in every call that does not
/// pass it yet.
fn script(files: &[(String, String)], model: Scripted) -> Scripted {
    let mut model = model
        .on(
            "agent fees.py::late_fee",
            [whole(
                "def late_fee(days, *, rate):\n    return days * rate\n",
            )],
        )
        .on(
            "agent fees.py::Rule.fee",
            [whole(
                "    def fee(self, days, *, rate):\n        return late_fee(days, rate=rate)\n",
            )],
        );
    let file_of = |name: &str| &files.iter().find(|(file, _)| file == name).expect(name).1;
    for (file, call) in [
        ("plain", "late_fee"),
        ("alias", "cost"),
        ("module", "f.late_fee"),
    ] {
        for (name, text) in files.iter().filter(|(name, _)| name.starts_with(file)) {
            assert!(text.contains(call));
            let total = format!(
                "def total(days):\n    first = {call}(days, rate=1)\n    return first + {call}(2, rate=1)\n"
            );
            let single = format!("def single(days):\n    return {call}(days=days, rate=1)\n");
            model = model
                .on(&format!("agent {name}::total"), [whole(&total)])
                .on(&format!("agent {name}::single"), [whole(&single)]);
        }
    }
    for (at, class) in ["Night", "Student", "Abroad", "Summer"].iter().enumerate() {
        let name = format!("heir{at}.py");
        assert!(file_of(&name).contains(class));
        let fee = "    def fee(self, days, *, rate):\n        return 2 * days * rate\n";
        let by_type =
            "def by_type(rule: Rule):\n    return rule.fee(1, rate=1) + rule.fee(2, rate=1)\n";
        let of_heir = format!("def of_heir():\n    return {class}().fee(7, rate=1)\n");
        model = model
            .on(&format!("agent {name}::{class}.fee"), [whole(fee)])
            .on(&format!("agent {name}::by_type"), [whole(by_type)])
            .on(&format!("agent {name}::of_heir"), [whole(&of_heir)]);
    }
    model
}

fn bed(files: &[(String, String)], model: Scripted) -> Bed {
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    Bed::new(&files, model).with(|task| {
        task.limits.agents = 100;
        task.limits.calls = 200;
        task.limits.messages = 200;
        task.limits.tokens = starling_core::Tokens(10_000_000);
    })
}

/// Returns the owners that were started by a follow-up (a change of a symbol that they use). For
/// each start, returns the broken lines and the depth in the chain of follow-ups.
fn followed(events: &[Event]) -> BTreeMap<String, Vec<(Vec<u32>, u32)>> {
    let mut found: BTreeMap<String, Vec<(Vec<u32>, u32)>> = BTreeMap::new();
    for (owner, cause) in woken(events) {
        if let Cause::FollowUp { lines, wave, .. } = cause {
            found.entry(owner).or_default().push((lines, wave));
        }
    }
    found
}

fn missed(events: &[Event]) -> usize {
    let missed = |event: &&Event| matches!(event, Event::FollowUpMissed { .. });
    events.iter().filter(missed).count()
}

#[tokio::test(start_paused = true)]
async fn changed_signature_starts_exactly_the_owners_of_the_broken_calls_in_twelve_files() {
    let files = project();
    assert_eq!(files.len() - 1, 12);
    let sites: usize = files
        .iter()
        .map(|(_, text)| {
            text.matches("ate_fee(").count()
                + text.matches("cost(").count()
                + text.matches(".fee(").count()
        })
        .sum();
    assert!(sites > 40, "{sites}");
    let model = script(&files, Scripted::native());
    let mut bed = bed(&files, model)
        .begin(&["fees.py::late_fee", "fees.py::Rule.fee"])
        .tests(wrong_calls);
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for (name, _) in files.iter().skip(1) {
        match name
            .strip_prefix("heir")
            .and_then(|rest| rest.strip_suffix(".py"))
        {
            Some(at) => {
                let class = ["Night", "Student", "Abroad", "Summer"][at.parse::<usize>().unwrap()];
                let parts = [format!("{class}.fee"), "by_type".into(), "of_heir".into()];
                expected.extend(parts.map(|part| format!("{name}::{part}")));
            }
            None => expected.extend(["total", "single"].map(|part| format!("{name}::{part}"))),
        }
    }
    // `Rule.fee` calls `late_fee`. Its owner is started for the change of `late_fee` while its own
    // change waits.
    expected.insert("fees.py::Rule.fee".to_owned());
    let followed = followed(&events);
    let owners: BTreeSet<String> = followed.keys().cloned().collect();
    assert_eq!(owners, expected);
    assert!(
        followed.values().all(|requests| requests.len() == 1),
        "{followed:#?}"
    );
    assert_eq!(
        followed["plain0.py::total"],
        [(vec![5, 6], 1)],
        "two sites, one request"
    );
    let of_override = followed["heir0.py::Night.fee"][0].1;
    assert_eq!(of_override, 2, "after that of `Rule.fee`");
    assert_eq!(
        followed["heir0.py::of_heir"][0].1,
        of_override + 1,
        "what an override brings on"
    );
    assert!(followed.values().flatten().all(|(_, wave)| *wave <= 3));
    assert_eq!(missed(&events), 0);
    let texts: String = files.iter().map(|(name, _)| bed.read(name)).collect();
    assert_eq!(wrong_calls(&texts), []);
    let prompt = &bed.model.prompts("agent heir0.py::Night.fee")[0];
    assert!(
        prompt.contains("Yours overrides it, so it must take the same calls."),
        "{prompt}"
    );
}

#[tokio::test(start_paused = true)]
async fn renamed_function_starts_only_the_owners_of_references_to_that_function() {
    let used = "from fees import late_fee\n\n\ndef one(x):\n    return late_fee(x)\n\n\ndef two():\n    return map(late_fee, [1])\n\n\n\
                def other(late):\n    return late.late_fee(1)\n";
    let unrelated = "def late_fee(x):\n    return x\n\n\ndef use():\n    return late_fee(1)\n";
    let mut files: Vec<(String, String)> = vec![(
        "fees.py".into(),
        "def late_fee(days):\n    return days\n".into(),
    )];
    files.extend((0..12).map(|at| (format!("m{at}.py"), used.to_owned())));
    files.push(("own.py".into(), unrelated.into()));
    let rename = whole("def overdue_fee(days):\n    return days\n");
    let model = Scripted::native()
        .on("agent fees.py::late_fee", [rename])
        .always("agent", finish("nothing"));
    let mut bed = bed(&files, model).begin(&["fees.py::late_fee"]);
    let events = bed.run().await;
    let owners: BTreeSet<String> = followed(&events).into_keys().collect();
    let told = owners.len();
    let not_told: usize = events
        .iter()
        .map(|event| match event {
            Event::FollowUpMissed { owners, .. } => owners.len(),
            _ => 0,
        })
        .sum();
    // Each of the 12 files has three owners to start: of the import, and of two functions. One
    // change starts at most 24 owners; the other 12 are reported.
    assert_eq!((told, not_told), (24, 12), "{events:#?}");
    assert!(
        owners.contains("m0.py::")
            && owners.contains("m0.py::one")
            && owners.contains("m0.py::two")
    );
    assert!(
        !owners
            .iter()
            .any(|owner| owner.contains("other") || owner.starts_with("own.py")),
        "{owners:?}"
    );
}

/// Each owner that is started changes the signature of its own function, which starts the owner of
/// the next function in the chain.
#[tokio::test(start_paused = true)]
async fn chain_of_follow_up_changes_stops_at_its_depth_limit() {
    let chain: String = (1..8)
        .map(|at| format!("\n\ndef f{at}(x):\n    return f{}(x)\n", at - 1))
        .collect();
    let text = format!("def f0(x):\n    return x\n{chain}");
    let mut model = Scripted::native();
    for at in 0..8 {
        let body = match at {
            0 => "x + y".to_owned(),
            at => format!("f{}(x, y)", at - 1),
        };
        let source = format!("def f{at}(x, y):\n    return {body}\n");
        model = model.on(&format!("agent a.py::f{at}"), [whole(&source)]);
    }
    let mut bed = Bed::new(&[("a.py", &text)], model).begin(&["a.py::f0"]);
    let events = bed.run().await;
    let followed = followed(&events);
    let owners: Vec<&str> = followed.keys().map(String::as_str).collect();
    assert_eq!(owners, ["a.py::f1", "a.py::f2", "a.py::f3"]);
    let why = events.iter().find_map(|event| match event {
        Event::FollowUpMissed { owners, why, .. } => Some((owners[0].name.clone(), why.clone())),
        _ => None,
    });
    assert_eq!(
        why,
        Some(("f4".into(), "follow-ups end after 3 rounds".into()))
    );
}
