//! Finds the tests that a task says to leave as they are: "ignore test_x", "test_x needs a file
//! that we do not have, leave it", "the red tests have nothing to do with it". These tests are not
//! part of the task, and the clauses about them are ignored when the goal is determined. So are
//! clauses that say that no new test is wanted: "no test needed".

use std::ops::Range;

use super::words::{Sentence, part};
use crate::evidence::ids::WHOLE_RUN;
use crate::task::test_names::names_test;
use crate::task::whole_word::has_word;
use starling_syntax::FilePath;

/// Words that begin a new clause.
const BEGINNINGS: [&str; 14] = [
    "and",
    "but",
    "then",
    "so",
    "because",
    "since",
    "while",
    "which",
    "except",
    "excluding",
    "besides",
    "apart",
    "aside",
    "without",
];
/// Words at the beginning of a clause that only connect it to the previous clause.
const JOINTS: [&str; 8] = [
    "and", "but", "then", "so", "because", "since", "while", "which",
];
/// Patterns for clauses such as "ignore test_x", which say that the named tests are to be left as
/// they are.
const LEAVES: &[&str] = &[
    "^leave|ignore|skip|disregard|exclude|omit|forget|leaving|ignoring|skipping|excluding ? @test",
    "^except|besides|bar ? @test",
    "^apart|aside|other from|than ? @test",
    "^without|not @test",
    "^never mind ? @test",
    "^nevermind ? @test",
    "^do not fix|mend|repair|solve|bother|worry|care|mind|consider|count ? @test",
    "^never|not|dont|neednt fix|mend|repair|solve|bother|worry|care|mind|consider|count ? @test",
    "no need ? fix|mend|repair|solve|bother|worry ? @test",
    "not|dont have|need ? fix|mend|repair|solve ? @test",
    "^pay no attention ? @test",
    "^? ? @test can|may|could|should|shall|must be ignored|skipped|disregarded|excluded|left",
];
/// Patterns for statements about tests that are to be left as they are.
const LEFT: &[&str] = &[
    "may|can|should|shall|must|will stay|remain|keep ? red|failing|broken",
    "may ? fail $",
    "not ? part|business|concern|problem|job",
    "no part",
    "nothing ? do",
    "none of business|concern",
    "out of scope",
    "known|allowed|expected|supposed|bound to fail",
    "known failure*",
    "is|are ? unrelated|irrelevant",
    "not|isnt|arent ? related|relevant|connected",
    "doesnt|dont matter|count",
    "not matter|count",
    "not to be fixed|mended|repaired|solved",
    "neednt pass|succeed",
    "needs|need not pass|succeed",
    "not|doesnt|dont need|have ? pass|succeed",
    "fixed|mended|repaired|solved|handled|done later|separately|elsewhere",
    "for later",
    "can|may wait $",
];
/// Patterns for words that mean the failing tests in general, and name none of them.
const RED_TESTS: &[&str] = &[
    "red|failing|failed|broken|other|others|remaining|unrelated|existing @test|failures|failure|ones",
    "red|failing|failed|broken|other|remaining|existing red|failing|failed|broken|other|remaining|unit @test|failures",
    "rest of ? @test|failures",
    "@test that ? ? fail|failing|failed|red|broken",
    "@test failures",
];
/// Same as [`RED_TESTS`], where these words are the subject of the clause.
const RED_TESTS_ARE: &[&str] = &[
    "^? ? red|failing|failed|broken|other|others|remaining|unrelated|existing @test|failures|failure|ones",
    "^? ? red|failing|failed|broken|other|remaining|existing red|failing|failed|broken|other|remaining|unit @test|failures",
    "^rest of ? @test|failures",
    "^? ? @test that ? ? fail|failing|failed|red|broken",
    "^@test failures",
];
/// Patterns for clauses that tell of failing tests, which the next clause may mean by "them".
const TELLS_OF_RED_TESTS: &[&str] = &["@test ? ? fail|failing|failed|red|broken"];
/// Patterns for words that restrict "the failing tests" to some of them.
const SOME_TESTS: &[&str] = &["@test of|in|for|from|about|under|on"];
/// Patterns for clauses that speak of the other tests only.
const OTHERS: &[&str] = &["other|others|remaining|rest"];
/// Patterns for clauses such as "ignore the failing tests".
const LEAVES_RED: &[&str] = &[
    "^leave|ignore|skip|disregard|exclude|omit|forget|leaving|ignoring|skipping|excluding ? red|failing|failed|broken|other|remaining|rest|existing|unrelated|@test",
    "^do not fix|mend|repair|solve|bother|worry|care|mind|consider|count",
    "^never|not|dont|neednt fix|mend|repair|solve|bother|worry|care|mind|consider|count",
    "^not red|failing|failed|broken|other|remaining",
    "^except|besides|bar|apart|aside",
    "^never mind",
    "^nevermind",
    "no need ? fix|mend|repair|solve|bother|worry",
    "not|dont have|need ? fix|mend|repair|solve",
    "^pay no attention",
    "can|may|could|should|shall|must be ignored|skipped|disregarded|excluded|left",
];
/// Patterns for further statements about the failing tests in general, beside [`LEFT`].
const LEFT_RED: &[&str] = &[
    "is|are ? known|expected|intended",
    "is|are to be ignored|skipped|left",
    "should|must|shall|may|need not be fixed|mended|repaired|solved",
    "need|needs no fix|fixing|repair|mending|attention",
    "not|dont need ? fixing|mending",
    "not|dont concern|belong|interest",
    "another|different|separate|own issue|problem|story|task|matter|bug|reason|cause|ticket",
    "other|different|separate issues|problems|matters|bugs|reasons|causes|tickets",
    "was|were|are red|failing|broken before",
    "failed|fail before",
    "stay|stays|remain|remains $",
    "stay|stays|remain|remains red|failing|broken|as",
];
/// Patterns for clauses that forbid changing the text of tests. The tests may still be required to
/// pass.
const KEEPS_TEXT: &[&str] = &["untouched|unchanged|unmodified|unaltered|intact"];
/// Patterns for clauses such as "ignore them", which say that the tests named in the previous
/// clause are to be left as they are.
const LEAVES_THEM: &[&str] = &[
    "^leave|ignore|skip|disregard|exclude|omit|forget it|that|this|them|those|these|both $",
    "^leave|ignore|skip|disregard|exclude|omit|forget it|that|this|them|those|these|both alone|out|red|aside|be|failing|broken|as|for|please|here|there|too|now",
    "^leave|ignore|skip|disregard|exclude|omit|forget that|this|those|these one|ones|test|tests",
    "^leave|forget about it|that|this|them|those|these",
    "^never mind $",
    "^nevermind $",
    "^never mind it|that|this|them|those|these",
    "^do not fix|mend|repair|solve|bother|worry|care|mind|consider|count $",
    "^do not fix|mend|repair|solve|bother|worry|care|mind|consider|count ? it|that|this|them|those|these",
    "^dont|never|not fix|mend|repair|solve|bother|worry|care|mind|consider|count $",
    "^dont|never|not fix|mend|repair|solve|bother|worry|care|mind|consider|count ? it|that|this|them|those|these",
    "no need ? fix|mend|repair|solve ? it|that|this|them|those|these",
];
/// Patterns for clauses that refer by a pronoun to the tests of the previous clause.
const OF_THEM: &[&str] = &["^it|that|this|they|those|these|both|one"];
/// Patterns for clauses that ask to make the named tests pass, or that say that the tests are
/// correct.
const WANTS: &[&str] = &[
    "^make|get|fix|mend|repair|let|turn|bring|solve|resolve|have|run|debug",
    "leave|keep ... pass*|green|working",
    "is|are right|correct|fine",
    "must|should pass|succeed|work",
];

