//! What a task says in plain words must become of a symbol: another name, or its end. Read from the words
//! and the index alone; no model is asked. A run is done only when it is so.

use super::asked::{Token, sentences};
use super::hub::Hub;
use super::lookup::Lookup;
use starling_index::is_test_file;
use starling_syntax::SymbolPath;

/// What is to become of a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stated {
    Renamed { from: SymbolPath, to: String },
    Deleted { symbol: SymbolPath },
}

/// What a task states.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Statements {
    pub all: Vec<Stated>,
    /// Whether the task asks for nothing else.
    pub are_whole_task: bool,
}

/// Words that keep the old name, or ask for something beside.
const KEEPS: [&str; 9] = [
    "alias",
    "aliases",
    "backward",
    "backwards",
    "compatible",
    "compatibility",
    "deprecate",
    "deprecated",
    "shim",
];
const ARTICLES: [&str; 6] = ["the", "our", "this", "that", "a", "my"];
const KINDS: [&str; 9] = [
    "function",
    "functions",
    "method",
    "methods",
    "class",
    "classes",
    "helper",
    "helpers",
    "symbol",
];
/// What may stand before the name of what is deleted.
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
/// What may follow the name of what is deleted: after anything else, something of it is meant.
const AFTER_DELETED: [&str; 21] = [
    "function",
    "method",
    "class",
    "helper",
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
    "–",
];
/// What may be said beside, and asks for nothing else.
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

/// What a task states of symbols that it names, each of which must be the only one of its name.
pub(super) fn of(lookup: &Lookup, task: &str) -> Statements {
    let says_more = |word: &str| KEEPS.contains(&word.to_lowercase().as_str());
    let sentences = sentences(&task.replace("->", " to ").replace('→', " to "));
    if sentences
        .iter()
        .flatten()
        .any(|token| says_more(&token.word))
    {
        return Statements::default();
    }
    let mut found = Statements {
        all: Vec::new(),
        are_whole_task: true,
    };
    for sentence in sentences.iter().filter(|sentence| !sentence.is_empty()) {
        match in_sentence(lookup, sentence) {
            Some((stated, is_whole)) => {
                found.all.push(stated);
                found.are_whole_task &= is_whole;
            }
            None => found.are_whole_task &= says_nothing_else(sentence),
        }
    }
    found.are_whole_task &= !found.all.is_empty();
    found
}

/// What the task states and the run did not do, in words.
pub(super) fn unmet(hub: &Hub) -> Vec<String> {
    let lookup = hub.lookup();
    let stated = hub.stated().all.iter();
    stated.filter_map(|one| one.unmet(&lookup)).collect()
}

/// What one sentence states, and whether it says nothing else.
fn in_sentence(lookup: &Lookup, sentence: &[Token]) -> Option<(Stated, bool)> {
    let words: Vec<String> = sentence.iter().map(|one| one.word.to_lowercase()).collect();
    let (stated, from, to) = renamed(lookup, sentence, &words)
        .or_else(|| called(lookup, sentence, &words))
        .or_else(|| deleted(lookup, sentence, &words))?;
    let is_whole = says_nothing_else(&sentence[..from]) && says_nothing_else(&sentence[to..]);
    Some((stated, is_whole))
}

fn says_nothing_else(words: &[Token]) -> bool {
    let is_beside = |token: &Token| BESIDE.contains(&token.word.to_lowercase().as_str());
    words.iter().all(is_beside)
}

type Found = (Stated, usize, usize);

/// `rename the function a to b`.
fn renamed(lookup: &Lookup, sentence: &[Token], words: &[String]) -> Option<Found> {
    let verb = words.iter().position(|word| word == "rename")?;
    if is_negated(&words[..verb]) {
        return None;
    }
    let from = skip(words, verb + 1, &[&ARTICLES, &KINDS]);
    let after = skip(words, from + 1, &[&KINDS]);
    let to = skip(words, after, &[&TO]);
    if to == after {
        return None;
    }
    let to = skip(words, to, &[&ARTICLES, &KINDS]);
    let symbol = the_only(lookup, &sentence.get(from)?.word)?;
    let stated = new_name(symbol, &sentence.get(to)?.word)?;
    Some((stated, verb, to + 1))
}

/// `a should be called b`.
fn called(lookup: &Lookup, sentence: &[Token], words: &[String]) -> Option<Found> {
    const MUST: [&str; 4] = ["should", "must", "shall", "to"];
    const CALLED: [&str; 3] = ["called", "named", "renamed"];
    let must = words
        .iter()
        .position(|word| MUST.contains(&word.as_str()))?;
    let called = must + 2;
    let is_it = words.get(must + 1).is_some_and(|word| word == "be")
        && words
            .get(called)
            .is_some_and(|word| CALLED.contains(&word.as_str()));
    let from = must.checked_sub(1)?;
    if !is_it || is_negated(&words[..must]) {
        return None;
    }
    let to = skip(words, called + 1, &[&TO]);
    let symbol = the_only(lookup, &sentence.get(from)?.word)?;
    let stated = new_name(symbol, &sentence.get(to)?.word)?;
    let begin = (0..from).rfind(|at| !is_one_of(&words[*at], &[&ARTICLES, &KINDS]));
    Some((stated, begin.map_or(0, |at| at + 1), to + 1))
}

