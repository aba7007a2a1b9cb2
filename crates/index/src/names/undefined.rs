//! Finds names that a file reads but does not define or import, for example because an import is
//! missing.

use std::collections::{BTreeMap, BTreeSet};

use super::Names;
use super::model::{Binding, BindingKind, Imported, Occurrence, Role, ScopeId, ScopeKind};
use starling_syntax::{SymbolPath, SymbolTree, written_at};
use starling_text::ByteRange;

/// Names that are available in every Python module.
const BUILTINS: &str = "ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup \
    BlockingIOError BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError \
    ConnectionError ConnectionRefusedError ConnectionResetError DeprecationWarning EOFError Ellipsis \
    EncodingWarning EnvironmentError Exception ExceptionGroup False FileExistsError FileNotFoundError \
    FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning IndentationError \
    IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError \
    ModuleNotFoundError NameError None NotADirectoryError NotImplemented NotImplementedError OSError \
    OverflowError PendingDeprecationWarning PermissionError ProcessLookupError PythonFinalizationError \
    RecursionError ReferenceError ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration \
    StopIteration SyntaxError SyntaxWarning SystemError SystemExit TabError TimeoutError True TypeError \
    UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError UnicodeTranslateError \
    UnicodeWarning UserWarning ValueError Warning WindowsError ZeroDivisionError abs aiter all anext any \
    ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex copyright credits \
    delattr dict dir divmod enumerate eval exec exit filter float format frozenset getattr globals hasattr \
    hash help hex id input int isinstance issubclass iter len license list locals map max memoryview min \
    next object oct open ord pow print property quit range repr reversed round set setattr slice sorted \
    staticmethod str sum super tuple type vars zip";

/// Names that are known only to type checkers or to earlier versions of Python, and names that are
/// common in code fragments.
const NEARLY_BUILT_IN: &str = "reveal_type reveal_locals basestring cmp coerce execfile file intern long raw_input reduce reload \
    unichr unicode xrange apply buffer self cls _";

/// Returns the names that a file reads, that it does not bind anywhere, and that are not built in.
/// Returns nothing if the file has a `*` import, which may bind any name.
pub fn undefined_names(tree: &SymbolTree) -> BTreeSet<String> {
    let names = Names::read(tree);
    let undefined = names.undefined();
    undefined.into_iter().map(str::to_owned).collect()
}

/// Returns whether a module binds a name at its top level, by an assignment, a function, a class or
/// an import.
pub fn binds(tree: &SymbolTree, name: &str) -> bool {
    !bound_at(tree, name).is_empty()
}

/// Returns the byte offsets at which a module binds a name at its top level.
pub fn bound_at(tree: &SymbolTree, name: &str) -> Vec<usize> {
    let names = Names::read(tree);
    let Some(id) = names.find(name) else {
        return Vec::new();
    };
    let bindings = names.bindings(ScopeId::MODULE, id).iter();
    let found = bindings.filter(|one| one.gives());
    let found = found.filter_map(|one| names.occurrence(one.occurrence));
    found.map(|one| one.at as usize).collect()
}

/// Returns the names that a module binds at its top level. Each comes with whether it is bound other
/// than by an import.
pub fn given_names(tree: &SymbolTree) -> BTreeMap<String, bool> {
    let names = Names::read(tree);
    let mut found = BTreeMap::new();
    for one in names.bindings_of(ScopeId::MODULE) {
        if one.gives() {
            let is_own = !matches!(one.kind, BindingKind::Import(_));
            *found.entry(names.name(one.name).to_owned()).or_default() |= is_own;
        }
    }
    found
}

/// Returns whether the code in a range of a file defines or sets an attribute with this name in a class body,
/// or sets such an attribute on any object.
pub fn sets_attribute(tree: &SymbolTree, name: &str, within: ByteRange) -> bool {
    let names = Names::read(tree);
    let is_attribute = |one: &Occurrence| {
        let at = one.at as usize;
        let scope = names.scope(one.scope).map(|scope| scope.kind);
        let is_set = match one.role {
            Role::Store | Role::Definition | Role::ImportedName | Role::Alias => {
                one.receiver().is_some() || scope == Some(ScopeKind::Class)
            }
            Role::Read
            | Role::Call
            | Role::Delete
            | Role::Keyword
            | Role::ImportedModule
            | Role::Export
            | Role::Parameter
            | Role::Declared => false,
        };
        is_set && within.start <= at && at < within.end
    };
    let found = names.find(name);
    found.is_some_and(|id| {
        let mut all = names.occurrences().iter();
        all.any(|one| one.name == id && is_attribute(one))
    })
}

