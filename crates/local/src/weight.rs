//! A weight matrix that uses the fastest multiplication for its input.

use std::sync::Arc;

use candle_core::quantized::{QMatMul, QTensor};
use candle_core::{CpuStorage, Module, Result, Storage, Tensor, bail};

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
pub struct WeightMatrix(Source);

/// Where the weights are, which decides how they are multiplied.
enum Source {
    /// The blocks in the mapped file, multiplied by the kernels in `gemv`. There is no copy of them.
    File(gemv::BlockMatrixShape, TensorSpan),
    /// A tensor for other devices, other layouts and other CPUs, multiplied by candle. On a CPU, candle
    /// repacks it on first use.
    Candle(QMatMul),
}

impl WeightMatrix {
    /// Creates a matrix. `span` is the tensor's location in the mapped file, if it is used from
    /// there.
    ///
    /// # Errors
    /// Out of memory.
    pub fn new(tensor: QTensor, span: Option<TensorSpan>) -> Result<Self> {
        let columns = tensor.shape().dims().last().copied().unwrap_or(0);
        let shape = gemv::BlockMatrixShape::new(tensor.dtype(), columns);
        let source = match shape.zip(span) {
            Some((shape, span)) => Source::File(shape, span),
            None => Source::Candle(QMatMul::from_arc(Arc::new(tensor))?),
        };
        Ok(Self(source))
    }

    /// Returns whether [`RowKernels::Equal`] can be used for several rows.
    pub fn has_equal_rows(&self) -> bool {
        self.blocks().is_some()
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
        let blocks: Option<Vec<BlockMatrix>> =
            weights.iter().map(|weight| weight.blocks()).collect();
        let products = match blocks {
            Some(blocks) => Self::multiply_blocks(&blocks, x, kernels)?,
            None => match Self::forward_fused(&weights, x)? {
                Some(products) => products,
                None => weights
                    .iter()
                    .map(|weight| weight.forward_alone(x, kernels))
                    .collect::<Result<_>>()?,
            },
        };
        match products.try_into() {
            Ok(products) => Ok(products),
            Err(_) => bail!("{N} matrices give {N} products"),
        }
    }

    fn forward_alone(&self, x: &Tensor, kernels: RowKernels) -> Result<Tensor> {
        match &self.0 {
            Source::File(..) => self.forward(x, kernels),
            Source::Candle(tensor) => tensor.forward(x),
        }
    }

