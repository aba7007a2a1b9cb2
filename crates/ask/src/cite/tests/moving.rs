//! Citations that are moved to the right line, and citations that stay.

use super::fixture::{check, place, places};
use crate::block::{Block, FlawKind};
use crate::cite::CitationChecker;
use starling_workspace::Snapshot;

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

/// An enumeration, and a function that returns its members.
const WEATHER: &str = "class Warning(Enum):
    NONE = 0
    HEAT = 2
    ICE = 3


def warning(self):
    if self.high >= 32:
        return Warning.HEAT
    if self.low < 0:
        return Warning.ICE
    if self.text:
        return self.text
    return Warning.NONE
";

#[test]
fn citation_of_a_member_is_moved_to_a_line_that_contains_the_member_and_not_only_its_class() {
    let place = place();
    let file = starling_syntax::FilePath::new("weather.py");
    let checker = CitationChecker::new(place.files.clone().with(file, Some(WEATHER.into())));
    for (text, expected) in [
        // Line 10 is the condition. The lines before and after it contain `Warning`.
        ("`Warning.ICE` needs a low below 0 [weather.py:10].", ""),
        ("`Warning.ICE` needs a frost [weather.py:11].", ""),
        (
            "`Warning.ICE` needs a frost [weather.py:10].",
            "`Warning.ICE` needs a frost [weather.py:11].",
        ),
        (
            "`Warning.NONE` needs neither [weather.py:13].",
            "`Warning.NONE` needs neither [weather.py:14].",
        ),
    ] {
        let expected = if expected.is_empty() { text } else { expected };
        assert_eq!(Block::check(text, &checker).text, expected);
    }
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
