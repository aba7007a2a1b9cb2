//! Measures how fast the local model reads prompts, and how much memory its process then uses. Linux only.
//!
//! ```sh
//! CANDLE_NUM_THREADS=1 cargo bench -p starling-local --bench prompts -- WEIGHTS.gguf [TOKENS...]
//! ```
//!
//! The table shows tokens per second of processor time and of elapsed time. Both are the best of three
//! prompts.

#![allow(clippy::unwrap_used)]

use std::time::Instant;

use starling_local::throughput::{Place, Throughput};

const REPEATS: usize = 3;
/// Number of processor ticks per second. The same for all programs on Linux.
const TICKS: f64 = 100.0;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|one| one != "--bench");
    let weights = arguments
        .next()
        .expect("the path of the weights is missing");
    let mut lengths: Vec<usize> = arguments.map(|one| one.parse().unwrap()).collect();
    if lengths.is_empty() {
        lengths = vec![256, 512, 2048];
    }
    let window = lengths.iter().max().unwrap() + 16;
    let throughput = Throughput::load(weights.as_ref(), Place::Cpu, window).unwrap();
    println!("| tokens | tokens/s of processor time | tokens/s |");
    println!("|---|---|---|");
    for length in lengths {
        let (mut processor, mut elapsed) = (f64::MAX, f64::MAX);
        for _ in 0..REPEATS {
            let (ticks, began) = (processor_ticks(), Instant::now());
            throughput.scores(length).unwrap();
            processor = processor.min((processor_ticks() - ticks) as f64 / TICKS);
            elapsed = elapsed.min(began.elapsed().as_secs_f64());
        }
        let speed = |seconds: f64| length as f64 / seconds;
        println!(
            "| {length} | {:.1} | {:.1} |",
            speed(processor),
            speed(elapsed)
        );
    }
    for line in std::fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
    {
        if line.starts_with("VmRSS") || line.starts_with("Rss") {
            println!("{line}");
        }
    }
}

/// Returns the time in user mode and in the kernel of all threads.
fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields = fields.split(' ').skip(11).take(2);
    fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}
