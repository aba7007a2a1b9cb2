//! Lookups: the text that a model receives, and the message if nothing is found.

use std::sync::Arc;

use crate::lookup::{Lookup, cap};
use starling_core::Tokens;
use starling_index::Index;
use starling_workspace::Workspace;

/// A project in a temporary directory, and its lookup.
struct LookupFixture {
    _dir: tempfile::TempDir,
    lookup: Lookup,
}

fn place(files: &[(&str, &str)]) -> LookupFixture {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = dir.path().canonicalize().unwrap();
    let world = Workspace::open(root).unwrap().snapshot(Default::default());
    let index = Arc::new(Index::new(world.clone()));
    LookupFixture {
        _dir: dir,
        lookup: Lookup::new(world, index),
    }
}

fn read(place: &LookupFixture, targets: &[&str]) -> String {
    let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
    place.lookup.read(&targets)
}

const SHOP: &str = "RATE = 2\n\n\nclass Cart:\n    \"\"\"Goods.\"\"\"\n\n    def total(self):\n        return RATE\n\n\ndef pay(cart):\n    return cart.total()\n";

#[test]
fn read_returns_symbols_and_line_ranges() {
    let shop = place(&[("shop.py", SHOP)]);
    assert_eq!(
        read(&shop, &["shop.py::Cart.total", "shop.py:11-12"]),
        "shop.py::Cart.total lines 7-8:\n    def total(self):\n        return RATE\n\n\
         shop.py lines 11-12:\n   11 def pay(cart):\n   12     return cart.total()\n"
    );
    assert!(read(&shop, &["shop.py:4"]).ends_with("lines 4-4:\n    4 class Cart:\n"));
    assert!(read(&shop, &["shop.py"]).contains("    1 RATE = 2"));
}

#[test]
fn read_of_an_invalid_line_range_does_not_panic() {
    let shop = place(&[("shop.py", SHOP)]);
    for range in [
        "0-0",
        "9-2",
        "99-120",
        "18446744073709551615",
        "1-18446744073709551615",
        "7-x",
        "18446744073709551615-x",
    ] {
        let text = read(&shop, &[&format!("shop.py:{range}")]);
        assert!(text.starts_with("shop.py lines "), "{range}: {text}");
    }
    assert!(!read(&shop, &["gone.py:1-2"]).contains("lines"));
}

#[test]
fn read_of_an_unknown_symbol_suggests_existing_symbols() {
    let shop = place(&[
        ("shop.py", SHOP),
        ("lib/other.py", "def late():\n    pass\n"),
    ]);
    let hint = |path: &str| read(&shop, &[path]);
    assert!(hint("shop.py::total").contains("Did you mean shop.py::Cart.total?"));
    assert!(hint("shop.py::late").contains("Did you mean lib/other.py::late?"));
    assert!(hint("shop.py::nothing").contains("shop.py has: Cart, Cart.total, pay."));
    assert!(hint("other.py::late").contains("Files of that name: lib/other.py."));
}

#[test]
fn read_of_a_long_range_is_cut_and_names_the_rest_to_read() {
    let text: String = (1..=2_000).map(|at| format!("x{at} = {at}\n")).collect();
    let long = place(&[("a.py", &text)]);
    // About 5,000 tokens are shown whole.
    let whole = read(&long, &["a.py:101-700"]);
    assert!(whole.contains("  101 x101 = 101\n") && whole.ends_with("  700 x700 = 700\n"));
    assert_eq!(whole.lines().count(), 601);
    let cut = read(&long, &["a.py:1-2000"]);
    assert!(Tokens::estimate(&cut) < Tokens(6_400), "{}", cut.len());
    let lines: Vec<&str> = cut.lines().collect();
    let shown = lines.len() - 2;
    assert_eq!(lines[shown], format!("{shown:>5} x{shown} = {shown}"));
    let next = shown + 1;
    let note = format!("[lines {next}-2000 are left: read a.py:{next}-2000]");
    assert_eq!(lines[shown + 1], note);
}

#[test]
fn read_of_several_ranges_has_one_size_limit_and_keeps_short_symbols_whole() {
    let text: String = (1..=2_000).map(|at| format!("x{at} = {at}\n")).collect();
    let long = place(&[("a.py", &text), ("shop.py", SHOP)]);
    let shown = read(&long, &["a.py:1-900", "shop.py::pay", "a.py:1000-1900"]);
    assert!(Tokens::estimate(&shown) < Tokens(6_400), "{}", shown.len());
    assert!(shown.contains("def pay(cart):\n    return cart.total()\n"));
    assert_eq!(shown.matches(" are left: read a.py:").count(), 2);
}

#[test]
fn read_of_an_overloaded_function_shows_its_implementation_first() {
    let text = "@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\ndef f(x):\n    return x\n";
    let place = place(&[("a.py", text)]);
    assert_eq!(
        read(&place, &["a.py::f"]),
        "a.py::f#3 lines 5-6:\ndef f(x):\n    return x\n\
         also a.py::f lines 1-2: @overload def f(x: int) -> int:\n\
         also a.py::f#2 lines 3-4: @overload def f(x: str) -> str:\n"
    );
    assert!(read(&place, &["a.py::f#2"]).starts_with("a.py::f#2 lines 3-4:\n"));
}

