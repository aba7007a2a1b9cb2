use super::*;
use crate::testing::{evidence, finished, symbol};
use starling_core::{EditorError, Verdict};
use starling_swarm::{Cause, FileChange};
use starling_text::ChangeSet;

fn agent(path: &str) -> ActorId {
    ActorId::Agent(symbol(path))
}

fn woken(path: &str) -> Event {
    Event::AgentWoken {
        agent: agent(path),
        cause: Cause::Steered {
            text: "go\non".to_owned(),
        },
    }
}

fn made(id: u32, path: &str) -> Event {
    Event::ProposalMade {
        proposal: ProposalId(id),
        agent: agent(path),
        symbols: vec![symbol(path)],
        reason: format!("reason {id}"),
        diff: String::new(),
        revises: None,
    }
}

fn part(id: u32, path: &str, base: &str, text: &str) -> FileChange {
    FileChange {
        proposal: ProposalId(id),
        symbol: symbol(path),
        symbols: vec![symbol(path)],
        reason: String::new(),
        file: symbol(path).file,
        base: base.into(),
        changes: ChangeSet::between(base, text),
        deleted: false,
    }
}

fn asked(lead: u32, path: &str, parts: Vec<FileChange>) -> Event {
    Event::ReviewAsked {
        proposal: ProposalId(lead),
        agent: agent(path),
        symbol: symbol(path),
        diff: "-x\n+y\n".to_owned(),
        reason: "all of them".to_owned(),
        evidence: evidence(),
        with: Vec::new(),
        parts,
    }
}

fn view_of(events: &[Event]) -> RunView {
    let mut view = RunView::default();
    for (seq, event) in events.iter().enumerate() {
        view.record(seq as u64, event);
    }
    view
}

fn doing(view: &RunView, path: &str) -> (String, bool) {
    let agent = &view.agents[&agent(path)];
    (agent.doing.clone(), agent.working)
}

#[test]
fn run_view_shows_the_activity_of_an_agent_from_start_to_end() {
    let f = "a.py::f";
    let mut events = vec![woken(f)];
    assert_eq!(
        doing(&view_of(&events), f),
        ("begins: go…".to_owned(), true)
    );
    events.push(made(1, f));
    assert_eq!(doing(&view_of(&events), f).0, "checks proposal #1");
    events.push(asked(1, f, vec![part(1, f, "x\n", "y\n")]));
    assert_eq!(doing(&view_of(&events), f).0, "waits for your review");
    events.push(Event::ProposalReviewed {
        proposal: ProposalId(1),
        by: ActorId::User,
        verdict: Verdict::Reject {
            reason: "too long".to_owned(),
        },
    });
    let rejected = view_of(&events);
    assert_eq!(doing(&rejected, f), ("revises: too long".to_owned(), true));
    assert_eq!(rejected.seq, Some(3));
    events.push(finished(StopReason::Settled));
    let over = view_of(&events);
    assert_eq!(doing(&over, f), ("its run is over".to_owned(), false));
    assert_eq!(over.end.unwrap().summary, "over");
}

#[test]
fn agent_that_only_answers_is_not_working() {
    let turn = Event::TurnStarted {
        agent: agent("b.py::g"),
        role: starling_core::Role::Agent,
        conversation: String::new(),
        turn: 1,
    };
    let mut view = view_of(&[turn]);
    assert_eq!(
        doing(&view, "b.py::g"),
        ("answers a question".to_owned(), false)
    );
    let answered = Event::Answered {
        question: 1,
        from: agent("b.py::g"),
        to: agent("a.py::f"),
        text: "no".to_owned(),
        source: starling_swarm::AnswerSource::Model,
    };
    view.record(1, &answered);
    assert_eq!(
        doing(&view, "b.py::g"),
        ("answered a.py::f".to_owned(), false)
    );
}

#[test]
fn set_of_proposals_is_reviewed_through_its_lead() {
    let parts = vec![
        part(1, "a.py::f", "x\n", "y\n"),
        part(2, "b.py::g", "1\n", "2\n"),
    ];
    let set = view_of(&[
        made(1, "a.py::f"),
        made(2, "b.py::g"),
        asked(2, "b.py::g", parts),
    ]);
    let leading: Vec<ProposalId> = set.lead_proposals().map(|(id, _)| id).collect();
    assert_eq!(leading, [ProposalId(2)]);
    assert_eq!(set.lead_of(ProposalId(1)), ProposalId(2));
    let first = &set.proposals[&ProposalId(1)];
    assert_eq!(
        (first.state, &first.with),
        (ProposalStatus::Waiting, &vec![ProposalId(2)])
    );
    assert_eq!(first.reason, "reason 1", "each keeps its own");
    let files: Vec<&str> = set.waiting_files().map(FilePath::as_str).collect();
    assert_eq!(files, ["a.py", "b.py"]);
}

