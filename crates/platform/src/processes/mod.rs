//! Processes: groups that end together, priorities, and exit statuses.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod macos;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::{end_with_parent, raise_thread_niceness, resident_bytes, set_thread_niceness};
#[cfg(all(unix, not(target_os = "linux")))]
pub use macos::{end_with_parent, raise_thread_niceness, resident_bytes, set_thread_niceness};
#[cfg(unix)]
pub use unix::{ProcessGroup, exit_code, is_running, lead_group, variables};
#[cfg(windows)]
pub use windows::{
    Job, JobLimits, ProcessGroup, end_with_parent, exit_code, is_running, lead_group,
    raise_thread_niceness, resident_bytes, set_thread_niceness, variables,
};

/// Lets threads run that are waiting for this core. Linux can leave a thread of higher priority
/// waiting until the next tick of its clock (4 ms or more), which a person at an editor would notice.
/// A thread of low priority calls this between pieces of work that take about a millisecond.
pub fn give_way() {
    std::thread::yield_now();
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    use super::*;

    /// Waits for a line, then starts a process that runs for long, says so, and waits.
    #[cfg(unix)]
    const TREE: &str = "read go; sleep 1000 & echo started; wait";
    #[cfg(windows)]
    const TREE: &str = "set /p go= & start /b ping -n 1000 127.0.0.1 >&2 & echo started& ping -n 1000 127.0.0.1 >&2";

    fn shell(line: &str) -> Command {
        let (program, option) = match cfg!(windows) {
            true => ("cmd", "/c"),
            false => ("sh", "-c"),
        };
        let mut command = Command::new(program);
        command.args([option, line]);
        command
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn resident_bytes_grow_with_touched_memory() {
        let before = resident_bytes().unwrap();
        let touched = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(resident_bytes().unwrap() >= before + (32 << 20));
        drop(touched);
    }

    #[test]
    fn process_counts_as_running_until_it_is_reaped() {
        assert!(is_running(std::process::id()));
        let mut child = shell("exit 3").spawn().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(exit_code(status), 3);
        assert!(!is_running(child.id()));
        assert!(!is_running(0));
    }

    #[test]
    fn killing_a_process_group_kills_its_descendants() {
        let mut command = shell(TREE);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        lead_group(command.stderr(Stdio::piped()));
        let mut child = command.spawn().unwrap();
        let group = ProcessGroup::of(child.id()).unwrap();
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0; 8]).unwrap();
        group.kill();
        child.wait().unwrap();
        // The grandchild held the pipe open.
        let mut rest = Vec::new();
        child.stderr.take().unwrap().read_to_end(&mut rest).unwrap();
    }
}
