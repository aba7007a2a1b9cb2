//! Measures memory that processes share without a file. Such memory is used even if no process has
//! accessed its pages, and then it is not counted for any process. Also measures open files that
//! were deleted.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

/// Minimum time between two measurements.
const LEAST: Duration = Duration::from_millis(100);
/// The time between two measurements is at least `SHARE` times the duration of a measurement.
const SHARE: u32 = 20;
/// Maximum number of open files and mappings that one measurement reads.
const ENTRIES: usize = 100_000;

/// Memory that the kernel uses for a System V object, for a message without its text, and for a
/// semaphore, in bytes.
const OBJECT: u64 = 512;
const MESSAGE: u64 = 64;
const SEMAPHORE: u64 = 64;

/// The result of the last measurement of the memory that a sandbox's processes share.
#[derive(Debug)]
pub(super) struct SharedMemory {
    held: HeldMemory,
    next: Instant,
    /// The running measurement. It runs in its own thread, because reading the mappings of a
    /// process blocks while that process executes a program or changes its memory.
    look: Option<Receiver<Measurement>>,
}

/// Result and duration of a measurement.
#[derive(Debug)]
struct Measurement {
    held: HeldMemory,
    took: Duration,
}

/// Memory and disk space that processes use without a named file, in bytes.
#[derive(Debug, Default, Clone, Copy)]
struct HeldMemory {
    memory: u64,
    /// Disk space of open files that were deleted.
    unnamed: u64,
}

impl SharedMemory {
    pub(super) fn new() -> Self {
        SharedMemory {
            held: HeldMemory::default(),
            next: Instant::now() + LEAST,
            look: None,
        }
    }

