use super::*;
use crate::testing::git;
use crate::{Answer, Task};
use starling_sandbox::Policy;
use starling_text::unified_diff;

const CODE: &str = "def double(n):\n    return n + n + 1\n\n\ndef name():\n    return 'x'\n";
const TESTS: &str = "import unittest\nimport code_of\n\n\nclass T(unittest.TestCase):\n    def test_name(self):\n        self.assertEqual(code_of.name(), 'x')\n\n    def test_missing(self):\n        self.assertTrue(False)\n";
/// A test for the defect, added together with its fix.
const NEW_TEST: &str = "class T(unittest.TestCase):\n    def test_double(self):\n        self.assertEqual(code_of.double(2), 4)\n\n";

/// Returns a diff that replaces one text in a file.
fn patch(file: &str, before: &str, old: &str, new: &str) -> String {
    unified_diff(file, before, &before.replace(old, new))
}

fn gold() -> String {
    patch("code_of.py", CODE, "n + n + 1", "n + n")
}

/// A grader with one instance and its repository.
struct GradeFixture {
    _dir: tempfile::TempDir,
    grader: Grader,
    instance: Instance,
}

/// Creates a repository with a defect, hidden tests, and an environment without packages.
async fn bed() -> GradeFixture {
    bed_with(&[]).await
}

/// Creates a fixture whose repository has these files as well.
async fn bed_with(files: &[(&str, &str)]) -> GradeFixture {
    let dir = tempfile::tempdir().unwrap();
    let repository = dir.path().join("repos/a__b");
    std::fs::create_dir_all(&repository).unwrap();
    std::fs::write(repository.join("code_of.py"), CODE).unwrap();
    std::fs::write(repository.join("test_it.py"), TESTS).unwrap();
    for (file, text) in files {
        std::fs::write(repository.join(file), text).unwrap();
    }
    git(&repository, &["init", "-q"]);
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-q", "-m", "base"]);
    let base_commit = git(&repository, &["rev-parse", "HEAD"]);
    let environment = Environment {
        instance_id: "a__b-1".into(),
        python: "3".into(),
        pip: Vec::new(),
        env: BTreeMap::from([("PYTHONPATH".into(), "$PWD".into())]),
        test_cmd_f2p: "python3 -m unittest -v test_it.T.test_double".into(),
        test_cmd_p2p: "python3 -m unittest -v test_it".into(),
        p2p_unavailable: Vec::new(),
    };
    let cache = dir.path().join("cache");
    // Any Python works here, so the environment is marked as built.
    let name = xxhash_rust::xxh3::xxh3_64(b"3 ");
    let built = cache.join(format!("environments/{name:016x}"));
    std::fs::create_dir_all(&built).unwrap();
    std::fs::write(built.join("starling-built"), "").unwrap();
    GradeFixture {
        grader: Grader {
            repositories: Repositories {
                directory: dir.path().join("repos"),
                ..Repositories::default()
            },
            checkouts: Checkouts::temporary().unwrap(),
            environments: BTreeMap::from([("a__b-1".into(), environment)]),
            containers: None,
            shadows: Shadows::open(&cache, Policy::default()).await.unwrap(),
            hidden: Vec::new(),
            cache,
            deadline: Duration::from_secs(20),
        },
        instance: Instance {
            task: Task {
                id: "a__b-1".into(),
                repo: "a/b".into(),
                base_commit,
                problem_statement: "double".into(),
            },
            answer: Answer {
                patch: gold(),
                test_patch: patch(
                    "test_it.py",
                    TESTS,
                    "class T(unittest.TestCase):\n",
                    NEW_TEST,
                ),
                fail_to_pass: vec!["test_double".into()],
                pass_to_pass: vec!["test_name".into()],
            },
        },
        _dir: dir,
    }
}

