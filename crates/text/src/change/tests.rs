use proptest::prelude::*;

use super::*;

fn edit(start: usize, end: usize, insert: &str) -> Edit {
    Edit {
        range: ByteRange::new(start, end),
        insert: insert.to_owned(),
    }
}

fn set(base: &str, edits: &[(usize, usize, &str)]) -> ChangeSet {
    let edits = edits
        .iter()
        .map(|(s, e, text)| edit(*s, *e, text))
        .collect();
    ChangeSet::new(base.len(), edits).expect("the edits are in order and inside the base")
}

#[test]
fn new_change_set_sorts_joins_and_validates_edits() {
    let changes = set(
        "abcdef",
        &[(4, 4, "y"), (1, 3, "x"), (3, 4, ""), (6, 6, "")],
    );
    assert_eq!(changes.edits(), [edit(1, 4, "xy")]);
    assert_eq!(changes.apply("abcdef").as_deref(), Ok("axyef"));
    assert_eq!(
        ChangeSet::new(3, vec![edit(0, 2, ""), edit(1, 3, "")]),
        None
    );
    assert_eq!(ChangeSet::new(3, vec![edit(2, 4, "")]), None);
    assert!(set("abc", &[]).is_empty());
}

#[test]
fn insertions_at_the_same_offset_keep_their_order() {
    let changes = set("ab", &[(1, 1, "1"), (1, 2, "B"), (1, 1, "2")]);
    assert_eq!(changes.apply("ab").as_deref(), Ok("a12B"));
}

#[test]
fn applying_to_another_text_is_an_error() {
    let changes = set("abc", &[(1, 2, "x")]);
    let mismatch = ApplyMismatch {
        expected: 3,
        actual: 4,
    };
    assert_eq!(changes.apply("abcd"), Err(mismatch.clone()));
    assert_eq!(
        changes.compose(&ChangeSet::unchanged(4)),
        Err(ApplyMismatch {
            expected: 4,
            actual: 3
        })
    );
    // The length matches, but the edit would split a character.
    assert!(changes.apply("aß").is_err());
}

#[test]
fn rebase_of_overlapping_edits_is_a_conflict() {
    let base = "abcdef";
    let ours = set(base, &[(0, 1, "A"), (2, 4, "X")]);
    for theirs in [(3, 5, ""), (3, 3, "y"), (2, 4, "Y"), (0, 6, "")] {
        assert!(ours.rebase(&set(base, &[theirs])).is_err(), "{theirs:?}");
    }
    let conflict = ours.rebase(&set(base, &[(3, 3, "y")])).unwrap_err();
    assert_eq!(conflict.to_string(), "both sides changed bytes 2..4");
    let at_two = set(base, &[(2, 2, "1")]);
    assert!(at_two.rebase(&set(base, &[(2, 2, "2")])).is_err());
    assert!(at_two.rebase(&ChangeSet::unchanged(7)).is_err());
}

#[test]
fn same_edit_on_both_sides_is_applied_once() {
    let base = "abcdef";
    let ours = set(base, &[(1, 2, "X"), (4, 4, "new")]);
    let theirs = set(base, &[(0, 0, "> "), (1, 2, "X")]);
    let rebased = ours.rebase(&theirs).unwrap();
    let text = rebased.apply(&theirs.apply(base).unwrap()).unwrap();
    assert_eq!(text, "> aXcdnewef");
}

#[test]
fn offsets_are_mapped_to_the_changed_text() {
    let changes = set("abcdef", &[(1, 3, "XYZ"), (4, 4, "-")]);
    let moved: Vec<usize> = (0..=6).map(|at| changes.map_offset(at)).collect();
    assert_eq!(moved, [0, 1, 1, 4, 6, 7, 8]);
}

#[test]
fn change_set_between_two_texts_edits_only_differing_characters() {
    let old = "one\ntwo\nthrße\nfour\n";
    let new = "one\ntwo!\nthrüe\nfour\nfive\n";
    let changes = ChangeSet::between(old, new);
    let expected = [edit(7, 7, "!"), edit(11, 13, "ü"), edit(20, 20, "five\n")];
    assert_eq!(changes.edits(), expected);
    assert_eq!(changes.apply(old).as_deref(), Ok(new));
}

