//! Unified diffs for people and models, and line diffs for change sets.

use std::ops::Range;
use std::time::Duration;

use similar::TextDiff;

/// The time limit for one diff. After this time the diff is still correct, but coarser.
const TIME: Duration = Duration::from_millis(500);

/// Returns a unified diff with three lines of context and `a/`, `b/` headers. The result is empty
/// if the texts are equal. A missing newline at the end of a file is marked as `diff` does.
pub fn unified_diff(file: &str, old: &str, new: &str) -> String {
    diff((&format!("a/{file}"), &format!("b/{file}")), old, new)
}

/// Returns the diff that creates a file. The reverse of this diff deletes the file.
pub fn new_file_diff(file: &str, text: &str) -> String {
    diff(("/dev/null", &format!("b/{file}")), "", text)
}

/// Returns the diff that deletes a file.
pub fn deleted_file_diff(file: &str, text: &str) -> String {
    diff((&format!("a/{file}"), "/dev/null"), text, "")
}

fn diff((old_name, new_name): (&str, &str), old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (lines(old), lines(new));
    TextDiff::configure()
        .timeout(TIME)
        .newline_terminated(true)
        .diff_slices(&old, &new)
        .unified_diff()
        .context_radius(3)
        .header(old_name, new_name)
        .to_string()
}

/// Splits a text into lines with their line breaks. Lines end at LF only, so joining them restores
/// the text.
pub(super) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Returns the replaced runs of lines, as indices into `old` and `new`. Where a removed or added run
/// fits several places, because the lines around it are equal, it stands at the last of them. So two
/// changes of one text are placed alike, whatever else they change.
pub(super) fn replaced_lines(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    let diff = TextDiff::configure().timeout(TIME).diff_slices(old, new);
    let ops = diff.ops().iter();
    let mut runs: Vec<(Range<usize>, Range<usize>)> = ops
        .filter(|op| op.tag() != similar::DiffTag::Equal)
        .map(|op| (op.old_range(), op.new_range()))
        .collect();
    let mut next: Option<usize> = None;
    for (was, is) in runs.iter_mut().rev() {
        let (lines, run) = match (was.start == was.end, is.start == is.end) {
            (true, false) => (new, is.clone()),
            (false, true) => (old, was.clone()),
            (false, false) | (true, true) => (old, 0..0),
        };
        // At least one line stays between the run and the next one.
        let limit = next.map_or(old.len(), |next| next.saturating_sub(1));
        let room = limit.saturating_sub(was.end);
        let fits = |by: &usize| lines.get(run.start + by) == lines.get(run.end + by);
        let by = (0..room)
            .take_while(|by| !run.is_empty() && fits(by))
            .count();
        *was = was.start + by..was.end + by;
        *is = is.start + by..is.end + by;
        next = Some(was.start);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::{deleted_file_diff, new_file_diff, replaced_lines, unified_diff};

    #[test]
    fn removed_and_added_runs_stand_at_the_last_place_that_they_fit() {
        let old = ["a", "b", "", "", "f", "1", "", "", "g", "2", "", "", "h"];
        for new in [
            vec!["a", "b", "", "", "f", "1", "", "", "h"],
            vec!["b", "", "", "f", "1", "", "", "h"],
            vec!["x", "y", "z", "", "f", "1", "", "", "h"],
        ] {
            let runs = replaced_lines(&old, &new);
            assert_eq!(runs.last().unwrap().0, 8..12, "{new:?}");
            let runs = replaced_lines(&new, &old);
            assert_eq!(runs.last().unwrap().1, 8..12, "{new:?}");
        }
    }

    #[test]
    fn diff_of_a_deleted_file_leads_to_dev_null() {
        let diff = deleted_file_diff("a b.py", "x\ny\n");
        assert_eq!(
            diff,
            "--- a/a b.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n"
        );
    }

    #[test]
    fn diff_of_a_new_file_starts_from_dev_null() {
        let diff = new_file_diff("a b.py", "x\ny\n");
        assert_eq!(
            diff,
            "--- /dev/null\n+++ b/a b.py\n@@ -0,0 +1,2 @@\n+x\n+y\n"
        );
        assert_eq!(new_file_diff("a.py", ""), "");
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(unified_diff("f.py", "a\n", "a\n"), "");
    }

    #[test]
    fn diff_has_headers_and_three_lines_of_context() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = old.replace('5', "five");
        let expected =
            "--- a/d/f.py\n+++ b/d/f.py\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(unified_diff("d/f.py", old, &new), expected);
    }

    #[test]
    fn missing_newline_at_the_end_of_a_file_is_marked() {
        let expected =
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n";
        assert_eq!(unified_diff("f", "a\nb\n", "a\nb"), expected);
    }

    #[test]
    fn distant_changes_have_separate_hunks() {
        let old: String = (1..=30).map(|n| format!("{n}\n")).collect();
        let new = old.replacen("2\n", "two\n", 1).replace("29\n", "");
        let diff = unified_diff("f", &old, &new);
        let hunks: Vec<&str> = diff.lines().filter(|line| line.starts_with("@@")).collect();
        assert_eq!(hunks, ["@@ -1,5 +1,5 @@", "@@ -26,5 +26,4 @@"]);
    }

    #[test]
    fn diff_of_a_new_or_emptied_file_contains_all_lines() {
        assert_eq!(
            unified_diff("f", "", "a\nb\n"),
            "--- a/f\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"
        );
        assert_eq!(
            unified_diff("f", "a\n", ""),
            "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-a\n"
        );
        // Two lines that differ only in their line breaks are different lines.
        let diff = unified_diff("f", "a\r\n", "a\n");
        assert!(diff.contains("-a\r\n+a\n"), "{diff:?}");
    }
}
