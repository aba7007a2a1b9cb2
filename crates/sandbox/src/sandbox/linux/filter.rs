//! The seccomp filter: a program for the kernel that decides which system calls a command may make.
//!
//! The filter refuses system calls that reach parts of the kernel which tests do not need, or which
//! namespaces do not isolate. All other system calls are allowed. A system call of another
//! processor architecture kills the process.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET,
    BPF_W, c_long, sock_filter, sock_fprog,
};

use super::sockets::UnixSockets;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// Offsets in `struct seccomp_data`, in bytes.
const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;
/// Bit that marks system call numbers of the x32 ABI.
const X32: u32 = 0x4000_0000;

/// System calls that fail with `EPERM`.
const FORBIDDEN: &[c_long] = &[
    // Mounts and root directories.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    // Calls that enter namespaces. For `unshare` and `clone`, the arguments are checked instead.
    libc::SYS_setns,
    // Calls that affect other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Kernel keyrings, which namespaces do not isolate.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Large parts of the kernel that tests rarely need.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    // Calls that affect the whole machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];
const OPEN_TREE_ATTR: c_long = 467;

/// System calls that fail with `ENOSYS`. Programs that use them fall back to other calls.
const MISSING: &[c_long] = &[
    // The flags of `clone3` are in memory, which a filter cannot read.
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_memfd_secret,
];

const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;
/// Flag for a new time namespace. In `clone`, this bit belongs to the exit signal.
const TIME_NAMESPACE: u32 = libc::CLONE_NEWTIME as u32;

/// Allowed address families of sockets. Other families, such as `AF_VSOCK` and `AF_PACKET`, bypass
/// the network namespace or reach seldom used parts of the kernel.
const FAMILIES: [i32; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
const UNIX: u32 = libc::AF_UNIX as u32;
/// Types of Unix sockets that can send to an address without `connect`, so that the address cannot
/// be checked.
const DATAGRAMS: [i32; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];
/// Mask for the socket type without its flags.
const TYPE: u32 = 0xf;

/// `ioctl` requests that insert input into a terminal or change its mode.
const TERMINAL: [u32; 3] = [0x5412, 0x541c, 0x5423];

/// Process number of the init (the first process of the sandbox), which the command must not slow
/// down. The number is the first argument of the calls in `SCHEDULING`.
const INIT: u32 = 1;
const SCHEDULING: [c_long; 4] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];
/// Calls whose arguments are a kind of target, a target and a priority. Each call is listed with
/// the kind that selects a single process. The other kinds select a process group or a user, which
/// could include the init.
const PRIORITIES: [(c_long, u32); 2] = [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)];

/// Flag of the listener: after the init has received a call, only a fatal signal interrupts the
/// call. Available since Linux 5.19.
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

/// Installs the filter for the calling thread and all processes that it starts. If Unix sockets are
/// supervised, returns the file descriptor on which the kernel reports `connect` calls. The caller
/// must have set `no_new_privs`.
pub(super) fn install(sockets: UnixSockets) -> io::Result<Option<OwnedFd>> {
    let program = program(sockets);
    let plain = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    match sockets {
        UnixSockets::PairsOnly => load(program, plain).map(|_| None),
        UnixSockets::Supervised => {
            let listening = plain | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
            let listener = load(program.clone(), listening | WAIT_KILLABLE)
                .or_else(|_| load(program, listening))?;
            // SAFETY: the kernel returned this new descriptor, and nothing else owns it.
            Ok(Some(unsafe { OwnedFd::from_raw_fd(listener) }))
        }
    }
}

/// Loads the filter into the kernel and returns the result of the system call.
fn load(mut program: Vec<sock_filter>, flags: libc::c_ulong) -> io::Result<i32> {
    let program = sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program lives until the call returns.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(done as i32)
}

fn program(sockets: UnixSockets) -> Vec<sock_filter> {
    let mut filter = Filter(Vec::new());
    filter.load(ARCHITECTURE_AT);
    filter.unless_equal(ARCHITECTURE, libc::SECCOMP_RET_KILL_PROCESS);
    filter.load(NUMBER_AT);
    if cfg!(target_arch = "x86_64") {
        filter.when(BPF_JGE, X32, error(libc::ENOSYS));
    }
    let mut calls = calls(sockets);
    calls.sort_by_key(|(number, _)| *number);
    filter.search(&calls);
    filter.0
}

