//! Finds modules that a new file would hide. Python prefers a package to a module of the same name,
//! and the project's modules to the standard library.

use std::fmt;

use super::code::Code;
use super::import_roots::{ImportRoots, ROOTS, RootKind, is_test};
use super::importable::absolute;
use super::names::{Import, Imported, Names, ScopeId};
use super::resolve::{Source, is_standard};
use starling_syntax::{FilePath, SymbolTree};
use starling_workspace::Snapshot;

/// Root directories from which test tools import as well. `python -m pytest` searches the first one
/// before pytest's own modules.
const ROOTS_OF_TOOLS: [&str; 2] = ["", "src"];

/// The top-level modules of Python's standard library, in all versions of Python that are in use.
const LIBRARY: &str = "\
    abc aifc annotationlib argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb \
    binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop \
    collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg \
    crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email \
    encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib \
    functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html \
    http imaplib imghdr imp importlib inspect io ipaddress itertools json keyword linecache locale \
    logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt \
    multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os \
    ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix \
    posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri \
    random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve \
    shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile \
    sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable \
    sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap threading time timeit \
    tkinter token tokenize tomllib trace traceback tracemalloc tty turtle types typing unicodedata \
    unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml \
    xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// The module that a new file would hide, and the files that import it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadowing {
    pub hidden: HiddenModule,
    /// The files that import the hidden module, sorted by path. Can be empty if only test tools may
    /// import the module.
    pub importers: Vec<FilePath>,
}

/// An existing module that import statements would no longer find, because a new file hides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HiddenModule {
    /// A module next to a package of the same name.
    File(FilePath),
    /// A directory of modules (a namespace package) next to a module of the same name.
    Folder(String),
    /// A module of Python's standard library.
    Standard(String),
    /// A module of an installed package in the environment of the tests.
    Installed(String),
}

impl fmt::Display for HiddenModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HiddenModule::File(file) => write!(f, "{file}"),
            HiddenModule::Folder(folder) => write!(f, "the modules in {folder}/"),
            HiddenModule::Standard(name) => {
                write!(f, "the module `{name}` of Python's standard library")
            }
            HiddenModule::Installed(name) => {
                write!(f, "the module `{name}` of an installed package")
            }
        }
    }
}

/// Returns the module that a new file, which is not yet in the code, would hide from the files that
/// import it. A package may replace the module next to it if it binds all names of that module.
/// `is_installed` returns whether a name is a module of an installed package in the environment of
/// the tests.
pub(super) fn shadowing(
    code: &Code,
    world: &Snapshot,
    new: &SymbolTree,
    is_installed: &dyn Fn(&str) -> bool,
) -> Option<Shadowing> {
    let new_module = NewModule::of(new.file().as_str())?;
    let place = new_module.place;
    let Some(hidden) = hidden_by(code, world, new, &new_module, is_installed) else {
        return in_another_root(code, world, place);
    };
    let directory = place
        .rsplit_once('/')
        .map_or("", |(directory, _)| directory);
    let importers = importers(code, &hidden, place);
    let by_tools = match &hidden {
        // A project's own directory of tests may be called `test`, like the package of the standard
        // library.
        HiddenModule::Standard(name) => name != "test" && is_root_of_tools(world, directory),
        HiddenModule::Installed(_) => is_root_of_tools(world, directory),
        HiddenModule::File(_) | HiddenModule::Folder(_) => false,
    };
    match by_tools || !importers.is_empty() {
        true => Some(Shadowing { hidden, importers }),
        false => in_another_root(code, world, place),
    }
}

/// Returns the module in another directory of `sys.path` that a new module at `place` would hide,
/// because both are imported by the same name. Python imports the module from the first directory that
/// has it, and the order of the directories depends on the command that starts the tests or the
/// program.
fn in_another_root(code: &Code, world: &Snapshot, place: &str) -> Option<Shadowing> {
    let roots = ImportRoots::of(code, world);
    roots.iter().find_map(|(root, kind)| {
        let path = below(root, place)?;
        let dotted = path.replace('/', ".");
        let importers = importers_of(code, &dotted);
        if importers.is_empty() {
            return None;
        }
        // Pytest puts directories of tests first, so a module in one of them can be hidden only by a
        // module in another directory of tests.
        let others = roots.iter().filter(|(other, other_kind)| {
            *other != root && (*other_kind == RootKind::Project || kind == RootKind::Tests)
        });
        let mut others = others.map(|(other, _)| other);
        let hidden = others.find_map(|other| module_in(code, world, (root, other), path))?;
        Some(Shadowing { hidden, importers })
    })
}

