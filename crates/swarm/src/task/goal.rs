//! Classifies a task by the user's words and a table of rules. No model is called.
//!
//! The goal decides which failing tests a run must fix ([`crate::check::required`]). A task that
//! matches no rule counts as a bug, the strictest of all goals that change code.

pub(crate) mod excluded;
mod words;

use excluded::ExcludedTests;
use words::{Sentence, sentences};

/// The kind of result that the user asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Wrong behaviour must be fixed.
    Bug,
    /// Failing tests must pass.
    RedTests,
    NewTest,
    Feature,
    /// The code changes, but its behaviour does not.
    Refactoring,
    /// Prose, or a file without code, changes.
    Documentation,
    Question,
}

/// Patterns for sentences that ask to change a document. A document that the task only consults
/// does not match (see [`Sentence::fits`]).
const DOCUMENTATION: &[&str] = &[
    "typo*|spelling|misspell*|grammar|wording",
    "^document",
    "^mention|note|describe|explain|list ... @doc",
    "^@edit ... in|to|into|from|of @doc",
    "^@edit ? @doc $",
    "^@edit ? @doc for|of|on|about|with|that|how|and|in|to|so|when|why|saying|explaining",
    "^@prose $",
    "^@prose for|on|about|with|how|update|updates|fix|fixes|missing",
    "^@prose of|in ? ? $",
    "^@prose .. is|are|was|were|seems|looks|got ? @faulty",
    "^@prose ... should|must|shall|needs|need|lack|lacks|misses|still|wrongly|nowhere",
    "^@prose ... not|never|doesnt|dont|didnt|isnt|arent|cannot|cant",
    "^@prose .. has|have|contain|contains ... @faulty|typo*|error|errors|mistake|mistakes|no|nothing",
];
/// Patterns for sentences that ask to change a document, too, beside code.
const DOCUMENTATION_TOO: &[&str] = &[
    "^@edit ? @doc as well",
    "^@edit ? @doc too|also|accordingly|likewise",
];
/// Patterns for sentences that ask for any change.
const CHANGES: &[&str] = &["^@change"];
/// Patterns for sentences that match [`CHANGES`] and ask to repair what they name.
const REPAIRS: &[&str] = &["^fix|repair|mend|debug|correct|resolve|solve|make|improve|handle"];
/// Patterns for sentences that match [`CHANGES`] but change only a document mentioned earlier.
const BESIDE_DOCUMENTS: &[&str] = &[
    "^@change it|them|this|that|these|those|both|so|sure|accordingly",
    "^@change .. section|sections|paragraph*|sentence*|heading*|chapter*|example*|note|notes|badge*|link*",
    "^bump .. version",
];

/// Patterns for sentences that describe what code does wrong or must do. Beside a document that must
/// change, they are about code.
const TELLS_OF_BEHAVIOUR: &[&str] = &[
    "should|must|shall print|return|raise|write|show|give|yield|accept|reject|output|exit",
    "prints|returns|raises|writes|shows|gives|yields|outputs|accepts no|nothing|none|wrong|only|instead|twice",
    "crashes|hangs|ignores",
];

/// Patterns for sentences that only describe what a document says. If the whole task consists of
/// them, it means that the document is wrong.
const TOLD_ALONE: &[&str] = &["^@readme .. @says"];

