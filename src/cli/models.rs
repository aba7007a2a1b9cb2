//! `starling models`: manages the weights of local models.

use std::path::PathBuf;

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Outcome;
use super::args::ModelsCommand;
use super::standard::{note, print_line};
use super::terminal;
use starling_models::weights::{self, DEFAULT_MODEL, Progress};

/// Runs the command.
pub async fn run(command: ModelsCommand) -> anyhow::Result<Outcome> {
    match command {
        ModelsCommand::Pull { name } => {
            let path = pull(name.as_deref().unwrap_or(DEFAULT_MODEL)).await?;
            print_line(path.display())?;
        }
        ModelsCommand::List => {
            for model in weights::list()? {
                let place = match &model.path {
                    Some(path) => path.display().to_string(),
                    None => "not downloaded".to_owned(),
                };
                let size = HumanBytes(model.bytes);
                print_line(format_args!(
                    "{:<32} {size:>12}  {place}\n    {}",
                    model.name, model.about
                ))?;
            }
        }
        ModelsCommand::Path { name } => {
            let name = name.as_deref().unwrap_or(DEFAULT_MODEL);
            print_line(weights::path(name)?.display())?;
        }
    }
    Ok(Outcome::Settled)
}

/// Downloads weights with a progress bar.
pub async fn pull(name: &str) -> anyhow::Result<PathBuf> {
    let name = name.to_owned();
    Ok(tokio::task::spawn_blocking(move || pull_now(&name)).await??)
}

fn pull_now(name: &str) -> Result<PathBuf, weights::WeightsError> {
    let bar = ProgressBar::new(0);
    if terminal::is_dumb() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
        note(format_args!("downloading {name}"));
    }
    let style = "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    let path = weights::pull(name, &mut |progress| show(&bar, progress))?;
    bar.finish_and_clear();
    Ok(path)
}

fn show(bar: &ProgressBar, progress: Progress) {
    let (message, bytes, total) = match progress {
        Progress::Waiting => ("another process is downloading it".to_owned(), 0, 0),
        Progress::Fetching {
            part,
            parts,
            bytes,
            total,
        } => (format!("downloading part {part} of {parts}"), bytes, total),
        Progress::Checking { bytes, total } => ("checking".to_owned(), bytes, total),
    };
    bar.set_message(message);
    bar.set_length(total);
    bar.set_position(bytes);
}
