//! Parses one sentence of a task for a request: `rename the function a in b.py to c`, `a should be
//! called b`, `delete a`.

use crate::lookup::Lookup;
use crate::task::asked::{Token, names_file};
use starling_syntax::{SymbolKind, SymbolPath};

const ARTICLES: [&str; 6] = ["the", "our", "this", "that", "a", "my"];
/// Words before the name of a symbol to delete.
const DEAD: [&str; 9] = [
    "dead",
    "unused",
    "old",
    "obsolete",
    "legacy",
    "unneeded",
    "needless",
    "superfluous",
    "useless",
];
const DELETE: [&str; 4] = ["delete", "remove", "drop", "drops"];
const TO: [&str; 3] = ["to", "into", "as"];
/// Prepositions before a file or symbol, as in "the function a in b.py".
const OF: [&str; 3] = ["in", "of", "from"];
/// Maximum number of words that describe a file or symbol after a preposition.
const PLACE_MOST: usize = 6;
/// Words that may follow the name of a symbol to delete. If another word follows, the sentence asks
/// to delete only a part of the symbol.
const AFTER_DELETED: [&str; 16] = [
    "and",
    "it",
    "because",
    "since",
    "as",
    "which",
    "that",
    "entirely",
    "completely",
    "altogether",
    "now",
    "too",
    "nobody",
    "nothing",
    "everywhere",
    "-",
];
/// Words that may be added to a request without asking for anything else.
const BESIDE: [&str; 36] = [
    "please",
    "everywhere",
    "in",
    "all",
    "files",
    "file",
    "the",
    "its",
    "and",
    "update",
    "callers",
    "uses",
    "usages",
    "tests",
    "test",
    "project",
    "whole",
    "across",
    "code",
    "base",
    "codebase",
    "throughout",
    "too",
    "also",
    "with",
    "every",
    "use",
    "caller",
    "of",
    "it",
    "including",
    "imports",
    "references",
    "where",
    "is",
    "used",
];

/// Words that occur in the reason for a deletion, such as "because it is unused".
const REASON: [&str; 27] = [
    "because", "since", "as", "it", "they", "which", "that", "is", "are", "was", "were", "dead",
    "unused", "obsolete", "code", "not", "no", "longer", "more", "any", "anymore", "used",
    "needed", "nobody", "nothing", "uses", "calls",
];

/// The kind of entity that a request says it is about, such as "the function" or "the option".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntityKind {
    /// A function, a method or a class.
    Code,
    /// A variable of a module.
    Variable,
    /// An attribute, which may be a method.
    Member,
    /// A parameter or an option. Its name is not defined at module level.
    Parameter,
    File,
    /// A text in strings: a column, a key or a message.
    Text,
}

impl EntityKind {
    pub(super) fn of(word: &str) -> Option<Self> {
        let kind = match word {
            "function" | "functions" | "method" | "methods" | "class" | "classes" | "dataclass"
            | "dataclasses" | "helper" | "helpers" | "symbol" | "enum" => EntityKind::Code,
            "constant" | "constants" | "variable" | "variables" | "global" => EntityKind::Variable,
            "attribute" | "attributes" | "field" | "fields" | "property" | "member" | "members" => {
                EntityKind::Member
            }
            "parameter" | "argument" | "option" | "flag" | "keyword" => EntityKind::Parameter,
            "file" | "module" => EntityKind::File,
            "column" | "columns" | "key" | "keys" | "label" | "message" | "subcommand"
            | "subcommands" => EntityKind::Text,
            _ => return None,
        };
        Some(kind)
    }
}

/// The rename or deletion that a sentence requests.
pub(super) struct SentenceRequest<'s> {
    pub token: &'s Token,
    pub kind: Option<EntityKind>,
    /// The file or symbol that contains the entity, in the words of the task.
    pub place: Vec<&'s str>,
    /// The new name; `None` for a deletion.
    pub to: Option<&'s Token>,
    /// Whether the sentence says "should be called", which may also be about the number of calls.
    pub is_called: bool,
    /// Whether the sentence asks for nothing else.
    pub is_whole: bool,
}

/// The entity in a sentence, and the index of the word after it.
struct RequestedEntity<'s> {
    token: &'s Token,
    kind: Option<EntityKind>,
    place: Vec<&'s str>,
    next: usize,
}

pub(super) fn wish<'s>(lookup: &Lookup, sentence: &'s [Token]) -> Option<SentenceRequest<'s>> {
    let sentence = Sentence {
        words: sentence.iter().map(|one| one.word.to_lowercase()).collect(),
        tokens: sentence,
        lookup,
    };
    let renamed = sentence.renamed();
    renamed
        .or_else(|| sentence.called())
        .or_else(|| sentence.deleted())
}

