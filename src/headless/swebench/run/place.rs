//! The folder of a run over many instances. An instance is done when its record is there, and records
//! come whole or not at all: whoever starts again goes on with the rest.
//!
//! ```text
//! run.json                         settings; another run does not write here
//! instances/<id>/trajectory.jsonl  its story
//! instances/<id>/result.json       its record, written last
//! predictions.jsonl, report.json   made of the records, after each
//! work/                            checkouts of instances at work
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::record::{Outcome, Record, Report};
use crate::headless::swebench::predictions::Prediction;

/// What all instances of a place have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub dataset: String,
    pub driver: String,
    /// As predictions name it.
    pub model: String,
    /// What makes it another sample than others of the same, in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sample: String,
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

/// What is made of records that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Everything,
    /// Instances that failed are run again.
    Finished,
}

/// A folder that is being written to by this process alone.
#[derive(Debug)]
pub struct Place {
    root: PathBuf,
    settings: Settings,
    _lock: File,
}

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    #[error("{}: {error}", .path.display())]
    Disk { path: PathBuf, error: io::Error },
    #[error("{}: {error}; remove it to begin this part again", .path.display())]
    NoRecord {
        path: PathBuf,
        error: serde_json::Error,
    },
    #[error("{} is being written by another run", .0.display())]
    Taken(PathBuf),
    #[error(
        "{} holds a run with {there}, not with {wanted}: give another folder as --out",
        .path.display()
    )]
    Other {
        path: PathBuf,
        there: String,
        wanted: String,
    },
}

impl Place {
    /// Takes a folder, which may hold a part of the same run, and removes what a run that was cut short
    /// left at work.
    ///
    /// # Errors
    /// It cannot be written, another process writes it, or it is of another run.
    pub fn open(root: &Path, settings: Settings, kept: Kept) -> Result<Self, PlaceError> {
        let disk = |path: &Path| {
            let path = path.to_owned();
            |error| PlaceError::Disk { path, error }
        };
        fs::create_dir_all(root.join("instances")).map_err(disk(root))?;
        let root = root.canonicalize().map_err(disk(root))?;
        let lock = File::create(root.join("lock")).map_err(disk(&root))?;
        if lock.try_lock().is_err() {
            return Err(PlaceError::Taken(root));
        }
        let work = root.join("work");
        match fs::remove_dir_all(&work) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(PlaceError::Disk { path: work, error });
            }
            Ok(()) | Err(_) => {}
        }
        let place = Place {
            root,
            settings,
            _lock: lock,
        };
        place.same_settings()?;
        if kept == Kept::Finished {
            place.forget_failed()?;
        }
        place.write_sums()?;
        Ok(place)
    }

    fn same_settings(&self) -> Result<(), PlaceError> {
        let path = self.root.join("run.json");
        if !path.exists() {
            return self.write(&path, &json(&self.settings));
        }
        let there = settings(&self.root)?;
        match there == self.settings {
            true => Ok(()),
            false => Err(PlaceError::Other {
                path: self.root.clone(),
                there: there.to_string(),
                wanted: self.settings.to_string(),
            }),
        }
    }

    fn forget_failed(&self) -> Result<(), PlaceError> {
        for record in self.records()?.into_values() {
            if let Outcome::Failed { .. } = record.outcome {
                let path = self.folder(&record.instance_id).join("result.json");
                fs::remove_file(&path).map_err(|error| PlaceError::Disk { path, error })?;
            }
        }
        Ok(())
    }

    /// Where instances are at work: gone at the next start.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    fn folder(&self, instance_id: &str) -> PathBuf {
        self.root.join("instances").join(instance_id)
    }

    /// See [`records`].
    ///
    /// # Errors
    /// A record cannot be read.
    pub fn records(&self) -> Result<BTreeMap<String, Record>, PlaceError> {
        records(&self.root)
    }

    /// Keeps what became of an instance, with the file of its story, which is taken from where it is.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&self, record: &Record, trajectory: Option<&Path>) -> Result<(), PlaceError> {
        let folder = self.folder(&record.instance_id);
        fs::create_dir_all(&folder).map_err(|error| PlaceError::Disk {
            path: folder.clone(),
            error,
        })?;
        if let Some(story) = trajectory
            && let Ok(bytes) = fs::read(story)
        {
            self.write(&folder.join("trajectory.jsonl"), &bytes)?;
            let _ = fs::remove_file(story);
        }
        self.write(&folder.join("result.json"), &json(record))?;
        self.write_sums()
    }

    /// What is made of all records.
    fn write_sums(&self) -> Result<(), PlaceError> {
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
        let report = Report::of(records.values());
        self.write(&self.root.join("report.json"), &json(&report))
    }

    /// Puts a file in place whole.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), PlaceError> {
        let beside = path.with_extension("new");
        let written = || {
            let mut file = File::create(&beside)?;
            file.write_all(bytes)?;
            file.sync_data()?;
            fs::rename(&beside, path)
        };
        written().map_err(|error| PlaceError::Disk {
            path: path.to_owned(),
            error,
        })
    }
}

/// What a folder was made with.
///
/// # Errors
/// It cannot be read.
pub fn settings(root: &Path) -> Result<Settings, PlaceError> {
    let path = root.join("run.json");
    match fs::read(&path) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map_err(|error| PlaceError::NoRecord { path, error })
        }
        Err(error) => Err(PlaceError::Disk { path, error }),
    }
}

/// All records of a folder, by instance.
///
/// # Errors
/// One cannot be read.
pub fn records(root: &Path) -> Result<BTreeMap<String, Record>, PlaceError> {
    let folder = root.join("instances");
    let disk = |error| PlaceError::Disk {
        path: folder.clone(),
        error,
    };
    let mut records = BTreeMap::new();
    for entry in fs::read_dir(&folder).map_err(disk)? {
        let path = entry.map_err(disk)?.path().join("result.json");
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(PlaceError::Disk { path, error }),
        };
        let record: Record =
            serde_json::from_slice(&bytes).map_err(|error| PlaceError::NoRecord { path, error })?;
        records.insert(record.instance_id.clone(), record);
    }
    Ok(records)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).expect("records have text as keys")
}
