//! Diagnostics of a proposal: introduced problems, automatic fixes without a model, and unknown
//! results.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::json;

use super::bed::*;
use crate::*;
use starling_core::*;
use starling_syntax::FilePath;

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";

/// A language service that reports a blocking error for each line with `bad`, and an error that
/// does not block a proposal for each line with `odd`.
#[derive(Default)]
struct FakeLanguageService {
    asked: Mutex<Vec<TextRequest>>,
    prepared: Mutex<Vec<TextRequest>>,
    knows_nothing: Mutex<Option<String>>,
    second: Option<&'static str>,
    /// Whether the language service is missing.
    absent: bool,
    /// Text of a problem that the thorough diagnostics report, but only from their second request
    /// on.
    late: Option<&'static str>,
    /// If another file contains this text, the service reports no problems.
    excuse: Option<&'static str>,
    imports: Vec<String>,
}

impl FakeLanguageService {
    fn problem(&self, request: &TextRequest, line: usize, text: &str) -> Option<Problem> {
        let late = self.late.is_some_and(|late| text.contains(late));
        let stops = text.contains("bad") || late && request.effort == Effort::Thorough;
        (stops || text.contains("odd")).then(|| Problem {
            file: request.file.clone(),
            line: line as u32 + 1,
            severity: Severity::Error,
            message: text.trim().to_owned(),
            source: "finds".to_owned(),
            kind: ProblemKind::Name,
            stops,
            range: request.text.find("bad").map(|start| {
                let rest = &request.text[start..];
                let end = rest.find(['(', '\n', ')']).unwrap_or(rest.len());
                starling_text::ByteRange::new(start, start + end)
            }),
        })
    }
}

#[async_trait]
impl LanguageService for FakeLanguageService {
    async fn diagnostics(&self, request: TextRequest) -> Diagnostics {
        self.asked.lock().unwrap().push(request.clone());
        if let Some(reason) = self.knows_nothing.lock().unwrap().clone() {
            return Diagnostics::Unknown { reason };
        }
        let asked = self.asked.lock().unwrap();
        let looks = asked.iter().filter(|one| one.effort == Effort::Thorough);
        let is_late = self.late.is_some() && looks.count() > 1;
        drop(asked);
        if request.effort == Effort::Thorough && !is_late {
            let reason = self.second.unwrap_or_default().to_owned();
            return Diagnostics::Unknown { reason };
        }
        let others = request.overlay.iter().filter_map(|(_, text)| text.as_ref());
        let excuses = |text: &Arc<str>| self.excuse.is_some_and(|excuse| text.contains(excuse));
        let excused = others.clone().any(excuses);
        let lines = request.text.lines().enumerate().filter(|_| !excused);
        let problems = lines.filter_map(|(line, text)| self.problem(&request, line, text));
        Diagnostics::Known {
            tool: "finds 1.0".to_owned(),
            problems: problems.collect(),
        }
    }

    fn has(&self, effort: Effort, _: &FilePath) -> bool {
        !self.absent && (effort == Effort::Fast || self.second.is_some())
    }

    fn prepare(&self, request: TextRequest) {
        self.prepared.lock().unwrap().push(request);
    }

    async fn imports(&self, _: TextRequest, problem: &Problem) -> Vec<String> {
        assert!(problem.message.contains("bad"));
        self.imports.clone()
    }

    fn news(&self) -> Vec<String> {
        vec!["finds 1.0 was started".to_owned()]
    }
}

fn bed(files: &[(&str, &str)], model: Scripted, language: &Arc<FakeLanguageService>) -> Bed {
    let mut bed = Bed::new(files, model);
    bed.language = Some(Arc::<FakeLanguageService>::clone(language));
    bed
}

fn checked(events: &[Event]) -> Vec<&DiagnosticEvidence> {
    let mut found = Vec::new();
    for event in events {
        if let Event::ProposalChecked { evidence, .. } = event {
            found.push(&evidence.diagnostics);
        }
    }
    found
}

fn imports(events: &[Event]) -> Vec<&ImportMends> {
    let mut found = Vec::new();
    for event in events {
        if let Event::ProposalChecked { evidence, .. } = event {
            found.push(&evidence.imports);
        }
    }
    found
}

fn refusals(events: &[Event]) -> Vec<&str> {
    let mut found = Vec::new();
    for event in events {
        if let Event::ProposalRefused { why, .. } = event {
            found.push(why.as_str());
        }
    }
    found
}

