//! Multiplies activation rows by quantised weights directly from the file's blocks, so that the process
//! needs no other copy of the weights.
//!
//! The speed of generating a token is limited by reading the weights from memory. The file's blocks
//! are a quarter smaller than the tiles that candle packs for long prompts, and are read
//! sequentially. Several rows cost little more than one, because each weight is read and unpacked
//! only once. The products of a row do not depend on the rows beside it. The kernels for the many rows
//! of a prompt are in `panel`. All of this needs a CPU with AVX2; on other CPUs,
//! `BlockMatrixShape::new` returns `None` and candle's own kernels are used.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod panel;

use candle_core::quantized::GgmlDType;

use super::threads;

/// Number of weights in one block.
const BLOCK: usize = 256;
/// Maximum number of activation rows that are multiplied by unpacked weights.
const TILE: usize = 8;

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
    instructions: Instructions,
}

/// The block layout and the row length of a supported quantised matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockMatrixShape {
    layout: BlockLayout,
    columns: usize,
    instructions: Instructions,
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
        let fits = columns > 0 && columns.is_multiple_of(BLOCK);
        let instructions = Instructions::available().next().filter(|_| fits)?;
        Some(Self {
            layout,
            columns,
            instructions,
        })
    }

    /// Interprets bytes as the blocks of a matrix.
    pub fn of(self, bytes: &[u8]) -> BlockMatrix<'_> {
        BlockMatrix {
            layout: self.layout,
            bytes,
            columns: self.columns,
            instructions: self.instructions,
        }
    }
}

impl BlockMatrix<'_> {
    fn row_bytes(&self) -> usize {
        self.columns / BLOCK * self.layout.block_bytes()
    }

    /// Returns the number of weights in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    fn rows(&self) -> usize {
        self.bytes.len() / self.row_bytes()
    }
}

/// The instructions that the kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instructions {
    /// AVX-512 with VNNI.
    Avx512,
    Avx2,
}

