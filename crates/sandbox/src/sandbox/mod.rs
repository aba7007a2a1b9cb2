//! The sandbox of a command. Each system has its own:
//!
//! - On Linux, the command can read the system, write in its shadow and in its own temporary
//!   directory, and use only its own loopback network (`linux`).
//! - On macOS, `sandbox-exec` restricts reading, writing and the network (`macos`).
//! - On Windows there is no sandbox: if the user allows it, the command runs in a job object
//!   (`windows`).
//!
//! On every system a *keeper*, a process of this program, runs between Starling and the command.
//! It ends everything when Starling closes the keeper's standard input, deliberately or by dying.
//! The report is the last line of the plan's file.

#[cfg(any(target_os = "macos", windows))]
mod keeper;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(target_os = "macos", test))]
mod macos;
mod plan;
#[cfg(any(target_os = "linux", target_os = "macos", test))]
mod secrets;
#[cfg(any(test, feature = "testing"))]
mod testing;
#[cfg(windows)]
mod windows;

use std::io;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos::system;
#[cfg(windows)]
use windows as system;

pub use plan::{Bounds, Confinement};
pub(crate) use plan::{Plan, Report, Tree, report_in, write_plan};
pub use system::{COPY_ADVICE, SANDBOX_ADVICE, take_part};
pub(crate) use system::{MECHANISMS, administrators_files, keeper_of, kill_marked, user};

/// The first argument of a keeper; the second argument is the directory of the plan.
const KEEPER: &str = "@keeper";
/// Environment variable of every process in a shadow. Its value is the scratch directory.
pub(crate) const MARKER: &str = "STARLING_SHADOW";

/// A way to make shadows (private copies of a project) and to confine the commands in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mechanism {
    pub kind: crate::Kind,
    pub confinement: Confinement,
    /// Why this mechanism is chosen if its probe succeeds, as text for the user.
    pub reason: &'static str,
}

/// Adds the attempted operation to an error.
fn tried(what: &str) -> impl FnOnce(io::Error) -> String + '_ {
    move |error| format!("{what}: {error}")
}
