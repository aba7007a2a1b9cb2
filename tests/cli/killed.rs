//! What the next commands do after a run, a review or an undo was killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::project::{NEW, OLD, RunningProgram, TestProject, exchange, run_over_files};

/// Cuts the record of a run off after its last change, as a kill does.
fn cut_off(trajectory: &Path) {
    let text = std::fs::read_to_string(trajectory).unwrap();
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        kept += line;
        if line.contains(r#""event":"proposal_applied""#) {
            break;
        }
    }
    assert!(kept.len() < text.len(), "{text}");
    std::fs::write(trajectory, kept).unwrap();
}

#[test]
fn what_a_killed_run_changed_without_a_review_is_told_until_it_is_kept_or_taken_back() {
    for keeps in [true, false] {
        let bed = TestProject::new();
        let run = bed.applied(NEW);
        cut_off(&bed.trajectory(&run));
        let told = format!(
            "! run {run}: interrupted; what it changed stays, and no person reviewed it: work.py::f\n  \
             take it back: `starling undo {run}`; keep it: `starling review --keep {run}`\n"
        );
        let nothing = bed.write(
            "nothing.jsonl",
            &exchange("scout", "scout", 0, "wake", &json!({"symbols": []})),
        );
        let model = format!("replay:{}", nothing.display());
        let next = ["run", "--approve", "auto", "--model", &model, "x"];
        let said = || [&["review"][..], &["undo", "--list"], &next].map(|args| bed.say(args).out);
        for out in said() {
            assert!(out.contains(&told), "{out}");
        }
        // A run that is alive in another process is not told about.
        let file = std::fs::File::open(bed.trajectory(&run)).unwrap();
        file.lock().unwrap();
        for out in said() {
            assert!(!out.contains("interrupted"), "{out}");
        }
        drop(file);
        let decided = if keeps {
            bed.say(&["review", "--keep", &run])
        } else {
            bed.say(&["undo", "--yes", &run])
        };
        assert_eq!(decided.code, Some(0), "{decided:?}");
        assert!(!decided.out.contains("interrupted"), "{decided:?}");
        assert_eq!(bed.work(), if keeps { NEW } else { OLD });
        for out in said() {
            assert!(!out.contains("interrupted"), "{out}");
        }
        let again = bed.say(&["review", "--keep", &run]);
        assert!(again.out.contains("nothing to decide"), "{again:?}");
    }
}

/// Returns the paths and contents of all files in a directory.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.is_file());
    files
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

