use super::*;
use crate::Index;
use crate::testing::snapshot_of;

const CART: &str = "X = 1\n\nclass Cart(Base):\n    def add(self, item):\n        pass\n\n    @property\n    \
                    def total(self) -> int:\n        return 0\n\ndef empty():\n    pass\n";

fn index(texts: &[(&str, &str)]) -> Index {
    Index::new(snapshot_of(texts))
}

fn shop() -> Index {
    index(&[("cart.py", CART), ("tax.py", "def rate():\n    pass\n")])
}

fn around(interest: &[&str], tokens: usize) -> String {
    let interest: Vec<SymbolPath> = interest.iter().map(|path| path.parse().unwrap()).collect();
    let map = shop().repository_map(Seed::Symbols(&interest), tokens);
    assert!(map.tokens <= tokens, "{map}");
    assert_eq!(map.tokens, count_tokens(&map.to_string()));
    map.to_string()
}

#[test]
fn map_shows_seed_symbols_first_and_then_other_symbols() {
    let whole = "tax.py:\n def rate():\ncart.py:\n class Cart(Base):\n  def add(self, item):\n  \
                 def total(self) -> int:\n def empty():\n";
    assert_eq!(around(&["tax.py::", "cart.py::Cart.total"], 1000), whole);
    let tight = "cart.py:\n class Cart(Base):\n  def total(self) -> int:\n";
    assert_eq!(around(&["cart.py::Cart.total"], count_tokens(tight)), tight);
}

#[test]
fn map_never_exceeds_its_token_budget() {
    let asked = [
        "cart.py::Cart.total",
        "tax.py::rate",
        "gone.py::f",
        "cart.py::no",
    ];
    let mut files = 0;
    for tokens in 0..80 {
        let text = around(&asked, tokens);
        let now = text.lines().filter(|line| line.ends_with(".py:")).count();
        assert!(now >= files, "{tokens}: {text}");
        files = now;
    }
    assert_eq!(files, 2);
}

#[test]
fn map_lists_each_file_once_in_the_order_of_the_seed_symbols() {
    let text = around(
        &["cart.py::empty", "tax.py::rate", "cart.py::Cart.add"],
        1000,
    );
    let headings: Vec<&str> = text.lines().filter(|line| line.ends_with(".py:")).collect();
    assert_eq!(headings, ["cart.py:", "tax.py:"]);
    assert_eq!(text.matches("def add").count(), 1);
    assert_eq!(around(&[], 1000), "");
    assert_eq!(around(&["gone.py::f"], 1000), "");
}

#[test]
fn map_lists_many_files_before_many_symbols_of_one_file() {
    let body: String = (0..40)
        .map(|n| format!("def first_{n}(argument): pass\n"))
        .collect();
    let names: Vec<String> = (0..20).map(|n| format!("other_{n}.py")).collect();
    let mut texts = vec![("first.py", body.as_str())];
    texts.extend(
        names
            .iter()
            .map(|name| (name.as_str(), "def other(): pass\n")),
    );
    let index = index(&texts);
    let asked: Vec<SymbolPath> = (texts.iter())
        .map(|(file, _)| SymbolPath::module(FilePath::new(*file)))
        .collect();
    let map = index.repository_map(Seed::Symbols(&asked), 200);
    assert!(map.files.len() >= 6, "{map}");
    let shown: Vec<usize> = map.files.iter().map(|file| file.symbols.len()).collect();
    assert!(
        shown[0] > 1 && shown[1..].iter().all(|count| *count == 1),
        "{map}"
    );
    assert_eq!(map.files[0].left_out, 40 - shown[0]);
}

#[test]
fn map_for_a_text_starts_with_the_most_relevant_file() {
    let map = shop().repository_map(Seed::Text("the rate of tax is wrong"), 100);
    assert_eq!(map.files[0].file.as_str(), "tax.py");
    assert_eq!(map.files[0].symbols[0].signature, "def rate():");
    assert!(map.files[0].score > 0.0);
}

#[test]
fn map_symbol_has_its_kind_line_and_depth() {
    let map = shop().repository_map(
        Seed::Symbols(&["cart.py::Cart.total".parse().unwrap()]),
        100,
    );
    let total = &map.files[0].symbols[2];
    assert_eq!(total.symbol.to_string(), "cart.py::Cart.total");
    // The line is that of the name, not of the decorator.
    assert_eq!(
        (total.kind, total.line, total.depth),
        (SymbolKind::Method, 8, 1)
    );
}

#[test]
fn long_signature_is_truncated_between_parameters() {
    let text = format!("def f({}): pass\n", "\u{e9}\u{e9}, ".repeat(100));
    let index = index(&[("long.py", text.as_str())]);
    let map = index.repository_map(Seed::Symbols(&["long.py::f".parse().unwrap()]), 1000);
    let signature = &map.files[0].symbols[0].signature;
    assert!(signature.len() <= 100, "{signature}");
    assert!(
        signature.starts_with("def f(\u{e9}") && signature.ends_with(", …"),
        "{signature}"
    );
    let text = format!("def {}(): pass\n", "f".repeat(300));
    let index = self::index(&[("long.py", text.as_str())]);
    let asked = [SymbolPath::new(FilePath::new("long.py"), "f".repeat(300))];
    let map = index.repository_map(Seed::Symbols(&asked), 1000);
    assert!(map.files[0].symbols[0].signature.ends_with("f…"));
}

#[test]
fn same_seed_creates_the_same_map() {
    let index = shop();
    for seed in [Seed::Text("total of the cart"), Seed::Central] {
        let once = index.repository_map(seed, 60);
        assert!((0..5).all(|_| index.repository_map(seed, 60) == once));
    }
}

#[test]
fn file_without_code_is_not_in_the_map() {
    let index = index(&[
        ("tax/__init__.py", "# Tax.\n"),
        ("tax/limits.py", "HIGHEST = 1\n"),
        ("tax/rate.py", "def rate(): pass\n"),
    ]);
    let map = index
        .repository_map(Seed::Text("the tax rate is above the HIGHEST limits"), 100)
        .to_string();
    assert!(!map.contains("__init__"), "{map}");
    // Constants count as code.
    assert!(
        map.contains("tax/limits.py:\n") && map.contains(" def rate():\n"),
        "{map}"
    );
}
