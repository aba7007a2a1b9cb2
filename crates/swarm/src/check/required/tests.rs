use std::sync::Arc;

use super::*;
use crate::task::goal;
use starling_core::TestOutcome;
use starling_index::Index;
use starling_workspace::Workspace;

const STATS: &str = "def mean(values):\n    return sum(values) / len(values)\n\n\n\
    def report(values):\n    return str(mean(values))\n\n\n\
    def mode(values):\n    return max(values)\n\n\n\
    class Cart:\n    def total(self):\n        return 0\n";
const TESTS: &str = "import pytest\nfrom stats import mean, mode, report, Cart\n\n\n\
    def test_empty():\n    assert mean([]) == 0\n\n\n\
    def test_report():\n    assert report([]) == '0'\n\n\n\
    def test_mode():\n    assert mode([1, 1, 2]) == 1\n\n\n\
    @pytest.fixture\ndef cart():\n    return Cart()\n\n\n\
    def test_cart(cart):\n    assert cart.total() == 1\n";

/// The tests of [`TESTS`], all of which fail.
const RED: [&str; 4] = ["test_empty", "test_report", "test_mode", "test_cart"];

fn case(name: &str, message: &str) -> TestCase {
    TestCase {
        id: format!("test_stats.py::{name}"),
        status: TestStatus::Failed,
        message: message.to_owned(),
    }
}

fn required_of(task: &str, picked: &[&str], cases: Vec<TestCase>) -> Vec<String> {
    names(found_for(task, picked, cases).required)
}

fn near_to(task: &str, cases: Vec<TestCase>) -> Vec<String> {
    names(found_for(task, &[], cases).near)
}

fn names(ids: BTreeSet<String>) -> Vec<String> {
    ids.into_iter()
        .map(|id| id.rsplit("::").next().unwrap().to_owned())
        .collect()
}

fn found_for(task: &str, picked: &[&str], cases: Vec<TestCase>) -> TaskTests {
    let files = [
        ("stats.py", STATS),
        ("test_stats.py", TESTS),
        ("lib/sub/deep.py", ""),
    ];
    found_in(&files, task, picked, cases)
}

fn found_in(
    files: &[(&str, &str)],
    task: &str,
    picked: &[&str],
    cases: Vec<TestCase>,
) -> TaskTests {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let workspace = Workspace::open(dir.path().canonicalize().unwrap()).unwrap();
    let world = workspace.snapshot(Default::default());
    let lookup = Lookup::new(world.clone(), Arc::new(Index::new(world)));
    let report = TestReport {
        outcome: TestOutcome::Failed,
        exit: Some(1),
        command: "pytest".to_owned(),
        cases,
        source: Default::default(),
        output: String::new(),
        millis: 1,
    };
    let named = Names::of(&lookup, task);
    let (files, mut targets): (Vec<SymbolPath>, Vec<SymbolPath>) =
        (named.targets().cloned()).partition(SymbolPath::is_module);
    if !named.lead() {
        targets.extend(picked.iter().map(|symbol| symbol.parse().unwrap()));
    }
    let about = TaskCode {
        targets,
        files: files
            .into_iter()
            .chain(named.beside_data().cloned())
            .collect(),
        is_named: named.lead(),
        command_line: named.command_line.clone(),
    };
    belonging(goal::of(task), task, &lookup, &report, &about)
}

fn red() -> Vec<TestCase> {
    RED.iter().map(|name| case(name, "assert 1 == 2")).collect()
}

#[test]
fn bug_fix_must_pass_the_failing_tests_that_use_the_named_symbols() {
    for task in [
        "mean() is wrong for empty lists",
        "the mean is wrong for empty lists",
        "`stats.mean` crashes",
    ] {
        assert_eq!(
            required_of(task, &[], red()),
            ["test_empty", "test_report"],
            "{task}"
        );
    }
    assert_eq!(required_of("`mode` is wrong", &[], red()), ["test_mode"]);
}

