//! Parses the commands of `workspace/executeCommand` and their arguments.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::protocol::{
    ACCEPT, ACCEPT_ALL, ASK, AcceptAllParams, AcceptParams, AskId, AskParams, CANCEL, COMMANDS,
    CancelParams, DIFF, EDIT, EditParams, FORGET, ForgetParams, ProposalParams, REJECT, RETRY,
    REVIEW, RUN, RejectParams, RetryParams, RunParams, STEER, SteerParams, TargetParams, UNDO,
    UndoParams, WHY,
};
use super::session::{ReviewTarget, ShownReview};
use starling_core::Verdict;
use starling_swarm::{ProposalId, RunId};
use starling_syntax::SymbolPath;

/// A command of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerCommand {
    Run(Box<RunParams>),
    Answer {
        run: RunId,
        review: ReviewTarget,
        shown: ShownReview,
        verdict: Verdict,
    },
    Steer {
        run: RunId,
        to: Option<SymbolPath>,
        text: String,
    },
    Edit(Box<EditParams>),
    AcceptAll(Option<RunId>),
    /// Reject after asking the user for a reason.
    AskReason {
        run: RunId,
        review: ReviewTarget,
        shown: ShownReview,
    },
    Cancel {
        run: RunId,
        keep_reviews: bool,
    },
    CancelAsk(AskId),
    Ask(Box<AskParams>),
    /// Shows a review. Clients without views of their own send this command and the next two.
    Review(ProposalParams),
    Diff(ProposalParams),
    Why(ProposalParams),
    Undo {
        run: RunId,
        proposal: Option<ProposalId>,
    },
    Retry(RetryParams),
    Forget,
}

/// Why a command cannot be executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("there is no command `{0}`; the commands are {list}", list = COMMANDS.join(", "))]
    Unknown(String),
    #[error("{command} takes exactly one argument, an object, but got {found} arguments")]
    NotOneObject { command: String, found: usize },
    #[error("{command}: {message}")]
    Arguments { command: String, message: String },
}

impl ServerCommand {
    /// Returns whether the command answers a proposal, or asks the user for the answer.
    pub fn answers_proposal(&self) -> bool {
        match self {
            ServerCommand::Answer { .. }
            | ServerCommand::Edit(_)
            | ServerCommand::AcceptAll(_)
            | ServerCommand::AskReason { .. }
            | ServerCommand::Review(_) => true,
            ServerCommand::Run(_)
            | ServerCommand::Steer { .. }
            | ServerCommand::Cancel { .. }
            | ServerCommand::CancelAsk(_)
            | ServerCommand::Ask(_)
            | ServerCommand::Diff(_)
            | ServerCommand::Why(_)
            | ServerCommand::Undo { .. }
            | ServerCommand::Retry(_)
            | ServerCommand::Forget => false,
        }
    }

    /// Parses a command and its arguments.
    ///
    /// # Errors
    /// See [`CommandError`].
    pub fn parse(name: &str, arguments: Vec<Value>) -> Result<ServerCommand, CommandError> {
        if !COMMANDS.contains(&name) {
            return Err(CommandError::Unknown(name.to_owned()));
        }
        let found = arguments.len();
        let arguments = match (name, arguments) {
            (ACCEPT_ALL | FORGET, none) if none.is_empty() => {
                vec![Value::Object(Default::default())]
            }
            (_, arguments) => arguments,
        };
        let Ok([argument]) = <[Value; 1]>::try_from(arguments) else {
            let command = name.to_owned();
            return Err(CommandError::NotOneObject { command, found });
        };
        read(name, argument).map_err(|message| CommandError::Arguments {
            command: name.to_owned(),
            message,
        })
    }
}

