//! Property tests of imports and omission marks.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::super::super::flaw::flaws;
use super::super::super::omission_marks;
use super::*;

fn runner(seed: u64) -> TestRunner {
    TestRunner::new(Config {
        cases: 600,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    })
}

/// Generates a valid Python module: a docstring, `__future__` imports, then statements of many
/// kinds.
fn module() -> impl Strategy<Value = String> {
    let head = prop::sample::select(vec!["", "\"\"\"Doc.\"\"\"\n", "#!/bin/python\n# c\n\n"]);
    let future = prop::sample::select(vec!["", "from __future__ import annotations\n"]);
    let statement = prop::sample::select(vec![
        "import a\n",
        "import a.b as c, d\n",
        "from a import b\n",
        "from a import (b)  # why\n",
        "from a import (\n    b,\n    c as d,\n)\n",
        "from . import e\n",
        "from ..p import *\n",
        "try:\n    import f\nexcept ImportError:\n    f = None\n",
        "if x:\n    import g\n",
        "x = 1; import h\n",
        "\n",
        "# a comment\n",
        "@x\ndef i():\n    import a\n",
        "class J:\n    from a import b\n",
    ]);
    let body = prop::collection::vec(statement, 0..8);
    let ends = prop::sample::select(vec!["\n", "\r\n"]);
    (head, future, body, ends, any::<bool>()).prop_map(|(head, future, body, end, whole)| {
        let text = format!("{head}{future}{}", body.concat());
        let text = if whole {
            text
        } else {
            text.trim_end().to_owned()
        };
        text.replace('\n', end)
    })
}

fn statements() -> impl Strategy<Value = Vec<&'static str>> {
    let statement = prop::sample::select(vec![
        "import a",
        "import os, sys",
        "import a.b as c",
        "from a import b",
        "from a import z as y",
        "from a import *",
        "from . import e, k",
        "from __future__ import division",
    ]);
    prop::collection::vec(statement, 1..4)
}

#[test]
fn imports_only_insert_text_and_are_idempotent() {
    let law = runner(21).run(&(module(), statements()), |(text, wanted)| {
        let before = tree(&text);
        prop_assert!(
            flaws(&before).is_empty(),
            "the module is invalid Python: {text:?}"
        );
        let done = made(&text, import(&wanted));
        let removed = done.changes.edits().iter().map(|edit| edit.range.len());
        prop_assert_eq!(removed.sum::<usize>(), 0, "{:?}", &done.text);
        prop_assert_eq!(&done.losses, &vec![]);
        let after = tree(&done.text);
        prop_assert!(flaws(&after).is_empty(), "{:?}", &done.text);
        let again = made(&done.text, import(&wanted));
        prop_assert!(
            again.changes.is_empty(),
            "{:?} {:?}",
            &done.text,
            &again.text
        );
        // `__future__` imports come before all other statements except the docstring.
        let mut others = false;
        let root = after.root().unwrap();
        for at in 0..root.named_child_count() {
            let node = root.named_child(at as u32).unwrap();
            match node.kind() {
                "comment" => {}
                "future_import_statement" => prop_assert!(!others, "{:?}", &done.text),
                "expression_statement" if at == 0 => {}
                _ => others = true,
            }
        }
        let breaks = |text: &str| (text.matches('\n').count(), text.matches("\r\n").count());
        if breaks(&text).1 > 0 {
            let (all, windows) = breaks(&done.text);
            prop_assert_eq!(all, windows, "{:?}", &done.text);
        }
        Ok(())
    });
    law.unwrap();
}

#[test]
fn omission_mark_is_found_at_any_line_and_nowhere_else() {
    let places = (module(), any::<prop::sample::Index>());
    let law = runner(22).run(&places, |(text, index)| {
        prop_assert_eq!(omission_marks(&text, &text), vec![]);
        prop_assert_eq!(omission_marks("", &text), vec![], "{:?}", &text);
        let lines: Vec<&str> = text.lines().collect();
        let at = index.index(lines.len() + 1);
        let mark = "# ... rest of the code unchanged";
        let mut marked = lines.clone();
        marked.insert(at, mark);
        let number = u32::try_from(at + 1).unwrap();
        let found = omission_marks(&text, &marked.join("\n"));
        prop_assert_eq!(found, vec![(number, mark.to_owned())]);
        Ok(())
    });
    law.unwrap();
}
