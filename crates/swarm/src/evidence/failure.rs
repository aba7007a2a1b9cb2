//! Why an accepted change was not applied.

use std::sync::Arc;

/// Why a change was not applied. The file is unchanged in each of these cases.
#[derive(Debug, Clone)]
pub enum Failure {
    Conflict { why: String, current: Arc<str> },
    Editor { why: String },
}

impl Failure {
    pub fn why(&self) -> &str {
        match self {
            Failure::Conflict { why, .. } | Failure::Editor { why } => why,
        }
    }
}
