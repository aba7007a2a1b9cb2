//! Undo in files that an editor saved in another form than UTF-8 with LF.

use super::*;

/// Returns how an editor saves a text that it shows without a byte order mark and with LF: in
/// Latin-1, in UTF-16, with a byte order mark, and with CRLF.
fn saved_forms(text: &str) -> [Vec<u8>; 4] {
    let wide = std::iter::once(0xfeff).chain(text.encode_utf16());
    [
        text.chars().map(|one| one as u8).collect(),
        wide.flat_map(u16::to_le_bytes).collect(),
        format!("\u{feff}{text}").into(),
        text.replace('\n', "\r\n").into(),
    ]
}

#[tokio::test]
async fn undo_restores_a_file_in_the_form_in_which_the_editor_saved_it() {
    let (before, after) = ("größe\na\nmaß\n", "größe!\nb\nmaß\n");
    for (saved, expected) in saved_forms(after).into_iter().zip(saved_forms(before)) {
        let project = TestProject::new();
        let found = project.recorded("1-1", &project.root(), &[made(before, after)]);
        let path = project.root().join("a.py");
        std::fs::write(&path, saved).unwrap();
        let outcome = project.undo(&found).await;
        assert_eq!(outcome.undone, [ProposalId(1)], "{outcome:?}");
        assert_eq!(std::fs::read(path).unwrap(), expected);
    }
}

#[tokio::test]
async fn change_that_a_killed_run_did_not_record_is_found_in_every_form_of_the_file() {
    let (before, after) = ("größe\na\nmaß\n", "größe!\nb\nmaß\n");
    for (saved, expected) in saved_forms(after).into_iter().zip(saved_forms(before)) {
        let project = TestProject::new();
        let found = project.killed("1-1", &[], made(before, after));
        let path = project.root().join("a.py");
        std::fs::write(&path, saved).unwrap();
        let outcome = project.undo(&found).await;
        assert_eq!(outcome.undone, [ProposalId(1)], "{outcome:?}");
        assert_eq!(std::fs::read(path).unwrap(), expected);
    }
}
