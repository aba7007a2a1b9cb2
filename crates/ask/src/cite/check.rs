//! Checks that a citation exists and is related to its claim.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::absence::{Around, refuting_use};
use super::stated_call::missing_call;
use super::{Citation, CitedPart, Claim, Denial, Files, words};
use starling_index::{Index, is_built_in};
use starling_syntax::{FilePath, Symbol, SymbolTree};
use starling_workspace::{Snapshot, UnusualPaths};

/// Number of lines before and after a cited line that count as cited, too.
const NEAR: u32 = 1;
/// Maximum distance, in lines, over which a citation that does not fit its claim is moved to a line
/// that contains a name of the claim.
const A_LITTLE: u32 = 5;
/// Maximum distance, in lines, over which a citation is moved if the cited lines, the symbol around
/// them and the path of the file share no word with the claim.
const OFF: u32 = 40;

/// Maximum number of lines in a range to search for a quoted text.
const LONGEST_RANGE: usize = 500;
/// Minimum length in bytes of a quoted text that must occur in the file. A shorter quote may be an
/// example that does not come from the file.
const CODE: usize = 12;

/// The result of checking a citation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CitationVerdict {
    /// The cited lines support the claim.
    Holds(Citation),
    /// The citation was corrected: another line, or the full path.
    Moved(Citation),
    /// The cited lines do not support the claim, for this reason.
    Wrong(String),
}

/// Why the index refutes a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refutation {
    /// The code that refutes the sentence: its file and lines, and what to see there.
    pub place: String,
    /// The offset in the sentence at which the refuted statement ends.
    pub end: usize,
}

/// Checks citations against a snapshot of the files.
#[derive(Clone)]
pub struct CitationChecker {
    files: Snapshot,
    unusual: Arc<UnusualPaths>,
    /// The index in which uses are looked up that a sentence denies or states.
    index: Option<Arc<Index>>,
}

impl CitationChecker {
    pub fn new(files: Snapshot) -> Self {
        let unusual = Arc::new(files.unusual_paths());
        CitationChecker {
            files,
            unusual,
            index: None,
        }
    }

    /// Makes the checker look up uses in an index that a sentence denies or states.
    pub fn with_index(self, index: Arc<Index>) -> Self {
        CitationChecker {
            index: Some(index),
            ..self
        }
    }

    /// Returns why the index refutes a sentence without citations: a use that the sentence denies, or a
    /// function without the call that the sentence states.
    pub fn refutation(
        &self,
        sentence: &str,
        denial: Denial,
        around: &Around<'_>,
    ) -> Option<Refutation> {
        let index = self.index.as_ref()?;
        match denial {
            Denial::Presence => {
                let place = refuting_use(sentence, around, index)?;
                let end = sentence.len();
                Some(Refutation { place, end })
            }
            Denial::No => {
                let missing = missing_call(sentence, index)?;
                let (place, caller, callee) = (missing.place, missing.caller, missing.callee);
                Some(Refutation {
                    place: format!("{place}, where `{caller}` does not contain `{callee}`"),
                    end: missing.end,
                })
            }
            Denial::Behaviour => None,
        }
    }

    /// Checks one line range of a claim's citation.
    pub fn check(&self, cited: &CitedPart, lines: (u32, u32), claim: &Claim) -> CitationVerdict {
        let path = cited.mark.path.as_str();
        let named = self.named(path);
        if named.is_empty() {
            return CitationVerdict::Wrong(format!("there is no file {path}"));
        }
        let mut why = String::new();
        let whole = named.len() == 1 && named[0].as_str() == path;
        for file in named {
            match self.within(&file, lines, cited, claim) {
                Ok(found) if whole && (found.line, found.last_line) == lines => {
                    return CitationVerdict::Holds(found);
                }
                Ok(found) => return CitationVerdict::Moved(found),
                Err(error) => why = error,
            }
        }
        CitationVerdict::Wrong(why)
    }

