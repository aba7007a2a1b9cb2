//! Parses the JSON, TOML and YAML files of a change.

use starling_core::{Problem, ProblemKind, Severity};
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

use crate::check::names_check::{OWN, evidence_of};
use crate::evidence::check_results::DiagnosticEvidence;

/// A format of data files that is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DataFormat {
    Json,
    Toml,
    Yaml,
}

/// The place and the description of an error.
#[derive(Debug, PartialEq, Eq)]
struct ParseError {
    line: u32,
    message: String,
}

impl DataFormat {
    fn of(file: &FilePath) -> Option<Self> {
        let name = file.as_str();
        let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
        match name.rsplit_once('.')?.1 {
            "json" | "ipynb" | "geojson" | "webmanifest" => Some(DataFormat::Json),
            "toml" => Some(DataFormat::Toml),
            "yaml" | "yml" => Some(DataFormat::Yaml),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            DataFormat::Json => "JSON",
            DataFormat::Toml => "TOML",
            DataFormat::Yaml => "YAML",
        }
    }

    fn parse(self, text: &str) -> Result<(), ParseError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            DataFormat::Json => {
                let parsed = serde_json::from_str::<serde_json::Value>(text);
                parsed.map(|_| ()).map_err(|error| {
                    let message = error.to_string();
                    let at = format!(" at line {} column {}", error.line(), error.column());
                    ParseError {
                        line: u32::try_from(error.line()).unwrap_or(u32::MAX),
                        message: message.strip_suffix(&at).unwrap_or(&message).to_owned(),
                    }
                })
            }
            DataFormat::Toml => match toml::from_str::<toml::Table>(text) {
                Ok(_) => Ok(()),
                Err(error) => {
                    let before = error.span().map_or("", |span| &text[..span.start]);
                    Err(ParseError {
                        line: line_after(before),
                        message: error.message().lines().collect::<Vec<_>>().join(", "),
                    })
                }
            },
            DataFormat::Yaml => saphyr_parser::Parser::new_from_str(text)
                .find_map(Result::err)
                .map_or(Ok(()), |error| {
                    Err(ParseError {
                        line: u32::try_from(error.marker().line()).unwrap_or(u32::MAX),
                        message: error.info().to_owned(),
                    })
                }),
        }
    }
}

/// Returns the number of the line that begins or goes on after this text.
fn line_after(before: &str) -> u32 {
    u32::try_from(before.matches('\n').count() + 1).unwrap_or(u32::MAX)
}

/// Returns the errors in `after` of data files that could be parsed in `before`, or that are new. Files
/// with comments or placeholders of templates are not checked.
pub(crate) fn parsed(
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> DiagnosticEvidence {
    let new: Vec<Problem> = files
        .iter()
        .filter_map(|file| {
            let (old, text) = (before.read(file).ok(), after.read(file).ok()?);
            error_of(file, old.as_deref(), &text)
        })
        .collect();
    evidence_of(new)
}

fn error_of(file: &FilePath, old: Option<&str>, text: &str) -> Option<Problem> {
    let format = DataFormat::of(file)?;
    if old == Some(text) || is_template(text) {
        return None;
    }
    let error = format.parse(text).err()?;
    let parsed_before = match old {
        // An empty file holds no JSON, and whoever fills it wants some.
        Some(old) => old.trim().is_empty() || format.parse(old).is_ok(),
        None => !(format == DataFormat::Json && has_comments(text)),
    };
    parsed_before.then(|| Problem {
        file: file.clone(),
        line: error.line,
        severity: Severity::Error,
        message: format!("this is not valid {}: {}", format.name(), error.message),
        source: OWN.to_owned(),
        kind: ProblemKind::Syntax,
        stops: true,
        range: None,
    })
}

/// Whether a text has placeholders, as templates of Jinja, Helm and Cookiecutter have.
fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// Whether a line of a JSON file is a comment. Some programs allow comments in their configuration.
fn has_comments(text: &str) -> bool {
    text.lines()
        .any(|line| line.trim_start().starts_with("//") || line.trim_start().starts_with("/*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str, old: Option<&str>, text: &str) -> Option<(u32, String)> {
        let found = error_of(&FilePath::new(name), old, text)?;
        Some((found.line, found.message))
    }

    #[test]
    fn error_is_reported_with_its_line_in_each_format() {
        for (name, text, line, message) in [
            (
                "a.json",
                "{\n  \"a\": 1,\n}\n",
                3,
                "this is not valid JSON: trailing comma",
            ),
            (
                "x/pyproject.toml",
                "a = 1\nb = \n",
                2,
                "this is not valid TOML: ",
            ),
            (
                "a.yml",
                "a: 1\nb: [1, 2\nc: 3\n",
                3,
                "this is not valid YAML: ",
            ),
            ("a.yaml", "a:\n\t- 1\n", 2, "this is not valid YAML: "),
        ] {
            let found = error(name, None, text).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(found.0, line, "{name}: {found:?}");
            assert!(found.1.starts_with(message), "{name}: {found:?}");
        }
    }

    #[test]
    fn valid_data_has_no_error() {
        for (name, text) in [
            ("a.json", "\u{feff}{\"a\": [1, null, 1e9]}\r\n"),
            ("a.toml", "[a]\nb = 'c'\n"),
            (
                "a.yml",
                "%YAML 1.2\n---\na: &x 1\nb: *x\nc: !tag |\n  text\n---\n- 2\n",
            ),
            ("mkdocs.yml", "a: !!python/name:b.c\nb: 'é'\n"),
            ("a.yaml", "# nothing\n"),
        ] {
            assert_eq!(error(name, None, text), None, "{name}");
        }
    }

    #[test]
    fn only_new_errors_are_reported() {
        let broken = "{\"a\": NaN}";
        assert_eq!(error("a.json", Some(broken), "{\"a\": NaN, }"), None);
        assert!(error("a.json", Some("{}"), broken).is_some());
        assert!(error("a.json", Some("\n"), broken).is_some());
        assert_eq!(error("a.json", Some(broken), "{}"), None);
    }

    #[test]
    fn templates_comments_and_other_files_are_not_checked() {
        for (name, text) in [
            ("a.yml", "a: {{ name }}: [\n"),
            ("a.json", "{% if a %}{{% endif %}"),
            ("tsconfig.json", "{\n  // strict\n  \"a\": 1,\n}\n"),
            ("a.txt", "{"),
            ("json", "{"),
        ] {
            assert_eq!(error(name, None, text), None, "{name}");
        }
    }
}
