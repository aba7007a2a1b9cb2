//! Names that a file reads and gives no meaning to: what is left when an import is missing.

use std::collections::BTreeSet;

use super::Names;
use super::model::{Binding, Imported, Role, ScopeId};
use crate::syntax::SymbolTree;

/// What every Python module knows.
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

/// What type checkers and earlier Pythons know, and names that are common in fragments.
const NEARLY_BUILT_IN: &str = "reveal_type reveal_locals basestring cmp coerce execfile file intern long raw_input reduce reload \
    unichr unicode xrange apply buffer self cls _";

/// Names that a file reads, that nothing in it binds, and that are not built in. None where the file
/// imports by `*`: there anything may come from.
pub fn undefined_names(tree: &SymbolTree) -> BTreeSet<String> {
    let names = Names::read(tree);
    let undefined = names.undefined();
    undefined.into_iter().map(str::to_owned).collect()
}

/// Whether a module gives a name a meaning for all of its parts: by an assignment, a function, a class or
/// an import.
pub fn binds(tree: &SymbolTree, name: &str) -> bool {
    let names = Names::read(tree);
    let bindings = |id| names.bindings(ScopeId::MODULE, id);
    let found = names.find(name);
    found.is_some_and(|id| bindings(id).iter().any(Binding::gives))
}

impl Names {
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
            .filter(|name| {
                !name.starts_with("__") && !is_built_in(name) && !is_nearly_built_in(name)
            })
            .collect()
    }
}

pub(super) fn is_built_in(name: &str) -> bool {
    BUILTINS.split_whitespace().any(|known| known == name)
}

fn is_nearly_built_in(name: &str) -> bool {
    NEARLY_BUILT_IN
        .split_whitespace()
        .any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::FilePath;

    fn undefined(text: &str) -> Vec<String> {
        let tree = SymbolTree::parse(FilePath::new("a.py"), text.into());
        undefined_names(&tree).into_iter().collect()
    }

    #[test]
    fn what_nothing_binds_is_told_once() {
        let text = "import os\n\n\ndef f(a, *rest, k=Path('.')):\n    b = [x for x in a]\n    \
                    print(b, Path, os.sep, missing.part, rest, k, __file__)\n    with open(a) as h:\n        \
                    h.read(later)\n\n\nlater = 1\n";
        assert_eq!(undefined(text), ["Path", "missing"]);
    }

    #[test]
    fn keywords_attributes_and_strings_are_no_names() {
        let text = "def f(x):\n    x.name = g(key=x.other)\n    return 'word'\n\n\ndef g(key):\n    pass\n";
        assert_eq!(undefined(text), [""; 0]);
    }

    #[test]
    fn what_only_a_part_binds_the_module_does_not() {
        let text = "from m import imported\n\nX = 1\nannotated: int\n\n\ndef f(parameter):\n    \
                    inner = 1\n\n\nclass C:\n    attribute = 1\n";
        let tree = SymbolTree::parse(FilePath::new("a.py"), text.into());
        let bound = |name: &&str| binds(&tree, name);
        let names = ["imported", "X", "f", "parameter", "inner", "C", "attribute"];
        let bound: Vec<&str> = names.into_iter().filter(bound).collect();
        assert_eq!(bound, ["imported", "X", "f", "C"]);
    }

    #[test]
    fn a_star_may_bring_anything() {
        assert_eq!(undefined("from m import *\nmissing()\n"), [""; 0]);
        assert_eq!(undefined("missing()\n"), ["missing"]);
    }
}
