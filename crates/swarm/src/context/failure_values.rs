//! Describes the values of variables in the frames of failing tests.

use starling_core::{ExecutedFrame, Executions, Tokens};

/// Maximum number of failing tests whose frames are described.
const TESTS: usize = 2;
/// Maximum number of characters of a value.
const VALUE: usize = 120;

/// Returns the frames of the failing tests with the values of their variables, one frame per line.
/// The innermost frames are kept if not all fit, because the error is raised there.
pub(crate) fn failure_values(executions: &Executions, most: Tokens) -> String {
    let mut left = most;
    let mut described: Vec<String> = Vec::new();
    for execution in executions.failing.iter().take(TESTS) {
        let frames = execution.frames.iter().rev();
        let mut lines: Vec<String> = Vec::new();
        for line in frames.filter_map(described_frame) {
            if described.contains(&line) {
                continue;
            }
            let cost = Tokens::estimate(&line);
            if cost > left {
                break;
            }
            left = left.saturating_sub(cost);
            lines.push(line);
        }
        described.extend(lines.into_iter().rev());
    }
    described.join("\n")
}

fn described_frame(frame: &ExecutedFrame) -> Option<String> {
    let values: Vec<String> = frame.values.iter().map(|value| short(value)).collect();
    let ExecutedFrame {
        file,
        line,
        function,
        ..
    } = frame;
    (!values.is_empty()).then(|| format!("{file}:{line} in {function}: {}", values.join(", ")))
}

fn short(value: &str) -> String {
    match value.char_indices().nth(VALUE) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_core::FailingExecution;
    use starling_syntax::FilePath;

    fn executions(of_tests: &[&[(u32, &[&str])]]) -> Executions {
        let frame = |(line, values): &(u32, &[&str])| ExecutedFrame {
            file: FilePath::new("a.py"),
            line: *line,
            function: "f".to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let of_test = |frames: &&[(u32, &[&str])]| FailingExecution {
            id: "t.py::t".to_owned(),
            frames: frames.iter().map(frame).collect(),
            lines: Default::default(),
        };
        Executions {
            failing: of_tests.iter().map(of_test).collect(),
            ..Executions::default()
        }
    }

    #[test]
    fn frames_of_failing_tests_are_described_in_their_order() {
        let long = format!("y = {}", "é".repeat(200));
        let frames: &[(u32, &[&str])] = &[(1, &["x = 1", "z = []"]), (2, &[]), (3, &[&long])];
        let text = failure_values(&executions(&[frames, frames]), Tokens(500));
        let shown = format!(
            "a.py:1 in f: x = 1, z = []\na.py:3 in f: y = {}…",
            "é".repeat(116)
        );
        assert_eq!(text, shown);
    }

    #[test]
    fn innermost_frames_are_kept_if_not_all_fit() {
        let values: Vec<String> = (0..40).map(|n| format!("x{n} = {n}")).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let frames: &[(u32, &[&str])] = &[(1, &values), (2, &["y = 1"])];
        let text = failure_values(&executions(&[frames]), Tokens(50));
        assert_eq!(text, "a.py:2 in f: y = 1");
    }
}
