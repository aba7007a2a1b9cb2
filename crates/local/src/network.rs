//! The forward pass of a network over quantised weights.

use candle_core::quantized::QTensor;
use candle_core::{D, Device, Result, Tensor, bail};
use candle_nn::ops::rms_norm;

use super::attention::{CachedLayer, KeyValueCache};
use super::dimensions::Dimensions;
use super::feed_forward::FeedForward;
use super::file::ModelFile;
use super::gpu::GpuStep;
use super::rotary::RotaryTables;
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
    /// The rotary embedding of layers that see only the nearest positions.
    local_rotary: Option<RotaryTables>,
}

/// The weights of one transformer layer.
struct NetworkLayer {
    attention_norm: Tensor,
    query: LinearLayer,
    key: LinearLayer,
    value: LinearLayer,
    /// Normalizes each head of the queries.
    query_norm: Option<Tensor>,
    /// Normalizes each head of the keys.
    key_norm: Option<Tensor>,
    output: WeightMatrix,
    attention_output_norm: Option<Tensor>,
    forward_norm: Tensor,
    forward: FeedForward,
    forward_output_norm: Option<Tensor>,
}

/// A weight matrix with an optional bias.
struct LinearLayer {
    weight: WeightMatrix,
    bias: Option<Tensor>,
}

impl Network {
    /// Loads the network for sequences of at most `window` tokens.
    ///
    /// # Errors
    /// Tensors are missing or damaged.
    pub fn load(file: &ModelFile, window: usize, device: &Device) -> Result<Self> {
        let dimensions = Dimensions::read(file)?;
        let embedding = file.tensor("token_embd.weight", device)?;
        // Many small networks use their embedding table as the output matrix.
        let head = match file.has("output.weight") {
            true => "output.weight",
            false => "token_embd.weight",
        };
        let layers = (0..dimensions.layers)
            .map(|index| NetworkLayer::load(file, &dimensions, index, device))
            .collect::<Result<_>>()?;
        // Llama 3 scales some frequencies by factors from the file.
        let factors = match file.tensor_if_present("rope_freqs.weight", &Device::Cpu)? {
            Some(factors) => Some(factors.dequantize(&Device::Cpu)?.to_vec1::<f32>()?),
            None => None,
        };
        let tables =
            |angles, factors| RotaryTables::new(angles, factors, dimensions.head, window, device);
        let local_rotary = (dimensions.local.as_ref())
            .map(|local| tables(local.rotary, None))
            .transpose()?;
        Ok(Self {
            rotary: tables(dimensions.rotary, factors.as_deref())?,
            local_rotary,
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

    /// Returns whether [`Network::extend_all`] gives exactly the same states as a separate step for each
    /// token.
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
        let x = self.run(&mut [NewPositions { tokens, cache }], RowKernels::Fastest)?;
        Ok(HiddenState(x.narrow(0, tokens.len() - 1, 1)?.contiguous()?))
    }

    /// Same as [`Network::extend`] for a few tokens: returns the state after each of them.
    ///
    /// # Errors
    /// Those of [`Network::extend`].
    #[cfg(test)]
    pub fn extend_each(&self, tokens: &[u32], cache: &mut KeyValueCache) -> Result<HiddenState> {
        self.extend_all(&mut [NewPositions { tokens, cache }])
    }

    /// Runs the network on a few tokens of each sequence, in one step. Returns the state after each token,
    /// ordered by sequence. After an error, the caches are unchanged.
    ///
    /// If [`Network::has_equal_steps`] is true, the states do not depend on the other sequences in the step.
    ///
    /// # Errors
    /// The errors of [`Network::extend`].
    pub fn extend_all(&self, parts: &mut [NewPositions]) -> Result<HiddenState> {
        self.run(parts, RowKernels::Equal).map(HiddenState)
    }

    fn run(&self, parts: &mut [NewPositions], kernels: RowKernels) -> Result<Tensor> {
        let tokens: Vec<u32> = parts.iter().flat_map(|part| part.tokens).copied().collect();
        if parts.is_empty() || parts.iter().any(|part| part.tokens.is_empty()) {
            bail!("no tokens to run")
        }
        let (vocabulary, _) = self.embedding.shape().dims2()?;
        if let Some(token) = tokens.iter().find(|token| **token as usize >= vocabulary) {
            bail!("token {token} is outside the vocabulary of {vocabulary}")
        }
        for part in &mut *parts {
            part.cache.reserve(part.tokens.len())?;
        }
        let x = self
            .embedding
            .embedding(&Tensor::new(tokens, &self.device)?)?;
        let x = scaled(x, self.dimensions.embedding_factor)?;
        let x = NetworkStep::new(self, parts, kernels)?.run(x)?;
        for part in parts {
            part.cache.advance(part.tokens.len());
        }
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

    /// Returns the token with the highest score for each state.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn best_each(&self, hidden: &HiddenState) -> Result<Vec<u32>> {
        self.all_scores(hidden)?.argmax(D::Minus1)?.to_vec1()
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

/// New tokens of one sequence, and the cache of the sequence.
pub struct NewPositions<'a> {
    pub tokens: &'a [u32],
    pub cache: &'a mut KeyValueCache,
}

/// One run of the network over new tokens of one or more sequences.
struct NetworkStep<'a> {
    network: &'a Network,
    parts: &'a [NewPositions<'a>],
    kernels: RowKernels,
    means: StepMeans,
}

/// The implementation of the attention and the element-wise operations.
enum StepMeans {
    Gpu(GpuStep),
    /// candle's operations and the kernels for the CPU.
    General(StepTables),
}

/// The rotary embedding of all new tokens.
struct StepTables {
    rotary: RotaryTables,
    local_rotary: Option<RotaryTables>,
}

impl<'a> NetworkStep<'a> {
    fn new(
        network: &'a Network,
        parts: &'a [NewPositions<'a>],
        kernels: RowKernels,
    ) -> Result<Self> {
        let added = |part: &'a NewPositions| (&*part.cache, part.tokens.len());
        let added: Vec<(&KeyValueCache, usize)> = parts.iter().map(added).collect();
        let means = match GpuStep::new(&network.device, &added, &network.dimensions)? {
            Some(gpu) => StepMeans::Gpu(gpu),
            None => StepMeans::General(StepTables {
                rotary: network.rotary.of(&added)?,
                local_rotary: (network.local_rotary.as_ref())
                    .map(|tables| tables.of(&added))
                    .transpose()?,
            }),
        };
        Ok(Self {
            network,
            parts,
            kernels,
            means,
        })
    }