#[tokio::test(start_paused = true)]
async fn proposal_that_introduces_a_problem_is_returned_to_its_agent() {
    let bad = whole("def f(x):\n    bad = 0\n    return x\n");
    let good = whole("def f(x):\n    odd = 0\n    return x\n");
    let model = Scripted::native().on("agent a.py::f", [bad, good]);
    let language = Arc::default();
    let old = format!("{TWO}    # bad\n");
    let mut bed = bed(&[("a.py", &old)], model, &language).begin(&["a.py::f"]);
    let events = bed.run().await;
    assert_eq!(
        refusals(&events),
        [
            "Not shown to the approver: this change brings problems that were not there before.\n\
          a.py:2: bad = 0"
        ]
    );
    assert!(bed.read("a.py").contains("odd = 0"));
    let DiagnosticEvidence::Known {
        tool,
        new,
        before,
        after,
        ..
    } = checked(&events)[1]
    else {
        panic!("{events:#?}");
    };
    assert_eq!((tool.as_str(), *before, *after), ("finds 1.0", 1, 2));
    assert_eq!(new[0].message, "odd = 0");
    let started = |event: &&Event| matches!(event, Event::LanguageServer { .. });
    assert!(events.iter().any(|event| started(&event)));
    // The agent's file was diagnosed before the agent's first reply.
    let prepared = language.prepared.lock().unwrap();
    assert_eq!(&*prepared[0].text, old);
}

#[tokio::test(start_paused = true)]
async fn unknown_diagnostics_are_reported_and_do_not_block_the_change() {
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return x.bad\n")]);
    let language: Arc<FakeLanguageService> = Arc::default();
    *language.knows_nothing.lock().unwrap() = Some("it is slow".to_owned());
    let mut bed = bed(&[("a.py", TWO)], model, &language).begin(&["a.py::f"]);
    let events = bed.run().await;
    assert!(bed.read("a.py").contains("return x.bad"));
    let DiagnosticEvidence::Unknown { reason } = checked(&events)[0] else {
        panic!("{events:#?}");
    };
    assert_eq!(reason, "it is slow");
}

