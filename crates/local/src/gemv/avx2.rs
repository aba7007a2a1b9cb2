//! The kernels for AVX2.

use std::arch::x86_64::*;

use super::{ActivationBlock, half, q4k_scales};

/// Multiplies one row of Q4_K blocks by `N` rows: 256 weights of 4 bits in 8 groups, each with a scale
/// and a minimum of 6 bits.
#[target_feature(enable = "avx2,fma,f16c")]
pub fn q4k_row<const N: usize>(weights: &[u8], x: [&[ActivationBlock]; N]) -> [f32; N] {
    let nibble = _mm256_set1_epi8(0x0f);
    let mut sums = [_mm256_setzero_ps(); N];
    let mut minima = [_mm256_setzero_ps(); N];
    for (index, block) in weights.as_chunks::<144>().0.iter().enumerate() {
        let scales = q4k_scales(block);
        let mut totals = [_mm256_setzero_si256(); N];
        for pair in 0..4 {
            let packed = load(&block[16 + 32 * pair..]);
            let nibbles = [packed, _mm256_srli_epi16::<4>(packed)];
            for (odd, nibbles) in nibbles.into_iter().enumerate() {
                let group = 2 * pair + odd;
                let weights = _mm256_and_si256(nibbles, nibble);
                let scale = _mm256_set1_epi16(i16::from(scales[group]));
                for (total, x) in totals.iter_mut().zip(x) {
                    let quants = bytes(&x[index].quants[32 * group..]);
                    let products = _mm256_maddubs_epi16(weights, quants);
                    let scaled = _mm256_madd_epi16(products, scale);
                    *total = _mm256_add_epi32(*total, scaled);
                }
            }
        }
        let (scale, minimum) = (half(block[0], block[1]), half(block[2], block[3]));
        let scales = _mm256_cvtepu8_epi16(load_128(&scales));
        for at in 0..N {
            let x = &x[at][index];
            let less = _mm256_madd_epi16(scales, words(&x.wide_sums));
            let scale = _mm256_set1_ps(scale * x.scale);
            let minimum = _mm256_set1_ps(minimum * x.scale);
            sums[at] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(totals[at]), scale, sums[at]);
            minima[at] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(less), minimum, minima[at]);
        }
    }
    std::array::from_fn(|at| sum(_mm256_sub_ps(sums[at], minima[at])))
}

/// Multiplies one row of Q6_K blocks by `N` rows: 256 weights of 6 bits with an offset of 32, in 16
/// groups with a scale of 8 bits each.
#[target_feature(enable = "avx2,fma,f16c")]
pub fn q6k_row<const N: usize>(weights: &[u8], x: [&[ActivationBlock]; N]) -> [f32; N] {
    let nibble = _mm256_set1_epi8(0x0f);
    let pair = _mm256_set1_epi8(0x30);
    let mut sums = [_mm256_setzero_ps(); N];
    for (index, block) in weights.as_chunks::<210>().0.iter().enumerate() {
        let scales = _mm256_cvtepi8_epi16(load_128(&block[192..]));
        let mut totals = [_mm256_setzero_si256(); N];
        for half in 0..2 {
            let low_bits = [0, 32].map(|at| load(&block[64 * half + at..]));
            let high_bits = load(&block[128 + 32 * half..]);
            // The two high bits of each weight, in the order of the four groups of 32 weights.
            let high_bits = [
                _mm256_slli_epi16::<4>(high_bits),
                _mm256_slli_epi16::<2>(high_bits),
                high_bits,
                _mm256_srli_epi16::<2>(high_bits),
            ];
            for (part, high_bits) in high_bits.into_iter().enumerate() {
                let packed = low_bits[part % 2];
                let nibbles = if part < 2 {
                    packed
                } else {
                    _mm256_srli_epi16::<4>(packed)
                };
                let weights = _mm256_or_si256(
                    _mm256_and_si256(nibbles, nibble),
                    _mm256_and_si256(high_bits, pair),
                );
                let group = 4 * half + part;
                let scale = [2 * group, 2 * group + 1].map(|at| i16::from(block[192 + at] as i8));
                let scale = _mm256_set_m128i(_mm_set1_epi16(scale[1]), _mm_set1_epi16(scale[0]));
                for (total, x) in totals.iter_mut().zip(x) {
                    let quants = bytes(&x[index].quants[32 * group..]);
                    let products = _mm256_maddubs_epi16(weights, quants);
                    let scaled = _mm256_madd_epi16(products, scale);
                    *total = _mm256_add_epi32(*total, scaled);
                }
            }
        }
        let scale = half(block[208], block[209]);
        for at in 0..N {
            let x = &x[at][index];
            let offset = _mm256_slli_epi32::<5>(_mm256_madd_epi16(scales, words(&x.sums)));
            let total = _mm256_sub_epi32(totals[at], offset);
            let scale = _mm256_set1_ps(scale * x.scale);
            sums[at] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total), scale, sums[at]);
        }
    }
    std::array::from_fn(|at| sum(sums[at]))
}

/// Adds the lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn sum(lanes: __m256) -> f32 {
    let half = _mm_add_ps(
        _mm256_castps256_ps128(lanes),
        _mm256_extractf128_ps::<1>(lanes),
    );
    let pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8]) -> __m256i {
    let bytes = &bytes[..32];
    // SAFETY: the slice has 32 bytes.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_128(bytes: &[u8]) -> __m128i {
    let bytes = &bytes[..16];
    // SAFETY: the slice has 16 bytes.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Loads the first 32 quants.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes(quants: &[i8]) -> __m256i {
    let quants = &quants[..32];
    // SAFETY: the slice has 32 bytes.
    unsafe { _mm256_loadu_si256(quants.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn words(words: &[i16; 16]) -> __m256i {
    // SAFETY: 16 words are 32 bytes.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}
