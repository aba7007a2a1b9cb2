//! Extracts references to code from a task's text: words, names, paths, traceback frames, and error
//! messages.

use std::collections::HashMap;

use super::sections::{Line, SECTIONS, Section, lines};
use super::stem::roots;
use super::stop::is_stop_word;
use crate::words::{Term, all_words, words};

/// The occurrences of a name in a text, and their form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mention {
    /// Number of occurrences in each section.
    pub(super) times: [u16; SECTIONS],
    /// Whether at least one occurrence of the name looks like code: `max_length`, `CharField`,
    /// `a.b`, `f()`.
    pub(super) looks_like_code: bool,
    /// Whether at least one occurrence of the name is a call.
    pub(super) called: bool,
    /// Whether the text itself defines or binds the name.
    pub(super) own: bool,
}

impl Mention {
    pub(super) fn stands_in(&self, section: Section) -> bool {
        self.times[section as usize] > 0
    }
}

/// A location in code, from a traceback frame or a link: a file, and the line and the function if
/// they are known. In a traceback, the last location is where the error occurred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodeLocation {
    pub(super) path: String,
    pub(super) line: Option<u32>,
    pub(super) function: Option<String>,
}

/// A word of the text, or a part of a compound word.
#[derive(Debug)]
pub(super) struct QueryTerm {
    pub(super) term: Term,
    /// The word as first written, in lower case.
    pub(super) word: String,
    /// Number of occurrences in each section of the text.
    pub(super) times: [u16; SECTIONS],
}

impl QueryTerm {
    pub(super) fn stands_in(&self, section: Section) -> bool {
        self.times[section as usize] > 0
    }
}

/// The references to code in a text.
#[derive(Debug, Default)]
pub(super) struct Query {
    pub(super) terms: Vec<QueryTerm>,
    /// The words of the title in order, without stop words.
    pub(super) title: Vec<Term>,
    /// Single identifiers, including those in dotted names.
    pub(super) names: HashMap<String, Mention>,
    /// Dotted names such as `a.b.c`, each with its section.
    pub(super) dotted: Vec<(String, Section)>,
    /// Paths that end in `.py`.
    pub(super) paths: Vec<String>,
    /// Frames of tracebacks.
    pub(super) frames: Vec<CodeLocation>,
    /// Links in the text to lines of code.
    pub(super) links: Vec<CodeLocation>,
    /// Error messages.
    pub(super) messages: Vec<String>,
}

impl Query {
    pub(super) fn read(text: &str) -> Self {
        let mut query = Query::default();
        let mut terms = HashMap::new();
        for line in lines(text) {
            match line {
                Line::Frame(place) => query.frames.push(place),
                Line::Link(place) => query.links.push(place),
                Line::Text(line, section) => {
                    if section == Section::Title {
                        let said = words(&line).filter(|word| !is_stop_word(word));
                        query.title = said.map(Term::of).collect();
                    }
                    if section == Section::Error {
                        query.read_message(&line);
                    }
                    weigh(&mut terms, &line, section);
                    query.read_line(&line, section);
                    for option in options(&line) {
                        query.read_option(&mut terms, option, section);
                    }
                }
            }
        }
        query.terms = terms.into_values().collect();
        // The terms are sorted because floating-point sums depend on their order.
        query
            .terms
            .sort_unstable_by_key(|term: &QueryTerm| term.term);
        query
    }

    /// Returns the positions of a term in the title. Only the first 64 words count, one for each
    /// bit of a mask.
    pub(super) fn places_in_title(&self, term: Term) -> impl Iterator<Item = usize> {
        let words = self.title.iter().take(u64::BITS as usize).enumerate();
        words
            .filter(move |(_, word)| **word == term)
            .map(|(place, _)| place)
    }

    /// Reads a command-line option as the name that the code gives it: `--errors-only` becomes
    /// `errors_only`, as in `args.errors_only`, with the weight of quoted text.
    fn read_option(
        &mut self,
        terms: &mut HashMap<Term, QueryTerm>,
        option: &str,
        section: Section,
    ) {
        let name = option.replace('-', "_");
        // An option can also be a stop word: `--from`.
        for word in all_words(&name) {
            weigh_word(terms, word, Section::Quote);
        }
        let known = self.names.entry(name).or_default();
        let times = &mut known.times[section as usize];
        *times = times.saturating_add(1);
        known.looks_like_code = true;
    }

    fn read_message(&mut self, line: &str) {
        let message = line.split_once(": ").map_or("", |(_, message)| message);
        if message.len() > 5 {
            self.messages.push(message.to_owned());
        }
    }

