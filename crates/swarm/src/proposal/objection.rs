//! Decides whether a proposal that was checked alone may be shown to the approver.
//!
//! If no person reviews, a proposal must not make any test or diagnostic worse. A person may be
//! shown such a proposal, together with the objection and the reason for showing it.

use crate::check::{diagnose, documentation, new_tests};
use crate::context::scout_context;
use crate::evidence::check_results::DiagnosticEvidence;
use crate::evidence::ids::{WHOLE_RUN, named};
use crate::evidence::joint::JointEvidence;
use crate::evidence::proposal::{CALLERS_FOLLOW, Evidence, MORE_COMES, OTHERS_WORK};
use crate::evidence::return_reason::ReturnReason;
use crate::evidence::test_evidence::TestEvidence;
use crate::proposal::outcome;
use crate::protocol::Propose;
use crate::state::agent_state::AgentState;
use crate::state::draft::Draft;
use crate::state::proposal::Proposal;
use crate::state::run_context::RunContext;
use crate::task::goal;
use starling_core::{Approval, TestOutcome, ToolCalling};
use starling_syntax::SymbolPath;

/// Why a proposal is refused that fails alone, and that breaks nothing and fixes nothing together
/// with others.
const MENDS_NOTHING: &str =
    "none of the failing tests passes with it and the other waiting proposals";

/// The decision about a proposal after it was checked on its own.
pub(crate) enum StandaloneVerdict {
    /// No check failed.
    Passes,
    /// A check failed, and a person decides. The text names the overridden check and the reason.
    PersonDecides { overridden: String },
    /// The proposal goes back to its agent.
    SentBack { why: ReturnReason },
}

/// Decides on a proposal that was checked.
pub(crate) fn judge(
    run: &RunContext,
    agent: &AgentState,
    proposal: &Proposal,
) -> StandaloneVerdict {
    let Proposal {
        change,
        draft,
        evidence,
        ..
    } = proposal;
    let excuse = match run.task.approval {
        Approval::Ask => excuse(run, agent, change, draft),
        Approval::Proxy | Approval::Auto => None,
    };
    // If the proposal passes together with others, the joint results decide.
    let passes_with_others = evidence
        .together
        .as_ref()
        .is_some_and(JointEvidence::passes);
    if run.task.approval == Approval::Auto
        && passes_with_others
        && let Some(why) = weakened(evidence)
    {
        return StandaloneVerdict::SentBack { why };
    }
    if let Some(objection) = worse(run, draft, evidence) {
        return match excuse {
            Some(reason) => StandaloneVerdict::PersonDecides {
                overridden: format!("{} ({reason})", objection.in_short),
            },
            None => StandaloneVerdict::SentBack {
                why: ReturnReason::new(objection.text, objection.in_short),
            },
        };
    }
    if run.task.approval == Approval::Auto
        && let Some(why) = weakened(evidence)
    {
        return StandaloneVerdict::SentBack { why };
    }
    if run.must_prove()
        && !documentation::is_documentation(&draft.file)
        && let Some(why) = shows_nothing(run, evidence.counting().0)
    {
        return StandaloneVerdict::SentBack {
            why: ReturnReason::for_both(format!(
                "Not applied: tests are required, and none proves this change: {why}"
            )),
        };
    }
    match helpless(run, draft, evidence) {
        Some(details) if excuse.is_none() && !in_company(run, agent) => {
            let next = match run.task.approval {
                Approval::Ask => {
                    "Mend the cause, or repeat it with `insist` when another change is to follow."
                }
                Approval::Proxy | Approval::Auto => {
                    "Mend the cause. What another owner must change as well, ask by `request_change` in the same turn as you propose: both are tested together."
                }
            };
            StandaloneVerdict::SentBack {
                why: ReturnReason::new(
                    format!(
                        "Not shown to the approver: none of the failing tests passes with this change.\n{details}\n{next}"
                    ),
                    "none of the failing tests passes with this change",
                ),
            }
        }
        Some(_) | None => StandaloneVerdict::Passes,
    }
}

/// Returns why a person is shown a proposal that failed its checks; `None` if it is not shown.
fn excuse(
    run: &RunContext,
    agent: &AgentState,
    change: &Propose,
    draft: &Draft,
) -> Option<&'static str> {
    if change.insist {
        Some("the agent insists")
    } else if outcome::are_kept(agent) {
        // The single agent's parts are kept and checked together, so no person is asked about one
        // of them.
        None
    } else if change.more {
        Some(MORE_COMES)
    } else if !draft.breaking.is_empty() {
        Some(CALLERS_FOLLOW)
    } else if in_company(run, agent) {
        Some(OTHERS_WORK)
    } else {
        None
    }
}

