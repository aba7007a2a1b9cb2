//! The lines of single events, and their effect on the state of a run.

use super::super::state::{Doing, tests};
use super::super::summary::{ProjectLifetime, Traces, summary};
use super::super::words;
use super::*;
use starling_core::Cost;
use starling_swarm::AppliedChange;
use starling_syntax::FilePath;
use starling_text::ChangeSet;

fn owner() -> ActorId {
    agent("a.py::f")
}

fn told(event: Event) -> Vec<String> {
    let lines = story(&[event]);
    lines.iter().map(|line| line.paint(Paint::Plain)).collect()
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn run_log_shows_failures_of_an_agent() {
    let gave_up = Event::AgentFinished {
        agent: owner(),
        outcome: AgentOutcome::GaveUp {
            why: text("12 turns\nwere not enough"),
        },
        summary: String::new(),
    };
    assert_eq!(told(gave_up), ["✗ a.py::f gave up: 12 turns"]);
    let failed = Event::TurnFailed {
        agent: ActorId::Scout,
        role: Role::Scout,
        error: text("no answer"),
        spent: Cost::default(),
    };
    assert_eq!(told(failed), ["! scout no answer"]);
    let refused = Event::ProposalRefused {
        agent: ActorId::Solo,
        why: text("The proposal loses the docstring. Keep it, or set `intended_losses`."),
        shown: Some(text("the change would lose the docstring")),
    };
    assert_eq!(
        told(refused),
        ["↺ agent the change would lose the docstring"]
    );
}

#[test]
fn note_about_a_withheld_variable_is_shown_once() {
    let note = "REGION is set, but tests see it only if `sandbox.environment` names it";
    let mut failing = report(&["t9"], 1);
    failing.cases[0].message = format!("KeyError: 'REGION'\nnote: the variable {note}");
    let run = |phase| Event::TestsRun {
        phase,
        proposal: None,
        report: failing.clone(),
    };
    let told = plain(&story(&[run(TestPhase::Before), run(TestPhase::Settling)]));
    assert_eq!(
        told.matches(&format!("  note: {note}")).count(),
        1,
        "{told}"
    );
    // The note also appears if only the tests of a proposal show it.
    let told = plain(&story(&[run(TestPhase::Proposal)]));
    assert_eq!(told, format!("  note: {note}"));
}

#[test]
fn patch_command_is_suggested_outside_of_a_git_repository() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = RunState::default();
    state.root = dir.path().to_owned();
    let back = Event::TakenBack {
        diff: String::new(),
        patch: Some(text("/c/1.patch")),
        left: Vec::new(),
    };
    let told = plain(&tell(&back, &state));
    assert!(
        told.ends_with("kept in /c/1.patch; apply it yourself with `patch -p1 -i`"),
        "{told}"
    );
}

#[test]
fn run_log_shows_retries_and_fallbacks_of_models() {
    let (big, small) = (text("big"), text("small"));
    let error = text("429");
    for (notice, expected) in [
        (
            ModelNotice::Retrying {
                model: big.clone(),
                attempt: 2,
                wait_ms: 500,
                error: error.clone(),
            },
            "! a.py::f the request to big is retried (attempt 2): 429",
        ),
        (
            ModelNotice::FellBack {
                from: big.clone(),
                to: small,
                error,
            },
            "! a.py::f small is used instead of big: 429",
        ),
        (
            ModelNotice::Continued {
                model: big.clone(),
                joined: 900,
            },
            "! a.py::f the answer of big was cut and is continued (900 characters so far)",
        ),
        (
            ModelNotice::Preparing {
                model: big,
                message: text("loading"),
            },
            "! a.py::f big: loading",
        ),
    ] {
        let event = Event::Notice {
            agent: owner(),
            notice,
        };
        assert_eq!(told(event), [expected]);
    }
}

