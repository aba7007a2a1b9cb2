//! Processes on Windows.

use std::ffi::OsString;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::process::{Command, ExitStatus};

use windows_sys::Win32::Foundation::{ERROR_ACCESS_DENIED, WAIT_OBJECT_0, WAIT_TIMEOUT};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_ACTIVE_PROCESS,
    JOB_OBJECT_LIMIT_JOB_MEMORY, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, INFINITE, OpenProcess, PROCESS_SET_QUOTA,
    PROCESS_SYNCHRONIZE, PROCESS_TERMINATE, SetThreadPriority, THREAD_PRIORITY_BELOW_NORMAL,
    WaitForSingleObject,
};

/// Exit status of processes that are killed with their job.
const KILLED: u32 = 137;

/// Opens a process by its id.
fn open(process: u32, rights: u32) -> io::Result<OwnedHandle> {
    // SAFETY: the call has no pointers.
    let handle = unsafe { OpenProcess(rights, 0, process) };
    owned(handle)
}

fn owned(handle: RawHandle) -> io::Result<OwnedHandle> {
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system returned this handle for us to close.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

fn checked(done: i32) -> io::Result<()> {
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Waits until a process ends, at most for some milliseconds. Returns whether it has ended.
fn has_ended(process: &OwnedHandle, milliseconds: u32) -> bool {
    // SAFETY: the handle is open as long as `process` is borrowed.
    let waited = unsafe { WaitForSingleObject(process.as_raw_handle(), milliseconds) };
    debug_assert!(matches!(waited, WAIT_OBJECT_0 | WAIT_TIMEOUT), "{waited}");
    waited == WAIT_OBJECT_0
}

/// Whether a process with this id runs, also if it belongs to another user.
pub fn is_running(process: u32) -> bool {
    match open(process, PROCESS_SYNCHRONIZE) {
        Ok(process) => !has_ended(&process, 0),
        // The process belongs to another user.
        Err(error) => error.raw_os_error() == Some(ERROR_ACCESS_DENIED.cast_signed()),
    }
}

/// Returns the exit status of a process.
pub fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

/// Returns the environment variables of this process, with names in upper case: `Path` and `PATH` are
/// one variable.
pub fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().map(|(name, value)| (name.to_ascii_uppercase(), value))
}

/// Makes a command start a group of its own. On Windows, [`ProcessGroup::of`] does this.
pub fn lead_group(_command: &mut Command) {}

/// A process and its descendants, in a job object. They are killed when the group is dropped or
/// this process ends.
#[derive(Debug)]
pub struct ProcessGroup(Job);

impl ProcessGroup {
    /// Returns the group of a process that was just started. Children that the process has already
    /// started are not part of the group.
    ///
    /// # Errors
    /// The process cannot be added to a job object.
    pub fn of(leader: u32) -> io::Result<ProcessGroup> {
        let job = Job::new(JobLimits::default())?;
        let process = open(leader, PROCESS_SET_QUOTA | PROCESS_TERMINATE)?;
        job.add(process.as_raw_handle())?;
        Ok(ProcessGroup(job))
    }

    /// Kills all processes of the group.
    pub fn kill(&self) {
        self.0.kill();
    }
}

/// Limits of all processes of a job together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobLimits {
    /// Maximum committed memory in bytes.
    pub memory: Option<u64>,
    /// Maximum number of processes at the same time.
    pub processes: Option<u32>,
}

/// A job object: processes that end together, at the latest when the last handle is closed.
#[derive(Debug)]
pub struct Job(OwnedHandle);

impl Job {
    /// Creates a job without processes.
    ///
    /// # Errors
    /// The system refuses.
    pub fn new(limits: JobLimits) -> io::Result<Job> {
        // SAFETY: both pointers may be null: default security, no name.
        let job = Job(owned(unsafe {
            CreateJobObjectW(std::ptr::null(), std::ptr::null())
        })?);
        let mut wanted = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        let basic = &mut wanted.BasicLimitInformation;
        basic.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        if let Some(processes) = limits.processes {
            basic.LimitFlags |= JOB_OBJECT_LIMIT_ACTIVE_PROCESS;
            basic.ActiveProcessLimit = processes;
        }
        if let Some(memory) = limits.memory {
            basic.LimitFlags |= JOB_OBJECT_LIMIT_JOB_MEMORY;
            wanted.JobMemoryLimit = usize::try_from(memory).unwrap_or(usize::MAX);
        }
        let size = u32::try_from(size_of_val(&wanted)).expect("the size of one struct");
        // SAFETY: `wanted` has the type that this information class requires, and `size` is its
        // size.
        checked(unsafe {
            SetInformationJobObject(
                job.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const wanted).cast(),
                size,
            )
        })?;
        Ok(job)
    }

    fn add(&self, process: RawHandle) -> io::Result<()> {
        // SAFETY: both handles are open.
        checked(unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process) })
    }

    /// Adds this process. All processes that it starts later belong to the job, too.
    ///
    /// # Errors
    /// The system refuses.
    pub fn add_this_process(&self) -> io::Result<()> {
        // SAFETY: the call has no arguments.
        self.add(unsafe { GetCurrentProcess() })
    }

    /// Kills all processes of the job.
    pub fn kill(&self) {
        // SAFETY: the handle is open. A job without processes is fine.
        unsafe { TerminateJobObject(self.0.as_raw_handle(), KILLED) };
    }
}

/// Lowers the priority of this thread below normal.
///
/// # Errors
/// The system refuses.
pub fn set_thread_niceness(_niceness: i32) -> io::Result<()> {
    // SAFETY: the handle of the current thread is always valid.
    checked(unsafe { SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_BELOW_NORMAL) })
}

/// Lowers the priority of this thread, as [`set_thread_niceness`] does.
///
/// # Errors
/// The system refuses.
pub fn raise_thread_niceness(by: i32) -> io::Result<()> {
    set_thread_niceness(by)
}

/// Ends this process when its parent process (with id `parent`) ends. Returns whether the parent
/// still runs.
///
/// # Errors
/// The process cannot be opened.
pub fn end_with_parent(parent: i32) -> io::Result<bool> {
    let number = u32::try_from(parent).map_err(|_| io::ErrorKind::InvalidInput)?;
    let Ok(parent) = open(number, PROCESS_SYNCHRONIZE) else {
        return Ok(false);
    };
    let runs = !has_ended(&parent, 0);
    std::thread::spawn(move || {
        if has_ended(&parent, INFINITE) {
            std::process::exit(1);
        }
    });
    Ok(runs)
}

/// Limitation: the resident memory of this process is not available on Windows, so this returns `None`.
pub fn resident_bytes() -> Option<u64> {
    None
}
