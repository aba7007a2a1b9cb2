//! What a map shows: many files by their best symbol, then more of those that matter most.

use super::super::code::Code;
use super::sheet::Sheet;
use super::{MapFile, Ranked};

/// How much of the budget goes to listing files with one symbol each, in per cent. More lists more
/// files, less shows more of the symbols that matter: on the tuning half of SWE-bench Lite, this much
/// costs few of the files that a task edits and shows most of the symbols.
const BREADTH: usize = 40;
/// The second file is worth half of the first, the third a third.
const LEVEL: f64 = 1.0;

/// The files of `ranked` in its order, with what is shown of each.
pub(super) fn choose(code: &Code, ranked: &[Ranked], tokens: usize) -> Vec<MapFile> {
    let mut left = tokens;
    let share = tokens.saturating_mul(BREADTH) / 100;
    let mut sheets = list(code, ranked, share, &mut left);
    deepen(&mut sheets, &mut left);
    sheets.into_iter().map(Sheet::finish).collect()
}

/// Files with their best symbol each, until `share` is spent. The first one may cost all that is left.
fn list<'c>(code: &'c Code, ranked: &[Ranked], share: usize, left: &mut usize) -> Vec<Sheet<'c>> {
    let floor = left.saturating_sub(share);
    let mut sheets = Vec::new();
    for file in ranked {
        let mut sheet = Sheet::open(code, file);
        if sheet.is_blank() {
            continue;
        }
        let Some(after) = left.checked_sub(sheet.heading_tokens()) else {
            break;
        };
        if after < floor && !sheets.is_empty() {
            break;
        }
        *left = after;
        show_next(&mut sheet, left);
        sheets.push(sheet);
    }
    sheets
}

/// Shows the next symbol that fits; `false` where none does.
fn show_next(sheet: &mut Sheet<'_>, left: &mut usize) -> bool {
    while let Some(step) = sheet.next() {
        if let Some(after) = left.checked_sub(step.tokens) {
            *left = after;
            sheet.take(step);
            return true;
        }
    }
    false
}

/// Spends what is left on the file that is worth most next to what is shown of it already.
fn deepen(sheets: &mut [Sheet<'_>], left: &mut usize) {
    let mut open: Vec<usize> = (0..sheets.len()).collect();
    let worth = |sheets: &[Sheet<'_>], place: usize| {
        1.0 / (LEVEL + place as f64) / (1.0 + sheets[place].shown() as f64)
    };
    while let Some(at) =
        (0..open.len()).max_by(|a, b| worth(sheets, open[*a]).total_cmp(&worth(sheets, open[*b])))
    {
        if !show_next(&mut sheets[open[at]], left) {
            open.remove(at);
        }
    }
}
