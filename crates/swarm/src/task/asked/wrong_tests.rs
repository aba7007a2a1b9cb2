//! Finds the tests that a task calls wrong or asks to repair: "test_f expects the wrong number",
//! "correct the expected value in test_f". A test that only fails is not wrong: its failure shows
//! that the work is not done.

use super::{CHANGE, MEND, NEGATION, Token, is_all_tests, is_forbidden, is_subject, sentences};
use crate::task::asked::name_of;
use starling_syntax::FilePath;

/// Verbs of [`MEND`] that often have a failing test as their object although the code is meant.
const FIX: [&str; 2] = ["fix", "debug"];
const WRONG: [&str; 9] = [
    "wrong",
    "incorrect",
    "mistaken",
    "erroneous",
    "inaccurate",
    "faulty",
    "outdated",
    "obsolete",
    "stale",
];
const WRONGLY: [&str; 4] = ["wrongly", "incorrectly", "mistakenly", "falsely"];
const EXPECTS: [&str; 8] = [
    "expects", "asserts", "compares", "wants", "demands", "contains", "requires", "has",
];
/// Infinitives that say what a test itself is to do.
const EXPECT: [&str; 5] = ["expect", "assert", "compare", "check", "use"];
/// Parts of a test, not of the code that it tests.
const PARTS: [&str; 10] = [
    "expectation",
    "expectations",
    "expected",
    "assertion",
    "assertions",
    "assert",
    "asserts",
    "typo",
    "typos",
    "mistake",
];
/// What a test may compare.
const VALUES: [&str; 26] = [
    "value",
    "values",
    "number",
    "numbers",
    "result",
    "results",
    "output",
    "outputs",
    "total",
    "sum",
    "text",
    "message",
    "messages",
    "string",
    "strings",
    "type",
    "types",
    "exception",
    "order",
    "count",
    "date",
    "dates",
    "rate",
    "price",
    "status",
    "code",
];
const ARTICLES: [&str; 8] = ["the", "a", "an", "this", "that", "these", "those", "its"];
const AUXILIARY: [&str; 7] = ["must", "should", "shall", "needs", "need", "has", "ought"];
const BE: [&str; 6] = ["is", "are", "was", "were", "looks", "seems"];
/// Words that may stand between an auxiliary and a verb or an adjective.
const ADVERBS: [&str; 14] = [
    "to",
    "not",
    "no",
    "longer",
    "also",
    "now",
    "only",
    "simply",
    "just",
    "itself",
    "clearly",
    "plainly",
    "obviously",
    "really",
];
const PREPOSITIONS: [&str; 12] = [
    "in", "of", "by", "for", "from", "with", "behind", "under", "at", "against", "after", "before",
];
const CONDITIONS: [&str; 4] = ["if", "whether", "unless", "when"];
/// Words after which a verb in the middle of a clause is a request.
const BEFORE_REQUEST: [&str; 14] = [
    "and", "then", "also", "please", "to", "but", "so", "must", "should", "or", "just", "you",
    "now", "can",
];
/// Words that say that a test fails only sometimes.
const SOMETIMES: [&str; 7] = [
    "flaky",
    "sometimes",
    "occasionally",
    "randomly",
    "intermittently",
    "often",
    "unstable",
];
/// Words after "the test" that say which test is meant.
const WHICH: [&str; 8] = [
    "of", "for", "in", "from", "that", "which", "called", "named",
];

/// The sentences of a task, in which "the test" is replaced by the test that was named before.
pub(super) fn with_named_tests(task: &str) -> Vec<Vec<Token>> {
    let mut all = sentences(task);
    let mut named: Option<String> = None;
    for sentence in &mut all {
        for at in 0..sentence.len() {
            if is_a_test(&sentence[at].word) {
                named = Some(sentence[at].word.clone());
                continue;
            }
            let next = sentence.get(at + 1).map(|next| next.word.to_lowercase());
            let says_which = next.is_some_and(|next| WHICH.contains(&next.as_str()));
            let is_it = at > 0
                && sentence[at].word.eq_ignore_ascii_case("test")
                && ARTICLES.contains(&lower(&sentence[at - 1]).as_str())
                && is_all_tests(sentence, at)
                && (sentence[at].ends_clause || !says_which);
            if let Some(name) = named.as_ref().filter(|_| is_it) {
                sentence[at].word.clone_from(name);
            }
        }
    }
    all
}

