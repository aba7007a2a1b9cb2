//! The checks of a change before an approver is asked.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::agent::tools::test_deadline;
use crate::budget::ExternalTime;
use crate::check::auto_imports;
use crate::check::compare_tests;
use crate::check::diagnose;
use crate::evidence::check_results::ImportMends;
use crate::evidence::proposal::{CheckedTexts, Evidence, NeedsPerson};
use crate::state::refresh;
use crate::state::run_context::{Epoch, RunContext};
use starling_core::{TestOutcome, TestReport, TestRequest};
use starling_syntax::{FilePath, Loss, Symbol, SymbolKind, SymbolPath, SymbolTree, carry};
use starling_text::ChangeSet;
use starling_workspace::Snapshot;

/// A change of one file that is ready to be checked.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub file: FilePath,
    /// The text that the change is based on.
    pub base: Arc<str>,
    /// The whole text with the change.
    pub text: Arc<str>,
    /// Symbols that the change touches.
    pub symbols: Vec<SymbolPath>,
    pub losses: Vec<Loss>,
    /// Descriptions of the contract changes.
    pub contract: Vec<String>,
    /// Symbols whose contract changes can break other code.
    pub breaking: Vec<SymbolPath>,
    /// The epoch of the workspace that the draft was made for.
    pub epoch: Epoch,
    /// The automatic changes to the imports.
    pub imports: ImportMends,
    /// Why only a person may accept the draft; empty if no person is needed.
    pub needs_person: Vec<String>,
    /// True if a person wrote this version.
    pub edited: bool,
}

impl Draft {
    /// Rebases the draft onto `now`. Returns `None` if both changed the same line. Imports that
    /// both added in one place are combined.
    pub(crate) fn over(&self, now: &Arc<str>) -> Option<Arc<str>> {
        let changes = ChangeSet::between(&self.base, &self.text);
        match carry(&self.file, &self.base, &changes, now) {
            Ok(changes) => Some(changes.apply(now).ok()?.into()),
            Err(_) => auto_imports::over_other_imports(&self.file, (&self.base, &self.text), now),
        }
    }
}

