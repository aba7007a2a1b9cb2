//! Memory that processes share without a file. Until a process touches its pages, no process is
//! charged for it, although it uses memory.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

/// Minimum time between two measurements.
const LEAST: Duration = Duration::from_millis(100);
/// A measurement takes at most `1 / SHARE` of the time.
const SHARE: u32 = 20;
/// Maximum number of open files and mappings per measurement.
const ENTRIES: usize = 100_000;

/// Shared memory in bytes, as of the last measurement.
#[derive(Debug)]
pub(super) struct SharedMemory {
    bytes: u64,
    next: Instant,
    /// The running measurement. It runs in its own thread, because reading the mappings of a
    /// process blocks while that process executes a program or changes its memory.
    look: Option<Receiver<Found>>,
}

/// Result and duration of a measurement.
#[derive(Debug)]
struct Found {
    bytes: u64,
    took: Duration,
}

impl SharedMemory {
    pub(super) fn new() -> Self {
        SharedMemory {
            bytes: 0,
            next: Instant::now() + LEAST,
            look: None,
        }
    }

    /// Returns the shared memory of the processes `of`, in bytes. It is measured again only when
    /// the interval has passed. `segments` returns the size of the System V segments in this
    /// process's namespace.
    pub(super) fn bytes(&mut self, of: impl Iterator<Item = Pid>, segments: fn() -> u64) -> u64 {
        if self.look.is_none() && Instant::now() >= self.next {
            self.begin(of.collect(), segments);
        }
        let found = self.look.as_ref().map(Receiver::try_recv);
        if let Some(Ok(Found { bytes, took })) = found {
            self.bytes = bytes;
            self.next = Instant::now() + LEAST.max(took * SHARE);
        }
        if !matches!(found, Some(Err(TryRecvError::Empty))) {
            self.look = None;
        }
        self.bytes
    }

    fn begin(&mut self, of: Vec<Pid>, segments: fn() -> u64) {
        let (send, look) = channel();
        let find_out = move || {
            let start = Instant::now();
            let bytes = objects(of.into_iter()).saturating_add(segments());
            let took = start.elapsed();
            // The receiver is gone when the command has ended.
            let _ = send.send(Found { bytes, took });
        };
        // If no thread can be started, the next call tries again.
        if thread::Builder::new().spawn(find_out).is_ok() {
            self.look = Some(look);
        }
    }
}

/// Returns the size of the System V shared memory segments in this process's namespace, in bytes.
pub(super) fn segments() -> u64 {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    table.lines().filter_map(segment).sum()
}

/// Parses the resident bytes from a line of `/proc/sysvipc/shm`.
fn segment(line: &str) -> Option<u64> {
    line.split_whitespace().nth(14)?.parse().ok()
}

/// Sums `memfd_create` files by their allocated size, and shared mappings without a file by their
/// length. Each object counts once, no matter how many processes share it.
fn objects(processes: impl Iterator<Item = Pid>) -> u64 {
    let mut left = ENTRIES;
    let mut taken: HashMap<u64, u64> = HashMap::new();
    let mut mapped: HashMap<u64, u64> = HashMap::new();
    for process in processes {
        let directory = format!("/proc/{}", process.as_raw_pid());
        let entries = fs::read_dir(format!("{directory}/fd"));
        for entry in entries.into_iter().flatten().flatten() {
            left = left.saturating_sub(1);
            let leads = fs::read_link(entry.path()).unwrap_or_default();
            if !leads.as_os_str().as_encoded_bytes().starts_with(b"/memfd:") {
                continue;
            }
            if let Ok(of) = fs::metadata(entry.path()) {
                taken.insert(of.ino(), of.blocks() * 512);
            }
        }
        let mappings = fs::read_to_string(format!("{directory}/maps")).unwrap_or_default();
        for (file, end) in mappings.lines().filter_map(shared_mapping) {
            left = left.saturating_sub(1);
            let longest = mapped.entry(file).or_default();
            *longest = end.max(*longest);
        }
        if left == 0 {
            break;
        }
    }
    mapped.retain(|file, _| !taken.contains_key(file));
    taken.values().chain(mapped.values()).sum()
}

/// Parses the inode of a memory file and the end of its mapped range from a line of
/// `/proc/PID/maps`.
fn shared_mapping(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (range, rights, offset) = (fields.next()?, fields.next()?, fields.next()?);
    let (_, file, name) = (fields.next()?, fields.next()?, fields.next()?);
    if !rights.ends_with('s') || !(name == "/dev/zero" || name.starts_with("/memfd:")) {
        return None;
    }
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    let (start, end) = range.split_once('-')?;
    let length = number(end)?.checked_sub(number(start)?)?;
    Some((file.parse().ok()?, number(offset)?.checked_add(length)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_mappings_are_read() {
        let line = "7f0000000000-7f0000002000 rw-s 00001000 00:01 1034 /dev/zero (deleted)";
        assert_eq!(shared_mapping(line), Some((1034, 0x3000)));
        let file = "7f0000000000-7f0000001000 rw-s 00000000 00:01 7 /memfd:a b (deleted)";
        assert_eq!(shared_mapping(file), Some((7, 0x1000)));
        for other in [
            "7f0000000000-7f0000001000 rw-p 00000000 00:01 7 /memfd:x (deleted)",
            "7f0000000000-7f0000001000 r--s 00000000 fe:00 7 /usr/lib/locale",
            "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ",
            "",
        ] {
            assert_eq!(shared_mapping(other), None, "{other}");
        }
    }

    #[test]
    fn a_look_is_not_waited_for() {
        let name = c"starling-test";
        let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&file, &vec![1; 1 << 20]).unwrap();
        let mut shared = SharedMemory::new();
        shared.next = Instant::now();
        // Counting the segments takes arbitrarily long.
        let slow = || {
            thread::sleep(Duration::from_millis(300));
            5
        };
        let mut look = || shared.bytes([rustix::process::getpid()].into_iter(), slow);
        let start = Instant::now();
        assert_eq!(look(), 0);
        assert!(start.elapsed() < Duration::from_millis(300));
        while look() < (1 << 20) + 5 {
            thread::yield_now();
        }
    }

    #[test]
    fn segments_are_read() {
        let head =
            "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap";
        assert_eq!(segment(head), None);
        let line = "0 5 1600 52428800 7 7 0 0 0 0 0 1 1 1 52428800 0";
        assert_eq!(segment(line), Some(52_428_800));
    }

    #[test]
    fn files_without_a_name_count_while_somebody_holds_them() {
        let name = c"starling-test";
        let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let own = || objects([rustix::process::getpid()].into_iter());
        let before = own();
        rustix::io::write(&file, &vec![1; 1 << 20]).unwrap();
        assert!(own() >= before + (1 << 20));
    }
}
