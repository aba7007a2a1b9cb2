//! Fixes the imports of a draft before any check or model call: adds missing imports and removes
//! unused ones.

use std::sync::Arc;

use crate::check::diagnose::request;
use crate::evidence::check_results::{ImportMends, UnclearImport};
use crate::state::draft::{Draft, over_other_imports};
use crate::state::run_context::RunContext;
use starling_core::{Diagnostics, Effort, Problem, ProblemKind};
use starling_index::{Importable, binds, lost_uses, undefined_names};
use starling_syntax::{
    FilePath, Language, Rewrite, SymbolPath, SymbolTree, carry, rewrite, without_imports,
};
use starling_text::ChangeSet;

/// Maximum number of missing names that are fixed. A change with more undefined names has problems
/// that imports do not fix.
const MOST: usize = 6;

/// Maximum number of import statements that are suggested for one name.
const CHOICES: usize = 4;

/// Returns the draft with its missing imports added. If the right import is ambiguous, the choices
/// are stored in the draft.
pub(crate) async fn mended(run: &Arc<RunContext>, draft: Draft) -> Draft {
    if Language::of(&draft.file) == Language::Plain {
        return draft;
    }
    let tree = SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.text));
    let mut lacking = lacking(&draft, &tree);
    lacking.retain(|name| !is_taken_away(run, &draft, &tree, name));
    if only_imports_change(&draft, &tree) {
        // Restoring the imports that the agent removes would undo its whole change.
        let before = SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.base));
        let lost = lost_uses(&before, &tree);
        lacking.retain(|name| !lost.iter().any(|one| one.name == *name));
    }
    if lacking.is_empty() || lacking.len() > MOST {
        return draft;
    }
    let (mut clear, mut unclear) = (Vec::new(), Vec::new());
    for name in lacking {
        let known = run.lookup().index().importable(&name, &draft.file);
        let choices = match known.is_empty() {
            false => choices(known),
            true => offered(run, &draft, &name).await,
        };
        match choices.as_slice() {
            [] => {}
            [one] => clear.push(one.clone()),
            [..] => unclear.push(UnclearImport {
                name,
                statements: choices,
            }),
        }
    }
    let mut draft = with_imports(draft, &tree, clear);
    draft.imports.unclear = unclear;
    draft
}

/// Returns whether a draft changes only the imports of its module.
fn only_imports_change(draft: &Draft, after: &SymbolTree) -> bool {
    let before = SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.base));
    !draft.base.is_empty() && without_imports(&before) == without_imports(after)
}

/// Splits the imports that a change requests into those that `text` uses and the others. Unused
/// imports would cause diagnostics.
pub(crate) fn used_imports(imports: &[String], text: &str) -> (Vec<String>, Vec<String>) {
    let is_used = |statement: &&String| {
        let names = imported_names(statement);
        names.is_empty() || names.iter().any(|name| has_word(text, name))
    };
    let (used, unused): (Vec<&String>, Vec<&String>) = imports.iter().partition(is_used);
    (
        used.into_iter().cloned().collect(),
        unused.into_iter().cloned().collect(),
    )
}

/// Returns the names that a statement binds; empty if they cannot be determined.
fn imported_names(statement: &str) -> Vec<String> {
    let statement = statement.split('#').next().unwrap_or_default().trim();
    let names = match statement.strip_prefix("from ") {
        Some(rest) if rest.trim_start().starts_with("__future__") => return Vec::new(),
        Some(rest) => rest.split_once(" import ").map(|(_, names)| names),
        None => statement.strip_prefix("import "),
    };
    let Some(names) = names.filter(|names| !names.contains('*')) else {
        return Vec::new();
    };
    let bound = |name: &str| {
        let name = name.trim();
        let last = name.rsplit(" as ").next().unwrap_or(name);
        let first = last.split('.').next().unwrap_or(last);
        first.trim().to_owned()
    };
    let names = names.trim_matches(['(', ')', ' ']).split(',').map(bound);
    names.filter(|name| !name.is_empty()).collect()
}

