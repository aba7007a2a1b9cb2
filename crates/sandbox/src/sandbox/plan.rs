//! The plan of a sandbox (how to run the command) and the report (how it ended), as lines of one
//! file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use starling_syntax::FilePath;

/// Name of the plan's file in a scratch directory.
const FILE: &str = "plan";

/// The mechanism that confines a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confinement {
    /// Namespaces that Starling creates.
    Namespaces,
    /// The program `bwrap`, on systems where `bwrap` may create namespaces and Starling may not.
    Bubblewrap,
    /// The program `sandbox-exec` of macOS.
    SandboxExec,
    /// Nothing except resource limits. Used if no sandbox can be created and the user allows that.
    Nothing,
}

/// Resource limits of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Memory of all processes and temporary files, in bytes.
    pub memory: u64,
    /// Number of processes and threads at the same time.
    pub processes: u32,
    /// Output, in bytes. A command that prints more is stopped.
    pub output: u64,
    /// Size of one file, in bytes.
    pub file: u64,
    /// Size of all files that the command leaves in the shadow, in bytes.
    pub disk: u64,
    /// Free space that must be left on the disk of the shadow, in bytes.
    pub free: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            memory: 4 << 30,
            processes: 1024,
            output: 64 << 20,
            file: 2 << 30,
            disk: 4 << 30,
            free: 1 << 20,
        }
    }
}

/// The directory tree in which a command works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Tree {
    /// An overlay over `root`. The contents of each file are staged in the scratch directory; `None`
    /// means that the file is deleted.
    Overlay {
        root: PathBuf,
        staged: Vec<(FilePath, Option<PathBuf>)>,
    },
    /// A complete copy.
    Copy { root: PathBuf },
}

impl Tree {
    pub(super) fn root(&self) -> &Path {
        match self {
            Tree::Overlay { root, .. } | Tree::Copy { root } => root,
        }
    }
}

/// How to run one command in a sandbox. The processes of the sandbox (the keeper, which supervises it,
/// and the init inside it) read this from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub confinement: Confinement,
    pub tree: Tree,
    /// The command line, run by a shell.
    pub line: String,
    pub bounds: Bounds,
    pub scratch: PathBuf,
    /// The user's home directory, which is hidden from the command.
    pub home: Option<PathBuf>,
    /// Directories that stay readable although they are inside hidden directories.
    pub keep: Vec<PathBuf>,
    /// Files and directories that are hidden in addition to home directories, because only root may
    /// read them.
    pub private: Vec<PathBuf>,
    /// Starling's own files and directories: trajectories, caches and results. They are hidden at
    /// any location, even inside the tree and in directories that stay readable.
    pub records: Vec<PathBuf>,
    pub user: u32,
    pub group: u32,
}

/// The result of a command, as the first process (init) of its sandbox reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The sandbox could not be created.
    Refused(String),
    Exited(i32),
    OutOfMemory,
    TooManyProcesses,
    WroteTooMuch,
    /// The disk of the shadow is full.
    DiskFull,
}

pub(crate) fn write_plan(plan: &Plan) -> io::Result<()> {
    let mut file = File::create_new(plan.scratch.join(FILE))?;
    write_line(&mut file, plan)
}

/// Opens the plan's file in `scratch`, for reading from its beginning and appending to its end.
pub(super) fn open_plan(scratch: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .append(true)
        .open(scratch.join(FILE))
}

pub(super) fn read_plan(file: &File) -> io::Result<Plan> {
    let mut line = String::new();
    BufReader::new(file).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

pub(super) fn write_report(file: &mut File, report: &Report) -> io::Result<()> {
    write_line(file, report)
}

/// Returns the first report in the plan's file, or `None` if no process wrote one.
pub(crate) fn report_in(scratch: &Path) -> Option<Report> {
    let text = std::fs::read_to_string(scratch.join(FILE)).ok()?;
    serde_json::from_str(text.lines().nth(1)?).ok()
}

fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}
