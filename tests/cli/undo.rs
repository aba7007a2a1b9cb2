//! Tests of `starling undo` and `starling review`, on runs of the shipped program.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use super::project::{CommandResult, NEW, OLD, RunningProgram, TestProject, exchange};

impl TestProject {
    /// Runs a task that applies a new text of `f`, and returns the id of the run.
    pub(super) fn applied(&self, source: &str) -> String {
        let tape = self.tape(&[source]);
        let args = ["run", "--json", "--approve", "auto", "--model", &tape, "x"];
        let said = self.say(&args);
        let events = said.events();
        let applied = events
            .iter()
            .any(|one| one["event"]["event"] == "proposal_applied");
        assert!(applied, "{said:?}");
        events[0]["run"].as_str().unwrap().to_owned()
    }

    /// Runs a task that ends while its only proposal waits for review.
    fn waits(&self, source: &str) -> CommandResult {
        let tape = self.tape(&[source]);
        let mut command = self.starling();
        command.args(["run", "--model", &tape, "tidy f up"]);
        let mut talk = RunningProgram::begin(command);
        talk.hear("[a]ccept");
        drop(talk.child.stdin.take());
        talk.end()
    }

    fn type_text(&self, text: &str) {
        std::fs::write(self.root().join("work.py"), text).unwrap();
    }

    pub(super) fn trajectory(&self, run: &str) -> PathBuf {
        self.dir.path().join(format!("cache/runs/{run}.jsonl"))
    }

    /// Runs a command and types these lines as answers.
    fn answered(&self, args: &[&str], lines: &[&str]) -> CommandResult {
        let mut command = self.starling();
        command.args(args);
        let mut talk = RunningProgram::begin(command);
        for line in lines {
            talk.answer(line);
        }
        drop(talk.child.stdin.take());
        talk.end()
    }
}

#[test]
fn undo_restores_an_untouched_file_byte_for_byte() {
    let bed = TestProject::new();
    let path = bed.root().join("work.py");
    let old = "\u{feff}def f():\r\n    return 1\r\n";
    std::fs::write(&path, old).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o754)).unwrap();
    let run = bed.applied("def f():\n    return 2 - 1\n");
    assert_ne!(bed.work(), old);
    let listed: Value = serde_json::from_str(&bed.say(&["undo", "--list", "--json"]).out).unwrap();
    assert_eq!(
        (&listed[0]["run"], &listed[0]["applied"]),
        (&json!(run), &json!(1))
    );
    let said = bed.say(&["undo", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("taken back: #1\n"), "{said:?}");
    assert!(said.out.contains("+    return 1"), "the diff: {said:?}");
    assert_eq!(bed.work(), old);
    let mode = path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o754);
    // A proposal can be undone only once.
    let again = bed.say(&["undo", "--yes"]);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.out.contains("nothing to take back"), "{again:?}");
    let again = bed.say(&["undo", &run]);
    let expected = format!("#1 of run {run} is already taken back\n");
    assert_eq!((again.code, again.out), (Some(1), expected));
    let list = bed.say(&["undo", "--list"]);
    assert!(list.out.contains("1 applied, 1 undone  x"), "{list:?}");
    let mode = bed
        .trajectory(&run)
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn run_in_progress_is_listed_as_running() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let mut command = bed.starling();
    command.args(["run", "--model", &tape, "make f longer"]);
    let mut talk = RunningProgram::begin(command);
    talk.hear("[a]ccept");
    let list = bed.say(&["undo", "--list"]).out;
    assert!(
        list.contains("still running: changed nothing so far  make f longer"),
        "{list}"
    );
    let running = || {
        let listed = bed.say(&["undo", "--list", "--json"]).out;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        listed[0]["running"].clone()
    };
    assert_eq!(running(), true);
    drop(talk.child.stdin.take());
    talk.end();
    assert_eq!(running(), false);
    let list = bed.say(&["undo", "--list"]).out;
    assert!(list.contains("  changed nothing  make f longer"), "{list}");
}

