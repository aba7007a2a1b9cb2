//! The configuration: its keys, its sources and its errors.
//!
//! Later sources override earlier ones: defaults, the user's file, the project's file if it is
//! trusted, environment variables, `-c key=value`.

mod check;
mod error;
mod key;
mod layer;
mod load;
mod project;
mod settings;
mod trust;

#[cfg(test)]
mod tests;

pub use error::{ConfigError, ConfigWarning};
pub use key::{KeyInfo, is_section, key_info, keys, nearest, schema};
pub use layer::ValueOrigin;
pub use load::{ConfigSources, FileState, LoadedConfig, Trust, load, user_file};
pub use project::{Fingerprint, ProgramSetting, ProjectFile, RunsIn};
pub use settings::{
    BlockingProblem, Config, LanguageSettings, ModelConfig, ModelKind, NetworkSettings,
    OutputLimitField, RoleSettings, RunSettings, SandboxMissing, SandboxSettings, TestSettings,
};
pub use trust::{ProcessTrust, TrustDecision, TrustError, TrustList};
