//! Commands on Windows. There is no sandbox: if the user allows it, a command runs in a job object,
//! which limits its memory and its processes and ends everything that it started.
//!
//! The command line is run by the `sh` of Git for Windows, because a project's test command is
//! written for a shell of Unix.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::windows::io::AsHandle;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use starling_platform::processes::{Job, JobLimits};

use super::keeper::{self, StartedCommand};
use super::plan::{Confinement, Plan};
use super::{KEEPER, Mechanism, tried};

/// What a user can do where no sandbox can be made.
pub const SANDBOX_ADVICE: &str = "run Starling in WSL, where the Linux sandbox is available";
/// Every check needs a copy of the project, and nothing can be done about it.
pub const COPY_ADVICE: Option<&str> = None;

/// Nothing can make a sandbox.
pub(crate) const MECHANISMS: &[Mechanism] = &[];

/// Variables with the directories in which Git for Windows is installed, and its path there. `PATH`
/// is not searched: it belongs to the command and can lead into the project.
const SHELLS: [(&str, &str); 3] = [
    ("ProgramFiles", r"Git\bin\sh.exe"),
    ("ProgramFiles(x86)", r"Git\bin\sh.exe"),
    ("LOCALAPPDATA", r"Programs\Git\bin\sh.exe"),
];

/// Returns the program and the arguments of the keeper for the plan in `scratch`.
///
/// # Errors
/// The path of this program is unknown.
pub(crate) fn keeper_of(scratch: &Path) -> io::Result<(OsString, [&OsStr; 2])> {
    let program = std::env::current_exe()?;
    Ok((program.into(), [KEEPER.as_ref(), scratch.as_os_str()]))
}

/// Returns zeros: Windows has no numbers of users and groups.
pub(crate) fn user() -> (u32, u32) {
    (0, 0)
}

/// Returns nothing: without a sandbox, nothing is hidden.
pub(crate) fn administrators_files() -> &'static [PathBuf] {
    &[]
}

/// Does nothing: the processes of a command end with its keeper's job.
pub(crate) fn kill_marked(_scratch: &Path) {}

/// Runs the keeper that this process was started as, and then exits. Returns if this process is not a
/// keeper. Every program that makes shadows must call this function first, while it has one thread.
pub fn take_part() {
    let mut arguments = std::env::args_os().skip(1);
    if let (Some(part), Some(scratch)) = (arguments.next(), arguments.next())
        && part == KEEPER
    {
        std::process::exit(keeper::keep(Path::new(&scratch), start));
    }
}

fn start(plan: &Plan) -> Result<StartedCommand, String> {
    match plan.confinement {
        Confinement::Nothing => {}
        Confinement::Namespaces | Confinement::Bubblewrap | Confinement::SandboxExec => {
            return Err("Windows has no sandbox".to_owned());
        }
    }
    let shell = shell().ok_or("no shell runs the test command: install Git for Windows")?;
    let temporary = plan.scratch.join("tmp");
    let home = temporary.join("home");
    fs::create_dir_all(&home).map_err(tried("creating the home directory"))?;
    let limits = JobLimits {
        memory: Some(plan.bounds.memory),
        processes: Some(plan.bounds.processes),
    };
    let job = Job::new(limits).map_err(tried("creating the job object"))?;
    // The command is started by a process of the job, so nothing that it starts can be outside.
    job.add_this_process()
        .map_err(tried("creating the job object"))?;
    let output = io::stdout().as_handle().try_clone_to_owned();
    let child = Command::new(shell)
        .arg("-c")
        .arg(&plan.line)
        .current_dir(plan.tree.root())
        .envs(["HOME", "USERPROFILE"].map(|name| (name, &home)))
        .envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, &temporary)))
        .stdin(Stdio::null())
        .stderr(output.map_err(tried("redirecting the output"))?)
        .spawn()
        .map_err(tried("starting a shell"))?;
    Ok(StartedCommand {
        child,
        end: Box::new(move || job.kill()),
    })
}

fn shell() -> Option<PathBuf> {
    let installed = SHELLS.iter().filter_map(|(variable, path)| {
        let directory = std::env::var_os(variable)?;
        Some(Path::new(&directory).join(path))
    });
    installed.into_iter().find(|path| path.is_file())
}
