//! User input: keys, lines, or Ctrl-C during a run, and lines that answer the questions before one.

mod lines;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::KeyEvent;
use tokio::sync::mpsc;

use super::keys::Decoder;
use lines::TypedLines;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

/// Interval at which the key reader checks whether to stop, and whether a key was pressed alone.
const GLANCE: Duration = Duration::from_millis(25);

/// Time after a question appears in which keys are dropped, because the user cannot have read it.
pub const READING: Duration = Duration::from_millis(400);
/// Keys that follow a dropped key within this time are dropped as well: they are the rest of a word.
pub const WORD: Duration = Duration::from_secs(1);

/// A single input of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A key that was pressed alone.
    Key(KeyEvent),
    /// Keys that came together, or shortly after something else. They never accept anything.
    Keys(Vec<KeyEvent>),
    /// Text from the clipboard, which is never an answer by itself.
    Pasted(String),
    Resized,
    Line(String),
    /// A line that was begun before the user can have read the question. It never accepts anything.
    EarlyLine(String),
    /// The end of the input.
    Closed,
    Interrupt,
}

/// The source of inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputSource {
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
    /// Inputs that were given back. They come again before all others.
    returned: VecDeque<Input>,
    /// Whether the end of the input was read.
    are_closed: bool,
    over: Arc<AtomicBool>,
    /// Whether another program reads the keys.
    paused: Arc<AtomicBool>,
    /// The time of the last question.
    asked_at: Arc<Mutex<Option<Instant>>>,
    /// Whether lines come from a terminal, and not from a pipe or a file.
    pub(super) typed: bool,
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
        let (over, paused, asked_at) = Default::default();
        let inputs = Inputs {
            inputs,
            returned: VecDeque::new(),
            are_closed: false,
            over,
            paused,
            asked_at,
            typed: false,
        };
        (tell, inputs)
    }

    /// Returns the next input. Cancel safe.
    pub async fn next(&mut self) -> Option<Input> {
        let input = match self.returned.pop_front() {
            Some(input) => Some(input),
            None => self.inputs.recv().await,
        };
        self.are_closed |= input == Some(Input::Closed);
        input
    }

    /// Records the time at which a question appeared.
    pub fn asked(&self, at: Instant) {
        *self.asked_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    /// Whether the end of the input was read.
    pub fn are_closed(&self) -> bool {
        self.are_closed
    }

    /// Gives back lines that were read and not used, for the questions of the next run. The end of
    /// the input comes again after them.
    pub fn give_back(&mut self, lines: impl IntoIterator<Item = String>) {
        self.returned.extend(lines.into_iter().map(Input::Line));
        if std::mem::take(&mut self.are_closed) {
            self.returned.push_back(Input::Closed);
        }
    }

    /// Pauses or resumes reading keys while another program uses the terminal. Drops keys that are
    /// already read.
    pub async fn pause(&mut self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
        // The reader may already wait for a key.
        tokio::time::sleep(4 * GLANCE).await;
        while self.inputs.try_recv().is_ok() {}
    }

    /// Creates the input stream of this process. If no answer is possible, the first input is
    /// [`Input::Closed`].
    pub fn of(source: InputSource) -> Inputs {
        let (tell, mut inputs) = Inputs::channel();
        inputs.typed = std::io::stdin().is_terminal();
        let interrupts = tell.clone();
        tokio::spawn(async move {
            // Other requests of the system end a run like Ctrl-C.
            let Ok(mut ends) = system::TerminationRequests::new() else {
                return;
            };
            let mut signals = Signals::default();
            loop {
                tokio::select! {
                    pressed = tokio::signal::ctrl_c() => if pressed.is_err() { return },
                    () = ends.next() => {}
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
            InputSource::Keys => {
                let over = Arc::clone(&inputs.over);
                let paused = Arc::clone(&inputs.paused);
                tokio::spawn(tell_sizes(tell.clone()));
                std::thread::spawn(move || read_keys(&tell, &over, &paused));
            }
            InputSource::Lines if inputs.typed => {
                let over = Arc::clone(&inputs.over);
                let paused = Arc::clone(&inputs.paused);
                let asked_at = Arc::clone(&inputs.asked_at);
                std::thread::spawn(move || read_typed_lines(&tell, &over, &paused, &asked_at));
            }
            InputSource::Lines => {
                std::thread::spawn(move || read_lines(&tell));
            }
            InputSource::Nothing => {
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

/// Waits until the system asks the program to end.
pub async fn termination_requested() {
    match system::TerminationRequests::new() {
        Ok(mut requests) => requests.next().await,
        Err(error) => {
            tracing::warn!(%error, "a request of the system to end is not noticed in time");
            std::future::pending().await
        }
    }
}

async fn tell_sizes(tell: mpsc::UnboundedSender<Input>) {
    let Ok(mut sizes) = system::SizeChanges::new() else {
        return;
    };
    while sizes.changed().await && tell.send(Input::Resized).is_ok() {}
}

fn read_keys(tell: &mpsc::UnboundedSender<Input>, over: &AtomicBool, paused: &AtomicBool) {
    let mut decoder = Decoder::default();
    while !over.load(Ordering::Relaxed) {
        if paused.load(Ordering::Relaxed) {
            decoder = Decoder::default();
            std::thread::sleep(GLANCE);
            continue;
        }
        let (inputs, is_last) = match system::read_bytes(GLANCE) {
            Ok(None) => (decoder.tick(Instant::now()), false),
            Ok(Some(bytes)) if !bytes.is_empty() => (decoder.take(&bytes, Instant::now()), false),
            Ok(Some(_)) | Err(_) => (vec![Input::Closed], true),
        };
        for input in inputs {
            if tell.send(input).is_err() {
                return;
            }
        }
        if is_last {
            return;
        }
    }
}

/// Reads the lines of a terminal. As soon as a question can have been read, what was typed until then
/// is taken out of the terminal, so that it is known which line was begun too early.
fn read_typed_lines(
    tell: &mpsc::UnboundedSender<Input>,
    over: &AtomicBool,
    paused: &AtomicBool,
    asked_at: &Mutex<Option<Instant>>,
) {
    let mut lines = TypedLines::default();
    let mut looked_at = None;
    while !over.load(Ordering::Relaxed) {
        if paused.load(Ordering::Relaxed) {
            std::thread::sleep(GLANCE);
            continue;
        }
        let asked = *asked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let can_be_read = |since: Instant| asked.is_none_or(|asked| since >= asked + READING);
        let mut inputs = Vec::new();
        if asked.is_some() && asked != looked_at && can_be_read(Instant::now()) {
            looked_at = asked;
            // If it cannot be taken, it is read below.
            let early = system::take_typed().unwrap_or_default();
            inputs.extend(lines.add(&early, !early.is_empty()));
        }
        let is_closed = match system::read_typed(GLANCE) {
            Ok(None) => false,
            Ok(Some((bytes, since))) => {
                inputs.extend(lines.add(&bytes, !can_be_read(since)));
                bytes.is_empty()
            }
            Err(_) => true,
        };
        if is_closed {
            inputs.extend(lines.end());
            inputs.push(Input::Closed);
        }
        for input in inputs {
            if tell.send(input).is_err() {
                return;
            }
        }
        if is_closed {
            return;
        }
    }
}

/// Reads the lines of a pipe or a file.
#[expect(clippy::disallowed_methods, reason = "it is not a terminal")]
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

/// Drops what was typed in the terminal before the user can have read a question that has just
/// appeared, and what follows it as the rest of a word. Returns whether anything was dropped. Input
/// from a pipe or a file answers the questions in order, so nothing of it is dropped.
///
/// # Errors
/// The terminal cannot be used.
pub fn drop_early() -> io::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    drop_until_quiet(&mut |wait| {
        std::thread::sleep(wait);
        system::take_typed().map(|typed| !typed.is_empty())
    })
}

/// Drops what is typed until the question can have been read. `is_typed_within` waits for a time and
/// drops what was typed until then.
fn drop_until_quiet(
    is_typed_within: &mut dyn FnMut(Duration) -> io::Result<bool>,
) -> io::Result<bool> {
    let is_typed_ahead = is_typed_within(Duration::ZERO)?;
    let mut is_dropped = is_typed_ahead;
    let mut wait = if is_typed_ahead { WORD } else { READING };
    while is_typed_within(wait)? {
        is_dropped = true;
        wait = WORD;
    }
    Ok(is_dropped)
}

/// Reads the line that answers a question. Returns `None` at the end of the input.
///
/// # Errors
/// Standard input cannot be read, or is not UTF-8.
#[expect(
    clippy::disallowed_methods,
    reason = "questions drop early input before this call"
)]
pub(super) fn read_answer() -> io::Result<Option<String>> {
    let mut line = String::new();
    let length = std::io::stdin().lock().read_line(&mut line)?;
    Ok((length > 0).then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the waits until nothing is typed, and whether anything was dropped. `typed` says for
    /// each wait whether something was typed within it.
    fn waits(typed: &[bool]) -> (Vec<Duration>, bool) {
        let mut waits = Vec::new();
        let dropped = drop_until_quiet(&mut |wait| {
            waits.push(wait);
            Ok(typed.get(waits.len() - 1).copied().unwrap_or(false))
        });
        (waits, dropped.unwrap())
    }

    #[test]
    fn what_is_typed_before_a_question_can_be_read_is_dropped_with_the_rest_of_its_word() {
        let zero = Duration::ZERO;
        assert_eq!(waits(&[]), (vec![zero, READING], false));
        assert_eq!(waits(&[true]), (vec![zero, WORD], true));
        let within = waits(&[false, true, true]);
        assert_eq!(within, (vec![zero, READING, WORD, WORD], true));
    }

    #[test]
    fn simultaneous_signals_count_as_one() {
        let mut signals = Signals::default();
        let start = Instant::now();
        assert!(signals.is_new(start));
        assert!(!signals.is_new(start + Duration::from_millis(1)));
        assert!(signals.is_new(start + Duration::from_secs(1)));
    }
}
