//! Checks sentences that say that one function calls another, such as "`fill` calls `free`" and "`free`
//! is called by `fill`", against the index. Only calls that are certainly not there are refuted.

use starling_index::{Definition, Index};
use starling_syntax::{Language, SymbolKind};

/// Maximum number of uses of the called function that are considered.
const USES_MOST: usize = 200;
/// Words with which a sentence may say something else than that a function contains a call.
const DOUBTS: [&str; 36] = [
    "can",
    "cannot",
    "chain",
    "could",
    "either",
    "eventually",
    "expected",
    "if",
    "indirectly",
    "instead",
    "may",
    "might",
    "neither",
    "never",
    "no",
    "nor",
    "not",
    "nothing",
    "once",
    "or",
    "passed",
    "should",
    "supposed",
    "through",
    "transitively",
    "turn",
    "ultimately",
    "unless",
    "via",
    "was",
    "were",
    "whether",
    "will",
    "without",
    "would",
    "yet",
];
/// Words between two names, or before the first one, that do not change what is said of them.
const FILLERS: [&str; 12] = [
    "also",
    "always",
    "and",
    "currently",
    "directly",
    "function",
    "here",
    "itself",
    "method",
    "only",
    "so",
    "the",
];
/// Words that may follow the last name without restricting it, unlike "of" and "in".
const AFTER: [&str; 9] = [
    "and", "at", "directly", "for", "on", "so", "then", "to", "with",
];
/// Names by which code finds other code at run time.
const DYNAMIC: [&str; 15] = [
    "__import__",
    "attrgetter",
    "entry_points",
    "eval",
    "exec",
    "getattr",
    "globals",
    "import_module",
    "import_string",
    "load_entry_point",
    "locals",
    "locate",
    "methodcaller",
    "resolve_name",
    "vars",
];

/// A call that a sentence states and that is not there.
pub struct MissingCall {
    /// The offset in the sentence behind the second name of the statement.
    pub end: usize,
    /// The function that is said to contain the call, with its lines.
    pub caller: String,
    pub place: String,
    pub callee: String,
}

/// A name in back-quotes, with its byte range including the quotes.
struct Name<'s> {
    start: usize,
    end: usize,
    text: &'s str,
}

#[derive(Clone, Copy)]
enum Verb {
    Calls,
    IsCalledBy,
}

/// Returns the first call that a sentence without citations states and that is certainly not there.
pub fn missing_call(sentence: &str, index: &Index) -> Option<MissingCall> {
    let names = names(sentence);
    let prose: String = sentence.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let is_doubtful = words(&prose).any(|word| DOUBTS.contains(&word.as_str()));
    if is_doubtful || prose.contains('?') || prose.to_lowercase().contains("n't") {
        return None;
    }
    for (at, pair) in names.windows(2).enumerate() {
        let [first, second] = pair else { continue };
        let Some(verb) = verb(&sentence[first.end..second.start]) else {
            continue;
        };
        if !is_subject(sentence, &names, at) {
            continue;
        }
        let mut others = at + 1;
        while let Some(other) = names.get(others).filter(|one| is_whole(sentence, one)) {
            let (caller, callee) = match verb {
                Verb::Calls => (first, other),
                Verb::IsCalledBy => (other, first),
            };
            if let Some(found) = absent(caller.text, callee.text, other.end, index) {
                return Some(found);
            }
            others += 1;
            let joins = names
                .get(others)
                .is_some_and(|next| is_list(&sentence[other.end..next.start]));
            if !joins {
                break;
            }
        }
    }
    None
}

/// Returns the name that a sentence is about, if the sentence names no other code. "It" in the next
/// sentence means this name.
pub fn only_subject(sentence: &str) -> Option<&str> {
    let names = names(sentence);
    let [name] = names.as_slice() else {
        return None;
    };
    is_subject(sentence, &names, 0).then_some(name.text)
}

