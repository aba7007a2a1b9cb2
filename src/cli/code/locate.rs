//! `starling locate`: finds the most relevant symbols and files for a text.

use std::time::Instant;

use serde::Serialize;

use super::super::Outcome;
use super::super::standard::note;
use super::super::view::text::{Line, Style};
use super::args::LocateArgs;
use super::output::{SymbolLocation, kind_name, note_languages, print_json, print_lines};
use super::{open_for_question, text};
use starling_index::{Index, Located, LocatedFile};

/// The JSON output of `starling locate`.
#[derive(Debug, Serialize)]
struct LocateOutput {
    symbols: Vec<RankedSymbol>,
    files: Vec<RankedFile>,
    seconds: f64,
}

/// A symbol in the output of `starling locate`, with its score and the reasons for it.
#[derive(Debug, Serialize)]
struct RankedSymbol {
    #[serde(flatten)]
    place: SymbolLocation,
    score: f64,
    why: Vec<String>,
}

/// A file in the output of `starling locate`, with its score.
#[derive(Debug, PartialEq, Serialize)]
struct RankedFile {
    path: String,
    score: f64,
}

/// Runs the command.
pub fn locate(args: &LocateArgs) -> anyhow::Result<Outcome> {
    let text = text(args.text.text.as_deref(), args.text.file.as_deref())?;
    let began = Instant::now();
    let index = open_for_question(&args.code)?;
    let top = args.top as usize;
    let located = index.locate(&text, top);
    let files = files(&index, &text, top);
    let symbols: Vec<RankedSymbol> = located
        .into_iter()
        .take(top)
        .filter_map(|found| symbol(found, &index))
        .collect();
    let seconds = began.elapsed().as_secs_f64();
    if args.code.json {
        return print_json(&LocateOutput {
            symbols,
            files,
            seconds,
        });
    }
    if symbols.is_empty() {
        note("no symbol or file of this project matches the text");
        note_languages(&index);
    }
    print_lines(&lines(&symbols, &files))
}

fn symbol(found: Located, index: &Index) -> Option<RankedSymbol> {
    let description = index.describe(&found.symbol)?;
    Some(RankedSymbol {
        place: SymbolLocation::at(&found.symbol, description),
        score: found.score,
        why: found.why,
    })
}

fn files(index: &Index, text: &str, top: usize) -> Vec<RankedFile> {
    let located = index.locate_files(text, top).into_iter();
    let file = |found: LocatedFile| RankedFile {
        path: found.file.to_string(),
        score: found.score,
    };
    located.map(file).collect()
}

fn lines(symbols: &[RankedSymbol], files: &[RankedFile]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, symbol) in (1..).zip(symbols) {
        let SymbolLocation {
            path,
            symbol: name,
            kind,
            line,
            signature: _,
            doc: _,
        } = &symbol.place;
        let what = format!("  {}, line {line}, {:.2}", kind_name(*kind), symbol.score);
        let head = Line::plain(&format!("{number:>3}. {path}::"));
        lines.push(head.with(Style::Bold, name).with(Style::Dim, &what));
        if !symbol.why.is_empty() {
            let why = format!("     {}", symbol.why.join("; "));
            lines.push(Line::of(Style::Dim, &why));
        }
    }
    if !files.is_empty() {
        lines.push(Line::of(Style::Bold, "files"));
    }
    for (number, file) in (1..).zip(files) {
        let score = format!("  {:.2}", file.score);
        lines.push(Line::plain(&format!("{number:>3}. {}", file.path)).with(Style::Dim, &score));
    }
    lines
}
