use std::sync::Arc;

use super::*;
use starling_syntax::{FilePath, SymbolTree, omission_marks};

fn found(text: &str, name: &str) -> Found {
    let tree = Arc::new(SymbolTree::parse(FilePath::new("m.py"), text.into()));
    let symbol = tree.find(name).expect("a symbol").clone();
    Found { tree, symbol }
}

/// Returns a long function with the relevant line in its middle.
fn long() -> String {
    let filler = |from: usize| -> String {
        (from..from + 60)
            .map(|n| format!("        step_{n} = prepare({n})\n"))
            .collect()
    };
    format!(
        "def load(data, partial=None):\n    \"\"\"Load.\n\n    :param data: what it is\n    :param partial: names\n    \"\"\"\n    \
         if data:\n{}        if field.startswith(sub_partial):\n            keep(field)\n{}    return data\n",
        filler(0),
        filler(60)
    )
}

#[test]
fn short_symbol_is_shown_unchanged() {
    let found = found("# of f\ndef f(x):\n    return x\n", "f");
    let (text, cut) = excerpt(&found, &Focus::default(), Tokens(100));
    assert_eq!((text.as_str(), cut), (found.source(), false));
}

#[test]
fn symbol_slightly_over_the_limit_is_shown_whole() {
    let text = format!("def f(x):\n{}", "    x += 1\n".repeat(60));
    let found = found(&text, "f");
    let whole = Tokens::estimate(&text);
    let (_, cut) = excerpt(&found, &Focus::default(), Tokens(whole.0 * 9 / 10));
    assert!(!cut);
}

#[test]
fn docstrings_and_long_comments_are_cut_first() {
    let docs = "    Words that say nothing new.\n".repeat(30);
    let comments = "    # and more of them\n".repeat(20);
    let text = format!(
        "def f(x):\n    \"\"\"Doubles.\n\n{docs}    \"\"\"\n{comments}    y = x\n    # of z\n    z = y * 2\n    return z\n"
    );
    let found = found(&text, "f");
    let (shown, cut) = excerpt(&found, &Focus::default(), Tokens(90));
    assert!(cut);
    let expected = "def f(x):\n    \"\"\"Doubles.\n    # … lines 4-54 not shown\n    y = x\n    # of z\n    z = y * 2\n    return z\n";
    assert_eq!(shown, expected);
}

