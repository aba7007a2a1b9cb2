//! How many threads the forward pass uses.

use std::sync::Once;
use std::thread::available_parallelism;

/// What the tensor library reads when its pool starts, for the whole process and once.
const SETTINGS: [&str; 2] = ["CANDLE_NUM_THREADS", "RAYON_NUM_THREADS"];

/// Fixes the number of threads before the first forward pass: all cores but one unless `wanted`,
/// because threads that wait for a busy core make every step as slow as that core. A number that
/// the user has put in the environment wins. Later calls change nothing: the pool is one per process.
pub fn fix(wanted: Option<usize>) {
    static FIXED: Once = Once::new();
    FIXED.call_once(|| {
        let threads = wanted.unwrap_or_else(default).max(1).to_string();
        for setting in SETTINGS {
            if std::env::var_os(setting).is_none() {
                // SAFETY: Rust code reads the environment under a lock of the standard library.
                // C code that reads it at this very moment could race, so models are opened while
                // the program starts up, before it resolves host names or starts children.
                unsafe { std::env::set_var(setting, &threads) };
            }
        }
    });
}

fn default() -> usize {
    available_parallelism().map_or(1, |cores| cores.get() - 1)
}
