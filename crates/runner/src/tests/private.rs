//! Tests cannot see recorded model requests and replies.

use std::fs;
use std::process::Command;

use super::*;
use starling_sandbox::{Confinement, Kind, Policy};
use starling_workspace::private_directory;

/// Returns the shadows (sandboxed copies of the project) for every sandbox that this system
/// supports.
async fn sandboxes(cache: &Path) -> Vec<Shadows> {
    let best = Shadows::open(cache, Policy::default()).await.unwrap();
    let mut all = vec![best.clone()];
    if best.kind() == Kind::Overlay {
        all.push(best.clone().copies("asked for"));
    }
    let has_bwrap = Command::new("bwrap").arg("--version").output().is_ok();
    if has_bwrap && best.confinement() != Some(Confinement::Bubblewrap) {
        all.push(best.confined_by(Confinement::Bubblewrap));
    }
    all
}

#[tokio::test]
async fn trajectories_and_the_index_are_hidden_from_tests() {
    // The directory must not be in `/tmp` or in a home, which are hidden anyway.
    let program = std::env::current_exe().unwrap();
    let outside = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    fs::write(outside.path().join("letter.txt"), "dear\n").unwrap();
    let cache = outside.path().join("cache");
    for folder in ["runs", "index"] {
        private_directory(&cache.join(folder)).unwrap();
        fs::write(cache.join(folder).join("1.jsonl"), "exchange\n").unwrap();
    }
    let project = Project::new(&[("app.py", "x = 1\n")]);
    let line = format!(
        "cat '{0}/letter.txt'; cat '{0}/cache/runs/1.jsonl' '{0}/cache/index/1.jsonl' 2>/dev/null; \
         ls '{0}/cache/runs' '{0}/cache/index' 2>/dev/null; exit 0",
        outside.path().display()
    );
    for shadows in sandboxes(&cache).await {
        let what = format!("{:?} by {:?}", shadows.kind(), shadows.confinement());
        let settings = TestSettings {
            command: Some(line.clone()),
            ..TestSettings::default()
        };
        let snapshot = project.workspace.snapshot(Overlay::new());
        let tests = ProjectTests::detect(&snapshot, shadows, settings).await;
        let report = tests.run(request(&[], &[])).await;
        assert_eq!(report.output, "dear\n", "{what}");
    }
}

/// In a run over many benchmark instances, the project is inside the directory that contains the
/// records of the run.
#[tokio::test]
async fn run_records_in_and_around_the_project_are_hidden_from_its_tests() {
    let program = std::env::current_exe().unwrap();
    let outside = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let base = outside.path().canonicalize().unwrap();
    let root = base.join("out/work/1/checkout");
    let cache = root.join(".cache/starling");
    let hidden = [
        base.join("out/instances/1/trajectory.jsonl"),
        base.join("answers.jsonl"),
        root.join("results/1.jsonl"),
        cache.join("runs/1.jsonl"),
    ];
    let shown = [base.join("letter.txt"), root.join("app.py")];
    for path in hidden.iter().chain(&shown) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        fs::write(path, format!("# {name}\n")).unwrap();
    }
    let names = hidden.iter().map(|path| format!("'{}' ", path.display()));
    let line = format!(
        "cat ../../../../letter.txt '{}/letter.txt' app.py 2>/dev/null; \
         cat {} results/1.jsonl .cache/starling/runs/1.jsonl 2>/dev/null; exit 0",
        base.display(),
        names.collect::<String>()
    );
    let workspace = Workspace::open(root.clone()).unwrap();
    for shadows in sandboxes(&cache).await {
        let what = format!("{:?} by {:?}", shadows.kind(), shadows.confinement());
        let places = [
            base.join("out"),
            base.join("answers.jsonl"),
            root.join("results"),
        ];
        let settings = TestSettings {
            command: Some(line.clone()),
            ..TestSettings::default()
        };
        let snapshot = workspace.snapshot(Overlay::new());
        let tests = ProjectTests::detect(&snapshot, shadows.hiding(places), settings).await;
        let report = tests.run(request(&[], &[])).await;
        assert_eq!(
            report.outcome,
            TestOutcome::Passed,
            "{what}: {}",
            report.output
        );
        assert!(
            report.output.contains("# letter.txt\n# app.py\n"),
            "{what}: {}",
            report.output
        );
        assert!(
            !report.output.contains("jsonl"),
            "{what}: {}",
            report.output
        );
    }
}

#[tokio::test]
async fn secret_values_are_redacted_in_the_test_report() {
    let project = Project::new(&[(".env", "API_TOKEN=q9w8e7r6t5\nMODE=production\n")]);
    let tests = project.tests(Some("cat .env; exit 1")).await;
    let report = tests.run(request(&[], &[])).await;
    assert_eq!(report.output, "API_TOKEN=[secret]\nMODE=production\n");
}