#[test]
fn deserialized_change_set_is_validated() {
    let changes = set("abcdef", &[(1, 3, "x")]);
    let json = serde_json::to_string(&changes).unwrap();
    assert_eq!(serde_json::from_str::<ChangeSet>(&json).unwrap(), changes);
    let broken = json.replace("\"base_len\":6", "\"base_len\":2");
    assert!(serde_json::from_str::<ChangeSet>(&broken).is_err());
}

#[test]
fn rebase_of_adjacent_edits_is_not_a_conflict() {
    let base = "abcdef";
    let check = |ours: (usize, usize, &str), theirs: (usize, usize, &str), expected: &str| {
        let (ours, theirs) = (set(base, &[ours]), set(base, &[theirs]));
        let rebased = ours.rebase(&theirs).expect("no conflict");
        let text = rebased.apply(&theirs.apply(base).unwrap()).unwrap();
        assert_eq!(text, expected);
    };
    check((0, 2, "X"), (2, 4, "Y"), "XYef");
    check((2, 4, "X"), (0, 2, "Y"), "YXef");
    check((2, 2, "+"), (2, 4, "Y"), "ab+Yef");
    check((4, 4, "+"), (2, 4, "Y"), "abY+ef");
    check((2, 4, ""), (4, 4, "+"), "ab+ef");
    check((6, 6, "!"), (0, 0, "?"), "?abcdef!");
    check((5, 6, ""), (0, 1, ""), "bcde");
}

#[test]
fn conflict_contains_the_ranges_of_the_first_clash() {
    let base = "abcdefgh";
    let ours = set(base, &[(0, 1, "x"), (3, 5, "y"), (6, 8, "z")]);
    let theirs = set(base, &[(2, 2, "1"), (4, 7, "2")]);
    let conflict = ours.rebase(&theirs).unwrap_err();
    assert_eq!(conflict.ours, ByteRange::new(3, 5));
    assert_eq!(conflict.theirs, ByteRange::new(4, 7));
    // Both sides replace the same range by different text.
    let (one, other) = (set(base, &[(1, 2, "x")]), set(base, &[(1, 2, "y")]));
    assert!(one.rebase(&other).is_err());
    // The base lengths differ, so the change sets conflict as a whole.
    let conflict = one.rebase(&set("abc", &[(0, 1, "")])).unwrap_err();
    assert_eq!(conflict.ours, ByteRange::new(0, 8));
    assert_eq!(conflict.theirs, ByteRange::new(0, 3));
}

#[test]
fn offsets_at_the_borders_of_edits_are_mapped() {
    let removed = set("abcdef", &[(2, 4, "")]);
    let moved: Vec<usize> = (0..=6).map(|at| removed.map_offset(at)).collect();
    assert_eq!(moved, [0, 1, 2, 2, 2, 3, 4]);
    let inserted = set("ab", &[(0, 0, "> "), (2, 2, "!")]);
    let moved: Vec<usize> = (0..=2).map(|at| inserted.map_offset(at)).collect();
    assert_eq!(moved, [2, 3, 5]);
    assert_eq!(ChangeSet::unchanged(3).map_offset(3), 3);
}

#[test]
fn replacement_past_the_end_of_the_base_is_rejected() {
    let replaced =
        ChangeSet::replace(3, ByteRange::new(1, 3), "x").expect("the range is inside the base");
    assert_eq!(replaced.apply("abc").as_deref(), Ok("ax"));
    assert_eq!(replaced.base_len(), 3);
    assert_eq!(ChangeSet::replace(3, ByteRange::new(1, 4), "x"), None);
    let nothing =
        ChangeSet::replace(3, ByteRange::new(1, 1), "").expect("the range is inside the base");
    assert!(nothing.is_empty());
}

#[test]
fn between_never_splits_a_crlf_or_a_character() {
    for (old, new) in [
        ("", "a\n"),
        ("a\n", ""),
        ("a\r\nb\r\n", "a\nb\n"),
        ("a\nb", "a\nb\n"),
        ("\u{feff}x\n", "x\n"),
        ("\u{1f426}\n", "\u{1f427}\n"),
        ("\u{e9}\u{e9}\n", "\u{e9}\n"),
        ("a\na\na\n", "a\na\n"),
        ("a\r\nb\nc\n", "a\nb\r\nc\n"),
        ("a\r\nb\r\n", "a\rb\r\n"),
    ] {
        let changes = ChangeSet::between(old, new);
        assert_eq!(changes.apply(old).as_deref(), Ok(new), "{old:?} {new:?}");
    }
    // No edit begins or ends inside a CRLF, because the LSP has no position there.
    let changes = ChangeSet::between("a\r\nb\n", "a\nb\n");
    assert_eq!(changes.edits(), [edit(1, 3, "\n")]);
    let changes = ChangeSet::between("a\nb\n", "a\r\nb\n");
    assert_eq!(changes.edits(), [edit(1, 2, "\r\n")]);
    // Two characters that share their first bytes differ as a whole.
    let changes = ChangeSet::between("\u{1f426}\n", "\u{1f427}\n");
    assert_eq!(changes.edits(), [edit(0, 4, "\u{1f427}")]);
}

