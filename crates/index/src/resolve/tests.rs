use super::*;
use crate::testing::code_of;
use starling_syntax::FilePath;

/// Returns the definitions of the identifier before `$`, as symbols or positions.
fn defined(files: &[(&str, &str)]) -> Vec<String> {
    let (path, text) = *files.iter().find(|(_, text)| text.contains('$')).unwrap();
    let at = text.find('$').unwrap();
    let line = text[..at].matches('\n').count() as u32 + 1;
    let column = at - text[..at].rfind('\n').map_or(0, |start| start + 1);
    let clean: Vec<(&str, String)> = (files.iter())
        .map(|(path, text)| (*path, text.replace('$', "")))
        .collect();
    let clean: Vec<(&str, &str)> = clean
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    let code = code_of(clean.iter().copied());
    let found = Resolver::new(&code).definition(&FilePath::new(path), line, column as u32);
    let told = found.iter().map(|place| match &place.symbol {
        Some(symbol) => symbol.to_string(),
        None => format!("{}:{}:{}", place.file, place.line, place.column),
    });
    told.collect()
}

#[track_caller]
fn check_definition(files: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(defined(files), expected, "{files:#?}");
}

/// Checks the definitions of the identifier before `$` in a single file.
#[track_caller]
fn check_defined(text: &str, expected: &[&str]) {
    check_definition(&[("m.py", text)], expected);
}

/// Checks the references of a symbol, as `file:line:column`, followed by the certainty if it is not
/// `Certain`.
#[track_caller]
fn check_references(files: &[(&str, &str)], symbol: &str, expected: &[&str]) {
    let code = code_of(files.iter().copied());
    let found = Resolver::new(&code)
        .references(&symbol.parse().unwrap())
        .unwrap();
    let told: Vec<String> = (found.uses.iter())
        .map(|place| {
            let mark = match place.certainty {
                Certainty::Certain => "",
                Certainty::Likely => " likely",
                Certainty::Possible => " possible",
            };
            format!("{}:{}:{}{mark}", place.file, place.line, place.column)
        })
        .collect();
    assert_eq!(told, expected);
    assert!(found.complete);
}

#[test]
fn locals_and_parameters_hide_module_names() {
    check_defined("f = 1\ndef g(f): return f$\n", &["m.py:2:6"]);
    check_defined("f = 1\ndef g():\n    f$\n    f = 2\n", &["m.py:4:4"]);
    check_defined("def f(): pass\ndef g(): return f$\n", &["m.py::f"]);
    check_defined("x = 1\nlambda x: x$\n", &["m.py:2:7"]);
    check_defined("def f(a=a$): pass\na = 1\n", &["m.py:2:0"]);
}

#[test]
fn comprehension_variable_is_visible_only_in_the_comprehension() {
    check_defined("x = 1\n[x$ for x in y]\n", &["m.py:2:7"]);
    check_defined("x = 1\n[y for x in x$]\n", &["m.py:1:0"]);
    check_defined(
        "class A:\n    x = 1\n    y = [z for z in x$]\n",
        &["m.py:2:4"],
    );
    check_defined(
        "x = 0\nclass A:\n    x = 1\n    y = [x$ for z in w]\n",
        &["m.py:1:0"],
    );
}

#[test]
fn plain_name_in_a_method_does_not_resolve_to_a_class_member() {
    check_defined(
        "def f(): pass\nclass A:\n    def f(self): f$()\n",
        &["m.py::f"],
    );
    check_defined(
        "class A:\n    def f(self): pass\n    g = f$\n",
        &["m.py::A.f"],
    );
    // A class body does not see names that are bound further below.
    check_defined(
        "def f(): pass\nclass A:\n    g = f$\n    def f(self): pass\n",
        &["m.py::f"],
    );
}