/// Checks a draft in a shadow copy: diagnostics of the file, then the tests.
pub(crate) async fn check(
    run: &Arc<RunContext>,
    draft: &Draft,
    callers: Vec<SymbolPath>,
) -> (Evidence, Option<TestReport>) {
    let began = Instant::now();
    let world = refresh::world(run).await;
    let with_draft = world.with(draft.file.clone(), Some(Arc::clone(&draft.text)));
    let files = std::slice::from_ref(&draft.file);
    let (diagnostics, (tests, report)) = tokio::join!(
        diagnose::diagnostics(run, &world, &with_draft, files),
        compare_tests::of_change(run, &world, &with_draft, &draft.symbols)
    );
    let now = refresh::world(run).await;
    let evidence = Evidence {
        texts: CheckedTexts::of(&world, &now),
        tests,
        diagnostics,
        imports: draft.imports.clone(),
        losses: draft.losses.clone(),
        contract: draft.contract.clone(),
        callers,
        callers_in_set: Vec::new(),
        callers_kept: Vec::new(),
        test_callers: 0,
        needs_person: needs_person(draft),
        together: None,
        overridden: None,
        millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    (evidence, report)
}

/// Returns the changes of a draft that only a person may accept.
pub(crate) fn needs_person(draft: &Draft) -> Vec<NeedsPerson> {
    let needs_person = |why: &String| NeedsPerson {
        file: draft.file.clone(),
        why: why.clone(),
    };
    draft.needs_person.iter().map(needs_person).collect()
}

/// Runs the selected tests, or all tests if `select` is empty, on one state of the workspace.
pub(crate) async fn run_tests(
    run: &Arc<RunContext>,
    world: &Snapshot,
    select: Vec<String>,
) -> TestReport {
    run_tests_within(run, world, select, Duration::MAX).await
}

/// Same as [`run_tests`], with a time limit of `longest`.
pub(crate) async fn run_tests_within(
    run: &Arc<RunContext>,
    world: &Snapshot,
    select: Vec<String>,
    longest: Duration,
) -> TestReport {
    let overlay = world
        .overlay()
        .iter()
        .map(|(file, text)| (file.clone(), text.clone()))
        .collect();
    let _turn = run.testing.acquire().await;
    let _work = run.budget.work();
    let deadline = test_deadline(run).min(longest);
    let request = TestRequest {
        overlay,
        select,
        deadline,
    };
    // The runner enforces the deadline; this timeout is a fallback.
    let late = deadline + Duration::from_secs(10);
    let report = match tokio::time::timeout(late, run.services.tests.run(request)).await {
        Ok(report) => report,
        Err(_) => TestReport {
            outcome: TestOutcome::TimedOut,
            exit: None,
            command: run.services.tests.command().unwrap_or_default(),
            cases: Vec::new(),
            source: Default::default(),
            output: format!("no result within {} s", late.as_secs()),
            millis: u64::try_from(late.as_millis()).unwrap_or(u64::MAX),
        },
    };
    let took = Duration::from_millis(report.millis);
    run.budget.was_outside(ExternalTime::Tests, took);
    report
}

/// Returns descriptions of the contract changes of the touched symbols, and the symbols whose
/// changes can break other code. Symbols inside a function are ignored.
pub(crate) fn contract_changes(
    before: &SymbolTree,
    after: &SymbolTree,
    touched: &[SymbolPath],
) -> (Vec<String>, Vec<SymbolPath>) {
    let mut words = Vec::new();
    let mut breaking = Vec::new();
    for path in touched {
        let Some(old) = before.find(&path.name) else {
            continue;
        };
        if is_local(before, old) {
            continue;
        }
        let (changes, breaks) = match after.find(&path.name) {
            Some(new) => (
                old.contract.changes(&new.contract),
                old.contract.can_break(&new.contract),
            ),
            None => (vec!["removed or renamed".to_owned()], true),
        };
        words.extend(
            changes
                .iter()
                .map(|change| format!("{}: {change}", path.name)),
        );
        if breaks && !path.is_module() {
            breaking.push(path.clone());
        }
    }
    (words, breaking)
}

/// Returns whether a symbol lies inside a function.
fn is_local(tree: &SymbolTree, symbol: &Symbol) -> bool {
    symbol.parent.is_some_and(|id| match tree.get(id).kind {
        SymbolKind::Function | SymbolKind::Method => true,
        SymbolKind::Module | SymbolKind::Class => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the descriptions, and the names of the symbols that can break other code.
    fn changes(before: &str, after: &str, touched: &[&str]) -> (Vec<String>, Vec<String>) {
        let file = FilePath::new("m.py");
        let tree = |text: &str| SymbolTree::parse(file.clone(), text.into());
        let touched: Vec<SymbolPath> = touched
            .iter()
            .map(|name| SymbolPath::new(file.clone(), *name))
            .collect();
        let (words, breaking) = contract_changes(&tree(before), &tree(after), &touched);
        (words, breaking.into_iter().map(|path| path.name).collect())
    }

    #[test]
    fn contracts_of_functions_and_methods_are_told() {
        let before = "def f(a): pass\nclass A:\n    def g(self): pass\n    def h(self): pass\n";
        let after = "def f(a, b): pass\nclass A:\n    def g(self) -> int: pass\ndef new(): pass\n";
        let (words, breaking) = changes(before, after, &["f", "A", "A.g", "A.h", "new"]);
        let expected = [
            "f: parameter \"b\" added (required)",
            "A.g: return annotation `int` added",
            "A.h: removed or renamed",
        ];
        assert_eq!(words, expected);
        assert_eq!(breaking, ["f", "A.h"]);
    }

    #[test]
    fn what_is_local_to_a_function_has_no_contract() {
        let before = "class A:\n    def f(self):\n        def getter(x): pass\n        def gone(): pass\n        return getter\ndef g():\n    def inner(): pass\n";
        let after = "class A:\n    def f(self):\n        def getter(x, y): pass\n        return getter\ndef g():\n    async def inner(): pass\n";
        let touched = ["A.f", "A.f.getter", "A.f.gone", "g", "g.inner"];
        assert_eq!(changes(before, after, &touched), (vec![], vec![]));
        // A class inside a class is not local.
        let before = "class A:\n    class B:\n        def f(self): pass\n";
        let after = before.replace("self", "self, x");
        assert_eq!(changes(before, &after, &["A.B.f"]).1, ["A.B.f"]);
    }
}
