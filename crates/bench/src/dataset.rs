//! Reads instances in the formats of SWE-bench: JSON lines, a JSON list, or the rows of a parquet
//! file.

mod parquet;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::names::is_plain;

/// The part of an instance that a run may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Instance id: `owner__name-number`.
    pub id: String,
    /// Repository: `owner/name`.
    pub repo: String,
    pub base_commit: String,
    pub problem_statement: String,
}

impl Task {
    /// Checks that the id can be used in names of files, images and arguments.
    pub(super) fn check(&self) -> Result<(), String> {
        match is_plain(&self.id) {
            true => Ok(()),
            false => Err(format!(
                "the instance id {:?} is not usable as the name of a file: rename the instance",
                self.id
            )),
        }
    }
}

/// The part of an instance that only the grader sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The upstream change, as a unified diff.
    pub patch: String,
    /// The tests that belong to the change, as a unified diff.
    pub test_patch: String,
    pub fail_to_pass: Vec<String>,
    pub pass_to_pass: Vec<String>,
}

/// An instance of a benchmark such as SWE-bench: a task, and the answer, which is hidden from runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub task: Task,
    pub answer: Answer,
}

/// Error when a data set cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error("{}: {error}", .path.display())]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(
        "{}, row {line}: {error}; expected instances in the format of SWE-bench: JSON Lines",
        .path.display()
    )]
    NoInstance {
        path: PathBuf,
        line: usize,
        error: serde_json::Error,
    },
    #[error("{}: {error}", .path.display())]
    NoParquet {
        path: PathBuf,
        error: ::parquet::errors::ParquetError,
    },
    #[error("{}, row {line}: the instance {id} occurs twice", .path.display())]
    Twice {
        path: PathBuf,
        line: usize,
        id: String,
    },
}

/// One row of a data set, as SWE-bench writes it.
#[derive(Deserialize)]
struct Row {
    instance_id: String,
    repo: String,
    base_commit: String,
    problem_statement: String,
    #[serde(default)]
    patch: Option<String>,
    #[serde(default)]
    test_patch: Option<String>,
    #[serde(default, rename = "FAIL_TO_PASS", deserialize_with = "tests")]
    fail_to_pass: Vec<String>,
    #[serde(default, rename = "PASS_TO_PASS", deserialize_with = "tests")]
    pass_to_pass: Vec<String>,
}

/// Deserializes a list of tests, which can also be a JSON list inside a string.
fn tests<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    /// A list of test names: a JSON list, a JSON list inside a string, or no value.
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Tests {
        List(Vec<String>),
        Written(String),
        Missing(()),
    }
    match Tests::deserialize(from)? {
        Tests::List(tests) => Ok(tests),
        Tests::Missing(()) => Ok(Vec::new()),
        Tests::Written(text) if text.trim().is_empty() => Ok(Vec::new()),
        Tests::Written(text) => serde_json::from_str(&text).map_err(serde::de::Error::custom),
    }
}

/// Returns all instances of a file, in order.
///
/// # Errors
/// Fails if the file cannot be read, or names the first row that is not a valid instance.
pub fn read_instances(path: &Path) -> Result<Vec<Instance>, DatasetError> {
    let mut seen = std::collections::BTreeSet::new();
    let mut instances = Vec::new();
    for (line, row) in rows(path)? {
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

/// Returns the rows with their numbers, counted from 1.
fn rows(path: &Path) -> Result<Vec<(usize, Row)>, DatasetError> {
    let no_instance = |line, error| DatasetError::NoInstance {
        path: path.to_owned(),
        line,
        error,
    };
    let read = |(line, value)| {
        let row = serde_json::from_value(value).map_err(|error| no_instance(line, error))?;
        Ok((line, row))
    };
    if parquet::is_parquet(path) {
        let values = parquet::rows(path).map_err(|error| DatasetError::NoParquet {
            path: path.to_owned(),
            error,
        })?;
        return (1..).zip(values).map(read).collect();
    }
    let text = std::fs::read_to_string(path).map_err(|error| DatasetError::Unreadable {
        path: path.to_owned(),
        error,
    })?;
    if text.trim_start().starts_with('[') {
        let values: Vec<Value> =
            serde_json::from_str(&text).map_err(|error| no_instance(error.line(), error))?;
        return (1..).zip(values).map(read).collect();
    }
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(line, text)| {
            let row = serde_json::from_str(text).map_err(|error| no_instance(line, error))?;
            Ok((line, row))
        })
        .collect()
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
                patch: row.patch.unwrap_or_default(),
                test_patch: row.test_patch.unwrap_or_default(),
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
    fn test_names_are_read_from_json_lists_and_from_lists_in_strings() {
        let instances = read(&format!("{ROW}\n\n")).unwrap();
        assert_eq!(instances.len(), 1);
        assert_eq!(instances[0].task.repo, "a/b");
        assert_eq!(instances[0].answer.fail_to_pass, ["t::one"]);
        assert_eq!(instances[0].answer.pass_to_pass, ["t::two"]);
    }

    #[test]
    fn instance_without_a_reference_change_is_accepted() {
        let row = r#"{"instance_id":"a__b-1","repo":"a/b","base_commit":"c","problem_statement":"p","FAIL_TO_PASS":""}"#;
        let instances = read(row).unwrap();
        assert_eq!(instances[0].answer.patch, "");
        assert!(instances[0].answer.fail_to_pass.is_empty());
    }

    #[test]
    fn json_list_and_rows_with_missing_fields_are_read() {
        let instances = read(&format!("[{ROW}]")).unwrap();
        assert_eq!(instances[0].answer.patch, "P");
        let row = r#"{"instance_id":"a__b-1","repo":"a/b","base_commit":"c","problem_statement":"p","patch":null,"FAIL_TO_PASS":null}"#;
        assert_eq!(read(row).unwrap()[0].answer.patch, "");
        assert!(read("[1]").unwrap_err().to_string().contains("row 1"));
    }

    #[test]
    fn parquet_file_gives_the_same_instances_as_json() {
        // The files were written by pyarrow. One has the tests as lists, the other as JSON strings.
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/swebench");
        for file in ["lists.parquet", "strings.parquet"] {
            let instances = read_instances(&here.join(file)).unwrap();
            assert_eq!(instances.len(), 2, "{file}");
            assert_eq!(instances[0].task.id, "a__b-1");
            assert_eq!(instances[0].task.problem_statement, "It breaks.\nBadly.");
            assert_eq!(
                instances[0].answer.fail_to_pass,
                ["t::one", "t::é"],
                "{file}"
            );
            assert_eq!(instances[1].answer.patch, "");
            assert!(instances[1].answer.pass_to_pass.is_empty(), "{file}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none.parquet");
        std::fs::write(&path, "PAR1 nonsense").unwrap();
        let error = read_instances(&path).unwrap_err().to_string();
        assert!(error.contains("none.parquet"), "{error}");
    }

    #[test]
    fn dataset_error_names_the_row() {
        let error = read(&format!("{ROW}\n{{\"repo\": 1}}\n")).unwrap_err();
        assert!(error.to_string().contains("row 2"), "{error}");
        let error = read(&format!("{ROW}\n{ROW}\n")).unwrap_err();
        assert!(error.to_string().contains("a__b-1 occurs twice"), "{error}");
        let error = read_instances(Path::new("/nowhere/set.jsonl")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/set.jsonl"), "{error}");
    }
}
