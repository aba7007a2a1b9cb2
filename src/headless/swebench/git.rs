//! What is needed of git, by its command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// How long one command may take: a checkout of a large repository takes seconds, on a machine with
/// much to do many times that.
const DEADLINE: Duration = Duration::from_secs(600);

/// Why git could not do something.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error(
        "there is no repository {repo}: neither {} nor {}.git; give its place as --repo {repo}=PATH",
        .wanted.display(), .wanted.display()
    )]
    NoRepository { repo: String, wanted: PathBuf },
    #[error("git cannot be started: {0}; is it installed?")]
    NotStarted(std::io::Error),
    #[error("no temporary files can be written: {0}")]
    Disk(std::io::Error),
    #[error("git {command}: {message}")]
    Failed { command: String, message: String },
    #[error("git {command} took over {} s", DEADLINE.as_secs())]
    Late { command: String },
}

/// Where the repositories of a data set lie.
#[derive(Debug, Clone, Default)]
pub struct Repositories {
    /// Holds `owner__name` for `owner/name`, bare or not.
    pub directory: PathBuf,
    /// Repositories that lie elsewhere, by `owner/name`.
    pub elsewhere: BTreeMap<String, PathBuf>,
}

impl Repositories {
    /// The place of `owner/name`.
    ///
    /// # Errors
    /// It is in neither.
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

/// A file as it was at a commit; `None`: it was not there.
pub(super) async fn file_at(
    repository: &Path,
    commit: &str,
    file: &str,
) -> Result<Option<Vec<u8>>, GitError> {
    let object = format!("{commit}:{file}");
    let there = run(&mut git(repository, ["cat-file", "-e", &object]), None).await;
    match there {
        Err(GitError::Failed { .. }) => {
            // A commit that is not there is an error of its own.
            let commit = format!("{commit}^{{commit}}");
            run(&mut git(repository, ["cat-file", "-e", &commit]), None).await?;
            Ok(None)
        }
        Err(error) => Err(error),
        Ok(_) => run(&mut git(repository, ["cat-file", "blob", &object]), None)
            .await
            .map(Some),
    }
}

/// Writes the files of a commit into a folder of their own, without any history.
pub(super) async fn check_out(
    repository: &Path,
    commit: &str,
    folder: &Path,
) -> Result<(), GitError> {
    std::fs::create_dir_all(folder).map_err(GitError::Disk)?;
    // Beside the folder: the repository's own index stays as it is.
    let index = folder.with_extension("index");
    let mut read = git(repository, ["read-tree", commit]);
    run(read.env("GIT_INDEX_FILE", &index), None).await?;
    let mut prefix = std::ffi::OsString::from("--prefix=");
    prefix.push(folder);
    prefix.push("/");
    let mut write = git(repository, ["checkout-index", "--all", "--force"]);
    // A bare repository has no work tree of its own; nothing is written to this one.
    write
        .arg(prefix)
        .env("GIT_INDEX_FILE", &index)
        .env("GIT_WORK_TREE", folder);
    let written = run(&mut write, None).await;
    std::fs::remove_file(&index).map_err(GitError::Disk)?;
    written.map(drop)
}

/// Applies a diff to the files below a folder that is no repository.
pub(super) async fn apply(folder: &Path, patch: &str) -> Result<(), GitError> {
    let mut command = Command::new("git");
    command
        .args(["apply", "--whitespace=nowarn", "-"])
        .current_dir(folder)
        // A repository around the folder would make git look for the files at its root.
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder));
    run(&mut command, Some(patch.as_bytes())).await.map(drop)
}

fn git<const N: usize>(repository: &Path, arguments: [&str; N]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).args(arguments);
    command
}

/// What a command writes to its standard output.
async fn run(command: &mut Command, input: Option<&[u8]>) -> Result<Vec<u8>, GitError> {
    let words = command.as_std().get_args().skip_while(|word| *word == "-C");
    let name = words
        .filter_map(|word| word.to_str())
        .collect::<Vec<_>>()
        .join(" ");
    command
        .env_remove("GIT_DIR")
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
                // Who does not read to the end says why on its own.
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
