//! Reasons why a rename may not reach all uses, or may change something else.

use crate::task::in_strings::first_of;
use crate::task::refactoring::Refactoring;
use starling_index::Usage;

/// Maximum number of places that the reason of a change lists for one doubt.
const PLACES_MOST: usize = 100;

/// A reason to doubt a change, and the places that it is about, as `file:line`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Doubt {
    why: String,
    places: Vec<String>,
}

impl Doubt {
    pub(super) fn new(why: String, mut places: Vec<String>) -> Doubt {
        places.dedup();
        Doubt { why, places }
    }

    /// Describes the doubt with its first places.
    fn in_short(&self) -> String {
        match self.places.is_empty() {
            true => self.why.clone(),
            false => format!("{}: {}", self.why, first_of(self.places.clone())),
        }
    }

    /// Describes the doubt with all of its places, or the first of very many.
    fn in_full(&self) -> String {
        let shown = &self.places[..self.places.len().min(PLACES_MOST)];
        let more = match self.places.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        match shown.is_empty() {
            true => self.why.clone(),
            false => format!("{}: {}{more}", self.why, shown.join(", ")),
        }
    }
}

impl From<String> for Doubt {
    fn from(why: String) -> Doubt {
        Doubt::new(why, Vec::new())
    }
}

impl From<Doubt> for String {
    fn from(doubt: Doubt) -> String {
        doubt.in_short()
    }
}

/// What happens to uses on objects of unknown type, of a name that nothing else in the project has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LikelyUses {
    /// They are changed and reported.
    Changed,
    /// They count as uses that may mean something else.
    Unsure,
}

/// The doubts about one request, and what happens because of them.
#[derive(Debug)]
pub(super) struct Doubts {
    /// Whether the change is not made if there is a doubt.
    refuse: bool,
    likely: LikelyUses,
    /// Whether an object of unknown type may be the module of a function, so that its attributes may
    /// be uses of the function.
    modules_in_doubt: bool,
    reported: Vec<Doubt>,
    /// The uses that may mean something else.
    unsure: Vec<Usage>,
}

impl Doubts {
    /// With a doubt, the change is not made.
    pub(super) fn refused() -> Doubts {
        Doubts {
            refuse: true,
            likely: LikelyUses::Changed,
            modules_in_doubt: false,
            reported: Vec::new(),
            unsure: Vec::new(),
        }
    }

    /// With a doubt, a symbol is not deleted.
    pub(super) fn of_deletion() -> Doubts {
        Doubts {
            modules_in_doubt: true,
            ..Doubts::refused()
        }
    }

    /// If there is a doubt, the change is made only if the refactoring allows doubts to remain.
    pub(super) fn of(refactoring: &Refactoring) -> Doubts {
        match refactoring.leaves_doubts() {
            true => Doubts {
                refuse: false,
                ..Doubts::refused()
            },
            false => Doubts {
                likely: LikelyUses::Unsure,
                ..Doubts::of_deletion()
            },
        }
    }

    /// The user confirms each use that is not certain.
    pub(super) fn confirmed() -> Doubts {
        Doubts {
            refuse: false,
            likely: LikelyUses::Unsure,
            ..Doubts::refused()
        }
    }

    pub(super) fn modules_in_doubt(&self) -> bool {
        self.modules_in_doubt
    }

    pub(super) fn likely_uses(&self) -> LikelyUses {
        self.likely
    }

    /// Adds a doubt that keeps no change from being made.
    pub(super) fn report(&mut self, doubt: Doubt) {
        if !self.reported.contains(&doubt) {
            self.reported.push(doubt);
        }
    }

    /// Adds the doubt that a check found.
    ///
    /// # Errors
    /// Returns the doubt if the change is not made because of it.
    pub(super) fn add(&mut self, checked: Result<(), impl Into<Doubt>>) -> Result<(), String> {
        let checked: Result<(), Doubt> = checked.map_err(Into::into);
        match checked {
            Ok(()) => Ok(()),
            Err(doubt) if self.refuse => Err(doubt.into()),
            Err(doubt) => {
                self.report(doubt);
                Ok(())
            }
        }
    }

    /// Adds the uses that may mean something else.
    ///
    /// # Errors
    /// Returns the doubt if the change is not made because of it.
    pub(super) fn add_unsure(&mut self, uses: Vec<Usage>, doubt: Doubt) -> Result<(), String> {
        self.unsure.extend(uses);
        self.add(Err(doubt))
    }

    /// Returns the uses that may mean something else.
    pub(super) fn unsure(&self) -> &[Usage] {
        &self.unsure
    }

    /// Returns the doubts about a change that was made all the same: one sentence for each, with its first
    /// places.
    pub(super) fn reported(&self) -> Vec<String> {
        self.reported.iter().map(Doubt::in_short).collect()
    }

    /// Describes whether the change is certain, with all places that are not, for the reason of the
    /// change.
    pub(super) fn in_words(&self) -> String {
        let all: Vec<String> = self.reported.iter().map(Doubt::in_full).collect();
        match all.is_empty() {
            true => "every use is certain".to_owned(),
            false => format!("not certain: {}", all.join("; ")),
        }
    }
}
