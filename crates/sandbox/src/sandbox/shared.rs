//! Memory that processes share without a file. While no process has touched its pages, it counts as
//! nobody's, but it is taken.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

/// Between two looks.
const LEAST: Duration = Duration::from_millis(100);
/// Looking takes no more than one part in so many of the time.
const SHARE: u32 = 20;
/// Open files and mappings that are looked at, at one look.
const ENTRIES: usize = 100_000;

/// Bytes of shared memory, as they were at the last look.
#[derive(Debug)]
pub(super) struct SharedMemory {
    bytes: u64,
    next: Instant,
    /// The look that is being taken: a process that is starting a program or changing its memory lets
    /// nobody see its mappings, and the watch waits for none.
    look: Option<Receiver<Found>>,
}

/// What a look found, and how long it took.
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

    /// Of these processes; looked at again only when it is time to. `segments` adds those of System V in
    /// this process's namespace.
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
            // Nobody asks any more when the command has ended.
            let _ = send.send(Found { bytes, took });
        };
        // Where no thread can be started, the next look tries again.
        if thread::Builder::new().spawn(find_out).is_ok() {
            self.look = Some(look);
        }
    }
}

/// The memory of System V segments in this process's namespace.
pub(super) fn segments() -> u64 {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    table.lines().filter_map(segment).sum()
}

/// The bytes in memory, from a line of `/proc/sysvipc/shm`.
fn segment(line: &str) -> Option<u64> {
    line.split_whitespace().nth(14)?.parse().ok()
}

/// Files of `memfd_create` by what they take, and shared mappings without a file by their size; each
/// once, however many have it.
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

/// The file in memory that a line of `/proc/PID/maps` shows, and how far it is mapped.
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
        // The segments take as long to be counted as somebody makes them take.
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
