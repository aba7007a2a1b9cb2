//! Parses the user's answers, by key or by line.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::text::{Line, Style};
use starling_core::Verdict;

/// A command of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserCommand {
    /// The verdict on the first review.
    Verdict(Verdict),
    /// Edit the first review's proposal.
    Edit,
    /// Skip the first review.
    Skip,
    /// End the run.
    Quit,
    /// Unknown input: show the available answers.
    Help,
}

/// The state of a partly typed answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Prompt {
    #[default]
    Choosing,
    /// Text that was started before a question and is still being typed. Its keys are not answers.
    Ahead(String),
    /// Text that was completed before a question. An answer can use it.
    Kept(String),
    Rejecting(String),
    Steering(String),
}

/// The available answers.
pub const CHOICES: &str = "[a]ccept  [r]eject with a reason  [s]teer  [q]uit  [?] keys";
/// The available answers if keys are read.
pub const CHOICES_BY_KEY: &str =
    "[a]ccept  [r]eject with a reason  [s]teer  [e]dit  [q]uit  [?] keys";
/// The available answers about a completed run.
pub const CHOICES_OF_ENDED: &str = "[a]ccept  [r]eject with a reason  [s]kip  [q]uit  [?] keys";
/// The available answers if there is text that was typed before the question.
const CHOICES_WITH_TEXT: &str =
    "[r]eject with it  [s]teer with it  [a]ccept  [q]uit  Esc drops it  [?] keys";

/// Returns the description of each key.
pub fn keys(asked: PendingQuestion) -> &'static [&'static str] {
    match asked {
        PendingQuestion::Waiting => &[
            "  a, y    accept the proposal: it is written into your files",
            "  r       reject it: type a reason for the agent, then Enter",
            "  s       steer: type what to do instead, then Enter",
            "  e       edit it first, in your editor (VISUAL, EDITOR); needs a live terminal",
            "  q       stop the run; press q again, or Ctrl-C twice, to quit immediately",
            "  Esc     cancel the text that you are typing",
            "  ?       show these keys",
        ],
        PendingQuestion::OfEnded => &[
            "  a, y    accept the proposal: it is written into your files",
            "  r       reject it: type a reason, then Enter",
            "  s       skip it: it keeps waiting for review",
            "  q       quit; proposals without an answer keep waiting for review",
            "  Esc     cancel the text that you are typing",
            "  ?       show these keys",
        ],
        PendingQuestion::Nothing => &[
            "  text    is kept for the next question; Esc discards it",
            "  q Enter stop the run, like Ctrl-C; again: quit immediately",
            "  ?       show these keys",
        ],
    }
}