impl Instructions {
    /// All that this CPU has, the best first.
    #[cfg(target_arch = "x86_64")]
    fn available() -> impl Iterator<Item = Self> {
        let has_avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        let has_avx512 = has_avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni");
        let all = [
            (Instructions::Avx512, has_avx512),
            (Instructions::Avx2, has_avx2),
        ];
        all.into_iter()
            .filter_map(|(one, is_there)| is_there.then_some(one))
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn available() -> impl Iterator<Item = Self> {
        std::iter::empty()
    }
}

/// Same as [`multiply`], but faster for more than eight rows. Rounding errors differ from those of
/// [`multiply`]. They do not depend on the number of rows either.
#[cfg(target_arch = "x86_64")]
pub fn multiply_many(matrices: &[BlockMatrix], x: &[f32]) -> Option<Vec<Vec<f32>>> {
    let columns = shared_columns(matrices, x)?;
    Some(panel::multiply(matrices, columns, x))
}

#[cfg(not(target_arch = "x86_64"))]
pub use self::multiply as multiply_many;

/// Multiplies each matrix by the rows of `x`. Each product has a row for each row of `x`. Returns
/// `None` if the length of `x` is no multiple of the number of columns.
pub fn multiply(matrices: &[BlockMatrix], x: &[f32]) -> Option<Vec<Vec<f32>>> {
    let columns = shared_columns(matrices, x)?;
    let x: Vec<Vec<ActivationBlock>> = x
        .chunks_exact(columns)
        .map(|row| row.chunks_exact(BLOCK).map(ActivationBlock::new).collect())
        .collect();
    let tiles: Vec<Tile> = x
        .chunks(TILE)
        .map(|rows| rows.iter().map(Vec::as_slice).collect())
        .collect();
    let products = matrices
        .iter()
        .map(|matrix| product(matrix, &tiles, x.len()));
    Some(products.collect())
}

/// Returns the number of columns of all matrices, if `x` consists of rows of this width.
fn shared_columns(matrices: &[BlockMatrix], x: &[f32]) -> Option<usize> {
    let columns = matrices.first()?.columns;
    let fits = matrices.iter().all(|matrix| matrix.columns == columns);
    (fits && x.len().is_multiple_of(columns)).then_some(columns)
}

/// Rows that are multiplied at once, at most [`TILE`] of them.
type Tile<'x> = Vec<&'x [ActivationBlock]>;

fn product(matrix: &BlockMatrix, tiles: &[Tile], count: usize) -> Vec<f32> {
    let (width, rows) = (matrix.row_bytes(), matrix.rows());
    let mut output = vec![0f32; rows * count];
    let base = output.as_mut_ptr() as usize;
    threads::for_rows(rows, |range| {
        for row in range {
            let weights = &matrix.bytes[row * width..(row + 1) * width];
            for (index, tile) in tiles.iter().enumerate() {
                let mut products = [0f32; TILE];
                multiply_row(matrix, weights, tile, &mut products);
                for (at, product) in products[..tile.len()].iter().enumerate() {
                    let place = (index * TILE + at) * rows + row;
                    // SAFETY: `place` is within `output`, and only this iteration writes to it.
                    unsafe { (base as *mut f32).add(place).write(*product) };
                }
            }
        }
    });
    output
}

/// A block of activations as signed bytes with their scale, and the sums that are needed for the
/// weights' offsets.
struct ActivationBlock {
    quants: [i8; BLOCK],
    /// The quants in the order in which AVX-512 unpacks Q4_K: groups of 32, the even ones of each half
    /// before the odd ones.
    paired: [i8; BLOCK],
    scale: f32,
    /// Sums of 16 quants each.
    sums: [i16; 16],
    /// Eight zeros, then sums of 32 quants each.
    wide_sums: [i16; 16],
}

impl ActivationBlock {
    fn new(values: &[f32]) -> Self {
        let (quants, scale) = quantise(values);
        let sum = |quants: &[i8]| quants.iter().map(|quant| i16::from(*quant)).sum();
        let mut sums = [0; 16];
        for (to, part) in sums.iter_mut().zip(quants.chunks_exact(16)) {
            *to = sum(part);
        }
        let mut wide_sums = [0; 16];
        for (to, part) in wide_sums[8..].iter_mut().zip(quants.chunks_exact(32)) {
            *to = sum(part);
        }
        let mut paired = [0i8; BLOCK];
        let order = [0, 2, 1, 3, 4, 6, 5, 7];
        for (to, group) in paired.chunks_exact_mut(32).zip(order) {
            to.copy_from_slice(&quants[32 * group..][..32]);
        }
        Self {
            quants,
            paired,
            scale,
            sums,
            wide_sums,
        }
    }
}

/// Converts a block to signed bytes with a scale.
#[inline(always)]
fn quantise(values: &[f32]) -> ([i8; BLOCK], f32) {
    let mut maxima = [0f32; 16];
    for values in values.as_chunks::<16>().0 {
        for (max, value) in maxima.iter_mut().zip(values) {
            *max = if value.abs() > *max {
                value.abs()
            } else {
                *max
            };
        }
    }
    let largest = maxima.into_iter().fold(0f32, f32::max);
    let factor = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let mut quants = [0i8; BLOCK];
    for (quant, value) in quants.iter_mut().zip(values) {
        // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the lowest bits.
        *quant = (value * factor + 12_582_912.0).to_bits() as i8;
    }
    (quants, largest / 127.0)
}

#[cfg(not(target_arch = "x86_64"))]
fn multiply_row(_: &BlockMatrix, _weights: &[u8], _x: &Tile, _products: &mut [f32; TILE]) {
    unreachable!("a shape is only created if there are instructions for it")
}

/// Multiplies one row of weights by each row of a tile.
#[cfg(target_arch = "x86_64")]
fn multiply_row(matrix: &BlockMatrix, weights: &[u8], x: &Tile, products: &mut [f32; TILE]) {
    macro_rules! of_length {
        ($($count:literal)*) => {
            match x.len() {
                $($count => {
                    let x: [&[ActivationBlock]; $count] = std::array::from_fn(|at| x[at]);
                    // SAFETY: a shape is only created with instructions that the CPU has.
                    let found = unsafe {
                        match (matrix.instructions, matrix.layout) {
                            (Instructions::Avx512, BlockLayout::Q4K) => avx512::q4k_row(weights, x),
                            (Instructions::Avx512, BlockLayout::Q6K) => avx512::q6k_row(weights, x),
                            (Instructions::Avx2, BlockLayout::Q4K) => avx2::q4k_row(weights, x),
                            (Instructions::Avx2, BlockLayout::Q6K) => avx2::q6k_row(weights, x),
                        }
                    };
                    products[..$count].copy_from_slice(&found);
                })*
                _ => unreachable!("a tile has at most {TILE} rows"),
            }
        };
    }
    of_length!(1 2 3 4 5 6 7 8);
}

/// Unpacks the eight scales and the eight minima of a Q4_K block.
#[cfg(target_arch = "x86_64")]
#[inline]
fn q4k_scales(block: &[u8; 144]) -> [u8; 16] {
    let word =
        |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let (a, b, c) = (word(4), word(8), word(12));
    let scales = (c & 0x0f0f_0f0f) | ((a >> 6 & 0x0303_0303) << 4);
    let minima = (c >> 4 & 0x0f0f_0f0f) | ((b >> 6 & 0x0303_0303) << 4);
    let low = u64::from(a & 0x3f3f_3f3f) | u64::from(scales) << 32;
    let high = u64::from(b & 0x3f3f_3f3f) | u64::from(minima) << 32;
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "f16c")]
fn half(low: u8, high: u8) -> f32 {
    use std::arch::x86_64::*;

    let bits = i32::from(u16::from_le_bytes([low, high]));
    _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)))
}

