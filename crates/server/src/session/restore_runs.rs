//! Adds the runs of earlier servers to the session.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::earlier_params::params_of;
use super::front_end::FrontEnd;
use super::guarded;
use super::pending_reviews::PendingReviews;
use super::restore::{self, EndedRun, InterruptedRun, RestorableRun};
use super::restored_run::{ended_run, restore_run};
use super::run_view::{RunView, short};
use super::services::RunControl;
use super::trajectory::{TrajectoryFile, write_failure, write_trajectory};
use super::{RunEntry, RunOrigin, RunPhase, RunSession};
use starling_core::Approval;
use starling_swarm::{Event, Record, Stamped};
use starling_workspace::PathPolicy;

/// How long `starling/state` waits until the runs of earlier servers are found.
const RESTORE_PAUSE: Duration = Duration::from_secs(2);

impl RunSession {
    /// Searches for runs of earlier servers and offers their waiting reviews again.
    pub fn restore(&self) {
        let Ok(front_end) = self.front_end() else {
            self.shared.restored.cancel();
            return;
        };
        let Some(root) = self.root() else {
            self.shared.restored.cancel();
            return;
        };
        let runs = self.clone();
        self.shared.tasks.spawn(async move {
            let trajectories = runs.shared.services.trajectories.clone();
            let wanted = runs.shared.services.restore.clone();
            let policy = Arc::clone(&runs.shared.services.policy);
            let find = move || {
                let mut found = restore::find_restorable(&trajectories, &root, &wanted);
                let policy = (!found.is_empty()).then(|| policy(&root));
                if let Some(policy) = &policy {
                    for one in &mut found {
                        guarded::note_in_evidence(&mut one.records, policy);
                    }
                }
                let past = restore::find_ended(&trajectories, &root, &wanted);
                (found, past, policy)
            };
            let look = tokio::task::spawn_blocking(find);
            let (found, past, policy) = match look.await {
                Ok(all) => all,
                Err(error) => {
                    tracing::error!(%error, "earlier runs are not looked for");
                    runs.shared.restored.cancel();
                    return;
                }
            };
            for one in past {
                runs.keep_ended(one, &front_end);
            }
            runs.shared.restored.cancel();
            // The applied changes of ended runs are compared with the files.
            runs.shared.refresh.notify();
            let waiting: usize = found
                .iter()
                .map(|one| restore::view_of(&one.records).lead_proposals().count())
                .sum();
            for one in &found {
                for set in &one.half {
                    let text = format!(
                        "Starling: {}. Review the rest to complete the set, or undo the run to take back what \
                         is there: {}",
                        set.told(),
                        short(&one.task)
                    );
                    front_end.inform(text).await;
                }
                for change in &one.misplaced {
                    front_end.warn(format!("Starling: {}", change.told())).await;
                }
                if !one.unreviewed.is_empty() {
                    let run = (&one.id, &*one.task);
                    runs.offer_undo(run, &one.unreviewed, &front_end).await;
                } else if !one.waits {
                    let task = short(&one.task);
                    let text =
                        format!("Starling: a run was interrupted, and can be run again: {task}");
                    front_end.inform(text).await;
                }
            }
            for one in found {
                let front_end = Arc::clone(&front_end);
                let driven = runs.clone().drive_restored(one, front_end, policy.clone());
                runs.shared.tasks.spawn(driven);
            }
            if waiting > 0 {
                let what = match waiting {
                    1 => "a proposal of an earlier session waits".to_owned(),
                    many => format!("{many} proposals of an earlier session wait"),
                };
                let text = format!("Starling: {what} for your review");
                front_end.inform(text).await;
            }
        });
    }

    /// Reads the project's settings. Warns about those that are ignored, if others were ignored before.
    pub fn warn_ignored_settings(&self) {
        let Some(root) = self.root() else {
            return;
        };
        let runs = self.clone();
        self.shared.tasks.spawn(async move {
            let _one_at_a_time = runs.shared.reading_settings.lock().await;
            let look = Arc::clone(&runs.shared.services.ignored);
            let ignored = tokio::task::spawn_blocking(move || look(&root)).await;
            let ignored = ignored.unwrap_or_default();
            if *runs.ignored_settings() == ignored {
                return;
            }
            if !ignored.is_empty() {
                let shown = ignored.clone();
                runs.report(
                    |front_end| async move { front_end.warn_ignored_settings(shown).await },
                )
                .await;
            }
            *runs.ignored_settings() = ignored;
            runs.shared.refresh.notify();
        });
    }

