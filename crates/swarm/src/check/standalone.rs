//! Runs the checks outside a run, to get the evidence for a change that no agent made.

use std::sync::Arc;
use std::time::Duration;

use crate::budget::Budget;
use crate::check::checks;
use crate::event::log::EventLog;
use crate::evidence::check_results::ImportMends;
use crate::evidence::proposal::Evidence;
use crate::state::checker::{CheckServices, CheckedTask, Checker};
use crate::state::draft::Draft;
use crate::state::epoch::Epoch;
use crate::state::test_scope::TestScope;
use starling_core::{Approval, LanguageService, Limits, TestRunner};
use starling_index::Index;
use starling_syntax::{FilePath, SymbolPath, SymbolTree};
use starling_text::ChangeSet;

impl Checker {
    /// Creates a checker that works without a run. If `tests` can select tests, changes are checked
    /// by their nearest tests. Nothing runs before the first check.
    pub fn standalone(
        index: Arc<Index>,
        tests: Arc<dyn TestRunner>,
        language: Arc<dyn LanguageService>,
        test_deadline: Duration,
    ) -> Checker {
        let task = CheckedTask {
            text: String::new(),
            refactoring: None,
            approval: Approval::Auto,
            test_deadline,
        };
        let limits = Limits {
            seconds: u64::from(u32::MAX),
            ..Limits::default()
        };
        let selects = tests.selects();
        let services = CheckServices {
            editor: None,
            tests,
            language,
            index,
        };
        let checker = Checker::new(task, services, Budget::new(limits), EventLog::new());
        if selects {
            checker.tests().selection.scope = TestScope::NEAREST;
        }
        checker
    }

    /// Returns the evidence for changing a file to `text`.
    pub async fn check_text(&self, file: &FilePath, text: Arc<str>) -> Evidence {
        let world = self.world().snapshot.clone();
        let base: Arc<str> = world.read(file).unwrap_or_else(|_| "".into());
        let tree = |text: &Arc<str>| SymbolTree::parse(file.clone(), Arc::clone(text));
        let (before, after) = (tree(&base), tree(&text));
        let symbols = touched(&before, &after);
        let (contract, breaking) = checks::contract_changes(&before, &after, &symbols);
        let draft = Draft {
            file: file.clone(),
            base,
            text,
            symbols,
            losses: Vec::new(),
            contract,
            breaking,
            epoch: Epoch::default(),
            imports: ImportMends::default(),
            needs_person: Vec::new(),
            edited: false,
            deletes_file: false,
        };
        self.check(&world, &draft).await.0
    }
}

/// Returns the innermost symbols in which two texts of a file differ, including added and removed
/// symbols.
fn touched(before: &SymbolTree, after: &SymbolTree) -> Vec<SymbolPath> {
    let changes = ChangeSet::between(before.text(), after.text());
    let mut touched: Vec<SymbolPath> = Vec::new();
    for edit in changes.edits() {
        let line = |at: usize| 1 + before.text()[..at].matches('\n').count() as u32;
        for line in line(edit.range.start)..=line(edit.range.end.max(edit.range.start + 1) - 1) {
            touched.push(before.at_line(line).path.clone());
        }
    }
    let is_new = |path: &&SymbolPath| before.find(&path.name).is_none();
    let new = after.symbols().iter().map(|symbol| &symbol.path);
    touched.extend(new.filter(is_new).cloned());
    touched.sort();
    touched.dedup();
    touched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_added_and_removed_symbols_count_as_touched() {
        let tree = |text: &str| SymbolTree::parse(FilePath::new("m.py"), text.into());
        let before = tree(
            "X = 1\ndef f():\n    a = 1\n    return a\nclass A:\n    def g(self):\n        pass\n    def h(self):\n        pass\n",
        );
        let after = tree(
            "X = 1\ndef f():\n    a = 2\n    return a\nclass A:\n    def g(self):\n        pass\n    def i(self):\n        pass\n",
        );
        let names: Vec<String> = touched(&before, &after)
            .into_iter()
            .map(|path| path.name)
            .collect();
        assert_eq!(names, ["A.h", "A.i", "f"]);
        assert_eq!(touched(&before, &before), []);
    }
}
