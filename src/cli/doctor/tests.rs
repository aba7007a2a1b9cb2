use super::*;
use starling_config::{Config, ConfigSources, ModelConfig, ModelKind, ProjectFile, Trust, load};
use starling_core::Dollars;
use starling_lang::{OwnPrograms, ProgramSearch};
use starling_models::weights::WeightsError;
use starling_sandbox::Kind;

fn loaded(file: &str) -> (tempfile::TempDir, Result<LoadedConfig, ConfigError>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, file).unwrap();
    let loaded = load(&ConfigSources {
        user_file: Some(path),
        project_file: Some(ProjectFile::at(dir.path().join("absent.toml"))),
        trust: Trust::Trusted,
        variables: Vec::new(),
        options: Vec::new(),
    });
    (dir, loaded)
}

fn lines(findings: &[Finding]) -> Vec<(Health, &str, &str)> {
    findings
        .iter()
        .map(|one| (one.health, one.what.as_str(), one.detail.as_str()))
        .collect()
}

#[test]
fn doctor_reports_configuration_files_warnings_and_errors() {
    let (_dir, good) = loaded("[limits]\ncals = 1\n");
    let findings = configuration::examine(&good);
    let health: Vec<_> = findings.iter().map(|one| one.health).collect();
    assert_eq!(health, [Health::Ok, Health::Ok, Health::Warn]);
    assert!(findings[0].detail.ends_with("config.toml: read"));
    assert!(findings[1].detail.contains("absent.toml: does not exist"));
    assert!(findings[2].detail.contains("did you mean limits.calls?"));

    let (_dir, bad) = loaded("[limits]\ncalls = \"x\"\n");
    let findings = configuration::examine(&bad);
    assert_eq!(verdict(&findings), Health::Fail);
    assert!(findings[0].detail.contains("config.toml:2: "));
}

fn config(models: &[(&str, ModelConfig)]) -> Config {
    let mut config = Config::default();
    for (name, model) in models {
        config.models.insert((*name).to_owned(), model.clone());
        config.roles.agent.push((*name).to_owned());
    }
    config
}

fn endpoint(url: &str) -> ModelConfig {
    ModelConfig {
        base_url: Some(url.to_owned()),
        price_prompt: Some(1.0),
        price_output: Some(1.0),
        ..ModelConfig::default()
    }
}

