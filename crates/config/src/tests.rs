mod values;

use std::path::PathBuf;

use super::*;
use starling_core::{Approval, AskIntent, Dollars, Driver, Tokens};

/// A temporary directory with a user file and a project file.
struct TestFiles {
    dir: tempfile::TempDir,
    sources: ConfigSources,
}

/// Creates configuration files with these texts; no file is created for an empty text.
fn files(user: &str, project: &str) -> TestFiles {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        if !text.is_empty() {
            std::fs::write(&path, text).unwrap();
        }
        Some(path)
    };
    let sources = ConfigSources {
        user_file: write("user.toml", user),
        project_file: write("project.toml", project).map(ProjectFile::at),
        trust: Trust::Trusted,
        variables: Vec::new(),
        options: Vec::new(),
    };
    TestFiles { dir, sources }
}

impl TestFiles {
    fn variables(mut self, pairs: &[(&str, &str)]) -> Self {
        self.sources.variables = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        self
    }

    fn options(mut self, options: &[&str]) -> Self {
        self.sources.options = options.iter().map(|text| (*text).to_owned()).collect();
        self
    }

    fn load(&self) -> LoadedConfig {
        load(&self.sources).unwrap()
    }

    /// Returns a text without the name of the temporary directory.
    fn said(&self, text: impl ToString) -> String {
        let dir = format!("{}/", self.dir.path().display());
        text.to_string().replace(&dir, "")
    }

    fn warnings(&self) -> Vec<String> {
        let loaded = self.load();
        loaded.warnings.iter().map(|one| self.said(one)).collect()
    }

    fn error(&self) -> String {
        self.said(load(&self.sources).unwrap_err())
    }
}

#[test]
fn configuration_without_files_has_default_values() {
    let loaded = files("", "").load();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.config.limits.calls, 60);
    assert_eq!(loaded.origin("limits.calls"), ValueOrigin::Default);
    assert!(
        loaded
            .files
            .iter()
            .all(|(_, state)| *state == FileState::Absent)
    );
}

#[test]
fn later_layers_override_earlier_ones_and_record_the_origin() {
    let files = files(
        "[limits]\ncalls = 1\ntokens = 9\nseconds = 9\nagents = 9\n",
        "\n[limits]\ntokens = 2\nseconds = 2\nagents = 2\n",
    )
    .variables(&[
        ("STARLING_LIMITS_SECONDS", "3"),
        ("STARLING_LIMITS_AGENTS", "3"),
    ])
    .options(&["limits.agents=4"]);
    let loaded = files.load();
    let limits = &loaded.config.limits;
    assert_eq!(
        (limits.calls, limits.tokens, limits.seconds, limits.agents),
        (1, Tokens(2), 3, 4)
    );
    let origin = |key| files.said(loaded.origin(key));
    assert_eq!(origin("limits.calls"), "user.toml:2");
    assert_eq!(origin("limits.tokens"), "project.toml:3");
    assert_eq!(
        origin("limits.seconds"),
        "environment variable STARLING_LIMITS_SECONDS"
    );
    assert_eq!(origin("limits.agents"), "option -c");
    assert_eq!(origin("limits.depth"), "default");
}

#[test]
fn untrusted_project_file_is_ignored() {
    let mut files = files("", "[limits]\ncalls = 1\n");
    files.sources.trust = Trust::NotTrusted;
    assert_eq!(files.load().config, Config::default());
    assert_eq!(
        files.warnings(),
        [
            "project.toml: not read: the project is not trusted; look at the file, then run `starling trust`, or use --trust to trust it once"
        ]
    );
}

#[test]
fn project_file_changed_since_trust_is_ignored() {
    let mut files = files("", "[limits]\ncalls = 1\n");
    files.sources.trust = Trust::Changed;
    assert_eq!(files.load().config, Config::default());
    assert!(files.warnings()[0].starts_with("project.toml: not read: it changed since"));
    let state = files.load().files.pop().unwrap().1;
    assert_eq!(state, FileState::Changed);
}

