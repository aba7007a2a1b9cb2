//! The display at chosen moments of a run.

mod by_rule;
mod story;
mod summary;

use std::path::Path;

use super::prompt::Prompt;
use super::state::{Doing, RunState};
use super::story::{question, tell};
use super::text::{Line, Paint};
use super::tree::view;
use starling_core::*;
use starling_swarm::*;
use starling_syntax::{FilePath, SymbolPath};

fn symbol(path: &str) -> SymbolPath {
    path.parse().unwrap()
}

fn agent(path: &str) -> ActorId {
    ActorId::Agent(symbol(path))
}

fn evidence() -> Evidence {
    Evidence {
        tests: TestEvidence::Known {
            command: "python3 -m unittest".to_owned(),
            outcome: TestOutcome::Passed,
            passed: 7,
            fixed: vec!["tests.test_fees.LateFee.test_in_time_is_free".to_owned()],
            broken: Vec::new(),
            still_failing: Vec::new(),
            details: String::new(),
            millis: 120,
            tried: Tried::All,
            only_as_changed: Default::default(),
            uncounted: Default::default(),
            source: Default::default(),
        },
        diagnostics: DiagnosticEvidence::Unknown {
            reason: "no language server".to_owned(),
        },
        examples: Vec::new(),
        imports: Default::default(),
        losses: Vec::new(),
        contract: Vec::new(),
        callers: Vec::new(),
        callers_in_set: Vec::new(),
        callers_kept: Vec::new(),
        indirect_callers: Vec::new(),
        test_callers: 0,
        needs_person: Vec::new(),
        together: None,
        texts: Default::default(),
        overridden: None,
        outdated: None,
        millis: 130,
    }
}

fn report(failing: &[&str], passed: usize) -> TestReport {
    let failed = failing.iter().map(|id| TestCase {
        id: (*id).to_owned(),
        status: TestStatus::Failed,
        message: "Traceback\nAssertionError: 500 != 60".to_owned(),
    });
    let passed = (0..passed).map(|number| TestCase {
        id: format!("t{number}"),
        status: TestStatus::Passed,
        message: String::new(),
    });
    TestReport {
        outcome: match failing {
            [] => TestOutcome::Passed,
            _ => TestOutcome::Failed,
        },
        exit: Some(i32::from(!failing.is_empty())),
        command: "python3 -m unittest".to_owned(),
        cases: failed.chain(passed).collect(),
        source: Default::default(),
        output: String::new(),
        millis: 140,
    }
}

fn turn(agent: &ActorId, number: u32) -> [Event; 2] {
    let role = match agent {
        ActorId::Scout => Role::Scout,
        ActorId::Proxy => Role::Proxy,
        ActorId::User | ActorId::Starling | ActorId::Agent(_) | ActorId::Solo => Role::Agent,
    };
    [
        Event::TurnStarted {
            agent: agent.clone(),
            role,
            conversation: "c".to_owned(),
            turn: number,
        },
        Event::TurnFinished {
            agent: agent.clone(),
            role,
            model: "big".to_owned(),
            usage: Usage {
                prompt: Tokens(4000),
                cached: Tokens(1000),
                output: Tokens(200),
            },
            cost: Dollars(0.0123),
            calls: 1,
            finish: Finish::ToolCalls,
            millis: 900,
        },
    ]
}

const DIFF: &str = "--- a/loans/fees.py\n+++ b/loans/fees.py\n@@ -14,3 +14,3 @@\n     fee = 1\n\
                    -    return max(fee, MOST)\n+    return min(fee, MOST)\n";

fn beginning() -> Vec<Event> {
    let fees = agent("loans/fees.py::late_fee");
    let mut events = vec![
        Event::RunStarted {
            run: RunId("r".to_owned()),
            task: "Mend the fees.\nThey are wrong.".to_owned(),
            driver: Driver::Swarm,
            models: vec![
                (Role::Scout, "small".to_owned()),
                (Role::Agent, "big".to_owned()),
            ],
            replayed: true,
            limits: Limits::default(),
            root: String::new(),
            request: None,
        },
        Event::TestsRun {
            phase: TestPhase::Before,
            proposal: None,
            report: report(&["tests.test_fees.LateFee.test_in_time_is_free"], 6),
        },
    ];
    events.extend(turn(&ActorId::Scout, 1));
    events.push(Event::ScoutPicked {
        symbols: vec![(
            symbol("loans/fees.py::late_fee"),
            "the failing test calls it".to_owned(),
        )],
    });
    events.push(Event::AgentWoken {
        agent: fees.clone(),
        cause: Cause::Picked {
            why: "the failing test calls it".to_owned(),
        },
    });
    events.extend(turn(&fees, 1));
    events
}

