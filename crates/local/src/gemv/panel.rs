//! Multiplies many activation rows by quantised weights directly from the file's blocks.
//!
//! A panel holds one block of each of several weight rows, unpacked to bytes. It fits in the first
//! cache. All activation rows are multiplied by it before the next block is unpacked, so unpacking
//! costs little, and no repacked copy of the matrix is needed.

mod unpack;

use super::{BLOCK, BlockLayout, BlockMatrix, Instructions, avx2_panel, avx512_panel, quantise};
use crate::threads;

/// Number of weight rows in a panel.
pub const ROWS: usize = 32;
/// Maximum number of activation rows that are multiplied at once.
const TILE: usize = 6;
/// Maximum number of activation rows that are multiplied by a panel before it is discarded.
const BATCH: usize = 24 * TILE;
/// Number of weights that the instructions for dot products multiply at once.
pub const QUAD: usize = 4;
/// Number of quads in a block.
pub const QUADS: usize = BLOCK / QUAD;

/// One block of each of [`ROWS`] rows of weights. A weight is `quant * scale - minimum`, with a scale
/// and a minimum for each group of consecutive weights.
#[repr(C, align(64))]
pub struct Panel {
    /// The quants, interleaved: four consecutive ones of each row, then the next four of each row.
    pub quants: [[[u8; QUAD]; ROWS]; QUADS],
    /// The scales of each group: 8 groups of a Q4_K block, 16 groups of a Q6_K block.
    pub scales: [[f32; ROWS]; 16],
    /// The minima of each two groups, divided by `minimum`.
    pub minima: [[[i16; 2]; ROWS]; 8],
    pub minimum: [f32; ROWS],
}

impl Panel {
    pub fn new() -> Self {
        Self {
            quants: [[[0; QUAD]; ROWS]; QUADS],
            scales: [[0.0; ROWS]; 16],
            minima: [[[0; 2]; ROWS]; 8],
            minimum: [0.0; ROWS],
        }
    }
}

/// A block of an activation row as signed bytes with their scale.
#[derive(Clone)]
pub struct PanelInput {
    pub quants: [[i8; QUAD]; QUADS],
    pub scale: f32,
    /// Sums of 16 quants each, in pairs.
    pub sums: [[i16; 2]; 8],
    /// Sums of 32 quants each, in pairs.
    pub wide_sums: [[i16; 2]; 4],
}

impl PanelInput {
    #[inline(always)]
    fn new(values: &[f32]) -> Self {
        let (quants, scale) = quantise(values);
        let sum = |quants: &[i8]| quants.iter().map(|quant| i16::from(*quant)).sum::<i16>();
        let single: [i16; 16] = std::array::from_fn(|at| sum(&quants[16 * at..][..16]));
        let wide: [i16; 8] = std::array::from_fn(|at| single[2 * at] + single[2 * at + 1]);
        Self {
            quants: std::array::from_fn(|at| std::array::from_fn(|byte| quants[QUAD * at + byte])),
            scale,
            sums: std::array::from_fn(|at| [single[2 * at], single[2 * at + 1]]),
            wide_sums: std::array::from_fn(|at| [wide[2 * at], wide[2 * at + 1]]),
        }
    }
}

/// Quantises the rows. The first blocks of all rows come before their second blocks.
fn inputs(x: &[f32], columns: usize) -> Vec<PanelInput> {
    #[target_feature(enable = "avx2")]
    fn quantised(values: &[f32]) -> PanelInput {
        PanelInput::new(values)
    }

    let rows = x.len() / columns;
    let mut all = Vec::with_capacity(x.len() / BLOCK);
    let base = all.as_mut_ptr() as usize;
    threads::for_rows(rows, |range| {
        for row in range {
            let values = x[row * columns..][..columns].chunks_exact(BLOCK);
            for (index, values) in values.enumerate() {
                // SAFETY: the CPU has AVX2, which all kernels need. The place is within the
                // capacity, and only this iteration writes to it.
                unsafe {
                    let input = quantised(values);
                    let place = (base as *mut PanelInput).add(index * rows + row);
                    place.write(input);
                }
            }
        }
    });
    // SAFETY: each block of each row was written.
    unsafe { all.set_len(x.len() / BLOCK) };
    all
}

/// The rows of one panel, to be multiplied by a batch of activation rows.
struct Task {
    matrix: usize,
    weights: usize,
    rows: std::ops::Range<usize>,
}

