//! `starling run`: performs one task through the headless editor.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IsTerminal, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::args::{ConfigurationArgs, RunArgs};
use super::compose;
use super::editing::Editing;
use super::fetch;
use super::first_model;
use super::input::{Input, InputSource, Inputs};
use super::languages;
use super::project::{self, Project};
use super::review::{EndedRun, OFFERED_WITHIN, Reviewed};
use super::screen::Screen;
use super::services::{allowed_writes, configuration, doubts, services};
use super::view::prompt::{self, NextLine, PendingQuestion, Prompt, UserCommand};
use super::view::state::{Finished, Review, RunState};
use super::view::summary::{ProjectLifetime, Traces, summary};
use super::view::text::{Line, Style};
use super::view::tree::waiting_for;
use super::{Outcome, WrongUse, log, trust, undo};
use starling_core::{Approval, Dollars, Tokens, Verdict};
use starling_headless::{HeadlessEditor, HeadlessRun, RunNote};
use starling_models::registry::Models;
use starling_platform::files::reads_null_device;
use starling_platform::processes::end_with_parent;
use starling_server::protocol::{EditedDocument, LimitsPatch, RunParams};
use starling_server::{RestorePolicy, WaitingRun};
use starling_swarm::{Proof, ProposalId, ids};
use starling_workspace::{PathPolicy, private_file};