async fn grade(patch: &str) -> Grade {
    let bed = bed().await;
    let prediction = Prediction {
        instance_id: "a__b-1".into(),
        model_name_or_path: "m".into(),
        model_patch: Some(patch.into()),
    };
    bed.grader.grade(&bed.instance, &prediction).await
}

#[track_caller]
fn is_unresolved(grade: Grade, why: &str) {
    match grade {
        Grade::Unresolved(said) => assert!(said.contains(why), "{said}"),
        Grade::Resolved | Grade::Error(_) => panic!("{grade:?}"),
    }
}

#[tokio::test]
async fn correct_change_is_resolved_despite_unrelated_failing_tests() {
    assert_eq!(grade(&gold()).await, Grade::Resolved);
}

#[tokio::test]
async fn empty_and_wrong_changes_are_unresolved() {
    is_unresolved(grade("").await, "the prediction is empty");
    let wrong = patch("code_of.py", CODE, "n + n + 1", "n");
    is_unresolved(grade(&wrong).await, "FAIL_TO_PASS");
    let misfit = gold().replace("n + n + 1", "n + n + 2");
    is_unresolved(grade(&misfit).await, "does not apply");
}

#[tokio::test]
async fn change_that_breaks_another_test_is_unresolved() {
    let both = CODE.replace("n + n + 1", "n + n").replace("'x'", "'y'");
    let breaks = unified_diff("code_of.py", CODE, &both);
    is_unresolved(grade(&breaks).await, "broken: test_it.T.test_name");
}

#[tokio::test]
async fn tampered_test_files_are_restored_before_grading() {
    let eased = patch("test_it.py", TESTS, "assertTrue(False)", "assertTrue(True)");
    assert_eq!(grade(&format!("{}{eased}", gold())).await, Grade::Resolved);
}

/// Returns a diff that adds a file.
fn new_file(file: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    let count = text.lines().count();
    format!(
        "diff --git a/{file} b/{file}\nnew file mode 100644\n--- /dev/null\n+++ b/{file}\n@@ -0,0 +1,{count} @@\n{lines}"
    )
}

/// Applies a change to a checkout, brings the hidden tests, and returns the texts of files.
async fn brought(bed: &GradeFixture, patch: &str, files: &[&str]) -> Vec<Option<String>> {
    let repository = bed.grader.repositories.find("a/b").unwrap();
    let commit = &bed.instance.task.base_commit;
    let lent = bed
        .grader
        .checkouts
        .take(&repository, commit)
        .await
        .unwrap();
    git::apply(&lent.path(), patch).await.unwrap();
    bring::tests(&bed.instance, &repository, &lent)
        .await
        .unwrap();
    let read = |file: &&str| std::fs::read_to_string(lent.path().join(file)).ok();
    files.iter().map(read).collect()
}

#[tokio::test]
async fn settings_that_load_plugins_are_restored_before_grading() {
    let base = [
        ("setup.cfg", "[metadata]\nname = x\n"),
        ("tox.ini", "[tox]\n"),
    ];
    let bed = bed_with(&base).await;
    let cheats = "[pytest]\naddopts = -p cheat\n";
    let files = [
        "setup.cfg",
        "tox.ini",
        ".pytest.ini",
        "sub/pyproject.toml",
        "x.egg-info/entry_points.txt",
        "other.ini",
    ];
    let changed = unified_diff(
        "setup.cfg",
        base[0].1,
        "[tool:pytest]\naddopts = -p cheat\n",
    );
    let removed = "--- a/tox.ini\n+++ /dev/null\n@@ -1 +0,0 @@\n-[tox]\n";
    let new: String = files[2..]
        .iter()
        .map(|file| new_file(file, cheats))
        .collect();
    let found = brought(&bed, &format!("{changed}{removed}{new}"), &files).await;
    let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
    let (first, second) = (Some(base[0].1), Some(base[1].1));
    assert_eq!(found, [first, second, None, None, None, Some(cheats)]);
    // Git ignores the first part of a path in a diff, whatever it is, and reads binary patches.
    let other = new_file("pytest.ini", cheats).replace("+++ b/", "+++ z/");
    let other = other
        .split_once('\n')
        .unwrap()
        .1
        .split_once('\n')
        .unwrap()
        .1;
    let binary = "diff --git a/tox.toml b/tox.toml\nnew file mode 100644\nindex \
                  0000000000000000000000000000000000000000..75447d8282481c980d1a33a63b248bb4d2d46c87\n\
                  GIT binary patch\nliteral 2\nJcma!M0002E09*h7\n\nliteral 0\nHcmV?d00001\n\n";
    let found = brought(
        &bed,
        &format!("{other}{binary}"),
        &["pytest.ini", "tox.toml"],
    )
    .await;
    assert_eq!(found, [None, None]);
}

