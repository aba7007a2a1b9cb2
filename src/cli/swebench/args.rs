//! What `starling swebench` takes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::headless::swebench::Repositories;

#[derive(Debug, Subcommand)]
pub enum SwebenchCommand {
    /// How many known changes the edit engine can say as proposals, byte for byte. No model takes part.
    Ceiling(CeilingArgs),
    /// Run the hidden tests over predicted changes.
    Grade(GradeArgs),
}

/// Instances and the repositories that they are of.
#[derive(Debug, Args)]
pub struct DatasetArgs {
    /// Instances as SWE-bench writes them: one a line, as JSON.
    #[arg(long, value_name = "FILE")]
    pub dataset: PathBuf,
    /// Holds the repositories, `owner/name` as DIR/owner__name, bare or not.
    #[arg(long, value_name = "DIR")]
    pub repos: PathBuf,
    /// A repository that lies elsewhere, as often as you like.
    #[arg(long, value_name = "OWNER/NAME=PATH", value_parser = place)]
    pub repo: Vec<(String, PathBuf)>,
    /// Only these instances.
    #[arg(long, value_name = "ID", num_args = 1..)]
    pub ids: Vec<String>,
}

impl DatasetArgs {
    pub fn repositories(&self) -> Repositories {
        Repositories {
            directory: self.repos.clone(),
            elsewhere: self.repo.iter().cloned().collect(),
        }
    }
}

fn place(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if name.contains('/') && !path.is_empty() => {
            Ok((name.to_owned(), path.into()))
        }
        Some(_) | None => Err("expected owner/name=PATH".into()),
    }
}

#[derive(Debug, Args)]
pub struct CeilingArgs {
    #[command(flatten)]
    pub data: DatasetArgs,
    /// The result as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct GradeArgs {
    #[command(flatten)]
    pub data: DatasetArgs,
    /// Predictions as SWE-bench reads them; `gold` grades the known changes themselves.
    #[arg(long, value_name = "FILE")]
    pub predictions: PathBuf,
    /// What the tests of each instance need, one a line, as JSON.
    #[arg(long, value_name = "FILE")]
    pub environments: PathBuf,
    /// So many at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: usize,
    /// The result as JSON.
    #[arg(long)]
    pub json: bool,
}
