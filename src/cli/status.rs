//! A status line at the bottom of the terminal: the current operation and its duration.

use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::terminal;

/// Minimum duration of an operation to show a status line.
const PATIENCE: Duration = Duration::from_millis(400);
const FRAME: Duration = Duration::from_millis(120);
/// Maximum number of characters of a message, regardless of the terminal's width.
const SHOWN_MOST: usize = 200;

/// A status line on stderr that is redrawn several times a second. Nothing is drawn if stderr is
/// not a terminal, or a dumb one.
pub struct Status {
    bar: ProgressBar,
}

impl Status {
    pub fn new(message: &str) -> Status {
        let is_drawn = io::stderr().is_terminal() && !terminal::is_dumb();
        let target = if is_drawn {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            bar.set_style(style);
        }
        let status = Status { bar };
        status.say(message);
        if is_drawn {
            status.bar.enable_steady_tick(FRAME);
        }
        status
    }

    pub fn say(&self, message: &str) {
        let line: String = message.chars().take(SHOWN_MOST).collect();
        self.bar.set_message(line);
    }

    /// Prints permanent output with the status line hidden.
    pub fn beside<R>(&self, print: impl FnOnce() -> R) -> R {
        self.bar.suspend(print)
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Runs work that lists or reads the files of a project, and shows the progress.
pub fn while_reading<R>(work: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut status = None;
            let mut waited = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                std::thread::park_timeout(FRAME);
                waited += FRAME;
                if waited >= PATIENCE {
                    let status = status.get_or_insert_with(|| Status::new(""));
                    status.say(&reading(starling_index::reading()));
                }
            }
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

/// Formats the progress of reading the project's files.
pub fn reading(progress: Option<(usize, usize)>) -> String {
    match progress {
        Some((done, all)) => format!(
            "reading the code: {} of {} files",
            HumanCount(done as u64),
            HumanCount(all as u64)
        ),
        None => "listing the files of the project".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexing_progress_is_shown_in_files() {
        let told = reading(Some((1_234, 20_000)));
        assert_eq!(told, "reading the code: 1,234 of 20,000 files");
        assert_eq!(reading(None), "listing the files of the project");
        assert_eq!(while_reading(|| 3), 3);
    }
}
