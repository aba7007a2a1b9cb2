//! Multiplies one activation row by quantised weights directly from the file's blocks.
//!
//! The speed of generating a token is limited by reading the weights from memory. The file's blocks
//! are a quarter smaller than the tiles that candle packs for long prompts, and are read
//! sequentially. This needs a CPU with AVX-512 VNNI; on other CPUs, `BlockMatrixShape::new` returns
//! `None` and candle's own kernels are used.

use candle_core::quantized::GgmlDType;

use super::threads;

/// Number of weights in one block.
const BLOCK: usize = 256;

/// The supported block layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockLayout {
    Q4K,
    Q6K,
}

impl BlockLayout {
    fn block_bytes(self) -> usize {
        match self {
            BlockLayout::Q4K => 144,
            BlockLayout::Q6K => 210,
        }
    }
}

/// A matrix of quantised weights. Each row is a whole number of blocks.
#[derive(Debug, Clone, Copy)]
pub struct BlockMatrix<'a> {
    layout: BlockLayout,
    bytes: &'a [u8],
    columns: usize,
}

/// The block layout and the row length of a supported quantised matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockMatrixShape {
    layout: BlockLayout,
    columns: usize,
}

impl BlockMatrixShape {
    /// Returns `None` if the CPU or the layout is not supported.
    pub fn new(dtype: GgmlDType, columns: usize) -> Option<Self> {
        let layout = match dtype {
            GgmlDType::Q4K => BlockLayout::Q4K,
            GgmlDType::Q6K => BlockLayout::Q6K,
            GgmlDType::F32
            | GgmlDType::F16
            | GgmlDType::BF16
            | GgmlDType::Q4_0
            | GgmlDType::Q4_1
            | GgmlDType::Q5_0
            | GgmlDType::Q5_1
            | GgmlDType::Q8_0
            | GgmlDType::Q8_1
            | GgmlDType::Q2K
            | GgmlDType::Q3K
            | GgmlDType::Q5K
            | GgmlDType::Q8K => return None,
        };
        let fits = columns > 0 && columns.is_multiple_of(BLOCK) && available();
        fits.then_some(Self { layout, columns })
    }

    /// Interprets bytes as the blocks of a matrix.
    pub fn of(self, bytes: &[u8]) -> BlockMatrix<'_> {
        BlockMatrix {
            layout: self.layout,
            bytes,
            columns: self.columns,
        }
    }
}

impl BlockMatrix<'_> {
    fn row_bytes(&self) -> usize {
        self.columns / BLOCK * self.layout.block_bytes()
    }

    fn rows(&self) -> usize {
        self.bytes.len() / self.row_bytes()
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn available() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("f16c")
}

/// Multiplies each matrix by `x`. Returns `None` if the length of `x` is not the number of columns.
pub fn multiply(matrices: &[BlockMatrix], x: &[f32]) -> Option<Vec<Vec<f32>>> {
    if matrices.iter().any(|matrix| matrix.columns != x.len()) {
        return None;
    }
    let x: Vec<ActivationBlock> = x.chunks_exact(BLOCK).map(ActivationBlock::new).collect();
    let mut outputs: Vec<Vec<f32>> = matrices
        .iter()
        .map(|matrix| vec![0.0; matrix.rows()])
        .collect();
    for (matrix, output) in matrices.iter().zip(&mut outputs) {
        let base = output.as_mut_ptr() as usize;
        threads::for_rows(matrix.rows(), |range| {
            let start = (base as *mut f32).wrapping_add(range.start);
            // SAFETY: the ranges do not overlap and are within the rows of `output`.
            let part = unsafe { std::slice::from_raw_parts_mut(start, range.len()) };
            let width = matrix.row_bytes();
            let bytes = &matrix.bytes[range.start * width..range.end * width];
            rows(matrix.layout, bytes, width, &x, part);
        });
    }
    Some(outputs)
}

/// A block of activations as signed bytes with their scale, and the sums that are needed for the
/// weights' offsets.
struct ActivationBlock {
    quants: [i8; BLOCK],
    scale: f32,
    /// Sums of 16 quants each.
    sums: [i32; 16],
    /// Eight zeros, then sums of 32 quants each.
    wide_sums: [i32; 16],
}

