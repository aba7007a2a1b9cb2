//! `starling demo`: the bundled broken project, repaired in a temporary directory.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::args::{DemoArgs, WorldArgs};
use super::embedded::{DEMO, Files, RECORDING, RECORDING_PROJECT};
use super::run::{Show, Stdin, follow};
use super::services::configuration;
use super::{Outcome, WrongUse, models};
use crate::config::{ConfigError, ModelKind};
use crate::model::registry::{ModelSource, role_sources};
use crate::model::weights;
use crate::server::protocol::RunParams;
use crate::swarm::{Approval, AskIntent, Event, Record, Stamped};

const TASK: &str = "The tests of this project fail. Find the cause of each failure in the code, not \
                    in the tests, and fix it.";

/// Runs the command.
pub async fn run(args: DemoArgs) -> anyhow::Result<Outcome> {
    let show = Show::of(args.json);
    match args.replay {
        true => replay(args.world, show).await,
        false => {
            fetch_weights(&args.world).await?;
            let root = unpack(DEMO, "starling-demo")?;
            go(&root, task(TASK), &args.world, show).await
        }
    }
}

async fn replay(world: WorldArgs, show: Show) -> anyhow::Result<Outcome> {
    let text = RECORDING.context("this build holds no recording: run the demo without --replay")?;
    let root = unpack(RECORDING_PROJECT, "starling-replay")?;
    let recording = root.with_extension("jsonl");
    std::fs::write(&recording, text)
        .with_context(|| format!("{}: not written", recording.display()))?;
    // The recorded proxy user decides again.
    let mut params = RunParams {
        approve: Some(Approval::Proxy),
        ask_intent: Some(AskIntent::Contract),
        ..task(TASK)
    };
    if let Some((text, driver)) = recorded(text) {
        params.task = text;
        params.driver = Some(driver);
    }
    let world = WorldArgs {
        model: Some(format!("replay:{}", recording.display())),
        ..world
    };
    go(&root, params, &world, show).await
}

/// The first demo fetches the default weights, when they are what it would run on.
async fn fetch_weights(world: &WorldArgs) -> anyhow::Result<()> {
    let here = std::env::temp_dir();
    let wrong = |error: ConfigError| WrongUse(error.to_string());
    let config = configuration(&here, world).map_err(wrong)?.config;
    let sources = role_sources(&config, world.model.as_deref())?;
    let default = |source: &ModelSource| {
        source.settings.kind == ModelKind::Gguf && source.settings.path.is_none()
    };
    let wanted = sources.agent.iter().any(default);
    if cfg!(feature = "local") && wanted && weights::path(weights::DEFAULT_MODEL).is_err() {
        eprintln!("the weights of the local model are fetched once");
        models::pull(weights::DEFAULT_MODEL).await?;
    }
    Ok(())
}

async fn go(
    root: &Path,
    params: RunParams,
    world: &WorldArgs,
    show: Show,
) -> anyhow::Result<Outcome> {
    eprintln!("the project is in {}", root.display());
    follow(root, params, world, show, Stdin::Free).await
}

fn task(text: &str) -> RunParams {
    RunParams {
        task: text.to_owned(),
        approve: Some(Approval::Auto),
        ..RunParams::default()
    }
}

/// What the recorded run was asked.
fn recorded(text: &str) -> Option<(String, crate::swarm::Driver)> {
    text.lines().find_map(|line| {
        let stamped: Stamped = serde_json::from_str(line).ok()?;
        match stamped.record {
            Record::Event(Event::RunStarted { task, driver, .. }) => Some((task, driver)),
            Record::Event(_) | Record::Exchange(_) => None,
        }
    })
}

/// Writes files into a new temporary directory, which stays.
fn unpack(files: Files, name: &str) -> anyhow::Result<PathBuf> {
    let base = std::env::temp_dir();
    let mut number = 0;
    let root = loop {
        let root = base.join(format!("{name}-{}-{number}", std::process::id()));
        match std::fs::create_dir(&root) {
            Ok(()) => break root,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => {
                return Err(error).with_context(|| format!("{}: not made", root.display()));
            }
        }
    };
    // Its own path: the system's temporary directory may be a link.
    let root = root.canonicalize()?;
    for (path, text) in files {
        let path = root.join(path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text))
            .with_context(|| format!("{}: not written", path.display()))?;
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_unpacked_as_it_is() {
        let (one, two) = (unpack(DEMO, "starling-test"), unpack(DEMO, "starling-test"));
        let (one, two) = (one.unwrap(), two.unwrap());
        assert_ne!(one, two);
        for (path, text) in DEMO {
            assert_eq!(std::fs::read_to_string(one.join(path)).unwrap(), *text);
        }
        for root in [one, two] {
            std::fs::remove_dir_all(root).unwrap();
        }
    }

    #[test]
    fn a_recording_says_what_it_was_asked() {
        let line = |event: &Event| {
            let record = Record::Event(event.clone());
            let stamped = Stamped {
                seq: 0,
                at_ms: 0,
                record,
            };
            serde_json::to_string(&stamped).unwrap()
        };
        let started = Event::RunStarted {
            run: crate::swarm::RunId("r".to_owned()),
            task: "mend it".to_owned(),
            driver: crate::swarm::Driver::Single,
            models: Vec::new(),
            replayed: false,
            limits: crate::swarm::Limits::default(),
        };
        let told = Event::Steered {
            to: None,
            text: "x".to_owned(),
        };
        let text = format!("{}\n{}\n", line(&told), line(&started));
        let asked = ("mend it".to_owned(), crate::swarm::Driver::Single);
        assert_eq!(recorded(&text), Some(asked));
        assert_eq!(recorded("{}\n"), None);
    }
}
