//! Finds modules that a new file would hide. Python prefers a package to a module of the same name,
//! and the project's modules to the standard library.

use std::fmt;

use super::code::Code;
use super::importable::absolute;
use super::names::{Import, Imported, Names, ScopeId};
use super::resolve::{Source, is_standard};
use starling_syntax::{FilePath, SymbolTree};
use starling_workspace::Snapshot;

/// Directories whose modules can be imported from anywhere in the workspace.
const ROOTS: [&str; 4] = ["", "src", "lib", "python"];
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
    let stem = new.file().as_str().strip_suffix(".py")?;
    let package = stem.strip_suffix("/__init__");
    let place = package.unwrap_or(stem);
    let (directory, name) = place.rsplit_once('/').unwrap_or(("", place));
    let file = |path: String| Source::file(code, &path);
    let module = file(format!("{place}.py"));
    let is_package = file(format!("{place}/__init__.py")).is_some();
    let hidden = match (package, module) {
        (Some(_), Some(module)) => {
            let old = Source::names(code, module)?;
            if binds_all_of(&old, &Names::read(new)) {
                return None;
            }
            HiddenModule::File(code.path(module).clone())
        }
        (None, _) if !is_package && holds_modules(world, place) => {
            HiddenModule::Folder(place.to_owned())
        }
        (_, None) if !is_package && is_library(name) && is_top(code, directory) => {
            HiddenModule::Standard(name.to_owned())
        }
        (_, None) if !is_package && is_installed(name) && is_top(code, directory) => {
            HiddenModule::Installed(name.to_owned())
        }
        (Some(_) | None, _) => return None,
    };
    let importers = importers(code, &hidden, place);
    let by_tools = match &hidden {
        // A project's own directory of tests may be called `test`, like the package of the standard
        // library.
        HiddenModule::Standard(name) => name != "test" && is_root_of_tools(world, directory),
        HiddenModule::Installed(_) => is_root_of_tools(world, directory),
        HiddenModule::File(_) | HiddenModule::Folder(_) => false,
    };
    (by_tools || !importers.is_empty()).then_some(Shadowing { hidden, importers })
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
    let holds_tests = |file: &FilePath| {
        let (folder, name) = file
            .as_str()
            .rsplit_once('/')
            .unwrap_or(("", file.as_str()));
        let is_test = name.starts_with("test_") || name.ends_with("_test.py");
        folder == directory && name.ends_with(".py") && (is_test || name == "conftest.py")
    };
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
    let Some(module) = absolute(names, import, file) else {
        return false;
    };
    let imported = match import.what {
        Imported::Name(name) => format!("{module}.{}", names.name(name)),
        Imported::First | Imported::Whole | Imported::Star => module,
    };
    let is_it = |path: &str| {
        let rest = imported.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let inner = dotted.match_indices('.').map(|(at, _)| &dotted[at + 1..]);
    let mut inner = inner.filter(|path| !is_standard(path.split('.').next().unwrap_or(path)));
    is_it(dotted) || import.level == 0 && inner.any(is_it)
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
