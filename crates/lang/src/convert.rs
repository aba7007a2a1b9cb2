//! Converts diagnostics to problems: byte ranges, and the kinds of problems that each tool reports.

use ropey::Rope;
use serde::Deserialize;
use serde_json::Value;

use starling_core::{Problem, ProblemKind, Severity};
use starling_syntax::FilePath;
use starling_text::{ByteRange, Encoding, Position, offset_of};

/// Maximum length of a message in bytes. A longer message is cut.
const LONGEST: usize = 600;
/// Maximum number of problems of one text. Further ones are dropped.
const MOST: usize = 2000;

/// A diagnostic in a server's message.
#[derive(Debug, Deserialize)]
struct WireDiagnostic {
    range: WireRange,
    #[serde(default)]
    severity: Option<u8>,
    #[serde(default)]
    code: Value,
    #[serde(default)]
    source: Option<String>,
    message: String,
    #[serde(default)]
    tags: Vec<u8>,
}

/// A range in a server's message.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct WireRange {
    start: WirePosition,
    end: WirePosition,
}

/// A zero-based position in a server's message, in the negotiated encoding.
#[derive(Debug, Clone, Copy, Deserialize)]
struct WirePosition {
    line: u32,
    character: u32,
}

impl WireRange {
    pub fn bytes(&self, text: &Rope, encoding: Encoding) -> ByteRange {
        let offset = |at: WirePosition| {
            let position = Position {
                line: at.line,
                column: at.character,
            };
            offset_of(text, position, encoding)
        };
        let (one, other) = (offset(self.start), offset(self.end));
        ByteRange::new(one.min(other), one.max(other))
    }
}

/// Converts diagnostics of a text to problems.
///
/// # Errors
/// A description of the first invalid diagnostic.
pub(super) fn problems(
    items: &[Value],
    file: &FilePath,
    text: &str,
    encoding: Encoding,
) -> Result<Vec<Problem>, String> {
    let rope = Rope::from_str(text);
    let problem = |item: &Value| {
        let wire = WireDiagnostic::deserialize(item).map_err(|error| error.to_string())?;
        Ok(Problem {
            file: file.clone(),
            line: wire.range.start.line.saturating_add(1),
            severity: severity(wire.severity),
            kind: kind(&wire),
            stops: false,
            range: Some(wire.range.bytes(&rope, encoding)),
            message: message(&wire.message),
            source: wire.source.unwrap_or_default(),
        })
    };
    items.iter().take(MOST).map(problem).collect()
}

/// Converts a severity. An unknown or missing severity counts as an error.
fn severity(number: Option<u8>) -> Severity {
    match number {
        Some(2) => Severity::Warning,
        Some(3) => Severity::Information,
        Some(4) => Severity::Hint,
        Some(_) | None => Severity::Error,
    }
}