    pub(super) fn ignored_settings(&self) -> MutexGuard<'_, Vec<String>> {
        let ignored = self.shared.ignored_settings.lock();
        ignored.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the runs of earlier servers are known, for at most `RESTORE_PAUSE`.
    pub async fn restored(&self) {
        let known = self.shared.restored.cancelled();
        if tokio::time::timeout(RESTORE_PAUSE, known).await.is_err() {
            tracing::info!("earlier runs are still looked for");
        }
    }

    /// Adds an ended run of an earlier server to the history.
    fn keep_ended(&self, past: EndedRun, front_end: &Arc<dyn FrontEnd>) {
        let mut view = RunView::default();
        for record in &past.records {
            if let Record::Event(event) = &record.record {
                view.record(record.seq, event);
            }
        }
        let params = params_of(first_event(&past.records), &past.task);
        let run: Arc<dyn RunControl> = Arc::new(ended_run(
            past.records,
            front_end.editor(),
            front_end.root(),
            self.others(&past.id, front_end),
        ));
        let entry = RunEntry {
            phase: RunPhase::Ended(Some(run)),
            cancel: CancellationToken::new(),
            pending_reviews: PendingReviews::default(),
            params,
            view,
            patches: Default::default(),
            first_new_event: 0,
            origin: RunOrigin::Ended,
            is_unreviewed: false,
            is_retried: false,
            interrupted: None,
            written: None,
        };
        self.lock().entry(past.id.0).or_insert(entry);
    }

    async fn drive_restored(
        self,
        found: RestorableRun,
        front_end: Arc<dyn FrontEnd>,
        policy: Option<PathPolicy>,
    ) {
        let RestorableRun {
            id,
            task,
            records,
            path,
            file,
            on_disk,
            waits,
            half: _,
            misplaced: _,
            unreviewed: _,
        } = found;
        let params = params_of(first_event(&records), &task);
        let pending_reviews = PendingReviews::default();
        let before = records.len();
        let mut view = RunView::default();
        // The front end receives the events of the run's turns again, but not its end, which
        // contains the total.
        if let Some(spent) = restore::total_spent(&records) {
            view.set_total_spent(spent);
        }
        let run = restore_run(
            records,
            front_end.editor(),
            pending_reviews.clone(),
            front_end.root(),
            policy,
            self.others(&id, &front_end),
        );
        let log = run.log();
        let records = waits.then(|| log.write_from(on_disk));
        let written = CancellationToken::new();
        let entry = RunEntry {
            phase: RunPhase::Running(run),
            cancel: CancellationToken::new(),
            pending_reviews,
            params,
            view,
            patches: Default::default(),
            first_new_event: before as u64,
            origin: RunOrigin::Restored,
            is_unreviewed: false,
            is_retried: false,
            interrupted: None,
            written: waits.then(|| written.clone()),
        };
        let _fired_at_the_end = written.drop_guard();
        let told = self.report_events(&id, log.follow(), before, Approval::Ask);
        if let Some(records) = records {
            self.lock().insert(id.0.clone(), entry);
            let runs = self.clone();
            let written = async move {
                match TrajectoryFile::extending(path.clone(), file, on_disk) {
                    Ok(file) => {
                        let report = |why| runs.report_unwritten(why);
                        write_trajectory(records, file, report).await;
                    }
                    Err(error) => runs.report_unwritten(write_failure(&path, &error)),
                }
            };
            tokio::join!(written, told);
        } else {
            let interrupted = Some(InterruptedRun::new(path, file));
            let entry = RunEntry {
                interrupted,
                ..entry
            };
            self.lock().insert(id.0.clone(), entry);
            told.await;
        }
    }
}

fn first_event(records: &[Stamped]) -> Option<&Event> {
    match &records.first()?.record {
        Record::Event(event) => Some(event),
        Record::Exchange(_) => None,
    }
}
