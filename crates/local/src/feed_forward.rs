//! The feed-forward layer of a transformer layer: dense, or a mixture of experts.

use std::cmp::Ordering;

use candle_core::{Device, Result, Tensor};

use super::dimensions::{Activation, Dimensions};
use super::file::ModelFile;
use super::gpu::GpuStep;
use super::kernels::SiluGate;
use super::weight::{RowKernels, WeightMatrix};

/// The weights of a feed-forward layer.
pub enum FeedForward {
    Dense(GatedLayer),
    Experts(ExpertLayer),
}

/// `down(activation(gate(x)) * up(x))`.
pub struct GatedLayer {
    gate: WeightMatrix,
    up: WeightMatrix,
    down: WeightMatrix,
    activation: Activation,
}

/// Many gated layers, a few of which are used for each token.
pub struct ExpertLayer {
    /// Scores the experts. The shape is (hidden size, experts).
    router: Tensor,
    experts: Vec<GatedLayer>,
    /// Number of experts for each token.
    used: usize,
}

/// A row of the input that goes to an expert, and the expert's weight in the row's output.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RoutedRow {
    row: u32,
    weight: f32,
}

impl FeedForward {
    /// Loads the weights of the layer with this index.
    ///
    /// # Errors
    /// Tensors are missing or damaged.
    pub fn load(
        file: &ModelFile,
        dimensions: &Dimensions,
        index: usize,
        device: &Device,
    ) -> Result<Self> {
        let activation = dimensions.activation;
        let name = |part: &str| format!("blk.{index}.{part}.weight");
        if dimensions.experts == 0 {
            return Ok(Self::Dense(GatedLayer {
                gate: file.weight(&name("ffn_gate"), device)?,
                up: file.weight(&name("ffn_up"), device)?,
                down: file.weight(&name("ffn_down"), device)?,
                activation,
            }));
        }
        let matrices = |part: &str| file.stacked_weights(&name(part), device);
        let gates = matrices("ffn_gate_exps")?.into_iter();
        let rest = gates
            .zip(matrices("ffn_up_exps")?)
            .zip(matrices("ffn_down_exps")?);
        let experts: Vec<GatedLayer> = rest
            .map(|((gate, up), down)| GatedLayer {
                gate,
                up,
                down,
                activation,
            })
            .collect();
        let router = file.tensor(&name("ffn_gate_inp"), device)?;
        Ok(Self::Experts(ExpertLayer {
            router: router.dequantize(device)?.t()?.contiguous()?,
            used: dimensions.experts.min(experts.len()),
            experts,
        }))
    }

    /// Returns all weight matrices that use block kernels where they can.
    pub fn matrices(&self) -> impl Iterator<Item = &WeightMatrix> {
        let layers = match self {
            Self::Dense(layer) => std::slice::from_ref(layer),
            Self::Experts(layer) => &layer.experts,
        };
        layers
            .iter()
            .flat_map(|layer| [&layer.gate, &layer.up, &layer.down])
    }

    /// Computes the layer's output for each row of `x`.
    ///
    /// # Errors
    /// The shapes do not match, or the device is out of memory.
    pub fn run(&self, x: &Tensor, kernels: RowKernels, gpu: Option<&GpuStep>) -> Result<Tensor> {
        match self {
            Self::Dense(layer) => layer.run(x, kernels, gpu),
            Self::Experts(layer) => layer.run(x, kernels),
        }
    }
}

impl GatedLayer {
    fn run(&self, x: &Tensor, kernels: RowKernels, gpu: Option<&GpuStep>) -> Result<Tensor> {
        let [gate, up] = WeightMatrix::forward_all([&self.gate, &self.up], x, kernels)?;
        let gated = match (self.activation, gpu) {
            (Activation::Gelu, _) => (gate.gelu()? * up)?,
            (Activation::Silu, Some(gpu)) => gpu.gate(gate, &up)?,
            (Activation::Silu, None) if x.device().is_cpu() => {
                gate.inplace_op2(&up, &SiluGate)?;
                gate
            }
            (Activation::Silu, None) => (gate.silu()? * up)?,
        };
        self.down.forward(&gated, kernels)
    }
}

impl ExpertLayer {
    fn run(&self, x: &Tensor, kernels: RowKernels) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        let mut output = vec![0f32; rows * width];
        for (expert, routed) in self.experts.iter().zip(self.route(x, kernels)?) {
            if routed.is_empty() {
                continue;
            }
            let mut own: Vec<u32> = routed.iter().map(|routed| routed.row).collect();
            // Several rows use other kernels than one. A row of a prompt has to give the same result
            // whichever rows its expert gets with it.
            if let [row] = own[..]
                && kernels == RowKernels::Fastest
                && rows > 1
            {
                own.push(row);
            }
            let own = x.index_select(&Tensor::new(own, x.device())?, 0)?;
            let results = expert.run(&own, kernels, None)?.to_vec2::<f32>()?;
            for (routed, result) in routed.iter().zip(results) {
                let to = &mut output[routed.row as usize * width..][..width];
                for (to, result) in to.iter_mut().zip(result) {
                    *to += routed.weight * result;
                }
            }
        }
        Tensor::from_vec(output, (rows, width), x.device())
    }

    /// Returns the rows for each expert.
    fn route(&self, x: &Tensor, kernels: RowKernels) -> Result<Vec<Vec<RoutedRow>>> {
        let (rows, _) = x.dims2()?;
        let scores = match kernels {
            RowKernels::Fastest => x.matmul(&self.router)?.to_vec2::<f32>()?,
            // The product of several rows differs in its last bits from those of single rows.
            RowKernels::Equal => (0..rows)
                .map(|row| {
                    x.narrow(0, row, 1)?
                        .matmul(&self.router)?
                        .squeeze(0)?
                        .to_vec1()
                })
                .collect::<Result<_>>()?,
        };
        let mut routed = vec![Vec::new(); self.experts.len()];
        for (row, scores) in (0u32..).zip(scores) {
            for (expert, weight) in best_experts(&scores, self.used) {
                routed[expert].push(RoutedRow { row, weight });
            }
        }
        Ok(routed)
    }
}

/// Returns the `used` experts with the highest scores, and their weights: the softmax of these scores.
fn best_experts(scores: &[f32], used: usize) -> Vec<(usize, f32)> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let higher = |a: &usize, b: &usize| match scores[*b].total_cmp(&scores[*a]) {
        Ordering::Equal => a.cmp(b),
        unequal => unequal,
    };
    order.sort_by(higher);
    order.truncate(used);
    let highest = order.first().map_or(0.0, |best| scores[*best]);
    let powers: Vec<f32> = (order.iter())
        .map(|expert| (scores[*expert] - highest).exp())
        .collect();
    let total: f32 = powers.iter().sum();
    order
        .into_iter()
        .zip(powers.into_iter().map(|power| power / total))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_with_the_highest_scores_share_a_weight_of_one() {
        let best = best_experts(&[0.0, 2.0, 1.0, 2.0], 3);
        let experts: Vec<usize> = best.iter().map(|(expert, _)| *expert).collect();
        assert_eq!(experts, [1, 3, 2]);
        let total: f32 = best.iter().map(|(_, weight)| weight).sum();
        assert!((total - 1.0).abs() < 1e-6);
        let share = 1.0 / (2.0 + (-1f32).exp());
        assert!((best[0].1 - share).abs() < 1e-6, "{best:?}");
    }
}
