//! Multiplies a few activation rows by quantised weights directly from the file's blocks.
//!
//! The speed of generating a token is limited by reading the weights from memory. The file's blocks
//! are a quarter smaller than the tiles that candle packs for long prompts, and are read
//! sequentially. Several rows cost little more than one, because each weight is read and unpacked
//! only once. The products of a row do not depend on the rows beside it. This needs a CPU with
//! AVX-512 VNNI; on other CPUs, `BlockMatrixShape::new` returns `None` and candle's own kernels are
//! used.

#[cfg(target_arch = "x86_64")]
mod avx512;

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
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("f16c")
}

/// Multiplies each matrix by the rows of `x`. Each product has a row for each row of `x`. Returns
/// `None` if the length of `x` is no multiple of the number of columns.
pub fn multiply(matrices: &[BlockMatrix], x: &[f32]) -> Option<Vec<Vec<f32>>> {
    let columns = matrices.first()?.columns;
    if matrices.iter().any(|matrix| matrix.columns != columns) || !x.len().is_multiple_of(columns) {
        return None;
    }
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
                multiply_row(matrix.layout, weights, tile, &mut products);
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
    scale: f32,
    /// Sums of 16 quants each.
    sums: [i16; 16],
    /// Eight zeros, then sums of 32 quants each.
    wide_sums: [i16; 16],
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
        let sum = |quants: &[i8]| quants.iter().map(|quant| i16::from(*quant)).sum();
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
fn multiply_row(_layout: BlockLayout, _weights: &[u8], _x: &Tile, _products: &mut [f32; TILE]) {
    unreachable!("a plan is only made where `available` says so")
}

/// Multiplies one row of weights by each row of a tile.
#[cfg(target_arch = "x86_64")]
fn multiply_row(layout: BlockLayout, weights: &[u8], x: &Tile, products: &mut [f32; TILE]) {
    macro_rules! of_length {
        ($($count:literal)*) => {
            match x.len() {
                $($count => {
                    let x: [&[ActivationBlock]; $count] = std::array::from_fn(|at| x[at]);
                    // SAFETY: a plan is only created if `available` has detected the CPU features.
                    let found = unsafe {
                        match layout {
                            BlockLayout::Q4K => avx512::q4k_row(weights, x),
                            BlockLayout::Q6K => avx512::q6k_row(weights, x),
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

#[cfg(test)]
mod tests {
    use candle_core::quantized::QTensor;
    use candle_core::{Device, Tensor};

    use super::super::fixture::noise;
    use super::*;

    #[test]
    fn quantised_products_match_the_dequantised_weights_for_any_number_of_rows() {
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
            let bytes = weights.data().unwrap();
            let matrix = plan.of(&bytes);
            let x = noise(COLUMNS, 2);
            let products = multiply(&[matrix, matrix], &x).unwrap();
            assert_eq!(products[0], products[1]);
            for (row, found) in plain.iter().zip(&products[0]) {
                let expected: f32 = row.iter().zip(&x).map(|(w, x)| w * x).sum();
                assert!(
                    (expected - found).abs() < 0.15,
                    "{dtype:?}: {expected}, found {found}"
                );
            }
            for count in 1..=2 * TILE + 1 {
                let x = noise(count * COLUMNS, 3);
                let together = multiply(&[matrix], &x).unwrap().remove(0);
                let alone: Vec<f32> = x
                    .chunks_exact(COLUMNS)
                    .flat_map(|row| multiply(&[matrix], row).unwrap().remove(0))
                    .collect();
                assert_eq!(together, alone, "{dtype:?}: {count} rows");
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
