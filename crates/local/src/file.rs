//! Reads GGUF files: metadata and tensors.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use candle_core::quantized::ggml_file::qtensor_from_ggml;
use candle_core::quantized::gguf_file::{Content, TensorInfo, Value};
use candle_core::quantized::{QStorage, QTensor};
use candle_core::{Device, Result, Shape, bail};
use memmap2::Mmap;

use super::mapped::TensorSpan;
use super::weight::WeightMatrix;

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

    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
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

    /// Returns a metadata value as a floating-point number.
    ///
    /// # Errors
    /// The key is missing or its value is not such a number.
    pub fn float(&self, key: &str) -> Result<f32> {
        self.value(key)?.to_f32()
    }

    pub fn flag(&self, key: &str) -> Option<bool> {
        self.content.metadata.get(key)?.to_bool().ok()
    }

    pub fn array(&self, key: &str) -> Option<&[Value]> {
        self.content
            .metadata
            .get(key)?
            .to_vec()
            .ok()
            .map(Vec::as_slice)
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

    /// Returns the weight matrices that a tensor of shape (matrices, rows, columns) holds.
    ///
    /// # Errors
    /// The tensor is missing or damaged.
    pub fn stacked_weights(&self, name: &str, device: &Device) -> Result<Vec<WeightMatrix>> {
        let info = self.info(name)?;
        let (count, rows, columns) = info.shape.dims3()?;
        let whole = self.span(info)?;
        let dtype = info.ggml_dtype;
        let matrix = |index: usize| {
            let span = whole.part(index, count)?;
            let shape = Shape::from((rows, columns));
            match device.is_cpu() {
                true => {
                    let storage = QStorage::Cpu(span.storage(dtype));
                    WeightMatrix::new(QTensor::new(storage, shape)?, Some(span))
                }
                false => {
                    let dims = shape.into_dims();
                    let tensor = qtensor_from_ggml(dtype, span.bytes(), dims, device)?;
                    WeightMatrix::new(tensor, None)
                }
            }
        };
        (0..count).map(matrix).collect()
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
