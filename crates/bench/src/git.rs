//! The git operations that the benchmark needs, run as commands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::names::{is_plain, is_revision};
use starling_platform::files::PathExt;
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
    #[error("{0:?} is neither the id of a commit nor the name of a reference")]
    NoRevision(String),
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
        let name = repo.replace('/', "__");
        let wanted = self.directory.join(&name);
        let mut bare = wanted.clone().into_os_string();
        bare.push(".git");
        [wanted.clone(), PathBuf::from(bare)]
            .into_iter()
            .find(|path| is_plain(&name) && path.is_dir())
            .ok_or_else(|| GitError::NoRepository {
                repo: repo.to_owned(),
                wanted,
            })
    }

    /// Returns the directories to hide from tests, without links: the directory of all repositories, and
    /// whatever else the history of `repository`, with the known changes as later commits, can be read
    /// from.
    ///
    /// # Errors
    /// Fails if git cannot read the repository.
    pub(super) async fn to_hide(&self, repository: &Path) -> Result<Vec<PathBuf>, GitError> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten();
        let entries = entries.flatten().map(|entry| entry.path());
        let mut found: Vec<PathBuf> = entries.filter(|path| path.is_symlink()).collect();
        found.extend([self.directory.clone(), repository.to_owned()]);
        found.extend(self.elsewhere.values().cloned());
        found.extend(stores(repository).await?);
        let mut found: Vec<PathBuf> = found
            .iter()
            .filter_map(|path| path.canonical().ok())
            .collect();
        found.sort();
        found.dedup_by(|later, earlier| later.starts_with(earlier));
        Ok(found)
    }
}

/// Returns the directories with the data of a repository, which can lie outside of it: its git
/// directory, and the objects that it borrows from others.
async fn stores(repository: &Path) -> Result<Vec<PathBuf>, GitError> {
    let arguments = [
        "rev-parse",
        "--path-format=absolute",
        "--git-common-dir",
        "--git-path",
        "objects",
    ];
    let found = run(&mut git(repository, arguments)?, None).await?;
    let lines = found.split(|byte| *byte == b'\n');
    let lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
    let mut stores: Vec<PathBuf> = lines
        .filter(|line| !line.is_empty())
        .filter_map(|line| Path::new(line).canonical().ok())
        .collect();
    let mut at = 0;
    while let Some(store) = stores.get(at).cloned() {
        at += 1;
        let borrowed = std::fs::read_to_string(store.join("info/alternates")).unwrap_or_default();
        for line in borrowed.lines().filter(|line| !line.starts_with('#')) {
            let other = store.join(line).canonical();
            stores.extend(other.ok().filter(|other| !stores.contains(other)));
        }
        let packs = store.join("pack").canonical();
        stores.extend(packs.ok().filter(|packs| !packs.starts_with(&store)));
    }
    Ok(stores)
}

/// Returns a commit of a data set, or an error if git could read it as an option or as an expression.
fn revision(commit: &str) -> Result<&str, GitError> {
    match is_revision(commit) {
        true => Ok(commit),
        false => Err(GitError::NoRevision(commit.to_owned())),
    }
}

/// Returns a file's content at a commit, or `None` if the file did not exist.
pub(super) async fn file_at(
    repository: &Path,
    commit: &str,
    file: &str,
) -> Result<Option<Vec<u8>>, GitError> {
    let commit = revision(commit)?;
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
    let tree = format!("{}^{{tree}}", revision(commit)?);
    std::fs::create_dir_all(folder).map_err(GitError::Disk)?;
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
    lend_objects(objects, &own_repository(index)).map_err(GitError::Disk)?;
    let is_used = index.exists();
    let read = git(folder, ["read-tree", "--reset", "-u", &tree])?;
    run(&mut checked_out(read, folder, index), None).await?;
    if is_used {
        let clean = git(folder, ["clean", "-ffdxq"])?;
        run(&mut checked_out(clean, folder, index), None).await?;
    }
    Ok(())
}

/// Returns the files of a checkout that were changed, added or removed since [`check_out`], on disk and
/// not according to a diff. A file whose content is as before can be among them.
pub(super) async fn changed(folder: &Path, index: &Path) -> Result<Vec<String>, GitError> {
    let mut names = Vec::new();
    for arguments in [
        ["diff-files", "--name-only", "-z"],
        ["ls-files", "--others", "-z"],
    ] {
        let command = git(folder, arguments)?;
        names.extend(run(&mut checked_out(command, folder, index), None).await?);
    }
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let names = names.map(|name| String::from_utf8(name.to_vec()));
    let names = names.collect::<Result<_, _>>();
    names.map_err(|_| GitError::Failed {
        command: "ls-files".to_owned(),
        message: "the name of a changed file is not UTF-8".to_owned(),
    })
}

/// Returns the repository that belongs to the index of a checkout.
fn own_repository(index: &Path) -> PathBuf {
    index.with_extension("repository")
}

/// Sets up a command for the files of a checkout.
fn checked_out(mut command: Command, folder: &Path, index: &Path) -> Command {
    command
        .env("GIT_DIR", own_repository(index))
        .env("GIT_WORK_TREE", folder)
        .env("GIT_INDEX_FILE", index);
    command
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
