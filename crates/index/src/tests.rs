//! Tests of the index over a workspace on disk.

use super::*;
use starling_syntax::FilePath;
use starling_workspace::{Overlay, Workspace};

/// A workspace in a temporary directory, and its index.
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
fn definitions_are_found_by_any_suffix_of_their_path() {
    let Fixture { dir: _dir, index } = fixture();
    let find = |name: &str| named(&index.definitions(name));
    let both = ["shop/cart.py::Cart.total", "shop/tally.py::Tally.total"];
    assert_eq!(find("total"), both);
    assert_eq!(find("Cart.total"), both[..1]);
    assert_eq!(find("shop.tally.Tally.total"), both[1..]);
    assert_eq!(find("cart.Cart"), ["shop/cart.py::Cart"]);
    assert_eq!(find("shop/cart.py::Cart"), ["shop/cart.py::Cart"]);
    // No symbol matches the whole name, so the last part alone counts.
    assert_eq!(find("self.total"), both);
    assert_eq!(find("test_total"), ["tests/test_cart.py::test_total"]);
    assert_eq!(find("nothing"), [""; 0]);
    assert_eq!(find(""), [""; 0]);
    let total = &index.definitions("Cart.total")[0];
    assert_eq!(total.lines, (2, 3));
}

#[test]
fn references_are_marked_incomplete_at_the_limit() {
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
fn index_of_a_later_snapshot_parses_only_changed_files() {
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
    assert_eq!(later.report().parsed, 1);

    // A snapshot that is read from disk again: unchanged files are detected by their text, not by
    // their time.
    std::fs::write(fixture.dir.path().join("new.py"), "def fresh(): pass\n").unwrap();
    let workspace = Workspace::open(fixture.dir.path().to_owned()).unwrap();
    let again = fixture.index.after(workspace.snapshot(Overlay::new()));
    assert_eq!(again.definitions("fresh").len(), 1);
    assert_eq!(again.report().parsed, 1);
}

#[test]
fn index_after_several_changes_is_that_of_the_last_snapshot() {
    let fixture = fixture();
    fixture.index.warm();
    let first = fixture.index.snapshot().clone();
    let same = fixture.index.after(first.clone());
    assert_eq!(named(&same.definitions("tally")), ["shop/tally.py::tally"]);
    assert_eq!(same.report().parsed, 0);
    let added = FilePath::new("shop/added.py");
    let with_added = first.with(added.clone(), Some("def added(): pass\n".into()));
    let without_cart = with_added.with(FilePath::new("shop/cart.py"), None);
    // Neither of the indexes between is read.
    let between = fixture.index.after(with_added.clone());
    let last = between.after(without_cart.clone());
    assert_eq!(named(&last.definitions("added")), ["shop/added.py::added"]);
    assert_eq!(last.definitions("Cart"), []);
    assert_eq!(last.report().files, 4);
    let back = last.after(first);
    assert_eq!(back.definitions("added"), []);
    assert_eq!(named(&back.definitions("Cart")), ["shop/cart.py::Cart"]);
    assert_eq!(back.report().files, 4);
}

#[test]
fn index_of_a_later_snapshot_has_the_text_that_was_read_after_a_change_on_disk() {
    let fixture = fixture();
    fixture.index.warm();
    let file = FilePath::new("shop/tally.py");
    let path = fixture.dir.path().join(file.as_str());
    std::fs::write(path, "def counted(cart):\n    return 1\n").unwrap();
    let snapshot = fixture.index.snapshot().clone();
    assert!(snapshot.read(&file).unwrap().contains("counted"));
    let later = fixture.index.after(snapshot);
    assert_eq!(later.definitions("tally"), []);
    assert_eq!(
        named(&later.definitions("counted")),
        ["shop/tally.py::counted"]
    );
}

#[test]
fn search_locate_map_and_nearest_tests_return_the_expected_symbols() {
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
            .repository_map(Seed::Symbols(&[symbol]), 500)
            .to_string()
            .contains("def show(self):")
    );
    let tests = index.nearest_tests(&["shop/cart.py::Cart.total".parse().unwrap()], 3);
    assert_eq!(tests[0].to_string(), "tests/test_cart.py::test_total");
}

