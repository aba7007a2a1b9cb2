//! Finds names that a change leaves unresolved, in all files of the workspace.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::code::{Code, FileId};
use super::facts::is_test;
use super::names::{Names, Occurrence, Role};
use super::resolve::{Dangling, Holder, ModuleImport, Resolver, Source};
use starling_syntax::FilePath;
use starling_workspace::Snapshot;

/// Maximum number of files that are searched for the uses of one name that a change removes.
const FILES_MOST: usize = 400;

/// Returns the names that are unresolved in `after` and were not in `before`, in the order of files
/// and offsets. The two states differ only in the `changed` files. A changed file is searched for
/// names in its new lines, and every file for names whose definition the change removed.
pub(super) fn newly_dangling(
    (before, after): (&Code, &Code),
    (old, new): (&Snapshot, &Snapshot),
    changed: &[FilePath],
) -> Vec<Dangling> {
    let (mut earlier, mut later) = (Resolver::new(before), Resolver::new(after));
    let mut gone: BTreeSet<String> = BTreeSet::new();
    let is_removed = |file: &FilePath| changed.contains(file) && after.find(file).is_none();
    for file in changed {
        let was = before.find(file).map(|file| earlier.bound_names(file));
        let is = after.find(file).map(|file| later.bound_names(file));
        if is.is_none() {
            gone.extend(module_name(file).map(str::to_owned));
        }
        let is = is.unwrap_or_default();
        let taken = was.into_iter().flatten().filter(|one| !is.contains(one));
        gone.extend(taken.map(|(_, name)| name));
    }
    let mut files: BTreeSet<FileId> = BTreeSet::new();
    files.extend(changed.iter().filter_map(|file| after.find(file)));
    for name in &gone {
        let mentioning = after.mentioning(name).into_iter();
        files.extend(mentioning.take(FILES_MOST));
    }
    let removes = changed.iter().any(is_removed);
    let mut found = Vec::new();
    for file in files {
        let path = after.path(file).clone();
        let is_changed = changed.contains(&path);
        let lines = match is_changed {
            true => new_lines(old, new, &path),
            false => FxHashSet::default(),
        };
        let is_wanted = |names: &Names, one: &Occurrence| {
            gone.contains(names.name(one.name)) || lines.contains(&names.line(one.at))
        };
        let mut dangling = later.dangling(file, &is_wanted);
        if let Some(was) = before.find(&path).filter(|_| removes) {
            let lost = later.lost_imports(file, (&mut earlier, was), &is_removed);
            dangling.extend(lost);
        }
        dangling.retain(|one| !is_folder(one, new) && !is_tried(one, new));
        dangling.retain(|one| !is_unlisted_module(one, new, changed));
        dangling.retain(|one| {
            let is_of_gone = matches!(one.of, Holder::Removed(_)) || gone.contains(&one.name);
            is_of_gone || is_sure(one, new, after)
        });
        if !dangling.is_empty() {
            remove_known(&mut earlier, before, &mut dangling, &path);
        }
        found.extend(dangling);
    }
    found.sort();
    found
}

/// Returns the imports of a module in the other files, in the order of files and offsets.
pub(super) fn imports_of(code: &Code, module: &FilePath) -> Vec<ModuleImport> {
    let mut resolver = Resolver::new(code);
    let name = module_name(module).unwrap_or_default();
    let files = code.mentioning(name).into_iter();
    let files = files.filter(|file| code.path(*file) != module);
    files
        .flat_map(|file| resolver.imports_of(file, module))
        .collect()
}

/// Returns whether an unresolved name that was never defined is certainly an error. It is not
/// certain in tests, because tests create objects dynamically. It is not certain in the methods of
/// a mixin either, which use attributes of other classes, nor in code that sets attributes of other
/// modules or checks for them with `hasattr`.
fn is_sure(one: &Dangling, world: &Snapshot, code: &Code) -> bool {
    let Ok(text) = world.read(&one.file) else {
        return false;
    };
    let before = &text[..(one.offset as usize).min(text.len())];
    let is_import = !before.ends_with('.');
    if is_import {
        return true;
    }
    let is_own = ["self.", "cls.", "super()."]
        .iter()
        .any(|own| before.ends_with(own));
    let is_of_class = matches!(one.of, Holder::Class(_));
    let is_asked_for = text.contains("hasattr(");
    let is_made_up = is_of_class && (is_own || is_test(&one.file));
    !is_asked_for && !is_made_up && !is_set_somewhere(&one.name, code)
}