/// Returns the filters for the system calls that are not always allowed, each with the number of
/// its call. The number is already loaded when the filter of the call runs.
fn calls(sockets: UnixSockets) -> Vec<(u32, Filter)> {
    let given = |action| Filter::of(|filter| filter.give(action));
    let forbidden = FORBIDDEN
        .iter()
        .map(|call| (*call, given(error(libc::EPERM))));
    let missing = MISSING
        .iter()
        .map(|call| (*call, given(error(libc::ENOSYS))));
    let mut calls: Vec<(c_long, Filter)> = forbidden.chain(missing).collect();
    let mut look_at = |call, arguments: &dyn Fn(&mut Filter)| {
        // If the checks of the arguments do not refuse the call, it is allowed.
        let looks = Filter::of(|filter| {
            arguments(filter);
            filter.give(libc::SECCOMP_RET_ALLOW);
        });
        calls.push((call, looks));
    };
    look_at(libc::SYS_clone, &|filter| {
        filter.argument(0);
        filter.when(BPF_JSET, NAMESPACES, error(libc::EPERM));
    });
    look_at(libc::SYS_unshare, &|filter| {
        filter.argument(0);
        filter.when(BPF_JSET, NAMESPACES | TIME_NAMESPACE, error(libc::EPERM));
    });
    look_at(libc::SYS_ioctl, &|filter| {
        filter.argument(1);
        for request in TERMINAL {
            filter.when(BPF_JEQ, request, error(libc::EPERM));
        }
    });
    look_at(libc::SYS_seccomp, &|filter| {
        filter.argument(1);
        let listener = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER as u32;
        filter.when(BPF_JSET, listener, error(libc::EPERM));
    });
    // With a process number, this call could change the limits of the init, also through any of its
    // threads. Only 0, the calling process, is allowed.
    look_at(libc::SYS_prlimit64, &|filter| {
        filter.argument(0);
        filter.unless_equal(0, error(libc::EPERM));
    });
    for call in SCHEDULING {
        look_at(call, &|filter| {
            filter.argument(0);
            filter.when(BPF_JEQ, INIT, error(libc::EPERM));
        });
    }
    for (call, one) in PRIORITIES {
        look_at(call, &|filter| {
            filter.argument(0);
            filter.unless_equal(one, error(libc::EPERM));
            filter.argument(1);
            filter.when(BPF_JEQ, INIT, error(libc::EPERM));
        });
    }
    look_at(libc::SYS_socket, &|filter| {
        filter.argument(0);
        for family in FAMILIES {
            filter.when(BPF_JEQ, family as u32, libc::SECCOMP_RET_ALLOW);
        }
        match sockets {
            UnixSockets::PairsOnly => filter.when(BPF_JEQ, UNIX, error(libc::EACCES)),
            UnixSockets::Supervised => filter.unless_equal(UNIX, error(libc::EAFNOSUPPORT)),
        }
        filter.refuse_datagrams();
    });
    look_at(libc::SYS_socketpair, &Filter::refuse_datagrams);
    if sockets == UnixSockets::Supervised {
        calls.push((libc::SYS_connect, given(libc::SECCOMP_RET_USER_NOTIF)));
    }
    calls
        .into_iter()
        .map(|(call, filter)| (call as u32, filter))
        .collect()
}

fn error(number: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | number as u32
}

/// A seccomp program under construction. Its instructions load values and compare them with
/// numbers.
struct Filter(Vec<sock_filter>);

impl Filter {
    fn push(&mut self, code: u32, k: u32, (jt, jf): (u8, u8)) {
        let code = code as u16;
        self.0.push(sock_filter { code, jt, jf, k });
    }

    fn load(&mut self, at: u32) {
        self.push(BPF_LD | BPF_W | BPF_ABS, at, (0, 0));
    }

    /// Loads the lower half of an argument. The kernel ignores the upper half of all arguments that
    /// are checked.
    fn argument(&mut self, number: u32) {
        self.load(ARGUMENTS_AT + 8 * number);
    }

    fn give(&mut self, action: u32) {
        self.push(BPF_RET | BPF_K, action, (0, 0));
    }

    fn when(&mut self, comparison: u32, with: u32, action: u32) {
        self.push(BPF_JMP | comparison | BPF_K, with, (0, 1));
        self.give(action);
    }

    fn unless_equal(&mut self, with: u32, action: u32) {
        self.push(BPF_JMP | BPF_JEQ | BPF_K, with, (1, 0));
        self.give(action);
    }

