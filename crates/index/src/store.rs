//! The index on disk: a directory in the cache for each workspace, with segments and a manifest
//! that names the current ones. Files are never modified, only replaced by renaming, so readers
//! need no lock. Writers take a lock, and skip writing if another process holds it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::code::{Code, IndexedFile};
use super::segment::{BadSegment, Segment, VERSION};
use starling_syntax::FilePath;
use starling_workspace::{Stamp, private_directory, private_file, replace_private_file};

const MANIFEST: &str = "manifest";
const LOCK: &str = "lock";
/// Name of the file that contains the path of the indexed directory.
const FOLDER: &str = "folder";
const ENDING: &str = "segment";
/// Maximum number of attempts to load the index. Another process can remove a segment between the
/// reading of the manifest and the opening of the segment; in that case a newer manifest exists.
const TRIES: usize = 3;
/// Segments with fewer bytes count as small.
const SMALL: usize = 128 << 10;
/// Maximum number of small segments. If there are more, they are merged into one.
const MOST_SMALL: usize = 12;

/// Error when a stored index cannot be used. The index is then rebuilt.
#[derive(Debug, thiserror::Error)]
enum UnusableIndex {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the manifest is truncated or damaged")]
    Manifest,
    #[error("it was written by another version of Starling")]
    Version,
    #[error("{name}: {error}")]
    Segment { name: String, error: BadSegment },
}

/// The content of the manifest file: the current segments, and the files in them.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    segments: Vec<String>,
    files: Vec<ListedFile>,
}

/// The location of the index data of a file: its segment, and its number in the segment.
#[derive(Debug, Serialize, Deserialize)]
struct ListedFile {
    /// Index in [`Manifest::segments`].
    segment: u32,
    number: u32,
    stamp: Option<Stamp>,
}

/// The location of one workspace's stored index.
#[derive(Debug, Clone)]
pub(super) struct Store {
    directory: PathBuf,
    folder: PathBuf,
}

/// The index that was loaded from a store.
#[derive(Debug, Default)]
pub(super) struct StoredIndex {
    pub(super) code: Code,
    /// Whether a usable stored index was found.
    pub(super) found: bool,
    /// Why an existing index could not be used, written for the user.
    pub(super) trouble: Option<String>,
}

impl Store {
    /// Returns the store of a workspace in the cache directory.
    pub(super) fn new(cache: &Path, root: &Path) -> Self {
        let name = xxhash_rust::xxh3::xxh3_64(root.as_os_str().as_encoded_bytes());
        Store {
            directory: cache.join("index").join(format!("{name:016x}")),
            folder: root.to_owned(),
        }
    }

    /// Loads the index that was stored last.
    pub(super) fn load(&self) -> StoredIndex {
        for _ in 0..TRIES {
            match self.try_load() {
                Ok(code) => {
                    return StoredIndex {
                        found: code.is_some(),
                        code: code.unwrap_or_default(),
                        trouble: None,
                    };
                }
                // Another process wrote a newer manifest and removed the segment.
                Err(UnusableIndex::Segment {
                    error: BadSegment::Io(error),
                    ..
                }) if error.kind() == io::ErrorKind::NotFound => {}
                Err(UnusableIndex::Version) => return StoredIndex::default(),
                Err(error) => {
                    return StoredIndex {
                        trouble: Some(format!(
                            "{}: {error}; the index is rebuilt",
                            self.directory.display()
                        )),
                        ..StoredIndex::default()
                    };
                }
            }
        }
        StoredIndex::default()
    }

