use super::*;
use crate::testing::git;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A fake run that reads its task and prints the events of a run's end. Words in the task control
/// its behaviour before that.
const PROGRAM: &str = r#"#!/bin/sh
task=$(cat)
case "$task" in
  *stubborn*) trap '' TERM INT HUP QUIT; while :; do sleep 0.05; done ;;
  *wedge*) echo '{"run":"w","seq":1,"at_ms":1,"event":{"event":"turn_finished","agent":"scout","role":"scout","model":"m","usage":{"prompt":1,"cached":0,"output":1},"cost":0.7,"calls":1,"finish":"stop","millis":1}}'; sleep 600 ;;
  *crash*) echo "the model is gone" >&2; exit 3 ;;
esac
echo "not an event"
mkdir -p "$STORIES"
run="r$$"
echo "$task" > "$STORIES/$run.jsonl"
echo "$*" > "$STORIES/arguments"
ls > "$STORIES/beside"
case "$task" in
  *worse*) echo "{\"run\":\"$run\",\"seq\":1,\"at_ms\":4,\"event\":{\"event\":\"taken_back\",\"diff\":\"the best it had\",\"patch\":null,\"left\":[]}}" ;;
esac
cat <<END
{"run":"$run","seq":1,"at_ms":5,"event":{"event":"run_finished","stop_reason":{"reason":"settled"},"applied":["a.py::f"],"diff":"--- a/a.py\n+++ b/a.py\n","spent":{"calls":2,"prompt_tokens":10,"cached_tokens":0,"output_tokens":5,"dollars":0.5,"seconds":1.0,"waiting_seconds":0.0,"messages":0,"agents":1},"summary":"done","tally":[]}}
END
"#;

/// The settings of a run with a fake `starling` program, and its output directory.
struct RunFixture {
    _dir: tempfile::TempDir,
    out: PathBuf,
    runs: Runs,
    commit: String,
}

fn bed() -> RunFixture {
    let dir = tempfile::tempdir().unwrap();
    let repository = dir.path().join("repos/a__b");
    std::fs::create_dir_all(&repository).unwrap();
    std::fs::write(repository.join("a.py"), "def f():\n    pass\n").unwrap();
    git(&repository, &["init", "-q"]);
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-q", "-m", "base"]);
    let commit = git(&repository, &["rev-parse", "HEAD"]);
    let cache = dir.path().join("cache");
    let program = dir.path().join("program");
    let stories = cache.join("runs");
    let text = PROGRAM.replace("$STORIES", &stories.to_string_lossy());
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    RunFixture {
        out: dir.path().join("out"),
        runs: Runs {
            repositories: Repositories {
                directory: dir.path().join("repos"),
                ..Repositories::default()
            },
            environments: BTreeMap::new(),
            containers: None,
            cache,
            program,
            arguments: vec!["--driver".into(), "swarm".into()],
            hidden: vec![dir.path().join("out")],
            oracle: None,
            seconds: 60,
            workers: 2,
            dollars: None,
        },
        commit,
        _dir: dir,
    }
}

impl RunFixture {
    fn task(&self, id: &str, statement: &str) -> Task {
        Task {
            id: id.into(),
            repo: "a/b".into(),
            base_commit: self.commit.clone(),
            problem_statement: statement.into(),
        }
    }

    fn place(&self) -> RunDirectory {
        self.place_as(KeptRecords::Everything)
    }

    fn place_as(&self, kept: KeptRecords) -> RunDirectory {
        RunDirectory::open(&self.out, settings("m"), kept).unwrap()
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.out.join(file)).unwrap()
    }
}

fn settings(model: &str) -> Settings {
    Settings {
        dataset: "set.jsonl".into(),
        driver: "swarm".into(),
        model: model.into(),
        sample: String::new(),
        program: "starling 1".into(),
        given: BTreeMap::from([("-c".into(), "a=1".into())]),
    }
}

