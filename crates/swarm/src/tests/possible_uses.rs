//! Uses that are only possible: through objects that code from outside the project holds, through objects
//! of unknown type, and in templates.

use starling_core::Approval;

use super::bed::*;
use crate::*;

const WAITING: &str = "class WaitingList:\n    def __init__(self):\n        self.names = []\n\n    \
                       def position(self, name):\n        return self.names.index(name)\n";
const APP: &str = "from flask import g\nfrom waiting import WaitingList\n\n\ndef start():\n    \
                   g.waiting = WaitingList()\n\n\ndef show(name):\n    return g.waiting.position(name)\n";
const WIDER: &str =
    "    def position(self, name, start):\n        return start + self.names.index(name)\n";
const PAGE: &str =
    "<h1>position</h1>\n{% for name in names %}\n<li>{{ list.position(name) }}\n{% endfor %}\n";

/// Runs a task with a model that makes these changes, each the source of a symbol.
async fn run(
    task: &str,
    files: &[(&str, &str)],
    changes: &[(&str, &str)],
    approval: Approval,
) -> (Bed, Vec<Event>) {
    let mut model = Scripted::native().always("proxy", say("ACCEPT"));
    for (symbol, source) in changes {
        model = model.always(&format!("agent {symbol}"), whole(source));
    }
    let begin: Vec<&str> = changes.iter().map(|(symbol, _)| *symbol).collect();
    let mut bed = Bed::new(files, model.always("agent", finish("nothing")))
        .begin(&begin)
        .tests(|_| Vec::new())
        .with(|it| {
            it.text = task.to_owned();
            it.approval = approval;
        });
    let events = bed.run().await;
    (bed, events)
}

