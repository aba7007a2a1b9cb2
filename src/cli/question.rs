//! Questions that are asked and answered outside of a run, each with a line.

use std::io::{self, Write};

use super::input;

/// Message about keys that were pressed before the user can have read the question.
const EARLY: &str = "keys ignored: they were typed before the question could be read";

/// The source of the lines that answer questions.
pub trait Answers {
    /// Drops what was typed before the user can have read a question that has just appeared. Returns
    /// whether anything was dropped.
    ///
    /// # Errors
    /// The input cannot be read.
    fn drop_early(&mut self) -> io::Result<bool>;

    /// Returns the next line, or `None` at the end of the input.
    ///
    /// # Errors
    /// The input cannot be read.
    fn line(&mut self) -> io::Result<Option<String>>;
}

/// The lines of stdin: those that are typed in a terminal after the question could be read, or all
/// lines of a pipe or a file.
#[derive(Debug, Clone, Copy)]
pub struct StdinAnswers;

impl Answers for StdinAnswers {
    fn drop_early(&mut self) -> io::Result<bool> {
        input::drop_early()
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        input::read_answer()
    }
}

/// Shows a question and returns the line that answers it, without spaces around it, or `None` at the
/// end of the input.
///
/// # Errors
/// The question cannot be shown, or the input cannot be read.
pub fn ask(
    question: &str,
    answers: &mut impl Answers,
    shown: &mut impl Write,
) -> io::Result<Option<String>> {
    write!(shown, "{question}")?;
    shown.flush()?;
    if answers.drop_early()? {
        write!(shown, "\n{EARLY}\n{question}")?;
        shown.flush()?;
    }
    let Some(line) = answers.line()? else {
        writeln!(shown)?;
        return Ok(None);
    };
    Ok(Some(line.trim().to_owned()))
}

/// The lines of a text, for tests.
#[cfg(test)]
impl Answers for &[u8] {
    fn drop_early(&mut self) -> io::Result<bool> {
        Ok(false)
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        let length = io::BufRead::read_line(self, &mut line)?;
        Ok((length > 0).then_some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of which the first ones were typed before the question.
    struct TypedAhead(Vec<&'static str>, Vec<&'static str>);

    impl Answers for TypedAhead {
        fn drop_early(&mut self) -> io::Result<bool> {
            Ok(!std::mem::take(&mut self.0).is_empty())
        }

        fn line(&mut self) -> io::Result<Option<String>> {
            let lines = if self.0.is_empty() {
                &mut self.1
            } else {
                &mut self.0
            };
            Ok((!lines.is_empty()).then(|| lines.remove(0).to_owned()))
        }
    }

    #[test]
    fn lines_typed_before_a_question_do_not_answer_it() {
        let mut shown = Vec::new();
        let mut answers = TypedAhead(vec!["ls\n", "y\n"], vec![" n \n"]);
        let answer = ask("Sure? ", &mut answers, &mut shown).unwrap();
        assert_eq!(answer.as_deref(), Some("n"));
        let shown_again = format!("Sure? \n{EARLY}\nSure? ");
        assert_eq!(String::from_utf8(shown).unwrap(), shown_again);
        let mut shown = Vec::new();
        assert_eq!(ask("Sure? ", &mut answers, &mut shown).unwrap(), None);
        assert_eq!(shown, b"Sure? \n");
    }
}
