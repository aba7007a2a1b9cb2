//! The forward pass of Qwen2 and Llama networks over quantised weights.

use candle_core::quantized::QTensor;
use candle_core::{Device, Result, Tensor, bail};
use candle_nn::ops::rms_norm;
use candle_nn::rotary_emb::{rope, rope_i};

use super::attention::KeyValueCache;
use super::file::{Dimensions, ModelFile, RotaryPairing};
use super::kernels::SiluGate;
use super::weight::{RowKernels, WeightMatrix};

/// A loaded network.
pub struct Network {
    dimensions: Dimensions,
    window: usize,
    device: Device,
    /// The embedding table stays quantised; only the rows of the current tokens are unpacked.
    embedding: QTensor,
    layers: Vec<NetworkLayer>,
    norm: Tensor,
    head: WeightMatrix,
    rotary: RotaryTables,
}

/// The weights of one transformer layer.
struct NetworkLayer {
    attention_norm: Tensor,
    query: LinearLayer,
    key: LinearLayer,
    value: LinearLayer,
    output: WeightMatrix,
    forward_norm: Tensor,
    gate: WeightMatrix,
    up: WeightMatrix,
    down: WeightMatrix,
}

/// A weight matrix with an optional bias.
struct LinearLayer {
    weight: WeightMatrix,
    bias: Option<Tensor>,
}

/// Cosines and sines of the rotary embedding, computed once for all positions.
struct RotaryTables {
    cosines: Tensor,
    sines: Tensor,
}

impl Network {
    /// Loads the network for sequences of at most `window` tokens.
    ///
    /// # Errors
    /// Tensors are missing or damaged.
    pub fn load(file: &ModelFile, window: usize, device: &Device) -> Result<Self> {
        let dimensions = file.dimensions()?;
        let embedding = file.tensor("token_embd.weight", device)?;
        // Many small networks use their embedding table as the output matrix.
        let head = match file.has("output.weight") {
            true => "output.weight",
            false => "token_embd.weight",
        };
        let layers = (0..dimensions.layers)
            .map(|index| NetworkLayer::load(file, index, device))
            .collect::<Result<_>>()?;
        Ok(Self {
            rotary: RotaryTables::new(&dimensions, window, file, device)?,
            dimensions,
            window,
            device: device.clone(),
            embedding,
            layers,
            norm: plain(file, "output_norm.weight", device)?,
            head: file.weight(head, device)?,
        })
    }

    /// Returns the maximum number of tokens in a sequence.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Creates an empty cache for one sequence.
    ///
    /// # Errors
    /// Out of memory.
    pub fn cache(&self) -> Result<KeyValueCache> {
        KeyValueCache::new(&self.dimensions, self.window, &self.device)
    }

    /// Returns whether [`Network::extend_each`] gives exactly the states that one step for each token
    /// gives.
    pub fn has_equal_steps(&self) -> bool {
        let mut layers = self.layers.iter().flat_map(NetworkLayer::matrices);
        self.device.is_cpu()
            && self.head.has_equal_rows()
            && layers.all(WeightMatrix::has_equal_rows)
    }

    /// Runs the network on tokens after those in the cache, and adds them to the cache. Returns the
    /// state after the last token. After an error, the cache is unchanged.
    ///
    /// # Errors
    /// A token is outside the vocabulary, the context window is full, or the device is out of
    /// memory.
    pub fn extend(&self, tokens: &[u32], cache: &mut KeyValueCache) -> Result<HiddenState> {
        let x = self.run(tokens, cache, RowKernels::Fastest)?;
        Ok(HiddenState(x.narrow(0, tokens.len() - 1, 1)?.contiguous()?))
    }

    /// Same as [`Network::extend`] for a few tokens: returns the state after each of them.
    ///
    /// # Errors
    /// Those of [`Network::extend`].
    pub fn extend_each(&self, tokens: &[u32], cache: &mut KeyValueCache) -> Result<HiddenState> {
        self.run(tokens, cache, RowKernels::Equal).map(HiddenState)
    }

    fn run(
        &self,
        tokens: &[u32],
        cache: &mut KeyValueCache,
        kernels: RowKernels,
    ) -> Result<Tensor> {
        if tokens.is_empty() {
            bail!("no tokens to run")
        }
        cache.reserve(tokens.len())?;
        let ids = Tensor::new(tokens, &self.device)?;
        let mut x = self.embedding.embedding(&ids)?;
        let rotary = self.rotary.at(cache.len(), tokens.len())?;
        let step = NetworkStep {
            network: self,
            rotary,
            kernels,
            cache,
        };
        for (index, layer) in self.layers.iter().enumerate() {
            x = (&x + step.attention(index, layer, &x)?)?;
            x = (&x + step.feed_forward(layer, &x)?)?;
        }
        cache.advance(tokens.len());
        Ok(x)
    }

    /// Returns the score of every token as the next one after a single state.
    ///
    /// # Errors
    /// Out of memory.
    pub fn scores(&self, hidden: &HiddenState) -> Result<Vec<f32>> {
        self.all_scores(hidden)?.flatten_all()?.to_vec1()
    }

    /// Returns the score of every token as the next one after each state.
    ///
    /// # Errors
    /// Out of memory.
    pub fn scores_each(&self, hidden: &HiddenState) -> Result<Vec<Vec<f32>>> {
        self.all_scores(hidden)?.to_vec2()
    }

    fn all_scores(&self, hidden: &HiddenState) -> Result<Tensor> {
        let normed = rms_norm(&hidden.0, &self.norm, self.dimensions.norm_epsilon)?;
        self.head.forward(&normed, RowKernels::Equal)
    }

