//! Answers and findings kept for follow-up questions. An entry is discarded when the text of a file
//! it depends on changes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cite::Citation;
use starling_syntax::{FilePath, SymbolPath};
use starling_text::ContentHash;
use starling_workspace::Snapshot;

/// The version of the session format. Other versions are rejected.
const VERSION: u32 = 1;
const TURNS: usize = 6;
const FINDINGS: usize = 40;

/// The earlier questions and answers about one code base, for follow-up questions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    version: u32,
    /// The directory of the code base.
    root: String,
    turns: Vec<AnsweredQuestion>,
    findings: Vec<OwnerFinding>,
}

/// A question of the user and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnsweredQuestion {
    pub question: String,
    pub answer: String,
    /// Symbols that the answer cites.
    pub symbols: Vec<SymbolPath>,
    files: FileHashes,
}

/// An owner's answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnerFinding {
    pub symbol: SymbolPath,
    pub question: String,
    pub answer: String,
    files: FileHashes,
}

/// The files on which an earlier answer depends, each with the hash of its text at that time.
type FileHashes = BTreeMap<FilePath, ContentHash>;

/// Why a session cannot be resumed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    #[error(
        "the session has the format version {found}, but this version of Starling reads {VERSION}; start a new session"
    )]
    Version { found: u32 },
    #[error("the session belongs to {of}, not to {here}; start a new session")]
    OtherFolder { of: String, here: String },
}

impl Session {
    /// Creates an empty session.
    pub fn new(files: &Snapshot) -> Self {
        Session {
            version: VERSION,
            root: files.root().to_string_lossy().into_owned(),
            turns: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Resumes a session with the current files.
    ///
    /// # Errors
    /// The session has another version or belongs to another directory.
    pub fn resumed(mut self, files: &Snapshot) -> Result<Self, SessionError> {
        if self.version != VERSION {
            return Err(SessionError::Version {
                found: self.version,
            });
        }
        let here = files.root().to_string_lossy().into_owned();
        if self.root != here {
            return Err(SessionError::OtherFolder {
                of: self.root,
                here,
            });
        }
        self.turns.retain(|turn| still_so(&turn.files, files));
        self.findings
            .retain(|finding| still_so(&finding.files, files));
        Ok(self)
    }

    /// Returns earlier questions with their answers, oldest first.
    pub fn turns(&self) -> &[AnsweredQuestion] {
        &self.turns
    }

    pub fn findings(&self) -> &[OwnerFinding] {
        &self.findings
    }

    /// Returns the owner's earlier answer to the same question.
    pub fn known(&self, symbol: &SymbolPath, question: &str) -> Option<&str> {
        let question = normal(question);
        self.findings
            .iter()
            .find(|finding| finding.symbol == *symbol && normal(&finding.question) == question)
            .map(|finding| finding.answer.as_str())
    }

    pub fn learn(
        &mut self,
        symbol: SymbolPath,
        question: &str,
        answer: &str,
        cited: &[Citation],
        files: &Snapshot,
    ) {
        let paths = cited.iter().map(|citation| FilePath::new(&citation.path));
        let seen = hashes(paths.chain([symbol.file.clone()]), files);
        self.findings.push(OwnerFinding {
            symbol,
            question: question.to_owned(),
            answer: answer.to_owned(),
            files: seen,
        });
        let most = self.findings.len().saturating_sub(FINDINGS);
        self.findings.drain(..most);
    }

    pub fn answered(&mut self, question: &str, answer: &str, cited: &[Citation], files: &Snapshot) {
        let paths = cited.iter().map(|citation| FilePath::new(&citation.path));
        let mut symbols: Vec<SymbolPath> = Vec::new();
        for citation in cited {
            let symbol = SymbolPath::new(FilePath::new(&citation.path), citation.symbol.clone());
            if !symbols.contains(&symbol) {
                symbols.push(symbol);
            }
        }
        self.turns.push(AnsweredQuestion {
            question: question.to_owned(),
            answer: answer.to_owned(),
            symbols,
            files: hashes(paths, files),
        });
        let most = self.turns.len().saturating_sub(TURNS);
        self.turns.drain(..most);
    }
}

fn normal(question: &str) -> String {
    let words: Vec<&str> = question.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

fn hashes(paths: impl Iterator<Item = FilePath>, files: &Snapshot) -> FileHashes {
    let hash = |path: FilePath| {
        let text = files.read(&path).ok()?;
        Some((path, ContentHash::of(&text)))
    };
    paths.filter_map(hash).collect()
}

fn still_so(seen: &FileHashes, files: &Snapshot) -> bool {
    seen.iter().all(|(path, hash)| {
        files
            .read(path)
            .is_ok_and(|text| ContentHash::of(&text) == *hash)
    })
}