#[test]
fn configuration_is_loaded_from_the_content_that_was_checked_for_trust() {
    let files = files("", "[limits]\ncalls = 1\n");
    let path = files.dir.path().join("project.toml");
    std::fs::write(path, "[limits]\ncalls = 2\n").unwrap();
    assert_eq!(files.load().config.limits.calls, 1);
}

#[test]
fn project_file_cannot_set_models_network_or_approval() {
    let files = files(
        "",
        "[models.evil]\nbase_url = \"http://evil\"\napi_key_env = \"HOME\"\n\
         [run]\napprove = \"auto\"\nallow_write = [\"*\"]\ndriver = \"single\"\n[network]\nattempts = 9\n[telemetry]\non = true\n\
         [sandbox]\nmissing = \"allow\"\n",
    );
    let loaded = files.load();
    assert!(loaded.config.models.is_empty());
    assert_eq!(loaded.config.run.approve, Approval::Ask);
    assert!(loaded.config.run.allow_write.is_empty());
    assert_eq!(loaded.config.network, NetworkSettings::default());
    assert_eq!(loaded.config.sandbox, SandboxSettings::default());
    assert_eq!(loaded.config.run.driver, Driver::Single);
    assert_eq!(
        files.warnings(),
        [
            "project.toml:2: models.evil.base_url is ignored: a project may not set it to this value; set it in your own file",
            "project.toml:3: models.evil.api_key_env is ignored: a project may not set it to this value; set it in your own file",
            "project.toml:5: run.approve is ignored: a project may not set it to this value; set it in your own file",
            "project.toml:6: run.allow_write is ignored: a project may not set it to this value; set it in your own file",
            "project.toml:9: network.attempts is ignored: a project may not set it to this value; set it in your own file",
            "project.toml:10: telemetry is ignored: a project may not set it to this value; set it in your own file",
            "project.toml:13: sandbox.missing is ignored: a project may not set it to this value; set it in your own file",
        ]
    );
}

#[test]
fn project_file_can_lower_limits_but_not_raise_them() {
    let files = files(
        "[limits]\ndollars = 1\ncalls = 100\n",
        "[limits]\ndollars = 1.5\ncalls = 80\ntokens = 400001\nseconds = 60\n",
    );
    let limits = files.load().config.limits;
    assert_eq!(limits.dollars, Some(Dollars(1.0)));
    assert_eq!(
        (limits.calls, limits.tokens, limits.seconds),
        (80, Tokens(400_000), 60)
    );
    assert_eq!(files.warnings().len(), 2);
    // Equal limits raise nothing.
    let files = self::files("[limits]\ncalls = 100\n", "[limits]\ncalls = 100\n");
    assert_eq!(files.warnings(), [""; 0]);
}

#[test]
fn unknown_keys_warn_and_suggest_a_similar_key() {
    let files = files(
        "top = 1\n[limits]\ncals = 1\n[models.big]\nbaseurl = \"http://x\"\n[zebra]\na = 1\nb = 2\n",
        "",
    )
    .variables(&[("STARLING_LIMITS_TOKEN", "1"), ("STARLING_LOG", "debug"), ("HOME", "/")]);
    let mut warnings = files.warnings();
    warnings.sort();
    assert_eq!(
        warnings,
        [
            "environment variable STARLING_LIMITS_TOKEN: unknown key limits.token, ignored; did you mean limits.tokens?",
            "user.toml:1: unknown key top, ignored",
            "user.toml:3: unknown key limits.cals, ignored; did you mean limits.calls?",
            "user.toml:5: unknown key models.big.baseurl, ignored; did you mean models.big.base_url?",
            "user.toml:6: unknown key zebra, ignored",
        ]
    );
}

