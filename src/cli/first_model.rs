//! Selects a model if none is configured and a provider's key is in the environment: asks once at a
//! terminal, and prints a note elsewhere.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use super::args::ConfigurationArgs;
use super::init::{ModelChoice, remember};
use super::question::{self, Answers, StdinAnswers};
use super::services::configuration;
use super::standard::note;
use starling_config::{Config, ModelConfig, user_file};
use starling_models::openai::{ApiKey, ProbeResult, probe};
use starling_models::price::list_price;
use starling_models::providers::{Provider, with_key};
use starling_models::registry::base_url;
use starling_text::harmless;

/// Maximum time for an endpoint to list its models.
const DEADLINE: Duration = Duration::from_secs(5);
/// Maximum number of listed models to show.
const LISTED_MOST: usize = 12;

/// Whether no model is configured.
fn is_open(config: &Config) -> bool {
    let roles = &config.roles;
    config.models.is_empty() && roles.agent.is_empty() && roles.scout.is_empty()
}

/// If no model is configured and a key is in the environment, asks for a model and saves the
/// answer, or prints a note that the local model is used.
///
/// # Errors
/// The answer cannot be saved.
pub async fn choose_once(
    root: &Path,
    world: &ConfigurationArgs,
    is_json: bool,
) -> anyhow::Result<()> {
    let Ok(loaded) = configuration(root, world) else {
        return Ok(());
    };
    let seen = with_key(&|name| std::env::var(name).ok());
    if world.model.is_some() || seen.is_empty() || !is_open(&loaded.config) {
        return Ok(());
    }
    if is_json || !can_ask() {
        note(hint(&seen));
        return Ok(());
    }
    let Some(choice) = ask_about(&seen).await? else {
        note(hint(&seen));
        return Ok(());
    };
    if let Some(path) = user_file() {
        remember(&path, &choice)?;
        note(format_args!(
            "saved the model {} in {}",
            choice.name,
            path.display()
        ));
    }
    Ok(())
}

/// Asks for a model. Returns `None` if there is no key, no terminal or no answer.
///
/// # Errors
/// The terminal cannot be read or written.
pub async fn ask() -> anyhow::Result<Option<ModelChoice>> {
    let seen = with_key(&|name| std::env::var(name).ok());
    if seen.is_empty() || !can_ask() {
        return Ok(None);
    }
    ask_about(&seen).await
}

/// Whether the user can be asked a question.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn hint(seen: &[Provider]) -> String {
    let variables: Vec<&str> = seen.iter().map(|one| one.variable).collect();
    let are_set = if let [_] = seen { "is set" } else { "are set" };
    let example = match seen {
        [only] if only.variable == "OPENAI_API_KEY" => "`--model openai:MODEL` or ",
        _ => "",
    };
    format!(
        "note: {} {are_set}, but no model is configured, so the local one is used; {example}`starling \
         init` changes that",
        variables.join(", ")
    )
}

async fn ask_about(seen: &[Provider]) -> anyhow::Result<Option<ModelChoice>> {
    let provider = match ask_provider(seen, &mut StdinAnswers, &mut io::stderr())? {
        None => return Ok(None),
        Some(None) => return Ok(Some(ModelChoice::local())),
        Some(Some(provider)) => provider,
    };
    let variables = |name: &str| std::env::var(name).ok();
    let mut model = settings(provider);
    let url = base_url(&model, &variables);
    let key = variables(provider.variable).map(ApiKey);
    let listed = match probe(provider.name, &url, key.as_ref(), DEADLINE).await {
        Ok(ProbeResult::Answers { models }) => models,
        Ok(ProbeResult::KeyRefused { status }) => {
            let variable = provider.variable;
            note(format_args!(
                "{url} rejects the API key in {variable} ({status})"
            ));
            Vec::new()
        }
        Ok(_) | Err(_) => Vec::new(),
    };
    let name = ask_model(provider, &listed, &mut StdinAnswers, &mut io::stderr())?;
    Ok(name.map(|name| {
        model.model = Some(name);
        ModelChoice::of(model)
    }))
}

/// Returns the configuration of a provider's models, without the model's name.
fn settings(provider: Provider) -> ModelConfig {
    // OpenAI's address and key are the defaults, and follow OPENAI_BASE_URL.
    if provider.variable == "OPENAI_API_KEY" {
        return ModelConfig::default();
    }
    ModelConfig {
        base_url: Some(provider.base_url.to_owned()),
        api_key_env: Some(provider.variable.to_owned()),
        ..ModelConfig::default()
    }
}

