//! Shortens tracebacks to the frames of the workspace.

use std::path::Path;

use starling_index::{Frame, frame};
use starling_syntax::FilePath;

/// Maximum length of a failing test's message, in bytes.
const MESSAGE_BYTES: usize = 1_500;
/// File name of a Python snippet in tracebacks.
pub(super) const SNIPPET: &str = "<snippet>";
/// Directories of installed code, which is not edited.
const INSTALLED: [&str; 5] = ["site-packages", "dist-packages", ".venv", "venv", ".tox"];

/// Returns the workspace frames of all tracebacks in an output, in printed order and without
/// duplicates. Line numbers start at 1.
pub fn frames(output: &str, root: &Path) -> Vec<(FilePath, u32)> {
    let mut found = Vec::new();
    for frame in starling_index::frames(output) {
        if let Some(file) = own_file(&frame, root)
            && !found.contains(&(file.clone(), frame.line))
        {
            found.push((file, frame.line));
        }
    }
    found
}

/// Returns the file of a frame if it is in the workspace and not installed code.
fn own_file(frame: &Frame<'_>, root: &Path) -> Option<FilePath> {
    own_path(frame.path, root)
}

/// Returns the file of a path if it is in the workspace and not installed code.
pub(super) fn own_path(path: &str, root: &Path) -> Option<FilePath> {
    let path = Path::new(path);
    let relative = if path.is_absolute() {
        path.strip_prefix(root).ok()?
    } else {
        path
    };
    let text = relative.to_str()?;
    let parts = || text.split('/');
    let foreign = parts().any(|part| INSTALLED.contains(&part) || part == "..");
    (!foreign && !text.starts_with('<')).then(|| FilePath::new(text))
}

/// Shortens the message of a failing test: leaves out frames outside of the workspace, makes paths
/// relative to the root, and limits the length.
pub(super) fn shorten(body: &str, root: &Path) -> String {
    middle_out(own_frames(body, root).trim(), MESSAGE_BYTES)
}

/// Removes traceback frames outside the workspace, except the frames of a snippet. Makes paths
/// relative to the root.
pub(super) fn own_frames(body: &str, root: &Path) -> String {
    let mut kept = String::new();
    let mut foreign = 0;
    // Indentation of the frame that is being left out. Deeper lines are its source code.
    let mut skipping: Option<usize> = None;
    for line in body.lines() {
        let depth = line.len() - line.trim_start().len();
        if skipping.is_some_and(|frame| depth > frame) && frame(line).is_none() {
            continue;
        }
        skipping = None;
        match frame(line) {
            Some(found) if found.path != SNIPPET && own_file(&found, root).is_none() => {
                foreign += 1;
                skipping = Some(depth);
            }
            Some(_) | None => {
                note_foreign(&mut kept, &mut foreign);
                kept.push_str(line.trim_end());
                kept.push('\n');
            }
        }
    }
    note_foreign(&mut kept, &mut foreign);
    kept.replace(&format!("{}/", root.display()), "")
}

fn note_foreign(kept: &mut String, count: &mut usize) {
    match std::mem::take(count) {
        0 => {}
        1 => kept.push_str("  … 1 frame outside the workspace\n"),
        n => kept.push_str(&format!("  … {n} frames outside the workspace\n")),
    }
}

/// Shortens a text to its first third and its end. The end matters more, because a failure ends
/// with the error.
fn middle_out(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(bytes / 3);
    format!("{}\n…\n{}", &text[..head], last(text, bytes - bytes / 3))
}

/// Shortens a text to its first and last `bytes / 2` bytes. A line between the two parts gives the
/// number of omitted bytes.
pub(super) fn both_ends(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(bytes / 2)];
    let tail = last(text, bytes / 2);
    let left_out = text.len() - head.len() - tail.len();
    format!("{head}\n… {left_out} bytes left out …\n{tail}")
}

/// Returns the end of a text, at most `bytes` long, starting at a character boundary.
pub(super) fn last(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"Traceback (most recent call last):
  File "/w/tests/test_a.py", line 3, in test_x
    f(1)
  File "/usr/lib/python3/lib.py", line 9, in wrap
    return g()
           ^^^
  File "/w/.venv/lib/python3/site-packages/x.py", line 1, in y
    h()
  File "/w/src/a.py", line 12, in f
    raise ValueError("no")
ValueError: no
"#;

    #[test]
    fn traceback_keeps_only_the_frames_of_the_workspace() {
        let expected = "Traceback (most recent call last):\n  File \"tests/test_a.py\", line 3, in test_x\n    f(1)\n  \
             … 2 frames outside the workspace\n  File \"src/a.py\", line 12, in f\n    raise ValueError(\"no\")\nValueError: no";
        assert_eq!(shorten(TRACE, Path::new("/w")), expected);
    }

    #[test]
    fn short_pytest_traceback_keeps_only_the_frames_of_the_workspace() {
        let body = "tests/t.py:3: in test_x\n    f(1)\n/usr/lib/p.py:9: in wrap\n    return g()\nE   ValueError: no\n";
        let expected = "tests/t.py:3: in test_x\n    f(1)\n  … 1 frame outside the workspace\nE   ValueError: no";
        assert_eq!(shorten(body, Path::new("/w")), expected);
    }

    #[test]
    fn workspace_frames_of_a_traceback_are_found() {
        let output = format!("{TRACE}{TRACE}x.py:4: in f\n../y.py:4: in f\n");
        let found = frames(&output, Path::new("/w"));
        let named: Vec<_> = found.iter().map(|(f, line)| (f.as_str(), *line)).collect();
        assert_eq!(
            named,
            [("tests/test_a.py", 3), ("src/a.py", 12), ("x.py", 4)]
        );
    }

    #[test]
    fn long_message_keeps_its_start_and_its_end() {
        let body = format!("first é\n{}\nlast: é", "é\n".repeat(3000));
        let short = shorten(&body, Path::new("/w"));
        assert!(short.len() <= MESSAGE_BYTES + 8);
        assert!(short.starts_with("first é") && short.ends_with("last: é"));
    }

    #[test]
    fn only_files_of_the_project_count_as_frames() {
        let output = "/w/a.py:1: in f\n/other/b.py:2: in f\n/w/.tox/c.py:3: in f\n<string>.py:4: in f\n\
                      /work/d.py:5: in f\nlib/site-packages/e.py:6: in f\nE     File \"/w/g.py\", line 7\n./h.py:8: in f\n";
        let found = frames(output, Path::new("/w"));
        let named: Vec<_> = found.iter().map(|(f, line)| (f.as_str(), *line)).collect();
        assert_eq!(named, [("a.py", 1), ("g.py", 7), ("h.py", 8)]);
    }

    #[test]
    fn message_counts_the_frames_that_are_left_out_at_its_end() {
        let body = "a.py:1: in f\n    g()\n/usr/lib/x.py:2: in g\n    h()\n/usr/lib/x.py:3: in h\n    i()\n";
        let expected = "a.py:1: in f\n    g()\n  … 2 frames outside the workspace";
        assert_eq!(shorten(body, Path::new("/w")), expected);
        assert_eq!(shorten("", Path::new("/w")), "");
        assert_eq!(last("éé", 3), "é");
        assert_eq!(last("ab", 9), "ab");
    }
}
