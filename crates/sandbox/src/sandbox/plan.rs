//! What a sandbox is to be, and what is said of it at the end: lines of one file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use starling_syntax::FilePath;

/// The file of the plan in a scratch directory.
const FILE: &str = "plan";

/// What keeps a command in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Confinement {
    /// Namespaces of our own.
    Namespaces,
    /// The program `bwrap`, where it may open namespaces and we may not.
    Bubblewrap,
    /// Nothing but limits, because the user allowed it.
    Nothing,
}

/// What a command may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Bytes of memory of all its processes and temporary files.
    pub memory: u64,
    /// Processes and threads at a time.
    pub processes: u32,
    /// Bytes that it may print before it is stopped.
    pub output: u64,
    /// Bytes of one file.
    pub file: u64,
    /// Bytes of all files that it leaves in the shadow.
    pub disk: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            memory: 4 << 30,
            processes: 1024,
            output: 64 << 20,
            file: 2 << 30,
            disk: 4 << 30,
        }
    }
}

impl Bounds {
    /// The limit that the system keeps: above the one that is watched for, so that it is seen.
    pub(super) fn ceiling_of_processes(self) -> u32 {
        self.processes.saturating_mul(2).saturating_add(LEAST)
    }
}

/// The least ceiling of processes that a namespace takes.
const LEAST: u32 = 301;

/// The tree that a command works in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Tree {
    /// An overlay over `root`; each text stands in a file of the scratch directory, `None` means gone.
    Overlay {
        root: PathBuf,
        texts: Vec<(FilePath, Option<PathBuf>)>,
    },
    /// A copy, ready made.
    Copy { root: PathBuf },
}

impl Tree {
    pub(super) fn root(&self) -> &Path {
        match self {
            Tree::Overlay { root, .. } | Tree::Copy { root } => root,
        }
    }
}

/// All that the keeper and the init need to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub confinement: Confinement,
    pub tree: Tree,
    /// Run by a shell.
    pub line: String,
    pub bounds: Bounds,
    pub scratch: PathBuf,
    /// The user's own home, which the command does not see.
    pub home: Option<PathBuf>,
    /// Directories that stay readable although they lie in hidden places.
    pub keep: Vec<PathBuf>,
    /// Files and directories that are hidden besides homes: what only an administrator may read.
    pub private: Vec<PathBuf>,
    /// Files and directories of Starling's own that are hidden wherever they lie, also in the tree and
    /// in what is kept: trajectories, caches, results.
    pub records: Vec<PathBuf>,
    pub user: u32,
    pub group: u32,
}

/// What an init saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The sandbox could not be made.
    Refused(String),
    Exited(i32),
    OutOfMemory,
    TooManyProcesses,
    WroteTooMuch,
}

pub(crate) fn write_plan(plan: &Plan) -> io::Result<()> {
    let mut file = File::create_new(plan.scratch.join(FILE))?;
    write_line(&mut file, plan)
}

/// The file of the plan in `scratch`, to be read from its beginning and written at its end.
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

/// The first report in the file of the plan; none when nobody came to write one.
pub(crate) fn report_in(scratch: &Path) -> Option<Report> {
    let text = std::fs::read_to_string(scratch.join(FILE)).ok()?;
    serde_json::from_str(text.lines().nth(1)?).ok()
}

fn write_line(file: &mut File, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}
