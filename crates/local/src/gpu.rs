//! Steps of the network on an NVIDIA GPU.

#[cfg(not(feature = "cuda"))]
mod absent;
#[cfg(feature = "cuda")]
mod cuda;

#[cfg(not(feature = "cuda"))]
pub use absent::{GpuStep, open};
#[cfg(feature = "cuda")]
pub use cuda::{GpuStep, open};
