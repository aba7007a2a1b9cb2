//! Features that depend on the kernel version.

use std::fs;

/// The major and minor version of the Linux kernel.
pub(super) type Version = (u32, u32);

/// First version in which a limit on processes counts only the user's processes in this namespace.
pub(super) const COUNTS_BY_NAMESPACE: Version = (5, 14);
/// First version in which a process can duplicate the sockets of another process and read the mount
/// ID of a file.
pub(super) const SUPERVISES_CONNECTIONS: Version = (5, 8);
/// First version in which each PID namespace has its own limit on processes. In older versions,
/// writing the limit changes the whole machine.
pub(super) const LIMITS_BY_NAMESPACE: Version = (6, 14);

/// Returns the version of the running kernel, or 0.0 if it is unknown.
pub(super) fn kernel() -> Version {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease");
    read(&release.unwrap_or_default())
}

fn read(release: &str) -> Version {
    let digits = |part: &str| {
        let end = part.find(|c: char| !c.is_ascii_digit());
        part[..end.unwrap_or(part.len())].parse().ok()
    };
    let mut parts = release.trim().split('.').map(digits);
    let number = |part: Option<Option<u32>>| part.flatten().unwrap_or_default();
    (number(parts.next()), number(parts.next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_version_is_parsed() {
        assert_eq!(read("6.18.44-fc-v669\n"), (6, 18));
        assert_eq!(read("5.4-generic"), (5, 4));
        assert_eq!(read(""), (0, 0));
        assert!(kernel() > (2, 6));
        assert!(read("6.1.0") < LIMITS_BY_NAMESPACE);
    }
}