#[test]
fn class_body_reads_the_module_name_before_its_own_assignment() {
    for (text, expected) in [
        (
            "def f(): pass\nclass A:\n    f = staticmethod(f$)\n",
            "m.py::f",
        ),
        (
            "def f(): pass\ndef make():\n    class A:\n        f = staticmethod(f$)\n    return A\n",
            "m.py::f",
        ),
        // Before the class binds the name, it does not see the variable of the enclosing function.
        (
            "def f(): pass\ndef make(f):\n    class A:\n        f = f$\n    return A\n",
            "m.py::f",
        ),
        (
            "def f(): pass\ndef make(f):\n    class A:\n        g = f$\n    return A\n",
            "m.py:2:9",
        ),
        (
            "def f(): pass\nclass A:\n    f$ = staticmethod(f)\n",
            "m.py:3:4",
        ),
        (
            "def f(): pass\nclass A:\n    f = staticmethod(f)\n    g = f$\n",
            "m.py:3:4",
        ),
        (
            "x = 1\nclass A:\n    for x in y:\n        z = x$\n",
            "m.py:3:8",
        ),
        (
            "x = 1\nclass A:\n    with y as x:\n        z = x$\n",
            "m.py:3:14",
        ),
        (
            "x = 1\nclass A:\n    try:\n        pass\n    except E as x:\n        z = x$\n",
            "m.py:5:16",
        ),
        (
            "x = 1\nclass A:\n    if (x := 2):\n        z = x$\n",
            "m.py:3:8",
        ),
    ] {
        check_defined(text, &[expected]);
    }
}

#[test]
fn global_and_nonlocal_names_resolve_to_the_outer_scope() {
    check_defined("x = 1\ndef f():\n    global x\n    x$ = 2\n", &["m.py:1:0"]);
    check_defined(
        "def f():\n    x = 1\n    def g():\n        nonlocal x\n        x$ = 2\n",
        &["m.py:2:4"],
    );
    check_defined("global x\nx$ = 1\n", &["m.py:2:0"]);
}

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
fn members_are_looked_up_in_method_resolution_order() {
    let base = "class A:\n    def f(self): pass\n    def g(self): self.f$()\nclass B(A): pass\nclass C(A):\n    def f(self): pass\nclass D(B, C): pass\n";
    check_defined(base, &["m.py::A.f"]);
    let base = base.replace('$', "");
    for (text, expected) in [
        ("D().f$()", "m.py::C.f"),
        ("D().g$()", "m.py::A.g"),
        ("B.f$", "m.py::A.f"),
        ("x = C()\nx.f$", "m.py::C.f"),
        ("class E(D):\n    def f(self): super().f$()", "m.py::C.f"),
        (
            "class E(C):\n    def f(self): super(C, self).f$()",
            "m.py::C.f",
        ),
        (
            "class E(C):\n    @classmethod\n    def h(cls): cls.g$",
            "m.py::A.g",
        ),
        ("class E(C):\n    def h(this): this.g$", "m.py::A.g"),
        (
            "import m\nclass E(m.C[int]):\n    def h(self): self.f$",
            "m.py::C.f",
        ),
    ] {
        check_defined(&format!("{base}{text}\n"), &[expected]);
    }
}

#[test]
fn type_of_an_attribute_is_inferred_from_assignments_and_annotations() {
    let text = "class A:\n    def f(self): pass\nclass B:\n    z: 'A'\n    def __init__(self, y: A = None):\n        self.x = A()\n        self.y = y\n    @property\n    def p(self): return self.x\n    def m(self) -> A: ...\n    def s(self): return self\n    def t(self): return type(self)()\n";
    for use_of in [
        "B().x.f$",
        "B().y.f$",
        "B().z.f$",
        "B().p.f$",
        "B().m().f$",
        "B().s().p.f$",
        "B().t().x.f$",
        "b = B()\nb.x.f$",
        "B().x$.f",
        "def g(b: B | None): b.x.f$",
        "def g(b: 'Optional[B]'): b.p.f$",
        "for b in [B()]: b.x.f$",
        "def g(bs: list[B]):\n    for b in bs: b.x.f$",
        "def g(c: type[B]): c().x.f$",
        "(a, b) = (1, B())\nb.x.f$",
        "b = None or B()\nb.x.f$",
        "def make(): return B()\nmake().x.f$",
        "def make():\n    yield B()\nwith make() as b: b.x.f$",
        "def g(b):\n    if isinstance(b, B): b.x.f$",
        "def g(b=B()): b.x.f$",
        "[b.x.f$ for b in (B(),)]",
        "b = cast('B', 1)\nb.x.f$",
        "if (b := B()): b.x.f$",
    ] {
        let expected = if use_of.contains("x$") {
            "m.py:6:13"
        } else {
            "m.py::A.f"
        };
        check_defined(&format!("{text}{use_of}\n"), &[expected]);
    }
    check_defined(
        "class E(Exception):\n    def f(self): pass\ntry: x\nexcept (E, ValueError) as e: e.f$\n",
        &["m.py::E.f"],
    );
    check_defined(
        "class C:\n    def __enter__(self): return self\n    def f(self): pass\nwith C() as c, open('x') as d: c.f$\n",
        &["m.py::C.f"],
    );
}

