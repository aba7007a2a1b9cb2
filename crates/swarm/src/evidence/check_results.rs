//! Diagnostics of a change and automatic changes to its imports.

use std::fmt;

use serde::{Deserialize, Serialize};

use starling_core::Problem;

/// Maximum number of problems that are shown.
const SHOWN: usize = 10;

/// The diagnostics of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "diagnostics", rename_all = "snake_case")]
pub enum DiagnosticEvidence {
    /// No language server supports these files. The run reports this once, not for every change.
    #[default]
    Absent,
    Unknown {
        reason: String,
    },
    /// The diagnostics are known. Only the problems that the change introduced are stored.
    Known {
        /// Name and version of the tool.
        tool: String,
        new: Vec<Problem>,
        /// Numbers of problems without the change (`before`) and with the change (`after`).
        #[serde(default)]
        before: usize,
        #[serde(default)]
        after: usize,
        #[serde(default)]
        millis: u64,
        /// If a further service gave no result: why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unknown: Option<String>,
    },
}

impl DiagnosticEvidence {
    /// Returns the new problems that prevent the change from being accepted.
    pub fn stopping(&self) -> impl Iterator<Item = &Problem> {
        let new = match self {
            DiagnosticEvidence::Absent | DiagnosticEvidence::Unknown { .. } => &[],
            DiagnosticEvidence::Known { new, .. } => new.as_slice(),
        };
        new.iter().filter(|problem| problem.stops)
    }

    /// Combines the diagnostics of two services or of two files.
    pub fn and(mut self, other: DiagnosticEvidence) -> DiagnosticEvidence {
        use DiagnosticEvidence::{Absent, Known, Unknown};
        match (&mut self, other) {
            (Absent, other) => other,
            (_, Absent) => self,
            (Unknown { reason }, mut other) => {
                match &mut other {
                    Known { unknown, .. } => *unknown = Some(std::mem::take(reason)),
                    Unknown { reason: more } if more == reason => {}
                    Unknown { reason: more } => *more = format!("{reason}; {more}"),
                    Absent => {}
                }
                other
            }
            (Known { unknown, .. }, Unknown { reason }) => {
                *unknown = Some(reason);
                self
            }
            (
                Known {
                    tool,
                    new,
                    before,
                    after,
                    millis,
                    unknown,
                },
                Known {
                    tool: other_tool,
                    new: more_new,
                    before: more_before,
                    after: more_after,
                    millis: more_millis,
                    unknown: more_unknown,
                },
            ) => {
                if *tool != other_tool {
                    *tool = format!("{tool}, {other_tool}");
                }
                new.extend(more_new);
                *before += more_before;
                *after += more_after;
                *millis += more_millis;
                *unknown = unknown.take().or(more_unknown);
                self
            }
        }
    }
}

impl fmt::Display for DiagnosticEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiagnosticEvidence::Absent => Ok(()),
            DiagnosticEvidence::Unknown { reason } => {
                writeln!(f, "diagnostics: unknown ({reason})")
            }
            DiagnosticEvidence::Known {
                tool,
                new,
                before,
                after,
                millis,
                unknown,
            } => {
                let tools = match unknown {
                    Some(reason) => format!("{tool}; unknown: {reason}"),
                    None => tool.clone(),
                };
                let count = match new.len() {
                    0 => "no new problem".to_owned(),
                    count => format!("{count} new"),
                };
                let counts = format!("{before} before, {after} after");
                writeln!(f, "diagnostics: {count} ({tools}) in {millis} ms, {counts}")?;
                for problem in new.iter().take(SHOWN) {
                    let Problem {
                        file,
                        line,
                        message,
                        ..
                    } = problem;
                    writeln!(f, "  {file}:{line}: {message}")?;
                }
                Ok(())
            }
        }
    }
}

/// The imports that were automatically added to a change or removed from it before the checks,
/// without a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportMends {
    /// Missing imports that were added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Unused imports that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Undefined names for which several import statements are possible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unclear: Vec<UnclearImport>,
}

/// An undefined name and the import statements that would define it, the most frequently used
/// first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnclearImport {
    pub name: String,
    pub statements: Vec<String>,
}

impl ImportMends {
    /// Adds the automatic import changes of another change.
    pub fn extend(&mut self, other: &ImportMends) {
        self.added.extend(other.added.iter().cloned());
        self.left_out.extend(other.left_out.iter().cloned());
        self.unclear.extend(other.unclear.iter().cloned());
    }

    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.left_out.is_empty() && self.unclear.is_empty()
    }
}

impl fmt::Display for UnclearImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let statements = self.statements.join("` or `");
        write!(f, "`{}` needs an import: `{statements}`", self.name)
    }
}

impl fmt::Display for ImportMends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.added.is_empty() {
            writeln!(f, "imports added to it: {}", self.added.join("; "))?;
        }
        if !self.left_out.is_empty() {
            let left_out = self.left_out.join("; ");
            writeln!(
                f,
                "imports left out, for it uses nothing of them: {left_out}"
            )?;
        }
        for one in &self.unclear {
            writeln!(f, "{one}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(tool: &str, unknown: Option<&str>) -> DiagnosticEvidence {
        DiagnosticEvidence::Known {
            tool: tool.to_owned(),
            new: Vec::new(),
            before: 1,
            after: 1,
            millis: 1,
            unknown: unknown.map(str::to_owned),
        }
    }

    fn unknown(reason: &str) -> DiagnosticEvidence {
        DiagnosticEvidence::Unknown {
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn diagnostics_of_several_files_and_services_are_merged_into_one_line() {
        let text = |one: DiagnosticEvidence, other| one.and(other).to_string();
        let absent = || DiagnosticEvidence::Absent;
        assert_eq!(text(absent(), absent()), "");
        assert_eq!(text(unknown("slow"), absent()), unknown("slow").to_string());
        assert_eq!(text(absent(), unknown("slow")), unknown("slow").to_string());
        let same = text(unknown("slow"), unknown("slow"));
        assert_eq!(same, "diagnostics: unknown (slow)\n");
        let both = text(unknown("slow"), unknown("gone"));
        assert_eq!(both, "diagnostics: unknown (slow; gone)\n");
        let two = text(known("ty", Some("slow")), known("ty", None));
        assert_eq!(
            two,
            "diagnostics: no new problem (ty; unknown: slow) in 2 ms, 2 before, 2 after\n"
        );
    }

    #[test]
    fn evidence_lists_added_dropped_and_ambiguous_imports() {
        let mends = ImportMends {
            added: vec!["import os".to_owned(), "import re".to_owned()],
            left_out: vec!["import sys".to_owned()],
            unclear: vec![UnclearImport {
                name: "Path".to_owned(),
                statements: vec![
                    "from a import Path".to_owned(),
                    "from b import Path".to_owned(),
                ],
            }],
        };
        assert_eq!(
            mends.to_string(),
            "imports added to it: import os; import re\n\
             imports left out, for it uses nothing of them: import sys\n\
             `Path` needs an import: `from a import Path` or `from b import Path`\n"
        );
        assert!(!mends.is_empty() && ImportMends::default().is_empty());
    }
}
