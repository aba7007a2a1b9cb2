//! Tests with files that have tabs, CRLF, a byte order mark, and no line break at the end.

use super::*;

const TEXT: &str = "\u{feff}import os\r\n\r\n\r\nclass A:\r\n\tdef f(self):\r\n\t\treturn 1\r\n\r\n\tdef g(self):\r\n\t\treturn 2";

/// Checks that all line breaks are CRLF and that the byte order mark is still at the start.
fn check(done: &Rewritten) {
    let text = &done.text;
    assert!(text.starts_with("\u{feff}import"), "{text:?}");
    assert_eq!(text.matches('\u{feff}').count(), 1);
    let breaks = (text.matches('\n').count(), text.matches("\r\n").count());
    assert_eq!(breaks.0, breaks.1, "{text:?}");
    assert!(!text.contains("\t "), "{text:?}");
    assert_eq!(done.losses, []);
}

#[test]
fn replaced_symbol_keeps_tabs_and_crlf() {
    let source = "def f(self):\n    if self:\n        return 3\n    return 4\n";
    let done = made(TEXT, whole("A.f", source));
    check(&done);
    let expected = "\t\tif self:\r\n\t\t\treturn 3\r\n\t\treturn 4\r\n";
    assert_eq!(done.text, TEXT.replace("\t\treturn 1\r\n", expected));
}

#[test]
fn patch_keeps_tabs_and_crlf() {
    for old in ["return 1\n", "        return 1", "\t\treturn 1\r\n"] {
        let new = old.replace("return 1", "return 3");
        let done = made(TEXT, patch("A.f", old, &new));
        check(&done);
        assert_eq!(done.text, TEXT.replace("return 1", "return 3"), "{old:?}");
    }
    let old = "    def g(self):\n        return 2";
    let new = "    def g(self):\n        x = 2\n        return x";
    let done = made(TEXT, patch("A", old, new));
    check(&done);
    assert!(
        done.text
            .ends_with("\tdef g(self):\r\n\t\tx = 2\r\n\t\treturn x")
    );
}

#[test]
fn added_symbol_keeps_tabs_and_crlf() {
    let source = "def k(self):\n    return 3\n";
    let after = made(TEXT, add("A.f", Place::After, source));
    check(&after);
    let expected = "return 1\r\n\r\n\tdef k(self):\r\n\t\treturn 3\r\n\r\n\tdef g";
    assert!(after.text.contains(expected), "{:?}", after.text);
    let inside = made(TEXT, add("A", Place::Inside, source));
    check(&inside);
    let expected = "return 2\r\n\r\n\tdef k(self):\r\n\t\treturn 3";
    assert!(inside.text.ends_with(expected), "{:?}", inside.text);
}

#[test]
fn deletions_and_imports_keep_tabs_and_crlf() {
    let done = made(TEXT, delete("A.f"));
    check(&done);
    let gone = "\tdef f(self):\r\n\t\treturn 1\r\n\r\n";
    assert_eq!(done.text, TEXT.replace(gone, ""));
    let done = made(TEXT, delete("A.g"));
    check(&done);
    assert!(done.text.ends_with("\t\treturn 1\r\n"), "{:?}", done.text);
    let done = made(TEXT, import(&["import re\n", "from a import b"]));
    check(&done);
    let expected = "import os\r\nimport re\r\nfrom a import b\r\n";
    assert_eq!(done.text, TEXT.replace("import os\r\n", expected));
}

#[test]
fn deletion_keeps_the_code_around_the_symbol() {
    let text =
        "if x:\n    def f(): pass\nelse:\n    def f(): return 1\n\n# of the module\n\ny = f\n";
    let done = made(text, delete("f"));
    assert_eq!(done.text, text.replacen("def f(): pass", "pass", 1));
    let done = made(text, delete("f#2"));
    assert_eq!(done.text, text.replacen("def f(): return 1", "pass", 1));
    let both =
        rewrite(&tree(text), &[delete("f"), delete("f#2")]).expect("both deletions are accepted");
    let rest = "if x:\n    pass\nelse:\n    pass\n\n# of the module\n\ny = f\n";
    assert_eq!(both.text, rest);
    let class = "class A:\n    '''Doc.'''\n\n    @a\n    # why\n    def f(self): pass\n\n\nx = 1\n";
    let done = made(class, delete("A.f"));
    assert_eq!(done.text, "class A:\n    '''Doc.'''\n\n\nx = 1\n");
    assert_eq!(done.losses, []);
    // Deleting a class together with its method has the same result as deleting only the class.
    let done =
        rewrite(&tree(class), &[delete("A"), delete("A.f")]).expect("both deletions are accepted");
    assert_eq!(done.text, "x = 1\n");
}