/// The rules in order, for tasks that do not change documents. The first pattern that matches a
/// sentence decides. [`Sentence::fits`] describes the patterns.
const RULES: &[(Goal, &[&str])] = &[
    (
        Goal::RedTests,
        &[
            "make|get|have|turn|bring .. @test .. pass|passes|green|succeed|work|run",
            "make|get|have|turn|bring .. pytest|suite .. pass|green|work|run",
            "@test|suite|ci ? must|should|shall|to|can pass|succeed",
            "@test|suite|ci ? must|should|shall|to be green",
            "so that @test|suite|ci pass|passes|succeed|succeeds|work",
            "until|till @test|suite|ci pass|passes|succeed|succeeds|work",
            "fix|repair|mend|solve|resolve .. @test",
            "^run @test",
            "@test ... say|specify|define|describe what|how",
        ],
    ),
    (Goal::NewTest, &["add|write|create failing|red .. @newtest"]),
    (
        Goal::RedTests,
        &[
            "@test .. fail*|red|broken|error|errors|breaks|crash*|flaky",
            "fail*|red|broken .. @test",
            "ci|build|suite .. fail*|red|broken",
            "fail*|red|broken ci",
        ],
    ),
    (
        Goal::Refactoring,
        &["fix .. lint|linter|warning|warnings|flake8|ruff|mypy|formatting|style"],
    ),
    (
        Goal::Bug,
        &[
            "^fix|repair|mend|debug|correct|resolve|solve",
            "and|also|then fix|repair|mend|correct",
        ],
    ),
    (
        Goal::NewTest,
        &[
            "add|write|create|extend|provide|more|another|need .. @newtest",
            "make @newtest of|from|for it|this|that",
            "^test|check with test that|whether|if",
            "^test that|whether|if",
            "^@newtest for",
            "cover .. with @newtest",
            "coverage",
            "missing .. @newtest",
            "@newtest .. missing",
            "no|without|lacks|lack @newtest",
        ],
    ),
    (
        Goal::Refactoring,
        &[
            "^rename|extract|inline|move|split|simplify|clean*|tidy|reorgani*|restructure|rewrite|dedup*",
            "^format|reformat|convert|port|migrate|moderni*|optimi*|speed|annotate|replace|merge",
            "^sort .. import|imports|function|functions|method|methods|definition|definitions",
            "refactor*|faster|fastest|performance|rename|cleanup",
            "^make .. method|property|dataclass|namedtuple|staticmethod|classmethod|generator $",
            "^turn|change .. into|to method|property|dataclass|namedtuple|staticmethod|classmethod|generator",
            "type hint|hints|annotation|annotations",
            "dead|unused|duplicate*|duplication code|import|imports|function|variable|helper|of",
        ],
    ),
    (
        Goal::Bug,
        &[
            "bug|bugs|wrong|wrongly|incorrect*|broken|crash*|fail|fails|failed|failing|failure",
            "forgets|loses|hangs|regression|leak*|buggy|breaks",
            "off by one",
            "gets|takes|receives|gains @member twice|never|always|again|only",
            "infinite loop",
        ],
    ),
    // Checked before `not` and `instead of`, because these words can describe what a new option does.
    (
        Goal::Feature,
        &["^add|implement|introduce|provide .. option|flag|switch|subcommand"],
    ),
    (
        Goal::Bug,
        &[
            "does|do|did|is|are not",
            "doesnt|dont|didnt|isnt|arent|cannot|cant|wont",
            "should|must|shall|expected ... but",
            "instead of",
            "ignores",
        ],
    ),
    (
        Goal::Feature,
        &[
            "^add|implement|support|introduce|allow|create|extend|provide|enable|write|build|let|sort",
            "^function|option|flag|command|parameter|method|class|way|new",
            "make .. possible",
            "feature",
            "^give ... method|function|class|property|attribute|argument|parameter|option|flag|command",
            "should|must support|accept|allow",
            "should|must|shall also",
            "need|needs|lack|lacks @member",
            "need|needs|lack|lacks new|another @member",
            "should|must|shall|could have|get|offer|provide @member",
            "should|must|shall|could have|get|offer|provide new|another @member",
            "^do|finish|complete .. todo|todos|fixme",
            "gets|takes|receives|gains new|another|optional|additional|further|second|third ? @member",
            "gets|takes|receives|gains @member ? $",
            "gets|takes|receives|gains @member ? that|which|for|with|called|named",
        ],
    ),
];

/// Patterns for sentences that ask a question without a question mark, unless they mention a
/// document.
const ASKS: &[&str] = &["^explain|describe|summari*|tell|show|find"];
/// Patterns for sentences that are questions if they end in a question mark.
const QUESTIONS: &[&str] =
    &["^what|how|why|where|which|who|when|is|are|does|do|did|has|was|whats|wheres"];
/// Patterns for sentences that request more than an answer.
const COMMANDS: &[&str] = &[
    "^fix|repair|mend|add|make|change|implement|correct|remove|rename|write|update|use",
    "and|then fix|repair|mend|add|make|change",
];
/// Patterns for questions about a fault, which request a fix.
const FAULTS: &[&str] = &["why ... wrong|fail*|crash*|broken|incorrect*|not|error|raise*|bug"];

/// Returns the goal of a task.
pub(crate) fn of(task: &str) -> Goal {
    let task = &ExcludedTests::of(task).rest();
    let sentences = sentences(task);
    if is_question(&sentences) {
        return Goal::Question;
    }
    if quotes_failing_test(task) {
        return Goal::RedTests;
    }
    if is_documentation(&sentences) {
        return Goal::Documentation;
    }
    by_rules(&sentences)
}