    /// Returns the files that a written path can name: the exact file, or all whose paths end with
    /// it.
    fn named(&self, path: &str) -> Vec<FilePath> {
        let path = FilePath::new(path.trim_start_matches('/'));
        let files = self.files.files();
        if files.binary_search(&path).is_ok() {
            return vec![path];
        }
        // Hidden files are not listed, but some may be read.
        if path.as_str().starts_with('.') && self.files.read(&path).is_ok() {
            return vec![path];
        }
        let ending = format!("/{path}");
        let ends = |file: &&FilePath| {
            let root = self.files.root().to_string_lossy();
            let absolute = format!("{}/{file}", root.trim_start_matches('/'));
            let is_whole = absolute == path.as_str() || absolute.ends_with(&ending);
            file.as_str().ends_with(&ending) || is_whole
        };
        files.iter().filter(ends).take(8).cloned().collect()
    }

    fn within(
        &self,
        file: &FilePath,
        (first, last): (u32, u32),
        cited: &CitedPart,
        claim: &Claim,
    ) -> Result<Citation, String> {
        let tree = self.files.tree(file).map_err(|error| error.to_string())?;
        let text = FileLines::of(&tree);
        let count = text.count();
        if first == 0 || first > count {
            return Err(format!("{file} has {count} lines, no line {first}"));
        }
        let last = last.min(count);
        let moved = |line: u32| text.citation(file, line, (line + (last - first)).min(count));
        if let [_] = cited.mark.lines.as_slice() {
            match text.quoted(first, last, &cited.quotes) {
                QuoteLocation::Unknown => {}
                QuoteLocation::There => return Ok(text.citation(file, first, last)),
                QuoteLocation::At(_) if text.is_spoken_of(first, last, cited, claim) => {
                    return Ok(text.citation(file, first, last));
                }
                QuoteLocation::At(line) if first == last => return Ok(moved(line)),
                QuoteLocation::At(line) => {
                    return Ok(text.citation(file, first.min(line), last.max(line)));
                }
                QuoteLocation::Nowhere => return Err(text.says_not(first, &cited.quotes)),
            }
        }
        if text.is_named_by_sentence(first, last, cited, claim) {
            return Ok(text.citation(file, first, last));
        }
        let another = text.of_another(first, last, cited);
        if let Some(line) = another.or_else(|| text.further_in(first, last, cited)) {
            return Ok(moved(line));
        }
        if text.is_about_other_code(first, last, cited) {
            let line = text.definition_near(first, cited);
            let line = line.or_else(|| text.named_near((first, last), cited));
            return line.map(moved).ok_or_else(|| text.says(first, claim));
        }
        let says_so = text.says_so(first, last, &cited.words);
        if text.bears_out(first, last, claim) || says_so {
            let beside = text.nearest((first, last), NEAR, cited, claim);
            let is_itself_meant = || says_so || text.has_word(first, last, &cited.short_words);
            let beside = beside.filter(|_| first == last && !is_itself_meant());
            let is_wanted = |line: &u32| {
                !text.is_named_at(first, claim) || text.is_named_only_at(*line, first, claim)
            };
            return match beside.filter(is_wanted) {
                Some(line) => Ok(moved(line)),
                None => Ok(text.citation(file, first, last)),
            };
        }
        if let Some(line) = text.nearest((first, last), A_LITTLE, cited, claim) {
            return Ok(moved(line));
        }
        if text.shares_words(first, last, file, &cited.words) {
            return Ok(text.citation(file, first, last));
        }
        let further = text.nearest((first, last), OFF, cited, claim).map(moved);
        further.ok_or_else(|| text.says(first, claim))
    }
}

impl Files for CitationChecker {
    /// Returns true for an existing file in the root directory even if the model may not read it.
    fn is_file(&self, path: &str) -> bool {
        let is_at_root = || {
            let is_plain = !path.is_empty() && !path.contains(['/', '\0']) && path != "..";
            let found = is_plain.then(|| self.files.root().join(path).symlink_metadata());
            found.is_some_and(|found| found.is_ok_and(|found| !found.is_dir()))
        };
        !self.named(path).is_empty() || is_at_root()
    }

    fn paths_in(&self, text: &str) -> Vec<Range<usize>> {
        self.unusual.spans(text)
    }
}

/// The location of a text that a sentence quotes from its cited lines.
enum QuoteLocation {
    /// The sentence quotes nothing longer than a name, or the quote may refer to other lines.
    Unknown,
    /// The quote is on the cited lines.
    There,
    /// The quote is on another line nearby.
    At(u32),
    /// The quote looks like code, and the file does not contain it.
    Nowhere,
}