impl ActivationBlock {
    fn new(values: &[f32]) -> Self {
        let largest = values.iter().fold(0f32, |max, value| max.max(value.abs()));
        let mut quants = [0i8; BLOCK];
        let factor = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        for (quant, value) in quants.iter_mut().zip(values) {
            // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
            *quant = ((value * factor + 12_582_912.0) - 12_582_912.0) as i8;
        }
        let sum = |quants: &[i8]| quants.iter().map(|quant| i32::from(*quant)).sum();
        let mut sums = [0; 16];
        for (to, part) in sums.iter_mut().zip(quants.chunks_exact(16)) {
            *to = sum(part);
        }
        let mut wide_sums = [0; 16];
        for (to, part) in wide_sums[8..].iter_mut().zip(quants.chunks_exact(32)) {
            *to = sum(part);
        }
        Self {
            quants,
            scale: largest / 127.0,
            sums,
            wide_sums,
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn rows(
    _layout: BlockLayout,
    _bytes: &[u8],
    _width: usize,
    _x: &[ActivationBlock],
    _output: &mut [f32],
) {
    unreachable!("a plan is only made where `available` says so")
}

#[cfg(target_arch = "x86_64")]
fn rows(
    layout: BlockLayout,
    bytes: &[u8],
    width: usize,
    x: &[ActivationBlock],
    output: &mut [f32],
) {
    // SAFETY: a plan is only created if `available` has detected the CPU features.
    unsafe {
        match layout {
            BlockLayout::Q4K => avx512::q4k_rows(bytes, width, x, output),
            BlockLayout::Q6K => avx512::q6k_rows(bytes, width, x, output),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;

    use super::ActivationBlock;

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,f16c")]
    pub fn q4k_rows(bytes: &[u8], width: usize, x: &[ActivationBlock], output: &mut [f32]) {
        for (row, out) in bytes.chunks_exact(width).zip(output) {
            let mut sum = _mm512_setzero_ps();
            for (block, x) in row.as_chunks::<144>().0.iter().zip(x) {
                sum = q4k_block(block, x, sum);
            }
            *out = _mm512_reduce_add_ps(sum);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,f16c")]
    pub fn q6k_rows(bytes: &[u8], width: usize, x: &[ActivationBlock], output: &mut [f32]) {
        for (row, out) in bytes.chunks_exact(width).zip(output) {
            let mut sum = _mm512_setzero_ps();
            for (block, x) in row.as_chunks::<210>().0.iter().zip(x) {
                sum = q6k_block(block, x, sum);
            }
            *out = _mm512_reduce_add_ps(sum);
        }
    }

    /// Computes a Q4_K block: 256 weights of 4 bits in 8 groups, each with a scale and a minimum of
    /// 6 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,f16c")]
    fn q4k_block(block: &[u8; 144], x: &ActivationBlock, sum: __m512) -> __m512 {
        let nibble = _mm512_set1_epi8(0x0f);
        // Lane indices of the first pair of groups: one for the low half of a register, one for the
        // high half.
        let first = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2);
        let scales = q4k_scales(block);
        let mut total = _mm512_setzero_si512();
        for half in 0..2 {
            let weights = load(&block[16 + 64 * half..]);
            let low = _mm512_and_si512(weights, nibble);
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(weights), nibble);
            let pairs = [(low, 0), (high, 1)];
            for (weights, odd) in pairs {
                let at = 128 * half + 32 * odd;
                let quants = two(&x.quants[at..], &x.quants[at + 64..]);
                let products = _mm512_dpbusd_epi32(_mm512_setzero_si512(), weights, quants);
                let group = _mm512_add_epi32(first, _mm512_set1_epi32((4 * half + odd) as i32));
                let scale = _mm512_permutexvar_epi32(group, scales);
                total = _mm512_add_epi32(total, _mm512_mullo_epi32(products, scale));
            }
        }
        let minima = _mm512_mullo_epi32(scales, words(&x.wide_sums));
        let scale = _mm512_set1_ps(half(block[0], block[1]) * x.scale);
        let minimum = _mm512_set1_ps(half(block[2], block[3]) * x.scale);
        let sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total), scale, sum);
        _mm512_fnmadd_ps(_mm512_cvtepi32_ps(minima), minimum, sum)
    }

    /// Unpacks the eight scales and the eight minima.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn q4k_scales(block: &[u8; 144]) -> __m512i {
        let word = |at: usize| {
            u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
        };
        let (a, b, c) = (word(4), word(8), word(12));
        let scales = (c & 0x0f0f_0f0f) | ((a >> 6 & 0x0303_0303) << 4);
        let minima = (c >> 4 & 0x0f0f_0f0f) | ((b >> 6 & 0x0303_0303) << 4);
        let low = u64::from(a & 0x3f3f_3f3f) | u64::from(scales) << 32;
        let high = u64::from(b & 0x3f3f_3f3f) | u64::from(minima) << 32;
        _mm512_cvtepu8_epi32(_mm_set_epi64x(high as i64, low as i64))
    }

    /// Computes a Q6_K block: 256 weights of 6 bits with an offset of 32, in 16 groups with a scale
    /// of 8 bits each.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,f16c")]
    fn q6k_block(block: &[u8; 210], x: &ActivationBlock, sum: __m512) -> __m512 {
        let nibble = _mm512_set1_epi8(0x0f);
        let pair = _mm512_set1_epi8(0x03);
        let first = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
        let by_half = |low: i64, high: i64| {
            let spread = |count: i64| count * 0x0001_0001_0001_0001;
            let (low, high) = (spread(low), spread(high));
            _mm512_setr_epi64(low, low, low, low, high, high, high, high)
        };
        let shifts = [by_half(0, 2), by_half(4, 6)];
        let scales = _mm512_cvtepi8_epi32(load_128(&block[192..]));
        let mut total = _mm512_setzero_si512();
        for half in 0..2 {
            let low_bits = load(&block[64 * half..]);
            let nibbles = [low_bits, _mm512_srli_epi16::<4>(low_bits)];
            let high_bits = _mm512_broadcast_i64x4(load_256(&block[128 + 32 * half..]));
            for (part, (nibbles, shift)) in nibbles.into_iter().zip(shifts).enumerate() {
                let low = _mm512_and_si512(nibbles, nibble);
                let high = _mm512_and_si512(_mm512_srlv_epi16(high_bits, shift), pair);
                let weights = _mm512_or_si512(low, _mm512_slli_epi16::<4>(high));
                let at = 128 * half + 64 * part;
                let quants = two(&x.quants[at..], &x.quants[at + 32..]);
                let products = _mm512_dpbusd_epi32(_mm512_setzero_si512(), weights, quants);
                let group =
                    _mm512_add_epi32(first, _mm512_set1_epi32((8 * half + 4 * part) as i32));
                let scale = _mm512_permutexvar_epi32(group, scales);
                total = _mm512_add_epi32(total, _mm512_mullo_epi32(products, scale));
            }
        }
        let offset = _mm512_slli_epi32::<5>(_mm512_mullo_epi32(scales, words(&x.sums)));
        let scale = _mm512_set1_ps(half(block[208], block[209]) * x.scale);
        let total = _mm512_sub_epi32(total, offset);
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(total), scale, sum)
    }

    #[inline]
    #[target_feature(enable = "f16c")]
    fn half(low: u8, high: u8) -> f32 {
        let bits = i32::from(u16::from_le_bytes([low, high]));
        _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(bytes: &[u8]) -> __m512i {
        let bytes = &bytes[..64];
        // SAFETY: the slice has 64 bytes.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load_256(bytes: &[u8]) -> __m256i {
        let bytes = &bytes[..32];
        // SAFETY: the slice has 32 bytes.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load_128(bytes: &[u8]) -> __m128i {
        let bytes = &bytes[..16];
        // SAFETY: the slice has 16 bytes.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    /// Loads the first 32 quants of both slices into one register.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn two(low: &[i8], high: &[i8]) -> __m512i {
        let (low, high) = (&low[..32], &high[..32]);
        // SAFETY: both slices have 32 bytes.
        unsafe {
            let low = _mm256_loadu_si256(low.as_ptr().cast());
            let high = _mm256_loadu_si256(high.as_ptr().cast());
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn words(words: &[i32; 16]) -> __m512i {
        // SAFETY: 16 words are 64 bytes.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::QTensor;
    use candle_core::{Device, Tensor};

    use super::super::fixture::noise;
    use super::*;

    #[test]
    fn quantised_products_match_the_dequantised_weights() {
        const ROWS: usize = 37;
        const COLUMNS: usize = 768;
        for dtype in [GgmlDType::Q4K, GgmlDType::Q6K] {
            // CPUs without the instructions use candle's kernels, which are not tested here.
            let Some(plan) = BlockMatrixShape::new(dtype, COLUMNS) else {
                continue;
            };
            let weights = Tensor::from_vec(noise(ROWS * COLUMNS, 1), (ROWS, COLUMNS), &Device::Cpu);
            let weights = QTensor::quantize(&weights.unwrap(), dtype).unwrap();
            let plain = weights
                .dequantize(&Device::Cpu)
                .unwrap()
                .to_vec2::<f32>()
                .unwrap();
            let x = noise(COLUMNS, 2);
            let bytes = weights.data().unwrap();
            let matrix = plan.of(&bytes);
            let products = multiply(&[matrix, matrix], &x).unwrap();
            assert_eq!(products[0], products[1]);
            for (row, found) in plain.iter().zip(&products[0]) {
                let expected: f32 = row.iter().zip(&x).map(|(w, x)| w * x).sum();
                assert!(
                    (expected - found).abs() < 0.15,
                    "{dtype:?}: {expected}, found {found}"
                );
            }
        }
    }

    #[test]
    fn unsupported_layouts_and_widths_are_declined() {
        assert_eq!(BlockMatrixShape::new(GgmlDType::Q8_0, 256), None);
        assert_eq!(BlockMatrixShape::new(GgmlDType::Q4K, 576), None);
        assert_eq!(BlockMatrixShape::new(GgmlDType::Q4K, 0), None);
    }

    #[test]
    fn multiplying_with_a_wrong_width_returns_none() {
        if let Some(plan) = BlockMatrixShape::new(GgmlDType::Q4K, 256) {
            assert!(multiply(&[plan.of(&[0; 144])], &[0.0; 512]).is_none());
            let zero = multiply(&[plan.of(&[0; 144])], &[0.0; 256]);
            assert_eq!(zero, Some(vec![vec![0.0]]));
        }
    }
}
