//! Commands on macOS, run by `sandbox-exec` with a profile that Starling generates.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, setrlimit};
use starling_platform::processes::{ProcessGroup, lead_group};

use super::profile::profile;
use crate::Kind;
use crate::sandbox::keeper::{self, StartedCommand};
use crate::sandbox::plan::{Confinement, Plan};
use crate::sandbox::{KEEPER, Mechanism, tried};

const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// Advice for the user if no sandbox can be created.
pub const SANDBOX_ADVICE: &str = "use a macOS with /usr/bin/sandbox-exec";
/// Advice for the user if every check needs a copy of the project. On macOS, a copy is always
/// needed.
pub const COPY_ADVICE: Option<&str> = None;

/// The mechanisms that can create a sandbox.
pub(crate) const MECHANISMS: &[Mechanism] = &[Mechanism {
    kind: Kind::Copy,
    confinement: Confinement::SandboxExec,
    reason: "sandbox-exec works",
}];

/// Returns the program and the arguments of the keeper for the plan in `scratch`.
///
/// # Errors
/// The path of this program is unknown.
pub(crate) fn keeper_of(scratch: &Path) -> io::Result<(OsString, [&OsStr; 2])> {
    let program = std::env::current_exe()?;
    Ok((program.into(), [KEEPER.as_ref(), scratch.as_os_str()]))
}

/// Returns the numbers of this process's user and group.
pub(crate) fn user() -> (u32, u32) {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    (user.as_raw(), group.as_raw())
}

/// Returns nothing, because users of macOS do not work as root.
pub(crate) fn administrators_files() -> &'static [PathBuf] {
    &[]
}

/// Does nothing, because macOS does not show the environment of other processes. A process that
/// left the command's process group keeps running inside the sandbox.
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
    let temporary = plan.scratch.join("tmp");
    let home = temporary.join("home");
    fs::create_dir_all(&home).map_err(tried("creating the home directory"))?;
    let mut command = match plan.confinement {
        Confinement::SandboxExec => {
            let mut command = Command::new(SANDBOX_EXEC);
            command.arg("-p").arg(profile(plan)).arg("/bin/sh");
            command
        }
        Confinement::Nothing => Command::new("/bin/sh"),
        Confinement::Namespaces | Confinement::Bubblewrap => {
            return Err("only Linux has this sandbox".to_owned());
        }
    };
    limit(plan).map_err(tried("setting limits"))?;
    let output = io::stdout().as_fd().try_clone_to_owned();
    command
        .arg("-c")
        .arg(&plan.line)
        .current_dir(plan.tree.root())
        .env("HOME", &home)
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null())
        .stderr(output.map_err(tried("redirecting the output"))?);
    lead_group(&mut command);
    let child = command.spawn().map_err(tried("starting a shell"))?;
    let group = ProcessGroup::of(child.id()).map_err(tried("creating the process group"))?;
    Ok(StartedCommand {
        child,
        end: Box::new(move || group.kill()),
    })
}

/// Sets the limits that the system enforces. The command inherits them.
fn limit(plan: &Plan) -> io::Result<()> {
    let at_most = |value| Rlimit {
        current: Some(value),
        maximum: Some(value),
    };
    setrlimit(Resource::Core, at_most(0))?;
    setrlimit(Resource::Fsize, at_most(plan.bounds.file))?;
    Ok(())
}
