//! The git operations that the benchmark needs, run as commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use starling_workspace::{HostPrograms, ProgramError, Variables};

/// Time limit of one command. Checking out a large repository takes seconds, and many times longer
/// on a busy machine.
const DEADLINE: Duration = Duration::from_secs(600);

/// Settings that override those of an untrusted repository, so that git runs no programs that it
/// names and fetches nothing. Checkouts do not read its settings at all.
const SETTINGS: [(&str, &str); 8] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.attributesFile", "/dev/null"),
    ("core.untrackedCache", "false"),
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
    ("gc.auto", "0"),
    // The owner of the repository does not matter, because its settings are not used.
    ("safe.directory", "*"),
];
/// Variables that disable the user's and the system's settings, so that a checkout is the same
/// everywhere.
const VARIABLES: [(&str, &str); 6] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// Error of a git operation.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error(
        "no repository {repo} was found: neither {} nor {}.git exists; pass its path as --repo {repo}=PATH",
        .wanted.display(), .wanted.display()
    )]
    NoRepository { repo: String, wanted: PathBuf },
    #[error("cannot start git: {0}; is git installed?")]
    NotStarted(std::io::Error),
    #[error("cannot start git: {0}")]
    NoGit(#[from] ProgramError),
    #[error("cannot write temporary files: {0}")]
    Disk(std::io::Error),
    #[error("git {command}: {message}")]
    Failed { command: String, message: String },
    #[error("git {command} did not finish within {} s", DEADLINE.as_secs())]
    Late { command: String },
}

/// The locations of a data set's repositories.
#[derive(Debug, Clone, Default)]
pub struct Repositories {
    /// Directory that contains `owner__name` for `owner/name`, bare or not.
    pub directory: PathBuf,
    /// Repositories in other locations, by `owner/name`.
    pub elsewhere: BTreeMap<String, PathBuf>,
}

impl Repositories {
    /// Returns the path of `owner/name`.
    ///
    /// # Errors
    /// Fails if the repository is in neither location.
    pub fn find(&self, repo: &str) -> Result<PathBuf, GitError> {
        if let Some(path) = self.elsewhere.get(repo) {
            return Ok(path.clone());
        }
        let wanted = self.directory.join(repo.replace('/', "__"));
        let mut bare = wanted.clone().into_os_string();
        bare.push(".git");
        [wanted.clone(), PathBuf::from(bare)]
            .into_iter()
            .find(|path| path.is_dir())
            .ok_or_else(|| GitError::NoRepository {
                repo: repo.to_owned(),
                wanted,
            })
    }
}

/// Returns a file's content at a commit, or `None` if the file did not exist.
pub(super) async fn file_at(
    repository: &Path,
    commit: &str,
    file: &str,
) -> Result<Option<Vec<u8>>, GitError> {
    let object = format!("{commit}:{file}");
    let there = run(&mut git(repository, ["cat-file", "-e", &object])?, None).await;
    match there {
        Err(GitError::Failed { .. }) => {
            // A missing commit must be reported as an error, not as a missing file.
            let commit = format!("{commit}^{{commit}}");
            run(&mut git(repository, ["cat-file", "-e", &commit])?, None).await?;
            Ok(None)
        }
        Err(error) => Err(error),
        Ok(_) => run(&mut git(repository, ["cat-file", "blob", &object])?, None)
            .await
            .map(Some),
    }
}

/// Makes the content of a folder equal to a commit, whatever it was before, without history.
/// `index` is the git index of the folder's previous content.
pub(super) async fn check_out(
    repository: &Path,
    commit: &str,
    folder: &Path,
    index: &Path,
) -> Result<(), GitError> {
    std::fs::create_dir_all(folder).map_err(GitError::Disk)?;
    let tree = format!("{commit}^{{tree}}");
    let places = [
        "rev-parse",
        "--path-format=absolute",
        "--git-path",
        "objects",
    ];
    let found = run(git(repository, places)?.arg(&tree), None).await?;
    let mut lines = found.split(|byte| *byte == b'\n');
    let objects = lines.next().unwrap_or_default();
    let tree = String::from_utf8_lossy(lines.next().unwrap_or_default());
    // A separate repository uses the objects of the original but none of its settings, because
    // these could name programs that modify files during checkout.
    let own = index.with_extension("repository");
    lend_objects(objects, &own).map_err(GitError::Disk)?;
    let there = |mut command: Command| {
        command
            .env("GIT_DIR", &own)
            .env("GIT_WORK_TREE", folder)
            .env("GIT_INDEX_FILE", index);
        command
    };
    let is_used = index.exists();
    let read = git(folder, ["read-tree", "--reset", "-u", &tree])?;
    run(&mut there(read), None).await?;
    if is_used {
        let clean = git(folder, ["clean", "-ffdxq"])?;
        run(&mut there(clean), None).await?;
    }
    Ok(())
}

/// Creates an empty repository at `own` that uses the objects at `objects`.
fn lend_objects(objects: &[u8], own: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(own.join("objects/info"))?;
    std::fs::create_dir_all(own.join("refs"))?;
    std::fs::write(own.join("HEAD"), "ref: refs/heads/none\n")?;
    let line = [objects, b"\n"].concat();
    std::fs::write(own.join("objects/info/alternates"), line)
}

/// Applies a diff to the files in a folder that is not a repository.
pub(super) async fn apply(folder: &Path, patch: &str) -> Result<(), GitError> {
    let mut command = git(folder, ["apply", "--whitespace=nowarn", "-"])?;
    // A repository around the folder would make git resolve paths from that repository's root.
    command.env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder));
    run(&mut command, Some(patch.as_bytes())).await.map(drop)
}

/// Returns a git command in a directory, with only the benchmark's and the repository's settings.
fn git<const N: usize>(directory: &Path, arguments: [&str; N]) -> Result<Command, GitError> {
    let directory = std::path::absolute(directory).map_err(GitError::Disk)?;
    let programs = HostPrograms::outside(&directory);
    let program = programs.find("git")?;
    let mut command = Command::from(programs.command(&program, Variables::Clean, &directory));
    command
        .args(arguments)
        .envs(VARIABLES)
        .env("GIT_CONFIG_COUNT", SETTINGS.len().to_string());
    for (at, (key, value)) in SETTINGS.iter().enumerate() {
        command
            .env(format!("GIT_CONFIG_KEY_{at}"), key)
            .env(format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    Ok(command)
}

/// Runs a command and returns its standard output.
async fn run(command: &mut Command, input: Option<&[u8]>) -> Result<Vec<u8>, GitError> {
    let words = command.as_std().get_args();
    let name = words
        .filter_map(|word| word.to_str())
        .collect::<Vec<_>>()
        .join(" ");
    command
        .stdin(if input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let done = async {
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let feed = async {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // A command that does not read all of its input reports its own error.
                let _ = stdin.write_all(input).await;
            }
        };
        tokio::join!(child.wait_with_output(), feed).0
    };
    let output = match tokio::time::timeout(DEADLINE, done).await {
        Err(_) => return Err(GitError::Late { command: name }),
        Ok(done) => done.map_err(GitError::NotStarted)?,
    };
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(GitError::Failed {
        command: name,
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
