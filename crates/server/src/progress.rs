//! The progress bar of a run (`$/progress`).

use std::time::Duration;

use tower_lsp::Client;
use tower_lsp::lsp_types::notification::Progress;
use tower_lsp::lsp_types::request::WorkDoneProgressCreate;
use tower_lsp::lsp_types::{
    NumberOrString, ProgressParams, ProgressParamsValue, ProgressToken, WorkDoneProgress,
    WorkDoneProgressBegin, WorkDoneProgressCreateParams, WorkDoneProgressEnd,
    WorkDoneProgressReport,
};

use super::outgoing::send_request;
use super::session::actor_name;
use super::window::seen;
use starling_swarm::{Cursor, Event, Record, RunId};
use starling_text::harmless;

/// How long the client may take to create a progress bar.
const CREATE_DEADLINE: Duration = Duration::from_secs(10);
const TOKEN_PREFIX: &str = "starling/";

/// Returns the run to which a progress token belongs.
pub fn run_of_token(token: &ProgressToken) -> Option<RunId> {
    match token {
        NumberOrString::Number(_) => None,
        NumberOrString::String(token) => {
            let id = token.strip_prefix(TOKEN_PREFIX)?;
            Some(RunId(id.to_owned()))
        }
    }
}

/// Shows a run as a progress bar with a cancel button.
pub async fn show_progress(mut cursor: Cursor, run: &RunId, title: String, client: &Client) {
    let token = NumberOrString::String(format!("{TOKEN_PREFIX}{}", run.0));
    let create = WorkDoneProgressCreateParams {
        token: token.clone(),
    };
    let created = send_request::<WorkDoneProgressCreate>(client, create, CREATE_DEADLINE);
    if let Err(error) = created.await {
        tracing::info!(%error, "the client shows no progress");
        return;
    }
    let send = async |value| {
        let params = ProgressParams {
            token: token.clone(),
            value: ProgressParamsValue::WorkDone(value),
        };
        client.send_notification::<Progress>(params).await;
    };
    send(WorkDoneProgress::Begin(WorkDoneProgressBegin {
        title: harmless(&format!("Starling: {title}")),
        cancellable: Some(true),
        message: None,
        percentage: None,
    }))
    .await;
    let mut last = None;
    while let Some(record) = cursor.next().await {
        let Record::Event(event) = &record.record else {
            continue;
        };
        if let Event::RunFinished {
            summary, ending, ..
        } = event
        {
            let headline = ending.as_ref().map(|ending| ending.headline.clone());
            last = Some(seen(&headline.unwrap_or_else(|| summary.clone())));
        } else if let Some(message) = progress_message(event) {
            let message = Some(harmless(&message));
            send(WorkDoneProgress::Report(WorkDoneProgressReport {
                cancellable: Some(true),
                message,
                percentage: None,
            }))
            .await;
        }
    }
    send(WorkDoneProgress::End(WorkDoneProgressEnd { message: last })).await;
}

