//! Parses the task text for requested changes to tests: which tests may be removed, and which test
//! files may be changed. No model is called.
//!
//! A task that only names a test does not ask to change it: in "make test_f pass", the test shows
//! that the work is done.

mod follow;
#[cfg(test)]
mod tests;
mod with_tests;

pub(crate) use with_tests::to_remove_with_tests;

use std::collections::BTreeSet;

use starling_syntax::FilePath;

/// Words with which a task asks to remove, move or rename something.
const REMOVAL: [&str; 20] = [
    "remove", "removes", "removed", "delete", "deletes", "deleted", "drop", "drops", "dropped",
    "rename", "renames", "renamed", "skip", "move", "moves", "moved", "inline", "inlined",
    "replace", "replaced",
];
/// Words with which a task asks to delete something.
const DELETION: [&str; 13] = [
    "remove", "removes", "removed", "delete", "deletes", "deleted", "drop", "drops", "dropped",
    "inline", "inlined", "replace", "replaced",
];
/// Words with which a task refers to the signature of a function.
const SIGNATURE: [&str; 8] = [
    "parameter",
    "parameters",
    "argument",
    "arguments",
    "signature",
    "keyword",
    "positional",
    "required",
];
/// Verbs that request a change of their object.
const CHANGE: [&str; 40] = [
    "update",
    "updating",
    "change",
    "changing",
    "rewrite",
    "rewriting",
    "adjust",
    "adjusting",
    "adapt",
    "adapting",
    "edit",
    "editing",
    "modify",
    "modifying",
    "refactor",
    "refactoring",
    "simplify",
    "parametrize",
    "parametrise",
    "port",
    "migrate",
    "move",
    "rename",
    "remove",
    "delete",
    "drop",
    "skip",
    "replace",
    "split",
    "merge",
    "clean",
    "tidy",
    "reformat",
    "format",
    "convert",
    "relax",
    "loosen",
    "strengthen",
    "tighten",
    "reorganize",
];
/// Verbs that request a change of their object if the object is a file without tests. For a test,
/// "fix" can mean to fix the code under test.
const MEND: [&str; 7] = [
    "fix", "mend", "repair", "correct", "improve", "extend", "debug",
];
/// Words before a verb that negate it.
const NEGATION: [&str; 9] = [
    "not", "never", "without", "don't", "dont", "no", "cannot", "avoid", "nor",
];
/// Words between a verb and a name that show that the name is not the object of the verb.
const OTHER_CLAUSE: &[&str] = &[
    "so", "that", "to", "until", "for", "because", "since", "when", "while", "if", "unless",
    "make", "makes", "get", "let", "pass", "passes", "run", "but", "keep", "keeping", "leave",
    "what", "whatever", "where", "how", "which", "as", "with", "by", "per", "against", "see",
    "satisfy", "break", "breaking", "fails", "fail", "without", "not", "like", "ensure",
    "ensuring", "sure", "check", "verify", "confirm", "have", "having", "using", "via", "through",
    "after", "before", "once", "from", "based",
];
/// Verbs that begin another request after a word of [`JOINTS`].
const OTHER_REQUEST: [&str; 6] = ["add", "adding", "write", "writing", "create", "creating"];
const JOINTS: [&str; 4] = ["and", "then", "also", "but"];
/// Words after a name that make the name the subject of a clause.
const SUBJECT: &[&str] = &[
    "must", "should", "has", "have", "needs", "need", "can", "is", "are", "may", "shall", "will",
    "pass", "passes", "passing", "fail", "fails", "failing", "green", "stay", "stays", "remain",
    "keep", "run", "runs", "still", "work",
];
/// Maximum number of words between a verb and its object.
const BETWEEN: usize = 6;
/// Words that refer to all tests.
const ALL_TESTS: [&str; 4] = ["tests", "suite", "testsuite", "fixtures"];
/// Words that refer to the tests concerned if [`AFTER_TEST`] tells that no other word follows that
/// they belong to, as in "the test command".
const ONE_TEST: [&str; 3] = ["test", "testcase", "unittest"];
/// Words after "the test" that do not name the test or something that belongs to it.
const AFTER_TEST: [&str; 24] = [
    "too",
    "also",
    "as",
    "well",
    "accordingly",
    "and",
    "or",
    "for",
    "of",
    "in",
    "that",
    "which",
    "to",
    "if",
    "so",
    "with",
    "then",
    "but",
    "likewise",
    "case",
    "cases",
    "file",
    "files",
    "please",
];
/// Words between a name and a participle of [`CHANGED`].
const AUXILIARY: [&str; 16] = [
    "must", "should", "has", "have", "needs", "need", "to", "be", "can", "is", "are", "also",
    "may", "shall", "will", "being",
];
/// Participles and adjectives that request a change of the name before them.
const CHANGED: [&str; 17] = [
    "updated",
    "changed",
    "rewritten",
    "adjusted",
    "adapted",
    "edited",
    "modified",
    "replaced",
    "renamed",
    "removed",
    "deleted",
    "dropped",
    "moved",
    "outdated",
    "obsolete",
    "stale",
    "updating",
];

