//! The actions that the user can take at a symbol, such as accepting a proposal. Lenses and code
//! actions show them.

use serde_json::{Value, json};
use tower_lsp::lsp_types::Command;

use super::protocol::{ACCEPT, CANCEL, ClientCommand, DIFF, REJECT, REVIEW, WHY};
use super::session::{ProposalStatus, Remedy, RunView, short, size};
use super::settings::ClientSettings;
use starling_core::IntentView;
use starling_swarm::{ActorId, ProposalId, RunId, ids};
use starling_syntax::SymbolPath;
use starling_text::harmless;

/// An action that the user can take at one symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewAction {
    pub symbol: SymbolPath,
    pub run: RunId,
    pub kind: ReviewActionKind,
}

/// The subject of an action: a proposal, a working agent, or an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewActionKind {
    Proposal {
        proposal: ProposalId,
        /// The proposal whose review is answered: this one, or the lead of its set (proposals that
        /// are reviewed together).
        lead: ProposalId,
        with: Vec<ProposalId>,
        /// Other waiting proposals without which this one fails.
        needs: Vec<ProposalId>,
        reason: String,
        conflict: Option<String>,
        /// The number of the event that asked for the review.
        version: Option<u64>,
    },
    Agent {
        doing: String,
    },
    /// An agent asks for permission to carry out a plan.
    Intent {
        intent: String,
    },
}

/// Returns the actions of one run.
pub fn all_review_actions(run: &RunId, view: &RunView) -> Vec<ReviewAction> {
    let mut review_actions = Vec::new();
    for (id, proposal) in &view.proposals {
        if proposal.state != ProposalStatus::Waiting {
            continue;
        }
        let kind = ReviewActionKind::Proposal {
            proposal: *id,
            lead: proposal.lead,
            with: proposal.with.clone(),
            needs: view.needs(proposal.lead),
            reason: proposal.reason.clone(),
            conflict: proposal.conflict.clone(),
            version: proposal.version,
        };
        let symbols = visible_at(&proposal.symbol, &proposal.symbols);
        review_actions.extend(symbols.into_iter().map(|symbol| ReviewAction {
            symbol,
            run: run.clone(),
            kind: kind.clone(),
        }));
    }
    for (party, agent) in &view.agents {
        let ActorId::Agent(symbol) = party else {
            continue;
        };
        let has_proposal = review_actions.iter().any(|action| action.symbol == *symbol);
        if agent.working && !has_proposal {
            review_actions.push(ReviewAction {
                symbol: symbol.clone(),
                run: run.clone(),
                kind: ReviewActionKind::Agent {
                    doing: agent.doing.clone(),
                },
            });
        }
    }
    review_actions
}

/// Adds actions for the intents that wait for an answer, for clients without a plugin. The action
/// for an intent replaces the action that shows the activity of its agent.
pub fn with_intents(
    mut review_actions: Vec<ReviewAction>,
    run: &RunId,
    intents: Vec<IntentView>,
) -> Vec<ReviewAction> {
    for view in intents {
        let is_of_agent = |action: &ReviewAction| {
            let is_doing = matches!(action.kind, ReviewActionKind::Agent { .. });
            is_doing && action.run == *run && action.symbol == view.symbol
        };
        review_actions.retain(|action| !is_of_agent(action));
        review_actions.push(ReviewAction {
            symbol: view.symbol,
            run: run.clone(),
            kind: ReviewActionKind::Intent {
                intent: view.intent,
            },
        });
    }
    review_actions
}

/// Returns the symbols at which a proposal is shown: its owner, and changed symbols outside of the
/// owner. The module body is left out, because a change there only adds imports.
fn visible_at(owner: &SymbolPath, symbols: &[SymbolPath]) -> Vec<SymbolPath> {
    let mut shown = vec![owner.clone()];
    for symbol in symbols.iter().filter(|symbol| !symbol.is_module()) {
        if !shown.iter().any(|outer| outer.encloses(symbol)) {
            shown.push(symbol.clone());
        }
    }
    shown
}

impl ReviewAction {
    pub fn proposal(&self) -> Option<ProposalId> {
        match &self.kind {
            ReviewActionKind::Proposal { proposal, .. } => Some(*proposal),
            ReviewActionKind::Agent { .. } | ReviewActionKind::Intent { .. } => None,
        }
    }