/// Returns the index of these texts, as an overlay over an empty directory.
fn index_of(files: &[(&str, &str)]) -> Index {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path().to_owned()).unwrap();
    let overlay: Overlay = files
        .iter()
        .map(|(path, text)| (FilePath::new(*path), Some((*text).into())))
        .collect();
    Index::new(workspace.snapshot(overlay))
}

#[test]
fn unicode_variant_of_an_identifier_is_a_use_of_it() {
    let user = "from a.m import \u{ff48}elper\n\n\ndef use(x):\n    return h\u{ff45}lper(x)\n";
    let helper = "def helper(x):\n    return x\n";
    let files = |module| index_of(&[("a/__init__.py", ""), ("a/m.py", module), ("a/u.py", user)]);
    let before = files(helper);
    let found = before.references("a/m.py::helper", 9).found;
    assert_eq!(found.len(), 2, "{found:?}");
    let after = files("x = 1\n");
    let dangling = after.newly_dangling(&before, &[FilePath::new("a/m.py")]);
    assert_eq!(dangling[0].file.as_str(), "a/u.py", "{dangling:?}");
}

#[test]
fn name_that_a_star_import_no_longer_brings_is_unresolved() {
    let user = "from a.m import *\n\n\ndef use(x):\n    return print(helper(x), other)\n";
    let dangling = |user: &str, module: &str| {
        let files =
            |module| index_of(&[("a/__init__.py", ""), ("a/m.py", module), ("a/u.py", user)]);
        let before = files("def helper(x):\n    return x\n");
        let found = files(module).newly_dangling(&before, &[FilePath::new("a/m.py")]);
        let named = found
            .iter()
            .map(|one| format!("{}:{} {}", one.file, one.line, one.name));
        named.collect::<Vec<_>>()
    };
    assert_eq!(dangling(user, "x = 1\n"), ["a/u.py:5 helper"]);
    assert_eq!(
        dangling(user, "from a import *\nx = 1\n"),
        ["a/u.py:5 helper"]
    );
    // Another star import may bring it, or the module defines names at run time.
    let others = format!("from library import *\n{user}");
    assert_eq!(dangling(&others, "x = 1\n"), [""; 0]);
    assert_eq!(dangling(user, "globals()['helper'] = 1\n"), [""; 0]);
    let own = format!("{user}\n\ndef helper(x):\n    return x\n");
    assert_eq!(dangling(&own, "x = 1\n"), [""; 0]);
}

#[test]
fn file_path_in_a_name_selects_among_definitions_with_the_same_name() {
    let index = index_of(&[
        ("a.py", "def f(): 1\ndef f(): 2\n"),
        ("b/a.py", "def f(): 3\n"),
        ("tests/test_a.py", "def f(): 4\n"),
    ]);
    let find = |name: &str| named(&index.definitions(name));
    let all = ["a.py::f", "a.py::f#2", "b/a.py::f", "tests/test_a.py::f"];
    assert_eq!(find("f"), all);
    assert_eq!(find("a.py::f"), all[..2]);
    assert_eq!(find("b/a.py::f"), all[2..3]);
    assert_eq!(find("./tests/test_a.py::f"), all[3..]);
    assert_eq!(find("a.py::f#2"), all[1..2]);
    assert_eq!(find("f#2"), all[1..2]);
    assert_eq!(find("b.a.f"), all[2..3]);
    assert_eq!(find("b::a::f"), all[2..3]);
    // The file does not exist, so only the name counts.
    assert_eq!(find("c.py::f"), all);
    assert_eq!(find("a.py::"), [""; 0]);
}

#[test]
fn long_and_short_names_are_found() {
    let long = "test_".repeat(20);
    let text = format!("def {long}(): pass\ndef f(): {long}()\ndef g(): f()\n");
    let index = index_of(&[("a.py", &text), ("b.txt", &text)]);
    for name in [long.as_str(), "f"] {
        assert_eq!(named(&index.definitions(name)), [format!("a.py::{name}")]);
        let usages = index.references(name, 5).found;
        assert_eq!(usages.len(), 1, "{name}");
        assert_eq!(usages[0].file.as_str(), "a.py");
    }
}

