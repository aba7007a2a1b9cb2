//! Describes failing tests in sentences, because small models understand "`f(1)` must be `2`, but
//! it is `3`." better than the output of a test runner.

use std::fmt::Write;

use starling_core::TestCase;
use starling_index::frames;

/// Maximum number of characters of a message that is quoted because it cannot be described in a
/// sentence.
const QUOTED: usize = 600;

/// Describes a failing test by its source code, the expected value and the actual value. If the
/// message does not contain these values, the error is used instead.
pub(crate) fn with_source(case: &TestCase, language: &str, source: &str) -> String {
    match sentence(&case.message) {
        Some(sentence) => {
            format!("This test fails:\n```{language}\n{source}\n```\n{sentence}")
        }
        None => format!(
            "The test `{}` fails:\n```{language}\n{source}\n```\n{}",
            case.id,
            failure_in_short(&case.message)
        ),
    }
}

/// Describes a failing test in a sentence, or quotes its message.
pub(crate) fn in_words(case: &TestCase) -> String {
    sentence(&case.message).unwrap_or_else(|| {
        let quoted: String = case.message.chars().take(QUOTED).collect();
        format!("The test `{}` fails:\n{}", case.id, quoted.trim_end())
    })
}

/// Shortens the message of a failing test to one line: the assertion with its values or the
/// exception, and the line where it was raised.
pub fn failure_in_short(message: &str) -> String {
    let place = frames(message)
        .last()
        .map(|frame| format!("{}:{}: ", frame.path, frame.line));
    let error = by_pytest(message).unwrap_or_else(|| last_error(message).to_owned());
    format!("{}{error}", place.unwrap_or_default())
}

/// Returns the last error in pytest's output, whose lines are marked with `E`: the first line, and
/// the assertion with its values.
fn by_pytest(message: &str) -> Option<String> {
    let lines: Vec<&str> = message.lines().collect();
    let marked = |line: &&str| line.starts_with("E  ");
    let end = lines.iter().rposition(marked)? + 1;
    let others = lines[..end].iter().rposition(|line| !marked(line));
    let start = others.map_or(0, |at| at + 1);
    let mut error = lines[start..end].iter().map(|line| line[1..].trim());
    let first = error.next()?;
    let bare = first.strip_prefix("AssertionError: ").unwrap_or(first);
    let is_bare = bare.starts_with("assert ");
    let mut told = if is_bare { bare } else { first }.to_owned();
    for line in error {
        if let Some(values) = line.strip_prefix("+  where ") {
            let _ = write!(told, " (where {values})");
            break;
        }
        if line.starts_with("assert ") && !is_bare {
            let _ = write!(told, ": {line}");
        }
    }
    Some(told)
}

/// Returns the line that names an error, otherwise the last line.
fn last_error(message: &str) -> &str {
    let names_error = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default();
        !name.contains(' ') && (name.ends_with("Error") || name.ends_with("Exception"))
    };
    let mut lines = message.trim().lines().map(str::trim);
    let named = lines.clone().rev().find(names_error);
    named.or_else(|| lines.next_back()).unwrap_or_default()
}

/// Returns the function, without its module or class, whose result a failing test compares.
pub(crate) fn compared(case: &TestCase) -> Option<String> {
    let (call, _) = case.message.lines().rev().find_map(comparison)?;
    let name = last_called(&call)?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_name.then(|| name.to_owned())
}

/// Returns the name of the last call or attribute in an expression: `nights` for
/// `Stop("a").nights()`. Returns `None` if the expression contains no call.
fn last_called(expression: &str) -> Option<&str> {
    let mut rest = expression.trim();
    if !rest.contains('(') {
        return None;
    }
    while rest.ends_with([')', ']']) {
        rest = rest[..opening_of_last(rest)?].trim_end();
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let name = rest.rsplit(|c| !is_part(c)).next()?;
    (!name.is_empty()).then_some(name)
}

/// Returns the position of the opening bracket that matches the last character, ignoring quoted
/// text.
fn opening_of_last(text: &str) -> Option<usize> {
    let mut open: Vec<usize> = Vec::new();
    let mut quote: Option<char> = None;
    let mut last = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(mark), c) if c == mark => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => open.push(at),
            (None, ')' | ']' | '}') => last = Some(open.pop()?),
            (None, _) => {}
        }
    }
    last
}