/// A file split into lines.
struct FileLines<'t> {
    tree: &'t SymbolTree,
    lines: Vec<&'t str>,
}

impl<'t> FileLines<'t> {
    fn of(tree: &'t SymbolTree) -> Self {
        let lines = tree.text().lines().collect();
        FileLines { tree, lines }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// Returns the text of a line by its number, from 1.
    fn line(&self, number: u32) -> &'t str {
        let at = (number as usize).checked_sub(1);
        at.and_then(|at| self.lines.get(at)).copied().unwrap_or("")
    }

    /// Locates the quotes in the file. Any white space counts as one space.
    fn quoted(&self, first: u32, last: u32, quotes: &[String]) -> QuoteLocation {
        let wanted: Vec<String> = quotes.iter().map(|quote| squeezed(quote)).collect();
        let holds = |line: u32, quote: &String| squeezed(self.line(line)).contains(quote.as_str());
        let lines = || (first..=last).take(LONGEST_RANGE);
        if wanted
            .iter()
            .any(|quote| lines().any(|line| holds(line, quote)))
        {
            return QuoteLocation::There;
        }
        for quote in &wanted {
            let mut near = around(first, last, A_LITTLE, self.count());
            if let Some(line) = near.find(|line| holds(*line, quote)) {
                return QuoteLocation::At(line);
            }
        }
        let is_code = |quote: &String| {
            let has_operator = quote.contains(['=', '+', '<', '>', '[', ':']);
            quote.len() >= CODE && quote.contains(' ') && has_operator
        };
        let whole = || squeezed(self.tree.text());
        let mut of_code = wanted.iter().filter(|quote| is_code(quote)).peekable();
        if of_code.peek().is_none() {
            return QuoteLocation::Unknown;
        }
        let whole = whole();
        match of_code.any(|quote| whole.contains(quote.as_str())) {
            true => QuoteLocation::Unknown,
            false => QuoteLocation::Nowhere,
        }
    }

    /// Returns a message for the model with the text of the cited line, which lacks the quote.
    fn says_not(&self, line: u32, quotes: &[String]) -> String {
        let text: String = self.line(line).trim().chars().take(100).collect();
        let quote = quotes.iter().max_by_key(|quote| quote.len());
        let quote = quote.map_or("", String::as_str);
        format!("line {line} is `{text}`: `{quote}` does not stand in the file")
    }

    /// Whether the lines or the symbol around them contain a name of the claim. If the claim names
    /// no symbol, the lines only have to be non-empty.
    fn bears_out(&self, first: u32, last: u32, claim: &Claim) -> bool {
        if self.is_blank(first, last) {
            return false;
        }
        if claim.names.is_empty() {
            return true;
        }
        let bears = |code: &str| {
            names_of(code)
                .iter()
                .any(|name| claim.names.contains(*name))
        };
        self.owners(first).into_iter().any(bears) || self.near(first, last).any(bears)
    }

    /// Returns the name of the symbol around a line. In a file without symbols, returns the lines
    /// that enclose it by their indentation, such as the head of a function.
    fn owners(&self, line: u32) -> Vec<&str> {
        if self.tree.symbols().len() > 1 {
            return vec![&self.tree.at_line(line).path.name];
        }
        let indent = |line: &str| line.len() - line.trim_start().len();
        let mut within = indent(self.line(line));
        let above = (1..line).rev().map(|line| self.line(line));
        let encloses = |line: &&str| {
            let is_outer = !line.trim().is_empty() && indent(line) < within;
            if is_outer {
                within = indent(line);
            }
            is_outer
        };
        above.filter(encloses).collect()
    }

    /// Whether a line or the symbol around it contains a name of the claim.
    fn is_named_at(&self, line: u32, claim: &Claim) -> bool {
        let own = self.owners(line).into_iter().flat_map(names_of);
        let mut names = own.chain(names_of(self.line(line)));
        claim.names.is_empty() || names.any(|name| claim.names.contains(name))
    }