/// Starts an endpoint that responds to each connection with this status.
async fn server(status: &'static str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

#[tokio::test]
async fn doctor_probes_endpoints_and_their_api_keys() {
    let mut keyless = endpoint("http://127.0.0.1:1/v1");
    keyless.api_key_env = Some("NO_SUCH_KEY".to_owned());
    let config = config(&[
        ("good", endpoint(&server("200 OK").await)),
        ("shut", endpoint(&server("401 No").await)),
        ("plain", endpoint(&server("404 No").await)),
        ("gone", endpoint("http://127.0.0.1:1/v1")),
        ("keyless", keyless),
    ]);
    let findings = models::examine(&config, None, &|_| None).await;
    let found = lines(&findings);
    assert_eq!(
        found[0].2,
        "agent: good then shut then plain then gone then keyless; \
         scout: good then shut then plain then gone then keyless; editor: the agent; \
         proxy: good then shut then plain then gone then keyless"
    );
    let health: Vec<_> = found[1..]
        .iter()
        .map(|(health, what, _)| (*health, *what))
        .collect();
    assert_eq!(
        health,
        [
            (Health::Ok, "model good"),
            (Health::Fail, "model shut"),
            (Health::Ok, "model plain"),
            (Health::Fail, "model gone"),
            (Health::Fail, "model keyless"),
        ]
    );
    assert!(findings[5].advice.contains("NO_SUCH_KEY"));
    assert!(
        findings[1..]
            .iter()
            .all(|one| (one.health == Health::Ok) == one.advice.is_empty())
    );
}

#[tokio::test]
async fn doctor_names_api_keys_in_the_environment_without_their_values() {
    let variables = |name: &str| match name {
        "OPENAI_API_KEY" | "GROQ_API_KEY" => Some("sk-very-secret".to_owned()),
        _ => None,
    };
    let of_keys = async |config: &Config| {
        let findings = models::examine(config, None, &variables).await;
        assert!(!as_text(&findings).contains("sk-very"), "{findings:?}");
        let keys = findings.into_iter().filter(|one| one.what == "key");
        keys.map(|one| (one.health, one.detail)).collect::<Vec<_>>()
    };
    let open = of_keys(&Config::default()).await;
    assert_eq!(open.len(), 2);
    assert_eq!(open[0].0, Health::Warn);
    assert!(
        open[0]
            .1
            .contains("OPENAI_API_KEY is set, but no model is configured")
    );
    let mut keyed = endpoint("http://127.0.0.1:1/v1");
    keyed.api_key_env = Some("GROQ_API_KEY".to_owned());
    let used = of_keys(&config(&[("fast", keyed)])).await;
    let told: Vec<&str> = used.iter().map(|(_, detail)| detail.as_str()).collect();
    let expected = [
        "OPENAI_API_KEY is set, but no configured model uses it",
        "GROQ_API_KEY is set: for fast",
    ];
    assert_eq!(told, expected);
    assert!(used.iter().all(|(health, _)| *health == Health::Ok));
}

#[tokio::test]
async fn missing_model_price_is_a_failure_if_there_is_a_dollar_limit() {
    let mut unpriced = endpoint(&server("200 OK").await);
    unpriced.price_prompt = None;
    unpriced.price_output = None;
    let mut config = config(&[("own", unpriced)]);
    let health = async |config: &Config| {
        let findings = models::examine(config, None, &|_| None).await;
        assert!(findings[2].detail.contains("price is unknown"));
        findings[2].health
    };
    assert_eq!(health(&config).await, Health::Warn);
    config.limits.dollars = Some(Dollars(1.0));
    assert_eq!(health(&config).await, Health::Fail);
}

#[tokio::test]
async fn doctor_reports_missing_recordings_and_unknown_models() {
    let recording = ModelConfig {
        kind: ModelKind::Replay,
        path: Some("/no/such.jsonl".to_owned()),
        ..ModelConfig::default()
    };
    let findings = models::examine(&config(&[("tape", recording)]), None, &|_| None).await;
    assert_eq!(findings[1].detail, "/no/such.jsonl is not a file");
    let unknown = models::examine(&Config::default(), Some("huge"), &|_| None).await;
    assert_eq!(verdict(&unknown), Health::Fail);
    assert!(unknown[0].detail.contains("no model is called \"huge\""));
}

#[tokio::test]
async fn doctor_starts_language_servers_and_reports_missing_ones() {
    use std::os::unix::fs::PermissionsExt;

    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let program = root.join("bin/ty");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::write(&program, "#!/bin/sh\necho no server >&2\nexit 2\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::create_dir(root.join("project")).unwrap();
    let places = ProgramSearch {
        root: root.join("project"),
        own_programs: OwnPrograms::Refused,
        path: root.join("bin").into(),
        virtual_env: None,
    };
    let look = async |entries: &[&str]| {
        let config = starling_config::LanguageSettings {
            servers: entries.iter().map(|entry| (*entry).to_owned()).collect(),
            ..starling_config::LanguageSettings::default()
        };
        language::examine(&config, &places, &root).await
    };
    let findings = look(&["pylsp", "ty"]).await;
    assert_eq!(findings[0].health, Health::Warn);
    let said = &findings[0].detail;
    assert!(
        said.contains("it crashed (exit status: 2: no server)"),
        "{said}"
    );
    assert_eq!(findings.len(), 1);
    let findings = look(&["pylsp"]).await;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].health, Health::Warn);
    let said = &findings[0].detail;
    assert!(said.contains("(pylsp: not installed"), "{said}");
    assert!(findings[0].advice.contains("pip install ty"));
    assert!(look(&[]).await.is_empty());
}