/// Describes a failed comparison, as in ``` `CALL` must be `WANT`, but it is `GOT`.```
fn sentence(message: &str) -> Option<String> {
    let (call, want) = message.lines().rev().find_map(comparison)?;
    let error = message
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| is_error(line))?;
    let error = error.trim_start_matches("E ").trim();
    let assertion = error.strip_prefix("AssertionError: ");
    let by_pytest = assertion.unwrap_or(error).strip_prefix("assert ");
    let got = match by_pytest.or(assertion) {
        Some(text) => {
            let (got, _) = text
                .split_once(" != ")
                .or_else(|| text.split_once(" == "))?;
            format!("it is `{}`", got.trim())
        }
        None => format!("it raises `{error}`"),
    };
    Some(format!("`{call}` must be `{want}`, but {got}."))
}

/// Parses `assertEqual(CALL, WANT)` or `assert CALL == WANT` and returns the two sides.
fn comparison(line: &str) -> Option<(String, String)> {
    let line = line.trim().trim_start_matches('>').trim();
    if let Some(rest) = line.strip_prefix("self.assertEqual(") {
        let inside = rest.strip_suffix(')')?;
        let comma = top_level(inside, ",")?;
        return Some((
            inside[..comma].trim().to_owned(),
            inside[comma + 1..].trim().to_owned(),
        ));
    }
    let rest = line.strip_prefix("assert ")?;
    let equals = top_level(rest, " == ")?;
    Some((
        rest[..equals].trim().to_owned(),
        rest[equals + 4..].trim().to_owned(),
    ))
}

/// Returns the position of a separator outside all brackets and quotes.
fn top_level(text: &str, separator: &str) -> Option<usize> {
    let mut depth = 0_i32;
    let mut quote: Option<char> = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, _) if depth == 0 && text[at..].starts_with(separator) => return Some(at),
            (None, _) => {}
        }
    }
    None
}

