//! Sentences about calls and uses that the index refutes.

use crate::block::{Block, FlawKind};
use crate::cite::CitationChecker;
use starling_index::Index;
use starling_workspace::Workspace;
use std::sync::Arc;

/// A project with calls on objects of known types, callbacks, and calls by names built at run time.
const DUTY: [(&str, &str); 4] = [
    (
        "duty/model.py",
        "class Absence:\n    def covers(self, day: int) -> bool:\n        return day == 1\n\n\n\
         class Member:\n    absences: list[Absence]\n\n    def is_away(self, day: int) -> bool:\n        \
         return any(a.covers(day) for a in self.absences)\n",
    ),
    (
        "duty/rota.py",
        "from .model import Member\n\n\n\
         class Rota:\n    def swap(self, comes: Member) -> None:\n        if comes.is_away(1):\n            \
         raise ValueError\n\n\n\
         def free(members: list[Member]) -> list[Member]:\n    return [m for m in members if not m.is_away(2)]\n\n\n\
         def fill(members: list[Member]) -> None:\n    free(members)\n",
    ),
    (
        "duty/weather.py",
        "import os\n\n\ndef extra_crew(warning: int) -> int:\n    return warning\n\n\n\
         def retry(action):\n    return action()\n\n\ndef fetch():\n    return 1\n\n\n\
         def load():\n    return retry(fetch)\n\n\n\
         def by_name(name):\n    return getattr(os, name)()\n\n\n\
         def old():\n    return 1\n\n\nnew = old\n\n\n\
         def again():\n    return new()\n\n\ndef guess(thing):\n    return thing.covers(1)\n",
    ),
    (
        "tests/test_model.py",
        "from duty.model import Absence\nfrom duty.weather import extra_crew\n\n\n\
         def test_covers():\n    assert Absence().covers(1)\n\n\n\
         def test_extra():\n    assert extra_crew(1) == 1\n",
    ),
];

