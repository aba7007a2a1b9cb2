//! Runs the checks of a change, before the approver (a person or a model) is asked.

use tokio::time::Instant;

use crate::check::{compare_tests, diagnose, task_examples};
use crate::evidence::proposal::{CheckedTexts, Evidence};
use crate::state::checker::Checker;
use crate::state::draft::Draft;
use crate::state::refresh;
use starling_core::TestReport;
use starling_syntax::{Symbol, SymbolKind, SymbolPath, SymbolTree};
use starling_workspace::Snapshot;

impl Checker {
    /// Checks a draft in a copy of the project with the texts of `world`: computes the diagnostics
    /// of the changed file, and runs the tests of the change. Returns the evidence, and the report
    /// of the tests if they ran.
    pub(crate) async fn check(
        &self,
        world: &Snapshot,
        draft: &Draft,
    ) -> (Evidence, Option<TestReport>) {
        let began = Instant::now();
        let with_draft = world.with(draft.file.clone(), draft.content());
        let files = std::slice::from_ref(&draft.file);
        let (diagnostics, (tests, report), examples) = tokio::join!(
            diagnose::diagnostics(self, world, &with_draft, files),
            compare_tests::of_change(self, world, &with_draft, &draft.symbols),
            task_examples::with_change(self, &with_draft)
        );
        let evidence = Evidence {
            examples,
            millis: millis_since(began),
            ..draft.evidence(tests, diagnostics)
        };
        (evidence, report)
    }
}

/// Checks a draft over the user's current texts. The evidence lists the files that the user changed
/// during the check.
pub(crate) async fn check(
    checker: &Checker,
    draft: &Draft,
    callers: Vec<SymbolPath>,
) -> (Evidence, Option<TestReport>) {
    let began = Instant::now();
    let world = refresh::world(checker).await;
    let (mut evidence, report) = checker.check(&world, draft).await;
    let now = refresh::world(checker).await;
    evidence.texts = CheckedTexts::of(&world, &now);
    evidence.callers = callers;
    evidence.millis = millis_since(began);
    (evidence, report)
}

fn millis_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
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
    use starling_syntax::FilePath;

    /// Returns the descriptions of the contract changes between two texts, and the names of the
    /// changed symbols that can break other code.
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
    fn contract_changes_of_functions_and_methods_are_described() {
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
    fn nested_function_has_no_contract() {
        let before = "class A:\n    def f(self):\n        def getter(x): pass\n        def gone(): pass\n        return getter\ndef g():\n    def inner(): pass\n";
        let after = "class A:\n    def f(self):\n        def getter(x, y): pass\n        return getter\ndef g():\n    async def inner(): pass\n";
        let touched = ["A.f", "A.f.getter", "A.f.gone", "g", "g.inner"];
        assert_eq!(changes(before, after, &touched), (vec![], vec![]));
        // A class inside a class is not local, so the change of its method is reported.
        let before = "class A:\n    class B:\n        def f(self): pass\n";
        let after = before.replace("self", "self, x");
        assert_eq!(changes(before, &after, &["A.B.f"]).1, ["A.B.f"]);
    }
}