/// A test could read these secrets from disk, and print them line by line or as a whole.
#[tokio::test]
async fn credentials_and_private_keys_are_redacted_in_the_test_report() {
    let (one, two) = ("MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIB");
    let key = format!("-----BEGIN PRIVATE KEY-----\n{one}\n{two}\n-----END PRIVATE KEY-----\n");
    let files = [
        (".netrc", "machine x login me password n3trc-pass\n"),
        (".git-credentials", "https://me:g1t-token@github.com\n"),
        ("deep/er/still/.env", "TOKEN=\"d33p-one\nd33p-two\"\n"),
        (
            "config/credentials.json",
            "{\"a\": {\"token\": \"js0n-token\"}}\n",
        ),
        ("secrets.yml", "key: |\n  y4ml-one\n  y4ml-two\n"),
        ("id_rsa", &key),
    ];
    let project = Project::new(&files);
    let names = files.map(|(name, _)| name).join(" ");
    let line = format!("cat {names}; tr -d '\\n' <id_rsa; exit 1");
    let tests = project.tests(Some(&line)).await;
    let report = tests.run(request(&[], &[])).await;
    for value in [
        "n3trc-pass",
        "g1t-token",
        "d33p-one",
        "d33p-two",
        "js0n-token",
        "y4ml-one",
        "y4ml-two",
        one,
        two,
    ] {
        assert!(!report.output.contains(value), "{value}: {}", report.output);
    }
    assert!(
        report
            .output
            .contains("machine x login me password [secret")
    );
}

#[tokio::test]
async fn private_key_in_a_file_of_any_name_is_redacted_in_the_test_report() {
    let body = [
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7Vq3R9x1tYz0a",
        "p2LkQe8sD4nUuWf6GgJhB5Xy1cRmT7oKvZrAI3wNdEbSlHjPqFtCyMgOX9aVsQ0k",
        "qUeBzW5iD2LrNfYh8TgXcJ4mPvSoK6aHwR1bEyCtGpMuF7xZsQnVdIk3jAl9OeT0",
    ];
    let armour = |word: &str| format!("-----{word} PRIVATE KEY-----");
    let lines = body.join("\n");
    let key = format!("{}\n{lines}\n{}\n", armour("BEGIN"), armour("END"));
    let json = serde_json::to_string(&[&key]).unwrap();
    let test = "import base64, json\nimport pytest\n\nKEY = open('certs.txt').read()\n\n\n\
         def test_all():\n    print(KEY)\n    assert json.load(open('fixture.json')) == [1]\n\n\n\
         def test_line():\n    assert KEY.splitlines()[2] == 'x', KEY.splitlines()[3][7:50]\n\n\n\
         def test_base64():\n    assert base64.b64encode(KEY.encode()) == b''\n\n\n\
         @pytest.mark.parametrize('key', [KEY, 'x' + KEY.replace('M', 'N')])\n\
         def test_key(key):\n    assert 'x' in key\n";
    let files = [
        ("certs.txt", key.as_str()),
        ("fixture.json", json.as_str()),
        ("test_app.py", test),
    ];
    let project = Project::new(&files);
    let report = project.tests(None).await.run(request(&[], &[])).await;
    let told = serde_json::to_string(&report).unwrap();
    let encoded = "SUV2UUlCQURBTkJn";
    let pieces = body
        .iter()
        .flat_map(|line| [&line[..24], &line[20..44], &line[40..64]]);
    for piece in pieces.chain([encoded]) {
        assert!(!told.contains(piece), "{piece}: {told}");
    }
    assert!(told.contains("[private key]"), "{told}");
    assert_eq!(report.cases.len(), 5, "{told}");
}

#[tokio::test]
async fn secrets_are_redacted_in_every_field_of_the_test_report() {
    let files = [
        (".env", "API_TOKEN=q9w8e7r6t5\n"),
        ("app.py", "x = 1\n"),
        (
            "test_app.py",
            "TOKEN = open('.env').read().split('=')[1].strip()\n\n\ndef test_a():\n    \
             print(TOKEN)\n    assert TOKEN == 'other', {'t': TOKEN}\n",
        ),
    ];
    let project = Project::new(&files);
    let report = project.tests(None).await.run(request(&[], &[])).await;
    let told = serde_json::to_string(&report).unwrap();
    assert!(told.contains("[secret]"), "{told}");
    assert!(!told.contains("q9w8e7r6t5"), "{told}");
}

/// The ids of parametrized tests contain the parameter values.
#[tokio::test]
async fn test_ids_that_differ_only_by_a_secret_stay_distinct_after_redaction() {
    let files = [
        (".env", "A_TOKEN=sekret-alpha-11\nB_TOKEN=sekret-bravo-22\n"),
        (
            "test_app.py",
            "import pytest\n\nVALUES = [line.split('=')[1] for line in open('.env').read().split()]\n\n\n\
             @pytest.mark.parametrize('value', VALUES)\ndef test_value(value):\n    \
             assert 'alpha' in value\n",
        ),
    ];
    let project = Project::new(&files);
    let report = project.tests(None).await.run(request(&[], &[])).await;
    let cases = report
        .cases
        .iter()
        .map(|case| (case.id.as_str(), case.status));
    let wanted = [
        ("test_app.py::test_value[[secret]]", TestStatus::Passed),
        ("test_app.py::test_value[[secret 2]]", TestStatus::Failed),
    ];
    assert_eq!(cases.collect::<Vec<_>>(), wanted);
}

#[tokio::test]
async fn secrets_are_collected_before_the_first_test_runs() {
    let project = Project::new(&[(".env", "TOKEN=hunter2hunter2\n"), ("a.py", "X = 1\n")]);
    let tests = project.tests(Some("true")).await;
    let looked_for = async {
        while !tests.secrets.were_looked_for() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    // No test has run so far, but the secrets are already read.
    tokio::time::timeout(LONG, looked_for).await.unwrap();
}
