//! Locations at which a rename leaves the old name: a class, an assignment, a string, a document.

use serde_json::json;
use starling_core::{Approval, ProposalView};

use super::bed::*;
use crate::*;

fn replaced(old: &str, new: &str) -> Line {
    let hunks = json!([{"old": old, "new": new}]);
    call("propose", json!({"reason": "r", "hunks": hunks}))
}

const CORE: &str =
    "class Unit:\n    reach = 1\n\n    def in_reach(self, far):\n        return far < self.reach\n";
const UNITS: &str = "from core import Unit\n\n\nclass Mage(Unit):\n    reach = 3\n\n\nclass Archer(Unit):\n    reach = 4\n";
const PLAY: &str = "from core import Unit\n\n\ndef play(far):\n    unit = Unit()\n    unit.reach = far\n    return unit\n";

/// Runs a rename of the attribute `reach`. `archer` and `play` say whether the class `Archer` and
/// the assignment in `play` are renamed as well.
async fn reach(task: &str, archer: bool, play: bool) -> (Bed, Vec<Event>) {
    let or_nothing = |follows: bool, line: Line| match follows {
        true => line,
        false => finish("nothing"),
    };
    let model = Scripted::native()
        .always(
            "agent core.py::Unit.in_reach",
            replaced("self.reach", "self.span"),
        )
        .always(
            "agent core.py::Unit",
            replaced("    reach = 1", "    span = 1"),
        )
        .always("agent units.py::Mage", replaced("reach = 3", "span = 3"))
        .always(
            "agent units.py::Archer",
            or_nothing(archer, replaced("reach = 4", "span = 4")),
        )
        .always(
            "agent play.py::play",
            or_nothing(play, replaced("unit.reach", "unit.span")),
        )
        .always("agent", finish("nothing"));
    let begin = [
        "core.py::Unit",
        "core.py::Unit.in_reach",
        "units.py::Mage",
        "units.py::Archer",
        "play.py::play",
    ];
    let files = [("core.py", CORE), ("units.py", UNITS), ("play.py", PLAY)];
    let mut bed = Bed::new(&files, model)
        .begin(&begin)
        .with(|it| it.text = task.to_owned());
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn attribute_rename_is_applied_to_all_classes_and_assignments_or_not_at_all() {
    for task in [
        "Rename `reach` to `span`",
        "Rename the class attribute reach to span",
        "Rename `Unit.reach` to `Unit.span`",
    ] {
        let (bed, events) = reach(task, true, true).await;
        assert_eq!(stop(&events), StopReason::Settled, "{task}: {events:#?}");
        let texts = ["core.py", "units.py", "play.py"].map(|file| bed.read(file));
        assert!(!texts.concat().contains("reach ="), "{texts:?}");
        for (archer, play, place) in [
            (
                false,
                true,
                "units.py:9: `reach` of units.py::Archer must be renamed together with this",
            ),
            (
                true,
                false,
                "play.py:6: `reach` of play.py::play must be renamed together with this",
            ),
        ] {
            let (bed, events) = reach(task, archer, play).await;
            let texts = ["core.py", "units.py", "play.py"].map(|file| bed.read(file));
            assert_eq!(texts, [CORE, UNITS, PLAY], "{task}: {events:#?}");
            let told = malformed(&events).join("\n");
            assert!(told.contains(place), "{task}: {told}");
            let (proof, headline) = ending(&events);
            assert_eq!(proof, Proof::NotDone, "{headline}");
            assert!(
                headline.contains(place.split(": ").next().unwrap()),
                "{headline}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn headline_names_the_attribute_use_that_an_incomplete_rename_left_unchanged() {
    let model = Scripted::native()
        .on("agent core.py::Unit", [
            call("propose", json!({"reason": "r", "hunks": [{"old": "reach = 1", "new": "span = 1"}], "insist": true})),
        ])
        .always("agent", finish("nothing"));
    let files = [
        ("core.py", "class Unit:\n    reach = 1\n"),
        ("play.py", PLAY),
    ];
    let mut bed = Bed::new(&files, model)
        .begin(&["core.py::Unit"])
        .with(|it| {
            it.text = "Rename `reach` to `span`".to_owned();
            it.approval = Approval::Ask;
        });
    let events = bed.run().await;
    assert!(bed.read("core.py").contains("span"), "{events:#?}");
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    assert!(
        headline.contains("`reach` is still at play.py:6"),
        "{headline}"
    );
}

const DB: &str = "def add(db, who):\n    db.execute(\"INSERT INTO bookings (who) VALUES (?)\", (who,))\n\n\n\
                  def search(db, who):\n    return db.execute(\"SELECT * FROM bookings WHERE who LIKE ?\", who)\n";

#[tokio::test(start_paused = true)]
async fn column_rename_is_applied_to_all_sql_statements_or_not_at_all() {
    for follows in [true, false] {
        let search = match follows {
            true => replaced("WHERE who", "WHERE guest"),
            false => finish("nothing"),
        };
        let model = Scripted::native()
            .always(
                "agent db.py::add",
                replaced("(who) VALUES", "(guest) VALUES"),
            )
            .always("agent db.py::search", search);
        let mut bed = Bed::new(&[("db.py", DB)], model)
            .begin(&["db.py::add", "db.py::search"])
            .with(|it| it.text = "Rename the column who of the table bookings to guest".to_owned());
        let events = bed.run().await;
        if follows {
            assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
            assert_eq!(bed.read("db.py").matches("guest").count(), 2);
        } else {
            let (proof, headline) = ending(&events);
            assert_eq!(proof, Proof::NotDone, "{headline}");
            assert!(headline.contains("db.py:6"), "{headline}");
            assert_eq!(bed.read("db.py"), DB);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn string_that_keeps_a_renamed_key_is_reported() {
    for (left, is_left) in [
        ("conf[\"who\"]", true),
        ("f\"{conf['who']:>9} comes\"", true),
        ("f\"{who} comes\"", false),
    ] {
        let text = format!(
            "def f(conf):\n    return conf[\"who\"]\n\n\ndef g(conf, who):\n    return {left}\n"
        );
        let model = Scripted::native()
            .on("agent a.py::f", [replaced("\"who\"", "\"guest\"")])
            .always("agent", finish("nothing"));
        let mut bed = Bed::new(&[("a.py", &text)], model)
            .begin(&["a.py::f"])
            .tests(|_| Vec::new())
            .with(|it| it.text = "Rename the key `who` to `guest`".to_owned());
        let (proof, headline) = ending(&bed.run().await);
        assert_eq!(proof == Proof::Unproven, is_left, "{headline}");
        let but = "Done, but `who` still occurs in a string: a.py:6";
        assert_eq!(headline.starts_with(but), is_left, "{left}: {headline}");
    }
}

/// Returns a small model that would break the code if it were called.
fn never_asked() -> Scripted {
    Scripted::small().always("", say("```python\ndef rate():\n    return False\n```"))
}

#[tokio::test(start_paused = true)]
async fn rename_without_a_model_updates_the_mentions_of_the_symbol_in_documents() {
    let code = "def price_for(minutes):\n    return minutes\n";
    let readme = "# price_for\n\nPrices come from `price_for` in `m`, `price_for(60)` and `m.price_for(60)`.\n\
                  `other.price_for` is another.\n\n```python\nfrom m import price_for\nx = price_for(60)\n```\n\n\
                  ```sh\nprice_for 60\n```\n";
    let log = "`price_for` is new\n";
    let files = [("m.py", code), ("README.md", readme), ("CHANGELOG.md", log)];
    let mut bed = Bed::new(&files, never_asked())
        .tests(|_| Vec::new())
        .with(|it| it.text = "Rename price_for to price_of".to_owned());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    let expected = readme
        .replace("`price_for", "`price_of")
        .replace("m.price_for", "m.price_of")
        .replace("import price_for", "import price_of")
        .replace("= price_for", "= price_of");
    assert_eq!(bed.read("README.md"), expected);
    assert_eq!(bed.read("CHANGELOG.md"), log);
    let (_, headline) = ending(&events);
    let told = "; `price_for` is still mentioned in README.md:1, README.md:4, README.md:12";
    assert!(headline.ends_with(told), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn ambiguous_name_in_a_document_is_renamed_only_where_it_is_a_call() {
    let code = "def rate(x):\n    return x\n\n\ndef f(rate):\n    return rate\n";
    let readme = "The rate is `rate` or `rate(1)`.\n";
    let files = [("m.py", code), ("README.md", readme)];
    let mut bed = Bed::new(&files, never_asked())
        .with(|it| it.text = "Rename the function `rate` to `share`".to_owned());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("README.md"), "The rate is `rate` or `share(1)`.\n");
    let (_, headline) = ending(&events);
    assert!(
        headline.ends_with("`rate` is still mentioned in README.md:1"),
        "{headline}"
    );
}

const RATES: &str = "def late_fee(days):\n    return days\n";

/// Renames `late_fee` without calling a model. Returns the document after the rename, and the
/// headline.
async fn renamed_in(document: &str) -> (String, String) {
    let files = [
        ("shed/fees.py", RATES),
        ("shed/__init__.py", "from shed.fees import late_fee\n"),
        ("guide.md", document),
    ];
    let mut bed = Bed::new(&files, never_asked())
        .tests(|_| Vec::new())
        .with(|it| it.text = "Rename late_fee to overdue_fee".to_owned());
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    (bed.read("guide.md"), ending(&events).1)
}

#[tokio::test(start_paused = true)]
async fn code_block_of_a_document_is_renamed_as_a_whole_or_not_at_all() {
    for block in [
        "from shed import late_fee\nlate_fee(3)\nprint(map(late_fee, [1]))\n",
        "from shed.fees import (\n    late_fee,\n)\n\nx = [late_fee]\n",
        "import shed\n\nshed.late_fee(3)\n",
    ] {
        let document = format!("# Guide\n\n```python\n{block}```\n");
        let (after, headline) = renamed_in(&document).await;
        assert_eq!(after, document.replace("late_fee", "overdue_fee"));
        assert!(!headline.contains("still mentioned"), "{headline}");
    }
    for block in [
        "from other import late_fee\nlate_fee(3)\n",
        "def late_fee(days):\n    return 1\n\nlate_fee(3)\n",
        "late_fee = shed.make()\nlate_fee(3)\n",
    ] {
        let document = format!("# Guide\n\n```python\n{block}```\n");
        let (after, headline) = renamed_in(&document).await;
        assert_eq!(after, document);
        let told = "`late_fee` is still mentioned in guide.md:4";
        assert!(headline.contains(told), "{headline}");
    }
}

#[tokio::test(start_paused = true)]
async fn headline_names_docstrings_and_comments_that_still_mention_the_old_name() {
    let code = "def gross(x):\n    return x\n\n\ndef net(x):\n    \"\"\"Without tax (see `gross`).\n\n    \
                The gross sum, :func:`~m.gross`.\n    \"\"\"\n    # not m.gross\n    # gross sum\n    \
                return x\n\n\ndef tax(gross):\n    \"\"\"Of `gross`.\"\"\"\n    return gross\n";
    let files = [("m.py", code), ("CHANGES.md", "- `gross` is new\n")];
    let mut bed = Bed::new(&files, never_asked())
        .tests(|_| Vec::new())
        .with(|it| it.text = "Rename the function `gross` to `brutto`".to_owned());
    let (_, headline) = ending(&bed.run().await);
    let told = "; `gross` is still mentioned in m.py:6, m.py:8, m.py:10";
    assert!(headline.ends_with(told), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn headline_names_documents_that_still_mention_the_old_name() {
    let files = [
        ("m.py", "def price_for(x):\n    return x\n"),
        ("notes.md", "# Notes\n\nSee price_for.\n"),
    ];
    let model = Scripted::native()
        .on(
            "agent m.py::price_for",
            [whole("def price_of(x):\n    return x\n")],
        )
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(&files, model)
        .begin(&["m.py::price_for"])
        .with(|it| it.text = "Rename price_for to price_of".to_owned());
    let (_, headline) = ending(&bed.run().await);
    assert!(
        headline.ends_with("; `price_for` is still mentioned in notes.md:3"),
        "{headline}"
    );
}

#[tokio::test(start_paused = true)]
async fn adjacent_functions_are_deleted_together_without_calling_a_model() {
    let left = "def used():\n    return 1\n";
    let text = format!(
        "{left}\n\ndef old(a, b):\n    # before\n    return a + b\n\n\ndef cost(path):\n    return sum(old(a, b) for a, b in path)\n"
    );
    for task in ["Delete `old` and `cost`", "Delete `cost` and `old`"] {
        let mut bed = Bed::new(&[("a.py", &text)], never_asked())
            .tests(|_| Vec::new())
            .with(|it| it.text = task.to_owned());
        let events = bed.run().await;
        assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
        assert_eq!(bed.read("a.py"), left, "{task}");
    }
}

#[tokio::test(start_paused = true)]
async fn class_owner_renames_the_enum_member_that_the_scout_picks() {
    let text = "from enum import Enum\n\n\nclass Phase(Enum):\n    MOVE = 1\n    STRIKE = 2\n";
    let model = Scripted::native()
        .on("scout", [wake(&["core.py::Phase.STRIKE"])])
        .on(
            "agent core.py::Phase",
            [replaced("STRIKE = 2", "ATTACK = 2")],
        )
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(&[("core.py", text)], model).with(|it| {
        it.text = "Rename the enum member `Phase.STRIKE` to `Phase.ATTACK`".to_owned();
    });
    let events = bed.run().await;
    assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
    assert_eq!(bed.read("core.py"), text.replace("STRIKE", "ATTACK"));
}

const OPTION: &str = "import argparse\n\n\ndef parser():\n    p = argparse.ArgumentParser(epilog=\"see --labour\")\n    \
    p.add_argument(\"--labour\")\n    p.add_argument(\"--labour-rate\")\n    return p\n\n\ndef run(args):\n    \
    \"\"\"Add the work of --labour.\"\"\"\n    return args.labour\n";

#[tokio::test(start_paused = true)]
async fn headline_names_documents_and_help_texts_that_still_mention_a_renamed_option() {
    let readme = "# shop\n\nThe labour of a shop.\n\n    shop new --labour 1.5\n    shop new --labour-rate 2\n\n\
                  Without --labour, nothing is added.\n";
    for name in ["`--labour` to `--hours`", "--labour to --hours"] {
        let model = Scripted::native()
            .on(
                "agent cli.py::parser",
                [replaced("(\"--labour\")", "(\"--hours\")")],
            )
            .on("agent cli.py::run", [replaced("args.labour", "args.hours")])
            .always("agent", finish("nothing"));
        let files = [("cli.py", OPTION), ("README.md", readme)];
        let mut bed = Bed::new(&files, model)
            .begin(&["cli.py::parser", "cli.py::run"])
            .tests(|_| Vec::new())
            .with(|it| it.text = format!("Rename the option {name}"));
        let (_, headline) = ending(&bed.run().await);
        let told =
            "; `--labour` is still mentioned in README.md:5, README.md:8, cli.py:5, cli.py:12";
        assert!(headline.ends_with(told), "{headline}");
    }
}

#[tokio::test(start_paused = true)]
async fn headline_names_commands_in_indented_code_that_still_use_a_renamed_key() {
    let code = "def f(conf):\n    return conf[\"report\"]\n";
    let readme = "A report of the shop.\n\n    shop report 1\n\n- a list\n\n    with a report\n";
    let model = Scripted::native()
        .on("agent a.py::f", [replaced("\"report\"", "\"summary\"")])
        .always("agent", finish("nothing"));
    let mut bed = Bed::new(&[("a.py", code), ("README.md", readme)], model)
        .begin(&["a.py::f"])
        .tests(|_| Vec::new())
        .with(|it| it.text = "Rename the key `report` to `summary`".to_owned());
    let (_, headline) = ending(&bed.run().await);
    let told = "; `report` is still mentioned in README.md:3";
    assert!(headline.ends_with(told), "{headline}");
}

/// Runs a task over a package whose `__init__.py` lists what it exports in `__all__`. `follows` says
/// whether the model changes the list as well.
async fn exports(
    task: &str,
    deletes: bool,
    follows: bool,
    approval: Approval,
) -> (Bed, Vec<Event>) {
    let hunks = |of: &[(&str, &str)]| {
        let hunks = of.iter().map(|(old, new)| json!({"old": old, "new": new}));
        let hunks: Vec<serde_json::Value> = hunks.collect();
        call(
            "propose",
            json!({"reason": "r", "hunks": hunks, "intended_losses": true, "insist": true}),
        )
    };
    let (import, list) = match deletes {
        true => ("from .a import bar\n", "['bar']"),
        false => ("from .a import bar, new\n", "['bar', 'new']"),
    };
    let mut of_package = vec![("from .a import bar, foo\n", import)];
    if follows {
        of_package.push(("['bar', 'foo']", list));
    }
    let of_foo = match deletes {
        true => call(
            "propose",
            json!({"reason": "r", "delete": ["pkg/a.py::foo"], "intended_losses": true, "insist": true}),
        ),
        false => hunks(&[("def foo", "def new")]),
    };
    let model = Scripted::native()
        .always("agent pkg/a.py::foo", of_foo)
        .on("agent pkg/__init__.py::", [hunks(&of_package)])
        .always("agent", finish("nothing"));
    let package = "from .a import bar, foo\n\n__all__ = ['bar', 'foo']\n";
    let code = "def foo():\n    return 1\n\n\ndef bar():\n    return 2\n";
    let files = [("pkg/__init__.py", package), ("pkg/a.py", code)];
    let mut bed = Bed::new(&files, model)
        .begin(&["pkg/a.py::foo", "pkg/__init__.py::"])
        .tests(|_| Vec::new())
        .with(|it| {
            it.text = task.to_owned();
            it.approval = approval;
        });
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn name_that_stays_in_all_without_a_definition_stops_the_change() {
    for (task, deletes) in [
        ("Rename foo to new", false),
        ("foo has a bad name, find a better one", false),
        ("Delete foo", true),
        ("Nobody needs foo any more", true),
    ] {
        let (bed, events) = exports(task, deletes, true, Approval::Auto).await;
        assert!(!bed.read("pkg/a.py").contains("foo"), "{task}: {events:#?}");
        assert!(!bed.read("pkg/__init__.py").contains("foo"), "{task}");

        let (bed, events) = exports(task, deletes, false, Approval::Auto).await;
        assert!(
            bed.read("pkg/a.py").contains("def foo"),
            "{task}: {events:#?}"
        );
        let told = malformed(&events).join("\n");
        let why = "`foo` is listed in `__all__`, and pkg/__init__.py does not define it: the entry must \
                   follow";
        assert!(told.contains(why), "{task}: {told}");
        assert_eq!(ending(&events).0, Proof::NotDone, "{task}: {events:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn person_is_told_of_a_name_that_stays_in_all_and_the_run_is_not_done() {
    let task = "foo has a bad name, find a better one";
    let (bed, events) = exports(task, false, false, Approval::Ask).await;
    assert!(bed.read("pkg/a.py").contains("def new"), "{events:#?}");
    let seen = bed.approver.seen.lock().unwrap();
    let is_told = |one: &ProposalView| one.evidence.contains("`foo` is listed in `__all__`");
    assert!(seen.iter().any(is_told), "{seen:#?}");
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    assert!(headline.contains("pkg/__init__.py:3"), "{headline}");
}