#[test]
fn bug_fix_must_pass_the_failing_tests_that_use_the_selected_symbols() {
    let task = "Empty input crashes.";
    assert_eq!(required_of(task, &[], red()), [""; 0]);
    let picked = ["stats.py::mean"];
    assert_eq!(
        required_of(task, &picked, red()),
        ["test_empty", "test_report"]
    );
    let through_fixture = ["stats.py::Cart"];
    assert_eq!(required_of(task, &through_fixture, red()), ["test_cart"]);
    let method = ["stats.py::Cart.total"];
    assert_eq!(required_of(task, &method, red()), ["test_cart"]);
    let module = ["stats.py::"];
    assert_eq!(required_of(task, &module, red()), [""; 0]);
    assert_eq!(names(found_for(task, &module, red()).near).len(), RED.len());
    let inside = "test_stats.py:14: in test_mode\nstats.py:2: in mean\nTypeError: no";
    let inside = vec![case("test_mode", inside)];
    assert_eq!(required_of(task, &module, inside), ["test_mode"]);
}

#[test]
fn selected_symbols_decide_the_required_tests_only_if_the_task_names_no_code() {
    for task in ["`mode` is wrong", "@stats.py is wrong", "@sats.py is wrong"] {
        let required = required_of(task, &["stats.py::mean"], red());
        assert!(
            !required.contains(&"test_empty".to_owned()),
            "{task}: {required:?}"
        );
    }
}

#[test]
fn tests_whose_traceback_leads_through_a_named_file_are_required_and_its_other_tests_are_not() {
    let task = "In @stats.py the values should be sorted";
    assert_eq!(required_of(task, &[], red()), [""; 0]);
    assert_eq!(near_to(task, red()).len(), RED.len());
    let message = "test_stats.py:14: in test_mode\nstats.py:2: in mean\nTypeError: no";
    let inside = vec![
        case("test_mode", message),
        case("test_empty", "assert 1 == 2"),
    ];
    assert_eq!(required_of(task, &[], inside.clone()), ["test_mode"]);
    assert_eq!(near_to(task, inside), ["test_empty"]);
    // The plain word `mode` refers to a symbol of the file `stats.py`, because the task names that
    // file.
    let task = "The mode of @stats.py is wrong";
    assert_eq!(required_of(task, &[], red()), ["test_mode"]);
}

#[test]
fn bug_with_a_named_or_quoted_test_requires_only_that_test() {
    let mut cases = red();
    cases[1].message = ">   assert report([]) == '0'\nE   assert 'nan' == '0'".to_owned();
    for task in [
        "`mean` is wrong, see test_report",
        "`mean` is wrong: assert 'nan' == '0'",
        "`mean` is wrong: assert report([]) == '0'",
    ] {
        assert_eq!(
            required_of(task, &[], cases.clone()),
            ["test_report"],
            "{task}"
        );
    }
}

/// Returns the names of the required tests of a project with three test files, all of which fail.
fn required_of_files(task: &str) -> Vec<String> {
    let test = |name: &str| format!("from stats import mode\n\n\ndef {name}():\n    mode()\n");
    let tests = ["test_price", "test_shorten", "test_net"].map(test);
    let files = [
        ("stats.py", STATS),
        ("tickets.py", ""),
        ("tests/test_prices.py", tests[0].as_str()),
        ("tests/test_tickets.py", tests[1].as_str()),
        ("tests/slow/test_net.py", tests[2].as_str()),
    ];
    let cases = [
        "tests/test_prices.py::test_price",
        "tests/test_tickets.py::test_shorten",
        "tests/slow/test_net.py::test_net",
    ];
    let cases = cases.map(|id| TestCase {
        id: id.to_owned(),
        status: TestStatus::Failed,
        message: "assert 1 == 2".to_owned(),
    });
    names(found_in(&files, task, &["stats.py::mean"], cases.to_vec()).required)
}

