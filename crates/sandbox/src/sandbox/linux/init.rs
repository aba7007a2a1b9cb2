//! The init: the first process of a sandbox. It starts the command and watches it.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitOptions, kill_process,
    pidfd_open, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal,
    setpriority_process, setrlimit, setsid, wait,
};
use rustix::thread::{UnshareFlags, set_no_new_privs};

use super::plan::{Confinement, Plan, Report, read_plan, write_report};
use super::watch::{Excess, SandboxProcesses, Scope};
use super::written::DiskUsage;
use super::{confine, identity, keeper, room, tried, version};

/// Interval between two checks of the resources that the command uses.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};
/// Niceness of the command, so that the editor and the init run first.
const NICE: i32 = 5;
/// Maximum number of ended processes that are reaped between two checks.
const AT_ONCE: usize = 64;
/// Maximum time to wait for killed processes to end.
const GRACE: Duration = Duration::from_secs(2);

/// Runs the command of the plan, which is read from standard input, and returns its exit status.
pub(super) fn serve() -> i32 {
    let Ok(mut talk) = io::stdin().as_fd().try_clone_to_owned().map(File::from) else {
        return keeper::REFUSED;
    };
    let started = talk
        .rewind()
        .and_then(|()| read_plan(&talk))
        .map_err(tried("reading the plan"))
        .and_then(|plan| {
            let written = DiskUsage::of(&plan).map_err(tried("reading the shadow"))?;
            Ok((start(&plan)?, written, plan))
        });
    let (report, status) = match started {
        Ok((child, mut written, plan)) => attend(&child, &plan, &mut written),
        Err(message) => (Report::Refused(message), keeper::REFUSED),
    };
    // If no report can be written, the sandbox counts as killed.
    let _ = write_report(&mut talk, &report);
    status
}

fn start(plan: &Plan) -> Result<Child, String> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    // The call fails if this process already leads a session. The error can be ignored.
    let _ = setsid();
    match plan.confinement {
        Confinement::Namespaces => {
            room::furnish(plan)?;
            // The command runs as the user, not as root of the namespace, so it cannot undo the
            // mounts.
            let user = (plan.user, plan.group);
            identity::become_user(UnshareFlags::empty(), user, (0, 0))
                .map_err(tried("switching to the user"))?;
        }
        Confinement::Bubblewrap => {}
        // Orphaned processes become children of the init, as they do inside a PID namespace.
        Confinement::SandboxExec | Confinement::Nothing => set_child_subreaper(Some(Pid::INIT))
            .map_err(|error| tried("collecting orphans")(error.into()))?,
    }
    limit(plan).map_err(tried("setting limits"))?;
    let temporary = room::temporary(plan);
    let home = temporary.join("home");
    fs::create_dir_all(&home).map_err(tried("creating the home directory"))?;
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(&plan.line)
        .current_dir(plan.tree.root())
        .env("HOME", &home)
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null());
    let child = confine::start(plan, command)?;
    stand_back(&child);
    Ok(child)
}

/// Sets the limits that the kernel enforces.
fn limit(plan: &Plan) -> io::Result<()> {
    set_no_new_privs(true)?;
    // No process in the sandbox may inspect this process.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let at_most = |value| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    setrlimit(Resource::Core, at_most(0))?;
    setrlimit(Resource::Fsize, at_most(plan.bounds.file))?;
    match plan.confinement {
        Confinement::Namespaces | Confinement::Bubblewrap
            if version::kernel() >= version::COUNTS_BY_NAMESPACE =>
        {
            // The kernel's limit is higher than the limit that the init checks, so that the init
            // detects the excess first and reports it.
            let processes = plan.bounds.ceiling_of_processes();
            setrlimit(Resource::Nproc, at_most(processes.into()))?;
        }
        // In this case, the limit would count all processes of the user.
        Confinement::Namespaces
        | Confinement::Bubblewrap
        | Confinement::SandboxExec
        | Confinement::Nothing => {}
    }
    Ok(())
}

/// Lowers the command's CPU priority and makes it the first process that the kernel kills when
/// memory runs out.
fn stand_back(child: &Child) {
    // Both settings are optional, so errors are ignored.
    let _ = setpriority_process(Some(Pid::from_child(child)), NICE);
    let _ = fs::write(format!("/proc/{}/oom_score_adj", child.id()), "1000");
}

/// Waits for the end of the command, or ends it when it exceeds a limit.
fn attend(child: &Child, plan: &Plan, written: &mut DiskUsage) -> (Report, i32) {
    let command = Pid::from_child(child);
    let scope = match plan.confinement {
        Confinement::Namespaces | Confinement::Bubblewrap => Scope::Namespace,
        Confinement::SandboxExec | Confinement::Nothing => Scope::Descendants,
    };
    let mut family = SandboxProcesses::of(rustix::process::getpid(), scope, room::in_memory(plan));
    let ended = pidfd_open(command, PidfdFlags::empty()).ok();
    loop {
        let in_memory = family.excess(plan.bounds);
        let excess = in_memory.or_else(|| written.excess(family.unnamed()));
        let seen = match (collect(command), excess) {
            (Some(status), None) | (Some(status @ 0), Some(_)) => {
                Some((Report::Exited(status), status))
            }
            // If the limit on processes is reached, a shell may fail and end before the check. The
            // excess is reported instead of the shell's status.
            (Some(_) | None, Some(excess)) => {
                Some((stopped_for(excess), 128 + Signal::KILL.as_raw()))
            }
            (None, None) => None,
        };
        if let Some(seen) = seen {
            // When the first process of a PID namespace ends, the kernel kills all others in it.
            if scope == Scope::Descendants {
                family.kill(GRACE);
            }
            return seen;
        }
        let mut on: Vec<PollFd<'_>> = ended
            .iter()
            .map(|ended| PollFd::new(ended, PollFlags::IN))
            .collect();
        // The loop checks the command and its resources again, whether `poll` was interrupted or
        // not.
        let _ = poll(&mut on, Some(&TICK));
    }
}

fn stopped_for(excess: Excess) -> Report {
    match excess {
        Excess::Memory => Report::OutOfMemory,
        Excess::Processes => Report::TooManyProcesses,
        Excess::Disk => Report::WroteTooMuch,
        Excess::FullDisk => Report::DiskFull,
    }
}

/// Reaps ended processes, and returns the command's status if the command is one of them. At most
/// `AT_ONCE` processes are reaped, because a command can start processes faster than they are
/// reaped.
fn collect(command: Pid) -> Option<i32> {
    for _ in 0..AT_ONCE {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == command => {
                return Some(code(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => return None,
        }
    }
    None
}

fn code(status: ExitStatus) -> i32 {
    let signal = || status.signal().map_or(-1, |signal| 128 + signal);
    status.code().unwrap_or_else(signal)
}

impl SandboxProcesses {
    /// Kills all processes that the init started. Repeats until none is left, because a process can
    /// start another one after the list was read.
    fn kill(&self, grace: Duration) {
        let start = Instant::now();
        loop {
            let mut members = self.members();
            members.retain(|member| member.lives);
            for member in &members {
                let _ = kill_process(member.pid, Signal::KILL);
            }
            for _ in 0..AT_ONCE {
                let _ = wait(WaitOptions::NOHANG);
            }
            if members.is_empty() || start.elapsed() > grace {
                return;
            }
            std::thread::yield_now();
        }
    }
}
