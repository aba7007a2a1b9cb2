//! Splits a text into claims: sentences, each with the citations that support it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::mark::{CitationMark, Files, marks};
use starling_swarm::reading::stems as words;

/// A citation, with the words, names and quotes of the part of the sentence that it supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CitedPart {
    pub mark: CitationMark,
    /// Significant words between the previous citation and this one.
    pub words: BTreeSet<String>,
    /// Members (`Class.method`) that the citation is about: those named as code directly before it,
    /// else those of the sentence.
    pub members: BTreeSet<String>,
    /// Names of code before the citation, without the names that are part of a member
    /// (`Class.method`).
    pub others: BTreeSet<String>,
    /// Names that the text between the previous citation and this one marks as code, including the
    /// names of members. If this is the only citation of the sentence, or if there is no text
    /// between the two citations, the names that the whole sentence marks as code.
    pub code: BTreeSet<String>,
    /// Names of code in the whole sentence, without the names that are part of a member
    /// (`Class.method`).
    pub others_of_sentence: BTreeSet<String>,
    /// Text that the sentence appears to quote from the cited lines.
    pub quotes: Vec<String>,
    /// Pieces of code in back-quotes that are no names, and too short for `quotes`: `> 0`.
    pub signs: Vec<String>,
    /// Words of three letters in the sentence, outside of code. They are too short for `words`, but a
    /// cited line may contain one as a name: `low`.
    pub short_words: BTreeSet<String>,
}

/// One sentence of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The sentence's byte range in the block.
    pub span: Range<usize>,
    pub cited: Vec<CitedPart>,
    /// Code names in the sentence and in the uncited sentences directly before it.
    pub names: BTreeSet<String>,
    /// Significant words in the sentence and in the uncited sentences directly before it.
    pub words: BTreeSet<String>,
    /// Names that this sentence marks as code.
    pub own_names: BTreeSet<String>,
    pub denial: Denial,
}

/// Whether a sentence denies something, and whether that denial can be supported by a citation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denial {
    No,
    /// The sentence says that something does not exist. No line can be cited for that.
    Presence,
    /// The sentence denies a behaviour of named code, as in "`f` never raises an error". The lines
    /// of that code can be cited.
    Behaviour,
}

/// Abbreviations whose full stop does not end a sentence.
const SHORTENED: [&str; 7] = ["e.g", "i.e", "etc", "vs", "cf", "no", "approx"];
const DENIALS: [&str; 12] = [
    "no", "not", "never", "nothing", "none", "nowhere", "cannot", "without", "neither", "nor",
    "unknown", "unclear",
];
/// Words that make a denial a [`Denial::Presence`]: something does not exist, is unused or unknown.
const ABSENCE: [&str; 46] = [
    "nothing",
    "nobody",
    "nowhere",
    "none",
    "unknown",
    "unclear",
    "there",
    "exist",
    "exists",
    "existing",
    "use",
    "used",
    "uses",
    "user",
    "users",
    "call",
    "called",
    "caller",
    "callers",
    "calls",
    "run",
    "runs",
    "reach",
    "reached",
    "found",
    "find",
    "see",
    "seen",
    "know",
    "known",
    "mentioned",
    "imported",
    "referenced",
    "refers",
    "tested",
    "test",
    "tests",
    "covered",
    "documented",
    "described",
    "says",
    "said",
    "shown",
    "told",
    "needed",
    "written",
];
const KEYWORDS: [&str; 14] = [
    "self", "cls", "None", "True", "False", "return", "def", "class", "import", "from", "if",
    "else", "not", "in",
];

/// Words of three letters that are no evidence for a line, because most texts or lines contain them.
const COMMON: [&str; 34] = [
    "The", "all", "and", "any", "are", "but", "can", "def", "del", "for", "get", "had", "has",
    "how", "its", "may", "new", "nor", "not", "now", "off", "one", "out", "own", "per", "set",
    "the", "too", "try", "two", "use", "via", "was", "who",
];

