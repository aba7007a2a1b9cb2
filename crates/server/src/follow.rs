//! Readers of a run's log: the trajectory on disk, the client's events, the progress bar. Each has a
//! cursor of its own, so that a slow one holds up nobody.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tower_lsp::Client;
use tower_lsp::lsp_types::notification::Progress;
use tower_lsp::lsp_types::request::WorkDoneProgressCreate;
use tower_lsp::lsp_types::{
    NumberOrString, ProgressParams, ProgressParamsValue, ProgressToken, WorkDoneProgress,
    WorkDoneProgressBegin, WorkDoneProgressCreateParams, WorkDoneProgressEnd,
    WorkDoneProgressReport,
};

use super::outgoing::{Plugin, send_request};
use super::protocol::{EventNotification, EventParams};
use super::run_view::name;
use super::window::seen;
use starling_swarm::{Cursor, Event, Record, RunId, Stamped, Writing};
use starling_text::harmless;
use starling_workspace::{private_directory, private_file};

/// How long the client has to make a progress bar.
const CREATE_DEADLINE: Duration = Duration::from_secs(10);
const TOKEN_PREFIX: &str = "starling/";

/// Makes the file of a trajectory. It is locked for as long as it is written: what another server
/// finds unlocked and without an end is of one that died.
///
/// # Errors
/// The disk refuses.
pub fn begin(path: &Path) -> std::io::Result<File> {
    if let Some(directory) = path.parent() {
        private_directory(directory)?;
    }
    let file = private_file(path)?;
    if let Err(TryLockError::Error(error)) = file.try_lock() {
        tracing::info!(%error, "trajectories cannot be locked here");
    }
    Ok(file)
}

/// Writes all records as JSON lines.
pub async fn write(records: Writing, file: File, path: &Path) {
    if let Err(error) = try_write(records, file).await {
        not_written(path, &error);
    }
}

pub fn not_written(path: &Path, error: &std::io::Error) {
    tracing::error!(path = %path.display(), %error, "the trajectory is not written");
}

async fn try_write(mut records: Writing, file: File) -> std::io::Result<()> {
    let mut file = tokio::fs::File::from_std(file);
    while let Some(record) = records.next().await {
        let mut line = serde_json::to_vec(&*record)?;
        line.push(b'\n');
        file.write_all(&line).await?;
        // At once: a question must outlive the server, and an edit is sent only after its record.
        file.flush().await?;
    }
    Ok(())
}

/// Sends all events to the client's plugin, in order; `note` gets each before the client does. The first
/// `earlier` records are of a server that ended: an end among them is none any more.
pub async fn notify(
    mut cursor: Cursor,
    run: &RunId,
    plugin: &Plugin,
    earlier: usize,
    note: impl Fn(u64, &Event) + Send + Sync,
) {
    while let Some(record) = cursor.next().await {
        let Some(params) = told(run, &record) else {
            continue;
        };
        let is_end = matches!(params.event, Event::RunFinished { .. });
        if is_end && record.seq < earlier as u64 {
            continue;
        }
        if let Event::ReviewAsked { .. } = &params.event {
            // A question that the user has seen must outlive the server.
            cursor.written().await;
        }
        if let Record::Event(event) = &record.record {
            note(record.seq, event);
        }
        plugin.notify::<EventNotification>(params).await;
    }
}

/// A record as the client hears of it: events alone, without the texts that they hold for the
/// trajectory, and not those that only the trajectory needs.
pub fn told(run: &RunId, record: &Stamped) -> Option<EventParams> {
    let Record::Event(event) = &record.record else {
        return None;
    };
    if !event.is_told() {
        return None;
    }
    let mut event = event.clone();
    if let Event::ReviewAsked { parts, .. } = &mut event {
        parts.clear();
    } else if let Event::ProposalApplied { change, .. } = &mut event {
        *change = None;
    }
    Some(EventParams {
        run: run.clone(),
        seq: record.seq,
        at_ms: record.at_ms,
        event,
    })
}

/// The run that a progress token belongs to.
pub fn run_of(token: &ProgressToken) -> Option<RunId> {
    match token {
        NumberOrString::Number(_) => None,
        NumberOrString::String(token) => {
            let id = token.strip_prefix(TOKEN_PREFIX)?;
            Some(RunId(id.to_owned()))
        }
    }
}

