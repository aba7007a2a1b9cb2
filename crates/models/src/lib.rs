//! Models: adapters (an OpenAI-compatible endpoint, weights in the process, a replay, an oracle) and the layers
//! that every one of them is wrapped in (deadlines, retries, fallbacks; long answers joined).

pub mod openai;
pub mod price;
pub mod resilient;

pub mod continuing;
pub mod oracle;
pub mod providers;
pub mod registry;
pub mod replay;
mod sampled;
pub mod socket;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod traced;
mod usage;

pub mod verifier;
pub mod weights;
