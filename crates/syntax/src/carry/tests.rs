use super::*;

const SHOP: &str = "\
def fee(days):
    # c
    return days * 3


def tax(total):
    return total + 1


RATE = 3
";

fn carried(base: &str, proposed: &str, current: &str) -> Result<String, Conflict> {
    let file = FilePath::new("shop.py");
    let changes = ChangeSet::between(base, proposed);
    let carried = carry(&file, base, &changes, current)?;
    Ok(carried
        .apply(current)
        .expect("the carried change fits the current text"))
}

/// Replaces the first occurrence of each old text by the new text.
fn with(text: &str, replaced: &[(&str, &str)]) -> String {
    replaced.iter().fold(text.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old:?} in {text}");
        text.replacen(old, new, 1)
    })
}

/// Transforms the proposal `days * 2` to the text in which the user made these replacements, and
/// returns the resulting text.
fn fee_over(typed: &[(&str, &str)]) -> Result<String, String> {
    let proposed = with(SHOP, &[("days * 3", "days * 2")]);
    let made = carried(SHOP, &proposed, &with(SHOP, typed));
    made.map_err(|conflict| conflict.in_lines(SHOP))
}

#[test]
fn carry_rejects_an_edit_whose_line_was_copied_to_another_symbol() {
    let below = "days * 4\n\n\ndef fee2(days):\n    return days * 3";
    assert_eq!(
        fee_over(&[("days * 3", below)]).unwrap_err(),
        "the position of the change of line 3 is uncertain: it was made in `fee`, but the matching text \
         is now in `fee2`"
    );
    let above = "def fee0(days):\n    # c\n    return days * 3\n\n\ndef fee";
    let changed = "return days * 5\n\n\ndef tax";
    let typed = [
        ("def fee", above),
        ("return days * 3\n\n\ndef tax", changed),
    ];
    assert!(fee_over(&typed).is_err());
}

#[test]
fn carry_rejects_an_edit_of_a_symbol_that_is_now_defined_twice() {
    let twice = "days * 4\n\n\ndef fee(days):\n    # c\n    return days * 3";
    assert!(fee_over(&[("days * 3", twice)]).is_err());
    let exact = "days * 3\n\n\ndef fee(days):\n    # c\n    return days * 3";
    let why = fee_over(&[("days * 3", exact)]).unwrap_err();
    assert!(why.contains("there is now more than one `fee`"), "{why}");
}

#[test]
fn carried_edit_follows_a_renamed_symbol() {
    let renamed = fee_over(&[("def fee(", "def charge(")]).unwrap();
    assert_eq!(
        renamed,
        with(
            SHOP,
            &[("def fee(", "def charge("), ("days * 3", "days * 2")]
        )
    );
    let two = [
        ("def fee(", "def charge("),
        ("RATE", "def other():\n    pass\n\n\nRATE"),
    ];
    assert!(fee_over(&two).is_err());
    let class = "class A:\n    def f(self):\n        return 1\n";
    let proposed = with(class, &[("1", "2")]);
    let typed = with(class, &[("class A", "class B")]);
    assert_eq!(
        carried(class, &proposed, &typed).unwrap(),
        with(&typed, &[("1", "2")])
    );
}

#[test]
fn carry_rejects_an_edit_of_a_renamed_symbol_that_was_changed_or_moved_as_well() {
    let base = "def a(x):\n    y = x\n    z = y + 1\n    return z\n\n\ndef b(x):\n    return x\n";
    let proposed = with(base, &[("y + 1", "y + 2")]);
    let renamed = with(base, &[("def a(", "def c(")]);
    let expected = with(&renamed, &[("y + 1", "y + 2")]);
    assert_eq!(carried(base, &proposed, &renamed).unwrap(), expected);
    let changed = with(&renamed, &[("y = x\n", "y = -x\n")]);
    let (first, second) = renamed.split_once("\n\n\n").unwrap();
    let moved = format!("{second}\n\n{first}\n");
    for typed in [changed, moved] {
        let why = carried(base, &proposed, &typed).unwrap_err().in_lines(base);
        assert!(why.contains("`a`"), "{why}");
    }
    let base = base.replace("y + 1", "y + 1 or a(y)");
    let proposed = with(&base, &[("y = x\n", "y = x + 2\n")]);
    let renamed = base.replace("a(", "c(");
    let expected = with(&renamed, &[("y = x\n", "y = x + 2\n")]);
    assert_eq!(carried(&base, &proposed, &renamed).unwrap(), expected);
}

