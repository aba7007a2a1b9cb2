//! The edits of a rename, and the proposals made from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lookup::Lookup;
use crate::protocol::{Hunk, Pick};
use starling_syntax::{FilePath, Language, Symbol, SymbolId, SymbolPath, SymbolTree};
use starling_text::{ChangeSet, Edit};

/// The edits that replace the old name, grouped by file.
#[derive(Default)]
pub(super) struct Edits(BTreeMap<FilePath, Vec<Edit>>);

impl Edits {
    pub(super) fn replace(&mut self, file: &FilePath, start: usize, old: &str, new: &str) {
        let edit = Edit {
            range: starling_text::ByteRange::new(start, start + old.len()),
            insert: new.to_owned(),
        };
        let edits = self.0.entry(file.clone()).or_default();
        if !edits.contains(&edit) {
            edits.push(edit);
        }
    }

    /// Returns the edits of each file, in order.
    pub(super) fn by_file(mut self) -> BTreeMap<FilePath, Vec<Edit>> {
        for edits in self.0.values_mut() {
            edits.sort_by_key(|edit| edit.range.start);
        }
        self.0
    }

    /// Converts the edits to picks, that is, changes for the owners of the symbols.
    ///
    /// # Errors
    /// Returns a message if the text around an edit does not identify the position of the edit
    /// uniquely.
    pub(super) fn picks(self, lookup: &Lookup, why: &str) -> Result<Vec<Pick>, String> {
        let mut picks = Vec::new();
        for (file, edits) in self.0 {
            let of_file = of_file(lookup, &file, edits, why);
            picks.extend(of_file.ok_or(format!(
                "{file} cannot be changed without a model: an edit is ambiguous"
            ))?);
        }
        Ok(picks)
    }
}

/// Returns the changes of one file: one for each top-level symbol, and one for the edits outside
/// symbols. Returns `None` if the text around an edit does not identify its position uniquely.
fn of_file(lookup: &Lookup, file: &FilePath, mut edits: Vec<Edit>, why: &str) -> Option<Vec<Pick>> {
    let tree: Arc<SymbolTree> = lookup.tree(file).ok()?;
    let text = tree.text();
    edits.sort_by_key(|edit| edit.range.start);
    let outermost = |symbol: &&Symbol| symbol.parent == Some(SymbolId(0));
    let mut picks = Vec::new();
    for symbol in tree.symbols().iter().filter(outermost) {
        let (own, rest): (Vec<Edit>, Vec<Edit>) = edits.into_iter().partition(|edit| {
            symbol.span.start <= edit.range.start && edit.range.end <= symbol.span.end
        });
        edits = rest;
        if own.is_empty() {
            continue;
        }
        let length = own.iter().fold(symbol.span.end, |end, edit| {
            end + edit.insert.len() - (edit.range.end - edit.range.start)
        });
        let after = ChangeSet::new(text.len(), own)?.apply(text).ok()?;
        picks.push(Pick {
            symbol: symbol.path.to_string(),
            why: why.to_owned(),
            source: Some(after.get(symbol.span.start..length)?.to_owned()),
            intended_losses: true,
            ..Pick::default()
        });
    }
    if !edits.is_empty() {
        picks.push(Pick {
            symbol: SymbolPath::module(file.clone()).to_string(),
            why: why.to_owned(),
            hunks: match tree.language() {
                Language::Python => hunks(text, &edits)?,
                // In a document, the same line may occur twice, so that single lines do not
                // identify the edits.
                Language::Plain => hunks(text, &edits).or_else(|| one_hunk(text, &edits))?,
            },
            ..Pick::default()
        });
    }
    Some(picks)
}

/// Combines all edits into one replacement, from the first changed line to the last.
fn one_hunk(text: &str, edits: &[Edit]) -> Option<Vec<Hunk>> {
    let (first, last) = (edits.first()?, edits.last()?);
    let start = text[..first.range.start].rfind('\n').map_or(0, |at| at + 1);
    let rest = &text[last.range.end..];
    let end = last.range.end + rest.find('\n').map_or(rest.len(), |at| at + 1);
    let inside = |edit: &Edit| Edit {
        range: starling_text::ByteRange::new(edit.range.start - start, edit.range.end - start),
        insert: edit.insert.clone(),
    };
    let old = text.get(start..end)?;
    let new = ChangeSet::new(old.len(), edits.iter().map(inside).collect())?;
    let new = new.apply(old).ok()?;
    let is_unique = text.matches(old).count() == 1;
    let old = old.to_owned();
    is_unique.then(|| vec![Hunk { old, new }])
}

/// Converts edits to replacements of whole lines. Returns `None` if the text to replace is not
/// unique.
fn hunks(text: &str, edits: &[Edit]) -> Option<Vec<Hunk>> {
    let line_of = |at: usize| {
        let start = text[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
        (start, end)
    };
    let mut by_line: BTreeMap<(usize, usize), Vec<Edit>> = BTreeMap::new();
    for edit in edits {
        by_line
            .entry(line_of(edit.range.start))
            .or_default()
            .push(edit.clone());
    }
    let mut hunks = Vec::new();
    for ((start, end), edits) in by_line {
        let old = text.get(start..end)?;
        if text.matches(old).count() != 1 {
            return None;
        }
        let inside = |edit: Edit| Edit {
            range: starling_text::ByteRange::new(edit.range.start - start, edit.range.end - start),
            ..edit
        };
        let edits = edits.into_iter().map(inside).collect();
        let new = ChangeSet::new(old.len(), edits)?.apply(old).ok()?;
        hunks.push(Hunk {
            old: old.to_owned(),
            new,
        });
    }
    Some(hunks)
}
