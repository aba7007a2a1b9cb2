//! Refactorings that are requested exactly: no model is asked, whichever is configured.

use super::*;

const SHAPES: &str = "class Shape:\n    def area(self):\n        return 1\n\n\nclass Other:\n    \
                      def area(self):\n        return 2\n";
const USES: &str = "from shapes import Shape\n\n\ndef sure(shape: Shape):\n    return shape.area()\n\n\n\
                    def unsure(thing):\n    return thing.area()\n";

pub(super) fn rename(symbol: &str, to: &str) -> Refactoring {
    Refactoring::Rename {
        symbol: symbol.to_owned(),
        to: to.to_owned(),
        only_if_certain: false,
    }
}

/// The result of a refactoring.
pub(super) struct Refactored {
    pub(super) why: StopReason,
    pub(super) ending: (Proof, String),
    pub(super) texts: Vec<String>,
    /// The reasons of the proposals.
    pub(super) reasons: Vec<String>,
}

/// Carries out a refactoring with a model that must not be asked.
pub(super) async fn run(files: &[(&str, &str)], refactoring: Refactoring) -> Refactored {
    let mut bed = Bed::new(files, Scripted::native()).with(|task| {
        task.text = refactoring.in_words();
        task.refactoring = Some(refactoring.clone());
    });
    let events = bed.run().await;
    assert_eq!(bed.model.calls(), 0, "{events:#?}");
    let reasons = events.iter().filter_map(|event| match event {
        Event::ProposalMade { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    Refactored {
        why: stop(&events),
        ending: ending(&events),
        texts: files.iter().map(|file| bed.read(file.0)).collect(),
        reasons: reasons.collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn refactoring_is_made_without_the_model_that_is_configured() {
    let files = [
        ("stats.py", STATS),
        ("report.py", REPORT),
        ("test_stats.py", TESTS),
    ];
    for symbol in ["rate", "stats.py::rate"] {
        let Refactored { why, texts, .. } = run(&files, rename(symbol, "error_rate")).await;
        assert_eq!(why, StopReason::Settled, "{symbol}");
        assert!(texts[0].starts_with("def error_rate("), "{texts:?}");
        assert!(texts[1].contains("{error_rate(hits, total)"), "{texts:?}");
    }
    let unused = [(
        "a.py",
        "def f():\n    return 1\n\n\ndef g():\n    return 2\n",
    )];
    let symbol = "f".to_owned();
    let Refactored { why, texts, .. } = run(&unused, Refactoring::Delete { symbol }).await;
    assert_eq!(why, StopReason::Settled);
    assert_eq!(texts, ["def g():\n    return 2\n"]);
}

#[tokio::test(start_paused = true)]
async fn certain_uses_are_renamed_and_the_others_are_told() {
    let files = [("shapes.py", SHAPES), ("uses.py", USES)];
    let refactoring = rename("Shape.area", "surface");
    let Refactored {
        texts,
        reasons,
        ending: (proof, headline),
        ..
    } = run(&files, refactoring).await;
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let expected = "Done, but 1 place may mean another `area`: uses.py:9";
    assert!(headline.starts_with(expected), "{headline}");
    assert_eq!(texts[0], SHAPES.replacen("area", "surface", 1));
    assert_eq!(texts[1], USES.replace("shape.area", "shape.surface"));
    let doubt = "not certain: 1 place may mean another `area`: uses.py:9";
    assert!(reasons.iter().all(|one| one.contains(doubt)), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn failing_test_that_shows_what_an_uncertain_place_means_is_told() {
    let judge = |all: &str| {
        let message = match all.contains("def surface") {
            true => {
                "uses.py:9: in unsure\nE   AttributeError: 'Shape' object has no attribute 'area'"
            }
            false => "data.py:1: in load\nE   KeyError: 'family'",
        };
        vec![("test_uses.py::test_unsure".to_owned(), message.to_owned())]
    };
    let files = [("shapes.py", SHAPES), ("uses.py", USES)];
    let refactoring = rename("Shape.area", "surface");
    let mut bed = Bed::new(&files, Scripted::native())
        .tests(judge)
        .with(|task| {
            task.text = refactoring.in_words();
            task.refactoring = Some(refactoring.clone());
        });
    let events = bed.run().await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let told = "test_uses.py::test_unsure now fails with AttributeError: 'Shape' object has no \
                attribute 'area' at uses.py:9, so that this place means `area`";
    assert!(headline.contains(told), "{headline}");
    assert!(!headline.contains("no part of the task"), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_renamed_if_only_a_certain_rename_is_wanted_and_a_use_is_not() {
    let files = [("shapes.py", SHAPES), ("uses.py", USES)];
    let refactoring = Refactoring::Rename {
        symbol: "Shape.area".to_owned(),
        to: "surface".to_owned(),
        only_if_certain: true,
    };
    let Refactored { why, texts, .. } = run(&files, refactoring).await;
    let StopReason::NothingChanged { why } = why else {
        panic!("{why:?}");
    };
    assert!(why.contains("uses.py:9"), "{why}");
    assert_eq!(texts, [SHAPES, USES]);
}

#[tokio::test(start_paused = true)]
async fn name_that_is_not_that_of_one_symbol_is_refused() {
    let ranks = "class Rank:\n    CAPTAIN = 1\n";
    let files = [
        ("shapes.py", SHAPES),
        ("uses.py", USES),
        ("ranks.py", ranks),
    ];
    for (symbol, to, expected) in [
        (
            "area",
            "surface",
            "several symbols are called `area`: shapes.py::Other.area, shapes.py::Shape.area",
        ),
        (
            "Rank.CAPTAIN",
            "CHIEF",
            "`Rank.CAPTAIN` is an attribute, set in ranks.py::Rank: only functions, ",
        ),
        ("Rank.LIEUTENANT", "CHIEF", "there is no `Rank.LIEUTENANT`"),
        (
            "Shap",
            "Form",
            "there is no symbol `Shap`; did you mean `Shape`?",
        ),
        (
            "shapes.py::Shap",
            "Form",
            "There is no symbol shapes.py::Shap.",
        ),
        (
            "shapes.py::",
            "form",
            "shapes.py is a file: name a symbol in it",
        ),
        ("Shape", "a-b", "`a-b` is no name for a symbol"),
        ("Shape", "class", "`class` is no name for a symbol"),
        ("Shape", "Shape", "`Shape` is already called `Shape`"),
        (
            "Shape",
            "Other",
            "shapes.py already contains the name `Other`",
        ),
    ] {
        let Refactored { why, texts, .. } = run(&files, rename(symbol, to)).await;
        let StopReason::NothingChanged { why } = why else {
            panic!("{symbol}: {why:?}");
        };
        assert!(why.starts_with(expected), "{symbol}: {why}");
        assert_eq!(texts, [SHAPES, USES, ranks]);
    }
}

#[tokio::test(start_paused = true)]
async fn name_that_a_module_imports_from_two_places_is_not_renamed_in_one_of_them() {
    let slow = "def escape(text):\n    return text\n";
    let chosen =
        "try:\n    from fast import escape\nexcept ImportError:\n    from slow import escape\n";
    let user = "from chosen import escape\n\nprint(escape('a'))\n";
    let files = [("slow.py", slow), ("chosen.py", chosen), ("user.py", user)];
    let Refactored { why, texts, .. } = run(&files, rename("slow.py::escape", "quote")).await;
    let StopReason::NothingChanged { why } = why else {
        panic!("{why:?} {texts:?}");
    };
    let expected = "`escape` has another meaning as well, which would keep the name: chosen.py:2";
    assert_eq!(why, expected);
    assert_eq!(texts, [slow, chosen, user]);

    // The other definition stands in the same file.
    let own = "try:\n    from fast import LIMIT\nexcept ImportError:\n    LIMIT = 3\n";
    let files = [("own.py", own)];
    let Refactored { why, texts, .. } = run(&files, rename("own.py::LIMIT", "MOST")).await;
    assert!(matches!(why, StopReason::NothingChanged { .. }), "{why:?}");
    assert_eq!(texts, [own]);
}

#[tokio::test(start_paused = true)]
async fn decorators_of_the_standard_library_do_not_register_what_they_decorate() {
    let code = "import functools\nfrom contextlib import contextmanager\n\n\n@contextmanager\n\
                def scope():\n    yield 1\n\n\n@functools.lru_cache(maxsize=None)\ndef size():\n    \
                return 2\n";
    let own = "def cache(f):\n    ROUTES[f.__name__] = f\n    return f\n\n\nROUTES = {}\n\n\n@cache\n\
               def page():\n    return 3\n";
    let files = [("code.py", code), ("own.py", own)];
    for (symbol, is_certain) in [("scope", true), ("size", true), ("page", false)] {
        let Refactored { reasons, .. } = run(&files, rename(symbol, "renamed")).await;
        let certain = "by rule: every use is certain";
        let are = reasons.iter().all(|one| one.ends_with(certain));
        assert_eq!(are, is_certain, "{symbol}: {reasons:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn equal_lines_are_told_apart_by_the_lines_around_them() {
    let core = "def f(x):\n    return x\n";
    let user = "import sys\nfrom core import f\n\nif sys.argv:\n    y = f(1)\n    z = 1\nelse:\n    \
                y = f(1)\n    z = 2\n\n\ndef g():\n    a = f(2)\n    return a\n\n\ndef h():\n    \
                a = f(2)\n    return a\n";
    let files = [("core.py", core), ("user.py", user)];
    let Refactored {
        why,
        texts,
        reasons,
        ..
    } = run(&files, rename("f", "total")).await;
    assert_eq!(why, StopReason::Settled);
    assert_eq!(
        texts[1],
        user.replace("f(", "total(")
            .replace("import f", "import total")
    );
    assert_eq!(reasons.len(), 2, "one proposal for each file: {reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn reason_lists_all_places_that_are_not_certain() {
    let unsure: String = (0..7)
        .map(|at| format!("def unsure_{at}(thing):\n    return thing.area()\n\n\n"))
        .collect();
    let files = [("shapes.py", SHAPES), ("unsure.py", unsure.trim_end())];
    let Refactored {
        reasons,
        ending: (_, headline),
        ..
    } = run(&files, rename("Shape.area", "surface")).await;
    let places: Vec<String> = (0..7)
        .map(|at| format!("unsure.py:{}", 4 * at + 2))
        .collect();
    let all = format!("may mean another `area`: {}", places.join(", "));
    assert!(reasons.iter().all(|one| one.ends_with(&all)), "{reasons:?}");
    assert!(headline.contains("unsure.py:14, 3 more"), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn all_definitions_of_a_name_in_one_scope_are_renamed_together() {
    let code = "from typing import overload\n\n\nclass C:\n    @property\n    def size(self):\n        \
                return self._x\n\n    @size.setter\n    def size(self, value):\n        \
                self._x = value\n\n    def grow(self):\n        self.size += 1\n\n\n@overload\n\
                def pick(a: int) -> int: ...\n@overload\ndef pick(a: str) -> str: ...\n\
                def pick(a):\n    return a\n\n\nif C:\n    def late():\n        return 1\nelse:\n    \
                def late():\n        return 2\n\n\ndef use(c: C):\n    c.size = 3\n    \
                return c.size, pick(1), late()\n";
    for (symbol, to) in [
        ("C.size", "bulk"),
        ("code.py::pick", "choose"),
        ("code.py::late", "later"),
    ] {
        let Refactored {
            why,
            texts,
            reasons,
            ..
        } = run(&[("code.py", code)], rename(symbol, to)).await;
        assert_eq!(why, StopReason::Settled, "{symbol}");
        let old = symbol.rsplit(['.', ':']).next().unwrap();
        assert_eq!(texts[0], code.replace(old, to), "{symbol}");
        assert!(reasons[0].ends_with("every use is certain"), "{reasons:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn documents_are_renamed_where_the_package_exports_the_name_as_itself() {
    let export = "from .core import Signer as Signer\n";
    let readme = "```python\nfrom pkg import Signer\ns = Signer(1)\n```\n";
    let docs = "Signing\n=======\n\n.. code-block:: python\n\n    from pkg import Signer\n    \
                s = Signer(1)\n\nA Signer signs.\n\n.. autoclass:: Signer\n    :members:\n";
    let files = [
        ("pkg/__init__.py", export),
        ("pkg/core.py", "class Signer:\n    pass\n"),
        ("README.md", readme),
        ("docs/signing.rst", docs),
    ];
    let Refactored { why, texts, .. } = run(&files, rename("Signer", "Sealer")).await;
    assert_eq!(why, StopReason::Settled);
    assert_eq!(texts[0], export.replace("Signer", "Sealer"));
    assert_eq!(texts[2], readme.replace("Signer", "Sealer"));
    let expected = docs
        .replace("Signer", "Sealer")
        .replace("A Sealer", "A Signer");
    assert_eq!(texts[3], expected);
}

#[tokio::test(start_paused = true)]
async fn string_that_may_be_the_name_is_listed_and_does_not_stop_the_rename() {
    let types = "class IntRange:\n    pass\n";
    let user = "from types_ import IntRange\n\nINFO = {\"type\": \"IntRange\"}\nONE = IntRange()\n";
    let files = [("types_.py", types), ("user.py", user)];
    let Refactored {
        why,
        texts,
        ending: (proof, headline),
        ..
    } = run(&files, rename("IntRange", "Bounds")).await;
    assert_eq!(why, StopReason::Settled);
    let expected = "Done, but `IntRange` occurs in a string: user.py:3";
    assert!(headline.starts_with(expected), "{headline}");
    assert_eq!(proof, Proof::Unproven);
    let new = user
        .replace("import IntRange", "import Bounds")
        .replace("IntRange()", "Bounds()");
    assert_eq!(texts[1], new);
}

#[tokio::test(start_paused = true)]
async fn string_that_repeats_the_name_of_its_variable_is_renamed_with_it() {
    let code = "import typing as t\n\nItem = t.TypeVar(\n    \"Item\",\n    bound=int,\n)\n\n\n\
                def first(items: t.List[Item]) -> Item:\n    return items[0]\n";
    let Refactored {
        why,
        texts,
        reasons,
        ..
    } = run(&[("code.py", code)], rename("code.py::Item", "Element")).await;
    assert_eq!(why, StopReason::Settled);
    assert_eq!(texts[0], code.replace("Item", "Element"));
    assert!(reasons[0].ends_with("every use is certain"), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn listed_use_of_a_name_that_nothing_defines_any_more_does_not_undo_the_rename() {
    let code = "class Serializer(Base):\n    def load_all(self, text):\n        return text\n";
    let user = "from code_ import Serializer\n\n\ndef sure(one: Serializer):\n    \
                return one.load_all('')\n\n\ndef unsure(make):\n    return make().load_all('')\n";
    let files = [("code_.py", code), ("user.py", user)];
    let Refactored {
        why,
        texts,
        ending: (proof, headline),
        ..
    } = run(&files, rename("Serializer.load_all", "read_all")).await;
    assert_eq!(why, StopReason::Settled, "{headline}");
    assert_eq!(proof, Proof::Unproven);
    assert!(headline.contains("user.py:9"), "{headline}");
    assert_eq!(texts[1], user.replace("one.load_all", "one.read_all"));
}

/// Classes with bases from outside the project.
const KINDS: &str = "from enum import Enum\nfrom threading import Thread\n\n\nclass Kind(Enum):\n    DAY = 1\n\n    \
                     def hours(self):\n        return 6\n\n\nclass Worker(Thread):\n    def go(self):\n        return 1\n";

#[tokio::test(start_paused = true)]
async fn fixture_is_renamed_with_the_parameters_that_take_it_and_their_uses() {
    let conftest = "import pytest\n\n\n@pytest.fixture\ndef day():\n    return 1\n";
    let test = "def test_a(day):\n    assert day == 1\n\n\ndef helper(day):\n    return day\n";
    let files = [("tests/conftest.py", conftest), ("tests/test_a.py", test)];
    let ended = run(&files, rename("tests/conftest.py::day", "first_day")).await;
    assert_eq!(
        ended.texts[0],
        conftest.replace("day", "first_day"),
        "{:?}",
        ended.ending
    );
    let renamed = "def test_a(first_day):\n    assert first_day == 1\n";
    assert_eq!(
        ended.texts[1],
        test.replace("def test_a(day):\n    assert day == 1\n", renamed)
    );
    let (_, headline) = ended.ending;
    assert!(headline.starts_with("Done, untested: "), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn name_that_no_base_class_has_is_free() {
    let ended = run(&[("kinds.py", KINDS)], rename("Kind.hours", "duty_hours")).await;
    assert!(
        ended.texts[0].contains("def duty_hours("),
        "{:?}",
        ended.ending
    );
}

#[tokio::test(start_paused = true)]
async fn rename_is_refused_if_it_changes_what_another_name_means() {
    let kin = "class Base:\n    def f(self):\n        return 1\n\n\nclass Sub(Base):\n    kind = 1\n\n    \
               def __init__(self):\n        self.paid = True\n\n    def extra(self):\n        return 2\n";
    let computed = "from kin import Base\n\n\ndef make(base):\n    class Made(base):\n        \
                    def f(self):\n            return 7\n\n    return Made\n\n\nprint(make(Base)().f())\n";
    let private =
        "class Old:\n    def __init__(self):\n        self.__x = 1\n\n\nprint(Old()._Old__x)\n";
    for (files, symbol, to, expected) in [
        (
            &[("kin.py", kin)][..],
            "Base.f",
            "paid",
            "kin.py::Sub or its objects already have the name `paid`",
        ),
        (
            &[("kin.py", kin)],
            "Base.f",
            "kind",
            "kin.py::Sub or its objects already have the name `kind`",
        ),
        (
            &[("kin.py", kin)],
            "Base.f",
            "extra",
            "kin.py::Sub or its objects already have the name `extra`",
        ),
        (
            &[("kinds.py", KINDS)],
            "Kind.hours",
            "value",
            "`Enum`, a base class of kinds.py::Kind, has or may have the name `value`",
        ),
        (
            &[("kinds.py", KINDS)],
            "Worker.go",
            "run",
            "`Thread`, a base class of kinds.py::Worker, has or may have the name `run`",
        ),
        (
            &[("kin.py", kin)],
            "Base.f",
            "__f",
            "Python changes the name `__f` in each class",
        ),
        (
            &[("old.py", private)],
            "Old",
            "New",
            "old.py uses a name with `_Old__`",
        ),
        (
            &[("conftest.py", "def pytest_configure(config):\n    pass\n")],
            "pytest_configure",
            "set_up",
            "pytest itself calls `pytest_configure`",
        ),
    ] {
        let Refactored { why, .. } = run(files, rename(symbol, to)).await;
        let StopReason::NothingChanged { why } = why else {
            panic!("{symbol} to {to}: {why:?}");
        };
        assert!(why.starts_with(expected), "{symbol} to {to}: {why}");
    }
    let files = [("kin.py", kin), ("computed.py", computed)];
    let Refactored { reasons, .. } = run(&files, rename("Base.f", "g")).await;
    let doubt = "computed.py::make.Made has the base `base`, so its `f` may override this one";
    assert!(reasons.iter().any(|one| one.contains(doubt)), "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn use_on_an_object_of_several_types_is_not_certain() {
    let two = "class A:\n    def f(self):\n        return 1\n\n\nclass B:\n    def f(self):\n        return 2\n";
    let uses = "from two import A, B\n\n\ndef g(x: \"A | B\", c):\n    y = A() if c else B()\n    \
                return x.f(), y.f(), A().f()\n";
    let files = [("two.py", two), ("uses.py", uses)];
    let Refactored {
        texts,
        ending: (_, headline),
        ..
    } = run(&files, rename("A.f", "run")).await;
    assert_eq!(texts[1], uses.replace("A().f()", "A().run()"), "{headline}");
    assert!(
        headline.contains("may mean another `f`: uses.py:6"),
        "{headline}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_has_an_effect_or_is_found_by_others_is_not_deleted() {
    let registered = "KINDS = {}\n\n\nclass Base:\n    def __init_subclass__(cls):\n        \
                      KINDS[cls.__name__] = cls\n\n\nclass Wood(Base):\n    pass\n\n\nEXTRA = KINDS.setdefault('a', 1)\n";
    let protocol = "from typing import Protocol\n\n\nclass P(Protocol):\n    def go(self): ...\n\n\nclass I:\n    \
                    def go(self):\n        return 1\n\n\ndef use(p: P):\n    return p.go()\n\n\nuse(I())\n";
    for (text, symbol, expected) in [
        (
            registered,
            "Wood",
            "`Base`, a base class of `Wood`, may register it",
        ),
        (
            registered,
            "EXTRA",
            "`EXTRA` is set by a call, which may have an effect",
        ),
        (
            "from django.db import models\n\n\nclass Loan(models.Model):\n    pass\n",
            "Loan",
            "`Model`, a base class of `Loan`, may register it",
        ),
        (
            protocol,
            "I.go",
            "another class has a `go` by which it may be used",
        ),
    ] {
        let symbol = symbol.to_owned();
        let Refactored { why, texts, .. } =
            run(&[("m.py", text)], Refactoring::Delete { symbol }).await;
        let StopReason::NothingChanged { why } = why else {
            panic!("{why:?}");
        };
        assert!(why.starts_with(expected), "{why}");
        assert_eq!(texts, [text]);
    }
}

#[tokio::test(start_paused = true)]
async fn headline_names_uses_that_another_program_writes_while_a_rename_is_tested() {
    let files = [
        ("stats.py", STATS),
        ("report.py", REPORT),
        ("test_stats.py", TESTS),
        ("known.txt", "a known rate\n"),
    ];
    for (path, text, told) in [
        ("new.py", "from stats import rate\n", Some("new.py:1")),
        (
            "known.txt",
            "a known rate\nsee stats.rate\n",
            Some("known.txt"),
        ),
        ("other.py", "rates = 1\n", None),
    ] {
        let refactoring = rename("rate", "error_rate");
        let mut bed = Bed::new(&files, Scripted::native()).with(|task| {
            task.text = refactoring.in_words();
            task.refactoring = Some(refactoring.clone());
        });
        let other = bed.path(path);
        let judge = move |all: &str| {
            if all.contains("def error_rate(") {
                std::fs::write(&other, text).unwrap();
            }
            Vec::new()
        };
        bed = bed.tests(judge);
        let events = bed.run().await;
        assert_eq!(stop(&events), StopReason::Settled, "{events:#?}");
        let (proof, headline) = ending(&events);
        let is_told = headline.contains("another program wrote `rate` meanwhile: ");
        assert_eq!(is_told, told.is_some(), "{headline}");
        if let Some(told) = told {
            assert!(headline.contains(told), "{headline}");
            assert_eq!(proof, Proof::Unproven, "{headline}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn end_lists_all_mentions_and_the_headline_the_first() {
    let known = "-- see fees.late_fee\n";
    let page = "-- fees.late_fee\n".repeat(250);
    let files = [
        ("fees.py", "def late_fee(x):\n    return x\n"),
        ("a.sql", known),
        ("b.sql", known),
        ("c.sql", known),
        ("d.sql", known),
        ("e.sql", &page),
        ("f.yaml", "handler: fees.late_fee\n"),
    ];
    let refactoring = rename("late_fee", "fee");
    let mut bed = Bed::new(&files, Scripted::native()).with(|task| {
        task.text = refactoring.in_words();
        task.refactoring = Some(refactoring.clone());
    });
    let events = bed.run().await;
    let Some(Event::RunFinished {
        ending: Some(ending),
        ..
    }) = events.last()
    else {
        panic!("{events:#?}");
    };
    let told = "`late_fee` is still mentioned in a.sql:1, b.sql:1, c.sql:1, d.sql:1, 250 more";
    assert!(ending.headline.contains(told), "{events:#?}");
    let [all] = ending.mentions.as_slice() else {
        panic!("{ending:#?}");
    };
    assert_eq!((all.name.as_str(), all.count), ("late_fee", 254));
    assert_eq!(all.places.len(), 200);
    assert_eq!(all.places[5], "e.sql:2");
}

#[tokio::test(start_paused = true)]
async fn guarded_file_that_uses_the_name_is_part_of_the_set_or_named_with_what_to_do() {
    let user = "from plain import late_fee\n\nlate_fee(1)\n";
    let files = [
        ("plain.py", "def late_fee(days):\n    return days\n"),
        ("setup.py", user),
    ];
    for approval in [Approval::Auto, Approval::Ask] {
        let refactoring = rename("late_fee", "fee");
        let mut bed = Bed::new(&files, Scripted::native()).with(|task| {
            task.text = refactoring.in_words();
            task.approval = approval;
            task.refactoring = Some(refactoring.clone());
        });
        let (proof, headline) = ending(&bed.run().await);
        if approval == Approval::Auto {
            let yes = "Not done: a part needs your own yes: setup.py (review it with --approve ask, \
                       or allow it by --allow-write 'setup.py'); ";
            assert!(headline.starts_with(yes), "{headline}");
            assert!(headline.contains("setup.py:1"), "{headline}");
            assert_eq!(bed.read("setup.py"), user);
        } else {
            assert_eq!(proof, Proof::Unproven, "{headline}");
            assert_eq!(bed.read("setup.py"), user.replace("late_fee", "fee"));
            let seen = bed.approver.seen.lock().unwrap();
            let told = |one: &str| one.contains("needs your own yes: setup.py");
            assert!(seen.iter().any(|one| told(&one.evidence)), "{seen:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn name_in_a_string_that_python_reads_is_not_certain() {
    for code in [
        "'{0.note} of it'.format(A())",
        "getattr(A(), 'note,x'.split(',')[0])",
        "eval('A().note')",
        "'%(note)s of it' % vars(A())",
    ] {
        let text = format!(
            "class A:\n    @property\n    def note(self):\n        return 1\n\n\ndef show():\n    \
             return {code}\n"
        );
        let files = [("a.py", &*text)];
        let Refactored {
            texts,
            ending: (proof, headline),
            ..
        } = run(&files, rename("A.note", "remark")).await;
        assert_eq!(proof, Proof::Unproven, "{headline}");
        let expected = "Done, but `note` occurs in a string: a.py:8";
        assert!(headline.starts_with(expected), "{headline}");
        assert_eq!(texts[0], text.replace("def note", "def remark"));
        let only_certain = Refactoring::Rename {
            symbol: "A.note".to_owned(),
            to: "remark".to_owned(),
            only_if_certain: true,
        };
        let symbol = "A.note".to_owned();
        for refactoring in [only_certain, Refactoring::Delete { symbol }] {
            let Refactored { why, texts, .. } = run(&files, refactoring).await;
            assert!(matches!(why, StopReason::NothingChanged { .. }), "{why:?}");
            assert_eq!(texts[0], text, "{code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn overriding_property_with_a_setter_is_renamed_with_the_property_that_it_overrides() {
    let accessors = "    @property\n    def note(self):\n        return 1\n\n    \
                     @note.setter\n    def note(self, value):\n        ";
    let code = format!(
        "class A:\n{accessors}self._n = value\n\n\nclass B(A):\n{accessors}A.note.fset(self, value)\n"
    );
    for symbol in ["A.note", "B.note"] {
        let Refactored {
            why,
            texts,
            reasons,
            ..
        } = run(&[("code.py", &code)], rename(symbol, "remark")).await;
        assert_eq!(why, StopReason::Settled, "{symbol}");
        assert_eq!(texts[0], code.replace("note", "remark"), "{symbol}");
        assert!(reasons[0].ends_with("every use is certain"), "{reasons:?}");
    }
}
