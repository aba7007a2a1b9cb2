//! Diagnostics at the gate: what a proposal brings, what is mended without a model, what is unknown.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use super::bed::*;
use crate::ports::*;
use crate::swarm::*;

const TWO: &str = "def f(x):\n    return x\n\n\ndef g(x):\n    return f(x) + 1\n";

/// Finds an error that must be mended in each line with `bad`, and one that need not in each with
/// `odd`.
#[derive(Default)]
struct Finds {
    asked: Mutex<Vec<TextRequest>>,
    prepared: Mutex<Vec<TextRequest>>,
    knows_nothing: Mutex<Option<String>>,
    second: Option<&'static str>,
    imports: Vec<String>,
}

impl Finds {
    fn problem(request: &TextRequest, line: usize, text: &str) -> Option<Problem> {
        let stops = text.contains("bad");
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
                crate::text::ByteRange::new(start, start + end)
            }),
        })
    }
}

#[async_trait]
impl LanguageService for Finds {
    async fn diagnostics(&self, request: TextRequest) -> Diagnostics {
        self.asked.lock().unwrap().push(request.clone());
        if let Some(reason) = self.knows_nothing.lock().unwrap().clone() {
            return Diagnostics::Unknown { reason };
        }
        if request.effort == Effort::Thorough {
            let reason = self.second.unwrap_or_default().to_owned();
            return Diagnostics::Unknown { reason };
        }
        let lines = request.text.lines().enumerate();
        let problems = lines.filter_map(|(line, text)| Finds::problem(&request, line, text));
        Diagnostics::Known {
            tool: "finds 1.0".to_owned(),
            problems: problems.collect(),
        }
    }

    fn has(&self, effort: Effort) -> bool {
        effort == Effort::Fast || self.second.is_some()
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

fn bed(files: &[(&str, &str)], model: Scripted, language: &Arc<Finds>) -> Bed {
    let mut bed = Bed::new(files, model);
    bed.language = Some(Arc::<Finds>::clone(language));
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
async fn a_problem_that_a_proposal_brings_goes_back_to_its_agent() {
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
    // The agent's file was looked at before the agent had written anything.
    let prepared = language.prepared.lock().unwrap();
    assert_eq!(&*prepared[0].text, old);
}

#[tokio::test(start_paused = true)]
async fn what_is_unknown_is_said_and_stops_nothing() {
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return bad\n")]);
    let language: Arc<Finds> = Arc::default();
    *language.knows_nothing.lock().unwrap() = Some("it is slow".to_owned());
    let mut bed = bed(&[("a.py", TWO)], model, &language).begin(&["a.py::f"]);
    let events = bed.run().await;
    assert!(bed.read("a.py").contains("return bad"));
    let DiagnosticEvidence::Unknown { reason } = checked(&events)[0] else {
        panic!("{events:#?}");
    };
    assert_eq!(reason, "it is slow");
}

#[tokio::test(start_paused = true)]
async fn an_import_that_the_workspace_knows_is_added() {
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
    let DiagnosticEvidence::Known { mended, .. } = checked(&events)[0] else {
        panic!("{events:#?}");
    };
    assert_eq!(mended, &["from tools import helper"]);
    // No model was asked about it.
    assert_eq!(bed.model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_the_workspace_does_not_know_the_server_s_quick_fix_does() {
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return bad(x)\n")]);
    let language = Arc::new(Finds {
        imports: vec!["from far import bad".to_owned()],
        ..Finds::default()
    });
    let mut bed = bed(&[("a.py", TWO)], model, &language).begin(&["a.py::f"]);
    bed.run().await;
    // It finds the word everywhere; the import was added all the same.
    let asked = language.asked.lock().unwrap();
    let last = &asked.last().unwrap().text;
    assert!(last.starts_with("from far import bad\n"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn accepted_changes_of_other_files_are_part_of_the_question() {
    let change = serde_json::json!({
        "reason": "r", "source": "def f(x):\n    return x + 1\n", "more": true,
    });
    let request = serde_json::json!({"symbol": "b.py::h", "reason": "too"});
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
async fn a_second_look_is_taken_where_the_first_found_nothing_to_mend() {
    let bad = whole("def f(x):\n    bad = 0\n    return x\n");
    let good = whole("def f(x):\n    return x + 1\n");
    let model = Scripted::native().on("agent a.py::f", [bad, good]);
    let language = Arc::new(Finds {
        second: Some("thorough is slow"),
        ..Finds::default()
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