#[test]
fn doctor_checks_that_the_cache_is_writable_and_reports_its_size() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("a/b");
    std::fs::create_dir_all(cache.join("models")).unwrap();
    std::fs::write(cache.join("models/weights"), vec![0; 2_500_000]).unwrap();
    let good = system::cache_finding(&cache);
    assert_eq!(good.health, Health::Ok);
    assert!(good.detail.ends_with(", 2.5 MB"), "{}", good.detail);
    std::fs::write(dir.path().join("file"), "").unwrap();
    assert_eq!(
        system::cache_finding(&dir.path().join("file")).health,
        Health::Fail
    );
}

#[test]
fn missing_weights_that_can_be_downloaded_are_only_a_warning() {
    let of = |error| models::of_weights("model local".to_owned(), Err(error));
    let missing = of(WeightsError::Missing {
        name: "coder".to_owned(),
        path: "/cache/coder.gguf".into(),
    });
    assert_eq!(missing.health, Health::Warn);
    assert_eq!(
        missing.advice,
        "`starling models pull coder` downloads them"
    );
    let unknown = of(WeightsError::Unknown {
        name: "coder".to_owned(),
        known: Vec::new(),
    });
    assert_eq!(unknown.health, Health::Fail);
}

#[cfg(feature = "local")]
#[test]
fn doctor_says_what_the_local_model_runs_on() {
    let found = models::of_weights("model local".to_owned(), Ok("/cache/coder.gguf".into()));
    assert_eq!(found.health, Health::Ok);
    let device = starling_local::device::name();
    assert_eq!(
        found.detail,
        format!("weights in /cache/coder.gguf; it runs on {device}")
    );
}

#[tokio::test]
async fn doctor_warns_of_a_needed_variable_that_tests_cannot_see() {
    let app = (
        "app.py",
        "import os\nNAME = os.environ[\"CARGO_PKG_NAME\"]\nOTHER = os.environ['SET_BY_NOBODY']\n",
    );
    let found = of_tests(&[app, ("test_a.py", "import unittest\n")]).await;
    let told: Vec<&Finding> = found
        .iter()
        .filter(|one| one.detail.contains("app.py"))
        .collect();
    let [told] = told.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(told.health, Health::Warn);
    assert_eq!(
        told.detail,
        "app.py uses the environment variable CARGO_PKG_NAME, which is set, but tests see it only if `sandbox.environment` names it"
    );
    assert_eq!(
        told.advice,
        "set sandbox.environment = [\"CARGO_PKG_NAME\"] to pass it to the tests"
    );
}

/// Returns the findings about the tests of a project with these files.
async fn of_tests(files: &[(&str, &str)]) -> Vec<Finding> {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    tests_in(dir.path(), Config::default()).await
}

async fn tests_in(root: &std::path::Path, config: Config) -> Vec<Finding> {
    let findings = system::examine(root, config).await;
    let tests = findings.into_iter().filter(|one| one.what == "tests");
    tests.collect()
}

#[tokio::test]
async fn doctor_collects_and_counts_the_tests() {
    let class = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n    \
                 def test_b(self): pass\n";
    let found = of_tests(&[("tests/test_a.py", class)]).await;
    assert_eq!(found[0].health, Health::Ok, "{found:?}");
    let detail = &found[0].detail;
    assert!(detail.starts_with("2 tests, collected in "), "{detail}");
    assert!(
        detail.contains("-m unittest discover -v -s tests"),
        "{detail}"
    );

    let broken = ("tests/test_b.py", "import no_such_module\n");
    let found = of_tests(&[("tests/test_a.py", class), broken]).await;
    assert_eq!(found[0].health, Health::Warn);
    let detail = &found[0].detail;
    assert!(detail.starts_with("2 tests, "), "{detail}");
    assert!(detail.ends_with("cannot be imported: 1"), "{detail}");

    let bare = ("test_a.py", "def test_a(): pass\ndef test_b(): pass\n");
    let found = of_tests(&[bare]).await;
    let detail = &found[0].detail;
    let has_pytest = detail.starts_with("2 tests, ") && detail.contains("-m pytest");
    let lacks_pytest = found[0].health == Health::Warn && detail.contains("-m pip install pytest");
    assert!(has_pytest || lacks_pytest, "{found:?}");
}

