//! Stands in for the GPU in a program without support for one.

use candle_core::{Device, Result, Tensor, bail};

use super::super::attention::KeyValueCache;
use super::super::file::Dimensions;

/// Never created.
pub enum GpuStep {}

/// Always fails.
pub fn open() -> Result<Device> {
    bail!("the program was built without the feature `cuda`")
}

/// Always fails.
pub fn describe() -> Result<String> {
    bail!("the program was built without the feature `cuda`")
}

impl GpuStep {
    /// Always returns `None`.
    #[expect(clippy::unnecessary_wraps, reason = "the same as for a GPU")]
    pub fn new(
        _device: &Device,
        _parts: &[(&KeyValueCache, usize)],
        _dimensions: &Dimensions,
    ) -> Result<Option<Self>> {
        Ok(None)
    }

    pub fn attend(
        &self,
        _layer: usize,
        _projections: &[Tensor; 3],
        _biases: [Option<&Tensor>; 3],
        _turns: [&Tensor; 2],
    ) -> Result<Tensor> {
        match *self {}
    }

    pub fn gate(&self, _gate: Tensor, _up: &Tensor) -> Result<Tensor> {
        match *self {}
    }

    pub fn add_and_norm(
        &self,
        _x: &Tensor,
        _change: Option<&Tensor>,
        _weight: &Tensor,
        _epsilon: f32,
    ) -> Result<Tensor> {
        match *self {}
    }
}