/// Returns whether a task asks to remove or rename the test `id`.
pub(crate) fn to_remove(task: &str, id: &str) -> bool {
    let name = name_of(id);
    let is_it = |token: &str| token == id || name_of(token) == name;
    asks(task, &by_word(&is_it), &[&REMOVAL])
}

/// Returns whether a task asks to delete the symbol `name`, or to make it needless.
pub(crate) fn to_delete(task: &str, name: &str) -> bool {
    let is_it = |token: &str| name_of(token) == name;
    asks(task, &by_word(&is_it), &[&DELETION])
}

/// Returns whether a task mentions `name` and contains a word for renaming, moving or removing.
pub(crate) fn to_take_away(task: &str, name: &str) -> bool {
    let is_removal = |word: &str| REMOVAL.contains(&word.to_lowercase().as_str());
    words(task).any(is_removal) && words(task).any(|word| word == name)
}

/// Returns whether a comment says what is left to do and the task asks to do that: "do the TODO in
/// mean".
pub(crate) fn to_do(task: &str, comment: &str) -> bool {
    const MARKS: [&str; 2] = ["todo", "fixme"];
    let names_mark = |text: &str, mark: &str| {
        words(text).any(|word| word.to_lowercase().trim_end_matches('s') == mark)
    };
    let mut marks = MARKS.iter();
    marks.any(|mark| names_mark(comment, mark) && names_mark(task, mark))
}

/// Returns whether a task is about the parameters of functions, so that callers matter.
pub(crate) fn speaks_of_parameters(task: &str) -> bool {
    let task = task.to_lowercase();
    let words = ["parameter", "argument", "keyword", "signature"];
    words.iter().any(|word| task.contains(word))
}

/// Returns whether a task asks to change the symbol `name`.
pub(crate) fn to_change(task: &str, name: &str) -> bool {
    let is_it = |token: &str| name_of(token) == name;
    asks(task, &by_word(&is_it), &[&CHANGE])
}

/// Returns whether a task asks to change the test `id`.
pub(crate) fn to_change_test(task: &str, id: &str) -> bool {
    let name = name_of(id);
    let is_it = |token: &str| token == id || name_of(token) == name;
    asks(task, &by_word(&is_it), &[&CHANGE])
}

/// Returns whether a task asks to change a test file. The task may refer to the file by its path,
/// by its name, or as one of all tests.
///
/// For a file without tests, such as a `conftest.py`, the task may also ask to fix the file.
/// `is_code` returns whether a name also belongs to a file of the code; the name then refers to
/// that file. Returns false if the task forbids the change.
pub(crate) fn to_change_file(
    task: &str,
    file: &FilePath,
    holds_tests: bool,
    is_code: &dyn Fn(&str) -> bool,
) -> bool {
    let path = file.as_str();
    let is_it = |token: &str| {
        let is_path = token.trim_start_matches("./") == path;
        names_file(token, file) && (is_path || !is_code(token))
    };
    if forbids(task, file) {
        return false;
    }
    let is_it = by_word(&is_it);
    let mends = !holds_tests && asks(task, &is_it, &[&MEND]);
    mends || asks(task, &is_it, &[&CHANGE]) || asks_for_tests(task)
}

