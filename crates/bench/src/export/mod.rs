//! Exports trajectories as training data: chat messages with tool calls, one example for each
//! conversation with a model, selected by the grades.

pub(super) mod chat;
mod conversation;
mod preferences;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::run::{Record, RunDirectoryError, Settings, instance_directory, records, settings};
use conversation::Conversation;
use starling_core::Exchange;
use starling_swarm::{Record as Logged, Stamped};

/// Names of splits that are reserved for evaluation.
const MEASURING: [&str; 4] = ["test", "held-out", "heldout", "eval"];

/// The format of an exported training example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A conversation of a resolved instance.
    Sft,
    /// Two conversations with the same beginning, one of a resolved attempt and one of an
    /// unresolved attempt.
    Preferences,
    /// All exchanges of an instance as they were recorded.
    Raw,
}

/// Whether instances that are reserved for evaluation may be exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldOutPolicy {
    Refused,
    Allowed,
}

/// The grades of a run, in the format of `starling swebench grade --json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Graded {
    resolved: BTreeSet<String>,
    #[serde(default)]
    unresolved: Vec<ListedInstance>,
}

/// An entry in a list of instances, of which only the instance id is read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct ListedInstance {
    instance_id: String,
}

/// The directory of a run, and the grades of its predictions.
#[derive(Debug, Clone)]
pub struct RunSource {
    pub root: PathBuf,
    pub graded: Option<Graded>,
}

/// The settings of an export.
#[derive(Debug, Clone)]
pub struct Export {
    pub format: Format,
    pub sources: Vec<RunSource>,
    /// Name of the split, which is part of each line.
    pub split: String,
    /// Ids of instances that are reserved for evaluation.
    pub held_out: BTreeSet<String>,
    pub measuring: HeldOutPolicy,
}

/// The lines of an export, and the numbers of examples and instances that were left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exported {
    pub lines: Vec<Value>,
    /// Number of examples that are equal to an earlier one.
    pub duplicates: usize,
    /// Number of instances whose grade does not match the format.
    pub other_outcomes: usize,
    /// Number of instances without a readable trajectory.
    pub untold: usize,
}

/// Error when nothing can be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Directory(#[from] RunDirectoryError),
    #[error("{}: {error}", .path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{}: {error}; expected the output of `starling swebench grade --json`", .path.display())]
    NoGrades {
        path: PathBuf,
        error: serde_json::Error,
    },
    #[error("{} has no grades: run `starling swebench grade --json` on it, and pass the output with --graded", .0.display())]
    Ungraded(PathBuf),
    #[error(
        "the split {0} is reserved for evaluation: pass --allow-held-out to export it as training data anyway"
    )]
    MeasuringSplit(String),
    #[error(
        "{count} instances are held out for evaluation, for example {first}: leave them out, or pass \
         --allow-held-out to export them as training data anyway"
    )]
    HeldOut { count: usize, first: String },
}

impl Graded {
    /// Reads the grades in a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or contains no grades.
    pub fn read(path: &Path) -> Result<Self, ExportError> {
        let text = fs::read_to_string(path).map_err(|error| ExportError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        serde_json::from_str(&text).map_err(|error| ExportError::NoGrades {
            path: path.to_owned(),
            error,
        })
    }

    fn outcome(&self, id: &str) -> Outcome {
        let named = |named: &ListedInstance| named.instance_id == id;
        if self.resolved.contains(id) {
            Outcome::Resolved
        } else if self.unresolved.iter().any(named) {
            Outcome::Unresolved
        } else {
            Outcome::Ungraded
        }
    }
}

/// The grade of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Resolved,
    Unresolved,
    /// The instance has no grade, or could not be graded.
    Ungraded,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Outcome::Resolved => "resolved",
            Outcome::Unresolved => "unresolved",
            Outcome::Ungraded => "ungraded",
        }
    }
}

/// An instance of a run, with its record, its grade and its model calls.
struct InstanceConversations {
    record: Record,
    settings: Settings,
    outcome: Outcome,
    exchanges: Vec<Exchange>,
}

