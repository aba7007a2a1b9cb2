//! `starling references`: lists the uses of a symbol.

use std::collections::BTreeSet;
use std::time::Instant;

use serde::Serialize;

use super::super::standard::note;
use super::super::view::text::{Line, Style};
use super::super::view::words;
use super::super::{Outcome, WrongUse};
use super::args::ReferencesArgs;
use super::output::{print_json, print_lines};
use super::{file_of, open_for_question};
use starling_index::{Certainty, Index, Usage, Usages, is_test_file};
use starling_syntax::{BadSymbolPath, FilePath, SymbolPath};
use starling_workspace::Snapshot;

/// Number of similar names to suggest for an unknown symbol.
const NEAR: usize = 3;
/// Maximum number of strings to list in a note.
const STRINGS: usize = 5;

/// The JSON output of `starling references`.
#[derive(Debug, Serialize)]
struct ReferencesOutput {
    symbol: SymbolPath,
    references: Vec<Reference>,
    /// Whether the list is complete.
    complete: bool,
    /// Remarks about the references; empty if there are none.
    notes: Vec<String>,
    seconds: f64,
}

/// A reference to the symbol, in the JSON output of `starling references`.
#[derive(Debug, Serialize)]
struct Reference {
    path: String,
    line: u32,
    /// The column in characters, from 1.
    column: u32,
    text: String,
    /// The symbol that contains the reference.
    symbol: String,
    call: bool,
    import: bool,
    /// The certainty that this is a use of the symbol and not of another with the same name.
    certainty: Certainty,
}

/// Runs the command.
pub fn references(args: &ReferencesArgs) -> anyhow::Result<Outcome> {
    let began = Instant::now();
    let index = open_for_question(&args.code)?;
    let symbol = meant(&index, &args.symbol)?;
    let limit = args.top.map_or(usize::MAX, |top| top as usize);
    let usages = match variable(&index, &symbol) {
        Some(usages) => limited(usages, limit),
        None => {
            check(&index, &symbol)?;
            index.references(&symbol.to_string(), limit)
        }
    };
    let mut notes = notes(&symbol, &usages, limit);
    notes.extend(in_strings(&index, &symbol));
    let snapshot = index.snapshot();
    let answer = ReferencesOutput {
        references: usages
            .found
            .into_iter()
            .map(|usage| reference(snapshot, usage))
            .collect(),
        complete: usages.complete,
        notes,
        seconds: began.elapsed().as_secs_f64(),
        symbol,
    };
    if args.code.json {
        return print_json(&answer);
    }
    let mut places = BTreeSet::new();
    let mut shown: Vec<&Reference> = answer.references.iter().collect();
    shown.retain(|one| places.insert((&one.path, one.line)));
    let lines: Vec<Line> = shown.into_iter().map(line).collect();
    let printed = print_lines(&lines);
    answer.notes.iter().for_each(note);
    printed
}

/// Returns the uses of a variable of a module; `None` if this path is not that of a variable.
fn variable(index: &Index, path: &SymbolPath) -> Option<Usages> {
    if index.describe(path).is_some() {
        return None;
    }
    let variable = index.variables(&path.to_string()).into_iter().next()?;
    index.variable_uses(&variable)
}

fn limited(mut usages: Usages, limit: usize) -> Usages {
    usages.complete &= usages.found.len() <= limit;
    usages.found.truncate(limit);
    usages
}

