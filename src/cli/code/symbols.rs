//! `starling symbols`: finds symbols by parts of their names.

use std::time::Instant;

use serde::Serialize;

use super::super::standard::note;
use super::super::view::text::Line;
use super::super::view::words;
use super::super::{Outcome, WrongUse};
use super::args::SymbolsArgs;
use super::open_for_question;
use super::output::{SymbolLocation, note_languages, print_json, print_lines};
use starling_index::Index;

/// The JSON output of `starling symbols`.
#[derive(Debug, Serialize)]
struct SymbolsOutput {
    symbols: Vec<SymbolLocation>,
    /// Total number of matching symbols, including those in `symbols`.
    total: usize,
    /// Whether the list is complete.
    complete: bool,
    seconds: f64,
}

/// Returns the paths of the variables of modules that have this name.
fn variables(index: &Index, name: &str) -> Vec<String> {
    let variables = index.variables(name).into_iter();
    let paths = variables.map(|one| format!("{}::{}", one.file, one.name));
    paths.collect()
}

/// Runs the command.
pub fn symbols(args: &SymbolsArgs) -> anyhow::Result<Outcome> {
    if args.query.trim().is_empty() {
        let message = "the query is empty: give a name, or parts of a name";
        return Err(WrongUse(message.to_owned()).into());
    }
    let began = Instant::now();
    let index = open_for_question(&args.code)?;
    let (found, total) = index.symbols(&args.query, args.top as usize);
    let answer = SymbolsOutput {
        complete: found.len() == total,
        symbols: found
            .iter()
            .map(|one| SymbolLocation::of(one, &index))
            .collect(),
        total,
        seconds: began.elapsed().as_secs_f64(),
    };
    if args.code.json {
        return print_json(&answer);
    }
    let lines: Vec<Line> = answer.symbols.iter().map(SymbolLocation::line).collect();
    let printed = print_lines(&lines);
    match (answer.total, answer.complete) {
        (0, _) if !variables(&index, &args.query).is_empty() => note(format_args!(
            "{} is no function, method or class, but a variable of a module: {}",
            args.query,
            words::few(&variables(&index, &args.query))
        )),
        (0, _) => {
            note(format_args!(
                "no symbol has a name similar to {}",
                args.query
            ));
            note_languages(&index);
        }
        (total, false) => note(format_args!(
            "showing the best {} of {total} symbols",
            lines.len()
        )),
        (_, true) => {}
    }
    printed
}
