//! User input during a run: keys, lines, or Ctrl-C.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Interval at which the key reader checks whether to stop.
const GLANCE: Duration = Duration::from_millis(100);

/// A single input of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    Key(KeyEvent),
    /// Text from the clipboard, which is never an answer by itself.
    Pasted(String),
    Resized,
    Line(String),
    /// The end of the input.
    Closed,
    Interrupt,
}

/// The source of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Keys of a terminal in raw mode.
    Keys,
    Lines,
    /// stdin is used up or unavailable; only Ctrl-C is read.
    Nothing,
}

/// A stream of inputs. Its reader thread ends when the stream is dropped.
#[derive(Debug)]
pub struct Inputs {
    inputs: mpsc::UnboundedReceiver<Input>,
    over: Arc<AtomicBool>,
    /// Whether another program reads the keys.
    paused: Arc<AtomicBool>,
}

/// Merges signals that arrive at the same time. `timeout` sends a signal to the program and again
/// to its process group, and that must not count as two requests.
#[derive(Default)]
struct Signals {
    last: Option<Instant>,
}

impl Signals {
    const SAME: Duration = Duration::from_millis(300);

    fn is_new(&mut self, now: Instant) -> bool {
        let before = self.last.replace(now);
        before.is_none_or(|before| now.duration_since(before) > Signals::SAME)
    }
}

impl Inputs {
    /// Creates a stream and the sender of its inputs.
    pub fn channel() -> (mpsc::UnboundedSender<Input>, Inputs) {
        let (tell, inputs) = mpsc::unbounded_channel();
        let (over, paused) = Default::default();
        let inputs = Inputs {
            inputs,
            over,
            paused,
        };
        (tell, inputs)
    }

    /// Returns the next input. Cancel safe.
    pub async fn next(&mut self) -> Option<Input> {
        self.inputs.recv().await
    }

    /// Pauses or resumes reading keys while another program uses the terminal. Drops keys that are
    /// already read.
    pub async fn pause(&mut self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
        // The reader may already wait for a key.
        tokio::time::sleep(2 * GLANCE).await;
        while self.inputs.try_recv().is_ok() {}
    }

    /// Creates the input stream of this process. If no answer is possible, the first input is
    /// [`Input::Closed`].
    pub fn of(source: Source) -> Inputs {
        let (tell, inputs) = Inputs::channel();
        let interrupts = tell.clone();
        tokio::spawn(async move {
            // SIGHUP and SIGTERM end a run like Ctrl-C.
            let (Ok(mut term), Ok(mut hangup)) = (
                signal(SignalKind::terminate()),
                signal(SignalKind::hangup()),
            ) else {
                return;
            };
            let mut signals = Signals::default();
            loop {
                tokio::select! {
                    pressed = tokio::signal::ctrl_c() => if pressed.is_err() { return },
                    _ = term.recv() => {}
                    _ = hangup.recv() => {}
                }
                if !signals.is_new(Instant::now()) {
                    continue;
                }
                if interrupts.send(Input::Interrupt).is_err() {
                    return;
                }
            }
        });
        match source {
            Source::Keys => {
                let over = Arc::clone(&inputs.over);
                let paused = Arc::clone(&inputs.paused);
                std::thread::spawn(move || read_keys(&tell, &over, &paused));
            }
            Source::Lines => {
                std::thread::spawn(move || read_lines(&tell));
            }
            Source::Nothing => {
                // Cannot fail, because the receiver is in scope.
                let _ = tell.send(Input::Closed);
            }
        }
        inputs
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn read_keys(tell: &mpsc::UnboundedSender<Input>, over: &AtomicBool, paused: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        if paused.load(Ordering::Relaxed) {
            std::thread::sleep(GLANCE);
            continue;
        }
        let input = match event::poll(GLANCE) {
            Ok(false) => continue,
            Ok(true) => match event::read() {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => Input::Key(key),
                Ok(Event::Paste(text)) => Input::Pasted(text),
                Ok(Event::Resize(..)) => Input::Resized,
                Ok(_) => continue,
                Err(_) => Input::Closed,
            },
            Err(_) => Input::Closed,
        };
        let last = input == Input::Closed;
        if tell.send(input).is_err() || last {
            return;
        }
    }
}

fn read_lines(tell: &mpsc::UnboundedSender<Input>) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if tell.send(Input::Line(line)).is_err() {
            return;
        }
    }
    // If the receiver is dropped, the input is no longer needed.
    let _ = tell.send(Input::Closed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_at_the_same_time_are_one() {
        let mut signals = Signals::default();
        let start = Instant::now();
        assert!(signals.is_new(start));
        assert!(!signals.is_new(start + Duration::from_millis(1)));
        assert!(signals.is_new(start + Duration::from_secs(1)));
    }
}