#[tokio::test]
async fn doctor_warns_of_a_project_without_tests() {
    let found = of_tests(&[("test_a.py", "def helper(): pass\n")]).await;
    assert_eq!(found[0].health, Health::Warn, "{found:?}");
    assert!(found[0].detail.contains("finds no tests"), "{found:?}");
    let found = of_tests(&[("a.py", "")]).await;
    assert!(found[0].detail.contains("no test files"), "{found:?}");
    let venv = (".venv/pyvenv.cfg", "home = /nowhere\n");
    let found = of_tests(&[("test_a.py", "import unittest\n"), venv]).await;
    assert!(
        found[1].health == Health::Warn
            && found[1].detail.contains(".venv/bin/python does not exist"),
        "{found:?}"
    );
}

#[tokio::test]
async fn doctor_says_why_a_configured_command_runs_no_test() {
    let dir = tempfile::tempdir().unwrap();
    let launcher = "uv() { echo 'Failed to fetch: https://pypi.org/simple/six/'; return 2; }; uv";
    for (command, why) in [
        ("no-such-tool -q", "not found"),
        (
            &*format!("{launcher} run pytest"),
            "`uv run` needs the network, which tests do not have: run `uv sync` first, then give \
             the test command without `uv run`, or none",
        ),
    ] {
        let mut config = Config::default();
        config.tests.command = Some(command.to_owned());
        let found = tests_in(dir.path(), config).await;
        assert_eq!(found[0].health, Health::Warn, "{found:?}");
        let detail = &found[0].detail;
        let beginning = format!("`{command}` runs no test: ");
        assert!(detail.starts_with(&beginning), "{detail}");
        assert!(detail.ends_with(why), "{detail}");
        assert!(found[0].advice.contains("in a shell"), "{found:?}");
    }
    let mut config = Config::default();
    config.tests.command = Some("echo fine".to_owned());
    let found = tests_in(dir.path(), config).await;
    assert_eq!(found[0].health, Health::Ok, "{found:?}");
}

#[tokio::test]
async fn doctor_report_has_one_line_per_finding() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("test_a.py"), "def test_a(): pass\n").unwrap();
    let (_files, loaded) = loaded("[tests]\ncommand = \"make test\"\n");
    let places = ProgramSearch::of_process(dir.path().to_owned(), OwnPrograms::Refused);
    let findings = examine(dir.path(), &loaded, Some("replay:/no/such"), &places).await;
    let text = as_text(&findings);
    for what in [
        "configuration",
        "models",
        "git",
        "python",
        "cache",
        "shadow",
        "tests",
        "language server",
    ] {
        assert!(
            findings.iter().any(|one| one.what == what),
            "{what} in\n{text}"
        );
    }
    assert!(text.contains("make test"), "{text}");
    assert!(text.lines().all(|line| {
        ["ok  ", "warn", "FAIL", "    "]
            .iter()
            .any(|start| line.starts_with(start))
    }));
    let json = serde_json::to_value(&findings).unwrap();
    assert_eq!(json[0]["health"], "ok");
}

#[test]
fn copies_for_checks_are_a_problem_only_where_they_can_be_avoided() {
    let found = system::shadow_finding(Kind::Copy, "no user namespaces", Some("allow them"));
    assert_eq!(found.health, Health::Warn);
    let text = as_text(&[found]);
    assert!(
        text.contains("for each check: no user namespaces"),
        "{text}"
    );
    assert!(text.contains("-> allow them"), "{text}");
    let found = system::shadow_finding(Kind::Copy, "there is none", None);
    assert_eq!((found.health, found.advice.as_str()), (Health::Ok, ""));
}
