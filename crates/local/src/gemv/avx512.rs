//! The kernels for AVX-512 VNNI.

use std::arch::x86_64::*;

use super::{ActivationBlock, half, q4k_scales};

/// Multiplies one row of Q4_K blocks by `N` rows: 256 weights of 4 bits in 8 groups, each with a scale
/// and a minimum of 6 bits.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c")]
pub fn q4k_row<const N: usize>(weights: &[u8], x: [&[ActivationBlock]; N]) -> [f32; N] {
    let nibble = _mm512_set1_epi8(0x0f);
    // Lanes of the scales of a pair of groups: one for the low half of a register, one for the high
    // half.
    let first = _mm512_inserti64x4::<1>(_mm512_setzero_si512(), _mm256_set1_epi16(2));
    let mut sums = [_mm512_setzero_ps(); N];
    let mut minima = [_mm256_setzero_ps(); N];
    for (index, block) in weights.as_chunks::<144>().0.iter().enumerate() {
        let scales = _mm256_cvtepu8_epi16(load_128(&q4k_scales(block)));
        let spread = _mm512_castsi256_si512(scales);
        let mut parts = [(_mm512_setzero_si512(), _mm512_setzero_si512()); 4];
        for half in 0..2 {
            let packed = load(&block[16 + 64 * half..]);
            let nibbles = [packed, _mm512_srli_epi16::<4>(packed)];
            for (odd, nibbles) in nibbles.into_iter().enumerate() {
                let group = _mm512_add_epi16(first, _mm512_set1_epi16((4 * half + odd) as i16));
                parts[2 * half + odd] = (
                    _mm512_and_si512(nibbles, nibble),
                    _mm512_permutexvar_epi16(group, spread),
                );
            }
        }
        let (scale, minimum) = (half(block[0], block[1]), half(block[2], block[3]));
        for at in 0..N {
            let x = &x[at][index];
            let mut total = _mm512_setzero_si512();
            for (part, (weights, scale)) in parts.into_iter().enumerate() {
                let quants = bytes(&x.paired[64 * part..]);
                let products = _mm512_maddubs_epi16(weights, quants);
                total = _mm512_dpwssd_epi32(total, products, scale);
            }
            let less = _mm256_madd_epi16(scales, words(&x.wide_sums));
            let scale = _mm512_set1_ps(scale * x.scale);
            let minimum = _mm256_set1_ps(minimum * x.scale);
            sums[at] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total), scale, sums[at]);
            minima[at] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(less), minimum, minima[at]);
        }
    }
    std::array::from_fn(|at| {
        let minima = _mm512_zextps256_ps512(minima[at]);
        _mm512_reduce_add_ps(_mm512_sub_ps(sums[at], minima))
    })
}

/// Multiplies one row of Q6_K blocks by `N` rows: 256 weights of 6 bits with an offset of 32, in 16
/// groups with a scale of 8 bits each.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,f16c")]
pub fn q6k_row<const N: usize>(weights: &[u8], x: [&[ActivationBlock]; N]) -> [f32; N] {
    let nibble = _mm512_set1_epi8(0x0f);
    let pair = _mm512_set1_epi8(0x03);
    // Lanes of the scales of four groups of 16 weights.
    let first = _mm512_set_epi16(
        3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0,
        0, 0,
    );
    let by_half = |low: i64, high: i64| {
        let spread = |count: i64| count * 0x0001_0001_0001_0001;
        let (low, high) = (spread(low), spread(high));
        _mm512_setr_epi64(low, low, low, low, high, high, high, high)
    };
    let shifts = [by_half(0, 2), by_half(4, 6)];
    let mut sums = [_mm512_setzero_ps(); N];
    for (index, block) in weights.as_chunks::<210>().0.iter().enumerate() {
        let scales = _mm256_cvtepi8_epi16(load_128(&block[192..]));
        let spread = _mm512_castsi256_si512(scales);
        let mut parts = [(_mm512_setzero_si512(), _mm512_setzero_si512()); 4];
        for half in 0..2 {
            let low_bits = load(&block[64 * half..]);
            let nibbles = [low_bits, _mm512_srli_epi16::<4>(low_bits)];
            let high_bits = _mm512_broadcast_i64x4(load_256(&block[128 + 32 * half..]));
            for (part, (nibbles, shift)) in nibbles.into_iter().zip(shifts).enumerate() {
                let low = _mm512_and_si512(nibbles, nibble);
                let high = _mm512_and_si512(_mm512_srlv_epi16(high_bits, shift), pair);
                let group =
                    _mm512_add_epi16(first, _mm512_set1_epi16((8 * half + 4 * part) as i16));
                parts[2 * half + part] = (
                    _mm512_or_si512(low, _mm512_slli_epi16::<4>(high)),
                    _mm512_permutexvar_epi16(group, spread),
                );
            }
        }
        let scale = half(block[208], block[209]);
        for at in 0..N {
            let x = &x[at][index];
            let mut total = _mm512_setzero_si512();
            for (part, (weights, scale)) in parts.into_iter().enumerate() {
                let quants = bytes(&x.quants[64 * part..]);
                let products = _mm512_maddubs_epi16(weights, quants);
                total = _mm512_dpwssd_epi32(total, products, scale);
            }
            let offset = _mm256_slli_epi32::<5>(_mm256_madd_epi16(scales, words(&x.sums)));
            let total = _mm512_sub_epi32(total, _mm512_zextsi256_si512(offset));
            let scale = _mm512_set1_ps(scale * x.scale);
            sums[at] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(total), scale, sums[at]);
        }
    }
    std::array::from_fn(|at| _mm512_reduce_add_ps(sums[at]))
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

/// Loads the first 64 quants.
#[inline]
#[target_feature(enable = "avx512f")]
fn bytes(quants: &[i8]) -> __m512i {
    let quants = &quants[..64];
    // SAFETY: the slice has 64 bytes.
    unsafe { _mm512_loadu_si512(quants.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn words(words: &[i16; 16]) -> __m256i {
    // SAFETY: 16 words are 32 bytes.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}