#[test]
fn failing_tests_of_a_named_file_are_required_in_any_language() {
    for task in [
        "The tests in tests/test_tickets.py should pass.",
        "tests/test_tickets.py should be green.",
        "All tests in tests/test_tickets.py must pass again.",
        "The tests of tickets should pass.",
        "Mach die Tests in test_tickets.py grün.",
        "Les tests de tests/test_tickets.py doivent passer.",
        "Long names are cut wrong, see tests/test_tickets.py",
        "Long names are cut wrong; tests/test_prices.py is unrelated. See tests/test_tickets.py.",
    ] {
        assert_eq!(required_of_files(task), ["test_shorten"], "{task}");
    }
    let folder = "Die Tests in tests/slow/ sollen laufen.";
    assert_eq!(required_of_files(folder), ["test_net"]);
    let both = "`mode` is wrong, tests/test_tickets.py shows it";
    assert_eq!(required_of_files(both).len(), 3);
}

#[test]
fn failing_tests_of_a_file_that_is_named_for_something_else_are_not_required() {
    for task in [
        "Empty input crashes. Add a test to tests/test_tickets.py.",
        "Fix the crash with empty input and add a test to tests/test_tickets.py.",
        "Empty input crashes. Rename `mode` in tests/test_tickets.py to `most`.",
        "Empty input crashes. Update tests/test_tickets.py.",
        "Empty input crashes, tests/test_tickets.py is unrelated.",
        "Empty input crashes. The tests are in tests/",
    ] {
        assert_eq!(required_of_files(task), [""; 0], "{task}");
    }
}

#[test]
fn traceback_through_the_named_symbol_makes_a_test_required() {
    let message = "test_stats.py:14: in test_mode\nstats.py:2: in mean\nTypeError: no";
    let cases = || vec![case("test_mode", message)];
    assert_eq!(required_of("mean is wrong", &[], cases()), ["test_mode"]);
    let other = "report() is wrong";
    assert_eq!(required_of(other, &[], cases()), [""; 0]);
}

#[test]
fn tests_named_by_the_task_are_required_for_every_goal() {
    for task in [
        "test_mode fails",
        "Rename `mean`; test_mode must pass then",
        "Document what test_mode is about",
    ] {
        let required = required_of(task, &[], red());
        assert_eq!(required, ["test_mode"], "{task}");
    }
    let quoted = vec![
        case("test_mode", "ValueError: no mode of nothing"),
        case("test_empty", "ValueError: other"),
    ];
    let task = "Allow empty lists, now I see ValueError: no mode of nothing";
    assert_eq!(required_of(task, &[], quoted), ["test_mode"]);
}

#[test]
fn task_about_failing_tests_requires_every_fixable_test() {
    let task = "Make the tests pass.";
    assert_eq!(required_of(task, &[], red()).len(), RED.len());
    let mut cases = red();
    cases.push(case(
        "test_far",
        "ModuleNotFoundError: No module named 'numpy.linalg'",
    ));
    cases.push(case(
        "test_near",
        "ModuleNotFoundError: No module named 'stats'",
    ));
    let required = required_of(task, &[], cases);
    assert!(required.contains(&"test_near".to_owned()), "{required:?}");
    assert!(!required.contains(&"test_far".to_owned()), "{required:?}");
}

#[test]
fn test_that_the_task_excludes_is_not_required() {
    let required = |task: &str| required_of(task, &["stats.py::mode"], red());
    let of_mode = "Empty input crashes. test_empty needs a file that we do not have, leave it.";
    assert_eq!(required(of_mode), ["test_mode"]);
    assert_eq!(
        required("`mean` is wrong; leave test_report"),
        ["test_empty"]
    );
    let all = "Make the tests pass, except test_mode and test_cart.";
    assert_eq!(required(all), ["test_empty", "test_report"]);
    assert_eq!(required("Fix test_mode, ignore test_cart"), ["test_mode"]);
}