impl Prompt {
    /// Handles a key and returns a command once it is complete.
    pub fn key(&mut self, key: KeyEvent, asked: PendingQuestion) -> Option<UserCommand> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            let quit = matches!(key.code, KeyCode::Char('c' | 'd'));
            return quit.then_some(UserCommand::Quit);
        }
        match std::mem::take(self) {
            Prompt::Choosing => self.choose(key.code, asked, ""),
            Prompt::Kept(text) => {
                *self = Prompt::Kept(text.clone());
                self.choose(key.code, asked, &text)
            }
            Prompt::Ahead(text) => {
                let done = edit(text, key.code)?;
                self.ahead(done, asked)
            }
            Prompt::Rejecting(text) => {
                let done = edit(text, key.code)?;
                self.typed(done, Prompt::Rejecting, |reason| Verdict::Reject { reason })
            }
            Prompt::Steering(text) => {
                let done = edit(text, key.code)?;
                self.typed(done, Prompt::Steering, |text| Verdict::Steer { text })
            }
        }
    }

    /// Handles a key that arrived together with others. Such keys can start or continue a text and can
    /// stop the run, but they never accept a proposal. The second value is whether the key was used.
    pub fn key_of_burst(
        &mut self,
        key: KeyEvent,
        asked: PendingQuestion,
    ) -> (Option<UserCommand>, bool) {
        let is_stop = key.modifiers.contains(KeyModifiers::CONTROL);
        let chooses =
            matches!(self, Prompt::Choosing | Prompt::Kept(_)) && asked != PendingQuestion::Nothing;
        if !is_stop && chooses && !self.opens_text(key, asked) {
            return (None, false);
        }
        match self.key(key, asked) {
            Some(UserCommand::Verdict(Verdict::Accept)) => (None, false),
            said => (said, true),
        }
    }

    /// Whether a key starts the text of an answer, so that the next keys are part of the text.
    pub fn opens_text(&self, key: KeyEvent, asked: PendingQuestion) -> bool {
        match key.code {
            KeyCode::Char('r' | 'R') => asked != PendingQuestion::Nothing,
            KeyCode::Char('s' | 'S') => asked == PendingQuestion::Waiting,
            _ => false,
        }
    }

    /// Appends text from the clipboard to the typed text, on one line.
    pub fn paste(&mut self, pasted: &str) {
        let pasted = pasted.split_whitespace().collect::<Vec<_>>().join(" ");
        match self {
            Prompt::Choosing | Prompt::Kept(_) => {}
            Prompt::Ahead(text) | Prompt::Rejecting(text) | Prompt::Steering(text) => {
                text.push_str(&pasted);
            }
        }
    }

    /// Starts a new question. Discards text that was typed about an earlier question, but keeps
    /// text that was typed while there was no question.
    pub fn asked(&mut self) {
        *self = match std::mem::take(self) {
            Prompt::Choosing | Prompt::Rejecting(_) | Prompt::Steering(_) => Prompt::Choosing,
            kept @ (Prompt::Ahead(_) | Prompt::Kept(_)) => kept,
        };
    }

    /// Handles the first key of an answer. `kept` is the text typed before.
    fn choose(&mut self, code: KeyCode, asked: PendingQuestion, kept: &str) -> Option<UserCommand> {
        let char = match code {
            KeyCode::Char(char) => char,
            KeyCode::Esc => {
                *self = Prompt::Choosing;
                return None;
            }
            _ => return None,
        };
        match (char.to_ascii_lowercase(), asked) {
            ('?', _) => return Some(UserCommand::Help),
            (_, PendingQuestion::Nothing) => *self = Prompt::Ahead(format!("{kept}{char}")),
            ('q', _) => return Some(UserCommand::Quit),
            ('a' | 'y', PendingQuestion::Waiting | PendingQuestion::OfEnded) => {
                *self = Prompt::Choosing;
                return Some(UserCommand::Verdict(Verdict::Accept));
            }
            ('r', PendingQuestion::Waiting | PendingQuestion::OfEnded) => {
                *self = Prompt::Rejecting(kept.to_owned())
            }
            ('s', PendingQuestion::Waiting) => *self = Prompt::Steering(kept.to_owned()),
            ('s', PendingQuestion::OfEnded) => return Some(UserCommand::Skip),
            ('e', PendingQuestion::Waiting) => {
                *self = Prompt::Choosing;
                return Some(UserCommand::Edit);
            }
            (_, PendingQuestion::Waiting | PendingQuestion::OfEnded) => {}
        }
        None
    }

    /// Handles text that was started before a question. It is parsed like a line; if it is not an
    /// answer, it is kept.
    fn ahead(&mut self, typed: Typed, asked: PendingQuestion) -> Option<UserCommand> {
        let text = match typed {
            Typed::More(text) if text.is_empty() => return None,
            Typed::More(text) => {
                *self = Prompt::Ahead(text);
                return None;
            }
            Typed::Done(text) => text,
        };
        let said = match asked {
            PendingQuestion::OfEnded => line_of_ended(&text),
            PendingQuestion::Waiting | PendingQuestion::Nothing => line(&text),
        };
        match (said, asked) {
            (UserCommand::Quit, _) => Some(UserCommand::Quit),
            (UserCommand::Help, PendingQuestion::Waiting | PendingQuestion::OfEnded) => {
                *self = Prompt::Kept(text.trim().to_owned());
                None
            }
            (_, PendingQuestion::Nothing) => {
                *self = Prompt::Ahead(text);
                None
            }
            (said, PendingQuestion::Waiting | PendingQuestion::OfEnded) => Some(said),
        }
    }

    fn typed(
        &mut self,
        text: Typed,
        go_on: fn(String) -> Prompt,
        done: fn(String) -> Verdict,
    ) -> Option<UserCommand> {
        match text {
            Typed::More(text) => *self = go_on(text),
            // A rejection without a reason would not help the agent.
            Typed::Done(text) if text.trim().is_empty() => *self = go_on(String::new()),
            Typed::Done(text) => return Some(UserCommand::Verdict(done(text.trim().to_owned()))),
        }
        None
    }

    /// Formats the choices or the typed text, wrapped to the width.
    pub fn lines(&self, width: usize, choices: &str) -> Vec<Line> {
        match self {
            Prompt::Choosing => Line::plain(&format!("  {choices}")).wrap(width),
            Prompt::Kept(text) => {
                let mut lines = Line::of(Style::Bold, "  you typed: ")
                    .and(text)
                    .broken(width);
                lines.extend(Line::plain(&format!("  {CHOICES_WITH_TEXT}")).wrap(width));
                lines
            }
            Prompt::Ahead(text) => {
                let keys = "  Enter answers: a, r REASON, s TEXT, q; Esc drops it";
                typing("answer: ", text, keys, width)
            }
            Prompt::Rejecting(text) => typing("reject, because: ", text, KEYS, width),
            Prompt::Steering(text) => typing("instead: ", text, KEYS, width),
        }
    }

    /// Formats text that was typed while there is no question.
    pub fn lines_ahead(&self, width: usize) -> Vec<Line> {
        match self {
            Prompt::Ahead(text) | Prompt::Kept(text) => {
                let keys = "  kept for the next question; Esc drops it";
                typing("", text, keys, width)
            }
            Prompt::Choosing | Prompt::Rejecting(_) | Prompt::Steering(_) => Vec::new(),
        }
    }
}