/// Returns whether other changes that belong to the same work are in progress. Parts of one change
/// that are checked individually may fail until the other parts exist.
fn in_company(run: &RunContext, agent: &AgentState) -> bool {
    let calling = run.services.models.agent.profile().tool_calling;
    agent.part_of_joint_change || run.at_work().len() > 1 && calling == ToolCalling::Native
}

/// A failed check of a proposal: a short text for the user, and the message for the agent.
struct Objection {
    in_short: String,
    /// Message for the agent.
    text: String,
}

/// Returns an objection if the change breaks tests or introduces problems; `None` otherwise.
fn worse(run: &RunContext, draft: &Draft, evidence: &Evidence) -> Option<Objection> {
    let together = match &evidence.together {
        Some(together) => format!("\n{together}"),
        None => String::new(),
    };
    if let Some(text) = diagnose::objection(&evidence.diagnostics, &evidence.imports) {
        return Some(Objection {
            in_short: in_company_of_others(evidence),
            text: format!("{text}{together}"),
        });
    }
    let TestEvidence::Known {
        broken, details, ..
    } = &evidence.tests
    else {
        return None;
    };
    if broken.is_empty() {
        return None;
    }
    let what = match (new_tests::are_all_added(draft, broken), broken.len()) {
        (true, 1) => "its new test fails",
        (true, _) => "its new tests fail",
        (false, _) => "tests that passed before fail",
    };
    let cut_short = evidence.tests.cut_short();
    let in_short = match in_company_mends_nothing(evidence) {
        true => MENDS_NOTHING.to_owned(),
        false => newly_failing(&evidence.tests, what, "it"),
    };
    let told = match &cut_short {
        Some(cut_short) => format!("{cut_short} with this change, and not without it"),
        None => format!("{what} with this change ({})", named(broken)),
    };
    let elsewhere = raised_elsewhere(run, draft, details);
    let unclear = evidence.imports.unclear.iter();
    let imports: String = unclear.map(|one| format!("\n{one}")).collect();
    Some(Objection {
        in_short,
        text: format!(
            "Not shown to the approver: {told}.\n{details}{elsewhere}{together}{imports}"
        ),
    })
}

/// Describes for the user which tests fail only with a change, or that the test run was stopped
/// only with it.
fn newly_failing(tests: &TestEvidence, what: &str, with: &str) -> String {
    let cut_short = tests.cut_short();
    let mut failing = tests.broken().to_vec();
    failing.retain(|id| cut_short.is_none() || id != WHOLE_RUN);
    let failing = (!failing.is_empty()).then(|| format!("{what} with {with}: {}", named(&failing)));
    let cut_short = cut_short.map(|cut_short| format!("{cut_short} with {with}"));
    let both: Vec<String> = failing.into_iter().chain(cut_short).collect();
    both.join("; ")
}

/// Returns whether a proposal that breaks tests alone breaks none together with the other waiting
/// proposals. Then it is refused only because they fix no test that the task is about.
fn in_company_mends_nothing(evidence: &Evidence) -> bool {
    let together = evidence.together.as_ref();
    together.is_some_and(|together| match &together.tests {
        TestEvidence::Known { broken, .. } => {
            broken.is_empty()
                && together.diagnostics.stopping().next().is_none()
                && together.tests.only_as_changed().is_none()
        }
        TestEvidence::Unknown { .. } => false,
    })
}

/// Describes for the user why a proposal with new problems was refused. Problems that disappear
/// together with the other waiting proposals are not described. The reason is the remaining
/// problems, or, if there are none, the tests that fail.
fn in_company_of_others(evidence: &Evidence) -> String {
    let Some(together) = &evidence.together else {
        return new_problems(&evidence.diagnostics);
    };
    if together.diagnostics.stopping().next().is_some() {
        return new_problems(&together.diagnostics);
    }
    match &together.tests {
        TestEvidence::Known { broken, .. } if !broken.is_empty() => {
            let what = "tests that passed before fail";
            newly_failing(&together.tests, what, "it and the other waiting proposals")
        }
        TestEvidence::Known { .. } if in_company_mends_nothing(evidence) => {
            MENDS_NOTHING.to_owned()
        }
        TestEvidence::Known { .. } | TestEvidence::Unknown { .. } => {
            new_problems(&evidence.diagnostics)
        }
    }
}

