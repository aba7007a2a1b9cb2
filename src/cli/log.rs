//! Logs to stderr, or to the live view while there is one.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tokio::sync::mpsc;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, fmt};

use super::WrongUse;
use super::trace::{Trace, is_traced};

static VIEW: Mutex<Option<mpsc::UnboundedSender<String>>> = Mutex::new(None);

/// Starts logging messages with the filter in `STARLING_LOG`; the default is warnings. Spans are
/// written to `file`, if there is one.
///
/// # Errors
/// The file cannot be written.
pub fn start(file: Option<&Path>) -> Result<(), WrongUse> {
    let filter = EnvFilter::try_from_env("STARLING_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let messages = fmt::layer()
        .with_writer(|| LogLineWriter)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .with_filter(filter);
    let trace = file.map(|path| {
        Trace::create(path)
            .map_err(|error| WrongUse(format!("--log-file {}: {error}", path.display())))
    });
    let trace = trace
        .transpose()?
        .map(|trace| trace.with_filter(filter_fn(is_traced)));
    tracing_subscriber::registry()
        .with(messages)
        .with(trace)
        .init();
    Ok(())
}

/// Redirects log lines to the returned receiver until the receiver is dropped.
pub fn divert() -> mpsc::UnboundedReceiver<String> {
    let (lines, receiver) = mpsc::unbounded_channel();
    *VIEW.lock().unwrap_or_else(PoisonError::into_inner) = Some(lines);
    receiver
}

/// A writer for one log line; `tracing` writes a line in a single call.
struct LogLineWriter;

impl Write for LogLineWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut view = VIEW.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = &*view {
            let line = String::from_utf8_lossy(bytes).trim_end().to_owned();
            if lines.send(line).is_ok() {
                return Ok(bytes.len());
            }
            *view = None;
        }
        // `tracing` would report the error on stderr, which panics if stderr is closed.
        let _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_diverted_to_the_live_view_while_it_exists() {
        let mut lines = divert();
        LogLineWriter.write_all(b"one\n").unwrap();
        assert_eq!(lines.try_recv().unwrap(), "one");
        drop(lines);
        LogLineWriter.write_all(b"\n").unwrap();
        assert!(VIEW.lock().unwrap().is_none());
    }
}
