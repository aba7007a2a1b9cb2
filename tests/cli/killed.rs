//! What the next commands say of a run that was killed.

use std::path::Path;

use serde_json::json;

use super::project::{NEW, OLD, TestProject, exchange};

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
