//! Checkouts of base commits, without history. A checkout that an instance no longer needs is
//! reused for the next commit of its repository; only files that differ are written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::git::{self, GitError};
use starling_sandbox::Scratch;

/// Maximum number of idle checkouts to keep.
const MOST_IDLE: usize = 16;

/// A pool of checkouts in one directory. Each checkout is used by one run at a time.
#[derive(Debug, Clone)]
pub struct Checkouts(Arc<CheckoutPool>);

/// A pool of checkouts, shared by all its handles.
#[derive(Debug)]
struct CheckoutPool {
    folder: PathBuf,
    lent: Mutex<PoolState>,
    /// Removes the temporary folder after the checkouts.
    _scratch: Option<Scratch>,
}

/// The checkouts of a pool: how many were created, and which are idle.
#[derive(Debug, Default)]
struct PoolState {
    made: usize,
    /// Idle checkouts. The last entry is the most recently used one.
    idle: Vec<IdleCheckout>,
}

/// A checkout that is not in use and can be reused for another commit of its repository.
#[derive(Debug)]
struct IdleCheckout {
    repository: PathBuf,
    folder: PathBuf,
}

/// The files of one commit, for the use of one run. If the run drops it without calling
/// [`Checkout::done`], a process may still be using it, so it is removed instead of reused.
#[derive(Debug)]
pub struct Checkout {
    checkouts: Arc<CheckoutPool>,
    repository: PathBuf,
    folder: PathBuf,
    is_done: bool,
}

impl Checkouts {
    /// Keeps checkouts in `folder`, which must contain nothing else. The folder is removed when the last
    /// user of the pool drops it.
    pub fn below(folder: PathBuf) -> Self {
        Checkouts(Arc::new(CheckoutPool {
            folder,
            lent: Mutex::default(),
            _scratch: None,
        }))
    }

    /// Keeps checkouts in a temporary folder.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    pub fn temporary() -> io::Result<Self> {
        let scratch = Scratch::temporary()?;
        Ok(Checkouts(Arc::new(CheckoutPool {
            folder: scratch.path().join("checkouts"),
            lent: Mutex::default(),
            _scratch: Some(scratch),
        })))
    }

    /// Checks out the files of a commit, independent of the previous use of the checkout.
    ///
    /// # Errors
    /// Fails if git cannot read the commit, or if the files cannot be written.
    pub(super) async fn take(&self, repository: &Path, commit: &str) -> Result<Checkout, GitError> {
        let used = self.0.lent().idle_of(repository);
        if let Some(used) = used {
            let checkout = self.checkout(repository, used);
            // A checkout that cannot be reused is removed, and a new one is made.
            if checkout.turn_into(commit).await.is_ok() {
                return Ok(checkout);
            }
        }
        let folder = {
            let mut lent = self.0.lent();
            lent.made += 1;
            self.0.folder.join(lent.made.to_string())
        };
        let checkout = self.checkout(repository, folder);
        checkout.turn_into(commit).await?;
        Ok(checkout)
    }

    fn checkout(&self, repository: &Path, folder: PathBuf) -> Checkout {
        Checkout {
            checkouts: Arc::clone(&self.0),
            repository: repository.to_owned(),
            folder,
            is_done: false,
        }
    }
}

impl CheckoutPool {
    fn lent(&self) -> MutexGuard<'_, PoolState> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CheckoutPool {
    fn drop(&mut self) {
        // If removal fails, the rest is removed at the next use of the folder.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl PoolState {
    fn idle_of(&mut self, repository: &Path) -> Option<PathBuf> {
        let at = self
            .idle
            .iter()
            .rposition(|idle| idle.repository == repository)?;
        Some(self.idle.remove(at).folder)
    }
}

impl Checkout {
    /// Returns the directory of the files.
    pub fn path(&self) -> PathBuf {
        self.folder.join("checkout")
    }

    /// Returns the path of a file beside the checkout that belongs to this use.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the checkout for reuse. No process may be using it any more.
    pub fn done(mut self) {
        self.is_done = true;
    }

    /// Returns the files that were changed, added or removed since the checkout was taken.
    pub(super) async fn changed(&self) -> Result<Vec<String>, GitError> {
        git::changed(&self.path(), &self.beside("index")).await
    }