/// Removes the explanations that some tools append to a message.
fn message(text: &str) -> String {
    let text = text.split("\n\ninfo:").next().unwrap_or(text).trim();
    let mut end = text.len().min(LONGEST);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

fn kind(wire: &WireDiagnostic) -> ProblemKind {
    const UNNECESSARY: u8 = 1;
    let source = wire.source.as_deref().unwrap_or_default().to_lowercase();
    let code = match &wire.code {
        Value::String(code) => code.as_str(),
        _ => "",
    };
    let says = |parts: &[&str]| parts.iter().any(|part| wire.message.contains(part));
    match code {
        "invalid-syntax" => ProblemKind::Syntax,
        "unresolved-reference" | "reportUndefinedVariable" | "F821" => ProblemKind::Name,
        "unresolved-import" | "reportMissingImports" => ProblemKind::Import,
        "reportAttributeAccessIssue" if says(&["unknown import symbol"]) => ProblemKind::Import,
        "too-many-positional-arguments"
        | "missing-argument"
        | "unknown-argument"
        | "parameter-already-assigned" => ProblemKind::Call,
        "reportCallIssue"
            if says(&[
                "positional argument",
                "No parameter named",
                "missing for parameter",
            ]) =>
        {
            ProblemKind::Call
        }
        "F401" | "reportUnusedImport" => ProblemKind::Unused,
        _ if wire.tags.contains(&UNNECESSARY) => ProblemKind::Unused,
        "" if source.ends_with("pyright") && severity(wire.severity) == Severity::Error => {
            ProblemKind::Syntax
        }
        _ if says(&["SyntaxError", "invalid syntax"]) => ProblemKind::Syntax,
        _ if source == "pyflakes" && says(&["undefined name"]) => ProblemKind::Name,
        _ if source == "pyflakes" && says(&["imported but unused"]) => ProblemKind::Unused,
        _ => ProblemKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn item(message: &str, code: &str, source: &str) -> Value {
        json!({
            "range": {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 4}},
            "message": message, "code": code, "source": source, "severity": 1,
        })
    }

    fn read(items: &[Value]) -> Result<Vec<Problem>, String> {
        problems(items, &FilePath::new("a.py"), "x\n🐦ab\n", Encoding::Utf16)
    }

    #[test]
    fn diagnostic_ranges_use_the_negotiated_encoding() {
        let problem = &read(&[item("m", "", "s")]).unwrap()[0];
        assert_eq!(problem.line, 2);
        assert_eq!(problem.range, Some(ByteRange::new(6, 8)));
        let mut backwards = item("m", "", "s");
        backwards["range"]["end"] = json!({"line": 0, "character": 0});
        let problem = &read(&[backwards]).unwrap()[0];
        assert_eq!(problem.range, Some(ByteRange::new(0, 6)));
    }

    #[test]
    fn invalid_diagnostic_is_an_error() {
        assert!(
            read(&[json!({"message": "m"})])
                .unwrap_err()
                .contains("range")
        );
        assert!(read(&[json!(7)]).is_err());
        assert_eq!(read(&vec![item("m", "", "s"); 3000]).unwrap().len(), MOST);
    }

    #[test]
    fn diagnostic_messages_are_shortened() {
        assert_eq!(message("Bad\n\ninfo: because"), "Bad");
        assert_eq!(message(&"ä".repeat(500)).len(), 600);
        assert_eq!(message(&format!("a{}", "ä".repeat(500))).len(), 599);
    }

    #[test]
    fn problem_kinds_are_recognized_for_each_tool() {
        let of = |message: &str, code: &str, source: &str| {
            read(&[item(message, code, source)]).unwrap()[0].kind
        };
        let rows = [
            ("x", "invalid-syntax", "ty", ProblemKind::Syntax),
            ("x", "unresolved-reference", "ty", ProblemKind::Name),
            ("x", "unresolved-import", "ty", ProblemKind::Import),
            ("x", "missing-argument", "ty", ProblemKind::Call),
            ("x", "invalid-return-type", "ty", ProblemKind::Other),
            (
                "\"(\" was not closed",
                "",
                "basedpyright",
                ProblemKind::Syntax,
            ),
            (
                "\"x\" is not defined",
                "reportUndefinedVariable",
                "Pyright",
                ProblemKind::Name,
            ),
            (
                "\"f\" is unknown import symbol",
                "reportAttributeAccessIssue",
                "Pyright",
                ProblemKind::Import,
            ),
            (
                "Cannot access attribute",
                "reportAttributeAccessIssue",
                "Pyright",
                ProblemKind::Other,
            ),
            (
                "Expected 1 positional argument",
                "reportCallIssue",
                "Pyright",
                ProblemKind::Call,
            ),
            (
                "No overloads for \"f\" match",
                "reportCallIssue",
                "Pyright",
                ProblemKind::Other,
            ),
            (
                "SyntaxError: invalid syntax (a.py, line 2)",
                "",
                "compile",
                ProblemKind::Syntax,
            ),
            ("undefined name 'x'", "", "pyflakes", ProblemKind::Name),
            (
                "'os' imported but unused",
                "",
                "pyflakes",
                ProblemKind::Unused,
            ),
        ];
        for (message, code, source, kind) in rows {
            assert_eq!(of(message, code, source), kind, "{message} {code}");
        }
        let mut unused = item("`a` is unused", "", "ty");
        unused["tags"] = json!([1]);
        unused["severity"] = json!(4);
        let unused = &read(&[unused]).unwrap()[0];
        assert_eq!(
            (unused.kind, unused.severity),
            (ProblemKind::Unused, Severity::Hint)
        );
    }
}
