//! Measures how many tokens per second the local model writes when it runs several sequences together.
//!
//! ```sh
//! cargo bench -p starling-local --bench throughput -- [cpu|gpu] [WEIGHTS.gguf] [SEQUENCES...]
//! cargo bench -p starling-local --bench throughput -- compare [WEIGHTS.gguf]
//! ```
//!
//! Without `cpu` or `gpu`, the benchmark uses the GPU if there is one. Without a weights file, it writes
//! random weights with the architecture of Qwen2.5-Coder-1.5B to the temporary directory. Each row of the
//! table shows a number of sequences that run together, each after a prompt of 512 tokens. `compare` prints
//! the relative difference between the scores of the GPU and the CPU.

#![allow(clippy::unwrap_used)]

mod shape;

use std::path::PathBuf;

use starling_local::throughput::{Place, Throughput};

const PROMPT: usize = 512;
const STEPS: usize = 32;

fn main() {
    let (mut place, mut compares) = (None, false);
    let mut weights = None;
    let mut counts = Vec::new();
    for argument in std::env::args().skip(1).filter(|one| one != "--bench") {
        match (argument.as_str(), argument.parse::<usize>()) {
            ("cpu", _) => place = Some(Place::Cpu),
            ("gpu", _) => place = Some(Place::Gpu),
            ("compare", _) => compares = true,
            (_, Ok(count)) => counts.push(count),
            (path, Err(_)) => weights = Some(PathBuf::from(path)),
        }
    }
    if counts.is_empty() {
        counts = vec![1, 8, 32, 64];
    }
    let weights = weights.unwrap_or_else(|| {
        let path = std::env::temp_dir().join("starling-throughput.gguf");
        shape::write(&path);
        path
    });
    let open = |place| Throughput::load(&weights, place, PROMPT + STEPS + 8);
    if compares {
        let scores = |place| open(place).unwrap().scores(PROMPT).unwrap();
        for (cpu, gpu) in scores(Place::Cpu).iter().zip(&scores(Place::Gpu)) {
            println!(
                "relative difference of the scores: {:.5}",
                difference(cpu, gpu)
            );
        }
        return;
    }
    let (place, throughput) = match place {
        Some(place) => (place, open(place).unwrap()),
        None => match open(Place::Gpu) {
            Ok(throughput) => (Place::Gpu, throughput),
            Err(_) => (Place::Cpu, open(Place::Cpu).unwrap()),
        },
    };
    println!("{place:?}, {}, after {PROMPT} tokens", weights.display());
    println!(
        "| sequences | prompt tokens/s | ms a step | tokens/s | of one step alone | times one |"
    );
    println!("|---|---|---|---|---|---|");
    let mut alone = None;
    for count in counts {
        let measured = throughput.measure(count, PROMPT, STEPS).unwrap();
        let step = measured.step.as_secs_f64();
        let one = *alone.get_or_insert(step);
        println!(
            "| {count} | {:.0} | {:.2} | {:.0} | {:.2} | {:.2} |",
            PROMPT as f64 / measured.prompt.as_secs_f64(),
            step * 1e3,
            count as f64 / step,
            step / one,
            count as f64 * one / step,
        );
    }
}

/// Returns the Euclidean norm of the difference, divided by the norm of `expected`.
fn difference(expected: &[f32], found: &[f32]) -> f32 {
    let squares: f32 = expected.iter().map(|x| x * x).sum();
    let pairs = expected.iter().zip(found);
    (pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f32>() / squares).sqrt()
}
