//! What a task's text names: words, identifiers, files, frames of tracebacks.

use std::collections::{HashMap, HashSet};

use super::trace::frames;
use super::words::{Term, all_words};

/// How a name stands in a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) in_title: bool,
    /// In back-quotes or a block of code.
    pub(super) in_code: bool,
    /// It looks like a name of code anywhere: `max_length`, `CharField`, `a.b`, `f()`.
    pub(super) looks_like_code: bool,
    pub(super) times: u32,
}

/// A file and line, and the function there, from a traceback. The last one is where it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) function: Option<String>,
}

/// A word or a part of one.
#[derive(Debug)]
pub(super) struct QueryTerm {
    pub(super) term: Term,
    /// As it is written first, in lower case.
    pub(super) word: String,
    pub(super) weight: f64,
}

/// A text, read for what it says about code.
#[derive(Debug, Default)]
pub(super) struct Query {
    pub(super) terms: Vec<QueryTerm>,
    /// Single identifiers, those in dotted names among them.
    pub(super) names: HashMap<String, Mention>,
    /// `a.b.c` as written.
    pub(super) dotted: Vec<String>,
    /// Paths that end in `.py`.
    pub(super) paths: Vec<String>,
    pub(super) places: Vec<Place>,
}

/// How much more a word of the first line counts.
const TITLE_WEIGHT: f64 = 2.0;

impl Query {
    pub(super) fn read(text: &str) -> Self {
        let mut query = Query {
            places: places(text),
            ..Query::default()
        };
        query.weigh_terms(text);
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            let bare = line.trim_start();
            if bare.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let code = fenced
                || bare.starts_with(">>>")
                || bare.starts_with("In [")
                || line.starts_with("    ")
                || line.starts_with('\t');
            query.read_line(line, number == 0, code);
        }
        query
    }

    fn weigh_terms(&mut self, text: &str) {
        let mut counts: HashMap<Term, (f64, &str)> = HashMap::new();
        for word in all_words(text) {
            counts.entry(Term::of(word)).or_insert((0.0, word)).0 += 1.0;
        }
        let title = text.lines().next().unwrap_or_default();
        let title: HashSet<Term> = all_words(title).map(Term::of).collect();
        let weigh = |(term, (count, word)): (Term, (f64, &str))| QueryTerm {
            term,
            word: word.to_lowercase(),
            weight: (1.0 + count.ln())
                * if title.contains(&term) {
                    TITLE_WEIGHT
                } else {
                    1.0
                },
        };
        self.terms = counts.into_iter().map(weigh).collect();
        // The sums of floating-point numbers depend on their order.
        self.terms.sort_unstable_by_key(|term| term.term);
    }

    fn read_line(&mut self, line: &str, in_title: bool, in_code: bool) {
        let mut quoted = false;
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            if !is_name(c) {
                quoted ^= c == '`';
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            rest = after;
            let mention = Mention {
                in_title,
                in_code: in_code || quoted,
                looks_like_code: after.starts_with('('),
                times: 1,
            };
            self.read_token(token.trim_matches(['.', '-', '/']), mention);
        }
    }

    /// A run of the characters of names and paths.
    fn read_token(&mut self, token: &str, mention: Mention) {
        if token.ends_with(".py") {
            self.paths.push(token.to_owned());
            return;
        }
        for word in token.split(['/', '-']) {
            if word.contains('.') && word.split('.').all(is_identifier) {
                self.dotted.push(word.to_owned());
            }
            let dotted = word.contains('.');
            for name in word
                .split('.')
                .filter(|name| name.len() > 1 && is_identifier(name))
            {
                let looks_like_code = mention.looks_like_code || dotted || is_code_like(name);
                self.mention(
                    name,
                    Mention {
                        looks_like_code,
                        ..mention
                    },
                );
            }
        }
    }

    fn mention(&mut self, name: &str, mention: Mention) {
        let known = self.names.entry(name.to_owned()).or_default();
        known.in_title |= mention.in_title;
        known.in_code |= mention.in_code;
        known.looks_like_code |= mention.looks_like_code;
        known.times += mention.times;
    }
}

fn is_identifier(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// `max_length`, `CharField`, but not `Field` at the beginning of a sentence.
fn is_code_like(name: &str) -> bool {
    let inner = name.trim_matches('_');
    let camel =
        inner.chars().skip(1).any(char::is_uppercase) && inner.chars().any(char::is_lowercase);
    inner.contains('_') || camel || name.starts_with("__")
}

fn places(text: &str) -> Vec<Place> {
    frames(text)
        .into_iter()
        .map(|frame| Place {
            path: frame.path.to_owned(),
            line: frame.line,
            function: frame.function.map(str::to_owned),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_names_and_how_they_stand() {
        let query = Query::read(
            "CharField checks\nThe `max_length` of a Field is in django/db/fields.py, see a.b.Model.save().\n\
             ```\ncall(x)\n```\n>>> other\n",
        );
        let of = |name: &str| query.names[name];
        assert!(of("CharField").in_title && of("CharField").looks_like_code);
        assert!(of("max_length").in_code);
        assert!(!of("Field").looks_like_code && !of("Field").in_code);
        assert!(of("call").in_code && of("call").looks_like_code);
        assert!(of("other").in_code);
        assert!(of("save").looks_like_code);
        assert_eq!(query.dotted, ["a.b.Model.save"]);
        assert_eq!(query.paths, ["django/db/fields.py"]);
    }

    #[test]
    fn reads_tracebacks() {
        let query = Query::read("It fails:\n  File \"/x/y.py\", line 3, in f\n    g()\n");
        let place = Place {
            path: "/x/y.py".into(),
            line: 3,
            function: Some("f".into()),
        };
        assert_eq!(query.places, [place]);
    }

    #[test]
    fn any_text_is_read() {
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