#[tokio::test(start_paused = true)]
async fn rename_or_deletion_without_a_model_stops_at_a_use_that_is_only_possible() {
    let page = ("templates/list.html", PAGE);
    for (more, place) in [
        (
            ("app.py", APP),
            "1 place may mean another `position`: app.py:10",
        ),
        (
            page,
            "`position` occurs in a template: templates/list.html:3",
        ),
    ] {
        for task in [
            "Rename `WaitingList.position` to `place_of`",
            "Delete `WaitingList.position`",
        ] {
            let files = [("waiting.py", WAITING), more];
            let mut bed = Bed::new(&files, Scripted::small()).with(|it| it.text = task.to_owned());
            let StopReason::NothingChanged { why } = stop(&bed.run().await) else {
                panic!("{task}");
            };
            assert!(why.contains(place), "{task}: {why}");
            assert_eq!(bed.model.calls(), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn headline_names_a_possible_caller_that_a_changed_signature_breaks() {
    let task = "Add a required parameter `start` to WaitingList.position";
    let change = [("waiting.py::WaitingList.position", WIDER)];
    let told = "`WaitingList.position` may still be called as before at app.py:10";
    let by_parameter = APP.replace("def show(name)", "def show(g, name)");
    for app in [APP, &by_parameter] {
        let files = [("waiting.py", WAITING), ("app.py", app)];
        let (_, events) = run(task, &files, &change, Approval::Ask).await;
        let (proof, headline) = ending(&events);
        let place = "app.py:10";
        assert_eq!(proof, Proof::Unproven, "{headline}");
        assert!(headline.starts_with("Done, but "), "{headline}");
        assert!(headline.contains(place), "{headline}");
    }
    let files = [("waiting.py", WAITING), ("app.py", APP)];
    let (bed, events) = run(task, &files, &change, Approval::Auto).await;
    assert!(bed.read("waiting.py").contains("start + "), "{events:#?}");
    let (_, headline) = ending(&events);
    assert!(headline.contains(told), "{headline}");
    // A caller that is adapted, and calls that never fitted, are not named.
    let show = "def show(name):\n    return g.waiting.position(name, 1)\n";
    let adapted = [change[0], ("app.py::show", show)];
    let (_, events) = run(task, &files, &adapted, Approval::Auto).await;
    let (_, headline) = ending(&events);
    assert!(!headline.contains("may still"), "{headline}");
    let other = APP.replace("position(name)", "position(1, 2, 3)");
    let files = [("waiting.py", WAITING), ("app.py", &*other)];
    let (_, events) = run(task, &files, &change, Approval::Auto).await;
    let (_, headline) = ending(&events);
    assert!(!headline.contains("may still"), "{headline}");
}

/// Another class has a method of the same name, so that the calls on objects of unknown type are not
/// compared with the changed method before it is applied.
#[tokio::test(start_paused = true)]
async fn headline_names_a_call_on_an_object_of_unknown_type_that_stays_broken() {
    let user = "class Cursor:\n    def position(self, name):\n        return 0\n\n\ndef show(waiting_list, name):\n    \
                return waiting_list.position(name)\n";
    let files = [("waiting.py", WAITING), ("user.py", user)];
    let change = [("waiting.py::WaitingList.position", WIDER)];
    let (_, events) = run("Count from a start", &files, &change, Approval::Ask).await;
    let (_, headline) = ending(&events);
    let told = "Done, but `WaitingList.position` may still be called as before at user.py:7";
    assert!(headline.starts_with(told), "{headline}");
}

#[tokio::test(start_paused = true)]
async fn evidence_names_possible_callers_of_a_changed_signature() {
    let files = [
        ("waiting.py", WAITING),
        ("app.py", APP),
        ("templates/list.html", PAGE),
    ];
    let change = [("waiting.py::WaitingList.position", WIDER)];
    let (bed, _) = run("Count from a start", &files, &change, Approval::Ask).await;
    let seen = bed.approver.seen.lock().unwrap();
    let told = "no direct caller; may be called on objects of unknown type at app.py:10, \
                templates/list.html:3\n";
    assert!(seen[0].evidence.contains(told), "{}", seen[0].evidence);
}

#[tokio::test(start_paused = true)]
async fn headline_names_possible_uses_and_mentions_of_a_renamed_method() {
    let renamed = "    def place_of(self, name):\n        return self.names.index(name)\n";
    let script = "document.title = row.position;\nlet position = 1;\n";
    let files = [
        ("waiting.py", WAITING),
        ("app.py", APP),
        ("templates/list.html", PAGE),
        ("static/page.js", script),
        ("history.sql", "-- see WaitingList.position\n"),
        ("package.lock", "list.position\n"),
    ];
    let change = [("waiting.py::WaitingList.position", renamed)];
    let task = "Rename `WaitingList.position` to `place_of`";
    let (bed, events) = run(task, &files, &change, Approval::Auto).await;
    assert!(bed.read("waiting.py").contains("place_of"), "{events:#?}");
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    for told in [
        "Done, but `position` may still be used at app.py:10, `position` is still mentioned in templates/list.html:3",
        "; `position` is still mentioned in history.sql:1, static/page.js:1",
    ] {
        assert!(headline.contains(told), "{headline}");
    }
}

/// The methods of two related classes are renamed together with a caller of either.
#[tokio::test(start_paused = true)]
async fn callers_that_change_in_the_same_set_are_not_called_still_valid() {
    let plots = "class Plot:\n    def fee(self):\n        return 1\n\n\nclass House(Plot):\n    def fee(self):\n        \
                 return super().fee() + 1\n";
    let user = "def income(plots):\n    return sum(plot.fee() for plot in plots)\n";
    let files = [("plots.py", plots), ("user.py", user)];
    let new = user.replace("fee()", "charge()");
    let changes = [
        (
            "plots.py::Plot.fee",
            "    def charge(self):\n        return 1\n",
        ),
        (
            "plots.py::House.fee",
            "    def charge(self):\n        return super().charge() + 1\n",
        ),
        ("user.py::income", &*new),
    ];
    let (bed, events) = run("Use charge for fee", &files, &changes, Approval::Proxy).await;
    let told: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::ProposalChecked { evidence, .. } => Some(evidence.callers_in_words()),
            _ => None,
        })
        .collect();
    assert!(!told.is_empty() && !bed.read("plots.py").is_empty());
    for one in &told {
        assert!(!one.contains("still valid"), "{told:#?}");
    }
    assert!(
        told.iter().any(|one| one.contains("user.py::income")),
        "{told:#?}"
    );
}

const TOOL: &str = "class Tool(Model):\n    deposit_cents = Field(0)\n";
const FORMS: &str = "from models import Tool\n\n\nclass ToolForm(Form):\n    class Meta:\n        model = Tool\n\n    \
                     def clean_deposit_cents(self):\n        return 1\n";
const TOOL_TEST: &str =
    "def test_tool(client):\n    client.post(\"/tools\", {\"deposit_cents\": 0})\n";

/// A framework calls the method by the name of the field, and a form reads its fields by their names.
#[tokio::test(start_paused = true)]
async fn headline_names_methods_and_strings_that_keep_the_name_of_a_renamed_field() {
    let migration = "operations = [RenameField(\"tool\", \"deposit_cents\", \"deposit\")]\n";
    let files = [
        ("models.py", TOOL),
        ("forms.py", FORMS),
        ("test_tool.py", TOOL_TEST),
        ("migrations/two.py", migration),
    ];
    let task = "Rename the field `deposit_cents` of Tool to `deposit`";
    let change = [(
        "models.py::Tool",
        "class Tool(Model):\n    deposit = Field(0)\n",
    )];
    let (_, events) = run(task, &files, &change, Approval::Ask).await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    for told in [
        "`deposit_cents` is still in the name of a method: forms.py:8",
        "`deposit_cents` still occurs in a string: test_tool.py:2",
    ] {
        assert!(headline.contains(told), "{headline}");
    }
}

#[tokio::test(start_paused = true)]
async fn headline_names_possible_uses_of_a_renamed_name_that_something_else_keeps() {
    let tool = |name: &str| format!("    def holder(self):\n        return self.{name}.first()\n");
    let loan = |name: &str| {
        format!(
            "class Loan(Model):\n    tool = Key(Tool, related_name=\"{name}\")\n    member = Key(Member, \
             related_name=\"loans\")\n"
        )
    };
    let member =
        "class Member(Model):\n    def open_loans(self):\n        return self.loans.all()\n";
    let models = format!(
        "from django.db.models import Key, Model\n\n\n{member}\n\nclass Tool(Model):\n{}\n\n{}",
        tool("loans"),
        loan("loans")
    );
    let page = "{% for loan in tool.loans.all %}{% endfor %}\n{{ member.loans.count }}\n";
    let files = [("models.py", &*models), ("templates/tool.html", page)];
    let task =
        "The related_name `loans` of Loan.tool should be called `lendings`; Member keeps `loans`.";
    let (new_tool, new_loan) = (tool("lendings"), loan("lendings"));
    let change = [
        ("models.py::Tool.holder", &*new_tool),
        ("models.py::Loan", &*new_loan),
    ];
    let (_, events) = run(task, &files, &change, Approval::Ask).await;
    let (proof, headline) = ending(&events);
    assert_eq!(proof, Proof::Unproven, "{headline}");
    let told = "`loans` may still mean what was renamed at templates/tool.html:1";
    assert!(headline.contains(told), "{headline}");
    assert!(!headline.contains("tool.html:2"), "{headline}");
}

const SINK: &str = "from typing import Protocol\n\n\nclass Sink(Protocol):\n    def write(self, text: str) -> None: ...\n\n    \
                    def flush(self) -> None: ...\n";
const FILES: &str = "class FileSink:\n    def write(self, text):\n        self.text = text\n\n    def flush(self):\n        pass\n\n\n\
                     class Pipe:\n    def write(self, text):\n        self.text = text\n";
const RELAY: &str = "from sinks import Sink\n\n\ndef relay(sink: Sink, lines):\n    for line in lines:\n        sink.write(line)\n";

/// `FileSink` defines all methods of the `Protocol`, `Pipe` does not.
#[tokio::test(start_paused = true)]
async fn evidence_lists_the_callers_of_a_protocol_that_a_changed_method_may_implement() {
    let files = [("sinks.py", SINK), ("files.py", FILES), ("relay.py", RELAY)];
    let wider = "    def write(self, text, end):\n        self.text = text + end\n";
    let through = |class: &'static str| async move {
        let symbol = format!("files.py::{class}.write");
        let change = [(symbol.as_str(), wider)];
        let task = format!("Add a required parameter `end` to {class}.write");
        let (_, events) = run(&task, &files, &change, Approval::Ask).await;
        let checked = events.iter().find_map(|event| match event {
            Event::ProposalChecked { evidence, .. } => Some(evidence.indirect_callers.clone()),
            _ => None,
        });
        let callers = checked.expect("a check").into_iter();
        let callers = callers.map(|one| (one.file.to_string(), one.line, one.through));
        callers.collect::<Vec<_>>()
    };
    let protocol = "sinks.py::Sink.write".parse().unwrap();
    let expected = ("relay.py".to_owned(), 6, Some(protocol));
    assert_eq!(through("FileSink").await, [expected]);
    assert_eq!(through("Pipe").await, []);
}

#[tokio::test(start_paused = true)]
async fn headline_names_the_class_that_may_implement_a_renamed_method_of_a_protocol() {
    let files = [("sinks.py", SINK), ("files.py", FILES), ("relay.py", RELAY)];
    let task = "Rename `Sink.write` to `put`";
    let sink = "    def put(self, text: str) -> None: ...\n";
    let relay = "def relay(sink: Sink, lines):\n    for line in lines:\n        sink.put(line)\n";
    let changes = [("sinks.py::Sink.write", sink), ("relay.py::relay", relay)];
    let (bed, events) = run(task, &files, &changes, Approval::Ask).await;
    assert!(bed.read("sinks.py").contains("def put"), "{events:#?}");
    let (_, headline) = ending(&events);
    let told = "`write` is still defined at files.py:2, in a class that may implement `Sink`";
    assert!(headline.starts_with("Done, but "), "{headline}");
    assert!(headline.contains(told), "{headline}");
    let followed = "    def put(self, text):\n        self.text = text\n";
    let all = [
        changes[0],
        changes[1],
        ("files.py::FileSink.write", followed),
    ];
    let (_, events) = run(task, &files, &all, Approval::Ask).await;
    let (_, headline) = ending(&events);
    assert!(!headline.contains("may implement"), "{headline}");
}
