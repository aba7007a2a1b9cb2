use proptest::prelude::*;

use super::*;
use crate::block::{Block, FlawKind, blocks};
use starling_workspace::{Snapshot, Workspace};

const SHOP: &str = "RATE = 2


class Cart:
    \"\"\"Goods.\"\"\"

    def total(self):
        return RATE * self.sum


def pay(cart):
    # The till is open.
    return cart.total()
";

/// Paths that contain unusual characters.
const ODD: [&str; 4] = [
    "story kit/line 4/chair.py",
    "50% \"off\"/it's [new].py",
    "c#/ünï `cödé`.py",
    "(old)/sofa + bed",
];

/// A temporary project, with a checker and a snapshot of its files.
struct CitationProject {
    _dir: tempfile::TempDir,
    checker: CitationChecker,
    files: Snapshot,
}

fn place() -> CitationProject {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("lib/deep")).unwrap();
    std::fs::write(dir.path().join("lib/shop.py"), SHOP).unwrap();
    std::fs::write(dir.path().join("lib/deep/till.py"), "OPEN = 1\n").unwrap();
    std::fs::write(dir.path().join("Makefile"), "all:\n\ttrue\n").unwrap();
    std::fs::write(dir.path().join("lib/deep/runner"), "OPEN=1\n").unwrap();
    std::fs::write(dir.path().join(".env"), "KEY=1\n").unwrap();
    for odd in ODD {
        std::fs::create_dir_all(dir.path().join(odd).parent().unwrap()).unwrap();
        std::fs::write(dir.path().join(odd), "SEATS = 1\n\n\ndef sit(): pass\n").unwrap();
    }
    std::fs::write(dir.path().join(".flake8"), "[flake8]\n").unwrap();
    let root = dir.path().canonicalize().unwrap();
    let files = Workspace::open(root).unwrap().snapshot(Default::default());
    CitationProject {
        _dir: dir,
        checker: CitationChecker::new(files.clone()),
        files,
    }
}

fn check(text: &str) -> Block {
    Block::check(text, &place().checker)
}

fn places(text: &str) -> Vec<String> {
    check(text).citations.iter().map(Citation::place).collect()
}

/// A project without files.
struct EmptyProject;

impl Files for EmptyProject {
    fn is_file(&self, _: &str) -> bool {
        false
    }

    fn paths_in(&self, _: &str) -> Vec<std::ops::Range<usize>> {
        Vec::new()
    }
}

fn found(text: &str) -> Vec<(String, Vec<(u32, u32)>)> {
    marks(text, &EmptyProject)
        .into_iter()
        .map(|m| (m.path, m.lines))
        .collect()
}

#[test]
fn citations_are_found_in_every_notation() {
    let one = |lines| vec![("a/b.py".to_owned(), vec![lines])];
    assert_eq!(found("x [a/b.py:12]."), one((12, 12)));
    assert_eq!(found("x (a/b.py:12-18)."), one((12, 18)));
    assert_eq!(found("x `a/b.py:12–18`."), one((12, 18)));
    assert_eq!(found("x a/b.py:18-12, and"), one((12, 18)));
    assert_eq!(found("x a/b.py:12:5: error"), one((12, 12)));
    assert_eq!(found("x a/b.py#L12-L18"), one((12, 18)));
    assert_eq!(found("x a/b.py::C.f:12"), one((12, 12)));
    assert_eq!(found("x `a/b.py` line 12"), one((12, 12)));
    assert_eq!(found("x a/b.py, line 12 is"), one((12, 12)));
    let two = vec![("a/b.py".to_owned(), vec![(3, 3), (9, 12)])];
    assert_eq!(found("[a/b.py:3, 9-12]"), two);
    assert_eq!(found("[a/b.py:3,9-12]"), two);
    assert_eq!(found("[a.py:3, b.py:9]").len(), 2);
    assert_eq!(found("[a.py:3][b.py:9]").len(), 2);
}

