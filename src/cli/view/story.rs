//! The scrolling log of a run: notable events, and proposals as coloured diffs.

use super::by_rule;
use super::state::{Proposal, Review, RunState, tests};
use super::text::{Line, Style};
use super::words;
use starling_core::{ModelNotice, TestOutcome, TestReport, TestStatus, Verdict};
use starling_swarm::{
    ActorId, AgentOutcome, AnswerSource, Cause, DiagnosticEvidence, Event, Evidence,
    ExampleEvidence, ProposalId, TestDelta, TestEvidence, TestPhase, failure_in_short, ids,
};
use starling_syntax::{FilePath, Language, SymbolPath};
use starling_workspace::PatchCommand;

/// Maximum number of lines of an agent's text.
const LINES: usize = 6;

/// Returns the lines of an event; empty if it is not notable. `state` already includes the event.
pub fn tell(event: &Event, state: &RunState) -> Vec<Line> {
    match event {
        Event::RunStarted { .. }
        | Event::TestsRun { .. }
        | Event::ScoutPicked { .. }
        | Event::FollowedUp { .. }
        | Event::FollowUpMissed { .. }
        | Event::NotWoken { .. }
        | Event::TakenBack { .. }
        | Event::LanguageServer { .. }
        | Event::Diagnosed { .. }
        | Event::Steered { .. } => of_run(event, state),
        Event::AgentWoken { .. }
        | Event::AgentFinished { .. }
        | Event::TurnFailed { .. }
        | Event::Notice { .. }
        | Event::CandidateChosen { .. }
        | Event::ProposalRefused { .. } => of_agent(event),
        Event::Asked { .. }
        | Event::Answered { .. }
        | Event::ChangeRequested { .. }
        | Event::ChangeDeclined { .. }
        | Event::IntentStated { .. } => of_talk(event),
        Event::ReviewAsked { .. }
        | Event::ProposalChecked { .. }
        | Event::ProposalEdited { .. }
        | Event::ProposalReviewed { .. }
        | Event::IntentReviewed { .. }
        | Event::ProposalApplied { .. }
        | Event::ProposalConflicted { .. }
        | Event::ProposalNotApplied { .. }
        | Event::ProposalUndone { .. } => of_proposal(event, state),
        Event::Located { .. }
        | Event::TurnStarted { .. }
        | Event::TurnFinished { .. }
        | Event::Malformed { .. }
        | Event::ToolUsed { .. }
        | Event::ProposalMade { .. }
        | Event::EditReceived { .. }
        | Event::ProposalApplying { .. }
        | Event::RunFinished { .. } => Vec::new(),
    }
}