    /// Returns the commands of an action for a client. The title of the first command describes the
    /// action.
    pub fn commands(&self, client: &ClientSettings) -> Vec<Command> {
        match &self.kind {
            ReviewActionKind::Proposal {
                proposal,
                lead,
                with,
                needs,
                reason,
                conflict,
                version,
            } => {
                let title = proposal_title(*proposal, (with, needs), reason, conflict.as_deref());
                let accept = accept_title(conflict.is_some(), with.len());
                let about = json!({"run": self.run, "proposal": lead});
                proposal_commands(client, title, accept, (&about, *version))
            }
            ReviewActionKind::Intent { intent } => {
                let about = json!({"run": self.run, "symbol": self.symbol, "intent": intent});
                let mut refusal = about.clone();
                refusal["reason"] = json!("The user does not want it");
                let title = format!("Starling asks: {}", short(intent));
                vec![
                    command(title, ACCEPT, about.clone()),
                    command("Go ahead", ACCEPT, about),
                    command("Do not", REJECT, refusal),
                ]
            }
            ReviewActionKind::Agent { doing } => {
                let run = json!({"run": self.run});
                let title = format!("Starling: {doing}");
                if !client.brings(ClientCommand::Steer) {
                    return vec![command(format!("{title} — stop the run"), CANCEL, run)];
                }
                let steer = ClientCommand::Steer.name();
                let about = json!({"run": self.run, "symbol": self.symbol});
                vec![
                    command(title, steer, about.clone()),
                    command("Steer", steer, about),
                    command("Stop", CANCEL, run),
                ]
            }
        }
    }
}

/// Returns the title of the command that accepts a proposal with `others` other members of its set.
fn accept_title(is_conflict: bool, others: usize) -> String {
    match (is_conflict, others) {
        (true, _) => "Hand back".to_owned(),
        (false, 0) => "Accept".to_owned(),
        (false, others) => format!("Accept all {}", others + 1),
    }
}

/// Returns the commands about a proposal. Those that answer its review name the version that is shown.
fn proposal_commands(
    client: &ClientSettings,
    title: String,
    accept: String,
    (about, version): (&Value, Option<u64>),
) -> Vec<Command> {
    let mut answer = about.clone();
    if let Some(version) = version {
        answer["version"] = json!(version);
    }
    let show = either(client, ClientCommand::Diff, REVIEW);
    let reject = either(client, ClientCommand::Reject, REJECT);
    let why = either(client, ClientCommand::Why, WHY);
    let diff = either(client, ClientCommand::Diff, DIFF);
    vec![
        command(title, show, about.clone()),
        command(accept, ACCEPT, answer.clone()),
        command("Reject", reject, answer),
        command("Why", why, about.clone()),
        command("Diff", diff, about.clone()),
    ]
}

fn proposal_title(
    proposal: ProposalId,
    (with, needs): (&[ProposalId], &[ProposalId]),
    reason: &str,
    conflict: Option<&str>,
) -> String {
    let with = match with {
        [] => String::new(),
        others => format!(" with {}", ids(others)),
    };
    let needs = match needs {
        [] => String::new(),
        needs => format!(" needs {}", ids(needs)),
    };
    let conflict = match conflict {
        Some(_) => " conflicts with what you typed",
        None => "",
    };
    let reason = short(reason);
    format!("Starling {proposal}{with}{needs}{conflict}: {reason}")
}

