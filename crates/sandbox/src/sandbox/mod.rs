//! The sandbox of a command: it reads the system, writes in its shadow and in a temporary directory of
//! its own, reaches no network but its own loopback, and is ended with all that it started.
//!
//! Two processes of this very program stand between Starling and the command. The *keeper* lives
//! outside: it opens the namespaces, and ends everything when Starling lets go of its standard input,
//! dead or alive. The *init* is the first process inside: it furnishes the room, starts the command,
//! collects orphans, and watches memory and processes. What it saw is the last line of the plan's file.

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

/// The first argument of a keeper; the second is the directory of the plan.
const KEEPER: &str = "@keeper";
/// The only argument of an init; its standard input is the file of the plan.
const INIT: &str = "@init";
/// The first argument of what stands around bubblewrap; the others are its command.
const NARROW: &str = "@narrow";
/// Where this program lies, whatever became of its file.
const SELF: &str = "/proc/self/exe";

/// The program and the arguments of the keeper of a plan in `scratch`.
pub(super) fn keeper_of(scratch: &Path) -> (&'static str, [&std::ffi::OsStr; 2]) {
    (SELF, [KEEPER.as_ref(), scratch.as_os_str()])
}

/// Plays the part of a sandbox when this process was started for that, and then never returns. To be
/// called first by every program that makes shadows, while it has one thread.
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

/// An error with what was tried.
fn tried(what: &str) -> impl FnOnce(io::Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}

// The program of the tests plays its part, too, before any of its threads begin.
#[cfg(any(test, feature = "testing"))]
#[used]
#[unsafe(link_section = ".init_array")]
static TAKE_PART: extern "C" fn() = {
    extern "C" fn part() {
        take_part();
    }
    part
};
