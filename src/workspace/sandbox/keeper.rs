//! The keeper: outside of the sandbox, between Starling and the init.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open, setpriority_process};
use rustix::thread::UnshareFlags;

use super::plan::{Confinement, Plan, Report, open_plan, read_plan, write_report};
use super::{INIT, SELF, bubblewrap, identity, loopback, narrow, tried};

const AHEAD: i32 = -10;
/// What is said where the sandbox could not be made.
pub(super) const REFUSED: i32 = 125;

/// Keeps the sandbox that is planned in `scratch`; the status is that of its command, whose two
/// outputs are joined in the order of their writing.
pub(super) fn keep(scratch: &Path) -> i32 {
    let joined = rustix::stdio::dup2_stderr(io::stdout());
    let (Ok(file), Ok(())) = (open_plan(scratch), joined) else {
        return REFUSED;
    };
    match start(&file).and_then(|init| wait(init).map_err(tried("waiting for the sandbox"))) {
        Ok(status) => status,
        Err(message) => {
            let mut file = file;
            // Without a report the sandbox counts as killed.
            let _ = write_report(&mut file, &Report::Refused(message));
            REFUSED
        }
    }
}

fn start(file: &File) -> Result<Child, String> {
    let plan = read_plan(file).map_err(tried("reading the plan"))?;
    // Where the system keeps no limit of processes, for an administrator's command, the watch must not
    // wait behind it. Others may not go first, and need not.
    let _ = setpriority_process(None, AHEAD);
    let mut command = match plan.confinement {
        Confinement::Namespaces => {
            open_namespaces(&plan)?;
            own_init()
        }
        Confinement::Bubblewrap => {
            let command = bubblewrap::command(&plan).map_err(tried("bwrap"))?;
            narrow::around(command, plan.bounds.ceiling_of_processes())
        }
        Confinement::Nothing => own_init(),
    };
    let talk = file.try_clone().map_err(tried("handing the plan over"))?;
    command
        .stdin(talk)
        .spawn()
        .map_err(tried("starting the sandbox"))
}

fn own_init() -> Command {
    let mut command = Command::new(SELF);
    command.arg(INIT);
    command
}

/// What is started next is the first process of its own world.
fn open_namespaces(plan: &Plan) -> Result<(), String> {
    let others = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS;
    identity::become_user(others, (0, 0), (plan.user, plan.group))
        .map_err(tried("opening namespaces"))?;
    loopback::up().map_err(tried("bringing the loopback device up"))
}

/// Waits for the init to end, and ends it when standard input does: Starling holds the other end.
fn wait(mut init: Child) -> io::Result<i32> {
    let ended = pidfd_open(Pid::from_child(&init), PidfdFlags::empty())?;
    let lifeline = io::stdin();
    let mut both = [
        PollFd::new(&ended, PollFlags::IN),
        PollFd::new(&lifeline, PollFlags::IN),
    ];
    loop {
        match poll(&mut both, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    if both[0].revents().is_empty() {
        // When the first process of a namespace has ended, all others in it have, too.
        init.kill()?;
    }
    Ok(init.wait()?.code().unwrap_or(REFUSED))
}
