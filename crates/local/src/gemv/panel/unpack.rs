//! Unpacks the blocks of several weight rows into a panel, with AVX2.

use std::arch::x86_64::*;

use super::super::{BlockLayout, BlockMatrix, q4k_scales};
use super::{Panel, QUAD, ROWS};

/// Used in place of rows after the matrix's end.
static ZEROS: [u8; 256] = [0; 256];

impl Panel {
    /// Unpacks the blocks with the given index of the rows from `first`. Rows after the matrix's end
    /// are all zeros.
    #[target_feature(enable = "avx2,fma,f16c")]
    pub fn unpack(&mut self, matrix: &BlockMatrix, first: usize, index: usize) {
        let (size, width) = (matrix.layout.block_bytes(), matrix.row_bytes());
        let block = |row: usize| {
            let start = (first + row) * width + index * size;
            matrix.bytes.get(start..).unwrap_or(&ZEROS)
        };
        let blocks: [&[u8]; ROWS] = std::array::from_fn(block);
        match matrix.layout {
            BlockLayout::Q4K => self.unpack_q4k(blocks.map(exact)),
            BlockLayout::Q6K => self.unpack_q6k(blocks.map(exact)),
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn unpack_q4k(&mut self, blocks: [&[u8; 144]; ROWS]) {
        let nibble = _mm256_set1_epi8(0x0f);
        for (first, rows) in blocks.as_chunks::<8>().0.iter().enumerate() {
            // 16 bytes are the low and the high nibbles of four quads, which are 8 quads apart.
            for part in 0..8 {
                let packed = interleaved(rows, 16 + 16 * part);
                for (at, packed) in packed.into_iter().enumerate() {
                    let low = 16 * (part / 2) + 4 * (part % 2) + at;
                    let high = _mm256_srli_epi16::<4>(packed);
                    self.store(low, first, _mm256_and_si256(packed, nibble));
                    self.store(low + 8, first, _mm256_and_si256(high, nibble));
                }
            }
        }
        let halves = |at: usize| blocks.map(|block| u16::from_le_bytes([block[at], block[at + 1]]));
        let (scale, minimum) = (floats(halves(0)), floats(halves(2)));
        let columns = by_group(&blocks.map(q4k_scales));
        self.set_scales(&columns, 0..8, &scale);
        self.set_minima(&columns, 8..16, minimum);
    }

    /// Stores a quad of the 8 rows with the index `eight`.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn store(&mut self, quad: usize, eight: usize, quants: __m256i) {
        let to = &mut self.quants[quad].as_flattened_mut()[8 * QUAD * eight..][..8 * QUAD];
        // SAFETY: the slice has 32 bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), quants) };
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn unpack_q6k(&mut self, blocks: [&[u8; 210]; ROWS]) {
        let nibble = _mm256_set1_epi8(0x0f);
        let pair = _mm256_set1_epi8(0x30);
        for (first, rows) in blocks.as_chunks::<8>().0.iter().enumerate() {
            for part in 0..4 {
                let (half, piece) = (part / 2, part % 2);
                let low = 64 * half + 16 * piece;
                let (a, b) = (interleaved(rows, low), interleaved(rows, low + 32));
                let high = interleaved(rows, 128 + 32 * half + 16 * piece);
                for at in 0..QUAD {
                    let (a, b, high) = (a[at], b[at], high[at]);
                    let quants = [
                        (a, _mm256_slli_epi16::<4>(high)),
                        (b, _mm256_slli_epi16::<2>(high)),
                        (_mm256_srli_epi16::<4>(a), high),
                        (_mm256_srli_epi16::<4>(b), _mm256_srli_epi16::<2>(high)),
                    ];
                    for (group, (low, high)) in quants.into_iter().enumerate() {
                        let quants = _mm256_or_si256(
                            _mm256_and_si256(low, nibble),
                            _mm256_and_si256(high, pair),
                        );
                        self.store(32 * half + 8 * group + 4 * piece + at, first, quants);
                    }
                }
            }
        }
        let scale = floats(blocks.map(|block| u16::from_le_bytes([block[208], block[209]])));
        let columns = by_group(&blocks.map(|block| std::array::from_fn(|at| block[192 + at])));
        self.set_scales(&columns, 0..16, &scale);
        // The offset of 32 of all weights is a minimum of 32 times the scale.
        self.set_minima(&columns, 0..16, scale.map(|scale| 32.0 * scale));
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn set_scales(
        &mut self,
        columns: &[[__m128i; ROWS / 16]; 16],
        groups: std::ops::Range<usize>,
        scale: &[f32; ROWS],
    ) {
        for (to, column) in self.scales.iter_mut().zip(&columns[groups]) {
            let to = to.as_chunks_mut::<8>().0.iter_mut();
            for (at, (to, scale)) in to.zip(scale.as_chunks::<8>().0).enumerate() {
                let column = column[at / 2];
                let column = if at % 2 == 0 {
                    column
                } else {
                    _mm_unpackhi_epi64(column, column)
                };
                let integers = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(column));
                // SAFETY: both arrays have 8 floats.
                unsafe {
                    let scale = _mm256_loadu_ps(scale.as_ptr());
                    _mm256_storeu_ps(to.as_mut_ptr(), _mm256_mul_ps(integers, scale));
                }
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn set_minima(
        &mut self,
        columns: &[[__m128i; ROWS / 16]; 16],
        groups: std::ops::Range<usize>,
        minimum: [f32; ROWS],
    ) {
        self.minimum = minimum;
        for (to, columns) in self
            .minima
            .iter_mut()
            .zip(columns[groups].as_chunks::<2>().0)
        {
            let to = to.as_chunks_mut::<8>().0.iter_mut();
            for (at, to) in to.enumerate() {
                let [even, odd] = columns.map(|column| column[at / 2]);
                let pairs = if at % 2 == 0 {
                    _mm_unpacklo_epi8(even, odd)
                } else {
                    _mm_unpackhi_epi8(even, odd)
                };
                let to = to.as_flattened_mut();
                // SAFETY: the array has 16 words.
                unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm256_cvtepi8_epi16(pairs)) };
            }
        }
    }
}

/// Returns the start of `bytes`, or zeros if it is too short.
#[inline]
fn exact<const N: usize>(bytes: &[u8]) -> &[u8; N] {
    bytes
        .first_chunk()
        .or(ZEROS.first_chunk())
        .expect("no block has more bytes")
}

/// Loads a block of a row into the cache. The row can be after the matrix's end.
#[inline]
pub fn prefetch(matrix: &BlockMatrix, row: usize, index: usize) {
    let size = matrix.layout.block_bytes();
    let start = matrix
        .bytes
        .as_ptr()
        .wrapping_add(row * matrix.row_bytes() + index * size);
    for at in (0..size).step_by(64).chain([size - 1]) {
        // SAFETY: every CPU of this architecture has SSE. A prefetch has no effect but speed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(at).cast()) };
    }
}

/// Returns four registers with 16 bytes of each row, from the offset `at`: the first four bytes of each
/// row, then the next four of each row, and so on.
#[inline]
#[target_feature(enable = "avx2")]
fn interleaved<const SIZE: usize>(rows: &[&[u8; SIZE]; 8], at: usize) -> [__m256i; 4] {
    let mut pairs = [_mm256_setzero_si256(); 4];
    for (index, pair) in pairs.iter_mut().enumerate() {
        let (low, high) = (&rows[index][at..], &rows[index + 4][at..]);
        *pair = _mm256_set_m128i(load_128(high), load_128(low));
    }
    let [a, b, c, d] = pairs;
    let (ab_low, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
    let (cd_low, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab_low, cd_low),
        _mm256_unpackhi_epi64(ab_low, cd_low),
        _mm256_unpacklo_epi64(ab_high, cd_high),
        _mm256_unpackhi_epi64(ab_high, cd_high),
    ]
}

/// Turns 16 bytes of each row into the bytes of all rows for each of 16 groups.
#[inline]
#[target_feature(enable = "avx2")]
fn by_group(rows: &[[u8; 16]; ROWS]) -> [[__m128i; ROWS / 16]; 16] {
    let mut columns = [[_mm_setzero_si128(); ROWS / 16]; 16];
    for (part, rows) in rows.as_chunks::<16>().0.iter().enumerate() {
        let mut lines = [_mm_setzero_si128(); 16];
        for (line, row) in lines.iter_mut().zip(rows) {
            *line = load_128(row);
        }
        // Each round interleaves the first half of the lines with the second half.
        for _ in 0..4 {
            let before = lines;
            for (at, pair) in lines.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let (a, b) = (before[at], before[at + 8]);
                *pair = [_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)];
            }
        }
        for (column, line) in columns.iter_mut().zip(lines) {
            column[part] = line;
        }
    }
    columns
}

/// Converts 16-bit floats.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn floats(halves: [u16; ROWS]) -> [f32; ROWS] {
    let mut floats = [0.0; ROWS];
    let to = floats.as_chunks_mut::<8>().0.iter_mut();
    for (to, halves) in to.zip(halves.as_chunks::<8>().0) {
        // SAFETY: the arrays have 8 halves and 8 floats.
        unsafe {
            let halves = _mm_loadu_si128(halves.as_ptr().cast());
            _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(halves));
        }
    }
    floats
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_128(bytes: &[u8]) -> __m128i {
    let bytes = &bytes[..16];
    // SAFETY: the slice has 16 bytes.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}
