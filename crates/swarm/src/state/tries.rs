//! The code that was tried in a run, and the limits of that.

use std::collections::BTreeMap;

use crate::event::actor::ActorId;
use crate::evidence::example::ExampleEvidence;
use starling_core::{TryCode, TryReport};

/// Maximum number of tries in one turn of an actor, and in a run.
const OF_TURN: u32 = 4;
const OF_RUN: u32 = 60;

/// Counts the tries of a run.
#[derive(Default)]
pub(crate) struct TryState {
    of_turn: BTreeMap<ActorId, u32>,
    of_run: u32,
    /// The examples of the task that could be tried before the first change.
    pub examples: Vec<TriedExample>,
    /// The examples with all changes of the run.
    pub at_end: Vec<ExampleEvidence>,
}

/// An example of the task, and what came of it before the first change.
#[derive(Debug, Clone)]
pub(crate) struct TriedExample {
    pub code: TryCode,
    pub before: TryReport,
}

impl TriedExample {
    /// Returns the result in one line, with the last line of the project in the traceback.
    pub fn in_short(&self) -> String {
        let error = self.before.in_short();
        match self.before.frames.last() {
            Some((file, line)) => format!("{error} at {file}:{line}"),
            None => error,
        }
    }
}

impl TryState {
    /// Starts a new turn of an actor.
    pub fn begin_turn(&mut self, actor: &ActorId) {
        self.of_turn.remove(actor);
    }

    /// Counts a try.
    ///
    /// # Errors
    /// Returns a message for the model if a limit is reached.
    pub fn count(&mut self, actor: &ActorId) -> Result<(), String> {
        if self.of_run == OF_RUN {
            return Err(format!(
                "Not tried: {OF_RUN} tries in one run are the limit."
            ));
        }
        let of_turn = self.of_turn.entry(actor.clone()).or_default();
        if *of_turn == OF_TURN {
            return Err(format!(
                "Not tried: {OF_TURN} tries in one turn are the limit. Try it in the next turn."
            ));
        }
        *of_turn += 1;
        self.of_run += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_of_a_turn_and_of_a_run_are_limited() {
        let mut tries = TryState::default();
        for _ in 0..OF_RUN / OF_TURN {
            for _ in 0..OF_TURN {
                assert_eq!(tries.count(&ActorId::Solo), Ok(()));
            }
            let why = tries.count(&ActorId::Solo).unwrap_err();
            assert_eq!(why.contains("in one turn"), tries.of_run < OF_RUN);
            tries.begin_turn(&ActorId::Solo);
        }
        assert!(
            tries
                .count(&ActorId::Scout)
                .unwrap_err()
                .contains("in one run")
        );
    }
}
