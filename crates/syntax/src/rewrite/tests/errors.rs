//! Tests of the error messages, each of which must tell the model what to do instead.

use super::*;

const TEXT: &str = "\
class A:
    def f(self):
        return 1

    def g(self): return 2
def h(): pass
x = 1
";

#[test]
fn errors_of_whole_replacements_tell_what_to_do() {
    let check = |symbol: &str, source: &str, expected: &str| {
        assert_eq!(refused(TEXT, whole(symbol, source)), expected);
    };
    check(
        "A.f",
        "x = 1\n",
        "the source for `A.f` contains no definition: send all of it, from its decorators to its last line, or patch the lines that change",
    );
    check(
        "A.f",
        "def f(self): pass\n\ndef k(self): pass\n",
        "the source for `A.f` defines `f`, `k`: send `A.f` alone, and add the others as new symbols",
    );
    check(
        "A.f",
        "def f(self): pass\nx = 1\n",
        "line 2 of the source for `A.f` lies outside of the definition: `x = 1`; send the definition alone, and change imports and module code on their own",
    );
    check(
        "A",
        "def A(): pass\n",
        "`A` is a class, but the source defines a function: keep the kind, or delete the symbol and add a new one",
    );
    check(
        "",
        "x = 2\n\n\ndef h(): pass\n",
        "it is unclear where the definitions of m.py stand among the statements of `source`: send the whole text of the file with every definition, or patch the lines, add a symbol or add imports instead",
    );
    let message = refused(TEXT, whole("A.f", "def f(self):\n    return (\n"));
    assert!(
        message.contains("of the source for A.f is invalid Python"),
        "{message}"
    );
    assert!(message.ends_with("nothing was changed"), "{message}");
}

#[test]
fn errors_of_patches_tell_what_to_do() {
    let hunks = |hunks: &[(&str, &str)]| Rewrite::Patch {
        symbol: "A".to_owned(),
        hunks: hunks
            .iter()
            .map(|(old, new)| ((*old).to_owned(), (*new).to_owned()))
            .collect(),
    };
    let check = |parts: &[(&str, &str)], expected: &str| {
        assert_eq!(refused(TEXT, hunks(parts)), expected);
    };
    check(
        &[("return 1", "return 3"), ("", "x")],
        "hunk 2 for `A` has no old text: give the current text of the lines to replace",
    );
    check(
        &[("self", "this")],
        "the old text of hunk 1 occurs 2 times in `A`, at lines 2, 5: add lines around it, so that it occurs once",
    );
    check(
        &[("x = 1", "x = 2")],
        "the old text of hunk 1 is not in `A`; it is in the module body, at line 7",
    );
    check(
        &[("yield forever", "")],
        "the old text of hunk 1 is not in `A`; nothing in lines 1 to 5 looks like `yield forever`: read them again",
    );
    let message = refused(TEXT, hunks(&[("return 11", "")]));
    assert!(
        message.contains("the lines most similar to `return 11`: line 3: `return 1`"),
        "{message}"
    );
    let message = refused(TEXT, hunks(&[("return 1", "return 1 +")]));
    assert!(
        message.starts_with("m.py: line 3 would be invalid Python")
            && message.contains("`return 1 +`"),
        "{message}"
    );
    check(
        &[("return 1", "return 3"), ("return 1", "return 4")],
        "two rewrites change the same text, at lines 3 and 3: join them into one",
    );
}

#[test]
fn errors_of_other_rewrites_tell_what_to_do() {
    assert_eq!(
        refused(TEXT, add("A", Place::Inside, "def g(self): pass\n")),
        "`A.g` already exists: rewrite it instead of adding it"
    );
    assert_eq!(
        refused(TEXT, add("A.f", Place::Inside, "def k(): pass\n")),
        "`A.f` is not a class, so nothing can be added inside it: add the new symbol after it, or rewrite it"
    );
    assert_eq!(
        refused(TEXT, delete("")),
        "`delete` of all of m.py deletes the file: give it alone, without `source`, `hunks`, `add` or `imports`"
    );
    assert_eq!(
        refused(TEXT, import(&["x = 1"])),
        "`x = 1` is not an import statement: add it with a patch of the module body"
    );
    let notes = SymbolTree::parse(FilePath::new("notes.md"), Arc::from(""));
    let error = rewrite(&notes, &[import(&["import a"])]).expect_err("no imports there");
    assert_eq!(
        error.to_string(),
        "imports cannot be added to notes.md, because its language is not supported: patch its text instead"
    );
}

#[test]
fn error_for_an_unknown_symbol_lists_a_limited_number_of_symbols() {
    assert_eq!(
        refused("x = 1\n", delete("f")),
        "no symbol `f` in m.py; it has: only the module body, whose name is empty"
    );
    let text: String = (0..40).map(|n| format!("def f{n}(): pass\n")).collect();
    let message = refused(&text, patch("B.f39", "a", "b"));
    assert!(message.contains("it has: f39, f0, f1,"), "{message}");
    assert!(message.ends_with("f28 and 10 more"), "{message}");
}
