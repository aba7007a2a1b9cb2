//! Citations that are wrong and removed.

use super::fixture::{check, place};
use crate::block::Block;
use crate::cite::CitationChecker;

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
