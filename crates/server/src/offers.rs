//! What can be done about a symbol now: lenses and code actions both are made of offers.

use serde_json::{Value, json};
use tower_lsp::lsp_types::Command;

use super::board::{Board, State};
use super::protocol::{ACCEPT, CANCEL, ClientCommand, DIFF, REJECT, REVIEW, WHY};
use super::settings::Settings;
use starling_core::IntentView;
use starling_swarm::{ActorId, ProposalId, RunId, ids};
use starling_syntax::SymbolPath;

/// An offer about one symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub symbol: SymbolPath,
    pub run: RunId,
    pub what: What,
}

/// A proposal to decide on, or an agent to speak with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Proposal {
        proposal: ProposalId,
        /// The one that is asked about.
        lead: ProposalId,
        with: Vec<ProposalId>,
        /// Others that wait, and without which it fails.
        needs: Vec<ProposalId>,
        reason: String,
        conflict: Option<String>,
    },
    Agent {
        doing: String,
    },
    /// What an agent asks leave for.
    Intent {
        intent: String,
    },
}

/// The offers of one run.
pub fn all_offers(run: &RunId, board: &Board) -> Vec<Offer> {
    let mut offers = Vec::new();
    for (id, proposal) in &board.proposals {
        if proposal.state != State::Waiting {
            continue;
        }
        let what = What::Proposal {
            proposal: *id,
            lead: proposal.lead,
            with: proposal.with.clone(),
            needs: board.needs(proposal.lead),
            reason: proposal.reason.clone(),
            conflict: proposal.conflict.clone(),
        };
        let symbols = shown_at(&proposal.symbol, &proposal.symbols);
        offers.extend(symbols.into_iter().map(|symbol| Offer {
            symbol,
            run: run.clone(),
            what: what.clone(),
        }));
    }
    for (party, agent) in &board.agents {
        let ActorId::Agent(symbol) = party else {
            continue;
        };
        let has_proposal = offers.iter().any(|offer| offer.symbol == *symbol);
        if agent.working && !has_proposal {
            offers.push(Offer {
                symbol: symbol.clone(),
                run: run.clone(),
                what: What::Agent {
                    doing: agent.doing.clone(),
                },
            });
        }
    }
    offers
}

/// An intent that waits, for clients without a plugin. Takes the place of what its agent is doing.
pub fn with_intents(mut offers: Vec<Offer>, run: &RunId, intents: Vec<IntentView>) -> Vec<Offer> {
    for view in intents {
        let is_of_agent = |offer: &Offer| {
            let is_doing = matches!(offer.what, What::Agent { .. });
            is_doing && offer.run == *run && offer.symbol == view.symbol
        };
        offers.retain(|offer| !is_of_agent(offer));
        offers.push(Offer {
            symbol: view.symbol,
            run: run.clone(),
            what: What::Intent {
                intent: view.intent,
            },
        });
    }
    offers
}

/// The owner of a proposal, and what else it changes outside of it. The module body, which gets the
/// imports, is not worth a word.
fn shown_at(owner: &SymbolPath, symbols: &[SymbolPath]) -> Vec<SymbolPath> {
    let mut shown = vec![owner.clone()];
    for symbol in symbols.iter().filter(|symbol| !symbol.is_module()) {
        if !shown.iter().any(|outer| outer.encloses(symbol)) {
            shown.push(symbol.clone());
        }
    }
    shown
}

impl Offer {
    pub fn proposal(&self) -> Option<ProposalId> {
        match &self.what {
            What::Proposal { proposal, .. } => Some(*proposal),
            What::Agent { .. } | What::Intent { .. } => None,
        }
    }

