//! Steps: what happens while a question is answered, to be watched and to be kept.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum Step {
    /// Found without a model.
    Located { symbols: Vec<Found>, millis: u64 },
    /// A look into the code.
    Looked {
        by: String,
        tool: String,
        argument: String,
        /// The first line of what was found.
        outcome: String,
    },
    /// The owner of a symbol is asked.
    Asked {
        symbol: String,
        question: String,
        why: String,
    },
    Answered {
        symbol: String,
        answer: String,
        source: Source,
    },
    /// Enough is known to answer.
    Enough { turns: u32 },
    /// A citation was a little off.
    Mended { written: String, now: String },
    /// Claims went back to the model.
    SentBack { claims: Vec<String> },
    /// What went wrong, and what is done about it.
    Trouble { who: String, what: String },
    /// A piece of the answer, its citations checked.
    Said { text: String },
    /// The last words that the model wrote of its answer, not checked yet. Not kept.
    Writing { tail: String },
    /// What was said so far is void: the answer is written anew.
    Restarted,
}

/// A symbol that the question may be about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    pub symbol: String,
    pub why: String,
}

/// How an owner's answer came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    Model,
    /// Asked before.
    Memory,
    /// No answer in time, or none affordable.
    Refused,
}

/// Is told of every step at once; must not wait.
pub type Watcher = Box<dyn Fn(&Step) + Send + Sync>;

/// Keeps the steps and passes them on.
pub struct Steps {
    watcher: Watcher,
    kept: Mutex<Vec<Step>>,
}

impl Steps {
    pub fn new(watcher: Watcher) -> Self {
        Steps {
            watcher,
            kept: Mutex::default(),
        }
    }

    pub fn add(&self, step: Step) {
        (self.watcher)(&step);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(step);
    }

    /// Passes a step on that is not worth keeping: the answer itself.
    pub fn live(&self, step: Step) {
        (self.watcher)(&step);
    }

    pub fn kept(&self) -> Vec<Step> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone()
    }
}