/// Finds a symbol or a variable of a module by its path, or by its name if the name is unique. Symbols in
/// tests count only if no other code has the name.
///
/// # Errors
/// The name is unknown or ambiguous.
fn meant(index: &Index, text: &str) -> anyhow::Result<SymbolPath> {
    let name = text.trim();
    if name.contains("::") {
        let path: SymbolPath = name
            .parse()
            .map_err(|error: BadSymbolPath| WrongUse(error.to_string()))?;
        return Ok(SymbolPath::new(file_of(index, &path.file), path.name));
    }
    let is_called_so = |symbol: &SymbolPath| {
        let before = symbol.name.strip_suffix(name);
        !name.is_empty() && before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    let all = index
        .definitions(name)
        .into_iter()
        .map(|found| found.symbol);
    let mut all: Vec<SymbolPath> = all.filter(is_called_so).collect();
    if all.is_empty() {
        let variables = index.variables(name).into_iter();
        all.extend(variables.map(|one| SymbolPath::new(one.file, one.name)));
    }
    if all.iter().any(|symbol| !is_test_file(&symbol.file)) {
        all.retain(|symbol| !is_test_file(&symbol.file));
    }
    // A stub describes the symbol of its module, so it is not another symbol.
    let known = all.clone();
    all.retain(|symbol| {
        let module = symbol.file.as_str().strip_suffix('i').map(FilePath::new);
        let is_it =
            |other: &SymbolPath| Some(&other.file) == module.as_ref() && other.name == symbol.name;
        !symbol.file.as_str().ends_with(".pyi") || !known.iter().any(is_it)
    });
    match all.as_slice() {
        [only] => Ok(only.clone()),
        [] => {
            let path = BadSymbolPath(text.to_owned());
            let message = format!("{path}, or the name of a symbol of the project");
            Err(WrongUse(message).into())
        }
        several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            let names = words::few(&names);
            let message = format!(
                "{} symbols have the name {name}; give the path of one of them: {names}",
                several.len()
            );
            Err(WrongUse(message).into())
        }
    }
}

/// # Errors
/// The symbol does not exist. The error lists similar names.
fn check(index: &Index, symbol: &SymbolPath) -> anyhow::Result<()> {
    if index.describe(symbol).is_some() {
        return Ok(());
    }
    let text = index.snapshot().read(&symbol.file);
    text.map_err(|error| WrongUse(error.to_string()))?;
    let (near, _) = index.symbols(&symbol.name, NEAR);
    let near: Vec<String> = near.iter().map(|found| found.symbol.to_string()).collect();
    let advice = match near.is_empty() {
        true => format!("`starling symbols {}` searches for it", symbol.base_name()),
        false => format!("did you mean {}?", near.join(" or ")),
    };
    let message = format!(
        "{} has no symbol named {}; {advice}",
        symbol.file, symbol.name
    );
    Err(WrongUse(message).into())
}

fn notes(symbol: &SymbolPath, usages: &Usages, limit: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if usages.found.is_empty() && usages.complete {
        notes.push(format!("this project has no reference to {symbol}"));
    }
    let count = usages.found.len();
    let are = if count == 1 { "is" } else { "are" };
    match usages.complete {
        true => {}
        false if count >= limit => {
            notes.push(format!("partial: {count} {are} shown; there are more"));
        }
        false => notes.push(format!(
            "{count} {are} found, but the list may be incomplete: not all names of this code can be resolved"
        )),
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

/// Returns a note about strings through which the symbol may be used at run time.
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
    (!found.is_empty()).then(|| {
        format!("`{name}` also occurs in strings that may refer to it at run time: {places}")
    })
}

fn is_unsure(usage: &Usage) -> bool {
    match usage.certainty {
        Certainty::Certain | Certainty::Likely => false,
        Certainty::Possible => true,
    }
}

fn reference(snapshot: &Snapshot, usage: Usage) -> Reference {
    Reference {
        column: column(snapshot, &usage),
        path: usage.file.to_string(),
        line: usage.line,
        text: usage.text,
        symbol: usage.symbol.name,
        call: usage.is_call,
        import: usage.is_import,
        certainty: usage.certainty,
    }
}

/// Returns the column of a use in characters, from 1.
fn column(snapshot: &Snapshot, usage: &Usage) -> u32 {
    let text = snapshot.read(&usage.file).unwrap_or_default();
    let line = text.lines().nth((usage.line as usize).saturating_sub(1));
    let before = line.and_then(|line| line.get(..usage.column as usize));
    let before = before.map_or(usage.column as usize, |before| before.chars().count());
    u32::try_from(before).map_or(u32::MAX, |before| before.saturating_add(1))
}

fn line(found: &Reference) -> Line {
    let owner = match found.symbol.as_str() {
        "" => String::new(),
        symbol => format!("  in {symbol}"),
    };
    let (mark, likely) = match found.certainty {
        Certainty::Certain => ("", ""),
        Certainty::Likely => ("", "  (likely)"),
        Certainty::Possible => ("? ", ""),
    };
    let Reference {
        path, line, column, ..
    } = found;
    Line::of(Style::Accent, &format!("{path}:{line}:{column}"))
        .and(&format!(": {mark}{}", found.text))
        .with(Style::Dim, &format!("{owner}{likely}"))
}