    /// What a client can do about it, the first of them in words that say what it is about.
    pub fn commands(&self, client: &Settings) -> Vec<Command> {
        match &self.what {
            What::Proposal {
                proposal,
                lead,
                with,
                needs,
                reason,
                conflict,
            } => {
                let about = json!({"run": self.run, "proposal": lead});
                let title = proposal_title(*proposal, (with, needs), reason, conflict.as_deref());
                let accept = match (conflict, with.len()) {
                    (Some(_), _) => "Hand back".to_owned(),
                    (None, 0) => "Accept".to_owned(),
                    (None, others) => format!("Accept all {}", others + 1),
                };
                let accept = match (conflict, needs.is_empty()) {
                    (Some(_), _) | (None, true) => accept,
                    (None, false) => format!("{accept} with {}", ids(needs)),
                };
                let first = either(client, ClientCommand::Diff, REVIEW);
                let diff = either(client, ClientCommand::Diff, DIFF);
                vec![
                    command(title, first, about.clone()),
                    command(accept, ACCEPT, about.clone()),
                    command(
                        "Reject",
                        either(client, ClientCommand::Reject, REJECT),
                        about.clone(),
                    ),
                    command(
                        "Why",
                        either(client, ClientCommand::Why, WHY),
                        about.clone(),
                    ),
                    command("Diff", diff, about),
                ]
            }
            What::Intent { intent } => {
                let about = json!({"run": self.run, "symbol": self.symbol});
                let mut refusal = about.clone();
                refusal["reason"] = json!("The user does not want it");
                let title = format!("Starling asks: {}", super::board::short(intent));
                vec![
                    command(title, ACCEPT, about.clone()),
                    command("Go ahead", ACCEPT, about),
                    command("Do not", REJECT, refusal),
                ]
            }
            What::Agent { doing } => {
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
    let reason = super::board::short(reason);
    format!("Starling {proposal}{with}{needs}{conflict}: {reason}")
}

/// The client's command where it brings it, else the server's.
fn either(client: &Settings, own: ClientCommand, server: &'static str) -> &'static str {
    match client.brings(own) {
        true => own.name(),
        false => server,
    }
}

pub fn command(title: impl Into<String>, command: &str, argument: Value) -> Command {
    Command {
        title: title.into(),
        command: command.to_owned(),
        arguments: Some(vec![argument]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{client, doing, offers, waiting};
    use starling_syntax::FilePath;

    fn run() -> RunId {
        RunId("r".to_owned())
    }

    fn file() -> FilePath {
        FilePath::new("a.py")
    }

    fn lines(offers: &[Offer], client: &Settings) -> String {
        let line = |offer: &Offer, command: &Command| {
            let argument = &command.arguments.as_ref().unwrap()[0];
            let Command { title, command, .. } = command;
            format!("{}: {title} → {command} {argument}\n", offer.symbol)
        };
        let of = |offer: &Offer| -> String {
            let commands = offer.commands(client);
            commands
                .iter()
                .map(|command| line(offer, command))
                .collect()
        };
        offers.iter().map(of).collect()
    }

    #[test]
    fn a_client_is_offered_what_it_can_do() {
        let mut board = waiting(&[(1, "a.py::C.m")]);
        doing(&mut board, "a.py::g");
        doing(&mut board, "b.py::h");
        let offers = offers(&run(), &board, &file());
        insta::assert_snapshot!(format!(
            "plain\n{}\nwith a plugin\n{}",
            lines(&offers, &client(&[])),
            lines(&offers, &client(&ClientCommand::ALL)),
        ));
    }

    #[test]
    fn a_set_is_offered_at_every_member() {
        let board = waiting(&[(1, "a.py::f"), (2, "a.py::g")]);
        let offers = offers(&run(), &board, &file());
        let titles: Vec<String> = offers
            .iter()
            .flat_map(|offer| offer.commands(&client(&[])))
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
        let of_lead = json!({"run": "r", "proposal": 2});
        for offer in &offers {
            let accept = &offer.commands(&client(&[]))[1];
            assert_eq!(accept.arguments, Some(vec![of_lead.clone()]));
        }
    }

    #[test]
    fn a_conflict_is_said() {
        let mut board = waiting(&[(1, "a.py::f")]);
        board.compare(&file(), "something else");
        let offers = offers(&run(), &board, &file());
        let commands = offers[0].commands(&client(&[]));
        assert_eq!(
            commands[0].title,
            "Starling #1 conflicts with what you typed: reason 1"
        );
        assert_eq!(commands[1].title, "Hand back");
        assert_eq!(commands[1].command, ACCEPT);
    }

    #[test]
    fn a_proposal_is_shown_where_it_changes_something() {
        let symbol = |path: &str| -> SymbolPath { path.parse().unwrap() };
        let shown = shown_at(
            &symbol("a.py::C"),
            &["a.py::", "a.py::C.m", "a.py::f"].map(symbol),
        );
        assert_eq!(shown, [symbol("a.py::C"), symbol("a.py::f")]);
    }
}
