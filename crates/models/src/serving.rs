//! Finds the processes on this machine that serve local models (`starling serve`). Each weights
//! file has at most one server. A server holds a lock until it exits, and writes its address to a
//! file next to the lock.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use starling_core::Tokens;
use starling_workspace::{cache_dir, replace_private_file};

/// Number of attempts to take the lock. More than one is needed because a process that looks for
/// servers holds the lock for a moment.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A process that serves a local model.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningServer {
    /// Host and port, such as `127.0.0.1:8765`.
    pub address: String,
    pub process: u32,
    /// The name under which the server offers the model.
    pub model: String,
    /// Path of the weights file.
    pub weights: PathBuf,
    pub window: Tokens,
    /// The API key for [`starling_core::CALL_PATH`].
    pub call_key: String,
}

/// Why a process cannot become the server of a model.
#[derive(Debug, thiserror::Error)]
pub enum ServingError {
    #[error("{}", runs(.0.as_deref()))]
    Runs(Option<String>),
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn runs(address: Option<&str>) -> String {
    match address {
        Some(address) => format!("another process serves this model at http://{address}/v1"),
        None => "another process is starting to serve this model".to_owned(),
    }
}

/// The exclusive right to serve a weights file. Dropping the value releases the lock.
pub struct ServingLock {
    lock: File,
    info: PathBuf,
}

/// Returns the directory that contains the locks, or `None` if there is no cache directory.
pub fn directory() -> Option<PathBuf> {
    Some(cache_dir()?.join("serve"))
}

/// Returns the running server of a weights file, if there is one.
pub fn running(directory: &Path, weights: &Path) -> Option<RunningServer> {
    read(&info_path(directory, weights))
}

/// Returns all running servers on this machine.
pub fn all_running(directory: &Path) -> Vec<RunningServer> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let infos = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let mut found: Vec<_> = infos.filter_map(|path| read(&path)).collect();
    found.sort_by(|a, b| a.address.cmp(&b.address));
    found
}

impl ServingLock {
    /// Takes the lock of a weights file.
    ///
    /// # Errors
    /// Another process holds the lock, or the lock file cannot be written.
    pub fn take(directory: &Path, weights: &Path) -> Result<Self, ServingError> {
        let info = info_path(directory, weights);
        let path = lock_path(&info);
        let failed = |source| ServingError::Io {
            path: path.clone(),
            source,
        };
        fs::create_dir_all(directory).map_err(failed)?;
        let lock = File::create(&path).map_err(failed)?;
        for _ in 0..TRIES {
            match lock.try_lock() {
                Ok(()) => {
                    // A server that was killed leaves its address file behind.
                    let _ = fs::remove_file(&info);
                    return Ok(Self { lock, info });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        let running = read(&info).map(|server| server.address);
        Err(ServingError::Runs(running))
    }

    /// Writes the address of the server, so that other processes find it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn publish(&self, server: &RunningServer) -> Result<(), ServingError> {
        let text = serde_json::to_vec(server).map_err(io::Error::from);
        text.and_then(|text| replace_private_file(&self.info, &text))
            .map_err(|source| ServingError::Io {
                path: self.info.clone(),
                source,
            })
    }
}

impl Drop for ServingLock {
    fn drop(&mut self) {
        // A remaining address file is harmless, because it is ignored unless the lock is held.
        let _ = fs::remove_file(&self.info);
        let _ = self.lock.unlock();
    }
}

/// Reads the address file of a server. Returns `None` if no process holds the server's lock.
fn read(info: &Path) -> Option<RunningServer> {
    let text = fs::read(info).ok()?;
    let lock = File::open(lock_path(info)).ok()?;
    match lock.try_lock_shared() {
        Err(TryLockError::WouldBlock) => serde_json::from_slice(&text).ok(),
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

fn info_path(directory: &Path, weights: &Path) -> PathBuf {
    let real = weights
        .canonicalize()
        .unwrap_or_else(|_| weights.to_owned());
    let hash = Sha256::digest(real.as_os_str().as_encoded_bytes());
    let name: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    directory.join(format!("{name}.json"))
}

fn lock_path(info: &Path) -> PathBuf {
    info.with_extension("lock")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(address: &str, weights: &Path) -> RunningServer {
        RunningServer {
            address: address.to_owned(),
            process: 1,
            model: "tiny".to_owned(),
            weights: weights.to_owned(),
            window: Tokens(512),
            call_key: "key".to_owned(),
        }
    }

    #[test]
    fn server_is_found_as_long_as_it_holds_its_lock() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (Path::new("/one.gguf"), Path::new("/other.gguf"));
        assert!(running(directory.path(), one).is_none());
        let lock = ServingLock::take(directory.path(), one).unwrap();
        assert!(
            running(directory.path(), one).is_none(),
            "it is not published"
        );
        let info = server("127.0.0.1:1", one);
        lock.publish(&info).unwrap();
        assert!(running(directory.path(), one) == Some(info.clone()));
        assert!(running(directory.path(), other).is_none());
        assert!(all_running(directory.path()) == [info]);
        drop(lock);
        assert!(running(directory.path(), one).is_none());
    }

    #[test]
    fn second_server_gets_the_address_of_the_first() {
        let directory = tempfile::tempdir().unwrap();
        let weights = Path::new("/one.gguf");
        let lock = ServingLock::take(directory.path(), weights).unwrap();
        lock.publish(&server("127.0.0.1:7", weights)).unwrap();
        let error = ServingLock::take(directory.path(), weights).err().unwrap();
        assert!(
            error.to_string().contains("http://127.0.0.1:7/v1"),
            "{error}"
        );
        assert!(ServingLock::take(directory.path(), Path::new("/other.gguf")).is_ok());
    }

    #[test]
    fn file_of_a_killed_server_is_ignored_and_removed_by_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let weights = Path::new("/one.gguf");
        let info = info_path(directory.path(), weights);
        let text = serde_json::to_vec(&server("127.0.0.1:7", weights)).unwrap();
        fs::write(&info, text).unwrap();
        fs::write(lock_path(&info), "").unwrap();
        assert!(running(directory.path(), weights).is_none());
        let _lock = ServingLock::take(directory.path(), weights).unwrap();
        assert!(!info.exists());
    }
}