/// Returns whether a word looks like the name of a test or of a test file.
pub(super) fn is_a_test(word: &str) -> bool {
    let word = plain(word);
    let file = FilePath::new(word);
    let name = match file.name().strip_suffix(".py") {
        Some(stem) => stem,
        None => name_of(word),
    };
    let is_class = name
        .strip_prefix("Test")
        .is_some_and(|rest| rest.starts_with(char::is_uppercase));
    is_class || name.starts_with("test_") || file.name().ends_with("_test.py")
}

/// Returns whether a task calls a test wrong, or asks to repair it. `is_it` returns whether a word
/// names the test.
pub(super) fn are_at_fault(task: &str, is_it: &dyn Fn(&str) -> bool) -> bool {
    let sentences = with_named_tests(task);
    let is_named = |sentence: &[Token], at: usize| is_it(plain(&sentence[at].word));
    let any = |holds: &dyn Fn(&[Token], usize) -> bool| {
        sentences.iter().any(|sentence| {
            let mut named = (0..sentence.len()).filter(|at| is_named(sentence, *at));
            named.any(|at| holds(sentence, at))
        })
    };
    let is_left = any(&|sentence, at| is_left(sentence, at) || is_it_left(&sentence[at + 1..]));
    let is_mended = || {
        let mut all = sentences.iter();
        all.any(|sentence| mends_it(sentence, &is_named))
    };
    let fails_sometimes = || any(&|sentence, at| fails_sometimes(&sentence[at..]));
    !is_left && (any(&is_said_wrong) || any(&is_to_repair) || fails_sometimes() && is_mended())
}

fn lower(token: &Token) -> String {
    token.word.to_lowercase()
}

/// Returns a name without a possessive ending.
fn plain(word: &str) -> &str {
    let owner = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s"));
    owner.unwrap_or(word).trim_start_matches(['#', '@'])
}

fn is_any(word: Option<&String>, lists: &[&[&str]]) -> bool {
    word.is_some_and(|word| lists.iter().any(|list| list.contains(&word.as_str())))
}

/// Returns the words of a clause after its beginning, in lower case.
fn clause(after: &[Token]) -> Vec<String> {
    let end = after.iter().position(|token| token.ends_clause);
    let words = after[..end.map_or(after.len(), |end| end + 1)].iter();
    words.map(lower).collect()
}

/// Returns the words before the end of a clause, the last word first, in lower case.
fn back(before: &[Token]) -> Vec<String> {
    let words = before.iter().rev().take_while(|token| !token.ends_clause);
    words.map(lower).collect()
}

/// Returns whether the words around a test say that the test, or what it expects, is wrong.
fn is_said_wrong(sentence: &[Token], at: usize) -> bool {
    let before = back(&sentence[..at]);
    let is_unsure = before
        .iter()
        .any(|word| CONDITIONS.contains(&word.as_str()) || NEGATION.contains(&word.as_str()));
    if is_unsure {
        return false;
    }
    let mut nearest = before
        .iter()
        .skip_while(|word| is_any(Some(word), &[&ARTICLES, &["test"]]));
    if is_any(nearest.next(), &[&PREPOSITIONS]) {
        // For example `the expected value in test_f is wrong`.
        let of: Vec<&String> = nearest.take(5).collect();
        let has = |list: &[&str]| of.iter().any(|word| list.contains(&word.as_str()));
        if !has(&PARTS) {
            return false;
        }
        if has(&WRONG) {
            return true;
        }
    }
    !sentence[at].ends_clause && states_fault(&clause(&sentence[at + 1..]))
}

/// Returns whether the words after a test say that it is wrong, or what it is to expect.
fn states_fault(words: &[String]) -> bool {
    let skip = |words: &[String], lists: &[&[&str]]| {
        words
            .iter()
            .take_while(|word| is_any(Some(word), lists))
            .count()
    };
    // For example `test_f's expected value is wrong`.
    let mut rest = &words[skip(words, &[&PARTS, &VALUES])..];
    if is_any(rest.first(), &[&WRONGLY]) {
        return is_any(rest.get(1), &[&EXPECTS]);
    }
    if is_any(rest.first(), &[&EXPECTS]) && is_any(rest.get(1), &[&BE]) {
        // For example `what test_f expects is wrong`.
        rest = &rest[1..];
    }
    if is_any(rest.first(), &[&BE]) {
        let at = 1 + skip(&rest[1..], &[&ADVERBS]);
        let is_negated = rest[1..at]
            .iter()
            .any(|word| NEGATION.contains(&word.as_str()));
        let is_to = rest[1..at].iter().any(|word| word == "to");
        return !is_negated && is_any(rest.get(at), &[&WRONG])
            || is_to && is_any(rest.get(at), &[&EXPECT]);
    }
    if is_any(rest.first(), &[&EXPECTS]) {
        let at = 1 + skip(&rest[1..], &[&ARTICLES]);
        let is_wrong = is_any(rest.get(at), &[&WRONG]) || is_any(rest.get(at), &[&WRONGLY]);
        // In `test_f expects a wrong password to fail`, the password is wrong.
        let is_of_test = is_any(rest.get(1), &[&["the"]])
            || is_any(rest.get(at + 1), &[&VALUES, &PARTS])
            || is_any(rest.get(at), &[&WRONGLY]);
        let is_input = is_any(rest.get(at + 2), &[&["to"]]);
        if is_wrong && is_of_test && !is_input {
            return true;
        }
        let has_mistake = rest[0] == "has" && is_any(rest.get(at), &[&["typo", "mistake"]]);
        if has_mistake {
            return true;
        }
    }
    let at = 1 + skip(rest.get(1..).unwrap_or_default(), &[&ADVERBS]);
    is_any(rest.first(), &[&AUXILIARY]) && is_any(rest.get(at), &[&EXPECT])
}