fn talk() -> Vec<Event> {
    let fees = agent("loans/fees.py::late_fee");
    let late = agent("loans/fees.py::days_late");
    vec![
        Event::ToolUsed {
            agent: fees.clone(),
            tool: "read".to_owned(),
            argument: "loans/desk.py::take_back".to_owned(),
            outcome: "12 lines".to_owned(),
        },
        Event::ChangeRequested {
            from: fees.clone(),
            to: late.clone(),
            reason: "count the first day".to_owned(),
        },
        Event::AgentWoken {
            agent: late.clone(),
            cause: Cause::ChangeRequest {
                from: fees.clone(),
                reason: "count the first day".to_owned(),
            },
        },
        Event::Asked {
            question: 1,
            from: late.clone(),
            to: fees.clone(),
            text: "Does a return on the due date cost anything?".to_owned(),
        },
    ]
}

fn reviews() -> Vec<Event> {
    let fees = agent("loans/fees.py::late_fee");
    let asked = |id: u32, agent: &ActorId, path: &str| Event::ReviewAsked {
        proposal: ProposalId(id),
        agent: agent.clone(),
        symbol: symbol(path),
        diff: DIFF.to_owned(),
        reason: "The cap is the least of both, not the most.".to_owned(),
        evidence: evidence(),
        with: Vec::new(),
        parts: Vec::new(),
    };
    vec![
        Event::Answered {
            question: 1,
            from: fees.clone(),
            to: agent("loans/fees.py::days_late"),
            text: "No, it is free.".to_owned(),
            source: AnswerSource::Model,
        },
        Event::AgentFinished {
            agent: agent("loans/fees.py::days_late"),
            outcome: AgentOutcome::NothingToChange,
            summary: String::new(),
        },
        Event::ProposalMade {
            proposal: ProposalId(1),
            agent: fees.clone(),
            symbols: vec![symbol("loans/fees.py::late_fee")],
            reason: "min, not max".to_owned(),
            diff: DIFF.to_owned(),
            revises: None,
        },
        asked(1, &fees, "loans/fees.py::late_fee"),
        asked(
            2,
            &agent("loans/calendar.py::due_date"),
            "loans/calendar.py::due_date",
        ),
    ]
}

fn ending(stop_reason: StopReason) -> Vec<Event> {
    let fees = agent("loans/fees.py::late_fee");
    vec![
        Event::ProposalReviewed {
            proposal: ProposalId(1),
            by: ActorId::User,
            verdict: Verdict::Accept,
        },
        Event::ProposalApplied {
            proposal: ProposalId(1),
            symbols: vec![symbol("loans/fees.py::late_fee")],
            diff: DIFF.to_owned(),
            change: None,
        },
        Event::ProposalReviewed {
            proposal: ProposalId(2),
            by: ActorId::User,
            verdict: Verdict::Reject {
                reason: "not asked for".to_owned(),
            },
        },
        Event::AgentFinished {
            agent: fees,
            outcome: AgentOutcome::Changed,
            summary: "mended".to_owned(),
        },
        Event::TestsRun {
            phase: TestPhase::Settling,
            proposal: None,
            report: report(&[], 7),
        },
        Event::RunFinished {
            stop_reason,
            applied: vec![symbol("loans/fees.py::late_fee")],
            diff: DIFF.to_owned(),
            spent: Spent {
                calls: 4,
                prompt_tokens: Tokens(12_345),
                cached_tokens: Tokens(2_000),
                output_tokens: Tokens(678),
                dollars: Dollars(0.0246),
                seconds: 12.5,
                waiting_seconds: 4.25,
                model_seconds: 5.0,
                test_seconds: 2.0,
                outside_seconds: 6.5,
                messages: 2,
                agents: 2,
                ..Spent::default()
            },
            summary: "changed late_fee".to_owned(),
            tally: Vec::new(),
            ending: Some(Ending::new(Proof::Proven, "Done and proven: 7 tests pass")),
        },
    ]
}