fn names(sentence: &str) -> Vec<Name<'_>> {
    let mut found = Vec::new();
    let mut ticks = sentence.match_indices('`').map(|(at, _)| at);
    while let (Some(start), Some(end)) = (ticks.next(), ticks.next()) {
        let text = sentence[start + 1..end].trim().trim_end_matches("()");
        found.push(Name {
            start,
            end: end + 1,
            text,
        });
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn verb(between: &str) -> Option<Verb> {
    if between.contains(|c: char| !c.is_alphanumeric() && !c.is_whitespace() && !"[]()".contains(c))
    {
        return None;
    }
    let said: Vec<String> = words(between)
        .filter(|word| !FILLERS.contains(&word.as_str()) || word == "and")
        .collect();
    match said.join(" ").as_str() {
        "calls" => Some(Verb::Calls),
        "is called by" => Some(Verb::IsCalledBy),
        _ => None,
    }
}

/// Returns whether a name is the subject of its clause, not a part of it as in "the caller of `f`".
fn is_subject(sentence: &str, names: &[Name<'_>], at: usize) -> bool {
    let from = at.checked_sub(1).map_or(0, |before| names[before].end);
    let before = &sentence[from..names[at].start];
    let clause = before
        .rfind([',', ';', ':'])
        .map(|comma| &before[comma + 1..]);
    let clause = clause.or_else(|| (at == 0).then_some(before));
    clause.is_some_and(|clause| words(clause).all(|word| FILLERS.contains(&word.as_str())))
}

/// Returns whether the words after a name do not restrict it, as in "`f` of `C`" and "the caller of `f`".
fn is_whole(sentence: &str, name: &Name<'_>) -> bool {
    let rest =
        sentence[name.end..].trim_start_matches(|c: char| c.is_whitespace() || "[]()".contains(c));
    let Some(next) = rest.chars().next() else {
        return true;
    };
    let word = words(rest).next().unwrap_or_default();
    matches!(next, '.' | ',' | ';' | ':' | '!')
        || next.is_alphanumeric() && AFTER.contains(&word.as_str())
}

/// Returns whether the text between two names makes them parts of one list.
fn is_list(between: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || c.is_whitespace() || "[](),".contains(c);
    between.chars().all(is_plain)
        && words(between).all(|word| word == "and")
        && (between.contains(',') || words(between).next().is_some())
}

/// Returns a description if the index knows both functions and knows with certainty that the caller does
/// not call the other one: the caller does not contain its name, and it has no other name by which the
/// caller could call it.
fn absent(caller: &str, callee: &str, end: usize, index: &Index) -> Option<MissingCall> {
    let (caller, callee) = (function(caller, index)?, function(callee, index)?);
    let base = callee.symbol.base_name();
    let is_special = base.starts_with("__") || caller.symbol == callee.symbol;
    let of_callee = index.snapshot().tree(&callee.symbol.file).ok()?;
    let decorators = &of_callee.find(&callee.symbol.name)?.contract.decorators;
    let is_known = |one: &String| matches!(one.as_str(), "staticmethod" | "classmethod");
    let tree = index.snapshot().tree(&caller.symbol.file).ok()?;
    let symbol = tree.find(&caller.symbol.name)?;
    let text = symbol.span.of(tree.text());
    let mut inside = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    if is_special
        || !decorators.iter().all(is_known)
        || !tree.errors().is_empty()
        || inside.any(|word| word == base || DYNAMIC.contains(&word))
        || has_other_name(&callee, index)
    {
        return None;
    }
    let (first, last) = symbol.lines;
    Some(MissingCall {
        end,
        caller: caller.symbol.name.clone(),
        place: format!("{}:{}", caller.symbol.file, super::range(first, last)),
        callee: callee.symbol.name.clone(),
    })
}

/// Returns the Python function or method of a name, if the name is unambiguous.
fn function(name: &str, index: &Index) -> Option<Definition> {
    let mut defined = index.definitions_of(name).into_iter();
    let found = defined.next().filter(|_| defined.next().is_none())?;
    let is_function = matches!(found.kind, SymbolKind::Function | SymbolKind::Method);
    let is_python = Language::of(&found.symbol.file) == Language::Python;
    let is_variable = !index.variables(found.symbol.base_name()).is_empty();
    (is_function && is_python && !is_variable).then_some(found)
}

/// Returns whether code may call a function without its name: the function is used as a value, is
/// imported under another name, or may be looked up by a string.
fn has_other_name(callee: &Definition, index: &Index) -> bool {
    let base = callee.symbol.base_name();
    let of_symbol = index.references(&callee.symbol.to_string(), USES_MOST);
    let of_name = index.references(base, USES_MOST);
    let is_cut = [&of_symbol, &of_name]
        .iter()
        .any(|uses| uses.found.len() >= USES_MOST);
    let mut uses = of_symbol.found.iter().chain(&of_name.found);
    let is_renamed = |text: &str| text.split_whitespace().any(|word| word == "as");
    is_cut
        || uses.any(|one| match one.is_import {
            true => is_renamed(&one.text),
            false => !one.is_call,
        })
        || has_lookups(index) && index.in_strings(base).iter().any(|one| !one.is_address)
        || !index.dynamic_uses(base).is_empty()
}

/// Returns whether any code of the project finds other code by strings.
fn has_lookups(index: &Index) -> bool {
    DYNAMIC.iter().any(|name| index.mentions(name))
}
