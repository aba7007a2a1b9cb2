//! The sandbox on macOS. Limitation: it has not been run on a Mac yet. The text of the profile is
//! tested on every system.

mod profile;
#[cfg(target_os = "macos")]
pub(super) mod system;