fn state(parts: &[Vec<Event>]) -> RunState {
    let mut state = RunState::default();
    for (at, event) in parts.iter().flatten().enumerate() {
        state.take(at as u64 * 500, event);
    }
    state
}

fn story(events: &[Event]) -> Vec<Line> {
    let mut state = RunState::default();
    let told = events.iter().flat_map(|event| {
        state.take(0, event);
        tell(event, &state)
    });
    told.collect()
}

fn plain(lines: &[Line]) -> String {
    painted(lines, Paint::Plain)
}

fn painted(lines: &[Line], paint: Paint) -> String {
    let lines: Vec<String> = lines.iter().map(|line| line.paint(paint)).collect();
    lines.join("\n")
}

#[test]
fn tree_shows_questions_and_requests_between_agents() {
    let state = state(&[beginning(), talk()]);
    insta::assert_snapshot!(plain(&view(&state, &Prompt::default(), 100)));
}

#[test]
fn tree_shows_thinking_time_and_indexing_progress() {
    let mut state = state(&[beginning()]);
    let first = plain(&view(&state, &Prompt::default(), 100));
    assert!(first.contains("late_fee thinks · "), "{first}");
    assert!(super::tree::waiting_for(&state).is_empty());
    state.at_ms += 61_000;
    state.reading = Some((1_200, 20_000));
    let later = plain(&view(&state, &Prompt::default(), 100));
    assert!(later.contains("late_fee thinks 61 s · "), "{later}");
    assert!(
        later.contains(" · reading the code: 1,200 of 20,000 files"),
        "{later}"
    );
    let lines = plain(&super::tree::waiting_for(&state));
    assert_eq!(lines, "… loans/fees.py::late_fee thinks (61 s)");
}

#[test]
fn tree_does_not_show_examples_that_the_program_tried_as_work() {
    let tried = Event::ToolUsed {
        agent: ActorId::Starling,
        tool: "try".to_owned(),
        argument: "late_fee(3)".to_owned(),
        outcome: "4".to_owned(),
    };
    let state = state(&[beginning(), vec![tried]]);
    let shown = plain(&view(&state, &Prompt::default(), 80));
    assert!(!shown.contains("late_fee(3)"), "{shown}");
}

#[test]
fn tree_shows_no_thinking_agent_after_the_run_ended() {
    let mut state = state(&[beginning(), reviews()]);
    state.agents_are_gone = true;
    let applied = Event::ProposalApplied {
        proposal: ProposalId(1),
        symbols: Vec::new(),
        diff: String::new(),
        change: None,
    };
    state.take(90_000, &applied);
    let shown = plain(&view(&state, &Prompt::default(), 100));
    assert!(!shown.contains("thinks"), "{shown}");
    assert!(super::tree::waiting_for(&state).is_empty());
}

#[test]
fn text_typed_without_a_question_is_shown_below_the_tree() {
    let state = state(&[beginning()]);
    let ahead = Prompt::Ahead("use a set".to_owned());
    let shown = plain(&view(&state, &ahead, 100));
    let last = shown.lines().last().unwrap();
    assert_eq!(
        last,
        "  use a set▏  kept for the next question; Esc drops it"
    );
}

#[test]
fn tree_shows_waiting_reviews_within_the_window_width() {
    let state = state(&[beginning(), talk(), reviews()]);
    let lines = view(&state, &Prompt::Rejecting("too lo".to_owned()), 100);
    insta::assert_snapshot!(plain(&lines));
    insta::assert_snapshot!("narrow", plain(&view(&state, &Prompt::default(), 32)));
    for width in 0..120 {
        let lines = view(&state, &Prompt::default(), width);
        assert!(lines.iter().all(|line| line.width() <= width), "{width}");
    }
}

#[test]
fn run_log_shows_the_events_of_a_run_in_order() {
    let all = [beginning(), talk(), reviews(), ending(StopReason::Settled)];
    insta::assert_snapshot!(plain(&story(&all.concat())));
}

#[test]
fn proposal_reviewed_by_the_proxy_is_shown_with_its_decision() {
    let mut events = reviews();
    events.retain(|event| !matches!(event, Event::ReviewAsked { .. }));
    events.push(Event::ProposalChecked {
        proposal: ProposalId(1),
        evidence: evidence(),
    });
    events.push(Event::ProposalReviewed {
        proposal: ProposalId(1),
        by: ActorId::Proxy,
        verdict: Verdict::Steer {
            text: "keep it simple".to_owned(),
        },
    });
    insta::assert_snapshot!(plain(&story(&events)));
}