fn of_run(event: &Event, state: &RunState) -> Vec<Line> {
    if let Event::RunStarted {
        task,
        models,
        replayed,
        ..
    } = event
    {
        let mut lines = Vec::new();
        if *replayed {
            let label = "REPLAY: the answers of the model come from a recording";
            lines.push(Line::of(Style::Warning, label));
        }
        lines.extend(capped(task).map(|line| Line::of(Style::Bold, line)));
        lines.push(match state.is_without_model() {
            true => Line::of(Style::Dim, "no model"),
            false => models_named(models),
        });
        lines
    } else if let Event::TestsRun { phase, report, .. } = event {
        let mut lines = tests_run(*phase, report);
        let notes = state.newly_withheld.iter();
        lines.extend(notes.map(|told| Line::of(Style::Warning, &format!("  note: {told}"))));
        lines
    } else if let Event::ScoutPicked { symbols } = event {
        picked(symbols)
    } else if let Event::FollowedUp {
        changed,
        changes,
        to,
    } = event
    {
        let to: Vec<String> = to.iter().map(ToString::to_string).collect();
        let told = match to.is_empty() {
            true => match state.callers_without_owner(changed) {
                Some(callers) => format!("no other owner is told, but {callers}"),
                None => "no other owner needs to follow up".to_owned(),
            },
            false => format!("tells {}", words::few(&to)),
        };
        let text = format!("{}; {told}", changes.join("; "));
        vec![said("→", Style::Accent, &changed.to_string(), &text)]
    } else if let Event::FollowUpMissed {
        changed,
        owners,
        why,
        told,
    } = event
    {
        let owners: Vec<String> = owners.iter().map(ToString::to_string).collect();
        let text = match told {
            true => format!("is not followed by {}: {why}", words::few(&owners)),
            false => format!("does not tell {}: {why}", words::few(&owners)),
        };
        vec![said("!", Style::Warning, &changed.to_string(), &text)]
    } else if let Event::TakenBack { patch, left, .. } = event {
        let kept = match patch {
            Some(patch) => {
                let command = PatchCommand::of(&state.root).make();
                format!("kept in {patch}; apply it yourself with `{command}`")
            }
            None => "they are stored in the log of the run".to_owned(),
        };
        let text = format!("taken back, because the run did not settle: {kept}");
        let mut lines = vec![said("↶", Style::Warning, "its changes", &text)];
        let stays = |(id, why): &(ProposalId, String)| {
            said("!", Style::Bad, &id.to_string(), &format!("stays: {why}"))
        };
        lines.extend(left.iter().map(stays));
        lines
    } else if let Event::NotWoken { symbol, from, why } = event {
        let text = format!("is not woken for {}: {why}", words::party(from));
        vec![said("!", Style::Warning, symbol, &text)]
    } else if let Event::LanguageServer { what } = event {
        vec![Line::of(Style::Dim, &format!("• {what}"))]
    } else if let Event::Diagnosed { found, .. } = event {
        diagnostics_evidence(found)
    } else if let Event::Steered { text, .. } = event {
        vec![said("→", Style::Accent, "you", text)]
    } else {
        Vec::new()
    }
}

fn of_agent(event: &Event) -> Vec<Line> {
    let line = |mark, style, agent, text: &str| vec![said(mark, style, &words::party(agent), text)];
    if let Event::AgentWoken { agent, cause } = event {
        woken(&words::party(agent), cause)
    } else if let Event::AgentFinished {
        agent,
        outcome: AgentOutcome::GaveUp { why },
        ..
    } = event
    {
        line("✗", Style::Bad, agent, &format!("gave up: {why}"))
    } else if let Event::TurnFailed { agent, error, .. } = event {
        line("!", Style::Bad, agent, error)
    } else if let Event::Notice { agent, notice } = event {
        line("!", Style::Warning, agent, &noticed(notice))
    } else if let Event::ProposalRefused { agent, why, shown } = event {
        line("↺", Style::Warning, agent, shown.as_ref().unwrap_or(why))
    } else if let Event::CandidateChosen {
        agent, model, why, ..
    } = event
    {
        let text = format!("takes the candidate of {model}: {why}");
        line("≻", Style::Accent, agent, &text)
    } else {
        Vec::new()
    }
}

fn of_talk(event: &Event) -> Vec<Line> {
    let between =
        |from, verb, to, text: &str| talk(&words::party(from), verb, &words::party(to), text);
    if let Event::Asked { from, to, text, .. } = event {
        between(from, "asks", to, text)
    } else if let Event::Answered {
        from,
        to,
        text,
        source,
        ..
    } = event
    {
        between(from, answers(*source), to, text)
    } else if let Event::ChangeRequested { from, to, reason } = event {
        between(from, "wants a change of", to, reason)
    } else if let Event::ChangeDeclined { by, to, reason } = event {
        between(by, "declines to", to, reason)
    } else if let Event::IntentStated {
        agent,
        intent,
        reason,
    } = event
    {
        talk(&words::party(agent), "means to", intent, reason)
    } else {
        Vec::new()
    }
}