#[test]
fn proposal_conflicting_with_typed_text_is_detected() {
    let f = "a.py::f";
    let mut view = view_of(&[
        made(1, f),
        asked(1, f, vec![part(1, f, "a\nx\n", "a\ny\n")]),
    ]);
    let file = symbol(f).file;
    let conflict = |view: &RunView| view.proposals[&ProposalId(1)].conflict.clone();
    view.compare(&file, "more\na\nx\n");
    assert_eq!(conflict(&view), None, "elsewhere");
    view.compare(&file, "a\nz\n");
    assert!(
        conflict(&view).unwrap().contains("both sides"),
        "the same line"
    );
    view.compare(&file, "a\nx\n");
    assert_eq!(conflict(&view), None, "typed back");
    let missing = EditorError::Missing { file: file.clone() };
    view.note_unreadable(&file, &missing);
    let conflict = view.proposals[&ProposalId(1)].conflict.clone();
    assert!(conflict.unwrap().contains("a.py is gone"));
    view.record(
        9,
        &Event::ProposalUndone {
            proposal: ProposalId(1),
            by_editor: false,
            unsaved: false,
        },
    );
    assert_eq!(view.waiting_files().count(), 0);
}

#[test]
fn replaced_or_unapplied_proposals_are_dropped() {
    let f = "a.py::f";
    let mut events = vec![made(1, f), made(2, f)];
    let board_of_two = view_of(&events);
    let state = |view: &RunView, id| view.proposals[&ProposalId(id)].state;
    assert_eq!(state(&board_of_two, 1), ProposalStatus::Dropped);
    assert_eq!(state(&board_of_two, 2), ProposalStatus::Checking);
    events.push(asked(2, f, vec![part(2, f, "x\n", "y\n")]));
    let mut accepted = view_of(&events);
    accepted.note_answer(ProposalId(2), &Verdict::Accept.into());
    assert_eq!(state(&accepted, 2), ProposalStatus::Accepted);
    events.push(finished(StopReason::Cancelled));
    assert_eq!(state(&view_of(&events), 2), ProposalStatus::Dropped);
    let end = events.len() as u64 - 1;
    accepted.record(end, &events[events.len() - 1]);
    assert_eq!(
        state(&accepted, 2),
        ProposalStatus::Dropped,
        "it was not applied any more"
    );
}

#[test]
fn run_view_keeps_only_the_last_lookups_of_an_agent() {
    let woken = Event::AgentWoken {
        agent: agent("a.py::f"),
        cause: starling_swarm::Cause::Steered {
            text: "go".to_owned(),
        },
    };
    let mut view = view_of(&[woken]);
    for line in 0..10 {
        view.record(
            2 + line,
            &Event::ToolUsed {
                agent: agent("a.py::f"),
                tool: "run_tests".to_owned(),
                argument: line.to_string(),
                outcome: "ok".to_owned(),
            },
        );
    }
    let looked = &view.agents[&agent("a.py::f")].looked;
    assert_eq!(looked.len(), 8);
    assert_eq!(
        (looked[0].as_str(), looked[7].as_str()),
        ("run tests 2", "run tests 9")
    );
}

#[test]
fn run_cost_is_unknown_until_a_call_has_a_price() {
    let turn = |cost| Event::TurnFinished {
        agent: agent("a.py::f"),
        role: starling_core::Role::Agent,
        model: "m".to_owned(),
        usage: Default::default(),
        cost: Dollars(cost),
        calls: 1,
        finish: starling_core::Finish::Stop,
        millis: 1,
    };
    let end = |unpriced, dollars| match finished(StopReason::Settled) {
        Event::RunFinished {
            stop_reason,
            applied,
            diff,
            mut spent,
            summary,
            tally,
            ending,
        } => {
            spent.unpriced_calls = unpriced;
            spent.dollars = Dollars(dollars);
            Event::RunFinished {
                stop_reason,
                applied,
                diff,
                spent,
                summary,
                tally,
                ending,
            }
        }
        other => other,
    };
    let dollars = |events: &[Event]| {
        let spent = view_of(events).spent();
        (spent.dollars, spent.unpriced_calls)
    };
    assert_eq!(dollars(&[turn(0.0)]), (None, 0));
    assert_eq!(dollars(&[turn(0.0), end(1, 0.0)]), (None, 1));
    assert_eq!(
        dollars(&[turn(0.0), end(0, 0.0)]),
        (Some(Dollars(0.0)), 0),
        "free"
    );
    let paid = [turn(0.25), turn(0.0), turn(0.5), end(1, 0.75)];
    assert_eq!(dollars(&paid), (Some(Dollars(0.75)), 1));
}

#[test]
fn total_at_the_end_of_a_run_includes_interrupted_requests() {
    let mut view = RunView::default();
    let mut end = crate::testing::finished(StopReason::Cancelled);
    let Event::RunFinished { spent, .. } = &mut end else {
        panic!("{end:?}");
    };
    spent.calls = 2;
    spent.prompt_tokens = Tokens(20_000);
    spent.output_tokens = Tokens(3_934);
    spent.unpriced_calls = 2;
    view.record(0, &end);
    let spent = view.spent();
    assert_eq!((spent.calls, spent.tokens), (2, Tokens(23_934)));
    assert_eq!((spent.dollars, spent.unpriced_calls), (None, 2));
}