#[test]
fn composition_edits_text_inserted_by_the_first_change_set() {
    let first = set("ab", &[(1, 1, "12345")]);
    let next = set("a12345b", &[(2, 4, ""), (5, 7, "!")]);
    let both = first.compose(&next).unwrap();
    assert_eq!(both.edits(), [edit(1, 2, "14!")]);
    assert_eq!(both.apply("ab").as_deref(), Ok("a14!"));
    let nothing = ChangeSet::unchanged(2).compose(&ChangeSet::unchanged(2));
    assert!(nothing.unwrap().is_empty());
}

const TEXT: &str = "[ab\u{e9}\u{1f426}\n]{0,24}";

/// Creates a change set for `base` from random positions and inserted texts. Overlapping edits are
/// dropped.
fn changes_for(
    base: &str,
    parts: &[(prop::sample::Index, prop::sample::Index, String)],
) -> ChangeSet {
    let borders: Vec<usize> = (0..=base.len())
        .filter(|at| base.is_char_boundary(*at))
        .collect();
    let mut edits: Vec<Edit> = Vec::new();
    for (a, b, insert) in parts {
        let (a, b) = (*a.get(&borders), *b.get(&borders));
        let (start, end) = (a.min(b), a.max(b).min(a.min(b) + 6));
        let end = borders.iter().copied().rfind(|border| *border <= end);
        let end = end.expect("0 is a character boundary");
        let mut more = edits.clone();
        more.push(edit(start, end, insert));
        if ChangeSet::new(base.len(), more.clone()).is_some() {
            edits = more;
        }
    }
    ChangeSet::new(base.len(), edits).expect("the edits were checked in the loop")
}

fn parts() -> impl Strategy<Value = Vec<(prop::sample::Index, prop::sample::Index, String)>> {
    prop::collection::vec(
        (
            any::<prop::sample::Index>(),
            any::<prop::sample::Index>(),
            "[xy\u{fc}]{0,3}",
        ),
        0..4,
    )
}

proptest! {
    #[test]
    fn change_set_from_the_new_to_the_old_text_restores_the_old(base in TEXT, parts in parts()) {
        let changes = changes_for(&base, &parts);
        let text = changes.apply(&base).unwrap();
        let back = ChangeSet::between(&text, &base);
        prop_assert_eq!(back.apply(&text).unwrap(), base.clone());
        let round_trip = changes.compose(&back).unwrap();
        prop_assert_eq!(round_trip.apply(&base).unwrap(), base);
    }

    #[test]
    fn composition_equals_applying_one_after_the_other(base in TEXT, a in parts(), b in parts(), c in parts()) {
        let a = changes_for(&base, &a);
        let after_a = a.apply(&base).unwrap();
        let b = changes_for(&after_a, &b);
        let after_b = b.apply(&after_a).unwrap();
        let c = changes_for(&after_b, &c);
        let after_c = c.apply(&after_b).unwrap();
        prop_assert_eq!(a.compose(&b).unwrap().apply(&base).unwrap(), after_b);
        let left = a.compose(&b).unwrap().compose(&c).unwrap();
        let right = a.compose(&b.compose(&c).unwrap()).unwrap();
        prop_assert_eq!(left.apply(&base).unwrap(), after_c.clone());
        prop_assert_eq!(right.apply(&base).unwrap(), after_c);
    }

    #[test]
    fn rebasing_in_either_order_gives_the_same_text(base in TEXT, a in parts(), b in parts()) {
        let (a, b) = (changes_for(&base, &a), changes_for(&base, &b));
        match (a.rebase(&b), b.rebase(&a)) {
            (Ok(a_after_b), Ok(b_after_a)) => {
                let first_b = a_after_b.apply(&b.apply(&base).unwrap()).unwrap();
                let first_a = b_after_a.apply(&a.apply(&base).unwrap()).unwrap();
                prop_assert_eq!(first_a, first_b);
            }
            (Err(ours), Err(theirs)) => {
                prop_assert_eq!((ours.ours, ours.theirs), (theirs.theirs, theirs.ours));
            }
            (a, b) => prop_assert!(false, "only one side conflicts: {:?} {:?}", a, b),
        }
        prop_assert!(a.rebase(&a).unwrap().is_empty());
        prop_assert_eq!(a.rebase(&ChangeSet::unchanged(base.len())).unwrap(), a);
    }

    #[test]
    fn change_set_between_two_texts_turns_the_old_into_the_new(old in TEXT, new in TEXT) {
        let changes = ChangeSet::between(&old, &new);
        prop_assert_eq!(changes.apply(&old).unwrap(), new.clone());
        prop_assert_eq!(changes.is_empty(), old == new);
    }

    #[test]
    fn kept_byte_is_found_at_its_mapped_offset(base in TEXT, parts in parts()) {
        let changes = changes_for(&base, &parts);
        let text = changes.apply(&base).unwrap();
        let kept = |at: usize| changes.edits().iter().all(|edit| !edit.range.contains(at));
        for at in (0..base.len()).filter(|at| kept(*at)) {
            prop_assert_eq!(base.as_bytes()[at], text.as_bytes()[changes.map_offset(at)]);
        }
    }
}

