//! Chooses the lines of a symbol that an excerpt shows if the whole symbol does not fit.

use std::collections::{BTreeMap, BTreeSet};

use super::focus::Focus;
use super::{head_of, inside_children, line_at, lines_of};
use crate::excerpt::found::Found;
use starling_core::Tokens;
use starling_syntax::SymbolKind;

/// Number of lines at the top of a file that are shown first.
const TOP: usize = 12;
/// Maximum number of lines that are shown with their context because they match words of the text.
/// The maximum is lower for a class, whose method signatures are shown too.
const WINDOWS: usize = 16;
const WINDOWS_OF_CLASS: usize = 4;
/// Numbers of lines that are shown above and below a matching line. The widest context that fits is
/// used.
const WIDTHS: [(usize, usize); 3] = [(4, 8), (2, 3), (0, 1)];
/// Maximum distance in lines between two matches at which they increase each other's weight.
const NEAR: usize = 6;
/// Cost in tokens of the line that takes the place of omitted lines.
const MARK: u64 = 10;
/// Minimum number of consecutive comment lines that are worth omitting.
const COMMENTS: usize = 3;

/// Format of the chosen lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Source code that can be copied.
    Source,
    /// Lines with their numbers, for citations.
    Numbered,
}

impl Layout {
    fn cost(self, line: &str) -> u64 {
        let extra = match self {
            Layout::Source => 0,
            Layout::Numbered => 2,
        };
        (Tokens::estimate(line) + Tokens(extra)).0.max(1)
    }
}

/// Chooses the lines of a symbol that an excerpt shows.
///
/// If the whole symbol fits, all lines are chosen; if it fits without docstrings and long comments,
/// these are omitted. Otherwise the lines are chosen in this order until the size limit is reached:
/// the first lines of the symbol (its signature), lines quoted in tracebacks, lines that match
/// words of the text, the signatures of its children (for a class, these come second), and the
/// remaining lines from the top. In a module body, the contents of its symbols are chosen only if
/// everything fits.
pub fn chosen(found: &Found, focus: &Focus, most: Tokens, layout: Layout) -> BTreeSet<usize> {
    let mut choice = LineSelection::new(found, most, layout);
    let all = match layout {
        Layout::Source => choice.all(),
        // Numbered lines are shown so that they can be cited, and a citation names the innermost
        // symbol. Lines of nested symbols are therefore left out.
        Layout::Numbered => choice.own().collect(),
    };
    // A small excess over the limit is allowed, because to read an omitted part the model would
    // need another turn.
    let lenient = most.0 + (most.0 / 3).min(200);
    if choice.cost(&all) <= lenient {
        return all;
    }
    if choice.cost(&choice.code()) <= lenient {
        choice.take(choice.code());
        choice.take_places(focus);
        return choice.done();
    }
    choice.take_head();
    choice.take_quoted(focus);
    match found.symbol.kind {
        // The methods of a class are more useful than single lines.
        SymbolKind::Class => {
            choice.take_heads(focus);
            choice.take_places(focus);
        }
        SymbolKind::Module | SymbolKind::Function | SymbolKind::Method => {
            choice.take_places(focus);
            choice.take_heads(focus);
        }
    }
    let inside = match found.symbol.kind {
        SymbolKind::Class => inside_children(found),
        SymbolKind::Module | SymbolKind::Function | SymbolKind::Method => BTreeSet::new(),
    };
    for line in choice.code().difference(&inside) {
        choice.take(BTreeSet::from([*line]));
    }
    choice.done()
}

/// The lines of a symbol that have been chosen so far, and the remaining size.
struct LineSelection<'f> {
    found: &'f Found,
    lines: Vec<&'f str>,
    layout: Layout,
    /// Lines of nested symbols, which the excerpt of a module must not show.
    others: BTreeSet<usize>,
    /// Lines of docstrings after the first one, and long comments.
    asides: BTreeSet<usize>,
    left: u64,
    taken: BTreeSet<usize>,
}

impl<'f> LineSelection<'f> {
    fn new(found: &'f Found, most: Tokens, layout: Layout) -> Self {
        let lines: Vec<&str> = found.tree.text().lines().collect();
        let others = match found.symbol.path.is_module() {
            true => inside_children(found),
            false => BTreeSet::new(),
        };
        let mut asides = docstrings(found);
        asides.extend(comments(found));
        LineSelection {
            found,
            lines,
            layout,
            others,
            asides,
            left: most.0,
            taken: BTreeSet::new(),
        }
    }

