//! An answer as blocks: paragraphs, items of a list, fences; each checked as a whole.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::cite::{Checker, Citation, Cited, Claim, Mark, Verdict, claims, range, words};

/// A citation that was taken out of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// As the model wrote it.
    pub citation: String,
    pub claim: String,
    pub why: String,
}

/// Something wrong in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The claim, in the block's source.
    pub span: Range<usize>,
    pub what: FlawKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlawKind {
    WrongCitation(Dropped),
    /// A claim about code that rests on nothing.
    Uncited,
}

/// A block and what its check found.
#[derive(Debug, Clone)]
pub struct Block {
    /// As the model wrote it.
    pub source: String,
    /// With citations mended, and marks in place of those that are wrong.
    pub text: String,
    pub citations: Vec<Citation>,
    /// Citations that were mended: as written, as they are now.
    pub moved: Vec<(String, String)>,
    pub wrong: Vec<Flaw>,
    /// Claims without a citation.
    bare: Vec<Bare>,
    /// Names in claims that have a citation.
    borne_out: BTreeSet<String>,
}

/// A claim without a citation.
#[derive(Debug, Clone)]
struct Bare {
    span: Range<usize>,
    /// The names that it is about.
    names: BTreeSet<String>,
    /// It stands behind a sentence with a citation.
    is_behind: bool,
}

/// Words of a sentence that names no code and says something all the same.
const WORDS: usize = 4;
/// Stands where a citation was wrong.
const UNVERIFIED: &str = "unverified";
/// Stands behind a claim that has no citation.
const UNCITED: &str = " [uncited]";

impl Block {
    pub fn check(source: &str, checker: &Checker) -> Block {
        let mut block = Block {
            source: source.to_owned(),
            text: String::new(),
            citations: Vec::new(),
            moved: Vec::new(),
            wrong: Vec::new(),
            bare: Vec::new(),
            borne_out: BTreeSet::new(),
        };
        if is_fence(source) {
            source.clone_into(&mut block.text);
            return block;
        }
        let claims = claims(source, checker);
        let mut at = 0;
        for (nth, claim) in claims.iter().enumerate() {
            for cited in &claim.cited {
                block.text.push_str(&source[at..cited.mark.span.start]);
                at = cited.mark.span.end;
                let shown = block.check_cited(cited, claim, checker);
                block.text.push_str(&shown);
            }
            let covered = claims[nth..].iter().any(|later| !later.cited.is_empty());
            if covered {
                block.borne_out.extend(claim.names.iter().cloned());
            } else if !claim.denies && says_something(&source[claim.span.clone()], claim) {
                block.bare.push(Bare {
                    span: claim.span.clone(),
                    names: claim.own_names.clone(),
                    is_behind: claims[..nth]
                        .iter()
                        .any(|earlier| !earlier.cited.is_empty()),
                });
            }
        }
        block.text.push_str(&source[at..]);
        block
    }

    /// Checks the lines of one citation; what is to be shown in its place.
    fn check_cited(&mut self, cited: &Cited, claim: &Claim, checker: &Checker) -> String {
        let mark = &cited.mark;
        let mut good: Vec<Citation> = Vec::new();
        for lines in &mark.lines {
            let written = format!("{}:{}", mark.path, range(lines.0, lines.1));
            match checker.check(cited, *lines, claim) {
                Verdict::Holds(citation) => good.push(citation),
                Verdict::Moved(citation) => {
                    self.moved.push((written, citation.place()));
                    good.push(citation);
                }
                Verdict::Wrong(why) => {
                    let text = self.source[claim.span.clone()].trim().to_owned();
                    let dropped = Dropped {
                        citation: written,
                        claim: text,
                        why,
                    };
                    let span = claim.span.clone();
                    let what = FlawKind::WrongCitation(dropped);
                    self.wrong.push(Flaw { span, what });
                }
            }
        }
        let Some(first) = good.first() else {
            return self.unverified(mark);
        };
        let lines: Vec<String> = good
            .iter()
            .map(|citation| range(citation.line, citation.last_line))
            .collect();
        let shown = match good.iter().all(|citation| citation.path == first.path) {
            true => format!("{}:{}", first.path, lines.join(",")),
            false => good
                .iter()
                .map(Citation::place)
                .collect::<Vec<_>>()
                .join(", "),
        };
        self.citations.append(&mut good);
        shown
    }

    /// In brackets of its own only where the citation had none.
    fn unverified(&self, mark: &Mark) -> String {
        let before = &self.source[..mark.span.start];
        match before.rfind(['[', '(']) > before.rfind([']', ')']) {
            true => UNVERIFIED.to_owned(),
            false => format!("[{UNVERIFIED}]"),
        }
    }

