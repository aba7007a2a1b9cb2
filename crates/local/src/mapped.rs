//! Quantised weights that remain in the mapped file instead of being copied to the heap.
//!
//! The kernels in `gemv` read the blocks from there. candle's kernels, for other layouts, repack them on
//! first use. The mapped pages are unmodified, so the operating system may discard them and read them
//! again.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use candle_core::quantized::k_quants::{
    self, BlockQ2K, BlockQ3K, BlockQ4_0, BlockQ4_1, BlockQ4K, BlockQ5_0, BlockQ5_1, BlockQ5K,
    BlockQ6K, BlockQ8_0, BlockQ8_1, BlockQ8K, GgmlType,
};
use candle_core::quantized::{GgmlDType, QuantizedType};
use candle_core::{CpuStorage, Result, bail};
use half::f16;
use memmap2::Mmap;

/// The bytes of one tensor in the mapped file.
#[derive(Clone)]
pub struct TensorSpan {
    map: Arc<Mmap>,
    start: usize,
    len: usize,
}

impl TensorSpan {
    /// Creates the span of a tensor.
    ///
    /// # Errors
    /// The file is too short, or the tensor is not aligned.
    pub fn new(map: &Arc<Mmap>, start: usize, len: usize) -> Result<Self> {
        if start.checked_add(len).is_none_or(|end| end > map.len()) {
            bail!("the file ends before its weights do: it is damaged, fetch it again")
        }
        if !start.is_multiple_of(align_of::<f32>()) {
            bail!(
                "a tensor starts at the misaligned offset {start}: the file is damaged, fetch it again"
            )
        }
        Ok(Self {
            map: Arc::clone(map),
            start,
            len,
        })
    }

    /// Returns one of `count` parts of equal length.
    ///
    /// # Errors
    /// The part is not aligned.
    pub fn part(&self, index: usize, count: usize) -> Result<Self> {
        let len = self.len / count.max(1);
        Self::new(&self.map, self.start + index * len, len)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.map[self.start..self.start + self.len]
    }

    /// Returns the tensor in candle's storage type.
    pub fn storage(&self, dtype: GgmlDType) -> Box<dyn QuantizedType> {
        match dtype {
            // Small tensors (norms, biases), and weights that are used without quantisation.
            GgmlDType::F32 | GgmlDType::F16 | GgmlDType::BF16 => {
                dtype.from_data(Cow::Borrowed(self.bytes()))
            }
            GgmlDType::Q4_0 => self.mapped::<BlockQ4_0>(),
            GgmlDType::Q4_1 => self.mapped::<BlockQ4_1>(),
            GgmlDType::Q5_0 => self.mapped::<BlockQ5_0>(),
            GgmlDType::Q5_1 => self.mapped::<BlockQ5_1>(),
            GgmlDType::Q8_0 => self.mapped::<BlockQ8_0>(),
            GgmlDType::Q8_1 => self.mapped::<BlockQ8_1>(),
            GgmlDType::Q2K => self.mapped::<BlockQ2K>(),
            GgmlDType::Q3K => self.mapped::<BlockQ3K>(),
            GgmlDType::Q4K => self.mapped::<BlockQ4K>(),
            GgmlDType::Q5K => self.mapped::<BlockQ5K>(),
            GgmlDType::Q6K => self.mapped::<BlockQ6K>(),
            GgmlDType::Q8K => self.mapped::<BlockQ8K>(),
        }
    }

    fn mapped<T: GgmlType + Send + Sync + 'static>(&self) -> Box<dyn QuantizedType> {
        Box::new(MappedTensor::<T> {
            span: self.clone(),
            kind: PhantomData,
        })
    }
}

/// A quantised tensor of blocks `T` in the mapped file.
struct MappedTensor<T> {
    span: TensorSpan,
    kind: PhantomData<fn() -> T>,
}

impl<T> MappedTensor<T> {
    fn blocks(&self) -> &[T] {
        let bytes = self.span.bytes();
        // SAFETY: a span is aligned for `f32`, the strictest field of any block. Blocks consist of
        // integers and floats, so every bit pattern is valid.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
    }
}

impl<T: GgmlType + Send + Sync> QuantizedType for MappedTensor<T> {
    fn dtype(&self) -> GgmlDType {
        T::DTYPE
    }

    fn matmul_t(&self, mkn: (usize, usize, usize), lhs: &[f32], dst: &mut [f32]) -> Result<()> {
        k_quants::matmul(mkn, lhs, self.blocks(), dst)
    }

    fn matmul_t_f16(&self, mkn: (usize, usize, usize), lhs: &[f16], dst: &mut [f16]) -> Result<()> {
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
        self.span.bytes().as_ptr()
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
        size_of_val(self.blocks())
    }
}