/// Asks for a provider: `Some(None)` is the local model, `None` is no answer.
fn ask_provider(
    seen: &[Provider],
    heard: &mut impl Answers,
    shown: &mut impl Write,
) -> io::Result<Option<Option<Provider>>> {
    writeln!(
        shown,
        "No model is configured yet. Which one should Starling use? (asked once)"
    )?;
    writeln!(
        shown,
        "  1  the local model: free, runs on this computer, for small fixes"
    )?;
    for (number, one) in (2..).zip(seen) {
        let Provider { name, variable, .. } = one;
        writeln!(
            shown,
            "  {number}  a model of {name}, with the API key in {variable}"
        )?;
    }
    let last = seen.len() + 1;
    loop {
        let question = format!("[1-{last}, ? keys] ");
        let Some(line) = question::ask(&question, heard, shown)? else {
            return Ok(None);
        };
        match line.parse::<usize>() {
            Ok(1) => return Ok(Some(None)),
            Ok(number) if (2..=last).contains(&number) => return Ok(Some(Some(seen[number - 2]))),
            Ok(_) | Err(_) => writeln!(
                shown,
                "  1-{last}  choose; the answer is written into your configuration\n  \
                 Ctrl-D  decide later: the local model is used this time\n  ?  show these keys"
            )?,
        }
    }
}

/// Asks for the name of a model, with the endpoint's list if there is one.
fn ask_model(
    provider: Provider,
    listed: &[String],
    heard: &mut impl Answers,
    shown: &mut impl Write,
) -> io::Result<Option<String>> {
    // Models with a known price are well known and come first.
    let mut names: Vec<&String> = listed.iter().collect();
    names.sort_by_key(|name| list_price(name).is_none());
    for name in names.iter().take(LISTED_MOST) {
        writeln!(shown, "  {}", harmless(name))?;
    }
    let more = names.len().saturating_sub(LISTED_MOST);
    if more > 0 {
        writeln!(shown, "  … {more} more")?;
    }
    loop {
        let question = format!("Name of the model at {}: ", provider.name);
        let Some(line) = question::ask(&question, heard, shown)? else {
            return Ok(None);
        };
        if line.is_empty() || line == "?" {
            let url = provider.base_url;
            writeln!(
                shown,
                "  type the name of a model that {url} serves, then Enter; Ctrl-D: decide later"
            )?;
            continue;
        }
        if !listed.is_empty() && !listed.contains(&line) {
            writeln!(
                shown,
                "  {} does not list this model; it is used anyway",
                provider.name
            )?;
        }
        return Ok(Some(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_models::providers::PROVIDERS;

    fn provider(variable: &str) -> Provider {
        let known = PROVIDERS.into_iter().find(|one| one.variable == variable);
        known.expect("a known provider")
    }

    #[test]
    fn model_question_lists_the_available_keys_and_accepts_a_number() {
        let seen = [provider("OPENAI_API_KEY"), provider("GROQ_API_KEY")];
        let asked = |answers: &str| {
            let mut shown = Vec::new();
            let answer = ask_provider(&seen, &mut answers.as_bytes(), &mut shown).unwrap();
            (answer, String::from_utf8(shown).unwrap())
        };
        let (answer, shown) = asked("1\n");
        assert_eq!(answer, Some(None));
        assert!(
            shown.contains("2  a model of OpenAI, with the API key in OPENAI_API_KEY"),
            "{shown}"
        );
        assert_eq!(asked("3\n").0, Some(Some(seen[1])));
        let (answer, shown) = asked("?\n9\n");
        assert_eq!(answer, None, "nobody answered");
        assert_eq!(shown.matches("?  show these keys").count(), 2, "{shown}");
    }

    #[test]
    fn model_name_question_lists_the_models_of_the_endpoint() {
        let asked = |listed: &[&str], answers: &str| {
            let listed: Vec<String> = listed.iter().map(|name| (*name).to_owned()).collect();
            let mut shown = Vec::new();
            let openai = provider("OPENAI_API_KEY");
            let answer = ask_model(openai, &listed, &mut answers.as_bytes(), &mut shown).unwrap();
            (answer, String::from_utf8(shown).unwrap())
        };
        let (answer, shown) = asked(&["embed\u{1b}-1", "gpt-5-mini"], "\ngpt-5-mini\n");
        assert_eq!(answer.as_deref(), Some("gpt-5-mini"));
        assert!(
            shown.starts_with("  gpt-5-mini\n  embed\\u{1b}-1\n"),
            "{shown}"
        );
        let (answer, shown) = asked(&["a"], "b\n");
        assert_eq!(answer.as_deref(), Some("b"));
        assert!(shown.contains("OpenAI does not list this model"), "{shown}");
        assert_eq!(asked(&[], "").0, None);
    }

    #[test]
    fn without_a_terminal_a_note_says_that_the_local_model_is_used() {
        let one = hint(&[provider("OPENAI_API_KEY")]);
        assert!(
            one.contains("OPENAI_API_KEY is set, but no model is configured, so the local one")
        );
        assert!(one.contains("`--model openai:MODEL` or `starling init`") && !one.contains('\n'));
        let two = hint(&[provider("OPENAI_API_KEY"), provider("XAI_API_KEY")]);
        assert!(two.contains("OPENAI_API_KEY, XAI_API_KEY are set"), "{two}");
    }

    #[test]
    fn settings_of_other_providers_than_openai_name_their_url_and_key() {
        assert_eq!(settings(provider("OPENAI_API_KEY")), ModelConfig::default());
        let groq = settings(provider("GROQ_API_KEY"));
        assert_eq!(groq.api_key_env.as_deref(), Some("GROQ_API_KEY"));
        assert_eq!(
            groq.base_url.as_deref(),
            Some("https://api.groq.com/openai/v1")
        );
    }
}
