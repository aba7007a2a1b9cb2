//! Tests of `starling undo`, on runs of the shipped program.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::project::{NEW, OLD, RunningProgram, TestProject, run_over_files};

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

#[test]
fn undo_of_a_run_lists_the_same_change_of_a_later_run_as_undone() {
    let bed = TestProject::new();
    let first = bed.applied(NEW);
    // Another program restores the file, so the second run makes the same change.
    bed.type_text(OLD);
    let second = bed.applied(NEW);
    let undone = || {
        let listed = bed.say(&["undo", "--list", "--json"]).out;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let of = |run: &str| {
            let mut all = listed.as_array().unwrap().iter();
            all.find(|one| one["run"] == run).unwrap()["undone"].clone()
        };
        [of(&first), of(&second)]
    };
    assert_eq!(undone(), [0, 0]);
    assert_eq!(bed.say(&["undo", "--yes", &first]).code, Some(0));
    assert_eq!(bed.work(), OLD);
    assert_eq!(undone(), [1, 1]);
}
