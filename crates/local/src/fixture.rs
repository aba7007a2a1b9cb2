//! Creates a tiny GGUF file with random weights for tests.

use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

pub const HIDDEN: usize = 256;
pub const HEADS: usize = 4;
pub const KV_HEADS: usize = 2;
pub const HEAD: usize = HIDDEN / HEADS;
pub const FORWARD: usize = 512;
pub const LAYERS: usize = 2;
pub const EPSILON: f32 = 1e-6;
pub const ROTARY_BASE: f32 = 10_000.0;
/// All architectures that a recipe can have.
pub const ARCHITECTURES: [&str; 5] = ["qwen2", "llama", "qwen3", "qwen3moe", "gemma3"];
/// Number of experts of `qwen3moe`, of which two are used for each token.
const EXPERTS: usize = 4;
/// Number of positions that most layers of `gemma3` see.
const VISIBLE: u32 = 24;
/// Vocabulary size: 256 bytes, `th`, three control tokens, and padding.
pub const VOCABULARY: usize = 272;
pub const START: u32 = 257;
pub const END: u32 = 258;

/// Returns deterministic pseudo-random values from -1 to 1.
pub fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The variable properties of a test model; all others are constants.
#[derive(Clone)]
pub struct TestModelRecipe {
    pub architecture: &'static str,
    pub dtype: GgmlDType,
    pub window: u32,
    /// The id of the token that ends an answer.
    pub end: u32,
    pub template: Option<&'static str>,
}

impl Default for TestModelRecipe {
    fn default() -> Self {
        Self {
            architecture: "qwen2",
            dtype: GgmlDType::Q4K,
            window: 512,
            end: END,
            template: None,
        }
    }
}

impl TestModelRecipe {
    /// Writes the GGUF file into the directory.
    pub fn write(&self, directory: &Path) -> PathBuf {
        let path = directory.join(format!(
            "{}-{:?}-{}.gguf",
            self.architecture, self.dtype, self.end
        ));
        let metadata = self.metadata();
        let metadata: Vec<(&str, &Value)> = metadata
            .iter()
            .map(|(key, value)| (key.as_str(), value))
            .collect();
        let tensors = self.tensors();
        let tensors: Vec<(&str, &QTensor)> = tensors
            .iter()
            .map(|(name, tensor)| (name.as_str(), tensor))
            .collect();
        gguf_file::write(&mut File::create(&path).unwrap(), &metadata, &tensors).unwrap();
        path
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let text = |text: &str| Value::String(text.to_owned());
        let (tokens, kinds): (Vec<Value>, Vec<Value>) = vocabulary()
            .into_iter()
            .map(|(token, kind)| (Value::String(token), Value::I32(kind)))
            .unzip();
        let own = |key: &str| format!("{}.{key}", self.architecture);
        let mut metadata = vec![
            ("general.architecture".to_owned(), text(self.architecture)),
            (own("block_count"), Value::U32(LAYERS as u32)),
            (own("context_length"), Value::U32(self.window)),
            (own("embedding_length"), Value::U32(HIDDEN as u32)),
            (own("attention.head_count"), Value::U32(HEADS as u32)),
            (own("attention.head_count_kv"), Value::U32(KV_HEADS as u32)),
            (own("attention.layer_norm_rms_epsilon"), Value::F32(EPSILON)),
            (own("rope.freq_base"), Value::F32(ROTARY_BASE)),
            ("tokenizer.ggml.model".to_owned(), text("gpt2")),
            ("tokenizer.ggml.pre".to_owned(), text("qwen2")),
            ("tokenizer.ggml.tokens".to_owned(), Value::Array(tokens)),
            ("tokenizer.ggml.token_type".to_owned(), Value::Array(kinds)),
            (
                "tokenizer.ggml.merges".to_owned(),
                Value::Array(vec![text("t h")]),
            ),
            (
                "tokenizer.ggml.eos_token_id".to_owned(),
                Value::U32(self.end),
            ),
        ];
        match self.architecture {
            "qwen3moe" => metadata.push((own("expert_used_count"), Value::U32(2))),
            "gemma3" => metadata.push((own("attention.sliding_window"), Value::U32(VISIBLE))),
            _ => {}
        }
        if let Some(template) = self.template {
            metadata.push(("tokenizer.chat_template".to_owned(), text(template)));
        }
        metadata
    }