    /// Returns the hidden states for the embedded tokens `x`.
    fn run(&self, mut x: Tensor) -> Result<Tensor> {
        let mut change = None;
        let mut normed;
        for (index, layer) in self.network.layers.iter().enumerate() {
            (x, normed) = self.add_and_norm(x, change, &layer.attention_norm)?;
            let mixed = self.attention(index, layer, &normed)?;
            let mixed = self.norm_if(mixed, layer.attention_output_norm.as_ref())?;
            (x, normed) = self.add_and_norm(x, Some(mixed), &layer.forward_norm)?;
            let gpu = match &self.means {
                StepMeans::Gpu(gpu) => Some(gpu),
                StepMeans::General(_) => None,
            };
            let forward = layer.forward.run(&normed, self.kernels, gpu)?;
            change = Some(self.norm_if(forward, layer.forward_output_norm.as_ref())?);
        }
        match change {
            Some(change) => x + change,
            None => Ok(x),
        }
    }

    /// Adds `change` to `x`. Returns the sum and the normalized sum.
    fn add_and_norm(
        &self,
        x: Tensor,
        change: Option<Tensor>,
        weight: &Tensor,
    ) -> Result<(Tensor, Tensor)> {
        let epsilon = self.network.dimensions.norm_epsilon;
        if let StepMeans::Gpu(gpu) = &self.means {
            let normed = gpu.add_and_norm(&x, change.as_ref(), weight, epsilon)?;
            return Ok((x, normed));
        }
        let x = match change {
            Some(change) => (x + change)?,
            None => x,
        };
        let normed = rms_norm(&x, weight, epsilon)?;
        Ok((x, normed))
    }

    fn norm_if(&self, x: Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
        match weight {
            Some(weight) => rms_norm(&x, weight, self.network.dimensions.norm_epsilon),
            None => Ok(x),
        }
    }