fn of_proposal(event: &Event, state: &RunState) -> Vec<Line> {
    let line =
        |mark, style, id: &ProposalId, text: &str| vec![said(mark, style, &id.to_string(), text)];
    if let Event::ReviewAsked {
        proposal, symbol, ..
    } = event
    {
        line(
            "?",
            Style::Warning,
            proposal,
            &format!("of {symbol} waits for you"),
        )
    } else if let Event::ProposalChecked {
        proposal,
        evidence: found,
    } = event
    {
        // Only what the user is looking at is told again.
        match state.reviews.front() {
            Some(review) if review.is_of(*proposal) => checked_again(*proposal, found),
            Some(_) | None => Vec::new(),
        }
    } else if let Event::ProposalEdited { proposal, diff, .. } = event {
        match diff.is_empty() {
            true => Vec::new(),
            false => line("✎", Style::Plain, proposal, "your version is checked"),
        }
    } else if let Event::ProposalReviewed {
        proposal,
        by,
        verdict,
    } = event
    {
        if state.is_without_model() && *verdict == Verdict::Accept {
            return by_rule::accepted(*proposal, state);
        }
        // The user has seen the proposal in the review.
        let shown = state.proposal(*proposal).filter(|_| *by != ActorId::User);
        let mut lines = shown.map_or_else(Vec::new, |made| proposal_block(*proposal, made));
        lines.push(reviewed(&proposal.to_string(), by, verdict));
        lines
    } else if let Event::IntentReviewed { agent, by, verdict } = event {
        vec![reviewed(&words::party(agent), by, verdict)]
    } else if let Event::ProposalApplied {
        proposal,
        change: Some(change),
        ..
    } = event
        && change.is_empty()
    {
        let text = "nothing changed: its text was already there";
        line("✓", Style::Dim, proposal, text)
    } else if let Event::ProposalApplied { proposal, diff, .. } = event
        && state.is_without_model()
    {
        by_rule::applied(*proposal, diff, state)
    } else if let Event::ProposalApplied {
        proposal, symbols, ..
    } = event
    {
        let symbols: Vec<String> = symbols.iter().map(ToString::to_string).collect();
        line(
            "✓",
            Style::Good,
            proposal,
            &format!("changed {}", words::few(&symbols)),
        )
    } else if let Event::ProposalConflicted { proposal, why } = event {
        line("↺", Style::Warning, proposal, why)
    } else if let Event::ProposalNotApplied { proposal, why } = event {
        line("✗", Style::Bad, proposal, &format!("not applied: {why}"))
    } else if let Event::ProposalUndone { proposal, .. } = event {
        line("↶", Style::Warning, proposal, "taken back")
    } else {
        Vec::new()
    }
}

/// Lists the symbols that the scout picked; those with the same reason in one line.
fn picked(symbols: &[(SymbolPath, String)]) -> Vec<Line> {
    let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
    for (symbol, why) in symbols {
        match by_reason.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, names)) => names.push(symbol.to_string()),
            None => by_reason.push((why, vec![symbol.to_string()])),
        }
    }
    let line =
        |(why, names): &(&str, Vec<String>)| said("→", Style::Accent, &words::few(names), why);
    by_reason.iter().map(line).collect()
}

fn models_named(models: &[(starling_core::Role, String)]) -> Line {
    let named: Vec<String> = models
        .iter()
        .map(|(role, name)| format!("{} {name}", words::role(*role)))
        .collect();
    Line::of(Style::Dim, &format!("models: {}", named.join(", ")))
}

fn tests_run(phase: TestPhase, report: &TestReport) -> Vec<Line> {
    let when = match phase {
        TestPhase::Before => "tests before",
        // The proposal's evidence includes these tests.
        TestPhase::Proposal => return Vec::new(),
        TestPhase::Settling => "tests after",
    };
    let style = match report.outcome {
        TestOutcome::Passed => Style::Good,
        TestOutcome::Failed
        | TestOutcome::TimedOut
        | TestOutcome::OutOfMemory
        | TestOutcome::TooManyProcesses
        | TestOutcome::OutputTooLong
        | TestOutcome::WroteTooMuch => Style::Bad,
        TestOutcome::NotRun => Style::Warning,
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
        let message = failure_in_short(&case.message);
        lines.push(
            Line::of(Style::Bad, &format!("  ✗ {}", case.id))
                .with(Style::Dim, &format!("  {message}")),
        );
    }
    lines
}

