//! Claims, and whether they need a citation.

use super::fixture::{EmptyProject, check};
use crate::cite::{claims, identifiers};

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
