//! The directory of a run over many instances. An instance is done when its record exists. Records
//! are written atomically, so an interrupted run can be resumed.
//!
//! ```text
//! run.json                         settings; a run with other settings is refused
//! instances/<id>/attempt-N.json    record of a failed attempt, kept when the instance is run again
//! instances/<id>/trajectory.jsonl  the run's trajectory
//! instances/<id>/result.json       the record, written last
//! predictions.jsonl, report.json   computed from the records after each instance
//! work/                            checkouts of running instances
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::record::{Outcome, Record, Report};
use crate::names::file_name;
use crate::predictions::Prediction;
use starling_core::Dollars;
use starling_platform::files::PathExt;
use starling_workspace::{private_directory, private_file};

/// The settings that all instances of a directory share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub dataset: String,
    pub driver: String,
    /// Model name for predictions.
    pub model: String,
    /// Description of the difference to other samples with the same settings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sample: String,
    /// The program that runs the instances: its version and a hash of its file.
    #[serde(default)]
    pub program: String,
    /// Other settings of the runs by name: arguments, and hashes of files and of the configuration.
    #[serde(default)]
    pub given: BTreeMap<String, String>,
}

impl Settings {
    /// Returns one line for each setting that differs, with the value here and the value in
    /// `other`.
    fn differences(&self, other: &Settings) -> Vec<String> {
        let (ours, theirs) = (self.named(), other.named());
        let names: BTreeSet<&str> = ours.keys().chain(theirs.keys()).copied().collect();
        let value = |of: &BTreeMap<&str, &str>, name| match of.get(name) {
            Some(value) if !value.is_empty() => format!("`{value}`"),
            Some(_) | None => "nothing".to_owned(),
        };
        let differ = names
            .iter()
            .filter(|name| ours.get(*name) != theirs.get(*name));
        differ
            .map(|name| {
                format!(
                    "{name}: {}, not {}",
                    value(&ours, name),
                    value(&theirs, name)
                )
            })
            .collect()
    }

    fn named(&self) -> BTreeMap<&str, &str> {
        let given = self
            .given
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let own = [
            ("data set", self.dataset.as_str()),
            ("driver", &self.driver),
            ("model", &self.model),
            ("sample", &self.sample),
            ("program", &self.program),
        ];
        given.chain(own).collect()
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {} ({}", self.dataset, self.model, self.driver)?;
        match self.sample.as_str() {
            "" => write!(f, ")"),
            sample => write!(f, ", {sample})"),
        }
    }
}

/// Whether records of failed instances are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptRecords {
    Everything,
    /// Failed instances are run again.
    Finished,
}

/// A run's directory that only this process writes to.
#[derive(Debug)]
pub struct RunDirectory {
    root: PathBuf,
    settings: Settings,
    _lock: File,
}

/// Error when a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunDirectoryError {
    #[error("{}: {error}", .path.display())]
    Disk { path: PathBuf, error: io::Error },
    #[error("{}: {error}; remove this file to run the instance again", .path.display())]
    NoRecord {
        path: PathBuf,
        error: serde_json::Error,
    },
    #[error("{} is being written by another run", .0.display())]
    Taken(PathBuf),
    #[error(
        "{} contains a run with other settings, so it cannot be resumed with these settings:\n  {}\nUse the settings of that run, or another directory for --out.",
        .path.display(), .differences.join("\n  ")
    )]
    Other {
        path: PathBuf,
        /// The settings that differ, each with the value in the directory and the requested value.
        differences: Vec<String>,
    },
}

