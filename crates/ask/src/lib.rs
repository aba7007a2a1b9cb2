//! Answers questions about a code base, with citations that are checked against the code.
//!
//! This crate is read-only by construction: nothing here holds an editor, a proposal or a writable
//! path, and no tool in [`tools`] changes a file.

mod block;
mod call;
mod candidates;
pub mod cite;
mod code;
mod draft;
mod example;
mod explore;
mod material;
mod owner;
pub mod session;
pub mod step;
#[cfg(test)]
mod tests;
mod tools;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use call::Caller;
use cite::{Citation, CitationChecker};
use code::CodeReader;
use explore::Exploration;
use session::Session;
use starling_core::{ChatModel, Dollars, Limits, ModelError, Tokens};
use starling_index::Index;
use starling_swarm::budget::Budget;
use step::{Step, StepCallback, StepLog};

pub use block::DroppedCitation;
pub use explore::ExplorationEnd;

/// Maximum length of a question. A longer question is rejected.
const LONGEST_QUESTION: Tokens = Tokens(4_000);

/// The user's question and its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub text: String,
    pub limits: Limits,
}

/// The models that answer.
#[derive(Clone)]
pub struct Models {
    pub reader: Arc<dyn ChatModel>,
    /// The model of the symbol owners.
    pub owner: Arc<dyn ChatModel>,
}

/// An answer with its steps and costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub question: String,
    pub answer: String,
    pub citations: Vec<Citation>,
    pub steps: Vec<Step>,
    /// Wrong citations that could not be corrected.
    pub dropped: Vec<DroppedCitation>,
    /// Claims about code without a citation; the answer marks them.
    pub uncited: Vec<String>,
    pub ended: ExplorationEnd,
    pub calls: u32,
    pub prompt_tokens: Tokens,
    pub output_tokens: Tokens,
    pub usd: Dollars,
    /// Number of calls to models whose price is unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unpriced_calls: u32,
    pub seconds: f64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Why a question could not be answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AskError {
    #[error("the question is empty: say what you want to know")]
    EmptyQuestion,
    #[error(
        "the question has about {tokens} tokens, but the maximum is {LONGEST_QUESTION}: shorten it"
    )]
    LongQuestion { tokens: Tokens },
    #[error("{}: there is no text file to read: set the project directory with --repo", .0.display())]
    NothingToRead(PathBuf),
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl AskError {
    /// Whether the error is caused by the question or the directory, and not by the model.
    pub fn is_wrong_use(&self) -> bool {
        match self {
            AskError::EmptyQuestion
            | AskError::LongQuestion { .. }
            | AskError::NothingToRead(_) => true,
            AskError::Model(_) => false,
        }
    }
}

/// Answers a question about the code of an index. `session` holds the results of earlier questions;
/// the returned session also holds the results of this one. `watcher` receives each step at once.
///
/// # Errors See [`AskError`]. If the work ends early (budget, time limit, failing model), the
/// function returns the best answer so far, with the reason in [`Answer::ended`].
#[tracing::instrument(name = "question", skip_all, parent = None)]
pub async fn ask(
    query: Query,
    index: Arc<Index>,
    models: Models,
    session: Session,
    watcher: StepCallback,
) -> Result<(Answer, Session), AskError> {
    let question = query.text.trim().to_owned();
    if question.is_empty() {
        return Err(AskError::EmptyQuestion);
    }
    let tokens = Tokens::estimate(&question);
    if tokens > LONGEST_QUESTION {
        return Err(AskError::LongQuestion { tokens });
    }
    let files = index.snapshot().clone();
    if files.files().is_empty() {
        return Err(AskError::NothingToRead(files.root().to_owned()));
    }
    let ledger = Budget::new(query.limits);
    let steps = Arc::new(StepLog::new(watcher));
    let code = CodeReader::new(Arc::clone(&index));
    let material = {
        let (code, question, session) = (code.clone(), question.clone(), session.clone());
        let profile = models.reader.profile().clone();
        // Reading a large code base is slow and would block other tasks.
        tokio::task::spawn_blocking(move || material::gather(&code, &question, &session, &profile))
            .await
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    };
    steps.add(Step::Located {
        symbols: material.located,
        millis: material.millis,
    });
    let checker = CitationChecker::new(files.clone()).with_index(index);
    let caller = Caller {
        ledger: &ledger,
        steps: &steps,
    };
    let exploring = Exploration::new(&code, &checker, &models, &caller, session);
    let (checked, ended) = exploring.run(material.prompt).await?;
    let ended = match ended {
        ExplorationEnd::Answered if checked.text.trim().is_empty() => ExplorationEnd::Unsupported,
        other => other,
    };
    let mut session = exploring.into_session();
    session.answered(&question, &checked.text, &checked.citations, &files);
    let spent = ledger.spent();
    let answer = Answer {
        question,
        answer: checked.text,
        citations: checked.citations,
        steps: steps.kept(),
        dropped: checked.dropped,
        uncited: checked.uncited,
        ended,
        calls: spent.calls,
        prompt_tokens: spent.prompt_tokens,
        output_tokens: spent.output_tokens,
        usd: spent.dollars,
        unpriced_calls: spent.unpriced_calls,
        seconds: spent.seconds,
    };
    Ok((answer, session))
}
