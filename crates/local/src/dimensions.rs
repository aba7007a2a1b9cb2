//! The dimensions of a network, read from the metadata of its file.

use candle_core::{Result, bail};

use super::file::ModelFile;

/// The supported architectures, by their names in GGUF files. `llama` is also the name for Mistral and
/// DeepSeek-Coder.
const ARCHITECTURES: [&str; 5] = ["qwen2", "qwen3", "qwen3moe", "llama", "gemma3"];
/// Number of layers of Gemma 3 27B. Its attention has another scale, which the file does not state.
const GEMMA_27B_LAYERS: usize = 62;
/// Every sixth layer of Gemma 3 sees all positions; the others are local.
const GEMMA_PERIOD: usize = 6;

/// Which elements of a head's vector are rotated together (rotary position embedding).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotaryPairing {
    /// Element `i` with element `i + size / 2` (Qwen, Gemma).
    Halves,
    /// Element `2i` with element `2i + 1` (Llama in GGUF files).
    Pairs,
}

/// The rotary position embedding: the angle of element `i` at `position` is
/// `position / divisor / base^(2i / size)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RotaryAngles {
    pub base: f32,
    pub divisor: f32,
}

/// The function that is applied to the gate of a feed-forward layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    Silu,
    /// GELU, approximated by the hyperbolic tangent.
    Gelu,
}

/// Layers that see only the nearest positions.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalLayers {
    /// Number of visible positions, with the current one.
    pub visible: usize,
    pub rotary: RotaryAngles,
}

/// The dimensions of a network.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimensions {
    pub layers: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head: usize,
    /// Maximum sequence length of the network's training.
    pub window: usize,
    pub pairing: RotaryPairing,
    pub rotary: RotaryAngles,
    pub norm_epsilon: f32,
    pub activation: Activation,
    /// Whether queries and keys are normalized in each head.
    pub head_norms: bool,
    /// Whether the output of attention and of the feed-forward layer is normalized before it is added.
    pub output_norms: bool,
    /// Factor of the token embeddings.
    pub embedding_factor: f64,
    /// Factor of the queries, in addition to `1 / sqrt(head)`.
    pub query_factor: f64,
    /// Properties of the local layers; `None` if all layers see all positions.
    pub local: Option<LocalLayers>,
    /// Number of experts that are used for each token; 0 if there are no experts.
    pub experts: usize,
}

impl Dimensions {
    /// Reads the dimensions of the network in a file.
    ///
    /// # Errors
    /// The architecture is not supported, or a value is missing or impossible.
    pub fn read(file: &ModelFile) -> Result<Self> {
        let architecture = file.text("general.architecture").unwrap_or_default();
        if !ARCHITECTURES.contains(&architecture) {
            bail!(
                "networks of the kind `{architecture}` are not supported, only {}",
                ARCHITECTURES.join(", ")
            )
        }
        let is_gemma = architecture == "gemma3";
        let number = |key: &str| file.number(&format!("{architecture}.{key}"));
        let float = |key: &str| file.float(&format!("{architecture}.{key}"));
        let heads = number("attention.head_count")?;
        let kv_heads = number("attention.head_count_kv").unwrap_or(heads);
        let hidden = number("embedding_length")?;
        if heads == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            bail!("{heads} heads cannot share {kv_heads} key heads: the file is damaged")
        }
        let layers = number("block_count")?;
        let head = number("attention.key_length").unwrap_or(hidden / heads);
        if head == 0 || !head.is_multiple_of(2) {
            bail!("a head of {head} elements cannot be rotated: the file is damaged")
        }
        let experts = match architecture {
            "qwen3moe" => number("expert_used_count")?,
            _ if number("expert_count").unwrap_or(0) > 0 => {
                bail!("networks of the kind `{architecture}` with experts are not supported")
            }
            _ => 0,
        };
        let scaling = file.text(&format!("{architecture}.rope.scaling.type"));
        // Older files name only the factor.
        let divisor = match scaling {
            Some("linear") => float("rope.scaling.factor")?,
            _ => float("rope.scale_linear").unwrap_or(1.0),
        };
        let trained = number("context_length")?;
        let window = match scaling {
            // Later positions need scaled frequencies, which are not implemented.
            Some("yarn" | "longrope") => {
                number("rope.scaling.original_context_length").unwrap_or(trained)
            }
            _ => trained,
        };
        let default_base = if is_gemma { 1_000_000.0 } else { 10_000.0 };
        let local = match is_gemma {
            true => Some(LocalLayers {
                visible: number("attention.sliding_window")?.max(1),
                rotary: RotaryAngles {
                    base: float("rope.freq_base_swa").unwrap_or(10_000.0),
                    divisor: 1.0,
                },
            }),
            false => None,
        };
        let query_factor = match is_gemma && layers == GEMMA_27B_LAYERS {
            true => (head as f64 * heads as f64 / hidden as f64).sqrt(),
            false => 1.0,
        };
        Ok(Self {
            layers,
            heads,
            kv_heads,
            head,
            window: window.min(trained),
            pairing: match architecture {
                "llama" => RotaryPairing::Pairs,
                _ => RotaryPairing::Halves,
            },
            rotary: RotaryAngles {
                base: float("rope.freq_base").unwrap_or(default_base),
                divisor,
            },
            norm_epsilon: float("attention.layer_norm_rms_epsilon")?,
            activation: match is_gemma {
                true => Activation::Gelu,
                false => Activation::Silu,
            },
            head_norms: matches!(architecture, "qwen3" | "qwen3moe" | "gemma3"),
            output_norms: is_gemma,
            embedding_factor: match is_gemma {
                true => (hidden as f64).sqrt(),
                false => 1.0,
            },
            query_factor,
            local,
            experts,
        })
    }

    /// Returns the properties of a layer that sees only the nearest positions, `None` for a layer that
    /// sees all.
    pub fn local_layer(&self, layer: usize) -> Option<&LocalLayers> {
        let is_local = !(layer + 1).is_multiple_of(GEMMA_PERIOD);
        self.local.as_ref().filter(|_| is_local)
    }

    /// Returns whether the layers are those of Qwen2 and Llama: without norms of heads and outputs, local
    /// layers or experts.
    #[cfg(feature = "cuda")]
    pub fn is_plain(&self) -> bool {
        !self.head_norms
            && !self.output_norms
            && self.local.is_none()
            && self.experts == 0
            && self.activation == Activation::Silu
            && self.query_factor == 1.0
    }
}