/// Returns the claims of one block of prose, in order.
pub fn claims(block: &str, files: &impl Files) -> Vec<Claim> {
    let all = marks(block, files);
    let plain = without_files(block, files);
    let mut claims: Vec<Claim> = Vec::new();
    // Names and words of the sentences since the last citation.
    let (mut names, mut words_so_far) = (BTreeSet::new(), BTreeSet::new());
    for span in sentences(block, &all) {
        let own: Vec<CitationMark> = all
            .iter()
            .filter(|mark| span.contains(&mark.span.start))
            .cloned()
            .collect();
        let prose = without(block, &span, &own);
        if bare(&prose)
            && let Some(before) = claims.last_mut()
        {
            let lead = words(&block[before.span.clone()]);
            before
                .cited
                .extend(cited((block, &plain), &span, own, lead));
            before.span.end = span.end;
            (names, words_so_far) = (BTreeSet::new(), BTreeSet::new());
            continue;
        }
        let of_code = without(&plain, &span, &own);
        names.extend(identifiers(&of_code));
        words_so_far.extend(words(&of_code));
        let claim = Claim {
            names: names.clone(),
            words: words_so_far.clone(),
            own_names: names_as_code(&of_code),
            denial: denial(&prose),
            cited: cited((block, &plain), &span, own, BTreeSet::new()),
            span,
        };
        if !claim.cited.is_empty() {
            (names, words_so_far) = (BTreeSet::new(), BTreeSet::new());
        }
        claims.push(claim);
    }
    claims
}

/// Returns the citations, each with the words that precede it. Citations that directly follow each
/// other have the same words. `plain` is the block without names of files.
fn cited(
    (block, plain): (&str, &str),
    span: &Range<usize>,
    marks: Vec<CitationMark>,
    mut lead: BTreeSet<String>,
) -> Vec<CitedPart> {
    let mut at = span.start;
    let mut found = Vec::new();
    let is_only = marks.len() == 1;
    let mut quotes = Vec::new();
    let of_sentence = members(&plain[span.clone()]);
    let others_of_sentence = others(&without(plain, span, &marks));
    let (mut about, mut others_before) = (BTreeSet::new(), BTreeSet::new());
    let code_of_sentence = names_as_code(&without(plain, span, &marks));
    let prose = without(block, span, &marks);
    let (signs, short_words) = (signs_in(&prose), short_words(&prose));
    let mut code;
    for mark in marks {
        let quoted = match is_only {
            true => quotes_in(&without(block, span, std::slice::from_ref(&mark))),
            false => quotes_in(&block[at..mark.span.start]),
        };
        if !quoted.is_empty() || !bare(&block[at..mark.span.start]) {
            quotes = quoted;
        }
        let clause = words(&block[at..mark.span.start]);
        let before = &plain[at..mark.span.start];
        if !clause.is_empty() {
            lead = clause;
            others_before = others(before);
            code = names_as_code(before);
        } else {
            code = code_of_sentence.clone();
        }
        let named = members(before);
        if !named.is_empty() {
            about = named;
        }
        at = mark.span.end;
        let is_about_all = is_only || about.is_empty();
        found.push(CitedPart {
            mark,
            words: lead.clone(),
            members: if is_about_all { &of_sentence } else { &about }.clone(),
            others: others_before.clone(),
            code: if is_only { &code_of_sentence } else { &code }.clone(),
            others_of_sentence: others_of_sentence.clone(),
            quotes: quotes.clone(),
            signs: signs.clone(),
            short_words: short_words.clone(),
        });
    }
    found
}

/// Blanks the names of the project's files, because they say nothing about a line of a file.
fn without_files(block: &str, files: &impl Files) -> String {
    let mut plain = block.to_owned();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let mut at = 0;
    for part in block.split_inclusive(|c| !is_part(c)) {
        let start = at;
        at += part.len();
        let name = part.trim_end_matches(|c| !is_part(c)).trim_end_matches('.');
        let has_ending = name.trim_start_matches('.').contains(['.', '/']);
        if has_ending && files.is_file(name) {
            plain.replace_range(start..start + name.len(), &" ".repeat(name.len()));
        }
    }
    plain
}

/// Whether the text contains only brackets and punctuation, so that its citation belongs to the
/// previous sentence.
fn bare(prose: &str) -> bool {
    !prose.contains(char::is_alphanumeric)
}

fn without(block: &str, span: &Range<usize>, marks: &[CitationMark]) -> String {
    let mut prose = String::new();
    let mut at = span.start;
    for mark in marks {
        prose.push_str(&block[at..mark.span.start]);
        at = mark.span.end.min(span.end);
    }
    prose.push_str(&block[at..span.end]);
    prose
}

