//! Runs steps of the network on an NVIDIA GPU.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod cuda;

#[cfg(not(feature = "cuda"))]
pub use absent::{GpuStep, describe, open};
#[cfg(feature = "cuda")]
pub use cuda::{GpuStep, describe, open};