#[test]
fn message_between_agents_names_both_and_is_truncated() {
    let to = agent("b.py::g");
    for (source, verb) in [
        (AnswerSource::Model, "answers"),
        (AnswerSource::Memory, "answers (from memory)"),
        (AnswerSource::Cycle, "answers (at once, to break a cycle)"),
        (AnswerSource::Refused, "cannot answer"),
    ] {
        let event = Event::Answered {
            question: 1,
            from: owner(),
            to: to.clone(),
            text: text("yes"),
            source,
        };
        let expected = [format!("» a.py::f {verb} b.py::g"), text("    yes")];
        assert_eq!(told(event), expected);
    }
    let long = Event::Asked {
        question: 1,
        from: owner(),
        to: to.clone(),
        text: (1..=9).map(|line| format!("line {line}\n")).collect(),
    };
    let lines = told(long);
    assert_eq!(lines.len(), 8, "{lines:?}");
    assert_eq!(lines[6..], ["    line 6", "    …"]);
    let wanted = Event::ChangeRequested {
        from: owner(),
        to: to.clone(),
        reason: text("return a list"),
    };
    assert_eq!(told(wanted)[0], "» a.py::f wants a change of b.py::g");
    let declined = Event::ChangeDeclined {
        by: to,
        to: owner(),
        reason: text("it does"),
    };
    assert_eq!(
        told(declined),
        ["» b.py::g declines to a.py::f", "    it does"]
    );
    let stated = Event::IntentStated {
        agent: owner(),
        intent: text("rename x"),
        reason: text("clash"),
    };
    assert_eq!(told(stated), ["» a.py::f means to rename x", "    clash"]);
}

#[test]
fn run_log_shows_the_outcome_of_a_proposal() {
    let id = ProposalId(3);
    let applied = Event::ProposalApplied {
        proposal: id,
        symbols: (0..8).map(|at| symbol(&format!("a.py::f{at}"))).collect(),
        diff: String::new(),
        change: None,
    };
    let named: Vec<String> = (0..6).map(|at| format!("a.py::f{at}")).collect();
    let expected = format!("✓ #3 changed {} and 2 more", named.join(", "));
    assert_eq!(told(applied), [expected]);
    let there = Event::ProposalApplied {
        proposal: id,
        symbols: vec![symbol("a.py::f")],
        diff: String::new(),
        change: Some(AppliedChange {
            file: FilePath::new("a.py"),
            before: "x".into(),
            changes: ChangeSet::between("x", "x"),
            created: false,
            deleted: None,
            directories: Vec::new(),
            dependencies: Default::default(),
            text_without: None,
        }),
    };
    let expected = "✓ #3 nothing changed: its text was already there";
    assert_eq!(told(there), [expected]);
    let conflicted = Event::ProposalConflicted {
        proposal: id,
        why: text("you changed line 2"),
    };
    assert_eq!(told(conflicted), ["↺ #3 you changed line 2"]);
    let undone = Event::ProposalUndone {
        proposal: id,
        by_editor: false,
        unsaved: false,
    };
    assert_eq!(told(undone), ["↶ #3 taken back"]);
    let chosen = Event::CandidateChosen {
        agent: owner(),
        model: text("big"),
        among: vec![text("big"), text("small")],
        why: text("smaller diff"),
    };
    assert_eq!(
        told(chosen),
        ["≻ a.py::f takes the candidate of big: smaller diff"]
    );
    // The verdict is shown even if the proposal is unknown.
    let reviewed = Event::ProposalReviewed {
        proposal: id,
        by: ActorId::Proxy,
        verdict: Verdict::Accept,
    };
    assert_eq!(told(reviewed), ["• #3 accepted by proxy user"]);
}