/// Returns the sentence of a claim with spaces in place of its citations.
pub fn without_citations(block: &str, claim: &Claim) -> String {
    let mut sentence = block[claim.span.clone()].to_owned();
    for cited in &claim.cited {
        let span = &cited.mark.span;
        let (from, to) = (span.start - claim.span.start, span.end - claim.span.start);
        sentence.replace_range(from..to, &" ".repeat(to - from));
    }
    sentence
}

/// Splits a block into sentences. Together, they contain every byte of the block. No sentence ends
/// inside a citation, brackets or back-quotes.
fn sentences(block: &str, marks: &[CitationMark]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut start, mut quoted, mut depth) = (0, false, 0_i32);
    for (at, c) in block.char_indices() {
        if marks.iter().any(|mark| mark.span.contains(&at)) {
            continue;
        }
        match c {
            '`' => quoted = !quoted,
            '[' | '(' if !quoted => depth += 1,
            ']' | ')' if !quoted => depth = (depth - 1).max(0),
            '.' | '!' | '?' if at >= start && !quoted && depth == 0 && ends_here(block, at) => {
                let end = behind_citations(block, at + c.len_utf8(), marks);
                found.push(start..end);
                start = end;
            }
            _ => {}
        }
    }
    if start < block.len() {
        found.push(start..block.len());
    }
    found
}

/// Returns the end of the citations in brackets that follow a sentence; they belong to the
/// sentence.
fn behind_citations(block: &str, end: usize, marks: &[CitationMark]) -> usize {
    let mut end = end;
    loop {
        let rest = &block[end..];
        let open = end + rest.len() - rest.trim_start().len();
        let closes = match block[open..].chars().next() {
            Some('[') => block[open..].find(']'),
            Some('(') => block[open..].find(')'),
            Some(_) | None => None,
        };
        let Some(close) = closes.map(|at| open + at + 1) else {
            return end;
        };
        let inside: Vec<CitationMark> = marks
            .iter()
            .filter(|mark| (open..close).contains(&mark.span.start) && mark.span.end <= close)
            .cloned()
            .collect();
        if inside.is_empty() || !bare(&without(block, &(open..close), &inside)) {
            return end;
        }
        end = close;
        if block[end..].starts_with('.') {
            end += 1;
        }
    }
}

fn ends_here(block: &str, at: usize) -> bool {
    let rest = &block[at + 1..];
    let next = rest.trim_start().chars().next();
    let spaced = rest.is_empty() || rest.starts_with(char::is_whitespace);
    let opens = next.is_none_or(|c| !c.is_lowercase());
    let word = block[..at]
        .rsplit(|c: char| c.is_whitespace() || matches!(c, '(' | '['))
        .next()
        .unwrap_or_default();
    let listed = word.chars().all(|c| c.is_ascii_digit()) && at <= 4;
    spaced && opens && !listed && !SHORTENED.contains(&word.to_lowercase().as_str())
}

/// Minimum length in bytes of a quote that must be in the file.
const SHORTEST: usize = 6;

/// Returns the pieces of code in back-quotes that are no names and shorter than a quote.
fn signs_in(prose: &str) -> Vec<String> {
    const SHORTEST_SIGN: usize = 3;
    let in_ticks = prose.split('`').skip(1).step_by(2);
    let is_sign = |text: &&str| {
        let is_short = (SHORTEST_SIGN..SHORTEST).contains(&text.len());
        is_short && text.contains(|c: char| !c.is_alphanumeric() && !"_.()".contains(c))
    };
    in_ticks.filter(is_sign).map(str::to_owned).collect()
}

/// Returns the words of three letters outside of code that may be names in a line of code.
fn short_words(prose: &str) -> BTreeSet<String> {
    let outside = prose.split('`').step_by(2);
    let words = outside.flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'));
    let words = words.filter(|word| word.chars().count() == 3 && !COMMON.contains(word));
    words.map(str::to_owned).collect()
}

/// Returns the quoted texts that are more than a name: code in back-quotes and text in double
/// quotes.
fn quotes_in(prose: &str) -> Vec<String> {
    let in_ticks = prose.split('`').skip(1).step_by(2);
    let outside = prose.split('`').step_by(2).collect::<String>();
    let in_quotes = outside.split('"').skip(1).step_by(2).map(str::to_owned);
    let is_more = |text: &String| {
        let is_name = |c: char| c.is_alphanumeric() || "_.()".contains(c);
        text.len() >= SHORTEST && !text.chars().all(is_name)
    };
    let all = in_ticks.map(str::to_owned).chain(in_quotes);
    all.filter(is_more).collect()
}

