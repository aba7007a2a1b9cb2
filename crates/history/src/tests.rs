//! Tests of undo: it restores the text exactly if no other change affects the same lines, and is
//! refused otherwise.

mod deleted;
mod half;
mod relied_on;
mod stored;
mod together;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use proptest::prelude::*;

use super::*;
use starling_core::{ApplyError, CurrentText, Driver, Editor, EditorError, FileEdit, Limits};
use starling_swarm::{AppliedChange, Event, EventLog, ProposalId, Record, RunId, Stamped};
use starling_syntax::FilePath;
use starling_text::ChangeSet;

/// An editor whose texts cannot be written.
struct ReadOnlyTexts(BTreeMap<FilePath, String>);

#[async_trait]
impl Editor for ReadOnlyTexts {
    async fn current(&self, file: &FilePath) -> Result<CurrentText, EditorError> {
        let missing = || EditorError::Missing { file: file.clone() };
        let text = self.0.get(file).ok_or_else(missing)?;
        Ok(CurrentText {
            text: text.as_str().into(),
            version: None,
        })
    }

    async fn apply(&self, _: FileEdit) -> Result<CurrentText, ApplyError> {
        Err(ApplyError::Gone)
    }
}

fn made(before: &str, after: &str) -> AppliedChange {
    AppliedChange {
        file: FilePath::new("a.py"),
        before: before.into(),
        changes: ChangeSet::between(before, after),
        created: before.is_empty(),
        deleted: None,
        directories: Vec::new(),
        dependencies: Default::default(),
        text_without: None,
    }
}

/// Returns proposals that lead from each text to the next.
fn proposals(texts: &[&str]) -> Vec<ChangeRecord> {
    let pairs = texts.windows(2).zip(1..);
    pairs
        .map(|(pair, id)| ChangeRecord {
            proposal: ProposalId(id),
            symbols: Vec::new(),
            state: ChangeState::Applied,
            made: Some(AppliedChange {
                // Only the first proposal creates the file; later ones may find an empty text.
                created: id == 1 && pair[0].is_empty(),
                deleted: None,
                ..made(pair[0], pair[1])
            }),
        })
        .collect()
}

/// Returns the text of `a.py` after an undo of the chosen proposals, and the refusals.
fn undone(
    current: &str,
    changes: &[ChangeRecord],
    chosen: &[u32],
) -> (Option<String>, Vec<UndoRefusal>) {
    let texts = ReadOnlyTexts([(FilePath::new("a.py"), current.to_owned())].into());
    let chosen: BTreeSet<ProposalId> = chosen.iter().map(|id| ProposalId(*id)).collect();
    let planned = futures::executor::block_on(plan(&texts, changes, &chosen));
    let UndoPlan { mut files, refused } = planned;
    assert!(files.len() <= 1, "{files:?}");
    let text = match files.pop() {
        None => Some(current.to_owned()),
        Some(plan) => plan.text_afterwards().map(str::to_owned),
    };
    (text, refused)
}

const BASE: &str = "a\nb\nc\nd\ne\n";

#[test]
fn undo_removes_one_of_several_proposals() {
    let changes = proposals(&[BASE, "a\nB\nc\nd\ne\n", "a\nB\nc\nD\nnew\ne\n"]);
    let now = "a\nB\nc\nD\nnew\ne\n";
    let text = |chosen: &[u32]| undone(now, &changes, chosen).0.unwrap();
    assert_eq!(text(&[1]), "a\nb\nc\nD\nnew\ne\n");
    assert_eq!(text(&[2]), "a\nB\nc\nd\ne\n");
    assert_eq!(text(&[1, 2]), BASE);
}

