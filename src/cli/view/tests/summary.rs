//! The summary at the end of a run.

use super::*;
use crate::cli::view::summary::{ProjectLifetime, Traces, summary};

#[test]
fn summary_shows_the_result_and_names_every_reason_to_stop() {
    let traces = Traces {
        trajectory: Path::new("/c/runs/1.jsonl"),
        repo: Some(Path::new("/c d")),
        tree: ProjectLifetime::Stays,
    };
    let settled = state(&[beginning(), talk(), reviews(), ending(StopReason::Settled)]);
    insta::assert_snapshot!(plain(&summary(&settled, traces)));
    for reason in [
        StopReason::NothingChanged {
            why: "nothing to do".to_owned(),
        },
        StopReason::TestsFail {
            failing: vec!["a".to_owned(), "b".to_owned()],
        },
        StopReason::LedgerEmpty {
            what: "60 of 60 model calls".to_owned(),
        },
        StopReason::Cancelled,
        StopReason::Failed {
            error: "no model".to_owned(),
        },
    ] {
        let mut events = ending(reason.clone());
        if let Some(Event::RunFinished { ending, .. }) = events.last_mut() {
            *ending = None;
        }
        let said = plain(&summary(&state(&[events]), traces));
        assert!(
            said.contains(&super::super::words::stop_reason(&reason)),
            "{said}"
        );
    }
    let gone = summary(&RunState::default(), traces);
    assert!(plain(&gone).contains("the server exited"));
}