#[test]
fn diff_in_a_question_is_coloured() {
    let state = state(&[reviews()]);
    let asked = question(state.reviews.front().unwrap(), &state);
    insta::assert_snapshot!(painted(&asked, Paint::Colour).replace('\x1b', "␛"));
}

/// A Makefile with spaces instead of a tab is broken.
#[test]
fn tabs_in_a_diff_differ_from_spaces() {
    let shown = plain(&super::story::diff("+\tmake\n+    make\n-ab\tc\n").collect::<Vec<_>>());
    assert_eq!(shown, "+→   make\n+    make\n-ab→ c");
}

#[test]
fn proposals_of_a_set_are_shown_as_one_review() {
    let mut events = reviews();
    for event in &mut events {
        if let Event::ReviewAsked {
            diff, reason, with, ..
        } = event
        {
            *diff = "+both\n".to_owned();
            *reason = "2 changes that belong together".to_owned();
            *with = vec![ProposalId(9)];
        }
    }
    let now = state(&[beginning(), events]);
    let shown = now.proposal(ProposalId(1)).expect("the proposal");
    assert_eq!(shown.diff, "+both\n");
    assert_eq!(shown.reason, "2 changes that belong together");
}

fn tests(outcome: TestOutcome, passed: usize, broken: &[&str], details: &str) -> TestEvidence {
    TestEvidence::Known {
        command: "pytest".to_owned(),
        outcome,
        passed,
        fixed: Vec::new(),
        broken: broken.iter().map(|id| (*id).to_owned()).collect(),
        still_failing: Vec::new(),
        details: details.to_owned(),
        millis: 500,
        tried: Tried::All,
        only_as_changed: Default::default(),
        uncounted: Default::default(),
        source: Default::default(),
    }
}

#[test]
fn each_part_of_a_set_is_shown_with_the_check_of_the_set() {
    let alone = Evidence {
        tests: tests(TestOutcome::Failed, 7, &["t.py::t"], "E   NameError: total"),
        contract: vec!["calc: removed or renamed".to_owned()],
        callers_in_set: vec![symbol("cli.py::cmd_summary")],
        callers_kept: Vec::new(),
        indirect_callers: Vec::new(),
        test_callers: 1,
        ..evidence()
    };
    let together = Evidence {
        together: Some(JointEvidence {
            with: vec![symbol("cli.py::"), symbol("cli.py::cmd_summary")],
            proposals: vec![ProposalId(7), ProposalId(8)],
            tests: tests(TestOutcome::Passed, 8, &[], ""),
            diagnostics: DiagnosticEvidence::Absent,
            examples: vec![ExampleEvidence {
                code: "calc()".to_owned(),
                before: "TypeError: no".to_owned(),
                after: "2".to_owned(),
            }],
            needs: Vec::new(),
            checked_in: 0,
        }),
        ..alone.clone()
    };
    let proposal = ProposalId(6);
    let events = vec![
        Event::ProposalMade {
            proposal,
            agent: agent("stats.py::calc"),
            symbols: vec![symbol("stats.py::calc")],
            reason: "rename".to_owned(),
            diff: DIFF.to_owned(),
            revises: None,
        },
        Event::ProposalChecked {
            proposal,
            evidence: alone,
        },
        Event::ProposalChecked {
            proposal,
            evidence: together,
        },
        Event::ProposalReviewed {
            proposal,
            by: ActorId::Starling,
            verdict: Verdict::Accept,
        },
    ];
    let told = plain(&story(&events));
    for line in [
        "  checked together with: #7, #8",
        "  tests: 8 pass (0.5 s)",
        "  example of the task: before `TypeError: no`, after `2`",
        "  callers: cli.py::cmd_summary (changed in the same set)",
    ] {
        assert!(told.lines().any(|told| told == line), "{line} in\n{told}");
    }
    for gone in ["NameError", "BROKEN", "only tests"] {
        assert!(!told.contains(gone), "{gone} in\n{told}");
    }
}

fn made_and_checked(proposal: ProposalId, evidence: Evidence) -> [Event; 2] {
    let made = Event::ProposalMade {
        proposal,
        agent: agent("stats.py::calc"),
        symbols: vec![symbol("stats.py::calc")],
        reason: "rename".to_owned(),
        diff: DIFF.to_owned(),
        revises: None,
    };
    [made, Event::ProposalChecked { proposal, evidence }]
}

