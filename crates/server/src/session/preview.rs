//! Previews of proposals: a review shows exactly the text that accepting the proposal would
//! produce.

use std::sync::Arc;

use starling_core::EditorError;
use starling_swarm::FileChange;

/// A file with the changes of a proposal.
#[derive(Debug, Clone)]
pub struct Preview {
    /// The current text; empty if there is no such file.
    pub before: Arc<str>,
    /// Whether the changes create the file.
    pub creates: bool,
    /// Whether the changes delete the file.
    pub deletes: bool,
    /// The text with the changes, or why they do not fit the current text.
    pub after: Result<Arc<str>, String>,
    /// The text as it was proposed, if that conflicts with the current text.
    pub proposed: Option<String>,
}

/// Applies changes one after the other to the current text of a file; `None` is a missing file.
pub fn preview(text: Option<Arc<str>>, changes: &[&FileChange]) -> Preview {
    let creates = text.is_none();
    let deletes = changes.last().is_some_and(|change| change.deleted);
    let before = text.unwrap_or_else(|| "".into());
    let mut after: Arc<str> = Arc::clone(&before);
    for change in changes {
        let missing = EditorError::Missing {
            file: change.file.clone(),
        };
        let is_there = !creates || !after.is_empty();
        let made = match change.lost(&missing) {
            Some(why) if !is_there => Err(why),
            Some(_) | None => change
                .over(&after)
                .map_err(|conflict| conflict.in_lines(&change.base))
                .and_then(|changes| changes.apply(&after).map_err(|error| error.to_string())),
        };
        match made {
            Ok(text) => after = text.into(),
            Err(why) => {
                return Preview {
                    before,
                    creates,
                    deletes,
                    after: Err(why),
                    proposed: change.changes.apply(&change.base).ok(),
                };
            }
        }
    }
    Preview {
        before,
        creates,
        deletes,
        after: Ok(after),
        proposed: None,
    }
}
