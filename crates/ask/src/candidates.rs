//! Finds the symbols that are relevant to a question: symbols it names, symbols that match its
//! words, and symbols of the last answer.

use std::collections::{BTreeMap, BTreeSet};

use super::cite::{identifiers, words};
use super::code::CodeReader;
use super::session::Session;
use starling_index::{Certainty, Definition, Located, is_test_file};
use starling_syntax::{FilePath, Language, SymbolKind, SymbolPath};

/// Maximum number of uses to list for a class.
const CLASS_USES: usize = 8;
/// Maximum number of symbols that the question names and whose users (the code that uses the
/// symbol) are shown.
const USED: usize = 2;
const USERS: usize = 5;
/// Maximum number of text search hits to examine for one word of the question.
const HITS: usize = 100;
/// Maximum number of symbols of one file at the start of the list. Further symbols of the file come
/// after the symbols of other files.
const PER_FILE: usize = 3;
/// Maximum number of definitions of a name. A name with more definitions is ignored as ambiguous.
const SHARED: usize = 4;

/// Returns the definitions of the code names in a question, if unambiguous. `Class.method` selects
/// the method, not the class.
pub fn named(code: &CodeReader, question: &str) -> Vec<Definition> {
    let dotted = dotted(question);
    let part = |name: &String| {
        let within = |whole: &String| whole.split('.').any(|part| part == name);
        dotted.iter().any(within)
    };
    let single = identifiers(question).into_iter().chain(capitals(question));
    let names = dotted
        .iter()
        .cloned()
        .chain(single.filter(|name| !part(name)));
    let mut found: Vec<Definition> = Vec::new();
    for name in names {
        let mut defined = code.index().definitions(&name);
        defined.retain(|found| {
            !is_test_file(&found.symbol.file)
                && !found.symbol.is_module()
                && !is_overload(code, &found.symbol)
        });
        if defined.len() <= SHARED {
            found.extend(defined);
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|definition| seen.insert(definition.symbol.clone()));
    found
}

/// Whether a symbol is a signature for type checkers, without a body.
fn is_overload(code: &CodeReader, symbol: &SymbolPath) -> bool {
    let overloads = |decorator: &String| decorator.ends_with("overload");
    code.symbol(symbol)
        .is_ok_and(|found| found.symbol.contract.decorators.iter().any(overloads))
}

/// Returns the dotted names (`Class.method`) in a question.
fn dotted(question: &str) -> Vec<String> {
    question
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '.')
        .map(|word| word.trim_matches('.'))
        .filter(|word| word.contains('.') && !word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

/// Returns capitalized words that do not start a sentence: they may be classes or constants.
fn capitals(question: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut begins = true;
    for word in question.split_whitespace() {
        let names = word.split(|c: char| !c.is_alphanumeric() && c != '_');
        for (at, name) in names.filter(|name| !name.is_empty()).enumerate() {
            let capital = name.starts_with(char::is_uppercase) && name.len() > 3;
            if capital && !(begins && at == 0) {
                found.push(name.to_owned());
            }
        }
        begins = word.ends_with(['.', '?', '!', ':']);
    }
    found
}

/// Returns the symbols whose uses to list: named definitions, then attributes and other dotted
/// names. Each has its display name, its name in the index and its maximum number of uses. Classes
/// have a lower maximum, because they are used in many places.
pub fn used(named: &[Definition], question: &str, most: usize) -> Vec<(String, String, usize)> {
    let defined = named.iter().map(|found| {
        let name = found.symbol.name.split('#').next().unwrap_or_default();
        let most = match found.kind {
            SymbolKind::Class => most.min(CLASS_USES),
            SymbolKind::Module | SymbolKind::Function | SymbolKind::Method => most,
        };
        (name.to_owned(), found.symbol.to_string(), most)
    });
    let parts: BTreeSet<String> = dotted(question)
        .iter()
        .flat_map(|whole| whole.split('.').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let known = |name: &String| named.iter().any(|found| found.symbol.base_name() == name);
    let other = identifiers(question)
        .into_iter()
        .filter(|name| !parts.contains(name) && !known(name))
        .map(|name| (name.clone(), name, most));
    let mut used: Vec<(String, String, usize)> = Vec::new();
    for (label, name, most) in defined.chain(other) {
        if !used.iter().any(|(other, ..)| *other == label) {
            used.push((label, name, most));
        }
    }
    used
}

/// Returns the candidate symbols, each with the reason for its selection.
pub fn candidates(
    code: &CodeReader,
    question: &str,
    session: &Session,
    named: &[Definition],
    most: usize,
) -> Vec<(SymbolPath, String)> {
    let mut found: Vec<(SymbolPath, String)> = Vec::new();
    let mut add = |symbol: &SymbolPath, why: String| {
        if !found.iter().any(|(known, _)| known == symbol) {
            found.push((symbol.clone(), why));
        }
    };
    for symbol in code.mentioned_in(question).iter().take(most / 2) {
        add(symbol, "named in the question".to_owned());
    }
    for definition in named.iter().take(most / 2) {
        let name = definition.symbol.base_name();
        add(&definition.symbol, format!("names {name}"));
    }
    for symbol in users(code, named) {
        add(&symbol, "uses what is named".to_owned());
    }
    // A follow-up question has few words, so the search includes the previous question.
    let last = session.turns().last();
    let text = last.map_or_else(
        || question.to_owned(),
        |turn| format!("{question}\n{}", turn.question),
    );
    let mut of_file: BTreeMap<FilePath, usize> = BTreeMap::new();
    let located = code.index().locate(&text, 4 * most).into_iter();
    let located = located.filter(|located| !is_overload(code, &located.symbol));
    // Symbols of a file beyond `PER_FILE` come last.
    let (mut located, more): (Vec<Located>, Vec<Located>) = located.partition(|located| {
        let count = of_file.entry(located.symbol.file.clone()).or_default();
        *count += 1;
        *count <= PER_FILE
    });
    located.extend(more);
    if located.is_empty() || mostly_plain(code) {
        // Files without a grammar have no symbols, so they are found by a text search.
        for symbol in by_lines(code, question) {
            add(&symbol, "holds words of the question".to_owned());
        }
    }
    for symbol in last.iter().flat_map(|turn| &turn.symbols).take(most / 2) {
        add(symbol, "the last answer was about it".to_owned());
    }
    for located in located {
        add(&located.symbol, located.why.join(", "));
    }
    found.truncate(most);
    found
}

/// Returns the symbols outside tests that certainly or likely use the named definitions.
fn users(code: &CodeReader, named: &[Definition]) -> Vec<SymbolPath> {
    let mut users: Vec<SymbolPath> = Vec::new();
    for definition in named.iter().take(USED) {
        let path = definition.symbol.to_string();
        let used = code.index().references(&path, HITS).found.into_iter();
        let sure = used.filter(|usage| match usage.certainty {
            Certainty::Certain | Certainty::Likely => !is_test_file(&usage.file),
            Certainty::Possible => false,
        });
        for usage in sure.filter(|usage| !usage.is_import && !usage.symbol.is_module()) {
            if users.len() < USERS && !users.contains(&usage.symbol) {
                users.push(usage.symbol);
            }
        }
    }
    users
}

/// Whether less than a fifth of the files have a grammar.
fn mostly_plain(code: &CodeReader) -> bool {
    let files = code.files().files();
    let read = files
        .iter()
        .filter(|file| Language::of(file) != Language::Plain);
    read.count() * 5 < files.len()
}

/// Returns the symbols whose lines contain the most words of the question. For files without a
/// grammar, returns the files.
fn by_lines(code: &CodeReader, question: &str) -> Vec<SymbolPath> {
    let mut held: BTreeMap<SymbolPath, usize> = BTreeMap::new();
    let words: BTreeSet<&str> = question
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !words(word).is_empty())
        .collect();
    for word in words {
        let hits = code.index().search(word, HITS).hits;
        let symbols: BTreeSet<SymbolPath> = hits.into_iter().map(|hit| hit.symbol).collect();
        for symbol in symbols {
            *held.entry(symbol).or_default() += 1;
        }
    }
    let mut found: Vec<(usize, SymbolPath)> = held
        .into_iter()
        .map(|(symbol, count)| (count, symbol))
        .collect();
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    found.into_iter().map(|(_, symbol)| symbol).collect()
}
