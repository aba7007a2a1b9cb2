//! The story of a refactoring, which uses no model.

use super::*;
use starling_swarm::JointEvidence;

const REASON: &str = "rename `f` to `g`, by rule: every use is certain";
const FILES: u32 = 25;

fn module(number: u32) -> SymbolPath {
    symbol(&format!("pkg/m{number}.py::"))
}

fn diff(number: u32) -> String {
    let file = format!("pkg/m{number}.py");
    format!(
        "--- a/{file}\n+++ b/{file}\n@@ -1,4 +1,4 @@\n import a\n-x = f(1)\n+x = g(1)\n import b\n\
         -y = f(2)\n+y = g(2)\n"
    )
}

/// The events of a rename in 25 files, which `by` accepts.
fn renamed(by: &ActorId) -> Vec<Event> {
    let mut events = vec![
        Event::RunStarted {
            run: RunId("r".to_owned()),
            task: "Rename `f` to `g`".to_owned(),
            driver: Driver::Swarm,
            models: vec![
                (Role::Scout, "none".to_owned()),
                (Role::Agent, "none".to_owned()),
            ],
            replayed: false,
            limits: Limits::default(),
            root: String::new(),
            request: None,
        },
        Event::ScoutPicked {
            symbols: (1..=FILES)
                .map(|at| (module(at), REASON.to_owned()))
                .collect(),
        },
    ];
    events.extend((1..=FILES).map(|at| Event::ProposalMade {
        proposal: ProposalId(at),
        agent: ActorId::Agent(module(at)),
        symbols: vec![module(at)],
        reason: REASON.to_owned(),
        diff: diff(at),
        revises: None,
    }));
    events.extend((1..=FILES).map(|at| {
        let others = (1..=FILES).filter(|other| *other != at);
        Event::ProposalChecked {
            proposal: ProposalId(at),
            evidence: Evidence {
                together: Some(JointEvidence {
                    with: others.clone().map(module).collect(),
                    proposals: others.map(ProposalId).collect(),
                    tests: evidence().tests,
                    diagnostics: DiagnosticEvidence::Absent,
                    examples: Vec::new(),
                    needs: Vec::new(),
                    checked_in: 0,
                }),
                losses: vec![starling_syntax::Loss::Child {
                    name: "f".to_owned(),
                }],
                ..evidence()
            },
        }
    }));
    events.extend((1..=FILES).map(|at| Event::ProposalReviewed {
        proposal: ProposalId(at),
        by: by.clone(),
        verdict: Verdict::Accept,
    }));
    events.extend((1..=FILES).map(|at| Event::ProposalApplied {
        proposal: ProposalId(at),
        symbols: vec![module(at)],
        diff: diff(at),
        change: None,
    }));
    events
}

fn told(events: &[Event]) -> Vec<String> {
    let lines = story(events);
    lines.iter().map(|line| line.paint(Paint::Plain)).collect()
}

#[test]
fn reason_and_evidence_of_a_change_by_rule_are_shown_once() {
    let lines = told(&renamed(&ActorId::Starling));
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(lines[..2], ["Rename `f` to `g`", "no model"]);
    assert_eq!(count(REASON), 1, "{lines:#?}");
    assert_eq!(count("tests: "), 1, "{lines:#?}");
    for noise in ["loses", "contract", "callers", "accepted by", "models:"] {
        assert_eq!(count(noise), 0, "{noise}: {lines:#?}");
    }
    assert_eq!(count("✓ pkg/m"), FILES as usize, "{lines:#?}");
    let first = lines.iter().position(|line| line == "✓ pkg/m1.py  2 lines");
    let first = first.expect("the first file");
    assert_eq!(
        lines[first + 1..first + 5],
        ["  -x = f(1)", "  +x = g(1)", "  -y = f(2)", "  +y = g(2)"]
    );
    // The changed lines of the last files are left out.
    assert_eq!(
        lines.last().map(String::as_str),
        Some("✓ pkg/m25.py  2 lines")
    );
    assert!(lines.len() < 110, "{}", lines.len());
}

#[test]
fn lines_that_the_user_has_reviewed_are_not_shown_again() {
    let lines = told(&renamed(&ActorId::User));
    assert!(
        !lines.iter().any(|line| line.contains("g(1)")),
        "{lines:#?}"
    );
    assert_eq!(
        lines.last().map(String::as_str),
        Some("✓ pkg/m25.py  2 lines")
    );
}
