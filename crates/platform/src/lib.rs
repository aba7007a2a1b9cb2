//! System operations that differ between Linux, macOS and Windows. Each module has one file per
//! system. All other crates call these functions and do not distinguish systems.

pub mod files;
pub mod processes;