    fn read_line(&mut self, line: &str, section: Section) {
        let mut quoted = false;
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
        let mut rest = line;
        let mut before = "";
        while let Some(c) = rest.chars().next() {
            if !is_name(c) {
                quoted ^= c == '`';
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            rest = after;
            let section = match section {
                Section::Lead | Section::Prose if quoted => Section::Quote,
                other => other,
            };
            let own = matches!(section, Section::Block | Section::Error)
                && (matches!(before, "class" | "def")
                    || (after.trim_start().starts_with('=')
                        && !after.trim_start().starts_with("==")
                        && line.trim_start().starts_with(token)));
            let token_trimmed = token.trim_matches(['.', '-', '/']);
            let seen = TokenContext {
                section,
                called: after.starts_with('('),
                own,
                quoted,
            };
            self.read_token(token_trimmed, seen);
            before = token;
        }
    }

    /// Reads a run of characters that can be part of names and paths.
    fn read_token(&mut self, token: &str, seen: TokenContext) {
        if token.ends_with(".py") {
            self.paths.push(token.to_owned());
            return;
        }
        for word in token.split(['/', '-']) {
            let dotted = word.contains('.') && word.split('.').all(is_identifier);
            if dotted {
                self.dotted.push((word.to_owned(), seen.section));
            }
            let mut parts = word.split('.').peekable();
            while let Some(name) = parts.next() {
                // A single lower-case letter is usually a variable.
                let is_variable = name.len() < 2 && !name.starts_with(char::is_uppercase);
                if is_variable || !is_identifier(name) {
                    continue;
                }
                let last = parts.peek().is_none();
                let known = self.names.entry(name.to_owned()).or_default();
                let times = &mut known.times[seen.section as usize];
                *times = times.saturating_add(1);
                known.called |= seen.called && last;
                known.own |= seen.own && !dotted;
                known.looks_like_code |=
                    (seen.called && last) || dotted || seen.quoted || is_code_like(name);
            }
        }
    }
}

/// The context in which a token occurs.
#[derive(Clone, Copy)]
struct TokenContext {
    section: Section,
    called: bool,
    own: bool,
    quoted: bool,
}

fn weigh(terms: &mut HashMap<Term, QueryTerm>, line: &str, section: Section) {
    let mut quoted = false;
    for (at, run) in line.split('`').enumerate() {
        let section = match section {
            Section::Lead | Section::Prose if quoted => Section::Quote,
            other => other,
        };
        quoted = at % 2 == 0;
        if matches!(section, Section::Title | Section::Lead | Section::Prose) {
            weigh_compounds(terms, run, section);
            let plain = words(run).filter(|word| !is_stop_word(word));
            for root in plain.flat_map(roots) {
                weigh_word(terms, &root, section);
            }
        }
        for word in all_words(run).filter(|word| !is_stop_word(word)) {
            weigh_word(terms, word, section);
        }
    }
}

/// Returns the names of options in a line, without their dashes: `errors-only` for
/// `--errors-only=yes`.
fn options(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| c.is_whitespace() || "`'\"(),;[]{}|".contains(c));
    words.filter_map(|word| {
        let name = word.strip_prefix("--")?.split('=').next()?;
        let name = name.trim_end_matches(['.', ':', '?', '!']);
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_name =
            name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_part);
        is_name.then_some(name)
    })
}

fn weigh_word(terms: &mut HashMap<Term, QueryTerm>, word: &str, section: Section) {
    let term = Term::of(word);
    let known = terms.entry(term).or_insert_with(|| QueryTerm {
        term,
        word: word.to_lowercase(),
        times: [0; SECTIONS],
    });
    let times = &mut known.times[section as usize];
    *times = times.saturating_add(1);
}

/// Counts two adjacent words of prose as one name: `bound field` as `BoundField`, `group by` as
/// `group_by`.
fn weigh_compounds(terms: &mut HashMap<Term, QueryTerm>, run: &str, section: Section) {
    let plain = |word: &&str| word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let all: Vec<&str> = run.split_whitespace().collect();
    for pair in all.windows(2).filter(|pair| pair.iter().all(plain)) {
        if !pair.iter().all(|word| is_stop_word(word)) {
            weigh_word(terms, &pair.concat(), section);
            weigh_word(terms, &pair.join("_"), section);
        }
    }
}

pub(super) fn is_identifier(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns whether a name looks like code: `max_length`, `CharField`, but not `Field` at the
/// beginning of a sentence.
fn is_code_like(name: &str) -> bool {
    let inner = name.trim_matches('_');
    let camel =
        inner.chars().skip(1).any(char::is_uppercase) && inner.chars().any(char::is_lowercase);
    inner.contains('_') || camel || name.starts_with("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_their_sections_and_code_syntax() {
        let query = Query::read(
            "CharField checks\nThe `max_length` of a Field is in django/db/fields.py, see a.b.Model.save().\n\
             ```\nclass Mine(Base):\n    other(x)\n```\n",
        );
        let of = |name: &str| query.names[name];
        assert!(of("CharField").stands_in(Section::Title) && of("CharField").looks_like_code);
        assert!(of("max_length").stands_in(Section::Quote));
        assert!(!of("Field").looks_like_code && of("Field").stands_in(Section::Lead));
        assert!(of("save").called && of("other").called && of("other").stands_in(Section::Block));
        assert!(of("Mine").own && !of("Base").own);
        assert_eq!(query.dotted[0].0, "a.b.Model.save");
        assert_eq!(query.paths, ["django/db/fields.py"]);
    }

    #[test]
    fn adjacent_words_are_joined_and_stop_words_are_dropped() {
        let query = Query::read("The bound field is lost\n");
        let has = |word: &str| query.terms.iter().any(|term| term.term == Term::of(word));
        assert!(has("bound") && has("boundfield") && has("bound_field"));
        assert!(!has("the") && !has("is"));
        assert_eq!(query.title.len(), 3);
        assert_eq!(
            query.places_in_title(Term::of("lost")).collect::<Vec<_>>(),
            [2]
        );
    }

    #[test]
    fn command_line_options_are_read_as_names_of_code() {
        let query =
            Query::read("`--errors-only` and --from=x are ignored -- why?\nA ---- line --2\n");
        let has = |word: &str| query.terms.iter().any(|term| term.term == Term::of(word));
        assert!(has("errors_only") && has("only") && has("from"));
        assert!(query.names["errors_only"].looks_like_code && query.names["from"].looks_like_code);
        assert_eq!(
            options("`--a-b`, (--c) --d=1 -- --2 --e!").collect::<Vec<_>>(),
            ["a-b", "c", "d", "e"]
        );
    }

    #[test]
    fn unusual_text_does_not_panic_the_query_parser() {
        for text in [
            "",
            "`",
            "```",
            "é.ü/ß-.py",
            "...",
            "a..b",
            "\u{0}\u{1F600}x_y",
        ] {
            Query::read(text);
        }
    }
}
