//! One file of the repository map while its content is being selected.

use std::collections::{BTreeMap, HashSet, VecDeque};

use super::super::code::{Code, FileId, SymbolNumber, base_name};
use super::super::facts::Field;
use super::super::tokens::count_tokens;
use super::{MapFile, MapSymbol, RankedFile, heading, line};
use starling_syntax::SymbolPath;

/// Maximum length of a signature, in bytes. Longer signatures are truncated.
const SIGNATURE_BYTES: usize = 90;

/// A file of the map with its shown symbols and the queue of symbols that can be shown next.
pub(super) struct FileDraft<'c> {
    code: &'c Code,
    file: FileId,
    score: f64,
    shown: BTreeMap<SymbolNumber, MapSymbol>,
    waiting: VecDeque<SymbolNumber>,
}

/// The next addition to a file of the map: a symbol with those enclosing symbols that are not shown
/// yet, and the number of tokens of their lines.
pub(super) struct DraftStep {
    symbols: Vec<(SymbolNumber, MapSymbol)>,
    pub(super) tokens: usize,
}

impl<'c> FileDraft<'c> {
    /// Starts a file that shows only its heading.
    pub(super) fn open(code: &'c Code, ranked: &RankedFile) -> FileDraft<'c> {
        FileDraft {
            code,
            file: ranked.file,
            score: ranked.score,
            shown: BTreeMap::new(),
            waiting: in_order(code, ranked),
        }
    }

    /// Returns whether the file contains no code, like many an `__init__.py`.
    pub(super) fn is_blank(&self) -> bool {
        let code_words = |number| self.code.lengths(number)[Field::Code as usize];
        let mut symbols = self.code.symbols_of(self.file);
        let body = symbols.next();
        symbols.next().is_none() && body.is_none_or(|body| code_words(body) == 0)
    }

    pub(super) fn heading_tokens(&self) -> usize {
        count_tokens(&heading(self.code.path(self.file)))
    }

    pub(super) fn shown(&self) -> usize {
        self.shown.len()
    }

    /// Returns the next step, or `None` if no symbol is left.
    pub(super) fn next(&mut self) -> Option<DraftStep> {
        while let Some(number) = self.waiting.pop_front() {
            if !self.shown.contains_key(&number) {
                return Some(self.step(number));
            }
        }
        None
    }

    pub(super) fn take(&mut self, step: DraftStep) {
        self.shown.extend(step.symbols);
    }

    fn step(&self, number: SymbolNumber) -> DraftStep {
        let chain = around(self.code, number);
        let new = chain.filter(|number| !self.shown.contains_key(number));
        let symbols: Vec<_> = new.map(|number| (number, self.symbol(number))).collect();
        let tokens = symbols
            .iter()
            .map(|(_, symbol)| count_tokens(&line(symbol)))
            .sum();
        DraftStep { symbols, tokens }
    }

    fn symbol(&self, number: SymbolNumber) -> MapSymbol {
        let symbol = self.code.symbol(number);
        // Decorators are on the lines before the definition.
        let last = symbol.signature.lines().last().unwrap_or_default().trim();
        MapSymbol {
            symbol: SymbolPath::new(self.code.path(self.file).clone(), symbol.name),
            kind: symbol.kind,
            line: symbol.line,
            depth: around(self.code, number).count() - 1,
            signature: cut(last),
        }
    }

    pub(super) fn finish(self) -> MapFile {
        let symbols = self.code.symbols_of(self.file).count() - 1;
        MapFile {
            file: self.code.path(self.file).clone(),
            score: self.score,
            left_out: symbols - self.shown.len(),
            symbols: self.shown.into_values().collect(),
        }
    }
}

/// Returns a symbol and its enclosing symbols, without the module body.
fn around(code: &Code, number: SymbolNumber) -> impl Iterator<Item = SymbolNumber> {
    let chain = std::iter::successors(Some(number), |number| code.parent(*number));
    chain.filter(|number| code.parent(*number).is_some())
}

/// Returns the relevant symbols, then all other symbols: outer symbols first and private ones last.
fn in_order(code: &Code, ranked: &RankedFile) -> VecDeque<SymbolNumber> {
    let own = |number: &SymbolNumber| code.parent(*number).is_some();
    let known: HashSet<SymbolNumber> = ranked.symbols.iter().copied().collect();
    let others = code.symbols_of(ranked.file).filter(own);
    let mut rest: Vec<SymbolNumber> = others.filter(|number| !known.contains(number)).collect();
    rest.sort_by_key(|number| {
        let name = code.symbol(*number).name;
        (base_name(name).starts_with('_'), name.matches('.').count())
    });
    let named = ranked.symbols.iter().copied().filter(own);
    named.chain(rest).collect()
}

/// Truncates a long signature, between parameters if possible.
fn cut(signature: &str) -> String {
    if signature.len() <= SIGNATURE_BYTES {
        return signature.to_owned();
    }
    let head = &signature[..signature.floor_char_boundary(SIGNATURE_BYTES)];
    let end = head.rfind(", ").map_or(head.len(), |comma| comma + 2);
    format!("{}…", &head[..end])
}