#[test]
fn method_that_returns_self_returns_the_subclass() {
    let text = "class A:\n    def clone(self): return self.__class__()\n    @classmethod\n    def make(cls): return cls()\nclass B(A):\n    def f(self): pass\n";
    check_defined(&format!("{text}B().clone().f$\n"), &["m.py::B.f"]);
    check_defined(&format!("{text}B.make().clone().f$\n"), &["m.py::B.f"]);
}

#[test]
fn decorated_function_has_the_type_that_its_decorator_returns() {
    let text = "from typing import Callable\nclass Command:\n    def main(self): pass\ndef command(name) -> Callable[[int], Command]: ...\ndef same(f): return f\n";
    check_defined(
        &format!("{text}@command('x')\n@same\ndef cli(): pass\ncli.main$()\n"),
        &["m.py::Command.main"],
    );
    check_defined(
        &format!("{text}@same\ndef make(): return Command()\nmake().main$()\n"),
        &["m.py::Command.main"],
    );
}

#[test]
fn keyword_argument_resolves_to_the_parameter() {
    check_defined("def f(a): pass\nf(a$=1)\n", &["m.py:1:6"]);
    check_defined(
        "class A:\n    def __init__(self, a): pass\nA(a$=1)\n",
        &["m.py:2:23"],
    );
    check_defined("class A:\n    a: int\nA(a$=1)\n", &["m.py:2:4"]);
}

