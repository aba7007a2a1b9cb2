//! Measures the memory of a run's processes, without those of its tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// First argument of the process that keeps a sandbox. The processes below it belong to tests.
const KEEPER: &[u8] = b"@keeper";

/// Peak memory of each process of a run, by process id.
#[derive(Debug, Default)]
pub(super) struct Memory {
    peaks: BTreeMap<u32, u64>,
}

impl Memory {
    /// Measures a process and its descendants.
    pub(super) fn look(&mut self, pid: u32) {
        let mut waiting = vec![pid];
        while let Some(pid) = waiting.pop() {
            let process = Path::new("/proc").join(pid.to_string());
            // A process that has just ended was measured before.
            let Some(peak) = peak(&process) else { continue };
            let known = self.peaks.entry(pid).or_default();
            *known = peak.max(*known);
            if !keeps_a_sandbox(&process) {
                waiting.extend(children(&process));
            }
        }
    }

    /// Returns the sum of all peaks in bytes, an upper bound of the total memory at any time.
    pub(super) fn bytes(&self) -> u64 {
        self.peaks.values().sum()
    }
}

/// Returns the peak resident memory of a process, in bytes.
fn peak(process: &Path) -> Option<u64> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

fn keeps_a_sandbox(process: &Path) -> bool {
    let command = fs::read(process.join("cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).nth(1) == Some(KEEPER)
}

/// Returns the children of all threads, because each thread has its own list.
fn children(process: &Path) -> Vec<u32> {
    let threads = fs::read_dir(process.join("task")).into_iter().flatten();
    let listed = threads.flatten().filter_map(|thread| {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        Some(
            list.split(' ')
                .filter_map(|pid| pid.trim().parse().ok())
                .collect::<Vec<u32>>(),
        )
    });
    listed.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    /// Starts a shell that holds eight million bytes, starts a child process, and prints the
    /// child's id. `name` is the file name of its script.
    fn holder(name: &str) -> (Child, u64) {
        let folder = tempfile::tempdir().unwrap();
        let script = "x=$(head -c 8000000 /dev/zero | tr '\\0' x); sleep 60 & echo $!; wait";
        fs::write(folder.path().join(name), script).unwrap();
        let mut child = Command::new("sh")
            .arg(name)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let inner = line.trim().parse().unwrap();
        (child, inner)
    }

    fn end(mut child: Child, inner: u64) {
        child.kill().unwrap();
        child.wait().unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(inner).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }

    #[test]
    fn peak_memory_includes_child_processes_and_survives_their_end() {
        let (child, inner) = holder("script");
        let mut memory = Memory::default();
        memory.look(child.id());
        assert!(memory.bytes() > 8_000_000, "{memory:?}");
        assert!(memory.peaks.contains_key(&u32::try_from(inner).unwrap()));
        let (most, gone) = (memory.bytes(), child.id());
        end(child, inner);
        memory.look(gone);
        assert_eq!(memory.bytes(), most);
    }

    #[test]
    fn memory_of_sandboxed_test_processes_is_not_counted() {
        let (child, inner) = holder("@keeper");
        let mut memory = Memory::default();
        memory.look(child.id());
        assert_eq!(memory.peaks.keys().collect::<Vec<_>>(), [&child.id()]);
        end(child, inner);
    }
}
