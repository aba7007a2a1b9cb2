//! Executors, which carry out the calls of read-only tools.

use std::sync::Arc;

use async_trait::async_trait;
use starling_dialogue::Execute;
use starling_syntax::SymbolPath;

use crate::agent::{questions, tools, try_tool};
use crate::event::actor::ActorId;
use crate::protocol::{self, Action, Executors, RunToolbox, ToolSet};
use crate::state::run_context::RunContext;

/// The agent that calls a tool, with its run.
struct ToolUser {
    run: Arc<RunContext>,
    /// The agents that wait for each other's answers, in order. The agent that calls the tool is
    /// last.
    chain: Vec<ActorId>,
}

impl ToolUser {
    fn symbol(&self) -> Option<&SymbolPath> {
        self.chain.last().and_then(ActorId::symbol)
    }
}

/// Executes the tools that read code.
struct LookAtCode(Arc<ToolUser>);
/// Executes the tool that asks the owner of a symbol.
struct AskOwners(Arc<ToolUser>);
/// Executes the tool that runs tests.
struct RunProjectTests(Arc<ToolUser>);
/// Executes the tool that runs code.
struct RunCode(Arc<ToolUser>);

/// Returns the tools of a role. `chain` contains the agents that wait for each other's answers, in
/// order; the agent that uses the tools is last.
pub(crate) fn toolbox(run: &Arc<RunContext>, role: ToolSet, chain: &[ActorId]) -> RunToolbox {
    let user = Arc::new(ToolUser {
        run: Arc::clone(run),
        chain: chain.to_vec(),
    });
    let executors = Executors {
        look: Some(Arc::new(LookAtCode(Arc::clone(&user)))),
        ask: Some(Arc::new(AskOwners(Arc::clone(&user)))),
        run_tests: Some(Arc::new(RunProjectTests(Arc::clone(&user)))),
        try_code: Some(Arc::new(RunCode(user))),
    };
    protocol::toolbox(role, &executors)
}

#[async_trait]
impl Execute<Action> for LookAtCode {
    async fn execute(&self, action: &Action) -> String {
        let LookAtCode(user) = self;
        let text = tools::look(&user.run, user.symbol(), action).await;
        text.unwrap_or_default()
    }
}

#[async_trait]
impl Execute<Action> for AskOwners {
    async fn execute(&self, action: &Action) -> String {
        let (AskOwners(user), Action::Ask(question)) = (self, action) else {
            return String::new();
        };
        let chain = user.chain.clone();
        questions::ask(&user.run, chain, &question.symbol, &question.question).await
    }
}

#[async_trait]
impl Execute<Action> for RunProjectTests {
    async fn execute(&self, action: &Action) -> String {
        let RunProjectTests(user) = self;
        match (user.chain.last(), action) {
            (Some(actor), Action::RunTests(wanted)) => {
                tools::run_tests(&user.run, actor, wanted).await
            }
            (Some(_) | None, _) => String::new(),
        }
    }
}

#[async_trait]
impl Execute<Action> for RunCode {
    async fn execute(&self, action: &Action) -> String {
        let RunCode(user) = self;
        match (user.chain.last(), action) {
            (Some(actor), Action::Try(wanted)) => try_tool::run(&user.run, actor, wanted).await,
            (Some(_) | None, _) => String::new(),
        }
    }
}