fn read(name: &str, argument: Value) -> Result<ServerCommand, String> {
    match name {
        RUN => {
            let params: RunParams = from(argument)?;
            if params.task.trim().is_empty() {
                return Err("`task` is empty: say what to do".to_owned());
            }
            params.limits.check()?;
            Ok(ServerCommand::Run(Box::new(params)))
        }
        ACCEPT => accept(from(argument)?),
        REJECT => reject(from(argument)?),
        STEER => steer(from(argument)?),
        EDIT => {
            let params: EditParams = from(argument)?;
            if params.files.is_empty() {
                return Err(
                    "`files` is empty: send the changed files with the texts that you want"
                        .to_owned(),
                );
            }
            Ok(ServerCommand::Edit(Box::new(params)))
        }
        ACCEPT_ALL => Ok(ServerCommand::AcceptAll(
            from::<AcceptAllParams>(argument)?.run,
        )),
        ASK => {
            let params: AskParams = from(argument)?;
            if params.question.trim().is_empty() {
                return Err("`question` is empty: say what you want to know".to_owned());
            }
            params.limits.check()?;
            Ok(ServerCommand::Ask(Box::new(params)))
        }
        REVIEW => Ok(ServerCommand::Review(from(argument)?)),
        DIFF => Ok(ServerCommand::Diff(from(argument)?)),
        WHY => Ok(ServerCommand::Why(from(argument)?)),
        FORGET => from::<ForgetParams>(argument).map(|ForgetParams {}| ServerCommand::Forget),
        RETRY => Ok(ServerCommand::Retry(from(argument)?)),
        CANCEL => cancel(from(argument)?),
        UNDO => {
            let UndoParams { run, proposal } = from(argument)?;
            Ok(ServerCommand::Undo { run, proposal })
        }
        other => Err(format!(
            "`{other}` is in the list of commands but is not implemented"
        )),
    }
}

fn accept(params: AcceptParams) -> Result<ServerCommand, String> {
    let AcceptParams { run, target } = params;
    let (review, shown) = review(target)?;
    Ok(ServerCommand::Answer {
        run,
        review,
        shown,
        verdict: Verdict::Accept,
    })
}

fn reject(params: RejectParams) -> Result<ServerCommand, String> {
    let RejectParams {
        run,
        target,
        reason,
    } = params;
    let (review, shown) = review(target)?;
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    Ok(match reason {
        Some(reason) => ServerCommand::Answer {
            run,
            review,
            shown,
            verdict: Verdict::Reject { reason },
        },
        None => ServerCommand::AskReason { run, review, shown },
    })
}

fn cancel(params: CancelParams) -> Result<ServerCommand, String> {
    let CancelParams {
        run,
        ask,
        keep_reviews,
    } = params;
    match (run, ask) {
        (Some(run), None) => Ok(ServerCommand::Cancel { run, keep_reviews }),
        (None, Some(ask)) => Ok(ServerCommand::CancelAsk(ask)),
        (Some(_), Some(_)) => Err("give `run` or `ask`, not both".to_owned()),
        (None, None) => Err("`run` (or `ask`) is missing".to_owned()),
    }
}

fn steer(params: SteerParams) -> Result<ServerCommand, String> {
    let SteerParams { run, target, text } = params;
    if text.trim().is_empty() {
        return Err("`text` is empty: say what to do differently".to_owned());
    }
    match target.proposal {
        None => Ok(ServerCommand::Steer {
            run,
            to: target.symbol,
            text,
        }),
        Some(_) => {
            let (review, shown) = review(target)?;
            Ok(ServerCommand::Answer {
                run,
                review,
                shown,
                verdict: Verdict::Steer { text },
            })
        }
    }
}

fn review(target: TargetParams) -> Result<(ReviewTarget, ShownReview), String> {
    let TargetParams {
        proposal,
        version,
        symbol,
        intent,
    } = target;
    match (proposal, symbol) {
        (Some(proposal), None) => {
            let shown = version.map_or(ShownReview::Unknown, ShownReview::Version);
            Ok((ReviewTarget::Proposal(proposal), shown))
        }
        (None, Some(symbol)) => {
            let shown = intent.map_or(ShownReview::Unknown, ShownReview::Intent);
            Ok((ReviewTarget::Intent(symbol), shown))
        }
        (Some(_), Some(_)) => Err("give `proposal` or `symbol`, not both".to_owned()),
        (None, None) => Err("`proposal` (or `symbol`, for an intent) is missing".to_owned()),
    }
}

