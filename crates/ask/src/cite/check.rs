//! Does a citation exist, and has it to do with what it is cited for?

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::{Citation, Cited, Claim, Files, words};
use starling_syntax::{FilePath, Symbol, SymbolTree};
use starling_workspace::{Snapshot, UnusualPaths};

/// So many lines around a cited one are taken for it.
const NEAR: u32 = 1;
/// A citation that is off by no more than this is moved, whatever else speaks for it.
const A_LITTLE: u32 = 5;
/// The same where nothing else speaks for it.
const OFF: u32 = 40;

/// So many lines of a range are looked at for a quoted text.
const LONGEST_RANGE: usize = 500;
/// A shorter quoted text may be written as code without being the file's.
const CODE: usize = 12;

/// What is wrong with a citation, or what it was made to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Holds(Citation),
    /// It was mended: another line, or the whole path.
    Moved(Citation),
    Wrong(String),
}

/// Checks citations against the files as they are.
#[derive(Debug, Clone)]
pub struct Checker {
    files: Snapshot,
    unusual: Arc<UnusualPaths>,
}

impl Checker {
    pub fn new(files: Snapshot) -> Self {
        let unusual = Arc::new(files.unusual_paths());
        Checker { files, unusual }
    }

    /// Checks lines of one citation of a claim.
    pub fn check(&self, cited: &Cited, lines: (u32, u32), claim: &Claim) -> Verdict {
        let path = cited.mark.path.as_str();
        let named = self.named(path);
        if named.is_empty() {
            return Verdict::Wrong(format!("there is no file {path}"));
        }
        let mut why = String::new();
        let whole = named.len() == 1 && named[0].as_str() == path;
        for file in named {
            match self.within(&file, lines, cited, claim) {
                Ok(found) if whole && (found.line, found.last_line) == lines => {
                    return Verdict::Holds(found);
                }
                Ok(found) => return Verdict::Moved(found),
                Err(error) => why = error,
            }
        }
        Verdict::Wrong(why)
    }

    /// The files that a written path can mean: the file itself, or those that end so.
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
        cited: &Cited,
        claim: &Claim,
    ) -> Result<Citation, String> {
        let tree = self.files.tree(file).map_err(|error| error.to_string())?;
        let text = Lines::of(&tree);
        let count = text.count();
        if first == 0 || first > count {
            return Err(format!("{file} has {count} lines, no line {first}"));
        }
        let last = last.min(count);
        let moved = |line: u32| text.citation(file, line, (line + (last - first)).min(count));
        if let [_] = cited.mark.lines.as_slice() {
            match text.quoted(first, last, &cited.quotes) {
                Quoted::Unknown => {}
                Quoted::There => return Ok(text.citation(file, first, last)),
                Quoted::At(_) if text.is_spoken_of(first, last, cited, claim) => {
                    return Ok(text.citation(file, first, last));
                }
                Quoted::At(line) if first == last => return Ok(moved(line)),
                Quoted::At(line) => {
                    return Ok(text.citation(file, first.min(line), last.max(line)));
                }
                Quoted::Nowhere => return Err(text.says_not(first, &cited.quotes)),
            }
        }
        if let Some(line) = text.of_another(first, last, cited) {
            return Ok(moved(line));
        }
        let says_so = text.says_so(first, last, &cited.words);
        if text.bears_out(first, last, claim) || says_so {
            let beside = text.nearest(first, last, NEAR, claim);
            let beside = beside.filter(|_| first == last && !says_so);
            return match beside.filter(|_| !text.is_named_at(first, claim)) {
                Some(line) => Ok(moved(line)),
                None => Ok(text.citation(file, first, last)),
            };
        }
        if let Some(line) = text.nearest(first, last, A_LITTLE, claim) {
            return Ok(moved(line));
        }
        if text.shares_words(first, last, file, &cited.words) {
            return Ok(text.citation(file, first, last));
        }
        let further = text.nearest(first, last, OFF, claim).map(moved);
        further.ok_or_else(|| text.says(first, claim))
    }
}

impl Files for Checker {
    /// A file at the root counts even if it may not be read.
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

/// Where a text stands that a sentence quotes from the lines that it cites.
enum Quoted {
    /// It quotes nothing, or no more than a name; or it may not mean these lines.
    Unknown,
    There,
    /// In another line near them.
    At(u32),
    /// It looks like code, and the file does not hold it.
    Nowhere,
}

/// A file by its lines.
struct Lines<'t> {
    tree: &'t SymbolTree,
    lines: Vec<&'t str>,
}

impl<'t> Lines<'t> {
    fn of(tree: &'t SymbolTree) -> Self {
        let lines = tree.text().lines().collect();
        Lines { tree, lines }
    }

    fn count(&self) -> u32 {
        u32::try_from(self.lines.len()).unwrap_or(u32::MAX)
    }

