//! Supervises connections to Unix sockets. A read-only mount does not prevent a program from
//! connecting to a socket in it, and a seccomp filter cannot read paths. So the kernel forwards
//! every `connect` call of the command to the init, and the init connects in place of the command.
//! The init duplicates the socket, copies the address, and checks the file at the path. As a
//! result, the command cannot exchange anything between the check and the connection.

use std::fs;
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use libc::{seccomp_notif, seccomp_notif_resp};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags, openat, statx};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::plan::Plan;
use super::room::{SHARED_MEMORY, own_directories};
use super::version;

/// Maximum number of concurrent connection attempts. Further attempts fail with `EAGAIN`.
const AT_ONCE: usize = 128;
/// Maximum length of an address that the kernel accepts, in bytes.
const LONGEST: usize = 128;
/// Size of the address family at the start of an address, in bytes.
const FAMILY: usize = 2;

/// The Unix sockets that a command may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnixSockets {
    /// All sockets that the command creates. The init connects in place of the command.
    Supervised,
    /// Only socket pairs, because the init cannot connect in place of the command.
    PairsOnly,
}

/// Returns which Unix sockets the init can supervise on this kernel. Supervision needs
/// `pidfd_getfd` and `statx` with mount IDs, which exist since Linux 5.8. The security module Yama
/// can also forbid access to other processes.
pub(super) fn possible() -> UnixSockets {
    let yama = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let is_barred = yama.is_ok_and(|scope| !matches!(scope.trim(), "0" | "1"));
    if version::kernel() < version::SUPERVISES_CONNECTIONS || is_barred {
        UnixSockets::PairsOnly
    } else {
        UnixSockets::Supervised
    }
}

/// IDs of the mounts in which the command creates its own sockets.
pub(super) struct OwnMounts(Vec<u64>);

impl OwnMounts {
    /// Collects the IDs. Must be called inside the sandbox's root file system.
    pub(super) fn of(plan: &Plan) -> Self {
        let places = own_directories().chain([SHARED_MEMORY]).map(PathBuf::from);
        let all = places.chain([plan.tree.root().to_owned()]);
        let mount = |path: PathBuf| {
            let found = statx(CWD, &path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
            Some(found.stx_mnt_id)
        };
        OwnMounts(all.filter_map(mount).collect())
    }
}

/// Answers the `connect` requests from the kernel until no process is left that could make one.
pub(super) fn supervise(listener: OwnedFd, own: OwnMounts) {
    let shared = Arc::new((listener, own));
    while let Some(request) = next(&shared.0) {
        let for_thread = shared.clone();
        // The count includes the reference of this function.
        let is_free = Arc::strong_count(&shared) <= AT_ONCE;
        let answering = move || {
            let (listener, own) = &*for_thread;
            answer(listener, &request, connect(listener, &request, own));
        };
        if !is_free || thread::Builder::new().spawn(answering).is_err() {
            answer(&shared.0, &request, Err(Errno::AGAIN));
        }
    }
}

/// Returns the next `connect` request, or `None` when there will be no more.
fn next(listener: &OwnedFd) -> Option<seccomp_notif> {
    // Without this check, receiving fails immediately and repeatedly once all processes have ended.
    while !is_abandoned(listener) {
        // SAFETY: all fields are numbers, and the kernel requires them to be zero.
        let mut request: seccomp_notif = unsafe { zeroed() };
        // SAFETY: the kernel writes a request of this type.
        let done = unsafe {
            libc::ioctl(
                listener.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut request,
            )
        };
        match done {
            0 => return Some(request),
            _ => match io::Error::last_os_error().raw_os_error() {
                // The requesting process has ended, or a signal arrived.
                Some(libc::ENOENT | libc::EINTR) => {}
                Some(_) | None => return None,
            },
        }
    }
    None
}

/// Waits for a request. Returns true if all processes that could make a request have ended, and
/// false if there is a request.
fn is_abandoned(listener: &OwnedFd) -> bool {
    let mut on = [PollFd::new(listener, PollFlags::IN)];
    let waited = poll(&mut on, None);
    waited.is_ok() && !on[0].revents().contains(PollFlags::IN)
}

fn answer(listener: &OwnedFd, request: &seccomp_notif, done: Result<(), Errno>) {
    let mut response = seccomp_notif_resp {
        id: request.id,
        val: 0,
        error: done.map_or_else(|error| -error.raw_os_error(), |()| 0),
        flags: 0,
    };
    // SAFETY: the kernel reads a response of this type. An error means that the process has ended
    // and needs no response.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            &raw mut response,
        );
    }
}

fn is_valid(listener: &OwnedFd, request: &seccomp_notif) -> bool {
    // SAFETY: the kernel reads a number.
    let done = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
            &raw const request.id,
        )
    };
    done == 0
}

