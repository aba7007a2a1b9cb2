//! Applies a patch to the files of a tree, in memory.

use std::path::Path;
use std::sync::Arc;

use starling_syntax::FilePath;

/// A block of consecutive lines and their replacement.
struct Hunk<'p> {
    /// Number of the first line in the text before the patch, counted from 0.
    start: usize,
    old: Vec<&'p str>,
    new: Vec<&'p str>,
}

/// A file that a patch changes, with its texts before and after.
pub struct PatchedFile {
    pub file: FilePath,
    /// The text before the patch. Empty if the file is new.
    pub old: Arc<str>,
    pub new: Arc<str>,
}

/// Returns the single Python file that a patch changes, or `None` if the patch changes other files
/// or does not apply.
pub fn apply_one(patch: &str, root: &Path) -> Option<PatchedFile> {
    let mut all = apply(patch, root)?;
    let one = all.pop().filter(|_| all.is_empty())?;
    (one.file.as_str().ends_with(".py") && !one.old.is_empty()).then_some(one)
}

/// Returns all files that a patch changes or creates, or `None` if it does not apply.
pub fn apply(patch: &str, root: &Path) -> Option<Vec<PatchedFile>> {
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for line in patch.lines() {
        if line.starts_with("diff --git ") {
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(line);
        }
    }
    parts.iter().map(|part| of_file(part, root)).collect()
}

fn of_file(part: &[&str], root: &Path) -> Option<PatchedFile> {
    let path = part.iter().find_map(|line| line.strip_prefix("+++ b/"))?;
    let file = FilePath::new(path.trim_end());
    let is_new = part.contains(&"--- /dev/null");
    let old = match is_new {
        true => String::new(),
        false => std::fs::read_to_string(root.join(file.as_str())).ok()?,
    };
    let mut lines: Vec<&str> = old.split('\n').collect();
    // Hunks are applied from last to first, so that the positions of earlier ones stay valid.
    for hunk in hunks(part)?.iter().rev() {
        let count = hunk.old.len();
        let fits = |at: &usize| lines.get(*at..at + count) == Some(hunk.old.as_slice());
        let places = (0..lines.len()).filter(fits);
        let at = places.min_by_key(|at| at.abs_diff(hunk.start))?;
        lines.splice(at..at + count, hunk.new.iter().copied());
    }
    let new = lines.join("\n").into();
    let old = old.as_str().into();
    Some(PatchedFile { file, old, new })
}

fn hunks<'p>(part: &[&'p str]) -> Option<Vec<Hunk<'p>>> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    for line in part {
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