pub(super) fn says_nothing_else(words: &[Token]) -> bool {
    let is_beside = |token: &Token| BESIDE.contains(&token.word.to_lowercase().as_str());
    words.iter().all(is_beside)
}

/// Splits a sentence with requests about several names into one sentence for each request: `delete
/// a and b`, `rename a to b and c to d`. Each result begins with the words before the first name.
/// Returns the sentence itself if it contains only one request.
pub(super) fn parts(lookup: &Lookup, sentence: &[Token]) -> Vec<Vec<Token>> {
    let word = |token: &Token| token.word.to_lowercase();
    let is_verb = |token: &Token| {
        let word = word(token);
        word == "rename" || DELETE.contains(&word.as_str())
    };
    let Some(verb) = sentence.iter().position(is_verb) else {
        return vec![sentence.to_vec()];
    };
    let mut parts: Vec<Vec<Token>> = Vec::new();
    let is_and = |at: usize| sentence.get(at).is_some_and(|token| word(token) == "and");
    let (mut lead, mut from) = (&sentence[..=verb], verb + 1);
    for at in verb + 1..=sentence.len() {
        let is_end = at == sentence.len() || is_and(at) || sentence[at - 1].ends_clause;
        if !is_end || at <= from {
            continue;
        }
        let all = &sentence[from..at];
        let words = &all[usize::from(is_and(from))..];
        from = at;
        let is_more = |last: &Vec<Token>| says_no_name(words) || is_place(lookup, last, words);
        if let Some(last) = parts.last_mut()
            && is_more(last)
        {
            last.extend_from_slice(all);
            continue;
        }
        let mut part = Vec::new();
        match words.iter().position(is_verb) {
            Some(own) => lead = &words[..=own],
            None => part.extend_from_slice(lead),
        }
        part.extend_from_slice(words);
        parts.push(part);
    }
    parts
}

/// A kind of entity that a deletion may be restricted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceSort {
    File,
    Class,
}

impl PlaceSort {
    fn of(lookup: &Lookup, word: &str) -> Option<PlaceSort> {
        if lookup.files().iter().any(|file| names_file(word, file)) {
            return Some(PlaceSort::File);
        }
        let defined = lookup.index().definitions_of(word);
        let mut defined = defined.iter();
        let is_class = |symbol: &SymbolPath| {
            let found = lookup.symbol(symbol);
            found.is_ok_and(|found| found.symbol.kind == SymbolKind::Class)
        };
        let is_any = defined.any(|one| is_class(&one.symbol));
        is_any.then_some(PlaceSort::Class)
    }
}

/// Returns whether words continue the list of files or classes at the end of a deletion, as `B` does
/// in `delete the method f of A and B`.
fn is_place(lookup: &Lookup, before: &[Token], words: &[Token]) -> bool {
    let lower = |token: &Token| token.word.to_lowercase();
    let is_told = |token: &&Token| {
        let word = lower(token);
        !ARTICLES.contains(&word.as_str()) && EntityKind::of(&word).is_none()
    };
    let of = before
        .iter()
        .rposition(|one| OF.contains(&lower(one).as_str()));
    let place = of.and_then(|of| before[of + 1..].iter().find(is_told));
    let sort = place.and_then(|place| PlaceSort::of(lookup, &place.word));
    let Some(at) = words.iter().position(|token| is_told(&token)) else {
        return false;
    };
    let is_rename = before.iter().any(|token| lower(token) == "rename");
    !is_rename
        && sort.is_some()
        && PlaceSort::of(lookup, &words[at].word) == sort
        && words[..at]
            .iter()
            .all(|token| EntityKind::of(&lower(token)) != Some(EntityKind::Member))
        && says_no_name(&words[at + 1..])
}

fn says_no_name(words: &[Token]) -> bool {
    let is_known = |token: &Token| {
        let word = token.word.to_lowercase();
        !token.is_quoted && (BESIDE.contains(&word.as_str()) || REASON.contains(&word.as_str()))
    };
    words.iter().all(is_known)
}

/// A sentence that is being parsed.
struct Sentence<'s, 'l> {
    tokens: &'s [Token],
    /// The words in lower case.
    words: Vec<String>,
    lookup: &'l Lookup,
}

