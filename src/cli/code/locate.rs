//! `starling locate`: where a text is about.

use std::collections::HashSet;
use std::time::Instant;

use serde::Serialize;

use super::super::Outcome;
use super::super::view::text::{Line, Style};
use super::args::LocateArgs;
use super::output::{Place, kind_name, note, print_json, print_lines};
use super::{Cache, open, text};
use crate::index::{Index, Located};

/// So many symbols are looked at for each file that is asked for: most of them stand in the same
/// files.
const SYMBOLS_PER_FILE: usize = 40;

#[derive(Debug, Serialize)]
struct Answer {
    symbols: Vec<Symbol>,
    files: Vec<File>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Symbol {
    #[serde(flatten)]
    place: Place,
    score: f64,
    why: Vec<String>,
}

#[derive(Debug, PartialEq, Serialize)]
struct File {
    path: String,
    score: f64,
}

/// Runs the command.
pub fn locate(args: &LocateArgs) -> anyhow::Result<Outcome> {
    let text = text(args.text.text.as_deref(), args.text.file.as_deref())?;
    let began = Instant::now();
    let index = open(&args.code, Cache::Used)?;
    let top = args.top as usize;
    let located = index.locate(&text, top.saturating_mul(SYMBOLS_PER_FILE));
    let files = files(&located, top);
    let symbols: Vec<Symbol> = located
        .into_iter()
        .take(top)
        .filter_map(|found| symbol(found, &index))
        .collect();
    let seconds = began.elapsed().as_secs_f64();
    if args.code.json {
        return print_json(&Answer {
            symbols,
            files,
            seconds,
        });
    }
    if symbols.is_empty() {
        note("nothing in this project fits the text");
    }
    print_lines(&lines(&symbols, &files))
}

fn symbol(found: Located, index: &Index) -> Option<Symbol> {
    let description = index.describe(&found.symbol)?;
    Some(Symbol {
        place: Place::at(&found.symbol, description),
        score: found.score,
        why: found.why,
    })
}

/// The files of the best symbols.
fn files(located: &[Located], top: usize) -> Vec<File> {
    let mut known = HashSet::new();
    let best = located
        .iter()
        .filter(|found| known.insert(&found.symbol.file));
    let file = |found: &Located| File {
        path: found.symbol.file.to_string(),
        score: found.score,
    };
    best.take(top).map(file).collect()
}

fn lines(symbols: &[Symbol], files: &[File]) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, symbol) in (1..).zip(symbols) {
        let Place {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_stands_where_its_best_symbol_stands() {
        let found = |symbol: &str, score| Located {
            symbol: symbol.parse().unwrap(),
            score,
            why: Vec::new(),
        };
        let located = [
            found("b.py::f", 3.0),
            found("b.py::g", 2.0),
            found("a.py::", 1.0),
            found("c.py::", 0.5),
        ];
        let file = |path: &str, score| File {
            path: path.to_owned(),
            score,
        };
        assert_eq!(files(&located, 2), [file("b.py", 3.0), file("a.py", 1.0)]);
    }
}
