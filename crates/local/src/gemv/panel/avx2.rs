//! The products of panels for AVX2.

use std::arch::x86_64::*;

use super::{Panel, PanelInput, QUAD, ROWS};

/// Adds the products of a panel of Q4_K weights and each of `N` rows to `sums`.
#[target_feature(enable = "avx2,fma")]
pub fn q4k<const N: usize>(panel: &Panel, x: &[PanelInput; N], sums: &mut [[f32; ROWS]; N]) {
    multiply::<8, 8, 4, N>(panel, x, |x| &x.wide_sums, sums);
}

/// Adds the products of a panel of Q6_K weights and each of `N` rows to `sums`.
#[target_feature(enable = "avx2,fma")]
pub fn q6k<const N: usize>(panel: &Panel, x: &[PanelInput; N], sums: &mut [[f32; ROWS]; N]) {
    multiply::<4, 2, 8, N>(panel, x, |x| &x.sums, sums);
}

/// Adds the products of a panel and each of `N` rows to `sums`. A group has `GROUP` quads of weights.
/// `group_sums` returns the sums of an input's groups, in pairs.
/// The products of `PART` quads can be added as words of 16 bits.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn multiply<const GROUP: usize, const PART: usize, const PAIRS: usize, const N: usize>(
    panel: &Panel,
    x: &[PanelInput; N],
    group_sums: impl Fn(&PanelInput) -> &[[i16; 2]; PAIRS],
    sums: &mut [[f32; ROWS]; N],
) {
    let ones = _mm256_set1_epi16(1);
    for eight in 0..ROWS / 8 {
        let groups = panel.quants.as_chunks::<GROUP>().0;
        let mut totals = [_mm256_setzero_ps(); N];
        for (index, (quants, scales)) in groups.iter().zip(&panel.scales).enumerate() {
            let mut products = [_mm256_setzero_si256(); N];
            for (part, quants) in quants.as_chunks::<PART>().0.iter().enumerate() {
                let mut words = [_mm256_setzero_si256(); N];
                for (quad, weights) in quants.iter().enumerate() {
                    let weights = bytes(weights, eight);
                    for (word, x) in words.iter_mut().zip(x) {
                        let quad = x.quants[index * GROUP + part * PART + quad];
                        let quad = i32::from_ne_bytes(quad.map(|quant| quant as u8));
                        let product = _mm256_maddubs_epi16(weights, _mm256_set1_epi32(quad));
                        *word = _mm256_add_epi16(*word, product);
                    }
                }
                for (product, word) in products.iter_mut().zip(words) {
                    *product = _mm256_add_epi32(*product, _mm256_madd_epi16(word, ones));
                }
            }
            let scale = floats(scales, eight);
            for (total, product) in totals.iter_mut().zip(products) {
                *total = _mm256_fmadd_ps(_mm256_cvtepi32_ps(product), scale, *total);
            }
        }
        let minimum = floats(&panel.minimum, eight);
        for at in 0..N {
            let mut less = _mm256_setzero_si256();
            for (minima, sums) in panel.minima.iter().zip(group_sums(&x[at])) {
                let [low, high] = sums.map(i16::to_ne_bytes);
                let sums = i32::from_ne_bytes([low[0], low[1], high[0], high[1]]);
                let products = _mm256_madd_epi16(words(minima, eight), _mm256_set1_epi32(sums));
                less = _mm256_add_epi32(less, products);
            }
            let total = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(less), minimum, totals[at]);
            let before = floats(&sums[at], eight);
            let sum = _mm256_fmadd_ps(total, _mm256_set1_ps(x[at].scale), before);
            let to = &mut sums[at][8 * eight..][..8];
            // SAFETY: the slice has 8 floats.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), sum) };
        }
    }
}

/// Loads a quad of 8 rows.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes(quants: &[[u8; QUAD]; ROWS], eight: usize) -> __m256i {
    let quants = &quants[8 * eight..][..8];
    // SAFETY: the slice has 32 bytes.
    unsafe { _mm256_loadu_si256(quants.as_ptr().cast()) }
}

/// Loads two words of each of 8 rows.
#[inline]
#[target_feature(enable = "avx2")]
fn words(words: &[[i16; 2]; ROWS], eight: usize) -> __m256i {
    let words = &words[8 * eight..][..8];
    // SAFETY: the slice has 32 bytes.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// Loads the floats of 8 rows.
#[inline]
#[target_feature(enable = "avx2")]
fn floats(floats: &[f32; ROWS], eight: usize) -> __m256 {
    let floats = &floats[8 * eight..][..8];
    // SAFETY: the slice has 8 floats.
    unsafe { _mm256_loadu_ps(floats.as_ptr()) }
}
