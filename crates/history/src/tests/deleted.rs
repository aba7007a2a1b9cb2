//! Undo of a change that deleted its file.

use super::*;
use starling_workspace::DeletedFile;

const TEXT: &str = "a\nb\n";

fn deletion(before: &str) -> AppliedChange {
    AppliedChange {
        created: false,
        deleted: Some(DeletedFile { mode: Some(0o755) }),
        ..made(before, "")
    }
}

/// Returns a project without `a.py`.
fn without_file() -> TestProject {
    let project = TestProject::new();
    let _ = std::fs::remove_file(project.root().join("a.py"));
    project
}

#[tokio::test]
async fn undo_makes_a_deleted_file_again_with_its_permissions() {
    let project = without_file();
    let found = project.recorded("1-1", &project.root(), &[made("a\n", TEXT), deletion(TEXT)]);
    let run = PastRun::read(&found.path).unwrap();
    let editor = DiskEditor::new(&project.root());
    let planned = plan(&editor, &run.changes, &[ProposalId(2)].into()).await;
    assert_eq!(planned.files[0].step(), UndoStep::Restore);
    let diff = planned.files[0].diff();
    assert!(diff.starts_with("--- /dev/null\n+++ b/a.py\n"), "{diff}");
    let outcome = project.undo(&found).await;
    assert_eq!(outcome.taken_back(), [ProposalId(2), ProposalId(1)]);
    assert_eq!(project.read(), "a\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let found = project.root().join("a.py").metadata().unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o755);
    }
    assert!(project.undo(&found).await.undone.is_empty());
}

#[tokio::test]
async fn undo_of_a_deletion_keeps_a_new_file_of_that_name() {
    let project = without_file();
    let found = project.recorded("1-1", &project.root(), &[deletion(TEXT)]);
    project.write("mine\n");
    let outcome = project.undo(&found).await;
    assert!(outcome.undone.is_empty());
    let why = &outcome.refused[0].why;
    assert!(why.contains("there is a new file of this name"), "{why}");
    assert_eq!(project.read(), "mine\n");
    // The user restored the file.
    project.write(TEXT);
    let outcome = project.undo(&found).await;
    assert_eq!(outcome.absent, [ProposalId(1)]);
}

#[tokio::test]
async fn change_of_a_file_that_a_later_proposal_deleted_is_undone_only_with_the_deletion() {
    let project = without_file();
    let changes = [made("a\n", TEXT), deletion(TEXT)];
    let found = project.recorded("1-1", &project.root(), &changes);
    let run = PastRun::read(&found.path).unwrap();
    let editor = DiskEditor::new(&project.root());
    let planned = plan(&editor, &run.changes, &[ProposalId(1)].into()).await;
    let why = &planned.refused[0].why;
    assert!(why.contains("#2 deleted the file; undo #2 first"), "{why}");
}

#[tokio::test]
async fn undo_reverts_a_deletion_that_a_killed_run_did_not_record() {
    let project = without_file();
    let found = project.killed("1-1", &[], deletion(TEXT));
    let outcome = project.undo(&found).await;
    assert_eq!(outcome.taken_back(), [ProposalId(1)]);
    assert_eq!(project.read(), TEXT);
    // The run was killed before it deleted the file.
    let found = project.killed("1-2", &[], deletion(TEXT));
    assert!(project.undo(&found).await.undone.is_empty());
    assert_eq!(project.read(), TEXT);
}