/// Patterns for clauses that say that no new test is wanted.
const NO_NEW_TESTS: &[&str] = &[
    "no ? ? @newtest ? ? needed|required|necessary|wanted|requested|expected",
    "no need ? ? @newtest",
    "no need to|for add|write|create|adding|writing .. @newtest",
    "not|dont|neednt|never ? ? add|write|create .. @newtest",
    "without adding|writing|creating .. @newtest",
    "@newtest ? ? not|never ? needed|required|necessary|wanted|requested|expected",
    "@newtest isnt|arent|neednt|unneeded|unnecessary|unwanted",
    "@newtest ? ? optional|superfluous|unneeded|unnecessary|unwanted",
    "@newtest ? ? later|separately|afterwards|myself|ourselves",
    "^skip|omit|spare ? @newtest $",
    "^skip|omit|spare ? @newtest for now",
    "^skip|omit|spare ? @newtest please|now|here",
];
/// Patterns for clauses that say the same only where the clause is a remark on the request, as in
/// "add f, no tests". Elsewhere they tell that the code has no tests.
const NO_NEW_TESTS_BESIDE: &[&str] = &[
    "^no|without ? @newtest $",
    "^no|without ? @newtest please|for|here|now|this|yet",
];
/// Patterns for requests of a change to code that a remark on tests may follow.
const REQUESTS: &[&str] = &["^@change|@edit"];
/// Patterns for clauses that speak of tests.
const OF_TESTS: &[&str] = &["@newtest"];

