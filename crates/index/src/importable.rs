//! Finds import statements for a name in a workspace: the statements that other files use, and a
//! new one that imports from the module that defines the name.

use std::collections::BTreeMap;

use super::code::{Code, FileId};
use super::names::{BindingKind, Import, Imported, NameId, Names, ScopeId};
use super::resolve::Source;
use starling_syntax::FilePath;

/// A statement that imports a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Importable {
    pub statement: String,
    /// Number of files in the workspace that use this statement.
    pub uses: usize,
}

/// Returns the statements that import `name` into `file`, most used first.
pub(super) fn importable(code: &Code, name: &str, file: &FilePath) -> Vec<Importable> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let own = code.find(file).map(|file| code.module(file));
    let from_itself = own.as_ref().map(|module| format!("from {module} import "));
    for other in Source::mentioning(code, name) {
        let Some(names) = Source::names(code, other) else {
            continue;
        };
        let path = code.path(other);
        for statement in statements(&names, name, path) {
            *found.entry(statement).or_default() += 1;
        }
        if is_constant(name) && binds_value(&names, name) && !code.is_test(other) {
            let statement = format!("from {} import {name}", code.module(other));
            found.entry(statement).or_default();
        }
    }
    for definition in super::lookup::definitions(code, name) {
        let symbol = &definition.symbol;
        let Some(place) = code.find(&symbol.file).filter(|_| symbol.name == name) else {
            continue;
        };
        if !code.is_test(place) {
            let statement = format!("from {} import {name}", code.module(place));
            found.entry(statement).or_default();
        }
    }
    let mut found: Vec<Importable> = found
        .into_iter()
        .filter(|(statement, _)| {
            (from_itself.as_ref()).is_none_or(|itself| !statement.starts_with(itself))
        })
        .map(|(statement, uses)| Importable { statement, uses })
        .collect();
    if let Some(package) = own.and_then(|_| package_by_relative_imports(code, file)) {
        for one in &mut found {
            if let Some(relative) = relative_to(&package, &one.statement) {
                one.statement = relative;
            }
        }
    }
    found.sort_by_key(|one| std::cmp::Reverse(one.uses));
    found
}

/// Returns whether a name is written like a constant. Other module variables, such as `logger`, often have
/// the same name in many modules.
fn is_constant(name: &str) -> bool {
    name.len() > 1 && name.chars().all(|c| !c.is_lowercase())
}

/// Returns whether a module assigns a value to a name at its top level.
fn binds_value(names: &Names, name: &str) -> bool {
    let id = names.find(name);
    let mut bindings = id
        .into_iter()
        .flat_map(|id| names.bindings(ScopeId::MODULE, id));
    bindings.any(|binding| matches!(binding.kind, BindingKind::Value { .. }))
}

/// Returns the dotted name of a file's package, split at the dots. Returns `None` unless all imports of the
/// file from its own package are relative. If the file has no such import, the other files in its directory
/// decide.
fn package_by_relative_imports(code: &Code, file: &FilePath) -> Option<Vec<String>> {
    let mut package: Vec<String> = (code.module(code.find(file)?).split('.'))
        .map(str::to_owned)
        .collect();
    if file.name() != "__init__.py" {
        package.pop();
    }
    let top = package.first()?.clone();
    let count = |files: &mut dyn Iterator<Item = FileId>| {
        let (mut relative, mut absolute) = (0, 0);
        for names in files.filter_map(|file| Source::names(code, file)) {
            for import in names.imports() {
                let is_own = names.module_parts(import).next() == Some(&*top);
                relative += usize::from(import.level > 0);
                absolute += usize::from(import.level == 0 && is_own);
            }
        }
        (relative, absolute)
    };
    let own = count(&mut code.find(file).into_iter());
    let neighbours = || {
        let files = code
            .files()
            .filter(|other| code.path(*other).directory() == file.directory());
        count(&mut files.into_iter())
    };
    let (relative, absolute) = match own {
        (0, 0) => neighbours(),
        own => own,
    };
    (relative > 0 && absolute == 0).then_some(package)
}