/// Returns whether a text contains a name as a word, even in a string or a comment, because
/// annotations can be strings.
fn has_word(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// Rebases the draft onto the current text and removes automatically added imports that are no
/// longer needed.
///
/// An added import becomes unnecessary if the owner of the module later defines the name, or if the
/// last function that used the name changes.
pub(crate) fn drop_redundant_imports(run: &RunContext, draft: Draft) -> Draft {
    let (now, mut makeshifts) = {
        let state = run.state();
        let applied = state.proposals.applied().into_iter();
        let here = applied.filter(|(one, _)| one.draft.file == draft.file);
        let added = here.flat_map(|(one, _)| one.draft.imports.added.clone());
        let added: Vec<String> = added.collect();
        (state.world.snapshot.read(&draft.file), added)
    };
    makeshifts.extend(draft.imports.added.iter().cloned());
    let Ok(now) = now else { return draft };
    if makeshifts.is_empty() {
        return draft;
    }
    let text = draft.over(&now);
    match text.and_then(|text| without(&draft.file, &text, &makeshifts)) {
        Some(text) => Draft {
            base: now,
            text,
            ..draft
        },
        None => draft,
    }
}

/// Rebases the draft onto the current text if other changes added imports at the position where the
/// draft adds its imports.
pub(crate) fn beside_other_imports(run: &RunContext, draft: Draft) -> Draft {
    let Ok(now) = run.world().snapshot.read(&draft.file) else {
        return draft;
    };
    let changes = ChangeSet::between(&draft.base, &draft.text);
    if carry(&draft.file, &draft.base, &changes, &now).is_ok() {
        return draft;
    }
    match over_other_imports(&draft.file, (&draft.base, &draft.text), &now) {
        Some(text) => Draft {
            base: now,
            text,
            ..draft
        },
        None => draft,
    }
}

/// Removes those of the import statements that are unnecessary because the rest of the text binds
/// their names or does not use them. Returns `None` if no statement was removed.
fn without(file: &FilePath, text: &Arc<str>, statements: &[String]) -> Option<Arc<str>> {
    let mut left = Arc::clone(text);
    for statement in statements {
        // If the text contains the same statement several times, the added statement is the last
        // one.
        let mut lines: Vec<&str> = left.split_inclusive('\n').collect();
        let Some(at) = lines.iter().rposition(|line| line.trim_end() == statement) else {
            continue;
        };
        lines.remove(at);
        let rest: Arc<str> = lines.concat().into();
        let tree = SymbolTree::parse(file.clone(), Arc::clone(&rest));
        let is_needless = |name: &String| binds(&tree, name) || !has_word(&rest, name);
        let names = imported_names(statement);
        if !names.is_empty() && names.iter().all(is_needless) {
            left = rest;
        }
    }
    (left != *text).then_some(left)
}

/// Returns whether the draft, the task or another proposal removes or renames a name. An import
/// would bring the name back.
fn is_taken_away(run: &RunContext, draft: &Draft, after: &SymbolTree, name: &str) -> bool {
    let before = SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.base));
    if before.find(name).is_some() && !binds(after, name) {
        return true;
    }
    if is_renamed_by(&run.task.text, name) {
        return true;
    }
    let state = run.state();
    let waiting = state.proposals.open().map(|one| &one.draft);
    let changed = state.contracts.changes.values().map(|change| &change.0);
    let drafts: Vec<Draft> = waiting.chain(changed).cloned().collect();
    drop(state);
    let takes_away = |other: &Draft| {
        let is_named = other.breaking.iter().any(|symbol| symbol.name == name);
        let text = || SymbolTree::parse(other.file.clone(), Arc::clone(&other.text));
        is_named && !binds(&text(), name)
    };
    drafts.iter().any(takes_away)
}

/// Returns whether a task renames `name`, as in "rename `old` to `new`" or "`old` is renamed".
fn is_renamed_by(task: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let words: Vec<&str> = task
        .split(|c: char| !is_part(c))
        .map(|word| word.trim_matches('.'))
        .filter(|word| !word.is_empty())
        .collect();
    let is_old = |at: usize| {
        let last = words[at].rsplit('.').next();
        let into = words
            .get(at + 1)
            .is_some_and(|next| ["to", "into", "as"].contains(next));
        last == Some(name) && into
    };
    let renames = |word: &&str| word.to_lowercase().starts_with("renam");
    words.iter().any(renames) && (0..words.len()).any(is_old)
}