#[test]
fn test_that_fails_for_a_missing_module_is_not_required() {
    let with = |module: &str| {
        let missing = format!("ModuleNotFoundError: No module named '{module}'");
        vec![
            case("test_empty", &missing),
            case("test_report", "assert 1 == 2"),
        ]
    };
    for module in ["numpy", "deep"] {
        let required = required_of("`mean` is wrong", &[], with(module));
        assert_eq!(required, ["test_report"], "{module}");
    }
    let said = "`mean` is wrong: it needs numpy";
    assert_eq!(required_of(said, &[], with("numpy")).len(), 2);
    assert_eq!(required_of("`mean` is wrong", &[], with("stats")).len(), 2);
}

#[test]
fn tasks_that_fix_no_bug_require_no_failing_test() {
    for task in [
        "add a test for mean([1])",
        "Mention mean in README.md",
        "Add a function median beside `mean`",
        "Rename `mean` to `average`",
        "What calls mean?",
    ] {
        assert_eq!(
            required_of(task, &["stats.py::mean"], red()),
            [""; 0],
            "{task}"
        );
    }
}

#[test]
fn task_about_the_tests_of_a_module_requires_only_the_tests_of_that_module() {
    let other = TestCase {
        id: "tests/test_deep.py::test_deep".to_owned(),
        ..case("test_deep", "assert 1 == 2")
    };
    let cases = || vec![case("test_mode", "assert 1 == 2"), other.clone()];
    for task in [
        "fix the failing stats tests",
        "make the tests of the stats module pass",
        "fix the failing tests of stats.py",
        "Make the tests in stats.py green",
        "Fix the red tests for the module stats",
        "fix the stats module's tests",
    ] {
        assert_eq!(required_of(task, &[], cases()), ["test_mode"], "{task}");
    }
    for task in [
        "fix the failing tests",
        "Make all tests pass; start with stats.py",
        "fix the failing tests since stats.py changed",
    ] {
        let all = ["test_mode", "test_deep"].map(str::to_owned);
        let found: std::collections::BTreeSet<String> =
            required_of(task, &[], cases()).into_iter().collect();
        assert_eq!(found, all.into_iter().collect(), "{task}");
    }
}

/// A project in which one task may have several wishes.
const GARDEN: [(&str, &str); 3] = [
    (
        "plots.py",
        "class Plot:\n    def area(self):\n        return 1\n\n\n\
         class RaisedBed(Plot):\n    def area(self):\n        return 2\n",
    ),
    (
        "garden.py",
        "def entries():\n    return []\n\n\ndef season_of(month):\n    return 'summer'\n\n\n\
         def load(path):\n    return open(path).read()\n\n\ndef read(path):\n    return load(path)\n\n\n\
         def main(path):\n    return read(path)\n",
    ),
    (
        "test_garden.py",
        "import garden\nfrom plots import RaisedBed\n\n\n\
         def test_raised_area():\n    assert RaisedBed().area() == 1\n\n\n\
         def test_priority_first():\n    assert garden.entries() == ['Cy']\n\n\n\
         def test_season_of():\n    assert garden.season_of(11) == 'autumn'\n\n\n\
         def test_pay():\n    assert garden.main('bill') == 'paid'\n\n\n\
         def test_settings():\n    assert garden.main('settings') == 'default'\n",
    ),
];

fn found_in_garden(task: &str, picked: &[&str]) -> TaskTests {
    let cases = [
        "test_raised_area",
        "test_priority_first",
        "test_season_of",
        "test_pay",
        "test_settings",
    ];
    let case = |name: &&str| TestCase {
        id: format!("test_garden.py::{name}"),
        ..case(name, "assert 1 == 2")
    };
    found_in(&GARDEN, task, picked, cases.iter().map(case).collect())
}