/// Connects the socket of the calling process in place of that process.
fn connect(listener: &OwnedFd, request: &seccomp_notif, own: &OwnMounts) -> Result<(), Errno> {
    let [socket, address, length, ..] = request.data.args;
    let thread = request.pid;
    let length = length as u32 as usize;
    if length > LONGEST {
        return Err(Errno::INVAL);
    }
    let process = pidfd_open(process_of(thread)?, PidfdFlags::empty())?;
    let socket = pidfd_getfd(process, socket as i32, PidfdGetfdFlags::empty())?;
    let address = read_memory(thread, address, length)?;
    // Before this check, the process may have ended, and another process may have got its number.
    if !is_valid(listener, request) {
        return Err(Errno::SRCH);
    }
    let domain = rustix::net::sockopt::socket_domain(&socket)?;
    let is_unix = domain == rustix::net::AddressFamily::UNIX;
    match path_in(&address).filter(|_| is_unix) {
        // An address of another family or an abstract address stays inside the network namespace.
        None => connect_to(&socket, &address),
        Some(path) => {
            let found = open(thread, path)?;
            let flags = StatxFlags::MNT_ID | StatxFlags::TYPE;
            let of = statx(&found, c"", AtFlags::EMPTY_PATH, flags)?;
            let is_socket = FileType::from_raw_mode(of.stx_mode.into()) == FileType::Socket;
            if !is_socket {
                return Err(Errno::CONNREFUSED);
            }
            if !own.0.contains(&of.stx_mnt_id) {
                return Err(Errno::ACCESS);
            }
            connect_to(&socket, &address_of(&found))
        }
    }
}

fn process_of(thread: u32) -> Result<Pid, Errno> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).map_err(|_| Errno::SRCH)?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let number = line.and_then(|number| number.trim().parse().ok());
    number.and_then(Pid::from_raw).ok_or(Errno::SRCH)
}

fn read_memory(thread: u32, from: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; length];
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: length,
    };
    let remote = libc::iovec {
        iov_base: from as *mut libc::c_void,
        iov_len: length,
    };
    // SAFETY: the kernel writes at most `length` bytes into `bytes`, and checks the other process's
    // memory.
    let read = unsafe {
        libc::process_vm_readv(
            thread.cast_signed(),
            &raw const local,
            1,
            &raw const remote,
            1,
            0,
        )
    };
    match usize::try_from(read) {
        Ok(read) if read == length => Ok(bytes),
        Ok(_) => Err(Errno::FAULT),
        Err(_) => Err(io::Error::last_os_error()
            .raw_os_error()
            .map_or(Errno::FAULT, Errno::from_raw_os_error)),
    }
}

/// Returns the path in a Unix address, or `None` for an abstract address or another family.
fn path_in(address: &[u8]) -> Option<&Path> {
    let (family, path) = address.split_first_chunk::<FAMILY>()?;
    let is_unix = i32::from(u16::from_ne_bytes(*family)) == libc::AF_UNIX;
    let end = path.iter().position(|byte| *byte == 0);
    let path = &path[..end.unwrap_or(path.len())];
    (is_unix && !path.is_empty()).then(|| Path::new(std::ffi::OsStr::from_bytes(path)))
}

/// Opens the file at a path, as the given thread would resolve the path.
fn open(thread: u32, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    // `/proc/self` would be resolved to this process instead of the process that made the request.
    let own = ["/proc/self", "/proc/thread-self"];
    let rest = own.iter().find_map(|own| path.strip_prefix(own).ok());
    match rest {
        Some(rest) => {
            let path = Path::new("/proc").join(thread.to_string()).join(rest);
            openat(CWD, &path, flags, Mode::empty())
        }
        None => {
            let cwd = format!("/proc/{thread}/cwd");
            let cwd = openat(CWD, cwd, flags | OFlags::DIRECTORY, Mode::empty())?;
            openat(cwd, path, flags, Mode::empty())
        }
    }
}

/// Returns an address for a socket file that is open. The address stays valid if the path of the
/// file changes.
fn address_of(found: &OwnedFd) -> Vec<u8> {
    let mut address = (libc::AF_UNIX as u16).to_ne_bytes().to_vec();
    address.extend(format!("/proc/self/fd/{}\0", found.as_raw_fd()).into_bytes());
    address
}

fn connect_to(socket: &OwnedFd, address: &[u8]) -> Result<(), Errno> {
    let mut aligned = MaybeUninit::<libc::sockaddr_storage>::zeroed();
    // SAFETY: the length was checked, so no address is longer than the storage.
    let done = unsafe {
        std::ptr::copy_nonoverlapping(address.as_ptr(), aligned.as_mut_ptr().cast(), address.len());
        libc::connect(
            socket.as_raw_fd(),
            aligned.as_ptr().cast(),
            address.len() as libc::socklen_t,
        )
    };
    if done == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error().raw_os_error();
    Err(error.map_or(Errno::IO, Errno::from_raw_os_error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_supervisor_ends_when_all_supervised_threads_have_ended() {
        let asking = thread::spawn(|| {
            rustix::thread::set_no_new_privs(true).unwrap();
            super::super::filter::install(UnixSockets::Supervised).unwrap()
        });
        let listener = asking.join().unwrap().unwrap();
        assert!(next(&listener).is_none());
    }

    #[test]
    fn unix_socket_path_is_parsed_as_by_the_kernel() {
        let unix = |path: &[u8]| [&(libc::AF_UNIX as u16).to_ne_bytes(), path].concat();
        assert_eq!(path_in(&unix(b"/a/b\0c")), Some(Path::new("/a/b")));
        assert_eq!(path_in(&unix(b"a")), Some(Path::new("a")));
        assert_eq!(path_in(&unix(b"\0abstract")), None);
        assert_eq!(path_in(&unix(b"")), None);
        assert_eq!(path_in(b"x"), None);
        let inet = (libc::AF_INET as u16).to_ne_bytes();
        assert_eq!(path_in(&[&inet[..], b"/a"].concat()), None);
    }
}