/// Shows a run as a progress bar that can be cancelled.
pub async fn progress(mut cursor: Cursor, run: &RunId, title: String, client: &Client) {
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
        } else if let Some(message) = doing(event) {
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

/// What a progress bar says of an event; most say nothing.
fn doing(event: &Event) -> Option<String> {
    match event {
        Event::TestsRun { .. } => Some("tests ran".to_owned()),
        Event::ScoutPicked { symbols } => Some(match symbols.len() {
            1 => "begins at 1 symbol".to_owned(),
            many => format!("begins at {many} symbols"),
        }),
        Event::AgentWoken { agent, .. } => Some(format!("{} woke", name(agent))),
        Event::Asked { from, to, .. } => Some(format!("{} asks {}", name(from), name(to))),
        Event::ProposalMade { agent, .. } => Some(format!("{} proposes", name(agent))),
        Event::ReviewAsked { symbol, .. } => Some(format!("{symbol} waits for your review")),
        Event::ProposalApplied { symbols, .. } => {
            let symbols: Vec<String> = symbols.iter().map(ToString::to_string).collect();
            Some(format!("changed {}", symbols.join(", ")))
        }
        Event::FollowUpMissed { owners, .. } => Some(match owners.len() {
            1 => "1 caller was not told of a change".to_owned(),
            many => format!("{many} callers were not told of a change"),
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
    use starling_swarm::{ActorId, EventLog};

    #[test]
    fn a_trajectory_is_readable_by_its_user_alone() {
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs/1.jsonl");
        std::fs::create_dir(dir.path().join("runs")).unwrap();
        begin(&path).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn a_token_names_its_run() {
        let token = |text: &str| NumberOrString::String(text.to_owned());
        assert_eq!(
            run_of(&token("starling/1-2-003")),
            Some(RunId("1-2-003".to_owned()))
        );
        assert_eq!(run_of(&token("1-2-003")), None);
        assert_eq!(run_of(&token("other/starling/1")), None);
        assert_eq!(run_of(&NumberOrString::Number(1)), None);
    }

    #[test]
    fn a_bar_says_who_does_what() {
        let symbol = |path: &str| path.parse().unwrap();
        let picked = |count: usize| Event::ScoutPicked {
            symbols: vec![(symbol("a.py::f"), "why".to_owned()); count],
        };
        assert_eq!(doing(&picked(1)).unwrap(), "begins at 1 symbol");
        assert_eq!(doing(&picked(2)).unwrap(), "begins at 2 symbols");
        let asked = Event::Asked {
            question: 1,
            from: ActorId::Agent(symbol("a.py::f")),
            to: ActorId::Solo,
            text: "why?".to_owned(),
        };
        assert_eq!(doing(&asked).unwrap(), "a.py::f asks the agent");
        let applied = Event::ProposalApplied {
            proposal: starling_swarm::ProposalId(1),
            symbols: vec![symbol("a.py::f"), symbol("a.py::")],
            diff: String::new(),
            change: None,
        };
        assert_eq!(doing(&applied).unwrap(), "changed a.py::f, a.py::");
        let missed = |count: usize| Event::FollowUpMissed {
            changed: symbol("a.py::f"),
            owners: vec![symbol("b.py::g"); count],
            why: "the budget is used up".to_owned(),
        };
        let said = doing(&missed(1)).unwrap();
        assert_eq!(said, "1 caller was not told of a change");
        let said = doing(&missed(3)).unwrap();
        assert_eq!(said, "3 callers were not told of a change");
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
            assert_eq!(doing(&woken(party)).unwrap(), said);
        }
        let steered = Event::Steered {
            to: None,
            text: "x".to_owned(),
        };
        assert_eq!(doing(&steered), None);
    }

    #[tokio::test]
    async fn a_trajectory_is_written_record_by_record_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/runs/1.jsonl");
        let log = EventLog::new();
        for text in ["one", "two\nlines"] {
            log.event(Event::Steered {
                to: None,
                text: text.to_owned(),
            });
        }
        log.close();
        let file = begin(&path).unwrap();
        write(log.write_from(0), file, &path).await;
        let text = std::fs::read_to_string(path).unwrap();
        let read: Vec<Stamped> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(read.iter().map(|one| one.seq).collect::<Vec<_>>(), [0, 1]);
        let Record::Event(Event::Steered { text, .. }) = &read[1].record else {
            panic!("{:?}", read[1]);
        };
        assert_eq!(text, "two\nlines");
    }

    #[test]
    fn a_trajectory_is_locked_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1.jsonl");
        let file = begin(&path).unwrap();
        let other = File::open(&path).unwrap();
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        drop(file);
        assert!(other.try_lock().is_ok());
        assert!(begin(&path.join("2.jsonl")).is_err(), "not under a file");
    }

    #[test]
    fn the_client_is_spared_the_texts_of_a_review() {
        let events = crate::samples::asked(&[(1, "a.py::f")]);
        let record = Stamped {
            seq: 3,
            at_ms: 4,
            record: Record::Event(events[1].clone()),
        };
        let told = told(&RunId("r".to_owned()), &record).unwrap();
        let sent = serde_json::to_value(&told).unwrap();
        assert_eq!(sent["event"]["event"], "review_asked");
        assert!(!sent.to_string().contains("base"), "{sent}");
        assert_eq!((told.seq, told.at_ms), (3, 4));
    }
}