/// Returns whether a verb for a repair has a test as its object. For "fix", the words must show that
/// the test is meant and not the code that it tests: "fix the expected value in test_f".
fn is_to_repair(sentence: &[Token], at: usize) -> bool {
    if is_subject(&sentence[at + 1..]) && !sentence[at].ends_clause {
        return false;
    }
    let before = &sentence[..at];
    let is_between = |token: &&Token| {
        let word = lower(token);
        let of_test = ["test", "tests", "case", "in", "of", "and"].contains(&word.as_str());
        let is_told = is_any(
            Some(&word),
            &[&ARTICLES, &PARTS, &VALUES, &WRONG, &SOMETIMES],
        );
        !token.ends_clause && (of_test || is_told || is_a_test(&token.word))
    };
    let count = before.iter().rev().take_while(is_between).count();
    let Some(verb) = before.len().checked_sub(count + 1) else {
        return false;
    };
    if !is_request(sentence, verb) {
        return false;
    }
    let word = lower(&sentence[verb]);
    let between: Vec<String> = before[verb + 1..].iter().map(lower).collect();
    // In `correct total (test_f)`, "total" is code.
    let value = between
        .iter()
        .rposition(|word| is_any(Some(word), &[&PARTS, &VALUES]));
    let is_of_other = value.is_some_and(|at| {
        let mut after = between[at + 1..].iter();
        !after.any(|word| is_any(Some(word), &[&["in", "of"]]))
    });
    if is_of_other {
        return false;
    }
    let shows_test = || {
        let mut between = between.iter();
        between.any(|word| is_any(Some(word), &[&PARTS, &WRONG, &SOMETIMES]))
    };
    MEND.contains(&word.as_str()) && (!FIX.contains(&word.as_str()) || shows_test())
}

/// Returns whether the word at an index begins a request. "the correct value" does not.
fn is_request(sentence: &[Token], at: usize) -> bool {
    if sentence[at].ends_clause {
        return false;
    }
    let before = back(&sentence[..at]);
    let is_negated = before
        .iter()
        .take(3)
        .any(|word| NEGATION.contains(&word.as_str()));
    !is_negated && (before.is_empty() || is_any(before.first(), &[&BEFORE_REQUEST]))
}

/// Returns whether a task says of a test that it fails sometimes.
fn fails_sometimes(sentence: &[Token]) -> bool {
    let words = clause(&sentence[1..]);
    let is_now_and_then = words
        .windows(3)
        .any(|three| three == ["now", "and", "then"]);
    let is_sometimes = words.iter().any(|word| SOMETIMES.contains(&word.as_str()));
    !sentence[0].ends_clause && (is_now_and_then || is_sometimes)
}

/// Returns whether a sentence asks to mend or change "it", or a named test.
fn mends_it(sentence: &[Token], is_named: &dyn Fn(&[Token], usize) -> bool) -> bool {
    (1..sentence.len()).any(|at| {
        let is_it =
            ["it", "this"].contains(&lower(&sentence[at]).as_str()) || is_named(sentence, at);
        let articles = sentence[..at].iter().rev().map(lower);
        let count = articles
            .take_while(|word| ARTICLES.contains(&word.as_str()))
            .count();
        let verb = at.checked_sub(count + 1);
        is_it
            && verb.is_some_and(|verb| {
                let word = lower(&sentence[verb]);
                is_request(sentence, verb) && is_any(Some(&word), &[&MEND, &CHANGE])
            })
    })
}

