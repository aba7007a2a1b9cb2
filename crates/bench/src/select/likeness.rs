//! Measures the similarity of two changes, independent of whitespace, comments and positions.

use std::collections::BTreeSet;

/// Returns the added and removed lines, each with its file and its sign, without whitespace,
/// comments and blank lines.
pub(super) fn changed_lines(patch: &str) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let mut file = "";
    for line in patch.lines() {
        if let Some(path) = line
            .strip_prefix("+++ ")
            .or_else(|| line.strip_prefix("--- "))
        {
            let path = path.strip_prefix("b/").or_else(|| path.strip_prefix("a/"));
            file = path.unwrap_or(file);
            continue;
        }
        let (sign, text) = match line.split_at_checked(1) {
            Some((sign @ ("+" | "-"), text)) => (sign, text),
            Some(_) | None => continue,
        };
        let text: String = text.split_whitespace().collect();
        if !text.is_empty() && !text.starts_with('#') {
            lines.insert(format!("{file}{sign}{text}"));
        }
    }
    lines
}

/// Returns the Jaccard similarity of two changes' lines, from 0 to 1.
pub(super) fn likeness(one: &str, other: &str) -> f64 {
    let (one, other) = (changed_lines(one), changed_lines(other));
    let all = one.union(&other).count();
    match all {
        0 => 0.0,
        all => one.intersection(&other).count() as f64 / all as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n ctx\n-a = 1\n+a = 2\n";

    #[test]
    fn similarity_ignores_whitespace_comments_and_line_numbers() {
        let moved =
            "--- a/x.py\n+++ b/x.py\n@@ -9,2 +9,4 @@\n other\n-a  = 1\n+  a = 2\n+\n+# why\n";
        assert_eq!(likeness(ONE, moved), 1.0);
    }

    #[test]
    fn similarity_drops_for_other_lines_and_other_files() {
        let more = format!("{ONE}+b = 3\n+c = 4\n");
        assert_eq!(likeness(ONE, &more), 0.5);
        assert_eq!(likeness(ONE, &ONE.replace("x.py", "y.py")), 0.0);
        assert_eq!(likeness("", ""), 0.0);
    }
}
