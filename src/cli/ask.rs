//! `starling ask`: answers a question about the code, and streams the answer and its steps.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;

use super::args::AskArgs;
use super::fetch;
use super::first_model;
use super::project::root;
use super::services::{allowed_writes, configuration, doubts};
use super::session_file::SessionFile;
use super::standard::{note, print_line, read_stdin, unless_gone};
use super::status::{Status, while_reading};
use super::view::text::{Line, Paint, Style};
use super::view::words;
use super::{Outcome, WrongUse};
use starling_ask::session::Session;
use starling_ask::step::{OwnerAnswerSource, Step, StepCallback};
use starling_ask::{Answer, AskError, ExplorationEnd, Models, Query, ask};
use starling_config::Config;
use starling_core::{Dollars, Limits, Tokens};
use starling_index::Index;
use starling_models::registry::{self, ModelsError};
use starling_sandbox::cache_dir;
use starling_server::protocol::LimitsPatch;
use starling_swarm::Spent;
use starling_text::{harmless, harmless_json};
use starling_workspace::{PathPolicy, Workspace};

const THINKING: &str = "thinking";

/// Runs the command.
pub async fn run(args: AskArgs) -> anyhow::Result<Outcome> {
    let root = root(args.repo.as_deref())?;
    let text = match args.question.as_str() {
        "-" => read_stdin()?,
        given => given.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(as_wrong_use(AskError::EmptyQuestion));
    }
    let file = args.session.as_deref();
    let file = file
        .map(|path| SessionFile::open(path, &root))
        .transpose()?;
    first_model::choose_once(&root, &args.world, args.json).await?;
    fetch::offer(&root, &args.world, args.json).await?;
    let loaded = configuration(&root, &args.world).map_err(|error| WrongUse(error.to_string()))?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    PathPolicy::of(&root)
        .allowing(&allowed_writes(&loaded.config, &args.world))
        .map_err(|error| WrongUse(error.to_string()))?;
    let workspace = Workspace::open(root).map_err(|error| WrongUse(error.to_string()))?;
    let files = spawn_blocking(move || workspace.snapshot(Default::default())).await?;
    // Fail before the slow loading of weights.
    if files.files().is_empty() {
        return Err(as_wrong_use(AskError::NothingToRead(
            files.root().to_owned(),
        )));
    }
    let session = match &file {
        Some(file) => file.read(&files)?,
        None => Session::new(&files),
    };
    let limits = limits(&args).over(&loaded.config.limits);
    for doubt in doubts(&loaded.config, args.world.model.as_deref()).await {
        note(format_args!("note: {doubt}"));
    }
    let models = models(loaded.config, args.world.model.clone(), &limits).await?;
    let index = while_reading(|| {
        let index = match cache_dir() {
            Some(cache) => Index::open(files, cache),
            None => Index::new(files),
        };
        index.warm();
        index
    });
    index.warn_of_skipped();
    let waiting = Arc::new(AskDisplay::new());
    let watcher: StepCallback = match args.json {
        true => Box::new(|_| {}),
        false => {
            let waiting = Arc::clone(&waiting);
            let paint = Paint::of_stderr();
            Box::new(move |step| waiting.show(step, paint))
        }
    };
    let clock = tokio::spawn(Arc::clone(&waiting).tick());
    let query = Query { text, limits };
    let answered = ask(query, Arc::new(index), models, session, watcher).await;
    clock.abort();
    waiting.end();
    let (answer, session) = answered.map_err(as_wrong_use)?;
    // The session is kept also if stdout cannot be written.
    let written = match args.json {
        true => print_line(harmless_json(&serde_json::to_string_pretty(&answer)?)),
        false => {
            let written = unless_gone(end(&answer, Paint::of_stdout()));
            let cost = Line::of(Style::Dim, &cost(&answer));
            note(cost.paint(Paint::of_stderr()));
            written
        }
    };
    if let Some(file) = file {
        file.keep(&session)?;
    }
    written?;
    Ok(match answer.ended {
        ExplorationEnd::Answered => Outcome::Settled,
        ExplorationEnd::BudgetUsedUp { .. }
        | ExplorationEnd::OutOfTime { .. }
        | ExplorationEnd::ModelFailed { .. }
        | ExplorationEnd::Undecided
        | ExplorationEnd::Unsupported => Outcome::NotSettled,
    })
}