#[cfg(test)]
mod tests {
    use candle_core::quantized::QTensor;
    use candle_core::{Device, Tensor};

    use super::super::fixture::noise;
    use super::*;

    /// Returns a quantised matrix, and its rows as floats.
    fn weights(dtype: GgmlDType, rows: usize, columns: usize) -> (QTensor, Vec<Vec<f32>>) {
        let weights = Tensor::from_vec(noise(rows * columns, 1), (rows, columns), &Device::Cpu);
        let weights = QTensor::quantize(&weights.unwrap(), dtype).unwrap();
        let plain = weights.dequantize(&Device::Cpu).unwrap();
        (weights, plain.to_vec2().unwrap())
    }

    fn matrix(
        dtype: GgmlDType,
        columns: usize,
        instructions: Instructions,
        bytes: &[u8],
    ) -> BlockMatrix<'_> {
        let shape = BlockMatrixShape::new(dtype, columns).unwrap();
        let shape = BlockMatrixShape {
            instructions,
            ..shape
        };
        shape.of(bytes)
    }

    fn dot(row: &[f32], x: &[f32]) -> f32 {
        row.iter().zip(x).map(|(w, x)| w * x).sum()
    }

    /// Returns the largest difference.
    fn furthest(expected: &[f32], found: &[f32]) -> f32 {
        let pairs = expected.iter().zip(found);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    }

    #[test]
    fn quantised_products_match_the_dequantised_weights_for_any_number_of_rows() {
        const ROWS: usize = 37;
        const COLUMNS: usize = 768;
        for dtype in [GgmlDType::Q4K, GgmlDType::Q6K] {
            let (weights, plain) = weights(dtype, ROWS, COLUMNS);
            let bytes = weights.data().unwrap();
            // CPUs without any of the instructions use candle's kernels, which are not tested here.
            for instructions in Instructions::available() {
                let matrix = matrix(dtype, COLUMNS, instructions, &bytes);
                let x = noise(COLUMNS, 2);
                let products = multiply(&[matrix, matrix], &x).unwrap();
                assert_eq!(products[0], products[1]);
                for (row, found) in plain.iter().zip(&products[0]) {
                    let expected = dot(row, &x);
                    assert!(
                        (expected - found).abs() < 0.15,
                        "{dtype:?}, {instructions:?}: {expected}, found {found}"
                    );
                }
                for count in 1..=2 * TILE + 1 {
                    let x = noise(count * COLUMNS, 3);
                    let together = multiply(&[matrix], &x).unwrap().remove(0);
                    let alone: Vec<f32> = x
                        .chunks_exact(COLUMNS)
                        .flat_map(|row| multiply(&[matrix], row).unwrap().remove(0))
                        .collect();
                    assert_eq!(together, alone, "{dtype:?}, {instructions:?}: {count} rows");
                }
            }
        }
    }

    #[test]
    fn products_of_many_rows_match_the_dequantised_weights_for_any_number_of_rows() {
        const COLUMNS: usize = 512;
        const MOST: usize = 70;
        let x = noise(MOST * COLUMNS, 4);
        // A panel has 32 rows of weights.
        for (rows, dtype) in [1, 37, 64]
            .into_iter()
            .flat_map(|rows| [GgmlDType::Q4K, GgmlDType::Q6K].map(|dtype| (rows, dtype)))
        {
            let (weights, plain) = weights(dtype, rows, COLUMNS);
            let bytes = weights.data().unwrap();
            let expected: Vec<f32> = (x.chunks_exact(COLUMNS))
                .flat_map(|x| plain.iter().map(|row| dot(row, x)))
                .collect();
            for instructions in Instructions::available() {
                let matrix = matrix(dtype, COLUMNS, instructions, &bytes);
                // The kernels for few rows use the same quantised inputs.
                let few = multiply(&[matrix], &x).unwrap().remove(0);
                for count in 1..=MOST {
                    let products = multiply_many(&[matrix], &x[..count * COLUMNS]).unwrap();
                    let name =
                        format!("{rows} rows of {dtype:?}, {instructions:?}, {count} inputs");
                    assert_eq!(products[0].len(), rows * count, "{name}");
                    let off = furthest(&expected, &products[0]);
                    assert!(off < 0.15, "{name}: off by {off}");
                    let off = furthest(&few, &products[0]);
                    assert!(off < 1e-4, "{name}: off by {off}");
                }
                let twice = multiply_many(&[matrix, matrix], &x).unwrap();
                assert_eq!(twice[0], twice[1]);
            }
        }
    }

    #[test]
    fn products_of_extreme_weights_and_inputs_do_not_overflow() {
        const COLUMNS: usize = 512;
        let count = 2 * 144 + 5;
        let x: Vec<f32> = noise(count * COLUMNS, 5)
            .iter()
            .map(|x| x.signum())
            .collect();
        for (dtype, block) in [(GgmlDType::Q4K, 144), (GgmlDType::Q6K, 210)] {
            // All scales, minima and quants have their largest or smallest value.
            for byte in [0x00, 0x7f, 0x80, 0xff] {
                let mut bytes = vec![byte; 33 * COLUMNS / BLOCK * block];
                for block in bytes.chunks_exact_mut(block) {
                    let one = half::f16::ONE.to_le_bytes();
                    match dtype {
                        GgmlDType::Q4K => block[..4].copy_from_slice(&[one, one].concat()),
                        _ => block[208..].copy_from_slice(&one),
                    }
                }
                for instructions in Instructions::available() {
                    let matrix = matrix(dtype, COLUMNS, instructions, &bytes);
                    let exact = multiply(&[matrix], &x).unwrap().remove(0);
                    let found = multiply_many(&[matrix], &x).unwrap().remove(0);
                    let largest = exact.iter().fold(1f32, |max, x| max.max(x.abs()));
                    let off = furthest(&exact, &found) / largest;
                    assert!(off < 1e-5, "{dtype:?}, {instructions:?}, {byte}: {off}");
                }
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
            assert!(multiply(&[plan.of(&[0; 144])], &[0.0; 300]).is_none());
            let zero = multiply(&[plan.of(&[0; 144])], &[0.0; 256]);
            assert_eq!(zero, Some(vec![vec![0.0]]));
        }
    }
}
