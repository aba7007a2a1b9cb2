//! Operations of the system that differ between Linux, macOS and Windows. Each module has one file
//! for each system; all other crates call these functions and do not ask which system it is.

pub mod files;
pub mod processes;
