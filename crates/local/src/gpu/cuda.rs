//! CUDA kernels for NVIDIA GPUs. Other devices, and networks with unsupported shapes, use candle's operations
//! instead.

use candle_core::cuda_backend::cudarc::driver::{
    DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg, result, sys,
};
use candle_core::cuda_backend::{CudaDevice, CudaStorageSlice, WrapErr};
use candle_core::{DType, Device, Result, Storage, Tensor, bail};

use super::super::attention::KeyValueCache;
use super::super::dimensions::{Dimensions, RotaryPairing};

const KERNELS: &str = include_str!(concat!(env!("OUT_DIR"), "/step.ptx"));
/// Number of threads in a block of the kernel `attend`. Must be equal to `THREADS` in `step.cu`.
const THREADS: usize = 128;
/// Maximum number of positions in one part of `attend`, limited by the shared memory for their weights.
const LONGEST_PART: usize = 512;
/// Minimum number of positions in one part of `attend`, if there are several parts.
const SHORTEST_PART: usize = 64;
/// Number of blocks that are enough to keep a large GPU busy.
const BLOCKS: usize = 512;
/// Maximum number of queries in one block of `attend`.
const LARGEST_GROUP: usize = 8;
/// Maximum size of a head, limited by the shared memory.
const LARGEST_HEAD: usize = 256;

/// Opens the first NVIDIA GPU. Only the calling thread may use its tensors.
///
/// # Errors
/// There is no GPU, or its driver is too old.
pub fn open() -> Result<Device> {
    let device = Device::new_cuda(0)?;
    let cuda = device.as_cuda_device()?;
    // SAFETY: all operations run in order in one stream, which only this thread uses.
    unsafe { cuda.disable_event_tracking() };
    // Keep freed memory in the pool. By default, it is returned to the system and allocated again in each
    // step.
    let stream = cuda.cuda_stream();
    let mut keep = u64::MAX;
    let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the device is open, and the attribute has a 64-bit value.
    unsafe {
        let pool = result::device::get_default_mem_pool(stream.context().cu_device()).w()?;
        result::mem_pool::set_attribute(pool, attribute, (&raw mut keep).cast()).w()?;
    }
    Ok(device)
}

/// Returns the name and the memory size of the GPU that [`open`] opens. Does not open the GPU.
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

/// The sequence and position of each row of a step. Has the layout of `Rows` in `step.cu`, which documents
/// the table.
#[repr(C)]
#[derive(Clone, Copy)]
struct RowPlaces {
    table: u64,
    rows: i32,
    sequences: i32,
    layer: i32,
}

// SAFETY: the type is plain data with the layout that the kernels expect.
unsafe impl DeviceRepr for RowPlaces {}

/// An argument of a kernel.
#[derive(Clone, Copy)]
enum Argument {
    Places(RowPlaces),
    Address(u64),
    Number(i32),
    Real(f32),
}

/// One step of the network for rows of several sequences. A row is one new position in one sequence.
pub struct GpuStep {
    device: CudaDevice,
    table: Tensor,
    rows: usize,
    sequences: usize,
    /// Maximum number of positions that a row attends to.
    longest: usize,
    heads: usize,
    key_heads: usize,
    head: usize,
    /// Whether the rotary embedding rotates neighbouring elements of a head together.
    in_pairs: bool,
}

impl GpuStep {
    /// Prepares a step that adds the given number of positions to each cache. The caches must have enough
    /// capacity. Returns `None` if the kernels do not support this device or network.
    ///
    /// # Errors
    /// The device is out of memory.
    pub fn new(
        device: &Device,
        parts: &[(&KeyValueCache, usize)],
        dimensions: &Dimensions,
    ) -> Result<Option<Self>> {
        let head = dimensions.head;
        if !device.is_cuda()
            || head > LARGEST_HEAD
            || !head.is_multiple_of(4)
            || !dimensions.is_plain()
        {
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
            in_pairs: dimensions.pairing == RotaryPairing::Pairs,
        }))
    }

    /// Adds the biases of a layer to queries, keys and values, applies the rotary embedding to queries and
    /// keys, stores keys and values in the caches, and computes the attention of each row.
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
        // SAFETY: the arguments match the kernel's parameters, and their shapes were checked.
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
        // SAFETY: the arguments match the kernel's parameters, and the parts cover all positions.
        unsafe { self.launch(&format!("attend_{group}"), shape, &arguments)? };
        if let Some(partial) = partial {
            let arguments = [at(partial)?, at(&out)?, number(parts), number(head)];
            let shape = blocks((rows * heads, 1, 1), head, 0);
            // SAFETY: the arguments match the kernel's parameters, and the parts cover all positions.
            unsafe { self.launch("combine", shape, &arguments)? };
        }
        Ok(out)
    }

    /// Returns into how many parts the positions are split, and the number of positions in a part.
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
        // SAFETY: the arguments match the kernel's parameters, and their shapes were checked.
        unsafe { self.launch("gate", shape, &arguments)? };
        Ok(gate)
    }

    /// Adds `change` to `x` in place, and returns the normalized sum.
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
        // SAFETY: the arguments match the kernel's parameters, and their shapes were checked.
        unsafe { self.launch("add_and_norm", shape, &arguments)? };
        Ok(out)
    }

    /// Enqueues a kernel after all work enqueued so far.
    ///
    /// # Safety
    /// The arguments must match the kernel's parameters, and their memory must be large enough.
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
        // SAFETY: the caller guarantees that the arguments match the kernel's parameters.
        unsafe { launch.launch(shape).w()? };
        Ok(())
    }

    fn empty(&self, rows: usize, columns: usize) -> Result<Tensor> {
        // SAFETY: the kernels write every element before they read it.
        unsafe { Tensor::empty((rows, columns), DType::F32, self.table.device()) }
    }
}

/// Returns the number of queries that one block handles. It divides `sharing`, the number of queries that
/// share a key head.
fn group(sharing: usize) -> usize {
    let mut sizes = (1..=LARGEST_GROUP).rev();
    sizes
        .find(|size| sharing.is_multiple_of(*size))
        .unwrap_or(1)
}

fn at(tensor: &Tensor) -> Result<Argument> {
    address(tensor).map(Argument::Address)
}

/// Returns the address of a tensor, or 0 for `None`.
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

/// Returns the address of the first element. The address is valid for work that this thread enqueues before
/// it drops the tensor.
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