/// Returns whether a task asks to change all tests and does not forbid it for a file.
pub(crate) fn to_change_all_tests(task: &str, file: &FilePath) -> bool {
    !forbids(task, file) && asks_for_tests(task)
}

/// Returns whether a task asks to change the tests, or to change something in the tests, too.
fn asks_for_tests(task: &str) -> bool {
    asks(task, &is_all_tests, &[&CHANGE])
        || sentences(task).iter().any(|sentence| {
            let tests = (0..sentence.len()).filter(|at| is_all_tests(sentence, *at));
            let mut tests = tests.into_iter();
            tests.any(|at| follow::is_also_meant(sentence, at) || follow::must_follow(sentence, at))
        })
}

/// Returns whether a task asks to change docstrings or the examples in them.
pub(crate) fn to_change_examples(task: &str) -> bool {
    const EXAMPLES: [&str; 6] = [
        "docstring",
        "docstrings",
        "doctest",
        "doctests",
        "example",
        "examples",
    ];
    let is_it = |token: &str| EXAMPLES.contains(&token.to_lowercase().as_str());
    asks(task, &by_word(&is_it), &[&CHANGE, &MEND])
}

/// Returns whether a task says what its code is to do from now on, in contrast to one that only tells
/// of a fault.
pub(crate) fn demands_behaviour(task: &str) -> bool {
    const DEMANDS: [&str; 14] = [
        "must", "should", "shall", "instead", "rather", "needs", "let", "make", "change", "allow",
        "add", "support", "longer", "also",
    ];
    words(task).any(|word| DEMANDS.contains(&word.to_lowercase().as_str()))
}

/// Returns whether a task asks for a change in all places.
pub(crate) fn is_everywhere(task: &str) -> bool {
    const PHRASES: [[&str; 2]; 6] = [
        ["all", "files"],
        ["all", "places"],
        ["every", "file"],
        ["every", "place"],
        ["whole", "project"],
        ["entire", "project"],
    ];
    let lower = task.to_lowercase();
    let words: Vec<&str> = words(&lower).filter(|word| !word.is_empty()).collect();
    let has = |word: &str| words.contains(&word);
    has("everywhere")
        || has("throughout")
        || words
            .windows(2)
            .any(|pair| PHRASES.iter().any(|phrase| pair == phrase))
}

/// Returns whether a word is the path of a file or the end of its path.
pub(crate) fn names_file(token: &str, file: &FilePath) -> bool {
    let token = token.trim_start_matches("./");
    let path = file.as_str();
    token == path || token == file.name() || path.ends_with(&format!("/{token}"))
}

/// Returns whether a task forbids changes to a test file. The task may refer to the file by its
/// name, by a parent directory, or as one of all tests.
fn forbids(task: &str, file: &FilePath) -> bool {
    let is_meant = |sentence: &[Token], at: usize| {
        let token = &sentence[at].word;
        let folder = token.trim_start_matches("./").trim_end_matches('/');
        let is_above = !folder.is_empty() && file.as_str().starts_with(&format!("{folder}/"));
        is_above || is_all_tests(sentence, at) || names_file(token, file)
    };
    sentences(task).iter().any(|sentence| {
        let mut objects = (0..sentence.len()).filter(|at| is_meant(sentence, *at));
        objects.any(|at| is_forbidden(&sentence[..at]))
    })
}

/// Returns whether the words before an object forbid changing the object, as in "do not touch any
/// file under".
fn is_forbidden(before: &[Token]) -> bool {
    const TOUCH: [&str; 5] = ["touch", "touching", "alter", "altering", "weaken"];
    let lower = |token: &Token| token.word.to_lowercase();
    let near = before
        .iter()
        .rev()
        .take(BETWEEN + 4)
        .take_while(|token| !token.ends_clause);
    let near: Vec<String> = near.map(lower).collect();
    let verb = near.iter().position(|word| {
        let known = [&CHANGE[..], &MEND, &TOUCH].concat();
        known.contains(&word.as_str())
    });
    let negated = |word: &String| NEGATION.contains(&word.as_str());
    verb.is_some_and(|at| near[at + 1..].iter().take(3).any(negated))
}

/// Returns whether a test failure mentions a name or parameter that the task renames, moves,
/// removes or gives another signature.
pub(crate) fn for_other_names(task: &str, message: &str) -> bool {
    !other_names(task, message).is_empty()
}