#[test]
fn reason_for_waking_an_agent_is_shown_once() {
    let woken = |cause| {
        told(Event::AgentWoken {
            agent: owner(),
            cause,
        })
    };
    let follow = Cause::FollowUp {
        changed: symbol("b.py::g"),
        changes: vec![text("a parameter more")],
        lines: vec![3],
        text: text("g(1)"),
        wave: 1,
    };
    assert_eq!(woken(follow), ["→ a.py::f looks at what b.py::g changed"]);
    let failed = Cause::FailedTests {
        message: text("test_f\ntest_g"),
    };
    assert_eq!(woken(failed), ["→ a.py::f looks at failing tests: test_f"]);
    // Other events already report these causes.
    assert!(woken(Cause::Picked { why: text("w") }).is_empty());
    assert!(woken(Cause::Steered { text: text("t") }).is_empty());
    let followed = Event::FollowedUp {
        changed: symbol("b.py::g"),
        changes: vec![text("a parameter more"), text("returns a list")],
        to: vec![symbol("a.py::f")],
    };
    assert_eq!(
        told(followed),
        ["→ b.py::g a parameter more; returns a list; tells a.py::f"]
    );
    let missed = Event::FollowUpMissed {
        changed: symbol("b.py::g"),
        owners: vec![symbol("a.py::f"), symbol("a.py::h")],
        why: text("the budget is used up: 3 of 3 messages"),
        told: false,
    };
    assert_eq!(
        told(missed.clone()),
        ["! b.py::g does not tell a.py::f, a.py::h: the budget is used up: 3 of 3 messages"]
    );
    let unfollowed = Event::FollowUpMissed {
        changed: symbol("b.py::g"),
        owners: vec![symbol("a.py::k")],
        why: text("they were told of it"),
        told: true,
    };
    assert_eq!(
        told(unfollowed.clone()),
        ["! b.py::g is not followed by a.py::k: they were told of it"]
    );
    let state = state(&[
        vec![missed.clone(), missed, unfollowed],
        super::ending(StopReason::Settled),
    ]);
    let traces = Traces {
        trajectory: Path::new("/t"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    let report = plain(&summary(&state, traces));
    let line = "not told  a.py::f (uses b.py::g), a.py::h (uses b.py::g)";
    assert_eq!(report.matches(line).count(), 1, "{report}");
    assert!(
        report.contains("    told  a.py::k (uses b.py::g), without a change"),
        "{report}"
    );
}

#[test]
fn internal_events_are_not_shown_in_the_run_log() {
    let [started, finished] = turn(&owner(), 1);
    let malformed = Event::Malformed {
        agent: owner(),
        what: text("no such tool"),
    };
    let located = Event::Located {
        candidates: Vec::new(),
        millis: 3,
    };
    let of_proposal = Event::TestsRun {
        phase: TestPhase::Proposal,
        proposal: Some(ProposalId(1)),
        report: report(&["t"], 1),
    };
    for event in [started, finished, malformed, located, of_proposal] {
        assert_eq!(told(event), [""; 0]);
    }
}

#[test]
fn failing_evidence_of_a_proposal_is_shown_completely() {
    let against = Evidence {
        tests: TestEvidence::Known {
            command: text("pytest"),
            outcome: TestOutcome::Failed,
            passed: 1,
            fixed: Vec::new(),
            broken: vec![text("tests/test_a.py::T::test_b")],
            still_failing: vec![text("tests.test_a.T.test_c")],
            details: text("AssertionError: 1 != 2"),
            millis: 1500,
            tried: Tried::All,
            only_as_changed: Default::default(),
            uncounted: Default::default(),
            source: Default::default(),
        },
        contract: vec![text("f: a parameter more")],
        callers: vec![symbol("b.py::g")],
        ..evidence()
    };
    let asked = Event::ReviewAsked {
        proposal: ProposalId(1),
        agent: owner(),
        symbol: symbol("a.py::f"),
        diff: DIFF.to_owned(),
        reason: text("why"),
        evidence: against,
        with: Vec::new(),
        parts: Vec::new(),
    };
    let state = state(&[vec![asked]]);
    let shown = plain(&question(state.reviews.front().unwrap(), &state));
    for line in [
        "proposal #1 of a.py::f",
        "  tests: 1 pass (1.5 s)",
        "  1 BROKEN by this change: test_b",
        "  1 still failing: test_c",
        "    AssertionError: 1 != 2",
        "  contract: f: a parameter more",
        "  callers: b.py::g",
    ] {
        assert!(
            shown.lines().any(|shown| shown == line),
            "{line} in\n{shown}"
        );
    }
    assert!(!shown.contains("fixed"), "{shown}");
    let tests_alone = Evidence {
        contract: vec![text("f: a parameter more")],
        test_callers: 3,
        ..evidence()
    };
    let told = tests_alone.to_string();
    assert!(
        told.contains("callers to follow up: only tests (3)"),
        "{told}"
    );
}

#[test]
fn intent_review_is_shown_with_its_reason() {
    let mut state = RunState::default();
    state.intent_asked(IntentView {
        symbol: symbol("a.py::f"),
        intent: text("take a list"),
        reason: text("callers have one"),
    });
    let shown = plain(&question(state.reviews.front().unwrap(), &state));
    assert_eq!(
        shown,
        "\n» a.py::f asks to take a list\n    callers have one"
    );
    assert_eq!(state.agents[0].doing, Doing::InReview);
}

#[test]
fn long_list_of_failing_tests_is_truncated() {
    let ids: Vec<String> = (0..9).map(|at| format!("test_{at}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let lines = told(Event::TestsRun {
        phase: TestPhase::Before,
        proposal: None,
        report: report(&ids, 2),
    });
    assert_eq!(lines.len(), 7, "{lines:?}");
    assert!(lines[0].starts_with("tests before: 9 fail, 2 pass (0.1 s)"));
    assert_eq!(lines[1], "  ✗ test_0  AssertionError: 500 != 60");
}

#[test]
fn test_outcomes_are_described_in_a_few_words() {
    let with = |outcome| {
        tests(&TestReport {
            outcome,
            ..report(&["t"], 2)
        })
    };
    assert_eq!(with(TestOutcome::NotRun), "did not run");
    assert_eq!(with(TestOutcome::TimedOut), "timed out after 0.1 s");
    let memory = with(TestOutcome::OutOfMemory);
    assert_eq!(memory, "ran out of memory after 0.1 s");
    let processes = with(TestOutcome::TooManyProcesses);
    assert_eq!(processes, "started too many processes after 0.1 s");
    let output = with(TestOutcome::OutputTooLong);
    assert_eq!(output, "printed without end after 0.1 s");
    assert_eq!(with(TestOutcome::Passed), "2 pass (0.1 s)");
    assert_eq!(with(TestOutcome::Failed), "1 fail, 2 pass (0.1 s)");
}

#[test]
fn agent_state_follows_its_last_event() {
    let mut now = RunState::default();
    let mut after = |event: Event| {
        now.take(0, &event);
        let agent = now.agents.iter().find(|agent| agent.party == owner());
        let agent = agent.unwrap();
        (agent.doing.clone(), agent.last.clone())
    };
    let used = |tool: &str| Event::ToolUsed {
        agent: owner(),
        tool: text(tool),
        argument: text("b.py::g"),
        outcome: String::new(),
    };
    assert_eq!(after(used("read")), (Doing::Reading, text("read b.py::g")));
    // `ask` has its own event.
    assert_eq!(after(used("ask")).1, "read b.py::g");
    let asked = Event::Asked {
        question: 1,
        from: owner(),
        to: ActorId::User,
        text: text("why?\nplease"),
    };
    assert_eq!(after(asked), (Doing::Asking(ActorId::User), text("why?")));
    let made = Event::ProposalMade {
        proposal: ProposalId(1),
        agent: owner(),
        symbols: vec![symbol("a.py::f")],
        reason: text("min"),
        diff: String::new(),
        revises: None,
    };
    assert_eq!(after(made), (Doing::Checking, text("#1 min")));
    let conflicted = Event::ProposalConflicted {
        proposal: ProposalId(1),
        why: text("typed over"),
    };
    assert_eq!(after(conflicted), (Doing::Thinking, text("#1 typed over")));
    let finished = Event::AgentFinished {
        agent: owner(),
        outcome: AgentOutcome::NothingToChange,
        summary: String::new(),
    };
    let done = Doing::Done(AgentOutcome::NothingToChange);
    assert_eq!(after(finished).0, done);
}

#[test]
fn costs_of_turns_are_summed() {
    let mut events = turn(&owner(), 1).to_vec();
    events.extend(turn(&ActorId::Proxy, 1));
    let state = state(&[events]);
    assert_eq!((state.calls, state.tokens), (2, Tokens(8400)));
    assert!((state.dollars.0 - 0.0246).abs() < 1e-9);
    assert_eq!(state.agents[0].tokens, Tokens(4200));
    assert_eq!(state.agents[0].doing, Doing::Thinking);
    assert_eq!(state.agents[1].doing, Doing::Answered);
}

#[test]
fn elapsed_time_never_decreases() {
    let mut state = RunState::default();
    let event = Event::ProposalUndone {
        proposal: ProposalId(1),
        by_editor: false,
        unsaved: false,
    };
    state.take(500, &event);
    state.take(300, &event);
    assert_eq!(state.at_ms, 500);
}

#[test]
fn end_of_a_run_clears_its_open_reviews() {
    let state = state(&[reviews(), ending(StopReason::Cancelled)[5..].to_vec()]);
    assert!(state.finished.is_some());
    assert!(state.reviews.is_empty());
}

#[test]
fn numbers_and_costs_are_formatted_for_readers() {
    assert_eq!(words::dollars(Dollars(0.0)), "$0");
    assert_eq!(words::dollars(Dollars(0.01234)), "$0.0123");
    assert_eq!(words::dollars(Dollars(12.345)), "$12.35");
    assert_eq!(words::count(0, "call"), "0 calls");
    assert_eq!(words::count(1, "call"), "1 call");
    assert_eq!(words::few(&[]), "none");
    let spent = |waiting_seconds| {
        let spent = Spent {
            seconds: 10.0,
            waiting_seconds,
            ..Spent::default()
        };
        words::spent(&spent, &words::cost(&spent))
    };
    let of = |unpriced_calls, dollars, assumed| {
        let spent = Spent {
            prompt_tokens: Tokens(9_000),
            assumed_tokens: Tokens(assumed),
            dollars: Dollars(dollars),
            unpriced_calls,
            ..Spent::default()
        };
        words::spent(&spent, &words::cost(&spent))
    };
    assert!(of(0, 0.0, 0).contains(" · $0 · "));
    assert!(of(2, 0.0, 0).contains(" · cost unknown · "));
    assert!(of(2, 0.5, 0).contains("$0.5000, and the cost of 2 calls is unknown"));
    assert!(of(0, 0.5, 6_000).contains("about 3000 tokens, at most 9000 · at most $0.5000"));
    assert!(spent(0.5).contains(" 9.5 s") && !spent(0.5).contains("waiting"));
    assert!(spent(4.0).ends_with("· 4 s waiting for you"));
}

#[test]
fn undo_command_in_the_summary_is_quoted_for_the_shell() {
    let traces = Traces {
        trajectory: Path::new("/c/1.jsonl"),
        repo: Some(Path::new("/it's here")),
        tree: ProjectLifetime::Stays,
    };
    let said = plain(&summary(&state(&[ending(StopReason::Settled)]), traces));
    let expected = r"undo  starling undo --repo '/it'\''s here'";
    assert!(said.contains(expected), "{said}");
    let gone = Traces {
        tree: ProjectLifetime::Temporary,
        ..traces
    };
    let said = plain(&summary(&state(&[ending(StopReason::Settled)]), gone));
    assert!(!said.contains("starling undo"), "{said}");
}

#[test]
fn summary_names_the_command_to_review_waiting_proposals() {
    let traces = Traces {
        trajectory: Path::new("/c/1.jsonl"),
        repo: None,
        tree: ProjectLifetime::Stays,
    };
    let asked = starling_headless::testing::review_asked;
    let events = vec![asked(3, "a.py::f"), asked(4, "a.py::g")];
    let said = plain(&summary(
        &state(&[events, ending(StopReason::Cancelled)]),
        traces,
    ));
    let last = said.trim_end().lines().last().unwrap();
    assert_eq!(last, "2 proposals wait for your review: `starling review`");
}

#[test]
fn test_file_that_cannot_be_loaded_is_named_by_its_path() {
    for (id, shown) in [
        ("tests/test_stats.py", "tests/test_stats.py"),
        ("test_stats.py", "test_stats.py"),
        ("tests/test_stats.py::test_a", "test_a"),
        (
            "tests/test_stats.py::T::test_a[1.5/x.py]",
            "test_a[1.5/x.py]",
        ),
        ("tests.test_stats.T.test_a", "test_a"),
        ("web/sum.test.js", "web/sum.test.js"),
    ] {
        let broken = Evidence {
            tests: TestEvidence::Known {
                command: text("pytest"),
                outcome: TestOutcome::Failed,
                passed: 3,
                fixed: Vec::new(),
                broken: vec![text(id)],
                still_failing: Vec::new(),
                details: String::new(),
                millis: 500,
                tried: Tried::All,
                only_as_changed: Default::default(),
                uncounted: Default::default(),
                source: Default::default(),
            },
            ..evidence()
        };
        let asked = Event::ReviewAsked {
            proposal: ProposalId(1),
            agent: owner(),
            symbol: symbol("a.py::f"),
            diff: DIFF.to_owned(),
            reason: text("why"),
            evidence: broken,
            with: Vec::new(),
            parts: Vec::new(),
        };
        let state = state(&[vec![asked]]);
        let told = plain(&question(state.reviews.front().unwrap(), &state));
        let line = format!("\n  1 BROKEN by this change: {shown}\n");
        assert!(told.contains(&line), "{line} in\n{told}");
    }
}
