//! What the processes of a sandbox use, read from `/proc`.

use std::collections::HashSet;
use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::plan::Bounds;
use super::shared::{SharedMemory, segments};

/// Who is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All in our namespace of processes, of which we are the first.
    Namespace,
    /// Our descendants.
    Descendants,
}

/// How long what many share is waited for at one look, and until it counts for each of them.
const PATIENCE: Duration = Duration::from_millis(10);
const AT_MOST: Duration = Duration::from_secs(2);

/// The processes of a sandbox, and the file systems in memory that are theirs alone.
#[derive(Debug)]
pub(super) struct Family {
    head: Pid,
    scope: Scope,
    files: Vec<&'static str>,
    shares: Option<Shares>,
    shared: SharedMemory,
}

/// What processes have in memory, shared parts once, as it is being found out: the system answers only
/// when a process has stopped changing its memory, and one that starts others without end never does.
#[derive(Debug)]
struct Shares {
    since: Instant,
    sum: Receiver<u64>,
}

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub pid: Pid,
    parent: i32,
    threads: u32,
    /// Whether it runs still.
    pub lives: bool,
    /// Bytes that are in memory, those shared with others included.
    resident: u64,
}

/// What a family uses too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excess {
    Memory,
    Processes,
    Disk,
}

impl Family {
    pub(super) fn of(head: Pid, scope: Scope, files: Vec<&'static str>) -> Self {
        Family {
            head,
            scope,
            files,
            shares: None,
            shared: SharedMemory::new(),
        }
    }

    /// All of them, ended ones that nobody collected yet among them: they are processes to the system.
    pub(super) fn members(&self) -> Vec<Member> {
        self.look().members
    }

    fn look(&self) -> Look {
        let mut all: Vec<Member> = Vec::new();
        let mut vanished = 0;
        // The names first: while they are read, many may come and go.
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
        Look {
            members: all,
            vanished,
        }
    }

    /// Threads are counted as processes.
    pub(super) fn excess(&mut self, bounds: Bounds) -> Option<Excess> {
        let Look { members, vanished } = self.look();
        let threads: u32 = members.iter().map(|one| one.threads).sum();
        if threads + vanished > bounds.processes {
            return Some(Excess::Processes);
        }
        let files: u64 = self.files.iter().map(|path| used_in(path)).sum();
        let segments = match self.scope {
            Scope::Namespace => segments,
            // They are those of the whole system.
            Scope::Descendants => || 0,
        };
        let shared = self
            .shared
            .bytes(members.iter().map(|one| one.pid), segments);
        let files = files.saturating_add(shared);
        let resident: u64 = members.iter().map(|one| one.resident).sum();
        // What many share is counted once, which costs more to find out.
        let over = files + resident > bounds.memory
            && self
                .shares_of(members)
                .is_some_and(|shares| files + shares.min(resident) > bounds.memory);
        over.then_some(Excess::Memory)
    }

    /// What processes have in memory, as far as it is known by now; the most there can be when that
    /// takes too long.
    fn shares_of(&mut self, members: Vec<Member>) -> Option<u64> {
        if self.shares.is_none() {
            let (send, sum) = channel();
            let find_out = move || send.send(members.iter().map(Member::share).sum());
            // Where no thread can be started, the next look tries again.
            thread::Builder::new().spawn(find_out).ok()?;
            let since = Instant::now();
            self.shares = Some(Shares { since, sum });
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

/// What was seen at one look.
struct Look {
    members: Vec<Member>,
    /// How many ended between their being listed and their being read.
    vanished: u32,
}

fn numbers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The numbers of a process and its descendants. One whose parent ended while we looked is missed until
/// the next look.
fn descendants(head: Pid, all: &[Member]) -> HashSet<i32> {
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

impl Member {
    /// Bytes in memory, those shared with others by its part, and without files in memory, which are
    /// counted by themselves; all of them where that is not told.
    fn share(&self) -> u64 {
        let path = format!("/proc/{}/smaps_rollup", self.pid.as_raw_pid());
        let text = fs::read_to_string(path).unwrap_or_default();
        let kilobytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        };
        let in_files = kilobytes("Pss_Shmem:").unwrap_or(0);
        kilobytes("Pss:").map_or(self.resident, |all| all.saturating_sub(in_files) << 10)
    }
}

/// A line of `/proc/PID/stat`.
fn member(stat: &str) -> Option<Member> {
    // The name, in brackets, may hold brackets and blanks.
    let (start, rest) = stat.rsplit_once(") ")?;
    let (pid, _) = start.split_once(" (")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Member {
        pid: Pid::from_raw(pid.parse().ok()?)?,
        parent: fields.get(1)?.parse().ok()?,
        threads: u32::try_from(number(17)?).ok()?.max(1),
        lives: !matches!(*fields.first()?, "Z" | "X"),
        resident: number(21)? * rustix::param::page_size() as u64,
    })
}

fn used_in(path: &str) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |found| {
        found.f_blocks.saturating_sub(found.f_bfree) * found.f_frsize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_from_its_line() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 3 0 12345 1000000 25 18446744073709551615";
        let page = rustix::param::page_size() as u64;
        let read = member(line).unwrap();
        assert_eq!((read.pid.as_raw_pid(), read.parent), (42, 7));
        assert_eq!((read.threads, read.resident), (3, 25 * page));
        assert!(read.lives && !member(&line.replace(" S ", " Z ")).unwrap().lives);
        assert_eq!(member("nonsense"), None);
    }

    #[test]
    fn a_family_is_all_descendants() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 & wait"])
            .spawn()
            .unwrap();
        let me = Family::of(rustix::process::getpid(), Scope::Descendants, Vec::new());
        let mine = |one: &Member| one.pid.as_raw_pid() == child.id().cast_signed();
        while !me.members().iter().any(mine) {}
        let mut shell = Family::of(Pid::from_child(&child), Scope::Descendants, Vec::new());
        // The sleeper comes when the shell has started it.
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
        // It may take more than one look.
        while shell.excess(tight(1, 10_000)) != Some(Excess::Memory) {}
        for one in shell.members() {
            rustix::process::kill_process(one.pid, rustix::process::Signal::KILL).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
