//! `starling run`: performs one task through the headless editor.

mod early;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use early::{EARLY, EARLY_LINE};

use super::args::{ConfigurationArgs, RunArgs};
use super::compose;
use super::editing::Editing;
use super::fetch;
use super::first_model;
use super::input::{Input, InputSource, Inputs};
use super::languages;
use super::lost_output::{before_a_change, result_on_stderr};
use super::project::{Project, to_name};
use super::review::{EndedRun, OFFERED_WITHIN, Reviewed};
use super::screen::Screen;
use super::services::{allowed_writes, configuration, doubts, services};
use super::standard::{note, print_line, read_stdin};
use super::view::prompt::{self, NextLine, PendingQuestion, Prompt, UserCommand};
use super::view::state::{Finished, Review, RunState};
use super::view::summary::{ProjectLifetime, Traces, summary};
use super::view::text::{Line, Style};
use super::view::tree::waiting_for;
use super::{Outcome, WrongUse, killed, log, trust, undo};
use starling_core::{Approval, Dollars, Tokens, Verdict};
use starling_headless::{HeadlessEditor, HeadlessRun, RunNotification};
use starling_models::registry::Models;
use starling_platform::files::reads_null_device;
use starling_platform::processes::end_with_parent;
use starling_server::protocol::{EditedDocument, LimitsPatch, RunParams};
use starling_server::{RestorePolicy, WaitingRun};
use starling_swarm::{Proof, ProposalId, ids};
use starling_workspace::{PathPolicy, private_file};

/// Interval at which the live view is redrawn without events.
const FRAME: Duration = Duration::from_millis(120);

/// Interval at which a dumb terminal reports what the run waits for.
const TELL_WAIT: Duration = Duration::from_secs(15);

/// The output format of a run: for a terminal, or as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    Terminal,
    Json,
}

impl OutputMode {
    pub fn of(json: bool) -> OutputMode {
        match json {
            true => OutputMode::Json,
            false => OutputMode::Terminal,
        }
    }
}

/// Whether stdin is available for the user's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    Free,
    /// The task was read from stdin.
    Used,
}

/// Runs the command.
pub async fn run(args: RunArgs) -> anyhow::Result<Outcome> {
    if let Some(parent) = args.end_with_parent
        && !end_with_parent(parent)?
    {
        anyhow::bail!("the process that started this one has ended");
    }
    let project = Project::find(args.repo.as_deref())?;
    let root = project.root.clone();
    let mut params = RunParams {
        task: args.task.clone(),
        refactoring: args.refactoring.clone(),
        driver: args.driver,
        approve: args.approve,
        limits: LimitsPatch {
            dollars: args.budget_usd.map(Dollars),
            tokens: args.budget_tokens.map(Tokens),
            seconds: args.budget_seconds,
            ..LimitsPatch::default()
        },
        test: args.test.clone(),
        require_tests: args.require_tests,
        // The record of the run names the model, so that a retry uses it again.
        model: args.world.model.clone(),
        ..RunParams::default()
    };
    if params.task.is_empty() && !args.json && compose::can_ask() {
        params.task = compose::write_task(&compose::editor())?;
    }
    let stdin = match params.task.as_str() {
        "-" => Stdin::Used,
        _ => Stdin::Free,
    };
    not_empty(&params.task)?;
    first_model::choose_once(&root, &args.world, args.json || stdin == Stdin::Used).await?;
    fetch::offer(&root, &args.world, args.json || stdin == Stdin::Used).await?;
    check(&root, &params, &args.world, stdin)?;
    trust::ask_once(&root, &args)?;
    if stdin == Stdin::Used {
        params.task = read_stdin()?;
        not_empty(&params.task)?;
    }
    if let Ok(trajectories) = undo::trajectories() {
        let killed = killed::left_by_kills(&trajectories, &root);
        before_a_change(undo::say(args.json, &killed))?;
    }
    let show = OutputMode::of(args.json);
    let mut first = vec![project.describe()];
    if !languages::has_symbols_at(&root) {
        first.push(format!("note: {}", languages::NO_SYMBOLS));
    }
    if let Ok(loaded) = configuration(&root, &args.world) {
        let doubts = doubts(&loaded.config, args.world.model.as_deref()).await;
        first.extend(doubts.into_iter().map(|doubt| format!("note: {doubt}")));
    }
    for line in first {
        match show {
            OutputMode::Terminal => before_a_change(print_line(line))?,
            OutputMode::Json => note(line),
        }
    }
    follow(
        &root,
        params,
        &args.world,
        show,
        stdin,
        ProjectLifetime::Stays,
    )
    .await
}