/// Time after a question appears in which keys are dropped, because the user cannot have read it.
const READING: Duration = Duration::from_millis(400);
/// Keys that follow a dropped key within this time are dropped as well: they are the rest of a word.
const WORD: Duration = Duration::from_secs(1);
/// Message about a key that was pressed before the user can have read the question.
const EARLY: &str = "key ignored: the question just appeared; wait a second, then try again";
/// Message about keys that are ignored because several arrived at once.
const TOGETHER: &str = "keys ignored: several came at once; wait a second, then press one key";
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
        undo::say(args.json, &undo::half_applied(&trajectories, &root, None))?;
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
            OutputMode::Terminal => writeln!(io::stdout(), "{line}")?,
            OutputMode::Json => eprintln!("{line}"),
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
    if by_person && (stdin == Stdin::Used || is_empty_device()) {
        // Fail before any model call costs money.
        let message = "the task was read from stdin, so your answers cannot be: use --approve auto or --approve proxy";
        return Err(WrongUse(message.to_owned()).into());
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
    let outcome = viewer.show(root, params, Inputs::of(source)).await?;
    editor.shutdown().await?;
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
        }
        viewer.screen.settle()?;
        Ok(match viewer.stopping {
            true => Reviewed::Stopped,
            false => Reviewed::Through,
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
        self.screen.say(&summary(&self.state, traces))?;
        Ok(self
            .state
            .finished
            .as_ref()
            .map_or(Outcome::NotSettled, outcome))
    }

    async fn watch(&mut self, mut run: HeadlessRun, inputs: &mut Inputs) -> anyhow::Result<()> {
        let mut answers = true;
        let mut logs = self.screen.is_live().then(log::divert);
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut waits = tokio::time::interval(TELL_WAIT);
        waits.tick().await;
        let began = tokio::time::Instant::now();
        loop {
            let next = tokio::select! {
                note = run.notes.recv() => match note {
                    Some(note) => self.note(&note)?,
                    None => NextAction::Stop,
                },
                Some(input) = inputs.next() => {
                    answers &= input != Input::Closed;
                    self.input(input, &run).await?
                }
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
            if let NextAction::Stop = self.take_lines(&run).await? {
                return Ok(());
            }
            if !answers && !self.stopping && !self.state.reviews.is_empty() {
                let why = "stdin is closed, so your answers cannot be read: use --approve auto or --approve proxy";
                if self.ended.is_some() {
                    eprintln!(
                        "starling: stdin is closed, so your answers cannot be read; the proposals still wait for review"
                    );
                    self.stopping = true;
                    return Ok(());
                }
                eprintln!("starling: {why}");
                self.stop(&run).await?;
            }
        }
    }

    fn tell_time(&mut self, began: tokio::time::Instant) {
        let elapsed = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.state.at_ms = self.state.at_ms.max(elapsed);
    }

    fn note(&mut self, note: &RunNote) -> anyhow::Result<NextAction> {
        if let (Some(ended), RunNote::Event(params)) = (&mut self.ended, note)
            && ended.is_earlier(params, &mut self.state)
        {
            if ended.asks(params) {
                self.screen.note(note, &self.state, &self.prompt)?;
            }
            return Ok(NextAction::Go);
        }
        match note {
            RunNote::Event(params) => self.state.take(params.at_ms, &params.event),
            RunNote::Intent(params) => self.state.intent_asked(params.view.clone()),
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

    /// Whether to drop a key because it was typed before the user can have read the question, or
    /// directly after a dropped key. Ctrl-C is never dropped. A key that begins a text, such as a reason,
    /// is dropped only after another dropped key, because the letters that follow it would be taken as
    /// answers. Text that was started before the question continues, but Enter is dropped because it may
    /// have been meant for something else.
    fn is_too_early(&self, key: KeyEvent) -> bool {
        if self.asked.is_none() || key.modifiers.contains(KeyModifiers::CONTROL) {
            return false;
        }
        let just_asked = self.asked_at.elapsed() < READING;
        match self.prompt {
            Prompt::Choosing | Prompt::Kept(_) => {
                self.is_in_dropped_word()
                    || just_asked && !self.prompt.opens_text(key, self.awaited())
            }
            Prompt::Ahead(_) | Prompt::Rejecting(_) | Prompt::Steering(_) => {
                just_asked && key.code == KeyCode::Enter
            }
        }
    }

    /// Whether the last key was dropped so recently that the next one belongs to it.
    fn is_in_dropped_word(&self) -> bool {
        self.dropped_at.is_some_and(|at| at.elapsed() < WORD)
    }

    /// Drops a key. Only the first key of a word causes a message.
    fn drop_key(&mut self, why: &str) -> io::Result<()> {
        let is_told = self.is_in_dropped_word();
        self.dropped_at = Some(Instant::now());
        if is_told {
            return Ok(());
        }
        self.screen.say(&[Line::of(Style::Warning, why)])
    }

    /// Handles keys that came together. What follows the first key that is not used is dropped with
    /// it, as the rest of a word.
    fn burst(
        &mut self,
        keys: &[KeyEvent],
        asked: PendingQuestion,
    ) -> io::Result<Option<UserCommand>> {
        for key in keys {
            if self.is_too_early(*key) {
                self.drop_key(EARLY)?;
                continue;
            }
            match self.prompt.key_of_burst(*key, asked) {
                (Some(said), _) => return Ok(Some(said)),
                (None, true) => {}
                (None, false) => self.drop_key(TOGETHER)?,
            }
        }
        Ok(None)
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
            Input::Line(line)
                if self.lines.is_empty()
                    && self.next_line.is_none()
                    && prompt::line(&line) == UserCommand::Quit =>
            {
                Some(UserCommand::Quit)
            }
            Input::Line(line) => {
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
        let editing = Editing::begin(shown.files, mine)?;
        editing.open(compose::editor()).await?;
        let files = editing.edited()?;
        self.mine.insert(id, files.clone());
        if files.is_empty() {
            return Ok(false);
        }
        self.editor.edit_proposal(&run.id, id, files).await?;
        self.mine.remove(&id);
        Ok(true)
    }

    async fn stop(&mut self, run: &HeadlessRun) -> anyhow::Result<()> {
        self.stopping = true;
        let note = "Stopping... press Ctrl-C again to quit immediately.";
        self.screen.say(&[Line::of(Style::Warning, note)])?;
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

/// Reads all of stdin, for an argument `-`.
///
/// # Errors
/// stdin cannot be read, or is not UTF-8.
pub fn read_stdin() -> anyhow::Result<String> {
    if io::stdin().is_terminal() {
        eprintln!("type the text, then press Ctrl-D:");
    }
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| WrongUse(format!("cannot read stdin: {error}")))?;
    Ok(text)
}

/// Returns the project's root if it is not found from the current directory.
pub fn to_name(root: &Path) -> Option<&Path> {
    let here = project::root(None);
    Some(root).filter(|root| here.is_err() || here.is_ok_and(|here| here != *root))
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
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::Value;

    use super::*;
    use crate::cli::view::prompt::CHOICES;
    use crate::cli::view::text::Paint;
    use starling_core::{IntentView, ProposalView};
    use starling_headless::testing::{
        RunScript, editor, finished, folder, review_asked, said, symbol, task,
    };
    use starling_swarm::{ActorId, Ending, Event, ProposalId, Spent, StopReason};

    /// A writer that collects the output for a test.
    #[derive(Clone, Default)]
    struct CapturedOutput(Arc<Mutex<Vec<u8>>>);

    impl Write for CapturedOutput {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl CapturedOutput {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    /// Asks about an intent and then about two proposals, unless cancelled.
    async fn asks(scene: RunScript) {
        let view = |id| ProposalView {
            id,
            symbol: symbol("a.py::f"),
            symbols: vec![symbol("a.py::f")],
            reason: String::new(),
            diff: String::new(),
            evidence: String::new(),
        };
        let intent = IntentView {
            symbol: symbol("a.py::f"),
            intent: "rename".to_owned(),
            reason: String::new(),
        };
        let approver = &scene.outside.approver;
        let asking = async {
            let verdict = approver.intent(intent).await;
            scene.log.event(Event::IntentReviewed {
                agent: ActorId::Agent(symbol("a.py::f")),
                by: ActorId::User,
                verdict,
            });
            for id in [1, 2] {
                scene.log.event(review_asked(id, "a.py::f"));
                let verdict = approver.proposal(view(id)).await.verdict().unwrap();
                scene.log.event(Event::ProposalReviewed {
                    proposal: ProposalId(id),
                    by: ActorId::User,
                    verdict,
                });
            }
        };
        tokio::select! {
            () = asking => scene.log.event(finished(StopReason::Settled)),
            () = scene.cancel.cancelled() => scene.log.event(finished(StopReason::Cancelled)),
        }
    }

    async fn shown(inputs: &[Input], screen: fn(CapturedOutput) -> Screen) -> (Outcome, String) {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let (tell, heard) = Inputs::channel();
        let paper = CapturedOutput::default();
        let viewer = Viewer::new(&editor, screen(paper.clone()));
        let mut show = std::pin::pin!(viewer.show(folder.path(), task("x"), heard));
        // Give each answer when a new question appears.
        for (asked, input) in inputs.iter().enumerate() {
            let questions =
                |text: String| text.matches(CHOICES).count() + text.matches("\"intent\"").count();
            while questions(paper.text()) <= asked {
                assert!(futures::poll!(&mut show).is_pending(), "it ended early");
                tokio::task::yield_now().await;
            }
            tell.send(input.clone()).unwrap();
        }
        let outcome = show.await.unwrap();
        (outcome, paper.text())
    }

    fn lines(paper: CapturedOutput) -> Screen {
        Screen::lines(Box::new(paper), Paint::Plain)
    }

    #[tokio::test]
    async fn entered_lines_answer_the_questions_in_order() {
        let say = |text: &str| Input::Line(text.to_owned());
        let (outcome, text) = shown(&[say("a"), say("r too long"), say("s shorter")], lines).await;
        assert_eq!(outcome, Outcome::Settled);
        let verdicts: Vec<&str> = text.lines().filter(|line| line.starts_with('•')).collect();
        let expected = [
            "• a.py::f accepted by you",
            "• #1 rejected by you: too long",
            "• #2 steered by you: shorter",
        ];
        assert_eq!(verdicts, expected, "{text}");
    }

    #[tokio::test]
    async fn lines_entered_early_are_kept_for_their_questions() {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let (tell, heard) = Inputs::channel();
        for early in ["y", "r too long", "a"] {
            tell.send(Input::Line(early.to_owned())).unwrap();
        }
        tell.send(Input::Closed).unwrap();
        let paper = CapturedOutput::default();
        let viewer = Viewer::new(&editor, lines(paper.clone()));
        let outcome = viewer.show(folder.path(), task("x"), heard).await.unwrap();
        assert_eq!(outcome, Outcome::Settled);
        let text = paper.text();
        let told = |line: &&str| line.starts_with('•') || *line == CHOICES;
        let expected = [
            CHOICES,
            "• a.py::f accepted by you",
            CHOICES,
            "• #1 rejected by you: too long",
            CHOICES,
            "• #2 accepted by you",
        ];
        assert_eq!(
            text.lines().filter(told).collect::<Vec<_>>(),
            expected,
            "{text}"
        );
    }

    #[tokio::test]
    async fn quit_line_takes_effect_after_the_earlier_lines() {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let (tell, heard) = Inputs::channel();
        for early in ["a", "q"] {
            tell.send(Input::Line(early.to_owned())).unwrap();
        }
        let paper = CapturedOutput::default();
        let viewer = Viewer::new(&editor, lines(paper.clone()));
        let outcome = viewer.show(folder.path(), task("x"), heard).await.unwrap();
        assert_eq!(outcome, Outcome::NotSettled);
        let text = paper.text();
        assert!(text.contains("• a.py::f accepted by you"), "{text}");
        assert_eq!(
            text.matches(CHOICES).count(),
            2,
            "the second was asked: {text}"
        );
    }

    #[test]
    fn outcome_of_a_run_follows_from_its_proof() {
        let of = |proof: Option<Proof>, stop_reason| {
            let ending = proof.map(|proof| Ending {
                proof,
                headline: String::new(),
            });
            outcome(&Finished {
                stop_reason,
                applied: Vec::new(),
                diff: String::new(),
                spent: Spent::default(),
                ending,
                waiting: 0,
            })
        };
        for (proof, expected) in [
            (Proof::Proven, Outcome::Settled),
            (Proof::AsBefore, Outcome::Settled),
            (Proof::NothingToProve, Outcome::Settled),
            (Proof::Unproven, Outcome::Unproven),
            (Proof::NotDone, Outcome::NotSettled),
        ] {
            assert_eq!(of(Some(proof), StopReason::Settled), expected, "{proof:?}");
        }
        assert_eq!(of(None, StopReason::Settled), Outcome::Settled);
        assert_eq!(of(None, StopReason::Cancelled), Outcome::NotSettled);
    }

    #[tokio::test]
    async fn interrupt_cancels_the_run() {
        let (outcome, text) = shown(&[Input::Interrupt], lines).await;
        assert_eq!(outcome, Outcome::NotSettled);
        assert!(
            text.contains("Stopping") && text.contains("cancelled"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn run_with_a_question_is_stopped_if_stdin_is_closed() {
        let (outcome, text) = shown(&[Input::Closed], lines).await;
        assert_eq!(outcome, Outcome::NotSettled);
        assert!(text.contains("cancelled"), "{text}");
    }

    #[tokio::test]
    async fn json_output_has_one_event_per_line_and_ends_with_run_finished() {
        let json = |paper| Screen::json(Box::new(paper));
        let (_, text) = shown(&[Input::Line("q".to_owned())], json).await;
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let last = lines.last().unwrap();
        assert_eq!(last["event"]["event"], "run_finished");
        assert_eq!(last["event"]["stop_reason"]["reason"], "cancelled");
        assert!(last["event"]["spent"].is_object() && last["event"]["diff"].is_string());
    }

    fn key(code: KeyCode) -> Input {
        Input::Key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    /// Creates a viewer that shows its first question.
    async fn asked<'e>(
        editor: &'e HeadlessEditor,
        paper: &CapturedOutput,
    ) -> (Viewer<'e>, HeadlessRun) {
        let mut run = editor.run(task("x")).await.unwrap();
        let mut viewer = Viewer::new(editor, lines(paper.clone()));
        while viewer.state.reviews.is_empty() {
            let note = run.notes.recv().await.unwrap();
            viewer.note(&note).unwrap();
        }
        viewer.ask().unwrap();
        (viewer, run)
    }

    #[tokio::test]
    async fn keys_pressed_right_after_a_question_appears_are_ignored() {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let (mut viewer, run) = asked(&editor, &CapturedOutput::default()).await;
        viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
        assert_eq!(viewer.state.reviews.len(), 1, "too soon");
        age(&mut viewer);
        viewer.input(Input::Resized, &run).await.unwrap();
        viewer
            .input(Input::Pasted("a".to_owned()), &run)
            .await
            .unwrap();
        assert_eq!(viewer.state.reviews.len(), 1, "nobody pressed a key");
        viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
        assert!(viewer.state.reviews.is_empty());
    }

    /// Moves time forward so that keys are no longer too early.
    fn age(viewer: &mut Viewer<'_>) {
        viewer.asked_at -= READING;
        viewer.dropped_at = viewer.dropped_at.map(|at| at - WORD);
    }

    #[tokio::test]
    async fn keys_right_after_an_ignored_key_are_ignored_too() {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let paper = CapturedOutput::default();
        let (mut viewer, run) = asked(&editor, &paper).await;
        viewer.input(key(KeyCode::Char('n')), &run).await.unwrap();
        // By now the question may have been read, but the other letters belong to the first one.
        viewer.asked_at -= READING;
        for code in [
            KeyCode::Char('o'),
            KeyCode::Char('a'),
            KeyCode::Char('r'),
            KeyCode::Enter,
        ] {
            viewer.input(key(code), &run).await.unwrap();
        }
        assert_eq!(viewer.state.reviews.len(), 1, "nothing was answered");
        assert_eq!(viewer.prompt, Prompt::Choosing);
        assert_eq!(paper.text().matches(EARLY).count(), 1, "once for a burst");
        age(&mut viewer);
        viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
        assert!(viewer.state.reviews.is_empty());
    }

    #[tokio::test]
    async fn rejection_reason_on_its_own_line_is_never_read_as_accept() {
        let say = |text: &str| Input::Line(text.to_owned());
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let (tell, heard) = Inputs::channel();
        for line in [
            "r",
            "",
            "r",
            "a plain x",
            "a, but shorter",
            "s",
            "y",
            "r no",
        ] {
            tell.send(say(line)).unwrap();
        }
        tell.send(Input::Closed).unwrap();
        let paper = CapturedOutput::default();
        let viewer = Viewer::new(&editor, lines(paper.clone()));
        viewer.show(folder.path(), task("x"), heard).await.unwrap();
        let text = paper.text();
        let verdicts: Vec<&str> = text.lines().filter(|line| line.starts_with('•')).collect();
        let expected = [
            "• a.py::f rejected by you: a plain x",
            "• #1 steered by you: y",
            "• #2 rejected by you: no",
        ];
        assert_eq!(verdicts, expected, "{text}");
    }

    #[tokio::test]
    async fn rejection_reason_started_early_stays_a_reason() {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let paper = CapturedOutput::default();
        let (mut viewer, run) = asked(&editor, &paper).await;
        viewer.input(key(KeyCode::Char('r')), &run).await.unwrap();
        age(&mut viewer);
        viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
        assert_eq!(viewer.state.reviews.len(), 1);
        assert_eq!(viewer.prompt, Prompt::Rejecting("a".to_owned()));
    }

    #[tokio::test]
    async fn burst_of_keys_does_not_accept_a_proposal() {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let paper = CapturedOutput::default();
        let (mut viewer, run) = asked(&editor, &paper).await;
        age(&mut viewer);
        let keys = |text: &str| {
            let keys = text.chars().map(KeyCode::Char);
            Input::Keys(
                keys.map(|code| KeyEvent::new(code, KeyModifiers::NONE))
                    .collect(),
            )
        };
        viewer.input(keys("a"), &run).await.unwrap();
        viewer.input(keys("xa"), &run).await.unwrap();
        viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
        assert_eq!(viewer.state.reviews.len(), 1, "{}", paper.text());
        assert_eq!(paper.text().matches(TOGETHER).count(), 1);
        age(&mut viewer);
        viewer.input(keys("rad"), &run).await.unwrap();
        assert_eq!(viewer.prompt, Prompt::Rejecting("ad".to_owned()));
    }

    #[tokio::test]
    async fn early_key_does_not_answer_with_the_kept_text() {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let (mut viewer, run) = asked(&editor, &CapturedOutput::default()).await;
        viewer.prompt = Prompt::Kept("shorter".to_owned());
        viewer.input(key(KeyCode::Char('a')), &run).await.unwrap();
        assert_eq!(viewer.state.reviews.len(), 1);
        assert_eq!(viewer.prompt, Prompt::Kept("shorter".to_owned()));
    }

    #[tokio::test]
    async fn control_c_stops_the_run_even_right_after_a_question() {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let (mut viewer, run) = asked(&editor, &CapturedOutput::default()).await;
        viewer.input(key(KeyCode::Char('r')), &run).await.unwrap();
        let stop = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        viewer.input(Input::Key(stop), &run).await.unwrap();
        assert!(viewer.stopping);
    }

    #[tokio::test]
    async fn rejection_reason_can_be_typed_and_pasted() {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let paper = CapturedOutput::default();
        let (mut viewer, mut run) = asked(&editor, &paper).await;
        viewer.asked_at -= READING;
        viewer.input(key(KeyCode::Char('r')), &run).await.unwrap();
        viewer
            .input(Input::Pasted("too\nlong".to_owned()), &run)
            .await
            .unwrap();
        viewer.input(key(KeyCode::Char('!')), &run).await.unwrap();
        viewer.input(key(KeyCode::Enter), &run).await.unwrap();
        while !paper.text().contains("a.py::f rejected by you: too long!") {
            let note = run.notes.recv().await.unwrap();
            viewer.note(&note).unwrap();
        }
        // Text that was typed about one question is not an answer to the next.
        while viewer.state.reviews.is_empty() {
            let note = run.notes.recv().await.unwrap();
            viewer.note(&note).unwrap();
        }
        viewer.prompt = Prompt::Steering("half".to_owned());
        viewer.ask().unwrap();
        assert_eq!(viewer.prompt, Prompt::Choosing);
    }

    #[tokio::test]
    async fn text_typed_without_a_question_is_kept_for_the_next_one() {
        let folder = folder(&[]);
        let editor = editor(&folder, asks).await;
        let mut run = editor.run(task("x")).await.unwrap();
        let paper = CapturedOutput::default();
        let mut viewer = Viewer::new(&editor, lines(paper.clone()));
        let type_in = async |viewer: &mut Viewer<'_>, text: &str, run: &HeadlessRun| {
            for char in text.chars() {
                let code = if char == '\n' {
                    KeyCode::Enter
                } else {
                    KeyCode::Char(char)
                };
                viewer.input(key(code), run).await.unwrap();
            }
        };
        type_in(&mut viewer, "r not li", &run).await;
        while viewer.state.reviews.is_empty() {
            let note = run.notes.recv().await.unwrap();
            viewer.note(&note).unwrap();
        }
        viewer.ask().unwrap();
        // The question has just appeared: the text grows, but Enter does not send it yet.
        type_in(&mut viewer, "ke a\n", &run).await;
        assert_eq!(viewer.state.reviews.len(), 1);
        viewer.asked_at -= READING;
        type_in(&mut viewer, "ny\n", &run).await;
        while !paper
            .text()
            .contains("a.py::f rejected by you: not like any")
        {
            let note = run.notes.recv().await.unwrap();
            viewer.note(&note).unwrap();
        }
    }

    #[tokio::test]
    async fn second_interrupt_quits_without_waiting_for_the_run() {
        let folder = folder(&[]);
        let editor = editor(&folder, async |scene: RunScript| {
            scene.log.event(said("deaf"));
            std::future::pending::<()>().await;
        })
        .await;
        let (tell, heard) = Inputs::channel();
        tell.send(Input::Interrupt).unwrap();
        tell.send(Input::Interrupt).unwrap();
        let viewer = Viewer::new(&editor, lines(CapturedOutput::default()));
        let outcome = viewer.show(folder.path(), task("x"), heard).await.unwrap();
        assert_eq!(outcome, Outcome::NotSettled);
    }
}
