//! Chat models: adapters (an OpenAI-compatible endpoint, local weights in this process, a replay of
//! a recording, an oracle that knows the solution) and the layers around every adapter (deadlines,
//! retries, fallbacks, continuation of long answers).

mod absent;
pub mod openai;
pub mod price;
pub mod resilient;

pub mod continuing;
mod http;
pub mod oracle;
pub mod providers;
pub mod registry;
pub mod replay;
mod sampled;
pub mod serving;
#[cfg(any(test, feature = "local"))]
mod shared;
pub mod socket;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod traced;
mod usage;

pub mod verifier;
pub mod weights;