/// Multiplies each matrix by the rows of `x`. All matrices have the same number of columns.
pub fn multiply(matrices: &[BlockMatrix], columns: usize, x: &[f32]) -> Vec<Vec<f32>> {
    let count = x.len() / columns;
    let inputs = inputs(x, columns);
    let mut outputs: Vec<Vec<f32>> = (matrices.iter())
        .map(|matrix| Vec::with_capacity(matrix.rows() * count))
        .collect();
    let bases: Vec<usize> = (outputs.iter_mut())
        .map(|output| output.as_mut_ptr() as usize)
        .collect();
    let mut tasks = Vec::new();
    for (matrix, blocks) in matrices.iter().enumerate() {
        for weights in (0..blocks.rows()).step_by(ROWS) {
            tasks.extend((0..count).step_by(BATCH).map(|start| Task {
                matrix,
                weights,
                rows: start..count.min(start + BATCH),
            }));
        }
    }
    threads::for_rows(tasks.len(), |range| {
        let mut panel = Panel::new();
        let mut sums = Vec::new();
        for task in &tasks[range] {
            let matrix = &matrices[task.matrix];
            let batch = Batch {
                inputs: &inputs,
                count,
                rows: task.rows.clone(),
            };
            multiply_rows(matrix, task.weights, &batch, &mut panel, &mut sums);
            let width = matrix.rows();
            let used = ROWS.min(width - task.weights);
            for (row, sums) in task.rows.clone().zip(&sums) {
                let place = row * width + task.weights;
                // SAFETY: the place is within the capacity, and only this iteration writes to it.
                unsafe {
                    let to = (bases[task.matrix] as *mut f32).add(place);
                    to.copy_from_nonoverlapping(sums.as_ptr(), used);
                }
            }
        }
    });
    for (output, matrix) in outputs.iter_mut().zip(matrices) {
        // SAFETY: each product of each row was written.
        unsafe { output.set_len(matrix.rows() * count) };
    }
    outputs
}

/// Activation rows that are multiplied by the same panels.
struct Batch<'a> {
    inputs: &'a [PanelInput],
    /// Number of rows in `inputs`.
    count: usize,
    rows: std::ops::Range<usize>,
}

/// Stores the products of up to [`ROWS`] rows of weights and each row of the batch in `sums`.
fn multiply_rows(
    matrix: &BlockMatrix,
    first: usize,
    batch: &Batch,
    panel: &mut Panel,
    sums: &mut Vec<[f32; ROWS]>,
) {
    sums.clear();
    sums.resize(batch.rows.len(), [0.0; ROWS]);
    // All tiles have about the same number of rows.
    let tiles = batch.rows.len().div_ceil(TILE);
    let bound = |tile: usize| batch.rows.len() * tile / tiles;
    for index in 0..matrix.columns / BLOCK {
        // SAFETY: a shape is only created if the CPU has AVX2, which all kernels need.
        unsafe { panel.unpack(matrix, first, index) };
        let inputs = &batch.inputs[index * batch.count..][batch.rows.clone()];
        for tile in 0..tiles {
            let rows = bound(tile)..bound(tile + 1);
            multiply_tile(matrix, panel, &inputs[rows.clone()], &mut sums[rows]);
        }
    }
}

fn multiply_tile(
    matrix: &BlockMatrix,
    panel: &Panel,
    inputs: &[PanelInput],
    sums: &mut [[f32; ROWS]],
) {
    macro_rules! of_length {
        ($($count:literal)*) => {
            match inputs.len() {
                $($count => {
                    let inputs = inputs.first_chunk::<$count>();
                    if let Some((x, sums)) = inputs.zip(sums.first_chunk_mut()) {
                        multiply_exactly(matrix, panel, x, sums);
                    }
                })*
                _ => unreachable!("a tile has at most {TILE} rows"),
            }
        };
    }
    of_length!(1 2 3 4 5 6 7 8);
}

#[inline]
fn multiply_exactly<const N: usize>(
    matrix: &BlockMatrix,
    panel: &Panel,
    x: &[PanelInput; N],
    sums: &mut [[f32; ROWS]; N],
) {
    // SAFETY: a shape is only created with instructions that the CPU has.
    unsafe {
        match (matrix.instructions, matrix.layout) {
            (Instructions::Avx512, BlockLayout::Q4K) => avx512_panel::q4k(panel, x, sums),
            (Instructions::Avx512, BlockLayout::Q6K) => avx512_panel::q6k(panel, x, sums),
            (Instructions::Avx2, BlockLayout::Q4K) => avx2_panel::q4k(panel, x, sums),
            (Instructions::Avx2, BlockLayout::Q6K) => avx2_panel::q6k(panel, x, sums),
        }
    }
}
