//! The steps of answering a question, reported live and kept with the answer.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// One event while a question is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Symbols were found without a model.
    Located {
        symbols: Vec<LocatedSymbol>,
        millis: u64,
    },
    /// A model read code.
    Looked {
        by: String,
        tool: String,
        argument: String,
        /// The first line of the result.
        outcome: String,
    },
    /// The owner of a symbol is questioned.
    Asked {
        symbol: String,
        question: String,
        why: String,
    },
    Answered {
        symbol: String,
        answer: String,
        source: OwnerAnswerSource,
    },
    /// The reader has enough information and answers.
    Enough { turns: u32 },
    /// A citation was corrected.
    Mended { written: String, now: String },
    /// The model was asked to correct faulty claims.
    SentBack { claims: Vec<String> },
    /// A problem (such as a failed model call) and how it was handled.
    Trouble { who: String, what: String },
    /// A piece of the answer with checked citations.
    Said { text: String },
    /// The last words of the unfinished answer. They are not checked yet and not kept.
    Writing { tail: String },
    /// The answer is written again from its beginning, so the pieces that were shown so far are
    /// invalid.
    Restarted,
}

/// A symbol that may be relevant to the question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocatedSymbol {
    pub symbol: String,
    pub why: String,
}

/// The origin of an owner's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerAnswerSource {
    Model,
    /// The answer to an earlier, equal question.
    Memory,
    /// No answer in time, or no budget for the question.
    Refused,
}

/// A callback that receives every step at once. It must not block.
pub type StepCallback = Box<dyn Fn(&Step) + Send + Sync>;

/// Stores the steps of a question and passes each to the callback.
pub struct StepLog {
    watcher: StepCallback,
    kept: Mutex<Vec<Step>>,
}

impl StepLog {
    pub fn new(watcher: StepCallback) -> Self {
        StepLog {
            watcher,
            kept: Mutex::default(),
        }
    }

    pub fn add(&self, step: Step) {
        (self.watcher)(&step);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(step);
    }

    /// Passes a step to the callback without storing it.
    pub fn live(&self, step: Step) {
        (self.watcher)(&step);
    }

    pub fn kept(&self) -> Vec<Step> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }
}
