//! The help, the version, and arguments that are wrong.

use super::project::{NEW, TestProject};

#[test]
fn help_and_version_exit_with_status_0() {
    let bed = TestProject::new();
    let help = bed.say(&["--help"]);
    assert_eq!(help.code, Some(0));
    for command in [
        "run",
        "review",
        "undo",
        "demo",
        "lsp",
        "index",
        "locate",
        "map",
        "references",
        "definition",
        "symbols",
        "models",
        "doctor",
        "config",
        "trust",
    ] {
        assert!(help.out.contains(&format!("\n  {command} ")), "{help:?}");
    }
    let version = bed.say(&["--version"]);
    assert_eq!(version.code, Some(0));
    let expected = format!("starling {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(version.out, expected);
}

#[test]
fn invalid_run_arguments_are_usage_errors() {
    let bed = TestProject::new();
    for (args, because) in [
        (&[] as &[&str], "Usage"),
        (&["fly"], "fly"),
        (&["run"], "the task is empty"),
        (&["run", "x", "--fast"], "--fast"),
        (&["run", "x", "y"], "'y'"),
        (&["run", "x", "--approve", "maybe"], "ask, proxy, auto"),
        (&["run", "x", "--driver", "herd"], "swarm, single"),
        (
            &["run", "x", "--budget-usd", "0"],
            "in US dollars greater than 0",
        ),
        (
            &["run", "x", "--budget-usd", "much"],
            "in US dollars greater than 0",
        ),
        (&["run", "x", "--budget-tokens", "-5"], "-5"),
        (&["run", "x", "--budget-seconds", "1.5"], "1.5"),
        (&["demo", "--replay", "--model", "local"], "--model"),
        (&["config"], "explain"),
        (&["models", "burn"], "burn"),
    ] {
        bed.say(args).is_wrong_use(because);
    }
}

#[test]
fn repo_option_that_is_not_a_directory_is_a_usage_error() {
    let bed = TestProject::new();
    let run = |repo: &str| bed.say(&["run", "--repo", repo, "x"]);
    run("no/such/folder").is_wrong_use("no/such/folder: No such file");
    run("work.py").is_wrong_use("work.py: not a directory");
}

#[test]
fn empty_task_is_a_usage_error() {
    let bed = TestProject::new();
    bed.say(&["run", " \n"]).is_wrong_use("the task is empty");
    // Standard input is empty.
    let tape = bed.tape(&[NEW]);
    bed.say(&["run", "-", "--approve", "auto", "--model", &tape])
        .is_wrong_use("the task is empty");
}

#[test]
fn models_command_lists_known_weights_and_rejects_unknown_ones() {
    let bed = TestProject::new();
    let list = bed.say(&["models", "list"]);
    assert_eq!(list.code, Some(0), "{list:?}");
    assert!(
        list.out.contains("not downloaded"),
        "the cache is empty: {list:?}"
    );
    let alias = bed.say(&["model", "list"]);
    assert_eq!(alias.out, list.out);
    let absent = bed.say(&["models", "path"]);
    assert_eq!((absent.code, absent.out.as_str()), (Some(1), ""));
    for command in ["path", "pull"] {
        let unknown = bed.say(&["models", command, "huge"]);
        assert_eq!(unknown.code, Some(1), "{unknown:?}");
        assert!(unknown.err.contains("huge"), "{unknown:?}");
    }
}

#[test]
fn run_help_lists_the_exit_statuses() {
    let help = TestProject::new().say(&["run", "--help"]);
    assert_eq!(help.code, Some(0), "{help:?}");
    for line in ["Exit status:", "  1  not done", "  3  changes were made"] {
        assert!(help.out.contains(line), "{help:?}");
    }
}

#[test]
fn unusable_model_is_a_usage_error() {
    let bed = TestProject::new();
    let with = |args: &[&str]| {
        let run = ["run", "--json", "--approve", "auto", "x", "--model"];
        bed.say(&[&run, args].concat())
    };
    with(&["huge"]).is_wrong_use("no model is called \"huge\"");
    with(&["replay:/no/such.jsonl"]).is_wrong_use("/no/such.jsonl");
    let empty = bed.write("empty.jsonl", "");
    with(&[&format!("replay:{}", empty.display())]).is_wrong_use("holds no exchange");
    with(&["openai:gpt-4o"]).is_wrong_use("OPENAI_API_KEY");
    let own = ["-c", "models.own.base_url=http://127.0.0.1:1/v1"];
    let budget = ["own", own[0], own[1], "--budget-usd", "1"];
    with(&budget).is_wrong_use("the price of own is unknown");
    bed.say(&["demo", "--model", "huge"])
        .is_wrong_use("no model is called \"huge\"");
    assert!(!bed.dir.path().join("cache/runs").exists());
}

#[test]
#[cfg(not(feature = "bench"))]
fn build_without_bench_feature_reports_it() {
    let bed = TestProject::new();
    let help = bed.say(&["--help"]);
    assert!(help.out.contains("Not in this build: "), "{help:?}");
    assert!(
        help.out.contains("starling swebench (feature bench)"),
        "{help:?}"
    );
    for args in [&["swebench"][..], &["swebench", "run", "--dataset", "x"]] {
        bed.say(args)
            .is_wrong_use("build it with `cargo build --release --features bench`");
    }
}

#[test]
#[cfg(feature = "bench")]
fn build_with_bench_feature_lists_swebench() {
    let help = TestProject::new().say(&["--help"]);
    assert!(help.out.contains("\n  swebench "), "{help:?}");
    assert!(!help.out.contains("feature bench"), "{help:?}");
}