fn by_rules(sentences: &[Sentence]) -> Goal {
    RULES
        .iter()
        .find(|(_, patterns)| any_fits(sentences, patterns))
        .map_or(Goal::Bug, |(goal, _)| *goal)
}

/// Returns the text of the requests in a task that say how code or tests must behave. Requests for a
/// change of something that they name, such as for a new test in a file, are left out.
pub(crate) fn demands(task: &str) -> String {
    let sentences = sentences(task);
    let clauses = sentences.iter().flat_map(Sentence::clauses);
    let demands = clauses.filter(|clause| match by_rules(std::slice::from_ref(clause)) {
        Goal::RedTests => true,
        Goal::Bug => !fits_any(clause, CHANGES) || fits_any(clause, REPAIRS),
        Goal::NewTest
        | Goal::Feature
        | Goal::Refactoring
        | Goal::Documentation
        | Goal::Question => false,
    });
    let demands: Vec<String> = demands.map(|clause| clause.text()).collect();
    demands.join(". ")
}

/// Returns the documents and files without code that a task asks to change, as the task names them,
/// in lower case. Documents that the task only consults are left out.
pub(crate) fn documents_to_change(task: &str) -> Vec<String> {
    let task = &ExcludedTests::of(task).rest();
    let sentences = sentences(task);
    let clauses = sentences.iter().flat_map(Sentence::clauses);
    let asked = clauses
        .filter(|clause| fits_any(clause, DOCUMENTATION) || fits_any(clause, DOCUMENTATION_TOO));
    asked.flat_map(|clause| clause.documents()).collect()
}

/// Returns whether a sentence of the task is not about tests, so that a task for a new test may also be
/// about code that must change.
pub(crate) fn tells_of_code(task: &str) -> bool {
    let task = &ExcludedTests::of(task).rest();
    let sentences = sentences(task);
    sentences.iter().any(|sentence| !sentence.fits("@newtest"))
}

/// Returns whether one of the requests in a task is for a new test.
pub(crate) fn asks_for_test(task: &str) -> bool {
    let sentences = sentences(&ExcludedTests::of(task).rest());
    let mut clauses = sentences.iter().flat_map(Sentence::clauses);
    clauses.any(|clause| by_rules(std::slice::from_ref(&clause)) == Goal::NewTest)
}

/// Returns whether only documents must be changed.
fn is_documentation(sentences: &[Sentence]) -> bool {
    let clauses: Vec<Sentence> = sentences.iter().flat_map(Sentence::clauses).collect();
    let (documents, others): (Vec<&Sentence>, Vec<&Sentence>) =
        (clauses.iter()).partition(|clause| fits_any(clause, DOCUMENTATION));
    let is_beside = |clause: &Sentence| fits_any(clause, BESIDE_DOCUMENTS);
    if documents.is_empty() {
        let is_told = |clause: &Sentence| fits_any(clause, TOLD_ALONE) && !clause.names_code();
        let are_beside = clauses.iter().all(|one| is_told(one) || is_beside(one));
        return clauses.iter().any(is_told) && are_beside;
    }
    let is_other = |clause: &&Sentence| {
        fits_any(clause, CHANGES) && !is_beside(clause) || fits_any(clause, TELLS_OF_BEHAVIOUR)
    };
    !others.iter().any(is_other)
}

fn is_question(sentences: &[Sentence]) -> bool {
    let Some(first) = sentences.first() else {
        return false;
    };
    let asks = first.is_question && fits_any(first, QUESTIONS);
    let tells = fits_any(first, ASKS) && !fits_any(first, DOCUMENTATION);
    (asks || tells) && !any_fits(sentences, COMMANDS) && !any_fits(sentences, FAULTS)
}

fn any_fits(sentences: &[Sentence], patterns: &[&str]) -> bool {
    sentences
        .iter()
        .any(|sentence| fits_any(sentence, patterns))
}

fn fits_any(sentence: &Sentence, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| sentence.fits(pattern))
}

/// Returns whether a text contains test runner output that names a failing test.
fn quotes_failing_test(task: &str) -> bool {
    task.lines().map(str::trim).any(|line| {
        let is_pytest = (line.starts_with("FAILED ") || line.starts_with("ERROR "))
            && (line.contains("::") || line.contains(".py"));
        let is_unittest =
            (line.starts_with("FAIL: ") || line.starts_with("ERROR: ")) && line.contains("test");
        is_pytest || is_unittest
    })
}

#[cfg(test)]
mod tests;