#[test]
fn checked_proposal_that_is_not_decided_is_shown_as_being_checked() {
    let events = made_and_checked(ProposalId(4), evidence()).to_vec();
    let shown = plain(&view(
        &state(&[beginning(), events]),
        &Prompt::default(),
        100,
    ));
    let line = shown.lines().find(|line| line.contains("stats.py::calc"));
    let line = line.unwrap_or_default();
    assert!(line.contains("is checked"), "{shown}");
    assert!(!line.contains("thinks"), "{shown}");
}

#[test]
fn contract_change_without_owners_to_follow_up_names_its_other_callers() {
    let mut found = evidence();
    found.test_callers = 1;
    found.indirect_callers = vec![IndirectCaller {
        through: None,
        is_value: true,
        file: FilePath::new("filters.py"),
        line: 3,
    }];
    let mut events = made_and_checked(ProposalId(6), found).to_vec();
    events.push(Event::FollowedUp {
        changed: symbol("stats.py::calc"),
        changes: vec!["a parameter more".to_owned()],
        to: Vec::new(),
    });
    let told = plain(&story(&events));
    let expected = "a parameter more; no other owner is told, but 1 test calls it as before; it may be \
                    called by code that is not known, because it is stored or passed on at filters.py:3";
    assert!(told.ends_with(expected), "{told}");
}

#[test]
fn failing_tests_that_are_not_near_the_change_are_not_shown_with_it() {
    let mut found = evidence();
    found.tests = TestEvidence::Known {
        command: "pytest".to_owned(),
        outcome: TestOutcome::Failed,
        passed: 0,
        fixed: Vec::new(),
        broken: Vec::new(),
        still_failing: vec!["test_a".to_owned(), "test_b".to_owned()],
        details: String::new(),
        millis: 500,
        tried: Tried::Nearest {
            tests: 2,
            of: 22,
            are_near: false,
            files: Vec::new(),
            whole_at_end: true,
        },
        only_as_changed: Default::default(),
        uncounted: Default::default(),
        source: Default::default(),
    };
    let mut events = made_and_checked(ProposalId(6), found).to_vec();
    events.push(Event::ProposalReviewed {
        proposal: ProposalId(6),
        by: ActorId::Starling,
        verdict: Verdict::Accept,
    });
    let told = plain(&story(&events));
    let is_line = |line: &str| line == "  tests: none is near the change";
    assert!(told.lines().any(is_line), "{told}");
    assert!(!told.contains("still failing"), "{told}");
}

#[test]
fn run_log_shows_a_needed_proposal_without_an_empty_joint_check() {
    let mut found = evidence();
    found.together = Some(JointEvidence {
        with: Vec::new(),
        proposals: Vec::new(),
        tests: tests(TestOutcome::Passed, 8, &[], ""),
        diagnostics: DiagnosticEvidence::Absent,
        examples: Vec::new(),
        needs: vec![ProposalId(2)],
        checked_in: 0,
    });
    let proposal = ProposalId(6);
    let made = Event::ProposalMade {
        proposal,
        agent: agent("stats.py::calc"),
        symbols: vec![symbol("stats.py::calc")],
        reason: "rename".to_owned(),
        diff: DIFF.to_owned(),
        revises: None,
    };
    let checked = Event::ProposalChecked {
        proposal,
        evidence: found,
    };
    let reviewed = Event::ProposalReviewed {
        proposal,
        by: ActorId::Starling,
        verdict: Verdict::Accept,
    };
    let told = plain(&story(&[made, checked, reviewed]));
    assert!(
        told.contains("  needs: #2: the tests pass only together\n"),
        "{told}"
    );
    assert!(!told.contains("checked together with"), "{told}");
}