    /// Refuses datagram sockets. The call must be one that creates Unix sockets.
    fn refuse_datagrams(&mut self) {
        self.argument(1);
        self.push(BPF_ALU | BPF_AND | BPF_K, TYPE, (0, 0));
        for kind in DATAGRAMS {
            self.when(BPF_JEQ, kind as u32, error(libc::EACCES));
        }
    }

    fn of(steps: impl FnOnce(&mut Filter)) -> Filter {
        let mut filter = Filter(Vec::new());
        steps(&mut filter);
        filter
    }

    /// Emits instructions that find the loaded call number in `calls` by binary search and run the
    /// filter of the call. Calls that are not listed are allowed. `calls` must be sorted. The
    /// search is binary because the filter runs at nearly every system call.
    fn search(&mut self, calls: &[(u32, Filter)]) {
        match calls {
            [] => self.give(libc::SECCOMP_RET_ALLOW),
            [(number, steps)] => {
                let length = u8::try_from(steps.0.len()).expect("one call takes few steps");
                self.push(BPF_JMP | BPF_JEQ | BPF_K, *number, (0, length));
                self.0.extend_from_slice(&steps.0);
                self.give(libc::SECCOMP_RET_ALLOW);
            }
            _ => {
                let (lower, upper) = calls.split_at(calls.len() / 2);
                let below = Filter::of(|filter| filter.search(lower));
                // The offset of a conditional jump has only 8 bits, so an unconditional jump is
                // needed.
                self.push(BPF_JMP | BPF_JGE | BPF_K, upper[0].0, (0, 1));
                self.push(BPF_JMP | BPF_JA, below.0.len() as u32, (0, 0));
                self.0.extend_from_slice(&below.0);
                self.search(upper);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets the filter and returns its action for a call.
    fn verdict(architecture: u32, number: u32, arguments: [u32; 2]) -> u32 {
        verdict_of(
            &program(UnixSockets::Supervised),
            architecture,
            number,
            arguments,
        )
        .0
    }

    /// Like `verdict`, but also returns the number of executed instructions.
    fn verdict_of(
        program: &[sock_filter],
        architecture: u32,
        number: u32,
        arguments: [u32; 2],
    ) -> (u32, usize) {
        let (mut at, mut loaded, mut steps) = (0, 0, 0);
        loop {
            let step = program[at];
            at += 1;
            steps += 1;
            let taken = match u32::from(step.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    loaded = match step.k {
                        NUMBER_AT => number,
                        ARCHITECTURE_AT => architecture,
                        place => arguments[(place as usize - 16) / 8],
                    };
                    continue;
                }
                code if code == BPF_ALU | BPF_AND | BPF_K => {
                    loaded &= step.k;
                    continue;
                }
                code if code == BPF_RET | BPF_K => return (step.k, steps),
                code if code == BPF_JMP | BPF_JA => {
                    at += step.k as usize;
                    continue;
                }
                code if code == BPF_JMP | BPF_JEQ | BPF_K => loaded == step.k,
                code if code == BPF_JMP | BPF_JGE | BPF_K => loaded >= step.k,
                code if code == BPF_JMP | BPF_JSET | BPF_K => loaded & step.k != 0,
                code => panic!("instruction {code:#x}"),
            };
            at += usize::from(if taken { step.jt } else { step.jf });
        }
    }

    fn says(call: c_long, arguments: [u32; 2]) -> u32 {
        verdict(ARCHITECTURE, call as u32, arguments)
    }

    #[test]
    fn system_calls_that_tests_do_not_need_are_refused() {
        let (allowed, forbidden) = (libc::SECCOMP_RET_ALLOW, error(libc::EPERM));
        assert_eq!(says(libc::SYS_read, [0, 0]), allowed);
        for call in FORBIDDEN {
            assert_eq!(says(*call, [0, 0]), forbidden, "{call}");
        }
        for call in MISSING {
            assert_eq!(says(*call, [0, 0]), error(libc::ENOSYS), "{call}");
        }
        let user = libc::CLONE_NEWUSER as u32;
        let thread = (libc::CLONE_VM | libc::CLONE_FILES | libc::SIGCHLD) as u32;
        assert_eq!(says(libc::SYS_clone, [thread, 0]), allowed);
        assert_eq!(says(libc::SYS_clone, [thread | user, 0]), forbidden);
        assert_eq!(
            says(libc::SYS_unshare, [libc::CLONE_FILES as u32, 0]),
            allowed
        );
        assert_eq!(says(libc::SYS_unshare, [user, 0]), forbidden);
        assert_eq!(says(libc::SYS_unshare, [TIME_NAMESPACE, 0]), forbidden);
        assert_eq!(says(libc::SYS_ioctl, [0, libc::TIOCSTI as u32]), forbidden);
        assert_eq!(says(libc::SYS_ioctl, [0, libc::TIOCGWINSZ as u32]), allowed);
        for (family, says_what) in [
            (libc::AF_INET6, allowed),
            (libc::AF_VSOCK, error(libc::EAFNOSUPPORT)),
            (libc::AF_PACKET, error(libc::EAFNOSUPPORT)),
            (libc::AF_ALG, error(libc::EAFNOSUPPORT)),
        ] {
            assert_eq!(says(libc::SYS_socket, [family as u32, 1]), says_what);
        }
    }

    #[test]
    fn filter_matches_exactly_the_listed_system_calls() {
        let named: Vec<u32> = calls(UnixSockets::Supervised)
            .into_iter()
            .map(|(number, _)| number)
            .collect();
        // Every call whose arguments are checked refuses these arguments.
        let arguments = [libc::AF_VSOCK as u32 | NAMESPACES, INIT];
        for number in 0..1000 {
            let is_allowed = verdict(ARCHITECTURE, number, arguments) == libc::SECCOMP_RET_ALLOW;
            let is_looked_at = [libc::SYS_ioctl, libc::SYS_seccomp, libc::SYS_socketpair]
                .iter()
                .chain(&SCHEDULING)
                .any(|call| *call as u32 == number);
            assert!(
                is_looked_at || is_allowed != named.contains(&number),
                "{number}"
            );
        }
        let program = program(UnixSockets::Supervised);
        for number in named.iter().copied().chain([libc::SYS_read as u32]) {
            let (_, steps) = verdict_of(&program, ARCHITECTURE, number, arguments);
            assert!(steps < 30, "{number}: {steps} steps");
        }
        let mut once = named.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), named.len());
    }