#[test]
fn failing_tests_of_every_wish_may_be_part_of_the_task() {
    let task =
        "The high priority people must come first, and fix the raised bed's area and November";
    let found = found_in_garden(task, &[]);
    assert_eq!(
        names(found.required),
        ["test_priority_first", "test_raised_area"]
    );
    // No test fits the wish about November by its words, so each may be the one.
    assert_eq!(
        names(found.possible),
        ["test_pay", "test_season_of", "test_settings"]
    );
    let task = "The area of a raised bed is wrong and crashes";
    let found = found_in_garden(task, &[]);
    assert_eq!(names(found.required), ["test_raised_area"]);
    assert_eq!(names(found.possible), [""; 0]);
    let task = "`RaisedBed.area` is wrong, and those of high priority must come first";
    let found = found_in_garden(task, &[]);
    assert_eq!(names(found.required), ["test_raised_area"]);
    assert_eq!(names(found.possible), ["test_priority_first"]);
}

#[test]
fn test_that_reaches_the_code_only_from_afar_is_required_only_if_its_words_fit_the_task() {
    let task = "settings may leave out keys, but then `load` dies with a KeyError";
    let found = found_in_garden(task, &[]);
    assert_eq!(names(found.required), ["test_settings"]);
    assert_eq!(names(found.possible), ["test_pay"]);
    let task = "Keys that settings leave out should get their default";
    let found = found_in_garden(task, &["garden.py::load"]);
    assert_eq!(names(found.required), ["test_settings"]);
    assert_eq!(names(found.possible), ["test_pay"]);
    let found = found_in_garden(&format!("{task}. The red tests are unrelated."), &[]);
    assert_eq!(names(found.required), [""; 0]);
    assert_eq!(names(found.possible), [""; 0]);
}

/// A program with subcommands, and a function that has nothing to do with most of them.
const SHELF: [(&str, &str); 4] = [
    (
        "pyproject.toml",
        "[project.scripts]\nshelf = \"cli:main\"\n",
    ),
    (
        "lengths.py",
        "def format_length(minutes):\n    return str(minutes)\n",
    ),
    (
        "cli.py",
        "import argparse\nfrom lengths import format_length\n\n\n\
         def cmd_notes(args):\n    print('no book')\n\n\n\
         def cmd_next(args):\n    print(args.now)\n\n\n\
         def cmd_stats(args):\n    print(format_length(3))\n\n\n\
         def main(argv):\n    parser = argparse.ArgumentParser()\n    \
         commands = parser.add_subparsers(dest='command')\n    commands.add_parser('notes')\n    \
         late = commands.add_parser('next')\n    late.add_argument('--now')\n    \
         commands.add_parser('stats')\n    args = parser.parse_args(argv)\n    \
         return globals()['cmd_' + args.command](args)\n",
    ),
    (
        "test_shelf.py",
        "from cli import main\nfrom lengths import format_length\n\n\n\
         def test_format():\n    assert format_length(90) == '1:30'\n\n\n\
         def test_stats():\n    assert main(['stats']) == 0\n\n\n\
         def test_notes():\n    assert main(['notes']) == 1\n\n\n\
         def test_next():\n    assert main(['next', '--now', '2026-01-01']) == 0\n",
    ),
];

#[test]
fn command_line_in_the_task_decides_which_failing_tests_belong_to_it() {
    let cases = ["test_format", "test_stats", "test_notes", "test_next"];
    let case = |name: &&str| TestCase {
        id: format!("test_shelf.py::{name}"),
        ..case(name, "assert 1 == 2")
    };
    for (task, required) in [
        (
            "shelf notes 99 prints to stdout and exits with 0; it should go to stderr and exit with 1",
            "test_notes",
        ),
        (
            "shelf next --now with a naive time prints the wrong release",
            "test_next",
        ),
        ("`--now` is ignored", "test_next"),
    ] {
        let found = found_in(&SHELF, task, &[], cases.iter().map(case).collect());
        assert_eq!(names(found.required), [required], "{task}");
        assert_eq!(names(found.possible), [""; 0], "{task}");
    }
}

