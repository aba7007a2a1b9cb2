//! The files of a proposal as `starling/proposal` returns them.

use ropey::Rope;
use tower_lsp::lsp_types::{Position, Range, Url};

use super::protocol::ProposedFile;
use super::session::{CurrentFile, Preview, preview};
use starling_swarm::FileChange;
use starling_text::{
    ChangeSet, Encoding, deleted_file_diff, new_file_diff, position_of, unified_diff, visible,
};

/// Returns a file of a proposal, before and after the proposal's changes are applied in order.
pub fn proposed_file(
    uri: Url,
    now: CurrentFile,
    changes: &[&FileChange],
    encoding: Encoding,
) -> ProposedFile {
    let Preview {
        before,
        creates,
        deletes,
        after,
        proposed,
    } = preview(now.text, changes);
    let ranges = match &after {
        Ok(after) => ranges(&before, after, encoding),
        Err(_) => Vec::new(),
    };
    ProposedFile {
        uri,
        version: now.version,
        creates,
        deletes,
        before: before.to_string(),
        after: after.as_ref().ok().map(ToString::to_string),
        conflict: after.err(),
        proposed,
        ranges,
    }
}

/// Returns one diff of all files for display: invisible characters are escaped. A file with a
/// conflict has no diff.
pub fn diff<'f>(files: impl Iterator<Item = (&'f str, &'f ProposedFile)>) -> String {
    let diff = |(name, file): (&str, &ProposedFile)| {
        let after = file.after.as_deref()?;
        Some(visible(&match (file.creates, file.deletes) {
            (_, true) => deleted_file_diff(name, &file.before),
            (true, false) => new_file_diff(name, after),
            (false, false) => unified_diff(name, &file.before, after),
        }))
    };
    files.filter_map(diff).collect()
}

fn ranges(before: &str, after: &str, encoding: Encoding) -> Vec<Range> {
    let rope = Rope::from_str(before);
    let place = |offset| {
        let position = position_of(&rope, offset, encoding);
        Position::new(position.line, position.column)
    };
    ChangeSet::between(before, after)
        .edits()
        .iter()
        .map(|edit| Range::new(place(edit.range.start), place(edit.range.end)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{BASE, waiting};

    fn uri() -> Url {
        Url::parse("file:///w/a.py").unwrap()
    }

    fn now(text: Option<&str>) -> CurrentFile {
        CurrentFile {
            path: "/w/a.py".into(),
            version: Some(3),
            text: text.map(Into::into),
        }
    }

    fn parts(proposals: &[(u32, &str)]) -> Vec<FileChange> {
        let view = waiting(proposals);
        view.proposals
            .into_values()
            .filter_map(|one| one.part)
            .collect()
    }

    #[test]
    fn set_of_proposals_is_rebased_over_typed_text() {
        let parts = parts(&[(1, "a.py::f"), (2, "a.py::g")]);
        let parts: Vec<&FileChange> = parts.iter().collect();
        let typed = format!("# 🙂\r\n{BASE}");
        let state = proposed_file(uri(), now(Some(&typed)), &parts, Encoding::Utf16);
        let expected = typed
            .replace("return 1", "yield 1")
            .replace("return 3", "yield 3");
        assert_eq!(state.after.as_deref(), Some(expected.as_str()));
        assert_eq!(state.before, typed);
        let lines: Vec<u32> = state.ranges.iter().map(|range| range.start.line).collect();
        assert_eq!(lines, [2, 11]);
        let diff = diff([("a.py", &state)].into_iter());
        assert!(diff.contains("-    return 1\n+    yield 1\n"), "{diff}");
        assert!(diff.contains("-    return 3\n+    yield 3\n"), "{diff}");
    }

    #[test]
    fn file_with_a_conflict_has_no_preview_text() {
        let parts = parts(&[(1, "a.py::f")]);
        let parts: Vec<&FileChange> = parts.iter().collect();
        let typed = BASE.replace("return 1", "raise 1");
        let state = proposed_file(uri(), now(Some(&typed)), &parts, Encoding::Utf16);
        assert_eq!(state.after, None);
        assert!(state.conflict.as_deref().unwrap().contains("both sides"));
        let proposed = BASE.replace("return 1", "yield 1");
        assert_eq!(state.proposed.as_deref(), Some(proposed.as_str()));
        assert!(state.ranges.is_empty());
        assert_eq!(diff([("a.py", &state)].into_iter()), "");
    }

    #[test]
    fn diff_of_a_deleted_file_leads_to_dev_null_and_any_typed_text_is_a_conflict() {
        let mut part = parts(&[(1, "a.py::f")]).remove(0);
        part.changes = ChangeSet::between(BASE, "");
        part.deleted = true;
        let state = proposed_file(uri(), now(Some(BASE)), &[&part], Encoding::Utf8);
        assert!(state.deletes && state.after.as_deref() == Some(""));
        let shown = diff([("a.py", &state)].into_iter());
        assert!(shown.starts_with("--- a/a.py\n+++ /dev/null\n"), "{shown}");
        let typed = format!("{BASE}# typed\n");
        let state = proposed_file(uri(), now(Some(&typed)), &[&part], Encoding::Utf8);
        assert!(state.after.is_none() && state.conflict.is_some());
    }

    #[test]
    fn new_file_diff_starts_from_dev_null() {
        let mut part = parts(&[(1, "a.py::f")]).remove(0);
        part.base = "".into();
        part.changes = ChangeSet::between("", "x = 1\n");
        let state = proposed_file(uri(), now(None), &[&part], Encoding::Utf8);
        assert!(state.creates);
        let diff = diff([("a.py", &state)].into_iter());
        assert!(diff.starts_with("--- /dev/null"), "{diff}");
    }
}
