//! Tests of [`Index::locate`] in a small workspace.

use super::*;
use crate::Index;
use crate::testing::snapshot_of;

const FILES: [(&str, &str); 4] = [
    (
        "shop/cart.py",
        "class Cart:\n    def add(self, item):\n        self.items.append(item)\n    \
         def total(self):\n        return sum(item.price for item in self.items)\n",
    ),
    (
        "shop/tax.py",
        "def rate(country):\n    '''Value added tax of a country.'''\n    return RATES[country]\n",
    ),
    ("shop/util.py", "def add(a, b):\n    return a + b\n"),
    (
        "tests/test_cart.py",
        "def test_total():\n    assert Cart().total() == 0\n",
    ),
];

fn locate(files: &[(&str, &str)], text: &str, limit: usize) -> Vec<Located> {
    Index::new(snapshot_of(files)).locate(text, limit)
}

fn first(text: &str) -> (String, String) {
    let found = locate(&FILES, text, 5);
    (found[0].symbol.to_string(), found[0].why.join("; "))
}

#[test]
fn symbol_is_found_by_words_names_paths_and_traceback_frames() {
    let (symbol, why) = first("The tax is wrong for some countries of the value added area");
    assert_eq!(symbol, "shop/tax.py::rate");
    assert!(why.contains("words: ") && why.contains("tax"), "{why}");

    let (symbol, why) = first("`Cart.add` loses the second one");
    assert_eq!(symbol, "shop/cart.py::Cart.add");
    assert!(why.contains("names Cart.add"), "{why}");

    let (symbol, _) = first("add() fails in shop/util.py");
    assert_eq!(symbol, "shop/util.py::add");

    let trace = "Traceback:\n  File \"/usr/lib/python3/site-packages/shop/cart.py\", line 3, in add\n    x\n\
                 AttributeError: items\n";
    let (symbol, why) = first(trace);
    assert_eq!(symbol, "shop/cart.py::Cart.add");
    assert!(why.contains("line 3 in the traceback"), "{why}");
}

#[test]
fn decomposed_letters_of_a_text_are_the_letters_of_the_code() {
    let files = [
        (
            "r\u{e4}ume.py",
            "def raum_f\u{fc}r(klasse):\n    return 1\n",
        ),
        ("noten.py", "def schnitt(klasse):\n    return 1\n"),
    ];
    let found = locate(&files, "ra\u{308}ume.raum_fu\u{308}r is wrong", 5);
    let symbol = found[0].symbol.to_string();
    assert_eq!(symbol, "r\u{e4}ume.py::raum_f\u{fc}r");
    assert!(found[0].why.join("; ").contains("names "), "{found:?}");
}

#[test]
fn tests_are_ranked_after_the_code_that_they_test() {
    let found = locate(&FILES, "total of an empty Cart", 10);
    let place = |name: &str| found.iter().position(|l| l.symbol.name == name).unwrap();
    assert!(place("Cart.total") < place("test_total"));
}

#[test]
fn locate_respects_its_limit_and_accepts_empty_text() {
    assert_eq!(locate(&FILES, "item", 1).len(), 1);
    assert_eq!(locate(&FILES, "", 5), []);
    assert_eq!(locate(&[], "item", 5), []);
}

/// Returns all symbols that were found, as `file::name`.
fn order(text: &str) -> Vec<String> {
    let found = locate(&FILES, text, 20);
    found.iter().map(|l| l.symbol.to_string()).collect()
}

#[test]
fn last_traceback_frame_is_ranked_first() {
    let trace = "Traceback (most recent call last):\n  File \"/w/shop/tax.py\", line 1, in rate\n    x\n  \
                 File \"/w/shop/cart.py\", line 5, in total\n    y\n";
    let found = order(trace);
    assert_eq!(found[0], "shop/cart.py::Cart.total");
    assert_eq!(found[1], "shop/tax.py::rate");
}