#[tokio::test]
async fn settings_of_the_known_change_and_of_the_hidden_tests_are_used() {
    let base = [("setup.cfg", "[metadata]\nname = x\n")];
    let mut bed = bed_with(&base).await;
    let known = "[metadata]\nname = y\n";
    let answer = &mut bed.instance.answer;
    answer
        .patch
        .push_str(&unified_diff("setup.cfg", base[0].1, known));
    answer
        .test_patch
        .push_str(&new_file("pytest.ini", "[pytest]\n"));
    let mine = unified_diff(
        "setup.cfg",
        base[0].1,
        "[tool:pytest]\naddopts = -p cheat\n",
    );
    let cheats = new_file("pytest.ini", "[pytest]\naddopts = -p cheat\n");
    let files = ["setup.cfg", "pytest.ini"];
    let found = brought(&bed, &format!("{mine}{cheats}"), &files).await;
    assert_eq!(
        found,
        [Some(known.to_owned()), Some("[pytest]\n".to_owned())]
    );
}

#[tokio::test]
async fn correct_change_of_other_settings_is_resolved() {
    let base = [("setup.cfg", "[metadata]\nname = x\n")];
    let bed = bed_with(&base).await;
    let settings = unified_diff("setup.cfg", base[0].1, "[metadata]\nname = y\n");
    let prediction = Prediction {
        instance_id: "a__b-1".into(),
        model_name_or_path: "m".into(),
        model_patch: Some(format!("{}{settings}", gold())),
    };
    let grade = bed.grader.grade(&bed.instance, &prediction).await;
    assert_eq!(grade, Grade::Resolved);
}

#[tokio::test]
async fn tests_cannot_read_the_known_change_from_the_repository_or_the_data_set() {
    let mut bed = bed().await;
    let repository = bed.grader.repositories.find("a/b").unwrap();
    let answers = bed.grader.cache.parent().unwrap().join("answers.jsonl");
    std::fs::write(&answers, gold()).unwrap();
    bed.grader.hidden.push(answers.clone());
    let head = repository.join(".git/HEAD");
    let environment = bed.grader.environments.get_mut("a__b-1").unwrap();
    let command = &environment.test_cmd_f2p;
    environment.test_cmd_f2p = format!(
        "test ! -e {} && test ! -s {} && {command}",
        head.display(),
        answers.display()
    );
    let prediction = Prediction {
        instance_id: "a__b-1".into(),
        model_name_or_path: "m".into(),
        model_patch: Some(gold()),
    };
    let grade = bed.grader.grade(&bed.instance, &prediction).await;
    assert_eq!(grade, Grade::Resolved);
}

/// Returns a diff that adds lines at the top of the code file.
fn with_head(head: &str) -> String {
    let after = format!("{head}\n{CODE}");
    unified_diff("code_of.py", CODE, &after)
}

#[tokio::test]
async fn change_that_exits_the_test_process_is_unresolved() {
    let ends = with_head("import os\nos._exit(0)\n");
    is_unresolved(grade(&ends).await, "0 of 1 tests passed");
    // The change is correct, but ends the process before the other tests.
    let mended = CODE.replace("n + n + 1", "n + n").replace(
        "return 'x'",
        "import os, sys; sys.stderr.flush(); os._exit(0)",
    );
    let ends = unified_diff("code_of.py", CODE, &mended);
    is_unresolved(grade(&ends).await, "was cut off before its end");
}

