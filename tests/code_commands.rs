//! Tests of the commands that query the index, as processes: their output and their exit status.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const CART: &str = "\
from tax import rate


class Cart:
    \"\"\"What is bought.\"\"\"

    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)

    @property
    def total(self):
        return sum(item.price for item in self.items) * (1 + rate('CH'))


def empty_cart():
    return Cart()
";
const TAX: &str = "\
RATES = {'CH': 0.08}


def rate(country):
    '''Value added tax of a country.'''
    return RATES[country]
";
const TEST: &str = "\
from shop.cart import Cart


def test_total():
    cart = Cart()
    assert cart.total == 0
";

/// A small project in a temporary directory.
struct ShopProject {
    dir: tempfile::TempDir,
}

impl ShopProject {
    fn new() -> ShopProject {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("shop/cart.py", CART),
            ("shop/tax.py", TAX),
            ("tests/test_cart.py", TEST),
            ("README.md", "A shop.\n"),
        ] {
            let path = dir.path().join("project").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        ShopProject { dir }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starling"));
        command
            .current_dir(self.root())
            .env("STARLING_CACHE_DIR", self.dir.path().join("cache"))
            .env_remove("STARLING_LOG")
            .stdin(Stdio::null());
        command
    }

    fn ask(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(&self.command().args(args).output().unwrap())
    }

    fn json(&self, args: &[&str]) -> Value {
        let said = self.ask(&[args, &["--json"]].concat());
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{args:?}");
        serde_json::from_str(&said.out).unwrap()
    }

    fn with_stdin(&self, args: &[&str], text: &str) -> CommandOutput {
        let mut command = self.command();
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        CommandOutput::of(&child.wait_with_output().unwrap())
    }
}

/// The result of a command.
#[derive(Debug)]
struct CommandOutput {
    code: Option<i32>,
    out: String,
    err: String,
}