/// Which failing tests a task says to leave without naming them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnnamedLeft {
    /// All that the task does not name.
    All,
    /// Those that are not part of the task otherwise: "the other tests".
    Others,
}

/// The clauses of a task that tell which tests to leave as they are (`left`), and those that tell
/// which tests to make pass (`wanted`).
#[derive(Debug, Default)]
pub(crate) struct ExcludedTests<'t> {
    task: &'t str,
    /// Byte ranges of the clauses about tests that must be left as they are: clauses that name the
    /// tests, and clauses that refer to them.
    left: Vec<Range<usize>>,
    /// Byte ranges of the clauses that ask to make the named tests pass.
    wanted: Vec<Range<usize>>,
    /// Byte ranges of the clauses that say that no new test is wanted.
    declined: Vec<Range<usize>>,
    unnamed: Option<UnnamedLeft>,
}

impl<'t> ExcludedTests<'t> {
    pub fn of(task: &'t str) -> ExcludedTests<'t> {
        let clauses = clauses(task);
        let mut is_left = vec![false; clauses.len()];
        let mut unnamed = None;
        for (at, clause) in clauses.iter().enumerate() {
            let before = at.checked_sub(1);
            if clause.names_test() {
                let continues = |before: usize| {
                    is_left[before] && clause.is_list() || clause.is_rest_of_all(&clauses[before])
                };
                is_left[at] = clause.leaves() || before.is_some_and(continues);
            } else if clause.leaves_red_tests() {
                is_left[at] = true;
                let is_all = unnamed == Some(UnnamedLeft::All) || !clause.fits(OTHERS);
                unnamed = Some(match is_all {
                    true => UnnamedLeft::All,
                    false => UnnamedLeft::Others,
                });
            } else if clause.leaves_them() {
                let meant = antecedents(&clauses, at);
                is_left[at] = !meant.is_empty();
                for one in meant {
                    is_left[one] = true;
                    if !clauses[one].names_test() {
                        unnamed = unnamed.or(Some(UnnamedLeft::All));
                    }
                }
            }
        }
        let pick = |wanted: bool, fits: &dyn Fn(&Clause<'_>) -> bool| {
            let both = clauses.iter().zip(&is_left);
            let fitting = both.filter(|(clause, left)| **left == wanted && fits(clause));
            fitting.map(|(clause, _)| clause.range.clone()).collect()
        };
        ExcludedTests {
            task,
            left: pick(true, &|_| true),
            wanted: pick(false, &|clause| clause.names_test() && clause.fits(WANTS)),
            declined: declined(&clauses),
            unnamed,
        }
    }

    /// Returns the task without the clauses about tests that must be left as they are or need not
    /// be written.
    pub fn rest(&self) -> String {
        let mut rest = self.task.to_owned();
        let mut ranges: Vec<&Range<usize>> = self.left.iter().chain(&self.declined).collect();
        ranges.sort_by_key(|range| range.start);
        ranges.dedup();
        for range in ranges.into_iter().rev() {
            rest.replace_range(range.clone(), " ");
        }
        rest
    }

    /// Returns whether the task says to leave a test as it is.
    pub fn holds(&self, id: &str) -> bool {
        let names = |ranges: &[Range<usize>]| {
            let mut ranges = ranges.iter();
            ranges.any(|range| names(&self.task[range.clone()], id))
        };
        let is_unnamed = || {
            self.unnamed == Some(UnnamedLeft::All)
                && id != WHOLE_RUN
                && !self::names(&self.rest(), id)
        };
        names(&self.left) && !names(&self.wanted) || is_unnamed()
    }

    /// Returns whether the task says to leave all tests as they are that it is not about.
    pub fn hold_the_rest(&self) -> bool {
        self.unnamed.is_some()
    }

    /// Returns whether the task says to leave the *other* tests as they are, so that it is about
    /// some of the failing tests.
    pub fn hold_only_others(&self) -> bool {
        self.unnamed == Some(UnnamedLeft::Others)
    }
}

/// Returns the byte ranges of the clauses that say that no new test is wanted.
fn declined(clauses: &[Clause<'_>]) -> Vec<Range<usize>> {
    let declines = |at: &usize| {
        let clause = &clauses[*at];
        if clause.fits(WANTS) || clause.names_test() {
            return false;
        }
        let before = at.checked_sub(1).map(|before| &clauses[before]);
        let is_remark = before.is_none_or(|before| {
            let is_beside = before.sentence != clause.sentence || before.text.trim().ends_with(',');
            is_beside || before.fits(REQUESTS) && !before.fits(OF_TESTS)
        });
        clause.fits(NO_NEW_TESTS) || is_remark && clause.fits(NO_NEW_TESTS_BESIDE)
    };
    let found = (0..clauses.len()).filter(declines);
    found.map(|at| clauses[at].range.clone()).collect()
}

/// Returns whether a text names a test, or names its file without a test after the file. The file
/// alone counts only if the text tells to ignore it: "leave" a file means not to change it, but
/// "ignore" a file means to ignore the results of its tests.
fn names(text: &str, id: &str) -> bool {
    let (file, _) = id.split_once("::").unwrap_or((id, ""));
    let file = FilePath::new(file).name().to_owned();
    let is_text_left = text.to_lowercase().contains("leave");
    let is_of_file = |token: &str| {
        !is_text_left
            && !token.contains("::")
            && file.ends_with(".py")
            && has_word(token, file.trim_end_matches(".py"))
    };
    names_test(text, id) || text.split_whitespace().any(is_of_file)
}

/// Returns the indices of the clauses that name the tests to which the pronoun in the clause at
/// `at` refers. These are the nearest earlier clause that names tests and, if that clause ends a
/// list, the clauses of the list. Only the sentence of `at` and the sentence before are searched.
fn antecedents(clauses: &[Clause<'_>], at: usize) -> Vec<usize> {
    let sentence = clauses[at].sentence;
    let near = |one: &usize| clauses[*one].sentence + 1 >= sentence;
    let mut before = (0..at).rev().take_while(near);
    let says_them = clauses[at].fits(&["them|they|those|these"]);
    let tells =
        |one: &usize| clauses[*one].names_test() || says_them && clauses[*one].tells_of_red_tests();
    let Some(nearest) = before.find(tells) else {
        return Vec::new();
    };
    if clauses[nearest].fits(WANTS) {
        return Vec::new();
    }
    let list = before.take_while(|one| clauses[*one].names_test() && clauses[*one].is_list());
    let mut found: Vec<usize> = list.collect();
    found.push(nearest);
    found
}

/// A part of a sentence that makes one statement or request.
struct Clause<'t> {
    range: Range<usize>,
    text: &'t str,
    words: Sentence,
    sentence: usize,
}

impl Clause<'_> {
    fn fits(&self, patterns: &[&str]) -> bool {
        patterns.iter().any(|pattern| self.words.fits(pattern))
    }

    fn leaves(&self) -> bool {
        let is_said = self.fits(LEAVES) || self.fits(LEFT);
        is_said && !self.fits(WANTS) && !self.fits(KEEPS_TEXT)
    }

    /// Returns whether the clause says to leave the failing tests as they are, without naming one.
    fn leaves_red_tests(&self) -> bool {
        let is_said = self.fits(RED_TESTS) && self.fits(LEAVES_RED)
            || self.fits(RED_TESTS_ARE) && (self.fits(LEFT) || self.fits(LEFT_RED));
        is_said && !self.fits(SOME_TESTS) && !self.fits(WANTS) && !self.fits(KEEPS_TEXT)
    }

    fn tells_of_red_tests(&self) -> bool {
        let is_told = self.fits(TELLS_OF_RED_TESTS) || self.fits(RED_TESTS);
        is_told && !self.fits(SOME_TESTS) && !self.fits(WANTS)
    }

    fn leaves_them(&self) -> bool {
        let is_said = self.fits(LEAVES_THEM) || self.fits(OF_THEM) && self.fits(LEFT);
        is_said && !self.fits(KEEPS_TEXT)
    }

    /// Returns whether the clause names a certain test, instead of only using the word "test".
    fn names_test(&self) -> bool {
        let mut tokens = self.text.split_whitespace();
        let mut is_behind_word = false;
        tokens.any(|token| {
            let name = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
            let is_of_tests = name.contains("test_")
                || name.contains("_test")
                || name.contains("::")
                || name.starts_with("test") && name.contains(|c: char| c.is_ascii_digit())
                || name.starts_with("Test") && name.chars().skip(4).any(char::is_uppercase);
            let is_code = token.contains('`') || name.contains(['_', '.']);
            let is_numbered = name.len() > 1 && name.ends_with(|c: char| c.is_ascii_digit());
            let is_name = is_of_tests || is_behind_word && (is_code || is_numbered);
            is_behind_word = matches!(name, "test" | "tests");
            is_name
        })
    }

    /// Returns whether the clause contains nothing but names of tests.
    fn is_list(&self) -> bool {
        let mut tokens = self.text.split_whitespace();
        tokens.all(|token| {
            let name = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
            let is_plain = ["and", "or", "also", "the", "test", "tests", ""].contains(&name);
            is_plain || name.contains(['_', ':', '.']) || token.contains('`')
        })
    }

    /// Returns whether the clause is the exception after "all" in a text such as "all but test_x".
    fn is_rest_of_all(&self, before: &Clause<'_>) -> bool {
        let last = before.text.split_whitespace().next_back();
        let is_all = last.is_some_and(|last| matches!(last, "all" | "everything" | "tests"));
        is_all && self.text.trim_start().starts_with("but ") && {
            let names = self.text.trim_start().trim_start_matches("but ");
            names
                .split_whitespace()
                .next()
                .is_some_and(|first| first.contains("test") || matches!(first, "the" | "for"))
        }
    }
}

/// Splits a text into clauses. Blocks of code are left out.
fn clauses(text: &str) -> Vec<Clause<'_>> {
    let mut found: Vec<Clause<'_>> = Vec::new();
    let mut start = 0;
    let mut sentence = 0;
    let mut in_block = false;
    let mut in_code = false;
    let mut end = |start: &mut usize, until: usize, sentence: usize| {
        let range = *start..until;
        *start = until;
        let said = &text[range.clone()];
        if !said.trim().is_empty() {
            let words = part(without_joint(said));
            found.push(Clause {
                range,
                text: said,
                words,
                sentence,
            });
        }
    };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (begin, trimmed) = (at, line.trim());
        at += line.len();
        let is_fence = trimmed.starts_with("```");
        let is_item = trimmed.starts_with("- ") || trimmed.starts_with("* ");
        if is_fence || in_block || is_item || trimmed.is_empty() {
            end(&mut start, begin, sentence);
            sentence += 1;
        }
        if is_fence || in_block {
            in_block ^= is_fence;
            start = at;
            continue;
        }
        let mut from = begin;
        for chunk in line.split_inclusive(char::is_whitespace) {
            let (place, word) = (from, chunk.trim());
            from += chunk.len();
            let lower = word.to_lowercase();
            let is_other_than = lower == "other" && text[from..].starts_with("than ");
            let begins = BEGINNINGS.contains(&lower.as_str()) || is_other_than;
            if !in_code && (begins || word.starts_with('(') || matches!(word, "-" | "–" | "—"))
            {
                end(&mut start, place, sentence);
            }
            in_code ^= word.matches('`').count() % 2 == 1;
            let last = word.trim_end_matches(['"', '\'', '`']).chars().last();
            if in_code {
                continue;
            }
            match last {
                Some(',' | ')') => end(&mut start, from, sentence),
                Some('.' | '!' | '?' | ';' | ':') => {
                    end(&mut start, from, sentence);
                    sentence += 1;
                }
                Some(_) | None => {}
            }
        }
    }
    end(&mut start, text.len(), sentence);
    found
}

