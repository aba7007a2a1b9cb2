//! The configuration, the trust in the one of a project, and the doctor.

use serde_json::Value;

use super::project::{CommandResult, NEW, OLD, TestProject};

#[test]
fn invalid_configuration_is_a_usage_error_with_file_and_line() {
    let bed = TestProject::new();
    let with = |option: &str| bed.say(&["run", "-c", option, "x"]);
    with("limits.cals=3").is_wrong_use("no such key: limits.cals; did you mean limits.calls?");
    with("limits.calls").is_wrong_use("write it as key=value");
    with("limits.calls=many").is_wrong_use("option -c: limits.calls: invalid type");
    with("limits.calls=0").is_wrong_use("option -c: limits.calls: must be at least 1");
    with("run.approve=nobody").is_wrong_use("unknown variant `nobody`");
    let mut command = bed.starling();
    command
        .env("STARLING_LIMITS_CALLS", "many")
        .args(["run", "x"]);
    CommandResult::of(&command.output().unwrap())
        .is_wrong_use("environment variable STARLING_LIMITS_CALLS: limits.calls: invalid type");
    let file = bed.write("config/starling/config.toml", "[limits]\n\ncalls = \"x\"\n");
    let place = format!("{}:3: invalid type", file.display());
    bed.say(&["run", "x"]).is_wrong_use(&place);
    bed.say(&["config", "explain"]).is_wrong_use(&place);
    // The doctor reports a broken configuration instead of failing.
    let doctor = bed.say(&["doctor", "--json"]);
    assert_eq!(doctor.code, Some(1));
    let findings: Value = serde_json::from_str(&doctor.out).unwrap();
    assert_eq!(findings[0]["health"], "fail");
    let detail = findings[0]["detail"].as_str().unwrap();
    assert!(detail.contains(&place), "{detail}");
}

#[test]
fn doctor_advises_on_each_problem_and_fails_without_a_usable_model() {
    let bed = TestProject::new();
    let tape = bed.tape(&[NEW]);
    let doctor = bed.say(&["doctor", "--json", "--model", &tape]);
    let findings: Vec<Value> = serde_json::from_str(&doctor.out).unwrap();
    let health = |what: &str| {
        let found = findings.iter().find(|one| one["what"] == what);
        found.unwrap_or_else(|| panic!("no {what} in {findings:#?}"))["health"].clone()
    };
    assert_eq!(health("cache"), "ok");
    assert_eq!(health("tests"), "ok", "{findings:#?}");
    assert_eq!(doctor.code, Some(0), "{findings:#?}");
    for finding in &findings {
        let advised = finding["advice"] != "";
        assert_eq!(advised, finding["health"] != "ok", "{finding}");
    }
    let missing = bed.say(&["doctor", "--model", "replay:/no/such.jsonl"]);
    assert_eq!(missing.code, Some(1));
    assert!(
        missing.out.contains("/no/such.jsonl is not a file"),
        "{missing:?}"
    );
    let unknown = bed.say(&["doctor", "--model", "huge"]);
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.out.contains("no model is called \"huge\""),
        "{unknown:?}"
    );
}

#[test]
fn config_explain_shows_value_source_and_default() {
    let bed = TestProject::new();
    let user = bed.write("config/starling/config.toml", "[limits]\ncalls = 7\n");
    let explain = |args: &[&str]| bed.say(&[&["config", "explain"], args].concat());
    let one = explain(&["limits.calls"]);
    assert_eq!(one.code, Some(0));
    let place = format!("limits.calls = 7\n  from {}:2; default 60", user.display());
    assert!(one.out.starts_with(&place), "{one:?}");
    let over = explain(&["limits.calls", "--json", "-c", "limits.calls=8"]);
    let over: Value = serde_json::from_str(&over.out).unwrap();
    assert_eq!(over[0]["value"], "8");
    assert_eq!(over[0]["origin"], "option -c");
    assert_eq!(over[0]["type"], "integer");
    assert_eq!(over.as_array().unwrap().len(), 1);
    let all = explain(&["--json"]);
    let all: Vec<Value> = serde_json::from_str(&all.out).unwrap();
    assert!(all.len() > 30, "{}", all.len());
    explain(&["limits.cals"]).is_wrong_use("did you mean limits.calls?");
    explain(&["nonsense"]).is_wrong_use("unknown setting nonsense; `starling config explain`");
}

