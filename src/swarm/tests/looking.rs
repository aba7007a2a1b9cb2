//! Looking things up: what a model gets to read, and what it is told where there is nothing.

use std::sync::Arc;

use crate::index::Index;
use crate::ports::Tokens;
use crate::swarm::lookup::{Lookup, cap, shortened};
use crate::workspace::Workspace;

struct Place {
    _dir: tempfile::TempDir,
    lookup: Lookup,
}

fn place(files: &[(&str, &str)]) -> Place {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = dir.path().canonicalize().unwrap();
    let world = Workspace::open(root).unwrap().snapshot(Default::default());
    let index = Arc::new(Index::new(world.clone()));
    Place {
        _dir: dir,
        lookup: Lookup::new(world, index),
    }
}

fn read(place: &Place, targets: &[&str]) -> String {
    let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
    place.lookup.read(&targets)
}

const SHOP: &str = "RATE = 2\n\n\nclass Cart:\n    \"\"\"Goods.\"\"\"\n\n    def total(self):\n        return RATE\n\n\ndef pay(cart):\n    return cart.total()\n";

#[test]
fn symbols_and_ranges_of_lines_are_read() {
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
fn strange_ranges_are_read_without_harm() {
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
fn an_unknown_symbol_is_answered_with_what_there_is() {
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
fn a_long_class_shows_its_methods_by_their_signatures() {
    let body = "        x = 1\n".repeat(200);
    let text = format!(
        "class Big:\n    LIMIT = 3\n\n    @property\n    def one(self):\n{body}\n    def two(self, y):\n{body}"
    );
    let big = place(&[("big.py", &text)]);
    let found = big.lookup.symbol(&"big.py::Big".parse().unwrap()).unwrap();
    let (shown, was_shortened) = shortened(&found, Tokens(500));
    assert!(was_shortened);
    assert!(shown.contains("    LIMIT = 3\n"), "{shown}");
    assert!(shown.contains("\n    def two(self, y)"), "{shown}");
    assert!(
        shown.contains("# lines 207-407, not shown")
            || shown.contains("# lines 206-406, not shown")
            || shown.contains("# lines 207-407"),
        "{shown}"
    );
    assert!(!shown.contains("x = 1"), "{shown}");
    let (whole, was_shortened) = shortened(&found, Tokens(50_000));
    assert_eq!((whole.as_str(), was_shortened), (found.source(), false));
}

#[test]
fn a_long_text_is_cut_in_the_middle_and_says_by_how_much() {
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
            .search("cart.total")
            .contains("shop.py::pay line 12: return cart.total()")
    );
    assert_eq!(
        lookup.search("zebra"),
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
            .definition("pay")
            .starts_with("shop.py::pay lines 11-12:\ndef pay(cart):")
    );
    assert_eq!(
        lookup.definition("zebra"),
        "No definition of `zebra` in the workspace."
    );
    assert!(lookup.outline("shop.py").contains("def total(self)"));
}

#[test]
fn a_search_with_too_many_hits_says_what_is_not_shown() {
    let text: String = (0..50).map(|at| format!("x{at} = needle\n")).collect();
    let place = place(&[("a.py", &text)]);
    assert!(
        place
            .lookup
            .search("needle")
            .ends_with("(20 more lines are not shown)")
    );
}

#[test]
fn what_is_too_much_for_one_call_is_named() {
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
fn definitions_are_read_and_further_ones_named() {
    let one = "def pay(cart):\n    return 1\n";
    let files: Vec<(String, &str)> = (0..5).map(|at| (format!("m{at}.py"), one)).collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), *text))
        .collect();
    let shop = place(&files);
    let text = shop.lookup.definition("pay");
    assert_eq!(text.matches("return 1").count(), 3, "{text}");
    let also = text.lines().last().unwrap();
    assert!(
        also.starts_with("Also: m") && also.matches("::pay").count() == 2,
        "{text}"
    );
    let none = shop.lookup.definition("sell");
    assert_eq!(none, "No definition of `sell` in the workspace.");
    let outline = shop.lookup.outline("m0.py::");
    assert!(outline.contains("def pay(cart):"), "{outline}");
    assert!(shop.lookup.outline("m9.py").contains("no such file"));
}
