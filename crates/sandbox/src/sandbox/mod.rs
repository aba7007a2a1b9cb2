//! The sandbox of a command. The command can read the system, write in its shadow and in its own
//! temporary directory, and use only its own loopback network. When the sandbox ends, all its
//! processes end.
//!
//! Two processes of this program stand between Starling and the command. The *keeper* runs outside:
//! it opens the namespaces, and ends everything when Starling closes the keeper's standard input,
//! deliberately or by dying. The *init* is the first process inside: it sets up the root file
//! system, starts the command, reaps orphans, and watches memory and processes. Its report is the
//! last line of the plan's file.

mod bubblewrap;
mod confine;
mod filter;
mod identity;
mod init;
mod keeper;
mod loopback;
mod mounts;
mod narrow;
mod plan;
mod room;
mod shared;
mod sockets;
mod version;
mod view;
mod watch;
mod written;

use std::io;
use std::path::Path;

pub use plan::{Bounds, Confinement};
pub(crate) use plan::{Plan, Report, Tree, report_in, write_plan};
pub(crate) use view::administrators_files;
pub(crate) use written::free_space;

/// The first argument of a keeper; the second argument is the directory of the plan.
const KEEPER: &str = "@keeper";
/// The only argument of an init. Its standard input is the file of the plan.
const INIT: &str = "@init";
/// The first argument of the process around bubblewrap. The limit on processes and the command
/// follow.
const NARROW: &str = "@narrow";
/// The path of the running program. It stays valid if the program's file is replaced.
const SELF: &str = "/proc/self/exe";

/// Returns the program and the arguments of the keeper for the plan in `scratch`.
pub(super) fn keeper_of(scratch: &Path) -> (&'static str, [&std::ffi::OsStr; 2]) {
    (SELF, [KEEPER.as_ref(), scratch.as_os_str()])
}

/// Runs the sandbox process that this process was started as, and then exits. Returns if this
/// process is not a sandbox process. Every program that makes shadows must call this function
/// first, while it has one thread.
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

/// Adds the attempted operation to an error.
fn tried(what: &str) -> impl FnOnce(io::Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

// A test binary must also act as a sandbox process, before the test harness starts its threads.
#[cfg(any(test, feature = "testing"))]
#[used]
#[unsafe(link_section = ".init_array")]
static TAKE_PART: extern "C" fn() = {
    extern "C" fn part() {
        take_part();
    }
    part
};