#[test]
fn killed_undo_leaves_no_partial_files_and_the_next_undo_completes_it() {
    const FILES: usize = 8;
    const KILLS: usize = 16;
    let bed = TestProject::new();
    let name = |at: usize| format!("f{at}.py");
    let old = |at: usize| format!("def f{at}():\n    return {at}\n");
    let new = |at: usize| format!("def f{at}():\n    x = {at}\n    return x\n");
    for at in 0..FILES {
        bed.write(&format!("project/{}", name(at)), &old(at));
    }
    let proposals: Vec<(String, String)> = (0..FILES)
        .map(|at| (format!("{}::f{at}", name(at)), new(at)))
        .collect();
    let proposals: Vec<(&str, &str, &str)> = proposals
        .iter()
        .map(|(owner, source)| (owner.as_str(), owner.as_str(), source.as_str()))
        .collect();
    run_over_files(&bed, &proposals);
    let runs = bed.dir.path().join("cache/runs");
    let (tree, recorded) = (files(&bed.root()), files(&runs));
    let undo = || {
        let mut command = bed.starling();
        command
            .args(["undo", "--yes"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let undone = || -> usize {
        let is_old = |at: &usize| {
            let text = std::fs::read_to_string(bed.root().join(name(*at))).unwrap();
            assert!(text == old(*at) || text == new(*at), "between: {text}");
            text == old(*at)
        };
        (0..FILES).filter(is_old).count()
    };
    assert!(undo().status().unwrap().success());
    assert_eq!(undone(), FILES);
    let mut between = 0;
    for kill in 0..KILLS {
        for (path, bytes) in tree.iter().chain(&recorded) {
            std::fs::write(path, bytes).unwrap();
        }
        let mut child = undo().spawn().unwrap();
        // The process is killed as soon as this number of files is undone.
        while undone() < kill % FILES && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        child.wait().unwrap();
        let count = undone();
        between += usize::from(count > 0 && count < FILES);
        let next = bed.say(&["undo", "--yes"]);
        assert_eq!(undone(), FILES, "after {count}: {next:?}");
        assert!(next.out.contains("taken back"), "{next:?}");
        let list = bed.say(&["undo", "--list"]);
        assert!(
            list.out
                .contains(&format!("{FILES} applied, {FILES} undone")),
            "{list:?}"
        );
        let journals = std::fs::read_dir(&runs).unwrap();
        let journal = |entry: std::io::Result<std::fs::DirEntry>| {
            entry
                .unwrap()
                .path()
                .extension()
                .is_some_and(|ending| ending == "undo")
        };
        assert!(!journals.into_iter().any(journal), "{next:?}");
    }
    assert!(
        between > 0,
        "no kill fell into the undo: the test shows nothing"
    );
}

#[test]
fn proposals_of_a_killed_run_can_still_be_reviewed() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &tape, "tidy f up"]);
    let mut talk = RunningProgram::begin(command);
    talk.hear("[a]ccept");
    // The screen can be slightly ahead of the disk.
    let runs = bed.dir.path().join("cache/runs");
    while !files(&runs)
        .iter()
        .any(|(_, text)| String::from_utf8_lossy(text).contains("review_asked"))
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    talk.child.kill().unwrap();
    talk.end();
    let said = bed.answered(&["review"], &["a"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(bed.work(), NEW);
}

impl TestProject {
    /// Truncates a run's trajectory as if the run had been killed before it could record that a
    /// change was applied.
    fn forget_after_applying(&self, run: &str) {
        let path = self.trajectory(run);
        let story = std::fs::read_to_string(&path).unwrap();
        let sent = |line: &&str| line.contains("\"event\":\"proposal_applying\"");
        let last = story.lines().filter(sent).count();
        assert!(last > 0, "{story}");
        let mut kept = String::new();
        let mut seen = 0;
        for line in story.lines() {
            kept += &format!("{line}\n");
            seen += usize::from(sent(&line));
            if seen == last {
                break;
            }
        }
        std::fs::write(path, kept).unwrap();
    }
}

#[test]
fn undo_reverts_unrecorded_changes_of_a_killed_run() {
    let bed = TestProject::new();
    let old = bed.work();
    let run = bed.applied(NEW);
    bed.forget_after_applying(&run);
    let listed: Value = serde_json::from_str(&bed.say(&["undo", "--list", "--json"]).out).unwrap();
    assert_eq!(listed[0]["applied"], 1, "{listed}");
    let said = bed.say(&["undo", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("taken back: #1\n"), "{said:?}");
    assert_eq!(bed.work(), old);
    // The change never reached the file.
    let run = bed.applied(NEW);
    bed.forget_after_applying(&run);
    bed.type_text(&old);
    let said = bed.say(&["undo", "--yes"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(!said.out.contains("taken back:"), "{said:?}");
    assert!(said.out.contains("nothing to take back"), "{said:?}");
    let said = bed.say(&["undo", "--yes", &run]);
    assert!(said.out.contains("changed nothing"), "{said:?}");
    assert_eq!(bed.work(), old);
}

#[test]
fn undo_deletes_an_unrecorded_file_of_a_killed_run() {
    let bed = TestProject::new();
    let proposals = [("work.py::f", "pkg/help.py", "def g():\n    return 1\n")];
    let run = run_over_files(&bed, &proposals);
    bed.forget_after_applying(&run);
    let said = bed.say(&["undo", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!bed.root().join("pkg").exists());
}

#[test]
fn review_offers_a_change_again_if_a_killed_review_did_not_apply_it() {
    let bed = TestProject::new();
    let old = bed.work();
    for arrived in [true, false] {
        bed.waits(NEW);
        let said = bed.answered(&["review"], &["a"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(bed.work(), NEW);
        let listed = bed.say(&["undo", "--list", "--json"]).out;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        bed.forget_after_applying(listed[0]["run"].as_str().unwrap());
        if arrived {
            let said = bed.say(&["review"]);
            assert!(said.out.contains("is waiting for review"), "{said:?}");
        } else {
            bed.type_text(&old);
            let said = bed.answered(&["review"], &["a"]);
            assert_eq!(said.code, Some(0), "{said:?}");
            assert_eq!(bed.work(), NEW);
        }
        let said = bed.say(&["undo", "--yes"]);
        assert!(said.out.contains("taken back: #1\n"), "{said:?}");
        assert_eq!(bed.work(), old);
    }
}