#[test]
fn changes_of_the_same_line_on_both_sides_conflict() {
    let base = "a = 1\nb = 2\nc = 3\n";
    let ours = |text: &str| ChangeSet::between(base, text);
    let two = ours("a = 1\nb = 9\nc = 3\n");
    let meets = |current: &str| two.over(base, &ours(current)).is_err();
    assert!(meets("a = 1\nb = 200\nc = 3\n"), "behind it");
    assert!(meets("a = 1\nlet b = 2\nc = 3\n"), "in front of it");
    assert!(meets("a = 1\nc = 3\n"), "the line is gone");
    for (current, expected) in [
        ("a = 7\nb = 2\nc = 7\n", "a = 7\nb = 9\nc = 7\n"),
        ("a = 1\nnew\nb = 2\nc = 3\n", "a = 1\nnew\nb = 9\nc = 3\n"),
        ("a = 1\nb = 2\nnew\nc = 3\n", "a = 1\nb = 9\nnew\nc = 3\n"),
        ("b = 2\nc = 3\n", "b = 9\nc = 3\n"),
        ("a = 1\nb = 2\n", "a = 1\nb = 9\n"),
        ("a = 1\nb = 9\nc = 3\n", "a = 1\nb = 9\nc = 3\n"),
        (base, "a = 1\nb = 9\nc = 3\n"),
    ] {
        let made = two
            .over(base, &ours(current))
            .unwrap()
            .changes
            .apply(current)
            .unwrap();
        assert_eq!(made, expected, "{current:?}");
    }
    let added = ours("a = 1\nb = 2\nmine\nc = 3\n");
    let now = "a = 1\nb = 7\nc = 7\n";
    let made = added
        .over(base, &ours(now))
        .unwrap()
        .changes
        .apply(now)
        .unwrap();
    assert_eq!(made, "a = 1\nb = 7\nmine\nc = 7\n");
    assert!(
        added
            .over(base, &ours("a = 1\nb = 2\ntheirs\nc = 3\n"))
            .is_err()
    );
}

#[test]
fn conflict_is_described_with_line_numbers() {
    let base = "one\ntwo\nthree\n";
    let told = |mine: &str, theirs: &str| {
        let mine = ChangeSet::between(base, mine);
        mine.over(base, &ChangeSet::between(base, theirs))
            .unwrap_err()
            .in_lines(base)
    };
    assert_eq!(
        told("one\n2\nthree\n", "one\nzwei\nthree\n"),
        "both sides changed line 2"
    );
    let gone = Conflict {
        ours: ByteRange::new(4, 14),
        theirs: ByteRange::new(5, 6),
        unsure: None,
    };
    assert_eq!(gone.in_lines(base), "both sides changed lines 2 to 3");
    let end = Conflict {
        ours: ByteRange::new(14, 14),
        theirs: ByteRange::new(14, 14),
        unsure: None,
    };
    assert_eq!(end.in_lines(base), "both sides changed line 4");
    assert_eq!(end.in_lines(""), "both sides changed line 1");
}