/// Converts a statement `from a.b import c` to a relative import for a file in `package`. Returns `None` if
/// the two have different top-level packages.
fn relative_to(package: &[String], statement: &str) -> Option<String> {
    let (module, names) = statement.strip_prefix("from ")?.split_once(" import ")?;
    let parts: Vec<&str> = module.split('.').collect();
    let both = package.iter().zip(&parts);
    let common = both.take_while(|(own, other)| own == *other).count();
    let dots = ".".repeat(1 + package.len() - common);
    let rest = parts[common..].join(".");
    (common > 0).then(|| format!("from {dots}{rest} import {names}"))
}

/// Returns the statements with which one file imports the name at its top level.
fn statements(names: &Names, name: &str, file: &FilePath) -> Vec<String> {
    let Some(id) = names.find(name) else {
        return Vec::new();
    };
    let bindings = names.bindings(ScopeId::MODULE, id).iter();
    let imports = bindings.filter_map(|binding| match binding.kind {
        BindingKind::Import(import) => names.import(import),
        BindingKind::Class(_)
        | BindingKind::Function(_)
        | BindingKind::Parameter { .. }
        | BindingKind::Value { .. }
        | BindingKind::Attribute { .. }
        | BindingKind::Global
        | BindingKind::Nonlocal => None,
    });
    imports
        .filter_map(|import| statement(names, import, id, file))
        .collect()
}

fn statement(names: &Names, import: &Import, bound: NameId, file: &FilePath) -> Option<String> {
    let module = absolute(names, import, file)?;
    let name = names.name(bound);
    match import.what {
        Imported::First => Some(format!("import {name}")),
        Imported::Whole => Some(format!("import {module} as {name}")),
        Imported::Name(original) if original == bound => {
            Some(format!("from {module} import {name}"))
        }
        Imported::Name(original) => {
            let original = names.name(original);
            Some(format!("from {module} import {original} as {name}"))
        }
        Imported::Star => None,
    }
}

/// Returns the dotted name of an import's module. Relative imports are resolved from the root.
pub(super) fn absolute(names: &Names, import: &Import, file: &FilePath) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    if import.level > 0 {
        let directory = file.directory();
        let directory = directory.strip_prefix("src/").unwrap_or(directory);
        parts.extend(
            directory
                .split('/')
                .filter(|part| !part.is_empty())
                .map(str::to_owned),
        );
        let kept = parts.len().checked_sub(import.level as usize - 1)?;
        parts.truncate(kept);
    }
    parts.extend(names.module_parts(import).map(str::to_owned));
    (!parts.is_empty()).then(|| parts.join("."))
}

#[cfg(test)]
mod tests {
    use crate::Index;
    use starling_syntax::FilePath;
    use starling_workspace::{Overlay, Workspace};

    fn importable(files: &[(&str, &str)], name: &str, file: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let workspace = Workspace::open(dir.path().to_owned()).unwrap();
        let index = Index::new(workspace.snapshot(Overlay::new()));
        let found = index.importable(name, &FilePath::new(file));
        found
            .into_iter()
            .map(|one| format!("{} {}", one.uses, one.statement))
            .collect()
    }

    #[test]
    fn most_used_import_statement_comes_first() {
        let files = [
            ("a.py", "from collections import OrderedDict\n"),
            (
                "b.py",
                "from collections import OrderedDict as OD, OrderedDict\n",
            ),
            ("c.py", "from typing import OrderedDict\n"),
            ("d.py", "OrderedDict = 3\n"),
            ("e.py", "def f():\n    from x import OrderedDict\n"),
        ];
        assert_eq!(
            importable(&files, "OrderedDict", "z.py"),
            [
                "2 from collections import OrderedDict",
                "1 from typing import OrderedDict"
            ]
        );
        assert_eq!(
            importable(&files, "OD", "z.py"),
            ["1 from collections import OrderedDict as OD"]
        );
    }

