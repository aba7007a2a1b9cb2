//! Instances as SWE-bench writes them: one a line, as JSON.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};

/// What a run may see of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// `owner__name-number`
    pub id: String,
    /// `owner/name`
    pub repo: String,
    pub base_commit: String,
    pub problem_statement: String,
}

/// What belongs to the grader: no run sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The change that was made upstream, as a unified diff.
    pub patch: String,
    /// The tests that came with it.
    pub test_patch: String,
    pub fail_to_pass: Vec<String>,
    pub pass_to_pass: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub task: Task,
    pub answer: Answer,
}

/// Why a data set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error("{}: {error}", .path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(
        "{}, line {line}: {error}; expected one instance of SWE-bench a line, as JSON",
        .path.display()
    )]
    NoInstance {
        path: PathBuf,
        line: usize,
        error: serde_json::Error,
    },
    #[error("{}, line {line}: the instance {id} is there twice", .path.display())]
    Twice {
        path: PathBuf,
        line: usize,
        id: String,
    },
}

#[derive(Deserialize)]
struct Row {
    instance_id: String,
    repo: String,
    base_commit: String,
    problem_statement: String,
    #[serde(default)]
    patch: String,
    #[serde(default)]
    test_patch: String,
    #[serde(default, rename = "FAIL_TO_PASS", deserialize_with = "tests")]
    fail_to_pass: Vec<String>,
    #[serde(default, rename = "PASS_TO_PASS", deserialize_with = "tests")]
    pass_to_pass: Vec<String>,
}

/// A list of tests, or one written as JSON into a string.
fn tests<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Tests {
        List(Vec<String>),
        Written(String),
    }
    match Tests::deserialize(from)? {
        Tests::List(tests) => Ok(tests),
        Tests::Written(text) if text.trim().is_empty() => Ok(Vec::new()),
        Tests::Written(text) => serde_json::from_str(&text).map_err(serde::de::Error::custom),
    }
}

/// All instances of a file, in its order.
///
/// # Errors
/// The file cannot be read, or a line of it is no instance: which one, and why.
pub fn read_instances(path: &Path) -> Result<Vec<Instance>, DatasetError> {
    let text = std::fs::read_to_string(path).map_err(|error| DatasetError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    let mut seen = std::collections::BTreeSet::new();
    let mut instances = Vec::new();
    let lines = (1..).zip(text.lines());
    for (line, row) in lines.filter(|(_, row)| !row.trim().is_empty()) {
        let row: Row = serde_json::from_str(row).map_err(|error| DatasetError::NoInstance {
            path: path.to_owned(),
            line,
            error,
        })?;
        if !seen.insert(row.instance_id.clone()) {
            return Err(DatasetError::Twice {
                path: path.to_owned(),
                line,
                id: row.instance_id,
            });
        }
        instances.push(row.into());
    }
    Ok(instances)
}

impl From<Row> for Instance {
    fn from(row: Row) -> Self {
        Instance {
            task: Task {
                id: row.instance_id,
                repo: row.repo,
                base_commit: row.base_commit,
                problem_statement: row.problem_statement,
            },
            answer: Answer {
                patch: row.patch,
                test_patch: row.test_patch,
                fail_to_pass: row.fail_to_pass,
                pass_to_pass: row.pass_to_pass,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Instance>, DatasetError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("set.jsonl");
        std::fs::write(&path, text).unwrap();
        read_instances(&path)
    }

    const ROW: &str = r#"{"instance_id":"a__b-1","repo":"a/b","base_commit":"c0ffee","problem_statement":"It breaks.","patch":"P","test_patch":"T","FAIL_TO_PASS":"[\"t::one\"]","PASS_TO_PASS":["t::two"],"hints_text":"H","version":"1"}"#;

    #[test]
    fn tests_are_lists_or_lists_in_strings() {
        let instances = read(&format!("{ROW}\n\n")).unwrap();
        assert_eq!(instances.len(), 1);
        assert_eq!(instances[0].task.repo, "a/b");
        assert_eq!(instances[0].answer.fail_to_pass, ["t::one"]);
        assert_eq!(instances[0].answer.pass_to_pass, ["t::two"]);
    }

    #[test]
    fn a_task_alone_is_an_instance_without_an_answer() {
        let row = r#"{"instance_id":"a__b-1","repo":"a/b","base_commit":"c","problem_statement":"p","FAIL_TO_PASS":""}"#;
        let instances = read(row).unwrap();
        assert_eq!(instances[0].answer.patch, "");
        assert!(instances[0].answer.fail_to_pass.is_empty());
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let error = read(&format!("{ROW}\n{{\"repo\": 1}}\n")).unwrap_err();
        assert!(error.to_string().contains("line 2"), "{error}");
        let error = read(&format!("{ROW}\n{ROW}\n")).unwrap_err();
        assert!(
            error.to_string().contains("a__b-1 is there twice"),
            "{error}"
        );
        let error = read_instances(Path::new("/nowhere/set.jsonl")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/set.jsonl"), "{error}");
    }
}