#[test]
fn plain_word_is_no_code_that_must_be_fixed_if_the_task_names_a_data_file() {
    let files = [
        ("episodes.json", "[]\n"),
        (
            "shows.py",
            "class Episode:\n    pass\n\n\ndef newest(all):\n    return all[0]\n",
        ),
        (
            "test_shows.py",
            "from shows import Episode, newest\n\n\n\
             def test_order():\n    assert newest([Episode()]) is None\n",
        ),
    ];
    let red = || {
        vec![TestCase {
            id: "test_shows.py::test_order".to_owned(),
            ..case("test_order", "assert 1 == 2")
        }]
    };
    let task = "Episode 13 gets the tag water in episodes.json";
    let found = found_in(&files, task, &["episodes.json::"], red());
    assert_eq!(names(found.required), [""; 0]);
    assert_eq!(names(found.near), ["test_order"]);
    let found = found_in(&files, task, &["shows.py::newest"], red());
    assert_eq!(names(found.required), ["test_order"]);
    let found = found_in(&files, "Episode 13 has no tag", &[], red());
    assert_eq!(names(found.required), ["test_order"]);
}

#[test]
fn other_tests_that_the_task_leaves_are_those_that_its_words_do_not_fit() {
    let task = "The season in November must be autumn, but is not.";
    let others = format!("{task} Other red tests are unrelated.");
    let found = found_in_garden(&others, &[]);
    assert_eq!(names(found.required), [""; 0]);
    assert_eq!(names(found.possible), ["test_season_of"]);
    let all = format!("{task} The red tests are unrelated.");
    assert_eq!(names(found_in_garden(&all, &[]).possible), [""; 0]);
}

/// A project in which three tests fail. Each test runs a member of a class.
const SEEDS: [(&str, &str); 2] = [
    (
        "model.py",
        "class Packet:\n    def shares(self):\n        return 1.5\n\n    \
         def describe(self):\n        return 'x'\n\n\nclass Bean(Packet):\n    pass\n\n\n\
         class Report:\n    def __init__(self, packets):\n        self.packets = packets\n",
    ),
    (
        "test_model.py",
        "from model import Bean, Packet, Report\n\n\n\
         def test_whole():\n    assert Bean().shares() == 1\n\n\n\
         def test_text():\n    assert Packet().describe() == 'y'\n\n\n\
         def test_rows():\n    assert Report([]).packets == 1\n",
    ),
];

fn required_of_seeds(task: &str) -> Vec<String> {
    let cases = ["test_whole", "test_text", "test_rows"].map(|name| TestCase {
        id: format!("test_model.py::{name}"),
        ..case(name, "assert 1 == 2")
    });
    let found = found_in(&SEEDS, task, &[], cases.to_vec());
    let may_be = names(&found.possible | &found.near);
    assert_eq!(may_be, [""; 0], "{task}");
    names(found.required)
}

#[test]
fn class_requires_its_tests_only_if_the_task_names_no_function() {
    let session = ">>> from model import Bean\n>>> Bean(1).describe()\n'y'\n";
    for (task, required) in [
        ("`Packet` is broken", &["test_text", "test_whole"][..]),
        ("`Packet.describe` is wrong for a `Bean`", &["test_text"]),
        ("`Packet` needs a method `is_empty`.", &[]),
        (
            &format!("`describe` shows no grower:\n\n{session}"),
            &["test_text"],
        ),
        (
            "It shows no grower:\n```python\nPacket(1).describe()\n```\n",
            &["test_text"],
        ),
        // The example only constructs the `Packet`.
        (
            "`Report` is broken:\n```python\nReport([Packet(1)])\n```\n",
            &["test_rows"],
        ),
        (
            "This crashes:\n```python\nReport([])\n```\n",
            &["test_rows"],
        ),
    ] {
        assert_eq!(required_of_seeds(task), required, "{task}");
    }
}