#[test]
fn carry_rejects_an_edit_if_another_symbol_has_taken_the_name_of_its_symbol() {
    for (old_body, new_body) in [("days * 3", "days * 3"), ("days * 5", "days * 3")] {
        let again = format!("{old_body}\n\n\ndef fee(days):\n    return {new_body}");
        let typed = [("def fee(", "def fee_old("), ("days * 3", again.as_str())];
        assert!(fee_over(&typed).is_err(), "{old_body}");
        // Without the comment `# c`, the diff matches the old definition of `fee` with the new one.
        let base = SHOP.replace("    # c\n", "");
        let proposed = with(&base, &[("days * 3", "days * 2")]);
        assert!(
            carried(&base, &proposed, &with(&base, &typed)).is_err(),
            "{old_body}"
        );
    }
}

#[test]
fn carry_rejects_a_module_level_edit_whose_line_moved_into_a_function() {
    let proposed = with(SHOP, &[("RATE = 3", "RATE = 2")]);
    let moved = with(SHOP, &[("RATE = 3", "def rate():\n    RATE = 3\nRATE = 4")]);
    assert!(carried(SHOP, &proposed, &moved).is_err());
    let base = "if DEBUG:\n    RATE = 3\n    LIMIT = 9\n\n\ndef f():\n    pass\n";
    let proposed = with(base, &[("RATE = 3", "RATE = 2")]);
    let typed = with(
        base,
        &[(
            "if DEBUG:\n    RATE = 3\n",
            "if DEBUG:\n    RATE = other()\n\n\ndef g():\n    RATE = 3\n",
        )],
    );
    let told = carried(base, &proposed, &typed).unwrap_err().in_lines(base);
    assert!(told.contains("made in the module level"), "{told}");
}

#[test]
fn carry_rejects_an_edit_next_to_a_new_similar_line() {
    for typed in [
        "    return days * 4\n    return days * 3\n",
        "    return days * 3\n    return days * 4\n",
        "    if days > 9:\n        return days * 4\n    return days * 3\n",
    ] {
        let why = fee_over(&[("    return days * 3\n", typed)]).unwrap_err();
        assert!(why.contains("typed directly next to it"), "{why}");
    }
    let proposed = with(SHOP, &[("RATE = 3", "RATE = 2")]);
    let again = with(SHOP, &[("RATE = 3", "RATE = 4\nRATE = 3")]);
    assert!(carried(SHOP, &proposed, &again).is_err());
}

#[test]
fn carry_succeeds_despite_unrelated_typing_nearby() {
    for typed in [
        ("    # c\n", "    # c\n    days = max(days, 0)\n"),
        ("    # c\n", ""),
        ("# c", "# d"),
        ("def fee(days)", "def fee(days=1)"),
        ("days * 3\n", "days * 3\n\n\ndef other(a):\n    return a\n"),
        ("def fee", "import os\n\n\ndef fee"),
        ("def tax(total)", "def levy(total)"),
        (
            "RATE = 3\n",
            "RATE = 3\n\n\ndef far(days):\n    return days * 3\n",
        ),
    ] {
        let expected = with(SHOP, &[typed, ("return days * 3", "return days * 2")]);
        assert_eq!(fee_over(&[typed]).as_ref(), Ok(&expected), "{typed:?}");
    }
}

