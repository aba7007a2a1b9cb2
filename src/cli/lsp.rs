//! `starling lsp`. Dedicated threads handle client requests. Runs and queries use worker threads
//! with lower priority, so that indexing on all cores does not delay a keystroke. Child processes
//! of the workers, such as tests and language servers, have the lower priority as well.

use std::io;

use anyhow::Context;
use tokio::runtime::{Builder, Runtime};

use super::args::ConfigurationArgs;
use super::input::termination_requested;
use super::services::services;
use super::slices;
use super::{Outcome, STACK_BYTES};
use starling_platform::processes::raise_thread_niceness;
use starling_server::{ExitKind, RestorePolicy, serve_until};

/// Increment of the niceness of worker threads.
const LESS: i32 = 10;

/// Runs the command.
pub async fn run(args: &ConfigurationArgs) -> anyhow::Result<Outcome> {
    slices::of_all_threads(slices::SHORTEST);
    let workers = workers().context("cannot start the worker threads")?;
    let served = async {
        let services = services(args, workers.handle().clone(), RestorePolicy::All)?;
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        let leave = serve_until(input, output, services, termination_requested()).await;
        anyhow::Ok(match leave {
            ExitKind::AfterShutdown => Outcome::Settled,
            ExitKind::Abrupt => Outcome::NotSettled,
        })
    };
    let outcome = served.await;
    workers.shutdown_background();
    outcome
}

fn workers() -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .enable_all()
        .thread_name("worker")
        .thread_stack_size(STACK_BYTES)
        .on_thread_start(|| {
            // On Linux this applies to the current thread and its children only.
            if let Err(error) = raise_thread_niceness(LESS) {
                tracing::info!(%error, "a worker gives way to nobody");
            }
            slices::of_this_thread(slices::OF_WORKERS);
        })
        .build()
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn worker_threads_and_their_children_have_lower_priority() {
        let mine = getpriority_process(None).unwrap();
        let workers = workers().unwrap();
        let of_worker = async { getpriority_process(None).unwrap() };
        let of_worker = workers.block_on(workers.spawn(of_worker)).unwrap();
        let blocking = workers.spawn_blocking(|| {
            let of_its_own = std::thread::spawn(|| getpriority_process(None).unwrap());
            (
                getpriority_process(None).unwrap(),
                of_its_own.join().unwrap(),
            )
        });
        let (of_blocking, of_its_own) = workers.block_on(blocking).unwrap();
        let less = (mine + LESS).min(19);
        assert_eq!([of_worker, of_blocking, of_its_own], [less; 3]);
        assert_eq!(getpriority_process(None).unwrap(), mine);
    }
}