/// Describes new problems for the user, in the form ``it brings a new problem: a.py:3: nothing
/// defines `f` ``.
fn new_problems(diagnostics: &DiagnosticEvidence) -> String {
    let mut problems = diagnostics.stopping();
    let Some(first) = problems.next() else {
        return "it brings new problems".to_owned();
    };
    let first = format!("{}:{}: {}", first.file, first.line, first.message);
    let first = first.lines().next().unwrap_or_default().to_owned();
    match problems.count() {
        0 => format!("it brings a new problem: {first}"),
        more => format!("it brings {} new problems: {first}", more + 1),
    }
}

/// Returns the failed check of a version that the person edited. The version is shown nevertheless.
pub(crate) fn of_edited(run: &RunContext, draft: &Draft, evidence: &Evidence) -> Option<String> {
    let (tests, diagnostics) = evidence.counting();
    let counting = Evidence {
        tests: tests.clone(),
        diagnostics: diagnostics.clone(),
        ..evidence.clone()
    };
    let objection = worse(run, draft, &counting)?;
    Some(format!("{} (you edited it)", objection.in_short))
}

/// Returns the reason for refusal if tests pass only with the change's own modifications of the
/// tests; `None` otherwise.
fn weakened(evidence: &Evidence) -> Option<ReturnReason> {
    let found = evidence.counting().0.only_as_changed()?;
    let ids = named(&found.tests);
    let details = match found.details.is_empty() {
        true => String::new(),
        false => format!("\n{}", found.details),
    };
    let what = "tests pass only as this run changed the test files; with the original ones they do not pass";
    Some(ReturnReason::new(
        format!(
            "Not applied: {what} ({ids}).{details}\nExisting tests must pass as they were, and the task does not ask to change them. Put their original text back and change the code until they pass; add new tests beside them. If the task cannot be done without changing them, finish and say so."
        ),
        format!("{what} ({ids})"),
    ))
}

/// Returns why the test results give no information about a change; `None` if they do. Results
/// parsed from printed output count only if the command failed before the run, because the tested
/// code can print them too.
fn shows_nothing(run: &RunContext, tests: &TestEvidence) -> Option<String> {
    let (outcome, passed, source) = match tests {
        TestEvidence::Unknown { reason } => return Some(reason.clone()),
        TestEvidence::Known {
            outcome,
            passed,
            source,
            ..
        } => (*outcome, *passed, source),
    };
    let failed_before = {
        let state = run.tests();
        let before = state.before.as_ref().map(|report| report.outcome);
        before == Some(TestOutcome::Failed)
    };
    match outcome {
        TestOutcome::Passed if failed_before => None,
        TestOutcome::Passed if passed == 0 => {
            Some("the test command ran no test that Starling can see".to_owned())
        }
        TestOutcome::Passed | TestOutcome::Failed if passed > 0 && !source.is_reporter() => {
            Some("the results are only what the test command printed".to_owned())
        }
        TestOutcome::Passed => None,
        TestOutcome::Failed if passed > 0 => None,
        TestOutcome::Failed => Some("no test passes with it".to_owned()),
        TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch
        | TestOutcome::NotRun => Some(format!("the tests {}", outcome.word())),
    }
}

/// Returns the messages of the failing tests that a change was supposed to fix, if it fixes none of
/// them. New tests that the task asks for fix none.
fn helpless<'e>(run: &RunContext, draft: &Draft, evidence: &'e Evidence) -> Option<&'e str> {
    if new_tests::adds_tests(draft) && goal::asks_for_test(&run.task.text) {
        return None;
    }
    let TestEvidence::Known { details, .. } = &evidence.tests else {
        return None;
    };
    let mends_nothing = evidence.tests.fixes_none_of(&run.tests().required.ids);
    mends_nothing.then_some(details)
}

/// Names the owner of the symbol in which a traceback ends, if that is another symbol.
fn raised_elsewhere(run: &RunContext, draft: &Draft, details: &str) -> String {
    let own = |symbol: &SymbolPath| draft.symbols.iter().any(|own| own.encloses(symbol));
    let mut raised = scout_context::innermost(&run.lookup(), details).into_iter();
    let Some(symbol) = raised.find(|symbol| !own(symbol)) else {
        return String::new();
    };
    let then = match run.task.approval {
        Approval::Ask => "and repeat yours with `insist`",
        Approval::Proxy | Approval::Auto => {
            "and propose yours again in the same turn: both are tested together"
        }
    };
    format!(
        "\nIt is raised in {symbol}. When the cause is there, ask its owner by `request_change`, {then}."
    )
}