/// `delete the unused function a`.
fn deleted(lookup: &Lookup, sentence: &[Token], words: &[String]) -> Option<Found> {
    let verb = words
        .iter()
        .position(|word| DELETE.contains(&word.as_str()))?;
    if is_negated(&words[..verb]) {
        return None;
    }
    // It may be called as such a word.
    let at = skip(words, verb + 1, &[&ARTICLES, &KINDS, &DEAD]).min(words.len() - 1);
    let is_end = sentence.get(at)?.ends_clause || at + 1 == words.len();
    let mut next = at + 1;
    if !is_end {
        // `remove total and tax from the report` means something of them.
        let goes_on = words
            .get(next + 1)
            .is_some_and(|word| is_one_of(word, &[&BESIDE]));
        let follows =
            AFTER_DELETED.contains(&words[next].as_str()) && (words[next] != "and" || goes_on);
        // `remove total from shop.py`, but not `remove total from the exports`.
        let file = sentence.get(next + 1).map(|token| token.word.as_str());
        let is_from = ["from", "in"].contains(&words[next].as_str())
            && file.is_some_and(|file| file.contains('/') || file.ends_with(".py"));
        if !follows && !is_from {
            return None;
        }
        next += if is_from {
            2
        } else {
            usize::from(is_one_of(&words[next], &[&KINDS]))
        };
    }
    let symbol = the_only(lookup, &sentence[at].word)?;
    Some((Stated::Deleted { symbol }, verb, next))
}

fn new_name(from: SymbolPath, to: &str) -> Option<Stated> {
    let to = to.trim_end_matches("()");
    let to = to.rsplit(['.', ':']).next().unwrap_or(to);
    let is_name = |name: &str| {
        name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
    };
    let is_other = is_name(to) && to != from.base_name();
    is_other.then(|| Stated::Renamed {
        from,
        to: to.to_owned(),
    })
}

/// The only symbol outside of tests that a word names; a plain English word that is no name of the
/// project names none.
fn the_only(lookup: &Lookup, word: &str) -> Option<SymbolPath> {
    let name = word.trim_start_matches('#').trim_end_matches("()");
    let base = name.rsplit(['.', ':']).next().unwrap_or(name);
    let found = lookup.index().definitions(name);
    let mut found = found
        .into_iter()
        .map(|one| one.symbol)
        .filter(|symbol| symbol.base_name() == base && !is_test_file(&symbol.file));
    let only = found.next()?;
    found.next().is_none().then_some(only)
}

fn is_one_of(word: &str, lists: &[&[&str]]) -> bool {
    lists.iter().any(|list| list.contains(&word))
}

/// The first place from `at` on that is in none of the lists.
fn skip(words: &[String], at: usize, lists: &[&[&str]]) -> usize {
    let rest = words.iter().skip(at);
    at + rest.take_while(|word| is_one_of(word, lists)).count()
}

fn is_negated(before: &[String]) -> bool {
    const NOT: [&str; 6] = ["not", "don't", "dont", "never", "without", "no"];
    before
        .iter()
        .rev()
        .take(3)
        .any(|word| NOT.contains(&word.as_str()))
}

impl Stated {
    /// The symbol as it is called before.
    pub fn symbol(&self) -> &SymbolPath {
        match self {
            Stated::Renamed { from, .. } => from,
            Stated::Deleted { symbol } => symbol,
        }
    }