/// Returns whether a file uses a name as a plain name, and not only as an attribute (`x.name`) or a
/// keyword. If so, a new binding of the name would change the meaning of the file's code.
pub fn says_plainly(tree: &SymbolTree, name: &str) -> bool {
    let names = Names::read(tree);
    let is_plain = |one: &Occurrence| match one.role {
        Role::Read | Role::Call | Role::Store | Role::Delete => !one.receiver().is_some(),
        Role::Keyword | Role::ImportedModule | Role::Export => false,
        // A method's name does not belong to the scope of the module.
        Role::Definition => {
            let scope = names.scope(one.scope).map(|scope| scope.kind);
            scope != Some(ScopeKind::Class)
        }
        Role::Parameter | Role::ImportedName | Role::Alias | Role::Declared => true,
    };
    let found = names.find(name);
    found.is_some_and(|id| {
        let mut all = names.occurrences().iter();
        all.any(|one| one.name == id && is_plain(one))
    })
}

/// The first use of an undefined name in a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostUse {
    pub name: String,
    pub symbol: SymbolPath,
    /// Line of the use, counted from 1.
    pub line: u32,
    pub range: ByteRange,
}

/// Returns the uses in `after` of names that the module imports in `before` and that are undefined
/// in `after`: the first use of each name in each symbol, in the order of the text.
pub fn lost_uses(before: &SymbolTree, after: &SymbolTree) -> Vec<LostUse> {
    let (old, new) = (Names::read(before), Names::read(after));
    let mut undefined = new.undefined();
    undefined.retain(|name| old.imports_at_top(name));
    uses_of(&new, after, &undefined)
}

/// Returns the uses in `after` of names that are undefined in `after` but not in `before`: the
/// first use of each name in each symbol, in the order of the text. Returns nothing if the module
/// defines names at run time with `exec` or `globals`.
pub fn newly_undefined(before: &SymbolTree, after: &SymbolTree) -> Vec<LostUse> {
    let (old, new) = (Names::read(before), Names::read(after));
    if ["exec", "globals"]
        .iter()
        .any(|word| new.find(word).is_some())
    {
        return Vec::new();
    }
    let known = old.undefined();
    let mut undefined = new.undefined();
    undefined.retain(|name| !known.contains(name));
    uses_of(&new, after, &undefined)
}

fn uses_of(names: &Names, tree: &SymbolTree, wanted: &BTreeSet<&str>) -> Vec<LostUse> {
    let mut uses: Vec<LostUse> = Vec::new();
    for found in names.occurrences() {
        let name = names.name(found.name);
        let is_read = matches!(found.role, Role::Read | Role::Call);
        if !is_read || found.receiver().is_some() || !wanted.contains(name) {
            continue;
        }
        let at = found.at as usize;
        let symbol = &tree.owner(at).path;
        let is_known = |one: &LostUse| one.name == name && one.symbol == *symbol;
        if uses.iter().any(is_known) {
            continue;
        }
        uses.push(LostUse {
            name: name.to_owned(),
            symbol: symbol.clone(),
            line: names.line(found.at),
            range: ByteRange::new(at, at + written_at(tree.text(), at).len()),
        });
    }
    uses
}

impl Names {
    /// Returns whether the module imports a name at its top level.
    fn imports_at_top(&self, name: &str) -> bool {
        let is_import = |binding: &Binding| matches!(binding.kind, BindingKind::Import(_));
        let found = self.find(name);
        found.is_some_and(|id| self.bindings(ScopeId::MODULE, id).iter().any(is_import))
    }

    fn undefined(&self) -> BTreeSet<&str> {
        if (self.imports.iter()).any(|import| import.what == Imported::Star) {
            return BTreeSet::new();
        }
        let bound: BTreeSet<_> = self.bindings.iter().map(|binding| binding.name).collect();
        let is_read = |role| matches!(role, Role::Read | Role::Call);
        let plain = self
            .occurrences
            .iter()
            .filter(|found| is_read(found.role) && !found.receiver().is_some());
        plain
            .filter(|found| !bound.contains(&found.name))
            .map(|found| self.name(found.name))
            .filter(|name| !name.starts_with("__") && !is_always_defined(name))
            .collect()
    }
}