fn outcomes(place: &RunDirectory) -> Vec<(String, bool)> {
    let records = place.records().unwrap().into_values();
    let said = |record: Record| (record.instance_id.clone(), record.is_settled());
    records.map(said).collect()
}

#[tokio::test]
async fn each_instance_writes_a_record_a_trajectory_and_a_prediction() {
    let bed = bed();
    let (one, two) = (
        bed.task("a__b-1", "First.\nMore."),
        bed.task("a__b-2", "crash"),
    );
    let place = bed.place();
    let mut seen = Vec::new();
    let tasks = [&one, &two];
    let ended = bed.runs.all(&tasks, &place, |record| {
        seen.push(record.instance_id.clone())
    });
    assert_eq!(ended.await.unwrap(), Ended::All);
    seen.sort();
    assert_eq!(seen, ["a__b-1", "a__b-2"]);
    assert_eq!(
        bed.read("instances/a__b-1/trajectory.jsonl"),
        "First.\nMore.\n"
    );
    let records = place.records().unwrap();
    assert!(records["a__b-1"].is_settled());
    let Outcome::Failed { why, .. } = &records["a__b-2"].outcome else {
        panic!("{records:?}");
    };
    assert!(
        why.contains("the model is gone") && why.contains('3'),
        "{why}"
    );
    let predictions = bed.read("predictions.jsonl");
    let mut lines = predictions.lines();
    assert_eq!(
        lines.next().unwrap(),
        r#"{"instance_id":"a__b-1","model_name_or_path":"m","model_patch":"--- a/a.py\n+++ b/a.py\n"}"#
    );
    assert!(lines.next().unwrap().contains(r#""model_patch":"""#));
    let report: serde_json::Value = serde_json::from_str(&bed.read("report.json")).unwrap();
    assert_eq!(report["settled"], 1);
    assert_eq!(report["failed"], 1);
    assert_eq!(report["prompt_tokens"], 10);
    assert!(!bed.out.join("work").exists());
}

#[tokio::test]
async fn patch_that_the_run_took_back_is_still_written_to_the_predictions() {
    let bed = bed();
    let one = bed.task("a__b-1", "worse");
    let place = bed.place();
    let tasks = [&one];
    let ended = bed.runs.all(&tasks, &place, |_| {});
    assert_eq!(ended.await.unwrap(), Ended::All);
    let predictions = bed.read("predictions.jsonl");
    assert!(
        predictions.contains(r#""model_patch":"the best it had""#),
        "{predictions}"
    );
}

#[tokio::test]
async fn run_process_gets_only_the_task_and_a_checkout_without_git_history() {
    let bed = bed();
    let task = bed.task("a__b-1", "First.");
    bed.runs.all(&[&task], &bed.place(), |_| {}).await.unwrap();
    let stories = bed.runs.cache.join("runs");
    let arguments = std::fs::read_to_string(stories.join("arguments")).unwrap();
    let checkout = bed.out.canonicalize().unwrap().join("work/1/checkout");
    let repositories = bed.runs.repositories.directory.canonicalize().unwrap();
    assert_eq!(
        arguments.trim(),
        format!(
            "run - --json --end-with-parent {} --repo {} --driver swarm --hide-from-tests {} \
             --hide-from-tests {}",
            std::process::id(),
            checkout.display(),
            bed.out.display(),
            repositories.display()
        )
    );
}

#[tokio::test]
async fn resumed_run_skips_finished_instances_and_retries_failed_ones_only_on_request() {
    let bed = bed();
    let (one, two) = (bed.task("a__b-1", "First."), bed.task("a__b-2", "crash"));
    bed.runs
        .all(&[&one, &two], &bed.place(), |_| {})
        .await
        .unwrap();
    // Simulates a partly written record, and the checkout of a killed run.
    std::fs::create_dir_all(bed.out.join("instances/a__b-3")).unwrap();
    std::fs::write(bed.out.join("instances/a__b-3/result.new"), "{").unwrap();
    std::fs::create_dir_all(bed.out.join("work/a__b-3/checkout")).unwrap();
    let mended = bed.task("a__b-2", "Second.");
    let mut seen = 0;
    let place = bed.place();
    assert!(!bed.out.join("work").exists());
    bed.runs
        .all(&[&one, &mended], &place, |_| seen += 1)
        .await
        .unwrap();
    assert_eq!(seen, 0);
    drop(place);
    let place = bed.place_as(KeptRecords::Finished);
    assert_eq!(bed.read("predictions.jsonl").lines().count(), 1);
    bed.runs
        .all(&[&one, &mended], &place, |_| seen += 1)
        .await
        .unwrap();
    assert_eq!(seen, 1);
    let both = [("a__b-1".to_owned(), true), ("a__b-2".to_owned(), true)];
    assert_eq!(outcomes(&place), both);
}

#[tokio::test]
async fn hanging_instance_is_stopped_and_the_others_continue() {
    let mut bed = bed();
    bed.runs.seconds = 0;
    let (one, two) = (bed.task("a__b-1", "wedge"), bed.task("a__b-2", "Second."));
    let place = bed.place();
    let child = ChildSettings {
        program: &bed.runs.program,
        arguments: &[],
        checkout: &bed.out,
        variables: Vec::new(),
        limit: Duration::from_secs(2),
    };
    let mut heard = ReceivedEvents::default();
    let why = child
        .run(&one.problem_statement, &mut heard)
        .await
        .unwrap_err();
    assert!(why.contains("was stopped"), "{why}");
    // Its cost counts, and its trajectory can be found.
    assert_eq!(heard.dollars, Dollars(0.7));
    assert_eq!(heard.run, Some(RunId("w".into())));
    bed.runs.all(&[&two], &place, |_| {}).await.unwrap();
    assert_eq!(outcomes(&place), [("a__b-2".to_owned(), true)]);
}

#[tokio::test]
async fn instance_that_ignores_signals_is_killed() {
    let bed = bed();
    std::fs::create_dir_all(&bed.out).unwrap();
    let child = ChildSettings {
        program: &bed.runs.program,
        arguments: &[],
        checkout: &bed.out,
        variables: Vec::new(),
        limit: Duration::from_secs(1),
    };
    let why = child
        .run("stubborn", &mut ReceivedEvents::default())
        .await
        .unwrap_err();
    assert!(why.contains("was stopped"), "{why}");
}

#[tokio::test]
async fn no_instance_starts_after_the_budget_is_spent() {
    let mut bed = bed();
    bed.runs.workers = 1;
    bed.runs.dollars = Some(Dollars(0.9));
    let tasks: Vec<Task> = (0..4)
        .map(|at| bed.task(&format!("a__b-{at}"), "Do."))
        .collect();
    let tasks: Vec<&Task> = tasks.iter().collect();
    let ended = bed.runs.all(&tasks, &bed.place(), |_| {}).await.unwrap();
    assert_eq!(ended, Ended::BudgetSpent);
    assert_eq!(bed.read("predictions.jsonl").lines().count(), 2);
    // Earlier spending counts.
    bed.runs.all(&tasks, &bed.place(), |_| {}).await.unwrap();
    assert_eq!(bed.read("predictions.jsonl").lines().count(), 2);
}

#[tokio::test]
async fn cost_of_a_failed_attempt_still_counts_after_a_retry() {
    let mut bed = bed();
    let place = bed.place();
    let failed = Record {
        instance_id: "a__b-1".into(),
        outcome: Outcome::Failed {
            why: "the endpoint went away".into(),
            dollars: Dollars(0.7),
        },
        seconds: 1.0,
        memory: 0,
    };
    place.keep(&failed, None).unwrap();
    drop(place);
    // The record is set aside twice, and each attempt counts.
    let place = bed.place_as(KeptRecords::Finished);
    place.keep(&failed, None).unwrap();
    drop(place);
    let place = bed.place_as(KeptRecords::Finished);
    let (one, two) = (bed.task("a__b-1", "First."), bed.task("a__b-2", "Second."));
    bed.runs.workers = 1;
    bed.runs.dollars = Some(Dollars(1.3));
    let ended = bed.runs.all(&[&one, &two], &place, |_| {}).await.unwrap();
    assert_eq!(ended, Ended::BudgetSpent);
    assert_eq!(outcomes(&place), []);
    bed.runs.dollars = Some(Dollars(1.5));
    let ended = bed.runs.all(&[&one, &two], &place, |_| {}).await.unwrap();
    assert_eq!(ended, Ended::BudgetSpent);
    assert_eq!(outcomes(&place), [("a__b-1".to_owned(), true)]);
    let report: serde_json::Value = serde_json::from_str(&bed.read("report.json")).unwrap();
    assert_eq!(report["dollars"], 1.9);
    assert_eq!(report["earlier_dollars"], 1.4);
}

#[test]
fn output_directory_rejects_other_settings_and_a_second_process() {
    let bed = bed();
    let place = bed.place();
    let taken = RunDirectory::open(&bed.out, settings("m"), KeptRecords::Everything).unwrap_err();
    assert!(matches!(taken, RunDirectoryError::Taken(_)), "{taken}");
    drop(place);
    let wanted = Settings {
        program: "starling 2".into(),
        given: BTreeMap::from([("tests".into(), "x".into())]),
        ..settings("n")
    };
    let other = RunDirectory::open(&bed.out, wanted, KeptRecords::Everything).unwrap_err();
    let other = other.to_string();
    for told in [
        "\n  -c: `a=1`, not nothing\n",
        "\n  model: `m`, not `n`\n",
        "\n  program: `starling 1`, not `starling 2`\n",
        "\n  tests: nothing, not `x`\n",
        "another directory for --out",
    ] {
        assert!(other.contains(told), "{told}: {other}");
    }
    assert!(!other.contains("driver"), "{other}");
    std::fs::create_dir_all(bed.out.join("instances/a__b-1")).unwrap();
    std::fs::write(bed.out.join("instances/a__b-1/result.json"), "{").unwrap();
    let broken = RunDirectory::open(&bed.out, settings("m"), KeptRecords::Everything).unwrap_err();
    assert!(
        broken.to_string().contains("a__b-1/result.json"),
        "{broken}"
    );
}

#[tokio::test]
async fn test_environment_is_first_in_path() {
    let mut bed = bed();
    let environment = Environment {
        instance_id: "a__b-1".into(),
        python: "3".into(),
        pip: Vec::new(),
        env: BTreeMap::from([
            ("HERE".into(), "$PWD/x".into()),
            ("URL".into(), "http://127.0.0.1:PORT/  # serve PORT".into()),
        ]),
        test_cmd_f2p: "hidden".into(),
        test_cmd_p2p: "hidden".into(),
        p2p_unavailable: Vec::new(),
    };
    let variables = environment.variables(Path::new("/env"), Path::new("/checkout"));
    assert!(variables[0].1.starts_with("/env/bin:"), "{variables:?}");
    assert!(variables.contains(&("HERE".into(), "/checkout/x".into())));
    assert!(!variables.iter().any(|(_, value)| value.contains("hidden")));
    // Its services start before each test command.
    bed.runs.environments = BTreeMap::from([("a__b-0".into(), environment.clone())]);
    let name = xxhash_rust::xxh3::xxh3_64(b"3 ");
    let built = bed.runs.cache.join(format!("environments/{name:016x}"));
    std::fs::create_dir_all(&built).unwrap();
    std::fs::write(built.join("starling-built"), "").unwrap();
    bed.runs
        .all(&[&bed.task("a__b-0", "Do.")], &bed.place(), |_| {})
        .await
        .unwrap();
    let arguments = std::fs::read_to_string(bed.runs.cache.join("runs/arguments")).unwrap();
    assert!(
        arguments.contains("-c tests.setup=\"serve 18765 >/dev/null 2>&1 &"),
        "{arguments}"
    );
    // An environment that cannot be built is reported, and fails only its own instance.
    let python = "9.99".to_owned();
    let missing = Environment {
        python,
        ..environment
    };
    bed.runs.environments = BTreeMap::from([("a__b-1".into(), missing)]);
    let place = bed.place();
    bed.runs
        .all(&[&bed.task("a__b-1", "Do.")], &place, |_| {})
        .await
        .unwrap();
    let records = place.records().unwrap();
    let Outcome::Failed { why, .. } = &records["a__b-1"].outcome else {
        panic!("{records:?}");
    };
    assert!(why.contains("9.99"), "{why}");
}

#[tokio::test]
async fn instance_whose_id_or_commit_is_not_usable_fails_alone_and_writes_only_into_the_directory()
{
    let bed = bed();
    let outside = bed.out.parent().unwrap().join("victim");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("result.json"), "mine").unwrap();
    let absolute = outside.display().to_string();
    let long = "x".repeat(300);
    let ids = [
        "../../victim",
        &absolute,
        "..",
        ".",
        "",
        "a\0b",
        &long,
        "-rf",
    ];
    let mut tasks: Vec<Task> = ids.iter().map(|id| bed.task(id, "T")).collect();
    for (at, commit) in ["-h", "--output=x", "HEAD~1", ""].iter().enumerate() {
        let mut task = bed.task(&format!("a__b-{at}"), "T");
        task.base_commit = (*commit).to_owned();
        tasks.push(task);
    }
    tasks.push(bed.task("a__b-9", "T"));
    let place = bed.place();
    let tasks: Vec<&Task> = tasks.iter().collect();
    let ended = bed.runs.all(&tasks, &place, |_| {}).await.unwrap();
    assert_eq!(ended, Ended::All);
    let records = place.records().unwrap();
    assert_eq!(records.len(), tasks.len());
    for (id, record) in &records {
        match &record.outcome {
            Outcome::Finished(_) => assert_eq!(id, "a__b-9"),
            Outcome::Failed { why, .. } => {
                let is_said = why.contains("is not usable as the name of a file")
                    || why.contains("neither the id of a commit nor the name of a reference");
                assert!(is_said, "{id:?}: {why}");
            }
        }
    }
    assert_eq!(
        std::fs::read_to_string(outside.join("result.json")).unwrap(),
        "mine"
    );
    assert_eq!(
        std::fs::read_dir(bed.out.join("instances"))
            .unwrap()
            .count(),
        tasks.len()
    );
    // The same command has nothing left to do.
    let again = bed
        .runs
        .all(&tasks, &place, |record| panic!("{}", record.instance_id));
    assert_eq!(again.await.unwrap(), Ended::All);
}

#[tokio::test]
async fn repositories_are_hidden_from_the_tests_with_what_they_borrow_and_link_to() {
    let bed = bed();
    let base = bed.out.parent().unwrap().to_owned();
    let (repos, real) = (base.join("repos"), base.join("real"));
    std::fs::rename(repos.join("a__b"), &real).unwrap();
    let other = base.join("other");
    let (from, to) = (real.display().to_string(), other.display().to_string());
    git(&base, &["clone", "-q", "--bare", "--shared", &from, &to]);
    std::os::unix::fs::symlink(&other, repos.join("a__b")).unwrap();
    let place = bed.place();
    let task = bed.task("a__b-1", "T");
    assert_eq!(
        bed.runs.all(&[&task], &place, |_| {}).await.unwrap(),
        Ended::All
    );
    let arguments = std::fs::read_to_string(bed.runs.cache.join("runs/arguments")).unwrap();
    for path in [repos, other, real.join(".git/objects"), bed.out.clone()] {
        let path = if path == bed.out {
            path
        } else {
            path.canonicalize().unwrap()
        };
        let wanted = format!("--hide-from-tests {}", path.display());
        let is_hidden = arguments
            .split(" --")
            .any(|word| format!("--{word}").trim() == wanted);
        assert!(is_hidden, "{wanted}: {arguments}");
    }
}
