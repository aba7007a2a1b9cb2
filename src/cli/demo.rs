//! `starling demo`: repairs the bundled broken project in a temporary directory.

use std::path::PathBuf;

use anyhow::Context;

use super::args::{ConfigurationArgs, DemoArgs};
use super::embedded::{DEMO, EmbeddedFiles, RECORDING, RECORDING_PROJECT};
use super::run::{OutputMode, Stdin, check, follow};
use super::services::configuration;
use super::standard::note;
use super::view::summary::ProjectLifetime;
use super::{Outcome, WrongUse, models};
use starling_config::{ConfigError, ModelKind};
use starling_core::{Approval, AskIntent};
use starling_models::registry::{ModelSource, role_sources};
use starling_models::weights;
use starling_sandbox::Scratch;
use starling_server::protocol::RunParams;
use starling_swarm::{Event, Record, Stamped};

const TASK: &str = "The tests of this project fail. Find the cause of each failure in the code, not \
                    in the tests, and fix it.";

/// Runs the command.
pub async fn run(args: DemoArgs) -> anyhow::Result<Outcome> {
    let show = OutputMode::of(args.json);
    let (project, params, world) = match args.replay {
        true => replay(args.world)?,
        false => {
            fetch_weights(&args.world).await?;
            check(&std::env::temp_dir(), &task(TASK), &args.world, Stdin::Free)?;
            (DemoProject::unpack(DEMO)?, task(TASK), args.world)
        }
    };
    let root = project.root();
    note(format_args!("the project is in {}", root.display()));
    let tree = match args.keep {
        true => ProjectLifetime::Stays,
        false => ProjectLifetime::Temporary,
    };
    let outcome = follow(&root, params, &world, show, Stdin::Free, tree).await;
    let worth_a_look = project.is_changed() && !matches!(outcome, Ok(Outcome::Settled));
    if args.keep || worth_a_look {
        let kept = project
            .scratch
            .keep()
            .context("cannot keep the temporary project")?;
        note(format_args!(
            "the project was kept in {}",
            kept.join(PROJECT).display()
        ));
    }
    outcome
}

/// Unpacks the bundled recording and its project, and returns them with the recorded parameters.
fn replay(world: ConfigurationArgs) -> anyhow::Result<(DemoProject, RunParams, ConfigurationArgs)> {
    let text =
        RECORDING.context("this build contains no recording: run the demo without --replay")?;
    let project = DemoProject::unpack(RECORDING_PROJECT)?;
    let recording = project.scratch.path().join("recording.jsonl");
    std::fs::write(&recording, text)
        .with_context(|| format!("cannot write {}", recording.display()))?;
    // Repeat the decisions of the recorded proxy user.
    let mut params = RunParams {
        approve: Some(Approval::Proxy),
        ask_intent: Some(AskIntent::Contract),
        ..task(TASK)
    };
    if let Some((text, driver)) = recorded(text) {
        params.task = text;
        params.driver = Some(driver);
    }
    let world = ConfigurationArgs {
        model: Some(format!("replay:{}", recording.display())),
        ..world
    };
    Ok((project, params, world))
}

/// Downloads the default weights if the demo would use them.
async fn fetch_weights(world: &ConfigurationArgs) -> anyhow::Result<()> {
    let here = std::env::temp_dir();
    let wrong = |error: ConfigError| WrongUse(error.to_string());
    let config = configuration(&here, world).map_err(wrong)?.config;
    let sources = role_sources(&config, world.model.as_deref())
        .map_err(|error| WrongUse(error.to_string()))?;
    let default = |source: &ModelSource| {
        source.settings.kind == ModelKind::Gguf && source.settings.path.is_none()
    };
    let wanted = sources.agent.iter().any(default);
    if cfg!(feature = "local") && wanted && weights::path(weights::DEFAULT_MODEL).is_err() {
        note("downloading the weights of the local model (only once)");
        models::pull(weights::DEFAULT_MODEL).await?;
    }
    Ok(())
}

fn task(text: &str) -> RunParams {
    RunParams {
        task: text.to_owned(),
        approve: Some(Approval::Auto),
        ..RunParams::default()
    }
}

/// Returns the task and driver of the recorded run.
fn recorded(text: &str) -> Option<(String, starling_core::Driver)> {
    text.lines().find_map(|line| {
        let stamped: Stamped = serde_json::from_str(line).ok()?;
        match stamped.record {
            Record::Event(Event::RunStarted { task, driver, .. }) => Some((task, driver)),
            Record::Event(_) | Record::Exchange(_) => None,
        }
    })
}

/// The name of the project's directory in the scratch directory.
const PROJECT: &str = "project";

/// Files in a temporary directory that is deleted on drop, unless it is kept. After a kill, the
/// next run deletes the directory.
struct DemoProject {
    files: EmbeddedFiles,
    scratch: Scratch,
}

impl DemoProject {
    fn unpack(files: EmbeddedFiles) -> anyhow::Result<DemoProject> {
        let scratch = Scratch::temporary().context("cannot create a temporary directory")?;
        let project = DemoProject { files, scratch };
        for (path, text) in files {
            let path = project.root().join(path);
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&path, text))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(project)
    }

    fn root(&self) -> PathBuf {
        self.scratch.path().join(PROJECT)
    }

    /// Whether any file has changed.
    fn is_changed(&self) -> bool {
        let root = self.root();
        let same = |(path, text): &(&str, &str)| {
            std::fs::read_to_string(root.join(path)).is_ok_and(|now| now == *text)
        };
        !self.files.iter().all(same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demo_project_is_unpacked_unchanged_and_deleted_unless_kept() {
        let one = DemoProject::unpack(DEMO).unwrap();
        let two = DemoProject::unpack(DEMO).unwrap();
        let roots = [one.root(), two.root()];
        assert_ne!(roots[0], roots[1]);
        for (path, text) in DEMO {
            assert_eq!(std::fs::read_to_string(roots[0].join(path)).unwrap(), *text);
        }
        assert!(!one.is_changed());
        std::fs::write(roots[0].join(DEMO[0].0), "other").unwrap();
        assert!(one.is_changed());
        std::fs::remove_file(roots[1].join(DEMO[0].0)).unwrap();
        assert!(two.is_changed());
        drop(one);
        let kept = two.scratch.keep().unwrap();
        assert!(!roots[0].exists() && roots[1].exists());
        std::fs::remove_dir_all(kept).unwrap();
    }

    #[test]
    fn task_and_driver_are_read_from_the_recording() {
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
            run: starling_swarm::RunId("r".to_owned()),
            task: "mend it".to_owned(),
            driver: starling_core::Driver::Single,
            models: Vec::new(),
            replayed: false,
            limits: starling_core::Limits::default(),
            root: String::new(),
            request: None,
        };
        let told = Event::Steered {
            to: None,
            text: "x".to_owned(),
        };
        let text = format!("{}\n{}\n", line(&told), line(&started));
        let asked = ("mend it".to_owned(), starling_core::Driver::Single);
        assert_eq!(recorded(&text), Some(asked));
        assert_eq!(recorded("{}\n"), None);
    }
}