    /// Reshapes (new, heads * head size) to (heads, new, head size).
    fn split(&self, x: &Tensor) -> Result<Tensor> {
        let (new, width) = x.dims2()?;
        let head = self.dimensions.head;
        x.reshape((new, width / head, head))?
            .transpose(0, 1)?
            .contiguous()
    }
}

/// One run of the network over new tokens.
struct NetworkStep<'a> {
    network: &'a Network,
    rotary: RotaryTables,
    kernels: RowKernels,
    cache: &'a KeyValueCache,
}

impl NetworkStep<'_> {
    fn attention(&self, index: usize, layer: &NetworkLayer, x: &Tensor) -> Result<Tensor> {
        let network = self.network;
        let x = rms_norm(x, &layer.attention_norm, network.dimensions.norm_epsilon)?;
        let projections = [&layer.query, &layer.key, &layer.value];
        let weights = projections.map(|linear| &linear.weight);
        let [queries, keys, values] = WeightMatrix::forward_all(weights, &x, self.kernels)?;
        let queries = network.split(&layer.query.biased(queries)?)?;
        let keys = network.split(&layer.key.biased(keys)?)?;
        let values = network.split(&layer.value.biased(values)?)?;
        let queries = self.rotary.turn(&queries, network.dimensions.rotation)?;
        let keys = self.rotary.turn(&keys, network.dimensions.rotation)?;
        let mixed = self
            .cache
            .attend(index, &queries, &keys, &values, self.kernels)?;
        layer.output.forward(&mixed, self.kernels)
    }

    fn feed_forward(&self, layer: &NetworkLayer, x: &Tensor) -> Result<Tensor> {
        let x = rms_norm(x, &layer.forward_norm, self.network.dimensions.norm_epsilon)?;
        let [gate, up] = WeightMatrix::forward_all([&layer.gate, &layer.up], &x, self.kernels)?;
        if !x.device().is_cpu() {
            return layer.down.forward(&(gate.silu()? * up)?, self.kernels);
        }
        gate.inplace_op2(&up, &SiluGate)?;
        layer.down.forward(&gate, self.kernels)
    }
}

/// The network's output for its last tokens, before it is converted to scores.
pub struct HiddenState(Tensor);

impl LinearLayer {
    fn biased(&self, x: Tensor) -> Result<Tensor> {
        match &self.bias {
            Some(bias) => x.broadcast_add(bias),
            None => Ok(x),
        }
    }
}

impl NetworkLayer {
    fn matrices(&self) -> [&WeightMatrix; 7] {
        [
            &self.query.weight,
            &self.key.weight,
            &self.value.weight,
            &self.output,
            &self.gate,
            &self.up,
            &self.down,
        ]
    }

    fn load(file: &ModelFile, index: usize, device: &Device) -> Result<Self> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let weight = |part: &str| file.weight(&name(part), device);
        let linear = |part: &str| -> Result<LinearLayer> {
            let bias = file.tensor_if_present(&name(&format!("{part}.bias")), device)?;
            Ok(LinearLayer {
                weight: weight(&format!("{part}.weight"))?,
                bias: bias.map(|bias| bias.dequantize(device)).transpose()?,
            })
        };
        Ok(Self {
            attention_norm: plain(file, &name("attn_norm.weight"), device)?,
            query: linear("attn_q")?,
            key: linear("attn_k")?,
            value: linear("attn_v")?,
            output: weight("attn_output.weight")?,
            forward_norm: plain(file, &name("ffn_norm.weight"), device)?,
            gate: weight("ffn_gate.weight")?,
            up: weight("ffn_up.weight")?,
            down: weight("ffn_down.weight")?,
        })
    }
}

impl RotaryTables {
    fn new(
        dimensions: &Dimensions,
        window: usize,
        file: &ModelFile,
        device: &Device,
    ) -> Result<Self> {
        let half = dimensions.head / 2;
        // Llama 3 scales some frequencies by factors from the file.
        let factors = match file.tensor_if_present("rope_freqs.weight", &Device::Cpu)? {
            Some(factors) => factors.dequantize(&Device::Cpu)?.to_vec1::<f32>()?,
            None => vec![1.0; half],
        };
        let frequencies: Vec<f32> = factors
            .iter()
            .take(half)
            .enumerate()
            .map(|(i, factor)| {
                let power = 2.0 * i as f32 / dimensions.head as f32;
                1.0 / (dimensions.rotary_base.powf(power) * factor)
            })
            .collect();
        let frequencies = Tensor::from_vec(frequencies, (1, half), device)?;
        let positions = Tensor::arange(0f32, window as f32, device)?.reshape((window, 1))?;
        let angles = positions.matmul(&frequencies)?;
        Ok(Self {
            cosines: angles.cos()?,
            sines: angles.sin()?,
        })
    }

    fn at(&self, start: usize, len: usize) -> Result<Self> {
        Ok(Self {
            cosines: self.cosines.narrow(0, start, len)?,
            sines: self.sines.narrow(0, start, len)?,
        })
    }

    fn turn(&self, x: &Tensor, rotation: RotaryPairing) -> Result<Tensor> {
        let x = x.unsqueeze(0)?;
        let turned = match rotation {
            RotaryPairing::Halves => rope(&x, &self.cosines, &self.sines)?,
            RotaryPairing::Pairs => rope_i(&x, &self.cosines, &self.sines)?,
        };
        turned.squeeze(0)
    }
}

fn plain(file: &ModelFile, name: &str, device: &Device) -> Result<Tensor> {
    file.tensor(name, device)?.dequantize(device)
}
