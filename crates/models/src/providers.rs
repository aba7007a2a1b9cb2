//! Known providers with an OpenAI-compatible endpoint. A provider is recognized by the environment
//! variable that holds its key.

use super::registry::{DEFAULT_BASE_URL, Variables};

/// A provider of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    pub name: &'static str,
    /// The environment variable that holds a key, as the provider's own documentation names it.
    pub variable: &'static str,
    pub base_url: &'static str,
}

const fn provider(name: &'static str, variable: &'static str, base_url: &'static str) -> Provider {
    Provider {
        name,
        variable,
        base_url,
    }
}

/// All known providers.
pub const PROVIDERS: [Provider; 9] = [
    provider("OpenAI", "OPENAI_API_KEY", DEFAULT_BASE_URL),
    provider(
        "Anthropic",
        "ANTHROPIC_API_KEY",
        "https://api.anthropic.com/v1",
    ),
    provider(
        "Google Gemini",
        "GEMINI_API_KEY",
        "https://generativelanguage.googleapis.com/v1beta/openai",
    ),
    provider(
        "OpenRouter",
        "OPENROUTER_API_KEY",
        "https://openrouter.ai/api/v1",
    ),
    provider("Mistral", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"),
    provider(
        "DeepSeek",
        "DEEPSEEK_API_KEY",
        "https://api.deepseek.com/v1",
    ),
    provider("Groq", "GROQ_API_KEY", "https://api.groq.com/openai/v1"),
    provider("xAI", "XAI_API_KEY", "https://api.x.ai/v1"),
    provider(
        "Together",
        "TOGETHER_API_KEY",
        "https://api.together.xyz/v1",
    ),
];

/// Returns the providers whose key is set in the environment.
pub fn with_key(variables: Variables<'_>) -> Vec<Provider> {
    let is_set = |one: &Provider| variables(one.variable).is_some_and(|key| !key.trim().is_empty());
    PROVIDERS.into_iter().filter(is_set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_is_available_if_its_key_variable_is_not_empty() {
        let variables = |name: &str| match name {
            "GROQ_API_KEY" => Some("k".to_owned()),
            "OPENAI_API_KEY" => Some(" ".to_owned()),
            _ => None,
        };
        let found: Vec<&str> = with_key(&variables).iter().map(|one| one.name).collect();
        assert_eq!(found, ["Groq"]);
        for one in PROVIDERS {
            assert!(one.base_url.starts_with("https://") && !one.base_url.ends_with('/'));
        }
    }
}
