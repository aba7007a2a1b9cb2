//! Offers to download missing weights at a terminal, before a run starts.

use std::io::{self, Write};
use std::path::Path;

use indicatif::HumanBytes;

use super::args::ConfigurationArgs;
use super::first_model::can_ask;
use super::models;
use super::question::{Answers, StdinAnswers, ask};
use super::services::configuration;
use starling_config::ModelKind;
use starling_models::registry::{ModelSource, role_sources};
use starling_models::weights::{self, KnownModel, WeightsError};

/// Offers to download the weights of the local model if it is used and they are missing. Without a
/// terminal, the error of loading the model explains how to download them.
///
/// # Errors
/// The terminal cannot be read, or the download fails.
pub async fn offer(root: &Path, world: &ConfigurationArgs, is_json: bool) -> anyhow::Result<()> {
    if cfg!(not(feature = "local")) || is_json || !can_ask() {
        return Ok(());
    }
    for model in missing(root, world) {
        if is_wanted(model, &mut StdinAnswers, &mut io::stderr())? {
            models::pull(model.name).await?;
        }
    }
    Ok(())
}

/// Returns the configured known models whose weights are missing.
fn missing(root: &Path, world: &ConfigurationArgs) -> Vec<&'static KnownModel> {
    let config = configuration(root, world).map(|loaded| loaded.config);
    let roles = config.map(|config| role_sources(&config, world.model.as_deref()));
    let Ok(Ok(roles)) = roles else {
        return Vec::new();
    };
    let mut found: Vec<&KnownModel> = Vec::new();
    for source in roles.all() {
        let model = missing_of(source);
        found.extend(model.filter(|model| found.iter().all(|known| known.name != model.name)));
    }
    found
}

fn missing_of(source: &ModelSource) -> Option<&'static KnownModel> {
    let is_local = source.settings.kind == ModelKind::Gguf;
    let wanted = source.settings.path.as_deref().filter(|_| is_local);
    let wanted = wanted.or(is_local.then_some(weights::DEFAULT_MODEL))?;
    match weights::path(wanted) {
        Err(WeightsError::Missing { name, .. }) => {
            weights::known().iter().find(|model| model.name == name)
        }
        Ok(_) | Err(_) => None,
    }
}

fn is_wanted(
    model: &KnownModel,
    heard: &mut impl Answers,
    shown: &mut impl Write,
) -> io::Result<bool> {
    let size = HumanBytes(model.bytes);
    let name = model.name;
    writeln!(
        shown,
        "The weights of the local model {name} ({size}) are not downloaded yet."
    )?;
    loop {
        match ask("Download them now? [y/n] ", heard, shown)?.as_deref() {
            Some("y" | "Y" | "yes") => return Ok(true),
            Some("n" | "N" | "no") | None => return Ok(false),
            Some(_) => writeln!(shown, "  y  download them (only once)\n  n  not now")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_downloaded_only_if_the_user_agrees() {
        let model = &weights::known()[0];
        let asked = |answers: &str| {
            let mut shown = Vec::new();
            let wanted = is_wanted(model, &mut answers.as_bytes(), &mut shown).unwrap();
            (wanted, String::from_utf8(shown).unwrap())
        };
        let (wanted, shown) = asked("y\n");
        assert!(
            wanted && shown.contains(model.name) && shown.contains("GiB"),
            "{shown}"
        );
        let (wanted, shown) = asked("\nwhat\nn\n");
        assert!(!wanted);
        assert_eq!(shown.matches("[y/n]").count(), 3, "{shown}");
        assert!(!asked("").0, "nobody answered");
    }
}
