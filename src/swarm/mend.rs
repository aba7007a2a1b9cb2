//! Imports that a draft lacks, added before anything is checked or a model is asked.

use std::sync::Arc;

use super::diagnose::request;
use super::gate::Draft;
use super::hub::Hub;
use crate::index::{Importable, undefined_names};
use crate::ports::{Diagnostics, Effort, ProblemKind};
use crate::syntax::{FilePath, Language, Rewrite, SymbolPath, SymbolTree, rewrite};

/// A change that lacks more names has other troubles.
const MOST: usize = 6;

/// The draft with the imports that it lacks, where it is clear which.
pub(super) async fn mended(hub: &Arc<Hub>, draft: Draft) -> Draft {
    if Language::of(&draft.file) == Language::Plain {
        return draft;
    }
    let tree = SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.text));
    let lacking = lacking(&draft, &tree);
    if lacking.is_empty() || lacking.len() > MOST {
        return draft;
    }
    let mut statements = Vec::new();
    for name in &lacking {
        let known = hub.lookup().index().importable(name, &draft.file);
        let found = match known.is_empty() {
            false => clear(&known),
            true => offered(hub, &draft, name).await,
        };
        statements.extend(found);
    }
    with_imports(draft, &tree, statements)
}

/// Names that the text reads and nothing in it defines, and that were not so before.
fn lacking(draft: &Draft, after: &SymbolTree) -> Vec<String> {
    let before = SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.base));
    let known = undefined_names(&before);
    let new = undefined_names(after).into_iter();
    new.filter(|name| !known.contains(name)).collect()
}

/// The statement that the workspace uses: the only one, or by far the most used.
fn clear(known: &[Importable]) -> Option<String> {
    match known {
        [] => None,
        [one] => Some(one.statement.clone()),
        [first, second, ..] => (first.uses > 2 * second.uses).then(|| first.statement.clone()),
    }
}

/// The one statement that a language server offers for a name that it does not know either.
async fn offered(hub: &Arc<Hub>, draft: &Draft, name: &str) -> Option<String> {
    let world = hub.state().world.clone();
    let language = &hub.outside.language;
    let asked = || request(&world, &draft.file, &draft.text, Effort::Fast);
    let Diagnostics::Known { problems, .. } = language.diagnostics(asked()).await else {
        return None;
    };
    let is_about =
        |range: crate::text::ByteRange| draft.text.get(range.start..range.end) == Some(name);
    let problem = problems
        .iter()
        .find(|problem| problem.kind == ProblemKind::Name && problem.range.is_some_and(is_about))?;
    match language.imports(asked(), problem).await.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

/// The draft with these imports; as it was where they do not fit in.
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
        mended: statements,
        ..draft
    }
}

fn path(file: &FilePath, name: &str) -> SymbolPath {
    SymbolPath::new(file.clone(), name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(base: &str, text: &str) -> Draft {
        Draft {
            file: FilePath::new("a.py"),
            base: base.into(),
            text: text.into(),
            symbols: vec![SymbolPath::new(FilePath::new("a.py"), "f")],
            losses: Vec::new(),
            contract: Vec::new(),
            breaking: Vec::new(),
            applied: 0,
            mended: Vec::new(),
        }
    }

    fn tree(draft: &Draft) -> SymbolTree {
        SymbolTree::parse(draft.file.clone(), Arc::clone(&draft.text))
    }

    #[test]
    fn only_what_the_draft_brought_is_lacking() {
        let draft = draft(
            "def f():\n    old()\n",
            "def f():\n    old()\n    new(Path, len)\n",
        );
        assert_eq!(lacking(&draft, &tree(&draft)), ["Path", "new"]);
    }

    #[test]
    fn a_statement_is_clear_when_nearly_all_use_it() {
        let one = |statement: &str, uses| Importable {
            statement: statement.to_owned(),
            uses,
        };
        let clear = |known: &[Importable]| super::clear(known);
        assert_eq!(clear(&[]), None);
        assert_eq!(clear(&[one("import a", 0)]), Some("import a".to_owned()));
        let many = [one("import a", 7), one("import b", 3)];
        assert_eq!(clear(&many), Some("import a".to_owned()));
        assert_eq!(clear(&[one("import a", 6), one("import b", 3)]), None);
        assert_eq!(clear(&[one("import a", 0), one("import b", 0)]), None);
        assert!(clear(&[one("import a", 1), one("import b", 0)]).is_some());
    }

    #[test]
    fn imports_go_where_imports_go() {
        let before = draft("import os\n", "import os\n\n\ndef f():\n    Path()\n");
        let statements = vec!["from pathlib import Path".to_owned()];
        let after = with_imports(before.clone(), &tree(&before), statements.clone());
        assert_eq!(
            &*after.text,
            "import os\nfrom pathlib import Path\n\n\ndef f():\n    Path()\n"
        );
        assert_eq!(after.mended, statements);
        let names: Vec<&str> = after.symbols.iter().map(|path| &*path.name).collect();
        assert_eq!(names, ["f", ""]);
        let odd = with_imports(before.clone(), &tree(&before), vec!["what".to_owned()]);
        assert_eq!(odd.text, before.text);
        assert!(odd.mended.is_empty());
    }
}
