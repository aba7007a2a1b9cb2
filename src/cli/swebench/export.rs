//! `starling swebench export`

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::Context;

use super::args::ExportArgs;
use crate::cli::WrongUse;
use crate::headless::swebench::{
    Export, ExportError, Exported, Graded, Measuring, Source, read_instances,
};

pub(super) fn export(args: &ExportArgs) -> anyhow::Result<()> {
    let export = wanted(args)?;
    let exported = export.lines().map_err(told)?;
    match &args.to {
        Some(path) => {
            let file = File::create(path).with_context(|| path.display().to_string())?;
            write(&exported, BufWriter::new(file)).with_context(|| path.display().to_string())?;
        }
        None => write(&exported, std::io::stdout().lock())?,
    }
    eprintln!(
        "{} examples; left out: {} said already, {} instances graded otherwise, {} without a story",
        exported.lines.len(),
        exported.duplicates,
        exported.other_outcomes,
        exported.untold,
    );
    Ok(())
}

fn wanted(args: &ExportArgs) -> anyhow::Result<Export> {
    if !args.graded.is_empty() && args.graded.len() != args.out_of.len() {
        let (runs, grades) = (args.out_of.len(), args.graded.len());
        let text = format!("{runs} runs and {grades} files of grades: give one for each, in order");
        return Err(WrongUse(text).into());
    }
    let mut sources = Vec::new();
    for (at, root) in args.out_of.iter().enumerate() {
        let graded = args.graded.get(at).map(|path| Graded::read(path));
        sources.push(Source {
            root: root.clone(),
            graded: graded.transpose().map_err(told)?,
        });
    }
    let mut held_out = BTreeSet::new();
    for file in &args.held_out {
        let instances = read_instances(file).map_err(|error| WrongUse(error.to_string()))?;
        held_out.extend(instances.into_iter().map(|instance| instance.task.id));
    }
    Ok(Export {
        format: args.format.format(),
        sources,
        split: args.split.clone(),
        held_out,
        measuring: match args.allow_held_out {
            true => Measuring::Allowed,
            false => Measuring::Refused,
        },
    })
}

/// What the caller can mend is the caller's mistake.
fn told(error: ExportError) -> anyhow::Error {
    match error {
        ExportError::Place(error) => error.into(),
        ExportError::Unreadable { .. }
        | ExportError::NoGrades { .. }
        | ExportError::Ungraded(_)
        | ExportError::MeasuringSplit(_)
        | ExportError::HeldOut { .. } => WrongUse(error.to_string()).into(),
    }
}

fn write(exported: &Exported, mut to: impl Write) -> std::io::Result<()> {
    for line in &exported.lines {
        writeln!(to, "{line}")?;
    }
    to.flush()
}
