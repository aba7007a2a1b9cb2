//! The device that networks run on: an NVIDIA GPU if the program supports it and one is present,
//! otherwise the CPU.

use candle_core::{Device, Result};

use super::gpu;

/// Opens the device. Also returns the name of the device, as shown to the user.
pub(crate) fn open() -> (Device, String) {
    match gpu::open() {
        Ok(device) => (device, named(gpu::describe())),
        Err(error) => (Device::Cpu, named(Err(error))),
    }
}

/// Returns the name of the device that networks run on. Does not open the device.
pub fn name() -> String {
    named(gpu::describe())
}

fn named(gpu: Result<String>) -> String {
    match gpu {
        Ok(gpu) => format!("the GPU {gpu}"),
        Err(error) if cfg!(feature = "cuda") => {
            // The error message can contain a backtrace after its first line.
            let error = error.to_string();
            let reason = error.lines().next().unwrap_or_default();
            format!("the CPU, because no GPU answers: {reason}")
        }
        Err(_) => "the CPU".to_owned(),
    }
}
