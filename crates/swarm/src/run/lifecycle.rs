//! Runs a task from the request to the stop reason.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::Instrument;

use crate::agent::turns;
use crate::budget::Budget;
use crate::budget::CallFailed;
use crate::check::test_run;
use crate::check::test_run::no_tests;
use crate::check::{
    each_part, executions, expected, new_tests, original_tests, required, selection, task_examples,
};
use crate::context::prompt_parts;
use crate::contract::follow_up;
use crate::event::actor::ActorId;
use crate::event::events::{Cause, Event, RunId, StopReason, TestPhase};
use crate::event::log::EventLog;
use crate::evidence::ids::ProposalId;
use crate::evidence::test_evidence::failing_ids;
use crate::excerpt::Focus;
use crate::proposal::undo;
use crate::proposal::undo_error::UndoError;
use crate::protocol::Pick;
use crate::run::ending::{self, Unchanged, head, unchanged};
use crate::run::finish::{changed, finished, unproven};
use crate::run::scout::NoPick;
use crate::run::settle::RemainingFailures;
use crate::run::unmet::{files_with_old_names, lookup_before, names_not_there, old_imports, unmet};
use crate::run::{
    aim, changed_failures, context_failures, possible_uses, scout, settle, unsettled,
    written_meanwhile,
};
use crate::state::run_context::RunContext;
use crate::state::services::RunServices;
use crate::state::test_scope;
use crate::state::test_scope::TestScope;
use crate::task::goal::Goal;
use crate::task::goal::excluded::ExcludedTests;
use crate::task::request::Task;
use crate::task::stated::absent;
use starling_core::{CommandOrigin, Driver, Role, TestOutcome, TestReport, Tokens};
use starling_syntax::{FilePath, SymbolPath};

/// Maximum size of the failing tests' output from which the search words for excerpts are taken.
const FOCUS_MOST: Tokens = Tokens(4_000);

/// Controls a run. Dropping the handle does not end the run.
#[derive(Clone)]
pub struct RunHandle {
    pub id: RunId,
    pub log: EventLog,
    run: Arc<RunContext>,
    ended: watch::Receiver<bool>,
}

impl RunHandle {
    /// Cancels the run. No model call starts after this method returns.
    pub fn cancel(&self) {
        self.run.cancel.cancel();
    }

    /// Sends a message to the owner of a symbol, or to all working agents. An agent reads the
    /// message at its next turn. Has no effect after the end of the run.
    pub fn steer(&self, to: Option<SymbolPath>, text: String) {
        if *self.ended.borrow() {
            return;
        }
        self.log.event(Event::Steered {
            to: to.clone(),
            text: text.clone(),
        });
        match to {
            Some(symbol) => {
                let (owner, text) = self.run.addressee(&symbol, &text);
                if let Err(error) = self.run.wake(&owner, Cause::Steered { text }) {
                    let agent = ActorId::Agent(symbol);
                    self.log.event(Event::Malformed {
                        agent,
                        what: error.to_string(),
                    });
                }
            }
            None => {
                let cause = Cause::Steered { text };
                for actor in self.run.at_work() {
                    self.run.tell_if_working(&actor, cause.clone());
                }
            }
        }
    }

    /// Returns why no agent can be sent a message about a symbol: the symbol does not exist, or
    /// agents may not change its file. Returns `None` if a message can be sent.
    pub fn why_nobody_owns(&self, symbol: &SymbolPath) -> Option<String> {
        match self.run.task.driver {
            Driver::Single => None,
            Driver::Swarm => {
                let (owner, _) = self.run.addressee(symbol, "");
                self.run.lookup().symbol(&owner).err()
            }
        }
    }

    /// Undoes one applied proposal, or all of them in reverse order. Only text that agents wrote is
    /// changed, in the current text of the user.
    /// # Errors
    /// Returns an [`UndoError`] if a proposal stays applied.
    pub async fn undo(&self, proposal: Option<ProposalId>) -> Result<Vec<ProposalId>, UndoError> {
        undo::undo(&self.run, proposal).await
    }

    /// The budget of the run.
    pub fn budget(&self) -> &Budget {
        &self.run.budget
    }

