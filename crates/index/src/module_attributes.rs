//! Finds the attributes of imported modules, such as `main` in `unittest.main()`.

use starling_syntax::SymbolTree;

use super::names::{BindingKind, ExprId, Imported, NameId, Names, Role};

/// An attribute of a module that a file imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleAttribute {
    /// Byte offset of the attribute's name.
    pub at: usize,
    /// The first part of the module's name: `os` for `os.path`.
    pub package: String,
}

/// Returns the attributes called `name` whose object is certainly a module: a name that the file binds
/// only by importing a module, or the dotted name in such an import. Relative imports are left out.
pub fn module_attributes(tree: &SymbolTree, name: &str) -> Vec<ModuleAttribute> {
    let names = Names::read(tree);
    let Some(sought) = names.find(name) else {
        return Vec::new();
    };
    let all = names.occurrences().iter();
    let reads = all.filter(|one| one.name == sought && matches!(one.role, Role::Read | Role::Call));
    let found = reads.filter_map(|one| {
        let object = dotted_name(&names, one.receiver())?;
        let package = package_of(&names, &object)?;
        let at = one.at as usize;
        Some(ModuleAttribute { at, package })
    });
    found.collect()
}

/// Returns the parts of an expression like `a.b.c`; `None` for other expressions.
fn dotted_name(names: &Names, expr: ExprId) -> Option<Vec<NameId>> {
    let mut parts = Vec::new();
    let mut next = expr;
    while next.is_some() {
        let part = names.occurrence(next.as_occurrence()?)?;
        parts.push(part.name);
        next = part.receiver();
    }
    parts.reverse();
    (!parts.is_empty()).then_some(parts)
}

/// Returns the first part of the name of the module that a dotted name refers to; `None` if the name may
/// refer to something else.
fn package_of(names: &Names, dotted: &[NameId]) -> Option<String> {
    let root = *dotted.first()?;
    let mut packages = Vec::new();
    for binding in names.all_bindings().filter(|one| one.name == root) {
        let BindingKind::Import(id) = binding.kind else {
            return None;
        };
        let import = names.import(id)?;
        let parts: Vec<&str> = names.module_parts(import).collect();
        let is_it = match import.what {
            Imported::First => {
                let shown = dotted.iter().map(|part| names.name(*part));
                dotted.len() == 1 || shown.eq(parts.iter().copied())
            }
            Imported::Whole => dotted.len() == 1,
            Imported::Star | Imported::Name(_) => return None,
        };
        if import.level > 0 {
            return None;
        }
        packages.extend(parts.first().filter(|_| is_it).map(|one| (*one).to_owned()));
    }
    packages.sort();
    packages.dedup();
    match packages.len() {
        1 => packages.pop(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starling_syntax::FilePath;
    use std::sync::Arc;

    fn packages(text: &str) -> Vec<String> {
        let tree = SymbolTree::parse(FilePath::new("a.py"), Arc::from(text));
        let found = module_attributes(&tree, "main").into_iter();
        found.map(|one| one.package).collect()
    }

    #[test]
    fn attribute_of_an_imported_module_is_found_with_its_package() {
        for (text, package) in [
            ("import unittest\nunittest.main()\n", "unittest"),
            ("import unittest as u\nu.main()\n", "unittest"),
            ("import a.b.c\na.b.c.main()\n", "a"),
            ("import a.b.c as m\nx = m.main\n", "a"),
            ("def f():\n    import a\n    a.main()\n", "a"),
        ] {
            assert_eq!(packages(text), [package], "{text}");
        }
        for text in [
            "import unittest\nmain()\n",
            "from a import b\nb.main()\n",
            "from . import b\nb.main()\n",
            "import a\na.b.main()\n",
            "import a\na().main()\n",
            "import a\na = b\na.main()\n",
            "import a\n\n\ndef f(a):\n    a.main()\n",
            "try:\n    import a\nexcept ImportError:\n    import b as a\na.main()\n",
            "from a import *\na.main()\n",
        ] {
            assert_eq!(packages(text), [""; 0], "{text}");
        }
    }
}
