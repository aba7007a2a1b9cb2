//! Runs a task from its start to its end, and forwards the run's events.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::approver::FrontEndApprover;
use super::front_end::{FrontEnd, OpenBuffers};
use super::messages::{DownloadParams, LimitsPatch, RunParams};
use super::paths::overlay;
use super::pending_reviews::PendingReviews;
use super::services::{OpenRequest, OpenedRun, RunControl, RunDefaults};
use super::trajectory::{
    TrajectoryFile, begin_trajectory, event_params, write_failure, write_trajectory,
};
use super::{RunEntry, RunOrigin, RunPhase, RunSession};
use starling_core::{Approval, Driver, Limits};
use starling_platform::files::PathExt;
use starling_swarm::{
    Cursor, Ending, Event, EventLog, OtherRuns, Record, RunId, RunServices, Spent, Stamped,
    StopReason, Task, Writing,
};

/// Maximum number of ended runs that are kept for an undo.
const MAX_ENDED: usize = 16;
/// Minimum time between two progress reports of a download.
const DOWNLOAD_PAUSE: Duration = Duration::from_millis(250);

/// A run that is to be started: its id, parameters and project, and the channels for its messages.
pub(super) struct RunPlan {
    pub id: RunId,
    pub params: RunParams,
    /// The model whose weights are downloaded first.
    pub download: Option<String>,
    pub root: PathBuf,
    pub pending_reviews: PendingReviews,
    pub cancel: CancellationToken,
    pub front_end: Arc<dyn FrontEnd>,
    pub buffers: oneshot::Receiver<OpenBuffers>,
    /// Fired when the trajectory is complete and unlocked.
    pub written: CancellationToken,
}

impl RunSession {
    /// Runs a task from its start to its end.
    pub(super) async fn drive(self, plan: RunPlan) {
        let id = plan.id.clone();
        let front_end = Arc::clone(&plan.front_end);
        let title = title(&plan.params.task);
        let end_of_writing = plan.written.clone().drop_guard();
        let workers = self.shared.services.workers.clone();
        // The task is written to disk before the project is opened, because opening a large project
        // takes long.
        let (trajectory, started) = (self.trajectory(&id), started(&plan));
        let path = trajectory.clone();
        let begun = workers.spawn_blocking(move || begin_trajectory(&path, started));
        let begun = begun.await.unwrap_or_else(|error| Err(error.into()));
        let failed = |error: String| failed_start(StopReason::Failed { error });
        let (file, (log, records, approval)) = match begun {
            Ok(file) => {
                let runs = self.clone();
                let opened = workers.spawn(async move { runs.open(plan).await }).await;
                let opened = opened.unwrap_or_else(|error| failed(error.to_string()));
                let file = TrajectoryFile::replacing(trajectory, file);
                (Some(file), opened)
            }
            // Without a record no change could be made, so no model is asked.
            Err(error) => (None, failed(write_failure(&trajectory, &error))),
        };
        let is_cut_off = self.is_cut_off(&log);
        let runs = self.clone();
        let written = workers.spawn(async move {
            let _fired_at_the_end = end_of_writing;
            if let Some(file) = file.filter(|_| !is_cut_off) {
                let report = |why| runs.report_unwritten(why);
                write_trajectory(records, file, report).await;
            }
        });
        let (_, (), ()) = tokio::join!(
            written,
            self.report_events(&id, log.follow(), 0, approval),
            front_end.show_progress(&id, title, log.follow())
        );
    }

    /// Tells the user that the trajectory of a run cannot be written.
    pub(super) fn report_unwritten(&self, why: String) {
        let runs = self.clone();
        self.spawn_while_connected(async move {
            let text = format!("Starling: {why}");
            runs.report(|front_end| async move { front_end.warn(text).await })
                .await;
        });
    }

    /// Returns whether a run ended before it started because its server ends. Its trajectory then
    /// keeps only its first record, which contains the task, so that the next server offers the run
    /// again.
    fn is_cut_off(&self, log: &EventLog) -> bool {
        let is_end = |record: &Arc<Stamped>| {
            matches!(
                record.record,
                Record::Event(Event::RunFinished {
                    stop_reason: StopReason::Cancelled,
                    ..
                })
            )
        };
        self.shared.closing.is_cancelled() && log.records(0).first().is_some_and(is_end)
    }

    /// Sends all events to the front end, then reports the end.
    pub(super) async fn report_events(
        &self,
        id: &RunId,
        cursor: Cursor,
        earlier: usize,
        approval: Approval,
    ) {
        self.send_events(id, cursor, earlier, approval).await;
        self.ended(id);
        self.report_remedy(id).await;
        self.report_end(id).await;
    }