/// Returns whether any file assigns to an attribute of this name.
fn is_set_somewhere(name: &str, code: &Code) -> bool {
    code.mentioning(name).into_iter().any(|file| {
        code.names(file).is_some_and(|names| {
            let is_set = |one: &Occurrence| {
                one.role == Role::Store && one.receiver().is_some() && names.name(one.name) == name
            };
            names.occurrences().iter().any(is_set)
        })
    })
}

/// Returns whether the unresolved name is a directory of modules inside a package. Such a directory
/// can be imported without a definition.
fn is_folder(one: &Dangling, world: &Snapshot) -> bool {
    let (Holder::Module(module) | Holder::Exporting(module)) = &one.of else {
        return false;
    };
    let folder = match module.directory() {
        "" => format!("{}/", one.name),
        directory => format!("{directory}/{}/", one.name),
    };
    let files = world.files();
    let at = files.partition_point(|file| file.as_str() < folder.as_str());
    files
        .get(at)
        .is_some_and(|file| file.as_str().starts_with(&folder))
}

/// Returns the name under which other code imports a module.
fn module_name(file: &FilePath) -> Option<&str> {
    match file.name().strip_suffix(".py")? {
        "__init__" => file.directory().rsplit('/').next(),
        name => Some(name),
    }
}

/// Returns whether the unresolved name is a submodule that is not part of the workspace or is not written in
/// Python: a generated file that is ignored (`_version.py`), or an extension module.
fn is_unlisted_module(one: &Dangling, world: &Snapshot, changed: &[FilePath]) -> bool {
    let Holder::Module(package) = &one.of else {
        return false;
    };
    if !package.name().starts_with("__init__.") {
        return false;
    }
    let directory = package.directory();
    let Ok(entries) = std::fs::read_dir(world.root().join(directory)) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return false;
        };
        let stem = name.split('.').next().unwrap_or(name);
        let is_changed = |file: &FilePath| file.directory() == directory && file.name() == name;
        stem == one.name && !changed.iter().any(is_changed)
    })
}

/// Returns whether the unresolved name is used in the body of a `try`, so that the code handles the
/// error.
pub(super) fn is_tried(one: &Dangling, world: &Snapshot) -> bool {
    let Ok(text) = world.read(&one.file) else {
        return false;
    };
    let lines: Vec<&str> = text.lines().take(one.line as usize).collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut inner = lines.last().map_or(0, |line| depth(line));
    for line in lines.iter().rev().skip(1) {
        if line.trim().is_empty() || depth(line) >= inner {
            continue;
        }
        inner = depth(line);
        let opening = line.trim();
        if opening.starts_with("try:") {
            return true;
        }
        if opening.starts_with("def ") || opening.starts_with("class ") {
            return false;
        }
    }
    false
}

/// Removes the names that were already unresolved in the same symbol before the change.
fn remove_known(
    earlier: &mut Resolver<'_, Code>,
    before: &Code,
    dangling: &mut Vec<Dangling>,
    file: &FilePath,
) {
    let Some(file) = before.find(file) else {
        return;
    };
    let words: FxHashSet<String> = dangling.iter().map(|one| one.name.clone()).collect();
    let is_wanted = |names: &Names, one: &Occurrence| words.contains(names.name(one.name));
    let mut known: BTreeMap<_, usize> = BTreeMap::new();
    for one in earlier.dangling(file, &is_wanted) {
        *known.entry((one.symbol, one.name)).or_default() += 1;
    }
    dangling.retain(
        |one| match known.get_mut(&(one.symbol.clone(), one.name.clone())) {
            Some(count @ 1..) => {
                *count -= 1;
                false
            }
            Some(_) | None => true,
        },
    );
}

