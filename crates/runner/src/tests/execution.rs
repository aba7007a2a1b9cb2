//! What failing tests executed is recorded without any effect on them.

use super::results::{project, tests_of};
use super::*;
use starling_core::{CodeLine, ExecutedFrame, Executions, FailingExecution};

const SHOP: &str = "\
class Item:
    __slots__ = ('price',)

    def __init__(self, price):
        self.price = price

class Cart:
    shown = 0

    def __init__(self, items, password):
        self.items = items
        self.password = password

    def __repr__(self):
        Cart.shown += 1
        raise RuntimeError('shown')

    def total(self, rate, token):
        long = 'x' * 500
        return sum(item.price for item in self.items) / rate
";
const TESTS: &str = "\
from shop import Cart, Item

def test_total(helper):
    cart = Cart([Item(2), Item(3)], 'hunter2')
    token = open('.env').read().strip().partition('=')[2]
    helper(lambda: cart.total(0, token))

def test_shown():
    assert Cart.shown == 0
";
const CONFTEST: &str = "\
import pytest

@pytest.fixture
def helper():
    def call(action):
        inner = 1
        return action()
    return call
";

fn shop() -> Project {
    project(&[
        ("shop.py", SHOP),
        ("test_shop.py", TESTS),
        ("conftest.py", CONFTEST),
        (".env", "TOKEN=correct-horse-battery\n"),
    ])
}

/// Records the executions of the selected tests; those that fail are the failing ones.
async fn record(tests: &ProjectTests, select: &[&str]) -> Executions {
    let report = tests.run(request(select, &[])).await;
    let failing = report.cases.into_iter();
    let failing = failing.filter(|case| case.status != TestStatus::Passed);
    let failing = failing.map(|case| case.id).collect();
    tests.record(request(select, &[]), &failing).await
}

fn of<'e>(executions: &'e Executions, id: &str) -> &'e FailingExecution {
    let mut found = executions.failing.iter();
    found.find(|one| one.id == id).expect("the test failed")
}