fn woken(agent: &str, cause: &Cause) -> Vec<Line> {
    match cause {
        // Other events already report these causes.
        Cause::Picked { .. }
        | Cause::ChangeRequest { .. }
        | Cause::Steered { .. }
        | Cause::Declined { .. } => Vec::new(),
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
        Cause::Problems { message } => {
            let first = message.trim().lines().next().unwrap_or_default();
            let text = format!("looks at a problem: {first}");
            vec![said("→", Style::Warning, agent, &text)]
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
        } => format!("the request to {model} is retried (attempt {attempt}): {error}"),
        ModelNotice::FellBack { from, to, error } => {
            format!("{to} is used instead of {from}: {error}")
        }
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
        AnswerSource::Cycle => "answers (at once, to break a cycle)",
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

fn reviewed(what: &str, by: &ActorId, verdict: &Verdict) -> Line {
    let style = match verdict {
        Verdict::Accept => Style::Good,
        Verdict::Reject { .. } => Style::Bad,
        Verdict::Steer { .. } => Style::Warning,
    };
    said("•", style, what, &words::verdict(verdict, by))
}

/// Formats a review for the user in full.
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
            Some(made) if state.is_without_model() => by_rule::question(*id, made),
            Some(made) => proposal_block(*id, made),
            None => Vec::new(),
        },
    }
}

fn proposal_block(id: ProposalId, made: &Proposal) -> Vec<Line> {
    let symbols: Vec<String> = made.symbols.iter().map(ToString::to_string).collect();
    let title = format!("proposal {id} of {}", words::few(&symbols));
    proposal_with(&title, made, evidence)
}

/// Formats a proposal: its title, reason, diff and notes, and what is to be shown of its evidence.
pub(super) fn proposal_with(
    title: &str,
    made: &Proposal,
    evidence: fn(&Evidence) -> Vec<Line>,
) -> Vec<Line> {
    let mut lines = vec![Line::new(), Line::of(Style::Bold, title)];
    lines.extend(capped(&made.reason).map(|line| Line::plain(&format!("  {line}"))));
    lines.extend(diff(&made.diff));
    lines.extend(made.evidence.iter().flat_map(evidence));
    let notes = made.notes.iter();
    lines.extend(notes.map(|note| Line::of(Style::Warning, &format!("  {note}"))));
    lines
}

/// Formats the new evidence of the proposal in question.
fn checked_again(id: ProposalId, found: &Evidence) -> Vec<Line> {
    match &found.outdated {
        Some(outdated) => {
            let text = format!("its checks are out of date: {outdated}");
            vec![said("!", Style::Warning, &id.to_string(), &text)]
        }
        None => {
            let again = said("•", Style::Accent, &id.to_string(), "was checked again:");
            std::iter::once(again).chain(evidence(found)).collect()
        }
    }
}

/// Formats the evidence that a decision needs; the trajectory contains all of it.
fn evidence(found: &Evidence) -> Vec<Line> {
    let mut lines = standing(found);
    let together = found.together.as_ref();
    // With the proposals that it needs alone, the line above says it.
    let together = together.filter(|together| together.passes() && !together.with.is_empty());
    if let Some(together) = together {
        let with: Vec<String> = match together.proposals.is_empty() {
            true => together.with.iter().map(ToString::to_string).collect(),
            false => together.proposals.iter().map(ToString::to_string).collect(),
        };
        lines.push(fact(
            "checked together with",
            Style::Plain,
            &words::few(&with),
        ));
    }
    lines.extend(checks(found));
    let loss = |loss: &starling_syntax::Loss| fact("loses", Style::Warning, &loss.to_string());
    lines.extend(found.losses.iter().map(loss));
    lines.extend(overridden(found));
    if !found.contract.is_empty() {
        lines.push(fact("contract", Style::Warning, &found.contract.join("; ")));
        lines.push(fact("callers", Style::Plain, &found.callers_in_words()));
    }
    lines
}

