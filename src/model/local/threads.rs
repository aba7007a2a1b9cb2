//! How many threads the forward pass uses.

use std::thread::available_parallelism;

/// What the tensor library reads when its pool starts, for the whole process and once.
const SETTINGS: [&str; 2] = ["CANDLE_NUM_THREADS", "RAYON_NUM_THREADS"];

/// Leaves one core free, because threads that wait for a busy core make every step as slow as that
/// core. A number that the user has put in the environment wins.
///
/// The environment is the pool's only interface, and writing it is sound only while no other thread
/// runs: this is called before the program starts one.
pub fn limit_thread_pools() {
    let threads = available_parallelism().map_or(1, |cores| (cores.get() - 1).max(1));
    for setting in SETTINGS {
        if std::env::var_os(setting).is_none() {
            // SAFETY: no other thread runs yet that could read the environment.
            unsafe { std::env::set_var(setting, threads.to_string()) };
        }
    }
}
