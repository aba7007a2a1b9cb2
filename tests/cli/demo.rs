//! Tests of `starling demo`.

use std::path::PathBuf;

use super::project::{CommandResult, OLD, TestProject};

#[test]
fn demo_replays_in_a_temporary_directory() {
    let bed = TestProject::new();
    let demo = |args: &[&str]| {
        let mut command = bed.starling();
        command
            .args(["demo", "--replay"])
            .args(args)
            .env("TMPDIR", bed.dir.path());
        let said = CommandResult::of(&command.output().unwrap());
        let place = said
            .err
            .lines()
            .find_map(|line| line.strip_prefix("the project is in "));
        let place = PathBuf::from(place.unwrap());
        let home = bed.dir.path().canonicalize().unwrap();
        assert!(place.starts_with(home), "{place:?}");
        (said, place)
    };
    let (said, place) = demo(&["--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!place.parent().unwrap().exists(), "nothing stays behind");
    let (said, place) = demo(&["--keep"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("the project was kept in "), "{said:?}");
    assert!(said.out.contains("undo  starling undo --repo "), "{said:?}");
    assert!(place.join("parcels/quote.py").is_file());
    // A demo that changed files but did not finish keeps its project for inspection.
    let (said, place) = demo(&["-c", "limits.calls=6"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let changed = said.out.contains("applied");
    assert_eq!(place.exists(), changed, "{said:?}");
    assert_eq!(
        said.err.contains("the project was kept in "),
        changed,
        "{said:?}"
    );
    assert_eq!(
        bed.work(),
        OLD,
        "the project that one stands in is left alone"
    );
}
