//! Reads GGUF files: the network's dimensions and tensors.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::gguf_file::{Content, TensorInfo, Value};
use candle_core::quantized::{QStorage, QTensor};
use candle_core::{Device, Result, bail};
use memmap2::Mmap;

use super::mapped::TensorSpan;
use super::weight::WeightMatrix;

/// Which elements of a head's vector are rotated together (rotary position embedding).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotaryPairing {
    /// Element `i` with element `i + size / 2` (Qwen2).
    Halves,
    /// Element `2i` with element `2i + 1` (Llama in GGUF files).
    Pairs,
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
    pub rotation: RotaryPairing,
    pub rotary_base: f32,
    pub norm_epsilon: f32,
}

/// A memory-mapped GGUF file with its metadata.
pub struct ModelFile {
    map: Arc<Mmap>,
    content: Content,
}

impl ModelFile {
    /// Maps the file and reads its metadata, but no weights.
    ///
    /// # Errors
    /// The file cannot be read or is not a GGUF file.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        // SAFETY: cached weights are only replaced by renaming a new file over them, so the mapped
        // bytes do not change. A user must not modify a mapped file in place, as with every program
        // that maps its input.
        let map = Arc::new(unsafe { Mmap::map(&file)? });
        let content = Content::read(&mut Cursor::new(&map[..]))?;
        Ok(Self { map, content })
    }

    pub fn content(&self) -> &Content {
        &self.content
    }

    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Returns the dimensions of the network.
    ///
    /// # Errors
    /// The architecture is not supported, or a value is missing.
    pub fn dimensions(&self) -> Result<Dimensions> {
        let architecture = self.text("general.architecture").unwrap_or_default();
        let rotation = match architecture {
            "qwen2" => RotaryPairing::Halves,
            "llama" => RotaryPairing::Pairs,
            other => {
                bail!("networks of the kind `{other}` are not supported, only qwen2 and llama")
            }
        };
        let number = |key: &str| self.number(&format!("{architecture}.{key}"));
        let heads = number("attention.head_count")?;
        let kv_heads = number("attention.head_count_kv").unwrap_or(heads);
        let hidden = number("embedding_length")?;
        if heads == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            bail!("{heads} heads cannot share {kv_heads} key heads: the file is damaged")
        }
        let float = |key: &str| self.value(&format!("{architecture}.{key}"))?.to_f32();
        Ok(Dimensions {
            layers: number("block_count")?,
            heads,
            kv_heads,
            head: number("attention.key_length").unwrap_or(hidden / heads),
            window: number("context_length")?,
            rotation,
            rotary_base: float("rope.freq_base").unwrap_or(10_000.0),
            norm_epsilon: float("attention.layer_norm_rms_epsilon")?,
        })
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.content
            .metadata
            .get(key)?
            .to_string()
            .ok()
            .map(String::as_str)
    }

    /// Returns a metadata value as a whole number.
    ///
    /// # Errors
    /// The key is missing or its value is not a whole number.
    pub fn number(&self, key: &str) -> Result<usize> {
        let value = match self.value(key)? {
            Value::I32(value) => u64::try_from(*value).unwrap_or(0),
            other => other.to_u64()?,
        };
        Ok(usize::try_from(value).unwrap_or(usize::MAX))
    }

    fn value(&self, key: &str) -> Result<&Value> {
        match self.content.metadata.get(key) {
            Some(value) => Ok(value),
            None => bail!("the file has no `{key}`"),
        }
    }

    /// Returns a tensor by name: mapped on the CPU, copied on any other device.
    ///
    /// # Errors
    /// The tensor is missing or damaged.
    pub fn tensor(&self, name: &str, device: &Device) -> Result<QTensor> {
        let info = self.info(name)?;
        if !device.is_cpu() {
            return self
                .content
                .tensor(&mut Cursor::new(&self.map[..]), name, device);
        }
        let storage = self.span(info)?.storage(info.ggml_dtype);
        QTensor::new(QStorage::Cpu(storage), info.shape.clone())
    }

    /// Returns a weight matrix by name.
    ///
    /// # Errors
    /// The matrix is missing or damaged.
    pub fn weight(&self, name: &str, device: &Device) -> Result<WeightMatrix> {
        let span = match device.is_cpu() {
            true => Some(self.span(self.info(name)?)?),
            false => None,
        };
        WeightMatrix::new(self.tensor(name, device)?, span)
    }

    fn info(&self, name: &str) -> Result<&TensorInfo> {
        match self.content.tensor_infos.get(name) {
            Some(info) => Ok(info),
            None => bail!("the file has no tensor `{name}`"),
        }
    }

    fn span(&self, info: &TensorInfo) -> Result<TensorSpan> {
        let start = self.content.tensor_data_offset.saturating_add(info.offset);
        let blocks = info.shape.elem_count() / info.ggml_dtype.block_size();
        let len = blocks.saturating_mul(info.ggml_dtype.type_size());
        TensorSpan::new(&self.map, usize::try_from(start).unwrap_or(usize::MAX), len)
    }

    pub fn has(&self, name: &str) -> bool {
        self.content.tensor_infos.contains_key(name)
    }

    /// Returns a tensor by name, or `None` if the file does not contain it.
    ///
    /// # Errors
    /// The tensor is damaged.
    pub fn tensor_if_present(&self, name: &str, device: &Device) -> Result<Option<QTensor>> {
        match self.has(name) {
            true => self.tensor(name, device).map(Some),
            false => Ok(None),
        }
    }
}