fn limits(args: &AskArgs) -> LimitsPatch {
    LimitsPatch {
        dollars: args.budget_usd.map(Dollars),
        tokens: args.budget_tokens.map(Tokens),
        seconds: args.budget_seconds,
        ..LimitsPatch::default()
    }
}

async fn models(config: Config, choice: Option<String>, limits: &Limits) -> anyhow::Result<Models> {
    let opened = spawn_blocking(move || registry::Models::open(&config, choice.as_deref()));
    let models = opened.await?.map_err(named)?;
    if limits.dollars.is_some() {
        models.require_prices().map_err(named)?;
    }
    Ok(Models {
        reader: models.scout,
        owner: models.agent,
    })
}

fn as_wrong_use(error: AskError) -> anyhow::Error {
    match error.is_wrong_use() {
        true => WrongUse(error.to_string()).into(),
        false => error.into(),
    }
}

/// Converts an error. An unknown model is wrong use; a model that does not respond is not.
fn named(error: ModelsError) -> anyhow::Error {
    match error {
        ModelsError::UnknownName { .. }
        | ModelsError::Ambiguous { .. }
        | ModelsError::Unpriced { .. } => WrongUse(error.to_string()).into(),
        ModelsError::Model(_) => error.into(),
    }
}

/// The display while a question is answered: steps on stderr, the answer on stdout, and a status
/// line.
struct AskDisplay {
    state: Mutex<AskDisplayState>,
}

/// The status line, and what it currently shows.
struct AskDisplayState {
    status: Option<Status>,
    /// The model's current activity.
    doing: String,
    since: Instant,
}