#[test]
fn lines_with_names_from_the_task_are_shown_with_their_enclosing_blocks() {
    let text = long();
    let found = found(&text, "load");
    let focus = Focus::of("Only names that start with `sub_partial` are kept.");
    let (shown, cut) = excerpt(&found, &focus, Tokens(200));
    assert!(cut && Tokens::estimate(&shown) < Tokens(260), "{shown}");
    for part in [
        "def load(data, partial=None):\n",
        "    if data:\n",
        "        if field.startswith(sub_partial):\n            keep(field)\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Without search words, the first lines are shown.
    let (shown, _) = excerpt(&found, &Focus::default(), Tokens(200));
    assert!(
        !shown.contains("sub_partial") && shown.contains("step_3 "),
        "{shown}"
    );
}

#[test]
fn omission_mark_names_exactly_the_omitted_lines() {
    let text = long();
    let found = found(&text, "load");
    let (shown, _) = excerpt(&found, &Focus::of("`sub_partial`"), Tokens(150));
    let all: Vec<&str> = text.lines().collect();
    let mut next = 1;
    for line in shown.lines() {
        match line.trim().strip_prefix("# … line") {
            Some(gap) => {
                let numbers = gap
                    .trim_start_matches('s')
                    .trim()
                    .trim_end_matches(" not shown");
                let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
                assert_eq!(first.parse(), Ok(next), "{shown}");
                next = last.parse::<usize>().unwrap() + 1;
            }
            None => {
                assert_eq!(line, all[next - 1], "{shown}");
                next += 1;
            }
        }
    }
    assert_eq!(next, all.len() + 1);
}

#[test]
fn omission_mark_copied_into_code_is_detected() {
    let text = format!("def f(x):\n{}", "    x += step(x)\n".repeat(99));
    let found = found(&text, "f");
    let (shown, _) = excerpt(&found, &Focus::default(), Tokens(150));
    assert!(
        !omission_marks(found.source(), &shown).is_empty(),
        "{shown}"
    );
}

#[test]
fn line_quoted_by_a_traceback_is_shown_first() {
    let text = long();
    let found = found(&text, "load");
    let traceback = "m.py:90: in load\n    step_82 = prepare(82)\nlib/x.py:3: in prepare\n    fail()\nTypeError: sub_partial";
    let (shown, _) = excerpt(&found, &Focus::of(traceback), Tokens(110));
    assert!(shown.contains("step_82 = prepare(82)"), "{shown}");
    // If the traceback quotes no source line, the line number decides.
    let (shown, _) = excerpt(&found, &Focus::of("/old/m.py:40: in load"), Tokens(110));
    assert!(shown.contains(text.lines().nth(39).unwrap()), "{shown}");
}

#[test]
fn shortened_class_shows_the_signatures_of_its_methods() {
    let body = "        x = 1\n".repeat(100);
    let text = format!(
        "class Big(Base):\n    LIMIT = 3\n\n    @property\n    def one(self):\n{body}\n    def two(self, y):\n{body}"
    );
    let found = found(&text, "Big");
    let (shown, cut) = excerpt(&found, &Focus::default(), Tokens(75));
    assert!(cut && !shown.contains("x = 1"), "{shown}");
    for part in [
        "class Big(Base):\n    LIMIT = 3\n",
        "    @property\n    def one(self):  # … lines 6-105 not shown\n",
        "    def two(self, y):  # … lines 108-207 not shown\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[test]
fn rarest_words_of_the_task_have_the_largest_weight() {
    let filler: String = (0..60)
        .map(|n| format!("    value_{n} = option.read({n})\n"))
        .collect();
    let text = format!("def f(option):\n{filler}    option.flag_value = rare\n{filler}");
    let found = found(&text, "f");
    let (shown, _) = excerpt(
        &found,
        &Focus::of("option() loses its flag_value"),
        Tokens(120),
    );
    assert!(shown.contains("option.flag_value = rare"), "{shown}");
}

/// Many matches of a name close together count more than an isolated match.
#[test]
fn cluster_of_matches_is_preferred_to_an_isolated_match() {
    let filler: String = (0..40)
        .map(|n| format!("    self.field_{n} = {n}\n"))
        .collect();
    let cluster = "    if (\n        default_map is None\n        and parent.default_map is not None\n    ):\n        \
                   default_map = parent.default_map.get(info, parent.default_map)\n    self.default_map = default_map\n";
    let lone = "    self.show_default = show_default\n";
    let text = format!("def f(self):\n{filler}{lone}{filler}{cluster}{filler}");
    let found = found(&text, "f");
    let task = "Keys of `default_map` leak, and `show_default` shows the wrong default too";
    let (shown, _) = excerpt(&found, &Focus::of(task), Tokens(140));
    assert!(shown.contains("parent.default_map.get(info"), "{shown}");
}

#[test]
fn file_in_an_unknown_language_is_shortened_too() {
    let text: String = (1..=300)
        .map(|n| format!("paragraph {n} of the manual\n"))
        .collect();
    let text = text.replace("paragraph 150 ", "the needle_word ");
    let tree = Arc::new(SymbolTree::parse(
        FilePath::new("m.rst"),
        text.as_str().into(),
    ));
    let symbol = tree.module().clone();
    let found = Found { tree, symbol };
    let (shown, _) = excerpt(&found, &Focus::of("needle_word"), Tokens(200));
    assert!(
        shown.contains("the needle_word of the manual") && shown.contains("paragraph 1 "),
        "{shown}"
    );
}

#[test]
fn excerpt_of_an_incomplete_or_tiny_text_does_not_panic() {
    for text in [
        "",
        "def f",
        "def f():\n\n\n",
        "def f(): return 1\n",
        "é = '\u{1F600}'\n",
        "class A:\n\tdef g(self):\n\t\tpass",
    ] {
        for most in [0, 1, 5, 40] {
            let tree = Arc::new(SymbolTree::parse(FilePath::new("m.py"), text.into()));
            for symbol in tree.symbols() {
                let found = Found {
                    tree: Arc::clone(&tree),
                    symbol: symbol.clone(),
                };
                excerpt(&found, &Focus::of(text), Tokens(most));
            }
        }
    }
}

#[test]
fn code_like_words_of_the_task_count_as_names() {
    let focus = Focus::of(
        "When `partial` is set, Schema.load(data) drops sub_partial of HttpResponse, it says",
    );
    let names = |line: &str| -> Vec<String> {
        let found = focus.in_line(line).into_iter();
        found
            .filter(|(_, worth)| *worth > 1)
            .map(|(word, _)| word.into_owned())
            .collect()
    };
    assert_eq!(
        names("partial Schema load sub_partial HttpResponse"),
        ["partial", "Schema", "load", "sub_partial", "HttpResponse"]
    );
    assert_eq!(names("says when drops data it set"), [""; 0]);
    assert_eq!(focus.shared_with("load, then load"), (1, 1));
}
