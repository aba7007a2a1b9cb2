//! Runs of earlier servers join those of this one.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Entry, Origin, Runs, Stage};
use crate::approvals::Approvals;
use crate::board::short;
use crate::editor::ClientEditor;
use crate::follow;
use crate::protocol::RunParams;
use crate::restore::{self, Found, Interrupted, Past};
use crate::revived::{ended, revive};
use crate::services::Run;
use starling_core::Approval;
use starling_swarm::Record;

/// How long the state of runs waits for those of earlier servers.
const RESTORE_PAUSE: Duration = Duration::from_secs(2);

impl Runs {
    /// Looks for what waited for review when an earlier server ended, and offers it again.
    pub fn restore(&self, editor: &Arc<ClientEditor>) {
        let Some(root) = self.shared.agreed.get().and_then(|one| one.root.clone()) else {
            self.shared.restored.cancel();
            return;
        };
        let (runs, editor) = (self.clone(), Arc::clone(editor));
        self.shared.tasks.spawn(async move {
            let trajectories = runs.shared.services.trajectories.clone();
            let wanted = runs.shared.services.restore.clone();
            let find = move || {
                let found = restore::find(&trajectories, &root, &wanted);
                (found, restore::past(&trajectories, &root, &wanted))
            };
            let look = tokio::task::spawn_blocking(find);
            let (found, past) = match look.await {
                Ok(all) => all,
                Err(error) => {
                    tracing::error!(%error, "earlier runs are not looked for");
                    runs.shared.restored.cancel();
                    return;
                }
            };
            for one in past {
                runs.keep_past(one, Arc::clone(&editor));
            }
            runs.shared.restored.cancel();
            let waiting: usize = found
                .iter()
                .map(|one| restore::board(&one.records).leading().count())
                .sum();
            for one in &found {
                if !one.waits {
                    let task = short(&one.task);
                    let text =
                        format!("Starling: a run was interrupted, and can be run again: {task}");
                    runs.shared.windows.say(&text).await;
                }
            }
            for one in found {
                let (carrying, editor) = (runs.clone(), Arc::clone(&editor));
                let carried = carrying.carry_restored(one, editor);
                runs.shared.tasks.spawn(carried);
            }
            if waiting > 0 {
                let what = match waiting {
                    1 => "a proposal of an earlier session waits".to_owned(),
                    many => format!("{many} proposals of an earlier session wait"),
                };
                let text = format!("Starling: {what} for your review");
                runs.shared.windows.say(&text).await;
            }
        });
    }

    /// Looks at the project's settings, and says what of them is not followed.
    pub fn tell_ignored(&self) {
        let Some(root) = self.shared.agreed.get().and_then(|one| one.root.clone()) else {
            return;
        };
        let runs = self.clone();
        self.shared.tasks.spawn(async move {
            let look = Arc::clone(&runs.shared.services.ignored);
            let ignored = tokio::task::spawn_blocking(move || look(&root)).await;
            let ignored = ignored.unwrap_or_default();
            if ignored.is_empty() {
                return;
            }
            runs.shared.windows.tell_ignored(&ignored).await;
            runs.shared.ignored.get_or_init(|| ignored);
            runs.shared.pulse.beat();
        });
    }

    /// Waits until the runs of earlier servers are known, a moment at most.
    pub async fn restored(&self) {
        let known = self.shared.restored.cancelled();
        if tokio::time::timeout(RESTORE_PAUSE, known).await.is_err() {
            tracing::info!("earlier runs are still looked for");
        }
    }

    /// A run that ended with an earlier server, for the history.
    fn keep_past(&self, past: Past, editor: Arc<ClientEditor>) {
        let mut board = super::Board::default();
        for record in &past.records {
            if let Record::Event(event) = &record.record {
                board.note(record.seq, event);
            }
        }
        let root = self.shared.agreed.get().and_then(|one| one.root.clone());
        let run: Arc<dyn Run> = Arc::new(ended(past.records, editor, root));
        let entry = Entry {
            stage: Stage::Ended(Some(run)),
            cancel: CancellationToken::new(),
            approvals: Approvals::default(),
            params: RunParams {
                task: past.task,
                ..RunParams::default()
            },
            board,
            patches: Default::default(),
            begins: 0,
            origin: Origin::Past,
            again: false,
            interrupted: None,
            written: None,
        };
        self.lock().entry(past.id.0).or_insert(entry);
    }

    async fn carry_restored(self, found: Found, editor: Arc<ClientEditor>) {
        let Found {
            id,
            task,
            records,
            path,
            file,
            waits,
        } = found;
        let approvals = Approvals::default();
        let before = records.len();
        let mut board = super::Board::default();
        // The events of its turns are told again, but not its end.
        if let Some(spent) = restore::spent_in_all(&records) {
            board.count_all(spent);
        }
        let root = self.shared.agreed.get().and_then(|one| one.root.clone());
        let run = revive(records, editor, approvals.clone(), root);
        let log = run.log();
        let records = waits.then(|| log.write_from(before));
        let written = CancellationToken::new();
        let entry = Entry {
            stage: Stage::Going(run),
            cancel: CancellationToken::new(),
            approvals,
            params: RunParams {
                task,
                ..RunParams::default()
            },
            board,
            patches: Default::default(),
            begins: before as u64,
            origin: Origin::Restored,
            again: false,
            interrupted: None,
            written: waits.then(|| written.clone()),
        };
        let _fired_at_the_end = written.drop_guard();
        let told = self.tell(&id, log.follow(), before, Approval::Ask);
        if let Some(records) = records {
            self.lock().insert(id.0.clone(), entry);
            tokio::join!(follow::write(records, file, &path), told);
        } else {
            let interrupted = Some(Interrupted::new(path, file));
            let entry = Entry {
                interrupted,
                ..entry
            };
            self.lock().insert(id.0.clone(), entry);
            told.await;
        }
    }
}