/// Whether a question waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingQuestion {
    Waiting,
    /// A proposal of a completed run.
    OfEnded,
    Nothing,
}

/// A line of text after an edit: still being typed, or finished with Enter.
enum Typed {
    More(String),
    Done(String),
}

/// Edits a line of text. Returns `None` if the user discards it.
fn edit(mut text: String, code: KeyCode) -> Option<Typed> {
    match code {
        KeyCode::Enter => return Some(Typed::Done(text)),
        KeyCode::Esc => return None,
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char(char) => text.push(char),
        _ => {}
    }
    Some(Typed::More(text))
}

const KEYS: &str = "  Enter to send, Esc to go back";

fn typing(label: &str, text: &str, keys: &str, width: usize) -> Vec<Line> {
    let typed = Line::of(Style::Bold, &format!("  {label}"))
        .and(text)
        .with(Style::Accent, "▏");
    let whole = typed.clone().with(Style::Dim, keys);
    if whole.width() <= width {
        return vec![whole];
    }
    // The cursor is last, so that a low window shows the end.
    let mut lines = Line::of(Style::Dim, keys).wrap(width);
    lines.extend(typed.broken(width));
    lines
}

/// Parses an answer that was entered as a line. Accept and quit must be the only word of the line.
pub fn line(text: &str) -> UserCommand {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim().to_owned();
    match word.to_ascii_lowercase().as_str() {
        "a" | "accept" | "y" | "yes" if rest.is_empty() => UserCommand::Verdict(Verdict::Accept),
        "r" | "reject" if !rest.is_empty() => {
            UserCommand::Verdict(Verdict::Reject { reason: rest })
        }
        "s" | "steer" if !rest.is_empty() => UserCommand::Verdict(Verdict::Steer { text: rest }),
        "q" | "quit" if rest.is_empty() => UserCommand::Quit,
        _ => UserCommand::Help,
    }
}

/// The kind of text (reason or instruction) that is entered on the line after the answer's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextLine {
    Reason,
    Instruction,
}

impl NextLine {
    /// Returns the kind of text that the next line must contain, if a line names an answer without its text.
    pub fn after(text: &str, asked: PendingQuestion) -> Option<NextLine> {
        match text.trim().to_ascii_lowercase().as_str() {
            "r" | "reject" => Some(NextLine::Reason),
            "s" | "steer" if asked != PendingQuestion::OfEnded => Some(NextLine::Instruction),
            _ => None,
        }
    }

    /// Returns the question that asks for the text.
    pub fn question(self) -> &'static str {
        match self {
            NextLine::Reason => {
                "reject, because: (the next line is the reason; an empty line goes back)"
            }
            NextLine::Instruction => {
                "instead: (the next line says what to do; an empty line goes back)"
            }
        }
    }

    /// Returns the answer with its text, if there is one.
    pub fn said(self, text: &str) -> Option<UserCommand> {
        let text = Some(text.trim())
            .filter(|text| !text.is_empty())?
            .to_owned();
        Some(UserCommand::Verdict(match self {
            NextLine::Reason => Verdict::Reject { reason: text },
            NextLine::Instruction => Verdict::Steer { text },
        }))
    }
}

