//! Shadows (private copies of a workspace in which commands run without changing the user's files),
//! and the sandbox around each command.

mod lay_over;
mod sandbox;
mod shadow;

pub use sandbox::{Bounds, COPY_ADVICE, Confinement, SANDBOX_ADVICE, take_part};
pub use shadow::process::{Captured, End};
pub use shadow::scratch::{Scratch, sweep_scratch};
pub use shadow::{Container, Kind, Policy, ShadowCommand, ShadowError, Shadows, Unconfined};
pub use starling_workspace::cache_dir;