    /// Sends the events of a run to the front end, in order. Each is recorded before it is sent.
    /// The first `earlier` records come from an earlier server, so an end of the run among them is
    /// ignored.
    async fn send_events(
        &self,
        id: &RunId,
        mut cursor: Cursor,
        earlier: usize,
        approval: Approval,
    ) {
        while let Some(record) = cursor.next().await {
            let Some(params) = event_params(id, &record) else {
                continue;
            };
            let is_end = matches!(params.event, Event::RunFinished { .. });
            if is_end && record.seq < earlier as u64 {
                continue;
            }
            if let Event::ReviewAsked { .. } = &params.event {
                // A review must be on disk before the user sees it, so that the next server can
                // restore it. The writer tells the user if it cannot be written.
                cursor.written().await.ok();
            }
            if let Record::Event(event) = &record.record {
                self.record_event(id, record.seq, event, approval);
            }
            self.report(|front_end| async move { front_end.event(params).await })
                .await;
        }
    }

    /// Updates the session with an event before the front end receives it.
    fn record_event(&self, id: &RunId, seq: u64, event: &Event, approval: Approval) {
        if let Some(entry) = self.lock().get_mut(&id.0) {
            entry.view.record(seq, event);
            match entry.origin {
                RunOrigin::Started | RunOrigin::Ended => {}
                RunOrigin::Restored => entry.view.stop_agents(),
            }
            if approval == Approval::Ask {
                entry.pending_reviews.note(seq, event);
            }
        }
        if let Event::ProposalApplied { .. } | Event::ProposalUndone { .. } = event {
            self.compare_again();
        }
        self.shared.refresh.notify();
        if let Event::ReviewAsked { proposal, .. } = event {
            self.announce_review(id, *proposal);
        } else if let Event::ProposalNotApplied { proposal, .. }
        | Event::ProposalConflicted { proposal, .. } = event
        {
            self.keep_as_patch(id, seq, *proposal);
        }
    }

    /// Prepares and starts a run. If that fails, the returned log contains the reason.
    async fn open(&self, plan: RunPlan) -> (EventLog, Writing, Approval) {
        let (id, front_end, pending_reviews) = (
            plan.id.clone(),
            Arc::clone(&plan.front_end),
            plan.pending_reviews.clone(),
        );
        let (opened, params) = match self.prepare(plan).await {
            Ok(ready) => ready,
            Err(stop_reason) => return failed_start(stop_reason),
        };
        let OpenedRun {
            defaults,
            models,
            tests,
            language,
            index,
        } = opened;
        let approver = FrontEndApprover {
            run: id.clone(),
            pending_reviews,
            front_end: Arc::clone(&front_end),
            refresh: self.shared.refresh.clone(),
        };
        let run_services = RunServices {
            models,
            editor: front_end.editor(),
            approver: Arc::new(approver),
            tests,
            language: front_end.language_service(language),
            index,
            others: self
                .others(&id, &front_end)
                .map(|others| others as Arc<dyn OtherRuns>),
        };
        let params = resolved(params, &defaults);
        if let Some(entry) = self.lock().get_mut(&id.0) {
            entry.params = params.clone();
        }
        let mut task = task(params, &defaults);
        task.patch = Some(self.trajectory(&id).with_extension("kept.patch"));
        let approval = task.approval;
        let run = (self.shared.services.start)(id.clone(), task, run_services);
        // Start to write at once: no edit may be sent before it is in the trajectory.
        let records = run.log().write_from(0);
        self.started(&id, Arc::clone(&run), approval);
        (run.log(), records, approval)
    }

    async fn prepare(&self, plan: RunPlan) -> Result<(OpenedRun, RunParams), StopReason> {
        let Ok(buffers) = plan.buffers.await else {
            return Err(StopReason::Cancelled);
        };
        if let Some(model) = &plan.download {
            tokio::select! {
                fetched = self.fetch(&plan.id, model) => fetched?,
                () = plan.cancel.cancelled() => return Err(StopReason::Cancelled),
            }
        }
        let opening = OpenRequest {
            overlay: overlay(&plan.root, buffers),
            root: plan.root,
            test: plan.params.test.clone(),
            limits: plan.params.limits.clone(),
            model: plan.params.model.clone(),
        };
        let opened = tokio::select! {
            opened = (self.shared.services.open)(opening) => opened,
            () = plan.cancel.cancelled() => return Err(StopReason::Cancelled),
        };
        match opened {
            Ok(opened) => Ok((opened, plan.params)),
            Err(error) => Err(StopReason::Failed {
                error: format!("{error:#}"),
            }),
        }
    }

