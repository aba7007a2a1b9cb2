//! Imports, packages, and imports that lead nowhere.

use super::fixture::{check_definition, check_references};
use crate::resolve::{Certainty, Resolver};
use crate::testing::code_of;
use starling_syntax::FilePath;

#[test]
fn imported_name_resolves_to_its_definition() {
    let a = ("p/a.py", "def f(): pass\nclass C:\n    def g(self): pass\n");
    let package = ("p/__init__.py", "from .a import f as h\nfrom . import a\n");
    for text in [
        "from p.a import f\nf$()\n",
        "import p.a\np.a.f$()\n",
        "import p.a as q\nq.f$()\n",
        "from p import a\na.f$()\n",
        "from p import h\nh$()\n",
        "import p\np.h$()\n",
        "from p import h$\n",
        "from p.a import f$ as z\n",
        "from p.a import *\nf$()\n",
        "def g():\n    from p.a import f\n    f$()\n",
        "import p\np.a.f$()\n",
    ] {
        check_definition(&[a, package, ("m.py", text)], &["p/a.py::f"]);
    }
    check_definition(
        &[a, package, ("m.py", "import p$.a\n")],
        &["p/__init__.py::"],
    );
    check_definition(&[a, package, ("m.py", "import p.a$\n")], &["p/a.py::"]);
    check_definition(
        &[a, package, ("p/b.py", "from .a import C\nC().g$\n")],
        &["p/a.py::C.g"],
    );
    check_definition(
        &[a, package, ("p/q/b.py", "from ..a import f$\n")],
        &["p/a.py::f"],
    );
    check_definition(&[a, package, ("m.py", "import os\nos.path$\n")], &[]);
    check_definition(&[a, package, ("m.py", "from p import nothing$\n")], &[]);
}

#[test]
fn packages_are_found_in_source_roots_and_next_to_scripts() {
    check_definition(
        &[
            ("src/p/__init__.py", "x = 1\n"),
            ("tests/t.py", "from p import x$\n"),
        ],
        &["src/p/__init__.py:1:0"],
    );
    check_definition(
        &[
            ("tests/p/a.py", "x = 1\n"),
            ("tests/q/b.py", "from p.a import x$\n"),
        ],
        &["tests/p/a.py:1:0"],
    );
    // A module in a package is not a top-level module.
    check_definition(
        &[
            ("p/__init__.py", ""),
            ("p/types.py", "x = 1\n"),
            ("p/b.py", "from types import x$\n"),
        ],
        &[],
    );
    // Directories without `__init__.py` are packages (namespace packages), too.
    check_definition(
        &[
            ("n/s/a.py", "x = 1\n"),
            ("m.py", "from n.s import a\na.x$\n"),
        ],
        &["n/s/a.py:1:0"],
    );
}

#[test]
fn references_are_found_through_imports() {
    let files = [
        ("p/__init__.py", "from .a import f, C\n__all__ = ['f']\n"),
        ("p/a.py", "def f(): pass\nclass C: pass\nf()\n"),
        (
            "m.py",
            "import p\nfrom p import f as g\np.f()\ng()\ndef h(f): f()\n",
        ),
        ("other.py", "def f(): pass\nf()\n"),
    ];
    check_references(
        &files,
        "p/a.py::f",
        &[
            "m.py:2:14",
            "m.py:2:19",
            "m.py:3:2",
            "m.py:4:0",
            "p/__init__.py:1:15",
            "p/__init__.py:2:12",
            "p/a.py:1:4",
            "p/a.py:3:0",
        ],
    );
    check_references(&files, "other.py::f", &["other.py:1:4", "other.py:2:0"]);
    check_references(&files, "p/a.py::", &["p/__init__.py:1:6"]);
}

const CORE: &str = "packages/core/src/acme_core/money.py";

#[test]
fn imports_between_packages_of_a_monorepo_are_resolved() {
    check_references(
        &[
            ("packages/core/src/acme_core/__init__.py", ""),
            (CORE, "def total(x): pass\n"),
            ("packages/web/src/acme_web/__init__.py", ""),
            (
                "packages/web/src/acme_web/page.py",
                "from acme_core.money import total\ntotal(1)\n",
            ),
            (
                "packages/web/tests/test_page.py",
                "import acme_core.money as m\nm.total(1)\n",
            ),
        ],
        "packages/core/src/acme_core/money.py::total",
        &[
            "packages/core/src/acme_core/money.py:1:4",
            "packages/web/src/acme_web/page.py:1:28",
            "packages/web/src/acme_web/page.py:2:0",
            "packages/web/tests/test_page.py:2:2",
        ],
    );
    // A namespace package, and a package with the name of a standard library module.
    check_definition(
        &[
            ("a/src/acme/core/__init__.py", "def f(): pass\n"),
            ("b/src/acme/web/__init__.py", "from acme.core import f$\n"),
        ],
        &["a/src/acme/core/__init__.py::f"],
    );
    check_references(
        &[
            ("a/logging/__init__.py", "def info(): pass\n"),
            ("b/main.py", "from logging import info\ninfo()\n"),
        ],
        "a/logging/__init__.py::info",
        &["a/logging/__init__.py:1:4"],
    );
}

#[test]
fn unresolved_import_makes_the_references_incomplete() {
    for (text, possible) in [
        ("from acme_core.cash import total\ntotal(1)\n", 1),
        ("import acme_core.cash\nacme_core.cash.total(1)\n", 0),
    ] {
        let files = [(CORE, "def total(x): pass\n"), ("web/page.py", text)];
        let code = code_of(files);
        let symbol = format!("{CORE}::total").parse().unwrap();
        let found = Resolver::new(&code).references(&symbol).unwrap();
        let others = found.uses.iter().filter(|one| one.file.as_str() != CORE);
        let others: Vec<Certainty> = others.map(|one| one.certainty).collect();
        assert_eq!(others, vec![Certainty::Possible; possible], "{text}");
        assert!(!found.complete, "{text}");
        assert_eq!(found.gaps, [(FilePath::new("web/page.py"), 1)], "{text}");
    }
    let elsewhere = [
        (CORE, "def total(x): pass\n"),
        ("web/page.py", "from pandas import total\ntotal(1)\n"),
    ];
    let code = code_of(elsewhere);
    let symbol = format!("{CORE}::total").parse().unwrap();
    assert!(Resolver::new(&code).references(&symbol).unwrap().complete);
}
