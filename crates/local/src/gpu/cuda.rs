//! Kernels for NVIDIA GPUs. On other devices, and for shapes that they do not support, candle's
//! operations are used.

use candle_core::cuda_backend::cudarc::driver::{
    DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg, result, sys,
};
use candle_core::cuda_backend::{CudaDevice, CudaStorageSlice, WrapErr};
use candle_core::{DType, Device, Result, Storage, Tensor, bail};

use super::super::attention::KeyValueCache;
use super::super::file::{Dimensions, RotaryPairing};

const KERNELS: &str = include_str!(concat!(env!("OUT_DIR"), "/step.ptx"));
/// Threads of a block of `attend`, as in its source.
const THREADS: usize = 128;
/// Maximum number of positions in one part of `attend`; their weights are in shared memory.
const LONGEST_PART: usize = 512;
/// Parts are not made shorter than this.
const SHORTEST_PART: usize = 64;
/// Number of blocks that keep a large GPU busy.
const BLOCKS: usize = 512;
/// Largest number of queries in one block of `attend`.
const LARGEST_GROUP: usize = 8;
/// Largest size of a head for which the shared memory suffices.
const LARGEST_HEAD: usize = 256;

/// Opens the first NVIDIA GPU. Its tensors must be used by the calling thread alone.
///
/// # Errors
/// There is no GPU, or its driver is too old.
pub fn open() -> Result<Device> {
    let device = Device::new_cuda(0)?;
    let cuda = device.as_cuda_device()?;
    // SAFETY: all work is in the order of one stream, which belongs to this thread.
    unsafe { cuda.disable_event_tracking() };
    // Without this, memory goes back to the system and is asked for again at each step.
    let stream = cuda.cuda_stream();
    let mut keep = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the device is open, and the attribute is a number of 64 bits.
    unsafe {
        let pool = result::device::get_default_mem_pool(stream.context().cu_device()).w()?;
        result::mem_pool::set_attribute(pool, attribute, (&raw mut keep).cast()).w()?;
    }
    Ok(device)
}

/// Returns the name of the GPU that [`open`] opens, and the size of its memory. It is not opened.
///
/// # Errors
/// There is no GPU.
pub fn describe() -> Result<String> {
    result::init().w()?;
    let device = result::device::get(0).w()?;
    let name = result::device::get_name(device).w()?;
    // SAFETY: the device exists.
    let bytes = unsafe { result::device::total_mem(device).w()? };
    Ok(format!("{name} with {} GB", bytes / 1_000_000_000))
}

/// The sequence and the position of each row of a step. The layout is that of `Rows` in the kernels'
/// source, which describes the table.
#[repr(C)]
#[derive(Clone, Copy)]
struct RowPlaces {
    table: u64,
    rows: i32,
    sequences: i32,
    layer: i32,
}

// SAFETY: the layout is that of the structure in the kernels' source, which is plain data.
unsafe impl DeviceRepr for RowPlaces {}

/// An argument of a kernel.
#[derive(Clone, Copy)]
enum Argument {
    Places(RowPlaces),
    Address(u64),
    Number(i32),
    Real(f32),
}

/// One step over rows of several sequences. A row is one new position of one sequence.
pub struct GpuStep {
    device: CudaDevice,
    table: Tensor,
    rows: usize,
    sequences: usize,
    /// The largest number of positions that a row sees.
    longest: usize,
    heads: usize,
    key_heads: usize,
    head: usize,
    /// Whether neighbouring elements of a head are rotated together.
    in_pairs: bool,
}