/// Returns the part of a path below a directory.
fn below<'p>(directory: &str, path: &'p str) -> Option<&'p str> {
    match directory {
        "" => Some(path),
        _ => path.strip_prefix(directory)?.strip_prefix('/'),
    }
}

/// Returns the module at `path` below `other`. Returns `None` if it is in a package of either
/// directory, because Python then looks only in the package that it found first.
fn module_in(
    code: &Code,
    world: &Snapshot,
    (root, other): (&str, &str),
    path: &str,
) -> Option<HiddenModule> {
    let at = |root: &str, path: &str| match root {
        "" => path.to_owned(),
        _ => format!("{root}/{path}"),
    };
    let file = |path: String| Source::file(code, &path);
    let around = path.match_indices('/').map(|(end, _)| &path[..end]);
    let is_package = |root: &str, path: &str| file(format!("{}/__init__.py", at(root, path)));
    let mut packages =
        around.filter_map(|path| is_package(root, path).or_else(|| is_package(other, path)));
    if packages.next().is_some() {
        return None;
    }
    let old = at(other, path);
    let found = file(format!("{old}/__init__.py")).or_else(|| file(format!("{old}.py")));
    match found {
        Some(found) => Some(HiddenModule::File(code.path(found).clone())),
        None => holds_modules(world, &old).then_some(HiddenModule::Folder(old)),
    }
}

/// Returns the files that import the module `dotted` by this name, or something in it.
fn importers_of(code: &Code, dotted: &str) -> Vec<FilePath> {
    let name = dotted.rsplit('.').next().unwrap_or(dotted);
    let importers = code.mentioning(name).into_iter().filter(|file| {
        let path = code.path(*file);
        let is_one = |names: &Names, import: &Import| {
            import.level == 0
                && imported(names, import, path).is_some_and(|what| is_in(&what, dotted))
        };
        let names = Source::names(code, *file);
        names.is_some_and(|names| names.imports().iter().any(|import| is_one(&names, import)))
    });
    importers.map(|file| code.path(file).clone()).collect()
}

/// Returns the existing module that Python would no longer find.
fn hidden_by(
    code: &Code,
    world: &Snapshot,
    new: &SymbolTree,
    new_module: &NewModule,
    is_installed: &dyn Fn(&str) -> bool,
) -> Option<HiddenModule> {
    let NewModule { place, form, .. } = *new_module;
    let (directory, name) = place.rsplit_once('/').unwrap_or(("", place));
    let file = |path: String| Source::file(code, &path);
    let hidden_file = |file| Some(HiddenModule::File(code.path(file).clone()));
    let package = file(format!("{place}/__init__.py"));
    let module = file(format!("{place}.py"));
    match (new_module.is_package, package, module) {
        (true, Some(source), _) | (false, None, Some(source)) if form == ModuleForm::Extension => {
            hidden_file(source)
        }
        (_, Some(_), _) => None,
        (true, None, Some(module)) => {
            let old = Source::names(code, module)?;
            let replaces = form == ModuleForm::Source && binds_all_of(&old, &Names::read(new));
            (!replaces).then(|| hidden_file(module)).flatten()
        }
        (false, None, _) if holds_modules(world, place) => {
            Some(HiddenModule::Folder(place.to_owned()))
        }
        (_, None, None) if is_library(name) && is_top(code, directory) => {
            Some(HiddenModule::Standard(name.to_owned()))
        }
        (_, None, None) if is_installed(name) && is_top(code, directory) => {
            Some(HiddenModule::Installed(name.to_owned()))
        }
        (_, None, _) => None,
    }
}

/// How the file of a module is loaded. In one directory, Python prefers the forms in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ModuleForm {
    Extension,
    Source,
    Bytecode,
}

