//! Tests of values in all notations (TOML, environment variables, options), and of keys that a
//! project may not set.

use super::*;
use starling_core::Driver;

#[test]
fn line_numbers_are_correct_in_every_toml_notation() {
    let inline = files(
        "run = { driver = \"single\" }\r\nlimits = { calls = 3 }\r\n",
        "",
    );
    let origin = inline.said(inline.load().origin("limits.calls"));
    assert_eq!(origin, "user.toml:2");
    let dotted = files("# one\nlimits.calls = 3\n", "");
    let origin = dotted.said(dotted.load().origin("limits.calls"));
    assert_eq!(origin, "user.toml:2");
    let crlf = files("\r\n[limits]\r\ncalls = \"x\"\r\n", "").error();
    assert!(crlf.starts_with("user.toml:3: invalid type"), "{crlf}");
    let twice = files("[limits]\ncalls = 1\ncalls = 2\n", "").error();
    assert!(twice.starts_with("user.toml:3: duplicate"), "{twice}");
    let section = files("limits = 3\n", "").error();
    assert!(
        section.starts_with("user.toml:1: invalid type"),
        "{section}"
    );
}

#[test]
fn quoted_key_with_a_dot_is_not_a_dotted_key() {
    for text in ["\"limits.calls\" = \"many\"\n", "\"limits.calls\" = 3\n"] {
        let files = files(text, "");
        let said = match load(&files.sources) {
            Err(error) => files.said(error),
            Ok(loaded) => {
                assert_eq!(loaded.config.limits.calls, 60, "it was never in [limits]");
                files.warnings().concat()
            }
        };
        assert!(said.starts_with("user.toml:1: "), "{said}");
    }
}

#[test]
fn error_for_a_binary_file_names_the_file() {
    let files = files("x = 1\n", "");
    std::fs::write(files.dir.path().join("user.toml"), [0xff, 0xfe, b'a']).unwrap();
    let said = files.error();
    assert!(said.starts_with("user.toml: cannot be read: "), "{said}");
}

#[test]
fn comma_separated_values_are_read_as_lists() {
    let agents = |value: &str| {
        let option = format!("roles.agent={value}");
        let config = files("", "").options(&[&option]).load().config;
        config.roles.agent
    };
    assert_eq!(agents("big"), ["big"]);
    assert_eq!(agents("big, small"), ["big", "small"]);
    assert_eq!(agents("[\"a,b\"]"), ["a,b"]);
    assert_eq!(agents(""), [""; 0], "the list is emptied");
    assert_eq!(agents("big,"), ["big"]);
}

#[test]
fn last_option_wins_and_an_option_cannot_set_a_section() {
    let calls = |options: &[&str]| files("", "").options(options).load().config.limits.calls;
    assert_eq!(calls(&["limits.calls=1", " limits.calls = 2 "]), 2);
    let error = |option: &str| files("", "").options(&[option]).error();
    for option in ["limits=3", "models.a=x", "=3", ".=3", "limits.=3"] {
        let said = error(option);
        assert!(
            said.starts_with("option -c: no such key: "),
            "{option}: {said}"
        );
    }
    for option in [
        "limits.calls=1\nlimits.turns=2",
        "limits.calls=",
        "limits.calls=1.5",
    ] {
        let said = error(option);
        assert!(
            said.starts_with("option -c: limits.calls: "),
            "{option}: {said}"
        );
    }
}

#[test]
fn whole_number_out_of_range_is_told_as_such() {
    let error = |option: &str| files("", "").options(&[option]).error();
    for number in ["99999999999999999999", "9223372036854775808", "4294967296"] {
        assert_eq!(
            error(&format!("limits.calls={number}")),
            "option -c: limits.calls: the number is too large"
        );
    }
    for number in ["-1", "-99999999999999999999"] {
        assert_eq!(
            error(&format!("limits.calls={number}")),
            "option -c: limits.calls: the number is too small"
        );
    }
    let said = files("", "")
        .variables(&[("STARLING_LIMITS_SECONDS", "99999999999999999999")])
        .error();
    assert!(
        said.ends_with("limits.seconds: the number is too large"),
        "{said}"
    );
    // Digits for a key of another type are another error.
    assert!(!error("run.driver=5").contains("too large"));
    let file = files("[limits]\ncalls = 99999999999999999999\n", "").error();
    assert!(file.starts_with("user.toml:2: "), "{file}");
    println!("{file}");
}

