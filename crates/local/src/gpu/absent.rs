//! Replaces the module `cuda` in builds without GPU support.

use candle_core::{Device, Result, Tensor, bail};

use super::super::attention::KeyValueCache;
use super::super::dimensions::Dimensions;

/// A type without values, because no step can run on a GPU.
pub enum GpuStep {}

/// Returns an error, because the program has no GPU support.
pub fn open() -> Result<Device> {
    bail!("the program was built without the feature `cuda`")
}

/// Returns an error, because the program has no GPU support.
pub fn describe() -> Result<String> {
    bail!("the program was built without the feature `cuda`")
}

impl GpuStep {
    /// Returns `None`, because the program has no GPU support.
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