/// Returns a clause without the first word if that word only connects it to the previous clause.
fn without_joint(text: &str) -> &str {
    let text = text.trim_start();
    let joint = JOINTS.iter().find_map(|joint| {
        let rest = text.get(joint.len()..)?;
        let is_it = text[..joint.len()].eq_ignore_ascii_case(joint);
        (is_it && rest.starts_with(char::is_whitespace)).then_some(rest)
    });
    joint.unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(task: &str) -> Vec<&'static str> {
        let excluded = ExcludedTests::of(task);
        let ids = [
            "tests/test_net.py::test_price",
            "tests/test_shop.py::test_list[1]",
            "tests/test_shop.py::TestCart::test_total",
        ];
        let held = ids.into_iter().filter(|id| excluded.holds(id));
        held.map(|id| id.rsplit("::").next().unwrap()).collect()
    }

    #[test]
    fn tests_that_a_task_says_to_leave_are_excluded() {
        for task in [
            "Touching appointments must not overlap. test_price needs a file that we do not have, leave it.",
            "Touching appointments must not overlap; leave test_price",
            "mean is wrong. Please ignore test_price.",
            "Fix mean, skip test_price for now.",
            "Fix mean (never mind test_price).",
            "Fix mean and don't worry about `test_price`",
            "Mend what the red tests show; tests/test_net.py::test_price cannot pass here. Leave it alone.",
            "Mend the red tests except test_price",
            "All tests but test_price should pass",
            "Make the tests pass, apart from test_price.",
            "Make all tests pass other than test_price",
            "Fix mean. test_price is no part of this task.",
            "Fix mean. The test test_price may stay red",
            "Fix mean. test_price is known to fail",
            "Fix mean; test_price can be ignored",
            "Fix mean. There is no need to fix test_price.",
            "Fix mean. You do not have to mend test_price.",
            "Fix mean. test_price will be fixed later",
            "test_price lacks its file, it is not your concern. mean([]) raises.",
            "Leave test_price alone: it needs the network. mean([]) raises.",
            "Forget about test_price, mean([]) raises.",
            "Fix mean, but not test_price",
            "ignore tests/test_net.py, mean is wrong",
        ] {
            assert_eq!(left(task), ["test_price"], "{task}");
        }
        let case = "Make test_list[2] pass and ignore test_list[1].";
        assert_eq!(left(case), ["test_list[1]"]);
        assert_eq!(
            left("Make test_list[1] pass and ignore test_list[2]."),
            [""; 0]
        );
        let both = "Fix mean. Ignore test_price, test_total and fix median.";
        assert_eq!(left(both), ["test_price", "test_total"]);
        let both = "test_price and test_total need the network, leave them. Fix mean.";
        assert_eq!(left(both), ["test_price", "test_total"]);
        assert_eq!(left("Fix mean, ignore tests/test_shop.py").len(), 2);
    }

    #[test]
    fn failing_tests_that_a_task_calls_unrelated_without_names_are_excluded() {
        for task in [
            "Fix mean. The red tests have nothing to do with it.",
            "Fix mean. The 6 failing tests have nothing to do with that.",
            "mean is wrong; ignore the failing tests",
            "mean is wrong. Please ignore all the red tests.",
            "mean is wrong. The red tests are known.",
            "mean is wrong. The failing tests are known failures, they are not to be fixed.",
            "mean is wrong (the failing tests are unrelated)",
            "mean is wrong; don't fix the broken tests",
            "mean is wrong. Do not bother with the failing unit tests.",
            "mean is wrong, but the tests that fail are not related to it",
            "mean is wrong. Some tests fail, ignore them.",
            "There are red tests. They have nothing to do with it. mean is wrong.",
            "mean is wrong. The red tests should not be fixed.",
            "mean is wrong, unrelated red tests stay",
        ] {
            assert_eq!(left(task).len(), 3, "{task}");
            assert!(ExcludedTests::of(task).hold_the_rest(), "{task}");
            assert_eq!(super::super::of(task), super::super::Goal::Bug, "{task}");
        }
        for task in [
            "Make test_price pass. The other failing tests are unrelated.",
            "mean is wrong; ignore the other red tests",
            "mean is wrong. Other red tests are unrelated.",
            "mean is wrong. The other failing tests are known",
            "mean is wrong. The other red tests stay as they are.",
            "mean is wrong. The rest of the tests is known to fail.",
            "mean is wrong. The remaining failing tests need not be fixed.",
        ] {
            let excluded = ExcludedTests::of(task);
            assert!(excluded.hold_the_rest(), "{task}");
            assert_eq!(left(task), [""; 0], "{task}");
        }
        let named = "Make test_price pass. The failing tests are unrelated otherwise.";
        assert_eq!(left(named), ["test_list[1]", "test_total"]);
    }

    #[test]
    fn failing_tests_that_the_task_is_about_are_not_called_unrelated() {
        for task in [
            "Fix the failing tests",
            "Ignore blank lines so that the failing tests pass",
            "Skip tests that are marked slow",
            "mean is wrong; the other tests must still pass",
            "Fix mean without breaking the other tests",
            "The failing tests are right, fix the code.",
            "The red tests of the importer are unrelated; fix the others",
            "Leave the red tests unchanged and fix the code",
            "The red tests show what is wrong. Fix it.",
            "The failing tests should not be ignored",
            "Do not ignore the failing tests",
        ] {
            assert!(!ExcludedTests::of(task).hold_the_rest(), "{task}");
            assert_eq!(left(task), [""; 0], "{task}");
        }
    }

    #[test]
    fn tests_that_the_task_does_not_say_to_ignore_are_not_excluded() {
        for task in [
            "test_price fails",
            "test_price does not pass",
            "Do fix test_price",
            "We do need to fix test_price",
            "Fix mean; leave tests/test_net.py as it is",
            "Fix mean; leave test_price unchanged",
            "Blank lines of test_price must be skipped",
            "Make test_price pass and leave test_total green.",
            "Make test_price pass, leave it as it is.",
            "test_price is right, leave it as it is. Fix the code.",
            "Do not ignore test_price",
            "test_price has an empty line; parse should skip it.",
            "test_price should not be red",
            "parse should skip blank lines, see test_price",
            "`mean` is wrong, see test_price; do not touch test_price.",
            "ignore blank lines in test_price's input",
            "Fix mean without changing test_price",
            "```\nignore test_price\n```\nFix mean",
        ] {
            assert_eq!(left(task), [""; 0], "{task}");
        }
    }

    #[test]
    fn task_that_wants_no_new_test_is_not_about_tests() {
        use super::super::{Goal, of};
        for remark in [
            ". No test needed.",
            ". No tests are needed",
            ", no new tests necessary.",
            " (no test needed)",
            ". There is no need for a test.",
            ". There is no need to write tests.",
            ". You need not write a test.",
            ". You don't have to add tests.",
            ". Don't write any tests for it.",
            ". Do not add tests.",
            ". Tests are not needed.",
            ". A test isn't needed.",
            " without adding a test",
            " without tests",
            ", without tests.",
            ". Without tests, please.",
            ". No tests, please",
            ", no tests",
            ". Skip the tests for now.",
            ". I'll write the tests later.",
            ". Tests are optional.",
        ] {
            let task = format!("Add a method Recipe.gravity(){remark}");
            assert_eq!(of(&task), Goal::Feature, "{task}");
            let task = format!("Rename total to sum_up{remark}");
            assert_eq!(of(&task), Goal::Refactoring, "{task}");
        }
        for task in [
            "parse is without tests",
            "parse has no tests",
            "units.py has functions without tests",
            "Add a test for parse. It does not need to be long.",
            "Add tests for the functions without tests",
            "parse has no test yet. Add one.",
            "Add a missing test for parse",
        ] {
            assert_eq!(of(task), Goal::NewTest, "{task}");
        }
        assert_eq!(
            of("Do not break the tests. Fix the failing tests"),
            Goal::RedTests
        );
    }

    #[test]
    fn excluded_tests_are_removed_from_the_task_text() {
        let rest = |task: &str| {
            let rest = ExcludedTests::of(task).rest();
            rest.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            rest("Sort the list. test_price needs a file that we do not have, leave it."),
            "Sort the list."
        );
        assert_eq!(
            rest("Fix mean, skip test_price and sort."),
            "Fix mean, and sort."
        );
        assert_eq!(rest("Skip blank lines."), "Skip blank lines.");
    }
}
