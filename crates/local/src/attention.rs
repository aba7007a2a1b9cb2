//! Attention over the cached keys and values of earlier positions.

use candle_core::{DType, Device, Result, Tensor, bail};

use super::dimensions::Dimensions;
use super::kernels::{CausalSoftmax, attend_rows};
use super::weight::RowKernels;

/// Initial capacity of a cache in positions.
const FIRST_ROOM: usize = 512;

/// The keys and values of one sequence, for each layer. The capacity grows as needed.
pub struct KeyValueCache {
    layers: Vec<LayerCache>,
    len: usize,
    room: usize,
    limit: usize,
    heads: usize,
    head: usize,
}

/// A layer of a cache, and what its queries see.
pub struct CachedLayer {
    pub index: usize,
    /// Number of visible positions, with the query's own; `None` if all are.
    pub visible: Option<usize>,
}

/// Keys and values of one layer. Each tensor has the shape (key heads, capacity, head size).
struct LayerCache {
    keys: Tensor,
    values: Tensor,
}

impl KeyValueCache {
    /// Creates an empty cache for at most `limit` positions.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn new(dimensions: &Dimensions, limit: usize, device: &Device) -> Result<Self> {
        let room = FIRST_ROOM.min(limit);
        let empty = || {
            let shape = (dimensions.kv_heads, room, dimensions.head);
            Tensor::zeros(shape, DType::F32, device)
        };
        let layers = (0..dimensions.layers)
            .map(|_| {
                Ok(LayerCache {
                    keys: empty()?,
                    values: empty()?,
                })
            })
            .collect::<Result<_>>()?;
        let (heads, head) = (dimensions.kv_heads, dimensions.head);
        Ok(Self {
            layers,
            len: 0,
            room,
            limit,
            heads,
            head,
        })
    }

    /// Returns the number of cached positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of positions for which memory is allocated.
    #[cfg(feature = "cuda")]
    pub fn room(&self) -> usize {
        self.room
    }

    /// Returns the keys and values of each layer. The shape of each tensor is (key heads, capacity,
    /// head size).
    #[cfg(feature = "cuda")]
    pub fn layers(&self) -> impl Iterator<Item = [&Tensor; 2]> {
        self.layers.iter().map(|layer| [&layer.keys, &layer.values])
    }

    /// Removes all positions after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Replaces the contents by the first `len` positions of `other`.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn copy_prefix(&mut self, other: &KeyValueCache, len: usize) -> Result<()> {
        let len = len.min(other.len);
        self.len = 0;
        self.make_room(len)?;
        for (to, from) in self.layers.iter().zip(&other.layers) {
            copy(&from.keys, &to.keys, len)?;
            copy(&from.values, &to.values, len)?;
        }
        self.len = len;
        Ok(())
    }

    /// Reserves capacity for `more` positions.
    ///
    /// # Errors
    /// The positions exceed the context window, or the device is out of memory.
    pub fn reserve(&mut self, more: usize) -> Result<()> {
        self.make_room(self.len + more)
    }

    /// Adds `more` positions to the length, after every layer has stored their keys and values.
    pub fn advance(&mut self, more: usize) {
        self.len = (self.len + more).min(self.room);
    }

    fn make_room(&mut self, wanted: usize) -> Result<()> {
        if wanted > self.limit {
            bail!(
                "{wanted} tokens do not fit in the context window of {}",
                self.limit
            )
        }
        if wanted <= self.room {
            return Ok(());
        }
        let room = (self.room * 2).max(wanted).min(self.limit);
        for layer in &mut self.layers {
            for tensor in [&mut layer.keys, &mut layer.values] {
                let grown =
                    Tensor::zeros((self.heads, room, self.head), DType::F32, tensor.device())?;
                copy(tensor, &grown, self.len)?;
                *tensor = grown;
            }
        }
        self.room = room;
        Ok(())
    }

    /// Stores the new keys and values of a layer and computes the attention of the new queries over
    /// the positions that they see. The shapes are (heads, new, head size) for `queries`, (key heads, new, head
    /// size) for `keys` and `values`, and (new, heads * head size) for the result.
    ///
    /// # Errors
    /// The shapes do not match, or the device is out of memory.
    pub fn attend(
        &self,
        layer: &CachedLayer,
        queries: &Tensor,
        keys: &Tensor,
        values: &Tensor,
        kernels: RowKernels,
    ) -> Result<Tensor> {
        let (heads, new, head) = queries.dims3()?;
        let Some(held) = self.layers.get(layer.index) else {
            bail!(
                "the cache has {} layers, not {}",
                self.layers.len(),
                layer.index + 1
            )
        };
        held.keys.slice_set(&keys.contiguous()?, 1, self.len)?;
        held.values.slice_set(&values.contiguous()?, 1, self.len)?;
        let len = self.len + new;
        let is_alone = new == 1 || kernels == RowKernels::Equal;
        if is_alone && queries.device().is_cpu() {
            let queries = queries.transpose(0, 1)?.contiguous()?;
            return attend_rows(&queries, &held.keys, &held.values, self.len, layer.visible);
        }
        let keys = held.keys.narrow(1, 0, len)?;
        let values = held.values.narrow(1, 0, len)?;
        // The query heads that share a key head become rows of one matrix, so keys are not
        // repeated.
        let sharing = heads / self.heads;
        let queries = queries.reshape((self.heads, sharing * new, head))?;
        let scores = queries.matmul(&keys.transpose(1, 2)?)?;
        let weights = softmax(scores, new, layer.visible, 1.0 / (head as f32).sqrt())?;
        weights
            .matmul(&values)?
            .reshape((heads, new, head))?
            .transpose(0, 1)?
            .reshape((new, heads * head))
    }
}

/// Computes the softmax over the keys that each position may see.
fn softmax(scores: Tensor, new: usize, visible: Option<usize>, scale: f32) -> Result<Tensor> {
    if scores.device().is_cpu() {
        scores.inplace_op1(&CausalSoftmax {
            queries: new,
            visible,
            scale,
        })?;
        return Ok(scores);
    }
    let scores = (scores * f64::from(scale))?;
    if new == 1 && visible.is_none() {
        return candle_nn::ops::softmax_last_dim(&scores);
    }
    let (_, rows, len) = scores.dims3()?;
    let mask: Vec<f32> = (0..rows)
        .flat_map(|row| {
            let end = len - new + row % new + 1;
            let seen = end.saturating_sub(visible.unwrap_or(end))..end;
            (0..len).map(move |key| match seen.contains(&key) {
                true => 0.0,
                false => f32::NEG_INFINITY,
            })
        })
        .collect();
    let mask = Tensor::from_vec(mask, (1, rows, len), scores.device())?;
    candle_nn::ops::softmax_last_dim(&scores.broadcast_add(&mask)?)
}

fn copy(from: &Tensor, to: &Tensor, len: usize) -> Result<()> {
    match len {
        0 => Ok(()),
        _ => to.slice_set(&from.narrow(1, 0, len)?.contiguous()?, 1, 0),
    }
}