/// Returns whether a line is `SomeError: …` or a comparison in pytest's output.
fn is_error(line: &str) -> bool {
    let line = line.trim_start_matches("E ").trim();
    let name = line.split(':').next().unwrap_or_default();
    let named = name.ends_with("Error") || name.ends_with("Exception");
    (named && !name.contains(char::is_whitespace))
        || (line.starts_with("assert ") && line.contains(" == "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::TestStatus;

    fn words(message: &str) -> String {
        in_words(&TestCase {
            id: "t".into(),
            status: TestStatus::Failed,
            message: message.into(),
        })
    }

    #[test]
    fn unittest_failure_is_described_with_expected_and_actual_values() {
        let message = "Traceback (most recent call last):\n  File \"tests/test_fees.py\", line 9, in test_x\n    \
                       self.assertEqual(late_fee(date(2024, 3, 1), \"a,b\"), 60)\nAssertionError: 500 != 60\n";
        assert_eq!(
            words(message),
            "`late_fee(date(2024, 3, 1), \"a,b\")` must be `60`, but it is `500`."
        );
    }

    #[test]
    fn exception_in_a_test_is_described_with_the_expected_value() {
        let message = "    self.assertEqual(f(1), 2)\n  File \"a.py\", line 2, in f\n    return x + 1\nTypeError: no\n";
        assert_eq!(
            words(message),
            "`f(1)` must be `2`, but it raises `TypeError: no`."
        );
    }

    #[test]
    fn pytest_failure_is_described_with_expected_and_actual_values() {
        let message = "    def test_f():\n>       assert f(1) == 2\nE       assert 3 == 2\nE        +  where 3 = f(1)\n";
        assert_eq!(words(message), "`f(1)` must be `2`, but it is `3`.");
    }

    #[test]
    fn actual_value_is_extracted_from_every_form_of_assertion_message() {
        for shown in [
            "AssertionError: assert 105 == 360",
            "E   AssertionError: assert 105 == 360",
            "E  assert 105 == 360",
        ] {
            let message =
                format!("    def test_total():\n>       assert c.total() == 360\n{shown}\n");
            assert_eq!(
                words(&message),
                "`c.total()` must be `360`, but it is `105`."
            );
        }
    }

    #[test]
    fn failing_test_is_shown_with_its_source() {
        let mut case = TestCase {
            id: "t".into(),
            status: TestStatus::Failed,
            message: "    assert c.total() == 360\nE   assert 105 == 360".into(),
        };
        let source = "def test_total():\n    c = Cart(105)\n    assert c.total() == 360";
        let shown = with_source(&case, "python", source);
        assert!(shown.contains(source), "{shown}");
        assert!(
            shown.ends_with("`c.total()` must be `360`, but it is `105`."),
            "{shown}"
        );
        case.message = "SystemExit: 2".into();
        assert_eq!(
            with_source(&case, "python", source),
            format!("The test `t` fails:\n```python\n{source}\n```\nSystemExit: 2")
        );
    }

    #[test]
    fn failure_summary_is_one_line_with_location_and_values() {
        for (message, line) in [
            (
                "    def test_total():\n>       assert c.total() == 360\nE       assert 105 == 360\nE        +  where 105 = total()\nE        +    where total = c.total\n\ntest_a.py:7: AssertionError",
                "test_a.py:7: assert 105 == 360 (where 105 = total())",
            ),
            (
                ">       assert x == y, 'sum'\nE       AssertionError: sum\nE       assert 'abc' == 'abd'\nE         \nE         - abd\nE         ?   ^\nE         + abc\n\ntests/test_a.py:3: AssertionError",
                "tests/test_a.py:3: AssertionError: sum: assert 'abc' == 'abd'",
            ),
            (
                "E   KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n>   f()\nE   ValueError: no such key\n\na.py:2: ValueError",
                "a.py:2: ValueError: no such key",
            ),
            (
                "Traceback (most recent call last):\n  File \"test_b.py\", line 9, in test_x\n    self.assertEqual(f(), 60)\nAssertionError: 500 != 60\n",
                "test_b.py:9: AssertionError: 500 != 60",
            ),
            ("no words\nSystemExit: 2\n", "SystemExit: 2"),
            ("", ""),
        ] {
            assert_eq!(failure_in_short(message), line);
        }
    }

    #[test]
    fn function_compared_by_an_assertion_is_extracted() {
        let name = |line: &str| {
            compared(&TestCase {
                id: "t".into(),
                status: TestStatus::Failed,
                message: line.into(),
            })
        };
        assert_eq!(
            name("    self.assertEqual(shop.cart.total(a), f(1))").as_deref(),
            Some("total")
        );
        assert_eq!(name("assert f(1) == 2").as_deref(), Some("f"));
        assert_eq!(name("assert f(1)[0] == 2").as_deref(), Some("f"));
        // In a chain of calls, the method is returned, not the class of its object.
        for line in [
            "assert Stop('a (b', 3).nights() == 3",
            "self.assertEqual(Stop(\"a\", 3).nights, 3)",
        ] {
            assert_eq!(name(line).as_deref(), Some("nights"), "{line}");
        }
        assert_eq!(name("self.assertEqual(x, 1)"), None);
        assert_eq!(name("self.assertTrue(f())"), None);
    }

    #[test]
    fn unrecognized_failure_message_is_quoted() {
        for message in [
            "",
            "AssertionError: X not raised",
            "self.assertEqual(",
            "assert a == ",
            "\u{1F600} == ",
        ] {
            assert!(
                words(message).starts_with("The test `t` fails:"),
                "{message}"
            );
        }
    }
}