    /// Downloads the weights of a model and reports the progress.
    async fn fetch(&self, id: &RunId, model: &str) -> Result<(), StopReason> {
        let (tell, mut told) = tokio::sync::watch::channel((0, 0));
        let (fetch, name) = (Arc::clone(&self.shared.services.fetch), model.to_owned());
        let fetching = tokio::task::spawn_blocking(move || {
            fetch(&name, &mut |bytes, total| {
                tell.send_replace((bytes, total));
            })
        });
        while told.changed().await.is_ok() {
            let (bytes, total) = *told.borrow_and_update();
            let params = DownloadParams {
                run: id.clone(),
                model: model.to_owned(),
                bytes,
                total,
            };
            self.report(|front_end| async move { front_end.download(params).await })
                .await;
            tokio::time::sleep(DOWNLOAD_PAUSE).await;
        }
        let failed = |error: String| StopReason::Failed { error };
        let fetched = fetching.await.map_err(|error| failed(error.to_string()))?;
        fetched.map_err(|error| failed(format!("{error:#}")))
    }

    fn started(&self, id: &RunId, run: Arc<dyn RunControl>, approval: Approval) {
        let mut entries = self.lock();
        let Some(entry) = entries.get_mut(&id.0) else {
            return;
        };
        entry.is_unreviewed = approval != Approval::Ask;
        let before = std::mem::replace(&mut entry.phase, RunPhase::Running(Arc::clone(&run)));
        if let RunPhase::Opening(told) = before {
            for (to, text) in told {
                run.steer(to, text);
            }
        }
        if entry.cancel.is_cancelled() {
            run.cancel();
        }
    }

    pub(super) fn ended(&self, id: &RunId) {
        let mut entries = self.lock();
        if let Some(entry) = entries.get_mut(&id.0) {
            let stage = std::mem::replace(&mut entry.phase, RunPhase::Ended(None));
            if let RunPhase::Running(run) = stage {
                entry.phase = RunPhase::Ended(Some(run));
            }
        }
        let ended = |entry: &RunEntry| matches!(entry.phase, RunPhase::Ended(_));
        let old: Vec<String> = entries
            .iter()
            .filter(|(_, entry)| ended(entry))
            .map(|(id, _)| id.clone())
            .rev()
            .skip(MAX_ENDED)
            .collect();
        for id in old {
            entries.remove(&id);
        }
        drop(entries);
        self.shared.refresh.notify();
    }
}

/// Returns the event that is the only record of a trajectory until the run has started.
fn started(plan: &RunPlan) -> Event {
    let root = plan.root.canonical().unwrap_or_else(|_| plan.root.clone());
    Event::RunStarted {
        run: plan.id.clone(),
        task: plan.params.task.clone(),
        driver: plan.params.driver.unwrap_or(Driver::Swarm),
        models: Vec::new(),
        replayed: false,
        limits: plan.params.limits.over(&Limits::default()),
        root: root.to_string_lossy().into_owned(),
        request: plan.params.to_record(),
    }
}

/// Returns the parameters of a run with the values that the configuration gives to missing ones, so
/// that the same run can be started again under another configuration.
fn resolved(params: RunParams, defaults: &RunDefaults) -> RunParams {
    RunParams {
        driver: Some(params.driver.unwrap_or(defaults.driver)),
        approve: Some(params.approve.unwrap_or(defaults.approval)),
        ask_intent: Some(params.ask_intent.unwrap_or(defaults.ask_intent)),
        limits: LimitsPatch::all(&params.limits.over(&defaults.limits)),
        ..params
    }
}

/// Creates the task of a run from the parameters of the request. Missing parameters have their
/// default values.
fn task(params: RunParams, defaults: &RunDefaults) -> Task {
    // A refactoring has an owner for each part, and no model that could work as the single agent.
    let driver = match params.refactoring {
        Some(_) => Driver::Swarm,
        None => params.driver.unwrap_or(defaults.driver),
    };
    Task {
        request: params.to_record(),
        text: params.task,
        refactoring: params.refactoring,
        driver,
        approval: params.approve.unwrap_or(defaults.approval),
        ask_intent: params.ask_intent.unwrap_or(defaults.ask_intent),
        limits: params.limits.over(&defaults.limits),
        test_deadline: defaults.test_deadline,
        begin: params.begin,
        require_tests: params.require_tests,
        try_examples: defaults.try_examples,
        patch: None,
    }
}

/// Returns the log of a run that ended before it started, with its writer.
fn failed_start(stop_reason: StopReason) -> (EventLog, Writing, Approval) {
    let log = log_of_failed_start(stop_reason);
    let records = log.write_from(0);
    (log, records, Approval::Auto)
}

