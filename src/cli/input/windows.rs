//! The console and its events on Windows.

use std::io;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::signal::windows::{
    CtrlBreak, CtrlClose, CtrlShutdown, ctrl_break, ctrl_close, ctrl_shutdown,
};

/// Interval at which the size of the console is compared with the last one.
const GLANCE_AT_SIZE: Duration = Duration::from_millis(500);

/// The console events that request the program to end: Ctrl-Break, a closed console, and a shutdown.
pub(super) struct TerminationRequests {
    interrupted: CtrlBreak,
    closed: CtrlClose,
    shutdown: CtrlShutdown,
}

impl TerminationRequests {
    pub(super) fn new() -> io::Result<TerminationRequests> {
        Ok(TerminationRequests {
            interrupted: ctrl_break()?,
            closed: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// Waits for the next request. Cancel safe.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupted.recv() => {}
            _ = self.closed.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}

/// Changes of the console's size. Windows reports them among the keys, which another thread reads,
/// so the size is polled.
pub(super) struct SizeChanges((u16, u16));

impl SizeChanges {
    pub(super) fn new() -> io::Result<SizeChanges> {
        Ok(SizeChanges(crossterm::terminal::size()?))
    }

    /// Waits for the next change of the size. Returns false if no change can be observed.
    pub(super) async fn changed(&mut self) -> bool {
        loop {
            tokio::time::sleep(GLANCE_AT_SIZE).await;
            let Ok(size) = crossterm::terminal::size() else {
                return false;
            };
            if size != self.0 {
                self.0 = size;
                return true;
            }
        }
    }
}

/// Returns the next keys as the bytes that a terminal would send, or `None` if no key arrives in
/// time.
pub(super) fn read_bytes(wait: Duration) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut wait = wait;
    while event::poll(wait)? {
        wait = Duration::ZERO;
        if let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
        {
            push(key, &mut bytes);
        }
    }
    Ok((!bytes.is_empty()).then_some(bytes))
}

/// Returns the next line that was typed, and the time at which it was begun at the latest.
pub(super) fn read_typed(wait: Duration) -> io::Result<Option<(Vec<u8>, Instant)>> {
    if !event::poll(wait)? {
        return Ok(None);
    }
    let since = Instant::now();
    let line = super::read_answer()?.unwrap_or_default();
    Ok(Some((line.into_bytes(), since)))
}

/// Takes everything that was typed out of the console.
pub(super) fn take_typed() -> io::Result<Vec<u8>> {
    Ok(read_bytes(Duration::ZERO)?.unwrap_or_default())
}

/// Adds the bytes of a key. Keys without a meaning for Starling are left out.
fn push(key: KeyEvent, bytes: &mut Vec<u8>) {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    let fixed: &[u8] = match key.code {
        KeyCode::Char(c) if is_control && c.is_ascii_alphabetic() => {
            bytes.push(c.to_ascii_lowercase() as u8 & 0x1f);
            return;
        }
        KeyCode::Char(c) => {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return;
        }
        KeyCode::Enter => b"\r",
        KeyCode::Tab => b"\t",
        KeyCode::BackTab => b"\x1b[Z",
        KeyCode::Backspace => b"\x7f",
        KeyCode::Esc => b"\x1b",
        KeyCode::Up => b"\x1b[A",
        KeyCode::Down => b"\x1b[B",
        KeyCode::Right => b"\x1b[C",
        KeyCode::Left => b"\x1b[D",
        KeyCode::Home => b"\x1b[H",
        KeyCode::End => b"\x1b[F",
        KeyCode::PageUp => b"\x1b[5~",
        KeyCode::PageDown => b"\x1b[6~",
        KeyCode::Delete => b"\x1b[3~",
        _ => b"",
    };
    bytes.extend_from_slice(fixed);
}
