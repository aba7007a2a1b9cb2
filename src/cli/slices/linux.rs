//! Time slices of threads on Linux.

use std::time::Duration;

/// Sets the slice of this thread and its future child threads.
pub(in crate::cli) fn of_this_thread(slice: Duration) {
    set(0, slice);
}

/// Sets the slice of all threads of this process and their future child threads.
pub(in crate::cli) fn of_all_threads(slice: Duration) {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return of_this_thread(slice);
    };
    for thread in threads.flatten() {
        if let Ok(id) = thread.file_name().to_string_lossy().parse() {
            set(id, slice);
        }
    }
}

/// Sets the slice of a thread; 0 is the calling one.
fn set(thread: libc::pid_t, slice: Duration) {
    use libc::{SYS_sched_getattr, SYS_sched_setattr, sched_attr, syscall};

    let size = size_of::<sched_attr>();
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut attr: sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most `size` bytes to `attr`, which has that size.
    let found = unsafe { syscall(SYS_sched_getattr, thread, &mut attr, size, 0) };
    if found != 0 || attr.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attr.sched_runtime = u64::try_from(slice.as_nanos()).unwrap_or(u64::MAX);
    // SAFETY: the kernel reads `attr.size` bytes of `attr`, a size that the kernel itself wrote.
    if unsafe { syscall(SYS_sched_setattr, thread, &attr, 0) } != 0 {
        tracing::debug!(error = %std::io::Error::last_os_error(), "the slice stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{getpriority_process, nice};

    use super::super::OF_WORKERS;
    use super::*;

    fn slice() -> (u64, i32) {
        let mut attr: libc::sched_attr = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::sched_attr>();
        let found = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &mut attr, size, 0) };
        assert_eq!(found, 0);
        (attr.sched_runtime, attr.sched_nice)
    }

    #[test]
    fn scheduler_slice_applies_to_a_thread_and_its_children_and_keeps_the_priority() {
        let before = slice().0;
        let (own, started, less) = std::thread::spawn(|| {
            let less = nice(3).map(|_| getpriority_process(None).unwrap()).unwrap();
            of_this_thread(OF_WORKERS);
            let started = std::thread::spawn(slice).join().unwrap();
            (slice(), started, less)
        })
        .join()
        .unwrap();
        assert_eq!((own.1, started.1), (less, less));
        assert_eq!(slice().0, before, "the others keep theirs");
        // Linux before 6.12 has no slice setting: it reads as zero.
        if before > 0 {
            assert_eq!(u128::from(own.0), OF_WORKERS.as_nanos());
            assert_eq!(own.0, started.0);
        }
    }
}