/// Returns whether the words before a test forbid changing it, or say to leave it.
fn is_left(sentence: &[Token], at: usize) -> bool {
    const LEAVE: [&str; 4] = ["leave", "keep", "ignore", "leaving"];
    let mut before = sentence[..at].iter().rev().map(lower);
    let nearest = before.find(|word| !is_any(Some(word), &[&ARTICLES, &["test"]]));
    is_any(nearest.as_ref(), &[&LEAVE]) || is_forbidden(&sentence[..at])
}

/// Returns whether a sentence goes on to say that "it" must not be changed.
fn is_it_left(after: &[Token]) -> bool {
    let is_it = |at: &usize| lower(&after[*at]) == "it";
    let mut pronouns = (0..after.len()).filter(is_it);
    pronouns.any(|at| is_left(after, at))
}

#[cfg(test)]
mod tests {
    use super::super::{to_change_file, to_change_test};
    use super::*;

    const ID: &str = "tests/test_a.py::test_flaky";

    #[test]
    fn test_that_the_task_calls_wrong_or_asks_to_repair_may_be_changed() {
        for task in [
            "test_flaky expects the wrong number: 1 + 1 is 2. Correct the test",
            "The expected value in test_flaky is wrong. Change the test to expect 2",
            "Make it work. See test_flaky. Change the test to expect 2",
            "Correct the expected value in test_flaky, it is 2",
            "Repair test_flaky",
            "test_flaky is wrong: it must expect 2. Fix the test.",
            "test_flaky is wrong, not the code",
            "`test_flaky` is plainly outdated",
            "test_flaky should expect 2",
            "test_flaky is to expect 2, not 3",
            "test_flaky must no longer expect 3",
            "test_flaky's expectation is wrong",
            "test_flaky wrongly expects 3",
            "What test_flaky expects is wrong",
            "test_flaky has a typo",
            "The test test_flaky is incorrect",
            "Please correct the numbers in test_flaky",
            "Fix the assertion in tests/test_a.py::test_flaky",
            "Fix the flaky test test_flaky",
            "There is a wrong expectation in test_flaky",
            "test_flaky fails. The test is wrong.",
            "test_flaky fails now and then, repair it",
            "test_flaky sometimes fails. Fix the test.",
        ] {
            assert!(to_change_test(task, ID), "{task}");
            assert!(!to_change_test(task, "tests/test_a.py::test_ok"), "{task}");
            for file in ["tests/test_a.py", "tests/test_b.py"] {
                let file = FilePath::new(file);
                assert!(!to_change_file(task, &file, true, &|_| false), "{task}");
            }
        }
    }

    #[test]
    fn test_that_only_fails_may_not_be_changed() {
        for task in [
            "Make test_flaky pass",
            "test_flaky fails",
            "test_flaky fails, fix it",
            "test_flaky fails. Fix the test.",
            "test_flaky fails now and then",
            "Repair the failing test test_flaky",
            "Correct total (test_flaky)",
            "Repair total so that test_flaky passes",
            "Return the correct value in test_flaky",
            "The result of f in test_flaky is wrong",
            "total is wrong, test_flaky shows it",
            "test_flaky expects a wrong password to fail",
            "test_flaky checks wrong passwords",
            "If test_flaky is wrong, tell me",
            "I do not think that test_flaky is wrong",
            "test_flaky is not wrong",
            "test_flaky is wrong. Do not change the test.",
            "test_flaky is wrong, but do not touch it",
            "test_flaky is wrong, leave it",
            "Do not repair test_flaky",
            "test_flaky must pass",
        ] {
            assert!(!to_change_test(task, ID), "{task}");
        }
    }

    #[test]
    fn test_file_that_the_task_calls_wrong_is_opened_alone() {
        let opens =
            |task: &str, file: &str| to_change_file(task, &FilePath::new(file), true, &|_| false);
        for task in [
            "Correct tests/test_a.py: 1 + 1 is 2",
            "tests/test_a.py expects the wrong numbers",
            "Correct the test in tests/test_a.py",
            "Change the test in tests/test_a.py to expect 2",
            "Update the tests in tests/test_a.py",
            "tests/test_a.py fails. Change the test to expect 2",
        ] {
            assert!(opens(task, "tests/test_a.py"), "{task}");
            assert!(!opens(task, "tests/test_b.py"), "{task}");
        }
        for task in [
            "Update the tests test_flaky and test_c",
            "test_flaky fails, correct the test",
        ] {
            assert!(!opens(task, "tests/test_a.py"), "{task}");
            assert!(to_change_test(task, ID), "{task}");
        }
        assert!(opens(
            "Fix the expected values in tests/test_a.py",
            "tests/test_a.py"
        ));
        assert!(!opens("tests/test_a.py fails", "tests/test_a.py"));
    }
}