    /// Whether `line` contains a name of the claim other than those of the symbol around the cited
    /// line, which itself contains no name of the claim.
    fn is_named_only_at(&self, line: u32, cited: u32, claim: &Claim) -> bool {
        let own: BTreeSet<&str> = self.owners(cited).into_iter().flat_map(names_of).collect();
        let mut of_cited = names_of(self.line(cited)).into_iter();
        let is_other = |name: &&str| claim.names.contains(*name) && !own.contains(name);
        !of_cited.any(|name| claim.names.contains(name))
            && names_of(self.line(line)).iter().any(is_other)
    }

    /// Whether the part of the sentence before the citation marks nothing but names of Python itself
    /// as code, which the symbol around the cited lines does not contain, and these lines contain a
    /// name that another part of the sentence marks as code.
    fn is_named_by_sentence(
        &self,
        first: u32,
        last: u32,
        cited: &CitedPart,
        claim: &Claim,
    ) -> bool {
        let (begins, ends) = self.tree.at_line(first).lines;
        let around = (begins..=ends).take(LONGEST_RANGE);
        let around: BTreeSet<&str> = around.flat_map(|line| names_of(self.line(line))).collect();
        let mut own = cited.code.iter();
        let is_of_python = |name: &String| is_built_in(name) && !around.contains(name.as_str());
        let is_named = |name: &&str| claim.own_names.contains(*name) && !is_built_in(name);
        !cited.code.is_empty()
            && own.all(is_of_python)
            && (first..=last).any(|line| names_of(self.line(line)).iter().any(is_named))
    }

    /// Whether the claim is about other code: it marks names as code, but none of them is on or
    /// next to the cited lines, in the name of the symbol around them, or in the path of the file.
    fn is_about_other_code(&self, first: u32, last: u32, cited: &CitedPart) -> bool {
        let is_own = |code: &str| names_of(code).iter().any(|name| cited.code.contains(*name));
        let is_around = |line: u32| self.owners(line).into_iter().any(is_own);
        let has_sign = |line: u32| {
            let code = squeezed(self.line(line));
            cited
                .signs
                .iter()
                .any(|sign| code.contains(&squeezed(sign)))
        };
        !cited.code.is_empty()
            && !(first..=last).take(LONGEST_RANGE).any(has_sign)
            && !is_around(first)
            && !is_around(last)
            && !is_own(&cited.mark.path)
            && !self.near(first, last).any(is_own)
    }

    /// Returns the line that defines a symbol that the claim names. If the file defines several of
    /// these symbols, returns the definition nearest to `line`.
    fn definition_near(&self, line: u32, cited: &CitedPart) -> Option<u32> {
        let lines = self.spoken_of(cited).into_iter();
        let lines = lines.map(|symbol| self.tree.line_of(symbol));
        lines.min_by_key(|found| found.abs_diff(line))
    }

    /// Returns the line nearest to the cited lines, at most [`A_LITTLE`] lines away, that contains
    /// a name that the claim marks as code, or all names of a member (`Class.method`) that the
    /// claim names.
    fn named_near(&self, (first, last): (u32, u32), cited: &CitedPart) -> Option<u32> {
        let bears = |line: &u32| {
            let names = names_of(self.line(*line));
            let is_there = |name: &str| names.contains(&name);
            cited
                .others_of_sentence
                .iter()
                .any(|name| cited.code.contains(name) && is_there(name))
                || cited
                    .members
                    .iter()
                    .any(|member| member.split('.').all(is_there))
        };
        around(first, last, A_LITTLE, self.count()).find(bears)
    }

    /// Whether a cited line contains a name that the sentence mentions outside its quotes.
    fn is_spoken_of(&self, first: u32, last: u32, cited: &CitedPart, claim: &Claim) -> bool {
        let of_quotes: BTreeSet<&str> = cited
            .quotes
            .iter()
            .flat_map(|text| names_of(text))
            .collect();
        let is_it = |name: &&str| claim.own_names.contains(*name) && !of_quotes.contains(name);
        (first..=last).any(|line| names_of(self.line(line)).iter().any(is_it))
    }

