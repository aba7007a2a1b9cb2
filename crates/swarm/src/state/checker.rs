//! The state that the checks of a change use: the workspace, its tests and the applied proposals.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};

use crate::budget::Budget;
use crate::event::events::Event;
use crate::event::log::EventLog;
use crate::excerpt::Focus;
use crate::lookup::Lookup;
use crate::state::disk::DiskWatch;
use crate::state::epoch::Epoch;
use crate::state::locked::{Guard, Locked, Rank};
use crate::state::proposals::ProposalBook;
use crate::state::test_state::TestState;
use crate::state::tries::TryState;
use crate::state::world::World;
use crate::task::goal::{self, Goal};
use crate::task::refactoring::Refactoring;
use crate::task::requested;
use crate::task::stated::{self, ExplicitEdits};
use starling_core::{Approval, Editor, LanguageService, TestRunner};
use starling_index::Index;
use starling_syntax::{FilePath, SymbolPath};
use starling_workspace::{PathPolicy, Snapshot, UnusualPaths, may_show};

/// Checks changes of one workspace. What a check finds out about the workspace and its tests, such
/// as the failing tests, is kept for later checks.
pub struct Checker {
    pub(crate) goal: Goal,
    pub(crate) task: CheckedTask,
    pub(crate) services: CheckServices,
    pub(crate) budget: Budget,
    pub(crate) log: EventLog,
    /// Limits the number of concurrent test runs.
    pub(crate) testing: Semaphore,
    /// Held while a task finds out which tests fail in the current workspace, so that only one does
    /// it.
    pub(crate) learning: Mutex<()>,
    stated: OnceLock<ExplicitEdits>,
    /// The files on disk, to find out whether others changed some between two test runs.
    pub(crate) disk: DiskWatch,
    /// Data files that only tests or the test command read; unset until they are first needed.
    pub(crate) read_data: OnceLock<BTreeSet<FilePath>>,
    world: Locked<World>,
    tests: Locked<TestState>,
    proposals: Locked<ProposalBook>,
    tries: Locked<TryState>,
}

/// The parts of the user's request that the checks use.
#[derive(Debug, Clone)]
pub(crate) struct CheckedTask {
    pub text: String,
    pub refactoring: Option<Refactoring>,
    pub approval: Approval,
    /// Deadline of one test run.
    pub test_deadline: Duration,
}

/// The services that the checks use.
#[derive(Clone)]
pub(crate) struct CheckServices {
    /// The editor with the user's current texts; `None` if only the texts of the index are used.
    pub editor: Option<Arc<dyn Editor>>,
    pub tests: Arc<dyn TestRunner>,
    pub language: Arc<dyn LanguageService>,
    /// Index of the workspace at the start, including unsaved buffers.
    pub index: Arc<Index>,
}

/// The parts of the state that the checks use, locked together.
pub(crate) struct CheckState<'c> {
    pub world: Guard<'c, World>,
    pub tests: Guard<'c, TestState>,
    pub proposals: Guard<'c, ProposalBook>,
}

impl CheckState<'_> {
    /// Returns the workspace in which the files that the run changed have their text from before
    /// the run.
    pub fn without_the_run(&self) -> Snapshot {
        self.proposals.without_the_run(&self.world.snapshot)
    }
}

impl Checker {
    pub(crate) fn new(
        task: CheckedTask,
        services: CheckServices,
        budget: Budget,
        log: EventLog,
    ) -> Checker {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let world = World::new(services.index.clone(), Focus::of(&task.text));
        let disk = DiskWatch::new(services.index.snapshot());
        Checker {
            goal: goal::of(&task.text),
            task,
            services,
            budget,
            log,
            testing: Semaphore::new(cores),
            learning: Mutex::new(()),
            stated: OnceLock::new(),
            disk,
            read_data: OnceLock::new(),
            world: Locked::new(Rank::World, world),
            tests: Locked::new(Rank::Tests, TestState::default()),
            proposals: Locked::new(Rank::Proposals, ProposalBook::default()),
            tries: Locked::new(Rank::Tries, TryState::default()),
        }
    }

    /// Locks all parts of the state. Used by operations that read or change several parts
    /// atomically.
    pub(crate) fn state(&self) -> CheckState<'_> {
        CheckState {
            world: self.world(),
            tests: self.tests(),
            proposals: self.proposals(),
        }
    }

    pub(crate) fn world(&self) -> Guard<'_, World> {
        self.world.lock()
    }

    pub(crate) fn tests(&self) -> Guard<'_, TestState> {
        self.tests.lock()
    }

    pub(crate) fn proposals(&self) -> Guard<'_, ProposalBook> {
        self.proposals.lock()
    }

    pub(crate) fn tries(&self) -> Guard<'_, TryState> {
        self.tries.lock()
    }

    /// Returns the policy that says which paths can be read and written.
    pub(crate) fn policy(&self) -> PathPolicy {
        self.world().snapshot.policy().clone()
    }

    pub(crate) fn event(&self, event: Event) {
        self.log.event(event);
    }

    /// Returns the renames and deletions that the task asks for, resolved in the workspace before
    /// the run.
    pub(crate) fn stated(&self) -> &ExplicitEdits {
        self.stated.get_or_init(|| {
            let index = Arc::clone(&self.services.index);
            let lookup = Lookup::new(index.snapshot().clone(), index);
            match &self.task.refactoring {
                Some(refactoring) => requested::whole_task(&lookup, refactoring),
                None => stated::of(&lookup, &self.task.text),
            }
        })
    }

    /// Returns a lookup over the current workspace, which includes all accepted changes.
    pub(crate) fn lookup(&self) -> Lookup {
        self.world().lookup()
    }

    /// Returns the paths of the current workspace with unusual characters, which are recognized in
    /// a text only by comparison with this list.
    pub(crate) fn unusual_paths(&self) -> UnusualPaths {
        self.world().snapshot.unusual_paths()
    }

    /// Updates the workspace with the user's texts from the editor, which were read when the
    /// workspace had the version `epoch`.
    ///
    /// Returns `false` and changes nothing if the workspace has changed since then, because the
    /// texts may be outdated.
    pub(crate) fn saw<'t>(
        &self,
        epoch: Epoch,
        texts: impl IntoIterator<Item = (&'t FilePath, Option<&'t Arc<str>>)>,
    ) -> bool {
        let mut state = self.state();
        if state.world.epoch != epoch {
            return false;
        }
        for (file, text) in texts {
            let is_known = match state.world.snapshot.read(file) {
                Ok(known) => Some(&known) == text,
                Err(error) => text.is_none_or(|text| may_show(file, text) == Err(error)),
            };
            if !is_known {
                state.world.change(file, text);
                state.world.epoch.typed += 1;
                let module = SymbolPath::module(file.clone());
                state.world.answers.forget(&[module]);
                state.tests.latest = None;
            }
        }
        true
    }
}
