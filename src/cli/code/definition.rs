//! `starling definition`: finds the definition of the name at a position.

use std::time::Instant;

use serde::Serialize;

use super::super::standard::note;
use super::super::view::text::Line;
use super::super::{Outcome, WrongUse};
use super::args::DefinitionArgs;
use super::output::{SymbolLocation, print_json, print_lines};
use super::{file_of, open_for_question};
use starling_index::{Definitions, Position};

/// The JSON output of `starling definition`.
#[derive(Debug, Serialize)]
struct DefinitionOutput {
    name: String,
    definitions: Vec<SymbolLocation>,
    /// Whether the definition is certainly in this list.
    certain: bool,
    /// Remarks about the definitions; empty if there are none.
    notes: Vec<String>,
    seconds: f64,
}

/// Runs the command.
pub fn definition(args: &DefinitionArgs) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let index = open_for_question(&args.code)?;
    let position = Position {
        file: file_of(&index, &args.position.file),
        ..args.position.clone()
    };
    let found = index.definition_at(&position);
    let found = found.map_err(|error| WrongUse(error.to_string()))?;
    let definitions = found.found.iter();
    let answer = DefinitionOutput {
        definitions: definitions
            .map(|one| SymbolLocation::of(one, &index))
            .collect(),
        certain: found.certain,
        notes: notes(&found),
        name: found.name,
        seconds: began.elapsed().as_secs_f64(),
    };
    if args.code.json {
        return print_json(&answer);
    }
    let lines: Vec<Line> = answer
        .definitions
        .iter()
        .map(SymbolLocation::line)
        .collect();
    let printed = print_lines(&lines);
    answer.notes.iter().for_each(note);
    printed
}

fn notes(found: &Definitions) -> Vec<String> {
    let name = &found.name;
    match (found.found.len(), found.certain) {
        (0, _) => vec![format!(
            "{name} has no definition in this project: it may be a variable, or be defined in a library"
        )],
        (_, true) => Vec::new(),
        (1, false) => vec![format!(
            "found only by its name: {name} may refer to another definition"
        )],
        (_, false) => vec![format!(
            "found only by its name: {name} refers to one of these or to another definition"
        )],
    }
}
