//! Parts of a source that a reader should see, with their line numbers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::cite::words;
use crate::ports::Tokens;
use crate::swarm::reading::Found;

/// The first lines of a symbol are shown where possible.
const HEAD: usize = 12;
/// Places in a symbol that bear the terms.
const WINDOWS: usize = 12;

/// Lines with their numbers, as far as the cap goes. Blank lines are left out; a gap is one line of its
/// own.
pub fn numbered(text: &str, wanted: impl IntoIterator<Item = usize>, most: Tokens) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = String::new();
    let mut before: Option<usize> = None;
    for number in wanted {
        let Some(line) = number.checked_sub(1).and_then(|at| lines.get(at)) else {
            continue;
        };
        if line.trim().is_empty() {
            // It is no gap that it is not there.
            before = before.map(|before| before + usize::from(before + 1 == number));
            continue;
        }
        if Tokens::estimate(&shown) > most {
            let _ = writeln!(
                shown,
                "      … from line {number} on not shown: read it by its lines"
            );
            break;
        }
        // The head of a nested symbol tells by itself that something is left out before it.
        if before.is_some_and(|before| before + 1 < number) && !is_head(line) {
            shown.push_str("      …\n");
        }
        before = Some(number);
        let line: String = line.chars().take(300).collect();
        let _ = writeln!(shown, "{number:>5} {line}");
    }
    shown
}

fn is_head(line: &str) -> bool {
    let line = line.trim_start();
    ["def ", "async def ", "class "]
        .iter()
        .any(|head| line.starts_with(head))
}

/// The lines of a symbol that are shown: all; or all but the docstrings; or the head, what is around
/// the lines with the most of the terms, and the heads of its children.
pub fn chosen(found: &Found, terms: &BTreeSet<String>, most: Tokens) -> BTreeSet<usize> {
    let (first, last) = (found.symbol.lines.0 as usize, found.symbol.lines.1 as usize);
    let lines: Vec<&str> = found.tree.text().lines().collect();
    let line = |number: usize| {
        let line = number.checked_sub(1).and_then(|at| lines.get(at));
        line.copied().unwrap_or_default()
    };
    let cost = |number: usize| Tokens::estimate(line(number)).0 + 2;
    let others = match found.symbol.path.is_module() {
        true => inside_children(found),
        false => BTreeSet::new(),
    };
    let own = || (first..=last).filter(|number| !others.contains(number));
    if own().map(cost).sum::<u64>() <= most.0 {
        return own().collect();
    }
    let docs = docstrings(&lines, first, last);
    let code = || own().filter(|number| !docs.contains(number));
    if code().map(cost).sum::<u64>() <= most.0 {
        return code().collect();
    }
    let mut left = most.0;
    let mut chosen = BTreeSet::new();
    // A window is shown whole or not at all.
    let mut take = |wanted: Vec<usize>| {
        let new: Vec<usize> = wanted.into_iter().filter(|n| !chosen.contains(n)).collect();
        if let Some(rest) = left.checked_sub(new.iter().copied().map(cost).sum()) {
            left = rest;
            chosen.extend(new);
        }
    };
    take(code().take(HEAD).collect());
    let mut by_terms: Vec<(usize, usize)> = own()
        .map(|number| (words(line(number)).intersection(terms).count(), number))
        .filter(|(shared, _)| *shared > 0)
        .collect();
    by_terms.sort_by_key(|(shared, number)| {
        (std::cmp::Reverse(*shared), docs.contains(number), *number)
    });
    for (_, number) in by_terms.into_iter().take(WINDOWS) {
        // A docstring says much the same all over; of code the lines around matter.
        let (above, below) = match docs.contains(&number) {
            true => (0, 1),
            false => (4, 8),
        };
        let (from, to) = (
            number.saturating_sub(above).max(first),
            (number + below).min(last),
        );
        take((from..=to).filter(|n| !others.contains(n)).collect());
    }
    for child in &found.symbol.children {
        let child = found.tree.get(*child);
        take(vec![found.tree.text()[..child.name.start].lines().count()]);
    }
    for number in code() {
        take(vec![number]);
    }
    chosen
}

/// The lines of a symbol that belong to its children, those of their names aside.
fn inside_children(found: &Found) -> BTreeSet<usize> {
    let mut inside = BTreeSet::new();
    for child in &found.symbol.children {
        let child = found.tree.get(*child);
        inside.extend(child.lines.0 as usize..=child.lines.1 as usize);
        inside.remove(&found.tree.text()[..child.name.start].lines().count());
    }
    inside
}

/// The lines of docstrings behind their first.
fn docstrings(lines: &[&str], first: usize, last: usize) -> BTreeSet<usize> {
    let mut inside: Option<&str> = None;
    let mut found = BTreeSet::new();
    for number in first..=last {
        let line = lines.get(number - 1).map_or("", |line| line.trim());
        match inside {
            Some(quotes) => {
                found.insert(number);
                if line.ends_with(quotes) {
                    inside = None;
                }
            }
            None => {
                let text = line.trim_start_matches(['r', 'R', 'u', 'U']);
                let quotes = ["\"\"\"", "'''"];
                let opens = quotes.into_iter().find(|quotes| text.starts_with(quotes));
                inside = opens.filter(|quotes| text.matches(quotes).count() == 1);
            }
        }
    }
    found
}