#[test]
fn frame_without_a_function_is_located_by_its_line() {
    let (symbol, why) = first("shop/cart.py:5: KeyError");
    assert_eq!(symbol, "shop/cart.py::Cart.total");
    assert!(why.contains("line 5 in the traceback"), "{why}");
    let module = locate(&FILES, "  File \"shop/tax.py\", line 99, in <module>\n", 20);
    let module = module
        .iter()
        .find(|l| l.symbol.to_string() == "shop/tax.py::");
    let why = &module.expect("the module body is located").why;
    assert!(
        why.contains(&"line 99 in the traceback".to_owned()),
        "{why:?}"
    );
}

#[test]
fn dotted_names_and_paths_select_among_symbols_with_the_same_name() {
    assert_eq!(order("`shop.util.add` is slow")[0], "shop/util.py::add");
    assert_eq!(
        order("add is slow, see shop/cart.py")[0],
        "shop/cart.py::Cart.add"
    );
    assert_eq!(
        order("add is slow, see shop/util.py")[0],
        "shop/util.py::add"
    );
    let (_, why) = first("`shop.util.add` is slow");
    assert!(why.contains("names shop.util"), "{why}");
}

#[test]
fn name_in_backquotes_or_in_the_title_scores_higher_than_in_prose() {
    // `add` occurs in prose each time, so the score of `rate` is compared with it.
    let score = |text: &str| {
        let found = locate(&FILES, text, 20);
        let of = |name: &str| {
            found
                .iter()
                .find(|l| l.symbol.name == name)
                .map(|l| l.score)
        };
        of("rate").expect("the symbol is located") / of("Cart.add").expect("the symbol is located")
    };
    let prose = score("Something about add\nthe rate is bad\n");
    let called = score("Something about add\nthe `rate` is bad\n");
    let title = score("the rate is bad\nSomething about add\n");
    assert!(prose < called && prose < title, "{prose} {called} {title}");
    // An unclosed code block, and text after a closed code block.
    assert!(score("Something about add\n```\nthe rate is bad") > 0.0);
    assert!(score("Something about add\n```\n```\nthe rate is bad\n") > 0.0);
}

