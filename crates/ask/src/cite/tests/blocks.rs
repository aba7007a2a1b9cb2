//! Blocks of an answer, with generated answers.

use proptest::prelude::*;

use super::fixture::{check, place};
use crate::block::{Block, blocks};

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

#[test]
fn deleted_claim_leaves_no_white_space_and_keeps_the_bullet_of_its_item() {
    let pay = "`pay` works [lib/shop.py:11].";
    let wrong = "`pay` waits [lib/gone.py:1].";
    for (text, expected) in [
        (format!("{pay} {wrong} {pay}"), format!("{pay} {pay}")),
        (format!("{wrong} {pay}\n\n"), format!("{pay}\n\n")),
        (format!("{pay} {wrong}\n\n"), format!("{pay}\n\n")),
        (format!("- {wrong} {pay}\n"), format!("- {pay}\n")),
        (format!("{pay}\n{wrong} {pay}"), format!("{pay} {pay}")),
        (format!("{wrong} {wrong} {pay}"), pay.to_owned()),
    ] {
        let block = check(&text);
        let wrong = block
            .wrong
            .iter()
            .map(|flaw| (flaw.span.clone(), String::new()));
        assert_eq!(block.replaced(wrong.collect()), expected, "{text}");
    }
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