#[tokio::test(start_paused = true)]
async fn missing_import_of_a_workspace_symbol_is_added() {
    let model = Scripted::native().on(
        "agent a.py::f",
        [whole("def f(x):\n    return helper(x)\n")],
    );
    let language = Arc::default();
    let files = [
        ("a.py", TWO),
        ("tools.py", "def helper(x):\n    return x\n"),
    ];
    let mut bed = bed(&files, model, &language).begin(&["a.py::f"]);
    let events = bed.run().await;
    let text = bed.read("a.py");
    assert!(text.starts_with("from tools import helper\n"), "{text}");
    assert_eq!(imports(&events)[0].added, ["from tools import helper"]);
    // No model was called for the import.
    assert_eq!(bed.model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn added_import_is_removed_when_another_owner_defines_the_name() {
    let module = json!({"hunks": [{"old": "import os\n", "new": "import os\n\nLIMIT = 2\n"}], "reason": "r"});
    let picks = json!({"symbols": [
        {"symbol": "a.py::f", "why": "w", "source": "def f(x):\n    return LIMIT\n"},
        {"symbol": "a.py::", "why": "w"},
    ]});
    let model = Scripted::native()
        .on("scout", [call("wake", picks)])
        .on("agent a.py::f", [finish("done")])
        .on("agent a.py::", [call("propose", module), finish("done")]);
    let language = Arc::default();
    let files = [
        ("a.py", "import os\n\n\ndef f(x):\n    return os.sep\n"),
        ("tools.py", "def LIMIT():\n    return 1\n"),
    ];
    let mut bed = bed(&files, model, &language);
    let events = bed.run().await;
    assert_eq!(imports(&events)[0].added, ["from tools import LIMIT"]);
    let text = bed.read("a.py");
    assert!(
        text.starts_with("import os\n\nLIMIT = 2\n") && !text.contains("tools"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn removed_import_is_not_added_again_after_its_last_use_is_removed() {
    // The agent of the module first proposes to remove the import. This proposal waits for the
    // change of the function that still uses the import.
    let module =
        json!({"hunks": [{"old": "from tools import helper\n", "new": ""}], "reason": "r"});
    let function = json!({"source": "def f(x):\n    return x\n", "reason": "r"});
    let picks =
        json!({"symbols": [{"symbol": "a.py::", "why": "w"}, {"symbol": "a.py::f", "why": "w"}]});
    let model = Scripted::native()
        .on("scout", [call("wake", picks)])
        .on(
            "agent a.py::f",
            [
                call("outline", json!({"file": "a.py"})),
                call("propose", function),
                finish("done"),
            ],
        )
        .on("agent a.py::", [call("propose", module), finish("done")]);
    let language = Arc::default();
    let files = [
        (
            "a.py",
            "import os\nfrom tools import helper\n\n\ndef f(x):\n    return helper(os.sep)\n",
        ),
        ("tools.py", "def helper(x):\n    return x\n"),
    ];
    let mut bed = bed(&files, model, &language);
    let events = bed.run().await;
    assert!(imports(&events).iter().all(|one| one.added.is_empty()));
    assert_eq!(bed.read("a.py"), "import os\n\n\ndef f(x):\n    return x\n");
}

#[tokio::test(start_paused = true)]
async fn missing_import_of_an_unknown_name_is_added_by_the_language_servers_quick_fix() {
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return bad(x)\n")]);
    let language = Arc::new(FakeLanguageService {
        imports: vec!["from far import bad".to_owned()],
        ..FakeLanguageService::default()
    });
    let mut bed = bed(&[("a.py", TWO)], model, &language).begin(&["a.py::f"]);
    bed.run().await;
    // The fake service reports the word `bad` on every line, so the result of the fix shows only in
    // the text that is diagnosed last.
    let asked = language.asked.lock().unwrap();
    let last = &asked.last().unwrap().text;
    assert!(last.starts_with("from far import bad\n"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn diagnostics_requests_include_accepted_changes_of_other_files() {
    let change = json!({
        "reason": "r", "source": "def f(x):\n    return x + 1\n", "more": true,
    });
    let request = json!({"symbol": "b.py::h", "reason": "too"});
    let first = [
        call("propose", change),
        call("request_change", request),
        finish("done"),
    ];
    let model = Scripted::native()
        .on("agent a.py::f", first)
        .on("agent b.py::h", [whole("def h():\n    return 2\n")]);
    let language = Arc::default();
    let files = [("a.py", TWO), ("b.py", "def h():\n    return 1\n")];
    bed(&files, model, &language)
        .begin(&["a.py::f"])
        .run()
        .await;
    let asked = language.asked.lock().unwrap();
    let of_h = asked.iter().rfind(|asked| asked.file.as_str() == "b.py");
    let overlay = &of_h.unwrap().overlay;
    assert_eq!(overlay[0].0.as_str(), "a.py");
    assert!(overlay[0].1.as_ref().unwrap().contains("x + 1"));
}

#[tokio::test(start_paused = true)]
async fn thorough_diagnostics_run_only_if_the_fast_ones_find_nothing_to_fix() {
    let bad = whole("def f(x):\n    bad = 0\n    return x\n");
    let good = whole("def f(x):\n    return x + 1\n");
    let model = Scripted::native().on("agent a.py::f", [bad, good]);
    let language = Arc::new(FakeLanguageService {
        second: Some("thorough is slow"),
        ..FakeLanguageService::default()
    });
    let mut bed = bed(&[("a.py", TWO)], model, &language).begin(&["a.py::f"]);
    let events = bed.run().await;
    let all = checked(&events);
    assert!(all[0].to_string().contains("(finds 1.0)"), "{}", all[0]);
    let second = all[1].to_string();
    assert!(
        second.contains("finds 1.0; unknown: thorough is slow"),
        "{second}"
    );
}

#[tokio::test(start_paused = true)]
async fn missing_language_service_is_reported_once_per_run() {
    let first = json!({"reason": "r", "source": "def f(x):\n    return x + 1\n", "more": true});
    let then = json!({"reason": "r", "source": "def f(x):\n    return x + 2\n"});
    let model = Scripted::native().on(
        "agent a.py::f",
        [call("propose", first), call("propose", then)],
    );
    let language = Arc::new(FakeLanguageService {
        absent: true,
        ..FakeLanguageService::default()
    });
    let mut bed = bed(&[("a.py", TWO)], model, &language).begin(&["a.py::f"]);
    let events = bed.run().await;
    let all = checked(&events);
    assert_eq!(all, [&DiagnosticEvidence::Absent; 2]);
    assert_eq!(all[0].to_string(), "");
    assert!(language.asked.lock().unwrap().is_empty());
    let told = |event: &&Event| matches!(event, Event::LanguageServer { .. });
    assert!(events.iter().any(|event| told(&event)));
}

#[tokio::test(start_paused = true)]
async fn unused_imports_of_a_change_are_left_out() {
    let change = json!({
        "reason": "r", "source": "def f(x):\n    return os.sep + x\n",
        "imports": ["import os", "import re", "from typing import Any"],
    });
    let model = Scripted::native().on("agent a.py::f", [call("propose", change)]);
    let mut bed = bed(&[("a.py", TWO)], model, &Arc::default()).begin(&["a.py::f"]);
    let events = bed.run().await;
    let text = bed.read("a.py");
    assert!(text.starts_with("import os\n\ndef f"), "{text}");
    let left_out = &imports(&events)[0].left_out;
    assert_eq!(left_out, &["import re", "from typing import Any"]);
    assert_eq!(bed.model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn refusal_lists_all_possible_imports_of_an_ambiguous_name() {
    let bad = whole("def f(x):\n    return bad(x)\n");
    let good = whole("def f(x):\n    return x\n");
    let model = Scripted::native().on("agent a.py::f", [bad, good]);
    let files = [
        ("a.py", TWO),
        ("one.py", "def bad(x):\n    return x\n"),
        ("two.py", "def bad(x):\n    return x\n"),
    ];
    let mut bed = bed(&files, model, &Arc::default()).begin(&["a.py::f"]);
    let events = bed.run().await;
    let why = refusals(&events)[0];
    assert!(
        why.ends_with("`bad` needs an import: `from one import bad` or `from two import bad`"),
        "{why}"
    );
    assert!(bed.read("a.py").starts_with("def f(x):\n    return x\n"));
}

#[tokio::test(start_paused = true)]
async fn undefined_name_is_refused_with_an_import_hint_even_without_a_language_service() {
    let bad = whole("def f(x):\n    return bad(x)\n");
    let model = Scripted::native().on("agent a.py::f", [bad, finish("so be it")]);
    let language = Arc::new(FakeLanguageService {
        absent: true,
        ..FakeLanguageService::default()
    });
    let files = [
        ("a.py", TWO),
        ("one.py", "def bad(x):\n    return x\n"),
        ("two.py", "def bad(x):\n    return x\n"),
    ];
    let mut bed = bed(&files, model, &language).begin(&["a.py::f"]);
    let events = bed.run().await;
    let why = refusals(&events)[0];
    assert!(why.contains("a.py:2: nothing defines `bad`"), "{why}");
    let hint = "`bad` needs an import: `from one import bad` or `from two import bad`";
    assert!(why.ends_with(hint), "{why}");
    assert_eq!(bed.read("a.py"), TWO);
}

/// One proposal calls a function that another concurrent proposal adds.
#[tokio::test(start_paused = true)]
async fn proposals_that_pass_only_together_are_diagnosed_together() {
    let pick = |symbol: &str, source: &str| json!({"symbol": symbol, "why": "w", "source": source});
    let picks = [
        pick("a.py::f", "def f(x):\n    return x  # bad company\n"),
        pick("b.py::h", "def h():\n    return 2  # bad company\n"),
    ];
    let model = Scripted::native()
        .on("scout", [call("wake", json!({"symbols": picks}))])
        .always("agent", finish("nothing to add"));
    let language = Arc::new(FakeLanguageService {
        excuse: Some("company"),
        ..FakeLanguageService::default()
    });
    let files = [("a.py", TWO), ("b.py", "def h():\n    return 1\n")];
    let mut bed = bed(&files, model, &language).tests(|_| Vec::new());
    let times = [1, 1, 1, 1, 1].map(std::time::Duration::from_secs);
    *bed.test_times.lock().unwrap() = times.into();
    let events = bed.run().await;
    assert_eq!(refusals(&events), [""; 0], "{events:#?}");
    assert!(bed.read("a.py").contains("company") && bed.read("b.py").contains("company"));
    let together = events.iter().find_map(|event| match event {
        Event::ProposalChecked { evidence, .. } => evidence.together.clone(),
        _ => None,
    });
    let together = together.expect("evidence of the set");
    assert!(together.passes());
    let DiagnosticEvidence::Known { new, .. } = together.diagnostics else {
        panic!("{events:#?}");
    };
    assert!(new.is_empty(), "{new:?}");
}

#[tokio::test(start_paused = true)]
async fn changed_files_are_diagnosed_again_at_the_end_of_a_run() {
    let insists =
        json!({"reason": "r", "source": "def f(x):\n    return x + 1  # bad\n", "insist": true});
    let worse = json!({"reason": "r", "source": "def h():\n    return 2\n"});
    let mended = whole("def h():\n    return 3\n");
    let model = Scripted::native()
        .on("agent a.py::f", [call("propose", insists)])
        .on("agent b.py::h", [call("propose", worse), mended]);
    let language = Arc::new(FakeLanguageService {
        second: Some("it is slow"),
        late: Some("return 2"),
        ..FakeLanguageService::default()
    });
    let files = [("a.py", TWO), ("b.py", "def h():\n    return 1\n")];
    let mut bed = bed(&files, model, &language)
        .begin(&["a.py::f", "b.py::h"])
        .with(|task| task.approval = Approval::Ask);
    let events = bed.run().await;
    let looks: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Diagnosed { files, found } => Some((files.len(), found.stopping().count())),
            _ => None,
        })
        .collect();
    // When another agent's change is applied, the files of working agents are diagnosed again
    // before their proposals.
    let prepared = language.prepared.lock().unwrap();
    let is_anew = |one: &TextRequest| one.file.as_str() == "b.py" && !one.overlay.is_empty();
    assert!(prepared.iter().any(is_anew), "{prepared:?}");
    // Problems that were accepted with a proposal are not reported again. A problem that only the
    // combined changes have is reported.
    assert_eq!(looks.first(), Some(&(2, 2)), "{events:#?}");
    let problems = woken(&events)
        .into_iter()
        .filter(|(_, cause)| matches!(cause, Cause::Problems { .. }));
    let agents: Vec<String> = problems.map(|(agent, _)| agent).collect();
    assert_eq!(agents, ["b.py::h"]);
    assert!(bed.read("b.py").contains("return 3"));
    assert_eq!(stop(&events), StopReason::Settled);
}

fn no_service() -> Arc<FakeLanguageService> {
    Arc::new(FakeLanguageService {
        absent: true,
        ..FakeLanguageService::default()
    })
}

#[tokio::test(start_paused = true)]
async fn change_that_python_cannot_compile_is_returned_even_without_a_language_server() {
    let broken = format!("def f(x):\n    return x + 1  {UNCOMPILED}\n");
    let good = "def f(x):\n    return x + 2\n";
    let model = Scripted::native().on("agent a.py::f", [whole(&broken), whole(good)]);
    let mut bed = bed(&[("a.py", TWO)], model, &no_service()).begin(&["a.py::f"]);
    let events = bed.run().await;
    let expected = "Not shown to the approver: this change brings problems that were not there \
                    before.\na.py:2: Python 3.9 cannot compile this: invalid syntax";
    assert_eq!(refusals(&events), [expected]);
    assert!(bed.read("a.py").contains("x + 2"));
    // Code that compiles adds no line to the evidence.
    assert_eq!(checked(&events)[1], &DiagnosticEvidence::Absent);
}

#[tokio::test(start_paused = true)]
async fn code_that_did_not_compile_before_does_not_block_a_change() {
    let old = format!("{TWO}    {UNCOMPILED}\n");
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return x + 2\n")]);
    let mut bed = Bed::new(&[("a.py", &old)], model).begin(&["a.py::f"]);
    bed.run().await;
    assert!(bed.read("a.py").contains("x + 2"));
}

#[tokio::test(start_paused = true)]
async fn diagnostics_are_unknown_if_nothing_could_be_compiled() {
    let text = format!("def f(x):\n    return x + 2  {NO_PYTHON}\n");
    let model = Scripted::native().on("agent a.py::f", [whole(&text)]);
    let mut bed = bed(&[("a.py", TWO)], model, &no_service()).begin(&["a.py::f"]);
    let events = bed.run().await;
    let reason = "not compiled: there is no Python".to_owned();
    assert_eq!(checked(&events)[0], &DiagnosticEvidence::Unknown { reason });
    assert!(bed.read("a.py").contains("x + 2"));
}

#[tokio::test(start_paused = true)]
async fn data_file_that_could_not_be_parsed_any_more_is_returned() {
    let hunk = |new: &str| {
        let hunks = json!([{"old": "1", "new": new}]);
        call("propose", json!({"reason": "r", "hunks": hunks}))
    };
    let model = Scripted::native().on("agent rates.json::", [hunk("2,"), hunk("2")]);
    let files = [("rates.json", "{\"a\": 1}\n"), ("a.py", TWO)];
    let mut bed = bed(&files, model, &no_service()).begin(&["rates.json::"]);
    let events = bed.run().await;
    let expected = "Not shown to the approver: this change brings problems that were not there \
                    before.\nrates.json:1: this is not valid JSON: trailing comma";
    assert_eq!(refusals(&events), [expected]);
    assert_eq!(bed.read("rates.json"), "{\"a\": 2}\n");
}
