//! Selects the content of a repository map: many files with their best symbol each, then more
//! symbols of the most relevant files.

use super::super::code::Code;
use super::sheet::FileDraft;
use super::{MapFile, RankedFile};

/// Share of the budget for listing files with one symbol each, in per cent. A higher value lists
/// more files, a lower value shows more symbols of the best files. On the tuning half of SWE-bench
/// Lite, this value loses few of the files that a task edits and shows most of the edited symbols.
const BREADTH: usize = 40;
/// Controls how fast the value of files falls with their rank. With 1, the second file is worth
/// half of the first, the third file a third.
const LEVEL: f64 = 1.0;

/// Returns files in the order of `ranked`, each with the symbols that the map shows.
pub(super) fn choose(code: &Code, ranked: &[RankedFile], tokens: usize) -> Vec<MapFile> {
    let mut left = tokens;
    let share = tokens.saturating_mul(BREADTH) / 100;
    let mut sheets = list(code, ranked, share, &mut left);
    deepen(&mut sheets, &mut left);
    sheets.into_iter().map(FileDraft::finish).collect()
}

/// Lists files with their best symbol each until `share` is spent. The first file may use the whole
/// budget.
fn list<'c>(
    code: &'c Code,
    ranked: &[RankedFile],
    share: usize,
    left: &mut usize,
) -> Vec<FileDraft<'c>> {
    let floor = left.saturating_sub(share);
    let mut sheets = Vec::new();
    for file in ranked {
        let mut sheet = FileDraft::open(code, file);
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

/// Shows the next symbol that fits into the budget. Returns `false` if no symbol fits.
fn show_next(sheet: &mut FileDraft<'_>, left: &mut usize) -> bool {
    while let Some(step) = sheet.next() {
        if let Some(after) = left.checked_sub(step.tokens) {
            *left = after;
            sheet.take(step);
            return true;
        }
    }
    false
}

/// Spends the rest of the budget on further symbols. Each step goes to the file with the highest
/// value relative to the number of its symbols that are already shown.
fn deepen(sheets: &mut [FileDraft<'_>], left: &mut usize) {
    let mut open: Vec<usize> = (0..sheets.len()).collect();
    let worth = |sheets: &[FileDraft<'_>], place: usize| {
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