/// Returns the names and parameters that a test fails to find and that the task mentions, if the
/// task asks for a removal, a rename, a move or a new signature.
pub(crate) fn other_names(task: &str, message: &str) -> BTreeSet<String> {
    const MISSING: [&str; 5] = [
        "ImportError: ",
        "ModuleNotFoundError: ",
        "AttributeError: ",
        "NameError: ",
        "KeyError: ",
    ];
    let line = message
        .lines()
        .rev()
        .map(|line| line.trim_start_matches("E ").trim())
        .find(|line| line.contains("Error: "));
    let Some(line) = line else {
        return BTreeSet::new();
    };
    let is_missing = MISSING.iter().any(|error| line.starts_with(error));
    let is_signature = line.starts_with("TypeError: ") && line.contains("argument");
    let is_asked =
        is_missing && has_word_of(task, &REMOVAL) || is_signature && asks_for_other_signature(task);
    let named = names_in(line).filter(|name| is_asked && mentions(task, name));
    named.map(str::to_owned).collect()
}

/// Returns whether a task asks to change the signature of a function and mentions the function or one
/// of the parameters that differ.
pub(crate) fn to_change_signature(task: &str, function: &str, parameters: &[String]) -> bool {
    let mut names = parameters.iter().map(String::as_str).chain([function]);
    asks_for_other_signature(task) && names.any(|name| mentions(task, name))
}

/// Returns whether a task asks to make a property a method or function.
pub(crate) fn to_make_a_method(task: &str, property: &str) -> bool {
    has_word_of(task, &["function", "method"]) && mentions(task, property)
}

fn asks_for_other_signature(task: &str) -> bool {
    has_word_of(task, &REMOVAL) || has_word_of(task, &SIGNATURE)
}

fn has_word_of(task: &str, known: &[&str]) -> bool {
    words(task).any(|word| known.contains(&word.to_lowercase().as_str()))
}

fn mentions(task: &str, name: &str) -> bool {
    words(task).any(|word| word == name)
}

/// Returns the names in an error message: quoted names, names before `()`, and a name that is the
/// whole message. Of a dotted name, only the last part is returned.
fn names_in(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('\'').skip(1).step_by(2);
    let called = line.match_indices("()").filter_map(|(end, _)| {
        line[..end]
            .rsplit([' ', '.'])
            .next()
            .filter(|name| !name.is_empty())
    });
    let quoted = quoted.map(|name| name.rsplit('.').next().unwrap_or(name));
    // `AttributeError: TEN_K` is the message for a missing member of an enum.
    let whole = line.split_once(": ").map(|(_, message)| message);
    let whole = whole.filter(|message| words(message).eq([*message]));
    let all = quoted.chain(called).chain(whole);
    all.filter(|name| !name.is_empty())
}

/// Returns the function name of a test: `test_x` for `tests/test_a.py::T::test_x[1]`.
pub(crate) fn name_of(id: &str) -> &str {
    let plain = id.split('[').next().unwrap_or(id);
    plain.rsplit([':', '.']).next().unwrap_or(plain)
}

fn words(task: &str) -> impl Iterator<Item = &str> {
    task.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}

/// Returns whether the word at an index of a sentence is an object, according to the word alone.
fn by_word(is_object: &dyn Fn(&str) -> bool) -> impl Fn(&[Token], usize) -> bool {
    move |sentence, at| is_object(&sentence[at].word)
}

/// Returns whether the word at an index of a sentence refers to all tests, or to "the test", which
/// is the one that the change concerns.
fn is_all_tests(sentence: &[Token], at: usize) -> bool {
    let word = sentence[at].word.to_lowercase();
    let ends_phrase = || {
        let next = sentence.get(at + 1).map(|next| next.word.to_lowercase());
        let is_beside = |next: &str| {
            let follows = AFTER_TEST.contains(&next);
            follows || AUXILIARY.contains(&next) || SUBJECT.contains(&next)
        };
        sentence[at].ends_clause || next.is_none_or(|next| is_beside(&next))
    };
    ALL_TESTS.contains(&word.as_str()) || ONE_TEST.contains(&word.as_str()) && ends_phrase()
}

