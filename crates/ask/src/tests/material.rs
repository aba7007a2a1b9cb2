//! Tests of the reader's initial context.

use super::fixture::*;
use starling_core::Tokens;

async fn prompt(files: &[(&str, &str)], question: &str) -> String {
    let project = AskTestProject::of(files, AskScriptedModel::new([say("x")]));
    project.ask(question).await;
    project.model.prompt(0)
}

#[tokio::test]
async fn symbol_named_in_the_question_comes_first_with_its_uses() {
    let files = [
        ("shop.py", SHOP),
        (
            "main.py",
            "from shop import Cart\n\n\ndef run(cart):\n    return cart.total()\n",
        ),
    ];
    let prompt = prompt(&files, "What calls `Cart.total`?").await;
    let first = prompt.split("best first:").nth(1).expect("excerpts").trim();
    assert!(
        first.starts_with("shop.py `shop.py::Cart.total`"),
        "{prompt}"
    );
    assert!(
        prompt.contains("Uses of `Cart.total`:\nmain.py:5 (run)"),
        "{prompt}"
    );
    assert!(!prompt.contains("Uses of `Cart`:"), "{prompt}");
    // The code that uses the symbol comes next.
    let next = first
        .match_indices(" lines ")
        .nth(1)
        .map(|(at, _)| &first[..at]);
    assert!(
        next.expect("a second").ends_with("`main.py::run`"),
        "{prompt}"
    );
}

#[tokio::test]
async fn files_mentioned_by_at_sign_and_symbols_mentioned_by_hash_sign_come_first() {
    let loud = "def shop_total(shop, total):\n    return shop + total\n";
    let quiet = "LIMIT = 3\n\n\ndef helper():\n    return 1\n";
    let files = [("shop.py", SHOP), ("loud.py", loud), ("quiet.py", quiet)];
    for (question, head) in [
        (
            "What has the shop total to do with @quiet.py?",
            "quiet.py lines 1-5",
        ),
        (
            "What has the shop total to do with #helper?",
            "quiet.py `quiet.py::helper` lines 4-5",
        ),
    ] {
        let prompt = prompt(&files, question).await;
        let first = prompt.split("best first:").nth(1).expect("excerpts").trim();
        assert!(first.starts_with(head), "{head}: {prompt}");
    }
}

#[tokio::test]
async fn uses_of_an_attribute_are_listed() {
    let prompt = prompt(
        &[("shop.py", &SHOP.replace("sum", "full_sum"))],
        "Who sets `full_sum`?",
    )
    .await;
    let uses =
        "Uses of `full_sum`:\n(by name; another `full_sum` may be meant)\nshop.py:8 (Cart.total)";
    assert!(prompt.contains(uses), "{prompt}");
}

#[tokio::test]
async fn class_named_without_backticks_is_found() {
    let prompt = prompt(&[("shop.py", SHOP)], "What is a Cart for?").await;
    assert!(prompt.contains("    5     \"\"\"Goods.\"\"\""), "{prompt}");
}

#[tokio::test]
async fn excerpt_of_a_long_symbol_contains_the_lines_that_match_the_question() {
    let mut body = String::new();
    for n in 0..400 {
        match n {
            300 => body.push_str("    elephant = cart.weigh()\n"),
            _ => body.push_str(&format!("    filler_{n} = 'nothing of note here at all'\n")),
        }
    }
    let doc = "    \"\"\"Pays.\n\n    Much is said here.\n    \"\"\"\n";
    let text = format!("def pay(cart):\n{doc}{body}    return elephant\n");
    let prompt = prompt(&[("big.py", &text)], "Where does pay weigh the elephant?").await;
    assert!(
        prompt.contains("  306     elephant = cart.weigh()"),
        "{prompt}"
    );
    assert!(prompt.contains("      …\n"), "{prompt}");
    assert!(Tokens::estimate(&prompt) < Tokens(6_000));
}

#[tokio::test]
async fn long_docstring_is_shortened_to_make_room_for_code() {
    let doc = "    More of it, and more of it again, as docstrings go.\n".repeat(150);
    let code = "    beta = alpha(cart)\n".repeat(20);
    let text = format!("def pay(cart):\n    \"\"\"Pays.\n{doc}    \"\"\"\n{code}    return beta\n");
    let prompt = prompt(&[("big.py", &text)], "What does pay do?").await;
    assert!(
        prompt.contains("return beta") && prompt.contains("\"\"\"Pays."),
        "{prompt}"
    );
    assert!(!prompt.contains("as docstrings go"), "{prompt}");
}

#[tokio::test]
async fn overload_stubs_are_skipped_in_favour_of_the_implementation() {
    let text = "from typing import overload\n\n\n@overload\ndef pay(cart: int) -> int: ...\n\n\n\
                def pay(cart):\n    return cart\n";
    let prompt = prompt(&[("shop.py", text)], "What does `pay` do?").await;
    let excerpts = prompt.split("Uses of").next().unwrap();
    assert!(
        excerpts.contains("shop.py::pay#2") && !excerpts.contains("@overload"),
        "{prompt}"
    );
}

#[tokio::test]
async fn prompt_says_so_if_the_question_matches_no_symbol() {
    let prompt = prompt(&[("shop.py", "x = 1\n")], "Zzyzx?").await;
    assert!(
        prompt.contains("No symbol was found by the words of the question."),
        "{prompt}"
    );
    assert!(prompt.contains("1 files: 1 at the top"), "{prompt}");
}

#[tokio::test]
async fn upper_case_word_of_the_question_matches_a_symbol() {
    let files = [
        ("shop.py", "def PROTECT(x):\n    raise ValueError(x)\n"),
        (
            "other.py",
            "def stop(delete):\n    # stop stop stop delete\n    return delete\n",
        ),
    ];
    let prompt = prompt(&files, "How does on_delete=PROTECT stop a delete?").await;
    let first = prompt.split("best first:").nth(1).expect("excerpts").trim();
    assert!(first.starts_with("shop.py `shop.py::PROTECT`"), "{prompt}");
}

#[tokio::test]
async fn source_of_a_method_is_not_repeated_in_the_excerpt_of_its_class() {
    let doc = "        # weigh weigh weigh\n".repeat(60);
    let text =
        format!("class Cart:\n    kind = 1\n\n    def weigh(self):\n{doc}        return 1\n");
    let prompt = prompt(&[("shop.py", &text)], "What do `Cart` and `weigh` do?").await;
    let once = prompt.matches("# weigh weigh weigh").count();
    assert!((30..=60).contains(&once), "{once}: {prompt}");
}
