//! Proposals of one set are undone together or not at all.

use std::sync::Mutex;

use super::*;
use starling_swarm::Dependencies;

/// An editor over the project's files that cannot write one of them.
struct FailingEditor {
    disk: DiskEditor,
    refuses: &'static str,
    /// A text that the user types into a file when the first edit arrives.
    typing: Mutex<Option<(PathBuf, String)>>,
}

#[async_trait]
impl Editor for FailingEditor {
    async fn current(&self, file: &FilePath) -> Result<CurrentText, EditorError> {
        self.disk.current(file).await
    }

    async fn apply(&self, edit: FileEdit) -> Result<CurrentText, ApplyError> {
        if edit.file.as_str() == self.refuses {
            return Err(ApplyError::Refused {
                file: edit.file,
                message: "permission denied".to_owned(),
            });
        }
        let applied = self.disk.apply(edit).await;
        if let Some((path, text)) = self.typing.lock().unwrap().take() {
            std::fs::write(path, text).unwrap();
        }
        applied
    }
}

fn ids(ids: &[u32]) -> BTreeSet<ProposalId> {
    ids.iter().map(|id| ProposalId(*id)).collect()
}

/// Returns a change of one line in a file of two lines, or a new file.
fn change(file: &str, set: &[u32], needs: &[u32]) -> AppliedChange {
    let (before, after) = match file {
        "new.py" => ("", "new\n"),
        _ => ("a\nb\n", "a\nB\n"),
    };
    AppliedChange {
        file: FilePath::new(file),
        dependencies: Dependencies {
            set: ids(set),
            needs: ids(needs),
        },
        ..made(before, after)
    }
}

/// Proposals 1, 2 and 3 were accepted as a set; 4 is independent; 6 needs 5.
fn project() -> (TestProject, RunFile) {
    let project = TestProject::new();
    let changes = [
        change("a.py", &[2, 3], &[]),
        change("b.py", &[1, 3], &[]),
        change("new.py", &[1, 2], &[]),
        change("d.py", &[], &[]),
        change("e.py", &[], &[]),
        change("f.py", &[], &[5]),
    ];
    for change in &changes {
        let text = change.changes.apply(&change.before).unwrap();
        std::fs::write(project.root().join(change.file.as_str()), text).unwrap();
    }
    let found = project.recorded("1-1", &project.root(), &changes);
    (project, found)
}

/// Returns the names of the files that contain the change of their proposal.
fn changed(project: &TestProject) -> Vec<&'static str> {
    let files = ["a.py", "b.py", "new.py", "d.py", "e.py", "f.py"];
    let is_changed = |file: &&str| {
        let text = std::fs::read_to_string(project.root().join(file));
        text.is_ok_and(|text| text != "a\nb\n")
    };
    files.into_iter().filter(is_changed).collect()
}

fn refused(outcome: &UndoOutcome) -> Vec<(u32, Option<u32>)> {
    let refused = outcome.refused.iter();
    refused
        .map(|one| (one.proposal.0, one.held.map(|held| held.by.0)))
        .collect()
}

#[tokio::test]
async fn set_is_not_undone_if_one_member_cannot_be_undone() {
    for typed in ["a.py", "b.py", "new.py"] {
        let (project, found) = project();
        std::fs::write(project.root().join(typed), "a\nB, typed\n").unwrap();
        if typed == "new.py" {
            std::fs::write(project.root().join(typed), "new, typed\n").unwrap();
        }
        let outcome = project.undo(&found).await;
        assert_eq!(changed(&project), ["a.py", "b.py", "new.py"]);
        assert_eq!(outcome.undone, [6, 5, 4].map(ProposalId));
        let (first, held) = outcome.refused.split_first().unwrap();
        assert!(
            first.why.starts_with(&format!("{typed}, line ")),
            "{}",
            first.why
        );
        assert_eq!(held.len(), 2, "{held:?}");
        let because = format!("it belongs together with {}, which stays", first.proposal);
        assert!(held.iter().all(|one| one.why == because), "{held:?}");
        assert_eq!(project.events_from(&found, 7), ["proposal_undone"; 3]);
    }
}

