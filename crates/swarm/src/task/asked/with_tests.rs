//! Requests to remove tests together with the code that they use: "remove the class Fixed and the
//! test that uses it".

use super::{
    AFTER_TEST, AUXILIARY, CHANGE, CHANGED, MEND, NEGATION, OTHER_REQUEST, Token, sentences,
};

/// Verbs that request to remove something.
const REMOVE: [&str; 6] = [
    "remove", "removing", "delete", "deleting", "drop", "dropping",
];
/// Further verbs whose object is not removed.
const OTHER: [&str; 14] = [
    "keep", "keeping", "leave", "leaving", "run", "running", "make", "use", "call", "see", "check",
    "let", "mark", "ensure",
];
/// Words that name tests.
const TESTS: [&str; 6] = [
    "test",
    "tests",
    "doctest",
    "doctests",
    "unittest",
    "unittests",
];
/// Words between a word of [`JOINTS`] and the tests.
const DETERMINERS: [&str; 19] = [
    "the",
    "its",
    "their",
    "all",
    "every",
    "any",
    "each",
    "both",
    "own",
    "also",
    "only",
    "single",
    "one",
    "old",
    "unit",
    "corresponding",
    "associated",
    "related",
    "matching",
];
/// Words that join the tests to other objects of the verb.
const JOINTS: [&str; 6] = ["and", "with", "plus", "including", "or", "also"];
/// Words after the tests that name the code that they use.
const OF_CODE: [&str; 9] = [
    "using",
    "calling",
    "covering",
    "exercising",
    "testing",
    "go",
    "goes",
    "there",
    "from",
];
/// Maximum number of words between the tests and what is said of them.
const RELATIVE_MOST: usize = 6;

/// Returns whether a task asks to remove tests together with the code that they use.
pub(crate) fn to_remove_with_tests(task: &str) -> bool {
    sentences(task).iter().any(|sentence| {
        let tests = (0..sentence.len()).filter(|at| names_tests(sentence, *at));
        let mut tests = tests.into_iter();
        tests.any(|at| {
            let (before, after) = (&sentence[..at], &sentence[at + 1..]);
            are_object(before, after) || must_go(before, after)
        })
    })
}

fn is_any(token: &Token, known: &[&str]) -> bool {
    known.contains(&token.word.to_lowercase().as_str())
}

/// Returns whether the word at an index names tests and no other word follows that the tests only
/// describe, as in "the test command".
fn names_tests(sentence: &[Token], at: usize) -> bool {
    let follows = sentence.get(at + 1).is_none_or(|next| {
        [&AFTER_TEST[..], &AUXILIARY, &OF_CODE]
            .iter()
            .any(|known| is_any(next, known))
    });
    is_any(&sentence[at], &TESTS) && (sentence[at].ends_clause || follows)
}

/// Returns whether the words before the tests make them an object of a verb that removes something.
/// In "remove f from the code and the tests", they are none.
fn are_object(before: &[Token], after: &[Token]) -> bool {
    let named = before
        .iter()
        .rev()
        .take_while(|token| is_any(token, &DETERMINERS));
    let (before, named) = before.split_at(before.len() - named.count());
    let are_of_code = named.iter().any(|token| is_any(token, &["its", "their"]))
        || after.first().is_some_and(|token| {
            is_any(token, &["that", "which", "of", "for"]) || is_any(token, &OF_CODE)
        });
    let Some(last) = before.last() else {
        return false;
    };
    let is_joined = last.ends_clause || is_any(last, &JOINTS) || is_any(last, &REMOVE);
    let is_verb = |token: &Token| {
        [&REMOVE[..], &CHANGE, &MEND, &OTHER_REQUEST, &OTHER]
            .iter()
            .any(|known| is_any(token, known))
    };
    let verb = before.iter().rposition(is_verb);
    is_joined
        && verb.is_some_and(|at| {
            let earlier = &before[at.saturating_sub(3)..at];
            let mut negations = earlier.iter().chain(&before[at..]);
            let is_place = before[at..]
                .iter()
                .any(|token| is_any(token, &["from", "in", "of"]));
            is_any(&before[at], &REMOVE)
                && !negations.any(|token| is_any(token, &NEGATION))
                && (are_of_code || !is_place)
        })
}

/// Returns whether a sentence says that the tests, its subject, go: "its test must be removed, too",
/// "the test that uses it goes as well".
fn must_go(before: &[Token], after: &[Token]) -> bool {
    const GO: [&str; 5] = ["go", "goes", "removed", "deleted", "dropped"];
    let is_subject = before
        .iter()
        .all(|token| is_any(token, &DETERMINERS) || is_any(token, &JOINTS));
    let relative = after.iter().take(RELATIVE_MOST);
    let verb = relative
        .take_while(|token| !is_any(token, &NEGATION))
        .position(|token| is_any(token, &GO));
    is_subject
        && verb.is_some_and(|at| {
            let is_said = at
                .checked_sub(1)
                .is_some_and(|at| is_any(&after[at], &AUXILIARY));
            is_said || is_any(&after[at], &GO[1..2]) || at == 0 && !is_any(&after[at], &CHANGED)
        })
}
