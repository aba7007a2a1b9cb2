//! `starling init`: writes an initial configuration to the user's file.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;

use super::args::InitArgs;
use super::first_model;
use super::standard::{note, print_line};
use super::{Outcome, WrongUse};
use starling_config::{Config, ModelConfig, user_file};
use starling_models::providers::with_key;
use starling_models::registry::resolve;

/// A model that the user chose for all roles, with its configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    /// A name for `roles.agent`.
    pub name: String,
    /// `None` if the name needs no section, such as `local`.
    pub model: Option<ModelConfig>,
}

impl ModelChoice {
    pub fn local() -> ModelChoice {
        ModelChoice {
            name: "local".to_owned(),
            model: None,
        }
    }

    /// Creates a choice of an endpoint's model. Other characters than letters, digits, `-` and `_`
    /// are replaced in the section's name.
    pub fn of(model: ModelConfig) -> ModelChoice {
        let served = model.model.clone().unwrap_or_default();
        let last = served.rsplit('/').next().unwrap_or(&served);
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        };
        ModelChoice {
            name: last.to_ascii_lowercase().chars().map(plain).collect(),
            model: Some(model),
        }
    }
}

/// Runs the command.
pub async fn run(args: InitArgs) -> anyhow::Result<Outcome> {
    let path = user_file().context("no home directory was found for the configuration file; set XDG_CONFIG_HOME to a directory")?;
    if path.exists() {
        return Err(there_already(&path).into());
    }
    let choice = match &args.model {
        Some(name) => Some(named(name)?),
        None => first_model::ask().await?,
    };
    write_new(&path, &text(choice.as_ref()))?;
    print_line(path.display())?;
    if let Some(file) = args.model.as_deref().and_then(missing_file) {
        note(format_args!(
            "note: the weights file {file} does not exist or is not a file; runs fail until it exists"
        ));
    }
    let seen = with_key(&|name| std::env::var(name).ok());
    if let (None, Some(provider)) = (&choice, seen.first()) {
        note(format_args!(
            "{} is set, but you chose no model, so the file configures the local model: edit `agent` in it to use another",
            provider.variable
        ));
    }
    note(
        "`starling config explain` lists all settings; `starling doctor` checks whether they work",
    );
    Ok(Outcome::Settled)
}

fn there_already(path: &Path) -> WrongUse {
    WrongUse(format!(
        "{} exists already and was not changed: edit it, or move it away; `starling config explain` \
         lists all settings",
        path.display()
    ))
}

/// Returns the model of `--model`.
fn named(name: &str) -> Result<ModelChoice, WrongUse> {
    let source = resolve(&Config::default(), name).map_err(|error| WrongUse(error.to_string()))?;
    Ok(match &source.settings.model {
        Some(_) => ModelChoice::of(source.settings),
        None => ModelChoice {
            name: source.name,
            model: None,
        },
    })
}

/// Returns the path of a model such as `gguf:PATH` if the file does not exist.
fn missing_file(model: &str) -> Option<String> {
    let source = resolve(&Config::default(), model).ok()?;
    source
        .settings
        .path
        .filter(|path| !Path::new(path).is_file())
}

/// Saves a choice in a new file, or at the end of a file without models.
///
/// # Errors
/// The file cannot be written, or would be invalid with the choice. It is unchanged then.
pub fn remember(path: &Path, choice: &ModelChoice) -> anyhow::Result<()> {
    let before = match fs::read_to_string(path) {
        Ok(before) => before,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return write_new(path, &text(Some(choice)));
        }
        Err(error) => return Err(error).context(path.display().to_string()),
    };
    let added = format!("\n{}", chosen(choice));
    let is_read = format!("{before}{added}").parse::<toml::Table>().is_ok();
    anyhow::ensure!(
        is_read,
        "{}: the chosen model cannot be added to this file; add these lines yourself:\n{added}",
        path.display()
    );
    let mut file = OpenOptions::new().append(true).open(path)?;
    file.write_all(added.as_bytes())?;
    Ok(())
}

fn write_new(path: &Path, text: &str) -> anyhow::Result<()> {
    let named = || path.display().to_string();
    if let Some(folder) = path.parent() {
        if let Some(file) = folder.ancestors().find(|one| one.exists() && !one.is_dir()) {
            anyhow::bail!(WrongUse(format!(
                "{}: not a directory, so {} cannot be written: move that file away, or set XDG_CONFIG_HOME \
                 to another directory",
                file.display(),
                path.display()
            )));
        }
        fs::create_dir_all(folder).with_context(named)?;
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).with_context(named),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(there_already(path).into())
        }
        Err(error) => Err(error).with_context(named),
    }
}

