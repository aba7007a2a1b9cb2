//! A change of one file that is ready to be checked.

use std::sync::Arc;

use crate::evidence::check_results::{DiagnosticEvidence, ImportMends};
use crate::evidence::proposal::{CheckedTexts, Evidence, NeedsPerson};
use crate::evidence::test_evidence::TestEvidence;
use crate::state::epoch::Epoch;
use starling_syntax::{FilePath, Loss, Rewrite, SymbolPath, SymbolTree, carry, rewrite};
use starling_text::{ChangeSet, Edit};
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
    /// Symbols whose changed contracts can break other code.
    pub breaking: Vec<SymbolPath>,
    /// The epoch of the workspace that the draft was made for.
    pub epoch: Epoch,
    /// The automatic changes to the imports.
    pub imports: ImportMends,
    /// The reasons why only a person may accept the draft; empty if a model may accept it too.
    pub needs_person: Vec<String>,
    /// Whether a person edited this version during review.
    pub edited: bool,
    /// Whether the change deletes the file. `text` is then empty.
    pub deletes_file: bool,
}

impl Draft {
    /// Returns the first symbol that the change touches, or the module of its file.
    pub(crate) fn main_symbol(&self) -> SymbolPath {
        let module = || SymbolPath::module(self.file.clone());
        self.symbols.first().cloned().unwrap_or_else(module)
    }

    /// Returns the evidence for the reviewer, from these check results and the data of the draft,
    /// such as its contract changes.
    pub(crate) fn evidence(
        &self,
        tests: TestEvidence,
        diagnostics: DiagnosticEvidence,
    ) -> Evidence {
        let needs_person = |why: &String| NeedsPerson {
            file: self.file.clone(),
            why: why.clone(),
        };
        Evidence {
            tests,
            diagnostics,
            examples: Vec::new(),
            imports: self.imports.clone(),
            losses: self.losses.clone(),
            contract: self.contract.clone(),
            callers: Vec::new(),
            callers_in_set: Vec::new(),
            callers_kept: Vec::new(),
            indirect_callers: Vec::new(),
            test_callers: 0,
            needs_person: self.needs_person.iter().map(needs_person).collect(),
            together: None,
            texts: CheckedTexts::default(),
            overridden: None,
            outdated: None,
            millis: 0,
        }
    }

    /// Returns the text of the file with the change; `None` if the change deletes the file.
    pub(crate) fn content(&self) -> Option<Arc<str>> {
        (!self.deletes_file).then(|| Arc::clone(&self.text))
    }

    /// Returns the workspace with the change, rebased onto the text of its file there; `None` if
    /// they conflict.
    pub(crate) fn laid_over(&self, world: &Snapshot) -> Option<Snapshot> {
        let text = match world.read(&self.file) {
            Err(_) if self.deletes_file => return None,
            now => self.over(&now.unwrap_or_else(|_| "".into()))?,
        };
        let text = (!self.deletes_file).then_some(text);
        Some(world.with(self.file.clone(), text))
    }

    /// Rebases the draft onto `now`, a later text of the file. Returns `None` if both changed the
    /// same line, or if the draft deletes the file and the text differs. Imports that both add at
    /// the same position are combined.
    pub(crate) fn over(&self, now: &Arc<str>) -> Option<Arc<str>> {
        if self.deletes_file {
            return (self.base == *now).then(|| "".into());
        }
        let changes = ChangeSet::between(&self.base, &self.text);
        match carry(&self.file, &self.base, &changes, now) {
            Ok(changes) => Some(changes.apply(now).ok()?.into()),
            Err(_) => over_other_imports(&self.file, (&self.base, &self.text), now),
        }
    }
}

/// Rebases the change from `base` to `text` onto `now`, in which other changes added imports at the
/// same position. Returns `None` if there are other conflicts.
pub(crate) fn over_other_imports(
    file: &FilePath,
    (base, text): (&Arc<str>, &Arc<str>),
    now: &Arc<str>,
) -> Option<Arc<str>> {
    let changes = ChangeSet::between(base, text);
    let (imports, others): (Vec<Edit>, Vec<Edit>) =
        changes.edits().iter().cloned().partition(only_adds_imports);
    if imports.is_empty() {
        return None;
    }
    let rest = ChangeSet::new(base.len(), others)?;
    let rest = carry(file, base, &rest, now).ok()?;
    let text: Arc<str> = rest.apply(now).ok()?.into();
    let is_there = |line: &str| text.lines().any(|known| known.trim_end() == line);
    let lines = imports.iter().flat_map(|edit| edit.insert.lines());
    let missing: Vec<String> = lines
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !is_there(line))
        .map(str::to_owned)
        .collect();
    if missing.is_empty() {
        return Some(text);
    }
    let tree = SymbolTree::parse(file.clone(), text);
    let imports = Rewrite::Import {
        statements: missing,
    };
    Some(rewrite(&tree, &[imports]).ok()?.text.as_str().into())
}

/// Returns whether an edit only inserts whole import statements.
pub(crate) fn only_adds_imports(edit: &Edit) -> bool {
    let is_import = |line: &str| {
        let is_whole = !line.trim_end().ends_with(['(', '\\']);
        is_whole && (line.starts_with("import ") || line.starts_with("from "))
    };
    let mut lines = edit.insert.lines().filter(|line| !line.trim().is_empty());
    let has_any = lines.clone().next().is_some();
    edit.range.start == edit.range.end && has_any && lines.all(is_import)
}

#[cfg(test)]
impl Draft {
    /// Returns a draft that changes `f` in `a.py`, for tests.
    pub(crate) fn between(base: &str, text: &str) -> Draft {
        let file = FilePath::new("a.py");
        Draft {
            symbols: vec![SymbolPath::new(file.clone(), "f")],
            file,
            base: base.into(),
            text: text.into(),
            losses: Vec::new(),
            contract: Vec::new(),
            breaking: Vec::new(),
            epoch: Epoch::default(),
            imports: ImportMends::default(),
            needs_person: Vec::new(),
            edited: false,
            deletes_file: false,
        }
    }
}