/// Formats the evidence for a change by rule. Leaves out lost symbols and changed contracts, because the user
/// asked for these.
pub(super) fn evidence_by_rule(found: &Evidence) -> Vec<Line> {
    let lines = standing(found).into_iter().chain(checks(found));
    lines.chain(overridden(found)).collect()
}

/// Formats the facts that the user must know before the results of the checks.
fn standing(found: &Evidence) -> Vec<Line> {
    let needs_person = found.needs_person.iter().map(ToString::to_string);
    let mut lines: Vec<Line> = needs_person
        .map(|one| fact("needs your own yes", Style::Warning, &one))
        .collect();
    if let Some(outdated) = &found.outdated {
        lines.push(fact("out of date", Style::Bad, outdated));
    }
    if !found.needs().is_empty() {
        let needs = format!("{}: the tests pass only together", ids(found.needs()));
        lines.push(fact("needs", Style::Warning, &needs));
    }
    lines
}

/// Formats the results of tests and diagnostics, and the imports that were added or removed.
fn checks(found: &Evidence) -> Vec<Line> {
    let (tests, diagnostics) = found.counting();
    let mut lines = tests_evidence(tests);
    lines.extend(diagnostics_evidence(diagnostics));
    let example =
        |example: &ExampleEvidence| fact("example of the task", Style::Plain, &example.in_words());
    lines.extend(found.counting_examples().iter().map(example));
    for line in found.imports.to_string().lines() {
        lines.push(Line::of(Style::Dim, &format!("  {line}")));
    }
    lines
}

fn overridden(found: &Evidence) -> Option<Line> {
    let overridden = found.overridden.as_ref()?;
    Some(fact("shown although", Style::Bad, overridden))
}

/// Formats diagnostics. Returns nothing without a language server, which is reported once for the
/// run.
fn diagnostics_evidence(found: &DiagnosticEvidence) -> Vec<Line> {
    match found {
        DiagnosticEvidence::Absent => Vec::new(),
        DiagnosticEvidence::Unknown { reason } => {
            let text = format!("unknown: {reason}");
            vec![fact("diagnostics", Style::Dim, &text)]
        }
        DiagnosticEvidence::Known {
            tool, new, millis, ..
        } if new.is_empty() => {
            let text = format!("no new problem ({tool}, {millis} ms)");
            vec![fact("diagnostics", Style::Dim, &text)]
        }
        DiagnosticEvidence::Known { new, .. } => {
            let problem = |problem: &starling_core::Problem| {
                let text = format!("{}:{}: {}", problem.file, problem.line, problem.message);
                fact("new problem", Style::Bad, &text)
            };
            new.iter().take(LINES).map(problem).collect()
        }
    }
}

