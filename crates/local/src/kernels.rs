//! The most expensive element-wise loops on a CPU, written so that the compiler vectorises them:
//! softmax over the visible part of each row, the gate of the feed-forward layer, and the attention
//! of single positions.

use std::ops::{Deref, Range};

use candle_core::{
    CpuStorage, Device, InplaceOp1, InplaceOp2, Layout, Result, Storage, Tensor, bail,
};

use super::threads;

/// Number of parallel accumulators: a multiple of every vector width.
const LANES: usize = 16;

/// Computes `e^x` with a relative error of about 2e-7, without branches or calls.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let n = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
    // ln 2 is split in two parts; the first is exact for these values of n.
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    for c in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        0.5,
    ] {
        p = p * r + c;
    }
    let fraction = p * r * r + r + 1.0;
    fraction * f32::from_bits(((n as i32 + 127) << 23) as u32)
}

#[inline(always)]
fn softmax_row(row: &mut [f32], seen: Range<usize>, scale: f32) {
    row[..seen.start].fill(0.0);
    row[seen.end..].fill(0.0);
    let seen = &mut row[seen];
    let mut maxima = [f32::NEG_INFINITY; LANES];
    let mut chunks = seen.chunks_exact(LANES);
    for chunk in &mut chunks {
        for (max, x) in maxima.iter_mut().zip(chunk) {
            *max = if *x > *max { *x } else { *max };
        }
    }
    let rest = chunks.remainder().iter().chain(&maxima);
    let max = rest.fold(f32::NEG_INFINITY, |a, b| a.max(*b));
    let mut sums = [0f32; LANES];
    let mut chunks = seen.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for (sum, x) in sums.iter_mut().zip(chunk) {
            *x = exp((*x - max) * scale);
            *sum += *x;
        }
    }
    let mut total: f32 = sums.iter().sum();
    for x in chunks.into_remainder() {
        *x = exp((*x - max) * scale);
        total += *x;
    }
    let factor = 1.0 / total;
    for x in seen {
        *x *= factor;
    }
}

#[inline(always)]
fn gate_row(gate: &mut [f32], up: &[f32]) {
    for (g, u) in gate.iter_mut().zip(up) {
        *g = *g / (1.0 + exp(-*g)) * u;
    }
}

/// The inputs of one key head for the attention of a single position.
struct SinglePositionAttention<'a> {
    /// The consecutive queries that share the key head.
    queries: &'a [f32],
    /// One row for each position.
    keys: &'a [f32],
    values: &'a [f32],
    head: usize,
}

#[inline(always)]
fn attend_body(single: &SinglePositionAttention, out: &mut [f32], scores: &mut [f32]) {
    let head = single.head;
    let len = single.keys.len() / head;
    for (position, key) in single.keys.chunks_exact(head).enumerate() {
        for (group, query) in single.queries.chunks_exact(head).enumerate() {
            scores[group * len + position] = dot(query, key);
        }
    }
    let scale = 1.0 / (head as f32).sqrt();
    for row in scores.chunks_exact_mut(len) {
        softmax_row(row, 0..len, scale);
    }
    out.fill(0.0);
    for (position, value) in single.values.chunks_exact(head).enumerate() {
        for (group, out) in out.chunks_exact_mut(head).enumerate() {
            let weight = scores[group * len + position];
            for (out, value) in out.iter_mut().zip(value) {
                *out += weight * value;
            }
        }
    }
}

#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// Compiles a loop a second time for AVX2 and selects the version at run time.
macro_rules! widest {
    ($name:ident, $wide:ident, $body:ident, ($($arg:ident: $kind:ty),*)) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn $wide($($arg: $kind),*) {
            $body($($arg),*)
        }

        fn $name($($arg: $kind),*) {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: the CPU features that the function needs were detected.
                return unsafe { $wide($($arg),*) };
            }
            $body($($arg),*)
        }
    };
}

widest!(softmax, softmax_avx2, softmax_row, (row: &mut [f32], seen: Range<usize>, scale: f32));
widest!(gate, gate_avx2, gate_row, (gate: &mut [f32], up: &[f32]));

widest!(attend, attend_avx2, attend_body, (single: &SinglePositionAttention, out: &mut [f32], scores: &mut [f32]));

/// Computes the attention of a few positions, each by itself. `queries` has the shape (new, heads,
/// head size); `keys` and `values` have the shape (key heads, capacity, head size). The first new
/// position sees the first `before + 1` of them, and each further one sees one more; of these, only the
/// last `visible`, if given. The result has the shape (new, heads * head size).
///
/// # Errors
/// The tensors are not contiguous floats on the CPU, or their shapes do not match.
pub fn attend_rows(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    before: usize,
    visible: Option<usize>,
) -> Result<Tensor> {
    let (new, heads, head) = queries.dims3()?;
    let (key_heads, room, _) = keys.dims3()?;
    let (queries, keys, values) = (
        queries.storage_and_layout(),
        keys.storage_and_layout(),
        values.storage_and_layout(),
    );
    let (queries, keys, values) = (seen(&queries)?, seen(&keys)?, seen(&values)?);
    if before + new > room
        || keys.len() != values.len()
        || heads * head * room * key_heads != keys.len() * heads
    {
        bail!(
            "attention of {new} positions after {before} of {room}: {} query, {} key and {} value numbers \
             do not fit {heads} heads with {key_heads} key heads",
            queries.len(),
            keys.len(),
            values.len()
        )
    }
    let shared = heads / key_heads * head;
    let mut out = vec![0f32; new * heads * head];
    for_each_row(&mut out, shared, |index, out| {
        let (position, key_head) = (index / key_heads, index % key_heads);
        let end = before + position + 1;
        let len = end.min(visible.unwrap_or(end));
        let first = key_head * room + end - len;
        let held = first * head..(first + len) * head;
        let single = SinglePositionAttention {
            queries: &queries[index * shared..(index + 1) * shared],
            keys: &keys[held.clone()],
            values: &values[held],
            head,
        };
        attend(&single, out, &mut vec![0f32; shared / head * len]);
    });
    Tensor::from_vec(out, (new, heads * head), &Device::Cpu)
}