impl Export {
    /// Returns all lines. The same runs give the same lines.
    ///
    /// # Errors
    /// Fails if a run cannot be read, if it lacks required grades, or if it contains instances that
    /// are reserved for evaluation.
    pub fn lines(&self) -> Result<Exported, ExportError> {
        let mut exported = Exported::default();
        let told = self.told(&mut exported)?;
        self.refuse_measuring(&told)?;
        match self.format {
            Format::Sft => {
                let resolved = told.iter().filter(|one| one.outcome == Outcome::Resolved);
                exported.other_outcomes = told.len() - resolved.clone().count();
                let mut seen = BTreeSet::new();
                for (one, talk) in resolved.flat_map(InstanceConversations::conversations) {
                    let messages = chat::messages(&talk.messages);
                    if !seen.insert(messages.to_string()) {
                        exported.duplicates += 1;
                        continue;
                    }
                    let mut line = self.heading(one);
                    line["outcome"] = one.outcome.word().into();
                    line["model"] = one.settings.model.clone().into();
                    line["conversation"] = talk.name.clone().into();
                    line["role"] = json!(talk.role);
                    line["messages"] = messages;
                    line["tools"] = chat::tools(&talk.tools);
                    exported.lines.push(line);
                }
            }
            Format::Preferences => preferences::pairs(self, &told, &mut exported),
            Format::Raw => exported.lines.extend(told.iter().map(|one| {
                let mut line = self.heading(one);
                line["outcome"] = one.outcome.word().into();
                line["model"] = one.settings.model.clone().into();
                line["patch"] = one.record.patch().into();
                line["exchanges"] = json!(one.exchanges);
                line
            })),
        }
        Ok(exported)
    }

    /// Returns the fields with which every line starts.
    fn heading(&self, one: &InstanceConversations) -> Value {
        json!({
            "instance_id": one.record.instance_id,
            "split": self.split,
            "dataset": one.settings.dataset,
            "driver": one.settings.driver,
        })
    }

    fn told(&self, exported: &mut Exported) -> Result<Vec<InstanceConversations>, ExportError> {
        let mut all = Vec::new();
        for source in &self.sources {
            if source.graded.is_none() && self.format != Format::Raw {
                return Err(ExportError::Ungraded(source.root.clone()));
            }
            let settings = settings(&source.root)?;
            for (id, record) in records(&source.root)? {
                let exchanges = exchanges(&instance_directory(&source.root, &id));
                if exchanges.is_empty() {
                    exported.untold += 1;
                    continue;
                }
                let graded = source.graded.as_ref();
                all.push(InstanceConversations {
                    record,
                    settings: settings.clone(),
                    outcome: graded.map_or(Outcome::Ungraded, |graded| graded.outcome(&id)),
                    exchanges,
                });
            }
        }
        Ok(all)
    }

    fn refuse_measuring(&self, told: &[InstanceConversations]) -> Result<(), ExportError> {
        if self.measuring == HeldOutPolicy::Allowed || self.format == Format::Raw {
            return Ok(());
        }
        if MEASURING.contains(&self.split.to_lowercase().as_str()) {
            return Err(ExportError::MeasuringSplit(self.split.clone()));
        }
        let ids = told.iter().map(|one| &one.record.instance_id);
        let held: BTreeSet<&String> = ids.filter(|id| self.held_out.contains(*id)).collect();
        match held.first() {
            Some(first) => Err(ExportError::HeldOut {
                count: held.len(),
                first: (*first).clone(),
            }),
            None => Ok(()),
        }
    }
}

impl InstanceConversations {
    fn conversations(&self) -> impl Iterator<Item = (&InstanceConversations, Conversation)> {
        let talks = conversation::of(&self.exchanges).into_iter();
        talks.map(move |talk| (self, talk))
    }
}

/// Returns the recorded model calls, or nothing if there is no trajectory.
fn exchanges(folder: &Path) -> Vec<Exchange> {
    let story = fs::read_to_string(folder.join("trajectory.jsonl")).unwrap_or_default();
    let read = |line| match serde_json::from_str(line).ok()? {
        Stamped {
            record: Logged::Exchange(exchange),
            ..
        } => Some(exchange),
        Stamped {
            record: Logged::Event(_),
            ..
        } => None,
    };
    story.lines().filter_map(read).collect()
}

#[cfg(test)]
mod tests;