    /// Returns the shared memory of the processes `of`, in bytes. It is measured again only after
    /// the minimum interval. `segments` returns the size of the System V objects in this process's
    /// namespace. Files in the file systems `in_memory` are left out, because they are counted
    /// elsewhere.
    pub(super) fn bytes(
        &mut self,
        of: impl Iterator<Item = Pid>,
        segments: fn() -> u64,
        in_memory: &[&'static str],
    ) -> u64 {
        if self.look.is_none() && Instant::now() >= self.next {
            self.begin(of.collect(), segments, in_memory.to_vec());
        }
        let found = self.look.as_ref().map(Receiver::try_recv);
        if let Some(Ok(Measurement { held, took })) = found {
            self.held = held;
            self.next = Instant::now() + LEAST.max(took * SHARE);
        }
        if !matches!(found, Some(Err(TryRecvError::Empty))) {
            self.look = None;
        }
        self.held.memory
    }

    /// Returns the disk space of open files that were deleted, in bytes, as of the last
    /// measurement.
    pub(super) fn unnamed(&self) -> u64 {
        self.held.unnamed
    }

    fn begin(&mut self, of: Vec<Pid>, segments: fn() -> u64, in_memory: Vec<&'static str>) {
        let (send, look) = channel();
        let find_out = move || {
            let start = Instant::now();
            let mut held = objects(of.into_iter(), &in_memory);
            held.memory = held.memory.saturating_add(segments());
            let took = start.elapsed();
            // If the command has ended, the receiver was dropped and sending fails.
            let _ = send.send(Measurement { held, took });
        };
        // If no thread can be started, the next call of this function tries again.
        if thread::Builder::new().spawn(find_out).is_ok() {
            self.look = Some(look);
        }
    }
}

/// Returns the size of the System V shared memory segments, message queues and semaphores in this
/// process's namespace, in bytes.
pub(super) fn segments() -> u64 {
    let sum = |table: &str, size: fn(&str) -> Option<u64>| -> u64 {
        let table = fs::read_to_string(format!("/proc/sysvipc/{table}")).unwrap_or_default();
        table.lines().filter_map(size).sum()
    };
    sum("shm", segment) + sum("msg", queue) + sum("sem", semaphores)
}

/// Parses the size of a message queue from a line of `/proc/sysvipc/msg`: the bytes of its
/// messages, and the memory that the kernel uses for the queue and for each message.
fn queue(line: &str) -> Option<u64> {
    let mut fields = line.split_whitespace().skip(3);
    let bytes: u64 = fields.next()?.parse().ok()?;
    let messages: u64 = fields.next()?.parse().ok()?;
    Some(OBJECT + bytes + messages * MESSAGE)
}

/// Parses the size of a set of semaphores from a line of `/proc/sysvipc/sem`.
fn semaphores(line: &str) -> Option<u64> {
    let number: u64 = line.split_whitespace().nth(3)?.parse().ok()?;
    Some(OBJECT + number * SEMAPHORE)
}

/// Parses the resident bytes from a line of `/proc/sysvipc/shm`.
fn segment(line: &str) -> Option<u64> {
    line.split_whitespace().nth(14)?.parse().ok()
}

/// Returns the memory and disk space that these processes use without a named file: `memfd_create`
/// files by their allocated size, shared mappings without a file by their length, and open files
/// that were deleted, except files in the file systems `in_memory`. Each object counts once, even
/// if several processes share it.
fn objects(processes: impl Iterator<Item = Pid>, in_memory: &[&str]) -> HeldMemory {
    let counted: Vec<u64> = in_memory
        .iter()
        .filter_map(|path| Some(fs::metadata(path).ok()?.dev()))
        .collect();
    let mut left = ENTRIES;
    let mut unnamed: HashMap<(u64, u64), u64> = HashMap::new();
    let mut taken: HashMap<u64, u64> = HashMap::new();
    let mut mapped: HashMap<u64, u64> = HashMap::new();
    for process in processes {
        let directory = format!("/proc/{}", process.as_raw_pid());
        let entries = fs::read_dir(format!("{directory}/fd"));
        for entry in entries.into_iter().flatten().flatten() {
            left = left.saturating_sub(1);
            let leads = fs::read_link(entry.path()).unwrap_or_default();
            let leads = leads.as_os_str().as_encoded_bytes();
            let is_memory = leads.starts_with(b"/memfd:");
            if !is_memory && !leads.ends_with(b" (deleted)") {
                continue;
            }
            let Ok(of) = fs::metadata(entry.path()) else {
                continue;
            };
            if is_memory {
                taken.insert(of.ino(), of.blocks() * 512);
            } else if of.is_file() && of.nlink() == 0 && !counted.contains(&of.dev()) {
                unnamed.insert((of.dev(), of.ino()), of.blocks() * 512);
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
    HeldMemory {
        memory: taken.values().chain(mapped.values()).sum(),
        unnamed: unnamed.values().sum(),
    }
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
    fn shared_memory_mappings_are_parsed_from_proc_maps() {
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
    fn slow_measurement_does_not_block_the_caller() {
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
        let mut look = || shared.bytes([rustix::process::getpid()].into_iter(), slow, &[]);
        let start = Instant::now();
        assert_eq!(look(), 0);
        assert!(start.elapsed() < Duration::from_millis(300));
        while look() < (1 << 20) + 5 {
            thread::yield_now();
        }
    }

    #[test]
    fn sizes_of_sysv_ipc_objects_are_parsed() {
        let head =
            "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap";
        assert_eq!(segment(head), None);
        let line = "0 5 1600 52428800 7 7 0 0 0 0 0 1 1 1 52428800 0";
        assert_eq!(segment(line), Some(52_428_800));
        let head = "key msqid perms cbytes qnum lspid lrpid uid gid cuid cgid stime rtime ctime";
        assert_eq!(queue(head), None);
        let line = "0 1 1600 8000 2 7 0 0 0 0 0 1 0 1";
        assert_eq!(queue(line), Some(OBJECT + 8000 + 2 * MESSAGE));
        let head = "key semid perms nsems uid gid cuid cgid otime ctime";
        assert_eq!(semaphores(head), None);
        let line = "0 3 600 32000 0 0 0 0 0 1";
        assert_eq!(semaphores(line), Some(OBJECT + 32000 * SEMAPHORE));
    }

    #[test]
    fn open_memfd_counts_as_memory() {
        let name = c"starling-test";
        let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let own = || objects([rustix::process::getpid()].into_iter(), &[]).memory;
        let before = own();
        rustix::io::write(&file, &vec![1; 1 << 20]).unwrap();
        assert!(own() >= before + (1 << 20));
    }

    #[test]
    fn open_deleted_file_on_disk_counts_as_written() {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        std::io::Write::write_all(&mut file, &vec![1; 3 << 20]).unwrap();
        file.sync_all().unwrap();
        let me = || [rustix::process::getpid()].into_iter();
        assert!(objects(me(), &[]).unnamed >= 3 << 20);
        let counted = objects(me(), &[env!("CARGO_MANIFEST_DIR")]);
        assert!(counted.unnamed < 3 << 20, "{counted:?}");
    }
}