/// A file that Python takes for a module, by the suffixes of `importlib.machinery`.
#[derive(Debug, Clone, Copy)]
struct NewModule<'f> {
    /// The path of the module without its suffix; of a package, the path of its directory.
    place: &'f str,
    form: ModuleForm,
    /// Whether the file is the `__init__` of a package.
    is_package: bool,
}

impl<'f> NewModule<'f> {
    fn of(file: &'f str) -> Option<Self> {
        let (start, suffix) = file.rsplit_once('.')?;
        let form = match suffix {
            "py" | "pyw" => ModuleForm::Source,
            "pyc" => ModuleForm::Bytecode,
            "so" | "pyd" | "fwork" => ModuleForm::Extension,
            _ => return None,
        };
        let at = start.rfind('/').map_or(0, |slash| slash + 1);
        // The name of an extension can have a tag, as in `json.cpython-312-x86_64-linux-gnu.so`.
        let end = match form {
            ModuleForm::Extension => start[at..].find('.').map_or(start.len(), |dot| at + dot),
            ModuleForm::Source | ModuleForm::Bytecode => start.len(),
        };
        let place = &file[..end];
        let package = place.strip_suffix("/__init__");
        Some(NewModule {
            place: package.unwrap_or(place),
            form,
            is_package: package.is_some(),
        })
    }
}

fn is_library(name: &str) -> bool {
    is_standard(name) || LIBRARY.split(' ').any(|known| known == name)
}

/// Returns the files that import the module that a new file at `place` would hide.
fn importers(code: &Code, hidden: &HiddenModule, place: &str) -> Vec<FilePath> {
    let (directory, name) = place.rsplit_once('/').unwrap_or(("", place));
    let dotted = place
        .strip_prefix("src/")
        .unwrap_or(place)
        .replace('/', ".");
    let imports = |names: &Names, import: &Import, file: &FilePath| match hidden {
        HiddenModule::Standard(_) | HiddenModule::Installed(_) => {
            let below = file.as_str().strip_prefix(directory);
            let is_near =
                ROOTS.contains(&directory) || below.is_some_and(|rest| rest.starts_with('/'));
            import.level == 0 && is_near && names.module_parts(import).next() == Some(name)
        }
        HiddenModule::File(_) | HiddenModule::Folder(_) => leads_to(names, import, file, &dotted),
    };
    let importers = code.mentioning(name).into_iter().filter(|one| {
        let Some(names) = Source::names(code, *one) else {
            return false;
        };
        let mut all = names.imports().iter();
        all.any(|import| imports(&names, import, code.path(*one)))
    });
    importers.map(|one| code.path(one).clone()).collect()
}

/// Returns whether tools that run the tests import modules from a directory: because it is one of
/// the roots, or because it contains tests, so that pytest adds it to `sys.path`.
fn is_root_of_tools(world: &Snapshot, directory: &str) -> bool {
    let holds_tests = |file: &FilePath| file.directory() == directory && is_test(file);
    ROOTS_OF_TOOLS.contains(&directory) || world.files().iter().any(holds_tests)
}

/// Returns whether `new` binds all names that `old` binds.
fn binds_all_of(old: &Names, new: &Names) -> bool {
    let bound = old.bindings_of(ScopeId::MODULE).iter();
    let mut given = bound.filter(|binding| binding.gives());
    given.all(|binding| {
        let found = new.find(old.name(binding.name));
        found.is_some_and(|name| !new.bindings(ScopeId::MODULE, name).is_empty())
    })
}

fn holds_modules(world: &Snapshot, folder: &str) -> bool {
    let start = format!("{folder}/");
    let files = world.files();
    let at = files.partition_point(|file| file.as_str() < start.as_str());
    let mut inside = files[at..]
        .iter()
        .take_while(|file| file.as_str().starts_with(&start));
    inside.any(|file| file.as_str().ends_with(".py"))
}

/// Returns whether modules are imported from a directory directly, because it is a root or not a
/// package.
fn is_top(code: &Code, directory: &str) -> bool {
    ROOTS.contains(&directory) || Source::file(code, &format!("{directory}/__init__.py")).is_none()
}