    /// Returns the line to cite instead, if the cited lines are outside the symbol that the claim
    /// is about: the nearest line of that symbol that contains another name of the claim, or else
    /// the line that defines the symbol. Returns `None` if the cited lines mention the symbol or
    /// another word of the claim, unless the citation itself names the symbol.
    fn of_another(&self, first: u32, last: u32, cited: &CitedPart) -> Option<u32> {
        let meant = self.meant(cited);
        let overlaps = |symbol: &&Symbol| {
            symbol.lines.0 <= last.saturating_add(NEAR)
                && symbol.lines.1.saturating_add(NEAR) >= first
        };
        let distance = |symbol: &&&Symbol| {
            let (begins, ends) = symbol.lines;
            begins.saturating_sub(last) + first.saturating_sub(ends)
        };
        let nearest = meant.iter().min_by_key(distance);
        let one = nearest.filter(|_| !meant.iter().any(overlaps))?;
        let is_named = (first..=last).any(|line| {
            let names = names_of(self.line(line));
            meant
                .iter()
                .any(|one| names.contains(&one.path.base_name()))
        });
        let of_names = cited.members.iter().flat_map(|name| words(name));
        let of_names: BTreeSet<String> = of_names.collect();
        let others = &cited.words - &of_names;
        let speaks = is_named || self.says_so(first, last, &others);
        let line = || self.mentioned_in(one, (first, last), &cited.others_of_sentence);
        (cited.mark.symbol.is_some() || !speaks)
            .then(|| line().unwrap_or_else(|| self.tree.line_of(one)))
    }

    /// Returns the line to cite instead, if the cited lines are inside the symbol that the claim is
    /// about, but share no word with the claim: the nearest line of the symbol that contains
    /// another name of the claim. Returns `None` if the cited lines contain the definition of the
    /// symbol, which supports any claim about it.
    fn further_in(&self, first: u32, last: u32, cited: &CitedPart) -> Option<u32> {
        let holds = |symbol: &&Symbol| symbol.lines.0 <= first && last <= symbol.lines.1;
        let one = self.spoken_of(cited).into_iter().find(holds)?;
        let name = &one.path.name;
        let says_of_it = &cited.words - &words(name);
        let is_defined_there = (first..=last).contains(&self.tree.line_of(one));
        if is_defined_there || self.says_so(first, last, &says_of_it) {
            return None;
        }
        let own = names_of(name);
        let of_others = cited.others.iter();
        let wanted = of_others.filter(|other| !own.contains(&other.as_str()));
        self.mentioned_in(one, (first, last), &wanted.cloned().collect())
    }

    /// Returns the line of a symbol that contains one of these names and is nearest to a range.
    fn mentioned_in(
        &self,
        symbol: &Symbol,
        (first, last): (u32, u32),
        wanted: &BTreeSet<String>,
    ) -> Option<u32> {
        let (begins, ends) = symbol.lines;
        let mentions = |line: &u32| {
            names_of(self.line(*line))
                .iter()
                .any(|one| wanted.contains(*one))
        };
        let distance = |line: &u32| line.saturating_sub(last) + first.saturating_sub(*line);
        (begins..=ends).filter(mentions).min_by_key(distance)
    }