fn not_empty(task: &str) -> Result<(), WrongUse> {
    match task.trim() {
        "" => Err(WrongUse(
            "the task is empty: describe what to do, for example `starling run \"Fix the late fee\"`"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Whether stdin is the null device.
fn is_empty_device() -> bool {
    reads_null_device(&io::stdin())
}

/// Checks for errors that would make a run fail, before the run starts.
///
/// # Errors
/// [`WrongUse`] with a description of the first problem.
pub fn check(
    root: &Path,
    params: &RunParams,
    world: &ConfigurationArgs,
    stdin: Stdin,
) -> anyhow::Result<()> {
    let config = configuration(root, world)
        .map_err(|error| WrongUse(error.to_string()))?
        .config;
    PathPolicy::of(root)
        .allowing(&allowed_writes(&config, world))
        .map_err(|error| WrongUse(error.to_string()))?;
    let by_person = match params.approve {
        Some(approval) => approval == Approval::Ask,
        None => config.run.approve == starling_core::Approval::Ask,
    };
    let no_answers = match stdin {
        Stdin::Used => Some("the task was read from stdin, so your answers cannot be"),
        Stdin::Free if is_empty_device() => {
            Some("you are to review the changes, but there is no terminal to ask you on")
        }
        Stdin::Free => None,
    };
    if let Some(why) = no_answers.filter(|_| by_person) {
        // Fail before any model call costs money.
        let message = format!("{why}: use --approve auto or --approve proxy");
        return Err(WrongUse(message).into());
    }
    let limit = params.limits.dollars.or(config.limits.dollars);
    let variables = |name: &str| std::env::var(name).ok();
    Models::check(&config, world.model.as_deref(), limit, &variables)
        .map_err(|error| WrongUse(error.to_string()))?;
    Ok(())
}

/// Starts a run and displays it until its end.
pub async fn follow(
    root: &Path,
    params: RunParams,
    world: &ConfigurationArgs,
    show: OutputMode,
    stdin: Stdin,
    tree: ProjectLifetime,
) -> anyhow::Result<Outcome> {
    let editor = HeadlessEditor::start(
        services(world, Handle::current(), RestorePolicy::Nothing)?,
        root,
    )
    .await?;
    let screen = match show {
        OutputMode::Json => Screen::json(Box::new(io::stdout())),
        OutputMode::Terminal => Screen::lively(),
    };
    let source = match (screen.is_live(), stdin) {
        (true, _) => InputSource::Keys,
        (false, Stdin::Free) => InputSource::Lines,
        (false, Stdin::Used) => InputSource::Nothing,
    };
    let viewer = Viewer {
        tree,
        ..Viewer::new(&editor, screen)
    };
    let shown = viewer.show(root, params, Inputs::of(source)).await;
    let ended = editor.shutdown().await;
    let outcome = shown?;
    ended?;
    Ok(outcome)
}

/// The display of one run.
pub struct Viewer<'a> {
    editor: &'a HeadlessEditor,
    state: RunState,
    prompt: Prompt,
    /// The time at which the last question appeared.
    asked_at: Instant,
    /// The time at which the last early key was dropped.
    dropped_at: Option<Instant>,
    screen: Screen,
    /// The review in the last question.
    asked: Option<Review>,
    tree: ProjectLifetime,
    /// Lines that were entered before their questions, in order.
    lines: VecDeque<String>,
    /// Whether the lines are typed in a terminal.
    are_lines_typed: bool,
    /// After an answer without its text, such as `r`: which text the next line of input is, and the
    /// review that it answers.
    next_line: Option<(NextLine, Review)>,
    /// Whether the user has already asked to stop.
    stopping: bool,
    /// The completed run under review.
    ended: Option<EndedRun>,
    /// The user's edits of proposals that the server has not accepted.
    mine: BTreeMap<ProposalId, Vec<EditedDocument>>,
}

/// The next action after an input.
enum NextAction {
    Go,
    /// Open the editor for the proposal in question.
    Edit,
    Stop,
}

impl<'a> Viewer<'a> {
    fn new(editor: &'a HeadlessEditor, screen: Screen) -> Self {
        Viewer {
            editor,
            state: RunState::default(),
            prompt: Prompt::default(),
            asked_at: Instant::now(),
            dropped_at: None,
            screen,
            asked: None,
            tree: ProjectLifetime::Stays,
            lines: VecDeque::new(),
            are_lines_typed: false,
            next_line: None,
            stopping: false,
            ended: None,
            mine: BTreeMap::new(),
        }
    }

    /// Shows the reviews of a completed run until each is answered or skipped.
    pub async fn review(
        editor: &'a HeadlessEditor,
        mut screen: Screen,
        mut run: HeadlessRun,
        waiting: &WaitingRun,
        root: &Path,
        inputs: &mut Inputs,
    ) -> anyhow::Result<Reviewed> {
        screen.say(&EndedRun::head(waiting))?;
        let mut viewer = Viewer::new(editor, screen);
        viewer.state = EndedRun::state(waiting);
        viewer.ended = Some(EndedRun::new(waiting, root));
        let first = tokio::time::timeout(OFFERED_WITHIN, run.notes.recv()).await;
        let Ok(Some(first)) = first else {
            let id = &waiting.id.0;
            anyhow::bail!(
                "run {id} cannot be reviewed, because another program has opened it: try again later"
            );
        };
        if let NextAction::Go = viewer.note(&first)? {
            viewer.ask()?;
            viewer.watch(run, inputs).await?;
            inputs.give_back(std::mem::take(&mut viewer.lines));
        }
        viewer.screen.settle()?;
        viewer.screen.end()?;
        Ok(match viewer.stopping {
            true => Reviewed::Stopped,
            false => Reviewed::Completed,
        })
    }

    /// Starts a run and displays it, up to the summary.
    async fn show(
        mut self,
        root: &Path,
        params: RunParams,
        mut inputs: Inputs,
    ) -> anyhow::Result<Outcome> {
        let run = self.editor.run(params).await?;
        let trajectory = run.trajectory.clone();
        self.watch(run, &mut inputs).await?;
        self.screen.settle()?;
        write_patch(&self.state, &trajectory);
        let traces = Traces {
            trajectory: &trajectory,
            repo: to_name(root),
            tree: self.tree,
        };
        let summary = summary(&self.state, traces);
        self.screen.say(&summary)?;
        if let Err(error) = self.screen.end() {
            return Ok(result_on_stderr(&error, &summary));
        }
        Ok(self
            .state
            .finished
            .as_ref()
            .map_or(Outcome::NotSettled, outcome))
    }

    async fn watch(&mut self, mut run: HeadlessRun, inputs: &mut Inputs) -> anyhow::Result<()> {
        self.are_lines_typed = inputs.typed;
        let mut logs = self.screen.is_live().then(log::divert);
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut waits = tokio::time::interval(TELL_WAIT);
        waits.tick().await;
        let began = tokio::time::Instant::now();
        loop {
            self.tell_question(inputs);
            let next = tokio::select! {
                note = run.notes.recv() => match note {
                    Some(note) => self.note(&note)?,
                    None => NextAction::Stop,
                },
                Some(input) = inputs.next() => self.input(input, &run).await?,
                Some(line) = next_log(&mut logs) => {
                    self.screen.say(&[Line::of(Style::Dim, &line)])?;
                    self.screen.draw(&self.state, &self.prompt)?;
                    NextAction::Go
                }
                _ = waits.tick(), if self.screen.is_dumb_terminal() => {
                    self.tell_time(began);
                    self.screen.say(&waiting_for(&self.state))?;
                    NextAction::Go
                }
                _ = frames.tick(), if self.screen.is_live() => {
                    self.tell_time(began);
                    self.state.reading = starling_index::reading();
                    self.screen.draw(&self.state, &self.prompt)?;
                    NextAction::Go
                }
            };
            match next {
                NextAction::Go => {}
                NextAction::Edit => self.edit(&run, inputs).await?,
                NextAction::Stop => return Ok(()),
            }
            self.ask()?;
            self.tell_question(inputs);
            if let NextAction::Stop = self.take_lines(&run).await? {
                return Ok(());
            }
            if let Some(why) = self.unanswerable(!inputs.are_closed()) {
                if self.ended.is_some() {
                    note(format_args!(
                        "starling: {why}; the proposals still wait for review"
                    ));
                    self.stopping = true;
                    return Ok(());
                }
                note(format_args!(
                    "starling: {why}: use --approve auto or --approve proxy"
                ));
                self.cancel(&run).await?;
            }
        }
    }

    /// Tells the reader of the inputs when the last question appeared.
    fn tell_question(&self, inputs: &Inputs) {
        if self.asked.is_some() {
            inputs.asked(self.asked_at);
        }
    }

    /// Returns why the open reviews can have no answer. `answers` is whether stdin is open.
    fn unanswerable(&self, answers: bool) -> Option<&'static str> {
        if self.stopping || self.state.reviews.is_empty() {
            None
        } else if self.screen.is_gone() {
            Some("stdout is closed, so its questions cannot be shown")
        } else if !answers {
            Some("stdin is closed, so your answers cannot be read")
        } else {
            None
        }
    }

    fn tell_time(&mut self, began: tokio::time::Instant) {
        let elapsed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.state.at_ms = self.state.at_ms.max(elapsed);
    }

    fn note(&mut self, note: &RunNotification) -> anyhow::Result<NextAction> {
        if let (Some(ended), RunNotification::Event(params)) = (&mut self.ended, note)
            && ended.is_earlier(params, &mut self.state)
        {
            if ended.asks(params) {
                self.screen.note(note, &self.state, &self.prompt)?;
            }
            return Ok(NextAction::Go);
        }
        match note {
            RunNotification::Event(params) => self.state.take(params.at_ms, &params.event),
            RunNotification::Intent(params) => self.state.intent_asked(params.view.clone()),
        }
        self.screen.note(note, &self.state, &self.prompt)?;
        match self.state.finished {
            Some(_) => Ok(NextAction::Stop),
            None => Ok(self.through()),
        }
    }

    /// Stops after the last answer about a completed run, even if some proposals were skipped.
    fn through(&self) -> NextAction {
        let nothing_left = |ended: &EndedRun| ended.is_through(&self.state);
        match self.ended.as_ref().is_some_and(nothing_left) {
            true => NextAction::Stop,
            false => NextAction::Go,
        }
    }

    /// Shows the first review, unless it is already shown.
    fn ask(&mut self) -> io::Result<()> {
        if let (Some(ended), Some(Review::Proposal { id, .. })) =
            (&self.ended, self.state.reviews.front())
            && self.state.reviews.front() != self.asked.as_ref()
        {
            let id = *id;
            ended.renew(id, &mut self.state);
        }
        let first = self.state.reviews.front();
        if first != self.asked.as_ref() {
            self.asked = first.cloned();
            self.prompt.asked();
            self.asked_at = Instant::now();
            if let Some(review) = &self.asked {
                self.screen.ask(review, &self.state)?;
                self.screen.draw(&self.state, &self.prompt)?;
            }
        }
        Ok(())
    }

    /// Returns the kind of question that waits for an answer.
    fn awaited(&self) -> PendingQuestion {
        match self.state.reviews.is_empty() {
            true => PendingQuestion::Nothing,
            false if self.state.agents_are_gone => PendingQuestion::OfEnded,
            false => PendingQuestion::Waiting,
        }
    }

    async fn input(&mut self, input: Input, run: &HeadlessRun) -> anyhow::Result<NextAction> {
        let asked = self.awaited();
        let said = match input {
            Input::Key(key) if self.is_too_early(key) => {
                self.drop_key(EARLY)?;
                None
            }
            Input::Key(key) => self.prompt.key(key, asked),
            Input::Keys(keys) => self.burst(&keys, asked)?,
            Input::Pasted(text) => {
                self.prompt.paste(&text);
                None
            }
            Input::Interrupt => Some(UserCommand::Quit),
            // Quitting takes effect immediately, unless earlier lines wait for their questions.
            Input::Line(line) | Input::EarlyLine(line)
                if self.lines.is_empty()
                    && self.next_line.is_none()
                    && prompt::line(&line) == UserCommand::Quit =>
            {
                Some(UserCommand::Quit)
            }
            Input::Line(line) if self.accepts_too_early(&line) => {
                self.screen.say(&[Line::of(Style::Warning, EARLY_LINE)])?;
                None
            }
            Input::EarlyLine(line) if self.accepts(&line) => {
                self.screen.say(&[Line::of(Style::Warning, EARLY_LINE)])?;
                None
            }
            Input::Line(line) | Input::EarlyLine(line) => {
                self.lines.push_back(line);
                None
            }
            Input::Resized | Input::Closed => None,
        };
        match said {
            Some(said) => self.follow(said, run).await,
            None => {
                self.screen.draw(&self.state, &self.prompt)?;
                Ok(NextAction::Go)
            }
        }
    }

    /// Answers questions with the entered lines in order. Early lines wait for their questions.
    async fn take_lines(&mut self, run: &HeadlessRun) -> anyhow::Result<NextAction> {
        while !self.state.reviews.is_empty()
            && let Some(line) = self.lines.pop_front()
        {
            let Some(said) = self.said_by_line(&line)? else {
                continue;
            };
            if let NextAction::Stop = self.follow(said, run).await? {
                return Ok(NextAction::Stop);
            }
            self.ask()?;
        }
        Ok(NextAction::Go)
    }

    /// Returns the answer that a line completes. If a line names an answer without its text (such as `r`
    /// without a reason), the whole next line becomes that text.
    fn said_by_line(&mut self, line: &str) -> io::Result<Option<UserCommand>> {
        if let Some((next, review)) = self.next_line.take() {
            if self.state.reviews.front() != Some(&review) {
                let why = format!(
                    "line ignored, because its question is no longer open: {}",
                    line.trim()
                );
                self.screen.say(&[Line::of(Style::Warning, &why)])?;
                return Ok(None);
            }
            let said = next.said(line);
            if said.is_none() {
                self.screen.say(&[Line::plain(self.state.choices())])?;
            }
            return Ok(said);
        }
        let next = NextLine::after(line, self.awaited());
        if let (Some(next), Some(review)) = (next, self.state.reviews.front()) {
            self.next_line = Some((next, review.clone()));
            self.screen.say(&[Line::plain(next.question())])?;
            return Ok(None);
        }
        Ok(Some(self.said(line)))
    }

    /// Parses an answer that was entered as a line.
    fn said(&self, line: &str) -> UserCommand {
        match self.ended {
            Some(_) => prompt::line_of_ended(line),
            None => prompt::line(line),
        }
    }

    async fn follow(&mut self, said: UserCommand, run: &HeadlessRun) -> anyhow::Result<NextAction> {
        match said {
            UserCommand::Quit if self.stopping => return Ok(NextAction::Stop),
            // Open reviews stay open.
            UserCommand::Quit if self.ended.is_some() => {
                self.stopping = true;
                return Ok(NextAction::Stop);
            }
            UserCommand::Quit => self.stop(run).await?,
            UserCommand::Verdict(verdict) => self.answer(run, verdict).await?,
            UserCommand::Edit => return Ok(NextAction::Edit),
            UserCommand::Skip => {
                if let (Some(review), Some(ended)) = (self.state.answered(), &mut self.ended) {
                    ended.skipped(&review);
                }
                if let NextAction::Stop = self.through() {
                    return Ok(NextAction::Stop);
                }
            }
            UserCommand::Help => {
                let keys = prompt::keys(self.awaited()).iter();
                let mut keys: Vec<Line> = keys.map(|line| Line::of(Style::Dim, line)).collect();
                // The live view shows the choices anyway.
                if !self.screen.is_live() {
                    keys.push(Line::plain(self.state.choices()));
                }
                self.screen.say(&keys)?;
            }
        }
        self.screen.draw(&self.state, &self.prompt)?;
        Ok(NextAction::Go)
    }

    async fn answer(&mut self, run: &HeadlessRun, verdict: Verdict) -> anyhow::Result<()> {
        let Some(review) = self.state.answered() else {
            self.screen
                .say(&[Line::plain("no question is waiting for an answer")])?;
            return Ok(());
        };
        if let (Some(ended), Review::Proposal { id, .. }) = (&mut self.ended, &review) {
            ended.answered(*id);
        }
        let waits = match verdict {
            Verdict::Accept => self.waits_for_needed(&review),
            Verdict::Reject { .. } | Verdict::Steer { .. } => None,
        };
        let target = review.target();
        let answered = match verdict {
            Verdict::Accept => self.editor.accept(&run.id, target).await,
            Verdict::Reject { reason } => self.editor.reject(&run.id, target, &reason).await,
            Verdict::Steer { text } => self.editor.steer(&run.id, target, &text).await,
        };
        match answered {
            Ok(()) => self.screen.say(waits.as_slice())?,
            // The answer was too late; the run continues.
            Err(error) => self
                .screen
                .say(&[Line::of(Style::Warning, &error.to_string())])?,
        }
        Ok(())
    }

    /// Returns what is said when a proposal is accepted that is applied only after others.
    fn waits_for_needed(&self, review: &Review) -> Option<Line> {
        let Review::Proposal { id, .. } = review else {
            return None;
        };
        let needs = self.state.proposal(*id)?.evidence.as_ref()?.needs();
        let text = format!("{id} is applied only after {}", ids(needs));
        (!needs.is_empty()).then(|| Line::of(Style::Dim, &text))
    }

    /// Opens the proposal in question in the user's editor and sends the result.
    async fn edit(&mut self, run: &HeadlessRun, inputs: &mut Inputs) -> anyhow::Result<()> {
        let said = match self.state.reviews.front() {
            Some(Review::Proposal { id, .. }) => {
                let id = *id;
                inputs.pause(true).await;
                self.screen.leave(true)?;
                let edited = self.edited(run, id).await;
                self.screen.leave(false)?;
                inputs.pause(false).await;
                match edited {
                    // An event will report that the result is being checked.
                    Ok(true) => None,
                    Ok(false) => Some(format!("you changed nothing: {id} still waits for review")),
                    Err(error) => Some(format!("{error:#}")),
                }
            }
            Some(Review::Intent(_)) => Some("only a proposal can be edited".to_owned()),
            None => Some("no question is waiting for an answer".to_owned()),
        };
        let said = said.map(|said| Line::of(Style::Warning, &said));
        self.screen.say(said.as_slice())?;
        self.screen.draw(&self.state, &self.prompt)?;
        Ok(())
    }

    /// Lets the user edit a proposal and sends the changed files. Returns whether a file was
    /// changed.
    async fn edited(&mut self, run: &HeadlessRun, id: ProposalId) -> anyhow::Result<bool> {
        let shown = self.editor.proposal(&run.id, id).await?;
        let mine = self.mine.get(&id).map_or(&[][..], Vec::as_slice);
        let shown_version = shown.state.version;
        let editing = Editing::begin(shown.files, mine)?;
        editing.open(compose::editor()).await?;
        let files = editing.edited()?;
        self.mine.insert(id, files.clone());
        if files.is_empty() {
            return Ok(false);
        }
        let edited = (id, shown_version);
        self.editor.edit_proposal(&run.id, edited, files).await?;
        self.mine.remove(&id);
        Ok(true)
    }

    /// Stops the run because the user asked for it.
    async fn stop(&mut self, run: &HeadlessRun) -> anyhow::Result<()> {
        let note = "Stopping... press Ctrl-C again to quit immediately.";
        self.screen.say(&[Line::of(Style::Warning, note)])?;
        self.cancel(run).await
    }

    async fn cancel(&mut self, run: &HeadlessRun) -> anyhow::Result<()> {
        self.stopping = true;
        self.editor.cancel_keeping_reviews(&run.id).await?;
        Ok(())
    }
}

fn outcome(finished: &Finished) -> Outcome {
    match finished.ending.as_ref().map(|ending| ending.proof) {
        Some(Proof::Proven | Proof::AsBefore | Proof::NothingToProve) => Outcome::Settled,
        Some(Proof::Unproven) => Outcome::Unproven,
        Some(Proof::NotDone) => Outcome::NotSettled,
        None if finished.stop_reason.is_settled() => Outcome::Settled,
        None => Outcome::NotSettled,
    }
}

/// Returns the next log line. Never completes if logs go to stderr.
async fn next_log(logs: &mut Option<mpsc::UnboundedReceiver<String>>) -> Option<String> {
    match logs {
        Some(logs) => logs.recv().await,
        None => std::future::pending().await,
    }
}

/// Writes the complete change to a patch file next to the trajectory, for other programs.
fn write_patch(state: &RunState, trajectory: &Path) {
    let diff = state.finished.as_ref().map_or("", |one| &one.diff);
    if diff.is_empty() {
        return;
    }
    let path = trajectory.with_extension("patch");
    let written = private_file(&path).and_then(|mut file| file.write_all(diff.as_bytes()));
    if let Err(error) = written {
        tracing::warn!(path = %path.display(), %error, "cannot write the patch file");
    }
}

#[cfg(test)]
mod tests;