#[test]
fn undo_keeps_user_edits_of_neighbouring_lines() {
    for (after, typed, expected) in [
        // The line above and the line below are changed.
        (
            "a\nb\nX\nd\ne\n",
            "a\nb!\nX\n  d\ne\n",
            "a\nb!\nc\n  d\ne\n",
        ),
        // Lines are inserted directly before and after the change.
        (
            "a\nb\nX\nd\ne\n",
            "a\nb\n1\nX\n2\nd\ne\n",
            "a\nb\n1\nc\n2\nd\ne\n",
        ),
        // The neighbouring lines are removed.
        ("a\nb\nX\nd\ne\n", "a\nX\ne\n", "a\nc\ne\n"),
        // The proposal removed a line, and the user indented the next one.
        ("a\nb\nd\ne\n", "a\nb\n  d\ne\n", "a\nb\nc\n  d\ne\n"),
        // The proposal added lines, and the user extended the line before them.
        (
            "a\nb\nX\nY\nc\nd\ne\n",
            "a\nb!\nX\nY\nc\nd\ne\n",
            "a\nb!\nc\nd\ne\n",
        ),
    ] {
        let (text, refused) = undone(typed, &proposals(&[BASE, after]), &[1]);
        assert_eq!(
            (text.as_deref(), refused),
            (Some(expected), vec![]),
            "{typed:?}"
        );
    }
}

#[test]
fn undo_keeps_line_endings_bom_and_missing_final_newline() {
    for (before, after) in [
        ("\u{feff}a\r\nb\r\n", "\u{feff}a\r\nX\r\nY\r\n"),
        ("a\nb", "a\nb\nc"),
        ("a\nb\n", "a\nb"),
        ("a\r\nb\nc\r", "a\nb\nc\n"),
        ("", "new\n"),
    ] {
        let (text, refused) = undone(after, &proposals(&[before, after]), &[1]);
        let expected = (!before.is_empty()).then_some(before);
        assert_eq!((text.as_deref(), refused), (expected, vec![]));
    }
}

#[test]
fn undo_is_refused_for_a_line_edited_since() {
    let changes = proposals(&[BASE, "a\nb\nX\nd\ne\n"]);
    let typed = "# mine\na\nb\nX + 1\nd\ne\n";
    let (text, refused) = undone(typed, &changes, &[1]);
    assert_eq!(text.as_deref(), Some(typed));
    assert_eq!(
        (refused[0].lines, &refused[0].blocker),
        (Some((4, 4)), &None)
    );
    assert!(
        refused[0].why.starts_with("a.py, line 4: changed since"),
        "{}",
        refused[0].why
    );
    assert!(refused[0].diff.contains("-X\n+c\n"), "{}", refused[0].diff);
}

#[test]
fn refusal_names_the_blocking_later_proposal() {
    let texts = [
        BASE,
        "a\nb\nX\nd\ne\n",
        "a\nb\nX\nd\nE\n",
        "a\nb\nX + 1\nd\nE\n",
    ];
    let changes = proposals(&texts);
    let (text, refused) = undone(texts[3], &changes, &[1]);
    assert_eq!(text.as_deref(), Some(texts[3]));
    let expected = "a.py, line 3: #3 changed the same lines; undo #3 first, or the whole run";
    assert_eq!(refused[0].why, expected);
    assert_eq!(
        undone(texts[3], &changes, &[1, 2, 3]).0.as_deref(),
        Some(BASE)
    );
    // The change that blocks the undo belongs to another run.
    let mut refused = undone(texts[3], &changes[..1], &[1]).1;
    let run = RunId("17-1".to_owned());
    refused[0].find_blocker_in_later_runs(&changes[..1], [(&run, &changes[1..])]);
    let expected =
        "#3 of the later run 17-1 changed the same lines; undo it first: `starling undo 17-1`";
    assert!(refused[0].why.ends_with(expected), "{}", refused[0].why);
}

#[test]
fn repeated_undo_changes_nothing() {
    let changes = proposals(&[BASE, "a\nb\nX\nd\ne\n"]);
    for now in [BASE, "0\na\nb\nc\nd\ne\nf\n"] {
        assert_eq!(undone(now, &changes, &[1]), (Some(now.to_owned()), vec![]));
    }
}

