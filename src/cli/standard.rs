//! stdin, stdout and stderr. The readers of stdout and stderr may go away before the program ends (`| head`,
//! a closed terminal).

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};

use super::WrongUse;

/// Writes a text to stdout. A reader that has gone away is not an error: the text is dropped.
///
/// # Errors
/// stdout cannot be written for another reason, for example because the disk is full.
pub fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    unless_gone(write!(out, "{text}").and_then(|()| out.flush())).map_err(|error| of_stdout(&error))
}

/// Names stdout in the error of a write.
fn of_stdout(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("stdout cannot be written: {error}"))
}

/// Writes a line to stdout, like [`print()`].
///
/// # Errors
/// stdout cannot be written for another reason than a reader that has gone away.
pub fn print_line(line: impl Display) -> io::Result<()> {
    print(format_args!("{line}\n"))
}

/// Writes a remark to stderr, so that stdout contains only the result. Drops it if stderr cannot be
/// written: there is no place left to report that.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Ignores the error of a pipe without a reader.
pub fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(_) | Ok(()) => written,
    }
}

/// A writer that drops everything after the first write that fails, so that a closed or full output
/// does not end the run that is displayed.
pub struct SurvivingWriter {
    out: Box<dyn Write + Send>,
    failed: Option<io::Error>,
}

impl SurvivingWriter {
    pub fn new(out: Box<dyn Write + Send>) -> SurvivingWriter {
        SurvivingWriter { out, failed: None }
    }

    /// Whether nobody sees what is written.
    pub fn is_gone(&self) -> bool {
        self.failed.is_some()
    }

    /// Returns the error of the first write to stdout that failed, unless the reader has gone away.
    ///
    /// # Errors
    /// The output is incomplete although somebody reads it.
    pub fn end(&mut self) -> io::Result<()> {
        match &self.failed {
            Some(error) => unless_gone(Err(of_stdout(error))),
            None => Ok(()),
        }
    }

    fn surviving<T>(
        &mut self,
        dropped: T,
        write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.failed.is_some() {
            return Ok(dropped);
        }
        match write(&mut *self.out) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.failed = Some(error);
                Ok(dropped)
            }
            Ok(written) => Ok(written),
        }
    }
}

impl Write for SurvivingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.surviving(bytes.len(), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.surviving((), |out| out.flush())
    }
}

/// Reads all of stdin, for an argument `-`.
///
/// # Errors
/// stdin cannot be read, or is not UTF-8.
pub fn read_stdin() -> anyhow::Result<String> {
    if io::stdin().is_terminal() {
        note("type the text, then press Ctrl-D:");
    }
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| WrongUse(format!("cannot read stdin: {error}")))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A writer that fails at every write.
    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn failed_write_is_reported_at_the_end_unless_the_reader_has_gone_away() {
        for (kind, is_error) in [
            (ErrorKind::BrokenPipe, false),
            (ErrorKind::StorageFull, true),
        ] {
            let mut out = SurvivingWriter::new(Box::new(Failing(kind)));
            assert!(!out.is_gone());
            for _ in 0..2 {
                writeln!(out, "a line").unwrap();
                out.flush().unwrap();
            }
            assert!(out.is_gone());
            assert_eq!(out.end().is_err(), is_error, "{kind}");
        }
    }

    #[test]
    fn only_a_reader_that_has_gone_away_is_ignored() {
        let failed = |kind: ErrorKind| unless_gone(Err(kind.into()));
        assert!(failed(ErrorKind::BrokenPipe).is_ok());
        assert!(failed(ErrorKind::StorageFull).is_err());
    }
}