/// Returns whether a text asks to change an object, with a verb before the object or a participle
/// after it.
fn asks(text: &str, is_object: &dyn Fn(&[Token], usize) -> bool, verbs: &[&[&str]]) -> bool {
    sentences(text).iter().any(|sentence| {
        let objects = (0..sentence.len()).filter(|at| is_object(sentence, *at));
        let mut objects = objects.collect::<Vec<_>>().into_iter();
        objects.any(|at| {
            let (before, after) = (&sentence[..at], &sentence[at + 1..]);
            !is_subject(after) && has_verb(before, verbs) || must_change(after)
        })
    })
}

/// Returns whether the words before an object end in a verb that requests its change.
fn has_verb(before: &[Token], verbs: &[&[&str]]) -> bool {
    for (distance, token) in before.iter().rev().take(BETWEEN + 1).enumerate() {
        let word = token.word.to_lowercase();
        if verbs.iter().any(|known| known.contains(&word.as_str())) {
            let at = before.len() - 1 - distance;
            let mut earlier = before[at.saturating_sub(3)..at].iter();
            let is_negated =
                earlier.any(|token| NEGATION.contains(&token.word.to_lowercase().as_str()));
            return !is_negated;
        }
        let follows_joint = || {
            let joint = before.iter().rev().nth(distance + 1);
            joint.is_some_and(|one| JOINTS.contains(&one.word.to_lowercase().as_str()))
        };
        let is_other_request = OTHER_REQUEST.contains(&word.as_str()) && follows_joint();
        if token.ends_clause || is_other_request || OTHER_CLAUSE.contains(&word.as_str()) {
            return false;
        }
    }
    false
}

/// Returns whether the words after a name show that the name is the subject of a clause.
fn is_subject(after: &[Token]) -> bool {
    let next = after.first().map(|token| token.word.to_lowercase());
    next.is_some_and(|word| SUBJECT.contains(&word.as_str()))
}

/// Returns whether the words after a name say that it must be changed or is outdated.
fn must_change(after: &[Token]) -> bool {
    let mut rest = after
        .iter()
        .map(|token| token.word.to_lowercase())
        .skip_while(|word| AUXILIARY.contains(&word.as_str()));
    let is_said = after
        .first()
        .is_some_and(|token| AUXILIARY.contains(&token.word.to_lowercase().as_str()));
    is_said
        && rest
            .next()
            .is_some_and(|word| CHANGED.contains(&word.as_str()))
}

/// A word of a task text.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    /// The word without surrounding quotes and punctuation.
    pub word: String,
    /// The word with its leading dashes, as in a command-line option.
    pub with_dashes: String,
    /// Whether the word is enclosed in backquotes.
    pub is_quoted: bool,
    /// Whether the word is enclosed in quotation marks.
    pub is_in_quotes: bool,
    /// Whether a comma or colon follows the word.
    pub ends_clause: bool,
}

/// Splits a text into sentences of words. Names with dots and slashes are one word.
pub(crate) fn sentences(text: &str) -> Vec<Vec<Token>> {
    let mut all = vec![Vec::new()];
    for line in text.lines() {
        for raw in line.split_whitespace() {
            let word = raw.trim_matches(|c: char| !(c.is_alphanumeric() || "_/[]".contains(c)));
            let rest = raw.trim_end_matches(['`', '"', '\'', ')', '*']);
            if let Some(sentence) = all.last_mut()
                && !word.is_empty()
            {
                let dashed =
                    raw.trim_start_matches(|c: char| !(c.is_alphanumeric() || "_/[]-".contains(c)));
                let dashes = dashed.len() - dashed.trim_start_matches('-').len();
                sentence.push(Token {
                    word: word.to_owned(),
                    with_dashes: format!("{}{word}", &dashed[..dashes]),
                    is_quoted: raw.matches('`').count() == 2,
                    is_in_quotes: raw.matches(['"', '“', '”']).count() == 2,
                    ends_clause: rest.ends_with([',', ':']),
                });
            }
            if rest.ends_with(['.', '!', '?', ';']) {
                all.push(Vec::new());
            }
        }
        all.push(Vec::new());
    }
    all
}