/// Returns the numbers of the lines of a file, counted from 1, that its old text did not contain.
pub(super) fn new_lines(old: &Snapshot, new: &Snapshot, file: &FilePath) -> FxHashSet<u32> {
    let before = old.read(file).unwrap_or_else(|_| "".into());
    let Ok(after) = new.read(file) else {
        return FxHashSet::default();
    };
    let known: FxHashSet<&str> = before.lines().map(str::trim).collect();
    let lines = (1..).zip(after.lines());
    let lines = lines.filter(|(_, line)| !known.contains(line.trim()));
    lines.map(|(number, _)| number).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::snapshot_of;
    use crate::{Index, ModuleImport};
    use starling_syntax::FilePath;

    const SHOP: &str = "RATE = 2\n\n\ndef total(x):\n    return x\n\n\nclass Cart:\n    def __init__(self):\n        \
        self.size = 0\n\n    def sum(self):\n        return self.size\n\n\nclass Big(Cart):\n    pass\n";

    /// Returns the newly unresolved names after these changes, as `file:line name`.
    fn dangling(before: &[(&str, &str)], changes: &[(&str, &str)]) -> Vec<String> {
        let is_kept = |(name, _): &&(&str, &str)| !changes.iter().any(|(other, _)| other == name);
        let mut after: Vec<(&str, &str)> = before.iter().filter(is_kept).copied().collect();
        after.extend(changes);
        let files: Vec<FilePath> = changes
            .iter()
            .map(|(name, _)| FilePath::new(*name))
            .collect();
        let old = Index::new(snapshot_of(before));
        let new = Index::new(snapshot_of(&after));
        let found = new.newly_dangling(&old, &files);
        let words = found
            .iter()
            .map(|one| format!("{}:{} {}", one.file, one.line, one.name));
        words.collect()
    }

    fn user(import: &str, body: &str) -> String {
        format!("{import}\n\n\ndef f(cart):\n    {body}\n")
    }

    #[test]
    fn import_of_a_missing_submodule_dangles() {
        let files = [
            ("pk/__init__.py", ""),
            ("pk/real.py", "X = 1\n"),
            ("dyn/__init__.py", "__path__ = []\n"),
            ("pk/inner/deep.py", "X = 1\n"),
        ];
        for (line, expected) in [
            ("from pk.gone import g", &["pk/b.py:1 gone"][..]),
            ("import pk.gone", &["pk/b.py:1 gone"]),
            ("import pk.gone as gone", &["pk/b.py:1 gone"]),
            ("from .gone import g", &["pk/b.py:1 gone"]),
            ("from pk.real import X", &[]),
            ("import pk.inner", &[]),
            ("from .inner.deep import X", &[]),
            ("from dyn.gone import g", &[]),
            ("from elsewhere.gone import g", &[]),
            ("import json, gone", &[]),
            (
                "try:\n    from pk.gone import g\nexcept ImportError:\n    g = None",
                &[],
            ),
        ] {
            let text = format!("{line}\n");
            assert_eq!(dangling(&files, &[("pk/b.py", &text)]), expected, "{line}");
        }
    }

    #[test]
    fn imports_of_a_module_are_found_in_all_forms() {
        let user = "import utils\nimport utils as u\nfrom utils import f\nfrom utils import *\n\ndef g():\n    \
                    from utils import f, g\n";
        let package =
            "from pk import part\nfrom pk import part as p\nimport pk.part\nimport pk.part as q\n";
        let index = Index::new(snapshot_of(&[
            ("utils.py", "def f(): pass\n"),
            ("a.py", user),
            (
                "pk/__init__.py",
                "from . import part\nfrom .part import X\n",
            ),
            ("pk/part.py", "X = 1\n"),
            ("b.py", package),
            ("c.py", "import other\nutils = 1\n"),
        ]));
        let found = |module: &str| -> Vec<String> {
            let found = index.imports_of(&FilePath::new(module));
            let one = |one: &ModuleImport| format!("{}:{} {:?}", one.file, one.line, one.form);
            found.iter().map(one).collect()
        };
        let expected = [
            "a.py:1 BindsName",
            "a.py:2 Names",
            "a.py:3 Names",
            "a.py:4 Names",
            "a.py:7 Names",
        ];
        assert_eq!(found("utils.py"), expected);
        let expected = [
            "b.py:1 BindsName",
            "b.py:2 Names",
            "b.py:3 Dotted",
            "b.py:4 Names",
            "pk/__init__.py:1 BindsName",
            "pk/__init__.py:2 Names",
        ];
        assert_eq!(found("pk/part.py"), expected);
    }

    #[test]
    fn import_of_a_removed_module_dangles() {
        let removed = "def f(): pass\n";
        for (line, expected) in [
            ("import legacy", &["a.py:1 legacy"][..]),
            ("import legacy as old", &["a.py:1 legacy"]),
            ("from legacy import f", &["a.py:1 legacy"]),
            ("from legacy import *", &["a.py:1 legacy"]),
            ("import other", &[]),
            (
                "try:\n    import legacy\nexcept ImportError:\n    legacy = None",
                &[],
            ),
        ] {
            let user = format!("{line}\n");
            let files = [("legacy.py", removed), ("a.py", user.as_str())];
            let old = Index::new(snapshot_of(&files));
            let new = Index::new(snapshot_of(&files[1..]));
            let found = new.newly_dangling(&old, &[FilePath::new("legacy.py")]);
            let found = found.iter();
            let found = found.map(|one| format!("{}:{} {}", one.file, one.line, one.name));
            assert_eq!(found.collect::<Vec<_>>(), expected, "{line}");
        }
    }

    #[test]
    fn uses_of_a_removed_name_are_reported_in_all_files() {
        let (by_name, by_module, by_object) = (
            user("from shop import total", "return total(1)"),
            user("import shop as s", "return s.total(s.RATE)"),
            user("from shop import Big", "return Big().sum()"),
        );
        let files = [
            ("shop.py", SHOP),
            ("a.py", &by_name),
            ("b.py", &by_module),
            ("c.py", &by_object),
        ];
        let gone = |old: &str, new: &str| {
            let shop = SHOP.replace(old, new);
            dangling(&files, &[("shop.py", &shop)])
        };
        assert_eq!(
            gone("def total(", "def sum_of("),
            ["a.py:1 total", "b.py:5 total"]
        );
        assert_eq!(gone("RATE = 2", "FACTOR = 2"), ["b.py:5 RATE"]);
        assert_eq!(gone("def sum(", "def amount("), ["c.py:5 sum"]);
        assert_eq!(gone("return x", "return x + 1"), [""; 0]);
        // A name that stays defined by another assignment or an import is not reported.
        assert_eq!(gone("RATE = 2", "from b import s as RATE"), [""; 0]);
        let kept = SHOP.replace("def total(", "def sum_of(") + "\n\ntotal = sum_of\n";
        assert_eq!(dangling(&files, &[("shop.py", &kept)]), [""; 0]);
    }

    #[test]
    fn new_use_of_an_undefined_name_is_reported() {
        let old = user("import shop", "return 1");
        let files = [("shop.py", SHOP), ("a.py", &old)];
        let written = |import: &str, body: &str| {
            let text = user(import, body);
            dangling(&files, &[("a.py", &text)])
        };
        assert_eq!(
            written("from shop import tax", "return tax"),
            ["a.py:1 tax"]
        );
        assert_eq!(written("import shop", "return shop.tax(1)"), ["a.py:5 tax"]);
        assert_eq!(
            written("from shop import Cart", "return Cart().tax()"),
            ["a.py:5 tax"]
        );
        for (import, body) in [
            ("from shop import total", "return total(1)"),
            ("import shop", "return shop.Cart().size + shop.__name__"),
            ("import other", "return other.tax(cart.tax)"),
            ("from os import tax", "return tax"),
        ] {
            assert_eq!(written(import, body), [""; 0], "{import}: {body}");
        }
    }

    #[test]
    fn names_left_in_all_are_reported_in_the_module_and_in_packages_that_export_them() {
        for list in [
            "__all__ = ['foo', 'bar']\n",
            "__all__: tuple[str, ...] = ('bar',) + ('foo',)\n",
            "__all__ = ['bar']\n__all__ += ['foo']\n",
            "__all__ = ['bar']\n__all__.extend(('foo',))\n",
            "__all__ = ['bar']\n__all__.append('foo')\n",
        ] {
            let module = format!("{list}\n\ndef foo():\n    pass\n\n\ndef bar():\n    pass\n");
            let line = list.lines().count();
            let renamed = module.replace("def foo", "def new");
            let found = dangling(&[("a.py", &module)], &[("a.py", &renamed)]);
            assert_eq!(found, [format!("a.py:{line} foo")], "{list}");

            let plain = "def foo():\n    pass\n\n\ndef bar():\n    pass\n";
            let new = plain.replace("def foo", "def new");
            for import in ["from .a import bar, foo\n", "from .a import *\n"] {
                let package = format!("{import}{list}");
                let files = [("p/__init__.py", &*package), ("p/a.py", plain)];
                let followed = package.replace("bar, foo", "bar, new");
                let changes = [("p/__init__.py", &*followed), ("p/a.py", &*new)];
                let found = dangling(&files, &changes);
                let expected = [format!("p/__init__.py:{} foo", line + 1)];
                assert_eq!(found, expected, "{package}");
                let whole = followed.replace("'foo'", "'new'");
                let changes = [("p/__init__.py", &*whole), ("p/a.py", &*new)];
                assert_eq!(dangling(&files, &changes), [""; 0], "{whole}");
            }
        }
    }

    #[test]
    fn use_of_a_removed_method_through_a_protocol_is_reported() {
        for base in ["Protocol", "Protocol[T]", "ABC", "object"] {
            let sinks = format!(
                "from typing import Protocol\n\n\nclass Sink({base}):\n    def write(self): ...\n\n\n\
                 def copy(sink: Sink):\n    Sink.register(copy)\n    sink.write()\n"
            );
            let renamed = sinks.replace("def write", "def put");
            let found = dangling(&[("s.py", &sinks)], &[("s.py", &renamed)]);
            assert_eq!(found, ["s.py:10 write"], "{base}");
        }
        let outside = "from lib import Base\n\n\nclass Sink(Base):\n    def write(self): ...\n\n\n\
                       def copy(sink: Sink):\n    sink.write()\n";
        let renamed = outside.replace("def write", "def put");
        assert_eq!(
            dangling(&[("s.py", outside)], &[("s.py", &renamed)]),
            [""; 0]
        );
    }

    #[test]
    fn entries_of_all_that_may_be_defined_are_not_reported() {
        let gone = |package: &str, more: (&str, &str)| {
            let old = format!("from .a import foo\n{package}");
            let files = [("p/__init__.py", &*old), ("p/a.py", "foo = 1\n"), more];
            dangling(&files, &[("p/__init__.py", package)])
        };
        let all = "__all__ = ['foo']\n";
        assert_eq!(gone(all, ("b.py", "")), ["p/__init__.py:1 foo"]);
        for (package, more) in [
            (all.to_owned(), ("p/foo.py", "")),
            (all.to_owned(), ("p/foo/b.py", "")),
            (format!("{all}foo = 2\n"), ("b.py", "")),
            (format!("from outside import *\n{all}"), ("b.py", "")),
            (
                format!("{all}\n\ndef __getattr__(name):\n    return 1\n"),
                ("b.py", ""),
            ),
        ] {
            assert_eq!(gone(&package, more), [""; 0], "{package} {more:?}");
        }
    }

    #[test]
    fn names_that_may_be_defined_at_run_time_are_not_reported() {
        let (user, changed) = (
            user("import lazy", "return 1"),
            user("import lazy", "return lazy.tax"),
        );
        for lazy in [
            "def __getattr__(name):\n    return name\n",
            "globals()['tax'] = 1\n",
            "from outside import *\n",
        ] {
            let files = [("lazy.py", lazy), ("a.py", &*user)];
            assert_eq!(dangling(&files, &[("a.py", &changed)]), [""; 0], "{lazy}");
        }
        let model = "class Model:\n    def __getattr__(self, name):\n        return name\n";
        let text = "from model import Model\nprint(Model().tax)\n";
        let files = [("model.py", model), ("a.py", "")];
        assert_eq!(dangling(&files, &[("a.py", text)]), [""; 0]);
    }

    #[test]
    fn names_used_in_try_or_after_hasattr_and_package_directories_are_not_reported() {
        let shop = ("shop/__init__.py", "def total(x):\n    return x\n");
        let files = [
            shop,
            ("shop/plugins/one.py", ""),
            ("a.py", ""),
            ("b.py", ""),
        ];
        for text in [
            "try:\n    from shop import tax\nexcept ImportError:\n    tax = None\n",
            "import shop\nif hasattr(shop, 'tax'):\n    shop.tax()\n",
            "from shop import plugins\n",
            "import shop\nprint(shop.plugins)\n",
        ] {
            assert_eq!(dangling(&files, &[("a.py", text)]), [""; 0], "{text}");
        }
        let set = [
            ("a.py", "import shop\nshop.tax()\n"),
            ("b.py", "import shop\nshop.tax = print\n"),
        ];
        assert_eq!(dangling(&files, &set), [""; 0]);
        let in_function = "def f():\n    try:\n        pass\n    finally:\n        pass\n    from shop import tax\n";
        assert_eq!(dangling(&files, &[("a.py", in_function)]), ["a.py:6 tax"]);
    }

    #[test]
    fn name_that_was_unresolved_before_the_change_is_not_reported() {
        let old = "import shop\n\n\ndef f():\n    return shop.tax\n\n\ndef g():\n    return 1\n";
        let new = old
            .replace("return shop.tax", "return shop.tax  # why")
            .replace("return 1", "return 1 + shop.tax");
        let files = [("shop.py", SHOP), ("a.py", old)];
        assert_eq!(dangling(&files, &[("a.py", &new)]), ["a.py:9 tax"]);
    }
}