/// Returns the names that are undefined in the draft and were not undefined before.
fn lacking(draft: &Draft, after: &SymbolTree) -> Vec<String> {
    let before = SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.base));
    let known = undefined_names(&before);
    let new = undefined_names(after).into_iter();
    new.filter(|name| !known.contains(name)).collect()
}

/// Returns the most used import statement if it is clearly preferred in the workspace, otherwise
/// the most used statements.
fn choices(known: Vec<Importable>) -> Vec<String> {
    let is_clear = match known.as_slice() {
        [] | [_] => true,
        [first, second, ..] => first.uses > 2 * second.uses,
    };
    let most = if is_clear { 1 } else { CHOICES };
    let statements = known.into_iter().map(|one| one.statement);
    statements.take(most).collect()
}

/// Returns the import statements that a language server offers for an undefined name.
async fn offered(run: &Arc<RunContext>, draft: &Draft, name: &str) -> Vec<String> {
    let world = run.world().snapshot.clone();
    let language = &run.services.language;
    let asked = || request(&world, &draft.file, &draft.text, Effort::Fast);
    let _work = run.budget.work();
    let Diagnostics::Known { problems, .. } = language.diagnostics(asked()).await else {
        return Vec::new();
    };
    let is_about =
        |range: starling_text::ByteRange| draft.text.get(range.start..range.end) == Some(name);
    let is_it = |problem: &&Problem| {
        problem.kind == ProblemKind::Name && problem.range.is_some_and(is_about)
    };
    let Some(problem) = problems.iter().find(is_it) else {
        return Vec::new();
    };
    let mut offered = language.imports(asked(), problem).await;
    offered.truncate(CHOICES);
    offered
}

/// Adds imports to the draft. Returns the draft unchanged if they cannot be added.
fn with_imports(draft: Draft, tree: &SymbolTree, statements: Vec<String>) -> Draft {
    if statements.is_empty() {
        return draft;
    }
    let imports = Rewrite::Import {
        statements: statements.clone(),
    };
    let Ok(done) = rewrite(tree, &[imports]) else {
        return draft;
    };
    let mut symbols = draft.symbols.clone();
    let touched = done.touched.iter().map(|name| path(&draft.file, name));
    symbols.extend(touched.filter(|path| !draft.symbols.contains(path)));
    Draft {
        text: done.text.as_str().into(),
        symbols,
        imports: ImportMends {
            added: statements,
            ..draft.imports
        },
        ..draft
    }
}