fn tests_evidence(found: &TestEvidence) -> Vec<Line> {
    match found {
        TestEvidence::Unknown { reason } => {
            vec![fact("tests", Style::Warning, &format!("unknown: {reason}"))]
        }
        TestEvidence::Known {
            passed,
            broken,
            details,
            millis,
            tried,
            ..
        } => {
            let seconds = *millis as f64 / 1000.0;
            let some = tried
                .count()
                .map_or(String::new(), |count| format!("{count}, "));
            let by = found.by_print();
            // Tests that failed before and are not near the change say nothing about it.
            let is_none_near = *passed == 0 && tried.has_none_near();
            let text = match is_none_near {
                true => "none is near the change".to_owned(),
                false => format!("{passed} pass ({some}{seconds:.1} s){by}"),
            };
            let mut lines = vec![fact("tests", Style::Plain, &text)];
            let is_told = |fate: &TestDelta| !(is_none_near && *fate == TestDelta::StillFailing);
            let fates = found.fates().filter(|(fate, _)| is_told(fate));
            lines.extend(fates.map(|(fate, ids)| {
                let style = match fate {
                    TestDelta::Fixed => Style::Good,
                    TestDelta::Broken => Style::Bad,
                    TestDelta::StillFailing => Style::Dim,
                    TestDelta::Unsteady | TestDelta::MendedElsewhere | TestDelta::GoneCase => {
                        Style::Warning
                    }
                };
                let name = format!("{} {}", ids.len(), fate.word());
                fact(&name, style, &words::few(&short(ids)))
            }));
            if let Some(changed) = found.only_as_changed() {
                let name = format!(
                    "{} pass only because the run changed the tests",
                    changed.tests.len()
                );
                lines.push(fact(&name, Style::Bad, &words::few(&short(&changed.tests))));
                lines.extend(
                    capped(&changed.details).map(|line| Line::plain(&format!("    {line}"))),
                );
            }
            let with_original = found.with_original();
            for (what, ids) in [
                (
                    "sometimes failing with the original tests",
                    short(&with_original.unsteady),
                ),
                (
                    "changed with tests that cannot be put back",
                    with_original.unheld,
                ),
            ] {
                if !ids.is_empty() {
                    let name = format!("{} {what}", ids.len());
                    lines.push(fact(&name, Style::Warning, &words::few(&ids)));
                }
            }
            if !broken.is_empty() {
                lines.extend(capped(details).map(|line| Line::plain(&format!("    {line}"))));
            }
            lines
        }
    }
}

fn fact(name: &str, style: Style, text: &str) -> Line {
    let first = text.trim().lines().next().unwrap_or_default();
    Line::of(Style::Dim, &format!("  {name}: ")).with(style, first)
}

/// Shortens test IDs to their last part. A file that failed as a whole keeps its path, and a test
/// keeps its parameters.
fn short(ids: &[String]) -> Vec<String> {
    let last = |id: &String| {
        let (name, parameters) = id.split_at(id.find('[').unwrap_or(id.len()));
        let is_file = Language::of(&FilePath::new(name)) != Language::Plain;
        if is_file || name.contains('/') && !name.contains("::") {
            return id.clone();
        }
        let last = name.rsplit(['.', ':', '/']).find(|part| !part.is_empty());
        format!("{}{parameters}", last.unwrap_or(name))
    };
    ids.iter().map(last).collect()
}

/// Formats a unified diff in colours.
pub fn diff(text: &str) -> impl Iterator<Item = Line> {
    text.lines().map(|line| {
        let style = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => Style::Bold,
            [b'+', ..] => Style::Good,
            [b'-', ..] => Style::Bad,
            [b'@', ..] => Style::Accent,
            _ => Style::Plain,
        };
        with_tabs(style, line)
    })
}

/// Formats a line of a diff so that tabs differ from spaces: an arrow, and spaces up to the next
/// tab stop.
fn with_tabs(style: Style, text: &str) -> Line {
    /// Number of columns between tab stops.
    const STOP: usize = 4;
    let mut parts = text.split('\t');
    let mut line = Line::of(style, parts.next().unwrap_or_default());
    for part in parts {
        // The first column is the sign of the diff.
        let column = line.width().saturating_sub(1);
        let tab = format!("→{}", " ".repeat(STOP - 1 - column % STOP));
        line = line.with(Style::Dim, &tab).with(style, part);
    }
    line
}

fn capped(text: &str) -> impl Iterator<Item = &str> {
    let text = text.trim();
    let over = text.lines().count() > LINES;
    text.lines().take(LINES).chain(over.then_some("…"))
}
