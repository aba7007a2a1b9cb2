//! The diagnostics of a change: the problems that it introduces.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::check::{compile, data_syntax, names_check};
use crate::event::events::Event;
use crate::evidence::check_results::{DiagnosticEvidence, ImportMends};
use crate::state::checker::Checker;
use starling_core::{Diagnostics, Effort, Problem, Severity, TextRequest};
use starling_syntax::{FilePath, Language, SymbolTree};
use starling_workspace::Snapshot;

/// Maximum number of files that are diagnosed in advance after the workspace changed.
const PREPARED: usize = 4;
/// Maximum time to wait for a language service. A service may use a shorter limit.
const DEADLINE: Duration = Duration::from_secs(60);

/// Creates a diagnostics request for a file with this text in a state of the workspace.
pub(crate) fn request(
    world: &Snapshot,
    file: &FilePath,
    text: &Arc<str>,
    effort: Effort,
) -> TextRequest {
    let others = world.overlay().iter().filter(|(other, _)| *other != file);
    TextRequest {
        file: file.clone(),
        text: Arc::clone(text),
        overlay: others
            .map(|(file, text)| (file.clone(), text.clone()))
            .collect(),
        effort,
        deadline: DEADLINE,
    }
}

/// Asks the services of the checks to get ready for a change of a file, while the model is still
/// generating.
pub(crate) fn prepare(checker: &Checker, file: &FilePath) {
    if Language::of(file) == Language::Python {
        checker.services.tests.prepare();
    }
    let world = checker.world().snapshot.clone();
    let Ok(text) = world.read(file) else {
        return;
    };
    let language = &checker.services.language;
    for effort in [Effort::Fast, Effort::Thorough] {
        if language.has(effort, file) {
            language.prepare(request(&world, file, &text, effort));
        }
    }
}

/// Diagnoses these files in advance after the workspace changed, so that checks of later changes do
/// not have to wait for the diagnostics of the unchanged text.
pub(crate) fn prepare_all(checker: &Checker, files: &BTreeSet<FilePath>) {
    for file in files.iter().take(PREPARED) {
        prepare(checker, file);
    }
}