/// Returns the text that a progress bar shows for an event; `None` for most events.
fn progress_message(event: &Event) -> Option<String> {
    match event {
        Event::TestsRun { .. } => Some("tests ran".to_owned()),
        Event::ScoutPicked { symbols } => Some(match symbols.len() {
            1 => "begins at 1 symbol".to_owned(),
            many => format!("begins at {many} symbols"),
        }),
        Event::AgentWoken { agent, .. } => Some(format!("{} woke", actor_name(agent))),
        Event::Asked { from, to, .. } => {
            Some(format!("{} asks {}", actor_name(from), actor_name(to)))
        }
        Event::ProposalMade { agent, .. } => Some(format!("{} proposes", actor_name(agent))),
        Event::ReviewAsked { symbol, .. } => Some(format!("{symbol} waits for your review")),
        Event::ProposalApplied {
            change: Some(change),
            ..
        } if change.is_empty() => Some("the proposed text was already there".to_owned()),
        Event::ProposalApplied { symbols, .. } => {
            let symbols: Vec<String> = symbols.iter().map(ToString::to_string).collect();
            Some(format!("changed {}", symbols.join(", ")))
        }
        Event::FollowUpMissed { owners, told, .. } => Some(match (owners.len(), told) {
            (1, false) => "1 caller was not notified of a change".to_owned(),
            (many, false) => format!("{many} callers were not notified of a change"),
            (1, true) => "1 caller was not adapted to a change".to_owned(),
            (many, true) => format!("{many} callers were not adapted to a change"),
        }),
        Event::TakenBack { .. } => Some("its changes were taken back".to_owned()),
        Event::NotWoken { symbol, .. } => Some(format!("the owner of {symbol} was not woken")),
        Event::RunStarted { .. }
        | Event::Located { .. }
        | Event::AgentFinished { .. }
        | Event::TurnStarted { .. }
        | Event::TurnFinished { .. }
        | Event::TurnFailed { .. }
        | Event::Notice { .. }
        | Event::LanguageServer { .. }
        | Event::Diagnosed { .. }
        | Event::Malformed { .. }
        | Event::ToolUsed { .. }
        | Event::Answered { .. }
        | Event::ChangeRequested { .. }
        | Event::ChangeDeclined { .. }
        | Event::IntentStated { .. }
        | Event::IntentReviewed { .. }
        | Event::ProposalRefused { .. }
        | Event::ProposalChecked { .. }
        | Event::CandidateChosen { .. }
        | Event::EditReceived { .. }
        | Event::ProposalEdited { .. }
        | Event::ProposalReviewed { .. }
        | Event::ProposalApplying { .. }
        | Event::ProposalConflicted { .. }
        | Event::ProposalNotApplied { .. }
        | Event::ProposalUndone { .. }
        | Event::FollowedUp { .. }
        | Event::Steered { .. }
        | Event::RunFinished { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_swarm::ActorId;

    #[test]
    fn progress_token_contains_the_id_of_its_run() {
        let token = |text: &str| NumberOrString::String(text.to_owned());
        assert_eq!(
            run_of_token(&token("starling/1-2-003")),
            Some(RunId("1-2-003".to_owned()))
        );
        assert_eq!(run_of_token(&token("1-2-003")), None);
        assert_eq!(run_of_token(&token("other/starling/1")), None);
        assert_eq!(run_of_token(&NumberOrString::Number(1)), None);
    }

    #[test]
    fn progress_messages_describe_events() {
        let symbol = |path: &str| path.parse().unwrap();
        let picked = |count: usize| Event::ScoutPicked {
            symbols: vec![(symbol("a.py::f"), "why".to_owned()); count],
        };
        assert_eq!(progress_message(&picked(1)).unwrap(), "begins at 1 symbol");
        assert_eq!(progress_message(&picked(2)).unwrap(), "begins at 2 symbols");
        let asked = Event::Asked {
            question: 1,
            from: ActorId::Agent(symbol("a.py::f")),
            to: ActorId::Solo,
            text: "why?".to_owned(),
        };
        assert_eq!(progress_message(&asked).unwrap(), "a.py::f asks the agent");
        let applied = Event::ProposalApplied {
            proposal: starling_swarm::ProposalId(1),
            symbols: vec![symbol("a.py::f"), symbol("a.py::")],
            diff: String::new(),
            change: None,
        };
        assert_eq!(
            progress_message(&applied).unwrap(),
            "changed a.py::f, a.py::"
        );
        let missed = |count: usize| Event::FollowUpMissed {
            changed: symbol("a.py::f"),
            owners: vec![symbol("b.py::g"); count],
            why: "the budget is used up".to_owned(),
            told: count == 2,
        };
        let said = progress_message(&missed(2)).unwrap();
        assert_eq!(said, "2 callers were not adapted to a change");
        let said = progress_message(&missed(1)).unwrap();
        assert_eq!(said, "1 caller was not notified of a change");
        let said = progress_message(&missed(3)).unwrap();
        assert_eq!(said, "3 callers were not notified of a change");
        let woken = |agent| Event::AgentWoken {
            agent,
            cause: starling_swarm::Cause::Steered {
                text: "x".to_owned(),
            },
        };
        for (party, said) in [
            (ActorId::Agent(symbol("a.py::C.m")), "a.py::C.m woke"),
            (ActorId::Solo, "the agent woke"),
            (ActorId::Scout, "scout woke"),
        ] {
            assert_eq!(progress_message(&woken(party)).unwrap(), said);
        }
        let steered = Event::Steered {
            to: None,
            text: "x".to_owned(),
        };
        assert_eq!(progress_message(&steered), None);
    }
}