#[test]
fn error_for_an_invalid_variable_names_the_variable() {
    let error = |name: &str, value: &str| files("", "").variables(&[(name, value)]).error();
    let said = error("STARLING_LIMITS_CALLS", "many");
    let expected = "environment variable STARLING_LIMITS_CALLS: limits.calls: invalid type";
    assert!(said.starts_with(expected), "{said}");
    let said = error("STARLING_LIMITS_CALLS", "0");
    let expected = "environment variable STARLING_LIMITS_CALLS: limits.calls: must be at least 1";
    assert_eq!(said, expected);
    let said = error("STARLING_RUN_DRIVER", "herd");
    assert!(said.contains("unknown variant `herd`"), "{said}");
}

#[test]
fn unrelated_environment_variables_are_ignored() {
    let files = files("", "").variables(&[
        ("STARLING_CACHE_DIR", "/c"),
        ("STARLING_", ""),
        ("STARLING", "x"),
        ("LIMITS_CALLS", "3"),
        ("XSTARLING_LIMITS_CALLS", "3"),
    ]);
    assert_eq!(files.load().config, Config::default());
    assert_eq!(files.warnings(), [""; 0]);
}

#[test]
fn zero_or_excessive_limits_are_rejected() {
    for key in [
        "limits.calls",
        "limits.tokens",
        "limits.seconds",
        "limits.agents",
        "limits.turns",
        "tests.seconds",
        "network.timeout_seconds",
        "network.idle_seconds",
        "network.attempts",
    ] {
        let said = files("", "").options(&[&format!("{key}=0")]).error();
        assert_eq!(said, format!("option -c: {key}: must be at least 1"));
    }
    for key in [
        "tests.seconds",
        "network.timeout_seconds",
        "network.idle_seconds",
    ] {
        files("", "").options(&[&format!("{key}=86400")]).load();
        let said = files("", "").options(&[&format!("{key}=86401")]).error();
        assert_eq!(
            said,
            format!("option -c: {key}: must be at most 86400 (one day)")
        );
    }
    for none in ["limits.messages=0", "limits.depth=0", "limits.repairs=0"] {
        files("", "").options(&[none]).load();
    }
    for dollars in ["0", "-1", "nan", "inf"] {
        let option = format!("limits.dollars={dollars}");
        let said = files("", "").options(&[&option]).error();
        let expected = "option -c: limits.dollars: must be more than 0";
        assert!(said.starts_with(expected), "{dollars}: {said}");
    }
}

#[test]
fn invalid_model_numbers_are_rejected() {
    let error = |lines: &str| files(&format!("[models.a]\n{lines}\n"), "").error();
    for (line, expected) in [
        ("temperature = -0.1", "temperature: must be 0 or more"),
        ("temperature = nan", "temperature: must be 0 or more"),
        ("price_cached = -1.0", "price_cached: must be 0 or more"),
        ("context_window = 0", "context_window: must be at least 1"),
        ("max_output = 0", "max_output: must be at least 1"),
    ] {
        assert_eq!(error(line), format!("user.toml:2: models.a.{expected}"));
    }
    let said = error("price_output = 1.0");
    assert!(
        said.contains("needs both price_prompt and price_output"),
        "{said}"
    );
    files("[models.a]\nprice_prompt = 0.0\nprice_output = 0.0\n", "").load();
}

