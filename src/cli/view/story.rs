//! What scrolls by: the events worth reading, and proposals as coloured diffs.

use super::state::{Proposal, Review, RunState, tests};
use super::text::{Line, Style};
use super::words;
use crate::ports::{ModelNotice, TestOutcome, TestReport, TestStatus, Verdict};
use crate::swarm::{
    AgentOutcome, AnswerSource, Cause, DiagnosticEvidence, Event, Evidence, Party, ProposalId,
    TestEvidence, TestPhase,
};

/// A long text of an agent is cut to this many lines.
const LINES: usize = 6;

/// The lines of an event; none when it is not worth reading. `state` has taken it in.
pub fn tell(event: &Event, state: &RunState) -> Vec<Line> {
    match event {
        Event::RunStarted {
            task,
            models,
            replayed,
            ..
        } => started(task, models, *replayed),
        Event::TestsRun {
            phase: phase @ (TestPhase::Before | TestPhase::Settling),
            report,
            ..
        } => tests_run(*phase, report),
        Event::ScoutPicked { symbols } => symbols
            .iter()
            .map(|(symbol, why)| said("→", Style::Accent, &symbol.to_string(), why))
            .collect(),
        Event::AgentWoken { agent, cause } => woken(&words::party(agent), cause),
        Event::AgentFinished {
            agent,
            outcome: AgentOutcome::GaveUp { why },
            ..
        } => vec![said(
            "✗",
            Style::Bad,
            &words::party(agent),
            &format!("gave up: {why}"),
        )],
        Event::TurnFailed { agent, error, .. } => {
            vec![said("!", Style::Bad, &words::party(agent), error)]
        }
        Event::Notice { agent, notice } => {
            vec![said(
                "!",
                Style::Warning,
                &words::party(agent),
                &noticed(notice),
            )]
        }
        Event::Asked { from, to, text, .. } => {
            talk(&words::party(from), "asks", &words::party(to), text)
        }
        Event::Answered {
            from,
            to,
            text,
            source,
            ..
        } => talk(
            &words::party(from),
            answers(*source),
            &words::party(to),
            text,
        ),
        Event::ChangeRequested { from, to, reason } => talk(
            &words::party(from),
            "wants a change of",
            &words::party(to),
            reason,
        ),
        Event::ChangeDeclined { by, to, reason } => {
            talk(&words::party(by), "declines to", &words::party(to), reason)
        }
        Event::IntentStated {
            agent,
            intent,
            reason,
        } => talk(&words::party(agent), "means to", intent, reason),
        Event::ProposalRefused { agent, why } => {
            vec![said("↺", Style::Warning, &words::party(agent), why)]
        }
        Event::CandidateChosen {
            agent, model, why, ..
        } => vec![said(
            "≻",
            Style::Accent,
            &words::party(agent),
            &format!("takes the candidate of {model}: {why}"),
        )],
        Event::ReviewAsked {
            proposal, symbol, ..
        } => {
            let what = format!("proposal {proposal}");
            vec![said(
                "?",
                Style::Warning,
                &what,
                &format!("of {symbol} waits for you"),
            )]
        }
        Event::ProposalReviewed {
            proposal,
            by,
            verdict,
        } => {
            let mut lines = match (by, state.proposal(*proposal)) {
                // The user has seen it already.
                (Party::User, _) | (_, None) => Vec::new(),
                (_, Some(made)) => proposal_block(*proposal, made),
            };
            lines.push(reviewed(&format!("{proposal}"), by, verdict));
            lines
        }
        Event::IntentReviewed { agent, by, verdict } => {
            vec![reviewed(&words::party(agent), by, verdict)]
        }
        Event::ProposalApplied {
            proposal, symbols, ..
        } => {
            let symbols: Vec<String> = symbols.iter().map(ToString::to_string).collect();
            let text = format!("changed {}", words::few(&symbols));
            vec![said("✓", Style::Good, &format!("{proposal}"), &text)]
        }
        Event::ProposalConflicted { proposal, why } => {
            vec![said("↺", Style::Warning, &format!("{proposal}"), why)]
        }
        Event::ProposalUndone { proposal } => {
            vec![said(
                "↶",
                Style::Warning,
                &format!("{proposal}"),
                "taken back",
            )]
        }
        Event::FollowedUp {
            changed,
            changes,
            to,
        } => {
            let to: Vec<String> = to.iter().map(ToString::to_string).collect();
            let text = format!("{}; tells {}", changes.join("; "), words::few(&to));
            vec![said("→", Style::Accent, &changed.to_string(), &text)]
        }
        Event::Steered { text, .. } => vec![said("→", Style::Accent, "you", text)],
        Event::TestsRun {
            phase: TestPhase::Proposal,
            ..
        }
        | Event::AgentFinished {
            outcome: AgentOutcome::Changed | AgentOutcome::NothingToChange,
            ..
        }
        | Event::Located { .. }
        | Event::TurnStarted { .. }
        | Event::TurnFinished { .. }
        | Event::Malformed { .. }
        | Event::ToolUsed { .. }
        | Event::ProposalMade { .. }
        | Event::ProposalChecked { .. }
        | Event::RunFinished { .. } => Vec::new(),
    }
}

