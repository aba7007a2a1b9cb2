//! What is needed of git, by its command.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// How long one command may take: a checkout of a large repository takes seconds, on a machine with
/// much to do many times that.
const DEADLINE: Duration = Duration::from_secs(600);

/// What a repository may be set to for its own work tree, and a checkout must not be.
const SETTINGS: [(&str, &str); 5] = [
    ("core.sparseCheckout", "false"),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.hooksPath", "/dev/null"),
    ("submodule.recurse", "false"),
];

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

/// Makes the files of a folder those of a commit, whatever they were before, without any history. `index`
/// says what the folder held at the last time.
pub(super) async fn check_out(
    repository: &Path,
    commit: &str,
    folder: &Path,
    index: &Path,
) -> Result<(), GitError> {
    std::fs::create_dir_all(folder).map_err(GitError::Disk)?;
    let mut place = git(repository, ["rev-parse", "--absolute-git-dir"]);
    let place = run(&mut place, None).await?;
    let place = PathBuf::from(OsStr::from_bytes(place.trim_ascii_end()));
    // The repository's own index, work tree and settings for it are of no matter.
    let there = |mut command: Command| {
        command
            .env("GIT_DIR", &place)
            .env("GIT_WORK_TREE", folder)
            .env("GIT_INDEX_FILE", index)
            .env("GIT_CONFIG_COUNT", SETTINGS.len().to_string());
        for (at, (key, value)) in SETTINGS.iter().enumerate() {
            command
                .env(format!("GIT_CONFIG_KEY_{at}"), key)
                .env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command
    };
    let is_used = index.exists();
    let read = git(folder, ["read-tree", "--reset", "-u", commit]);
    run(&mut there(read), None).await?;
    if is_used {
        let clean = git(folder, ["clean", "-ffdxq"]);
        run(&mut there(clean), None).await?;
    }
    Ok(())
}

/// Applies a diff to the files below a folder that is no repository.
pub(super) async fn apply(folder: &Path, patch: &str) -> Result<(), GitError> {
    let mut command = Command::new("git");
    command
        .args(["apply", "--whitespace=nowarn", "-"])
        .current_dir(folder)
        .env_remove("GIT_DIR")
        // A repository around the folder would make git look for the files at its root.
        .env("GIT_CEILING_DIRECTORIES", folder.parent().unwrap_or(folder));
    run(&mut command, Some(patch.as_bytes())).await.map(drop)
}

fn git<const N: usize>(repository: &Path, arguments: [&str; N]) -> Command {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(repository)
        .args(arguments)
        .env_remove("GIT_DIR");
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
