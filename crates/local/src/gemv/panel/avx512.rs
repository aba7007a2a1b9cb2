//! The products of panels for AVX-512 VNNI.

use std::arch::x86_64::*;

use super::{Panel, PanelInput, QUAD, ROWS};

/// Adds the products of a panel of Q4_K weights and each of `N` rows to `sums`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub fn q4k<const N: usize>(panel: &Panel, x: &[PanelInput; N], sums: &mut [[f32; ROWS]; N]) {
    multiply::<8, 4, N>(panel, x, |x| &x.wide_sums, sums);
}

/// Adds the products of a panel of Q6_K weights and each of `N` rows to `sums`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub fn q6k<const N: usize>(panel: &Panel, x: &[PanelInput; N], sums: &mut [[f32; ROWS]; N]) {
    multiply::<4, 8, N>(panel, x, |x| &x.sums, sums);
}

/// Adds the products of a panel and each of `N` rows to `sums`. A group has `GROUP` quads of weights.
/// `group_sums` returns the sums of an input's groups, in pairs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn multiply<const GROUP: usize, const PAIRS: usize, const N: usize>(
    panel: &Panel,
    x: &[PanelInput; N],
    group_sums: impl Fn(&PanelInput) -> &[[i16; 2]; PAIRS],
    sums: &mut [[f32; ROWS]; N],
) {
    let groups = panel.quants.as_chunks::<GROUP>().0;
    let mut totals = [[_mm512_setzero_ps(); 2]; N];
    for (index, (quants, scales)) in groups.iter().zip(&panel.scales).enumerate() {
        let mut products = [[_mm512_setzero_si512(); 2]; N];
        for (quad, weights) in quants.iter().enumerate() {
            let weights = [0, 1].map(|half| bytes(weights, half));
            for (products, x) in products.iter_mut().zip(x) {
                let quad = _mm512_set1_epi32(i32::from_ne_bytes(
                    x.quants[index * GROUP + quad].map(|quant| quant as u8),
                ));
                for (product, weights) in products.iter_mut().zip(weights) {
                    *product = _mm512_dpbusd_epi32(*product, weights, quad);
                }
            }
        }
        for half in [0, 1] {
            let scale = floats(scales, half);
            for (total, product) in totals.iter_mut().zip(products) {
                let product = _mm512_cvtepi32_ps(product[half]);
                total[half] = _mm512_fmadd_ps(product, scale, total[half]);
            }
        }
    }
    for half in [0, 1] {
        let minimum = floats(&panel.minimum, half);
        for at in 0..N {
            let mut less = _mm512_setzero_si512();
            for (minima, sums) in panel.minima.iter().zip(group_sums(&x[at])) {
                let [low, high] = sums.map(i16::to_ne_bytes);
                let sums =
                    _mm512_set1_epi32(i32::from_ne_bytes([low[0], low[1], high[0], high[1]]));
                less = _mm512_dpwssd_epi32(less, words(minima, half), sums);
            }
            let less = _mm512_cvtepi32_ps(less);
            let total = _mm512_fnmadd_ps(less, minimum, totals[at][half]);
            let before = floats(&sums[at], half);
            let sum = _mm512_fmadd_ps(total, _mm512_set1_ps(x[at].scale), before);
            let to = &mut sums[at][16 * half..][..16];
            // SAFETY: the slice has 16 floats.
            unsafe { _mm512_storeu_ps(to.as_mut_ptr(), sum) };
        }
    }
}

/// Loads a quad of half of the rows.
#[inline]
#[target_feature(enable = "avx512f")]
fn bytes(quants: &[[u8; QUAD]; ROWS], half: usize) -> __m512i {
    let quants = &quants[16 * half..][..16];
    // SAFETY: the slice has 64 bytes.
    unsafe { _mm512_loadu_si512(quants.as_ptr().cast()) }
}

/// Loads two words of each of half of the rows.
#[inline]
#[target_feature(enable = "avx512f")]
fn words(words: &[[i16; 2]; ROWS], half: usize) -> __m512i {
    let words = &words[16 * half..][..16];
    // SAFETY: the slice has 64 bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Loads the floats of half of the rows.
#[inline]
#[target_feature(enable = "avx512f")]
fn floats(floats: &[f32; ROWS], half: usize) -> __m512 {
    let floats = &floats[16 * half..][..16];
    // SAFETY: the slice has 16 floats.
    unsafe { _mm512_loadu_ps(floats.as_ptr()) }
}
