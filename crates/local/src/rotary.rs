//! The rotary position embedding.

use candle_core::{Device, Result, Tensor};
use candle_nn::rotary_emb::{rope, rope_i};

use super::attention::KeyValueCache;
use super::dimensions::{RotaryAngles, RotaryPairing};

/// Cosines and sines of the rotary embedding, one row for each position.
pub struct RotaryTables {
    pub cosines: Tensor,
    pub sines: Tensor,
}

impl RotaryTables {
    /// Computes the tables for heads of `head` elements and `window` positions. Each frequency is divided
    /// by its factor, if there are factors.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn new(
        angles: RotaryAngles,
        factors: Option<&[f32]>,
        head: usize,
        window: usize,
        device: &Device,
    ) -> Result<Self> {
        let half = head / 2;
        let frequencies: Vec<f32> = (0..half)
            .map(|i| {
                let power = 2.0 * i as f32 / head as f32;
                let factor = factors.and_then(|factors| factors.get(i)).unwrap_or(&1.0);
                1.0 / (angles.base.powf(power) * factor * angles.divisor)
            })
            .collect();
        let frequencies = Tensor::from_vec(frequencies, (1, half), device)?;
        let positions = Tensor::arange(0f32, window as f32, device)?.reshape((window, 1))?;
        let angles = positions.matmul(&frequencies)?;
        Ok(Self {
            cosines: angles.cos()?,
            sines: angles.sin()?,
        })
    }

    /// Returns the table rows for the new positions of each sequence.
    ///
    /// # Errors
    /// The positions exceed the tables, or the device is out of memory.
    pub fn of(&self, added: &[(&KeyValueCache, usize)]) -> Result<Self> {
        let rows = |table: &Tensor| {
            let rows = (added.iter()).map(|(cache, new)| table.narrow(0, cache.len(), *new));
            let rows: Vec<Tensor> = rows.collect::<Result<_>>()?;
            Tensor::cat(&rows, 0)
        };
        Ok(Self {
            cosines: rows(&self.cosines)?,
            sines: rows(&self.sines)?,
        })
    }

    /// Rotates vectors of shape (heads, positions, head size).
    ///
    /// # Errors
    /// The shapes do not match.
    pub fn turn(&self, x: &Tensor, pairing: RotaryPairing) -> Result<Tensor> {
        let x = x.unsqueeze(0)?;
        let turned = match pairing {
            RotaryPairing::Halves => rope(&x, &self.cosines, &self.sines)?,
            RotaryPairing::Pairs => rope_i(&x, &self.cosines, &self.sines)?,
        };
        turned.squeeze(0)
    }
}