    /// What is not yet so, in words; `None` where it is done.
    pub fn unmet(&self, lookup: &Lookup) -> Option<String> {
        let symbol = self.symbol();
        let is_there = |path: &SymbolPath| lookup.symbol(path).is_ok();
        if is_there(symbol) {
            return Some(format!("`{}` is still in {}", symbol.name, symbol.file));
        }
        match self {
            Stated::Deleted { .. } => None,
            Stated::Renamed { to, .. } => {
                let definitions = lookup.index().definitions(to);
                let is_defined = definitions.iter().any(|one| one.symbol.base_name() == to);
                (!is_defined).then(|| format!("there is no `{to}`"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use starling_index::Index;
    use starling_syntax::FilePath;
    use starling_workspace::{Overlay, Workspace};

    fn lookup() -> Lookup {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(dir.path().to_owned()).unwrap();
        let shop = "def total(x):\n    return x\n\n\ndef relic():\n    pass\n\n\ndef old():\n    pass\n\n\nclass Cart:\n    \
                    def size(self):\n        return 1\n\n\ndef twice():\n    pass\n";
        let files = [
            ("shop.py", shop),
            ("other.py", "def twice():\n    pass\n"),
            ("test_shop.py", "def total():\n    pass\n"),
        ];
        let overlay: Overlay = files
            .into_iter()
            .map(|(name, text)| (FilePath::new(name), Some(text.into())))
            .collect();
        let world = workspace.snapshot(overlay);
        Lookup::new(world.clone(), Arc::new(Index::new(world)))
    }

    /// What a task states: `from>to` or `-symbol`, with `!` where that is not all of it.
    fn stated(task: &str) -> String {
        let found = of(&lookup(), task);
        let one = |stated: &Stated| match stated {
            Stated::Renamed { from, to } => format!("{}>{to}", from.name),
            Stated::Deleted { symbol } => format!("-{}", symbol.name),
        };
        let all: Vec<String> = found.all.iter().map(one).collect();
        let rest = if found.are_whole_task || all.is_empty() {
            ""
        } else {
            "!"
        };
        all.join(" ") + rest
    }

    #[test]
    fn renamings_and_deletions_are_read_from_plain_words() {
        for (task, expected) in [
            ("rename total to sum_up", "total>sum_up"),
            ("Rename `total` to `sum_up`.", "total>sum_up"),
            ("Rename the function total() to sum_up()", "total>sum_up"),
            ("rename total -> sum_up", "total>sum_up"),
            ("rename total into sum_up everywhere", "total>sum_up"),
            (
                "Please rename total to sum_up in all files.",
                "total>sum_up",
            ),
            (
                "Rename total to sum_up and update its callers and tests",
                "total>sum_up",
            ),
            ("rename shop.total to sum_up", "total>sum_up"),
            ("rename shop.py::total to sum_up", "total>sum_up"),
            ("rename #total to sum_up", "total>sum_up"),
            (
                "Rename the method Cart.size to Cart.count",
                "Cart.size>count",
            ),
            ("rename the class Cart to Basket", "Cart>Basket"),
            ("rename Cart class to Basket", "Cart>Basket"),
            ("total should be called sum_up", "total>sum_up"),
            ("`total` must be renamed to `sum_up`.", "total>sum_up"),
            ("the function total should be named sum_up", "total>sum_up"),
            (
                "Rename total to sum_up. It must round to cents.",
                "total>sum_up!",
            ),
            (
                "Rename total to sum_up and add a parameter",
                "total>sum_up!",
            ),
            ("delete relic", "-relic"),
            ("Delete the function relic.", "-relic"),
            ("remove the unused function relic", "-relic"),
            ("Remove the dead function relic from shop.py", "-relic"),
            ("drop relic()", "-relic"),
            ("delete the unused function old", "-old"),
            ("remove relic, nobody calls it", "-relic!"),
            ("remove `relic` because it is unused", "-relic!"),
            ("delete relic and its tests", "-relic"),
            ("delete Cart.size", "-Cart.size"),
            (
                "Delete relic. Rename total to sum_up.",
                "-relic total>sum_up",
            ),
        ] {
            assert_eq!(stated(task), expected, "{task}");
        }
    }

    #[test]
    fn other_words_state_nothing() {
        for task in [
            "rename the file shop.py to store.py",
            "rename the column total to sum in the report",
            "rename missing to found",
            "rename twice to thrice",
            "Do not rename total to sum_up",
            "rename total",
            "rename total's parameter x to y",
            "rename total to sum_up and keep total as an alias",
            "rename total to sum_up, deprecated for a year",
            "remove the total line from the report",
            "remove the size parameter of total",
            "remove total from the exports",
            "remove the call of total",
            "remove total and size from the report",
            "remove the total column",
            "Don't delete relic",
            "delete the cache",
            "drop duplicates in total",
            "fix total",
            "total must be positive",
            "add a function total_of to shop.py",
            "a test for total",
            "",
        ] {
            assert_eq!(stated(task), "", "{task}");
        }
    }

    #[test]
    fn what_is_not_done_is_told() {
        let lookup = lookup();
        let unmet = |task: &str| of(&lookup, task).all[0].unmet(&lookup);
        let still = "`total` is still in shop.py".to_owned();
        assert_eq!(unmet("rename total to twice"), Some(still));
        let gone: SymbolPath = "shop.py::gone".parse().unwrap();
        let renamed = |to: &str| Stated::Renamed {
            from: gone.clone(),
            to: to.to_owned(),
        };
        assert_eq!(renamed("total").unmet(&lookup), None);
        assert_eq!(
            renamed("lost").unmet(&lookup),
            Some("there is no `lost`".to_owned())
        );
        let deleted = Stated::Deleted {
            symbol: gone.clone(),
        };
        assert_eq!(deleted.unmet(&lookup), None);
    }
}