    #[test]
    fn relative_imports_are_returned_as_absolute_imports() {
        let files = [
            (
                "src/shop/sub/a.py",
                "from ..price import total\nfrom . import price\n",
            ),
            ("src/shop/price.py", "def total(): pass\n"),
            (
                "b.py",
                "import numpy as np, os.path\nfrom ...far import total\n",
            ),
        ];
        assert_eq!(
            importable(&files, "total", "b.py"),
            ["1 from shop.price import total"]
        );
        assert_eq!(
            importable(&files, "price", "b.py"),
            ["1 from shop.sub import price"]
        );
        assert_eq!(importable(&files, "np", "c.py"), ["1 import numpy as np"]);
        assert_eq!(importable(&files, "os", "c.py"), ["1 import os"]);
    }

    #[test]
    fn constant_is_imported_from_the_module_that_assigns_it() {
        let files = [
            (
                "shop/price.py",
                "RATE: int = 3\nlogger = get()\n_MOST = 2\n\ndef f():\n    DEEP = 1\n",
            ),
            ("tests/test_price.py", "RATE = 4\n"),
            ("a.py", "import os\n"),
        ];
        let expected = ["0 from shop.price import RATE"];
        assert_eq!(importable(&files, "RATE", "a.py"), expected);
        assert_eq!(importable(&files, "RATE", "shop/price.py"), [""; 0]);
        for other in ["logger", "DEEP", "NONE"] {
            assert_eq!(importable(&files, other, "a.py"), [""; 0], "{other}");
        }
    }

    #[test]
    fn file_with_relative_imports_gets_relative_imports() {
        let files = [
            ("src/shop/__init__.py", ""),
            ("src/shop/price.py", "def total(): pass\n"),
            ("src/shop/sub/__init__.py", ""),
            ("src/shop/sub/a.py", "import os\nfrom . import b\n"),
            ("src/shop/sub/b.py", "def near(): pass\n"),
            ("src/shop/web/absolute.py", "from shop.sub import b\n"),
            (
                "src/shop/web/mixed.py",
                "from shop.sub import b\nfrom . import absolute\n",
            ),
            ("tool.py", "from .x import y\n"),
        ];
        for (name, file, expected) in [
            ("total", "src/shop/sub/a.py", "0 from ..price import total"),
            ("near", "src/shop/sub/a.py", "0 from .b import near"),
            // A file without such imports follows its neighbours.
            ("total", "src/shop/sub/b.py", "0 from ..price import total"),
            (
                "total",
                "src/shop/sub/__init__.py",
                "0 from ..price import total",
            ),
            (
                "total",
                "src/shop/web/absolute.py",
                "0 from shop.price import total",
            ),
            (
                "total",
                "src/shop/web/mixed.py",
                "0 from shop.price import total",
            ),
            ("total", "tool.py", "0 from shop.price import total"),
        ] {
            assert_eq!(importable(&files, name, file), [expected], "{file}");
        }
    }

    #[test]
    fn name_is_imported_from_its_defining_module_except_into_that_module() {
        let files = [
            (
                "shop/__init__.py",
                "class Shop:\n    def open(self): pass\n",
            ),
            ("shop/price.py", "def total(): pass\n"),
            ("tests/test_price.py", "def total(): pass\n"),
        ];
        assert_eq!(
            importable(&files, "Shop", "b.py"),
            ["0 from shop import Shop"]
        );
        assert_eq!(
            importable(&files, "total", "b.py"),
            ["0 from shop.price import total"]
        );
        assert_eq!(importable(&files, "total", "shop/price.py"), [""; 0]);
        assert_eq!(importable(&files, "open", "b.py"), [""; 0]);
        assert_eq!(importable(&files, "nowhere", "b.py"), [""; 0]);
    }
}