/// The user changed the line of the proposal and typed the same line into another function.
#[test]
fn undo_does_not_change_a_similar_function() {
    let before = "def fee(days):\n    # c\n    return days * 3\n\n\ndef tax(a):\n    return a\n";
    let after = before.replace("days * 3", "days * 2");
    let below = "days * 4\n\n\ndef fee2(days):\n    return days * 2";
    let now = after.replace("days * 2", below);
    let (text, refused) = undone(&now, &proposals(&[before, &after]), &[1]);
    assert_eq!(text.as_deref(), Some(now.as_str()));
    let why = &refused[0].why;
    assert!(why.starts_with("a.py, line"), "{why}");
    assert!(
        why.contains("made in `fee`, but the matching text is now in `fee2`"),
        "{why}"
    );
    assert!(why.contains("change these lines by hand"), "{why}");
}

#[test]
fn undo_of_a_new_file_keeps_text_added_since() {
    let changes = proposals(&["", "def f():\n    pass\n"]);
    let (text, refused) = undone("# mine\ndef f():\n    pass\n", &changes, &[1]);
    assert_eq!((text.as_deref(), refused), (Some("# mine\n"), vec![]));
}

#[test]
fn undo_is_refused_for_a_change_without_recorded_texts() {
    let mut changes = proposals(&[BASE, "a\n"]);
    changes[0].made = None;
    let (_, refused) = undone("a\n", &changes, &[1]);
    assert!(
        refused[0].why.contains("does not hold its texts"),
        "{refused:?}"
    );
}

/// An edit of one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEdit {
    Keep,
    Replace,
    Indent,
    Delete,
    /// Two lines are inserted after the line.
    Add,
}

fn text(ops: &[(LineEdit, LineEdit)], agents: bool, user: bool) -> String {
    let mut text = String::new();
    for (at, (agent, person)) in ops.iter().enumerate() {
        let op = match (agents, user) {
            (true, _) if *agent != LineEdit::Keep => *agent,
            (_, true) => *person,
            _ => LineEdit::Keep,
        };
        let who = if op == *agent { "agent" } else { "user" };
        text += &match op {
            LineEdit::Keep => format!("line {at}\n"),
            LineEdit::Replace => format!("{who} {at}\n"),
            LineEdit::Indent => format!("    line {at}\n"),
            LineEdit::Delete => String::new(),
            LineEdit::Add => format!("line {at}\n{who} {at} one\n{who} {at} two\n"),
        };
    }
    text
}

/// Generates for each line an edit of the agents or an edit of the user, never both.
fn edits() -> impl Strategy<Value = Vec<(LineEdit, LineEdit)>> {
    let agent = prop_oneof![
        Just(LineEdit::Replace),
        Just(LineEdit::Indent),
        Just(LineEdit::Delete),
        Just(LineEdit::Add)
    ];
    let user = prop_oneof![
        5 => Just(LineEdit::Keep),
        1 => Just(LineEdit::Replace),
        1 => Just(LineEdit::Indent),
        1 => Just(LineEdit::Delete),
    ];
    let line = prop_oneof![
        3 => agent.prop_map(|op| (op, LineEdit::Keep)),
        7 => user.prop_map(|op| (LineEdit::Keep, op)),
    ];
    prop::collection::vec(line, 1..24)
}

