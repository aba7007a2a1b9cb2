//! Compiles the kernels for NVIDIA GPUs.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "cuda")]
    {
        println!("cargo::rerun-if-changed=src/gpu/step.cu");
        cudaforge::KernelBuilder::new()
            .source_files(["src/gpu/step.cu"])
            .arg("-O3")
            .build_ptx()
            .expect("nvcc compiles the kernels");
    }
}