#[tokio::test]
async fn frames_of_a_failing_test_have_the_values_of_their_variables() {
    let project = shop();
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let executions = record(&tests, &["test_shop.py"]).await;
    let failed = of(&executions, "test_shop.py::test_total");
    let cart = "Cart(items=[Item(price=2), Item(price=3)], password=[secret])";
    let frame = |file: &str, line, function: &str, values: &[&str]| ExecutedFrame {
        file: FilePath::new(file),
        line,
        function: function.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let expected = [
        frame(
            "test_shop.py",
            6,
            "test_total",
            &["token = '[secret]'", &format!("cart = {cart}")],
        ),
        frame(
            "test_shop.py",
            6,
            "<lambda>",
            &[&format!("cart = {cart}"), "token = '[secret]'"],
        ),
        frame(
            "shop.py",
            20,
            "total",
            &[
                &format!("self = {cart}"),
                "rate = 0",
                "token = '[secret]'",
                "long = <str of length 500>",
            ],
        ),
    ];
    let sorted = |frames: &[ExecutedFrame]| {
        let mut frames = frames.to_vec();
        frames.iter_mut().for_each(|one| one.values.sort());
        frames
    };
    assert_eq!(sorted(&failed.frames), sorted(&expected));
    // `Cart.__repr__` was not called, or the other test would fail.
    assert_eq!(executions.failing.len(), 1);
}

#[tokio::test]
async fn values_are_shown_without_code_of_the_project() {
    let code = "\
class Loud(dict):
    def __repr__(self): raise ValueError
    def items(self): raise ValueError
class Name(str):
    def __repr__(self): raise ValueError
class Sly:
    @property
    def __class__(self): raise ValueError
    def __getattribute__(self, name): raise ValueError
    def __eq__(self, other): raise ValueError
def show():
    loud, name, sly = Loud(a=1), Name('n'), Sly()
    deep = [[[[1]]]]
    many = list(range(9))
    huge = 10 ** 9999
    pair, one, empty = {'k': (1,)}, {2}, set()
    import datetime
    day = datetime.date(2026, 1, 2)
    raise KeyError(name)
";
    let test = "from show import show\ndef test_a():\n    show()\n";
    let project = project(&[("show.py", code), ("test_m.py", test)]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let executions = record(&tests, &[]).await;
    let frames = &of(&executions, "test_m.py::test_a").frames;
    let mut values = frames.last().expect("a frame").values.clone();
    values.sort();
    let expected = [
        "day = datetime.date(2026, 1, 2)",
        "deep = [[[<list of length 1>]]]",
        "empty = set()",
        "huge = <int of 33216 bits>",
        "loud = Loud({'a': 1})",
        "many = [0, 1, 2, 3, 4, ...]",
        "name = 'n'",
        "one = {2}",
        "pair = {'k': (1,)}",
        "sly = <Sly>",
    ];
    assert_eq!(values, expected);
}

#[tokio::test]
async fn runner_without_a_recorder_records_nothing() {
    let project = unittest_project();
    for command in ["python3 -m unittest discover -v -s tests -t .", "exit 3"] {
        let tests = project.tests(Some(command)).await;
        assert_eq!(record(&tests, &[]).await, Executions::default());
    }
    let tests = project.tests(None).await;
    assert_eq!(record(&tests, &[]).await, Executions::default());
}

const TAX: &str = "\
import json

def net(price):
    return price / 2

class Bill:
    def __init__(self, rows):
        self.rows = rows

    def __repr__(self):
        return 'bill'

    def gross(self, kind):
        if kind == 'low':
            return low(self.rows[0])
        return (lambda price: net(price))(self.rows[0])

def low(price):
    return json.loads(str(net(price) * 3))
";
const TAX_TESTS: &str = "\
import pytest
from tax import Bill

@pytest.fixture
def bill():
    return Bill([4])

@pytest.mark.parametrize('kind', ['high', 'low'])
def test_gross(bill, kind):
    assert bill.gross(kind) == 2, bill

def test_rows(bill):
    assert bill.rows
";

/// Whether the interpreter of the tests reports lines, and not only functions.
fn has_lines(tests: &ProjectTests) -> bool {
    let version = tests.python().expect("the interpreter is known");
    let minor = version
        .split('.')
        .nth(1)
        .and_then(|minor| minor.parse().ok());
    minor.is_some_and(|minor: u32| minor >= 12)
}

fn lines_of_tax<'l>(lines: impl Iterator<Item = &'l CodeLine>) -> Vec<u32> {
    let own = lines.filter(|(file, _)| file.as_str() == "tax.py");
    own.map(|(_, line)| *line).collect()
}

#[tokio::test]
async fn lines_of_failing_and_of_passing_cases_of_a_parametrized_test_are_recorded() {
    let project = project(&[("tax.py", TAX), ("test_tax.py", TAX_TESTS)]);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let executions = record(&tests, &["test_tax.py"]).await;
    let low = of(&executions, "test_tax.py::test_gross[low]");
    let failed = lines_of_tax(low.lines.iter());
    let passed = lines_of_tax(executions.passing.keys());
    // What shows the message of the failure, `__repr__`, is left out.
    if has_lines(&tests) {
        assert_eq!(failed, [3, 4, 7, 8, 13, 14, 15, 18, 19]);
        assert_eq!(passed, [3, 4, 7, 8, 13, 14, 16]);
        assert_eq!(executions.passed, 2);
        assert_eq!(executions.passing[&(FilePath::new("tax.py"), 8)], 2);
        assert_eq!(executions.passing[&(FilePath::new("tax.py"), 14)], 1);
    } else {
        assert_eq!(failed, [3, 7, 13, 18]);
        assert_eq!(passed, [3, 7, 13, 16]);
    }
}

/// Recording gives way to other tools that use the same interfaces of Python.
#[tokio::test]
async fn tests_run_without_recorded_lines_if_no_tool_is_free() {
    let taken = "import sys\nif hasattr(sys, 'monitoring'):\n    for tool in range(6):\n        \
        sys.monitoring.use_tool_id(tool, 'other')\nelse:\n    sys.setprofile(lambda *_: None)\n";
    let files = [
        ("tax.py", TAX),
        ("test_tax.py", TAX_TESTS),
        ("conftest.py", taken),
    ];
    let project = project(&files);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let executions = record(&tests, &[]).await;
    let failed = of(&executions, "test_tax.py::test_gross[low]");
    assert!(failed.lines.is_empty() && !failed.frames.is_empty());
    assert_eq!((executions.passed, executions.passing.len()), (0, 0));
}

/// Coverage asks Python to report each function once. Recording must not cause a second report.
#[tokio::test]
async fn recording_has_no_effect_on_another_tool() {
    let other = "\
import sys, pytest
seen = []
def pytest_sessionstart():
    if hasattr(sys, 'monitoring'):
        events = sys.monitoring.events
        sys.monitoring.use_tool_id(1, 'other')
        def started(code, offset):
            if code.co_name == 'net': seen.append(code)
            return sys.monitoring.DISABLE
        sys.monitoring.register_callback(1, events.PY_START, started)
        sys.monitoring.set_events(1, events.PY_START)
@pytest.fixture
def events():
    return seen
";
    let test = "from tax import net\nimport pytest\n@pytest.mark.parametrize('n', range(3))\n\
        def test_net(n, events):\n    net(4)\n    assert len(events) < 2\n\
        def test_red():\n    assert net(4) == 3\n";
    let files = [
        ("tax.py", TAX),
        ("test_net.py", test),
        ("conftest.py", other),
    ];
    let project = project(&files);
    let Some(tests) = tests_of(&project, None).await else {
        return;
    };
    let executions = record(&tests, &["test_net.py"]).await;
    let red = of(&executions, "test_net.py::test_red");
    assert!(lines_of_tax(red.lines.iter()).contains(&3));
    if has_lines(&tests) {
        assert_eq!(executions.passed, 3);
        assert_eq!(executions.passing[&(FilePath::new("tax.py"), 3)], 3);
    }
}