#[test]
fn module_part_of_a_name_matches_only_at_a_dot() {
    let index = index_of(&[
        (
            "src/shop/cart.py",
            "class Cart:\n    class Row:\n        def sum(self): pass\n",
        ),
        ("workshop/cart.py", "class Cart: pass\n"),
        ("shop/__init__.py", "def sum(): pass\n"),
    ]);
    let find = |name: &str| named(&index.definitions(name));
    assert_eq!(find("shop.cart.Cart"), ["src/shop/cart.py::Cart"]);
    assert_eq!(find("Row.sum"), ["src/shop/cart.py::Cart.Row.sum"]);
    assert_eq!(find("Cart.Row.sum"), ["src/shop/cart.py::Cart.Row.sum"]);
    assert_eq!(find("shop.sum"), ["shop/__init__.py::sum"]);
    assert_eq!(find("  Row  "), ["src/shop/cart.py::Cart.Row"]);
    assert_eq!(find("ow.sum").len(), 2);
    let row = &index.definitions("Row")[0];
    assert_eq!(row.kind, starling_syntax::SymbolKind::Class);
    assert_eq!(row.lines, (2, 3));
}

#[test]
fn references_are_marked_as_import_call_or_use() {
    let index = index_of(&[
        (
            "a.py",
            "from b import run as go, run\n\nhandlers = {'run': run}\n\nclass A:\n    def run(self):\n        # run\n        return run(self.run())\n",
        ),
        ("notes.md", "run it\n"),
        ("tests/test_a.py", "import b\nb.run()\nrunner = 1\n"),
    ]);
    let show = |name: &str, limit| {
        let usages = index.references(name, limit);
        let shown = usages.found.iter().map(|usage| {
            let kind = match (usage.is_import, usage.is_call) {
                (true, _) => "import",
                (false, true) => "call",
                (false, false) => "use",
            };
            format!(
                "{}:{} {kind} [{}]",
                usage.file, usage.line, usage.symbol.name
            )
        });
        (shown.collect::<Vec<_>>(), usages.complete)
    };
    let all = [
        "a.py:1 import []",
        "a.py:1 import []",
        "a.py:3 use []",
        "a.py:8 call [A.run]",
        "a.py:8 call [A.run]",
        "tests/test_a.py:2 call []",
    ];
    let (code, complete) = show("run", 10);
    assert_eq!((&code[..], complete), (&all.map(str::to_owned)[..], true));
    // A limit equal to the number of references leaves nothing out.
    assert_eq!(show("run", 6), (code.clone(), true));
    // A full path selects only this method.
    let own = vec!["a.py:8 call [A.run]".to_owned()];
    assert_eq!(show("a.py::A.run", 9), (own.clone(), true));
    assert_eq!(show("A.run", 9), (own, true));
    assert_eq!(show("run", 5), (code[..5].to_vec(), false));
    assert_eq!(show("run", 0), (vec![], false));
    assert_eq!(show("nowhere", 0), (vec![], true));
}

#[test]
fn open_buffer_overrides_the_file_on_disk() {
    let fixture = fixture();
    let overlay = Overlay::from([
        (FilePath::new("shop/cart.py"), None),
        (
            FilePath::new("shop/new.py"),
            Some("def unsaved():\n    return Cart\n".into()),
        ),
    ]);
    let workspace = Workspace::open(fixture.dir.path().to_owned()).unwrap();
    let index = fixture.index.after(workspace.snapshot(overlay));
    assert_eq!(
        named(&index.definitions("unsaved")),
        ["shop/new.py::unsaved"]
    );
    assert_eq!(index.definitions("Cart"), []);
    let usages = index.references("Cart", 10).found;
    assert!(
        usages
            .iter()
            .any(|usage| usage.file.as_str() == "shop/new.py")
    );
    assert!(
        usages
            .iter()
            .all(|usage| usage.file.as_str() != "shop/cart.py")
    );
}