    /// Claims that rest on nothing, if these names are borne out elsewhere: half of the names of a claim
    /// make it a summary of what is cited there.
    pub fn uncited(&self, borne_out: &BTreeSet<String>) -> Vec<Flaw> {
        let flaw = |span: &Range<usize>| Flaw {
            span: span.clone(),
            what: FlawKind::Uncited,
        };
        self.bare
            .iter()
            .filter(|bare| bare.rests_on_nothing(borne_out))
            .map(|bare| flaw(&bare.span))
            .collect()
    }

    /// All claims that are marked: those that rest on nothing, those that stand behind a sentence with a
    /// citation and have none of their own, and those that name no code.
    pub fn without_citation(&self, borne_out: &BTreeSet<String>) -> Vec<Range<usize>> {
        let is_marked = |bare: &&Bare| {
            bare.is_behind || bare.names.is_empty() || bare.rests_on_nothing(borne_out)
        };
        let marked = self.bare.iter().filter(is_marked);
        marked.map(|bare| bare.span.clone()).collect()
    }

    /// Names in claims that have a citation.
    pub fn borne_out(&self) -> &BTreeSet<String> {
        &self.borne_out
    }

    /// The text, with a mark behind each claim that rests on nothing.
    pub fn marked(&self, borne_out: &BTreeSet<String>) -> String {
        let mut text = self.text.clone();
        let mut from = 0;
        for span in self.without_citation(borne_out) {
            // Bare claims hold no citation, so they stand in the text as they stand in the source.
            let claim = self.source[span].trim_end();
            if let Some(at) = text[from..].find(claim) {
                from += at + claim.len();
                text.insert_str(from, UNCITED);
                from += UNCITED.len();
            }
        }
        text
    }

    /// The source with claims replaced; an empty replacement leaves a claim out.
    pub fn replaced(&self, mut claims: Vec<(Range<usize>, String)>) -> String {
        let mut text = self.source.clone();
        claims.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        claims.dedup_by_key(|(span, _)| span.start);
        for (span, new) in claims {
            let old = &self.source[span.clone()];
            let lead = &old[..old.len() - old.trim_start().len()];
            let tail = &old[old.trim_end().len()..];
            let bullet = match starts_item(old) && !starts_item(&new) && !new.is_empty() {
                true => item_head(old.trim_start()),
                false => "",
            };
            text.replace_range(span, &format!("{lead}{bullet}{}{tail}", new.trim()));
        }
        text
    }
}

impl Bare {
    /// Half of the names of a claim make it a summary of what is cited for them.
    fn rests_on_nothing(&self, borne_out: &BTreeSet<String>) -> bool {
        self.names.intersection(borne_out).count() * 2 < self.names.len()
    }
}

/// Whether a sentence claims something: no heading, no row of a table, no question, and not the words
/// before a list.
fn says_something(sentence: &str, claim: &Claim) -> bool {
    let sentence = sentence.trim();
    let is_frame = sentence.starts_with(['#', '|']) || sentence.ends_with([':', '?']);
    !claim.own_names.is_empty() || !is_frame && words(sentence).len() >= WORDS
}

/// Whether a block, or a line, begins a fence of code.
pub fn is_fence(text: &str) -> bool {
    text.trim_start().starts_with("```")
}

/// The blocks of a text; together they are the text.
pub fn blocks(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut start, mut at, mut fenced, mut blank) = (0, 0, false, false);
    for line in text.split_inclusive('\n') {
        let fence = is_fence(line);
        let begins = !fenced && (blank || fence || starts_item(line));
        if begins && at > start && !line.trim().is_empty() {
            found.push(&text[start..at]);
            start = at;
        }
        at += line.len();
        let closes = fenced && fence;
        fenced ^= fence;
        blank = closes || (!fenced && line.trim().is_empty());
    }
    if at > start {
        found.push(&text[start..at]);
    }
    found
}

/// Whether a line begins an item of a list, a heading or a row of a table.
fn starts_item(line: &str) -> bool {
    !item_head(line.trim_start()).is_empty() || line.trim_start().starts_with(['#', '|'])
}

/// `- `, `* ` or `1. ` at the start of a line.
fn item_head(line: &str) -> &str {
    for bullet in ["- ", "* ", "+ ", "• "] {
        if line.starts_with(bullet) {
            return &line[..bullet.len()];
        }
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    match line[digits..].starts_with(". ") || line[digits..].starts_with(") ") {
        true if digits > 0 => &line[..digits + 2],
        true | false => "",
    }
}
