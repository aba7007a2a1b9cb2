//! The thread that owns a loaded network.

use std::time::Instant;

use tokio::sync::mpsc::Receiver;

use super::device;
use super::file::ModelFile;
use super::network::Network;
use super::request::{ModelSource, WorkerJob};
use super::scheduler::{Limits, Scheduler};
use super::vocabulary::Vocabulary;
use starling_core::{CallEvent, ModelNotice};

/// Maximum number of requests that are answered at once, on a CPU and on a GPU.
const REQUESTS: [usize; 2] = [8, 64];
/// Maximum length of all prompts and answers together, as a number of context windows: on a CPU,
/// and on a GPU.
const WINDOWS: [usize; 2] = [2, 16];

/// Answers requests until the last sender is dropped. Requests above the limits wait in the queue.
pub fn run(source: &ModelSource, mut jobs: Receiver<WorkerJob>) {
    let mut loaded = None;
    loop {
        let Some(scheduler) = &mut loaded else {
            let Some(job) = jobs.blocking_recv() else {
                return;
            };
            if job.is_abandoned() {
                continue;
            }
            match load(source, &job) {
                Ok(scheduler) => loaded.insert(scheduler).admit(job),
                Err(error) => job.end(Err(source.failed(&error))),
            }
            continue;
        };
        if scheduler.is_idle() {
            match jobs.blocking_recv() {
                Some(job) => scheduler.admit(job),
                None => return,
            }
        }
        while scheduler.has_room()
            && let Ok(job) = jobs.try_recv()
        {
            scheduler.admit(job);
        }
        scheduler.round();
    }
}

fn load(source: &ModelSource, job: &WorkerJob) -> candle_core::Result<Scheduler> {
    let notice = |message: String| {
        let model = source.name.clone();
        let notice = ModelNotice::Preparing { model, message };
        // Load the weights even if this caller has dropped the call, because the next request needs
        // them.
        let _ = job.events.send(CallEvent::Notice(notice));
    };
    let started = Instant::now();
    let file = ModelFile::open(&source.path)?;
    let size = file.bytes() as f64 / 1e9;
    notice(format!("loading {size:.2} GB of weights"));
    let (device, place) = device::open();
    let network = Network::load(&file, source.window, &device)?;
    let vocabulary = Vocabulary::load(&file)?;
    // The first step reads the weights from the disk, and candle repacks the layouts that the kernels in
    // `gemv` cannot read, so do this before the first answer.
    let mut cache = network.cache()?;
    network.extend(&[0, 0], &mut cache)?;
    let seconds = started.elapsed().as_secs_f64();
    notice(format!("loaded on {place} in {seconds:.1} s"));
    let kind = usize::from(!device.is_cpu());
    let limits = Limits {
        requests: REQUESTS[kind],
        tokens: WINDOWS[kind] * source.window,
    };
    Ok(Scheduler::new(source.clone(), network, vocabulary, limits))
}