/// Returns the configuration sections of a choice.
fn chosen(choice: &ModelChoice) -> String {
    let mut text = format!(
        "[roles]\n\
         # The models that change code; the second is used if the first one fails, and so on.\n\
         # `local` is the model that runs inside Starling.\n\
         agent = [{}]\n",
        quoted(&choice.name)
    );
    let Some(model) = &choice.model else {
        return text;
    };
    text.push_str(&format!("\n[models.{}]\n", choice.name));
    if let Some(served) = &model.model {
        text.push_str(&format!(
            "# The model's name at its endpoint.\nmodel = {}\n",
            quoted(served)
        ));
    }
    if let Some(url) = &model.base_url {
        text.push_str(&format!(
            "# The address of the endpoint.\nbase_url = {}\n",
            quoted(url)
        ));
    }
    if let Some(variable) = &model.api_key_env {
        text.push_str(&format!(
            "# The environment variable that holds the key. The key itself is never stored in a file.\n\
             api_key_env = {}\n",
            quoted(variable)
        ));
    }
    text.push_str(
        "# Prompt and answer together, in tokens.\n\
         # context_window = 128000\n\
         # US dollars per million tokens; a limit in dollars needs them where Starling knows no price.\n\
         # price_prompt = 1.0\n\
         # price_output = 4.0\n",
    );
    text
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns the text of a whole configuration file. Commented lines hold the defaults or an example.
fn text(choice: Option<&ModelChoice>) -> String {
    let models = match choice {
        Some(choice) => chosen(choice),
        None => EXAMPLE.to_owned(),
    };
    format!("{HEAD}\n{models}\n{REST}")
}

const HEAD: &str = "\
# Starling's configuration, for all projects of this user. Lines that start with `#` are comments.
# `starling config explain` lists all settings, what they are set to, and where that comes from.
";

const EXAMPLE: &str = "\
[roles]
# The models that change code; the second is used if the first one fails, and so on.
# `local` is the model that runs inside Starling.
agent = [\"local\"]

# A model behind an endpoint that is compatible with OpenAI's; name it in `agent` above.
# [models.big]
# The model's name at its endpoint.
# model = \"gpt-5-mini\"
# The address of the endpoint.
# base_url = \"https://api.openai.com/v1\"
# The environment variable that holds the key. The key itself is never stored in a file.
# api_key_env = \"OPENAI_API_KEY\"
";

const REST: &str = "\
[run]
# Who approves a change: \"ask\" (you), \"proxy\" (a model in your place) or \"auto\" (what passes the checks).
# approve = \"ask\"
# Files that agents may change without your approval, although tools execute them outside the sandbox.
# allow_write = [\"Makefile\"]

[limits]
# A run stops when it has spent this much, in US dollars; in tokens; in calls to models; or in seconds.
# dollars = 1.0
# tokens = 400000
# calls = 60
# seconds = 1800

[tests]
# The command that runs the tests; otherwise Starling finds pytest, unittest or Django's own runner.
# command = \"python -m pytest\"
# Time limit for the tests of one change, in seconds.
# seconds = 300

[sandbox]
# Environment variables that tests may read, besides a few harmless ones.
# environment = [\"DATABASE_URL\"]
";

#[cfg(test)]
mod tests {
    use super::*;
    use starling_config::{ConfigSources, Trust, load};

    fn read(text: &str) -> (Config, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs::write(&path, text).unwrap();
        let loaded = load(&ConfigSources {
            user_file: Some(path),
            project_file: None,
            trust: Trust::NotTrusted,
            variables: Vec::new(),
            options: Vec::new(),
        })
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
        (loaded.config, warnings)
    }

    fn served() -> ModelChoice {
        ModelChoice::of(ModelConfig {
            model: Some("vendor/Big-4.1:free".to_owned()),
            base_url: Some("https://openrouter.ai/api/v1".to_owned()),
            api_key_env: Some("OPENROUTER_API_KEY".to_owned()),
            ..ModelConfig::default()
        })
    }

    #[test]
    fn starter_configuration_is_valid_with_and_without_its_commented_lines() {
        for choice in [None, Some(ModelChoice::local()), Some(served())] {
            let text = text(choice.as_ref());
            let (config, warnings) = read(&text);
            assert_eq!(warnings, Vec::<String>::new());
            let name = choice
                .as_ref()
                .map_or("local", |choice| choice.name.as_str());
            assert_eq!(config.roles.agent, [name]);
            let is_setting = |line: &str| line.contains(" = ") || line.starts_with("# [models.");
            let on: Vec<&str> = text
                .lines()
                .map(|line| match line.strip_prefix("# ") {
                    Some(setting) if is_setting(line) => setting,
                    _ => line,
                })
                .collect();
            let (config, warnings) = read(&on.join("\n"));
            assert_eq!(warnings, Vec::<String>::new());
            assert_eq!(config.limits.calls, 60);
            assert!(config.tests.command.is_some());
        }
    }

    #[test]
    fn missing_weights_file_of_a_gguf_model_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.gguf").display().to_string();
        let model = format!("gguf:{file}");
        assert_eq!(missing_file(&model), Some(file.clone()));
        fs::write(&file, "x").unwrap();
        assert_eq!(missing_file(&model), None);
        assert_eq!(missing_file("local"), None);
        assert_eq!(missing_file("openai:gpt-5-mini"), None);
    }

    #[test]
    fn error_names_the_file_that_blocks_the_configuration_directory() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(".config");
        fs::write(&file, "").unwrap();
        let wrong = write_new(&file.join("starling/config.toml"), "").unwrap_err();
        let wrong = wrong.to_string();
        assert!(
            wrong.starts_with(&format!("{}: not a directory", file.display())),
            "{wrong}"
        );
        assert!(wrong.contains("XDG_CONFIG_HOME"), "{wrong}");
    }

    #[test]
    fn chosen_model_is_appended_without_overwriting_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("starling/config.toml");
        remember(&path, &served()).unwrap();
        let (config, _) = read(&fs::read_to_string(&path).unwrap());
        assert_eq!(config.roles.agent, ["big-4-1-free"]);
        let model = &config.models["big-4-1-free"];
        assert_eq!(model.model.as_deref(), Some("vendor/Big-4.1:free"));
        assert_eq!(model.api_key_env.as_deref(), Some("OPENROUTER_API_KEY"));

        fs::write(&path, "[limits]\ncalls = 7 # mine\n").unwrap();
        remember(&path, &ModelChoice::local()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("[limits]\ncalls = 7 # mine\n"), "{text}");
        assert_eq!(read(&text).0.roles.agent, ["local"]);
        // A second section of that name would be invalid.
        let again = remember(&path, &ModelChoice::local())
            .unwrap_err()
            .to_string();
        assert!(again.contains("agent = [\"local\"]"), "{again}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert!(write_new(&path, "").is_err());
    }
}
