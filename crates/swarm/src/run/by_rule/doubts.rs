//! Reasons why a rename may not reach all uses, or may change something else.

use crate::task::refactoring::Refactoring;

/// The doubts about one request, and what happens because of them.
#[derive(Debug)]
pub(super) struct Doubts {
    /// Whether the change is not made if there is a doubt.
    refuse: bool,
    /// One sentence for each doubt.
    reported: Vec<String>,
}

impl Doubts {
    /// With a doubt, the change is not made.
    pub(super) fn refused() -> Doubts {
        Doubts {
            refuse: true,
            reported: Vec::new(),
        }
    }

    /// What a refactoring does with doubts: a rename is made for the certain uses, unless the user wants
    /// it only if it is certain.
    pub(super) fn of(refactoring: &Refactoring) -> Doubts {
        let refuse = match refactoring {
            Refactoring::Rename {
                only_if_certain, ..
            } => *only_if_certain,
            Refactoring::Delete { .. } => true,
        };
        Doubts {
            refuse,
            reported: Vec::new(),
        }
    }

    /// Adds the doubt that a check found.
    ///
    /// # Errors
    /// Returns the doubt if the change is not made because of it.
    pub(super) fn add(&mut self, checked: Result<(), String>) -> Result<(), String> {
        match checked {
            Ok(()) => Ok(()),
            Err(doubt) if self.refuse => Err(doubt),
            Err(doubt) => {
                if !self.reported.contains(&doubt) {
                    self.reported.push(doubt);
                }
                Ok(())
            }
        }
    }

    /// Returns the doubts about a change that was made all the same.
    pub(super) fn reported(self) -> Vec<String> {
        self.reported
    }

    /// Describes whether the change is certain, for the reason of the change.
    pub(super) fn in_words(&self) -> String {
        match self.reported.as_slice() {
            [] => "every use is certain".to_owned(),
            reported => format!("not certain: {}", reported.join("; ")),
        }
    }
}
