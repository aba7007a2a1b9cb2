//! The tool `try`, with which a model runs code in the project.

use std::time::Duration;

use crate::check::try_code::try_code;
use crate::event::actor::ActorId;
use crate::protocol::{TriedWorld, TryOut};
use crate::state::checker::Checker;
use crate::state::refresh;
use crate::state::waiting::laid_over;
use starling_core::TestOutcome;
use starling_workspace::Snapshot;

/// Time limit for one call of the tool.
const LONGEST: Duration = Duration::from_secs(20);

/// Runs the code of a call. The first line of the result contains the exit status or the reason why
/// the code was stopped.
pub(crate) async fn run(checker: &Checker, actor: &ActorId, wanted: &TryOut) -> String {
    let Some(code) = wanted.code() else {
        return "Not tried: give either `python` or `command`.".to_owned();
    };
    if let Err(why) = checker.tries().count(actor) {
        return why;
    }
    let (world, note) = world(checker, actor, wanted.world).await;
    let report = try_code(checker, &world, code, LONGEST).await;
    if report.outcome == TestOutcome::NotRun {
        return format!("Not tried: {}", report.output);
    }
    let seconds = Duration::from_millis(report.millis).as_secs_f64();
    let how = format!("({}, {seconds:.1} s{note})", report.status());
    format!("{} {how}\n{}", report.in_short(), report.output)
}

/// Returns the state of the workspace to run the code on, and a note about the state for the
/// result.
async fn world(checker: &Checker, actor: &ActorId, wanted: TriedWorld) -> (Snapshot, &'static str) {
    let world = refresh::world(checker).await;
    match wanted {
        TriedWorld::Before => {
            let without = checker.state().without_the_run();
            (without, ", without the changes of this run")
        }
        TriedWorld::Now => {
            let drafts = checker.proposals().unapplied_drafts(actor);
            let with_drafts = laid_over(&world, drafts.iter());
            match with_drafts.overlay() == world.overlay() {
                true => (world, ""),
                false => (with_drafts, ", with your proposal that is not applied"),
            }
        }
    }
}