/// The user types another function above or below the edited function. Every prefix of the typed
/// text is tested.
#[test]
fn carry_succeeds_despite_an_unfinished_definition_elsewhere() {
    let typed = "def other(a):\n    \"\"\"Says 'x'.\"\"\"\n    return [a, (1, {2: 3})]\n\n\n";
    for before in ["def fee", "def tax", "RATE"] {
        let mut refused = Vec::new();
        for end in 1..=typed.len() {
            let now = format!("{}\n{before}", &typed[..end]);
            if let Err(why) = fee_over(&[(before, &now)]) {
                refused.push((&typed[..end], why));
            }
        }
        assert!(refused.is_empty(), "before {before}: {refused:?}");
    }
}

/// The diff matches the blank lines inside the function body that the user typed with the blank
/// lines after the old function.
#[test]
fn carry_rejects_a_change_whose_new_function_would_contain_lines_of_another_function() {
    let base = "def f():\n    a = 1\n\n\ndef g():\n    return 2\n";
    let new = "    a = 1\ndef new():\n    pass\n";
    let proposed = with(base, &[("    a = 1\n", new)]);
    let typed = [("    a = 1\n\n\n", "    b = 1\n\n\n    c = 2\n# ---\n")];
    let conflict = carried(base, &proposed, &with(base, &typed)).unwrap_err();
    let told = conflict.in_lines(base);
    assert!(
        told.contains("it would move lines of `f` into `new`"),
        "{told}"
    );
}

#[test]
fn change_of_a_file_without_a_grammar_is_transformed_line_by_line() {
    let file = FilePath::new("notes.txt");
    let changes = ChangeSet::between("def a\nx\n", "def a\ny\n");
    let current = "def a\nx\ndef b\n";
    let made = carry(&file, "def a\nx\n", &changes, current).unwrap();
    assert_eq!(made.apply(current).unwrap(), "def a\ny\ndef b\n");
}

const TWINS: &str = "\
import os


def alpha(x):
    \"\"\"Alpha.\"\"\"
    y = x + 1
    z = y * 2
    return z


def beta(x):
    y = x + 1
    z = y * 2
    return z


class K:
    A = 1
";

fn twins() -> (FilePath, String) {
    let brought = "    z = y * 2\n    log = \"agent\"\n";
    let after = TWINS.replacen("    z = y * 2\n", brought, 1);
    (FilePath::new("mod.py"), after)
}

/// Returns the text with a function moved in front of `place`.
fn moved(text: &str, from: &str, to: &str, place: &str) -> String {
    let function = &text[text.find(from).unwrap()..text.find(to).unwrap()];
    let rest = text.replacen(function, "", 1);
    rest.replacen(place, &format!("{function}{place}"), 1)
}

#[test]
fn change_whose_lines_were_moved_or_edited_does_not_count_as_undone() {
    let (file, after) = twins();
    let change = MadeChange {
        file: &file,
        before: TWINS,
        after: &after,
    };
    let without_alpha = moved(&after, "def alpha", "def beta", "no place");
    let indented = {
        let at = after.find("def alpha").unwrap();
        let end = after.find("def beta").unwrap();
        let lines = after[at..end].lines();
        let lines: String = lines.map(|line| format!("    {line}\n")).collect();
        format!("{}if True:\n{lines}{}", &after[..at], &after[end..])
    };
    let line = "    log = \"agent\"\n";
    for (how, text) in [
        (
            "moved down",
            moved(&after, "def alpha", "def beta", "class K"),
        ),
        (
            "another moved",
            moved(&after, "def beta", "class K", "def alpha"),
        ),
        ("cut", without_alpha),
        ("indented", indented),
        (
            "touched",
            after.replace(line, "    log = \"agent\"  # mine\n"),
        ),
        ("edited", after.replace(line, "    log = \"agents\"\n")),
        (
            "swapped",
            after.replace(
                &format!("    z = y * 2\n{line}"),
                &format!("{line}    z = y * 2\n"),
            ),
        ),
    ] {
        assert!(!change.is_undone_in(&text), "{how}: {text}");
        // Reverting either removes the added line, wherever it is now, or reports a conflict.
        let backs = [change.back_over(&text), change.back_over_lines(&text)];
        for back in backs.into_iter().flatten() {
            let earlier = back.apply(&text).unwrap();
            let is_out = !earlier.contains("log = ");
            assert!(
                is_out && (how == "cut") == (earlier == text),
                "{how}: {earlier}"
            );
        }
    }
}