#[test]
fn new_evidence_of_the_proposal_in_question_is_told_and_of_others_is_not() {
    let told = "applied since these checks: #5; they run again";
    let broken = Evidence {
        tests: tests(TestOutcome::Failed, 7, &["test_rate"], "TypeError"),
        ..evidence()
    };
    let outdated = Evidence {
        outdated: Some(told.to_owned()),
        ..broken.clone()
    };
    let fresh = Evidence {
        tests: tests(TestOutcome::Passed, 8, &[], ""),
        ..evidence()
    };
    let asked = |id: u32| Event::ReviewAsked {
        proposal: ProposalId(id),
        agent: agent("stats.py::calc"),
        symbol: symbol("stats.py::calc"),
        diff: DIFF.to_owned(),
        reason: "rename".to_owned(),
        evidence: broken.clone(),
        with: Vec::new(),
        parts: Vec::new(),
    };
    let checked = |id: u32, evidence: &Evidence| Event::ProposalChecked {
        proposal: ProposalId(id),
        evidence: evidence.clone(),
    };
    let events = vec![
        asked(6),
        asked(7),
        checked(6, &outdated),
        checked(7, &outdated),
        checked(6, &fresh),
    ];
    let shown = plain(&story(&events));
    let out_of_date = format!("! #6 its checks are out of date: {told}\n");
    assert!(shown.contains(&out_of_date), "{shown}");
    let again = "#6 was checked again:\n  tests: 8 pass (0.5 s)\n";
    assert!(shown.contains(again), "{shown}");
    assert!(!shown.contains("#7 its checks"), "{shown}");
    // A proposal that is shown later is shown with its own mark.
    let mut now = state(&[events]);
    assert_eq!(now.agents[0].doing, Doing::InReview);
    now.answered();
    let next = plain(&question(now.reviews.front().unwrap(), &now));
    assert!(next.contains(&format!("  out of date: {told}\n")), "{next}");
}

#[test]
fn reviews_are_queued_and_removed_when_they_are_decided() {
    let mut now = state(&[beginning(), reviews()]);
    let intent = IntentView {
        symbol: symbol("loans/desk.py::lend"),
        intent: "check the title".to_owned(),
        reason: "unknown titles".to_owned(),
    };
    now.intent_asked(intent);
    assert_eq!(now.reviews.len(), 3);
    let targets: Vec<_> = now
        .reviews
        .iter()
        .map(super::state::Review::target)
        .collect();
    assert_eq!(targets[1].proposal, Some(ProposalId(2)));
    assert_eq!(targets[2].symbol, Some(symbol("loans/desk.py::lend")));
    now.take(
        0,
        &Event::IntentReviewed {
            agent: agent("loans/desk.py::lend"),
            by: ActorId::User,
            verdict: Verdict::Accept,
        },
    );
    now.take(
        0,
        &Event::ProposalReviewed {
            proposal: ProposalId(1),
            by: ActorId::User,
            verdict: Verdict::Accept,
        },
    );
    assert_eq!(now.reviews.len(), 1);
    assert_eq!(
        now.answered().unwrap().target().proposal,
        Some(ProposalId(2))
    );
    assert_eq!(now.answered(), None);
}

#[test]
fn tree_shows_each_agent_once_even_in_a_cycle() {
    let cause = |from: &str| Cause::ChangeRequest {
        from: agent(from),
        reason: "r".to_owned(),
    };
    let woken = |path: &str, from: &str| Event::AgentWoken {
        agent: agent(path),
        cause: cause(from),
    };
    let circle = vec![woken("a.py::f", "b.py::g"), woken("b.py::g", "a.py::f")];
    let lines = view(&state(&[circle]), &Prompt::default(), 80);
    assert_eq!(lines.len(), 3, "{}", plain(&lines));
}

#[test]
fn tree_summarizes_agents_that_do_not_fit() {
    let many = (0..40).map(|number| Event::AgentWoken {
        agent: agent(&format!("a.py::f{number}")),
        cause: Cause::Picked {
            why: "w".to_owned(),
        },
    });
    let mut state = state(&[many.collect()]);
    state.take(
        0,
        &Event::AgentFinished {
            agent: agent("a.py::f0"),
            outcome: AgentOutcome::Changed,
            summary: String::new(),
        },
    );
    let shown = plain(&view(&state, &Prompt::default(), 80));
    assert!(
        !shown.contains("f0 "),
        "the one that is done gives way: {shown}"
    );
    assert!(shown.contains("26 agents more"), "{shown}");
}

#[test]
fn changed_contract_lists_the_owners_that_follow_up() {
    let told = |to: &[&str]| {
        let event = Event::FollowedUp {
            changed: "a.py::f".parse().unwrap(),
            changes: vec!["removed".to_owned()],
            to: to.iter().map(|one| one.parse().unwrap()).collect(),
        };
        plain(&story(&[event]))
    };
    assert!(told(&["b.py::g"]).contains("removed; tells b.py::g"));
    assert!(told(&[]).contains("removed; no other owner needs to follow up"));
}