/// Like [`line()`], for a completed run, which has no agents to steer.
pub fn line_of_ended(text: &str) -> UserCommand {
    match text.trim().to_ascii_lowercase().as_str() {
        "s" | "skip" => UserCommand::Skip,
        _ => match line(text) {
            UserCommand::Verdict(Verdict::Steer { .. }) => UserCommand::Help,
            said => said,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str, asked: PendingQuestion) -> (Prompt, Vec<UserCommand>) {
        type_into(Prompt::default(), text, asked)
    }

    fn type_into(
        mut prompt: Prompt,
        text: &str,
        asked: PendingQuestion,
    ) -> (Prompt, Vec<UserCommand>) {
        let code = |char| match char {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            other => KeyCode::Char(other),
        };
        let said = text
            .chars()
            .filter_map(|char| prompt.key(KeyEvent::new(code(char), KeyModifiers::NONE), asked))
            .collect();
        (prompt, said)
    }

    #[test]
    fn pasted_text_is_never_read_as_an_answer() {
        let mut prompt = Prompt::Choosing;
        prompt.paste("a");
        assert_eq!(prompt, Prompt::Choosing);
        let mut prompt = Prompt::Rejecting("no: ".to_owned());
        prompt.paste("keep brackets\nand also tidy up\n");
        assert_eq!(
            prompt,
            Prompt::Rejecting("no: keep brackets and also tidy up".to_owned())
        );
    }

    #[test]
    fn burst_of_keys_accepts_nothing() {
        let burst = |mut prompt: Prompt, text: &str, asked| {
            let said = text.chars().filter_map(|char| {
                let code = if char == '\n' {
                    KeyCode::Enter
                } else {
                    KeyCode::Char(char)
                };
                let key = KeyEvent::new(code, KeyModifiers::NONE);
                prompt.key_of_burst(key, asked).0
            });
            said.collect::<Vec<_>>()
        };
        for text in ["a", "ya", "q", "e", "?", "xa"] {
            assert_eq!(
                burst(Prompt::Choosing, text, PendingQuestion::Waiting),
                [],
                "{text}"
            );
            let kept = Prompt::Kept("x".to_owned());
            assert_eq!(burst(kept, text, PendingQuestion::OfEnded), [], "{text}");
        }
        let ahead = Prompt::Ahead("a".to_owned());
        assert_eq!(burst(ahead, "\n", PendingQuestion::Waiting), []);
        let reason = "a b".to_owned();
        assert_eq!(
            burst(Prompt::Choosing, "ra b\n", PendingQuestion::Waiting),
            [UserCommand::Verdict(Verdict::Reject { reason })]
        );
    }

    #[test]
    fn typed_keys_give_verdicts() {
        let reject = |reason: &str| {
            UserCommand::Verdict(Verdict::Reject {
                reason: reason.to_owned(),
            })
        };
        let said = |text: &str| keys(text, PendingQuestion::Waiting).1;
        assert_eq!(said("a"), [UserCommand::Verdict(Verdict::Accept)]);
        assert_eq!(said("Y"), [UserCommand::Verdict(Verdict::Accept)]);
        assert_eq!(said("rtoo lang\u{8}\u{8}\u{8}ong \n"), [reject("too long")]);
        let text = "use a set".to_owned();
        assert_eq!(
            said("suse a set\n"),
            [UserCommand::Verdict(Verdict::Steer { text })]
        );
        assert_eq!(said("q"), [UserCommand::Quit]);
        assert_eq!(said("rno\u{1b}a"), [UserCommand::Verdict(Verdict::Accept)]);
    }

    #[test]
    fn rejection_needs_a_reason() {
        let (prompt, said) = keys("r \n", PendingQuestion::Waiting);
        assert_eq!(said, []);
        assert_eq!(prompt, Prompt::Rejecting(String::new()));
    }

    #[test]
    fn keys_without_a_pending_question_give_no_answer() {
        let (prompt, said) = keys("ars", PendingQuestion::Nothing);
        assert_eq!((prompt, said), (Prompt::Ahead("ars".to_owned()), vec![]));
        // `q` may be the first letter of a word.
        assert_eq!(keys("q", PendingQuestion::Nothing).1, []);
        assert_eq!(keys("q\n", PendingQuestion::Nothing).1, [UserCommand::Quit]);
        assert_eq!(
            keys("ab\u{1b}", PendingQuestion::Nothing),
            (Prompt::Choosing, vec![])
        );
    }

    /// Types keys before a question, then keys after it.
    fn asked_meanwhile(before: &str, after: &str) -> (Prompt, Vec<UserCommand>) {
        let (mut prompt, said) = keys(before, PendingQuestion::Nothing);
        assert_eq!(said, []);
        prompt.asked();
        type_into(prompt, after, PendingQuestion::Waiting)
    }

    #[test]
    fn text_typed_before_a_question_answers_it_only_after_enter() {
        let reject = UserCommand::Verdict(Verdict::Reject {
            reason: "not like this".to_owned(),
        });
        let steer = UserCommand::Verdict(Verdict::Steer {
            text: "use a set".to_owned(),
        });
        // The question appears in the middle of a word, so later letters are not answers.
        let half = asked_meanwhile("use", " a set");
        assert_eq!(half, (Prompt::Ahead("use a set".to_owned()), vec![]));
        let answered = asked_meanwhile("r not like", " this\n").1;
        assert_eq!(answered, std::slice::from_ref(&reject));
        assert_eq!(asked_meanwhile("use", " a set\ns\n").1, [steer]);
        let kept = asked_meanwhile("not like this\n", "\n");
        assert_eq!(kept, (Prompt::Kept("not like this".to_owned()), vec![]));
        assert_eq!(asked_meanwhile("not like this", "\nr\n").1, [reject]);
        let dropped = asked_meanwhile("not like this", "\n\u{1b}");
        assert_eq!(dropped, (Prompt::Choosing, vec![]));
        assert_eq!(
            asked_meanwhile("x", "\u{1b}a").1,
            [UserCommand::Verdict(Verdict::Accept)]
        );
    }

    #[test]
    fn question_mark_lists_the_keys_in_every_state() {
        for asked in [
            PendingQuestion::Waiting,
            PendingQuestion::OfEnded,
            PendingQuestion::Nothing,
        ] {
            assert_eq!(
                keys("?", asked),
                (Prompt::Choosing, vec![UserCommand::Help])
            );
            assert!(super::keys(asked).iter().any(|line| line.contains("?  ")));
        }
        let (prompt, said) = keys("rwhy?", PendingQuestion::Waiting);
        assert_eq!(
            (prompt, said),
            (Prompt::Rejecting("why?".to_owned()), vec![])
        );
        assert_eq!(line("?"), UserCommand::Help);
    }

    #[test]
    fn proposal_of_an_ended_run_can_be_skipped_but_not_steered() {
        assert_eq!(keys("s", PendingQuestion::OfEnded).1, [UserCommand::Skip]);
        assert_eq!(
            keys("a", PendingQuestion::OfEnded).1,
            [UserCommand::Verdict(Verdict::Accept)]
        );
        assert_eq!(line_of_ended(" Skip "), UserCommand::Skip);
        assert_eq!(line_of_ended("s shorter"), UserCommand::Help);
        assert_eq!(line_of_ended("y"), UserCommand::Verdict(Verdict::Accept));
    }

    #[test]
    fn control_c_quits_even_while_typing() {
        let mut prompt = Prompt::Steering("half".to_owned());
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(
            prompt.key(key, PendingQuestion::Waiting),
            Some(UserCommand::Quit)
        );
    }

    #[test]
    fn entered_lines_give_verdicts() {
        for yes in [" a ", "accept", "y", "YES"] {
            assert_eq!(line(yes), UserCommand::Verdict(Verdict::Accept), "{yes}");
        }
        let reason = "not like this".to_owned();
        assert_eq!(
            line("r not like this"),
            UserCommand::Verdict(Verdict::Reject { reason })
        );
        assert_eq!(line("quit"), UserCommand::Quit);
        for unclear in [
            "r",
            "steer ",
            "",
            "maybe",
            "a plain x",
            "y, but",
            "quit using it",
        ] {
            assert_eq!(line(unclear), UserCommand::Help, "{unclear:?}");
        }
    }

    #[test]
    fn typed_text_stays_visible_at_any_window_width() {
        use crate::cli::view::text::Paint;

        let text = "keep the größte 🙂 fee, not the least; and round it as before";
        let prompt = Prompt::Rejecting(text.to_owned());
        for width in 2..140 {
            let lines = prompt.lines(width, CHOICES);
            assert!(
                lines.iter().all(|line| line.width() <= width.max(20)),
                "{width}"
            );
            let shown: Vec<String> = lines.iter().map(|line| line.paint(Paint::Plain)).collect();
            let squeezed = |text: &str| text.replace(' ', "");
            let all = squeezed(&shown.concat());
            assert!(all.contains(&squeezed(text)), "{width}: {shown:?}");
            let last = shown.last().unwrap();
            assert!(
                last.contains('▏'),
                "the cursor is in the last line: {shown:?}"
            );
        }
        assert_eq!(prompt.lines(200, CHOICES).len(), 1);
        let choices = Prompt::Choosing.lines(20, CHOICES);
        assert!(choices.len() > 1 && choices.iter().all(|line| line.width() <= 20));
    }
}
