//! Tests of `starling refactor`.

use super::project::TestProject;

const USES: &str = "from work import f\n\n\ndef g():\n    return f()\n";

fn with_uses(bed: &TestProject) {
    std::fs::write(bed.root().join("uses.py"), USES).unwrap();
}

fn text(bed: &TestProject, file: &str) -> String {
    std::fs::read_to_string(bed.root().join(file)).unwrap()
}

#[test]
fn rename_changes_all_files_without_a_model_and_can_be_undone() {
    let bed = TestProject::new();
    with_uses(&bed);
    let before = text(&bed, "work.py");
    // Whatever the configuration says of models and drivers.
    let line = "refactor rename f compute --approve auto -c run.driver=single";
    let said = bed.say(&line.split(' ').collect::<Vec<_>>());
    assert!(
        said.out
            .contains("rename `f` to `compute`, by rule: every use is certain"),
        "{said:?}"
    );
    assert!(said.out.contains("0 calls"), "{said:?}");
    assert!(text(&bed, "work.py").contains("def compute("));
    assert_eq!(
        text(&bed, "uses.py"),
        USES.replace("f()", "compute()")
            .replace("import f", "import compute")
    );
    let undone = bed.say(&["undo", "--yes"]);
    assert_eq!(undone.code, Some(0), "{undone:?}");
    assert_eq!(
        (text(&bed, "work.py"), text(&bed, "uses.py")),
        (before, USES.to_owned())
    );
}

#[test]
fn refactoring_that_cannot_be_made_changes_nothing_and_says_why() {
    let bed = TestProject::new();
    with_uses(&bed);
    for (args, status, why) in [
        (
            &["delete", "f"][..],
            1,
            "`f` is still used: test_work.py:8, uses.py:1, uses.py:5",
        ),
        (&["rename", "nothing", "g"], 1, "there is no"),
        (
            &["rename", "f", "g", "--model", "local"],
            2,
            "a refactoring uses no model",
        ),
        (
            &["rename", "f", "g", "--approve", "proxy"],
            2,
            "use --approve ask or auto",
        ),
    ] {
        let mut all = vec!["refactor"];
        all.extend(args);
        if !args.contains(&"--approve") {
            all.extend(["--approve", "auto"]);
        }
        let said = bed.say(&all);
        assert_eq!(said.code, Some(status), "{args:?}: {said:?}");
        assert!(
            said.out.contains(why) || said.err.contains(why),
            "{args:?}: {said:?}"
        );
        assert_eq!(text(&bed, "uses.py"), USES);
    }
}