#[test]
fn configuration_errors_name_file_line_and_key() {
    let check = |text: &str, expected: &str| {
        let said = files(text, "").error();
        assert!(said.starts_with(expected), "{said}");
    };
    check(
        "[limits]\ncalls = \"many\"\n",
        "user.toml:2: invalid type: string \"many\", expected u32",
    );
    check("\n[limits\n", "user.toml:2: ");
    check("[limits]\ncalls = -1\n", "user.toml:2: ");
    check(
        "[run]\n\ndriver = \"herd\"\n",
        "user.toml:3: unknown variant `herd`",
    );
    check(
        "[limits]\ncalls = 0\n",
        "user.toml:2: limits.calls: must be at least 1",
    );
    check(
        "[sandbox]\nreadable = [\"/data\", \"data\"]\n",
        "user.toml:2: sandbox.readable: \"data\" is not an absolute path",
    );
    check(
        "[limits]\nseconds = 99999999999\n",
        "user.toml:2: limits.seconds: must be at most 86400",
    );
    check(
        "[limits]\ndollars = -1.0\n",
        "user.toml:2: limits.dollars: must be more than 0",
    );
    check(
        "[models.a]\nkind = \"replay\"\n",
        "default: models.a.path: is missing",
    );
    check(
        "[models.a]\nbase_url = \"host/v1\"\n",
        "user.toml:2: models.a.base_url: must begin",
    );
    check(
        "[models.a]\nbase_url = \"http://me:pw@host/v1\"\n",
        "user.toml:2: models.a.base_url: contains a user",
    );
    check(
        "[models.a]\nprice_prompt = 1.0\n",
        "user.toml:2: models.a.price_prompt: a price needs both",
    );
    check(
        "[models.\"a.b\"]\nmodel = \"x\"\n",
        "user.toml:1: a model's name must not contain a dot",
    );
    let option = |text: &str| files("", "").options(&[text]).error();
    assert!(option("limits.calls").starts_with("-c limits.calls: write it as key=value"));
    assert_eq!(
        option("limits.cals=1"),
        "option -c: no such key: limits.cals; did you mean limits.calls?"
    );
    assert!(option("limits.calls=x").starts_with("option -c: limits.calls: invalid type"));
}

#[test]
fn api_key_given_as_variable_name_is_rejected_without_being_shown() {
    for key in [
        "sk-proj-abc123",
        "sk_live_abcdef0123",
        "0123456789abcdef0123456789abcdef",
        "AIzaSyA1234567890abcdefghijklmnopq",
        "",
    ] {
        let said = files(&format!("[models.a]\napi_key_env = \"{key}\"\n"), "").error();
        assert!(
            said.starts_with(
                "user.toml:2: models.a.api_key_env: is not the name of an environment variable"
            ),
            "{said}"
        );
        assert!(key.is_empty() || !said.contains(key), "{said}");
    }
    for name in ["OPENAI_API_KEY", "MYKEY", "KEY2", "_x"] {
        files(&format!("[models.a]\napi_key_env = \"{name}\"\n"), "").load();
    }
}

#[test]
fn api_key_in_a_file_is_refused_without_being_shown() {
    let key = "sk-proj-abc123";
    for (name, place) in [
        ("[models.a]\nmodel = \"m\"\napi_key", "3: models.a.api_key"),
        ("[models.a]\napiKey", "2: models.a.apiKey"),
        ("[models.a]\ntoken", "2: models.a.token"),
        ("api-key", "1: api-key"),
        ("[openai]\nopenai_api_key", "1: openai.openai_api_key"),
    ] {
        let text = format!("{name} = \"{key}\"\n");
        for files in [files(&text, ""), files("", &text)] {
            let said = files.error();
            assert!(
                said.contains(&format!(".toml:{place}: a key does not belong")),
                "{said}"
            );
            assert!(
                said.contains("api_key_env") && !said.contains(key),
                "{said}"
            );
        }
    }
    for harmless in [
        "[models.a]\nkey_env = \"OPENAI_API_KEY\"\n",
        "[models.a]\nmax_token = 3\n",
        "[view]\nleader_key = \"space\"\n",
    ] {
        assert_eq!(files(harmless, "").warnings().len(), 1, "{harmless}");
    }
}

