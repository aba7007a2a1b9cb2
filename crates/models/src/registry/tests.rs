use super::*;
use starling_config::{ModelConfig, ModelKind};
use starling_core::{Tokens, ToolCalling};

fn endpoint(model: &str) -> ModelConfig {
    ModelConfig {
        model: Some(model.to_owned()),
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        ..ModelConfig::default()
    }
}

fn config(names: &[&str]) -> Config {
    let mut config = Config::default();
    for name in names {
        config.models.insert((*name).to_owned(), endpoint("gpt-4o"));
    }
    config
}

fn names(sources: &[ModelSource]) -> Vec<&str> {
    sources.iter().map(|source| source.name.as_str()).collect()
}

fn no_variables(_: &str) -> Option<String> {
    None
}

#[test]
fn roles_without_models_use_the_agent_models() {
    let mut config = config(&["big", "small", "third"]);
    config.roles.agent = vec!["big".to_owned(), "small".to_owned()];
    config.roles.scout = vec!["small".to_owned()];
    config.roles.editor = vec!["big".to_owned(), "third".to_owned()];
    let roles = role_sources(&config, None).unwrap();
    assert_eq!(names(&roles.agent), ["big", "small"]);
    assert_eq!(names(&roles.scout), ["small"]);
    assert_eq!(names(&roles.editors), ["big", "third"]);
    assert_eq!(names(&roles.proxy), ["big", "small"]);
    let models = Models::open_with(&config, None, &no_variables).unwrap();
    assert_eq!(models.agent.profile().name, "big");
    assert_eq!(models.scout.profile().name, "small");
    assert_eq!(models.editors[1].profile().name, "third");
}

#[test]
fn chosen_model_is_used_for_every_role() {
    let mut config = config(&["big", "small"]);
    config.roles.editor = vec!["big".to_owned()];
    let roles = role_sources(&config, Some("small")).unwrap();
    for part in [&roles.agent, &roles.scout, &roles.proxy] {
        assert_eq!(names(part), ["small"]);
    }
    assert!(roles.editors.is_empty());
}

#[test]
fn default_is_the_only_configured_model_or_else_the_local_one() {
    let only = role_sources(&config(&["big"]), None).unwrap();
    assert_eq!(names(&only.agent), ["big"]);
    let local = role_sources(&Config::default(), None).unwrap();
    assert_eq!(names(&local.agent), ["local"]);
    assert_eq!(local.agent[0].settings.kind, ModelKind::Gguf);
    assert_eq!(local.agent[0].settings.path, None);
    let error = role_sources(&config(&["a", "b"]), None).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("several models are configured (a, b)"),
        "{error}"
    );
}

#[test]
fn model_specifications_work_without_configuration() {
    let config = config(&["openai:mine"]);
    let settings = |name: &str| resolve(&config, name).unwrap().settings;
    assert_eq!(settings("gguf:/w/a.gguf").kind, ModelKind::Gguf);
    assert_eq!(
        settings("gguf:/w/a.gguf").path.as_deref(),
        Some("/w/a.gguf")
    );
    assert_eq!(settings("replay:t.jsonl").kind, ModelKind::Replay);
    assert_eq!(
        settings("openai:org/name:free").model.as_deref(),
        Some("org/name:free")
    );
    assert_eq!(
        settings("openai:mine").model.as_deref(),
        Some("gpt-4o"),
        "a configured name wins"
    );
    for unknown in ["huge", "gguf:", "http://x"] {
        let error = resolve(&config, unknown).unwrap_err();
        assert!(matches!(error, ModelsError::UnknownName { .. }), "{error}");
    }
}

#[test]
fn unknown_model_name_suggests_similar_names() {
    let told = |name: &str| {
        let config = config(&["big-one", "other"]);
        resolve(&config, name).unwrap_err().to_string()
    };
    for (name, near) in [
        ("bigone", "(did you mean big-one?)"),
        ("locl", "(did you mean local?)"),
        ("gpt-4o", "did you mean openai:gpt-4o or "),
        ("gpt-4o-mni", "did you mean openai:gpt-4o-mini or "),
    ] {
        assert!(told(name).contains(near), "{}", told(name));
    }
    assert!(!told("zzz").contains("did you mean"), "{}", told("zzz"));
}

