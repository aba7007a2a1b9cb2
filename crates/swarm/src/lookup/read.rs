//! Reads the source of symbols and line ranges, shortened so that all of them fit into one tool
//! result.

use std::fmt::Write as _;
use std::sync::Arc;

use super::{Found, Lookup};
use crate::excerpt::excerpt;
use starling_core::Tokens;
use starling_syntax::{FilePath, Symbol, SymbolPath, signature};

/// Maximum size of the result of one read call.
const READ_CAP: Tokens = Tokens(6_000);
const READ_TARGETS: usize = 8;
/// Maximum length of a line that is shown whole, in characters.
const LINE: usize = 1_000;
/// Number of lines that are read if no last line is given.
const LINES: usize = 120;

/// A target of a read call after its lookup: a symbol, a range of lines, or an unknown target.
enum ReadTarget {
    Symbol(Box<Found>),
    Lines {
        file: String,
        text: Arc<str>,
        first: usize,
        last: usize,
    },
    Unknown(String),
}

impl Lookup {
    /// Returns the source of symbols and line ranges. If a line range does not fit, its first lines
    /// are shown, followed by the lines to read next. A long symbol is shown as an excerpt.
    pub fn read(&self, targets: &[String]) -> String {
        let shared = self.shared(targets);
        let mut texts: Vec<String> = shared
            .iter()
            .map(|(target, most)| self.shown(target, *most))
            .collect();
        if targets.len() > READ_TARGETS {
            let left = targets[READ_TARGETS..].join(", ");
            texts.push(format!(
                "[{READ_TARGETS} are read at once; left: {left}: read them on their own]"
            ));
        }
        texts.join("\n")
    }

    /// Returns the symbols that a read of these targets shows: the named symbols, and the symbols
    /// that lie completely in the shown lines of a range.
    pub fn read_symbols(&self, targets: &[String]) -> Vec<SymbolPath> {
        let mut symbols = Vec::new();
        for (target, most) in self.shared(targets) {
            match target {
                ReadTarget::Symbol(found) => symbols.push(found.symbol.path.clone()),
                ReadTarget::Lines {
                    file,
                    text,
                    first,
                    last,
                } => {
                    let Ok(tree) = self.tree(&FilePath::new(file)) else {
                        continue;
                    };
                    let end = last_shown(&text, first, last, most);
                    let is_shown = |symbol: &&Symbol| {
                        let lines = (symbol.lines.0 as usize, symbol.lines.1 as usize);
                        let is_whole = first == 1 && end >= text.lines().count();
                        match symbol.path.is_module() {
                            true => is_whole,
                            false => first <= lines.0 && lines.1 <= end,
                        }
                    };
                    let shown = tree.symbols().iter().filter(is_shown);
                    symbols.extend(shown.map(|symbol| symbol.path.clone()));
                }
                ReadTarget::Unknown(_) => {}
            }
        }
        symbols
    }

    /// Looks up the targets and assigns each of them a share of the size of the result.
    fn shared(&self, targets: &[String]) -> Vec<(ReadTarget, Tokens)> {
        let read: Vec<ReadTarget> = targets
            .iter()
            .take(READ_TARGETS)
            .map(|target| self.target(self.unquoted(target)))
            .collect();
        let needs: Vec<Tokens> = read.iter().map(ReadTarget::need).collect();
        let shares = shares(&needs, READ_CAP);
        read.into_iter().zip(shares).collect()
    }