#[test]
fn change_counts_as_undone_if_its_former_text_is_restored_despite_other_edits() {
    let (file, after) = twins();
    let inserted = MadeChange {
        file: &file,
        before: TWINS,
        after: &after,
    };
    let removed = MadeChange {
        file: &file,
        before: &after,
        after: TWINS,
    };
    for change in [inserted, removed] {
        for (was, typed) in [
            ("", ""),
            ("import os", "import re"),
            ("A = 1", "A = 2\n    B = 3"),
        ] {
            let former = change.before.replacen(was, typed, 1);
            assert!(change.is_undone_in(&former), "{former}");
            assert!(!change.is_back_in(&former), "{former}");
            let there = change.after.replacen(was, typed, 1);
            assert!(!change.is_undone_in(&there), "{there}");
            assert!(change.is_back_in(&there), "{there}");
        }
    }
}

#[test]
fn cut_function_is_detected_where_it_is_pasted() {
    let file = FilePath::new("mod.py");
    let brought = "def gamma(x):\n    return alpha(x) - beta(x)\n\n\n";
    let after = TWINS.replacen("def beta", &format!("{brought}def beta"), 1);
    let change = MadeChange {
        file: &file,
        before: TWINS,
        after: &after,
    };
    assert!(change.is_undone_in(TWINS), "cut");
    let pasted = TWINS.replacen("class K", &format!("{brought}class K"), 1);
    assert!(change.is_back_in(&pasted));
    assert!(!change.is_undone_in(&pasted));
    let indented = pasted.replace("return alpha", "    return alpha");
    assert!(change.is_back_in(&indented));
}

#[test]
fn carry_rejects_an_edit_whose_symbol_is_now_inside_a_string() {
    let (fee, rest) = SHOP.split_at(SHOP.find("\n\ndef tax").unwrap());
    let proposed = with(SHOP, &[("days * 3", "days * 2")]);
    for (before, after) in [
        ("\"\"\"\n", "\"\"\"\n"),
        ("OLD = '''\n", "'''\n"),
        ("OLD = r'''\n", "'''\n"),
        ("OLD = b'''\n", "'''\n"),
        ("OLD = f'''\n", "'''\n"),
        ("exec(\"\"\"\n", "\"\"\")\n"),
        ("OLD = {'a': '''\n", "'''}\n"),
        ("# Kept.\n", "OLD = '''\n'''\n"),
    ] {
        let quoted = format!("{before}{fee}{after}{rest}");
        let has_string = before.contains(['"', '\'']);
        let error = carried(SHOP, &proposed, &quoted);
        assert_eq!(error.is_err(), has_string, "{quoted}");
        // The result is the same if the user is typing elsewhere in the file, so that it has a
        // syntax error.
        let broken = format!("{quoted}\ny = (\n");
        assert_eq!(
            carried(SHOP, &proposed, &broken).is_err(),
            has_string,
            "{broken}"
        );
        // The result is the same for a change that only adds lines.
        let added = with(SHOP, &[("    # c\n", "    # c\n    days += 1\n")]);
        assert_eq!(
            carried(SHOP, &added, &quoted).is_err(),
            has_string,
            "{quoted}"
        );
    }
    let error = carried(SHOP, &proposed, &format!("\"\"\"\n{fee}\"\"\"\n{rest}")).unwrap_err();
    assert_eq!(
        error.in_lines(SHOP),
        "the position of the change of line 3 is uncertain: it was made in `fee`, but the matching text is \
         now in the module level"
    );
}

