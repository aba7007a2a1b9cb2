//! Splits an answer into blocks (paragraphs, list items, fences) and checks each block as a whole.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::cite::{
    Around, Citation, CitationChecker, CitationMark, CitationVerdict, CitedPart, Claim, Denial,
    Refutation, claims, marks, only_subject, range, without_citations, words,
};

/// A citation that was removed from an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedCitation {
    /// The citation as the model wrote it.
    pub citation: String,
    /// The text of the claim that cited it.
    pub claim: String,
    /// Why the citation is wrong.
    pub why: String,
}

/// A problem of one claim (a statement about the code) in a block of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFlaw {
    /// The byte range of the claim in the block's source.
    pub span: Range<usize>,
    pub what: FlawKind,
}

/// The kind of problem of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlawKind {
    WrongCitation(DroppedCitation),
    /// A claim about code without a supporting citation.
    Uncited {
        /// The code that refutes the claim.
        refuted_by: Option<String>,
    },
}

/// A block and the result of its check.
#[derive(Debug, Clone)]
pub struct Block {
    /// The block as the model wrote it.
    pub source: String,
    /// The block with corrected citations; `UNVERIFIED` replaces each wrong citation.
    pub text: String,
    pub citations: Vec<Citation>,
    /// Corrected citations, as pairs of the original and the corrected text.
    pub moved: Vec<(String, String)>,
    pub wrong: Vec<ClaimFlaw>,
    /// Claims without a citation.
    bare: Vec<UncitedClaim>,
    /// Code names that occur in claims with a citation.
    borne_out: BTreeSet<String>,
    /// Whether this is the first block of the answer and cites nothing. Its first sentence sums up
    /// the answer: the citations of the other blocks support it.
    leads: bool,
}

/// A claim (a statement about the code) that cites no line.
#[derive(Debug, Clone)]
struct UncitedClaim {
    span: Range<usize>,
    /// The code names in the claim.
    names: BTreeSet<String>,
    /// True if the claim follows a sentence with a citation, or denies a behaviour. Such a claim
    /// adds information, so it cannot be a summary of cited claims.
    is_new: bool,
    /// True for the first sentence of its block.
    is_first: bool,
    /// The code that refutes the claim.
    refuted_by: Option<String>,
}

/// Minimum number of words that make a sentence without code names a claim.
const WORDS: usize = 4;
/// Minimum number of words that make a sentence without code names a claim if it follows a sentence
/// with a citation. Such a sentence usually continues to describe the code.
const WORDS_BEHIND: usize = 2;
/// Replaces a wrong citation.
const UNVERIFIED: &str = "unverified";
/// Marker that is appended to a claim without a citation.
const UNCITED: &str = " [uncited]";

impl Block {
    pub fn check(source: &str, checker: &CitationChecker) -> Block {
        Block::check_behind("", source, checker)
    }

    /// Checks a block that stands behind another part of the answer.
    pub fn check_behind(before: &str, source: &str, checker: &CitationChecker) -> Block {
        let mut block = Block {
            source: source.to_owned(),
            text: String::new(),
            citations: Vec::new(),
            moved: Vec::new(),
            wrong: Vec::new(),
            bare: Vec::new(),
            borne_out: BTreeSet::new(),
            leads: false,
        };
        if is_fence(source) {
            source.clone_into(&mut block.text);
            return block;
        }
        let claims = claims(source, checker);
        let so_far = format!("{before}{source}");
        let mut around = Around {
            cited: marks(&so_far, checker),
            text: &so_far,
            it: None,
        };
        let mut at = 0;
        for (nth, claim) in claims.iter().enumerate() {
            let sentence = without_citations(source, claim);
            let refutation = checker.refutation(&sentence, claim.denial, &around);
            let refuted = refutation.as_ref().map(|one| refuted_citation(claim, one));
            for (nth, cited) in claim.cited.iter().enumerate() {
                block.text.push_str(&source[at..cited.mark.span.start]);
                at = cited.mark.span.end;
                let shown = match &refutation {
                    Some(refutation) if refuted == Some(nth) => {
                        block.refuse(cited, claim, refutation)
                    }
                    Some(_) | None => block.check_cited(cited, claim, checker),
                };
                block.text.push_str(&shown);
            }
            around.it = only_subject(&sentence).map(str::to_owned);
            let refuted_by = refutation.map(|one| one.place);
            let is_cited = |claim: &Claim| !claim.cited.is_empty();
            let is_behind = claims[..nth].iter().any(is_cited);
            // The first citation of a block also supports the sentences before it.
            let is_covered = match is_behind {
                true => is_cited(claim),
                false => claims[nth..].iter().any(is_cited),
            };
            let least = if is_behind { WORDS_BEHIND } else { WORDS };
            let sentence = &source[claim.span.clone()];
            let is_claim = claim.denial != Denial::Presence;
            if is_covered && refuted_by.is_none() {
                block.borne_out.extend(claim.names.iter().cloned());
            } else if is_cited(claim) {
                // The refuted citation is among the wrong ones.
            } else if refuted_by.is_some() || is_claim && says_something(sentence, claim, least) {
                block.bare.push(UncitedClaim {
                    span: claim.span.clone(),
                    names: claim.own_names.clone(),
                    is_new: is_behind || claim.denial == Denial::Behaviour,
                    is_first: nth == 0,
                    refuted_by,
                });
            }
        }
        block.text.push_str(&source[at..]);
        block
    }

