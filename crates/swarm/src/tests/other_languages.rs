//! Tests in other languages than Python. A test that the run itself changed proves nothing, whatever
//! its language.

use starling_core::Approval;

use super::bed::*;
use crate::evidence::ids::WHOLE_RUN;
use crate::*;

const CODE: &str = "function f(x) { return x + 2 }\nmodule.exports = { f }\n";
const TEST: &str = "const {f} = require('./a.js');\nif (f(1) !== 2) process.exit(1);\n";

/// Runs an agent that changes the expected value in `file` instead of the code. Returns the end of
/// the run, and whether the file was changed.
async fn changes_the_expected_value(
    files: &[(&str, &str)],
    command: &str,
    file: &str,
    approval: Approval,
) -> ((Proof, String), bool) {
    let text = files.iter().find(|(name, _)| *name == file).unwrap().1;
    let changed = text.replace("2", "3");
    let agent = format!("agent {file}");
    let model = Scripted::native()
        .on(&agent, [whole(&changed), finish("no"), finish("no")])
        .always("agent", finish("no"))
        .always("proxy", say("ACCEPT"));
    let original = text.to_owned();
    let judge = move |all: &str| match all.contains(&original) {
        true => vec![(WHOLE_RUN.to_owned(), "1 is not 2".to_owned())],
        false => Vec::new(),
    };
    let mut bed = Bed::new(files, model).tests(judge).with(|task| {
        task.approval = approval;
        task.text = "f adds one too much. Make the tests pass.".to_owned();
    });
    bed.command = command.to_owned();
    let mut bed = bed.begin(&[&format!("{file}::")]);
    let events = bed.run().await;
    (ending(&events), bed.read(file) != text)
}

#[tokio::test(start_paused = true)]
async fn changed_test_script_of_another_language_proves_nothing() {
    let package = "{\"scripts\": {\"test\": \"node t.js\"}}";
    let perl = "my $r = `python3 -c 'from a import f; print(f(1))'`;\nexit($r == 2 ? 0 : 1);\n";
    let loads = "const {f} = require('./a.js');\nconst cases = require('./cases.json');\n";
    let cases = "[[1, 2]]\n";
    let script = [("t.js", TEST)];
    let package = [("t.js", TEST), ("package.json", package)];
    let perl = [("t.pl", perl), ("a.py", "def f(x): return x + 9\n")];
    let data = [("t.js", loads), ("cases.json", cases)];
    for (files, command, file) in [
        (&script[..], "node t.js", "t.js"),
        (&[("t.mjs", TEST)], "node t.mjs", "t.mjs"),
        (&package, "npm test", "t.js"),
        (&perl, "perl t.pl", "t.pl"),
        (&[("__tests__/a.js", TEST)], "node --test", "__tests__/a.js"),
        (&[("a.test.js", TEST)], "node --test", "a.test.js"),
        (&data, "node t.js", "cases.json"),
    ] {
        let files = [&[("a.js", CODE)], files].concat();
        let (end, is_changed) =
            changes_the_expected_value(&files, command, file, Approval::Auto).await;
        assert_eq!(end.0, Proof::NotDone, "{command} {file}: {}", end.1);
        assert!(!is_changed, "{command} {file}");
        let (end, is_changed) =
            changes_the_expected_value(&files, command, file, Approval::Ask).await;
        assert_eq!(end.0, Proof::Unproven, "{command} {file}: {}", end.1);
        assert!(is_changed, "{command} {file}");
    }
}

/// A script without other code of the project is the code, even if the test command runs it.
#[tokio::test(start_paused = true)]
async fn changed_program_that_the_test_command_runs_can_be_proven() {
    let alone = "const f = x => x + 2;\nif (f(1) !== 3) process.exit(1);\n";
    for (file, command) in [
        ("calc.js", "node calc.js"),
        ("calc.c", "cc calc.c && ./a.out"),
    ] {
        let files = [(file, alone)];
        let (end, _) = changes_the_expected_value(&files, command, file, Approval::Auto).await;
        assert_eq!(end.0, Proof::Proven, "{command}: {}", end.1);
    }
}