#[test]
fn queries_on_a_later_snapshot_use_its_text() {
    let fixture = fixture();
    fixture.index.warm();
    let text = "class Basket:\n    def weigh(self):\n        return 'kilogram'\n";
    let snapshot = fixture
        .index
        .snapshot()
        .with(FilePath::new("shop/cart.py"), Some(text.into()));
    let later = fixture.index.after(snapshot);
    assert_eq!(
        later.search("kilogram", 5).hits[0].symbol.name,
        "Basket.weigh"
    );
    assert_eq!(later.search("return tally(self)", 5).total, 0);
    let located = later.locate("`Basket.weigh` gives a wrong kilogram", 1);
    assert_eq!(located[0].symbol.to_string(), "shop/cart.py::Basket.weigh");
    let seed = [located[0].symbol.clone()];
    let map = later.repository_map(Seed::Symbols(&seed), 500).to_string();
    assert!(map.contains("def weigh") && !map.contains("total"), "{map}");
    assert!(
        later
            .references("Cart", 10)
            .found
            .iter()
            .all(|usage| usage.is_import || usage.is_call)
    );
    // The older index still uses its own text.
    assert_eq!(fixture.index.search("kilogram", 5).total, 0);
    // An index can also be derived from an index that was never queried.
    let lazy = Index::new(later.snapshot().clone()).after(fixture.index.snapshot().clone());
    assert_eq!(lazy.definitions("Basket"), []);
    assert_eq!(lazy.definitions("Cart").len(), 1);
}

#[test]
fn unreadable_file_is_not_indexed() {
    let fixture = fixture();
    std::fs::write(
        fixture.dir.path().join("latin.py"),
        b"def caf\xe9(): pass\n",
    )
    .unwrap();
    let workspace = Workspace::open(fixture.dir.path().to_owned()).unwrap();
    let index = Index::new(workspace.snapshot(Overlay::new()));
    assert_eq!(index.report().files, 4);
    assert_eq!(index.search("pass", 5).total, 0);
    let missing = SymbolPath::module(FilePath::new("latin.py"));
    let map = index.repository_map(Seed::Symbols(&[missing]), 100);
    assert_eq!(map, RepositoryMap::default());
}

#[test]
fn queries_on_an_empty_workspace_return_nothing() {
    let index = index_of(&[]);
    assert_eq!(index.search("x", 5).total, 0);
    assert_eq!(index.definitions("x"), []);
    assert!(index.references("x", 5).complete);
    assert_eq!(index.locate("x", 5), []);
    for seed in [Seed::Symbols(&[]), Seed::Text("x"), Seed::Central] {
        assert_eq!(index.repository_map(seed, 100), RepositoryMap::default());
    }
    assert_eq!(index.nearest_tests(&["a.py::f".parse().unwrap()], 5), []);
}

#[test]
fn module_variables_are_found_with_their_uses() {
    let index = index_of(&[
        (
            "shop.py",
            "RATE = 1\nBOTH = 1\n\n\ndef f(x=RATE):\n    RATE = 2\n    return RATE\n\n\ndef BOTH():\n    pass\n",
        ),
        (
            "user.py",
            "import shop\nfrom shop import RATE\nprint(shop.RATE, RATE)\n",
        ),
        ("other.py", "class C:\n    RATE = 3\n\n\nRATE: int = 4\n"),
    ]);
    let found = |name: &str| -> Vec<String> {
        let all = index.variables(name).into_iter();
        all.map(|one| format!("{}:{:?}", one.file, one.set_at))
            .collect()
    };
    assert_eq!(found("RATE"), ["other.py:[24]", "shop.py:[0]"]);
    assert_eq!(found("shop.RATE"), ["shop.py:[0]"]);
    assert_eq!(found("other.py::RATE"), ["other.py:[24]"]);
    for name in ["rate", "BOTH", "shop.C.RATE", "x"] {
        assert_eq!(found(name), [""; 0], "{name}");
    }
    let uses = index
        .variable_uses(&index.variables("shop.RATE")[0])
        .unwrap();
    let mut places: Vec<String> = uses
        .found
        .iter()
        .map(|one| format!("{}:{}:{}", one.file, one.line, one.column))
        .collect();
    places.sort();
    assert!(uses.complete);
    assert_eq!(
        places,
        [
            "shop.py:1:0",
            "shop.py:5:8",
            "user.py:2:17",
            "user.py:3:11",
            "user.py:3:17"
        ]
    );
}

