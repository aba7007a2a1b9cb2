//! Compares the failing tests with the wishes of a task by their words. A task may have several
//! wishes, and a name of code in one of them says nothing about the others: "the oldest must come
//! first, and fix the area and November".

use std::collections::BTreeSet;

use crate::excerpt::stems;
use crate::lookup::Lookup;
use crate::task::whole_word::is_word_part;
use starling_core::TestCase;
use starling_syntax::SymbolPath;

/// Beginnings of a part of a sentence that explains the part before it.
const EXPLAINS: [&str; 24] = [
    "it", "they", "this", "that", "these", "those", "he", "she", "we", "you", "i", "there",
    "because", "since", "so", "but", "which", "when", "if", "as", "while", "where", "then", "not",
];
/// Beginnings of words without a topic: they say only that something is wrong, or that something
/// must be done.
const WITHOUT_TOPIC: [&str; 24] = [
    "break", "broke", "cannot", "change", "correct", "crash", "error", "fail", "forget", "hang",
    "ignore", "lose", "make", "mend", "must", "never", "raise", "repair", "return", "should",
    "test", "work", "wrong", "update",
];

/// How well the words of a test fit a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WordFit {
    /// One word of its name, and another one of its name or source.
    Partly,
    /// All words of its name, at least two.
    Whole,
}

/// The words of a test.
pub(super) struct TestWords {
    name: BTreeSet<String>,
    /// The words of the name and of the source.
    all: BTreeSet<String>,
    /// The words before a `=` in the source: keyword arguments and variables.
    assigned: BTreeSet<String>,
}

impl TestWords {
    pub fn of(lookup: &Lookup, case: &TestCase) -> TestWords {
        let id = case.id.split('[').next().unwrap_or(&case.id);
        let mut name = stems(id.rsplit(['.', ':', '/']).next().unwrap_or(id));
        name.retain(|word| !word.starts_with("test"));
        let source = super::test_of(lookup, case).and_then(|test| {
            let found = lookup.symbol(&test).ok()?;
            Some(found.source().to_owned())
        });
        let source = source.unwrap_or_default();
        let all = stems(&source).union(&name).cloned().collect();
        let before = source.split('=').map(str::trim_end);
        let last = before.filter_map(|text| text.rsplit(|c| !is_word_part(c)).next());
        let assigned = last.flat_map(stems).collect();
        TestWords {
            name,
            all,
            assigned,
        }
    }
}

/// The wishes of a task, each as its significant words.
pub(super) struct Wishes {
    all: Vec<BTreeSet<String>>,
    /// The words of the parameters that the task declares.
    parameters: BTreeSet<String>,
}

impl Wishes {
    pub fn of(task: &str) -> Wishes {
        let mut all: Vec<BTreeSet<String>> = Vec::new();
        let ends = |c: char| matches!(c, ';' | '\n' | '!' | '?');
        let sentences = task.split(ends).flat_map(|text| text.split(". "));
        for sentence in sentences {
            for part in sentence.split(" and ") {
                let mut words = stems(part);
                words.retain(|word| !has_no_topic(word));
                match all.last_mut() {
                    Some(last) if explains(part) => last.extend(words),
                    Some(_) | None if words.is_empty() => {}
                    Some(_) | None => all.push(words),
                }
            }
        }
        Wishes {
            all,
            parameters: parameters(task),
        }
    }

    /// Returns the words of a test that may be those of a wish. The name of a parameter that the task
    /// declares is none, unless the test passes the parameter: no test can speak of it otherwise.
    fn known<'t>(
        &'t self,
        words: &'t BTreeSet<String>,
        test: &'t TestWords,
    ) -> BTreeSet<&'t String> {
        let is_known =
            |word: &&String| !self.parameters.contains(*word) || test.assigned.contains(*word);
        words.iter().filter(is_known).collect()
    }

    /// Returns how well the words of a test fit one of the wishes; `None` if they fit none.
    pub fn fit(&self, test: &TestWords) -> Option<WordFit> {
        let fit = |wish: &BTreeSet<String>| {
            let of_wish = |words| {
                let known = self.known(words, test).into_iter();
                known.filter(|word| wish.contains(*word)).count()
            };
            let (of_name, of_all) = (of_wish(&test.name), of_wish(&test.all));
            match (of_name, of_all) {
                (count, _) if count >= 2 && count == test.name.len() => Some(WordFit::Whole),
                (1.., 2..) => Some(WordFit::Partly),
                (_, _) => None,
            }
        };
        self.all.iter().filter_map(fit).max()
    }

    /// Returns whether the name or the source of a test contains a word of a wish.
    pub fn share_a_word(&self, test: &TestWords) -> bool {
        let known = self.known(&test.all, test);
        let mut wishes = self.all.iter();
        wishes.any(|wish| known.iter().any(|word| wish.contains(*word)))
    }

    /// Returns whether tests fit some of the wishes, by their words or by those of the code that the
    /// task is about, and no test fits another one. Any failing test may then be about that one.
    pub fn leave_one_open(&self, tests: &[TestWords], targets: &[SymbolPath]) -> bool {
        let of_targets: BTreeSet<String> = match tests.is_empty() {
            true => BTreeSet::new(),
            false => targets.iter().flat_map(|one| stems(&one.name)).collect(),
        };
        let is_met = |wish: &&BTreeSet<String>| {
            let meets = |test: &TestWords| !wish.is_disjoint(&test.all);
            !wish.is_disjoint(&of_targets) || tests.iter().any(meets)
        };
        let met = self.all.iter().filter(is_met).count();
        (1..self.all.len()).contains(&met)
    }
}

/// Returns the words of the parameters that a task declares with a type and a default: `night: bool =
/// False`.
fn parameters(task: &str) -> BTreeSet<String> {
    let declared = task.match_indices(": ").filter_map(|(at, mark)| {
        let (name, rest) = (&task[..at], &task[at + mark.len()..]);
        let name = name.rsplit(|c| !is_word_part(c)).next()?;
        let (kind, _) = rest.split_once('=')?;
        let is_type = |c: char| is_word_part(c) || "[]|. ".contains(c);
        let kind = kind.trim_end();
        let is_one = !kind.is_empty() && kind.chars().all(is_type) && !is_prose(kind);
        is_one.then_some(name)
    });
    declared.flat_map(stems).collect()
}

/// Returns whether a text before `=` is prose instead of a type: it has words without a `|` between.
fn is_prose(kind: &str) -> bool {
    kind.split('|').any(|one| one.trim().contains(' '))
}

fn explains(part: &str) -> bool {
    let first = part.split_whitespace().next().unwrap_or_default();
    EXPLAINS.contains(&first.to_lowercase().as_str())
}

/// `stems` cuts a word after five letters.
fn has_no_topic(stem: &str) -> bool {
    let is_of = |word: &&str| stem.starts_with(&word[..word.len().min(5)]);
    WITHOUT_TOPIC.iter().any(is_of)
}