impl GpuStep {
    /// Prepares a step that adds the given number of positions to each cache, which must have capacity
    /// for them. Returns `None` if there are no kernels for this device or network.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn new(
        device: &Device,
        parts: &[(&KeyValueCache, usize)],
        dimensions: &Dimensions,
    ) -> Result<Option<Self>> {
        let head = dimensions.head;
        if !device.is_cuda() || head > LARGEST_HEAD || !head.is_multiple_of(4) {
            return Ok(None);
        }
        let positions = |(cache, new): &(&KeyValueCache, usize)| cache.len()..cache.len() + new;
        let mut table = Vec::new();
        for (sequence, part) in parts.iter().enumerate() {
            table.extend(positions(part).map(|_| sequence as i64));
        }
        let rows = table.len();
        table.extend(parts.iter().flat_map(positions).map(|at| at as i64));
        table.extend(parts.iter().map(|(cache, _)| cache.room() as i64));
        let mut caches: Vec<_> = parts.iter().map(|(cache, _)| cache.layers()).collect();
        for _ in 0..dimensions.layers {
            for tensor in caches.iter_mut().filter_map(Iterator::next).flatten() {
                table.push(address(tensor)? as i64);
            }
        }
        let count = table.len();
        Ok(Some(Self {
            device: device.as_cuda_device()?.clone(),
            table: Tensor::from_vec(table, count, device)?,
            rows,
            sequences: parts.len(),
            longest: parts
                .iter()
                .map(|part| positions(part).end)
                .max()
                .unwrap_or(0),
            heads: dimensions.heads,
            key_heads: dimensions.kv_heads,
            head,
            in_pairs: dimensions.rotation == RotaryPairing::Pairs,
        }))
    }

    /// Adds the biases to the queries, keys and values of a layer, turns the queries and keys, stores
    /// the keys and values in the caches, and computes the attention of each row.
    ///
    /// # Errors
    /// The shapes do not match, or the device is out of memory.
    pub fn attend(
        &self,
        layer: usize,
        projections: &[Tensor; 3],
        biases: [Option<&Tensor>; 3],
        [cosines, sines]: [&Tensor; 2],
    ) -> Result<Tensor> {
        let Self {
            rows,
            heads,
            key_heads,
            head,
            ..
        } = *self;
        let widths = [heads, key_heads, key_heads].map(|heads| heads * head);
        for ((tensor, bias), width) in projections.iter().zip(biases).zip(widths) {
            check(tensor, &[rows, width])?;
            if let Some(bias) = bias {
                check(bias, &[width])?;
            }
        }
        let places = RowPlaces {
            table: address(&self.table)?,
            rows: rows as i32,
            sequences: self.sequences as i32,
            layer: layer as i32,
        };
        let places = Argument::Places(places);
        let mut arguments = vec![places];
        for tensor in projections {
            arguments.push(at(tensor)?);
        }
        for bias in biases {
            arguments.push(at_optional(bias)?);
        }
        arguments.extend([at(cosines)?, at(sines)?]);
        let sizes = [heads, key_heads, head].map(number);
        arguments.extend(sizes);
        arguments.push(Argument::Number(i32::from(self.in_pairs)));
        let grid = (rows, heads + 2 * key_heads, 1);
        // SAFETY: the arguments are those of the kernel, and the shapes were checked.
        unsafe { self.launch("place", blocks(grid, head / 2, 0), &arguments)? };

        let group = group(heads / key_heads);
        let (parts, length) = self.split(heads / group);
        let out = self.empty(rows, heads * head)?;
        let partial = match parts {
            1 => None,
            _ => Some(self.empty(rows * heads, parts * (head + 2))?),
        };
        let partial = partial.as_ref();
        let mut arguments = vec![
            places,
            at(&projections[0])?,
            at(&out)?,
            at_optional(partial)?,
        ];
        arguments.extend(sizes);
        arguments.extend([number(length), Argument::Real(1.0 / (head as f32).sqrt())]);
        let shared = group * (2 * head + length) * size_of::<f32>();
        let shape = blocks((rows, heads / group, parts), THREADS, shared);
        // SAFETY: as above, and the parts cover all positions.
        unsafe { self.launch(&format!("attend_{group}"), shape, &arguments)? };
        if let Some(partial) = partial {
            let arguments = [at(partial)?, at(&out)?, number(parts), number(head)];
            let shape = blocks((rows * heads, 1, 1), head, 0);
            // SAFETY: as above.
            unsafe { self.launch("combine", shape, &arguments)? };
        }
        Ok(out)
    }

    /// Returns the number of parts into which the positions are split, and the length of one.
    fn split(&self, groups: usize) -> (usize, usize) {
        let wanted = BLOCKS.div_ceil(self.rows * groups);
        let parts = wanted
            .min(self.longest.div_ceil(SHORTEST_PART))
            .max(self.longest.div_ceil(LONGEST_PART))
            .max(1);
        let length = self.longest.div_ceil(parts);
        (self.longest.div_ceil(length), length)
    }

    /// Computes `silu(gate) * up` in place of `gate`.
    ///
    /// # Errors
    /// The shapes do not match.
    pub fn gate(&self, gate: Tensor, up: &Tensor) -> Result<Tensor> {
        check(up, gate.dims())?;
        check(&gate, gate.dims())?;
        let arguments = [at(&gate)?, at(up)?, number(gate.elem_count())];
        let shape = blocks((gate.elem_count().div_ceil(256), 1, 1), 256, 0);
        // SAFETY: the arguments are those of the kernel, and the shapes were checked.
        unsafe { self.launch("gate", shape, &arguments)? };
        Ok(gate)
    }

    /// Adds `change` to `x` in place, and returns the normalised sum.
    ///
    /// # Errors
    /// The shapes do not match, or the device is out of memory.
    pub fn add_and_norm(
        &self,
        x: &Tensor,
        change: Option<&Tensor>,
        weight: &Tensor,
        epsilon: f32,
    ) -> Result<Tensor> {
        let (rows, width) = x.dims2()?;
        check(x, &[rows, width])?;
        check(weight, &[width])?;
        if let Some(change) = change {
            check(change, &[rows, width])?;
        }
        let out = self.empty(rows, width)?;
        let (width, epsilon) = (number(width), Argument::Real(epsilon));
        let arguments = [
            at(x)?,
            at_optional(change)?,
            at(weight)?,
            at(&out)?,
            width,
            epsilon,
        ];
        let shape = blocks((rows, 1, 1), 512, 0);
        // SAFETY: the arguments are those of the kernel, and the shapes were checked.
        unsafe { self.launch("add_and_norm", shape, &arguments)? };
        Ok(out)
    }

    /// Starts a kernel after all work that was started before.
    ///
    /// # Safety
    /// The arguments must be those that the kernel expects, and their memory large enough.
    unsafe fn launch(&self, name: &str, shape: LaunchConfig, arguments: &[Argument]) -> Result<()> {
        let kernel = self
            .device
            .get_or_load_custom_func(name, "starling", KERNELS)?;
        let mut launch = kernel.builder();
        for argument in arguments {
            match argument {
                Argument::Places(places) => launch.arg(places),
                Argument::Address(address) => launch.arg(address),
                Argument::Number(number) => launch.arg(number),
                Argument::Real(number) => launch.arg(number),
            };
        }
        // SAFETY: as promised by the caller.
        unsafe { launch.launch(shape).w()? };
        Ok(())
    }

    fn empty(&self, rows: usize, columns: usize) -> Result<Tensor> {
        // SAFETY: the kernels write all elements before any is read.
        unsafe { Tensor::empty((rows, columns), DType::F32, self.table.device()) }
    }
}