#[test]
fn long_text_is_cut_in_the_middle_with_the_number_of_omitted_bytes() {
    let text: String = (0..1000).map(|at| format!("line {at}\n")).collect();
    let cut = cap(&text, Tokens(400));
    assert!(
        cut.starts_with("line 0\n") && cut.ends_with("line 999\n"),
        "{cut}"
    );
    let note = cut.lines().find(|line| line.starts_with('[')).unwrap();
    let left_out: usize = note[1..].split(' ').next().unwrap().parse().unwrap();
    assert_eq!(cut.len() - note.len() - 1 + left_out, text.len());
    assert!(cut.len() < 1_600);
    assert_eq!(
        cap("short", Tokens(0)),
        "[5 bytes are not shown here; read ranges of lines to see them]\n"
    );
    cap(&"é\u{1F600}".repeat(500), Tokens(10));
}

#[test]
fn search_and_references_name_the_symbol_and_the_line() {
    let shop = place(&[("shop.py", SHOP)]);
    let lookup = &shop.lookup;
    assert!(
        lookup
            .search("cart.total", "")
            .contains("shop.py::pay line 12: return cart.total()")
    );
    assert_eq!(
        lookup.search("zebra", ""),
        "Nothing found for `zebra`. Try fewer or other words."
    );
    let uses = lookup.references("shop.py::Cart.total");
    assert!(
        uses.contains("shop.py::pay line 12: return cart.total()"),
        "{uses}"
    );
    assert_eq!(
        lookup.references("zebra"),
        "No reference to `zebra` in the workspace."
    );
    assert!(
        lookup
            .definition("pay", None)
            .starts_with("shop.py::pay lines 11-12:\ndef pay(cart):")
    );
    assert_eq!(
        lookup.definition("zebra", None),
        "No definition of `zebra` in the workspace."
    );
    assert!(lookup.outline("shop.py").contains("def total(self)"));
}

#[test]
fn search_with_too_many_hits_reports_the_number_of_hidden_hits() {
    let text: String = (0..50).map(|at| format!("x{at} = needle\n")).collect();
    let place = place(&[("a.py", &text)]);
    assert!(
        place
            .lookup
            .search("needle", "")
            .ends_with("(20 more lines are not shown)")
    );
}

#[test]
fn search_can_be_limited_to_a_folder() {
    let place = place(&[("shop/a.py", "needle = 1\n"), ("docs/b.md", "needle\n")]);
    let found = place.lookup.search("needle", "shop/");
    assert_eq!(found, "shop/a.py:: line 1: needle = 1");
    let none = place.lookup.search("needle", "web/");
    assert_eq!(
        none,
        "Nothing found for `needle` in files of `web/`. Try fewer or other words."
    );
}

#[test]
fn search_falls_back_to_lines_with_most_of_the_words() {
    let text = "one two three\none two\nfour\nnine\n";
    let place = place(&[("a.txt", text)]);
    let lookup = &place.lookup;
    assert_eq!(
        lookup.search("one two three four", ""),
        "(no line holds all 4 words; these hold 3)\na.txt:: line 1: one two three"
    );
    assert_eq!(
        lookup.search("one three", ""),
        "a.txt:: line 1: one two three"
    );
    // A line with fewer than half of the words does not match.
    let none = lookup.search("five six nine", "");
    assert_eq!(
        none,
        "Nothing found for `five six nine`. Try fewer or other words."
    );
}

#[test]
fn search_skips_minified_lines() {
    let minified = format!("var needle={};\n", "1+".repeat(2_000));
    let place = place(&[("a.min.js", &minified), ("b.py", "needle = 1\n")]);
    assert_eq!(
        place.lookup.search("needle", ""),
        "b.py:: line 1: needle = 1"
    );
}

#[test]
fn read_of_too_many_targets_names_the_skipped_ones() {
    let shop = place(&[("shop.py", SHOP)]);
    let lines: Vec<String> = (1..=10)
        .map(|line| format!("shop.py:{line}-{line}"))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let text = read(&shop, &lines);
    assert!(text.contains("shop.py lines 8-8:"), "{text}");
    assert!(!text.contains("shop.py lines 9-9:"), "{text}");
    assert!(text.contains("left: shop.py:9-9, shop.py:10-10"), "{text}");
    assert!(!read(&shop, &lines[..8]).contains("left:"));
}

#[test]
fn definition_lookup_shows_three_definitions_and_names_the_others() {
    let one = "def pay(cart):\n    return 1\n";
    let files: Vec<(String, &str)> = (0..5).map(|at| (format!("m{at}.py"), one)).collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), *text))
        .collect();
    let shop = place(&files);
    let text = shop.lookup.definition("pay", None);
    assert_eq!(text.matches("return 1").count(), 3, "{text}");
    let also = text.lines().last().unwrap();
    assert!(
        also.starts_with("Also: m") && also.matches("::pay").count() == 2,
        "{text}"
    );
    let none = shop.lookup.definition("sell", None);
    assert_eq!(none, "No definition of `sell` in the workspace.");
    let outline = shop.lookup.outline("m0.py::");
    assert!(outline.contains("def pay(cart):"), "{outline}");
    assert!(shop.lookup.outline("m9.py").contains("no such file"));
}