#[test]
fn model_missing_at_its_endpoint_is_reported_with_similar_names() {
    let config = config(&["big"]);
    let told = |name: &str, listed: &[&str]| {
        let listed: Vec<String> = listed.iter().map(|name| (*name).to_owned()).collect();
        not_listed(&resolve(&config, name).unwrap(), &listed)
    };
    assert_eq!(told("openai:a", &[]), None);
    assert_eq!(told("openai:a", &["b", "a:latest"]), None);
    assert_eq!(told("big", &["gpt-4o"]), None);
    let near = told("openai:qwen3-codr", &["qwen3-coder", "gpt-4o"]).unwrap();
    assert_eq!(
        near,
        "the endpoint does not list a model \"qwen3-codr\"; did you mean qwen3-coder?"
    );
    let only = told("openai:a", &["llama-3.1"]).unwrap();
    assert!(only.ends_with("it lists llama-3.1 alone"), "{only}");
}

#[test]
fn missing_api_key_error_names_its_variable() {
    let mut config = config(&["big"]);
    config.models.get_mut("big").unwrap().api_key_env = Some("BIG_KEY".to_owned());
    let Err(error) = Models::open_with(&config, None, &no_variables) else {
        panic!("there is no key");
    };
    assert!(error.to_string().contains("BIG_KEY"), "{error}");
    let with_key = |name: &str| (name == "BIG_KEY").then(|| "secret".to_owned());
    Models::open_with(&config, None, &with_key).unwrap();

    let Err(error) = Models::open_with(&Config::default(), Some("openai:gpt-4o"), &no_variables)
    else {
        panic!("there is no key");
    };
    assert!(error.to_string().contains("OPENAI_API_KEY"), "{error}");
    let own_server = |name: &str| (name == "OPENAI_BASE_URL").then(|| "http://127.0.0.1:1".into());
    Models::open_with(&Config::default(), Some("openai:gpt-4o"), &own_server).unwrap();
}

#[test]
fn model_without_price_is_rejected_under_a_dollar_limit() {
    let mut config = config(&["big"]);
    let open = |config: &Config| Models::open_with(config, None, &no_variables).unwrap();
    assert_eq!(open(&config).require_prices(), Ok(()));
    let model = config.models.get_mut("big").unwrap();
    model.model = Some("my-own".to_owned());
    let error = open(&config).require_prices().unwrap_err();
    assert!(
        error.to_string().contains("the price of big is unknown"),
        "{error}"
    );
    let model = config.models.get_mut("big").unwrap();
    model.price_prompt = Some(1.0);
    model.price_output = Some(2.0);
    assert_eq!(open(&config).require_prices(), Ok(()));
}

#[test]
fn model_check_finds_errors_without_opening_models() {
    let check = |config: &Config, choice: Option<&str>, limit| {
        Models::check(config, choice, limit, &no_variables).map_err(|error| error.to_string())
    };
    let wrong = |config: &Config, choice: &str, because: &str| {
        let error = check(config, Some(choice), Some(Dollars(1.0))).unwrap_err();
        assert!(error.contains(because), "{choice}: {error}");
    };
    let mut config = config(&["big", "other"]);
    assert_eq!(check(&config, Some("big"), Some(Dollars(1.0))), Ok(()));
    assert!(check(&config, None, None).unwrap_err().contains("several"));
    wrong(&config, "huge", "no model is called \"huge\"");
    wrong(
        &config,
        "anthropic:big",
        "no provider is called \"anthropic\": use openai:MODEL with OPENAI_BASE_URL",
    );
    wrong(&config, "openai:gpt-4o", "OPENAI_API_KEY");
    wrong(&config, "gguf:/no/such.gguf", "/no/such.gguf");
    wrong(&config, "replay:/no/such.jsonl", "/no/such.jsonl");
    config.models.get_mut("big").unwrap().base_url = Some("nowhere".to_owned());
    wrong(&config, "big", "is not a valid URL");
    config.models.get_mut("other").unwrap().model = Some("my-own".to_owned());
    wrong(&config, "other", "the price of other is unknown");
    assert_eq!(check(&config, Some("other"), None), Ok(()));
}

#[test]
fn model_profile_reflects_the_settings() {
    let mut config = config(&["big"]);
    let profile = |config: &Config| {
        let models = Models::open_with(config, None, &no_variables).unwrap();
        models.agent.profile().clone()
    };
    assert_eq!(profile(&config).context_window, Tokens(32_768));
    assert_eq!(profile(&config).tool_calling, ToolCalling::Native);
    let model = config.models.get_mut("big").unwrap();
    model.context_window = Some(4096);
    model.tool_calling = Some(ToolCalling::Text);
    let small = profile(&config);
    assert_eq!(
        small.max_output,
        Tokens(4096),
        "an answer is no longer than the window"
    );
    assert_eq!(small.tool_calling, ToolCalling::Text);
}