#[test]
fn carry_rejects_an_edit_whose_text_is_no_longer_inside_its_string() {
    let base = "def f():\n    s = '''\n    one\n    two\n    '''\n    return s\n";
    let proposed = with(base, &[("one", "1")]);
    let left = with(base, &[("'''\n    one", "0\n    one"), ("    '''\n", "")]);
    assert!(carried(base, &proposed, &left).is_err());
    let other = with(base, &[("two", "2")]);
    assert!(carried(base, &proposed, &other).is_ok());
    // Strings elsewhere do not matter.
    let other = format!("\"\"\"Says.\"\"\"\n{base}");
    assert!(carried(base, &proposed, &other).is_ok());
}

#[test]
fn carry_rejects_an_edit_if_its_symbol_became_another_kind() {
    for typed in ["class fee:", "class charge:", "class fee(days):"] {
        assert!(fee_over(&[("def fee(days):", typed)]).is_err(), "{typed}");
        assert!(fee_over(&[("def fee(days):", typed), ("RATE = 3", "RATE = (")]).is_err());
    }
    assert!(fee_over(&[("def fee(days):", "async def fee(days):")]).is_ok());
    let base = "class A:\n    def f(self):\n        return 1\n";
    let proposed = with(base, &[("1", "2")]);
    let function = with(base, &[("class A:", "def A():")]);
    assert!(carried(base, &proposed, &function).is_err());
    assert!(carried(base, &proposed, &with(base, &[("class A:", "class A(B):")])).is_ok());
}

/// The change of one definition of `f` is transformed to a text in which other definitions of `f`
/// were renamed, so that its number in `f#2` changed.
#[test]
fn change_of_one_redefinition_is_applied_to_it_after_another_redefinition_was_renamed() {
    let file = FilePath::new("a.py");
    let base = "def f(a):\n    return 1\n\n\ndef f(b):\n    return 2\n\n\ndef f(c):\n    return 3\n\n\n\
                def f(d):\n    return 4\n";
    let heads = ["def f(a)", "def f(b)", "def f(c)", "def f(d)"];
    let renamed = |text: &str, head: &str| text.replace(head, &head.replace("f(", "g("));
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let mut now = base.to_owned();
        for at in order {
            let changes = ChangeSet::between(base, &renamed(base, heads[at]));
            let carried = carry(&file, base, &changes, &now);
            let carried = carried.unwrap_or_else(|why| panic!("{order:?} {at}: {why:?}"));
            now = carried.apply(&now).unwrap();
        }
        assert_eq!(now, base.replace("def f(", "def g("), "{order:?}");
    }
}

const REPORT: &str = "\
import csv
import json
import os

HERE = os.getcwd()
SEASONS = os.path.join(HERE, \"seasons.json\")


def load_seasons(path=SEASONS):
    with open(path, encoding=\"utf-8\") as f:
        return json.load(f)


def season_of(month, seasons=None):
    \"\"\"Name of the season.\"\"\"
    for name, months in seasons.items():
        if month in months:
            return name
    raise ValueError(month)


def occupancy(store):
    return len(store)
";

#[test]
fn changes_of_neighbouring_symbols_combine_in_every_order() {
    let cut = |from: &str, to: &str| {
        let (start, end) = (REPORT.find(from).unwrap(), REPORT.find(to).unwrap());
        [&REPORT[..start], &REPORT[end..]].concat()
    };
    let top = "import os\n\nHERE = os.getcwd()\nSEASONS = os.path.join(HERE, \"seasons.json\")\n";
    let parts = [
        with(
            REPORT,
            &[(top, "\nfrom seasons import load_seasons, season_of\n")],
        ),
        cut("def load_seasons", "def season_of"),
        cut("def season_of", "def occupancy"),
    ];
    let expected = "import csv\nimport json\n\nfrom seasons import load_seasons, season_of\n\n\n\
                    def occupancy(store):\n    return len(store)\n";
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut now = REPORT.to_owned();
        for part in order {
            now = carried(REPORT, &parts[part], &now)
                .unwrap_or_else(|why| panic!("{order:?}: {}", why.in_lines(REPORT)));
        }
        assert_eq!(now, expected, "{order:?}");
    }
}