#[test]
fn project_restrictions_hold_in_every_toml_notation() {
    for text in [
        "models = { evil = { base_url = \"http://evil\" } }\n",
        "models.evil.base_url = \"http://evil\"\n",
        "\"models\".\"evil\".base_url = \"http://evil\"\n",
        "[roles]\nagent = [\"evil\"]\n",
        "run = { approve = \"auto\" }\n",
        "\"run\".\"approve\" = \"auto\"\n",
        "limits = { calls = 1000 }\n",
        "limits.dollars = inf\n",
    ] {
        let files = files("[limits]\ndollars = 1.0\n", text);
        let loaded = files.load();
        let mut expected = Config::default();
        expected.limits.dollars = Some(Dollars(1.0));
        assert_eq!(loaded.config, expected, "{text}");
        let warnings = files.warnings();
        assert_eq!(warnings.len(), 1, "{text}");
        assert!(
            warnings[0].contains("a project may not set"),
            "{warnings:?}"
        );
    }
}

#[test]
fn environment_and_options_override_a_trusted_project() {
    let files = files(
        "",
        "[limits]\ncalls = 50\nturns = 5\n[run]\ndriver = \"single\"\n",
    )
    .variables(&[("STARLING_LIMITS_CALLS", "70")])
    .options(&["run.driver=swarm"]);
    let loaded = files.load();
    assert_eq!(loaded.config.limits.calls, 70);
    assert_eq!(loaded.config.limits.turns, 5);
    assert_eq!(loaded.config.run.driver, Driver::Swarm);
    for (key, origin) in [
        ("limits.calls", "environment variable STARLING_LIMITS_CALLS"),
        ("limits.turns", "project.toml:3"),
        ("run.driver", "option -c"),
    ] {
        assert_eq!(files.said(loaded.origin(key)), origin, "{key}");
    }
    assert_eq!(loaded.origin("limits.seconds"), ValueOrigin::Default);
}

#[test]
fn syntax_error_in_an_untrusted_project_file_is_ignored() {
    let mut strange = files("", "this is [ no TOML\n");
    strange.sources.trust = Trust::NotTrusted;
    assert_eq!(strange.load().config, Config::default());
    strange.sources.trust = Trust::Trusted;
    assert!(strange.error().starts_with("project.toml:1: "));
    let mut without = files("", "");
    without.sources.trust = Trust::NotTrusted;
    assert_eq!(without.warnings(), [""; 0]);
}

#[test]
fn nearest_key_is_found_by_similarity() {
    let near = |key: &str| nearest(key);
    assert_eq!(near("limit.calls").as_deref(), Some("limits.calls"));
    assert_eq!(near("run.aprove").as_deref(), Some("run.approve"));
    let own = Some("models.my-box.api_key_env");
    assert_eq!(near("models.my-box.api_key").as_deref(), own);
    assert_eq!(near("qqqqqqq"), None);
    assert_eq!(near(""), None);
    assert!(is_section("limits") && is_section("models") && is_section("models.any"));
    assert!(!is_section("limits.calls") && !is_section("limit") && !is_section(""));
    assert!(key_info("models.NAME.path").is_some() && key_info("models.path").is_none());
}

#[test]
fn limits_have_the_same_units_in_files_variables_and_options() {
    let limits = |files: TestFiles| files.load().config.limits;
    let of_file = limits(files("[limits]\ntokens = 5\ndollars = 0.5\n", ""));
    assert_eq!(of_file.tokens, Tokens(5));
    assert_eq!(of_file.dollars, Some(Dollars(0.5)));
    let variables = [
        ("STARLING_LIMITS_TOKENS", "6"),
        ("STARLING_LIMITS_DOLLARS", "1"),
    ];
    let of_variables = limits(files("", "").variables(&variables));
    assert_eq!(of_variables.tokens, Tokens(6));
    let whole = Some(Dollars(1.0));
    assert_eq!(of_variables.dollars, whole, "whole dollars are dollars");
    let of_options = limits(files("", "").options(&["limits.tokens=7", "limits.dollars=2.5"]));
    assert_eq!(of_options.tokens, Tokens(7));
    assert_eq!(of_options.dollars, Some(Dollars(2.5)));
    for wrong in [
        "limits.tokens=1.5",
        "limits.tokens=-1",
        "limits.dollars=much",
    ] {
        let said = files("", "").options(&[wrong]).error();
        assert!(said.starts_with("option -c: limits."), "{said}");
    }
}
