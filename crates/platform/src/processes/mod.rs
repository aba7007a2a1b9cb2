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
pub use linux::{end_with_parent, raise_thread_niceness, set_thread_niceness};
#[cfg(all(unix, not(target_os = "linux")))]
pub use macos::{end_with_parent, raise_thread_niceness, set_thread_niceness};
#[cfg(unix)]
pub use unix::{ProcessGroup, exit_code, is_running, lead_group, variables};
#[cfg(windows)]
pub use windows::{
    Job, JobLimits, ProcessGroup, end_with_parent, exit_code, is_running, lead_group,
    raise_thread_niceness, set_thread_niceness, variables,
};

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn process_counts_as_running_until_it_is_reaped() {
        assert!(is_running(std::process::id()));
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(exit_code(status), 3);
        assert!(!is_running(child.id()));
        assert!(!is_running(0));
    }

    #[test]
    fn killing_a_process_group_kills_its_descendants() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo started; wait"]);
        lead_group(command.stdout(Stdio::piped()));
        let mut child = command.spawn().unwrap();
        let group = ProcessGroup::of(child.id()).unwrap();
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0; 8]).unwrap();
        group.kill();
        child.wait().unwrap();
        // The grandchild held the pipe open.
        assert_eq!(output.read(&mut [0; 1]).unwrap(), 0);
    }
}