/// Returns the number of queries that one block handles: a divisor of the number that share a key
/// head.
fn group(sharing: usize) -> usize {
    let mut sizes = (1..=LARGEST_GROUP).rev();
    sizes
        .find(|size| sharing.is_multiple_of(*size))
        .unwrap_or(1)
}

fn at(tensor: &Tensor) -> Result<Argument> {
    address(tensor).map(Argument::Address)
}

/// Returns the address zero for `None`.
fn at_optional(tensor: Option<&Tensor>) -> Result<Argument> {
    tensor.map_or(Ok(Argument::Address(0)), at)
}

fn number(number: usize) -> Argument {
    Argument::Number(number as i32)
}

fn blocks((x, y, z): (usize, usize, usize), threads: usize, shared: usize) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (x as u32, y as u32, z as u32),
        block_dim: (threads as u32, 1, 1),
        shared_mem_bytes: shared as u32,
    }
}

fn check(tensor: &Tensor, shape: &[usize]) -> Result<()> {
    if tensor.dims() != shape || !tensor.is_contiguous() || tensor.dtype() != DType::F32 {
        bail!("a kernel needs floats of the shape {shape:?}, not {tensor:?}")
    }
    Ok(())
}

/// Returns the address of the first element. It is valid for all work of this thread that is started
/// before the tensor is dropped.
fn address(tensor: &Tensor) -> Result<u64> {
    let (storage, layout) = tensor.storage_and_layout();
    let Storage::Cuda(storage) = &*storage else {
        bail!("a kernel needs tensors on its own device")
    };
    let stream = storage.device.cuda_stream();
    let start = layout.start_offset();
    match &storage.slice {
        CudaStorageSlice::F32(slice) => Ok(slice.device_ptr(&stream).0 + 4 * start as u64),
        CudaStorageSlice::I64(slice) => Ok(slice.device_ptr(&stream).0 + 8 * start as u64),
        _ => bail!("a kernel needs floats or whole numbers"),
    }
}
