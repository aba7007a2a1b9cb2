//! Why a proposal is sent back, in two versions: instructions for the agent, and a description for
//! the user.

use std::fmt;

/// Why a proposal is sent back, in a version for the agent and a version for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReturnReason {
    to_agent: String,
    to_user: String,
}

impl ReturnReason {
    pub fn new(to_agent: impl Into<String>, to_user: impl Into<String>) -> ReturnReason {
        ReturnReason {
            to_agent: to_agent.into(),
            to_user: to_user.into(),
        }
    }

    /// Creates a reason with the same text for the agent and the user.
    pub fn for_both(text: impl Into<String>) -> ReturnReason {
        let text = text.into();
        ReturnReason::new(text.clone(), text)
    }

    pub fn to_agent(&self) -> &str {
        &self.to_agent
    }

    pub fn to_user(&self) -> &str {
        &self.to_user
    }
}

/// Writes the version for the agent.
impl fmt::Display for ReturnReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_agent)
    }
}