/// Returns the client's command if the client implements it, otherwise the server's command.
fn either(client: &ClientSettings, own: ClientCommand, server: &'static str) -> &'static str {
    match client.brings(own) {
        true => own.name(),
        false => server,
    }
}

/// Returns a command. Its title may contain a model's text, so invisible characters are escaped.
pub fn command(title: impl AsRef<str>, command: &str, argument: Value) -> Command {
    Command {
        title: harmless(title.as_ref()),
        command: command.to_owned(),
        arguments: Some(vec![argument]),
    }
}

/// Returns the titles of the commands that run a task again, each with whether the command downloads the
/// weights first.
pub fn retry_titles(task: &str, remedy: Option<&Remedy>) -> Vec<(String, bool)> {
    let task = short(task);
    match remedy {
        None => vec![(format!("Starling: run again: {task}"), false)],
        Some(Remedy::Key | Remedy::Endpoint | Remedy::Model) => {
            vec![(format!("Starling: try again: {task}"), false)]
        }
        Some(Remedy::Download { bytes, .. }) => vec![
            (
                format!("Starling: download ({}), then: {task}", size(*bytes)),
                true,
            ),
            (format!("Starling: try again: {task}"), false),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{client, doing, review_actions, waiting};
    use starling_syntax::FilePath;

    fn run() -> RunId {
        RunId("r".to_owned())
    }

    fn file() -> FilePath {
        FilePath::new("a.py")
    }

    fn lines(review_actions: &[ReviewAction], client: &ClientSettings) -> String {
        let line = |action: &ReviewAction, command: &Command| {
            let argument = &command.arguments.as_ref().unwrap()[0];
            let Command { title, command, .. } = command;
            format!("{}: {title} → {command} {argument}\n", action.symbol)
        };
        let of = |action: &ReviewAction| -> String {
            let commands = action.commands(client);
            commands
                .iter()
                .map(|command| line(action, command))
                .collect()
        };
        review_actions.iter().map(of).collect()
    }

    #[test]
    fn commands_match_client_capabilities() {
        let mut view = waiting(&[(1, "a.py::C.m")]);
        doing(&mut view, "a.py::g");
        doing(&mut view, "b.py::h");
        let review_actions = review_actions(&run(), &view, &file());
        insta::assert_snapshot!(format!(
            "plain\n{}\nwith a plugin\n{}",
            lines(&review_actions, &client(&[])),
            lines(&review_actions, &client(&ClientCommand::ALL)),
        ));
    }

    #[test]
    fn set_of_proposals_has_actions_at_the_symbol_of_every_proposal() {
        let view = waiting(&[(1, "a.py::f"), (2, "a.py::g")]);
        let review_actions = review_actions(&run(), &view, &file());
        let titles: Vec<String> = review_actions
            .iter()
            .flat_map(|action| action.commands(&client(&[])))
            .map(|command| command.title)
            .filter(|title| title.starts_with("Starling") || title.starts_with("Accept"))
            .collect();
        assert_eq!(
            titles,
            [
                "Starling #1 with #2: reason 1",
                "Accept all 2",
                "Starling #2 with #1: reason 2",
                "Accept all 2",
            ]
        );
        let of_lead = json!({"run": "r", "proposal": 2, "version": 2});
        for action in &review_actions {
            let accept = &action.commands(&client(&[]))[1];
            assert_eq!(accept.arguments, Some(vec![of_lead.clone()]));
        }
    }

    #[test]
    fn titles_escape_invisible_characters() {
        let mut view = waiting(&[(1, "a.py::f")]);
        let proposal = view.proposals.get_mut(&ProposalId(1)).unwrap();
        proposal.reason = "\x1b[31mRED\x07 \u{202e}evil \u{200b}".to_owned();
        let review_actions = review_actions(&run(), &view, &file());
        let title = &review_actions[0].commands(&client(&[]))[0].title;
        let shown = "Starling #1: \\u{1b}[31mRED\\u{7} \\u{202e}evil \\u{200b}";
        assert_eq!(title, shown);
    }

    #[test]
    fn command_title_says_that_a_proposal_conflicts() {
        let mut view = waiting(&[(1, "a.py::f")]);
        view.compare(&file(), "something else");
        let review_actions = review_actions(&run(), &view, &file());
        let commands = review_actions[0].commands(&client(&[]));
        assert_eq!(
            commands[0].title,
            "Starling #1 conflicts with what you typed: reason 1"
        );
        assert_eq!(commands[1].title, "Hand back");
        assert_eq!(commands[1].command, ACCEPT);
    }

    #[test]
    fn proposal_is_shown_at_changed_symbols() {
        let symbol = |path: &str| -> SymbolPath { path.parse().unwrap() };
        let shown = visible_at(
            &symbol("a.py::C"),
            &["a.py::", "a.py::C.m", "a.py::f"].map(symbol),
        );
        assert_eq!(shown, [symbol("a.py::C"), symbol("a.py::f")]);
    }
}