impl AskDisplay {
    fn new() -> AskDisplay {
        let state = AskDisplayState {
            status: Some(Status::new("")),
            doing: THINKING.to_owned(),
            since: Instant::now(),
        };
        AskDisplay {
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, AskDisplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the seconds in the status line.
    async fn tick(self: Arc<Self>) {
        let mut every = tokio::time::interval(Duration::from_millis(500));
        loop {
            every.tick().await;
            self.state().tell();
        }
    }

    fn end(&self) {
        self.state().status = None;
    }

    /// Prints a step. Ignores errors, because stdout or stderr may be closed.
    fn show(&self, step: &Step, paint: Paint) {
        let mut state = self.state();
        if let Step::Writing { tail } = step {
            state.doing = format!("writing: {tail}");
            return state.tell();
        }
        state.beside(|| match step {
            Step::Said { text } => {
                let mut out = io::stdout().lock();
                for line in text.lines() {
                    let _ = writeln!(out, "{}", Line::plain(line).paint(Paint::Plain));
                }
                let _ = out.flush();
            }
            step => {
                for line in lines_of(step) {
                    note(line.fit(140).paint(paint));
                }
            }
        });
        state.doing = THINKING.to_owned();
        state.since = Instant::now();
        state.tell();
    }
}

impl AskDisplayState {
    fn tell(&self) {
        if let Some(status) = &self.status {
            let seconds = self.since.elapsed().as_secs();
            status.say(&format!("{seconds} s  {}", harmless(&self.doing)));
        }
    }

    fn beside(&self, print: impl FnOnce()) {
        match &self.status {
            Some(status) => status.beside(print),
            None => print(),
        }
    }
}

/// Formats a step for the terminal.
fn lines_of(step: &Step) -> Vec<Line> {
    let dim = |text: String| Line::of(Style::Dim, &text);
    match step {
        Step::Located { symbols, millis } => {
            let first: Vec<&str> = symbols
                .iter()
                .take(4)
                .map(|found| found.symbol.as_str())
                .collect();
            let more = match symbols.len() - first.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let found = match first.as_slice() {
                [] => "no symbol for this question".to_owned(),
                first => format!("{}{more}", first.join(", ")),
            };
            vec![dim(format!("located {found} in {millis} ms"))]
        }
        Step::Looked {
            by,
            tool,
            argument,
            outcome,
        } => vec![
            Line::of(Style::Accent, by)
                .and(&format!(" {tool} {argument} "))
                .with(Style::Dim, outcome),
        ],
        Step::Asked {
            symbol,
            question,
            why,
        } => {
            let mut lines = vec![Line::of(Style::Accent, symbol).and(&format!(" ← {question}"))];
            if !why.is_empty() {
                lines.push(dim(format!("  because {why}")));
            }
            lines
        }
        Step::Answered {
            symbol,
            answer,
            source,
        } => {
            let how = match source {
                OwnerAnswerSource::Model => "",
                OwnerAnswerSource::Memory => " (remembered)",
                OwnerAnswerSource::Refused => " (not answered)",
            };
            let answer: Vec<&str> = answer.split_whitespace().collect();
            let text = format!(" →{how} {}", answer.join(" "));
            vec![Line::of(Style::Accent, symbol).and(&text)]
        }
        Step::Enough { turns } => {
            let turns = words::count(*turns as u64, "turn");
            vec![Line::of(Style::Good, "enough").with(Style::Dim, &format!(" after {turns}"))]
        }
        Step::Mended { written, now } => {
            vec![dim(format!("citation corrected: {written} → {now}"))]
        }
        Step::SentBack { claims } => {
            let claims = words::count(claims.len() as u64, "claim");
            let text = format!("sent back to the model: {claims} not supported by the cited code");
            vec![Line::of(Style::Warning, &text)]
        }
        Step::Trouble { who, what } => vec![Line::of(Style::Warning, &format!("{who}: {what}"))],
        Step::Restarted => {
            let text = "the answer starts again: ignore the text above";
            vec![Line::of(Style::Warning, text)]
        }
        Step::Said { .. } | Step::Writing { .. } => Vec::new(),
    }
}

/// Prints the citations of the answer.
fn end(answer: &Answer, out: Paint) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    if !answer.citations.is_empty() {
        writeln!(stdout)?;
    }
    for citation in &answer.citations {
        let line = Line::of(Style::Accent, &citation.place())
            .and(" ")
            .with(Style::Bold, &citation.symbol)
            .with(Style::Dim, &format!(" {}", citation.text));
        writeln!(stdout, "{}", line.fit(140).paint(out))?;
    }
    if let Some(why) = unfinished(&answer.ended) {
        writeln!(stdout, "\n{}", Line::of(Style::Warning, &why).paint(out))?;
    }
    stdout.flush()
}

/// Returns why an answer is incomplete.
fn unfinished(ended: &ExplorationEnd) -> Option<String> {
    let why = match ended {
        ExplorationEnd::Answered => return None,
        ExplorationEnd::BudgetUsedUp { what } => format!("the budget is used up ({what})"),
        ExplorationEnd::OutOfTime { seconds } => format!("the time is up ({seconds} s)"),
        ExplorationEnd::ModelFailed { error } => format!("the model failed ({error})"),
        ExplorationEnd::Undecided => "the model came to no answer".to_owned(),
        ExplorationEnd::Unsupported => {
            let none = "No answer: the code supports no claim of the model's; ask in other words";
            return Some(none.to_owned());
        }
    };
    Some(format!("The answer is incomplete (best so far): {why}."))
}

fn cost(answer: &Answer) -> String {
    let spent = Spent {
        dollars: answer.usd,
        unpriced_calls: answer.unpriced_calls,
        ..Spent::default()
    };
    let mut cost = format!(
        "{}, {} tokens in, {} out, {}, {:.1} s",
        words::count(u64::from(answer.calls), "call"),
        answer.prompt_tokens,
        answer.output_tokens,
        words::cost(&spent),
        answer.seconds
    );
    for (count, what, state) in [
        (answer.dropped.len(), "citation", "dropped"),
        (answer.uncited.len(), "claim", "uncited"),
    ] {
        if count > 0 {
            cost.push_str(&format!(", {} {state}", words::count(count as u64, what)));
        }
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_ask::step::LocatedSymbol;

    fn shown(step: &Step) -> Vec<String> {
        let lines = lines_of(step);
        lines.iter().map(|line| line.paint(Paint::Plain)).collect()
    }

    #[test]
    fn steps_of_answering_a_question_are_described_in_short_lines() {
        let found = |n: u32| LocatedSymbol {
            symbol: format!("a.py::f{n}"),
            why: String::new(),
        };
        let located = Step::Located {
            symbols: (0..6).map(found).collect(),
            millis: 7,
        };
        let text = "located a.py::f0, a.py::f1, a.py::f2, a.py::f3 and 2 more in 7 ms";
        assert_eq!(shown(&located), [text]);
        let nothing = Step::Located {
            symbols: Vec::new(),
            millis: 7,
        };
        let text = "located no symbol for this question in 7 ms";
        assert_eq!(shown(&nothing), [text]);
        let asked = Step::Asked {
            symbol: "a.py::f".to_owned(),
            question: "What is it?".to_owned(),
            why: "g calls it".to_owned(),
        };
        assert_eq!(
            shown(&asked),
            ["a.py::f ← What is it?", "  because g calls it"]
        );
        let answered = |source| Step::Answered {
            symbol: "a.py::f".to_owned(),
            answer: "It is\n\u{1b}[2Jone.".to_owned(),
            source,
        };
        assert_eq!(
            shown(&answered(OwnerAnswerSource::Model)),
            ["a.py::f → It is \\u{1b}[2Jone."]
        );
        let remembered = shown(&answered(OwnerAnswerSource::Memory));
        assert_eq!(remembered, ["a.py::f → (remembered) It is \\u{1b}[2Jone."]);
        let refused = shown(&answered(OwnerAnswerSource::Refused));
        assert_eq!(refused, ["a.py::f → (not answered) It is \\u{1b}[2Jone."]);
        assert_eq!(shown(&Step::Enough { turns: 1 }), ["enough after 1 turn"]);
        assert_eq!(shown(&Step::Enough { turns: 2 }), ["enough after 2 turns"]);
        assert_eq!(shown(&Step::Restarted).len(), 1);
        // The answer itself goes to stdout.
        assert!(
            shown(&Step::Said {
                text: "x".to_owned()
            })
            .is_empty()
        );
    }

    #[test]
    fn summary_of_an_answer_shows_its_cost_and_why_it_is_incomplete() {
        let mut answer = Answer {
            question: "q".to_owned(),
            answer: "a".to_owned(),
            citations: Vec::new(),
            steps: Vec::new(),
            dropped: Vec::new(),
            uncited: Vec::new(),
            ended: ExplorationEnd::Answered,
            calls: 3,
            prompt_tokens: Tokens(18_200),
            output_tokens: Tokens(700),
            usd: Dollars(0.0412),
            unpriced_calls: 0,
            seconds: 12.34,
        };
        let expected = "3 calls, 18.2k tokens in, 700 out, $0.0412, 12.3 s";
        assert_eq!(cost(&answer), expected);
        assert_eq!(unfinished(&answer.ended), None);
        answer.uncited = vec!["x".to_owned()];
        assert_eq!(cost(&answer), format!("{expected}, 1 claim uncited"));
        (answer.calls, answer.usd, answer.unpriced_calls) = (1, Dollars(0.0), 1);
        let unpriced = cost(&answer);
        let expected = "1 call, 18.2k tokens in, 700 out, cost unknown, 12.3 s";
        assert!(unpriced.starts_with(expected), "{unpriced}");
        for (ended, why) in [
            (
                ExplorationEnd::BudgetUsedUp {
                    what: "9 calls".to_owned(),
                },
                "9 calls",
            ),
            (ExplorationEnd::OutOfTime { seconds: 5 }, "5 s"),
            (
                ExplorationEnd::ModelFailed {
                    error: "500".to_owned(),
                },
                "500",
            ),
            (ExplorationEnd::Undecided, "no answer"),
        ] {
            let said = unfinished(&ended).expect("a reason");
            assert!(said.contains("best so far") && said.contains(why), "{said}");
        }
    }
}