    #[test]
    fn command_cannot_change_limits_or_priority_of_the_init_process() {
        let (allowed, forbidden) = (libc::SECCOMP_RET_ALLOW, error(libc::EPERM));
        assert_eq!(says(libc::SYS_prlimit64, [0, 7]), allowed);
        assert_eq!(says(libc::SYS_prlimit64, [5, 7]), forbidden);
        assert_eq!(says(libc::SYS_sched_setaffinity, [0, 8]), allowed);
        assert_eq!(says(libc::SYS_sched_setaffinity, [INIT, 8]), forbidden);
        for (call, one) in PRIORITIES {
            assert_eq!(says(call, [one, 0]), allowed);
            assert_eq!(says(call, [one, INIT]), forbidden);
            assert_eq!(says(call, [one + 1, 0]), forbidden);
        }
    }

    #[test]
    fn connects_to_unix_socket_paths_are_supervised() {
        let stream = (libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u32;
        let datagram = (libc::SOCK_DGRAM | libc::SOCK_NONBLOCK) as u32;
        let (allowed, refused) = (libc::SECCOMP_RET_ALLOW, error(libc::EACCES));
        assert_eq!(
            says(libc::SYS_connect, [0, 0]),
            libc::SECCOMP_RET_USER_NOTIF
        );
        for call in [libc::SYS_socket, libc::SYS_socketpair] {
            assert_eq!(says(call, [UNIX, stream]), allowed);
            assert_eq!(says(call, [UNIX, datagram]), refused);
        }
        assert_eq!(
            says(libc::SYS_socket, [libc::AF_INET as u32, datagram]),
            allowed
        );
        let pairs = |call: c_long| {
            let program = program(UnixSockets::PairsOnly);
            verdict_of(&program, ARCHITECTURE, call as u32, [UNIX, stream]).0
        };
        assert_eq!(pairs(libc::SYS_socket), refused);
        assert_eq!(pairs(libc::SYS_socketpair), allowed);
        assert_eq!(pairs(libc::SYS_connect), allowed);
    }

    #[test]
    fn system_calls_of_other_architectures_are_refused() {
        let i386 = 0x4000_0003;
        assert_eq!(verdict(i386, 3, [0, 0]), libc::SECCOMP_RET_KILL_PROCESS);
        if cfg!(target_arch = "x86_64") {
            let x32 = X32 | libc::SYS_mount as u32;
            assert_eq!(verdict(ARCHITECTURE, x32, [0, 0]), error(libc::ENOSYS));
        }
    }
}