fn project() -> (tempfile::TempDir, CitationChecker) {
    let dir = tempfile::tempdir().unwrap();
    for (file, text) in DUTY {
        let path = dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = dir.path().canonicalize().unwrap();
    let files = Workspace::open(root).unwrap().snapshot(Default::default());
    let index = Arc::new(Index::new(files.clone()));
    (dir, CitationChecker::new(files).with_index(index))
}

/// Returns the places that refute the sentences of a text.
fn refuted(text: &str, checker: &CitationChecker) -> Vec<String> {
    let block = Block::check(text, checker);
    let uncited = block.uncited(&Default::default());
    let flaws = block.wrong.iter().chain(&uncited);
    let places = flaws.filter_map(|flaw| match &flaw.what {
        FlawKind::WrongCitation(dropped) => {
            dropped.why.strip_prefix("not so: see ").map(str::to_owned)
        }
        FlawKind::Uncited { refuted_by } => refuted_by.clone(),
    });
    let place = |place: String| place.split(',').next().unwrap().to_owned();
    places.map(place).collect()
}

#[test]
fn sentence_that_denies_a_use_is_refuted_in_spite_of_adverbs() {
    let (_dir, checker) = project();
    for sentence in [
        "No test calls `Absence.covers` directly.",
        "No test currently calls `Absence.covers`.",
        "`Absence.covers` itself is not called by the tests.",
        "`Absence.covers` is not called anywhere in the tests.",
        "Tests never touch `Absence.covers` directly.",
    ] {
        assert_eq!(
            refuted(sentence, &checker),
            ["tests/test_model.py:6"],
            "{sentence}"
        );
    }
}

#[test]
fn sentence_that_denies_a_use_in_a_file_or_class_is_refuted_by_a_use_there() {
    let (_dir, checker) = project();
    for (sentence, place) in [
        (
            "`is_away` is called by no function of rota.py.",
            "duty/rota.py:11",
        ),
        (
            "`is_away` is called by no method of `Rota`.",
            "duty/rota.py:6",
        ),
        (
            "No function of `rota.py` uses `is_away`.",
            "duty/rota.py:11",
        ),
        ("No method of the rota calls `is_away`.", ""),
        ("Nothing in duty/rota.py calls `is_away`.", "duty/rota.py:6"),
        ("No method of `Rota` calls `is_away`.", "duty/rota.py:6"),
        ("`is_away` is not called by `free`.", "duty/rota.py:11"),
        ("`is_away` has no callers.", "duty/rota.py:6"),
        (
            "`is_away` asks each absence [duty/model.py:10]. It is called by no function of rota.py.",
            "duty/rota.py:11",
        ),
        (
            "`is_away` is not called by any method of `Rota`.",
            "duty/rota.py:6",
        ),
        ("`free` is not called by any method of rota.py.", ""),
        // The sentence is true or ambiguous.
        ("`is_away` is called by no function of weather.py.", ""),
        ("No method of `Absence` calls `is_away`.", ""),
        ("`is_away` is not called by `fill`.", ""),
        ("No class uses `free`.", ""),
        ("`extra_crew` calls nothing.", ""),
        ("Nothing is called by `free`.", ""),
        ("Nothing in `Rota` is used.", ""),
        ("Nothing calls `swap` of `Rota`.", ""),
        ("No function of weather.py calls `covers`.", ""),
        (
            "`is_away` asks `covers` [duty/model.py:10]. It is called by no function of rota.py.",
            "",
        ),
        ("It is called by no function of rota.py.", ""),
    ] {
        let found = refuted(sentence, &checker);
        assert_eq!(
            found.first().map_or("", String::as_str),
            place,
            "{sentence}"
        );
    }
}

#[test]
fn stated_call_is_refuted_if_the_caller_certainly_does_not_contain_it() {
    let (_dir, checker) = project();
    for (sentence, place) in [
        (
            "`extra_crew` is called by `fill` [duty/rota.py:14].",
            "duty/rota.py:14-15",
        ),
        (
            "`fill` calls `extra_crew` [duty/rota.py:15].",
            "duty/rota.py:14-15",
        ),
        (
            "The function `fill` also calls `extra_crew`.",
            "duty/rota.py:14-15",
        ),
        (
            "`fill` calls `free` [duty/rota.py:15] and `extra_crew` [duty/weather.py:4].",
            "duty/rota.py:14-15",
        ),
        // The call exists, another function holds a reference to the called function, or the sentence
        // is ambiguous.
        ("`fill` calls `free` [duty/rota.py:15].", ""),
        ("`is_away` is called by `free` [duty/rota.py:11].", ""),
        (
            "`Absence.covers` is called by `Member.is_away` [duty/model.py:10].",
            "",
        ),
        ("`retry` calls `fetch` [duty/weather.py:9].", ""),
        ("`again` calls `old` [duty/weather.py:31].", ""),
        ("`by_name` calls `extra_crew` [duty/weather.py:21].", ""),
        ("`guess` calls `Absence.covers` [duty/weather.py:35].", ""),
        ("`fill` calls `unknown` [duty/rota.py:15].", ""),
        (
            "The caller of `fill` calls `extra_crew` [duty/rota.py:15].",
            "",
        ),
        (
            "`fill` calls `extra_crew` of `Other` [duty/rota.py:15].",
            "",
        ),
        ("`fill` never calls `extra_crew` [duty/rota.py:15].", ""),
        (
            "If `fill` calls `extra_crew`, it is slower [duty/rota.py:15].",
            "",
        ),
        (
            "`fill` calls `extra_crew` through `free` [duty/rota.py:15].",
            "",
        ),
    ] {
        let found = refuted(sentence, &checker);
        assert_eq!(
            found.first().map_or("", String::as_str),
            place,
            "{sentence}"
        );
    }
    let text = "`fill` calls `free` [duty/rota.py:15] and `extra_crew` [duty/weather.py:4].";
    assert_eq!(
        Block::check(text, &checker).text,
        "`fill` calls `free` [duty/rota.py:15] and `extra_crew` [unverified]."
    );
}