/// Returns the problems that a change introduces in these files. A thorough language service is
/// asked only if the fast one did not find enough problems. Meanwhile the files are compiled. Data files
/// are parsed.
pub(crate) async fn diagnostics(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> DiagnosticEvidence {
    let (mut found, compiled) = tokio::join!(
        of_services(checker, before, after, files),
        compile::compiled(checker, before, after, files)
    );
    if found.stopping().next().is_none() {
        found = found.and(compiled);
    }
    found = found.and(data_syntax::parsed(before, after, files));
    tell_news(checker);
    with_names(checker, found, before, after, files)
}

async fn of_services(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> DiagnosticEvidence {
    let found = compare_all(checker, before, after, files, Effort::Fast).await;
    let is_enough = found.stopping().next().is_some();
    match is_enough {
        true => found,
        false => found.and(compare_all(checker, before, after, files, Effort::Thorough).await),
    }
}

/// Adds undefined names if no service found enough problems.
fn with_names(
    checker: &Checker,
    found: DiagnosticEvidence,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> DiagnosticEvidence {
    let is_enough = found.stopping().next().is_some();
    match is_enough {
        true => found,
        false => found.and(names_check::check(checker, before, after, files)),
    }
}

/// Same as [`diagnostics`] for the final check, with the thorough service if there is one.
pub(crate) async fn final_diagnostics(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
) -> DiagnosticEvidence {
    let language = &checker.services.language;
    let is_thorough = |file: &FilePath| language.has(Effort::Thorough, file);
    let effort = match files.iter().any(is_thorough) {
        true => Effort::Thorough,
        false => Effort::Fast,
    };
    let found = compare_all(checker, before, after, files, effort).await;
    tell_news(checker);
    with_names(checker, found, before, after, files)
}

fn tell_news(checker: &Checker) {
    for what in checker.services.language.news() {
        checker.event(Event::LanguageServer { what });
    }
}

async fn compare_all(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    files: &[FilePath],
    effort: Effort,
) -> DiagnosticEvidence {
    let mut found = DiagnosticEvidence::Absent;
    for file in files {
        if checker.services.language.has(effort, file) {
            found = found.and(compare(checker, before, after, file, effort).await);
        }
    }
    found
}

async fn compare(
    checker: &Checker,
    before: &Snapshot,
    after: &Snapshot,
    file: &FilePath,
    effort: Effort,
) -> DiagnosticEvidence {
    let began = Instant::now();
    let Ok(text) = after.read(file) else {
        return DiagnosticEvidence::Absent;
    };
    let ask = async |world: &Snapshot, text: &Arc<str>| {
        let asked = request(world, file, text, effort);
        let _work = checker.budget.work();
        checker.services.language.diagnostics(asked).await
    };
    let base = before.read(file).ok();
    // The old text is requested first, so that the server ends with the new text, which is likely
    // to be requested next.
    let old = match &base {
        Some(text) => match ask(before, text).await {
            Diagnostics::Known { problems, .. } => problems,
            Diagnostics::Unknown { reason } => return DiagnosticEvidence::Unknown { reason },
        },
        // A new file had no problems before.
        None => Vec::new(),
    };
    match ask(after, &text).await {
        Diagnostics::Unknown { reason } => DiagnosticEvidence::Unknown { reason },
        Diagnostics::Known { tool, problems } => DiagnosticEvidence::Known {
            tool,
            before: old.len(),
            after: problems.len(),
            new: new_problems(
                &CheckedText::new(file, base.unwrap_or_default(), &old),
                &CheckedText::new(file, text, &problems),
            ),
            millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            unknown: None,
        },
    }
}

/// A text of a file, and the problems that a language service found in it.
#[derive(Debug)]
pub(crate) struct CheckedText<'a> {
    tree: SymbolTree,
    problems: &'a [Problem],
}

impl<'a> CheckedText<'a> {
    fn new(file: &FilePath, text: Arc<str>, problems: &'a [Problem]) -> Self {
        CheckedText {
            tree: SymbolTree::parse(file.clone(), text),
            problems,
        }
    }

    /// Returns the identity of a problem: its message, severity and symbol, but not its line.
    fn key<'s>(&'s self, problem: &'s Problem) -> (&'s str, Severity, &'s str) {
        let symbol = self.tree.at_line(problem.line);
        (&problem.message, problem.severity, &symbol.path.name)
    }
}

/// Returns whether a problem is relevant. Hints only mark unused code or possible improvements.
fn matters(problem: &Problem) -> bool {
    match problem.severity {
        Severity::Error | Severity::Warning => true,
        Severity::Information | Severity::Hint => false,
    }
}

/// Returns the relevant problems of a text that the previous text did not have.
pub(crate) fn new_problems(before: &CheckedText<'_>, after: &CheckedText<'_>) -> Vec<Problem> {
    let mut left: HashMap<_, usize> = HashMap::new();
    for problem in before.problems {
        *left.entry(before.key(problem)).or_default() += 1;
    }
    let mut new = Vec::new();
    for problem in after.problems {
        match left.get_mut(&after.key(problem)) {
            Some(count @ 1..) => *count -= 1,
            Some(_) | None if matters(problem) => new.push(problem.clone()),
            Some(_) | None => {}
        }
    }
    new
}

/// Formats the problems that must be fixed, as they are shown to the agents that own the code.
pub(crate) fn stopping(evidence: &DiagnosticEvidence) -> Vec<String> {
    let line =
        |problem: &Problem| format!("{}:{}: {}", problem.file, problem.line, problem.message);
    evidence.stopping().take(10).map(line).collect()
}

/// Returns the reason for which a change with these problems is sent back to its agent, with the
/// imports that may fix them; `None` if none of them must be fixed.
pub(crate) fn objection(evidence: &DiagnosticEvidence, imports: &ImportMends) -> Option<String> {
    let mut lines = stopping(evidence);
    if lines.is_empty() {
        return None;
    }
    lines.extend(imports.unclear.iter().map(ToString::to_string));
    Some(format!(
        "Not shown to the approver: this change brings problems that were not there before.\n{}",
        lines.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::check_results::UnclearImport;
    use starling_core::ProblemKind;

    const BEFORE: &str = "def f():\n    a\n    b\n\ndef g():\n    a\n";

    fn problem(line: u32, message: &str, severity: Severity) -> Problem {
        Problem {
            file: FilePath::new("a.py"),
            line,
            severity,
            message: message.to_owned(),
            source: "ty".to_owned(),
            kind: ProblemKind::Name,
            range: None,
            stops: true,
        }
    }

    fn new(before: &[Problem], text: &str, after: &[Problem]) -> Vec<u32> {
        let file = FilePath::new("a.py");
        let (old, now) = (Arc::from(BEFORE), Arc::from(text));
        let before = CheckedText::new(&file, old, before);
        let after = CheckedText::new(&file, now, after);
        let new = new_problems(&before, &after);
        new.into_iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn problems_are_matched_by_message_and_symbol_instead_of_by_line() {
        let error = |line, message| problem(line, message, Severity::Error);
        let before = [error(2, "a"), error(3, "b"), error(6, "a")];
        let moved = format!("import os\n\n{BEFORE}    a\n");
        let same = [error(4, "a"), error(5, "b"), error(8, "a")];
        assert_eq!(new(&before, &moved, &same), [0; 0]);
        // A second problem with the same message in the same symbol is new, and so is one in
        // another symbol.
        let more = [same.as_slice(), &[error(9, "a")]].concat();
        assert_eq!(new(&before, &moved, &more), [9]);
        let elsewhere = [error(4, "a"), error(5, "b"), error(8, "b")];
        assert_eq!(new(&before, &moved, &elsewhere), [8]);
    }

    #[test]
    fn hints_are_not_reported_as_problems() {
        let after = [
            problem(2, "unused", Severity::Hint),
            problem(2, "style", Severity::Information),
            problem(3, "odd", Severity::Warning),
        ];
        assert_eq!(new(&[], BEFORE, &after), [3]);
    }

    #[test]
    fn only_blocking_problems_cause_a_proposal_to_be_refused() {
        let shown = Problem {
            stops: false,
            ..problem(2, "a type", Severity::Error)
        };
        let known = |new: Vec<Problem>| DiagnosticEvidence::Known {
            tool: "ty".to_owned(),
            before: 0,
            after: new.len(),
            new,
            millis: 1,
            unknown: None,
        };
        let imports = ImportMends {
            unclear: vec![UnclearImport {
                name: "a".to_owned(),
                statements: vec!["from m import a".to_owned(), "import a".to_owned()],
            }],
            ..ImportMends::default()
        };
        let objection = |found: &DiagnosticEvidence| super::objection(found, &imports);
        assert_eq!(objection(&known(vec![shown.clone()])), None);
        let both = known(vec![shown, problem(3, "a name", Severity::Error)]);
        let why = objection(&both).unwrap();
        assert!(
            why.ends_with("\na.py:3: a name\n`a` needs an import: `from m import a` or `import a`"),
            "{why}"
        );
        let unknown = DiagnosticEvidence::Unknown {
            reason: "slow".to_owned(),
        };
        assert_eq!(objection(&unknown), None);
        // An unavailable service does not hide the results of another service.
        let merged = both.clone().and(unknown.clone());
        assert_eq!(merged.stopping().count(), 1);
        assert!(merged.to_string().contains("ty; unknown: slow"), "{merged}");
        assert_eq!(unknown.and(both.clone()).stopping().count(), 1);
        let twice = both.clone().and(both);
        assert_eq!(twice.stopping().count(), 2);
    }
}