impl RunDirectory {
    /// Opens a directory, which can contain a partial run, and removes the work directory of an
    /// interrupted run.
    ///
    /// # Errors
    /// Fails if the directory cannot be written, if another process writes to it, or if it belongs
    /// to another run.
    pub fn open(
        root: &Path,
        settings: Settings,
        kept: KeptRecords,
    ) -> Result<Self, RunDirectoryError> {
        let disk = |path: &Path| {
            let path = path.to_owned();
            |error| RunDirectoryError::Disk { path, error }
        };
        fs::create_dir_all(root.join("instances")).map_err(disk(root))?;
        let root = root.canonical().map_err(disk(root))?;
        let lock = File::create(root.join("lock")).map_err(disk(&root))?;
        if lock.try_lock().is_err() {
            return Err(RunDirectoryError::Taken(root));
        }
        let work = root.join("work");
        match fs::remove_dir_all(&work) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RunDirectoryError::Disk { path: work, error });
            }
            Ok(()) | Err(_) => {}
        }
        let place = RunDirectory {
            root,
            settings,
            _lock: lock,
        };
        place.same_settings()?;
        if kept == KeptRecords::Finished {
            place.set_failed_aside()?;
        }
        place.write_sums()?;
        Ok(place)
    }

    fn same_settings(&self) -> Result<(), RunDirectoryError> {
        let path = self.root.join("run.json");
        if !path.exists() {
            return self.write(&path, &json(&self.settings));
        }
        let there = settings(&self.root)?;
        let differences = there.differences(&self.settings);
        if differences.is_empty() {
            return Ok(());
        }
        Err(RunDirectoryError::Other {
            path: self.root.clone(),
            differences,
        })
    }

    /// Renames the records of failed instances, so that their cost still counts.
    fn set_failed_aside(&self) -> Result<(), RunDirectoryError> {
        for record in self.records()?.into_values() {
            if let Outcome::Failed { .. } = record.outcome {
                let folder = self.folder(&record.instance_id);
                let count = attempts(&folder)?.len();
                let path = folder.join("result.json");
                let aside = folder.join(format!("attempt-{}.json", count + 1));
                fs::rename(&path, aside)
                    .map_err(|error| RunDirectoryError::Disk { path, error })?;
            }
        }
        Ok(())
    }

    /// Returns the directory for running instances. It is removed at the next start.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    fn folder(&self, instance_id: &str) -> PathBuf {
        instance_directory(&self.root, instance_id)
    }

    /// Returns the records. See [`records`].
    ///
    /// # Errors
    /// Fails if a record cannot be read.
    pub fn records(&self) -> Result<BTreeMap<String, Record>, RunDirectoryError> {
        records(&self.root)
    }

    /// Returns the cost of earlier attempts. See [`earlier`].
    ///
    /// # Errors
    /// Fails if a record cannot be read.
    pub fn earlier(&self) -> Result<BTreeMap<String, Dollars>, RunDirectoryError> {
        earlier(&self.root)
    }

    /// Stores the record of an instance, and moves its trajectory into the directory.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn keep(
        &self,
        record: &Record,
        trajectory: Option<&Path>,
    ) -> Result<(), RunDirectoryError> {
        let folder = self.folder(&record.instance_id);
        private_directory(&folder).map_err(|error| RunDirectoryError::Disk {
            path: folder.clone(),
            error,
        })?;
        if let Some(story) = trajectory
            && let Ok(bytes) = fs::read(story)
        {
            self.write_new(&folder.join("trajectory.jsonl"), &bytes, private_file)?;
            let _ = fs::remove_file(story);
        }
        self.write(&folder.join("result.json"), &json(record))?;
        self.write_sums()
    }

    /// Writes the files that are computed from all records.
    fn write_sums(&self) -> Result<(), RunDirectoryError> {
        let records = self.records()?;
        let mut predictions = Vec::new();
        for record in records.values() {
            let prediction = Prediction {
                instance_id: record.instance_id.clone(),
                model_name_or_path: self.settings.model.clone(),
                model_patch: Some(record.patch().to_owned()),
            };
            serde_json::to_writer(&mut predictions, &prediction)
                .expect("text is written to memory");
            predictions.push(b'\n');
        }
        self.write(&self.root.join("predictions.jsonl"), &predictions)?;
        let report = Report::of(records.values()).with_earlier(self.earlier()?.values());
        self.write(&self.root.join("report.json"), &json(&report))
    }

    /// Writes a file atomically.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), RunDirectoryError> {
        self.write_new(path, bytes, |path| File::create(path))
    }

    /// Writes a file atomically, through a new file that `create` opens.
    fn write_new(
        &self,
        path: &Path,
        bytes: &[u8],
        create: impl Fn(&Path) -> io::Result<File>,
    ) -> Result<(), RunDirectoryError> {
        let beside = path.with_extension("new");
        let written = || {
            let mut file = create(&beside)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&beside, path)
        };
        written().map_err(|error| RunDirectoryError::Disk {
            path: path.to_owned(),
            error,
        })
    }
}

/// Returns the directory of an instance in the directory of a run.
pub fn instance_directory(root: &Path, instance_id: &str) -> PathBuf {
    root.join("instances").join(&*file_name(instance_id))
}

/// Returns the settings with which a directory was created.
///
/// # Errors
/// Fails if the settings cannot be read.
pub fn settings(root: &Path) -> Result<Settings, RunDirectoryError> {
    let path = root.join("run.json");
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| RunDirectoryError::NoRecord { path, error }),
        Err(error) => Err(RunDirectoryError::Disk { path, error }),
    }
}

/// Returns all records of a directory, by instance id.
///
/// # Errors
/// Fails if a record cannot be read.
pub fn records(root: &Path) -> Result<BTreeMap<String, Record>, RunDirectoryError> {
    let folder = root.join("instances");
    let disk = |error| RunDirectoryError::Disk {
        path: folder.clone(),
        error,
    };
    let mut records = BTreeMap::new();
    for entry in fs::read_dir(&folder).map_err(disk)? {
        let path = entry.map_err(disk)?.path().join("result.json");
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(RunDirectoryError::Disk { path, error }),
        };
        let record: Record = serde_json::from_slice(&bytes)
            .map_err(|error| RunDirectoryError::NoRecord { path, error })?;
        records.insert(record.instance_id.clone(), record);
    }
    Ok(records)
}

/// Returns the cost of failed attempts that were run again, by instance id.
///
/// # Errors
/// Fails if a record cannot be read.
pub fn earlier(root: &Path) -> Result<BTreeMap<String, Dollars>, RunDirectoryError> {
    let folder = root.join("instances");
    let disk = |error| RunDirectoryError::Disk {
        path: folder.clone(),
        error,
    };
    let mut earlier: BTreeMap<String, Dollars> = BTreeMap::new();
    for entry in fs::read_dir(&folder).map_err(disk)? {
        for record in attempts(&entry.map_err(disk)?.path())? {
            *earlier.entry(record.instance_id.clone()).or_default() += record.spent().dollars;
        }
    }
    Ok(earlier)
}

/// Returns the records of an instance's earlier attempts.
fn attempts(folder: &Path) -> Result<Vec<Record>, RunDirectoryError> {
    let mut attempts = Vec::new();
    loop {
        let path = folder.join(format!("attempt-{}.json", attempts.len() + 1));
        match fs::read(&path) {
            Ok(bytes) => attempts.push(
                serde_json::from_slice(&bytes)
                    .map_err(|error| RunDirectoryError::NoRecord { path, error })?,
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(attempts),
            // The path is not the directory of an instance.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(attempts),
            Err(error) => return Err(RunDirectoryError::Disk { path, error }),
        }
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).expect("records have text as keys")
}