    /// A line by its number, from 1.
    fn line(&self, number: u32) -> &'t str {
        let at = (number as usize).checked_sub(1);
        at.and_then(|at| self.lines.get(at)).copied().unwrap_or("")
    }

    /// Where the file holds what is quoted from lines of it. White space counts as one space.
    fn quoted(&self, first: u32, last: u32, quotes: &[String]) -> Quoted {
        let wanted: Vec<String> = quotes.iter().map(|quote| squeezed(quote)).collect();
        let holds = |line: u32, quote: &String| squeezed(self.line(line)).contains(quote.as_str());
        let lines = || (first..=last).take(LONGEST_RANGE);
        if wanted
            .iter()
            .any(|quote| lines().any(|line| holds(line, quote)))
        {
            return Quoted::There;
        }
        for quote in &wanted {
            let mut near = around(first, last, A_LITTLE, self.count());
            if let Some(line) = near.find(|line| holds(*line, quote)) {
                return Quoted::At(line);
            }
        }
        let is_code = |quote: &String| {
            let has_operator = quote.contains(['=', '+', '<', '>', '[', ':']);
            quote.len() >= CODE && quote.contains(' ') && has_operator
        };
        let whole = || squeezed(self.tree.text());
        let mut of_code = wanted.iter().filter(|quote| is_code(quote)).peekable();
        if of_code.peek().is_none() {
            return Quoted::Unknown;
        }
        let whole = whole();
        match of_code.any(|quote| whole.contains(quote.as_str())) {
            true => Quoted::Unknown,
            false => Quoted::Nowhere,
        }
    }

    /// That the lines do not hold what is quoted from them, for the model to mend its claim.
    fn says_not(&self, line: u32, quotes: &[String]) -> String {
        let text: String = self.line(line).trim().chars().take(100).collect();
        let quote = quotes.iter().max_by_key(|quote| quote.len());
        let quote = quote.map_or("", String::as_str);
        format!("line {line} is `{text}`: `{quote}` does not stand in the file")
    }

    /// Whether the lines, or the symbol around them, bear a name that the claim names. Of a claim that
    /// names nothing no more can be said than that there is something at the lines.
    fn bears_out(&self, first: u32, last: u32, claim: &Claim) -> bool {
        if self.is_blank(first, last) {
            return false;
        }
        if claim.names.is_empty() {
            return true;
        }
        let owner = &self.tree.at_line(first).path.name;
        let bears = |code: &str| {
            names_of(code)
                .iter()
                .any(|name| claim.names.contains(*name))
        };
        bears(owner) || self.near(first, last).any(bears)
    }

    /// Whether a line, or the symbol around it, bears a name that the claim names.
    fn is_named_at(&self, line: u32, claim: &Claim) -> bool {
        let owner = &self.tree.at_line(line).path.name;
        let own = names_of(owner).into_iter();
        let mut names = own.chain(names_of(self.line(line)));
        claim.names.is_empty() || names.any(|name| claim.names.contains(name))
    }

    /// Whether a line bears a name of the sentence that stands in nothing that the sentence quotes.
    fn is_spoken_of(&self, first: u32, last: u32, cited: &Cited, claim: &Claim) -> bool {
        let of_quotes: BTreeSet<&str> = cited
            .quotes
            .iter()
            .flat_map(|text| names_of(text))
            .collect();
        let is_it = |name: &&str| claim.own_names.contains(*name) && !of_quotes.contains(name);
        (first..=last).any(|line| names_of(self.line(line)).iter().any(is_it))
    }

    /// Where the symbol that a claim speaks of is defined in this file, when the cited lines are another
    /// one's: the citation itself says whose lines they are to be, or nothing in them names it and no
    /// other word of the claim stands there.
    fn of_another(&self, first: u32, last: u32, cited: &Cited) -> Option<u32> {
        let meant = self.meant(cited);
        let overlaps = |symbol: &&Symbol| {
            symbol.lines.0 <= last.saturating_add(NEAR)
                && symbol.lines.1.saturating_add(NEAR) >= first
        };
        let one = meant.first().filter(|_| !meant.iter().any(overlaps))?;
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
        (cited.mark.symbol.is_some() || !speaks).then(|| self.tree.line_of(one))
    }

    /// The symbols of this file that a citation is about: the one that it names, else those that its
    /// claim names as members of something.
    fn meant(&self, cited: &Cited) -> Vec<&'t Symbol> {
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

    /// Whether the lines themselves share a significant word with these.
    fn says_so(&self, first: u32, last: u32, wanted: &BTreeSet<String>) -> bool {
        (first..=last).any(|line| !words(self.line(line)).is_disjoint(wanted))
    }

    /// Whether the lines, the symbol around them or their file share a significant word with these.
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

    /// The nearest line that bears a name of the claim; where it names none, a word.
    fn nearest(&self, first: u32, last: u32, most: u32, claim: &Claim) -> Option<u32> {
        let bears = |line: u32| match claim.names.is_empty() {
            true => !words(self.line(line)).is_disjoint(&claim.words),
            false => names_of(self.line(line))
                .iter()
                .any(|name| claim.names.contains(*name)),
        };
        around(first, last, most, self.count()).find(|line| bears(*line))
    }

    /// What the lines hold instead, for the model to mend its claim.
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

/// A text with one space for all white space between words.
fn squeezed(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Line numbers by their distance from a range, the nearest first.
fn around(first: u32, last: u32, most: u32, count: u32) -> impl Iterator<Item = u32> {
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