    /// Returns the symbols of this file that a citation is about, including symbols that the claim
    /// names without their class.
    fn spoken_of(&self, cited: &CitedPart) -> Vec<&'t Symbol> {
        let meant = self.meant(cited);
        if !meant.is_empty() {
            return meant;
        }
        let is_named = |symbol: &&Symbol| cited.others.contains(symbol.path.base_name());
        self.tree.symbols().iter().filter(is_named).collect()
    }

    /// Returns the symbols of this file that a citation refers to: the symbol written in the
    /// citation, or else the members (`Class.method`) that the claim names.
    fn meant(&self, cited: &CitedPart) -> Vec<&'t Symbol> {
        let is_it = |symbol: &&Symbol, name: &str| {
            let path = &symbol.path.name;
            let ends = path.strip_suffix(name);
            ends.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        let symbols = self.tree.symbols().iter();
        match &cited.mark.symbol {
            Some(name) => symbols.filter(|symbol| is_it(symbol, name)).collect(),
            None => symbols
                .filter(|symbol| cited.members.iter().any(|name| is_it(symbol, name)))
                .collect(),
        }
    }

    /// Whether the lines share a significant word with `wanted`.
    fn says_so(&self, first: u32, last: u32, wanted: &BTreeSet<String>) -> bool {
        (first..=last).any(|line| !words(self.line(line)).is_disjoint(wanted))
    }

    /// Whether the lines contain one of these words as a name.
    fn has_word(&self, first: u32, last: u32, wanted: &BTreeSet<String>) -> bool {
        let is_wanted = |name: &&str| wanted.contains(*name);
        (first..=last).any(|line| names_of(self.line(line)).iter().any(is_wanted))
    }

    /// Whether the lines, the symbol around them or the file share a significant word with
    /// `wanted`.
    fn shares_words(
        &self,
        first: u32,
        last: u32,
        file: &FilePath,
        wanted: &BTreeSet<String>,
    ) -> bool {
        let owner = &self.tree.at_line(first).path.name;
        let shares = |text: &str| !words(text).is_disjoint(wanted);
        !self.is_blank(first, last)
            && (shares(owner) || shares(file.as_str()) || self.near(first, last).any(shares))
    }

    fn is_blank(&self, first: u32, last: u32) -> bool {
        (first..=last).all(|line| self.line(line).trim().is_empty())
    }

    fn near(&self, first: u32, last: u32) -> impl Iterator<Item = &'t str> {
        let near = first.saturating_sub(NEAR).max(1)..=last.saturating_add(NEAR);
        near.map(|line| self.line(line))
    }

    /// Returns the line nearest to the cited lines, at most `most` lines away, that contains a name of
    /// the claim, or one of its words if the claim has no names. If the claim or its citation names
    /// symbols of this file, only lines of these symbols count. The class of a member
    /// (`Class.member`) does not count if a line near the citation contains the member.
    fn nearest(
        &self,
        (first, last): (u32, u32),
        most: u32,
        cited: &CitedPart,
        claim: &Claim,
    ) -> Option<u32> {
        let meant = self.meant(cited);
        let is_of = |line: u32, symbol: &&Symbol| (symbol.lines.0..=symbol.lines.1).contains(&line);
        let is_meant = |line: u32| meant.is_empty() || meant.iter().any(|one| is_of(line, one));
        let bears = |line: u32, names: &BTreeSet<String>| match claim.names.is_empty() {
            true => !words(self.line(line)).is_disjoint(&claim.words),
            false => names_of(self.line(line))
                .iter()
                .any(|name| names.contains(*name)),
        };
        let near = || around(first, last, most, self.count());
        let names = self.without_classes(cited, claim, near());
        near().find(|line| is_meant(*line) && bears(*line, &names))
    }

    /// Returns the names of a claim without the classes of the members (`Class.member`) that one of
    /// these lines contains.
    fn without_classes(
        &self,
        cited: &CitedPart,
        claim: &Claim,
        lines: impl Iterator<Item = u32> + Clone,
    ) -> BTreeSet<String> {
        let mut names = claim.names.clone();
        for member in &cited.members {
            let Some((classes, last)) = member.rsplit_once('.') else {
                continue;
            };
            if lines
                .clone()
                .any(|line| names_of(self.line(line)).contains(&last))
            {
                names.retain(|name| name == last || !names_of(classes).contains(&name.as_str()));
            }
        }
        names
    }

    /// Returns a message for the model: the cited line's text and the missing names.
    fn says(&self, line: u32, claim: &Claim) -> String {
        let text: String = self.line(line).trim().chars().take(100).collect();
        let names: Vec<&str> = claim.names.iter().map(String::as_str).take(6).collect();
        match names.as_slice() {
            [] => format!("line {line} is `{text}`"),
            names => format!(
                "line {line} is `{text}`: nothing of {} there",
                names.join(", ")
            ),
        }
    }

    fn citation(&self, file: &FilePath, line: u32, last_line: u32) -> Citation {
        let text: String = self.line(line).trim().chars().take(200).collect();
        Citation {
            path: file.to_string(),
            line,
            last_line,
            symbol: self.tree.at_line(line).path.name.clone(),
            text,
        }
    }
}

/// Replaces each run of white space with one space.
fn squeezed(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Returns the line numbers around a range, up to `most` lines away, nearest first.
fn around(first: u32, last: u32, most: u32, count: u32) -> impl Iterator<Item = u32> + Clone {
    let near = (0..=most).flat_map(move |off| {
        let below = last.checked_add(off);
        let above = first.checked_sub(off);
        [above, below].into_iter().flatten()
    });
    near.filter(move |line| (1..=count).contains(line))
}

fn names_of(code: &str) -> Vec<&str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|part| !part.is_empty())
        .collect()
}
