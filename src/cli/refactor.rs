//! `starling refactor`: renames and deletes symbols without a model. The change is checked, reviewed and
//! undone as the changes of `starling run`.

use super::args::{ConfigurationArgs, RefactorArgs, RefactorCommand, RunArgs};
use super::view::state::NO_MODEL;
use super::{Outcome, WrongUse, run};
use starling_core::Approval;
use starling_swarm::Refactoring;

/// Runs the command.
pub async fn run(command: RefactorCommand) -> anyhow::Result<Outcome> {
    let (refactoring, options) = match command {
        RefactorCommand::Rename(args) => {
            let refactoring = Refactoring::Rename {
                symbol: args.symbol,
                to: args.to,
                only_if_certain: args.only_if_certain,
            };
            (refactoring, args.options)
        }
        RefactorCommand::Delete(args) => {
            let symbol = args.symbol;
            (Refactoring::Delete { symbol }, args.options)
        }
    };
    run::run(arguments(refactoring, options)?).await
}

/// Returns the arguments of the run that carries out a refactoring.
fn arguments(refactoring: Refactoring, options: RefactorArgs) -> Result<RunArgs, WrongUse> {
    if options.world.model.is_some() {
        let message =
            "a refactoring uses no model: leave out `--model`, or describe it to `starling run`";
        return Err(WrongUse(message.to_owned()));
    }
    if options.approve == Some(Approval::Proxy) {
        let message =
            "a refactoring uses no model that could approve it: use --approve ask or auto";
        return Err(WrongUse(message.to_owned()));
    }
    Ok(RunArgs {
        task: refactoring.in_words(),
        repo: options.repo,
        approve: options.approve,
        driver: None,
        test: options.test,
        require_tests: false,
        budget_usd: None,
        budget_tokens: None,
        budget_seconds: None,
        json: options.json,
        end_with_parent: None,
        refactoring: Some(refactoring),
        world: ConfigurationArgs {
            model: Some(NO_MODEL.to_owned()),
            ..options.world
        },
    })
}