    async fn turn_into(&self, commit: &str) -> Result<(), GitError> {
        let index = self.beside("index");
        git::check_out(&self.repository, commit, &self.path(), &index).await
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let folder = std::mem::take(&mut self.folder);
        let too_many = {
            let mut lent = self.checkouts.lent();
            if self.is_done {
                let repository = std::mem::take(&mut self.repository);
                lent.idle.push(IdleCheckout { repository, folder });
                (lent.idle.len() > MOST_IDLE).then(|| lent.idle.remove(0).folder)
            } else {
                Some(folder)
            }
        };
        if let Some(folder) = too_many {
            // If removal fails, the rest is removed together with the folder of all checkouts.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::git;
    use super::*;

    /// Creates a repository with two commits, and returns its path and the commits.
    fn repository(root: &Path) -> (PathBuf, [String; 2]) {
        let place = root.join("repository");
        fs::create_dir_all(place.join("gone")).unwrap();
        fs::write(place.join("gone/a.py"), "a\n").unwrap();
        fs::write(place.join("same.py"), "same\n").unwrap();
        fs::write(place.join("kind"), "a file\n").unwrap();
        fs::write(place.join(".gitignore"), "*.pyc\n").unwrap();
        git(&place, &["init", "-q"]);
        git(&place, &["add", "-A"]);
        git(&place, &["commit", "-q", "-m", "one"]);
        let one = git(&place, &["rev-parse", "HEAD"]);
        git(&place, &["rm", "-q", "-r", "gone", "kind"]);
        fs::create_dir(place.join("kind")).unwrap();
        fs::write(place.join("kind/b.py"), "b\n").unwrap();
        git(&place, &["add", "-A"]);
        git(&place, &["commit", "-q", "-m", "two"]);
        let two = git(&place, &["rev-parse", "HEAD"]);
        (place, [one, two])
    }

    fn files(folder: &Path) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => found.extend(files(&path)),
                false => {
                    let name = path.file_name().unwrap().to_string_lossy().into_owned();
                    found.push((name, fs::read_to_string(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }

    #[tokio::test]
    async fn checkout_is_reset_completely_after_changes_of_an_earlier_run() {
        let dir = tempfile::tempdir().unwrap();
        let (repository, [one, two]) = repository(dir.path());
        // The configuration of the repository's own work tree must have no effect.
        git(&repository, &["config", "core.sparseCheckout", "true"]);
        fs::create_dir_all(repository.join(".git/info")).unwrap();
        fs::write(repository.join(".git/info/sparse-checkout"), "/same.py\n").unwrap();
        let mine = files(&repository.join("kind"));
        let fresh = |commit: String, name: &'static str| {
            let checkouts = Checkouts::below(dir.path().join(name));
            let repository = repository.clone();
            async move { files(&checkouts.take(&repository, &commit).await.unwrap().path()) }
        };
        let (first, second) = (fresh(one.clone(), "1").await, fresh(two.clone(), "2").await);
        assert_eq!(first.len(), 4);
        assert_eq!(second.len(), 3);

        let checkouts = Checkouts::below(dir.path().join("work"));
        let checkout = checkouts.take(&repository, &one).await.unwrap();
        let place = checkout.path();
        assert_eq!(files(&place), first);
        // The text keeps its length and is written within the same second, so only its timestamps
        // differ.
        fs::write(place.join("same.py"), "SAME\n").unwrap();
        fs::write(place.join("new.py"), "").unwrap();
        fs::write(place.join("ignored.pyc"), "").unwrap();
        fs::create_dir_all(place.join("nested")).unwrap();
        git(&place.join("nested"), &["init", "-q"]);
        fs::remove_file(place.join("gone/a.py")).unwrap();
        checkout.done();
        let checkout = checkouts.take(&repository, &two).await.unwrap();
        assert_eq!(checkout.path(), place, "it was not used again");
        assert_eq!(files(&place), second);
        assert!(!place.join("nested").exists() && !place.join("gone").exists());
        checkout.done();
        let checkout = checkouts.take(&repository, &one).await.unwrap();
        assert_eq!(files(&checkout.path()), first);
        // The repository itself is unchanged.
        assert_eq!(files(&repository.join("kind")), mine);
        assert_eq!(git(&repository, &["status", "--porcelain"]), "");
    }

    #[tokio::test]
    async fn checkout_runs_no_hooks_or_filters_of_the_repository() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (repository, [one, two]) = repository(dir.path());
        let ran = dir.path().join("ran");
        let program = repository.join(".git/hooks/post-checkout");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        let script = format!("#!/bin/sh\necho ran >> {}\ncat\n", ran.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let program = program.to_str().unwrap();
        for key in ["filter.x.smudge", "filter.x.clean", "core.fsmonitor"] {
            git(&repository, &["config", key, program]);
        }
        let attributes = repository.join(".git/info/attributes");
        fs::create_dir_all(attributes.parent().unwrap()).unwrap();
        fs::write(attributes, "* filter=x\n").unwrap();
        fs::write(repository.join(".gitattributes"), "* filter=x\n").unwrap();
        let checkouts = Checkouts::below(dir.path().join("work"));
        for commit in [&one, &two, &one] {
            checkouts.take(&repository, commit).await.unwrap().done();
        }
        assert!(!ran.exists(), "a program of the repository ran");
    }

    #[tokio::test]
    async fn checkout_is_reused_only_after_its_user_is_done_and_deleted_if_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let (repository, [one, _]) = repository(dir.path());
        let checkouts = Checkouts::below(dir.path().join("work"));
        let first = checkouts.take(&repository, &one).await.unwrap();
        let second = checkouts.take(&repository, &one).await.unwrap();
        let places = [first.path(), second.path()];
        assert_ne!(places[0], places[1]);
        drop(first);
        assert!(!places[0].exists());
        second.done();
        assert!(places[1].exists());
        let third = checkouts.take(&repository, &one).await.unwrap();
        assert_eq!(third.path(), places[1]);
        third.done();
        let unknown = checkouts.take(&repository, &"0".repeat(40)).await;
        assert!(matches!(unknown, Err(GitError::Failed { .. })));
        drop(checkouts);
        assert!(!dir.path().join("work").exists());
    }
}
