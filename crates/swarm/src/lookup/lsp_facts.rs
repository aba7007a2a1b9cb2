//! Replies of a language server about names: uses that are uncertain in the index become certain if
//! the server confirms them. Replies about an outdated text are ignored.

use std::collections::HashMap;
use std::sync::Arc;

use super::Lookup;
use starling_core::NameLocation;
use starling_index::{Certainty, Usage, Usages, is_test_file};
use starling_syntax::{FilePath, SymbolPath, SymbolTree, references};
use starling_text::ContentHash;

/// Uses and overrides that a language server reported, stored by symbol.
#[derive(Debug, Clone, Default)]
pub struct LspFacts {
    uses: HashMap<SymbolPath, Vec<NameLocation>>,
    overrides: HashMap<SymbolPath, Vec<NameLocation>>,
}

impl LspFacts {
    pub fn note_uses(&mut self, symbol: SymbolPath, spots: Vec<NameLocation>) {
        self.uses.insert(symbol, spots);
    }

    pub fn note_overrides(&mut self, symbol: SymbolPath, spots: Vec<NameLocation>) {
        self.overrides.insert(symbol, spots);
    }
}

/// A byte offset in the current text of a file, with the file's symbol tree.
struct CurrentPosition {
    tree: Arc<SymbolTree>,
    at: usize,
}

impl Lookup {
    /// Sets the replies of a language server that later lookups use.
    pub fn with_lsp_facts(self, lsp_facts: Arc<LspFacts>) -> Self {
        Lookup { lsp_facts, ..self }
    }

    /// Returns the one symbol that a name or path refers to; `None` if it is ambiguous or unknown.
    pub fn meant(&self, name: &str) -> Option<SymbolPath> {
        if let Ok(path) = name.trim().parse::<SymbolPath>() {
            return self.symbol(&path).ok().map(|found| found.symbol.path);
        }
        let mut defined = self.index().definitions(name);
        defined
            .pop()
            .filter(|_| defined.is_empty())
            .map(|one| one.symbol)
    }

    /// Returns the uses of a symbol or a name from the index, with those confirmed by a language
    /// server marked as certain.
    pub fn usages(&self, name: &str, most: usize) -> Usages {
        let mut usages = self.index().references(name, most);
        let symbol = self.meant(name);
        let Some(spots) = symbol
            .as_ref()
            .and_then(|symbol| self.lsp_facts.uses.get(symbol))
        else {
            return usages;
        };
        let mut current = self.current(spots);
        for usage in &mut usages.found {
            let is_it = |spot: &CurrentPosition| {
                *spot.tree.file() == usage.file && offset(&spot.tree, usage) == Some(spot.at)
            };
            if let Some(known) = current.iter().position(is_it) {
                usage.certainty = Certainty::Certain;
                current.swap_remove(known);
            }
        }
        let room = most.saturating_sub(usages.found.len());
        let more = current
            .iter()
            .filter_map(|spot| usage(spot, symbol.as_ref()?));
        usages.found.extend(more.take(room));
        usages
            .found
            .sort_by_key(|usage| (usage.certainty, is_test_file(&usage.file)));
        usages
    }

    /// Returns the methods that override a method, according to a language server.
    pub fn overrides(&self, symbol: &SymbolPath) -> Vec<SymbolPath> {
        let spots = self.lsp_facts.overrides.get(symbol).map(Vec::as_slice);
        let current = self.current(spots.unwrap_or_default());
        let mut found = self.named(&current);
        found.retain(|one| one != symbol);
        found
    }

    /// Returns the symbols whose names are at these positions of the current text.
    pub fn symbols_at(&self, spots: &[NameLocation]) -> Vec<SymbolPath> {
        self.named(&self.current(spots))
    }

    fn named(&self, current: &[CurrentPosition]) -> Vec<SymbolPath> {
        let symbol = |spot: &CurrentPosition| {
            let mut all = spot.tree.symbols().iter();
            let found = all.find(|symbol| symbol.name.start == spot.at && !symbol.path.is_module());
            found.map(|symbol| symbol.path.clone())
        };
        current.iter().filter_map(symbol).collect()
    }

    /// Keeps only positions in files that have not changed since the server's reply.
    fn current(&self, spots: &[NameLocation]) -> Vec<CurrentPosition> {
        let mut trees: HashMap<&FilePath, Option<(Arc<SymbolTree>, ContentHash)>> = HashMap::new();
        let mut current = Vec::new();
        for spot in spots {
            let tree = trees.entry(&spot.file).or_insert_with(|| {
                let tree = self.tree(&spot.file).ok()?;
                let hash = ContentHash::of(tree.text());
                Some((tree, hash))
            });
            if let Some((tree, hash)) = tree
                && *hash == spot.of
            {
                let (tree, at) = (Arc::clone(tree), spot.range.start);
                current.push(CurrentPosition { tree, at });
            }
        }
        current
    }
}

/// Returns the byte offset of a use in its file.
fn offset(tree: &SymbolTree, usage: &Usage) -> Option<usize> {
    let start = tree
        .line_starts()
        .get((usage.line as usize).checked_sub(1)?)?;
    Some(start + usage.column as usize)
}

/// Converts a position to a use, if the symbol's own name is at that position.
fn usage(spot: &CurrentPosition, symbol: &SymbolPath) -> Option<Usage> {
    let CurrentPosition { tree, at } = spot;
    let name = symbol.base_name().split('#').next()?;
    let found = references(tree, name);
    let found = found
        .iter()
        .find(|one| one.range.start == *at && !one.is_definition)?;
    let start = *tree
        .line_starts()
        .get((found.line as usize).checked_sub(1)?)?;
    let text = tree.text()[start..].lines().next().unwrap_or_default();
    Some(Usage {
        file: tree.file().clone(),
        line: found.line,
        column: u32::try_from(at - start).ok()?,
        text: text.trim().to_owned(),
        symbol: tree.owner(*at).path.clone(),
        is_call: found.is_call,
        is_import: found.is_import,
        certainty: Certainty::Certain,
    })
}
