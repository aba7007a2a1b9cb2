//! The index over a workspace on disk.

use super::*;
use crate::syntax::FilePath;
use crate::workspace::{Overlay, Workspace};

struct Fixture {
    dir: tempfile::TempDir,
    index: Index,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("shop/__init__.py", "from .cart import Cart\n"),
        (
            "shop/cart.py",
            "class Cart:\n    def total(self):\n        return tally(self)\n\n    def show(self):\n        print(self.total())\n",
        ),
        (
            "shop/tally.py",
            "def tally(cart):\n    # tally of a cart\n    return len('tally')\n\nclass Tally:\n    def total(self):\n        return 0\n",
        ),
        (
            "tests/test_cart.py",
            "from shop import Cart\n\ndef test_total():\n    assert Cart().total() == 0\n",
        ),
        ("notes.txt", "total\n"),
    ];
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let workspace = Workspace::open(dir.path().to_owned()).unwrap();
    let index = Index::new(workspace.snapshot(Overlay::new()));
    Fixture { dir, index }
}

fn named(definitions: &[Definition]) -> Vec<String> {
    definitions
        .iter()
        .map(|found| found.symbol.to_string())
        .collect()
}

#[test]
fn finds_definitions_by_any_part_of_their_path() {
    let Fixture { dir: _dir, index } = fixture();
    let find = |name: &str| named(&index.definitions(name));
    let both = ["shop/cart.py::Cart.total", "shop/tally.py::Tally.total"];
    assert_eq!(find("total"), both);
    assert_eq!(find("Cart.total"), both[..1]);
    assert_eq!(find("shop.tally.Tally.total"), both[1..]);
    assert_eq!(find("cart.Cart"), ["shop/cart.py::Cart"]);
    assert_eq!(find("shop/cart.py::Cart"), ["shop/cart.py::Cart"]);
    // Nothing fits whole: the last part decides.
    assert_eq!(find("self.total"), both);
    assert_eq!(find("test_total"), ["tests/test_cart.py::test_total"]);
    assert_eq!(find("nothing"), [""; 0]);
    assert_eq!(find(""), [""; 0]);
    let total = &index.definitions("Cart.total")[0];
    assert_eq!(total.lines, (2, 3));
}

#[test]
fn finds_references_and_says_when_there_are_more() {
    let Fixture { dir: _dir, index } = fixture();
    let usages = index.references("Cart.total", 10);
    let shown: Vec<_> = usages
        .found
        .iter()
        .map(|usage| {
            format!(
                "{}:{} {} | {} {}",
                usage.file, usage.line, usage.symbol.name, usage.text, usage.is_call
            )
        })
        .collect();
    let expected = [
        "shop/cart.py:6 Cart.show | print(self.total()) true",
        "tests/test_cart.py:4 test_total | assert Cart().total() == 0 true",
    ];
    assert_eq!(shown, expected);
    assert!(usages.complete);
    let first = index.references("total", 1);
    assert_eq!((first.found.len(), first.complete), (1, false));
    let imports = index.references("Cart", 10).found;
    assert_eq!(imports.iter().filter(|usage| usage.is_import).count(), 2);
    assert!(index.references("", 10).found.is_empty());
}

#[test]
fn a_later_snapshot_reads_only_what_changed() {
    let fixture = fixture();
    fixture.index.warm();
    let changed = FilePath::new("shop/tally.py");
    let text = "def count(cart):\n    pass\n";
    let snapshot = fixture
        .index
        .snapshot()
        .with(changed.clone(), Some(text.into()));
    let later = fixture.index.after(snapshot);
    assert_eq!(named(&later.definitions("count")), ["shop/tally.py::count"]);
    assert_eq!(later.definitions("tally"), []);
    let shared = later.files().iter().zip(fixture.index.files());
    let reread: Vec<_> = shared.filter(|(new, old)| !Arc::ptr_eq(new, old)).collect();
    assert_eq!(reread.len(), 1);
    assert_eq!(reread[0].0.file, changed);

    // From the disk again: texts are compared, not moments.
    std::fs::write(fixture.dir.path().join("new.py"), "def fresh(): pass\n").unwrap();
    let workspace = Workspace::open(fixture.dir.path().to_owned()).unwrap();
    let again = fixture.index.after(workspace.snapshot(Overlay::new()));
    assert_eq!(again.definitions("fresh").len(), 1);
    let old = |facts: &&Arc<FileFacts>| fixture.index.files().iter().any(|f| Arc::ptr_eq(f, facts));
    assert_eq!(again.files().iter().filter(old).count(), 5);
}

#[test]
fn the_questions_reach_their_answers() {
    let Fixture { dir: _dir, index } = fixture();
    assert_eq!(index.search("tally of", 5).hits[0].line, 2);
    assert_eq!(
        index.search("total", 50).hits.last().unwrap().file.as_str(),
        "notes.txt"
    );
    let located = index.locate("`Cart.show` prints a wrong total", 3);
    assert_eq!(located[0].symbol.to_string(), "shop/cart.py::Cart.show");
    let symbol = located[0].symbol.clone();
    assert!(
        index
            .repository_map(&[symbol], 500)
            .contains("def show(self):")
    );
    let tests = index.nearest_tests(&"shop/cart.py::Cart.total".parse().unwrap(), 3);
    assert_eq!(tests[0].to_string(), "tests/test_cart.py::test_total");
}