fn from<T: DeserializeOwned>(argument: Value) -> Result<T, String> {
    if !argument.is_object() {
        return Err("the argument must be an object".to_owned());
    }
    serde_json::from_value(argument).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(name: &str, argument: Value) -> Result<ServerCommand, String> {
        ServerCommand::parse(name, vec![argument]).map_err(|error| error.to_string())
    }

    #[test]
    fn commands_and_their_arguments_are_parsed() {
        let run = || RunId("r1".to_owned());
        assert_eq!(
            parse(ACCEPT, json!({"run": "r1", "proposal": 2})),
            Ok(ServerCommand::Answer {
                run: run(),
                review: ReviewTarget::Proposal(ProposalId(2)),
                shown: ShownReview::Unknown,
                verdict: Verdict::Accept,
            })
        );
        assert_eq!(
            parse(
                REJECT,
                json!({"run": "r1", "symbol": "a.py::f", "reason": "no"})
            ),
            Ok(ServerCommand::Answer {
                run: run(),
                review: ReviewTarget::Intent("a.py::f".parse().unwrap()),
                shown: ShownReview::Unknown,
                verdict: Verdict::Reject {
                    reason: "no".to_owned()
                },
            })
        );
        for reasonless in [
            json!({"run": "r1", "proposal": 2}),
            json!({"run": "r1", "proposal": 2, "reason": " "}),
        ] {
            assert_eq!(
                parse(REJECT, reasonless),
                Ok(ServerCommand::AskReason {
                    run: run(),
                    review: ReviewTarget::Proposal(ProposalId(2)),
                    shown: ShownReview::Unknown,
                })
            );
        }
    }

    #[test]
    fn answers_say_what_was_shown() {
        let shown = |name, argument| match parse(name, argument).unwrap() {
            ServerCommand::Answer { shown, .. } | ServerCommand::AskReason { shown, .. } => shown,
            other => panic!("{other:?}"),
        };
        let proposal = json!({"run": "r1", "proposal": 2, "version": 7, "text": "shorter"});
        for name in [ACCEPT, REJECT, STEER] {
            assert_eq!(shown(name, proposal.clone()), ShownReview::Version(7));
        }
        let intent = json!({"run": "r1", "symbol": "a.py::f", "intent": "rename it"});
        let expected = ShownReview::Intent("rename it".to_owned());
        assert_eq!(shown(ACCEPT, intent), expected);
    }

    #[test]
    fn commands_for_whole_runs_are_parsed() {
        let run = || RunId("r1".to_owned());
        let all = ServerCommand::parse(ACCEPT_ALL, vec![]);
        assert_eq!(all, Ok(ServerCommand::AcceptAll(None)));
        assert_eq!(
            parse(CANCEL, json!({"ask": "a1"})),
            Ok(ServerCommand::CancelAsk(AskId("a1".to_owned())))
        );
        assert_eq!(
            parse(STEER, json!({"run": "r1", "text": "shorter"})),
            Ok(ServerCommand::Steer {
                run: run(),
                to: None,
                text: "shorter".to_owned()
            })
        );
        assert_eq!(
            parse(UNDO, json!({"run": "r1"})),
            Ok(ServerCommand::Undo {
                run: run(),
                proposal: None
            })
        );
        let Ok(ServerCommand::Run(params)) = parse(
            RUN,
            json!({"task": "fix it", "approve": "auto", "limits": {"calls": 3, "dollars": 0.5}}),
        ) else {
            panic!("not read");
        };
        assert_eq!(params.limits.calls, Some(3));
        assert_eq!(params.approve, Some(starling_core::Approval::Auto));
    }

    #[test]
    fn invalid_command_is_rejected_with_an_explanation() {
        let wrong = |name, argument| parse(name, argument).unwrap_err();
        insta::assert_snapshot!(
            [
                wrong("starling.fly", json!({})),
                wrong(RUN, json!({})),
                wrong(RUN, json!({"task": " "})),
                wrong(RUN, json!({"task": "x", "limit": {}})),
                wrong(RUN, json!({"task": "x", "approve": "maybe"})),
                wrong(RUN, json!({"task": "x", "begin": ["nowhere"]})),
                wrong(ACCEPT, json!({"run": "r"})),
                wrong(
                    ACCEPT,
                    json!({"run": "r", "proposal": 1, "symbol": "a.py::f"})
                ),
                wrong(ACCEPT, json!({"run": "r", "proposal": "one"})),
                wrong(REJECT, json!({"run": "r", "proposal": 1, "reason": 2})),
                wrong(ACCEPT_ALL, json!({"runs": []})),
                wrong(ASK, json!({"question": " "})),
                wrong(REVIEW, json!({"run": "r"})),
                wrong(STEER, json!({"run": "r", "text": ""})),
                wrong(CANCEL, json!({})),
                wrong(CANCEL, json!({"run": "r", "ask": "a"})),
                ServerCommand::parse(CANCEL, vec![])
                    .unwrap_err()
                    .to_string(),
            ]
            .join("\n")
        );
    }

    #[test]
    fn dollar_limit_that_is_not_positive_is_rejected() {
        for dollars in [-2.0, 0.0] {
            for command in [
                (RUN, json!({"task": "x", "limits": {"dollars": dollars}})),
                (
                    ASK,
                    json!({"question": "x", "limits": {"dollars": dollars}}),
                ),
            ] {
                let wrong = parse(command.0, command.1).unwrap_err();
                assert!(wrong.contains("`limits.dollars` is"), "{wrong}");
            }
        }
        let right = json!({"task": "x", "limits": {"dollars": 0.25}});
        assert!(parse(RUN, right).is_ok());
    }

    #[test]
    fn steer_addresses_a_proposal_a_symbol_or_all_agents() {
        let text = || "shorter".to_owned();
        let run = || RunId("r".to_owned());
        let base = |extra: Value| {
            let mut argument = json!({"run": "r", "text": "shorter"});
            argument
                .as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
            parse(STEER, argument)
        };
        assert_eq!(
            base(json!({"proposal": 3})),
            Ok(ServerCommand::Answer {
                run: run(),
                review: ReviewTarget::Proposal(ProposalId(3)),
                shown: ShownReview::Unknown,
                verdict: Verdict::Steer { text: text() },
            })
        );
        assert_eq!(
            base(json!({"symbol": "a.py::"})),
            Ok(ServerCommand::Steer {
                run: run(),
                to: Some("a.py::".parse().unwrap()),
                text: text(),
            })
        );
        let both = base(json!({"proposal": 3, "symbol": "a.py::f"}));
        assert!(both.unwrap_err().contains("not both"));
        assert!(base(json!({"symbol": 3})).is_err());
    }

    #[test]
    fn command_arguments_of_the_wrong_shape_are_rejected() {
        for (name, argument) in [
            (RUN, json!(null)),
            (RUN, json!([{"task": "x"}])),
            (RUN, json!("x")),
            (RUN, json!(["x"])),
            (RUN, json!({"task": "x", "limits": []})),
            (RUN, json!({"task": "x", "limits": [3]})),
            (RUN, json!({"task": "x", "limits": null})),
            (RUN, json!({"task": "x", "limits": "x"})),
            (ASK, json!({"question": "x", "limits": []})),
            (
                EDIT,
                json!({"run": "r", "proposal": 1, "files": [["file:///a.py", "", "x"]]}),
            ),
            (RUN, json!({"task": "x", "limits": {"calls": -1}})),
            (RUN, json!({"task": "x", "limits": {"call": 1}})),
            (RUN, json!({"task": "x", "driver": "herd"})),
            (RUN, json!({"task": "x", "begin": "a.py::f"})),
            (ACCEPT, json!({"proposal": 1})),
            (ACCEPT, json!({"run": 1, "proposal": 1})),
            (ACCEPT, json!({"run": "r", "proposal": -1})),
            (ACCEPT, json!({"run": "r", "proposal": 1.5})),
            (REJECT, json!({"run": "r", "reason": "no"})),
            (STEER, json!({"run": "r"})),
            (CANCEL, json!({"run": "r", "proposal": 1})),
            (UNDO, json!({"run": "r", "symbol": "a.py::f"})),
        ] {
            let error = parse(name, argument.clone()).expect_err(&argument.to_string());
            assert!(error.starts_with(&format!("{name}: ")), "{error}");
        }
        let two = ServerCommand::parse(CANCEL, vec![json!({"run": "r"}), json!({})]);
        let expected = "starling.cancel takes exactly one argument, an object, but got 2 arguments";
        assert_eq!(two.unwrap_err().to_string(), expected);
    }
}
