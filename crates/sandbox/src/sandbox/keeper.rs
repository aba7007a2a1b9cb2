//! The keeper (the process that supervises a command) on systems without namespaces. It starts the
//! command. When standard input closes, it kills the command and all processes that the command
//! started.

use std::io::{self, Read};
use std::path::Path;
use std::process::Child;

use starling_platform::processes::exit_code;

use super::plan::{Plan, Report, open_plan, read_plan, write_report};
use super::tried;

/// Exit status if the sandbox could not be created.
const REFUSED: i32 = 125;
/// Exit status of a command that was killed.
const KILLED: i32 = 137;

/// A command that was started, and a function that kills it and all processes that it started.
pub(super) struct StartedCommand {
    pub child: Child,
    pub end: Box<dyn Fn() + Send + Sync>,
}

/// Runs the command whose plan is in `scratch` and returns its exit status.
pub(super) fn keep(scratch: &Path, start: fn(&Plan) -> Result<StartedCommand, String>) -> i32 {
    let Ok(mut file) = open_plan(scratch) else {
        return REFUSED;
    };
    let plan = read_plan(&file).map_err(tried("reading the plan"));
    let ended = plan.and_then(|plan| wait(start(&plan)?).map_err(tried("waiting")));
    let (report, status) = match ended {
        Ok((status, end)) => {
            // If no report can be written, the command counts as killed.
            let _ = write_report(&mut file, &Report::Exited(status));
            end();
            return status;
        }
        Err(message) => (Report::Refused(message), REFUSED),
    };
    let _ = write_report(&mut file, &report);
    status
}

/// A function that kills the command and all processes that it started.
type KillFunction = std::sync::Arc<dyn Fn() + Send + Sync>;

fn wait(started: StartedCommand) -> io::Result<(i32, KillFunction)> {
    let StartedCommand { mut child, end } = started;
    let end = KillFunction::from(end);
    let at_close = KillFunction::clone(&end);
    std::thread::spawn(move || {
        // Starling never writes to this pipe, so reading returns only when the pipe is closed.
        let _ = io::stdin().read(&mut [0]);
        at_close();
        std::process::exit(KILLED)
    });
    let status = child.wait()?;
    Ok((exit_code(status), end))
}