impl<'s> Sentence<'s, '_> {
    /// Parses `rename the function a to b`.
    fn renamed(&self) -> Option<SentenceRequest<'s>> {
        let verb = self.words.iter().position(|word| word == "rename")?;
        if self.is_negated(verb) {
            return None;
        }
        let object = self.object(verb + 1)?;
        let object = self.with_place_until_to(object)?;
        let to = self.skip(object.next, &[&TO]);
        if to == object.next {
            return None;
        }
        let to = self.skip_kinds(to, &[&ARTICLES]).0;
        self.wish(object, (verb, to), false)
    }

    /// Parses `a should be called b`.
    fn called(&self) -> Option<SentenceRequest<'s>> {
        /// Words after "called" that say how often or how a function is called.
        const HOW: [&str; 24] = [
            "once", "twice", "thrice", "again", "only", "never", "always", "exactly", "lazily",
            "early", "late", "first", "last", "before", "after", "by", "with", "without", "from",
            "for", "when", "if", "in", "at",
        ];
        const MUST: [&str; 4] = ["should", "must", "shall", "to"];
        const CALLED: [&str; 3] = ["called", "named", "renamed"];
        let is_must = |word: &String| MUST.contains(&word.as_str());
        let must = self.words.iter().position(is_must)?;
        let called = must + 2;
        let is_it = self.words.get(must + 1).is_some_and(|word| word == "be")
            && self.is_any(called, &CALLED);
        if !is_it || self.is_negated(must) {
            return None;
        }
        // For example `a of the class B in b.py should be called c`.
        let (mut begin, name) = self.phrase_before(must)?;
        let mut places = vec![name];
        while let Some(of) = begin.checked_sub(1).filter(|at| self.is_any(*at, &OF)) {
            let name;
            (begin, name) = self.phrase_before(of)?;
            places.push(name);
        }
        places.pop();
        let mut object = self.object(begin)?;
        let places = places.into_iter().map(|at| self.tokens[at].word.as_str());
        object.place.extend(places);
        let to = self.skip(called + 1, &[&TO]);
        let is_quoted = self.tokens.get(to).is_some_and(|to| to.is_quoted);
        if self.is_any(to, &HOW) && !is_quoted {
            return None;
        }
        self.wish(object, (begin, to), self.words[called] == "called")
    }

    /// Returns the indices of the first word of the phrase that ends before `end`, such as `the
    /// field a` or `the A class`, and of the name in it.
    fn phrase_before(&self, end: usize) -> Option<(usize, usize)> {
        let is_beside = |at: usize| self.is_any(at, &ARTICLES) || self.kind(at).is_some();
        let mut name = end.checked_sub(1)?;
        let is_name = |at: usize| !is_beside(at) && !self.is_any(at, &OF);
        if self.kind(name).is_some() && name.checked_sub(1).is_some_and(is_name) {
            name -= 1;
        }
        let mut begin = name;
        while begin > 0 && is_beside(begin - 1) {
            begin -= 1;
        }
        Some((begin, name))
    }

    /// Creates the request to rename an object. `begin` is the index of the first word of the
    /// request, `to` the index of the new name.
    fn wish(
        &self,
        object: RequestedEntity<'s>,
        (begin, to): (usize, usize),
        is_called: bool,
    ) -> Option<SentenceRequest<'s>> {
        let new = self.tokens.get(to)?;
        let (mut place, mut after) = (object.place, to + 1);
        // For example `rename a to b in c.py`.
        if let Some((told, next)) = self.known_place(after).filter(|_| !new.ends_clause) {
            place.push(told);
            after = next;
        }
        let before = self.before(begin, &mut place);
        Some(SentenceRequest {
            token: object.token,
            kind: object.kind,
            place,
            to: Some(new),
            is_called,
            is_whole: before && says_nothing_else(&self.tokens[after..]),
        })
    }

    /// Parses `delete the unused function a`.
    fn deleted(&self) -> Option<SentenceRequest<'s>> {
        let is_delete = |word: &String| DELETE.contains(&word.as_str());
        let verb = self.words.iter().position(is_delete)?;
        if self.is_negated(verb) {
            return None;
        }
        let RequestedEntity {
            token,
            kind,
            mut place,
            mut next,
        } = self.object(verb + 1)?;
        if !token.ends_clause && next < self.words.len() {
            let of = self.known_place(next);
            // For example `the attribute a of B`.
            let of = of.or_else(|| kind.and_then(|_| self.any_place(next)));
            if let Some((told, after)) = of {
                place.push(told);
                next = after;
                while let Some((told, after)) = self.further_place(told, next) {
                    place.push(told);
                    next = after;
                }
            } else if !self.may_follow(next) {
                return None;
            }
        }
        let before = self.before(verb, &mut place);
        Some(SentenceRequest {
            token,
            kind,
            place,
            to: None,
            is_called: false,
            is_whole: before && says_no_name(&self.tokens[next..]),
        })
    }

    /// Returns the place that continues a list of places: `C` in `from A, B and C`.
    fn further_place(&self, told: &str, next: usize) -> Option<(&'s str, usize)> {
        let sort = PlaceSort::of(self.lookup, told)?;
        let is_and = self.is_any(next, &["and"]);
        if !is_and && !self.tokens.get(next - 1)?.ends_clause {
            return None;
        }
        let at = self
            .skip_kinds(next + usize::from(is_and), &[&["and"], &ARTICLES])
            .0;
        let word = &self.tokens.get(at)?.word;
        (PlaceSort::of(self.lookup, word) == Some(sort)).then_some((word, at + 1))
    }

    /// Returns whether the word at `at` may follow the name of a symbol to delete.
    fn may_follow(&self, at: usize) -> bool {
        // In `remove total and tax from the report`, the names refer to parts of the report, not to
        // symbols.
        let goes_on = self.is_any(at + 1, &BESIDE);
        self.is_any(at, &AFTER_DELETED) && (self.words[at] != "and" || goes_on)
    }

    /// Parses the entity that starts at a word: `the unused function a`, `A's method b`, `the a
    /// option`.
    fn object(&self, from: usize) -> Option<RequestedEntity<'s>> {
        let (mut at, mut kind) = self.skip_kinds(from, &[&ARTICLES, &DEAD]);
        // If only articles and kinds precede the end of the request, the last of them is the name
        // itself.
        let is_past = at >= self.words.len() || self.is_any(at, &TO);
        if is_past && at > from {
            at -= 1;
            kind = (from..at).rev().find_map(|one| self.kind(one));
        }
        let mut place = Vec::new();
        let mut token = self.tokens.get(at)?;
        if let Some(owner) = owner(&token.word) {
            let (next, of_it) = self.skip_kinds(at + 1, &[]);
            place.push(owner);
            (at, kind) = (next, of_it);
            token = self.tokens.get(at)?;
        }
        let (mut next, after) = (at + 1, self.kind(at + 1));
        if after.is_some() && !token.ends_clause {
            kind = kind.or(after);
            next += 1;
        }
        Some(RequestedEntity {
            token,
            kind,
            place,
            next,
        })
    }

    /// If a file or symbol is given between an object and its new name, adds it to the object.
    /// Returns `None` if other words are there.
    fn with_place_until_to(&self, mut object: RequestedEntity<'s>) -> Option<RequestedEntity<'s>> {
        if !self.is_any(object.next, &OF) {
            return Some(object);
        }
        let from = object.next + 1;
        let until = (from..self.words.len())
            .take(PLACE_MOST)
            .find(|at| self.is_any(*at, &TO))?;
        let told = self.tokens[from..until].iter();
        object.place.extend(told.map(|token| token.word.as_str()));
        object.next = until;
        Some(object)
    }

    /// Returns the file or symbol at a word, and the index of the word after it; `None` if it does
    /// not exist.
    fn known_place(&self, at: usize) -> Option<(&'s str, usize)> {
        let (told, next) = self.any_place(at)?;
        self.is_known_place(told).then_some((told, next))
    }

    fn any_place(&self, at: usize) -> Option<(&'s str, usize)> {
        if !self.is_any(at, &OF) {
            return None;
        }
        let at = self.skip_kinds(at + 1, &[&ARTICLES]).0;
        let token = self.tokens.get(at)?;
        // For example `from the abstract base class A`.
        let is_class = |at: &usize| {
            self.kind(*at) == Some(EntityKind::Code) && !self.tokens[at - 1].ends_clause
        };
        let named = (at + 1..at + 3).find(is_class).map(|class| class + 1);
        let named = named.filter(|_| !self.is_known_place(&token.word));
        let named = named.filter(|at| {
            let is_known = |token: &Token| is_symbol(self.lookup, &token.word);
            !self.tokens[at - 1].ends_clause && self.tokens.get(*at).is_some_and(is_known)
        });
        let at = named.unwrap_or(at);
        Some((&self.tokens[at].word, at + 1))
    }

    fn is_known_place(&self, told: &str) -> bool {
        self.is_file(told) || is_symbol(self.lookup, told)
    }

    /// Returns whether the words before the verb ask for nothing else. Files and symbols that these
    /// words name as places are added to `place`.
    fn before(&self, verb: usize, place: &mut Vec<&'s str>) -> bool {
        let is_place = |at: &usize| {
            let word = &self.tokens[*at].word;
            let is_after_of = at.checked_sub(1).is_some_and(|of| self.is_any(of, &OF));
            self.is_file(word) || is_after_of && is_symbol(self.lookup, word)
        };
        let (places, others): (Vec<usize>, Vec<usize>) = (0..verb).partition(is_place);
        place.extend(places.iter().map(|at| self.tokens[*at].word.as_str()));
        let mut others = others.iter().map(|at| &self.tokens[*at]);
        let is_beside = |token: &Token| BESIDE.contains(&token.word.to_lowercase().as_str());
        others.all(is_beside)
    }

    fn is_file(&self, word: &str) -> bool {
        let is_path = word.contains(['/', '.']);
        let mut files = self.lookup.files().iter();
        is_path && files.any(|file| names_file(word, file)) || word.ends_with(".py")
    }

    fn kind(&self, at: usize) -> Option<EntityKind> {
        let kind = EntityKind::of(self.words.get(at)?);
        kind.or_else(|| self.is_text_beside(at).then_some(EntityKind::Text))
    }

    /// Returns whether a word tells, beside a quoted name that no code has, that the name stands in
    /// strings.
    fn is_text_beside(&self, at: usize) -> bool {
        const TEXTS: [&str; 12] = [
            "command", "commands", "setting", "settings", "header", "heading", "tag", "event",
            "topic", "format", "status", "entry",
        ];
        let is_name = |token: &Token| token.is_quoted && !is_symbol(self.lookup, &token.word);
        let before = at.checked_sub(1).and_then(|at| self.tokens.get(at));
        let mut beside = before.into_iter().chain(self.tokens.get(at + 1));
        let is_known = self.is_any(at, &TEXTS) && beside.any(is_name);
        !self.tokens[at].is_quoted && (is_known || self.is_noun_of_text(at))
    }

    /// Returns whether a word says what the name after it is, as in `the tariff "senior"` or `the tariff
    /// senior to ...`, if no code has that name and strings contain it.
    fn is_noun_of_text(&self, at: usize) -> bool {
        const MUST: [&str; 5] = ["be", "called", "named", "rename", "renamed"];
        let (Some(noun), Some(name)) = (self.tokens.get(at), self.tokens.get(at + 1)) else {
            return false;
        };
        let lists: [&[&str]; 7] = [&ARTICLES, &DEAD, &DELETE, &TO, &OF, &BESIDE, &MUST];
        let is_noun = noun.word.chars().all(char::is_lowercase)
            && !noun.ends_clause
            && !noun.is_in_quotes
            && !lists.iter().any(|list| self.is_any(at, list))
            && !is_symbol(self.lookup, &noun.word);
        let is_name = name.is_quoted || name.is_in_quotes || self.is_any(at + 2, &TO);
        is_noun
            && is_name
            && !is_symbol(self.lookup, &name.word)
            && !self.lookup.index().in_strings(&name.word).is_empty()
    }

    fn is_any(&self, at: usize, list: &[&str]) -> bool {
        let word = self.words.get(at);
        word.is_some_and(|word| list.contains(&word.as_str()))
    }

    /// Returns the first index from `at` on whose word is in none of the lists, or is quoted.
    fn skip(&self, mut at: usize, lists: &[&[&str]]) -> usize {
        let is_quoted = |at: usize| self.tokens.get(at).is_some_and(|token| token.is_quoted);
        while lists.iter().any(|list| self.is_any(at, list)) && !is_quoted(at) {
            at += 1;
        }
        at
    }

    /// Skips words of the lists as [`Self::skip`] does, and words that name a kind of entity
    /// ("function", "class"). Returns the index of the next word, and the last kind that was
    /// skipped.
    fn skip_kinds(&self, mut at: usize, lists: &[&[&str]]) -> (usize, Option<EntityKind>) {
        let mut kind = None;
        loop {
            let next = self.skip(at, lists);
            match self.kind(next) {
                Some(found) => {
                    kind = Some(found);
                    at = next + 1;
                }
                None => return (next, kind),
            }
        }
    }

    fn is_negated(&self, verb: usize) -> bool {
        const NOT: [&str; 6] = ["not", "don't", "dont", "never", "without", "no"];
        let before = self.words[..verb].iter().rev().take(3);
        before.into_iter().any(|word| NOT.contains(&word.as_str()))
    }
}

/// Returns the owner from a possessive: `Stock` for `` `Stock`'s ``.
fn owner(word: &str) -> Option<&str> {
    let owner = word
        .strip_suffix("'s")
        .or_else(|| word.strip_suffix("\u{2019}s"))?;
    Some(owner.trim_end_matches('`'))
}

fn is_symbol(lookup: &Lookup, word: &str) -> bool {
    let name = word.trim_end_matches("()");
    !lookup.index().definitions_of(name).is_empty()
}