fn started(task: &str, models: &[(crate::ports::Role, String)], replayed: bool) -> Vec<Line> {
    let mut lines = Vec::new();
    if replayed {
        let label = "REPLAY: the answers of the model come from a recording";
        lines.push(Line::of(Style::Warning, label));
    }
    lines.extend(capped(task).map(|line| Line::of(Style::Bold, line)));
    let named: Vec<String> = models
        .iter()
        .map(|(role, name)| format!("{} {name}", words::role(*role)))
        .collect();
    lines.push(Line::of(
        Style::Dim,
        &format!("models: {}", named.join(", ")),
    ));
    lines
}

fn tests_run(phase: TestPhase, report: &TestReport) -> Vec<Line> {
    let style = match report.outcome {
        TestOutcome::Passed => Style::Good,
        TestOutcome::Failed | TestOutcome::TimedOut => Style::Bad,
        TestOutcome::NotRun => Style::Warning,
    };
    let when = match phase {
        TestPhase::Before => "tests before",
        TestPhase::Proposal => "tests of the proposal",
        TestPhase::Settling => "tests after",
    };
    let mut lines = vec![
        Line::of(Style::Bold, when)
            .and(": ")
            .with(style, &tests(report))
            .with(Style::Dim, &format!("  {}", report.command)),
    ];
    let failing = report
        .cases
        .iter()
        .filter(|case| matches!(case.status, TestStatus::Failed | TestStatus::Error));
    for case in failing.take(LINES) {
        let message = case.message.trim().lines().last().unwrap_or_default();
        lines.push(
            Line::of(Style::Bad, &format!("  ✗ {}", case.id))
                .with(Style::Dim, &format!("  {message}")),
        );
    }
    lines
}

fn woken(agent: &str, cause: &Cause) -> Vec<Line> {
    match cause {
        // Told already, by the scout or by the one who asks.
        Cause::Picked { .. } | Cause::ChangeRequest { .. } | Cause::Steered { .. } => Vec::new(),
        Cause::FollowUp { changed, .. } => {
            vec![said(
                "→",
                Style::Accent,
                agent,
                &format!("looks at what {changed} changed"),
            )]
        }
        Cause::FailedTests { message } => {
            let first = message.trim().lines().next().unwrap_or_default();
            vec![said(
                "→",
                Style::Warning,
                agent,
                &format!("looks at failing tests: {first}"),
            )]
        }
    }
}

fn noticed(notice: &ModelNotice) -> String {
    match notice {
        ModelNotice::Retrying {
            model,
            attempt,
            error,
            ..
        } => format!("{model} is asked again (attempt {attempt}): {error}"),
        ModelNotice::FellBack { from, to, error } => format!("{to} in place of {from}: {error}"),
        ModelNotice::Continued { model, joined } => {
            format!("the answer of {model} was cut and is continued ({joined} characters so far)")
        }
        ModelNotice::Preparing { model, message } => format!("{model}: {message}"),
    }
}

fn answers(source: AnswerSource) -> &'static str {
    match source {
        AnswerSource::Model => "answers",
        AnswerSource::Memory => "answers (from memory)",
        AnswerSource::Cycle => "answers (at once, to break a circle)",
        AnswerSource::Refused => "cannot answer",
    }
}

fn said(mark: &str, style: Style, who: &str, text: &str) -> Line {
    let first = text.trim().lines().next().unwrap_or_default();
    Line::of(style, mark)
        .and(" ")
        .with(Style::Bold, who)
        .and(" ")
        .and(first)
}

fn talk(from: &str, verb: &str, to: &str, text: &str) -> Vec<Line> {
    let head = Line::of(Style::Accent, "» ")
        .with(Style::Bold, from)
        .and(&format!(" {verb} "))
        .with(Style::Bold, to);
    let said = capped(text).map(|line| Line::of(Style::Dim, &format!("    {line}")));
    std::iter::once(head).chain(said).collect()
}

