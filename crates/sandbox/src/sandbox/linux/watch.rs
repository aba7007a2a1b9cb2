//! Measures the resources that the processes of a sandbox use, as read from `/proc`.

use std::collections::HashSet;
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::plan::Bounds;
use super::shared::{SharedMemory, segments};

/// Which processes count as processes of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All processes in the PID namespace of this process, which is the first process in it.
    Namespace,
    /// The descendants of this process.
    Descendants,
}

/// Limits for computing the processes' memory (see `MemorySum`). One check waits at most `PATIENCE`
/// for the sum. If the sum takes longer than `AT_MOST`, shared memory is counted in full for each
/// process.
const PATIENCE: Duration = Duration::from_millis(10);
const AT_MOST: Duration = Duration::from_secs(2);

/// Memory that the kernel uses for a file in memory in addition to its contents, in bytes.
pub(super) const FILE: u64 = 1280;
/// Page tables are at least this many times smaller than the address space that they describe.
const ADDRESSES_PER_TABLE: u64 = 512;
/// Page tables of at most this size, in bytes, are ignored.
const FEW_TABLES: u64 = 1 << 20;

/// The processes of a sandbox, and the in-memory file systems that only they use.
#[derive(Debug)]
pub(super) struct SandboxProcesses {
    head: Pid,
    scope: Scope,
    files: Vec<&'static str>,
    shares: Option<MemorySum>,
    shared: SharedMemory,
}

/// A computation of the processes' memory in which shared parts count once. It runs in a thread,
/// because reading a process's `smaps_rollup` blocks while the process changes its memory, possibly
/// without end.
#[derive(Debug)]
struct MemorySum {
    since: Instant,
    sum: Receiver<u64>,
}

/// One process, as read from `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessStat {
    pub pid: Pid,
    parent: i32,
    threads: u32,
    /// Whether the process is still running.
    pub lives: bool,
    /// Resident memory in bytes, including memory that is shared with other processes.
    resident: u64,
    /// The size of all mappings in bytes, most of which is usually not in memory.
    addresses: u64,
}

/// The limit that the processes of a sandbox exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    Memory,
    Processes,
    Disk,
    /// The disk is full, even if another program filled it.
    FullDisk,
}

impl SandboxProcesses {
    pub(super) fn of(head: Pid, scope: Scope, files: Vec<&'static str>) -> Self {
        SandboxProcesses {
            head,
            scope,
            files,
            shares: None,
            shared: SharedMemory::new(),
        }
    }

    /// Returns the disk space of open files that were deleted, in bytes, as of the last
    /// measurement.
    pub(super) fn unnamed(&self) -> u64 {
        self.shared.unnamed()
    }

    /// Returns all processes, including zombies, which the system still counts as processes.
    pub(super) fn members(&self) -> Vec<ProcessStat> {
        self.look().members
    }

    fn look(&self) -> ProcessScan {
        let mut all: Vec<ProcessStat> = Vec::new();
        let mut vanished = 0;
        // All process numbers are listed before any process is read, because processes start and
        // end while they are read.
        for number in numbers() {
            let stat = fs::read_to_string(format!("/proc/{number}/stat"));
            match stat.ok().and_then(|stat| member(&stat)) {
                Some(member) => all.push(member),
                None => vanished += 1,
            }
        }
        if self.scope == Scope::Descendants {
            let known = descendants(self.head, &all);
            all.retain(|one| known.contains(&one.pid.as_raw_pid()));
            vanished = 0;
        }
        all.retain(|one| one.pid != self.head);
        ProcessScan {
            members: all,
            vanished,
        }
    }

    /// Returns a limit that the processes exceed, if any. Threads count as processes.
    pub(super) fn excess(&mut self, bounds: Bounds) -> Option<Excess> {
        let ProcessScan { members, vanished } = self.look();
        let threads: u32 = members.iter().map(|one| one.threads).sum();
        if threads + vanished > bounds.processes {
            return Some(Excess::Processes);
        }
        let files: u64 = self.files.iter().map(|path| used_in(path)).sum();
        let segments = match self.scope {
            Scope::Namespace => segments,
            // Outside of a namespace, the function would return the segments of the whole system.
            Scope::Descendants => || 0,
        };
        let pids = members.iter().map(|one| one.pid);
        let shared = self.shared.bytes(pids, segments, &self.files);
        let tables: u64 = members.iter().map(ProcessStat::tables).sum();
        let files = files.saturating_add(shared).saturating_add(tables);
        let resident: u64 = members.iter().map(|one| one.resident).sum();
        // The resident memory counts shared memory several times. The exact sum is computed only if
        // that exceeds the limit, because the computation is expensive.
        let over = files + resident > bounds.memory
            && self
                .shares_of(members)
                .is_some_and(|shares| files + shares.min(resident) > bounds.memory);
        over.then_some(Excess::Memory)
    }

