//! Multiplies many activation rows by quantised weights directly from the file's blocks.
//!
//! A panel holds one block of each of several weight rows, unpacked to bytes. It fits in the first
//! cache. All activation rows are multiplied by it before the next block is unpacked, so unpacking
//! costs little, and no repacked copy of the matrix is needed.

mod avx2;
mod avx512;
mod unpack;

use std::ops::Range;

use super::{BLOCK, BlockLayout, BlockMatrix, Instructions, quantise};
use crate::threads;

/// Number of weight rows in a panel.
pub const ROWS: usize = 32;
/// Maximum number of activation rows that are multiplied at once: as many as fit in the registers.
const TILE: usize = 6;
/// Maximum number of activation rows that are multiplied by one panel. Their blocks and their sums fit in
/// the second cache.
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

/// The quantised activation rows. The first blocks of all rows come before their second blocks.
struct Inputs {
    blocks: Vec<PanelInput>,
    rows: usize,
}

impl Inputs {
    fn new(x: &[f32], columns: usize) -> Self {
        #[target_feature(enable = "avx2")]
        fn quantised(values: &[f32]) -> PanelInput {
            PanelInput::new(values)
        }

        let rows = x.len() / columns;
        let mut blocks = Vec::with_capacity(x.len() / BLOCK);
        let base = blocks.as_mut_ptr() as usize;
        threads::for_rows(rows, |range| {
            for row in range {
                let values = x[row * columns..][..columns].chunks_exact(BLOCK);
                for (index, values) in values.enumerate() {
                    // SAFETY: a matrix is only created if the CPU has AVX2. The place is within the
                    // capacity, and only this iteration writes to it.
                    unsafe {
                        let place = (base as *mut PanelInput).add(index * rows + row);
                        place.write(quantised(values));
                    }
                }
            }
        });
        // SAFETY: each block of each row was written.
        unsafe { blocks.set_len(x.len() / BLOCK) };
        Self { blocks, rows }
    }

    /// Returns the blocks with the given index.
    fn blocks(&self, index: usize, rows: Range<usize>) -> &[PanelInput] {
        &self.blocks[index * self.rows..][rows]
    }
}

/// The multiplication of up to [`ROWS`] rows of weights and a batch of activation rows.
struct Task<'a> {
    matrix: &'a BlockMatrix<'a>,
    /// The first row of the weights.
    first: usize,
    /// The activation rows.
    batch: Range<usize>,
    /// The address of the matrix's output.
    output: usize,
}

/// Multiplies each matrix by the rows of `x`. All matrices have the same number of columns.
pub fn multiply(matrices: &[BlockMatrix], columns: usize, x: &[f32]) -> Vec<Vec<f32>> {
    let inputs = Inputs::new(x, columns);
    let mut outputs = Vec::new();
    let mut tasks = Vec::new();
    for matrix in matrices {
        let mut output: Vec<f32> = Vec::with_capacity(matrix.rows() * inputs.rows);
        for first in (0..matrix.rows()).step_by(ROWS) {
            tasks.extend((0..inputs.rows).step_by(BATCH).map(|start| Task {
                matrix,
                first,
                batch: start..inputs.rows.min(start + BATCH),
                output: output.as_mut_ptr() as usize,
            }));
        }
        outputs.push(output);
    }
    threads::for_rows(tasks.len(), |range| {
        let mut panel = Panel::new();
        let mut sums = Vec::new();
        for task in &tasks[range] {
            sums.clear();
            sums.resize(task.batch.len(), [0.0; ROWS]);
            task.add_products(&inputs, &mut panel, &mut sums);
            let width = task.matrix.rows();
            for (row, sums) in task.batch.clone().zip(&sums) {
                let sums = &sums[..ROWS.min(width - task.first)];
                // SAFETY: the place is within the output's capacity, and only this iteration writes
                // to it.
                unsafe {
                    let to = (task.output as *mut f32).add(row * width + task.first);
                    to.copy_from_nonoverlapping(sums.as_ptr(), sums.len());
                }
            }
        }
    });
    for (output, matrix) in outputs.iter_mut().zip(matrices) {
        // SAFETY: each product of each row was written.
        unsafe { output.set_len(matrix.rows() * inputs.rows) };
    }
    outputs
}

impl Task<'_> {
    /// Adds the products to `sums`, which has an array for each row of the batch.
    fn add_products(&self, inputs: &Inputs, panel: &mut Panel, sums: &mut [[f32; ROWS]]) {
        // All tiles have about the same number of rows.
        let tiles = sums.len().div_ceil(TILE);
        let part = |count: usize, tile: usize| count * tile / tiles..count * (tile + 1) / tiles;
        let blocks = self.matrix.columns / BLOCK;
        for index in 0..blocks {
            // SAFETY: a matrix is only created if the CPU has AVX2.
            unsafe { panel.unpack(self.matrix, self.first, index) };
            let x = inputs.blocks(index, self.batch.clone());
            // The next block is read while this one is multiplied.
            let next = match index + 1 {
                next if next < blocks => (self.first, next),
                _ => (self.first + ROWS, 0),
            };
            for tile in 0..tiles {
                let rows = part(x.len(), tile);
                multiply_tile(self.matrix, panel, &x[rows.clone()], &mut sums[rows]);
                for row in part(ROWS, tile) {
                    unpack::prefetch(self.matrix, next.0 + row, next.1);
                }
            }
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
    of_length!(1 2 3 4 5 6);
}

#[inline]
fn multiply_exactly<const N: usize>(
    matrix: &BlockMatrix,
    panel: &Panel,
    x: &[PanelInput; N],
    sums: &mut [[f32; ROWS]; N],
) {
    // SAFETY: a matrix is only created with instructions that the CPU has.
    unsafe {
        match (matrix.instructions, matrix.layout) {
            (Instructions::Avx512, BlockLayout::Q4K) => avx512::q4k(panel, x, sums),
            (Instructions::Avx512, BlockLayout::Q6K) => avx512::q6k(panel, x, sums),
            (Instructions::Avx2, BlockLayout::Q4K) => avx2::q4k(panel, x, sums),
            (Instructions::Avx2, BlockLayout::Q6K) => avx2::q6k(panel, x, sums),
        }
    }
}
