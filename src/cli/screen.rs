//! Displays a run: as JSON lines, plain lines, or a live view at the bottom of a terminal.

use std::io::{self, IsTerminal, Write};

use crossterm::cursor::{Hide, MoveToColumn, MoveUp, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{execute, queue};

use super::standard::SurvivingWriter;
use super::terminal::{is_dumb, size};
use super::view::prompt::Prompt;
use super::view::state::{Review, RunState};
use super::view::story;
use super::view::text::{Line, Paint, Style};
use super::view::tree::view;
use starling_headless::RunNotification;
use starling_text::harmless_json;

/// A display of a run and its output stream.
pub struct Screen {
    kind: OutputKind,
    out: SurvivingWriter,
    /// Whether the user was told to press Enter after a key.
    is_enter_told: bool,
}

/// Printed once if keys cannot be read individually.
const ENTER: &str = "press Enter after each key, because this terminal cannot show a live view";

/// The output format of a screen.
#[derive(Debug)]
enum OutputKind {
    /// One event for each line, as JSON.
    Json,
    /// Lines of text that are never redrawn.
    Lines(Paint),
    /// Lines of text, and below them a view that is redrawn.
    Live(Live),
}

/// The live view and its drawn lines.
#[derive(Debug)]
pub struct Live {
    paint: Paint,
    /// Widths of the drawn lines at the bottom.
    drawn: Vec<usize>,
}

impl Screen {
    pub fn json(out: Box<dyn Write + Send>) -> Screen {
        Screen::of(OutputKind::Json, out)
    }

    pub fn lines(out: Box<dyn Write + Send>, paint: Paint) -> Screen {
        Screen::of(OutputKind::Lines(paint), out)
    }

    fn of(kind: OutputKind, out: Box<dyn Write + Send>) -> Screen {
        Screen {
            kind,
            out: SurvivingWriter::new(out),
            is_enter_told: false,
        }
    }

    /// Creates a live view if stdin and stdout are a terminal, or plain lines otherwise.
    pub fn lively() -> Screen {
        let paint = Paint::of_stdout();
        let mut out = Box::new(io::stdout());
        let terminal = out.is_terminal() && io::stdin().is_terminal();
        if !terminal || is_dumb() || enable_raw_mode().is_err() {
            return Screen::lines(out, paint);
        }
        // A visible cursor is harmless, so errors are ignored.
        let _ = execute!(out, Hide, EnableBracketedPaste);
        let live = Live {
            paint,
            drawn: Vec::new(),
        };
        Screen::of(OutputKind::Live(live), out)
    }

    pub fn is_live(&self) -> bool {
        match self.kind {
            OutputKind::Live(_) => true,
            OutputKind::Json | OutputKind::Lines(_) => false,
        }
    }

    /// Whether plain lines go to a terminal without cursor movement.
    pub fn is_dumb_terminal(&self) -> bool {
        matches!(self.kind, OutputKind::Lines(_)) && io::stdout().is_terminal()
    }

    /// Whether nobody sees the display, because an earlier write failed.
    pub fn is_gone(&self) -> bool {
        self.out.is_gone()
    }

    /// Ends the output.
    ///
    /// # Errors
    /// A part of the output is missing, although its reader is still there.
    pub fn end(&mut self) -> io::Result<()> {
        self.out.end()
    }

    /// Displays an event or intent of the run.
    pub fn note(
        &mut self,
        note: &RunNotification,
        state: &RunState,
        prompt: &Prompt,
    ) -> io::Result<()> {
        if let OutputKind::Json = self.kind {
            writeln!(self.out, "{}", harmless_json(&json(note)?))?;
            return self.out.flush();
        }
        let lines = match note {
            RunNotification::Event(params) => story::tell(&params.event, state),
            RunNotification::Intent(_) => Vec::new(),
        };
        self.say(&lines)?;
        self.draw(state, prompt)
    }

    /// Displays a review that waits for the user.
    pub fn ask(&mut self, review: &Review, state: &RunState) -> io::Result<()> {
        let mut lines = story::question(review, state);
        if let OutputKind::Lines(_) = self.kind {
            lines.push(Line::plain(state.choices()));
            if self.is_dumb_terminal() && io::stdin().is_terminal() && !self.is_enter_told {
                self.is_enter_told = true;
                lines.push(Line::of(Style::Dim, ENTER));
            }
        }
        self.say(&lines)
    }

    /// Prints permanent lines.
    pub fn say(&mut self, lines: &[Line]) -> io::Result<()> {
        match &mut self.kind {
            OutputKind::Json => {}
            OutputKind::Lines(paint) => {
                for line in lines {
                    writeln!(self.out, "{}", line.paint(*paint))?;
                }
            }
            OutputKind::Live(live) => {
                let width = usize::from(size().0).saturating_sub(1);
                queue!(self.out, BeginSynchronizedUpdate)?;
                live.clear(&mut self.out)?;
                for line in lines.iter().flat_map(|line| line.clone().wrap(width)) {
                    write!(self.out, "{}\r\n", line.paint(live.paint))?;
                }
                queue!(self.out, EndSynchronizedUpdate)?;
            }
        }
        self.out.flush()
    }

    /// Redraws the live view.
    pub fn draw(&mut self, state: &RunState, prompt: &Prompt) -> io::Result<()> {
        let OutputKind::Live(live) = &mut self.kind else {
            return Ok(());
        };
        let (width, height) = size();
        let mut lines = view(state, prompt, usize::from(width).saturating_sub(1));
        fit(&mut lines, usize::from(height).saturating_sub(1).max(1));
        queue!(self.out, BeginSynchronizedUpdate)?;
        live.clear(&mut self.out)?;
        for line in &lines {
            write!(self.out, "{}\r\n", line.paint(live.paint))?;
        }
        live.drawn = lines.iter().map(Line::width).collect();
        queue!(self.out, EndSynchronizedUpdate)?;
        self.out.flush()
    }

    /// Hands the terminal to another program, or takes it back.
    pub fn leave(&mut self, leaves: bool) -> io::Result<()> {
        self.say(&[])?;
        if let OutputKind::Live(_) = self.kind {
            match leaves {
                true => {
                    execute!(self.out, Show, DisableBracketedPaste)?;
                    disable_raw_mode()?;
                }
                false => {
                    enable_raw_mode()?;
                    execute!(self.out, Hide, EnableBracketedPaste)?;
                }
            }
        }
        Ok(())
    }

    /// Ends the live view. Later output consists of plain lines.
    pub fn settle(&mut self) -> io::Result<()> {
        if let OutputKind::Live(live) = &self.kind {
            let paint = live.paint;
            self.say(&[])?;
            self.kind = OutputKind::Lines(paint);
        }
        Ok(())
    }
}

/// Removes lines until the view fits. The header and the end of the input stay longest.
fn fit(lines: &mut Vec<Line>, room: usize) {
    let over = lines.len().saturating_sub(room);
    let header = usize::from(room > 1);
    lines.drain(header..header + over);
}

impl Live {
    /// Clears the drawn lines, even if the terminal has become narrower.
    fn clear(&mut self, out: &mut impl Write) -> io::Result<()> {
        let width = usize::from(size().0).max(1);
        let rows: usize = self
            .drawn
            .drain(..)
            .map(|line| line.div_ceil(width).max(1))
            .sum();
        if let Ok(rows @ 1..) = u16::try_from(rows) {
            queue!(out, MoveUp(rows))?;
        }
        queue!(out, MoveToColumn(0), Clear(ClearType::FromCursorDown))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Best effort: the terminal may be closed.
        let _ = execute!(io::stdout(), Show, DisableBracketedPaste);
        let _ = disable_raw_mode();
    }
}

fn json(note: &RunNotification) -> io::Result<String> {
    match note {
        RunNotification::Event(params) => Ok(serde_json::to_string(params)?),
        RunNotification::Intent(params) => {
            let line = serde_json::json!({"run": params.run, "intent": params.view});
            Ok(line.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::cli::view::prompt::CHOICES;
    use starling_core::IntentView;
    use starling_server::protocol::{EventParams, IntentParams};
    use starling_swarm::{Event, RunId};

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
        /// Returns the output since the last call.
        fn take(&self) -> String {
            let bytes = std::mem::take(&mut *self.0.lock().unwrap());
            String::from_utf8(bytes).unwrap()
        }
    }

    fn live(paper: &CapturedOutput) -> Screen {
        let live = Live {
            paint: Paint::Plain,
            drawn: Vec::new(),
        };
        Screen::of(OutputKind::Live(live), Box::new(paper.clone()))
    }

    fn steered(text: &str) -> RunNotification {
        RunNotification::Event(Box::new(EventParams {
            run: RunId("r".to_owned()),
            seq: 3,
            at_ms: 5,
            event: Event::Steered {
                to: None,
                text: text.to_owned(),
            },
        }))
    }

    fn intent() -> IntentView {
        IntentView {
            symbol: "a.py::f".parse().unwrap(),
            intent: "take a list".to_owned(),
            reason: "callers have one".to_owned(),
        }
    }

    fn show(screen: &mut Screen, note: &RunNotification) {
        let (state, prompt) = (RunState::default(), Prompt::default());
        screen.note(note, &state, &prompt).unwrap();
    }

    #[test]
    fn json_output_contains_only_events() {
        let paper = CapturedOutput::default();
        let mut screen = Screen::json(Box::new(paper.clone()));
        show(&mut screen, &steered("two\nlines"));
        let line = paper.take();
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert_eq!((&read["run"], &read["seq"]), (&"r".into(), &3.into()));
        assert_eq!(read["event"]["text"], "two\nlines");
        let view = intent();
        let run = RunId("r".to_owned());
        show(
            &mut screen,
            &RunNotification::Intent(Box::new(IntentParams { run, view })),
        );
        let read: serde_json::Value = serde_json::from_str(&paper.take()).unwrap();
        assert_eq!(read["intent"]["symbol"], "a.py::f");
        screen.say(&[Line::plain("words")]).unwrap();
        let review = Review::Intent(intent());
        screen.ask(&review, &RunState::default()).unwrap();
        assert_eq!(paper.take(), "");
    }

    #[test]
    fn line_mode_prints_the_question_with_the_choices() {
        let paper = CapturedOutput::default();
        let mut screen = Screen::lines(Box::new(paper.clone()), Paint::Plain);
        show(&mut screen, &steered("faster"));
        assert_eq!(paper.take(), "→ you faster\n");
        let review = Review::Intent(intent());
        screen.ask(&review, &RunState::default()).unwrap();
        let asked = paper.take();
        assert!(asked.contains("a.py::f asks to take a list\n"), "{asked}");
        assert!(asked.ends_with(&format!("{CHOICES}\n")), "{asked}");
        let state = RunState::default();
        screen.draw(&state, &Prompt::default()).unwrap();
        assert_eq!(paper.take(), "", "there is nothing to draw over");
    }

    #[test]
    fn in_a_low_window_the_first_and_last_lines_stay_visible() {
        let fitted = |room: usize| -> Vec<String> {
            let mut lines: Vec<Line> = ["header", "one", "two", "asked", "typed"]
                .iter()
                .map(|text| Line::plain(text))
                .collect();
            fit(&mut lines, room);
            lines.iter().map(|line| line.paint(Paint::Plain)).collect()
        };
        assert_eq!(fitted(9).len(), 5);
        assert_eq!(fitted(5).len(), 5);
        assert_eq!(fitted(4), ["header", "two", "asked", "typed"]);
        assert_eq!(fitted(2), ["header", "typed"]);
        assert_eq!(fitted(1), ["typed"]);
    }

    #[test]
    fn live_view_redraws_itself_below_the_printed_lines() {
        let paper = CapturedOutput::default();
        let mut screen = live(&paper);
        assert!(screen.is_live());
        let mut state = RunState::default();
        state.intent_asked(intent());
        screen.draw(&state, &Prompt::default()).unwrap();
        let first = paper.take();
        assert!(!first.contains("\x1b[4A"), "nothing was above: {first:?}");
        // The header, the agent, the question and the choices.
        assert_eq!(first.matches("\r\n").count(), 4, "{first:?}");
        show(&mut screen, &steered("faster"));
        let second = paper.take();
        let (up, said) = (second.find("\x1b[4A"), second.find("→ you faster\r\n"));
        assert!(up.is_some() && up < said, "{second:?}");
        screen.settle().unwrap();
        assert!(!screen.is_live());
        paper.take();
        screen.say(&[Line::plain("over")]).unwrap();
        assert_eq!(paper.take(), "over\n");
    }
}