    fn try_load(&self) -> Result<Option<Code>, UnusableIndex> {
        let bytes = match fs::read(self.directory.join(MANIFEST)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let manifest = decode(&bytes)?;
        let open = |name: &String| self.open(name);
        let segments: Vec<_> = manifest
            .segments
            .iter()
            .map(open)
            .collect::<Result<_, _>>()?;
        let known = |listed: &ListedFile| {
            let segment = segments.get(listed.segment as usize)?;
            (listed.number < segment.file_count()).then(|| IndexedFile {
                file: FilePath::new(segment.file(listed.number).path),
                segment: segment.clone(),
                number: listed.number,
                stamp: listed.stamp,
            })
        };
        let files: Option<Vec<IndexedFile>> = manifest.files.iter().map(known).collect();
        Ok(Some(Code::of(files.ok_or(UnusableIndex::Manifest)?)))
    }

    fn open(&self, name: &str) -> Result<Arc<Segment>, UnusableIndex> {
        let opened = File::open(self.path_of(name))
            .map_err(BadSegment::from)
            .and_then(|file| Segment::open(&file));
        opened.map(Arc::new).map_err(|error| match error {
            BadSegment::Version => UnusableIndex::Version,
            BadSegment::Io(_) | BadSegment::Cut | BadSegment::Changed => UnusableIndex::Segment {
                name: name.to_owned(),
                error,
            },
        })
    }

    /// Writes a segment to a file and returns the segment mapped from that file, so that it uses no
    /// heap memory. If writing fails, returns the segment unchanged. Until a manifest lists the
    /// file, another process may remove it. In that case [`Store::save`] writes it again.
    pub(super) fn keep(&self, segment: Segment) -> Segment {
        let path = self.path_of(&name_of(&segment));
        let mapped = private_directory(&self.directory)
            .and_then(|()| replace_private_file(&path, segment.bytes()))
            .and_then(|()| segment.mapped(&File::open(&path)?));
        mapped.unwrap_or(segment)
    }

    /// Initializes this store with the stored index of another directory that contains similar
    /// files. Only files with the same content are reused.
    ///
    /// # Errors
    /// Fails if the other store has no usable index, or if this directory cannot be written.
    pub(super) fn begin_as(&self, other: &Store) -> io::Result<()> {
        let bytes = fs::read(other.directory.join(MANIFEST))?;
        let manifest = decode(&bytes).map_err(io::Error::other)?;
        private_directory(&self.directory)?;
        let lock = private_file(&self.directory.join(LOCK))?;
        if lock.try_lock().is_err() {
            return Ok(());
        }
        for segment in &manifest.segments {
            // A segment never changes, so both stores can share the file.
            match fs::hard_link(other.path_of(segment), self.path_of(segment)) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        replace_private_file(&self.directory.join(MANIFEST), &bytes)?;
        replace_private_file(
            &self.directory.join(FOLDER),
            self.folder.as_os_str().as_encoded_bytes(),
        )?;
        self.sweep(&manifest.segments)
    }

    /// Stores the code. Does nothing while another process is storing.
    ///
    /// # Errors
    /// Fails if the directory cannot be written. In that case the previous index stays valid.
    pub(super) fn save(&self, code: &Code) -> io::Result<()> {
        private_directory(&self.directory)?;
        let lock = private_file(&self.directory.join(LOCK))?;
        if lock.try_lock().is_err() {
            return Ok(());
        }
        let mut names = BTreeMap::new();
        let mut segments = Vec::new();
        for segment in code.segments() {
            let name = name_of(segment);
            names.insert(Arc::as_ptr(segment), segments.len() as u32);
            let path = self.path_of(&name);
            // A segment in memory may replace a damaged file of the same name.
            if !segment.is_stored() || !path.exists() {
                replace_private_file(&path, segment.bytes())?;
            }
            segments.push(name);
        }
        let files = code.known().map(|known| ListedFile {
            segment: names[&Arc::as_ptr(&known.segment)],
            number: known.number,
            stamp: known.stamp,
        });
        let manifest = Manifest {
            files: files.collect(),
            segments,
        };
        replace_private_file(&self.directory.join(MANIFEST), &encode(&manifest))?;
        replace_private_file(
            &self.directory.join(FOLDER),
            self.folder.as_os_str().as_encoded_bytes(),
        )?;
        self.sweep(&manifest.segments)?;
        self.sweep_others()
    }

    /// Removes the indexes of directories that no longer exist.
    fn sweep_others(&self) -> io::Result<()> {
        let all = self.directory.parent().map(fs::read_dir).transpose()?;
        for directory in all.into_iter().flatten() {
            let directory = directory?.path();
            let is_gone = fs::read_to_string(directory.join(FOLDER))
                .is_ok_and(|folder| Path::new(&folder).try_exists().is_ok_and(|there| !there));
            if is_gone {
                match fs::remove_dir_all(&directory) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Removes unused segments and temporary files of processes that ended while writing. The
    /// caller must hold the lock.
    fn sweep(&self, segments: &[String]) -> io::Result<()> {
        for entry in fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let used = stem.is_some_and(|stem| segments.iter().any(|name| name == stem));
            let ending = path.extension().and_then(|ending| ending.to_str());
            if ending == Some("new") || (ending == Some(ENDING) && !used) {
                match fs::remove_file(&path) {
                    // Another process may have renamed its temporary file since the directory was
                    // listed.
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
        }
        Ok(())
    }

    fn path_of(&self, segment: &str) -> PathBuf {
        self.directory.join(segment).with_extension(ENDING)
    }
}

/// Returns a predicate that selects the files to parse again because their segment is inefficient:
/// most of the segment's content is outdated, or there are too many small segments and it is one of
/// them.
pub(super) fn worn(code: &Code) -> impl Fn(&IndexedFile) -> bool {
    let mut live: BTreeMap<*const Segment, (u64, bool)> = BTreeMap::new();
    for known in code.known() {
        let entry = live.entry(Arc::as_ptr(&known.segment)).or_default();
        entry.0 += u64::from(known.view().symbols);
    }
    let small = |segment: &&Arc<Segment>| segment.bytes().len() < SMALL;
    let many_small = code.segments().filter(small).count() > MOST_SMALL;
    for segment in code.segments() {
        if let Some((symbols, is_worn)) = live.get_mut(&Arc::as_ptr(segment)) {
            *is_worn =
                (small(&segment) && many_small) || *symbols * 2 < u64::from(segment.symbol_count());
        }
    }
    move |known| {
        let found = live.get(&Arc::as_ptr(&known.segment));
        found.is_some_and(|(_, is_worn)| *is_worn)
    }
}

fn name_of(segment: &Segment) -> String {
    format!("{:016x}", segment.identity())
}

/// Encodes a manifest as version, checksum and content.
fn encode(manifest: &Manifest) -> Vec<u8> {
    let content = postcard::to_stdvec(manifest).expect("a manifest can be serialized");
    let mut bytes = VERSION.to_le_bytes().to_vec();
    bytes.extend(xxhash_rust::xxh3::xxh3_64(&content).to_le_bytes());
    bytes.extend(content);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Manifest, UnusableIndex> {
    let (version, rest) = bytes.split_first_chunk().ok_or(UnusableIndex::Manifest)?;
    if u32::from_le_bytes(*version) != VERSION {
        return Err(UnusableIndex::Version);
    }
    let (checksum, content) = rest.split_first_chunk().ok_or(UnusableIndex::Manifest)?;
    if xxhash_rust::xxh3::xxh3_64(content) != u64::from_le_bytes(*checksum) {
        return Err(UnusableIndex::Manifest);
    }
    postcard::from_bytes(content).map_err(|_| UnusableIndex::Manifest)
}

#[cfg(test)]
mod tests;
