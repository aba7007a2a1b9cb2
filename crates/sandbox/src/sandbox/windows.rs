//! Commands on Windows. There is no sandbox: if the user allows it, a command runs in a job object,
//! which limits its memory and its processes and ends everything that it started.
//!
//! The command line is run by the `sh` of Git for Windows, because the test command of a project is
//! written for a Unix shell.

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

/// Advice for the user if no sandbox can be created.
pub const SANDBOX_ADVICE: &str = "run Starling in WSL, where the Linux sandbox is available";
/// Advice for the user if every check needs a copy of the project. On Windows, a copy is always
/// needed.
pub const COPY_ADVICE: Option<&str> = None;

/// No mechanism on Windows can create a sandbox.
pub(crate) const MECHANISMS: &[Mechanism] = &[];

/// Variables that contain an installation directory, each with the path of Git's shell below it.
/// `PATH` is not searched, because it belongs to the command and can lead into the project.
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

/// Returns zeros, because users and groups have no numbers on Windows.
pub(crate) fn user() -> (u32, u32) {
    (0, 0)
}

/// Returns nothing, because without a sandbox nothing is hidden.
pub(crate) fn administrators_files() -> &'static [PathBuf] {
    &[]
}

/// Does nothing, because all processes of a command end with the job object of its keeper.
pub(crate) fn kill_marked(_scratch: &Path) {}

/// Runs the keeper if this process was started as one, and then exits. Otherwise returns. Every
/// program that creates shadows must call this function first, while it has only one thread.
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
    // This process joins the job object before it starts the command, so every process that the
    // command starts is in the job, too.
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