#[test]
fn text_that_resembles_a_citation_is_not_a_citation() {
    for text in [
        "at 10:30 there were 3",
        "http://localhost:8000/x",
        "127.0.0.1:80",
        "a ratio of 2:1",
        "line 12 of it",
        "a.py",
        "x[1:2]",
        "{1: 2}",
        "é:1",
        "note:3",
        "see the note, line 3",
        ".NET:6",
        "...env:3",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn correct_citation_is_kept_and_reports_its_symbol() {
    let block = check("`pay` adds up by `total()` [lib/shop.py:13].");
    assert_eq!(block.text, "`pay` adds up by `total()` [lib/shop.py:13].");
    let citation = &block.citations[0];
    assert_eq!((citation.line, citation.last_line), (13, 13));
    assert_eq!(citation.symbol, "pay");
    assert_eq!(citation.text, "return cart.total()");
    assert!(block.moved.is_empty() && block.wrong.is_empty());
}

#[test]
fn cited_line_that_is_slightly_off_is_corrected() {
    let block = check("`RATE` is two [lib/shop.py:4].");
    assert_eq!(block.text, "`RATE` is two [lib/shop.py:1].");
    let written = ("lib/shop.py:4".to_owned(), "lib/shop.py:1".to_owned());
    assert_eq!(block.moved, [written]);
    // A citation of blank lines moves to the code next to them.
    assert_eq!(
        places("`Cart` holds goods [lib/shop.py:2-3]."),
        ["lib/shop.py:4-5"]
    );
}

#[test]
fn cited_path_may_contain_spaces_and_special_characters() {
    for file in ODD {
        for text in [
            format!("`SEATS` is one [{file}:1]."),
            format!("`SEATS` is one ({file}:1, lib/shop.py:1) as `RATE` is."),
            format!("`SEATS` is one `{file}:1`."),
            format!("In {file}:1 `SEATS` is one. `sit` is below [{file}::sit:4]."),
        ] {
            let block = check(&text);
            assert!(
                block.wrong.is_empty() && block.moved.is_empty(),
                "{text} {block:#?}"
            );
            assert_eq!(block.citations[0].place(), format!("{file}:1"), "{text}");
            assert_eq!(block.text, text.replace("::sit", ""), "{text}");
        }
        let quoted = check(&format!("In `{file}` line 1 `SEATS` is one."));
        assert_eq!(quoted.text, format!("In {file}:1 `SEATS` is one."));
        let mended = check(&format!("`sit` is one [{file}:2]. `SEATS` [{file}:90]."));
        let expected = format!("`sit` is one [{file}:4]. `SEATS` [unverified].");
        assert_eq!(mended.text, expected);
    }
    let root = place();
    let text = format!(
        "`SEATS` is one [{}/{}:1].",
        root.files.root().display(),
        ODD[0]
    );
    assert_eq!(
        Block::check(&text, &root.checker).text,
        format!("`SEATS` is one [{}:1].", ODD[0])
    );
    // A path does not match in the middle of another path.
    assert_eq!(
        check("`SEATS` is one [4/chair.py:1].").text,
        "`SEATS` is one [unverified]."
    );
}

#[test]
fn citation_of_a_line_outside_the_symbol_that_the_claim_names_is_moved_into_that_symbol() {
    // The cited line 11 is `def pay(cart):`.
    assert_eq!(
        places("`Cart.total` multiplies [lib/shop.py:11]."),
        ["lib/shop.py:7"]
    );
    assert_eq!(
        places("`Cart.total()` comes next [lib/shop.py::Cart.total:13]."),
        ["lib/shop.py:7"]
    );
    // Not moved: the cited line calls `total` or contains another word of the claim, or the claim's
    // symbol is not in this file.
    for right in [
        "`Cart.total` is asked for [lib/shop.py:13].",
        "`Cart.total` comes when the till is open [lib/shop.py:12].",
        "`Cart.total` belongs to it [lib/shop.py:4-13].",
    ] {
        assert!(check(right).moved.is_empty(), "{right}");
    }
}

/// Two classes with a method of the same name.
const UNITS: &str = "class Warrior:
    def strike(self, target):
        return target.hurt(self.power)


class Mage:
    def strike(self, target):
        if not self.spend(2):
            return 0
        target.burn()
        return target.hurt(self.power)


class Cleric:
    def bless(self):
        pass


def duel(one, other):
    turns = 0
    while turns < 9:
        one.strike(other)
        turns += 1
    return tally(one)
";

#[test]
fn a_citation_is_moved_only_within_the_symbol_that_the_claim_names() {
    let place = place();
    let file = starling_syntax::FilePath::new("units.py");
    let files = place.files.with(file, Some(UNITS.into()));
    let checker = CitationChecker::new(files);
    let shown = |text: &str| Block::check(text, &checker).text;
    for (text, expected) in [
        // Line 13 is after the end of `Mage.strike`. The sentence names `Warrior.strike` first, but
        // that is not the symbol of the second citation.
        (
            "`hurt` is called by `Warrior.strike` [units.py:3], `Mage.strike` [units.py:13] and others.",
            "`hurt` is called by `Warrior.strike` [units.py:3], `Mage.strike` [units.py:11] and others.",
        ),
        (
            "`Mage.strike` [units.py:15] and `Warrior.strike` [units.py:3] call `hurt`.",
            "`Mage.strike` [units.py:11] and `Warrior.strike` [units.py:3] call `hurt`.",
        ),
        (
            "`Mage.strike` calls `hurt` [units.py:9].",
            "`Mage.strike` calls `hurt` [units.py:11].",
        ),
        (
            "`Mage.strike` calls `spend` [units.py:10].",
            "`Mage.strike` calls `spend` [units.py:8].",
        ),
        (
            "`duel` calls `tally` [units.py:20].",
            "`duel` calls `tally` [units.py:24].",
        ),
        // Not moved: the cited line contains the name, or the cited line defines the symbol, or no
        // line of the symbol contains the name.
        ("`Mage.strike` calls `burn` [units.py:10].", ""),
        (
            "`Mage.strike` ends with a target that `burn` hurts [units.py:11].",
            "",
        ),
        ("`Mage.strike` calls `hurt` [units.py:7].", ""),
        (
            "`duel` is fair [units.py:19] and calls `tally` [units.py:24].",
            "",
        ),
        ("`Mage.strike` calls `bless` [units.py:9].", ""),
    ] {
        let expected = if expected.is_empty() { text } else { expected };
        assert_eq!(shown(text), expected);
    }
}

/// A module whose lines share plain words with claims about other code.
const LOTS: &str = "import math
import datetime

MAX_AGE = 90


class Lot:
    \"\"\"Seed potatoes, and crates of it.\"\"\"

    def from_row(row):
        received = row[1]
        return Lot(received)


def describe(lots):
    return [str(lot) for lot in lots]


def is_too_old(lot, today):
    return (today - lot.received).days > MAX_AGE
";

#[test]
fn citation_is_wrong_if_the_cited_lines_share_only_plain_words_with_a_claim_about_other_code() {
    let place = place();
    let file = starling_syntax::FilePath::new("lots.py");
    let checker = CitationChecker::new(place.files.with(file, Some(LOTS.into())));
    let shown = |text: &str| Block::check(text, &checker).text;
    for (text, expected) in [
        // The file defines the function that the claim is about, so the citation is moved to the
        // definition.
        (
            "`is_too_old` compares with it (lots.py:1).",
            "`is_too_old` compares with it (lots.py:19).",
        ),
        (
            "`is_too_old` compares the dates of it (lots.py:8).",
            "`is_too_old` compares the dates of it (lots.py:19).",
        ),
        (
            "`is_too_old` decides by what was received (lots.py:11).",
            "`is_too_old` decides by what was received (lots.py:19).",
        ),
        // The file does not contain the name.
        (
            "`save_lots` writes the lots (lots.py:15).",
            "`save_lots` writes the lots (unverified).",
        ),
        (
            "`main` opens the lots (lots.py:16).",
            "`main` opens the lots (unverified).",
        ),
        // The file only imports the module of the named function and never calls the function.
        (
            "`crates_for` rounds up with `math.ceil` (lots.py:15).",
            "`crates_for` rounds up with `math.ceil` (unverified).",
        ),
        // Not moved: the claim names the file's module, or the cited line is inside the symbol that
        // the claim names.
        ("`lots` describes what was received (lots.py:11).", ""),
        ("`is_too_old` counts days (lots.py:20).", ""),
        ("`MAX_AGE` is in days (lots.py:4).", ""),
        ("A `Lot` is made of a row (lots.py:11).", ""),
    ] {
        let expected = if expected.is_empty() { text } else { expected };
        assert_eq!(shown(text), expected);
    }
}

#[test]
fn citation_is_kept_if_the_code_near_it_contains_a_name_from_the_claim() {
    // Not moved: the quoted code or the definition is next to a cited line that has another name of
    // the claim.
    for right in [
        "They are kept in `RATE * self` and read by `pay` [lib/shop.py:11].",
        "It is `RATE * self.sum` of the `cart` [lib/shop.py:11-13].",
        "\"The till is open\" is said before `total` is asked [lib/shop.py:13].",
    ] {
        assert!(check(right).moved.is_empty(), "{right}");
    }
}

/// Files without symbols, and a module with decorators.
const PAGE: [(&str, &str); 3] = [
    (
        "garden.js",
        "// Filters the list.\nfunction filterPlots(items, text) {\n  const wanted = text.toLowerCase();\n\
         \n  return items.filter(item => item.indexOf(wanted) > 0);\n}\n",
    ),
    (
        "templates/index.html",
        "<!doctype html>\n<title>Garden</title>\n<ul>\n{% for plot in plots %}\n\
         <li>{{ plot.yearly_fee() }} EUR</li>\n{% endfor %}\n</ul>\n",
    ),
    (
        "app.py",
        "def create_app():\n    app = make()\n\n    @app.get(\"/position\")\n    def where(email):\n\
         \x20       \"\"\"Place.\"\"\"\n        return g.waiting.position(email)\n",
    ),
];

#[test]
fn right_citation_stays_and_the_name_of_a_file_is_no_evidence_for_a_line() {
    let place = place();
    let with = |files: Snapshot, (name, text): (&str, &str)| {
        files.with(starling_syntax::FilePath::new(name), Some(text.into()))
    };
    let checker = CitationChecker::new(PAGE.into_iter().fold(place.files.clone(), with));
    for right in [
        "`filterPlots` misses it because it compares with `> 0` (garden.js:5).",
        "`filterPlots` lowers what is looked for (garden.js:3).",
        "filterPlots compares with zero (garden.js:5).",
        "The page index.html prints the fee (templates/index.html:5).",
        "The page `templates/index.html` prints the fee (templates/index.html:5).",
        "Only `app.py` calls it (app.py:7).",
        "app.py calls it at the end (app.py:7).",
    ] {
        let block = Block::check(right, &checker);
        assert_eq!(block.text, right);
        assert!(block.moved.is_empty() && block.wrong.is_empty(), "{right}");
    }
    for (text, expected) in [
        (
            "`filterPlots` is the function (garden.js:6).",
            "`filterPlots` is the function (garden.js:2).",
        ),
        (
            "index.html prints `yearly_fee` (templates/index.html:2).",
            "index.html prints `yearly_fee` (templates/index.html:5).",
        ),
    ] {
        assert_eq!(Block::check(text, &checker).text, expected);
    }
}

/// A class whose method calls a method of another file.
const PLUGIN: &str = "from .base import Text


class TextConverter(Text):
    def dump(self, recipe):
        \"\"\"Write it.\"\"\"
        lines = [recipe.name]
        lines.append(recipe.style)
        for h in recipe.hop_schedule():
            lines.append(str(h))
        if not lines:
            raise ValueError(recipe)
        return lines


def replay(broker, path):
    for line in open(path):
        broker.publish(line)
        count = len(line)
        print(count)
";

#[test]
fn citation_of_a_line_that_the_sentence_names_is_kept_and_one_beside_the_named_line_is_moved() {
    let place = place();
    let file = starling_syntax::FilePath::new("plugin.py");
    let checker = CitationChecker::new(place.files.clone().with(file, Some(PLUGIN.into())));
    for (text, expected) in [
        (
            "`TextConverter.dump` calls `hop_schedule` (plugin.py:9) and loops over the result, so `None` \
             would raise a `TypeError` there (plugin.py:9).",
            "",
        ),
        (
            "`dump` calls `hop_schedule` (plugin.py:9), so `None` would raise a `TypeError` (plugin.py:9).",
            "",
        ),
        // The method itself contains the name of Python.
        (
            "`TextConverter.dump` calls `hop_schedule` (plugin.py:9), and raises a `ValueError` if there \
             is nothing (plugin.py:9).",
            "`TextConverter.dump` calls `hop_schedule` (plugin.py:9), and raises a `ValueError` if there \
             is nothing (plugin.py:12).",
        ),
        (
            "`Broker.publish` is called by `replay` (plugin.py:19).",
            "`Broker.publish` is called by `replay` (plugin.py:18).",
        ),
        ("`Broker.publish` is called by `replay` (plugin.py:18).", ""),
        ("`replay` measures each one (plugin.py:19).", ""),
    ] {
        let expected = if expected.is_empty() { text } else { expected };
        assert_eq!(Block::check(text, &checker).text, expected);
    }
}

#[test]
fn short_path_is_completed_and_line_range_is_clipped_to_the_file() {
    assert_eq!(
        places("`pay` it is [shop.py:11-99]."),
        ["lib/shop.py:11-13"]
    );
    assert_eq!(places("`OPEN` is one [till.py:1]."), ["lib/deep/till.py:1"]);
}

#[test]
fn citation_of_a_missing_file_or_line_is_removed() {
    for wrong in [
        "`pay` works [lib/gone.py:1].",
        "`pay` works [lib/shop.py:99].",
        "`pay` works [lib/shop.py:0].",
        "`pay` works [lib/deep/till.py:1].",
        "`pay` works [../../etc/passwd:1].",
    ] {
        let block = check(wrong);
        assert_eq!(block.text, "`pay` works [unverified].", "{wrong}");
        assert_eq!(block.wrong.len(), 1, "{wrong}");
        assert!(block.citations.is_empty(), "{wrong}");
    }
    assert_eq!(
        check("`pay` works lib/gone.py:1.").text,
        "`pay` works [unverified]."
    );
}

#[test]
fn citations_of_dotfiles_and_files_without_an_extension_are_checked() {
    for wrong in [
        "Makefile:999",
        "Dockerfile:42",
        "LICENSE:7",
        "id_rsa:4",
        ".env:77",
        ".npmrc:3",
        ".git/config:1",
        "lib/deep/runner:9",
        "runner:9",
    ] {
        for text in [format!("It is so [{wrong}]."), format!("It is so {wrong}.")] {
            let block = check(&text);
            assert_eq!(block.text, "It is so [unverified].", "{text}");
            assert_eq!(block.wrong.len(), 1, "{text}");
        }
    }
    // A file that a model may not read cannot support a claim.
    assert_eq!(check("It is so [.env:1].").wrong.len(), 1);
    assert_eq!(places("It builds all [Makefile:1]."), ["Makefile:1"]);
    assert_eq!(places("It builds all (Makefile, line 1)."), ["Makefile:1"]);
    assert_eq!(places("It is set up [.flake8:1]."), [".flake8:1"]);
    assert_eq!(places("`OPEN` is one [runner:1]."), ["lib/deep/runner:1"]);
    assert_eq!(places("`pay` it is .lib/shop.py:11."), ["lib/shop.py:11"]);
    let prose = "A note:3 of it, at .5:3, in .NET:6 and step:2.";
    assert_eq!(check(prose).text, prose);
}

#[test]
fn only_the_wrong_citation_among_correct_ones_is_removed() {
    let block = check("`pay` and `total` [lib/shop.py:11, lib/gone.py:3].");
    assert_eq!(
        block.text,
        "`pay` and `total` [lib/shop.py:11, unverified]."
    );
    assert_eq!(block.citations.len(), 1);
    let block = check("`pay` and `total` [lib/shop.py:11,99].");
    assert_eq!(block.text, "`pay` and `total` [lib/shop.py:11].");
    assert_eq!(block.wrong.len(), 1);
}

#[test]
fn citation_of_a_claim_without_symbol_names_is_kept() {
    assert_eq!(places("Otherwise once [lib/shop.py:8]."), ["lib/shop.py:8"]);
    assert_eq!(
        places("While the till is open, one pays [lib/shop.py:12]."),
        ["lib/shop.py:12"]
    );
    // The second citation is checked by the words of its own part of the sentence, not by `RATE`,
    // which belongs to the first citation.
    let list = "`RATE` stands at the top [lib/shop.py:1], the goods below [lib/shop.py:5].";
    assert_eq!(places(list), ["lib/shop.py:1", "lib/shop.py:5"]);
}

#[test]
fn text_is_split_into_sentences_outside_of_code_and_abbreviations() {
    let claim_texts = |text: &str| -> Vec<String> {
        let claims = claims(text, &EmptyProject);
        claims
            .iter()
            .map(|c| text[c.span.clone()].trim().to_owned())
            .collect()
    };
    assert_eq!(
        claim_texts("One is, e.g. `a.b. C`, here [a.py:1]. Two! [b.py:2] Three."),
        [
            "One is, e.g. `a.b. C`, here [a.py:1].",
            "Two! [b.py:2]",
            "Three."
        ]
    );
    assert_eq!(claim_texts("1. First. Second."), ["1. First.", "Second."]);
    let text = "It is so. [a.py:1]";
    assert_eq!(claims(text, &EmptyProject).len(), 1);
    assert_eq!(claims(text, &EmptyProject)[0].cited.len(), 1);
}

#[test]
fn code_identifiers_are_distinguished_from_prose() {
    let names = |text: &str| identifiers(text).into_iter().collect::<Vec<_>>();
    assert_eq!(
        names("The `Cart.total` calls pay() and max_size of HttpResponse"),
        ["Cart", "HttpResponse", "max_size", "pay", "total"]
    );
    assert_eq!(names("The HTTP cart. A total of it."), Vec::<String>::new());
    assert_eq!(names("`self` or `None`"), Vec::<String>::new());
}

#[test]
fn claim_needs_a_citation_unless_it_says_that_something_does_not_exist() {
    let uncited = |text: &str| check(text).uncited(&Default::default()).len();
    assert_eq!(uncited("`pay` runs twice."), 1);
    assert_eq!(uncited("`pay` is never run."), 0);
    assert_eq!(uncited("`pay` never raises an error."), 1);
    assert_eq!(uncited("That is all."), 0);
    assert_eq!(uncited("`pay` runs. It adds up [lib/shop.py:13]."), 0);
    assert_eq!(uncited("It adds up [lib/shop.py:13]. `Cart` is slow."), 1);
}

#[test]
fn uncited_claim_after_a_cited_sentence_is_marked() {
    let marked = |text: &str| check(text).marked(&["pay".to_owned()].into());
    for (text, expected) in [
        (
            "`pay` adds up [lib/shop.py:13]. `pay` doubles the rate.",
            "`pay` adds up [lib/shop.py:13]. `pay` doubles the rate. [uncited]",
        ),
        (
            "`pay` adds up [lib/shop.py:13]. The till opens every morning at eight. It closes at noon when nobody waits.",
            "`pay` adds up [lib/shop.py:13]. The till opens every morning at eight. [uncited] It closes at noon when nobody waits. [uncited]",
        ),
        (
            "The receipts are printed twice every single day.",
            "The receipts are printed twice every single day. [uncited]",
        ),
        // Not marked: a sentence before a cited one shares its citation; summaries, denials and
        // short remarks are not claims.
        (
            "The till opens every morning at eight. `pay` adds up [lib/shop.py:13].",
            "",
        ),
        ("In short, `pay` does it.", ""),
        (
            "`pay` adds up [lib/shop.py:13]. It is never called again by any of them.",
            "",
        ),
        ("`pay` adds up [lib/shop.py:13]. That is all.", ""),
        // A citation supports neither an earlier sentence that follows another citation, nor later
        // sentences.
        (
            "`pay` adds up [lib/shop.py:13]. The route then answers 500. `Cart` holds goods [lib/shop.py:4].",
            "`pay` adds up [lib/shop.py:13]. The route then answers 500. [uncited] `Cart` holds goods [lib/shop.py:4].",
        ),
        // A sentence that says what named code does not do is a claim about that code, so it needs
        // a citation.
        (
            "`Cart` adds up [lib/shop.py:8]. `pay` never raises an error either.",
            "`Cart` adds up [lib/shop.py:8]. `pay` never raises an error either. [uncited]",
        ),
        (
            "`Cart` and `pay` don't round the sum.",
            "`Cart` and `pay` don't round the sum. [uncited]",
        ),
        (
            "In short, `pay` doesn't round the sum.",
            "In short, `pay` doesn't round the sum. [uncited]",
        ),
        (
            "With a `RATE` of 2 a loss cannot happen in practice.",
            "With a `RATE` of 2 a loss cannot happen in practice. [uncited]",
        ),
        (
            "There is no other `RATE`, and no caller of `Cart` is known.",
            "",
        ),
        ("The booking of a room takes these three steps:", ""),
        ("# How the rooms of the house are booked", ""),
    ] {
        let expected = if expected.is_empty() { text } else { expected };
        assert_eq!(marked(text), expected);
    }
}

#[test]
fn citation_is_moved_to_the_line_that_its_sentence_quotes() {
    for (text, expected) in [
        (
            "It has `return RATE * self.sum` [lib/shop.py:7].",
            "lib/shop.py:8",
        ),
        (
            "The total is `RATE * self.sum` (lib/shop.py:10).",
            "lib/shop.py:8",
        ),
        (
            "In lib/shop.py:6 stands `def total(self):`.",
            "lib/shop.py:7",
        ),
        (
            "It says \"The till is open\" [lib/shop.py:11].",
            "lib/shop.py:12",
        ),
        (
            "`return   RATE *  self.sum` is it [lib/shop.py:4-7].",
            "lib/shop.py:4-8",
        ),
        // The line after the cited line contains the name.
        ("`sum` counts [lib/shop.py:7].", "lib/shop.py:8"),
        // Not moved: the cited line contains the text, or the text is not marked as a quote.
        (
            "It has `return RATE * self.sum` [lib/shop.py:8].",
            "lib/shop.py:8",
        ),
        ("`total` is asked [lib/shop.py:13].", "lib/shop.py:13"),
        (
            "It calls `cart.total(1, 2)` [lib/shop.py:13].",
            "lib/shop.py:13",
        ),
    ] {
        assert_eq!(places(text), [expected], "{text}");
    }
    let block = check("It has `total = self.sum + 1` [lib/shop.py:8].");
    assert_eq!(block.text, "It has `total = self.sum + 1` [unverified].");
    let FlawKind::WrongCitation(dropped) = &block.wrong[0].what else {
        panic!("{block:#?}")
    };
    assert!(
        dropped.why.ends_with("does not stand in the file"),
        "{}",
        dropped.why
    );
}

#[test]
fn text_is_split_into_paragraphs_list_items_and_code_fences() {
    let text = "One\ntwo.\n\n- a\n  b\n- c\n\n```py\n- x\n\ny\n```\nend\n1. z\n";
    let parts = blocks(text);
    assert_eq!(parts.concat(), text);
    assert_eq!(
        parts,
        [
            "One\ntwo.\n\n",
            "- a\n  b\n",
            "- c\n\n",
            "```py\n- x\n\ny\n```\n",
            "end\n",
            "1. z\n"
        ]
    );
    // Code blocks are shown unchanged.
    assert!(check("```\nlib/gone.py:3\n```\n").wrong.is_empty());
}

#[test]
fn replaced_claim_keeps_its_position_in_the_block() {
    let block = check("- `pay` works [lib/gone.py:1].\n");
    let span = block.wrong[0].span.clone();
    assert_eq!(
        block.replaced(vec![(span.clone(), "`pay` works [lib/shop.py:11].".into())]),
        "- `pay` works [lib/shop.py:11].\n"
    );
    assert_eq!(block.replaced(vec![(span, String::new())]).trim(), "");
}

/// Generates fragments of answers. Joined together, they form valid and invalid answers.
fn bit() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("`pay` adds up by `total` [lib/shop.py:13]. ".to_owned()),
        Just("[lib/shop.py:".to_owned()),
        Just("]".to_owned()),
        Just("`".to_owned()),
        Just("```\n".to_owned()),
        Just("\n\n- ".to_owned()),
        Just("::".to_owned()),
        Just(". ".to_owned()),
        "(lib/)?(shop|gone|till)\\.py:[0-9]{1,12}([-,][0-9]{1,3})?",
        "\\.?(Makefile|env|flake8|runner|note):[0-9]{1,2}",
        "\\PC{0,6}",
    ]
}

#[test]
fn every_citation_in_a_checked_block_exists() {
    let place = place();
    let config = ProptestConfig::with_cases(10_000);
    proptest!(config, |(bits in proptest::collection::vec(bit(), 0..12))| {
        let text = bits.concat();
        let parts = blocks(&text);
        prop_assert_eq!(parts.concat(), text.clone());
        for part in parts {
            let block = Block::check(part, &place.checker);
            for citation in &block.citations {
                let file = starling_syntax::FilePath::new(&citation.path);
                let source = place.files.read(&file).expect("a cited file exists");
                let line = source.lines().nth(citation.line as usize - 1);
                prop_assert_eq!(line.map(str::trim), Some(citation.text.as_str()));
                prop_assert!(citation.last_line >= citation.line);
                prop_assert!(citation.last_line as usize <= source.lines().count());
            }
            // A valid block stays valid and unchanged when checked again.
            if block.wrong.is_empty() {
                let again = Block::check(&block.text, &place.checker);
                prop_assert!(again.wrong.is_empty());
                prop_assert_eq!(&again.text, &block.text);
            }
            let _ = block.marked(&Default::default());
        }
    });
}