/// Returns whether an import refers to the module `dotted`, or to something in it. `dotted` is the
/// module's path from the root; the import may also leave out its first parts.
fn leads_to(names: &Names, import: &Import, file: &FilePath, dotted: &str) -> bool {
    let Some(imported) = imported(names, import, file) else {
        return false;
    };
    let is_it = |path: &str| is_in(&imported, path);
    let inner = dotted.match_indices('.').map(|(at, _)| &dotted[at + 1..]);
    let mut inner = inner.filter(|path| !is_standard(path.split('.').next().unwrap_or(path)));
    is_it(dotted) || import.level == 0 && inner.any(is_it)
}

/// Returns the dotted name of what an import refers to.
fn imported(names: &Names, import: &Import, file: &FilePath) -> Option<String> {
    let module = absolute(names, import, file)?;
    Some(match import.what {
        Imported::Name(name) => format!("{module}.{}", names.name(name)),
        Imported::First | Imported::Whole | Imported::Star => module,
    })
}

/// Returns whether a dotted name is a module, or something in it.
fn is_in(name: &str, module: &str) -> bool {
    let rest = name.strip_prefix(module);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::super::testing::snapshot_of;
    use super::*;
    use crate::Index;

    const FILES: [(&str, &str); 10] = [
        ("unit/test_a.py", "import pytest\n"),
        ("a/__init__.py", ""),
        (
            "a/m.py",
            "import os\n\n\ndef find(x):\n    return x\n\n\ndef helper(x):\n    return x\n",
        ),
        ("a/u.py", "from a.m import helper\n"),
        ("a/v.py", "from . import m\n"),
        ("a/free.py", "x = 1\n"),
        ("ns/part.py", "x = 1\n"),
        ("ns_user.py", "import ns.part\n"),
        ("run.py", "import json\nfrom typing import Any\n"),
        ("tools/x.py", "import queue\n"),
    ];

    fn hidden(file: &str, text: &str) -> Option<(String, Vec<String>)> {
        let index = Index::new(snapshot_of(&FILES));
        let tree = SymbolTree::parse(FilePath::new(file), text.into());
        let is_installed = |name: &str| ["iniconfig", "yaml"].contains(&name);
        let found = index.shadowing(&tree, &is_installed)?;
        let importers = found.importers.iter().map(ToString::to_string);
        Some((found.hidden.to_string(), importers.collect()))
    }

    #[test]
    fn new_file_that_hides_an_imported_module_is_reported() {
        for (file, what, importers) in [
            ("a/m/__init__.py", "a/m.py", &["a/u.py", "a/v.py"][..]),
            ("ns.py", "the modules in ns/", &["ns_user.py"]),
            (
                "json.py",
                "the module `json` of Python's standard library",
                &["run.py"],
            ),
            (
                "typing/__init__.py",
                "the module `typing` of Python's standard library",
                &["run.py"],
            ),
            (
                "decimal.py",
                "the module `decimal` of Python's standard library",
                &[],
            ),
            (
                "unit/decimal.py",
                "the module `decimal` of Python's standard library",
                &[],
            ),
            (
                "iniconfig.py",
                "the module `iniconfig` of an installed package",
                &[],
            ),
            (
                "src/yaml/__init__.py",
                "the module `yaml` of an installed package",
                &[],
            ),
            (
                "unit/yaml.py",
                "the module `yaml` of an installed package",
                &[],
            ),
            (
                "tools/queue.py",
                "the module `queue` of Python's standard library",
                &["tools/x.py"],
            ),
        ] {
            let importers = importers.iter().map(|file| (*file).to_owned()).collect();
            let wanted = Some((what.to_owned(), importers));
            assert_eq!(
                hidden(file, "def find(x):\n    return x\n"),
                wanted,
                "{file}"
            );
        }
    }

    fn hidden_in(files: &[(&str, &str)], file: &str) -> Option<(String, Vec<String>)> {
        let index = Index::new(snapshot_of(files));
        let tree = SymbolTree::parse(FilePath::new(file), "def add(x):\n    return x\n".into());
        let found = index.shadowing(&tree, &|_| false)?;
        let importers = found.importers.iter().map(ToString::to_string);
        Some((found.hidden.to_string(), importers.collect()))
    }

    const TWO_ROOTS: [(&str, &str); 12] = [
        ("pytest.ini", "[pytest]\npythonpath = code .\n"),
        ("calc.py", "def add(x):\n    return x\n"),
        ("unused.py", ""),
        ("src/deep.py", ""),
        ("shop/__init__.py", ""),
        ("shop/fees.py", "from .rates import rate\n"),
        ("shop/rates.py", "rate = 1\n"),
        ("plain/part.py", ""),
        ("code/m.py", "import deep\nimport plain.part\n"),
        ("unit/help.py", ""),
        (
            "unit/test_a.py",
            "from calc import add\nimport help\nfrom shop.fees import rate\n",
        ),
        ("checks/test_b.py", ""),
    ];

    #[test]
    fn new_module_that_has_the_name_of_a_module_in_another_import_root_is_reported() {
        for (file, what, importer) in [
            ("code/calc.py", "calc.py", "unit/test_a.py"),
            ("src/calc/__init__.py", "calc.py", "unit/test_a.py"),
            ("lib/calc.so", "calc.py", "unit/test_a.py"),
            ("checks/calc.py", "calc.py", "unit/test_a.py"),
            (
                "code/shop/__init__.py",
                "shop/__init__.py",
                "unit/test_a.py",
            ),
            ("code/shop.py", "shop/__init__.py", "unit/test_a.py"),
            ("deep.py", "src/deep.py", "code/m.py"),
            ("src/plain.py", "the modules in plain/", "code/m.py"),
            ("src/plain/part.py", "plain/part.py", "code/m.py"),
            ("checks/help.py", "unit/help.py", "unit/test_a.py"),
        ] {
            let expected = Some((what.to_owned(), vec![importer.to_owned()]));
            assert_eq!(hidden_in(&TWO_ROOTS, file), expected, "{file}");
        }
    }

    #[test]
    fn new_module_that_is_no_other_choice_for_an_import_is_not_reported() {
        for file in [
            // No import root.
            "other/calc.py",
            // Nobody imports the other module.
            "code/unused.py",
            // The package of the other root has all modules of its name.
            "code/shop/fees.py",
            // Pytest takes the module beside the tests first.
            "help.py",
            "code/new.py",
        ] {
            assert_eq!(hidden_in(&TWO_ROOTS, file), None, "{file}");
        }
    }

    #[test]
    fn compiled_file_hides_what_python_would_load_instead() {
        let json = "the module `json` of Python's standard library";
        for (file, what) in [
            ("json.so", json),
            ("json.abi3.so", json),
            ("json.cpython-312-x86_64-linux-gnu.so", json),
            ("src/json.cp312-win_amd64.pyd", json),
            ("unit/json.pyd", json),
            ("json.pyc", json),
            ("json.pyw", json),
            ("json/__init__.so", json),
            ("json/__init__.cpython-312-darwin.so", json),
            ("json/__init__.pyc", json),
            ("yaml.so", "the module `yaml` of an installed package"),
            (
                "yaml/__init__.pyd",
                "the module `yaml` of an installed package",
            ),
            ("a/m.so", "a/m.py"),
            ("a/m/__init__.pyc", "a/m.py"),
            ("a/__init__.abi3.so", "a/__init__.py"),
            ("ns.so", "the modules in ns/"),
        ] {
            let found = hidden(file, "x = 1\n").map(|(what, _)| what);
            assert_eq!(found.as_deref(), Some(what), "{file}");
        }
        for file in [
            "a/m.pyc",
            "a/__init__.pyc",
            "new.so",
            "a/json.so",
            "json.txt",
            "json.so.txt",
            "libjson.so",
            "a/free.so",
        ] {
            assert_eq!(hidden(file, "x = 1\n"), None, "{file}");
        }
    }

    #[test]
    fn new_file_that_hides_no_module_is_not_reported() {
        for file in [
            "new.py",
            "a/new.py",
            "a/json.py",
            "queue.txt",
            "a/free/__init__.py",
            "ns/__init__.py",
            "a/decimal.py",
            "a/yaml.py",
            "tools/yaml.py",
            "test/__init__.py",
            "tools/json.py",
            "tools/__init__.py",
        ] {
            assert_eq!(hidden(file, "x = 1\n"), None, "{file}");
        }
        // The package replaces the module and binds all its names.
        let moved = "import os\nfrom .core import find, helper\n";
        assert_eq!(hidden("a/m/__init__.py", moved), None);
    }
}
