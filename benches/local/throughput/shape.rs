//! Writes a weights file with the architecture and quantization of Qwen2.5-Coder-1.5B (Q4_K_M) but random
//! weights.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QStorage, QTensor};

const LAYERS: usize = 28;
const HIDDEN: usize = 1536;
const HEADS: usize = 12;
const KEY_HEADS: usize = 2;
const FORWARD: usize = 8960;
const VOCABULARY: usize = 151_936;

/// Writes the weights file, which has a size of 1.1 GB.
pub fn write(path: &Path) {
    let number = |value: usize| Value::U32(value as u32);
    let metadata = [
        ("general.architecture", Value::String("qwen2".to_owned())),
        ("qwen2.block_count", number(LAYERS)),
        ("qwen2.context_length", number(32_768)),
        ("qwen2.embedding_length", number(HIDDEN)),
        ("qwen2.attention.head_count", number(HEADS)),
        ("qwen2.attention.head_count_kv", number(KEY_HEADS)),
        ("qwen2.attention.layer_norm_rms_epsilon", Value::F32(1e-6)),
        ("qwen2.rope.freq_base", Value::F32(1e6)),
    ];
    let metadata: Vec<(&str, &Value)> = metadata.iter().map(|(key, value)| (*key, value)).collect();
    let tensors = tensors();
    let tensors: Vec<(&str, &QTensor)> = tensors
        .iter()
        .map(|(name, one)| (name.as_str(), one))
        .collect();
    gguf_file::write(&mut File::create(path).unwrap(), &metadata, &tensors).unwrap();
}

fn tensors() -> Vec<(String, QTensor)> {
    let mut random = Random(1);
    let mut all = Vec::new();
    let mut add = |name: String, dtype, shape: &[usize]| {
        let data = random.blocks(dtype, shape.iter().product());
        let storage = QStorage::Cpu(dtype.from_data(Cow::Owned(data)));
        all.push((name, QTensor::new(storage, shape).unwrap()));
    };
    let vocabulary = [VOCABULARY, HIDDEN];
    add("token_embd.weight".to_owned(), GgmlDType::Q4K, &vocabulary);
    add("output.weight".to_owned(), GgmlDType::Q6K, &vocabulary);
    add("output_norm.weight".to_owned(), GgmlDType::F32, &[HIDDEN]);
    let keys = HIDDEN / HEADS * KEY_HEADS;
    for layer in 0..LAYERS {
        // Q4_K_M stores half of these matrices with higher precision.
        let is_outer = !(LAYERS / 8..7 * LAYERS / 8).contains(&layer);
        let precise = match is_outer || (layer - LAYERS / 8) % 3 == 2 {
            true => GgmlDType::Q6K,
            false => GgmlDType::Q4K,
        };
        let matrices = [
            ("attn_q", GgmlDType::Q4K, HIDDEN, HIDDEN),
            ("attn_k", GgmlDType::Q4K, keys, HIDDEN),
            ("attn_v", precise, keys, HIDDEN),
            ("attn_output", GgmlDType::Q4K, HIDDEN, HIDDEN),
            ("ffn_gate", GgmlDType::Q4K, FORWARD, HIDDEN),
            ("ffn_up", GgmlDType::Q4K, FORWARD, HIDDEN),
            ("ffn_down", precise, HIDDEN, FORWARD),
        ];
        for (part, dtype, rows, columns) in matrices {
            add(
                format!("blk.{layer}.{part}.weight"),
                dtype,
                &[rows, columns],
            );
        }
        for (part, width) in [
            ("attn_norm.weight", HIDDEN),
            ("ffn_norm.weight", HIDDEN),
            ("attn_q.bias", HIDDEN),
            ("attn_k.bias", keys),
            ("attn_v.bias", keys),
        ] {
            add(format!("blk.{layer}.{part}"), GgmlDType::F32, &[width]);
        }
    }
    all
}

/// Pseudo-random number generator with the algorithm SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Returns the bytes of `count` weights. Quantized weights are random, with a mean of about 0 and a
    /// standard deviation of about 0.02. Floats, which norms and biases use, are all 1.
    fn blocks(&mut self, dtype: GgmlDType, count: usize) -> Vec<u8> {
        // The byte offsets and values of the 16-bit scales in a block.
        let scales: &[(usize, f32)] = match dtype {
            GgmlDType::Q4K => &[(0, 1.2e-4), (2, 9e-4)],
            GgmlDType::Q6K => &[(208, 1.5e-5)],
            _ => return (0..count).flat_map(|_| 1f32.to_le_bytes()).collect(),
        };
        let size = dtype.type_size();
        let mut bytes = vec![0; count / dtype.block_size() * size];
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        for block in bytes.chunks_mut(size) {
            for (at, scale) in scales {
                block[*at..at + 2].copy_from_slice(&half::f16::from_f32(*scale).to_le_bytes());
            }
        }
        bytes
    }
}