#[tokio::test]
async fn change_that_fakes_a_successful_exit_status_is_unresolved() {
    let ends = with_head("import atexit, os\natexit.register(lambda: os._exit(0))\n");
    is_unresolved(grade(&ends).await, "FAIL_TO_PASS: test_it.T.test_double");
    // The runner's output names no test.
    let mut bed = bed().await;
    let environment = bed.grader.environments.get_mut("a__b-1").unwrap();
    environment.test_cmd_f2p =
        "python3 -m unittest test_it.T.test_double 2>&1 | tail -n 3; true".into();
    let prediction = Prediction {
        instance_id: "a__b-1".into(),
        model_name_or_path: "m".into(),
        model_patch: Some(ends),
    };
    let grade = bed.grader.grade(&bed.instance, &prediction).await;
    is_unresolved(grade, "0 of 1 tests passed");
}

/// A command that names its tests does not run the canary tests, and does not run them without the
/// change either.
#[tokio::test]
async fn test_command_that_names_its_tests_is_graded_without_control_tests() {
    let mut bed = bed().await;
    let environment = bed.grader.environments.get_mut("a__b-1").unwrap();
    environment.test_cmd_p2p = "python3 -m unittest -v test_it.T.test_name".into();
    let prediction = |patch: String| Prediction {
        instance_id: "a__b-1".into(),
        model_name_or_path: "m".into(),
        model_patch: Some(patch),
    };
    let right = bed.grader.grade(&bed.instance, &prediction(gold())).await;
    assert_eq!(right, Grade::Resolved);
}

#[tokio::test]
async fn change_that_makes_every_test_pass_is_unresolved() {
    let blind = "import unittest\nunittest.TestCase.run = lambda self, result=None: (result.startTest(self), result.addSuccess(self), result.stopTest(self))\n";
    is_unresolved(
        grade(&with_head(blind)).await,
        "a control test that must fail passes",
    );
    let deaf = "import unittest\nunittest.TestCase.assertEqual = lambda self, *a: None\n";
    is_unresolved(
        grade(&with_head(deaf)).await,
        "a control test that must fail passes",
    );
}

#[tokio::test]
async fn change_that_hides_tests_from_the_runner_is_unresolved() {
    let hides = "import unittest\nnames = unittest.TestLoader.getTestCaseNames\nunittest.TestLoader.getTestCaseNames = lambda self, case: [n for n in names(self, case) if n != 'test_name']\n";
    let both = format!("{hides}\n{}", CODE.replace("n + n + 1", "n + n"));
    let hidden = unified_diff("code_of.py", CODE, &both);
    is_unresolved(grade(&hidden).await, "broken: test_it.T.test_name");
}

#[tokio::test]
async fn change_that_hangs_is_stopped_and_unresolved() {
    let mut bed = bed().await;
    bed.grader.deadline = Duration::from_secs(1);
    let prediction = Prediction {
        instance_id: "a__b-1".into(),
        model_name_or_path: "m".into(),
        model_patch: Some(with_head("import time\ntime.sleep(600)\n")),
    };
    let grade = bed.grader.grade(&bed.instance, &prediction).await;
    is_unresolved(grade, "FAIL_TO_PASS");
}

#[tokio::test]
async fn grading_error_gives_the_reason() {
    let mut bed = bed().await;
    bed.instance.task.id = "a__b-2".into();
    let prediction = Prediction {
        instance_id: "a__b-2".into(),
        model_name_or_path: "m".into(),
        model_patch: Some(gold()),
    };
    let grade = bed.grader.grade(&bed.instance, &prediction).await;
    assert_eq!(
        grade,
        Grade::Error("the instance has no test environment".into())
    );
}