#[tokio::test]
async fn undo_keeps_a_change_that_a_kept_change_depends_on() {
    let (project, found) = project();
    std::fs::write(project.root().join("f.py"), "a\nB, typed\n").unwrap();
    let outcome = project.undo(&found).await;
    assert_eq!(changed(&project), ["e.py", "f.py"]);
    assert_eq!(refused(&outcome), [(6, None), (5, Some(6))]);
    // The reverse does not hold: if 5 is kept, 6, which needs 5, is still undone.
    let (project, found) = self::project();
    std::fs::write(project.root().join("e.py"), "a\nB, typed\n").unwrap();
    let outcome = project.undo(&found).await;
    assert_eq!(changed(&project), ["e.py"]);
    assert_eq!(refused(&outcome), [(5, None)]);
}

#[tokio::test]
async fn single_member_of_a_set_can_be_undone_by_number() {
    let (project, found) = project();
    let editor: Arc<dyn Editor> = Arc::new(DiskEditor::new(&project.root()));
    let mut open = project.open(&found).await.unwrap();
    let breaks = dependencies(&open.run.changes).broken_without(&ids(&[1]));
    let broken: Vec<u32> = breaks.iter().map(|one| one.by.0).collect();
    assert_eq!(broken, [2, 3]);
    let outcome = open.undo(&editor, &project.root(), &ids(&[1])).await;
    assert_eq!(outcome.undone, [ProposalId(1)]);
    assert_eq!(
        changed(&project),
        ["b.py", "new.py", "d.py", "e.py", "f.py"]
    );
    // The next undo of the whole run undoes the other members of the set.
    drop(open);
    assert_eq!(project.undo(&found).await.refused, []);
    assert_eq!(changed(&project), [""; 0]);
}

#[tokio::test]
async fn undone_members_of_a_set_are_reapplied_if_another_file_cannot_be_written() {
    for refuses in ["a.py", "b.py", "new.py"] {
        let (project, found) = project();
        let editor: Arc<dyn Editor> = Arc::new(FailingEditor {
            disk: DiskEditor::new(&project.root()),
            refuses,
            typing: Mutex::default(),
        });
        let mut open = project.open(&found).await.unwrap();
        let all = ids(&[1, 2, 3, 4, 5, 6]);
        let outcome = open.undo(&editor, &project.root(), &all).await;
        assert_eq!(changed(&project), ["a.py", "b.py", "new.py"], "{refuses}");
        assert_eq!(outcome.undone, [6, 5, 4].map(ProposalId));
        assert_eq!(outcome.refused.len(), 3, "{outcome:?}");
        // The trajectory records that the set is applied again, so the next undo can undo it.
        drop(open);
        assert_eq!(project.undo(&found).await.undone.len(), 3);
        assert_eq!(changed(&project), [""; 0]);
    }
}

/// The user types into `a.py` after the undo has removed `new.py`.
#[tokio::test]
async fn undone_members_of_a_set_are_reapplied_if_the_user_edits_another_member() {
    let (project, found) = project();
    let editor: Arc<dyn Editor> = Arc::new(FailingEditor {
        disk: DiskEditor::new(&project.root()),
        refuses: "",
        typing: Mutex::new(Some((
            project.root().join("a.py"),
            "a\nB, typed\n".to_owned(),
        ))),
    });
    let mut open = project.open(&found).await.unwrap();
    let set = ids(&[1, 2, 3]);
    let outcome = open.undo(&editor, &project.root(), &set).await;
    assert_eq!(
        changed(&project),
        ["a.py", "b.py", "new.py", "d.py", "e.py", "f.py"]
    );
    assert_eq!(refused(&outcome), [(1, None), (2, Some(1)), (3, Some(1))]);
    assert_eq!(outcome.undone, []);
    let new = std::fs::read_to_string(project.root().join("new.py")).unwrap();
    assert_eq!(new, "new\n");
}

#[tokio::test]
async fn set_within_one_file_is_undone_completely_or_not_at_all() {
    let project = TestProject::new();
    let (one, two, three) = ("a\nb\nc\n", "a\nB\nc\n", "a\nB\nC\n");
    let with = |set: u32, change| AppliedChange {
        dependencies: Dependencies {
            set: ids(&[set]),
            ..Dependencies::default()
        },
        ..change
    };
    let changes = [with(2, made(one, two)), with(1, made(two, three))];
    let found = project.recorded("1-1", &project.root(), &changes);
    project.write("a\nB, typed\nC\n");
    let outcome = project.undo(&found).await;
    assert_eq!(refused(&outcome), [(1, None), (2, Some(1))]);
    assert_eq!(project.read(), "a\nB, typed\nC\n");
}