    /// Returns the memory of the processes in bytes if the sum is ready, `None` while it is being
    /// computed, and `u64::MAX` if that takes too long.
    fn shares_of(&mut self, members: Vec<ProcessStat>) -> Option<u64> {
        if self.shares.is_none() {
            let (send, sum) = channel();
            let find_out = move || send.send(members.iter().map(ProcessStat::share).sum());
            // If no thread can be started, the next check tries again.
            thread::Builder::new().spawn(find_out).ok()?;
            let since = Instant::now();
            self.shares = Some(MemorySum { since, sum });
        }
        let shares = self.shares.as_ref()?;
        let found = shares.sum.recv_timeout(PATIENCE);
        let late = shares.since.elapsed() > AT_MOST;
        match found {
            Err(RecvTimeoutError::Timeout) => late.then_some(u64::MAX),
            Ok(sum) => {
                self.shares = None;
                Some(sum)
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.shares = None;
                None
            }
        }
    }
}

/// Result of one scan of `/proc`.
struct ProcessScan {
    members: Vec<ProcessStat>,
    /// Number of processes that ended after they were listed and before they were read.
    vanished: u32,
}

fn numbers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns the process numbers of a process and its descendants. If the parent of a process ends
/// during the scan, the process is missing until the next scan.
fn descendants(head: Pid, all: &[ProcessStat]) -> HashSet<i32> {
    let mut known = HashSet::from([head.as_raw_pid()]);
    loop {
        let before = known.len();
        let children = all.iter().filter(|one| known.contains(&one.parent));
        let children: Vec<i32> = children.map(|one| one.pid.as_raw_pid()).collect();
        known.extend(children);
        if known.len() == before {
            return known;
        }
    }
}

impl ProcessStat {
    /// Returns the size of the page tables in bytes, or 0 if they cannot be large.
    fn tables(&self) -> u64 {
        if self.addresses / ADDRESSES_PER_TABLE < FEW_TABLES {
            return 0;
        }
        let path = format!("/proc/{}/status", self.pid.as_raw_pid());
        let text = fs::read_to_string(path).unwrap_or_default();
        kilobytes(&text, "VmPTE:").unwrap_or(0) << 10
    }

    /// Returns the process's proportional share of memory in bytes, without in-memory files, which
    /// are counted separately. Returns the resident memory if the share is unknown.
    fn share(&self) -> u64 {
        let path = format!("/proc/{}/smaps_rollup", self.pid.as_raw_pid());
        let text = fs::read_to_string(path).unwrap_or_default();
        let in_files = kilobytes(&text, "Pss_Shmem:").unwrap_or(0);
        kilobytes(&text, "Pss:").map_or(self.resident, |all| all.saturating_sub(in_files) << 10)
    }
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// Parses a line of `/proc/PID/stat`.
fn member(stat: &str) -> Option<ProcessStat> {
    // The name is in parentheses and may contain parentheses and spaces.
    let (start, rest) = stat.rsplit_once(") ")?;
    let (pid, _) = start.split_once(" (")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(ProcessStat {
        pid: Pid::from_raw(pid.parse().ok()?)?,
        parent: fields.get(1)?.parse().ok()?,
        threads: u32::try_from(number(17)?).ok()?.max(1),
        lives: !matches!(*fields.first()?, "Z" | "X"),
        resident: number(21)? * rustix::param::page_size() as u64,
        addresses: number(20)?,
    })
}

fn used_in(path: &str) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |found| {
        let contents = found.f_blocks.saturating_sub(found.f_bfree) * found.f_frsize;
        let files = found.f_files.saturating_sub(found.f_ffree);
        contents.saturating_add(files.saturating_mul(FILE))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_parsed_from_its_proc_stat_line() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 3 0 12345 1000000 25 18446744073709551615";
        let page = rustix::param::page_size() as u64;
        let read = member(line).unwrap();
        assert_eq!((read.pid.as_raw_pid(), read.parent), (42, 7));
        assert_eq!((read.threads, read.resident), (3, 25 * page));
        assert_eq!(read.addresses, 1_000_000);
        assert!(read.lives && !member(&line.replace(" S ", " Z ")).unwrap().lives);
        assert_eq!(member("nonsense"), None);
    }

    #[test]
    fn page_tables_are_measured_only_for_processes_with_a_large_address_space() {
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        let own = member(&own).unwrap();
        let with = |addresses| ProcessStat { addresses, ..own };
        assert_eq!(with(1 << 20).tables(), 0);
        assert!(with(1 << 40).tables() > 0);
    }

    #[test]
    fn all_descendants_of_a_process_count_towards_the_limits() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 & wait"])
            .spawn()
            .unwrap();
        let me = SandboxProcesses::of(rustix::process::getpid(), Scope::Descendants, Vec::new());
        let mine = |one: &ProcessStat| one.pid.as_raw_pid() == child.id().cast_signed();
        while !me.members().iter().any(mine) {}
        let mut shell =
            SandboxProcesses::of(Pid::from_child(&child), Scope::Descendants, Vec::new());
        // The sleeping process appears once the shell has started it.
        while shell.members().is_empty() {}
        let roomy = Bounds {
            memory: 1 << 40,
            processes: 10_000,
            ..Bounds::default()
        };
        assert_eq!(shell.excess(roomy), None);
        let tight = |memory, processes| Bounds {
            memory,
            processes,
            ..roomy
        };
        assert_eq!(shell.excess(tight(1 << 40, 0)), Some(Excess::Processes));
        // The limit may be detected only after several checks.
        while shell.excess(tight(1, 10_000)) != Some(Excess::Memory) {}
        for one in shell.members() {
            rustix::process::kill_process(one.pid, rustix::process::Signal::KILL).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