#[test]
fn project_configuration_is_ignored_until_trusted_and_never_sets_models() {
    let bed = TestProject::new();
    bed.write(
        "project/.starling/config.toml",
        "[limits]\ncalls = 5\n[models.evil]\nbase_url = \"http://evil\"\n",
    );
    let explain = |args: &[&str]| bed.say(&[&["config", "explain", "limits.calls"], args].concat());
    let stranger = explain(&[]);
    assert!(
        stranger.out.starts_with("limits.calls = 60\n"),
        "{stranger:?}"
    );
    assert!(stranger.err.contains("not trusted"), "{stranger:?}");
    let friend = explain(&["--trust"]);
    assert!(friend.out.starts_with("limits.calls = 5\n"), "{friend:?}");
    let refused = "models.evil.base_url is ignored: a project may not set it";
    assert!(friend.err.contains(refused), "{friend:?}");
    let models = bed.say(&["config", "explain", "--trust", "models"]);
    assert!(!models.out.contains("evil"), "{models:?}");
}

#[test]
fn trust_is_stored_per_project_until_removed() {
    let bed = TestProject::new();
    bed.write("project/.starling/config.toml", "[limits]\ncalls = 5\n");
    let calls = || bed.say(&["config", "explain", "limits.calls"]);
    assert!(calls().out.starts_with("limits.calls = 60\n"));
    let trusted = bed.say(&["trust"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let (root, friend) = (bed.root().canonicalize().unwrap(), calls());
    assert!(friend.out.starts_with("limits.calls = 5\n"), "{friend:?}");
    assert_eq!(friend.err, "");
    let list = bed.say(&["trust", "--list"]);
    assert_eq!(list.out, format!("trusted  {}\n", root.display()));
    // Trust applies to the content, so a changed file is not trusted.
    bed.write("project/.starling/config.toml", "[limits]\ncalls = 4\n");
    let changed = calls();
    assert!(
        changed.out.starts_with("limits.calls = 60\n"),
        "{changed:?}"
    );
    assert!(
        changed
            .err
            .contains("changed since the project was trusted"),
        "{changed:?}"
    );
    assert_eq!(bed.say(&["trust"]).code, Some(0));
    assert!(calls().out.starts_with("limits.calls = 4\n"));
    let removed = bed.say(&["trust", "--remove", "--repo", "."]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(calls().out.starts_with("limits.calls = 60\n"));
    assert_eq!(bed.say(&["trust", "--list"]).out, "");
    // A configuration that a run would refuse is not trusted.
    for wrong in ["[limits]\ncalls = -1\n", "[limits]\ndollars = nan\n"] {
        bed.write("project/.starling/config.toml", wrong);
        let refused = bed.say(&["trust"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains("config.toml:2: "), "{refused:?}");
        assert_eq!(bed.say(&["trust", "--list"]).out, "");
    }
    bed.say(&["trust", "--list", "--remove"])
        .is_wrong_use("--remove");
    bed.say(&["trust", "--repo", "no/such"])
        .is_wrong_use("no/such");
    // If the list of trusted projects is unreadable, no project is trusted, and a warning is
    // printed.
    bed.write("state/starling/trusted.json", "[");
    let broken = calls();
    assert!(broken.out.starts_with("limits.calls = 60\n"), "{broken:?}");
    assert!(
        broken.err.contains("trusted.json: not a list"),
        "{broken:?}"
    );
}

#[test]
fn untrusted_project_gives_a_warning_but_no_question_without_a_terminal() {
    let bed = TestProject::new();
    bed.write(
        "project/.starling/config.toml",
        "[tests]\ncommand = \"exit 7\"\n",
    );
    let tape = bed.tape(&[NEW]);
    let args = ["run", "--approve", "auto", "--model", &tape, "tidy f up"];
    let said = bed.say(&args);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("starling trust"), "{said:?}");
    assert!(!said.err.contains("Trust this project?"), "{said:?}");
    assert!(!bed.dir.path().join("state").exists());
    // In a trusted project, the configured command runs the tests.
    assert_eq!(bed.say(&["trust"]).code, Some(0));
    std::fs::write(bed.root().join("work.py"), OLD).unwrap();
    let said = bed.say(&args);
    assert!(said.out.contains("exit 7"), "{said:?}");
}
