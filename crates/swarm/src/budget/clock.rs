//! The clock of a run. It stops while the run waits only for a person: no model, test run or
//! language server is working.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::account::Budget;
use super::spent::Spent;

/// An activity outside Starling that a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExternalTime {
    Model,
    Tests,
}

/// Measures the time of a run, and the times of external activities.
#[derive(Debug)]
pub(super) struct Clock {
    began: Instant,
    /// Number of pending waits for a person's decision.
    people: u32,
    /// Number of active models, test runs and language servers.
    working: u32,
    standing_since: Option<Instant>,
    stood: Duration,
    /// Periods of external activity (start and end), ordered by their end.
    outside: Vec<(ExternalTime, Instant, Instant)>,
}

impl Clock {
    pub fn new(began: Instant) -> Self {
        Clock {
            began,
            people: 0,
            working: 0,
            standing_since: None,
            stood: Duration::ZERO,
            outside: Vec::new(),
        }
    }

    /// Stops or continues the clock after a change of the counters.
    fn update(&mut self) {
        let stands = self.people > 0 && self.working == 0;
        match (stands, self.standing_since) {
            (true, None) => self.standing_since = Some(Instant::now()),
            (false, Some(since)) => {
                self.stood += since.elapsed();
                self.standing_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    fn stood(&self) -> Duration {
        let now = self.standing_since.map(|since| since.elapsed());
        self.stood + now.unwrap_or_default()
    }

    pub fn add_times(&self, spent: &mut Spent) {
        spent.seconds = self.began.elapsed().as_secs_f64();
        spent.waiting_seconds = self.stood().as_secs_f64();
        let of = |wanted: &[ExternalTime]| self.outside(wanted).as_secs_f64();
        spent.model_seconds = of(&[ExternalTime::Model]);
        spent.test_seconds = of(&[ExternalTime::Tests]);
        spent.outside_seconds = of(&[ExternalTime::Model, ExternalTime::Tests]);
    }

    /// Returns the total time in which at least one of these activities was in progress.
    fn outside(&self, wanted: &[ExternalTime]) -> Duration {
        let of_these = self
            .outside
            .iter()
            .filter(|(what, ..)| wanted.contains(what));
        let mut times: Vec<_> = of_these.map(|(_, since, until)| (*since, *until)).collect();
        times.sort();
        let mut total = Duration::ZERO;
        let mut counted = self.outside.iter().map(|(_, since, _)| *since).min();
        for (since, until) in times {
            let since = counted.map_or(since, |end| since.max(end));
            total += until.saturating_duration_since(since);
            counted = Some(until.max(since));
        }
        total
    }
}

impl Budget {
    /// Returns the remaining time. Time while the clock is stopped does not count.
    pub fn time_left(&self) -> Duration {
        let clock = self.clock();
        let run = clock.began.elapsed().saturating_sub(clock.stood());
        Duration::from_secs(self.limits.seconds).saturating_sub(run)
    }

    /// Waits until the time limit is reached.
    pub async fn time_up(&self) {
        loop {
            let mut changed = std::pin::pin!(self.shared.clock_changed.notified());
            changed.as_mut().enable();
            let left = self.time_left();
            if left.is_zero() {
                return;
            }
            let stands = self.clock().standing_since.is_some();
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(left.max(Duration::from_millis(10))), if !stands => {}
            }
        }
    }

    /// Marks that the run waits for a person until the returned guard is dropped; see
    /// [`Budget::work`].
    pub fn wait_for_person(&self) -> PersonWait {
        self.change_clock(|clock| clock.people += 1);
        PersonWait {
            budget: self.clone(),
        }
    }

    /// Marks that a model, a test run or a language server is working until the returned guard is
    /// dropped. Meanwhile the clock runs even if the run also waits for a person.
    pub fn work(&self) -> WorkInProgress {
        self.change_clock(|clock| clock.working += 1);
        WorkInProgress {
            budget: self.clone(),
        }
    }

    /// Records an external activity of this duration that ends now.
    pub fn was_outside(&self, what: ExternalTime, took: Duration) {
        let now = Instant::now();
        let mut clock = self.clock();
        let since = now.checked_sub(took).unwrap_or(clock.began);
        let since = since.max(clock.began);
        clock.outside.push((what, since, now));
    }

    fn change_clock(&self, change: impl FnOnce(&mut Clock)) {
        let mut clock = self.clock();
        change(&mut clock);
        clock.update();
        drop(clock);
        self.shared.clock_changed.notify_waiters();
    }

    pub(super) fn clock(&self) -> MutexGuard<'_, Clock> {
        let clock = self.shared.clock.lock();
        clock.unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that counts as a wait for a person's decision until it is dropped. See
/// [`Budget::wait_for_person`].
#[derive(Debug)]
pub struct PersonWait {
    budget: Budget,
}

impl Drop for PersonWait {
    fn drop(&mut self) {
        self.budget.change_clock(|clock| clock.people -= 1);
    }
}

/// A guard that counts as a working model, test run or language server until it is dropped. See
/// [`Budget::work`].
#[derive(Debug)]
pub struct WorkInProgress {
    budget: Budget,
}

impl Drop for WorkInProgress {
    fn drop(&mut self) {
        self.budget.change_clock(|clock| clock.working -= 1);
    }
}