#[test]
fn tests_that_the_task_excludes_are_not_required() {
    let task = "`Packet.describe` shows no grower.";
    assert_eq!(required_of_seeds(task), ["test_text"]);
    for rest in [
        "Other red tests are unrelated.",
        "The other failing tests are known",
        "unrelated red tests stay",
        "The remaining red tests stay as they are.",
    ] {
        let task = format!("{task} {rest}");
        assert_eq!(required_of_seeds(&task), [""; 0], "{task}");
        let named = format!("`Packet.describe` is wrong, see test_text. {rest}");
        assert_eq!(required_of_seeds(&named), ["test_text"], "{named}");
    }
}

/// A program whose main function carries out its subcommands itself.
const ROTA: [(&str, &str); 4] = [
    ("pyproject.toml", "[project.scripts]\nrota = \"cli:main\"\n"),
    (
        "report.py",
        "def counts(members):\n    return len(members)\n\n\ndef table(rota):\n    return str(rota)\n\n\n\
         def forecast(day):\n    return day\n\n\ndef weather_lines(days):\n    \
         return [forecast(day) for day in days]\n",
    ),
    (
        "cli.py",
        "import argparse\nimport report\n\n\ndef build_parser():\n    \
         parser = argparse.ArgumentParser()\n    commands = parser.add_subparsers(dest='command')\n    \
         for name, text in (('plan', 'print a rota'), ('ical', 'write'), ('stats', 'count')):\n        \
         one = commands.add_parser(name, help=text)\n        if name == 'stats':\n            \
         continue\n        one.add_argument('--days')\n        one.add_argument('--weather')\n    \
         commands.choices['plan'].add_argument('--phones')\n    return parser\n\n\n\
         def main(argv):\n    args = build_parser().parse_args(argv)\n    \
         if args.command == 'stats':\n        print(report.counts([]))\n        return 0\n    \
         if args.command == \"ical\":\n        return 1\n    print(report.table(args.days))\n    \
         if args.weather:\n        for line in report.weather_lines(args.weather):\n            \
         print(line)\n    return 0\n",
    ),
    (
        "test_rota.py",
        "from cli import main\n\n\ndef test_plan_lists_minimum(capsys):\n    \
         main(['plan', '--days', '2'])\n    assert '01.01. night' in capsys.readouterr().out\n\n\n\
         def test_numbers():\n    assert main(['stats']) == 5\n\n\n\
         def test_storm():\n    assert main(['plan', '--weather=w.json']) == 5\n\n\n\
         def test_given(words):\n    assert main(words) == 5\n",
    ),
];

fn found_in_rota(task: &str) -> (Vec<String>, Vec<String>) {
    let red = [
        "test_plan_lists_minimum",
        "test_numbers",
        "test_storm",
        "test_given",
    ];
    let red = red.map(|name| TestCase {
        id: format!("test_rota.py::{name}"),
        ..case(name, "assert 1 == 2")
    });
    let found = found_in(&ROTA, task, &[], red.to_vec());
    (names(found.required), names(&found.possible | &found.near))
}

#[test]
fn test_that_runs_another_subcommand_is_no_part_of_the_task() {
    for task in [
        "counts() counts one member too many. Fix it.",
        "`counts` counts one member too many",
        "report.counts counts one member too many, fix it.",
        "`counts` is wrong. Please repair this.",
        "rota stats should print a headline.",
        "`rota stats` counts twice. Fix it.",
        "rota stats prints the wrong number",
    ] {
        let expected = (
            vec!["test_given".to_owned(), "test_numbers".to_owned()],
            Vec::new(),
        );
        assert_eq!(found_in_rota(task), expected, "{task}");
    }
    let (required, possible) = found_in_rota("rota ical should write a line X-CALNAME.");
    assert_eq!(
        (required, possible),
        (vec!["test_given".to_owned()], Vec::new())
    );
    let (required, _) = found_in_rota("`table` shows no names");
    assert_eq!(required.len(), 4, "{required:?}");
}