    fn target(&self, target: &str) -> ReadTarget {
        if let Ok(path) = target.parse::<SymbolPath>() {
            return match self.symbol(&path) {
                Ok(found) => ReadTarget::Symbol(Box::new(implementation(found))),
                Err(error) => ReadTarget::Unknown(error),
            };
        }
        let (file, range) = match target.rsplit_once(':') {
            Some((file, range)) if range.starts_with(|c: char| c.is_ascii_digit()) => (file, range),
            Some(_) | None => (target, ""),
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first = first.trim().parse::<usize>().unwrap_or(1).max(1);
        let open_end = first.saturating_add(LINES - 1);
        let last = last.trim().parse::<usize>().unwrap_or(open_end).max(first);
        match self.world.read(&FilePath::new(file)) {
            Ok(text) => ReadTarget::Lines {
                file: file.to_owned(),
                last: last.min(text.lines().count()),
                text,
                first,
            },
            Err(error) => ReadTarget::Unknown(error.to_string()),
        }
    }

    fn shown(&self, target: &ReadTarget, most: Tokens) -> String {
        match target {
            ReadTarget::Symbol(found) => {
                let (first, last) = found.symbol.lines;
                let path = &found.symbol.path;
                let source = excerpt(found, self.focus(), most).0;
                let others = same_name(found);
                format!("{path} lines {first}-{last}:\n{source}{others}")
            }
            ReadTarget::Lines {
                file,
                text,
                first,
                last,
            } => lines_shown(file, text, *first, *last, most),
            ReadTarget::Unknown(error) => error.clone(),
        }
    }
}

impl ReadTarget {
    fn need(&self) -> Tokens {
        match self {
            ReadTarget::Symbol(found) => Tokens::estimate(found.source()),
            ReadTarget::Lines {
                text, first, last, ..
            } => text
                .lines()
                .take(*last)
                .skip(first - 1)
                .map(|line| Tokens::estimate(line) + Tokens(2))
                .sum(),
            ReadTarget::Unknown(error) => Tokens::estimate(error),
        }
    }
}

/// Distributes `whole` among texts that need these sizes. A text that fits into an equal share gets
/// what it needs; the other texts share the rest equally.
fn shares(needs: &[Tokens], whole: Tokens) -> Vec<Tokens> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|at| needs[*at]);
    let mut shares = vec![Tokens(0); needs.len()];
    let mut left = whole.0;
    for (done, at) in order.iter().enumerate() {
        let part = left / (needs.len() - done) as u64;
        let last = done + 1 == needs.len();
        shares[*at] = Tokens(if last { left } else { part.min(needs[*at].0) });
        left -= shares[*at].0.min(left);
    }
    shares
}

fn is_overload(symbol: &Symbol) -> bool {
    let decorators = &symbol.contract.decorators;
    decorators
        .iter()
        .any(|decorator| decorator.ends_with("overload"))
}

/// Returns the implementation of a function if the definition that was found is only an overload.
fn implementation(found: Found) -> Found {
    if !is_overload(&found.symbol) || found.symbol.path.name.contains('#') {
        return found;
    }
    let own = namesakes(&found)
        .find(|symbol| !is_overload(symbol))
        .cloned();
    match own {
        Some(symbol) => Found { symbol, ..found },
        None => found,
    }
}

/// Returns the other definitions of a symbol's name in the same scope.
fn namesakes(found: &Found) -> impl Iterator<Item = &Symbol> {
    let bare = |symbol: &Symbol| {
        let name = &symbol.path.name;
        name.split('#').next().unwrap_or(name).to_owned()
    };
    let name = bare(&found.symbol);
    found.tree.symbols().iter().filter(move |symbol| {
        symbol.parent == found.symbol.parent
            && symbol.path != found.symbol.path
            && bare(symbol) == name
    })
}

/// Describes the other definitions of a symbol's name by their signatures.
fn same_name(found: &Found) -> String {
    let mut text = String::new();
    for symbol in namesakes(found).filter(|_| !found.symbol.path.is_module()) {
        let (first, last) = symbol.lines;
        let signature = signature(&found.tree, symbol).replace('\n', " ");
        let _ = writeln!(
            text,
            "also {} lines {first}-{last}: {signature}",
            symbol.path
        );
    }
    text
}

/// Formats lines with their numbers from the first line as far as the cap allows, and names the
/// omitted lines.
fn lines_shown(file: &str, text: &str, first: usize, last: usize, most: Tokens) -> String {
    let mut shown = format!("{file} lines {first}-{last}:\n");
    let end = last_shown(text, first, last, most);
    for (at, line) in text.lines().enumerate().take(end).skip(first - 1) {
        let _ = writeln!(shown, "{:>5} {}", at + 1, cut(line));
    }
    if end < last {
        let next = end + 1;
        let _ = writeln!(
            shown,
            "[lines {next}-{last} are left: read {file}:{next}-{last}]"
        );
    }
    shown
}

/// Returns the last line of a range that fits. At least the first line is shown.
fn last_shown(text: &str, first: usize, last: usize, most: Tokens) -> usize {
    let mut left = most.0;
    for (at, line) in text.lines().enumerate().take(last).skip(first - 1) {
        let cost = Tokens::estimate(&cut(line)).0 + 2;
        if cost > left && at >= first {
            return at;
        }
        left = left.saturating_sub(cost);
    }
    last
}

fn cut(line: &str) -> String {
    line.chars().take(LINE).collect()
}