/// Returns whether a name is available in every Python module.
pub fn is_built_in(name: &str) -> bool {
    BUILTINS.split_whitespace().any(|known| known == name)
}

/// Returns whether a name may be available in every Python module.
pub(crate) fn is_always_defined(name: &str) -> bool {
    is_built_in(name) || is_nearly_built_in(name)
}

fn is_nearly_built_in(name: &str) -> bool {
    NEARLY_BUILT_IN
        .split_whitespace()
        .any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_syntax::FilePath;

    fn undefined(text: &str) -> Vec<String> {
        let tree = SymbolTree::parse(FilePath::new("a.py"), text.into());
        undefined_names(&tree).into_iter().collect()
    }

    #[test]
    fn undefined_name_is_returned_once() {
        let text = "import os\n\n\ndef f(a, *rest, k=Path('.')):\n    b = [x for x in a]\n    \
                    print(b, Path, os.sep, missing.part, rest, k, __file__)\n    with open(a) as h:\n        \
                    h.read(later)\n\n\nlater = 1\n";
        assert_eq!(undefined(text), ["Path", "missing"]);
    }

    #[test]
    fn keywords_attributes_and_strings_are_not_undefined_names() {
        let text = "def f(x):\n    x.name = g(key=x.other)\n    return 'word'\n\n\ndef g(key):\n    pass\n";
        assert_eq!(undefined(text), [""; 0]);
    }

    #[test]
    fn names_bound_in_functions_or_classes_are_not_bound_by_the_module() {
        let text = "from m import imported\n\nX = 1\nannotated: int\n\n\ndef f(parameter):\n    \
                    inner = 1\n\n\nclass C:\n    attribute = 1\n";
        let tree = SymbolTree::parse(FilePath::new("a.py"), text.into());
        let bound = |name: &&str| binds(&tree, name);
        let names = ["imported", "X", "f", "parameter", "inner", "C", "attribute"];
        let bound: Vec<&str> = names.into_iter().filter(bound).collect();
        assert_eq!(bound, ["imported", "X", "f", "C"]);
    }

    #[test]
    fn uses_of_a_removed_import_are_reported_for_each_symbol() {
        let tree = |text: &str| SymbolTree::parse(FilePath::new("a.py"), text.into());
        let before = "from m import a, b, c\n\nX = a\n\n\ndef f():\n    return a, a, b\n\n\n\
                      def g():\n    c = 1\n    return c, other\n";
        let lost = |after: &str| {
            let uses = lost_uses(&tree(before), &tree(after)).into_iter();
            let uses = uses.map(|one| (one.name, one.symbol.name, one.line));
            uses.collect::<Vec<_>>()
        };
        assert_eq!(lost(before), []);
        let after = before.replace("a, b, c", "b");
        let wanted = [("a", "", 3), ("a", "f", 7)];
        let wanted = wanted.map(|(name, symbol, line)| (name.into(), symbol.into(), line));
        assert_eq!(lost(&after), wanted);
        // A name that is bound in another way is not reported.
        assert_eq!(lost(&after.replace("X = a", "a = 1")), []);
    }

    #[test]
    fn star_import_suppresses_undefined_names() {
        assert_eq!(undefined("from m import *\nmissing()\n"), [""; 0]);
        assert_eq!(undefined("missing()\n"), ["missing"]);
    }

    #[test]
    fn newly_undefined_name_is_reported_with_its_line() {
        let undefined = |before: &str, after: &str| -> Vec<(String, u32)> {
            let tree = |text: &str| SymbolTree::parse(FilePath::new("a.py"), text.into());
            let uses = newly_undefined(&tree(before), &tree(after)).into_iter();
            uses.map(|one| (one.name, one.line)).collect()
        };
        let before = "def f():\n    return 1\n\n\ndef g():\n    return f() + lost\n";
        let after = before.replace("def f", "def h");
        assert_eq!(undefined(before, &after), [("f".to_owned(), 6)]);
        assert_eq!(
            undefined(before, &before.replace("return 1", "return lost")),
            []
        );
        assert_eq!(undefined("", "print(a, a)\n"), [("a".to_owned(), 1)]);
        assert_eq!(undefined("", "globals()['a'] = 1\nprint(a)\n"), []);
    }
}