/// Returns the log of a run that ended before it started.
fn log_of_failed_start(stop_reason: StopReason) -> EventLog {
    let log = EventLog::new();
    let summary = match &stop_reason {
        StopReason::Failed { error } => format!("the run could not start: {error}"),
        StopReason::Settled
        | StopReason::NothingChanged { .. }
        | StopReason::TestsFail { .. }
        | StopReason::ProblemsRemain { .. }
        | StopReason::LedgerEmpty { .. }
        | StopReason::Cancelled => "the run was stopped before it began".to_owned(),
    };
    log.event(Event::RunFinished {
        ending: Some(Ending::before_start(&stop_reason)),
        stop_reason,
        applied: Vec::new(),
        diff: String::new(),
        spent: Spent::default(),
        summary,
        tally: Vec::new(),
    });
    log.close();
    log
}

/// Returns the first line of a task for a progress bar.
fn title(task: &str) -> String {
    let task = task.trim();
    let line = task.lines().next().unwrap_or_default();
    let mut title: String = line.chars().take(60).collect();
    if title.len() < task.len() {
        title.push('…');
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use starling_core::AskIntent;

    #[test]
    fn progress_title_is_the_shortened_first_line_of_the_task() {
        assert_eq!(title(" tidy up \n"), "tidy up");
        assert_eq!(title("tidy\nup"), "tidy…");
        assert_eq!(title(""), "");
        let exact = "ä".repeat(60);
        assert_eq!(title(&exact), exact);
        assert_eq!(title(&format!("{exact}b")), format!("{exact}…"));
    }

    #[test]
    fn run_request_overrides_default_settings() {
        let defaults = RunDefaults {
            driver: Driver::Single,
            approval: Approval::Proxy,
            ask_intent: AskIntent::Always,
            limits: Limits::default(),
            test_deadline: Duration::from_secs(7),
            try_examples: true,
        };
        let plain = task(RunParams::default(), &defaults);
        assert_eq!(plain.driver, Driver::Single);
        assert_eq!(plain.approval, Approval::Proxy);
        assert_eq!(plain.ask_intent, AskIntent::Always);
        assert_eq!(plain.limits, Limits::default());
        assert_eq!(plain.test_deadline, Duration::from_secs(7));
        let limits = LimitsPatch {
            calls: Some(1),
            dollars: Some(starling_core::Dollars(0.5)),
            depth: Some(0),
            ..LimitsPatch::default()
        };
        let wishes = RunParams {
            driver: Some(Driver::Swarm),
            approve: Some(Approval::Ask),
            limits,
            ..RunParams::default()
        };
        let own = task(wishes, &defaults);
        assert_eq!((own.driver, own.approval), (Driver::Swarm, Approval::Ask));
        assert_eq!(own.ask_intent, AskIntent::Always);
        let expected = Limits {
            calls: 1,
            dollars: Some(starling_core::Dollars(0.5)),
            depth: 0,
            ..Limits::default()
        };
        assert_eq!(own.limits, expected);
    }

    #[test]
    fn recorded_parameters_do_not_depend_on_the_configuration() {
        let defaults = |approval| RunDefaults {
            driver: Driver::Single,
            approval,
            ask_intent: AskIntent::Always,
            limits: Limits {
                calls: 7,
                ..Limits::default()
            },
            test_deadline: Duration::from_secs(7),
            try_examples: true,
        };
        let wishes = RunParams {
            task: "tidy".to_owned(),
            test: Some("make check".to_owned()),
            require_tests: true,
            ..RunParams::default()
        };
        let first = resolved(wishes, &defaults(Approval::Ask));
        let recorded = first.to_record();
        let read = RunParams::from_record("tidy".to_owned(), recorded.as_ref().unwrap());
        let other = RunDefaults {
            driver: Driver::Swarm,
            limits: Limits::default(),
            ..defaults(Approval::Auto)
        };
        let again = task(read.unwrap(), &other);
        assert_eq!(again.approval, Approval::Ask);
        assert_eq!((again.driver, again.limits.calls), (Driver::Single, 7));
        assert!(again.require_tests);
        assert_eq!(again.request, recorded);
    }

    #[test]
    fn run_that_fails_to_start_logs_its_end() {
        let said = |reason: StopReason| {
            let events = log_of_failed_start(reason.clone()).events();
            let [
                Event::RunFinished {
                    stop_reason,
                    summary,
                    ..
                },
            ] = &events[..]
            else {
                panic!("{events:?}");
            };
            assert_eq!(*stop_reason, reason);
            summary.clone()
        };
        let error = "no model".to_owned();
        let failed = said(StopReason::Failed { error });
        assert_eq!(failed, "the run could not start: no model");
        let stopped = said(StopReason::Cancelled);
        assert_eq!(stopped, "the run was stopped before it began");
    }
}
