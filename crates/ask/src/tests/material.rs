//! The reader's initial context.

use super::bed::*;
use starling_core::Tokens;

async fn prompt(files: &[(&str, &str)], question: &str) -> String {
    let bed = Bed::of(files, Scripted::new([say("x")]));
    bed.ask(question).await;
    bed.model.prompt(0)
}

#[tokio::test]
async fn what_the_question_names_comes_first_with_its_uses() {
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
    // The users of the symbol come next.
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
async fn mentions_of_the_question_come_first() {
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
async fn an_attribute_has_uses_as_well() {
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
async fn a_class_written_as_a_word_is_seen() {
    let prompt = prompt(&[("shop.py", SHOP)], "What is a Cart for?").await;
    assert!(prompt.contains("    5     \"\"\"Goods.\"\"\""), "{prompt}");
}

#[tokio::test]
async fn a_long_symbol_shows_what_bears_the_words() {
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
async fn docstrings_make_way_for_code() {
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
async fn overloads_are_passed_over() {
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
async fn a_question_that_leads_nowhere_says_so() {
    let prompt = prompt(&[("shop.py", "x = 1\n")], "Zzyzx?").await;
    assert!(
        prompt.contains("No symbol was found by the words of the question."),
        "{prompt}"
    );
    assert!(prompt.contains("1 files: 1 at the top"), "{prompt}");
}

#[tokio::test]
async fn constants_are_names_as_well() {
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
async fn a_class_leaves_its_methods_to_themselves() {
    let doc = "        # weigh weigh weigh\n".repeat(60);
    let text =
        format!("class Cart:\n    kind = 1\n\n    def weigh(self):\n{doc}        return 1\n");
    let prompt = prompt(&[("shop.py", &text)], "What do `Cart` and `weigh` do?").await;
    let once = prompt.matches("# weigh weigh weigh").count();
    assert!((30..=60).contains(&once), "{once}: {prompt}");
}