    fn tensors(&self) -> Vec<(String, QTensor)> {
        let mut seed = 0;
        let mut tensor = |name: String, shape: &[usize], dtype, centre: f32| {
            seed += 1;
            let spread = 1.5 / (HIDDEN as f32).sqrt();
            let values = noise(shape.iter().product(), seed);
            let values: Vec<f32> = values.iter().map(|value| centre + value * spread).collect();
            let tensor = Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
            (name, QTensor::quantize(&tensor, dtype).unwrap())
        };
        let dtype = self.dtype;
        let mut all = vec![
            tensor(
                "token_embd.weight".into(),
                &[VOCABULARY, HIDDEN],
                dtype,
                0.0,
            ),
            tensor("output.weight".into(), &[VOCABULARY, HIDDEN], dtype, 0.0),
            tensor("output_norm.weight".into(), &[HIDDEN], GgmlDType::F32, 1.0),
        ];
        let kv = KV_HEADS * HEAD;
        let has_experts = self.architecture == "qwen3moe";
        let mut matrices = vec![
            ("attn_q", vec![HIDDEN, HIDDEN]),
            ("attn_k", vec![kv, HIDDEN]),
            ("attn_v", vec![kv, HIDDEN]),
            ("attn_output", vec![HIDDEN, HIDDEN]),
        ];
        matrices.extend(match has_experts {
            false => [
                ("ffn_gate", vec![FORWARD, HIDDEN]),
                ("ffn_up", vec![FORWARD, HIDDEN]),
                ("ffn_down", vec![HIDDEN, FORWARD]),
            ],
            true => [
                ("ffn_gate_exps", vec![EXPERTS, FORWARD, HIDDEN]),
                ("ffn_up_exps", vec![EXPERTS, FORWARD, HIDDEN]),
                ("ffn_down_exps", vec![EXPERTS, HIDDEN, FORWARD]),
            ],
        });
        let mut norms = vec![("attn_norm", HIDDEN), ("ffn_norm", HIDDEN)];
        if !matches!(self.architecture, "qwen2" | "llama") {
            norms.extend([("attn_q_norm", HEAD), ("attn_k_norm", HEAD)]);
        }
        if self.architecture == "gemma3" {
            norms.extend([("post_attention_norm", HIDDEN), ("post_ffw_norm", HIDDEN)]);
        }
        for layer in 0..LAYERS {
            for (part, shape) in &matrices {
                let name = format!("blk.{layer}.{part}.weight");
                all.push(tensor(name, shape, dtype, 0.0));
            }
            if has_experts {
                let name = format!("blk.{layer}.ffn_gate_inp.weight");
                all.push(tensor(name, &[EXPERTS, HIDDEN], GgmlDType::F32, 0.0));
            }
            for (part, width) in &norms {
                let name = format!("blk.{layer}.{part}.weight");
                all.push(tensor(name, &[*width], GgmlDType::F32, 1.0));
            }
            if self.architecture == "qwen2" {
                for (part, width) in [("attn_q", HIDDEN), ("attn_k", kv), ("attn_v", kv)] {
                    let name = format!("blk.{layer}.{part}.bias");
                    all.push(tensor(name, &[width], GgmlDType::F32, 0.0));
                }
            }
        }
        all
    }
}

/// Returns the tokens with their GGUF token types.
fn vocabulary() -> Vec<(String, i32)> {
    let mut characters: Vec<(u8, char)> = super::vocabulary::byte_characters()
        .into_iter()
        .map(|(c, byte)| (byte, c))
        .collect();
    characters.sort_unstable();
    let mut tokens: Vec<(String, i32)> = characters
        .into_iter()
        .map(|(_, character)| (character.to_string(), 1))
        .collect();
    tokens.push(("th".into(), 1));
    for control in ["<|im_start|>", "<|im_end|>", "<|im_end|>2"] {
        tokens.push((control.into(), 3));
    }
    while tokens.len() < VOCABULARY {
        tokens.push((format!("[PAD{}]", tokens.len()), 5));
    }
    tokens
}
