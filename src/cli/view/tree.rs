//! The live view: the agents at work, and the question to the user.

use super::super::status;
use super::prompt::Prompt;
use super::state::{Agent, Doing, Review, RunState};
use super::text::{Line, Style};
use super::words;
use starling_swarm::{ActorId, AgentOutcome};

/// Maximum number of agents to show. Further agents are only counted.
const ROWS: usize = 14;
/// Seconds after which the duration of an agent's activity is shown.
const PATIENCE_S: u64 = 2;
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠹"];
const SPINNER_MS: u64 = 120;

/// Formats the live view.
pub fn view(state: &RunState, prompt: &Prompt, width: usize) -> Vec<Line> {
    let mut lines = vec![header(state)];
    let mut shown = Vec::new();
    branch(state, None, 0, &mut shown);
    let hidden = shown.len().saturating_sub(ROWS);
    // Agents at work are more important than those that are done.
    let mut budget = hidden;
    shown.retain(|(agent, _)| {
        let drop = budget > 0 && matches!(agent.doing, Doing::Answered | Doing::Done(_));
        budget -= usize::from(drop);
        !drop
    });
    shown.truncate(ROWS);
    lines.extend(shown.iter().map(|(agent, depth)| row(state, agent, *depth)));
    if hidden > 0 {
        let more = format!("  … {} more", words::count(hidden as u64, "agent"));
        lines.push(Line::of(Style::Dim, &more));
    }
    lines.extend(question(state, prompt, width));
    lines.into_iter().map(|line| line.fit(width)).collect()
}

fn header(state: &RunState) -> Line {
    let mut line = Line::new();
    if state.replayed {
        line = line.with(Style::Warning, "REPLAY ");
    }
    let mut spent = format!(
        " {} · {} tokens",
        words::count(u64::from(state.calls), "call"),
        state.tokens,
    );
    // A cost of zero may be unknown, and a recording was paid for earlier.
    if state.dollars.0 > 0.0 && !state.replayed {
        spent.push_str(&format!(" · {}", words::dollars(state.dollars)));
    }
    spent.push_str(&format!(" · {} s", state.at_ms / 1000));
    line = line.with(Style::Bold, "starling").with(Style::Dim, &spent);
    if let Some(reading) = state.reading {
        line = line.with(
            Style::Dim,
            &format!(" · {}", status::reading(Some(reading))),
        );
    }
    match &state.tests {
        Some(tests) => line.with(Style::Dim, &format!(" · tests: {tests}")),
        None => line,
    }
}

/// Collects the agents in depth-first order. The parent of an agent is the one that woke (started) it.
fn branch<'a>(
    state: &'a RunState,
    parent: Option<&ActorId>,
    depth: usize,
    shown: &mut Vec<(&'a Agent, usize)>,
) {
    let below = |agent: &&Agent| agent.parent.as_ref() == parent;
    for agent in state.agents.iter().filter(below) {
        shown.push((agent, depth));
        branch(state, Some(&agent.party), depth + 1, shown);
    }
}

fn row(state: &RunState, agent: &Agent, depth: usize) -> Line {
    let frame = (state.at_ms / SPINNER_MS) as usize % SPINNER.len();
    let (mark, style) = match &agent.doing {
        Doing::Woken | Doing::Thinking | Doing::Reading | Doing::Asking(_) | Doing::Checking => {
            (SPINNER[frame], Style::Accent)
        }
        Doing::InReview => ("?", Style::Warning),
        Doing::Answered => ("·", Style::Dim),
        Doing::Done(AgentOutcome::Changed) => ("✓", Style::Good),
        Doing::Done(AgentOutcome::NothingToChange) => ("·", Style::Dim),
        Doing::Done(AgentOutcome::GaveUp { .. }) => ("✗", Style::Bad),
    };
    let indent = match depth {
        0 => "  ".to_owned(),
        depth => format!("  {}└ ", "  ".repeat(depth.min(6) - 1)),
    };
    let mut line = Line::of(Style::Dim, &indent)
        .with(style, mark)
        .and(" ")
        .with(Style::Bold, &words::party(&agent.party))
        .with(style, &format!(" {}", doing(&agent.doing)));
    if let Some(seconds) = waited(state, agent) {
        line = line.with(style, &format!(" {seconds} s"));
    }
    if agent.tokens.0 > 0 {
        line = line.with(Style::Dim, &format!(" · {}", agent.tokens));
    }
    match agent.last.as_str() {
        "" => line,
        last => line.with(Style::Dim, &format!(" · {last}")),
    }
}

/// Returns the seconds since the agent's activity started, if they are worth showing.
fn waited(state: &RunState, agent: &Agent) -> Option<u64> {
    let is_at_work = match agent.doing {
        Doing::Thinking | Doing::Reading | Doing::Asking(_) | Doing::Checking => true,
        Doing::Woken | Doing::InReview | Doing::Answered | Doing::Done(_) => false,
    };
    let seconds = state.at_ms.saturating_sub(agent.since_ms) / 1000;
    (is_at_work && seconds >= PATIENCE_S).then_some(seconds)
}

/// Formats one line for each agent that has been at work for a while.
pub fn waiting_for(state: &RunState) -> Vec<Line> {
    let told = |agent: &Agent| {
        let seconds = waited(state, agent)?;
        let (who, doing) = (words::party(&agent.party), doing(&agent.doing));
        let text = format!("… {who} {doing} ({seconds} s)");
        Some(Line::of(Style::Dim, &text))
    };
    state.agents.iter().filter_map(told).collect()
}

fn doing(doing: &Doing) -> String {
    match doing {
        Doing::Woken => "wakes".to_owned(),
        Doing::Thinking => "thinks".to_owned(),
        Doing::Reading => "reads".to_owned(),
        Doing::Asking(other) => format!("asks {}", words::party(other)),
        Doing::Checking => "is checked".to_owned(),
        Doing::InReview => "waits for you".to_owned(),
        Doing::Answered | Doing::Done(AgentOutcome::Changed) => "done".to_owned(),
        Doing::Done(AgentOutcome::NothingToChange) => "done, nothing to change".to_owned(),
        Doing::Done(AgentOutcome::GaveUp { why }) => format!("gave up: {why}"),
    }
}

/// Formats the question that waits for the user, and the choices.
fn question(state: &RunState, prompt: &Prompt, width: usize) -> Vec<Line> {
    let Some(review) = state.reviews.front() else {
        return prompt.lines_ahead(width);
    };
    let what = match review {
        Review::Proposal { id, symbol } => format!("proposal {id} of {symbol}"),
        Review::Intent(view) => format!("the intent of {}", view.symbol),
    };
    let more = match state.reviews.len() - 1 {
        0 => String::new(),
        waiting => format!(" ({waiting} more waiting)"),
    };
    let asked = Line::of(Style::Warning, "? ")
        .with(Style::Bold, &what)
        .and(&more);
    let mut lines = asked.wrap(width);
    lines.extend(prompt.lines(width, state.choices_by_key()));
    lines
}
