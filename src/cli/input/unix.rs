//! The terminal and signals on Linux and macOS.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that request the program to end: SIGTERM, SIGHUP, SIGQUIT and SIGUSR1.
pub(super) struct TerminationRequests {
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
    user: Signal,
}

impl TerminationRequests {
    pub(super) fn new() -> io::Result<TerminationRequests> {
        Ok(TerminationRequests {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next request. Cancel safe.
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.quit.recv() => {}
            _ = self.user.recv() => {}
        }
    }
}

/// Changes of the terminal's size.
pub(super) struct SizeChanges(Signal);

impl SizeChanges {
    pub(super) fn new() -> io::Result<SizeChanges> {
        Ok(SizeChanges(signal(SignalKind::window_change())?))
    }

    /// Waits for the next change of the size. Returns false if no change can be observed.
    pub(super) async fn changed(&mut self) -> bool {
        self.0.recv().await.is_some()
    }
}

/// Returns the next bytes of the terminal, no bytes at its end, or `None` if no byte arrives in time.
pub(super) fn read_bytes(wait: Duration) -> io::Result<Option<Vec<u8>>> {
    let stdin = rustix::stdio::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    let wait = Timespec {
        tv_sec: wait.as_secs().cast_signed(),
        tv_nsec: i64::from(wait.subsec_nanos()),
    };
    let mut bytes = vec![0; 4096];
    let read = match poll(&mut ready, Some(&wait)) {
        Ok(0) | Err(Errno::INTR) => return Ok(None),
        Ok(_) => rustix::io::read(stdin, &mut bytes),
        Err(error) => Err(error),
    };
    match read {
        Ok(length) => {
            bytes.truncate(length);
            Ok(Some(bytes))
        }
        Err(Errno::INTR | Errno::AGAIN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the next bytes of lines that were typed, and the time at which they were at the latest.
pub(super) fn read_typed(wait: Duration) -> io::Result<Option<(Vec<u8>, Instant)>> {
    Ok(read_bytes(wait)?.map(|bytes| (bytes, Instant::now())))
}

/// Takes everything that was typed out of the terminal, also a line without an end, which the
/// terminal hands over only when it does not collect lines.
pub(super) fn take_typed() -> io::Result<Vec<u8>> {
    let stdin = rustix::stdio::stdin();
    let by_line = tcgetattr(stdin)?;
    let mut by_key = by_line.clone();
    by_key.local_modes.remove(LocalModes::ICANON);
    by_key.special_codes[SpecialCodeIndex::VMIN] = 0;
    by_key.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(stdin, OptionalActions::Now, &by_key)?;
    let mut typed = Vec::new();
    let taken = loop {
        match read_bytes(Duration::ZERO) {
            Ok(Some(bytes)) if !bytes.is_empty() => typed.extend(bytes),
            Ok(_) => break Ok(typed),
            Err(error) => break Err(error),
        }
    };
    tcsetattr(stdin, OptionalActions::Now, &by_line)?;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Signal, getpid, kill_process};

    #[tokio::test]
    async fn each_signal_that_ends_a_program_requests_the_end() {
        let mut requests = TerminationRequests::new().unwrap();
        for signal in [Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1] {
            kill_process(getpid(), signal).unwrap();
            requests.next().await;
        }
    }
}
