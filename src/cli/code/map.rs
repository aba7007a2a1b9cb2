//! `starling map`: prints the repository map.

use std::time::Instant;

use serde::Serialize;

use super::super::Outcome;
use super::super::standard::note;
use super::super::view::text::{Line, Style};
use super::super::view::words;
use super::args::MapArgs;
use super::output::{note_languages, print_json, print_lines};
use super::{open_for_question, text};
use starling_index::{MapFile, MapSymbol, RepositoryMap, Seed};
use starling_syntax::SymbolKind;

/// The JSON output of `starling map`.
#[derive(Debug, Serialize)]
struct MapOutput {
    /// The map as printed without `--json`.
    map: String,
    tokens: usize,
    files: Vec<MapOutputFile>,
    /// Number of files that did not fit.
    left_out: usize,
    seconds: f64,
}

/// A file in the JSON output of `starling map`.
#[derive(Debug, Serialize)]
struct MapOutputFile {
    path: String,
    score: f64,
    symbols: Vec<MapOutputSymbol>,
    left_out: usize,
}

/// A symbol in the JSON output of `starling map`.
#[derive(Debug, Serialize)]
struct MapOutputSymbol {
    symbol: String,
    kind: SymbolKind,
    line: u32,
    signature: String,
}

/// Runs the command.
pub fn map(args: &MapArgs) -> anyhow::Result<Outcome> {
    let text = match (&args.query, &args.file) {
        (None, None) => None,
        (query, file) => Some(text(query.as_deref(), file.as_deref())?),
    };
    let began = Instant::now();
    let index = open_for_question(&args.code)?;
    let seed = text.as_deref().map_or(Seed::Central, Seed::Text);
    let map = index.repository_map(seed, args.tokens as usize);
    let seconds = began.elapsed().as_secs_f64();
    if args.code.json {
        return print_json(&answer(map, seconds));
    }
    if map.files.is_empty() {
        note("no file of this project matches, or the token limit is too small (--tokens)");
        note_languages(&index);
    }
    let lines: Vec<Line> = map.to_string().lines().map(line).collect();
    let printed = print_lines(&lines);
    if map.left_out > 0 && !map.files.is_empty() {
        let files = words::count(map.left_out as u64, "more file");
        note(format_args!(
            "left out: {files}, because of the token limit (--tokens)"
        ));
    }
    printed
}

fn answer(map: RepositoryMap, seconds: f64) -> MapOutput {
    MapOutput {
        map: map.to_string(),
        tokens: map.tokens,
        left_out: map.left_out,
        files: map.files.into_iter().map(file).collect(),
        seconds,
    }
}

fn file(file: MapFile) -> MapOutputFile {
    MapOutputFile {
        path: file.file.to_string(),
        score: file.score,
        symbols: file.symbols.into_iter().map(symbol).collect(),
        left_out: file.left_out,
    }
}

fn symbol(symbol: MapSymbol) -> MapOutputSymbol {
    MapOutputSymbol {
        symbol: symbol.symbol.name,
        kind: symbol.kind,
        line: symbol.line,
        signature: symbol.signature,
    }
}

fn line(text: &str) -> Line {
    match text.starts_with(' ') {
        true => Line::plain(text),
        false => Line::of(Style::Bold, text),
    }
}
