//! `starling references`: what uses a symbol.

use std::time::Instant;

use serde::Serialize;

use super::super::view::text::{Line, Style};
use super::super::{Outcome, WrongUse};
use super::args::ReferencesArgs;
use super::output::{note, print_json, print_lines};
use super::{file_of, open_for_question};
use starling_index::{Certainty, Index, Usage, Usages};
use starling_syntax::SymbolPath;

/// How many names are offered where one is not there.
const NEAR: usize = 3;
/// Strings that a note names.
const STRINGS: usize = 5;

#[derive(Debug, Serialize)]
struct Answer {
    symbol: SymbolPath,
    references: Vec<Reference>,
    /// Whether these are all.
    complete: bool,
    /// What a reader must know of them; empty when there is nothing to say.
    notes: Vec<String>,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Reference {
    path: String,
    line: u32,
    text: String,
    /// The symbol that it stands in.
    symbol: String,
    call: bool,
    import: bool,
    /// Whether it is a use of this symbol and not of another of its name.
    certainty: Certainty,
}

/// Runs the command.
pub fn references(args: &ReferencesArgs) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let index = open_for_question(&args.code)?;
    let symbol = SymbolPath::new(file_of(&index, &args.symbol.file), args.symbol.name.clone());
    check(&index, &symbol)?;
    let limit = args.top.map_or(usize::MAX, |top| top as usize);
    let usages = index.references(&symbol.to_string(), limit);
    let mut notes = notes(&symbol, &usages);
    notes.extend(in_strings(&index, &symbol));
    let answer = Answer {
        references: usages.found.into_iter().map(reference).collect(),
        complete: usages.complete,
        notes,
        seconds: began.elapsed().as_secs_f64(),
        symbol,
    };
    if args.code.json {
        return print_json(&answer);
    }
    let lines: Vec<Line> = answer.references.iter().map(line).collect();
    let printed = print_lines(&lines);
    answer.notes.iter().for_each(|text| note(text));
    printed
}

/// # Errors
/// The symbol is not there; names what is.
fn check(index: &Index, symbol: &SymbolPath) -> anyhow::Result<()> {
    if index.describe(symbol).is_some() {
        return Ok(());
    }
    let text = index.snapshot().read(&symbol.file);
    text.map_err(|error| WrongUse(error.to_string()))?;
    let (near, _) = index.symbols(&symbol.name, NEAR);
    let near: Vec<String> = near.iter().map(|found| found.symbol.to_string()).collect();
    let advice = match near.is_empty() {
        true => format!("`starling symbols {}` looks for it", symbol.base_name()),
        false => format!("did you mean {}?", near.join(" or ")),
    };
    let message = format!(
        "{}: no symbol is called {}; {advice}",
        symbol.file, symbol.name
    );
    Err(WrongUse(message).into())
}

fn notes(symbol: &SymbolPath, usages: &Usages) -> Vec<String> {
    let mut notes = Vec::new();
    if usages.found.is_empty() && usages.complete {
        notes.push(format!("nothing in this project uses {symbol}"));
    }
    if !usages.complete {
        let count = usages.found.len();
        notes.push(format!("partial: {count} are shown; there are more"));
    }
    let unsure = usages.found.iter().filter(|usage| is_unsure(usage));
    match unsure.count() {
        0 => {}
        count => notes.push(format!(
            "unsure: {count} of these (marked ?) may be uses of another {}",
            symbol.base_name()
        )),
    }
    notes
}

/// The strings by which the symbol may be found at run time.
fn in_strings(index: &Index, symbol: &SymbolPath) -> Option<String> {
    let found = index.in_strings(symbol.base_name());
    let mut places: Vec<String> = found
        .iter()
        .take(STRINGS)
        .map(|one| format!("{}:{}", one.file, one.line))
        .collect();
    if found.len() > STRINGS {
        places.push(format!("{} more", found.len() - STRINGS));
    }
    let name = symbol.base_name();
    let places = places.join(", ");
    (!found.is_empty())
        .then(|| format!("by name: `{name}` also stands in strings, which may mean it: {places}"))
}

fn is_unsure(usage: &Usage) -> bool {
    match usage.certainty {
        Certainty::Certain | Certainty::Likely => false,
        Certainty::Possible => true,
    }
}

fn reference(usage: Usage) -> Reference {
    Reference {
        path: usage.file.to_string(),
        line: usage.line,
        text: usage.text,
        symbol: usage.symbol.name,
        call: usage.is_call,
        import: usage.is_import,
        certainty: usage.certainty,
    }
}

fn line(found: &Reference) -> Line {
    let owner = match found.symbol.as_str() {
        "" => String::new(),
        symbol => format!("  in {symbol}"),
    };
    let mark = match found.certainty {
        Certainty::Certain | Certainty::Likely => "",
        Certainty::Possible => "? ",
    };
    Line::of(Style::Accent, &format!("{}:{}", found.path, found.line))
        .and(&format!(": {mark}{}", found.text))
        .with(Style::Dim, &owner)
}