/// Returns the names that a sentence marks as code: in back-quotes, or followed by `()`.
fn names_as_code(prose: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (nth, part) in prose.split('`').enumerate() {
        if nth % 2 == 1 {
            names.extend(parts_of(part));
        } else {
            let called = part.match_indices("()").map(|(at, _)| &part[..at]);
            // An empty `()` after a space is what remains of a citation in brackets. It is not a
            // call.
            let called = called.filter(|before| !before.ends_with(char::is_whitespace));
            names.extend(called.filter_map(|before| parts_of(before).pop()));
        }
    }
    names
}

/// Returns dotted names (`Class.method`) in back-quotes.
fn members(prose: &str) -> BTreeSet<String> {
    let quoted = prose.split('`').skip(1).step_by(2);
    let names = quoted.map(|part| part.trim().trim_end_matches("()"));
    let is_member = |name: &&str| name.contains('.') && name.split('.').all(is_name);
    names.filter(is_member).map(str::to_owned).collect()
}

/// Returns the names that a text marks as code, without the names that are part of a member
/// (`Class.method`).
fn others(prose: &str) -> BTreeSet<String> {
    let members = members(prose);
    let parts: BTreeSet<String> = members.iter().flat_map(|name| parts_of(name)).collect();
    &names_as_code(prose) - &parts
}

/// Returns the code names in a text: in back-quotes, called, or in a spelling that only code has.
pub fn identifiers(prose: &str) -> BTreeSet<String> {
    let mut names = names_as_code(prose);
    let word = |c: char| !c.is_alphanumeric() && c != '_' && c != '.';
    for dotted in prose.split(word) {
        let dotted = dotted.trim_matches('.');
        for part in dotted.split('.').filter(|part| is_name(part)) {
            let inside = part.len() > 1 && dotted.contains('.') && dotted.split('.').all(is_name);
            if inside || part.trim_matches('_').contains('_') || has_humps(part) {
                names.insert(part.to_owned());
            }
        }
    }
    names
}

fn parts_of(code: &str) -> Vec<String> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|part| is_name(part))
        .map(str::to_owned)
        .collect()
}

fn is_name(part: &str) -> bool {
    part.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && part.contains(char::is_alphabetic)
        && !KEYWORDS.contains(&part)
}

/// Whether a word is in mixed case: `HttpResponse`, but not `Http` or `HTTP`.
fn has_humps(word: &str) -> bool {
    let capitals = word.chars().skip(1).filter(|c| c.is_uppercase()).count();
    capitals > 0 && word.chars().any(char::is_lowercase)
}

fn denial(prose: &str) -> Denial {
    if !denies(prose) {
        return Denial::No;
    }
    let outside = prose.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let lower = outside.to_lowercase();
    if code_does_not_use(prose) {
        return Denial::Behaviour;
    }
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    match names_as_code(prose).is_empty() || words.any(|word| ABSENCE.contains(&word)) {
        true => Denial::Presence,
        false => Denial::Behaviour,
    }
}

/// Returns whether a sentence says that named code does not use something, as in "`f` does not call
/// `g`". The lines of `f` can be cited.
fn code_does_not_use(prose: &str) -> bool {
    const DOES_NOT: [&str; 6] = [
        "does not ",
        "do not ",
        "doesn't ",
        "don't ",
        "never ",
        "neither ",
    ];
    const VERBS: [&str; 10] = [
        "use", "uses", "call", "calls", "read", "reads", "mention", "mentions", "import", "imports",
    ];
    let mut places = DOES_NOT.iter().flat_map(|words| {
        prose
            .match_indices(words)
            .map(|(at, _)| (at, at + words.len()))
    });
    places.any(|(at, end)| {
        let verb = prose[end..].split(|c: char| !c.is_alphanumeric()).next();
        let is_use = verb.is_some_and(|verb| VERBS.contains(&verb));
        is_use && !names_as_code(&prose[..at]).is_empty()
    })
}

fn denies(prose: &str) -> bool {
    let lower = prose.to_lowercase();
    lower.contains("n't")
        || lower
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| DENIALS.contains(&word))
}
