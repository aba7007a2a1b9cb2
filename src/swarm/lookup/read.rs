//! Reading: the source of symbols and of ranges of lines, as much of each as one call has room for.

use std::fmt::Write as _;
use std::sync::Arc;

use super::super::excerpt::excerpt;
use super::{Found, Lookup};
use crate::ports::Tokens;
use crate::syntax::{FilePath, Symbol, SymbolPath, signature};

/// The most that one reading call puts into a prompt.
const READ_CAP: Tokens = Tokens(6_000);
const READ_TARGETS: usize = 8;
/// The longest line that is shown whole, in characters.
const LINE: usize = 1_000;
/// Lines that are read where no last one is given.
const LINES: usize = 120;

/// Something to read.
enum Target {
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
    /// The source of symbols and ranges of lines. A range is shown whole as far as there is room and
    /// ends with what to read next; of a long symbol, what matters is shown.
    pub fn read(&self, targets: &[String]) -> String {
        let read: Vec<Target> = targets
            .iter()
            .take(READ_TARGETS)
            .map(|target| self.target(target.trim().trim_matches('`')))
            .collect();
        let needs: Vec<Tokens> = read.iter().map(Target::need).collect();
        let shares = shares(&needs, READ_CAP);
        let mut texts: Vec<String> = read
            .iter()
            .zip(shares)
            .map(|(target, most)| self.shown(target, most))
            .collect();
        if targets.len() > READ_TARGETS {
            let left = targets[READ_TARGETS..].join(", ");
            texts.push(format!(
                "[{READ_TARGETS} are read at once; left: {left}: read them on their own]"
            ));
        }
        texts.join("\n")
    }

    fn target(&self, target: &str) -> Target {
        if let Ok(path) = target.parse::<SymbolPath>() {
            return match self.symbol(&path) {
                Ok(found) => Target::Symbol(Box::new(implementation(found))),
                Err(error) => Target::Unknown(error),
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
            Ok(text) => Target::Lines {
                file: file.to_owned(),
                last: last.min(text.lines().count()),
                text,
                first,
            },
            Err(error) => Target::Unknown(error.to_string()),
        }
    }

    fn shown(&self, target: &Target, most: Tokens) -> String {
        match target {
            Target::Symbol(found) => {
                let (first, last) = found.symbol.lines;
                let path = &found.symbol.path;
                let source = excerpt(found, self.focus(), most).0;
                let others = same_name(found);
                format!("{path} lines {first}-{last}:\n{source}{others}")
            }
            Target::Lines {
                file,
                text,
                first,
                last,
            } => lines_shown(file, text, *first, *last, most),
            Target::Unknown(error) => error.clone(),
        }
    }
}

impl Target {
    fn need(&self) -> Tokens {
        match self {
            Target::Symbol(found) => Tokens::estimate(found.source()),
            Target::Lines {
                text, first, last, ..
            } => text
                .lines()
                .take(*last)
                .skip(first - 1)
                .map(|line| Tokens::estimate(line) + Tokens(2))
                .sum(),
            Target::Unknown(error) => Tokens::estimate(error),
        }
    }
}

/// What each gets of a whole: what it needs where that is no more than its part, else an equal part of
/// what the others leave.
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

/// The one that does the work, where the first of a name is only an overload of it.
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

/// The other definitions of a symbol's name in the same place.
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

/// The other definitions of its name by their signatures.
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

/// Lines with their numbers, from the first on as far as the cap goes; says which are left.
fn lines_shown(file: &str, text: &str, first: usize, last: usize, most: Tokens) -> String {
    let mut shown = format!("{file} lines {first}-{last}:\n");
    let mut left = most.0;
    for (at, line) in text.lines().enumerate().take(last).skip(first - 1) {
        let line: String = line.chars().take(LINE).collect();
        let cost = Tokens::estimate(&line).0 + 2;
        if cost > left && at >= first {
            let next = at + 1;
            let _ = writeln!(
                shown,
                "[lines {next}-{last} are left: read {file}:{next}-{last}]"
            );
            break;
        }
        left = left.saturating_sub(cost);
        let _ = writeln!(shown, "{:>5} {line}", at + 1);
    }
    shown
}