#[test]
fn undo_keeps_edits_of_other_lines() {
    let bed = TestProject::new();
    bed.applied(NEW);
    bed.type_text("# mine\ndef f():  # mine\n    return 2 - 1\n\n\nX = 1\n");
    let said = bed.say(&["undo", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(
        bed.work(),
        "# mine\ndef f():  # mine\n    return 1\n\n\nX = 1\n"
    );
}

#[test]
fn undo_refuses_edited_lines_and_names_them() {
    let bed = TestProject::new();
    let run = bed.applied(NEW);
    let typed = "# mine\ndef f():\n    return 2 - 1 + 0\n";
    bed.type_text(typed);
    let said = bed.say(&["undo", "--yes"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out
            .contains("#1 stays as a whole: work.py, line 3: changed since"),
        "{said:?}"
    );
    assert!(
        said.out.contains("-    return 2 - 1\n+    return 1\n"),
        "{said:?}"
    );
    let said = bed.say(&["undo", "--yes", "--json", &run, "#1"]);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &told["undone"]), (Some(1), &json!([])));
    assert_eq!(told["refused"][0]["lines"], json!([3, 3]));
    assert_eq!(bed.work(), typed);
    // The failed undo recorded nothing, so it succeeds after the text is repaired by hand.
    bed.type_text(NEW);
    assert_eq!(
        bed.say(&["undo", "--yes", &run[..run.len() - 1]]).code,
        Some(0)
    );
    assert_eq!(bed.work(), OLD);
}

#[test]
fn undo_asks_for_confirmation() {
    let bed = TestProject::new();
    bed.applied(NEW);
    for (lines, code) in [(&["what", "n"] as &[&str], 1), (&[], 1)] {
        let said = bed.answered(&["undo"], lines);
        assert_eq!(said.code, Some(code), "{said:?}");
        assert!(
            said.out.contains("Take 1 proposal back? [y/n/?]"),
            "{said:?}"
        );
        assert!(said.out.contains("nothing was taken back"), "{said:?}");
        assert_eq!(bed.work(), NEW);
    }
    let said = bed.answered(&["undo"], &["y"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(bed.work(), OLD);
}

#[test]
fn undo_names_the_later_run_that_blocks_it() {
    let bed = TestProject::new();
    let first = bed.applied(NEW);
    let second = bed.applied("def f():\n    return 3 - 2\n");
    let said = bed.say(&["undo", "--yes", &first]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out.contains(&format!("`starling undo {second}`")),
        "{said:?}"
    );
    // Without a run id, the newest run is undone first.
    assert_eq!(bed.say(&["undo", "--yes"]).code, Some(0));
    assert_eq!(bed.work(), NEW);
    assert_eq!(bed.say(&["undo", "--yes"]).code, Some(0));
    assert_eq!(bed.work(), OLD);
}

/// Runs a task that creates a file in a new directory and changes other files.
fn run_over_files(bed: &TestProject, proposals: &[(&str, &str, &str)]) -> String {
    let picked: Vec<Value> = proposals
        .iter()
        .map(|(owner, _, _)| json!({"symbol": owner, "why": "recorded"}))
        .collect();
    let mut lines = vec![exchange(
        "scout",
        "scout",
        0,
        "wake",
        &json!({"symbols": picked}),
    )];
    for (owner, symbol, source) in proposals {
        let made = json!({"reason": "r", "symbol": symbol, "source": source});
        lines.push(exchange(
            &format!("agent {owner}"),
            "agent",
            0,
            "propose",
            &made,
        ));
    }
    let tape = bed.write("files.jsonl", &lines.join("\n"));
    let model = format!("replay:{}", tape.display());
    let args = ["run", "--json", "--approve", "auto", "--model", &model, "x"];
    let said = bed.say(&args);
    let events = said.events();
    let applied = events
        .iter()
        .filter(|one| one["event"]["event"] == "proposal_applied");
    assert_eq!(applied.count(), proposals.len(), "{said:?}");
    events[0]["run"].as_str().unwrap().to_owned()
}

#[test]
fn undo_removes_a_created_file_and_its_empty_directories() {
    let bed = TestProject::new();
    let proposals = [("work.py::f", "pkg/sub/help.py", "def g():\n    return 1\n")];
    run_over_files(&bed, &proposals);
    assert!(bed.root().join("pkg/sub/help.py").is_file());
    let said = bed.say(&["undo", "--yes"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("removes pkg/sub/help.py"), "{said:?}");
    assert!(!bed.root().join("pkg").exists());
    // A directory with other files stays.
    let run = run_over_files(&bed, &proposals);
    bed.write("project/pkg/mine.txt", "mine\n");
    assert_eq!(bed.say(&["undo", "-y", &run]).code, Some(0));
    assert!(bed.root().join("pkg/mine.txt").is_file());
    assert!(!bed.root().join("pkg/sub").exists());
}

impl TestProject {
    /// Marks the applied proposals in a trajectory as accepted in one set. Returns the numbers of
    /// the proposals with the files that they change, in order.
    fn accepted_as_a_set(&self, run: &str) -> Vec<(u64, String)> {
        let path = self.trajectory(run);
        let told = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<Value> = told
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let is_applied = |line: &&mut Value| line["event"]["event"] == "proposal_applied";
        let of_line = |line: &mut Value| {
            let file = line["event"]["change"]["file"].as_str().unwrap();
            let number = line["event"]["proposal"].as_u64().unwrap();
            (number, file.to_owned())
        };
        let applied = lines.iter_mut().filter(is_applied);
        let mut applied: Vec<(u64, String)> = applied.map(of_line).collect();
        let ids: Vec<u64> = applied.iter().map(|(id, _)| *id).collect();
        for line in lines.iter_mut().filter(is_applied) {
            line["event"]["change"]["dependencies"] = json!({"set": ids});
        }
        let lines = lines.iter().map(|line| format!("{line}\n"));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        applied.sort();
        applied
    }
}

#[test]
fn undo_reverts_a_set_completely_or_not_at_all() {
    let bed = TestProject::new();
    let proposals = [
        ("work.py::f", "work.py::f", NEW),
        ("work.py::", "one.py", "def one():\n    return 1\n"),
    ];
    let old = bed.work();
    let run = run_over_files(&bed, &proposals);
    let set = bed.accepted_as_a_set(&run);
    let number = |file: &str| set.iter().find(|(_, of)| of == file).unwrap().0;
    let (work, one) = (number("work.py"), number("one.py"));
    let typed = NEW.replace("2 - 1", "2 - 1 + 0");
    bed.type_text(&typed);
    let said = bed.say(&["undo", "--yes", &run]);
    assert_eq!(said.code, Some(1), "{said:?}");
    for line in [
        format!(
            "! #{work} stays as a whole: work.py, line 2: changed since, so it stays as it is; change \
             these lines by hand\n"
        ),
        format!("! #{one} stays: it belongs together with #{work}, which stays\n"),
        format!("one proposal alone: `starling undo {run} {one}`\n"),
        "nothing was taken back\n".to_owned(),
    ] {
        assert!(said.out.contains(&line), "{line} in {said:?}");
    }
    assert_eq!(bed.work(), typed);
    assert!(bed.root().join("one.py").is_file());
    let said = bed.say(&["undo", "--yes", "--json", &run]);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(told["undone"], json!([]), "{told}");
    assert_eq!(told["refused"][1]["held_by"], work, "{told}");
    // The proposal can be undone alone on request, with a warning about what may break.
    let alone = one.to_string();
    let breaks =
        format!("this may break the code that stays: #{work} belongs together with #{one}");
    let said = bed.answered(&["undo", &run, &alone], &["n"]);
    assert!(said.out.contains(&format!("! {breaks}\n")), "{said:?}");
    assert!(bed.root().join("one.py").is_file());
    let said = bed.say(&["undo", "--yes", "--json", &run, &alone]);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &told["undone"]), (Some(0), &json!([one])));
    assert_eq!(told["warning"], breaks, "{told}");
    assert!(!bed.root().join("one.py").exists());
    // No other proposal of the set is left to depend on it.
    bed.type_text(NEW);
    let said = bed.say(&["undo", "--yes", &run]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(bed.work(), old);
}

#[test]
fn unknown_run_is_a_usage_error() {
    let bed = TestProject::new();
    let nothing = bed.say(&["undo"]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    bed.say(&["undo", "17"])
        .is_wrong_use("there is no run `17` of this project");
    bed.say(&["review", "17"])
        .is_wrong_use("there is no run `17` of this project");
    bed.say(&["undo", "--json"]).is_wrong_use("--yes");
    let run = bed.applied(NEW);
    bed.say(&["undo", &run, "7"])
        .is_wrong_use("did not apply the proposal #7; it applied #1");
    let other = bed.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let repo = other.to_str().unwrap();
    bed.say(&["undo", "--repo", repo, &run])
        .is_wrong_use("belongs to another project");
    assert_eq!(bed.work(), NEW);
}

#[test]
fn undo_reports_a_damaged_trajectory() {
    let bed = TestProject::new();
    let run = bed.applied(NEW);
    let path = bed.trajectory(&run);
    let whole = std::fs::read_to_string(&path).unwrap();
    // Rewrites the trajectory in the format of an older version.
    let without_texts = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if let Some(event) = line["event"].as_object_mut() {
            event.remove("change");
            event.remove("parts");
        }
        format!("{line}\n")
    };
    let older = whole
        .lines()
        .filter(|line| !line.contains("\"event\":\"proposal_applying\""));
    let old: String = older.map(without_texts).collect();
    std::fs::write(&path, old).unwrap();
    let said = bed.say(&["undo", "--yes"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out.contains("the trajectory does not hold its texts"),
        "{said:?}"
    );
    let broken = whole.replacen("\n{", "\n!", 1);
    std::fs::write(&path, &broken).unwrap();
    let said = bed.say(&["undo", "--yes"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.err.contains(".jsonl:2: this line"), "{said:?}");
    assert!(said.err.contains("patch -R -p1 -i"), "{said:?}");
    let list = bed.say(&["undo", "--list"]);
    assert!(list.out.contains(".jsonl:2: this line"), "{list:?}");
    assert_eq!(bed.work(), NEW);
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
fn proposal_waiting_at_the_end_of_a_run_can_be_reviewed_later_and_undone() {
    let bed = TestProject::new();
    let said = bed.waits(NEW);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(
        said.out
            .ends_with("1 proposal waits for your review: `starling review`\n"),
        "{said:?}"
    );
    // A skipped proposal still waits, and so does one that nobody answered.
    for line in ["s", "q", ""] {
        let mut command = bed.starling();
        command.arg("review");
        let mut talk = RunningProgram::begin(command);
        talk.hear("[s]kip");
        if !line.is_empty() {
            talk.answer(line);
        }
        drop(talk.child.stdin.take());
        let said = talk.end();
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(
            said.out
                .contains("[a]ccept  [r]eject with a reason  [s]kip"),
            "{said:?}"
        );
        assert!(
            said.out.contains("+    return 2 - 1\n"),
            "the diff: {said:?}"
        );
        assert!(
            said.out.contains("1 proposal waits for your review"),
            "{said:?}"
        );
        assert_eq!(bed.work(), OLD);
    }
    let said = bed.answered(&["review"], &["a"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("✓ #1 changed work.py::f"), "{said:?}");
    assert!(said.out.ends_with("Undo: `starling undo`\n"), "{said:?}");
    assert_eq!(bed.work(), NEW);
    let said = bed.say(&["review"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("is waiting for review"), "{said:?}");
    assert_eq!(bed.say(&["undo", "--yes"]).code, Some(0));
    assert_eq!(bed.work(), OLD);
}

/// The lines of a pipe answer the proposals of one run after the other. The end of the input leaves
/// what has no answer waiting.
#[test]
fn piped_answers_are_used_in_order_and_their_end_leaves_the_rest_waiting() {
    let bed = TestProject::new();
    bed.waits(NEW);
    bed.waits("def f():\n    return 3 - 2\n");
    let piped = |lines: &str| {
        let mut command = bed.starling();
        command.arg("review");
        let mut talk = RunningProgram::begin(command);
        let mut stdin = talk.child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, lines.as_bytes()).unwrap();
        drop(stdin);
        talk.end()
    };
    for lines in ["", "s\n", "s\ns\n", "s\ns\ns\n"] {
        let said = piped(lines);
        assert_eq!(said.code, Some(1), "{lines:?}: {said:?}");
        let waits = "0 of 2 proposals answered, 0 changes applied";
        assert!(said.out.contains(waits), "{lines:?}: {said:?}");
        assert_eq!(bed.work(), OLD, "{lines:?}");
    }
    let said = piped("r no\na\n");
    assert!(said.out.contains("2 of 2 proposals answered"), "{said:?}");
}

#[test]
fn later_review_is_rebased_on_newer_edits_and_reports_conflicts() {
    let bed = TestProject::new();
    bed.waits(NEW);
    bed.type_text("def f():\n    return 1 + 0\n");
    let said = bed.answered(&["review"], &["a", "r no longer wanted"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = "conflict: work.py: both sides changed line 2; it cannot be accepted as it is";
    assert!(said.out.contains(told), "{said:?}");
    assert!(
        said.out.contains("rejected by you: no longer wanted"),
        "{said:?}"
    );
    assert_eq!(bed.work(), "def f():\n    return 1 + 0\n");
    assert!(
        said.out.contains(
            "work.py: both sides changed line 2; take your own change of it back, or reject #1"
        ),
        "{said:?}"
    );
    // The next proposal, with lines typed above its place.
    bed.type_text(OLD);
    bed.waits(NEW);
    bed.type_text(&format!("# mine\n\n{OLD}"));
    let said = bed.answered(&["review", "--json"], &["a"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let kinds: Vec<Value> = said
        .events()
        .iter()
        .map(|one| one["event"]["event"].clone())
        .collect();
    assert_eq!(kinds[0], "review_asked", "{said:?}");
    assert!(kinds.contains(&json!("proposal_applied")), "{said:?}");
    assert_eq!(bed.work(), format!("# mine\n\n{NEW}"));
    bed.type_text(OLD);
    bed.waits(NEW);
    bed.type_text(&format!("# mine\n\n{OLD}"));
    let said = bed.answered(&["review"], &["s"]);
    assert!(
        said.out.contains(" UTC, against an older text of work.py"),
        "{said:?}"
    );
    assert!(said.out.contains("checked at 20"), "{said:?}");
}

#[test]
fn review_reports_that_its_file_was_deleted_or_became_a_link() {
    let bed = TestProject::new();
    bed.waits(NEW);
    let file = bed.root().join("work.py");
    std::fs::rename(&file, bed.root().join("moved.py")).unwrap();
    let said = bed.answered(&["review"], &["a", "s"]);
    assert!(
        said.out.contains(
            "conflict: work.py is gone: it was deleted or renamed since the change was made; put the file \
             back, or reject #1"
        ),
        "{said:?}"
    );
    assert!(!said.out.contains("both sides"), "{said:?}");
    let outside = bed.dir.path().join("outside.py");
    std::fs::write(&outside, OLD).unwrap();
    std::os::unix::fs::symlink(&outside, &file).unwrap();
    let said = bed.answered(&["review"], &["a", "s"]);
    let told = "conflict: work.py may not be read any more, it may be a link now";
    assert!(said.out.contains(told), "{said:?}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), OLD);
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
fn undo_does_not_claim_to_revert_changes_that_are_already_gone() {
    let bed = TestProject::new();
    let old = bed.work();
    for json in [false, true] {
        bed.applied(NEW);
        // The user reverted the change, for example by version control.
        bed.type_text(&old);
        let args: &[&str] = match json {
            true => &["undo", "--yes", "--json"],
            false => &["undo"],
        };
        let said = bed.say(args);
        assert_eq!(said.code, Some(1), "{said:?}");
        if json {
            let told: Value = serde_json::from_str(&said.out).unwrap();
            assert_eq!(
                (&told["undone"], &told["absent"]),
                (&json!([]), &json!([1]))
            );
        } else {
            assert!(!said.out.contains("taken back: #1"), "{said:?}");
            let line =
                "the changes are no longer in the files, so there is nothing to take back: #1\n";
            assert!(said.out.ends_with(line), "{said:?}");
        }
        assert_eq!(bed.work(), old);
        // The result is recorded, so the next undo does not select this run again.
        let said = bed.say(&["undo", "--yes"]);
        assert!(
            said.out.contains("nothing to take back: all changes"),
            "{said:?}"
        );
    }
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

#[test]
fn review_names_the_program_that_has_the_run_open() {
    let bed = TestProject::new();
    bed.waits(NEW);
    let runs = bed.dir.path().join("cache/runs");
    let trajectory = std::fs::read_dir(&runs)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .unwrap();
    let file = std::fs::File::open(&trajectory).unwrap();
    file.try_lock().unwrap();
    let name = trajectory.file_stem().unwrap().to_str().unwrap();
    for args in [&["review"][..], &["review", name]] {
        let said = bed.say(args);
        assert_eq!(said.code, Some(1), "{said:?}");
        let told = format!("run {name}: 1 proposal waits for review, and ");
        assert!(said.out.starts_with(&told), "{said:?}");
        assert!(said.out.contains(" has the run open"), "{said:?}");
    }
    drop(file);
    assert_eq!(bed.answered(&["review"], &["a"]).code, Some(0));
    assert_eq!(bed.work(), NEW);
}

#[test]
fn undo_reports_that_a_created_file_no_longer_exists() {
    let bed = TestProject::new();
    let proposals = [("work.py::f", "fresh.py", "def g():\n    return 1\n")];
    let run = run_over_files(&bed, &proposals);
    std::fs::rename(bed.root().join("fresh.py"), bed.root().join("renamed.py")).unwrap();
    let said = bed.say(&["undo", "-y", &run]);
    assert!(
        said.out.contains("fresh.py does not exist any more"),
        "{said:?}"
    );
}
