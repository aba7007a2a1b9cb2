//! Parses the source positions in tracebacks of Python and pytest.

/// One frame of a printed traceback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    pub path: &'a str,
    /// Line number, counted from 1.
    pub line: u32,
    pub function: Option<&'a str>,
}

/// Returns the frames of all tracebacks in a text, in printed order: frames of Python
/// (`File "x.py", line 3, in f`), also if quoted by pytest (`E     File …`), and frames of pytest
/// (`x.py:3: in f`).
pub fn frames(text: &str) -> Vec<Frame<'_>> {
    text.lines().filter_map(frame).collect()
}

/// Parses a frame from a line, or returns `None` if the line is not a frame.
pub fn frame(line: &str) -> Option<Frame<'_>> {
    let line = line.trim_end();
    let own = line.strip_prefix("E ").unwrap_or(line);
    match own.trim_start().strip_prefix("File \"") {
        Some(rest) => python_frame(rest),
        None => pytest_frame(line),
    }
}

fn python_frame(rest: &str) -> Option<Frame<'_>> {
    let (path, rest) = rest.split_once("\", line ")?;
    let (number, rest) = split_number(rest)?;
    Some(Frame {
        path,
        line: number,
        function: rest.strip_prefix(", in ").map(str::trim),
    })
}

fn pytest_frame(line: &str) -> Option<Frame<'_>> {
    let (start, rest) = line.split_once(".py:")?;
    if start.is_empty() || start.contains(char::is_whitespace) {
        return None;
    }
    let (number, rest) = split_number(rest)?;
    let rest = rest.strip_prefix(':')?;
    Some(Frame {
        path: &line[..start.len() + ".py".len()],
        line: number,
        function: rest.strip_prefix(" in "),
    })
}

fn split_number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_python_and_pytest_are_parsed() {
        let text = "Traceback (most recent call last):\n  File \"/w/a b.py\", line 12, in <module>\n    f()\n\
                    File \"x.pyx\", line 3\ntests/t.py:7: in test_f\r\n    g()\nsrc/m.py:9: ValueError\n\
                    see foo.py: it fails\nError at a.py:x: no\nFile \"unfinished";
        let found: Vec<_> = frames(text)
            .iter()
            .map(|frame| (frame.path, frame.line, frame.function))
            .collect();
        assert_eq!(
            found,
            [
                ("/w/a b.py", 12, Some("<module>")),
                ("x.pyx", 3, None),
                ("tests/t.py", 7, Some("test_f")),
                ("src/m.py", 9, None),
            ]
        );
    }

    #[test]
    fn frames_quoted_by_pytest_are_parsed() {
        let text = "tests/t.py:1: in <module>\n    import m\nE     File \"/w/m.py\", line 3\n\
                    E       def f(:\nE   SyntaxError: invalid syntax\nE   x.py: no\n";
        let found: Vec<_> = frames(text).iter().map(|f| (f.path, f.line)).collect();
        assert_eq!(found, [("tests/t.py", 1), ("/w/m.py", 3)]);
    }

    #[test]
    fn line_that_only_resembles_a_frame_is_rejected() {
        for line in [
            "",
            "File",
            "File \"x.py\"",
            "File \"x.py\", line ",
            "File \"x.py\", line x",
            "File \"x.py\", line 99999999999",
            ".py:3: in f",
            "a b.py:3: in f",
            "x.py:3 in f",
            "x.py::test_f PASSED",
            "x.pyc:3: in f",
        ] {
            assert_eq!(frame(line), None, "{line}");
        }
        let shown = frame("x.py:3:").map(|f| (f.line, f.function));
        assert_eq!(shown, Some((3, None)));
    }
}