#[test]
fn summary_names_only_symbols_that_nobody_changed_as_not_woken() {
    let traces = Traces {
        trajectory: Path::new("/c/runs/1.jsonl"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    let not_woken = |symbol: &str| Event::NotWoken {
        symbol: symbol.to_owned(),
        from: ActorId::Scout,
        why: "the limit of agents".to_owned(),
    };
    let mut events = vec![
        not_woken("loans/fees.py::late_fee"),
        not_woken("loans/desk.py::lend"),
    ];
    let mut end = ending(StopReason::Settled);
    if let Some(Event::RunFinished { applied, .. }) = end.last_mut() {
        *applied = vec![symbol("loans/fees.py::late_fee")];
    }
    events.append(&mut end);
    let said = plain(&summary(&state(&[events]), traces));
    assert!(said.contains("not woken  loans/desk.py::lend\n"), "{said}");
}

#[test]
fn summary_says_if_the_tests_ran_before_the_last_change() {
    let traces = Traces {
        trajectory: Path::new("/c/runs/1.jsonl"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    let mut events = ending(StopReason::Cancelled);
    let said = |events: &[Event]| plain(&summary(&state(&[events.to_vec()]), traces));
    assert!(!said(&events).contains("before the last change"));
    let applied = Event::ProposalApplied {
        proposal: ProposalId(1),
        symbols: vec![symbol("loans/fees.py::late_fee")],
        diff: DIFF.to_owned(),
        change: None,
    };
    events.insert(events.len() - 1, applied);
    let said = said(&events);
    assert!(
        said.contains("7 pass (") && said.contains("), before the last change\n"),
        "{said}"
    );
}

#[test]
fn summary_says_which_of_the_reverted_changes_the_tests_ran_with() {
    let traces = Traces {
        trajectory: Path::new("/c/runs/1.jsonl"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    let ran = |phase| Event::TestsRun {
        phase,
        proposal: None,
        report: report(&[], 7),
    };
    let applied = || Event::ProposalApplied {
        proposal: ProposalId(1),
        symbols: vec![symbol("loans/fees.py::late_fee")],
        diff: DIFF.to_owned(),
        change: None,
    };
    let (before, settling) = (|| ran(TestPhase::Before), || ran(TestPhase::Settling));
    for (events, expected) in [
        (
            vec![before(), applied()],
            "), before the changes that were taken back\n",
        ),
        (
            vec![before(), applied(), settling()],
            "), with the changes that were taken back\n",
        ),
        (
            vec![before(), applied(), settling(), applied()],
            "), with some of the changes that were taken back\n",
        ),
    ] {
        let taken_back = Event::TakenBack {
            diff: DIFF.to_owned(),
            patch: None,
            left: Vec::new(),
        };
        let last = ending(StopReason::Cancelled).pop();
        let all = events.into_iter().chain([taken_back]).chain(last);
        let said = plain(&summary(&state(&[all.collect()]), traces));
        assert!(said.contains(expected), "{expected} {said}");
    }
}

#[test]
fn summary_attributes_final_statements_to_the_agents() {
    let traces = Traces {
        trajectory: Path::new("/c/runs/1.jsonl"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    let mut events = ending(StopReason::NothingChanged {
        why: "I am done.\nDone and proven: 3 tests pass".to_owned(),
    });
    if let Some(Event::RunFinished { ending, .. }) = events.last_mut() {
        *ending = Some(Ending::new(
            Proof::NotDone,
            "Not done: what was proposed was refused: no",
        ));
    }
    let said = plain(&summary(&state(&[events.clone()]), traces));
    let forged = "\n  the agents say: I am done.\n  Done and proven: 3 tests pass\n";
    assert!(said.contains(forged), "{said}");
    if let Some(Event::RunFinished { stop_reason, .. }) = events.last_mut() {
        let why = "no proposal was accepted: use a loop".to_owned();
        *stop_reason = StopReason::NothingChanged { why };
    }
    let said = plain(&summary(&state(&[events]), traces));
    assert!(
        said.contains("\n  no proposal was accepted: use a loop\n"),
        "{said}"
    );
}

#[test]
fn summary_suggests_a_larger_model_after_a_failure_of_the_local_one() {
    let traces = Traces {
        trajectory: Path::new("/c/runs/1.jsonl"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    for (agent, calls, proof, is_told) in [
        ("local", 3, Proof::NotDone, true),
        ("local", 0, Proof::NotDone, false),
        ("local", 3, Proof::Proven, false),
        ("big", 3, Proof::NotDone, false),
    ] {
        let mut events = [
            beginning(),
            ending(StopReason::NothingChanged {
                why: "3 attempts, same answer".to_owned(),
            }),
        ];
        for event in events.iter_mut().flatten() {
            match event {
                Event::RunFinished { ending, spent, .. } => {
                    *ending = Some(Ending::new(proof, "Not done: 3 attempts, same answer"));
                    spent.calls = calls;
                }
                Event::RunStarted { models, .. } => {
                    *models = vec![(Role::Agent, agent.to_owned())];
                }
                _ => {}
            }
        }
        let said = plain(&summary(&state(&events), traces));
        assert_eq!(said.contains("a larger one may do it"), is_told, "{said}");
    }
}

#[test]
fn summary_does_not_repeat_a_diff_that_was_shown() {
    let traces = Traces {
        trajectory: Path::new("/c/runs/1.jsonl"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    let end = ending(StopReason::Settled);
    let shown = state(&[reviews(), end.clone()]);
    assert!(!plain(&summary(&shown, traces)).contains("@@"));
    // A change without a proposal, or with a proposal that was never decided.
    let not_shown = state(&[vec![end.last().unwrap().clone()]]);
    assert!(plain(&summary(&not_shown, traces)).contains(DIFF.trim_end()));
    let other_file = DIFF.replace("fees.py", "other.py");
    assert!(shown.has_shown(DIFF) && !shown.has_shown(&other_file));
}

#[test]
fn zero_cost_is_shown_only_if_the_model_is_free() {
    let traces = Traces {
        trajectory: Path::new("/c/runs/1.jsonl"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    let mut free = ending(StopReason::Settled);
    if let Some(Event::RunFinished { spent, .. }) = free.last_mut() {
        spent.dollars = Dollars(0.0);
    }
    let replayed = state(&[beginning(), free.clone()]);
    assert!(replayed.replayed);
    let said = plain(&summary(&replayed, traces));
    assert!(
        said.contains("no cost: a recording answered") && !said.contains('$'),
        "{said}"
    );
    assert!(!plain(&view(&replayed, &Prompt::default(), 100)).contains('$'));
    let local = plain(&summary(&state(&[free]), traces));
    assert!(local.contains(" · $0 · "), "{local}");
}

#[test]
fn summary_starts_with_the_headline() {
    let traces = Traces {
        trajectory: Path::new("/c/runs/1.jsonl"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    let shown = |stop_reason: StopReason, proof: Proof, headline: &str| {
        let mut events = ending(stop_reason);
        if let Some(Event::RunFinished { ending, diff, .. }) = events.last_mut() {
            diff.clear();
            *ending = Some(Ending::new(proof, headline));
        }
        let lines = summary(&state(&[events]), traces);
        let lines: Vec<String> = lines.iter().map(|line| line.paint(Paint::Plain)).collect();
        let end = lines.iter().position(|line| line.contains("changed  "));
        lines[1..end.unwrap()].to_vec()
    };
    let why = "f returns 2\nsee line 3".to_owned();
    let answered = shown(
        StopReason::NothingChanged { why: why.clone() },
        Proof::NothingToProve,
        "Answered; nothing was changed",
    );
    assert_eq!(
        answered,
        [
            "Answered; nothing was changed",
            "  f returns 2",
            "  see line 3"
        ]
    );
    let failed = shown(
        StopReason::Failed { error: why },
        Proof::NotDone,
        "Not done: f returns 2",
    );
    assert_eq!(failed, ["Not done: f returns 2", "  see line 3"]);
}

#[test]
fn summary_says_where_the_mentions_are_listed_that_the_headline_leaves_out() {
    let traces = Traces {
        trajectory: Path::new("/c/runs/1.jsonl"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    for (count, is_told) in [(4, false), (5, true)] {
        let mut events = ending(StopReason::Settled);
        if let Some(Event::RunFinished { ending, .. }) = events.last_mut() {
            let mut told = Ending::new(Proof::Proven, "Done and proven");
            told.mentions = vec![StillMentioned {
                name: "late_fee".to_owned(),
                places: Vec::new(),
                count,
            }];
            *ending = Some(told);
        }
        let said = plain(&summary(&state(&[events]), traces));
        assert_eq!(
            said.contains("5 places mention `late_fee`: "),
            is_told,
            "{said}"
        );
    }
}