#[test]
fn test_that_does_not_give_an_option_is_no_part_of_a_task_about_the_code_behind_it() {
    for task in [
        "`forecast` is wrong at night",
        "`weather_lines` is wrong at night",
    ] {
        let (required, possible) = found_in_rota(task);
        let others = ["test_numbers", "test_plan_lists_minimum"];
        let all = [required, possible].concat();
        assert!(all.contains(&"test_storm".to_owned()), "{task}: {all:?}");
        assert!(
            !others.iter().any(|one| all.iter().any(|id| id == one)),
            "{task}: {all:?}"
        );
    }
}

#[test]
fn test_that_contains_the_compared_word_in_a_longer_string_reaches_the_code() {
    let files = [
        (
            "units.py",
            "def to_kg(x):\n    return x\n\n\ndef convert(text, to):\n    \
             amount, unit = text.split()\n    if unit == 'kg':\n        return to_kg(amount)\n    \
             if to == 'lb':\n        return 2\n    return 1\n",
        ),
        (
            "test_units.py",
            "from units import convert\n\n\ndef test_weight():\n    \
             assert convert('3 kg', 'lb') == 3\n\n\ndef test_pound():\n    \
             assert convert('3 st', 'lb') == 3\n",
        ),
    ];
    let red = ["test_weight", "test_pound"].map(|name| TestCase {
        id: format!("test_units.py::{name}"),
        ..case(name, "assert 1 == 2")
    });
    let found = found_in(&files, "`to_kg` is wrong", &[], red.to_vec());
    assert_eq!(names(found.required), ["test_weight"]);
}

#[test]
fn options_of_an_example_draw_no_test_if_the_prose_names_the_command_line() {
    let told = "rota plan --phones prints no phone numbers";
    let command = "python -m rota plan m.csv --days 1 --phones";
    for task in [
        format!("{told}."),
        format!("{told}:\n\n$ {command}\n\nshould print 0170 444 behind the name."),
        format!("{told}.\n\n    $ {command}\n    Vogt, Jana\n"),
        format!("{told}:\n```sh\n{command}\n```\n"),
        format!("`rota plan --phones` prints no numbers\n```\n$ {command}\nVogt, Jana\n```\n"),
        format!("With `--phones`, no numbers are printed:\n~~~console\n$ {command}\n~~~\n"),
    ] {
        assert_eq!(found_in_rota(&task), (Vec::new(), Vec::new()), "{task}");
    }
    // The prose names no command line, so the example does.
    let task = "This prints one day too few:\n\n$ rota plan m.csv --days 2\n";
    let (required, _) = found_in_rota(task);
    let minimum = "test_plan_lists_minimum".to_owned();
    assert!(required.contains(&minimum), "{required:?}");
}

#[test]
fn name_of_a_new_parameter_is_no_word_of_a_test_that_does_not_pass_it() {
    let files = [
        (
            "weather.py",
            "def fetch(day):\n    return day\n\n\ndef one(day):\n    return fetch(day)\n\n\n\
             def lines(day):\n    return one(day)\n",
        ),
        (
            "test_weather.py",
            "from weather import fetch, lines\n\n\ndef test_plan():\n    \
             assert lines(1) == '01.01. night'\n\n\ndef test_heat():\n    \
             assert lines(1) == 0 or fetch(1, night=True)\n",
        ),
    ];
    let red = ["test_plan", "test_heat"].map(|name| TestCase {
        id: format!("test_weather.py::{name}"),
        ..case(name, "assert 1 == 2")
    });
    for declared in [
        "a keyword-only argument night: bool = False",
        "`night: bool = False`",
        "an argument night: str | None=None",
        "an optional parameter `night: int = 0`, for the night,",
    ] {
        let task = format!("`fetch` should take {declared} and not count the sun at night.");
        let found = found_in(&files, &task, &[], red.to_vec());
        assert_eq!(names(found.required), ["test_heat"], "{task}");
    }
    let task = "`fetch` is wrong: at night = 3 it crashes";
    let found = found_in(&files, task, &[], red.to_vec());
    assert_eq!(names(found.required).len(), 2, "{task}");
}