#[test]
fn heritage_of_a_method_is_own_overrides_or_unknown() {
    let base = "class Base:\n    def key(self):\n        pass\n\n\nclass Own(Base, object):\n    def key(self):\n        pass\n\n    \
                def span_of(self):\n        pass\n\n\nclass Far(Thread):\n    def span_of(self):\n        pass\n\n\n\
                def span():\n    pass\n";
    let index = index_of(&[("m.py", base)]);
    let heritage = |name: &str| index.heritage(&format!("m.py::{name}").parse().unwrap());
    assert_eq!(heritage("Own.span_of"), Heritage::Own);
    assert_eq!(heritage("Base.key"), Heritage::Own);
    assert_eq!(heritage("Own.key"), Heritage::Overrides);
    assert_eq!(heritage("Far.span_of"), Heritage::Unknown);
    assert_eq!(heritage("span"), Heritage::Own);
}

#[test]
fn method_is_the_only_attribute_if_its_name_is_bound_nowhere_else() {
    let own = "class Own:\n    def span_of(self):\n        pass\n";
    let is_only = |other: &str| {
        let index = index_of(&[("m.py", own), ("other.py", other)]);
        index.are_only_attributes(&["m.py::Own.span_of".parse().unwrap()])
    };
    for other in [
        "def f(x):\n    return x.span_of()\n",
        "def f(span_of):\n    return span_of\n\n\nf(span_of=1)\n",
        "span = 'span_of it'\n",
    ] {
        assert!(is_only(other), "{other}");
    }
    for other in [
        "span_of = 1\n",
        "from a import span_of\n",
        "class Other:\n    def span_of(self):\n        pass\n",
        "class Other:\n    def f(self):\n        self.span_of = 1\n",
        "def f(x):\n    x.span_of = 1\n",
        "def f(x):\n    del x.span_of\n",
        "f(span_of=1)\n",
        "namedtuple('A', 'b, span_of')\n",
    ] {
        assert!(!is_only(other), "{other}");
    }
}

/// A text that takes too long to parse.
fn continuations() -> String {
    format!("x = 1{}\n", " \\\n".repeat(30_000))
}

#[test]
fn file_that_takes_too_long_to_parse_is_skipped_and_reported() {
    let Fixture { dir, .. } = fixture();
    std::fs::write(dir.path().join("shop/odd.py"), continuations()).unwrap();
    std::fs::write(dir.path().join("shop/empty.py"), "").unwrap();
    let cache = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path().to_owned()).unwrap();
    let file = FilePath::new("shop/odd.py");
    // The second time, it is not parsed again.
    for parsed in [6, 0] {
        let snapshot = workspace.snapshot(Overlay::new());
        let index = Index::open(snapshot, cache.path().to_owned());
        assert_eq!(index.skipped(), [ReadError::Unparsed(file.clone())]);
        assert_eq!(index.report().parsed, parsed);
        assert_eq!(
            named(&index.definitions("Cart.total")),
            ["shop/cart.py::Cart.total"]
        );
        assert!(index.symbols("odd", 5).0.is_empty());
    }
    let typed = Overlay::from([(FilePath::new("shop/cart.py"), Some(continuations().into()))]);
    let index = Index::open(workspace.snapshot(typed), cache.path().to_owned());
    assert_eq!(index.skipped().len(), 2);
}

#[test]
fn buffer_with_a_private_key_is_left_out_of_all_query_results() {
    let Fixture { dir, .. } = fixture();
    let workspace = Workspace::open(dir.path().to_owned()).unwrap();
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nSECRETLINE = 1\n";
    let names = ["notes.txt", "shop/tally.py", "new.py"];
    let typed = names.map(|name| (FilePath::new(name), Some(key.into())));
    let index = Index::new(workspace.snapshot(typed.into()));
    assert!(index.search("SECRETLINE", 9).hits.is_empty());
    assert!(!index.mentions("SECRETLINE"));
    // The text of the file on disk is not found either.
    assert!(index.search("tally of a cart", 9).hits.is_empty());
    assert!(index.definitions("Tally").is_empty());
    let skipped = index.skipped();
    assert_eq!(skipped.len(), 1, "{skipped:?}");
    assert!(skipped[0].to_string().contains("a private key"));
}