#[test]
fn options_and_variables_accept_unquoted_values() {
    let files = files("", "")
        .variables(&[
            ("STARLING_RUN_ASK_INTENT", "always"),
            ("STARLING_ROLES_AGENT", "big, small"),
            ("STARLING_MODELS_MY_BOX_BASE_URL", "http://127.0.0.1:1/v1"),
            ("STARLING_LIMITS_DOLLARS", "2"),
        ])
        .options(&[
            "roles.scout=[\"small\"]",
            "models.my_box.model = 7",
            "run.driver=single",
            "tests.command=pytest -q -k \"a = b\"",
        ]);
    let config = files.load().config;
    assert_eq!(config.run.ask_intent, AskIntent::Always);
    assert_eq!(config.roles.agent, ["big", "small"]);
    assert_eq!(config.roles.scout, ["small"]);
    assert_eq!(config.run.driver, Driver::Single);
    assert_eq!(config.limits.dollars, Some(Dollars(2.0)));
    assert_eq!(
        config.tests.command.as_deref(),
        Some("pytest -q -k \"a = b\"")
    );
    let model = &config.models["my_box"];
    assert_eq!(model.base_url.as_deref(), Some("http://127.0.0.1:1/v1"));
    assert_eq!(model.model.as_deref(), Some("7"));
}

#[test]
fn unreadable_user_file_is_an_error() {
    let mut files = files("", "");
    files.sources.user_file = Some(files.dir.path().to_owned());
    assert!(files.error().contains("cannot be read"));
}

#[test]
fn every_key_has_documentation_a_type_and_a_correct_default() {
    for info in keys() {
        assert!(!info.doc.is_empty(), "{}", info.key);
        assert!(!info.kind.is_empty(), "{}", info.key);
    }
    let default = |key: &str| key_info(key).unwrap().default.clone();
    assert_eq!(default("limits.calls").as_deref(), Some("60"));
    assert_eq!(default("limits.dollars"), None);
    assert_eq!(default("run.approve").as_deref(), Some("\"ask\""));
    assert_eq!(default("models.any.kind").as_deref(), Some("\"openai\""));
    let kind = |key: &str| key_info(key).unwrap().kind.as_str();
    assert_eq!(kind("run.driver"), "swarm | single");
    assert_eq!(kind("models.any.tool_calling"), "native | text");
    assert_eq!(
        kind("models.any.output_limit"),
        "max_tokens | max_completion_tokens"
    );
    assert_eq!(kind("roles.agent"), "list of texts");
    assert_eq!(kind("limits.dollars"), "number");
    assert_eq!(kind("models.any.base_url"), "text");
    assert_eq!(keys().len(), 53);
}

#[test]
fn json_schema_file_is_up_to_date() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.schema.json");
    let mut fresh = serde_json::to_string_pretty(&schema()).unwrap();
    fresh.push('\n');
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &fresh).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == fresh, "run the tests once with UPDATE_DOCS=1");
}

/// Returns the table of all keys for the manual.
fn table() -> String {
    let mut table = "\n| key | type | default | |\n|---|---|---|---|\n".to_owned();
    for info in keys() {
        let kind = info.kind.replace(" | ", ", ");
        let default = match &info.default {
            Some(default) => format!("`{default}`"),
            None => "unset".to_owned(),
        };
        table += &format!("| `{}` | {kind} | {default} | {} |\n", info.key, info.doc);
    }
    table + "\n"
}

#[test]
fn configuration_manual_lists_all_keys() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let manual = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = manual
        .split_once("crates/config/src/tests.rs -->\n")
        .unwrap();
    let (kept, after) = rest.split_once("<!-- end of keys -->").unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let fresh = format!(
            "{before}crates/config/src/tests.rs -->\n{}<!-- end of keys -->{after}",
            table()
        );
        std::fs::write(&path, fresh).unwrap();
    } else {
        assert!(kept == table(), "run the tests once with UPDATE_DOCS=1");
    }
}

#[test]
fn configuration_manual_example_loads_without_warnings() {
    let manual = include_str!("../../../docs/configuration.md");
    let example = manual.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let loaded = files(example, "").load();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert_eq!(loaded.config.models.len(), 3);
    assert_eq!(loaded.config.roles.agent, ["big", "house"]);
}