    /// Returns the blocks in the mapped file, if they are multiplied from there.
    fn blocks(&self) -> Option<BlockMatrix<'_>> {
        match &self.0 {
            Source::File(shape, span) => Some(shape.of(span.bytes())),
            Source::Candle(_) => None,
        }
    }

    fn multiply_blocks(
        blocks: &[BlockMatrix],
        x: &Tensor,
        kernels: RowKernels,
    ) -> Result<Vec<Tensor>> {
        let x = x.contiguous()?;
        let (storage, layout) = x.storage_and_layout();
        let values = match (&*storage, layout.contiguous_offsets()) {
            (Storage::Cpu(CpuStorage::F32(values)), Some((from, to))) => &values[from..to],
            _ => bail!("32-bit floats on the CPU are needed"),
        };
        let columns = layout.dims().last().copied().unwrap_or(0);
        if blocks.iter().any(|matrix| matrix.columns() != columns) {
            bail!("an input with rows of {columns} values does not fit the matrix")
        }
        let rows = values.len() / columns;
        // All parts of a prompt with more than one row use the same kernels, so that its states do not
        // depend on how much of it is cached.
        let products = match kernels {
            RowKernels::Fastest if rows > 1 => gemv::multiply_many(blocks, values),
            RowKernels::Fastest | RowKernels::Equal => gemv::multiply(blocks, values),
        };
        let Some(products) = products else {
            bail!(
                "an input of {} values does not fit the matrix",
                values.len()
            )
        };
        let tensors = products.into_iter().map(|product| {
            let shape = (rows, product.len() / rows);
            Tensor::from_vec(product, shape, x.device())
        });
        tensors.collect()
    }

    fn forward_fused(weights: &[&Self], x: &Tensor) -> Result<Option<Vec<Tensor>>> {
        let tensors: Option<Vec<&QTensor>> = weights
            .iter()
            .map(|weight| match &weight.0 {
                Source::Candle(QMatMul::QTensor(tensor)) => Some(tensor.as_ref()),
                Source::Candle(QMatMul::Tensor(_) | QMatMul::TensorF16(_)) | Source::File(..) => {
                    None
                }
            })
            .collect();
        match tensors {
            Some(tensors) => QTensor::gemv_fused_shared_lhs(&tensors, x),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;
    use candle_core::quantized::GgmlDType;
    use tempfile::TempDir;

    use super::super::file::ModelFile;
    use super::super::fixture::{FORWARD, HIDDEN, TestModelRecipe, noise};
    use super::*;

    /// Returns two matrices of a file, of [`FORWARD`] rows and [`HIDDEN`] columns.
    fn matrices(dtype: GgmlDType) -> [WeightMatrix; 2] {
        let recipe = TestModelRecipe {
            dtype,
            ..TestModelRecipe::default()
        };
        let directory = TempDir::new().unwrap();
        let file = ModelFile::open(&recipe.write(directory.path())).unwrap();
        ["blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"]
            .map(|name| file.weight(name, &Device::Cpu).unwrap())
    }

    fn input(rows: usize) -> Tensor {
        Tensor::from_vec(noise(rows * HIDDEN, 9), (rows, HIDDEN), &Device::Cpu).unwrap()
    }

    fn values(x: &Tensor) -> Vec<f32> {
        x.flatten_all().unwrap().to_vec1().unwrap()
    }

    /// candle repacks a tensor in memory when it first multiplies many rows by it.
    #[test]
    fn matrix_that_is_multiplied_from_the_file_has_no_tensor_to_be_repacked() {
        for dtype in [GgmlDType::Q4K, GgmlDType::Q6K] {
            for WeightMatrix(source) in matrices(dtype) {
                let has_kernels = gemv::BlockMatrixShape::new(dtype, HIDDEN).is_some();
                assert_eq!(matches!(source, Source::File(..)), has_kernels, "{dtype:?}");
            }
        }
        for WeightMatrix(source) in matrices(GgmlDType::Q8_0) {
            assert!(matches!(source, Source::Candle(_)));
        }
    }

    #[test]
    fn matrices_of_all_layouts_multiply_any_number_of_rows() {
        for dtype in [
            GgmlDType::F32,
            GgmlDType::Q8_0,
            GgmlDType::Q4K,
            GgmlDType::Q6K,
        ] {
            let [precise, _] = matrices(GgmlDType::F32);
            let [matrix, other] = matrices(dtype);
            for rows in [1, 2, 8, 9, 40, 200] {
                let x = input(rows);
                let expected = values(&precise.forward(&x, RowKernels::Fastest).unwrap());
                let norm = expected.iter().map(|x| x * x).sum::<f32>().sqrt();
                for kernels in [RowKernels::Fastest, RowKernels::Equal] {
                    let found = matrix.forward(&x, kernels).unwrap();
                    assert_eq!(found.dims(), [rows, FORWARD]);
                    let pairs = expected.iter().zip(values(&found)).map(|(a, b)| a - b);
                    let off = pairs.map(|off| off * off).sum::<f32>().sqrt() / norm;
                    assert!(
                        off < 0.1,
                        "{dtype:?}, {rows} rows, {kernels:?}: off by {off}"
                    );
                    // Matrices of different layouts can share an input.
                    let all = [&matrix, &precise, &other];
                    let all = WeightMatrix::forward_all(all, &x, kernels).unwrap();
                    assert_eq!(values(&all[0]), values(&found));
                }
            }
        }
    }

    #[test]
    fn equal_kernels_give_each_row_exactly_its_own_product() {
        for dtype in [GgmlDType::Q4K, GgmlDType::Q6K] {
            let [matrix, _] = matrices(dtype);
            if !matrix.has_equal_rows() {
                continue;
            }
            let x = input(20);
            let together = values(&matrix.forward(&x, RowKernels::Equal).unwrap());
            for (row, together) in together.chunks_exact(FORWARD).enumerate() {
                let x = x.narrow(0, row, 1).unwrap();
                let alone = values(&matrix.forward(&x, RowKernels::Equal).unwrap());
                assert_eq!(alone, together, "{dtype:?}, row {row}");
            }
        }
    }

    #[test]
    fn parts_of_several_rows_give_exactly_the_products_of_the_whole_input() {
        for dtype in [GgmlDType::Q4K, GgmlDType::Q6K, GgmlDType::Q8_0] {
            let [matrix, _] = matrices(dtype);
            let x = input(160);
            let whole = values(&matrix.forward(&x, RowKernels::Fastest).unwrap());
            for rows in [2, 3, 8, 9, 17, 144, 145] {
                let part = x.narrow(0, 160 - rows, rows).unwrap();
                let part = values(&matrix.forward(&part, RowKernels::Fastest).unwrap());
                assert!(whole.ends_with(&part), "{dtype:?}, the last {rows} rows");
            }
        }
    }

    #[test]
    fn input_of_another_width_is_an_error() {
        for dtype in [GgmlDType::Q4K, GgmlDType::Q8_0] {
            let [matrix, _] = matrices(dtype);
            let x = Tensor::zeros((20, 2 * HIDDEN), candle_core::DType::F32, &Device::Cpu);
            assert!(matrix.forward(&x.unwrap(), RowKernels::Fastest).is_err());
        }
    }
}