    fn line(&self, number: usize) -> &'f str {
        self.lines.get(number - 1).copied().unwrap_or_default()
    }

    fn all(&self) -> BTreeSet<usize> {
        let (first, last) = lines_of(self.found);
        (first..=last).collect()
    }

    fn own(&self) -> impl Iterator<Item = usize> {
        let (first, last) = lines_of(self.found);
        (first..=last).filter(|line| !self.others.contains(line))
    }

    fn code(&self) -> BTreeSet<usize> {
        self.own()
            .filter(|line| !self.asides.contains(line))
            .collect()
    }

    /// Returns the cost in tokens of choosing these lines, including the marks of the gaps before
    /// them.
    fn cost(&self, lines: &BTreeSet<usize>) -> u64 {
        let begins =
            |line: &&usize| !lines.contains(&(*line - 1)) && !self.taken.contains(&(*line - 1));
        let gaps = lines.iter().filter(begins).count() as u64;
        let text: u64 = lines
            .iter()
            .map(|line| self.layout.cost(self.line(*line)))
            .sum();
        let first = u64::from(self.taken.is_empty());
        text + gaps.saturating_sub(first) * MARK
    }

    /// Chooses the lines if all of them fit. Returns whether they do.
    fn take(&mut self, wanted: BTreeSet<usize>) -> bool {
        let new: BTreeSet<usize> = wanted.difference(&self.taken).copied().collect();
        match self.left.checked_sub(self.cost(&new)) {
            Some(left) => {
                self.left = left;
                self.taken.extend(new);
                true
            }
            None => false,
        }
    }

    /// Chooses the signature and the first line of the docstring, or the first lines of a file.
    fn take_head(&mut self) {
        let symbol = &self.found.symbol;
        if symbol.path.is_module() {
            let top = self.code().into_iter().take(TOP).collect();
            self.take(top);
            return;
        }
        let head = head_of(self.found, symbol);
        let doc = symbol.docstring.map(|doc| line_at(self.found, doc.start));
        let last = *head.end();
        self.take(head.collect());
        if let Some(doc) = doc.filter(|doc| *doc == last + 1) {
            self.take(BTreeSet::from([doc]));
        }
    }

    fn take_quoted(&mut self, focus: &Focus) {
        let file = &self.found.symbol.path.file;
        let quoted: Vec<usize> = self
            .own()
            .filter(|line| focus.is_in_traceback(file, *line, self.line(*line)))
            .collect();
        for line in quoted {
            self.take_around(line);
        }
    }

    /// Chooses the lines that match words of the text best, with their context.
    fn take_places(&mut self, focus: &Focus) {
        let (asides, code): (Vec<_>, Vec<_>) = self
            .places(focus)
            .into_iter()
            .partition(|line| self.asides.contains(line));
        let most = match self.found.symbol.kind {
            SymbolKind::Class => WINDOWS_OF_CLASS,
            SymbolKind::Module | SymbolKind::Function | SymbolKind::Method => WINDOWS,
        };
        for line in code.into_iter().take(most) {
            self.take_around(line);
        }
        for line in asides.into_iter().take(most / 2) {
            let next = (line..=line + 1).filter(|line| self.asides.contains(line));
            let next = next.collect();
            self.take(next);
        }
    }

    /// Returns the lines that match words of the text, best first. Rare words count more than
    /// common words, and clustered matches count more than isolated ones.
    fn places(&self, focus: &Focus) -> Vec<usize> {
        let bears: Vec<_> = self
            .own()
            .map(|line| (line, focus.in_line(self.line(line))))
            .filter(|(_, words)| !words.is_empty())
            .collect();
        let mut often: BTreeMap<&str, u32> = BTreeMap::new();
        for (word, _) in bears.iter().flat_map(|(_, words)| words) {
            *often.entry(word.as_ref()).or_default() += 1;
        }
        let worth = |words: &[(std::borrow::Cow<'_, str>, u32)]| -> u32 {
            let each = words.iter().map(|(word, worth)| match *worth > 1 {
                // A name from the text keeps a high weight even if many lines contain it.
                true => worth * 8_000 / (8 + often[word.as_ref()]),
                false => worth * 1_000 / often[word.as_ref()],
            });
            each.sum()
        };
        let own: BTreeMap<usize, u32> = bears
            .iter()
            .map(|(line, words)| (*line, worth(words)))
            .collect();
        let around = |line: usize| -> u32 {
            let near = own.range(line.saturating_sub(NEAR)..=line + NEAR);
            near.map(|(_, worth)| worth / 2).sum()
        };
        let mut places: Vec<(u32, usize)> = own
            .iter()
            .map(|(line, worth)| (worth + around(*line), *line))
            .collect();
        places.sort_by_key(|(worth, line)| (std::cmp::Reverse(*worth), *line));
        places.into_iter().map(|(_, line)| line).collect()
    }

    /// Chooses the signatures of the children. Children that match the text best come first.
    fn take_heads(&mut self, focus: &Focus) {
        let mut children: Vec<((usize, usize), usize)> = Vec::new();
        for (at, child) in self.found.symbol.children.iter().enumerate() {
            let child = self.found.tree.get(*child);
            let shared = focus.shared_with(child.span.of(self.found.tree.text()));
            children.push((shared, at));
        }
        children.sort_by_key(|(shared, at)| (std::cmp::Reverse(*shared), *at));
        for (_, at) in children {
            let child = self.found.tree.get(self.found.symbol.children[at]);
            let head = head_of(self.found, child);
            let own = head.filter(|line| !self.others.contains(line)).collect();
            self.take(own);
        }
    }

    /// Chooses a line with its neighbours and the heads of the enclosing blocks.
    fn take_around(&mut self, line: usize) {
        if self.taken.contains(&line) {
            return;
        }
        let (first, last) = lines_of(self.found);
        let around = self.blocks_around(line);
        for (above, below) in WIDTHS {
            let range = line.saturating_sub(above).max(first)..=(line + below).min(last);
            let shown = |line: &usize| !self.others.contains(line) && !self.asides.contains(line);
            let mut wanted: BTreeSet<usize> = range.filter(shown).collect();
            wanted.extend([line]);
            wanted.extend(&around);
            if self.take(wanted) {
                return;
            }
        }
    }

    /// Returns the lines above a line that open the blocks around it; they are less indented.
    fn blocks_around(&self, line: usize) -> Vec<usize> {
        let (first, _) = lines_of(self.found);
        let mut indent = indent_of(self.line(line));
        let mut around = Vec::new();
        for number in (first..line).rev() {
            let text = self.line(number);
            let is_code = !text.trim().is_empty() && !self.asides.contains(&number);
            if is_code && indent_of(text) < indent && !text.trim_start().starts_with(')') {
                indent = indent_of(text);
                around.push(number);
            }
        }
        around
    }

    /// Returns the chosen lines, together with omitted lines that take no more space than their
    /// mark.
    fn done(self) -> BTreeSet<usize> {
        let mut lines = self.taken.clone();
        let taken: Vec<usize> = self.taken.iter().copied().collect();
        for pair in taken.windows(2) {
            let gap = pair[0] + 1..pair[1];
            let cost: u64 = gap
                .clone()
                .map(|line| self.layout.cost(self.line(line)))
                .sum();
            if cost <= MARK && !gap.clone().any(|line| self.others.contains(&line)) {
                lines.extend(gap);
            }
        }
        lines
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the lines of docstrings after their first lines.
fn docstrings(found: &Found) -> BTreeSet<usize> {
    let (first, last) = (found.symbol.span.start, found.symbol.span.end);
    let inside =
        |symbol: &&starling_syntax::Symbol| first <= symbol.span.start && symbol.span.end <= last;
    let symbols = found.tree.symbols().iter().filter(inside);
    let docs = symbols.filter_map(|symbol| symbol.docstring);
    docs.flat_map(|doc| line_at(found, doc.start) + 1..=line_at(found, doc.end.saturating_sub(1)))
        .collect()
}

/// Returns the runs of comment lines that are worth omitting.
fn comments(found: &Found) -> BTreeSet<usize> {
    let text = found.tree.text();
    let is_alone = |start: usize| {
        let before = &text[..start];
        let line = &before[before.rfind('\n').map_or(0, |end| end + 1)..];
        line.trim().is_empty()
    };
    let comments = found.tree.comments().iter();
    let lines: Vec<usize> = comments
        .filter(|comment| found.symbol.span.contains(comment.start) && is_alone(comment.start))
        .map(|comment| line_at(found, comment.start))
        .collect();
    let runs = lines.chunk_by(|a, b| a + 1 == *b);
    runs.filter(|run| run.len() >= COMMENTS)
        .flatten()
        .copied()
        .collect()
}