fn path(file: &FilePath, name: &str) -> SymbolPath {
    SymbolPath::new(file.clone(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(draft: &Draft) -> SymbolTree {
        SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.text))
    }

    #[test]
    fn only_undefined_names_that_the_draft_added_need_an_import() {
        let draft = Draft::between(
            "def f():\n    old()\n",
            "def f():\n    old()\n    new(Path, len)\n",
        );
        assert_eq!(lacking(&draft, &tree(&draft)), ["Path", "new"]);
    }

    #[test]
    fn unneeded_added_import_is_removed_and_a_users_import_is_kept() {
        let text = "import os\nfrom m import part\nimport re\nfrom m import LIMIT\nfrom m import part\n\n\
                    LIMIT = 1\n\n\ndef f():\n    return g(LIMIT, part)\n";
        let without = |text: &str, added: &[&str]| {
            let added: Vec<String> = added.iter().map(|one| (*one).to_owned()).collect();
            super::without(&FilePath::new("a.py"), &text.into(), &added)
        };
        let left = |lines: &str| Some(text.replace(lines, "").into());
        // Each import is unneeded: its name is defined, imported elsewhere, or not used.
        assert_eq!(
            without(text, &["from m import LIMIT"]),
            left("from m import LIMIT\n")
        );
        let twice = text.replacen("LIMIT\nfrom m import part\n", "LIMIT\n", 1);
        assert_eq!(
            without(text, &["from m import part"]),
            Some(twice.as_str().into())
        );
        assert_eq!(without(text, &["import re"]), left("import re\n"));
        // Statements that the user wrote are kept. In the last case, only a local variable of a
        // function has the name, so the import is still needed.
        assert_eq!(without(text, &[]), None);
        assert_eq!(without(&twice, &["from m import part"]), None);
        let local = "from m import part\n\n\ndef f():\n    part = 1\n";
        assert_eq!(without(local, &["from m import part"]), None);
    }

    #[test]
    fn import_statement_that_most_files_use_is_chosen() {
        let choices = |known: &[(&str, usize)]| {
            let one = |(statement, uses): &(&str, usize)| Importable {
                statement: (*statement).to_owned(),
                uses: *uses,
            };
            super::choices(known.iter().map(one).collect())
        };
        assert_eq!(choices(&[]), [""; 0]);
        assert_eq!(choices(&[("a", 0)]), ["a"]);
        assert_eq!(choices(&[("a", 7), ("b", 3)]), ["a"]);
        assert_eq!(choices(&[("a", 1), ("b", 0)]), ["a"]);
        // If no import is used clearly more often, all choices are returned.
        assert_eq!(choices(&[("a", 6), ("b", 3)]), ["a", "b"]);
        let many = [("a", 0), ("b", 0), ("c", 0), ("d", 0), ("e", 0)];
        assert_eq!(choices(&many).len(), CHOICES);
    }

    #[test]
    fn requested_imports_that_the_change_does_not_use_are_dropped() {
        let text = "def f(x: 'Maybe'):\n    return np.sum(x) + os.sep  # see json\n";
        let asked = [
            "import os.path",
            "import numpy as np",
            "from typing import Maybe",
            "import json",
            "import re",
            "from a import (b, c)",
            "from a import sep, d",
            "from __future__ import annotations",
            "from b import *",
            "what",
        ];
        let asked = asked.map(str::to_owned);
        let (used, unused) = used_imports(&asked, text);
        assert_eq!(unused, ["import re", "from a import (b, c)"]);
        assert_eq!(used.len(), 8);
    }

    #[test]
    fn name_that_the_task_renames_is_recognized() {
        for task in [
            "Rename `old` to `new`.",
            "rename shop.cart.old into new everywhere",
            "The function old is renamed to new",
        ] {
            assert_eq!(
                is_renamed_by(task, "old"),
                !task.starts_with("The"),
                "{task}"
            );
            assert!(!is_renamed_by(task, "new"), "{task}");
        }
        assert!(!is_renamed_by("Convert old to new.", "old"));
    }

    #[test]
    fn imports_added_by_two_changes_at_the_same_line_are_merged() {
        let base = "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n";
        let ours = base
            .replace("import os\n", "import os\nimport re\nimport json\n")
            .replace("return 1", "return re, json");
        let theirs = base
            .replace("import os\n", "import os\nimport re\n")
            .replace("return 2", "return re");
        let over = |now: &str| Draft::between(base, &ours).over(&now.into());
        let both = over(&theirs).expect("both fit");
        assert_eq!(both.matches("import re\n").count(), 1, "{both}");
        assert!(both.contains("import json\n") && both.contains("return re, json"));
        assert!(both.contains("    return re\n"), "{both}");
        // Two changes to the same line of code still conflict, although they also add imports.
        assert_eq!(over(&theirs.replace("return 1", "return 3")), None);
    }

    #[test]
    fn added_import_is_inserted_after_the_existing_imports() {
        let before = Draft::between("import os\n", "import os\n\n\ndef f():\n    Path()\n");
        let statements = vec!["from pathlib import Path".to_owned()];
        let after = with_imports(before.clone(), &tree(&before), statements.clone());
        assert_eq!(
            &*after.text,
            "import os\nfrom pathlib import Path\n\n\ndef f():\n    Path()\n"
        );
        assert_eq!(after.imports.added, statements);
        let names: Vec<&str> = after.symbols.iter().map(|path| &*path.name).collect();
        assert_eq!(names, ["f", ""]);
        let odd = with_imports(before.clone(), &tree(&before), vec!["what".to_owned()]);
        assert_eq!(odd.text, before.text);
        assert!(odd.imports.is_empty());
    }
}
