//! Stories of runs as data for training: chat messages with tool calls, one example for each
//! conversation with a model, by what the grader said.

pub(super) mod chat;
mod conversation;
mod preferences;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::run::{PlaceError, Record, Settings, records, settings};
use conversation::Conversation;
use starling_core::Exchange;
use starling_swarm::{Record as Logged, Stamped};

/// Splits of these names are for measuring.
const MEASURING: [&str; 4] = ["test", "held-out", "heldout", "eval"];

/// What an example is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A conversation of a resolved instance.
    Sft,
    /// Two conversations that begin alike, of a resolved instance and of one that is not.
    Preferences,
    /// All exchanges of an instance as they were recorded.
    Raw,
}

/// Whether instances that are kept for measuring may be trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measuring {
    Refused,
    Allowed,
}

/// What a grader said, as `starling swebench grade --json` prints it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Graded {
    resolved: BTreeSet<String>,
    #[serde(default)]
    unresolved: Vec<Named>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Named {
    instance_id: String,
}

/// The folder of a run, and what became of its predictions.
#[derive(Debug, Clone)]
pub struct Source {
    pub root: PathBuf,
    pub graded: Option<Graded>,
}

/// What is exported.
#[derive(Debug, Clone)]
pub struct Export {
    pub format: Format,
    pub sources: Vec<Source>,
    /// Stands in each line.
    pub split: String,
    /// Instances that are kept for measuring.
    pub held_out: BTreeSet<String>,
    pub measuring: Measuring,
}

/// The lines of an export, and what was left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exported {
    pub lines: Vec<Value>,
    /// Said already by another example.
    pub duplicates: usize,
    /// Instances whose grade is not the one that is asked for.
    pub other_outcomes: usize,
    /// Instances without a story that can be read.
    pub untold: usize,
}

/// Why nothing is exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("{}: {error}", .path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{}: {error}; expected what `starling swebench grade --json` prints", .path.display())]
    NoGrades {
        path: PathBuf,
        error: serde_json::Error,
    },
    #[error("{} was not graded: give what `starling swebench grade --json` says of it as --graded", .0.display())]
    Ungraded(PathBuf),
    #[error("the split {0} is for measuring: give --allow-held-out to train on it all the same")]
    MeasuringSplit(String),
    #[error(
        "{count} instances are held out, {first} among them: leave them out, or give --allow-held-out \
         to train on them all the same"
    )]
    HeldOut { count: usize, first: String },
}

impl Graded {
    /// Reads the grades of a file.
    ///
    /// # Errors
    /// It cannot be read, or holds none.
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
        let named = |named: &Named| named.instance_id == id;
        if self.resolved.contains(id) {
            Outcome::Resolved
        } else if self.unresolved.iter().any(named) {
            Outcome::Unresolved
        } else {
            Outcome::Ungraded
        }
    }
}

/// What the grader said of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Resolved,
    Unresolved,
    /// Nothing, or that it could not be graded.
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

/// One instance of one run.
struct Told {
    record: Record,
    settings: Settings,
    outcome: Outcome,
    exchanges: Vec<Exchange>,
}

impl Export {
    /// All lines, the same for the same runs.
    ///
    /// # Errors
    /// A run cannot be read, is not graded where it has to be, or holds what is kept for measuring.
    pub fn lines(&self) -> Result<Exported, ExportError> {
        let mut exported = Exported::default();
        let told = self.told(&mut exported)?;
        self.refuse_measuring(&told)?;
        match self.format {
            Format::Sft => {
                let resolved = told.iter().filter(|one| one.outcome == Outcome::Resolved);
                exported.other_outcomes = told.len() - resolved.clone().count();
                let mut seen = BTreeSet::new();
                for (one, talk) in resolved.flat_map(Told::conversations) {
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

    /// What every line says first.
    fn heading(&self, one: &Told) -> Value {
        json!({
            "instance_id": one.record.instance_id,
            "split": self.split,
            "dataset": one.settings.dataset,
            "driver": one.settings.driver,
        })
    }

    fn told(&self, exported: &mut Exported) -> Result<Vec<Told>, ExportError> {
        let mut all = Vec::new();
        for source in &self.sources {
            if source.graded.is_none() && self.format != Format::Raw {
                return Err(ExportError::Ungraded(source.root.clone()));
            }
            let settings = settings(&source.root)?;
            for (id, record) in records(&source.root)? {
                let exchanges = exchanges(&source.root.join("instances").join(&id));
                if exchanges.is_empty() {
                    exported.untold += 1;
                    continue;
                }
                let graded = source.graded.as_ref();
                all.push(Told {
                    record,
                    settings: settings.clone(),
                    outcome: graded.map_or(Outcome::Ungraded, |graded| graded.outcome(&id)),
                    exchanges,
                });
            }
        }
        Ok(all)
    }

    fn refuse_measuring(&self, told: &[Told]) -> Result<(), ExportError> {
        if self.measuring == Measuring::Allowed || self.format == Format::Raw {
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

impl Told {
    fn conversations(&self) -> impl Iterator<Item = (&Told, Conversation)> {
        let talks = conversation::of(&self.exchanges).into_iter();
        talks.map(move |talk| (self, talk))
    }
}

/// What was said between agents and models; nothing where there is no story.
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