impl CommandOutput {
    fn of(output: &Output) -> CommandOutput {
        CommandOutput {
            code: output.status.code(),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    fn is_wrong_use(&self, because: &str) {
        assert_eq!((self.code, self.out.as_str()), (Some(2), ""), "{self:?}");
        assert!(self.err.contains(because), "no {because:?} in {self:?}");
    }

    fn is_plain(&self, out: &str, err: &str) {
        assert_eq!(
            (self.code, self.out.as_str(), self.err.as_str()),
            (Some(0), out, err)
        );
    }
}

fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    value
        .pointer(path)
        .unwrap_or_else(|| panic!("no {path} in {value:#}"))
}

fn is_seconds(value: &Value) {
    let seconds = at(value, "/seconds").as_f64().unwrap();
    assert!((0.0..60.0).contains(&seconds));
}

#[test]
fn index_reports_the_size_of_a_project() {
    let shop = ShopProject::new();
    let report = shop.json(&["index", "--no-cache"]);
    assert_eq!(at(&report, "/files"), 3);
    // The symbols are three module bodies, five in the cart, one in tax, and one test.
    assert_eq!(at(&report, "/symbols"), 10);
    assert_eq!(at(&report, "/bytes"), CART.len() + TAX.len() + TEST.len());
    assert_eq!(at(&report, "/from_cache"), false);
    assert!(at(&report, "/references").as_u64().is_some());
    assert!(
        cfg!(not(target_os = "linux")) || at(&report, "/peak_rss_bytes").as_u64() > Some(1 << 20)
    );
    is_seconds(&report);
    let said = shop.ask(&["index"]);
    assert!(said.out.starts_with("3 files, 10 symbols"), "{said:?}");
    assert!(
        !said.out.contains("from the cache"),
        "nothing was kept: {said:?}"
    );
    assert_eq!(at(&shop.json(&["index"]), "/from_cache"), true);
    assert_eq!(
        at(&shop.json(&["index", "--no-cache"]), "/from_cache"),
        false
    );
}

#[test]
fn locate_ranks_symbols_and_files() {
    let shop = ShopProject::new();
    let found = shop.json(&[
        "locate",
        "The value added tax of a country is wrong",
        "--top",
        "3",
    ]);
    assert_eq!(at(&found, "/symbols/0/path"), "shop/tax.py");
    assert_eq!(at(&found, "/symbols/0/symbol"), "rate");
    assert_eq!(at(&found, "/symbols/0/kind"), "function");
    assert_eq!(at(&found, "/symbols/0/line"), 4);
    assert!(at(&found, "/symbols/0/score").as_f64() >= at(&found, "/symbols/1/score").as_f64());
    assert!(!at(&found, "/symbols/0/why").as_array().unwrap().is_empty());
    assert_eq!(at(&found, "/files/0/path"), "shop/tax.py");
    assert!(at(&found, "/symbols").as_array().unwrap().len() <= 3);
    is_seconds(&found);
    let said = shop.ask(&["locate", "Cart.add"]);
    assert!(
        said.out
            .starts_with("  1. shop/cart.py::Cart.add  method, line 10, "),
        "{said:?}"
    );
    assert!(
        said.out.contains("\nfiles\n  1. shop/cart.py  "),
        "{said:?}"
    );
}

#[test]
fn locate_text_can_be_an_argument_a_file_or_stdin() {
    let shop = ShopProject::new();
    let task = shop.dir.path().join("task.txt");
    // The file is not completely valid UTF-8.
    std::fs::write(&task, b"`empty_cart` \xff fails").unwrap();
    let from_file = shop.ask(&["locate", "--file", task.to_str().unwrap()]);
    assert!(
        from_file.out.contains("1. shop/cart.py::empty_cart"),
        "{from_file:?}"
    );
    for args in [&["locate", "-"], &["locate", "--file=-"]] {
        let said = shop.with_stdin(args, "`empty_cart` fails");
        assert!(said.out.contains("1. shop/cart.py::empty_cart"), "{said:?}");
    }
    let map = shop.with_stdin(&["map", "--query", "-", "--tokens", "30"], "rate of tax");
    assert!(
        map.out.starts_with("shop/tax.py:\n def rate(country):\n"),
        "{map:?}"
    );
}

#[test]
fn empty_results_give_a_note_on_stderr() {
    let shop = ShopProject::new();
    let nothing = "of this project matches";
    let said = shop.ask(&["locate", "zebra"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""));
    assert!(said.err.contains(nothing), "{said:?}");
    let said = shop.ask(&["map", "--tokens", "1"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""));
    assert!(said.err.contains(nothing), "{said:?}");
    let found = shop.json(&["locate", "zebra"]);
    assert_eq!(at(&found, "/symbols"), &Value::Array(Vec::new()));
}

#[test]
fn map_shows_signatures_within_its_budget() {
    let shop = ShopProject::new();
    let answer = shop.json(&["map", "--query", "total of the Cart", "--tokens", "40"]);
    let text = at(&answer, "/map").as_str().unwrap();
    assert!(text.starts_with("shop/cart.py:\n class Cart:\n"), "{text}");
    assert!(at(&answer, "/tokens").as_u64().unwrap() <= 40);
    let cart = at(&answer, "/files/0");
    assert_eq!(at(cart, "/path"), "shop/cart.py");
    assert_eq!(at(cart, "/symbols/0/symbol"), "Cart");
    assert_eq!(at(cart, "/symbols/0/line"), 4);
    let shown = at(cart, "/symbols").as_array().unwrap().len() as u64;
    assert_eq!(at(cart, "/left_out").as_u64(), Some(5 - shown));
    is_seconds(&answer);
    let left_out = at(&answer, "/left_out").as_u64().unwrap();
    assert!(left_out > 0, "{answer}");
    let said = shop.ask(&["map", "--query", "total of the Cart", "--tokens", "40"]);
    assert_eq!(said.out, text);
    let told = format!("left out: {left_out} more file");
    assert!(said.err.starts_with(&told), "{said:?}");
    let said = shop.ask(&["map", "--query", "total of the Cart"]);
    assert_eq!(said.err, "", "{said:?}");
}

#[test]
fn map_without_a_query_shows_the_most_used_code() {
    let shop = ShopProject::new();
    let said = shop.ask(&["map"]);
    let headings: Vec<&str> = said
        .out
        .lines()
        .filter(|line| !line.starts_with(' '))
        .collect();
    // The tests use the cart, and the cart uses the tax.
    assert_eq!(headings, ["shop/tax.py:", "shop/cart.py:"], "{said:?}");
}

#[test]
fn references_do_not_include_those_of_symbols_with_the_same_name() {
    let shop = ShopProject::new();
    let found = shop.json(&["references", "shop/tax.py::rate"]);
    let first = at(&found, "/references/0");
    assert_eq!(
        (at(first, "/path"), at(first, "/line")),
        (&"shop/cart.py".into(), &1.into())
    );
    assert_eq!(
        (at(first, "/import"), at(first, "/call")),
        (&true.into(), &false.into())
    );
    let second = at(&found, "/references/1");
    assert_eq!(
        (at(second, "/symbol"), at(second, "/call")),
        (&"Cart.total".into(), &true.into())
    );
    assert_eq!(at(second, "/certainty"), "certain");
    assert_eq!(at(&found, "/complete"), true);
    assert_eq!(at(&found, "/references").as_array().unwrap().len(), 2);
    is_seconds(&found);

    assert_eq!(at(second, "/column"), 62);

    let said = shop.ask(&["references", "shop/tax.py::rate", "--top", "1"]);
    said.is_plain(
        "shop/cart.py:1:17: from tax import rate\n",
        "partial: 1 is shown; there are more\n",
    );
    // A complete list is not called partial.
    let said = shop.ask(&["references", "shop/tax.py::rate", "--top", "2"]);
    assert_eq!((said.out.lines().count(), said.err.as_str()), (2, ""));
    // If nothing is found, the command prints a message.
    shop.ask(&["references", "shop/cart.py::Cart.add"])
        .is_plain(
            "",
            "this project has no reference to shop/cart.py::Cart.add\n",
        );
    // A string may refer to the symbol by its name.
    let settings = shop.root().join("settings.json");
    std::fs::write(settings, "{\n\"add\": \"shop.cart:Cart.add\"\n}\n").unwrap();
    shop.ask(&["references", "shop/cart.py::Cart.add"]).is_plain(
        "",
        "this project has no reference to shop/cart.py::Cart.add\n`add` also occurs in strings that may refer to it at run time: settings.json:2\n",
    );
    // An absolute path works as well.
    let whole = shop
        .root()
        .canonicalize()
        .unwrap()
        .join("shop/tax.py::rate");
    let found = shop.json(&["references", whole.to_str().unwrap()]);
    assert_eq!(at(&found, "/symbol"), "shop/tax.py::rate");
}

#[test]
fn references_accept_a_symbol_name_if_it_is_unique() {
    let shop = ShopProject::new();
    let more = "from shop.tax import rate\n\n\ndef both():\n    return rate('a') + rate('é') + total()\n\n\ndef total():\n    pass\n";
    std::fs::write(shop.root().join("shop/more.py"), more).unwrap();
    // The stub of a module describes the same symbol.
    let stub = shop.root().join("shop/tax.pyi");
    std::fs::write(&stub, "def rate(name): ...\n").unwrap();
    let found = shop.json(&["references", "rate"]);
    assert_eq!(at(&found, "/symbol"), "shop/tax.py::rate");
    std::fs::remove_file(stub).unwrap();
    let found = shop.json(&["references", "rate"]);
    assert_eq!(at(&found, "/symbol"), "shop/tax.py::rate");
    assert_eq!(at(&found, "/references").as_array().unwrap().len(), 5);
    // A line with two uses is printed once.
    let said = shop.ask(&["references", "rate"]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 4, "{said:?}");
    let both = "shop/more.py:5:12: return rate('a') + rate('é') + total()  in both";
    assert!(lines.contains(&both), "{said:?}");
    let found = shop.json(&["references", "Cart.total"]);
    assert_eq!(at(&found, "/symbol"), "shop/cart.py::Cart.total");
    for (name, told) in [
        (
            "total",
            "2 symbols have the name total; give the path of one of them: shop/cart.py::Cart.total, shop/more.py::total",
        ),
        (
            "Till.total",
            "`Till.total` is not a symbol path: write path/to/file.py::Class.method, or the name",
        ),
    ] {
        let said = shop.ask(&["references", name]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(told), "{said:?}");
    }
}

#[test]
fn definition_command_resolves_the_name_at_a_position() {
    let shop = ShopProject::new();
    let place = "shop/cart.py:15:62";
    let found = shop.json(&["definition", place]);
    assert_eq!(at(&found, "/name"), "rate");
    assert_eq!(at(&found, "/definitions/0/path"), "shop/tax.py");
    assert_eq!(at(&found, "/definitions/0/line"), 4);
    assert_eq!(at(&found, "/certain"), true);
    is_seconds(&found);
    shop.ask(&["definition", place])
        .is_plain("shop/tax.py:4  function  rate\n", "");
    // The position is the definition itself. Its decorator is on the line before.
    shop.ask(&["definition", "shop/cart.py:14:9"])
        .is_plain("shop/cart.py:14  method  Cart.total\n", "");
    let none = shop.ask(&["definition", "shop/cart.py:11:20"]);
    assert!(
        none.err
            .contains("self.items.append has no definition in this project"),
        "{none:?}"
    );
}

#[test]
fn symbols_are_found_by_parts_of_their_names() {
    let shop = ShopProject::new();
    let found = shop.json(&["symbols", "ec"]);
    assert_eq!(at(&found, "/symbols/0/symbol"), "empty_cart");
    assert_eq!(at(&found, "/complete"), true);
    shop.ask(&["symbols", "cart total"])
        .is_plain("shop/cart.py:14  method  Cart.total\n", "");
    let some = shop.ask(&["symbols", "cart", "--top", "1"]);
    some.is_plain(
        "shop/cart.py:4  class  Cart\n",
        "showing the best 1 of 3 symbols\n",
    );
    let none = shop.ask(&["symbols", "zebra"]);
    none.is_plain("", "no symbol has a name similar to zebra\n");
}

#[test]
fn uses_of_a_variable_of_a_module_are_found() {
    let shop = ShopProject::new();
    for name in ["shop/tax.py::RATES", "RATES"] {
        let found = shop.json(&["references", name]);
        assert_eq!(at(&found, "/symbol"), "shop/tax.py::RATES", "{name}");
        assert_eq!(at(&found, "/references/0/line"), 1, "{name}");
        assert_eq!(at(&found, "/references/1/symbol"), "rate", "{name}");
        let first = shop.json(&["references", name, "--top", "1"]);
        assert_eq!(at(&first, "/complete"), false, "{name}");
    }
    let variable = shop.ask(&["symbols", "RATES"]);
    let expected =
        "RATES is no function, method or class, but a variable of a module: shop/tax.py::RATES\n";
    variable.is_plain("", expected);
}

#[test]
fn usage_errors_of_code_commands_explain_the_problem() {
    let shop = ShopProject::new();
    for (args, because) in [
        (&["locate"] as &[&str], "<TEXT|--file <F>>"),
        (
            &["locate", "  "],
            "the text is empty: describe what to search for",
        ),
        (
            &["locate", "-"],
            "the text is empty: describe what to search for",
        ),
        (&["locate", "--file", "no.txt"], "no.txt: No such file"),
        (&["locate", "x", "--top", "0"], "'0'"),
        (
            &["locate", "x", "--repo", "no/such"],
            "no/such: No such file",
        ),
        (
            &["index", "--repo", "README.md"],
            "README.md: not a directory",
        ),
        (&["index", "--repo", "/"], "root of the file system"),
        (&["map", "--tokens", "few"], "'few'"),
        (&["map", "--query", "x", "--file", "y"], "--file"),
        (&["map", "--query", ""], "the text is empty"),
        (
            &["references", "shop/cart.py"],
            "write path/to/file.py::Class.method",
        ),
        (&["references", "shop/no.py::f"], "shop/no.py: no such file"),
        (&["references", "../x.py::f"], "outside the workspace"),
        (
            &["references", "shop/cart.py::Cart.totl"],
            "shop/cart.py has no symbol named Cart.totl; `starling symbols totl` searches for it",
        ),
        (
            &["references", "shop/cart.py::rate"],
            "did you mean shop/tax.py::rate?",
        ),
        (
            &["definition", "shop/cart.py:4"],
            "expected path/to/file.py:LINE:COLUMN",
        ),
        (
            &["definition", "shop/cart.py:99:1"],
            "shop/cart.py:99: there is no such line; the file has 19 lines",
        ),
        (
            &["definition", "shop/cart.py:4:99"],
            "the line ends before this column",
        ),
        (
            &["definition", "shop/cart.py:2:1"],
            "there is no name at this position",
        ),
        (
            &["definition", "shop/no.py:1:1"],
            "shop/no.py: no such file",
        ),
        (&["symbols", " "], "the query is empty"),
    ] {
        shop.ask(args).is_wrong_use(because);
    }
}

#[test]
fn closed_stdout_is_not_reported_as_an_error() {
    let shop = ShopProject::new();
    for args in [
        &["locate", "cart"] as &[&str],
        &["map"],
        &["symbols", "cart", "--json"],
    ] {
        let mut command = shop.command();
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The reader closes the pipe without reading.
        drop(child.stdout.take());
        let said = CommandOutput::of(&child.wait_with_output().unwrap());
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn code_commands_return_nothing_in_a_project_without_code() {
    let shop = ShopProject::new();
    let empty = shop.dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let repo = empty.to_str().unwrap();
    assert_eq!(at(&shop.json(&["index", "--repo", repo]), "/files"), 0);
    assert_eq!(at(&shop.json(&["map", "--repo", repo]), "/map"), "");
    assert_eq!(
        at(&shop.json(&["locate", "x", "--repo", repo]), "/files"),
        &Value::Array(Vec::new())
    );
    assert_eq!(
        at(&shop.json(&["symbols", "x", "--repo", repo]), "/total"),
        0
    );
}