fn reviewed(what: &str, by: &Party, verdict: &Verdict) -> Line {
    let style = match verdict {
        Verdict::Accept => Style::Good,
        Verdict::Reject { .. } => Style::Bad,
        Verdict::Steer { .. } => Style::Warning,
    };
    said("•", style, what, &words::verdict(verdict, by))
}

/// What the user is asked, whole.
pub fn question(review: &Review, state: &RunState) -> Vec<Line> {
    match review {
        Review::Intent(view) => {
            let mut lines = talk(
                &view.symbol.to_string(),
                "asks to",
                &view.intent,
                &view.reason,
            );
            lines.insert(0, Line::new());
            lines
        }
        Review::Proposal { id, .. } => match state.proposal(*id) {
            Some(made) => proposal_block(*id, made),
            None => Vec::new(),
        },
    }
}

fn proposal_block(id: ProposalId, made: &Proposal) -> Vec<Line> {
    let symbols: Vec<String> = made.symbols.iter().map(ToString::to_string).collect();
    let title = format!("proposal {id} of {}", words::few(&symbols));
    let mut lines = vec![Line::new(), Line::of(Style::Bold, &title)];
    lines.extend(capped(&made.reason).map(|line| Line::plain(&format!("  {line}"))));
    lines.extend(diff(&made.diff));
    lines.extend(made.evidence.iter().flat_map(evidence));
    lines
}

/// Evidence as far as a person needs it to decide; the trajectory holds all of it.
fn evidence(found: &Evidence) -> Vec<Line> {
    let mut lines = match &found.tests {
        TestEvidence::Unknown { reason } => {
            vec![fact("tests", Style::Warning, &format!("unknown: {reason}"))]
        }
        TestEvidence::Known {
            passed,
            fixed,
            broken,
            still_failing,
            details,
            millis,
            ..
        } => {
            let seconds = *millis as f64 / 1000.0;
            let text = format!("{passed} pass ({seconds:.1} s)");
            let mut lines = vec![fact("tests", Style::Plain, &text)];
            let of = |name: &str, style, ids: &Vec<String>| {
                let name = format!("{} {name}", ids.len());
                (!ids.is_empty()).then(|| fact(&name, style, &words::few(&short(ids))))
            };
            lines.extend(of("fixed", Style::Good, fixed));
            lines.extend(of("still failing", Style::Dim, still_failing));
            lines.extend(of("BROKEN", Style::Bad, broken));
            if !broken.is_empty() {
                lines.extend(capped(details).map(|line| Line::plain(&format!("    {line}"))));
            }
            lines
        }
    };
    match &found.diagnostics {
        DiagnosticEvidence::Unknown { reason } => {
            lines.push(fact(
                "diagnostics",
                Style::Dim,
                &format!("unknown: {reason}"),
            ));
        }
        DiagnosticEvidence::Known { new, .. } => {
            let problem = |problem: &crate::ports::Problem| {
                let text = format!("{}:{}: {}", problem.file, problem.line, problem.message);
                fact("new problem", Style::Bad, &text)
            };
            lines.extend(new.iter().take(LINES).map(problem));
        }
    }
    let loss = |loss: &crate::syntax::Loss| fact("loses", Style::Warning, &loss.to_string());
    lines.extend(found.losses.iter().map(loss));
    if !found.contract.is_empty() {
        lines.push(fact("contract", Style::Warning, &found.contract.join("; ")));
        let callers: Vec<String> = found.callers.iter().map(ToString::to_string).collect();
        lines.push(fact("callers", Style::Plain, &words::few(&callers)));
    }
    lines
}

fn fact(name: &str, style: Style, text: &str) -> Line {
    let first = text.trim().lines().next().unwrap_or_default();
    Line::of(Style::Dim, &format!("  {name}: ")).with(style, first)
}

/// Names of tests without what they all begin with.
fn short(ids: &[String]) -> Vec<String> {
    let last = |id: &String| {
        let parts: Vec<&str> = id
            .rsplit(['.', ':', '/'])
            .filter(|part| !part.is_empty())
            .collect();
        (*parts.first().unwrap_or(&id.as_str())).to_owned()
    };
    ids.iter().map(last).collect()
}

/// A unified diff in colours.
pub fn diff(text: &str) -> impl Iterator<Item = Line> {
    text.lines().map(|line| {
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Style::Bold,
            [b'+', ..] => Style::Good,
            [b'-', ..] => Style::Bad,
            [b'@', ..] => Style::Accent,
            _ => Style::Plain,
        };
        Line::of(style, line)
    })
}

fn capped(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim();
    let over = text.lines().count() > LINES;
    text.lines().take(LINES).chain(over.then_some("…"))
}
