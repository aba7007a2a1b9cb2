//! Quantised weights that stay in the mapped file instead of being copied to the heap.
//!
//! The fast kernels repack most weights on first use; after that the mapped pages are clean and
//! the operating system may drop them, so the raw weights cost no memory of their own.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use candle_core::quantized::k_quants::{
    self, BlockQ2K, BlockQ3K, BlockQ4_0, BlockQ4_1, BlockQ4K, BlockQ5_0, BlockQ5_1, BlockQ5K,
    BlockQ6K, BlockQ8_0, BlockQ8_1, BlockQ8K, GgmlType,
};
use candle_core::quantized::{GgmlDType, QuantizedType};
use candle_core::{CpuStorage, Result, bail};
use memmap2::Mmap;

/// The weights of one tensor at `start`, `len` bytes long, as candle's storage.
///
/// # Errors
/// When the file ends before the tensor does, or the tensor is not aligned.
pub fn storage(
    map: &Arc<Mmap>,
    start: usize,
    len: usize,
    dtype: GgmlDType,
) -> Result<Box<dyn QuantizedType>> {
    let Some(bytes) = start.checked_add(len).and_then(|end| map.get(start..end)) else {
        bail!("the file ends before its weights do: it is damaged, fetch it again")
    };
    if !start.is_multiple_of(align_of::<f32>()) {
        bail!("a tensor starts at the odd offset {start}: the file is damaged, fetch it again")
    }
    Ok(match dtype {
        // Small tensors (norms, biases) and weights that are used dequantised.
        GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16 => dtype.from_data(Cow::Borrowed(bytes)),
        GgmlDType::Q4_0 => boxed::<BlockQ4_0>(map, start, len),
        GgmlDType::Q4_1 => boxed::<BlockQ4_1>(map, start, len),
        GgmlDType::Q5_0 => boxed::<BlockQ5_0>(map, start, len),
        GgmlDType::Q5_1 => boxed::<BlockQ5_1>(map, start, len),
        GgmlDType::Q8_0 => boxed::<BlockQ8_0>(map, start, len),
        GgmlDType::Q8_1 => boxed::<BlockQ8_1>(map, start, len),
        GgmlDType::Q2K => boxed::<BlockQ2K>(map, start, len),
        GgmlDType::Q3K => boxed::<BlockQ3K>(map, start, len),
        GgmlDType::Q4K => boxed::<BlockQ4K>(map, start, len),
        GgmlDType::Q5K => boxed::<BlockQ5K>(map, start, len),
        GgmlDType::Q6K => boxed::<BlockQ6K>(map, start, len),
        GgmlDType::Q8K => boxed::<BlockQ8K>(map, start, len),
    })
}

fn boxed<T: GgmlType + Send + Sync + 'static>(
    map: &Arc<Mmap>,
    start: usize,
    len: usize,
) -> Box<dyn QuantizedType> {
    Box::new(Mapped::<T> {
        map: Arc::clone(map),
        start,
        blocks: len / size_of::<T>(),
        kind: PhantomData,
    })
}

struct Mapped<T> {
    map: Arc<Mmap>,
    start: usize,
    blocks: usize,
    kind: PhantomData<fn() -> T>,
}

impl<T> Mapped<T> {
    fn blocks(&self) -> &[T] {
        let first = self.map[self.start..].as_ptr().cast::<T>();
        // SAFETY: `storage` checked that the bytes lie in the map and are aligned for `f32`, the
        // strictest field of any block; blocks are integers and floats, so every bit pattern is valid.
        unsafe { std::slice::from_raw_parts(first, self.blocks) }
    }
}

impl<T: GgmlType + Send + Sync> QuantizedType for Mapped<T> {
    fn dtype(&self) -> GgmlDType {
        T::DTYPE
    }

    fn matmul_t(&self, mkn: (usize, usize, usize), lhs: &[f32], dst: &mut [f32]) -> Result<()> {
        k_quants::matmul(mkn, lhs, self.blocks(), dst)
    }

    fn matmul_t_f16(
        &self,
        mkn: (usize, usize, usize),
        lhs: &[half::f16],
        dst: &mut [half::f16],
    ) -> Result<()> {
        k_quants::matmul_f16(mkn, lhs, self.blocks(), dst)
    }

    fn embedding(&self, ids: &[u32], rows: usize, hidden: usize) -> Result<CpuStorage> {
        let per_row = hidden / T::BLCK_SIZE;
        let blocks = self.blocks();
        let mut out = vec![0f32; ids.len() * hidden];
        for (id, row) in ids.iter().zip(out.chunks_exact_mut(hidden)) {
            let at = *id as usize;
            let Some(source) = blocks.get(at * per_row..(at + 1) * per_row) else {
                bail!("token {at} is outside the vocabulary of {rows}")
            };
            T::to_float(source, row);
        }
        Ok(CpuStorage::F32(out))
    }

    fn dequantize(&self, elem_count: usize) -> Result<CpuStorage> {
        let mut out = vec![0f32; elem_count];
        T::to_float(self.blocks(), &mut out);
        Ok(CpuStorage::F32(out))
    }

    fn storage_size_in_bytes(&self) -> usize {
        self.size()
    }

    fn as_ptr(&self) -> *const u8 {
        self.blocks().as_ptr().cast()
    }

    fn block_size(&self) -> usize {
        T::BLCK_SIZE
    }

    fn from_float(&mut self, _xs: &[f32]) {
        unreachable!("a tensor of a file is never quantised again")
    }

    fn from_float_imatrix(&mut self, _xs: &[f32], _weights: &[f32], _per_row: usize) {
        unreachable!("a tensor of a file is never quantised again")
    }

    fn size(&self) -> usize {
        self.blocks * size_of::<T>()
    }
}