#[test]
fn stopped_indexing_leaves_out_unread_files_and_stores_nothing() {
    let Fixture { dir, .. } = fixture();
    let cache = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path().to_owned()).unwrap();
    let open = || {
        let snapshot = workspace.snapshot(Overlay::new());
        Index::open(snapshot, cache.path().to_owned())
    };
    let index = open();
    index.stop_reading();
    assert_eq!(index.report().files, 0);
    let index = open();
    let later = index.after(
        index
            .snapshot()
            .with(FilePath::new("new.py"), Some("".into())),
    );
    index.stop_reading();
    assert_eq!(later.report().files, 0);
    let index = open();
    assert_eq!(
        (index.report().files, index.report().from_cache),
        (4, false)
    );
    // After all files were read, stopping has no effect: an index that is derived later still reads
    // its new files.
    index.stop_reading();
    let later = index.after(
        index
            .snapshot()
            .with(FilePath::new("new.py"), Some("def n(): pass\n".into())),
    );
    assert_eq!(later.report().files, 5);
}

/// Indexes texts of 300 KB that repeat one pattern. If the running time grew with the square of the
/// length, the test would take minutes.
#[test]
fn long_repetitive_text_is_indexed_in_bounded_time() {
    const LONG: usize = 300_000;
    let again = |part: &str| part.repeat(LONG / part.len());
    let pair = |open: &str, close: &str| {
        let depth = LONG / (open.len() + close.len());
        format!("x = {}1{}\n", open.repeat(depth), close.repeat(depth))
    };
    let stairs = |line: &str| {
        let steps = (1..700).map(|step| format!("{}{line}\n", " ".repeat(step - 1)));
        steps.collect::<String>()
    };
    let texts = [
        again("1 + \\\n"),
        format!("x = '{}'\n", again("a\\\n")),
        format!("x = 1{}\n", again(" \\\n")),
        again("\\\r\n"),
        format!("def f():\n{}    pass\n", again("    # c\n")),
        again("# c\n"),
        format!("#{}\n", again("c")),
        pair("(", ")"),
        pair("[", "]"),
        pair("{", "}"),
        pair("f(", ")"),
        pair("-", ""),
        pair("f'{", "}'"),
        again("("),
        again("f'{x"),
        format!("x = '{}'\n", again("a")),
        format!("x = \"\"\"{}", again("a\n")),
        format!("x = f'{}'\n", again("{x}")),
        again("'"),
        again("'a' "),
        stairs("if x:"),
        stairs("def f():"),
        stairs("class C:"),
        format!("{}def f(): pass\n", again("@d\n")),
        again("def f(): pass\n"),
        again("class C: pass\n"),
        again("x = 1\n"),
        again("x; "),
        again("import a\n"),
        format!("from a import {}b\n", again("a, ")),
        format!("def f({}): pass\n", again("a, ")),
        format!("x{}\n", again(".x")),
        format!("x = 1{}\n", again(" + 1")),
        format!("x = {}1\n", again("lambda: ")),
        format!("x = [{}]\n", again("1, ")),
        format!("if x: pass\n{}", again("elif x: pass\n")),
        format!("def f():\n{}", again("    raise E\n")),
        format!("def f():\n{}", again("    yield\n")),
        again("x\n  y\n"),
        again(" "),
        again("é"),
    ];
    for text in texts {
        let start = processor_time();
        let shown: String = text.chars().take(20).collect();
        super::facts::FileFacts::read(FilePath::new("a.py"), text);
        let taken = processor_time() - start;
        assert!(taken.as_secs() < 15, "{shown:?}: {taken:?}");
    }
}

/// Returns the processor time that this thread has used.
fn processor_time() -> std::time::Duration {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = figures.split(' ').next().unwrap().parse().unwrap();
    std::time::Duration::from_nanos(nanoseconds)
}
