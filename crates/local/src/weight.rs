//! A weight matrix that uses the fastest multiplication for its input.

use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{Module, Result, Tensor, bail};

use super::gemv::{self, BlockMatrix};
use super::mapped::TensorSpan;

/// Which kernels multiply an input of several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKernels {
    /// The fastest ones for many rows.
    Fastest,
    /// The same ones as for one row, so that each row gives exactly what it gives alone. If a matrix
    /// has none (see [`WeightMatrix::has_equal_rows`]), the fastest ones are used.
    Equal,
}

/// A weight matrix of the network.
pub struct WeightMatrix {
    /// Used for inputs with many rows, other devices and other layouts.
    general: QMatMul,
    /// Used for one or a few rows. It reads the file's blocks directly.
    direct: Option<(gemv::BlockMatrixShape, TensorSpan)>,
}

impl WeightMatrix {
    /// Creates a matrix. `span` is the tensor's location in the mapped file, if it is used from
    /// there.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(tensor: QTensor, span: Option<TensorSpan>) -> Result<Self> {
        let columns = tensor.shape().dims().last().copied().unwrap_or(0);
        let plan = gemv::BlockMatrixShape::new(tensor.dtype(), columns);
        let direct = plan.zip(span);
        Ok(Self {
            general: QMatMul::from_arc(Arc::new(tensor))?,
            direct,
        })
    }

    /// Returns whether [`RowKernels::Equal`] can be used for several rows.
    pub fn has_equal_rows(&self) -> bool {
        self.direct.is_some()
    }

    /// Multiplies each row of `x` by the matrix.
    ///
    /// # Errors
    /// The shapes do not match, or the device is out of memory.
    pub fn forward(&self, x: &Tensor, kernels: RowKernels) -> Result<Tensor> {
        let [product] = Self::forward_all([self], x, kernels)?;
        Ok(product)
    }

    /// Multiplies by several matrices. If possible, the input is quantised only once.
    ///
    /// # Errors
    /// The shapes do not match, or the device is out of memory.
    pub fn forward_all<const N: usize>(
        weights: [&Self; N],
        x: &Tensor,
        kernels: RowKernels,
    ) -> Result<[Tensor; N]> {
        let products = match Self::forward_direct(&weights, x, kernels)? {
            Some(products) => products,
            None => match Self::forward_fused(&weights, x)? {
                Some(products) => products,
                None => weights
                    .iter()
                    .map(|weight| weight.general.forward(x))
                    .collect::<Result<_>>()?,
            },
        };
        match products.try_into() {
            Ok(products) => Ok(products),
            Err(_) => bail!("{N} matrices give {N} products"),
        }
    }

    fn forward_direct(
        weights: &[&Self],
        x: &Tensor,
        kernels: RowKernels,
    ) -> Result<Option<Vec<Tensor>>> {
        let rows = x.elem_count() / x.dims().last().copied().unwrap_or(0).max(1);
        if rows != 1 && kernels == RowKernels::Fastest || !x.device().is_cpu() {
            return Ok(None);
        }
        let blocks: Option<Vec<BlockMatrix>> = weights
            .iter()
            .map(|weight| {
                weight
                    .direct
                    .as_ref()
                    .map(|(plan, span)| plan.of(span.bytes()))
            })
            .collect();
        let Some(blocks) = blocks else {
            return Ok(None);
        };
        let values = x.flatten_all()?.to_vec1::<f32>()?;
        let Some(products) = gemv::multiply(&blocks, &values) else {
            bail!(
                "an input of {} values does not fit the matrix",
                values.len()
            )
        };
        let tensors = products.into_iter().map(|product| {
            let shape = (rows, product.len() / rows);
            Tensor::from_vec(product, shape, x.device())
        });
        tensors.collect::<Result<_>>().map(Some)
    }

    fn forward_fused(weights: &[&Self], x: &Tensor) -> Result<Option<Vec<Tensor>>> {
        let tensors: Option<Vec<&QTensor>> = weights
            .iter()
            .map(|weight| match &weight.general {
                QMatMul::QTensor(tensor) => Some(tensor.as_ref()),
                QMatMul::Tensor(_) | QMatMul::TensorF16(_) => None,
            })
            .collect();
        match tensors {
            Some(tensors) => QTensor::gemv_fused_shared_lhs(&tensors, x),
            None => Ok(None),
        }
    }
}
