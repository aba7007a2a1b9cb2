//! `starling swebench …`

pub mod args;

use std::collections::BTreeSet;

use args::{CeilingArgs, DatasetArgs, SwebenchCommand};

use super::{Outcome, WrongUse};
use crate::headless::swebench::{Ceiling, Instance, ceiling, read_instances};

pub async fn run(command: SwebenchCommand) -> anyhow::Result<Outcome> {
    match command {
        SwebenchCommand::Ceiling(args) => measure_ceiling(&args).await,
    }
}

/// The chosen instances, in the order of the data set.
fn chosen(data: &DatasetArgs) -> Result<Vec<Instance>, WrongUse> {
    let mut instances =
        read_instances(&data.dataset).map_err(|error| WrongUse(error.to_string()))?;
    if !data.ids.is_empty() {
        let known: BTreeSet<&str> = instances.iter().map(|i| i.task.id.as_str()).collect();
        if let Some(id) = data.ids.iter().find(|id| !known.contains(id.as_str())) {
            let file = data.dataset.display();
            return Err(WrongUse(format!("{file} has no instance {id}")));
        }
        instances.retain(|instance| data.ids.contains(&instance.task.id));
    }
    Ok(instances)
}

async fn measure_ceiling(args: &CeilingArgs) -> anyhow::Result<Outcome> {
    let instances = chosen(&args.data)?;
    let bar = indicatif::ProgressBar::new(instances.len() as u64);
    let found = ceiling(&instances, &args.data.repositories(), |_| bar.inc(1)).await;
    bar.finish_and_clear();
    match args.json {
        true => println!("{}", serde_json::to_string(&found)?),
        false => print!("{}", told(&found)),
    }
    Ok(match found.failed.is_empty() {
        true => Outcome::Settled,
        false => Outcome::NotSettled,
    })
}

fn told(found: &Ceiling) -> String {
    let mut text = format!("{} of {} expressible\n", found.expressible, found.instances);
    for failure in &found.failed {
        text.push_str(&format!("  {}: {}\n", failure.instance_id, failure.why));
    }
    text
}