    /// Waits for the end of the run.
    pub async fn finished(&self) {
        let mut ended = self.ended.clone();
        // An error means that the sender was dropped. This happens only after the run's
        // asynchronous task ended.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

/// Starts a run on the current runtime and returns at once. All later results are in the log, which
/// is closed after [`crate::Event::RunFinished`].
pub fn start(id: RunId, task: Task, services: RunServices) -> RunHandle {
    let log = EventLog::new();
    let run = RunContext::new(task, services, log.clone(), turns::work_in_task);
    let (end, ended) = watch::channel(false);
    let handle = RunHandle {
        id: id.clone(),
        log: log.clone(),
        run: Arc::clone(&run),
        ended,
    };
    let span = tracing::info_span!(parent: None, "run", id = %id.0);
    run.event(started(&run, id));
    let work = async move {
        let stop_reason = until_stopped(&run).await;
        // No agent may work after the last event is logged, so this waits until an edit in progress
        // is complete.
        run.cancel.cancel();
        run.quiet().await;
        let stop_reason = without_proof(&run, stop_reason);
        follow_up::tell_unfollowed(&run);
        unsettled::take_back(&run, &stop_reason).await;
        let applying = run.applying.lock().await;
        run.event(finished(&run, stop_reason));
        drop(applying);
        log.close();
        end.send_replace(true);
    };
    tokio::spawn(work.instrument(span));
    handle
}

fn started(run: &RunContext, id: RunId) -> Event {
    let models = &run.services.models;
    let mut named = vec![
        (Role::Scout, models.scout.profile()),
        (Role::Agent, models.agent.profile()),
        (Role::Proxy, models.proxy.profile()),
    ];
    named.extend(
        models
            .editors
            .iter()
            .map(|model| (Role::Editor, model.profile())),
    );
    Event::RunStarted {
        run: id,
        task: run.task.text.clone(),
        driver: run.task.driver,
        replayed: named.iter().any(|(_, profile)| profile.replayed),
        models: named
            .into_iter()
            .map(|(role, profile)| (role, profile.name.clone()))
            .collect(),
        limits: run.task.limits.clone(),
        root: run
            .services
            .index
            .snapshot()
            .root()
            .to_string_lossy()
            .into_owned(),
        request: run.task.request.clone(),
    }
}

/// Runs the task until it stops, is cancelled or reaches the time limit.
async fn until_stopped(run: &Arc<RunContext>) -> StopReason {
    let stop_reason = tokio::select! {
        biased;
        () = run.cancel.cancelled() => StopReason::Cancelled,
        () = run.budget.time_up() => {
            StopReason::LedgerEmpty { what: time_limit(run) }
        }
        driven = drive(run) => driven.unwrap_or_else(|reason| reason),
    };
    // The run is over even if not all files were read into the index.
    run.services.index.stop_reading();
    stop_reason
}

/// Describes the time limit, and names the test command if the first test run used up the time.
fn time_limit(run: &RunContext) -> String {
    let limit = format!("{} seconds", run.budget.limits().seconds);
    let is_before = {
        let state = run.tests();
        let before = state.before.as_ref();
        let is_cut = before.is_none_or(|report| report.outcome == TestOutcome::TimedOut);
        run.frozen.get().is_none() && is_cut
    };
    match run.services.tests.command().filter(|_| is_before) {
        Some(command) => {
            format!("{limit}, and the tests before the change did not end (`{command}`)")
        }
        None => limit,
    }
}

/// If the run must prove its changes by tests and no test proves them, replaces the stop reason
/// "settled" by a failure.
fn without_proof(run: &RunContext, stop_reason: StopReason) -> StopReason {
    let why = match run.must_prove() && stop_reason.is_settled() {
        true => unproven(run, &stop_reason),
        false => None,
    };
    match why {
        Some(why) => StopReason::Failed {
            error: format!("no test proves the change: {why}"),
        },
        None => stop_reason,
    }
}

/// Runs the stages of a run: tests before the change, search for symbols, choice of the owners,
/// their work, and the final checks.
async fn drive(run: &Arc<RunContext>) -> Result<StopReason, StopReason> {
    if run.world().snapshot.files().is_empty() {
        return Err(StopReason::Failed {
            error: no_files(run),
        });
    }
    if run.must_prove() && run.services.tests.command().is_none() {
        return Err(StopReason::Failed {
            error: format!("tests are required, but none were found: {}", no_tests(run)),
        });
    }
    for file in run.lookup().not_there(&run.task.text) {
        run.not_woken(file.written.clone(), &ActorId::User, file.in_words());
    }
    absent_names(run).await?;
    let examples = async {
        if run.task.try_examples {
            task_examples::before(run).await;
        }
        Ok(())
    };
    tokio::try_join!(tests_and_index(run), examples)?;
    required::note_names(run);
    let candidates = scout::locate(run);
    run.world().located = candidates;
    let frozen = prompt_parts::frozen(run);
    if run.frozen.set(frozen).is_err() {
        return Err(StopReason::Failed {
            error: "internal error: the run was started twice".to_owned(),
        });
    }
    let unpicked = wake_first(run).await?;
    let mut left = settle::settle(run).await;
    left.problems.extend(new_tests::missing(run));
    let unmet = unmet(run);
    run.tests().at_end.problems.extend(unmet.clone());
    if !unmet.is_empty() {
        left.problems.extend(unmet);
        left.problems.extend(names_not_there(run));
    }
    possible_uses::note(run, &lookup_before(run), &changed(run));
    let told = [
        names_not_there(run),
        files_with_old_names(run),
        old_imports(run),
        changed_failures::note(run),
    ];
    run.tests().at_end.problems.extend(told.concat());
    let events = run.log.events();
    let refused = ending::refused(&events);
    left.problems
        .extend(aim::refused(run, &changed(run), &refused));
    left.problems.extend(original_tests::at_end(run).await);
    let stop_reason = stop_reason(run, left);
    if stop_reason.is_settled() {
        new_tests::try_without_the_change(run).await;
        let after = run.world().snapshot.clone();
        let examples = task_examples::with_change(run, &after).await;
        run.tries().at_end = examples;
        let unshown = each_part::unshown(run, &changed(run)).await;
        run.tests().at_end.new_tests.unshown_parts = unshown;
        written_meanwhile::note(run).await;
    }
    Ok(match unpicked {
        Some(why) => without_picks(run, why, stop_reason),
        None => stop_reason,
    })
}

/// Runs the tests before the change and records what the failing tests of the task execute, and
/// reads the project into the index.
async fn tests_and_index(run: &Arc<RunContext>) -> Result<(), StopReason> {
    let index = Arc::clone(&run.world().index);
    let reading = tokio::task::spawn_blocking(move || index.warm());
    if run.services.tests.selects() {
        // A panic of this task is ignored, because the first query of the index will panic as well.
        let _ = reading.await;
        test_some_before(run).await?;
    } else {
        test_before(run, Vec::new(), Duration::MAX).await?;
        let _ = reading.await;
    }
    executions::record(run).await;
    Ok(())
}

/// Looks for names of code in the task that the project does not have, and reports them to the
/// user.
///
/// # Errors
/// Returns a stop reason if the task only renames or deletes such names.
async fn absent_names(run: &Arc<RunContext>) -> Result<(), StopReason> {
    // The tests are not run first, so that the user gets this message at once.
    if !absent::may_be_named(&run.task.text) || !run.task.begin.is_empty() {
        return Ok(());
    }
    let index = Arc::clone(&run.world().index);
    let reading = tokio::task::spawn_blocking(move || index.warm());
    // A panic of this task is ignored, because the first query of the index will panic as well.
    let _ = reading.await;
    let lookup = run.lookup();
    let only = absent::only(&lookup, &run.task.text);
    if !only.is_empty() {
        let why: Vec<String> = only.iter().map(absent::AbsentName::in_words).collect();
        let why = why.join("; ");
        return Err(StopReason::NothingChanged { why });
    }
    for one in absent::near_others(&lookup, &run.task.text) {
        run.not_woken(one.written.clone(), &ActorId::User, one.in_words());
    }
    Ok(())
}

fn no_files(run: &RunContext) -> String {
    format!(
        "{} contains no files to work on (files that .gitignore names are ignored): run in the \
         directory of a project, or create its first file",
        run.services.index.snapshot().root().display()
    )
}

/// If tests can be selected, runs some or all of them before the change. All tests run if there are
/// few, or if the task is about failing tests and names none. Otherwise the tests that the task
/// names run.
async fn test_some_before(run: &Arc<RunContext>) -> Result<(), StopReason> {
    let lookup = run.lookup();
    let named = selection::named_in(&lookup, &ExcludedTests::of(&run.task.text).rest());
    run.tests().selection.named.clone_from(&named);
    let longest = match selection::are_few(&lookup) {
        true => Some(Duration::MAX),
        // The time limit can be long, because no other work runs during this test run.
        false if named.is_empty() && run.goal == Goal::RedTests => Some(test_scope::LONGEST),
        false => None,
    };
    let reach = match (longest, named.is_empty()) {
        (Some(longest), _) => test_before(run, Vec::new(), longest)
            .await?
            .map_or(TestScope::WHOLE, |report| TestScope::after(&report)),
        (None, false) => {
            test_before(run, named, Duration::MAX).await?;
            TestScope::NEAREST
        }
        (None, true) => TestScope::NEAREST,
    };
    run.tests().selection.scope = reach;
    Ok(())
}

/// Runs the tests before the change, and records the failing tests, which do not count against
/// proposals.
///
/// # Errors
/// Returns a stop reason if the test command that the user configured cannot run: without tests,
/// model calls would be wasted.
async fn test_before(
    run: &Arc<RunContext>,
    select: Vec<String>,
    longest: Duration,
) -> Result<Option<TestReport>, StopReason> {
    if run.services.tests.command().is_none() {
        return Ok(None);
    }
    let world = run.world().snapshot.clone();
    let is_whole = select.is_empty();
    let report = test_run::run_tests_within(run, &world, select, longest).await;
    run.event(Event::TestsRun {
        phase: TestPhase::Before,
        proposal: None,
        report: report.clone(),
    });
    if report.outcome == TestOutcome::NotRun && run.services.tests.chosen() == CommandOrigin::ByUser
    {
        return Err(StopReason::Failed {
            error: not_run(&report),
        });
    }
    let failing = failing_ids(&report);
    let mut state = run.tests();
    state.failing = failing.iter().cloned().collect();
    if is_whole {
        state.expected = expected::ran(&report);
    }
    state.failing_before = failing.into_iter().collect();
    state.before = Some(report.clone());
    drop(state);
    required::note_names(run);
    required::note_before(run, &report);
    let shown = required::shown(run);
    let failures = shown.map(|shown| prompt_parts::failures(&shown, FOCUS_MOST));
    let focus = format!("{}\n{}", run.task.text, failures.unwrap_or_default());
    run.world().focus = Arc::new(Focus::of(&focus));
    Ok(Some(report))
}

/// Describes why the user's test command gave no result, and what to do.
fn not_run(report: &TestReport) -> String {
    const LINES: usize = 6;
    const WHY_MOST: usize = 200;
    let how = match report.exit {
        Some(status) => format!("exit status {status}"),
        None => "it could not be started".to_owned(),
    };
    let said: Vec<&str> = report.output.lines().map(str::trim_end).collect();
    let said: Vec<&str> = said.into_iter().filter(|line| !line.is_empty()).collect();
    let is_reason = |line: &&str| line.starts_with("no test ran: ");
    let is_error = |line: &&str| line.contains("error: ") || line.contains("Error: ");
    let reason = said.iter().copied().rfind(is_reason);
    let reason = reason.or_else(|| said.iter().copied().rfind(is_error));
    let reason = reason.or(said.last().copied()).unwrap_or_default();
    let why = match reason
        .strip_prefix("no test ran: ")
        .unwrap_or(reason)
        .trim()
    {
        "" => String::new(),
        why => format!(": {}", head(why, WHY_MOST)),
    };
    let before: Vec<&str> = said.into_iter().filter(|line| *line != reason).collect();
    let before: String = before[before.len().saturating_sub(LINES)..]
        .iter()
        .map(|line| format!("\n  {line}"))
        .collect();
    format!(
        "the test command runs no test: `{}` ({how}){why}{before}\nNo model was asked. Try the command in a \
         shell, then give it by --test or `tests.command`; without one, Starling looks for the tests.",
        report.command
    )
}

/// Picks the symbols where work begins and wakes (starts) their agents. If no symbol was picked,
/// the run continues only while an agent works because the user sent it a message. In this case,
/// returns why no symbol was picked.
async fn wake_first(run: &Arc<RunContext>) -> Result<Option<StopReason>, StopReason> {
    if run.task.driver == Driver::Single {
        return wake_single(run).map(|()| None);
    }
    let picks = match first_picks(run).await {
        Ok(Some(picks)) => picks,
        Ok(None) => return Ok(None),
        Err(why) => {
            return match run.end_unless_at_work() {
                true => Err(why),
                false => Ok(Some(why)),
            };
        }
    };
    let picks: Vec<(SymbolPath, Pick)> = picks
        .into_iter()
        .filter_map(|pick| Some((pick.symbol.parse().ok()?, pick)))
        .collect();
    let named = picks
        .iter()
        .map(|(symbol, pick)| (symbol.clone(), pick.why.clone()))
        .collect();
    run.event(Event::ScoutPicked { symbols: named });
    let targets: Vec<SymbolPath> = picks.iter().map(|(symbol, _)| symbol.clone()).collect();
    let from = match run.task.begin.is_empty() {
        true => ActorId::Scout,
        false => ActorId::User,
    };
    match run.task.begin.is_empty() {
        true => required::note_targets(run, &targets),
        false => required::note_begin(run, &targets),
    }
    // The drafts (changes that the scout wrote) are registered first, so that an agent that starts
    // at once waits for the drafts of the other agents.
    let drafted = picks.iter().filter(|(_, pick)| pick.draft().is_some());
    let drafted = drafted.map(|(symbol, _)| ActorId::Agent(symbol.clone()));
    run.agents().drafts.extend(drafted);
    let mut woken = 0;
    let mut last = "no symbol was found to begin with; name one in the task".to_owned();
    for (symbol, pick) in picks {
        match run.wake_with(
            &symbol,
            Cause::Picked {
                why: pick.why.clone(),
            },
            pick.draft(),
        ) {
            Ok(_) => woken += 1,
            Err(error) => {
                run.draft_arrived(&ActorId::Agent(symbol.clone()));
                last = error.to_string();
                run.not_woken(symbol.to_string(), &from, last.clone());
            }
        }
    }
    if woken == 0 && run.end_unless_at_work() {
        Err(StopReason::NothingChanged { why: last })
    } else {
        Ok(None)
    }
}

/// Starts the single agent.
fn wake_single(run: &Arc<RunContext>) -> Result<(), StopReason> {
    let symbol = SymbolPath::module(FilePath::new(""));
    let why = "carry out the task".to_owned();
    let woken = run.wake(&symbol, Cause::Picked { why });
    woken.map(drop).map_err(|error| failed(&error))
}

/// Returns the symbols where work begins: those that the user named, otherwise those that the scout
/// picked. Returns `None` if the scout reports that no change is needed. The end of the run checks
/// this, as it does for owners.
///
/// # Errors
/// Returns why the run ends if the scout picked no symbol.
async fn first_picks(run: &Arc<RunContext>) -> Result<Option<Vec<Pick>>, StopReason> {
    if run.task.begin.is_empty() {
        return match scout::pick(run).await {
            Ok(picks) => Ok(Some(picks)),
            Err(NoPick::NothingToChange) => Ok(None),
            Err(NoPick::Call(CallFailed::Budget(exhausted))) => Err(StopReason::LedgerEmpty {
                what: exhausted.what,
            }),
            Err(NoPick::Call(CallFailed::Model(error))) => Err(failed(&error)),
            Err(NoPick::Unknown(why)) => Err(StopReason::NothingChanged { why }),
        };
    }
    let named = |symbol: &SymbolPath| Pick {
        symbol: symbol.to_string(),
        why: "named by the user".to_owned(),
        ..Pick::default()
    };
    Ok(Some(run.task.begin.iter().map(named).collect()))
}

/// Returns the stop reason of a run in which no symbol was picked, for the reason `why`, so that
/// only agents worked to which the user sent messages. If the scout failed, the run fails as well,
/// unless tests prove the changes of the agents or the run stopped for another reason.
fn without_picks(run: &RunContext, why: StopReason, stop_reason: StopReason) -> StopReason {
    let has_failed = matches!(why, StopReason::Failed { .. });
    let is_unchanged = matches!(stop_reason, StopReason::NothingChanged { .. });
    let is_unproven = stop_reason.is_settled() && unproven(run, &stop_reason).is_some();
    match has_failed && (is_unchanged || is_unproven) {
        true => why,
        false => stop_reason,
    }
}

fn failed(error: &dyn std::error::Error) -> StopReason {
    StopReason::Failed {
        error: error.to_string(),
    }
}

/// Returns the stop reason of a run in which no agent is at work. `left` contains the remaining
/// failures.
fn stop_reason(run: &RunContext, left: RemainingFailures) -> StopReason {
    let state = run.state();
    if let Some(what) = state.agents.exhausted.clone() {
        return StopReason::LedgerEmpty { what };
    }
    if let Some(error) = state.proposals.why_not_applied() {
        return StopReason::Failed { error };
    }
    let wanted = |id: &String| {
        state.tests.required.ids.contains(id) || !state.tests.failing_before.contains(id)
    };
    let failing: Vec<String> = left.failing.into_iter().filter(wanted).collect();
    if state.proposals.is_nothing_applied() {
        let Unchanged { why, .. } = unchanged(&run.log.events());
        return StopReason::NothingChanged { why };
    }
    let has_problems = !left.problems.is_empty() && !run.task.approval.is_by_person();
    let task = &run.task.text;
    let are_cases = context_failures::are_cases_of_fixed_tests(&state.tests, task, &failing);
    if !failing.is_empty() && !are_cases {
        StopReason::TestsFail { failing }
    } else if has_problems {
        StopReason::ProblemsRemain {
            problems: left.problems,
        }
    } else {
        StopReason::Settled
    }
}