    fn attention(&self, index: usize, layer: &NetworkLayer, x: &Tensor) -> Result<Tensor> {
        let projections = [&layer.query, &layer.key, &layer.value];
        let weights = projections.map(|linear| &linear.weight);
        let products = WeightMatrix::forward_all(weights, x, self.kernels)?;
        let mixed = match &self.means {
            StepMeans::Gpu(gpu) => {
                let biases = projections.map(|linear| linear.bias.as_ref());
                let RotaryTables { cosines, sines } = &self.network.rotary;
                gpu.attend(index, &products, biases, [cosines, sines])?
            }
            StepMeans::General(tables) => self.attend_each(index, layer, tables, products)?,
        };
        layer.output.forward(&mixed, self.kernels)
    }

    /// Computes the attention separately for each sequence.
    fn attend_each(
        &self,
        index: usize,
        layer: &NetworkLayer,
        tables: &StepTables,
        [queries, keys, values]: [Tensor; 3],
    ) -> Result<Tensor> {
        let network = self.network;
        let dimensions = &network.dimensions;
        let local = dimensions.local_layer(index);
        let rotary = match (local, &tables.local_rotary) {
            (Some(_), Some(rotary)) => rotary,
            _ => &tables.rotary,
        };
        let queries = network.split(&layer.query.biased(queries)?)?;
        let keys = network.split(&layer.key.biased(keys)?)?;
        let values = network.split(&layer.value.biased(values)?)?;
        let queries = self.norm_if(queries, layer.query_norm.as_ref())?;
        let keys = self.norm_if(keys, layer.key_norm.as_ref())?;
        let queries = scaled(queries, dimensions.query_factor)?;
        let queries = rotary.turn(&queries, dimensions.pairing)?;
        let keys = rotary.turn(&keys, dimensions.pairing)?;
        let cached = CachedLayer {
            index,
            visible: local.map(|local| local.visible),
        };
        let mut start = 0;
        let attend = |part: &NewPositions| {
            let new = part.tokens.len();
            let own = |x: &Tensor| x.narrow(1, start, new)?.contiguous();
            let (queries, keys, values) = (own(&queries)?, own(&keys)?, own(&values)?);
            start += new;
            (part.cache).attend(&cached, &queries, &keys, &values, self.kernels)
        };
        let mixed: Vec<Tensor> = self.parts.iter().map(attend).collect::<Result<_>>()?;
        Tensor::cat(&mixed, 0)
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
    fn matrices(&self) -> impl Iterator<Item = &WeightMatrix> {
        let projections = [&self.query, &self.key, &self.value].map(|linear| &linear.weight);
        (projections.into_iter())
            .chain([&self.output])
            .chain(self.forward.matrices())
    }

    fn load(
        file: &ModelFile,
        dimensions: &Dimensions,
        index: usize,
        device: &Device,
    ) -> Result<Self> {
        let name = |part: &str| format!("blk.{index}.{part}");
        let weight = |part: &str| file.weight(&name(part), device);
        let linear = |part: &str| -> Result<LinearLayer> {
            let bias = file.tensor_if_present(&name(&format!("{part}.bias")), device)?;
            Ok(LinearLayer {
                weight: weight(&format!("{part}.weight"))?,
                bias: bias.map(|bias| bias.dequantize(device)).transpose()?,
            })
        };
        let norm = |part: &str| plain(file, &name(part), device);
        let norm_if = |wanted: bool, part: &str| wanted.then(|| norm(part)).transpose();
        let (head_norms, output_norms) = (dimensions.head_norms, dimensions.output_norms);
        Ok(Self {
            attention_norm: norm("attn_norm.weight")?,
            query: linear("attn_q")?,
            key: linear("attn_k")?,
            value: linear("attn_v")?,
            query_norm: norm_if(head_norms, "attn_q_norm.weight")?,
            key_norm: norm_if(head_norms, "attn_k_norm.weight")?,
            output: weight("attn_output.weight")?,
            attention_output_norm: norm_if(output_norms, "post_attention_norm.weight")?,
            forward_norm: norm("ffn_norm.weight")?,
            forward: FeedForward::load(file, dimensions, index, device)?,
            forward_output_norm: norm_if(output_norms, "post_ffw_norm.weight")?,
        })
    }
}

fn scaled(x: Tensor, factor: f64) -> Result<Tensor> {
    match factor {
        1.0 => Ok(x),
        _ => x * factor,
    }
}

fn plain(file: &ModelFile, name: &str, device: &Device) -> Result<Tensor> {
    file.tensor(name, device)?.dequantize(device)
}