#[test]
fn tests_and_fixtures_that_take_a_fixture_refer_to_it() {
    let conftest = "import pytest\n\n\n@pytest.fixture\ndef message():\n    return 1\n\n\n\
                    @pytest.fixture()\ndef sent(message):\n    return message\n";
    let unit = "import pytest\n\n\ndef test_a(message):\n    pass\n\n\ndef helper(message):\n    pass\n\n\n\
                @pytest.mark.parametrize('message', [1])\ndef test_b(message):\n    pass\n\n\n\
                class TestC:\n    def test_c(self, message):\n        pass\n\n\n\
                class TestD:\n    @pytest.fixture\n    def message(self):\n        return 2\n\n    \
                def test_d(self, message):\n        pass\n";
    let deep =
        "import pytest\n\n\n@pytest.fixture\ndef message(message):\n    return message + 1\n";
    let below = "def test_e(message):\n    pass\n";
    let files = [
        ("tests/conftest.py", conftest),
        ("tests/test_unit.py", unit),
        ("tests/deep/conftest.py", deep),
        ("tests/deep/test_below.py", below),
        ("other/test_other.py", below),
        (
            "plugin.py",
            "from pytest import fixture\n\n\n@fixture\ndef box():\n    return 1\n",
        ),
        ("other/test_box.py", "def test_f(box):\n    pass\n"),
        (
            "other/test_own.py",
            "import pytest\n\n\n@pytest.fixture(name='jar')\ndef box():\n    pass\n\n\n\
             def test_g(box, jar):\n    pass\n",
        ),
        (
            "other/test_import.py",
            "from plugin import box\n\n\ndef test_h(box):\n    pass\n",
        ),
    ];
    check_references(
        &files,
        "tests/conftest.py::message",
        &[
            "tests/conftest.py:5:4",
            "tests/conftest.py:10:9",
            "tests/deep/conftest.py:5:12",
            "tests/test_unit.py:4:11",
            "tests/test_unit.py:13:11 possible",
            "tests/test_unit.py:18:21",
        ],
    );
    check_references(
        &files,
        "tests/deep/conftest.py::message",
        &[
            "tests/deep/conftest.py:5:4",
            "tests/deep/test_below.py:1:11",
        ],
    );
    check_references(
        &files,
        "tests/test_unit.py::TestD.message",
        &["tests/test_unit.py:24:8", "tests/test_unit.py:27:21"],
    );
    check_references(
        &files,
        "plugin.py::box",
        &[
            "other/test_box.py:1:11 possible",
            "other/test_import.py:1:19",
            "other/test_import.py:4:11",
            "plugin.py:5:4",
        ],
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

#[test]
fn method_call_on_a_value_of_unknown_type_is_not_a_certain_reference() {
    let a = (
        "a.py",
        "class A:\n    def run(self): pass\n    def go(self): self.run()\n",
    );
    let uses = (
        "b.py",
        "def g(x, a):\n    x.run()\n    a.run()\n    'x'.run()\n",
    );
    check_references(
        &[a, uses],
        "a.py::A.run",
        &[
            "a.py:2:8",
            "a.py:3:23",
            "b.py:2:6 likely",
            "b.py:3:6 likely",
        ],
    );
    let stranger = ("c.py", "class Z:\n    def run(self): pass\nZ().run()\n");
    check_references(
        &[a, uses, stranger],
        "a.py::A.run",
        &[
            "a.py:2:8",
            "a.py:3:23",
            "b.py:2:6 possible",
            "b.py:3:6 likely",
        ],
    );
}

#[test]
fn references_to_a_base_method_include_uses_in_subclasses() {
    let text = "class A:\n    def f(self): pass\nclass B(A):\n    def g(self): self.f()\nclass C(A):\n    def f(self): super().f()\nC().f()\n";
    check_references(
        &[("m.py", text)],
        "m.py::A.f",
        &["m.py:2:8", "m.py:4:22", "m.py:6:25"],
    );
    check_references(&[("m.py", text)], "m.py::C.f", &["m.py:6:8", "m.py:7:4"]);
}

#[test]
fn references_to_an_override_include_calls_through_the_base_class() {
    let text = "class A:\n    def f(self): pass\n    def g(self): return self.f()\n    @classmethod\n    def h(cls): return cls.k()\n    @classmethod\n    def k(cls): pass\n\
        class B(A):\n    def f(self): pass\n    @classmethod\n    def k(cls): pass\n\
        class Unrelated:\n    def f(self): pass\n    def g(self): return self.f()\n\
        def use(): return A.f(A())\n";
    check_references(
        &[("m.py", text)],
        "m.py::B.f",
        &["m.py:3:29 possible", "m.py:9:8"],
    );
    check_references(
        &[("m.py", text)],
        "m.py::B.k",
        &["m.py:5:27 possible", "m.py:11:8"],
    );
}

#[test]
fn references_to_a_method_include_calls_in_mixins_and_reads_of_properties() {
    let text = "class Mixin:\n    def line(self): return self.label()\n\
        class A:\n    @property\n    def cost(self): return 1\n    def total(self): return self.cost\n\
        class B(Mixin, A):\n    def label(self): return ''\n    @property\n    def cost(self): return 2\n";
    check_references(
        &[("m.py", text)],
        "m.py::B.label",
        &["m.py:2:32 likely", "m.py:8:8"],
    );
    check_references(
        &[("m.py", text)],
        "m.py::B.cost",
        &["m.py:6:33 possible", "m.py:10:8"],
    );
}

#[test]
fn instantiation_is_a_reference_to_init() {
    let text = "class A:\n    def __init__(self): pass\nclass B(A): pass\nclass C(A):\n    def __init__(self): super().__init__()\nA()\nB()\nC()\nA\n";
    check_references(
        &[("m.py", text)],
        "m.py::A.__init__",
        &["m.py:2:8", "m.py:5:32", "m.py:6:0", "m.py:7:0"],
    );
}

#[test]
fn redefinitions_of_a_name_share_their_references() {
    let text = "try:\n    def f(): pass\nexcept E:\n    def f(): pass\nf()\n";
    let places = ["m.py:2:8", "m.py:4:8", "m.py:5:0"];
    check_references(&[("m.py", text)], "m.py::f", &places);
    check_references(&[("m.py", text)], "m.py::f#2", &places);
}

#[test]
fn cyclic_imports_and_inheritance_terminate() {
    let files = [
        (
            "a.py",
            "from b import *\nfrom b import X\ntry: pass\nexcept E: X = X\nclass A(B): pass\n",
        ),
        (
            "b.py",
            "from a import *\nfrom a import X, A\ntry: pass\nexcept E: X = X()\nclass B(A):\n    def f(self): return self.f().f()\n",
        ),
        (
            "c.py",
            "from a import X, B\nfrom c import Y\nclass L(L): pass\nclass P(Q): pass\nclass Q(P):\n    def g(self): pass\nP().g()\nX.g()\nglobal X\n",
        ),
    ];
    let code = code_of(files.iter().copied());
    let mut resolver = Resolver::new(&code);
    for symbol in [
        "b.py::B.f",
        "b.py::B",
        "c.py::Q.g",
        "c.py::L",
        "a.py::A",
        "a.py::",
    ] {
        let found = resolver.references(&symbol.parse().unwrap()).unwrap();
        // The import of `X` leads nowhere, so `X.g` may be any object's.
        assert_eq!(found.complete, symbol != "c.py::Q.g", "{symbol}");
        assert!(symbol.ends_with("::") || !found.uses.is_empty(), "{symbol}");
    }
    assert!(
        resolver
            .references(&"c.py::nothing".parse().unwrap())
            .is_none()
    );
    assert!(resolver.references(&"no.py::A".parse().unwrap()).is_none());
}

#[test]
fn very_long_chains_of_calls_and_classes_terminate() {
    let calls = format!(
        "class A:\n    def f(self): return self\nA(){}\n",
        ".f()".repeat(3_000)
    );
    let dots = format!("x{}\n", ".f".repeat(3_000));
    let names: String = (1..3_000).map(|n| format!("x{n} = x{}\n", n - 1)).collect();
    let names = format!("class A:\n    def f(self): pass\nx0 = A()\n{names}x2999.f()\n");
    let bases: String = (1..1_000)
        .map(|n| format!("class B{n}(B{}): pass\n", n - 1))
        .collect();
    let bases = format!("class B0:\n    def f(self): pass\n{bases}B999().f()\n");
    for (text, symbol) in [
        (&calls, "m.py::A.f"),
        (&names, "m.py::A.f"),
        (&bases, "m.py::B0.f"),
    ] {
        let code = code_of([("m.py", text.as_str()), ("n.py", dots.as_str())]);
        let found = Resolver::new(&code)
            .references(&symbol.parse().unwrap())
            .unwrap();
        assert!(!found.uses.is_empty(), "{symbol}");
    }
}

#[test]
fn only_assignments_that_can_reach_a_use_determine_its_type() {
    let text = "class A:\n    def f(self): pass\nclass B:\n    def f(self): pass\n";
    let both = ["m.py::A.f", "m.py::B.f"];
    for (body, expected) in [
        ("x = A()\n    x = B()\n    x.f$()", &both[1..]),
        ("x = A()\n    x.f$()\n    x = B()", &both[..1]),
        ("x = A()\n    if y: x = B()\n    x.f$()", &both[..]),
        ("if y: x = A()\n    else: x = B()\n    x.f$()", &both[..]),
        (
            "x = A()\n    while y:\n        x.f$()\n        x = B()",
            &both[..],
        ),
        (
            "x = A()\n    for y in z:\n        x = B()\n        x.f$()",
            &both[1..],
        ),
        ("x = A()\n    x = x.f$()", &both[..1]),
        ("x = A()\n    x += 1\n    x.f$()", &both[..1]),
        ("x = A()\n    def h(): x.f$()\n    x = B()", &both[..]),
        ("x = A()\n    [x.f$() for y in z]\n    x = B()", &both[..1]),
        ("try: x = A()\n    except E: x = B()\n    x.f$()", &both[..]),
    ] {
        check_defined(&format!("{text}def g(y, z):\n    {body}\n"), expected);
    }
}

#[test]
fn iteration_over_a_subclass_of_a_generic_list_has_the_element_type() {
    let text = "class A:\n    def f(self): pass\nclass L(list[A]):\n    def g(self):\n";
    check_defined(
        &format!("{text}        for a in self: a.f$()\n"),
        &["m.py::A.f"],
    );
    check_defined(&format!("{text}        self[0].f$()\n"), &["m.py::A.f"]);
    check_defined(
        &format!("{text}        if isinstance(a := self.x, A): a.f$()\n"),
        &["m.py::A.f"],
    );
}

#[test]
fn call_of_a_method_named_like_a_built_in_method_is_only_a_possible_reference() {
    let text = "class A:\n    def pop(self): pass\ndef g(x, a):\n    x.pop()\n    a.pop()\n";
    let expected = ["m.py:2:8", "m.py:4:6 possible", "m.py:5:6 likely"];
    check_references(&[("m.py", text)], "m.py::A.pop", &expected);
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

#[test]
fn mixin_method_may_refer_to_a_member_of_a_subclass() {
    let mixin = "class Share:\n    def share(self):\n        return self.short()\n";
    let note =
        "from mixins import Share\n\nclass Note(Share):\n    def short(self):\n        return 1\n";
    check_references(
        &[("mixins.py", mixin), ("note.py", note)],
        "note.py::Note.short",
        &["mixins.py:3:20 likely", "note.py:4:8"],
    );
}

/// Returns the references of `W.mark` in `a.py`, as `line certainty`, and whether they are complete.
fn marks(head: &str, use_: &str) -> (Vec<String>, bool) {
    let text = format!("from w import W\n{head}\n{use_}\n");
    let code = code_of([
        ("w.py", "class W:\n    def mark(self):\n        pass\n"),
        ("a.py", text.as_str()),
    ]);
    let found = Resolver::new(&code).references(&"w.py::W.mark".parse().unwrap());
    let found = found.unwrap();
    let uses = found
        .uses
        .iter()
        .filter(|one| one.file.as_str() == "a.py")
        .map(|one| format!("{:?}", one.certainty));
    (uses.collect(), found.complete)
}

#[test]
fn attribute_of_an_object_that_outside_code_holds_is_possible() {
    for (head, use_) in [
        ("from flask import g", "g.w.mark()"),
        ("import flask", "flask.g.w.mark()"),
        ("import flask", "flask.g.mark()"),
        ("from flask import current_app", "current_app.w.mark"),
        (
            "import threading\nlocal = threading.local()",
            "local.w.mark()",
        ),
        (
            "from types import SimpleNamespace\nns = SimpleNamespace(w=W())",
            "ns.w.mark()",
        ),
        ("import builtins", "builtins.w.mark()"),
        ("from flask import g\nw = g.w", "w.mark()"),
        ("from flask import g", "g.get('w').mark()"),
        (
            "from flask import g\ndef w():\n    return g.w",
            "w().mark()",
        ),
        (
            "from werkzeug.local import LocalProxy\nw = LocalProxy(W)",
            "w.mark()",
        ),
        ("from copy import deepcopy", "deepcopy(W()).mark()"),
        ("def all_of() -> dict[str, W]: ...", "all_of()['w'].mark()"),
        ("ws = [W()]", "max(ws).mark()"),
        ("def f(w: object): w.mark()", ""),
        ("from typing import Any\ndef f(w: Any): w.mark()", ""),
        (
            "from flask import Flask\nclass App(Flask):\n    def f(self): self.w.mark()",
            "",
        ),
        ("def f(*args): args[0].mark()", ""),
        ("from flask import g", "for w in g.ws: w.mark()"),
        ("from flask import g", "with g.w as w: w.mark()"),
    ] {
        let expected = (vec!["Possible".to_owned()], false);
        assert_eq!(marks(head, use_), expected, "{head}: {use_}");
    }
    assert_eq!(
        marks("def f(w): w.mark()", ""),
        (vec!["Likely".to_owned()], true)
    );
}

#[test]
fn attribute_of_a_value_of_a_known_outside_type_is_no_reference() {
    for (head, use_) in [
        ("", "'a'.mark()"),
        ("", "'a b'.split()[0].mark()"),
        ("", "[1].mark()"),
        ("def f(x: str, y: dict[str, int]): x.mark(); y.mark()", ""),
        ("import flask", "flask.mark()"),
        ("from flask import Flask", "Flask.mark()"),
        ("import os", "os.environ.mark()"),
        ("import json", "json.loads(x)['a'].mark()"),
        ("import re", "re.match(a, b).mark()"),
        ("from pathlib import Path", "Path('a').parent.mark()"),
        ("def f(**options): options.mark()", ""),
    ] {
        assert_eq!(marks(head, use_), (Vec::new(), true), "{head}: {use_}");
    }
}

#[test]
fn common_method_name_on_an_outside_object_is_possible_only_if_something_holds_the_object() {
    let text = "import os, requests\nfrom flask import Flask, g\n\nSession = requests.Session\n\n\n\
                def f(cart):\n    g.cart.add(1)\n    g.add(2)\n    requests.Session().add(3)\n    Flask(1).add(4)\n    \
                [].add(5)\n    os.environ.add(6)\n    cart.add(7)\n";
    let code = code_of([
        (
            "cart.py",
            "class Cart:\n    def add(self, x):\n        pass\n",
        ),
        ("a.py", text),
    ]);
    let found = Resolver::new(&code).references(&"cart.py::Cart.add".parse().unwrap());
    let found = found.unwrap();
    let told: Vec<String> = found
        .uses
        .iter()
        .filter(|one| one.file.as_str() == "a.py")
        .map(|one| format!("{} {:?}", one.line, one.certainty))
        .collect();
    assert_eq!(told, ["8 Possible", "14 Likely"]);
}

#[test]
fn method_call_on_an_object_from_outside_the_workspace_is_no_reference_to_a_module_function() {
    let files = [
        ("m.py", "def mark():\n    pass\n"),
        ("a.py", "from flask import g\ng.w.mark()\n"),
    ];
    check_references(&files, "m.py::mark", &["m.py:1:4"]);
}
