//! The keeper: a process outside of the sandbox that supervises it. It is the parent of the init
//! (the first process inside) and a child of Starling.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, setpriority_process, waitpid,
};
use rustix::thread::UnshareFlags;

use super::plan::{Confinement, Plan, Report, open_plan, read_plan, write_report};
use super::{bubblewrap, identity, init, loopback, narrow, tried};

const AHEAD: i32 = -10;
/// Exit status if the sandbox could not be created.
pub(super) const REFUSED: i32 = 125;

/// Runs the sandbox whose plan is in `scratch` and returns the exit status of its command. Standard
/// output and standard error of the command are written to the same pipe, so their order is kept.
pub(super) fn keep(scratch: &Path) -> i32 {
    let joined = rustix::stdio::dup2_stderr(io::stdout());
    let (Ok(file), Ok(())) = (open_plan(scratch), joined) else {
        return REFUSED;
    };
    match start(&file).and_then(|init| wait(init).map_err(tried("waiting for the sandbox"))) {
        Ok(status) => status,
        Err(message) => {
            let mut file = file;
            // If no report can be written, the sandbox counts as killed.
            let _ = write_report(&mut file, &Report::Refused(message));
            REFUSED
        }
    }
}

/// Starts the init, which writes a report to the file of the plan when the command ends.
fn start(file: &File) -> Result<Pid, String> {
    let plan = read_plan(file).map_err(tried("reading the plan"))?;
    // If the command runs as root, the kernel may not limit its processes. The init must then get
    // processor time before the processes that it checks, so the priority is raised. Other users
    // may not raise it and do not need to.
    let _ = setpriority_process(None, AHEAD);
    let started = match plan.confinement {
        Confinement::Namespaces => {
            open_namespaces(&plan)?;
            fork_init(file)
        }
        Confinement::SandboxExec => return Err("sandbox-exec exists only on macOS".to_owned()),
        Confinement::Nothing => fork_init(file),
        Confinement::Bubblewrap => {
            let command = bubblewrap::command(&plan).map_err(tried("bwrap"))?;
            let most = plan.bounds.ceiling_of_processes();
            spawn(narrow::around(command, most), file)
        }
    };
    started.map_err(tried("starting the sandbox"))
}

fn spawn(mut command: Command, file: &File) -> io::Result<Pid> {
    let child = command.stdin(file.try_clone()?).spawn()?;
    Ok(Pid::from_child(&child))
}

/// Forks the init from this process. Loading the program again would take longer than everything
/// else that the init does before the command starts.
fn fork_init(file: &File) -> io::Result<Pid> {
    // SAFETY: this process has one thread, so no lock is held and the copy is consistent.
    match unsafe { libc::fork() } {
        0 => {
            // Standard input becomes the file of the plan. It replaces the pipe to Starling, which
            // only the keeper may hold.
            let status = match rustix::stdio::dup2_stdin(file) {
                Ok(()) => init::serve(),
                Err(_) => REFUSED,
            };
            std::process::exit(status)
        }
        number => Pid::from_raw(number).ok_or_else(io::Error::last_os_error),
    }
}

/// Creates namespaces. The next process that is started is the first process in them.
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

/// Waits for the init to end, and kills it when standard input closes. Starling holds the other end
/// of standard input.
fn wait(init: Pid) -> io::Result<i32> {
    let ended = pidfd_open(init, PidfdFlags::empty())?;
    let lifeline = io::stdin();
    let mut both = [
        PollFd::new(&ended, PollFlags::IN),
        PollFd::new(&lifeline, PollFlags::IN),
    ];
    loop {
        match poll(&mut both, None) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    if both[0].revents().is_empty() {
        // When the first process of a PID namespace ends, the kernel kills all other processes in
        // it.
        kill_process(init, Signal::KILL)?;
    }
    loop {
        match waitpid(Some(init), WaitOptions::empty()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(seen) => {
                let status = seen.and_then(|(_, status)| status.exit_status());
                return Ok(status.unwrap_or(REFUSED));
            }
        }
    }
}