fn seen<'a>((storage, layout): &'a (impl Deref<Target = Storage>, &Layout)) -> Result<&'a [f32]> {
    match (&**storage, layout.contiguous_offsets()) {
        (Storage::Cpu(CpuStorage::F32(values)), Some((from, to))) => Ok(&values[from..to]),
        _ => bail!("contiguous 32-bit floats on the CPU are needed"),
    }
}

/// Computes the softmax of scaled scores in place. The tensor has the shape (heads, queries, keys),
/// with the queries of one key head consecutive. Query `i` of the last `queries` positions sees all
/// keys up to its own position; of these, only the last `visible`, if given.
pub struct CausalSoftmax {
    /// Number of positions in this step.
    pub queries: usize,
    pub visible: Option<usize>,
    pub scale: f32,
}

impl InplaceOp1 for CausalSoftmax {
    fn name(&self) -> &'static str {
        "causal-softmax"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let keys = layout.dims().last().copied().unwrap_or(0);
        let scores = floats(storage, layout)?;
        if keys < self.queries || keys == 0 {
            bail!(
                "there are more query positions ({}) than keys ({keys})",
                self.queries
            )
        }
        let before = keys - self.queries;
        for_each_row(scores, keys, |index, row| {
            let end = before + index % self.queries + 1;
            let first = end.saturating_sub(self.visible.unwrap_or(end));
            softmax(row, first..end, self.scale);
        });
        Ok(())
    }
}

/// Computes `silu(gate) * up` and stores the result in `gate`.
pub struct SiluGate;

impl InplaceOp2 for SiluGate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn cpu_fwd(
        &self,
        gates: &mut CpuStorage,
        gates_layout: &Layout,
        ups: &CpuStorage,
        ups_layout: &Layout,
    ) -> Result<()> {
        let width = gates_layout.dims().last().copied().unwrap_or(0);
        let Some((from, to)) = ups_layout.contiguous_offsets() else {
            bail!("the gate needs contiguous tensors")
        };
        let ups = &ups.as_slice::<f32>()?[from..to];
        let gates = floats(gates, gates_layout)?;
        if width == 0 || gates.len() != ups.len() {
            bail!("{} gates for {} values", gates.len(), ups.len())
        }
        for_each_row(gates, width, |index, row| {
            gate(row, &ups[index * width..(index + 1) * width]);
        });
        Ok(())
    }
}

fn floats<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((from, to))) => Ok(&mut values[from..to]),
        _ => bail!("contiguous 32-bit floats are needed"),
    }
}

fn for_each_row(values: &mut [f32], width: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
    let rows = values.len() / width;
    let base = values.as_mut_ptr() as usize;
    threads::for_rows(rows, |range| {
        for index in range {
            let start = (base as *mut f32).wrapping_add(index * width);
            // SAFETY: rows do not overlap, each index is used once, and `values` outlives the call.
            let row = unsafe { std::slice::from_raw_parts_mut(start, width) };
            work(index, row);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_approximation_is_accurate_over_its_range() {
        for step in -860..=880 {
            let x = step as f32 / 10.0;
            let error = (f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs();
            assert!(error < 1e-6, "exp({x}) is off by {error}");
        }
        assert!(exp(-1000.0) < 1e-37);
    }

    #[test]
    fn causal_softmax_ignores_later_positions() {
        let scores: Vec<f32> = (0..2 * 3 * 37).map(|i| (i % 11) as f32 / 3.0).collect();
        let tensor = Tensor::from_vec(scores.clone(), (2, 3, 37), &Device::Cpu).unwrap();
        let op = CausalSoftmax {
            queries: 3,
            visible: None,
            scale: 0.5,
        };
        tensor.inplace_op1(&op).unwrap();
        let rows = tensor.flatten_to(1).unwrap().to_vec2::<f32>().unwrap();
        for (index, row) in rows.iter().enumerate() {
            let visible = 34 + index % 3 + 1;
            let source = &scores[index * 37..index * 37 + visible];
            let total: f32 = source.iter().map(|x| (x * 0.5).exp()).sum();
            for (x, y) in source.iter().zip(row) {
                assert!(((x * 0.5).exp() / total - y).abs() < 1e-6);
            }
            assert!(row[visible..].iter().all(|x| *x == 0.0));
        }
    }

    #[test]
    fn gate_computes_silu_times_up() {
        let gates: Vec<f32> = (0..30).map(|i| i as f32 - 15.0).collect();
        let ups: Vec<f32> = (0..30).map(|i| i as f32 / 7.0).collect();
        let tensor = Tensor::from_vec(gates.clone(), (3, 10), &Device::Cpu).unwrap();
        let other = Tensor::from_vec(ups.clone(), (3, 10), &Device::Cpu).unwrap();
        tensor.inplace_op2(&other, &SiluGate).unwrap();
        let result = tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
        for ((g, u), y) in gates.iter().zip(&ups).zip(result) {
            assert!((g / (1.0 + (-g).exp()) * u - y).abs() < 1e-5);
        }
    }

    #[test]
    fn more_positions_than_keys_is_an_error() {
        let tensor = Tensor::zeros((1, 2, 1), candle_core::DType::F32, &Device::Cpu).unwrap();
        let op = CausalSoftmax {
            queries: 2,
            visible: None,
            scale: 1.0,
        };
        assert!(tensor.inplace_op1(&op).is_err());
    }
}
