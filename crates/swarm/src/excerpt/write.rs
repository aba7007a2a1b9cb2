//! Formats the chosen lines of a symbol as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{head_of, lines_of};
use crate::excerpt::found::Found;
use starling_core::Tokens;

/// Maximum length of a line that is shown whole, in characters.
const LINE: usize = 300;

/// Formats chosen lines as source. Each gap is one line that names the omitted lines. If only the
/// head of a nested symbol is shown, the gap line says so.
pub fn source(found: &Found, chosen: &BTreeSet<usize>) -> String {
    let (first, last) = lines_of(found);
    let lines: Vec<&str> = found.tree.text().lines().collect();
    let line = |number: usize| lines.get(number - 1).copied().unwrap_or_default();
    let bodies = hidden_bodies(found, chosen);
    let mut shown = String::new();
    let mut gap: Vec<usize> = Vec::new();
    for number in first..=last {
        let in_body = bodies
            .iter()
            .any(|(head, end)| (head + 1..=*end).contains(&number));
        if !chosen.contains(&number) {
            if !in_body {
                gap.push(number);
            }
            continue;
        }
        write_gap(&mut shown, &gap, &line);
        gap.clear();
        shown.push_str(line(number));
        if let Some((head, end)) = bodies.iter().find(|(head, _)| *head == number) {
            let _ = write!(shown, "  # … lines {}-{end} not shown", head + 1);
        }
        shown.push('\n');
    }
    write_gap(&mut shown, &gap, &line);
    shown
}

/// Returns the nested symbols of which only the head (decorators and signature) is shown: for each,
/// the last line of the head and the last line of the symbol.
fn hidden_bodies(found: &Found, chosen: &BTreeSet<usize>) -> Vec<(usize, usize)> {
    let mut hidden = Vec::new();
    for child in &found.symbol.children {
        let child = found.tree.get(*child);
        let (head, end) = (*head_of(found, child).end(), child.lines.1 as usize);
        let is_hidden =
            chosen.contains(&head) && end > head && chosen.range(head + 1..=end).next().is_none();
        if is_hidden {
            hidden.push((head, end));
        }
    }
    hidden
}

/// Writes a line with the numbers of the omitted lines. If all of them are blank, writes empty lines.
fn write_gap<'t>(shown: &mut String, gap: &[usize], line: &impl Fn(usize) -> &'t str) {
    let says = |number: &&usize| !line(**number).trim().is_empty();
    let (Some(first), Some(last)) = (gap.iter().find(says), gap.iter().rev().find(says)) else {
        gap.iter().for_each(|_| shown.push('\n'));
        return;
    };
    let text = line(*first);
    let indent = &text[..text.len() - text.trim_start().len()];
    let _ = match first == last {
        true => writeln!(shown, "{indent}# … line {first} not shown"),
        false => writeln!(shown, "{indent}# … lines {first}-{last} not shown"),
    };
}

/// Formats the `wanted` lines with their numbers, up to about `most` tokens. Consecutive blank lines
/// become one blank line without a number. Omitted lines become a line with `…`.
pub fn numbered(text: &str, wanted: impl IntoIterator<Item = usize>, most: Tokens) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = String::new();
    let mut before: Option<usize> = None;
    let mut blank = "";
    for number in wanted {
        let Some(line) = number.checked_sub(1).and_then(|at| lines.get(at)) else {
            continue;
        };
        if line.trim().is_empty() {
            if before.is_some_and(|before| before + 1 == number) {
                before = Some(number);
                blank = "\n";
            }
            continue;
        }
        if Tokens::estimate(&shown) > most {
            let _ = writeln!(
                shown,
                "      … from line {number} on not shown: read it by its lines"
            );
            break;
        }
        // After the head of a nested symbol, the gap is already marked.
        let is_gap = before.is_some_and(|before| before + 1 < number);
        shown.push_str(match is_gap {
            true if !is_head(line) => "      …\n",
            true => "",
            false => blank,
        });
        (before, blank) = (Some(number), "");
        let line: String = line.chars().take(LINE).collect();
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
