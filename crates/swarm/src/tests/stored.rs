//! Files that are stored in another form than the editor shows.

use super::bed::*;
use crate::*;
use starling_core::TestOutcome;

const F: &str = "def f(x):\n    return 1\n";

/// Returns a run that changes `f` while the editor shows this text for the Latin-1 file `words.txt`.
/// The only test fails if `words.txt` does not contain the bytes of `größe` in Latin-1.
fn bed(shown: &str) -> Bed {
    let model = Scripted::native().on("agent a.py::f", [whole("def f(x):\n    return 2\n")]);
    let bed = Bed::new(&[("a.py", F)], model)
        .begin(&["a.py::f"])
        .tests(|all| match all.contains("67, 72, f6, df, 65") {
            true => Vec::new(),
            false => vec![("t1".to_owned(), format!("wrong: {all}"))],
        });
    std::fs::write(bed.path("words.txt"), b"gr\xf6\xdfe\n").unwrap();
    let mut unsaved = bed.editor.unsaved.lock().unwrap();
    unsaved.insert("words.txt".to_owned(), shown.to_owned());
    drop(unsaved);
    bed
}

fn reports(events: &[Event]) -> Vec<&starling_core::TestReport> {
    let mut reports = Vec::new();
    for event in events {
        if let Event::TestsRun { report, .. } = event {
            reports.push(report);
        }
    }
    reports
}

#[tokio::test(start_paused = true)]
async fn open_file_reaches_the_tests_in_the_encoding_that_it_has_on_disk() {
    for shown in ["größe\n", "größe\nmaß\n"] {
        let events = bed(shown).run().await;
        let reports = reports(&events);
        assert!(!reports.is_empty(), "{events:#?}");
        for report in reports {
            assert_eq!(report.outcome, TestOutcome::Passed, "{report:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tests_do_not_run_on_a_text_that_its_file_cannot_store() {
    for (shown, reason) in [
        (
            "größe\n\u{431}\n",
            "words.txt: its encoding on disk, Latin-1, does not have",
        ),
        ("größe \u{431}\n", "words.txt: the file is not UTF-8"),
    ] {
        let events = bed(shown).run().await;
        let reports = reports(&events);
        assert!(!reports.is_empty(), "{events:#?}");
        for report in reports {
            assert_eq!(report.outcome, TestOutcome::NotRun, "{report:#?}");
            assert!(report.output.starts_with(reason), "{report:#?}");
        }
        let (proof, headline) = ending(&events);
        assert_ne!(proof, Proof::Proven, "{headline}");
    }
}

#[tokio::test(start_paused = true)]
async fn proposal_that_its_file_cannot_store_is_refused() {
    let model = Scripted::native().on(
        "agent words.txt::",
        [whole("größe \u{431}\n"), whole("größe maß\n")],
    );
    let mut bed = Bed::new(&[("a.py", F)], model).begin(&["words.txt::"]);
    std::fs::write(bed.path("words.txt"), b"gr\xf6\xdfe\n").unwrap();
    let unsaved = ("words.txt".to_owned(), "größe\n".to_owned());
    bed.editor.unsaved.lock().unwrap().extend([unsaved]);
    let events = bed.run().await;
    let told = bed.model.prompts("agent words.txt::").concat();
    let reason = "words.txt: its encoding on disk, Latin-1, does not have the character";
    assert!(told.contains(reason), "{told}\n{events:#?}");
}
