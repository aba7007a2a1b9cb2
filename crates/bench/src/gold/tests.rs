use super::*;

const BEFORE: &str = "import os\n\nLIMIT = 3\n\n\ndef first(a):\n    return a\n\n\nclass Cart:\n    size = 1\n\n    def add(self, item):\n        self.items.append(item)\n\n    def clear(self):\n        self.items = []\n";

fn named(rewrite: &Rewrite) -> String {
    match rewrite {
        Rewrite::Whole { symbol, .. } => format!("whole {symbol}"),
        Rewrite::Patch { symbol, .. } => format!("patch {symbol}"),
        Rewrite::Add { beside, .. } => format!("add {beside}"),
        Rewrite::Delete { symbol } => format!("delete {symbol}"),
        Rewrite::Import { .. } => "import".into(),
    }
}

/// Checks that the proposals reproduce the change byte for byte, and that they are of the expected
/// kinds.
#[track_caller]
fn check(before: &str, after: &str, expected: &[&str]) {
    let file = FilePath::new("shop/cart.py");
    let proposals = proposals(&file, before, after).unwrap();
    let mut tree = parse(&file, before);
    for proposal in &proposals {
        tree = made(&tree, &proposal.rewrite).unwrap();
    }
    assert_eq!(**tree.text(), *after);
    let told: Vec<String> = proposals.iter().map(|p| named(&p.rewrite)).collect();
    assert_eq!(told, expected);
}

#[test]
fn reference_change_of_a_function_becomes_a_rewrite_by_its_owner() {
    let after = BEFORE.replace("append(item)", "insert(0, item)");
    check(BEFORE, &after, &["whole Cart.add"]);
    let both = after.replace("return a", "return a + 1");
    check(BEFORE, &both, &["whole first", "whole Cart.add"]);
}

#[test]
fn reference_change_between_functions_becomes_a_patch_by_the_module_owner() {
    let after = BEFORE
        .replace("LIMIT = 3", "LIMIT = 4")
        .replace("size = 1", "size = 2\n    name = 'x'");
    check(BEFORE, &after, &["patch ", "patch Cart"]);
    let after = BEFORE.replace("import os\n", "import os\nimport sys\n");
    check(BEFORE, &after, &["patch "]);
}

#[test]
fn reference_change_can_add_and_delete_symbols() {
    let after = BEFORE.replace(
        "    def clear",
        "    def size_of(self):\n        return len(self.items)\n\n    def clear",
    );
    check(BEFORE, &after, &["add Cart.add"]);
    let after = BEFORE.replace("def first(a):\n    return a\n\n\n", "");
    check(BEFORE, &after, &["delete first"]);
    let after = format!("{BEFORE}\n\ndef last():\n    pass\n");
    check(BEFORE, &after, &["add Cart"]);
}

#[test]
fn reference_change_of_a_file_without_symbols_becomes_a_patch() {
    let file = FilePath::new("notes.txt");
    let (before, after) = ("one\ntwo\none\n", "one\ntwo\nthree\n");
    let said = proposals(&file, before, after).unwrap();
    assert!(
        said.iter()
            .all(|p| matches!(p.rewrite, Rewrite::Patch { .. }))
    );
}

#[test]
fn equal_texts_give_no_edits() {
    check(BEFORE, BEFORE, &[]);
}