    /// Checks the first block of an answer.
    pub fn check_first(source: &str, checker: &CitationChecker) -> Block {
        let block = Block::check(source, checker);
        let leads = block.citations.is_empty() && block.wrong.is_empty();
        Block { leads, ..block }
    }

    /// Records that the index refutes the statement of a citation, and returns the text that replaces the
    /// citation.
    fn refuse(&mut self, cited: &CitedPart, claim: &Claim, refutation: &Refutation) -> String {
        let mark = &cited.mark;
        let lines: Vec<String> = mark.lines.iter().map(|one| range(one.0, one.1)).collect();
        let written = format!("{}:{}", mark.path, lines.join(","));
        self.add_wrong(written, claim, format!("not so: see {}", refutation.place));
        self.unverified(mark)
    }

    fn add_wrong(&mut self, citation: String, claim: &Claim, why: String) {
        let dropped = DroppedCitation {
            citation,
            claim: self.source[claim.span.clone()].trim().to_owned(),
            why,
        };
        self.wrong.push(ClaimFlaw {
            span: claim.span.clone(),
            what: FlawKind::WrongCitation(dropped),
        });
    }

    /// Checks each line range of a citation and returns the text that replaces the citation.
    fn check_cited(
        &mut self,
        cited: &CitedPart,
        claim: &Claim,
        checker: &CitationChecker,
    ) -> String {
        let mark = &cited.mark;
        let mut good: Vec<Citation> = Vec::new();
        for lines in &mark.lines {
            let written = format!("{}:{}", mark.path, range(lines.0, lines.1));
            match checker.check(cited, *lines, claim) {
                CitationVerdict::Holds(citation) => good.push(citation),
                CitationVerdict::Moved(citation) => {
                    self.moved.push((written, citation.place()));
                    good.push(citation);
                }
                CitationVerdict::Wrong(why) => self.add_wrong(written, claim, why),
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

    /// Returns the marker for a wrong citation, in brackets unless the citation already has them.
    fn unverified(&self, mark: &CitationMark) -> String {
        let before = &self.source[..mark.span.start];
        match before.rfind(['[', '(']) > before.rfind([']', ')']) {
            true => UNVERIFIED.to_owned(),
            false => format!("[{UNVERIFIED}]"),
        }
    }

    /// Returns the unsupported claims. `borne_out` holds the names that cited claims mention: a
    /// claim is supported if at least half of its names are among them, because it then summarizes
    /// cited claims.
    pub fn uncited(&self, borne_out: &BTreeSet<String>) -> Vec<ClaimFlaw> {
        let flaw = |bare: &UncitedClaim| ClaimFlaw {
            span: bare.span.clone(),
            what: FlawKind::Uncited {
                refuted_by: bare.refuted_by.clone(),
            },
        };
        let is_flaw =
            |bare: &&UncitedClaim| bare.refuted_by.is_some() || bare.rests_on_nothing(borne_out);
        self.bare.iter().filter(is_flaw).map(flaw).collect()
    }

    /// Returns the uncited claims to mark in the answer: claims that no citation supports, claims that
    /// the index refutes, claims that follow a cited sentence or deny a behaviour, and claims that name
    /// no code.
    pub fn without_citation(&self, borne_out: &BTreeSet<String>) -> Vec<Range<usize>> {
        let is_marked = |bare: &&UncitedClaim| {
            let adds = bare.is_new || bare.names.is_empty();
            let is_answer = self.leads && bare.is_first && !borne_out.is_empty();
            bare.refuted_by.is_some() || adds && !is_answer || bare.rests_on_nothing(borne_out)
        };
        let marked = self.bare.iter().filter(is_marked);
        marked.map(|bare| bare.span.clone()).collect()
    }

    /// Returns the code names that occur in claims with a citation.
    pub fn borne_out(&self) -> &BTreeSet<String> {
        &self.borne_out
    }

    /// Returns the text with `UNCITED` after each claim that [`Block::without_citation`] returns.
    pub fn marked(&self, borne_out: &BTreeSet<String>) -> String {
        let mut text = self.text.clone();
        let mut from = 0;
        for span in self.without_citation(borne_out) {
            // A claim without a citation is not edited, so `self.text` contains it unchanged.
            let claim = self.source[span].trim_end();
            if let Some(at) = text[from..].find(claim) {
                from += at + claim.len();
                text.insert_str(from, UNCITED);
                from += UNCITED.len();
            }
        }
        text
    }

    /// Returns the source with the given claims replaced. An empty replacement deletes the claim.
    pub fn replaced(&self, mut claims: Vec<(Range<usize>, String)>) -> String {
        let mut text = self.source.clone();
        claims.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        claims.dedup_by_key(|(span, _)| span.start);
        for (span, new) in claims {
            let old = &self.source[span.clone()];
            if new.is_empty() {
                delete_claim(&mut text, span, old);
                continue;
            }
            let lead = &old[..old.len() - old.trim_start().len()];
            let tail = &old[old.trim_end().len()..];
            let bullet = match starts_item(old) && !starts_item(&new) {
                true => item_head(old.trim_start()),
                false => "",
            };
            text.replace_range(span, &format!("{lead}{bullet}{}{tail}", new.trim()));
        }
        text
    }
}

impl UncitedClaim {
    /// Whether the claim is unsupported: fewer than half of its names appear in cited claims.
    fn rests_on_nothing(&self, borne_out: &BTreeSet<String>) -> bool {
        self.names.intersection(borne_out).count() * 2 < self.names.len()
    }
}

/// Deletes a claim from a block, with the white space before it. The bullet of a list item stays if the
/// item has another sentence.
fn delete_claim(text: &mut String, span: Range<usize>, old: &str) {
    let tail = &old[old.trim_end().len()..];
    let after = &text[span.end..];
    let next = span.end + after.len() - after.trim_start_matches(' ').len();
    let lead = &old[..old.len() - old.trim_start().len()];
    if !text[..span.start].trim().is_empty() {
        text.replace_range(span, tail);
    } else if text[next..].trim().is_empty() {
        text.replace_range(span, &format!("{lead}{tail}"));
    } else {
        let head = format!("{lead}{}", item_head(old.trim_start()));
        text.replace_range(span.start..next, &head);
    }
}

/// Returns the position of the citation that stands for a refuted statement: the first one behind it, or
/// else the last one of the sentence.
fn refuted_citation(claim: &Claim, refutation: &Refutation) -> usize {
    let end = claim.span.start + refutation.end;
    let behind = claim
        .cited
        .iter()
        .position(|cited| cited.mark.span.start >= end);
    behind.unwrap_or_else(|| claim.cited.len().saturating_sub(1))
}

/// Whether a sentence makes a claim: it names code, or has at least `least` words. Headings, table
/// rows, questions and list introductions make none.
fn says_something(sentence: &str, claim: &Claim, least: usize) -> bool {
    let sentence = sentence.trim();
    let is_frame = sentence.starts_with(['#', '|']) || sentence.ends_with([':', '?']);
    !claim.own_names.is_empty() || !is_frame && words(sentence).len() >= least
}

/// Whether a block or line starts a fenced code block.
pub fn is_fence(text: &str) -> bool {
    text.trim_start().starts_with("```")
}

/// Splits a text into blocks. The blocks joined together equal the text.
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

/// Whether a line starts a list item, a heading or a table row.
fn starts_item(line: &str) -> bool {
    !item_head(line.trim_start()).is_empty() || line.trim_start().starts_with(['#', '|'])
}

/// Returns the list marker (`- `, `* `, `1. `) at the start of a line, or an empty string.
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
