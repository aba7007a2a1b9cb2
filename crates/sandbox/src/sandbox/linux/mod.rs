//! The sandbox on Linux. The command can read the system, write in its shadow and in its own
//! temporary directory, and use only its own loopback network. When the sandbox ends, all its
//! processes end.
//!
//! Two processes of this program run between Starling and the command. The *keeper* runs outside:
//! it opens the namespaces, and ends everything when its standard input closes. The *init* is the
//! first process inside: it sets up the root file system, starts the command, reaps orphans, and
//! watches memory and processes.

mod bubblewrap;
mod confine;
mod filter;
mod identity;
mod init;
mod keeper;
mod loopback;
mod marked;
mod mounts;
mod narrow;
mod room;
mod shared;
mod sockets;
mod version;
mod view;
mod watch;
mod written;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use super::{Bounds, Confinement, KEEPER, MARKER, Mechanism, plan, tried};
use crate::Kind;
pub(crate) use marked::kill_marked;
pub(crate) use view::administrators_files;

/// The only argument of an init. Its standard input is the file of the plan.
const INIT: &str = "@init";
/// The first argument of the process around bubblewrap. The limit on processes and the command
/// follow.
const NARROW: &str = "@narrow";
/// The path of the running program. It stays valid if the program's file is replaced.
const SELF: &str = "/proc/self/exe";

/// The smallest limit on processes that a PID namespace accepts.
const LEAST: u32 = 301;

/// Advice for the user if no sandbox can be created.
pub const SANDBOX_ADVICE: &str = "install bubblewrap or allow unprivileged user namespaces";
/// Advice for the user if every check needs a copy of the project.
pub const COPY_ADVICE: Option<&str> = Some("allow unprivileged user namespaces for faster checks");

/// The mechanisms that can create a sandbox, best first.
pub(crate) const MECHANISMS: &[Mechanism] = &[
    Mechanism {
        kind: Kind::Overlay,
        confinement: Confinement::Namespaces,
        reason: "overlay file systems work in user namespaces",
    },
    Mechanism {
        kind: Kind::Copy,
        confinement: Confinement::Namespaces,
        reason: "user namespaces work",
    },
    Mechanism {
        kind: Kind::Copy,
        confinement: Confinement::Bubblewrap,
        reason: "bubblewrap works",
    },
];

/// Returns the program and the arguments of the keeper for the plan in `scratch`.
///
/// # Errors
/// Never on Linux.
pub(crate) fn keeper_of(scratch: &Path) -> io::Result<(OsString, [&OsStr; 2])> {
    Ok((SELF.into(), [KEEPER.as_ref(), scratch.as_os_str()]))
}

/// Returns the numbers of this process's user and group.
pub(crate) fn user() -> (u32, u32) {
    let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
    (user.as_raw(), group.as_raw())
}

/// Runs the sandbox process (keeper or init) if this process was started as one, and then exits.
/// Otherwise returns. Every program that creates shadows must call this function first, while it
/// has only one thread.
pub fn take_part() {
    let mut arguments = std::env::args_os().skip(1);
    let status = match (arguments.next(), arguments.next()) {
        (Some(part), Some(scratch)) if part == KEEPER => keeper::keep(Path::new(&scratch)),
        (Some(part), None) if part == INIT => init::serve(),
        (Some(part), Some(most)) if part == NARROW => narrow::enter(&most),
        (Some(_) | None, _) => return,
    };
    std::process::exit(status);
}

impl Bounds {
    /// Returns the limit on processes that the kernel enforces. It is higher than the limit that
    /// the init checks, so that the init detects the excess first and reports it.
    pub(super) fn ceiling_of_processes(self) -> u32 {
        self.processes.saturating_mul(2).saturating_add(LEAST)
    }
}
