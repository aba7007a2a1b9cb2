//! The code that was run with the tool `try`, the results of the task's examples, and the limits of
//! the tool.

use std::collections::BTreeMap;

use crate::event::actor::ActorId;
use crate::evidence::example::ExampleEvidence;
use starling_core::{TryCode, TryReport};

/// Maximum number of calls of `try` in one turn of an actor (`OF_TURN`) and in one run (`OF_RUN`).
const OF_TURN: u32 = 4;
const OF_RUN: u32 = 60;

/// Counts the calls of `try` in a run, and stores the results of the task's examples.
#[derive(Default)]
pub(crate) struct TryState {
    of_turn: BTreeMap<ActorId, u32>,
    of_run: u32,
    /// The examples of the task that ran on the unchanged code, with their results.
    pub examples: Vec<TriedExample>,
    /// The results of the examples with all changes of the run.
    pub at_end: Vec<ExampleEvidence>,
}

/// An example of the task and its result on the unchanged code.
#[derive(Debug, Clone)]
pub(crate) struct TriedExample {
    pub code: TryCode,
    pub before: TryReport,
}

impl TriedExample {
    /// Returns the result as one line. If there is a traceback, adds its last line of the project.
    pub fn in_short(&self) -> String {
        let error = self.before.in_short();
        match self.before.frames.last() {
            Some((file, line)) => format!("{error} at {file}:{line}"),
            None => error,
        }
    }
}

impl TryState {
    /// Resets the count of an actor at the start of its turn.
    pub fn begin_turn(&mut self, actor: &ActorId) {
        self.of_turn.remove(actor);
    }

    /// Counts a call of `try`.
    ///
    /// # Errors
    /// Returns a message for the model if a limit is reached.
    pub fn count(&mut self, actor: &ActorId) -> Result<(), String> {
        if self.of_run == OF_RUN {
            return Err(format!(
                "Not tried: the limit of {OF_RUN} tries in one run is reached."
            ));
        }
        let of_turn = self.of_turn.entry(actor.clone()).or_default();
        if *of_turn == OF_TURN {
            return Err(format!(
                "Not tried: the limit of {OF_TURN} tries in one turn is reached. Try again in the next turn."
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
    fn calls_of_try_are_limited_in_a_turn_and_in_a_run() {
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
