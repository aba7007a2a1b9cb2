//! Applies a patch of one file to its text.

use std::path::Path;
use std::sync::Arc;

/// Lines that become others.
struct Hunk<'p> {
    /// From 0, before the patch.
    start: usize,
    old: Vec<&'p str>,
    new: Vec<&'p str>,
}

/// The file, its text and the text with the patch; `None` when it is not one of one Python file, or
/// does not fit.
pub fn apply(patch: &str, root: &Path) -> Option<(String, Arc<str>, Arc<str>)> {
    let mut files = patch.lines().filter_map(|line| line.strip_prefix("--- a/"));
    let (file, None) = (files.next()?.trim_end(), files.next()) else {
        return None;
    };
    if !file.ends_with(".py") {
        return None;
    }
    let old = std::fs::read_to_string(root.join(file)).ok()?;
    let mut lines: Vec<&str> = old.split('\n').collect();
    // From the last: the places of those before it stay.
    for hunk in hunks(patch)?.iter().rev() {
        let count = hunk.old.len();
        let fits = |at: &usize| lines.get(*at..at + count) == Some(hunk.old.as_slice());
        let places = (0..lines.len()).filter(fits);
        let at = places.min_by_key(|at| at.abs_diff(hunk.start))?;
        lines.splice(at..at + count, hunk.new.iter().copied());
    }
    let new = lines.join("\n");
    Some((file.to_owned(), old.as_str().into(), new.into()))
}

fn hunks(patch: &str) -> Option<Vec<Hunk<'_>>> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    for line in patch.lines() {
        if let Some(rest) = line.strip_prefix("@@ -") {
            let start: usize = rest.split([',', ' ']).next()?.parse().ok()?;
            hunks.push(Hunk {
                start: start.saturating_sub(1),
                old: Vec::new(),
                new: Vec::new(),
            });
            continue;
        }
        let Some(hunk) = hunks.last_mut() else {
            continue;
        };
        if let Some(new) = line.strip_prefix('+') {
            hunk.new.push(new);
        } else if let Some(gone) = line.strip_prefix('-') {
            hunk.old.push(gone);
        } else if !line.starts_with('\\') {
            let same = line.strip_prefix(' ').unwrap_or(line);
            hunk.old.push(same);
            hunk.new.push(same);
        }
    }
    Some(hunks)
}
