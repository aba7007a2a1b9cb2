//! The edits of a rename, and the proposals made from them.

use std::collections::BTreeMap;

use crate::lookup::Lookup;
use crate::protocol::{Hunk, Pick};
use starling_syntax::{FilePath, SymbolId, SymbolPath, SymbolTree};
use starling_text::{ByteRange, ChangeSet, Edit};

/// The edits that replace the old name, grouped by file.
#[derive(Default)]
pub(super) struct Edits(BTreeMap<FilePath, Vec<Edit>>);

impl Edits {
    pub(super) fn replace(&mut self, file: &FilePath, start: usize, old: &str, new: &str) {
        let edit = Edit {
            range: ByteRange::new(start, start + old.len()),
            insert: new.to_owned(),
        };
        let edits = self.0.entry(file.clone()).or_default();
        if !edits.contains(&edit) {
            edits.push(edit);
        }
    }

    /// Removes the edits in symbols that are deleted.
    pub(super) fn leave_out(&mut self, lookup: &Lookup, gone: &[SymbolPath]) {
        for found in gone.iter().filter_map(|one| lookup.symbol(one).ok()) {
            if let Some(edits) = self.0.get_mut(found.tree.file()) {
                edits.retain(|edit| !found.symbol.span.covers(edit.range));
            }
        }
        self.0.retain(|_, edits| !edits.is_empty());
    }

    /// Returns the edits of each file, in order.
    pub(super) fn by_file(mut self) -> BTreeMap<FilePath, Vec<Edit>> {
        for edits in self.0.values_mut() {
            edits.sort_by_key(|edit| edit.range.start);
        }
        self.0
    }

    /// Converts the edits to picks, that is, changes for the owners of the files.
    ///
    /// # Errors
    /// Returns a message if a symbol or the text around an edit occurs twice in its file, so that the
    /// position of the edit cannot be told.
    pub(super) fn picks(self, lookup: &Lookup, why: &str) -> Result<Vec<Pick>, String> {
        let one = |(file, edits): (FilePath, Vec<Edit>)| {
            let tree = lookup.tree(&file)?;
            let hunks = hunks(&tree, &edits).ok_or(format!(
                "{file} cannot be changed without a model: an edit is ambiguous"
            ))?;
            Ok(Pick {
                symbol: SymbolPath::module(file).to_string(),
                why: why.to_owned(),
                hunks,
                intended_losses: true,
                ..Pick::default()
            })
        };
        self.by_file().into_iter().map(one).collect()
    }
}

/// Converts edits, which are in order, to replacements of whole lines. Each of them contains as many
/// lines around its edits as it takes to occur once in the file, and does not leave the symbol at the
/// top level that it begins in. Returns `None` if the text of that whole symbol occurs twice.
fn hunks(tree: &SymbolTree, edits: &[Edit]) -> Option<Vec<Hunk>> {
    let text = tree.text();
    let mut ranges: Vec<ByteRange> = Vec::new();
    for edit in edits {
        let range = unique_lines(text, edit.range, region(tree, edit.range))?;
        match ranges.last_mut() {
            Some(last) if range.start < last.end => {
                last.start = last.start.min(range.start);
                last.end = last.end.max(range.end);
            }
            Some(_) | None => ranges.push(range),
        }
    }
    let mut hunks = Vec::new();
    for range in ranges {
        let inside = edits.iter().filter(|edit| range.covers(edit.range));
        let moved = inside.map(|edit| Edit {
            range: ByteRange::new(edit.range.start - range.start, edit.range.end - range.start),
            insert: edit.insert.clone(),
        });
        let old = range.of(text);
        let new = ChangeSet::new(old.len(), moved.collect())?
            .apply(old)
            .ok()?;
        hunks.push(Hunk {
            old: old.to_owned(),
            new,
        });
    }
    Some(hunks)
}

/// Returns the symbol at the top level that contains a range, or else the lines between two such
/// symbols.
fn region(tree: &SymbolTree, range: ByteRange) -> ByteRange {
    let mut region = ByteRange::new(0, tree.text().len());
    let outermost = tree.symbols().iter();
    for symbol in outermost.filter(|symbol| symbol.parent == Some(SymbolId(0))) {
        if symbol.span.covers(range) {
            return symbol.span;
        }
        if symbol.span.end <= range.start {
            region.start = region.start.max(symbol.span.end);
        } else if range.end <= symbol.span.start {
            region.end = region.end.min(symbol.span.start);
        }
    }
    region
}

/// Returns the lines of a range, with as many lines of the region around them as it takes for their text
/// to occur once.
fn unique_lines(text: &str, range: ByteRange, region: ByteRange) -> Option<ByteRange> {
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |at| at + 1);
    let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    let mut lines = ByteRange::new(
        line_start(range.start).max(region.start),
        line_end(range.end).min(region.end),
    );
    loop {
        let mut found = text.match_indices(lines.of(text));
        if found.next().is_some() && found.next().is_none() {
            return Some(lines);
        }
        let before = lines;
        lines.start = line_start(lines.start.saturating_sub(1)).max(region.start);
        if lines.end < region.end {
            lines.end = line_end(lines.end).min(region.end);
        }
        if lines == before {
            return None;
        }
    }
}