/// Returns whether the user changed the lines on both sides of lines that an agent removed. The
/// removed lines have no unique position then.
fn is_walled_in(ops: &[(LineEdit, LineEdit)]) -> bool {
    let touched =
        |one: Option<&(LineEdit, LineEdit)>| one.is_some_and(|(_, user)| *user != LineEdit::Keep);
    let stays = |(agent, _): &&(LineEdit, LineEdit)| *agent != LineEdit::Delete;
    ops.iter().enumerate().any(|(at, (agent, _))| {
        let before = ops[..at].iter().rev().find(stays);
        let after = ops[at + 1..].iter().find(stays);
        *agent == LineEdit::Delete && touched(before) && touched(after)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn undo_restores_text_except_user_edits(ops in edits(), parts in 1usize..4) {
        let before = text(&ops, false, false);
        // Each of several proposals changes a share of the lines.
        let share = |upto: usize| -> String {
            let ops: Vec<(LineEdit, LineEdit)> = ops.iter().enumerate().map(|(at, (agent, user))| {
                (if at % parts < upto { *agent } else { LineEdit::Keep }, *user)
            }).collect();
            text(&ops, true, false)
        };
        let texts: Vec<String> = (0..=parts).map(share).collect();
        prop_assert_eq!(&texts[0], &before);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let changes = proposals(&texts);
        let all: Vec<u32> = (1..).take(parts).collect();
        // The user changed nothing after the proposals.
        let (text_now, refused) = undone(texts[parts], &changes, &all);
        prop_assert_eq!(text_now.unwrap_or_default(), before);
        prop_assert!(refused.is_empty());
        // The user changed other lines after the proposals.
        let (typed, expected) = (text(&ops, true, true), text(&ops, false, true));
        let (text_now, refused) = undone(&typed, &changes, &all);
        if refused.is_empty() {
            prop_assert_eq!(text_now.unwrap_or_default(), expected);
        } else {
            prop_assert!(is_walled_in(&ops), "{:?}", refused);
        }
    }
}

/// A project with the trajectories of its runs.
struct TestProject {
    dir: tempfile::TempDir,
}

impl TestProject {
    fn new() -> TestProject {
        let project = TestProject {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(project.root()).unwrap();
        std::fs::create_dir(project.runs()).unwrap();
        project
    }

    fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("root")
    }

    fn runs(&self) -> PathBuf {
        self.dir.path().join("runs")
    }

    fn recorded(&self, name: &str, root: &Path, changes: &[AppliedChange]) -> RunFile {
        let log = EventLog::new();
        log.event(Event::RunStarted {
            run: RunId(name.to_owned()),
            task: "the task".to_owned(),
            driver: Driver::Swarm,
            models: Vec::new(),
            replayed: false,
            limits: Limits::default(),
            root: root.display().to_string(),
            request: None,
        });
        for (change, id) in changes.iter().zip(1..) {
            log.event(Event::ProposalApplied {
                proposal: ProposalId(id),
                symbols: Vec::new(),
                diff: String::new(),
                change: Some(change.clone()),
            });
        }
        let lines = log.records(0);
        let lines = lines
            .iter()
            .map(|one| serde_json::to_string(&**one).unwrap() + "\n");
        let path = self.runs().join(format!("{name}.jsonl"));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        RunFile {
            id: RunId(name.to_owned()),
            path,
        }
    }

    /// Writes the trajectory of a run that was killed after it recorded that it applies a change.
    fn killed(&self, name: &str, applied: &[AppliedChange], applying: AppliedChange) -> RunFile {
        let found = self.recorded(name, &self.root(), applied);
        let whole = std::fs::read_to_string(&found.path).unwrap();
        let record = Stamped {
            seq: whole.lines().count() as u64,
            at_ms: 1,
            record: Record::Event(Event::ProposalApplying {
                proposal: ProposalId(applied.len() as u32 + 1),
                symbols: vec!["a.py::f".parse().unwrap()],
                change: applying,
            }),
        };
        let line = serde_json::to_string(&record).unwrap();
        std::fs::write(&found.path, format!("{whole}{line}\n")).unwrap();
        found
    }

    fn write(&self, text: &str) {
        std::fs::write(self.root().join("a.py"), text).unwrap();
    }

    fn read(&self) -> String {
        std::fs::read_to_string(self.root().join("a.py")).unwrap()
    }

    /// Returns the kinds of the events after the first `from` records. Their numbers must have no
    /// gap.
    fn events_from(&self, found: &RunFile, from: usize) -> Vec<String> {
        let trajectory_text = std::fs::read_to_string(&found.path).unwrap();
        let records = trajectory_text.lines().enumerate().map(|(at, line)| {
            let record: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(record["seq"], at, "{trajectory_text}");
            record["event"]["event"].as_str().unwrap().to_owned()
        });
        records.skip(from).collect()
    }

    async fn open(&self, found: &RunFile) -> Result<OpenRun, HistoryError> {
        OpenRun::open(found, &DiskEditor::new(&self.root()), &self.root()).await
    }

    /// Undoes all changes of a run.
    async fn undo(&self, found: &RunFile) -> UndoOutcome {
        let editor: Arc<dyn Editor> = Arc::new(DiskEditor::new(&self.root()));
        let mut open = self.open(found).await.unwrap();
        let chosen = open.run.applied().map(|one| one.proposal).collect();
        open.undo(&editor, &self.root(), &chosen).await
    }
}

#[tokio::test]
async fn undo_is_recorded_and_locks_the_run() {
    let project = TestProject::new();
    let found = project.recorded("1-1", &project.root(), &[made(BASE, "x\n")]);
    std::fs::write(project.root().join("a.py"), "x\n").unwrap();
    let writer = std::fs::File::open(&found.path).unwrap();
    writer.try_lock().unwrap();
    let open = project.open(&found).await.map(|_| ()).unwrap_err();
    assert!(open.to_string().contains("still active"), "{open}");
    drop(writer);
    // A last line that was cut off when its writer was killed is ignored.
    let whole = std::fs::read_to_string(&found.path).unwrap();
    std::fs::write(&found.path, format!("{whole}{{\"seq\": 2, \"at")).unwrap();
    assert_eq!(project.undo(&found).await.undone, [ProposalId(1)]);
    assert_eq!(
        std::fs::read_to_string(project.root().join("a.py")).unwrap(),
        BASE
    );
    let run = PastRun::read(&found.path).unwrap();
    assert_eq!(
        (run.changes[0].state, run.records),
        (ChangeState::Undone, 3)
    );
    let trajectory_text = std::fs::read_to_string(&found.path).unwrap();
    assert!(
        trajectory_text.starts_with(&whole) && trajectory_text.contains("\"seq\":2"),
        "{trajectory_text}"
    );
    assert!(!found.path.with_extension("undo").exists());
    // The event is recorded only once.
    let proposal = ProposalId(1);
    let undone = Event::ProposalUndone {
        proposal,
        by_editor: false,
        unsaved: false,
    };
    record(&found, vec![undone]).unwrap();
    assert_eq!(PastRun::read(&found.path).unwrap().records, 3);
}

/// The path of the undo journal is a directory, so the journal cannot be written.
#[tokio::test]
async fn undo_is_made_and_says_so_although_it_cannot_be_recorded() {
    let project = TestProject::new();
    let (one, other) = ("X = 1\n", "X = 2\n");
    let found = project.recorded("1-1", &project.root(), &[made(one, other)]);
    project.write(other);
    std::fs::create_dir(found.path.with_extension("undo")).unwrap();
    let outcome = project.undo(&found).await;
    assert_eq!(outcome.undone, [ProposalId(1)]);
    let why = outcome.unrecorded.expect("a reason");
    assert!(why.contains("1-1.undo: "), "{why}");
    let text = std::fs::read_to_string(project.root().join("a.py")).unwrap();
    assert_eq!(text, one);
}

#[tokio::test]
async fn interrupted_undo_is_completed_by_the_next_undo() {
    let project = TestProject::new();
    let (one, other) = ("a\nb\nc\n", "a\nB1\nc\n");
    let later = "a\nB1\nB2\n";
    let found = project.recorded(
        "1-1",
        &project.root(),
        &[made(one, other), made(other, later)],
    );
    let file = project.root().join("a.py");
    std::fs::write(&file, later).unwrap();
    let before = std::fs::read(&found.path).unwrap();
    project.undo(&found).await;
    // The state as if the process had been killed before the record was written.
    let journal = serde_json::json!({
        "chosen": [1, 2], "file": "a.py", "undone": [2, 1], "directories": [],
        "after": starling_text::ContentHash::of(one),
    });
    std::fs::write(&found.path, before).unwrap();
    std::fs::write(found.path.with_extension("undo"), journal.to_string()).unwrap();
    assert!(is_interrupted(&found));
    let open = project.open(&found).await.unwrap();
    assert_eq!(
        open.interrupted,
        Some([ProposalId(1), ProposalId(2)].into())
    );
    assert_eq!(open.run.applied().count(), 0);
    assert_eq!(PastRun::read(&found.path).unwrap().applied().count(), 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), one);
}

#[tokio::test]
async fn undo_never_touches_files_outside_the_project() {
    let project = TestProject::new();
    let outside = project.dir.path().join("outside.py");
    let found = project.recorded("1-1", &project.root(), &[made("", "x\n")]);
    std::fs::write(&outside, "x\n").unwrap();
    std::os::unix::fs::symlink(&outside, project.root().join("a.py")).unwrap();
    let outcome = project.undo(&found).await;
    assert_eq!(
        (outcome.undone.len(), outcome.refused.len()),
        (0, 1),
        "{outcome:?}"
    );
    // A link to another file of the project is not followed either.
    std::fs::remove_file(project.root().join("a.py")).unwrap();
    std::fs::write(project.root().join("b.py"), "x\n").unwrap();
    std::os::unix::fs::symlink("b.py", project.root().join("a.py")).unwrap();
    let outcome = project.undo(&found).await;
    assert!(outcome.refused[0].why.contains("link"), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "x\n");
    assert_eq!(
        std::fs::read_to_string(project.root().join("b.py")).unwrap(),
        "x\n"
    );
    // A path that leads out of the project is refused as well.
    let up = AppliedChange {
        file: FilePath::new("../outside.py"),
        ..made("y\n", "x\n")
    };
    let found = project.recorded("2-1", &project.root(), &[up]);
    assert_eq!(project.undo(&found).await.refused.len(), 1);
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "x\n");
}

