//! The metrics of a server in Prometheus text format.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use starling_core::Usage;

/// The upper bounds of the histogram of queue times, in seconds.
const BOUNDS: [f64; 10] = [0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// The counters of one server.
#[derive(Default)]
pub struct Metrics {
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    statuses: BTreeMap<u16, u64>,
    cancelled: u64,
    prompt: u64,
    cached: u64,
    output: u64,
    waiting: usize,
    running: usize,
    /// Number of requests in each bucket of queue time, not cumulative. The last bucket is for
    /// times above all bounds.
    queue: [u64; BOUNDS.len() + 1],
    queue_seconds: f64,
}

impl Metrics {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a response by its status.
    pub fn answered(&self, status: u16) {
        *self.counts().statuses.entry(status).or_default() += 1;
    }

    /// Adds a request to the queue. Returns `false`, and adds nothing, if `limit` requests are
    /// waiting.
    pub fn enqueue(&self, limit: usize) -> bool {
        let mut counts = self.counts();
        let has_room = counts.waiting < limit;
        counts.waiting += usize::from(has_room);
        has_room
    }

    /// Moves a request from the queue to the running requests. `waited` is its time in the queue.
    pub fn begin(&self, waited: Duration) {
        let seconds = waited.as_secs_f64();
        let slot = BOUNDS.iter().position(|bound| seconds <= *bound);
        let mut counts = self.counts();
        counts.waiting -= 1;
        counts.running += 1;
        counts.queue[slot.unwrap_or(BOUNDS.len())] += 1;
        counts.queue_seconds += seconds;
    }

    /// Removes a request from the queue or the running requests. `usage` is `None` if the request
    /// has no answer.
    pub fn end(&self, began: bool, usage: Option<Usage>) {
        let mut counts = self.counts();
        match began {
            true => counts.running -= 1,
            false => counts.waiting -= 1,
        }
        if let Some(usage) = usage {
            counts.prompt += usage.prompt.0;
            counts.cached += usage.cached.0;
            counts.output += usage.output.0;
        }
    }

    /// Counts a request whose client disconnected before the end of the answer.
    pub fn cancel(&self) {
        self.counts().cancelled += 1;
    }

    /// Returns all metrics in Prometheus text format.
    pub fn render(&self, resident: Option<u64>) -> String {
        let counts = self.counts();
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, samples: &[(String, f64)]| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (suffix, value) in samples {
                let _ = writeln!(text, "{name}{suffix} {value}");
            }
        };
        let statuses = counts.statuses.iter();
        let statuses: Vec<_> = statuses
            .map(|(status, count)| (format!("{{status=\"{status}\"}}"), *count as f64))
            .collect();
        family(
            "starling_requests_total",
            "counter",
            "HTTP responses by status.",
            &statuses,
        );
        let single = |value: f64| [(String::new(), value)];
        for (name, kind, help, value) in [
            (
                "starling_requests_cancelled_total",
                "counter",
                "Requests whose client went away before the end of the answer.",
                counts.cancelled,
            ),
            (
                "starling_prompt_tokens_total",
                "counter",
                "Tokens of prompts.",
                counts.prompt,
            ),
            (
                "starling_cached_prompt_tokens_total",
                "counter",
                "Tokens of prompts that were in the cache.",
                counts.cached,
            ),
            (
                "starling_output_tokens_total",
                "counter",
                "Tokens of answers.",
                counts.output,
            ),
            (
                "starling_requests_waiting",
                "gauge",
                "Requests that wait for the model.",
                counts.waiting as u64,
            ),
            (
                "starling_requests_running",
                "gauge",
                "Requests that are being answered.",
                counts.running as u64,
            ),
        ] {
            family(name, kind, help, &single(value as f64));
        }
        let mut below = 0;
        let mut buckets = Vec::new();
        let bounds = BOUNDS.iter().map(f64::to_string);
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(counts.queue) {
            below += count;
            buckets.push((format!("_bucket{{le=\"{bound}\"}}"), below as f64));
        }
        buckets.push(("_sum".to_owned(), counts.queue_seconds));
        buckets.push(("_count".to_owned(), below as f64));
        family(
            "starling_queue_seconds",
            "histogram",
            "Time that requests waited for the model.",
            &buckets,
        );
        if let Some(resident) = resident {
            family(
                "process_resident_memory_bytes",
                "gauge",
                "Resident memory size in bytes.",
                &single(resident as f64),
            );
        }
        text
    }
}