#[test]
fn same_text_is_ranked_identically_every_time() {
    let text = "total and add, rate of a country: items, price";
    let once = locate(&FILES, text, 20);
    assert!(once.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert!(once.iter().all(|l| l.score > 0.0));
    for _ in 0..5 {
        assert_eq!(locate(&FILES, text, 20), once);
    }
}

fn file_order(files: &[(&str, &str)], text: &str) -> Vec<(String, Vec<String>)> {
    let found = Index::new(snapshot_of(files)).locate_files(text, 20);
    found
        .into_iter()
        .map(|l| (l.file.to_string(), l.why))
        .collect()
}

#[test]
fn files_are_ranked_and_have_reasons() {
    let found = file_order(&FILES, "`Cart.add` loses the second item");
    assert_eq!(found[0].0, "shop/cart.py");
    assert!(
        found[0].1.contains(&"defines add".to_owned()),
        "{:?}",
        found[0].1
    );
    assert_eq!(file_order(&FILES, "see shop/util.py")[0].0, "shop/util.py");
    assert_eq!(file_order(&FILES, ""), []);
}

#[test]
fn every_result_has_a_reason_and_no_reason_lists_a_stop_word() {
    let found = locate(&FILES, "the total of a cart is wrong when it is empty", 20);
    assert!(!found.is_empty());
    for located in found {
        assert!(!located.why.is_empty(), "{located:?}");
        let words = located
            .why
            .iter()
            .filter_map(|why| why.strip_prefix("words: "));
        for word in words.flat_map(|words| words.split(", ")) {
            assert!(!stop::is_stop_word(word), "{word}");
        }
    }
}

#[test]
fn symbol_mentioned_by_a_named_symbol_is_found() {
    let files = [
        (
            "shop/a.py",
            "from shop.b import settle\n\ndef checkout(basket):\n    return settle(basket)\n",
        ),
        (
            "shop/b.py",
            "def settle(thing):\n    return thing.sum\n\ndef other():\n    return 1\n",
        ),
    ];
    let found = locate(&files, "`checkout` returns nothing", 10);
    assert_eq!(found[0].symbol.name, "checkout");
    let settle = found
        .iter()
        .find(|l| l.symbol.name == "settle")
        .expect("a symbol one reference away is located");
    assert!(
        settle.why.contains(&"mentioned by checkout".to_owned()),
        "{:?}",
        settle.why
    );
}

#[test]
fn short_name_counts_only_if_it_looks_like_code() {
    let files = [
        (
            "shop/q.py",
            "class Query:\n    pass\n\nclass Q:\n    pass\n",
        ),
        ("shop/z.py", "class Zone:\n    pass\n"),
    ];
    let found = |text| locate(&files, text, 10);
    let why = |text, name: &str| {
        let found = found(text).into_iter().find(|l| l.symbol.name == name);
        found.map_or(Vec::new(), |l| l.why)
    };
    assert_eq!(
        found("Combining `Q` with another fails")[0].symbol.name,
        "Q"
    );
    assert_eq!(found("Q() | Q() fails")[0].symbol.name, "Q");
    assert!(why("`Q` fails", "Q").contains(&"names Q".to_owned()));
    assert!(!why("The Q of zone and query", "Q").contains(&"names Q".to_owned()));
}

#[test]
fn inflected_word_of_prose_finds_the_symbol_of_its_root() {
    let found = locate(&FILES, "Totalling a lot is slow", 5);
    assert_eq!(found[0].symbol.to_string(), "shop/cart.py::Cart.total");
}

#[test]
fn each_ranking_feature_has_a_weight_and_a_finite_value() {
    let (files, symbols) = Index::new(snapshot_of(&FILES)).candidates("total of a cart");
    let names = |candidate: &Candidate| {
        candidate
            .features
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
    };
    let weights =
        |weights: &[(&'static str, f32)]| weights.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!(names(&files[0]), weights(&FILE));
    assert_eq!(names(&symbols[0]), weights(&SYMBOL));
    assert_eq!(names(&symbols[0]), weights(&INSIDE));
    let all = files
        .iter()
        .chain(&symbols)
        .flat_map(|candidate| &candidate.features);
    assert!(all.into_iter().all(|(_, value)| value.is_finite()));
}

#[test]
fn comments_and_strings_have_their_own_features() {
    let files = [(
        "a.py",
        "def one():\n    # the gasket leaks\n    pass\n\ndef two():\n    return 'gasket'\n\ndef three():\n    gasket()\n",
    )];
    let (_, symbols) = Index::new(snapshot_of(&files)).candidates("gasket");
    let value = |symbol: &str, feature: &str| {
        let mut all = symbols.iter().filter(|c| c.path.ends_with(symbol));
        let features = &all.next().expect("each symbol contains the word").features;
        let mut values = features.iter().filter(|(name, _)| *name == feature);
        values.next().expect("the feature has this name").1
    };
    let both = |symbol| (value(symbol, "comments"), value(symbol, "strings"));
    assert_eq!(both("::one"), (1.0, 0.0));
    assert_eq!(both("::two"), (0.0, 1.0));
    assert_eq!(both("::three"), (0.0, 0.0));
}

#[test]
fn symbol_score_combines_the_score_of_its_file_and_its_score_within_the_file() {
    let weighed = |id, file, of_file, inside| ScoredSymbol {
        id,
        file,
        of_file,
        among_all: 0.0,
        inside,
    };
    let scores = |symbols: &[ScoredSymbol]| -> Vec<f64> {
        let ranked = both_ways(symbols);
        ranked.into_iter().map(|(_, score)| score).collect()
    };
    // A symbol's score within its file counts only in comparison with the other symbols of the
    // file. For the only symbol of a file, it changes nothing.
    let alone = scores(&[weighed(0, 0, 0.0, 5.0), weighed(1, 1, 0.0, -5.0)]);
    assert_eq!(alone[0], alone[1]);
    // A better file raises the score. Equal symbols of one file share the file's score, and a
    // better symbol gets a larger share.
    let found = scores(&[
        weighed(0, 0, 0.0, 1.0),
        weighed(1, 1, -2.0, 1.0),
        weighed(2, 2, 0.0, 1.0),
        weighed(3, 2, 0.0, 1.0),
        weighed(4, 2, 0.0, 2.0),
    ]);
    assert!(found[0] > found[1] && found[0] > found[4]);
    assert!(found[4] > found[2] && found[2] == found[3]);
    assert!(both_ways(&[]).is_empty());
}

#[test]
fn command_line_option_finds_the_code_that_parses_it() {
    let report = "def only_errors(lines):\n    return [line for line in lines if 'ERROR' in line]\n\n\n\
                  def top_paths(lines, only):\n    return sorted(lines)\n";
    let argparse = "import argparse\nimport report\n\n\ndef build_parser():\n    \
                    parser = argparse.ArgumentParser()\n    \
                    parser.add_argument('--errors-only', action='store_true')\n    \
                    parser.add_argument('--from', dest='start')\n    return parser\n\n\n\
                    def main(argv):\n    args = build_parser().parse_args(argv)\n    \
                    if args.errors_only:\n        print(report.only_errors(args.start))\n";
    let files = [("cli.py", argparse), ("report.py", report)];
    let index = Index::new(snapshot_of(&files));
    for (task, within) in [
        ("--errors-only is ignored", 1),
        ("the option `--errors-only` prints all lines", 2),
    ] {
        let found = index.locate(task, within);
        let mut found = found.iter().map(|one| one.symbol.file.as_str());
        assert!(found.any(|file| file == "cli.py"), "{task}");
    }
    let found = index.locate("--from is ignored", 3);
    assert_eq!(
        found[0].symbol.to_string(),
        "cli.py::build_parser",
        "{found:#?}"
    );
}

#[test]
fn module_that_the_text_names_in_capitals_is_ranked_before_its_tests() {
    let files = [
        (
            "src/shop/cli.py",
            "import argparse\n\n\ndef build_parser():\n    parser = argparse.ArgumentParser()\n    \
             commands = parser.add_subparsers()\n    commands.add_parser(\"new\")\n    return parser\n\n\n\
             def main(argv):\n    return build_parser().parse_args(argv)\n",
        ),
        ("src/shop/store.py", "def save(x):\n    return x\n"),
        (
            "tests/test_cli.py",
            "def test_subcommand(run):\n    \"\"\"Does the CLI have a subcommand?\"\"\"\n    assert run(\"new\")\n",
        ),
        (
            "tests/test_store.py",
            "def test_save():\n    assert save(1)\n",
        ),
    ];
    let index = Index::new(snapshot_of(&files));
    let text = "Does the CLI have a delete subcommand?";
    let found = index.locate_files(text, 5);
    let names: Vec<&str> = found.iter().map(|one| one.file.as_str()).collect();
    assert_eq!(names[..2], ["src/shop/cli.py", "tests/test_cli.py"]);
    let named = index.locate_files("Is the new subcommand of the CLI in tests/test_cli.py?", 1);
    assert_eq!(named[0].file.as_str(), "tests/test_cli.py");
}

#[test]
fn content_words_leave_out_stop_words_and_split_names() {
    let found: Vec<String> = content_words("The unpaid invoices are in `load_Store`")
        .into_iter()
        .collect();
    assert_eq!(found, ["invoice", "load", "load_store", "store", "unpaid"]);
}