#[test]
fn runs_are_found_by_project_and_name_prefix() {
    let project = TestProject::new();
    let (root, runs) = (project.root(), project.runs());
    assert!(newest_first(&runs, &root).is_empty());
    for (name, root) in [
        ("11-1", &root),
        ("12-1", &root),
        ("13-1", &PathBuf::from("/else")),
    ] {
        project.recorded(name, root, &[]);
    }
    std::fs::write(runs.join("14-1.jsonl"), "{").unwrap();
    let names: Vec<String> = newest_first(&runs, &root)
        .into_iter()
        .map(|one| one.id.0)
        .collect();
    assert_eq!(names, ["12-1", "11-1"]);
    let find = |prefix: &str| find(&runs, &root, prefix);
    assert_eq!(find("11").unwrap().id.0, "11-1");
    assert!(matches!(find("2"), Err(HistoryError::Unknown(_))));
    assert!(matches!(find("13"), Err(HistoryError::Elsewhere { .. })));
    let several = find("1").unwrap_err().to_string();
    assert!(several.contains("11-1, 12-1"), "{several}");
}

#[test]
fn error_for_a_damaged_trajectory_names_the_line() {
    let project = TestProject::new();
    let found = project.recorded(
        "1-1",
        &project.root(),
        &[made(BASE, "x\n"), made("x\n", "y\n")],
    );
    let whole = std::fs::read_to_string(&found.path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    std::fs::write(&found.path, format!("{}\n{{]\n{}\n", lines[0], lines[2])).unwrap();
    let error = PastRun::read(&found.path).unwrap_err().to_string();
    assert!(error.contains("1-1.jsonl:2: this line"), "{error}");
    assert!(error.contains("by hand"), "{error}");
    std::fs::write(found.path.with_extension("patch"), "").unwrap();
    let error = PastRun::read(&found.path).unwrap_err().to_string();
    // The project has no repository, so the message names `patch`.
    assert!(
        error.contains("1-1.patch: `patch -R -p1 -i` takes it back"),
        "{error}"
    );
}

#[test]
fn file_text_decides_whether_an_unfinished_change_was_applied() {
    let after = "a\nb\nX\nd\ne\n";
    let unfinished = |before: &str, after: &str| UnfinishedChange {
        proposal: ProposalId(1),
        symbols: Vec::new(),
        change: made(before, after),
    };
    let one = unfinished(BASE, after);
    for (text, expected) in [
        (after, true),
        (BASE, false),
        ("0\na\nb\nX\nd\ne\nf\n", true),
        ("0\na\nb\nc\nd\ne\nf\n", false),
        // The user changed the same line, so the change counts as present and an undo does not
        // touch it.
        ("a\nb\nX and more\nd\ne\n", true),
        ("", true),
    ] {
        assert_eq!(one.is_in(Some(text)), expected, "{text:?}");
    }
    assert!(!one.is_in(None), "the file is gone");
    let created = unfinished("", "x\n");
    assert!(created.is_in(Some("x\n")) && !created.is_in(Some("")) && !created.is_in(None));
    // Changes that only add lines, and that only remove lines.
    let added = unfinished("a\nb\n", "a\nnew\nb\n");
    assert!(added.is_in(Some("a\nnew\nb\nc\n")) && !added.is_in(Some("a\nb\nc\n")));
    let removed = unfinished("a\nold\nb\n", "a\nb\n");
    assert!(removed.is_in(Some("a\nb\nc\n")) && !removed.is_in(Some("a\nold\nb\nc\n")));
}

#[test]
fn change_is_unfinished_until_its_result_is_recorded() {
    let proposal = ProposalId(1);
    let applying = || Event::ProposalApplying {
        proposal,
        symbols: Vec::new(),
        change: made(BASE, "x\n"),
    };
    let why = String::new;
    let left = |events: &[Event]| unfinished(events).len();
    assert_eq!(left(&[applying()]), 1);
    assert_eq!(left(&[applying(), applying()]), 1, "it was sent again");
    let ends = [
        unfinished(&[applying()])[0].applied(),
        Event::ProposalNotApplied {
            proposal,
            why: why(),
        },
        Event::ProposalConflicted {
            proposal,
            why: why(),
        },
        Event::ProposalUndone {
            proposal,
            by_editor: false,
            unsaved: false,
        },
    ];
    for end in ends {
        assert_eq!(left(&[applying(), end.clone()]), 0, "{end:?}");
        assert_eq!(left(&[applying(), end, applying()]), 1);
    }
    // A change that cannot be applied to the text recorded with it is damaged.
    let damaged = Event::ProposalApplying {
        proposal,
        symbols: Vec::new(),
        change: AppliedChange {
            before: "longer than before\n".into(),
            ..made(BASE, "x\n")
        },
    };
    assert_eq!(left(&[damaged]), 0);
}

#[tokio::test]
async fn undo_reverts_a_change_that_a_killed_run_applied_but_did_not_record() {
    let project = TestProject::new();
    let (one, two, three) = ("a\nb\n", "a\nB\n", "a\nB\nc\n");
    for typed in ["", "# typed since\n"] {
        let found = project.killed("1-1", &[made(one, two)], made(two, three));
        project.write(&format!("{typed}{three}"));
        let outcome = project.undo(&found).await;
        assert_eq!(outcome.taken_back(), [ProposalId(2), ProposalId(1)]);
        assert_eq!(project.read(), format!("{typed}{one}"));
        assert_eq!(
            project.events_from(&found, 3),
            ["proposal_applied", "proposal_undone", "proposal_undone"]
        );
        // A second undo does nothing.
        assert!(project.undo(&found).await.undone.is_empty());
    }
}

#[tokio::test]
async fn undo_ignores_a_change_that_a_killed_run_did_not_apply() {
    let project = TestProject::new();
    let (one, two, three) = ("a\nb\n", "a\nB\n", "a\nB\nc\n");
    let found = project.killed("1-1", &[made(one, two)], made(two, three));
    project.write(two);
    assert_eq!(project.undo(&found).await.taken_back(), [ProposalId(1)]);
    assert_eq!(project.read(), one);
    assert_eq!(project.events_from(&found, 3), ["proposal_undone"]);
}

#[tokio::test]
async fn undo_keeps_user_edits_in_an_unrecorded_change() {
    let project = TestProject::new();
    let found = project.killed("1-1", &[], made("a\nb\nc\n", "a\nB\nc\n"));
    project.write("a\nB, typed\nc\n");
    let outcome = project.undo(&found).await;
    assert_eq!((outcome.undone.len(), outcome.refused.len()), (0, 1));
    assert_eq!(outcome.refused[0].lines, Some((2, 2)));
    assert_eq!(project.read(), "a\nB, typed\nc\n");
}

#[tokio::test]
async fn undo_reports_absent_changes_separately_from_undone_ones() {
    let project = TestProject::new();
    let (one, two, three) = ("a\nb\nc\n", "a\nB\nc\n", "a\nB\nC\n");
    let found = project.recorded("1-1", &project.root(), &[made(one, two), made(two, three)]);
    // The second change was removed by other means.
    project.write(two);
    let outcome = project.undo(&found).await;
    assert_eq!(outcome.undone, [ProposalId(2), ProposalId(1)]);
    assert_eq!(outcome.absent, [ProposalId(2)]);
    assert_eq!(outcome.taken_back(), [ProposalId(1)]);
    assert_eq!(project.read(), one);
    let gone = AppliedChange {
        file: FilePath::new("new.py"),
        ..made("", "x\n")
    };
    let found = project.recorded("1-2", &project.root(), &[gone]);
    assert_eq!(project.undo(&found).await.taken_back(), []);
}

#[tokio::test]
async fn undo_reverts_a_change_that_the_editors_redo_restored() {
    let project = TestProject::new();
    let (one, two) = ("a\nb\nc\n", "a\nB\nc\n");
    for (by_editor, now, expected) in [
        (true, "# mine\na\nB\nc\n", "# mine\na\nb\nc\n"),
        (true, one, one),
        // If Starling undid the change and the same text appears again, the text counts as the
        // user's own.
        (false, two, two),
    ] {
        let found = project.recorded("1-1", &project.root(), &[made(one, two)]);
        let proposal = ProposalId(1);
        let undone = Event::ProposalUndone {
            proposal,
            by_editor,
            unsaved: false,
        };
        record(&found, vec![undone]).unwrap();
        project.write(now);
        let mut run = PastRun::read(&found.path).unwrap();
        run.detect_unrecorded_changes(&DiskEditor::new(&project.root()))
            .await;
        assert_eq!(run.applied().count(), usize::from(now != expected));
        project.undo(&found).await;
        assert_eq!(project.read(), expected);
    }
}

#[test]
fn proposal_whose_text_was_already_there_is_no_change_to_undo() {
    let project = TestProject::new();
    let (one, two) = ("a\nb\n", "a\nB\n");
    let there = AppliedChange {
        created: false,
        deleted: None,
        ..made(two, two)
    };
    let found = project.recorded("1-1", &project.root(), &[made(one, two), there]);
    let run = PastRun::read(&found.path).unwrap();
    let changed: Vec<ProposalId> = run.changes.iter().map(|one| one.proposal).collect();
    assert_eq!(changed, [ProposalId(1)]);
}
